//! Connected pairs of local stream sockets (socketpair(2)): two pipes, one for each direction.
//!
//! What a pipe does for its readers and writers is what a stream socket does for both ends; so there is no queue here. A socket holds
//! the reading end of one pipe and the writing end of the other, until it is shut down or closed.

use crate::{
    base::closing::{Closed, Closing},
    events::poll::{POLLHUP, POLLIN, POLLOUT, POLLRDNORM, POLLWRNORM},
    pipes::Pipe,
};
use alloc::rc::Rc;
use core::cell::Cell;

/// The peer sends no more.
const POLLRDHUP: u32 = 0x2000;

/// One of the two sockets.
#[derive(Debug)]
pub struct Socket {
    /// What it receives.
    pub incoming: Rc<Pipe>,
    /// What it sends.
    pub outgoing: Rc<Pipe>,
    /// What fstat tells.
    pub inode: u64,
    reads: Cell<bool>,
    writes: Cell<bool>,
}

impl Socket {
    /// A socket between two pipes, in which it takes its ends, those that are not shut down.
    pub fn new(incoming: Rc<Pipe>, outgoing: Rc<Pipe>, inode: u64, (reads, writes): (bool, bool)) -> Socket {
        incoming.open(reads, false);
        outgoing.open(false, writes);
        Socket { incoming, outgoing, inode, reads: Cell::new(reads), writes: Cell::new(writes) }
    }

    /// It may receive.
    pub fn reads(&self) -> bool {
        self.reads.get()
    }

    /// It may send.
    pub fn writes(&self) -> bool {
        self.writes.get()
    }

    /// Gives up receiving, sending or both; what that ends is noted for the next sweep.
    pub fn shut_down(&self, closing: &Closing, reads: bool, writes: bool) {
        if reads && self.reads.replace(false) {
            closing.add(Closed::Pipe { pipe: self.incoming.clone(), reads: true, writes: false });
        }
        if writes && self.writes.replace(false) {
            closing.add(Closed::Pipe { pipe: self.outgoing.clone(), reads: false, writes: true });
        }
    }

    /// Ready events (Linux POLL*).
    pub fn ready(&self) -> u32 {
        let ended = !self.reads() || self.incoming.writers() == 0;
        let deaf = !self.writes() || self.outgoing.readers() == 0;
        let mut ready = self.outgoing.poll(false, true) & (POLLOUT | POLLWRNORM);
        if ended || self.incoming.bytes() > 0 {
            ready |= POLLIN | POLLRDNORM;
        }
        if ended {
            ready |= POLLRDHUP;
        }
        if ended && deaf {
            ready |= POLLHUP | POLLOUT | POLLWRNORM;
        }
        ready
    }
}
