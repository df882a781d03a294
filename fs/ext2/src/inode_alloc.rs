//! Allocating and freeing inodes.
//!
//! A file's inode comes from its directory's group, so that both are near each other; a directory's from
//! the first group, from its parent's on, that has at least the average of free inodes and blocks.

use fs::Errno;
use fs::device::BlockDevice;
use fs::file_system::{Caller, S_IFDIR, S_IFMT, S_ISGID};
use fs::order::Order;

use crate::bitmap;
use crate::block_free::Pauses;
use crate::inode::{Inode, generation_of};
use crate::volume::Ext2;
use fs::bytes::{put_u32, u32_at};
use fs::xattr_list::{MAGIC, REFERENCES};

/// Blocks of the largest file that is freed within the request that removes its last name or user.
const BLOCKS_AT_ONCE: u32 = 512;
/// Limit of bitmaps that a journaled request changes when it frees a file.
const MAX_BITMAPS_AT_ONCE: u32 = 64;

impl<D: BlockDevice> Ext2<D> {
    /// Allocates an inode for a node in `dir`, without links. `ENOSPC` if none is free, `EUCLEAN` if the bitmap is corrupt.
    pub(crate) fn new_inode(&mut self, dir: u32, mode: u32, caller: Caller) -> Result<u32, Errno> {
        let now = self.now();
        let parent = self.inode(dir)?;
        let (parent_mode, parent_gid) = (parent.mode, parent.gid);
        let is_directory = mode & S_IFMT == S_IFDIR;
        let number = self.take_inode(dir, is_directory)?;
        if self.inode(number).is_ok() {
            // The bitmap had it free although it is in use; the bit stays set.
            return Err(Errno::EUCLEAN);
        }
        let mut inode = Inode {
            mode: mode & 0xffff,
            uid: caller.uid,
            gid: caller.gid,
            accessed: now,
            changed: now,
            modified: now,
            dirty: true,
            ..Inode::default()
        };
        if parent_mode & S_ISGID != 0 {
            inode.gid = parent_gid;
            inode.mode |= if is_directory { S_ISGID } else { 0 };
        }
        let (block, offset) = self.inode_place(number);
        let size = self.superblock.inode_size;
        let bytes = self.cache.modify(block, offset..offset + size, Order::Link)?;
        Inode::prepare(bytes, self.superblock.extra_inode_size, now);
        let generation = generation_of(bytes);
        self.adopt(number, Inode { generation, ..inode })?;
        Ok(number)
    }

    /// Frees an inode that has neither name nor user; a large one becomes an orphan, which `free_orphans` frees.
    pub(crate) fn delete(&mut self, number: u32) -> Result<(), Errno> {
        let block_sectors = self.superblock.block_size as u32 / 512;
        let blocks = self.inode(number)?.sectors / block_sectors;
        if blocks > BLOCKS_AT_ONCE || (blocks > MAX_BITMAPS_AT_ONCE && self.has_many_bitmaps()) {
            self.uses.set(number, 0)?;
            return self.add_orphan(number);
        }
        self.delete_now(number, Pauses::No)
    }

    /// Whether a file of many blocks may have them in more groups than a journaled request should change.
    fn has_many_bitmaps(&self) -> bool {
        self.journal.is_used() && self.groups.list.len() > MAX_BITMAPS_AT_ONCE as usize
    }

    /// Frees the orphans, each in as many transactions as it takes.
    pub(crate) fn free_orphans(&mut self) -> Result<(), Errno> {
        let mut result = Ok(());
        while let Some(number) = self.uses.orphan() {
            self.begin()?;
            let deleted = self.delete_now(number, Pauses::Yes);
            self.uses.forget(number);
            self.pause()?;
            result = result.and(deleted);
        }
        result
    }

    fn delete_now(&mut self, number: u32, pauses: Pauses) -> Result<(), Errno> {
        let block_size = self.superblock.block_size;
        let inode = self.inode(number)?;
        let (has_blocks, is_directory) = (inode.has_blocks(block_size), inode.is_directory());
        let attribute_block = inode.attribute_block;
        let freed = if has_blocks { self.free_blocks_from(number, 0, pauses) } else { Ok(()) };
        let released = self.release_attributes(attribute_block);
        self.remove_orphan(number)?;
        // 0 would mean that the inode is in use.
        let deleted = self.now_seconds().max(1);
        let inode = self.change(number)?;
        inode.deleted = deleted;
        inode.attribute_block = 0;
        if has_blocks {
            inode.size = 0;
        }
        self.forget(number)?;
        self.uses.forget(number);
        self.free_inode(number, is_directory)?;
        freed.and(released)
    }

