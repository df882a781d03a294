//! Input devices (keyboards, pointers, touch screens): what `input` asks their drivers, and what console asks input. Both are `chardev`.
//!
//! `Read` fills the grant with [`Event`] records. `caller` counts the events that the reader has taken since boot: the other side keeps an
//! event until a later `Read` acknowledges it, so that each arrives once and in order whoever dies between the two. A count that matches
//! nothing resets it. Kinds, codes and values are Linux's (linux/input-event-codes.h): a driver sends what evdev shows.

/// Size of an event record.
pub const EVENT_BYTES: usize = 16;

/// `Control` to a driver: fills the grant with the minor's [`Description`]. `ENXIO`: there is no such device.
pub const DESCRIBE: u64 = 1;
/// `Control` to a driver, or of console to input: sets the lights to `argument`, bits by number `LED_*` of Linux.
pub const SET_LEDS: u64 = 2;

/// The minor of input from which console reads the events of all keyboards that no program has for itself (EVIOCGRAB).
pub const MINOR_KEYS: u64 = 0x8000;

/// One event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Event {
    /// Monotonic time of the interrupt.
    pub time_ns: u64,
    /// `EV_*`.
    pub kind: u16,
    /// Which key, axis or light.
    pub code: u16,
    /// 1 and 0 for keys; a distance or position for axes.
    pub value: i32,
}

impl Event {
    /// The record of an event.
    pub fn to_words(self) -> [u64; 2] {
        [self.time_ns, u64::from(self.kind) | u64::from(self.code) << 16 | u64::from(self.value as u32) << 32]
    }

    /// The event of a record.
    pub fn from_words([time_ns, rest]: [u64; 2]) -> Event {
        Event { time_ns, kind: rest as u16, code: (rest >> 16) as u16, value: (rest >> 32) as i32 }
    }

    /// The record as bytes.
    pub fn to_bytes(self) -> [u8; EVENT_BYTES] {
        let mut bytes = [0; EVENT_BYTES];
        let (low, high) = bytes.split_at_mut(8);
        let [first, second] = self.to_words();
        low.copy_from_slice(&first.to_le_bytes());
        high.copy_from_slice(&second.to_le_bytes());
        bytes
    }

    /// The event of a record of bytes.
    pub fn from_bytes(bytes: &[u8; EVENT_BYTES]) -> Event {
        let word = |from: usize| bytes[from..from + 8].iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
        Event::from_words([word(0), word(8)])
    }
}

/// Kinds of events.
pub mod kind {
    /// The end of a packet.
    pub const SYN: u16 = 0;
    /// A key or button: 1 pressed, 0 released, 2 repeated.
    pub const KEY: u16 = 1;
    /// A relative axis.
    pub const REL: u16 = 2;
    /// An absolute axis.
    pub const ABS: u16 = 3;
    /// Other facts, such as the scan code.
    pub const MSC: u16 = 4;
    /// A switch.
    pub const SW: u16 = 5;
    /// A light.
    pub const LED: u16 = 0x11;
    /// Settings of the key repeat.
    pub const REP: u16 = 0x14;
}

/// Bytes of the bitmap of keys (`KEY_CNT` of Linux is 768).
pub const KEY_MAP_BYTES: usize = 96;
/// Absolute axes that a description has room for.
pub const MAX_AXES: usize = 16;
/// Bytes of a device's name.
pub const NAME_BYTES: usize = 48;
/// Bytes of a device's place.
pub const PLACE_BYTES: usize = 32;
/// Offset of the numbers behind name and place, and of the axes behind these.
const NUMBERS: usize = NAME_BYTES + PLACE_BYTES;
const KEYS: usize = NUMBERS + 44;
const AXES: usize = KEYS + KEY_MAP_BYTES;
/// `min`, `max`, `fuzz`, `flat`, `resolution`.
const AXIS_BYTES: usize = 20;
/// Size of the record that `DESCRIBE` returns.
pub const DESCRIPTION_BYTES: usize = AXES + MAX_AXES * AXIS_BYTES;

/// Flag of a description: the device repeats keys that are held, and sends them as pressed again.
pub const FLAG_REPEATS: u32 = 1;

/// An absolute axis (`struct input_absinfo` without the value).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Axis {
    /// Least value.
    pub min: i32,
    /// Greatest value.
    pub max: i32,
    /// Noise that is filtered.
    pub fuzz: i32,
    /// Size of the middle that counts as rest.
    pub flat: i32,
    /// Units in a millimetre.
    pub resolution: i32,
}

/// What a device is and can, as evdev tells it. Bit N of a map stands for code N.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Description {
    /// Its name, padded with NUL.
    pub name: [u8; NAME_BYTES],
    /// Where it is connected (`EVIOCGPHYS`), padded with NUL.
    pub place: [u8; PLACE_BYTES],
    /// `bustype`, `vendor`, `product`, `version`.
    pub id: [u16; 4],
    /// `INPUT_PROP_*`.
    pub properties: u32,
    /// `EV_*`.
    pub kinds: u32,
    /// `REL_*`.
    pub relative: u32,
    /// `MSC_*`.
    pub other: u32,
    /// `LED_*`.
    pub lights: u32,
    /// `SW_*`.
    pub switches: u32,
    /// `FLAG_*`.
    pub flags: u32,
    /// `ABS_*`.
    pub absolute: u64,
    /// `KEY_*` and `BTN_*`.
    pub keys: [u8; KEY_MAP_BYTES],
    /// The absolute axes, in the order of their bits.
    pub axes: [Axis; MAX_AXES],
}

