//! The ioctls of an evdev file (linux/input.h): what the device is and can, what is pressed, who has it for himself.

use crate::device::Device;
use crate::world::World;
use abi::input::{Axis, Description, kind};
use abi::{Errno, Message, chardev::Control};

/// The version of the interface.
const VERSION: u32 = 0x01_0001;

/// Numbers of ioctls of type 'E'.
mod number {
    pub const VERSION: u8 = 0x01;
    pub const ID: u8 = 0x02;
    pub const REPEAT: u8 = 0x03;
    pub const NAME: u8 = 0x06;
    pub const PLACE: u8 = 0x07;
    pub const UNIQUE: u8 = 0x08;
    pub const PROPERTIES: u8 = 0x09;
    pub const KEY: u8 = 0x18;
    pub const LED: u8 = 0x19;
    pub const SOUND: u8 = 0x1a;
    pub const SWITCH: u8 = 0x1b;
    pub const BITS: u8 = 0x20;
    pub const BITS_LAST: u8 = 0x3f;
    pub const AXIS: u8 = 0x40;
    pub const AXIS_LAST: u8 = 0x7f;
    pub const GRAB: u8 = 0x90;
    pub const REVOKE: u8 = 0x91;
    pub const CLOCK: u8 = 0xa0;
}

const TYPE: u64 = b'E' as u64;
const CLOCK_REALTIME: u32 = 0;
const CLOCK_MONOTONIC: u32 = 1;
const CLOCK_BOOTTIME: u32 = 7;
const EV_SOUND: u8 = 0x12;
const EV_FORCE: u8 = 0x15;

/// Which clock the events of a file have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    Real,
    /// Monotonic and boot time are the same: the machine does not sleep.
    Monotonic,
}

/// What an ioctl asks of the open file, besides what it tells of the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Only its result.
    Result(u64),
    /// The state of these events was told: those in the queue are older.
    Told(u16, u64),
    Grab,
    Release,
    Revoke,
    SetClock(Clock),
}

/// Direction of the data, as ioctl numbers have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    /// From the program, or none.
    In,
    /// To the program.
    Out,
}

/// Carries out an ioctl of the device that an open file is of.
///
/// # Errors
/// `EINVAL`: unknown, or not of evdev; `ENOENT`: the device has no such name; `EFAULT`.
pub fn carry_out(
    device: &mut Device,
    world: &mut impl World,
    message: &Message,
    control: &Control,
) -> Result<Effect, Errno> {
    let description = device.description.ok_or(Errno::ENODEV)?;
    let request = control.request;
    if request >> 8 & 0xff != TYPE {
        return Err(Errno::EINVAL);
    }
    let direction = if request >> 30 & 3 == 2 { Direction::Out } else { Direction::In };
    let (number, size) = (request as u8, (request >> 16 & 0x3fff) as usize);
    if direction == Direction::In {
        return change(device, world, message, control, number);
    }
    let mut give = |data: &[u8], what| give(world, message, control, data, size).map(|count| tell(what, count));
    let whole = |_: u64| Effect::Result(0);
    match number {
        number::VERSION => give(&VERSION.to_le_bytes(), None).map(|_| whole(0)),
        number::ID => give(description.id.map(u16::to_le_bytes).as_flattened(), None).map(|_| whole(0)),
        number::REPEAT if description.kinds & 1 << kind::REP != 0 => {
            give(device.repeat_ms.map(u32::to_le_bytes).as_flattened(), None).map(|_| whole(0))
        }
        number::REPEAT => Err(Errno::ENOSYS),
        number::NAME => give(text(&description.name).ok_or(Errno::ENOENT)?, None),
        number::PLACE => give(text(&description.place).ok_or(Errno::ENOENT)?, None),
        number::UNIQUE => Err(Errno::ENOENT),
        number::PROPERTIES => give(&map(description.properties), None),
        number::KEY => give(&device.keys, Some(kind::KEY)),
        number::LED => give(&map(device.lights), Some(kind::LED)),
        number::SOUND => give(&map(0), None),
        number::SWITCH => give(&map(device.switches), Some(kind::SW)),
        number::BITS..=number::BITS_LAST => {
            let (maps, bytes) = bits(&description, number - number::BITS)?;
            give(&maps[..bytes], None)
        }
        number::AXIS..=number::AXIS_LAST => {
            let index = description.axis((number - number::AXIS).into()).ok_or(Errno::EINVAL)?;
            give(&axis_bytes(device.values[index], &description.axes[index]), None).map(|_| whole(0))
        }
        _ => Err(Errno::EINVAL),
    }
}

