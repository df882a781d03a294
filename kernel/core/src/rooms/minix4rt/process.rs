//! Real-time processes: attributes, becoming real-time and ordinary again, sleep and wake-up, periods, deadlines, watchdogs.
//!
//! A process record belongs to a thread from its first system call until its death; only while `Thread::is_real_time` does it have timers,
//! a queue and a base in `inheritance`. Its watchdog, and the processes whose watchdog it is, are told when it stops being real-time.

use crate::{
    Machine, boost::effects, futex::inheriting, inheritance::NOTHING, ipc::report, rooms::Kernel, rooms::minix4rt,
    rooms::minix4rt::DONE, rooms::minix4rt::Minix4rt, rooms::minix4rt::NOBODY, rooms::minix4rt::Outcome,
    rooms::minix4rt::control::Words, rooms::minix4rt::decide, rooms::minix4rt::error, rooms::minix4rt::interrupt,
    rooms::minix4rt::queue, rooms::minix4rt::queue::Queue, rooms::minix4rt::timer, rooms::minix4rt::timer::Action,
    thread::Mode, thread::state::BlockedOn,
};

use abi::{
    Errno, rt, rt::FOREVER, rt::NOPROC, rt::NOWAIT, rt::PROCESSES, rt::ProcessAttributes, rt::ProcessStatistics,
    rt::QUEUE_ENTRIES, rt::QUEUES, rt::TIMERS, rt::flag, rt::message,
};
use zerocopy::FromZeros;

/// What a real-time process waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromZeros)]
#[repr(u8)]
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
    /// A message from this process; `NOBODY`: from any.
    Receive(u16),
}

/// One process.
#[derive(Clone, Debug, FromZeros)]
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
    /// Priority of the request that it is working on, and its sender.
    pub serving: (u8, u16),
    /// It has been woken and has not waited since: the deadline runs.
    pub is_working: bool,
    /// The period timer stands for the deadline, not for the next period.
    at_deadline: bool,
    /// A period has begun while it was working.
    is_late: bool,
    /// Begin of the period, in ticks of the machine.
    began: u64,
    /// From where the deadline of its work counts: the begin of the work's period, or the wake-up.
    since: u64,
    /// Ready queue and quantum as an ordinary process.
    ordinary: (u8, u64),
    pub statistics: ProcessStatistics,
    pub queue: Queue,
    /// A line without a driver, plus 1, that stays masked until the process waits.
    pub line: u16,
}

impl Process {
    fn is_periodic(&self) -> bool {
        self.attributes.flags & flag::P_PERIODIC != 0
    }
}

/// The process with this pid. `E_BAD_PROC`.
#[inline(always)]
pub fn find_process(mrt: &mut Minix4rt, pid: i64) -> Result<u16, Errno> {
    let hint = mrt.hints[pid as usize % PROCESSES];
    let process = &mrt.processes[hint as usize];
    if process.pid == pid && process.thread != 0 {
        return Ok(hint);
    }
    search_process(mrt, pid)
}

#[cold]
fn search_process(mrt: &mut Minix4rt, pid: i64) -> Result<u16, Errno> {
    let known = |process: &Process| process.thread != 0 && process.pid == pid;
    let found = mrt.processes.iter().position(known).ok_or(error(rt::error::E_BAD_PROC))?;
    mrt.hints[pid as usize % PROCESSES] = found as u16;
    Ok(found as u16)
}

/// The real-time process with this pid, `NOBODY` for `NOPROC`; `wrong` when there is none, or it is this very one.
pub fn find_helper(kernel: &mut Kernel, pid: i64, own: u16, wrong: i32) -> Result<u16, Errno> {
    if pid == NOPROC {
        return Ok(NOBODY);
    }
    let helper = find_process(&mut kernel.mrt, pid).map_err(|_| error(wrong))?;
    if helper == own || !is_real_time(kernel, helper) { Err(error(wrong)) } else { Ok(helper) }
}

