//! The block cache: a bounded number of blocks of one device, written back late, which outlives the process.
//!
//! Blocks have the size of the file system's blocks. A dirty block stays until `sync`, which writes in the order that a power cut
//! demands (`crate::order`), in ascending order and in runs within each step, because one sweep costs less than many single writes.
//! Only blocks that may be written at any time are evicted while dirty, all of them together; when the others become many, the file
//! system must sync (`needs_sync`).
//!
//! Changes belong to the open transaction of the undo log. The method that changes a block decides what a successor finds if the
//! process dies before the commit:
//! * `modify`: the old content. The bytes are saved, and the block is neither evicted nor written before the commit.
//! * `rewrite`: a mixture of old and new content. For file data, which is written again when the request is repeated.
//! * `overwrite`, `zeroed`: unspecified content. For blocks that are free again after the roll-back, or are written again as a whole.
//!
//! Over a device with asynchronous reads (`flights`) an absent block is fetched, and the request that needs it misses. A request that
//! has missed a block commits nothing.
//!
//! Invariants: a block has at most one frame; a dirty frame is in `modified`; a frame saved by the open transaction is in `held`, and
//! neither written nor evicted; a dirty frame that must be written in order is not evicted. A failed write leaves its blocks dirty, so no accepted data is dropped silently.

mod logging;
mod runs;
mod write_back;

use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;
use sys::fallible::{self, TryVec};

use crate::device::{BlockDevice, SECTOR_SIZE};
use crate::flights::{Arrival, Flights, Landed};
use crate::frames::Frames;
use crate::lru::LruIndex;
use crate::order::{Mark, Order};
use crate::preserve::CacheMemory;
use abi::Errno;
use recover::transaction::Undo;

/// Longest run of blocks moved by one device request, in bytes.
pub const RUN_BYTES: usize = 64 * 1024;

/// Granularity of the undo log in bytes: neighbouring changes are saved once.
const LINE: usize = 64;

#[derive(Clone, Copy, Default)]
struct State {
    /// What is left to do if the frame is dirty.
    dirty: Option<Mark>,
    /// Whether the frame is listed in `BlockCache::modified`; it may be listed and clean again.
    listed: bool,
    /// Whether it is listed in `BlockCache::held`.
    held: bool,
    /// Whether the frame is never evicted.
    pinned: bool,
    /// Whether the journal has a content of the block, which must be revoked when the block is freed.
    in_log: bool,
}

/// What a power cut demands of the writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Writes {
    /// The order of `crate::order`.
    InOrder,
    /// A journal: see `logging`.
    Journaled,
}

/// Cache of the blocks of a device.
pub struct BlockCache<D> {
    device: D,
    block_size: usize,
    block_count: u64,
    index: LruIndex,
    frames: Frames,
    /// State of each frame.
    states: Vec<State>,
    modified: Vec<usize>,
    held: Vec<usize>,
    /// Blocks that are free once the open transaction commits.
    discarded: Vec<u64>,
    flights: Flights,
    run: Vec<u8>,
    undo: Undo,
    writes: Writes,
    /// Dirty frames that must be written in order.
    ordered: usize,
    /// Frames of the running transaction.
    running: usize,
    /// Blocks that the running transaction has freed, and of which the journal has a content.
    revoked: Vec<u32>,
    /// Whether the device was flushed after the last write.
    is_flushed: bool,
}

impl<D: BlockDevice> BlockCache<D> {
    /// An empty cache over `device` with blocks of `block_size` bytes (a power of two from `MIN_BLOCK` to a page) in the directory and
    /// frames of `memory`.
    pub fn create(device: D, block_size: usize, memory: CacheMemory) -> Self {
        let mut frames = Frames::new(memory.directory, memory.frames, block_size);
        frames.clear();
        let index = LruIndex::new(frames.count());
        Self::of(device, block_size, frames, index, memory.undo)
    }

    /// Opens the cache of the previous incarnation.
    pub fn open(device: D, block_size: usize, memory: CacheMemory) -> Self {
        let mut frames = Frames::new(memory.directory, memory.frames, block_size);
        let (index, modified) = frames.restore();
        let mut cache = Self::of(device, block_size, frames, index, memory.undo);
        cache.is_flushed = false;
        for (slot, mark) in modified {
            cache.mark_dirty(slot, mark);
        }
        cache
    }

