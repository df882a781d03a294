//! A small cache of directory look-ups, positive and negative.
//!
//! The file system reports every change of a directory to the cache, and searches the directory for a name
//! that is not cached. Long names are not cached.

use alloc::vec::Vec;
use sys::fallible::TryVec;

use crate::lru::LruIndex;

/// Longest name that is cached, in bytes.
const KEPT_NAME: usize = 46;

/// FNV-1a's parameters, 64 bits.
const FNV_BASIS: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0000_0100_0000_01b3;

/// The result of a cached look-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    /// The name exists: its node, and the block of the directory that holds the entry.
    Node(u32, u32),
    /// The name does not exist.
    Absent,
}

struct Entry {
    dir: u32,
    known: Known,
    len: u8,
    name: [u8; KEPT_NAME],
}

/// Cache of directory look-ups; inode numbers are of 32 bits.
pub struct NameCache {
    index: LruIndex,
    entries: Vec<Entry>,
    capacity: usize,
}

impl NameCache {
    /// A cache of up to `capacity` names (at least one).
    pub fn new(capacity: usize) -> Self {
        let capacity = capacity.max(1);
        NameCache { index: LruIndex::new(capacity), entries: Vec::new(), capacity }
    }

    /// Returns the cached look-up of `name` in `dir`.
    pub fn find(&mut self, dir: u32, name: &[u8]) -> Option<Known> {
        let slot = self.index.find(key(dir, name))?;
        let entry = &self.entries[slot];
        if entry.dir != dir || entry.name.get(..entry.len as usize) != Some(name) {
            return None;
        }
        let known = entry.known;
        self.index.touch(slot);
        Some(known)
    }

    /// Caches the look-up of `name` in `dir`.
    pub fn learn(&mut self, dir: u32, name: &[u8], known: Known) {
        if name.len() > KEPT_NAME {
            return;
        }
        let key = key(dir, name);
        let slot = match self.index.find(key) {
            Some(slot) => slot,
            None => match self.take(key) {
                Some(slot) => slot,
                None => return,
            },
        };
        let mut kept = [0; KEPT_NAME];
        kept[..name.len()].copy_from_slice(name);
        self.entries[slot] = Entry { dir, known, len: name.len() as u8, name: kept };
        self.index.touch(slot);
    }

    /// Notes that the entry for `name` is in another block of `dir`, if the look-up is cached.
    pub fn moved(&mut self, dir: u32, name: &[u8], to: u32) {
        let Some(slot) = self.index.find(key(dir, name)) else { return };
        let entry = &mut self.entries[slot];
        if entry.dir == dir
            && entry.name.get(..entry.len as usize) == Some(name)
            && let Known::Node(_, block) = &mut entry.known
        {
            *block = to;
        }
    }

    /// Returns a slot for the key; `None` without memory.
    fn take(&mut self, key: u64) -> Option<usize> {
        self.index.reserve().and_then(|()| self.entries.try_make_room(1)).ok()?;
        if self.index.len() >= self.capacity
            && let Some(oldest) = self.index.oldest()
        {
            self.index.remove(oldest);
        }
        let slot = self.index.insert(key);
        if slot == self.entries.len() {
            self.entries.push_reserved(Entry { dir: 0, known: Known::Absent, len: 0, name: [0; KEPT_NAME] });
        }
        Some(slot)
    }
}

fn key(dir: u32, name: &[u8]) -> u64 {
    let start = FNV_BASIS ^ u64::from(dir).wrapping_mul(FNV_PRIME);
    name.iter().fold(start, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(FNV_PRIME))
}
