//! A pseudo-terminal: a terminal, the *slave*, whose line is a *master* that a program holds open (pty(7)). The file is long because
//! opening, closing and the requests of both sides change the same few fields.
//!
//! What is written to the slave can be read from the master once it is queued, and what is written to the master is input of the
//! slave. `terminal` has the slave; here are the master, opening and closing. It begins with the master's opening. When
//! the master is closed the slave is hung up, and when all of both is closed it ends.
//!
//! Invariant: after each public method no request waits, of either side, that could be replied to (`settle`).
//! Neighbours: `ptys` (all of them), `devpts` (their nodes), `control` (ioctls of the slave), `packets` (packet mode).

use crate::arrivals::{Arrivals, Asked};
use crate::control::request::{FIONREAD, TCFLSH, TIOCGPGRP, TIOCGSID, TIOCNOTTY, TIOCOUTQ, TIOCSTI};
use crate::packets::{self, Packets};
use crate::terminal::{CHUNK, Caller, Lower, POLLIN, POLLOUT, Terminal, World, signal};
use crate::termios::lflag;
use crate::waiting::{Need, Waiting};
use abi::{Endpoint, Errno, GrantId, Message, chardev};
use alloc::vec::Vec;
use recover::snapshot::{Reader, Writer};
use sys::fallible::{self, TryVec};

/// poll(2) bits.
const POLLPRI: u64 = 2;
const POLLERR: u64 = 8;
const POLLHUP: u64 = 16;
/// What poll reports of a slave that has been hung up.
const HUNG_UP: u64 = POLLIN | POLLOUT | POLLERR | POLLHUP;

/// ioctls of masters.
mod request {
    pub const TIOCPKT: u64 = 0x5420;
    pub const TIOCGPTN: u64 = 0x8004_5430;
    pub const TIOCSPTLCK: u64 = 0x4004_5431;
    pub const TIOCSIG: u64 = 0x4004_5436;
    pub const TIOCGPKT: u64 = 0x8004_5438;
    pub const TIOCGPTLCK: u64 = 0x8004_5439;
}

/// The node of a slave in /dev/pts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node {
    /// Permission bits.
    pub mode: u32,
    pub uid: u32,
    pub gid: u32,
    /// Last access, last modification, last change, in nanoseconds since 1970.
    pub times_ns: [u64; 3],
}

/// One pseudo-terminal.
pub struct Pty {
    terminal: Terminal,
    number: usize,
    /// Differs from that of every other one, so that its node is not taken for a later one's.
    serial: u64,
    /// The user who is charged.
    user: u32,
    node: Node,
    master_is_open: bool,
    is_locked: bool,
    /// Open files of the slave.
    slaves: u32,
    /// The slave has been open, and is not.
    slave_was_closed: bool,
    packets: Packets,
    /// Requests of the master that wait.
    waiting: Vec<Waiting>,
    /// What arrives at the master; at the slave: its terminal's.
    arrivals: Arrivals,
    /// The deadline for which a task sleeps.
    armed_ns: Option<u64>,
}

impl Pty {
    /// A pseudo-terminal whose master has just been opened.
    pub fn new(number: usize, serial: u64, user: u32, node: Node) -> Pty {
        let terminal = Terminal::slave();
        Pty {
            packets: Packets::new(&terminal, None),
            terminal,
            number,
            serial,
            user,
            node,
            master_is_open: true,
            is_locked: true,
            slaves: 0,
            slave_was_closed: false,
            waiting: Vec::new(),
            arrivals: Arrivals::new(),
            armed_ns: None,
        }
    }

    /// All settings that a read or a write may change, in a word.
    pub fn state(&self) -> u64 {
        let flags = [self.master_is_open, self.is_locked, self.slave_was_closed, self.packets.are_on()];
        let flags = flags.iter().rev().fold(0, |word, flag| word << 1 | u64::from(*flag));
        flags << 32 | u64::from(self.packets.status())
    }

