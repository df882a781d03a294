//! A hash index over numbered slots that also keeps the slots in order of use.
//!
//! The block cache, the inode cache and the name cache keep their values in plain vectors; this index
//! finds the slot of a key and the least recently used slot, both without a scan.
//!
//! Invariants: every slot below `links.len()` is either in exactly one bucket chain or on the free
//! list; a slot in a chain is on the age list unless it is held; a key is in at most one chain.

use abi::Errno;
use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use sys::fallible::TryVec;

/// "No slot" in the links.
const NONE: u32 = u32::MAX;

/// Slots that are looked at for a place with free ones behind it.
const MAX_STEPS_BACK: usize = 4;

/// The multiplier of Fibonacci hashing: 2^64 divided by the golden ratio.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

struct Links {
    key: u64,
    /// Next slot of the same bucket, or of the free list.
    next: u32,
    /// Neighbour on the age list, or the slot before on the free list.
    newer: u32,
    older: u32,
    held: bool,
    is_free: bool,
}

/// Maps 64-bit keys to slot numbers and remembers the order of use.
pub struct LruIndex {
    buckets: Box<[u32]>,
    shift: u32,
    links: Vec<Links>,
    free: u32,
    newest: u32,
    oldest: u32,
    len: usize,
}

impl LruIndex {
    /// An empty index whose buckets suit about `expected` keys; more keys only make it slower.
    #[expect(clippy::disallowed_macros, clippy::disallowed_methods, reason = "at the start or a mount")]
    pub fn new(expected: usize) -> Self {
        let bits = expected.max(2).next_power_of_two().trailing_zeros();
        LruIndex {
            buckets: vec![NONE; 1 << bits].into_boxed_slice(),
            shift: 64 - bits,
            links: Vec::new(),
            free: NONE,
            newest: NONE,
            oldest: NONE,
            len: 0,
        }
    }

    /// Returns an index in which slot n holds the n-th of `keys`, or is free, used in the order of the slots. A duplicate key
    /// stays in its first slot.
    #[expect(clippy::disallowed_methods, reason = "at the start or a mount")]
    pub fn restore(expected: usize, keys: impl Iterator<Item = Option<u64>>) -> Self {
        let mut index = LruIndex::new(expected);
        let mut free = Vec::new();
        for (slot, key) in keys.enumerate() {
            let key = key.filter(|&key| index.find(key).is_none());
            // A free slot gets a unique key until all slots are linked.
            let place = index.insert(key.unwrap_or(u64::MAX - slot as u64));
            debug_assert_eq!(place, slot);
            if key.is_none() {
                free.push(slot);
            }
        }
        free.into_iter().rev().for_each(|slot| index.remove(slot));
        index
    }

    /// Number of keys.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no key at all.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The slot of `key`; its age does not change.
    pub fn find(&self, key: u64) -> Option<usize> {
        let mut slot = self.buckets[self.bucket(key)];
        while slot != NONE {
            let links = &self.links[slot as usize];
            if links.key == key {
                return Some(slot as usize);
            }
            slot = links.next;
        }
        None
    }

    /// The key that `slot` holds. The slot must be in use.
    pub fn key(&self, slot: usize) -> u64 {
        self.links[slot].key
    }

    /// Makes `slot` the most recently used one; a held slot stays held.
    pub fn touch(&mut self, slot: usize) {
        if self.newest != slot as u32 && !self.links[slot].held {
            self.unlink(slot);
            self.push_newest(slot);
        }
    }

    /// Makes room for one more key.
    ///
    /// # Errors
    /// `ENOMEM`.
    pub fn reserve(&mut self) -> Result<(), Errno> {
        if self.free == NONE { self.links.try_make_room(1) } else { Ok(()) }
    }

    /// Allocates a slot for `key`, which must not be present, as the most recently used. Returns a freed
    /// slot, or the next number never used.
    #[expect(clippy::disallowed_methods, reason = "`reserve` has made room, except in a restore")]
    pub fn insert(&mut self, key: u64) -> usize {
        if self.free == NONE {
            let slot = self.links.len();
            self.links.push(Links { key, next: NONE, newer: NONE, older: NONE, held: false, is_free: false });
            return self.occupy(slot, key);
        }
        self.reuse(self.free as usize, key)
    }

