//! What programs ask of a terminal by ioctl(2): graphics mode, keyboard, which terminal is shown (ioctl_console(2)).
//!
//! Each says what is to be, not what is to change, so one that is repeated does no harm. Which of them a program may use tty has decided.

use crate::key_tables;
use crate::loaded;
use crate::state::State;
use crate::switch::Switch;
use crate::vt::{Keys, Shows};
use crate::world::World;
use abi::chardev::MAX_FURTHER_BYTES;
use abi::console::{MAX_ARGUMENT_BYTES, MAX_FONT_ARGUMENT, TERMINALS, argument, font_argument, ioctl, long_argument};
use abi::{Errno, Message, chardev::Control};
use sys::fallible;

/// What a screen of text and one of pictures is called (`KDSETMODE`).
const TEXT: u64 = 0;
const GRAPHICS: u64 = 1;
/// `KDGKBTYPE`: a keyboard with 101 keys.
const KEYBOARD_101: u8 = 2;
/// `KDGKBMETA`: Alt sends an escape before the key.
const ESCAPE_PREFIX: u32 = 4;
/// `KDSETLED`: the lights show the locks.
const LIGHTS_SHOW_LOCKS: u64 = 8;
/// What clears a terminal as if it were new.
const RESET: &[u8] = b"\x1bc";
/// `TIOCLINUX`: which modifiers are held.
const MODIFIERS: u8 = 6;

impl State {
    /// Carries out an ioctl of the terminal `index`.
    ///
    /// # Errors
    /// `ENOTTY`: it is none of consoles; `EFAULT`; else as ioctl_console(2) says.
    pub fn ioctl(
        &mut self,
        world: &mut impl World,
        message: &Message,
        control: &Control,
        index: usize,
    ) -> Result<u64, Errno> {
        if font_argument(control.request).is_some() {
            return self.font_of_program(world, message, control).map(|()| 0);
        }
        let Some((reads, writes)) = argument(control.request) else {
            return self.key_tables(world, message, control).map(|()| 0);
        };
        let mut bytes = [0; MAX_ARGUMENT_BYTES];
        if reads > 0 {
            world.copy_in(message, control.grant, 0, &mut bytes[..reads])?;
        }
        let value = control.argument;
        match control.request {
            ioctl::VT_ACTIVATE => self.show(number(value)?),
            // tty adds which terminals are open.
            ioctl::VT_GETSTATE => bytes[..2].copy_from_slice(&(self.shown() as u16 + 1).to_le_bytes()),
            ioctl::VT_GETMODE => bytes[..8].copy_from_slice(&self.vt(index).switch().mode()),
            ioctl::VT_SETMODE => {
                let mode = *bytes.first_chunk().expect("an argument has room for it");
                self.vt_mut(index).set_switch(Switch::set_by(control.caller as u32, mode)?);
            }
            ioctl::VT_RELDISP => self.released(index, value)?,
            // tty has found out that it is neither shown nor open, or there is none in particular.
            ioctl::VT_DISALLOCATE if value == 0 => {}
            ioctl::VT_DISALLOCATE => self.vt_mut(number(value)?).insert(RESET),
            ioctl::VT_LOCKSWITCH | ioctl::VT_UNLOCKSWITCH => {
                self.is_locked = control.request == ioctl::VT_LOCKSWITCH;
                self.keyboard_changed = true;
            }
            ioctl::KDSETMODE => self.set_mode(index, value)?,
            ioctl::KDGETMODE => put(&mut bytes, self.vt(index).shows() as u32),
            ioctl::KDGKBMODE => put(&mut bytes, mode_of(self.vt(index).keys())),
            ioctl::KDSKBMODE => self.vt_mut(index).set_keys(keys_of(value)?),
            ioctl::KDGKBTYPE => bytes[0] = KEYBOARD_101,
            ioctl::KDGKBENT | ioctl::KDSKBENT => {
                let entry = bytes.first_chunk_mut().expect("an argument has room for it");
                self.keymap_changed |= key_tables::entry(&mut self.keyboard, control.request, entry)?;
            }
            ioctl::TIOCLINUX => bytes[0] = self.linux(bytes[0])?,
            ioctl::KDGKBMETA => put(&mut bytes, ESCAPE_PREFIX),
            ioctl::KDSKBMETA if value == u64::from(ESCAPE_PREFIX) => {}
            ioctl::KDGETLED | ioctl::KDGKBLED => bytes[0] = self.keyboard.lights(),
            ioctl::KDSETLED if value >= LIGHTS_SHOW_LOCKS => world.set_lights(self.keyboard.lights()),
            ioctl::KDSETLED => world.set_lights(value as u8),
            ioctl::KDSKBLED if value < LIGHTS_SHOW_LOCKS => {
                self.keyboard.set_lights(value as u8);
                world.set_lights(value as u8);
                self.keyboard_changed = true;
            }
            _ => return Err(Errno::EINVAL),
        }
        if writes > 0 {
            world.copy_out(message, control.grant, &bytes[..writes])?;
        }
        Ok(0)
    }
    fn set_mode(&mut self, index: usize, mode: u64) -> Result<(), Errno> {
        let shows = match mode {
            TEXT => Shows::Text,
            GRAPHICS => Shows::Graphics,
            _ => return Err(Errno::EINVAL),
        };
        self.vt_mut(index).set_shows(shows);
        if index == self.shown() && shows == Shows::Text {
            self.draw_all();
        }
        Ok(())
    }

