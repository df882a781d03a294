//! Requests that wait, job control and ioctls, against a world that records.

use super::*;
use crate::termios::TERMIOS_BYTES;
use abi::Endpoint;
use std::collections::HashMap;

#[derive(Default)]
struct Recorder {
    buffers: HashMap<u32, Vec<u8>>,
    answers: Vec<(u64, Result<u64, Errno>)>,
    signals: Vec<(u32, u32)>,
    now_ns: u64,
    dead: Option<Endpoint>,
}

impl Recorder {
    fn check(&self, request: &Message) -> Result<(), Errno> {
        if self.dead == Some(request.source) { Err(Errno::EDEADSRCDST) } else { Ok(()) }
    }
}

impl World for Recorder {
    fn copy_out(&mut self, request: &Message, grant: GrantId, data: &[u8]) -> Result<(), Errno> {
        self.check(request)?;
        self.buffers.insert(grant.0, data.to_vec());
        Ok(())
    }
    fn copy_in(&mut self, request: &Message, grant: GrantId, offset: u64, buffer: &mut [u8]) -> Result<(), Errno> {
        self.check(request)?;
        let source = self.buffers.get(&grant.0).ok_or(Errno::EFAULT)?;
        buffer.copy_from_slice(&source[offset as usize..offset as usize + buffer.len()]);
        Ok(())
    }
    fn answer(&mut self, request: &Message, result: Result<u64, Errno>) {
        self.answers.push((request.tag(), result));
    }
    fn signal(&mut self, signal: u32, group: u32) {
        self.signals.push((signal, group));
    }
    fn now_ns(&self) -> u64 {
        self.now_ns
    }
}

const SHELL: Caller = Caller { group: 10, session: 10 };
const BACKGROUND: Caller = Caller { group: 20, session: 10 };

fn word(caller: Caller) -> u64 {
    u64::from(caller.group) | u64::from(caller.session) << 32
}

fn request(tag: u64) -> Message {
    let mut message = Message::new(0);
    message.words[6] = tag;
    message
}

fn read(terminal: &mut Terminal, world: &mut Recorder, tag: u64, caller: Caller, flags: u64) {
    let read = chardev::Read { minor: 0, grant: GrantId(tag as u32), bytes: 100, flags, caller: word(caller) };
    terminal.read(world, &request(tag), read);
}

fn write(terminal: &mut Terminal, world: &mut Recorder, tag: u64, data: Vec<u8>, flags: u64) {
    let bytes = data.len() as u64;
    world.buffers.insert(tag as u32, data);
    let write = chardev::Write { minor: 0, grant: GrantId(tag as u32), bytes, flags, caller: word(SHELL) };
    terminal.write(world, &request(tag), write);
}

fn control(terminal: &mut Terminal, world: &mut Recorder, tag: u64, number: u64, caller: Caller, pid: u64) {
    let control = chardev::Control {
        minor: 0,
        request: number,
        argument: 0,
        grant: GrantId(tag as u32),
        caller: pid | u64::from(caller.group) << 32,
        session: u64::from(caller.session),
    };
    terminal.control(world, &request(tag), control);
}

fn opened() -> (Terminal, Recorder) {
    let mut terminal = Terminal::new();
    assert_eq!(terminal.open(0, 10, SHELL), chardev::OPENED_CONTROLLING);
    (terminal, Recorder::default())
}

#[test]
fn a_read_waits_for_its_line() {
    let (mut terminal, mut world) = opened();
    read(&mut terminal, &mut world, 1, SHELL, 0);
    terminal.input(&mut world, b"ls");
    assert!(world.answers.is_empty());
    terminal.input(&mut world, b"\r");
    assert_eq!(world.answers, [(1, Ok(3))]);
    assert_eq!(world.buffers[&1], b"ls\n");
}

#[test]
fn a_nonblocking_read_without_input_is_refused() {
    let (mut terminal, mut world) = opened();
    read(&mut terminal, &mut world, 1, SHELL, chardev::NONBLOCK);
    assert_eq!(world.answers, [(1, Err(Errno::EAGAIN))]);
}

