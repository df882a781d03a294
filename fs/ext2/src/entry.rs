//! The entries of a directory block.
//!
//! A block is a chain of records that ends exactly with the block. A record whose inode is 0 is free
//! space, and so are the bytes between a name and the record's end. The iterator checks every record
//! before it yields it and ends after a corrupt one.
//!
//! A power cut may let some sectors of a block through and not others. So each change is one of a single sector: the first record
//! that begins in a sector stays where it is, a new one begins and ends in the sector of the record whose space it takes, and a new
//! block is divided into sectors.

use core::ops::Range;

use fs::Errno;
use fs::device::SECTOR_SIZE;
use fs::file_system::{S_IFBLK, S_IFCHR, S_IFDIR, S_IFIFO, S_IFLNK, S_IFMT, S_IFREG, S_IFSOCK};

use crate::bytes::{put_u16, put_u32};

/// Bytes of a record before the name.
const HEADER: usize = 8;

/// Kinds as directory entries encode them, with their mode bits.
const KINDS: [u32; 8] = [0, S_IFREG, S_IFDIR, S_IFCHR, S_IFBLK, S_IFIFO, S_IFSOCK, S_IFLNK];

/// One record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// Offset in the block.
    pub offset: usize,
    /// Length, with the free bytes behind the name.
    pub size: usize,
    /// Inode, or 0 for a free record.
    pub node: u32,
    /// Kind bits of the mode, or 0 if the entry does not have them.
    pub kind: u32,
    /// Name.
    pub name: &'a [u8],
}

impl Entry<'_> {
    /// Whether a record of `needed` bytes fits into the free space at the end of this one, in the same sector.
    pub fn has_space(&self, needed: usize) -> bool {
        let place = self.offset + self.used();
        self.size - self.used() >= needed && sector(self.offset) == sector(place + needed - 1)
    }

    /// Returns the bytes that the record needs for header and name.
    pub fn used(&self) -> usize {
        if self.node == 0 { 0 } else { record_size(self.name.len()) }
    }
}

/// How this file system writes entries.
#[derive(Clone, Copy, Debug)]
pub struct EntryFormat {
    /// Whether entries have the kind of the node.
    pub file_types: bool,
    /// Highest inode number.
    pub inodes_count: u32,
}

/// Iterator over the records of one block.
pub struct Entries<'a> {
    block: &'a [u8],
    offset: usize,
    format: EntryFormat,
}

impl<'a> Entries<'a> {
    /// All records of `block`.
    pub fn new(block: &'a [u8], format: EntryFormat) -> Self {
        Entries { block, offset: 0, format }
    }

    /// Decodes the record at `offset`, if it is valid. The header is one little-endian word: inode, length, then the length
    /// of the name in 8 or 16 bits, and in the first case the kind.
    #[inline]
    fn read(&self, offset: usize) -> Option<Entry<'a>> {
        let record = self.block.get(offset..)?;
        let header = u64::from_le_bytes(*record.first_chunk::<HEADER>()?);
        let node = header as u32;
        let size = usize::from((header >> 32) as u16);
        let tail = (header >> 48) as u16;
        let [name_len, kind] = if self.format.file_types { tail.to_le_bytes().map(u16::from) } else { [tail, 0] };
        let name = record.get(HEADER..HEADER + usize::from(name_len))?;
        let sound = size >= record_size(name.len())
            && size.is_multiple_of(4)
            && size <= record.len()
            && node <= self.format.inodes_count
            && (node == 0 || name_len > 0);
        let kind = KINDS.get(usize::from(kind)).copied().unwrap_or(0);
        sound.then_some(Entry { offset, size, node, kind, name })
    }
}

impl<'a> Iterator for Entries<'a> {
    type Item = Result<Entry<'a>, Errno>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.offset >= self.block.len() {
            return None;
        }
        let entry = self.read(self.offset);
        self.offset = entry.map_or(self.block.len(), |entry| entry.offset + entry.size);
        Some(entry.ok_or(Errno::EUCLEAN))
    }
}

/// Returns the sector that a byte of a block is in.
pub fn sector(offset: usize) -> usize {
    offset / SECTOR_SIZE
}

/// Bytes of a record with a name of this length.
pub fn record_size(name_len: usize) -> usize {
    (HEADER + name_len).next_multiple_of(4)
}

/// Returns the range of the header of the record at `offset`.
pub fn header(offset: usize) -> Range<usize> {
    offset..offset + HEADER
}

/// Writes a record of `size` bytes at `offset`: header and name.
pub fn write(block: &mut [u8], offset: usize, size: usize, node: u32, mode: u32, name: &[u8], format: EntryFormat) {
    let record = &mut block[offset..];
    put_u16(record, 4, size as u16);
    put_u16(record, 6, name.len() as u16);
    record[HEADER..HEADER + name.len()].copy_from_slice(name);
    set_node(record, 0, node, mode, format);
}

/// Makes the block a chain of free records, one in each sector.
pub fn divide(block: &mut [u8]) {
    block.fill(0);
    for offset in (0..block.len()).step_by(SECTOR_SIZE) {
        set_size(block, offset, SECTOR_SIZE);
    }
}

/// Changes the inode of the record at `offset`.
pub fn set_node(block: &mut [u8], offset: usize, node: u32, mode: u32, format: EntryFormat) {
    put_u32(block, offset, node);
    if format.file_types {
        let kind = KINDS.iter().position(|&kind| kind == mode & S_IFMT).unwrap_or(0);
        block[offset + 7] = kind as u8;
    }
}

/// Changes the length of the record at `offset`.
pub fn set_size(block: &mut [u8], offset: usize, size: usize) {
    put_u16(block, offset + 4, size as u16);
}
