//! A channel: two disks that share registers and interrupt, and so have one command in progress between them.
//!
//! [`Channel::start`] sends a command, and each interrupt advances it by one step. The status register decides what a step does: a
//! spurious or late interrupt finds a busy disk or no command and changes nothing, and a lost one costs the time-out only. A
//! command that fails leaves the channel idle; its owner then resets it.
//!
//! The predecessor of a restarted driver may have left a command in progress: the reset of [`Channel::find`] ends it. `find` waits
//! inside, by short sleeps. Later only a reset's pulse of 2 ms is spent so, and the time that an idle disk takes to accept a command and
//! SET MULTIPLE: none, or one second if the disk is broken.

use crate::command::{Command, Direction};
use crate::dma;
use crate::identity::{IDENTIFY_BYTES, Identity};
use crate::registers::{BusMaster, Registers, control, register, status};
use abi::Errno;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;
use core::ops::Range;
use driver::block::Operation;

/// Disks of a channel.
pub const UNITS: usize = 2;
/// Bytes of a sector.
pub const SECTOR_BYTES: usize = 512;
/// Limit of one command, in bytes: its sector count has 8 bits.
pub const COMMAND_BYTES: usize = 256 * SECTOR_BYTES;
/// Time-out of a step of a command: long enough for a disk to spin up.
pub const COMMAND_NS: u64 = 10_000_000_000;
/// Time-out of what takes an idle disk no time: to become ready for a command, and SET MULTIPLE.
const READY_NS: u64 = 1_000_000_000;
/// Time-out of a reset (ATA/ATAPI-7, 9.2).
const RESET_NS: u64 = 31_000_000_000;
/// Duration of RESET, and of the pause after it: at least 5 µs and 2 ms.
const RESET_HOLD_NS: u64 = 10_000;
const RESET_PAUSE_NS: u64 = 2_000_000;
/// Polling interval of the status where no interrupt comes.
const POLL_NS: u64 = 1_000_000;
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
    /// The command or the reset timed out.
    Silent,
    /// The disk violated the protocol: it offers or requests data unexpectedly, or fails to.
    OutOfStep(u8),
    /// The channel was not reset after an earlier failure.
    NotReset,
    /// The kernel refused access to a port or to the client's buffer: a further attempt is useless.
    Refused(Errno),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Disk(status, error) => write!(f, "status {status:#x}, error {error:#x}"),
            Self::BusMaster(status) => write!(f, "bus master status {status:#x}"),
            Self::Silent => f.write_str("timed out"),
            Self::OutOfStep(status) => write!(f, "protocol violated, status {status:#x}"),
            Self::NotReset => f.write_str("an earlier reset failed"),
            Self::Refused(error) => write!(f, "access refused: {error}"),
        }
    }
}

impl From<Errno> for Failure {
    fn from(error: Errno) -> Self {
        Failure::Refused(error)
    }
}

/// Outcome of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// The command, or the reset, is still in progress.
    Pending,
    /// The command has ended.
    Ended,
    /// The reset has ended: the channel accepts commands.
    Ready,
}

/// Data of a command: where it is between client and disk.
pub enum Memory<'a, B> {
    /// The buffer of transfers through the data register.
    Buffer(&'a mut [u8]),
    /// This many bytes from the start of the bus master's data memory.
    BusMaster(&'a mut B, usize),
}

/// One of the channel's two disks.
#[derive(Clone, Copy, Debug)]
struct Disk {
    identity: Identity,
    /// Sectors between two interrupts.
    block_sectors: usize,
}

/// What the channel is waiting for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Nothing.
    Idle,
    /// A reset: a command or a reset has failed.
    Failed,
    /// The end of a reset, which no interrupt reports.
    Resetting,
    /// The next block from the data register: an interrupt precedes each.
    Reading(Blocks),
    /// Permission to write the next block to the data register, or the end: an interrupt follows each block, none precedes the first.
    Writing(Blocks),
    /// The interrupt at the end of a transfer by the bus master.
    Dma,
    /// The interrupt at the end of a command without data.
    NoData,
}

/// Progress of a transfer through the data register, in bytes of the channel's buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Blocks {
    done: usize,
    end: usize,
    block_bytes: usize,
}

impl Blocks {
    fn is_done(self) -> bool {
        self.done == self.end
    }

