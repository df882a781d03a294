//! The ready list of an epoll: how interests come onto it, and how their events are collected.
//!
//! An interest on the list may be ready. Collecting takes the first one off, looks at its object, and reports it if it is; one that is
//! reported as long as it is ready then goes to the end of the list.

use super::{Epoll, Event, Interest, interest::EVENT_BYTES};
use abi::Errno;
use alloc::rc::Rc;
use sys::{fallible::TryQueue, time};

/// Events that are copied to the program at a time.
const CHUNK: usize = 8;

/// Events that are about to be reported.
struct Chunk {
    found: [Option<(Rc<Interest>, u32)>; CHUNK],
    bytes: [u8; CHUNK * EVENT_BYTES],
    count: usize,
}

impl Chunk {
    fn new() -> Chunk {
        Chunk { found: [const { None }; CHUNK], bytes: [0; CHUNK * EVENT_BYTES], count: 0 }
    }

    fn add(&mut self, interest: Rc<Interest>, event: Event) {
        let at = self.count * EVENT_BYTES;
        self.bytes[at..at + EVENT_BYTES].copy_from_slice(&event.to_bytes());
        self.found[self.count] = Some((interest, event.events));
        self.count += 1;
    }

    fn bytes(&self) -> &[u8] {
        &self.bytes[..self.count * EVENT_BYTES]
    }
}

impl Epoll {
    /// Puts an interest on the ready list.
    pub(super) fn link(&self, interest: &Rc<Interest>) {
        if interest.set_linked(true) {
            self.ready.borrow_mut().push_back_reserved(interest.clone());
        }
    }

    /// Takes the first interest off the ready list.
    fn unlink_first(&self) -> Option<Rc<Interest>> {
        let interest = self.ready.borrow_mut().pop_front()?;
        interest.set_linked(false);
        Some(interest)
    }

    /// Puts an interest back at the front.
    #[expect(clippy::disallowed_methods, reason = "it has just been taken out")]
    fn link_first(&self, interest: Rc<Interest>) {
        interest.set_linked(true);
        self.ready.borrow_mut().push_front(interest);
    }

    /// Drops interests that have ended from the ready list, when they are most of it.
    pub(super) fn drop_ended(&self) {
        let mut ready = self.ready.borrow_mut();
        if ready.len() > 2 * self.interests.borrow().len() + CHUNK {
            ready.retain(|interest| !interest.has_ended());
        }
    }

    /// Enters an interest among those that expire, at the time at which its object becomes ready by itself.
    pub(super) fn expect(&self, interest: &Rc<Interest>) {
        let wakes_at = interest.wakes_at();
        if wakes_at.unwrap_or(0) == interest.expiry().0 {
            return;
        }
        let mut expiries = self.expiries.borrow_mut();
        expiries.remove(&interest.expiry());
        interest.set_expiry(wakes_at.unwrap_or(0));
        if wakes_at.is_some() {
            expiries.insert(interest.expiry(), interest.clone());
        }
    }

    /// The monotonic time at which the first interest becomes ready by itself.
    pub fn wakes_at(&self) -> Option<u64> {
        self.expiries.borrow().first_key_value().map(|((at_ns, _), _)| *at_ns)
    }

    /// Links the interests whose time has come.
    fn link_expired(&self) {
        if self.expiries.borrow().is_empty() {
            return;
        }
        let now_ns = time::now_ns();
        while let Some(entry) = self.expiries.borrow_mut().first_entry().filter(|entry| entry.key().0 <= now_ns) {
            let interest = entry.remove();
            interest.set_expiry(0);
            self.link(&interest);
        }
    }

    /// Whether an interest is ready. Those that are not any more leave the list.
    pub(super) fn has_ready(&self) -> bool {
        self.link_expired();
        while let Some(interest) = self.unlink_first() {
            if interest.ready().is_some() {
                self.link_first(interest);
                return true;
            }
            self.unready(&interest);
        }
        false
    }

    /// Reports up to `most` events, each `struct epoll_event` once; `store` gets the number of the first one and their bytes. Returns how
    /// many. An error of `store`: nothing was reported, and all is as it was.
    pub fn collect(&self, most: usize, store: impl Fn(usize, &[u8]) -> Result<(), Errno>) -> Result<usize, Errno> {
        self.link_expired();
        // What is linked meanwhile is for the next time.
        let mut left = self.ready.borrow().len();
        let mut count = 0;
        while left > 0 && count < most {
            let mut chunk = Chunk::new();
            while left > 0 && chunk.count < CHUNK.min(most - count) {
                left -= 1;
                let Some(interest) = self.unlink_first() else { break };
                match interest.ready() {
                    Some(event) => chunk.add(interest, event),
                    None => self.unready(&interest),
                }
            }
            let stored = if chunk.count == 0 { Ok(()) } else { store(count, chunk.bytes()) };
            if let Err(error) = stored {
                chunk.found.into_iter().rev().flatten().for_each(|(interest, _)| self.link_first(interest));
                return if count > 0 { Ok(count) } else { Err(error) };
            }
            count += chunk.count;
            for (interest, events) in chunk.found.into_iter().flatten() {
                if interest.set_reported(events) {
                    self.link(&interest);
                }
                if interest.is_nested() {
                    // The next of the times in it.
                    self.expect(&interest);
                }
            }
        }
        Ok(count)
    }

    /// An interest was found not to be ready: it waits for a change or its time, or ends with its open file.
    fn unready(&self, interest: &Rc<Interest>) {
        if interest.has_ended() {
            return;
        }
        if interest.target().is_some() {
            return self.expect(interest);
        }
        self.interests.borrow_mut().remove(&interest.key());
        self.leave(interest);
    }
}
