//! What a key means: a table for each set of modifiers, with Linux's symbols (linux/keyboard.h), so that programs which know Linux's tables
//! (KDGKBENT, KDSKBENT) can read and change them. The default is a US keyboard.

use alloc::vec::Vec;
use sys::Errno;
use sys::fallible;

/// Keys of a table.
pub const KEYS: usize = 128;
/// Bits of the modifiers, which number the tables; 2 is AltGr.
pub mod modifier {
    /// Shift.
    pub const SHIFT: usize = 1;
    /// Control.
    pub const CONTROL: usize = 4;
    /// Alt.
    pub const ALT: usize = 8;
}
/// Tables: all sets of the four modifiers that have bits below 16.
pub const TABLES: usize = 16;

/// A symbol: its type in the upper byte, its value in the lower one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Symbol(pub u16);

/// Types of symbols.
pub mod kind {
    #![allow(missing_docs)]
    pub const LATIN: u16 = 0;
    pub const FUNCTION: u16 = 1;
    pub const SPECIAL: u16 = 2;
    pub const PAD: u16 = 3;
    pub const CONSOLE: u16 = 5;
    pub const CURSOR: u16 = 6;
    pub const SHIFT: u16 = 7;
    pub const META: u16 = 8;
    pub const LETTER: u16 = 11;
}

/// Special symbols.
pub mod special {
    #![allow(missing_docs)]
    pub const HOLE: u16 = 0x200;
    pub const ENTER: u16 = 0x201;
    pub const CAPS_LOCK: u16 = 0x207;
    pub const NUM_LOCK: u16 = 0x208;
    pub const SCROLL_LOCK: u16 = 0x209;
    pub const SCROLL_FORWARD: u16 = 0x20a;
    pub const SCROLL_BACKWARD: u16 = 0x20b;
    pub const DECREMENT: u16 = 0x210;
    pub const INCREMENT: u16 = 0x211;
}

impl Symbol {
    /// Of a type and a value.
    pub const fn new(kind: u16, value: u16) -> Symbol {
        Symbol(kind << 8 | value)
    }

    /// Its type.
    pub fn kind(self) -> u16 {
        self.0 >> 8
    }

    /// Its value.
    pub fn value(self) -> u8 {
        self.0 as u8
    }
}

const HOLE: Symbol = Symbol(special::HOLE);
/// Symbols that a table does not have are no key: those of a set of modifiers that is not used.
const NO_TABLE: u16 = 127;

/// Rows of characters: the first key's code, the characters, and those with Shift.
const ROWS: [(usize, &[u8], &[u8]); 6] = [
    (2, b"1234567890-=", b"!@#$%^&*()_+"),
    (16, b"qwertyuiop[]", b"QWERTYUIOP{}"),
    (30, b"asdfghjkl;'`", b"ASDFGHJKL:\"~"),
    (43, b"\\zxcvbnm,./", b"|ZXCVBNM<>?"),
    (57, b" ", b" "),
    (86, b"<", b">"),
];

