//! MINIX4RT on the node: real-time processes, their kernel calls, and what only the kernel can do of the system calls (`abi::rt`).
//!
//! What is decided about semaphores and priorities is `rt`; here are the threads, the errors, the time limits and everything else that
//! is real-time: `process` (who is real-time), `semaphore`, `queue` (messages), `timer` (virtual timers), `interrupt` (descriptors), `control`
//! (set-up and statistics). Work that is due for a priority at which something better runs is kept in `Node::deferred`, whose bits stand in
//! `Node::ready` too: the scheduler comes to it when nothing better is left. The bit of the SYSTEM task's queue is the work of the time-shared
//! world: interrupts of its drivers, its clock. All pools are fixed; every path is bounded by their sizes.

mod control;
mod effects;
mod interrupt;
mod process;
mod queue;
mod semaphore;
mod statistics;
mod timer;

use abi::{
    Errno,
    endpoint::SLOTS,
    rt::{self, PROCESSES, SEMAPHORES, call},
};

use crate::{
    Machine, Node,
    copy::CHUNK_BYTES,
    futex_pi::MUTEXES,
    rt::{RealTime, Refusal},
    scheduler::SYSTEM_QUEUE,
};

use interrupt::Interrupts;
use process::{Process, Waiting};
use queue::Messages;
use statistics::System;
use timer::Timers;

/// The ready queues of real-time threads, as bits.
pub(crate) const REAL_TIME_QUEUES: u64 = (1 << SYSTEM_QUEUE) - 1;
/// The bit of the time-shared world's work in `Node::deferred`.
pub(crate) const ORDINARY_WORK: u64 = 1 << SYSTEM_QUEUE;
/// Number of no process; the table's first entry is never used.
const NOBODY: u16 = 0;

/// Everything of MINIX4RT that is not in the thread table.
#[derive(Debug)]
pub(crate) struct Mrt {
    pub rt: RealTime<SLOTS, MUTEXES>,
    /// Names of the semaphores.
    names: [[u64; 2]; SEMAPHORES],
    processes: [Process; PROCESSES + 1],
    /// By the low bits of a pid: the process that has been found under it last.
    hints: [u16; PROCESSES],
    messages: Messages,
    timers: Timers,
    interrupts: Interrupts,
    system: System,
}

impl Mrt {
    /// All bytes zero, to be made ready by `rt.start`.
    pub const fn new() -> Mrt {
        Mrt {
            rt: RealTime::zeroed(),
            names: [[0; 2]; SEMAPHORES],
            processes: [const { Process::FREE }; PROCESSES + 1],
            hints: [NOBODY; PROCESSES],
            messages: Messages::new(),
            timers: Timers::new(),
            interrupts: Interrupts::new(),
            system: System::STANDARD,
        }
    }

    fn inherits(&self) -> bool {
        self.system.options & rt::mode::BPIP != 0
    }
}

const fn error(number: i32) -> Errno {
    Errno(number)
}

impl From<Refusal> for Errno {
    fn from(refusal: Refusal) -> Errno {
        match refusal {
            Refusal::NoSemaphore => error(rt::error::E_MRT_BADSEM),
            Refusal::Flags => error(rt::error::E_MRT_BADFLAGS),
            Refusal::Value => error(rt::error::E_MRT_BADVALUE),
            Refusal::NotOwner => Errno::EPERM,
            Refusal::WouldWait => error(rt::error::E_TRY_AGAIN),
            Refusal::Deadlock => Errno::ELOCKED,
            Refusal::Ceiling => error(rt::error::E_MRT_BADPRTY),
        }
    }
}

/// What a kernel call gives back: a result, an error, or nothing yet.
type Outcome = Result<Option<u64>, Errno>;
const DONE: Outcome = Ok(Some(0));
const WAITS: Outcome = Ok(None);

impl Node {
    /// The current thread executed `syscall` with a number of `abi::rt::call`. True: it goes on at once, and nothing of what the CPU has
    /// loaded has to change.
    #[inline(always)]
    pub fn real_time_call<M: Machine>(&mut self, m: &mut M, number: u64) -> bool {
        let caller = self.current;
        let thread = &self.threads[caller];
        let (w0, w1) = (thread.frame.rdi, thread.frame.rsi);
        let outcome = if !thread.real_time {
            self.call_by_ordinary(m, number)
        } else {
            match number {
                call::SEMDOWN => self.semaphore_down(m, w0, w1 as i64),
                call::SEMUP => self.semaphore_up(w0),
                _ => self.other_real_time_call(m, number, w0, w1),
            }
        };
        let thread = &mut self.threads[caller];
        match outcome {
            Ok(Some(value)) => thread.frame.rax = value,
            Ok(None) => {}
            Err(error) => thread.frame.set_result(Err(error)),
        }
        if self.tracing {
            self.trace_call(m, number, Ok(self.threads[caller].frame.rax));
        }
        let thread = &self.threads[caller];
        let best = self.ready.trailing_zeros() as u8;
        thread.flags == 0 && thread.attention == 0 && self.woken == 0 && best >= thread.queue
    }

    /// An ordinary process may become real-time, and nothing else.
    #[cold]
    #[inline(never)]
    fn call_by_ordinary<M: Machine>(&mut self, m: &mut M, number: u64) -> Outcome {
        match number {
            call::SET2RT => self.ask_for_real_time(m),
            call::FIRST..=call::RQRCV => Err(error(rt::error::E_MRT_BADPTYPE)),
            _ => Err(error(rt::error::E_BAD_FCN)),
        }
    }

