//! POSIX timers: `timer_create` and relatives.
//!
//! As in Linux an expiry sends a signal, and a periodic timer starts again when that signal is taken: expiries in between are counted from
//! the time that has passed, and cost nothing. While the signal is ignored the timer rests.

use crate::pm::Pm;
use crate::programs::Programs;
use crate::state::index::{ProcessIndex, ThreadIndex};
use crate::state::intervals::Interval;
use crate::state::limits;
use crate::state::posix_timers::{PosixTimer, TimerClock, TimerIndex};
use crate::state::signal::pending::Taken;
use crate::state::signal::{SigInfo, Signal};
use crate::state::time::{from_timespec, to_timespec};
use crate::state::timers::Key;
use crate::system::System;
use crate::time::clocks::Clock;
use abi::Errno;

type Result<T> = core::result::Result<T, Errno>;

/// Clocks that timers run by, beside those of processor time.
const CLOCK_REALTIME: i32 = 0;
const CLOCK_MONOTONIC: i32 = 1;
const CLOCK_BOOTTIME: i32 = 7;
const CLOCK_TAI: i32 = 11;
/// Clocks that can be read, but by which no timer runs.
const CLOCK_MONOTONIC_RAW: i32 = 4;
const CLOCK_REALTIME_COARSE: i32 = 5;
const CLOCK_MONOTONIC_COARSE: i32 = 6;

const TIMER_ABSTIME: u64 = 1;
/// `DELAYTIMER_MAX`.
const MAX_OVERRUNS: u64 = i32::MAX as u64;

/// `sigev_notify`.
const SIGEV_SIGNAL: u32 = 0;
const SIGEV_NONE: u32 = 1;
const SIGEV_THREAD: u32 = 2;
const SIGEV_THREAD_ID: u32 = 4;

/// What a `struct sigevent` asks for.
struct Event {
    signal: Option<Signal>,
    tid: Option<u32>,
    value: Option<u64>,
}

impl<S: System> Programs<S> {
    /// `EINVAL`: no such clock, or the processor time of another process.
    fn timer_clock(&self, t: ThreadIndex, clock: i32) -> Result<TimerClock> {
        match clock {
            CLOCK_REALTIME | CLOCK_TAI => Ok(TimerClock::Real),
            CLOCK_MONOTONIC | CLOCK_BOOTTIME => Ok(TimerClock::Monotonic),
            CLOCK_MONOTONIC_RAW | CLOCK_REALTIME_COARSE | CLOCK_MONOTONIC_COARSE => Err(Errno::EOPNOTSUPP),
            _ => match self.clock(t, clock)? {
                Clock::Process(p) if p == self.table.process_of(t) => Ok(TimerClock::Process),
                Clock::Thread(thread) => Ok(TimerClock::Thread(self.table[thread].tid())),
                _ => Err(Errno::EINVAL),
            },
        }
    }

    /// A `struct sigevent`; none at address 0.
    fn read_event(&mut self, t: ThreadIndex, address: u64) -> Result<Event> {
        if address == 0 {
            return Ok(Event { signal: Some(Signal::ALRM), tid: None, value: None });
        }
        let [value, signal_and_notify, tid] = self.read_words(t, address)?;
        let (signal, value) = (Signal::new(signal_and_notify & 0xffff_ffff), Some(value));
        match (signal_and_notify >> 32) as u32 {
            SIGEV_NONE => Ok(Event { signal: None, tid: None, value }),
            SIGEV_SIGNAL | SIGEV_THREAD => Ok(Event { signal: Some(signal?), tid: None, value }),
            SIGEV_THREAD_ID => {
                let tid = self.table.pid_meant(self.table.process_of(t), tid as i32) as u32;
                let thread = self.table.thread_by_tid(tid).ok_or(Errno::EINVAL)?;
                let own = self.table.process_of(thread) == self.table.process_of(t);
                if own { Ok(Event { signal: Some(signal?), tid: Some(tid), value }) } else { Err(Errno::EINVAL) }
            }
            _ => Err(Errno::EINVAL),
        }
    }

    /// The time of a timer's clock.
    fn timer_clock_ns(&mut self, timer: &PosixTimer) -> u64 {
        match timer.clock {
            TimerClock::Monotonic | TimerClock::Real => self.system.time_ns().0,
            TimerClock::Process => self.run_ns(timer.process),
            TimerClock::Thread(tid) => {
                self.table.thread_by_tid(tid).map_or(0, |t| self.system.thread_use(self.table[t].endpoint()).run_ns)
            }
        }
    }
}

