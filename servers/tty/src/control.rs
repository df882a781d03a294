//! The ioctls of a terminal (ioctl_tty(2)): settings, window size, job control, flow and queues.

use crate::terminal::{Caller, Need, Terminal, Waiting, World, signal};
use crate::termios::{TERMIOS_BYTES, Termios};
use abi::{Errno, Message, chardev};

mod request {
    pub const TCGETS: u64 = 0x5401;
    pub const TCSETS: u64 = 0x5402;
    pub const TCSETSW: u64 = 0x5403;
    pub const TCSETSF: u64 = 0x5404;
    pub const TCSBRK: u64 = 0x5409;
    pub const TCXONC: u64 = 0x540a;
    pub const TCFLSH: u64 = 0x540b;
    pub const TIOCSCTTY: u64 = 0x540e;
    pub const TIOCGPGRP: u64 = 0x540f;
    pub const TIOCSPGRP: u64 = 0x5410;
    pub const TIOCOUTQ: u64 = 0x5411;
    pub const TIOCGWINSZ: u64 = 0x5413;
    pub const TIOCSWINSZ: u64 = 0x5414;
    pub const FIONREAD: u64 = 0x541b;
    pub const TIOCNOTTY: u64 = 0x5422;
    pub const TCSBRKP: u64 = 0x5425;
    pub const TIOCGSID: u64 = 0x5429;
}

/// Arguments of TCFLSH.
const FLUSH_INPUT: u64 = 0;
const FLUSH_OUTPUT: u64 = 1;
const FLUSH_BOTH: u64 = 2;
/// Arguments of TCXONC.
const STOP_OUTPUT: u64 = 0;
const START_OUTPUT: u64 = 1;

impl Terminal {
    /// Carries out an ioctl and answers it, at once or when output has drained.
    pub fn control(&mut self, world: &mut impl World, message: &Message, control: chardev::Control) {
        let waits = match control.request {
            request::TCSETSW | request::TCSETSF => match self.get_settings(world, message, &control) {
                Ok(settings) => Some(Some(settings)),
                Err(error) => return world.answer(message, Err(error)),
            },
            request::TCSBRK | request::TCSBRKP => Some(None),
            _ => None,
        };
        if control.request == request::TCSETSF {
            self.discipline.flush();
        }
        match waits {
            Some(settings) => self.waiting.push(Waiting { request: *message, need: Need::Drained(settings) }),
            None => {
                let result = self.control_now(world, message, &control);
                world.answer(message, result);
            }
        }
        self.settle(world);
    }

    fn control_now(
        &mut self,
        world: &mut impl World,
        message: &Message,
        control: &chardev::Control,
    ) -> Result<u64, Errno> {
        let pid = control.caller as u32;
        let caller = Caller { group: (control.caller >> 32) as u32, session: control.session as u32 };
        let mut give = |data: &[u8]| world.copy_out(message, control.grant, data).map(|()| 0);
        match control.request {
            request::TCGETS => give(&self.termios.to_bytes()),
            request::TIOCGWINSZ => give(&window_bytes(self.window)),
            request::TIOCOUTQ => give(&((self.output.len() + self.in_flight) as u32).to_le_bytes()),
            request::FIONREAD => give(&(self.discipline.available(&self.termios) as u32).to_le_bytes()),
            request::TIOCGPGRP => {
                self.require_controlling(caller)?;
                give(&self.group.to_le_bytes())
            }
            request::TIOCGSID => {
                self.require_controlling(caller)?;
                give(&self.session.to_le_bytes())
            }
            request::TCSETS => self.get_settings(world, message, control).map(|settings| {
                self.set_termios(settings);
                0
            }),
            request::TIOCSWINSZ => self.set_window(world, message, control),
            request::TIOCSPGRP => self.set_group(world, message, control, caller),
            request::TIOCSCTTY => self.take_terminal(pid, caller),
            request::TIOCNOTTY => self.give_terminal_up(world, pid, caller),
            request::TCXONC => self.set_flow(control.argument),
            request::TCFLSH => self.flush_queues(control.argument),
            _ => Err(Errno::ENOTTY),
        }
    }

    fn get_settings(
        &self,
        world: &mut impl World,
        message: &Message,
        control: &chardev::Control,
    ) -> Result<Termios, Errno> {
        let mut bytes = [0; TERMIOS_BYTES];
        world.copy_in(message, control.grant, 0, &mut bytes)?;
        Ok(Termios::from_bytes(&bytes))
    }

    fn set_window(
        &mut self,
        world: &mut impl World,
        message: &Message,
        control: &chardev::Control,
    ) -> Result<u64, Errno> {
        let mut bytes = [0; 8];
        world.copy_in(message, control.grant, 0, &mut bytes)?;
        let window = core::array::from_fn(|i| u16::from_le_bytes([bytes[2 * i], bytes[2 * i + 1]]));
        if window != self.window && self.group != 0 {
            world.signal(signal::SIGWINCH, self.group);
        }
        self.window = window;
        Ok(0)
    }

    fn set_group(
        &mut self,
        world: &mut impl World,
        message: &Message,
        control: &chardev::Control,
        caller: Caller,
    ) -> Result<u64, Errno> {
        self.require_controlling(caller)?;
        let mut bytes = [0; 4];
        world.copy_in(message, control.grant, 0, &mut bytes)?;
        let group = i32::from_le_bytes(bytes);
        if group <= 0 {
            return Err(Errno::EINVAL);
        }
        self.group = group as u32;
        Ok(0)
    }

    fn take_terminal(&mut self, pid: u32, caller: Caller) -> Result<u64, Errno> {
        if self.session == caller.session && caller.session != 0 {
            return Ok(chardev::OPENED_CONTROLLING);
        }
        if pid != caller.session || self.session != 0 {
            return Err(Errno::EPERM);
        }
        self.attach(caller);
        Ok(chardev::OPENED_CONTROLLING)
    }

    fn give_terminal_up(&mut self, world: &mut impl World, pid: u32, caller: Caller) -> Result<u64, Errno> {
        self.require_controlling(caller)?;
        if pid == caller.session {
            self.session_end(world, caller.session);
        }
        Ok(0)
    }

    fn set_flow(&mut self, argument: u64) -> Result<u64, Errno> {
        match argument {
            STOP_OUTPUT => self.output.set_stopped(true),
            START_OUTPUT => self.output.set_stopped(false),
            _ => return Err(Errno::EINVAL),
        }
        Ok(0)
    }

    fn flush_queues(&mut self, argument: u64) -> Result<u64, Errno> {
        if argument > FLUSH_BOTH {
            return Err(Errno::EINVAL);
        }
        if argument != FLUSH_OUTPUT {
            self.discipline.flush();
        }
        if argument != FLUSH_INPUT {
            self.output.flush();
        }
        Ok(0)
    }

    fn require_controlling(&self, caller: Caller) -> Result<(), Errno> {
        let controlling = self.session != 0 && self.session == caller.session;
        if controlling { Ok(()) } else { Err(Errno::ENOTTY) }
    }
}

fn window_bytes(window: [u16; 4]) -> [u8; 8] {
    let mut bytes = [0; 8];
    for (pair, value) in bytes.chunks_exact_mut(2).zip(window) {
        pair.copy_from_slice(&value.to_le_bytes());
    }
    bytes
}
