//! The device's memory, and what is copied from and to it. The kernel copies from memory only, so both go through a buffer.

use crate::{Client, Region};
use abi::Errno;

/// Bytes copied at a time.
const BUFFER_BYTES: usize = 4096;
const BLACK: [u8; BUFFER_BYTES] = [0; BUFFER_BYTES];

/// The device's memory.
pub struct Pixels {
    /// Where it is.
    pub(super) region: Region,
    /// How it is reached (`layout::map`).
    pub(super) caching: u64,
}

impl Pixels {
    /// Memory that is reached like this (`layout::map`).
    pub fn new(region: Region, caching: u64) -> Pixels {
        Pixels { region, caching }
    }

    /// Its length.
    pub(super) fn bytes(&self) -> u64 {
        self.region.len() as u64
    }

    /// Copies a part to a client. The kernel copies from memory only, so it goes through a buffer.
    pub(super) fn put(&self, client: &Client, start: u64, bytes: u64) -> Result<(), Errno> {
        let mut buffer = [0; BUFFER_BYTES];
        for at in (0..bytes).step_by(BUFFER_BYTES) {
            let piece = &mut buffer[..BUFFER_BYTES.min((bytes - at) as usize)];
            self.region.copy_out((start + at) as usize, piece);
            client.put(at, piece)?;
        }
        Ok(())
    }

    /// Copies a part from a client.
    pub(super) fn fetch(&self, client: &Client, start: u64, bytes: u64) -> Result<(), Errno> {
        let mut buffer = [0; BUFFER_BYTES];
        for at in (0..bytes).step_by(BUFFER_BYTES) {
            let piece = &mut buffer[..BUFFER_BYTES.min((bytes - at) as usize)];
            client.fetch(at, piece)?;
            self.region.copy_in((start + at) as usize, piece);
        }
        Ok(())
    }

    /// Makes the first bytes black.
    pub(super) fn clear(&self, bytes: u64) {
        let end = bytes.min(self.bytes()) as usize;
        for at in (0..end).step_by(BUFFER_BYTES) {
            self.region.copy_in(at, &BLACK[..BUFFER_BYTES.min(end - at)]);
        }
    }
}
