//! Tests of the executor against a fake kernel: order and destination of messages, and deaths of peers. The file is long because
//! all tests share the fake kernel.

use super::peer::Repeat;
use super::progress::STALL_PERIODS;
use super::*;
use crate::{Continuation, Lock, Peer, WaitList, channel, oneshot};
use abi::call::{self, KernelCall};
use abi::{Name, ds};
use core::cell::Cell;
use core::task::{Context, Poll, Waker};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::vec;
use std::vec::Vec;
use sys::Result;
use sys::host::Kernel;

const DISK: Endpoint = Endpoint::new(20, 1);
const SUCCESSOR: Endpoint = Endpoint::new(20, 2);
const PROGRAM: Endpoint = Endpoint::new(200, 1);
const OTHER: Endpoint = Endpoint::new(201, 1);
const READ: u32 = 0x70002;

#[derive(Default)]
struct World {
    sent: Vec<(Endpoint, Message)>,
    notified: Vec<Endpoint>,
    busy: BTreeSet<Endpoint>,
    dead: BTreeSet<Endpoint>,
    holders: BTreeMap<usize, Endpoint>,
    events: VecDeque<(Name, Endpoint, bool)>,
    now_ns: u64,
    alarms: Vec<u64>,
}

/// The kernel, and ds behind it.
#[derive(Clone, Default)]
struct Played(Rc<RefCell<World>>);

impl Played {
    fn install() -> Played {
        let played = Played::default();
        sys::host::install(played.clone());
        played
    }

    fn sent(&self) -> Vec<(Endpoint, Message)> {
        core::mem::take(&mut self.0.borrow_mut().sent)
    }

    /// What was sent to one process.
    fn sent_to(&self, to: Endpoint) -> Vec<Message> {
        self.sent().into_iter().filter(|(other, _)| *other == to).map(|(_, message)| message).collect()
    }
}

fn ask_ds(world: &mut World, request: &Message) -> Message {
    match ds::Request::decode(request) {
        Some(ds::Request::Lookup(_)) => match world.holders.get(&20) {
            Some(endpoint) => ds::Lookup::reply(request, 0, *endpoint),
            None => request.reply(Err(Errno::EAGAIN)),
        },
        Some(ds::Request::NextEvent(_)) => match world.events.pop_front() {
            Some((name, endpoint, up)) => {
                let (low, high) = name.to_words();
                ds::NextEvent::reply(request, 0, low, high, endpoint, up)
            }
            None => request.reply(Err(Errno::ENOENT)),
        },
        _ => request.reply(Ok(0)),
    }
}

impl Kernel for Played {
    fn primitive(&mut self, number: u64, to: Endpoint, message: &Message, _: Endpoint) -> Result<Message> {
        let mut world = self.0.borrow_mut();
        match number {
            call::SENDREC if to == Endpoint::DS => Ok(ask_ds(&mut world, message)),
            call::NOTIFY => {
                world.notified.push(to);
                Ok(Message::default())
            }
            // What is received is the reply itself, for `step`.
            call::REPLYREC | call::SENDWAIT if message.is_reply() => Ok(Message { source: to, ..*message }),
            call::RECEIVE => Ok(Message::default()),
            call::SENDNB | call::REPLYREC if world.dead.contains(&to) => Err(Errno::EDEADSRCDST),
            call::SENDNB | call::REPLYREC if world.busy.contains(&to) => Err(Errno::ENOTREADY),
            call::SENDNB | call::REPLYREC => {
                world.sent.push((to, *message));
                Ok(Message::default())
            }
            other => panic!("primitive {other:#x} is not expected"),
        }
    }

    fn call(&mut self, call: KernelCall, arguments: [u64; 6]) -> Result<(u64, [u64; 2])> {
        let mut world = self.0.borrow_mut();
        match call {
            KernelCall::Time => Ok((world.now_ns, [0; 2])),
            KernelCall::SetAlarm => {
                world.alarms.push(arguments[0]);
                Ok((0, [0; 2]))
            }
            KernelCall::WhoIs => {
                let holder = world.holders.get(&(arguments[0] as usize)).filter(|holder| !world.dead.contains(holder));
                holder.map(|holder| (u64::from(holder.0), [0; 2])).ok_or(Errno::EDEADSRCDST)
            }
            other => panic!("{other:?} is not expected"),
        }
    }

