//! The callers of a service whose requests may have to wait: their memory, replies, and the list of those that wait.
//!
//! A service on a [`Runtime`] gets [`Callers`] for its `World` by saying which runtime; a test plays them.
//! Invariant of [`Pending`]: no request is in it twice, and none of a caller that has been restarted since.

use crate::Runtime;
use abi::{Endpoint, Errno, GrantId, Message};
use alloc::vec::Vec;
use sys::fallible::{self, TryVec};

/// What a service needs of those whose requests it carries out.
pub trait Callers {
    /// Copies into the buffer that the request's grant names.
    ///
    /// # Errors
    /// As of a copy by grant.
    fn copy_out(&mut self, request: &Message, grant: GrantId, data: &[u8]) -> Result<(), Errno>;
    /// Copies from it, beginning at `offset`.
    ///
    /// # Errors
    /// As of a copy by grant.
    fn copy_in(&mut self, request: &Message, grant: GrantId, offset: u64, buffer: &mut [u8]) -> Result<(), Errno>;
    /// Replies to a request.
    fn answer(&mut self, request: &Message, result: Result<u64, Errno>);
}

/// What has the callers of a runtime.
pub trait OnRuntime {
    /// The runtime.
    fn runtime(&self) -> &Runtime;
}

impl<T: OnRuntime> Callers for T {
    fn copy_out(&mut self, request: &Message, grant: GrantId, data: &[u8]) -> Result<(), Errno> {
        sys::copy::to_grant(request.source, grant, 0, data)
    }

    fn copy_in(&mut self, request: &Message, grant: GrantId, offset: u64, buffer: &mut [u8]) -> Result<(), Errno> {
        sys::copy::from_grant(request.source, grant, offset, buffer)
    }

    fn answer(&mut self, request: &Message, result: Result<u64, Errno>) {
        self.runtime().reply(request, &request.reply(result));
    }
}

/// Requests that wait for what they need (`N`), oldest first.
pub struct Pending<N> {
    requests: Vec<(Message, N)>,
    limit: usize,
}

impl<N> Default for Pending<N> {
    /// None, and no memory for any.
    fn default() -> Pending<N> {
        Pending { requests: Vec::new(), limit: 0 }
    }
}

impl<N> Pending<N> {
    /// None, with memory for `limit` of them.
    ///
    /// # Errors
    /// `ENOMEM`.
    pub fn with_limit(limit: usize) -> Result<Pending<N>, Errno> {
        Ok(Pending { requests: fallible::with_capacity(limit)?, limit })
    }

    /// Adds one. Returns false if there are too many.
    pub fn add(&mut self, request: &Message, need: N) -> bool {
        let fits = self.requests.len() < self.limit;
        if fits {
            self.requests.push_reserved((*request, need));
        }
        fits
    }

    /// Drops the requests of dead predecessors of this one's sender, and this one if it waits already: what is still wanted is repeated.
    pub fn forget_stale(&mut self, request: &Message) {
        self.requests.retain(|(old, _)| {
            let same_slot = old.source.slot() == request.source.slot();
            let is_it = request.tag() != 0 && old.tag() == request.tag();
            !(same_slot && (is_it || old.source != request.source))
        });
    }

    /// Takes out the request that its sender cancels, if it waits.
    pub fn cancel(&mut self, source: Endpoint, tag: u64) -> Option<Message> {
        let found = self.requests.iter().position(|(request, _)| request.source == source && request.tag() == tag);
        found.map(|index| self.requests.remove(index).0)
    }

    /// Drops those that `is_done` has answered.
    pub fn settle(&mut self, mut is_done: impl FnMut(&Message, &N) -> bool) {
        self.requests.retain(|(request, need)| !is_done(request, need));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(slot: usize, generation: u32, tag: u64) -> Message {
        let mut message = Message { source: Endpoint::new(slot, generation), ..Message::new(0) };
        message.words[6] = tag;
        message
    }

    fn tags(pending: &mut Pending<()>) -> Vec<u64> {
        let mut tags = Vec::new();
        pending.settle(|request, ()| {
            tags.push(request.tag());
            false
        });
        tags
    }

    #[test]
    fn a_request_that_is_repeated_waits_once_and_those_of_the_dead_do_not() {
        let mut pending = Pending::with_limit(3).expect("there is memory");
        for (slot, tag) in [(5, 1), (5, 2), (6, 1)] {
            assert!(pending.add(&request(slot, 1, tag), ()));
        }
        assert!(!pending.add(&request(5, 1, 9), ()), "there are too many");
        pending.forget_stale(&request(5, 1, 2));
        assert_eq!(tags(&mut pending), [1, 1]);
        pending.forget_stale(&request(5, 2, 7));
        assert_eq!(tags(&mut pending), [1], "that of the other slot");
        // Synchronous requests have no tag, and are not each other's.
        assert!(pending.add(&request(6, 1, 0), ()));
        pending.forget_stale(&request(6, 1, 0));
        assert_eq!(tags(&mut pending), [1, 0]);
    }

    #[test]
    fn one_is_cancelled_and_those_are_settled_that_are_done() {
        let mut pending = Pending::with_limit(4).expect("there is memory");
        (1..=4).for_each(|tag| assert!(pending.add(&request(5, 1, tag), ())));
        assert_eq!(pending.cancel(Endpoint::new(5, 2), 2), None);
        assert_eq!(pending.cancel(Endpoint::new(5, 1), 2).map(|request| request.tag()), Some(2));
        pending.settle(|request, ()| request.tag() != 3);
        assert_eq!(tags(&mut pending), [3]);
    }
}
