//! ramdisk: a block driver over the file of the boot archive that the system file assigns to it.
//!
//! Minor 0 is the whole disk: the file, and behind it, up to the argument `disk_bytes`, preserved memory, whose pages are zeros and take no
//! memory until they are used. Writes go to the memory into which the boot loader has loaded the file, or to the preserved memory, so they
//! survive this process, but not a reboot. A transfer is one copy, or two at the end of the file, and completes at once. A write to a page
//! for which no memory is left fails.
#![cfg_attr(target_os = "none", no_std, no_main)]
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_macros))]

use driver::block::{BlockDriver, Geometry, Operation, SECTOR_BYTES, Transfer};
use driver::{Answers, Client, Region};
use sys::keep::{Keep, Part, Parts};
use sys::{Errno, Result, Start};

sys::program!(serve);

#[cfg(not(target_os = "none"))]
fn main() {
    eprintln!("ramdisk is a service of Skink; it does not run on the host");
}

#[cfg_attr(not(target_os = "none"), expect(dead_code, reason = "the host has no services"))]
fn serve(start: Start) {
    match RamDisk::new(&start) {
        Ok(disk) => driver::block::serve(disk),
        Err(error) => server::not_ready(error),
    }
}

struct RamDisk {
    /// The first part of the disk.
    image: Region,
    /// The rest.
    rest: Part,
}

/// What a transfer moves of a part of the disk.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Piece {
    /// Offset in the part.
    at: usize,
    /// Offset in the client's buffer.
    offset: u64,
    bytes: usize,
}

impl Piece {
    fn is_empty(&self) -> bool {
        self.bytes == 0
    }
}

/// Divides `bytes` bytes at `at` of a disk whose first part has `first` bytes.
fn divide(first: usize, at: usize, bytes: usize) -> [Piece; 2] {
    let in_first = first.saturating_sub(at).min(bytes);
    let (offset, bytes) = (in_first as u64, bytes - in_first);
    [Piece { at, offset: 0, bytes: in_first }, Piece { at: at.saturating_sub(first), offset, bytes }]
}

impl RamDisk {
    fn new(start: &Start) -> Result<RamDisk> {
        let image = driver::module(start)?;
        let disk_bytes = match start.argument("disk_bytes") {
            Some(text) => text.parse().map_err(|_| Errno::EINVAL)?,
            None => image.len(),
        };
        Self::with_rest(image, disk_bytes)
    }

    fn with_rest(image: Region, disk_bytes: usize) -> Result<RamDisk> {
        let bytes = disk_bytes.saturating_sub(image.len());
        let keep = Keep::take(bytes).ok_or(Errno::EBUSY)?;
        let rest = Parts::new(keep).lend(0..bytes).ok_or(Errno::EBUSY)?;
        Ok(RamDisk { image, rest })
    }

    fn read(&self, at: usize, client: &Client) -> Result<()> {
        let [image, rest] = divide(self.image.len(), at, client.bytes() as usize);
        if !image.is_empty() {
            client.put_region(image.offset, &self.image, image.at, image.bytes)?;
        }
        if !rest.is_empty() {
            client.put(rest.offset, &self.rest[rest.at..][..rest.bytes])?;
        }
        Ok(())
    }

    fn write(&mut self, at: usize, client: &Client) -> Result<()> {
        let [image, rest] = divide(self.image.len(), at, client.bytes() as usize);
        if !image.is_empty() {
            client.fetch_region(image.offset, &self.image, image.at, image.bytes)?;
        }
        if !rest.is_empty() {
            client.fetch(rest.offset, &mut self.rest[rest.at..][..rest.bytes])?;
        }
        Ok(())
    }
}

impl BlockDriver for RamDisk {
    fn geometry(&self, minor: u64) -> Result<Geometry> {
        let bytes = (self.image.len() + self.rest.len()) as u64 / SECTOR_BYTES * SECTOR_BYTES;
        if minor == 0 {
            Ok(Geometry { bytes, sector_bytes: SECTOR_BYTES, read_only: false })
        } else {
            Err(Errno::ENXIO)
        }
    }

    fn begin(&mut self, transfer: Transfer, answers: &mut Answers) {
        let at = transfer.position as usize;
        let result = match transfer.operation {
            Operation::Read => self.read(at, &transfer.client),
            Operation::Write => self.write(at, &transfer.client),
            Operation::Flush => Ok(()),
        };
        transfer.end(result, answers);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transfer_is_divided_at_the_end_of_the_image() {
        let piece = |at, offset, bytes| Piece { at, offset, bytes };
        assert_eq!(divide(4096, 512, 1024), [piece(512, 0, 1024), piece(0, 1024, 0)]);
        assert_eq!(divide(4096, 3584, 1024), [piece(3584, 0, 512), piece(0, 512, 512)]);
        assert_eq!(divide(4096, 4096, 512), [piece(4096, 0, 0), piece(0, 0, 512)]);
        assert_eq!(divide(4096, 8192, 512), [piece(8192, 0, 0), piece(4096, 0, 512)]);
    }
}
