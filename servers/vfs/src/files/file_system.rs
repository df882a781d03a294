//! File systems: what a service has mounted, with the inodes of it that are in use. One or more mounts show it in the tree (`mount`).
//!
//! Invariant: an inode is in `inodes` while it is in use, unless one mount alone shows the file system: then the mount's own table has them all.

use super::{
    SPREAD,
    dropped::Dropped,
    inode::{Description, Inode},
    loops::LoopUse,
    mount::{MS_RDONLY, Mount, NewMount},
    room::Room,
};
use crate::{
    keep::{quota, scaled},
    peers::Service,
};
use abi::{Errno, limits};
use alloc::{
    rc::{Rc, Weak},
    string::String,
    vec::Vec,
};
use core::{
    cell::{Cell, RefCell},
    hash::{BuildHasherDefault, Hasher},
};
use hashbrown::HashMap;
use server::quota::{Share, Shares};
use sys::fallible::filled;

/// 64 inodes each.
const FILTER_WORDS: usize = 64;
/// So many inodes in use are those of who comes first. While there are more, open files and watches are charged to their users: the usual
/// open costs no count.
pub(super) const COMMON: usize = scaled(limits::FILES_IN_USE / 2, 64);
/// What is charged, at most. The rest is for what processes are in and run; the name cache leaves it.
const CROWD: usize = scaled(limits::FILES_IN_USE / 4, 64);
/// How far a hash is turned before the next number.
const TURN_BITS: u32 = 5;

/// Node numbers need no more mixing than this.
#[derive(Debug, Default)]
pub struct NodeHasher(u64);

impl Hasher for NodeHasher {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(byte as u64));
    }
    fn write_u64(&mut self, value: u64) {
        self.0 = (self.0.rotate_left(TURN_BITS) ^ value).wrapping_mul(SPREAD);
    }
}

/// What all mounts and open files share.
#[derive(Debug)]
pub struct Shared {
    /// Numbers for vnodes.
    next_serial: Cell<u64>,
    /// An open file has ended, or a mount has uses to report.
    wants_sweep: Cell<bool>,
    /// A mount has uses to report.
    mounts_want_sweep: Cell<bool>,
    /// Counts the changes of files that have begun or ended.
    changes: Cell<u64>,
}

impl Shared {
    /// The first vnode gets this number.
    pub fn new(next_serial: u64) -> Shared {
        Shared {
            next_serial: Cell::new(next_serial),
            wants_sweep: Cell::new(false),
            mounts_want_sweep: Cell::new(false),
            changes: Cell::new(0),
        }
    }

    /// How many changes of files have begun or ended.
    pub fn changes(&self) -> u64 {
        self.changes.get()
    }

    /// A change of a file begins or ends.
    pub(super) fn note_change(&self) {
        self.changes.set(self.changes.get() + 1);
    }

    /// Whether a sweep has something to do.
    #[inline]
    pub fn wants_sweep(&self) -> bool {
        self.wants_sweep.get()
    }

    /// Asks for a sweep after the message in progress.
    pub fn ask_sweep(&self) {
        self.wants_sweep.set(true);
    }

    /// Asks for a sweep of mounts too.
    pub(super) fn ask_sweep_of_mounts(&self) {
        self.mounts_want_sweep.set(true);
        self.ask_sweep();
    }

    /// A sweep begins. Returns whether it has something to do.
    pub fn take_sweep(&self) -> bool {
        self.wants_sweep.take()
    }

    /// A sweep comes to the mounts. Returns whether one of them has something to report.
    pub fn take_sweep_of_mounts(&self) -> bool {
        self.mounts_want_sweep.take()
    }

    /// Returns a number that is used only once.
    pub fn new_serial(&self) -> u64 {
        self.next_serial.replace(self.next_serial.get() + 1)
    }
}

/// Things by the numbers of their nodes.
pub(super) type ByNode<T> = HashMap<u64, T, BuildHasherDefault<NodeHasher>>;

/// See the head of the file.
#[derive(Debug)]
pub struct FileSystem {
    service: Service,
    kind: String,
    source: String,
    volatile: bool,
    fixed: bool,
    in_memory: bool,
    device: u64,
    /// Mounted read-only, whatever the flags of its mounts say.
    read_only: Cell<bool>,
    /// Number of its root, which `Unmount` names.
    root: Cell<u64>,
    /// `st_blksize` of its files; 0: it has not replied any.
    block_bytes: Cell<u64>,
    mounts: RefCell<Vec<Weak<Mount>>>,
    inodes: RefCell<Option<ByNode<Weak<Inode>>>>,
    dropped: RefCell<Vec<Dropped>>,
    shared: Rc<Shared>,
    /// Something was written since the last sync.
    dirty: Cell<bool>,
    /// The loop device that it is mounted from.
    disk: RefCell<Option<LoopUse>>,
    /// Inodes that are not in use, but mapped by programs.
    mapped: RefCell<MappedInodes>,
    room: Room,
    /// Users of inodes while more than [`COMMON`] are in use.
    crowd: Shares,
}