    fn filling(&mut self, call: KernelCall, _: [u64; 6], _: &mut [u8]) -> Result<u64> {
        panic!("{call:?} is not expected")
    }

    fn reading(&mut self, call: KernelCall, _: [u64; 6], _: &[u8]) -> Result<u64> {
        panic!("{call:?} is not expected")
    }
}

/// Handlers of requests alone.
struct Handle<F: Fn(&Message) -> Step<Message>>(F);

impl<F: Fn(&Message) -> Step<Message>> Handlers for Handle<F> {
    type Outcome = Message;

    fn request(&self, message: &Message) -> Step<Message> {
        (self.0)(message)
    }

    fn reply(&self, outcome: Message) -> Message {
        outcome
    }
}

/// Handlers that remember which replies were about to be sent.
struct Committing<F: Fn(&Message) -> Step<Message>> {
    handle: F,
    played: Played,
    seen: Rc<RefCell<Vec<(Endpoint, u64)>>>,
}

impl<F: Fn(&Message) -> Step<Message>> Handlers for Committing<F> {
    type Outcome = Message;

    fn request(&self, message: &Message) -> Step<Message> {
        (self.handle)(message)
    }

    fn reply(&self, outcome: Message) -> Message {
        outcome
    }

    fn before_sending(&self, results: impl Iterator<Item = (Endpoint, u64)>) {
        assert!(self.played.0.borrow().sent.is_empty(), "something has left already");
        self.seen.borrow_mut().extend(results);
    }
}

impl<H: Handlers> Server<'_, H> {
    /// Runs a turn. Returns the reply that is sent by the `REPLYREC` that receives the next message.
    fn step(&mut self, incoming: Option<Message>) -> Option<(Endpoint, Message)> {
        let played = match incoming {
            Some(mut message) => {
                self.turn(&mut message);
                message
            }
            None => {
                let mut message = Message::default();
                self.end_turn(&mut message);
                message
            }
        };
        (played.source != Endpoint::NONE).then_some((played.source, played))
    }
}

fn name() -> Name {
    Name::new("disk").expect("is a name")
}

fn request_from(source: Endpoint, tag: u64) -> Message {
    let mut message = Message { source, ..Message::new(1) };
    message.words[6] = tag;
    message
}

fn notification(source: Endpoint, time_ns: u64) -> Message {
    Message { source, ..Notify { time_ns, bits: 0 }.message() }
}

fn answer_of(request: &Message, source: Endpoint, result: u64) -> Message {
    Message { source, ..request.reply(Ok(result)) }
}

/// A peer that is up, and a server whose handler asks it and passes its result on.
macro_rules! disk_server {
    ($runtime:ident, $server:ident, $window:expr, $repeat:expr) => {
        let $runtime = Runtime::new();
        let peer = Peer::connect(&$runtime, name(), $window).expect("the system has a disk");
        let handle = |message: &Message| {
            let (peer, message) = (peer.clone(), *message);
            Step::task(async move {
                let result = peer.request(Message::new(READ), $repeat).await.and_then(|reply| reply.result());
                message.reply(result)
            })
        };
        #[allow(unused_mut)]
        let mut $server = Server::new(&$runtime, Handle(handle));
    };
}

fn with_disk() -> Played {
    let played = Played::install();
    played.0.borrow_mut().holders.insert(20, DISK);
    played
}

#[test]
fn a_handler_that_never_waits_is_answered_in_the_same_turn() {
    Played::install();
    let runtime = Runtime::new();
    let mut server = Server::new(&runtime, Handle(|message| Step::Done(message.reply(Ok(5)))));
    let (to, answer) = server.step(Some(request_from(PROGRAM, 0))).expect("is answered");
    assert_eq!((to, answer.result()), (PROGRAM, Ok(5)));
    assert!(server.step(None).is_none());
}

