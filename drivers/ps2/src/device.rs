//! Keyboard and mouse behind the controller: bytes by interrupt into events, and the keyboard's lights.
//!
//! A driver that follows one that died resets nothing: what has arrived is decoded where the predecessor stopped. Only a first start asks
//! the devices who they are; the answers are preserved.

use crate::controller::{ACKNOWLEDGE, Controller, Device, RESEND, Registers};
use crate::keyboard::{self, Prefix};
use crate::mouse::{self, GAP_NS, KNOCKS, Partial};
use crate::packet::Packet;
use abi::Errno;
use driver::chardev::Answers;
use driver::input::Source;

/// Bytes that one interrupt moves: a defective controller must not keep the driver busy for ever.
const BYTES_LIMIT: usize = 256;
/// Free places that a key needs.
const KEY_ROOM: usize = 8;
/// Time for the keyboard to acknowledge a byte.
pub const LIGHTS_NS: u64 = 200_000_000;
/// Attempts to set the lights.
const LIGHTS_TRIES: u8 = 3;

const IDENTIFY: u8 = 0xf2;
const SET_LIGHTS: u8 = 0xed;
const ENABLE: u8 = 0xf4;
const DEFAULTS: u8 = 0xf6;
const SET_RATE: u8 = 0xf3;
const SET_RESOLUTION: u8 = 0xe8;
/// Reports in a second, and counts in a millimetre as a power of two.
const RATE: u8 = 100;
const RESOLUTION: u8 = 3;

/// The note of a source: the device is present; its id; its lights.
const PRESENT: u64 = 1 << 63;
const ID_SHIFT: u32 = 8;
/// The controller has two devices.
pub const DEVICES: usize = 2;

/// How far the keyboard has been told its lights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lights {
    Set,
    /// The command was sent: the keyboard acknowledges it by `deadline_ns`.
    Commanded {
        deadline_ns: u64,
        tries: u8,
    },
    /// The lights were sent.
    Sent {
        deadline_ns: u64,
        tries: u8,
    },
}

/// See the head of the file.
pub struct Devices<R> {
    controller: Controller<R>,
    sources: [Source; DEVICES],
    lights: Lights,
    /// When the last byte of the mouse came.
    mouse_ns: u64,
}

impl<R: Registers> Devices<R> {
    /// Takes the controller over from a predecessor, or initialises it and asks the devices.
    ///
    /// # Errors
    /// `ENXIO`: there is no controller, or nothing is connected; `ETIMEDOUT`.
    pub fn set_up(controller: Controller<R>, sources: [Source; DEVICES]) -> Result<Self, Errno> {
        let mut devices = Devices { controller, sources, lights: Lights::Set, mouse_ns: 0 };
        let is_known = devices.sources.iter().any(|source| source.note() & PRESENT != 0);
        let mut bytes = [(Device::Keyboard, 0); 64];
        let mut count = 0;
        devices.controller.stop(|device, byte| {
            if let Some(slot) = bytes.get_mut(count) {
                *slot = (device, byte);
                count += 1;
            }
        })?;
        if is_known {
            bytes[..count].iter().for_each(|(device, byte)| devices.take_in(*device, *byte));
        } else {
            devices.identify()?;
        }
        devices.controller.start()?;
        // One that died may have stopped in the middle of the lights.
        if devices.sources[0].note() & PRESENT != 0 {
            devices.send_lights(0);
        }
        Ok(devices)
    }

    /// What a device is.
    ///
    /// # Errors
    /// `ENXIO`: it is not connected.
    pub fn describe(&self, minor: u64) -> Result<abi::input::Description, Errno> {
        let note = self.source(minor)?.note();
        if note & PRESENT == 0 {
            return Err(Errno::ENXIO);
        }
        let id = (note >> ID_SHIFT) as u16;
        Ok(if minor == 0 { keyboard::describe(id) } else { mouse::describe(id as u8) })
    }

    /// The events of a device.
    ///
    /// # Errors
    /// `ENXIO`.
    pub fn source(&self, minor: u64) -> Result<&Source, Errno> {
        self.sources.get(minor as usize).ok_or(Errno::ENXIO)
    }

    /// The events of a connected device, to be read.
    ///
    /// # Errors
    /// `ENXIO`.
    pub fn source_mut(&mut self, minor: u64) -> Result<&mut Source, Errno> {
        self.sources.get_mut(minor as usize).filter(|source| source.note() & PRESENT != 0).ok_or(Errno::ENXIO)
    }

    /// All events.
    pub fn sources_mut(&mut self) -> impl Iterator<Item = &mut Source> {
        self.sources.iter_mut()
    }

    /// Moves what has arrived into the rings, as far as they have room, and answers reads.
    pub fn receive(&mut self, answers: &mut Answers) {
        if let Err(error) = self.move_bytes() {
            sys::log!("keyboard controller not read: {error}");
        }
        self.sources.iter_mut().for_each(|source| source.serve(answers));
    }

    /// Sets the keyboard's lights, bits by number of Linux.
    ///
    /// # Errors
    /// `ENXIO`: the device has none.
    pub fn set_lights(&mut self, minor: u64, lights: u64) -> Result<(), Errno> {
        if minor != 0 {
            return Err(Errno::ENXIO);
        }
        let note = self.source_mut(0)?.note();
        self.sources[0].set_note(note & !0xff | lights & 7);
        self.send_lights(0);
        Ok(())
    }

