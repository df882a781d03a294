//! The client of block drivers against a scripted driver that dies, lies and refuses.
#![forbid(unsafe_code)]

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use abi::block::{Flush, Open, Read, Write};
use abi::call::{KernelCall, RECEIVE, SENDNB, SENDREC};
use abi::endpoint::slot;
use abi::kernel::Notify;
use abi::{Endpoint, Errno, Message, Name, ds};
use fs::block_client::{BlockClient, Drivers};
use fs::device::{BlockDevice, Fetch};
use server::Inbox;
use sys::host::Kernel;

const DRIVER: Endpoint = Endpoint::new(20, 5);
const SUCCESSOR: Endpoint = Endpoint::new(20, 6);
const DS: Endpoint = Endpoint::new(slot::DS, 1);
const BYTES: u64 = 1 << 30;

/// What the driver does with a request.
#[derive(Clone, Copy)]
enum Act {
    Answers(Result<u64, Errno>),
    /// It dies; its successor is up soon.
    Dies,
    /// It dies for good.
    IsGivenUp,
    /// It answers when the test says so.
    Waits,
}

struct Script {
    acts: VecDeque<Act>,
    seen: Vec<Message>,
    /// What the client receives next.
    inbox: VecDeque<Message>,
    events: VecDeque<Message>,
    driver: Endpoint,
}

impl Script {
    /// ds tells that the driver is up as `endpoint`, or gone.
    fn tell(&mut self, endpoint: Endpoint, up: bool) {
        let (low, high) = Name::new("disk").unwrap().to_words();
        self.events.push_back(ds::NextEvent::reply(&ds::NextEvent {}.message(), 0, low, high, endpoint, up));
        self.inbox.push_back(Message { source: DS, ..Notify { time_ns: 0, bits: 0 }.message() });
    }

    fn act(&mut self, message: &Message) {
        let act = match message.label {
            Open::LABEL => {
                let opened = Open::reply(message, 0, BYTES, 512, false);
                return self.inbox.push_back(Message { source: self.driver, ..opened });
            }
            Flush::LABEL => self.acts.pop_front().unwrap_or(Act::Answers(Ok(0))),
            _ => self.acts.pop_front().unwrap_or(Act::Answers(Ok(message.words[3]))),
        };
        self.seen.push(*message);
        match act {
            Act::Answers(result) => self.inbox.push_back(Message { source: self.driver, ..message.reply(result) }),
            Act::Dies => {
                self.driver = SUCCESSOR;
                self.tell(SUCCESSOR, true);
            }
            Act::IsGivenUp => self.tell(Endpoint::NONE, false),
            Act::Waits => {}
        }
    }
}

struct Fake(Rc<RefCell<Script>>);

impl Kernel for Fake {
    fn primitive(&mut self, number: u64, to: Endpoint, message: &Message, _: Endpoint) -> sys::Result<Message> {
        let mut script = self.0.borrow_mut();
        match (number, to.slot(), message.label) {
            (SENDREC, slot::DS, ds::Lookup::LABEL) => Ok(ds::Lookup::reply(message, 0, script.driver)),
            (SENDREC, slot::DS, ds::NextEvent::LABEL) => {
                Ok(script.events.pop_front().unwrap_or_else(|| message.reply(Err(Errno::ENOENT))))
            }
            (SENDREC, slot::DS, _) => Ok(message.reply(Ok(0))),
            (SENDNB, ..) => {
                assert_eq!(to, script.driver);
                script.act(message);
                Ok(Message::default())
            }
            (RECEIVE, ..) => Ok(script.inbox.pop_front().expect("the client waits for nothing that never comes")),
            other => panic!("{other:?}"),
        }
    }

    fn call(&mut self, call: KernelCall, _: [u64; 6]) -> sys::Result<(u64, [u64; 2])> {
        assert_eq!(call, KernelCall::SetGrants);
        Ok((0, [0; 2]))
    }

    fn filling(&mut self, call: KernelCall, _: [u64; 6], _: &mut [u8]) -> sys::Result<u64> {
        panic!("{call:?}")
    }

    fn reading(&mut self, call: KernelCall, _: [u64; 6], text: &[u8]) -> sys::Result<u64> {
        panic!("{call:?}: {}", String::from_utf8_lossy(text))
    }
}

struct World {
    drivers: Drivers,
    client: BlockClient,
    script: Rc<RefCell<Script>>,
}

