//! How often the request in progress has been tried, in preserved memory.
//!
//! Tries count only while the request gets nowhere: a commit in between is progress.

use super::MOST_DEATHS;
use sys::keep::Part;

/// 0: no request is in progress.
const TAG: usize = 0;
const SLOT: usize = 8;
/// The last committed transaction when the request was begun.
const PROGRESS: usize = 16;
/// Tries after the first one, without progress.
const FURTHER_TRIES: usize = 24;

/// The tries of the request in progress.
#[derive(Debug)]
pub struct Tries {
    part: Part,
    /// A predecessor has died with a request in progress.
    inherited: bool,
}

impl Tries {
    /// Bytes of preserved memory that this takes.
    pub const BYTES: usize = 64;

    /// Clears the memory of one or several of them.
    pub fn clear(part: &mut Part) {
        part.fill(0);
    }

    /// The tries recorded in `part`.
    pub fn open(part: Part) -> Tries {
        let inherited = part.word(TAG) != 0;
        Tries { part, inherited }
    }

    /// Begins a request; `committed` is the last transaction. Returns false for one that has killed the service too often.
    #[inline]
    pub fn begin(&mut self, tag: u64, slot: usize, committed: u64) -> bool {
        if self.inherited && !self.begin_inherited(tag, slot, committed) {
            return false;
        }
        self.part.put_word(SLOT, slot as u64);
        self.part.put_word(PROGRESS, committed);
        self.part.put_word(TAG, tag);
        true
    }

    #[cold]
    fn begin_inherited(&mut self, tag: u64, slot: usize, committed: u64) -> bool {
        let is_known = [TAG, SLOT, PROGRESS].map(|word| self.part.word(word)) == [tag, slot as u64, committed];
        let further_tries = self.part.word(FURTHER_TRIES);
        if is_known && further_tries + 1 < u64::from(MOST_DEATHS) {
            self.part.put_word(FURTHER_TRIES, further_tries + 1);
            return true;
        }
        self.end();
        !is_known
    }

    /// The request has been handled.
    #[inline]
    pub fn end(&mut self) {
        self.part.put_word(TAG, 0);
        if self.inherited {
            self.part.put_word(FURTHER_TRIES, 0);
            self.inherited = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use core::sync::atomic::AtomicU64;
    use sys::keep::{Keep, Parts};

    fn memory() -> Parts {
        let words: Vec<_> = (0..Tries::BYTES / 8).map(|_| AtomicU64::new(0)).collect();
        Parts::new(Keep::simulated(words.leak(), u64::MAX))
    }

    fn open(parts: &Parts) -> Tries {
        Tries::open(parts.lend(0..Tries::BYTES).unwrap())
    }

    #[test]
    fn a_request_that_kills_twice_is_refused() {
        let parts = memory();
        assert!(open(&parts).begin(7, 3, 10));
        assert!(open(&parts).begin(7, 3, 10));
        let mut tries = open(&parts);
        assert!(!tries.begin(7, 3, 10));
        assert!(tries.begin(8, 3, 10));
        tries.end();
        drop(tries);
        assert!(open(&parts).begin(7, 3, 10));
    }

    #[test]
    fn other_requests_and_those_with_progress_are_not_refused() {
        let parts = memory();
        for committed in 0..10 {
            assert!(open(&parts).begin(7, 3, committed));
        }
        for tag in 10..20 {
            assert!(open(&parts).begin(tag, 3, 9));
        }
        for _ in 0..10 {
            let mut tries = open(&parts);
            assert!(tries.begin(7, 3, 9));
            tries.end();
        }
    }

    #[test]
    fn deaths_between_birth_and_request_do_not_count() {
        let parts = memory();
        assert!(open(&parts).begin(7, 3, 10));
        (0..5).for_each(|_| drop(open(&parts)));
        assert!(open(&parts).begin(7, 3, 10));
    }
}
