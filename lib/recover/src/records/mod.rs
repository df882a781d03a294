//! Records in preserved memory that change together or not at all.
//!
//! A service changes its records between [`Recover::begin`] and [`Recover::commit`]. Before a word changes, its old value goes into
//! an *undo log* in the same memory; the successor, opening the memory, puts the old values of an unfinished change back. So it
//! always finds the state after some commit.
//! A check word in each record reveals wild stores of a broken service: a damaged record counts as absent and is reported.
//!
//! ```text
//! word 0   which layout this is; written last when the memory is made
//! word 1   words used in the undo log (low half); 0: no change is in progress. Commits so far (high half)
//! word 2.. undo log: pairs of place and old value
//! then     tables and areas, in the order in which they are laid out
//! ```
//! Invariant: while the low half of word 1 is n, undoing the first n words of the log from last to first gives the state of the
//! last commit. That holds at every instruction, undoing included.

mod area;
mod cells;
mod table;
#[cfg(test)]
mod tests;

pub use area::Area;
pub use cells::{Cells, VALUE_BITS};
pub use table::{Entry, Record, Table};

use core::{cell::Cell, ops::Range};
use sys::keep::Keep;

const LAYOUT: usize = 0;
const USED: usize = 1;
const LOG: usize = 2;
const WORD_BYTES: usize = 8;
/// What a service dies of that changes too much at once.
const FULL: &str = "a change of the preserved state is larger than its undo log";
/// The half of word 1 that counts commits.
const COMMITS: u64 = !0 << 32;
const ONE_COMMIT: u64 = 1 << 32;
/// Layout of memory that is being cleared.
const CLEARING: u64 = 1;
/// Distinguishes a layout number from any value that the memory may hold by chance.
const MAGIC: u64 = 0x534b_494e_4b00_0000;

/// Takes its arguments by value: a message that refers to them would have every access store them.
#[cold]
#[inline(never)]
fn no_place(index: usize, count: usize) -> ! {
    panic!("there is no place {index} in a table of {count}")
}

/// What the memory held when it was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// Nothing, or another layout: it has been cleared.
    Nothing,
    /// A predecessor's state after a commit.
    State,
    /// A predecessor's state after a commit; the change in progress has been undone.
    Undone,
    /// An undo log that makes no sense, so nothing can be relied on: it has been cleared.
    Damaged,
}

/// Preserved memory in use.
#[derive(Debug)]
pub struct Recover {
    keep: Keep,
    log_words: usize,
    /// First word that belongs to no table.
    next: Cell<usize>,
    used: Cell<usize>,
    /// Commits so far, in the high half.
    commits: Cell<u64>,
}

impl Recover {
    /// Bytes of preserved memory needed besides the tables, for changes of up to `log_changes` words.
    pub const fn bytes(log_changes: usize) -> usize {
        (LOG + 2 * log_changes) * WORD_BYTES
    }

    /// Opens the memory. `layout` is a number below 2^24 that changes whenever tables change in number, size or meaning. The undo
    /// log has room for `log_changes` changed words in one change.
    ///
    /// # Panics
    /// When the memory is too small for the log.
    pub fn open(keep: Keep, layout: u64, log_changes: usize) -> (Recover, Found) {
        let log_words = log_changes * 2;
        assert!(Recover::bytes(log_changes) <= keep.len(), "no room for {log_changes} changes in preserved memory");
        let recover =
            Recover { keep, log_words, next: Cell::new(LOG + log_words), used: Cell::new(0), commits: Cell::new(0) };
        let found = recover.restore(MAGIC | layout);
        (recover, found)
    }

    fn restore(&self, layout: u64) -> Found {
        if self.word(LAYOUT) != layout {
            self.clear(layout);
            return Found::Nothing;
        }
        let used = self.word(USED);
        self.commits.set(used & COMMITS);
        let used = (used & !COMMITS) as usize;
        if used == 0 {
            return Found::State;
        }
        if used > self.log_words
            || !used.is_multiple_of(2)
            || !(LOG..LOG + used).step_by(2).all(|at| self.is_state(self.word(at)))
        {
            self.clear(layout);
            self.commits.set(0);
            return Found::Damaged;
        }
        self.undo(used);
        Found::Undone
    }

    fn is_state(&self, place: u64) -> bool {
        (self.next.get() as u64..(self.keep.len() / WORD_BYTES) as u64).contains(&place)
    }

    fn undo(&self, used: usize) {
        for at in (LOG..LOG + used).step_by(2).rev() {
            self.put(self.word(at) as usize, self.word(at + 1));
        }
        self.put_used(0);
    }

    /// Clears everything: zero is the empty state of every table. New memory is zero already and stays untouched, so that it
    /// costs no frames until it is used.
    fn clear(&self, layout: u64) {
        if self.word(LAYOUT) != 0 {
            self.put(LAYOUT, CLEARING);
            for word in 1..self.keep.len() / WORD_BYTES {
                self.put(word, 0);
            }
        }
        self.put(LAYOUT, layout);
    }