pub fn is_real_time(kernel: &Kernel, process: u16) -> bool {
    kernel.node.threads[kernel.mrt.processes[process as usize].thread as usize].is_real_time()
}

/// The record of a thread, made if there is none. `NOMSGQ`: all are in use.
pub fn process_of(kernel: &mut Kernel, slot: usize, pid: i64) -> Result<u16, Errno> {
    if kernel.node.threads[slot].mrt == NOBODY {
        let free = (1..=PROCESSES).find(|&process| kernel.mrt.processes[process].thread == 0);
        let free = free.ok_or(error(rt::error::E_MRT_NOMSGQ))?;
        kernel.mrt.processes[free] =
            Process { thread: slot as u16, pid, serving: (NOTHING, NOBODY), ..Process::new_zeroed() };
        kernel.node.threads[slot].mrt = free as u16;
    }
    Ok(kernel.node.threads[slot].mrt)
}

/// `SETPATTR`; mrt has refused what makes no sense.
pub fn set_attributes(kernel: &mut Kernel, process: u16, words: &Words) -> Result<u64, Errno> {
    let [flags, baseprty, period, limit, deadline, watchdog, mq_size, mq_flags] = *words;
    let periodic = flags & flag::P_PERIODIC != 0;
    let (baseprty, mq_size) = (baseprty.clamp(1, rt::PRIORITIES), mq_size.min(QUEUE_ENTRIES));
    let (period, deadline) = (period.clamp(periodic as u64, rt::MAX_TICKS), deadline.min(rt::MAX_TICKS));
    let watchdog = find_helper(kernel, watchdog as i64, process, rt::error::E_MRT_BADWDOG)? as i64;
    let limit = if periodic { 0 } else { limit };
    kernel.mrt.processes[process as usize].attributes =
        ProcessAttributes { flags, baseprty, period, limit, deadline, watchdog, mq_size, mq_flags };
    Ok(0)
}

/// `GETPATTR`.
pub fn attributes(kernel: &Kernel, process: u16) -> Words {
    let a = &kernel.mrt.processes[process as usize].attributes;
    let flags = a.flags | if is_real_time(kernel, process) { flag::P_REALTIME } else { 0 };
    let watchdog = pid_of(&kernel.mrt, a.watchdog as u16) as u64;
    [flags, a.baseprty, a.period, a.limit, a.deadline, watchdog, a.mq_size, a.mq_flags]
}

pub fn pid_of(mrt: &Minix4rt, process: u16) -> i64 {
    if process == NOBODY { NOPROC } else { mrt.processes[process as usize].pid }
}

/// `GETPINT`.
pub fn internals(kernel: &Kernel, number: u16) -> Words {
    let Process { thread, timeout, period, ref attributes, .. } = kernel.mrt.processes[number as usize];
    let timers = (timeout != 0) as u64 + (period != 0) as u64;
    let (priority, queue) = match is_real_time(kernel, number) {
        true => (kernel.node.inheritance.effective(thread) as u64, number as u64),
        false => (attributes.baseprty, u64::MAX),
    };
    [timers, priority, queue, thread as u64, 0, 0, 0, 0]
}

/// `SET2RT`: first vm makes the memory of the caller resident; then the call is made again, with progress.
pub fn ask_for_real_time<M: Machine>(kernel: &mut Kernel, m: &mut M) -> Outcome {
    let slot = kernel.node.current();
    let thread = &mut kernel.node.threads[slot];
    if kernel.mrt.processes[thread.mrt as usize].attributes.baseprty == 0 {
        return Err(error(rt::error::E_MRT_BADPRTY));
    }
    if core::mem::take(&mut thread.progress) == 0 {
        check_pools(kernel, slot)?;
        report::report_resident(&mut kernel.node, m, slot)?;
        return Ok(None);
    }
    become_real_time(kernel, m, slot)
}

