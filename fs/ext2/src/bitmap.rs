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

#[cfg(test)]
mod tests {
    use super::*;

    /// xorshift.
    fn random(state: &mut u64) -> u64 {
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        *state
    }

    #[test]
    fn bits_are_set_and_cleared_one_by_one() {
        let mut bitmap = [0u8; 16];
        for bit in [0, 7, 8, 63, 64, 127] {
            set(&mut bitmap, bit);
            assert!((0..128).all(|other| is_set(&bitmap, other) == (other == bit)), "{bit}");
            assert_eq!((byte_of(bit), bitmap[byte_of(bit)][0]), (bit / 8..bit / 8 + 1, 1 << (bit % 8)));
            clear(&mut bitmap, bit);
            assert_eq!(bitmap, [0; 16]);
        }
        bitmap = [0xff; 16];
        clear(&mut bitmap, 77);
        assert!((0..128).all(|other| is_set(&bitmap, other) == (other != 77)));
    }

    #[test]
    fn the_first_bit_that_is_clear_in_both_is_found_whatever_is_before_and_behind_it() {
        let mut state = 1;
        for round in 0..20_000u64 {
            // Mostly full, so that whole words are passed.
            let mut bitmaps = [[0xff; 32]; 2];
            for _ in 0..random(&mut state) % 6 {
                let bit = (random(&mut state) % 256) as usize & !((round % 2) as usize * 63);
                bitmaps.iter_mut().for_each(|bitmap| clear(bitmap, bit));
                clear(&mut bitmaps[(random(&mut state) % 2) as usize], (random(&mut state) % 256) as usize);
            }
            let [one, other] = &bitmaps;
            let (from, limit) = ((random(&mut state) % 257) as usize, (random(&mut state) % 257) as usize);
            let both = (from..limit).find(|&bit| !is_set(one, bit) && !is_set(other, bit));
            assert_eq!(first_clear(one, Some(other), from, limit), both, "{from} {limit} {bitmaps:x?}");
            let alone = (from..limit).find(|&bit| !is_set(one, bit));
            assert_eq!(first_clear(one, None, from, limit), alone, "{from} {limit} {one:x?}");
        }
    }
}
