//! The ioctls of a terminal (ioctl_tty(2)): settings, window size, job control, flow and queues.

use crate::serial::{Command, Ticket};
use crate::terminal::{Caller, Lower, Terminal, World, signal};
use crate::termios::{TERMIOS_BYTES, Termios, cc};
use crate::waiting::{AfterLine, AfterOutput, Need, Waiting};
use abi::chardev::serial::{MODEM_DTR, MODEM_LOOP, MODEM_RTS};
use abi::{Errno, Message, chardev};

pub(crate) mod request {
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
    pub const TIOCSTI: u64 = 0x5412;
    pub const TIOCGWINSZ: u64 = 0x5413;
    pub const TIOCSWINSZ: u64 = 0x5414;
    pub const TIOCMGET: u64 = 0x5415;
    pub const TIOCMBIS: u64 = 0x5416;
    pub const TIOCMBIC: u64 = 0x5417;
    pub const TIOCMSET: u64 = 0x5418;
    pub const FIONREAD: u64 = 0x541b;
    pub const TIOCNOTTY: u64 = 0x5422;
    pub const TCSBRKP: u64 = 0x5425;
    pub const TIOCSBRK: u64 = 0x5427;
    pub const TIOCCBRK: u64 = 0x5428;
    pub const TIOCGSID: u64 = 0x5429;
}

/// Arguments of TCFLSH.
const FLUSH_INPUT: u64 = 0;
const FLUSH_OUTPUT: u64 = 1;
const FLUSH_BOTH: u64 = 2;
/// Arguments of TCXONC.
const STOP_OUTPUT: u64 = 0;
const START_OUTPUT: u64 = 1;
const SEND_STOP: u64 = 2;
const SEND_START: u64 = 3;
/// Duration of a break when none is given, and the unit of those that are given.
const BREAK_NS: u64 = 250_000_000;
const BREAK_UNIT_NS: u64 = 100_000_000;
/// Longest break, in units.
const MAX_BREAK_UNITS: u64 = 100;

impl Terminal {
    /// Carries out an ioctl and replies, at once or when output has drained, unless a process in the background may not.
    pub fn control(&mut self, world: &mut impl World, message: &Message, control: chardev::Control) {
        let caller = Caller { group: (control.caller >> 32) as u32, session: control.session as u32 };
        if is_for_the_foreground(control.request) && self.in_background(caller) {
            return self.wait_for_verdict(world, message, control.caller as u32, 0);
        }
        self.control_allowed(world, message, control);
    }

    /// [`Terminal::control`], whoever the caller is.
    pub(crate) fn control_allowed(&mut self, world: &mut impl World, message: &Message, control: chardev::Control) {
        match self.need_of(world, message, &control) {
            Ok(Some(need)) => self.wait(world, message, need),
            Ok(None) => {
                let result = self.control_now(world, message, &control);
                world.answer(message, result);
            }
            Err(error) => return world.answer(message, Err(error)),
        }
        if control.request == request::TCSETSF {
            self.discipline.flush();
        }
        self.settle(world);
    }

    /// What this process wants to do in the background is allowed, or fails with `EIO`; for `TIOCSPGRP` with `ENOTTY`, as on Linux.
    pub fn judged(&mut self, world: &mut impl World, pid: u32, is_allowed: bool) {
        let is_its = |waiting: &Waiting| matches!(waiting.need, Need::Verdict { pid: other, .. } if other == pid);
        while let Some(at) = self.waiting.iter().position(is_its) {
            let waiting = self.waiting.remove(at);
            if is_allowed {
                self.carry_out(world, waiting);
                continue;
            }
            let error = match chardev::Request::decode(&waiting.request) {
                Some(chardev::Request::Control(control)) if control.request == request::TIOCSPGRP => Errno::ENOTTY,
                _ => Errno::EIO,
            };
            world.answer(&waiting.request, Err(error));
        }
    }

