//! Watches of files for programs that want to learn of changes (inotify(7)).
//!
//! A watch keeps its file in use. It is found by the file, and one of a directory by its path too: an open file knows its path, by which its
//! events reach the directory that it is in. As long as there is no watch at all, each operation pays one test.
//!
//! Events are made in the turn in which the operation is answered. So a death of vfs loses none, but of a change that a file system has made
//! and vfs has not heard of: then every instance is told that it has lost events.

mod instance;

use super::vnode::NodeRef;
use crate::{
    files::mount::Mount,
    keep::{Kept, Store, Text, records::WatchRecord},
};
use abi::Errno;
use alloc::{
    collections::BTreeMap,
    rc::{Rc, Weak},
    vec::Vec,
};
use core::cell::{Cell, RefCell};
pub use instance::Inotify;
use server::quota::Share;
use sys::fallible::{TryVec, copied};

/// `IN_*`.
#[allow(missing_docs)]
pub mod flag {
    pub const ACCESS: u32 = 0x1;
    pub const MODIFY: u32 = 0x2;
    pub const ATTRIB: u32 = 0x4;
    pub const CLOSE_WRITE: u32 = 0x8;
    pub const CLOSE_NOWRITE: u32 = 0x10;
    pub const OPEN: u32 = 0x20;
    pub const MOVED_FROM: u32 = 0x40;
    pub const MOVED_TO: u32 = 0x80;
    pub const CREATE: u32 = 0x100;
    pub const DELETE: u32 = 0x200;
    pub const DELETE_SELF: u32 = 0x400;
    pub const MOVE_SELF: u32 = 0x800;
    /// What can be asked for.
    pub const ALL_EVENTS: u32 = 0xfff;
    pub const UNMOUNT: u32 = 0x2000;
    pub const Q_OVERFLOW: u32 = 0x4000;
    pub const IGNORED: u32 = 0x8000;
    pub const ONLYDIR: u32 = 0x0100_0000;
    pub const DONT_FOLLOW: u32 = 0x0200_0000;
    pub const EXCL_UNLINK: u32 = 0x0400_0000;
    pub const MASK_CREATE: u32 = 0x1000_0000;
    pub const MASK_ADD: u32 = 0x2000_0000;
    pub const ISDIR: u32 = 0x4000_0000;
    pub const ONESHOT: u32 = 0x8000_0000;
}

/// One watch.
#[derive(Debug)]
pub struct Watch {
    record: Kept<WatchRecord>,
    instance: Weak<Inotify>,
    node: NodeRef,
    /// What its user is charged because the file system has many files in use.
    _crowd: Option<Share>,
}

/// A file as watches are found by: the device of its file system, and its number. All mounts of that have the same watches.
type Key = (u64, u64);

fn key(node: &NodeRef) -> Key {
    (node.mount().device(), node.number())
}

/// What is to be watched, and how.
pub struct Wanted {
    /// The file.
    pub node: NodeRef,
    /// Its canonical path.
    pub path: Vec<u8>,
    /// `IN_*`.
    pub mask: u32,
}

/// See the head of the file.
pub struct Watches {
    store: Rc<Store>,
    nodes: RefCell<BTreeMap<Key, Vec<Rc<Watch>>>>,
    paths: RefCell<BTreeMap<Vec<u8>, Vec<Rc<Watch>>>>,
    count: Cell<usize>,
    sequence: Cell<u64>,
    cookie: Cell<u32>,
}

impl core::fmt::Debug for Watches {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(formatter, "{} watches", self.count.get())
    }
}

impl Watches {
    /// No watches. `first_number`: events of predecessors have lower ones.
    pub fn new(store: Rc<Store>, first_number: u64) -> Rc<Watches> {
        Rc::new(Watches {
            store,
            nodes: RefCell::default(),
            paths: RefCell::default(),
            count: Cell::new(0),
            sequence: Cell::new(first_number),
            cookie: Cell::new((first_number >> 16) as u32),
        })
    }

    /// Whether there are any.
    #[inline]
    pub fn any(&self) -> bool {
        self.count.get() != 0
    }

    fn next_sequence(&self) -> u64 {
        let next = self.sequence.get() + 1;
        self.sequence.set(next);
        next
    }

