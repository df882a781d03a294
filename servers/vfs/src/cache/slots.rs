//! Which page of which file lies in which slot of the cache. Knows nothing of memory and file systems.
//!
//! A page is named by the number of its file's content and its number in the file. A file whose content has changed gets another number, and
//! what is there under the old one is found by nobody and replaced in its turn. The first slots are used first; then a hand goes round and
//! replaces what was not asked for since it came by last.

use abi::{Errno, layout::PAGE_BYTES};
use alloc::vec::Vec;
use core::ops::Range;
use sys::fallible::{TryVec, filled};

/// A page of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    /// The number of the file's content.
    pub content: u64,
    /// The page's number in the file.
    pub page: u32,
}

impl Key {
    /// Where it begins in the file.
    pub fn offset(self) -> u64 {
        u64::from(self.page) * PAGE_BYTES
    }

    fn plus(self, pages: usize) -> Key {
        Key { page: self.page + pages as u32, ..self }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Holds nothing.
    Empty,
    /// A file system is asked for what it is to hold.
    Filling,
    /// Holds the first `bytes` bytes of a page.
    Holds { key: Key, bytes: u16 },
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    state: State,
    /// The next slot whose key has the same hash.
    next: u32,
    /// Was asked for since the hand came by.
    is_used: bool,
    /// vm has given memory for it, has not been seen to take it back, and shows it nowhere else: it may be filled.
    is_present: bool,
}

/// Slots that the hand looks at for one request: in a small cache twice round, to unmark all and then to find one.
const LOOKS: usize = 1024;
/// The end of a list of slots.
const NONE: u32 = u32::MAX;

/// See the head of the file.
#[derive(Debug, Default)]
pub struct Slots {
    slots: Vec<Slot>,
    /// The first slot of each hash. A power of two.
    heads: Vec<u32>,
    limit: usize,
    /// So many slots have got memory so far, those not used yet included.
    prepared: usize,
    hand: usize,
    /// Neighbours that were emptied last, one after the other; some may be in use again.
    emptied: Range<usize>,
    /// vm has not refused memory since the hand began its round.
    grows: bool,
}

impl Slots {
    /// At most `limit` slots, none of them used yet. `ENOMEM`.
    pub fn new(limit: usize) -> Result<Slots, Errno> {
        let heads = filled(NONE, (limit / 2).next_power_of_two())?;
        Ok(Slots { heads, limit, grows: true, ..Slots::default() })
    }

    /// Where bytes of a file lie from `position` on, at most `most` of them, as far as they are neighbours: a range of bytes of the cache.
    /// Empty: the first of them is not there.
    #[inline(always)] // A read of what is known is this and a copy; as a function it takes 23 ticks more.
    pub fn find(&mut self, content: u64, position: u64, most: u64) -> Range<u64> {
        let Ok(page) = u32::try_from(position / PAGE_BYTES) else { return 0..0 };
        let Some((slot, bytes)) = self.look_up(Key { content, page }) else { return 0..0 };
        let start = slot as u64 * PAGE_BYTES + position % PAGE_BYTES;
        let mut end = slot as u64 * PAGE_BYTES + u64::from(bytes);
        let mut next = slot + 1;
        while end < start + most && end == next as u64 * PAGE_BYTES {
            let key = Key { content, page: page + (next - slot) as u32 };
            match self.slots.get_mut(next) {
                Some(Slot { state: State::Holds { key: known, bytes }, is_used, .. }) if *known == key => {
                    end += u64::from(*bytes);
                    *is_used = true;
                }
                _ => break,
            }
            next += 1;
        }
        start..end.min(start + most).max(start)
    }

    /// Whether a page is there.
    pub fn has(&self, key: Key) -> bool {
        self.place(key).is_some()
    }