/// The same in every table: modifiers, locks, keypad, cursor, editing keys.
const EVERYWHERE: [(usize, Symbol); 44] = [
    (28, Symbol(special::ENTER)),
    (29, Symbol::new(kind::SHIFT, 2)),
    (97, Symbol::new(kind::SHIFT, 2)),
    (42, Symbol::new(kind::SHIFT, 0)),
    (54, Symbol::new(kind::SHIFT, 0)),
    (56, Symbol::new(kind::SHIFT, 3)),
    (100, Symbol::new(kind::SHIFT, 1)),
    (58, Symbol(special::CAPS_LOCK)),
    (69, Symbol(special::NUM_LOCK)),
    (70, Symbol(special::SCROLL_LOCK)),
    (55, Symbol::new(kind::PAD, 12)),
    (71, Symbol::new(kind::PAD, 7)),
    (72, Symbol::new(kind::PAD, 8)),
    (73, Symbol::new(kind::PAD, 9)),
    (74, Symbol::new(kind::PAD, 11)),
    (75, Symbol::new(kind::PAD, 4)),
    (76, Symbol::new(kind::PAD, 5)),
    (77, Symbol::new(kind::PAD, 6)),
    (78, Symbol::new(kind::PAD, 10)),
    (79, Symbol::new(kind::PAD, 1)),
    (80, Symbol::new(kind::PAD, 2)),
    (81, Symbol::new(kind::PAD, 3)),
    (82, Symbol::new(kind::PAD, 0)),
    (83, Symbol::new(kind::PAD, 16)),
    (96, Symbol::new(kind::PAD, 14)),
    (98, Symbol::new(kind::PAD, 13)),
    (103, Symbol::new(kind::CURSOR, 3)),
    (105, Symbol::new(kind::CURSOR, 1)),
    (106, Symbol::new(kind::CURSOR, 2)),
    (108, Symbol::new(kind::CURSOR, 0)),
    (102, Symbol::new(kind::FUNCTION, 20)),
    (110, Symbol::new(kind::FUNCTION, 21)),
    (111, Symbol::new(kind::FUNCTION, 22)),
    (107, Symbol::new(kind::FUNCTION, 23)),
    (104, Symbol::new(kind::FUNCTION, 24)),
    (109, Symbol::new(kind::FUNCTION, 25)),
    (119, Symbol::new(kind::FUNCTION, 29)),
    (1, Symbol(0x1b)),
    (14, Symbol(0x7f)),
    (15, Symbol(0x09)),
    (125, HOLE),
    (126, HOLE),
    (127, HOLE),
    (99, HOLE),
];

/// Codes of F1 to F12.
const FUNCTION_KEYS: [usize; 12] = [59, 60, 61, 62, 63, 64, 65, 66, 67, 68, 87, 88];

/// The tables.
pub struct Keymap {
    symbols: Vec<Symbol>,
    /// Whether a program has changed them.
    changed: bool,
}

impl Keymap {
    /// A US keyboard's.
    ///
    /// # Errors
    /// `ENOMEM`.
    pub fn us() -> Result<Keymap, Errno> {
        let mut keymap = Keymap { symbols: fallible::filled(HOLE, TABLES * KEYS)?, changed: false };
        (0..TABLES).for_each(|table| keymap.fill(table));
        Ok(keymap)
    }

    /// The symbol of a key; `None`: it has none in this table.
    pub fn symbol(&self, table: usize, key: usize) -> Option<Symbol> {
        let symbol = *self.symbols.get(table * KEYS + key).filter(|_| key < KEYS)?;
        (symbol != HOLE).then_some(symbol)
    }

    /// Sets the symbol of a key (KDSKBENT).
    ///
    /// # Errors
    /// `EINVAL`: there is no such table or key.
    pub fn set(&mut self, table: usize, key: usize, symbol: Symbol) -> Result<(), Errno> {
        let place = self.symbols.get_mut(table * KEYS + key).filter(|_| table < TABLES && key < KEYS);
        *place.ok_or(Errno::EINVAL)? = if symbol.0 == NO_TABLE { HOLE } else { symbol };
        self.changed = true;
        Ok(())
    }

    /// Whether it differs from the default.
    pub fn is_changed(&self) -> bool {
        self.changed
    }

