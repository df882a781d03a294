//! Reads the ELF files of vm and rs, which the kernel itself starts: static 64-bit programs, linked for fixed addresses.
//!
//! Everything is checked before use; a file that breaks a rule is an [`Error`], never a wrong mapping.

use crate::boot_info::number;
use abi::layout::{PAGE_BYTES, USER_END, USER_START};

const HEADER_BYTES: usize = 64;
const SEGMENT_BYTES: usize = 56;
const LOAD: u64 = 1;
const EXECUTE: u64 = 1;
const WRITE: u64 = 2;
/// Magic, 64 bits, little endian, version 1.
const IDENTITY: [u8; 7] = [0x7f, b'E', b'L', b'F', 2, 1, 1];
/// `ET_EXEC` for `EM_X86_64`.
const STATIC_X86_64: u64 = 2 | 62 << 16;

/// Why a file cannot be started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// Not a static x86-64 ELF file, or cut short.
    Format,
    /// A segment lies outside user memory, overlaps its predecessor, or is longer in the file than in memory.
    Segment,
    /// A segment is writable and executable.
    Rights,
}

/// What to map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment<'a> {
    /// Where it starts, not always on a page.
    pub address: u64,
    /// Its length in memory.
    pub bytes: u64,
    /// What it starts with; the rest is zero.
    pub data: &'a [u8],
    /// May be written.
    pub write: bool,
    /// May be executed.
    pub execute: bool,
}

impl Segment<'_> {
    /// Its first page.
    pub fn first_page(&self) -> u64 {
        self.address & !(PAGE_BYTES - 1)
    }

    /// Its number of pages.
    pub fn pages(&self) -> u64 {
        (self.address + self.bytes - self.first_page()).div_ceil(PAGE_BYTES)
    }
}

/// A program: where it starts, and its segments in the order of their addresses.
pub struct Program<'a> {
    /// Address of its first instruction.
    pub entry: u64,
    file: &'a [u8],
    table: usize,
    entries: usize,
}

impl<'a> Program<'a> {
    /// The program in `file`.
    pub fn new(file: &'a [u8]) -> Result<Self, Error> {
        let header = file.get(..HEADER_BYTES).ok_or(Error::Format)?;
        let field = |at, bytes| number(header, at, bytes).ok_or(Error::Format);
        let known =
            header.starts_with(&IDENTITY) && field(16, 4)? == STATIC_X86_64 && field(54, 2)? == SEGMENT_BYTES as u64;
        if !known {
            return Err(Error::Format);
        }
        let table = usize::try_from(field(32, 8)?).map_err(|_| Error::Format)?;
        Ok(Program { entry: field(24, 8)?, file, table, entries: field(56, 2)? as usize })
    }

    /// Its segments.
    pub fn segments(&self) -> impl Iterator<Item = Result<Segment<'a>, Error>> + use<'a> {
        let (file, table, entries) = (self.file, self.table, self.entries);
        let mut end = USER_START;
        (0..entries).filter_map(move |index| {
            let segment = read_segment(file, table, index).transpose()?;
            Some(segment.and_then(|segment| {
                if segment.first_page() < end {
                    return Err(Error::Segment);
                }
                end = segment.first_page() + segment.pages() * PAGE_BYTES;
                Ok(segment)
            }))
        })
    }
}

