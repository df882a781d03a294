//! Which records of the ring to read next, and how many were lost: overwritten before they were read.

use abi::trace::{RING_HEADER_BYTES, RING_RECORDS, Record};

/// A reader's position.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Position {
    next: u64,
    lost: u64,
}

/// A stretch of records without a gap: number of the first one, and how many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    first: u64,
    /// Number of records.
    pub count: usize,
}

impl Stretch {
    /// Where it begins in the ring, in bytes.
    pub fn offset(&self) -> u64 {
        RING_HEADER_BYTES as u64 + self.first % RING_RECORDS as u64 * size_of::<Record>() as u64
    }
}

impl Position {
    /// Behind the `written` records that there are.
    pub fn at_end(written: u64) -> Position {
        Position { next: written, lost: 0 }
    }

    /// Records that were lost.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Returns what to read, at most `limit` records, when `written` have been. `None`: nothing new.
    pub fn next(&mut self, written: u64, limit: usize) -> Option<Stretch> {
        self.skip_overwritten(written);
        let until_end = RING_RECORDS as u64 - self.next % RING_RECORDS as u64;
        let count = written.saturating_sub(self.next).min(until_end).min(limit as u64);
        (count > 0).then_some(Stretch { first: self.next, count: count as usize })
    }

    /// The stretch has been read, and then `written` records had been written. Returns how many of its first ones are not valid.
    pub fn finish(&mut self, stretch: Stretch, written: u64) -> usize {
        self.skip_overwritten(written);
        let end = stretch.first + stretch.count as u64;
        let invalid = self.next.saturating_sub(stretch.first).min(stretch.count as u64);
        self.next = self.next.max(end);
        invalid as usize
    }

    fn skip_overwritten(&mut self, written: u64) {
        let oldest = written.saturating_sub(RING_RECORDS as u64);
        self.lost += oldest.saturating_sub(self.next);
        self.next = self.next.max(oldest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RING: u64 = RING_RECORDS as u64;

    #[test]
    fn records_are_read_in_order_and_once() {
        let mut position = Position::at_end(10);
        assert_eq!(position.next(10, 100), None);
        let stretch = position.next(15, 3).expect("there are five");
        assert_eq!((stretch.offset(), stretch.count), (16 + 10 * 80, 3));
        assert_eq!(position.finish(stretch, 15), 0);
        let stretch = position.next(15, 3).expect("there are two more");
        assert_eq!((stretch.offset(), stretch.count), (16 + 13 * 80, 2));
        assert_eq!((position.finish(stretch, 15), position.next(15, 3), position.lost()), (0, None, 0));
    }

    #[test]
    fn a_stretch_ends_at_the_end_of_the_ring() {
        let mut position = Position::at_end(RING - 2);
        let stretch = position.next(RING + 5, 100).expect("there are seven");
        assert_eq!((stretch.offset(), stretch.count), (16 + (RING - 2) * 80, 2));
        position.finish(stretch, RING + 5);
        let stretch = position.next(RING + 5, 100).expect("there are five");
        assert_eq!((stretch.offset(), stretch.count), (16, 5));
    }

    #[test]
    fn what_was_overwritten_before_is_lost_and_counted() {
        let mut position = Position::at_end(0);
        let stretch = position.next(RING + 7, 10).expect("the ring is full");
        assert_eq!((stretch.offset(), position.lost()), (16 + 7 * 80, 7));
    }

    #[test]
    fn what_was_overwritten_while_it_was_read_is_lost_and_counted() {
        let mut position = Position::at_end(0);
        let stretch = position.next(RING, 10).expect("the ring is full");
        assert_eq!(position.finish(stretch, RING + 4), 4);
        assert_eq!(position.lost(), 4);
        let stretch = position.next(RING + 4, 10).expect("there are more");
        assert_eq!((stretch.offset(), position.finish(stretch, RING + 4 + 100)), (16 + 10 * 80, 10));
        assert_eq!(position.lost(), 4 + 94, "those behind the stretch too");
    }
}
