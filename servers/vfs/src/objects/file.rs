//! Open files: what descriptors refer to, shared by everybody who got them by dup, fork or exec.
//!
//! Invariant: what is preserved says the same as the fields here, but for the position while a transfer is in progress.

use super::{AnyKind, AnyObject, Kind, Object};
use crate::{
    base::closing::{Closed, Closing},
    files::{leases::FileOwner, vnode::NodeRef, watches::flag},
    keep::{
        Kept, Text,
        records::{FileRecord, NodeRecord},
    },
    pathname,
};
use abi::Errno;
use alloc::{rc::Rc, vec::Vec};
use core::cell::{Cell, Ref, RefCell};

/// Access mode bits.
pub const O_ACCMODE: u32 = 3;
/// Read only.
pub const O_RDONLY: u32 = 0;
/// Write only.
pub const O_WRONLY: u32 = 1;
/// Read and write.
pub const O_RDWR: u32 = 2;
/// Create.
pub const O_CREAT: u32 = 0x40;
/// Only if it is new.
pub const O_EXCL: u32 = 0x80;
/// Empty it.
pub const O_TRUNC: u32 = 0x200;
/// Write at the end.
pub const O_APPEND: u32 = 0x400;
/// Do not wait.
pub const O_NONBLOCK: u32 = 0x800;
/// Write through (data).
pub const O_DSYNC: u32 = 0x1000;
/// Signal when ready: accepted and kept, no more.
pub const O_ASYNC: u32 = 0x2000;
/// Bypass caches: accepted and kept, no more.
pub const O_DIRECT: u32 = 0x4000;
/// What 32-bit programs need for large files; always in force.
pub const O_LARGEFILE: u32 = 0x8000;
/// Only directories.
pub const O_DIRECTORY: u32 = 0x10000;
/// Not through a link as last component.
pub const O_NOFOLLOW: u32 = 0x20000;
/// No access times.
pub const O_NOATIME: u32 = 0x40000;
/// Close at exec.
pub const O_CLOEXEC: u32 = 0x80000;
/// Only a place in the tree.
pub const O_PATH: u32 = 0x20_0000;
/// The bit of O_TMPFILE that is its own.
pub const O_TMPFILE: u32 = 0x40_0000;
/// What `F_SETFL` may change at any file; `O_ASYNC` only where that has an effect.
pub const CHANGEABLE: u32 = O_APPEND | O_NONBLOCK | O_DIRECT | O_NOATIME;

/// An open file as a predecessor has left it: record, value (see [`Object::value`]), status flags.
pub type FoundFile = (FileRecord, u64, u32);

/// One open file.
#[derive(Debug)]
pub struct OpenFile {
    /// What is preserved of it besides position and flags.
    record: Kept<FileRecord>,
    flags: Cell<u32>,
    /// Where the next read or write goes; in directories the file system's own mark. While transfers are in progress it is
    /// where they will end if all goes well; see [`OpenFile::begin_transfer`].
    position: Cell<u64>,
    path: RefCell<Vec<u8>>,
    locked: Cell<bool>,
    /// Its owner for signals, and its lease; `None`: it has neither.
    owner: RefCell<Option<Rc<FileOwner>>>,
    /// Transfers in progress that move the position.
    transfers: Cell<u32>,
    closing: Rc<Closing>,
    object: AnyObject,
}

impl OpenFile {
    /// A new open file of a user at position 0, with its canonical path. `ENFILE`: there are too many; what opening has done is undone at the next sweep.
    pub fn new(
        closing: &Rc<Closing>,
        user: u32,
        object: impl Kind,
        flags: u32,
        mut path: Vec<u8>,
    ) -> Result<Rc<OpenFile>, Errno> {
        pathname::keep(&mut path);
        let number = closing.next_number();
        let node = object.node().map_or(NodeRecord::NONE, |node| node.record());
        let record = FileRecord { object: object.record(), node, number, path: Text::EMPTY, user };
        object.hold(user).inspect_err(|_| object.close(closing))?;
        closing.open().inspect_err(|_| object.close(closing))?;
        let value = object.value();
        let record = closing.store().new_file(record, (value, flags), &path).inspect_err(|_| {
            object.close(closing);
            closing.closed();
        })?;
        Ok(Rc::new(OpenFile {
            record,
            flags: Cell::new(flags),
            position: Cell::new(0),
            path: RefCell::new(path),
            locked: Cell::new(false),
            owner: RefCell::new(None),
            transfers: Cell::new(0),
            closing: closing.clone(),
            object: object.into(),
        }))
    }