impl Description {
    /// A device without any ability.
    pub const NONE: Description = Description {
        name: [0; NAME_BYTES],
        place: [0; PLACE_BYTES],
        id: [0; 4],
        properties: 0,
        kinds: 1 << kind::SYN,
        relative: 0,
        other: 0,
        lights: 0,
        switches: 0,
        flags: 0,
        absolute: 0,
        keys: [0; KEY_MAP_BYTES],
        axes: [Axis { min: 0, max: 0, fuzz: 0, flat: 0, resolution: 0 }; MAX_AXES],
    };

    /// A device with this name and place, shortened to what fits.
    pub fn named(name: &str, place: &str) -> Description {
        let mut description = Description::NONE;
        let (name, place) = (name.as_bytes(), place.as_bytes());
        let (name_bytes, place_bytes) = (name.len().min(NAME_BYTES), place.len().min(PLACE_BYTES));
        description.name[..name_bytes].copy_from_slice(&name[..name_bytes]);
        description.place[..place_bytes].copy_from_slice(&place[..place_bytes]);
        description
    }

    /// Adds a key or button.
    pub fn add_key(&mut self, code: u16) {
        if let Some(byte) = self.keys.get_mut(usize::from(code / 8)) {
            *byte |= 1 << (code % 8);
        }
    }

    /// Whether it has this key or button.
    pub fn has_key(&self, code: u16) -> bool {
        self.keys.get(usize::from(code / 8)).is_some_and(|byte| byte & 1 << (code % 8) != 0)
    }

    /// The place of an absolute axis in `axes`; `None`: it has no such axis.
    pub fn axis(&self, code: u16) -> Option<usize> {
        let has = code < 64 && self.absolute & 1 << code != 0;
        let index = has.then(|| (self.absolute & ((1 << code) - 1)).count_ones() as usize)?;
        (index < MAX_AXES).then_some(index)
    }

    /// The record.
    pub fn to_bytes(&self) -> [u8; DESCRIPTION_BYTES] {
        let mut bytes = [0; DESCRIPTION_BYTES];
        bytes[..NAME_BYTES].copy_from_slice(&self.name);
        bytes[NAME_BYTES..NUMBERS].copy_from_slice(&self.place);
        let mut at = NUMBERS;
        let mut put = |value: &[u8]| {
            bytes[at..at + value.len()].copy_from_slice(value);
            at += value.len();
        };
        self.id.iter().for_each(|id| put(&id.to_le_bytes()));
        let maps = [self.properties, self.kinds, self.relative, self.other, self.lights, self.switches, self.flags];
        maps.iter().for_each(|map| put(&map.to_le_bytes()));
        put(&self.absolute.to_le_bytes());
        put(&self.keys);
        for axis in &self.axes {
            let Axis { min, max, fuzz, flat, resolution } = axis;
            [min, max, fuzz, flat, resolution].iter().for_each(|value| put(&value.to_le_bytes()));
        }
        bytes
    }

    /// The description of a record.
    pub fn from_bytes(bytes: &[u8; DESCRIPTION_BYTES]) -> Description {
        let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let map = |index: usize| word(NUMBERS + 8 + 4 * index);
        let id = |index: usize| {
            let at = NUMBERS + 2 * index;
            u16::from_le_bytes([bytes[at], bytes[at + 1]])
        };
        let value = |axis: usize, index: usize| word(AXES + axis * AXIS_BYTES + 4 * index) as i32;
        Description {
            name: core::array::from_fn(|index| bytes[index]),
            place: core::array::from_fn(|index| bytes[NAME_BYTES + index]),
            id: core::array::from_fn(id),
            properties: map(0),
            kinds: map(1),
            relative: map(2),
            other: map(3),
            lights: map(4),
            switches: map(5),
            flags: map(6),
            absolute: u64::from(map(7)) | u64::from(map(8)) << 32,
            keys: core::array::from_fn(|index| bytes[KEYS + index]),
            axes: core::array::from_fn(|axis| Axis {
                min: value(axis, 0),
                max: value(axis, 1),
                fuzz: value(axis, 2),
                flat: value(axis, 3),
                resolution: value(axis, 4),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_reads_back_as_it_was_written() {
        let event = Event { time_ns: 1 << 50 | 3, kind: kind::REL, code: 8, value: -1 };
        assert_eq!(Event::from_bytes(&event.to_bytes()), event);
    }

    #[test]
    fn a_description_reads_back_as_it_was_written() {
        let mut description = Description::named("tablet", "here");
        description.id = [1, 2, 3, 4];
        (description.properties, description.kinds, description.absolute) = (5, 11, 1 << 63 | 3);
        description.flags = FLAG_REPEATS;
        (description.relative, description.other, description.lights, description.switches) = (6, 7, 8, 9);
        description.add_key(767);
        description.add_key(30);
        description.axes[1] = Axis { min: -7, max: 0x7fff, fuzz: 1, flat: 2, resolution: 3 };
        let read = Description::from_bytes(&description.to_bytes());
        assert_eq!(read, description);
        assert!(read.has_key(30) && read.has_key(767) && !read.has_key(31) && !read.has_key(768));
        assert_eq!([0, 1, 2, 63, 64].map(|code| read.axis(code)), [Some(0), Some(1), None, Some(2), None]);
    }
}
