//! Files in use, of whatever file system: inodes, vnodes, mounts, the name cache, locks, leases, and the requests that file systems answer.

pub mod attributes;
pub mod dirty;
mod dropped;
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
    peers::{Peers, Service},
};
use abi::{Endpoint, Errno, Message, fs, limits, vm};
use alloc::{boxed::Box, rc::Rc};
use core::cell::RefCell;
use dirty::DirtyFiles;
use dropped::Dropped;
use file_system::FileSystem;
use mount::{Mount, Mounts};
use names::Names;
use server::Continuation;
use sys::{
    fallible::{TryVec, with_capacity},
    grant::{Access, GrantedBuffer},
};
use vnode::NodeRef;
use watches::Watches;

/// An odd number that spreads the bits of a hash (2^64 by the golden ratio).
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// Files of a file system in use from which on the name cache releases some: three quarters of what ext2 may have in use.
const MANY_IN_USE: usize = scaled(limits::FILES_IN_USE / 4 * 3, 192);
/// How many it releases at a time.
const RELEASED: usize = 64;

/// Fewer ended uses than these are reported one by one.
const FEW_PUTS: usize = 4;

/// What is granted until the reply.
struct Lent(#[expect(dead_code, reason = "its drop ends the grant")] GrantedBuffer);

impl Continuation for Lent {
    fn replied(self: Box<Self>, _: Result<Message, Errno>) {}
}

/// Grants a file system to read `fs::Use` records: nodes and their uses. Returns their bytes, too. `ENOMEM`.
pub fn lend_uses(
    service: Service,
    uses: impl ExactSizeIterator<Item = (u64, u64)>,
) -> Result<(GrantedBuffer, u64), Errno> {
    let mut records = with_capacity(uses.len() * size_of::<fs::Use>())?;
    for word in uses.flat_map(|(node, count)| [node, count]) {
        records.try_extend_from_slice(&word.to_le_bytes())?;
    }
    let bytes = records.len() as u64;
    Ok((GrantedBuffer::new(records, service.endpoint(), Access::Read)?, bytes))
}

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

    /// Reports the ended uses of vnodes to the file system, and has vm forget their pages. Those of files without names end each with a request of its own, since
    /// each frees a file.
    pub fn put_dropped(&self, mount: &Mount) {
        let mut all = mount.file_system().take_dropped();
        all.iter().for_each(|dropped| self.forget_pages(mount.file_system(), dropped));
        all.sort_unstable_by_key(|dropped| dropped.urgent);
        let (named, unlinked) = all.split_at(all.partition_point(|dropped| !dropped.urgent));
        for some in named.chunks(fs::PUT_ALL_MOST) {
            if some.len() < FEW_PUTS || self.put_all(mount.service(), some).is_err() {
                self.put_each(mount.service(), some);
            }
        }
        self.put_each(mount.service(), unlinked);
    }

    fn put_each(&self, service: Service, ended: &[Dropped]) {
        for dropped in ended {
            self.peers.tell(service, fs::Put { node: dropped.node, count: dropped.uses }.message());
        }
    }

    /// Reports ended uses with one request. `ENOMEM`.
    fn put_all(&self, service: Service, ended: &[Dropped]) -> Result<(), Errno> {
        let (lent, bytes) = lend_uses(service, ended.iter().map(|dropped| (dropped.node, dropped.uses)))?;
        let request = fs::PutAll { grant: lent.id(), bytes };
        self.peers.ask_then(service, request.message(), None, Box::new(Lent(lent)))
    }

    /// A file that nobody has in use has been freed: this was its node, 0: it was not.
    fn forget_gone(&self, file_system: &FileSystem, node: u64) {
        if node != 0 && file_system.may_be_mapped(node) {
            pages::forget(file_system.device(), node, true);
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
