//! Which block holds which part of a file: the 12 direct pointers and the trees of one to three levels.
//!
//! A pointer of 0 is a hole. Every other pointer is checked before it is followed, so that a broken file
//! can neither reach the format's own blocks nor the outside; the depth of the trees bounds every walk.

use fs::Errno;
use fs::device::BlockDevice;
use fs::file_system::Caller;

use crate::bytes::{put_u32, u32_at};
use crate::inode::{DIRECT, POINTERS};
use crate::volume::Ext2;

/// Levels of the deepest tree.
const LEVELS: usize = 3;

/// The way to a block of a file: a pointer of the inode, then one in each indirect block.
struct Way {
    pointer: usize,
    levels: usize,
    indices: [usize; LEVELS],
}

/// A block of a file, found or made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mapped {
    /// Its number.
    pub block: u32,
    /// Whether it was taken just now, so that its content means nothing yet.
    pub fresh: bool,
}

impl<D: BlockDevice> Ext2<D> {
    /// Pointers in an indirect block.
    pub(crate) fn pointers_per_block(&self) -> u64 {
        self.block_size() / 4
    }

    /// Largest size of a file: what the trees can map, and what the count of sectors in the inode can tell.
    pub(crate) fn max_file_size(&self) -> u64 {
        let p = self.pointers_per_block();
        let mappable = DIRECT as u64 + p + p * p + p * p * p;
        let countable = u64::from(u32::MAX) / (self.block_size() / 512);
        let indirect = 2 * (countable / p) + LEVELS as u64;
        mappable.min(countable - indirect) * self.block_size()
    }

    fn way(&self, index: u64) -> Result<Way, Errno> {
        if index < DIRECT as u64 {
            return Ok(Way { pointer: index as usize, levels: 0, indices: [0; LEVELS] });
        }
        let p = self.pointers_per_block();
        let mut rest = index - DIRECT as u64;
        let mut span = p;
        for levels in 1..=LEVELS {
            if rest < span {
                let mut indices = [0; LEVELS];
                for slot in indices[..levels].iter_mut().rev() {
                    *slot = (rest % p) as usize;
                    rest /= p;
                }
                return Ok(Way { pointer: DIRECT + levels - 1, levels, indices });
            }
            rest -= span;
            span *= p;
        }
        Err(Errno::EFBIG)
    }

    fn checked(&self, pointer: u32) -> Result<u32, Errno> {
        if pointer != 0 {
            self.groups.locate(pointer)?;
        }
        Ok(pointer)
    }

    fn indirect(&mut self, block: u32, index: usize) -> Result<u32, Errno> {
        let pointer = u32_at(self.cache.read(block.into())?, index * 4);
        self.checked(pointer)
    }

    /// The block that holds block `index` of the file; `None` for a hole.
    pub(crate) fn find_block(&mut self, number: u32, index: u64) -> Result<Option<u32>, Errno> {
        if index < DIRECT as u64 {
            let pointer = self.inode(number)?.pointers[index as usize];
            return Ok(Some(self.checked(pointer)?).filter(|&block| block != 0));
        }
        let way = self.way(index)?;
        let pointer = self.inode(number)?.pointers[way.pointer];
        let mut block = self.checked(pointer)?;
        for &slot in &way.indices[..way.levels] {
            if block == 0 {
                return Ok(None);
            }
            block = self.indirect(block, slot)?;
        }
        Ok((block != 0).then_some(block))
    }

    /// The block that holds block `index` of the file, taken now if there is a hole. Either everything
    /// needed is taken or, with `ENOSPC`, nothing.
    pub(crate) fn provide_block(&mut self, number: u32, index: u64, caller: Caller) -> Result<Mapped, Errno> {
        let way = self.way(index)?;
        let pointer = self.inode(number)?.pointers[way.pointer];
        let mut block = self.checked(pointer)?;
        let mut parent = None;
        for (depth, &slot) in way.indices[..way.levels].iter().enumerate() {
            if block == 0 {
                return self.fill_hole(number, &way, depth, parent, index, caller);
            }
            parent = Some((block, slot));
            block = self.indirect(block, slot)?;
        }
        match block {
            0 => self.fill_hole(number, &way, way.levels, parent, index, caller),
            block => Ok(Mapped { block, fresh: false }),
        }
    }

    /// Takes the blocks of `way` from `depth` on, the last being the data block. The pointer that is 0
    /// is in the indirect block `parent`, or in the inode.
    fn fill_hole(
        &mut self,
        number: u32,
        way: &Way,
        depth: usize,
        mut parent: Option<(u32, usize)>,
        index: u64,
        caller: Caller,
    ) -> Result<Mapped, Errno> {
        self.require_blocks((way.levels - depth) as u32 + 1, caller)?;
        let mut goal = self.goal(number, index)?;
        for level in depth..=way.levels {
            let block = self.take_block(goal)?;
            if level < way.levels {
                self.cache.zeroed(block.into())?;
            }
            self.count_sectors(number, 1)?;
            match parent {
                None => self.change(number)?.pointers[way.pointer] = block,
                Some((indirect, slot)) => put_u32(self.cache.modify(indirect.into())?, slot * 4, block),
            }
            goal = block + 1;
            parent = (level < way.levels).then(|| (block, way.indices[level]));
        }
        self.hint(number)?.goal = goal;
        Ok(Mapped { block: goal - 1, fresh: true })
    }

