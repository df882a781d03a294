//! The file that holds the journal: where its blocks are on the device.
//!
//! Its map is read once, past the cache. The file never changes while the volume is mounted. Invariant: its blocks are inside the file system,
//! and none is missing. Neighbour: `journal`.

use alloc::vec::Vec;

use fs::Errno;
use fs::device::{BlockDevice, SECTOR_SIZE};
use jbd::superblock::MIN_LENGTH;
use sys::fallible::{self, TryVec};

use crate::group::Group;
use crate::inode::{DIRECT, Inode};
use crate::superblock::{DESCRIPTOR_SIZE, Superblock};
use fs::bytes::u32_at;

/// Limit of blocks of a journal.
const MAX_LENGTH: u64 = 1 << 24;

/// A run of blocks of the journal's file.
#[derive(Clone, Copy, Debug)]
struct Extent {
    /// First block in the file.
    index: u32,
    /// Its place on the device.
    block: u32,
    count: u32,
}

/// The file that holds the journal: where its blocks are.
pub(crate) struct LogFile {
    /// In order, without gaps.
    extents: Vec<Extent>,
    blocks: u64,
    sectors_per_block: u64,
}

impl LogFile {
    /// Reads the map of the journal's file. `EINVAL` if it is elsewhere, `EUCLEAN` if it makes no sense.
    pub fn find(device: &mut impl BlockDevice, superblock: &Superblock) -> Result<LogFile, Errno> {
        let number = superblock.journal_inode;
        if number == 0 || number > superblock.inodes_count {
            return Err(Errno::EINVAL);
        }
        let block_size = superblock.block_size;
        let mut raw = Raw { device, superblock, block: fallible::filled(0, block_size)? };
        let (group, index) = ((number - 1) / superblock.inodes_per_group, (number - 1) % superblock.inodes_per_group);
        let per_block = (block_size / DESCRIPTOR_SIZE) as u32;
        let descriptor = raw.read(superblock.first_data_block + 1 + group / per_block)?;
        let offset = (group % per_block) as usize * DESCRIPTOR_SIZE;
        let group = Group::read(&descriptor[offset..offset + DESCRIPTOR_SIZE], group, superblock)?;
        let offset = index as usize * superblock.inode_size;
        let table = raw.read(group.inode_table + (offset / block_size) as u32)?;
        let inode = Inode::read(&table[offset % block_size..][..superblock.inode_size], false)?;
        let blocks = inode.size / block_size as u64;
        if !inode.is_regular() || !(u64::from(MIN_LENGTH)..=MAX_LENGTH).contains(&blocks) {
            return Err(if inode.is_regular() { Errno::EINVAL } else { Errno::EUCLEAN });
        }
        let mut file = LogFile { extents: Vec::new(), blocks: 0, sectors_per_block: (block_size / SECTOR_SIZE) as u64 };
        for (pointer, &block) in inode.pointers.iter().enumerate() {
            file.add_tree(&mut raw, block, (pointer + 1).saturating_sub(DIRECT), blocks)?;
        }
        if file.blocks == blocks { Ok(file) } else { Err(Errno::EUCLEAN) }
    }

    /// Adds the blocks of the tree under `block`, as many as the file still needs.
    fn add_tree<D: BlockDevice>(
        &mut self,
        raw: &mut Raw<D>,
        block: u32,
        levels: usize,
        needed: u64,
    ) -> Result<(), Errno> {
        if self.blocks >= needed {
            return Ok(());
        }
        if levels == 0 {
            return self.add(raw.checked(block)?);
        }
        let pointers = raw.read(block)?.chunks_exact(4).map(|field| u32_at(field, 0));
        for pointer in fallible::collect(pointers)? {
            self.add_tree(raw, pointer, levels - 1, needed)?;
        }
        Ok(())
    }

    /// A file of consecutive blocks.
    #[cfg(test)]
    pub fn consecutive(block: u32, count: u32, block_size: usize) -> LogFile {
        let extents = [Extent { index: 0, block, count }].into();
        LogFile { extents, blocks: count.into(), sectors_per_block: (block_size / SECTOR_SIZE) as u64 }
    }

    /// Returns how many blocks it has.
    pub fn blocks(&self) -> u64 {
        self.blocks
    }

    /// Returns how many sectors a block has.
    pub fn sectors_per_block(&self) -> u64 {
        self.sectors_per_block
    }

    fn add(&mut self, block: u32) -> Result<(), Errno> {
        let index = self.blocks as u32;
        self.blocks += 1;
        if let Some(last) = self.extents.last_mut()
            && last.block.checked_add(last.count) == Some(block)
        {
            last.count += 1;
            return Ok(());
        }
        self.extents.try_push(Extent { index, block, count: 1 })
    }

    /// Returns where a block of the file is.
    pub fn place(&self, index: u32) -> Result<u64, Errno> {
        let after = self.extents.partition_point(|extent| extent.index <= index);
        let extent = after.checked_sub(1).and_then(|at| self.extents.get(at)).ok_or(Errno::EUCLEAN)?;
        let offset = index - extent.index;
        if offset < extent.count { Ok(u64::from(extent.block + offset)) } else { Err(Errno::EUCLEAN) }
    }

    /// Whether the file has this block of the device.
    pub fn has(&self, block: u32) -> bool {
        self.extents.iter().any(|extent| (extent.block..extent.block + extent.count).contains(&block))
    }

    /// Reads a block of the file.
    pub fn read(&self, device: &mut impl BlockDevice, index: u32, bytes: &mut [u8]) -> Result<(), Errno> {
        device.read(self.place(index)? * self.sectors_per_block, bytes)
    }

    /// Writes a block of the file.
    pub fn write(&self, device: &mut impl BlockDevice, index: u32, bytes: &[u8]) -> Result<(), Errno> {
        device.write(self.place(index)? * self.sectors_per_block, bytes)
    }
}

/// Blocks of the device, past the cache.
struct Raw<'a, D> {
    device: &'a mut D,
    superblock: &'a Superblock,
    block: Vec<u8>,
}

impl<D: BlockDevice> Raw<'_, D> {
    /// Checks that a block is inside the file system and not its superblock.
    fn checked(&self, block: u32) -> Result<u32, Errno> {
        let inside = self.superblock.first_data_block + 1..self.superblock.blocks_count;
        if inside.contains(&block) { Ok(block) } else { Err(Errno::EUCLEAN) }
    }

    fn read(&mut self, block: u32) -> Result<&[u8], Errno> {
        let block = u64::from(self.checked(block)?);
        self.device.read(block * (self.block.len() / SECTOR_SIZE) as u64, &mut self.block)?;
        Ok(&self.block)
    }
}