    /// When the keyboard will have failed to acknowledge.
    pub fn deadline_ns(&self) -> Option<u64> {
        match self.lights {
            Lights::Set => None,
            Lights::Commanded { deadline_ns, .. } | Lights::Sent { deadline_ns, .. } => Some(deadline_ns),
        }
    }

    /// Repeats the command to a keyboard that is late, or gives it up.
    pub fn time_out(&mut self) {
        let now_ns = self.controller.now_ns();
        if let Lights::Commanded { deadline_ns, tries } | Lights::Sent { deadline_ns, tries } = self.lights
            && deadline_ns <= now_ns
        {
            self.send_lights(tries + 1);
        }
    }

    fn move_bytes(&mut self) -> Result<(), Errno> {
        for _ in 0..BYTES_LIMIT {
            let Some(device) = self.controller.next_is_from()? else { return Ok(()) };
            if device == Device::Keyboard && self.sources[0].room() < KEY_ROOM {
                // The rest waits in the controller until input has read.
                return Ok(());
            }
            let Some((device, byte)) = self.controller.take()? else { return Ok(()) };
            self.take_in(device, byte);
        }
        Ok(())
    }

    fn take_in(&mut self, device: Device, byte: u8) {
        let now_ns = self.controller.now_ns();
        let mut packet = Packet::new(now_ns);
        let source = &mut self.sources[device as usize];
        let state = match device {
            Device::Keyboard if byte == ACKNOWLEDGE || byte == RESEND => return self.acknowledged(byte),
            Device::Keyboard => Prefix::from_state(source.state()).take(byte, &mut packet).to_state(),
            Device::Mouse => {
                let late = now_ns.saturating_sub(core::mem::replace(&mut self.mouse_ns, now_ns)) > GAP_NS;
                let partial = Partial(if late { 0 } else { source.state() });
                let id = (source.note() >> ID_SHIFT) as u8;
                let (partial, complete) = partial.take(id, byte);
                complete.into_iter().for_each(|bytes| mouse::decode(id, bytes, &mut packet));
                partial.0
            }
        };
        source.push(packet.events(), state);
    }

    fn acknowledged(&mut self, byte: u8) {
        let deadline_ns = self.controller.now_ns() + LIGHTS_NS;
        self.lights = match (self.lights, byte) {
            (Lights::Set, _) => Lights::Set,
            (Lights::Commanded { tries, .. } | Lights::Sent { tries, .. }, RESEND) => {
                return self.send_lights(tries + 1);
            }
            (Lights::Commanded { tries, .. }, _) => {
                let lights = (self.sources[0].note() & 7) as u8;
                // Linux's order is num, caps, scroll; the keyboard's scroll, num, caps.
                let lights = (lights & 1) << 1 | (lights & 2) << 1 | lights >> 2;
                match self.controller.send(Device::Keyboard, lights) {
                    Ok(()) => Lights::Sent { deadline_ns, tries },
                    Err(_) => Lights::Commanded { deadline_ns, tries },
                }
            }
            (Lights::Sent { .. }, _) => Lights::Set,
        };
    }

    fn send_lights(&mut self, tries: u8) {
        if tries >= LIGHTS_TRIES {
            sys::log!("the keyboard does not take its lights");
            self.lights = Lights::Set;
            return;
        }
        let deadline_ns = self.controller.now_ns() + LIGHTS_NS;
        self.lights = Lights::Commanded { deadline_ns, tries };
        // A byte that is not accepted is not acknowledged either: the time-out repeats it.
        let _ = self.controller.send(Device::Keyboard, SET_LIGHTS);
    }

    fn identify(&mut self) -> Result<(), Errno> {
        let keyboard = self.identify_keyboard();
        let mouse = self.identify_mouse();
        for (source, id) in self.sources.iter_mut().zip([keyboard, mouse]) {
            if let Ok(id) = id {
                source.set_note(PRESENT | u64::from(id) << ID_SHIFT);
            }
        }
        keyboard.or(mouse).map(drop).map_err(|_| Errno::ENXIO)
    }

    fn identify_keyboard(&mut self) -> Result<u16, Errno> {
        self.controller.select(Device::Keyboard)?;
        let mut id = [0; 2];
        self.controller.ask(Device::Keyboard, &[IDENTIFY], &mut id)?;
        self.controller.ask(Device::Keyboard, &[SET_LIGHTS], &mut [])?;
        self.controller.ask(Device::Keyboard, &[0], &mut [])?;
        self.controller.ask(Device::Keyboard, &[ENABLE], &mut [])?;
        Ok(u16::from_be_bytes(id))
    }

    fn identify_mouse(&mut self) -> Result<u16, Errno> {
        let controller = &mut self.controller;
        controller.select(Device::Mouse)?;
        controller.ask(Device::Mouse, &[DEFAULTS], &mut [])?;
        for knock in KNOCKS {
            for rate in knock {
                controller.ask(Device::Mouse, &[SET_RATE, rate], &mut [])?;
            }
        }
        let mut id = [0];
        controller.ask(Device::Mouse, &[IDENTIFY], &mut id)?;
        controller.ask(Device::Mouse, &[SET_RATE, RATE], &mut [])?;
        controller.ask(Device::Mouse, &[SET_RESOLUTION, RESOLUTION], &mut [])?;
        controller.ask(Device::Mouse, &[ENABLE], &mut [])?;
        Ok(id[0].into())
    }
}

#[cfg(test)]
#[path = "device_tests.rs"]
mod tests;