/// The pools have what a process needs: how many timers.
fn check_pools(kernel: &Kernel, slot: usize) -> Result<usize, Errno> {
    let attributes = &kernel.mrt.processes[kernel.node.threads[slot].mrt as usize].attributes;
    let has_period = attributes.flags & flag::P_PERIODIC != 0 || attributes.deadline != 0;
    let timers = 1 + has_period as usize;
    if !kernel.mrt.system.is_on {
        return Err(error(rt::error::E_MRT_NORTMODE));
    }
    if kernel.mrt.system.active as usize >= QUEUES {
        return Err(error(rt::error::E_MRT_NOMSGQ));
    }
    if TIMERS - kernel.mrt.timers.used < timers {
        return Err(error(rt::error::E_MRT_NOVTIMER));
    }
    Ok(timers)
}

fn become_real_time<M: Machine>(kernel: &mut Kernel, m: &mut M, slot: usize) -> Outcome {
    let timers = check_pools(kernel, slot)?;
    let quantum = m.ns_to_ticks(rt::RUNAWAY_NS);
    let (number, own_queue) = (kernel.node.threads[slot].mrt, effects::own_queue(&kernel.node, slot));
    let thread = &mut kernel.node.threads[slot];
    let process = &mut kernel.mrt.processes[number as usize];
    process.ordinary = (own_queue, thread.quantum);
    thread.set_quantum(quantum);
    thread.mode = Mode::RealTime;
    process.timeout = kernel.mrt.timers.take(Action::Timeout(number)).unwrap_or(0);
    if timers > 1 {
        process.period = kernel.mrt.timers.take(Action::Period(number)).unwrap_or(0);
    }
    process.statistics = ProcessStatistics { minlax: i64::MAX, ..ProcessStatistics::ZERO };
    process.is_working = true;
    (process.at_deadline, process.is_late) = (false, false);
    process.began = m.ticks();
    process.since = process.began;
    let (priority, periodic, began) = (process.attributes.baseprty as u8, process.is_periodic(), process.began);
    let inherits = process.attributes.mq_flags & flag::MQ_PRTYINHERIT != 0 && kernel.mrt.inherits();
    kernel.mrt.system.active += 1;
    decide(kernel, |rt, effects| {
        rt.set_inherits(slot as u16, inherits, effects);
        rt.set_base(slot as u16, priority, effects);
    });
    kernel.node.update_fast_path();
    if periodic {
        arm_period(kernel, m, number, began);
    }
    DONE
}

/// Makes a real-time process an ordinary one, at its own wish or because it ends: frees its timers and its queue, deletes the
/// messages it has sent, and tells its watchdog and the processes whose watchdog it is.
#[cold]
pub fn leave_real_time<M: Machine>(kernel: &mut Kernel, m: &mut M, slot: usize) {
    if !kernel.node.threads[slot].is_real_time() {
        return;
    }
    let number = kernel.node.threads[slot].mrt;
    let was_blocked = kernel.node.threads[slot].state.blocked_on() == Some(BlockedOn::RealTime);
    queue::withdraw_request(kernel, number);
    queue::drop_messages(kernel, number, |_| true);
    while inheriting::bequeath_one(&mut kernel.node, slot) {}
    kernel.node.threads[slot].mode = Mode::Ordinary;
    decide(kernel, |rt, effects| rt.leave(slot as u16, effects));
    let process = &mut kernel.mrt.processes[number as usize];
    let (pid, (queue, quantum)) = (process.pid, process.ordinary);
    let watchdog = process.attributes.watchdog as u16;
    (process.waiting, process.serving) = (Waiting::No, (NOTHING, NOBODY));
    let timers = [core::mem::take(&mut process.timeout), core::mem::take(&mut process.period)];
    timers.into_iter().for_each(|timer| kernel.mrt.timers.give_back(timer));
    kernel.mrt.system.active -= 1;
    if was_blocked {
        let thread = &mut kernel.node.threads[slot];
        thread.state.unblock();
        thread.frame.set_result(Err(error(rt::error::E_MRT_EXITING)));
        (thread.base_queue, thread.queue) = (queue, queue);
        thread.set_quantum(quantum);
        kernel.node.threads.wake_if_free(slot);
    } else {
        kernel.node.threads.set_schedule(slot, queue, quantum);
    }
    kernel.node.update_fast_path();
    interrupt::forget_interrupts(kernel, m, number);
    queue::post_from_kernel(kernel, watchdog, message::KRNPROC, [pid as u64, 0, 0]);
    for other in 1..=PROCESSES as u16 {
        queue::forget_sender(kernel, other, number);
        let attributes = &mut kernel.mrt.processes[other as usize].attributes;
        if attributes.watchdog as u16 == number {
            attributes.watchdog = NOBODY as i64;
            queue::post_from_kernel(kernel, other, message::KRNWDOG, [pid as u64, 0, 0]);
        }
    }
}

