//! A device as input knows it: its description, the state of its keys, lights and axes, and the packet that is being received.
//!
//! What passes is what Linux's input core lets pass: no key that is pressed already, no axis that has not moved, no packet without events.
//! So a driver may repeat what it is not sure to have said.

use abi::input::{Description, Event, FLAG_REPEATS, KEY_MAP_BYTES, MAX_AXES, kind};
use alloc::vec::Vec;
use recover::snapshot::{Reader, Writer};
use sys::fallible::{self, TryVec};

const SYN_REPORT: u16 = 0;
/// Multi-touch axes have a value for each finger: they are not compared with the last.
const ABS_MT_FIRST: u16 = 0x2f;
/// Events of a packet; what is longer is passed on in pieces, as Linux does.
const MAX_PACKET: usize = 32;
/// `REP_DELAY` and `REP_PERIOD` at first, in ms.
const REPEAT_MS: [u32; 2] = [250, 33];
const NS_PER_MS: u64 = 1_000_000;
/// Keys below are of keyboards (`BTN_MISC` of Linux).
pub const FIRST_BUTTON: u16 = 0x100;

/// A key that is held, and when it is repeated next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    code: u16,
    /// Monotonic time.
    pub deadline_ns: u64,
}

/// See the head of the file.
pub struct Device {
    /// `None`: the driver has not described it, or it is absent.
    pub description: Option<Description>,
    /// Events received from the driver since boot.
    pub position: u64,
    pub keys: [u8; KEY_MAP_BYTES],
    pub lights: u32,
    pub switches: u32,
    pub values: [i32; MAX_AXES],
    /// Delay and period of the repeat in ms.
    pub repeat_ms: [u32; 2],
    packet: Vec<Event>,
    held: Option<Held>,
    /// The key that was pressed last, and until when it is not pressed again: some keyboards send a key twice.
    bounces: (u16, u64),
}

/// What becomes of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Ignored,
    Passed,
    /// It ends the packet.
    Ends,
}

impl Device {
    /// A device of which nothing is known.
    ///
    /// # Panics
    /// When there is no memory, at the start.
    pub fn new() -> Device {
        Device {
            description: None,
            position: 0,
            keys: [0; KEY_MAP_BYTES],
            lights: 0,
            switches: 0,
            values: [0; MAX_AXES],
            repeat_ms: REPEAT_MS,
            packet: fallible::with_capacity(MAX_PACKET).expect("input starts with memory for its devices"),
            held: None,
            bounces: (0, 0),
        }
    }

    /// Takes an event in. Returns the packet that it completes.
    pub fn take(&mut self, mut event: Event) -> Option<&[Event]> {
        if self.packet.len() == MAX_PACKET {
            self.packet.clear();
        }
        match self.fate(&mut event) {
            Fate::Ignored => None,
            Fate::Passed => {
                self.packet.push_reserved(event);
                (self.packet.len() == MAX_PACKET).then_some(&self.packet[..])
            }
            Fate::Ends if self.packet.is_empty() => None,
            Fate::Ends => {
                self.packet.push_reserved(event);
                Some(&self.packet[..])
            }
        }
    }

    /// Forgets the packet that was passed on.
    pub fn passed(&mut self) {
        self.packet.clear();
    }

    /// The key that input repeats, because the device does not.
    pub fn held(&self) -> Option<Held> {
        self.held
    }

    /// Repeats the key that is held, at its time. Returns the packet.
    pub fn repeat(&mut self, now_ns: u64) -> Option<[Event; 2]> {
        let held = self.held.as_mut().filter(|held| held.deadline_ns <= now_ns)?;
        held.deadline_ns = now_ns + u64::from(self.repeat_ms[1]) * NS_PER_MS;
        let event = |kind, code, value| Event { time_ns: now_ns, kind, code, value };
        Some([event(kind::KEY, held.code, 2), event(kind::SYN, SYN_REPORT, 1)])
    }

    /// Saves what a successor has to know.
    pub fn save(&self, writer: &mut Writer) {
        writer.number(self.position);
        writer.run((&self.keys, &[]));
        let [delay, period] = self.repeat_ms;
        [self.lights, self.switches, delay, period].into_iter().for_each(|number| writer.number(number.into()));
        self.values.iter().for_each(|value| writer.number(*value as u64));
        save_events(self.packet.iter(), writer);
    }

