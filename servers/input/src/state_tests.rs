//! Requests against devices that a test plays: who gets which events, grabs, deaths, full tables.

use crate::state::{DEVICES, HANDLES, PARTS, State};
use crate::world::World;
use abi::input::{Axis, Description, EVENT_BYTES, Event, MINOR_KEYS, SET_LEDS, kind};
use abi::{Endpoint, Errno, GrantId, Message, chardev};
use recover::snapshot::{Size, Snapshots};
use std::collections::HashMap;
use std::sync::atomic::AtomicU64;
use sys::keep::Keep;

const SIZE: Size = Size::equal(PARTS, crate::PART_BYTES);
const BUFFER: GrantId = GrantId(7);
const KEY_A: u16 = 30;

#[derive(Default)]
struct Recorder {
    memory: HashMap<u32, Vec<u8>>,
    answers: Vec<(u64, Result<u64, Errno>)>,
    lights: Vec<(usize, u32)>,
    now_ns: u64,
}

impl server::Callers for Recorder {
    fn copy_out(&mut self, _: &Message, grant: GrantId, data: &[u8]) -> Result<(), Errno> {
        self.memory.insert(grant.0, data.to_vec());
        Ok(())
    }
    fn copy_in(&mut self, _: &Message, grant: GrantId, offset: u64, buffer: &mut [u8]) -> Result<(), Errno> {
        let memory = self.memory.get(&grant.0).ok_or(Errno::EFAULT)?;
        let from = memory.get(offset as usize..offset as usize + buffer.len()).ok_or(Errno::EFAULT)?;
        buffer.copy_from_slice(from);
        Ok(())
    }
    fn answer(&mut self, request: &Message, result: Result<u64, Errno>) {
        self.answers.push((request.tag(), result));
    }
}

impl World for Recorder {
    fn set_lights(&mut self, device: usize, lights: u32) {
        self.lights.push((device, lights));
    }
    fn now_ns(&self) -> u64 {
        self.now_ns
    }
    fn real_ns(&self) -> u64 {
        self.now_ns + 1_000_000_000
    }
}

/// The service with its preserved memory.
struct Service {
    state: State,
    snapshots: Snapshots,
    memory: &'static [AtomicU64],
    world: Recorder,
    tag: u64,
}

impl Service {
    fn new() -> Service {
        let mut service = Service::on(sys::host::zeroed(SIZE.bytes()));
        let mut keyboard = Description::named("keyboard", "here");
        keyboard.kinds |= 1 << kind::KEY | 1 << kind::LED | 1 << kind::REP;
        keyboard.lights = 7;
        keyboard.add_key(KEY_A);
        service.state.describe(0, keyboard);
        let mut tablet = Description::named("tablet", "there");
        tablet.kinds |= 1 << kind::ABS;
        tablet.absolute = 3;
        tablet.axes[0] = Axis { max: 100, ..Axis::default() };
        service.state.describe(1, tablet);
        service.end_turn();
        service
    }

    fn on(memory: &'static [AtomicU64]) -> Service {
        let (snapshots, _) = Snapshots::open_sized(Keep::simulated(memory, u64::MAX), 1, SIZE);
        Service { state: State::restore(&snapshots), snapshots, memory, world: Recorder::default(), tag: 0 }
    }

    /// Saves as the real one does.
    fn end_turn(&mut self) {
        let parts = self.state.take_dirty();
        self.snapshots.save(parts, |part, writer| self.state.save(part, writer));
    }

    /// Dies, and comes again with what was saved.
    fn die(&mut self) {
        let tag = self.tag;
        *self = Service { tag, ..Service::on(self.memory) };
    }

    fn repeat(&mut self, tag: u64, mut message: Message) -> Option<Result<u64, Errno>> {
        message.source = Endpoint::new(9, 1);
        message.words[6] = tag;
        let request = chardev::Request::decode(&message).expect("is a request");
        self.state.request(&mut self.world, &message, request);
        self.end_turn();
        let answer = self.world.answers.iter().rposition(|(of, _)| *of == tag);
        answer.map(|at| self.world.answers.remove(at).1)
    }

    fn ask(&mut self, message: Message) -> Option<Result<u64, Errno>> {
        self.tag += 1;
        self.repeat(self.tag, message)
    }