/// Frees the record of a thread that ends, if it has one.
#[cold]
pub fn end_process<M: Machine>(kernel: &mut Kernel, m: &mut M, slot: usize) {
    if kernel.node.threads[slot].mrt == NOBODY {
        return;
    }
    leave_real_time(kernel, m, slot);
    decide(kernel, |rt, effects| rt.free_all(slot as u16, effects));
    let number = core::mem::take(&mut kernel.node.threads[slot].mrt);
    kernel.mrt.processes[number as usize] = Process::new_zeroed();
}

/// Tells the watchdog of a process about a missed deadline, or something else (`message::KRNDLINE`).
#[cold]
pub fn tell_watchdog(kernel: &mut Kernel, process: u16, [what, detail]: [u64; 2]) {
    let Process { pid, ref attributes, .. } = kernel.mrt.processes[process as usize];
    queue::post_from_kernel(kernel, attributes.watchdog as u16, message::KRNDLINE, [pid as u64, what, detail]);
}

/// Makes a real-time process that has used up its quantum without waiting an ordinary one, and tells its watchdog.
#[cold]
pub fn end_runaway<M: Machine>(kernel: &mut Kernel, m: &mut M, slot: usize) {
    tell_watchdog(kernel, kernel.node.threads[slot].mrt, [4, 0]);
    leave_real_time(kernel, m, slot);
}

/// `SLEEP`.
pub fn sleep<M: Machine>(kernel: &mut Kernel, m: &mut M, timeout: i64) -> Outcome {
    let slot = kernel.node.current();
    let number = kernel.node.threads[slot].mrt as usize;
    end_of_work(&mut kernel.mrt, m, number);
    let process = &mut kernel.mrt.processes[number];
    let limit = process.attributes.limit;
    if limit != 0 && process.statistics.scheds >= limit {
        leave_real_time(kernel, m, slot);
        return DONE;
    }
    match timeout {
        NOWAIT => DONE,
        FOREVER if process.is_periodic() => {
            if core::mem::take(&mut process.is_late) {
                (process.is_working, process.since) = (true, process.began);
                return DONE;
            }
            minix4rt::wait_real_time(kernel, m, Waiting::Period, FOREVER)
        }
        _ => minix4rt::wait_real_time(kernel, m, Waiting::Sleep, timeout),
    }
}

/// A process has done its work: how much time was left?
fn end_of_work<M: Machine>(mrt: &mut Minix4rt, m: &mut M, number: usize) {
    let process = &mut mrt.processes[number];
    process.is_working = false;
    let Process { since, attributes: ProcessAttributes { deadline, period, .. }, .. } = *process;
    let deadline = if deadline == 0 { period } else { deadline };
    if process.period != 0 && deadline != 0 {
        let end = since.saturating_add(deadline * mrt.system.tick_tsc);
        let laxity = mrt.system.signed_ns(end, m.ticks());
        process.statistics.minlax = process.statistics.minlax.min(laxity);
        if !process.is_periodic() {
            mrt.timers.cancel(process.period as usize);
        }
    }
}

