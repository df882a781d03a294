//! What open files leave to do when their last descriptor ends, wherever that happens. `sweep` does it when no handler is running.

use crate::{
    events::Event,
    files::{Shared, vnode::NodeRef, watches::Watches},
    keep::Store,
    peers::Service,
    pipes::{Pipe, ancillary::Ancillary},
};
use abi::Errno;
use alloc::{collections::VecDeque, rc::Rc, vec::Vec};
use core::cell::{Cell, RefCell};
use sys::fallible::TryQueue;

/// What is left to do for an open file that no descriptor refers to any more.
#[derive(Debug)]
pub enum Closed {
    /// An end of a pipe: its peers learn of it.
    Pipe { pipe: Rc<Pipe>, reads: bool, writes: bool },
    /// A side of a connection: its peer gets the end. `ends`: whether it still receives and sends; `refused`: nobody has accepted it.
    Connection { incoming: Rc<Pipe>, outgoing: Rc<Pipe>, ends: (bool, bool), refused: bool },
    /// A character device is told.
    Device { service: Service, minor: u64 },
    /// Those who watch the file, or its directory, are told.
    Watched { node: NodeRef, path: Vec<u8>, mask: u32 },
    /// The locks and the lease of the open file with this number are released.
    Locks { node: NodeRef, number: u64 },
}

/// Notes that one open file leaves at most: two pipes of a socket, its locks, and the end for those who watch.
const NOTES: usize = 4;
/// Room for notes that [`Closing::trim`] leaves beyond what open files need.
const SPARE_NOTES: usize = 1024;

/// Notes of open files that have ended, and what new ones need.
#[derive(Debug)]
pub struct Closing {
    store: Rc<Store>,
    notes: RefCell<VecDeque<Closed>>,
    /// What went with bytes that nobody will read.
    unread: RefCell<VecDeque<VecDeque<Ancillary>>>,
    /// Fires when more than one turn's part of it is left.
    has_unread: Event,
    /// Open files.
    files: Cell<usize>,
    next_number: Cell<u64>,
    shared: Rc<Shared>,
    watches: Rc<Watches>,
}

impl Closing {
    /// Nothing has ended. Numbers begin above `first_number`, which no predecessor has reached.
    pub fn new(store: Rc<Store>, first_number: u64, shared: Rc<Shared>, watches: Rc<Watches>) -> Closing {
        Closing {
            store,
            notes: RefCell::default(),
            unread: RefCell::default(),
            has_unread: Event::default(),
            files: Cell::new(0),
            next_number: Cell::new(first_number),
            shared,
            watches,
        }
    }

    /// Preserved memory.
    pub fn store(&self) -> &Rc<Store> {
        &self.store
    }

    /// Watches of files.
    #[inline]
    pub fn watches(&self) -> &Rc<Watches> {
        &self.watches
    }

    /// Makes room for what one more open file leaves to do. `ENOMEM`.
    #[inline]
    pub fn open(&self) -> Result<(), Errno> {
        let files = self.files.get() + 1;
        self.notes.borrow_mut().try_make_room(files * NOTES)?;
        self.files.set(files);
        Ok(())
    }

    /// Frees the room for notes of open files that have ended, when it is most of all. Without memory for less it stays.
    pub fn trim(&self) {
        let (mut notes, needed) = (self.notes.borrow_mut(), self.files.get() * NOTES);
        let mut shorter = VecDeque::new();
        if notes.is_empty() && notes.capacity() > 2 * needed + SPARE_NOTES && shorter.try_make_room(needed).is_ok() {
            *notes = shorter;
        }
    }

    /// An open file has ended, after its notes.
    pub fn closed(&self) {
        self.files.set(self.files.get() - 1);
    }

    /// Notes an end.
    #[expect(clippy::disallowed_methods, reason = "room was made when the file was opened")]
    pub fn add(&self, note: Closed) {
        self.notes.borrow_mut().push_back(note);
        self.shared.ask_sweep();
    }

    /// Drops what went with bytes that nobody will read, soon: not at once, because what it consists of may end with it, and so on.
    #[expect(clippy::disallowed_methods, reason = "small, of a socket that has ended: from the heap's reserve")]
    pub fn discard(&self, unread: VecDeque<Ancillary>) {
        self.unread.borrow_mut().push_back(unread);
        self.shared.ask_sweep();
    }

    /// Drops as much of that as `most` allows, and counts it there.
    pub fn drop_unread(&self, most: &mut usize) {
        while *most > 0 {
            let mut unread = self.unread.borrow_mut();
            let Some(first) = unread.front_mut() else { return };
            let entry = first.pop_front();
            if first.is_empty() {
                unread.pop_front();
            }
            drop(unread);
            *most -= 1;
            drop(entry);
        }
        if !self.unread.borrow().is_empty() {
            self.has_unread.fire();
        }
    }

    /// Waits until there is more to drop than one turn does.
    pub async fn wait_for_unread(&self) {
        self.has_unread.wait().await;
    }

    /// Has the rest dropped by this turn.
    pub fn go_on(&self) {
        self.shared.ask_sweep();
    }

    /// Takes the oldest note.
    pub fn take(&self) -> Option<Closed> {
        self.notes.borrow_mut().pop_front()
    }

    /// A number that no open file or descriptor table has had.
    pub fn next_number(&self) -> u64 {
        let number = self.next_number.get() + 1;
        self.next_number.set(number);
        number
    }
}
