//! The device: what it says of itself, its events, and its lights (VIRTIO 1.2, 5.8).
//!
//! All buffers for events are with the device from the start and go back to it when they have been read. Generic over transport and memory.

use abi::Errno;
use abi::input::{Axis, Description, Event, KEY_MAP_BYTES, MAX_AXES, NAME_BYTES, kind};
use alloc::vec::Vec;
use driver::virtio::{Broken, Buffer, Chain, Dma, Memory, Queue, Setup, Transport};

/// Buffers for events, each of one: what a hand does before the driver runs.
const EVENTS: u16 = 64;
/// Bytes of an event: kind and code of 16 bits, value of 32.
const EVENT_BYTES: usize = 8;
/// Buffers for what the driver says.
const STATUSES: u16 = 8;
/// Memory for the queues and their buffers.
pub const MEMORY_BYTES: usize = 0x2000;
const EVENT_QUEUE: u16 = 0;
const STATUS_QUEUE: u16 = 1;

/// The configuration: what is asked for, how long the answer is, and the answer.
mod config {
    pub const SELECT: usize = 0;
    pub const SIZE: usize = 2;
    pub const DATA: usize = 8;
    pub const DATA_BYTES: usize = 128;
    pub const NAME: u8 = 1;
    pub const IDS: u8 = 3;
    pub const PROPERTIES: u8 = 0x10;
    pub const BITS: u8 = 0x11;
    pub const AXIS: u8 = 0x12;
}

const BTN_LEFT: u16 = 0x110;
const BTN_TOUCH: u16 = 0x14a;
const BTN_TOOL_PEN: u16 = 0x140;
/// INPUT_PROP_DIRECT: what is touched is what is shown.
const DIRECT: u32 = 1 << 1;
/// Bits of `kinds` for EV_REP, which Linux adds to what has keys that a device names so.
const REPEATS: u32 = 1 << kind::REP;

/// What the left button of an absolute pointer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pointer {
    /// A button.
    Button,
    /// A finger on the screen.
    Touch,
}

/// See the head of the file.
pub struct Device<T, M> {
    transport: T,
    events: Queue<M, ()>,
    statuses: Queue<M, ()>,
    idle: Vec<Buffer<M>>,
    description: Description,
    pointer: Pointer,
}

impl<T: Transport, M: Memory> Device<T, M> {
    /// Resets the device, asks it what it is, and gives it its buffers.
    ///
    /// # Errors
    /// `EIO`: the device does not work; `ENOMEM`.
    pub fn set_up(mut transport: T, memory: M, pointer: Pointer) -> Result<Self, Errno> {
        let mut description = describe(&mut transport)?;
        if pointer == Pointer::Touch && description.has_key(BTN_LEFT) {
            make_touch(&mut description);
        }
        let mut dma = Dma::new(memory);
        let mut setup = Setup::begin(transport, 0)?;
        let mut events: Queue<M, ()> = setup.queue(EVENT_QUEUE, EVENTS, &mut dma)?;
        let statuses: Queue<M, ()> = setup.queue(STATUS_QUEUE, STATUSES, &mut dma)?;
        for _ in 0..events.size() {
            let chain = Chain::new().writable(dma.take(EVENT_BYTES, EVENT_BYTES)?);
            events.offer(chain, ()).map_err(|_| Errno::EIO)?;
        }
        let mut idle = Vec::new();
        for _ in 0..statuses.size() {
            idle.push(dma.take(EVENT_BYTES, EVENT_BYTES)?);
        }
        let mut transport = setup.start();
        transport.notify(EVENT_QUEUE);
        Ok(Device { transport, events, statuses, idle, description, pointer })
    }

    /// What it is and can.
    pub fn description(&self) -> &Description {
        &self.description
    }

    /// Takes the next event, if there is one, with this time. Its buffer goes back to the device.
    ///
    /// # Errors
    /// The device breaks the rules of virtio.
    pub fn next(&mut self, time_ns: u64) -> Result<Option<Event>, Broken> {
        let Some(completed) = self.events.completed()? else { return Ok(None) };
        let mut bytes = [0; EVENT_BYTES];
        let Some([buffer]) = completed.chain.into_buffers() else { return Ok(None) };
        buffer.read(0, &mut bytes);
        if let Ok(true) = self.events.offer(Chain::new().writable(buffer), ()) {
            self.transport.notify(EVENT_QUEUE);
        }
        let mut event = event_of(bytes, time_ns);
        if self.pointer == Pointer::Touch && (event.kind, event.code) == (kind::KEY, BTN_LEFT) {
            event.code = BTN_TOUCH;
        }
        Ok(Some(event))
    }

