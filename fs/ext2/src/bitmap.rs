//! Allocation bitmaps: bit n of byte n/8 is set when thing n is taken.

use core::ops::Range;

/// The byte that holds bit `bit`, in which it is bit `bit % 8`.
pub fn byte_of(bit: usize) -> Range<usize> {
    bit / 8..bit / 8 + 1
}

/// Whether bit `bit` is set.
pub fn is_set(bitmap: &[u8], bit: usize) -> bool {
    bitmap[bit / 8] & (1 << (bit % 8)) != 0
}

/// Sets bit `bit`.
pub fn set(bitmap: &mut [u8], bit: usize) {
    bitmap[bit / 8] |= 1 << (bit % 8);
}

/// Clears bit `bit`.
pub fn clear(bitmap: &mut [u8], bit: usize) {
    bitmap[bit / 8] &= !(1 << (bit % 8));
}

/// The first bit in `from..limit` that is clear in `bitmap`, and in `other` of the same size. They hold at least `limit` bits and
/// whole 8-byte words.
pub fn first_clear(bitmap: &[u8], other: Option<&[u8]>, from: usize, limit: usize) -> Option<usize> {
    let other = other.unwrap_or(bitmap);
    let mut ignored = (1u64 << (from % 64)) - 1;
    for (word, (bytes, others)) in bitmap.chunks_exact(8).zip(other.chunks_exact(8)).enumerate().skip(from / 64) {
        if word * 64 >= limit {
            break;
        }
        let taken = word_of(bytes) | word_of(others) | ignored;
        ignored = 0;
        if taken != u64::MAX {
            let bit = word * 64 + taken.trailing_ones() as usize;
            return (bit < limit).then_some(bit);
        }
    }
    None
}

fn word_of(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |bits, &byte| bits << 8 | u64::from(byte))
}