    #[inline(never)]
    fn other_real_time_call<M: Machine>(&mut self, m: &mut M, number: u64, w0: u64, w1: u64) -> Outcome {
        match number {
            call::RQST..=call::REPLY | call::RQRCV => self.send_real_time(m, number, w0 as i64, w1 as i64),
            call::RCV => self.receive_real_time(m, w0 as i64, w1 as i64),
            call::SLEEP => self.sleep(m, w0 as i64),
            call::WAKEUP => self.wake_up(m, w0 as i64),
            call::PRINT => self.print_real_time(m, w0),
            call::SET2RT => Err(error(rt::error::E_MRT_BADPTYPE)),
            call::SET2NRT => {
                self.leave_real_time(m, self.current);
                DONE
            }
            _ => Err(error(rt::error::E_BAD_FCN)),
        }
    }

    /// `PRINT`: a process that may wait for nobody has its text in memory, or made a mistake.
    fn print_real_time<M: Machine>(&mut self, m: &mut M, address: u64) -> Outcome {
        let mut text = [0; rt::PRINT_BYTES];
        self.read_own(m, address, &mut text).map_err(|_| Errno::EINVAL)?;
        let length = text.iter().position(|&byte| byte == 0).unwrap_or(text.len());
        m.console(&text[..length]);
        m.console(b"\n");
        DONE
    }

    /// Another call by a real-time process, which may make none but the end of it (R39).
    #[cold]
    #[inline(never)]
    pub(crate) fn call_in_wrong_mode<M: Machine>(&mut self, m: &mut M) {
        use abi::linux::nr::{EXIT, EXIT_GROUP};
        let caller = self.current;
        let number = self.threads[caller].frame.rax;
        if number == EXIT as u64 || number == EXIT_GROUP as u64 {
            self.leave_real_time(m, caller);
            return self.linux_call(m, number);
        }
        self.threads[caller].frame.set_result(Err(error(rt::error::E_MRT_RTMODE)));
        self.tell_watchdog(self.threads[caller].mrt, [3, number]);
    }

    /// Work that was put off has the CPU: one piece of the best.
    #[cold]
    #[inline(never)]
    pub(crate) fn do_deferred<M: Machine>(&mut self, m: &mut M) {
        let best = self.deferred & self.deferred.wrapping_neg();
        if best == ORDINARY_WORK {
            self.deferred = 0;
            self.do_ordinary_work(m);
        } else {
            self.do_real_time_work(m, best.trailing_zeros() as usize);
        }
        self.ready |= self.deferred;
    }

    /// There is work for this priority; it is done when nothing better runs.
    pub(crate) fn defer(&mut self, priority: u8) {
        self.deferred |= 1 << priority;
        self.ready |= 1 << priority;
    }

    /// Bytes to copy between two preemption points.
    pub(crate) fn chunk_bytes(&self) -> u64 {
        if self.mrt.system.is_on { CHUNK_BYTES / 16 } else { CHUNK_BYTES }
    }

    /// True when a real-time thread runs or is about to, or work for one waits.
    pub(crate) fn is_real_time_ready(&self) -> bool {
        let is_real_time = |slot: usize| self.threads[slot].flags == 0 && self.threads[slot].queue < SYSTEM_QUEUE;
        self.ready & REAL_TIME_QUEUES != 0
            || is_real_time(self.current)
            || self.woken != 0 && is_real_time(self.woken as usize)
    }
}

/// Where a blocked process stands, for those who end its wait.
impl Node {
    /// The current thread waits, for at most this many ticks.
    #[inline(always)]
    fn wait_real_time<M: Machine>(&mut self, m: &mut M, waiting: Waiting, timeout: i64) -> Outcome {
        let thread = &mut self.threads[self.current];
        thread.flags |= crate::thread::blocked::REAL_TIME;
        let process = &mut self.mrt.processes[thread.mrt as usize];
        process.waiting = waiting;
        if timeout > 0 {
            let timer = process.timeout as usize;
            let deadline = m.ticks().saturating_add((timeout as u64).saturating_mul(self.mrt.system.tick_tsc));
            self.set_timer(m, timer, deadline);
        }
        WAITS
    }

    /// The wait of a real-time process is over: its registers hold the result.
    #[inline(always)]
    fn end_real_time_wait(&mut self, slot: usize) {
        let thread = &mut self.threads[slot];
        if !thread.real_time {
            return self.end_pi_wait(slot);
        }
        thread.flags &= !crate::thread::blocked::REAL_TIME;
        let process = &mut self.mrt.processes[thread.mrt as usize];
        process.waiting = Waiting::No;
        process.statistics.scheds += 1;
        self.mrt.timers.cancel(process.timeout as usize);
        if thread.flags == 0 {
            thread.renew_quantum();
            self.wake_real_time(slot);
        }
    }

    /// As `wake`, but who is no better than the current thread goes to its queue at once.
    #[inline(always)]
    fn wake_real_time(&mut self, slot: usize) {
        let current = &self.threads[self.current];
        let (queue, runs) = (current.queue, current.flags == 0);
        let thread = &mut self.threads[slot];
        if runs && thread.base_queue >= queue && slot != self.current {
            thread.queue = thread.base_queue;
            self.enqueue(slot as u16);
        } else {
            self.wake(slot);
        }
    }
}
