//! The mouse: packets of three bytes, or of four with a wheel (IntelliMouse) and two more buttons (IntelliMouse Explorer).
//!
//! A packet tells the state of every button, so a lost one leaves no button pressed.

use crate::packet::Packet;
use abi::input::{Description, kind};

const REL_X: u16 = 0;
const REL_Y: u16 = 1;
const REL_HWHEEL: u16 = 6;
const REL_WHEEL: u16 = 8;
const BTN_LEFT: u16 = 0x110;
const BTN_RIGHT: u16 = 0x111;
const BTN_MIDDLE: u16 = 0x112;
const BTN_SIDE: u16 = 0x113;
const BTN_EXTRA: u16 = 0x114;

/// Ids of the protocols.
const PLAIN: u8 = 0;
const WHEEL: u8 = 3;
const EXPLORER: u8 = 4;

/// Set in the first byte of every packet.
const FIRST: u8 = 0x08;

/// A byte in the middle of a packet that comes so late begins a new one.
pub const GAP_NS: u64 = 500_000_000;

/// The rates that switch a mouse to the Explorer's protocol, and to the IntelliMouse's.
pub const KNOCKS: [[u8; 3]; 2] = [[200, 100, 80], [200, 200, 80]];

/// The bytes of an incomplete packet: how many in the top byte, then the third, second and first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Partial(pub u32);

impl Partial {
    /// Takes a byte in. Returns what follows for the decoder, and the packet if it is complete.
    pub fn take(self, id: u8, byte: u8) -> (Partial, Option<[u8; 4]>) {
        let count = (self.0 >> 24) as usize & 3;
        if count == 0 && byte & FIRST == 0 {
            return (Partial(0), None);
        }
        let [first, second, third, _] = self.0.to_le_bytes();
        let mut packet = [first, second, third, 0];
        packet[count] = byte;
        let length = if id == PLAIN { 3 } else { 4 };
        if count + 1 == length {
            return (Partial(0), Some(packet));
        }
        let [first, second, third, _] = packet;
        (Partial(u32::from_le_bytes([first, second, third, count as u8 + 1])), None)
    }
}

/// The events of a packet, in Linux's order.
pub fn decode(id: u8, bytes: [u8; 4], packet: &mut Packet) {
    let [flags, x, y, fourth] = bytes;
    let button = |flags: u8, bit: u8| i32::from(flags >> bit & 1);
    match (id, fourth & 0xc0) {
        (WHEEL, _) => packet.add(kind::REL, REL_WHEEL, -i32::from(fourth as i8)),
        // Some mice tell a wheel in six bits, and then which one.
        (EXPLORER, 0x80) => packet.add(kind::REL, REL_WHEEL, -i32::from((fourth << 2) as i8 >> 2)),
        (EXPLORER, 0x40) => packet.add(kind::REL, REL_HWHEEL, -i32::from((fourth << 2) as i8 >> 2)),
        (EXPLORER, _) => {
            packet.add(kind::REL, REL_WHEEL, -i32::from((fourth << 4) as i8 >> 4));
            packet.add(kind::KEY, BTN_SIDE, button(fourth, 4));
            packet.add(kind::KEY, BTN_EXTRA, button(fourth, 5));
        }
        _ => {}
    }
    packet.add(kind::KEY, BTN_LEFT, button(flags, 0));
    packet.add(kind::KEY, BTN_MIDDLE, button(flags, 2));
    packet.add(kind::KEY, BTN_RIGHT, button(flags, 1));
    let signed = |value: u8, sign: u8| i32::from(value) - (i32::from(flags >> sign & 1) << 8);
    packet.add(kind::REL, REL_X, signed(x, 4));
    packet.add(kind::REL, REL_Y, -signed(y, 5));
    packet.end();
}

/// What evdev tells of it: as Linux's psmouse.
pub fn describe(id: u8) -> Description {
    let (name, product, buttons, wheel) = match id {
        EXPLORER => ("ImExPS/2 Generic Explorer Mouse", 6, 5, 1 << REL_WHEEL | 1 << REL_HWHEEL),
        WHEEL => ("ImPS/2 Generic Wheel Mouse", 5, 3, 1 << REL_WHEEL),
        _ => ("PS/2 Generic Mouse", 1, 3, 0),
    };
    let mut description = Description::named(name, "isa0060/serio1/input0");
    description.id = [0x11, 2, product, 0];
    description.properties = 1;
    description.kinds |= 1 << kind::KEY | 1 << kind::REL;
    description.relative = 1 << REL_X | 1 << REL_Y | wheel;
    (BTN_LEFT..BTN_LEFT + buttons).for_each(|button| description.add_key(button));
    description
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    fn events(id: u8, bytes: &[u8]) -> Vec<(u16, u16, i32)> {
        let (mut partial, mut packet) = (Partial(0), Packet::new(0));
        for byte in bytes {
            let (next, complete) = partial.take(id, *byte);
            partial = next;
            complete.into_iter().for_each(|bytes| decode(id, bytes, &mut packet));
        }
        packet.events().iter().map(|event| (event.kind, event.code, event.value)).collect()
    }

    #[test]
    fn distances_have_nine_bits_and_y_grows_downwards() {
        let events = events(PLAIN, &[0x19, 0xfe, 0x05]);
        assert!(events.contains(&(kind::KEY, BTN_LEFT, 1)) && events.contains(&(kind::KEY, BTN_RIGHT, 0)));
        assert!(events.contains(&(kind::REL, REL_X, -2)) && events.contains(&(kind::REL, REL_Y, -5)));
    }

    #[test]
    fn the_explorer_has_a_wheel_of_four_bits_and_two_more_buttons() {
        let events = events(EXPLORER, &[0x08, 0, 0, 0x2f]);
        assert!(events.contains(&(kind::REL, REL_WHEEL, 1)));
        assert!(events.contains(&(kind::KEY, BTN_EXTRA, 1)) && events.contains(&(kind::KEY, BTN_SIDE, 0)));
    }

    #[test]
    fn a_wheel_for_the_other_direction_has_six_bits() {
        assert!(events(EXPLORER, &[0x08, 0, 0, 0x7f]).contains(&(kind::REL, REL_HWHEEL, 1)));
        assert!(events(EXPLORER, &[0x08, 0, 0, 0x9f]).contains(&(kind::REL, REL_WHEEL, -31)));
    }

    #[test]
    fn a_byte_that_begins_no_packet_is_dropped() {
        assert!(events(WHEEL, &[0x00, 0x07, 0x28, 1, 2, 0xff]).contains(&(kind::REL, REL_WHEEL, 1)));
    }
}