    /// Tells the device its lights, bits by number of Linux.
    ///
    /// # Errors
    /// `EAGAIN`: it has not taken what it was told before; the device breaks the rules of virtio.
    pub fn set_lights(&mut self, lights: u64) -> Result<(), Errno> {
        while let Some(completed) = self.statuses.completed()? {
            self.idle.extend(completed.chain.into_buffers::<1>().into_iter().flatten());
        }
        let known = (0..32_u16).filter(|light| self.description.lights & 1 << light != 0);
        let changes = known.map(|light| (kind::LED, light, (lights >> light & 1) as u32));
        for (kind, code, value) in changes.chain([(kind::SYN, 0, 0)]) {
            let mut buffer = self.idle.pop().ok_or(Errno::EAGAIN)?;
            let mut bytes = [0; EVENT_BYTES];
            bytes[..2].copy_from_slice(&kind.to_le_bytes());
            bytes[2..4].copy_from_slice(&code.to_le_bytes());
            bytes[4..].copy_from_slice(&value.to_le_bytes());
            buffer.write(0, &bytes);
            self.statuses.offer(Chain::new().readable(buffer), ()).map_err(|_| Errno::EAGAIN)?;
        }
        self.transport.notify(STATUS_QUEUE);
        Ok(())
    }
}

fn event_of(bytes: [u8; EVENT_BYTES], time_ns: u64) -> Event {
    let [kind, kind_high, code, code_high, value @ ..] = bytes;
    Event {
        time_ns,
        kind: u16::from_le_bytes([kind, kind_high]),
        code: u16::from_le_bytes([code, code_high]),
        value: i32::from_le_bytes(value),
    }
}

/// A tablet becomes a touch screen.
fn make_touch(description: &mut Description) {
    let keys = &mut description.keys;
    for button in BTN_LEFT..BTN_TOOL_PEN {
        keys[usize::from(button / 8)] &= !(1 << (button % 8));
    }
    description.add_key(BTN_TOUCH);
    description.properties |= DIRECT;
    description.relative = 0;
    description.kinds &= !(1 << kind::REL);
}

/// Asks the device what it is.
fn describe(transport: &mut impl Transport) -> Result<Description, Errno> {
    let mut description = Description { place: place(), ..Description::NONE };
    let (name, bytes) = ask(transport, config::NAME, 0)?;
    let length = bytes.min(NAME_BYTES - 1);
    description.name[..length].copy_from_slice(&name[..length]);
    let (ids, _) = ask(transport, config::IDS, 0)?;
    for (index, id) in description.id.iter_mut().enumerate() {
        *id = u16::from_le_bytes([ids[2 * index], ids[2 * index + 1]]);
    }
    description.properties = map(transport, config::PROPERTIES, 0)? as u32;
    for of in [kind::KEY, kind::REL, kind::ABS, kind::MSC, kind::SW, kind::LED, kind::REP] {
        let (bits, bytes) = ask(transport, config::BITS, of as u8)?;
        if bytes == 0 {
            continue;
        }
        description.kinds |= 1 << of;
        let low = word(&bits);
        match of {
            kind::KEY => description.keys.copy_from_slice(&bits[..KEY_MAP_BYTES]),
            kind::REL => description.relative = low as u32,
            kind::ABS => description.absolute = low,
            kind::MSC => description.other = low as u32,
            kind::SW => description.switches = low as u32,
            kind::LED => description.lights = low as u32,
            _ => description.kinds |= REPEATS,
        }
    }
    let axes = (0..64_u8).filter(|axis| description.absolute & 1 << axis != 0);
    for (slot, axis) in description.axes.iter_mut().take(MAX_AXES).zip(axes) {
        let (limits, _) = ask(transport, config::AXIS, axis)?;
        let number = |index: usize| {
            let at = 4 * index;
            i32::from_le_bytes([limits[at], limits[at + 1], limits[at + 2], limits[at + 3]])
        };
        *slot = Axis { min: number(0), max: number(1), fuzz: number(2), flat: number(3), resolution: number(4) };
    }
    Ok(description)
}

fn place() -> [u8; abi::input::PLACE_BYTES] {
    Description::named("", "virtio0/input0").place
}

fn map(transport: &mut impl Transport, select: u8, of: u8) -> Result<u64, Errno> {
    ask(transport, select, of).map(|(bits, _)| word(&bits))
}

/// Reads one answer of the configuration, and its length. What the device does not have has length 0.
fn ask(transport: &mut impl Transport, select: u8, of: u8) -> Result<([u8; config::DATA_BYTES], usize), Errno> {
    transport.write_config(config::SELECT, &[select, of])?;
    let mut size = [0];
    transport.config(config::SIZE, &mut size)?;
    let bytes = usize::from(size[0]).min(config::DATA_BYTES);
    let mut answer = [0; config::DATA_BYTES];
    transport.config(config::DATA, &mut answer[..bytes])?;
    Ok((answer, bytes))
}

fn word(bits: &[u8]) -> u64 {
    bits[..8].iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte))
}

#[cfg(test)]
#[path = "device_tests.rs"]
mod tests;
