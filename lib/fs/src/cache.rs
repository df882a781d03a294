//! The block cache: a bounded number of blocks of one device, written back late.
//!
//! Blocks have the size of the file system's blocks. A modified block stays here until `sync`, or
//! until room is needed and the block used longest ago is a modified one: then everything modified is
//! written, in ascending order and in runs, because one sweep costs less than many single writes.
//!
//! Invariants: a block has at most one frame; a modified frame is in `modified`; at most `capacity`
//! frames exist. A failed write leaves its blocks modified, so nothing accepted is dropped silently.

use alloc::vec;
use alloc::vec::Vec;

use crate::Errno;
use crate::device::{BlockDevice, SECTOR_SIZE};
use crate::frames::{Frames, PAGE_BYTES};
use crate::lru::LruIndex;

/// Longest run of blocks moved by one device request, in bytes.
pub const RUN_BYTES: usize = 64 * 1024;

/// Fewest frames a cache works with, whatever the budget says.
const MIN_FRAMES: usize = 32;

#[derive(Clone, Copy, Default)]
struct State {
    dirty: bool,
    /// Whether the slot is listed in `BlockCache::modified`; it may be listed and clean again.
    listed: bool,
}

/// Cache of the blocks of a device.
pub struct BlockCache<D> {
    device: D,
    block_size: usize,
    block_count: u64,
    capacity: usize,
    index: LruIndex,
    frames: Frames,
    /// Of each frame.
    states: Vec<State>,
    modified: Vec<usize>,
    run: Vec<u8>,
}

impl<D: BlockDevice> BlockCache<D> {
    /// A cache over `device` with blocks of `block_size` bytes (a power of two from a sector to a page) and
    /// room for about `budget` pages. Memory is taken when it is first needed.
    pub fn new(device: D, block_size: usize, budget: usize) -> Self {
        let capacity = (budget.saturating_mul(PAGE_BYTES) / block_size).max(MIN_FRAMES);
        let block_count = device.sector_count() / (block_size / SECTOR_SIZE) as u64;
        BlockCache {
            device,
            block_size,
            block_count,
            capacity,
            index: LruIndex::new(capacity),
            frames: Frames::new(block_size),
            states: Vec::new(),
            modified: Vec::new(),
            run: vec![0; RUN_BYTES],
        }
    }

    /// Bytes of a block.
    pub fn block_size(&self) -> usize {
        self.block_size
    }

    /// Blocks in the longest run one request moves.
    pub fn longest_run(&self) -> usize {
        RUN_BYTES / self.block_size
    }

    /// The content of `block`. `EIO` when it is outside the device or cannot be read.
    pub fn read(&mut self, block: u64) -> Result<&[u8], Errno> {
        let slot = self.load(block)?;
        Ok(self.frames.get(slot))
    }

    /// The content of `block` for change; it will be written back. Errors as `read`.
    pub fn modify(&mut self, block: u64) -> Result<&mut [u8], Errno> {
        let slot = self.load(block)?;
        Ok(self.dirty(slot))
    }

    /// A block whose old content does not matter, for change. What it holds now is unspecified: the
    /// caller fills all of it.
    pub fn overwrite(&mut self, block: u64) -> Result<&mut [u8], Errno> {
        let slot = match self.index.find(block) {
            Some(slot) => {
                self.index.touch(slot);
                slot
            }
            None => self.take(block)?,
        };
        Ok(self.dirty(slot))
    }

    /// As `overwrite`, with the content set to zeros.
    pub fn zeroed(&mut self, block: u64) -> Result<&mut [u8], Errno> {
        let data = self.overwrite(block)?;
        data.fill(0);
        Ok(data)
    }

    /// Whether `block` is here.
    pub fn contains(&self, block: u64) -> bool {
        self.index.find(block).is_some()
    }

