//! Vnodes: files in use, of whatever file system, with the attributes that vfs decides by.
//!
//! A file has one vnode however often it is open or cached: each mount has a table of its own. A vnode is counted by its holders
//! (open files, directories of processes, the name cache, a path resolution in progress). The uses that the file system counts end with it:
//! the last holder's drop leaves a note in `Mount::dropped`, and `sweep` sends it when no handler is running.
//! Neighbours: `mount`, `walk` (which finds vnodes), `nodes` (which asks file systems).

use super::{locks::FileLocks, mount::Mount, stat::Stat};
use crate::{
    callers::permission::{Attributes, S_IFDIR, S_IFLNK, S_IFMT, S_IFREG},
    keep::records::NodeRecord,
    pipes::Pipe,
};
use alloc::rc::{Rc, Weak};
use core::cell::{Cell, RefCell};

/// A counted reference to a vnode.
pub type NodeRef = Rc<Vnode>;

/// What a file system replies about a node to `Mount`, `Lookup` and `Create`.
#[derive(Clone, Copy, Debug, Default)]
#[allow(missing_docs)]
pub struct Description {
    pub node: u64,
    /// Type and permission bits; link count in the high half.
    pub mode: u64,
    /// Owner in the low half, group in the high half.
    pub ids: u64,
    pub size: u64,
    /// Of special files.
    pub device: u64,
}

impl From<(u64, u64, u64, u64, u64)> for Description {
    fn from((node, mode, ids, size, device): (u64, u64, u64, u64, u64)) -> Self {
        Description { node, mode, ids, size, device }
    }
}

/// See the head of the file.
#[derive(Debug)]
pub struct Vnode {
    /// The file system it is on.
    pub mount: Rc<Mount>,
    /// Its number there.
    pub node: u64,
    /// A number that no other vnode ever has: key of the name cache, version of the image.
    pub serial: u64,
    /// Uses that the file system counts.
    uses: Cell<u64>,
    /// Type and permission bits.
    pub mode: Cell<u32>,
    /// Link count.
    pub links: Cell<u32>,
    /// Owner.
    pub uid: Cell<u32>,
    /// Group.
    pub gid: Cell<u32>,
    /// Bytes.
    pub size: Cell<u64>,
    /// Device number of a special file.
    pub device: Cell<u64>,
    /// vm has pages of it.
    pub has_image: Cell<bool>,
    /// vm's object while it is mapped shared, else 0: see `mappings`.
    pub shared: Cell<u64>,
    /// What is mounted on this directory.
    pub covered: RefCell<Option<Rc<Mount>>>,
    /// The pipe behind a FIFO that is open.
    pub fifo: RefCell<Weak<Pipe>>,
    /// Advisory locks.
    pub locks: FileLocks,
}

impl Vnode {
    pub(crate) fn new(mount: Rc<Mount>, serial: u64, description: &Description) -> Vnode {
        let vnode = Vnode {
            mount,
            node: description.node,
            serial,
            uses: Cell::new(0),
            mode: Cell::new(0),
            links: Cell::new(0),
            uid: Cell::new(0),
            gid: Cell::new(0),
            size: Cell::new(0),
            device: Cell::new(description.device),
            has_image: Cell::new(false),
            shared: Cell::new(0),
            covered: RefCell::new(None),
            fifo: RefCell::new(Weak::new()),
            locks: FileLocks::default(),
        };
        vnode.describe(description);
        vnode
    }

    /// Sets what the file system has replied, and counts the use that it has counted.
    pub(crate) fn describe(&self, description: &Description) {
        self.uses.set(self.uses.get() + 1);
        self.mode.set(description.mode as u32);
        self.links.set((description.mode >> 32) as u32);
        self.uid.set(description.ids as u32);
        self.gid.set((description.ids >> 32) as u32);
        self.size.set(description.size);
    }

    /// Sets what the file system has replied to `Stat`, after a restart.
    pub fn refresh(&self, stat: &Stat) {
        self.mode.set(stat.mode());
        self.links.set(stat.links() as u32);
        self.uid.set(stat.owner().0);
        self.gid.set(stat.owner().1);
        self.size.set(stat.size());
        self.device.set(stat.special_device());
        // vm may have pages of it, brought by a predecessor.
        self.has_image.set(self.is_regular());
    }

    /// Uses that the file system counts for it.
    pub fn uses(&self) -> u64 {
        self.uses.get()
    }

    /// As records refer to it.
    pub fn record(&self) -> NodeRecord {
        NodeRecord { mount: self.mount.record.get(), node: self.node }
    }

    /// What decides about permissions.
    pub fn attributes(&self) -> Attributes {
        Attributes { mode: self.mode.get(), uid: self.uid.get(), gid: self.gid.get() }
    }

    /// The type bits of the mode.
    pub fn kind(&self) -> u32 {
        self.mode.get() & S_IFMT
    }

    /// A directory.
    pub fn is_directory(&self) -> bool {
        self.kind() == S_IFDIR
    }

    /// A regular file.
    pub fn is_regular(&self) -> bool {
        self.kind() == S_IFREG
    }

    /// A symbolic link.
    pub fn is_link(&self) -> bool {
        self.kind() == S_IFLNK
    }

    /// Counts one name less.
    pub fn unlinked(&self) {
        let links = if self.is_directory() { 0 } else { self.links.get().saturating_sub(1) };
        self.links.set(links);
    }
}

impl Drop for Vnode {
    fn drop(&mut self) {
        let urgent = self.links.get() == 0;
        self.mount.forget(Dropped { node: self.node, uses: self.uses.get(), image: self.has_image.get(), urgent });
    }
}

/// What is left to do for a vnode without holders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dropped {
    /// The node's number.
    pub node: u64,
    /// Uses that have ended.
    pub uses: u64,
    /// vm has to forget its pages.
    pub image: bool,
    /// It is unlinked: its space is to be freed at once.
    pub urgent: bool,
}
