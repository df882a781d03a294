//! Preserved memory: bytes that survive the service, whatever ended it.
//!
//! A service may be killed between any two instructions, so the order of stores matters: the accesses here are made
//! in program order. The crate `recover` builds atomic changes on them.
//! [`Keep`] copies in and out; [`Parts`] gives references to content that is used in place.

mod part;

pub use part::{Part, Parts};

use crate::{
    Result,
    grant::{Access, RangeGrant},
    raw,
};
use abi::call::KernelCall;
use abi::layout::{PAGE_BYTES, SERVICE_KEEP};
use abi::{Endpoint, Word};
use core::sync::atomic::{AtomicBool, Ordering, compiler_fence};

const PAGE: usize = PAGE_BYTES as usize;
/// Bytes of a word.
const WORD: usize = 8;

static TAKEN: AtomicBool = AtomicBool::new(false);

/// The service's preserved memory.
#[derive(Debug)]
pub struct Keep {
    /// Start of memory that is mapped for the program's lifetime, used by this `Keep` alone, aligned to 8.
    start: *mut u8,
    /// Length in words.
    words: usize,
    #[cfg(not(target_os = "none"))]
    writes_left: core::cell::Cell<u64>,
}

impl Keep {
    /// Returns the preserved memory, `bytes` bytes: at most `keep_bytes` of the system file, else the first access beyond faults.
    /// There is one owner: `None` at the second call.
    #[cfg(target_os = "none")]
    pub fn take(bytes: usize) -> Option<Keep> {
        (!TAKEN.swap(true, Ordering::Relaxed))
            .then_some(Keep { start: SERVICE_KEEP as *mut u8, words: bytes.div_ceil(WORD) })
    }

    /// Returns the preserved memory of the installed [`crate::host::Kernel`]; tests without one use [`Keep::simulated`].
    #[cfg(not(target_os = "none"))]
    pub fn take(bytes: usize) -> Option<Keep> {
        let _ = (&TAKEN, SERVICE_KEEP);
        raw::preserved(bytes).map(|memory| Keep::simulated(memory, u64::MAX))
    }

    /// Makes preserved memory for tests. It simulates a crash by a panic at the write after the first `writes`. The content stays in
    /// `memory`, for the successor's `Keep`. `memory` must outlive every use and not be accessed otherwise ([`crate::host::zeroed`]).
    #[cfg(not(target_os = "none"))]
    pub fn simulated(memory: &'static [core::sync::atomic::AtomicU64], writes: u64) -> Keep {
        let start = memory.as_ptr().cast_mut().cast();
        Keep { start, words: memory.len(), writes_left: core::cell::Cell::new(writes) }
    }

    /// Splits the memory behind the first `bytes`, rounded up to words, off.
    ///
    /// # Panics
    /// If it has fewer.
    pub fn split_off(&mut self, bytes: usize) -> Keep {
        let words = bytes.div_ceil(WORD);
        assert!(words <= self.words, "{bytes} of {} bytes", self.len());
        // SAFETY: within the memory, or just behind it.
        let start = unsafe { self.start.add(words * WORD) };
        let rest = Keep {
            start,
            words: self.words - words,
            #[cfg(not(target_os = "none"))]
            writes_left: self.writes_left.clone(),
        };
        self.words = words;
        rest
    }

    /// Returns the length in bytes.
    pub fn len(&self) -> usize {
        self.words * WORD
    }

    /// Returns whether the memory has no bytes.
    pub fn is_empty(&self) -> bool {
        self.words == 0
    }

    /// Copies out from `offset`.
    ///
    /// # Panics
    /// If the range is outside the memory.
    pub fn read(&self, offset: usize, into: &mut [u8]) {
        self.check(offset, into.len());
        // SAFETY: within the memory (checked), which is there as long as the program; only this `Keep` uses it, by copies.
        unsafe { self.start.add(offset).copy_to_nonoverlapping(into.as_mut_ptr(), into.len()) };
        compiler_fence(Ordering::SeqCst);
    }

