//! ata: up to four ATA disks on the two channels of an IDE controller, as block devices: minor 0 and 64 on the first channel, 128 and 192
//! on the second (as on Linux, with room for partitions).
//!
//! Data moves by the controller's bus master where controller and disk can, otherwise, or with the argument `mode=pio`, through the
//! data register by string instructions.
//!
//! * `identity`, `command`: the disk's words; `channel`: commands, errors, resets; `dma`: the bus master;
//! * `registers`: what these need of the hardware, `controller`: the hardware; this file: messages.
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
use driver::Client;
use driver::block::{BlockDriver, Geometry};
use server::Inbox;

sys::program!(main);

/// Most bytes of one command.
const COMMAND_BYTES: usize = COMMAND_SECTORS * SECTOR_BYTES;
/// Disks of a channel.
const UNITS: usize = 2;
/// From one disk's minor number to the next one's.
const MINOR_STEP: usize = 64;

fn main(start: sys::Start) {
    let inbox = Inbox::default();
    match set_up(&start, &inbox) {
        Ok(disks) => driver::block::serve_from(disks, &inbox),
        Err(error) => server::not_ready(error),
    }
}

/// `ENODEV`: there is no disk.
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
    /// The channels, or why one is missing.
    channels: [Result<Channel<ChannelPorts, Master>, Errno>; controller::CHANNELS],
    /// Data on its way through the data register.
    buffer: Vec<u8>,
}

/// Channel and unit of a minor number.
fn place(minor: u64) -> Result<(usize, usize), Errno> {
    let minor = usize::try_from(minor).map_err(|_| Errno::ENXIO)?;
    let disk = minor / MINOR_STEP;
    if minor.is_multiple_of(MINOR_STEP) { Ok((disk / UNITS, disk % UNITS)) } else { Err(Errno::ENXIO) }
}

impl Disks {
    /// The channel and unit of a minor number, and the buffer.
    fn at(&mut self, minor: u64) -> Result<(&mut Channel<ChannelPorts, Master>, usize, &mut [u8]), Errno> {
        let (channel, unit) = place(minor)?;
        let channel = self.channels.get_mut(channel).ok_or(Errno::ENXIO)?.as_mut().map_err(|_| Errno::ENXIO)?;
        Ok((channel, unit, &mut self.buffer))
    }
}

impl BlockDriver for Disks {
    fn geometry(&self, minor: u64) -> Result<Geometry, Errno> {
        let (channel, unit) = place(minor)?;
        let channel = self.channels.get(channel).and_then(|channel| channel.as_ref().ok());
        let identity = channel.and_then(|channel| channel.identity(unit)).ok_or(Errno::ENXIO)?;
        let sector_bytes = SECTOR_BYTES as u64;
        Ok(Geometry { bytes: identity.sectors.saturating_mul(sector_bytes), sector_bytes, read_only: false })
    }

    fn read(&mut self, minor: u64, position: u64, client: &Client) -> Result<(), Errno> {
        let (channel, unit, buffer) = self.at(minor)?;
        for (offset, bytes) in pieces(client.bytes()) {
            let sector = (position + offset) / SECTOR_BYTES as u64;
            if channel.has_dma(unit) {
                channel.transfer(unit, sector, Data::Dma(Direction::Read, bytes))?;
                let memory = channel.bus_master().ok_or(Errno::ENXIO)?.memory();
                client.put_region(offset, memory, controller::DATA, bytes)?;
            } else {
                channel.transfer(unit, sector, Data::Read(&mut buffer[..bytes]))?;
                client.put(offset, &buffer[..bytes])?;
            }
        }
        Ok(())
    }

    fn write(&mut self, minor: u64, position: u64, client: &Client) -> Result<(), Errno> {
        let (channel, unit, buffer) = self.at(minor)?;
        for (offset, bytes) in pieces(client.bytes()) {
            let sector = (position + offset) / SECTOR_BYTES as u64;
            if channel.has_dma(unit) {
                let memory = channel.bus_master().ok_or(Errno::ENXIO)?.memory();
                client.fetch_region(offset, memory, controller::DATA, bytes)?;
                channel.transfer(unit, sector, Data::Dma(Direction::Write, bytes))?;
            } else {
                client.fetch(offset, &mut buffer[..bytes])?;
                channel.transfer(unit, sector, Data::Write(&buffer[..bytes]))?;
            }
        }
        Ok(())
    }

    fn flush(&mut self, minor: u64) -> Result<(), Errno> {
        let (channel, unit, _) = self.at(minor)?;
        channel.flush(unit)
    }
}

/// Offset and length of the commands that a transfer is made of.
fn pieces(bytes: u64) -> impl Iterator<Item = (u64, usize)> {
    let step = COMMAND_BYTES as u64;
    (0..bytes.div_ceil(step)).map(move |piece| (piece * step, (bytes - piece * step).min(step) as usize))
}
