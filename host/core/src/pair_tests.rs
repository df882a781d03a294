//! What two ends of a box do, one after the other. What they do at the same time is in `host/core/tests/loom.rs`.

use crate::memory::Mapping;
use crate::pair::{Asks, Box, Found, Link, Offered};
use m3ipc::message::Message;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Release};

fn message(kind: i32) -> Message {
    Message { source: 5, kind, words: [kind as u64; 7] }
}

type Ends = Link<Arc<Box>>;

fn ends() -> (Ends, Ends) {
    let shared = Arc::new(Box::default());
    (Link::new(shared.clone(), true), Link::new(shared, false))
}

fn receive(link: &mut Ends) -> Option<Message> {
    link.first().and_then(|found| take(link, found))
}

fn take<B: Deref<Target = Box>>(link: &mut Link<B>, found: Found) -> Option<Message> {
    let mut message = message(99);
    link.take(found, &mut message).then_some(message)
}

fn take_answer(link: &mut Ends, request: Offered, found: Found) -> Option<Message> {
    let mut message = message(99);
    link.take_answer(request, found, false, &mut message).then_some(message)
}

#[test]
fn a_box_in_shared_memory_begins_empty() {
    let (_file, shared) = Mapping::<Box>::create("test").expect("there is memory for a box");
    let mut link = Link::new(shared, true);
    assert!(link.first().is_none() && link.first_note().is_none());
    assert!(!link.is_attached(), "nobody has mapped the other side");
}

#[test]
fn directions_are_apart() {
    let (mut low, mut high) = ends();
    low.offer(&message(1), Asks::No);
    assert!(low.first().is_none());
    high.offer(&message(2), Asks::No);
    assert_eq!([receive(&mut low), receive(&mut high)], [Some(message(2)), Some(message(1))]);
}

#[test]
fn a_message_is_taken_once_and_its_sender_learns_it() {
    let (mut sender, mut receiver) = ends();
    let offered = sender.offer(&message(1), Asks::No);
    assert!(!sender.is_taken(offered) && !sender.is_awaited(offered));
    let found = receiver.first().expect("it lies there");
    assert_eq!(take(&mut receiver, found), Some(message(1)));
    assert!(receiver.first().is_none());
    assert!(sender.is_taken(offered) && !sender.withdraw(offered));
}

#[test]
fn what_was_taken_back_is_not_received() {
    let (mut sender, mut receiver) = ends();
    let offered = sender.offer(&message(1), Asks::No);
    let found = receiver.first().expect("it lies there");
    assert!(sender.withdraw(offered));
    assert_eq!(take(&mut receiver, found), None);
    sender.offer(&message(2), Asks::No);
    assert_eq!(receive(&mut receiver), Some(message(2)));
}

#[test]
fn a_wait_is_for_one_message() {
    let (mut sender, mut receiver) = ends();
    receiver.announce();
    let one = sender.offer(&message(1), Asks::No);
    assert!(sender.is_awaited(one));
    sender.settle(one);
    let other = sender.offer(&message(2), Asks::No);
    assert!(!sender.is_awaited(other), "the first one ends the wait");
    assert_eq!(receive(&mut receiver), Some(message(1)));
    assert!(!sender.is_awaited(other));
    assert_eq!(receive(&mut receiver), Some(message(2)));
    assert!(sender.is_taken(other));
}

#[test]
fn a_notification_ends_the_wait_for_a_message() {
    let (mut sender, mut receiver) = ends();
    receiver.announce();
    assert!(sender.note(1, 7, false));
    let offered = sender.offer(&message(1), Asks::No);
    assert!(!sender.is_awaited(offered));
    let (note, found) = (receiver.first_note().expect("one lies there"), receiver.first().expect("one lies there"));
    assert!(note.is_before(found));
    assert_eq!(receiver.take_note(note), (7, 1));
    assert!(!sender.is_awaited(offered), "the next wait is another one");
    receiver.announce();
    assert!(sender.is_awaited(offered));
}

#[test]
fn an_answer_is_awaited_until_the_request_is_given_up() {
    let (mut client, mut server) = ends();
    for is_given_up in [false, true] {
        let request = client.offer(&message(1), Asks::Answer);
        assert_eq!(receive(&mut server), Some(message(1)));
        if is_given_up {
            client.retract_request(request);
        }
        let answer = server.offer(&message(2), Asks::No);
        assert_eq!(server.is_awaited(answer), !is_given_up);
        let found = client.answer(request).expect("the answer lies there");
        assert_eq!(take_answer(&mut client, request, found), Some(message(2)));
        server.settle(answer);
        assert!(!server.owes_answer(request.number()));
    }
}

#[test]
fn an_answer_that_is_a_request_is_owed_an_answer() {
    let (mut one, mut other) = ends();
    let mut asked = one.offer(&message(1), Asks::Answer);
    assert_eq!(receive(&mut other), Some(message(1)));
    // Each request answers the one before, in turn.
    for kind in 2..6 {
        let answer = other.offer(&message(kind), Asks::Answer);
        assert!(other.is_awaited(answer), "the request before is not answered");
        let found = one.answer(asked).expect("the answer is there");
        assert_eq!(take_answer(&mut one, asked, found), Some(message(kind)));
        asked = answer;
        std::mem::swap(&mut one, &mut other);
    }
}