    /// As [`LruIndex::insert`], behind the slot of the key before this one, if that is there and the slot behind it free: what is used one after
    /// the other lies side by side. Else where others find free slots behind it, as far as that is seen at once.
    pub fn insert_in_order(&mut self, key: u64) -> usize {
        let before = key.checked_sub(1).and_then(|before| self.find(before));
        match before.map(|slot| slot + 1).filter(|&slot| self.is_free(slot)) {
            Some(slot) => self.reuse(slot, key),
            None if self.free == NONE => self.insert(key),
            None => self.reuse(self.first_free(self.free as usize), key),
        }
    }

    fn is_free(&self, slot: usize) -> bool {
        self.links.get(slot).is_some_and(|links| links.is_free)
    }

    /// Returns the first of the free slots that lie side by side with this one, some slots back at most.
    fn first_free(&self, slot: usize) -> usize {
        let before = (slot.saturating_sub(MAX_STEPS_BACK)..slot).rev().take_while(|&before| self.is_free(before));
        slot - before.count()
    }

    /// Takes a slot off the free list for `key`.
    fn reuse(&mut self, slot: usize, key: u64) -> usize {
        let Links { next, newer: before, .. } = self.links[slot];
        match before {
            NONE => self.free = next,
            before => self.links[before as usize].next = next,
        }
        if next != NONE {
            self.links[next as usize].newer = before;
        }
        self.occupy(slot, key)
    }

    fn occupy(&mut self, slot: usize, key: u64) -> usize {
        let bucket = self.bucket(key);
        let next = core::mem::replace(&mut self.buckets[bucket], slot as u32);
        self.links[slot] = Links { key, next, newer: NONE, older: NONE, held: false, is_free: false };
        self.push_newest(slot);
        self.len += 1;
        slot
    }

    /// Frees `slot`.
    pub fn remove(&mut self, slot: usize) {
        if !self.links[slot].held {
            self.unlink(slot);
        }
        let bucket = self.bucket(self.links[slot].key);
        let next = self.links[slot].next;
        if self.buckets[bucket] == slot as u32 {
            self.buckets[bucket] = next;
        } else {
            let mut before = self.buckets[bucket] as usize;
            while self.links[before].next != slot as u32 {
                before = self.links[before].next as usize;
            }
            self.links[before].next = next;
        }
        if self.free != NONE {
            self.links[self.free as usize].newer = slot as u32;
        }
        let links = &mut self.links[slot];
        (links.next, links.newer, links.is_free) = (self.free, NONE, true);
        self.free = slot as u32;
        self.len -= 1;
    }

    /// The slot used longest ago among those not held.
    pub fn oldest(&self) -> Option<usize> {
        (self.oldest != NONE).then_some(self.oldest as usize)
    }

    /// Takes `slot` out of the age list, so that it is never the oldest.
    pub fn hold(&mut self, slot: usize) {
        if !self.links[slot].held {
            self.unlink(slot);
            self.links[slot].held = true;
        }
    }

    /// Returns a held slot to the age list as the most recently used.
    pub fn release(&mut self, slot: usize) {
        if self.links[slot].held {
            self.links[slot].held = false;
            self.push_newest(slot);
        }
    }

    fn bucket(&self, key: u64) -> usize {
        (key.wrapping_mul(GOLDEN) >> self.shift) as usize
    }

    fn push_newest(&mut self, slot: usize) {
        self.links[slot].newer = NONE;
        self.links[slot].older = self.newest;
        match self.newest {
            NONE => self.oldest = slot as u32,
            newest => self.links[newest as usize].newer = slot as u32,
        }
        self.newest = slot as u32;
    }

    fn unlink(&mut self, slot: usize) {
        let Links { newer, older, .. } = self.links[slot];
        match newer {
            NONE => self.newest = older,
            newer => self.links[newer as usize].older = older,
        }
        match older {
            NONE => self.oldest = newer,
            older => self.links[older as usize].newer = newer,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_in_order_get_slots_in_order_from_the_first_of_the_free_ones_on() {
        let mut index = LruIndex::new(16);
        (0..40).for_each(|key| assert_eq!(index.insert_in_order(2 * key), key as usize));
        (5..9).chain(20..22).for_each(|slot| index.remove(slot));
        let slots = [500, 501, 502, 503, 504, 505, 506].map(|key| index.insert_in_order(key));
        assert_eq!(slots, [20, 21, 5, 6, 7, 8, 40]);
        (0..40).for_each(|slot| index.remove(slot));
        assert_eq!(index.insert_in_order(600), 39 - MAX_STEPS_BACK, "not all of them are looked at");
    }
}
