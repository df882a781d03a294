//! Open files: what descriptors refer to, shared by everybody who got them by dup, fork or exec.
//!
//! The last descriptor's end, wherever it happens, leaves a note in [`Closing`]; `sweep` acts on it when no handler is running
//! (a pipe's peers learn of it, a device is closed, locks are released).

pub mod block;
pub mod timer;

use crate::{
    events::Watchers,
    files::vnode::NodeRef,
    keep::{
        Store, Text,
        records::{FileRecord, Kind, NodeRecord},
    },
    mounts::Shared,
    objects::timer::Timer,
    peers::Service,
    pipes::Pipe,
    queues::Queue,
    sockets::Socket,
};
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
    /// A message queue.
    Queue(Rc<Queue>),
    /// A timer.
    Timer(Rc<Timer>),
    /// One end of a pair of sockets.
    Socket(Rc<Socket>),
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
    /// Where the next read or write goes; in directories the file system's own mark. While transfers are under way it is
    /// where they will end if all goes well; see [`OpenFile::begin_transfer`].
    pub position: Cell<u64>,
    /// Canonical path it was opened by; of a pipe its name.
    pub path: RefCell<Vec<u8>>,
    /// A number of its own: owner of its flock locks.
    pub number: u64,
    /// flock was called on it.
    pub flocked: Cell<bool>,
    /// Its place in preserved memory.
    pub record: u16,
    saved_path: Cell<Text>,
    /// Transfers under way that move the position.
    transfers: Cell<u32>,
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

/// Notes of open files that have ended, and what new ones need.
#[derive(Debug)]
pub struct Closing {
    /// Preserved memory.
    pub store: Rc<Store>,
    notes: RefCell<Vec<Closed>>,
    next_number: Cell<u64>,
    shared: Rc<Shared>,
}

impl Closing {
    /// Nothing has ended. Numbers begin above `first_number`, which no predecessor has reached.
    pub fn new(store: Rc<Store>, first_number: u64, shared: Rc<Shared>) -> Closing {
        Closing { store, notes: RefCell::default(), next_number: Cell::new(first_number), shared }
    }

    /// Notes an end.
    pub fn add(&self, note: Closed) {
        self.notes.borrow_mut().push(note);
        self.shared.wants_sweep.set(true);
    }

    fn note_end(&self, object: &Object) {
        let note = match object {
            Object::Pipe { pipe, reads, writes, .. } => {
                Closed::Pipe { pipe: pipe.clone(), reads: *reads, writes: *writes }
            }
            Object::Device { service, minor, .. } => Closed::Device { service: *service, minor: *minor },
            Object::Socket(socket) => return socket.shut_down(self, true, true),
            _ => return,
        };
        self.add(note);
    }

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

impl Object {
    fn node(&self) -> Option<&NodeRef> {
        match self {
            Object::Node(node) | Object::Null(node) | Object::Path(node) => Some(node),
            Object::Device { node, .. } | Object::Block { node, .. } => Some(node),
            Object::Pipe { node, .. } => node.as_ref(),
            Object::Queue(_) | Object::Timer(_) | Object::Socket(_) => None,
        }
    }

    /// What tells of changes of what it is ready for; nothing for devices, and what is always ready.
    pub fn watchers(&self) -> impl Iterator<Item = &Watchers> {
        let (one, other) = match self {
            Object::Pipe { pipe, .. } => (Some(&pipe.watchers), None),
            Object::Queue(queue) => (Some(&queue.watchers), None),
            Object::Timer(timer) => (Some(&timer.watchers), None),
            Object::Socket(socket) => (Some(&socket.incoming.watchers), Some(&socket.outgoing.watchers)),
            _ => (None, None),
        };
        one.into_iter().chain(other)
    }

    fn kind(&self) -> Kind {
        match self {
            Object::Node(_) => Kind::Node,
            Object::Null(_) => Kind::Null,
            Object::Path(_) => Kind::Path,
            Object::Device { service, minor, .. } => {
                Kind::Device { service: service.slot() as u16, minor: *minor as u32 }
            }
            Object::Block { service, minor, bytes, .. } => {
                Kind::Block { service: service.slot() as u16, minor: *minor as u32, bytes: *bytes }
            }
            Object::Pipe { pipe, inode, reads, writes, .. } => {
                Kind::Pipe { pipe: pipe.record(), inode: *inode, reads: *reads, writes: *writes }
            }
            Object::Queue(queue) => Kind::Queue { queue: queue.place },
            Object::Timer(timer) => Kind::Timer { timer: timer.place },
            Object::Socket(socket) => Kind::Socket {
                incoming: socket.incoming.record(),
                outgoing: socket.outgoing.record(),
                inode: socket.inode,
                reads: socket.reads(),
                writes: socket.writes(),
            },
        }
    }
}

impl OpenFile {
    /// A new open file at position 0. `ENFILE`: there are too many; what opening has done is undone at the next sweep.
    pub fn new(closing: &Rc<Closing>, object: Object, flags: u32, path: Vec<u8>) -> Result<Rc<OpenFile>, Errno> {
        let number = closing.next_number();
        let node = object.node().map_or(NodeRecord::NONE, |node| node.record());
        let record = FileRecord { kind: object.kind(), node, number, path: Text::EMPTY };
        let (record, saved_path) =
            closing.store.new_file(&record, flags, &path).inspect_err(|_| closing.note_end(&object))?;
        Ok(Rc::new(OpenFile {
            object,
            flags: Cell::new(flags),
            position: Cell::new(0),
            path: RefCell::new(path),
            number,
            flocked: Cell::new(false),
            record,
            saved_path: Cell::new(saved_path),
            transfers: Cell::new(0),
            closing: closing.clone(),
        }))
    }

    /// An open file as a predecessor has left it.
    pub fn restore(
        closing: &Rc<Closing>,
        object: Object,
        place: u16,
        (record, position, flags): (FileRecord, u64, u32),
    ) -> Rc<OpenFile> {
        Rc::new(OpenFile {
            object,
            flags: Cell::new(flags),
            position: Cell::new(position),
            path: RefCell::new(closing.store.text(record.path)),
            number: record.number,
            flocked: Cell::new(false),
            record: place,
            saved_path: Cell::new(record.path),
            transfers: Cell::new(0),
            closing: closing.clone(),
        })
    }

    /// Preserves what has changed of its object.
    pub fn save_object(&self) {
        self.closing.store.set_kind(self.record, self.object.kind());
    }

    /// Sets the status flags.
    pub fn set_flags(&self, flags: u32) {
        self.flags.set(flags);
        self.closing.store.set_flags(self.record, flags);
    }

    /// Sets the position.
    pub fn set_position(&self, position: u64) {
        self.position.set(position);
        self.closing.store.set_position(self.record, position);
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
        self.closing.store.set_position(self.record, saved);
    }

    /// Changes the path, after a directory was renamed. Without room for it, a restart would bring the old one back.
    pub fn set_path(&self, path: Vec<u8>) {
        if let Ok(text) = self.closing.store.put_text(&path) {
            self.closing.store.release_text(self.saved_path.replace(text));
            self.closing.store.set_path(self.record, text);
        }
        self.path.replace(path);
    }

    /// The node it is of; pipes have none. O_PATH files have.
    pub fn node(&self) -> Option<&NodeRef> {
        self.object.node()
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
        self.closing.store.release_file(self.record, self.saved_path.get());
        self.closing.note_end(&self.object);
        if let (true, Some(node)) = (self.flocked.get(), self.node()) {
            self.closing.add(Closed::Flock { node: node.clone(), number: self.number });
        }
    }
}
