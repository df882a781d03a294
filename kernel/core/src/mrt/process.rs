//! Real-time processes: attributes, becoming real-time and ordinary again, sleep and wake-up, periods, deadlines, watchdogs.
//!
//! A process record belongs to a thread from its first system call until its death; only while `Thread::real_time` is set does it have timers,
//! a queue and a place in `rt`. Whoever watches or is watched is told when a process stops being real-time, however that happens.

use abi::{
    Errno,
    rt::{
        self, FOREVER, NOPROC, NOWAIT, PROCESSES, ProcessAttributes, ProcessStatistics, QUEUE_ENTRIES, QUEUES, TIMERS,
        flag, message,
    },
};

use crate::{Machine, Node, rt::NOTHING, thread::blocked};

use super::{DONE, NOBODY, Outcome, control::Words, error, queue::Queue, timer::Action};

/// What a real-time process waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Waiting {
    /// Nothing.
    No,
    /// A semaphore.
    Semaphore,
    /// A wake-up.
    Sleep,
    /// Its next period.
    Period,
    /// That this process receives its request.
    Send(u16),
    /// The same, and then the answer.
    Request(u16),
    /// A message from this process; from `NOBODY`: from anybody.
    Receive(u16),
}

/// One process.
#[derive(Clone, Debug)]
pub(super) struct Process {
    /// Slot of its thread; 0: free.
    pub thread: u16,
    pub pid: i64,
    /// The watchdog in there is a process number.
    pub attributes: ProcessAttributes,
    pub waiting: Waiting,
    /// Virtual timers, 0: none.
    pub timeout: u8,
    pub period: u8,
    /// Priority of the request that it is working on.
    pub serving: u8,
    /// It has been woken and has not waited since: the deadline runs.
    pub is_working: bool,
    /// The period timer stands for the deadline, not for the next period.
    at_deadline: bool,
    /// A period has begun while it was working.
    is_late: bool,
    /// Begin of the period or of the work, in ticks of the machine.
    began: u64,
    /// Ready queue and quantum as an ordinary process.
    ordinary: (u8, u64),
    pub statistics: ProcessStatistics,
    pub queue: Queue,
    /// A line without a driver, plus 1, that stays masked until the process waits.
    pub line: u16,
}

impl Process {
    pub const FREE: Process = Process {
        thread: 0,
        pid: 0,
        attributes: ProcessAttributes { watchdog: NOBODY as i64, ..ProcessAttributes::ZERO },
        waiting: Waiting::No,
        timeout: 0,
        period: 0,
        serving: 0,
        is_working: false,
        at_deadline: false,
        is_late: false,
        began: 0,
        ordinary: (0, 0),
        statistics: ProcessStatistics::ZERO,
        queue: Queue::EMPTY,
        line: 0,
    };

    fn is_periodic(&self) -> bool {
        self.attributes.flags & flag::P_PERIODIC != 0
    }
}

impl Node {
    /// The process with this pid. `E_BAD_PROC`.
    #[inline(always)]
    pub(super) fn find_process(&mut self, pid: i64) -> Result<u16, Errno> {
        let hint = self.mrt.hints[pid as usize % PROCESSES];
        if self.mrt.processes[hint as usize].pid == pid && hint != NOBODY {
            return Ok(hint);
        }
        self.search_process(pid)
    }

    #[cold]
    fn search_process(&mut self, pid: i64) -> Result<u16, Errno> {
        let known = |process: &Process| process.thread != 0 && process.pid == pid;
        let found = self.mrt.processes.iter().position(known).ok_or(error(rt::error::E_BAD_PROC))?;
        self.mrt.hints[pid as usize % PROCESSES] = found as u16;
        Ok(found as u16)
    }

    /// The real-time process with this pid, `NOBODY` for `NOPROC`; `wrong` when there is none, or it is this very one.
    pub(super) fn find_helper(&mut self, pid: i64, own: u16, wrong: i32) -> Result<u16, Errno> {
        if pid == NOPROC {
            return Ok(NOBODY);
        }
        let helper = self.find_process(pid).map_err(|_| error(wrong))?;
        if helper == own || !self.is_real_time(helper) { Err(error(wrong)) } else { Ok(helper) }
    }

    #[inline(always)]
    pub(super) fn is_real_time(&self, process: u16) -> bool {
        self.threads[self.mrt.processes[process as usize].thread as usize].real_time
    }