    #[expect(clippy::disallowed_macros, clippy::disallowed_methods, reason = "at the start or a mount")]
    fn of(device: D, block_size: usize, frames: Frames, index: LruIndex, undo: Undo) -> Self {
        let block_count = device.sector_count() / (block_size / SECTOR_SIZE) as u64;
        let states = vec![State::default(); frames.count()];
        let run = vec![0; RUN_BYTES];
        let [modified, held] = [(); 2].map(|()| Vec::with_capacity(frames.count()));
        let discarded = Vec::with_capacity(frames.count());
        BlockCache {
            device,
            block_size,
            block_count,
            index,
            frames,
            states,
            modified,
            held,
            discarded,
            flights: Flights::default(),
            run,
            undo,
            writes: Writes::InOrder,
            ordered: 0,
            running: 0,
            revoked: Vec::new(),
            is_flushed: true,
        }
    }

    /// Returns the size of a block in bytes.
    pub fn block_size(&self) -> usize {
        self.block_size
    }

    /// Returns the device.
    pub fn device(&self) -> &D {
        &self.device
    }

    /// Returns the capacity in blocks.
    pub fn capacity(&self) -> usize {
        self.frames.count()
    }

    /// Returns the limit of one device request, in blocks.
    pub fn longest_run(&self) -> usize {
        RUN_BYTES / self.block_size
    }

    /// Returns the content of `block`. `EIO` if it is outside the device or unreadable; `EAGAIN` if the request misses it.
    pub fn read(&mut self, block: u64) -> Result<&[u8], Errno> {
        let slot = self.load(block)?;
        Ok(self.frames.get(slot))
    }

    /// Loads `block` and never evicts it, so that reading it needs no device. Errors as `read`.
    pub fn pin(&mut self, block: u64) -> Result<(), Errno> {
        let slot = self.load(block)?;
        self.states[slot].pinned = true;
        self.index.hold(slot);
        Ok(())
    }

    /// Returns bytes of `block` for change; a death before the commit rolls the change back. Errors as `read`.
    pub fn modify(&mut self, block: u64, range: Range<usize>, order: Order) -> Result<&mut [u8], Errno> {
        self.modify_marked(block, range, Mark { order, late: 0 })
    }

    /// As `modify`; the sectors of the range are written late.
    pub fn modify_late(&mut self, block: u64, range: Range<usize>, order: Order) -> Result<&mut [u8], Errno> {
        let sectors = range.start / SECTOR_SIZE..range.end.div_ceil(SECTOR_SIZE);
        let late = sectors.fold(0, |late, sector| late | 1 << sector);
        self.modify_marked(block, range, Mark { order, late })
    }

    fn modify_marked(&mut self, block: u64, range: Range<usize>, mark: Mark) -> Result<&mut [u8], Errno> {
        let slot = self.load(block)?;
        self.hold(slot);
        let lines = range.start & !(LINE - 1)..range.end.next_multiple_of(LINE);
        self.undo.save(self.frames.place(slot) + lines.start, &self.frames.get(slot)[lines]);
        self.mark_dirty(slot, mark);
        Ok(&mut self.frames.get_mut(slot)[range])
    }

    /// Returns bytes of `block` for change; a death before the commit may leave the change half done. Errors as `read`.
    pub fn rewrite(&mut self, block: u64, range: Range<usize>) -> Result<&mut [u8], Errno> {
        let slot = self.load(block)?;
        self.mark_dirty(slot, Mark::default());
        Ok(&mut self.frames.get_mut(slot)[range])
    }

    /// Replaces the content of `block` by what `fill` writes; the buffer that `fill` gets has unspecified content. If `fill` fails, a block that
    /// was absent stays absent, and another keeps what `fill` wrote.
    pub fn overwrite(&mut self, block: u64, fill: impl FnOnce(&mut [u8]) -> Result<(), Errno>) -> Result<(), Errno> {
        if let Some(slot) = self.index.find(block) {
            self.index.touch(slot);
            self.mark_dirty(slot, Mark::default());
            return fill(self.frames.get_mut(slot));
        }
        let slot = self.take(block)?;
        if let Err(error) = fill(self.frames.get_mut(slot)) {
            self.index.remove(slot);
            return Err(error);
        }
        self.mark_dirty(slot, Mark::default());
        Ok(())
    }

