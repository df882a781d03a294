//! The name cache: which file a name in a directory means, or that it means none, without asking the file system.
//!
//! A fixed table of small sets, so that it needs no memory at run time and old names make room for new ones. Directories are
//! told apart by a number that is never used again; entries of forgotten directories are dead and get overwritten.
//! vfs itself tells of every change; file systems whose names change by themselves are kept out.

use super::SPREAD;
use alloc::{boxed::Box, vec::Vec};

const SETS: usize = 256;
const WAYS: usize = 4;
/// Longer names are not cached.
const NAME_BYTES: usize = 39;

#[derive(Debug)]
struct Entry<T> {
    directory: u64,
    name: [u8; NAME_BYTES],
    length: u8,
    target: Option<T>,
}

/// The cache; `T` is a file in use.
#[derive(Debug)]
pub struct Names<T> {
    sets: Box<[[Option<Entry<T>>; WAYS]]>,
    /// Rotates through the ways of full sets.
    victim: usize,
}

impl<T: Clone> Default for Names<T> {
    #[expect(clippy::disallowed_methods, reason = "at the start")]
    fn default() -> Self {
        let sets: Vec<[Option<Entry<T>>; WAYS]> = (0..SETS).map(|_| [const { None }; WAYS]).collect();
        Names { sets: sets.into_boxed_slice(), victim: 0 }
    }
}

/// The prime of FNV-1a.
const FNV_PRIME: u64 = 0x100_0000_01b3;
/// Bits of a hash that count are above these.
const LOW_BITS: u32 = 40;
/// How far down a hash is mixed into itself.
const FOLD_BITS: u32 = 29;

/// FNV-1a over the name, begun with the directory; a last multiplication brings the last byte into the upper bits too.
fn set_of(directory: u64, name: &[u8]) -> usize {
    let mut hash = directory.wrapping_mul(SPREAD);
    for &byte in name {
        hash = (hash ^ byte as u64).wrapping_mul(FNV_PRIME);
    }
    ((hash ^ hash >> FOLD_BITS).wrapping_mul(SPREAD) >> LOW_BITS) as usize % SETS
}

impl<T: Clone> Names<T> {
    fn find(&mut self, directory: u64, name: &[u8]) -> Option<&mut Option<Entry<T>>> {
        self.sets[set_of(directory, name)].iter_mut().find(|slot| {
            slot.as_ref().is_some_and(|entry| {
                let is_long_as_this = entry.length as usize == name.len();
                // Names are short: a loop is faster than a call of `memcmp`.
                entry.directory == directory && is_long_as_this && entry.name.iter().zip(name).all(|(a, b)| a == b)
            })
        })
    }

    /// What is known: the file, or that there is none; `None`: the file system has to be asked.
    pub fn get(&mut self, directory: u64, name: &[u8]) -> Option<Option<T>> {
        self.find(directory, name).map(|slot| slot.as_ref().and_then(|entry| entry.target.clone()))
    }

    /// Caches what a name means (`None`: no such file). Returns the evicted entry.
    #[must_use = "dropping an entry may end the use of a file, which is for the caller to time"]
    pub fn set(&mut self, directory: u64, name: &[u8], target: Option<T>) -> Option<T> {
        if name.len() > NAME_BYTES {
            return None;
        }
        if let Some(Some(entry)) = self.find(directory, name) {
            return core::mem::replace(&mut entry.target, target);
        }
        let mut entry = Entry { directory, name: [0; NAME_BYTES], length: name.len() as u8, target };
        entry.name[..name.len()].copy_from_slice(name);
        let set = &mut self.sets[set_of(directory, name)];
        let way = set.iter().position(Option::is_none).unwrap_or_else(|| {
            self.victim = (self.victim + 1) % WAYS;
            self.victim
        });
        set[way].replace(entry).and_then(|old| old.target)
    }

    /// Forgets a name.
    #[must_use = "as for set"]
    pub fn forget(&mut self, directory: u64, name: &[u8]) -> Option<T> {
        self.find(directory, name)?.take()?.target
    }

