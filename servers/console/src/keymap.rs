//! What a key means: a table for each set of modifiers, with Linux's symbols (linux/keyboard.h), so that programs which know Linux's tables
//! (KDGKBENT, KDSKBENT) can read and change them; and what function keys send (KDGKBSENT, KDSKBSENT). The default is a US keyboard.
//! The file is long because that keyboard's tables are in it.
//!
//! Of most sets of modifiers there is no table: keys mean nothing then. A symbol whose type does not exist is a character of Unicode.

use alloc::vec::Vec;
use recover::snapshot::{Reader, Writer};
use sys::Errno;
use sys::fallible::{self, TryVec};

/// Keys of a table.
pub const KEYS: usize = 256;
/// Bits of the modifiers, which number the tables; 2 is AltGr.
pub mod modifier {
    /// Shift.
    pub const SHIFT: usize = 1;
    /// AltGr.
    pub const ALTGR: usize = 2;
    /// Control.
    pub const CONTROL: usize = 4;
    /// Alt.
    pub const ALT: usize = 8;
}
/// Limit of tables.
const TABLES: usize = 40;
/// Sets of modifiers of which the US keyboard has tables: none, Shift, AltGr, Control, Control and Shift, Alt, Control and Alt.
const USUAL: [usize; 7] = [0, 1, 2, 4, 5, 8, 12];
/// Function keys.
pub const FUNCTIONS: usize = 256;
/// Limit of what one sends, and of what all send.
pub const STRING_BYTES: usize = 512;
const STRINGS_BYTES: usize = 4096;
/// Symbols are characters XORed with this.
const CHARACTERS: u16 = 0xf000;
/// Types of symbols that are no characters.
const KINDS: u16 = 15;
/// The largest value of each of these types.
const LIMITS: [u8; KINDS as usize] = [255, 255, 255, 19, 26, 255, 3, 8, 255, 25, 8, 255, 8, 255, 10];

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
    pub const DEAD: u16 = 4;
    pub const CONSOLE: u16 = 5;
    pub const CURSOR: u16 = 6;
    pub const SHIFT: u16 = 7;
    pub const META: u16 = 8;
    pub const ASCII: u16 = 9;
    pub const LOCK: u16 = 10;
    pub const LETTER: u16 = 11;
    pub const STICKY: u16 = 12;
    pub const DEAD_CHARACTER: u16 = 13;
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
    pub const COMPOSE: u16 = 0x20e;
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

    /// The character that it is, if it is one of Unicode.
    pub fn character(self) -> Option<char> {
        let is_character = self.kind() >= KINDS;
        is_character.then(|| char::from_u32((self.0 ^ CHARACTERS).into())).flatten()
    }

    fn is_valid(self) -> bool {
        LIMITS.get(usize::from(self.kind())).is_none_or(|limit| self.value() <= *limit)
    }

    /// Its value.
    pub fn value(self) -> u8 {
        self.0 as u8
    }
}

const HOLE: Symbol = Symbol(special::HOLE);
/// Of key 0: there is no table, and there is one that a program has made.
const NO_TABLE: Symbol = Symbol(0x27f);
const ALLOCATED: Symbol = Symbol(0x27e);

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
const EVERYWHERE: [(usize, Symbol); 45] = [
    (28, Symbol(special::ENTER)),
    (29, Symbol::new(kind::SHIFT, 2)),
    (97, Symbol::new(kind::SHIFT, 2)),
    (42, Symbol::new(kind::SHIFT, 0)),
    (54, Symbol::new(kind::SHIFT, 0)),
    (56, Symbol::new(kind::SHIFT, 3)),
    (100, Symbol::new(kind::SHIFT, 1)),
    (58, Symbol(special::CAPS_LOCK)),
    (69, Symbol(special::NUM_LOCK)),
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
    (84, Symbol(0x206)),
    (101, Symbol(0x205)),
    (112, Symbol::new(kind::FUNCTION, 26)),
    (113, Symbol::new(kind::FUNCTION, 12)),
    (114, Symbol::new(kind::FUNCTION, 13)),
    (115, Symbol::new(kind::FUNCTION, 27)),
    (116, Symbol::new(kind::FUNCTION, 28)),
    (117, Symbol::new(kind::FUNCTION, 16)),
    (118, Symbol::new(kind::PAD, 17)),
];

