//! One channel: two disks that share registers and interrupt, and take turns.
//!
//! A command that fails or does not end is followed by a reset of the channel and tried again, [`TRIES`] times in all; then the
//! caller gets `EIO`. The predecessor of a restarted driver may have left a command in hand: the reset of [`Channel::find`] ends it.

use crate::command::{Command, Direction};
use crate::dma;
use crate::identity::{IDENTIFY_BYTES, Identity};
use crate::registers::{BusMaster, Registers, control, register, status};
use abi::Errno;

/// Bytes of a sector.
pub const SECTOR_BYTES: usize = 512;
/// Most sectors of one command: what 8 bits count.
pub const COMMAND_SECTORS: usize = 256;
/// Times a command is given.
const TRIES: usize = 3;
/// Time for a command; disks that have to spin up first take longest.
const COMMAND_NS: u64 = 10_000_000_000;
/// Time for a reset (ATA/ATAPI-7, 9.2).
const RESET_NS: u64 = 31_000_000_000;
/// How long RESET stays set, and how long after it nobody asks: 5 µs and 2 ms at least.
const RESET_HOLD_NS: u64 = 10_000;
const RESET_PAUSE_NS: u64 = 2_000_000;
/// Between two looks at the status where no interrupt comes.
const POLL_NS: u64 = 100_000;
/// Looks at the status before the driver sleeps between them.
const QUICK_POLLS: usize = 1000;
/// Status of a channel without disks: nothing drives the bus.
const FLOATING: u8 = 0xff;

/// Why a command failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The disk says so: status and error register.
    Disk(u8, u8),
    /// The bus master says so.
    BusMaster(u8),
    /// It did not end in time.
    Silent,
    /// It wants or has data where there should be none, or the other way round.
    OutOfStep(u8),
    /// The driver may not use its ports.
    Ports(Errno),
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

/// What a transfer moves.
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
    /// Resets the channel and finds its disks. With a bus master, disks that can move data by it.
    ///
    /// # Errors
    /// `ENXIO`: none is there; `ECALLDENIED`.
    pub fn find(registers: R, bus_master: Option<B>) -> Result<Self, Errno> {
        let mut channel = Channel { registers, bus_master, disks: [None; 2] };
        if channel.registers.alternate_status()? == FLOATING {
            return Err(Errno::ENXIO);
        }
        if let Err(failure) = channel.reset() {
            sys::log!("a channel cannot be reset: {failure:?}");
            return Err(Errno::ENXIO);
        }
        for unit in 0..2 {
            channel.disks[unit] = channel.identify(unit).unwrap_or_else(|failure| {
                sys::log!("unit {unit} does not say what it is: {failure:?}");
                None
            });
        }
        if channel.disks.iter().all(Option::is_none) {
            return Err(Errno::ENXIO);
        }
        channel.prepare_disks().map_err(|_| Errno::EIO)?;
        Ok(channel)
    }

    /// What the disk in `unit` (0 or 1) is.
    pub fn identity(&self, unit: usize) -> Option<Identity> {
        self.disks[unit].map(|disk| disk.identity)
    }

    /// True when [`Data::Dma`] works for the disk in `unit`.
    pub fn has_dma(&self, unit: usize) -> bool {
        self.bus_master.is_some() && self.identity(unit).is_some_and(|identity| identity.dma)
    }

    /// The bus master, whose memory has the data of [`Data::Dma`].
    pub fn bus_master(&self) -> Option<&B> {
        self.bus_master.as_ref()
    }

    /// Moves whole sectors, at most [`COMMAND_SECTORS`].
    ///
    /// # Errors
    /// `ENXIO`: no disk; `EIO` after all tries.
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

    /// Puts everything written on the medium.
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
            sys::log!("disk {unit}: {failure:?}");
            if let Err(failure) = self.reset().and_then(|()| self.prepare_disks()) {
                sys::log!("reset: {failure:?}");
            }
        }
        Err(Errno::EIO)
    }

    /// Ends whatever the channel is doing. Afterwards its disks have forgotten their settings.
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

    /// Makes the disks' settings what the driver counts on.
    fn prepare_disks(&mut self) -> Result<(), Failure> {
        for unit in 0..2 {
            let Some(disk) = self.disks[unit].filter(|disk| disk.block_sectors > 1) else { continue };
            self.begin(unit, Command::set_multiple(disk.block_sectors))?;
            self.finish()?;
        }
        Ok(())
    }

    /// Asks the device in `unit` what it is. `None`: there is none, or it is no disk that can be driven.
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

    /// Gives a command to the disk in `unit`.
    fn begin(&mut self, unit: usize, command: Command) -> Result<(), Failure> {
        self.select(unit, command.device_bits())?;
        for (register, value) in command.registers() {
            self.registers.write(register, value)?;
        }
        Ok(self.registers.write(register::COMMAND, command.code())?)
    }

    /// Takes what a read command delivers: an interrupt comes before each block.
    fn read_blocks(&mut self, into: &mut [u8], block_sectors: usize) -> Result<(), Failure> {
        for block in into.chunks_mut(block_sectors * SECTOR_BYTES) {
            self.wait_for_data()?;
            self.registers.read_data(block)?;
        }
        Ok(())
    }

    /// Delivers what a write command takes: an interrupt comes after each block.
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

    /// Waits for the interrupt that ends a command with DMA. → the disk's status. The disk may seem idle in the midst of it, but the
    /// bus master knows whether it has interrupted.
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

    /// Waits until the disk has data or wants some.
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

    /// Waits for the interrupt with which the disk stops being busy. → its status. An interrupt that was left from before finds the disk
    /// busy; one that got lost is made up for by a look at the end of the time.
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

    /// Looks at the status until the disk is not busy. → the status.
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