#[test]
fn a_cancelled_read_is_interrupted_and_takes_nothing() {
    let (mut terminal, mut world) = opened();
    read(&mut terminal, &mut world, 1, SHELL, 0);
    terminal.cancel(&mut world, Endpoint::NONE, 1);
    terminal.input(&mut world, b"x\r");
    read(&mut terminal, &mut world, 2, SHELL, 0);
    assert_eq!(world.answers, [(1, Err(Errno::EINTR)), (2, Ok(2))]);
}

#[test]
fn a_background_read_gets_its_group_stopped_and_waits() {
    let (mut terminal, mut world) = opened();
    read(&mut terminal, &mut world, 1, BACKGROUND, 0);
    assert_eq!(world.signals, [(signal::SIGTTIN, 20)]);
    terminal.input(&mut world, b"x\r");
    assert!(world.answers.is_empty());
}

#[test]
fn keys_signal_the_foreground_group() {
    let (mut terminal, mut world) = opened();
    world.buffers.insert(7, 20u32.to_le_bytes().to_vec());
    control(&mut terminal, &mut world, 7, 0x5410, SHELL, 10);
    terminal.input(&mut world, b"\x03\x1a");
    assert_eq!(world.signals, [(signal::SIGINT, 20), (signal::SIGTSTP, 20)]);
}

#[test]
fn a_large_write_waits_for_room_and_is_answered_once() {
    let (mut terminal, mut world) = opened();
    write(&mut terminal, &mut world, 1, vec![b'x'; 10_000], 0);
    assert!(world.answers.is_empty());
    let mut sent = 0;
    let mut buffer = [0; 512];
    while let count @ 1.. = terminal.take_output(&mut buffer) {
        sent += count;
        terminal.output_done(&mut world);
    }
    assert_eq!((sent, world.answers), (10_000, vec![(1, Ok(10_000))]));
}

#[test]
fn a_nonblocking_write_takes_what_fits() {
    let (mut terminal, mut world) = opened();
    write(&mut terminal, &mut world, 1, vec![b'x'; 10_000], chardev::NONBLOCK);
    write(&mut terminal, &mut world, 2, vec![b'x'; 1], chardev::NONBLOCK);
    assert_eq!(world.answers, [(1, Ok(4096)), (2, Err(Errno::EAGAIN))]);
}

#[test]
fn settings_with_drain_wait_for_the_device() {
    let (mut terminal, mut world) = opened();
    write(&mut terminal, &mut world, 1, b"hi".to_vec(), 0);
    let mut raw = Termios::initial();
    raw.local = 0;
    world.buffers.insert(2, raw.to_bytes().to_vec());
    control(&mut terminal, &mut world, 2, 0x5403, SHELL, 10);
    assert_eq!(terminal.take_output(&mut [0; 64]), 2);
    assert_eq!(world.answers.len(), 1);
    terminal.output_done(&mut world);
    assert_eq!(world.answers, [(1, Ok(2)), (2, Ok(0))]);
    assert_eq!(terminal.termios, raw);
}

#[test]
fn settings_are_given_as_linux_lays_them_out() {
    let (mut terminal, mut world) = opened();
    control(&mut terminal, &mut world, 3, 0x5401, SHELL, 10);
    assert_eq!(world.buffers[&3].len(), TERMIOS_BYTES);
    assert_eq!(Termios::from_bytes(world.buffers[&3][..].try_into().unwrap()), Termios::initial());
}

#[test]
fn an_unknown_ioctl_is_not_for_terminals() {
    let (mut terminal, mut world) = opened();
    control(&mut terminal, &mut world, 1, 0x1234, SHELL, 10);
    assert_eq!(world.answers, [(1, Err(Errno::ENOTTY))]);
}

#[test]
fn strangers_do_not_learn_the_foreground_group() {
    let (mut terminal, mut world) = opened();
    control(&mut terminal, &mut world, 1, 0x540f, Caller { group: 5, session: 5 }, 5);
    assert_eq!(world.answers, [(1, Err(Errno::ENOTTY))]);
}

#[test]
fn the_end_of_the_session_hangs_the_foreground_up() {
    let (mut terminal, mut world) = opened();
    terminal.session_end(&mut world, 10);
    assert_eq!(world.signals, [(signal::SIGHUP, 10), (signal::SIGCONT, 10)]);
    assert_eq!(terminal.open(0, 30, Caller { group: 30, session: 30 }), chardev::OPENED_CONTROLLING);
}