/// What some tables have besides.
const PLAIN: &[(usize, Symbol)] = &[
    (1, Symbol(0x1b)),
    (14, Symbol(0x7f)),
    (15, Symbol(0x09)),
    (70, Symbol(special::SCROLL_LOCK)),
    (99, Symbol(0x1c)),
];
const SHIFTED: &[(usize, Symbol)] = &[
    (1, Symbol(0x1b)),
    (14, Symbol(0x7f)),
    (15, Symbol(0x09)),
    (69, Symbol(0x213)),
    (70, Symbol(0x203)),
    (104, Symbol(special::SCROLL_BACKWARD)),
    (109, Symbol(special::SCROLL_FORWARD)),
];
const WITH_ALTGR: &[(usize, Symbol)] = &[
    (3, Symbol(0x40)),
    (5, Symbol(0x24)),
    (8, Symbol(0x7b)),
    (9, Symbol(0x5b)),
    (10, Symbol(0x5d)),
    (11, Symbol(0x7d)),
    (12, Symbol(0x5c)),
    (27, Symbol(0x7e)),
    (86, Symbol(0x7c)),
    (70, Symbol(0x202)),
    // Digits of a character's number, from A to F.
    (30, Symbol(0x914)),
    (48, Symbol(0x915)),
    (46, Symbol(0x916)),
    (32, Symbol(0x917)),
    (18, Symbol(0x918)),
    (33, Symbol(0x919)),
];
const WITH_CONTROL: &[(usize, Symbol)] = &[
    (3, Symbol(0)),
    (4, Symbol(0x1b)),
    (5, Symbol(0x1c)),
    (6, Symbol(0x1d)),
    (7, Symbol(0x1e)),
    (8, Symbol(0x1f)),
    (9, Symbol(0x7f)),
    (12, Symbol(0x1f)),
    (14, Symbol(0x08)),
    (26, Symbol(0x1b)),
    (27, Symbol(0x1d)),
    (40, Symbol(0x07)),
    (41, Symbol(0)),
    (43, Symbol(0x1c)),
    (52, Symbol(special::COMPOSE)),
    (53, Symbol(0x7f)),
    (57, Symbol(0)),
    (70, Symbol(0x204)),
    (99, Symbol(0x1c)),
];
const WITH_CONTROL_AND_SHIFT: &[(usize, Symbol)] = &[(3, Symbol(0)), (12, Symbol(0x1f))];
const WITH_ALT: &[(usize, Symbol)] = &[
    (1, Symbol::new(kind::META, 0x1b)),
    (14, Symbol::new(kind::META, 0x7f)),
    (15, Symbol::new(kind::META, 0x09)),
    (28, Symbol::new(kind::META, 0x0d)),
    (70, Symbol(special::SCROLL_LOCK)),
    (99, Symbol(0x1c)),
    (105, Symbol(special::DECREMENT)),
    (106, Symbol(special::INCREMENT)),
];
/// The keys that restart the machine, which does nothing here.
const WITH_CONTROL_AND_ALT: &[(usize, Symbol)] = &[(83, Symbol(0x20c)), (111, Symbol(0x20c))];

/// Keys of the keypad by their digits: with Alt and AltGr they are digits of a character's number.
const DIGITS: [usize; 10] = [82, 79, 80, 81, 75, 76, 77, 71, 72, 73];

/// Codes of F1 to F12.
const FUNCTION_KEYS: [usize; 12] = [59, 60, 61, 62, 63, 64, 65, 66, 67, 68, 87, 88];

/// The tables, and what function keys send.
pub struct Keymap {
    tables: Vec<(u8, Vec<Symbol>)>,
    /// What function keys send, where it is not what they send at first.
    strings: Vec<(u8, Vec<u8>)>,
}

impl Keymap {
    /// A US keyboard's.
    ///
    /// # Errors
    /// `ENOMEM`.
    pub fn us() -> Result<Keymap, Errno> {
        let mut keymap = Keymap::empty()?;
        for set in USUAL {
            let mut symbols = fallible::filled(HOLE, KEYS)?;
            fill(&mut symbols, set);
            keymap.tables.push_reserved((set as u8, symbols));
        }
        Ok(keymap)
    }

    fn empty() -> Result<Keymap, Errno> {
        let (tables, strings) = (fallible::with_capacity(TABLES)?, fallible::with_capacity(FUNCTIONS)?);
        Ok(Keymap { tables, strings })
    }

    /// Whether there is a table for this set of modifiers.
    pub fn has(&self, set: usize) -> bool {
        self.table(set).is_some()
    }

    /// The symbol of a key; `None`: it has none in this table.
    pub fn symbol(&self, set: usize, key: usize) -> Option<Symbol> {
        let symbol = *self.table(set)?.get(key)?;
        (symbol != HOLE).then_some(symbol)
    }

    /// The symbol of a key as programs see it (KDGKBENT).
    pub fn entry(&self, set: usize, key: usize) -> Symbol {
        match self.table(set) {
            Some(symbols) => symbols.get(key).copied().unwrap_or(HOLE),
            None if key == 0 => NO_TABLE,
            None => HOLE,
        }
    }

