//! The request in hand: one that has killed the server twice is not tried a third time.
//!
//! Tries count only as long as the same request gets nowhere: a commit in between is progress.

use sys::keep::Part;

/// Bytes of the record.
pub const BYTES: usize = 64;

/// 0: nothing is in hand.
const TAG: usize = 0;
const SLOT: usize = 8;
/// The last committed transaction when it was taken in hand.
const PROGRESS: usize = 16;
/// Tries after the first one, without progress.
const FURTHER_TRIES: usize = 24;

/// Further tries that a request gets.
const LIMIT: u64 = 1;

/// The request in hand.
#[derive(Debug)]
pub struct Hand {
    part: Part,
    /// A predecessor has died with something in hand.
    inherited: bool,
}

impl Hand {
    /// Nothing in hand.
    pub fn clear(part: &mut Part) {
        part.fill(0);
    }

    /// The record in `part`.
    pub fn open(part: Part) -> Hand {
        let inherited = part.word(TAG) != 0;
        Hand { part, inherited }
    }

    /// Takes a request in hand; `committed` is the last transaction. False for one that has killed the server too often.
    #[inline]
    pub fn take(&mut self, tag: u64, slot: usize, committed: u64) -> bool {
        if self.inherited && !self.take_inherited(tag, slot, committed) {
            return false;
        }
        self.part.put_word(SLOT, slot as u64);
        self.part.put_word(PROGRESS, committed);
        self.part.put_word(TAG, tag);
        true
    }

    #[cold]
    fn take_inherited(&mut self, tag: u64, slot: usize, committed: u64) -> bool {
        let is_known = [TAG, SLOT, PROGRESS].map(|word| self.part.word(word)) == [tag, slot as u64, committed];
        let tries = self.part.word(FURTHER_TRIES);
        if is_known && tries < LIMIT {
            self.part.put_word(FURTHER_TRIES, tries + 1);
            return true;
        }
        self.release();
        !is_known
    }

    /// It has been done.
    #[inline]
    pub fn release(&mut self) {
        self.part.put_word(TAG, 0);
        if self.inherited {
            self.part.put_word(FURTHER_TRIES, 0);
            self.inherited = false;
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;
    use core::sync::atomic::AtomicU64;
    use std::vec::Vec;
    use sys::keep::{Keep, Parts};

    fn memory() -> Parts {
        let words: Vec<_> = (0..BYTES / 8).map(|_| AtomicU64::new(0)).collect();
        Parts::new(Keep::simulated(words.leak(), u64::MAX))
    }

    fn open(parts: &Parts) -> Hand {
        Hand::open(parts.lend(0..BYTES).unwrap())
    }

    #[test]
    fn a_request_that_kills_twice_is_refused() {
        let parts = memory();
        assert!(open(&parts).take(7, 3, 10));
        assert!(open(&parts).take(7, 3, 10));
        let mut hand = open(&parts);
        assert!(!hand.take(7, 3, 10));
        assert!(hand.take(8, 3, 10));
        hand.release();
        drop(hand);
        assert!(open(&parts).take(7, 3, 10));
    }

    #[test]
    fn others_and_those_that_get_on_are_not_refused() {
        let parts = memory();
        for committed in 0..10 {
            assert!(open(&parts).take(7, 3, committed));
        }
        for tag in 10..20 {
            assert!(open(&parts).take(tag, 3, 9));
        }
        for _ in 0..10 {
            let mut hand = open(&parts);
            assert!(hand.take(7, 3, 9));
            hand.release();
        }
    }

    #[test]
    fn deaths_between_birth_and_request_do_not_count() {
        let parts = memory();
        assert!(open(&parts).take(7, 3, 10));
        (0..5).for_each(|_| drop(open(&parts)));
        assert!(open(&parts).take(7, 3, 10));
    }
}
