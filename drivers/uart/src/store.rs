//! The preserved state of a line: received bytes that tty has not acknowledged, the count of output bytes sent, and the settings.
//! Each change is committed by one word, written after the bytes it covers, so that a crash leaves either the old or the new
//! state.
//!
//! ```text
//! word 0   id of the layout, written last at initialisation
//! word 1   number of the first byte in the ring      word 2   number after the last
//! word 3   tty's count of input minus this driver's
//! word 4   bytes of tty's output sent                word 5   settings
//! then     the ring
//! ```

use crate::settings::Settings;
use sys::keep::Keep;

/// Capacity of the ring of received bytes.
pub const RING_BYTES: usize = 4096;
/// Preserved memory of a line, in bytes.
pub const STORE_BYTES: usize = RING + RING_BYTES;

const LAYOUT: usize = 0;
const FIRST: usize = 1;
const END: usize = 2;
const AHEAD: usize = 3;
const SENT: usize = 4;
const SETTINGS: usize = 5;
const WORD_BYTES: usize = 8;
/// Offset of the ring.
const RING: usize = 64;
/// Id of this layout.
const MAGIC: u64 = 0x7561_7274_0000_0001;

/// The preserved state of one line.
pub struct Store<'a> {
    keep: &'a mut Keep,
    /// Its offset in preserved memory.
    start: usize,
}

impl<'a> Store<'a> {
    /// Opens the state of line `index`; an inconsistent one is reset.
    pub fn open(keep: &'a mut Keep, index: usize) -> Self {
        let mut store = Store { keep, start: index * STORE_BYTES };
        let waiting = store.word(END).wrapping_sub(store.word(FIRST));
        if store.word(LAYOUT) != MAGIC || waiting > RING_BYTES as u64 {
            for word in [LAYOUT, FIRST, END, AHEAD, SENT] {
                store.put(word, 0);
            }
            store.put(SETTINGS, Settings::INITIAL.pack());
            store.put(LAYOUT, MAGIC);
        }
        store
    }

    /// Returns the settings of the line.
    pub fn settings(&self) -> Settings {
        Settings::unpack(self.word(SETTINGS)).unwrap_or(Settings::INITIAL)
    }

    /// Stores the settings of the line.
    pub fn set_settings(&mut self, settings: Settings) {
        self.put(SETTINGS, settings.pack());
    }

    /// Returns the number of bytes in the ring.
    pub fn waiting(&self) -> usize {
        self.word(END).wrapping_sub(self.word(FIRST)) as usize
    }

    /// Returns the free space in the ring, in bytes.
    pub fn room(&self) -> usize {
        RING_BYTES - self.waiting()
    }

    /// Appends a received byte to the ring, which is not full.
    pub fn push(&mut self, byte: u8) {
        let end = self.word(END);
        self.keep.write(self.start + RING + end as usize % RING_BYTES, &[byte]);
        self.put(END, end.wrapping_add(1));
    }

    /// Discards the bytes before `position` of tty's count, which tty has acknowledged.
    pub fn taken(&mut self, position: u64) {
        let first = position.wrapping_sub(self.word(AHEAD));
        if first.wrapping_sub(self.word(FIRST)) <= self.waiting() as u64 {
            self.put(FIRST, first);
        } else {
            self.put(AHEAD, position.wrapping_sub(self.word(FIRST)));
        }
    }

    /// Copies the first bytes of the ring without removing them. Returns their number.
    pub fn peek(&self, buffer: &mut [u8]) -> usize {
        let count = buffer.len().min(self.waiting());
        let start = self.word(FIRST) as usize % RING_BYTES;
        let before_end = count.min(RING_BYTES - start);
        self.keep.read(self.start + RING + start, &mut buffer[..before_end]);
        self.keep.read(self.start + RING, &mut buffer[before_end..count]);
        count
    }

    /// Returns how many of the `bytes` bytes of output from `position` on have been sent already.
    pub fn already_sent(&mut self, position: u64, bytes: u64) -> u64 {
        let sent = self.word(SENT).wrapping_sub(position);
        if sent <= bytes {
            return sent;
        }
        self.put(SENT, position);
        0
    }

    /// Counts one more byte of output as sent.
    pub fn count_sent(&mut self) {
        self.put(SENT, self.word(SENT).wrapping_add(1));
    }

    fn word(&self, at: usize) -> u64 {
        self.keep.read_word(self.start / WORD_BYTES + at)
    }

    fn put(&mut self, at: usize, value: u64) {
        self.keep.write_word(self.start / WORD_BYTES + at, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::sync::atomic::AtomicU64;
    use std::boxed::Box;
    use std::vec::Vec;

    fn keep() -> Keep {
        let memory: Vec<AtomicU64> = (0..STORE_BYTES / 4).map(|word| AtomicU64::new(word as u64 * 99)).collect();
        Keep::simulated(Box::leak(memory.into_boxed_slice()), u64::MAX)
    }

    fn peeked(store: &Store) -> Vec<u8> {
        let mut buffer = [0; RING_BYTES];
        let count = store.peek(&mut buffer);
        buffer[..count].to_vec()
    }

    #[test]
    fn input_waits_until_it_is_known_to_be_taken() {
        let mut keep = keep();
        let mut store = Store::open(&mut keep, 0);
        b"hello".iter().for_each(|&byte| store.push(byte));
        store.taken(0);
        assert_eq!(peeked(&store), b"hello");
        let mut store = Store::open(&mut keep, 0);
        assert_eq!(peeked(&store), b"hello", "a successor finds it");
        store.taken(3);
        assert_eq!(peeked(&store), b"lo");
        store.taken(3);
        assert_eq!(peeked(&store), b"lo", "a repeated request gets the same");
    }

    #[test]
    fn the_ring_wraps() {
        let mut keep = keep();
        let mut store = Store::open(&mut keep, 1);
        for round in 0..5 {
            let bytes: Vec<u8> = (0..RING_BYTES - 100).map(|index| (index + round) as u8).collect();
            bytes.iter().for_each(|&byte| store.push(byte));
            assert_eq!(store.room(), 100);
            assert_eq!(peeked(&store), bytes);
            store.taken(((round + 1) * (RING_BYTES - 100)) as u64);
        }
    }

    #[test]
    fn a_count_that_fits_nothing_begins_anew() {
        let mut keep = keep();
        let mut store = Store::open(&mut keep, 0);
        b"abc".iter().for_each(|&byte| store.push(byte));
        store.taken(1_000_000);
        assert_eq!(peeked(&store), b"abc");
        store.taken(1_000_002);
        assert_eq!(peeked(&store), b"c");
        assert_eq!(store.already_sent(500, 10), 0);
        store.count_sent();
        assert_eq!(store.already_sent(500, 10), 1);
    }

    #[test]
    fn output_that_was_sent_is_known_to_the_successor() {
        let mut keep = keep();
        let mut store = Store::open(&mut keep, 0);
        assert_eq!(store.already_sent(0, 5), 0);
        (0..3).for_each(|_| store.count_sent());
        let mut store = Store::open(&mut keep, 0);
        assert_eq!(store.already_sent(0, 5), 3);
        assert_eq!(store.already_sent(3, 5), 0);
        assert_eq!(store.already_sent(40, 5), 0, "tty has dropped what came between");
    }
}
