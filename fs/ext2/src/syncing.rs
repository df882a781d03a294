//! Bringing everything to the disk, in an order that leaves a file system which a check mends without loss, at whatever write the power
//! fails.
//!
//! The order is that of `fs::order`. What is late here: cleared bits of bitmaps, inodes without name, the pointers of deleted files,
//! and in directories the entries of names that have moved. Until it is their turn, the disk has bitmaps with the bits of both times,
//! and the inodes that its names refer to as they were.

use fs::Errno;
use fs::device::BlockDevice;
use fs::order::Merge;

use crate::group::{Groups, Part};
use crate::inode::LINKS;
use crate::journal::{Failure, Journal, Journaling};
use crate::volume::Ext2;
use crate::window::Sector;
use fs::bytes::u16_at;

/// Blocks and inodes that one request may allocate between two looks at what is left, beside its data.
const MARGIN: u32 = 32;
/// Data that a request allocates between two looks, in bytes.
const MAX_DATA: u64 = 256 * 1024;

impl<D: BlockDevice> Ext2<D> {
    /// Makes all changes durable: writes all dirty blocks in order, or commits to the journal. `EIO` once a commit has failed.
    pub(crate) fn write_everything(&mut self) -> Result<(), Errno> {
        if matches!(self.journal, Journaling::Aborted) {
            return Err(Errno::EIO);
        }
        if self.read_only {
            return Ok(());
        }
        if self.journal.is_used() {
            return self.commit_to_journal();
        }
        self.note_write_time();
        self.commit()?;
        self.cache.sync(&Late { groups: &self.groups, inode_size: self.superblock.inode_size })?;
        let Ext2 { window, groups, .. } = self;
        window.end(|bitmap| groups.search_again(bitmap));
        Ok(())
    }

    /// Writes content home and the running transaction to the journal; empties that if the next transaction may not fit.
    fn commit_to_journal(&mut self) -> Result<(), Errno> {
        self.open_journal()?;
        self.commit()?;
        self.cache.write_content()?;
        if self.cache.running_count() > 0 {
            self.note_write_time();
            self.commit()?;
            let blocks = self.cache.running()?;
            let Journaling::Open(journal) = &mut self.journal else { return Err(Errno::EROFS) };
            match journal.commit(&mut self.cache, &blocks) {
                Ok(()) => self.cache.logged(),
                Err(Failure::Before(error)) => return Err(error),
                Err(Failure::Final(error)) => {
                    sys::log!("commit to the journal failed: {error}; the file system is read-only from now on");
                    self.journal = Journaling::Aborted;
                    self.read_only = true;
                    return Err(error);
                }
            }
        } else {
            // Nothing but content has changed, if anything.
            self.cache.flush()?;
        }
        let Ext2 { window, groups, .. } = self;
        window.end(|bitmap| groups.search_again(bitmap));
        let needs_checkpoint = |journal: &Journal| journal.needs_checkpoint() || self.cache.is_full_of_logged();
        if matches!(&self.journal, Journaling::Open(journal) if needs_checkpoint(journal)) {
            self.checkpoint()?;
        }
        Ok(())
    }

    /// Writes home what the journal has, and empties it. No transaction may be running.
    fn checkpoint(&mut self) -> Result<(), Errno> {
        self.cache.checkpoint()?;
        let Journaling::Open(journal) = &mut self.journal else { return Err(Errno::EROFS) };
        journal.checkpointed(self.cache.device_mut())
    }

    /// Opens the journal that the previous incarnation has left.
    fn open_journal(&mut self) -> Result<(), Errno> {
        if matches!(self.journal, Journaling::Left) {
            let journal = Journal::open(self.cache.device_mut(), &self.superblock, true)?.ok_or(Errno::EROFS)?;
            self.journal = Journaling::Open(journal);
        }
        Ok(())
    }

    /// Ends the use of the journal, in which everything is committed: the file system can be mounted without.
    pub(crate) fn close_journal(&mut self) -> Result<(), Errno> {
        self.checkpoint()?;
        let Journaling::Open(journal) = &mut self.journal else { return Err(Errno::EROFS) };
        journal.close(self.cache.device_mut())?;
        self.superblock.set_needs_recovery(false);
        self.note_superblock();
        self.commit()?;
        // Without the journal this is the last write, and of one sector.
        self.cache.logged();
        self.cache.checkpoint()
    }

    /// Writes everything if the next change must not add to what is dirty already.
    pub(crate) fn make_room(&mut self) -> Result<(), Errno> {
        let is_full = self.journal.must_commit(self.cache.running_count())
            || self.cache.needs_sync()
            || self.window.must_end()
            || self.is_short();
        if is_full { self.write_everything() } else { Ok(()) }
    }

    /// Whether the blocks or inodes are few, because some are free for the disk only after a sync.
    pub(crate) fn is_short(&self) -> bool {
        let blocks = (MAX_DATA / self.block_size()) as u32 + MARGIN;
        let freed = self.window.freed(|_| true);
        let has = |free: u32, margin: u32| free >= freed.saturating_add(margin);
        // What is freed is told apart only where that decides: each write asks.
        if freed == 0 || has(self.superblock.free_inodes, MARGIN) && has(self.superblock.free_blocks, blocks) {
            return false;
        }
        let freed_inodes = self.window.freed(|bitmap| self.groups.is_inode_bitmap(bitmap));
        let freed_blocks = self.window.freed(|bitmap| !self.groups.is_inode_bitmap(bitmap));
        (freed_inodes > 0 && self.superblock.free_inodes < freed_inodes.saturating_add(MARGIN))
            || (freed_blocks > 0 && self.superblock.free_blocks < freed_blocks.saturating_add(blocks))
    }

    /// Orders the names that the current request is about to change: the one that stands in `added` afterwards, if any, reaches the
    /// disk before the one in `removed` goes from it. Returns whether the removal is late. `None` as `added` is a new block.
    ///
    /// Call it before anything is changed: it may write everything.
    pub(crate) fn order_names(&mut self, added: Option<Sector>, removed: Sector) -> Result<bool, Errno> {
        if added == Some(removed) || !self.is_ordered() {
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
        if !self.is_ordered() {
            return Ok(());
        }
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
