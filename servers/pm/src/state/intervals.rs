//! The interval timers of a process as data (setitimer(2)).

/// How soon a periodic timer fires again at the least, so that it does not keep pm busy.
const MIN_PERIOD_NS: u64 = 100_000;

/// An interval timer.
#[derive(Clone, Copy, Debug, Default)]
pub struct Interval {
    /// When it fires, by its clock; `None`: not set. A periodic timer that has fired keeps its deadline until it is restarted.
    pub deadline_ns: Option<u64>,
    /// Distance of the firings after that; 0: once.
    pub period_ns: u64,
}

impl Interval {
    /// Time until it fires next, were it restarted at once; 0: it is not set.
    pub fn rest_ns(&self, now_ns: u64) -> u64 {
        match self.deadline_ns {
            None => 0,
            Some(deadline) if deadline > now_ns => deadline - now_ns,
            Some(_) if self.period_ns == 0 => 0,
            Some(deadline) => self.period_ns - (now_ns - deadline) % self.period_ns,
        }
    }

    /// Moves a deadline that has passed to the first period after `now_ns`. Returns how many periods it has missed.
    pub fn restart(&mut self, now_ns: u64) -> u64 {
        let Some(deadline) = self.deadline_ns.filter(|deadline| *deadline <= now_ns) else { return 0 };
        let missed = (now_ns - deadline).checked_div(self.period_ns);
        self.deadline_ns = missed.map(|missed| deadline.saturating_add((missed + 1).saturating_mul(self.period_ns)));
        missed.unwrap_or(0)
    }

    /// When a timer of pm has to fire for it. Periods below `MIN_PERIOD_NS` are counted and not each waited for.
    pub fn wake_ns(&self, now_ns: u64) -> Option<u64> {
        let is_short = self.period_ns != 0 && self.period_ns < MIN_PERIOD_NS;
        let earliest = if is_short { now_ns.saturating_add(MIN_PERIOD_NS) } else { 0 };
        self.deadline_ns.map(|deadline| deadline.max(earliest))
    }
}

/// A process's interval timers.
#[derive(Clone, Copy, Debug, Default)]
pub struct Intervals {
    /// ITIMER_REAL, monotonic time.
    pub real: Interval,
    /// ITIMER_VIRTUAL and ITIMER_PROF, processor time of the process.
    pub processor: [Interval; 2],
}

#[cfg(test)]
mod tests {
    use super::*;

    fn every(deadline_ns: u64, period_ns: u64) -> Interval {
        Interval { deadline_ns: Some(deadline_ns), period_ns }
    }

    #[test]
    fn a_restarted_timer_keeps_its_rhythm_and_counts_what_it_missed() {
        let mut interval = every(100, 30);
        assert_eq!((interval.rest_ns(40), interval.rest_ns(100), interval.rest_ns(175)), (60, 30, 15));
        assert_eq!((interval.restart(99), interval.deadline_ns), (0, Some(100)));
        assert_eq!((interval.restart(175), interval.deadline_ns), (2, Some(190)));
        assert_eq!((interval.restart(190), interval.deadline_ns), (0, Some(220)));
    }

    #[test]
    fn a_timer_without_a_period_ends() {
        let mut interval = every(100, 0);
        assert_eq!((interval.rest_ns(120), interval.restart(120), interval.deadline_ns), (0, 0, None));
    }

    #[test]
    fn only_short_periods_are_waited_for_longer() {
        assert_eq!(every(100, 1).wake_ns(90), Some(90 + MIN_PERIOD_NS));
        assert_eq!(every(100, MIN_PERIOD_NS).wake_ns(90), Some(100));
        assert_eq!(every(100, 0).wake_ns(90), Some(100));
    }
}
