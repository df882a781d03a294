//! Memory that a driver shares with its device: registers, DMA buffers, and the boot archive's files.
//!
//! The device may change it at any time, so there are no references to it: every access is volatile or a copy. Offsets are
//! checked; one outside the region is a bug of the driver and panics.

use abi::layout::map;
use abi::vm::{AllocateDma, MapOffered, MapPhysical};
use abi::{Endpoint, Errno, GrantId};
use core::sync::atomic::{Ordering, compiler_fence};
use sys::{Result, Start, copy, ipc};

mod sealed {
    pub trait Sealed {}
}

/// A type that one access can read or write.
pub trait Cell: Copy + sealed::Sealed {}

macro_rules! cells {
    ($($kind:ty),*) => { $(
        impl sealed::Sealed for $kind {}
        impl Cell for $kind {}
    )* };
}
cells!(u8, u16, u32, u64);

/// A mapped region. It stays mapped for the driver's lifetime.
#[derive(Debug)]
pub struct Region {
    start: usize,
    bytes: usize,
    physical: u64,
}

impl Region {
    /// Maps a device's registers, uncached.
    ///
    /// # Errors
    /// `EPERM`: not within the driver's memory ranges; `ENOMEM`.
    pub fn registers(physical: u64, bytes: usize) -> Result<Region> {
        Self::map(physical, bytes, map::WRITE | map::UNCACHED)
    }

    /// Maps pixels and the like: not cached, but writes are combined, and may be reordered.
    ///
    /// # Errors
    /// As [`Region::registers`].
    pub fn combined(physical: u64, bytes: usize) -> Result<Region> {
        Self::map(physical, bytes, map::WRITE | map::COMBINED)
    }

    /// Maps physical memory, cached.
    ///
    /// # Errors
    /// As [`Region::registers`].
    pub fn memory(physical: u64, bytes: usize) -> Result<Region> {
        Self::map(physical, bytes, map::WRITE)
    }

    /// Allocates contiguous zeroed memory for DMA. It is never freed: a device may still write to it. Drivers of PCI devices
    /// call [`pci::dma`](crate::pci::dma).
    ///
    /// # Errors
    /// `EPERM`: beyond the limit of the system file; `ENOMEM`.
    pub fn dma(bytes: usize) -> Result<Region> {
        Self::allocate(bytes, map::ZERO)
    }

    /// Allocates contiguous uncached memory for tables that a device walks. It holds what a predecessor of this driver left there, else
    /// zeros.
    ///
    /// # Errors
    /// As [`Region::dma`].
    pub fn tables(bytes: usize) -> Result<Region> {
        Self::allocate(bytes, map::UNCACHED)
    }

    /// Allocates contiguous memory for DMA that holds what a predecessor of this driver left there, else zeros.
    ///
    /// # Errors
    /// As [`Region::dma`].
    pub fn inherited(bytes: usize) -> Result<Region> {
        Self::allocate(bytes, 0)
    }

    /// Maps the memory that a driver offers to this service (`vm::OfferMemory`). Its physical addresses count from 0: they are the driver's.
    ///
    /// # Errors
    /// `ENOENT`: it offers none; `EPERM`: it has no right to it; `ENOMEM`.
    pub fn offered(driver: Endpoint) -> Result<Region> {
        let reply = ipc::call(Endpoint::VM, &MapOffered { driver: driver.slot() as u64 }.message())?;
        let (address, bytes) = MapOffered::results(&reply)?;
        Ok(Region { start: address as usize, bytes: bytes as usize, physical: 0 })
    }

    fn allocate(bytes: usize, flags: u64) -> Result<Region> {
        let reply = ipc::call(Endpoint::VM, &AllocateDma { bytes: bytes as u64, flags }.message())?;
        let (address, physical) = AllocateDma::results(&reply)?;
        Ok(Region { start: address as usize, bytes, physical })
    }

    fn map(physical: u64, bytes: usize, flags: u64) -> Result<Region> {
        let reply = ipc::call(Endpoint::VM, &MapPhysical { physical, bytes: bytes as u64, flags }.message())?;
        let address = MapPhysical::results(&reply)?;
        Ok(Region { start: address as usize, bytes, physical })
    }

    /// Ordinary memory in place of a device's, for tests of drivers.
    #[cfg(not(target_os = "none"))]
    pub fn simulated(memory: &'static mut [u64]) -> Region {
        Region { start: memory.as_mut_ptr() as usize, bytes: size_of_val(memory), physical: 0 }
    }

    /// Returns the length in bytes.
    pub fn len(&self) -> usize {
        self.bytes
    }

    /// Returns whether the region has no bytes.
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Returns the physical address of an offset, for the device.
    pub fn physical(&self, offset: usize) -> u64 {
        self.physical + offset as u64
    }

    /// Reads one register or value. Later accesses of the program are not reordered before it.
    #[inline]
    pub fn read<T: Cell>(&self, offset: usize) -> T {
        let cell = self.cell::<T>(offset);
        // SAFETY: `cell` is aligned and within memory that vm has mapped for good; any bits are a value of these types.
        let value = unsafe { cell.read_volatile() };
        compiler_fence(Ordering::SeqCst);
        value
    }

