//! Message queues among programs whose memory is a list of what was written there.

use crate::{
    keep::{
        KEEP_BYTES, Sizes, Store,
        records::{NO_QUEUE, QueueRecord},
    },
    queues::{Letter, Queue, Sent, Transfer, Waiter},
};
use abi::{Endpoint, Errno, Message, call::KernelCall};
use alloc::{rc::Rc, vec::Vec};
use core::cell::Cell;
use std::{cell::RefCell, thread_local};
use sys::{host::Kernel, keep::Keep};

const GOOD: Endpoint = Endpoint::new(200, 1);
const BAD: Endpoint = Endpoint::new(201, 1);

thread_local! {
    static WRITTEN: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

/// A kernel that keeps what is written to programs; `BAD` has no memory.
struct Scribe;

impl Kernel for Scribe {
    fn primitive(&mut self, _: u64, _: Endpoint, _: &Message, _: Endpoint) -> sys::Result<Message> {
        Ok(Message::default())
    }
    fn call(&mut self, _: KernelCall, arguments: [u64; 6]) -> sys::Result<(u64, [u64; 2])> {
        if arguments[2] == BAD.0 as u64 { Err(Errno::EFAULT) } else { Ok((0, [0; 2])) }
    }
    fn filling(&mut self, _: KernelCall, _: [u64; 6], into: &mut [u8]) -> sys::Result<u64> {
        Ok(into.len() as u64)
    }
    fn reading(&mut self, _: KernelCall, arguments: [u64; 6], from: &[u8]) -> sys::Result<u64> {
        if arguments[2] == BAD.0 as u64 {
            return Err(Errno::EFAULT);
        }
        WRITTEN.with(|written| written.borrow_mut().push(from.to_vec()));
        Ok(from.len() as u64)
    }
}

fn queue(most_messages: u32) -> (Rc<Store>, Rc<Queue>) {
    sys::host::install(Scribe);
    let (store, _) = Store::open(Keep::simulated(sys::host::zeroed(KEEP_BYTES), u64::MAX), Sizes::WHOLE);
    let store = Rc::new(store);
    let record = QueueRecord { most_messages, message_bytes: 64, ..NO_QUEUE };
    let queue = Queue::new(&store, record, b"q").expect("room");
    store.commit();
    (store, queue)
}

fn letter(priority: u16, text: &[u8]) -> Letter {
    Letter { priority, bytes: text.to_vec() }
}

fn wait(queue: &Queue, who: Endpoint, rank: u32, transfer: Transfer) -> Rc<Waiter> {
    let waiter = Rc::new(Waiter { who, rank, transfer, result: Cell::default(), event: Rc::default() });
    queue.wait(&waiter);
    waiter
}

fn reader(queue: &Queue, who: Endpoint, rank: u32) -> Rc<Waiter> {
    wait(queue, who, rank, Transfer::Receive { address: 8, priority_address: 0 })
}

/// Priorities as they are told, in the order of receiving.
fn drain(store: &Store, queue: &Queue) -> Vec<u32> {
    WRITTEN.take();
    while queue.receive(GOOD, 8, 8).expect("has memory").is_some() {
        store.commit();
    }
    WRITTEN.take().iter().map(|bytes| u32::from_le_bytes(bytes[..].try_into().expect("four bytes"))).collect()
}

#[test]
fn messages_go_out_by_priority_and_in_order_within_one() {
    let (store, queue) = queue(4);
    assert_eq!(queue.send(&letter(1, b"low")), Sent::First);
    for (priority, text) in [(5, b"a"), (32767, b"b"), (5, b"c")] {
        assert_eq!(queue.send(&letter(priority, text)), Sent::Done);
    }
    assert_eq!(queue.send(&letter(9, b"more")), Sent::Full);
    assert_eq!(drain(&store, &queue), [32767, 5, 5, 1]);
    assert_eq!(queue.receive(GOOD, 8, 0), Ok(None));
}

#[test]
fn receivers_that_wait_get_messages_by_rank_then_in_order() {
    let (_, queue) = queue(4);
    let waiting = [(2, 0), (1, 1), (1, 2), (0, 3)].map(|(rank, _)| reader(&queue, GOOD, rank));
    WRITTEN.take();
    for (text, first) in [(b"1", 3), (b"2", 1), (b"3", 2), (b"4", 0)] {
        assert_eq!(queue.send(&letter(0, text)), Sent::Done);
        assert_eq!(waiting[first].result.take(), Some(Ok(1)));
    }
    assert_eq!(WRITTEN.take(), [b"1", b"2", b"3", b"4"]);
    assert_eq!(queue.len(), 0);
}

#[test]
fn a_receiver_without_memory_gets_its_error_and_the_next_one_the_message() {
    let (_, queue) = queue(4);
    let (bad, good) = (reader(&queue, BAD, 0), reader(&queue, GOOD, 0));
    assert_eq!(queue.send(&letter(0, b"text")), Sent::Done);
    assert_eq!((bad.result.take(), good.result.take()), (Some(Err(Errno::EFAULT)), Some(Ok(4))));
    assert_eq!(queue.send(&letter(0, b"text")), Sent::First);
    assert_eq!(queue.receive(BAD, 8, 0), Err(Errno::EFAULT));
    assert_eq!(queue.len(), 1);
}

#[test]
fn a_sender_that_waits_goes_on_when_there_is_room_unless_it_has_left() {
    let (store, queue) = queue(1);
    assert_eq!(queue.send(&letter(1, b"first")), Sent::First);
    let senders = [(2, 0), (3, 0), (4, 1)]
        .map(|(priority, rank)| wait(&queue, GOOD, rank, Transfer::Send(letter(priority, b"x"))));
    queue.leave(&senders[0]);
    store.commit();
    assert_eq!(queue.receive(GOOD, 8, 0), Ok(Some(5)));
    assert_eq!(senders.each_ref().map(|sender| sender.result.take()), [None, Some(Ok(0)), None]);
    store.commit();
    assert_eq!(drain(&store, &queue), [3, 4]);
}

#[test]
fn in_the_turn_after_a_restart_senders_that_lack_a_slot_lose_nothing() {
    let (store, queue) = queue(1);
    for _ in 0..2 {
        assert_ne!(queue.send(&letter(1, b"x")), Sent::Full);
        assert_eq!(queue.receive(GOOD, 8, 0), Ok(Some(1)));
    }
    assert_eq!(queue.send(&letter(2, b"late")), Sent::Full);
    let sender = wait(&queue, GOOD, 0, Transfer::Send(letter(2, b"late")));
    assert_eq!(queue.receive(GOOD, 8, 0), Ok(Some(4)));
    assert_eq!((sender.result.take(), queue.len()), (Some(Ok(0)), 0));
    store.commit();
    assert_eq!(queue.send(&letter(2, b"late")), Sent::First);
}