/// `WAKEUP`.
pub fn wake_up<M: Machine>(kernel: &mut Kernel, m: &mut M, pid: i64) -> Outcome {
    let number = find_process(&mut kernel.mrt, pid)?;
    if !is_real_time(kernel, number) {
        return Err(error(rt::error::E_MRT_BADPTYPE));
    }
    if !end_sleep(kernel, m, number) {
        tell_watchdog(kernel, number, [2, 0]);
        return Err(error(rt::error::E_MRT_UNSLEEP));
    }
    DONE
}

/// Wakes a sleeper. Its deadline begins, or is still that of the period. False: it does not sleep.
pub fn end_sleep<M: Machine>(kernel: &mut Kernel, m: &mut M, number: u16) -> bool {
    let process = &mut kernel.mrt.processes[number as usize];
    if !matches!(process.waiting, Waiting::Sleep | Waiting::Period) {
        return false;
    }
    process.is_working = true;
    process.since = if process.is_periodic() { process.began } else { m.ticks() };
    let (slot, timer, deadline) = (process.thread as usize, process.period as usize, process.attributes.deadline);
    if timer != 0 && !process.is_periodic() {
        let end = process.since + deadline * kernel.mrt.system.tick_tsc;
        timer::set_timer(kernel, m, timer, end);
    }
    kernel.node.threads[slot].frame.rax = 0;
    minix4rt::end_real_time_wait(kernel, slot);
    true
}

/// The time limit of a wait is over.
pub fn end_time_limit<M: Machine>(kernel: &mut Kernel, m: &mut M, number: u16) {
    let Process { thread, waiting, .. } = kernel.mrt.processes[number as usize];
    if waiting == Waiting::No || end_sleep(kernel, m, number) {
        return;
    }
    queue::withdraw_request(kernel, number);
    decide(kernel, |rt, effects| rt.give_up(thread, effects));
    kernel.node.threads[thread as usize].frame.set_result(Err(error(rt::error::E_MRT_TIMEOUT)));
    minix4rt::end_real_time_wait(kernel, thread as usize);
}

/// The period timer of a process is over: a deadline, or the begin of the next period.
pub fn begin_period<M: Machine>(kernel: &mut Kernel, m: &mut M, number: u16, due: u64) {
    let process = &mut kernel.mrt.processes[number as usize];
    let (periodic, at_deadline) = (process.is_periodic(), core::mem::take(&mut process.at_deadline));
    if process.is_working && (at_deadline || !periodic || process.attributes.deadline == 0) {
        process.statistics.mdl += 1;
        tell_watchdog(kernel, number, [0, 0]);
    }
    if !periodic {
        return;
    }
    let process = &mut kernel.mrt.processes[number as usize];
    if at_deadline {
        let (timer, next) = (process.period, process.began + process.attributes.period * kernel.mrt.system.tick_tsc);
        return timer::set_timer(kernel, m, timer as usize, next);
    }
    process.began = due;
    process.statistics.timestamp = kernel.mrt.system.tick_at(due);
    if process.waiting == Waiting::Period {
        let latency = kernel.mrt.system.signed_ns(m.ticks(), due) as u64;
        process.statistics.maxlat = process.statistics.maxlat.max(latency);
        (process.is_working, process.since) = (true, due);
        let slot = process.thread as usize;
        kernel.node.threads[slot].frame.rax = 0;
        minix4rt::end_real_time_wait(kernel, slot);
    } else {
        process.is_late |= process.is_working;
    }
    arm_period(kernel, m, number, due);
}

/// Sets the period timer for what comes next after the begin of a period.
fn arm_period<M: Machine>(kernel: &mut Kernel, m: &mut M, number: u16, began: u64) {
    let process = &mut kernel.mrt.processes[number as usize];
    let ProcessAttributes { period, deadline, .. } = process.attributes;
    process.at_deadline = deadline != 0;
    let ticks = if deadline != 0 { deadline } else { period };
    let (timer, next) = (process.period as usize, began + ticks * kernel.mrt.system.tick_tsc);
    timer::set_timer(kernel, m, timer, next);
}
