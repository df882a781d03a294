//! The keys of all keyboards, as console reads them: with positions, so that each arrives once and in order (`abi::input`).

use crate::device::{FIRST_BUTTON, load_events, save_events};
use abi::input::{Event, kind};
use alloc::collections::VecDeque;
use recover::snapshot::{Reader, Writer};
use sys::fallible::{self, TryQueue};

/// Keys that wait for console. More are dropped: nobody types so far ahead.
pub const KEYS: usize = 256;

/// See the head of the file.
pub struct Keys {
    events: VecDeque<Event>,
    /// The reader's number of the first event.
    first: u64,
    /// Somebody has read: before, keys are nobody's.
    has_reader: bool,
}

impl Keys {
    /// None.
    ///
    /// # Panics
    /// When there is no memory, at the start.
    pub fn new() -> Keys {
        let events = fallible::queue(KEYS).expect("input starts with memory for keys");
        Keys { events, first: 0, has_reader: false }
    }

    /// Adds the keys of a packet. Returns whether there were any.
    pub fn add(&mut self, packet: &[Event]) -> bool {
        if !self.has_reader {
            return false;
        }
        let before = self.events.len();
        let keys = packet.iter().filter(|event| event.kind == kind::KEY && event.code < FIRST_BUTTON);
        keys.take(KEYS - before).for_each(|event| self.events.push_back_reserved(*event));
        self.events.len() > before
    }

    /// Forgets the events before `position` of the reader's count. A count that fits nothing begins anew.
    pub fn acknowledge(&mut self, position: u64) {
        self.has_reader = true;
        let count = position.wrapping_sub(self.first);
        if count <= self.events.len() as u64 {
            self.events.drain(..count as usize);
        }
        self.first = position;
    }

    /// The events that wait.
    pub fn iter(&self) -> impl Iterator<Item = &Event> {
        self.events.iter()
    }

    /// Saves them into a snapshot.
    pub fn save(&self, writer: &mut Writer) {
        writer.number(self.first);
        writer.number(self.has_reader.into());
        save_events(self.events.iter(), writer);
    }

    /// Loads them from a snapshot.
    pub fn load(reader: &mut Reader) -> Option<Keys> {
        let mut keys = Keys { first: reader.number()?, has_reader: reader.number()? != 0, ..Keys::new() };
        load_events(reader, KEYS, |event| keys.events.push_back_reserved(event))?;
        Some(keys)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(code: u16) -> [Event; 1] {
        [Event { time_ns: 0, kind: kind::KEY, code, value: 1 }]
    }

    fn codes(keys: &Keys) -> Vec<u16> {
        keys.iter().map(|event| event.code).collect()
    }

    #[test]
    fn a_key_waits_until_it_is_acknowledged() {
        let mut keys = Keys::new();
        assert!(!keys.add(&key(1)), "nobody reads");
        keys.acknowledge(0);
        assert!(keys.add(&key(2)) && keys.add(&key(3)) && !keys.add(&key(FIRST_BUTTON)));
        keys.acknowledge(0);
        assert_eq!(codes(&keys), [2, 3]);
        keys.acknowledge(1);
        assert_eq!(codes(&keys), [3]);
        let mut writer = Writer::default();
        keys.save(&mut writer);
        let mut keys = Keys::load(&mut Reader::new(writer.bytes())).expect("was saved");
        keys.acknowledge(1);
        assert_eq!(codes(&keys), [3]);
        keys.acknowledge(900);
        assert_eq!(codes(&keys), [3], "a reader that counts anew loses nothing");
        keys.acknowledge(901);
        assert_eq!(codes(&keys), []);
    }

    #[test]
    fn keys_beyond_the_limit_are_dropped() {
        let mut keys = Keys::new();
        keys.acknowledge(0);
        (0..300).for_each(|code| {
            keys.add(&key(code % 200));
        });
        assert_eq!(codes(&keys).len(), KEYS);
    }
}
