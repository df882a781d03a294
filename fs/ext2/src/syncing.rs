//! Bringing everything to the disk, in an order that leaves a file system which a check mends without loss, at whatever write the power
//! fails.
//!
//! The order is that of `fs::order`. What is late here: cleared bits of bitmaps, inodes without name, the pointers of deleted files,
//! and in directories the entries of names that have moved. Until it is their turn, the disk has bitmaps with the bits of both times,
//! and the inodes that its names refer to as they were.

use fs::Errno;
use fs::device::BlockDevice;
use fs::order::Merge;

use crate::bytes::u16_at;
use crate::group::{Groups, Part};
use crate::inode::LINKS;
use crate::volume::Ext2;
use crate::window::Sector;

/// Blocks and inodes that one request may allocate between two looks at what is left, beside its data.
const MARGIN: u32 = 32;
/// Data that a request allocates between two looks, in bytes.
const MAX_DATA: u64 = 256 * 1024;

impl<D: BlockDevice> Ext2<D> {
    /// Writes all dirty blocks and flushes the device.
    pub(crate) fn write_everything(&mut self) -> Result<(), Errno> {
        if self.read_only {
            return Ok(());
        }
        self.note_write_time();
        self.commit()?;
        self.cache.sync(&Late { groups: &self.groups, inode_size: self.superblock.inode_size })?;
        let Ext2 { window, groups, .. } = self;
        window.end(|bitmap| groups.search_again(bitmap));
        Ok(())
    }

    /// Writes everything if the next change must not add to what is dirty already.
    pub(crate) fn make_room(&mut self) -> Result<(), Errno> {
        let is_full = self.cache.needs_sync() || self.window.must_end() || self.is_short();
        if is_full { self.write_everything() } else { Ok(()) }
    }

    /// Whether the blocks or inodes are few, because some are free for the disk only after a sync.
    pub(crate) fn is_short(&self) -> bool {
        let freed_inodes = self.window.freed(|bitmap| self.groups.is_inode_bitmap(bitmap));
        let freed_blocks = self.window.freed(|bitmap| !self.groups.is_inode_bitmap(bitmap));
        let blocks = (MAX_DATA / self.block_size()) as u32 + MARGIN;
        (freed_inodes > 0 && self.superblock.free_inodes < freed_inodes.saturating_add(MARGIN))
            || (freed_blocks > 0 && self.superblock.free_blocks < freed_blocks.saturating_add(blocks))
    }

    /// Orders the names that the current request is about to change: the one that stands in `added` afterwards, if any, reaches the
    /// disk before the one in `removed` goes from it. Returns whether the removal is late. `None` as `added` is a new block.
    ///
    /// Call it before anything is changed: it may write everything.
    pub(crate) fn order_names(&mut self, added: Option<Sector>, removed: Sector) -> Result<bool, Errno> {
        if added == Some(removed) {
            return Ok(false);
        }
        if self.window.is_target(removed) || added.is_some_and(|added| self.is_late(added)) {
            self.write_everything()?;
        }
        self.window.note_move(added);
        Ok(true)
    }

    /// Orders a name that is added to others of its node, in `added` or in a new block. Call it before anything is changed.
    pub(crate) fn order_link(&mut self, added: Option<Sector>) -> Result<(), Errno> {
        if added.is_some_and(|added| self.is_late(added)) {
            self.write_everything()?;
        }
        self.window.note_move(added);
        Ok(())
    }

    fn is_late(&self, sector: Sector) -> bool {
        self.cache.is_late(sector.block, sector.number)
    }
}

/// What the disk has in late sectors until their turn.
struct Late<'a> {
    groups: &'a Groups,
    inode_size: usize,
}

impl Merge for Late<'_> {
    fn merge(&self, block: u64, _: usize, old: &mut [u8], new: &[u8]) {
        match self.groups.part(block as u32) {
            Part::Bitmap => old.iter_mut().zip(new).for_each(|(old, new)| *old |= new),
            Part::Inodes if self.inode_size <= old.len() => {
                for (old, new) in old.chunks_mut(self.inode_size).zip(new.chunks(self.inode_size)) {
                    if u16_at(new, LINKS) > 0 {
                        old.copy_from_slice(new);
                    }
                }
            }
            Part::Inodes | Part::Other => {}
        }
    }
}
