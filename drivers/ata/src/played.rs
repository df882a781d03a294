//! A channel played by the tests: two disks with content, a bus master, and injected faults.

use crate::channel::{Channel, Memory, SECTOR_BYTES};
use crate::command::{Command, Direction};
use crate::dma;
use crate::identity::{LBA28_SECTORS, tests::identification};
use crate::queue::{Queue, Work};
use crate::registers::{BusMaster, Registers, control, register, status};
use abi::Errno;
use driver::block::{Extent, Operation};
use std::cell::{Cell, Ref, RefCell, RefMut};
use std::{rc::Rc, vec, vec::Vec};

/// Sectors between two interrupts.
pub const BLOCK: usize = 16;
const PHYSICAL: u64 = 0x1_f000;
const MEMORY_BYTES: usize = 0x2_0000;
/// Status of a disk that is ready, offers or requests data, has failed.
const READY: u8 = 0x50;
const DATA: u8 = 0x58;
const FAILED: u8 = 0x51;

/// Fault of the next command that transfers data or flushes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fault {
    /// None: the command works.
    None,
    /// Ends with an error after this many bytes through the data register.
    ErrorAfter(usize),
    /// Never ends.
    Silence,
    /// Works without any interrupt.
    NoInterrupts,
    /// The bus master reports an error.
    BusMaster,
}

/// One disk.
#[derive(Default)]
pub struct Medium {
    /// Its content from sector `first` on.
    sectors: Vec<u8>,
    /// The disk's number of its first sector that is in `sectors`: large disks need not be in memory.
    first: u64,
    multiple: usize,
}

/// The device's side.
#[derive(Default)]
pub struct Player {
    disks: [Option<Medium>; 2],
    /// Faults of the next commands.
    pub faults: Vec<Fault>,
    /// SET MULTIPLE fails.
    pub refuses_settings: bool,
    /// Each step of a transfer, a flush or a reset leaves the disk busy until [`Player::finish_step`].
    pub slow: bool,
    /// Number of resets.
    pub resets: usize,
    /// Codes of all commands.
    pub commands: Vec<u8>,
    /// Interrupts that the driver has not seen yet.
    pub interrupts: usize,
    /// How often the driver unmasked its line.
    pub unmasked: usize,
    /// The bus master's data memory.
    memory: Vec<u8>,
    fault: Option<Fault>,
    /// Status at the end of the step in progress, and whether the disk then interrupts.
    step: Option<(u8, bool)>,
    /// Command block as written; wide registers remember what was there before.
    written: [u8; 8],
    previous: [u8; 8],
    control: u8,
    status: u8,
    /// Data in transfer: the rest to be read, or the part written so far.
    data: Vec<u8>,
    /// Bytes of the command, those that went through the data register, and their position on the disk.
    expected: usize,
    moved: usize,
    position: usize,
    table: Vec<(u32, u16)>,
    bus_command: u8,
    bus_status: u8,
    pending_dma: Option<Direction>,
}

impl Player {
    fn unit(&self) -> usize {
        usize::from(self.written[6] >> 4 & 1)
    }

    fn interrupt(&mut self) {
        if self.control & control::NO_INTERRUPT == 0 && self.fault != Some(Fault::NoInterrupts) {
            self.interrupts += 1;
        }
    }

    /// Reaches this status at the end of a step.
    fn reach(&mut self, status: u8, interrupts: bool) {
        self.status = status::BUSY;
        self.step = Some((status, interrupts));
        if !self.slow {
            self.finish_step();
        }
    }

    /// Ends the step in progress.
    pub fn finish_step(&mut self) {
        self.run_bus_master();
        let Some((status, interrupts)) = self.step.take() else { return };
        self.status = status;
        if interrupts {
            self.interrupt();
        }
    }

    fn wide(code: u8) -> bool {
        matches!(code, 0x24 | 0x25 | 0x29 | 0x34 | 0x35 | 0x39)
    }

    fn sector_and_count(&self, code: u8) -> (u64, usize) {
        let [_, _, count, low, mid, high, device, _] = self.written.map(u64::from);
        let sector = low | mid << 8 | high << 16;
        if Self::wide(code) {
            let [_, _, upper_count, fourth, fifth, sixth, ..] = self.previous.map(u64::from);
            let count = upper_count << 8 | count;
            return (sector | fourth << 24 | fifth << 32 | sixth << 40, count as usize);
        }
        (sector | (device & 15) << 24, if count == 0 { 256 } else { count as usize })
    }

