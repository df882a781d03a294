//! Physical memory through the direct map: all RAM is mapped once more, writable and never executable, at `DIRECT_MAP`.
//!
//! The kernel reaches page tables and the memory of processes only this way, so that it never takes a page fault and SMAP
//! stays closed. (One exception, with its reason: `protection_entry` in `entry.s`.)

use abi::layout::PAGE_BYTES;
use core::ptr;

/// Where physical address 0 is mapped.
pub const DIRECT_MAP: u64 = 0xffff_8000_0000_0000;
/// Where the image is linked, minus where it is loaded.
pub const KERNEL_BASE: u64 = 0xffff_ffff_8000_0000;
/// A frame, in 64-bit words.
pub const FRAME_WORDS: usize = PAGE_BYTES as usize / 8;

/// Physical memory at `address`.
pub fn pointer<T>(address: u64) -> *mut T {
    (address + DIRECT_MAP) as *mut T
}

/// The physical address of something in the kernel's image.
pub fn of_image<T>(item: *const T) -> u64 {
    item as u64 - KERNEL_BASE
}

/// `bytes` of physical memory.
///
/// # Safety
/// The memory must be mapped by the direct map, and nobody may write it while the slice lives.
pub unsafe fn slice(address: u64, bytes: u64) -> &'static [u8] {
    // SAFETY: promised by the caller; any content is a valid byte.
    unsafe { core::slice::from_raw_parts(pointer(address), bytes as usize) }
}

/// Fills a frame with zeros.
///
/// # Safety
/// The frame must be RAM that no reference points to.
pub unsafe fn zero_frame(frame: u64) {
    // SAFETY: promised by the caller; the direct map covers all RAM.
    unsafe { ptr::write_bytes(pointer::<u64>(frame), 0, FRAME_WORDS) }
}

/// Copies `bytes` within physical memory, eight at a time as far as that goes.
///
/// # Safety
/// Both ranges must be RAM that no reference points to, and not overlap.
#[inline]
pub unsafe fn copy(from: u64, to: u64, bytes: u64) {
    // SAFETY: promised by the caller. `movsq` and `movsb` touch exactly the two ranges; the direction flag is clear in the kernel.
    unsafe {
        core::arch::asm!(
            "rep movsq",
            "mov ecx, eax",
            "rep movsb",
            inout("rcx") bytes >> 3 => _,
            inout("rsi") pointer::<u8>(from) => _,
            inout("rdi") pointer::<u8>(to) => _,
            in("eax") bytes as u32 & 7,
            options(nostack, preserves_flags),
        );
    }
}

/// Copies a whole frame.
///
/// # Safety
/// Both must be RAM that no reference points to, page aligned.
#[inline(always)]
pub unsafe fn copy_frame(from: u64, to: u64) {
    // SAFETY: promised by the caller; otherwise as in `copy`.
    unsafe {
        core::arch::asm!(
            "rep movsq",
            inout("rcx") FRAME_WORDS => _,
            inout("rsi") pointer::<u8>(from) => _,
            inout("rdi") pointer::<u8>(to) => _,
            options(nostack, preserves_flags),
        );
    }
}
