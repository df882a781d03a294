//! The `sched_*` calls: policies and priorities of threads, and the kernel's ready queues they mean.
//!
//! Linux has 99 real-time priorities, the kernel 46 real-time queues for programs. Programs use priorities near either end, so those have
//! queues of their own, and the ones between share: 99 to 83 are queues 3 to 19, 82 to 17 are queues 20 to 30, six each, 16 to 1 are queues
//! 31 to 46. Queues 1 and 2 are left to MINIX4RT. Within a queue, who is ready first runs first.

use crate::index::{ProcessIndex, ThreadIndex};
use crate::limits;
use crate::manager::Pm;
use crate::system::System;
use crate::timers::Key;
use abi::Errno;
use abi::call::REAL_TIME;

type Result<T> = core::result::Result<T, Errno>;

/// The best queue of a program with niceness 0; the kernel's default for applications.
const NORMAL_QUEUE: i32 = 8;
/// Niceness per queue.
const NICE_PER_QUEUE: i32 = 5;

const SCHED_OTHER: u64 = 0;
const SCHED_FIFO: u64 = 1;
const SCHED_RR: u64 = 2;
const SCHED_BATCH: u64 = 3;
const SCHED_IDLE: u64 = 5;
/// Or-ed to a policy: children are time shared.
const RESET_ON_FORK: u64 = 0x4000_0000;
/// The same as a flag of `sched_setattr`.
const FLAG_RESET_ON_FORK: u64 = 1;

const PRIORITIES: core::ops::RangeInclusive<u32> = 1..=99;

/// Size of `struct sched_attr` as it was at first; longer ones begin with it.
const ATTR_BYTES: u64 = 48;
const ATTR_WORDS: usize = 6;

/// How long a `SCHED_RR` thread runs before others of its queue have their turn (as Linux), and a time-shared one (as the kernel).
const ROUND_ROBIN_US: u64 = 100_000;
const SHARED_US: u64 = 10_000;

/// How a thread is scheduled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scheduling {
    /// One of `SCHED_*`.
    policy: u64,
    /// 1 to 99 for real-time policies, else 0.
    priority: u32,
    /// Its children are time shared.
    reset_on_fork: bool,
}

impl Scheduling {
    /// A known policy with a priority that it has. `EINVAL`.
    fn new(policy: u64, priority: u32) -> Result<Scheduling> {
        let reset_on_fork = policy & RESET_ON_FORK != 0;
        let policy = policy & !RESET_ON_FORK;
        let fits = match policy {
            SCHED_FIFO | SCHED_RR => PRIORITIES.contains(&priority),
            SCHED_OTHER | SCHED_BATCH | SCHED_IDLE => priority == 0,
            _ => false,
        };
        if fits { Ok(Scheduling { policy, priority, reset_on_fork }) } else { Err(Errno::EINVAL) }
    }

    /// Fixed priority, above all time-shared threads.
    pub fn is_real_time(self) -> bool {
        self.priority != 0
    }

    /// What a child begins with.
    pub fn for_child(self) -> Scheduling {
        if self.reset_on_fork { Scheduling::default() } else { self }
    }

    /// Linux's policy and real-time priority.
    pub fn policy_and_priority(self) -> (u32, u32) {
        (self.policy as u32, self.priority)
    }

    fn policy_word(self) -> u64 {
        self.policy | if self.reset_on_fork { RESET_ON_FORK } else { 0 }
    }
}

/// The real-time queue of a priority, 1 to 99.
fn queue_of(priority: u32) -> u64 {
    let queue = match priority {
        83.. => 102 - priority,
        17.. => 30 - (priority - 17) / 6,
        _ => 47 - priority,
    };
    queue as u64
}

impl<S: System> Pm<S> {
    /// The thread that a scheduling call means: ids are those of threads. `EINVAL`, `ESRCH`.
    fn scheduled_thread(&self, t: ThreadIndex, tid: i32) -> Result<ThreadIndex> {
        match tid {
            ..0 => Err(Errno::EINVAL),
            0 => Ok(t),
            _ => {
                let of_process = || self.table.process_by_pid(tid as u32).and_then(|p| self.table[p].main);
                self.table.thread_by_tid(tid as u32).or_else(of_process).ok_or(Errno::ESRCH)
            }
        }
    }

    /// `sched_getaffinity(tid, bytes, mask)`: there is one processor. → bytes written.
    pub fn sched_getaffinity(&mut self, t: ThreadIndex, a: &[u64; 7]) -> Result<u64> {
        if a[1] < 8 || !a[1].is_multiple_of(8) {
            return Err(Errno::EINVAL);
        }
        self.scheduled_thread(t, a[0] as i32)?;
        self.write_words(t, a[2], [1])?;
        Ok(8)
    }

