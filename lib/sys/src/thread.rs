//! Kernel calls on other threads: creation, registers, scheduling. For pm and rs.

use crate::{Result, raw};
use abi::call::KernelCall;
use abi::registers::Registers;
use abi::{Endpoint, Errno, Word};
use zerocopy::IntoBytes;

fn on(call: KernelCall, thread: Endpoint, a: u64, b: u64) -> Result<u64> {
    raw::kernel(call, [thread.to_word(), a, b, 0, 0, 0]).map(|(value, _)| value)
}

/// Creates an application thread with the registers of `parent` (`NONE`: zero) and result 0; stopped, without memory.
///
/// # Errors
/// `EAGAIN`: no free slot; `EDEADSRCDST`; `ECALLDENIED`.
pub fn fork(parent: Endpoint, flags: u64) -> Result<Endpoint> {
    on(KernelCall::Fork, parent, flags, 0).map(Endpoint::from_word)
}

/// Creates an inert service in `slot`, with the next generation.
///
/// # Errors
/// `EBUSY`: the slot is taken; `EINVAL`; `ECALLDENIED`.
pub fn create(slot: usize) -> Result<Endpoint> {
    raw::kernel(KernelCall::Create, [slot as u64, 0, 0, 0, 0, 0]).map(|(value, _)| Endpoint::from_word(value))
}

/// Destroys a thread. `keep`: a successor is expected in its slot.
///
/// # Errors
/// `EDEADSRCDST`, `ECALLDENIED`.
pub fn destroy(thread: Endpoint, keep: bool) -> Result<()> {
    on(KernelCall::Destroy, thread, keep.to_word(), 0).map(drop)
}

/// Gets the registers of a stopped or blocked thread.
///
/// # Errors
/// `EDEADSRCDST`, `EAGAIN` when it is running, `ECALLDENIED`; what `registers` then holds is not specified.
pub fn registers(thread: Endpoint, registers: &mut Registers) -> Result<()> {
    let arguments = [thread.to_word(), 0, 0, 0, 0, 0];
    raw::kernel_filling(KernelCall::GetRegisters, arguments, 1, registers.as_mut_bytes()).map(drop)
}

/// Sets the registers of a stopped or blocked thread. `resume` cancels what the thread waits for and makes it ready.
///
/// # Errors
/// `EDEADSRCDST`, `EINVAL` for registers that no program may have, `ECALLDENIED`.
pub fn set_registers(thread: Endpoint, registers: &Registers, resume: u64) -> Result<()> {
    on(KernelCall::SetRegisters, thread, registers as *const Registers as u64, resume).map(drop)
}

/// Makes a stopped thread ready.
///
/// # Errors
/// `EDEADSRCDST`, `ECALLDENIED`.
pub fn start(thread: Endpoint) -> Result<()> {
    on(KernelCall::Start, thread, 0, 0).map(drop)
}

/// Makes a stopped thread of a program ready, and sets its Linux id.
///
/// # Errors
/// `EDEADSRCDST`, `ECALLDENIED`.
pub fn start_as(thread: Endpoint, tid: u32) -> Result<()> {
    on(KernelCall::Start, thread, tid.to_word(), 0).map(drop)
}

/// Keeps a thread from running until [`start`].
///
/// # Errors
/// `EDEADSRCDST`, `ECALLDENIED`.
pub fn stop(thread: Endpoint) -> Result<()> {
    on(KernelCall::Stop, thread, 0, 0).map(drop)
}

/// Makes the thread send `kernel::Interrupted` to pm before it returns to user mode. Returns the endpoint it is blocked on, or `NONE`.
///
/// # Errors
/// `EDEADSRCDST`, `ECALLDENIED`.
pub fn interrupt(thread: Endpoint) -> Result<Endpoint> {
    on(KernelCall::Interrupt, thread, 0, 0).map(Endpoint::from_word)
}

/// Sets base queue (0 best to 15) and quantum; 0 µs leaves the quantum unchanged.
///
/// # Errors
/// `EDEADSRCDST`, `EINVAL`, `ECALLDENIED`.
pub fn schedule(thread: Endpoint, queue: u64, quantum_us: u64) -> Result<()> {
    on(KernelCall::Schedule, thread, queue, quantum_us).map(drop)
}

/// Lets the kernel answer the call `number` of `linux::KEPT` by a program's thread, with a value below 2^32.
///
/// # Errors
/// `EDEADSRCDST`, `ECALLDENIED`.
pub fn keep_answer(thread: Endpoint, number: u32, answer: u64) -> Result<()> {
    on(KernelCall::KeepAnswer, thread, number.to_word(), answer).map(drop)
}

/// Makes the kernel forget all answers of [`keep_answer`] for a thread.
///
/// # Errors
/// As [`keep_answer`].
pub fn forget_answers(thread: Endpoint) -> Result<()> {
    on(KernelCall::KeepAnswer, thread, u32::MAX.to_word(), 0).map(drop)
}

/// Wakes up to `count` waiters of the shared futex at `address` of a thread's memory. Returns the number woken.
///
/// # Errors
/// `EDEADSRCDST`, `EINVAL`, `EFAULT`, `ECALLDENIED`.
pub fn wake_futex(thread: Endpoint, address: u64, count: u32) -> Result<u64> {
    on(KernelCall::FutexWake, thread, address, count.to_word())
}

/// Returns the endpoint of the process that holds `slot`.
///
/// # Errors
/// `EDEADSRCDST`: the slot is free.
pub fn who_is(slot: usize) -> Result<Endpoint> {
    raw::kernel(KernelCall::WhoIs, [slot as u64, 0, 0, 0, 0, 0]).map(|(value, _)| Endpoint::from_word(value))
}

/// Gives an application thread a row of privileges: a container's, or that of all programs. Its wait for a message by a primitive fails with
/// `error` if it waits for `peer`, or whatever it waits for (`NONE`).
///
/// # Errors
/// `EINVAL`: no application thread, or no such row; `EDEADSRCDST`; `ECALLDENIED`.
pub fn join(thread: Endpoint, row: usize, peer: Endpoint, error: Errno) -> Result<()> {
    let words = [thread.to_word(), row as u64, peer.to_word(), error.0 as u64, 0, 0];
    raw::kernel(KernelCall::Join, words).map(drop)
}

/// Moves the caller to the end of its ready queue.
pub fn yield_now() {
    let _ = raw::kernel(KernelCall::Yield, [0; 6]);
}