    /// An open file as a predecessor has left it.
    pub fn restore(
        closing: &Rc<Closing>,
        object: impl Kind,
        place: u32,
        (record, value, flags): FoundFile,
    ) -> Rc<OpenFile> {
        let position = object.position_in(value);
        // Whoever has more than his share now, in another order, keeps what he has.
        let _ = object.hold(record.user);
        let path = closing.store().text(record.path);
        closing.open().expect("a successor needs no more than its predecessor had");
        Rc::new(OpenFile {
            record: Kept::new(closing.store(), place, record),
            flags: Cell::new(flags),
            position: Cell::new(position),
            path: RefCell::new(path),
            locked: Cell::new(false),
            owner: RefCell::new(None),
            transfers: Cell::new(0),
            closing: closing.clone(),
            object: object.into(),
        })
    }

    /// Its object.
    pub fn any(&self) -> &dyn Object {
        &*self.object
    }

    /// Its object, if it is of this kind.
    pub fn object<K: AnyKind>(&self) -> Option<&K> {
        K::of(&self.object)
    }

    /// A number of its own: owner of its flock locks.
    pub fn number(&self) -> u64 {
        self.record.get().number
    }

    /// Its place in preserved memory.
    pub fn place(&self) -> u32 {
        self.record.place()
    }

