//! Structures of `abi` as bytes and back, for copies between processes.
//!
//! Programs make their own structures such by `zerocopy`; those of `abi` are plain by this trait.

use abi::call::CopyRequest;
use abi::info::{Framebuffer, KernelInfo, ThreadInfo};
use abi::pm::ProcessRecord;
use abi::privilege::{MemoryRange, PortRequest, Privileges};
use abi::rs::{Injection, ReportHead, ServiceRecord};
use abi::trace::Record;
use abi::vm::MapRecord;

/// A type that is only bytes: any bytes are a value, and no byte is padding.
///
/// # Safety
/// Exactly that must hold.
pub unsafe trait Plain: Copy + 'static {}

macro_rules! plain {
    ($($kind:ty = $bytes:literal,)*) => { $(
        const _: () = assert!(size_of::<$kind>() == $bytes);
        // SAFETY: repr(C), of integers and arrays of integers only, whose sizes add up to the size asserted above.
        unsafe impl Plain for $kind {}
    )* };
}

plain! {
    u8 = 1, u16 = 2, u32 = 4, u64 = 8, i32 = 4, i64 = 8,
    MemoryRange = 16,
    ThreadInfo = 64,
    KernelInfo = 88,
    Framebuffer = 24,
    Privileges = 272,
    PortRequest = 8,
    CopyRequest = 32,
    ServiceRecord = 72,
    Injection = 32,
    ReportHead = 32,
    ProcessRecord = 136,
    MapRecord = 48,
    Record = 80,
}

/// The bytes of a slice.
pub fn bytes_of<T: Plain>(values: &[T]) -> &[u8] {
    // SAFETY: `Plain` has no padding, so every byte is initialised; the length is the slice's own.
    unsafe { core::slice::from_raw_parts(values.as_ptr().cast(), size_of_val(values)) }
}

/// The bytes of a slice, to be written.
pub fn bytes_of_mut<T: Plain>(values: &mut [T]) -> &mut [u8] {
    // SAFETY: as above, and any bytes are a value of `T`.
    unsafe { core::slice::from_raw_parts_mut(values.as_mut_ptr().cast(), size_of_val(values)) }
}

/// The value that `bytes` begin with, or `None` when there are too few.
pub fn read<T: Plain>(bytes: &[u8]) -> Option<T> {
    let bytes = bytes.get(..size_of::<T>())?;
    // SAFETY: enough bytes are there, any bytes are a value, and the read needs no alignment.
    Some(unsafe { core::ptr::read_unaligned(bytes.as_ptr().cast()) })
}

/// A value of all zeros.
pub fn zeroed<T: Plain>() -> T {
    // SAFETY: any bytes are a value.
    unsafe { core::mem::zeroed() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_round_trip() {
        let range = MemoryRange { start: 0x1234, bytes: 0x5678 };
        let bytes = bytes_of(core::slice::from_ref(&range));
        assert_eq!(bytes[..2], [0x34, 0x12]);
        assert_eq!(read::<MemoryRange>(bytes), Some(range));
        assert_eq!(read::<MemoryRange>(&bytes[1..]), None);
    }
}
