//! One terminal: its settings, input and output, the session that controls it, and the requests that wait for it. The file is long because
//! requests, those that wait, and what lets them go on change the same fields.
//!
//! A request gets its reply as soon as possible: at once, when input comes, when output has drained, or when vfs cancels it.
//! Invariant: after each public method no request waits that could be replied to (`settle`).
//! Neighbours: `discipline` and `output` do the bytes, `control` the ioctls, `main` brings messages and uart's answers.

use crate::arrivals::{Arrivals, Asked};
use crate::discipline::{Discipline, KeySignal, MAX_INPUT};
use crate::output::Output;
use crate::serial::{self, Command, Commands, Ticket};
use crate::termios::{TERMIOS_BYTES, Termios, cc, iflag, lflag};
use crate::waiting::{AfterLine, AfterOutput, Need, Waiting};
pub use crate::world::{Caller, World, signal};
use abi::chardev::serial::{MODEM_DTR, MODEM_RTS};
use abi::{Errno, GrantId, Message, chardev};
use alloc::vec::Vec;
use recover::snapshot::{Reader, Writer};
use sys::fallible::TryVec;

/// Bytes of a write that are copied at a time.
pub(crate) const CHUNK: usize = 256;

/// poll(2) bits.
pub const POLLIN: u64 = 1;
/// A write would not block.
pub const POLLOUT: u64 = 4;

/// What is below a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lower {
    /// A serial line.
    Serial,
    /// The master of a pseudo-terminal: output has arrived when it is queued, and there is no line to be set.
    Master,
}

/// A program that has a terminal of the screen for itself: its process and group; 0: there is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Drawer {
    pid: u32,
    group: u32,
}

impl Drawer {
    const NONE: Drawer = Drawer { pid: 0, group: 0 };
}

/// One terminal.
pub struct Terminal {
    pub(crate) lower: Lower,
    pub(crate) termios: Termios,
    pub(crate) discipline: Discipline,
    pub(crate) output: Output,
    /// Rows, columns, and the same in pixels (`struct winsize`).
    pub(crate) window: [u16; 4],
    /// The session that it controls; 0: none.
    pub(crate) session: u32,
    /// Foreground process group.
    pub(crate) group: u32,
    pub(crate) waiting: Vec<Waiting>,
    /// For those who want to know of each arrival.
    pub(crate) arrivals: Arrivals,
    /// It has been opened; before, input stays in uart.
    pub(crate) opened: bool,
    /// Outgoing modem lines as they were set.
    pub(crate) modem: u64,
    /// Bytes received from uart since boot.
    pub(crate) received: u64,
    /// Of a terminal on the screen: the number of the one that is shown, from 1; 0: not known.
    pub(crate) shown: u64,
    /// The program that draws on the screen itself, reads keys as they are, or decides over the terminal's switch.
    drawer: Drawer,
    /// Open files.
    uses: u32,
    /// XOFF has been sent, and no XON since.
    holds_back: bool,
    /// Commands for uart.
    pub(crate) commands: Commands,
}

impl Terminal {
    /// A terminal that has never been opened.
    pub fn new() -> Self {
        let (discipline, output) = (Discipline::new(), Output::new());
        Terminal { discipline, output, window: [24, 80, 0, 0], ..Terminal::below(Lower::Serial, Termios::initial()) }
    }

    /// The slave of a new pseudo-terminal, which takes memory when it needs it.
    pub fn slave() -> Self {
        Terminal::below(Lower::Master, Termios::of_slave())
    }

    fn below(lower: Lower, termios: Termios) -> Self {
        Terminal {
            lower,
            termios,
            discipline: Discipline::without_memory(),
            output: Output::without_memory(),
            window: [0; 4],
            session: 0,
            group: 0,
            waiting: Vec::new(),
            arrivals: Arrivals::new(),
            opened: false,
            modem: MODEM_DTR | MODEM_RTS,
            received: 0,
            shown: 0,
            drawer: Drawer::NONE,
            uses: 0,
            holds_back: false,
            commands: Commands::default(),
        }
    }

    /// Saves the state into a snapshot, without waiting requests: vfs repeats those.
    pub fn save(&self, writer: &mut Writer) {
        self.save_settings(writer);
        self.save_queues(writer);
    }

    /// Saves what is in its queues, and the state that bytes change.
    pub fn save_queues(&self, writer: &mut Writer) {
        self.discipline.save(writer);
        self.output.save(writer);
        self.arrivals.save(writer);
    }