    fn take_inode(&mut self, dir: u32, is_directory: bool) -> Result<u32, Errno> {
        let count = self.groups.list.len();
        let home = ((dir - 1) / self.superblock.inodes_per_group) as usize;
        let first = if is_directory { self.directory_group(home) } else { home };
        for step in 0..count {
            let group = (first + step) % count;
            if let Some(number) = self.take_inode_from_group(group, is_directory)? {
                return Ok(number);
            }
        }
        Err(Errno::ENOSPC)
    }

    fn directory_group(&self, home: usize) -> usize {
        let count = self.groups.list.len();
        let average_inodes = self.superblock.free_inodes / count as u32;
        let average_blocks = self.superblock.free_blocks / count as u32;
        let spacious = |&number: &usize| {
            let group = &self.groups.list[number];
            u32::from(group.free_inodes) >= average_inodes && u32::from(group.free_blocks) >= average_blocks
        };
        (0..count).map(|step| (home + step) % count).find(spacious).unwrap_or(home)
    }

    fn take_inode_from_group(&mut self, number: usize, is_directory: bool) -> Result<Option<u32>, Errno> {
        let group = &self.groups.list[number];
        if group.free_inodes == 0 {
            return Ok(None);
        }
        let limit = self.superblock.inodes_per_group as usize;
        let reserved = if number == 0 { self.superblock.first_inode - 1 } else { 0 };
        let from = group.free_inode_bit.max(reserved) as usize;
        let bitmap_block = u64::from(group.inode_bitmap);
        let bits = self.cache.read(bitmap_block)?;
        let Some(bit) = bitmap::first_clear(bits, self.window.before(bitmap_block as u32), from, limit) else {
            return Ok(None);
        };
        let inode = number as u32 * self.superblock.inodes_per_group + bit as u32 + 1;
        // Loads the inode's block, which is needed next: a miss here leaves nothing to roll back.
        self.cache.read(self.inode_place(inode).0)?;
        self.remember_bitmap(bitmap_block)?;
        bitmap::set(self.cache.modify(bitmap_block, bitmap::byte_of(bit), Order::Metadata)?, bit % 8);
        let group = self.groups.change(number);
        group.free_inode_bit = bit as u32 + 1;
        group.free_inodes -= 1;
        group.directories = group.directories.saturating_add(is_directory.into());
        self.superblock.free_inodes = self.superblock.free_inodes.saturating_sub(1);
        Ok(Some(inode))
    }

    /// Whether the disk does not know the inode yet.
    pub(crate) fn is_new_inode(&self, number: u32) -> bool {
        let per_group = self.superblock.inodes_per_group;
        let group = &self.groups.list[((number - 1) / per_group) as usize];
        let before = self.window.before(group.inode_bitmap);
        before.is_some_and(|bits| !bitmap::is_set(bits, ((number - 1) % per_group) as usize))
    }

    fn free_inode(&mut self, number: u32, is_directory: bool) -> Result<(), Errno> {
        let index = number - 1;
        let bit = (index % self.superblock.inodes_per_group) as usize;
        let number = (index / self.superblock.inodes_per_group) as usize;
        let bitmap_block = u64::from(self.groups.list[number].inode_bitmap);
        self.clear_bit(bitmap_block, bit)?;
        let group = self.groups.change(number);
        group.free_inode_bit = group.free_inode_bit.min(bit as u32);
        group.free_inodes = group.free_inodes.saturating_add(1);
        group.directories = group.directories.saturating_sub(is_directory.into());
        self.superblock.free_inodes = self.superblock.free_inodes.saturating_add(1);
        Ok(())
    }

    /// Decrements the reference count of a block of extended attributes, which inodes may share, and frees
    /// the block after the last reference.
    pub(crate) fn release_attributes(&mut self, block: u32) -> Result<(), Errno> {
        if block == 0 {
            return Ok(());
        }
        self.groups.locate(block)?;
        let bytes = self.cache.modify(block.into(), 0..REFERENCES + 4, Order::Metadata)?;
        if u32_at(bytes, 0) != MAGIC {
            return Err(Errno::EUCLEAN);
        }
        match u32_at(bytes, REFERENCES) {
            0 => Err(Errno::EUCLEAN),
            1 => self.free_block(block),
            users => {
                put_u32(bytes, REFERENCES, users - 1);
                Ok(())
            }
        }
    }
}