    /// Overwrites `block` with zeros.
    pub fn zeroed(&mut self, block: u64) -> Result<(), Errno> {
        self.overwrite(block, |bytes| {
            bytes.fill(0);
            Ok(())
        })
    }

    /// Whether `block` is cached.
    pub fn contains(&self, block: u64) -> bool {
        self.index.find(block).is_some()
    }

    /// Reads up to `count` consecutive blocks with one request, ending before the first cached one and at the
    /// limit of a request. A failure is ignored: a later `read` of the block meets it again.
    pub fn read_ahead(&mut self, first: u64, count: usize) {
        let limit = count.min(self.longest_run()).min(self.frames.count() / 4);
        let is_absent = |&block: &u64| !self.contains(block) && !self.flights.contains(block);
        let absent = (first..self.block_count).take(limit).take_while(is_absent).count();
        if absent < 2 || self.flights.has_failed(first) || self.fetch(first, absent) {
            return;
        }
        let Ok(slots) = self.take_run(first, absent) else { return };
        let sector = self.sector(first);
        let bytes = &mut self.run[..absent * self.block_size];
        match self.device.read(sector, bytes) {
            Ok(()) => {
                for ((&slot, data), block) in slots.iter().zip(bytes.chunks_exact(self.block_size)).zip(first..) {
                    self.frames.get_mut(slot).copy_from_slice(data);
                    self.frames.hold(slot, block, None);
                }
            }
            Err(_) => slots.into_iter().for_each(|slot| self.index.remove(slot)),
        }
    }

    /// Whether the current request misses a block.
    #[inline]
    pub fn has_missed(&self) -> bool {
        self.flights.has_missed()
    }

    /// Returns the fetch that the current request misses, if any, and clears it for the next request.
    #[inline]
    pub fn take_missed(&mut self) -> Option<Arrival> {
        self.flights.take_missed()
    }

    /// Caches the blocks that have arrived.
    pub fn collect(&mut self) {
        while let Some(Landed { blocks, content, outdated }) = self.flights.land() {
            for (block, data) in blocks.zip(content.chunks_exact(self.block_size)) {
                if self.contains(block) || outdated.contains(&block) {
                    continue;
                }
                // Without a free frame the block is dropped: a request that needs it fetches it again.
                let Ok(slot) = self.take(block) else { break };
                self.frames.get_mut(slot).copy_from_slice(data);
                self.frames.hold(slot, block, None);
            }
            self.device.recycle(content);
        }
    }

    /// Starts to fetch consecutive absent blocks. Returns false if the device must be read synchronously.
    fn fetch(&mut self, first: u64, count: usize) -> bool {
        if self.device.is_blocking() {
            return false;
        }
        let sector = self.sector(first);
        let Some(fetch) = self.device.fetch(sector, count * self.block_size) else { return false };
        self.flights.add(first..first + count as u64, fetch);
        true
    }

    /// Starts to fetch `block`, or finds it in flight, for a request that misses it. Returns false if the device must be read
    /// synchronously.
    fn miss(&mut self, block: u64) -> Result<bool, Errno> {
        if self.flights.take_failure(block) {
            return Err(Errno::EIO);
        }
        if self.device.is_blocking() {
            return Ok(false);
        }
        if self.flights.miss(block) {
            return Ok(true);
        }
        Ok(self.fetch(block, 1) && self.flights.miss(block))
    }

    /// Drops `block` without write-back when the open transaction commits: it was freed.
    pub fn discard(&mut self, block: u64) {
        if self.contains(block) {
            self.discarded.push_reserved(block);
        }
    }

    /// Releases held frames and drops discarded blocks: the open transaction has been committed.
    pub fn committed(&mut self) {
        while let Some(slot) = self.held.pop() {
            self.states[slot].held = false;
            self.release(slot);
        }
        while let Some(block) = self.discarded.pop() {
            if let Some(slot) = self.index.find(block) {
                self.note_revoked(slot, block);
                self.mark_clean(slot);
                self.frames.empty(slot);
                self.index.remove(slot);
            }
        }
    }

    /// Whether the open transaction holds so many frames that it should be committed soon.
    pub fn is_crowded(&self) -> bool {
        self.held.len() > self.frames.count() / 4
    }