impl<S: System> Pm<S> {
    /// `timer_create(clock, event, address of id)`. `EAGAIN`: a timer more than RLIMIT_SIGPENDING lets the user have.
    pub fn timer_create(&mut self, t: ThreadIndex, a: &[u64; 7]) -> Result<u64> {
        let clock = self.programs.timer_clock(t, a[0] as i32)?;
        let Event { signal, tid, value } = self.programs.read_event(t, a[1])?;
        let p = self.programs.table.process_of(t);
        let owner = &self.programs.table[p];
        let (user, limit) = (owner.credentials.account(), owner.limits.soft(limits::SIGPENDING));
        let timer = self.posix_timers.free_place(user == 0)?;
        self.programs.write_u32(t, a[2], timer.get() as u32)?;
        let entry = self.programs.table.entry_for_timer(timer, user, limit)?;
        let interval = Interval::default();
        self.posix_timers
            .insert(timer, PosixTimer { process: p, clock, signal, tid, value, interval, overruns: 0, entry });
        self.programs.table[p].timers += 1;
        Ok(0)
    }

    /// `timer_gettime(id, value)`.
    pub fn timer_gettime(&mut self, t: ThreadIndex, id: u64, address: u64) -> Result<u64> {
        let (index, timer) = self.own_posix_timer(t, id)?;
        let now_ns = self.programs.timer_clock_ns(&timer);
        let rest_ns = match timer.interval.deadline_ns {
            // A running timer never shows zero.
            Some(deadline) if self.timers.is_set(Key::Posix(index)) => deadline.saturating_sub(now_ns).max(1),
            _ => timer.interval.rest_ns(now_ns),
        };
        let ([period_s, period_ns], [rest_s, rest_ns]) = (to_timespec(timer.interval.period_ns), to_timespec(rest_ns));
        self.programs.write_words(t, address, [period_s, period_ns, rest_s, rest_ns])?;
        Ok(0)
    }

    /// `timer_getoverrun(id)`.
    pub fn timer_getoverrun(&mut self, t: ThreadIndex, id: u64) -> Result<u64> {
        Ok(self.own_posix_timer(t, id)?.1.overruns as u64)
    }

    /// A timer of the caller's process. `EINVAL`.
    fn own_posix_timer(&self, t: ThreadIndex, id: u64) -> Result<(TimerIndex, PosixTimer)> {
        let index = self.posix_timers.find(self.programs.table.process_of(t), id)?;
        self.posix_timers.get(index).map(|timer| (index, *timer)).ok_or(Errno::EINVAL)
    }

    /// `timer_settime(id, flags, new, old)`.
    pub fn timer_settime(&mut self, t: ThreadIndex, a: &[u64; 7]) -> Result<u64> {
        if a[2] == 0 {
            return Err(Errno::EINVAL);
        }
        let (index, timer) = self.own_posix_timer(t, a[0])?;
        let [period_s, period_ns, value_s, value_ns] = self.programs.read_words(t, a[2])?;
        let (period_ns, value_ns) = (from_timespec([period_s, period_ns])?, from_timespec([value_s, value_ns])?);
        if a[3] != 0 {
            self.timer_gettime(t, a[0], a[3])?;
        }
        let now_ns = self.programs.timer_clock_ns(&timer);
        let deadline_ns = match (a[1] & TIMER_ABSTIME != 0, timer.clock) {
            (false, _) => now_ns.saturating_add(value_ns),
            (true, TimerClock::Real) => {
                let (now_ns, real_ns) = self.programs.system.time_ns();
                now_ns.saturating_add(value_ns.saturating_sub(real_ns))
            }
            (true, _) => value_ns,
        };
        self.stop_posix_timer(index);
        if let Some(timer) = self.posix_timers.get_mut(index) {
            timer.interval = Interval { deadline_ns: (value_ns != 0).then_some(deadline_ns), period_ns };
        }
        // A time that has passed: before the call returns.
        self.posix_timer_fired(index);
        Ok(0)
    }

    /// `timer_delete(id)`.
    pub fn timer_delete(&mut self, t: ThreadIndex, id: u64) -> Result<u64> {
        let (index, _) = self.own_posix_timer(t, id)?;
        self.delete_posix_timer(index);
        Ok(0)
    }

    fn delete_posix_timer(&mut self, index: TimerIndex) {
        self.stop_posix_timer(index);
        if let Some(&PosixTimer { process, entry, .. }) = self.posix_timers.get(index) {
            self.posix_timers.remove(index);
            self.programs.table.release_timer_entry(entry);
            self.programs.table[process].timers -= 1;
        }
    }

    /// Ends what runs of a timer. Its pending signal is dropped, as in Linux since 6.13.
    fn stop_posix_timer(&mut self, index: TimerIndex) {
        self.timers.cancel(Key::Posix(index));
        let Some(timer) = self.posix_timers.get_mut(index) else { return };
        timer.overruns = 0;
        timer.interval = Interval::default();
        let (process, tid) = (timer.process, timer.tid);
        self.programs.table.remove_timer_signal(process, tid, index);
    }