    fn command(&mut self, code: u8) {
        assert_eq!(self.status & status::BUSY, 0, "a command for a busy disk");
        assert_eq!(self.bus_command & 1, 0, "a command while the bus master runs");
        self.commands.push(code);
        let is_setting = matches!(code, Command::IDENTIFY | 0xc6);
        self.fault = (!is_setting && !self.faults.is_empty()).then(|| self.faults.remove(0));
        self.moved = 0;
        match self.fault {
            Some(Fault::ErrorAfter(0)) => self.reach(FAILED, true),
            Some(Fault::Silence) => self.status = READY | status::BUSY,
            _ => self.start(code),
        }
        if self.fault == Some(Fault::BusMaster) {
            self.bus_status |= 2;
        }
        if is_setting {
            self.finish_step();
        }
    }

    fn start(&mut self, code: u8) {
        let (sector, count) = self.sector_and_count(code);
        let unit = self.unit();
        let Some(disk) = &mut self.disks[unit] else { return };
        self.position = (sector.wrapping_sub(disk.first) as usize).wrapping_mul(SECTOR_BYTES);
        self.expected = count * SECTOR_BYTES;
        match code {
            Command::IDENTIFY => {
                let size = disk.first + (disk.sectors.len() / SECTOR_BYTES) as u64;
                self.data = identification(size, size > LBA28_SECTORS).to_vec();
                self.reach(DATA, true);
            }
            0xc6 if self.refuses_settings => self.reach(FAILED, true),
            0xc6 => {
                disk.multiple = count;
                self.reach(READY, true);
            }
            0xe7 | 0xea => self.reach(READY, true),
            0x20 | 0x24 | 0xc4 | 0x29 => {
                assert!(matches!(code, 0x20 | 0x24) || disk.multiple == BLOCK, "READ MULTIPLE was not set up");
                self.data = disk.sectors[self.position..][..self.expected].to_vec();
                self.reach(DATA, true);
            }
            0x30 | 0x34 | 0xc5 | 0x39 => {
                self.data = Vec::new();
                // The first block is requested without an interrupt.
                self.reach(DATA, false);
            }
            // The disk looks idle while the bus master works.
            0xc8 | 0x25 => self.pending_dma = Some(Direction::Read),
            0xca | 0x35 => self.pending_dma = Some(Direction::Write),
            _ => panic!("unknown command {code:#x}"),
        }
    }

    /// Reaches the status after a block through the data register.
    fn pass_block(&mut self, bytes: usize, is_last: bool) {
        self.moved += bytes;
        match self.fault {
            Some(Fault::ErrorAfter(limit)) if self.moved >= limit => self.reach(FAILED, true),
            _ => self.reach(if is_last { READY } else { DATA }, true),
        }
    }

    fn run_bus_master(&mut self) {
        let Some(direction) = self.pending_dma.take_if(|_| self.bus_command & 1 != 0) else { return };
        assert_eq!(self.bus_command & 8 != 0, direction == Direction::Read);
        let regions: Vec<(usize, usize)> = self
            .table
            .iter()
            .map(|&(address, bytes)| {
                let bytes = if bytes == 0 { 0x1_0000 } else { usize::from(bytes) };
                ((u64::from(address) - PHYSICAL) as usize, bytes)
            })
            .collect();
        assert_eq!(regions.iter().map(|region| region.1).sum::<usize>(), self.expected);
        let (unit, mut at) = (self.unit(), self.position);
        for (start, bytes) in regions {
            let disk = &mut self.disks[unit].as_mut().expect("has the command").sectors[at..at + bytes];
            let memory = &mut self.memory[start..start + bytes];
            match direction {
                Direction::Read => memory.copy_from_slice(disk),
                Direction::Write => disk.copy_from_slice(memory),
            }
            at += bytes;
        }
        if self.fault != Some(Fault::NoInterrupts) {
            self.bus_status |= 4;
        }
        self.interrupt();
    }
}

