//! The bus master: transfers data between memory and disk along a table of physical regions (Programming Interface for Bus
//! Master IDE Controller, 1.0).

use crate::command::Direction;
use crate::registers::BusMaster;
use abi::Errno;
use alloc::vec::Vec;

/// Offsets of its registers; a channel has eight ports.
pub mod register {
    #![allow(missing_docs)]
    pub const COMMAND: u16 = 0;
    pub const STATUS: u16 = 2;
    pub const TABLE: u16 = 4;
}

/// COMMAND: start.
const START: u8 = 1;
/// COMMAND: write to memory.
const TO_MEMORY: u8 = 8;
/// STATUS: active.
const ACTIVE: u8 = 1;
/// STATUS: the bus refused an access. Written: cleared.
const ERROR: u8 = 2;
/// STATUS: the disk has interrupted. Written: cleared.
const INTERRUPT: u8 = 4;
/// Boundary in bytes that no region may cross.
const BOUNDARY: u64 = 0x1_0000;

/// Prepares a transfer of `bytes` bytes of the data memory.
///
/// # Errors
/// `EIO`: the memory is beyond the bus master's address range.
pub fn prepare(bus_master: &mut impl BusMaster, direction: Direction, bytes: usize) -> Result<(), Errno> {
    let regions = regions(bus_master.data_address(), bytes as u64)?;
    bus_master.set_table(&regions)?;
    bus_master.write(register::COMMAND, towards(direction))?;
    clear(bus_master)
}

/// Starts the transfer, after the disk has received its command.
///
/// # Errors
/// `ECALLDENIED`.
pub fn start(bus_master: &mut impl BusMaster, direction: Direction) -> Result<(), Errno> {
    bus_master.write(register::COMMAND, towards(direction) | START)
}

/// Returns whether the disk has interrupted since [`prepare`]: all data has then arrived.
///
/// # Errors
/// `ECALLDENIED`.
pub fn has_interrupted(bus_master: &mut impl BusMaster) -> Result<bool, Errno> {
    Ok(bus_master.read(register::STATUS)? & INTERRUPT != 0)
}

/// Stops the bus master. Returns its status before.
///
/// # Errors
/// `ECALLDENIED`.
pub fn stop(bus_master: &mut impl BusMaster) -> Result<u8, Errno> {
    let status = bus_master.read(register::STATUS)?;
    bus_master.write(register::COMMAND, 0)?;
    clear(bus_master)?;
    Ok(status)
}

/// Checks the status at the end of a transfer.
///
/// # Errors
/// The status, if it reports an error.
pub fn check(status: u8) -> Result<(), u8> {
    if status & (ACTIVE | ERROR) == 0 { Ok(()) } else { Err(status) }
}

fn towards(direction: Direction) -> u8 {
    if direction == Direction::Read { TO_MEMORY } else { 0 }
}

fn clear(bus_master: &mut impl BusMaster) -> Result<(), Errno> {
    bus_master.write(register::STATUS, ERROR | INTERRUPT)
}

/// Splits a range of physical memory into regions: address and bytes, where 0 stands for 64 KiB.
fn regions(start: u64, bytes: u64) -> Result<Vec<(u32, u16)>, Errno> {
    let end = start + bytes;
    if end > 1 << 32 {
        return Err(Errno::EIO);
    }
    let mut regions = Vec::new();
    let mut at = start;
    while at < end {
        let next = ((at / BOUNDARY + 1) * BOUNDARY).min(end);
        regions.push((at as u32, (next - at) as u16));
        at = next;
    }
    Ok(regions)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_end_at_multiples_of_64_kib() {
        assert_eq!(regions(0x1_f000, 0x2_0000), Ok([(0x1_f000, 0x1000), (0x2_0000, 0), (0x3_0000, 0xf000)].into()));
        assert_eq!(regions(0x2_0000, 0x200), Ok([(0x2_0000, 0x200)].into()));
    }

    #[test]
    fn memory_above_four_gigabytes_is_out_of_reach() {
        assert_eq!(regions(0xffff_fe00, 0x200).map(|regions| regions.len()), Ok(1));
        assert_eq!(regions(0xffff_fe00, 0x400), Err(Errno::EIO));
    }
}