    /// Where block `index` should be: after the block taken last, after the block before it if that is a
    /// direct one, or in the group of the inode.
    fn goal(&mut self, number: u32, index: u64) -> Result<u32, Errno> {
        let inode = self.inode(number)?;
        if inode.goal != 0 {
            return Ok(inode.goal);
        }
        let before = (index as usize).min(DIRECT);
        if let Some(&block) = inode.pointers[..before].iter().rev().find(|&&block| block != 0) {
            return Ok(block.saturating_add(1));
        }
        let group = (number - 1) / self.superblock.inodes_per_group;
        let group = &self.groups.list[group as usize];
        Ok(group.inode_table + self.superblock.inode_table_blocks())
    }

    fn count_sectors(&mut self, number: u32, blocks: i64) -> Result<(), Errno> {
        let change = blocks * (self.superblock.block_size / 512) as i64;
        let inode = self.change(number)?;
        inode.sectors = (i64::from(inode.sectors) + change).clamp(0, u32::MAX.into()) as u32;
        Ok(())
    }

    /// Frees the blocks of the file from block `first` on, with the indirect blocks that are then empty.
    /// A broken pointer is dropped, and reported when everything else is done.
    pub(crate) fn free_blocks_from(&mut self, number: u32, first: u64) -> Result<(), Errno> {
        let mut pointers = self.inode(number)?.pointers;
        let mut freed = Freed::default();
        for (index, pointer) in pointers[..DIRECT].iter_mut().enumerate() {
            if index as u64 >= first {
                self.free_tree(core::mem::take(pointer), 0, &mut freed);
            }
        }
        let mut start = DIRECT as u64;
        let mut span = 1;
        for levels in 1..=POINTERS - DIRECT {
            span *= self.pointers_per_block();
            let pointer = &mut pointers[DIRECT + levels - 1];
            if first <= start {
                self.free_tree(core::mem::take(pointer), levels, &mut freed);
            } else if first < start + span && *pointer != 0 {
                self.cut_tree(*pointer, levels, first - start, &mut freed);
            }
            start += span;
        }
        let inode = self.change(number)?;
        inode.pointers = pointers;
        inode.goal = 0;
        self.count_sectors(number, -freed.blocks)?;
        freed.result
    }

    /// Frees the tree under `pointer`. Its root is freed first: a tree that contains itself then finds a
    /// block that is free already, and ends.
    fn free_tree(&mut self, pointer: u32, levels: usize, freed: &mut Freed) {
        if pointer == 0 {
            return;
        }
        let content = if levels == 0 { Ok(Default::default()) } else { self.read_indirect(pointer) };
        if freed.note(self.free_block(pointer)).is_none() {
            return;
        }
        freed.blocks += 1;
        for child in freed.note(content).unwrap_or_default() {
            self.free_tree(child, levels - 1, freed);
        }
    }

    /// Frees what is under the indirect block `block` from the tree's block `first` (not 0) on.
    fn cut_tree(&mut self, block: u32, levels: usize, first: u64, freed: &mut Freed) {
        let Some(content) = freed.note(self.read_indirect(block)) else { return };
        let span = self.pointers_per_block().pow(levels as u32 - 1);
        let (boundary, inside) = ((first / span) as usize, first % span);
        if inside > 0 && content[boundary] != 0 {
            self.cut_tree(content[boundary], levels - 1, inside, freed);
        }
        let cut = boundary + usize::from(inside > 0);
        for &child in &content[cut..] {
            self.free_tree(child, levels - 1, freed);
        }
        if let Some(bytes) = freed.note(self.cache.modify(block.into())) {
            bytes[cut * 4..].fill(0);
        }
    }

    fn read_indirect(&mut self, block: u32) -> Result<alloc::vec::Vec<u32>, Errno> {
        self.checked(block)?;
        Ok(self.cache.read(block.into())?.chunks_exact(4).map(|field| u32_at(field, 0)).collect())
    }
}

/// What freeing has come to so far.
struct Freed {
    blocks: i64,
    result: Result<(), Errno>,
}

impl Default for Freed {
    fn default() -> Self {
        Freed { blocks: 0, result: Ok(()) }
    }
}

impl Freed {
    /// Keeps the first error; a success gives its value.
    fn note<T>(&mut self, result: Result<T, Errno>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(error) => {
                self.result = self.result.and(Err(error));
                None
            }
        }
    }
}
