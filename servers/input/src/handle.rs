//! An open file: of one device (evdev), or of all pointers (/dev/input/mice).

use crate::ioctl::Clock;
use crate::mice::Mice;
use crate::queue::Queue;
use abi::Errno;
use abi::input::Event;
use recover::snapshot::{Reader, Writer};

/// Size of `struct input_event`.
pub const EVENT_BYTES: usize = 24;
const NS_PER_S: u64 = 1_000_000_000;

/// What an open file shows.
pub enum Content {
    Evdev(Evdev),
    Mice(Mice),
}

/// An open file of one device.
pub struct Evdev {
    pub device: usize,
    pub queue: Queue,
    pub clock: Clock,
    /// It has the device for itself (EVIOCGRAB).
    pub grabs: bool,
    /// It shows nothing any more (EVIOCREVOKE).
    pub revoked: bool,
}

/// See the head of the file.
pub struct Handle {
    pub content: Content,
    /// The user who is accountable.
    pub user: u32,
    /// The request that opened it, as long as that may be repeated.
    pub open_tag: u64,
    /// The last write, whose repetition does nothing, and its result.
    pub written: (u64, u64),
}

impl Handle {
    /// Saves it into a snapshot.
    pub fn save(&self, writer: &mut Writer) {
        let (tag, bytes) = self.written;
        [u64::from(self.user), self.open_tag, tag, bytes].into_iter().for_each(|number| writer.number(number));
        match &self.content {
            Content::Mice(mice) => {
                writer.number(0);
                mice.save(writer);
            }
            Content::Evdev(evdev) => {
                writer.number(evdev.device as u64 + 1);
                let is_real = evdev.clock == Clock::Real;
                [is_real, evdev.grabs, evdev.revoked].into_iter().for_each(|flag| writer.number(flag.into()));
                evdev.queue.save(writer);
            }
        }
    }

    /// Loads it from a snapshot.
    pub fn load(reader: &mut Reader, devices: usize) -> Option<Handle> {
        let (user, open_tag) = (reader.number()? as u32, reader.number()?);
        let written = (reader.number()?, reader.number()?);
        let content = match (reader.number()? as usize).checked_sub(1) {
            None => Content::Mice(Mice::load(reader)?),
            Some(device) if device < devices => {
                let clock = if reader.number()? != 0 { Clock::Real } else { Clock::Monotonic };
                let (grabs, revoked) = (reader.number()? != 0, reader.number()? != 0);
                Content::Evdev(Evdev { device, queue: Queue::load(reader)?, clock, grabs, revoked })
            }
            Some(_) => return None,
        };
        Some(Handle { content, user, open_tag, written })
    }

    /// Whether a read would get something.
    pub fn is_readable(&self) -> bool {
        match &self.content {
            Content::Evdev(evdev) => evdev.queue.is_readable(),
            Content::Mice(mice) => mice.is_readable(),
        }
    }

    /// The open file of one device.
    ///
    /// # Errors
    /// `EINVAL`: it is of all pointers; `ENODEV`: it was revoked.
    pub fn evdev(&mut self) -> Result<&mut Evdev, Errno> {
        match &mut self.content {
            Content::Evdev(evdev) if evdev.revoked => Err(Errno::ENODEV),
            Content::Evdev(evdev) => Ok(evdev),
            Content::Mice(_) => Err(Errno::EINVAL),
        }
    }

    /// Fills the buffer for the read with this tag, or as it was filled for it before. Returns how many bytes; `None`: there is nothing.
    /// `real_less_now_ns` leads from monotonic time to real time.
    ///
    /// # Errors
    /// `EINVAL`: not even one event has room; `ENODEV`.
    pub fn read(
        &mut self,
        tag: u64,
        limit: usize,
        real_less_now_ns: u64,
        buffer: &mut [u8],
    ) -> Result<Option<usize>, Errno> {
        if let Content::Mice(mice) = &mut self.content {
            if !mice.has_given(tag) && !mice.is_readable() {
                return Ok(None);
            }
            let bytes = mice.take(tag, limit);
            buffer[..bytes.len()].copy_from_slice(bytes);
            return Ok(Some(bytes.len()));
        }
        let evdev = self.evdev()?;
        let offset_ns = if evdev.clock == Clock::Real { real_less_now_ns } else { 0 };
        match limit / EVENT_BYTES {
            0 if limit > 0 => Err(Errno::EINVAL),
            _ if !evdev.queue.has_given(tag) && !evdev.queue.is_readable() => Ok(None),
            count => {
                let events = evdev.queue.take(tag, count.min(buffer.len() / EVENT_BYTES));
                for (record, event) in buffer.as_chunks_mut().0.iter_mut().zip(events) {
                    *record = record_of(event, offset_ns);
                }
                Ok(Some(events.len() * EVENT_BYTES))
            }
        }
    }
}

/// `struct input_event`.
fn record_of(event: &Event, offset_ns: u64) -> [u8; EVENT_BYTES] {
    let time_ns = event.time_ns.wrapping_add(offset_ns);
    let mut record = [0; EVENT_BYTES];
    record[..8].copy_from_slice(&(time_ns / NS_PER_S).to_le_bytes());
    record[8..16].copy_from_slice(&(time_ns % NS_PER_S / 1000).to_le_bytes());
    record[16..].copy_from_slice(&event.to_words()[1].to_le_bytes());
    record
}

/// The event of a `struct input_event` that a program writes.
pub fn event_of(record: &[u8; EVENT_BYTES], time_ns: u64) -> Event {
    let rest = record[16..].iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
    Event { time_ns, ..Event::from_words([0, rest]) }
}
