//! Block groups: their descriptors in memory, and which blocks belong to the format itself.
//!
//! After `Groups::read` succeeded every bitmap and inode table lies inside its own group, apart from the
//! others and from the copy of superblock and descriptors. `free_bit` is never above the first free block.

use alloc::vec::Vec;
use core::ops::Range;
use sys::fallible::TryVec;

use fs::Errno;

use crate::superblock::{DESCRIPTOR_SIZE, Superblock};
use fs::bytes::{put_u16, u16_at, u32_at};

/// One block group.
#[derive(Clone, Debug)]
pub struct Group {
    /// Block of the block bitmap.
    pub block_bitmap: u32,
    /// Block of the inode bitmap.
    pub inode_bitmap: u32,
    /// First block of the inode table.
    pub inode_table: u32,
    /// Free blocks.
    pub free_blocks: u16,
    /// Free inodes.
    pub free_inodes: u16,
    /// Directories among the inodes.
    pub directories: u16,
    /// No block of the group before this one (counted from its start) is free.
    pub free_bit: u32,
    /// No inode of the group before this one is free.
    pub free_inode_bit: u32,
    /// Whether the descriptor on its block is stale; the group is listed in `Groups::dirty` then.
    dirty: bool,
    /// End of the copy of superblock and descriptors, or the group's start if it has none.
    head_end: u32,
}

impl Group {
    /// Decodes the descriptor of group `number`. `EUCLEAN` if it is inconsistent.
    pub fn read(bytes: &[u8], number: u32, superblock: &Superblock) -> Result<Self, Errno> {
        let start = superblock.group_start(number);
        let end = start + superblock.group_blocks(number);
        let head = if superblock.has_superblock(number) { superblock.group_head_blocks() } else { 0 };
        let group = Group {
            block_bitmap: u32_at(bytes, 0),
            inode_bitmap: u32_at(bytes, 4),
            inode_table: u32_at(bytes, 8),
            free_blocks: u16_at(bytes, 12),
            free_inodes: u16_at(bytes, 14),
            directories: u16_at(bytes, 16),
            free_bit: 0,
            free_inode_bit: 0,
            dirty: false,
            head_end: start.saturating_add(head),
        };
        let sound = group.is_sound(end, superblock)
            && u32::from(group.free_blocks) <= end - start
            && u32::from(group.free_inodes) <= superblock.inodes_per_group
            && u32::from(group.directories) <= superblock.inodes_per_group;
        if sound { Ok(group) } else { Err(Errno::EUCLEAN) }
    }

    fn is_sound(&self, end: u32, superblock: &Superblock) -> bool {
        let inside = self.head_end..end;
        let table = self.table(superblock.inode_table_blocks());
        inside.contains(&self.block_bitmap)
            && inside.contains(&self.inode_bitmap)
            && inside.contains(&self.inode_table)
            && table.end <= end
            && self.block_bitmap != self.inode_bitmap
            && !table.contains(&self.block_bitmap)
            && !table.contains(&self.inode_bitmap)
    }

    fn table(&self, blocks: u32) -> Range<u32> {
        self.inode_table..self.inode_table.saturating_add(blocks)
    }

    /// Whether `block`, of this group, belongs to the format.
    fn owns(&self, block: u32, table_blocks: u32) -> bool {
        block < self.head_end
            || block == self.block_bitmap
            || block == self.inode_bitmap
            || self.table(table_blocks).contains(&block)
    }

    /// Encodes the mutable fields into the descriptor's bytes.
    pub fn write(&self, bytes: &mut [u8]) {
        put_u16(bytes, 12, self.free_blocks);
        put_u16(bytes, 14, self.free_inodes);
        put_u16(bytes, 16, self.directories);
    }
}

/// Parts of the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Bits of blocks or inodes.
    Bitmap,
    /// A part of an inode table.
    Inodes,
    /// Anything else.
    Other,
}

/// All block groups.
#[derive(Clone, Debug)]
pub struct Groups {
    /// In order.
    pub list: Vec<Group>,
    dirty: Vec<usize>,
    first_data_block: u32,
    blocks_count: u32,
    blocks_per_group: u32,
    table_blocks: u32,
}

impl Groups {
    /// Returns an empty list for the file system that `superblock` describes.
    pub fn new(superblock: &Superblock) -> Self {
        Groups {
            list: Vec::new(),
            dirty: Vec::new(),
            first_data_block: superblock.first_data_block,
            blocks_count: superblock.blocks_count,
            blocks_per_group: superblock.blocks_per_group,
            table_blocks: superblock.inode_table_blocks(),
        }
    }

