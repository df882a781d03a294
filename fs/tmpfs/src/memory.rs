//! A block device in preserved memory.

use fs::Errno;
use fs::device::{BlockDevice, SECTOR_SIZE};
use sys::keep::Part;

/// See the head of the file.
pub struct MemoryDevice {
    area: Part,
    /// Number of its area.
    number: u64,
    bytes: usize,
}

impl MemoryDevice {
    /// Makes a device of the first `bytes` bytes of `area`, which is area `number`.
    pub fn new(area: Part, number: u64, bytes: usize) -> Self {
        let bytes = bytes.min(area.len()) / SECTOR_SIZE * SECTOR_SIZE;
        MemoryDevice { area, number, bytes }
    }

    /// Returns all of the memory.
    pub fn content(&mut self) -> &mut [u8] {
        &mut self.area[..self.bytes]
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
        self.area[start..start + data.len()].copy_from_slice(data);
        // Stored before the cache marks the block as clean.
        self.area.order();
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Errno> {
        Ok(())
    }

    fn memo(&self) -> [u64; 2] {
        [self.number, self.bytes as u64]
    }
}
