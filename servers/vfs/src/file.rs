//! Open files: what descriptors refer to, shared by everybody who got them by dup, fork or exec.
//!
//! The last descriptor's end, wherever it happens, leaves a note in [`Closing`]; `sweep` acts on it when no handler is running
//! (a pipe's peers learn of it, a device is closed, locks are released).

use crate::{peers::Service, pipe::Pipe, vnode::NodeRef};
use abi::Errno;
use alloc::{rc::Rc, vec::Vec};
use core::cell::{Cell, RefCell};

/// Access mode bits.
pub const O_ACCMODE: u32 = 3;
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
/// What `F_SETFL` may change.
pub const CHANGEABLE: u32 = O_APPEND | O_NONBLOCK | O_ASYNC | O_DIRECT | O_NOATIME;

/// What an open file is of.
#[derive(Debug)]
pub enum Object {
    /// A regular file or directory.
    Node(NodeRef),
    /// /dev/null, which needs no driver.
    Null(NodeRef),
    /// A character device.
    Device { node: NodeRef, service: Service, minor: u64 },
    /// A block device.
    Block { node: NodeRef, service: Service, minor: u64, bytes: u64 },
    /// An end of a pipe or FIFO (whose node it then has); `inode` is what fstat tells of a pipe.
    Pipe { pipe: Rc<Pipe>, node: Option<NodeRef>, inode: u64, reads: bool, writes: bool },
    /// Only a place (O_PATH).
    Path(NodeRef),
}

/// One open file.
#[derive(Debug)]
pub struct OpenFile {
    /// What it is of.
    pub object: Object,
    /// Access mode and status flags.
    pub flags: Cell<u32>,
    /// Where the next read or write goes; in directories the file system's own mark.
    pub position: Cell<u64>,
    /// Canonical path it was opened by; empty for pipes.
    pub path: RefCell<Vec<u8>>,
    /// A number of its own: owner of its flock locks.
    pub number: u64,
    /// flock was called on it.
    pub flocked: Cell<bool>,
    closing: Rc<Closing>,
}

/// What is left to do for an open file that no descriptor refers to any more.
#[derive(Debug)]
pub enum Closed {
    /// An end of a pipe.
    Pipe { pipe: Rc<Pipe>, reads: bool, writes: bool },
    /// A character device.
    Device { service: Service, minor: u64 },
    /// Locks of the open file with this number.
    Flock { node: NodeRef, number: u64 },
}

/// Notes of open files that have ended.
#[derive(Debug, Default)]
pub struct Closing {
    notes: RefCell<Vec<Closed>>,
    next_number: Cell<u64>,
}

impl Closing {
    /// Takes the oldest note.
    pub fn take(&self) -> Option<Closed> {
        let mut notes = self.notes.borrow_mut();
        if notes.is_empty() { None } else { Some(notes.remove(0)) }
    }

    /// A number that no open file or descriptor table has had.
    pub fn next_number(&self) -> u64 {
        let number = self.next_number.get() + 1;
        self.next_number.set(number);
        number
    }
}

impl OpenFile {
    /// A new open file at position 0.
    pub fn new(closing: &Rc<Closing>, object: Object, flags: u32, path: Vec<u8>) -> Rc<OpenFile> {
        Rc::new(OpenFile {
            object,
            flags: Cell::new(flags),
            position: Cell::new(0),
            path: RefCell::new(path),
            number: closing.next_number(),
            flocked: Cell::new(false),
            closing: closing.clone(),
        })
    }

    /// The node it is of; pipes have none. O_PATH files have.
    pub fn node(&self) -> Option<&NodeRef> {
        match &self.object {
            Object::Node(node) | Object::Null(node) | Object::Path(node) => Some(node),
            Object::Device { node, .. } | Object::Block { node, .. } => Some(node),
            Object::Pipe { node, .. } => node.as_ref(),
        }
    }

    /// Is open for reading.
    pub fn reads(&self) -> bool {
        self.flags.get() & O_ACCMODE != O_WRONLY && !self.is_path()
    }

    /// Is open for writing.
    pub fn writes(&self) -> bool {
        matches!(self.flags.get() & O_ACCMODE, O_WRONLY | O_RDWR) && !self.is_path()
    }

    /// Calls do not wait.
    pub fn nonblocking(&self) -> bool {
        self.flags.get() & O_NONBLOCK != 0
    }

    fn is_path(&self) -> bool {
        matches!(self.object, Object::Path(_))
    }

    /// `EBADF` for a mere place: almost no call may use it.
    pub fn usable(&self) -> Result<(), Errno> {
        if self.is_path() { Err(Errno::EBADF) } else { Ok(()) }
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
        let mut notes = self.closing.notes.borrow_mut();
        match &self.object {
            Object::Pipe { pipe, reads, writes, .. } => {
                notes.push(Closed::Pipe { pipe: pipe.clone(), reads: *reads, writes: *writes });
            }
            Object::Device { service, minor, .. } => notes.push(Closed::Device { service: *service, minor: *minor }),
            Object::Node(_) | Object::Null(_) | Object::Block { .. } | Object::Path(_) => {}
        }
        if let (true, Some(node)) = (self.flocked.get(), self.node()) {
            notes.push(Closed::Flock { node: node.clone(), number: self.number });
        }
    }
}