    /// Waits for the deadline of a timer. One that sends no signal only shows the time.
    fn arm_posix_timer(&mut self, index: TimerIndex) {
        let Some(timer) = self.posix_timers.get(index).copied().filter(|timer| timer.signal.is_some()) else { return };
        let now_ns = self.programs.timer_clock_ns(&timer);
        let Some(wake_ns) = timer.interval.wake_ns(now_ns) else { return };
        match timer.clock {
            TimerClock::Monotonic | TimerClock::Real => self.set_timer(wake_ns, Key::Posix(index)),
            TimerClock::Process | TimerClock::Thread(_) => {
                let check_ns = self.next_processor_check(wake_ns.saturating_sub(now_ns));
                self.set_timer(check_ns, Key::PosixProcessor(index));
            }
        }
    }

    /// A timer has come to its deadline, or its processor time is to be looked at.
    pub fn posix_timer_fired(&mut self, index: TimerIndex) {
        let Some(timer) = self.posix_timers.get(index).copied() else { return };
        let now_ns = self.programs.timer_clock_ns(&timer);
        if timer.interval.deadline_ns.is_none_or(|deadline| deadline > now_ns) {
            return self.arm_posix_timer(index);
        }
        if timer.interval.period_ns == 0
            && let Some(timer) = self.posix_timers.get_mut(index)
        {
            timer.interval.deadline_ns = None;
        }
        let thread = timer.tid.map(|tid| self.programs.table.thread_by_tid(tid));
        // A thread that was to get the signal may have ended.
        if let (Some(signal), Some(t)) = (timer.signal, thread.map_or(Some(None), |found| found.map(Some))) {
            let id = index.get() as u32;
            let info = SigInfo::timer(signal, id, timer.value.unwrap_or(u64::from(id)));
            self.send_of_timer(timer.process, t, timer.entry, info);
        }
    }

    /// A signal has been taken: the timer that sent it starts again. Returns the siginfo, which tells of the expiries until then.
    #[inline]
    pub fn signal_taken(&mut self, p: ProcessIndex, taken: Taken) -> SigInfo {
        if taken.info.signal == Signal::ALRM {
            self.restart_real_interval(p);
        }
        match taken.timer {
            Some(index) => self.restart_posix_timer(index, taken.info),
            None => taken.info,
        }
    }

    fn restart_posix_timer(&mut self, index: TimerIndex, info: SigInfo) -> SigInfo {
        let Some(timer) = self.posix_timers.get(index).copied() else { return info };
        let now_ns = self.programs.timer_clock_ns(&timer);
        let mut interval = timer.interval;
        let overruns = interval.restart(now_ns).min(MAX_OVERRUNS) as u32;
        if let Some(timer) = self.posix_timers.get_mut(index) {
            timer.overruns = overruns;
            timer.interval = interval;
        }
        self.arm_posix_timer(index);
        info.with_overruns(overruns)
    }

    /// The action of a signal has changed: timers that rested because it was ignored go on.
    pub fn wake_resting_timers(&mut self, p: ProcessIndex, signal: Signal) {
        self.for_each_posix_timer(p, |pm, index| {
            let timer = pm.posix_timers.get(index).filter(|timer| timer.signal == Some(signal));
            let is_pending = timer.is_none_or(|timer| pm.programs.table.is_timer_pending(timer.entry));
            if !is_pending && !pm.timers.is_set(Key::Posix(index)) {
                pm.arm_posix_timer(index);
            }
        });
    }

    /// Calls `act` for each POSIX timer of a process; it may delete them.
    pub fn for_each_posix_timer(&mut self, p: ProcessIndex, mut act: impl FnMut(&mut Self, TimerIndex)) {
        let mut left = self.programs.table[p].timers;
        let mut from = 0;
        while left > 0
            && let Some(index) = self.posix_timers.next_of(p, from)
        {
            act(self, index);
            left -= 1;
            from = index.get() + 1;
        }
    }

    /// Deletes all timers of a process that has ended or execs.
    pub fn delete_posix_timers(&mut self, p: ProcessIndex) {
        self.for_each_posix_timer(p, Self::delete_posix_timer);
    }

    /// Waits again for the timers of a process after the death of a predecessor.
    pub fn relist_posix_timers(&mut self, p: ProcessIndex) {
        self.programs.table[p].timers = self.posix_timers.count_of(p);
        self.for_each_posix_timer(p, |pm, index| {
            let entry = pm.posix_timers.get(index).map(|timer| timer.entry);
            if entry.is_some_and(|entry| !pm.programs.table.is_timer_pending(entry)) {
                pm.arm_posix_timer(index);
            }
        });
    }
}
