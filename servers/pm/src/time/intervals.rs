//! Interval timers (`setitimer`, `alarm`) and RLIMIT_CPU.
//!
//! ITIMER_REAL is a timer like any other. The processor-time timers work without help from the kernel: a process cannot use more
//! processor time than real time passes, so pm looks again after the rest has passed in real time, until the rest is zero.

use crate::pm::Pm;
use crate::state::index::{ProcessIndex, ThreadIndex};
use crate::state::intervals::{Interval, Intervals};
use crate::state::limits;
use crate::state::signal::{SigInfo, Signal};
use crate::state::time::{MICRO_NS, SECOND_NS, from_timeval, to_timeval};
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
/// Time for each look that is planned.
const CHECK_SHARE_NS: u64 = 50_000;

/// An interval timer as programs see it.
struct Shown {
    period_ns: u64,
    /// 0: it does not run.
    rest_ns: u64,
}

impl Shown {
    /// A `struct itimerval`: period first.
    fn to_itimerval(&self) -> [u64; 4] {
        let ([period_s, period_us], [rest_s, rest_us]) = (to_timeval(self.period_ns), to_timeval(self.rest_ns));
        [period_s, period_us, rest_s, rest_us]
    }
}

impl<S: System> Pm<S> {
    /// `getitimer(which, value)`.
    pub fn getitimer(&mut self, t: ThreadIndex, a: &[u64; 7]) -> Result<u64> {
        if a[0] > ITIMER_PROF {
            return Err(Errno::EINVAL);
        }
        let (shown, _) = self.interval(self.programs.table.process_of(t), a[0]);
        self.programs.write_words(t, a[1], shown.to_itimerval())?;
        Ok(0)
    }

    /// What an interval timer shows, and the time of its clock.
    fn interval(&mut self, p: ProcessIndex, which: u64) -> (Shown, u64) {
        let intervals = self.programs.table[p].intervals;
        let (interval, now_ns, runs) = match which {
            ITIMER_REAL => (intervals.real, self.programs.system.time_ns().0, self.timers.is_set(Key::Real(p))),
            _ => (intervals.processor[which as usize - 1], self.programs.run_ns(p), true),
        };
        let deadline_ns = interval.deadline_ns.filter(|_| runs);
        // A running timer never shows zero.
        let rest_ns = deadline_ns.map_or(0, |deadline| deadline.saturating_sub(now_ns).max(MICRO_NS));
        (Shown { period_ns: interval.period_ns, rest_ns }, now_ns)
    }

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
        let (old, now_ns) = self.interval(p, a[0]);
        let deadline_ns = (rest_ns != 0).then(|| now_ns.saturating_add(rest_ns));
        let written = self.programs.write_old(t, a[2], old.to_itimerval().map(u64::to_le_bytes).as_flattened());
        self.set_interval(p, a[0], Interval { deadline_ns, period_ns });
        written.map(|()| 0)
    }

    /// `alarm(seconds)`: returns the seconds that were left of the last one, rounded, at least 1.
    pub fn alarm(&mut self, p: ProcessIndex, seconds: u64) -> Result<u64> {
        let (old, now_ns) = self.interval(p, ITIMER_REAL);
        let rest_ns = (seconds & 0xffff_ffff) * SECOND_NS;
        let deadline_ns = (rest_ns != 0).then(|| now_ns.saturating_add(rest_ns));
        self.set_interval(p, ITIMER_REAL, Interval { deadline_ns, period_ns: 0 });
        let is_running = old.rest_ns != 0;
        Ok(if is_running { (old.rest_ns.saturating_add(SECOND_NS / 2) / SECOND_NS).max(1) } else { 0 })
    }

    fn set_interval(&mut self, p: ProcessIndex, which: u64, interval: Interval) {
        if which != ITIMER_REAL {
            self.programs.table[p].intervals.processor[which as usize - 1] = interval;
            return self.plan_processor_check(p);
        }
        self.programs.table[p].intervals.real = interval;
        self.timers.cancel(Key::Real(p));
        if let Some(deadline) = interval.deadline_ns {
            self.set_timer(deadline, Key::Real(p));
        }
    }

    /// ITIMER_REAL has come to its deadline. A periodic one starts again when the signal is taken, as in Linux; never if it is ignored.
    pub fn real_interval_fired(&mut self, p: ProcessIndex) {
        let interval = &mut self.programs.table[p].intervals.real;
        if interval.period_ns == 0 {
            interval.deadline_ns = None;
        }
        // Standard signals are always accepted.
        let _ = self.send(p, None, SigInfo::kernel(Signal::ALRM));
    }

    /// SIGALRM has been taken: a periodic ITIMER_REAL that has fired starts again. Missed firings are one; the rhythm stays.
    pub fn restart_real_interval(&mut self, p: ProcessIndex) {
        let interval = self.programs.table[p].intervals.real;
        if interval.deadline_ns.is_none() || self.timers.is_set(Key::Real(p)) {
            return;
        }
        let (now_ns, _) = self.programs.system.time_ns();
        let interval = &mut self.programs.table[p].intervals.real;
        interval.restart(now_ns);
        if let Some(wake_ns) = interval.wake_ns(now_ns) {
            self.set_timer(wake_ns, Key::Real(p));
        }
    }

    /// When pm looks next at a processor time that has `rest_ns` to go. The more such looks are planned, the rarer each is: together they
    /// take a bounded part of the processor's time.
    pub fn next_processor_check(&mut self, rest_ns: u64) -> u64 {
        let share_ns = u64::from(self.timers.processor_timers()) * CHECK_SHARE_NS;
        let wait_ns = rest_ns.max(MIN_CHECK_NS).max(share_ns);
        self.programs.system.time_ns().0.saturating_add(wait_ns)
    }

    /// A process has been made, which inherits its limits.
    pub fn plan_check_of_new(&mut self, p: ProcessIndex) {
        let limits = &self.programs.table[p].limits;
        if limits.soft(limits::CPU) != limits::INFINITY || self.real_time_limit(p).is_some() {
            self.plan_processor_check(p);
        }
    }

    /// Plans the next look at the processor time of a process, if anything depends on it.
    pub fn plan_processor_check(&mut self, p: ProcessIndex) {
        self.timers.cancel(Key::Processor(p));
        let process = &self.programs.table[p];
        let limit = process.limits.soft(limits::CPU);
        let limit_ns = (limit != limits::INFINITY).then(|| limit.saturating_mul(SECOND_NS));
        let timers = process.intervals.processor.iter().filter_map(|interval| interval.deadline_ns);
        let earliest = timers.chain(limit_ns).min();
        let of_process = earliest.map(|earliest| earliest.saturating_sub(self.programs.run_ns(p)));
        let of_threads = self.real_time_rest_ns(p);
        let Some(rest_ns) = of_process.into_iter().chain(of_threads).min() else { return };
        let check_ns = self.next_processor_check(rest_ns);
        self.set_timer(check_ns, Key::Processor(p));
    }

    /// Looks at the processor time of a process: timers that are due fire, a limit that is reached is told.
    pub fn check_processor_time(&mut self, p: ProcessIndex) {
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
        self.check_real_time_limit(p);
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
        self.programs.table[p].intervals = Intervals::default();
        self.timers.cancel(Key::Real(p));
        self.timers.cancel(Key::Processor(p));
    }
}
