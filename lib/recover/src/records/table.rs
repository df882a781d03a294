//! Tables of records. Each record has a check word, which ties it to its place; without one the place is empty.

use super::{Recover, no_place};
use crate::check::check_word;
use core::{marker::PhantomData, ops::Range};
use sys::keep::Words;

/// Most words of one record.
const MAX_WORDS: usize = 32;

/// The records of a table: anything that fits into a few words.
pub trait Record: Copy {
    /// How many, at most 32.
    const WORDS: usize;
    /// Writes itself into this many words.
    fn store(&self, words: &mut [u64]);
    /// The record in these words, which `store` has written. Other words may give any record.
    fn load(words: &[u64]) -> Self;
}

/// A place in a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry<R> {
    /// No record.
    Empty,
    /// A record.
    Some(R),
    /// Words that no `set` has stored: a wild store has hit the memory.
    Damaged,
}

impl<R> Entry<R> {
    /// The record, if there is a whole one.
    pub fn record(self) -> Option<R> {
        match self {
            Entry::Some(record) => Some(record),
            Entry::Empty | Entry::Damaged => None,
        }
    }
}

/// A table.
#[derive(Debug)]
pub struct Table<R> {
    first: usize,
    count: usize,
    records: PhantomData<R>,
}

impl<R: Record> Table<R> {
    /// The next table of the layout, of `count` places.
    ///
    /// # Panics
    /// When the memory is too small.
    pub fn lay_out(recover: &Recover, count: usize) -> Self {
        assert!(R::WORDS <= MAX_WORDS, "a record has at most {MAX_WORDS} words");
        Table { first: recover.take(count * (R::WORDS + 1)), count, records: PhantomData }
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
    pub fn get(&self, recover: &Recover, index: usize) -> Entry<R> {
        let at = self.place(index);
        let stored = recover.keep.words(at, R::WORDS + 1);
        if stored.read(0) == 0 {
            return Entry::Empty;
        }
        match R::WORDS {
            0..=7 => load::<7, R>(at, &stored),
            8..=15 => load::<15, R>(at, &stored),
            _ => load::<MAX_WORDS, R>(at, &stored),
        }
    }

    /// Puts a record into the place `index`, as part of the present change.
    ///
    /// # Panics
    /// When there is no such place, or the log is full.
    #[inline]
    pub fn set(&self, recover: &Recover, index: usize, record: &R) {
        let at = self.place(index);
        with_words(at, record, |words| recover.change_all(at, words));
    }

    /// Puts a record into a place that the state of the last commit does not refer to: nothing has to be undone there, so it
    /// costs no room in the log. It is written at once, and counts as soon as a committed record refers to it.
    ///
    /// # Panics
    /// When there is no such place.
    #[inline]
    pub fn put_unreferenced(&self, recover: &Recover, index: usize, record: &R) {
        let at = self.place(index);
        let place = recover.keep.words(at, R::WORDS + 1);
        with_words(at, record, |words| {
            for (offset, &word) in words.iter().enumerate() {
                place.write(offset, word);
            }
        });
    }

    /// Clears a place that the state of the last commit does not refer to.
    ///
    /// # Panics
    /// As [`Table::put_unreferenced`].
    #[inline]
    pub fn clear_unreferenced(&self, recover: &Recover, index: usize) {
        recover.put(self.place(index), 0);
    }

    /// Clears the place `index`, as part of the present change.
    ///
    /// # Panics
    /// As [`Table::set`].
    #[inline]
    pub fn clear(&self, recover: &Recover, index: usize) {
        recover.change(self.place(index), 0);
    }

    /// Returns the whole pages of places to vm, to which neither the state of the last commit nor a later one refers. They are empty.
    ///
    /// # Panics
    /// When there is no such place.
    pub fn discard(&self, recover: &Recover, places: Range<usize>) {
        recover.discard_words(self.first, R::WORDS + 1, self.count, places);
    }

    /// All places in use, damaged ones included.
    pub fn entries<'a>(&'a self, recover: &'a Recover) -> impl Iterator<Item = (usize, Entry<R>)> + 'a {
        let all = (0..self.count).map(|index| (index, self.get(recover, index)));
        all.filter(|(_, entry)| !matches!(entry, Entry::Empty))
    }

    #[inline]
    fn place(&self, index: usize) -> usize {
        if index >= self.count {
            no_place(index, self.count);
        }
        self.first + index * (R::WORDS + 1)
    }
}

/// The words of a record for the place `at`, behind their check word, in an array that is not much larger than needed: clearing 32 words
/// costs more than most records.
#[inline(always)]
fn with_words<R: Record>(at: usize, record: &R, act: impl FnOnce(&[u64])) {
    #[inline(always)]
    fn fill<const N: usize, R: Record>(at: usize, record: &R, act: impl FnOnce(&[u64])) {
        let mut words = [0; N];
        record.store(&mut words[1..=R::WORDS]);
        words[0] = check(at, &words[1..=R::WORDS]);
        act(&words[..=R::WORDS]);
    }
    match R::WORDS {
        0..=1 => fill::<2, R>(at, record, act),
        2..=3 => fill::<4, R>(at, record, act),
        4..=7 => fill::<8, R>(at, record, act),
        8..=15 => fill::<16, R>(at, record, act),
        _ => fill::<{ MAX_WORDS + 1 }, R>(at, record, act),
    }
}

/// The record of `stored`, by way of an array of `N` words, which is not much larger than needed either.
fn load<const N: usize, R: Record>(at: usize, stored: &Words) -> Entry<R> {
    let mut words = [0; N];
    let words = &mut words[..R::WORDS];
    for (offset, word) in words.iter_mut().enumerate() {
        *word = stored.read(1 + offset);
    }
    if check(at, words) == stored.read(0) { Entry::Some(R::load(words)) } else { Entry::Damaged }
}

#[inline]
fn check(at: usize, words: &[u64]) -> u64 {
    check_word(at, words.iter().copied())
}