    /// Saves all but the queues.
    pub fn save_settings(&self, writer: &mut Writer) {
        writer.run((&self.termios.to_bytes(), &[]));
        let [rows, columns, width, height] = self.window.map(u64::from);
        writer.numbers([rows, columns, width, height, self.session.into(), self.group.into()]);
        writer.numbers([self.opened.into(), self.modem, self.received, self.holds_back.into(), self.uses.into()]);
        writer.numbers([self.drawer.pid.into(), self.drawer.group.into()]);
    }

    /// Loads the state from a snapshot. uart gets the line's settings again.
    pub fn load(reader: &mut Reader, lower: Lower) -> Option<Terminal> {
        let mut terminal = Terminal::load_settings(reader, lower)?;
        terminal.load_queues(reader)?;
        if lower == Lower::Serial {
            terminal.discipline.reserve(MAX_INPUT).ok()?;
        }
        Some(terminal)
    }

    /// Loads what is in its queues.
    pub fn load_queues(&mut self, reader: &mut Reader) -> Option<()> {
        self.discipline = Discipline::load(reader)?;
        self.output = Output::load(reader)?;
        self.arrivals = Arrivals::load(reader, self.discipline.positions().0, self.output.positions().0)?;
        Some(())
    }

    /// Loads all but the queues.
    pub fn load_settings(reader: &mut Reader, lower: Lower) -> Option<Terminal> {
        let termios: &[u8; TERMIOS_BYTES] = reader.run()?.try_into().ok()?;
        let mut terminal = Terminal::below(lower, Termios::from_bytes(termios));
        for size in &mut terminal.window {
            *size = reader.number()? as u16;
        }
        (terminal.session, terminal.group) = (reader.number()? as u32, reader.number()? as u32);
        (terminal.opened, terminal.modem) = (reader.number()? != 0, reader.number()?);
        (terminal.received, terminal.holds_back) = (reader.number()?, reader.number()? != 0);
        terminal.uses = reader.number()? as u32;
        terminal.drawer = Drawer { pid: reader.number()? as u32, group: reader.number()? as u32 };
        if lower == Lower::Serial {
            terminal.commands.add(Command::Settings(serial::line_settings(&terminal.termios)));
            terminal.commands.add(Command::Modem(terminal.modem));
        }
        Some(terminal)
    }