    /// Copies in at `offset`, ordered after earlier and before later writes; its own bytes are stored in any order.
    ///
    /// # Panics
    /// If the range is outside the memory.
    pub fn write(&self, offset: usize, from: &[u8]) {
        self.check(offset, from.len());
        self.count_write();
        compiler_fence(Ordering::SeqCst);
        // SAFETY: as in `read`; a service is one thread, and no reference into the memory is ever made.
        unsafe { self.start.add(offset).copy_from_nonoverlapping(from.as_ptr(), from.len()) };
        compiler_fence(Ordering::SeqCst);
    }

    /// Copies into the memory at `offset` from `address` of another process, at most `layout::MAX_COPY` bytes.
    ///
    /// # Errors
    /// As [`crate::copy::from_process`].
    ///
    /// # Panics
    /// If the range is outside the memory.
    pub fn fetch(&self, offset: usize, bytes: usize, from: Endpoint, address: u64) -> Result<()> {
        let arguments =
            [from.to_word(), address, Endpoint::SELF.to_word(), self.address(offset, bytes), bytes as u64, 0];
        self.count_write();
        raw::kernel(KernelCall::VirCopy, arguments).map(drop)
    }

    /// Copies out of the memory at `offset` to `address` of another process, at most `layout::MAX_COPY` bytes.
    ///
    /// # Errors
    /// As [`crate::copy::to_process`].
    ///
    /// # Panics
    /// If the range is outside the memory.
    pub fn store(&self, offset: usize, bytes: usize, to: Endpoint, address: u64) -> Result<()> {
        let arguments = [Endpoint::SELF.to_word(), self.address(offset, bytes), to.to_word(), address, bytes as u64, 0];
        raw::kernel(KernelCall::VirCopy, arguments).map(drop)
    }

    /// Lets `grantee` copy to or from `bytes` bytes from `offset` on, by the kernel. Dropping the grant ends that.
    ///
    /// # Errors
    /// As [`crate::grant::lend`].
    ///
    /// # Panics
    /// If the range is outside the memory.
    pub fn grant(&self, offset: usize, bytes: usize, grantee: Endpoint, access: Access) -> Result<RangeGrant> {
        RangeGrant::new(self.address(offset, bytes), bytes as u64, grantee, access)
    }

    /// Returns the whole pages within a range to vm: they read as zeros afterwards. For bytes that nothing refers to, nor will after a
    /// death.
    ///
    /// # Panics
    /// If the range is outside the memory.
    pub fn discard(&self, offset: usize, bytes: usize) {
        self.check(offset, bytes);
        let (first, end) = (offset.next_multiple_of(PAGE), (offset + bytes) / PAGE * PAGE);
        if first < end {
            // SAFETY: within the memory.
            self.clear_pages(unsafe { self.start.add(first) }, end - first);
        }
    }

    #[cfg(target_os = "none")]
    fn clear_pages(&self, start: *mut u8, bytes: usize) {
        crate::discard::discard(start, bytes);
    }

    #[cfg(not(target_os = "none"))]
    fn clear_pages(&self, start: *mut u8, bytes: usize) {
        // SAFETY: within the memory, which only this `Keep` uses.
        unsafe { start.write_bytes(0, bytes) };
    }

    fn address(&self, offset: usize, bytes: usize) -> u64 {
        self.check(offset, bytes);
        self.start as u64 + offset as u64
    }

    /// Copies within the memory; the ranges do not overlap.
    ///
    /// # Panics
    /// If a range is outside the memory, or they overlap.
    pub fn copy(&self, from: usize, to: usize, bytes: usize) {
        self.check(from, bytes);
        self.check(to, bytes);
        assert!(from.abs_diff(to) >= bytes, "{bytes} bytes from {from} to {to} overlap");
        self.count_write();
        compiler_fence(Ordering::SeqCst);
        // SAFETY: as in `write`, and the ranges do not overlap.
        unsafe { self.start.add(from).copy_to_nonoverlapping(self.start.add(to), bytes) };
        compiler_fence(Ordering::SeqCst);
    }

    /// Reads word number `index`.
    ///
    /// # Panics
    /// If it is outside the memory.
    #[inline]
    pub fn read_word(&self, index: usize) -> u64 {
        self.words(index, 1).read(0)
    }

    /// Writes word number `index` atomically: a crash leaves either the old or the new value.
    ///
    /// # Panics
    /// If it is outside the memory.
    #[inline]
    pub fn write_word(&self, index: usize, value: u64) {
        self.words(index, 1).write(0, value);
    }