    /// Brings `count` consecutive blocks in with one request, as far as the first one that is here
    /// already and as one request goes. Failure is no error: a later `read` of the block meets it again.
    pub fn read_ahead(&mut self, first: u64, count: usize) {
        let limit = count.min(self.longest_run()).min(self.capacity / 4);
        let absent = (first..self.block_count).take(limit).take_while(|&b| !self.contains(b)).count();
        if absent < 2 {
            return;
        }
        let Ok(slots) = self.take_run(first, absent) else { return };
        let sector = self.sector(first);
        let bytes = &mut self.run[..absent * self.block_size];
        match self.device.read(sector, bytes) {
            Ok(()) => {
                for (&slot, data) in slots.iter().zip(bytes.chunks_exact(self.block_size)) {
                    self.frames.get_mut(slot).copy_from_slice(data);
                }
            }
            Err(_) => slots.into_iter().for_each(|slot| self.index.remove(slot)),
        }
    }

    /// Forgets `block` without writing it: it belongs to nobody any more.
    pub fn discard(&mut self, block: u64) {
        if let Some(slot) = self.index.find(block) {
            self.states[slot].dirty = false;
            self.index.remove(slot);
        }
    }

    /// Writes every modified block in ascending order and makes the device durable.
    pub fn sync(&mut self) -> Result<(), Errno> {
        self.write_back()?;
        self.device.flush()
    }

    /// Gives the device back, without writing anything.
    pub fn into_device(self) -> D {
        self.device
    }

    fn sector(&self, block: u64) -> u64 {
        block * (self.block_size / SECTOR_SIZE) as u64
    }

    fn dirty(&mut self, slot: usize) -> &mut [u8] {
        let state = &mut self.states[slot];
        state.dirty = true;
        if !state.listed {
            state.listed = true;
            self.modified.push(slot);
        }
        self.frames.get_mut(slot)
    }

    fn load(&mut self, block: u64) -> Result<usize, Errno> {
        if let Some(slot) = self.index.find(block) {
            self.index.touch(slot);
            return Ok(slot);
        }
        let slot = self.take(block)?;
        let sector = self.sector(block);
        if let Err(error) = self.device.read(sector, self.frames.get_mut(slot)) {
            self.index.remove(slot);
            return Err(error);
        }
        Ok(slot)
    }

    /// A clean frame for `block`, which has none yet; its content is whatever was there.
    fn take(&mut self, block: u64) -> Result<usize, Errno> {
        if block >= self.block_count {
            return Err(Errno::EIO);
        }
        if self.index.len() >= self.capacity {
            self.evict()?;
        }
        let slot = self.index.insert(block);
        if slot == self.states.len() {
            self.frames.provide(slot);
            self.states.push(State::default());
        }
        Ok(slot)
    }

    /// Frames for `count` consecutive blocks; all or none. There are so few that none evicts another.
    fn take_run(&mut self, first: u64, count: usize) -> Result<Vec<usize>, Errno> {
        let mut slots = Vec::with_capacity(count);
        for block in (first..).take(count) {
            match self.take(block) {
                Ok(slot) => slots.push(slot),
                Err(error) => {
                    slots.into_iter().for_each(|slot| self.index.remove(slot));
                    return Err(error);
                }
            }
        }
        Ok(slots)
    }

    fn evict(&mut self) -> Result<(), Errno> {
        let Some(victim) = self.index.oldest() else { return Err(Errno::ENOMEM) };
        if self.states[victim].dirty {
            self.write_back()?;
        }
        self.index.remove(victim);
        Ok(())
    }

    fn write_back(&mut self) -> Result<(), Errno> {
        let mut slots = core::mem::take(&mut self.modified);
        slots.retain(|&slot| {
            self.states[slot].listed = self.states[slot].dirty;
            self.states[slot].dirty
        });
        slots.sort_unstable_by_key(|&slot| self.index.key(slot));
        let mut rest = slots.as_slice();
        let mut result = Ok(());
        while result.is_ok() && !rest.is_empty() {
            let (run, after) = rest.split_at(self.consecutive(rest));
            result = self.write_run(run);
            if result.is_ok() {
                rest = after;
            }
        }
        let written = slots.len() - rest.len();
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
            self.states[slot].dirty = false;
            self.states[slot].listed = false;
        }
        Ok(())
    }
}
