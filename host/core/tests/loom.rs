//! Tries what two ends of a box do at the same time in every order that processors and memory allow (as C11 has it; x86 allows fewer).
//!
//! [`pair`] is compiled with loom's atomics here. Orders with more than three preemptions are left out: they are too many.

use loom::sync::Arc;
use loom::thread;
use m3ipc::message::Message;
use pair::{Asks, Box, Come, Link, Put};

#[path = "../src/pair.rs"]
#[allow(dead_code, reason = "the library uses the rest")]
mod pair;

/// Stands for `host/core/src/sync.rs`.
mod sync {
    use loom::sync::atomic::Ordering::{Release, SeqCst};
    pub use loom::sync::atomic::{AtomicU32, AtomicU64};
    pub use loom::thread::yield_now as pause;

    pub const LEAVING_LOOKS: u32 = 0;

    pub fn store_and_fence(place: &AtomicU32, value: u32) {
        place.store(value, Release);
        loom::sync::atomic::fence(SeqCst);
    }
}

type Ends = Link<Arc<Box>>;

fn model(run: impl Fn(Ends, Ends) + Sync + Send + 'static) {
    model_with(3, run);
}

fn model_with(preemptions: usize, run: impl Fn(Ends, Ends) + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(preemptions);
    model.check(move || {
        let shared = Arc::new(Box::default());
        run(Link::new(shared.clone(), true), Link::new(shared, false));
    });
}

fn message(kind: i32) -> Message {
    Message { source: 0, kind, words: [kind as u64; 7] }
}

fn receive(link: &mut Ends) -> Option<Message> {
    link.first().and_then(|found| take(link, found))
}

fn take(link: &mut Ends, found: pair::Found) -> Option<Message> {
    let mut message = Message::default();
    link.take(found, &mut message).then_some(message)
}

/// What a receiver does that looks again before it gives up: what comes then is promised.
fn wait_longer(link: &mut Ends) -> Option<Message> {
    link.announce();
    if let Some(found) = link.first() {
        if let Some(message) = take(link, found) {
            return Some(message);
        }
    } else if let Some(Come::Promised(found)) = link.promise().look() {
        return Some(take_promised(link, found));
    }
    link.retract();
    receive(link)
}

fn take_promised(link: &mut Ends, found: pair::Found) -> Message {
    let mut message = Message::default();
    link.take_promised(found, &mut message);
    message
}

/// What a receiver does that looks once and gives up.
fn wait_once(link: &mut Ends) -> Option<Message> {
    if let Some(received) = receive(link) {
        return Some(received);
    }
    link.announce();
    if let Some(received) = receive(link) {
        return Some(received);
    }
    link.retract();
    receive(link)
}

/// What a sender does that gives up at once. Returns whether the message counts as sent.
fn send_once(link: &mut Ends, kind: i32) -> bool {
    let offered = link.offer(&message(kind), Asks::No);
    if link.is_awaited(offered) {
        link.settle(offered);
        return true;
    }
    !link.withdraw(offered)
}

#[test]
fn what_counts_as_sent_is_received_once_though_both_give_up() {
    model(|mut sender, mut receiver| {
        let other = thread::spawn(move || (wait_once(&mut receiver), receiver));
        let is_sent = send_once(&mut sender, 1);
        let (received, mut receiver) = other.join().expect("the receiver does not panic");
        assert_eq!(received, is_sent.then(|| message(1)));
        assert_eq!(receive(&mut receiver), None);
    });
}

#[test]
fn what_is_promised_is_not_taken_back() {
    model(|mut sender, mut receiver| {
        let other = thread::spawn(move || (wait_longer(&mut receiver), receiver));
        let is_sent = send_once(&mut sender, 1);
        let (received, mut receiver) = other.join().expect("the receiver does not panic");
        assert_eq!(received, is_sent.then(|| message(1)));
        assert_eq!(receive(&mut receiver), None);
    });
}

#[test]
fn the_second_of_two_is_promised_to_nobody() {
    model(|mut sender, mut receiver| {
        let other = thread::spawn(move || (wait_longer(&mut receiver), receiver));
        let sent = [1, 2].map(|kind| send_once(&mut sender, kind));
        let (received, mut receiver) = other.join().expect("the receiver does not panic");
        let expected = sent.iter().position(|sent| *sent).map(|at| message(at as i32 + 1));
        assert!(sent != [true, true], "nobody has received the second one");
        assert_eq!(received, expected);
        assert_eq!(receive(&mut receiver), None);
    });
}

