//! Idle time, sampled every refresh interval: how much of it nobody used, for the graph of CPU use (part B, 3b).

use abi::rt::CLOCK_HZ;

/// Samples of the idle task's time.
#[derive(Default)]
pub struct Idle {
    /// Length of the interval; 0: nothing is sampled.
    refresh_ns: u64,
    /// Idle time and time at the last sample.
    before: (u64, u64),
    /// Most and last idle time of an interval.
    pub most_ns: u64,
    /// Of the last one.
    pub last_ns: u64,
}

impl Idle {
    /// Begins to sample every `refresh` ticks of harmonic × 50 Hz.
    pub fn start(harmonic: u64, refresh: u64, idle_ns: u64, now_ns: u64) -> Idle {
        let refresh_ns = refresh * 1_000_000_000 / (CLOCK_HZ * harmonic.max(1));
        Idle { refresh_ns, before: (idle_ns, now_ns), ..Idle::default() }
    }

    /// When the next sample is due; 0: never.
    pub fn next_ns(&self) -> u64 {
        if self.refresh_ns == 0 { 0 } else { self.before.1 + self.refresh_ns }
    }

    /// Takes a sample. One that comes late, because real-time processes ran, counts as if it had come in time.
    pub fn sample(&mut self, idle_ns: u64, now_ns: u64) {
        let (idle, time) = (idle_ns.saturating_sub(self.before.0), now_ns.saturating_sub(self.before.1).max(1));
        self.last_ns = (u128::from(idle) * u128::from(self.refresh_ns) / u128::from(time)) as u64;
        self.most_ns = self.most_ns.max(self.last_ns);
        self.before = (idle_ns, now_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_sample_is_brought_to_the_length_of_the_interval() {
        let mut idle = Idle::start(20, 1000, 100, 0);
        assert_eq!(idle.next_ns(), 1_000_000_000);
        idle.sample(600_000_100, 1_000_000_000);
        assert_eq!((idle.last_ns, idle.most_ns), (600_000_000, 600_000_000));
        idle.sample(1_000_000_100, 3_000_000_000);
        assert_eq!((idle.last_ns, idle.most_ns), (200_000_000, 600_000_000));
        assert_eq!(Idle::default().next_ns(), 0);
    }
}
