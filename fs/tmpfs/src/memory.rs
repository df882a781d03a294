//! The area of a file system, word by word, and the undo log that makes the changes of a request one transaction.
//!
//! Everything that a file system knows is in its area: nothing has to be rebuilt after a death or a roll-back. Two kinds of stores:
//! `change` and `save` keep the old value for a roll-back; `put` and `bytes_mut` do not. Those are for what has been saved, and for records and
//! pages that are free in the state of the last commit, to which nothing of it refers. Therefore what a transaction frees, it does not
//! use again: whatever allocates comes before whatever frees.

use core::ops::Range;

use recover::transaction::{self, Undo};
use sys::keep::Part;

use crate::plan::{PAGE, Places, Plan};

/// Bytes that are saved together: half of an inode, a line of a map.
pub const LINE: usize = 64;

/// See the head of the file.
pub struct Memory {
    area: Part,
    undo: Undo,
    places: Places,
    /// Whether there may be maps to be taken apart (`pages`).
    has_maps: bool,
}

impl Memory {
    /// The memory of a file system of this plan in `area`, which is large enough.
    pub fn new(area: Part, undo: Undo, plan: Plan) -> Memory {
        assert!(plan.bytes() <= area.len(), "{plan:?} in {} bytes", area.len());
        Memory { area, undo, places: Places::new(plan), has_maps: true }
    }

    /// Returns where everything lies.
    #[inline]
    pub fn places(&self) -> &Places {
        &self.places
    }

    /// Returns the word at `place`, a multiple of 8.
    #[inline]
    pub fn word(&self, place: usize) -> u64 {
        self.area.word(place)
    }

    /// Returns the 4 bytes at `place`, a multiple of 4.
    #[inline]
    pub fn half(&self, place: usize) -> u32 {
        self.area.half(place)
    }

    /// Stores a word without saving the old one.
    #[inline]
    pub fn put(&mut self, place: usize, word: u64) {
        self.area.put_word(place, word);
    }

    /// Stores 4 bytes without saving the old ones.
    #[inline]
    pub fn put_half(&mut self, place: usize, half: u32) {
        self.area.put_half(place, half);
    }

    /// Stores a line without saving the old one: of a record that was free at the last commit.
    pub fn put_line(&mut self, place: usize, words: [u64; LINE / 8]) {
        let line = &mut self.area[place..place + LINE];
        line.chunks_exact_mut(8).zip(words).for_each(|(bytes, word)| bytes.copy_from_slice(&word.to_le_bytes()));
    }

    /// Saves the line in which `place` lies.
    #[inline(never)]
    pub fn save_line(&self, place: usize) {
        let start = place & !(LINE - 1);
        self.undo.save(self.area.place() + start, &self.area[start..start + LINE]);
    }

    /// Saves the 4 bytes at `place`, and stores others.
    #[inline(never)]
    pub fn change_half(&mut self, place: usize, half: u32) {
        let at = place & !7;
        self.undo.save(self.area.place() + at, &self.word(at).to_le_bytes());
        self.put_half(place, half);
    }

    /// Saves a whole page.
    pub fn save_page(&self, page: u32) {
        let start = self.places.page(page);
        self.undo.save(self.area.place() + start, &self.area[start..start + PAGE]);
    }

    /// Returns bytes.
    #[inline]
    pub fn bytes(&self, range: Range<usize>) -> &[u8] {
        &self.area[range]
    }

    /// Returns bytes that are changed without saving the old ones.
    #[inline]
    pub fn bytes_mut(&mut self, range: Range<usize>) -> &mut [u8] {
        &mut self.area[range]
    }

    /// Gives the memory of a range of whole pages back to vm: it reads as zeros.
    pub fn discard(&mut self, range: Range<usize>) {
        self.area.discard(range);
    }

    /// Whether there may be maps to be taken apart: no transaction has left one since there were none.
    #[inline]
    pub fn may_have_maps(&self) -> bool {
        self.has_maps
    }

    /// Notes that there may be maps to be taken apart, or that there are none in the state of the last commit.
    #[inline]
    pub fn note_maps(&mut self, has_maps: bool) {
        self.has_maps = has_maps;
    }

    /// Whether anything was changed since the last commit.
    pub fn is_changed(&self) -> bool {
        self.undo.is_open()
    }

    /// Whether a long change should commit a part.
    pub fn is_crowded(&self) -> bool {
        self.undo.is_large()
    }

    /// Commits everything since the last commit.
    pub fn commit(&self) {
        self.undo.commit();
    }

    /// Restores `bytes` at `place` of the preserved memory, if that is in the area.
    pub fn put_back(&mut self, place: usize, bytes: &[u8]) {
        transaction::put_back(&mut self.area, place, bytes);
    }
}

/// Returns a word of two times 4 bytes, the first ones first.
#[inline]
pub const fn pair(first: u32, second: u32) -> u64 {
    first as u64 | (second as u64) << 32
}
