//! Keys into bytes: modifiers, locks, and what Linux's console sends for each key.

use crate::compose::Compose;
use crate::keymap::{Keymap, Symbol, kind, modifier, special};
use recover::snapshot::{Reader, Writer};
use sys::Errno;

/// Lights, which are locks too: bits by number of Linux's LEDs.
pub mod light {
    /// Num Lock.
    pub const NUM: u8 = 1;
    /// Caps Lock.
    pub const CAPS: u8 = 2;
    /// Scroll Lock.
    pub const SCROLL: u8 = 4;
}

/// Most bytes that a key sends.
const MOST: usize = 8;
/// Modifiers that are counted: both keys of one may be down.
const MODIFIERS: usize = 9;

/// Modes of the terminal that keys depend on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Modes {
    /// Arrows send `ESC O`.
    pub cursor_keys: bool,
    /// The keypad sends sequences.
    pub keypad: bool,
    /// Enter sends a line feed too.
    pub new_line: bool,
}

/// What a key does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    Nothing,
    /// These bytes go to the program.
    Bytes([u8; MOST], usize),
    /// What this function key sends goes to the program.
    Function(u8),
    /// Another terminal is shown: its number, from 1.
    Show(usize),
    /// The next terminal, or the one before.
    ShowNext,
    ShowPrevious,
    /// More of the past is shown, or less.
    LookBack,
    LookForward,
    /// The lights have changed.
    Lights(u8),
}

/// See the head of the file.
pub struct Keyboard {
    pub keymap: Keymap,
    pub compose: Compose,
    /// How many keys of each modifier are down.
    down: [u8; MODIFIERS],
    /// Modifiers that hold without a key, until they are pressed again; and those that hold for one key.
    locked: u16,
    sticky: u16,
    /// `light::*`.
    lights: u8,
    /// The number of a character whose digits are typed on the keypad, until Alt is released.
    digits: Option<u32>,
}

impl Keyboard {
    /// A US keyboard of which nothing is pressed.
    ///
    /// # Errors
    /// `ENOMEM`.
    pub fn new() -> Result<Keyboard, Errno> {
        Ok(Keyboard::with(Keymap::us()?, Compose::usual()?))
    }

    fn with(keymap: Keymap, compose: Compose) -> Keyboard {
        Keyboard { keymap, compose, down: [0; MODIFIERS], locked: 0, sticky: 0, lights: 0, digits: None }
    }

    /// Its lights.
    pub fn lights(&self) -> u8 {
        self.lights
    }

    /// Sets the lights (KDSETLED).
    pub fn set_lights(&mut self, lights: u8) {
        self.lights = lights & 7;
    }

    /// A key is pressed or released while keys are not text: only modifiers are followed. Returns whether it is one.
    pub fn follow(&mut self, code: u16, value: i32) -> bool {
        // A modifier is what it is without others, so that its release is known whatever else was pressed meanwhile.
        let plain = self.keymap.symbol(0, code.into()).filter(|symbol| symbol.kind() == kind::SHIFT);
        plain.into_iter().for_each(|plain| self.shift(plain.value().into(), value));
        plain.is_some()
    }

    /// A key is pressed (1), repeated (2) or released (0).
    pub fn key(&mut self, code: u16, value: i32, modes: Modes) -> Effect {
        let before = self.table();
        if self.follow(code, value) {
            let is_released = value == 0 && self.table() != before;
            return if is_released { self.end_digits() } else { Effect::Nothing };
        }
        if value == 0 {
            return Effect::Nothing;
        }
        let code = usize::from(code);
        if !self.keymap.has(self.table()) {
            self.sticky = 0;
            return Effect::Nothing;
        }
        let Some(mut symbol) = self.keymap.symbol(self.table(), code) else { return Effect::Nothing };
        if symbol.kind() == kind::LETTER {
            let table = self.table() ^ if self.lights & light::CAPS != 0 { modifier::SHIFT } else { 0 };
            symbol = self.keymap.symbol(table, code).unwrap_or(symbol);
        }
        let effect = self.press(symbol, value, modes);
        if symbol.kind() != kind::STICKY {
            self.sticky = 0;
        }
        effect
    }

    /// Saves what is held down, and what is waited for.
    pub fn save(&self, writer: &mut Writer) {
        self.down.iter().for_each(|count| writer.number((*count).into()));
        writer.numbers([self.lights.into(), self.locked.into(), self.sticky.into()]);
        writer.number(self.digits.map_or(0, |number| u64::from(number) + 1));
        self.compose.save_state(writer);
    }

