//! What open files leave to do when their last descriptor ends, wherever that happens. `sweep` does it when no handler is running.

use crate::{
    files::{mount::Shared, vnode::NodeRef},
    keep::Store,
    peers::Service,
    pipes::Pipe,
};
use alloc::{rc::Rc, vec::Vec};
use core::cell::{Cell, RefCell};

/// What is left to do for an open file that no descriptor refers to any more.
#[derive(Debug)]
pub enum Closed {
    /// An end of a pipe: its peers learn of it.
    Pipe { pipe: Rc<Pipe>, reads: bool, writes: bool },
    /// A character device is told.
    Device { service: Service, minor: u64 },
    /// The locks of the open file with this number are released.
    Flock { node: NodeRef, number: u64 },
}

/// Notes of open files that have ended, and what new ones need.
#[derive(Debug)]
pub struct Closing {
    store: Rc<Store>,
    notes: RefCell<Vec<Closed>>,
    next_number: Cell<u64>,
    shared: Rc<Shared>,
}

impl Closing {
    /// Nothing has ended. Numbers begin above `first_number`, which no predecessor has reached.
    pub fn new(store: Rc<Store>, first_number: u64, shared: Rc<Shared>) -> Closing {
        Closing { store, notes: RefCell::default(), next_number: Cell::new(first_number), shared }
    }

    /// Preserved memory.
    pub fn store(&self) -> &Rc<Store> {
        &self.store
    }

    /// Notes an end.
    pub fn add(&self, note: Closed) {
        self.notes.borrow_mut().push(note);
        self.shared.ask_sweep();
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