#[test]
fn a_handler_that_waits_is_answered_when_its_peer_has_answered() {
    let played = with_disk();
    disk_server!(runtime, server, 1, Repeat::Yes);
    assert!(server.step(Some(request_from(PROGRAM, 0))).is_none());
    let asked = played.sent_to(DISK);
    assert_eq!(asked.len(), 1);
    let (to, answer) = server.step(Some(answer_of(&asked[0], DISK, 7))).expect("is answered");
    assert_eq!((to, answer.result()), (PROGRAM, Ok(7)));
}

#[test]
fn answers_in_any_order_reach_those_who_asked() {
    let played = with_disk();
    disk_server!(runtime, server, 2, Repeat::Yes);
    server.step(Some(request_from(PROGRAM, 0)));
    server.step(Some(request_from(OTHER, 0)));
    let asked = played.sent_to(DISK);
    let second = server.step(Some(answer_of(&asked[1], DISK, 2))).expect("is answered");
    let first = server.step(Some(answer_of(&asked[0], DISK, 1))).expect("is answered");
    assert_eq!((second.0, second.1.result()), (OTHER, Ok(2)));
    assert_eq!((first.0, first.1.result()), (PROGRAM, Ok(1)));
}

#[test]
fn no_more_requests_are_in_hand_than_the_window_allows() {
    let played = with_disk();
    disk_server!(runtime, server, 1, Repeat::Yes);
    server.step(Some(request_from(PROGRAM, 0)));
    server.step(Some(request_from(OTHER, 0)));
    let asked = played.sent_to(DISK);
    assert_eq!(asked.len(), 1);
    server.step(Some(answer_of(&asked[0], DISK, 1)));
    assert_eq!(played.sent_to(DISK).len(), 1);
}

#[test]
fn a_busy_peer_gets_its_request_when_it_notifies() {
    let played = with_disk();
    played.0.borrow_mut().busy.insert(DISK);
    disk_server!(runtime, server, 1, Repeat::Yes);
    server.step(Some(request_from(PROGRAM, 0)));
    assert!(played.sent().is_empty());
    played.0.borrow_mut().busy.clear();
    server.step(Some(notification(DISK, 0)));
    assert_eq!(played.sent_to(DISK).len(), 1);
}

#[test]
fn a_repeatable_request_goes_to_the_successor() {
    let played = with_disk();
    disk_server!(runtime, server, 1, Repeat::Yes);
    server.step(Some(request_from(PROGRAM, 0)));
    let lost = played.sent_to(DISK);
    let down = (name(), Endpoint::current(20), false);
    played.0.borrow_mut().events.extend([down, (name(), SUCCESSOR, true)]);
    assert!(server.step(Some(notification(Endpoint::new(6, 1), 0))).is_none());
    let again = played.sent_to(SUCCESSOR);
    assert_eq!(again.len(), 1);
    // The last reply of the dead incarnation is not taken for the successor's.
    assert!(server.step(Some(answer_of(&lost[0], DISK, 1))).is_none_or(|(to, _)| to != PROGRAM));
    let (to, answer) = server.step(Some(answer_of(&again[0], SUCCESSOR, 9))).expect("is answered");
    assert_eq!((to, answer.result()), (PROGRAM, Ok(9)));
}

#[test]
fn a_peer_without_progress_has_stalled_and_a_second_one_fails_its_request() {
    let played = with_disk();
    disk_server!(runtime, server, 1, Repeat::Yes);
    let peer = runtime.inner.peers.borrow()[0].clone();
    let stalled = || (0..STALL_PERIODS).filter_map(|_| peer.check_progress()).collect::<Vec<_>>();
    assert_eq!(stalled(), [], "nothing has been asked");
    server.step(Some(request_from(PROGRAM, 0)));
    assert_eq!(
        [(); 3].map(|()| peer.check_progress()),
        [None; 3],
        "the first look is at a request that has just been sent"
    );
    server.step(Some(answer_of(&played.sent_to(DISK)[0], DISK, 1)));
    server.step(Some(request_from(PROGRAM, 0)));
    assert_eq!((stalled(), peer.check_progress()), (vec![], Some(DISK)));
    let third = Endpoint::new(20, 3);
    for (dead, successor) in [(DISK, SUCCESSOR), (SUCCESSOR, third)] {
        let down = (name(), Endpoint::current(20), false);
        played.0.borrow_mut().events.extend([down, (name(), successor, true)]);
        let answered = server.step(Some(notification(Endpoint::new(6, 1), 0)));
        let repeated = played.sent_to(successor).len();
        match dead {
            DISK => {
                assert_eq!((answered.is_none(), repeated, stalled()), (true, 1, vec![SUCCESSOR]));
            }
            _ => {
                let (to, answer) = answered.expect("is answered");
                assert_eq!((to, answer.result(), repeated), (PROGRAM, Err(Errno::EDEADSRCDST), 0));
            }
        }
    }
}

