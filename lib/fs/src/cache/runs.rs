//! Blocks that lie side by side in the cache: with their content one copy is enough.
//!
//! `LruIndex::insert_in_order` puts neighbours of the disk into neighbouring frames wherever the place is free.

use super::{BlockCache, State};
use crate::device::BlockDevice;
use crate::order::Mark;
use abi::Errno;
use core::ops::Range;

impl<D: BlockDevice> BlockCache<D> {
    /// Returns how many of the blocks from `first` on, at most `most`, are cached in frames that are neighbours; 0: the first is not cached.
    pub fn neighbours(&self, first: u64, most: usize) -> usize {
        let Some(slot) = self.index.find(first) else { return 0 };
        let is_next = |&next: &usize| self.index.find(first + next as u64) == Some(slot + next);
        1 + (1..most).take_while(is_next).count()
    }

    /// Returns the content of `count` blocks, which are [`BlockCache::neighbours`] if there are several. Errors as `read`.
    pub fn read_run(&mut self, first: u64, count: usize) -> Result<&[u8], Errno> {
        let slot = self.load(first)?;
        (slot + 1..slot + count).for_each(|next| self.index.touch(next));
        Ok(self.frames.get_run(slot, count))
    }

    /// Forgets those of the blocks that are as the device has them.
    pub fn forget(&mut self, blocks: Range<u64>) {
        // The last one first: the next run begins in the first of their frames.
        for block in blocks.rev() {
            let Some(slot) = self.index.find(block) else { continue };
            let State { dirty, held, pinned, in_log, .. } = self.states[slot];
            if dirty.is_none() && !held && !pinned && !in_log {
                self.frames.empty(slot);
                self.index.remove(slot);
            }
        }
    }

    /// As [`BlockCache::overwrite`], `count` blocks, which are [`BlockCache::neighbours`]. If `fill` fails, they keep what it wrote.
    pub fn overwrite_run(
        &mut self,
        first: u64,
        count: usize,
        fill: impl FnOnce(&mut [u8]) -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        let slot = self.load(first)?;
        for next in slot..slot + count {
            self.index.touch(next);
            self.mark_dirty(next, Mark::default());
        }
        fill(self.frames.get_run_mut(slot, count))
    }
}
