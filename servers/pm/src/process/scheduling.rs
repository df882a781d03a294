//! The `sched_*` calls, and telling the kernel how threads are scheduled.

use crate::pm::Pm;
use crate::programs::Programs;
use crate::state::index::{ProcessIndex, ThreadIndex};
use crate::state::limits;
use crate::state::scheduling::{self, Scheduling};
use crate::state::time::MICRO_NS;
use crate::system::System;
use abi::{Capability, Errno};

type Result<T> = core::result::Result<T, Errno>;

impl<S: System> Programs<S> {
    /// The thread that a scheduling call means: ids are those of threads. `EINVAL`, `ESRCH`.
    fn scheduled_thread(&self, t: ThreadIndex, tid: i32) -> Result<ThreadIndex> {
        match tid {
            ..0 => Err(Errno::EINVAL),
            0 => Ok(t),
            _ => {
                let of_process = || self.table.process_by_pid(tid as u32).and_then(|p| self.table[p].main());
                self.table.thread_by_tid(tid as u32).or_else(of_process).ok_or(Errno::ESRCH)
            }
        }
    }

    /// The thread that a call about affinity means. `ESRCH`, also for a negative id.
    fn thread_of_affinity(&self, t: ThreadIndex, tid: i32) -> Result<ThreadIndex> {
        if tid < 0 { Err(Errno::ESRCH) } else { self.scheduled_thread(t, tid) }
    }

    /// `sched_getaffinity(tid, bytes, mask)`: there is one processor. Returns the bytes written.
    pub fn sched_getaffinity(&mut self, t: ThreadIndex, a: &[u64; 7]) -> Result<u64> {
        if a[1] < 8 || !a[1].is_multiple_of(8) {
            return Err(Errno::EINVAL);
        }
        self.thread_of_affinity(t, a[0] as i32)?;
        self.write_words(t, a[2], [1])?;
        Ok(8)
    }

    /// `getcpu (address of processor, address of node)`: both 0, where wanted.
    pub fn getcpu(&mut self, t: ThreadIndex, processor: u64, node: u64) -> Result<u64> {
        for address in [processor, node].into_iter().filter(|&address| address != 0) {
            self.write_u32(t, address, 0)?;
        }
        Ok(0)
    }

    /// `sched_setaffinity(tid, bytes, mask)`: the one processor must be in the mask.
    pub fn sched_setaffinity(&mut self, t: ThreadIndex, a: &[u64; 7]) -> Result<u64> {
        let [first] = match a[1] {
            0 => [0],
            _ => self.read_bytes::<1>(t, a[2])?,
        };
        let target = self.thread_of_affinity(t, a[0] as i32)?;
        let credentials = &self.table[self.table.process_of(t)].credentials;
        let theirs = &self.table[self.table.process_of(target)].credentials.user;
        let ours = credentials.user.effective;
        if !credentials.has(Capability::SysNice) && ours != theirs.real && ours != theirs.effective {
            return Err(Errno::EPERM);
        }
        if first & 1 == 0 { Err(Errno::EINVAL) } else { Ok(0) }
    }

    /// `sched_getscheduler(tid)` returns the policy.
    pub fn sched_getscheduler(&self, t: ThreadIndex, tid: i32) -> Result<u64> {
        let target = self.scheduled_thread(t, tid)?;
        Ok(self.table[target].scheduling.policy_word())
    }

    /// `sched_getparam(tid, param)`.
    pub fn sched_getparam(&mut self, t: ThreadIndex, tid: i32, param: u64) -> Result<u64> {
        if param == 0 {
            return Err(Errno::EINVAL);
        }
        let target = self.scheduled_thread(t, tid)?;
        self.write_u32(t, param, self.table[target].scheduling.priority())?;
        Ok(0)
    }

    /// `sched_getattr(tid, attr, bytes, flags)`.
    pub fn sched_getattr(&mut self, t: ThreadIndex, tid: i32, attr: u64, bytes: u64, flags: u64) -> Result<u64> {
        if attr == 0 || bytes & 0xffff_ffff < scheduling::ATTR_BYTES || flags & 0xffff_ffff != 0 {
            return Err(Errno::EINVAL);
        }
        let target = self.scheduled_thread(t, tid)?;
        let nice = self.table[self.table.process_of(target)].nice;
        self.write_words(t, attr, self.table[target].scheduling.to_attr(nice))?;
        Ok(0)
    }