fn open(acts: &[Act]) -> World {
    let acts = acts.iter().copied().collect();
    let (inbox, events) = Default::default();
    let script = Rc::new(RefCell::new(Script { acts, seen: Vec::new(), inbox, events, driver: DRIVER }));
    sys::host::install(Fake(script.clone()));
    let drivers = Drivers::new(&Inbox::default());
    let client = BlockClient::open(&drivers, Name::new("disk").unwrap(), 3).unwrap();
    World { drivers, client, script }
}

impl World {
    /// The driver answers the `at`-th request that it has seen.
    fn answer(&self, at: usize, result: Result<u64, Errno>) {
        let (request, driver) = (self.script.borrow().seen[at], self.script.borrow().driver);
        self.drivers.peers().take_reply(&Message { source: driver, ..request.reply(result) });
    }

    fn fetch(&mut self, sector: u64) -> Box<dyn Fetch> {
        let fetch = self.client.fetch(sector, 512).expect("drivers are not waited for");
        self.drivers.peers().send();
        fetch
    }
}

#[test]
fn a_request_names_sectors_in_bytes() {
    let World { mut client, script, .. } = open(&[]);
    assert_eq!(client.sector_count(), BYTES / 512);
    client.read(9, &mut [0; 1024]).unwrap();
    client.write(10, &[0; 512]).unwrap();
    let seen = script.borrow().seen.clone();
    let (read, write) = (Read::from_message(&seen[0]), Write::from_message(&seen[1]));
    assert_eq!((read.minor, read.position, read.bytes), (3, 9 * 512, 1024));
    assert_eq!((write.minor, write.position, write.bytes), (3, 10 * 512, 512));
}

#[test]
fn a_large_transfer_goes_in_requests_of_one_mebibyte() {
    let World { mut client, script, .. } = open(&[]);
    client.read(0, &mut vec![0; (2 << 20) + 512]).unwrap();
    let sizes: Vec<_> = script.borrow().seen.iter().map(|message| message.words[3]).collect();
    assert_eq!(sizes, [1 << 20, 1 << 20, 512]);
    assert_eq!(script.borrow().seen[2].words[2], 2 << 20);
}

#[test]
fn a_request_that_a_driver_dies_with_is_repeated_to_its_successor() {
    let World { mut client, script, .. } = open(&[Act::Dies]);
    client.read(0, &mut [0; 512]).unwrap();
    let labels: Vec<_> = script.borrow().seen.iter().map(|message| message.label).collect();
    assert_eq!(labels, [Read::LABEL, Read::LABEL]);
    assert_eq!(script.borrow().seen[0], script.borrow().seen[1]);
}

#[test]
fn errors_and_short_transfers_are_errors_of_the_device() {
    let results = [Err(Errno::EIO), Err(Errno::EINVAL), Ok(511), Err(Errno::EROFS), Err(Errno::EIO)];
    let World { mut client, .. } = open(&results.map(Act::Answers));
    assert_eq!(client.read(0, &mut [0; 512]), Err(Errno::EIO));
    assert_eq!(client.read(0, &mut [0; 512]), Err(Errno::EIO));
    assert_eq!(client.read(0, &mut [0; 512]), Err(Errno::EIO));
    assert_eq!(client.write(0, &[0; 512]), Err(Errno::EROFS));
    assert_eq!(client.flush(), Err(Errno::EIO));
}

#[test]
fn a_driver_that_never_comes_back_is_an_error_at_last() {
    let World { mut client, .. } = open(&[Act::IsGivenUp]);
    assert_eq!(client.read(0, &mut [0; 512]), Err(Errno::EIO));
}

#[test]
fn two_fetches_are_in_flight_and_end_in_any_order() {
    let mut world = open(&[Act::Waits, Act::Waits]);
    let (mut slow, mut fast) = (world.fetch(0), world.fetch(8));
    assert_eq!(world.script.borrow().seen.len(), 2);
    world.answer(1, Ok(512));
    assert!(world.drivers.peers().take_news());
    assert!(slow.result().is_none());
    assert!(fast.result().is_some_and(|content| content.is_ok_and(|content| content.len() >= 512)));
    world.answer(0, Err(Errno::EIO));
    assert_eq!(slow.result(), Some(Err(Errno::EIO)));
}

#[test]
fn a_write_is_waited_for_while_a_fetch_is_in_flight() {
    let mut world = open(&[Act::Waits]);
    let mut fetch = world.fetch(0);
    world.client.write(8, &[0; 512]).unwrap();
    assert!(fetch.result().is_none());
    world.answer(0, Ok(512));
    assert!(fetch.result().is_some());
}

#[test]
fn the_client_blocks_when_its_file_system_does() {
    let world = open(&[]);
    assert!(!world.client.is_blocking());
    world.drivers.blocking().set(true);
    assert!(world.client.is_blocking());
}