    /// Canonical path it was opened by; of a pipe its name.
    pub fn path(&self) -> Ref<'_, Vec<u8>> {
        self.path.borrow()
    }

    /// It owns locks (flock, `F_OFD_SETLK`) or a lease: they are released with it.
    pub fn set_locked(&self) {
        self.locked.set(true);
    }

    /// Its owner for signals, and its lease; `None`: it has neither.
    pub fn owner(&self) -> Option<Rc<FileOwner>> {
        self.owner.borrow().clone()
    }

    /// [`OpenFile::owner`], made and charged to a user if there is none yet. `ENOMEM`: no room.
    pub fn owner_for(&self, user: u32) -> Result<Rc<FileOwner>, Errno> {
        if let Some(known) = self.owner() {
            return Ok(known);
        }
        let owner = FileOwner::new(self.record.store(), self.number(), self.place(), user)?;
        self.set_owner(owner.clone());
        Ok(owner)
    }

    /// Sets its owner for signals.
    pub fn set_owner(&self, owner: Rc<FileOwner>) {
        self.owner.replace(Some(owner));
    }

    /// Frees the record of an owner that says nothing any more.
    pub fn drop_unused_owner(&self) {
        let unused = self.owner.borrow_mut().take_if(|owner| owner.is_unused());
        drop(unused);
    }

    /// Preserves what has changed of its object.
    #[inline(never)]
    pub fn save_object(&self) {
        let record = self.object.record();
        self.record.update(|file| file.object = record);
    }

    /// Preserves what its object keeps in place of a position.
    #[inline]
    pub fn set_value(&self, value: u64) {
        self.record.store().set_value(self.place(), value);
    }

    /// Access mode and status flags.
    pub fn flags(&self) -> u32 {
        self.flags.get()
    }

    /// Sets the status flags.
    pub fn set_flags(&self, flags: u32) {
        self.flags.set(flags);
        self.record.store().set_flags(self.place(), flags);
    }

    /// Where the next read or write goes.
    pub fn position(&self) -> u64 {
        self.position.get()
    }

    /// Sets the position. Only for kinds that have one: it is preserved where others have their value.
    #[inline(never)]
    pub fn set_position(&self, position: u64) {
        self.position.set(position);
        self.record.store().set_position(self.place(), position);
    }

    /// As [`OpenFile::set_position`], for a call that may be made again, and of which nothing is noted.
    #[inline]
    pub fn set_position_again(&self, position: u64) {
        self.position.set(position);
        self.record.store().set_position_again(self.place(), position);
    }

    /// A transfer begins that will leave the position at `expected`. Others may go on from there meanwhile; but until
    /// [`OpenFile::end_transfer`], the position that is preserved is the one that the transfer, done again, begins at.
    pub fn begin_transfer(&self, expected: u64) {
        self.transfers.set(self.transfers.get() + 1);
        self.position.set(expected);
    }

    /// The transfer that was to end at `expected` has ended at `end`: the last thing a call does.
    pub fn end_transfer(&self, expected: u64, end: u64) {
        self.transfers.set(self.transfers.get() - 1);
        if self.position.get() == expected {
            self.position.set(end);
        }
        let saved = if self.transfers.get() == 0 { self.position.get() } else { end };
        self.record.store().set_position(self.place(), saved);
    }

    /// Changes the path, after a directory was renamed. Without room for it, a restart would bring the old one back.
    pub fn set_path(&self, path: Vec<u8>) {
        let store = self.record.store();
        if let Ok(text) = store.put_text(&path, self.record.get().user) {
            store.release_text(self.record.get().path);
            self.record.update(|record| record.path = text);
        }
        self.path.replace(path);
    }

    /// Its vnode. Pipes have none; O_PATH files have one.
    pub fn node(&self) -> Option<&NodeRef> {
        self.object.node()
    }

    /// Is open for reading.
    pub fn reads(&self) -> bool {
        matches!(self.flags.get() & (O_ACCMODE | O_PATH), O_RDONLY | O_RDWR)
    }

    /// Is open for writing.
    pub fn writes(&self) -> bool {
        matches!(self.flags.get() & (O_ACCMODE | O_PATH), O_WRONLY | O_RDWR)
    }

    /// Calls do not wait.
    pub fn nonblocking(&self) -> bool {
        self.flags.get() & O_NONBLOCK != 0
    }

    fn is_path(&self) -> bool {
        self.flags.get() & O_PATH != 0
    }

    /// `EBADF` for one opened with O_PATH: almost no call may use it.
    pub fn usable(&self) -> Result<(), Errno> {
        if self.is_path() { Err(Errno::EBADF) } else { Ok(()) }
    }

    /// The error of a call with a position that fails with `error`: that an object has no positions is found first, as on Linux.
    #[cold]
    pub fn error_at(&self, at: Option<u64>, error: Errno) -> Errno {
        let lacks_positions = at.is_some() && !self.is_path() && !self.object.has_positions();
        if lacks_positions { Errno::ESPIPE } else { error }
    }

    /// `EBADF` unless it is open for reading.
    pub fn readable(&self) -> Result<(), Errno> {
        if self.reads() { Ok(()) } else { Err(Errno::EBADF) }
    }

    /// `EBADF` unless it is open for writing.
    pub fn writable(&self) -> Result<(), Errno> {
        if self.writes() { Ok(()) } else { Err(Errno::EBADF) }
    }
}

impl Drop for OpenFile {
    fn drop(&mut self) {
        self.object.close(&self.closing);
        if self.closing.watches().any()
            && let (false, Some(node)) = (self.flags.get() & O_PATH != 0, self.object.node())
        {
            let writes = matches!(self.flags.get() & O_ACCMODE, O_WRONLY | O_RDWR);
            let mask = if writes { flag::CLOSE_WRITE } else { flag::CLOSE_NOWRITE };
            self.closing.add(Closed::Watched { node: node.clone(), path: self.path.take(), mask });
        }
        if let (true, Some(node)) = (self.locked.get(), self.object.node()) {
            self.closing.add(Closed::Locks { node: node.clone(), number: self.record.get().number });
        }
        self.closing.closed();
    }
}
