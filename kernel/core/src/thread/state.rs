//! Whether a thread may run, and if not, why.
//!
//! A thread waits for at most one event. Apart from that it may be stopped or have no address space. All of this is one word, so that
//! the fast path asks each question by one comparison. Neighbours: `ipc`, `futex`, `life`, `sched` and the rooms change the state.

use abi::Endpoint;
use zerocopy::FromZeros;

/// The event that a thread waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BlockedOn {
    /// The endpoint takes its message. The thread is in the sender list of that slot.
    Send(Endpoint, Continuation),
    /// A message or a notification from the endpoint.
    Receive(Endpoint),
    /// The answer of the endpoint, which no notification interrupts.
    Answer(Endpoint),
    /// A wake-up in a futex bucket, or a lock.
    Futex,
    /// The end of a call of MINIX4RT.
    RealTime,
}

/// What happens when the message of a sender has been taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Continuation {
    /// The call is done.
    Return,
    /// The sender waits for the answer of the same endpoint.
    Answer,
    /// The sender receives from the endpoint in `r14`.
    Receive,
}

/// Why a thread does not run. All bytes zero: it runs, or waits for the CPU only.
#[derive(Clone, Copy, Debug, FromZeros)]
pub(crate) struct State {
    /// The number of an event, and bits. 0: it runs, or waits for the CPU only.
    reasons: u32,
    /// The endpoint of the event; stale when there is none.
    peer: Endpoint,
}

const ANSWER: u32 = 1;
const RECEIVE: u32 = 2;
/// The number of a `Continuation` is added. Numbers below are waits for a message to come.
const SEND: u32 = 4;
const SEND_FOR_ANSWER: u32 = SEND + Continuation::Answer as u32;
const FUTEX: u32 = 8;
const REAL_TIME: u32 = 9;
const EVENT: u32 = 0xff;

/// What keeps a thread from running whether it waits or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hold {
    /// Kept by `Stop`, or not started yet.
    Stopped = 0x100,
    /// It has no address space.
    NoSpace = 0x200,
}

impl State {
    /// Not started, and without an address space.
    pub const NEW: State = State { reasons: Hold::Stopped as u32 | Hold::NoSpace as u32, peer: Endpoint(0) };

    /// Returns true when it runs, or waits for the CPU only.
    pub fn is_ready(self) -> bool {
        self.reasons == 0
    }

    /// Ends its wait and its holds.
    pub fn make_ready(&mut self) {
        self.reasons = 0;
    }

    /// Begins to wait. A thread that waits already may be moved from one futex to another.
    #[inline(always)]
    pub fn block(&mut self, on: BlockedOn) {
        debug_assert!(matches!((self.blocked_on(), on), (None, _) | (Some(BlockedOn::Futex), BlockedOn::Futex)));
        let (event, peer) = match on {
            BlockedOn::Send(to, then) => (SEND + then as u32, to),
            BlockedOn::Receive(from) => (RECEIVE, from),
            BlockedOn::Answer(from) => (ANSWER, from),
            BlockedOn::Futex => (FUTEX, self.peer),
            BlockedOn::RealTime => (REAL_TIME, self.peer),
        };
        self.reasons |= event;
        self.peer = peer;
    }

    /// Ends the wait, if there is one.
    pub fn unblock(&mut self) {
        self.reasons &= !EVENT;
    }

    /// The event that it waits for.
    #[inline(always)]
    pub fn blocked_on(self) -> Option<BlockedOn> {
        Some(match self.reasons & EVENT {
            0 => return None,
            RECEIVE => BlockedOn::Receive(self.peer),
            ANSWER => BlockedOn::Answer(self.peer),
            FUTEX => BlockedOn::Futex,
            REAL_TIME => BlockedOn::RealTime,
            SEND => BlockedOn::Send(self.peer, Continuation::Return),
            SEND_FOR_ANSWER => BlockedOn::Send(self.peer, Continuation::Answer),
            _ => BlockedOn::Send(self.peer, Continuation::Receive),
        })
    }

    /// The endpoint that it waits for, to send or to receive.
    pub fn peer(self) -> Option<Endpoint> {
        (ANSWER..FUTEX).contains(&(self.reasons & EVENT)).then_some(self.peer)
    }

    /// As [`State::peer`], if that is in this slot. Asked of every service when a thread dies.
    pub fn peer_in(self, slot: usize) -> Option<Endpoint> {
        if self.peer.slot() == slot { self.peer() } else { None }
    }

    /// Returns true when it waits for a message, and one from `source` may come.
    pub fn accepts(self, source: Endpoint) -> bool {
        (ANSWER..SEND).contains(&(self.reasons & EVENT)) && admits(self.peer, source)
    }

    /// Returns true when nothing but a message from `ANY` is missing.
    pub fn is_open(self) -> bool {
        self.reasons == RECEIVE && self.peer == Endpoint::ANY
    }

    /// Returns true when nothing but a message from `ANY` or the answer of `source` is missing.
    #[inline(always)]
    pub fn is_open_to(self, source: Endpoint) -> bool {
        let awaited = if self.reasons == ANSWER { source } else { Endpoint::ANY };
        self.peer == awaited && (ANSWER..=RECEIVE).contains(&self.reasons)
    }

    /// Keeps it from running until it is released.
    pub fn hold(&mut self, hold: Hold) {
        self.reasons |= hold as u32;
    }

    /// Ends a hold, if there is one.
    pub fn release(&mut self, hold: Hold) {
        self.reasons &= !(hold as u32);
    }

    /// Returns true when it is held so.
    pub fn is_held(self, hold: Hold) -> bool {
        self.reasons & hold as u32 != 0
    }
}

/// Returns true when a wait for `peer` lets a message from `source` through.
pub(crate) fn admits(peer: Endpoint, source: Endpoint) -> bool {
    peer == Endpoint::ANY || peer == source || peer == Endpoint::current(source.slot())
}
