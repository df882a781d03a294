//! The table of the inode cache: decoded inodes in slots, in order of use.
//!
//! Invariant: the slot of a dirty inode is in `dirty`, once; so the list is never longer than the table. Neighbours: `inode_cache` reads and
//! writes them.

use alloc::vec::Vec;
use sys::fallible::TryVec;

use fs::Errno;
use fs::lru::LruIndex;

use crate::inode::Inode;

/// Capacity of the cache.
const KEPT: usize = 1024;

/// The inode cache.
pub(crate) struct Inodes {
    index: LruIndex,
    list: Vec<Inode>,
    /// Slots of dirty inodes.
    dirty: Vec<usize>,
    /// Number and slot of the inode looked up last.
    latest: Option<(u32, usize)>,
}

impl Inodes {
    /// Returns an empty cache.
    pub(crate) fn new() -> Self {
        Inodes { index: LruIndex::new(KEPT), list: Vec::new(), dirty: Vec::new(), latest: None }
    }

    /// Returns the inode in a slot.
    #[inline]
    pub(crate) fn get(&self, slot: usize) -> &Inode {
        &self.list[slot]
    }

    /// Returns the inode in a slot for a change of fields that are not on disk.
    #[inline]
    pub(crate) fn get_mut(&mut self, slot: usize) -> &mut Inode {
        &mut self.list[slot]
    }

    /// Returns the slot of an inode.
    pub(crate) fn find(&self, number: u32) -> Option<usize> {
        self.index.find(number.into())
    }

    /// Returns the slot of the inode that was looked up last, if it is this one.
    #[inline]
    pub(crate) fn latest(&self, number: u32) -> Option<usize> {
        self.latest.filter(|latest| latest.0 == number).map(|latest| latest.1)
    }

    /// Returns the slot of an inode, which is the most recently used one then.
    #[inline]
    pub(crate) fn look_up(&mut self, number: u32) -> Option<usize> {
        let slot = self.find(number)?;
        self.index.touch(slot);
        Some(slot)
    }

    /// Notes that an inode was looked up last.
    #[inline]
    pub(crate) fn note(&mut self, number: u32, slot: usize) {
        self.latest = Some((number, slot));
    }

    /// Returns the slot that has to be removed before another inode is inserted.
    pub(crate) fn excess(&self) -> Option<usize> {
        if self.index.len() >= KEPT { self.index.oldest() } else { None }
    }

    /// Allocates a slot for an inode, empty as yet. `ENOMEM`.
    pub(crate) fn insert(&mut self, number: u32) -> Result<usize, Errno> {
        self.index.reserve()?;
        self.list.try_make_room(1)?;
        self.dirty.try_make_room(self.list.len() + 1 - self.dirty.len())?;
        let slot = self.index.insert(number.into());
        if slot == self.list.len() {
            self.list.push_reserved(Inode::default());
        }
        Ok(slot)
    }

    /// Empties a slot, whose inode is clean.
    pub(crate) fn remove(&mut self, slot: usize) {
        self.latest = None;
        self.dirty.retain(|listed| *listed != slot);
        self.list[slot] = Inode::default();
        self.index.remove(slot);
    }

    /// Returns the number of the inode in a slot.
    pub(crate) fn number(&self, slot: usize) -> u32 {
        self.index.key(slot) as u32
    }

    /// Marks an inode dirty.
    pub(crate) fn mark_dirty(&mut self, slot: usize) {
        if !self.list[slot].dirty {
            self.list[slot].dirty = true;
            self.dirty.push_reserved(slot);
        }
    }

    /// Returns true when an inode is dirty.
    pub(crate) fn has_dirty(&self) -> bool {
        self.dirty.iter().any(|&slot| self.list[slot].dirty)
    }

    /// Returns a listed slot; `None` when no inode is dirty.
    pub(crate) fn last_listed(&self) -> Option<usize> {
        self.dirty.last().copied()
    }

    /// Takes that slot, whose inode is clean now, off the list.
    pub(crate) fn unlist_last(&mut self) {
        self.dirty.pop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_that_is_used_again_before_the_list_is_written_is_listed_once() {
        let mut inodes = Inodes::new();
        for number in 1..=5 {
            let slot = inodes.insert(number).expect("has memory");
            inodes.mark_dirty(slot);
            inodes.remove(slot);
        }
        assert_eq!(inodes.last_listed(), None);
    }
}