#[test]
fn a_message_behind_a_notification_is_not_promised() {
    model(|mut sender, mut receiver| {
        let other = thread::spawn(move || {
            receiver.announce();
            let is_empty = receiver.first_note().is_none() && receiver.first().is_none();
            let mut message = Message::default();
            let found = receiver.promise().kept().filter(|_| is_empty);
            if let Some(found) = found {
                receiver.take_promised(found, &mut message);
            }
            receiver.retract();
            (found.is_some(), receiver)
        });
        assert!(sender.note(0, 7, false));
        let is_sent = send_once(&mut sender, 1);
        let (is_received, mut receiver) = other.join().expect("the receiver does not panic");
        assert!(!is_received, "it came behind the notification");
        assert_eq!(receive(&mut receiver).is_some(), is_sent);
    });
}

#[test]
fn a_notification_comes_before_the_message_behind_it() {
    model(|mut sender, mut receiver| {
        let other = thread::spawn(move || {
            let first = receiver.first_put();
            if let Some(Put::Message(found)) = first {
                take(&mut receiver, found);
            }
            (first, receiver)
        });
        assert!(sender.note(0, 7, false));
        send_once(&mut sender, 1);
        let (first, receiver) = other.join().expect("the receiver does not panic");
        assert!(!matches!(first, Some(Put::Message(_))), "the notification was put first");
        assert!(receiver.first_note().is_some());
    });
}

#[test]
fn an_announced_wait_is_for_one_of_two_messages() {
    model(|mut sender, mut receiver| {
        let other = thread::spawn(move || {
            receiver.announce();
            let first = receive(&mut receiver);
            if first.is_none() {
                receiver.retract();
            }
            (first.or_else(|| receive(&mut receiver)), receiver)
        });
        let sent = [1, 2].map(|kind| send_once(&mut sender, kind));
        let (received, mut receiver) = other.join().expect("the receiver does not panic");
        assert!(sent != [true, true], "nobody has received the second one");
        let expected = sent.iter().position(|sent| *sent).map(|at| message(at as i32 + 1));
        assert_eq!(received, expected);
        assert_eq!(receive(&mut receiver), None);
    });
}

#[test]
fn a_notification_does_not_count_as_the_message_that_was_waited_for() {
    model(|mut sender, mut receiver| {
        let other = thread::spawn(move || {
            receiver.announce();
            let note = receiver.first_note().map(|note| receiver.take_note(note).0);
            let message = if note.is_none() { receive(&mut receiver) } else { None };
            receiver.retract();
            let late = if note.is_none() && message.is_none() { receiver.first_note() } else { None };
            let note = note.or_else(|| late.map(|note| receiver.take_note(note).0));
            (note, message, receiver)
        });
        assert!(sender.note(0, 7, false));
        let is_sent = send_once(&mut sender, 1);
        let (note, received, mut receiver) = other.join().expect("the receiver does not panic");
        if note.is_some() {
            assert!(!is_sent, "the wait ended with the notification");
        }
        assert_eq!(receive(&mut receiver), None, "nothing is left behind");
        assert!(received.is_none() || is_sent);
    });
}

#[test]
fn a_request_and_its_answer_arrive_or_fail_on_both_sides() {
    model(|mut client, mut server| {
        let other = thread::spawn(move || {
            let request = receive(&mut server);
            let is_answered = request.is_some().then(|| send_once(&mut server, 2));
            (is_answered, server)
        });
        let request = client.offer(&message(1), Asks::Answer);
        let take = |client: &mut Ends, is_awaited| {
            let mut message = Message::default();
            let found = client.answer(request)?;
            client.take_answer(request, found, is_awaited, &mut message).then_some(message)
        };
        let mut answer = take(&mut client, true);
        if answer.is_none() {
            client.retract_request(request);
            answer = take(&mut client, false);
        }
        let withdrawn = answer.is_none() && !client.is_taken(request) && client.withdraw(request);
        let (is_answered, _) = other.join().expect("the server does not panic");
        assert_eq!(answer, (is_answered == Some(true)).then(|| message(2)));
        assert!(!withdrawn || is_answered.is_none(), "what was taken back was not received");
    });
}