#[test]
fn a_late_answer_is_not_that_to_the_next_request() {
    let (mut client, mut server) = ends();
    let given_up = client.offer(&message(1), Asks::Answer);
    assert_eq!(receive(&mut server), Some(message(1)));
    client.retract_request(given_up);
    client.settle(given_up);
    client.give_up();
    let next = client.offer(&message(2), Asks::Answer);
    let late = server.offer(&message(3), Asks::No);
    assert!(client.answer(next).is_none(), "the second request was not taken");
    assert!(server.withdraw(late));
    assert_eq!(receive(&mut server), Some(message(2)));
    server.offer(&message(4), Asks::No);
    assert!(client.answer(next).is_some());
}

#[test]
fn a_late_answer_is_not_awaited_though_another_request_was_retracted_since() {
    let (mut client, mut server) = ends();
    let first = client.offer(&message(1), Asks::Answer);
    assert_eq!(receive(&mut server), Some(message(1)));
    let late = server.offer(&message(2), Asks::No);
    client.retract_request(first);
    client.settle(first);
    client.give_up();
    let next = client.offer(&message(3), Asks::Answer);
    client.retract_request(next);
    assert!(!server.is_awaited(late), "nobody waits for it");
    assert!(server.withdraw(late));
    assert_eq!(receive(&mut server), Some(message(3)));
    let answer = server.offer(&message(4), Asks::No);
    assert!(!server.is_awaited(answer), "it is waited for at the desk");
    let found = client.answer(next).expect("the answer is there");
    assert_eq!(take_answer(&mut client, next, found), Some(message(4)));
}

#[test]
fn one_notification_is_pending_beside_one_that_ends_a_wait() {
    let (mut sender, mut receiver) = ends();
    assert_eq!([sender.note(5, 1, false), sender.note(5, 2, false)], [true, false]);
    let note = receiver.first_note().expect("one lies there");
    assert_eq!(receiver.take_note(note), (1, 5));
    receiver.announce();
    assert_eq!([3, 4, 5].map(|value| sender.note(5, value, false)), [true, true, false]);
    for value in [3, 4] {
        let note = receiver.first_note().expect("one lies there");
        let (taken, time) = receiver.take_note(note);
        assert!(taken == value && time > 5, "times ascend");
    }
    assert!(receiver.first_note().is_none());
}

#[test]
fn numbers_wrap() {
    let (mut sender, mut receiver) = ends();
    sender.set_count(u32::MAX >> 3);
    receiver.set_seen(u32::MAX >> 3);
    for kind in 1..10 {
        receiver.announce();
        let offered = sender.offer(&message(kind), Asks::No);
        assert!(offered.number() != 0 && sender.is_awaited(offered));
        sender.settle(offered);
        assert_eq!(receive(&mut receiver), Some(message(kind)));
    }
}

#[test]
fn a_new_program_of_the_process_goes_on() {
    let shared = Arc::new(Box::default());
    let (mut sender, mut receiver) = (Link::new(shared.clone(), true), Link::new(shared.clone(), false));
    for kind in 1..4 {
        let offered = sender.offer(&message(kind), Asks::No);
        assert_eq!(receive(&mut receiver), Some(message(kind)));
        sender.settle(offered);
    }
    let (mut sender, mut receiver) = (Link::new(shared.clone(), true), Link::new(shared.clone(), false));
    assert!(receiver.first().is_none(), "what was taken stays taken");
    receiver.announce();
    let offered = sender.offer(&message(4), Asks::No);
    assert!(sender.is_awaited(offered));
    assert_eq!(receive(&mut receiver), Some(message(4)));
    sender.settle(offered);
    // The program ends while two messages wait: the next ones do not wait since then.
    for kind in [5, 6] {
        let offered = sender.offer(&message(kind), Asks::No);
        sender.set_began(offered, 7);
        assert_eq!(receive(&mut receiver), Some(message(kind)));
        sender.settle(offered);
    }
    let mut sender = Link::new(shared, true);
    for kind in [7, 8] {
        let offered = sender.offer(&message(kind), Asks::No);
        let found = receiver.first().expect("it lies there");
        assert_eq!(receiver.began(found), u64::MAX, "its call has just begun");
        assert_eq!(take(&mut receiver, found), Some(message(kind)));
        sender.settle(offered);
    }
}

#[test]
fn messages_arrive_whole_and_in_order_though_some_are_taken_back() {
    let (mut sender, mut receiver) = ends();
    let is_over = AtomicBool::new(false);
    let (sent, received) = std::thread::scope(|scope| {
        let taker = scope.spawn(|| {
            let mut received = Vec::new();
            while !is_over.load(Acquire) {
                received.extend(receive(&mut receiver));
            }
            received.extend(receive(&mut receiver));
            received
        });
        let mut sent = Vec::new();
        for kind in 1..20_000 {
            let offered = sender.offer(&message(kind), Asks::No);
            if !sender.withdraw(offered) {
                sent.push(message(kind));
            }
        }
        is_over.store(true, Release);
        (sent, taker.join().expect("the taker does not panic"))
    });
    assert!(sent == received, "{} sent, {} received", sent.len(), received.len());
}

#[test]
fn scribbles_yield_messages_or_nothing() {
    let (_file, shared) = Mapping::<Box>::create("test").expect("there is memory for a box");
    let mut link = Link::new(shared, true);
    let mut state = 88_172_645_463_325_252u64;
    for _ in 0..20_000 {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        link.scribble(state as usize, (state >> 32) as u32 % 40);
        let request = link.offer(&message(1), if state & 1 == 0 { Asks::Answer } else { Asks::No });
        link.is_awaited(request);
        if let Some(found) = link.first() {
            take(&mut link, found);
        }
        if let Some(found) = link.first_note() {
            link.take_note(found);
        }
        link.note(0, 1, state & 2 == 0);
        if link.answer(request).is_none() {
            link.withdraw(request);
        }
        link.announce();
    }
}
