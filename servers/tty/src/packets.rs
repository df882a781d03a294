//! Packet mode of a master (ioctl_tty(2), TIOCPKT): each read begins with a byte that tells data from what has happened to the slave.

use crate::terminal::Terminal;
use crate::termios::{Termios, lflag};

/// The first byte of data.
pub const DATA: u8 = 0;

/// What packet mode reports (ioctl_tty(2), TIOCPKT).
pub mod status {
    #![allow(missing_docs)]
    pub const FLUSHREAD: u8 = 1;
    pub const FLUSHWRITE: u8 = 2;
    pub const STOP: u8 = 4;
    pub const START: u8 = 8;
    pub const NOSTOP: u8 = 16;
    pub const DOSTOP: u8 = 32;
    pub const IOCTL: u8 = 64;
}

/// The mode, and what has happened since the last read of it.
pub struct Packets {
    /// `None`: the mode is off.
    status: Option<u8>,
    /// What was last: settings, and whether the output is stopped.
    seen: (Termios, bool),
}

impl Packets {
    /// The mode of this slave's master, with what has happened to it; `None`: it is off.
    pub fn new(slave: &Terminal, status: Option<u8>) -> Packets {
        Packets { status, seen: (slave.termios, slave.output.is_stopped()) }
    }

    pub fn are_on(&self) -> bool {
        self.status.is_some()
    }

    /// What has happened (`status`); 0: nothing.
    pub fn status(&self) -> u8 {
        self.status.unwrap_or(0)
    }

    /// What has happened has been read.
    pub fn clear(&mut self) {
        self.status = self.status.map(|_| 0);
    }

    /// Switches the mode. Nothing from before is told.
    pub fn switch(&mut self, on: bool, slave: &mut Terminal) {
        if on != self.are_on() {
            self.status = Some(0);
            self.note(slave);
            self.status = on.then_some(0);
        }
    }

    /// Takes note of what has happened to the slave, while the mode is on. Returns whether anything has.
    pub fn note(&mut self, slave: &mut Terminal) -> bool {
        let Some(status) = &mut self.status else { return false };
        let flushed = (slave.discipline.take_flushed(), slave.output.take_flushed());
        let (new, is_stopped) = (slave.termios, slave.output.is_stopped());
        let (old, was_stopped) = core::mem::replace(&mut self.seen, (new, is_stopped));
        let flush = if flushed.0 { status::FLUSHREAD } else { 0 } | if flushed.1 { status::FLUSHWRITE } else { 0 };
        let mut happened = flush;
        if was_stopped != is_stopped {
            let (now, before) = if is_stopped { (status::STOP, status::START) } else { (status::START, status::STOP) };
            *status &= !before;
            happened |= now;
        }
        let extended = (old.local | new.local) & lflag::EXTPROC != 0 && old != new;
        if extended || old.has_usual_flow_control() != new.has_usual_flow_control() {
            let flow = if new.has_usual_flow_control() { status::DOSTOP } else { status::NOSTOP };
            *status &= !(status::DOSTOP | status::NOSTOP);
            happened |= flow | if extended { status::IOCTL } else { 0 };
        }
        *status |= happened;
        happened != 0
    }
}