    /// `sched_rr_get_interval(tid, timespec)`: how long a turn is; 0: for ever.
    pub fn sched_rr_get_interval(&mut self, t: ThreadIndex, tid: i32, address: u64) -> Result<u64> {
        let target = self.scheduled_thread(t, tid)?;
        self.write_words(t, address, [0, self.table[target].scheduling.turn_us() * MICRO_NS])?;
        Ok(0)
    }

    /// `sched_get_priority_max`, `sched_get_priority_min`.
    pub fn sched_priority_range(&self, policy: u64, maximum: bool) -> Result<u64> {
        let range = scheduling::priorities(policy & 0xffff_ffff)?;
        Ok(u64::from(if maximum { *range.end() } else { *range.start() }))
    }

    /// Tells the kernel how a thread is scheduled.
    pub fn apply_scheduling(&mut self, t: ThreadIndex) {
        let nice = self.table[self.table.process_of(t)].nice;
        let (queue, quantum_us) = self.table[t].scheduling.queue_and_quantum(nice);
        self.system.schedule(self.table[t].endpoint(), queue, quantum_us);
    }

    /// Changes the niceness of a process.
    pub fn set_nice(&mut self, p: ProcessIndex, nice: i32) {
        self.table[p].nice = nice;
        let mut next = self.table[p].main();
        while let Some(t) = next {
            next = self.table[t].next();
            self.apply_scheduling(t);
        }
    }

    /// Moves a time-shared thread that is about to end behind the other threads of its niceness.
    pub fn yield_thread(&mut self, t: ThreadIndex) {
        let nice = self.table[self.table.process_of(t)].nice;
        if !self.table[t].scheduling.is_real_time() {
            self.system.schedule(self.table[t].endpoint(), scheduling::next_queue(nice), 0);
        }
    }
}

impl<S: System> Pm<S> {
    /// `sched_setscheduler(tid, policy, param)`.
    pub fn sched_setscheduler(&mut self, t: ThreadIndex, tid: i32, policy: u64, param: u64) -> Result<u64> {
        if (policy as i32) < 0 || param == 0 {
            return Err(Errno::EINVAL);
        }
        let target = self.programs.scheduled_thread(t, tid)?;
        let priority = u32::from_le_bytes(self.programs.read_bytes(t, param)?);
        self.set_scheduling(t, target, Scheduling::new(policy & 0xffff_ffff, priority)?)
    }

    /// `sched_setparam(tid, param)`: the policy stays.
    pub fn sched_setparam(&mut self, t: ThreadIndex, tid: i32, param: u64) -> Result<u64> {
        let policy = self.programs.sched_getscheduler(t, tid)?;
        self.sched_setscheduler(t, tid, policy, param)
    }

    /// `sched_setattr(tid, attr, flags)`: no deadlines.
    pub fn sched_setattr(&mut self, t: ThreadIndex, tid: i32, attr: u64, flags: u64) -> Result<u64> {
        if attr == 0 || flags & 0xffff_ffff != 0 {
            return Err(Errno::EINVAL);
        }
        let target = self.programs.scheduled_thread(t, tid)?;
        let scheduling = Scheduling::from_attr(&self.programs.read_words(t, attr)?)?;
        self.set_scheduling(t, target, scheduling)
    }

    /// Changes how `target` is scheduled, if `t` may. `EPERM`: another user's, or a priority above `RLIMIT_RTPRIO`.
    fn set_scheduling(&mut self, t: ThreadIndex, target: ThreadIndex, new: Scheduling) -> Result<u64> {
        let (own, other) = (self.programs.table.process_of(t), self.programs.table.process_of(target));
        let credentials = &self.programs.table[own].credentials;
        if !credentials.has(Capability::SysNice) {
            let theirs = &self.programs.table[other].credentials.user;
            let ours = credentials.user.effective;
            let limit = self.programs.table[other].limits.soft(limits::RTPRIO);
            let is_raise = new.priority() > self.programs.table[target].scheduling.priority();
            if (ours != theirs.real && ours != theirs.effective) || is_raise && u64::from(new.priority()) > limit {
                return Err(Errno::EPERM);
            }
        }
        self.programs.table[target].scheduling = new;
        self.programs.apply_scheduling(target);
        self.requeue_timers(target);
        self.plan_processor_check(other);
        Ok(0)
    }
}
