//! Mounts: file systems, or directories of them, in the tree, each with the table of its vnodes. A namespace is the mounts that have its
//! number: each is a copy of that of the container that it was made from. The file is long because its tests, and the lines that programs see
//! of a mount, are here too.
//!
//! Invariant: the root vnode of a mount in the tree is held by the mount; the vnode it covers is held as well. One that is detached is held by
//! its vnodes alone, and ends with them (`Mounts::take_ended`).

use super::{
    file_system::{ByNode, FileSystem, Shared},
    inode::Description,
    stat,
    vnode::{NodeRef, Vnode},
};
use crate::{keep::records::NOWHERE, peers::Service};
use abi::Errno;
use alloc::{
    format,
    rc::{Rc, Weak},
    string::String,
    vec::Vec,
};
use core::cell::{Cell, RefCell};

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

/// Where a mount is.
#[derive(Clone, Debug)]
enum Place {
    /// Not in the tree yet, or not any more.
    Detached,
    /// The root of its namespace.
    Root,
    /// Over this file.
    Covers(NodeRef),
}

/// See the head of the file.
#[derive(Debug)]
pub struct Mount {
    file_system: Rc<FileSystem>,
    flags: Cell<u64>,
    /// The namespace that it is in.
    namespace: u16,
    /// The container whose users may change it.
    users: u8,
    /// It was copied into a namespace of less privileged users, who may neither unmount it nor take its flags away.
    locked: Cell<bool>,
    /// Number of its root directory, or file.
    root_number: Cell<u64>,
    /// `None` until it is set and once it is detached.
    root: RefCell<Option<NodeRef>>,
    place: RefCell<Place>,
    /// The path of what it covers below the root of the mount that it is over.
    target: RefCell<Vec<u8>>,
    /// The path of its root in the file system.
    subtree: Vec<u8>,
    nodes: RefCell<ByNode<Weak<Vnode>>>,
    /// Its place among the preserved mounts.
    record: Cell<u16>,
}

/// What a new mount of a new file system is made of.
#[derive(Debug)]
pub struct NewMount {
    /// The process that serves it.
    pub service: Service,
    /// Name of the type, for /proc/mounts: the service's, `proc` for procfs.
    pub kind: String,
    /// What was mounted, for /proc/mounts.
    pub source: String,
    /// Where: see [`Mount::target`].
    pub target: Vec<u8>,
    /// MS_* flags in force.
    pub flags: u64,
    /// It has neither device nor content of its own.
    pub volatile: bool,
    /// Although it is volatile its names are always the same.
    pub fixed: bool,
    /// Its content is in memory: it needs no sync.
    pub in_memory: bool,
    /// `st_dev` of its files.
    pub device: u64,
    /// The namespace that it is mounted in.
    pub namespace: u16,
    /// See [`Mount::users`].
    pub users: u8,
}

/// What one more mount of a file system is made of.
#[derive(Debug)]
pub struct Another {
    /// Where: see [`Mount::target`].
    pub target: Vec<u8>,
    /// The path of its root in the file system.
    pub subtree: Vec<u8>,
    /// MS_* flags in force.
    pub flags: u64,
    /// The namespace that it is in.
    pub namespace: u16,
    /// See [`Mount::users`].
    pub users: u8,
    /// See [`Mount::is_locked`].
    pub locked: bool,
}

impl Mount {
    /// A mount that is not in the tree yet: see [`Mount::set_root`], [`Mount::cover`] and [`Mount::become_root`].
    pub fn new(mut new: NewMount, shared: Rc<Shared>) -> Rc<Mount> {
        let file_system = FileSystem::new(&mut new, shared);
        let NewMount { target, flags, namespace, users, .. } = new;
        let subtree = Vec::new();
        Mount::another(&file_system, Another { target, subtree, flags, namespace, users, locked: false })
    }