    /// Writes one register or value. Earlier accesses of the program are not reordered after it.
    #[inline]
    pub fn write<T: Cell>(&self, offset: usize, value: T) {
        let cell = self.cell::<T>(offset);
        compiler_fence(Ordering::SeqCst);
        // SAFETY: as in `read`; the memory is never part of a Rust object.
        unsafe { cell.write_volatile(value) };
    }

    /// Copies from the region.
    pub fn copy_out(&self, offset: usize, into: &mut [u8]) {
        let from = self.range(offset, into.len()) as *const u8;
        compiler_fence(Ordering::SeqCst);
        // SAFETY: within the region, which does not overlap with Rust's memory. Racing with the device gives some bytes.
        unsafe { from.copy_to_nonoverlapping(into.as_mut_ptr(), into.len()) };
        compiler_fence(Ordering::SeqCst);
    }

    /// Copies into the region.
    pub fn copy_in(&self, offset: usize, from: &[u8]) {
        let to = self.range(offset, from.len());
        compiler_fence(Ordering::SeqCst);
        // SAFETY: as in `copy_out`.
        unsafe { to.copy_from_nonoverlapping(from.as_ptr(), from.len()) };
        compiler_fence(Ordering::SeqCst);
    }

    /// Copies a range of the region into a grant.
    ///
    /// # Errors
    /// As `sys::copy::to_grant`.
    pub fn to_grant(&self, offset: usize, bytes: usize, granter: Endpoint, grant: GrantId, at: u64) -> Result<()> {
        // SAFETY: `range` has checked that the bytes are within the region.
        unsafe { copy::to_grant_from(granter, grant, at, self.range(offset, bytes), bytes) }
    }

    /// Copies from a grant into a range of the region.
    ///
    /// # Errors
    /// As `sys::copy::from_grant`.
    pub fn from_grant(&self, offset: usize, bytes: usize, granter: Endpoint, grant: GrantId, at: u64) -> Result<()> {
        // SAFETY: as in `to_grant`; nothing of Rust's is there.
        unsafe { copy::from_grant_to(granter, grant, at, self.range(offset, bytes), bytes) }
    }

    fn cell<T: Cell>(&self, offset: usize) -> *mut T {
        assert!(offset.is_multiple_of(size_of::<T>()), "offset {offset} is misaligned");
        self.range(offset, size_of::<T>()).cast()
    }

    fn range(&self, offset: usize, bytes: usize) -> *mut u8 {
        let within = offset.checked_add(bytes).is_some_and(|end| end <= self.bytes);
        assert!(within, "{bytes} bytes at {offset} are outside a region of {}", self.bytes);
        (self.start + offset) as *mut u8
    }
}

/// Maps the file of the boot archive that the system file assigns to this driver (`module`). rs passes its location as argument
/// `module=ADDRESS,BYTES`, hexadecimal with `0x`.
///
/// # Errors
/// `ENXIO`: no file is assigned; else as [`Region::memory`].
pub fn module(start: &Start) -> Result<Region> {
    let (address, bytes) = start.argument("module").and_then(parse_module).ok_or(Errno::ENXIO)?;
    Region::memory(address, bytes)
}

fn parse_module(text: &str) -> Option<(u64, usize)> {
    let (address, bytes) = text.split_once(',')?;
    let number = |text: &str| u64::from_str_radix(text.strip_prefix("0x")?, 16).ok();
    Some((number(address)?, number(bytes)? as usize))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn region(memory: &mut [u64]) -> Region {
        Region { start: memory.as_mut_ptr() as usize, bytes: size_of_val(memory), physical: 0x10_0000 }
    }

    #[test]
    fn what_was_written_is_read_in_any_width() {
        let mut memory = [0; 4];
        let region = region(&mut memory);
        region.write(8, 0x1122_3344_5566_7788_u64);
        assert_eq!((region.read::<u8>(8), region.read::<u16>(10), region.read::<u32>(12)), (0x88, 0x5566, 0x1122_3344));
        let mut bytes = [0; 3];
        region.copy_out(9, &mut bytes);
        assert_eq!(bytes, [0x77, 0x66, 0x55]);
        assert_eq!(region.physical(8), 0x10_0008);
    }

    #[test]
    #[should_panic(expected = "outside a region")]
    fn an_offset_beyond_the_end_ends_the_driver() {
        region(&mut [0; 2]).read::<u32>(16);
    }

    #[test]
    #[should_panic(expected = "misaligned")]
    fn a_misaligned_register_ends_the_driver() {
        region(&mut [0; 2]).read::<u32>(2);
    }

    #[test]
    fn the_module_argument_is_two_hexadecimal_numbers() {
        assert_eq!(parse_module("0x1f000000,0x4000"), Some((0x1f00_0000, 0x4000)));
        assert_eq!(parse_module("0x1f000000"), None);
    }
}