    /// Takes some slots that are neighbours, at most `most`, to be filled. Empty: all are being filled, or the hand has met only slots that were
    /// asked for; it goes on from there the next time.
    pub fn take(&mut self, most: usize) -> Range<usize> {
        let emptied = self.take_emptied(most);
        if !emptied.is_empty() {
            return emptied;
        }
        let new = most.min(self.limit - self.slots.len());
        let first = self.slots.len();
        let slot = Slot { state: State::Filling, next: NONE, is_used: false, is_present: false };
        if self.grows && new > 0 && self.slots.try_resize(first + new, slot).is_ok() {
            let prepared = self.prepared.clamp(first, first + new);
            self.slots[first..prepared].iter_mut().for_each(|slot| slot.is_present = true);
            return first..first + new;
        }
        for _ in 0..LOOKS.min(2 * self.slots.len()) {
            if self.hand == self.slots.len() {
                self.hand = 0;
                self.grows = true;
            }
            let first = self.hand;
            while self.hand < self.slots.len() && self.hand - first < most && self.is_free_for_others(self.hand) {
                self.remove(self.hand);
                self.slots[self.hand].state = State::Filling;
                self.hand += 1;
            }
            if self.hand > first {
                return first..self.hand;
            }
            self.slots[self.hand].is_used = false;
            self.hand += 1;
        }
        0..0
    }

    /// Takes the first of the slots that were emptied last: what is written over again and again needs no memory anew.
    fn take_emptied(&mut self, most: usize) -> Range<usize> {
        let Range { start, end } = self.emptied.clone();
        let is_empty = |slot: &usize| self.slots.get(*slot).is_some_and(|slot| slot.state == State::Empty);
        let taken = start..start + (start..end).take(most).take_while(is_empty).count();
        self.slots[taken.clone()].iter_mut().for_each(|slot| slot.state = State::Filling);
        self.emptied = if taken.is_empty() { 0..0 } else { taken.end..end };
        taken
    }

    fn is_free_for_others(&self, slot: usize) -> bool {
        let Slot { state, is_used, .. } = self.slots[slot];
        state != State::Filling && !(is_used && state != State::Empty)
    }

    /// Whether all of these slots have memory as far as is known.
    pub fn are_present(&self, slots: Range<usize>) -> bool {
        self.slots[slots].iter().all(|slot| slot.is_present)
    }

    /// The slots that vm is asked to give memory for when it is needed for these: if they are the newest, for the next ones too, `most` in all.
    pub fn to_prepare(&self, slots: Range<usize>, most: usize) -> Range<usize> {
        let is_newest = slots.end == self.slots.len() && self.prepared <= slots.end;
        let end = if is_newest { (slots.start + most).min(self.limit) } else { slots.end };
        slots.start..end.max(slots.end)
    }

    /// vm has given memory for these slots, of which some may not be used yet.
    pub fn prepare(&mut self, slots: Range<usize>) {
        self.prepared = self.prepared.max(slots.end);
        let used = slots.start..slots.end.min(self.slots.len());
        self.set_present(used, true);
    }

    /// vm has to be asked for memory for these slots before they are filled again: images show them, too, or it may be gone.
    pub fn retake(&mut self, slots: Range<usize>) {
        self.slots[slots].iter_mut().for_each(|slot| slot.is_present = false);
    }

    /// vm has given memory for these slots, or refused, or taken it back.
    pub fn set_present(&mut self, slots: Range<usize>, is_present: bool) {
        self.slots[slots].iter_mut().for_each(|slot| slot.is_present = is_present);
        self.grows &= is_present;
    }

    /// These slots, which were taken, hold the first `bytes` bytes from the start of the page `first` on; what is left of them is empty.
    pub fn keep(&mut self, slots: Range<usize>, first: Key, bytes: u64) {
        for (index, slot) in slots.enumerate() {
            let left = bytes.saturating_sub(index as u64 * PAGE_BYTES).min(PAGE_BYTES);
            if left == 0 {
                self.slots[slot].state = State::Empty;
                continue;
            }
            let key = first.plus(index);
            self.forget(key);
            let list = hash(key, self.heads.len());
            let next = core::mem::replace(&mut self.heads[list], slot as u32);
            self.slots[slot] = Slot { state: State::Holds { key, bytes: left as u16 }, next, ..self.slots[slot] };
        }
    }