    /// One more mount of a file system, which is not in the tree yet.
    pub fn another(file_system: &Rc<FileSystem>, new: Another) -> Rc<Mount> {
        let mount = Rc::new(Mount {
            file_system: file_system.clone(),
            flags: Cell::new(new.flags),
            namespace: new.namespace,
            users: new.users,
            locked: Cell::new(new.locked),
            root_number: Cell::new(0),
            root: RefCell::new(None),
            place: RefCell::new(Place::Detached),
            target: RefCell::new(new.target),
            subtree: new.subtree,
            nodes: RefCell::default(),
            record: Cell::new(NOWHERE),
        });
        file_system.add_mount(&mount);
        mount
    }

    /// Sets its place among the preserved mounts, which the records of its vnodes refer to.
    pub fn preserve_at(&self, record: u16) {
        self.record.set(record);
    }

    /// Gives it its root.
    pub fn set_root(&self, root: NodeRef) {
        self.root_number.set(root.number());
        self.root.replace(Some(root));
    }

    /// Sets the number of the root of one that is detached.
    pub fn set_root_number(&self, number: u64) {
        self.root_number.set(number);
    }

    /// Puts it into the tree over a file.
    pub fn cover(self: &Rc<Self>, file: NodeRef) {
        file.set_covered(Some(self.clone()));
        self.place.replace(Place::Covers(file));
    }

    /// Makes it the root of its namespace.
    pub fn become_root(&self) {
        self.place.replace(Place::Root);
    }

    /// Takes it out of the tree: what it has covered is seen again. Its vnodes go on.
    pub fn detach(&self) {
        self.lift();
        let root = self.root.take();
        drop(root);
        self.ask_if_ended();
    }

    /// Takes it from where it is, to be put somewhere else.
    pub fn lift(&self) {
        if let Place::Covers(covers) = self.place.replace(Place::Detached) {
            covers.set_covered(None);
        }
    }

    /// Whether it is in no tree.
    pub fn is_detached(&self) -> bool {
        matches!(*self.place.borrow(), Place::Detached)
    }

    /// Whether it is the root of its namespace.
    pub fn is_root_of_namespace(&self) -> bool {
        matches!(*self.place.borrow(), Place::Root)
    }

    /// The file system that it shows.
    #[inline]
    pub fn file_system(&self) -> &Rc<FileSystem> {
        &self.file_system
    }

    /// The namespace that it is in: the number of the container that has it.
    pub fn namespace(&self) -> u16 {
        self.namespace
    }

    /// The container whose users may change it, and the others of its namespace.
    pub fn users(&self) -> u8 {
        self.users
    }

    /// It was copied into a namespace of less privileged users, who may neither unmount it alone nor take its flags away.
    pub fn is_locked(&self) -> bool {
        self.locked.get()
    }

    /// The process that serves it.
    #[inline]
    pub fn service(&self) -> Service {
        self.file_system.service()
    }

    /// Name of its type, as in /proc/mounts.
    pub fn kind(&self) -> &str {
        self.file_system.kind()
    }

    /// What was mounted.
    pub fn source(&self) -> &str {
        self.file_system.source()
    }

    /// The path of what it covers, below the root of the mount that it is over; of the root of a namespace, `/`.
    pub fn target(&self) -> Vec<u8> {
        self.target.borrow().clone()
    }

    /// Sets that path.
    pub fn set_target(&self, target: Vec<u8>) {
        self.target.replace(target);
    }

    /// The path of its root in the file system; empty: it is that of the file system.
    pub fn subtree(&self) -> &[u8] {
        &self.subtree
    }

    /// Its absolute path in its namespace.
    #[expect(clippy::disallowed_methods, reason = "a path: from the heap's reserve")]
    pub fn path(&self) -> Vec<u8> {
        let own = self.target();
        match self.covers().filter(|covers| covers.mount().covers().is_some()) {
            None => own,
            Some(covers) => {
                let mut path = covers.mount().path();
                if own.len() > 1 {
                    path.extend_from_slice(&own);
                }
                path
            }
        }
    }