    /// Opens it. A session leader that has no terminal (`free`) gets it as controlling terminal. Returns flags `chardev::OPENED_*`.
    pub fn open(&mut self, flags: u64, pid: u32, caller: Caller, free: bool) -> u64 {
        const O_NOCTTY: u64 = 0o400;
        self.opened = true;
        self.uses = self.uses.saturating_add(1);
        let takes = free && self.session == 0 && pid != 0 && pid == caller.session && flags & O_NOCTTY == 0;
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

    /// Ends the session that it controls.
    pub fn session_end(&mut self, world: &mut impl World, session: u32) {
        if self.session != session || session == 0 {
            return;
        }
        world.signal(signal::SIGHUP, self.group);
        world.signal(signal::SIGCONT, self.group);
        self.take_screen_back();
        self.session = 0;
        self.group = 0;
    }

    /// The program that draws is no longer in the foreground: it has ended or was stopped, or its session has ended.
    pub(crate) fn take_screen_back(&mut self) {
        if core::mem::take(&mut self.drawer) != Drawer::NONE {
            self.commands.add(Command::TakeBack);
        }
    }

    /// Another group comes to the foreground: what a program of the former one has of the screen is taken back.
    pub(crate) fn leave_foreground(&mut self) {
        if self.group == self.drawer.group {
            self.take_screen_back();
        }
    }

    /// A process has ended; if it drew, or decided over the terminal's switch, it does so no more.
    pub fn process_gone(&mut self, pid: u32) {
        if self.drawer.pid == pid {
            self.take_screen_back();
        }
    }

    /// A program draws itself, reads keys as they are, or decides whether another terminal may be shown.
    pub fn set_drawer(&mut self, pid: u32, group: u32) {
        self.drawer = Drawer { pid, group };
    }

    /// The program does so no more.
    pub fn clear_drawer(&mut self) {
        self.drawer = Drawer::NONE;
    }

    /// An open file of it has been closed. If a program draws, that may have been its end.
    pub fn close(&mut self, world: &mut impl World) {
        self.uses = self.uses.saturating_sub(1);
        if self.drawer != Drawer::NONE {
            world.probe(self.drawer.pid);
        }
    }

    /// How many open files of it there are.
    pub fn uses(&self) -> u32 {
        self.uses
    }

    /// vfs has restarted, and says so.
    pub fn set_uses(&mut self, world: &mut impl World, uses: u32) {
        // One more, which is closed now: of what was closed meanwhile tty does not hear.
        self.uses = uses.saturating_add(1);
        self.close(world);
    }

    /// A read.
    pub fn read(&mut self, world: &mut impl World, request: &Message, read: chardev::Read) {
        if self.in_background(Caller::from_word(read.caller)) {
            self.wait(world, request, Need::Foreground);
            return world.signal(signal::SIGTTIN, Caller::from_word(read.caller).group);
        }
        let bytes = read.bytes as usize;
        if read.flags & chardev::NONBLOCK != 0 && self.discipline.readable(&self.termios, bytes).is_none() {
            return world.answer(request, Err(Errno::EAGAIN));
        }
        let deadline_ns = self.read_deadline(world);
        let at_once = self.waiting.is_empty().then(|| self.give(world, request, read.grant, bytes, deadline_ns));
        match at_once.flatten() {
            Some(result) => world.answer(request, result),
            None => self.wait(world, request, Need::Input { grant: read.grant, bytes, deadline_ns }),
        }
        self.settle(world);
    }

    /// A write; of a repeated one `done` bytes are queued already.
    pub fn write(&mut self, world: &mut impl World, request: &Message, write: chardev::Write, done: usize) {
        if self.termios.has_local(lflag::TOSTOP) && self.in_background(Caller::from_word(write.caller)) {
            return self.wait_for_verdict(world, request, write.process as u32, done);
        }
        self.write_allowed(world, request, write, done);
    }

    /// [`Terminal::write`], whoever writes.
    pub(crate) fn write_allowed(
        &mut self,
        world: &mut impl World,
        request: &Message,
        write: chardev::Write,
        done: usize,
    ) {
        let bytes = write.bytes as usize;
        let mut done = done.min(bytes);
        let waits = write.flags & chardev::NONBLOCK == 0;
        let accepted = self.accept(world, request, write.grant, bytes, &mut done);
        self.arrivals.room_arrived();
        match accepted {
            // The sender's successor repeats the request.
            Err(Errno::EDEADSRCDST) => world.progress(request, done as u64),
            Err(error) if done == 0 => world.answer(request, Err(error)),
            Ok(()) if done == 0 && bytes > 0 && !waits => world.answer(request, Err(Errno::EAGAIN)),
            Ok(()) if done < bytes && waits => {
                world.progress(request, done as u64);
                let need = Need::Room { grant: write.grant, bytes, done };
                self.wait(world, request, need);
            }
            Ok(()) | Err(_) => world.answer(request, Ok(done as u64)),
        }
    }

    /// A poll.
    pub fn poll(&mut self, world: &mut impl World, request: &Message, poll: chardev::Poll) {
        let asked = Asked::of(&poll);
        match self.arrivals.reply(asked, self.events()) {
            None if !poll.now => self.wait(world, request, Need::Events(asked)),
            reply => world.answer(request, Ok(reply.unwrap_or(0))),
        }
    }

    /// Keeps a request until it gets what it needs. Without memory it gets `ENOMEM`, or what of a write is queued.
    pub(crate) fn wait(&mut self, world: &mut impl World, request: &Message, need: Need) {
        let done = if let Need::Room { done, .. } = need { done } else { 0 };
        if let Err(error) = self.waiting.try_push(Waiting { request: *request, need }) {
            world.answer(request, if done > 0 { Ok(done as u64) } else { Err(error) });
        }
    }

    /// Drops the waiting requests of dead predecessors of this sender, and this request if it waits already: what is still wanted is
    /// repeated.
    pub fn forget_stale(&mut self, request: &Message) {
        self.waiting.retain(|Waiting { request: old, .. }| {
            let same_slot = old.source.slot() == request.source.slot();
            let is_it = request.tag() != 0 && old.tag() == request.tag();
            !(same_slot && (is_it || old.source != request.source))
        });
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

    /// Takes in bytes from the serial line.
    pub fn input(&mut self, world: &mut impl World, bytes: &[u8]) {
        self.received += bytes.len() as u64;
        self.take_in(world, bytes);
    }

    /// Takes in bytes, for which there is memory.
    pub fn take_in(&mut self, world: &mut impl World, bytes: &[u8]) {
        if self.termios.passes_input_on() {
            self.discipline.receive_plain(bytes);
        } else {
            self.take_in_each(world, bytes);
        }
        self.restart_interbyte_timers(world);
        self.settle(world);
    }

    fn take_in_each(&mut self, world: &mut impl World, bytes: &[u8]) {
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
    }

    /// The device has every byte of output before `position`.
    pub fn output_done(&mut self, world: &mut impl World, position: u64) {
        self.output.taken(position);
        self.settle(world);
    }

    /// uart has carried out a command that a request waits for.
    pub fn command_done(&mut self, world: &mut impl World, ticket: Ticket, result: Result<u64, Errno>) {
        let found = self.waiting.iter().position(|waiting| {
            matches!(waiting.need, Need::Line(_))
                && waiting.request.source == ticket.requester
                && waiting.request.tag() == ticket.tag
        });
        let Some(Waiting { request, need: Need::Line(after) }) = found.map(|at| self.waiting.remove(at)) else {
            return;
        };
        let result = match (after, result) {
            (AfterLine::Modem(grant), Ok(lines)) => world.copy_out(&request, grant, &(lines as u32).to_le_bytes()),
            (AfterLine::Modem(_), Err(error)) => Err(error),
            (AfterLine::Settings(settings), _) => {
                settings.into_iter().for_each(|settings| self.set_termios(settings));
                Ok(())
            }
        };
        world.answer(&request, result.map(|()| 0));
        self.settle(world);
    }

    /// The deadline of the next VTIME.
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
        let output = if self.room() > 0 { POLLOUT } else { 0 };
        input | output
    }

    /// Replies to every waiting request that can be, oldest first.
    pub fn settle(&mut self, world: &mut impl World) {
        self.note_arrivals();
        if !self.waiting.is_empty() {
            self.settle_requests(world);
            self.note_arrivals();
        }
        self.control_flow();
    }

    fn note_arrivals(&mut self) {
        self.arrivals.note(self.discipline.positions().0, self.output.positions().0);
    }

    fn settle_requests(&mut self, world: &mut impl World) {
        let mut index = 0;
        while index < self.waiting.len() {
            let mut waiting = self.waiting[index];
            if let Some(result) = self.attempt(world, &mut waiting) {
                self.waiting.remove(index);
                world.answer(&waiting.request, result);
            } else {
                self.waiting[index] = waiting;
                index += 1;
            }
        }
    }

    /// Bytes that a writer may add. What is behind a pseudo-terminal gets the output before ^S, as on Linux, so writers wait at once.
    fn room(&self) -> usize {
        if self.lower == Lower::Master && self.output.is_stopped() { 0 } else { self.output.room() }
    }

    /// True for a process of this terminal's session that is not in the foreground group.
    pub(crate) fn in_background(&self, caller: Caller) -> bool {
        self.session != 0 && caller.session == self.session && caller.group != self.group
    }

    /// A process in the background writes, or changes the terminal: pm stops it, or says what becomes of the request.
    pub(crate) fn wait_for_verdict(&mut self, world: &mut impl World, request: &Message, pid: u32, done: usize) {
        self.wait(world, request, Need::Verdict { pid, done });
        world.judge(pid);
    }

    /// Whether a process in the background waits for pm's verdict.
    pub fn is_judging(&self, pid: u32) -> bool {
        self.waiting.iter().any(|waiting| matches!(waiting.need, Need::Verdict { pid: other, .. } if other == pid))
    }

    /// The result of a waiting request; `None`: it still has to wait.
    fn attempt(&mut self, world: &mut impl World, waiting: &mut Waiting) -> Option<Result<u64, Errno>> {
        match &mut waiting.need {
            Need::Input { grant, bytes, deadline_ns } => {
                self.give(world, &waiting.request, *grant, *bytes, *deadline_ns)
            }
            Need::Room { grant, bytes, done } => {
                let before = *done;
                let result = self.accept(world, &waiting.request, *grant, *bytes, done);
                if *done > before {
                    world.progress(&waiting.request, *done as u64);
                }
                match result {
                    Err(Errno::EDEADSRCDST) => None,
                    Err(error) => Some(if *done > 0 { Ok(*done as u64) } else { Err(error) }),
                    Ok(()) => (*done == *bytes).then_some(Ok(*bytes as u64)),
                }
            }
            Need::Events(asked) => {
                let (asked, ready) = (*asked, self.events());
                self.arrivals.reply(asked, ready).map(Ok)
            }
            Need::Output(after) => {
                if self.output.len() == 0 {
                    let ticket = Ticket { requester: waiting.request.source, tag: waiting.request.tag() };
                    waiting.need = Need::Line(self.order_after_output(ticket, *after));
                }
                None
            }
            Need::Shown(number) => (self.shown == *number).then_some(Ok(0)),
            Need::Line(_) | Need::Foreground | Need::Verdict { .. } => None,
        }
    }

    /// What a read gets; `None`: it has to wait.
    fn give(
        &mut self,
        world: &mut impl World,
        request: &Message,
        grant: GrantId,
        bytes: usize,
        deadline_ns: Option<u64>,
    ) -> Option<Result<u64, Errno>> {
        let late = deadline_ns.is_some_and(|deadline| deadline <= world.now_ns());
        match self.discipline.readable(&self.termios, bytes) {
            None if late => {}
            // VMIN 0 with VTIME: the first byte or the time ends it.
            Some(0) if deadline_ns.is_some() && !late => return None,
            None => return None,
            Some(_) => {}
        }
        let data = self.discipline.front(&self.termios, bytes);
        let (copied, count) = (world.copy_out(request, grant, data), data.len());
        if copied == Err(Errno::EDEADSRCDST) {
            // The sender's successor repeats the request.
            return None;
        }
        if copied.is_ok() {
            self.discipline.take(&self.termios, count);
        }
        Some(copied.map(|()| count as u64))
    }

    fn order_after_output(&mut self, ticket: Ticket, after: AfterOutput) -> AfterLine {
        match after {
            AfterOutput::Drain(settings) => {
                self.commands.add(Command::Drain(ticket));
                AfterLine::Settings(settings)
            }
            AfterOutput::Break(duration_ns) => {
                let steps =
                    [Command::Break(true), Command::Pause(duration_ns), Command::Break(false), Command::Report(ticket)];
                steps.into_iter().for_each(|step| self.commands.add(step));
                AfterLine::Settings(None)
            }
        }
    }

    /// With IXOFF, tells the other side when to stop sending and when to resume.
    fn control_flow(&mut self) {
        if self.lower == Lower::Master {
            return;
        }
        let uses = self.termios.has_input(iflag::IXOFF);
        let waiting = self.discipline.len();
        if !self.holds_back && uses && waiting > MAX_INPUT / 4 * 3 {
            self.holds_back = true;
            self.commands.add(Command::SendNow(self.termios.characters[cc::VSTOP]));
        } else if self.holds_back && (!uses || waiting < MAX_INPUT / 4) {
            self.holds_back = false;
            self.commands.add(Command::SendNow(self.termios.characters[cc::VSTART]));
        }
    }

    /// Queues as much as fits of a write of `bytes`, of which `done` are queued already, and adds to `done`.
    fn accept(
        &mut self,
        world: &mut impl World,
        request: &Message,
        grant: GrantId,
        bytes: usize,
        done: &mut usize,
    ) -> Result<(), Errno> {
        let mut chunk = [0; CHUNK];
        while *done < bytes && self.room() > 0 {
            let count = chunk.len().min(bytes - *done).min(self.room());
            world.copy_in(request, grant, *done as u64, &mut chunk[..count])?;
            *done += self.output.write_some(&self.termios, &chunk[..count])?;
        }
        Ok(())
    }

    /// Changes the settings.
    pub(crate) fn set_termios(&mut self, new: Termios) {
        self.arrivals.input_arrived();
        self.arrivals.room_arrived();
        if self.lower == Lower::Master {
            self.discipline.mode_changed(&self.termios, &new);
            self.termios = new.as_of_slave();
            return;
        }
        let new = serial::with_possible_rate(&self.termios, new);
        self.discipline.mode_changed(&self.termios, &new);
        let (old_line, new_line) = (serial::line_settings(&self.termios), serial::line_settings(&new));
        if old_line != new_line {
            self.commands.add(Command::Settings(new_line));
        }
        self.termios = new;
    }

    /// When VTIME ends a read that starts now (termios(3), noncanonical mode): only VMIN 0 counts from the start.
    fn read_deadline(&self, world: &impl World) -> Option<u64> {
        let counts = !self.termios.has_local(lflag::ICANON) && self.termios.characters[cc::VMIN] == 0;
        if counts { self.interbyte_deadline(world) } else { None }
    }

    /// The time is asked for only where VTIME counts.
    fn interbyte_deadline(&self, world: &impl World) -> Option<u64> {
        const TENTH_NS: u64 = 100_000_000;
        let tenths = u64::from(self.termios.characters[cc::VTIME]);
        (tenths > 0 && !self.termios.has_local(lflag::ICANON)).then(|| world.now_ns() + tenths * TENTH_NS)
    }

    /// With VMIN and VTIME both set the timer runs between bytes.
    fn restart_interbyte_timers(&mut self, world: &impl World) {
        if self.termios.characters[cc::VMIN] == 0 || self.waiting.is_empty() {
            return;
        }
        let new_deadline = self.interbyte_deadline(world);
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
