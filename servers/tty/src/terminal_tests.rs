//! Requests that wait, job control and ioctls, against a world that records.

use super::*;
use crate::control::request as number;
use crate::termios::TERMIOS_BYTES;
use abi::Endpoint;
use std::collections::HashMap;

#[derive(Default)]
struct Recorder {
    buffers: HashMap<u32, Vec<u8>>,
    answers: Vec<(u64, Result<u64, Errno>)>,
    signals: Vec<(u32, u32)>,
    progress: Vec<(u64, u64)>,
    dead: Option<Endpoint>,
    now_ns: u64,
    probes: Vec<u32>,
    judged: Vec<u32>,
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
    fn progress(&mut self, request: &Message, bytes: u64) {
        self.progress.push((request.tag(), bytes));
    }
    fn answer(&mut self, request: &Message, result: Result<u64, Errno>) {
        self.answers.push((request.tag(), result));
    }
    fn signal(&mut self, signal: u32, group: u32) {
        self.signals.push((signal, group));
    }
    fn probe(&mut self, pid: u32) {
        self.probes.push(pid);
    }
    fn judge(&mut self, pid: u32) {
        self.judged.push(pid);
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
    let mut message = read.message();
    message.words[6] = tag;
    terminal.read(world, &message, read);
}

fn write(terminal: &mut Terminal, world: &mut Recorder, tag: u64, data: Vec<u8>, flags: u64) {
    let bytes = data.len() as u64;
    world.buffers.insert(tag as u32, data);
    let write = chardev::Write { minor: 0, grant: GrantId(tag as u32), bytes, flags, caller: word(SHELL), process: 10 };
    terminal.write(world, &request(tag), write, 0);
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

/// Plays uart until there is nothing left to send. → how many bytes that were.
fn send_all(terminal: &mut Terminal, world: &mut Recorder) -> usize {
    let mut sent = 0;
    let mut buffer = [0; 512];
    while let (position, count @ 1..) = terminal.output.peek(&mut buffer) {
        sent += count;
        terminal.output_done(world, position + count as u64);
    }
    sent
}

/// The terminal as a successor finds it.
fn reborn(terminal: &Terminal) -> Terminal {
    let mut writer = Writer::default();
    terminal.save(&mut writer);
    Terminal::load(&mut Reader::new(writer.bytes()), Lower::Serial).expect("is whole")
}

fn opened() -> (Terminal, Recorder) {
    let mut terminal = Terminal::new();
    assert_eq!(terminal.open(0, 10, SHELL, true), chardev::OPENED_CONTROLLING);
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

/// An ioctl of a process in the background, by its tag, with nothing in the argument's memory.
fn change_behind(terminal: &mut Terminal, world: &mut Recorder, tag: u64, number: u64) {
    let caller = 21 | u64::from(BACKGROUND.group) << 32;
    let control = chardev::Control {
        minor: 0,
        request: number,
        argument: 1,
        grant: GrantId(tag as u32),
        caller,
        session: BACKGROUND.session.into(),
    };
    let mut message = control.message();
    message.words[6] = tag;
    terminal.control(world, &message, control);
}

#[test]
fn a_background_change_waits_for_a_verdict() {
    let (mut terminal, mut world) = opened();
    change_behind(&mut terminal, &mut world, 1, number::TCFLSH);
    change_behind(&mut terminal, &mut world, 2, number::TIOCSPGRP);
    assert_eq!((world.judged.clone(), world.answers.len()), (vec![21, 21], 0));
    terminal.judged(&mut world, 22, true);
    assert!(world.answers.is_empty(), "another process");
    terminal.judged(&mut world, 21, false);
    assert_eq!(world.answers, [(1, Err(Errno::EIO)), (2, Err(Errno::ENOTTY))], "its group is orphaned");
    change_behind(&mut terminal, &mut world, 3, number::TCFLSH);
    terminal.judged(&mut world, 21, true);
    assert_eq!(world.answers[2..], [(3, Ok(0))]);
    change_behind(&mut terminal, &mut world, 4, number::TCSETS);
    terminal.cancel(&mut world, Endpoint::NONE, 4);
    assert_eq!(world.answers[3..], [(4, Err(Errno::EINTR))], "it was stopped");
    terminal.judged(&mut world, 21, true);
    assert_eq!(world.answers.len(), 4);
    change_behind(&mut terminal, &mut world, 5, number::FIONREAD);
    assert_eq!((world.judged.len(), world.answers.len()), (4, 5), "a question");
}

#[test]
fn what_waits_in_the_background_goes_on_in_the_foreground() {
    let (mut terminal, mut world) = opened();
    change_behind(&mut terminal, &mut world, 1, number::TCFLSH);
    read(&mut terminal, &mut world, 2, BACKGROUND, 0);
    world.buffers.insert(7, 20u32.to_le_bytes().to_vec());
    control(&mut terminal, &mut world, 7, number::TIOCSPGRP, SHELL, 10);
    terminal.input(&mut world, b"x\r");
    world.answers.sort_by_key(|(tag, _)| *tag);
    assert_eq!(world.answers, [(1, Ok(0)), (2, Ok(2)), (7, Ok(0))]);
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
    assert_eq!(send_all(&mut terminal, &mut world), 10_000);
    assert_eq!((world.answers, world.progress[0]), (vec![(1, Ok(10_000))], (1, 4096)));
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
    assert_eq!(send_all(&mut terminal, &mut world), 2);
    assert_eq!(world.answers.len(), 1);
    let Some(Command::Drain(ticket)) = terminal.commands.next() else { panic!("does not wait for the line") };
    terminal.command_done(&mut world, ticket, Ok(0));
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
    assert_eq!(terminal.open(0, 30, Caller { group: 30, session: 30 }, true), chardev::OPENED_CONTROLLING);
}

#[test]
fn a_screen_is_taken_back_from_a_program_that_leaves_the_foreground() {
    let (mut terminal, mut world) = opened();
    terminal.commands.take();
    terminal.set_drawer(77, 10);
    terminal.session_end(&mut world, 10);
    assert_eq!(terminal.commands.take(), [Command::TakeBack]);
    assert_eq!(reborn(&terminal).drawer, Drawer::NONE);
    terminal.session_end(&mut world, 10);
    assert_eq!(terminal.commands.take(), []);
}

#[test]
fn the_process_that_has_the_screen_is_looked_for_when_a_file_is_closed() {
    let (mut terminal, mut world) = opened();
    terminal.commands.take();
    terminal.close(&mut world);
    assert_eq!((terminal.uses(), world.probes.len()), (0, 0));
    // One from elsewhere, whose group is not of this terminal's session.
    terminal.open(0, 77, BACKGROUND, false);
    terminal.set_drawer(77, 70);
    terminal.open(0, 78, BACKGROUND, false);
    terminal.close(&mut world);
    terminal.process_gone(78);
    assert_eq!((terminal.uses(), terminal.commands.take()), (1, Vec::new()));
    let mut successor = reborn(&terminal);
    successor.set_uses(&mut world, 0);
    assert_eq!((successor.uses(), world.probes), (0, vec![77, 77]));
    successor.commands.take();
    successor.process_gone(77);
    assert_eq!((successor.commands.take(), successor.drawer), (vec![Command::TakeBack], Drawer::NONE));
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
    let poll = |events| chardev::Poll { minor: 0, events, now: false, since: 0 };
    terminal.poll(&mut world, &request(1), poll(POLLIN));
    terminal.poll(&mut world, &request(2), poll(POLLIN | POLLOUT));
    terminal.input(&mut world, b"x\r");
    let events: Vec<_> =
        world.answers.iter().map(|(tag, reply)| (*tag, reply.map(|word| word & 0xffff_ffff))).collect();
    assert_eq!(events, [(2, Ok(POLLOUT)), (1, Ok(POLLIN))]);
}

#[test]
fn a_successor_has_the_settings_the_queues_and_the_line_being_typed() {
    let (mut terminal, mut world) = opened();
    write(&mut terminal, &mut world, 1, b"out".to_vec(), 0);
    terminal.input(&mut world, b"first\rsec");
    terminal.termios.local &= !lflag::ISIG;
    let mut terminal = reborn(&terminal);
    assert!(!terminal.termios.has_local(lflag::ISIG));
    terminal.input(&mut world, b"ond\r");
    read(&mut terminal, &mut world, 2, SHELL, 0);
    read(&mut terminal, &mut world, 3, SHELL, 0);
    assert_eq!((&world.buffers[&2][..], &world.buffers[&3][..]), (&b"first\n"[..], &b"second\n"[..]));
    let mut shown = [0; 64];
    let (_, count) = terminal.output.peek(&mut shown);
    assert_eq!(&shown[..count], b"outfirst\r\nsecond\r\n");
    assert_eq!((terminal.session, terminal.group, terminal.received), (10, 10, 13));
}

#[test]
fn whatever_the_preserved_bytes_are_they_are_read_or_refused() {
    let (mut terminal, mut world) = opened();
    terminal.input(&mut world, b"one\rtwo\rthree");
    let mut writer = Writer::default();
    terminal.save(&mut writer);
    for at in 0..writer.bytes().len() {
        let mut bytes = writer.bytes().to_vec();
        assert!(Terminal::load(&mut Reader::new(&bytes[..at]), Lower::Serial).is_none());
        bytes[at] ^= 0xff;
        if let Some(mut terminal) = Terminal::load(&mut Reader::new(&bytes), Lower::Serial) {
            read(&mut terminal, &mut world, 1, SHELL, chardev::NONBLOCK);
        }
    }
}

#[test]
fn a_write_that_is_repeated_goes_on_where_it_was() {
    let (mut terminal, mut world) = opened();
    let data: Vec<u8> = (0..6000).map(|index| b'a' + (index % 26) as u8).collect();
    write(&mut terminal, &mut world, 1, data, 0);
    let mut terminal = reborn(&terminal);
    let (tag, done) = *world.progress.last().expect("it waits for room");
    let repeated =
        chardev::Write { minor: 0, grant: GrantId(1), bytes: 6000, flags: 0, caller: word(SHELL), process: 10 };
    terminal.write(&mut world, &request(tag), repeated, done as usize);
    assert_eq!(send_all(&mut terminal, &mut world), 6000);
    assert_eq!(world.answers, [(1, Ok(6000))]);
}

/// The same request from the n-th incarnation of vfs.
fn from_vfs(generation: u32, tag: u64) -> Message {
    Message { source: Endpoint::new(abi::endpoint::slot::VFS, generation), ..request(tag) }
}

#[test]
fn input_waits_for_the_successor_of_a_dead_vfs() {
    let (mut terminal, mut world) = opened();
    let read = |grant| chardev::Read { minor: 0, grant: GrantId(grant), bytes: 100, flags: 0, caller: word(SHELL) };
    terminal.read(&mut world, &from_vfs(1, 1), read(1));
    world.dead = Some(Endpoint::new(abi::endpoint::slot::VFS, 1));
    terminal.input(&mut world, b"line\r");
    assert!(world.answers.is_empty());
    terminal.forget_stale(&from_vfs(2, 1));
    terminal.read(&mut world, &from_vfs(2, 1), read(2));
    assert_eq!(world.buffers[&2], b"line\n");
    assert_eq!(world.answers.len(), 1);
}

#[test]
fn a_write_of_a_dead_vfs_tells_how_far_it_was() {
    let (mut terminal, mut world) = opened();
    world.buffers.insert(1, vec![b'x'; 10_000]);
    let write =
        chardev::Write { minor: 0, grant: GrantId(1), bytes: 10_000, flags: 0, caller: word(SHELL), process: 10 };
    terminal.write(&mut world, &from_vfs(1, 1), write, 0);
    world.dead = Some(Endpoint::new(abi::endpoint::slot::VFS, 1));
    assert_eq!(send_all(&mut terminal, &mut world), 4096);
    terminal.forget_stale(&from_vfs(2, 1));
    let (_, done) = *world.progress.last().expect("it waited for room");
    terminal.write(&mut world, &from_vfs(2, 1), write, done as usize);
    assert_eq!(send_all(&mut terminal, &mut world), 10_000 - 4096);
    assert_eq!(world.answers, [(1, Ok(10_000))]);
}

#[test]
fn the_speed_of_the_line_is_uarts_to_set() {
    let (mut terminal, mut world) = opened();
    let mut settings = Termios::initial();
    settings.control = 0o17 | 0o60 | 0o20_000_000_000;
    world.buffers.insert(1, settings.to_bytes().to_vec());
    control(&mut terminal, &mut world, 1, 0x5402, SHELL, 10);
    let expected = 38_400 | 3 << chardev::serial::LINE_LENGTH_SHIFT | chardev::serial::LINE_RTS_CTS;
    assert_eq!(terminal.commands.take(), [Command::Settings(expected)]);
    assert_eq!(reborn(&terminal).commands.next(), Some(Command::Settings(expected)));
}

#[test]
fn modem_lines_are_asked_for_and_set() {
    let (mut terminal, mut world) = opened();
    control(&mut terminal, &mut world, 1, 0x5415, SHELL, 10);
    let Some(Command::GetModem(ticket)) = terminal.commands.next() else { panic!("does not ask") };
    terminal.command_done(&mut world, ticket, Ok(0x166));
    assert_eq!(world.buffers[&1], 0x166u32.to_le_bytes());
    world.buffers.insert(2, 2u32.to_le_bytes().to_vec());
    control(&mut terminal, &mut world, 2, 0x5417, SHELL, 10);
    assert_eq!(terminal.commands.take(), [Command::Modem(MODEM_RTS)]);
}

#[test]
fn a_break_comes_after_the_output_and_ends() {
    let (mut terminal, mut world) = opened();
    write(&mut terminal, &mut world, 1, b"x".to_vec(), 0);
    control(&mut terminal, &mut world, 2, 0x5409, SHELL, 10);
    assert_eq!(terminal.commands.next(), None);
    send_all(&mut terminal, &mut world);
    let commands = terminal.commands.take();
    assert!(matches!(
        commands[..],
        [Command::Break(true), Command::Pause(_), Command::Break(false), Command::Report(_)]
    ));
    terminal.command_done(&mut world, commands[3].ticket().expect("names the request"), Ok(0));
    assert_eq!(world.answers.last(), Some(&(2, Ok(0))));
}

#[test]
fn with_ixoff_the_other_side_is_stopped_and_started() {
    let (mut terminal, mut world) = opened();
    terminal.termios.input |= iflag::IXOFF;
    terminal.termios.local = 0;
    terminal.input(&mut world, &[b'x'; 3500]);
    assert_eq!(terminal.commands.take(), [Command::SendNow(19)]);
    for tag in 1..36 {
        read(&mut terminal, &mut world, tag, SHELL, 0);
    }
    assert_eq!(terminal.commands.take(), [Command::SendNow(17)]);
}