    /// What differs when anything but a read or a write has changed the queues.
    pub fn extent(&self) -> ([u64; 6], [u64; 4], [u64; 2]) {
        let arrivals = [self.arrivals.counts(), self.terminal.arrivals.counts()];
        (self.terminal.discipline.extent(), self.terminal.output.extent(), arrivals)
    }

    /// Saves its queues into a snapshot, without waiting requests: vfs repeats those.
    pub fn save_queues(&self, writer: &mut Writer) {
        self.terminal.save_queues(writer);
        self.arrivals.save(writer);
    }

    /// Saves all but the queues into a snapshot.
    pub fn save_settings(&self, writer: &mut Writer) {
        let counts = u64::from(self.slaves) << 32 | u64::from(self.user);
        let ids = u64::from(self.node.uid) << 32 | u64::from(self.node.gid);
        writer.numbers([self.state(), self.serial, counts, ids, self.node.mode.into()]);
        writer.numbers(self.node.times_ns);
        self.terminal.save_settings(writer);
    }

    /// Loads the queues from a snapshot.
    pub fn load_queues(mut self, reader: &mut Reader) -> Option<Pty> {
        self.terminal.load_queues(reader)?;
        self.arrivals = Arrivals::load(reader, self.for_master(), self.terminal.discipline.positions().1)?;
        self.packets = Packets::new(&self.terminal, self.packets.are_on().then_some(self.packets.status()));
        Some(self)
    }

    /// Loads the settings of pseudo-terminal `number` from a snapshot.
    pub fn load_settings(reader: &mut Reader, number: usize) -> Option<Pty> {
        let first = reader.number()?;
        let flag = |bit: u32| first >> 32 >> bit & 1 != 0;
        let serial = reader.number()?;
        let (counts, ids, mode) = (reader.number()?, reader.number()?, reader.number()? as u32);
        let times_ns = [reader.number()?, reader.number()?, reader.number()?];
        let terminal = Terminal::load_settings(reader, Lower::Master)?;
        Some(Pty {
            packets: Packets::new(&terminal, flag(3).then_some(first as u8)),
            terminal,
            number,
            serial,
            user: counts as u32,
            node: Node { mode, uid: (ids >> 32) as u32, gid: ids as u32, times_ns },
            master_is_open: flag(0),
            is_locked: flag(1),
            slaves: (counts >> 32) as u32,
            slave_was_closed: flag(2),
            waiting: Vec::new(),
            arrivals: Arrivals::new(),
            armed_ns: None,
        })
    }

    /// Its number: the slave is /dev/pts/NUMBER.
    pub fn number(&self) -> usize {
        self.number
    }

    pub fn serial(&self) -> u64 {
        self.serial
    }

    /// The user who is charged.
    pub fn user(&self) -> u32 {
        self.user
    }

    /// Its node; `None`: the master is closed, so that it has none any more.
    pub fn node(&self) -> Option<&Node> {
        self.master_is_open.then_some(&self.node)
    }

    /// Its node, for a change.
    pub fn node_mut(&mut self) -> Option<&mut Node> {
        self.master_is_open.then_some(&mut self.node)
    }

    /// The session that it controls; 0: none.
    pub fn session(&self) -> u32 {
        self.terminal.session
    }

    /// Whether nothing of it is open.
    pub fn is_unused(&self) -> bool {
        !self.master_is_open && self.slaves == 0
    }

    /// The deadline of the next VTIME, if it is another than at the last call.
    pub fn take_new_deadline(&mut self) -> Option<u64> {
        let next = self.terminal.deadline_ns();
        let before = core::mem::replace(&mut self.armed_ns, next);
        next.filter(|_| next != before)
    }

    /// Opens the slave. Returns flags `chardev::OPENED_*`; `EIO`: it is locked, or hung up.
    pub fn open_slave(&mut self, flags: u64, pid: u32, caller: Caller, free: bool) -> Result<u64, Errno> {
        if self.is_locked || !self.master_is_open {
            return Err(Errno::EIO);
        }
        self.slaves += 1;
        self.slave_was_closed = false;
        Ok(self.terminal.open(flags, pid, caller, free))
    }