    /// It has neither device nor content of its own.
    #[inline]
    pub fn is_volatile(&self) -> bool {
        self.file_system.is_volatile()
    }

    /// Its names come and go without vfs, and attributes change: they are not kept.
    #[inline]
    pub fn changes_by_itself(&self) -> bool {
        self.file_system.changes_by_itself()
    }

    /// Its content is in memory.
    pub fn is_in_memory(&self) -> bool {
        self.file_system.is_in_memory()
    }

    /// It never gets into the tree.
    pub fn abandon(&self) {
        self.file_system.remove_mount(self);
        self.detach();
    }

    /// Its content is on a device, and dirty blocks have to be written back.
    pub fn needs_sync(&self) -> bool {
        !self.is_volatile() && !self.is_in_memory()
    }

    /// `st_dev` of its files.
    pub fn device(&self) -> u64 {
        self.file_system.device()
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
        self.file_system.mark_dirty();
    }

    /// A sync begins. Returns whether something was written to the file system since the last one.
    pub fn take_dirty(&self) -> bool {
        self.file_system.take_dirty()
    }

    /// What it covers; `None` for the root of a namespace, and for one that is detached.
    pub fn covers(&self) -> Option<NodeRef> {
        match &*self.place.borrow() {
            Place::Covers(node) => Some(node.clone()),
            Place::Root | Place::Detached => None,
        }
    }

    /// Returns the vnode of a node that the file system has described in a reply, and counted a use of.
    pub fn adopt(self: &Rc<Self>, description: Description) -> NodeRef {
        if let Some(known) = self.known(description.node) {
            known.describe(&description);
            return known;
        }
        let inode = match self.file_system.find(description.node) {
            Some(inode) => {
                inode.describe(&description);
                inode
            }
            None => self.file_system.new_inode(&description),
        };
        self.new_vnode(inode)
    }

    /// The vnode of a node, if there is one.
    pub fn known(&self, node: u64) -> Option<NodeRef> {
        self.nodes.borrow().get(&node).and_then(Weak::upgrade)
    }

    /// The vnode here of a file that another mount of the file system shows.
    pub fn show(self: &Rc<Self>, node: &NodeRef) -> NodeRef {
        self.known(node.number()).unwrap_or_else(|| self.new_vnode(node.inode().clone()))
    }

    fn new_vnode(self: &Rc<Self>, inode: Rc<super::inode::Inode>) -> NodeRef {
        let serial = self.file_system.shared().new_serial();
        let number = inode.number();
        let vnode = Rc::new(Vnode::new(self.clone(), serial, inode));
        self.nodes.borrow_mut().insert(number, Rc::downgrade(&vnode));
        vnode
    }

    /// After a restart: returns the vnode of a node that a record refers to. However many refer to it, its inode counts one use; its
    /// attributes come later ([`super::inode::Inode::refresh`]).
    pub fn restore(self: &Rc<Self>, node: u64) -> NodeRef {
        if let Some(known) = self.known(node) {
            return known;
        }
        let description = Description { node, ..Description::default() };
        let inode = self.file_system.find(node).unwrap_or_else(|| self.file_system.new_inode(&description));
        self.new_vnode(inode)
    }

    /// Its root; `None` once unmounted.
    pub fn root(&self) -> Option<NodeRef> {
        self.root.borrow().clone()
    }

    /// Whether this, one of its vnodes, is its root.
    #[inline]
    pub fn is_root(&self, node: &NodeRef) -> bool {
        node.number() == self.root_number.get()
    }

    /// Every vnode in use.
    #[expect(clippy::disallowed_methods, reason = "for unmounting and recovery")]
    pub fn nodes(&self) -> Vec<NodeRef> {
        self.nodes.borrow().values().filter_map(Weak::upgrade).collect()
    }

