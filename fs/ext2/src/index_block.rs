//! The blocks of a directory's index, as they are on the disk: a root, and perhaps nodes below it.
//!
//! Each looks like a block without names to whoever does not know of indexes: the root is block 0 of the directory, whose `..` is as long as the
//! rest of the block; a node is one free record. Behind that are entries of 8 bytes, a hash and a block of the directory each, in ascending
//! order. The first has no hash (it stands for 0) but the numbers of entries that fit and that there are. The lowest bit of a hash says that names
//! of the same hash are in the block before, too. Nothing is trusted: what is not as described here is corrupt.

use fs::Errno;

use crate::hash::Function;
use fs::bytes::{put_u16, put_u32, u16_at, u32_at};

/// Where the entries of a root begin: behind `.`, `..` and what it says of the index.
pub const ROOT_HEAD: usize = 32;
/// Where the entries of a node begin: behind its free record.
pub const NODE_HEAD: usize = 8;
/// Length of the record of `.`.
pub const DOT: usize = 12;
/// What a root says of the index, behind the name `..`: four bytes of zero, the hash function, its own length, levels, flags.
const INFO: usize = 24;
const INFO_BYTES: u8 = 8;
/// Levels of nodes between the root and the blocks with names.
pub const MAX_LEVELS: usize = 1;
/// Bytes of an entry.
const ENTRY: usize = 8;
/// The block in an entry has so many bits.
const BLOCK_BITS: u32 = 0x0fff_ffff;

/// What a root says of its index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Root {
    /// How its names are hashed.
    pub function: Function,
    /// Levels of nodes below it.
    pub levels: usize,
}

impl Root {
    /// Decodes it from block 0 of a directory. `EUCLEAN`.
    pub fn read(block: &[u8]) -> Result<Root, Errno> {
        let [function, length, levels, flags] = [4, 5, 6, 7].map(|at| block[INFO + at]);
        let is_sound = usize::from(u16_at(block, 4)) == DOT
            && usize::from(u16_at(block, DOT + 4)) == block.len() - DOT
            && u32_at(block, INFO) == 0
            && length == INFO_BYTES
            && usize::from(levels) <= MAX_LEVELS
            && flags & 1 == 0;
        let function = Function::from_number(function).filter(|_| is_sound).ok_or(Errno::EUCLEAN)?;
        Ok(Root { function, levels: levels.into() })
    }

    /// Encodes it.
    pub fn write(self, block: &mut [u8]) {
        put_u32(block, INFO, 0);
        block[INFO + 4..INFO + 8].copy_from_slice(&[self.function as u8, INFO_BYTES, self.levels as u8, 0]);
    }
}

/// Makes the block a node without entries: they are behind a free record.
pub fn make_node(block: &mut [u8]) {
    block.fill(0);
    let length = block.len() as u16;
    put_u16(block, 4, length);
}

/// The entries of an index block.
#[derive(Clone, Copy)]
pub struct Index<'a> {
    entries: &'a [[u8; ENTRY]],
}

impl<'a> Index<'a> {
    /// The entries behind the head of `block`. `EUCLEAN`.
    pub fn read(block: &'a [u8], head: usize) -> Result<Index<'a>, Errno> {
        if head == NODE_HEAD && (u32_at(block, 0) != 0 || usize::from(u16_at(block, 4)) != block.len()) {
            return Err(Errno::EUCLEAN);
        }
        let entries: &[[u8; ENTRY]] = block[head..].as_chunks().0;
        let (limit, count) = (usize::from(u16_at(&entries[0], 0)), usize::from(u16_at(&entries[0], 2)));
        let is_sound = limit == entries.len() && (1..=limit).contains(&count);
        if is_sound { Ok(Index { entries: &entries[..count] }) } else { Err(Errno::EUCLEAN) }
    }

    /// How many entries there are.
    pub fn count(&self) -> usize {
        self.entries.len()
    }

    /// Whether another entry fits.
    pub fn is_full(&self) -> bool {
        self.count() == usize::from(u16_at(&self.entries[0], 0))
    }

    /// The hash at which entry `at` begins, with the bit that says that it is continued.
    pub fn hash(&self, at: usize) -> u32 {
        if at == 0 { 0 } else { u32_at(&self.entries[at], 0) }
    }

    /// The block of the directory that entry `at` leads to.
    pub fn block(&self, at: usize) -> u32 {
        u32_at(&self.entries[at], 4) & BLOCK_BITS
    }

    /// The last entry that begins at or before this hash.
    pub fn search(&self, major: u32) -> usize {
        self.entries[1..].partition_point(|entry| u32_at(entry, 0) <= major)
    }
}

/// Writes the entries of an index block, whose head is there already; `block` is its beginning, as far as they reach, and `size` its size.
pub fn write(block: &mut [u8], head: usize, size: usize, entries: impl ExactSizeIterator<Item = (u32, u32)>) {
    let limit = (size - head) / ENTRY;
    let count = entries.len();
    for (at, (hash, target)) in entries.enumerate() {
        put_u32(block, head + at * ENTRY, hash);
        put_u32(block, head + at * ENTRY + 4, target);
    }
    put_u16(block, head, limit as u16);
    put_u16(block, head + 2, count as u16);
}

/// Keeps the first `count` entries of an index block, of which `block` is the beginning.
pub fn truncate(block: &mut [u8], head: usize, count: usize) {
    put_u16(block, head + 2, count as u16);
}

/// Inserts an entry at `at`, which is not 0; the block is not full.
pub fn insert(block: &mut [u8], head: usize, at: usize, hash: u32, target: u32) {
    let count = usize::from(u16_at(block, head + 2));
    let place = head + at * ENTRY;
    block.copy_within(place..head + count * ENTRY, place + ENTRY);
    put_u32(block, place, hash);
    put_u32(block, place + 4, target);
    put_u16(block, head + 2, count as u16 + 1);
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    fn node(entries: &[(u32, u32)]) -> alloc::vec::Vec<u8> {
        let mut block = vec![0; 1024];
        make_node(&mut block);
        write(&mut block, NODE_HEAD, 1024, entries.iter().copied());
        block
    }

    #[test]
    fn a_hash_is_found_in_the_last_entry_that_begins_before_it() {
        let block = node(&[(0, 1), (10, 2), (21, 3), (30, 4)]);
        let index = Index::read(&block, NODE_HEAD).unwrap();
        for (hash, block) in [(0, 1), (8, 1), (10, 2), (20, 2), (22, 3), (30, 4), (0xffff_fff0, 4)] {
            assert_eq!(index.block(index.search(hash)), block, "{hash}");
        }
    }

    #[test]
    fn an_entry_is_inserted_between_others() {
        let mut block = node(&[(0, 1), (10, 2)]);
        insert(&mut block, NODE_HEAD, 1, 4, 9);
        insert(&mut block, NODE_HEAD, 3, 40, 8);
        let index = Index::read(&block, NODE_HEAD).unwrap();
        let all: vec::Vec<_> = (0..index.count()).map(|at| (index.hash(at), index.block(at))).collect();
        assert_eq!(all, [(0, 1), (4, 9), (10, 2), (40, 8)]);
    }

    #[test]
    fn a_corrupt_block_is_refused() {
        let good = node(&[(0, 1)]);
        assert!(Index::read(&good, NODE_HEAD).is_ok());
        for (at, value) in [(0, 1), (4, 9), (8, 3), (10, 0), (11, 1)] {
            let mut block = good.clone();
            block[at] = value;
            assert_eq!(Index::read(&block, NODE_HEAD).err(), Some(Errno::EUCLEAN), "byte {at}");
        }
    }
}