    /// Carries out what has waited in the background.
    fn carry_out(&mut self, world: &mut impl World, Waiting { request: message, need }: Waiting) {
        let done = if let Need::Verdict { done, .. } = need { done } else { 0 };
        match chardev::Request::decode(&message) {
            Some(chardev::Request::Read(read)) => self.read(world, &message, read),
            Some(chardev::Request::Write(write)) => self.write_allowed(world, &message, write, done),
            Some(chardev::Request::Control(control)) => self.control_allowed(world, &message, control),
            _ => world.answer(&message, Err(Errno::EIO)),
        }
    }

    /// The event that an ioctl has to wait for.
    fn need_of(
        &mut self,
        world: &mut impl World,
        message: &Message,
        control: &chardev::Control,
    ) -> Result<Option<Need>, Errno> {
        if self.lower == Lower::Master {
            // All output has arrived.
            return Ok(None);
        }
        let after_output = |after| Ok(Some(Need::Output(after)));
        match (control.request, control.argument) {
            (request::TCSETSW | request::TCSETSF, _) => {
                after_output(AfterOutput::Drain(Some(self.get_settings(world, message, control)?)))
            }
            (request::TCSBRK | request::TCSBRKP, 0) => after_output(AfterOutput::Break(BREAK_NS)),
            (request::TCSBRK, _) => after_output(AfterOutput::Drain(None)),
            (request::TCSBRKP, units) => after_output(AfterOutput::Break(units.min(MAX_BREAK_UNITS) * BREAK_UNIT_NS)),
            (request::TIOCMGET, _) => {
                self.commands.add(Command::GetModem(Ticket { requester: message.source, tag: message.tag() }));
                Ok(Some(Need::Line(AfterLine::Modem(control.grant))))
            }
            _ => Ok(None),
        }
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
            request::TIOCOUTQ if self.lower == Lower::Master => give(&[0; 4]),
            request::TCSETSW | request::TCSETSF => self.set_settings(world, message, control),
            request::TCSBRK | request::TCSBRKP | request::TIOCSBRK | request::TIOCCBRK
                if self.lower == Lower::Master =>
            {
                Ok(0)
            }
            request::TIOCMSET | request::TIOCMBIS | request::TIOCMBIC if self.lower == Lower::Master => {
                Err(Errno::ENOTTY)
            }
            request::TIOCSTI => self.simulate_input(world, message, control, caller),
            request::TCGETS => give(&self.termios.to_bytes()),
            request::TIOCGWINSZ => give(&window_bytes(self.window)),
            request::TIOCOUTQ => give(&(self.output.len() as u32).to_le_bytes()),
            request::FIONREAD => give(&(self.discipline.available(&self.termios) as u32).to_le_bytes()),
            request::TIOCGPGRP => {
                self.require_controlling(caller)?;
                give(&self.group.to_le_bytes())
            }
            request::TIOCGSID => {
                self.require_controlling(caller)?;
                give(&self.session.to_le_bytes())
            }
            request::TCSETS => self.set_settings(world, message, control),
            request::TIOCSWINSZ => self.set_window(world, message, control),
            request::TIOCMSET | request::TIOCMBIS | request::TIOCMBIC => self.set_modem(world, message, control),
            request::TIOCSBRK | request::TIOCCBRK => {
                self.commands.try_add(Command::Break(control.request == request::TIOCSBRK))?;
                Ok(0)
            }
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

    fn set_settings(
        &mut self,
        world: &mut impl World,
        message: &Message,
        control: &chardev::Control,
    ) -> Result<u64, Errno> {
        let settings = self.get_settings(world, message, control)?;
        self.set_termios(settings);
        Ok(0)
    }

    /// TIOCSTI: a byte as if it had been typed. `EPERM`: the terminal controls another session.
    fn simulate_input(
        &mut self,
        world: &mut impl World,
        message: &Message,
        control: &chardev::Control,
        caller: Caller,
    ) -> Result<u64, Errno> {
        self.require_controlling(caller).map_err(|_| Errno::EPERM)?;
        let mut byte = [0];
        world.copy_in(message, control.grant, 0, &mut byte)?;
        self.discipline.reserve(1)?;
        self.take_in(world, &byte);
        Ok(0)
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

    /// Takes the size of the screen, and which terminal that shows.
    pub fn set_screen(&mut self, world: &mut impl World, rows: u16, columns: u16, shown: u64) {
        let window = [rows, columns, 0, 0];
        if window[..2] != self.window[..2] && self.group != 0 {
            world.signal(signal::SIGWINCH, self.group);
        }
        (self.window, self.shown) = (window, shown);
        self.settle(world);
    }

    fn set_modem(
        &mut self,
        world: &mut impl World,
        message: &Message,
        control: &chardev::Control,
    ) -> Result<u64, Errno> {
        let mut bytes = [0; 4];
        world.copy_in(message, control.grant, 0, &mut bytes)?;
        let lines = u64::from(u32::from_le_bytes(bytes)) & (MODEM_DTR | MODEM_RTS | MODEM_LOOP);
        self.modem = match control.request {
            request::TIOCMBIS => self.modem | lines,
            request::TIOCMBIC => self.modem & !lines,
            _ => lines,
        };
        self.commands.add(Command::Modem(self.modem));
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
        if group as u32 != self.group {
            self.leave_foreground();
        }
        self.group = group as u32;
        self.resume_foreground(world);
        Ok(0)
    }

    /// Carries out what processes wait to do in the background whose group is in the foreground now. Mostly SIGCONT makes their calls come again; but one that came
    /// again after a death of vfs, while its process was stopped, has asked for a signal that SIGCONT takes away.
    fn resume_foreground(&mut self, world: &mut impl World) {
        while let Some(at) = self.waiting.iter().position(|waiting| self.is_in_foreground(waiting)) {
            let waiting = self.waiting.remove(at);
            self.carry_out(world, waiting);
        }
    }

    /// Whether a request waits for the foreground and has it.
    fn is_in_foreground(&self, waiting: &Waiting) -> bool {
        let waits = matches!(waiting.need, Need::Foreground | Need::Verdict { .. });
        let group = waits.then(|| match chardev::Request::decode(&waiting.request) {
            Some(chardev::Request::Read(read)) => Caller::from_word(read.caller).group,
            Some(chardev::Request::Write(write)) => Caller::from_word(write.caller).group,
            Some(chardev::Request::Control(control)) => (control.caller >> 32) as u32,
            _ => 0,
        });
        group == Some(self.group)
    }

    fn take_terminal(&mut self, pid: u32, caller: Caller) -> Result<u64, Errno> {
        if self.session == caller.session && caller.session != 0 {
            return Ok(0);
        }
        if pid != caller.session || self.session != 0 {
            return Err(Errno::EPERM);
        }
        self.attach(caller);
        Ok(0)
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
            SEND_STOP | SEND_START if self.lower == Lower::Master => {
                let key = if argument == SEND_STOP { cc::VSTOP } else { cc::VSTART };
                self.output.send_now(self.termios.characters[key])?;
            }
            SEND_STOP => self.commands.try_add(Command::SendNow(self.termios.characters[cc::VSTOP]))?,
            SEND_START => self.commands.try_add(Command::SendNow(self.termios.characters[cc::VSTART]))?,
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

/// Whether an ioctl changes the terminal, so that a process in the background is stopped. The window's size and the modem lines do not count.
fn is_for_the_foreground(number: u64) -> bool {
    matches!(
        number,
        request::TCSETS
            | request::TCSETSW
            | request::TCSETSF
            | request::TCSBRK
            | request::TCSBRKP
            | request::TIOCSBRK
            | request::TIOCCBRK
            | request::TCXONC
            | request::TCFLSH
            | request::TIOCSPGRP
    )
}

fn window_bytes(window: [u16; 4]) -> [u8; 8] {
    let mut bytes = [0; 8];
    for (pair, value) in bytes.chunks_exact_mut(2).zip(window) {
        pair.copy_from_slice(&value.to_le_bytes());
    }
    bytes
}