    /// A vnode has ended. Called by its drop only.
    pub(super) fn forget(&self, node: u64) {
        self.nodes.borrow_mut().remove(&node);
        self.ask_if_ended();
    }

    fn ask_if_ended(&self) {
        if self.has_ended() {
            self.file_system.shared().ask_sweep_of_mounts();
        }
    }

    /// Whether it is detached, and nothing of it is in use.
    fn has_ended(&self) -> bool {
        self.is_detached() && self.nodes.borrow().is_empty()
    }

    /// Vnodes in use.
    pub fn node_count(&self) -> usize {
        self.nodes.borrow().len()
    }

    /// Files of its file system in use, through whatever mount.
    #[inline]
    pub(super) fn files_in_use(&self) -> usize {
        self.file_system.shared_inodes().unwrap_or_else(|| self.node_count())
    }

    /// Whether writes through it are refused.
    pub fn is_read_only(&self) -> bool {
        self.has(MS_RDONLY) || self.file_system.is_read_only()
    }

    /// Its line of /proc/mounts, at this path.
    #[expect(clippy::disallowed_macros, reason = "small: from the heap's reserve")]
    pub fn line(&self, path: &[u8]) -> String {
        let (target, options) = (escape(path), self.options(self.is_read_only()));
        format!("{} {target} {} {options} 0 0\n", escape(self.source().as_bytes()), self.kind())
    }

    #[expect(clippy::disallowed_methods, reason = "small: from the heap's reserve")]
    fn options(&self, read_only: bool) -> String {
        let mut options = String::from(if read_only { "ro" } else { "rw" });
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

    /// A line of /proc/self/mountinfo, at this path.
    #[expect(clippy::disallowed_macros, reason = "small: from the heap's reserve")]
    pub fn info_line(&self, path: &[u8]) -> String {
        let parent = self.covers().map_or(0, |covers| covers.mount().id());
        let (major, minor) = (stat::major(self.device()), stat::minor(self.device()));
        let (target, source) = (escape(path), escape(self.source().as_bytes()));
        let subtree = if self.subtree.is_empty() { b"/" } else { &self.subtree[..] };
        let (id, kind, options) = (self.id(), self.kind(), self.options(self.has(MS_RDONLY)));
        let access = if self.file_system.is_read_only() { "ro" } else { "rw" };
        let subtree = escape(subtree);
        format!("{id} {parent} {major}:{minor} {subtree} {target} {options} - {kind} {source} {access}\n")
    }
}

/// All mounts, those that are detached and still in use among them.
#[derive(Debug, Default)]
pub struct Mounts(RefCell<Vec<Rc<Mount>>>);

impl Mounts {
    /// All of them, in the order in which they were mounted.
    pub fn all(&self) -> Vec<Rc<Mount>> {
        self.0.borrow().clone()
    }

    /// The root of a namespace. `ENOENT`: it has none yet.
    pub fn root(&self, namespace: u16) -> Result<NodeRef, Errno> {
        let root = self.find(|mount| mount.namespace() == namespace && mount.is_root_of_namespace());
        root.and_then(|mount| mount.root()).ok_or(Errno::ENOENT)
    }

    /// The mount that fulfils a condition.
    pub fn find(&self, condition: impl Fn(&Mount) -> bool) -> Option<Rc<Mount>> {
        self.0.borrow().iter().find(|mount| condition(mount)).cloned()
    }

    /// The mounts in the tree of a namespace, in the order in which they were mounted.
    #[expect(clippy::disallowed_methods, reason = "as many as there are mounts, which are bounded")]
    pub fn of(&self, namespace: u16) -> Vec<Rc<Mount>> {
        self.0.borrow().iter().filter(|mount| mount.namespace() == namespace && !mount.is_detached()).cloned().collect()
    }

