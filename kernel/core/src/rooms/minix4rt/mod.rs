//! MINIX4RT on the node: real-time processes, their kernel calls, and what only the kernel can do of the system calls (`abi::rt`).
//!
//! What is decided about semaphores and priorities is `rt`; here are the threads, the errors, the time limits and everything else that
//! is real-time: `process` (processes), `semaphore`, `queue` (messages), `timer` (virtual timers), `interrupt` (descriptors), `control`
//! (set-up and statistics). Work that is due for a priority at which something better runs is kept in `Node::deferred`, whose bits stand in
//! `Node::ready` too: the scheduler comes to it when nothing better is left. The bit of the SYSTEM task's queue is the work of the time-shared
//! world: interrupts of its drivers, its clock. All pools are fixed; every path is bounded by their sizes.

use crate::{
    Machine, Node, boost::effects, boost::effects::Effects, inheritance::Refusal, linux::route, memory::copy,
    node::Inheritance, probes::tracing, rooms::Kernel, thread::state::BlockedOn,
};

mod control;
mod interrupt;
mod process;
mod queue;
mod semaphore;
mod statistics;
mod timer;

use abi::{Errno, rt, rt::PROCESSES, rt::SEMAPHORES, rt::call};

pub use {
    control::real_time_control,
    interrupt::first_stage,
    process::{end_process, end_runaway, leave_real_time},
    timer::{do_real_time_work, expire_timers},
};

use interrupt::Interrupts;
use process::{Process, Waiting};
use queue::Messages;
use statistics::System;
use timer::Timers;
use zerocopy::FromZeros;

/// Number of no process; the table's first entry is never used.
const NOBODY: u16 = 0;

