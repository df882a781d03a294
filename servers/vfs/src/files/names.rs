//! The name cache: which file a name in a directory means, or that it means none, without asking the file system.
//!
//! A table of small sets, which grows up to a share of the machine's memory: a full set makes it four times as large, and beyond the limit the set
//! makes room. Each name has a second chance: one that was looked up since it was last passed over stays, so that a walk through many names
//! replaces those of other walks, and not what programs use. Directories are told apart by a number that is never used again; entries of
//! forgotten directories are dead and get overwritten. vfs itself tells of every change; file systems whose names change by themselves are
//! kept out. Of a few directories all names are here, since they were empty once and no name of theirs has been put out: what is not found in one of those does not exist.

use super::SPREAD;
use alloc::{boxed::Box, vec::Vec};
use sys::fallible::with_capacity;

/// Sets at the start: enough that what runs on a small system does not pay for a growth, some 200,000 ticks.
const FIRST_SETS: usize = 1024;
const WAYS: usize = 4;
/// How many times as many sets there are after the table has grown.
const GROWTH: usize = 4;
/// Places that [`Names::evict`] looks at.
const EVICTION_STEPS: usize = 2048;
/// Longer names are not cached.
const NAME_BYTES: usize = 38;
/// Directories of which all names can be known at a time: those that a program fills, one in the other.
const WHOLE: usize = 16;
/// In their table: none. No directory has this number.
const NO_DIRECTORY: u64 = 0;

#[derive(Debug)]
struct Entry<T> {
    directory: u64,
    name: [u8; NAME_BYTES],
    length: u8,
    /// It was looked up since the clock has passed it.
    used: bool,
    target: Option<T>,
}

/// What a name is worth that was looked up since the clock has passed it.
const USED: u8 = 2;

/// What is put into a full set takes the place that is worth least.
fn worth<T>(slot: &Option<Entry<T>>) -> u8 {
    match slot {
        Some(entry) if entry.used => USED,
        Some(Entry { target: Some(_), .. }) => 1,
        _ => 0,
    }
}

type Set<T> = [Option<Entry<T>>; WAYS];

/// The cache; `T` is a file in use.
#[derive(Debug)]
pub struct Names<T> {
    /// A power of two.
    sets: Box<[Set<T>]>,
    most_sets: usize,
    /// Where [`Names::evict`] goes on.
    hand: usize,
    /// Directories whose names are all here, but those that are too long, and `..`.
    whole: [u64; WHOLE],
    /// Which of them makes room next.
    oldest: usize,
}

/// The prime of FNV-1a.
const FNV_PRIME: u64 = 0x100_0000_01b3;
/// Bits of a hash that count are above these.
const LOW_BITS: u32 = 40;
/// How far down a hash is mixed into itself.
const FOLD_BITS: u32 = 29;

/// FNV-1a over the name, begun with the directory; a last multiplication brings the last byte into the upper bits too.
fn set_of(directory: u64, name: &[u8], sets: usize) -> usize {
    let mut hash = directory.wrapping_mul(SPREAD);
    for &byte in name {
        hash = (hash ^ byte as u64).wrapping_mul(FNV_PRIME);
    }
    ((hash ^ hash >> FOLD_BITS).wrapping_mul(SPREAD) >> LOW_BITS) as usize & (sets - 1)
}

/// Empty sets. `None` without memory.
#[expect(clippy::disallowed_methods, reason = "room was made")]
fn empty<T>(count: usize) -> Option<Box<[Set<T>]>> {
    let mut sets: Vec<Set<T>> = with_capacity(count).ok()?;
    sets.extend((0..count).map(|_| [const { None }; WAYS]));
    Some(sets.into_boxed_slice())
}

impl<T: Clone> Names<T> {
    /// A cache of up to about `most` names.
    pub fn new(most: usize) -> Names<T> {
        let most_sets = (most / WAYS).max(1).next_power_of_two();
        let sets = empty(FIRST_SETS.min(most_sets)).expect("at the start there is memory");
        Names { sets, most_sets, hand: 0, whole: [NO_DIRECTORY; WHOLE], oldest: 0 }
    }

    fn find(&mut self, directory: u64, name: &[u8]) -> Option<&mut Option<Entry<T>>> {
        self.find_in(set_of(directory, name, self.sets.len()), directory, name)
    }

    fn find_in(&mut self, set: usize, directory: u64, name: &[u8]) -> Option<&mut Option<Entry<T>>> {
        self.sets[set].iter_mut().find(|slot| {
            slot.as_ref().is_some_and(|entry| {
                let is_long_as_this = entry.length as usize == name.len();
                // Names are short: a loop is faster than a call of `memcmp`.
                entry.directory == directory && is_long_as_this && entry.name.iter().zip(name).all(|(a, b)| a == b)
            })
        })
    }

