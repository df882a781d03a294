//! Freeing the blocks of a file from some block on, from the end of the file backwards.
//!
//! The work can be committed after each block: the pointers to freed blocks are then cleared, so that the file is consistent without
//! them. The pointers of an indirect block are cleared only at a commit, or if the block stays; most indirect blocks are freed before.
//!
//! A corrupt pointer is dropped, and reported when everything else is done. After too many of them the rest is dropped without a look,
//! which ends the walk through a tree that contains itself.

use alloc::vec::Vec;
use core::ops::Range;
use sys::fallible;

use fs::Errno;
use fs::device::BlockDevice;
use fs::order::Order;

use crate::inode::{DIRECT, POINTERS};
use crate::volume::Ext2;
use fs::bytes::u32_at;

/// Limit of corrupt pointers, after which a file is not walked any further.
const MAX_BROKEN: u32 = 16;

/// Whether long work may be committed in parts; a successor continues after the last part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pauses {
    /// It is committed in parts.
    Yes,
    /// It is bounded, and committed as a whole.
    No,
}

/// An indirect block on the path to the blocks that are being freed.
struct Truncated {
    block: u32,
    /// Pointers from here on have been freed.
    from: usize,
    /// Pointers from here on are zero.
    zero: usize,
}

/// Freeing in progress.
struct Freeing {
    number: u32,
    pauses: Pauses,
    path: Vec<Truncated>,
    /// Freed blocks that the inode still counts.
    blocks: i64,
    broken: u32,
    result: Result<(), Errno>,
}

impl Freeing {
    /// Records an error, of which the first is kept. Returns the value of a success.
    fn note<T>(&mut self, result: Result<T, Errno>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(error) => {
                self.result = self.result.and(Err(error));
                self.broken += 1;
                None
            }
        }
    }

    fn is_hopeless(&self) -> bool {
        self.broken > MAX_BROKEN
    }
}

impl<D: BlockDevice> Ext2<D> {
    /// Frees the blocks of the file from block `first` on, with the indirect blocks that are then empty.
    pub(crate) fn free_blocks_from(&mut self, number: u32, first: u64, pauses: Pauses) -> Result<(), Errno> {
        let (path, result) = (Vec::new(), Ok(()));
        let mut freeing = Freeing { number, pauses, path, blocks: 0, broken: 0, result };
        self.change(number)?.goal = 0;
        let mut end = self.mapped_blocks();
        for levels in (1..=POINTERS - DIRECT).rev() {
            let start = end - self.pointers_per_block().pow(levels as u32);
            if first < end {
                self.free_pointer(&mut freeing, DIRECT + levels - 1, levels, first.saturating_sub(start))?;
            }
            end = start;
        }
        for pointer in (0..DIRECT).rev().filter(|&pointer| pointer as u64 >= first) {
            self.free_pointer(&mut freeing, pointer, 0, 0)?;
        }
        self.count_freed(&mut freeing)?;
        freeing.result
    }

    /// Frees the tree under a pointer of the inode, from the tree's block `first` on.
    fn free_pointer(&mut self, freeing: &mut Freeing, pointer: usize, levels: usize, first: u64) -> Result<(), Errno> {
        let root = self.inode(freeing.number)?.pointers[pointer];
        if root == 0 {
            return Ok(());
        }
        self.free_tree(freeing, root, levels, first)?;
        if first == 0 {
            self.change(freeing.number)?.pointers[pointer] = 0;
        }
        self.pause_freeing(freeing)
    }

    /// Frees the tree under `block` from the tree's block `first` on, and `block` itself if nothing remains.
    fn free_tree(&mut self, freeing: &mut Freeing, block: u32, levels: usize, first: u64) -> Result<(), Errno> {
        if levels > 0 {
            let content = self.read_indirect(block);
            if let Some(content) = freeing.note(content) {
                self.free_children(freeing, block, &content, levels, first)?;
            }
        }
        if first == 0 && !freeing.is_hopeless() {
            let freed = self.free_block(block);
            freeing.blocks += i64::from(freeing.note(freed).is_some());
        }
        Ok(())
    }

    #[expect(clippy::disallowed_methods, reason = "one of each level: from the heap's reserve")]
    fn free_children(
        &mut self,
        freeing: &mut Freeing,
        block: u32,
        content: &[u32],
        levels: usize,
        first: u64,
    ) -> Result<(), Errno> {
        let span = self.pointers_per_block().pow(levels as u32 - 1);
        let (boundary, inside) = ((first / span) as usize, first % span);
        freeing.path.push(Truncated { block, from: content.len(), zero: content.len() });
        for index in (boundary..content.len()).rev() {
            let first_in_child = if index == boundary { inside } else { 0 };
            if content[index] != 0 && !freeing.is_hopeless() {
                self.free_tree(freeing, content[index], levels - 1, first_in_child)?;
            }
            if first_in_child == 0
                && let Some(truncated) = freeing.path.last_mut()
            {
                truncated.from = index;
            }
            if content[index] != 0 {
                self.pause_freeing(freeing)?;
            }
        }
        if let Some(mut truncated) = freeing.path.pop()
            && first > 0
        {
            let cleared = self.clear_freed(freeing.number, &mut truncated);
            freeing.note(cleared);
        }
        Ok(())
    }

    /// Commits the freed blocks, if they are many.
    fn pause_freeing(&mut self, freeing: &mut Freeing) -> Result<(), Errno> {
        if freeing.pauses == Pauses::No {
            return if self.undo.is_excessive() { Err(Errno::EUCLEAN) } else { Ok(()) };
        }
        if !self.should_pause() {
            return Ok(());
        }
        for truncated in &mut freeing.path {
            self.clear_freed(freeing.number, truncated)?;
        }
        self.count_freed(freeing)?;
        self.pause()
    }

    /// Clears the pointers to freed blocks.
    fn clear_freed(&mut self, number: u32, truncated: &mut Truncated) -> Result<(), Errno> {
        if truncated.from < truncated.zero {
            self.clear_pointers(number, truncated.block, truncated.from..truncated.zero)?;
            truncated.zero = truncated.from;
        }
        Ok(())
    }

    /// Clears pointers in an indirect block of the file.
    pub(crate) fn clear_pointers(&mut self, number: u32, block: u32, pointers: Range<usize>) -> Result<(), Errno> {
        let bytes = pointers.start * 4..pointers.end * 4;
        // While a name on the disk may refer to a deleted file, the disk keeps all of it.
        let bytes = match self.inode(number)?.links {
            0 => self.cache.modify_late(block.into(), bytes, Order::Link)?,
            _ => self.cache.modify(block.into(), bytes, Order::Link)?,
        };
        bytes.fill(0);
        Ok(())
    }

    fn count_freed(&mut self, freeing: &mut Freeing) -> Result<(), Errno> {
        self.count_sectors(freeing.number, -core::mem::take(&mut freeing.blocks))
    }

    /// Returns the pointers in an indirect block.
    pub(crate) fn read_indirect(&mut self, block: u32) -> Result<Vec<u32>, Errno> {
        self.checked(block)?;
        fallible::collect(self.cache.read(block.into())?.chunks_exact(4).map(|field| u32_at(field, 0)))
    }
}
