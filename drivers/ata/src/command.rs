//! Commands and the registers that carry their arguments (ATA/ATAPI-7, clause 6).

use crate::identity::LBA28_SECTORS;
use crate::registers::register;
use alloc::vec::Vec;

/// Direction of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the disk.
    Read,
    /// To the disk.
    Write,
}

/// Codes of a command, for sector numbers of 28 and of 48 bits.
type Codes = (u8, u8);

const READ_SECTORS: Codes = (0x20, 0x24);
const READ_MULTIPLE: Codes = (0xc4, 0x29);
const READ_DMA: Codes = (0xc8, 0x25);
const WRITE_SECTORS: Codes = (0x30, 0x34);
const WRITE_MULTIPLE: Codes = (0xc5, 0x39);
const WRITE_DMA: Codes = (0xca, 0x35);
const FLUSH_CACHE: Codes = (0xe7, 0xea);
const SET_MULTIPLE: u8 = 0xc6;

/// A command with its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Command {
    code: u8,
    sector: u64,
    count: u16,
    /// Whether sector number and count are written in two halves.
    wide: bool,
}

impl Command {
    /// Makes IDENTIFY DEVICE.
    pub const IDENTIFY: u8 = 0xec;
    /// Bits of the device register: linear sector numbers, and two obsolete bits that were always set.
    pub const LINEAR: u8 = 0xe0;

    /// Transfers `count` (1 to 256) sectors through the data register, `block_sectors` per interrupt.
    pub fn pio(direction: Direction, block_sectors: usize, sector: u64, count: usize) -> Command {
        let codes = match (direction, block_sectors) {
            (Direction::Read, 1) => READ_SECTORS,
            (Direction::Read, _) => READ_MULTIPLE,
            (Direction::Write, 1) => WRITE_SECTORS,
            (Direction::Write, _) => WRITE_MULTIPLE,
        };
        Command::on_sectors(codes, sector, count)
    }

    /// Transfers `count` (1 to 256) sectors by DMA.
    pub fn dma(direction: Direction, sector: u64, count: usize) -> Command {
        let codes = if direction == Direction::Read { READ_DMA } else { WRITE_DMA };
        Command::on_sectors(codes, sector, count)
    }

    /// Flushes earlier writes to the medium.
    pub fn flush(wide: bool) -> Command {
        Command { code: if wide { FLUSH_CACHE.1 } else { FLUSH_CACHE.0 }, sector: 0, count: 0, wide: false }
    }

    /// Sets the number of sectors per interrupt.
    pub fn set_multiple(block_sectors: usize) -> Command {
        Command { code: SET_MULTIPLE, sector: 0, count: block_sectors as u16, wide: false }
    }

    fn on_sectors(codes: Codes, sector: u64, count: usize) -> Command {
        let wide = sector + count as u64 > LBA28_SECTORS;
        Command { code: if wide { codes.1 } else { codes.0 }, sector, count: count as u16, wide }
    }

    /// Returns the value for COMMAND.
    pub fn code(&self) -> u8 {
        self.code
    }

    /// Returns the lower half of DEVICE: the upper bits of a narrow sector number.
    pub fn device_bits(&self) -> u8 {
        if self.wide { 0 } else { (self.sector >> 24) as u8 & 15 }
    }

    /// Returns the registers and their values in the order of writing; wide arguments have their upper half first.
    pub fn registers(&self) -> impl Iterator<Item = (u16, u8)> {
        let [low, mid, high, fourth, fifth, sixth, ..] = self.sector.to_le_bytes();
        let [count, upper_count] = self.count.to_le_bytes();
        let upper = [upper_count, fourth, fifth, sixth];
        let lower = [count, low, mid, high];
        let order = [register::COUNT, register::LBA_LOW, register::LBA_MID, register::LBA_HIGH];
        let halves: Vec<[u8; 4]> = if self.wide { [upper, lower].into() } else { [lower].into() };
        halves.into_iter().flat_map(move |half| order.into_iter().zip(half))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn registers(command: Command) -> std::vec::Vec<(u16, u8)> {
        command.registers().collect()
    }

    #[test]
    fn a_narrow_number_takes_four_registers_and_half_of_another() {
        let command = Command::pio(Direction::Read, 16, 0x0abc_def0, 256);
        assert_eq!((command.code(), command.device_bits()), (0xc4, 0x0a));
        assert_eq!(registers(command), [(2, 0), (3, 0xf0), (4, 0xde), (5, 0xbc)]);
    }

    #[test]
    fn a_number_beyond_28_bits_is_given_in_two_halves() {
        let command = Command::dma(Direction::Write, 0x0605_0403_0201, 256);
        assert_eq!((command.code(), command.device_bits()), (0x35, 0));
        let upper = [(2, 1), (3, 4), (4, 5), (5, 6)];
        let lower = [(2, 0), (3, 1), (4, 2), (5, 3)];
        assert_eq!(registers(command), [upper, lower].concat());
    }

    #[test]
    fn the_last_sector_of_28_bits_is_still_narrow() {
        assert_eq!(Command::pio(Direction::Write, 1, LBA28_SECTORS - 1, 1).code(), 0x30);
        assert_eq!(Command::pio(Direction::Write, 1, LBA28_SECTORS - 1, 2).code(), 0x34);
    }
}