    fn open_as(&mut self, user: u64, minor: u64) -> Result<u64, Errno> {
        let open = chardev::Open { minor, flags: 0, caller: 0, session: 0, ids: user << 32, node: 0 };
        let opened = self.ask(open.message()).expect("is answered");
        opened.map(|word| word >> chardev::OPENED_MINOR_SHIFT)
    }

    fn open(&mut self, minor: u64) -> u64 {
        self.open_as(0, minor).expect("is opened")
    }

    fn read(&mut self, minor: u64, bytes: u64) -> Option<Result<u64, Errno>> {
        self.ask(read(minor, bytes))
    }

    fn control(&mut self, minor: u64, request: u64, argument: u64) -> Result<u64, Errno> {
        let control = chardev::Control { minor, request, argument, grant: BUFFER, caller: 0, session: 0 };
        self.ask(control.message()).expect("is answered")
    }

    fn press(&mut self, value: i32) {
        let key = Event { time_ns: self.world.now_ns, kind: kind::KEY, code: KEY_A, value };
        let end = Event { kind: kind::SYN, code: 0, value: 0, ..key };
        self.state.take_in(&mut self.world, 0, &[key, end]);
        self.end_turn();
    }

    /// The codes and values of what was read last.
    fn events(&self) -> Vec<(u8, u8)> {
        self.world.memory[&BUFFER.0].chunks(24).map(|record| (record[18], record[20])).collect()
    }
}

fn read(minor: u64, bytes: u64) -> Message {
    chardev::Read { minor, grant: BUFFER, bytes, flags: 0, caller: 0 }.message()
}

const GRAB: u64 = 0x4004_4590;
const REVOKE: u64 = 0x4004_4591;
const GET_NAME: u64 = 0x80ff_4506;
const GET_KEYS: u64 = 0x8060_4518;
const GET_AXIS_X: u64 = 0x8018_4540;

#[test]
fn a_read_waits_for_a_packet_and_has_the_real_time() {
    let mut service = Service::new();
    let keyboard = service.open(64);
    assert_eq!(service.read(keyboard, 100), None);
    service.world.now_ns = 2_500_000_000;
    service.press(1);
    assert_eq!(service.world.answers.pop(), Some((2, Ok(48))));
    assert_eq!(service.events(), [(30, 1), (0, 0)]);
    let memory = &service.world.memory[&BUFFER.0];
    assert_eq!((memory[0], u64::from_le_bytes(memory[8..16].try_into().expect("8 bytes"))), (3, 500_000));
    assert_eq!(service.read(keyboard, 10), Some(Err(Errno::EINVAL)), "no event has room");
}

#[test]
fn a_read_that_is_repeated_after_a_death_gets_the_same_events() {
    let mut service = Service::new();
    let keyboard = service.open(64);
    service.press(1);
    assert_eq!(service.read(keyboard, 24), Some(Ok(24)));
    let tag = service.tag;
    service.die();
    assert_eq!(service.repeat(tag, read(keyboard, 24)), Some(Ok(24)));
    assert_eq!(service.events(), [(30, 1)]);
    assert_eq!(service.read(keyboard, 24), Some(Ok(24)));
    assert_eq!(service.events(), [(0, 0)]);
}

#[test]
fn an_open_that_is_repeated_after_a_death_makes_no_second_file() {
    let mut service = Service::new();
    let keyboard = service.open(64);
    let open = chardev::Open { minor: 64, flags: 0, caller: 0, session: 0, ids: 0, node: 0 };
    let tag = service.tag;
    service.die();
    assert_eq!(service.repeat(tag, open.message()), Some(Ok(keyboard << chardev::OPENED_MINOR_SHIFT)));
}

#[test]
fn who_grabs_a_device_has_it_alone_until_he_closes() {
    let mut service = Service::new();
    let [first, second] = [service.open(64), service.open(64)];
    let keys = chardev::Read { minor: MINOR_KEYS, grant: BUFFER, bytes: 1024, flags: 0, caller: 0 };
    assert_eq!(service.ask(keys.message()), None);
    assert_eq!(service.control(first, GRAB, 1), Ok(0));
    assert_eq!(service.control(second, GRAB, 1), Err(Errno::EBUSY));
    assert_eq!(service.control(second, GRAB, 0), Err(Errno::EINVAL));
    service.press(1);
    assert!(service.world.answers.is_empty(), "console gets no key");
    assert_eq!(service.read(first, 48), Some(Ok(48)));
    assert_eq!(service.read(second, 48), None);
    service.ask(chardev::Close { minor: first }.message());
    service.press(0);
    let console = service.world.answers.iter().find(|(tag, _)| *tag == 3);
    assert_eq!(console, Some(&(3, Ok(EVENT_BYTES as u64))));
}

