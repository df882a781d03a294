//! Information of the kernel about itself and its threads (`abi::info`).

use crate::{Result, raw};
use abi::Endpoint;
use abi::call::KernelCall;
use abi::info::{self, KernelInfo, ThreadInfo};
use zerocopy::{FromBytes, IntoBytes};

/// Fills the buffer with the information `what` (and `index`). Returns the bytes written.
///
/// # Errors
/// `EINVAL`: unknown `what`; `ECALLDENIED`; others as `abi::info` says.
pub fn get_bytes(what: u64, index: u64, into: &mut [u8]) -> Result<usize> {
    let bytes = into.len() as u64;
    raw::kernel_filling(KernelCall::GetInfo, [what, index, 0, bytes, 0, 0], 2, into).map(|written| written as usize)
}

/// Returns the information `what` (and `index`) as a structure.
///
/// # Errors
/// As [`get_bytes`].
pub fn get<T: FromBytes + IntoBytes>(what: u64, index: u64) -> Result<T> {
    let mut value = T::new_zeroed();
    get_bytes(what, index, value.as_mut_bytes())?;
    Ok(value)
}

/// Fills an array with the information `what` (and `index`). Returns the part written.
///
/// # Errors
/// As [`get_bytes`].
pub fn get_slice<T: FromBytes + IntoBytes>(what: u64, index: u64, into: &mut [T]) -> Result<&mut [T]> {
    let bytes = get_bytes(what, index, into.as_mut_bytes())?;
    Ok(&mut into[..bytes / size_of::<T>()])
}

/// Returns the state of the thread in `slot`.
///
/// # Errors
/// `ESRCH`: the slot is free.
pub fn thread(slot: usize) -> Result<ThreadInfo> {
    get(info::THREAD, slot as u64)
}

/// Returns the state of a thread (`abi::info::state`), and whom it is blocked on. In a third less time than [`thread`].
///
/// # Errors
/// `EDEADSRCDST`: it has ended.
pub fn wait(thread: Endpoint) -> Result<(u32, Endpoint)> {
    let told = raw::kernel(KernelCall::GetInfo, [info::WAIT, thread.0.into(), 0, 0, 0, 0])?.0;
    Ok((told as u32, Endpoint((told >> 32) as u32)))
}

/// Returns the kernel's counters.
///
/// # Errors
/// None in practice: every process may call it.
pub fn kernel() -> Result<KernelInfo> {
    get(info::KERNEL, 0)
}

/// Returns the boot archive and its physical address; `None` except in rs, where the kernel maps it.
#[cfg(target_os = "none")]
pub fn archive() -> Option<(&'static [u8], u64)> {
    use abi::{endpoint::slot, layout::RS_ARCHIVE, privilege::MemoryRange};

    if crate::endpoint().slot() != slot::RS {
        return None;
    }
    let range: MemoryRange = get(info::ARCHIVE, 0).ok()?;
    // SAFETY: the kernel maps the whole archive there in rs, read-only and for good.
    let bytes = unsafe { core::slice::from_raw_parts(RS_ARCHIVE as *const u8, range.bytes as usize) };
    Some((bytes, range.start))
}

/// There is no boot archive on the host.
#[cfg(not(target_os = "none"))]
pub fn archive() -> Option<(&'static [u8], u64)> {
    None
}