#[test]
fn a_request_that_must_not_be_repeated_fails_with_its_server() {
    let played = with_disk();
    disk_server!(runtime, server, 1, Repeat::No);
    server.step(Some(request_from(PROGRAM, 0)));
    played.0.borrow_mut().events.push_back((name(), Endpoint::current(20), false));
    let (to, answer) = server.step(Some(notification(Endpoint::new(6, 1), 0))).expect("is answered");
    assert_eq!((to, answer.result()), (PROGRAM, Err(Errno::EDEADSRCDST)));
}

#[test]
fn a_death_noticed_at_sending_finds_the_successor_by_its_slot() {
    let played = with_disk();
    disk_server!(runtime, server, 1, Repeat::Yes);
    played.0.borrow_mut().dead.insert(DISK);
    played.0.borrow_mut().holders.insert(20, SUCCESSOR);
    server.step(Some(request_from(PROGRAM, 0)));
    assert_eq!(played.sent_to(SUCCESSOR).len(), 1);
}

#[test]
fn requests_wait_for_a_peer_that_is_not_up_yet() {
    let played = Played::install();
    disk_server!(runtime, server, 1, Repeat::No);
    assert!(server.step(Some(request_from(PROGRAM, 0))).is_none());
    assert!(played.sent().is_empty());
    played.0.borrow_mut().events.push_back((name(), DISK, true));
    server.step(Some(notification(Endpoint::new(6, 1), 0)));
    assert_eq!(played.sent_to(DISK).len(), 1);
}

#[test]
fn nobody_waits_for_a_peer_that_was_given_up() {
    let played = with_disk();
    disk_server!(runtime, server, 1, Repeat::Yes);
    server.step(Some(request_from(PROGRAM, 0)));
    played.0.borrow_mut().events.push_back((name(), Endpoint::NONE, false));
    let answered = server.step(Some(notification(Endpoint::new(6, 1), 0))).expect("is answered");
    assert_eq!(answered.1.result(), Err(Errno::EDEADSRCDST));
    let answered = server.step(Some(request_from(OTHER, 0))).expect("is answered at once");
    assert_eq!(answered.1.result(), Err(Errno::EDEADSRCDST));
}

/// What follows a request of a program: it is answered.
struct Answering {
    runtime: Runtime,
    program: Endpoint,
}

impl Continuation for Answering {
    fn replied(self: Box<Self>, reply: Result<Message>) {
        let result = reply.and_then(|reply| reply.result());
        self.runtime.answer(self.program, request_from(self.program, 0).reply(result));
    }
}

/// Asks the peer on behalf of whoever sends a message, without a task.
fn ask_without_a_task(runtime: &Runtime, peer: &Peer, message: &Message) -> Step<Message> {
    let next = Box::new(Answering { runtime: runtime.clone(), program: message.source });
    let tag = crate::OWN_TAG | u64::from(message.source.0);
    peer.request_then(Message::new(READ), Repeat::Yes, Some(tag), next);
    Step::Later
}

