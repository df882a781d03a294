//! What the kernel tells about itself and its threads (`abi::info`).

use crate::{Result, raw};
use abi::call::KernelCall;
use abi::info::{self, KernelInfo, ThreadInfo};
use zerocopy::{FromBytes, IntoBytes};

/// Fills the buffer with what the kernel tells about `what` (and `index`). → bytes written.
///
/// # Errors
/// `EINVAL`: no such thing; `ECALLDENIED`; others as `abi::info` says.
pub fn get_bytes(what: u64, index: u64, into: &mut [u8]) -> Result<usize> {
    let bytes = into.len() as u64;
    raw::kernel_filling(KernelCall::GetInfo, [what, index, 0, bytes, 0, 0], 2, into).map(|written| written as usize)
}

/// The same for one structure.
///
/// # Errors
/// As [`get_bytes`].
pub fn get<T: FromBytes + IntoBytes>(what: u64, index: u64) -> Result<T> {
    let mut value = T::new_zeroed();
    get_bytes(what, index, value.as_mut_bytes())?;
    Ok(value)
}

/// The same for an array; the part that was written is given back.
///
/// # Errors
/// As [`get_bytes`].
pub fn get_slice<T: FromBytes + IntoBytes>(what: u64, index: u64, into: &mut [T]) -> Result<&mut [T]> {
    let bytes = get_bytes(what, index, into.as_mut_bytes())?;
    Ok(&mut into[..bytes / size_of::<T>()])
}

/// The thread in `slot`.
///
/// # Errors
/// `ESRCH`: there is none.
pub fn thread(slot: usize) -> Result<ThreadInfo> {
    get(info::THREAD, slot as u64)
}

/// The kernel as a whole.
///
/// # Errors
/// None in practice: anybody may ask.
pub fn kernel() -> Result<KernelInfo> {
    get(info::KERNEL, 0)
}

/// The boot archive and its physical address. Only rs has it: `None` elsewhere.
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
