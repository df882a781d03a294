//! Allocating and freeing blocks.
//!
//! The search begins at the goal, continues in the rest of the goal's group, then in the groups after it.
//! The counts in descriptors and superblock change with the bitmap. A bitmap that contradicts its
//! descriptor, or has a block of the format free, is corrupt: `EUCLEAN`, and nothing is allocated.

use fs::Errno;
use fs::device::BlockDevice;
use fs::file_system::Caller;
use fs::order::Order;

use crate::bitmap;
use crate::volume::Ext2;

impl<D: BlockDevice> Ext2<D> {
    /// Fails with `ENOSPC` unless `count` blocks are free for `caller`: the reserved ones are for root and for
    /// the user and group in the superblock.
    pub(crate) fn require_blocks(&self, count: u32, caller: Caller) -> Result<(), Errno> {
        let superblock = &self.superblock;
        let (uid, gid) = (u32::from(superblock.reserved_uid), u32::from(superblock.reserved_gid));
        let privileged = caller.uid == 0 || caller.uid == uid || (gid != 0 && caller.gid == gid);
        let reserved = if privileged { 0 } else { superblock.reserved_blocks };
        if superblock.free_blocks.saturating_sub(reserved) < count { Err(Errno::ENOSPC) } else { Ok(()) }
    }

    /// Allocates a block near `goal`. `ENOSPC` if none is free.
    pub(crate) fn take_block(&mut self, goal: u32) -> Result<u32, Errno> {
        let count = self.groups.list.len();
        let (first, bit) = self.groups.locate(goal).unwrap_or((0, 0));
        if let Some(block) = self.take_from_group(first, bit)? {
            return Ok(block);
        }
        for step in 0..count {
            if let Some(block) = self.take_from_group((first + step) % count, 0)? {
                return Ok(block);
            }
        }
        Err(Errno::ENOSPC)
    }

    fn take_from_group(&mut self, number: usize, from: usize) -> Result<Option<u32>, Errno> {
        let group = &self.groups.list[number];
        if group.free_blocks == 0 {
            return Ok(None);
        }
        let lowest = group.free_bit as usize;
        let limit = self.superblock.group_blocks(number as u32) as usize;
        let bitmap_block = u64::from(group.block_bitmap);
        let bits = self.cache.read(bitmap_block)?;
        let before = self.window.before(bitmap_block as u32);
        let Some(bit) = bitmap::first_clear(bits, before, from.max(lowest), limit) else {
            return Ok(None);
        };
        let block = self.superblock.group_start(number as u32) + bit as u32;
        self.groups.locate(block)?;
        self.remember_bitmap(bitmap_block)?;
        bitmap::set(self.cache.modify(bitmap_block, bitmap::byte_of(bit), Order::Metadata)?, bit % 8);
        let group = self.groups.change(number);
        group.free_blocks -= 1;
        if from <= lowest {
            group.free_bit = bit as u32 + 1;
        }
        self.superblock.free_blocks = self.superblock.free_blocks.saturating_sub(1);
        Ok(Some(block))
    }

    /// Remembers a bitmap before its first change since the last sync.
    pub(crate) fn remember_bitmap(&mut self, block: u64) -> Result<(), Errno> {
        let bits = self.cache.read(block)?;
        self.window.remember(block as u32, bits)
    }

    /// Clears a bit of a bitmap: something is free once nothing on the disk refers to it. `EUCLEAN` if it is clear.
    pub(crate) fn clear_bit(&mut self, block: u64, bit: usize) -> Result<(), Errno> {
        match self.remember_bitmap(block) {
            // Nothing can be allocated before the next sync.
            Err(Errno::ENOMEM) => self.window.end_soon(),
            remembered => remembered?,
        }
        let bits = self.cache.modify_late(block, bitmap::byte_of(bit), Order::Metadata)?;
        if !bitmap::is_set(bits, bit % 8) {
            return Err(Errno::EUCLEAN);
        }
        bitmap::clear(bits, bit % 8);
        self.window.note_freed(block as u32, bit);
        Ok(())
    }

    /// Frees a block and drops its content. `EUCLEAN` if it cannot have been in use.
    pub(crate) fn free_block(&mut self, block: u32) -> Result<(), Errno> {
        let (number, bit) = self.groups.locate(block)?;
        let bitmap_block = u64::from(self.groups.list[number].block_bitmap);
        self.clear_bit(bitmap_block, bit)?;
        let group = self.groups.change(number);
        group.free_blocks = group.free_blocks.saturating_add(1);
        group.free_bit = group.free_bit.min(bit as u32);
        self.superblock.free_blocks = self.superblock.free_blocks.saturating_add(1);
        self.cache.discard(block.into());
        Ok(())
    }
}