#[test]
fn what_follows_a_request_runs_in_the_turn_of_its_reply() {
    let played = with_disk();
    let runtime = Runtime::new();
    let peer = Peer::connect(&runtime, name(), 1).expect("the system has a disk");
    let mut server = Server::new(&runtime, Handle(|message: &Message| ask_without_a_task(&runtime, &peer, message)));
    assert!(server.step(Some(request_from(PROGRAM, 0))).is_none());
    assert!(server.step(Some(request_from(OTHER, 0))).is_none());
    let first = played.sent_to(DISK);
    assert_eq!(first.len(), 1);
    let (to, answer) = server.step(Some(answer_of(&first[0], DISK, 7))).expect("is answered");
    assert_eq!((to, answer.result()), (PROGRAM, Ok(7)));
    let second = played.sent_to(DISK);
    assert_eq!(second.len(), 1, "the window has room again");
    assert!(server.step(Some(answer_of(&first[0], DISK, 8))).is_none(), "there is one reply to a request");
    let (to, answer) = server.step(Some(answer_of(&second[0], DISK, 9))).expect("is answered");
    assert_eq!((to, answer.result()), (OTHER, Ok(9)));
}

#[test]
fn what_follows_a_request_outlives_its_server_and_fails_with_the_last_one() {
    let played = with_disk();
    let runtime = Runtime::new();
    let peer = Peer::connect(&runtime, name(), 1).expect("the system has a disk");
    let mut server = Server::new(&runtime, Handle(|message: &Message| ask_without_a_task(&runtime, &peer, message)));
    server.step(Some(request_from(PROGRAM, 0)));
    let before = played.sent_to(DISK);
    played.0.borrow_mut().events.push_back((name(), SUCCESSOR, true));
    assert!(server.step(Some(notification(Endpoint::new(6, 1), 0))).is_none());
    let again = played.sent_to(SUCCESSOR);
    assert_eq!((again.len(), again[0].tag()), (1, before[0].tag()));
    played.0.borrow_mut().events.push_back((name(), Endpoint::NONE, false));
    let (to, answer) = server.step(Some(notification(Endpoint::new(6, 1), 0))).expect("is answered");
    assert_eq!((to, answer.result()), (PROGRAM, Err(Errno::EDEADSRCDST)));
    let (to, answer) = server.step(Some(request_from(OTHER, 0))).expect("is answered in its own turn");
    assert_eq!((to, answer.result()), (OTHER, Err(Errno::EDEADSRCDST)));
}

#[test]
fn the_answer_to_a_dropped_request_is_ignored_and_its_place_used_again() {
    let played = with_disk();
    let runtime = Runtime::new();
    let peer = Peer::connect(&runtime, name(), 1).expect("the system has a disk");
    let mut server = Server::new(&runtime, Handle(|_| Step::Later));
    let request = peer.request(Message::new(READ), Repeat::Yes);
    server.step(None);
    drop(request);
    let dropped = played.sent_to(DISK);
    let waiting = peer.request(Message::new(READ), Repeat::Yes);
    server.step(None);
    assert!(played.sent().is_empty());
    server.step(Some(answer_of(&dropped[0], DISK, 1)));
    let sent = played.sent_to(DISK);
    assert_eq!((sent.len(), sent[0].tag()), (1, waiting.tag()));
    assert_ne!(waiting.tag(), dropped[0].tag());
}

#[test]
fn a_cancellation_follows_the_request_and_has_no_answer() {
    let played = with_disk();
    let runtime = Runtime::new();
    let peer = Peer::connect(&runtime, name(), 8).expect("the system has a disk");
    let waiting = peer.request(Message::new(READ), Repeat::Yes);
    peer.cancel(waiting.tag(), abi::chardev::Cancel { tag: waiting.tag(), minor: 0 }.message());
    assert!(played.sent().is_empty(), "nothing leaves before the end of the turn");
    Server::new(&runtime, Handle(|_| Step::Later)).step(None);
    let sent = played.sent_to(DISK);
    assert_eq!((sent[1].words[0], sent[1].tag()), (sent[0].tag(), 0));
}

