//! What programs ask of a terminal by ioctl(2): graphics mode, keyboard, which terminal is shown (ioctl_console(2)).
//!
//! Each says what is to be, not what is to change, so one that is repeated does no harm. Which of them a program may use tty has decided.

use crate::keymap::Symbol;
use crate::state::State;
use crate::vt::{Keys, Shows};
use crate::world::World;
use abi::console::{MAX_ARGUMENT_BYTES, TERMINALS, argument, ioctl};
use abi::{Errno, Message, chardev::Control};

/// What a screen of text and one of pictures is called (`KDSETMODE`).
const TEXT: u64 = 0;
const GRAPHICS: u64 = 1;
/// `KDGKBTYPE`: a keyboard with 101 keys.
const KEYBOARD_101: u8 = 2;
/// `KDGKBMETA`: Alt sends an escape before the key.
const ESCAPE_PREFIX: u32 = 4;
/// `KDSETLED`: the lights show the locks.
const LIGHTS_SHOW_LOCKS: u64 = 8;
/// `KDGKBENT`: the key has no symbol.
const NO_SYMBOL: u16 = 0x200;

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
        let (reads, writes) = argument(control.request).ok_or(Errno::ENOTTY)?;
        let mut bytes = [0; MAX_ARGUMENT_BYTES];
        if reads > 0 {
            world.copy_in(message, control.grant, 0, &mut bytes[..reads])?;
        }
        let value = control.argument;
        match control.request {
            ioctl::VT_ACTIVATE => self.show(number(value)?),
            ioctl::VT_OPENQRY | ioctl::VT_GETSTATE => self.tell(control.request, &mut bytes),
            ioctl::VT_DISALLOCATE | ioctl::VT_LOCKSWITCH | ioctl::VT_UNLOCKSWITCH => {}
            ioctl::KDSETMODE => self.set_mode(index, value)?,
            ioctl::KDGETMODE => put(&mut bytes, self.vt(index).shows() as u32),
            ioctl::KDGKBMODE => put(&mut bytes, mode_of(self.vt(index).keys())),
            ioctl::KDSKBMODE => self.vt_mut(index).set_keys(keys_of(value)?),
            ioctl::KDGKBTYPE => bytes[0] = KEYBOARD_101,
            ioctl::KDGKBENT | ioctl::KDSKBENT => self.key_entry(control.request, &mut bytes)?,
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

    /// `VT_OPENQRY`: a terminal that no program has open; `VT_GETSTATE`: the one that is shown, and which there are.
    fn tell(&self, request: u64, bytes: &mut [u8; MAX_ARGUMENT_BYTES]) {
        if request == ioctl::VT_OPENQRY {
            return put(bytes, TERMINALS as u32);
        }
        let there = (1_u16 << (TERMINALS + 1)) - 1;
        bytes[..2].copy_from_slice(&(self.shown() as u16 + 1).to_le_bytes());
        bytes[4..6].copy_from_slice(&there.to_le_bytes());
    }

    /// `KDGKBENT`, `KDSKBENT`: table, key, symbol.
    fn key_entry(&mut self, request: u64, bytes: &mut [u8; MAX_ARGUMENT_BYTES]) -> Result<(), Errno> {
        let (table, key) = (usize::from(bytes[0]), usize::from(bytes[1]));
        if request == ioctl::KDGKBENT {
            let symbol = self.keyboard.keymap.symbol(table, key).map_or(NO_SYMBOL, |symbol| symbol.0);
            bytes[2..4].copy_from_slice(&symbol.to_le_bytes());
            return Ok(());
        }
        let symbol = Symbol(u16::from_le_bytes([bytes[2], bytes[3]]));
        self.keyboard_changed = true;
        self.keyboard.keymap.set(table, key, symbol)
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
