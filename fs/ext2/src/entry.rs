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

use fs::bytes::{put_u16, put_u32};

/// Bytes of a record before the name.
const HEADER: usize = 8;
/// Sectors of the largest block.
const MOST_SECTORS: usize = 4096 / SECTOR_SIZE;

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
    #[inline]
    pub fn has_space(&self, needed: usize) -> bool {
        let used = self.used();
        self.size - used >= needed && sector(self.offset) == sector(self.offset + used + needed - 1)
    }

    /// Whether this is the entry of `name`. Names that differ do so at their ends, mostly.
    #[inline]
    pub fn is_of(&self, name: &[u8]) -> bool {
        self.node != 0 && self.name.len() == name.len() && self.name.last() == name.last() && self.name == name
    }

    /// Returns the bytes that the record needs for header and name.
    #[inline]
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
        Entries::starting(block, 0, format)
    }

    /// Those from the one at `offset` on.
    pub fn starting(block: &'a [u8], offset: usize, format: EntryFormat) -> Self {
        Entries { block, offset, format }
    }

    /// Decodes the record at `offset`, if it is valid. The header is one little-endian word: inode, length, then the length
    /// of the name in 8 or 16 bits, and in the first case the kind. Creating a name reads all the records of a block.
    #[inline(always)]
    fn read(&self, offset: usize) -> Option<Entry<'a>> {
        let record = self.block.get(offset..)?;
        let (head, rest) = record.split_first_chunk::<HEADER>()?;
        let header = u64::from_le_bytes(*head);
        let node = header as u32;
        let size = usize::from((header >> 32) as u16);
        let tail = (header >> 48) as u16;
        let [name_len, kind] = if self.format.file_types { tail.to_le_bytes().map(u16::from) } else { [tail, 0] };
        let name_len = usize::from(name_len);
        let is_whole = record_size(name_len) <= size && size <= record.len() && size & 3 == 0;
        let is_possible = node <= self.format.inodes_count && (node == 0 || name_len > 0);
        if !is_whole || !is_possible {
            return None;
        }
        let kind = KINDS.get(usize::from(kind)).copied().unwrap_or(0);
        Some(Entry { offset, size, node, kind, name: rest.get(..name_len)? })
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