#[test]
fn a_cancellation_that_died_with_the_peer_follows_the_repeated_request() {
    let played = with_disk();
    let runtime = Runtime::new();
    let peer = Peer::connect(&runtime, name(), 8).expect("the system has a disk");
    let mut server = Server::new(&runtime, Handle(|_| Step::Later));
    let waiting = peer.request(Message::new(READ), Repeat::Yes);
    server.step(None);
    peer.cancel(waiting.tag(), abi::chardev::Cancel { tag: waiting.tag(), minor: 0 }.message());
    server.step(None);
    assert_eq!(played.sent_to(DISK).len(), 2);
    let successor = Endpoint::new(DISK.slot(), DISK.generation() + 1);
    runtime.service_changed(&names::Event { name: name(), endpoint: successor, up: true });
    server.step(None);
    let sent = played.sent_to(successor);
    let labels: Vec<_> = sent.iter().map(|message| (message.label, message.tag())).collect();
    assert_eq!(labels, [(READ, waiting.tag()), (abi::chardev::Cancel::LABEL, 0)]);
}

#[test]
fn an_asynchronous_asker_gets_its_answer_when_it_waits() {
    let played = Played::install();
    let requester = Endpoint::new(slot::FIRST_FREE, 1);
    let runtime = Runtime::new();
    let handle = |message: &Message| Step::Done(message.reply(Ok(message.tag())));
    let mut server = Server::new(&runtime, Handle(handle));
    played.0.borrow_mut().busy.insert(requester);
    for tag in [1, 2] {
        assert!(server.step(Some(request_from(requester, tag))).is_none());
    }
    assert!(played.sent().is_empty());
    played.0.borrow_mut().busy.clear();
    server.step(Some(notification(requester, 0)));
    let results: Vec<_> = played.sent_to(requester).iter().map(Message::result).collect();
    assert_eq!(results, [Ok(1), Ok(2)]);
}

#[test]
fn a_program_that_does_not_wait_loses_its_answer() {
    let played = Played::install();
    let runtime = Runtime::new();
    let mut server = Server::new(&runtime, Handle(|_| Step::Later));
    played.0.borrow_mut().busy.insert(PROGRAM);
    let (lost, last) = (request_from(PROGRAM, 0), request_from(OTHER, 0));
    runtime.reply(&lost, &lost.reply(Ok(1)));
    runtime.reply(&last, &last.reply(Ok(2)));
    let (to, answer) = server.step(None).expect("the last answer goes with REPLYREC");
    assert_eq!((to, answer.result()), (OTHER, Ok(2)));
    played.0.borrow_mut().busy.clear();
    server.step(None);
    assert!(played.sent().is_empty());
}

#[test]
fn what_a_turn_has_done_is_made_last_before_anybody_hears_of_it() {
    let played = with_disk();
    let runtime = Runtime::new();
    let peer = Peer::connect(&runtime, name(), 1).expect("the system has a disk");
    let seen = Rc::new(RefCell::new(Vec::new()));
    let handle = |message: &Message| {
        runtime.reply(&request_from(OTHER, 0), &message.reply(Ok(3)));
        drop(peer.request(Message::new(READ), Repeat::Yes));
        peer.cast(Message::new(READ));
        Step::Done(message.reply(Ok(5)))
    };
    let mut server = Server::new(&runtime, Committing { handle, played: played.clone(), seen: seen.clone() });
    server.step(Some(request_from(PROGRAM, 0)));
    assert_eq!(*seen.borrow(), [(OTHER, 3), (PROGRAM, 5)]);
    assert_eq!(played.sent().len(), 2);
}

#[test]
fn a_reply_on_the_fast_path_leaves_after_the_commit_and_none_of_a_service_that_may_not_wait() {
    let played = Played::install();
    let runtime = Runtime::new();
    let seen = Rc::new(RefCell::new(Vec::new()));
    let handle = |message: &Message| Step::Done(message.reply(Ok(5)));
    let mut server = Server::new(&runtime, Committing { handle, played: played.clone(), seen: seen.clone() });
    assert!(server.step(Some(request_from(PROGRAM, 0))).is_some());
    assert_eq!(seen.take(), [(PROGRAM, 5)]);
    assert!(server.step(Some(request_from(DISK, 9))).is_none(), "REPLYREC would lose it");
    assert_eq!((seen.take(), played.sent_to(DISK).len()), (vec![(DISK, 5)], 1));
    let vfs = Endpoint::new(slot::VFS, 1);
    assert!(server.step(Some(request_from(vfs, 9))).is_some(), "waits until vfs takes it");
}

