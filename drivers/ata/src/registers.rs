//! Interface to a channel's registers, so that tests can simulate the disk.

use abi::Errno;

/// Offsets in the command block (ATA/ATAPI-7, volume 2, 5.2): eight ports.
#[allow(missing_docs)]
pub mod register {
    pub const DATA: u16 = 0;
    /// Read: error of a command. Written: FEATURES.
    pub const ERROR: u16 = 1;
    pub const COUNT: u16 = 2;
    pub const LBA_LOW: u16 = 3;
    pub const LBA_MID: u16 = 4;
    pub const LBA_HIGH: u16 = 5;
    pub const DEVICE: u16 = 6;
    /// Read: STATUS, which also clears the interrupt. Written: COMMAND.
    pub const STATUS: u16 = 7;
    pub const COMMAND: u16 = 7;
}

/// Bits of STATUS.
#[allow(missing_docs)]
pub mod status {
    pub const ERROR: u8 = 0x01;
    pub const DATA_REQUEST: u8 = 0x08;
    pub const DEVICE_FAULT: u8 = 0x20;
    pub const BUSY: u8 = 0x80;
}

/// Bits of the control register.
#[allow(missing_docs)]
pub mod control {
    pub const NO_INTERRUPT: u8 = 0x02;
    pub const RESET: u8 = 0x04;
}

/// The registers, interrupt and clock of one channel.
pub trait Registers {
    /// Reads a register of the command block.
    fn read(&mut self, register: u16) -> Result<u8, Errno>;
    /// Writes it.
    fn write(&mut self, register: u16, value: u8) -> Result<(), Errno>;
    /// Reads the status without clearing the interrupt.
    fn alternate_status(&mut self) -> Result<u8, Errno>;
    /// Writes the control register.
    fn write_control(&mut self, value: u8) -> Result<(), Errno>;
    /// Fills the buffer from the data register by a string instruction.
    fn read_data(&mut self, into: &mut [u8]) -> Result<(), Errno>;
    /// Writes the buffer to the data register by a string instruction.
    fn write_data(&mut self, from: &[u8]) -> Result<(), Errno>;
    /// Unmasks the channel's line, which is masked since its last interrupt if it is level-triggered.
    fn unmask_interrupt(&mut self);
    /// Waits for this duration.
    fn sleep_ns(&mut self, duration_ns: u64);
    /// Returns the monotonic time.
    fn now_ns(&self) -> u64;
}

/// Registers of a channel's bus master (Programming Interface for Bus Master IDE Controller, 1.0).
pub trait BusMaster {
    /// Reads COMMAND (0) or STATUS (2).
    fn read(&mut self, register: u16) -> Result<u8, Errno>;
    /// Writes it.
    fn write(&mut self, register: u16, value: u8) -> Result<(), Errno>;
    /// Writes a table of these physical regions (address, bytes) into memory and its address to the controller.
    fn set_table(&mut self, regions: &[(u32, u16)]) -> Result<(), Errno>;
    /// Returns the physical address of the data memory.
    fn data_address(&self) -> u64;
}
