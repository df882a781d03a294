//! A channel: two disks that share registers and interrupt, one command at a time.
//!
//! After a command that fails or times out the channel is reset and the command repeated, [`TRIES`] attempts in all; then it fails
//! with `EIO`. The predecessor of a restarted driver may have left a command in progress: the reset of [`Channel::find`] ends it.

use crate::command::{Command, Direction};
use crate::dma;
use crate::identity::{IDENTIFY_BYTES, Identity};
use crate::registers::{BusMaster, Registers, control, register, status};
use abi::Errno;
use core::fmt;

/// Bytes of a sector.
pub const SECTOR_BYTES: usize = 512;
/// Limit of sectors of one command: its count has 8 bits.
pub const COMMAND_SECTORS: usize = 256;
/// Attempts of a command.
const TRIES: usize = 3;
/// Time-out of a command: long enough for a disk to spin up.
const COMMAND_NS: u64 = 10_000_000_000;
/// Time-out of a reset (ATA/ATAPI-7, 9.2).
const RESET_NS: u64 = 31_000_000_000;
/// Duration of RESET, and of the pause after it: at least 5 µs and 2 ms.
const RESET_HOLD_NS: u64 = 10_000;
const RESET_PAUSE_NS: u64 = 2_000_000;
/// Polling interval of the status where no interrupt comes.
const POLL_NS: u64 = 100_000;
/// Polls of the status before the driver sleeps between them.
const QUICK_POLLS: usize = 1000;
/// Status of a channel without disks: nothing drives the bus.
const FLOATING: u8 = 0xff;

/// Why a command failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The disk reported an error: status and error register.
    Disk(u8, u8),
    /// The bus master reported an error.
    BusMaster(u8),
    /// The command timed out.
    Silent,
    /// The disk violated the protocol: it offers or requests data unexpectedly, or fails to.
    OutOfStep(u8),
    /// The driver may not use its ports.
    Ports(Errno),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Disk(status, error) => write!(f, "status {status:#x}, error {error:#x}"),
            Self::BusMaster(status) => write!(f, "bus master status {status:#x}"),
            Self::Silent => f.write_str("timed out"),
            Self::OutOfStep(status) => write!(f, "protocol violated, status {status:#x}"),
            Self::Ports(error) => write!(f, "ports: {error}"),
        }
    }
}

impl From<Errno> for Failure {
    fn from(error: Errno) -> Self {
        Failure::Ports(error)
    }
}

/// One of the channel's two disks.
#[derive(Clone, Copy, Debug)]
struct Disk {
    identity: Identity,
    /// Sectors between two interrupts.
    block_sectors: usize,
}

/// The channel.
pub struct Channel<R, B> {
    registers: R,
    bus_master: Option<B>,
    disks: [Option<Disk>; 2],
}

/// Data of a transfer.
pub enum Data<'a> {
    /// From the disk, through the data register.
    Read(&'a mut [u8]),
    /// To the disk, through the data register.
    Write(&'a [u8]),
    /// This many bytes between the disk and the bus master's memory.
    Dma(Direction, usize),
}

impl Data<'_> {
    fn bytes(&self) -> usize {
        match self {
            Data::Read(into) => into.len(),
            Data::Write(from) => from.len(),
            Data::Dma(_, bytes) => *bytes,
        }
    }
}

impl<R: Registers, B: BusMaster> Channel<R, B> {
    /// Resets the channel and detects its disks; those that support DMA use the bus master if there is one.
    ///
    /// # Errors
    /// `ENXIO`: no disk; `ECALLDENIED`.
    pub fn find(registers: R, bus_master: Option<B>) -> Result<Self, Errno> {
        let mut channel = Channel { registers, bus_master, disks: [None; 2] };
        if channel.registers.alternate_status()? == FLOATING {
            return Err(Errno::ENXIO);
        }
        if let Err(failure) = channel.reset() {
            sys::log!("channel not used: reset failed: {failure}");
            return Err(Errno::ENXIO);
        }
        for unit in 0..2 {
            channel.disks[unit] = channel.identify(unit).unwrap_or_else(|failure| {
                sys::log!("disk {unit} not used: identification failed: {failure}");
                None
            });
        }
        if channel.disks.iter().all(Option::is_none) {
            return Err(Errno::ENXIO);
        }
        channel.prepare_disks().map_err(|_| Errno::EIO)?;
        Ok(channel)
    }

    /// Returns the identity of the disk in `unit` (0 or 1).
    pub fn identity(&self, unit: usize) -> Option<Identity> {
        self.disks[unit].map(|disk| disk.identity)
    }

