//! What drivers need: device registers mapped, and memory that devices reach by DMA.
//!
//! DMA memory stays with the service's slot when the driver dies, because its device may still be writing there: the next
//! incarnation gets the same frames, and nobody else ever does. So the system file limits it for each slot.

use crate::memory::frames::{Frame, Run};
use crate::memory::kernel::Kernel;
use crate::memory::{Floor, Memory};
use crate::space::AddressSpace;
use crate::space::region::{Backing, Region, Rights};
use abi::{
    Endpoint, Errno,
    layout::{PAGE_BYTES, SERVICE_CLOCKS, SERVICE_DEVICES, map},
};
use alloc::{collections::BTreeMap, vec::Vec};
use sys::fallible::TryVec;

/// Devices are mapped below this.
pub const DEVICES_END: u64 = SERVICE_CLOCKS;

/// Adds a device region where one is free, and maps it. Returns its address.
pub fn map_device<K: Kernel>(
    space: &mut AddressSpace,
    memory: &mut Memory<K>,
    run: Run,
    flags: u64,
) -> Result<u64, Errno> {
    let bytes = run.frames * PAGE_BYTES;
    let start = space.regions.free_above(SERVICE_DEVICES, DEVICES_END, bytes).ok_or(Errno::ENOMEM)?;
    let rights = Rights::READ.with(Rights::WRITE, flags & map::WRITE != 0);
    let region = Region { shared: true, backing: Backing::Device, ..Region::anonymous(start, start + bytes, rights) };
    space.add(memory, region);
    if let Err(error) = space.map_run(memory, start / PAGE_BYTES, run, flags) {
        space.remove(memory, start, start + bytes)?;
        return Err(error);
    }
    Ok(start)
}

/// Maps physical memory that the privileges of `process` allow. Returns the address of its first byte.
/// `EINVAL`: unknown flags or no memory; `EPERM`: not allowed, or memory that vm gives to others.
pub fn map_physical<K: Kernel>(
    space: &mut AddressSpace,
    memory: &mut Memory<K>,
    process: Endpoint,
    physical: u64,
    bytes: u64,
    flags: u64,
) -> Result<u64, Errno> {
    let end =
        physical.checked_add(bytes).filter(|&end| end <= u64::from(u32::MAX) * PAGE_BYTES).ok_or(Errno::EINVAL)?;
    if bytes == 0 || flags & !(map::WRITE | map::UNCACHED | map::COMBINED) != 0 {
        return Err(Errno::EINVAL);
    }
    let first = Frame((physical / PAGE_BYTES) as u32);
    let run = Run { first, frames: end.div_ceil(PAGE_BYTES) - physical / PAGE_BYTES };
    if !memory.kernel.may_map(process, physical, bytes) || memory.frames.manages_any(run) {
        return Err(Errno::EPERM);
    }
    Ok(map_device(space, memory, run, flags)? + physical % PAGE_BYTES)
}

#[derive(Clone, Copy, Debug)]
struct Block {
    run: Run,
    in_use: bool,
    /// Nobody of the slot has had it: it holds what others left.
    fresh: bool,
}

/// The DMA memory of one slot.
#[derive(Debug, Default)]
struct Share {
    limit_frames: u64,
    blocks: Vec<Block>,
}

impl Share {
    /// Returns the index of a block of at least `frames` frames that nobody uses: the smallest one left over, or a new one.
    /// `EPERM`: beyond the limit; `ENOMEM`.
    fn block<K: Kernel>(&mut self, memory: &mut Memory<K>, frames: u64) -> Result<usize, Errno> {
        let fits = |block: &Block| !block.in_use && block.run.frames >= frames;
        let left_over = self.blocks.iter().enumerate().filter(|(_, block)| fits(block));
        if let Some((at, _)) = left_over.min_by_key(|(_, block)| block.run.frames) {
            return Ok(at);
        }
        let held: u64 = self.blocks.iter().map(|block| block.run.frames).sum();
        if frames > self.limit_frames.saturating_sub(held) {
            return Err(Errno::EPERM);
        }
        self.blocks.try_make_room(1)?;
        let run = memory.take_run(frames, Floor::SERVICE)?;
        self.blocks.try_push(Block { run, in_use: false, fresh: true })?;
        Ok(self.blocks.len() - 1)
    }
}

/// The DMA memory of all slots.
#[derive(Debug, Default)]
pub struct Dma {
    by_slot: BTreeMap<usize, Share>,
}

impl Dma {
    /// Limits the memory of the services in `slot`.
    pub fn limit(&mut self, slot: usize, bytes: u64) {
        self.by_slot.entry(slot).or_default().limit_frames = bytes / PAGE_BYTES;
    }

    /// Allocates contiguous memory for the service in `slot`, as `flags` of `AllocateDma` say. Returns its address and physical address.
    /// `EINVAL`: no bytes, or another flag; `EPERM`: beyond its limit; `ENOMEM`.
    pub fn allocate<K: Kernel>(
        &mut self,
        space: &mut AddressSpace,
        memory: &mut Memory<K>,
        slot: usize,
        bytes: u64,
        flags: u64,
    ) -> Result<(u64, u64), Errno> {
        if bytes == 0 || flags & !(map::ZERO | map::UNCACHED) != 0 {
            return Err(Errno::EINVAL);
        }
        let share = self.by_slot.get_mut(&slot).ok_or(Errno::EPERM)?;
        let at = share.block(memory, bytes.div_ceil(PAGE_BYTES))?;
        let block = &mut share.blocks[at];
        let zero = if block.fresh { map::ZERO } else { 0 };
        let address = map_device(space, memory, block.run, map::WRITE | flags | zero)?;
        (block.in_use, block.fresh) = (true, false);
        Ok((address, block.run.first.address()))
    }

    /// The service in `slot` has died; its successor may have the memory.
    pub fn inherit(&mut self, slot: usize) {
        if let Some(share) = self.by_slot.get_mut(&slot) {
            share.blocks.iter_mut().for_each(|block| block.in_use = false);
        }
    }

    /// Whether all of these frames are memory of the slot.
    pub fn has(&self, slot: usize, run: Run) -> bool {
        let end = |run: Run| u64::from(run.first.0) + run.frames;
        let holds = |block: &Block| block.run.first <= run.first && end(run) <= end(block.run);
        self.by_slot.get(&slot).is_some_and(|share| share.blocks.iter().any(holds))
    }

    /// Block number `index` of a slot.
    pub fn block(&self, slot: usize, index: usize) -> Option<Run> {
        self.by_slot.get(&slot)?.blocks.get(index).map(|block| block.run)
    }

    /// Frames that DMA holds.
    pub fn frames(&self) -> impl Iterator<Item = Frame> {
        self.by_slot.values().flat_map(|share| &share.blocks).flat_map(|block| block.run.iter())
    }
}