#[test]
fn the_answer_that_is_promised_is_the_one_to_this_request() {
    model(|mut client, mut server| {
        // After one answer that was taken nothing is in doubt.
        let request = client.offer(&message(1), Asks::Answer);
        assert_eq!(receive(&mut server), Some(message(1)));
        assert!(send_once(&mut server, 2));
        let answer = client.answer(request).expect("the answer is there");
        assert!(client.take_answer(request, answer, false, &mut Message::default()));

        let other = thread::spawn(move || {
            let request = receive(&mut server);
            (request.is_some().then(|| send_once(&mut server, 4)), server)
        });
        let request = client.offer(&message(3), Asks::Answer);
        assert!(!client.is_doubtful(), "the last answer was taken");
        let promise = client.promised_answer();
        let mut answer = None;
        match promise.kept() {
            Some(found) => {
                client.settle(request);
                answer = Some(take_promised(&mut client, found));
            }
            None => {
                client.retract_request(request);
                if let Some(found) = client.answer(request) {
                    let mut message = Message::default();
                    answer = client.take_answer(request, found, false, &mut message).then_some(message);
                }
            }
        }
        let withdrawn = answer.is_none() && !client.is_taken(request) && client.withdraw(request);
        let (is_answered, _) = other.join().expect("the server does not panic");
        assert_eq!(answer, (is_answered == Some(true)).then(|| message(4)));
        assert!(!withdrawn || is_answered.is_none(), "what was taken back was not received");
    });
}

/// What a client does that looks once for an answer and gives up. Returns the answer, and whether the request was taken back.
fn ask_once(client: &mut Ends, kind: i32) -> (Option<Message>, bool) {
    let request = client.offer(&message(kind), Asks::Answer);
    let take = |client: &mut Ends, is_awaited| {
        let mut message = Message::default();
        let found = client.answer(request)?;
        client.take_answer(request, found, is_awaited, &mut message).then_some(message)
    };
    if let Some(answer) = take(client, true) {
        return (Some(answer), false);
    }
    client.retract_request(request);
    if let Some(answer) = take(client, false) {
        return (Some(answer), false);
    }
    let is_withdrawn = if client.is_taken(request) {
        client.settle(request);
        false
    } else {
        client.withdraw(request)
    };
    client.give_up();
    (None, is_withdrawn)
}

/// The server may still be about to look whether its answer to the first request is awaited when the second one was put, and given up too.
#[test]
fn a_late_answer_counts_as_sent_to_nobody_who_asks_anew() {
    // Two calls of the client are too many for three.
    model_with(2, |mut client, mut server| {
        let other = thread::spawn(move || {
            let request = receive(&mut server);
            (request, request.map(|request| send_once(&mut server, request.kind + 10)))
        });
        let asked = [1, 2].map(|kind| ask_once(&mut client, kind));
        let (request, is_answered) = other.join().expect("the server does not panic");
        assert!([None, Some(message(1)), Some(message(2))].contains(&request), "{request:?} is a mixture");
        for (kind, (answer, is_withdrawn)) in [1, 2].into_iter().zip(asked) {
            let answered = is_answered.filter(|_| request == Some(message(kind)));
            assert_eq!(answer, (answered == Some(true)).then(|| message(kind + 10)));
            assert!(!is_withdrawn || answered.is_none(), "what was taken back was not received");
        }
    });
}

#[test]
fn a_request_whose_time_is_over_is_left_to_who_waits_for_it() {
    model(|mut client, mut server| {
        let other = thread::spawn(move || wait_longer(&mut server));
        let request = client.offer(&message(1), Asks::Answer);
        let is_awaited = client.is_awaited(request);
        client.retract_request(request);
        if client.withdraw(request) {
            assert!(!is_awaited, "what is awaited was taken back");
        }
        // Where it lay, if it was taken back, the next one lies.
        send_once(&mut client, 2);
        let received = other.join().expect("the server does not panic");
        assert!([None, Some(message(1)), Some(message(2))].contains(&received), "{received:?} is a mixture");
    });
}

#[test]
fn a_request_is_promised_though_its_sender_looks_only_when_it_gives_up() {
    model(|mut client, mut server| {
        let other = thread::spawn(move || wait_longer(&mut server));
        let request = client.offer(&message(1), Asks::Answer);
        client.retract_request(request);
        let is_left = !client.withdraw(request);
        let received = other.join().expect("the server does not panic");
        assert_eq!(received, is_left.then(|| message(1)));
    });
}

#[test]
fn two_that_send_to_each_other_do_not_both_get_through() {
    model(|mut one, mut two| {
        let other = thread::spawn(move || (send_once(&mut two, 2), two));
        let sent = send_once(&mut one, 1);
        let (sent_too, mut two) = other.join().expect("the other one does not panic");
        assert!(!sent && !sent_too, "nobody waits");
        assert_eq!((receive(&mut one), receive(&mut two)), (None, None));
    });
}