/// The driver's side, and a clock that channels share.
#[derive(Clone)]
pub struct Shared {
    player: Rc<RefCell<Player>>,
    clock_ns: Rc<Cell<u64>>,
}

impl Shared {
    /// Makes a channel with these disks.
    pub fn new(disks: [Option<Medium>; 2], clock_ns: &Rc<Cell<u64>>) -> Shared {
        let player = Player { disks, status: READY, memory: vec![0; MEMORY_BYTES], ..Player::default() };
        Shared { player: Rc::new(RefCell::new(player)), clock_ns: clock_ns.clone() }
    }

    /// Returns the device.
    pub fn player(&self) -> RefMut<'_, Player> {
        self.player.borrow_mut()
    }

    /// Returns the content of a disk.
    pub fn sectors(&self, unit: usize) -> Ref<'_, [u8]> {
        Ref::map(self.player.borrow(), |player| &player.disks[unit].as_ref().expect("is there").sectors[..])
    }

    /// Takes an interrupt that the driver has not seen yet.
    pub fn take_interrupt(&self) -> bool {
        let mut player = self.player();
        let came = player.interrupts > 0;
        player.interrupts -= usize::from(came);
        came
    }

    /// Lets the time pass until `time_ns`.
    pub fn pass_until(&self, time_ns: u64) {
        self.clock_ns.set(self.clock_ns.get().max(time_ns));
    }
}

impl Registers for Shared {
    fn read(&mut self, register: u16) -> Result<u8, Errno> {
        if register == register::STATUS {
            return self.alternate_status();
        }
        Ok(if register == register::ERROR { 0x40 } else { 0 })
    }

    fn write(&mut self, register: u16, value: u8) -> Result<(), Errno> {
        let mut player = self.player();
        if register == register::COMMAND {
            player.command(value);
        } else {
            let register = usize::from(register);
            player.previous[register] = player.written[register];
            player.written[register] = value;
        }
        Ok(())
    }

    fn alternate_status(&mut self) -> Result<u8, Errno> {
        let player = self.player();
        Ok(if player.disks[player.unit()].is_some() { player.status } else { 0 })
    }

    fn write_control(&mut self, value: u8) -> Result<(), Errno> {
        let mut player = self.player();
        if player.control & control::RESET != 0 && value & control::RESET == 0 {
            player.resets += 1;
            player.written = [0; 8];
            player.pending_dma = None;
            player.fault = None;
            player.reach(READY, false);
            for disk in player.disks.iter_mut().flatten() {
                disk.multiple = 0;
            }
        }
        player.control = value;
        Ok(())
    }

    fn read_data(&mut self, into: &mut [u8]) -> Result<(), Errno> {
        let mut player = self.player();
        assert_eq!(player.status, DATA, "the disk offers no data");
        into.copy_from_slice(&player.data[..into.len()]);
        player.data.drain(..into.len());
        if player.data.is_empty() {
            // No interrupt follows the last block.
            player.status = READY;
        } else {
            player.pass_block(into.len(), false);
        }
        Ok(())
    }

    fn write_data(&mut self, from: &[u8]) -> Result<(), Errno> {
        let mut player = self.player();
        assert_eq!(player.status, DATA, "the disk requests no data");
        player.data.extend_from_slice(from);
        let is_last = player.data.len() == player.expected;
        if is_last {
            let (unit, at) = (player.unit(), player.position);
            let data = core::mem::take(&mut player.data);
            let disk = player.disks[unit].as_mut().expect("has the command");
            disk.sectors[at..at + data.len()].copy_from_slice(&data);
        }
        player.pass_block(from.len(), is_last);
        Ok(())
    }

    fn unmask_interrupt(&mut self) {
        self.player().unmasked += 1;
    }

    fn sleep_ns(&mut self, duration_ns: u64) {
        self.pass_until(self.now_ns() + duration_ns);
    }

    fn now_ns(&self) -> u64 {
        self.clock_ns.get()
    }
}

impl BusMaster for Shared {
    fn read(&mut self, register: u16) -> Result<u8, Errno> {
        assert_eq!(register, dma::register::STATUS);
        Ok(self.player().bus_status)
    }

