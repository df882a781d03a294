//! The clock and the one alarm of a thread.

use crate::{Result, raw};
use abi::call::KernelCall;

/// Returns the monotonic time since boot in nanoseconds.
#[inline]
pub fn now_ns() -> u64 {
    both_ns().0
}

/// Returns the real time in nanoseconds since 1970.
pub fn real_ns() -> u64 {
    both_ns().1
}

/// Returns monotonic and real time of one moment.
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

/// Sets the alarm: one notification from CLOCK at this monotonic time, replacing an earlier alarm; 0 cancels it.
///
/// # Errors
/// `ECALLDENIED`.
pub fn set_alarm(deadline_ns: u64) -> Result<()> {
    set_alarm_for(deadline_ns, 0)
}

/// Sets the alarm, to be handled at the priority of this real-time queue (`REAL_TIME` and more; 0: the caller's own).
///
/// # Errors
/// `ECALLDENIED`.
pub fn set_alarm_for(deadline_ns: u64, queue: u64) -> Result<()> {
    raw::kernel(KernelCall::SetAlarm, [deadline_ns, queue, 0, 0, 0, 0]).map(drop)
}

/// Returns the time-stamp counter, for measurements. Under the emulator's instruction counting a tick is an instruction.
#[inline]
pub fn ticks() -> u64 {
    // SAFETY: every x86-64 CPU has the counter, and the kernel lets programs read it.
    unsafe { core::arch::x86_64::_rdtsc() }
}
