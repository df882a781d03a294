//! How much of the time Linux's real-time threads have used, and whether they pause. All times are in ticks.
//!
//! Neighbours: `boost::throttle` (asks, and lets them pause).

use abi::{endpoint::FIRST_SERVICE, endpoint::SLOTS};
use core::ops::Range;
use zerocopy::FromZeros;

/// What they may use of a period, in percent, without a pause.
const SHARE: u64 = 95;
/// Threads looked at between two preemption points.
const LOOKED_AT_ONCE: usize = 64;

/// The period that runs, the pause, and the walk over all threads that either needs.
#[derive(Debug, FromZeros)]
pub struct Throttle {
    /// Begin of the period.
    since: u64,
    /// What they had used then, since boot.
    used: u64,
    /// End of the pause; 0: there is none.
    until: u64,
    /// What they have used since boot, as far as it is counted.
    counted: u64,
    /// The walk adds up what they have used; else it changes their queues.
    is_count: bool,
    /// Slots, the last ones, that the walk has not reached.
    left: u16,
}

impl Throttle {
    /// Lets the next look end the period: a thread has changed its queue.
    pub fn end_period(&mut self) {
        self.since = 0;
    }

    /// Begins to count, if the period has lasted for `length` at `now`.
    pub fn check(&mut self, now: u64, length: u64) {
        if self.is_done() && now.saturating_sub(self.since) >= length {
            self.begin(true);
        }
    }

    fn begin(&mut self, is_count: bool) {
        (self.is_count, self.left, self.counted) = (is_count, (SLOTS - FIRST_SERVICE) as u16, 0);
    }

    /// Returns the next slots of the walk, and whether they are counted.
    pub fn next_slots(&mut self) -> (bool, Range<usize>) {
        let first = SLOTS - self.left as usize;
        let end = SLOTS.min(first + LOOKED_AT_ONCE);
        self.left = (SLOTS - end) as u16;
        (self.is_count, first..end)
    }

    /// Returns true while they pause.
    pub fn is_pause(&self) -> bool {
        self.until != 0
    }

    /// Returns true when there is no walk, or it has reached the last thread.
    pub fn is_done(&self) -> bool {
        self.left == 0
    }

    /// Counts what a thread has used since boot.
    pub fn count(&mut self, ticks: u64) {
        self.counted += ticks;
    }

    /// Begins the next period at `now`: all threads are counted. Returns true when they have used more than the share of the
    /// one before.
    pub fn begin_period(&mut self, now: u64) -> bool {
        let is_over = self.counted.saturating_sub(self.used) >= now.saturating_sub(self.since) / 100 * SHARE;
        (self.since, self.used, self.until) = (now, self.counted, 0);
        is_over
    }

    /// Begins a pause; the next period begins at its end.
    pub fn pause(&mut self, until: u64) {
        (self.since, self.until) = (until, until);
        self.begin(false);
    }

    /// Returns the end of the pause, if there is one, and ends it when that has come.
    pub fn pause_end(&mut self, now: u64) -> Option<u64> {
        let end = self.until;
        if end != 0 && now >= end {
            self.until = 0;
            self.begin(false);
        }
        (end != 0).then_some(end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Begins the next period at `now`, with `used` by one thread.
    fn begin_period(throttle: &mut Throttle, now: u64, used: u64) -> bool {
        throttle.begin(true);
        throttle.count(used);
        walk(throttle, true);
        throttle.begin_period(now)
    }

    /// Ends a walk, which reaches each thread once.
    fn walk(throttle: &mut Throttle, is_count: bool) {
        let mut next = FIRST_SERVICE;
        while !throttle.is_done() {
            let (what, slots) = throttle.next_slots();
            assert_eq!((what, slots.start), (is_count, next));
            assert!(slots.len() <= LOOKED_AT_ONCE && !slots.is_empty());
            next = slots.end;
        }
        assert_eq!(next, SLOTS);
    }

    fn counts(throttle: &mut Throttle, now: u64, length: u64) -> bool {
        throttle.check(now, length);
        !throttle.is_done()
    }

    #[test]
    fn a_period_ends_when_it_has_lasted_or_a_queue_has_changed() {
        let mut throttle = Throttle::new_zeroed();
        begin_period(&mut throttle, 100, 0);
        assert_eq!([149, 150].map(|now| counts(&mut throttle, now, 50)), [false, true]);
        begin_period(&mut throttle, 150, 0);
        throttle.end_period();
        assert!(counts(&mut throttle, 151, 50));
    }

    #[test]
    fn a_walk_is_not_begun_again_before_its_end() {
        let mut throttle = Throttle::new_zeroed();
        throttle.check(100, 50);
        let (_, first) = throttle.next_slots();
        throttle.check(200, 50);
        assert_eq!(throttle.next_slots().1.start, first.end);
    }

    #[test]
    fn each_period_has_a_share_of_its_own() {
        let mut throttle = Throttle::new_zeroed();
        begin_period(&mut throttle, 1000, 500);
        assert!(!begin_period(&mut throttle, 2000, 500 + 949));
        assert!(begin_period(&mut throttle, 3000, 500 + 949 + 950));
        assert!(!begin_period(&mut throttle, 4000, 500 + 949 + 950));
    }

    #[test]
    fn a_pause_lasts_until_its_end_and_is_told_once_more_then() {
        let mut throttle = Throttle::new_zeroed();
        assert_eq!(throttle.pause_end(0), None);
        throttle.pause(1000);
        walk(&mut throttle, false);
        assert_eq!([900, 999].map(|now| throttle.pause_end(now)), [Some(1000); 2]);
        assert!(throttle.is_done());
        assert_eq!(throttle.pause_end(1000), Some(1000));
        walk(&mut throttle, false);
        assert_eq!(throttle.pause_end(1000), None);
    }

    #[test]
    fn the_next_period_begins_at_the_end_of_the_pause_and_has_none() {
        let mut throttle = Throttle::new_zeroed();
        begin_period(&mut throttle, 0, 100);
        throttle.pause(1000);
        walk(&mut throttle, false);
        assert_eq!([1049, 1050].map(|now| counts(&mut throttle, now, 50)), [false, true]);
        assert!(!begin_period(&mut throttle, 2000, 100 + 949));
        assert_eq!(throttle.pause_end(2000), None);
    }
}
