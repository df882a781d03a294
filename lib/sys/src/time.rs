//! The clock and the one alarm of a thread.

use crate::{Result, raw};
use abi::call::KernelCall;

/// Monotonic time since boot in nanoseconds.
#[inline]
pub fn now_ns() -> u64 {
    both_ns().0
}

/// Real time in nanoseconds since 1970.
pub fn real_ns() -> u64 {
    both_ns().1
}

/// Monotonic and real time, taken together.
pub fn both_ns() -> (u64, u64) {
    let (monotonic, words) = raw::kernel(KernelCall::Time, [0; 6]).expect("anybody may ask for the time");
    (monotonic, words[0])
}

/// Sets the real time.
///
/// # Errors
/// `ECALLDENIED`.
pub fn set_real_ns(real_ns: u64) -> Result<()> {
    raw::kernel(KernelCall::SetTime, [real_ns, 0, 0, 0, 0, 0]).map(drop)
}

/// One notification from CLOCK at this monotonic time, in place of an earlier wish; 0 cancels.
///
/// # Errors
/// `ECALLDENIED`.
pub fn set_alarm(deadline_ns: u64) -> Result<()> {
    set_alarm_for(deadline_ns, 0)
}

/// The same; what is due is done with the priority of this real-time queue (`REAL_TIME` and more; 0: with one's own).
///
/// # Errors
/// `ECALLDENIED`.
pub fn set_alarm_for(deadline_ns: u64, queue: u64) -> Result<()> {
    raw::kernel(KernelCall::SetAlarm, [deadline_ns, queue, 0, 0, 0, 0]).map(drop)
}

/// The time-stamp counter: for measuring. Under the emulator's instruction counting a tick is an instruction.
#[inline]
pub fn ticks() -> u64 {
    // SAFETY: every x86-64 CPU has the counter, and the kernel lets programs read it.
    unsafe { core::arch::x86_64::_rdtsc() }
}
