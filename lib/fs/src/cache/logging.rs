//! The cache of a file system with a journal.
//!
//! A block that a change makes dirty is content, which a commit writes home before anything else, or belongs to the *running
//! transaction*: it is neither written nor evicted until that is in the journal. Then it is *logged*: the journal keeps it until a
//! checkpoint has written it home. Which blocks are running stands in the directory of the frames, and so outlives the process.
//!
//! New blocks of directories and pointers are content until their first commit: nothing on the disk refers to them before it.
//!
//! Invariants: a frame whose block the journal has is not evicted before the checkpoint, so that freeing it is noticed; no transaction of
//! the undo log is open at a commit. The file system owns the journal and writes it: see `fs/ext2/src/journal.rs`.

use super::{BlockCache, Writes};
use crate::device::BlockDevice;
use crate::order::{Mark, Order};
use abi::Errno;
use alloc::vec::Vec;
use sys::fallible::{self, TryVec};

impl<D: BlockDevice> BlockCache<D> {
    /// Lets changes of anything but content wait for a commit to the journal. `ENOMEM`.
    pub fn use_journal(&mut self) -> Result<(), Errno> {
        // Each of them had a frame, and none gets in before the next commit.
        self.revoked.try_make_room(self.frames.count())?;
        self.writes = Writes::Journaled;
        Ok(())
    }

    /// Returns the device, past the cache: for the journal, whose blocks are never cached.
    pub fn device_mut(&mut self) -> &mut D {
        &mut self.device
    }

    /// Writes the content that the running transaction may refer to.
    pub fn write_content(&mut self) -> Result<(), Errno> {
        debug_assert!(self.held.is_empty(), "blocks of an open transaction cannot be committed");
        self.write_free()
    }

    /// Returns the blocks of the running transaction, in ascending order. `ENOMEM`.
    pub fn running(&self) -> Result<Vec<u64>, Errno> {
        let slots = self.modified.iter().filter(|&&slot| self.has_order(slot, Order::Running));
        let mut blocks = fallible::collect(slots.map(|&slot| self.index.key(slot)))?;
        blocks.sort_unstable();
        Ok(blocks)
    }

    /// Returns the content of a block of the running transaction.
    pub fn running_content(&self, block: u64) -> Option<&[u8]> {
        self.index.find(block).map(|slot| self.frames.get(slot))
    }

    /// Returns the blocks that the running transaction revokes.
    pub fn revoked(&self) -> &[u32] {
        &self.revoked
    }

    /// Returns how many blocks the running transaction has.
    pub fn running_count(&self) -> usize {
        self.running
    }

    /// Whether as many blocks wait for a checkpoint that it is time for one.
    pub fn is_full_of_logged(&self) -> bool {
        self.ordered > self.frames.count() / 8
    }

    /// Whether the open transaction of the undo log has as many blocks as this.
    pub fn holds_more_than(&self, blocks: usize) -> bool {
        self.held.len() > blocks
    }

    /// Makes everything durable that was written so far. Does nothing if that is so.
    pub fn flush(&mut self) -> Result<(), Errno> {
        if !self.is_flushed {
            self.device.flush()?;
            self.is_flushed = true;
        }
        Ok(())
    }

    /// Records that the device was written past the cache.
    pub fn note_written(&mut self) {
        self.is_flushed = false;
    }

    /// The running transaction is in the journal.
    pub fn logged(&mut self) {
        for at in 0..self.modified.len() {
            let slot = self.modified[at];
            if self.has_order(slot, Order::Running) {
                let mark = Mark { order: Order::Logged, late: 0 };
                self.states[slot].dirty = Some(mark);
                self.states[slot].in_log = true;
                self.frames.hold(slot, self.index.key(slot), Some(mark));
            }
        }
        self.frames.order();
        self.running = 0;
        self.revoked.clear();
    }

    /// Writes home what the journal has, and makes it durable. Afterwards the journal is not needed.
    pub fn checkpoint(&mut self) -> Result<(), Errno> {
        self.write_dirty(|mark| mark.order == Order::Logged)?;
        self.flush()?;
        self.states.iter_mut().for_each(|state| state.in_log = false);
        Ok(())
    }

    /// Revokes what the journal has of a block that is free now.
    pub(super) fn note_revoked(&mut self, slot: usize, block: u64) {
        if core::mem::take(&mut self.states[slot].in_log) {
            self.revoked.push_reserved(block as u32);
        }
    }

    fn has_order(&self, slot: usize, order: Order) -> bool {
        self.states[slot].dirty.is_some_and(|mark| mark.order == order)
    }
}
