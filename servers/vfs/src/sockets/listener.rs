//! The connections that wait in a listening socket until they are accepted.
//!
//! Their sockets' records form a list, from the listening one's `first` over each one's `next`.

use super::Socket;
use crate::events::Watchers;
use abi::Errno;
use alloc::{collections::VecDeque, rc::Rc};
use core::cell::{Cell, RefCell};
use sys::fallible::TryQueue;

/// See the head of the file.
#[derive(Debug, Default)]
pub struct Listener {
    waiting: RefCell<VecDeque<Rc<Socket>>>,
    watchers: Watchers,
    closed: Cell<bool>,
}

impl Listener {
    /// Makes room for one more. `ENOMEM`.
    pub fn make_room(&self) -> Result<(), Errno> {
        self.waiting.borrow_mut().try_make_room(1)
    }

    /// Adds one, for which there is room.
    #[expect(clippy::disallowed_methods, reason = "room was made")]
    pub fn add(&self, socket: Rc<Socket>) {
        self.waiting.borrow_mut().push_back(socket);
        self.watchers.fire();
    }

    /// Adds one that a predecessor has left.
    #[expect(clippy::disallowed_methods, reason = "a successor needs no more than its predecessor had")]
    pub fn restore(&self, socket: Rc<Socket>) {
        self.waiting.borrow_mut().push_back(socket);
    }

    /// The last one.
    pub fn last(&self) -> Option<Rc<Socket>> {
        self.waiting.borrow().back().cloned()
    }

    /// Takes the first one.
    pub fn take(&self) -> Option<Rc<Socket>> {
        self.waiting.borrow_mut().pop_front()
    }

    /// Looks at each.
    pub fn for_each(&self, look: impl FnMut(&Rc<Socket>)) {
        self.waiting.borrow().iter().for_each(look);
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.waiting.borrow().len()
    }

    /// Takes all of them; there will be no others.
    pub fn close(&self) -> VecDeque<Rc<Socket>> {
        self.closed.set(true);
        self.waiting.take()
    }

    /// The socket is closed.
    pub fn is_closed(&self) -> bool {
        self.closed.get()
    }

    /// Those who wait for a connection, or for room.
    pub fn watchers(&self) -> &Watchers {
        &self.watchers
    }
}