    /// All symbols, for a snapshot.
    pub fn words(&self) -> impl ExactSizeIterator<Item = u64> + '_ {
        self.symbols.chunks(4).map(|four| four.iter().rev().fold(0, |word, symbol| word << 16 | u64::from(symbol.0)))
    }

    /// Takes the symbols of a snapshot.
    pub fn set_words(&mut self, mut next: impl FnMut() -> Option<u64>) -> Option<()> {
        for four in self.symbols.chunks_mut(4) {
            let word = next()?;
            four.iter_mut().enumerate().for_each(|(index, symbol)| *symbol = Symbol((word >> (16 * index)) as u16));
        }
        self.changed = true;
        Some(())
    }

    fn fill(&mut self, table: usize) {
        let symbols = &mut self.symbols[table * KEYS..][..KEYS];
        let has = |modifier: usize| table & modifier != 0;
        for (first, plain, shifted) in ROWS {
            let characters = if has(modifier::SHIFT) { shifted } else { plain };
            for (offset, character) in characters.iter().enumerate() {
                symbols[first + offset] = of_character(*character, table);
            }
        }
        EVERYWHERE.iter().for_each(|(key, symbol)| symbols[*key] = *symbol);
        for (index, key) in FUNCTION_KEYS.into_iter().enumerate() {
            let number = index as u16 + if has(modifier::SHIFT) { 12 } else { 0 };
            let kind = if has(modifier::ALT) { kind::CONSOLE } else { kind::FUNCTION };
            symbols[key] = match kind {
                kind::FUNCTION if number >= 20 => Symbol::new(kind, number + 6),
                _ => Symbol::new(kind, number),
            };
        }
        if table == modifier::SHIFT {
            symbols[104] = Symbol(special::SCROLL_BACKWARD);
            symbols[109] = Symbol(special::SCROLL_FORWARD);
        }
        if has(modifier::ALT) {
            symbols[105] = Symbol(special::DECREMENT);
            symbols[106] = Symbol(special::INCREMENT);
            symbols[1] = Symbol::new(kind::META, 0x1b);
            symbols[14] = Symbol::new(kind::META, 0x7f);
            symbols[15] = Symbol::new(kind::META, 0x09);
            symbols[28] = Symbol::new(kind::META, 0x0d);
        }
        if has(modifier::CONTROL) {
            symbols[14] = Symbol(0x08);
        }
    }
}

/// The symbol of a character with Control and Alt.
fn of_character(character: u8, table: usize) -> Symbol {
    let (controls, alters) = (table & modifier::CONTROL != 0, table & modifier::ALT != 0);
    let byte = match character {
        _ if !controls => Some(character),
        b'a'..=b'z' | b'A'..=b'Z' | b'[' | b'\\' | b']' | b'^' | b'_' | b'@' => Some(character & 0x1f),
        b' ' | b'2' | b'`' | b'~' => Some(0),
        b'3' => Some(0x1b),
        b'4' => Some(0x1c),
        b'5' => Some(0x1d),
        b'6' => Some(0x1e),
        b'7' | b'-' | b'/' => Some(0x1f),
        b'8' | b'?' => Some(0x7f),
        _ => None,
    };
    match byte {
        None => HOLE,
        Some(byte) if alters => Symbol::new(kind::META, byte.into()),
        Some(byte) if !controls && byte.is_ascii_alphabetic() => Symbol::new(kind::LETTER, byte.into()),
        Some(byte) => Symbol::new(kind::LATIN, byte.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_us_keyboard_has_its_characters() {
        let keymap = Keymap::us().expect("there is memory");
        let at = |table, key| keymap.symbol(table, key).map(|symbol| symbol.0);
        assert_eq!([at(0, 30), at(1, 30), at(4, 30), at(8, 30)], [Some(0xb61), Some(0xb41), Some(1), Some(0x861)]);
        assert_eq!([at(0, 2), at(1, 2), at(0, 40), at(1, 53)], [Some(0x31), Some(0x21), Some(0x27), Some(0x3f)]);
        assert_eq!([at(0, 59), at(8, 59), at(0, 125), at(0, 500)], [Some(0x100), Some(0x500), None, None]);
        let backslash_and_z = [at(0, 43), at(0, 44)];
        assert_eq!(backslash_and_z, [Some(0x5c), Some(0xb7a)]);
    }

    #[test]
    fn changes_outlive_a_snapshot() {
        let mut keymap = Keymap::us().expect("there is memory");
        keymap.set(0, 21, Symbol(0xb7a)).expect("there is such a key");
        assert_eq!(keymap.set(16, 0, HOLE), Err(Errno::EINVAL));
        let words: Vec<u64> = keymap.words().collect();
        let (mut other, mut words) = (Keymap::us().expect("there is memory"), words.into_iter());
        other.set_words(|| words.next()).expect("was saved");
        assert_eq!((other.symbol(0, 21), other.symbol(1, 44)), (Some(Symbol(0xb7a)), keymap.symbol(1, 44)));
    }
}
