//! Clocks, sleeping, and how much processor time somebody has used.
//! Real time is monotonic time plus an offset the kernel keeps; a sleep until a point in real time is converted when it begins.

use crate::pm::{Pm, Step};
use crate::programs::Programs;
use crate::state::index::{ProcessIndex, ThreadIndex};
use crate::state::thread::{Doing, Sleep};
use crate::state::time::{CLOCK_TICK_NS, SECOND_NS, from_timespec, from_timeval, to_timespec, to_timeval};
use crate::state::timers::Key;
use crate::state::usage::Usage;
use crate::system::System;
use abi::{Capability, Errno};

type Result<T> = core::result::Result<T, Errno>;

const TIMER_ABSTIME: u64 = 1;
/// Latest time that the clock may be set to: 30 years before it overflows.
const MAX_REAL_NS: u64 = i64::MAX as u64 - 30 * 365 * 86_400 * SECOND_NS;

/// A negative id is the clock of a process or thread: the complement of its number, in front of these bits. 0 as a number: the caller's own.
const CLOCK_NUMBER_SHIFT: u32 = 3;
const CLOCK_PER_THREAD: i32 = 4;
/// What counts: all processor time, that in user mode, or the same as all. Everything counts here. The last one is the clock of a device.
const CLOCK_WHAT: i32 = 3;

/// The clocks of clock_gettime(2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// The wall clock.
    Real,
    /// Time since boot.
    Monotonic,
    /// Processor time of a process.
    Process(ProcessIndex),
    /// Processor time of a thread.
    Thread(ThreadIndex),
}

impl<S: System> Programs<S> {
    /// The clock that a thread names. `EINVAL`: there is none, its process has gone, or it is the clock of another process's thread.
    pub fn clock(&self, t: ThreadIndex, id: i32) -> Result<Clock> {
        match id {
            // REALTIME, REALTIME_COARSE, REALTIME_ALARM, TAI
            0 | 5 | 8 | 11 => Ok(Clock::Real),
            // MONOTONIC, MONOTONIC_RAW, MONOTONIC_COARSE, BOOTTIME, BOOTTIME_ALARM
            1 | 4 | 6 | 7 | 9 => Ok(Clock::Monotonic),
            2 => Ok(Clock::Process(self.table.process_of(t))),
            3 => Ok(Clock::Thread(t)),
            ..0 if id & CLOCK_WHAT != CLOCK_WHAT => self.clock_of_number(t, id).ok_or(Errno::EINVAL),
            _ => Err(Errno::EINVAL),
        }
    }

    fn clock_of_number(&self, t: ThreadIndex, id: i32) -> Option<Clock> {
        let own = self.table.process_of(t);
        let number = self.table.pid_meant(own, !(id >> CLOCK_NUMBER_SHIFT)) as u32;
        if id & CLOCK_PER_THREAD != 0 {
            let thread = if number == 0 { t } else { self.table.thread_by_tid(number)? };
            return (self.table.process_of(thread) == own).then_some(Clock::Thread(thread));
        }
        let process = if number == 0 { own } else { self.table.process_by_pid(number)? };
        (number == 0 || self.table[process].pid() == number).then_some(Clock::Process(process))
    }

    /// Processor time of a process so far.
    pub fn run_ns(&mut self, p: ProcessIndex) -> u64 {
        self.used_by_threads(p).run_ns
    }

    fn used_by_threads(&mut self, p: ProcessIndex) -> Usage {
        let mut sum = self.table[p].ended;
        let mut next = self.table[p].main();
        while let Some(t) = next {
            next = self.table[t].next();
            sum.add_thread(&self.system.thread_use(self.table[t].endpoint()));
        }
        sum
    }

    /// What a process has used so far.
    pub fn usage(&mut self, p: ProcessIndex) -> Usage {
        let mut usage = self.used_by_threads(p);
        if let Some(main) = self.table[p].main() {
            usage.memory = self.system.vm_use(self.table[main].endpoint());
        }
        usage
    }