#[test]
fn tasks_that_a_request_wakes_run_before_its_reply_leaves() {
    Played::install();
    let runtime = Runtime::new();
    let (gate, ran) = (Rc::new(WaitList::default()), Rc::new(Cell::new(false)));
    let (waiting, set) = (gate.clone(), ran.clone());
    runtime.spawn(async move {
        waiting.wait().await;
        set.set(true);
    });
    let handle = |message: &Message| {
        gate.wake_all();
        Step::Done(message.reply(Ok(u64::from(ran.get()))))
    };
    let mut server = Server::new(&runtime, Handle(handle));
    server.step(None);
    assert!(server.step(Some(request_from(PROGRAM, 0))).is_some());
    assert!(ran.get());
}

#[test]
fn a_tag_of_the_callers_names_its_request_in_every_incarnation() {
    let played = with_disk();
    let runtime = Runtime::new();
    let peer = Peer::connect(&runtime, name(), 2).expect("the system has a disk");
    let mut server = Server::new(&runtime, Handle(|_| Step::Later));
    let tag = crate::OWN_TAG | 77;
    let (other, own) =
        (peer.request(Message::new(READ), Repeat::Yes), peer.request_tagged(Message::new(READ), Repeat::Yes, tag));
    server.step(None);
    let sent = played.sent_to(DISK);
    assert_eq!((sent[0].tag(), sent[1].tag()), (other.tag(), tag));
    assert_eq!((own.tag(), other.tag() & crate::OWN_TAG), (tag, 0));
    server.step(Some(answer_of(&sent[1], DISK, 9)));
    assert_eq!(
        core::pin::pin!(own).poll(&mut Context::from_waker(Waker::noop())),
        Poll::Ready(Ok(answer_of(&sent[1], DISK, 9)))
    );
}

#[test]
fn sleepers_wake_in_the_order_of_their_deadlines() {
    let played = Played::install();
    let runtime = Runtime::new();
    let woken = Rc::new(RefCell::new(Vec::new()));
    for deadline_ns in [300, 100, 200] {
        let (runtime, woken) = (runtime.clone(), woken.clone());
        runtime.clone().spawn(async move {
            runtime.sleep_until(deadline_ns).await;
            woken.borrow_mut().push(deadline_ns);
        });
    }
    let mut server = Server::new(&runtime, Handle(|_| Step::Later));
    server.step(None);
    assert_eq!(played.0.borrow().alarms, [100]);
    server.step(Some(notification(Endpoint::CLOCK, 250)));
    assert_eq!(*woken.borrow(), [100, 200]);
    server.step(Some(notification(Endpoint::CLOCK, 300)));
    assert_eq!(*woken.borrow(), [100, 200, 300]);
    assert_eq!(played.0.borrow().alarms, [100, 300]);
}

#[test]
fn a_lock_is_handed_on_in_the_order_of_coming() {
    Played::install();
    let runtime = Runtime::new();
    let lock = Rc::new(Lock::new(Vec::new()));
    let gate = Rc::new(WaitList::new());
    for number in 0..3 {
        let (lock, gate) = (lock.clone(), gate.clone());
        runtime.spawn(async move {
            let mut order = lock.lock().await;
            gate.wait().await;
            order.push(number);
        });
    }
    let mut server = Server::new(&runtime, Handle(|_| Step::Later));
    for _ in 0..3 {
        server.step(None);
        gate.wake_all();
    }
    server.step(None);
    assert_eq!(*lock.try_lock().expect("is free"), [0, 1, 2]);
}

#[test]
fn a_wake_up_is_not_lost_with_a_task_that_is_dropped() {
    let list = WaitList::new();
    let mut context = core::task::Context::from_waker(core::task::Waker::noop());
    let (mut first, mut second) = (Box::pin(list.wait()), Box::pin(list.wait()));
    assert!(first.as_mut().poll(&mut context).is_pending());
    assert!(second.as_mut().poll(&mut context).is_pending());
    list.wake_one();
    drop(first);
    assert!(second.as_mut().poll(&mut context).is_ready());
}

