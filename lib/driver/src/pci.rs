//! A driver's own PCI device, through the service pci.

use crate::Region;
use abi::pci::{OwnBar, ReadConfig, ShareDma, WriteConfig};
use abi::{Endpoint, Errno};
use sys::{Result, ipc};

/// Offset of the command register.
const COMMAND: u16 = 4;
/// Offset of the interrupt line register.
const INTERRUPT_LINE: u16 = 0x3c;
/// The device may read and write memory.
const BUS_MASTER: u32 = 4;
/// Interrupt line register of a device without line.
const NO_LINE: u32 = 0xff;

/// A range of the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bar {
    /// First physical address or port.
    pub start: u64,
    /// Length; 0: no such range.
    pub bytes: u64,
    /// Whether these are ports, not memory.
    pub ports: bool,
}

/// Reads 1, 2 or 4 bytes of configuration space.
///
/// # Errors
/// `ENODEV`: the driver has no device; `EINVAL`: misaligned, or beyond configuration space.
pub fn read(offset: u16, width: u8) -> Result<u32> {
    let request = ReadConfig { offset: offset.into(), width: width.into() };
    let reply = ipc::call_repeating(Endpoint::PCI, &request.message())?;
    ReadConfig::results(&reply).map(|value| value as u32)
}

/// Writes 1, 2 or 4 bytes of configuration space.
///
/// # Errors
/// As [`read`]; `EPERM`: a BAR.
pub fn write(offset: u16, width: u8, value: u32) -> Result<()> {
    let request = WriteConfig { offset: offset.into(), width: width.into(), value: value.into() };
    ipc::call_repeating(Endpoint::PCI, &request.message()).map(drop)
}

/// Returns range number `bar` (0 to 5).
///
/// # Errors
/// `ENODEV`, `EINVAL`.
pub fn bar(bar: u8) -> Result<Bar> {
    let reply = ipc::call_repeating(Endpoint::PCI, &OwnBar { bar: bar.into() }.message())?;
    OwnBar::results(&reply).map(|(start, bytes, ports)| Bar { start, bytes, ports })
}

/// Allocates memory as [`Region::dma`] and lets the device reach it, as a bus master.
///
/// # Errors
/// As [`Region::dma`]; `ENODEV`; `ENOMEM` also when the IOMMU's tables are full.
pub fn dma(bytes: usize) -> Result<Region> {
    let memory = Region::dma(bytes)?;
    ipc::call_repeating(Endpoint::PCI, &ShareDma {}.message())?;
    let command = read(COMMAND, 2)?;
    write(COMMAND, 2, command | BUS_MASTER)?;
    Ok(memory)
}

/// Returns the interrupt line, which is among the driver's privileges.
///
/// # Errors
/// `ENXIO`: the device has none; `ENODEV`.
pub fn interrupt_line() -> Result<u8> {
    match read(INTERRUPT_LINE, 1)? {
        NO_LINE => Err(Errno::ENXIO),
        line => Ok(line as u8),
    }
}

/// Returns the offsets of the capabilities with this id, in the order of the list.
///
/// # Errors
/// `ENODEV`.
pub fn capabilities(id: u8) -> Result<alloc::vec::Vec<u16>> {
    capabilities_in(id, read)
}

/// Offset of the status register, its bit for a capability list, and the list's start.
const STATUS: u16 = 6;
const STATUS_CAPABILITIES: u32 = 0x10;
const CAPABILITIES: u16 = 0x34;
/// More than fit into configuration space: a longer list is a cycle.
const MAX_CAPABILITIES: usize = 48;

fn capabilities_in(id: u8, read: impl Fn(u16, u8) -> Result<u32>) -> Result<alloc::vec::Vec<u16>> {
    let mut found = alloc::vec::Vec::new();
    if read(STATUS, 2)? & STATUS_CAPABILITIES == 0 {
        return Ok(found);
    }
    let mut at = read(CAPABILITIES, 1)? as u16 & 0xfc;
    for _ in 0..MAX_CAPABILITIES {
        if at < 0x40 {
            break;
        }
        let header = read(at, 2)?;
        if header as u8 == id {
            found.push(at);
        }
        at = (header >> 8) as u16 & 0xfc;
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn space(next_of_last: u8) -> [u8; 256] {
        let mut space = [0; 256];
        space[6] = 0x10;
        space[0x34] = 0x40;
        space[0x40..0x42].copy_from_slice(&[9, 0x50]);
        space[0x50..0x52].copy_from_slice(&[0x11, 0x60]);
        space[0x60..0x62].copy_from_slice(&[9, next_of_last]);
        space
    }

    fn reader(space: [u8; 256]) -> impl Fn(u16, u8) -> Result<u32> {
        move |offset, width| Ok((0..width as u16).map(|i| (space[(offset + i) as usize] as u32) << (8 * i)).sum())
    }

    #[test]
    fn capabilities_are_found_in_order() {
        assert_eq!(capabilities_in(9, reader(space(0))), Ok(std::vec![0x40, 0x60]));
        assert_eq!(capabilities_in(5, reader(space(0))), Ok(std::vec![]));
    }

    #[test]
    fn a_circle_of_capabilities_ends() {
        assert!(capabilities_in(9, reader(space(0x40))).is_ok_and(|found| found.len() <= MAX_CAPABILITIES));
    }
}
