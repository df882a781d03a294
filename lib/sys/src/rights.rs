//! Kernel calls of rs: privileges, routes, tracing, shutdown.

use crate::{Result, raw};
use abi::call::KernelCall;
use abi::privilege::Privileges;
use abi::{Endpoint, Word};
use zerocopy::IntoBytes;

/// Sets the privileges of a service. Only rs.
///
/// # Errors
/// `ECALLDENIED`, `EDEADSRCDST`, `EINVAL`.
pub fn set_privileges(service: Endpoint, privileges: &Privileges) -> Result<()> {
    let arguments = [service.to_word(), 0, 0, 0, 0, 0];
    raw::kernel_reading(KernelCall::PrivCtl, arguments, 1, privileges.as_bytes()).map(drop)
}

/// Checks that a range is within a service's privileges: `kind` of `privilege::check`.
///
/// # Errors
/// `EPERM`: it is not; `EDEADSRCDST`; `ECALLDENIED`.
pub fn check(service: Endpoint, kind: u64, value: u64, length: u64) -> Result<()> {
    raw::kernel(KernelCall::PrivCheck, [service.to_word(), kind, value, length, 0, 0]).map(drop)
}

/// Routes a system call to the service in `slot`; slot 0 is the kernel, `None` removes the route.
///
/// # Errors
/// `ECALLDENIED`, `EINVAL`.
pub fn route(number: u32, slot: Option<usize>) -> Result<()> {
    let slot = slot.map_or(u64::MAX, |slot| slot as u64);
    raw::kernel(KernelCall::Route, [number.to_word(), slot, 0, 0, 0, 0]).map(drop)
}

/// Sets the kinds of events that are recorded (a bit for each of `abi::trace::event`), and the distance of samples.
///
/// # Errors
/// `ECALLDENIED`.
pub fn trace(events: u64, period_ns: u64) -> Result<()> {
    raw::kernel(KernelCall::Trace, [events, period_ns, 0, 0, 0, 0]).map(drop)
}

/// Injects a fault into a service, for tests of recovery: `kind`, `value`, `further` and `bytes` as `abi::call::inject` says. Only rs.
///
/// # Errors
/// `ECALLDENIED`, `EDEADSRCDST`, `EINVAL`, `EFAULT`.
pub fn inject(service: Endpoint, kind: u64, value: u64, further: u64, bytes: u64) -> Result<()> {
    raw::kernel(KernelCall::Inject, [service.to_word(), kind, value, further, bytes, 0]).map(drop)
}

/// Kinds of shutdown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Power off.
    PowerOff,
    /// Reboot.
    Reboot,
    /// Halt the CPU.
    Halt,
}

/// Shuts the system down. `status` is the exit status of an emulator.
///
/// # Errors
/// `ECALLDENIED`.
pub fn shutdown(end: End, status: u32) -> Result<()> {
    let mode = match end {
        End::PowerOff => 0,
        End::Reboot => 1,
        End::Halt => 2,
    };
    raw::kernel(KernelCall::Shutdown, [mode, status.to_word(), 0, 0, 0, 0]).map(drop)
}
