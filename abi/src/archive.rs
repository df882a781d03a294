//! The boot archive: the binaries of all services, the system table and, if it is root, the ramdisk's image, in one file which
//! the boot loader puts into memory. Every file starts on a page boundary, so that it can be mapped as it is.
//!
//! Layout, little endian: magic, `u32` count, `u32` zero; then for each file 48 bytes of name (padded with zeros),
//! `u64` offset from the start of the archive, `u64` length.

/// First eight bytes.
pub const MAGIC: [u8; 8] = *b"SKINKAR1";
/// Length of the header before the entries.
pub const HEADER_BYTES: usize = 16;
/// Length of one entry.
pub const ENTRY_BYTES: usize = 64;
/// Capacity of a name, in bytes.
pub const NAME_BYTES: usize = 48;
/// Name of the system table.
pub const SYSTEM: &str = "system";
/// Name of the ramdisk's image.
pub const ROOT_IMAGE: &str = "root.img";

/// A file of the archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct File<'a> {
    /// Name.
    pub name: &'a str,
    /// Offset from the start of the archive.
    pub offset: u64,
    /// Content.
    pub data: &'a [u8],
}

/// A boot archive in memory.
#[derive(Clone, Copy, Debug)]
pub struct Archive<'a> {
    bytes: &'a [u8],
    count: usize,
}

impl<'a> Archive<'a> {
    /// Opens the archive in `bytes`; `None` if the header is not an archive's. Entries are checked when they are read.
    pub fn new(bytes: &'a [u8]) -> Option<Self> {
        let header = bytes.get(..HEADER_BYTES)?;
        let count = u32::from_le_bytes(header[8..12].try_into().ok()?) as usize;
        let whole = header[..8] == MAGIC && count <= (bytes.len() - HEADER_BYTES) / ENTRY_BYTES;
        whole.then_some(Archive { bytes, count })
    }

    /// Returns the file at `index`; `None` past the end or when the entry points outside the archive.
    pub fn file(&self, index: usize) -> Option<File<'a>> {
        if index >= self.count {
            return None;
        }
        let at = HEADER_BYTES + index * ENTRY_BYTES;
        let entry = &self.bytes[at..at + ENTRY_BYTES];
        let name_bytes = entry[..NAME_BYTES].iter().position(|&b| b == 0).unwrap_or(NAME_BYTES);
        let offset = u64::from_le_bytes(entry[48..56].try_into().ok()?);
        let length = u64::from_le_bytes(entry[56..64].try_into().ok()?);
        let end = offset.checked_add(length)?;
        let data = self.bytes.get(usize::try_from(offset).ok()?..usize::try_from(end).ok()?)?;
        Some(File { name: core::str::from_utf8(&entry[..name_bytes]).ok()?, offset, data })
    }

    /// Yields all files whose entries are valid.
    pub fn files(&self) -> impl Iterator<Item = File<'a>> + use<'a> {
        let archive = *self;
        (0..archive.count).filter_map(move |index| archive.file(index))
    }

    /// Returns the file with this name.
    pub fn find(&self, name: &str) -> Option<File<'a>> {
        self.files().find(|file| file.name == name)
    }
}
