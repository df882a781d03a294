//! One side of a connection: the reading end of one pipe and the writing end of another.

use crate::{
    base::closing::{Closed, Closing},
    events::{
        Watchers,
        poll::{OF_READERS, OF_WRITERS, POLLERR, POLLHUP, POLLIN, POLLOUT, POLLRDNORM, POLLWRNORM},
    },
    pipes::Pipe,
};
use alloc::rc::Rc;
use core::cell::Cell;

/// The peer sends no more.
pub const POLLRDHUP: u32 = 0x2000;

/// See the head of the file.
#[derive(Debug)]
pub struct Connection {
    incoming: Rc<Pipe>,
    outgoing: Rc<Pipe>,
    reads: Cell<bool>,
    writes: Cell<bool>,
}

impl Connection {
    /// A side between two pipes, in which it takes its ends, those that are not shut down.
    pub fn new(incoming: Rc<Pipe>, outgoing: Rc<Pipe>, reads: bool, writes: bool) -> Connection {
        incoming.open(reads, false);
        outgoing.open(false, writes);
        Connection { incoming, outgoing, reads: Cell::new(reads), writes: Cell::new(writes) }
    }

    /// What it receives.
    #[inline]
    pub fn incoming(&self) -> &Rc<Pipe> {
        &self.incoming
    }

    /// What it sends.
    #[inline]
    pub fn outgoing(&self) -> &Rc<Pipe> {
        &self.outgoing
    }

    /// Whether there will be nothing to receive: it is shut down, and what had come before is read.
    #[inline]
    pub fn is_deaf(&self) -> bool {
        !self.reads.get() && self.incoming.bytes() == 0
    }

    /// Whether it may send.
    #[inline]
    pub fn writes(&self) -> bool {
        self.writes.get()
    }

    /// Stops receiving, sending or both; what that ends is noted for the next sweep.
    pub fn shut_down(&self, closing: &Closing, reads: bool, writes: bool) {
        if reads && self.reads.replace(false) {
            closing.add(Closed::Pipe { pipe: self.incoming.clone(), reads: true, writes: false });
        }
        if writes && self.writes.replace(false) {
            closing.add(Closed::Pipe { pipe: self.outgoing.clone(), reads: false, writes: true });
        }
    }

    /// Ends it at the next sweep. The peer gets `ECONNRESET` if there is unread data, or if nobody has accepted it.
    pub fn close(&self, closing: &Closing, refused: bool) {
        let (incoming, outgoing) = (self.incoming.clone(), self.outgoing.clone());
        let ends = (self.reads.replace(false), self.writes.replace(false));
        closing.add(Closed::Connection { incoming, outgoing, ends, refused });
    }

    /// Ready events (Linux POLL*).
    pub fn ready(&self) -> u32 {
        let ended = !self.reads.get() || self.incoming.writers() == 0;
        let unheard = !self.writes.get() || self.outgoing.readers() == 0;
        let mut ready = self.outgoing.poll(false, true) & (POLLOUT | POLLWRNORM);
        if ended || self.incoming.bytes() > 0 {
            ready |= POLLIN | POLLRDNORM;
        }
        if ended {
            ready |= POLLRDHUP;
        }
        if ended && unheard {
            ready |= POLLHUP | POLLOUT | POLLWRNORM;
        }
        if self.incoming.is_reset() {
            ready |= POLLERR;
        }
        ready
    }

    /// Fire when [`Connection::ready`] may have changed.
    pub fn watchers(&self) -> [Option<(&Watchers, u32)>; 2] {
        [Some((&self.incoming.watchers, OF_READERS)), Some((&self.outgoing.watchers, OF_WRITERS))]
    }
}
