//! Structures of Linux for x86-64 that file systems fill for programs: directory records, `stat`, `statfs`.

use abi::Errno;
use alloc::vec::Vec;
use sys::fallible::TryVec;

use crate::file_system::{Attributes, EntrySink, NAME_MAX, NodeId, S_IFMT, Statistics, Timestamp};

/// Bytes of `struct stat`.
pub const STAT_BYTES: usize = 144;
/// Bytes of `struct statfs`.
pub const STATFS_BYTES: usize = 120;

/// Bytes of a `linux_dirent64` before the name.
const DIRENT_HEADER: usize = 19;
/// Shift from the kind bits of a mode to `d_type`.
const KIND_SHIFT: u32 = 12;

/// `statfs` flags: `ST_VALID`, and `ST_RDONLY`.
const ST_VALID: u64 = 0x20;
const ST_RDONLY: u64 = 1;

/// Collects directory entries as `linux_dirent64` records.
pub struct Dirents {
    records: Vec<u8>,
    limit: usize,
    refused: bool,
}

impl Dirents {
    /// No records yet, in a buffer used before.
    ///
    /// # Errors
    /// `ENOMEM`.
    pub fn new(mut buffer: Vec<u8>, limit: usize) -> Result<Self, Errno> {
        buffer.clear();
        buffer.try_make_room(limit)?;
        Ok(Dirents { records: buffer, limit, refused: false })
    }

    /// The records.
    pub fn records(&self) -> &[u8] {
        &self.records
    }

    /// Whether the buffer is too small for the first entry.
    pub fn is_too_small(&self) -> bool {
        self.refused && self.records.is_empty()
    }

    /// The buffer, for the next time.
    pub fn into_buffer(self) -> Vec<u8> {
        self.records
    }
}

impl EntrySink for Dirents {
    #[expect(clippy::disallowed_methods, reason = "`new` has made room")]
    fn entry(&mut self, node: NodeId, next: u64, mode: u32, name: &[u8]) -> bool {
        let size = (DIRENT_HEADER + name.len() + 1).next_multiple_of(8);
        if self.records.len() + size > self.limit {
            self.refused = true;
            return false;
        }
        let end = self.records.len() + size;
        self.records.extend_from_slice(&node.to_le_bytes());
        self.records.extend_from_slice(&next.to_le_bytes());
        self.records.extend_from_slice(&(size as u16).to_le_bytes());
        self.records.push(((mode & S_IFMT) >> KIND_SHIFT) as u8);
        self.records.extend_from_slice(name);
        self.records.resize(end, 0);
        true
    }
}

/// `struct stat`; the device of the file system is left 0.
pub fn stat(attributes: &Attributes) -> [u8; STAT_BYTES] {
    let mut bytes = [0; STAT_BYTES];
    let mut put = |offset: usize, value: u64| bytes[offset..offset + 8].copy_from_slice(&value.to_le_bytes());
    put(8, attributes.node);
    put(16, attributes.links.into());
    put(24, u64::from(attributes.mode) | u64::from(attributes.uid) << 32);
    put(32, attributes.gid.into());
    put(40, attributes.device);
    put(48, attributes.size);
    put(56, attributes.block_size.into());
    put(64, attributes.blocks);
    for (offset, time) in [(72, attributes.accessed), (88, attributes.modified), (104, attributes.changed)] {
        put(offset, time.seconds as u64);
        put(offset + 8, time.nanos.into());
    }
    bytes
}

/// `struct statfs`.
pub fn statfs(statistics: &Statistics) -> [u8; STATFS_BYTES] {
    let mut bytes = [0; STATFS_BYTES];
    let flags = ST_VALID | if statistics.read_only { ST_RDONLY } else { 0 };
    let fields = [
        statistics.kind,
        statistics.block_size,
        statistics.blocks,
        statistics.blocks_free,
        statistics.blocks_available,
        statistics.nodes,
        statistics.nodes_free,
        statistics.id,
        NAME_MAX as u64,
        statistics.block_size,
        flags,
    ];
    for (field, out) in fields.iter().zip(bytes.chunks_exact_mut(8)) {
        out.copy_from_slice(&field.to_le_bytes());
    }
    bytes
}

/// Nanoseconds since 1970, of a time from then until 2554; `u64::MAX`: of another one.
pub fn nanoseconds(time: Timestamp) -> u64 {
    const SECOND: u64 = 1_000_000_000;
    let whole = u64::try_from(time.seconds).ok().and_then(|seconds| seconds.checked_mul(SECOND));
    whole.and_then(|ns| ns.checked_add(time.nanos.into())).unwrap_or(u64::MAX)
}

/// A time from nanoseconds since 1970.
pub fn timestamp(ns: u64) -> Timestamp {
    const SECOND: u64 = 1_000_000_000;
    Timestamp { seconds: (ns / SECOND) as i64, nanos: (ns % SECOND) as u32 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_from_1970_until_2554_have_nanoseconds() {
        for ns in [0, 1_500_000_000_000_000_007, u64::MAX - 1] {
            assert_eq!(nanoseconds(timestamp(ns)), ns);
        }
        for (seconds, nanos) in [(-1, 999_999_999), (i64::MIN, 0), (18_446_744_073, 709_551_616), (18_446_744_074, 0)] {
            assert_eq!(nanoseconds(Timestamp { seconds, nanos }), u64::MAX, "{seconds} s");
        }
    }
}
