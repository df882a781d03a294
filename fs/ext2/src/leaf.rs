//! The names of a leaf of an indexed directory, in the order of their hashes: for splits and listings. Neighbour: `index`.

use alloc::vec::Vec;
use sys::fallible::{self, TryVec};

use fs::Errno;

use crate::entry::{Entries, Entry, EntryFormat, Filling, is_dot};
use crate::hash::{Function, Hash, Hasher};

/// Bytes of a usual record: for how many a leaf is expected to have.
const USUAL_RECORD: usize = 24;

/// Position of the first name that is neither `.` nor `..`.
pub(crate) const FIRST: u64 = 2;
/// Bits of a position that are of the minor hash. Above are all of the major hash but its lowest bit, which none has.
pub(crate) const MINOR_BITS: u32 = 17;
/// Bits of a position that number the names whose hashes are the same in all the others.
pub(crate) const ORDINAL_BITS: u32 = 5;

/// An entry in a leaf, ordered by hash: from the highest bit on both parts of the hash, the block of the file system, the offset there, and the bytes that it
/// needs. One number, because leaves are sorted whenever they are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Hashed(u128);

impl Hashed {
    fn new(hash: Hash, block: u32, entry: &Entry) -> Self {
        let hash = u64::from(hash.major) << 32 | u64::from(hash.minor);
        let place = u64::from(block) << 32 | (entry.offset as u64) << 16 | entry.used() as u64;
        Hashed(u128::from(hash) << 64 | u128::from(place))
    }

    pub(crate) fn major(self) -> u32 {
        (self.0 >> 96) as u32
    }

    /// The position of a listing here, without the number among names with the same hash: below `DIRECTORY_END`, since no hash has all of these bits.
    pub(crate) fn position(self) -> u64 {
        let hash = (self.0 >> 64) as u64;
        let position = hash >> 33 << MINOR_BITS | u64::from(hash as u32 >> (u32::BITS - MINOR_BITS));
        (position >> ORDINAL_BITS << ORDINAL_BITS).max(FIRST)
    }

    pub(crate) fn block(self) -> u64 {
        u64::from((self.0 >> 32) as u32)
    }

    pub(crate) fn offset(self) -> usize {
        usize::from((self.0 >> 16) as u16)
    }

    fn size(self) -> usize {
        usize::from(self.0 as u16)
    }
}

/// Where entries in ascending order are divided, so that both parts need about the same space; at least one is in each. Returns the number in
/// the first part, and the hash of the index entry for the second.
pub(crate) fn division(entries: &[Hashed]) -> Option<(usize, u32)> {
    let total: usize = entries.iter().map(|entry| entry.size()).sum();
    let mut before = 0;
    let full = entries.iter().position(|entry| {
        before += entry.size();
        2 * before > total
    });
    let at = full?.max(1);
    let (last, first) = (entries.get(at - 1)?.major(), entries.get(at)?.major());
    Some((at, first | u32::from(first == last)))
}

/// The names in a block, in the order of their hashes.
pub(crate) fn hashed(
    hasher: Hasher,
    function: Function,
    format: EntryFormat,
    block: u64,
    bytes: &[u8],
) -> Result<Vec<Hashed>, Errno> {
    let mut all = Vec::new();
    all.try_make_room(bytes.len() / USUAL_RECORD)?;
    for entry in Entries::new(bytes, format) {
        let entry = entry?;
        if entry.node != 0 && !is_dot(entry.name) {
            all.try_push(Hashed::new(hasher.hash(function, entry.name), block as u32, &entry))?;
        }
    }
    all.sort_unstable();
    Ok(all)
}

/// A block with these entries of the block `old`; `None`: they do not fit.
pub(crate) fn packed(old: &[u8], entries: &[Hashed], format: EntryFormat) -> Result<Option<Vec<u8>>, Errno> {
    let mut image = fallible::filled(0, old.len())?;
    let mut filling = Filling::begin(&mut image, format);
    for hashed in entries {
        if !filling.add(&Entry::at(old, hashed.offset(), format)?) {
            return Ok(None);
        }
    }
    Ok(Some(image))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Records of these hashes with names of these lengths, in block 7.
    fn records(all: &[(u32, usize)]) -> Vec<Hashed> {
        let name = [b'n'; 255];
        let record = |at: usize, (major, length): (u32, usize)| {
            let entry = Entry { offset: 300 * at, size: 300, node: 5, kind: 0, name: &name[..length] };
            Hashed::new(Hash { major, minor: 0x47 << 15 }, 7, &entry)
        };
        all.iter().enumerate().map(|(at, &one)| record(at, one)).collect()
    }

    #[test]
    fn a_leaf_is_divided_where_both_parts_need_about_the_same_space() {
        for (all, expected) in [
            (&[][..], None),
            (&[(2, 8)], None),
            (&[(2, 8), (4, 8)], Some((1, 4))),
            (&[(2, 8), (4, 8), (6, 8), (8, 8)], Some((2, 6))),
            (&[(2, 8), (4, 8), (6, 8), (8, 12)], Some((2, 6))),
            (&[(2, 12), (4, 8), (6, 8), (8, 8)], Some((1, 4))),
            (&[(2, 200), (4, 8)], Some((1, 4))),
            (&[(2, 8), (4, 200)], Some((1, 4))),
            (&[(2, 8), (4, 8), (4, 8), (6, 8)], Some((2, 4 | 1))),
        ] {
            assert_eq!(division(&records(all)), expected, "{all:?}");
        }
    }

    #[test]
    fn a_record_has_the_position_of_its_hash_but_for_the_last_bits_and_its_place() {
        let all = records(&[(0, 8), (6, 8)]);
        assert_eq!(all.iter().map(|record| record.position()).collect::<Vec<_>>(), [0x40, 3 << MINOR_BITS | 0x40]);
        assert_eq!((all[1].major(), all[1].block(), all[1].offset(), all[1].size()), (6, 7, 300, 16));
        let entry = Entry { offset: 12, size: 300, node: 5, kind: 0, name: b"n" };
        let first = Hashed::new(Hash { major: 0, minor: 1 }, 7, &entry);
        assert_eq!(first.position(), FIRST, "before it are . and ..");
        assert!(first < all[0] && all[0] < all[1]);
    }
}
