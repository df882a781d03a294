//! Interval timers (`setitimer`, `alarm`) and RLIMIT_CPU.
//!
//! ITIMER_REAL is a timer like any other. The processor-time timers work without help from the kernel: a process cannot use more
//! processor time than real time passes, so pm looks again after the rest has passed in real time, until the rest is zero.

use crate::pm::Pm;
use crate::programs::Programs;
use crate::state::index::{ProcessIndex, ThreadIndex};
use crate::state::intervals::Interval;
use crate::state::limits;
use crate::state::signal::{SigInfo, Signal};
use crate::state::time::{SECOND_NS, from_timeval, to_timeval};
use crate::state::timers::Key;
use crate::state::wait::Ending;
use crate::system::System;
use abi::Errno;

type Result<T> = core::result::Result<T, Errno>;

const ITIMER_REAL: u64 = 0;
const ITIMER_PROF: u64 = 2;
/// The signals of ITIMER_VIRTUAL and ITIMER_PROF.
const PROCESSOR_SIGNALS: [Signal; 2] = [Signal::VTALRM, Signal::PROF];
/// How soon pm looks again at the least: a timer that is nearly due must not keep pm busy.
const MIN_CHECK_NS: u64 = 1_000_000;

/// Rest and period as `struct itimerval`: period first. A running timer never shows zero.
fn to_itimerval(interval: &Interval, now_ns: u64) -> [u64; 4] {
    let rest_ns = interval.deadline_ns.map_or(0, |deadline| deadline.saturating_sub(now_ns).max(1000));
    let ([period_s, period_us], [rest_s, rest_us]) = (to_timeval(interval.period_ns), to_timeval(rest_ns));
    [period_s, period_us, rest_s, rest_us]
}

impl<S: System> Programs<S> {
    /// `getitimer(which, value)`.
    pub fn getitimer(&mut self, t: ThreadIndex, a: &[u64; 7]) -> Result<u64> {
        if a[0] > ITIMER_PROF {
            return Err(Errno::EINVAL);
        }
        let (interval, now_ns) = self.interval(self.table.process_of(t), a[0]);
        self.write_words(t, a[1], to_itimerval(&interval, now_ns))?;
        Ok(0)
    }

    /// An interval timer, and the time of its clock.
    fn interval(&mut self, p: ProcessIndex, which: u64) -> (Interval, u64) {
        match which {
            ITIMER_REAL => (self.table[p].intervals.real, self.system.time_ns().0),
            _ => (self.table[p].intervals.processor[which as usize - 1], self.run_ns(p)),
        }
    }
}

impl<S: System> Pm<S> {
    /// `setitimer(which, new, old)`.
    pub fn setitimer(&mut self, t: ThreadIndex, a: &[u64; 7]) -> Result<u64> {
        if a[0] > ITIMER_PROF {
            return Err(Errno::EINVAL);
        }
        let p = self.programs.table.process_of(t);
        let [period_s, period_us, rest_s, rest_us] = match a[1] {
            0 => [0; 4],
            address => self.programs.read_words(t, address)?,
        };
        let (period_ns, rest_ns) = (from_timeval([period_s, period_us])?, from_timeval([rest_s, rest_us])?);
        let (old, now_ns) = self.programs.interval(p, a[0]);
        let deadline_ns = (rest_ns != 0).then(|| now_ns.saturating_add(rest_ns));
        self.set_interval(p, a[0], Interval { deadline_ns, period_ns });
        if a[2] != 0 {
            self.programs.write_words(t, a[2], to_itimerval(&old, now_ns))?;
        }
        Ok(0)
    }

    /// `alarm(seconds)`: returns the seconds that were left of the last one, rounded, at least 1.
    pub fn alarm(&mut self, p: ProcessIndex, seconds: u64) -> Result<u64> {
        let (old, now_ns) = self.programs.interval(p, ITIMER_REAL);
        let rest_ns = (seconds & 0xffff_ffff) * SECOND_NS;
        let deadline_ns = (rest_ns != 0).then(|| now_ns.saturating_add(rest_ns));
        self.set_interval(p, ITIMER_REAL, Interval { deadline_ns, period_ns: 0 });
        let left_ns = old.deadline_ns.map(|deadline| deadline.saturating_sub(now_ns));
        Ok(left_ns.map_or(0, |left| (left.saturating_add(SECOND_NS / 2) / SECOND_NS).max(1)))
    }