#[test]
fn values_pass_between_tasks() {
    Played::install();
    let runtime = Runtime::new();
    let (sender, receiver) = channel::channel();
    let (give, wait) = oneshot::oneshot();
    let total = Rc::new(Cell::new(0));
    let seen = total.clone();
    runtime.spawn(async move {
        let first: u32 = receiver.receive().await;
        let second: u32 = wait.await.expect("is given");
        seen.set(first + second);
    });
    runtime.spawn(async move {
        sender.send(1);
        give.give(2);
    });
    Server::new(&runtime, Handle(|_| Step::Later)).step(None);
    assert_eq!(total.get(), 3);
}

#[test]
fn a_heartbeat_of_rs_is_answered() {
    let played = Played::install();
    let runtime = Runtime::new();
    let mut server = Server::new(&runtime, Handle(|_| Step::Later));
    server.step(Some(notification(Endpoint::new(4, 1), 0)));
    assert_eq!(played.0.borrow().notified, vec![Endpoint::RS]);
}

#[test]
fn many_requests_at_once_use_the_same_slots_again() {
    let played = with_disk();
    disk_server!(runtime, server, usize::MAX, Repeat::Yes);
    for round in 0..3 {
        for slot in 200..400 {
            server.step(Some(request_from(Endpoint::new(slot, 1), 0)));
        }
        let asked = played.sent_to(DISK);
        assert_eq!(asked.len(), 200, "in round {round}");
        let answered = asked.iter().filter(|asked| server.step(Some(answer_of(asked, DISK, 0))).is_some()).count();
        assert_eq!(answered, 200);
    }
}

#[test]
fn tasks_without_client_beyond_all_slots_begin_when_one_is_free() {
    const COUNT: usize = 3 * ready::TASKS;
    let played = with_disk();
    let runtime = Runtime::new();
    let peer = Peer::connect(&runtime, name(), 1).expect("the system has a disk");
    let done = Rc::new(Cell::new(0));
    let mut server = Server::new(&runtime, Handle(|message| Step::Done(*message)));
    for _ in 0..COUNT {
        let (peer, done) = (peer.clone(), done.clone());
        runtime.spawn(async move {
            peer.request(Message::new(READ), Repeat::Yes).await.expect("the disk lives");
            done.set(done.get() + 1);
        });
    }
    server.step(None);
    while let Some(asked) = played.sent_to(DISK).pop() {
        server.step(Some(answer_of(&asked, DISK, 0)));
    }
    assert_eq!(done.get(), COUNT);
}

#[test]
fn a_request_finds_no_slot_while_tasks_without_client_have_all() {
    with_disk();
    disk_server!(runtime, server, 1, Repeat::Yes);
    for _ in 0..ready::TASKS + 1 {
        runtime.spawn(core::future::pending());
    }
    server.step(None);
    let (_, answer) = server.step(Some(request_from(PROGRAM, 0))).expect("is refused at once");
    assert_eq!(answer.result(), Err(Errno::EAGAIN));
}

#[test]
fn a_peer_is_told_everything_in_order_without_tasks_and_once_more_if_it_dies() {
    const COUNT: u64 = 100_000;
    let played = with_disk();
    let runtime = Runtime::new();
    let peer = Peer::connect(&runtime, name(), 1).expect("the system has a disk");
    let mut server = Server::new(&runtime, Handle(|message| Step::Done(*message)));
    for number in 0..COUNT {
        peer.tell(Message { words: [number, 0, 0, 0, 0, 0, 0], ..Message::new(READ) });
    }
    server.step(None);
    assert_eq!(played.sent_to(DISK)[0].words[0], 0);
    let world = &played.0;
    world.borrow_mut().events.push_back((name(), SUCCESSOR, true));
    server.step(Some(notification(Endpoint::DS, 0)));
    for number in 0..COUNT {
        let asked = played.sent_to(SUCCESSOR);
        assert_eq!(asked[0].words[0], number);
        server.step(Some(answer_of(&asked[0], SUCCESSOR, 0)));
    }
    assert!(played.sent_to(SUCCESSOR).is_empty());
}
