//! The input kit: a device's events in preserved memory, and the reads of `input` that wait for them (`abi::input`).
//!
//! A change is committed by one word, written after the events it covers: how many there are, and the state of the driver's decoder behind
//! them. So a driver that dies between two bytes of a packet goes on with the third, and no event is there twice.
//!
//! ```text
//! word 0   id of the layout, written last at initialisation     word 3   number after the last event; state of the decoder
//! word 1   number of the first event in the ring                word 4   a word of the driver's own
//! word 2   the reader's count minus this number                 then     the ring
//! ```

use crate::Client;
use crate::chardev::{Answers, Held};
use abi::input::{EVENT_BYTES, Event};
use abi::{Endpoint, Errno};
use alloc::collections::VecDeque;
use alloc::rc::Rc;
use sys::keep::Keep;

/// Capacity of the ring, in events.
pub const RING_EVENTS: usize = 256;
/// Preserved memory of a source, in bytes.
pub const SOURCE_BYTES: usize = RING + RING_EVENTS * EVENT_BYTES;

const LAYOUT: usize = 0;
const FIRST: usize = 1;
const AHEAD: usize = 2;
const END: usize = 3;
const NOTE: usize = 4;
const WORD_BYTES: usize = 8;
/// Offset of the ring.
const RING: usize = 64;
const MAGIC: u64 = 0x696e_7075_7400_0001;
/// Events that one reply carries.
const CHUNK: usize = 16;

/// The events of one device, and who waits for them.
pub struct Source {
    keep: Rc<Keep>,
    /// Its offset in preserved memory.
    start: usize,
    reads: VecDeque<(Held, Client)>,
}

impl Source {
    /// Opens the events of device `index`; an inconsistent state is reset.
    pub fn open(keep: &Rc<Keep>, index: usize) -> Source {
        let source = Source { keep: keep.clone(), start: index * SOURCE_BYTES, reads: VecDeque::new() };
        if source.word(LAYOUT) != MAGIC || source.waiting() > RING_EVENTS {
            [LAYOUT, FIRST, AHEAD, END, NOTE].into_iter().for_each(|word| source.put(word, 0));
            source.put(LAYOUT, MAGIC);
        }
        source
    }

    /// The state of the decoder behind the last event.
    pub fn state(&self) -> u32 {
        (self.word(END) >> 32) as u32
    }

    /// The driver's own word; 0 at first.
    pub fn note(&self) -> u64 {
        self.word(NOTE)
    }

    /// Sets the driver's own word.
    pub fn set_note(&mut self, note: u64) {
        self.put(NOTE, note);
    }

    /// Returns how many events have room.
    pub fn room(&self) -> usize {
        RING_EVENTS - self.waiting()
    }

    /// Appends these events and sets the decoder's state, all or nothing. Events for which there is no room are dropped: a caller that may
    /// not lose any looks at `room` before.
    pub fn push(&mut self, events: &[Event], state: u32) {
        let mut end = self.end();
        if events.len() <= self.room() {
            for event in events {
                self.keep.write(self.place(end), &event.to_bytes());
                end = end.wrapping_add(1);
            }
        }
        self.put(END, u64::from(end) | u64::from(state) << 32);
    }

    /// Reads the events after the reader's first `position`.
    pub fn read(&mut self, held: Held, client: Client, position: u64, answers: &mut Answers) {
        self.acknowledge(position as u32);
        self.reads.push_back((held, client));
        self.serve(answers);
    }

    /// Answers the reads for which there are events.
    pub fn serve(&mut self, answers: &mut Answers) {
        while self.waiting() > 0
            && let Some((held, client)) = self.reads.pop_front()
        {
            let mut bytes = [0; CHUNK * EVENT_BYTES];
            let count = self.peek(&mut bytes, client.bytes() as usize / EVENT_BYTES) * EVENT_BYTES;
            let result = if count == 0 { Err(Errno::EINVAL) } else { client.put(0, &bytes[..count]) };
            answers.give(held, result.map(|()| count as u64));
        }
    }

    /// Cancels a read.
    pub fn cancel(&mut self, requester: Endpoint, tag: u64, answers: &mut Answers) {
        let is_it = |(held, _): &(Held, Client)| held.requester() == requester && held.tag() == tag;
        if let Some((held, _)) = self.reads.iter().position(is_it).and_then(|at| self.reads.remove(at)) {
            answers.give(held, Err(Errno::EINTR));
        }
    }

    /// The events in the ring, for tests of drivers.
    #[cfg(not(target_os = "none"))]
    pub fn events(&self) -> alloc::vec::Vec<Event> {
        let number = |index| self.first().wrapping_add(index as u32);
        let event = |index| {
            let mut record = [0; EVENT_BYTES];
            self.keep.read(self.place(number(index)), &mut record);
            Event::from_bytes(&record)
        };
        (0..self.waiting()).map(event).collect()
    }

