//! The hash of a name, by which an indexed directory is ordered: the three functions of the format, each with signed or unsigned characters.
//!
//! The seed in the superblock differs from file system to file system, so that nobody can prepare names that collide.

use fs::bytes::u32_at;

/// Initial state without a seed.
const INITIAL: [u32; 4] = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476];
/// Added in the second and third round of half MD4.
const ROUND_KEYS: [u32; 2] = [0x5a82_7999, 0x6ed9_eba1];
/// Added in each round of TEA.
const TEA_DELTA: u32 = 0x9e37_79b9;
const TEA_ROUNDS: u32 = 16;
/// This value means the end of a directory in Linux's positions, so that no name has it.
const END: u32 = 0xffff_fffe;
/// What a name that would have it gets instead.
const BEFORE_END: u32 = 0xffff_fffc;

/// A hash function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Function {
    /// The first one that ext3 had.
    Legacy,
    /// MD4 with half of its rounds.
    HalfMd4,
    /// The cipher TEA.
    Tea,
}

impl Function {
    /// The function with this number on the disk.
    pub fn from_number(number: u8) -> Option<Function> {
        [Function::Legacy, Function::HalfMd4, Function::Tea].get(usize::from(number)).copied()
    }
}

/// A hash: the index is ordered by the first part, which is even; names in a listing by both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Hash {
    /// Even.
    pub major: u32,
    /// Tells names apart whose first part is the same, in two of the functions.
    pub minor: u32,
}

/// How a file system hashes names.
#[derive(Clone, Copy, Debug)]
pub struct Hasher {
    state: [u32; 4],
    is_signed: bool,
    /// The function of new indexes.
    pub function: Function,
}

impl Hasher {
    /// Decodes it from the superblock. `None`: an unknown function.
    pub fn read(superblock: &[u8]) -> Option<Hasher> {
        const SEED: usize = 236;
        const VERSION: usize = 252;
        const FLAGS: usize = 352;
        const UNSIGNED: u32 = 2;
        let seed = core::array::from_fn(|word| u32_at(superblock, SEED + word * 4));
        let state = if seed == [0; 4] { INITIAL } else { seed };
        let is_signed = u32_at(superblock, FLAGS) & UNSIGNED == 0;
        Some(Hasher { state, is_signed, function: Function::from_number(superblock[VERSION])? })
    }

    /// Hashes a name.
    pub fn hash(&self, function: Function, name: &[u8]) -> Hash {
        let (major, minor) = match function {
            Function::Legacy => (self.legacy(name), 0),
            Function::HalfMd4 => {
                let state = self.over::<8>(name, half_md4);
                (state[1], state[2])
            }
            Function::Tea => {
                let state = self.over::<4>(name, tea);
                (state[0], state[1])
            }
        };
        let major = major & !1;
        Hash { major: if major == END { BEFORE_END } else { major }, minor }
    }

    #[inline]
    fn character(&self, byte: u8) -> u32 {
        if self.is_signed { byte as i8 as u32 } else { byte.into() }
    }

    fn legacy(&self, name: &[u8]) -> u32 {
        let (mut hash, mut before) = (0x12a3_fe2d_u32, 0x37ab_e8f9_u32);
        for &byte in name {
            let next = before.wrapping_add(hash ^ self.character(byte).wrapping_mul(7_152_373));
            before = hash;
            hash = if next & 0x8000_0000 == 0 { next } else { next.wrapping_sub(0x7fff_ffff) };
        }
        hash << 1
    }

    /// Runs `transform` over the name in pieces of N words.
    fn over<const N: usize>(&self, name: &[u8], transform: fn(&mut [u32; 4], &[u32; N])) -> [u32; 4] {
        let mut state = self.state;
        let mut rest = name;
        while !rest.is_empty() {
            transform(&mut state, &self.words(rest));
            rest = rest.get(4 * N..).unwrap_or_default();
        }
        state
    }

    /// The next N words of a name: characters shifted in from the right, and the length where there are none.
    #[inline]
    fn words<const N: usize>(&self, rest: &[u8]) -> [u32; N] {
        let length = rest.len() as u32;
        let padding = (length | length << 8).wrapping_mul(0x1_0001);
        let mut words = [padding; N];
        let (whole, last) = rest.as_chunks::<4>();
        for (word, bytes) in words.iter_mut().zip(whole) {
            *word = self.word(*bytes);
        }
        if let Some(word) = words.get_mut(whole.len()) {
            *word = last.iter().fold(padding, |word, &byte| self.character(byte).wrapping_add(word << 8));
        }
        words
    }

    /// Four characters. Those of ASCII are the same with and without a sign.
    #[inline]
    fn word(&self, bytes: [u8; 4]) -> u32 {
        let plain = u32::from_be_bytes(bytes);
        if plain & 0x8080_8080 == 0 || !self.is_signed {
            return plain;
        }
        bytes.iter().fold(0, |word, &byte| self.character(byte).wrapping_add(word << 8))
    }
}

fn tea(state: &mut [u32; 4], input: &[u32; 4]) {
    let (mut left, mut right) = (state[0], state[1]);
    let mix = |half: u32, sum: u32, a: u32, b: u32| {
        (half << 4).wrapping_add(a) ^ half.wrapping_add(sum) ^ (half >> 5).wrapping_add(b)
    };
    let mut sum = 0u32;
    for _ in 0..TEA_ROUNDS {
        sum = sum.wrapping_add(TEA_DELTA);
        left = left.wrapping_add(mix(right, sum, input[0], input[1]));
        right = right.wrapping_add(mix(left, sum, input[2], input[3]));
    }
    state[0] = state[0].wrapping_add(left);
    state[1] = state[1].wrapping_add(right);
}

