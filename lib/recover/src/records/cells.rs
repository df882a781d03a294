//! Tables of single values that change often: value and check share one word, so a change takes one entry of the undo log.

use super::{Entry, Recover, no_place};
use crate::check::SPREAD;
use core::ops::Range;

/// Bits of a value.
pub const VALUE_BITS: u32 = 48;

/// A table of values below 2^48.
#[derive(Debug)]
pub struct Cells {
    first: usize,
    count: usize,
}

impl Cells {
    /// The next table of the layout, of `count` values.
    ///
    /// # Panics
    /// When the memory is too small.
    pub fn lay_out(recover: &Recover, count: usize) -> Self {
        Cells { first: recover.take(count), count }
    }

    /// Number of places.
    pub fn len(&self) -> usize {
        self.count
    }

    /// True for a table without places.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Reads the place `index`.
    ///
    /// # Panics
    /// When there is no such place.
    pub fn get(&self, recover: &Recover, index: usize) -> Entry<u64> {
        let at = self.place(index);
        let word = recover.word(at);
        let value = word & ((1 << VALUE_BITS) - 1);
        match word {
            0 => Entry::Empty,
            _ if word == checked(at, value) => Entry::Some(value),
            _ => Entry::Damaged,
        }
    }

    /// Puts a value into the place `index`, as part of the present change.
    ///
    /// # Panics
    /// When there is no such place, the log is full, or the value is too large.
    #[inline(always)]
    pub fn set(&self, recover: &Recover, index: usize, value: u64) {
        let at = self.place(index);
        recover.change(at, checked(at, value));
    }

    /// As [`Cells::set`], for a place that the state of the last commit does not refer to; see [`super::Table::put_unreferenced`].
    ///
    /// # Panics
    /// As [`Cells::set`].
    #[inline]
    pub fn put_unreferenced(&self, recover: &Recover, index: usize, value: u64) {
        let at = self.place(index);
        recover.put(at, checked(at, value));
    }

    /// Puts a value into the place `index` as a change of its own, whole with the one word, when no other change has been begun. There is
    /// nothing to commit then, and nothing to undo.
    ///
    /// # Panics
    /// As [`Cells::set`]; when a change has been begun.
    #[inline]
    pub fn set_alone(&self, recover: &Recover, index: usize, value: u64) {
        assert!(!recover.is_changing(), "a change has been begun");
        self.put_unreferenced(recover, index, value);
    }

    /// Clears the place `index`, as part of the present change.
    ///
    /// # Panics
    /// As [`Cells::set`].
    #[inline]
    pub fn clear(&self, recover: &Recover, index: usize) {
        recover.change(self.place(index), 0);
    }

    /// Clears a place that the state of the last commit does not refer to.
    ///
    /// # Panics
    /// When there is no such place.
    #[inline]
    pub fn clear_unreferenced(&self, recover: &Recover, index: usize) {
        recover.put(self.place(index), 0);
    }

    /// As [`super::Table::discard`].
    ///
    /// # Panics
    /// When there is no such place.
    pub fn discard(&self, recover: &Recover, places: Range<usize>) {
        recover.discard_words(self.first, 1, self.count, places);
    }

    #[inline]
    fn place(&self, index: usize) -> usize {
        if index >= self.count {
            no_place(index, self.count);
        }
        self.first + index
    }
}

/// By value, as in `no_place`.
#[cold]
#[inline(never)]
fn too_large(value: u64) -> ! {
    panic!("{value:#x} does not fit into a cell")
}

/// A value with its check, which ties it to its place and is never 0.
#[inline]
fn checked(at: usize, value: u64) -> u64 {
    if value >> VALUE_BITS != 0 {
        too_large(value);
    }
    let check = ((value ^ (at as u64) << 32).wrapping_mul(SPREAD) >> VALUE_BITS) | 1;
    value | check << VALUE_BITS
}
