//! Mounts: file systems in the tree, each with the table of its vnodes. The file is long because its tests, and the lines that programs see
//! of a mount, are here too.
//!
//! Invariant: a mount's root vnode is held by the mount until it is unmounted; the vnode it covers is held as well.

use super::loops::LoopUse;
use super::vnode::{Description, Dropped, NodeRef, Vnode};
use super::{SPREAD, stat};
use crate::{keep::records::NOWHERE, peers::Service};
use abi::Errno;
use alloc::{
    collections::BTreeMap,
    format,
    rc::{Rc, Weak},
    string::String,
    vec::Vec,
};
use core::{
    cell::{Cell, RefCell},
    hash::{BuildHasherDefault, Hasher},
};
use hashbrown::HashMap;

/// Linux's MS_RDONLY.
pub const MS_RDONLY: u64 = 1;
/// MS_NOSUID.
pub const MS_NOSUID: u64 = 2;
/// MS_NODEV.
pub const MS_NODEV: u64 = 4;
/// MS_NOEXEC.
pub const MS_NOEXEC: u64 = 8;
/// MS_REMOUNT.
pub const MS_REMOUNT: u64 = 32;

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
}

impl Shared {
    /// The first vnode gets this number.
    pub fn new(next_serial: u64) -> Shared {
        Shared {
            next_serial: Cell::new(next_serial),
            wants_sweep: Cell::new(false),
            mounts_want_sweep: Cell::new(false),
        }
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
    fn ask_sweep_of_mounts(&self) {
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

/// One file system in the tree.
#[derive(Debug)]
pub struct Mount {
    /// As it was mounted; the flags may have changed since.
    new: NewMount,
    flags: Cell<u64>,
    /// `None` until it is set and once it is detached.
    root: RefCell<Option<NodeRef>>,
    covers: RefCell<Option<NodeRef>>,
    nodes: RefCell<HashMap<u64, Weak<Vnode>, BuildHasherDefault<NodeHasher>>>,
    dropped: RefCell<Vec<Dropped>>,
    shared: Rc<Shared>,
    /// Something was written since the last sync.
    dirty: Cell<bool>,
    /// Its place among the preserved mounts.
    record: Cell<u16>,
    /// The loop device that it is mounted from.
    disk: RefCell<Option<LoopUse>>,
}

/// What a new mount is made of.
#[derive(Debug)]
pub struct NewMount {
    /// The process that serves it.
    pub service: Service,
    /// Name of the type, for /proc/mounts: the service's, `proc` for procfs.
    pub kind: String,
    /// What was mounted, for /proc/mounts.
    pub source: String,
    /// Where, absolute.
    pub target: Vec<u8>,
    /// MS_* flags in force.
    pub flags: u64,
    /// Names come and go without vfs: they are not cached.
    pub volatile: bool,
    /// Its content is in memory: it needs no sync.
    pub in_memory: bool,
    /// `st_dev` of its files.
    pub device: u64,
}

impl Mount {
    /// A mount that is not in the tree yet: see [`Mount::set_root`] and [`Mount::cover`].
    pub fn new(new: NewMount, shared: Rc<Shared>) -> Rc<Mount> {
        Rc::new(Mount {
            flags: Cell::new(new.flags),
            new,
            root: RefCell::new(None),
            covers: RefCell::new(None),
            nodes: RefCell::default(),
            dropped: RefCell::default(),
            shared,
            dirty: Cell::new(false),
            record: Cell::new(NOWHERE),
            disk: RefCell::new(None),
        })
    }

    /// Sets its place among the preserved mounts, which the records of its vnodes refer to.
    pub fn preserve_at(&self, record: u16) {
        self.record.set(record);
    }

    /// Counts it as a user of the loop device that it is mounted from, until it is taken out of the tree.
    pub fn use_disk(&self, disk: LoopUse) {
        self.disk.replace(Some(disk));
    }

    /// Gives it its root directory.
    pub fn set_root(&self, root: NodeRef) {
        self.root.replace(Some(root));
    }

    /// Puts it into the tree over a directory. The root file system covers none.
    pub fn cover(self: &Rc<Self>, directory: NodeRef) {
        directory.set_covered(Some(self.clone()));
        self.covers.replace(Some(directory));
    }

    /// Takes it out of the tree.
    pub fn detach(&self) {
        if let Some(covers) = self.covers.take() {
            covers.set_covered(None);
        }
        let root = self.root.take();
        drop(root);
        let disk = self.disk.take();
        drop(disk);
    }

    /// The process that serves it.
    #[inline]
    pub fn service(&self) -> Service {
        self.new.service
    }

    /// Name of its type, as in /proc/mounts.
    pub fn kind(&self) -> &str {
        &self.new.kind
    }

    /// What was mounted.
    pub fn source(&self) -> &str {
        &self.new.source
    }

    /// Its absolute path.
    pub fn target(&self) -> &[u8] {
        &self.new.target
    }

    /// Its names come and go without vfs: they are not cached.
    #[inline]
    pub fn is_volatile(&self) -> bool {
        self.new.volatile
    }

    /// Its content is in memory.
    pub fn is_in_memory(&self) -> bool {
        self.new.in_memory
    }

    /// Its content is on a device, and dirty blocks have to be written back.
    pub fn needs_sync(&self) -> bool {
        !self.new.volatile && !self.new.in_memory
    }

    /// `st_dev` of its files.
    pub fn device(&self) -> u64 {
        self.new.device
    }

    /// Its place among the preserved mounts.
    #[inline]
    pub fn record(&self) -> u16 {
        self.record.get()
    }

    /// MS_* flags in force.
    pub fn flags(&self) -> u64 {
        self.flags.get()
    }

    /// Whether any of these flags is in force.
    pub fn has(&self, flags: u64) -> bool {
        self.flags.get() & flags != 0
    }

    /// Replaces the flags.
    pub fn set_flags(&self, flags: u64) {
        self.flags.set(flags);
    }

    /// Notes that something was written since the last sync.
    pub fn mark_dirty(&self) {
        self.dirty.set(true);
    }

    /// A sync begins. Returns whether something was written since the last one.
    pub fn take_dirty(&self) -> bool {
        self.dirty.replace(false)
    }

    /// The directory it covers; `None` for the root file system.
    pub fn covers(&self) -> Option<NodeRef> {
        self.covers.borrow().clone()
    }

    /// Returns the vnode of a node that the file system has described in a reply, and counted a use of.
    pub fn adopt(self: &Rc<Self>, description: Description) -> NodeRef {
        let mut nodes = self.nodes.borrow_mut();
        if let Some(known) = nodes.get(&description.node).and_then(Weak::upgrade) {
            known.describe(&description);
            return known;
        }
        let vnode = self.new_vnode(&description);
        nodes.insert(description.node, Rc::downgrade(&vnode));
        vnode
    }

    fn new_vnode(self: &Rc<Self>, description: &Description) -> NodeRef {
        let serial = self.shared.new_serial();
        Rc::new(Vnode::new(self.clone(), serial, description))
    }

    /// After a restart: returns the vnode of a node that a record refers to. It counts as one use, however many refer to it;
    /// its attributes come later ([`Vnode::refresh`]).
    pub fn restore(self: &Rc<Self>, node: u64) -> NodeRef {
        let mut nodes = self.nodes.borrow_mut();
        if let Some(known) = nodes.get(&node).and_then(Weak::upgrade) {
            return known;
        }
        let vnode = self.new_vnode(&Description { node, ..Description::default() });
        nodes.insert(node, Rc::downgrade(&vnode));
        vnode
    }

    /// Its root directory; `None` once unmounted.
    pub fn root(&self) -> Option<NodeRef> {
        self.root.borrow().clone()
    }

    /// Whether this is its root directory.
    pub fn is_root(&self, node: &NodeRef) -> bool {
        self.root.borrow().as_ref().is_some_and(|root| Rc::ptr_eq(root, node))
    }

    /// Every vnode in use.
    #[expect(clippy::disallowed_methods, reason = "for unmounting and recovery")]
    pub fn nodes(&self) -> Vec<NodeRef> {
        self.nodes.borrow().values().filter_map(Weak::upgrade).collect()
    }

    /// Notes that a vnode has ended. Called by its drop only.
    #[expect(clippy::disallowed_methods, reason = "swept at the end of the turn")]
    pub(super) fn forget(&self, dropped: Dropped) {
        self.nodes.borrow_mut().remove(&dropped.node);
        self.dropped.borrow_mut().push(dropped);
        if self.wants_sweep() {
            self.shared.ask_sweep_of_mounts();
        }
    }

    /// Whether uses should be reported now: many, or of an orphaned file.
    pub fn wants_sweep(&self) -> bool {
        const MANY: usize = 16;
        let dropped = self.dropped.borrow();
        dropped.len() >= MANY || dropped.last().is_some_and(|last| last.urgent)
    }

    /// Takes the notes of vnodes that have ended, one for each node.
    #[expect(clippy::disallowed_methods, reason = "as many as have been noted in a turn")]
    pub fn take_dropped(&self) -> Vec<Dropped> {
        let mut merged: BTreeMap<u64, Dropped> = BTreeMap::new();
        for dropped in self.dropped.take() {
            merged.entry(dropped.node).and_modify(|known| known.uses += dropped.uses).or_insert(dropped);
        }
        merged.into_values().collect()
    }

    /// Vnodes in use.
    pub fn node_count(&self) -> usize {
        self.nodes.borrow().len()
    }

    /// Whether it is mounted read-only.
    pub fn is_read_only(&self) -> bool {
        self.has(MS_RDONLY)
    }

    /// Its line of /proc/mounts.
    #[expect(clippy::disallowed_macros, reason = "small: from the heap's reserve")]
    pub fn line(&self) -> String {
        let (target, options) = (escape(self.target()), self.options());
        format!("{} {target} {} {options} 0 0\n", escape(self.source().as_bytes()), self.kind())
    }

    #[expect(clippy::disallowed_methods, reason = "small: from the heap's reserve")]
    fn options(&self) -> String {
        let mut options = String::from(if self.is_read_only() { "ro" } else { "rw" });
        for (flag, text) in [(MS_NOSUID, ",nosuid"), (MS_NODEV, ",nodev"), (MS_NOEXEC, ",noexec")] {
            if self.has(flag) {
                options.push_str(text);
            }
        }
        options
    }

    /// The number of the mount in mountinfo and fdinfo.
    pub fn id(&self) -> u16 {
        self.record() + 1
    }

    /// A line of /proc/self/mountinfo.
    #[expect(clippy::disallowed_macros, reason = "small: from the heap's reserve")]
    pub fn info_line(&self) -> String {
        let parent = self.covers().map_or(0, |covers| covers.mount().id());
        let (major, minor) = (stat::major(self.device()), stat::minor(self.device()));
        let (target, source) = (escape(self.target()), escape(self.source().as_bytes()));
        let (id, kind, options) = (self.id(), self.kind(), self.options());
        let access = &options[..2];
        format!("{id} {parent} {major}:{minor} / {target} {options} - {kind} {source} {access}\n")
    }
}

/// All mounts; the first one is the root file system.
#[derive(Debug, Default)]
pub struct Mounts(RefCell<Vec<Rc<Mount>>>);

impl Mounts {
    /// All of them, in the order in which they were mounted.
    pub fn all(&self) -> Vec<Rc<Mount>> {
        self.0.borrow().clone()
    }

    /// The root directory of all. `ENOENT`: it is not mounted yet.
    pub fn root(&self) -> Result<NodeRef, Errno> {
        self.0.borrow().first().and_then(|mount| mount.root()).ok_or(Errno::ENOENT)
    }

    /// The mount that fulfils a condition.
    pub fn find(&self, condition: impl Fn(&Mount) -> bool) -> Option<Rc<Mount>> {
        self.0.borrow().iter().find(|mount| condition(mount)).cloned()
    }

    /// Adds a mount.
    #[expect(clippy::disallowed_methods, reason = "32 mounts")]
    pub fn add(&self, mount: Rc<Mount>) {
        self.0.borrow_mut().push(mount);
    }

    /// Removes a mount.
    pub fn remove(&self, mount: &Rc<Mount>) {
        self.0.borrow_mut().retain(|other| !Rc::ptr_eq(other, mount));
    }

    /// Calls `act` for each mount with uses to be reported.
    pub fn for_each_to_sweep(&self, act: impl Fn(&Mount)) {
        self.0.borrow().iter().filter(|mount| mount.wants_sweep()).for_each(|mount| act(mount));
    }
}

/// Blanks and the like as octal, as /proc/mounts has them.
#[expect(clippy::disallowed_methods, clippy::disallowed_macros, reason = "small: from the heap's reserve")]
fn escape(text: &[u8]) -> String {
    let mut escaped = String::new();
    for chunk in text.utf8_chunks() {
        for letter in chunk.valid().chars() {
            match letter {
                ' ' | '\t' | '\n' | '\\' => escaped.push_str(&format!("\\{:03o}", letter as u32)),
                _ => escaped.push(letter),
            }
        }
        chunk.invalid().iter().for_each(|byte| escaped.push_str(&format!("\\{byte:03o}")));
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mount() -> Rc<Mount> {
        let new = NewMount {
            service: Service::at(11),
            kind: "ext2".into(),
            source: "/dev/vda".into(),
            target: b"/mnt/a b".to_vec(),
            flags: MS_RDONLY | MS_NODEV,
            volatile: false,
            in_memory: false,
            device: 0xfe00,
        };
        Mount::new(new, Rc::new(Shared::new(1)))
    }

    fn described(node: u64, links: u64) -> Description {
        Description { node, mode: 0o100644 | links << 32, ids: 5 | 6 << 32, size: 7, device: 0 }
    }

    #[test]
    fn a_file_has_one_vnode() {
        let mount = mount();
        let a = mount.adopt(described(2, 1));
        let b = mount.adopt(described(2, 1));
        let c = mount.adopt(described(3, 1));
        assert!(Rc::ptr_eq(&a, &b) && !Rc::ptr_eq(&a, &c));
        assert_ne!(a.serial(), c.serial());
        assert_eq!((a.uid(), a.gid(), a.size(), a.is_unlinked()), (5, 6, 7, false));
    }

    #[test]
    fn all_uses_are_taken_back_when_the_last_holder_goes() {
        let mount = mount();
        let a = mount.adopt(described(2, 1));
        let b = mount.adopt(described(2, 1));
        drop(a);
        assert!(mount.take_dropped().is_empty());
        drop(b);
        assert_eq!(mount.node_count(), 0);
        drop(mount.adopt(described(2, 1)));
        assert_eq!(mount.take_dropped(), [Dropped { node: 2, uses: 3, image: false, urgent: false }]);
        assert!(mount.take_dropped().is_empty());
    }

    #[test]
    fn files_without_name_are_given_up_at_once() {
        let mount = mount();
        drop(mount.adopt(described(2, 1)));
        assert!(!mount.wants_sweep());
        let gone = mount.adopt(described(3, 1));
        gone.unlinked();
        drop(gone);
        assert!(mount.wants_sweep());
    }

    #[test]
    fn a_line_tells_source_target_type_and_options() {
        assert_eq!(mount().line(), "/dev/vda /mnt/a\\040b ext2 ro,nodev 0 0\n");
    }

    #[test]
    fn what_is_no_plain_letter_is_octal_in_a_line() {
        assert_eq!(escape(b"/a b\tc\nd\\e"), "/a\\040b\\011c\\012d\\134e");
        assert_eq!(escape("/ä".as_bytes()), "/ä");
        assert_eq!(escape(b"/\xff\x80x"), "/\\377\\200x");
    }

    #[test]
    fn uses_are_reported_when_they_are_many() {
        let mount = mount();
        for node in 0..15 {
            drop(mount.adopt(described(node, 1)));
        }
        assert!(!mount.wants_sweep() && !mount.shared.wants_sweep());
        drop(mount.adopt(described(15, 1)));
        assert!(mount.wants_sweep() && mount.shared.take_sweep() && !mount.shared.take_sweep());
        let mounts = Mounts::default();
        mounts.add(mount.clone());
        let swept = Cell::new(0);
        mounts.for_each_to_sweep(|mount| swept.set(swept.get() + mount.take_dropped().len()));
        mounts.for_each_to_sweep(|_| panic!("nothing is left"));
        assert_eq!(swept.get(), 16);
    }

    #[test]
    fn an_orphan_is_urgent_whatever_came_before_it() {
        let mount = mount();
        let orphan = mount.adopt(described(1, 1));
        drop(mount.adopt(described(2, 1)));
        orphan.unlinked();
        drop(orphan);
        assert!(mount.wants_sweep());
        let urgent: Vec<bool> = mount.take_dropped().iter().map(|dropped| dropped.urgent).collect();
        assert_eq!(urgent, [true, false]);
    }
}
