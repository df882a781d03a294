//! Where a datagram socket receives: a pipe of messages, which any socket may send to, or only the one that it is connected to.

use super::Socket;
use crate::{
    base::closing::{Closed, Closing},
    events::{
        Watchers,
        poll::{ANY, POLLHUP, POLLIN, POLLOUT, POLLRDNORM, POLLWRNORM},
    },
    pipes::Pipe,
    sockets::connection::POLLRDHUP,
};
use alloc::rc::{Rc, Weak};
use core::cell::{Cell, RefCell};

/// See the head of the file.
#[derive(Debug)]
pub struct Mailbox {
    incoming: Rc<Pipe>,
    reads: Cell<bool>,
    writes: Cell<bool>,
    closed: Cell<bool>,
    /// The socket that it is connected to.
    peer: RefCell<Option<Weak<Socket>>>,
}

impl Mailbox {
    /// One that receives from a pipe, of which it holds both ends, so that the pipe has no end of its own.
    pub fn new(incoming: Rc<Pipe>, reads: bool, writes: bool) -> Mailbox {
        incoming.open(reads, true);
        let (reads, writes) = (Cell::new(reads), Cell::new(writes));
        Mailbox { incoming, reads, writes, closed: Cell::new(false), peer: RefCell::default() }
    }

    /// What it receives.
    pub fn incoming(&self) -> &Rc<Pipe> {
        &self.incoming
    }

    /// Whether there will be nothing to receive: it is shut down, and what had come before is read.
    pub fn is_deaf(&self) -> bool {
        !self.reads.get() && self.incoming.bytes() == 0
    }

    /// Whether it may send.
    pub fn writes(&self) -> bool {
        self.writes.get()
    }

    /// Whether its socket is closed.
    pub fn is_closed(&self) -> bool {
        self.closed.get()
    }

    /// The socket that it is connected to, which may have ended. `None`: none.
    pub fn peer(&self) -> Option<Weak<Socket>> {
        self.peer.borrow().clone()
    }

    /// Connects it, or ends its connection.
    pub fn set_peer(&self, peer: Option<Weak<Socket>>) {
        self.peer.replace(peer);
    }

    /// Whether this socket may send to it.
    pub fn admits(&self, sender: &Socket) -> bool {
        self.peer.borrow().as_ref().is_none_or(|peer| core::ptr::eq(peer.as_ptr(), sender))
    }

    /// Stops receiving, sending or both; what that ends is noted for the next sweep.
    pub fn shut_down(&self, closing: &Closing, reads: bool, writes: bool) {
        if reads && self.reads.replace(false) {
            closing.add(Closed::Pipe { pipe: self.incoming.clone(), reads: true, writes: false });
        }
        self.writes.set(self.writes.get() && !writes);
        self.incoming.watchers.fire();
    }

    /// Ends it at the next sweep.
    pub fn close(&self, closing: &Closing) {
        if self.closed.replace(true) {
            return;
        }
        self.peer.take();
        closing.add(Closed::Pipe { pipe: self.incoming.clone(), reads: self.reads.replace(false), writes: true });
    }

    /// Ready events (Linux POLL*). It may send whatever room its peer has: only the peer's pipe knows.
    pub fn ready(&self) -> u32 {
        let mut ready = POLLOUT | POLLWRNORM;
        if !self.reads.get() || self.incoming.bytes() > 0 {
            ready |= POLLIN | POLLRDNORM;
        }
        if !self.reads.get() {
            ready |= POLLRDHUP;
        }
        if !self.reads.get() && !self.writes.get() {
            ready |= POLLHUP;
        }
        ready
    }

    /// Fire when [`Mailbox::ready`] may have changed.
    pub fn watchers(&self) -> [Option<(&Watchers, u32)>; 2] {
        [Some((&self.incoming.watchers, ANY)), None]
    }
}