fn half_md4(state: &mut [u32; 4], input: &[u32; 8]) {
    let before = *state;
    round(state, input, |x, y, z| z ^ (x & (y ^ z)), 0, [0, 1, 2, 3, 4, 5, 6, 7], [3, 7, 11, 19]);
    let majority = |x, y, z| (x & y) | ((x ^ y) & z);
    round(state, input, majority, ROUND_KEYS[0], [1, 3, 5, 7, 0, 2, 4, 6], [3, 5, 9, 13]);
    round(state, input, |x, y, z| x ^ y ^ z, ROUND_KEYS[1], [3, 7, 2, 6, 1, 5, 0, 4], [3, 9, 11, 15]);
    for (word, added) in state.iter_mut().zip(before) {
        *word = word.wrapping_add(added);
    }
}

/// One round over the input, in this order: each step changes one word of the state. Unrolled twice, since a word has its turn every fourth step.
#[inline(always)]
fn round(
    state: &mut [u32; 4],
    input: &[u32; 8],
    mix: impl Fn(u32, u32, u32) -> u32,
    key: u32,
    order: [usize; 8],
    turns: [u32; 4],
) {
    let [mut a, mut b, mut c, mut d] = *state;
    let step = |word: u32, x, y, z, number: usize| {
        let sum: u32 = mix(x, y, z);
        sum.wrapping_add(word).wrapping_add(input[order[number]]).wrapping_add(key).rotate_left(turns[number % 4])
    };
    for half in [0, 4] {
        a = step(a, b, c, d, half);
        d = step(d, a, b, c, half + 1);
        c = step(c, d, a, b, half + 2);
        b = step(b, c, d, a, half + 3);
    }
    *state = [a, b, c, d];
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hasher(state: [u32; 4], is_signed: bool) -> Hasher {
        Hasher { state, is_signed, function: Function::HalfMd4 }
    }

    #[test]
    fn the_length_pads_what_a_name_does_not_fill() {
        let words: [u32; 4] = hasher(INITIAL, true).words(b"abcde");
        assert_eq!(words, [0x6162_6364, 0x0505_0565, 0x0505_0505, 0x0505_0505]);
    }

    /// What `debugfs -R 'dx_hash -h FUNCTION -s SEED NAME'` prints.
    #[test]
    fn names_have_the_hashes_that_e2fsprogs_computes() {
        const LONG: &[u8] = b"a-rather-long-name-that-needs-more-than-one-piece-of-the-hash";
        let seed = [0x4038_d28e, 0xa74b_f434, 0x5e99_1d9c, 0x37e1_157a];
        for (state, function, name, major, minor) in [
            (INITIAL, Function::Legacy, &b"name123"[..], 0x6747_4ed4, 0),
            (seed, Function::Legacy, LONG, 0x34f9_e6c0, 0),
            (INITIAL, Function::HalfMd4, b"a", 0xd5fa_7d7a, 0xacb4_8187),
            (INITIAL, Function::HalfMd4, b"thirty-two-bytes-exactly-aaaaaaa", 0x8ca3_fcf6, 0xb4f5_b579),
            (seed, Function::HalfMd4, LONG, 0x63fb_9032, 0xeffe_960d),
            (INITIAL, Function::Tea, b"name123", 0x30c8_4030, 0x9151_b34b),
            (seed, Function::Tea, LONG, 0x5229_7f28, 0xd11d_9c54),
        ] {
            assert_eq!(hasher(state, true).hash(function, name), Hash { major, minor }, "{function:?}");
        }
    }

    #[test]
    fn only_characters_beyond_ascii_have_a_sign() {
        let (signed, unsigned) = (hasher(INITIAL, true), hasher(INITIAL, false));
        for function in [Function::Legacy, Function::HalfMd4, Function::Tea] {
            assert_eq!(signed.hash(function, b"ascii"), unsigned.hash(function, b"ascii"));
            assert_ne!(signed.hash(function, b"\xe9t\xe9"), unsigned.hash(function, b"\xe9t\xe9"));
        }
    }

    #[test]
    fn each_of_four_characters_may_have_a_sign() {
        for is_signed in [true, false] {
            let hasher = hasher(INITIAL, is_signed);
            for at in 0..4 {
                for byte in [1, 0x7f, 0x80, 0x81, 0xff] {
                    let mut name = *b"\0\0\0\0";
                    name[at] = byte;
                    let value = if is_signed { i32::from(byte as i8) } else { i32::from(byte) };
                    let [word]: [u32; 1] = hasher.words(&name);
                    assert_eq!(word, (value << (24 - 8 * at)) as u32, "{name:?}");
                }
            }
        }
    }

    #[test]
    fn the_seed_matters_and_the_hash_is_even() {
        let one = hasher([1, 2, 3, 4], true);
        for function in [Function::HalfMd4, Function::Tea] {
            assert_ne!(one.hash(function, b"name"), hasher(INITIAL, true).hash(function, b"name"));
            assert_eq!(one.hash(function, b"name").major & 1, 0);
        }
    }
}
