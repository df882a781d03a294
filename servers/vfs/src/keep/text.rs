//! Paths and other texts in preserved memory, in places of three sizes.
//!
//! A text is written once, before anything refers to it, and never changed. It has no check word: a text that something has written
//! into is a wrong path in /proc or of getcwd, nothing else.

use super::pool::{Pool, scaled};
use alloc::vec::Vec;
use recover::records::{Area, Recover};
use sys::fallible::filled;

/// Bytes of a place of each size, and how many there are.
const SIZES: [(usize, usize); 3] = [(64, scaled(262_144, 1024)), (512, scaled(8192, 128)), (4096, scaled(2048, 32))];
/// Lengths that a text can have, 0 included.
const LENGTHS: u32 = 4097;

/// Where a text is, and how long: 32 bits. An empty one is nowhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Text(u32);

impl Text {
    /// The empty text.
    pub const EMPTY: Text = Text(0);

    fn new(size: usize, place: usize, length: usize) -> Text {
        Text((place as u32 * SIZES.len() as u32 + size as u32) * LENGTHS + length as u32)
    }

    /// Encodes it for a record: 32 bits.
    pub fn to_word(self) -> u64 {
        self.0 as u64
    }

    /// Decodes it from a record.
    pub fn from_word(word: u64) -> Text {
        Text(word as u32)
    }

    /// Its length.
    pub fn bytes(self) -> usize {
        self.length()
    }

    fn length(self) -> usize {
        (self.0 % LENGTHS) as usize
    }

    fn size(self) -> usize {
        (self.0 / LENGTHS) as usize % SIZES.len()
    }

    fn place(self) -> usize {
        (self.0 / LENGTHS) as usize / SIZES.len()
    }
}

/// All texts.
#[derive(Debug)]
pub struct Texts {
    sizes: [(Area, Pool); SIZES.len()],
}

impl Texts {
    /// The next part of the layout, for at most `limit` texts, whose holders the caller counts. Only sizes with fewer places need shares.
    pub fn lay_out(recover: &Recover, limit: usize) -> Texts {
        let pool = |count: usize| if count < limit { Pool::shared(count, count) } else { Pool::new(count) };
        Texts { sizes: SIZES.map(|(bytes, count)| (Area::lay_out(recover, bytes * count), pool(count))) }
    }

    /// Writes a text for a user. `None`: no room, or too long.
    pub fn put(&self, recover: &Recover, text: &[u8], user: u32, turn: u64) -> Option<Text> {
        if text.is_empty() {
            return Some(Text::EMPTY);
        }
        let fitting = SIZES.iter().position(|(bytes, _)| text.len() <= *bytes)?;
        let (size, place) =
            (fitting..SIZES.len()).find_map(|size| Some((size, self.sizes[size].1.take(user, turn)?)))?;
        self.sizes[size].0.write(recover, place * SIZES[size].0, text);
        Some(Text::new(size, place, text.len()))
    }

    /// Reads a text; an impossible one is empty, as is one for which there is no memory.
    pub fn get(&self, recover: &Recover, text: Text) -> Vec<u8> {
        if !self.is_possible(text) {
            return Vec::new();
        }
        let Ok(mut bytes) = filled(0, text.length()) else { return Vec::new() };
        self.sizes[text.size()].0.read(recover, text.place() * SIZES[text.size()].0, &mut bytes);
        bytes
    }

    fn is_possible(&self, text: Text) -> bool {
        let (bytes, count) = SIZES[text.size()];
        (1..=bytes).contains(&text.length()) && text.place() < count
    }

    /// Frees a text that no record refers to after this turn.
    pub fn release(&self, text: Text, turn: u64) {
        if text.length() > 0 {
            self.sizes[text.size()].1.release(text.place(), turn);
        }
    }

    /// After a restart: this text is in use.
    pub fn claim(&self, text: Text, user: u32) {
        if self.is_possible(text) {
            self.sizes[text.size()].1.claim(text.place(), user);
        }
    }

    /// After a restart: all texts but the claimed ones are free.
    pub fn settle(&self) {
        self.sizes.iter().for_each(|(_, pool)| pool.settle());
    }

    /// Returns memory of free places to vm, of each size for which there are at least `least_bytes`.
    pub fn trim(&self, recover: &Recover, least_bytes: usize, turn: u64) {
        for ((area, pool), (bytes, _)) in self.sizes.iter().zip(SIZES) {
            pool.compact(least_bytes / bytes, turn, |run| area.discard(recover, run.start * bytes, run.len() * bytes));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_found_by_its_word() {
        for (size, (bytes, count)) in SIZES.into_iter().enumerate() {
            let text = Text::from_word(Text::new(size, count - 1, bytes).to_word());
            assert_eq!((text.size(), text.place(), text.length()), (size, count - 1, bytes));
        }
        const { assert!(262_144 * SIZES.len() as u64 * (LENGTHS as u64) < 1 << 32) };
    }
}