    fn write(&mut self, register: u16, value: u8) -> Result<(), Errno> {
        let mut player = self.player();
        match register {
            dma::register::COMMAND => {
                player.bus_command = value;
                if !player.slow {
                    player.run_bus_master();
                }
            }
            dma::register::STATUS => player.bus_status &= !(value & 6),
            _ => panic!("no register {register}"),
        }
        Ok(())
    }

    fn set_table(&mut self, regions: &[(u32, u16)]) -> Result<(), Errno> {
        self.player().table = regions.to_vec();
        Ok(())
    }

    fn data_address(&self) -> u64 {
        PHYSICAL
    }
}

/// A client's transfer.
#[derive(Clone, Debug)]
pub struct Task {
    operation: Operation,
    sector: u64,
    /// The client's buffer. `None`: its grant has been revoked.
    data: Option<Rc<RefCell<Vec<u8>>>>,
    bytes: usize,
}

impl Task {
    /// Reads this many sectors.
    pub fn read(sector: u64, count: usize) -> Task {
        Task { operation: Operation::Read, ..Task::write(sector, &vec![0; count * SECTOR_BYTES]) }
    }

    /// Writes this data.
    pub fn write(sector: u64, data: &[u8]) -> Task {
        let buffer = Some(Rc::new(RefCell::new(data.to_vec())));
        Task { operation: Operation::Write, sector, data: buffer, bytes: data.len() }
    }

    /// Flushes.
    pub fn flush() -> Task {
        Task { operation: Operation::Flush, ..Task::write(0, &[]) }
    }

    /// The same with a revoked grant.
    pub fn revoked(self) -> Task {
        Task { data: None, ..self }
    }

    /// Returns what is in the client's buffer.
    pub fn data(&self) -> Vec<u8> {
        self.data.as_ref().map(|data| data.borrow().clone()).unwrap_or_default()
    }
}

impl Extent for Task {
    fn operation(&self) -> Operation {
        self.operation
    }
    fn position(&self) -> u64 {
        self.sector * SECTOR_BYTES as u64
    }
    fn bytes(&self) -> u64 {
        self.bytes as u64
    }
}

impl Work<Shared> for Task {
    fn fetch(&self, offset: u64, into: Memory<Shared>) -> Result<(), Errno> {
        let data = self.data.as_ref().ok_or(Errno::EPERM)?.borrow();
        let data = &data[offset as usize..];
        match into {
            Memory::Buffer(buffer) => buffer.copy_from_slice(&data[..buffer.len()]),
            Memory::BusMaster(shared, bytes) => shared.player().memory[..bytes].copy_from_slice(&data[..bytes]),
        }
        Ok(())
    }
    fn put(&self, offset: u64, from: Memory<Shared>) -> Result<(), Errno> {
        let mut data = self.data.as_ref().ok_or(Errno::EPERM)?.borrow_mut();
        let data = &mut data[offset as usize..];
        match from {
            Memory::Buffer(buffer) => data[..buffer.len()].copy_from_slice(buffer),
            Memory::BusMaster(shared, bytes) => data[..bytes].copy_from_slice(&shared.player().memory[..bytes]),
        }
        Ok(())
    }
}

/// Returns the content of a fresh disk.
pub fn pattern(sectors: usize) -> Vec<u8> {
    (0..sectors * SECTOR_BYTES).map(|index| (index / SECTOR_BYTES) as u8 ^ index as u8).collect()
}

/// Makes a disk of this many sectors.
pub fn medium(sectors: usize) -> Medium {
    large_medium(0, sectors)
}

/// Makes a disk of this many sectors after the `first` ones, which it cannot transfer.
pub fn large_medium(first: u64, sectors: usize) -> Medium {
    Medium { sectors: pattern(sectors), first, ..Medium::default() }
}

/// Makes the channel of these disks.
pub fn channel(shared: &Shared, by_dma: bool) -> Channel<Shared, Shared> {
    Channel::find(shared.clone(), by_dma.then(|| shared.clone())).expect("has a disk")
}

/// Makes a channel with one disk of 600 sectors.
pub fn one_disk(by_dma: bool) -> (Queue<Shared, Shared, Task>, Shared) {
    let shared = Shared::new([Some(medium(600)), None], &Rc::default());
    (Queue::new(channel(&shared, by_dma)), shared)
}
