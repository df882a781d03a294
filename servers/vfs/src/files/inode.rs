//! Inodes: files in use, of whatever file system, with the attributes that vfs decides by.
//!
//! A file has one inode however many mounts show it. An inode is counted by its vnodes, one for each mount through which it is in use. The
//! uses that the file system counts end with it: the last vnode's drop leaves a note in the `FileSystem`, and `sweep` sends it when no handler
//! is running. Neighbours: `vnode`, `file_system`, `nodes` (which asks file systems).

use super::{
    dirty::Dirty,
    dropped::Dropped,
    file_system::FileSystem,
    known::KnownStat,
    leases::FileLeases,
    locks::FileLocks,
    seals::Seals,
    stat::{Basis, Stat},
    vnode::NodeRef,
};
use crate::{
    callers::permission::{Attributes, S_IFDIR, S_IFLNK, S_IFMT, S_IFREG},
    peers::Service,
    pipes::Pipe,
};
use abi::{Errno, fs};
use alloc::rc::{Rc, Weak};
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};
use core::num::NonZeroU64;
use sys::fallible::copied;

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

/// See the head of the file. Only replies of the file system, and the calls that change what it would reply, change the attributes.
#[derive(Debug)]
pub struct Inode {
    file_system: Rc<FileSystem>,
    number: u64,
    serial: u64,
    /// Uses that the file system counts.
    uses: Cell<u64>,
    mode: Cell<u32>,
    links: Cell<u32>,
    uid: Cell<u32>,
    gid: Cell<u32>,
    size: Cell<u64>,
    special_device: Cell<u64>,
    /// vm has an image of it for further mappings.
    has_image: Cell<bool>,
    /// Programs may map images of it.
    may_be_mapped: Cell<bool>,
    shared_object: Cell<Option<u64>>,
    /// See [`Inode::is_ahead`].
    ahead: Cell<bool>,
    /// The pipe of a FIFO that is open.
    fifo: RefCell<Weak<Pipe>>,
    locks: FileLocks,
    leases: FileLeases,
    /// How many [`Running`] there are of it.
    running: Cell<u32>,
    /// It was made without a name, and may get one.
    linkable: Cell<bool>,
    seals: Seals,
    /// The file system has said that it has no `security.capability`, which only `setxattr` changes.
    has_no_capabilities: Cell<bool>,
    known_stat: KnownStat,
    dirty: Dirty,
    content: Cell<Option<NonZeroU64>>,
}

impl Inode {
    pub(super) fn new(file_system: Rc<FileSystem>, serial: u64, description: &Description) -> Inode {
        let may_be_mapped = file_system.may_be_mapped(description.node);
        let inode = Inode {
            file_system,
            number: description.node,
            serial,
            uses: Cell::new(0),
            mode: Cell::new(0),
            links: Cell::new(0),
            uid: Cell::new(0),
            gid: Cell::new(0),
            size: Cell::new(0),
            special_device: Cell::new(description.device),
            has_image: Cell::new(false),
            may_be_mapped: Cell::new(may_be_mapped),
            shared_object: Cell::new(None),
            ahead: Cell::new(false),
            fifo: RefCell::new(Weak::new()),
            locks: FileLocks::default(),
            leases: FileLeases::default(),
            running: Cell::new(0),
            linkable: Cell::new(false),
            seals: Seals::default(),
            has_no_capabilities: Cell::new(false),
            known_stat: KnownStat::default(),
            dirty: Dirty::default(),
            content: Cell::new(None),
        };
        inode.describe(description);
        inode
    }

    /// Sets what the file system has replied, and counts the use that it has counted.
    pub(super) fn describe(&self, description: &Description) {
        self.uses.set(self.uses.get() + 1);
        self.mode.set(description.mode as u32);
        self.links.set((description.mode >> 32) as u32);
        self.uid.set(description.ids as u32);
        self.gid.set((description.ids >> 32) as u32);
        self.size.set(description.size.max(self.known_stat.new_size()));
    }

    /// What is known of its `struct stat`.
    #[inline]
    pub fn known_stat(&self) -> &KnownStat {
        &self.known_stat
    }

    /// Its dirty pages.
    #[inline]
    pub fn dirty(&self) -> &Dirty {
        &self.dirty
    }

    /// The number under which the page cache knows its content; `None`: it knows nothing of it.
    #[inline]
    pub fn content(&self) -> Option<u64> {
        self.content.get().map(NonZeroU64::get)
    }

    /// Sets that number, which no other content ever has had.
    pub fn set_content(&self, number: Option<u64>) {
        self.content.set(number.and_then(NonZeroU64::new));
    }

    /// Whether it is known to have no `security.capability`.
    pub fn has_no_capabilities(&self) -> bool {
        self.has_no_capabilities.get()
    }