    /// Adds the groups whose descriptors the block `bytes` holds.
    pub fn read(&mut self, bytes: &[u8], superblock: &Superblock) -> Result<(), Errno> {
        for descriptor in bytes.chunks_exact(DESCRIPTOR_SIZE) {
            let number = self.list.len() as u32;
            if number < superblock.groups {
                self.list.try_push(Group::read(descriptor, number, superblock)?)?;
                self.dirty.try_make_room(self.list.len())?;
            }
        }
        Ok(())
    }

    /// Returns a group for a change, and marks it dirty.
    pub fn change(&mut self, number: usize) -> &mut Group {
        let group = &mut self.list[number];
        if !group.dirty {
            group.dirty = true;
            self.dirty.push_reserved(number);
        }
        group
    }

    /// Returns a dirty group.
    pub fn next_dirty(&self) -> Option<usize> {
        self.dirty.last().copied()
    }

    /// Whether a group is dirty.
    pub fn has_dirty(&self) -> bool {
        !self.dirty.is_empty()
    }

    /// Marks group `number`, the next dirty one, as written.
    pub fn wash(&mut self, number: usize) {
        self.list[number].dirty = false;
        self.dirty.pop();
    }

    /// Whether `block` is a bitmap of inodes.
    pub fn is_inode_bitmap(&self, block: u32) -> bool {
        self.list.iter().any(|group| group.inode_bitmap == block)
    }

    /// Searches the bitmap in `block` from its beginning for the next allocation.
    pub fn search_again(&mut self, block: u32) {
        for group in &mut self.list {
            if group.block_bitmap == block {
                group.free_bit = 0;
            } else if group.inode_bitmap == block {
                group.free_inode_bit = 0;
            }
        }
    }

    /// Returns the part of the format that `block` holds.
    pub fn part(&self, block: u32) -> Part {
        let offset = block.saturating_sub(self.first_data_block);
        let Some(group) = self.list.get((offset / self.blocks_per_group) as usize) else { return Part::Other };
        match block {
            _ if block == group.block_bitmap || block == group.inode_bitmap => Part::Bitmap,
            _ if group.table(self.table_blocks).contains(&block) => Part::Inodes,
            _ => Part::Other,
        }
    }

    /// Returns group and bit of a block that may hold data. `EUCLEAN` for a number outside the file system and
    /// for a block of the format itself.
    pub fn locate(&self, block: u32) -> Result<(usize, usize), Errno> {
        if block < self.first_data_block || block >= self.blocks_count {
            return Err(Errno::EUCLEAN);
        }
        let offset = block - self.first_data_block;
        let group = (offset / self.blocks_per_group) as usize;
        if self.list[group].owns(block, self.table_blocks) {
            return Err(Errno::EUCLEAN);
        }
        Ok((group, (offset % self.blocks_per_group) as usize))
    }

    /// Returns where the blocks that may hold data end from `block`, one of them, on: before a block of the format, or with the group. Errors as
    /// [`Groups::locate`].
    pub fn data_end(&self, block: u32) -> Result<u32, Errno> {
        let (number, bit) = self.locate(block)?;
        let group = &self.list[number];
        let group_end = block.saturating_add(self.blocks_per_group - bit as u32).min(self.blocks_count);
        let parts = [group.block_bitmap, group.inode_bitmap, group.inode_table];
        Ok(parts.into_iter().filter(|&part| part > block).fold(group_end, u32::min))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    /// A group that begins here.
    fn group(start: u32) -> Group {
        Group {
            block_bitmap: start + 3,
            inode_bitmap: start + 10,
            inode_table: start + 20,
            free_blocks: 0,
            free_inodes: 0,
            directories: 0,
            free_bit: 0,
            free_inode_bit: 0,
            dirty: false,
            head_end: start + 2,
        }
    }

    #[test]
    fn data_end_before_blocks_of_the_format_and_with_their_group() {
        let groups = Groups {
            list: vec![group(1), group(101)],
            dirty: vec![],
            first_data_block: 1,
            blocks_count: 180,
            blocks_per_group: 100,
            table_blocks: 5,
        };
        for block in 0..200 {
            let is_in_run = |&next: &u32| groups.locate(next).is_ok() && (next - 1) / 100 == (block - 1) / 100;
            let end = groups.locate(block).map(|_| (block..).take_while(is_in_run).count() as u32 + block);
            assert_eq!(groups.data_end(block), end, "{block}");
        }
    }
}