    /// The record of a thread, made if there is none. `NOMSGQ`: all are in use.
    pub(super) fn process_of(&mut self, slot: usize, pid: i64) -> Result<u16, Errno> {
        if self.threads[slot].mrt == NOBODY {
            let free = (1..=PROCESSES).find(|&process| self.mrt.processes[process].thread == 0);
            let free = free.ok_or(error(rt::error::E_MRT_NOMSGQ))?;
            self.mrt.processes[free] = Process { thread: slot as u16, pid, ..Process::FREE };
            self.threads[slot].mrt = free as u16;
        }
        Ok(self.threads[slot].mrt)
    }

    /// `SETPATTR`; mrt has refused what makes no sense.
    pub(super) fn set_attributes(&mut self, process: u16, words: &Words) -> Result<u64, Errno> {
        let [flags, baseprty, period, limit, deadline, watchdog, mq_size, mq_flags] = *words;
        let periodic = flags & flag::P_PERIODIC != 0;
        let (baseprty, mq_size) = (baseprty.clamp(1, rt::PRIORITIES), mq_size.min(QUEUE_ENTRIES));
        let (period, deadline) = (period.clamp(periodic as u64, rt::MOST_TICKS), deadline.min(rt::MOST_TICKS));
        let watchdog = self.find_helper(watchdog as i64, process, rt::error::E_MRT_BADWDOG)? as i64;
        let limit = if periodic { 0 } else { limit };
        self.mrt.processes[process as usize].attributes =
            ProcessAttributes { flags, baseprty, period, limit, deadline, watchdog, mq_size, mq_flags };
        Ok(0)
    }

    /// `GETPATTR`.
    pub(super) fn attributes(&self, process: u16) -> Words {
        let a = &self.mrt.processes[process as usize].attributes;
        let flags = a.flags | if self.is_real_time(process) { flag::P_REALTIME } else { 0 };
        let watchdog = self.pid_of(a.watchdog as u16) as u64;
        [flags, a.baseprty, a.period, a.limit, a.deadline, watchdog, a.mq_size, a.mq_flags]
    }

    pub(super) fn pid_of(&self, process: u16) -> i64 {
        if process == NOBODY { NOPROC } else { self.mrt.processes[process as usize].pid }
    }

    /// `GETPINT`.
    pub(super) fn internals(&self, number: u16) -> Words {
        let Process { thread, timeout, period, ref attributes, .. } = self.mrt.processes[number as usize];
        let timers = (timeout != 0) as u64 + (period != 0) as u64;
        let (priority, queue) = match self.is_real_time(number) {
            true => (self.mrt.rt.effective(thread) as u64, number as u64),
            false => (attributes.baseprty, u64::MAX),
        };
        [timers, priority, queue, thread as u64, 0, 0, 0, 0]
    }

    /// `SET2RT`: first vm makes the memory of the caller resident; then the call is made again, with progress.
    pub(super) fn ask_for_real_time<M: Machine>(&mut self, m: &mut M) -> Outcome {
        let slot = self.current;
        let thread = &mut self.threads[slot];
        if self.mrt.processes[thread.mrt as usize].attributes.baseprty == 0 {
            return Err(error(rt::error::E_MRT_BADPRTY));
        }
        if core::mem::take(&mut thread.progress) == 0 {
            self.check_pools(slot)?;
            self.report_resident(m, slot)?;
            return Ok(None);
        }
        self.become_real_time(m, slot)
    }

    /// The pools have what a process needs: how many timers.
    fn check_pools(&self, slot: usize) -> Result<usize, Errno> {
        let attributes = &self.mrt.processes[self.threads[slot].mrt as usize].attributes;
        let has_period = attributes.flags & flag::P_PERIODIC != 0 || attributes.deadline != 0;
        let timers = 1 + has_period as usize;
        if !self.mrt.system.is_on {
            return Err(error(rt::error::E_MRT_NORTMODE));
        }
        if self.mrt.system.active as usize >= QUEUES {
            return Err(error(rt::error::E_MRT_NOMSGQ));
        }
        if TIMERS - self.mrt.timers.used < timers {
            return Err(error(rt::error::E_MRT_NOVTIMER));
        }
        Ok(timers)
    }

