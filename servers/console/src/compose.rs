//! Accents: dead keys and Compose. Two characters become one, by a table that programs read and change (KDGKBDIACRUC, KDSKBDIACRUC).

use alloc::vec::Vec;
use recover::snapshot::{Reader, Writer};
use sys::Errno;
use sys::fallible::{self, TryVec};

/// Limit of pairs (Linux's).
pub const PAIRS: usize = 256;
/// Diacritical characters of the symbols of dead keys, by number.
const DEAD: [char; 27] = [
    '`', '\'', '^', '~', '"', ',', '_', 'U', '.', '*', '=', 'c', 'k', 'i', '#', 'o', '!', '?', '+', '-', ')', '(', ':',
    'n', ';', '$', '@',
];
/// The pairs of a fresh machine: accent, base, result.
const USUAL: &str = "`AÀ`aà'AÁ'aá^AÂ^aâ~AÃ~aã\"AÄ\"aäOAÅoaå0AÅ0aåAAÅaaåAEÆaeæ,CÇ,cç`EÈ`eè'EÉ'eé^EÊ^eê\"EË\"eë`IÌ`iì'IÍ'ií^IÎ^iî\"IÏ\"iï-DÐ-dð~NÑ~nñ`OÒ`oò'OÓ'oó^OÔ^oô~OÕ~oõ\"OÖ\"oö/OØ/oø`UÙ`uù'UÚ'uú^UÛ^uû\"UÜ\"uü'YÝ'yýTHÞthþssß\"yÿszßijÿ";

/// What a character that follows another becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair {
    pub accent: char,
    pub base: char,
    pub result: char,
}

/// What is to become of the next character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waits {
    Nothing,
    /// It is the first of two.
    Compose,
    /// It is the second, after this one.
    Accent(char),
}

/// See the head of the file.
pub struct Compose {
    pairs: Vec<Pair>,
    waits: Waits,
}

impl Compose {
    /// The usual pairs.
    ///
    /// # Errors
    /// `ENOMEM`.
    pub fn usual() -> Result<Compose, Errno> {
        let mut compose = Compose { pairs: fallible::with_capacity(PAIRS)?, waits: Waits::Nothing };
        let mut characters = USUAL.chars();
        while let (Some(accent), Some(base), Some(result)) = (characters.next(), characters.next(), characters.next()) {
            compose.pairs.push_reserved(Pair { accent, base, result });
        }
        Ok(compose)
    }

    /// The pairs.
    pub fn pairs(&self) -> &[Pair] {
        &self.pairs
    }

    /// Takes other pairs.
    pub fn set(&mut self, pairs: impl Iterator<Item = Pair>) {
        self.pairs.clear();
        pairs.take(PAIRS).for_each(|pair| self.pairs.push_reserved(pair));
    }

    /// The character of a dead key with this number.
    pub fn dead(number: u8) -> Option<char> {
        DEAD.get(usize::from(number)).copied()
    }

    /// Compose is pressed.
    pub fn begin(&mut self) {
        self.waits = Waits::Compose;
    }

    /// A dead key is pressed. Two of them are one that is both, if there is a pair of them. Returns what is to be sent.
    pub fn accent(&mut self, accent: char) -> [Option<char>; 2] {
        let (sent, accent) = match self.waits {
            Waits::Accent(first) => self.combine(first, accent),
            _ => (None, accent),
        };
        self.waits = Waits::Accent(accent);
        [sent, None]
    }

    /// A character is typed. Returns what is to be sent.
    pub fn character(&mut self, character: char) -> [Option<char>; 2] {
        match core::mem::replace(&mut self.waits, Waits::Nothing) {
            Waits::Nothing => [None, Some(character)],
            Waits::Compose => {
                self.waits = Waits::Accent(character);
                [None, None]
            }
            Waits::Accent(accent) => {
                let (first, second) = self.combine(accent, character);
                [first, Some(second)]
            }
        }
    }

