//! A virtio block device of the modern PCI kind (VIRTIO 1.2, 4.1 and 5.2): set-up and requests.
//!
//! Generic over registers and memory, so that tests play the device. The predecessor of a restarted driver may have left a
//! request in flight: the reset that set-up begins with ends it.

use crate::queue::{Memory, Operation, QUEUE_SIZE, Queue, layout};
use abi::Errno;

/// Bytes of a sector, in which the device counts.
pub const SECTOR_BYTES: u64 = 512;
/// Most bytes of data in one request to the device.
pub const DATA_BYTES: usize = 256 * 1024;
/// DMA memory that a device needs.
pub const MEMORY_BYTES: usize = layout::DATA + DATA_BYTES;

/// Reads of the status until a reset must have happened.
const RESET_POLLS: usize = 1_000_000;

/// Offsets in the common configuration structure (4.1.4.3).
mod common {
    pub const DEVICE_FEATURE_SELECT: usize = 0;
    pub const DEVICE_FEATURE: usize = 4;
    pub const DRIVER_FEATURE_SELECT: usize = 8;
    pub const DRIVER_FEATURE: usize = 12;
    pub const STATUS: usize = 20;
    pub const QUEUE_SELECT: usize = 22;
    pub const QUEUE_SIZE: usize = 24;
    pub const QUEUE_MSIX_VECTOR: usize = 26;
    pub const QUEUE_ENABLE: usize = 28;
    pub const QUEUE_DESCRIPTORS: usize = 32;
    pub const QUEUE_DRIVER: usize = 40;
    pub const QUEUE_DEVICE: usize = 48;
}

mod status {
    pub const ACKNOWLEDGE: u8 = 1;
    pub const DRIVER: u8 = 2;
    pub const DRIVER_OK: u8 = 4;
    pub const FEATURES_OK: u8 = 8;
}

mod feature {
    pub const READ_ONLY: u64 = 1 << 5;
    pub const FLUSH: u64 = 1 << 9;
    pub const VERSION_1: u64 = 1 << 32;
}

/// The device's registers.
pub trait Registers {
    /// Reads `N` bytes (1, 2, 4) of the common configuration.
    fn read<const N: usize>(&self, offset: usize) -> [u8; N];
    /// Writes them.
    fn write<const N: usize>(&mut self, offset: usize, value: [u8; N]);
    /// Number of 512-byte sectors, from the device configuration.
    fn capacity(&self) -> u64;
    /// Tells the device of new requests in queue 0.
    fn notify(&mut self);
    /// Waits for the device's interrupt, or for so long that something must be wrong.
    fn wait(&mut self) -> Result<(), Errno>;
}

/// A device that is set up.
pub struct Device<R: Registers, M: Memory> {
    registers: R,
    queue: Queue<M>,
    sectors: u64,
    read_only: bool,
    flushes: bool,
}

impl<R: Registers, M: Memory> Device<R, M> {
    /// Resets the device and sets it up with its queue in `memory` (zeroed). `EIO`: it does not speak VIRTIO 1.
    pub fn set_up(mut registers: R, memory: M) -> Result<Self, Errno> {
        reset(&mut registers)?;
        add_status(&mut registers, status::ACKNOWLEDGE);
        add_status(&mut registers, status::DRIVER);
        let features = negotiate(&mut registers)?;
        enable_queue(&mut registers, &memory)?;
        add_status(&mut registers, status::DRIVER_OK);
        let sectors = registers.capacity();
        Ok(Device {
            registers,
            queue: Queue::new(memory),
            sectors,
            read_only: features & feature::READ_ONLY != 0,
            flushes: features & feature::FLUSH != 0,
        })
    }

    /// Size in bytes.
    pub fn bytes(&self) -> u64 {
        self.sectors.saturating_mul(SECTOR_BYTES)
    }

    /// True when the medium cannot be written.
    pub fn is_read_only(&self) -> bool {
        self.read_only
    }

    /// Where the data of a request lies.
    pub fn memory(&mut self) -> &mut M {
        self.queue.memory()
    }