    /// An open file of the slave has been closed.
    pub fn close_slave(&mut self, world: &mut impl World) {
        self.slaves = self.slaves.saturating_sub(1);
        if self.slaves == 0 {
            self.slave_was_closed = true;
            self.arrivals.input_arrived();
            self.arrivals.room_arrived();
        }
        self.settle(world);
    }

    /// The master has been closed: hangs the slave up.
    pub fn close_master(&mut self, world: &mut impl World) {
        self.master_is_open = false;
        let (leader, group) = (self.terminal.session, self.terminal.group);
        for group in [leader, if group == leader { 0 } else { group }].into_iter().filter(|group| *group != 0) {
            world.signal(signal::SIGHUP, group);
            world.signal(signal::SIGCONT, group);
        }
        (self.terminal.session, self.terminal.group) = (0, 0);
        self.terminal.discipline.flush();
        self.terminal.output.flush();
        for Waiting { request, need } in core::mem::take(&mut self.terminal.waiting) {
            let result = match need {
                Need::Input { .. } => Ok(0),
                Need::Room { done, .. } if done > 0 => Ok(done as u64),
                Need::Events(asked) => Ok(asked.when_hung_up(HUNG_UP).unwrap_or(0)),
                _ => Err(Errno::EIO),
            };
            world.answer(&request, result);
        }
        for Waiting { request, .. } in core::mem::take(&mut self.waiting) {
            world.answer(&request, Err(Errno::EIO));
        }
    }

    /// `vfs` has started, and has these open. What waited for its predecessor comes again; it may have asked for something itself by now.
    pub fn set_uses(&mut self, world: &mut impl World, vfs: Endpoint, master: bool, slaves: u32) {
        let is_its_own = |waiting: &Waiting| waiting.request.source == vfs;
        self.terminal.waiting.retain(is_its_own);
        self.waiting.retain(is_its_own);
        while self.slaves > slaves {
            self.close_slave(world);
        }
        self.slaves = slaves;
        if self.master_is_open && !master {
            self.close_master(world);
        }
    }

    /// The leader of a session has ended.
    pub fn session_end(&mut self, world: &mut impl World, session: u32) {
        self.terminal.session_end(world, session);
    }

    /// Ends the request with this tag of this caller.
    pub fn cancel(&mut self, world: &mut impl World, source: Endpoint, tag: u64) {
        let is_it = |waiting: &Waiting| waiting.request.source == source && waiting.request.tag() == tag;
        let Some(at) = self.waiting.iter().position(is_it) else {
            return self.terminal.cancel(world, source, tag);
        };
        let Waiting { request, need } = self.waiting.remove(at);
        let result = match need {
            Need::Room { done, .. } if done > 0 => Ok(done as u64),
            _ => Err(Errno::EINTR),
        };
        world.answer(&request, result);
    }

    /// A request about the slave; of a repeated write `done` bytes are queued already.
    pub fn slave_request(&mut self, world: &mut impl World, message: &Message, request: chardev::Request, done: usize) {
        use chardev::Request;
        if !self.master_is_open {
            return self.hung_up_request(world, message, &request, done);
        }
        match request {
            Request::Read(read) => self.terminal.read(world, message, read),
            Request::Write(write) => self.terminal.write(world, message, write, done),
            Request::Control(control) => self.terminal.control(world, message, control),
            Request::Poll(poll) => self.terminal.poll(world, message, poll),
            _ => world.answer(message, Err(Errno::ENOSYS)),
        }
        self.settle(world);
    }

    /// A request about the slave after the master was closed. A poll that was told of it waits until it is cancelled.
    fn hung_up_request(&mut self, world: &mut impl World, message: &Message, request: &chardev::Request, done: usize) {
        let chardev::Request::Poll(poll) = request else {
            return world.answer(message, hung_up_result(request, done));
        };
        let asked = Asked::of(poll);
        match asked.when_hung_up(HUNG_UP) {
            None if !poll.now => self.terminal.wait(world, message, Need::Events(asked)),
            reply => world.answer(message, Ok(reply.unwrap_or(0))),
        }
    }

