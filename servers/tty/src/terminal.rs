//! One terminal: its settings, its two directions, who has it as controlling terminal, and the requests that wait for it.
//!
//! A request is answered when it can be: at once, when input comes, when output has drained, or when vfs cancels it.
//! Invariant: after each public method no request waits that could be answered (`settle`).
//! Neighbours: `discipline` and `output` do the bytes, `control` the ioctls, `main` brings messages and uart's answers.

use crate::discipline::{Discipline, KeySignal};
use crate::once::Once;
use crate::output::Output;
use crate::termios::{Termios, cc, lflag};
use abi::{Errno, GrantId, Message, chardev};
use alloc::vec::Vec;

/// poll(2) bits.
pub const POLLIN: u64 = 1;
/// Writing would not wait.
pub const POLLOUT: u64 = 4;

/// Signal numbers of signal(7) that terminals send.
pub mod signal {
    #![allow(missing_docs)]
    pub const SIGHUP: u32 = 1;
    pub const SIGINT: u32 = 2;
    pub const SIGQUIT: u32 = 3;
    pub const SIGCONT: u32 = 18;
    pub const SIGTSTP: u32 = 20;
    pub const SIGTTIN: u32 = 21;
    pub const SIGTTOU: u32 = 22;
    pub const SIGWINCH: u32 = 28;
}

/// What a terminal needs of the world: the callers' memory, their answers, signals, time.
pub trait World {
    /// Copies into the buffer that the request's grant names.
    fn copy_out(&mut self, request: &Message, grant: GrantId, data: &[u8]) -> Result<(), Errno>;
    /// Copies from it, beginning at `offset`.
    fn copy_in(&mut self, request: &Message, grant: GrantId, offset: u64, buffer: &mut [u8]) -> Result<(), Errno>;
    /// Answers a request.
    fn answer(&mut self, request: &Message, result: Result<u64, Errno>);
    /// Asks pm for a signal to a process group.
    fn signal(&mut self, signal: u32, group: u32);
    /// Monotonic time.
    fn now_ns(&self) -> u64;
}

/// Who makes a request: process group and session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caller {
    pub group: u32,
    pub session: u32,
}

impl Caller {
    /// As packed in the word `caller` of `chardev`.
    pub fn from_word(word: u64) -> Caller {
        Caller { group: word as u32, session: (word >> 32) as u32 }
    }
}

/// A request that waits.
pub(crate) struct Waiting {
    pub(crate) request: Message,
    pub(crate) need: Need,
}

/// What a waiting request waits for.
pub(crate) enum Need {
    /// Input. `deadline_ns`: when VTIME lets it end.
    Input { grant: GrantId, bytes: usize, deadline_ns: Option<u64> },
    /// Room for the rest of a write.
    Room { grant: GrantId, bytes: usize, done: usize },
    /// Any of these poll events.
    Events(u64),
    /// All output gone, then these settings (TCSETSW) or nothing (TCSBRK).
    Drained(Option<Termios>),
    /// The process to be in the foreground: only a signal ends this.
    Foreground,
}

/// One terminal.
pub struct Terminal {
    pub(crate) termios: Termios,
    pub(crate) discipline: Discipline,
    pub(crate) output: Output,
    /// Rows, columns, and the same in pixels (`struct winsize`).
    pub(crate) window: [u16; 4],
    /// Session that has it as controlling terminal; 0: none.
    pub(crate) session: u32,
    /// Foreground process group.
    pub(crate) group: u32,
    pub(crate) waiting: Vec<Waiting>,
    /// Bytes that uart has taken and not yet acknowledged.
    pub(crate) in_flight: usize,
    /// Transfers that a successor of vfs may ask for again.
    once: Once,
}

