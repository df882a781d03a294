//! The format of extended attributes: entries from the start of an area, values from its end. The area is a block with a header, or what an
//! inode has left behind its fields.
//!
//! ```text
//! block   header (32 bytes: magic, references, blocks = 1, hash)  entry  entry  0 ...... value  value
//! inode   magic                                                   entry  entry  0 ...... value  value
//! entry   length of the name, kind of its prefix, offset of the value, 0, length of the value, hash, name, padding to 4 bytes
//! ```
//!
//! Nothing of it is trusted. What is written here is sorted as Linux has it.

use alloc::vec::Vec;
use core::cmp::Ordering;

use abi::Errno;
use sys::fallible::{TryVec, copied};

use crate::bytes::{put_u16, put_u32, u16_at, u32_at};

/// Magic number of an area.
pub const MAGIC: u32 = 0xea02_0000;
/// Bytes of the header of a block.
pub const HEADER: usize = 32;
/// Offset of the number of inodes that share a block.
pub const REFERENCES: usize = 4;
const BLOCKS: usize = 8;
const HASH: usize = 12;
/// Bytes of an entry without its name.
const ENTRY: usize = 16;

/// The prefixes of names, by their kinds.
const PREFIXES: [(u8, &[u8]); 3] = [(1, b"user."), (4, b"trusted."), (6, b"security.")];

/// One attribute.
#[derive(Debug, PartialEq, Eq)]
pub struct Xattr {
    kind: u8,
    name: Vec<u8>,
    value: Vec<u8>,
}

/// A name in the form of the format: the kind of its prefix, and the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Name<'a> {
    kind: u8,
    rest: &'a [u8],
}

impl<'a> Name<'a> {
    /// Takes a name apart. `EOPNOTSUPP`: a prefix that is not supported; `EINVAL`: nothing behind it; `ERANGE`: too long.
    pub fn new(name: &'a [u8]) -> Result<Self, Errno> {
        let known = PREFIXES.iter().find_map(|&(kind, prefix)| Some((kind, name.strip_prefix(prefix)?)));
        match known {
            None => Err(Errno::EOPNOTSUPP),
            Some((_, [])) => Err(Errno::EINVAL),
            Some((_, rest)) if rest.len() > 255 => Err(Errno::ERANGE),
            Some((kind, rest)) => Ok(Name { kind, rest }),
        }
    }
}

impl Xattr {
    /// An attribute with this value.
    pub fn new(name: Name, value: &[u8]) -> Result<Self, Errno> {
        Ok(Xattr { kind: name.kind, name: copied(name.rest)?, value: copied(value)? })
    }

    fn is(&self, name: Name) -> bool {
        self.kind == name.kind && self.name == name.rest
    }

    fn order(&self, other: &Xattr) -> Ordering {
        let key = |xattr: &Xattr| (xattr.kind, xattr.name.len());
        key(self).cmp(&key(other)).then_with(|| self.name.cmp(&other.name))
    }

    fn entry_bytes(&self) -> usize {
        (ENTRY + self.name.len()).next_multiple_of(4)
    }

    /// The hash that Linux and e2fsck compute over name and value.
    fn hash(&self) -> u32 {
        let of_name = self.name.iter().fold(0u32, |hash, &byte| hash.rotate_left(5) ^ u32::from(byte));
        self.value.chunks(4).fold(of_name, |hash, word| {
            let mut padded = [0; 4];
            padded[..word.len()].copy_from_slice(word);
            hash.rotate_left(16) ^ u32::from_le_bytes(padded)
        })
    }
}

/// The attributes of one area.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct XattrList(Vec<Xattr>);

impl XattrList {
    /// Decodes the entries at `first` of an area, whose values lie behind `base`. `EUCLEAN`.
    pub fn read(bytes: &[u8], first: usize, base: usize) -> Result<Self, Errno> {
        let mut list = Vec::new();
        let mut at = first;
        loop {
            let head = bytes.get(at..at + 4).ok_or(Errno::EUCLEAN)?;
            if head == [0; 4] {
                return Ok(XattrList(list));
            }
            let entry = bytes.get(at..at + ENTRY).ok_or(Errno::EUCLEAN)?;
            let name_end = at + ENTRY + usize::from(entry[0]);
            let name = bytes.get(at + ENTRY..name_end).ok_or(Errno::EUCLEAN)?;
            let (start, length) = (base + usize::from(u16_at(entry, 2)), u32_at(entry, 8) as usize);
            let end = start.checked_add(length).filter(|_| u32_at(entry, 4) == 0).ok_or(Errno::EUCLEAN)?;
            let value = if length == 0 { &[][..] } else { bytes.get(start..end).ok_or(Errno::EUCLEAN)? };
            list.try_push(Xattr { kind: entry[1], name: copied(name)?, value: copied(value)? })?;
            at = name_end.next_multiple_of(4);
        }
    }

    /// Decodes a block. `EUCLEAN`.
    pub fn read_block(bytes: &[u8]) -> Result<Self, Errno> {
        let sound = u32_at(bytes, 0) == MAGIC && u32_at(bytes, REFERENCES) > 0 && u32_at(bytes, BLOCKS) == 1;
        if sound { XattrList::read(bytes, HEADER, 0) } else { Err(Errno::EUCLEAN) }
    }