    /// Whether a process in the background waits for pm's verdict.
    pub fn is_judging(&self, pid: u32) -> bool {
        self.terminal.is_judging(pid)
    }

    /// [`Terminal::judged`].
    pub fn judged(&mut self, world: &mut impl World, pid: u32, is_allowed: bool) {
        self.terminal.judged(world, pid, is_allowed);
        self.settle(world);
    }

    /// A request about the master; of a repeated write `done` bytes are taken in already.
    pub fn master_request(
        &mut self,
        world: &mut impl World,
        message: &Message,
        request: chardev::Request,
        done: usize,
    ) {
        use chardev::Request;
        match request {
            Request::Read(read) => self.read_master(world, message, read),
            Request::Write(write) => self.write_master(world, message, write, done),
            Request::Control(control) => self.control_master(world, message, control),
            Request::Poll(poll) => self.poll_master(world, message, &poll),
            _ => world.answer(message, Err(Errno::ENOSYS)),
        }
        self.settle(world);
    }

    fn poll_master(&mut self, world: &mut impl World, message: &Message, poll: &chardev::Poll) {
        let asked = Asked::of(poll);
        match self.arrivals.reply(asked, self.master_events()) {
            None if !poll.now => self.wait(world, message, Need::Events(asked)),
            reply => world.answer(message, Ok(reply.unwrap_or(0))),
        }
    }

    fn read_master(&mut self, world: &mut impl World, message: &Message, read: chardev::Read) {
        match self.give(world, message, read.grant, read.bytes as usize) {
            Some(result) => world.answer(message, result),
            None if read.flags & chardev::NONBLOCK != 0 => world.answer(message, Err(Errno::EAGAIN)),
            None => {
                let need = Need::Input { grant: read.grant, bytes: read.bytes as usize, deadline_ns: None };
                self.wait(world, message, need);
            }
        }
    }

    fn write_master(&mut self, world: &mut impl World, message: &Message, write: chardev::Write, done: usize) {
        let bytes = write.bytes as usize;
        let mut done = done.min(bytes);
        let waits = write.flags & chardev::NONBLOCK == 0;
        let accepted = self.accept(world, message, write.grant, bytes, &mut done);
        self.arrivals.room_arrived();
        match accepted {
            // The sender's successor repeats the request.
            Err(Errno::EDEADSRCDST) => world.progress(message, done as u64),
            Err(error) if done == 0 => world.answer(message, Err(error)),
            Ok(()) if done == 0 && bytes > 0 && !waits => world.answer(message, Err(Errno::EAGAIN)),
            Ok(()) if done < bytes && waits => {
                world.progress(message, done as u64);
                self.wait(world, message, Need::Room { grant: write.grant, bytes, done });
            }
            Ok(()) | Err(_) => world.answer(message, Ok(done as u64)),
        }
    }

    fn wait(&mut self, world: &mut impl World, message: &Message, need: Need) {
        let done = if let Need::Room { done, .. } = need { done } else { 0 };
        if let Err(error) = self.waiting.try_push(Waiting { request: *message, need }) {
            world.answer(message, if done > 0 { Ok(done as u64) } else { Err(error) });
        }
    }

    /// What a read of the master gets; `None`: it has to wait.
    fn give(
        &mut self,
        world: &mut impl World,
        message: &Message,
        grant: GrantId,
        bytes: usize,
    ) -> Option<Result<u64, Errno>> {
        let (copied, count) = match (self.packets.are_on(), self.packets.status()) {
            (true, status @ 1..) => {
                let copied = world.copy_out(message, grant, &[status]);
                if copied.is_ok() {
                    self.packets.clear();
                }
                (copied, 1)
            }
            _ if self.terminal.output.len() == 0 => return self.slave_was_closed.then_some(Err(Errno::EIO)),
            (false, _) => {
                let (data, end) = self.terminal.output.front(bytes);
                let (copied, count) = (world.copy_out(message, grant, data), data.len());
                if copied.is_ok() {
                    self.terminal.output.taken(end);
                }
                (copied, count)
            }
            (true, _) => {
                let (data, end) = self.terminal.output.front(bytes.saturating_sub(1));
                let packet = fallible::collect([packets::DATA].into_iter().chain(data.iter().copied()));
                let copied =
                    packet.as_ref().map_err(|error| *error).and_then(|packet| world.copy_out(message, grant, packet));
                let count = 1 + data.len();
                if copied.is_ok() {
                    self.terminal.output.taken(end);
                }
                (copied, count)
            }
        };
        match copied {
            // The sender's successor repeats the request.
            Err(Errno::EDEADSRCDST) => None,
            copied => Some(copied.map(|()| count as u64)),
        }
    }