    /// Sets the symbol of a key (KDSKBENT), and makes or removes its table.
    ///
    /// # Errors
    /// `EINVAL`: there is no such symbol; `ENOMEM`: there is no memory, or there are too many tables.
    pub fn set(&mut self, set: u8, key: u8, symbol: Symbol) -> Result<(), Errno> {
        let found = self.tables.iter().position(|(own, _)| *own == set);
        if key == 0 && symbol == NO_TABLE {
            if let Some(index) = found.filter(|_| set != 0) {
                self.tables.remove(index);
            }
            return Ok(());
        }
        if !symbol.is_valid() {
            return Err(Errno::EINVAL);
        }
        if key == 0 {
            return Ok(());
        }
        let index = match found {
            Some(index) => index,
            None if self.tables.len() == TABLES => return Err(Errno::ENOMEM),
            None => {
                let mut symbols = fallible::filled(HOLE, KEYS)?;
                symbols[0] = ALLOCATED;
                self.tables.push_reserved((set, symbols));
                self.tables.len() - 1
            }
        };
        self.tables[index].1[usize::from(key)] = symbol;
        Ok(())
    }

    /// What a function key sends.
    pub fn string(&self, number: u8) -> &[u8] {
        let own = self.strings.iter().find(|(own, _)| *own == number);
        own.map_or_else(|| usual_string(number), |(_, string)| string)
    }

    /// Sets what a function key sends (KDSKBSENT).
    ///
    /// # Errors
    /// `ENOMEM`: there is no memory, or all together are too long.
    pub fn set_string(&mut self, number: u8, bytes: &[u8]) -> Result<(), Errno> {
        let others = self.strings.iter().filter(|(own, _)| *own != number);
        if others.map(|(_, string)| string.len()).sum::<usize>() + bytes.len() > STRINGS_BYTES {
            return Err(Errno::ENOMEM);
        }
        let string = fallible::collect(bytes.iter().copied())?;
        match self.strings.iter_mut().find(|(own, _)| *own == number) {
            Some((_, old)) => *old = string,
            None => self.strings.push_reserved((number, string)),
        }
        Ok(())
    }

    /// Saves the tables into a snapshot.
    pub fn save_tables(&self, writer: &mut Writer) {
        writer.number(self.tables.len() as u64);
        for (set, symbols) in &self.tables {
            writer.number((*set).into());
            let words =
                symbols.chunks(4).map(|four| four.iter().rev().fold(0, |word, one| word << 16 | u64::from(one.0)));
            words.for_each(|word| writer.number(word));
        }
    }

    /// Saves what function keys send.
    pub fn save_strings(&self, writer: &mut Writer) {
        writer.number(self.strings.len() as u64);
        for (number, string) in &self.strings {
            writer.number((*number).into());
            writer.run((string, &[]));
        }
    }

    /// Loads the tables from a snapshot.
    pub fn load_tables(reader: &mut Reader) -> Option<Keymap> {
        let mut keymap = Keymap::empty().ok()?;
        for _ in 0..reader.number()?.min(TABLES as u64) {
            let set = reader.number()? as u8;
            let mut symbols = fallible::filled(HOLE, KEYS).ok()?;
            for four in symbols.chunks_mut(4) {
                let word = reader.number()?;
                four.iter_mut().enumerate().for_each(|(index, symbol)| *symbol = Symbol((word >> (16 * index)) as u16));
            }
            keymap.tables.push_reserved((set, symbols));
        }
        Some(keymap)
    }

    /// Loads what function keys send.
    pub fn load_strings(&mut self, reader: &mut Reader) -> Option<()> {
        for _ in 0..reader.number()?.min(FUNCTIONS as u64) {
            let number = reader.number()? as u8;
            let string = fallible::collect(reader.run()?.iter().copied()).ok()?;
            self.strings.push_reserved((number, string));
        }
        Some(())
    }

    fn table(&self, set: usize) -> Option<&[Symbol]> {
        self.tables.iter().find(|(own, _)| usize::from(*own) == set).map(|(_, symbols)| &symbols[..])
    }
}