    /// Moves `bytes` (at most `DATA_BYTES`) between the disk at `position` and the data memory.
    /// `EINVAL`: misaligned or past the end; `EROFS`; `EIO`.
    pub fn transfer(&mut self, operation: Operation, position: u64, bytes: usize) -> Result<(), Errno> {
        let aligned = position % SECTOR_BYTES == 0 && bytes as u64 % SECTOR_BYTES == 0;
        let inside = position.checked_add(bytes as u64).is_some_and(|end| end <= self.bytes());
        if !aligned || !inside || bytes == 0 || bytes > DATA_BYTES {
            return Err(Errno::EINVAL);
        }
        if operation == Operation::Write && self.read_only {
            return Err(Errno::EROFS);
        }
        self.run(operation, position / SECTOR_BYTES, bytes as u32)
    }

    /// Puts everything written on the medium.
    pub fn flush(&mut self) -> Result<(), Errno> {
        if self.flushes { self.run(Operation::Flush, 0, 0) } else { Ok(()) }
    }

    fn run(&mut self, operation: Operation, sector: u64, bytes: u32) -> Result<(), Errno> {
        self.queue.offer(operation, sector, bytes);
        self.registers.notify();
        loop {
            if let Some(result) = self.queue.result() {
                return result;
            }
            self.registers.wait()?;
        }
    }
}

fn reset(registers: &mut impl Registers) -> Result<(), Errno> {
    registers.write(common::STATUS, [0u8]);
    for _ in 0..RESET_POLLS {
        if registers.read::<1>(common::STATUS) == [0] {
            return Ok(());
        }
    }
    Err(Errno::EIO)
}

fn add_status(registers: &mut impl Registers, bit: u8) {
    let [old] = registers.read::<1>(common::STATUS);
    registers.write(common::STATUS, [old | bit]);
}

/// Takes the features this driver knows. The features that are in force come back.
fn negotiate(registers: &mut impl Registers) -> Result<u64, Errno> {
    let mut offered = 0;
    for half in 0..2u32 {
        registers.write(common::DEVICE_FEATURE_SELECT, half.to_le_bytes());
        offered |= u64::from(u32::from_le_bytes(registers.read(common::DEVICE_FEATURE))) << (32 * half);
    }
    if offered & feature::VERSION_1 == 0 {
        return Err(Errno::EIO);
    }
    let taken = offered & (feature::VERSION_1 | feature::FLUSH | feature::READ_ONLY);
    for half in 0..2u32 {
        registers.write(common::DRIVER_FEATURE_SELECT, half.to_le_bytes());
        registers.write(common::DRIVER_FEATURE, ((taken >> (32 * half)) as u32).to_le_bytes());
    }
    add_status(registers, status::FEATURES_OK);
    let [now] = registers.read::<1>(common::STATUS);
    if now & status::FEATURES_OK != 0 { Ok(taken) } else { Err(Errno::EIO) }
}

fn enable_queue(registers: &mut impl Registers, memory: &impl Memory) -> Result<(), Errno> {
    registers.write(common::QUEUE_SELECT, 0u16.to_le_bytes());
    if u16::from_le_bytes(registers.read(common::QUEUE_SIZE)) < QUEUE_SIZE {
        return Err(Errno::EIO);
    }
    registers.write(common::QUEUE_SIZE, QUEUE_SIZE.to_le_bytes());
    registers.write(common::QUEUE_MSIX_VECTOR, 0u16.to_le_bytes());
    for (at, offset) in [
        (common::QUEUE_DESCRIPTORS, layout::DESCRIPTORS),
        (common::QUEUE_DRIVER, layout::AVAILABLE),
        (common::QUEUE_DEVICE, layout::USED),
    ] {
        let address = memory.physical(offset);
        registers.write(at, (address as u32).to_le_bytes());
        registers.write(at + 4, ((address >> 32) as u32).to_le_bytes());
    }
    registers.write(common::QUEUE_ENABLE, 1u16.to_le_bytes());
    Ok(())
}

#[cfg(test)]
#[path = "device_tests.rs"]
mod tests;
