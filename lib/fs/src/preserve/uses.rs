//! Use counts of the nodes of a volume: a table in preserved memory, with an index on the heap.
//!
//! An entry is one word: node, uses, check. A node without uses has an entry only while it is an *orphan*: it has no name either, and
//! its deletion, which may take several transactions, is not finished.

use alloc::vec::Vec;

use sys::keep::Part;

use crate::lru::LruIndex;
use abi::Errno;
use recover::check::check_word;
use recover::transaction::{self, Undo};

/// Limit of nodes in use at a time.
pub const MOST: usize = abi::limits::FILES_IN_USE;
/// Bytes of the table.
pub const BYTES: usize = MOST * 8;

const COUNT_SHIFT: u32 = 32;
const CHECK_SHIFT: u32 = 56;
const MAX_USES: u32 = (1 << (CHECK_SHIFT - COUNT_SHIFT)) - 1;
/// Entries the index is laid out for.
const EXPECTED: usize = 2048;

/// The table of use counts.
pub struct Uses {
    part: Part,
    undo: Undo,
    index: LruIndex,
    orphans: usize,
}

impl Uses {
    /// Clears the memory and returns an empty table in it.
    pub fn create(mut part: Part, undo: Undo) -> Uses {
        part.fill(0);
        Uses { part, undo, index: LruIndex::new(EXPECTED), orphans: 0 }
    }

    /// Opens the table of the previous incarnation.
    pub fn open(part: Part, undo: Undo) -> Uses {
        let mut uses = Uses { part, undo, index: LruIndex::new(EXPECTED), orphans: 0 };
        uses.rebuild();
        uses
    }

    /// Rebuilds the index from the table. Drops and logs corrupt entries.
    #[expect(clippy::disallowed_methods, reason = "at the start")]
    pub fn rebuild(&mut self) {
        let mut keys = Vec::new();
        self.orphans = 0;
        for slot in 0..MOST {
            let word = self.part.word(slot * 8);
            let is_whole = word != 0 && word == entry(word as u32, count_in(word));
            if word != 0 && !is_whole {
                sys::log!("use counts: entry {word:#x} is corrupt; its node counts as unused");
                self.part.put_word(slot * 8, 0);
            }
            keys.push(is_whole.then_some(u64::from(word as u32)));
            self.orphans += usize::from(is_whole && count_in(word) == 0);
        }
        let used = keys.iter().rposition(Option::is_some).map_or(0, |last| last + 1);
        keys.truncate(used);
        self.index = LruIndex::restore(EXPECTED, keys.into_iter());
    }

    /// Returns the use count of the node; `None` without an entry, 0 for an orphan.
    #[inline]
    pub fn count(&self, node: u32) -> Option<u32> {
        let slot = self.index.find(node.into())?;
        Some(count_in(self.part.word(slot * 8)))
    }

    /// Increments the count. `ENFILE` if the table is full.
    pub fn add(&mut self, node: u32) -> Result<(), Errno> {
        let count = self.count(node).unwrap_or(0);
        if count == MAX_USES {
            return Err(Errno::ENFILE);
        }
        self.set(node, count + 1)
    }

    /// Subtracts `count` and returns the rest. `EINVAL` if the node has fewer uses.
    pub fn remove(&mut self, node: u32, count: u32) -> Result<u32, Errno> {
        let left = self.count(node).and_then(|uses| uses.checked_sub(count)).ok_or(Errno::EINVAL)?;
        match left {
            0 => self.forget(node),
            left => self.set(node, left)?,
        }
        Ok(left)
    }

    /// Sets the count; 0 makes the node an orphan. `ENFILE` if the table is full, `ENOMEM`.
    pub fn set(&mut self, node: u32, count: u32) -> Result<(), Errno> {
        let slot = match self.index.find(node.into()) {
            Some(slot) => slot,
            None if self.index.len() == MOST => return Err(Errno::ENFILE),
            None => {
                self.index.reserve()?;
                self.index.insert(node.into())
            }
        };
        self.put(slot, entry(node, count.min(MAX_USES)));
        Ok(())
    }

    /// Removes the node's entry.
    pub fn forget(&mut self, node: u32) {
        if let Some(slot) = self.index.find(node.into()) {
            self.put(slot, 0);
            self.index.remove(slot);
        }
    }

    /// Returns an orphan, if there is one.
    pub fn orphan(&self) -> Option<u32> {
        if self.orphans == 0 {
            return None;
        }
        self.nodes().find(|&(_, count)| count == 0).map(|(node, _)| node)
    }

    /// Iterates over all entries: node and use count.
    pub fn nodes(&self) -> impl Iterator<Item = (u32, u32)> {
        let words = (0..MOST).map(|slot| self.part.word(slot * 8)).filter(|&word| word != 0);
        words.map(|word| (word as u32, count_in(word)))
    }

    /// Restores `bytes` at `place` of the preserved memory, if the table covers it. [`Uses::rebuild`] must follow.
    pub fn restore(&mut self, place: usize, bytes: &[u8]) {
        transaction::put_back(&mut self.part, place, bytes);
    }

    fn put(&mut self, slot: usize, word: u64) {
        let old = self.part.word(slot * 8);
        let is_orphan = |word: u64| usize::from(word != 0 && count_in(word) == 0);
        self.orphans = self.orphans + is_orphan(word) - is_orphan(old);
        self.undo.save(self.part.place() + slot * 8, &old.to_le_bytes());
        self.part.put_word(slot * 8, word);
    }
}

fn count_in(word: u64) -> u32 {
    (word >> COUNT_SHIFT) as u32 & MAX_USES
}

fn entry(node: u32, count: u32) -> u64 {
    let content = u64::from(node) | u64::from(count) << COUNT_SHIFT;
    content | check_word(0, [content]) >> CHECK_SHIFT << CHECK_SHIFT
}
