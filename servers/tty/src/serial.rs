//! Commands of a terminal to its serial line: settings, modem lines, breaks, and draining.
//!
//! They queue here until `line` has sent them to uart. They are not preserved: vfs repeats the requests they belong to, and a new tty
//! sets the line again.

use crate::termios::{Termios, cflag};
use abi::chardev::{Control, serial};
use abi::{Endpoint, Errno, GrantId};
use alloc::collections::VecDeque;
#[cfg(test)]
use alloc::vec::Vec;

/// Serial lines with a terminal: COM1 to COM3.
pub const SERIAL_LINES: usize = 3;
/// Terminals with a line: those of serial lines, and behind them those on the screen.
pub const TERMINALS: usize = SERIAL_LINES + abi::console::TERMINALS;

/// A command to uart, or to console for a terminal on the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// `SET_LINE`.
    Settings(u64),
    /// `SET_MODEM`.
    Modem(u64),
    /// `SET_BREAK`.
    Break(bool),
    /// `SEND_NOW`.
    SendNow(u8),
    /// `GET_MODEM`, for the request that waits for it.
    GetModem(Ticket),
    /// `DRAIN`, for the request that waits for it.
    Drain(Ticket),
    /// To console: the screen shows text, keys are characters, and no program decides whether another terminal is shown.
    TakeBack,
    /// A wait of so many nanoseconds.
    Pause(u64),
    /// A marker: all earlier commands are done. For the request that waits for it.
    Report(Ticket),
}

/// The waiting request that a command belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket {
    pub requester: Endpoint,
    pub tag: u64,
}

/// Commands of a program that may wait for uart; those that a request waits for are not refused: vfs limits these.
const WAITING: usize = 64;

/// The commands that uart has yet to carry out, in order.
#[derive(Debug, Default)]
pub struct Commands(VecDeque<Command>);

impl Commands {
    /// Adds a command, in place of an earlier one that it overrides.
    #[expect(clippy::disallowed_methods, reason = "bounded by `WAITING` and vfs's requests: from the heap's reserve")]
    pub fn add(&mut self, command: Command) {
        match command {
            Command::Settings(_) => self.0.retain(|other| !matches!(other, Command::Settings(_))),
            Command::Modem(_) => self.0.retain(|other| !matches!(other, Command::Modem(_))),
            _ => {}
        }
        self.0.push_back(command);
    }

    /// Adds a command that no request waits for.
    ///
    /// # Errors
    /// `EAGAIN`: too many wait for uart.
    pub fn try_add(&mut self, command: Command) -> Result<(), Errno> {
        if self.0.len() >= WAITING {
            return Err(Errno::EAGAIN);
        }
        self.add(command);
        Ok(())
    }

    /// Removes and returns the next command.
    pub fn next(&mut self) -> Option<Command> {
        self.0.pop_front()
    }

    /// Removes and returns all commands.
    #[cfg(test)]
    pub fn take(&mut self) -> Vec<Command> {
        self.0.drain(..).collect()
    }
}

impl Command {
    /// The message to uart, if there is one.
    pub fn message(self, minor: u64) -> Option<Control> {
        let (request, argument) = match self {
            Command::Settings(settings) => (serial::SET_LINE, settings),
            Command::Modem(lines) => (serial::SET_MODEM, lines),
            Command::Break(on) => (serial::SET_BREAK, on.into()),
            Command::SendNow(byte) => (serial::SEND_NOW, byte.into()),
            Command::GetModem(_) => (serial::GET_MODEM, 0),
            Command::Drain(_) => (serial::DRAIN, 0),
            Command::TakeBack => (abi::console::TAKE_BACK, 0),
            Command::Pause(_) | Command::Report(_) => return None,
        };
        Some(Control { minor, request, argument, grant: GrantId::NONE, caller: 0, session: 0 })
    }

    /// The request that waits for its end.
    pub fn ticket(self) -> Option<Ticket> {
        match self {
            Command::GetModem(ticket) | Command::Drain(ticket) | Command::Report(ticket) => Some(ticket),
            _ => None,
        }
    }
}

/// Speeds by their CBAUD code: codes below 4096, and those from 4097 on.
const SLOW: [u32; 16] = [0, 50, 75, 110, 134, 150, 200, 300, 600, 1200, 1800, 2400, 4800, 9600, 19_200, 38_400];
const FAST: [u32; 2] = [57_600, 115_200];

/// The speed of the settings in bit/s; `None`: not supported by the serial lines.
fn rate(termios: &Termios) -> Option<u32> {
    let number = (termios.control & cflag::CBAUD) as usize;
    SLOW.get(number).or_else(|| FAST.get(number.wrapping_sub(0o10001))).copied()
}

/// The settings of the line that correspond to those of the terminal.
pub fn line_settings(termios: &Termios) -> u64 {
    let flag = |flag: u32, bit: u64| if termios.control & flag != 0 { bit } else { 0 };
    u64::from(rate(termios).unwrap_or_default())
        | u64::from((termios.control & cflag::CSIZE) >> 4) << serial::LINE_LENGTH_SHIFT
        | flag(cflag::CSTOPB, serial::LINE_TWO_STOP)
        | flag(cflag::PARENB, serial::LINE_PARITY)
        | flag(cflag::PARODD, serial::LINE_ODD)
        | flag(cflag::CMSPAR, serial::LINE_STICK)
        | flag(cflag::CRTSCTS, serial::LINE_RTS_CTS)
}

/// `new`, but with the speed of `old` where its own is not supported (as on Linux, TCGETS shows).
pub fn with_possible_rate(old: &Termios, new: Termios) -> Termios {
    match rate(&new) {
        Some(_) => new,
        None => Termios { control: new.control & !cflag::CBAUD | old.control & cflag::CBAUD, ..new },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn termios(control: u32) -> Termios {
        Termios { control, ..Termios::initial() }
    }

    #[test]
    fn terminal_settings_become_line_settings() {
        assert_eq!(line_settings(&Termios::initial()), serial::LINE_INITIAL);
        let control = 0o17 | 0o40 | cflag::PARENB | cflag::PARODD | cflag::CRTSCTS | cflag::CSTOPB;
        let expected = 38_400
            | 2 << serial::LINE_LENGTH_SHIFT
            | serial::LINE_TWO_STOP
            | serial::LINE_PARITY
            | serial::LINE_ODD
            | serial::LINE_RTS_CTS;
        assert_eq!(line_settings(&termios(control)), expected);
        assert_eq!(line_settings(&termios(0o7)) & serial::LINE_RATE, 300);
        assert_eq!(line_settings(&termios(0o10001)) & serial::LINE_RATE, 57_600);
    }

    #[test]
    fn commands_that_nobody_waits_for_are_limited() {
        let mut commands = Commands::default();
        for speed in 1..1000 {
            commands.add(Command::Settings(speed));
            commands.add(Command::Modem(speed));
        }
        let breaks = (0..1000).take_while(|_| commands.try_add(Command::Break(true)).is_ok()).count();
        assert_eq!(breaks, WAITING - 2);
        assert_eq!(commands.try_add(Command::SendNow(17)), Err(Errno::EAGAIN));
        assert_eq!(commands.take()[..3], [Command::Settings(999), Command::Modem(999), Command::Break(true)]);
    }

    #[test]
    fn an_impossible_speed_changes_nothing() {
        let old = termios(0o16 | cflag::CS8);
        assert_eq!(with_possible_rate(&old, termios(0o10017 | 0o40)).control, 0o16 | 0o40);
        assert_eq!(with_possible_rate(&old, termios(0o15 | 0o40)).control, 0o15 | 0o40);
    }
}
