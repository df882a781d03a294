//! The disk in memory: a block driver over the file of the boot archive that the system file gives it.
//!
//! Minor 0 is the whole image. What is written stays in the memory it was loaded to, so that it outlives this process, but
//! not the machine.
#![cfg_attr(target_os = "none", no_std, no_main)]
#![forbid(unsafe_code)]

use driver::block::{BlockDriver, Geometry, SECTOR_BYTES};
use driver::{Client, Region};
use sys::{Errno, Result, Start};

sys::program!(serve);

#[cfg(not(target_os = "none"))]
fn main() {
    eprintln!("ramdisk is a service of Skink; it does not run on the host");
}

#[cfg_attr(not(target_os = "none"), expect(dead_code, reason = "the host has no services"))]
fn serve(start: Start) {
    match driver::module(&start) {
        Ok(image) => driver::block::serve(RamDisk { image }),
        Err(error) => server::not_ready(error),
    }
}

struct RamDisk {
    image: Region,
}

impl BlockDriver for RamDisk {
    fn geometry(&self, minor: u64) -> Result<Geometry> {
        let bytes = self.image.len() as u64 / SECTOR_BYTES * SECTOR_BYTES;
        if minor == 0 {
            Ok(Geometry { bytes, sector_bytes: SECTOR_BYTES, read_only: false })
        } else {
            Err(Errno::ENXIO)
        }
    }

    fn read(&mut self, _: u64, position: u64, client: &Client) -> Result<()> {
        client.put_region(0, &self.image, position as usize, client.bytes() as usize)
    }

    fn write(&mut self, _: u64, position: u64, client: &Client) -> Result<()> {
        client.fetch_region(0, &self.image, position as usize, client.bytes() as usize)
    }

    fn flush(&mut self, _: u64) -> Result<()> {
        Ok(())
    }
}
