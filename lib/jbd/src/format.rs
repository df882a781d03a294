//! The blocks of a transaction: headers, tags of a descriptor, numbers of a revocation, commits.
//!
//! Blocks are slices of the journal's block size, at least `MIN_BLOCK` bytes. Readers accept any content.

/// Magic number at the beginning of every block of the journal that is no content.
pub const MAGIC: u32 = 0xc03b_3998;
/// Smallest block, in bytes.
pub const MIN_BLOCK: usize = 1024;

const HEADER_BYTES: usize = 12;
const TAG_BYTES: usize = 8;
const UUID_BYTES: usize = 16;
/// Bytes of a revocation before its first number.
const REVOKE_HEAD: usize = 16;

/// The content is escaped.
const FLAG_ESCAPED: u32 = 1;
/// The tag has the UUID of the one before, and so none of its own.
const FLAG_SAME_UUID: u32 = 2;
/// The last tag of the descriptor.
const FLAG_LAST: u32 = 8;

/// What a block of the journal is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Homes of the contents that follow.
    Descriptor,
    /// The end of a transaction, which counts from then on.
    Commit,
    /// Homes whose earlier contents are not replayed.
    Revoke,
    /// Something else, such as a superblock.
    Other(u32),
}

/// What every block begins with that is no content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// What the block is.
    pub kind: Kind,
    /// The transaction that it belongs to.
    pub sequence: u32,
}

impl Header {
    /// Reads the header of a block. `None` without the magic number.
    pub fn read(block: &[u8]) -> Option<Header> {
        if be32(block, 0) != MAGIC {
            return None;
        }
        let kind = match be32(block, 4) {
            1 => Kind::Descriptor,
            2 => Kind::Commit,
            5 => Kind::Revoke,
            other => Kind::Other(other),
        };
        Some(Header { kind, sequence: be32(block, 8) })
    }

    /// Makes `block` one with this header and zeros.
    fn write(self, block: &mut [u8]) {
        block.fill(0);
        let kind = match self.kind {
            Kind::Descriptor => 1,
            Kind::Commit => 2,
            Kind::Revoke => 5,
            Kind::Other(other) => other,
        };
        put_be32(block, 0, MAGIC);
        put_be32(block, 4, kind);
        put_be32(block, 8, self.sequence);
    }
}

/// A tag of a descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tag {
    /// Home of the content.
    pub home: u32,
    /// Whether the content is escaped.
    pub is_escaped: bool,
}

/// Iterates over the tags of a descriptor, to the last one or the end of the block.
pub fn tags(descriptor: &[u8]) -> impl Iterator<Item = Tag> {
    let mut next = Some(HEADER_BYTES);
    core::iter::from_fn(move || {
        let at = next.filter(|at| at + TAG_BYTES <= descriptor.len())?;
        // The upper half is a checksum that later formats have.
        let flags = be32(descriptor, at + 4) & 0xffff;
        let uuid = if flags & FLAG_SAME_UUID == 0 { UUID_BYTES } else { 0 };
        next = (flags & FLAG_LAST == 0).then_some(at + TAG_BYTES + uuid);
        Some(Tag { home: be32(descriptor, at), is_escaped: flags & FLAG_ESCAPED != 0 })
    })
}

/// Iterates over the homes in a revocation. `None` if its length is impossible.
pub fn revoked(block: &[u8]) -> Option<impl Iterator<Item = u32>> {
    let used = be32(block, 12) as usize;
    let numbers = block.get(REVOKE_HEAD..used)?;
    Some(numbers.chunks_exact(4).map(|number| be32(number, 0)))
}

/// Returns how many tags a descriptor has room for.
pub const fn tags_in(block_size: usize) -> usize {
    (block_size - HEADER_BYTES - UUID_BYTES) / TAG_BYTES
}

/// Returns how many homes a revocation has room for.
pub const fn revocations_in(block_size: usize) -> usize {
    (block_size - REVOKE_HEAD) / 4
}