    /// Makes as much of a write of `bytes` to the master input of the slave as there is room for, and adds to `done`.
    fn accept(
        &mut self,
        world: &mut impl World,
        message: &Message,
        grant: GrantId,
        bytes: usize,
        done: &mut usize,
    ) -> Result<(), Errno> {
        let mut chunk = [0; CHUNK];
        while *done < bytes && self.input_room() > 0 {
            let chunk = &mut chunk[..CHUNK.min(bytes - *done)];
            world.copy_in(message, grant, *done as u64, chunk)?;
            self.terminal.discipline.reserve(chunk.len())?;
            let mut rest = &*chunk;
            while !rest.is_empty() && self.input_room() > 0 {
                let (now, later) = rest.split_at(self.next_piece(rest));
                self.terminal.take_in(world, now);
                *done += now.len();
                rest = later;
            }
        }
        Ok(())
    }

    fn input_room(&self) -> usize {
        self.terminal.discipline.room(&self.terminal.termios)
    }

    /// How much of these bytes goes in at once: a line, after which there may be less room.
    fn next_piece(&self, bytes: &[u8]) -> usize {
        let line = match self.terminal.termios.has_local(lflag::ICANON) {
            true => bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r')).map(|at| at + 1),
            false => None,
        };
        line.unwrap_or(bytes.len()).min(self.input_room())
    }

    fn master_events(&self) -> u64 {
        let status = if self.packets.status() != 0 { POLLPRI | POLLIN } else { 0 };
        let input = if self.terminal.output.len() > 0 { POLLIN } else { 0 };
        let output = if self.input_room() > 0 { POLLOUT } else { 0 };
        let closed = if self.slave_was_closed { POLLHUP } else { 0 };
        status | input | output | closed
    }

    fn control_master(&mut self, world: &mut impl World, message: &Message, control: chardev::Control) {
        let result = match control.request {
            TIOCNOTTY | TIOCSTI => Err(Errno::ENOTTY),
            TCFLSH => self.flush_master(control.argument),
            request::TIOCSIG => self.signal_slave(world, control.argument),
            request::TIOCSPTLCK | request::TIOCPKT => self.set_master(world, message, &control),
            _ => match self.told_of_master(control.request) {
                Some(Ok(number)) => world.copy_out(message, control.grant, &number.to_le_bytes()).map(|()| 0),
                Some(Err(error)) => Err(error),
                None => return self.terminal.control(world, message, control),
            },
        };
        world.answer(message, result);
    }

    /// The number that an ioctl of the master asks for; `None`: another ioctl.
    fn told_of_master(&self, number: u64) -> Option<Result<u32, Errno>> {
        Some(Ok(match number {
            request::TIOCGPTN => self.number as u32,
            request::TIOCGPTLCK => self.is_locked.into(),
            request::TIOCGPKT => self.packets.are_on().into(),
            FIONREAD => self.terminal.output.len() as u32,
            TIOCOUTQ => 0,
            TIOCGPGRP => self.terminal.group,
            TIOCGSID if self.terminal.session == 0 => return Some(Err(Errno::ENOTTY)),
            TIOCGSID => self.terminal.session,
            _ => return None,
        }))
    }

    fn set_master(
        &mut self,
        world: &mut impl World,
        message: &Message,
        control: &chardev::Control,
    ) -> Result<u64, Errno> {
        let mut bytes = [0; 4];
        world.copy_in(message, control.grant, 0, &mut bytes)?;
        let on = bytes != [0; 4];
        if control.request == request::TIOCSPTLCK {
            self.is_locked = on;
        } else {
            self.packets.switch(on, &mut self.terminal);
        }
        Ok(0)
    }