    fn set_interval(&mut self, p: ProcessIndex, which: u64, interval: Interval) {
        if which != ITIMER_REAL {
            self.programs.table[p].intervals.processor[which as usize - 1] = interval;
            return self.plan_processor_check(p);
        }
        let old = core::mem::replace(&mut self.programs.table[p].intervals.real, interval);
        if let Some(deadline) = old.deadline_ns {
            self.timers.cancel(deadline, Key::Real(p));
        }
        if let Some(deadline) = interval.deadline_ns {
            self.timers.set(deadline, Key::Real(p));
        }
    }

    /// ITIMER_REAL has come to its deadline.
    pub fn real_interval_fired(&mut self, p: ProcessIndex, now_ns: u64) {
        let interval = &mut self.programs.table[p].intervals.real;
        let Some(deadline) = interval.deadline_ns.take() else { return };
        if interval.period_ns != 0 {
            // Missed firings are one; the rhythm stays.
            let period = interval.period_ns;
            let next = deadline + ((now_ns - deadline) / period + 1) * period;
            interval.deadline_ns = Some(next);
            self.timers.set(next, Key::Real(p));
        }
        // The queue always has room for SIGALRM, a standard signal.
        let _ = self.send(p, None, SigInfo::kernel(Signal::ALRM));
    }

    /// Plans the next look at the processor time of a process, if anything depends on it.
    pub fn plan_processor_check(&mut self, p: ProcessIndex) {
        if let Some(check) = self.programs.table[p].intervals.check_ns.take() {
            self.timers.cancel(check, Key::Processor(p));
        }
        let process = &self.programs.table[p];
        let limit = process.limits.soft(limits::CPU);
        let limit_ns = (limit != limits::INFINITY).then(|| limit.saturating_mul(SECOND_NS));
        let timers = process.intervals.processor.iter().filter_map(|interval| interval.deadline_ns);
        let Some(earliest) = timers.chain(limit_ns).min() else { return };
        let rest_ns = earliest.saturating_sub(self.programs.run_ns(p)).max(MIN_CHECK_NS);
        let check = self.programs.system.time_ns().0.saturating_add(rest_ns);
        self.programs.table[p].intervals.check_ns = Some(check);
        self.timers.set(check, Key::Processor(p));
    }

    /// Looks at the processor time of a process: timers that are due fire, a limit that is reached is told.
    pub fn check_processor_time(&mut self, p: ProcessIndex) {
        self.programs.table[p].intervals.check_ns = None;
        let run_ns = self.programs.run_ns(p);
        for (which, signal) in PROCESSOR_SIGNALS.into_iter().enumerate() {
            let interval = &mut self.programs.table[p].intervals.processor[which];
            if interval.deadline_ns.is_some_and(|deadline| deadline <= run_ns) {
                interval.deadline_ns = (interval.period_ns != 0).then(|| run_ns + interval.period_ns);
                // The queue always has room for a standard signal.
                let _ = self.send(p, None, SigInfo::kernel(signal));
            }
        }
        self.check_processor_limit(p, run_ns);
        if self.programs.table[p].is_alive() {
            self.plan_processor_check(p);
        }
    }

    /// RLIMIT_CPU: SIGXCPU every second from the soft limit on, SIGKILL at the hard one.
    fn check_processor_limit(&mut self, p: ProcessIndex, run_ns: u64) {
        let Ok(limit) = self.programs.table[p].limits.get(limits::CPU as u64) else { return };
        let run_s = run_ns / SECOND_NS;
        if !self.programs.table[p].is_alive() || run_s < limit.soft {
            return;
        }
        if run_s >= limit.hard {
            return self.exit_process(p, Ending::Killed(Signal::KILL));
        }
        let later = limits::Limit { soft: run_s + 1, ..limit };
        // Raising the soft limit below the hard one is always allowed.
        let _ = self.programs.table[p].limits.set(limits::CPU as u64, later, false);
        // The queue always has room for a standard signal.
        let _ = self.send(p, None, SigInfo::kernel(Signal::XCPU));
    }

    /// Cancels all timers of a process that has ended.
    pub fn cancel_intervals(&mut self, p: ProcessIndex) {
        self.delete_posix_timers(p);
        let intervals = core::mem::take(&mut self.programs.table[p].intervals);
        if let Some(deadline) = intervals.real.deadline_ns {
            self.timers.cancel(deadline, Key::Real(p));
        }
        if let Some(check) = intervals.check_ns {
            self.timers.cancel(check, Key::Processor(p));
        }
    }
}
