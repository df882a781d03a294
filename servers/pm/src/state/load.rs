//! Load averages: how many threads of programs were running or ready, averaged over one, five and fifteen minutes.
//!
//! They are sampled at heartbeats, when five seconds have passed since the last sample, as Linux does. What waits for a server does not
//! count, so the work of servers shows in no average.

/// Time between two samples.
const PERIOD_NS: u64 = 5_000_000_000;
/// One, in averages.
pub const ONE: u64 = 1 << 11;
/// What is left of an average after a period: 1/exp(5 s / 1 min) and so on, times `ONE`.
const DECAY: [u64; 3] = [1884, 2014, 2037];
/// Periods after which nothing is left of any average.
const MAX_PERIODS: u64 = 4096;

/// The averages.
#[derive(Clone, Copy, Debug, Default)]
pub struct Loads {
    averages: [u64; 3],
    sampled_ns: u64,
}

impl Loads {
    /// Returns the averages of one, five and fifteen minutes, times [`ONE`].
    pub fn averages(&self) -> [u64; 3] {
        self.averages
    }

    /// Returns whether it is time for a sample.
    pub fn is_due(&self, now_ns: u64) -> bool {
        now_ns.saturating_sub(self.sampled_ns) >= PERIOD_NS
    }

    /// Counts `running` threads for the time since the last sample.
    pub fn sample(&mut self, now_ns: u64, running: u64) {
        let periods = now_ns.saturating_sub(self.sampled_ns) / PERIOD_NS;
        self.sampled_ns += periods * PERIOD_NS;
        for _ in 0..periods.min(MAX_PERIODS) {
            for (average, decay) in self.averages.iter_mut().zip(DECAY) {
                let active = running * ONE;
                let rounding = if active >= *average { ONE - 1 } else { 0 };
                *average = (*average * decay + active * (ONE - decay) + rounding) / ONE;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_average_comes_near_what_runs_and_decays() {
        let mut loads = Loads::default();
        assert!(!loads.is_due(4_999_999_999) && loads.is_due(5_000_000_000));
        (1..=12).for_each(|n| loads.sample(n * PERIOD_NS, 2));
        let [one, five, fifteen] = loads.averages().map(|average| average * 100 / ONE);
        assert!(
            (125..130).contains(&one) && (35..40).contains(&five) && (12..15).contains(&fifteen),
            "{one} {five} {fifteen}"
        );
        loads.sample(100_000 * PERIOD_NS, 0);
        assert_eq!(loads.averages(), [0; 3]);
        assert!(!loads.is_due(100_000 * PERIOD_NS + 1));
    }
}
