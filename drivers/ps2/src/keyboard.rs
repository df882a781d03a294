//! The keyboard: scan codes of set 1, as the controller translates them, into key codes of Linux.
//!
//! A scan code is a byte, whose upper bit tells a release, with up to two bytes before it: 0xe0 marks the second half of the table, 0xe1 the
//! one key (Pause) that has a code of two bytes.

use crate::packet::Packet;
use abi::input::{Description, FLAG_REPEATS, kind};

const MSC_SCAN: u16 = 4;
const RELEASED: u8 = 0x80;
const EXTENDED: u8 = 0xe0;
const EXTENDED_LONG: u8 = 0xe1;
/// Two keys of Korean keyboards, which Linux lists too: their codes look like releases of nothing, and no released key is named.
const LONG_KEYS: [u16; 2] = [122, 123];
/// In the table: shifts that the keyboard adds for the sake of old programs.
const IGNORED: u8 = 0xff;

/// Linux's key codes of scan codes, the second half those after 0xe0 (EVIOCGKEYCODE of Linux 6.1's atkbd). 0: no key.
#[rustfmt::skip]
const KEYS: [u8; 256] = [
    0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15,
    16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31,
    32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47,
    48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63,
    64, 65, 66, 67, 68, 69, 70, 71, 72, 73, 74, 75, 76, 77, 78, 79,
    80, 81, 82, 83, 99, 0, 86, 87, 88, 117, 0, 0, 95, 183, 184, 185,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 193, 0,
    93, 0, 0, 89, 0, 0, 85, 91, 90, 92, 0, 94, 0, 124, 121, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    165, 0, 0, 0, 0, 0, 0, 0, 0, 163, 0, 0, 96, 97, 0, 0,
    113, 140, 164, 0, 166, 0, 0, 0, 0, 0, 255, 0, 0, 0, 114, 0,
    115, 0, 172, 0, 0, 98, 255, 99, 100, 0, 0, 0, 0, 0, 0, 0,
    0, 0, 0, 0, 0, 119, 119, 102, 103, 104, 0, 105, 112, 106, 118, 107,
    108, 109, 110, 111, 0, 0, 0, 0, 0, 0, 0, 125, 126, 127, 116, 142,
    0, 0, 0, 143, 0, 217, 156, 173, 128, 159, 158, 157, 155, 226, 0, 112,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
];

/// What came before the byte that ends a scan code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prefix {
    None,
    /// 0xe0, or 0xe1 and another byte.
    Extended,
    /// 0xe1.
    Long,
}

impl Prefix {
    /// As it is preserved.
    pub fn from_state(state: u32) -> Prefix {
        match state {
            1 => Prefix::Extended,
            2 => Prefix::Long,
            _ => Prefix::None,
        }
    }

    /// For its preservation.
    pub fn to_state(self) -> u32 {
        self as u32
    }

    /// Takes a byte in: adds the events of the key that it completes. Returns what the next byte follows.
    pub fn take(self, byte: u8, packet: &mut Packet) -> Prefix {
        match (byte, self) {
            (EXTENDED, _) => return Prefix::Extended,
            (EXTENDED_LONG, _) => return Prefix::Long,
            (_, Prefix::Long) => return Prefix::Extended,
            _ => {}
        }
        let half = if self == Prefix::Extended { 0x80 } else { 0 };
        let code = byte & !RELEASED | half;
        let key = KEYS[usize::from(code)];
        if key != IGNORED {
            packet.add(kind::MSC, MSC_SCAN, code.into());
            if key != 0 {
                packet.add(kind::KEY, key.into(), i32::from(byte & RELEASED == 0));
            }
            packet.end();
        }
        Prefix::None
    }
}

/// What evdev tells of it: as Linux's atkbd.
pub fn describe(id: u16) -> Description {
    let mut description = Description::named("AT Translated Set 2 keyboard", "isa0060/serio0/input0");
    description.id = [0x11, 1, 1, id];
    description.kinds |= 1 << kind::KEY | 1 << kind::MSC | 1 << kind::LED | 1 << kind::REP;
    description.other = 1 << MSC_SCAN;
    description.lights = 7;
    description.flags = FLAG_REPEATS;
    LONG_KEYS.iter().for_each(|key| description.add_key(*key));
    KEYS.iter().filter(|key| ![0, IGNORED].contains(key)).for_each(|key| description.add_key((*key).into()));
    description
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    fn events(bytes: &[u8]) -> Vec<(u16, i32)> {
        let (mut prefix, mut packet) = (Prefix::None, Packet::new(0));
        for byte in bytes {
            prefix = Prefix::from_state(prefix.to_state()).take(*byte, &mut packet);
        }
        let keys = packet.events().iter().filter(|event| event.kind == kind::KEY);
        keys.map(|event| (event.code, event.value)).collect()
    }

    #[test]
    fn a_key_is_pressed_and_released() {
        assert_eq!(events(&[0x1e, 0x9e]), [(30, 1), (30, 0)]);
    }

    #[test]
    fn the_prefix_tells_keys_of_the_same_code_apart() {
        assert_eq!(events(&[0x48, 0xe0, 0x48, 0xe0, 0xc8]), [(72, 1), (103, 1), (103, 0)]);
    }

    #[test]
    fn pause_has_a_code_of_its_own_and_is_no_num_lock() {
        assert_eq!(events(&[0xe1, 0x1d, 0x45, 0xe1, 0x9d, 0xc5]), [(119, 1), (119, 0)]);
    }

    #[test]
    fn shifts_that_the_keyboard_adds_are_ignored() {
        assert_eq!(events(&[0xe0, 0x2a, 0xe0, 0x37, 0xe0, 0xaa]), [(99, 1)]);
    }
}