    /// Forgets the events in the ring, for tests of drivers.
    #[cfg(not(target_os = "none"))]
    pub fn drop_all(&mut self) {
        self.put(FIRST, self.end().into());
    }

    /// Forgets the events before `position` of the reader's count. A count that fits nothing begins anew.
    fn acknowledge(&mut self, position: u32) {
        let first = position.wrapping_sub(self.word(AHEAD) as u32);
        if first.wrapping_sub(self.first()) as usize <= self.waiting() {
            self.put(FIRST, first.into());
        } else {
            self.put(AHEAD, position.wrapping_sub(self.first()).into());
        }
    }

    /// Copies the first events out, at most `limit`; they stay in the ring until they are acknowledged. Returns their number.
    fn peek(&self, bytes: &mut [u8], limit: usize) -> usize {
        let count = self.waiting().min(limit).min(CHUNK);
        for (index, record) in bytes.chunks_exact_mut(EVENT_BYTES).take(count).enumerate() {
            self.keep.read(self.place(self.first().wrapping_add(index as u32)), record);
        }
        count
    }

    fn waiting(&self) -> usize {
        self.end().wrapping_sub(self.first()) as usize
    }

    fn first(&self) -> u32 {
        self.word(FIRST) as u32
    }

    fn end(&self) -> u32 {
        self.word(END) as u32
    }

    fn place(&self, number: u32) -> usize {
        self.start + RING + number as usize % RING_EVENTS * EVENT_BYTES
    }

    fn word(&self, at: usize) -> u64 {
        self.keep.read_word(self.start / WORD_BYTES + at)
    }

    fn put(&self, at: usize, value: u64) {
        self.keep.write_word(self.start / WORD_BYTES + at, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::sync::atomic::AtomicU64;
    use std::boxed::Box;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::vec::Vec;

    fn memory() -> &'static [AtomicU64] {
        let words = (0..2 * SOURCE_BYTES / 8).map(|word| AtomicU64::new(word as u64 * 77));
        Box::leak(words.collect::<Vec<_>>().into_boxed_slice())
    }

    fn open(memory: &'static [AtomicU64], writes: u64) -> Source {
        Source::open(&Rc::new(Keep::simulated(memory, writes)), 1)
    }

    fn key(code: u16) -> Event {
        Event { time_ns: 5, kind: 1, code, value: 1 }
    }

    fn codes(source: &Source) -> Vec<u16> {
        let mut bytes = [0; CHUNK * EVENT_BYTES];
        let count = source.peek(&mut bytes, CHUNK);
        let records = bytes.as_chunks::<EVENT_BYTES>().0.iter().take(count);
        records.map(|record| Event::from_bytes(record).code).collect()
    }

    #[test]
    fn an_event_waits_until_it_is_acknowledged_and_a_successor_finds_it() {
        let memory = memory();
        let mut source = open(memory, u64::MAX);
        source.push(&[key(1), key(2)], 9);
        source.acknowledge(0);
        assert_eq!(codes(&source), [1, 2]);
        let mut source = open(memory, u64::MAX);
        assert_eq!((codes(&source), source.state()), (Vec::from([1, 2]), 9));
        source.acknowledge(1);
        assert_eq!(codes(&source), [2]);
        source.acknowledge(1);
        assert_eq!(codes(&source), [2], "a repeated read gets the same");
    }

    #[test]
    fn a_death_at_any_write_leaves_a_packet_whole_or_absent() {
        for writes in 0..12 {
            let memory = memory();
            open(memory, u64::MAX).push(&[key(1)], 1);
            let mut dying = open(memory, writes);
            let survived = catch_unwind(AssertUnwindSafe(|| dying.push(&[key(2), key(3)], 2))).is_ok();
            let after = open(memory, u64::MAX);
            let expected: (Vec<u16>, u32) = if survived { (Vec::from([1, 2, 3]), 2) } else { (Vec::from([1]), 1) };
            assert_eq!((codes(&after), after.state()), expected, "after {writes} writes");
        }
    }

    #[test]
    fn a_full_ring_drops_packets_whole_and_the_ring_wraps() {
        let mut source = open(memory(), u64::MAX);
        for round in 0..3 * RING_EVENTS as u32 {
            source.push(&[key(round as u16)], 0);
            if round % 2 == 1 {
                source.acknowledge(round + 1);
            }
        }
        assert_eq!(source.room(), RING_EVENTS);
        (0..RING_EVENTS - 1).for_each(|_| source.push(&[key(7)], 0));
        source.push(&[key(1), key(2)], 3);
        assert_eq!((source.room(), source.state()), (1, 3));
    }

    #[test]
    fn a_count_that_fits_nothing_begins_anew() {
        let mut source = open(memory(), u64::MAX);
        source.push(&[key(1), key(2)], 0);
        source.acknowledge(1_000_000);
        assert_eq!(codes(&source), [1, 2]);
        source.acknowledge(1_000_001);
        assert_eq!(codes(&source), [2]);
    }
}
