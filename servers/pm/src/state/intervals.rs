//! The timers of a process as data: interval timers (setitimer(2)) and POSIX timers (timer_create(2)).

use super::signal::Signal;

/// An interval timer.
#[derive(Clone, Copy, Debug, Default)]
pub struct Interval {
    /// When it fires, by its clock; `None`: not set.
    pub deadline_ns: Option<u64>,
    /// Distance of the firings after that; 0: once.
    pub period_ns: u64,
}

/// A process's interval timers.
#[derive(Clone, Copy, Debug, Default)]
pub struct Intervals {
    /// ITIMER_REAL, monotonic time.
    pub real: Interval,
    /// ITIMER_VIRTUAL and ITIMER_PROF, processor time of the process.
    pub processor: [Interval; 2],
    /// When pm looks at the processor time next, monotonic time.
    pub check_ns: Option<u64>,
}

/// A POSIX timer.
#[derive(Clone, Copy, Debug)]
pub struct PosixTimer {
    /// It runs by the wall clock.
    pub real: bool,
    /// The signal; `None`: nobody is told.
    pub signal: Option<Signal>,
    /// The thread that gets it; `None`: any of the process.
    pub tid: Option<u32>,
    /// `sigev_value`.
    pub value: u64,
    /// Deadline in monotonic time, and period.
    pub interval: Interval,
    /// Expiries that the last signal stood for, beyond the first.
    pub overruns: u32,
}
