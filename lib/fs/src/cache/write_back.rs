//! Writing dirty blocks, in the order of `crate::order`.
//!
//! Between two steps the device is flushed, if anything was written since the last flush. A block with late sectors is written twice,
//! unless its early form is what the disk has already.

use super::BlockCache;
use crate::device::{BlockDevice, SECTOR_SIZE};
use crate::order::{Mark, Merge, Order};
use abi::Errno;

/// The steps of a sync. A step without flush before it belongs to the same as the one before.
const STEPS: [Step; 5] = [
    Step { orders: &[Order::Content, Order::Metadata], is_late: false },
    Step { orders: &[Order::Link], is_late: false },
    Step { orders: &[Order::Name], is_late: false },
    Step { orders: &[Order::Name], is_late: true },
    Step { orders: &[Order::Content, Order::Metadata, Order::Link], is_late: true },
];

struct Step {
    orders: &'static [Order],
    /// Whether it is the step of late sectors; without any a block is written by the early step.
    is_late: bool,
}

impl Step {
    fn has(&self, mark: Mark) -> bool {
        self.orders.contains(&mark.order) && (!self.is_late || mark.late != 0)
    }
}

impl<D: BlockDevice> BlockCache<D> {
    /// Writes every dirty block in order and flushes the device. No transaction may be open.
    pub fn sync(&mut self, merge: &impl Merge) -> Result<(), Errno> {
        debug_assert!(self.held.is_empty(), "blocks of an open transaction cannot be synced");
        for step in &STEPS {
            self.write_step(step, merge)?;
        }
        self.write_dirty(|mark| mark.order == Order::Count)?;
        self.device.flush()?;
        self.is_flushed = true;
        Ok(())
    }

    /// Whether the dirty blocks that wait for a sync take so many frames that it is time for one.
    pub fn needs_sync(&self) -> bool {
        self.ordered > self.frames.count() / 4
    }

    /// Whether a sector of `block` is written late.
    pub fn is_late(&self, block: u64, sector: usize) -> bool {
        let mark = self.index.find(block).and_then(|slot| self.states[slot].dirty);
        mark.is_some_and(|mark| mark.late & 1 << sector != 0)
    }

    /// Writes the dirty blocks that may be written at any time.
    pub(super) fn write_free(&mut self) -> Result<(), Errno> {
        self.write_dirty(Mark::is_free)
    }

    fn write_step(&mut self, step: &Step, merge: &impl Merge) -> Result<(), Errno> {
        if !self.modified.iter().any(|&slot| self.states[slot].dirty.is_some_and(|mark| step.has(mark))) {
            return Ok(());
        }
        if !self.is_flushed {
            self.device.flush()?;
            self.is_flushed = true;
        }
        if step.is_late {
            return self.write_dirty(|mark| step.has(mark));
        }
        let has_late = |mark: Mark| step.has(mark) && mark.late != 0;
        for slot in self.modified.clone() {
            if self.states[slot].dirty.is_some_and(has_late) {
                self.write_early(slot, merge)?;
            }
        }
        // Counts save a flush if they go with something else.
        self.write_dirty(|mark| mark.late == 0 && (step.has(mark) || mark.order == Order::Count))
    }

    /// Writes the early form of a block, which stays dirty.
    fn write_early(&mut self, slot: usize, merge: &impl Merge) -> Result<(), Errno> {
        let Some(mark) = self.states[slot].dirty else { return Ok(()) };
        let block = self.index.key(slot);
        let sector = self.sector(block);
        let (old, image) = self.run.split_at_mut(self.block_size);
        let image = &mut image[..self.block_size];
        self.device.read(sector, old)?;
        image.copy_from_slice(old);
        let sectors = image.chunks_exact_mut(SECTOR_SIZE).zip(self.frames.get(slot).chunks_exact(SECTOR_SIZE));
        for (number, (on_disk, new)) in sectors.enumerate() {
            if mark.late & 1 << number != 0 {
                merge.merge(block, number * SECTOR_SIZE, on_disk, new);
            } else {
                on_disk.copy_from_slice(new);
            }
        }
        if image == old {
            return Ok(());
        }
        self.is_flushed = false;
        self.device.write(sector, image)
    }

    /// Writes the dirty blocks with certain marks in ascending order, except those that the open transaction may roll back.
    pub(super) fn write_dirty(&mut self, is_wanted: impl Fn(Mark) -> bool) -> Result<(), Errno> {
        let mut slots = core::mem::take(&mut self.modified);
        slots.retain(|&slot| {
            self.states[slot].listed = self.states[slot].dirty.is_some();
            self.states[slot].listed
        });
        let is_wanted = |slot: usize| {
            let state = &self.states[slot];
            !state.held && state.dirty.is_some_and(&is_wanted)
        };
        let mut wanted = 0;
        for at in 0..slots.len() {
            if is_wanted(slots[at]) {
                slots.swap(at, wanted);
                wanted += 1;
            }
        }
        slots[..wanted].sort_unstable_by_key(|&slot| self.index.key(slot));
        let mut written = 0;
        let mut result = Ok(());
        while result.is_ok() && written < wanted {
            let run = &slots[written..wanted];
            let run = &run[..self.consecutive(run)];
            result = self.write_run(run);
            if result.is_ok() {
                written += run.len();
            }
        }
        slots.drain(..written);
        self.modified = slots;
        result
    }

    /// How many of the sorted `slots`, from the first, hold consecutive blocks of one request.
    fn consecutive(&self, slots: &[usize]) -> usize {
        let first = self.index.key(slots[0]);
        let run = slots.iter().zip(first..).take_while(|&(&slot, block)| self.index.key(slot) == block);
        run.take(self.longest_run()).count()
    }

    fn write_run(&mut self, slots: &[usize]) -> Result<(), Errno> {
        let sector = self.sector(self.index.key(slots[0]));
        self.is_flushed = false;
        if let &[slot] = slots {
            self.device.write(sector, self.frames.get(slot))?;
        } else {
            let bytes = &mut self.run[..slots.len() * self.block_size];
            for (&slot, out) in slots.iter().zip(bytes.chunks_exact_mut(self.block_size)) {
                out.copy_from_slice(self.frames.get(slot));
            }
            self.device.write(sector, bytes)?;
        }
        for &slot in slots {
            self.states[slot].listed = false;
            self.mark_clean(slot);
            self.frames.hold(slot, self.index.key(slot), None);
        }
        if !self.undo.is_open() {
            // An empty commit counts as progress, so that a server that dies here repeatedly still gets on.
            self.undo.commit();
        }
        Ok(())
    }
}
