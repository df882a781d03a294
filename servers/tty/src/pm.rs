//! Requests of pm: signals, ends of sessions, the machine's end.

use crate::line;
use crate::serial::{SERIAL_LINES, TERMINALS};
use crate::state::Tty;
use abi::{Endpoint, Errno, Message, tty};
use alloc::rc::Rc;

impl Tty {
    /// Carries out a request of pm; the reply is sent now or later. `EPERM`: for others.
    pub fn pm_request(self: &Rc<Self>, message: &Message, request: tty::Request) {
        if message.source.slot() != Endpoint::PM.slot() {
            return self.answer(message, Err(Errno::EPERM));
        }
        match request {
            tty::Request::NextEvent(ask) => {
                let reply = match self.next_signal(ask.done) {
                    Some((number, signal)) => {
                        tty::NextEvent::reply(message, 0, number, signal.number.into(), signal.target.word())
                    }
                    None => message.reply(Err(Errno::ENOENT)),
                };
                self.runtime.reply(message, &reply);
            }
            tty::Request::SessionEnd(end) => {
                self.session_end(end.session as u32);
                self.answer(message, Ok(0));
            }
            tty::Request::Drain(_) => line::drain(self, message),
            tty::Request::Background(tty::Background { process, allowed }) => {
                self.judged(process as u32, allowed);
                self.answer(message, Ok(0));
            }
            tty::Request::ProcessGone(gone) => {
                for index in SERIAL_LINES..TERMINALS {
                    self.with(index, |terminal, _| terminal.process_gone(gone.process as u32));
                }
                self.answer(message, Ok(0));
            }
        }
    }

    /// pm has decided about a process in the background, whichever its terminal is.
    fn judged(self: &Rc<Self>, pid: u32, is_allowed: bool) {
        for index in 0..TERMINALS {
            self.with(index, |terminal, world| terminal.judged(world, pid, is_allowed));
        }
        let end = self.ptys().end();
        for number in 0..end {
            if self.ptys().get(number).is_some_and(|pty| pty.is_judging(pid)) {
                self.with_pty(number, |pty, world| pty.judged(world, pid, is_allowed));
            }
        }
    }

    /// The leader of a session has ended: its terminal is free.
    fn session_end(self: &Rc<Self>, session: u32) {
        for index in 0..TERMINALS {
            self.with(index, |terminal, world| terminal.session_end(world, session));
        }
        let end = self.ptys().end();
        for number in 0..end {
            if session != 0 && self.ptys().get(number).is_some_and(|pty| pty.session() == session) {
                self.with_pty(number, |pty, world| pty.session_end(world, session));
            }
        }
    }
}
