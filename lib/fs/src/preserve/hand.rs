//! The request in hand: one that has killed the server twice is not tried a third time.
//!
//! Deaths count only as long as the same request gets nowhere: a commit in between is progress.

use sys::keep::Part;

/// Bytes of the record.
pub const BYTES: usize = 64;

const TAG: usize = 0;
const SLOT: usize = 8;
const DEATHS: usize = 16;
/// The last committed transaction at the last death.
const PROGRESS: usize = 24;

/// Deaths after which a request is given up.
const LIMIT: u64 = 2;

/// The request in hand.
#[derive(Debug)]
pub struct Hand {
    part: Part,
    deaths: u64,
}

impl Hand {
    /// None, nor has any been harmful.
    pub fn clear(part: &mut Part) {
        part.fill(0);
    }

    /// The record in `part`. A request that is found there was in hand when the server died.
    pub fn open(part: Part, committed: u64) -> Hand {
        let mut hand = Hand { part, deaths: 0 };
        if hand.part.word(TAG) != 0 {
            let before = if hand.part.word(PROGRESS) == committed { hand.part.word(DEATHS) } else { 0 };
            hand.deaths = before.saturating_add(1);
            hand.part.put_word(DEATHS, hand.deaths);
            hand.part.put_word(PROGRESS, committed);
        }
        hand
    }

    /// Takes a request in hand. False for one that has killed the server too often; it is then no longer in hand.
    #[inline]
    pub fn take(&mut self, tag: u64, slot: usize) -> bool {
        if self.deaths == 0 {
            self.part.put_word(SLOT, slot as u64);
            self.part.put_word(TAG, tag);
            return true;
        }
        let is_same = self.part.word(TAG) == tag && self.part.word(SLOT) == slot as u64;
        let is_harmful = is_same && self.deaths >= LIMIT;
        if !is_same || is_harmful {
            self.deaths = 0;
            self.part.put_word(TAG, 0);
            self.part.put_word(DEATHS, 0);
            self.part.put_word(SLOT, slot as u64);
        }
        if !is_harmful {
            self.part.put_word(TAG, tag);
        }
        !is_harmful
    }

    /// It has been done.
    #[inline]
    pub fn release(&mut self) {
        self.part.put_word(TAG, 0);
        if self.deaths > 0 {
            self.deaths = 0;
            self.part.put_word(DEATHS, 0);
        }
    }
}
