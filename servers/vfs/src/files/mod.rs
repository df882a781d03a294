//! Files in use, of whatever file system: inodes, vnodes, mounts, the name cache, locks, leases, and the requests that file systems answer.

mod file_system;
mod inode;
pub mod leases;
pub mod locks;
pub mod loops;
pub mod mount;
mod names;
pub mod nodes;
pub mod pages;
pub mod seals;
pub mod stat;
pub mod vnode;
pub mod watches;
pub mod xattrs;

pub use file_system::Shared;

use crate::peers::Peers;
use abi::{Endpoint, fs};
use alloc::rc::Rc;
use core::cell::RefCell;
use mount::{Mount, Mounts};
use names::Names;
use vnode::NodeRef;
use watches::Watches;

/// An odd number that spreads the bits of a hash (2^64 by the golden ratio).
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// The file systems in the tree, and the cache of their names.
pub struct Files {
    peers: Rc<Peers>,
    /// The file systems in the tree.
    pub mounts: Mounts,
    names: RefCell<Names<NodeRef>>,
    watches: Rc<Watches>,
}

impl Files {
    /// Nothing is mounted.
    pub fn new(peers: Rc<Peers>, watches: Rc<Watches>) -> Files {
        Files { peers, mounts: Mounts::default(), names: RefCell::default(), watches }
    }

    /// Watches of files.
    #[inline]
    pub fn watches(&self) -> &Rc<Watches> {
        &self.watches
    }

    /// Reports the ended uses of vnodes to the file system, and has vm forget their pages.
    pub fn put_dropped(&self, mount: &Mount) {
        for dropped in mount.file_system().take_dropped() {
            if dropped.image {
                pages::forget(mount.device(), dropped.node);
            }
            self.peers.tell(mount.service(), fs::Put { node: dropped.node, count: dropped.uses }.message());
        }
    }

    /// Ends the use of a node that this file system has created for nobody.
    pub fn put_created(&self, file_system: Endpoint, node: u64) {
        if let Some(mount) = self.mounts.find(|mount| mount.service().slot() == file_system.slot()) {
            self.peers.tell(mount.service(), fs::Put { node, count: 1 }.message());
        }
    }

    /// Removes the names that are known below a mount from the cache.
    pub fn forget_names(&self, mount: &Rc<Mount>) {
        let forgotten =
            self.names.borrow_mut().forget_where(|_, node| node.is_some_and(|node| Rc::ptr_eq(node.mount(), mount)));
        drop(forgotten);
    }
}