/// Fills the table of a set of modifiers with the US keyboard's symbols, which are Linux's.
fn fill(symbols: &mut [Symbol], set: usize) {
    const SHIFT: usize = modifier::SHIFT;
    const CONTROL: usize = modifier::CONTROL;
    const ALT: usize = modifier::ALT;
    for (first, plain, shifted) in ROWS {
        for (offset, (plain, shifted)) in plain.iter().zip(shifted).enumerate() {
            symbols[first + offset] = of_character(*plain, *shifted, set);
        }
    }
    EVERYWHERE.iter().for_each(|(key, symbol)| symbols[*key] = *symbol);
    for (index, key) in FUNCTION_KEYS.into_iter().enumerate() {
        let index = index as u16;
        symbols[key] = match set {
            0 | CONTROL => Symbol::new(kind::FUNCTION, index),
            SHIFT => Symbol::new(kind::FUNCTION, if index < 10 { index + 10 } else { index }),
            modifier::ALTGR => Symbol::new(kind::CONSOLE, index + 12),
            _ if set & ALT != 0 => Symbol::new(kind::CONSOLE, index),
            _ => HOLE,
        };
    }
    let base = match set {
        ALT => Some(0),
        modifier::ALTGR => Some(10),
        _ => None,
    };
    if let Some(base) = base {
        (base..).zip(DIGITS).for_each(|(value, key)| symbols[key] = Symbol::new(kind::ASCII, value));
    }
    let particular = match set {
        0 => PLAIN,
        SHIFT => SHIFTED,
        modifier::ALTGR => WITH_ALTGR,
        CONTROL => WITH_CONTROL,
        ALT => WITH_ALT,
        _ if set & ALT != 0 => WITH_CONTROL_AND_ALT,
        _ => WITH_CONTROL_AND_SHIFT,
    };
    particular.iter().for_each(|(key, symbol)| symbols[*key] = *symbol);
}

/// The symbol of a key with a character, and another one with Shift. Only letters mean something with any modifiers.
fn of_character(plain: u8, shifted: u8, set: usize) -> Symbol {
    let control = u16::from(plain & 0x1f);
    match (set, plain.is_ascii_alphabetic()) {
        (0 | modifier::ALTGR, true) => Symbol::new(kind::LETTER, plain.into()),
        (modifier::SHIFT, true) => Symbol::new(kind::LETTER, shifted.into()),
        (0, false) => Symbol::new(kind::LATIN, plain.into()),
        (modifier::SHIFT, false) => Symbol::new(kind::LATIN, shifted.into()),
        (modifier::ALT, _) => Symbol::new(kind::META, plain.into()),
        (_, false) => HOLE,
        _ if set & modifier::ALT != 0 => Symbol::new(kind::META, control),
        _ => Symbol::new(kind::LATIN, control),
    }
}

/// What a function key sends at first.
fn usual_string(number: u8) -> &'static [u8] {
    const STRINGS: [&[u8]; 30] = [
        b"\x1b[[A",
        b"\x1b[[B",
        b"\x1b[[C",
        b"\x1b[[D",
        b"\x1b[[E",
        b"\x1b[17~",
        b"\x1b[18~",
        b"\x1b[19~",
        b"\x1b[20~",
        b"\x1b[21~",
        b"\x1b[23~",
        b"\x1b[24~",
        b"\x1b[25~",
        b"\x1b[26~",
        b"\x1b[28~",
        b"\x1b[29~",
        b"\x1b[31~",
        b"\x1b[32~",
        b"\x1b[33~",
        b"\x1b[34~",
        b"\x1b[1~",
        b"\x1b[2~",
        b"\x1b[3~",
        b"\x1b[4~",
        b"\x1b[5~",
        b"\x1b[6~",
        b"\x1b[M",
        b"",
        b"",
        b"\x1b[P",
    ];
    STRINGS.get(usize::from(number)).copied().unwrap_or_default()
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
        keymap.set(64, 255, Symbol(0xf0e4)).expect("a table is made");
        assert_eq!(keymap.set(0, 21, Symbol(0x314)), Err(Errno::EINVAL), "the keypad has no such key");
        keymap.set_string(3, b"four").expect("there is room");
        keymap.set(12, 0, NO_TABLE).expect("it is removed");
        let mut writer = Writer::default();
        keymap.save_tables(&mut writer);
        keymap.save_strings(&mut writer);
        let mut reader = Reader::new(writer.bytes());
        let mut other = Keymap::load_tables(&mut reader).expect("was saved");
        other.load_strings(&mut reader).expect("was saved");
        assert_eq!((other.symbol(0, 21), other.symbol(1, 44)), (Some(Symbol(0xb7a)), keymap.symbol(1, 44)));
        assert_eq!([other.entry(64, 0), other.entry(12, 0), other.entry(12, 3)], [ALLOCATED, NO_TABLE, HOLE]);
        assert_eq!(other.symbol(64, 255).and_then(Symbol::character), Some('ä'));
        assert_eq!([other.string(3), other.string(0)], [&b"four"[..], b"\x1b[[A"]);
    }

    #[test]
    fn tables_and_strings_are_limited() {
        let mut keymap = Keymap::us().expect("there is memory");
        let made = (0..=255).filter(|set| keymap.set(*set, 1, Symbol(0x61)).is_ok()).count();
        assert_eq!(made, TABLES);
        let set = (0..=255).take_while(|number| keymap.set_string(*number, &[b'x'; STRING_BYTES]).is_ok()).count();
        assert_eq!(set, STRINGS_BYTES / STRING_BYTES);
        keymap.set_string(0, b"").expect("there is room again");
    }
}
