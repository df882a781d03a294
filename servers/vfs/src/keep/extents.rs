//! Runs of places of different lengths: which parts of an area are in use.
//!
//! As in `pool`, the state of the last commit may refer to what is freed, so it is used again only in another turn.

use super::pool::{RESERVE, ROOT};
use alloc::{collections::BTreeMap, vec::Vec};
use core::cell::{Cell, RefCell};

/// See the head of the file.
#[derive(Debug)]
pub struct Extents {
    count: u32,
    /// Length by first place, of those in use and those freed in turn `turn`.
    taken: RefCell<BTreeMap<u32, u32>>,
    recent: RefCell<Vec<u32>>,
    turn: Cell<u64>,
}

impl Extents {
    /// All of `count` places free.
    pub fn new(count: usize) -> Extents {
        Extents { count: count as u32, taken: RefCell::default(), recent: RefCell::default(), turn: Cell::new(0) }
    }

    /// Takes the first free run of this length for a user, all of whom leave the last places to the superuser. Returns its first place.
    pub fn take(&self, length: u32, user: u32, turn: u64) -> Option<u32> {
        self.settle(turn);
        let mut taken = self.taken.borrow_mut();
        let mut end = 0;
        for (&first, &length_taken) in taken.iter() {
            if first - end >= length {
                break;
            }
            end = first + length_taken;
        }
        let limit = if user == ROOT { self.count } else { self.count - self.count / RESERVE as u32 };
        if limit.saturating_sub(end) < length {
            return None;
        }
        taken.insert(end, length);
        Some(end)
    }

    /// Gives the run that begins here back.
    #[expect(clippy::disallowed_methods, reason = "small, of a call in progress: from the heap's reserve")]
    pub fn release(&self, first: u32, turn: u64) {
        self.settle(turn);
        self.recent.borrow_mut().push(first);
    }

    /// After a restart: this run is in use. False: it overlaps another, or does not exist.
    pub fn claim(&self, first: u32, length: u32) -> bool {
        let mut taken = self.taken.borrow_mut();
        let before = taken.range(..=first).next_back().map_or(0, |(&first, &length)| first + length);
        let after = taken.range(first..).next().map_or(self.count, |(&first, _)| first);
        let fits = before <= first && first.checked_add(length).is_some_and(|end| end <= after);
        if fits {
            taken.insert(first, length);
        }
        fits
    }

    /// What was freed in an earlier turn is free.
    fn settle(&self, turn: u64) {
        if self.turn.replace(turn) != turn {
            let mut taken = self.taken.borrow_mut();
            for first in self.recent.take() {
                taken.remove(&first);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_gap_that_is_long_enough_is_taken() {
        let extents = Extents::new(10);
        assert_eq!([4, 4].map(|length| extents.take(length, ROOT, 1)), [Some(0), Some(4)]);
        assert_eq!(extents.take(4, ROOT, 1), None);
        extents.release(0, 1);
        assert_eq!(extents.take(3, ROOT, 1), None);
        assert_eq!([3, 2, 1].map(|length| extents.take(length, ROOT, 2)), [Some(0), Some(8), Some(3)]);
        assert_eq!(extents.take(1, ROOT, 2), None);
    }

    #[test]
    fn users_leave_the_end_to_the_superuser() {
        let extents = Extents::new(32);
        assert_eq!([31, 30, 1].map(|length| extents.take(length, 7, 1)), [None, Some(0), None]);
        assert_eq!(extents.take(2, ROOT, 1), Some(30));
    }

    #[test]
    fn a_restart_claims_what_does_not_overlap() {
        let extents = Extents::new(10);
        assert!(extents.claim(2, 3));
        assert!(!extents.claim(4, 2));
        assert!(!extents.claim(1, 2));
        assert!(!extents.claim(8, 3));
        assert!(extents.claim(5, 5));
        assert_eq!((extents.take(3, ROOT, 1), extents.take(2, ROOT, 1)), (None, Some(0)));
    }
}
