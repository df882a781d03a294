//! Both sides of a pseudo-terminal, against a world that records. Each request is also made of a successor that has found what its
//! predecessor saved.

use super::*;
use crate::packets::status;
use crate::termios::{TERMIOS_BYTES, Termios};
use std::collections::HashMap;

#[derive(Default)]
struct Recorder {
    buffers: HashMap<u32, Vec<u8>>,
    answers: Vec<(u64, Result<u64, Errno>)>,
    signals: Vec<(u32, u32)>,
}

impl World for Recorder {
    fn copy_out(&mut self, _: &Message, grant: GrantId, data: &[u8]) -> Result<(), Errno> {
        self.buffers.insert(grant.0, data.to_vec());
        Ok(())
    }
    fn copy_in(&mut self, _: &Message, grant: GrantId, offset: u64, buffer: &mut [u8]) -> Result<(), Errno> {
        let source = self.buffers.get(&grant.0).ok_or(Errno::EFAULT)?;
        buffer.copy_from_slice(&source[offset as usize..offset as usize + buffer.len()]);
        Ok(())
    }
    fn progress(&mut self, _: &Message, _: u64) {}
    fn answer(&mut self, request: &Message, result: Result<u64, Errno>) {
        self.answers.push((request.tag(), result));
    }
    fn signal(&mut self, signal: u32, group: u32) {
        self.signals.push((signal, group));
    }
    fn probe(&mut self, _: u32) {}
    fn judge(&mut self, _: u32) {}
    fn now_ns(&self) -> u64 {
        0
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Side {
    Master,
    Slave,
}
use Side::{Master, Slave};

/// A pseudo-terminal whose state goes through a snapshot after each request, unless some wait.
struct Pair {
    pty: Pty,
    world: Recorder,
    tag: u64,
}

const SHELL: Caller = Caller { group: 10, session: 10 };
const NODE: Node = Node { mode: 0o620, uid: 7, gid: 5, times_ns: [1, 2, 3] };

impl Pair {
    /// Unlocked, with one open file of the slave, which is the terminal of the session 10.
    fn new() -> Pair {
        let mut pair = Pair { pty: Pty::new(3, 77, 7, NODE), world: Recorder::default(), tag: 0 };
        assert_eq!(pair.pty.open_slave(0, 10, SHELL, true), Err(Errno::EIO), "it is locked");
        assert_eq!(pair.control(Master, request::TIOCSPTLCK, &0u32.to_le_bytes()), Some(Ok(0)));
        assert_eq!(pair.pty.open_slave(0, 10, SHELL, true), Ok(chardev::OPENED_CONTROLLING));
        pair
    }

    fn reborn(&mut self) {
        if !self.pty.waiting.is_empty() || !self.pty.terminal.waiting.is_empty() {
            return;
        }
        let (settings, queues) = self.saved();
        let (settings, queues) = (settings.bytes(), queues.bytes());
        let load = |settings: &[u8], queues: &[u8]| {
            Pty::load_settings(&mut Reader::new(settings), 3)?.load_queues(&mut Reader::new(queues))
        };
        for short in [0, 8, 40, settings.len() - 1] {
            assert!(load(&settings[..short], queues).is_none());
        }
        for short in [0, 8, 40, queues.len() - 1] {
            assert!(load(settings, &queues[..short]).is_none());
        }
        self.pty = load(settings, queues).expect("is whole");
    }

    /// What is saved of settings and queues.
    fn saved(&self) -> (Writer, Writer) {
        let [mut settings, mut queues] = [Writer::default(), Writer::default()];
        self.pty.save_settings(&mut settings);
        self.pty.save_queues(&mut queues);
        (settings, queues)
    }

    /// Makes a request. Returns its result, or `None` while it waits.
    fn ask(&mut self, side: Side, request: chardev::Request) -> Option<Result<u64, Errno>> {
        let tells = matches!(&request, chardev::Request::Control(control) if control.request & 1 << 31 != 0);
        let is_transfer = matches!(request, chardev::Request::Read(_) | chardev::Request::Write(_));
        let (before, state, extent) = (self.saved(), self.pty.state(), self.pty.extent());
        let result = self.request(side, request);
        let after = self.saved();
        // Else it would not be saved (`Tty::ask_pty`, `Tty::with_queues`, `Tty::with_pty`).
        if tells {
            assert!((before.0.bytes(), before.1.bytes()) == (after.0.bytes(), after.1.bytes()), "it only tells");
        } else if is_transfer {
            assert!(before.0.bytes() == after.0.bytes() || self.pty.state() != state, "the settings have changed");
        } else {
            assert!(before.1.bytes() == after.1.bytes() || self.pty.extent() != extent, "the queues have changed");
        }
        self.reborn();
        result
    }

    fn request(&mut self, side: Side, request: chardev::Request) -> Option<Result<u64, Errno>> {
        let mut message = Message::new(0);
        message.words[6] = self.tag;
        match side {
            Master => self.pty.master_request(&mut self.world, &message, request, 0),
            Slave => self.pty.slave_request(&mut self.world, &message, request, 0),
        }
        self.result(self.tag)
    }

    fn result(&self, tag: u64) -> Option<Result<u64, Errno>> {
        self.world.answers.iter().find(|answer| answer.0 == tag).map(|answer| answer.1)
    }

    fn next(&mut self) -> GrantId {
        self.tag += 1;
        GrantId(self.tag as u32)
    }

    fn write(&mut self, side: Side, bytes: &[u8], flags: u64) -> Option<Result<u64, Errno>> {
        let grant = self.next();
        self.world.buffers.insert(grant.0, bytes.to_vec());
        let caller = 10 | 10 << 32;
        let write = chardev::Write { minor: 0, grant, bytes: bytes.len() as u64, flags, caller, process: 10 };
        self.ask(side, chardev::Request::Write(write))
    }

    fn read(&mut self, side: Side, bytes: u64, flags: u64) -> Option<Result<u64, Errno>> {
        let grant = self.next();
        let read = chardev::Read { minor: 0, grant, bytes, flags, caller: 10 | 10 << 32 };
        self.ask(side, chardev::Request::Read(read))
    }

    /// What a read that does not wait gives.
    fn take(&mut self, side: Side) -> Result<Vec<u8>, Errno> {
        let count = self.read(side, 10_000, chardev::NONBLOCK).expect("does not wait")?;
        let bytes = self.world.buffers.remove(&(self.tag as u32)).unwrap_or_default();
        assert_eq!(bytes.len() as u64, count);
        Ok(bytes)
    }

    fn control(&mut self, side: Side, request: u64, argument: &[u8]) -> Option<Result<u64, Errno>> {
        self.control_with(side, request, argument, 0)
    }

    fn control_with(&mut self, side: Side, request: u64, bytes: &[u8], argument: u64) -> Option<Result<u64, Errno>> {
        let grant = self.next();
        self.world.buffers.insert(grant.0, bytes.to_vec());
        let control = chardev::Control { minor: 0, request, argument, grant, caller: 10 | 10 << 32, session: 10 };
        self.ask(side, chardev::Request::Control(control))
    }

    fn events(&mut self, side: Side) -> u64 {
        self.next();
        let poll = chardev::Poll { minor: 0, events: 31, now: true, since: 0 };
        let reply = self.ask(side, chardev::Request::Poll(poll)).expect("does not wait").expect("is open");
        reply & 0xffff_ffff
    }

    /// The events of those asked for, if anything has arrived since the last time, whose number is in `since`; else 0.
    fn edge(&mut self, side: Side, events: u64, since: &mut u64) -> u64 {
        self.next();
        let poll = chardev::Poll { minor: 0, events, now: true, since: *since };
        let reply = self.ask(side, chardev::Request::Poll(poll)).expect("does not wait").expect("is open");
        if reply != 0 {
            *since = reply >> chardev::ARRIVALS_SHIFT;
        }
        reply & 0xffff_ffff
    }

    fn set(&mut self, change: impl FnOnce(&mut Termios)) {
        let mut settings = self.pty.terminal.termios;
        change(&mut settings);
        let bytes: [u8; TERMIOS_BYTES] = settings.to_bytes();
        assert_eq!(self.control(Slave, 0x5402, &bytes), Some(Ok(0)));
    }

    fn make_raw(&mut self) {
        self.set(|settings| (settings.input, settings.output, settings.local) = (0, 0, 0));
    }
}

#[test]
fn what_one_side_writes_the_other_reads() {
    let mut pair = Pair::new();
    assert_eq!(pair.write(Slave, b"out\n", 0), Some(Ok(4)));
    assert_eq!(pair.take(Master), Ok(b"out\r\n".to_vec()));
    assert_eq!(pair.write(Master, b"in\r", 0), Some(Ok(3)));
    assert_eq!(pair.take(Master), Ok(b"in\r\n".to_vec()), "the echo");
    assert_eq!(pair.take(Slave), Ok(b"in\n".to_vec()));
    assert_eq!((pair.take(Slave), pair.take(Master)), (Err(Errno::EAGAIN), Err(Errno::EAGAIN)));
}

#[test]
fn a_waiting_reader_of_either_side_is_answered_by_the_other() {
    let mut pair = Pair::new();
    pair.make_raw();
    assert_eq!(pair.read(Master, 100, 0), None);
    let reader = pair.tag;
    assert_eq!(pair.write(Slave, b"abc", 0), Some(Ok(3)));
    assert_eq!((pair.result(reader), &pair.world.buffers[&(reader as u32)][..]), (Some(Ok(3)), &b"abc"[..]));
    assert_eq!(pair.read(Slave, 2, 0), None);
    let reader = pair.tag;
    assert_eq!(pair.write(Master, b"def", 0), Some(Ok(3)));
    assert_eq!(pair.result(reader), Some(Ok(2)));
    assert_eq!(pair.take(Slave), Ok(b"f".to_vec()));
}

#[test]
fn a_writer_waits_for_room_and_no_byte_is_lost() {
    for (writer, reader) in [(Slave, Master), (Master, Slave)] {
        let mut pair = Pair::new();
        pair.make_raw();
        let bytes: Vec<u8> = (0..20_000u32).map(|index| (index * 7 / 3) as u8).collect();
        assert_eq!(pair.write(writer, &bytes, 0), None);
        let waits = pair.tag;
        let mut got = Vec::new();
        while got.len() < bytes.len() {
            got.extend(pair.take(reader).expect("there is more"));
        }
        assert_eq!((got == bytes, pair.result(waits)), (true, Some(Ok(20_000))));
        assert_eq!(pair.take(reader), Err(Errno::EAGAIN));
        let room = pair.write(writer, &bytes, chardev::NONBLOCK);
        assert_eq!(room, Some(Ok(4096)));
        assert_eq!(pair.write(writer, &bytes, chardev::NONBLOCK), Some(Err(Errno::EAGAIN)));
        assert_eq!(pair.events(writer) & POLLOUT, 0);
    }
}

#[test]
fn a_write_of_many_lines_waits_until_they_are_read() {
    let mut pair = Pair::new();
    pair.set(|settings| settings.local &= !lflag::ECHO);
    let lines = b"a line\n".repeat(1000);
    assert_eq!(pair.write(Master, &lines, 0), None);
    let mut got = Vec::new();
    while let Ok(line) = pair.take(Slave) {
        assert_eq!(line, b"a line\n");
        got.extend(line);
    }
    assert_eq!(got, lines);
}

#[test]
fn after_the_last_close_of_the_slave_the_master_reads_what_is_left_and_then_fails() {
    let mut pair = Pair::new();
    pair.pty.open_slave(0, 20, SHELL, false).expect("is unlocked");
    pair.write(Slave, b"last", 0);
    pair.pty.close_slave(&mut pair.world);
    assert_eq!(pair.events(Master), POLLIN | POLLOUT, "it is open once more");
    pair.pty.close_slave(&mut pair.world);
    assert_eq!(pair.events(Master), POLLIN | POLLOUT | POLLHUP);
    assert_eq!((pair.take(Master), pair.take(Master)), (Ok(b"last".to_vec()), Err(Errno::EIO)));
    pair.pty.open_slave(0, 20, SHELL, false).expect("it can be opened again");
    assert_eq!((pair.take(Master), pair.events(Master)), (Err(Errno::EAGAIN), POLLOUT));
    assert_eq!(pair.read(Master, 10, 0), None);
    let waits = pair.tag;
    pair.pty.close_slave(&mut pair.world);
    assert_eq!(pair.result(waits), Some(Err(Errno::EIO)));
}

#[test]
fn the_close_of_the_master_hangs_the_slave_up() {
    let mut pair = Pair::new();
    assert_eq!(pair.control(Slave, 0x5410, &20u32.to_le_bytes()), Some(Ok(0)), "another group in the foreground");
    let grant = pair.next();
    let read = chardev::Read { minor: 0, grant, bytes: 10, flags: 0, caller: 20 | 10 << 32 };
    assert_eq!(pair.ask(Slave, chardev::Request::Read(read)), None);
    pair.pty.close_master(&mut pair.world);
    assert_eq!(pair.result(pair.tag), Some(Ok(0)));
    let expected = [(signal::SIGHUP, 10), (signal::SIGCONT, 10), (signal::SIGHUP, 20), (signal::SIGCONT, 20)];
    assert_eq!((&pair.world.signals[..], pair.pty.session()), (&expected[..], 0));
    assert_eq!((pair.take(Slave), pair.events(Slave)), (Ok(Vec::new()), HUNG_UP));
    assert_eq!(pair.write(Slave, b"x", 0), Some(Err(Errno::EIO)));
    assert_eq!(pair.control(Slave, 0x5401, b""), Some(Err(Errno::EIO)));
    assert_eq!(pair.pty.open_slave(0, 10, SHELL, true), Err(Errno::EIO));
    assert!(pair.pty.node().is_none() && !pair.pty.is_unused());
    pair.pty.close_slave(&mut pair.world);
    assert!(pair.pty.is_unused());
}

const SUCCESSOR: Endpoint = Endpoint::new(abi::endpoint::slot::VFS, 2);

#[test]
fn a_restarted_vfs_says_what_is_open() {
    let mut pair = Pair::new();
    assert_eq!(pair.read(Slave, 10, 0), None);
    assert_eq!(pair.read(Master, 10, 0), None);
    pair.pty.set_uses(&mut pair.world, Endpoint::NONE, true, 1);
    assert_eq!((pair.pty.waiting.len(), pair.pty.terminal.waiting.len()), (1, 1), "it has asked itself");
    pair.pty.set_uses(&mut pair.world, SUCCESSOR, true, 1);
    assert!(pair.pty.waiting.is_empty() && pair.pty.terminal.waiting.is_empty(), "they come again");
    assert_eq!(pair.events(Master), POLLOUT);
    pair.pty.set_uses(&mut pair.world, SUCCESSOR, true, 0);
    assert_eq!(pair.events(Master), POLLOUT | POLLHUP);
    pair.pty.open_slave(0, 10, SHELL, true).expect("the master is open");
    pair.pty.set_uses(&mut pair.world, SUCCESSOR, false, 1);
    assert_eq!((pair.events(Slave), pair.world.signals.len()), (HUNG_UP, 2));
    pair.pty.set_uses(&mut pair.world, SUCCESSOR, false, 0);
    assert!(pair.pty.is_unused());
}

#[test]
fn each_line_is_an_edge_for_the_slave_and_each_output_one_for_the_master() {
    let mut pair = Pair::new();
    let (mut ours, mut others) = (0, 0);
    assert_eq!(pair.edge(Slave, POLLIN, &mut ours), 0);
    for line in [b"a\n", b"b\n"] {
        pair.write(Master, line, 0);
        assert_eq!([pair.edge(Slave, POLLIN, &mut ours), pair.edge(Slave, POLLIN, &mut ours)], [POLLIN, 0]);
        assert_eq!([pair.edge(Master, POLLIN, &mut others), pair.edge(Master, POLLIN, &mut others)], [POLLIN, 0]);
    }
    pair.write(Master, b"not whole", 0);
    assert_eq!(pair.edge(Slave, POLLIN, &mut ours), 0);
    pair.take(Slave).expect("a line");
    assert_eq!(pair.edge(Slave, POLLIN, &mut ours), 0, "a read is no edge");
    pair.control_with(Slave, TCFLSH, b"", 0);
    pair.write(Master, b"\x04", 0);
    assert_eq!(pair.edge(Slave, POLLIN, &mut ours), POLLIN, "an end of file");
    pair.write(Master, b"\x04", 0);
    assert_eq!(pair.edge(Slave, POLLIN, &mut ours), POLLIN, "another one");
}

#[test]
fn reads_and_writes_are_edges_for_those_who_write() {
    let mut pair = Pair::new();
    pair.set(|settings| settings.local &= !lflag::ECHO);
    let (mut ours, mut others) = (0, 0);
    assert_eq!((pair.edge(Slave, POLLOUT, &mut ours), pair.edge(Master, POLLOUT, &mut others)), (POLLOUT, POLLOUT));
    pair.write(Slave, b"x", 0);
    assert_eq!((pair.edge(Slave, POLLOUT, &mut ours), pair.edge(Master, POLLOUT, &mut others)), (POLLOUT, 0));
    pair.take(Master).expect("a byte");
    assert_eq!((pair.edge(Slave, POLLOUT, &mut ours), pair.edge(Master, POLLOUT, &mut others)), (POLLOUT, 0));
    pair.write(Master, b"x\n", 0);
    assert_eq!((pair.edge(Slave, POLLOUT, &mut ours), pair.edge(Master, POLLOUT, &mut others)), (0, POLLOUT));
    pair.take(Slave).expect("a line");
    assert_eq!((pair.edge(Slave, POLLOUT, &mut ours), pair.edge(Master, POLLOUT, &mut others)), (0, POLLOUT));
    pair.set(|settings| settings.local &= !lflag::ISIG);
    assert_eq!((pair.edge(Slave, POLLOUT, &mut ours), pair.edge(Master, POLLOUT, &mut others)), (POLLOUT, 0));
}

#[test]
fn the_end_of_either_side_is_an_edge_for_the_other() {
    const WAITS: chardev::Poll = chardev::Poll { minor: 0, events: POLLIN, now: false, since: 0 };
    let mut pair = Pair::new();
    let (mut ours, mut others) = (0, 0);
    assert_eq!(pair.edge(Slave, POLLOUT, &mut ours), POLLOUT);
    pair.pty.close_slave(&mut pair.world);
    assert_eq!(pair.edge(Master, POLLHUP, &mut others), POLLHUP);
    assert_eq!(pair.edge(Master, POLLHUP, &mut others), 0);
    pair.pty.open_slave(0, 10, SHELL, true).expect("the master is open");
    pair.next();
    assert_eq!(pair.ask(Slave, chardev::Request::Poll(WAITS)), None);
    let waits = pair.tag;
    pair.pty.close_master(&mut pair.world);
    assert_eq!(pair.result(waits).expect("it is answered").expect("is open") & 31, POLLIN);
    assert_eq!(pair.edge(Slave, 31, &mut ours), HUNG_UP);
    assert_eq!(pair.edge(Slave, 31, &mut ours), 0);
    pair.next();
    assert_eq!(pair.ask(Slave, chardev::Request::Poll(chardev::Poll { since: ours, ..WAITS })), None);
    let tag = pair.tag;
    pair.pty.cancel(&mut pair.world, Endpoint::NONE, tag);
    assert_eq!(pair.result(tag), Some(Err(Errno::EINTR)));
}

#[test]
fn who_waits_for_the_next_line_is_answered_by_it() {
    let mut pair = Pair::new();
    let mut since = 0;
    pair.write(Master, b"a\n", 0);
    assert_eq!(pair.edge(Slave, POLLIN, &mut since), POLLIN);
    pair.next();
    let poll = chardev::Poll { minor: 0, events: POLLIN, now: false, since };
    assert_eq!(pair.ask(Slave, chardev::Request::Poll(poll)), None);
    let tag = pair.tag;
    pair.write(Master, b"b", 0);
    assert_eq!(pair.result(tag), None);
    pair.write(Master, b"\n", 0);
    assert_eq!(pair.result(tag).map(|reply| reply.expect("is open") & 31), Some(POLLIN));
}

#[test]
fn packet_mode_tells_what_happens_to_the_slave() {
    let mut pair = Pair::new();
    pair.control_with(Slave, TCFLSH, b"", 0);
    assert_eq!(pair.control(Master, request::TIOCPKT, &1u32.to_le_bytes()), Some(Ok(0)));
    assert_eq!(pair.take(Master), Err(Errno::EAGAIN), "what was before is not told");
    pair.write(Slave, b"text", 0);
    assert_eq!(pair.take(Master), Ok(b"\0text".to_vec()));
    pair.write(Slave, b"text", 0);
    pair.control_with(Slave, TCFLSH, b"", 2);
    assert_eq!(pair.events(Master), POLLPRI | POLLIN | POLLOUT);
    let mut since = 0;
    assert_eq!(pair.edge(Master, POLLPRI, &mut since), POLLPRI);
    pair.control_with(Slave, TCFLSH, b"", 2);
    assert_eq!([pair.edge(Master, POLLPRI, &mut since), pair.edge(Master, POLLPRI, &mut since)], [POLLPRI, 0]);
    assert_eq!(pair.take(Master), Ok(vec![status::FLUSHREAD | status::FLUSHWRITE]));
    assert_eq!(pair.take(Master), Err(Errno::EAGAIN));
    pair.control_with(Slave, 0x540a, b"", 0);
    assert_eq!(pair.take(Master), Ok(vec![status::STOP]));
    pair.control_with(Slave, 0x540a, b"", 1);
    assert_eq!(pair.take(Master), Ok(vec![status::START]));
    pair.set(|settings| settings.input &= !crate::termios::iflag::IXON);
    pair.set(|settings| settings.local |= lflag::EXTPROC);
    assert_eq!(pair.take(Master), Ok(vec![status::NOSTOP | status::IOCTL]));
    pair.write(Slave, b"x", 0);
    pair.control(Master, request::TIOCPKT, &0u32.to_le_bytes());
    assert_eq!(pair.take(Master), Ok(b"x".to_vec()));
}

#[test]
fn keys_and_the_master_signal_the_foreground() {
    let mut pair = Pair::new();
    pair.write(Master, b"\x03\x1a", 0);
    assert_eq!(pair.control_with(Master, request::TIOCSIG, b"", u64::from(signal::SIGQUIT)), Some(Ok(0)));
    assert_eq!(pair.control_with(Master, request::TIOCSIG, b"", 9), Some(Err(Errno::EINVAL)));
    let size = [40, 0, 100, 0, 0, 0, 0, 0];
    assert_eq!(pair.control(Master, 0x5414, &size), Some(Ok(0)));
    let expected = [signal::SIGINT, signal::SIGTSTP, signal::SIGQUIT, signal::SIGWINCH].map(|number| (number, 10));
    assert_eq!(pair.world.signals, expected);
}

#[test]
fn writers_stop_with_the_output_and_what_was_written_arrives() {
    let mut pair = Pair::new();
    pair.make_raw();
    pair.write(Slave, b"before", 0);
    pair.control_with(Slave, 0x540a, b"", 0);
    assert_eq!(pair.write(Slave, b"after", 0), None);
    let waits = pair.tag;
    assert_eq!((pair.take(Master), pair.result(waits)), (Ok(b"before".to_vec()), None));
    pair.control_with(Slave, 0x540a, b"", 1);
    assert_eq!((pair.take(Master), pair.result(waits)), (Ok(b"after".to_vec()), Some(Ok(5))));
}

#[test]
fn a_cancelled_request_of_the_master_is_interrupted() {
    let mut pair = Pair::new();
    pair.make_raw();
    assert_eq!(pair.read(Master, 10, 0), None);
    pair.pty.cancel(&mut pair.world, Endpoint::NONE, pair.tag);
    assert_eq!(pair.result(pair.tag), Some(Err(Errno::EINTR)));
    assert_eq!(pair.write(Master, &[b'x'; 5000], 0), None);
    pair.pty.cancel(&mut pair.world, Endpoint::NONE, pair.tag);
    assert_eq!(pair.result(pair.tag), Some(Ok(4096)));
}

#[test]
fn settings_of_a_slave_keep_eight_bits() {
    let mut pair = Pair::new();
    pair.set(|settings| settings.control = 0o10 | crate::termios::cflag::PARENB);
    assert_eq!(pair.pty.terminal.termios.control, 0o10 | 0o60 | 0o200);
    assert_eq!(pair.control(Slave, 0x5415, b""), Some(Err(Errno::ENOTTY)), "there are no modem lines");
}
