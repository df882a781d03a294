//! How much of the time Linux's real-time threads have used, and whether they pause. All times are in ticks.
//!
//! Neighbours: `boost::throttle` (asks, and lets them pause).

/// What they may use of a period, in percent, without a pause.
const SHARE: u64 = 95;

/// The period that runs, and the pause.
#[derive(Debug)]
pub struct Throttle {
    /// Begin of the period.
    since: u64,
    /// What they had used then, since boot.
    used: u64,
    /// End of the pause; 0: there is none.
    until: u64,
}

impl Throttle {
    /// No period. All bytes zero.
    pub const NEW: Throttle = Throttle { since: 0, used: 0, until: 0 };

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