    /// The two as one character, or both where there is no pair: an accent before a space, or twice, stands for itself.
    fn combine(&self, accent: char, base: char) -> (Option<char>, char) {
        match self.pairs.iter().find(|pair| (pair.accent, pair.base) == (accent, base)) {
            Some(pair) => (None, pair.result),
            None if base == ' ' || base == accent => (None, accent),
            None => (Some(accent), base),
        }
    }

    /// Saves what is waited for.
    pub fn save_state(&self, writer: &mut Writer) {
        writer.number(match self.waits {
            Waits::Nothing => 0,
            Waits::Compose => u64::MAX,
            Waits::Accent(accent) => u64::from(u32::from(accent)) | 1 << 32,
        });
    }

    /// Loads it.
    pub fn load_state(&mut self, reader: &mut Reader) -> Option<()> {
        self.waits = match reader.number()? {
            0 => Waits::Nothing,
            u64::MAX => Waits::Compose,
            accent => Waits::Accent(char::from_u32(accent as u32)?),
        };
        Some(())
    }

    /// Saves the pairs.
    pub fn save(&self, writer: &mut Writer) {
        writer.number(self.pairs.len() as u64);
        for pair in &self.pairs {
            // A character has 21 bits.
            let [accent, base, result] = [pair.accent, pair.base, pair.result].map(|one| u64::from(u32::from(one)));
            writer.number(accent | base << 21 | result << 42);
        }
    }

    /// Loads them.
    pub fn load(reader: &mut Reader) -> Option<Compose> {
        let mut compose = Compose { pairs: fallible::with_capacity(PAIRS).ok()?, waits: Waits::Nothing };
        for _ in 0..reader.number()?.min(PAIRS as u64) {
            let word = reader.number()?;
            let character = |shift: u32| char::from_u32((word >> shift) as u32 & 0x1f_ffff);
            compose.pairs.push_reserved(Pair { accent: character(0)?, base: character(21)?, result: character(42)? });
        }
        Some(compose)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(compose: &mut Compose, text: &str) -> String {
        text.chars().flat_map(|character| compose.character(character)).flatten().collect()
    }

    #[test]
    fn accents_and_compose_make_one_character_of_two() {
        let mut compose = Compose::usual().expect("there is memory");
        assert_eq!(compose.pairs().len(), 68);
        assert_eq!(compose.accent('"'), [None, None]);
        assert_eq!(typed(&mut compose, "aa"), "äa");
        compose.begin();
        assert_eq!(typed(&mut compose, "sz"), "ß");
        compose.accent('^');
        assert_eq!(typed(&mut compose, "x"), "^x", "there is no such pair");
        compose.accent('^');
        assert_eq!(typed(&mut compose, " "), "^");
        compose.accent('^');
        assert_eq!(compose.accent('^'), [None, None]);
        assert_eq!(typed(&mut compose, " "), "^");
    }

    #[test]
    fn a_successor_goes_on_after_the_accent() {
        let mut compose = Compose::usual().expect("there is memory");
        compose.set([Pair { accent: '~', base: 'g', result: 'ğ' }].into_iter());
        compose.accent('~');
        let mut writer = Writer::default();
        compose.save(&mut writer);
        compose.save_state(&mut writer);
        let mut reader = Reader::new(writer.bytes());
        let mut successor = Compose::load(&mut reader).expect("was saved");
        successor.load_state(&mut reader).expect("was saved");
        assert_eq!((typed(&mut successor, "g"), successor.pairs().len()), ("ğ".to_string(), 1));
        successor.begin();
        let mut writer = Writer::default();
        successor.save_state(&mut writer);
        let mut third = Compose::usual().expect("there is memory");
        third.load_state(&mut Reader::new(writer.bytes())).expect("was saved");
        assert_eq!(typed(&mut third, "'e"), "é");
    }
}