/// A filter of inode numbers: all that were added are in it, and few others.
#[derive(Debug, Default)]
enum MappedInodes {
    #[default]
    None,
    Some(Vec<u64>),
    /// What a predecessor knew is not known.
    All,
}

impl MappedInodes {
    fn place(node: u64) -> (usize, u64) {
        let hash = node.wrapping_mul(SPREAD) >> 32;
        (hash as usize / 64 % FILTER_WORDS, 1 << (hash % 64))
    }

    fn add(&mut self, node: u64) {
        if matches!(self, MappedInodes::None) {
            *self = filled(0, FILTER_WORDS).map_or(MappedInodes::All, MappedInodes::Some);
        }
        if let MappedInodes::Some(words) = self {
            let (word, bit) = MappedInodes::place(node);
            words[word] |= bit;
        }
    }

    fn has(&self, node: u64) -> bool {
        match self {
            MappedInodes::None => false,
            MappedInodes::Some(words) => {
                let (word, bit) = MappedInodes::place(node);
                words[word] & bit != 0
            }
            MappedInodes::All => true,
        }
    }
}

impl FileSystem {
    /// One that no mount shows yet.
    pub(super) fn new(new: &mut NewMount, shared: Rc<Shared>) -> Rc<FileSystem> {
        Rc::new(FileSystem {
            service: new.service,
            kind: core::mem::take(&mut new.kind),
            source: core::mem::take(&mut new.source),
            volatile: new.volatile,
            fixed: new.fixed,
            in_memory: new.in_memory,
            device: new.device,
            read_only: Cell::new(new.flags & MS_RDONLY != 0),
            root: Cell::new(0),
            block_bytes: Cell::new(0),
            mounts: RefCell::default(),
            inodes: RefCell::default(),
            dropped: RefCell::default(),
            shared,
            dirty: Cell::new(false),
            disk: RefCell::new(None),
            mapped: RefCell::default(),
            room: Room::default(),
            crowd: quota(CROWD),
        })
    }

    /// Charges a user of an inode, while many are in use. `ENFILE`: he has his share.
    #[cold]
    pub(super) fn charge(&self, user: u32) -> Result<Share, Errno> {
        self.crowd.take(user, 1).map_err(|refusal| refusal.errno(Errno::ENFILE, Errno::ENFILE))
    }

    /// Inodes in use, if several mounts show it.
    #[inline]
    pub(super) fn shared_inodes(&self) -> Option<usize> {
        self.inodes.borrow().as_ref().map(|inodes| inodes.len())
    }

    /// Notes that programs map an inode that is in use no more.
    pub(super) fn note_mapped(&self, node: u64) {
        self.mapped.borrow_mut().add(node);
    }

    /// Notes that programs may map any inode: a predecessor of this vfs has known which.
    pub fn note_all_mapped(&self) {
        self.mapped.replace(MappedInodes::All);
    }

    /// Whether programs may map an inode that comes into use.
    pub(super) fn may_be_mapped(&self, node: u64) -> bool {
        self.mapped.borrow().has(node)
    }

    /// Whether programs may map any.
    pub(super) fn has_mapped(&self) -> bool {
        !matches!(*self.mapped.borrow(), MappedInodes::None)
    }

    /// The process that serves it.
    #[inline]
    pub fn service(&self) -> Service {
        self.service
    }

    /// How much room it has for certain.
    #[inline]
    pub(super) fn room(&self) -> &Room {
        &self.room
    }

    /// Name of its type, as in /proc/mounts.
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// What was mounted.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// It has neither device nor content of its own.
    #[inline]
    pub fn is_volatile(&self) -> bool {
        self.volatile
    }

    /// Its names come and go without vfs, and attributes change: they are not kept.
    #[inline]
    pub fn changes_by_itself(&self) -> bool {
        self.volatile && !self.fixed
    }

    /// Although it is volatile its names are always the same.
    pub fn is_fixed(&self) -> bool {
        self.fixed
    }

    /// Its content is in memory.
    #[inline]
    pub fn is_in_memory(&self) -> bool {
        self.in_memory
    }

    /// `st_dev` of its files, which no other file system has.
    #[inline]
    pub fn device(&self) -> u64 {
        self.device
    }

    /// Whether it is mounted read-only.
    pub fn is_read_only(&self) -> bool {
        self.read_only.get()
    }

    /// Sets whether it is mounted read-only.
    pub fn set_read_only(&self, read_only: bool) {
        self.read_only.set(read_only);
    }

    /// Bytes of a block, if it has told them.
    pub(super) fn block_bytes(&self) -> Option<u64> {
        Some(self.block_bytes.get()).filter(|bytes| *bytes > 0)
    }