fn change(
    device: &mut Device,
    world: &mut impl World,
    message: &Message,
    control: &Control,
    number: u8,
) -> Result<Effect, Errno> {
    match (number, control.argument) {
        (number::GRAB, 0) => Ok(Effect::Release),
        (number::GRAB, _) => Ok(Effect::Grab),
        (number::REVOKE, 0) => Ok(Effect::Revoke),
        (number::CLOCK, _) => match fetch_word(world, message, control, 0)? {
            CLOCK_REALTIME => Ok(Effect::SetClock(Clock::Real)),
            CLOCK_MONOTONIC | CLOCK_BOOTTIME => Ok(Effect::SetClock(Clock::Monotonic)),
            _ => Err(Errno::EINVAL),
        },
        (number::REPEAT, _) => {
            if device.description.is_none_or(|description| description.kinds & 1 << kind::REP == 0) {
                return Err(Errno::ENOSYS);
            }
            let repeat_ms = [fetch_word(world, message, control, 0)?, fetch_word(world, message, control, 4)?];
            device.repeat_ms = repeat_ms;
            Ok(Effect::Result(0))
        }
        _ => Err(Errno::EINVAL),
    }
}

/// The abilities of one kind, as a map, and its length in bytes.
fn bits(description: &Description, of: u8) -> Result<([u8; 96], usize), Errno> {
    let mut bytes = [0; 96];
    let length = match of.into() {
        kind::SYN => put(&mut bytes, u64::from(description.kinds)),
        kind::KEY => {
            bytes = description.keys;
            bytes.len()
        }
        kind::REL => put(&mut bytes, description.relative.into()),
        kind::ABS => put(&mut bytes, description.absolute),
        kind::MSC => put(&mut bytes, description.other.into()),
        kind::SW => put(&mut bytes, description.switches.into()),
        kind::LED => put(&mut bytes, description.lights.into()),
        _ if of == EV_SOUND => 8,
        _ if of == EV_FORCE => 16,
        _ => return Err(Errno::EINVAL),
    };
    Ok((bytes, length))
}

fn put(bytes: &mut [u8; 96], map: u64) -> usize {
    bytes[..8].copy_from_slice(&map.to_le_bytes());
    8
}

/// A map of at most 32 bits, as long as Linux's.
fn map(bits: u32) -> [u8; 8] {
    u64::from(bits).to_le_bytes()
}

/// `struct input_absinfo`.
fn axis_bytes(value: i32, axis: &Axis) -> [u8; 24] {
    let mut bytes = [0; 24];
    let fields = [value, axis.min, axis.max, axis.fuzz, axis.flat, axis.resolution];
    bytes.copy_from_slice(fields.map(i32::to_le_bytes).as_flattened());
    bytes
}

/// A text with its NUL; `None`: it is empty.
fn text(padded: &[u8]) -> Option<&[u8]> {
    let length = padded.iter().position(|byte| *byte == 0).unwrap_or(padded.len() - 1);
    (length > 0).then_some(&padded[..length + 1])
}

fn tell(what: Option<u16>, count: u64) -> Effect {
    what.map_or(Effect::Result(count), |what| Effect::Told(what, count))
}

/// Copies as much out as the program has room for. Returns how much.
fn give(world: &mut impl World, message: &Message, control: &Control, data: &[u8], size: usize) -> Result<u64, Errno> {
    let count = data.len().min(size);
    world.copy_out(message, control.grant, &data[..count])?;
    Ok(count as u64)
}

fn fetch_word(world: &mut impl World, message: &Message, control: &Control, offset: u64) -> Result<u32, Errno> {
    let mut bytes = [0; 4];
    world.copy_in(message, control.grant, offset, &mut bytes)?;
    Ok(u32::from_le_bytes(bytes))
}