    fn read_clock(&mut self, clock: Clock) -> u64 {
        match clock {
            Clock::Real => self.system.time_ns().1,
            Clock::Monotonic => self.system.time_ns().0,
            Clock::Process(p) => self.run_ns(p),
            Clock::Thread(t) => self.system.thread_use(self.table[t].endpoint()).run_ns,
        }
    }

    /// `clock_gettime(clock, timespec)`.
    pub fn clock_gettime(&mut self, t: ThreadIndex, clock: i32, address: u64) -> Result<u64> {
        let clock = self.clock(t, clock)?;
        let now_ns = self.read_clock(clock);
        self.write_words(t, address, to_timespec(now_ns))?;
        Ok(0)
    }

    /// `clock_getres(clock, timespec)`.
    pub fn clock_getres(&mut self, t: ThreadIndex, clock: i32, address: u64) -> Result<u64> {
        self.clock(t, clock)?;
        if address != 0 {
            self.write_words(t, address, [0, 1])?;
        }
        Ok(0)
    }

    /// `clock_settime(clock, timespec)`: the real-time clock, by root.
    pub fn clock_settime(&mut self, t: ThreadIndex, clock: i32, address: u64) -> Result<u64> {
        match self.clock(t, clock)? {
            Clock::Real if clock == 0 => {}
            Clock::Process(_) | Clock::Thread(_) if clock < 0 => return Err(Errno::EPERM),
            _ => return Err(Errno::EINVAL),
        }
        let wanted = from_timespec(self.read_words(t, address)?)?;
        self.set_real_time(t, wanted)
    }

    fn set_real_time(&mut self, t: ThreadIndex, since_1970_ns: u64) -> Result<u64> {
        if !self.credentials_of(t).has(Capability::SysTime) {
            return Err(Errno::EPERM);
        }
        // As Linux: the system has not been up for longer than since 1970, and the clock has years to go.
        if since_1970_ns < self.system.time_ns().0 || since_1970_ns > MAX_REAL_NS {
            return Err(Errno::EINVAL);
        }
        self.system.set_real_time_ns(since_1970_ns).map(|()| 0)
    }

    /// `gettimeofday(timeval, timezone)`: the time zone is always UTC.
    pub fn gettimeofday(&mut self, t: ThreadIndex, time: u64, zone: u64) -> Result<u64> {
        if time != 0 {
            let now_ns = self.system.time_ns().1;
            self.write_words(t, time, to_timeval(now_ns))?;
        }
        if zone != 0 {
            self.write_words(t, zone, [0])?;
        }
        Ok(0)
    }

    /// `settimeofday(timeval, timezone)`: the time zone is ignored.
    pub fn settimeofday(&mut self, t: ThreadIndex, time: u64) -> Result<u64> {
        if time == 0 {
            return Ok(0);
        }
        let wanted = from_timeval(self.read_words(t, time)?)?;
        self.set_real_time(t, wanted)
    }

    /// `time(address)`.
    pub fn time(&mut self, t: ThreadIndex, address: u64) -> Result<u64> {
        let seconds = self.system.time_ns().1 / SECOND_NS;
        if address != 0 {
            self.write_words(t, address, [seconds])?;
        }
        Ok(seconds)
    }

    /// `times(tms)`: all processor time counts as user time, since the kernel keeps one figure.
    pub fn times(&mut self, t: ThreadIndex, address: u64) -> Result<u64> {
        let p = self.table.process_of(t);
        if address != 0 {
            let own = self.run_ns(p) / CLOCK_TICK_NS;
            let children = self.table[p].of_children.run_ns / CLOCK_TICK_NS;
            self.write_words(t, address, [own, 0, children, 0])?;
        }
        Ok(self.system.time_ns().0 / CLOCK_TICK_NS)
    }

    /// `getrusage(who, rusage)`.
    pub fn getrusage(&mut self, t: ThreadIndex, who: i32, address: u64) -> Result<u64> {
        let p = self.table.process_of(t);
        let usage = match who {
            0 => self.usage(p),
            -1 => self.table[p].of_children,
            1 => {
                // Of memory vm knows about processes only.
                let mut usage = Usage { memory: self.usage(p).memory, ..Usage::default() };
                usage.add_thread(&self.system.thread_use(self.table[t].endpoint()));
                usage
            }
            _ => return Err(Errno::EINVAL),
        };
        self.write_words(t, address, usage.to_words())?;
        Ok(0)
    }