impl Terminal {
    /// A terminal nobody uses yet.
    pub fn new() -> Self {
        Terminal {
            termios: Termios::initial(),
            discipline: Discipline::default(),
            output: Output::default(),
            window: [24, 80, 0, 0],
            session: 0,
            group: 0,
            waiting: Vec::new(),
            in_flight: 0,
            once: Once::default(),
        }
    }

    /// Opens it. A session leader without a terminal gets it as controlling terminal. → flags of `chardev::OPENED_*`.
    pub fn open(&mut self, flags: u64, pid: u32, caller: Caller) -> u64 {
        const O_NOCTTY: u64 = 0o400;
        let takes = self.session == 0 && pid != 0 && pid == caller.session && flags & O_NOCTTY == 0;
        if takes {
            self.attach(caller);
        }
        if takes || self.session == caller.session && pid == caller.session { chardev::OPENED_CONTROLLING } else { 0 }
    }

    /// Makes it the controlling terminal of the caller's session.
    pub(crate) fn attach(&mut self, caller: Caller) {
        self.session = caller.session;
        self.group = caller.group;
    }

    /// The session of its controlling process is over.
    pub fn session_end(&mut self, world: &mut impl World, session: u32) {
        if self.session != session || session == 0 {
            return;
        }
        world.signal(signal::SIGHUP, self.group);
        world.signal(signal::SIGCONT, self.group);
        self.session = 0;
        self.group = 0;
    }

    /// A read.
    pub fn read(&mut self, world: &mut impl World, request: &Message, read: chardev::Read) {
        if self.is_done(world, request) {
            return;
        }
        if self.in_background(Caller::from_word(read.caller)) {
            return self.wait_for_foreground(world, request, signal::SIGTTIN, read.caller);
        }
        let bytes = read.bytes as usize;
        if read.flags & chardev::NONBLOCK != 0 && self.discipline.readable(&self.termios, bytes).is_none() {
            return world.answer(request, Err(Errno::EAGAIN));
        }
        let deadline_ns = self.read_deadline(world.now_ns());
        let need = Need::Input { grant: read.grant, bytes, deadline_ns };
        self.waiting.push(Waiting { request: *request, need });
        self.settle(world);
    }

    /// A write.
    pub fn write(&mut self, world: &mut impl World, request: &Message, write: chardev::Write) {
        if self.is_done(world, request) {
            return;
        }
        if self.termios.has_local(lflag::TOSTOP) && self.in_background(Caller::from_word(write.caller)) {
            return self.wait_for_foreground(world, request, signal::SIGTTOU, write.caller);
        }
        let bytes = write.bytes as usize;
        let mut done = self.once.resume(request.tag()).min(bytes);
        match self.accept(world, request, write.grant, bytes, &mut done) {
            Err(Errno::EDEADSRCDST) => self.once.suspend(request.tag(), done),
            Err(error) if done == 0 => world.answer(request, Err(error)),
            Ok(()) if done == 0 && bytes > 0 && write.flags & chardev::NONBLOCK != 0 => {
                world.answer(request, Err(Errno::EAGAIN));
            }
            Ok(()) if done < bytes && write.flags & chardev::NONBLOCK == 0 => {
                let need = Need::Room { grant: write.grant, bytes, done };
                self.waiting.push(Waiting { request: *request, need });
            }
            Ok(()) | Err(_) => self.moved(world, request, Ok(done as u64)),
        }
    }

    /// The end of a transfer.
    fn moved(&mut self, world: &mut impl World, request: &Message, result: Result<u64, Errno>) {
        if let Ok(bytes) = result {
            self.once.finish(request.tag(), bytes);
        }
        world.answer(request, result);
    }

    /// A transfer begins. What dead askers in the same slot have left waiting is dropped: who still wants it asks again. True: this transfer
    /// has happened already, and is answered.
    fn is_done(&mut self, world: &mut impl World, request: &Message) -> bool {
        let once = &mut self.once;
        self.waiting.retain(|old| {
            let source = old.request.source;
            let is_stale = source != request.source && source.slot() == request.source.slot();
            if let (true, Need::Room { done, .. }) = (is_stale, &old.need) {
                once.suspend(old.request.tag(), *done);
            }
            !is_stale
        });
        let result = self.once.result(request.tag());
        result.into_iter().for_each(|bytes| world.answer(request, Ok(bytes)));
        result.is_some()
    }