    /// Gives back slots that were taken.
    pub fn give_back(&mut self, slots: Range<usize>) {
        self.slots[slots].iter_mut().for_each(|slot| slot.state = State::Empty);
    }

    /// The page is not as it was any more.
    pub fn forget(&mut self, key: Key) {
        if let Some(slot) = self.place(key) {
            self.remove(slot);
        }
    }

    fn look_up(&mut self, key: Key) -> Option<(usize, u16)> {
        let slot = self.place(key)?;
        let State::Holds { bytes, .. } = self.slots[slot].state else { return None };
        self.slots[slot].is_used = true;
        Some((slot, bytes))
    }

    fn place(&self, key: Key) -> Option<usize> {
        let mut slot = self.heads[hash(key, self.heads.len())];
        while let Some(Slot { state, next, .. }) = self.slots.get(slot as usize) {
            if matches!(state, State::Holds { key: known, .. } if *known == key) {
                return Some(slot as usize);
            }
            slot = *next;
        }
        None
    }

    /// Empties a slot, unless it is being filled.
    pub fn remove(&mut self, slot: usize) {
        let Slot { state: State::Holds { key, .. }, next, .. } = self.slots[slot] else { return };
        self.slots[slot].state = State::Empty;
        let is_next = self.emptied.end == slot && !self.emptied.is_empty();
        self.emptied = if is_next { self.emptied.start..slot + 1 } else { slot..slot + 1 };
        let head = hash(key, self.heads.len());
        let mut at = self.heads[head];
        if at == slot as u32 {
            self.heads[head] = next;
            return;
        }
        while let Some(before) = self.slots.get_mut(at as usize) {
            at = before.next;
            if at == slot as u32 {
                before.next = next;
            }
        }
    }
}

/// The list of a key; `lists` is a power of two.
fn hash(key: Key, lists: usize) -> usize {
    // Fibonacci hashing: pages of one file are neighbours.
    let mixed =
        key.content.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ u64::from(key.page).wrapping_mul(0xd6e8_feb8_6659_fd93);
    (mixed >> 32) as usize & (lists - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::random;
    use std::collections::BTreeMap;

    const P: u64 = PAGE_BYTES;

    fn key(content: u64, page: u32) -> Key {
        Key { content, page }
    }

    /// Slots that hold these pages in this order.
    fn holding(limit: usize, keys: &[Key]) -> Slots {
        let mut slots = Slots::new(limit).unwrap();
        for &key in keys {
            let taken = slots.take(1);
            slots.keep(taken, key, P);
        }
        slots
    }

    #[test]
    fn neighbours_are_found_together() {
        let mut slots = Slots::new(16).unwrap();
        let taken = slots.take(4);
        slots.keep(taken, key(7, 2), 2 * P + 100);
        assert_eq!(slots.find(7, 2 * P + 10, 5000), 10..5010);
        assert_eq!(slots.find(7, 2 * P, 10 * P), 0..2 * P + 100);
        assert_eq!(slots.find(7, 4 * P + 50, P), 2 * P + 50..2 * P + 100);
        for position in [4 * P + 100, 4 * P + 200] {
            assert!(slots.find(7, position, P).is_empty(), "behind what the page has");
        }
        for (content, position) in [(7, P), (7, 5 * P), (8, 2 * P), (7, u64::MAX)] {
            assert!(slots.find(content, position, P).is_empty());
        }
    }

    #[test]
    fn pages_that_lie_apart_are_found_one_by_one() {
        let mut slots = holding(16, &[key(7, 0), key(8, 0), key(7, 1)]);
        assert_eq!(slots.find(7, 0, 2 * P), 0..P);
        assert_eq!(slots.find(7, P, 2 * P), 2 * P..3 * P);
    }

    #[test]
    fn what_was_asked_for_stays_once_more() {
        let mut slots = holding(4, &[key(1, 0), key(1, 1), key(1, 2), key(1, 3)]);
        slots.find(1, P, 1);
        let taken = slots.take(4);
        assert_eq!(taken, 0..1, "the second was asked for");
        slots.keep(taken, key(2, 0), P);
        assert_eq!(slots.take(4), 2..4);
        assert!(slots.has(key(1, 1)) && !slots.has(key(1, 2)));
        assert_eq!(slots.take(1), 0..1);
        assert_eq!(slots.take(1), 1..2, "and not for ever");
        assert!(slots.take(1).is_empty(), "all are being filled");
    }

    #[test]
    fn memory_that_is_refused_ends_growth_until_the_hand_is_round() {
        let mut slots = holding(8, &[key(1, 0), key(1, 1)]);
        let refused = slots.take(2);
        slots.set_present(refused.clone(), false);
        slots.give_back(refused);
        assert_eq!(slots.take(4), 0..4);
        assert!(slots.take(1).is_empty() || slots.slots.len() > 4);
    }

    #[test]
    fn the_newest_slots_get_memory_with_those_that_are_used_next() {
        let mut slots = Slots::new(20).unwrap();
        let first = slots.take(2);
        assert!(!slots.are_present(first.clone()));
        assert_eq!(slots.to_prepare(first.clone(), 8), 0..8);
        slots.prepare(0..8);
        assert!(slots.are_present(first));
        let second = slots.take(10);
        assert!(slots.are_present(2..8) && !slots.are_present(second.clone()));
        assert_eq!(slots.to_prepare(second, 8), 2..12, "what it needs is more than that");
        slots.prepare(2..12);
        assert_eq!(slots.take(8), 12..20);
        assert_eq!(slots.to_prepare(12..20, 64), 12..20, "there are no more");
        slots.set_present(3..4, false);
        assert_eq!(slots.to_prepare(3..4, 8), 3..4, "one that was taken back");
    }

    #[test]
    fn a_page_that_is_filled_twice_is_there_once() {
        let mut slots = holding(4, &[key(1, 0), key(1, 0)]);
        assert_eq!(slots.find(1, 0, P), P..2 * P);
        slots.forget(key(1, 0));
        assert!(!slots.has(key(1, 0)));
    }

    #[test]
    fn a_file_that_is_written_over_goes_back_and_forth() {
        let mut slots = Slots::new(64).unwrap();
        let write = |slots: &mut Slots, page: u32| {
            let taken = slots.take(4);
            slots.keep(taken.clone(), key(7, page), 4 * P);
            taken
        };
        assert_eq!([write(&mut slots, 0), write(&mut slots, 4)], [0..4, 4..8]);
        assert_eq!([write(&mut slots, 0), write(&mut slots, 4)], [8..12, 0..4], "what the first has emptied");
        assert_eq!([write(&mut slots, 0), write(&mut slots, 4)], [4..8, 8..12]);
        slots.forget(key(7, 1));
        slots.forget(key(7, 2));
        assert_eq!([slots.take(1), slots.take(4), slots.take(4)], [5..6, 6..7, 12..16], "no more than were emptied");
    }

    #[test]
    fn it_says_what_a_map_would_say() {
        let mut below = random(1);
        let mut slots = Slots::new(64).unwrap();
        let mut expected: BTreeMap<(u64, u32), usize> = BTreeMap::new();
        for _ in 0..100_000 {
            let key = key(below(5), below(40) as u32);
            match below(4) {
                0 => {
                    slots.forget(key);
                    expected.remove(&(key.content, key.page));
                }
                1 => {
                    let taken = slots.take(1 + below(4) as usize);
                    expected.retain(|_, slot| !taken.contains(slot));
                    slots.keep(taken.clone(), key, taken.len() as u64 * P);
                    for (index, slot) in taken.enumerate() {
                        expected.insert((key.content, key.page + index as u32), slot);
                    }
                }
                _ => {
                    let found = slots.find(key.content, u64::from(key.page) * P, P);
                    let known = expected.get(&(key.content, key.page));
                    assert_eq!((!found.is_empty()).then_some((found.start / P) as usize), known.copied());
                }
            }
        }
    }
}