    /// Takes the next `words` words for a table.
    fn take(&self, words: usize) -> usize {
        let first = self.next.get();
        let end = first + words;
        assert!(
            end * WORD_BYTES <= self.keep.len(),
            "{} bytes of preserved memory do not hold the tables",
            self.keep.len()
        );
        self.next.set(end);
        first
    }

    /// Returns the whole pages of a range of places to vm, in a table of `count` places of so many words from word `first` on.
    fn discard_words(&self, first: usize, words_each: usize, count: usize, places: Range<usize>) {
        assert!(places.end <= count, "there is no place {} in a table of {count}", places.end);
        let bytes_each = words_each * WORD_BYTES;
        self.keep.discard(first * WORD_BYTES + places.start * bytes_each, places.len() * bytes_each);
    }

    /// Begins a change.
    ///
    /// # Panics
    /// When one is in progress.
    #[inline]
    pub fn begin(&self) {
        assert!(self.used.get() == 0, "a change of the preserved state begins within another");
    }

    /// Commits everything since `begin`: no death undoes it any more.
    #[inline]
    pub fn commit(&self) {
        if self.used.get() != 0 {
            self.commit_stamp();
        }
    }

    /// Commits even if nothing has changed, for writes that become valid by their [`Recover::stamp`].
    #[inline]
    pub fn commit_stamp(&self) {
        self.used.set(0);
        self.commits.set(self.commits.get().wrapping_add(ONE_COMMIT));
        self.put_used(0);
    }

    /// Returns the stamp of the next commit. What is written with it, without undo log, to a place that is otherwise unused, is
    /// valid from that commit on. A successor clears whatever has a stamp that [`Recover::is_committed`] denies, before it commits
    /// anything itself.
    #[inline]
    pub fn stamp(&self) -> u64 {
        self.commits.get().wrapping_add(ONE_COMMIT)
    }

    /// Whether the commit with this stamp has happened; right for the last 2^31 stamps.
    pub fn is_committed(&self, stamp: u64) -> bool {
        ((self.commits.get().wrapping_sub(stamp)) as i64) >= 0
    }

    #[inline]
    fn put_used(&self, used: usize) {
        self.put(USED, self.commits.get() | used as u64);
    }

    /// Whether there are changes since the last commit.
    #[inline]
    pub fn is_changing(&self) -> bool {
        self.used.get() != 0
    }

    /// Whether half of the undo log is used.
    #[inline]
    pub fn is_long(&self) -> bool {
        self.used.get() > self.log_words / 2
    }

    /// Undoes everything since `begin`.
    pub fn abandon(&self) {
        self.undo(self.used.replace(0));
    }

    #[inline]
    fn word(&self, at: usize) -> u64 {
        self.keep.read_word(at)
    }

    #[inline]
    fn put(&self, at: usize, value: u64) {
        self.keep.write_word(at, value);
    }

    /// Changes a word of the state.
    ///
    /// # Panics
    /// When the change has more words than the log has room for.
    #[inline(always)]
    fn change(&self, at: usize, value: u64) {
        let used = self.used.get();
        // Does not wrap: the log is much shorter than memory.
        let with_this = used.wrapping_add(2);
        assert!(with_this <= self.log_words, "{FULL}");
        let word = self.keep.words(at, 1);
        let old = word.read(0);
        if old == value {
            return;
        }
        let log = self.keep.words(LOG + used, 2);
        log.write(0, at as u64);
        log.write(1, old);
        self.used.set(with_this);
        self.put_used(with_this);
        word.write(0, value);
    }

    /// Changes words of the state that lie one after another, from `first` on. All old values are in the log before the first new one is
    /// written, so that one store makes them count. Inlined, because the number of words is known where it is called.
    ///
    /// # Panics
    /// As [`Recover::change`], unchanged words included.
    #[inline(always)]
    fn change_all(&self, first: usize, values: &[u64]) {
        let used = self.used.get();
        let free = self.log_words - used;
        assert!(2 * values.len() <= free, "{FULL}");
        let words = self.keep.words(first, values.len());
        let log = self.keep.words(LOG + used, free);
        let mut logged = 0;
        for (index, value) in values.iter().enumerate() {
            let old = words.read(index);
            if old != *value {
                log.write(logged, (first + index) as u64);
                log.write(logged + 1, old);
                logged += 2;
            }
        }
        if logged == 0 {
            return;
        }
        self.used.set(used + logged);
        self.put_used(used + logged);
        // The first one last: it is a record's check word, without which the place is empty.
        for (index, value) in values.iter().enumerate().rev() {
            words.write(index, *value);
        }
    }
}
