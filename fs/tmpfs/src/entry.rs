//! Names in directories: a hash table of all names, and a list of those of each directory.
//!
//! ```text
//! entry   directory, inode | next of the same bucket, next free entry | newer, older in the directory | number and length | 32 bytes of the name
//! ```
//! The entries of a directory are listed from the newest to the oldest, so a listing ends however many names are made meanwhile. Its position tells the
//! number of the last entry that it had, and where that was: it goes on with the next older one, also when that entry is gone. Entries get numbers in the order
//! in which they are made. A rename gives an existing name another inode, and leaves it its place.

use abi::fs::DIRECTORY_END;
use fs::Errno;
use fs::file_system::{EntrySink, NAME_MAX, S_IFMT};
use recover::check::check_word;

use crate::inode::Inode;
use crate::memory::{Memory, pair};
use crate::pages;
use crate::plan::SHORT_NAME;

const DIRECTORY: usize = 0;
const NODE: usize = 4;
const NEXT: usize = 8;
const NEXT_FREE: usize = 12;
const NEWER: usize = 16;
const OLDER: usize = 20;
const NUMBER: usize = 24;
const NAME: usize = 32;
/// Bits of the length of a name.
const LENGTH_BITS: u32 = 8;
/// Bits of the number of an entry in a position.
const PLACE_BITS: u32 = 16;

/// The fields of the head (`pages`) about entries.
const FREE_ENTRIES: usize = 104;
const FRESH_ENTRY: usize = 108;
const LAST_NUMBER: usize = 120;
/// What the hashes of names begin with.
const SEED: usize = 32;

/// An entry in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry(u32);

/// A name to look for in a directory.
#[derive(Clone, Copy, Debug)]
pub struct Name<'a> {
    directory: Inode,
    text: &'a [u8],
    /// The first bytes, filled up with zeros.
    start: [u64; SHORT_NAME / 8],
    hash: u32,
}

/// Makes all entries free, of a memory of zeros. No program can know the seed.
pub fn format(memory: &mut Memory, seed: u64) {
    memory.put(SEED, seed);
    memory.put_half(FRESH_ENTRY, 1);
}

