//! Which request a service has died of, and how often, in preserved memory.
//!
//! A death counts only when the request got nowhere in it: a commit of its own is progress. Other requests may run in between; they
//! acquit nobody.

use super::MAX_DEATHS;
use sys::keep::Part;

/// The request in progress: 0 for none.
const TAG: usize = 0;
const SLOT: usize = 8;
/// The last committed transaction when it was begun.
const PROGRESS: usize = 16;
/// Deaths of the suspect, and the suspect.
const DEATHS: usize = 24;
const SUSPECT_TAG: usize = 32;
const SUSPECT_SLOT: usize = 40;

/// The tries of the request in progress, and of the last one that a predecessor died of.
#[derive(Debug)]
pub struct Tries {
    part: Part,
    /// A predecessor has died of some request.
    has_suspect: bool,
}

impl Tries {
    /// Bytes of preserved memory that this takes.
    pub const BYTES: usize = 64;

    /// Clears the memory of one or several of them.
    pub fn clear(part: &mut Part) {
        part.fill(0);
    }

    /// The tries recorded in `part`; `committed` is the last transaction.
    pub fn open(part: Part, committed: u64) -> Tries {
        let has_suspect = part.word(SUSPECT_TAG) != 0;
        let mut tries = Tries { part, has_suspect };
        let [tag, slot, progress] = [TAG, SLOT, PROGRESS].map(|word| tries.part.word(word));
        if tag != 0 {
            let before = if tries.is_suspect(tag, slot) { tries.part.word(DEATHS) } else { 0 };
            // A death in between forgets one: that gives the request another try.
            tries.part.put_word(TAG, 0);
            tries.suspect(tag, slot, if progress == committed { before + 1 } else { 0 });
        }
        tries
    }

    /// Begins a request; `committed` is the last transaction. Returns false for one that has killed the service too often.
    #[inline]
    pub fn begin(&mut self, tag: u64, slot: usize, committed: u64) -> bool {
        if self.has_suspect && self.is_refused(tag, slot as u64) {
            return false;
        }
        self.part.put_word(SLOT, slot as u64);
        self.part.put_word(PROGRESS, committed);
        self.part.put_word(TAG, tag);
        true
    }

    /// The request has been handled.
    #[inline]
    pub fn end(&mut self) {
        if self.has_suspect && self.is_suspect(self.part.word(TAG), self.part.word(SLOT)) {
            self.suspect(0, 0, 0);
        }
        self.part.put_word(TAG, 0);
    }

    /// The request waits; it is begun again.
    pub fn suspend(&mut self) {
        self.part.put_word(TAG, 0);
    }

    fn is_suspect(&self, tag: u64, slot: u64) -> bool {
        self.part.word(SUSPECT_TAG) == tag && self.part.word(SUSPECT_SLOT) == slot
    }

    fn suspect(&mut self, tag: u64, slot: u64, deaths: u64) {
        self.part.put_word(DEATHS, deaths);
        self.part.put_word(SUSPECT_SLOT, slot);
        self.part.put_word(SUSPECT_TAG, tag);
        self.has_suspect = tag != 0;
    }

    /// A request is refused once; what asks again may have been mended.
    #[cold]
    fn is_refused(&mut self, tag: u64, slot: u64) -> bool {
        let is_refused = self.is_suspect(tag, slot) && self.part.word(DEATHS) >= u64::from(MAX_DEATHS);
        if is_refused {
            self.suspect(0, 0, 0);
        }
        is_refused
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sys::keep::{Keep, Parts};

    fn memory() -> Parts {
        Parts::new(Keep::simulated(sys::host::zeroed(Tries::BYTES), u64::MAX))
    }

    fn open(parts: &Parts, committed: u64) -> Tries {
        Tries::open(parts.lend(0..Tries::BYTES).unwrap(), committed)
    }

    #[test]
    fn a_request_that_kills_twice_is_refused() {
        let parts = memory();
        assert!(open(&parts, 10).begin(7, 3, 10));
        assert!(open(&parts, 10).begin(7, 3, 10));
        let mut tries = open(&parts, 10);
        assert!(!tries.begin(7, 3, 10));
        assert!(tries.begin(8, 3, 10));
        tries.end();
        drop(tries);
        assert!(open(&parts, 10).begin(7, 3, 10));
    }

    #[test]
    fn other_requests_and_those_with_progress_are_not_refused() {
        let parts = memory();
        for committed in 0..10 {
            assert!(open(&parts, committed).begin(7, 3, committed));
        }
        for tag in 10..20 {
            assert!(open(&parts, 9).begin(tag, 3, 9));
        }
        for _ in 0..10 {
            let mut tries = open(&parts, 9);
            assert!(tries.begin(7, 3, 9));
            tries.end();
        }
    }

    #[test]
    fn deaths_between_start_and_request_do_not_count() {
        let parts = memory();
        assert!(open(&parts, 10).begin(7, 3, 10));
        (0..5).for_each(|_| drop(open(&parts, 10)));
        assert!(open(&parts, 10).begin(7, 3, 10));
    }

    #[test]
    fn a_request_that_kills_is_refused_whatever_runs_before_it() {
        let parts = memory();
        for committed in [10, 20] {
            let mut tries = open(&parts, committed);
            assert!(tries.begin(5, 3, committed));
            tries.end();
            assert!(tries.begin(6, 3, committed + 1));
            tries.suspend();
            assert!(tries.begin(7, 3, committed + 9));
            drop(tries);
            drop(open(&parts, committed + 9));
        }
        let mut tries = open(&parts, 29);
        assert!(tries.begin(6, 3, 29));
        tries.end();
        assert!(!tries.begin(7, 3, 30));
    }

    #[test]
    fn a_request_that_waits_is_not_acquitted() {
        let parts = memory();
        for _ in 0..2 {
            let mut tries = open(&parts, 10);
            assert!(tries.begin(7, 3, 10));
            tries.suspend();
            assert!(tries.begin(7, 3, 10));
        }
        assert!(!open(&parts, 10).begin(7, 3, 10));
    }
}