/// Everything of MINIX4RT that is not in the thread table.
#[derive(Debug, FromZeros)]
pub struct Minix4rt {
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

impl Minix4rt {
    /// Returns true when there are real-time processes.
    pub fn is_active(&self) -> bool {
        self.system.active != 0
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

/// What a kernel call returns: a result, an error, or nothing yet.
type Outcome = Result<Option<u64>, Errno>;
const DONE: Outcome = Ok(Some(0));
const WAITS: Outcome = Ok(None);

/// Makes a decision of `inheritance`; threads whose wait it ends are real-time processes or wait for a futex.
#[inline(always)]
fn decide<R>(kernel: &mut Kernel, act: impl FnOnce(&mut Inheritance, &mut Effects<'_>) -> R) -> R {
    let (result, mut woken) = effects::decide_only(&mut kernel.node, act);
    while let Some(slot) = woken.pop_front(&mut kernel.node.threads) {
        end_real_time_wait(kernel, slot);
    }
    result
}

/// The current thread executed `syscall` with a number of `abi::rt::call`. True: it goes on at once, and nothing of what the CPU has
/// loaded has to change.
#[inline(always)]
pub fn real_time_call<M: Machine>(kernel: &mut Kernel, m: &mut M, number: u64) -> bool {
    let caller = kernel.node.current();
    let thread = &kernel.node.threads[caller];
    let (w0, w1) = (thread.frame.rdi, thread.frame.rsi);
    let outcome = if !thread.is_real_time() {
        call_by_ordinary(kernel, m, number)
    } else {
        match number {
            call::SEMDOWN => semaphore::semaphore_down(kernel, m, w0, w1 as i64),
            call::SEMUP => semaphore::semaphore_up(kernel, w0),
            _ => other_real_time_call(kernel, m, number, w0, w1),
        }
    };
    let thread = &mut kernel.node.threads[caller];
    match outcome {
        Ok(Some(value)) => thread.frame.rax = value,
        Ok(None) => {}
        Err(error) => thread.frame.set_result(Err(error)),
    }
    let result = Ok(kernel.node.threads[caller].frame.rax);
    tracing::trace!(kernel.node, KERNEL_CALL, trace_call(m, &kernel.node.threads, caller, number, result));
    kernel.node.threads.keeps_running()
}

/// An ordinary process may become real-time, and nothing else.
#[cold]
#[inline(never)]
fn call_by_ordinary<M: Machine>(kernel: &mut Kernel, m: &mut M, number: u64) -> Outcome {
    match number {
        call::SET2RT => process::ask_for_real_time(kernel, m),
        call::FIRST..=call::RQRCV => Err(error(rt::error::E_MRT_BADPTYPE)),
        _ => Err(error(rt::error::E_BAD_FCN)),
    }
}

#[inline(never)]
fn other_real_time_call<M: Machine>(kernel: &mut Kernel, m: &mut M, number: u64, w0: u64, w1: u64) -> Outcome {
    match number {
        call::RQST..=call::REPLY | call::RQRCV => queue::send_real_time(kernel, m, number, w0 as i64, w1 as i64),
        call::RCV => queue::receive_real_time(kernel, m, w0 as i64, w1 as i64),
        call::SLEEP => process::sleep(kernel, m, w0 as i64),
        call::WAKEUP => process::wake_up(kernel, m, w0 as i64),
        call::PRINT => print_real_time(&mut kernel.node, m, w0),
        call::SET2RT => Err(error(rt::error::E_MRT_BADPTYPE)),
        call::SET2NRT => {
            process::leave_real_time(kernel, m, kernel.node.current());
            DONE
        }
        _ => Err(error(rt::error::E_BAD_FCN)),
    }
}

/// `PRINT`. `EINVAL`: the text is not in memory; a real-time process cannot wait for vm.
fn print_real_time<M: Machine>(node: &mut Node, m: &mut M, address: u64) -> Outcome {
    let mut text = [0; rt::PRINT_BYTES];
    copy::read_own(node, m, address, &mut text).map_err(|_| Errno::EINVAL)?;
    let length = text.iter().position(|&byte| byte == 0).unwrap_or(text.len());
    m.console(&text[..length]);
    m.console(b"\n");
    DONE
}

/// Another call by a real-time process, which may make none but `exit`.
#[cold]
#[inline(never)]
pub fn call_in_wrong_mode<M: Machine>(kernel: &mut Kernel, m: &mut M) {
    use abi::linux::nr::{EXIT, EXIT_GROUP};
    let caller = kernel.node.current();
    let number = kernel.node.threads[caller].frame.rax;
    if number == EXIT as u64 || number == EXIT_GROUP as u64 {
        process::leave_real_time(kernel, m, caller);
        return route::linux_call(&mut kernel.node, m, number);
    }
    kernel.node.threads[caller].frame.set_result(Err(error(rt::error::E_MRT_RTMODE)));
    process::tell_watchdog(kernel, kernel.node.threads[caller].mrt, [3, number]);
}

/// The current thread waits, for at most this many ticks.
#[inline(always)]
fn wait_real_time<M: Machine>(kernel: &mut Kernel, m: &mut M, waiting: Waiting, timeout: i64) -> Outcome {
    let thread = kernel.node.threads.running_mut();
    thread.state.block(BlockedOn::RealTime);
    let process = &mut kernel.mrt.processes[thread.mrt as usize];
    process.waiting = waiting;
    if timeout > 0 {
        let timer = process.timeout as usize;
        let deadline = m.ticks().saturating_add((timeout as u64).saturating_mul(kernel.mrt.system.tick_tsc));
        timer::set_timer(kernel, m, timer, deadline);
    }
    WAITS
}

/// The wait of a real-time process is over: its registers hold the result.
#[inline(always)]
pub fn end_real_time_wait(kernel: &mut Kernel, slot: usize) {
    let thread = &mut kernel.node.threads[slot];
    if !thread.is_real_time() {
        return effects::end_pi_wait(&mut kernel.node, slot);
    }
    thread.state.unblock();
    let process = &mut kernel.mrt.processes[thread.mrt as usize];
    process.waiting = Waiting::No;
    process.statistics.scheds += 1;
    kernel.mrt.timers.cancel(process.timeout as usize);
    if thread.state.is_ready() {
        thread.renew_quantum();
        kernel.node.threads.wake(slot);
    }
}