    /// Sets what is known of that.
    pub(super) fn set_has_no_capabilities(&self, has_none: bool) {
        self.has_no_capabilities.set(has_none);
    }

    /// Its `struct stat` before what a change of attributes tells is set, if it is a regular file and its file system has told the size of its blocks.
    pub(super) fn stat_of_content(&self) -> Option<Stat> {
        if !self.is_regular() || self.file_system.changes_by_itself() {
            return None;
        }
        let (device, inode) = (self.file_system.device(), fs::inode_of(self.number));
        let block_bytes = self.file_system.block_bytes()?;
        Some(Stat::of_file(&Basis { device, inode, size: self.size(), block_bytes }))
    }

    /// Sets what the file system has replied to `Stat`, after a restart.
    pub fn refresh(&self, stat: &Stat) {
        self.mode.set(stat.mode());
        self.links.set(stat.links() as u32);
        self.uid.set(stat.owner().0);
        self.gid.set(stat.owner().1);
        self.size.set(stat.size());
        self.special_device.set(stat.special_device());
        // vm may have pages of it, brought by a predecessor.
        self.has_image.set(self.is_regular());
        self.may_be_mapped.set(self.is_regular());
    }

    /// The file system it is on.
    #[inline]
    pub fn file_system(&self) -> &Rc<FileSystem> {
        &self.file_system
    }

    /// The process that serves that file system.
    #[inline]
    pub fn service(&self) -> Service {
        self.file_system.service()
    }

    /// Its inode number there.
    #[inline]
    pub fn number(&self) -> u64 {
        self.number
    }

    /// A number that no other inode ever has: the version of its image.
    pub fn version(&self) -> u64 {
        self.serial
    }

    /// Uses that the file system counts for it.
    pub fn uses(&self) -> u64 {
        self.uses.get()
    }

    /// Takes the uses out that the file system counts, to be given back with a request; those too that ended before this inode came into use.
    /// None while vm has pages of it, which have to end first.
    pub(super) fn take_uses(&self) -> u64 {
        if self.has_pages() {
            return 0;
        }
        self.file_system.take_dropped_of(self.number).map_or(0, |dropped| self.uses.take() + dropped)
    }

    /// Counts uses that were not given back after all.
    pub(super) fn add_uses(&self, uses: u64) {
        self.uses.set(self.uses.get() + uses);
    }

    /// What decides about permissions.
    pub fn attributes(&self) -> Attributes {
        Attributes { mode: self.mode.get(), uid: self.uid.get(), gid: self.gid.get() }
    }

    /// Type and permission bits.
    pub fn mode(&self) -> u32 {
        self.mode.get()
    }

    /// Owner.
    pub fn uid(&self) -> u32 {
        self.uid.get()
    }

    /// Group.
    pub fn gid(&self) -> u32 {
        self.gid.get()
    }

    /// Its size in bytes.
    #[inline]
    pub fn size(&self) -> u64 {
        self.size.get()
    }

