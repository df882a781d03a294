//! The driver against a channel simulated by the test: two disks with content, and injected faults.

use super::*;
use crate::identity::{LBA28_SECTORS, tests::identification};
use std::{cell::RefCell, rc::Rc, vec, vec::Vec};

const PHYSICAL: u64 = 0x1_f000;
const MEMORY_BYTES: usize = 0x2_0000;
const BLOCK: usize = 16;

/// Fault of the next commands.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    /// Ends with ERROR.
    Error,
    /// Never ends.
    Silence,
    /// Ends without an interrupt.
    LostInterrupt,
    /// The bus master reports an error.
    BusMaster,
}

/// One disk.
#[derive(Default)]
struct Medium {
    sectors: Vec<u8>,
    /// The disk's number of its first sector that is in `sectors`: large disks need not be in memory.
    first: u64,
    multiple: usize,
}

#[derive(Default)]
struct Player {
    disks: [Option<Medium>; 2],
    /// Command block as written; wide registers remember what was there before.
    written: [u8; 8],
    previous: [u8; 8],
    control: u8,
    status: u8,
    interrupts: usize,
    /// Data in transfer: the rest to be read, or the part written so far.
    data: Vec<u8>,
    expected: usize,
    position: usize,
    faults: Vec<Fault>,
    resets: usize,
    commands: Vec<u8>,
    memory: Vec<u8>,
    table: Vec<(u32, u16)>,
    bus_command: u8,
    bus_status: u8,
    pending_dma: Option<Direction>,
    now_ns: u64,
}

#[derive(Clone)]
struct Shared(Rc<RefCell<Player>>);

impl Player {
    fn unit(&self) -> usize {
        usize::from(self.written[6] >> 4 & 1)
    }

    fn interrupt(&mut self) {
        if self.control & control::NO_INTERRUPT == 0 {
            self.interrupts += 1;
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
        self.commands.push(code);
        let unit = self.unit();
        if self.disks[unit].is_none() {
            return;
        }
        let fault = (code != Command::IDENTIFY && !self.faults.is_empty()).then(|| self.faults.remove(0));
        match fault {
            Some(Fault::Error) => {
                self.status = 0x51;
                return self.interrupt();
            }
            Some(Fault::Silence) => {
                self.status = 0xd0;
                return;
            }
            _ => {}
        }
        self.start(unit, code);
        if fault == Some(Fault::LostInterrupt) {
            self.interrupts = 0;
        }
        if fault == Some(Fault::BusMaster) {
            self.bus_status |= 2;
        }
    }

    fn start(&mut self, unit: usize, code: u8) {
        let (sector, count) = self.sector_and_count(code);
        let Some(disk) = &mut self.disks[unit] else { return };
        let at = (sector.wrapping_sub(disk.first) as usize).wrapping_mul(SECTOR_BYTES);
        let bytes = count * SECTOR_BYTES;
        self.status = 0x50;
        match code {
            Command::IDENTIFY => {
                let size = disk.first + (disk.sectors.len() / SECTOR_BYTES) as u64;
                self.data = identification(size, size > LBA28_SECTORS).to_vec();
                self.status = 0x58;
            }
            0xc6 => disk.multiple = count,
            0xe7 | 0xea => {}
            0x20 | 0x24 | 0xc4 | 0x29 => {
                assert!(matches!(code, 0x20 | 0x24) || disk.multiple == BLOCK, "READ MULTIPLE was not set up");
                self.data = disk.sectors[at..at + bytes].to_vec();
                self.status = 0x58;
            }
            0x30 | 0x34 | 0xc5 | 0x39 => {
                self.data = Vec::new();
                (self.expected, self.position) = (bytes, at);
                // The first block is requested without an interrupt.
                self.status = 0x58;
                return;
            }
            0xc8 | 0x25 => self.pending_dma = Some(Direction::Read),
            0xca | 0x35 => self.pending_dma = Some(Direction::Write),
            _ => panic!("unknown command {code:#x}"),
        }
        if self.pending_dma.is_some() {
            (self.expected, self.position) = (bytes, at);
            return;
        }
        self.interrupt();
    }

    fn run_bus_master(&mut self) {
        let Some(direction) = self.pending_dma.take() else { return };
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
        let unit = self.unit();
        let mut at = self.position;
        for (start, bytes) in regions {
            let disk = &mut self.disks[unit].as_mut().expect("has the command").sectors[at..at + bytes];
            let memory = &mut self.memory[start..start + bytes];
            match direction {
                Direction::Read => memory.copy_from_slice(disk),
                Direction::Write => disk.copy_from_slice(memory),
            }
            at += bytes;
        }
        self.bus_status |= 4;
        self.interrupt();
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
        let mut player = self.0.borrow_mut();
        if register == register::COMMAND {
            assert_eq!(player.status & status::BUSY, 0, "a command for a busy disk");
            player.command(value);
        } else {
            let register = usize::from(register);
            player.previous[register] = player.written[register];
            player.written[register] = value;
        }
        Ok(())
    }

    fn alternate_status(&mut self) -> Result<u8, Errno> {
        let player = self.0.borrow();
        Ok(if player.disks[player.unit()].is_some() { player.status } else { 0 })
    }

    fn write_control(&mut self, value: u8) -> Result<(), Errno> {
        let mut player = self.0.borrow_mut();
        if player.control & control::RESET != 0 && value & control::RESET == 0 {
            player.resets += 1;
            player.status = 0x50;
            player.written = [0; 8];
            player.pending_dma = None;
            for disk in player.disks.iter_mut().flatten() {
                disk.multiple = 0;
            }
        }
        player.control = value;
        Ok(())
    }

    fn read_data(&mut self, into: &mut [u8]) -> Result<(), Errno> {
        let mut player = self.0.borrow_mut();
        into.copy_from_slice(&player.data[..into.len()]);
        player.data.drain(..into.len());
        if player.data.is_empty() {
            player.status = 0x50;
        } else {
            player.interrupt();
        }
        Ok(())
    }

    fn write_data(&mut self, from: &[u8]) -> Result<(), Errno> {
        let mut player = self.0.borrow_mut();
        player.data.extend_from_slice(from);
        if player.data.len() == player.expected {
            player.status = 0x50;
            let (unit, at) = (player.unit(), player.position);
            let data = core::mem::take(&mut player.data);
            let disk = player.disks[unit].as_mut().expect("has the command");
            disk.sectors[at..at + data.len()].copy_from_slice(&data);
        }
        player.interrupt();
        Ok(())
    }

    fn wait(&mut self, deadline_ns: u64) -> bool {
        let mut player = self.0.borrow_mut();
        if player.interrupts == 0 {
            player.now_ns = player.now_ns.max(deadline_ns);
            return false;
        }
        player.interrupts -= 1;
        true
    }

    fn sleep_ns(&mut self, duration_ns: u64) {
        self.0.borrow_mut().now_ns += duration_ns;
    }

    fn now_ns(&self) -> u64 {
        self.0.borrow().now_ns
    }
}

impl BusMaster for Shared {
    fn read(&mut self, register: u16) -> Result<u8, Errno> {
        assert_eq!(register, dma::register::STATUS);
        Ok(self.0.borrow().bus_status)
    }

