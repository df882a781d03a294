//! Parts of the preserved memory that are used in place, such as the blocks of a cache.
//!
//! Each byte belongs to at most one [`Part`], so that references into a part are exclusive. Stores through them are unordered up to
//! the next [`Part::order`], which orders them before all later stores.

use super::Keep;
use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::RefCell;
use core::ops::{Deref, DerefMut, Range};
use core::sync::atomic::{Ordering, compiler_fence};

/// Preserved memory that is used in parts. Clones share it.
#[derive(Clone, Debug)]
pub struct Parts(Rc<Whole>);

#[derive(Debug)]
struct Whole {
    keep: Keep,
    lent: RefCell<Vec<Range<usize>>>,
}

impl Parts {
    /// Returns all of the memory, without a part in use.
    pub fn new(keep: Keep) -> Parts {
        Parts(Rc::new(Whole { keep, lent: RefCell::default() }))
    }

    /// Returns the length in bytes.
    pub fn len(&self) -> usize {
        self.0.keep.len()
    }

    /// Returns whether the memory has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the bytes of `range`, until the part is dropped; `None` if another part overlaps.
    ///
    /// # Panics
    /// If the range is outside the memory, or does not start at a word boundary.
    pub fn lend(&self, range: Range<usize>) -> Option<Part> {
        assert!(range.start.is_multiple_of(8) && range.start <= range.end, "no part begins at {}", range.start);
        self.0.keep.check(range.start, range.len());
        let mut lent = self.0.lent.borrow_mut();
        if lent.iter().any(|other| other.start < range.end && range.start < other.end) {
            return None;
        }
        lent.push(range.clone());
        // SAFETY: within the memory (checked).
        let start = unsafe { self.0.keep.start.add(range.start) };
        Some(Part { start, bytes: range.len(), place: range.start, whole: self.0.clone() })
    }

    /// Simulates a crash, by a panic, at the ordering point after the next `points`. For tests.
    #[cfg(not(target_os = "none"))]
    pub fn kill_after(&self, points: u64) {
        self.0.keep.writes_left.set(points);
    }

    /// Returns the number of ordering points until the simulated crash. For tests.
    #[cfg(not(target_os = "none"))]
    pub fn points_left(&self) -> u64 {
        self.0.keep.writes_left.get()
    }
}

/// An exclusive range of the preserved memory.
#[derive(Debug)]
pub struct Part {
    start: *mut u8,
    bytes: usize,
    place: usize,
    whole: Rc<Whole>,
}

impl Part {
    /// Returns the part's offset in the whole memory, which the successor uses too.
    #[inline]
    pub fn place(&self) -> usize {
        self.place
    }

    /// Orders earlier stores into the preserved memory before later ones.
    #[inline]
    pub fn order(&self) {
        self.whole.keep.count_write();
        compiler_fence(Ordering::SeqCst);
    }

    /// Returns the whole pages within a range of the part to vm, as [`Keep::discard`].
    ///
    /// # Panics
    /// If the range is outside the part.
    pub fn discard(&mut self, range: Range<usize>) {
        assert!(range.start <= range.end && range.end <= self.bytes, "{range:?} is outside {} bytes", self.bytes);
        self.whole.keep.discard(self.place + range.start, range.len());
    }

    /// Returns the aligned word at `offset`.
    ///
    /// # Panics
    /// If the offset is misaligned or outside the part.
    #[inline]
    pub fn word(&self, offset: usize) -> u64 {
        self.check_word(offset);
        // SAFETY: within the part and aligned (checked); nobody else has it.
        unsafe { self.start.add(offset).cast::<u64>().read_volatile() }
    }

    /// Stores an aligned word atomically, ordered after earlier and before later stores: a crash leaves either the old or the new value.
    ///
    /// # Panics
    /// As [`Part::word`].
    #[inline]
    pub fn put_word(&mut self, offset: usize, value: u64) {
        self.check_word(offset);
        self.order();
        // SAFETY: as in `word`, and `self` is borrowed exclusively.
        unsafe { self.start.add(offset).cast::<u64>().write_volatile(value) };
        compiler_fence(Ordering::SeqCst);
    }

    /// Returns the aligned half of a word at `offset`.
    ///
    /// # Panics
    /// If the offset is misaligned or outside the part.
    #[inline]
    pub fn half(&self, offset: usize) -> u32 {
        self.check_half(offset);
        // SAFETY: as in `word`, of four bytes.
        unsafe { self.start.add(offset).cast::<u32>().read_volatile() }
    }

    /// Stores an aligned half of a word, as [`Part::put_word`] stores a whole one.
    ///
    /// # Panics
    /// As [`Part::half`].
    #[inline]
    pub fn put_half(&mut self, offset: usize, value: u32) {
        self.check_half(offset);
        self.order();
        // SAFETY: as in `half`, and `self` is borrowed exclusively.
        unsafe { self.start.add(offset).cast::<u32>().write_volatile(value) };
        compiler_fence(Ordering::SeqCst);
    }

    #[inline]
    fn check_half(&self, offset: usize) {
        let within = offset.is_multiple_of(4) && offset < self.bytes & !3;
        assert!(within, "there is no half of a word at {offset} in {} preserved bytes", self.bytes);
    }

    #[inline]
    fn check_word(&self, offset: usize) {
        let within = offset.is_multiple_of(8) && offset < self.bytes & !7;
        assert!(within, "there is no word at {offset} in {} preserved bytes", self.bytes);
    }
}

impl Deref for Part {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: the memory is there as long as the program, all of it is initialised, and these bytes are lent to this part alone.
        unsafe { core::slice::from_raw_parts(self.start, self.bytes) }
    }
}

impl DerefMut for Part {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref`, and `self` is borrowed exclusively.
        unsafe { core::slice::from_raw_parts_mut(self.start, self.bytes) }
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        let range = self.place..self.place + self.bytes;
        let mut lent = self.whole.lent.borrow_mut();
        if let Some(at) = lent.iter().position(|other| *other == range) {
            lent.swap_remove(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts() -> Parts {
        Parts::new(Keep::simulated(crate::host::zeroed(64 * crate::keep::WORD), u64::MAX))
    }

    #[test]
    fn a_byte_has_one_user_at_a_time() {
        let parts = parts();
        let first = parts.lend(0..64).unwrap();
        assert!(parts.lend(56..128).is_none());
        let second = parts.lend(64..128).unwrap();
        drop(first);
        assert!(parts.lend(0..72).is_none() && parts.lend(0..64).is_some());
        assert_eq!(second.place(), 64);
    }

    #[test]
    fn words_and_bytes_are_the_same_memory() {
        let parts = parts();
        let mut part = parts.lend(8..24).unwrap();
        part.put_word(8, 0x0102);
        assert_eq!((part[8], part[9], part.word(8)), (2, 1, 0x0102));
        part.put_half(4, 9);
        assert_eq!((part.half(4), part.half(8), part.word(0)), (9, 0x0102, 9 << 32));
        part[0] = 7;
        part.put_half(4, 0);
        drop(part);
        assert_eq!(parts.lend(0..16).unwrap().word(8), 7);
    }

    #[test]
    #[should_panic(expected = "killed here")]
    fn a_death_strikes_between_two_stores() {
        let parts = parts();
        let mut part = parts.lend(0..64).unwrap();
        parts.kill_after(1);
        part.put_word(0, 1);
        part.put_word(8, 1);
    }
}