    /// Encodes the entries and values into an area of zeros, as [`XattrList::read`] decodes them. `ENOSPC`.
    pub fn write(&self, bytes: &mut [u8], first: usize, base: usize) -> Result<(), Errno> {
        let (mut at, mut end) = (first, bytes.len());
        let entries: usize = self.0.iter().map(Xattr::entry_bytes).sum();
        let values: usize = self.0.iter().map(|xattr| xattr.value.len().next_multiple_of(4)).sum();
        if first + entries + 4 + values > end {
            return Err(Errno::ENOSPC);
        }
        for xattr in &self.0 {
            end -= xattr.value.len().next_multiple_of(4);
            bytes[end..end + xattr.value.len()].copy_from_slice(&xattr.value);
            let entry = &mut bytes[at..at + xattr.entry_bytes()];
            (entry[0], entry[1]) = (xattr.name.len() as u8, xattr.kind);
            put_u16(entry, 2, if xattr.value.is_empty() { 0 } else { (end - base) as u16 });
            put_u32(entry, 8, xattr.value.len() as u32);
            put_u32(entry, 12, xattr.hash());
            entry[ENTRY..ENTRY + xattr.name.len()].copy_from_slice(&xattr.name);
            at += xattr.entry_bytes();
        }
        Ok(())
    }

    /// Encodes a block of zeros, which one inode refers to. `ENOSPC`.
    pub fn write_block(&self, bytes: &mut [u8]) -> Result<(), Errno> {
        self.write(bytes, HEADER, 0)?;
        let hash = self.0.iter().fold(0u32, |hash, xattr| hash.rotate_left(16) ^ xattr.hash());
        let is_shareable = self.0.iter().all(|xattr| xattr.hash() != 0);
        for (at, value) in [(0, MAGIC), (REFERENCES, 1), (BLOCKS, 1), (HASH, if is_shareable { hash } else { 0 })] {
            put_u32(bytes, at, value);
        }
        Ok(())
    }

    /// Whether it has no attributes.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The value of an attribute.
    pub fn get(&self, name: Name) -> Option<&[u8]> {
        self.0.iter().find(|xattr| xattr.is(name)).map(|xattr| xattr.value.as_slice())
    }

    /// Removes an attribute. Returns whether there was one.
    pub fn remove(&mut self, name: Name) -> bool {
        let before = self.0.len();
        self.0.retain(|xattr| !xattr.is(name));
        self.0.len() < before
    }

    /// Adds an attribute, of which there is none.
    #[expect(clippy::disallowed_methods, reason = "room was made")]
    pub fn insert(&mut self, xattr: Xattr) -> Result<(), Errno> {
        self.0.try_make_room(1)?;
        let at = self.0.partition_point(|other| other.order(&xattr) == Ordering::Less);
        self.0.insert(at, xattr);
        Ok(())
    }

    /// Appends the full names, each with a NUL behind it; without those whose prefix is not supported.
    pub fn put_names(&self, to: &mut Vec<u8>) -> Result<(), Errno> {
        for xattr in &self.0 {
            if let Some((_, prefix)) = PREFIXES.iter().find(|(kind, _)| *kind == xattr.kind) {
                to.try_extend_from_slice(prefix)?;
                to.try_extend_from_slice(&xattr.name)?;
                to.try_push(0)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(names: &[(&str, &str)]) -> XattrList {
        let mut list = XattrList::default();
        for (name, value) in names {
            let name = Name::new(name.as_bytes()).expect("it is supported");
            list.insert(Xattr::new(name, value.as_bytes()).expect("there is memory")).expect("there is memory");
        }
        list
    }

    #[test]
    fn what_is_written_is_read() {
        let list = list(&[("user.long", "value"), ("trusted.a", ""), ("user.b", "12345678"), ("security.c", "x")]);
        let mut block = [0; 1024];
        list.write_block(&mut block).expect("it fits");
        assert_eq!(XattrList::read_block(&block).expect("it makes sense"), list);
        let mut names = Vec::new();
        list.put_names(&mut names).expect("there is memory");
        assert_eq!(names, b"user.b\0user.long\0trusted.a\0security.c\0");
        let mut area = [0; 128];
        list.write(&mut area, 4, 4).expect("it fits");
        assert_eq!(XattrList::read(&area, 4, 4).expect("it makes sense"), list);
        assert_eq!(list.write(&mut [0; 100], 4, 4), Err(Errno::ENOSPC));
    }

    #[test]
    fn areas_that_make_no_sense_are_refused() {
        let mut block = [0; 1024];
        list(&[("user.a", "value")]).write_block(&mut block).expect("it fits");
        for (at, byte) in [(0, 1), (4, 0), (8, 2), (35, 4), (36, 1), (41, 4), (32, 255)] {
            let mut bad = block;
            bad[at] = byte;
            let read = XattrList::read_block(&bad);
            assert!(read.is_err() || at == 32, "byte {at}: {read:?}");
        }
        assert_eq!(XattrList::read(&[1; 64], 4, 4), Err(Errno::EUCLEAN));
    }

    #[test]
    fn names_have_a_known_prefix_and_more() {
        assert_eq!(Name::new(b"user."), Err(Errno::EINVAL));
        assert_eq!(Name::new(b"system.posix_acl_access"), Err(Errno::EOPNOTSUPP));
        assert_eq!(Name::new(b"name"), Err(Errno::EOPNOTSUPP));
    }
}