    /// `sched_setaffinity(tid, bytes, mask)`: the one processor must be in the mask.
    pub fn sched_setaffinity(&mut self, t: ThreadIndex, a: &[u64; 7]) -> Result<u64> {
        self.scheduled_thread(t, a[0] as i32)?;
        if a[1] == 0 {
            return Err(Errno::EINVAL);
        }
        let [first] = self.read_bytes::<1>(t, a[2])?;
        if first & 1 == 0 { Err(Errno::EINVAL) } else { Ok(0) }
    }

    /// `sched_getscheduler(tid)` → policy.
    pub fn sched_getscheduler(&self, t: ThreadIndex, tid: i32) -> Result<u64> {
        let target = self.scheduled_thread(t, tid)?;
        Ok(self.table[target].scheduling.policy_word())
    }

    /// `sched_setscheduler(tid, policy, param)`.
    pub fn sched_setscheduler(&mut self, t: ThreadIndex, tid: i32, policy: u64, param: u64) -> Result<u64> {
        if (policy as i32) < 0 || param == 0 {
            return Err(Errno::EINVAL);
        }
        let target = self.scheduled_thread(t, tid)?;
        let priority = u32::from_le_bytes(self.read_bytes(t, param)?);
        self.set_scheduling(t, target, Scheduling::new(policy & 0xffff_ffff, priority)?)
    }

    /// `sched_setparam(tid, param)`: the policy stays.
    pub fn sched_setparam(&mut self, t: ThreadIndex, tid: i32, param: u64) -> Result<u64> {
        let policy = self.sched_getscheduler(t, tid)?;
        self.sched_setscheduler(t, tid, policy, param)
    }

    /// `sched_getparam(tid, param)`.
    pub fn sched_getparam(&mut self, t: ThreadIndex, tid: i32, param: u64) -> Result<u64> {
        if param == 0 {
            return Err(Errno::EINVAL);
        }
        let target = self.scheduled_thread(t, tid)?;
        self.write_u32(t, param, self.table[target].scheduling.priority)?;
        Ok(0)
    }

    /// `sched_setattr(tid, attr, flags)`: no deadlines.
    pub fn sched_setattr(&mut self, t: ThreadIndex, tid: i32, attr: u64, flags: u64) -> Result<u64> {
        if attr == 0 || flags & 0xffff_ffff != 0 {
            return Err(Errno::EINVAL);
        }
        let target = self.scheduled_thread(t, tid)?;
        let words: [u64; ATTR_WORDS] = self.read_words(t, attr)?;
        let [size_and_policy, flags, nice_and_priority, ..] = words;
        if size_and_policy & 0xffff_ffff < ATTR_BYTES {
            return Err(Errno::E2BIG);
        }
        if flags & !FLAG_RESET_ON_FORK != 0 {
            return Err(Errno::EINVAL);
        }
        let reset = if flags != 0 { RESET_ON_FORK } else { 0 };
        let scheduling = Scheduling::new(size_and_policy >> 32 | reset, (nice_and_priority >> 32) as u32)?;
        self.set_scheduling(t, target, scheduling)
    }

    /// `sched_getattr(tid, attr, bytes, flags)`.
    pub fn sched_getattr(&mut self, t: ThreadIndex, tid: i32, attr: u64, bytes: u64, flags: u64) -> Result<u64> {
        if attr == 0 || bytes & 0xffff_ffff < ATTR_BYTES || flags & 0xffff_ffff != 0 {
            return Err(Errno::EINVAL);
        }
        let target = self.scheduled_thread(t, tid)?;
        let Scheduling { policy, priority, reset_on_fork } = self.table[target].scheduling;
        let nice = self.table[self.table.process_of(target)].nice;
        let nice_and_priority = nice as u32 as u64 | (priority as u64) << 32;
        self.write_words(t, attr, [ATTR_BYTES | policy << 32, reset_on_fork as u64, nice_and_priority, 0, 0, 0])?;
        Ok(0)
    }

    /// `sched_rr_get_interval(tid, timespec)`: how long a turn is; 0: for ever.
    pub fn sched_rr_get_interval(&mut self, t: ThreadIndex, tid: i32, address: u64) -> Result<u64> {
        let target = self.scheduled_thread(t, tid)?;
        let turn_us = match self.table[target].scheduling.policy {
            SCHED_FIFO => 0,
            SCHED_RR => ROUND_ROBIN_US,
            _ => SHARED_US,
        };
        self.write_words(t, address, [0, turn_us * 1000])?;
        Ok(0)
    }

    /// `sched_get_priority_max`, `sched_get_priority_min`.
    pub fn sched_priority_range(&self, policy: u64, maximum: bool) -> Result<u64> {
        match policy & 0xffff_ffff {
            SCHED_FIFO | SCHED_RR if maximum => Ok(*PRIORITIES.end() as u64),
            SCHED_FIFO | SCHED_RR => Ok(*PRIORITIES.start() as u64),
            SCHED_OTHER | SCHED_BATCH | SCHED_IDLE => Ok(0),
            _ => Err(Errno::EINVAL),
        }
    }

