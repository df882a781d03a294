//! Files in use, of whatever file system: inodes, vnodes, mounts, the name cache, locks, leases, and the requests that file systems answer.

pub mod attributes;
pub mod dirty;
mod file_system;
mod inode;
pub mod known;
pub mod leases;
pub mod locks;
pub mod loops;
pub mod mount;
mod names;
pub mod nodes;
pub mod pages;
mod room;
pub mod seals;
pub mod stat;
pub mod vnode;
pub mod watches;
pub mod xattrs;

pub use file_system::Shared;

use crate::{
    keep::{Store, scaled},
    peers::Peers,
};
use abi::{Endpoint, fs, limits, vm};
use alloc::rc::Rc;
use core::cell::RefCell;
use dirty::DirtyFiles;
use file_system::FileSystem;
use inode::Dropped;
use mount::{Mount, Mounts};
use names::Names;
use vnode::NodeRef;
use watches::Watches;

/// An odd number that spreads the bits of a hash (2^64 by the golden ratio).
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// Files of a file system in use from which on the name cache releases some: three quarters of what ext2 may have in use.
const MANY_IN_USE: usize = scaled(limits::FILES_IN_USE / 4 * 3, 192);
/// How many it releases at a time.
const RELEASED: usize = 64;

/// The file systems in the tree, and the cache of their names.
pub struct Files {
    peers: Rc<Peers>,
    /// The file systems in the tree.
    pub mounts: Mounts,
    names: RefCell<Names<NodeRef>>,
    watches: Rc<Watches>,
    dirty: DirtyFiles,
}

impl Files {
    /// Nothing is mounted.
    pub fn new(peers: Rc<Peers>, watches: Rc<Watches>, store: Rc<Store>) -> Files {
        let names = RefCell::new(Names::new(store.sizes().names()));
        Files { peers, mounts: Mounts::default(), names, watches, dirty: DirtyFiles::new(store) }
    }

    /// The file systems, to be asked.
    pub fn peers(&self) -> &Peers {
        &self.peers
    }

    /// Watches of files.
    #[inline]
    pub fn watches(&self) -> &Rc<Watches> {
        &self.watches
    }

    /// Reports the ended uses of vnodes to the file system, and has vm forget their pages.
    pub fn put_dropped(&self, mount: &Mount) {
        for dropped in mount.file_system().take_dropped() {
            self.forget_pages(mount.file_system(), &dropped);
            self.peers.tell(mount.service(), fs::Put { node: dropped.node, count: dropped.uses }.message());
        }
    }

    /// Has vm forget the pages of an inode without holders, and remembers it while programs map them. A file that is freed is told of before
    /// the file system frees it: another one may get its number.
    fn forget_pages(&self, file_system: &FileSystem, dropped: &Dropped) {
        let gone = dropped.urgent && dropped.may_be_mapped;
        let in_use = match dropped.image || gone {
            true => pages::forget(file_system.device(), dropped.node, gone),
            false => dropped.may_be_mapped,
        };
        if in_use && !gone {
            file_system.note_mapped(dropped.node);
        }
    }

    /// A file system has ended: what programs map of it is of no file any more.
    pub fn forget_mapped(&self, file_system: &FileSystem) {
        if file_system.has_mapped() {
            pages::forget(file_system.device(), vm::ALL_INODES, true);
        }
    }

    /// Ends the use of a node that this file system has created for nobody.
    pub fn put_created(&self, file_system: Endpoint, node: u64) {
        if let Some(mount) = self.mounts.find(|mount| mount.service().slot() == file_system.slot()) {
            self.peers.tell(mount.service(), fs::Put { node, count: 1 }.message());
        }
    }

    /// Makes room for another file in use on a file system whose own table of them is limited, as that of one in memory is not: the name cache
    /// releases some that it keeps in use.
    pub fn make_room(&self, mount: &Mount) {
        if mount.files_in_use() < MANY_IN_USE || mount.is_in_memory() {
            return;
        }
        let of_file_system = |node: &NodeRef| core::ptr::eq(&**node.file_system(), &**mount.file_system());
        let released = self.names.borrow_mut().evict(RELEASED, of_file_system);
        drop(released);
        self.put_dropped(mount);
    }

    /// Removes the names that are known below these mounts from the cache, which would keep them in use.
    pub fn forget_names(&self, is_meant: impl Fn(&Rc<Mount>) -> bool) {
        let forgotten = self.names.borrow_mut().forget_where(|_, node| node.is_some_and(|node| is_meant(node.mount())));
        drop(forgotten);
    }
}
