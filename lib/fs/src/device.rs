//! What a file system needs of the device below it.
//!
//! A device may complete a read later ([`BlockDevice::fetch`]), so that its file system executes other requests meanwhile. Where the
//! file system cannot continue without a block, it switches to [`Blocking`] reads.

use alloc::boxed::Box;
use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::Cell;

use abi::{Errno, Name};

/// Bytes of a sector, the unit of device addresses.
pub const SECTOR_SIZE: usize = 512;

/// The device that a file system is mounted from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Source {
    /// The driver's service; `None` for a file system without device.
    pub service: Option<Name>,
    /// Its minor device.
    pub minor: u64,
}

/// A block device. Buffers are whole sectors and a request may span many of them.
pub trait BlockDevice {
    /// Size of the device in sectors.
    fn sector_count(&self) -> u64;

    /// Fills `buffer` from the sectors beginning at `first_sector`. `EIO` when that fails.
    fn read(&mut self, first_sector: u64, buffer: &mut [u8]) -> Result<(), Errno>;

    /// Whether reads block: nothing is fetched then.
    fn is_blocking(&self) -> bool {
        true
    }

    /// Starts to read `bytes` bytes from `first_sector` on; called only while reads do not block. Returns `None` if this one must block.
    fn fetch(&mut self, _first_sector: u64, _bytes: usize) -> Option<Box<dyn Fetch>> {
        None
    }

    /// Reuses the buffer of a completed fetch.
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

/// A read in flight.
pub trait Fetch {
    /// Returns the bytes, possibly followed by padding, once they have arrived; `EIO` if the read failed. Not called again afterwards.
    fn result(&mut self) -> Option<Result<Vec<u8>, Errno>>;
}

/// Whether the file system blocks in each read, with all its clients. Clones share the switch.
#[derive(Clone, Debug, Default)]
pub struct Blocking(Rc<Cell<bool>>);

impl Blocking {
    /// Whether reads block.
    pub fn is_on(&self) -> bool {
        self.0.get()
    }

    /// Switches blocking reads on or off. Returns the previous setting.
    pub fn set(&self, is_on: bool) -> bool {
        self.0.replace(is_on)
    }
}
