//! Seals of a file in memory (fcntl(2), `F_ADD_SEALS`): what can be done no more with it. They are never taken away.
//!
//! Every file in memory has `F_SEAL_SEAL` but those of memfd_create with `MFD_ALLOW_SEALING`. The record of each open file has the seals of its
//! file. Neighbours: `calls::seals` (fcntl), `objects::regular`, `calls::attributes`, `calls::mmap` (heed them).

use abi::Errno;
use core::cell::Cell;

/// No more seals.
pub const SEAL: u32 = 1;
/// The file does not become shorter.
pub const SHRINK: u32 = 2;
/// The file does not become longer.
pub const GROW: u32 = 4;
/// The content does not change.
pub const WRITE: u32 = 8;
/// The content does not change but by mappings that exist.
pub const FUTURE_WRITE: u32 = 0x10;
/// All that are known.
pub const ALL: u32 = SEAL | SHRINK | GROW | WRITE | FUTURE_WRITE;

/// Bytes of a page, at whose start a write that must not lengthen the file ends.
const PAGE_BYTES: u64 = abi::layout::PAGE_BYTES;

/// The seals of one file.
#[derive(Debug)]
pub struct Seals(Cell<u32>);

impl Default for Seals {
    fn default() -> Seals {
        Seals(Cell::new(SEAL))
    }
}

impl Seals {
    /// Bits of this module.
    pub fn get(&self) -> u32 {
        self.0.get()
    }

    /// Sets those of a new file, or as a predecessor has left them.
    pub fn set(&self, seals: u32) {
        self.0.set(seals);
    }

    /// Whether there is one of these.
    pub fn has(&self, seals: u32) -> bool {
        self.0.get() & seals != 0
    }

    /// `EPERM`: the content must not change.
    pub fn check_write(&self) -> Result<(), Errno> {
        if self.has(WRITE | FUTURE_WRITE) { Err(Errno::EPERM) } else { Ok(()) }
    }

    /// `EPERM`: the file must not get this size.
    pub fn check_resize(&self, old_bytes: u64, new_bytes: u64) -> Result<(), Errno> {
        let broken = (new_bytes < old_bytes && self.has(SHRINK)) || (new_bytes > old_bytes && self.has(GROW));
        if broken { Err(Errno::EPERM) } else { Ok(()) }
    }

    /// How many of these bytes may be written to a file of this size: those of whole pages before one that would lengthen it.
    pub fn writable_bytes(&self, size: u64, start: u64, bytes: u64) -> Result<u64, Errno> {
        self.check_write()?;
        if !self.has(GROW) || start.saturating_add(bytes) <= size {
            return Ok(bytes);
        }
        match (size / PAGE_BYTES * PAGE_BYTES).checked_sub(start) {
            None | Some(0) => Err(Errno::EPERM),
            Some(whole) => Ok(whole),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seals(bits: u32) -> Seals {
        let seals = Seals::default();
        seals.set(bits);
        seals
    }

    #[test]
    fn a_file_that_must_not_grow_is_written_up_to_the_page_of_its_end() {
        assert_eq!(seals(GROW).writable_bytes(5000, 0, 5000), Ok(5000));
        assert_eq!(seals(GROW).writable_bytes(5000, 10, 5000), Ok(4086));
        assert_eq!(seals(GROW).writable_bytes(5000, 4096, 905), Err(Errno::EPERM));
        assert_eq!(seals(SHRINK).writable_bytes(5000, 4096, 905), Ok(905));
        assert_eq!(seals(WRITE).writable_bytes(5000, 0, 1), Err(Errno::EPERM));
        assert_eq!(seals(FUTURE_WRITE).writable_bytes(5000, 0, 1), Err(Errno::EPERM));
    }

    #[test]
    fn sizes_change_in_the_direction_that_is_not_sealed() {
        assert_eq!(seals(GROW).check_resize(5, 6), Err(Errno::EPERM));
        assert_eq!(seals(GROW).check_resize(5, 4), Ok(()));
        assert_eq!(seals(SHRINK).check_resize(5, 4), Err(Errno::EPERM));
        assert_eq!(seals(SHRINK | GROW).check_resize(5, 5), Ok(()));
    }
}