    /// Loads it. A key that is held is not repeated until it is pressed again.
    pub fn load(reader: &mut Reader) -> Option<Device> {
        let mut device = Device { position: reader.number()?, ..Device::new() };
        device.keys = reader.run()?.try_into().ok()?;
        (device.lights, device.switches) = (reader.number()? as u32, reader.number()? as u32);
        device.repeat_ms = [reader.number()? as u32, reader.number()? as u32];
        for value in &mut device.values {
            *value = reader.number()? as i32;
        }
        load_events(reader, MAX_PACKET, |event| device.packet.push_reserved(event))?;
        Some(device)
    }

    /// Whether it has this key pressed.
    pub fn is_pressed(&self, code: u16) -> bool {
        self.keys.get(usize::from(code / 8)).is_some_and(|byte| byte & 1 << (code % 8) != 0)
    }

    fn fate(&mut self, event: &mut Event) -> Fate {
        let Some(description) = &self.description else { return Fate::Ignored };
        let bit = |map: u32, code: u16| code < 32 && map & 1 << code != 0;
        let (kinds, other, relative) = (description.kinds, description.other, description.relative);
        let (lights, switches) = (description.lights, description.switches);
        match (event.kind, event.code) {
            (kind::SYN, SYN_REPORT) => Fate::Ends,
            (kind::KEY, code) if description.has_key(code) => self.key(event),
            (kind::REL, code) if bit(relative, code) && event.value != 0 => Fate::Passed,
            (kind::ABS, code) => match description.axis(code) {
                Some(index) => self.axis(event, index),
                None => Fate::Ignored,
            },
            (kind::MSC, code) if bit(other, code) => Fate::Passed,
            (kind::LED, code) if bit(lights, code) => toggled(&mut self.lights, event),
            (kind::SW, code) if bit(switches, code) => toggled(&mut self.switches, event),
            (kind::REP, code @ 0..2) if bit(kinds, kind::REP) && event.value >= 0 => {
                let old = core::mem::replace(&mut self.repeat_ms[usize::from(code)], event.value as u32);
                if old == event.value as u32 { Fate::Ignored } else { Fate::Passed }
            }
            _ => Fate::Ignored,
        }
    }

    fn key(&mut self, event: &mut Event) -> Fate {
        let description = self.description.as_ref().expect("the caller has looked");
        let repeats = description.kinds & 1 << kind::REP != 0;
        let by_itself = description.flags & FLAG_REPEATS != 0;
        let (is_pressed, presses) = (self.is_pressed(event.code), event.value != 0);
        if is_pressed && presses && repeats && (by_itself || event.value == 2) {
            if self.bounces.0 == event.code && event.time_ns < self.bounces.1 {
                return Fate::Ignored;
            }
            event.value = 2;
            return Fate::Passed;
        }
        if is_pressed == presses {
            return Fate::Ignored;
        }
        event.value = i32::from(presses);
        self.keys[usize::from(event.code / 8)] ^= 1 << (event.code % 8);
        let half_ns = u64::from(self.repeat_ms[0]) * NS_PER_MS / 2;
        self.bounces = if presses { (event.code, event.time_ns + half_ns) } else { (0, 0) };
        if repeats && !by_itself {
            let deadline_ns = event.time_ns + u64::from(self.repeat_ms[0]) * NS_PER_MS;
            let is_off = self.repeat_ms.contains(&0);
            self.held = (presses && !is_off).then_some(Held { code: event.code, deadline_ns });
        }
        Fate::Passed
    }

    fn axis(&mut self, event: &mut Event, index: usize) -> Fate {
        let fuzz = self.description.as_ref().map_or(0, |description| description.axes[index].fuzz);
        if event.code >= ABS_MT_FIRST {
            return Fate::Passed;
        }
        let old = self.values[index];
        event.value = without_noise(event.value, old, fuzz);
        if event.value == old {
            return Fate::Ignored;
        }
        self.values[index] = event.value;
        Fate::Passed
    }
}

/// A light or switch changes, or the event is ignored.
fn toggled(map: &mut u32, event: &mut Event) -> Fate {
    let (bit, wanted) = (1 << event.code, event.value != 0);
    if (*map & bit != 0) == wanted {
        return Fate::Ignored;
    }
    *map ^= bit;
    event.value = i32::from(wanted);
    Fate::Passed
}

/// Filters the noise of an axis as Linux's input core does: small changes are ignored or averaged.
fn without_noise(value: i32, old: i32, fuzz: i32) -> i32 {
    let (value, old, fuzz) = (i64::from(value), i64::from(old), i64::from(fuzz));
    let distance = (value - old).abs();
    let filtered = match fuzz {
        0 => value,
        _ if distance < fuzz / 2 => old,
        _ if distance < fuzz => (old * 3 + value) / 4,
        _ if distance < fuzz * 2 => (old + value) / 2,
        _ => value,
    };
    filtered as i32
}

