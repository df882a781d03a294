//! ramdisk: a block driver over the file of the boot archive that the system file assigns to it.
//!
//! Minor 0 is the whole image. Writes go to the memory into which the boot loader has loaded the file, so they survive this process,
//! but not a reboot. Every transfer is one copy and completes at once.
#![cfg_attr(target_os = "none", no_std, no_main)]
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_macros))]

use driver::block::{BlockDriver, Geometry, Operation, SECTOR_BYTES, Transfer};
use driver::{Answers, Region};
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

    fn begin(&mut self, transfer: Transfer, answers: &mut Answers) {
        let (at, bytes) = (transfer.position as usize, transfer.client.bytes() as usize);
        let result = match transfer.operation {
            Operation::Read => transfer.client.put_region(0, &self.image, at, bytes),
            Operation::Write => transfer.client.fetch_region(0, &self.image, at, bytes),
            Operation::Flush => Ok(()),
        };
        transfer.end(result, answers);
    }
}