#[test]
fn a_revoked_file_shows_nothing_any_more() {
    let mut service = Service::new();
    let keyboard = service.open(64);
    assert_eq!(service.read(keyboard, 48), None);
    let waiting = service.tag;
    assert_eq!(service.control(keyboard, REVOKE, 0), Ok(0));
    assert_eq!(service.world.answers.pop(), Some((waiting, Err(Errno::ENODEV))));
    assert_eq!(service.control(keyboard, GET_NAME, 0), Err(Errno::ENODEV));
}

#[test]
fn ioctls_tell_what_a_device_is_and_what_is_pressed() {
    let mut service = Service::new();
    let [keyboard, tablet] = [service.open(64), service.open(65)];
    assert_eq!(service.control(keyboard, GET_NAME, 0), Ok(9));
    assert_eq!(service.world.memory[&BUFFER.0], b"keyboard\0");
    service.press(1);
    assert_eq!(service.control(keyboard, GET_KEYS, 0), Ok(96));
    assert_eq!(service.world.memory[&BUFFER.0][3], 1 << 6);
    assert_eq!(service.read(keyboard, 48), None, "the press was told, and is no news");
    let event = Event { kind: kind::ABS, code: 0, value: 42, time_ns: 0 };
    service.state.take_in(&mut service.world, 1, &[event]);
    assert_eq!(service.control(tablet, GET_AXIS_X, 0), Ok(0));
    assert_eq!(service.world.memory[&BUFFER.0][..12], [42, 0, 0, 0, 0, 0, 0, 0, 100, 0, 0, 0]);
    assert_eq!(service.control(keyboard, GET_AXIS_X, 0), Err(Errno::EINVAL));
    assert_eq!(service.control(keyboard, 0x5401, 0), Err(Errno::EINVAL), "it is no terminal");
}

#[test]
fn lights_reach_the_driver_and_the_readers() {
    let mut service = Service::new();
    let keyboard = service.open(64);
    assert_eq!(service.control(MINOR_KEYS, SET_LEDS, 2), Ok(0));
    assert_eq!(service.world.lights, [(0, 2)]);
    assert_eq!(service.control(MINOR_KEYS, SET_LEDS, 2), Ok(0));
    assert_eq!(service.world.lights.len(), 1, "they are set already");
    service.press(1);
    assert_eq!(service.read(keyboard, 72), Some(Ok(72)));
    assert_eq!(service.events(), [(1, 1), (30, 1), (0, 0)]);
}

#[test]
fn a_user_gets_a_share_and_leaves_a_reserve_for_the_superuser() {
    let mut service = Service::new();
    for user in 1..=4 {
        while service.open_as(user, 64).is_ok() {}
    }
    assert_eq!(service.open_as(1, 64), Err(Errno::EMFILE));
    assert_eq!(service.open_as(9, 64), Err(Errno::ENFILE));
    assert_eq!((0..HANDLES).take_while(|_| service.open_as(0, 64).is_ok()).count(), 16);
    assert_eq!(service.open_as(0, 64 + DEVICES as u64), Err(Errno::ENODEV));
    service.world.memory.insert(BUFFER.0, Vec::new());
    service.ask(chardev::SetUses { grant: BUFFER, bytes: 0 }.message());
    assert_eq!(service.open_as(1, 64).map(drop), Ok(()), "vfs has nothing open");
}

#[test]
fn a_million_random_events_harm_nobody() {
    let mut service = Service::new();
    let files = [service.open(63), service.open(64), service.open(65)];
    let mut random = 7_u64;
    let mut next = || {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        random >> 20
    };
    for round in 0..250_000 {
        let events = [(); 4].map(|()| {
            let mut event = Event::from_words([0, next() | next() << 44]);
            event.kind %= 6;
            event.code %= 48;
            event
        });
        service.state.take_in(&mut service.world, (next() % 2) as usize, &events);
        if round % 1000 == 0 {
            service.end_turn();
            for file in files {
                service.read(file, 1024);
            }
        }
    }
}
