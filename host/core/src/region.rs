//! Runs of pages that the library's buffers are made of, and copies between them. Beside [`crate::memory`], the place of `unsafe` code.
//!
//! Invariants: a region is mapped from its first to its last byte as long as it exists, for reading and writing; one that is shared belongs to a memory object
//! that cannot shrink. So no access to it faults. What other processes write there meanwhile is bytes that nobody here interprets.

use crate::memory::sealed_bytes;
use rustix::fd::AsFd;
use rustix::io::{self, Errno};
use rustix::mm::{Advice, MapFlags, MprotectFlags, ProtFlags};
use std::ptr::NonNull;

/// Bytes of a page.
pub const PAGE_BYTES: usize = 4096;

/// A run of pages of this process.
pub struct Region {
    /// The first byte that may be used.
    place: NonNull<u8>,
    bytes: usize,
    /// Unmapped pages of its own before it and behind it, so that nothing else ever adjoins it.
    guard_bytes: usize,
}

// SAFETY: a region is memory that belongs to nobody else; who copies from or to it does so by address.
unsafe impl Send for Region {}
// SAFETY: as above.
unsafe impl Sync for Region {}

impl Region {
    /// Maps memory of zeros between two pages that cannot be touched. A child does not have it.
    ///
    /// # Errors
    /// Those of `mmap(2)`, `mprotect(2)` and `madvise(2)`.
    pub fn new(bytes: usize) -> io::Result<Region> {
        let all = bytes + 2 * PAGE_BYTES;
        // SAFETY: a new mapping at an address that the kernel chooses touches no existing memory; the next two calls are about it alone.
        unsafe {
            let start = rustix::mm::mmap_anonymous(std::ptr::null_mut(), all, ProtFlags::empty(), MapFlags::PRIVATE)?;
            let start = NonNull::new(start.cast::<u8>()).ok_or(Errno::NOMEM)?;
            let region = Region { place: start.add(PAGE_BYTES), bytes, guard_bytes: PAGE_BYTES };
            rustix::mm::mprotect(region.place.as_ptr().cast(), bytes, MprotectFlags::READ | MprotectFlags::WRITE)?;
            rustix::mm::madvise(start.as_ptr().cast(), all, Advice::LinuxDontFork)?;
            Ok(region)
        }
    }

    /// Puts a memory object in the place of its pages.
    ///
    /// # Errors
    /// `EINVAL`: it is too short, or could become so; and those of `mmap(2)` and `madvise(2)`.
    pub fn share(&mut self, file: impl AsFd) -> io::Result<()> {
        check(&file, self.bytes)?;
        let access = ProtFlags::READ | ProtFlags::WRITE;
        let flags = MapFlags::SHARED | MapFlags::FIXED;
        // SAFETY: it replaces pages of this region, which nobody refers to yet.
        unsafe {
            rustix::mm::mmap(self.place.as_ptr().cast(), self.bytes, access, flags, file, 0)?;
            rustix::mm::madvise(self.place.as_ptr().cast(), self.bytes, Advice::LinuxDontFork)
        }
    }

    /// Maps another process's memory object.
    ///
    /// # Errors
    /// As [`Region::share`].
    pub fn map(file: impl AsFd, bytes: usize) -> io::Result<Region> {
        check(&file, bytes)?;
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at an address that the kernel chooses touches no existing memory.
        let place = unsafe { rustix::mm::mmap(std::ptr::null_mut(), bytes, access, MapFlags::SHARED, file, 0)? };
        let place = NonNull::new(place.cast()).ok_or(Errno::NOMEM)?;
        Ok(Region { place, bytes, guard_bytes: 0 })
    }

    /// Returns the address of its first byte.
    pub fn address(&self) -> usize {
        self.place.as_ptr() as usize
    }

    /// Returns its length.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

/// Checks that a mapping of so many bytes never faults.
fn check(file: impl AsFd, bytes: usize) -> io::Result<()> {
    if sealed_bytes(file)? < bytes as u64 { Err(Errno::INVAL) } else { Ok(()) }
}

impl Drop for Region {
    fn drop(&mut self) {
        let start = self.address() - self.guard_bytes;
        // SAFETY: these pages are this region's, and nobody refers to them any more. It can fail only for other addresses.
        let _ = unsafe { rustix::mm::munmap(start as *mut _, self.bytes + 2 * self.guard_bytes) };
    }
}

/// Copies bytes from one region to another.
///
/// # Safety
/// Both blocks lie within regions that exist, which are not the same. Other processes may write there meanwhile, and threads of this one that the
/// program lets do so; nobody interprets what is copied.
#[inline(always)]
pub unsafe fn copy(from: usize, to: usize, bytes: usize) {
    // SAFETY: as the caller promises. The function of C copies bytes, whatever they are.
    unsafe { libc::memcpy(to as *mut libc::c_void, from as *const libc::c_void, bytes) };
}
