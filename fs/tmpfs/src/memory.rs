//! A block device in preserved memory.

use crate::{format::Plan, process::AREA_BYTES};
use core::ops::Range;
use fs::Errno;
use fs::device::{BlockDevice, SECTOR_SIZE};
use fs::file_system::Timestamp;
use sys::keep::Part;

const PAGE: usize = abi::layout::PAGE_BYTES as usize;
/// Pages of the largest device.
const MAX_PAGES: usize = AREA_BYTES / PAGE;

/// See the head of the file.
pub struct MemoryDevice {
    area: Part,
    /// Number of its area.
    number: u64,
    bytes: usize,
    /// Which pages have memory, as far as is known; a bit each.
    touched: [u64; MAX_PAGES.div_ceil(64)],
}

impl MemoryDevice {
    /// Makes a device of the first `bytes` bytes of `area`, which is area `number`.
    pub fn new(area: Part, number: u64, bytes: usize) -> Self {
        let bytes = bytes.min(area.len()) / SECTOR_SIZE * SECTOR_SIZE;
        // A predecessor may have used any of them.
        MemoryDevice { area, number, bytes, touched: [u64::MAX; MAX_PAGES.div_ceil(64)] }
    }

    /// Makes an empty file system. What another one has left there would count as inodes in use.
    pub fn format(&mut self, plan: &Plan, identity: u64, now: Timestamp) {
        self.discard(0, self.sector_count());
        plan.format(self.content(), identity, now);
    }

    /// Returns all of the memory.
    pub fn content(&mut self) -> &mut [u8] {
        &mut self.area[..self.bytes]
    }

    fn touch(&mut self, pages: Range<usize>) {
        pages.for_each(|page| self.touched[page / 64] |= 1 << (page % 64));
    }

    /// Returns the first range of pages within `pages` that have memory, and lets them have none.
    fn take_touched(&mut self, pages: Range<usize>) -> Option<Range<usize>> {
        let is_touched = |page: usize| self.touched[page / 64] & 1 << (page % 64) != 0;
        let start = pages.clone().find(|&page| is_touched(page))?;
        let end = (start..pages.end).find(|&page| !is_touched(page)).unwrap_or(pages.end);
        (start..end).for_each(|page| self.touched[page / 64] &= !(1 << (page % 64)));
        Some(start..end)
    }

    fn start(&self, first_sector: u64, bytes: usize) -> Result<usize, Errno> {
        let start = usize::try_from(first_sector).ok().and_then(|sector| sector.checked_mul(SECTOR_SIZE));
        let start = start.ok_or(Errno::EIO)?;
        let is_within = start.checked_add(bytes).is_some_and(|end| end <= self.bytes);
        if is_within { Ok(start) } else { Err(Errno::EIO) }
    }
}

impl BlockDevice for MemoryDevice {
    fn sector_count(&self) -> u64 {
        (self.bytes / SECTOR_SIZE) as u64
    }

    fn read(&mut self, first_sector: u64, buffer: &mut [u8]) -> Result<(), Errno> {
        let start = self.start(first_sector, buffer.len())?;
        buffer.copy_from_slice(&self.area[start..start + buffer.len()]);
        Ok(())
    }

    fn write(&mut self, first_sector: u64, data: &[u8]) -> Result<(), Errno> {
        let start = self.start(first_sector, data.len())?;
        self.touch(start / PAGE..(start + data.len()).div_ceil(PAGE));
        self.area[start..start + data.len()].copy_from_slice(data);
        // Stored before the cache marks the block as clean.
        self.area.order();
        Ok(())
    }

    fn discard(&mut self, first_sector: u64, sectors: u64) {
        let Ok(start) = self.start(first_sector, sectors as usize * SECTOR_SIZE) else { return };
        let mut pages = start.div_ceil(PAGE)..(start + sectors as usize * SECTOR_SIZE) / PAGE;
        while let Some(run) = self.take_touched(pages.clone()) {
            self.area.discard(run.start * PAGE..run.end * PAGE);
            pages.start = run.end;
        }
    }

    fn flush(&mut self) -> Result<(), Errno> {
        Ok(())
    }

    fn memo(&self) -> [u64; 2] {
        [self.number, self.bytes as u64]
    }
}
