//! POSIX timers: `timer_create` and relatives. A process has a few, in a table by their ids; each is one entry of `timers`.
//!
//! An expiry sends a signal, unless that of the last expiry has not been taken yet: then it counts as overrun in the siginfo that waits.

use crate::pm::Pm;
use crate::programs::Programs;
use crate::state::index::{ProcessIndex, ThreadIndex};
use crate::state::intervals::{Interval, PosixTimer};
use crate::state::signal::{SigInfo, Signal};
use crate::state::time::{from_timespec, to_timespec};
use crate::state::timers::Key;
use crate::system::System;
use abi::Errno;

type Result<T> = core::result::Result<T, Errno>;

/// Timers of a process.
const TIMERS: usize = 256;

/// Clocks that timers run by.
const CLOCK_REALTIME: u64 = 0;
const CLOCK_MONOTONIC: u64 = 1;
const CLOCK_BOOTTIME: u64 = 7;

const TIMER_ABSTIME: u64 = 1;

/// `sigev_notify`.
const SIGEV_SIGNAL: u32 = 0;
const SIGEV_NONE: u32 = 1;
const SIGEV_THREAD: u32 = 2;
const SIGEV_THREAD_ID: u32 = 4;

impl<S: System> Programs<S> {
    /// `timer_create(clock, event, address of id)`.
    pub fn timer_create(&mut self, t: ThreadIndex, a: &[u64; 7]) -> Result<u64> {
        let real = match a[0] & 0xffff_ffff {
            CLOCK_REALTIME => true,
            CLOCK_MONOTONIC | CLOCK_BOOTTIME => false,
            _ => return Err(Errno::EINVAL),
        };
        let p = self.table.process_of(t);
        let free = self.table[p].timers.iter().position(Option::is_none);
        let id = free.unwrap_or(self.table[p].timers.len());
        if id >= TIMERS {
            return Err(Errno::EAGAIN);
        }
        let (signal, tid, value) = match a[1] {
            0 => (Some(Signal::ALRM), None, id as u64),
            address => self.read_event(t, address)?,
        };
        self.write_u32(t, a[2], id as u32)?;
        let timer = PosixTimer { real, signal, tid, value, interval: Interval::default(), overruns: 0 };
        let timers = &mut self.table[p].timers;
        match timers.get_mut(id) {
            Some(place) => *place = Some(timer),
            None => timers.push(Some(timer)),
        }
        Ok(0)
    }

    /// A `struct sigevent`: signal, thread, value.
    fn read_event(&mut self, t: ThreadIndex, address: u64) -> Result<(Option<Signal>, Option<u32>, u64)> {
        let [value, signal_and_notify, tid] = self.read_words(t, address)?;
        let signal = Signal::new(signal_and_notify & 0xffff_ffff);
        match (signal_and_notify >> 32) as u32 {
            SIGEV_NONE => Ok((None, None, value)),
            SIGEV_SIGNAL | SIGEV_THREAD => Ok((Some(signal?), None, value)),
            SIGEV_THREAD_ID => {
                let tid = tid as u32;
                let thread = self.table.thread_by_tid(tid).ok_or(Errno::EINVAL)?;
                let own = self.table.process_of(thread) == self.table.process_of(t);
                if own { Ok((Some(signal?), Some(tid), value)) } else { Err(Errno::EINVAL) }
            }
            _ => Err(Errno::EINVAL),
        }
    }

    fn posix_timer(&mut self, p: ProcessIndex, id: u64) -> Result<&mut PosixTimer> {
        let place = self.table[p].timers.get_mut((id & 0xffff_ffff) as usize);
        place.and_then(Option::as_mut).ok_or(Errno::EINVAL)
    }

    /// `timer_gettime(id, value)`.
    pub fn timer_gettime(&mut self, t: ThreadIndex, id: u64, address: u64) -> Result<u64> {
        let p = self.table.process_of(t);
        let interval = self.posix_timer(p, id)?.interval;
        let now_ns = self.system.time_ns().0;
        // A running timer never shows zero.
        let rest_ns = interval.deadline_ns.map_or(0, |deadline| deadline.saturating_sub(now_ns).max(1));
        let ([period_s, period_ns], [rest_s, rest_ns]) = (to_timespec(interval.period_ns), to_timespec(rest_ns));
        self.write_words(t, address, [period_s, period_ns, rest_s, rest_ns])?;
        Ok(0)
    }

    /// `timer_getoverrun(id)`.
    pub fn timer_getoverrun(&mut self, t: ThreadIndex, id: u64) -> Result<u64> {
        let p = self.table.process_of(t);
        Ok(self.posix_timer(p, id)?.overruns.min(i32::MAX as u32) as u64)
    }