#[test]
fn vtime_ends_a_read_that_gets_nothing() {
    let (mut terminal, mut world) = opened();
    terminal.termios.local &= !lflag::ICANON;
    terminal.termios.characters[cc::VMIN] = 0;
    terminal.termios.characters[cc::VTIME] = 2;
    read(&mut terminal, &mut world, 1, SHELL, 0);
    assert!(world.answers.is_empty());
    assert_eq!(terminal.deadline_ns(), Some(200_000_000));
    world.now_ns = 200_000_000;
    terminal.settle(&mut world);
    assert_eq!(world.answers, [(1, Ok(0))]);
}

#[test]
fn poll_waits_for_input_but_not_for_room() {
    let (mut terminal, mut world) = opened();
    let poll = |events| chardev::Poll { minor: 0, events, now: false };
    terminal.poll(&mut world, &request(1), poll(POLLIN));
    terminal.poll(&mut world, &request(2), poll(POLLIN | POLLOUT));
    terminal.input(&mut world, b"x\r");
    assert_eq!(world.answers, [(2, Ok(POLLOUT)), (1, Ok(POLLIN))]);
}

/// The same request from the n-th incarnation of vfs.
fn from_vfs(generation: u32, tag: u64) -> Message {
    Message { source: Endpoint::new(abi::endpoint::slot::VFS, generation), ..request(server::OWN_TAG | tag) }
}

#[test]
fn a_read_that_comes_again_gets_what_it_got_and_takes_no_more() {
    let (mut terminal, mut world) = opened();
    let read = chardev::Read { minor: 0, grant: GrantId(1), bytes: 100, flags: 0, caller: word(SHELL) };
    terminal.read(&mut world, &from_vfs(1, 1), read);
    terminal.input(&mut world, b"one\rtwo\r");
    terminal.read(&mut world, &from_vfs(2, 1), read);
    terminal.read(&mut world, &from_vfs(2, 2), read);
    assert_eq!(world.answers.iter().map(|(_, result)| *result).collect::<Vec<_>>(), [Ok(4), Ok(4), Ok(4)]);
    assert_eq!(world.buffers[&1], b"two\n");
}

#[test]
fn input_waits_for_the_successor_of_a_dead_vfs() {
    let (mut terminal, mut world) = opened();
    let read = |grant| chardev::Read { minor: 0, grant: GrantId(grant), bytes: 100, flags: 0, caller: word(SHELL) };
    terminal.read(&mut world, &from_vfs(1, 1), read(1));
    world.dead = Some(Endpoint::new(abi::endpoint::slot::VFS, 1));
    terminal.input(&mut world, b"line\r");
    assert!(world.answers.is_empty());
    terminal.read(&mut world, &from_vfs(2, 1), read(2));
    assert_eq!(world.buffers[&2], b"line\n");
    assert_eq!(world.answers.len(), 1);
}

#[test]
fn a_write_that_comes_again_goes_on_where_it_was() {
    let (mut terminal, mut world) = opened();
    world.buffers.insert(1, (0..10_000).map(|number| b'a' + (number % 26) as u8).collect());
    let write = chardev::Write { minor: 0, grant: GrantId(1), bytes: 10_000, flags: 0, caller: word(SHELL) };
    terminal.write(&mut world, &from_vfs(1, 1), write);
    assert!(world.answers.is_empty());
    world.dead = Some(Endpoint::new(abi::endpoint::slot::VFS, 1));
    let mut written = Vec::new();
    let mut buffer = [0; 1000];
    for _ in 0..30 {
        let count = terminal.take_output(&mut buffer);
        written.extend_from_slice(&buffer[..count]);
        terminal.output_done(&mut world);
        if written.len() == 3000 {
            terminal.write(&mut world, &from_vfs(2, 1), write);
        }
    }
    assert_eq!(written, world.buffers[&1]);
    assert_eq!(world.answers.iter().map(|(_, result)| *result).collect::<Vec<_>>(), [Ok(10_000)]);
}
