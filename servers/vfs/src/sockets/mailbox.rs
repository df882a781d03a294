//! Where a datagram socket receives: a pipe of messages, which any socket may send to, or only the one that it is connected to.

use super::Socket;
use crate::{
    base::closing::{Closed, Closing},
    events::{
        Watch, Watchers,
        poll::{ANY, POLLHUP, POLLIN, POLLOUT, POLLRDNORM, POLLWRNORM},
    },
    pipes::Pipe,
    sockets::connection::POLLRDHUP,
};
use abi::Errno;
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
    room: Rc<Room>,
}

/// Those who wait for room in the peer, whoever that is when there is some.
#[derive(Debug, Default)]
struct Room(Watchers);

impl Watch for Room {
    fn changed(self: Rc<Self>, events: u32) {
        self.0.fire_for(events);
    }

    fn height(&self) -> usize {
        self.0.height()
    }
}

impl Mailbox {
    /// One that receives from a pipe, of which it holds both ends, so that the pipe has no end of its own.
    pub fn new(incoming: Rc<Pipe>, reads: bool, writes: bool) -> Mailbox {
        incoming.open(reads, true);
        let (reads, writes) = (Cell::new(reads), Cell::new(writes));
        let (closed, peer) = (Cell::new(false), RefCell::default());
        Mailbox { incoming, reads, writes, closed, peer, room: Rc::default() }
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

    /// Connects it. `ENOMEM`.
    pub fn connect(&self, peer: Weak<Socket>) -> Result<(), Errno> {
        if self.peer.borrow().as_ref().is_some_and(|old| old.ptr_eq(&peer)) {
            return Ok(());
        }
        if let Some(other) = peer.upgrade().as_ref().and_then(|peer| peer.mailbox()) {
            let room: Rc<dyn Watch> = self.room.clone();
            other.incoming.watchers.add_watch(&room, POLLOUT | POLLWRNORM)?;
        }
        self.disconnect();
        self.peer.replace(Some(peer));
        Ok(())
    }

    /// Ends its connection.
    pub fn disconnect(&self) {
        let Some(old) = self.peer.take().and_then(|peer| peer.upgrade()) else { return };
        if let Some(other) = old.mailbox() {
            let room: Rc<dyn Watch> = self.room.clone();
            other.incoming.watchers.remove_watch(&room);
        }
        self.room.0.fire_for(POLLOUT | POLLWRNORM);
    }

    /// Whether a message to its peer, if it has one that exists, would not wait.
    fn has_room(&self) -> bool {
        let peer = self.peer.borrow().as_ref().and_then(Weak::upgrade);
        let full = |mailbox: &Mailbox| !mailbox.is_closed() && mailbox.incoming.is_full();
        !peer.as_ref().and_then(|peer| peer.mailbox()).is_some_and(full)
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
        self.disconnect();
        closing.add(Closed::Pipe { pipe: self.incoming.clone(), reads: self.reads.replace(false), writes: true });
    }

    /// Ready events (Linux POLL*).
    pub fn ready(&self) -> u32 {
        let mut ready = if self.has_room() { POLLOUT | POLLWRNORM } else { 0 };
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
        [Some((&self.incoming.watchers, ANY)), Some((&self.room.0, POLLOUT | POLLWRNORM))]
    }
}
