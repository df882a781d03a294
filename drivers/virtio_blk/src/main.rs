//! virtio_blk: a virtio disk as block device, minor 0.
//!
//! * `queue`, `device`: virtio, over traits; `pci`: the device's registers and interrupt on the PCI bus; this file: messages.
#![cfg_attr(not(test), no_std, no_main)]
#![forbid(unsafe_code)]

mod device;
mod pci;
mod queue;

use abi::Errno;
use device::{DATA_BYTES, Device, MEMORY_BYTES, SECTOR_BYTES};
use driver::block::{BlockDriver, Geometry};
use driver::{Client, Region};
use pci::PciRegisters;
use queue::{Memory, Operation, layout};

sys::program!(main);

fn main(_: sys::Start) {
    match set_up() {
        Ok(disk) => driver::block::serve(disk),
        Err(error) => server::not_ready(error),
    }
}

fn set_up() -> Result<Disk, Errno> {
    let registers = PciRegisters::find()?;
    let memory = Dma(Region::dma(MEMORY_BYTES)?);
    Device::set_up(registers, memory).map(Disk)
}

/// DMA memory of the queue.
struct Dma(Region);

impl Memory for Dma {
    fn read(&self, offset: usize, bytes: &mut [u8]) {
        self.0.copy_out(offset, bytes);
    }
    fn write(&mut self, offset: usize, bytes: &[u8]) {
        self.0.copy_in(offset, bytes);
    }
    fn physical(&self, offset: usize) -> u64 {
        self.0.physical(offset)
    }
}

struct Disk(Device<PciRegisters, Dma>);

impl BlockDriver for Disk {
    fn geometry(&self, minor: u64) -> Result<Geometry, Errno> {
        if minor != 0 {
            return Err(Errno::ENXIO);
        }
        Ok(Geometry { bytes: self.0.bytes(), sector_bytes: SECTOR_BYTES, read_only: self.0.is_read_only() })
    }

    fn read(&mut self, _: u64, position: u64, client: &Client) -> Result<(), Errno> {
        for (offset, bytes) in pieces(client.bytes()) {
            self.0.transfer(Operation::Read, position + offset, bytes)?;
            client.put_region(offset, &self.0.memory().0, layout::DATA, bytes)?;
        }
        Ok(())
    }

    fn write(&mut self, _: u64, position: u64, client: &Client) -> Result<(), Errno> {
        for (offset, bytes) in pieces(client.bytes()) {
            client.fetch_region(offset, &self.0.memory().0, layout::DATA, bytes)?;
            self.0.transfer(Operation::Write, position + offset, bytes)?;
        }
        Ok(())
    }

    fn flush(&mut self, _: u64) -> Result<(), Errno> {
        self.0.flush()
    }
}

/// Offset and length of the requests that a transfer is made of.
fn pieces(bytes: u64) -> impl Iterator<Item = (u64, usize)> {
    let step = DATA_BYTES as u64;
    (0..bytes.div_ceil(step)).map(move |piece| (piece * step, (bytes - piece * step).min(step) as usize))
}
