//! Vnodes: files as they are seen through a mount. A file that several mounts show has one inode and a vnode in each of them, so a vnode tells
//! where a path goes on upwards, which flags of a mount apply, and what is mounted on it in this place.
//!
//! Each mount has a table of its vnodes. A vnode is counted by its holders: open files, directories of processes, the name cache, a path
//! resolution in progress, mounts that cover it. Neighbours: `inode` (all else about a file), `mount`, `walk` (which finds vnodes).

pub use super::inode::{Description, Running};
use super::{file_system::COMMON, inode::Inode, mount::Mount};
use crate::keep::records::NodeRecord;
use abi::Errno;
use alloc::rc::Rc;
use core::{cell::RefCell, ops::Deref};
use server::quota::Share;

/// A counted reference to a vnode.
pub type NodeRef = Rc<Vnode>;

/// What the user of an open file is charged while its file system has many files in use.
#[derive(Debug, Default)]
pub struct Crowd(RefCell<Option<Share>>);

impl Crowd {
    /// Charges a user of a file. `ENFILE`: he has his share.
    #[inline]
    pub fn set(&self, node: &Vnode, user: u32) -> Result<(), Errno> {
        if let Some(share) = node.hold(user)? {
            self.0.replace(Some(share));
        }
        Ok(())
    }
}

/// See the head of the file.
#[derive(Debug)]
pub struct Vnode {
    inode: Rc<Inode>,
    mount: Rc<Mount>,
    serial: u64,
    /// What is mounted on it.
    covered: RefCell<Option<Rc<Mount>>>,
}

impl Deref for Vnode {
    type Target = Inode;

    #[inline]
    fn deref(&self) -> &Inode {
        &self.inode
    }
}

impl Vnode {
    pub(super) fn new(mount: Rc<Mount>, serial: u64, inode: Rc<Inode>) -> Vnode {
        Vnode { inode, mount, serial, covered: RefCell::new(None) }
    }

    /// The mount through which it is seen.
    #[inline]
    pub fn mount(&self) -> &Rc<Mount> {
        &self.mount
    }

    pub(super) fn inode(&self) -> &Rc<Inode> {
        &self.inode
    }

    /// Charges a user who keeps it in use, if its file system has many files in use. `ENFILE`: he has his share.
    #[inline]
    pub fn hold(&self, user: u32) -> Result<Option<Share>, Errno> {
        if self.mount.files_in_use() > COMMON { self.file_system().charge(user).map(Some) } else { Ok(None) }
    }

    /// [`Inode::take_uses`] of an inode that only the owner of this reference has in use. Whoever gets it after that is told of it by the file
    /// system, which counts him.
    pub(super) fn take_own_uses(self: &NodeRef) -> u64 {
        if self.is_held_by(1) { self.inode.take_uses() } else { 0 }
    }

    /// Whether there are only so many references to it, besides that of the list of files with dirty pages, and no other vnode of its file.
    pub(super) fn is_held_by(self: &NodeRef, holders: usize) -> bool {
        let listed = usize::from(self.inode.dirty().is_any());
        Rc::strong_count(self) == holders + listed && Rc::strong_count(&self.inode) == 1
    }

    /// Whether both are the same file, perhaps seen through different mounts.
    pub fn is_same_file(&self, other: &Vnode) -> bool {
        Rc::ptr_eq(&self.inode, &other.inode)
    }

    /// Whether both are on one file system.
    pub fn is_on_file_system_of(&self, other: &Vnode) -> bool {
        Rc::ptr_eq(self.file_system(), other.file_system())
    }

    /// A number that no other vnode ever has: key of the name cache.
    #[inline]
    pub fn serial(&self) -> u64 {
        self.serial
    }

    /// As records refer to it.
    pub fn record(&self) -> NodeRecord {
        NodeRecord { mount: self.mount.record(), node: self.number() }
    }

    /// Whether something is mounted on it.
    pub fn is_covered(&self) -> bool {
        self.covered.borrow().is_some()
    }

    /// The root of what is mounted on it.
    #[inline]
    pub fn covering_root(&self) -> Option<NodeRef> {
        self.covered.borrow().as_ref().and_then(|mount| mount.root())
    }

    /// Sets what is mounted on it. Called by [`Mount`] only.
    pub(super) fn set_covered(&self, mount: Option<Rc<Mount>>) {
        let former = self.covered.replace(mount);
        drop(former);
    }
}

impl Drop for Vnode {
    fn drop(&mut self) {
        self.mount.forget(self.number());
    }
}