/// Makes `block` the descriptor of `tags`, of which there are between 1 and `tags_in`.
pub fn write_descriptor(block: &mut [u8], sequence: u32, tags: impl ExactSizeIterator<Item = Tag>) {
    Header { kind: Kind::Descriptor, sequence }.write(block);
    let count = tags.len();
    let mut at = HEADER_BYTES;
    for (number, tag) in tags.enumerate() {
        // The UUID after the first tag is that of the journal's file system, which is zeros for one inside.
        let same = if number == 0 { 0 } else { FLAG_SAME_UUID };
        let last = if number + 1 == count { FLAG_LAST } else { 0 };
        let escaped = if tag.is_escaped { FLAG_ESCAPED } else { 0 };
        put_be32(block, at, tag.home);
        put_be32(block, at + 4, same | last | escaped);
        at += TAG_BYTES + if number == 0 { UUID_BYTES } else { 0 };
    }
}

/// Makes `block` the revocation of `homes`, at most `revocations_in`.
pub fn write_revocation(block: &mut [u8], sequence: u32, homes: &[u32]) {
    Header { kind: Kind::Revoke, sequence }.write(block);
    put_be32(block, 12, (REVOKE_HEAD + 4 * homes.len()) as u32);
    for (&home, field) in homes.iter().zip(block[REVOKE_HEAD..].chunks_exact_mut(4)) {
        put_be32(field, 0, home);
    }
}

/// Makes `block` the commit of a transaction.
pub fn write_commit(block: &mut [u8], sequence: u32) {
    Header { kind: Kind::Commit, sequence }.write(block);
}

/// Whether a content begins with the magic number, and so must be escaped.
pub fn must_escape(content: &[u8]) -> bool {
    be32(content, 0) == MAGIC
}

/// Escapes a content.
pub fn escape(content: &mut [u8]) {
    put_be32(content, 0, 0);
}

/// Restores a content that was escaped.
pub fn unescape(content: &mut [u8]) {
    put_be32(content, 0, MAGIC);
}

/// The big-endian field at `offset`.
pub(crate) fn be32(bytes: &[u8], offset: usize) -> u32 {
    u32::from_be_bytes([bytes[offset], bytes[offset + 1], bytes[offset + 2], bytes[offset + 3]])
}

/// Sets the big-endian field at `offset`.
pub(crate) fn put_be32(bytes: &mut [u8], offset: usize, value: u32) {
    bytes[offset..offset + 4].copy_from_slice(&value.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        for block_size in [1024, 2048, 4096] {
            let mut block = vec![0xff; block_size];
            let tag = |number: usize| Tag { home: number as u32 * 3, is_escaped: number.is_multiple_of(5) };
            for count in [1, 2, 60, tags_in(block_size)] {
                write_descriptor(&mut block, 7, (0..count).map(tag));
                assert_eq!(Header::read(&block), Some(Header { kind: Kind::Descriptor, sequence: 7 }));
                assert!(tags(&block).eq((0..count).map(tag)));
            }
            let homes: Vec<u32> = (0..revocations_in(block_size) as u32).map(|number| number * 9).collect();
            for count in [0, 1, homes.len()] {
                write_revocation(&mut block, 8, &homes[..count]);
                assert!(revoked(&block).unwrap().eq(homes[..count].iter().copied()));
            }
            write_commit(&mut block, 9);
            assert_eq!(Header::read(&block), Some(Header { kind: Kind::Commit, sequence: 9 }));
        }
    }

    #[test]
    fn a_descriptor_without_a_last_tag_ends_with_its_block() {
        let mut block = [0; 1024];
        Header { kind: Kind::Descriptor, sequence: 1 }.write(&mut block);
        for at in (12..1024).step_by(4) {
            put_be32(&mut block, at, FLAG_SAME_UUID);
        }
        assert_eq!(tags(&block).count(), 126);
    }

    #[test]
    fn an_impossible_length_of_a_revocation_is_none() {
        let mut block = [0; 1024];
        for used in [0, 15, 1025, u32::MAX] {
            put_be32(&mut block, 12, used);
            assert!(revoked(&block).is_none());
        }
        put_be32(&mut block, 12, 1024);
        assert_eq!(revoked(&block).unwrap().count(), revocations_in(1024));
    }

    #[test]
    fn only_a_content_with_the_magic_number_is_escaped() {
        let mut content = [0xc0, 0x3b, 0x39, 0x98, 1, 2, 3, 4];
        let old = content;
        assert!(must_escape(&content));
        escape(&mut content);
        assert!(!must_escape(&content));
        assert_eq!(Header::read(&[0; 16]), None);
        unescape(&mut content);
        assert_eq!(content, old);
    }
}