    /// Reads or changes the font.
    fn font_of_program(&mut self, world: &mut impl World, message: &Message, control: &Control) -> Result<(), Errno> {
        let memory = usize::try_from(control.argument).map_err(|_| Errno::EINVAL)?;
        if memory > MAX_FURTHER_BYTES as usize {
            return Err(Errno::EINVAL);
        }
        let mut bytes = fallible::filled(0, MAX_FONT_ARGUMENT + memory)?;
        world.copy_in(message, control.grant, 0, &mut bytes)?;
        let result = loaded::carry_out(&mut self.font, world.usual_font(), control.request, &mut bytes);
        if result == Ok(true) {
            (self.has_other_font, self.font_changed) = (true, true);
        }
        world.copy_out(message, control.grant, &bytes)?;
        result.map(|_| ())
    }

    /// Reads or changes the tables of the keyboard.
    fn key_tables(&mut self, world: &mut impl World, message: &Message, control: &Control) -> Result<(), Errno> {
        let (bytes, writes) = long_argument(control.request).ok_or(Errno::ENOTTY)?;
        let mut bytes = fallible::filled(0, bytes)?;
        world.copy_in(message, control.grant, 0, &mut bytes)?;
        self.keymap_changed |= key_tables::carry_out(&mut self.keyboard, control.request, &mut bytes)?;
        if writes { world.copy_out(message, control.grant, &bytes) } else { Ok(()) }
    }

    /// `TIOCLINUX`: Linux's mixture of things, of which this is the one that programs ask for.
    fn linux(&self, byte: u8) -> Result<u8, Errno> {
        if byte == MODIFIERS { Ok(self.keyboard.table() as u8) } else { Err(Errno::EINVAL) }
    }
}

/// The index of the terminal with this number. `ENXIO`: there is none.
fn number(value: u64) -> Result<usize, Errno> {
    let index = value.checked_sub(1).ok_or(Errno::ENXIO)? as usize;
    if index < TERMINALS { Ok(index) } else { Err(Errno::ENXIO) }
}

fn put(bytes: &mut [u8; MAX_ARGUMENT_BYTES], value: u32) {
    bytes[..4].copy_from_slice(&value.to_le_bytes());
}

/// Linux's numbers of what keys become: codes as they are, characters, nothing.
fn mode_of(keys: Keys) -> u32 {
    match keys {
        Keys::Codes => 2,
        Keys::Text => 3,
        Keys::Nothing => 4,
    }
}

/// `EINVAL`: there is no such mode, or it is that of scan codes, which no keyboard here sends.
fn keys_of(mode: u64) -> Result<Keys, Errno> {
    match mode {
        1 | 3 => Ok(Keys::Text),
        2 => Ok(Keys::Codes),
        4 => Ok(Keys::Nothing),
        _ => Err(Errno::EINVAL),
    }
}