    fn become_real_time<M: Machine>(&mut self, m: &mut M, slot: usize) -> Outcome {
        let timers = self.check_pools(slot)?;
        let quantum = m.ns_to_ticks(rt::RUNAWAY_NS);
        let (number, own_queue) = (self.threads[slot].mrt, self.own_queue(slot));
        let thread = &mut self.threads[slot];
        let process = &mut self.mrt.processes[number as usize];
        process.ordinary = (own_queue, thread.quantum);
        thread.set_quantum(quantum);
        thread.real_time = true;
        process.timeout = self.mrt.timers.take(Action::Timeout(number)).unwrap_or(0);
        if timers > 1 {
            process.period = self.mrt.timers.take(Action::Period(number)).unwrap_or(0);
        }
        process.statistics = ProcessStatistics { minlax: i64::MAX, ..ProcessStatistics::ZERO };
        process.serving = NOTHING;
        process.is_working = true;
        (process.at_deadline, process.is_late) = (false, false);
        process.began = m.ticks();
        let (priority, periodic, began) = (process.attributes.baseprty as u8, process.is_periodic(), process.began);
        let inherits = process.attributes.mq_flags & flag::MQ_PRTYINHERIT != 0 && self.mrt.inherits();
        self.mrt.system.active += 1;
        self.decide(|rt, effects| {
            rt.set_inherits(slot as u16, inherits, effects);
            rt.set_base(slot as u16, priority, effects);
        });
        self.observe();
        if periodic {
            self.arm_period(m, number, began);
        }
        DONE
    }

    /// A process stops being real-time, because it says so or has to end: nothing real-time remembers it, and everybody concerned is told.
    #[cold]
    pub(crate) fn leave_real_time<M: Machine>(&mut self, m: &mut M, slot: usize) {
        if !self.threads[slot].real_time {
            return;
        }
        let number = self.threads[slot].mrt;
        let was_blocked = self.threads[slot].flags & blocked::REAL_TIME != 0;
        self.withdraw_request(number);
        self.bequeath_pi(slot);
        self.threads[slot].real_time = false;
        self.decide(|rt, effects| rt.leave(slot as u16, effects));
        self.empty_queue(number);
        let process = &mut self.mrt.processes[number as usize];
        let (pid, (queue, quantum)) = (process.pid, process.ordinary);
        let watchdog = process.attributes.watchdog as u16;
        process.waiting = Waiting::No;
        let timers = [core::mem::take(&mut process.timeout), core::mem::take(&mut process.period)];
        timers.into_iter().for_each(|timer| self.mrt.timers.give_back(timer));
        self.mrt.system.active -= 1;
        if was_blocked {
            let thread = &mut self.threads[slot];
            thread.flags &= !blocked::REAL_TIME;
            thread.frame.set_result(Err(error(rt::error::E_MRT_EXITING)));
            (thread.base_queue, thread.queue) = (queue, queue);
            thread.set_quantum(quantum);
            self.wake_if_free(slot);
        } else {
            self.set_schedule(slot, queue, quantum);
        }
        self.observe();
        self.forget_interrupts(m, number);
        self.post_from_kernel(watchdog, message::KRNPROC, [pid as u64, 0, 0]);
        for watched in 1..=PROCESSES as u16 {
            let attributes = &mut self.mrt.processes[watched as usize].attributes;
            if attributes.watchdog as u16 == number {
                attributes.watchdog = NOBODY as i64;
                self.post_from_kernel(watched, message::KRNWDOG, [pid as u64, 0, 0]);
            }
        }
    }

    /// A thread that has a record ends.
    #[cold]
    pub(crate) fn end_process<M: Machine>(&mut self, m: &mut M, slot: usize) {
        self.leave_real_time(m, slot);
        self.decide(|rt, effects| rt.free_all(slot as u16, effects));
        let number = core::mem::take(&mut self.threads[slot].mrt);
        self.mrt.processes[number as usize] = Process::FREE;
    }

    /// Tells the watchdog of a process about a missed deadline, or something else (`message::KRNDLINE`).
    #[cold]
    pub(super) fn tell_watchdog(&mut self, process: u16, [what, detail]: [u64; 2]) {
        let Process { pid, ref attributes, .. } = self.mrt.processes[process as usize];
        self.post_from_kernel(attributes.watchdog as u16, message::KRNDLINE, [pid as u64, what, detail]);
    }

    /// A real-time process has run for so long without waiting that nobody else comes to run: it becomes an ordinary one.
    #[cold]
    pub(crate) fn end_runaway<M: Machine>(&mut self, m: &mut M, slot: usize) {
        self.tell_watchdog(self.threads[slot].mrt, [4, 0]);
        self.leave_real_time(m, slot);
    }

    /// `SLEEP`.
    pub(super) fn sleep<M: Machine>(&mut self, m: &mut M, timeout: i64) -> Outcome {
        let slot = self.current;
        let number = self.threads[slot].mrt as usize;
        self.end_of_work(m, number);
        let process = &mut self.mrt.processes[number];
        let limit = process.attributes.limit;
        if limit != 0 && process.statistics.scheds >= limit {
            self.leave_real_time(m, slot);
            return DONE;
        }
        match timeout {
            NOWAIT => DONE,
            FOREVER if process.is_periodic() => {
                if core::mem::take(&mut process.is_late) {
                    process.is_working = true;
                    return DONE;
                }
                self.wait_real_time(m, Waiting::Period, FOREVER)
            }
            _ => self.wait_real_time(m, Waiting::Sleep, timeout),
        }
    }