    /// TCFLSH of the master: its input is the slave's output. What the slave has for input stays.
    fn flush_master(&mut self, argument: u64) -> Result<u64, Errno> {
        const INPUT: u64 = 0;
        const OUTPUT: u64 = 1;
        const BOTH: u64 = 2;
        match argument {
            INPUT | BOTH => {
                self.terminal.output.flush();
                // The slave has flushed nothing.
                self.terminal.output.take_flushed();
                Ok(0)
            }
            OUTPUT => Ok(0),
            _ => Err(Errno::EINVAL),
        }
    }

    fn signal_slave(&self, world: &mut impl World, number: u64) -> Result<u64, Errno> {
        let number = number as u32;
        if ![signal::SIGINT, signal::SIGQUIT, signal::SIGTSTP].contains(&number) {
            return Err(Errno::EINVAL);
        }
        if self.terminal.group != 0 {
            world.signal(number, self.terminal.group);
        }
        Ok(0)
    }

    /// Replies to every waiting request that can be. What one side takes may be what the other side waits for.
    pub fn settle(&mut self, world: &mut impl World) {
        if !self.master_is_open {
            return;
        }
        loop {
            self.terminal.settle(world);
            if self.packets.note(&mut self.terminal) {
                self.arrivals.input_arrived();
            }
            self.arrivals.note(self.for_master(), self.terminal.discipline.positions().1);
            if self.waiting.is_empty() || !self.settle_master(world) {
                return;
            }
        }
    }

    /// What [`Arrivals::note`] compares: the slave's output is the master's input.
    fn for_master(&self) -> [u64; 2] {
        [self.terminal.output.positions().1, 0]
    }

    /// Replies to the master's requests, oldest first. Returns whether bytes have been moved.
    fn settle_master(&mut self, world: &mut impl World) -> bool {
        let (mut index, mut has_moved) = (0, false);
        while index < self.waiting.len() {
            let mut waiting = self.waiting.remove(index);
            let result = match &mut waiting.need {
                Need::Input { grant, bytes, .. } => {
                    let result = self.give(world, &waiting.request, *grant, *bytes);
                    has_moved |= matches!(result, Some(Ok(_)));
                    result
                }
                Need::Room { grant, bytes, done } => {
                    let before = *done;
                    let result = self.accept(world, &waiting.request, *grant, *bytes, done);
                    has_moved |= *done > before;
                    if *done > before {
                        world.progress(&waiting.request, *done as u64);
                    }
                    match result {
                        Err(Errno::EDEADSRCDST) => None,
                        Err(error) => Some(if *done > 0 { Ok(*done as u64) } else { Err(error) }),
                        Ok(()) => (*done == *bytes).then_some(Ok(*bytes as u64)),
                    }
                }
                Need::Events(asked) => self.arrivals.reply(*asked, self.master_events()).map(Ok),
                _ => Some(Err(Errno::EIO)),
            };
            match result {
                Some(result) => world.answer(&waiting.request, result),
                None => {
                    put_back(&mut self.waiting, index, waiting);
                    index += 1;
                }
            }
        }
        has_moved
    }
}

/// The result of a request about a slave that has been hung up.
fn hung_up_result(request: &chardev::Request, done: usize) -> Result<u64, Errno> {
    use crate::control::request::TIOCSPGRP;
    use chardev::Request;
    match request {
        Request::Read(_) => Ok(0),
        Request::Write(_) if done > 0 => Ok(done as u64),
        Request::Control(control) if control.request == TIOCSPGRP => Err(Errno::ENOTTY),
        _ => Err(Errno::EIO),
    }
}

#[expect(clippy::disallowed_methods, reason = "the room is there: it has just been taken from the list")]
fn put_back(list: &mut Vec<Waiting>, index: usize, waiting: Waiting) {
    list.insert(index, waiting);
}

#[cfg(test)]
#[path = "pty_tests.rs"]
mod tests;
