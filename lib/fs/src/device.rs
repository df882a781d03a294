//! What a file system needs of the device below it.

use crate::Errno;

/// Bytes of a sector, the unit of device addresses.
pub const SECTOR_SIZE: usize = 512;

/// A block device. Buffers are whole sectors and a request may span many of them.
pub trait BlockDevice {
    /// Size of the device in sectors.
    fn sector_count(&self) -> u64;

    /// Fills `buffer` from the sectors beginning at `first_sector`. `EIO` when that fails.
    fn read(&mut self, first_sector: u64, buffer: &mut [u8]) -> Result<(), Errno>;

    /// Writes `data` to the sectors beginning at `first_sector`. `EIO` when that fails.
    fn write(&mut self, first_sector: u64, data: &[u8]) -> Result<(), Errno>;

    /// Makes everything written so far durable.
    fn flush(&mut self) -> Result<(), Errno>;

    /// What a successor needs to know to go on with the device.
    fn memo(&self) -> [u64; 2] {
        [0; 2]
    }
}