    /// Changes how `target` is scheduled, if `t` may. `EPERM`: another user's, or a priority above `RLIMIT_RTPRIO`.
    fn set_scheduling(&mut self, t: ThreadIndex, target: ThreadIndex, new: Scheduling) -> Result<u64> {
        let (own, other) = (self.table.process_of(t), self.table.process_of(target));
        let credentials = &self.table[own].credentials;
        if !credentials.is_root() {
            let theirs = &self.table[other].credentials.user;
            let ours = credentials.user.effective;
            let limit = self.table[other].limits.soft(limits::RTPRIO);
            let is_raise = new.priority > self.table[target].scheduling.priority;
            if (ours != theirs.real && ours != theirs.effective) || is_raise && new.priority as u64 > limit {
                return Err(Errno::EPERM);
            }
        }
        self.table[target].scheduling = new;
        self.apply_scheduling(target);
        Ok(0)
    }

    /// The kernel's queue for the best real-time priority of those who have timers; 0: none is real-time.
    pub fn queue_of_timers(&self) -> u64 {
        let priority = |t: ThreadIndex| self.table[t].scheduling.priority;
        let best = self.timers.keys().map(|key| match key {
            Key::Wake(t) => priority(t),
            Key::Real(p) | Key::Posix(p, _) => self.table.threads_of(p).map(priority).max().unwrap_or(0),
            Key::Processor(_) => 0,
        });
        best.max().filter(|&priority| priority != 0).map_or(0, |priority| REAL_TIME + queue_of(priority))
    }

    /// The real-time priority that the kernel's queue of a thread stands for; 0: it is time shared. Where priorities share the queue it is the
    /// thread's own, or the best that somebody has from whom it may be inherited.
    pub fn effective_priority(&self, t: ThreadIndex, queue: u32) -> u32 {
        let Some(queue) = (queue as u64).checked_sub(REAL_TIME) else { return 0 };
        let fits = |priority: &u32| *priority != 0 && queue_of(*priority) == queue;
        let all = self.table.processes().flat_map(|(p, _)| self.table.threads_of(p));
        let known = |t: ThreadIndex| Some(self.table[t].scheduling.priority).filter(fits);
        let some = || PRIORITIES.rev().find(|&priority| queue_of(priority) >= queue);
        known(t).or_else(|| all.filter_map(known).max()).or_else(some).unwrap_or(*PRIORITIES.start())
    }

    /// Tells the kernel how a thread is scheduled.
    pub fn apply_scheduling(&mut self, t: ThreadIndex) {
        let (scheduling, endpoint) = (self.table[t].scheduling, self.table[t].endpoint);
        match scheduling.policy {
            SCHED_FIFO => {
                self.system.schedule(endpoint, REAL_TIME + queue_of(scheduling.priority), abi::call::NO_QUANTUM);
            }
            SCHED_RR => self.system.schedule(endpoint, REAL_TIME + queue_of(scheduling.priority), ROUND_ROBIN_US),
            _ => {
                let nice = self.table[self.table.process_of(t)].nice;
                self.system.schedule(endpoint, queue_of_nice(nice), SHARED_US);
            }
        }
    }

    /// Changes the niceness of a process.
    pub fn set_nice(&mut self, p: ProcessIndex, nice: i32) {
        self.table[p].nice = nice;
        let mut next = self.table[p].main;
        while let Some(t) = next {
            next = self.table[t].next;
            self.apply_scheduling(t);
        }
    }

    /// Puts a time-shared thread that has little left to do behind those of its niceness.
    pub fn give_way(&mut self, t: ThreadIndex) {
        let nice = self.table[self.table.process_of(t)].nice;
        if !self.table[t].scheduling.is_real_time() {
            self.system.schedule(self.table[t].endpoint, queue_of_nice(nice + NICE_PER_QUEUE), 0);
        }
    }
}

fn queue_of_nice(nice: i32) -> u64 {
    (NORMAL_QUEUE + nice.div_euclid(NICE_PER_QUEUE)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn better_priorities_have_better_queues_and_the_ends_have_their_own() {
        let queues: Vec<u64> = PRIORITIES.map(queue_of).collect();
        assert!(queues.is_sorted_by(|lower, higher| lower >= higher));
        assert_eq!((queues[0], queues[98]), (46, 3));
        let distinct = |range: core::ops::Range<usize>| queues[range].is_sorted_by(|lower, higher| lower > higher);
        assert!(distinct(0..17) && distinct(81..99));
    }

    #[test]
    fn policies_want_priorities_of_their_own() {
        assert!(Scheduling::new(SCHED_FIFO, 1).is_ok() && Scheduling::new(SCHED_RR | RESET_ON_FORK, 99).is_ok());
        for (policy, priority) in [(SCHED_FIFO, 0), (SCHED_RR, 100), (SCHED_OTHER, 1), (4, 0), (6, 0)] {
            assert_eq!(Scheduling::new(policy, priority), Err(Errno::EINVAL));
        }
    }
}