    /// Loads it from a snapshot, beside tables that were saved.
    pub fn load(reader: &mut Reader, keymap: Keymap, compose: Compose) -> Option<Keyboard> {
        let mut keyboard = Keyboard::with(keymap, compose);
        for count in &mut keyboard.down {
            *count = reader.number()? as u8;
        }
        keyboard.lights = reader.number()? as u8 & 7;
        (keyboard.locked, keyboard.sticky) = (reader.number()? as u16, reader.number()? as u16);
        keyboard.digits = reader.number()?.checked_sub(1).map(|number| number as u32);
        keyboard.compose.load_state(reader)?;
        Some(keyboard)
    }

    /// The modifiers that hold, in Linux's order: Shift, AltGr, Control, Alt.
    pub fn table(&self) -> usize {
        let down = self.down.iter().enumerate().filter(|(_, count)| **count > 0);
        let down: usize = down.map(|(bit, _)| 1 << bit).sum();
        (down | usize::from(self.sticky)) ^ usize::from(self.locked)
    }

    fn shift(&mut self, which: usize, value: i32) {
        if let Some(count) = self.down.get_mut(which) {
            *count = match value {
                0 => count.saturating_sub(1),
                1 => count.saturating_add(1),
                _ => *count,
            };
        }
    }

    fn press(&mut self, symbol: Symbol, value: i32, modes: Modes) -> Effect {
        match (symbol.kind(), symbol.value()) {
            (kind::LATIN | kind::LETTER, byte) => text(self.compose.character(byte.into())),
            (kind::META, byte) => bytes(&[0x1b, byte]),
            (kind::FUNCTION, number) => Effect::Function(number),
            (kind::DEAD, number) => match Compose::dead(number) {
                Some(accent) => text(self.compose.accent(accent)),
                None => Effect::Nothing,
            },
            (kind::DEAD_CHARACTER, byte) => text(self.compose.accent(byte.into())),
            (kind::LOCK, which) if value == 1 => {
                self.locked ^= 1 << which.min(MODIFIERS as u8 - 1);
                Effect::Nothing
            }
            (kind::STICKY, which) if value == 1 => {
                self.sticky ^= 1 << which.min(MODIFIERS as u8 - 1);
                if !self.keymap.has(self.table()) {
                    self.sticky = 1 << which.min(MODIFIERS as u8 - 1);
                }
                Effect::Nothing
            }
            (kind::CURSOR, number) => cursor(number, modes),
            (kind::PAD, number) => self.pad(number, modes),
            (kind::ASCII, digit) => {
                self.add_digit(digit);
                Effect::Nothing
            }
            (kind::CONSOLE, number) if value == 1 => Effect::Show(usize::from(number) + 1),
            (kind::SPECIAL, _) => self.special(symbol.0, value, modes),
            _ => symbol.character().map_or(Effect::Nothing, |character| text(self.compose.character(character))),
        }
    }

    /// A further digit of a character's number: 0 to 9, or from 10 on the sixteen of a hexadecimal one.
    fn add_digit(&mut self, digit: u8) {
        let (base, digit) = if digit < 10 { (10, digit) } else { (16, digit - 10) };
        let number = self.digits.unwrap_or(0);
        self.digits = Some(number.wrapping_mul(base).wrapping_add(digit.into()));
    }

    /// The character of the number that was typed, if one was and there is such a character.
    fn end_digits(&mut self) -> Effect {
        text([self.digits.take().and_then(char::from_u32), None])
    }

    fn special(&mut self, symbol: u16, value: i32, modes: Modes) -> Effect {
        let lock = match symbol {
            special::ENTER if modes.new_line => return bytes(b"\r\n"),
            special::ENTER => return bytes(b"\r"),
            special::DECREMENT => return Effect::ShowPrevious,
            special::INCREMENT => return Effect::ShowNext,
            special::SCROLL_FORWARD => return Effect::LookForward,
            special::SCROLL_BACKWARD => return Effect::LookBack,
            special::COMPOSE => {
                self.compose.begin();
                return Effect::Nothing;
            }
            special::CAPS_LOCK => light::CAPS,
            special::NUM_LOCK => light::NUM,
            special::SCROLL_LOCK => light::SCROLL,
            _ => return Effect::Nothing,
        };
        if value == 2 {
            return Effect::Nothing;
        }
        self.lights ^= lock;
        Effect::Lights(self.lights)
    }