impl<'a> Name<'a> {
    /// `ENOTDIR`, `ENAMETOOLONG`.
    pub fn new(memory: &Memory, directory: Inode, text: &'a [u8]) -> Result<Name<'a>, Errno> {
        if !directory.is_directory(memory) {
            return Err(Errno::ENOTDIR);
        }
        if text.len() > NAME_MAX {
            return Err(Errno::ENAMETOOLONG);
        }
        let mut start = [0; SHORT_NAME / 8];
        start.iter_mut().zip(text.chunks(8)).for_each(|(word, bytes)| *word = word_of(bytes));
        let seed = memory.word(SEED) ^ u64::from(directory.number());
        let hash = match text.get(SHORT_NAME..) {
            Some(rest) => check_word(rest.len(), start.into_iter().chain(rest.chunks(8).map(word_of)).chain([seed])),
            None => check_word(text.len(), start.into_iter().take(text.len().div_ceil(8)).chain([seed])),
        };
        Ok(Name { directory, text, start, hash: (hash >> 32) as u32 })
    }

    /// Returns the directory.
    pub fn directory(&self) -> Inode {
        self.directory
    }

    /// Whether it is `..`.
    pub fn is_parent(&self) -> bool {
        self.text == b".."
    }

    /// Whether it is `.` or `..`, which have no entries.
    pub fn is_dot(&self) -> bool {
        is_dot(self.text)
    }

    /// Returns the entry with this name.
    #[inline]
    pub fn find(&self, memory: &Memory) -> Option<Entry> {
        let mut entry = memory.half(memory.places().bucket(self.hash));
        while entry != 0 {
            if self.is_of(memory, entry) {
                return Some(Entry(entry));
            }
            entry = memory.half(memory.places().entry(entry) + NEXT);
        }
        None
    }

    #[inline]
    fn is_of(&self, memory: &Memory, entry: u32) -> bool {
        let place = memory.places().entry(entry);
        let is_near = memory.half(place + DIRECTORY) == self.directory.number()
            && memory.word(place + NUMBER) as u8 == self.text.len() as u8
            && (0..self.start.len()).all(|word| memory.word(place + NAME + 8 * word) == self.start[word]);
        let tail = memory.places().tail(entry);
        is_near && self.text.get(SHORT_NAME..).is_none_or(|rest| memory.bytes(tail..tail + rest.len()) == rest)
    }

    /// Gives the name, which the directory does not have, to an inode.
    pub fn insert(&self, memory: &mut Memory, node: Inode) {
        let number = take(memory);
        let (place, tail) = (memory.places().entry(number), memory.places().tail(number));
        let bucket = memory.places().bucket(self.hash);
        let (next, older) = (memory.half(bucket), self.directory.first_entry(memory));
        let counted = memory.word(LAST_NUMBER) + 1;
        memory.put(LAST_NUMBER, counted);
        memory.put(place + DIRECTORY, pair(self.directory.number(), node.number()));
        memory.put_half(place + NEXT, next);
        memory.put(place + NEWER, pair(0, older));
        memory.put(place + NUMBER, counted << LENGTH_BITS | self.text.len() as u64);
        (0..self.start.len()).for_each(|word| memory.put(place + NAME + 8 * word, self.start[word]));
        if let Some(rest) = self.text.get(SHORT_NAME..) {
            memory.bytes_mut(tail..tail + rest.len()).copy_from_slice(rest);
        }
        memory.change_half(bucket, number);
        if older != 0 {
            memory.change_half(memory.places().entry(older) + NEWER, number);
        }
        self.directory.save(memory);
        self.directory.set_first_entry(memory, number);
        self.directory.set_size(memory, self.directory.size(memory) + 1);
    }

    /// Removes the name, whose entry this is.
    pub fn remove(&self, memory: &mut Memory, entry: Entry) {
        let place = memory.places().entry(entry.0);
        let mut before = memory.places().bucket(self.hash);
        while memory.half(before) != entry.0 {
            before = memory.places().entry(memory.half(before)) + NEXT;
        }
        memory.change_half(before, memory.half(place + NEXT));
        let (newer, older) = (memory.half(place + NEWER), memory.half(place + OLDER));
        self.directory.save(memory);
        match newer {
            0 => self.directory.set_first_entry(memory, older),
            newer => memory.change_half(memory.places().entry(newer) + OLDER, older),
        }
        if older != 0 {
            memory.change_half(memory.places().entry(older) + NEWER, newer);
        }
        self.directory.set_size(memory, self.directory.size(memory) - 1);
        free(memory, entry);
    }
}

impl Entry {
    /// Returns the inode that has the name.
    #[inline]
    pub fn node(self, memory: &Memory) -> Inode {
        Inode::named(memory, memory.half(memory.places().entry(self.0) + NODE))
    }

