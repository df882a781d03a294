//! virtio_blk: a virtio disk as block device, minor 0.
//!
//! * `disk`: requests to the device, generic over transport and memory; this file: messages, and the device on the PCI bus.
//!
//! The driver exits if the device violates the rules of virtio or stays silent with requests in flight: the successor resets the
//! device, and clients repeat their requests.
#![cfg_attr(not(test), no_std, no_main)]
#![forbid(unsafe_code)]

extern crate alloc;

mod disk;

use abi::Errno;
use disk::{Disk, MEMORY_BYTES, SECTOR_BYTES, Work};
use driver::block::{BlockDriver, Geometry, Transfer};
use driver::virtio::{Buffer, PciTransport, Window};
use driver::{Answers, Region, pci, virtio};
use sys::time;

sys::program!(main);

/// Time-out of the device with requests in flight.
const TIMEOUT_NS: u64 = 30_000_000_000;

fn main(_: sys::Start) {
    match set_up() {
        Ok(disk) => driver::block::serve(Driver { disk, watch: Watch::default() }),
        Err(error) => server::not_ready(error),
    }
}

fn set_up() -> Result<Disk<PciTransport<Window>, Region, Transfer>, Errno> {
    // The interrupt is message-signalled: it needs no `done`.
    let (transport, _) = virtio::find(1)?;
    Disk::set_up(transport, pci::dma(MEMORY_BYTES)?)
}

impl Work<Region> for Transfer {
    fn fetch(&self, offset: u64, bytes: usize, into: &mut Buffer<Region>) -> Result<(), Errno> {
        into.fetch(&self.client, offset, bytes)
    }
    fn put(&self, offset: u64, bytes: usize, from: &Buffer<Region>) -> Result<(), Errno> {
        from.put(&self.client, offset, bytes)
    }
}

/// Detects a silent device, with one alarm for many requests.
#[derive(Default)]
struct Watch {
    armed: bool,
    /// Whether the device has interrupted since the alarm was set.
    heard: bool,
}

impl Watch {
    fn arm(&mut self) {
        if !self.armed {
            let deadline_ns = time::now_ns().saturating_add(TIMEOUT_NS);
            time::set_alarm(deadline_ns).expect("virtio_blk needs the kernel call SetAlarm");
            *self = Watch { armed: true, heard: false };
        }
    }
}

struct Driver {
    disk: Disk<PciTransport<Window>, Region, Transfer>,
    watch: Watch,
}

impl Driver {
    fn answer_ended(&mut self, answers: &mut Answers) {
        self.disk.take_ended().for_each(|(transfer, result)| transfer.end(result, answers));
        if self.disk.in_flight() > 0 {
            self.watch.arm();
        }
    }
}

impl BlockDriver for Driver {
    fn geometry(&self, minor: u64) -> Result<Geometry, Errno> {
        if minor != 0 {
            return Err(Errno::ENXIO);
        }
        Ok(Geometry { bytes: self.disk.bytes(), sector_bytes: SECTOR_BYTES, read_only: self.disk.is_read_only() })
    }

    fn begin(&mut self, transfer: Transfer, answers: &mut Answers) {
        self.disk.begin(transfer);
        self.answer_ended(answers);
    }

    fn interrupt(&mut self, _: u64, answers: &mut Answers) {
        self.watch.heard = true;
        if let Err(broken) = self.disk.interrupt() {
            panic!("the device violates virtio: {broken:?}");
        }
        self.answer_ended(answers);
    }

    fn alarm(&mut self, _: u64, _: &mut Answers) {
        self.watch.armed = false;
        if self.disk.in_flight() > 0 {
            assert!(
                self.watch.heard,
                "request timed out, {} in flight; the successor resets the device",
                self.disk.in_flight()
            );
            self.watch.arm();
        }
    }
}
