//! Interrupts as notifications from HARDWARE. `hook` (0 to 63) is the bit that is set in the notification.

use crate::{Result, raw};
use abi::call::KernelCall;

/// Makes interrupts of the line notify the caller; `policy` of `kernel::irq`.
///
/// # Errors
/// `ECALLDENIED`: not a line of the caller; `EBUSY`; `EINVAL`.
pub fn set(line: u8, hook: u32, policy: u64) -> Result<()> {
    raw::kernel(KernelCall::IrqSet, [line as u64, hook as u64, policy, 0, 0, 0]).map(drop)
}

/// Unmasks the line of a hook.
///
/// # Errors
/// `EINVAL`: no such hook.
#[inline]
pub fn enable(hook: u32) -> Result<()> {
    raw::kernel(KernelCall::IrqEnable, [hook as u64, 0, 0, 0, 0, 0]).map(drop)
}

/// Releases an interrupt.
///
/// # Errors
/// `EINVAL`: no such hook.
pub fn remove(hook: u32) -> Result<()> {
    raw::kernel(KernelCall::IrqRemove, [hook as u64, 0, 0, 0, 0, 0]).map(drop)
}

/// Allocates a message-signalled interrupt that notifies with bit `hook`. Returns MSI address and data for the device.
///
/// # Errors
/// `ECALLDENIED` without the privilege flag `MSI`; `ENOSPC`: no vector left.
pub fn set_msi(hook: u32) -> Result<(u64, u64)> {
    raw::kernel(KernelCall::MsiSet, [hook as u64, 0, 0, 0, 0, 0]).map(|(_, words)| (words[0], words[1]))
}
