//! Space in the middle of a file: punching holes, zeros for what is allocated, and looking for data and holes.
//!
//! Blocks that lie in the range as a whole are freed, or overwritten with zeros; of the blocks at its two ends the part in the range is
//! cleared. The walk skips what is a hole already. It can be committed after each block, and doing it again comes to the same: a pointer is
//! cleared before the commit that frees its block, and reaches the disk before that is free there (`fs::order`). Neighbours: `block_free`
//! frees from some block on, `file` fills holes.

use core::ops::Range;

use fs::Errno;
use fs::device::BlockDevice;
use fs::order::Order;

use crate::inode::{DIRECT, POINTERS};
use crate::volume::Ext2;

/// What happens to blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Clear {
    /// They are freed, with the indirect blocks that are then empty.
    Free,
    /// They are overwritten with zeros.
    Zero,
}

/// Clearing in progress.
struct Clearing {
    number: u32,
    how: Clear,
    /// Freed blocks that the inode still counts.
    freed: i64,
}

/// Blocks, or runs of holes, that one look passes.
const LOOK_STEPS: usize = 4096;

impl<D: BlockDevice> Ext2<D> {
    /// Looks for data, or for a hole, from `offset` of a regular file on. Returns whether it was found, and where, or where to go on.
    /// `ENXIO`: `offset` is behind the end, or no data follows.
    pub(crate) fn look_for(&mut self, number: u32, offset: u64, hole: bool) -> Result<(bool, u64), Errno> {
        let inode = self.inode(number)?;
        if !inode.is_regular() {
            return Err(Errno::EINVAL);
        }
        let (size, block_size) = (inode.size, self.block_size());
        if offset >= size {
            return Err(Errno::ENXIO);
        }
        let mut index = offset / block_size;
        let mut steps = 0;
        while steps < LOOK_STEPS {
            if index >= size.div_ceil(block_size) {
                return if hole { Ok((true, size)) } else { Err(Errno::ENXIO) };
            }
            let data = self.find_run(number, index, LOOK_STEPS - steps)?;
            if data.is_none() == hole {
                return Ok((true, offset.max(index * block_size)));
            }
            let passed = match data {
                Some(run) => run.len() as u64,
                None => self.hole_at(number, index)?.max(1),
            };
            index += passed;
            steps += if hole { passed as usize } else { 1 };
        }
        Ok((false, index * block_size))
    }

    /// Makes a range of a regular file, of which the part beyond the end does not count, read as zeros.
    pub(crate) fn clear_range(&mut self, number: u32, range: Range<u64>, how: Clear) -> Result<(), Errno> {
        let (block_size, now) = (self.block_size(), self.now());
        let inode = self.change(number)?;
        let (start, size) = (range.start, inode.size);
        let end = range.end.min(size);
        if start >= end {
            return Ok(());
        }
        inode.touch(now);
        self.drop_capabilities(number)?;
        let first = start.div_ceil(block_size);
        // Behind the end of the file are zeros already.
        let last = if end == size { end.div_ceil(block_size) } else { end / block_size };
        // The ends first: their blocks may have to be read.
        if start < first * block_size {
            self.clear_part(number, start, end.min(first * block_size))?;
        }
        if first <= last && last * block_size < end {
            self.clear_part(number, last * block_size, end)?;
        }
        if first < last { self.clear_blocks(number, first..last, how) } else { Ok(()) }
    }

    /// Zeros the bytes from `start` to `end`, which are in one block.
    fn clear_part(&mut self, number: u32, start: u64, end: u64) -> Result<(), Errno> {
        let index = start / self.block_size();
        if let Some(block) = self.find_block(number, index)? {
            let offset = index * self.block_size();
            let part = (start - offset) as usize..(end - offset) as usize;
            self.cache.modify(block.into(), part, Order::Content)?.fill(0);
        }
        Ok(())
    }

    /// Clears whole blocks of the file.
    fn clear_blocks(&mut self, number: u32, range: Range<u64>, how: Clear) -> Result<(), Errno> {
        let mut clearing = Clearing { number, how, freed: 0 };
        self.change(number)?.goal = 0;
        let mut start = 0;
        for pointer in 0..POINTERS {
            let levels = (pointer + 1).saturating_sub(DIRECT);
            let span = self.pointers_per_block().pow(levels as u32);
            let part = range.start.saturating_sub(start)..range.end.saturating_sub(start).min(span);
            start += span;
            if part.is_empty() {
                continue;
            }
            let root = self.inode(number)?.pointers[pointer];
            if self.clear_tree(&mut clearing, root, levels, part)? {
                self.change(number)?.pointers[pointer] = 0;
            }
            self.pause_clearing(&mut clearing)?;
        }
        self.count_cleared(&mut clearing)
    }

    /// Clears a range of the tree under `block`, 0 for a hole. Returns whether `block` itself was freed: its pointer must be cleared.
    fn clear_tree(
        &mut self,
        clearing: &mut Clearing,
        block: u32,
        levels: usize,
        range: Range<u64>,
    ) -> Result<bool, Errno> {
        let is_empty = match (block, levels) {
            (0, _) => return Ok(false),
            (_, 0) => true,
            _ => self.clear_children(clearing, block, levels, range)?,
        };
        if clearing.how == Clear::Zero {
            let data = u64::from(self.checked(block)?);
            return if levels == 0 { self.cache.zeroed(data).map(|()| false) } else { Ok(false) };
        }
        if is_empty {
            self.free_block(block)?;
            clearing.freed += 1;
        }
        Ok(is_empty)
    }

    /// Clears a range of the trees to which `block` points. Returns whether it points to none afterwards.
    fn clear_children(
        &mut self,
        clearing: &mut Clearing,
        block: u32,
        levels: usize,
        range: Range<u64>,
    ) -> Result<bool, Errno> {
        let mut pointers = self.read_indirect(block)?;
        let span = self.pointers_per_block().pow(levels as u32 - 1);
        for index in range.start / span..range.end.div_ceil(span) {
            let (start, index) = (index * span, index as usize);
            let part = range.start.saturating_sub(start)..(range.end - start).min(span);
            if pointers[index] != 0 && self.clear_tree(clearing, pointers[index], levels - 1, part)? {
                pointers[index] = 0;
                self.clear_pointers(clearing.number, block, index..index + 1)?;
            }
            self.pause_clearing(clearing)?;
        }
        Ok(pointers.iter().all(|&pointer| pointer == 0))
    }

    /// Commits what was cleared, if it is much.
    fn pause_clearing(&mut self, clearing: &mut Clearing) -> Result<(), Errno> {
        if !self.should_pause() {
            return Ok(());
        }
        self.count_cleared(clearing)?;
        self.pause()
    }

    fn count_cleared(&mut self, clearing: &mut Clearing) -> Result<(), Errno> {
        self.count_sectors(clearing.number, -core::mem::take(&mut clearing.freed))
    }
}