    /// What is known: the file, or that there is none; `None`: the file system has to be asked.
    pub fn get(&mut self, directory: u64, name: &[u8]) -> Option<Option<T>> {
        match self.find(directory, name) {
            Some(Some(entry)) => {
                entry.used = true;
                Some(entry.target.clone())
            }
            _ => self.is_missing(directory, name).then_some(None),
        }
    }

    /// Whether a name that is not here is known not to exist.
    fn is_missing(&self, directory: u64, name: &[u8]) -> bool {
        name.len() <= NAME_BYTES && name != b".." && self.whole.contains(&directory)
    }

    /// A directory is empty: from now on all its names are here.
    pub fn set_empty(&mut self, directory: u64) {
        self.whole[self.oldest] = directory;
        self.oldest = (self.oldest + 1) % WHOLE;
    }

    /// A name of a directory that may exist is not here any more.
    fn lose(&mut self, directory: u64) {
        self.whole.iter_mut().filter(|whole| **whole == directory).for_each(|whole| *whole = NO_DIRECTORY);
    }

    /// Returns what an entry that is here no more meant.
    fn end(&mut self, entry: Entry<T>) -> Option<T> {
        if entry.target.is_some() {
            self.lose(entry.directory);
        }
        entry.target
    }

    /// Caches what a name means (`None`: no such file). Returns the evicted entry.
    #[must_use = "dropping an entry may end the use of a file, which is for the caller to time"]
    pub fn set(&mut self, directory: u64, name: &[u8], target: Option<T>) -> Option<T> {
        if name.len() > NAME_BYTES {
            return None;
        }
        let mut set = set_of(directory, name, self.sets.len());
        if let Some(Some(entry)) = self.find_in(set, directory, name) {
            // Who has removed a name rarely looks for it.
            entry.used &= target.is_some();
            return core::mem::replace(&mut entry.target, target);
        }
        let mut entry = Entry { directory, name: [0; NAME_BYTES], length: name.len() as u8, used: false, target };
        entry.name[..name.len()].copy_from_slice(name);
        if self.sets[set].iter().all(Option::is_some) && self.grow() {
            set = set_of(directory, name, self.sets.len());
        }
        self.put(set, entry).and_then(|old| self.end(old))
    }

    /// Puts an entry into a set. Returns the one that has made room: one without use, at best of a name that does not exist, or else any, and the
    /// others need be used again.
    fn put(&mut self, set: usize, entry: Entry<T>) -> Option<Entry<T>> {
        let free = self.sets[set].iter().position(Option::is_none);
        let way = free.unwrap_or_else(|| self.victim(set));
        self.sets[set][way].replace(entry)
    }

    /// The place in a full set that makes room.
    fn victim(&mut self, set: usize) -> usize {
        let ways = &mut self.sets[set];
        let worst = (0..WAYS).min_by_key(|&way| worth(&ways[way])).unwrap_or(0);
        if worth(&ways[worst]) < USED {
            return worst;
        }
        ways.iter_mut().flatten().for_each(|entry| entry.used = false);
        self.hand = self.hand.wrapping_add(1);
        self.hand % WAYS
    }

    /// Makes the table larger. Returns false at the limit, or without memory.
    #[cold]
    fn grow(&mut self) -> bool {
        let count = (self.sets.len() * GROWTH).min(self.most_sets);
        if count == self.sets.len() {
            return false;
        }
        let Some(sets) = empty(count) else { return false };
        let old = core::mem::replace(&mut self.sets, sets);
        for entry in old.into_iter().flatten().flatten() {
            let set = set_of(entry.directory, &entry.name[..entry.length as usize], count);
            let evicted = self.put(set, entry);
            debug_assert!(evicted.is_none(), "a set is divided among several");
        }
        true
    }

    /// Removes up to `count` files that fulfil the condition, in turn; those that were looked up lately have a second chance. Looks at a part of the
    /// table, so that it takes no longer when there are few.
    #[must_use = "as for set"]
    #[expect(clippy::disallowed_methods, reason = "room was made")]
    pub fn evict(&mut self, count: usize, condition: impl Fn(&T) -> bool) -> Vec<T> {
        let Ok(mut evicted) = with_capacity(count) else { return Vec::new() };
        let slots = self.sets.len() * WAYS;
        for _ in 0..EVICTION_STEPS {
            if evicted.len() == count {
                break;
            }
            self.hand = (self.hand + 1) % slots;
            let slot = &mut self.sets[self.hand / WAYS][self.hand % WAYS];
            let Some(entry) = slot.as_mut().filter(|entry| entry.target.as_ref().is_some_and(&condition)) else {
                continue;
            };
            if !core::mem::take(&mut entry.used)
                && let Some(entry) = slot.take()
            {
                evicted.extend(self.end(entry));
            }
        }
        evicted
    }