    /// Returns the next block, and the progress after it.
    fn next(self) -> (Range<usize>, Blocks) {
        let done = self.end.min(self.done + self.block_bytes);
        (self.done..done, Blocks { done, ..self })
    }
}

/// The channel.
pub struct Channel<R, B> {
    registers: R,
    bus_master: Option<B>,
    disks: [Option<Disk>; UNITS],
    /// Data of transfers through the data register; empty if all disks use the bus master.
    buffer: Vec<u8>,
    state: State,
    /// When the state times out.
    deadline_ns: u64,
}

impl<R: Registers, B: BusMaster> Channel<R, B> {
    /// Resets the channel and detects its disks; those that support DMA use the bus master if there is one.
    ///
    /// # Errors
    /// `ENXIO`: no disk; `EIO`: a disk refuses its settings; `ECALLDENIED`.
    pub fn find(registers: R, bus_master: Option<B>) -> Result<Self, Errno> {
        let (disks, buffer) = ([None; UNITS], Vec::new());
        let mut channel = Channel { registers, bus_master, disks, buffer, state: State::Idle, deadline_ns: 0 };
        if channel.registers.alternate_status()? == FLOATING {
            return Err(Errno::ENXIO);
        }
        if let Err(failure) = channel.reset().and_then(|()| channel.poll(RESET_NS)) {
            sys::log!("channel not used: reset failed: {failure}");
            return Err(Errno::ENXIO);
        }
        for unit in 0..UNITS {
            channel.disks[unit] = channel.identify(unit).unwrap_or_else(|failure| {
                sys::log!("disk {unit} not used: identification failed: {failure}");
                None
            });
        }
        if channel.disks.iter().all(Option::is_none) {
            return Err(Errno::ENXIO);
        }
        if (0..UNITS).any(|unit| channel.disks[unit].is_some() && !channel.has_dma(unit)) {
            channel.buffer = vec![0; COMMAND_BYTES];
        }
        // Ends the reset.
        channel.advance().map_err(|_| Errno::EIO)?;
        Ok(channel)
    }

    /// Returns the identity of the disk in `unit` (0 or 1).
    pub fn identity(&self, unit: usize) -> Option<Identity> {
        self.disks[unit].map(|disk| disk.identity)
    }

    /// Returns whether [`Channel::start`] may be called: neither a command nor a reset is in progress.
    pub fn is_idle(&self) -> bool {
        matches!(self.state, State::Idle | State::Failed)
    }