    /// Returns `count` words from number `first` on, whose bounds are checked once.
    ///
    /// # Panics
    /// If they are outside the memory.
    #[inline]
    pub fn words(&self, first: usize, count: usize) -> Words<'_> {
        if first > self.words || self.words - first < count {
            outside(first, count, self.words);
        }
        // SAFETY: within the memory.
        Words { keep: self, start: unsafe { self.start.cast::<u64>().add(first) }, count }
    }

    #[inline]
    fn check(&self, offset: usize, bytes: usize) {
        let length = self.len();
        if offset > length || length - offset < bytes {
            outside_bytes(offset, bytes, length);
        }
    }

    #[cfg(target_os = "none")]
    #[inline(always)]
    fn count_write(&self) {}

    #[cfg(not(target_os = "none"))]
    fn count_write(&self) {
        let left = self.writes_left.get();
        assert!(left > 0, "killed here");
        self.writes_left.set(left - 1);
    }
}

/// Words of preserved memory that lie one after another.
#[derive(Clone, Copy, Debug)]
pub struct Words<'a> {
    keep: &'a Keep,
    /// Invariant: `count` words from here on are within the memory.
    start: *mut u64,
    count: usize,
}

impl Words<'_> {
    /// Reads word number `index` of these.
    ///
    /// # Panics
    /// If there is none.
    #[inline]
    pub fn read(&self, index: usize) -> u64 {
        // SAFETY: as in `Keep::read`; aligned, since the start of the memory is.
        unsafe { self.word(index).read_volatile() }
    }

    /// Writes word number `index` of these atomically: a crash leaves either the old or the new value.
    ///
    /// # Panics
    /// If there is none.
    #[inline]
    pub fn write(&self, index: usize, value: u64) {
        let word = self.word(index);
        self.keep.count_write();
        compiler_fence(Ordering::SeqCst);
        // SAFETY: as in `Keep::write`; aligned, since the start of the memory is.
        unsafe { word.write_volatile(value) };
        compiler_fence(Ordering::SeqCst);
    }

    #[inline]
    fn word(&self, index: usize) -> *mut u64 {
        if index >= self.count {
            outside(index, 1, self.count);
        }
        // SAFETY: within the memory, by the invariant.
        unsafe { self.start.add(index) }
    }
}

/// As [`outside`].
#[cold]
#[inline(never)]
fn outside_bytes(offset: usize, bytes: usize, length: usize) -> ! {
    panic!("{bytes} bytes at {offset} are outside {length} preserved bytes")
}

/// Takes its arguments by value: a message that refers to them would have every access store them.
#[cold]
#[inline(never)]
fn outside(first: usize, count: usize, end: usize) -> ! {
    panic!("{count} preserved words at {first} are beyond {end}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host;

    fn four_words() -> Keep {
        Keep::simulated(host::zeroed(4 * WORD), u64::MAX)
    }

    #[test]
    fn what_lies_within_is_reached() {
        let keep = four_words();
        keep.write_word(3, 5);
        keep.words(2, 2).write(0, 4);
        keep.write(16, &[6]);
        assert_eq!((keep.read_word(2), keep.read_word(3)), (6, 5));
        keep.write(4 * WORD, &[]);
    }

    #[test]
    #[should_panic = "1 preserved words at 4 are beyond 4"]
    fn a_word_behind_the_last_one_is_refused() {
        four_words().read_word(4);
    }

    #[test]
    #[should_panic = "2 preserved words at 3 are beyond 4"]
    fn words_that_begin_within_and_end_beyond_are_refused() {
        four_words().words(3, 2);
    }

    #[test]
    #[should_panic = "preserved words at 18446744073709551615 are beyond 4"]
    fn words_whose_end_overflows_are_refused() {
        four_words().words(usize::MAX, 2);
    }

    #[test]
    #[should_panic = "2 bytes at 18446744073709551615 are outside 32 preserved bytes"]
    fn bytes_whose_end_overflows_are_refused() {
        four_words().write(usize::MAX, &[1, 2]);
    }

    #[test]
    #[should_panic = "2 bytes at 31 are outside 32 preserved bytes"]
    fn bytes_that_end_beyond_are_refused() {
        four_words().write(31, &[1, 2]);
    }
}