/// Saves events into a snapshot.
pub fn save_events<'a>(events: impl ExactSizeIterator<Item = &'a Event>, writer: &mut Writer) {
    writer.number(events.len() as u64);
    events.flat_map(|event| event.to_words()).for_each(|word| writer.number(word));
}

/// Loads events from a snapshot, at most `limit`.
pub fn load_events(reader: &mut Reader, limit: usize, mut add: impl FnMut(Event)) -> Option<()> {
    for _ in 0..reader.number()?.min(limit as u64) {
        add(Event::from_words([reader.number()?, reader.number()?]));
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keyboard(flags: u32) -> Device {
        let mut description = Description { flags, ..Description::named("keyboard", "") };
        description.kinds |= 1 << kind::KEY | 1 << kind::REP | 1 << kind::ABS;
        description.absolute = 3;
        description.axes[1].fuzz = 8;
        description.add_key(30);
        Device { description: Some(description), ..Device::new() }
    }

    fn take(device: &mut Device, kind: u16, code: u16, value: i32) -> Option<Vec<(u16, i32)>> {
        let packet = device.take(Event { time_ns: 0, kind, code, value });
        let packet = packet.map(|events| events.iter().map(|event| (event.code, event.value)).collect());
        packet.inspect(|_| device.passed())
    }

    #[test]
    fn a_packet_passes_at_its_end_and_an_empty_one_never() {
        let mut device = keyboard(0);
        assert_eq!(take(&mut device, kind::KEY, 30, 1), None);
        assert_eq!(take(&mut device, kind::SYN, 0, 0), Some(Vec::from([(30, 1), (0, 0)])));
        assert_eq!(take(&mut device, kind::KEY, 30, 1), None, "it is pressed already");
        assert_eq!(take(&mut device, kind::SYN, 0, 0), None);
        assert_eq!(take(&mut device, kind::KEY, 31, 1), None, "it has no such key");
        assert_eq!(take(&mut device, kind::SYN, 0, 0), None);
    }

    #[test]
    fn a_keyboard_that_repeats_says_so_by_pressing_again() {
        let mut device = keyboard(FLAG_REPEATS);
        take(&mut device, kind::KEY, 30, 1);
        take(&mut device, kind::SYN, 0, 0);
        assert_eq!(take(&mut device, kind::KEY, 30, 1), None);
        assert_eq!(take(&mut device, kind::SYN, 0, 0), None, "twice within half the delay is once");
        device.take(Event { time_ns: 125_000_000, kind: kind::KEY, code: 30, value: 1 });
        assert_eq!(take(&mut device, kind::SYN, 0, 0), Some(Vec::from([(30, 2), (0, 0)])));
        assert_eq!(device.held(), None);
    }

    #[test]
    fn a_key_of_another_keyboard_is_repeated_after_the_delay_until_it_is_released() {
        let mut device = keyboard(0);
        take(&mut device, kind::KEY, 30, 1);
        assert_eq!(device.repeat(249_999_999), None);
        assert_eq!(device.repeat(250_000_000).map(|packet| (packet[0].code, packet[0].value)), Some((30, 2)));
        assert_eq!(device.repeat(282_999_999), None);
        take(&mut device, kind::KEY, 30, 0);
        assert_eq!(device.held(), None);
    }

    #[test]
    fn an_axis_that_has_not_moved_is_ignored_and_noise_is_filtered() {
        let mut device = keyboard(0);
        assert_eq!(take(&mut device, kind::ABS, 0, 0), None);
        assert_eq!(take(&mut device, kind::SYN, 0, 0), None);
        for (axis, value) in [(1, 100), (1, 102), (1, 106), (0, 5)] {
            take(&mut device, kind::ABS, axis, value);
        }
        assert_eq!(take(&mut device, kind::SYN, 0, 0), Some(Vec::from([(1, 100), (1, 101), (0, 5), (0, 0)])));
    }

    #[test]
    fn a_successor_knows_which_keys_are_pressed() {
        let mut device = keyboard(0);
        take(&mut device, kind::KEY, 30, 1);
        (device.position, device.values[3]) = (7, -5);
        let mut writer = Writer::default();
        device.save(&mut writer);
        let mut loaded = Device::load(&mut Reader::new(writer.bytes())).expect("was saved");
        assert_eq!((loaded.position, loaded.values[3], loaded.is_pressed(30)), (7, -5, true));
        loaded.description = device.description;
        assert_eq!(
            take(&mut loaded, kind::SYN, 0, 0),
            Some(Vec::from([(30, 1), (0, 0)])),
            "it has the rest of the packet"
        );
    }
}