    /// Forgets a name, which may exist.
    #[must_use = "as for set"]
    pub fn forget(&mut self, directory: u64, name: &[u8]) -> Option<T> {
        if name != b".." {
            self.lose(directory);
        }
        self.find(directory, name)?.take()?.target
    }

    /// Forgets every name whose file, or whose directory's number, fulfils the condition, and which directories all names were known of.
    #[must_use = "as for set"]
    #[expect(clippy::disallowed_methods, reason = "at most as many as the cache has, all of which it held")]
    pub fn forget_where(&mut self, condition: impl Fn(u64, Option<&T>) -> bool) -> Vec<T> {
        self.whole.fill(NO_DIRECTORY);
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
        let mut names = Names::new(1024);
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
        let mut names = Names::new(1024);
        let _ = names.set(1, b"a", None);
        assert_eq!(names.set(1, b"a", Some(1)), None);
        assert_eq!(names.set(1, b"a", Some(2)), Some(1));
        assert_eq!(names.forget(1, b"a"), Some(2));
        assert_eq!(names.get(1, b"a"), None);
    }

    /// How many of these names are known.
    fn known(names: &mut Names<usize>, numbers: core::ops::Range<usize>) -> usize {
        numbers.filter(|number| names.get(1, text(*number).as_bytes()).is_some()).count()
    }

    fn text(number: usize) -> alloc::string::String {
        alloc::format!("file-{number}")
    }

    #[test]
    fn the_table_grows_until_its_limit_and_makes_room_then() {
        let learn = |names: &mut Names<usize>, numbers: core::ops::Range<usize>| {
            numbers.filter(|number| names.set(1, text(*number).as_bytes(), Some(*number)).is_some()).count()
        };
        let mut names = Names::new(1 << 16);
        assert_eq!(learn(&mut names, 0..2000), 0, "nothing was evicted before the limit");
        assert_eq!(known(&mut names, 0..2000), 2000);
        let mut names = Names::new(4096);
        let kept = 20_000 - learn(&mut names, 0..20_000);
        assert!(kept > 3000 && kept <= 4096, "{kept}");
        assert_eq!(names.get(1, text(19_999).as_bytes()), Some(Some(19_999)));
    }

    #[test]
    fn a_walk_through_many_names_leaves_those_in_use() {
        let mut names = Names::new(1024);
        for number in 0..200 {
            let _ = names.set(1, text(number).as_bytes(), Some(number));
        }
        for number in 200..20_000 {
            let _ = names.set(1, text(number).as_bytes(), Some(number));
            known(&mut names, number % 200..number % 200 + 1);
        }
        let left = known(&mut names, 0..200);
        assert!(left > 150, "{left} of 200 are left");
    }

    #[test]
    fn names_that_were_removed_make_room_first() {
        let mut names = Names::new(1024);
        for number in 0..1000 {
            let _ = names.set(1, text(number).as_bytes(), Some(number));
        }
        known(&mut names, 0..1000);
        for number in 0..1000 {
            let _ = names.set(1, text(number).as_bytes(), None);
        }
        let evicted = (0..500).filter_map(|number| names.set(2, text(number).as_bytes(), Some(number))).count();
        assert!(evicted < 30, "{evicted} of 500 were evicted by one another");
    }

    /// A set whose names were all looked up gives one place after the other, and each name has to be looked up again to stay.
    #[test]
    fn a_full_set_of_names_in_use_makes_room_in_turn() {
        let mut names = Names::new(1);
        let learn = |names: &mut Names<usize>, number: usize| names.set(1, text(number).as_bytes(), Some(number));
        (0..WAYS).for_each(|number| assert_eq!(learn(&mut names, number), None));
        let mut evicted = Vec::new();
        for number in WAYS..3 * WAYS {
            assert_eq!(known(&mut names, 0..number), WAYS);
            evicted.extend(learn(&mut names, number));
        }
        let mut turns = evicted.clone();
        turns.dedup();
        assert_eq!(turns.len(), 2 * WAYS, "{evicted:?}");
        turns.sort();
        turns.dedup();
        assert_eq!(turns.len(), 2 * WAYS, "{evicted:?}");
        assert!(evicted[..WAYS].iter().all(|&old| old < WAYS), "each of the first has had its turn: {evicted:?}");
        assert_eq!(known(&mut names, 0..3 * WAYS), WAYS);
        let first = learn(&mut names, 100).expect("one makes room");
        let second = learn(&mut names, 101).expect("and another");
        assert!(first != 101 && second != 101 && first != second);
        assert!(names.get(1, text(101).as_bytes()).is_some());
    }