    /// Device number of a special file.
    pub fn special_device(&self) -> u64 {
        self.special_device.get()
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

    /// It has no name any more: the file system frees it after its last use.
    pub fn is_unlinked(&self) -> bool {
        self.links.get() == 0
    }

    /// Sets the size that the file system has replied, or that a write in progress will lead to.
    pub fn set_size(&self, bytes: u64) {
        self.size.set(bytes);
        if bytes > 0 {
            self.dirty.set_blank(false);
        }
    }

    /// Lengthens it to the size that a copy has led to, as the file system has replied. A write in progress may have lengthened it further, and will settle that.
    pub fn lengthen(&self, bytes: u64) {
        if bytes > self.size() {
            self.set_size(bytes);
        }
    }

    /// Sets the permission bits.
    pub(super) fn set_permissions(&self, bits: u32) {
        self.mode.set(self.kind() | bits & 0o7777);
    }

    /// Sets owner and group; `None` leaves one.
    pub(super) fn set_owner(&self, uid: Option<u32>, gid: Option<u32>) {
        self.uid.set(uid.unwrap_or(self.uid.get()));
        self.gid.set(gid.unwrap_or(self.gid.get()));
    }

    /// How many names it has.
    pub(super) fn links(&self) -> u32 {
        self.links.get()
    }

    /// Whether vm has pages of it.
    pub(super) fn has_pages(&self) -> bool {
        self.has_image.get() || self.may_be_mapped.get()
    }

    /// Counts one more link: a name, or the `..` of a subdirectory.
    pub(super) fn add_link(&self) {
        self.links.set(self.links.get() + 1);
    }

    /// Counts one link less.
    pub(super) fn remove_link(&self) {
        self.links.set(self.links.get().saturating_sub(1));
    }

    /// Counts one name less. A directory has only one.
    pub(super) fn unlinked(&self) {
        if self.is_directory() { self.links.set(0) } else { self.remove_link() }
    }

    /// Notes that vm has an image of it.
    pub(super) fn set_image(&self) {
        self.has_image.set(true);
        self.may_be_mapped.set(true);
    }

    /// Whether vm has to hear of a new size: programs may map images of it.
    #[inline]
    pub(super) fn may_be_mapped(&self) -> bool {
        self.may_be_mapped.get()
    }

    /// Sets what vm has said of that.
    pub(super) fn set_may_be_mapped(&self, in_use: bool) {
        self.may_be_mapped.set(in_use);
    }

    /// Notes that vm has no image of it any more. Returns whether it had one.
    pub(super) fn take_image(&self) -> bool {
        self.has_image.replace(false)
    }

    /// vm's object while the file is mapped shared: see `mappings`.
    #[inline]
    pub fn shared_object(&self) -> Option<u64> {
        self.shared_object.get()
    }

    /// Sets vm's object; `None`: the file is no longer mapped shared.
    pub fn set_shared_object(&self, object: Option<u64>) {
        self.shared_object.set(object);
    }

    /// Whether there may be newer bytes of it than its file system and the page cache have: in dirty pages.
    #[inline]
    pub fn is_ahead(&self) -> bool {
        self.ahead.get()
    }

    /// Its dirty pages have become some, or none.
    pub(super) fn note_ahead(&self) {
        self.ahead.set(self.dirty.is_any());
    }

    /// The pipe of a FIFO that is open.
    pub fn fifo(&self) -> Option<Rc<Pipe>> {
        self.fifo.borrow().upgrade()
    }

    /// Sets the pipe of a FIFO.
    pub fn set_fifo(&self, pipe: &Rc<Pipe>) {
        *self.fifo.borrow_mut() = Rc::downgrade(pipe);
    }

    /// Its advisory locks.
    #[inline]
    pub fn locks(&self) -> &FileLocks {
        &self.locks
    }

    /// Its leases, and how often it is open.
    #[inline]
    pub fn leases(&self) -> &FileLeases {
        &self.leases
    }

    /// It has no name, but may get one: `O_TMPFILE` without `O_EXCL`.
    pub fn is_linkable(&self) -> bool {
        self.linkable.get()
    }

    /// Sets [`Inode::is_linkable`].
    pub fn set_linkable(&self, linkable: bool) {
        self.linkable.set(linkable);
    }

    /// Its seals; `None`: the file is not in memory.
    pub fn seals(&self) -> Option<&Seals> {
        self.file_system.is_in_memory().then_some(&self.seals)
    }

    /// How many of these bytes may be written there. `EPERM`: a seal forbids it.
    pub fn writable_bytes(&self, start: u64, bytes: u64) -> Result<u64, Errno> {
        self.seals.writable_bytes(self.size.get(), start, bytes)
    }

    /// `ETXTBSY` while the file is executed: its content must not change then.
    pub fn check_idle(&self) -> Result<(), Errno> {
        if self.running.get() == 0 { Ok(()) } else { Err(Errno::ETXTBSY) }
    }
}

/// A file that is executed, or about to be: while there is one of these, nobody may open it for writing or truncate it.
#[derive(Debug)]
pub struct Running {
    node: NodeRef,
    path: Option<Rc<Vec<u8>>>,
}

impl Running {
    /// The file at this canonical path. `ETXTBSY`: it is open for writing; `ENOMEM`.
    pub fn new(node: &NodeRef, path: &[u8]) -> Result<Running, Errno> {
        let path = crate::pathname::known(path).ok().map(copied).transpose()?.map(Rc::new);
        if node.leases.is_written() { Err(Errno::ETXTBSY) } else { Ok(Running::of(node.clone(), path)) }
    }

    /// That of a predecessor of this vfs.
    pub fn restore(node: NodeRef) -> Running {
        Running::of(node, None)
    }

    fn of(node: NodeRef, path: Option<Rc<Vec<u8>>>) -> Running {
        node.running.set(node.running.get() + 1);
        Running { node, path }
    }

    /// The file.
    pub fn node(&self) -> &NodeRef {
        &self.node
    }

    /// The path at which it was found; `None`: by a predecessor of this vfs.
    pub fn path(&self) -> Option<Rc<Vec<u8>>> {
        self.path.clone()
    }
}

impl Clone for Running {
    fn clone(&self) -> Running {
        Running::of(self.node.clone(), self.path.clone())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.node.running.set(self.node.running.get() - 1);
    }
}

impl Drop for Inode {
    fn drop(&mut self) {
        let urgent = self.is_unlinked();
        self.file_system.forget(Dropped {
            node: self.number,
            uses: self.uses.get(),
            image: self.has_image.get(),
            may_be_mapped: self.may_be_mapped.get(),
            urgent,
        });
    }
}