    /// A number that joins the two events of a move.
    fn next_cookie(&self) -> u32 {
        let next = self.cookie.get().wrapping_add(1).max(1);
        self.cookie.set(next);
        next
    }

    /// Adds a watch, or changes the one that the instance has for this file. Returns its descriptor. `EEXIST`, `ENOSPC`, `ENOMEM`.
    pub fn add(&self, instance: &Rc<Inotify>, wanted: Wanted) -> Result<u32, Errno> {
        let kept = wanted.mask & (flag::ALL_EVENTS | flag::ONESHOT | flag::EXCL_UNLINK);
        let known = self.of_node(&wanted.node).into_iter().find(|watch| watch.is_of(instance));
        if let Some(known) = known {
            if wanted.mask & flag::MASK_CREATE != 0 {
                return Err(Errno::EEXIST);
            }
            let before = if wanted.mask & flag::MASK_ADD != 0 { known.record.get().mask } else { 0 };
            known.record.update(|record| record.mask = before | kept);
            return Ok(known.record.get().descriptor);
        }
        let crowd = wanted.node.hold(instance.user()).map_err(|_| Errno::ENOSPC)?;
        let path = if wanted.node.is_directory() { &wanted.path[..] } else { &[] };
        let record = WatchRecord {
            instance: instance.number(),
            descriptor: instance.next_descriptor(),
            mask: kept,
            node: wanted.node.record(),
            path: Text::EMPTY,
            user: instance.user(),
        };
        let record = self.store.new_watch(record)?;
        let text =
            self.store.put_text(path, instance.user()).inspect_err(|_| self.store.clear_watch(record.place()))?;
        record.update(|record| record.path = text);
        let watch = Rc::new(Watch { record, instance: Rc::downgrade(instance), node: wanted.node, _crowd: crowd });
        self.enter(&watch, path).inspect_err(|_| self.store.clear_watch(watch.record.place()))?;
        let descriptor = watch.record.get().descriptor;
        instance.watches.borrow_mut().insert(descriptor, watch);
        Ok(descriptor)
    }

    fn enter(&self, watch: &Rc<Watch>, path: &[u8]) -> Result<(), Errno> {
        self.nodes.borrow_mut().entry(key(&watch.node)).or_default().try_push(watch.clone())?;
        if !path.is_empty() {
            self.paths.borrow_mut().entry(copied(path)?).or_default().try_push(watch.clone())?;
        }
        self.count.set(self.count.get() + 1);
        Ok(())
    }

    /// Takes a watch out of the lists.
    fn leave(&self, watch: &Rc<Watch>) {
        fn remove<K: Ord>(lists: &RefCell<BTreeMap<K, Vec<Rc<Watch>>>>, key: &K, watch: &Rc<Watch>) -> bool {
            let mut lists = lists.borrow_mut();
            let Some(list) = lists.get_mut(key) else { return false };
            let before = list.len();
            list.retain(|other| !Rc::ptr_eq(other, watch));
            let removed = list.len() < before;
            if list.is_empty() {
                lists.remove(key);
            }
            removed
        }
        if remove(&self.nodes, &key(&watch.node), watch) {
            self.count.set(self.count.get() - 1);
        }
        let path = self.store.text(watch.record.get().path);
        remove(&self.paths, &path, watch);
    }

    /// Ends a watch, and tells its instance.
    fn end(&self, watch: &Rc<Watch>) {
        self.leave(watch);
        self.store.clear_watch(watch.record.place());
        if let Some(instance) = watch.instance.upgrade() {
            let descriptor = watch.record.get().descriptor;
            instance.watches.borrow_mut().remove(&descriptor);
            instance.push(descriptor, flag::IGNORED, 0, b"");
        }
    }

    /// inotify_rm_watch. `EINVAL`: the instance has no such watch.
    pub fn remove(&self, instance: &Inotify, descriptor: u32) -> Result<(), Errno> {
        let watch = instance.watches.borrow().get(&descriptor).cloned().ok_or(Errno::EINVAL)?;
        self.end(&watch);
        Ok(())
    }