    fn write(&mut self, register: u16, value: u8) -> Result<(), Errno> {
        let mut player = self.0.borrow_mut();
        match register {
            dma::register::COMMAND => {
                player.bus_command = value;
                if value & 1 != 0 {
                    player.run_bus_master();
                }
            }
            dma::register::STATUS => player.bus_status &= !(value & 6),
            _ => panic!("no register {register}"),
        }
        Ok(())
    }

    fn set_table(&mut self, regions: &[(u32, u16)]) -> Result<(), Errno> {
        self.0.borrow_mut().table = regions.to_vec();
        Ok(())
    }

    fn data_address(&self) -> u64 {
        PHYSICAL
    }
}

fn pattern(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|index| (index / SECTOR_BYTES) as u8 ^ index as u8).collect()
}

fn player(disks: [Option<Medium>; 2]) -> Shared {
    let player = Player { disks, status: 0x50, memory: vec![0; MEMORY_BYTES], ..Player::default() };
    Shared(Rc::new(RefCell::new(player)))
}

fn medium(sectors: usize) -> Medium {
    Medium { sectors: pattern(sectors * SECTOR_BYTES), ..Medium::default() }
}

fn one_disk() -> (Channel<Shared, Shared>, Shared) {
    let shared = player([Some(medium(600)), None]);
    let channel = Channel::find(shared.clone(), Some(shared.clone())).expect("has a disk");
    (channel, shared)
}

#[test]
fn the_disks_of_a_channel_are_found() {
    let (channel, _) = one_disk();
    assert_eq!(channel.identity(0).map(|identity| identity.sectors), Some(600));
    assert_eq!(channel.identity(1), None);
    let second = player([None, Some(medium(10))]);
    let channel = Channel::find(second.clone(), Some(second)).expect("has a disk");
    assert!(channel.identity(0).is_none() && channel.identity(1).is_some());
    let nothing = player([None, None]);
    assert_eq!(Channel::find(nothing.clone(), Some(nothing)).err(), Some(Errno::ENXIO));
}

#[test]
fn sectors_are_read_through_the_data_register_in_blocks() {
    let (mut channel, _) = one_disk();
    for (sector, count) in [(0, 1), (7, 16), (100, 40), (300, 256)] {
        let mut into = vec![0; count * SECTOR_BYTES];
        assert_eq!(channel.transfer(0, sector, Data::Read(&mut into)), Ok(()));
        assert!(into == pattern(600 * SECTOR_BYTES)[sector as usize * SECTOR_BYTES..][..into.len()]);
    }
}

