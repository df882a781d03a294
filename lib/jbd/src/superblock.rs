//! The superblock of a journal: its first block.
//!
//! After `Superblock::read` succeeded: the length is at least `MIN_LENGTH`, the first block of the log and its start lie inside, and
//! no feature is set that a recovery would have to know.

use abi::Errno;

use crate::format::{MAGIC, be32, put_be32};

/// Least length of a journal, in blocks.
pub const MIN_LENGTH: u32 = 1024;

const KIND_VERSION_1: u32 = 3;
const KIND_VERSION_2: u32 = 4;
/// Revocations are in use.
const INCOMPAT_REVOKE: u32 = 1;

const SEQUENCE: usize = 24;
const START: usize = 28;
const ERROR: usize = 32;
const INCOMPAT: usize = 40;

/// The superblock of a journal, checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Superblock {
    /// Blocks of the journal, with this one.
    pub length: u32,
    /// First block of the log.
    pub first: u32,
    /// Sequence number of the first transaction in the log.
    pub sequence: u32,
    /// Block of the first transaction; 0: the log is empty.
    pub start: u32,
    /// Error that the file system has met; 0 for none.
    pub error: u32,
    /// Whether it has the fields of the second version, among them those of features.
    pub is_version_2: bool,
}

impl Superblock {
    /// Decodes the superblock of a journal with blocks of `block_size` bytes in a file of `file_blocks`. `EINVAL` for a journal that is
    /// too short, or has features that are not known here; `EUCLEAN` if it makes no sense.
    pub fn read(block: &[u8], block_size: usize, file_blocks: u64) -> Result<Superblock, Errno> {
        let kind = be32(block, 4);
        let is_version_2 = kind == KIND_VERSION_2;
        if be32(block, 0) != MAGIC || !(is_version_2 || kind == KIND_VERSION_1) {
            return Err(Errno::EUCLEAN);
        }
        let superblock = Superblock {
            length: be32(block, 16),
            first: be32(block, 20),
            sequence: be32(block, SEQUENCE),
            start: be32(block, START),
            error: be32(block, ERROR),
            is_version_2,
        };
        if is_version_2 && be32(block, INCOMPAT) & !INCOMPAT_REVOKE != 0 {
            return Err(Errno::EINVAL);
        }
        let is_sound = be32(block, 12) as usize == block_size
            && u64::from(superblock.length) <= file_blocks
            && superblock.first > 0
            && superblock.first < superblock.length
            && (superblock.start == 0 || (superblock.first..superblock.length).contains(&superblock.start));
        match is_sound {
            false => Err(Errno::EUCLEAN),
            true if superblock.length - superblock.first < MIN_LENGTH - 1 => Err(Errno::EINVAL),
            true => Ok(superblock),
        }
    }

    /// Encodes the mutable fields into the block; revocations may be used from now on.
    pub fn write(&self, block: &mut [u8]) {
        put_be32(block, SEQUENCE, self.sequence);
        put_be32(block, START, self.start);
        put_be32(block, ERROR, self.error);
        if self.is_version_2 {
            put_be32(block, INCOMPAT, be32(block, INCOMPAT) | INCOMPAT_REVOKE);
        }
    }

    /// Returns the block after `block` in the circle of the log.
    pub fn after(&self, block: u32) -> u32 {
        if block + 1 >= self.length { self.first } else { block + 1 }
    }

    /// Returns the number of blocks of the log.
    pub fn log_blocks(&self) -> u32 {
        self.length - self.first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sound() -> [u8; 1024] {
        let mut block = [0; 1024];
        for (at, value) in [(0, MAGIC), (4, KIND_VERSION_2), (12, 1024), (16, 1024), (20, 1), (24, 5), (28, 9)] {
            put_be32(&mut block, at, value);
        }
        block
    }

    #[test]
    fn a_sound_superblock_is_read_and_its_log_is_a_circle() {
        let superblock = Superblock::read(&sound(), 1024, 1024).unwrap();
        assert_eq!((superblock.start, superblock.sequence, superblock.log_blocks()), (9, 5, 1023));
        assert_eq!((superblock.after(1022), superblock.after(1023)), (1023, 1));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for (at, value, error) in [
            (0, 0, Errno::EUCLEAN),
            (4, 1, Errno::EUCLEAN),
            (12, 4096, Errno::EUCLEAN),
            (16, 1025, Errno::EUCLEAN),
            (16, 0, Errno::EUCLEAN),
            (16, 500, Errno::EINVAL),
            (20, 0, Errno::EUCLEAN),
            (20, 1024, Errno::EUCLEAN),
            (20, 2, Errno::EINVAL),
            (28, 1024, Errno::EUCLEAN),
            (40, 2, Errno::EINVAL),
            (40, 0x10, Errno::EINVAL),
        ] {
            let mut block = sound();
            put_be32(&mut block, at, value);
            assert_eq!(Superblock::read(&block, 1024, 1024), Err(error), "{value} at {at}");
        }
    }
}