    /// Enters the watch of a predecessor. `ENOMEM`.
    pub fn restore(&self, instance: &Rc<Inotify>, record: Kept<WatchRecord>, node: NodeRef) -> Result<(), Errno> {
        let path = self.store.text(record.get().path);
        let crowd = node.hold(instance.user()).unwrap_or(None);
        let watch = Rc::new(Watch { record, instance: Rc::downgrade(instance), node, _crowd: crowd });
        self.enter(&watch, &path)?;
        instance.watches.borrow_mut().insert(watch.record.get().descriptor, watch);
        Ok(())
    }
}

/// What happens to files.
impl Watches {
    fn of_node(&self, node: &NodeRef) -> Vec<Rc<Watch>> {
        self.nodes.borrow().get(&key(node)).cloned().unwrap_or_default()
    }

    fn deliver(&self, watch: &Rc<Watch>, mask: u32, cookie: u32, name: &[u8]) {
        let record = watch.record.get();
        if record.mask & mask & flag::ALL_EVENTS == 0 {
            return;
        }
        let Some(instance) = watch.instance.upgrade() else { return };
        let of_itself = mask & (flag::DELETE_SELF | flag::MOVE_SELF) != 0;
        instance.push(record.descriptor, if of_itself { mask & !flag::ISDIR } else { mask }, cookie, name);
        if record.mask & flag::ONESHOT != 0 {
            self.end(watch);
        }
    }

    /// Something has happened to a name of a directory.
    fn of_name(&self, directory: &NodeRef, name: &[u8], mask: u32, cookie: u32) {
        self.of_node(directory).iter().for_each(|watch| self.deliver(watch, mask, cookie, name));
    }

    fn of_itself(&self, node: &NodeRef, mask: u32) {
        let mask = mask | kind(node);
        self.of_node(node).iter().for_each(|watch| self.deliver(watch, mask, 0, b""));
    }

    /// Something has happened to a file that was reached by this path: its directory is told first.
    #[inline]
    pub fn happened(&self, node: &NodeRef, path: &[u8], mask: u32) {
        if self.any() {
            self.tell(node, path, mask);
        }
    }

    #[cold]
    fn tell(&self, node: &NodeRef, path: &[u8], mask: u32) {
        if let Some(end) = path.iter().rposition(|byte| *byte == b'/').filter(|end| end + 1 < path.len()) {
            let (directory, name) = (&path[..end.max(1)], &path[end + 1..]);
            let list = self.paths.borrow().get(directory).cloned().unwrap_or_default();
            for watch in list {
                if !node.is_unlinked() || watch.record.get().mask & flag::EXCL_UNLINK == 0 {
                    self.deliver(&watch, mask | kind(node), 0, name);
                }
            }
        }
        self.of_itself(node, mask);
    }

    /// A name was made in a directory.
    pub fn created(&self, directory: &NodeRef, name: &[u8], is_directory: bool) {
        if self.any() {
            self.of_name(directory, name, flag::CREATE | if is_directory { flag::ISDIR } else { 0 }, 0);
        }
    }

    /// A file has got one more name.
    pub fn linked(&self, directory: &NodeRef, name: &[u8], node: &NodeRef) {
        if self.any() {
            self.of_itself(node, flag::ATTRIB);
            self.of_name(directory, name, flag::CREATE, 0);
        }
    }

    /// A name of a file is gone.
    pub fn unlinked(&self, directory: &NodeRef, name: &[u8], node: &NodeRef) {
        if self.any() {
            self.lost_name(node);
            self.of_name(directory, name, flag::DELETE | kind(node), 0);
        }
    }

    /// A name of a file that nobody has in use is gone.
    pub fn unlinked_unknown(&self, directory: &NodeRef, name: &[u8]) {
        if self.any() {
            self.of_name(directory, name, flag::DELETE, 0);
        }
    }

    fn lost_name(&self, node: &NodeRef) {
        if !node.is_directory() {
            self.of_itself(node, flag::ATTRIB);
        }
        self.end_if_gone(node);
    }

    /// Ends the watches of a file that has neither a name nor an open file.
    pub fn end_if_gone(&self, node: &NodeRef) {
        if !node.is_unlinked() || node.leases().is_open() {
            return;
        }
        self.of_itself(node, flag::DELETE_SELF);
        self.of_node(node).iter().for_each(|watch| self.end(watch));
    }

