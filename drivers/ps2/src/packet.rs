//! The events of one packet of a device, before they are committed.

use abi::input::{Event, kind};

/// Most events of a packet: those of a mouse with a wheel and five buttons.
const MOST: usize = 10;

/// Events with the time of their interrupt.
pub struct Packet {
    time_ns: u64,
    events: [Event; MOST],
    count: usize,
}

impl Packet {
    /// No events yet.
    pub fn new(time_ns: u64) -> Packet {
        Packet { time_ns, events: [Event::default(); MOST], count: 0 }
    }

    /// Adds an event.
    pub fn add(&mut self, kind: u16, code: u16, value: i32) {
        if let Some(slot) = self.events.get_mut(self.count) {
            *slot = Event { time_ns: self.time_ns, kind, code, value };
            self.count += 1;
        }
    }

    /// Adds the end.
    pub fn end(&mut self) {
        self.add(kind::SYN, 0, 0);
    }

    /// The events.
    pub fn events(&self) -> &[Event] {
        &self.events[..self.count]
    }
}
