//! Parts of the preserved memory that are used where they lie, such as the blocks of a cache.
//!
//! Each byte is lent to one [`Part`] at a time, so that references into a part are exclusive. Stores through them may be done in any
//! order up to the next [`Part::order`], and all of them are done before any store behind it.

use super::Keep;
use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::RefCell;
use core::ops::{Deref, DerefMut, Range};
use core::sync::atomic::{Ordering, compiler_fence};

/// Preserved memory to be lent in parts. Clones are the same memory.
#[derive(Clone, Debug)]
pub struct Parts(Rc<Whole>);

#[derive(Debug)]
struct Whole {
    keep: Keep,
    lent: RefCell<Vec<Range<usize>>>,
}

impl Parts {
    /// All of the memory, nothing lent.
    pub fn new(keep: Keep) -> Parts {
        Parts(Rc::new(Whole { keep, lent: RefCell::default() }))
    }

    /// Its length.
    pub fn len(&self) -> usize {
        self.0.keep.len()
    }

    /// True when it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes of `range` until the part is dropped; `None` while another part has some of them.
    ///
    /// # Panics
    /// When the range is not within, or does not begin with a whole word.
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

    /// From now on the service is killed (by a panic) at the ordering point after the next `points`. For tests.
    #[cfg(not(target_os = "none"))]
    pub fn kill_after(&self, points: u64) {
        self.0.keep.writes_left.set(points);
    }

    /// Ordering points until the service is killed. For tests.
    #[cfg(not(target_os = "none"))]
    pub fn points_left(&self) -> u64 {
        self.0.keep.writes_left.get()
    }
}

/// Some bytes of the preserved memory.
#[derive(Debug)]
pub struct Part {
    start: *mut u8,
    bytes: usize,
    place: usize,
    whole: Rc<Whole>,
}

impl Part {
    /// Where it begins in the whole memory: the same for the successor.
    #[inline]
    pub fn place(&self) -> usize {
        self.place
    }

    /// What was stored before into the preserved memory stays before what is stored after.
    #[inline]
    pub fn order(&self) {
        self.whole.keep.count_write();
        compiler_fence(Ordering::SeqCst);
    }

    /// The aligned word at `offset`.
    ///
    /// # Panics
    /// When the offset is not aligned or not within.
    #[inline]
    pub fn word(&self, offset: usize) -> u64 {
        self.check_word(offset);
        // SAFETY: within the part and aligned (checked); nobody else has it.
        unsafe { self.start.add(offset).cast::<u64>().read_volatile() }
    }

    /// Stores an aligned word, which a death leaves either old or new: after everything before, before everything after.
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
    use core::sync::atomic::AtomicU64;
    use std::boxed::Box;

    fn parts() -> Parts {
        let words: Vec<_> = (0..64).map(|_| AtomicU64::new(0)).collect();
        Parts::new(Keep::simulated(Box::leak(words.into_boxed_slice()), u64::MAX))
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
        part[0] = 7;
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