    /// Restores `bytes` at `place` of the preserved memory, if a frame covers it.
    pub fn put_back(&mut self, place: usize, bytes: &[u8]) {
        self.frames.put_back(place, bytes);
    }

    /// Releases held frames: the open transaction has been rolled back.
    pub fn undone(&mut self) {
        self.discarded.clear();
        self.committed();
    }

    /// Returns the device without writing anything.
    pub fn into_device(self) -> D {
        self.device
    }

    fn sector(&self, block: u64) -> u64 {
        block * (self.block_size / SECTOR_SIZE) as u64
    }

    /// Protects the frame from eviction until the commit.
    fn hold(&mut self, slot: usize) {
        if !self.states[slot].held {
            self.states[slot].held = true;
            self.held.push_reserved(slot);
            self.index.hold(slot);
        }
    }

    /// Returns the frame to those that may be evicted, if it may.
    fn release(&mut self, slot: usize) {
        let State { dirty, held, pinned, .. } = self.states[slot];
        if !held && !pinned && dirty.is_none_or(Mark::is_free) {
            self.index.release(slot);
        }
    }

    #[inline]
    fn mark_dirty(&mut self, slot: usize, mark: Mark) {
        let mark = match self.writes {
            Writes::InOrder => mark,
            Writes::Journaled => mark.journaled(),
        };
        let before = self.states[slot].dirty;
        let after = before.map_or(mark, |before| before.and(mark));
        if before != Some(after) {
            self.set_mark(slot, before, after);
        }
    }

    fn set_mark(&mut self, slot: usize, before: Option<Mark>, after: Mark) {
        let state = &mut self.states[slot];
        state.dirty = Some(after);
        if !state.listed {
            state.listed = true;
            self.modified.push_reserved(slot);
        }
        if !after.is_free() {
            if before.is_none_or(Mark::is_free) {
                self.ordered += 1;
                self.index.hold(slot);
            }
            let is_new = before.is_none_or(|before| before.order != Order::Running);
            self.running += usize::from(is_new && after.order == Order::Running);
        }
        self.frames.hold(slot, self.index.key(slot), Some(after));
        self.frames.order();
    }

    fn mark_clean(&mut self, slot: usize) {
        if let Some(mark) = self.states[slot].dirty.take().filter(|mark| !mark.is_free()) {
            self.ordered -= 1;
            self.running -= usize::from(mark.order == Order::Running);
        }
        self.release(slot);
    }

    fn load(&mut self, block: u64) -> Result<usize, Errno> {
        if let Some(slot) = self.index.find(block) {
            self.index.touch(slot);
            return Ok(slot);
        }
        self.load_absent(block)
    }

    #[cold]
    fn load_absent(&mut self, block: u64) -> Result<usize, Errno> {
        if block >= self.block_count {
            return Err(Errno::EIO);
        }
        if self.miss(block)? {
            return Err(Errno::EAGAIN);
        }
        let slot = self.take(block)?;
        let sector = self.sector(block);
        if let Err(error) = self.device.read(sector, self.frames.get_mut(slot)) {
            self.index.remove(slot);
            return Err(error);
        }
        self.frames.hold(slot, block, None);
        Ok(slot)
    }

    /// Allocates an empty frame for `block`, which has none; its content is unspecified.
    fn take(&mut self, block: u64) -> Result<usize, Errno> {
        if block >= self.block_count {
            return Err(Errno::EIO);
        }
        if self.index.len() >= self.frames.count() {
            self.evict()?;
        }
        self.index.reserve()?;
        let slot = self.index.insert_in_order(block);
        self.frames.empty(slot);
        self.flights.outdate(block);
        Ok(slot)
    }

    /// Allocates frames for `count` consecutive blocks, all or none. `count` is so small that none evicts another.
    fn take_run(&mut self, first: u64, count: usize) -> Result<Vec<usize>, Errno> {
        let mut slots = fallible::with_capacity(count)?;
        for block in (first..).take(count) {
            match self.take(block) {
                Ok(slot) => slots.push_reserved(slot),
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
        if self.states[victim].dirty.is_some() {
            self.write_free()?;
        }
        self.index.remove(victim);
        Ok(())
    }
}