    /// Returns whether the disk in `unit` supports [`Data::Dma`].
    pub fn has_dma(&self, unit: usize) -> bool {
        self.bus_master.is_some() && self.identity(unit).is_some_and(|identity| identity.dma)
    }

    /// Returns the bus master, whose memory holds the data of [`Data::Dma`].
    pub fn bus_master(&self) -> Option<&B> {
        self.bus_master.as_ref()
    }

    /// Transfers whole sectors, at most [`COMMAND_SECTORS`].
    ///
    /// # Errors
    /// `ENXIO`: no disk; `EIO` after all attempts.
    pub fn transfer(&mut self, unit: usize, sector: u64, mut data: Data) -> Result<(), Errno> {
        let disk = self.disks[unit].ok_or(Errno::ENXIO)?;
        let count = data.bytes() / SECTOR_BYTES;
        self.repeatedly(unit, |channel| match &mut data {
            Data::Read(into) => {
                channel.begin(unit, Command::pio(Direction::Read, disk.block_sectors, sector, count))?;
                channel.read_blocks(into, disk.block_sectors)
            }
            Data::Write(from) => {
                channel.begin(unit, Command::pio(Direction::Write, disk.block_sectors, sector, count))?;
                channel.write_blocks(from, disk.block_sectors)
            }
            Data::Dma(direction, bytes) => channel.run_dma(unit, *direction, sector, *bytes),
        })
    }

    /// Flushes all writes to the medium.
    ///
    /// # Errors
    /// As [`Channel::transfer`].
    pub fn flush(&mut self, unit: usize) -> Result<(), Errno> {
        let Identity { flush, lba48, .. } = self.identity(unit).ok_or(Errno::ENXIO)?;
        if !flush {
            return Ok(());
        }
        self.repeatedly(unit, |channel| {
            channel.begin(unit, Command::flush(lba48))?;
            channel.finish()
        })
    }

    fn repeatedly(
        &mut self,
        unit: usize,
        mut attempt: impl FnMut(&mut Self) -> Result<(), Failure>,
    ) -> Result<(), Errno> {
        for _ in 0..TRIES {
            let failure = match attempt(self) {
                Ok(()) => return Ok(()),
                Err(Failure::Ports(error)) => return Err(error),
                Err(failure) => failure,
            };
            sys::log!("disk {unit}: command failed: {failure}; resetting the channel");
            if let Err(failure) = self.reset().and_then(|()| self.prepare_disks()) {
                sys::log!("reset failed: {failure}");
            }
        }
        Err(Errno::EIO)
    }

    /// Resets the channel, which cancels its command and the settings of its disks.
    fn reset(&mut self) -> Result<(), Failure> {
        if let Some(bus_master) = &mut self.bus_master {
            dma::stop(bus_master)?;
        }
        self.registers.write_control(control::RESET | control::NO_INTERRUPT)?;
        self.registers.sleep_ns(RESET_HOLD_NS);
        self.registers.write_control(0)?;
        self.registers.sleep_ns(RESET_PAUSE_NS);
        self.poll(RESET_NS).map(drop)
    }

    /// Restores the disks' settings.
    fn prepare_disks(&mut self) -> Result<(), Failure> {
        for unit in 0..2 {
            let Some(disk) = self.disks[unit].filter(|disk| disk.block_sectors > 1) else { continue };
            self.begin(unit, Command::set_multiple(disk.block_sectors))?;
            self.finish()?;
        }
        Ok(())
    }

    /// Identifies the device in `unit`. `None`: no device, or not a supported disk.
    fn identify(&mut self, unit: usize) -> Result<Option<Disk>, Failure> {
        self.select(unit, 0)?;
        if matches!(self.registers.alternate_status()?, 0 | FLOATING) {
            return Ok(None);
        }
        self.registers.write(register::COMMAND, Command::IDENTIFY)?;
        let status = self.poll(COMMAND_NS)?;
        self.registers.read(register::STATUS)?;
        // Devices that are no disks refuse the command.
        if status & status::DATA_REQUEST == 0 {
            return Ok(None);
        }
        let mut bytes = [0; IDENTIFY_BYTES];
        self.registers.read_data(&mut bytes)?;
        Ok(Identity::parse(&bytes).map(|identity| {
            let block_sectors = usize::from(identity.multiple).max(1);
            Disk { identity, block_sectors }
        }))
    }

    fn select(&mut self, unit: usize, lba_high_bits: u8) -> Result<(), Failure> {
        self.poll(COMMAND_NS)?;
        let device = Command::LINEAR | (unit as u8) << 4 | lba_high_bits & 15;
        Ok(self.registers.write(register::DEVICE, device)?)
    }