    /// Returns where the data of a command for the disk in `unit` is, at most [`COMMAND_BYTES`].
    pub fn memory(&mut self, unit: usize, bytes: usize) -> Memory<'_, B> {
        let has_dma = self.has_dma(unit);
        match &mut self.bus_master {
            Some(bus_master) if has_dma => Memory::BusMaster(bus_master, bytes),
            _ => Memory::Buffer(&mut self.buffer[..bytes]),
        }
    }

    /// Starts to transfer whole sectors, or to flush all writes to the medium. A command that has nothing to do ends at once.
    ///
    /// # Errors
    /// Why the command could not be started. `Refused(ENXIO)`: no disk.
    pub fn start(&mut self, unit: usize, operation: Operation, sector: u64, bytes: usize) -> Result<Progress, Failure> {
        let progress = match self.state {
            State::Failed => Err(Failure::NotReset),
            _ => self.try_start(unit, operation, sector, bytes),
        };
        self.settle(progress)
    }

    /// Handles an interrupt. The line is unmasked after the status register was read, which ends the disk's interrupt.
    ///
    /// # Errors
    /// Why the command, or the reset, failed.
    pub fn interrupt(&mut self) -> Result<Progress, Failure> {
        let progress = self.advance();
        self.registers.unmask_interrupt();
        progress
    }

    /// Handles the alarm, which may come early.
    ///
    /// # Errors
    /// As [`Channel::interrupt`].
    pub fn alarm(&mut self) -> Result<Progress, Failure> {
        let is_due = !self.is_idle() && (self.is_polled() || self.has_timed_out());
        if is_due { self.advance() } else { Ok(Progress::Pending) }
    }

    /// Returns when [`Channel::alarm`] has to be called. `None`: nothing is in progress.
    pub fn wake_ns(&self) -> Option<u64> {
        let wake_ns = if self.is_polled() { self.registers.now_ns() + POLL_NS } else { self.deadline_ns };
        (!self.is_idle()).then_some(wake_ns)
    }

    /// Begins a reset, which cancels the command in progress and the settings of the disks. They do not interrupt until it has ended.
    ///
    /// # Errors
    /// `Refused`.
    pub fn reset(&mut self) -> Result<(), Failure> {
        self.state = State::Failed;
        if let Some(bus_master) = &mut self.bus_master {
            dma::stop(bus_master)?;
        }
        self.registers.write_control(control::RESET | control::NO_INTERRUPT)?;
        self.registers.sleep_ns(RESET_HOLD_NS);
        self.registers.write_control(control::NO_INTERRUPT)?;
        self.registers.sleep_ns(RESET_PAUSE_NS);
        self.wait_in(State::Resetting, RESET_NS);
        Ok(())
    }

    fn try_start(&mut self, unit: usize, operation: Operation, sector: u64, bytes: usize) -> Result<Progress, Failure> {
        let Disk { identity, block_sectors } = self.disks[unit].ok_or(Errno::ENXIO)?;
        let direction = match operation {
            Operation::Flush if identity.flush => {
                self.send(unit, Command::flush(identity.lba48))?;
                return Ok(self.wait_in(State::NoData, COMMAND_NS));
            }
            Operation::Flush => return Ok(Progress::Ended),
            _ if bytes == 0 => return Ok(Progress::Ended),
            Operation::Read => Direction::Read,
            Operation::Write => Direction::Write,
        };
        if self.has_dma(unit) {
            return self.start_dma(unit, direction, sector, bytes);
        }
        self.send(unit, Command::pio(direction, block_sectors, sector, bytes / SECTOR_BYTES))?;
        let blocks = Blocks { done: 0, end: bytes, block_bytes: block_sectors * SECTOR_BYTES };
        match direction {
            Direction::Read => Ok(self.wait_in(State::Reading(blocks), COMMAND_NS)),
            Direction::Write => {
                self.wait_in(State::Writing(blocks), COMMAND_NS);
                if self.poll_quickly()? { self.step() } else { Ok(Progress::Pending) }
            }
        }
    }

    fn advance(&mut self) -> Result<Progress, Failure> {
        let progress = self.step();
        self.settle(progress)
    }

    /// Leaves the state that has ended or failed.
    fn settle(&mut self, progress: Result<Progress, Failure>) -> Result<Progress, Failure> {
        match progress {
            Ok(Progress::Pending) => {}
            Ok(Progress::Ended | Progress::Ready) => self.state = State::Idle,
            Err(_) => self.state = State::Failed,
        }
        progress
    }

    /// Takes the step that the status permits.
    fn step(&mut self) -> Result<Progress, Failure> {
        // In the middle of a DMA command the disk may look idle, so the bus master's interrupt bit decides.
        if self.state == State::Dma && !self.has_timed_out() && !self.bus_master_has_interrupted()? {
            return Ok(Progress::Pending);
        }
        let status = self.registers.read(register::STATUS)?;
        let is_busy = status & status::BUSY != 0;
        match self.state {
            State::Idle | State::Failed => Ok(Progress::Pending),
            _ if is_busy && !self.has_timed_out() => Ok(Progress::Pending),
            _ if is_busy => Err(Failure::Silent),
            State::Resetting => self.prepare_disks(),
            State::Reading(blocks) => self.read_block(status, blocks),
            State::Writing(blocks) if !blocks.is_done() => self.write_block(status, blocks),
            State::Dma => self.finish_dma(status),
            State::Writing(_) | State::NoData => self.check(status, false).map(|()| Progress::Ended),
        }
    }

    /// Waits for the next step. Returns [`Progress::Pending`].
    fn wait_in(&mut self, state: State, limit_ns: u64) -> Progress {
        self.state = state;
        self.deadline_ns = self.registers.now_ns() + limit_ns;
        Progress::Pending
    }

    fn has_timed_out(&self) -> bool {
        self.registers.now_ns() >= self.deadline_ns
    }

    /// Returns whether no interrupt ends this state.
    fn is_polled(&self) -> bool {
        matches!(self.state, State::Resetting | State::Writing(Blocks { done: 0, .. }))
    }

    fn has_dma(&self, unit: usize) -> bool {
        self.bus_master.is_some() && self.identity(unit).is_some_and(|identity| identity.dma)
    }

    fn bus_master_has_interrupted(&mut self) -> Result<bool, Errno> {
        self.bus_master.as_mut().map_or(Ok(true), dma::has_interrupted)
    }

    fn start_dma(&mut self, unit: usize, direction: Direction, sector: u64, bytes: usize) -> Result<Progress, Failure> {
        let bus_master = self.bus_master.as_mut().ok_or(Errno::ENXIO)?;
        dma::prepare(bus_master, direction, bytes)?;
        self.send(unit, Command::dma(direction, sector, bytes / SECTOR_BYTES))?;
        if let Some(bus_master) = &mut self.bus_master {
            dma::start(bus_master, direction)?;
        }
        Ok(self.wait_in(State::Dma, COMMAND_NS))
    }

    fn finish_dma(&mut self, status: u8) -> Result<Progress, Failure> {
        let ended = self.bus_master.as_mut().map_or(Ok(0), dma::stop)?;
        self.check(status, false)?;
        dma::check(ended).map_err(Failure::BusMaster)?;
        Ok(Progress::Ended)
    }

    fn read_block(&mut self, status: u8, blocks: Blocks) -> Result<Progress, Failure> {
        self.check(status, true)?;
        let (block, blocks) = blocks.next();
        self.registers.read_data(&mut self.buffer[block])?;
        Ok(if blocks.is_done() { Progress::Ended } else { self.wait_in(State::Reading(blocks), COMMAND_NS) })
    }

    fn write_block(&mut self, status: u8, blocks: Blocks) -> Result<Progress, Failure> {
        self.check(status, true)?;
        let (block, blocks) = blocks.next();
        self.registers.write_data(&self.buffer[block])?;
        Ok(self.wait_in(State::Writing(blocks), COMMAND_NS))
    }

    fn check(&mut self, status: u8, expects_data: bool) -> Result<(), Failure> {
        if status & (status::ERROR | status::DEVICE_FAULT) != 0 {
            return Err(Failure::Disk(status, self.registers.read(register::ERROR)?));
        }
        let has_data = status & status::DATA_REQUEST != 0;
        if has_data == expects_data { Ok(()) } else { Err(Failure::OutOfStep(status)) }
    }

    /// Restores the disks' settings after a reset, and permits interrupts again.
    fn prepare_disks(&mut self) -> Result<Progress, Failure> {
        for unit in 0..UNITS {
            let Some(disk) = self.disks[unit].filter(|disk| disk.block_sectors > 1) else { continue };
            self.send(unit, Command::set_multiple(disk.block_sectors))?;
            self.poll(READY_NS)?;
            let status = self.registers.read(register::STATUS)?;
            self.check(status, false)?;
        }
        self.registers.write_control(0)?;
        Ok(Progress::Ready)
    }

    /// Identifies the device in `unit`. `None`: no device, or not a supported disk.
    fn identify(&mut self, unit: usize) -> Result<Option<Disk>, Failure> {
        self.select(unit, 0)?;
        if matches!(self.registers.alternate_status()?, 0 | FLOATING) {
            return Ok(None);
        }
        self.registers.write(register::COMMAND, Command::IDENTIFY)?;
        self.poll(COMMAND_NS)?;
        // Devices that are no disks refuse the command.
        if self.registers.read(register::STATUS)? & status::DATA_REQUEST == 0 {
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
        self.poll(READY_NS)?;
        let device = Command::LINEAR | (unit as u8) << 4 | lba_high_bits & 15;
        Ok(self.registers.write(register::DEVICE, device)?)
    }

    /// Sends a command to the disk in `unit`.
    fn send(&mut self, unit: usize, command: Command) -> Result<(), Failure> {
        self.select(unit, command.device_bits())?;
        for (register, value) in command.registers() {
            self.registers.write(register, value)?;
        }
        Ok(self.registers.write(register::COMMAND, command.code())?)
    }

    /// Waits until the disk is not busy.
    fn poll(&mut self, limit_ns: u64) -> Result<(), Failure> {
        let deadline_ns = self.registers.now_ns() + limit_ns;
        while !self.poll_quickly()? {
            if self.registers.now_ns() >= deadline_ns {
                return Err(Failure::Silent);
            }
            self.registers.sleep_ns(POLL_NS);
        }
        Ok(())
    }

    /// Returns whether the disk is not busy, after a short wait without sleep.
    fn poll_quickly(&mut self) -> Result<bool, Errno> {
        for _ in 0..QUICK_POLLS {
            if self.registers.alternate_status()? & status::BUSY == 0 {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

#[cfg(test)]
#[path = "channel_tests.rs"]
mod tests;