    /// The keypad: sequences if the program wants them, digits with Num Lock, else what the keys have below their digits.
    fn pad(&self, number: u8, modes: Modes) -> Effect {
        const SEQUENCES: &[u8] = b"pqrstuvwxylSRQMnn";
        const DIGITS: &[u8] = b"0123456789+-*/\r,.";
        let index = usize::from(number);
        if modes.keypad
            && self.down[0] == 0
            && let Some(last) = SEQUENCES.get(index)
        {
            return bytes(&[0x1b, b'O', *last]);
        }
        if self.lights & light::NUM == 0 {
            match number {
                0 => return Effect::Function(21),
                1 => return Effect::Function(23),
                2 => return cursor(0, modes),
                3 => return Effect::Function(25),
                4 => return cursor(1, modes),
                5 => return cursor(4, modes),
                6 => return cursor(2, modes),
                7 => return Effect::Function(20),
                8 => return cursor(3, modes),
                9 => return Effect::Function(24),
                15 | 16 => return Effect::Function(22),
                _ => {}
            }
        }
        match DIGITS.get(index) {
            Some(b'\r') if modes.new_line => bytes(b"\r\n"),
            Some(digit) => bytes(&[*digit]),
            None => Effect::Nothing,
        }
    }
}

fn bytes(from: &[u8]) -> Effect {
    let mut all = [0; MOST];
    all[..from.len()].copy_from_slice(from);
    if from.is_empty() { Effect::Nothing } else { Effect::Bytes(all, from.len()) }
}

/// Characters, in UTF-8.
fn text(characters: [Option<char>; 2]) -> Effect {
    let (mut all, mut count) = ([0; MOST], 0);
    for character in characters.into_iter().flatten() {
        count += character.encode_utf8(&mut all[count..]).len();
    }
    if count == 0 { Effect::Nothing } else { Effect::Bytes(all, count) }
}