/// The entry at `index` of the table of segments; `None` when there is nothing to load.
fn read_segment(file: &[u8], table: usize, index: usize) -> Result<Option<Segment<'_>>, Error> {
    let at = table.checked_add(index * SEGMENT_BYTES).ok_or(Error::Format)?;
    let header = file.get(at..).and_then(|rest| rest.get(..SEGMENT_BYTES)).ok_or(Error::Format)?;
    let field = |at, bytes| number(header, at, bytes).ok_or(Error::Format);
    let (kind, flags, offset, address) = (field(0, 4)?, field(4, 4)?, field(8, 8)?, field(16, 8)?);
    let (file_bytes, bytes) = (field(32, 8)?, field(40, 8)?);
    if kind != LOAD || bytes == 0 {
        return Ok(None);
    }
    let end = address.checked_add(bytes).ok_or(Error::Segment)?;
    if address < USER_START || end > USER_END || file_bytes > bytes {
        return Err(Error::Segment);
    }
    if flags & (WRITE | EXECUTE) == WRITE | EXECUTE {
        return Err(Error::Rights);
    }
    let data_end = offset.checked_add(file_bytes).ok_or(Error::Format)?;
    let data = file.get(offset as usize..data_end as usize).ok_or(Error::Format)?;
    Ok(Some(Segment { address, bytes, data, write: flags & WRITE != 0, execute: flags & EXECUTE != 0 }))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Entry(u64, u64, u64, u64, u64);

    fn file(entries: &[Entry]) -> Vec<u8> {
        let mut bytes = vec![0; HEADER_BYTES + entries.len() * SEGMENT_BYTES];
        let mut put = |at: usize, value: u64, length: usize| {
            bytes[at..at + length].copy_from_slice(&value.to_le_bytes()[..length])
        };
        put(16, STATIC_X86_64, 4);
        put(24, 0x40_0000, 8);
        put(32, HEADER_BYTES as u64, 8);
        put(54, SEGMENT_BYTES as u64, 2);
        put(56, entries.len() as u64, 2);
        for (index, Entry(flags, offset, address, file_bytes, memory_bytes)) in entries.iter().enumerate() {
            let at = HEADER_BYTES + index * SEGMENT_BYTES;
            put(at, LOAD | flags << 32, 8);
            put(at + 8, *offset, 8);
            put(at + 16, *address, 8);
            put(at + 32, *file_bytes, 8);
            put(at + 40, *memory_bytes, 8);
        }
        bytes[..7].copy_from_slice(&IDENTITY);
        bytes
    }

    fn first(entry: Entry) -> Result<(u64, u64, bool, bool), Error> {
        let bytes = file(&[entry]);
        let segment = Program::new(&bytes)?.segments().next().unwrap()?;
        Ok((segment.first_page(), segment.pages(), segment.write, segment.execute))
    }

    #[test]
    fn a_segment_covers_all_pages_it_touches() {
        assert_eq!(first(Entry(5, 0, 0x40_0ff0, 0x20, 0x20)), Ok((0x40_0000, 2, false, true)));
        assert_eq!(first(Entry(6, 0, 0x40_0000, 0x20, 0x5000)), Ok((0x40_0000, 5, true, false)));
    }

    #[test]
    fn broken_segments_are_refused() {
        assert_eq!(first(Entry(7, 0, 0x40_0000, 1, 1)), Err(Error::Rights));
        assert_eq!(first(Entry(4, 0, 0x40_0000, 2, 1)), Err(Error::Segment));
        assert_eq!(first(Entry(4, 0, 0, 1, 1)), Err(Error::Segment));
        assert_eq!(first(Entry(4, 0, 0xffff_ffff_8000_0000, 1, 1)), Err(Error::Segment));
        assert_eq!(first(Entry(4, 0, u64::MAX, 1, 2)), Err(Error::Segment));
        assert_eq!(first(Entry(4, 0x1000, 0x40_0000, 1, 1)), Err(Error::Format));
        assert_eq!(first(Entry(4, u64::MAX, 0x40_0000, 1, 1)), Err(Error::Format));
    }

    #[test]
    fn segments_that_share_a_page_are_refused() {
        let bytes = file(&[Entry(4, 0, 0x40_0000, 8, 8), Entry(6, 0, 0x40_0800, 8, 8)]);
        let last = Program::new(&bytes).unwrap().segments().last().unwrap();
        assert_eq!(last, Err(Error::Segment));
    }

    #[test]
    fn cut_files_are_refused() {
        let bytes = file(&[Entry(4, 0, 0x40_0000, 8, 8)]);
        for length in 0..bytes.len() {
            let refused = match Program::new(&bytes[..length]) {
                Err(_) => true,
                Ok(program) => program.segments().any(|segment| segment.is_err()),
            };
            assert!(refused, "{length} bytes");
        }
    }
}