    /// A poll.
    pub fn poll(&mut self, world: &mut impl World, request: &Message, poll: chardev::Poll) {
        let events = self.events() & poll.events;
        if poll.now || events != 0 {
            return world.answer(request, Ok(events));
        }
        self.waiting.push(Waiting { request: *request, need: Need::Events(poll.events) });
    }

    /// Ends the request with this tag of this caller.
    pub fn cancel(&mut self, world: &mut impl World, source: abi::Endpoint, tag: u64) {
        let found = self.waiting.iter().position(|w| w.request.source == source && w.request.tag() == tag);
        let Some(index) = found else { return };
        let waiting = self.waiting.remove(index);
        let result = match waiting.need {
            Need::Room { done, .. } if done > 0 => Ok(done as u64),
            _ => Err(Errno::EINTR),
        };
        world.answer(&waiting.request, result);
    }

    /// Bytes from the device.
    pub fn input(&mut self, world: &mut impl World, bytes: &[u8]) {
        for &byte in bytes {
            let signal = match self.discipline.receive(&self.termios, &mut self.output, byte) {
                None => continue,
                Some(KeySignal::Interrupt) => signal::SIGINT,
                Some(KeySignal::Quit) => signal::SIGQUIT,
                Some(KeySignal::Suspend) => signal::SIGTSTP,
            };
            if self.group != 0 {
                world.signal(signal, self.group);
            }
        }
        self.restart_interbyte_timers(world.now_ns());
        self.settle(world);
    }

    /// Takes bytes for the device; they count as in flight until `output_done`.
    pub fn take_output(&mut self, buffer: &mut [u8]) -> usize {
        let count = self.output.take(buffer);
        self.in_flight += count;
        count
    }

    /// The device has accepted all that was taken.
    pub fn output_done(&mut self, world: &mut impl World) {
        self.in_flight = 0;
        self.settle(world);
    }

    /// When the next VTIME runs out.
    pub fn deadline_ns(&self) -> Option<u64> {
        self.waiting
            .iter()
            .filter_map(|w| match w.need {
                Need::Input { deadline_ns, .. } => deadline_ns,
                _ => None,
            })
            .min()
    }

    /// What poll reports now.
    pub(crate) fn events(&self) -> u64 {
        let input = if self.discipline.has_input(&self.termios) { POLLIN } else { 0 };
        let output = if self.output.room() > 0 { POLLOUT } else { 0 };
        input | output
    }

    /// Answers every waiting request that can be answered, oldest first.
    pub fn settle(&mut self, world: &mut impl World) {
        let mut index = 0;
        while index < self.waiting.len() {
            let mut waiting = self.waiting.remove(index);
            match self.attempt(world, &mut waiting) {
                Some(result) if matches!(waiting.need, Need::Input { .. } | Need::Room { .. }) => {
                    self.moved(world, &waiting.request, result);
                }
                Some(result) => world.answer(&waiting.request, result),
                None => {
                    self.waiting.insert(index, waiting);
                    index += 1;
                }
            }
        }
    }

    /// True for a process of this terminal's session that is not in the foreground group.
    fn in_background(&self, caller: Caller) -> bool {
        self.session != 0 && caller.session == self.session && caller.group != self.group
    }

    fn wait_for_foreground(&mut self, world: &mut impl World, request: &Message, signal: u32, caller: u64) {
        self.waiting.push(Waiting { request: *request, need: Need::Foreground });
        world.signal(signal, Caller::from_word(caller).group);
    }

