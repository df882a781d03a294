//! One loadable segment and the checks it must pass alone.

use crate::{ElfError, fields::Fields};
use abi::layout::{PAGE_BYTES, USER_END};

/// A stretch of the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileRange {
    /// First byte.
    pub offset: u64,
    /// Length.
    pub bytes: u64,
}

/// A segment to load. Addresses are relative to the base for position-independent programs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Segment {
    /// First address, not necessarily page-aligned; equals `file.offset` modulo the page.
    pub address: u64,
    /// Bytes in memory; those behind the file's are zero.
    pub memory_bytes: u64,
    /// The part of the file it starts with.
    pub file: FileRange,
    /// May be written.
    pub write: bool,
    /// May be executed.
    pub execute: bool,
}

/// Bytes of one program header.
pub(crate) const HEADER_BYTES: usize = 56;

const EXECUTE: u32 = 1;
const WRITE: u32 = 2;

impl Segment {
    /// The page that the segment starts in.
    pub fn start(&self) -> u64 {
        self.address & !(PAGE_BYTES - 1)
    }

    /// Address after the last byte.
    pub fn end(&self) -> u64 {
        self.address + self.memory_bytes
    }

    /// Address after the last page.
    pub fn page_end(&self) -> u64 {
        self.end().next_multiple_of(PAGE_BYTES)
    }

    /// Address after the last byte that comes from the file.
    pub fn file_end(&self) -> u64 {
        self.address + self.file.bytes
    }

    /// The segment a `PT_LOAD` header describes.
    pub(crate) fn parse(header: Fields, file_bytes: u64) -> Result<Segment, ElfError> {
        let segment = Self::fields(header).ok_or(ElfError::BadHeaders)?;
        segment.check(file_bytes)?;
        Ok(segment)
    }

    fn fields(header: Fields) -> Option<Segment> {
        let flags = header.u32(4)?;
        Some(Segment {
            address: header.u64(16)?,
            memory_bytes: header.u64(40)?,
            file: file_range(header)?,
            write: flags & WRITE != 0,
            execute: flags & EXECUTE != 0,
        })
    }

    fn check(&self, file_bytes: u64) -> Result<(), ElfError> {
        let file_end = self.file.offset.checked_add(self.file.bytes).ok_or(ElfError::BadRange)?;
        let end = self.address.checked_add(self.memory_bytes).ok_or(ElfError::BadRange)?;
        if file_end > file_bytes || end > USER_END || self.file.bytes > self.memory_bytes {
            return Err(ElfError::BadRange);
        }
        if (self.address ^ self.file.offset) & (PAGE_BYTES - 1) != 0 {
            return Err(ElfError::BadAlignment);
        }
        Ok(())
    }
}

/// The file range of any program header.
pub(crate) fn file_range(header: Fields) -> Option<FileRange> {
    Some(FileRange { offset: header.u64(8)?, bytes: header.u64(32)? })
}
