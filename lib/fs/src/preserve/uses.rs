//! How often each node of a volume is used: a table in preserved memory, with an index on the heap.
//!
//! An entry is one word: node, uses, check. A node without uses has an entry only while it is *doomed*: it has no name either, and
//! its deletion, which may take several transactions, is not finished.

use alloc::vec::Vec;

use sys::keep::Part;

use crate::Errno;
use crate::lru::LruIndex;
use recover::check::check_word;
use recover::transaction::{self, Undo};

/// Nodes in use at a time.
pub const MOST: usize = 8192;
/// Bytes of the table.
pub const BYTES: usize = MOST * 8;

const COUNT_SHIFT: u32 = 32;
const CHECK_SHIFT: u32 = 56;
const MOST_USES: u32 = (1 << (CHECK_SHIFT - COUNT_SHIFT)) - 1;
/// Entries the index is laid out for.
const EXPECTED: usize = 2048;

/// The table.
pub struct Uses {
    part: Part,
    undo: Undo,
    index: LruIndex,
    doomed: usize,
}

impl Uses {
    /// A table without entries, in memory that may hold anything.
    pub fn create(mut part: Part, undo: Undo) -> Uses {
        part.fill(0);
        Uses { part, undo, index: LruIndex::new(EXPECTED), doomed: 0 }
    }

    /// The table that a predecessor has left.
    pub fn open(part: Part, undo: Undo) -> Uses {
        let mut uses = Uses { part, undo, index: LruIndex::new(EXPECTED), doomed: 0 };
        uses.rebuild();
        uses
    }

    /// Makes the index again from the table. Damaged entries are dropped and reported.
    pub fn rebuild(&mut self) {
        let mut keys = Vec::new();
        self.doomed = 0;
        for slot in 0..MOST {
            let word = self.part.word(slot * 8);
            let is_whole = word != 0 && word == entry(word as u32, count_in(word));
            if word != 0 && !is_whole {
                sys::log!("the preserved uses of a node are damaged ({word:#x}): it is taken to have none");
                self.part.put_word(slot * 8, 0);
            }
            keys.push(is_whole.then_some(u64::from(word as u32)));
            self.doomed += usize::from(is_whole && count_in(word) == 0);
        }
        let used = keys.iter().rposition(Option::is_some).map_or(0, |last| last + 1);
        keys.truncate(used);
        self.index = LruIndex::restore(EXPECTED, keys.into_iter());
    }

    /// Uses of the node; `None` when it has no entry, 0 when it is doomed.
    #[inline]
    pub fn count(&self, node: u32) -> Option<u32> {
        let slot = self.index.find(node.into())?;
        Some(count_in(self.part.word(slot * 8)))
    }

    /// Counts one more. `ENFILE` when the table is full.
    pub fn add(&mut self, node: u32) -> Result<(), Errno> {
        let count = self.count(node).unwrap_or(0);
        if count == MOST_USES {
            return Err(Errno::ENFILE);
        }
        self.set(node, count + 1)
    }

    /// Counts `count` less. → what is left. `EINVAL` when there are not so many.
    pub fn remove(&mut self, node: u32, count: u32) -> Result<u32, Errno> {
        let left = self.count(node).and_then(|uses| uses.checked_sub(count)).ok_or(Errno::EINVAL)?;
        match left {
            0 => self.forget(node),
            left => self.set(node, left)?,
        }
        Ok(left)
    }

    /// Makes it `count` uses; 0: doomed. `ENFILE` when the table is full.
    pub fn set(&mut self, node: u32, count: u32) -> Result<(), Errno> {
        let slot = match self.index.find(node.into()) {
            Some(slot) => slot,
            None if self.index.len() == MOST => return Err(Errno::ENFILE),
            None => self.index.insert(node.into()),
        };
        self.put(slot, entry(node, count.min(MOST_USES)));
        Ok(())
    }

    /// Takes the node's entry away.
    pub fn forget(&mut self, node: u32) {
        if let Some(slot) = self.index.find(node.into()) {
            self.put(slot, 0);
            self.index.remove(slot);
        }
    }

    /// Some doomed node.
    pub fn doomed(&self) -> Option<u32> {
        if self.doomed == 0 {
            return None;
        }
        self.nodes().find(|&(_, count)| count == 0).map(|(node, _)| node)
    }

    /// All entries: node and uses.
    pub fn nodes(&self) -> impl Iterator<Item = (u32, u32)> {
        let words = (0..MOST).map(|slot| self.part.word(slot * 8)).filter(|&word| word != 0);
        words.map(|word| (word as u32, count_in(word)))
    }

    /// Puts `bytes` back to `place` of the preserved memory, if that is here. [`Uses::rebuild`] must follow.
    pub fn restore(&mut self, place: usize, bytes: &[u8]) {
        transaction::put_back(&mut self.part, place, bytes);
    }

    fn put(&mut self, slot: usize, word: u64) {
        let old = self.part.word(slot * 8);
        let is_doomed = |word: u64| usize::from(word != 0 && count_in(word) == 0);
        self.doomed = self.doomed + is_doomed(word) - is_doomed(old);
        self.undo.save(self.part.place() + slot * 8, &old.to_le_bytes());
        self.part.put_word(slot * 8, word);
    }
}

fn count_in(word: u64) -> u32 {
    (word >> COUNT_SHIFT) as u32 & MOST_USES
}

fn entry(node: u32, count: u32) -> u64 {
    let content = u64::from(node) | u64::from(count) << COUNT_SHIFT;
    content | check_word(0, [content]) >> CHECK_SHIFT << CHECK_SHIFT
}
