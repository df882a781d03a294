//! Grants: the right to copy to or from a buffer, given by its owner to one grantee (docs/book/ideas.md, 5).
//!
//! A process keeps its grants in a table in its own memory, registered once by `SetGrants`; the kernel reads the entry at
//! every copy, so clearing an entry revokes the grant at once.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Number of a grant: index of the entry (bits 0 to 15) and its sequence number (bits 16 to 31), so that a stale
/// number never names a later grant.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct GrantId(pub u32);

impl GrantId {
    /// No grant.
    pub const NONE: GrantId = GrantId(0xffff_ffff);

    /// Returns the number of the grant in this entry with this sequence number.
    pub const fn new(index: u16, sequence: u16) -> Self {
        GrantId(index as u32 | (sequence as u32) << 16)
    }
    /// Returns the index of the entry.
    pub const fn index(self) -> usize {
        (self.0 & 0xffff) as usize
    }
    /// Returns the sequence number.
    pub const fn sequence(self) -> u16 {
        (self.0 >> 16) as u16
    }
}

/// The grantee may copy from the buffer.
pub const READ: u32 = 1;
/// The grantee may copy into the buffer.
pub const WRITE: u32 = 2;
/// The entry is valid.
pub const USED: u32 = 4;
/// Magic: the buffer is in the memory of `owner`, not of the granter. Only processes with the privilege flag `MAGIC_GRANTS`.
pub const MAGIC: u32 = 8;

/// One entry of a grant table: 32 bytes, aligned to 32, so that it never crosses a page.
#[repr(C, align(32))]
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct GrantEntry {
    /// `READ`, `WRITE`, `USED`, `MAGIC`.
    pub flags: u32,
    /// Sequence number, low 16 bits.
    pub sequence: u32,
    /// Grantee: an exact endpoint, or `Endpoint::current` for every incarnation of a service.
    pub grantee: crate::Endpoint,
    /// Owner of the buffer, for magic grants.
    pub owner: crate::Endpoint,
    /// Start of the buffer in its owner's memory.
    pub address: u64,
    /// Length of the buffer.
    pub bytes: u64,
}

const _: () = assert!(core::mem::size_of::<GrantEntry>() == 32);

/// Limit of entries in one table.
pub const MAX_GRANTS: usize = 4096;
