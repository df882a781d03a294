//! What a file system needs of the device below it.
//!
//! A device that takes its time can begin a read and deliver it later ([`BlockDevice::fetch`]), so that its file system goes on with
//! other requests meanwhile. Where the file system cannot go on without a block, it switches to [`Blocking`] reads.

use alloc::boxed::Box;
use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::Cell;

use crate::Errno;

/// Bytes of a sector, the unit of device addresses.
pub const SECTOR_SIZE: usize = 512;

/// A block device. Buffers are whole sectors and a request may span many of them.
pub trait BlockDevice {
    /// Size of the device in sectors.
    fn sector_count(&self) -> u64;

    /// Fills `buffer` from the sectors beginning at `first_sector`. `EIO` when that fails.
    fn read(&mut self, first_sector: u64, buffer: &mut [u8]) -> Result<(), Errno>;

    /// Whether every read is waited for: nothing is fetched then.
    fn is_blocking(&self) -> bool {
        true
    }

    /// Begins to read `bytes` bytes from `first_sector` on; asked only while reads are not waited for. `None` when this one has to be.
    fn fetch(&mut self, _first_sector: u64, _bytes: usize) -> Option<Box<dyn Fetch>> {
        None
    }

    /// Takes back the buffer of a fetch, for the next one.
    fn recycle(&mut self, _buffer: Vec<u8>) {}

    /// Writes `data` to the sectors beginning at `first_sector`. `EIO` when that fails.
    fn write(&mut self, first_sector: u64, data: &[u8]) -> Result<(), Errno>;

    /// Makes everything written so far durable.
    fn flush(&mut self) -> Result<(), Errno>;

    /// Returns what a successor needs to know to go on with the device.
    fn memo(&self) -> [u64; 2] {
        [0; 2]
    }
}

/// A read that the device works on.
pub trait Fetch {
    /// The bytes, and perhaps more behind them, once they have come; `EIO` when they never will. Not asked again afterwards.
    fn result(&mut self) -> Option<Result<Vec<u8>, Errno>>;
}

/// Whether the file system waits for each read now, with everything it serves. Clones are the same.
#[derive(Clone, Debug, Default)]
pub struct Blocking(Rc<Cell<bool>>);

impl Blocking {
    /// Whether reads are waited for.
    pub fn is_on(&self) -> bool {
        self.0.get()
    }

    /// Sets whether reads are waited for. Returns whether they were before.
    pub fn set(&self, is_on: bool) -> bool {
        self.0.replace(is_on)
    }
}
