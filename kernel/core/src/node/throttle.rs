//! How much of the time Linux's real-time threads have used, and whether they pause. All times are in ticks.
//!
//! Neighbours: `boost::throttle` (asks, and lets them pause).

use zerocopy::FromZeros;

/// What they may use of a period, in percent, without a pause.
const SHARE: u64 = 95;

/// The period that runs, and the pause.
#[derive(Debug, FromZeros)]
pub struct Throttle {
    /// Begin of the period.
    since: u64,
    /// What they had used then, since boot.
    used: u64,
    /// End of the pause; 0: there is none.
    until: u64,
}

impl Throttle {
    /// Lets the next look end the period: a thread has changed its queue.
    pub fn end_period(&mut self) {
        self.since = 0;
    }

    /// Returns true when the period has lasted for `length` at `now`.
    pub fn has_lasted(&self, now: u64, length: u64) -> bool {
        now.saturating_sub(self.since) >= length
    }

    /// Begins the next period at `now`, `used` being what they have used since boot. Returns true when it was more than
    /// the share of the one before.
    pub fn begin_period(&mut self, now: u64, used: u64) -> bool {
        let is_over = used.saturating_sub(self.used) >= now.saturating_sub(self.since) / 100 * SHARE;
        *self = Throttle { since: now, used, until: 0 };
        is_over
    }

    /// Begins a pause; the next period begins at its end.
    pub fn pause(&mut self, until: u64) {
        (self.since, self.until) = (until, until);
    }

    /// Returns the end of the pause, if there is one, and ends it when that has come.
    pub fn pause_end(&mut self, now: u64) -> Option<u64> {
        let end = self.until;
        self.until = if now < end { end } else { 0 };
        (end != 0).then_some(end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_period_ends_when_it_has_lasted_or_a_queue_has_changed() {
        let mut throttle = Throttle::new_zeroed();
        throttle.begin_period(100, 0);
        assert_eq!([149, 150].map(|now| throttle.has_lasted(now, 50)), [false, true]);
        throttle.end_period();
        assert!(throttle.has_lasted(101, 50));
    }

    #[test]
    fn each_period_has_a_share_of_its_own() {
        let mut throttle = Throttle::new_zeroed();
        throttle.begin_period(1000, 500);
        assert!(!throttle.begin_period(2000, 500 + 949));
        assert!(throttle.begin_period(3000, 500 + 949 + 950));
        assert!(!throttle.begin_period(4000, 500 + 949 + 950));
    }

    #[test]
    fn a_pause_lasts_until_its_end_and_is_told_once_more_then() {
        let mut throttle = Throttle::new_zeroed();
        assert_eq!(throttle.pause_end(0), None);
        throttle.pause(1000);
        assert_eq!(
            [900, 999, 1000, 1000].map(|now| throttle.pause_end(now)),
            [Some(1000), Some(1000), Some(1000), None]
        );
    }

    #[test]
    fn the_next_period_begins_at_the_end_of_the_pause_and_has_none() {
        let mut throttle = Throttle::new_zeroed();
        throttle.begin_period(0, 100);
        throttle.pause(1000);
        assert_eq!([1049, 1050].map(|now| throttle.has_lasted(now, 50)), [false, true]);
        assert!(!throttle.begin_period(2000, 100 + 949));
        assert_eq!(throttle.pause_end(2000), None);
    }
}
