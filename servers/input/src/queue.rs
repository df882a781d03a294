//! The events that an open evdev file has not read yet.
//!
//! As Linux's: 64 events; only complete packets are read; when the queue overflows, everything in it is dropped but the newest event, after
//! a `SYN_DROPPED` that tells the reader to ask for the present state.

use crate::device::{load_events, save_events};
use abi::input::{Event, kind};
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use recover::snapshot::{Reader, Writer};
use sys::Errno;
use sys::fallible::{self, TryQueue, TryVec};

/// Capacity of a queue, in events.
pub const EVENTS: usize = 64;
const SYN_REPORT: u16 = 0;
const SYN_DROPPED: u16 = 3;

/// See the head of the file.
pub struct Queue {
    events: VecDeque<Event>,
    /// Events that may be read: those of complete packets.
    complete: usize,
    /// What the last read was given, with its tag: a read that is repeated gets the same.
    given: Vec<Event>,
    given_tag: u64,
}

impl Queue {
    /// An empty queue.
    ///
    /// # Errors
    /// `ENOMEM`.
    pub fn new() -> Result<Queue, Errno> {
        let (events, given) = (fallible::queue(EVENTS)?, fallible::with_capacity(EVENTS)?);
        Ok(Queue { events, complete: 0, given, given_tag: 0 })
    }

    /// Adds the events of a packet, or a piece of one.
    pub fn add(&mut self, packet: &[Event]) {
        for event in packet {
            self.events.push_back_reserved(*event);
            if self.events.len() == EVENTS {
                self.events.clear();
                self.complete = 0;
                self.add_dropped(event.time_ns);
                self.events.push_back_reserved(*event);
            }
            if (event.kind, event.code) == (kind::SYN, SYN_REPORT) {
                self.complete = self.events.len();
            }
        }
    }

    /// Whether a read would get events.
    pub fn is_readable(&self) -> bool {
        self.complete > 0
    }

    /// Takes at most `limit` events for the read with this tag, or what a read with it was given before. They are kept for a repetition.
    pub fn take(&mut self, tag: u64, limit: usize) -> &[Event] {
        if tag == 0 || tag != self.given_tag {
            self.given.clear();
            self.given_tag = tag;
            let count = self.complete.min(limit);
            self.events.drain(..count).for_each(|event| self.given.push_reserved(event));
            self.complete -= count;
        }
        &self.given
    }

    /// Whether the read with this tag has been given events before.
    pub fn has_given(&self, tag: u64) -> bool {
        tag != 0 && tag == self.given_tag && !self.given.is_empty()
    }

    /// Drops the events of one kind, whose state the reader has just been told, and packets that become empty.
    pub fn forget(&mut self, forgotten: u16) {
        let readable = self.complete;
        let (mut index, mut kept, mut in_packet) = (0, 0, 0);
        self.events.retain(|event| {
            let ends = (event.kind, event.code) == (kind::SYN, SYN_REPORT);
            let keeps = event.kind != forgotten && !(ends && in_packet == 0);
            in_packet = if ends { 0 } else { in_packet + usize::from(keeps) };
            kept += usize::from(keeps && index < readable);
            index += 1;
            keeps
        });
        self.complete = kept;
    }

    /// Drops all events, because their times mean something else from now on. The reader learns that by `SYN_DROPPED`.
    pub fn restart(&mut self, now_ns: u64) {
        if !self.events.is_empty() {
            self.events.clear();
            self.add_dropped(now_ns);
            self.complete = 1;
        }
    }

    /// Saves it into a snapshot.
    pub fn save(&self, writer: &mut Writer) {
        writer.number(self.complete as u64);
        writer.number(self.given_tag);
        save_events(self.events.iter(), writer);
        save_events(self.given.iter(), writer);
    }

    /// Loads it from a snapshot.
    pub fn load(reader: &mut Reader) -> Option<Queue> {
        let mut queue = Queue::new().ok()?;
        (queue.complete, queue.given_tag) = (reader.number()? as usize, reader.number()?);
        load_events(reader, EVENTS - 1, |event| queue.events.push_back_reserved(event))?;
        load_events(reader, EVENTS, |event| queue.given.push_reserved(event))?;
        (queue.complete <= queue.events.len()).then_some(queue)
    }

    fn add_dropped(&mut self, time_ns: u64) {
        self.events.push_back_reserved(Event { time_ns, kind: kind::SYN, code: SYN_DROPPED, value: 0 });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(code: u16) -> [Event; 2] {
        let event = |kind, code| Event { time_ns: 1, kind, code, value: 1 };
        [event(kind::KEY, code), event(kind::SYN, 0)]
    }

    fn codes(queue: &mut Queue, tag: u64, limit: usize) -> Vec<(u16, u16)> {
        queue.take(tag, limit).iter().map(|event| (event.kind, event.code)).collect()
    }

    #[test]
    fn only_complete_packets_are_read_and_a_repeated_read_gets_the_same() {
        let mut queue = Queue::new().expect("there is memory");
        queue.add(&packet(1));
        queue.add(&packet(2)[..1]);
        assert_eq!(codes(&mut queue, 5, 9), [(1, 1), (0, 0)]);
        assert!(queue.has_given(5) && !queue.is_readable());
        let mut writer = Writer::default();
        queue.save(&mut writer);
        let mut queue = Queue::load(&mut Reader::new(writer.bytes())).expect("was saved");
        assert_eq!(codes(&mut queue, 5, 9), [(1, 1), (0, 0)]);
        queue.add(&packet(2)[1..]);
        assert_eq!(codes(&mut queue, 6, 1), [(1, 2)]);
        assert_eq!(codes(&mut queue, 7, 1), [(0, 0)]);
    }

    #[test]
    fn an_overflow_leaves_the_newest_event_behind_a_mark() {
        let mut queue = Queue::new().expect("there is memory");
        (0..40).for_each(|code| queue.add(&packet(code)));
        let all = codes(&mut queue, 1, EVENTS);
        assert_eq!(all[..3], [(0, 3), (0, 0), (1, 32)]);
        assert_eq!(all.last(), Some(&(0, 0)));
    }

    #[test]
    fn events_whose_state_was_told_are_forgotten() {
        let mut queue = Queue::new().expect("there is memory");
        queue.add(&packet(1));
        queue.add(&[Event { kind: kind::ABS, ..Event::default() }, packet(2)[0], packet(2)[1]]);
        queue.forget(kind::KEY);
        assert_eq!(codes(&mut queue, 1, 9), [(kind::ABS, 0), (0, 0)]);
    }

    #[test]
    fn another_clock_begins_anew() {
        let mut queue = Queue::new().expect("there is memory");
        queue.restart(5);
        assert!(!queue.is_readable());
        queue.add(&packet(1));
        queue.restart(5);
        assert_eq!(codes(&mut queue, 1, 9), [(0, 3)]);
    }
}