    /// Gives the name to another inode.
    pub fn set_node(self, memory: &mut Memory, node: Inode) {
        memory.change_half(memory.places().entry(self.0) + NODE, node.number());
    }
}

/// Whether a name is `.` or `..`.
pub fn is_dot(text: &[u8]) -> bool {
    matches!(text, b"." | b"..")
}

/// Lists a directory from `position` on. Returns the position at which to go on.
pub fn list(memory: &Memory, directory: Inode, position: u64, sink: &mut dyn EntrySink) -> u64 {
    const PARENT: u64 = 1;
    const NAMES: u64 = 2;
    let own = (0, PARENT, Some(directory), &b"."[..]);
    let parent = (PARENT, NAMES, directory.parent(memory).ok(), &b".."[..]);
    for (at, next, node, name) in [own, parent] {
        if position <= at && node.is_some_and(|node| !put(memory, sink, node, next, name)) {
            return at;
        }
    }
    let mut at = position.max(NAMES);
    let mut entry = match position {
        ..=NAMES => directory.first_entry(memory),
        DIRECTORY_END.. => 0,
        _ => behind(memory, directory, position),
    };
    let mut name = [0; NAME_MAX];
    while entry != 0 {
        let place = memory.places().entry(entry);
        let word = memory.word(place + NUMBER);
        let next = word >> LENGTH_BITS << PLACE_BITS | u64::from(entry);
        let node = Entry(entry).node(memory);
        let length = word as u8 as usize;
        let (start, rest) = name[..length].split_at_mut(length.min(SHORT_NAME));
        start.copy_from_slice(memory.bytes(place + NAME..place + NAME + start.len()));
        let tail = memory.places().tail(entry);
        rest.copy_from_slice(memory.bytes(tail..tail + rest.len()));
        if !put(memory, sink, node, next, &name[..length]) {
            return at;
        }
        at = next;
        entry = memory.half(place + OLDER);
    }
    DIRECTORY_END
}

fn put(memory: &Memory, sink: &mut dyn EntrySink, node: Inode, next: u64, name: &[u8]) -> bool {
    sink.entry(node.number().into(), next, node.mode(memory) & S_IFMT, name)
}

/// Returns the newest entry that is older than the one at which a listing was, or 0.
fn behind(memory: &Memory, directory: Inode, position: u64) -> u32 {
    let (number, last) = (position >> PLACE_BITS, (position & ((1 << PLACE_BITS) - 1)) as u32);
    let number_of = |entry: u32| memory.word(memory.places().entry(entry) + NUMBER) >> LENGTH_BITS;
    if last != 0 && last < memory.half(FRESH_ENTRY) {
        let place = memory.places().entry(last);
        if memory.half(place + DIRECTORY) == directory.number() && number_of(last) == number {
            return memory.half(place + OLDER);
        }
    }
    let mut entry = directory.first_entry(memory);
    while entry != 0 && number_of(entry) >= number {
        entry = memory.half(memory.places().entry(entry) + OLDER);
    }
    entry
}

/// Takes a free entry. There is one: `inode::require_room` counts names.
fn take(memory: &mut Memory) -> u32 {
    pages::save_head(memory);
    let (top, fresh) = (memory.half(FREE_ENTRIES), memory.half(FRESH_ENTRY));
    if top == 0 {
        memory.put_half(FRESH_ENTRY, fresh + 1);
        return fresh;
    }
    memory.put_half(FREE_ENTRIES, memory.half(memory.places().entry(top) + NEXT_FREE));
    top
}

/// Frees an entry, which is in no list.
fn free(memory: &mut Memory, entry: Entry) {
    let place = memory.places().entry(entry.0);
    pages::save_head(memory);
    memory.change_half(place + DIRECTORY, 0);
    memory.put_half(place + NEXT_FREE, memory.half(FREE_ENTRIES));
    memory.put_half(FREE_ENTRIES, entry.0);
}

/// Bytes as a word, filled up with zeros.
#[inline]
fn word_of(bytes: &[u8]) -> u64 {
    match bytes.first_chunk() {
        Some(whole) => u64::from_le_bytes(*whole),
        None => bytes.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte)),
    }
}

#[cfg(test)]
pub use looks::{free_list, fresh, longest_chain};

/// What only the tests look at.
#[cfg(test)]
mod looks {
    use super::*;

    /// Returns the first entry that was never used.
    pub fn fresh(memory: &Memory) -> u32 {
        memory.half(FRESH_ENTRY)
    }

    /// Returns how many names the fullest bucket has.
    pub fn longest_chain(memory: &Memory) -> usize {
        let next = |&number: &u32| Some(memory.half(memory.places().entry(number) + NEXT)).filter(|next| *next != 0);
        let first = |hash| Some(memory.half(memory.places().bucket(hash))).filter(|first| *first != 0);
        let length = |hash| core::iter::successors(first(hash), next).count();
        memory.places().hashes().map(length).max().unwrap_or(0)
    }

    /// Returns the free entries that were used before.
    pub fn free_list(memory: &Memory) -> alloc::vec::Vec<u32> {
        let is_entry = |number: &u32| *number != 0;
        let next = |&number: &u32| Some(memory.half(memory.places().entry(number) + NEXT_FREE)).filter(is_entry);
        core::iter::successors(Some(memory.half(FREE_ENTRIES)).filter(is_entry), next).collect()
    }
}