#[test]
fn what_is_written_is_read_back() {
    let (mut channel, shared) = one_disk();
    let data: Vec<u8> = pattern(33 * SECTOR_BYTES).iter().map(|byte| !byte).collect();
    assert_eq!(channel.transfer(0, 11, Data::Write(&data)), Ok(()));
    let mut into = vec![0; data.len()];
    assert_eq!(channel.transfer(0, 11, Data::Read(&mut into)), Ok(()));
    assert!(into == data);
    assert_eq!(channel.flush(0), Ok(()));
    assert_eq!(shared.0.borrow().commands.last(), Some(&0xe7));
}

#[test]
fn the_bus_master_moves_data_across_its_boundaries() {
    let (mut channel, shared) = one_disk();
    assert!(channel.has_dma(0));
    let bytes = 200 * SECTOR_BYTES;
    assert_eq!(channel.transfer(0, 50, Data::Dma(Direction::Read, bytes)), Ok(()));
    assert!(shared.0.borrow().memory[..bytes] == pattern(600 * SECTOR_BYTES)[50 * SECTOR_BYTES..][..bytes]);
    shared.0.borrow_mut().memory.fill(7);
    assert_eq!(channel.transfer(0, 50, Data::Dma(Direction::Write, SECTOR_BYTES)), Ok(()));
    let disk = &shared.0.borrow().disks[0];
    assert!(disk.as_ref().is_some_and(|disk| disk.sectors[50 * SECTOR_BYTES..][..SECTOR_BYTES] == [7; SECTOR_BYTES]));
}

#[test]
fn sectors_beyond_28_bits_are_reached() {
    let first = LBA28_SECTORS - 4;
    let shared = player([Some(Medium { first, ..medium(100) }), None]);
    let mut channel = Channel::find(shared.clone(), Some(shared.clone())).expect("has a disk");
    let mut into = vec![0; 8 * SECTOR_BYTES];
    assert_eq!(channel.transfer(0, first, Data::Read(&mut into)), Ok(()));
    assert!(into == pattern(8 * SECTOR_BYTES));
    assert_eq!(channel.transfer(0, first + 50, Data::Dma(Direction::Read, SECTOR_BYTES)), Ok(()));
    assert_eq!(shared.0.borrow().commands[2..], [0x29, 0x25]);
}

#[test]
fn a_command_that_fails_is_repeated_after_a_reset() {
    for fault in [Fault::Error, Fault::Silence] {
        let (mut channel, shared) = one_disk();
        shared.0.borrow_mut().faults = vec![fault];
        let mut into = vec![0; SECTOR_BYTES];
        assert_eq!(channel.transfer(0, 3, Data::Read(&mut into)), Ok(()), "{fault:?}");
        assert!(into == pattern(4 * SECTOR_BYTES)[3 * SECTOR_BYTES..]);
        assert_eq!(shared.0.borrow().resets, 2);
    }
}

#[test]
fn an_error_of_the_bus_master_is_repeated_too() {
    let (mut channel, shared) = one_disk();
    shared.0.borrow_mut().faults = vec![Fault::BusMaster];
    assert_eq!(channel.transfer(0, 0, Data::Dma(Direction::Read, SECTOR_BYTES)), Ok(()));
    assert_eq!(shared.0.borrow().resets, 2);
}

#[test]
fn a_disk_that_goes_on_failing_gives_an_error_and_then_works_again() {
    let (mut channel, shared) = one_disk();
    // Between the tries SET MULTIPLE is given, which works.
    let order = [Fault::Error, Fault::LostInterrupt, Fault::Error, Fault::LostInterrupt, Fault::Silence];
    shared.0.borrow_mut().faults = order.to_vec();
    let mut into = vec![0; SECTOR_BYTES];
    assert_eq!(channel.transfer(0, 3, Data::Read(&mut into)), Err(Errno::EIO));
    assert_eq!(channel.transfer(0, 3, Data::Read(&mut into)), Ok(()));
}

#[test]
fn an_interrupt_that_was_lost_costs_time_only() {
    let (mut channel, shared) = one_disk();
    shared.0.borrow_mut().faults = vec![Fault::LostInterrupt];
    let mut into = vec![0; SECTOR_BYTES];
    assert_eq!(channel.transfer(0, 3, Data::Read(&mut into)), Ok(()));
    assert_eq!(shared.0.borrow().resets, 1);
}

#[test]
fn an_interrupt_left_from_before_does_no_harm() {
    let (mut channel, shared) = one_disk();
    shared.0.borrow_mut().interrupts = 1;
    assert_eq!(channel.transfer(0, 0, Data::Dma(Direction::Read, SECTOR_BYTES)), Ok(()));
    assert_eq!(shared.0.borrow().resets, 1);
}