    /// The `timespec` at `address` as nanoseconds.
    pub fn read_timespec(&mut self, t: ThreadIndex, address: u64) -> Result<u64> {
        from_timespec(self.read_words(t, address)?)
    }
}

impl<S: System> Pm<S> {
    /// `nanosleep(time, rest)`.
    pub fn nanosleep(&mut self, t: ThreadIndex, time: u64, rest: u64) -> Step {
        match self.programs.read_timespec(t, time) {
            Ok(duration_ns) => {
                let deadline_ns = self.programs.system.time_ns().0.saturating_add(duration_ns);
                self.sleep(t, Sleep { deadline_ns, rest })
            }
            Err(error) => error.into(),
        }
    }

    /// `clock_nanosleep(clock, flags, time, rest)`.
    pub fn clock_nanosleep(&mut self, t: ThreadIndex, a: &[u64; 7]) -> Step {
        let clock = match self.programs.clock(t, a[0] as i32) {
            Ok(clock @ (Clock::Real | Clock::Monotonic)) => clock,
            Ok(Clock::Thread(_)) if a[0] as i32 > 0 => return Errno::EOPNOTSUPP.into(),
            _ => return Errno::EINVAL.into(),
        };
        let time_ns = match self.programs.read_timespec(t, a[2]) {
            Ok(time_ns) => time_ns,
            Err(error) => return error.into(),
        };
        let (now_ns, real_ns) = self.programs.system.time_ns();
        let absolute = a[1] & TIMER_ABSTIME != 0;
        let distance_ns = match (absolute, clock) {
            (false, _) => time_ns,
            (true, Clock::Real) => time_ns.saturating_sub(real_ns),
            (true, _) => time_ns.saturating_sub(now_ns),
        };
        let rest = if absolute { 0 } else { a[3] };
        self.sleep(t, Sleep { deadline_ns: now_ns.saturating_add(distance_ns), rest })
    }

    /// `restart_syscall()`: goes on with a sleep that a stop has ended.
    pub fn restart_syscall(&mut self, t: ThreadIndex) -> Step {
        match self.programs.table[t].restart.take() {
            Some(sleep) => self.sleep(t, sleep),
            None => Errno::EINTR.into(),
        }
    }

    fn sleep(&mut self, t: ThreadIndex, sleep: Sleep) -> Step {
        self.programs.table[t].doing = Doing::Sleeping(sleep);
        if self.programs.table.has_work(t) && self.programs.table[self.programs.table.process_of(t)].stopped().is_none()
        {
            self.poke(t);
        } else {
            self.set_timer(sleep.deadline_ns, Key::Wake(t));
        }
        Step::Later
    }

    /// A handler is to run: the sleep ends with EINTR and what is left of it.
    pub fn end_sleep_early(&mut self, t: ThreadIndex) {
        let Doing::Sleeping(sleep) = self.programs.table[t].doing else { return };
        self.timers.cancel(Key::Wake(t));
        let mut result = Err(Errno::EINTR);
        if sleep.rest != 0 {
            let left_ns = sleep.deadline_ns.saturating_sub(self.programs.system.time_ns().0);
            if self.programs.write_words(t, sleep.rest, to_timespec(left_ns)).is_err() {
                result = Err(Errno::EFAULT);
            }
        }
        self.finish(t, result);
    }

    /// The deadline of a thread's sleep or timed wait has come.
    pub fn time_is_up(&mut self, t: ThreadIndex) {
        match self.programs.table[t].doing {
            Doing::Running => self.look_again(t),
            Doing::Sleeping(_) => self.finish(t, Ok(0)),
            Doing::SignalWaiting(_) => self.finish(t, Err(Errno::EAGAIN)),
            Doing::SemaphoreWaiting(_) => self.end_semaphore_wait(t, Err(Errno::EAGAIN)),
            _ => {}
        }
    }
}