    /// A signal has been taken: if a timer sent it, `timer_getoverrun` tells of that expiry from now on.
    pub fn note_timer_signal(&mut self, p: ProcessIndex, info: &SigInfo) {
        if let Some((id, overruns)) = info.timer_and_overruns()
            && let Some(Some(timer)) = self.table[p].timers.get_mut(id as usize)
        {
            timer.overruns = overruns;
        }
    }
}

impl<S: System> Pm<S> {
    /// `timer_settime(id, flags, new, old)`.
    pub fn timer_settime(&mut self, t: ThreadIndex, a: &[u64; 7]) -> Result<u64> {
        let p = self.programs.table.process_of(t);
        let real = self.programs.posix_timer(p, a[0])?.real;
        let [period_s, period_ns, value_s, value_ns] = self.programs.read_words(t, a[2])?;
        let (period_ns, value_ns) = (from_timespec([period_s, period_ns])?, from_timespec([value_s, value_ns])?);
        let (now_ns, real_ns) = self.programs.system.time_ns();
        let wait_ns = match (a[1] & TIMER_ABSTIME != 0, real) {
            (false, _) => value_ns,
            (true, true) => value_ns.saturating_sub(real_ns),
            (true, false) => value_ns.saturating_sub(now_ns),
        };
        if a[3] != 0 {
            self.programs.timer_gettime(t, a[0], a[3])?;
        }
        let deadline_ns = (value_ns != 0).then(|| now_ns.saturating_add(wait_ns));
        self.set_posix_timer(p, a[0] as usize, Interval { deadline_ns, period_ns });
        Ok(0)
    }

    /// `timer_delete(id)`.
    pub fn timer_delete(&mut self, t: ThreadIndex, id: u64) -> Result<u64> {
        let p = self.programs.table.process_of(t);
        self.programs.posix_timer(p, id)?;
        self.set_posix_timer(p, id as usize, Interval::default());
        self.programs.table[p].timers[id as usize] = None;
        Ok(0)
    }

    fn set_posix_timer(&mut self, p: ProcessIndex, id: usize, interval: Interval) {
        let Some(Some(timer)) = self.programs.table[p].timers.get_mut(id) else { return };
        timer.overruns = 0;
        let old = core::mem::replace(&mut timer.interval, interval);
        if let Some(deadline) = old.deadline_ns {
            self.timers.cancel(deadline, Key::Posix(p, id as u16));
        }
        if let Some(deadline) = interval.deadline_ns {
            self.timers.set(deadline, Key::Posix(p, id as u16));
        }
    }

    /// A timer has come to its deadline.
    pub fn posix_timer_fired(&mut self, p: ProcessIndex, id: u16, now_ns: u64) {
        let Some(Some(timer)) = self.programs.table[p].timers.get_mut(id as usize) else { return };
        let Some(deadline) = timer.interval.deadline_ns.take() else { return };
        let mut expiries = 1;
        if timer.interval.period_ns != 0 {
            let period_ns = timer.interval.period_ns;
            expiries += (now_ns - deadline) / period_ns;
            let next = deadline.saturating_add(expiries.saturating_mul(period_ns));
            timer.interval.deadline_ns = Some(next);
            self.timers.set(next, Key::Posix(p, id));
        }
        self.tell_of_expiries(p, id, expiries.min(i32::MAX as u64) as u32);
    }

    fn tell_of_expiries(&mut self, p: ProcessIndex, id: u16, expiries: u32) {
        let Some(Some(timer)) = self.programs.table[p].timers.get(id as usize).copied() else { return };
        let Some(signal) = timer.signal else { return };
        let thread = timer.tid.map(|tid| self.programs.table.thread_by_tid(tid));
        let target = match thread {
            // The thread that was to get the signal has ended.
            Some(None) => return,
            Some(found) => found,
            None => None,
        };
        let pending = match target {
            Some(t) => &mut self.programs.table[t].pending,
            None => &mut self.programs.table[p].pending,
        };
        if !pending.count_timer(signal, id as u32, expiries) {
            // A full queue loses the signal, as in Linux.
            let _ = self.send(p, target, SigInfo::timer(signal, id as u32, expiries - 1, timer.value));
        }
    }

    /// Deletes all timers of a process that has ended or execs.
    pub fn delete_posix_timers(&mut self, p: ProcessIndex) {
        for id in 0..self.programs.table[p].timers.len() {
            self.set_posix_timer(p, id, Interval::default());
        }
        self.programs.table[p].timers.clear();
    }

    /// The timers that run, for a new list of all timers.
    pub fn relist_posix_timers(&mut self, p: ProcessIndex) {
        for (id, timer) in self.programs.table[p].timers.iter().enumerate() {
            if let Some(deadline) = timer.as_ref().and_then(|timer| timer.interval.deadline_ns) {
                self.timers.set(deadline, Key::Posix(p, id as u16));
            }
        }
    }
}