    /// Sends a command to the disk in `unit`.
    fn begin(&mut self, unit: usize, command: Command) -> Result<(), Failure> {
        self.select(unit, command.device_bits())?;
        for (register, value) in command.registers() {
            self.registers.write(register, value)?;
        }
        Ok(self.registers.write(register::COMMAND, command.code())?)
    }

    /// Receives the data of a read command: an interrupt precedes each block.
    fn read_blocks(&mut self, into: &mut [u8], block_sectors: usize) -> Result<(), Failure> {
        for block in into.chunks_mut(block_sectors * SECTOR_BYTES) {
            self.wait_for_data()?;
            self.registers.read_data(block)?;
        }
        Ok(())
    }

    /// Sends the data of a write command: an interrupt follows each block.
    fn write_blocks(&mut self, from: &[u8], block_sectors: usize) -> Result<(), Failure> {
        let status = self.poll(COMMAND_NS)?;
        self.check(status, true)?;
        let mut blocks = from.chunks(block_sectors * SECTOR_BYTES).peekable();
        while let Some(block) = blocks.next() {
            self.registers.write_data(block)?;
            if blocks.peek().is_some() { self.wait_for_data()? } else { self.finish()? }
        }
        Ok(())
    }

    fn run_dma(&mut self, unit: usize, direction: Direction, sector: u64, bytes: usize) -> Result<(), Failure> {
        let bus_master = self.bus_master.as_mut().ok_or(Errno::ENXIO)?;
        dma::prepare(bus_master, direction, bytes)?;
        self.begin(unit, Command::dma(direction, sector, bytes / SECTOR_BYTES))?;
        if let Some(bus_master) = &mut self.bus_master {
            dma::start(bus_master, direction)?;
        }
        let result = self.wait_for_dma();
        let Some(bus_master) = &mut self.bus_master else { return result.map(drop) };
        let ended = dma::stop(bus_master)?;
        self.check(result?, false)?;
        dma::check(ended).map_err(Failure::BusMaster)
    }

    /// Waits for the interrupt that ends a DMA command. Returns the disk's status. The disk may look idle in the middle of the command,
    /// so the bus master's interrupt bit decides.
    fn wait_for_dma(&mut self) -> Result<u8, Failure> {
        let deadline_ns = self.registers.now_ns() + COMMAND_NS;
        loop {
            let came = self.registers.wait(deadline_ns);
            let interrupted = match &mut self.bus_master {
                Some(bus_master) => dma::has_interrupted(bus_master)?,
                None => true,
            };
            if interrupted || !came {
                let status = self.registers.read(register::STATUS)?;
                return if status & status::BUSY == 0 { Ok(status) } else { Err(Failure::Silent) };
            }
        }
    }

    /// Waits until the disk offers or requests data.
    fn wait_for_data(&mut self) -> Result<(), Failure> {
        let status = self.wait_for_end()?;
        self.check(status, true)
    }

    /// Waits until the command has ended.
    fn finish(&mut self) -> Result<(), Failure> {
        let status = self.wait_for_end()?;
        self.check(status, false)
    }

    fn check(&mut self, status: u8, expects_data: bool) -> Result<(), Failure> {
        if status & (status::ERROR | status::DEVICE_FAULT) != 0 {
            return Err(Failure::Disk(status, self.registers.read(register::ERROR)?));
        }
        let has_data = status & status::DATA_REQUEST != 0;
        if has_data == expects_data { Ok(()) } else { Err(Failure::OutOfStep(status)) }
    }

    /// Waits for the interrupt after which the disk is not busy. Returns its status. A stale interrupt finds the disk busy and is
    /// ignored; a lost one is detected by a last read of the status at the time-out.
    fn wait_for_end(&mut self) -> Result<u8, Failure> {
        let deadline_ns = self.registers.now_ns() + COMMAND_NS;
        loop {
            let came = self.registers.wait(deadline_ns);
            let status = self.registers.read(register::STATUS)?;
            match status & status::BUSY {
                0 => return Ok(status),
                _ if !came => return Err(Failure::Silent),
                _ => {}
            }
        }
    }

    /// Polls the status until the disk is not busy. Returns it.
    fn poll(&mut self, limit_ns: u64) -> Result<u8, Failure> {
        let deadline_ns = self.registers.now_ns() + limit_ns;
        for look in 0.. {
            let status = self.registers.alternate_status()?;
            if status & status::BUSY == 0 {
                return Ok(status);
            }
            if look < QUICK_POLLS {
                continue;
            }
            if self.registers.now_ns() >= deadline_ns {
                break;
            }
            self.registers.sleep_ns(POLL_NS);
        }
        Err(Failure::Silent)
    }
}

#[cfg(test)]
#[path = "channel_tests.rs"]
mod tests;