    /// Those of them that are over this one, directly or not, itself first, each behind that which it is over.
    #[expect(clippy::disallowed_methods, reason = "as many as there are mounts, which are bounded")]
    pub fn below(&self, top: &Rc<Mount>) -> Vec<Rc<Mount>> {
        let all = self.of(top.namespace());
        let mut found: Vec<Rc<Mount>> = Vec::from([top.clone()]);
        let mut next = 0;
        while let Some(parent) = found.get(next).cloned() {
            let is_over = |mount: &&Rc<Mount>| mount.covers().is_some_and(|covers| Rc::ptr_eq(covers.mount(), &parent));
            found.extend(all.iter().filter(is_over).cloned());
            next += 1;
        }
        found
    }

    /// Adds a mount.
    #[expect(clippy::disallowed_methods, reason = "as many as there are mounts, which are bounded")]
    pub fn add(&self, mount: Rc<Mount>) {
        self.0.borrow_mut().push(mount);
    }

    /// Removes a mount.
    pub fn remove(&self, mount: &Rc<Mount>) {
        mount.file_system.remove_mount(mount);
        self.0.borrow_mut().retain(|other| !Rc::ptr_eq(other, mount));
    }

    /// Takes out a mount that is detached and of which nothing is in use any more.
    pub fn take_ended(&self) -> Option<Rc<Mount>> {
        let ended = self.find(Mount::has_ended)?;
        self.remove(&ended);
        Some(ended)
    }

    /// Calls `act` for each mount with uses to be reported.
    pub fn for_each_to_sweep(&self, act: impl Fn(&Mount)) {
        self.0.borrow().iter().filter(|mount| mount.file_system.wants_sweep()).for_each(|mount| act(mount));
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
    use super::{super::dropped::Dropped, *};

    fn mount() -> Rc<Mount> {
        let new = NewMount {
            service: Service::at(11),
            kind: "ext2".into(),
            source: "/dev/vda".into(),
            target: b"/mnt/a b".to_vec(),
            flags: MS_RDONLY | MS_NODEV,
            volatile: false,
            fixed: false,
            in_memory: false,
            device: 0xfe00,
            namespace: 0,
            users: 0,
        };
        let mount = Mount::new(new, Rc::new(Shared::new(1)));
        mount.become_root();
        mount
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
        assert!(mount.file_system().take_dropped().is_empty());
        drop(b);
        assert_eq!(mount.node_count(), 0);
        drop(mount.adopt(described(2, 1)));
        assert_eq!(
            mount.file_system().take_dropped(),
            [Dropped { node: 2, uses: 3, image: false, may_be_mapped: false, urgent: false }]
        );
        assert!(mount.file_system().take_dropped().is_empty());
    }

    #[test]
    fn files_without_name_are_given_up_at_once() {
        let mount = mount();
        drop(mount.adopt(described(2, 1)));
        assert!(!mount.file_system().wants_sweep());
        let gone = mount.adopt(described(3, 1));
        gone.unlinked();
        drop(gone);
        assert!(mount.file_system().wants_sweep());
    }

    #[test]
    fn a_line_tells_source_target_type_and_options() {
        assert_eq!(mount().line(b"/mnt/a b"), "/dev/vda /mnt/a\\040b ext2 ro,nodev 0 0\n");
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
        assert!(!mount.file_system().wants_sweep() && !mount.file_system.shared().wants_sweep());
        drop(mount.adopt(described(15, 1)));
        assert!(
            mount.file_system().wants_sweep()
                && mount.file_system.shared().take_sweep()
                && !mount.file_system.shared().take_sweep()
        );
        let mounts = Mounts::default();
        mounts.add(mount.clone());
        let swept = Cell::new(0);
        mounts.for_each_to_sweep(|mount| swept.set(swept.get() + mount.file_system().take_dropped().len()));
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
        assert!(mount.file_system().wants_sweep());
        let urgent: Vec<bool> = mount.file_system().take_dropped().iter().map(|dropped| dropped.urgent).collect();
        assert_eq!(urgent, [true, false]);
    }
}
