//! The clock and the one alarm of a thread.

use crate::{Result, raw};
use abi::call::KernelCall;
use abi::clock::ClockPage;
#[cfg(target_os = "none")]
use abi::{Endpoint, endpoint::slot, layout::SERVICE_CLOCKS};
#[cfg(target_os = "none")]
use core::sync::atomic::{AtomicBool, Ordering};

/// Returns the monotonic time since boot in nanoseconds.
#[inline]
pub fn now_ns() -> u64 {
    both_ns().0
}

/// Returns the real time in nanoseconds since 1970.
pub fn real_ns() -> u64 {
    both_ns().1
}

/// Returns monotonic and real time of one moment: from the page of the clocks, where there is one, without a kernel call.
#[inline]
pub fn both_ns() -> (u64, u64) {
    match clock_page().and_then(|page| page.read(ticks)) {
        Some(moment) => (moment.monotonic_ns, moment.real_ns),
        None => ask_for_both_ns(),
    }
}

/// As `both_ns`, always by the kernel's call.
#[cold]
#[inline(never)]
pub(crate) fn ask_for_both_ns() -> (u64, u64) {
    let (monotonic, words) = raw::kernel(KernelCall::Time, [0; 6]).expect("anybody may ask for the time");
    (monotonic, words[0])
}

/// Whether the page of the clocks is there.
#[cfg(target_os = "none")]
static HAS_CLOCK_PAGE: AtomicBool = AtomicBool::new(false);

/// Notes at the start of a service whether it has the page of the clocks: vm shows it to the services that it makes, not to itself and rs.
/// Programs have it elsewhere (`abi::layout`).
#[cfg(target_os = "none")]
pub(crate) fn find_clock_page(own: Endpoint) {
    let is_made_by_vm = own.is_service() && !matches!(own.slot(), slot::RS | slot::VM);
    HAS_CLOCK_PAGE.store(is_made_by_vm, Ordering::Relaxed);
}

#[cfg(target_os = "none")]
#[inline]
fn clock_page() -> Option<&'static ClockPage> {
    // SAFETY: vm has mapped the page for as long as the service lives; its words are atomic.
    HAS_CLOCK_PAGE.load(Ordering::Relaxed).then(|| unsafe { &*(SERVICE_CLOCKS as *const ClockPage) })
}

#[cfg(not(target_os = "none"))]
fn clock_page() -> Option<&'static ClockPage> {
    None
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