    /// Notes what it tells of the size of its blocks.
    pub(super) fn set_block_bytes(&self, bytes: u64) {
        self.block_bytes.set(bytes);
    }

    /// Number of its root.
    pub fn root(&self) -> u64 {
        self.root.get()
    }

    /// Sets the number of its root.
    pub fn set_root(&self, root: u64) {
        self.root.set(root);
    }

    /// What its numbers for vnodes come from.
    pub fn shared(&self) -> &Rc<Shared> {
        &self.shared
    }

    /// Notes that something was written since the last sync.
    pub fn mark_dirty(&self) {
        self.dirty.set(true);
    }

    /// A sync begins. Returns whether something was written since the last one.
    pub fn take_dirty(&self) -> bool {
        self.dirty.replace(false)
    }

    /// Counts it as a user of the loop device that it is mounted from, until it is unmounted.
    pub fn use_disk(&self, disk: LoopUse) {
        self.disk.replace(Some(disk));
    }

    /// Ends the use of the loop device.
    pub fn release_disk(&self) {
        let disk = self.disk.take();
        drop(disk);
    }

    /// Counts one more mount that shows it. From the second one on it has a table of its inodes.
    #[expect(clippy::disallowed_methods, reason = "as many as there are mounts, which are bounded")]
    pub(super) fn add_mount(&self, mount: &Rc<Mount>) {
        self.mounts.borrow_mut().push(Rc::downgrade(mount));
        if self.mounts.borrow().len() > 1 && self.inodes.borrow().is_none() {
            let known = self.mounts().into_iter().flat_map(|mount| mount.nodes());
            let inodes = known.map(|node| (node.number(), Rc::downgrade(node.inode()))).collect();
            self.inodes.replace(Some(inodes));
        }
    }

    /// A mount has ended.
    pub(super) fn remove_mount(&self, mount: &Mount) {
        self.mounts.borrow_mut().retain(|known| known.as_ptr() != mount);
    }

    /// Whether no mount shows it any more.
    pub fn is_hidden(&self) -> bool {
        self.mounts.borrow().is_empty()
    }

    /// The mounts that show it.
    #[expect(clippy::disallowed_methods, reason = "for changes of what several mounts show")]
    pub fn mounts(&self) -> Vec<Rc<Mount>> {
        self.mounts.borrow().iter().filter_map(Weak::upgrade).collect()
    }

    /// Whether several mounts show it.
    #[inline]
    pub fn is_shared(&self) -> bool {
        self.inodes.borrow().is_some()
    }

    /// The inode with this number, if another mount has it in use.
    pub(super) fn find(&self, number: u64) -> Option<Rc<Inode>> {
        self.inodes.borrow().as_ref()?.get(&number)?.upgrade()
    }

    /// Makes the inode of a node that no mount has in use.
    pub(super) fn new_inode(self: &Rc<Self>, description: &Description) -> Rc<Inode> {
        let inode = Rc::new(Inode::new(self.clone(), self.shared.new_serial(), description));
        if let Some(inodes) = self.inodes.borrow_mut().as_mut() {
            inodes.insert(description.node, Rc::downgrade(&inode));
        }
        inode
    }

    /// Notes that an inode has ended. Called by its drop only.
    #[expect(clippy::disallowed_methods, reason = "swept at the end of the turn")]
    pub(super) fn forget(&self, dropped: Dropped) {
        if let Some(inodes) = self.inodes.borrow_mut().as_mut() {
            inodes.remove(&dropped.node);
        }
        if dropped.uses == 0 {
            // The file system knows.
            return;
        }
        self.dropped.borrow_mut().push(dropped);
        if self.wants_sweep() {
            self.shared.ask_sweep_of_mounts();
        }
    }

    /// Takes the notes of inodes with this number that have ended. Returns their uses; `None`, and takes none, if vm has pages of one.
    pub(super) fn take_dropped_of(&self, node: u64) -> Option<u64> {
        let mut dropped = self.dropped.borrow_mut();
        let of_node = dropped.iter().filter(|dropped| dropped.node == node);
        if of_node.clone().any(|dropped| dropped.image || dropped.may_be_mapped) {
            return None;
        }
        let uses = of_node.map(|dropped| dropped.uses).sum();
        if uses > 0 {
            dropped.retain(|dropped| dropped.node != node);
        }
        Some(uses)
    }

    /// Whether uses should be reported now: many, or of an orphaned file.
    pub fn wants_sweep(&self) -> bool {
        const MANY: usize = 16;
        let dropped = self.dropped.borrow();
        dropped.len() >= MANY || dropped.last().is_some_and(|last| last.urgent)
    }

    /// Takes the notes of inodes that have ended, one for each node.
    pub fn take_dropped(&self) -> Vec<Dropped> {
        let mut dropped = self.dropped.take();
        dropped.sort_unstable_by_key(|one| one.node);
        dropped.dedup_by(|next, first| first.takes(next));
        dropped
    }
}