fn cursor(number: u8, modes: Modes) -> Effect {
    let Some(last) = b"BDCAG".get(usize::from(number)) else { return Effect::Nothing };
    bytes(&[0x1b, if modes.cursor_keys { b'O' } else { b'[' }, *last])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(keyboard: &mut Keyboard, keys: &[(u16, i32)], modes: Modes) -> Vec<u8> {
        let mut all = Vec::new();
        for (code, value) in keys {
            match keyboard.key(*code, *value, modes) {
                Effect::Bytes(bytes, count) => all.extend(&bytes[..count]),
                Effect::Function(number) => all.extend(keyboard.keymap.string(number)),
                _ => {}
            }
        }
        all
    }

    fn keyboard() -> Keyboard {
        Keyboard::new().expect("there is memory")
    }

    #[test]
    fn modifiers_hold_while_they_are_down() {
        let keys = [(30, 1), (30, 0), (42, 1), (30, 1), (54, 1), (42, 0), (30, 1), (54, 0), (30, 2)];
        assert_eq!(typed(&mut keyboard(), &keys, Modes::default()), b"aAAa");
        assert_eq!(
            typed(&mut keyboard(), &[(29, 1), (46, 1), (29, 0), (56, 1), (48, 1)], Modes::default()),
            b"\x03\x1bb"
        );
    }

    #[test]
    fn caps_lock_is_for_letters_and_shift_takes_it_back() {
        let mut keyboard = keyboard();
        assert_eq!(keyboard.key(58, 1, Modes::default()), Effect::Lights(light::CAPS));
        assert_eq!(typed(&mut keyboard, &[(30, 1), (2, 1), (42, 1), (30, 1)], Modes::default()), b"A1a");
    }

    #[test]
    fn arrows_function_keys_and_keypad_send_what_linux_sends() {
        let application = Modes { cursor_keys: true, keypad: true, new_line: true };
        let keys = [(103, 1), (59, 1), (66, 1), (102, 1), (71, 1), (28, 1)];
        assert_eq!(typed(&mut keyboard(), &keys, Modes::default()), b"\x1b[A\x1b[[A\x1b[19~\x1b[1~\x1b[1~\r");
        assert_eq!(typed(&mut keyboard(), &[(103, 1), (71, 1), (28, 1)], application), b"\x1bOA\x1bOw\r\n");
        let mut numbers = keyboard();
        numbers.key(69, 1, Modes::default());
        assert_eq!(typed(&mut numbers, &[(71, 1), (83, 1)], Modes::default()), b"7.");
    }

    #[test]
    fn alt_and_a_function_key_show_another_terminal() {
        let mut keyboard = keyboard();
        keyboard.key(56, 1, Modes::default());
        assert_eq!(keyboard.key(60, 1, Modes::default()), Effect::Show(2));
        assert_eq!(keyboard.key(60, 2, Modes::default()), Effect::Nothing);
        assert_eq!(keyboard.key(106, 1, Modes::default()), Effect::ShowNext);
    }

    #[test]
    fn digits_of_the_keypad_are_a_character_when_alt_is_released() {
        let (alt, zero, two, five, six, eight) = (56, 82, 80, 76, 77, 72);
        let mut keyboard = keyboard();
        let mut typed = |keys: &[u16]| {
            let keys = keys.iter().flat_map(|key| [(*key, 1), (*key, 0)]);
            let keys: Vec<(u16, i32)> = [(alt, 1)].into_iter().chain(keys).chain([(alt, 0)]).collect();
            String::from_utf8(typed(&mut keyboard, &keys, Modes::default())).expect("is UTF-8")
        };
        assert_eq!([typed(&[six, five]), typed(&[zero, two, two, eight]), typed(&[])], ["A", "ä", ""]);
        assert_eq!(typed(&[five, five, two, eight, eight]), "\u{d7f8}", "55288 is one");
        assert_eq!(typed(&[five, five, two, eight, zero, zero, zero, zero]), "", "no character has this number");
    }

    #[test]
    fn a_successor_knows_which_digits_were_typed() {
        let mut first = keyboard();
        typed(&mut first, &[(56, 1), (77, 1), (77, 0)], Modes::default());
        let mut writer = Writer::default();
        first.save(&mut writer);
        let (keymap, compose) = (Keymap::us().expect("there is memory"), Compose::usual().expect("there is memory"));
        let mut second = Keyboard::load(&mut Reader::new(writer.bytes()), keymap, compose).expect("was saved");
        assert_eq!(typed(&mut second, &[(76, 1), (76, 0), (56, 0)], Modes::default()), b"A");
    }

    #[test]
    fn a_successor_knows_what_is_held_down() {
        let mut first = keyboard();
        typed(&mut first, &[(42, 1), (58, 1)], Modes::default());
        let mut writer = Writer::default();
        first.save(&mut writer);
        let (keymap, compose) = (Keymap::us().expect("there is memory"), Compose::usual().expect("there is memory"));
        let mut second = Keyboard::load(&mut Reader::new(writer.bytes()), keymap, compose).expect("was saved");
        assert_eq!(typed(&mut second, &[(30, 1), (42, 0), (30, 1)], Modes::default()), b"aA");
    }

    #[test]
    fn dead_keys_characters_of_unicode_and_locks_are_as_on_linux() {
        let mut keyboard = keyboard();
        let mut set = |set, key, symbol| keyboard.keymap.set(set, key, Symbol(symbol)).expect("is a symbol");
        set(0, 13, 0x401);
        set(0, 39, 0xbf6);
        set(0, 40, 0x2022 ^ 0xf000);
        set(0, 100, 0xc01);
        set(2, 16, 0x40);
        set(0, 127, 0xa00);
        set(1, 127, 0xa00);
        let typed = |keyboard: &mut Keyboard, keys: &[u16]| {
            let keys: Vec<(u16, i32)> = keys.iter().flat_map(|key| [(*key, 1), (*key, 0)]).collect();
            String::from_utf8(typed(keyboard, &keys, Modes::default())).expect("is UTF-8")
        };
        assert_eq!(typed(&mut keyboard, &[13, 18, 18, 39, 40]), "éeö•");
        assert_eq!(typed(&mut keyboard, &[100, 16, 16]), "@q", "a modifier for one key");
        assert_eq!(typed(&mut keyboard, &[127, 30, 127, 30]), "Aa", "a modifier that stays");
    }

    #[test]
    fn any_events_harm_nobody() {
        let mut keyboard = keyboard();
        let mut random = 3_u64;
        for _ in 0..1_000_000 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            keyboard.key((random >> 40) as u16 % 300, (random >> 60) as i32 % 3, Modes::default());
        }
    }
}
