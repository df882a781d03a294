//! Requests of vfs about terminals (`chardev`): which one, opening and closing, and what a restarted vfs has open.

use crate::control::request::TIOCSCTTY;
use crate::devpts::node_of;
use crate::ledger::Outcome;
use crate::pty::Pty;
use crate::screen;
use crate::serial::{SERIAL_LINES, TERMINALS};
use crate::state::{Outside, Tty};
use crate::terminal::Caller;
use abi::console::{self, MINOR_SHOWN, MINOR_TERMINAL};
use abi::tty::{MAX_PTYS, MINOR_MASTER, MINOR_SLAVE, PTMX};
use abi::{Errno, GrantId, Message, chardev, fs::Use};
use alloc::rc::Rc;
use alloc::vec::Vec;
use sys::fallible;

/// Minor numbers (devices.txt of Linux): the controlling terminal, the console, the multiplexer, the first serial line.
const MINOR_CONTROLLING: u64 = 0;
const MINOR_CONSOLE: u64 = 1;
const MINOR_PTMX: u64 = PTMX.1 as u64;
const MINOR_SERIAL: u64 = 64;

/// ioctls whose number has this bit tell something, and change nothing (`_IOR` of Linux).
const TELLS: u64 = 1 << 31;

/// What a minor number means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    /// The terminal of a serial line, or behind those one on the screen.
    Line(usize),
    Master(usize),
    Slave(usize),
}

impl Side {
    fn of(minor: u64) -> Option<Side> {
        let beyond = |first: u64, count: usize| {
            minor.checked_sub(first).map(|number| number as usize).filter(|number| *number < count)
        };
        if minor == MINOR_CONSOLE {
            return Some(Side::Line(0));
        }
        let pty = beyond(MINOR_SLAVE, MAX_PTYS).map(Side::Slave).or(beyond(MINOR_MASTER, MAX_PTYS).map(Side::Master));
        let screen = || beyond(MINOR_TERMINAL, console::TERMINALS).map(|number| Side::Line(SERIAL_LINES + number));
        pty.or_else(screen).or_else(|| beyond(MINOR_SERIAL, SERIAL_LINES).map(Side::Line))
    }

    fn minor(self) -> u64 {
        let (first, number) = match self {
            Side::Line(index) if index >= SERIAL_LINES => (MINOR_TERMINAL, index - SERIAL_LINES),
            Side::Line(index) => (MINOR_SERIAL, index),
            Side::Master(number) => (MINOR_MASTER, number),
            Side::Slave(number) => (MINOR_SLAVE, number),
        };
        first + number as u64
    }
}

impl Tty {
    /// Carries out a request of vfs.
    pub fn device_request(self: &Rc<Self>, message: &Message, request: chardev::Request) {
        use chardev::Request;
        let known = self.outcome(message);
        let done = match known {
            Some(Outcome::Result(result) | Outcome::Opened(result)) => {
                return self.runtime.reply(message, &message.reply(result));
            }
            Some(Outcome::Progress(done)) => done as usize,
            None => 0,
        };
        // All but `Cancel` begin with the minor, and `SetUses` has none.
        let side = Side::of(if let Request::Cancel(cancel) = request { cancel.minor } else { message.words[0] });
        match (request, side) {
            (Request::Open(open), _) => {
                let result = self.open(open);
                self.note(message, Outcome::Opened(result));
                self.runtime.reply(message, &message.reply(result));
            }
            (Request::SetUses(uses), _) => {
                let result = self.set_uses(message, uses);
                self.runtime.reply(message, &message.reply(result.map(|()| 0)));
            }
            (Request::Close(_), side) => {
                side.into_iter().for_each(|side| self.close(side));
                self.answer(message, Ok(0));
            }
            (Request::Cancel(cancel), side) => side.into_iter().for_each(|side| self.cancel(message, side, cancel.tag)),
            (_, None) => self.answer(message, Err(Errno::ENXIO)),
            (Request::Control(control), Some(side)) if self.has_another(side, &control) => {
                self.answer(message, Err(Errno::EPERM));
            }
            (request, Some(Side::Line(index))) => self.line_request(message, request, index, done),
            (request, Some(Side::Master(number))) => {
                self.pty_request(message, number, |pty, world| pty.master_request(world, message, request, done));
            }
            (request, Some(Side::Slave(number))) => {
                self.pty_request(message, number, |pty, world| pty.slave_request(world, message, request, done));
            }
        }
    }

    fn pty_request(self: &Rc<Self>, message: &Message, number: usize, act: impl FnOnce(&mut Pty, &mut Outside)) {
        let found = match message.label {
            chardev::Read::LABEL | chardev::Write::LABEL => self.with_queues(number, act),
            chardev::Control::LABEL if chardev::Control::from_message(message).request & TELLS != 0 => {
                self.ask_pty(number, act)
            }
            _ => self.with_pty(number, act),
        };
        if found.is_none() {
            self.answer(message, Err(Errno::EIO));
        }
    }

    fn line_request(self: &Rc<Self>, message: &Message, request: chardev::Request, index: usize, done: usize) {
        use chardev::Request;
        self.lines()[index].terminal.borrow_mut().forget_stale(message);
        match &request {
            Request::Control(control) if screen::ioctl(self, message, control, index) => return,
            Request::Continue(further) => return screen::go_on(self, message, further, index),
            _ => {}
        }
        self.with(index, |terminal, world| match request {
            Request::Read(read) => terminal.read(world, message, read),
            Request::Write(write) => terminal.write(world, message, write, done),
            Request::Control(control) => terminal.control(world, message, control),
            Request::Poll(poll) => terminal.poll(world, message, poll),
            _ => self.answer(message, Err(Errno::ENOSYS)),
        });
    }