    /// A file was moved, perhaps over another one.
    pub fn moved(&self, from: (&NodeRef, &[u8]), to: (&NodeRef, &[u8]), node: &NodeRef, replaced: Option<&NodeRef>) {
        if !self.any() {
            return;
        }
        let cookie = self.next_cookie();
        self.of_name(from.0, from.1, flag::MOVED_FROM | kind(node), cookie);
        self.of_name(to.0, to.1, flag::MOVED_TO | kind(node), cookie);
        if let Some(replaced) = replaced.filter(|replaced| !replaced.is_directory()) {
            self.of_itself(replaced, flag::ATTRIB);
        }
        self.of_itself(node, flag::MOVE_SELF);
        if let Some(replaced) = replaced {
            self.end_if_gone(replaced);
        }
    }

    /// Directories were renamed: corrects their paths. Without room for a new one the watch hears no more of what is in the directory, and all
    /// are told that events may be lost.
    pub fn move_paths(&self, renamed: impl Fn(&[u8]) -> Option<Vec<u8>>) {
        if self.try_move_paths(renamed).is_err() {
            self.lost_events();
        }
    }

    fn try_move_paths(&self, renamed: impl Fn(&[u8]) -> Option<Vec<u8>>) -> Result<(), Errno> {
        let mut concerned = Vec::new();
        for old in self.paths.borrow().keys() {
            if let Some(new) = renamed(old) {
                concerned.try_push((copied(old)?, new))?;
            }
        }
        // All are taken before any is entered: an exchange renames each to what the other was.
        let mut lists = Vec::new();
        lists.try_make_room(concerned.len())?;
        for (old, new) in concerned {
            let list = self.paths.borrow_mut().remove(&old).unwrap_or_default();
            lists.try_push((list, new))?;
        }
        for (list, new) in lists {
            for watch in list {
                self.enter_path(watch, &new)?;
            }
        }
        Ok(())
    }

    fn enter_path(&self, watch: Rc<Watch>, path: &[u8]) -> Result<(), Errno> {
        let text = self.store.put_text(path, watch.record.get().user)?;
        self.store.release_text(watch.record.get().path);
        watch.record.update(|record| record.path = text);
        let name = copied(path)?;
        self.paths.borrow_mut().entry(name).or_default().try_push(watch)
    }

    /// Tells every instance that it may have lost events.
    pub fn lost_events(&self) {
        let nodes = self.nodes.borrow();
        nodes.values().flatten().filter_map(|watch| watch.instance.upgrade()).for_each(|one| one.overflow());
    }

    /// Nodes of a mount that only watches keep in use, and watches of its root.
    pub fn holds(&self, mount: &Rc<Mount>, root: &NodeRef) -> (usize, usize) {
        let nodes = self.nodes.borrow();
        let (mut alone, mut of_root) = (0, 0);
        for list in nodes.range((mount.device(), 0)..=(mount.device(), u64::MAX)).map(|(_, list)| list) {
            let mut through_it = list.iter().filter(|watch| Rc::ptr_eq(watch.node.mount(), mount));
            let Some(node) = through_it.next().map(|watch| &watch.node) else { continue };
            let watches = 1 + through_it.count();
            if Rc::ptr_eq(node, root) {
                of_root = watches;
            } else if Rc::strong_count(node) == watches {
                alone += 1;
            }
        }
        (alone, of_root)
    }

    /// A mount is taken out of the tree.
    pub fn unmounted(&self, mount: &Rc<Mount>) {
        while let Some(watch) = self.first_on(mount) {
            if let Some(instance) = watch.instance.upgrade() {
                instance.push(watch.record.get().descriptor, flag::UNMOUNT, 0, b"");
            }
            self.end(&watch);
        }
    }

    fn first_on(&self, mount: &Rc<Mount>) -> Option<Rc<Watch>> {
        let nodes = self.nodes.borrow();
        let lists = nodes.range((mount.device(), 0)..=(mount.device(), u64::MAX));
        lists.flat_map(|(_, list)| list).find(|watch| Rc::ptr_eq(watch.node.mount(), mount)).cloned()
    }
}

impl Watch {
    fn is_of(&self, instance: &Rc<Inotify>) -> bool {
        self.instance.upgrade().is_some_and(|own| Rc::ptr_eq(&own, instance))
    }
}

fn kind(node: &NodeRef) -> u32 {
    if node.is_directory() { flag::ISDIR } else { 0 }
}
