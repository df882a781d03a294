//! ata: up to four ATA disks on the two channels of an IDE controller, as block devices: minor 0 and 64 on the first channel, 128 and 192
//! on the second (as on Linux, with room for partitions).
//!
//! Data is transferred by the controller's bus master if controller and disk support it; otherwise, or with the argument `mode=pio`,
//! by string instructions on the data register.
//!
//! * `identity`, `command`: the disk's words; `channel`: commands, errors, resets; `dma`: the bus master;
//! * `registers`: the interface to the hardware, `controller`: its implementation; this file: messages.
#![cfg_attr(not(test), no_std, no_main)]
#![forbid(unsafe_code)]

extern crate alloc;

mod channel;
mod command;
mod controller;
mod dma;
mod identity;
mod registers;

use abi::Errno;
use alloc::vec;
use alloc::vec::Vec;
use channel::{COMMAND_SECTORS, Channel, Data, SECTOR_BYTES};
use command::Direction;
use controller::{ChannelPorts, Master};
use driver::block::{BlockDriver, Geometry, Operation, Transfer};
use driver::{Answers, Client};
use server::Inbox;

sys::program!(main);

/// Limit of one command, in bytes.
const COMMAND_BYTES: usize = COMMAND_SECTORS * SECTOR_BYTES;
/// Disks of a channel.
const UNITS: usize = 2;
/// Distance of the disks' minor numbers.
const MINOR_STEP: usize = 64;

fn main(start: sys::Start) {
    let inbox = Inbox::default();
    match set_up(&start, &inbox) {
        Ok(disks) => driver::block::serve_from(disks, &inbox),
        Err(error) => server::not_ready(error),
    }
}

/// `ENODEV`: no disk.
fn set_up(start: &sys::Start, inbox: &Inbox) -> Result<Disks, Errno> {
    let by_dma = start.argument("mode") != Some("pio");
    let channels = controller::channels(inbox, by_dma)?.map(|(ports, master)| Channel::find(ports, master));
    if channels.iter().all(Result::is_err) {
        return Err(Errno::ENODEV);
    }
    Ok(Disks { channels, buffer: vec![0; COMMAND_BYTES] })
}

/// All disks.
struct Disks {
    /// The channels, or the error of their initialisation.
    channels: [Result<DiskChannel, Errno>; controller::CHANNELS],
    /// Buffer of transfers through the data register.
    buffer: Vec<u8>,
}

/// Returns channel and unit of a minor number.
fn place(minor: u64) -> Result<(usize, usize), Errno> {
    let minor = usize::try_from(minor).map_err(|_| Errno::ENXIO)?;
    let disk = minor / MINOR_STEP;
    if minor.is_multiple_of(MINOR_STEP) { Ok((disk / UNITS, disk % UNITS)) } else { Err(Errno::ENXIO) }
}

impl Disks {
    /// Returns the channel and unit of a minor number, and the buffer.
    fn at(&mut self, minor: u64) -> Result<(&mut DiskChannel, usize, &mut [u8]), Errno> {
        let (channel, unit) = place(minor)?;
        let channel = self.channels.get_mut(channel).ok_or(Errno::ENXIO)?.as_mut().map_err(|_| Errno::ENXIO)?;
        Ok((channel, unit, &mut self.buffer))
    }

    fn run(&mut self, transfer: &Transfer) -> Result<(), Errno> {
        let (channel, unit, buffer) = self.at(transfer.minor)?;
        if transfer.operation == Operation::Flush {
            return channel.flush(unit);
        }
        for (offset, bytes) in transfer.pieces(COMMAND_BYTES) {
            let sector = (transfer.position + offset) / SECTOR_BYTES as u64;
            let piece = &mut buffer[..bytes];
            match (transfer.operation, channel.has_dma(unit)) {
                (Operation::Write, true) => write_by_dma(channel, unit, sector, &transfer.client, offset, bytes)?,
                (Operation::Write, false) => {
                    transfer.client.fetch(offset, piece)?;
                    channel.transfer(unit, sector, Data::Write(piece))?;
                }
                (_, true) => read_by_dma(channel, unit, sector, &transfer.client, offset, bytes)?,
                (_, false) => {
                    channel.transfer(unit, sector, Data::Read(piece))?;
                    transfer.client.put(offset, piece)?;
                }
            }
        }
        Ok(())
    }
}

type DiskChannel = Channel<ChannelPorts, Master>;

fn read_by_dma(
    channel: &mut DiskChannel,
    unit: usize,
    sector: u64,
    client: &Client,
    offset: u64,
    bytes: usize,
) -> Result<(), Errno> {
    channel.transfer(unit, sector, Data::Dma(Direction::Read, bytes))?;
    let memory = channel.bus_master().ok_or(Errno::ENXIO)?.memory();
    client.put_region(offset, memory, controller::DATA, bytes)
}

fn write_by_dma(
    channel: &mut DiskChannel,
    unit: usize,
    sector: u64,
    client: &Client,
    offset: u64,
    bytes: usize,
) -> Result<(), Errno> {
    let memory = channel.bus_master().ok_or(Errno::ENXIO)?.memory();
    client.fetch_region(offset, memory, controller::DATA, bytes)?;
    channel.transfer(unit, sector, Data::Dma(Direction::Write, bytes))
}

impl BlockDriver for Disks {
    fn geometry(&self, minor: u64) -> Result<Geometry, Errno> {
        let (channel, unit) = place(minor)?;
        let channel = self.channels.get(channel).and_then(|channel| channel.as_ref().ok());
        let identity = channel.and_then(|channel| channel.identity(unit)).ok_or(Errno::ENXIO)?;
        let sector_bytes = SECTOR_BYTES as u64;
        Ok(Geometry { bytes: identity.sectors.saturating_mul(sector_bytes), sector_bytes, read_only: false })
    }

    fn begin(&mut self, transfer: Transfer, answers: &mut Answers) {
        let result = self.run(&transfer);
        transfer.end(result, answers);
    }
}