    /// Opens a terminal. The open file has the minor of the terminal that it is, whatever name it was opened by.
    fn open(self: &Rc<Self>, open: chardev::Open) -> Result<u64, Errno> {
        let caller = Caller { group: (open.caller >> 32) as u32, session: open.session as u32 };
        let side = match open.minor {
            MINOR_PTMX => {
                let (user, uid) = ((open.ids >> 32) as u32, open.ids as u32);
                let number = self.make_pty(user, uid)?;
                return Ok(Side::Master(number).minor() << chardev::OPENED_MINOR_SHIFT);
            }
            MINOR_SHOWN => Side::Line(self.shown()),
            MINOR_CONTROLLING => self.controlled_by(caller.session).ok_or(Errno::ENXIO)?,
            minor => Side::of(minor).ok_or(Errno::ENXIO)?,
        };
        let (pid, free) = (open.caller as u32, self.controlled_by(caller.session).is_none());
        let flags = match side {
            Side::Line(index) => {
                let mut flags = 0;
                self.with(index, |terminal, _| flags = terminal.open(open.flags, pid, caller, free));
                flags
            }
            Side::Slave(number) => {
                let by_node = open.minor != MINOR_CONTROLLING;
                let opened = self.with_pty(number, |pty, _| match by_node && node_of(pty) != open.node {
                    true => Err(Errno::EIO),
                    false => pty.open_slave(open.flags, pid, caller, free),
                });
                opened.unwrap_or(Err(Errno::EIO))?
            }
            Side::Master(_) => return Err(Errno::ENXIO),
        };
        Ok(flags | side.minor() << chardev::OPENED_MINOR_SHIFT)
    }

    /// The terminal that controls a session.
    fn controlled_by(&self, session: u32) -> Option<Side> {
        if session == 0 {
            return None;
        }
        let line = self.lines().iter().position(|line| line.terminal.borrow().session == session).map(Side::Line);
        let pty = || self.ptys().iter().find(|pty| pty.session() == session).map(|pty| Side::Slave(pty.number()));
        line.or_else(pty)
    }

    /// Whether a session that asks for this terminal (TIOCSCTTY) has another.
    fn has_another(&self, side: Side, control: &chardev::Control) -> bool {
        let wanted = if let Side::Master(number) = side { Side::Slave(number) } else { side };
        let asks = control.request == TIOCSCTTY;
        asks && self.controlled_by(control.session as u32).is_some_and(|controlling| controlling != wanted)
    }

    fn close(self: &Rc<Self>, side: Side) {
        match side {
            Side::Line(index) => self.with(index, |terminal, world| terminal.close(world)),
            Side::Master(number) => self.with_pty(number, |pty, world| pty.close_master(world)).unwrap_or_default(),
            Side::Slave(number) => self.with_pty(number, |pty, world| pty.close_slave(world)).unwrap_or_default(),
        }
    }

    fn cancel(self: &Rc<Self>, message: &Message, side: Side, tag: u64) {
        match side {
            Side::Line(index) => self.with(index, |terminal, world| terminal.cancel(world, message.source, tag)),
            Side::Master(number) | Side::Slave(number) => {
                self.with_pty(number, |pty, world| pty.cancel(world, message.source, tag)).unwrap_or_default();
            }
        }
    }

    /// vfs has restarted: what it has not open of pseudo-terminals is closed, and what waited for its predecessor is repeated.
    fn set_uses(self: &Rc<Self>, message: &Message, uses: chardev::SetUses) -> Result<(), Errno> {
        let mut open = fallible::filled((false, 0), self.ptys().end())?;
        let mut lines = [0_u32; TERMINALS];
        for Use { node: minor, count } in fetch_uses(message, uses.grant, uses.bytes)? {
            match Side::of(minor) {
                Some(Side::Master(number)) if number < open.len() => open[number].0 |= count > 0,
                Some(Side::Slave(number)) if number < open.len() => open[number].1 += count as u32,
                Some(Side::Line(index)) => lines[index] = lines[index].saturating_add(count as u32),
                _ => {}
            }
        }
        self.forget_opens();
        for (index, uses) in lines.into_iter().enumerate() {
            self.with(index, |terminal, world| terminal.set_uses(world, uses));
        }
        for (number, (master, slaves)) in open.into_iter().enumerate() {
            self.with_pty(number, |pty, world| pty.set_uses(world, message.source, master, slaves));
        }
        Ok(())
    }
}

/// Copies the records of `SetUses` in. `EINVAL`: there are too many.
fn fetch_uses(message: &Message, grant: GrantId, bytes: u64) -> Result<Vec<Use>, Errno> {
    const USE_BYTES: usize = size_of::<Use>();
    const MAX_USES: u64 = 1 << 17;
    if bytes > MAX_USES * USE_BYTES as u64 {
        return Err(Errno::EINVAL);
    }
    let mut buffer = fallible::filled(0, bytes as usize)?;
    sys::copy::from_grant(message.source, grant, 0, &mut buffer)?;
    let word = |bytes: &[u8]| bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
    fallible::collect(
        buffer.as_chunks::<USE_BYTES>().0.iter().map(|both| Use { node: word(&both[..8]), count: word(&both[8..]) }),
    )
}