impl<'a> Entry<'a> {
    /// Decodes the record at `offset` of a block. `EUCLEAN`.
    pub fn at(block: &'a [u8], offset: usize, format: EntryFormat) -> Result<Entry<'a>, Errno> {
        Entries { block, offset, format }.read(offset).ok_or(Errno::EUCLEAN)
    }
}

/// Whether the name is `.` or `..`.
#[inline]
pub fn is_dot(name: &[u8]) -> bool {
    name == b"." || name == b".."
}

/// Returns the sector that a byte of a block is in.
pub fn sector(offset: usize) -> usize {
    offset / SECTOR_SIZE
}

/// Bytes of a record with a name of this length.
#[inline]
pub fn record_size(name_len: usize) -> usize {
    (HEADER + name_len + 3) & !3
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

/// Fills a block with copies of records, each in the first sector that has space for it.
pub struct Filling<'a> {
    block: &'a mut [u8],
    format: EntryFormat,
    /// Of each sector: the last record written, where the next one may begin.
    sectors: [(Option<usize>, usize); MOST_SECTORS],
}

impl<'a> Filling<'a> {
    /// Makes the block a chain of free records.
    pub fn begin(block: &'a mut [u8], format: EntryFormat) -> Filling<'a> {
        divide(block);
        Filling { block, format, sectors: core::array::from_fn(|number| (None, number * SECTOR_SIZE)) }
    }

    /// Adds a copy of a record. Returns false if there is no space for it.
    pub fn add(&mut self, new: &Entry) -> bool {
        let needed = record_size(new.name.len());
        let count = self.block.len() / SECTOR_SIZE;
        let mut sectors = self.sectors[..count].iter_mut().zip(1..);
        let place = sectors.find(|((_, next), number)| *next + needed <= number * SECTOR_SIZE);
        let Some(((last, next), number)) = place else { return false };
        if let Some(last) = *last {
            set_size(self.block, last, *next - last);
        }
        write(self.block, *next, number * SECTOR_SIZE - *next, new.node, new.kind, new.name, self.format);
        (*last, *next) = (Some(*next), *next + needed);
        true
    }
}

/// Removes records of the block `old` from its copy `new`, and packs those that stay, each within the sector that it begins in. The first record of a
/// sector begins where it did, and one that reaches into the next sector stays where it is, so that a change of one sector needs no other.
pub fn retain(old: &[u8], new: &mut [u8], format: EntryFormat, keeps: impl Fn(&Entry) -> bool) -> Result<(), Errno> {
    let mut entries = Entries::new(old, format).peekable();
    while let Some(first) = entries.peek().copied() {
        let begin = first?.offset;
        // The record written last, and where the next one may begin.
        let (mut last, mut next, mut end) = (None, begin, begin);
        while let Some(entry) = entries.next_if(|entry| entry.is_err() || is_in_sector_of(entry, begin)) {
            let entry = entry?;
            end = entry.offset + entry.size;
            if entry.node == 0 || !keeps(&entry) {
                continue;
            }
            let is_across = sector(entry.offset + entry.used() - 1) != sector(begin);
            let place = if is_across { entry.offset } else { next };
            match last {
                Some(last) => set_size(new, last, place - last),
                None if place > begin => make_free(new, begin, place - begin),
                None => {}
            }
            if !is_across {
                new[place..place + entry.used()].copy_from_slice(&old[entry.offset..entry.offset + entry.used()]);
            }
            (last, next) = (Some(place), place + entry.used());
        }
        match last {
            Some(last) => set_size(new, last, end - last),
            None => make_free(new, begin, end - begin),
        }
    }
    Ok(())
}

fn is_in_sector_of(entry: &Result<Entry, Errno>, offset: usize) -> bool {
    entry.is_ok_and(|entry| sector(entry.offset) == sector(offset))
}

/// Makes the record at `offset` a free one of this size.
fn make_free(block: &mut [u8], offset: usize, size: usize) {
    put_u32(block, offset, 0);
    put_u16(block, offset + 4, size as u16);
    put_u16(block, offset + 6, 0);
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

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use alloc::{format, vec};

    const FORMAT: EntryFormat = EntryFormat { file_types: true, inodes_count: 1000 };

    fn names(block: &[u8]) -> Vec<Vec<u8>> {
        let entries = Entries::new(block, FORMAT).map(|entry| entry.unwrap());
        entries.filter(|entry| entry.node != 0).map(|entry| entry.name.to_vec()).collect()
    }

    /// A block in which records cross sectors, as other systems make them.
    fn dense() -> Vec<u8> {
        let mut block = vec![0; 4096];
        let mut at = 0;
        for number in 1.. {
            let name = format!("name-{number:0width$}", width = number % 60 + 3);
            let size = record_size(name.len());
            if at + size + 300 > block.len() {
                write(&mut block, at, 4096 - at, number as u32, S_IFREG, name.as_bytes(), FORMAT);
                return block;
            }
            write(&mut block, at, size, number as u32, S_IFREG, name.as_bytes(), FORMAT);
            at += size;
        }
        unreachable!("the block is full sometime")
    }

    #[test]
    fn what_stays_is_packed_and_every_mixture_of_old_and_new_sectors_has_it() {
        let old = dense();
        let all = names(&old);
        for modulus in [2, 3, 7] {
            let keeps = |entry: &Entry| !entry.node.is_multiple_of(modulus);
            let mut new = old.clone();
            retain(&old, &mut new, FORMAT, keeps).unwrap();
            let stays = |number: usize| !(number + 1).is_multiple_of(modulus as usize);
            let kept: Vec<Vec<u8>> = (0..all.len()).filter(|&at| stays(at)).map(|at| all[at].clone()).collect();
            assert_eq!(names(&new), kept);
            for mixture in 0..256usize {
                let mut block = old.clone();
                for sector in (0..8).filter(|sector| mixture >> sector & 1 != 0) {
                    let range = sector * SECTOR_SIZE..(sector + 1) * SECTOR_SIZE;
                    block[range.clone()].copy_from_slice(&new[range]);
                }
                let found = names(&block);
                assert!(kept.iter().all(|name| found.contains(name)), "mixture {mixture:#b}");
            }
        }
    }

    #[test]
    fn a_record_that_ends_with_its_sector_is_packed_and_one_that_goes_on_is_not() {
        for (used, is_packed) in [(248, true), (252, false)] {
            let mut old = vec![0; 1024];
            let names = [vec![b'a'; 256], vec![b'b'; used - 8]].map(|mut name| {
                name.truncate(255);
                name
            });
            write(&mut old, 0, 264, 5, S_IFREG, &names[0], FORMAT);
            write(&mut old, 264, 1024 - 264, 6, S_IFREG, &names[1], FORMAT);
            let mut new = old.clone();
            retain(&old, &mut new, FORMAT, |entry| entry.node == 6).unwrap();
            let places: Vec<usize> = Entries::new(&new, FORMAT)
                .map(|entry| entry.unwrap())
                .filter(|entry| entry.node == 6)
                .map(|entry| entry.offset)
                .collect();
            assert_eq!(places, [if is_packed { 0 } else { 264 }]);
        }
    }

    #[test]
    fn a_sector_without_names_is_one_free_record() {
        let old = dense();
        let mut new = old.clone();
        retain(&old, &mut new, FORMAT, |_| false).unwrap();
        assert!(names(&new).is_empty());
        assert!(Entries::new(&new, FORMAT).all(|entry| entry.is_ok_and(|entry| entry.size >= SECTOR_SIZE / 2)));
    }

    #[test]
    fn records_are_added_until_the_sectors_are_full() {
        let mut block = vec![0; 1024];
        let mut filling = Filling::begin(&mut block, FORMAT);
        let all = [255, 200, 255, 20, 10, 1];
        let added = all.map(|length| {
            let name = [b'a' + length as u8 % 26; 255];
            filling.add(&Entry { offset: 0, size: 0, node: 5, kind: 0, name: &name[..length] })
        });
        // 264 + 208 + 28 + 12 fill the first sector.
        assert_eq!(added, [true, true, true, true, true, true]);
        let lengths: Vec<usize> = names(&block).iter().map(Vec::len).collect();
        assert_eq!(lengths, [255, 200, 20, 1, 255, 10]);
        let mut filling = Filling::begin(&mut block, FORMAT);
        let name = [b'x'; 255];
        let mut added = 0;
        while filling.add(&Entry { offset: 0, size: 0, node: 5, kind: 0, name: &name }) {
            added += 1;
        }
        assert_eq!((added, names(&block).len()), (2, 2));
    }
}