    /// The result of a waiting request, or `None` when it has to go on waiting.
    fn attempt(&mut self, world: &mut impl World, waiting: &mut Waiting) -> Option<Result<u64, Errno>> {
        match &mut waiting.need {
            Need::Input { grant, bytes, deadline_ns } => {
                let late = deadline_ns.is_some_and(|deadline| deadline <= world.now_ns());
                let count = self.discipline.readable(&self.termios, *bytes);
                match count {
                    None if late => {}
                    // VMIN 0 with VTIME: the first byte or the time ends it.
                    Some(0) if deadline_ns.is_some() && !late => return None,
                    None => return None,
                    Some(_) => {}
                }
                let data = self.discipline.peek(&self.termios, *bytes);
                let copied = world.copy_out(&waiting.request, *grant, &data);
                if copied == Err(Errno::EDEADSRCDST) {
                    // The successor asks again.
                    return None;
                }
                self.discipline.take(&self.termios, data.len());
                Some(copied.map(|()| data.len() as u64))
            }
            Need::Room { grant, bytes, done } => match self.accept(world, &waiting.request, *grant, *bytes, done) {
                Err(Errno::EDEADSRCDST) => None,
                Err(error) => Some(if *done > 0 { Ok(*done as u64) } else { Err(error) }),
                Ok(()) => (*done == *bytes).then_some(Ok(*bytes as u64)),
            },
            Need::Events(events) => {
                let now = self.events() & *events;
                (now != 0).then_some(Ok(now))
            }
            Need::Drained(settings) => {
                if self.output.len() > 0 || self.in_flight > 0 {
                    return None;
                }
                if let Some(settings) = *settings {
                    self.set_termios(settings);
                }
                Some(Ok(0))
            }
            Need::Foreground => None,
        }
    }

    /// Takes in what there is room for of a write of `bytes`, of which `done` are in already, and adds to them.
    fn accept(
        &mut self,
        world: &mut impl World,
        request: &Message,
        grant: GrantId,
        bytes: usize,
        done: &mut usize,
    ) -> Result<(), Errno> {
        let mut chunk = [0; 1024];
        while *done < bytes && self.output.room() > 0 {
            let count = chunk.len().min(bytes - *done).min(self.output.room());
            world.copy_in(request, grant, *done as u64, &mut chunk[..count])?;
            for &byte in &chunk[..count] {
                self.output.write(&self.termios, byte);
            }
            *done += count;
        }
        Ok(())
    }

    /// Changes the settings.
    pub(crate) fn set_termios(&mut self, new: Termios) {
        self.discipline.mode_changed(&self.termios, &new);
        self.termios = new;
    }

    /// When VTIME ends a read that starts now (termios(3), noncanonical mode): only VMIN 0 counts from the start.
    fn read_deadline(&self, now_ns: u64) -> Option<u64> {
        let counts = !self.termios.has_local(lflag::ICANON) && self.termios.characters[cc::VMIN] == 0;
        if counts { self.interbyte_deadline(now_ns) } else { None }
    }

    fn interbyte_deadline(&self, now_ns: u64) -> Option<u64> {
        const TENTH_NS: u64 = 100_000_000;
        let tenths = u64::from(self.termios.characters[cc::VTIME]);
        (tenths > 0 && !self.termios.has_local(lflag::ICANON)).then(|| now_ns + tenths * TENTH_NS)
    }

    /// With VMIN and VTIME both set the timer runs between bytes.
    fn restart_interbyte_timers(&mut self, now_ns: u64) {
        if self.termios.characters[cc::VMIN] == 0 {
            return;
        }
        let new_deadline = self.interbyte_deadline(now_ns);
        for waiting in &mut self.waiting {
            if let Need::Input { deadline_ns, .. } = &mut waiting.need {
                *deadline_ns = new_deadline;
            }
        }
    }
}

#[cfg(test)]
#[path = "terminal_tests.rs"]
mod tests;
