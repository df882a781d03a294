//! Paths and other texts in preserved memory, in places of three sizes.
//!
//! A text is written once, before anything refers to it, and never changed. It has no check word: a text that something has written
//! into is a wrong path in /proc or of getcwd, nothing else.

use super::pool::{Pool, SCALE};
use alloc::{vec, vec::Vec};
use recover::records::{Area, Recover};

/// Bytes of a place of each size, and how many there are.
const SIZES: [(usize, usize); 3] = [(64, 8192 / SCALE), (512, 1024 / SCALE), (4096, 256 / SCALE)];
const LENGTH_BITS: u32 = 13;
const PLACE_BITS: u32 = 14;

/// Where a text is, and how long: 29 bits. An empty one is nowhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Text(u32);

impl Text {
    /// The empty text.
    pub const EMPTY: Text = Text(0);

    /// Encodes it for a record: 29 bits.
    pub fn to_word(self) -> u64 {
        self.0 as u64
    }

    /// Decodes it from a record.
    pub fn from_word(word: u64) -> Text {
        Text(word as u32)
    }

    fn length(self) -> usize {
        self.0 as usize % (1 << LENGTH_BITS)
    }

    fn size(self) -> usize {
        (self.0 >> (LENGTH_BITS + PLACE_BITS)) as usize % 4
    }

    fn place(self) -> usize {
        (self.0 >> LENGTH_BITS) as usize % (1 << PLACE_BITS)
    }
}

/// All texts.
#[derive(Debug)]
pub struct Texts {
    sizes: [(Area, Pool); SIZES.len()],
}

impl Texts {
    /// The next part of the layout.
    pub fn lay_out(recover: &Recover) -> Texts {
        Texts { sizes: SIZES.map(|(bytes, count)| (Area::lay_out(recover, bytes * count), Pool::new(count))) }
    }

    /// Writes a text. `None`: no room, or too long.
    pub fn put(&self, recover: &Recover, text: &[u8], turn: u64) -> Option<Text> {
        if text.is_empty() {
            return Some(Text::EMPTY);
        }
        let fitting = SIZES.iter().position(|(bytes, _)| text.len() <= *bytes)?;
        let (size, place) = (fitting..SIZES.len()).find_map(|size| Some((size, self.sizes[size].1.take(turn)?)))?;
        self.sizes[size].0.write(recover, place * SIZES[size].0, text);
        Some(Text((size << (LENGTH_BITS + PLACE_BITS) | place << LENGTH_BITS | text.len()) as u32))
    }

    /// Reads a text; an impossible one is empty.
    pub fn get(&self, recover: &Recover, text: Text) -> Vec<u8> {
        if !self.is_possible(text) {
            return Vec::new();
        }
        let mut bytes = vec![0; text.length()];
        self.sizes[text.size()].0.read(recover, text.place() * SIZES[text.size()].0, &mut bytes);
        bytes
    }

    fn is_possible(&self, text: Text) -> bool {
        SIZES
            .get(text.size())
            .is_some_and(|(bytes, count)| (1..=*bytes).contains(&text.length()) && text.place() < *count)
    }

    /// Frees a text that no record refers to after this turn.
    pub fn release(&self, text: Text, turn: u64) {
        if text.length() > 0 {
            self.sizes[text.size()].1.release(text.place(), turn);
        }
    }

    /// After a restart: frees all texts but these.
    pub fn rebuild(&self, used: &[Text]) {
        for (size, (_, pool)) in self.sizes.iter().enumerate() {
            let mut marks = vec![false; SIZES[size].1];
            let here = used.iter().filter(|text| text.size() == size && self.is_possible(**text));
            here.for_each(|text| marks[text.place()] = true);
            pool.rebuild(|place| marks[place]);
        }
    }
}
