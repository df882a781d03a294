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

/// Events that are about to be reported, up to [`CHUNK`].
struct Chunk {
    found: [Option<(Rc<Interest>, u32)>; CHUNK],
    bytes: [[u8; EVENT_BYTES]; CHUNK],
    count: usize,
}

impl Chunk {
    fn new() -> Chunk {
        Chunk { found: [const { None }; CHUNK], bytes: [[0; EVENT_BYTES]; CHUNK], count: 0 }
    }

    fn add(&mut self, interest: Rc<Interest>, event: Event) {
        self.bytes[self.count] = event.to_bytes();
        self.found[self.count] = Some((interest, event.events));
        self.count += 1;
    }

    fn bytes(&self) -> &[u8] {
        self.bytes[..self.count].as_flattened()
    }
}

impl Epoll {
    /// Puts an interest on the ready list.
    pub(super) fn link(&self, interest: &Rc<Interest>) {
        if !interest.is_linked() {
            self.link_last(interest.clone());
        }
    }

    /// Puts an interest at the end of the ready list, on which it is not.
    #[inline]
    fn link_last(&self, interest: Rc<Interest>) {
        interest.set_linked(true);
        self.ready.borrow_mut().push_back_reserved(interest);
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
    #[inline]
    pub(super) fn expect(&self, interest: &Rc<Interest>) {
        if interest.expires() {
            self.expect_anew(interest);
        }
    }

    fn expect_anew(&self, interest: &Rc<Interest>) {
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
    #[inline]
    fn link_expired(&self) {
        if !self.expiries.borrow().is_empty() {
            self.link_those_expired();
        }
    }

    #[inline(never)]
    fn link_those_expired(&self) {
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
    /// many. An error of `store`: nothing was reported, and all is as it was. Inlined: a call would cost each wait 20 ticks.
    #[inline(always)]
    pub fn collect(&self, most: usize, store: impl Fn(usize, &[u8]) -> Result<(), Errno>) -> Result<usize, Errno> {
        self.link_expired();
        // What is linked meanwhile is for the next time.
        let mut left = self.ready.borrow().len();
        let mut count = 0;
        while left > 0 && count < most {
            let store = |bytes: &[u8]| store(count, bytes);
            let reported = match left.min(most - count) {
                1 => self.report_first(&mut left, store),
                most => self.report(&mut left, most, store),
            };
            match reported {
                Ok(further) => count += further,
                Err(_) if count > 0 => break,
                Err(error) => return Err(error),
            }
        }
        Ok(count)
    }

    /// Reports an event of the first interest on the ready list.
    #[inline(always)]
    fn report_first(&self, left: &mut usize, store: impl Fn(&[u8]) -> Result<(), Errno>) -> Result<usize, Errno> {
        *left -= 1;
        let Some(interest) = self.unlink_first() else { return Ok(0) };
        let Some(event) = interest.ready() else {
            self.unready(&interest);
            return Ok(0);
        };
        if let Err(error) = store(&event.to_bytes()) {
            self.link_first(interest);
            return Err(error);
        }
        self.reported(interest, event.events);
        Ok(1)
    }

    /// Reports events of the first `left` interests on the ready list, some at a time.
    #[inline(never)]
    fn report(
        &self,
        left: &mut usize,
        most: usize,
        store: impl Fn(&[u8]) -> Result<(), Errno>,
    ) -> Result<usize, Errno> {
        let mut chunk = Chunk::new();
        while *left > 0 && chunk.count < CHUNK.min(most) {
            *left -= 1;
            let Some(interest) = self.unlink_first() else { break };
            match interest.ready() {
                Some(event) => chunk.add(interest, event),
                None => self.unready(&interest),
            }
        }
        if chunk.count == 0 {
            return Ok(0);
        }
        if let Err(error) = store(chunk.bytes()) {
            chunk.found.into_iter().rev().flatten().for_each(|(interest, _)| self.link_first(interest));
            return Err(error);
        }
        chunk.found.into_iter().flatten().for_each(|(interest, events)| self.reported(interest, events));
        Ok(chunk.count)
    }

    /// These events of an interest have been reported.
    #[inline(always)]
    fn reported(&self, interest: Rc<Interest>, events: u32) {
        let stays = interest.set_reported(events);
        if interest.is_nested() {
            // The next of the times in it.
            self.expect(&interest);
        }
        if stays {
            self.link_last(interest);
        }
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
