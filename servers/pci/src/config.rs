//! Configuration space: 256 bytes of each function, reached as PCI Local Bus 3.0, 3.2.2.3.2 ("configuration mechanism #1") says.

use abi::Errno;
use sys::{Result, port};

/// Port that takes the address of a register.
const ADDRESS_PORT: u16 = 0xcf8;
/// Port that then holds its value.
const DATA_PORT: u16 = 0xcfc;
/// Bit of the address that makes it one of configuration space.
const ENABLE: u32 = 1 << 31;

/// Bytes of configuration space that this mechanism reaches.
pub const CONFIG_BYTES: u64 = 256;

/// Registers of every function.
pub mod register {
    #![allow(missing_docs)]
    pub const ID: u8 = 0;
    pub const COMMAND: u8 = 4;
    /// Revision, programming interface, subclass and class.
    pub const CLASS: u8 = 8;
    pub const HEADER_TYPE: u8 = 14;
    pub const FIRST_BAR: u8 = 16;
    /// Bridges: bus behind it.
    pub const SECONDARY_BUS: u8 = 25;
    pub const INTERRUPT_LINE: u8 = 60;
}

/// Bus (8 bits), device (5) and function (3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Address(pub u16);

impl Address {
    /// From its parts.
    pub const fn new(bus: u8, device: u8, function: u8) -> Address {
        Address((bus as u16) << 8 | (device as u16 & 31) << 3 | function as u16 & 7)
    }
}

/// Reads and writes aligned words of 32 bits.
pub trait ConfigSpace {
    /// Reads the word at `offset`, a multiple of 4; all ones when there is no such function.
    fn read32(&mut self, address: Address, offset: u8) -> u32;

    /// Writes 1, 2 or 4 bytes at an aligned offset.
    fn write(&mut self, address: Address, offset: u8, width: u8, value: u32);

    /// Reads 1, 2 or 4 bytes at an aligned offset.
    fn read(&mut self, address: Address, offset: u8, width: u8) -> u32 {
        let word = self.read32(address, offset & !3) >> (8 * (offset & 3));
        if width == 4 { word } else { word & ((1 << (8 * width)) - 1) }
    }
}

/// The place of an access within configuration space.
///
/// # Errors
/// `EINVAL`: no such width, misaligned, or outside.
pub fn check(offset: u64, width: u64) -> Result<(u8, u8)> {
    let valid = matches!(width, 1 | 2 | 4) && offset < CONFIG_BYTES && offset.is_multiple_of(width);
    if valid { Ok((offset as u8, width as u8)) } else { Err(Errno::EINVAL) }
}

/// Configuration space by the two ports.
pub struct ConfigPorts;

impl ConfigPorts {
    fn select(address: Address, offset: u8) {
        let value = ENABLE | (address.0 as u32) << 8 | (offset & !3) as u32;
        port::write(ADDRESS_PORT, 4, value).expect("pci may use port 0xcf8");
    }
}

impl ConfigSpace for ConfigPorts {
    fn read32(&mut self, address: Address, offset: u8) -> u32 {
        Self::select(address, offset);
        port::read(DATA_PORT, 4).expect("pci may use port 0xcfc")
    }

    fn write(&mut self, address: Address, offset: u8, width: u8, value: u32) {
        Self::select(address, offset);
        port::write(DATA_PORT + (offset & 3) as u16, width.into(), value).expect("pci may use ports 0xcfc to 0xcff");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accesses_are_aligned_and_within_256_bytes() {
        assert_eq!(check(252, 4), Ok((252, 4)));
        assert_eq!(check(255, 1), Ok((255, 1)));
        for (offset, width) in [(256, 1), (2, 4), (1, 2), (0, 3), (0, 8), (u64::MAX, 1)] {
            assert_eq!(check(offset, width), Err(Errno::EINVAL));
        }
    }
}
