//! ata: up to four ATA disks on the two channels of an IDE controller, as block devices: minor 0 and 64 on the first channel, 128 and 192
//! on the second (as on Linux, with room for partitions).
//!
//! Data is transferred by the controller's bus master if controller and disk support it; otherwise, or with the argument `mode=pio`,
//! by string instructions on the data register.
//!
//! The channels work at the same time, each on one command. Interrupts end the commands, and one alarm those that time out.
//!
//! * `identity`, `command`: the disk's words; `channel`: the command in progress; `queue`: the transfers of a channel, further attempts;
//!   `disks`: both channels; `dma`: the bus master;
//! * `registers`: the interface to the hardware, `controller`: its implementation; this file: messages.
#![cfg_attr(not(test), no_std, no_main)]
#![forbid(unsafe_code)]

extern crate alloc;

mod channel;
mod command;
mod controller;
mod disks;
mod dma;
mod identity;
#[cfg(test)]
mod played;
mod queue;
mod registers;

use abi::Errno;
use channel::{Channel, Memory, SECTOR_BYTES};
use controller::{ChannelPorts, Master};
use disks::Disks;
use driver::Answers;
use driver::block::{BlockDriver, Geometry, Transfer};
use queue::{Queue, Work};
use server::Inbox;

sys::program!(main);

fn main(start: sys::Start) {
    let inbox = Inbox::default();
    match set_up(&start, &inbox) {
        Ok(disks) => driver::block::serve_from(Driver { disks, inbox: inbox.clone() }, &inbox),
        Err(error) => server::not_ready(error),
    }
}

/// `ENODEV`: no disk.
fn set_up(start: &sys::Start, inbox: &Inbox) -> Result<Disks<ChannelPorts, Master, Transfer>, Errno> {
    let by_dma = start.argument("mode") != Some("pio");
    let channels = controller::channels(inbox, by_dma)?;
    Disks::new(channels.map(|(ports, master)| Channel::find(ports, master).ok().map(Queue::new))).ok_or(Errno::ENODEV)
}

impl Work<Master> for Transfer {
    fn fetch(&self, offset: u64, into: Memory<Master>) -> Result<(), Errno> {
        match into {
            Memory::Buffer(buffer) => self.client.fetch(offset, buffer),
            Memory::BusMaster(master, bytes) => {
                self.client.fetch_region(offset, master.memory(), controller::DATA, bytes)
            }
        }
    }
    fn put(&self, offset: u64, from: Memory<Master>) -> Result<(), Errno> {
        match from {
            Memory::Buffer(buffer) => self.client.put(offset, buffer),
            Memory::BusMaster(master, bytes) => {
                self.client.put_region(offset, master.memory(), controller::DATA, bytes)
            }
        }
    }
}

struct Driver {
    disks: Disks<ChannelPorts, Master, Transfer>,
    inbox: Inbox,
}

impl Driver {
    /// Answers the transfers that have ended, and sees to the alarm for the others.
    fn settle(&mut self, answers: &mut Answers) {
        self.disks.take_ended().for_each(|(transfer, result)| transfer.end(result, answers));
        if let Some(wake_ns) = self.disks.wake_ns() {
            self.inbox.set_alarm(wake_ns);
        }
    }
}

impl BlockDriver for Driver {
    fn geometry(&self, minor: u64) -> Result<Geometry, Errno> {
        let sector_bytes = SECTOR_BYTES as u64;
        let bytes = self.disks.identity(minor)?.sectors.saturating_mul(sector_bytes);
        Ok(Geometry { bytes, sector_bytes, read_only: false })
    }

    fn begin(&mut self, transfer: Transfer, answers: &mut Answers) {
        if let Err((transfer, error)) = self.disks.begin(transfer.minor, transfer) {
            transfer.end(Err(error), answers);
        }
        self.settle(answers);
    }

    fn interrupt(&mut self, hooks: u64, answers: &mut Answers) {
        self.disks.interrupt(hooks);
        self.settle(answers);
    }

    fn alarm(&mut self, _: u64, answers: &mut Answers) {
        self.disks.alarm();
        self.settle(answers);
    }
}