    /// A process has done its work: how much time was left?
    fn end_of_work<M: Machine>(&mut self, m: &mut M, number: usize) {
        let process = &mut self.mrt.processes[number];
        process.is_working = false;
        let Process { began, attributes: ProcessAttributes { deadline, period, .. }, .. } = *process;
        let deadline = if deadline == 0 { period } else { deadline };
        if process.period != 0 && deadline != 0 {
            let end = began.saturating_add(deadline * self.mrt.system.tick_tsc);
            let laxity = self.mrt.system.signed_ns(end, m.ticks());
            let process = &mut self.mrt.processes[number];
            process.statistics.minlax = process.statistics.minlax.min(laxity);
            if !process.is_periodic() {
                self.mrt.timers.cancel(process.period as usize);
            }
        }
    }

    /// `WAKEUP`.
    pub(super) fn wake_up<M: Machine>(&mut self, m: &mut M, pid: i64) -> Outcome {
        let number = self.find_process(pid)?;
        if !self.is_real_time(number) {
            return Err(error(rt::error::E_MRT_BADPTYPE));
        }
        if !self.end_sleep(m, number) {
            self.tell_watchdog(number, [2, 0]);
            return Err(error(rt::error::E_MRT_UNSLEEP));
        }
        DONE
    }

    /// Wakes a sleeper, whose deadline begins. False: it does not sleep.
    pub(super) fn end_sleep<M: Machine>(&mut self, m: &mut M, number: u16) -> bool {
        let process = &mut self.mrt.processes[number as usize];
        if !matches!(process.waiting, Waiting::Sleep | Waiting::Period) {
            return false;
        }
        process.is_working = true;
        process.began = m.ticks();
        let (slot, timer, deadline) = (process.thread as usize, process.period as usize, process.attributes.deadline);
        if timer != 0 && !process.is_periodic() {
            let end = process.began + deadline * self.mrt.system.tick_tsc;
            self.set_timer(m, timer, end);
        }
        self.threads[slot].frame.rax = 0;
        self.end_real_time_wait(slot);
        true
    }

    /// The time limit of a wait is over.
    pub(super) fn end_time_limit(&mut self, number: u16) {
        let Process { thread, waiting, .. } = self.mrt.processes[number as usize];
        let result = match waiting {
            Waiting::No => return,
            Waiting::Sleep | Waiting::Period => Ok(0),
            _ => Err(error(rt::error::E_MRT_TIMEOUT)),
        };
        self.withdraw_request(number);
        self.decide(|rt, effects| rt.give_up(thread, effects));
        self.threads[thread as usize].frame.set_result(result);
        self.end_real_time_wait(thread as usize);
    }

    /// The period timer of a process is over: a deadline, or the begin of the next period.
    pub(super) fn begin_period<M: Machine>(&mut self, m: &mut M, number: u16, due: u64) {
        let process = &mut self.mrt.processes[number as usize];
        let (periodic, at_deadline) = (process.is_periodic(), core::mem::take(&mut process.at_deadline));
        if process.is_working && (at_deadline || !periodic || process.attributes.deadline == 0) {
            process.statistics.mdl += 1;
            self.tell_watchdog(number, [0, 0]);
        }
        if !periodic {
            return;
        }
        let process = &mut self.mrt.processes[number as usize];
        if at_deadline {
            let (timer, next) = (process.period, process.began + process.attributes.period * self.mrt.system.tick_tsc);
            return self.set_timer(m, timer as usize, next);
        }
        process.began = due;
        process.statistics.timestamp = self.mrt.system.tick_at(due);
        if process.waiting == Waiting::Period {
            let latency = self.mrt.system.signed_ns(m.ticks(), due) as u64;
            process.statistics.maxlat = process.statistics.maxlat.max(latency);
            process.is_working = true;
            let slot = process.thread as usize;
            self.threads[slot].frame.rax = 0;
            self.end_real_time_wait(slot);
        } else {
            process.is_late |= process.is_working;
        }
        self.arm_period(m, number, due);
    }

    /// Sets the period timer for what comes next after the begin of a period.
    fn arm_period<M: Machine>(&mut self, m: &mut M, number: u16, began: u64) {
        let process = &mut self.mrt.processes[number as usize];
        let ProcessAttributes { period, deadline, .. } = process.attributes;
        process.at_deadline = deadline != 0;
        let ticks = if deadline != 0 { deadline } else { period };
        let (timer, next) = (process.period as usize, began + ticks * self.mrt.system.tick_tsc);
        self.set_timer(m, timer, next);
    }
}