    /// Forgets every name whose file, or whose directory's number, fulfils the condition.
    #[must_use = "as for set"]
    #[expect(clippy::disallowed_methods, reason = "at most as many as the cache has, all of which it held")]
    pub fn forget_where(&mut self, condition: impl Fn(u64, Option<&T>) -> bool) -> Vec<T> {
        let slots = self.sets.iter_mut().flatten();
        slots
            .filter_map(|slot| slot.take_if(|entry| condition(entry.directory, entry.target.as_ref())))
            .filter_map(|entry| entry.target)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_known_once_learnt() {
        let mut names = Names::default();
        assert_eq!(names.get(1, b"a"), None);
        assert_eq!(names.set(1, b"a", Some(7)), None);
        assert_eq!(names.set(1, b"none", None), None);
        assert_eq!(names.get(1, b"a"), Some(Some(7)));
        assert_eq!(names.get(1, b"none"), Some(None));
        assert_eq!(names.get(2, b"a"), None);
        assert_eq!(names.get(1, b"ab"), None);
    }

    #[test]
    fn a_change_replaces_what_was_known() {
        let mut names = Names::default();
        let _ = names.set(1, b"a", None);
        assert_eq!(names.set(1, b"a", Some(1)), None);
        assert_eq!(names.set(1, b"a", Some(2)), Some(1));
        assert_eq!(names.forget(1, b"a"), Some(2));
        assert_eq!(names.get(1, b"a"), None);
    }

    #[test]
    fn full_sets_make_room() {
        let mut names = Names::default();
        let count = SETS * WAYS * 4;
        let mut kept = 0i64;
        for number in 0..count {
            kept += 1;
            kept -= names.set(1, alloc::format!("{number}").as_bytes(), Some(number)).is_some() as i64;
        }
        assert!(kept > (SETS * WAYS / 2) as i64 && kept <= (SETS * WAYS) as i64);
        assert_eq!(names.get(1, alloc::format!("{}", count - 1).as_bytes()), Some(Some(count - 1)));
    }

    #[test]
    fn names_and_directories_spread_over_the_sets() {
        let sets = |all: &[(u64, Vec<u8>)]| {
            let mut counts = [0; SETS];
            all.iter().for_each(|(directory, name)| counts[set_of(*directory, name)] += 1);
            counts.into_iter().max().expect("there are sets")
        };
        let text = |number: usize| alloc::format!("file-{number}").into_bytes();
        let names: Vec<(u64, Vec<u8>)> = (0..SETS).map(|number| (7, text(number))).collect();
        let bytes: Vec<(u64, Vec<u8>)> = (0..SETS).map(|number| (7, alloc::vec![number as u8])).collect();
        let directories: Vec<(u64, Vec<u8>)> = (0..SETS).map(|number| (number as u64, text(1))).collect();
        for all in [names, bytes, directories] {
            assert!(sets(&all) <= 8, "{} of {SETS} in one set", sets(&all));
        }
    }

    #[test]
    fn long_names_are_not_kept() {
        let mut names = Names::default();
        assert_eq!(names.set(1, &[b'x'; 40], Some(1)), None);
        assert_eq!(names.get(1, &[b'x'; 40]), None);
        let _ = names.set(1, &[b'x'; 39], Some(1));
        assert_eq!(names.get(1, &[b'x'; 39]), Some(Some(1)));
    }

    #[test]
    fn a_whole_file_system_can_be_forgotten() {
        let mut names = Names::default();
        let _ = names.set(1, b"a", Some(10));
        let _ = names.set(2, b"b", Some(20));
        let _ = names.set(2, b"c", None);
        let mut gone = names.forget_where(|directory, _| directory == 2);
        gone.sort();
        assert_eq!(gone, [20]);
        assert_eq!(names.get(2, b"c"), None);
        assert_eq!(names.get(1, b"a"), Some(Some(10)));
    }
}