    #[test]
    fn files_are_evicted_in_turn_those_in_use_last() {
        let mut names = Names::new(1024);
        for number in 0..60 {
            let _ = names.set(1, text(number).as_bytes(), Some(number));
            let _ = names.set(2, text(number).as_bytes(), None);
        }
        known(&mut names, 0..10);
        let even = |number: &usize| number.is_multiple_of(2);
        let evicted = names.evict(25, even);
        assert!(evicted.len() == 25 && evicted.iter().all(|number| even(number) && *number >= 10), "{evicted:?}");
        assert_eq!(names.evict(100, even).len(), 5, "there are no more");
        assert_eq!(names.get(2, text(2).as_bytes()), Some(None), "what does not exist is no file in use");
    }

    #[test]
    fn what_is_not_found_in_a_directory_that_was_empty_does_not_exist() {
        let mut names = Names::new(1024);
        names.set_empty(1);
        assert_eq!(names.set(1, b"a", Some(1)), None);
        assert_eq!(names.set(1, b"gone", None), None);
        assert_eq!([&b"a"[..], b"gone", b"b"].map(|name| names.get(1, name)), [Some(Some(1)), Some(None), Some(None)]);
        assert_eq!([&b".."[..], &[b'x'; 39]].map(|name| names.get(1, name)), [None; 2], "these are not kept");
        assert_eq!(names.get(2, b"b"), None);
        assert_eq!(names.forget(1, b".."), None);
        assert_eq!(names.get(1, b"b"), Some(None));
        assert_eq!(names.forget(1, b"c"), None);
        assert_eq!(names.get(1, b"b"), None, "`c` may exist");
    }

    #[test]
    fn a_directory_of_which_a_name_is_put_out_is_not_known_as_a_whole() {
        let whole = |act: &dyn Fn(&mut Names<usize>)| {
            let mut names = Names::new(1);
            names.set_empty(1);
            let _ = names.set(1, b"a", Some(1));
            act(&mut names);
            (names.get(1, b"a"), names.get(1, b"b"))
        };
        let fill = |names: &mut Names<usize>, target| {
            (0..2 * WAYS).for_each(|number| {
                let _ = names.set(2, text(number).as_bytes(), target);
            });
        };
        assert_eq!(whole(&|_| {}), (Some(Some(1)), Some(None)));
        assert_eq!(whole(&|names| fill(names, Some(2))), (None, None));
        assert_eq!(whole(&|names| drop(names.evict(1, |_| true))), (None, None));
        assert_eq!(whole(&|names| drop(names.forget_where(|_, target| target == Some(&1)))), (None, None));
        let removed = |names: &mut Names<usize>| {
            let _ = names.set(1, b"a", None);
            fill(names, Some(2));
        };
        assert_eq!(whole(&removed), (Some(None), Some(None)), "a name that does not exist is no loss");
    }

    #[test]
    fn the_oldest_of_the_directories_known_as_a_whole_makes_room() {
        let mut names: Names<usize> = Names::new(1024);
        (1..=WHOLE as u64 + 1).for_each(|directory| names.set_empty(directory));
        let is_whole: Vec<_> = (1..=WHOLE as u64 + 1).map(|directory| names.get(directory, b"a").is_some()).collect();
        assert!(!is_whole[0] && is_whole[1..].iter().all(|whole| *whole), "{is_whole:?}");
    }

    #[test]
    fn names_and_directories_spread_over_the_sets() {
        const SETS: usize = 256;
        let sets = |all: &[(u64, Vec<u8>)]| {
            let mut counts = [0; SETS];
            all.iter().for_each(|(directory, name)| counts[set_of(*directory, name, SETS)] += 1);
            counts.into_iter().max().expect("there are sets")
        };
        let text = |number: usize| text(number).into_bytes();
        let names: Vec<(u64, Vec<u8>)> = (0..SETS).map(|number| (7, text(number))).collect();
        let bytes: Vec<(u64, Vec<u8>)> = (0..SETS).map(|number| (7, alloc::vec![number as u8])).collect();
        let directories: Vec<(u64, Vec<u8>)> = (0..SETS).map(|number| (number as u64, text(1))).collect();
        for all in [names, bytes, directories] {
            assert!(sets(&all) <= 8, "{} of {SETS} in one set", sets(&all));
        }
    }

    #[test]
    fn long_names_are_not_kept() {
        let mut names = Names::new(1024);
        assert_eq!(names.set(1, &[b'x'; 39], Some(1)), None);
        assert_eq!(names.get(1, &[b'x'; 39]), None);
        let _ = names.set(1, &[b'x'; 38], Some(1));
        assert_eq!(names.get(1, &[b'x'; 38]), Some(Some(1)));
    }

    #[test]
    fn a_whole_file_system_can_be_forgotten() {
        let mut names = Names::new(1024);
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
