//! Queues of messages: what a message carries, who gets which first, where they are full, and what is counted.

use abi::{
    Errno,
    rt::{self, ANYPROC, FOREVER, NOWAIT, ProcessAttributes, call, control, error as number, flag, message},
};
use kernel_core::Next;

use super::{Received, TICK, error, pid, plain, world};
use crate::world::World;

fn ordered(priority: u64) -> ProcessAttributes {
    ProcessAttributes { mq_flags: flag::MQ_PRTYORDER, ..plain(priority) }
}

/// Messages that found a receiver, that waited, and the most at a time.
fn counts(w: &mut World, slot: usize) -> [u64; 3] {
    let number = w.number_of(slot);
    let words = w.look(control::GETMQSTAT, number).expect("exists");
    assert_eq!(words[3..], [0; 5]);
    [words[0], words[1], words[2]]
}

/// Messages sent and received.
fn traffic(w: &mut World, slot: usize) -> [u64; 2] {
    let words = w.look(control::GETPSTAT, pid(slot)).expect("known");
    assert_eq!(words[7], 0);
    [words[5], words[6]]
}

/// Words of all messages that wait for a process, which runs.
fn all(w: &mut World, slot: usize) -> Vec<u64> {
    core::iter::from_fn(|| w.takes(slot, ANYPROC).ok().map(|message| message.words[0])).collect()
}

#[test]
fn a_message_names_its_sender_and_tells_all_about_itself() {
    let mut w = world();
    let to = w.receiver(plain(5));
    let from = w.sleeper(ProcessAttributes { deadline: 9, ..plain(7) });
    w.pass(3);
    w.awaken(from);
    w.pass(2);
    assert_eq!(w.sends(from, call::ARQST, to, 0, [1, 2, 3, 4]), Next::Run(to));
    assert_eq!(w.result(from), Ok(0));
    let first = Received {
        pid: pid(from),
        kind: message::AREQUEST,
        id: 0,
        sequence: 1,
        time: 5,
        priority: 7,
        number: from as u64,
        deadline: 9,
        laxity: 9,
        words: [1, 2, 3, 4],
    };
    let received = w.received(to);
    assert_eq!(received, first);
    w.listen(to);
    w.sends(from, call::ARQST, to, 0, [5, 6, 7, 8]);
    assert_eq!(w.received(to), Received { id: 1, sequence: 2, words: [5, 6, 7, 8], ..received });
}

#[test]
fn laxity_is_what_is_left_of_the_deadline_when_the_receiver_comes_to_run() {
    let mut w = world();
    let from = w.sleeper(ProcessAttributes { deadline: 9, ..plain(5) });
    let to = w.sleeper(plain(6));
    w.awaken(to);
    w.sleep(to);
    w.awaken(from);
    w.wake(from, to);
    w.posts(from, to, 1).expect("sent");
    w.pass(4);
    w.sleep(from);
    assert_eq!(w.takes(to, ANYPROC).expect("waits").laxity, 5);
    w.sleep(to);
    w.awaken(from);
    w.wake(from, to);
    w.posts(from, to, 1).expect("sent");
    w.pass(11);
    w.sleep(from);
    assert_eq!(w.takes(to, ANYPROC).expect("waits").laxity, -2);
}

#[test]
fn each_call_sends_its_kind_with_its_priority() {
    let mut w = world();
    let to = w.receiver(plain(5));
    let from = w.sleeper(plain(7));
    w.awaken(from);
    let kinds = [
        (call::RQST, message::REQUEST, 7),
        (call::ARQST, message::AREQUEST, 7),
        (call::SIGN, message::SIGNAL, 5),
        (call::REPLY, message::REPLY, 7),
    ];
    for (call, kind, priority) in kinds {
        assert_eq!(w.sends(from, call, to, NOWAIT, [kind, 0, 0, 0]), Next::Run(to));
        assert_eq!(w.result(from), Ok(0), "it is received at once");
        let received = w.received(to);
        assert_eq!((received.kind, received.priority, received.words[0]), (kind, priority, kind));
        w.listen(to);
    }
    for priority in [1, 46] {
        assert_eq!(w.posts_urgently(from, to, priority), Ok(0));
        assert_eq!((w.received(to).kind, w.received(to).priority), (message::UPRQST, priority));
        w.listen(to);
    }
    for priority in [0, 47, 256 + 1, u64::MAX] {
        assert_eq!(w.posts_urgently(from, to, priority), error(number::E_MRT_BADPRTY), "{priority}");
    }
    w.sleep(from);
    assert_eq!((traffic(&mut w, from), traffic(&mut w, to)), ([6, 0], [0, 6]));
    assert_eq!(counts(&mut w, to), [6, 0, 0]);
}

#[test]
fn messages_go_to_other_real_time_processes_only() {
    let mut w = world();
    let (ordinary, slot) = (w.candidate(plain(5)), w.process(plain(6)));
    for call in [call::RQST, call::ARQST, call::UPRQST, call::SIGN, call::REPLY, call::RQRCV] {
        let mut send = |to: u64| {
            w.syscall(slot, |frame| {
                (frame.rax, frame.rdi, frame.rsi, frame.rdx) = (call, to, FOREVER as u64, 1);
            });
            w.result(slot)
        };
        assert_eq!(send(7), error(number::E_BAD_PROC), "{call:#x}");
        assert_eq!(send(u64::MAX), error(number::E_BAD_PROC), "{call:#x}");
        assert_eq!(send(pid(slot)), error(number::E_BAD_DEST), "{call:#x}");
        assert_eq!(send(pid(ordinary)), error(number::E_MRT_BADPTYPE), "{call:#x}");
    }
    w.sleep(slot);
    assert_eq!(traffic(&mut w, slot), [0, 0]);
}

#[test]
fn messages_wait_in_the_order_of_their_arrival_or_of_their_priorities() {
    for (attributes, order) in [(plain(40), [1, 2, 3, 4, 5]), (ordered(40), [4, 2, 5, 1, 3])] {
        let mut w = world();
        let to = w.sleeper(attributes);
        let from = w.sleeper(plain(7));
        w.awaken(from);
        for (priority, word) in [(20, 1), (10, 2), (30, 3), (5, 4), (10, 5)] {
            w.syscall(from, |frame| {
                (frame.rax, frame.rdi, frame.rdx, frame.r10) = (call::UPRQST, pid(to), priority, word);
            });
            assert_eq!(w.result(from), Ok(0));
        }
        w.wake(from, to);
        w.sleep(from);
        assert_eq!(all(&mut w, to), order);
        w.sleep(to);
        assert_eq!(counts(&mut w, to), [0, 5, 5]);
    }
}

#[test]
fn a_message_between_others_is_found_and_the_rest_stay() {
    let mut w = world();
    let to = w.sleeper(plain(40));
    let (one, two) = (w.sleeper(plain(7)), w.sleeper(plain(8)));
    w.awaken(one);
    w.posts(one, to, 1).expect("sent");
    w.posts(one, to, 2).expect("sent");
    w.sleep(one);
    w.awaken(two);
    w.posts(two, to, 3).expect("sent");
    w.sleep(two);
    w.awaken(one);
    w.posts(one, to, 4).expect("sent");
    w.sleep(one);
    w.awaken(to);
    let from = |w: &mut World, source: usize| w.takes(to, pid(source) as i64).map(|message| message.words[0]);
    assert_eq!(from(&mut w, two), Ok(3));
    assert_eq!(from(&mut w, two), error(number::E_TRY_AGAIN));
    assert_eq!(from(&mut w, one), Ok(1));
    assert_eq!(w.posts(to, one, 9), Ok(0));
    assert_eq!(all(&mut w, to), [2, 4]);
    assert_eq!(w.takes(to, ANYPROC), error(number::E_TRY_AGAIN));
    w.sleep(to);
    w.awaken(two);
    w.posts(two, to, 5).expect("sent");
    w.sleep(two);
    w.awaken(to);
    assert_eq!(all(&mut w, to), [5], "an empty queue is filled again");
}

#[test]
fn a_receiver_takes_messages_only_from_whom_it_waits_for() {
    let mut w = world();
    let (to, ordinary) = (w.sleeper(plain(5)), w.candidate(plain(6)));
    let (one, two) = (w.sleeper(plain(7)), w.sleeper(plain(8)));
    w.awaken(to);
    let receive = |w: &mut World, source: u64, limit: i64| w.calls(to, call::RCV, [source, limit as u64]);
    assert_eq!(receive(&mut w, 7, FOREVER), error(number::E_BAD_PROC));
    assert_eq!(receive(&mut w, pid(ordinary), FOREVER), error(number::E_MRT_BADPTYPE));
    assert_eq!(receive(&mut w, pid(ordinary), NOWAIT), error(number::E_TRY_AGAIN));
    assert_eq!(receive(&mut w, pid(to), FOREVER), Err(Errno::ELOCKED), "itself");
    w.real_time_call(to, call::RCV, [pid(one), FOREVER as u64]);
    w.awaken(two);
    assert_ne!(w.sends(two, call::ARQST, to, 0, [1; 4]), Next::Run(to));
    w.sleep(two);
    w.awaken(one);
    assert_eq!(w.sends(one, call::ARQST, to, 0, [2; 4]), Next::Run(to));
    assert_eq!(w.received(to).words[0], 2);
    assert_eq!(w.takes(to, ANYPROC).expect("waits").words[0], 1);
}

#[test]
fn a_wait_for_a_message_has_a_limit() {
    let mut w = world();
    let from = w.sleeper(plain(7));
    let to = w.process(plain(5));
    w.real_time_call(to, call::RCV, [ANYPROC as u64, 4]);
    assert_ne!(w.pass(3), Next::Run(to));
    assert_eq!(w.pass(1), Next::Run(to));
    assert_eq!(w.result(to), error(number::E_MRT_TIMEOUT));
    w.sleep(to);
    w.awaken(from);
    w.posts(from, to, 1).expect("kept");
    w.sleep(from);
    assert_eq!((counts(&mut w, to), traffic(&mut w, to)), ([0, 1, 1], [0, 0]), "it does not wait any more");
}

#[test]
fn a_queue_holds_as_many_messages_as_its_owner_wants() {
    let mut w = world();
    let to = w.sleeper(ProcessAttributes { mq_size: 2, ..plain(40) });
    let none = w.sleeper(ProcessAttributes { mq_size: 0, ..plain(41) });
    let from = w.sleeper(plain(7));
    w.awaken(from);
    assert_eq!((w.posts(from, to, 1), w.posts(from, to, 2)), (Ok(0), Ok(0)));
    assert_eq!(w.posts(from, to, 3), error(number::E_MRT_MQFULL));
    assert_eq!(w.posts(from, none, 3), error(number::E_MRT_MQFULL));
    w.sleep(from);
    assert_eq!((counts(&mut w, to), counts(&mut w, none)), ([0, 2, 2], [0, 0, 0]));
    assert_eq!(traffic(&mut w, from), [2, 0], "those that were sent");
    w.awaken(to);
    assert_eq!(all(&mut w, to), [1, 2]);
    w.listen(to);
    w.awaken(from);
    assert_eq!(w.posts(from, to, 4), Ok(0));
    w.sleep(from);
    w.listen(to);
    assert_eq!(counts(&mut w, to), [1, 2, 2]);
    let number = w.number_of(to);
    w.look(control::CLRMQSTAT, number).expect("cleared");
    assert_eq!(counts(&mut w, to), [0, 0, 0]);
}

#[test]
fn statistics_are_those_of_queues_that_are_in_use() {
    let mut w = world();
    let slot = w.sleeper(plain(5));
    let number = w.number_of(slot);
    let free = if number == 1 { 2 } else { 1 };
    for operation in [control::GETMQSTAT, control::CLRMQSTAT] {
        for id in [0, rt::PROCESSES as u64 + 1, u64::MAX] {
            assert_eq!(w.look(operation, id), error(number::E_MRT_BADMSGQ), "{id}");
        }
        for id in [free, rt::PROCESSES as u64] {
            assert_eq!(w.look(operation, id), error(number::E_MRT_FREEMSGQ), "{id}");
        }
        assert!(w.look(operation, number).is_ok());
    }
}

#[test]
fn all_queues_share_a_pool() {
    let mut w = world();
    let attributes = ProcessAttributes { mq_size: 256, ..plain(40) };
    let queues: Vec<_> = (0..5).map(|_| w.sleeper(attributes)).collect();
    let from = w.sleeper(plain(7));
    w.awaken(from);
    for &to in &queues[..4] {
        (0..256).for_each(|word| assert_eq!(w.posts(from, to, word), Ok(0)));
    }
    assert_eq!(w.posts(from, queues[4], 1), error(number::E_MRT_NOMQENT));
    assert_eq!(w.posts(from, queues[3], 1), error(number::E_MRT_MQFULL));
    w.sleep(from);
    w.awaken(queues[0]);
    assert_eq!(w.takes(queues[0], ANYPROC).expect("waits").words[0], 0);
    w.sleep(queues[0]);
    w.awaken(from);
    assert_eq!(w.posts(from, queues[4], 1), Ok(0));
    assert_eq!(w.posts(from, queues[4], 1), error(number::E_MRT_NOMQENT));
    w.sleep(from);
    w.destroys(queues[1]);
    w.awaken(from);
    (0..255).for_each(|word| assert_eq!(w.posts(from, queues[4], word), Ok(0)));
    w.sleep(from);
    w.awaken(queues[0]);
    assert_eq!(all(&mut w, queues[0]), (1..256).collect::<Vec<_>>(), "the others are as they were");
}

#[test]
fn messages_of_a_process_end_with_it_and_are_not_those_of_its_successor() {
    let mut w = world();
    let to = w.sleeper(plain(40));
    let (stays, ends) = (w.sleeper(plain(8)), w.sleeper(plain(7)));
    for (from, word) in [(ends, 1), (stays, 2), (ends, 3), (ends, 4), (stays, 5), (ends, 6)] {
        w.awaken(from);
        w.posts(from, to, word).expect("sent");
        w.sleep(from);
    }
    let number = w.number_of(ends);
    w.destroys(ends);
    let successor = w.sleeper(plain(7));
    assert_eq!(w.number_of(successor), number, "it has the record of the one that has ended");
    w.awaken(to);
    assert_eq!(w.takes(to, pid(successor) as i64), error(number::E_TRY_AGAIN));
    assert_eq!(all(&mut w, to), [2, 5]);
    w.sleep(to);
    assert_eq!(counts(&mut w, to), [0, 6, 6], "what has waited is counted");
    w.awaken(stays);
    (0..8).for_each(|word| assert_eq!(w.posts(stays, to, word), Ok(0), "their places are free"));
}

#[test]
fn messages_of_a_process_that_is_real_time_no_longer_are_deleted() {
    let mut w = world();
    let (to, from) = (w.sleeper(plain(40)), w.sleeper(plain(7)));
    w.awaken(from);
    w.posts(from, to, 1).expect("sent");
    w.calls(from, call::SET2NRT, [0, 0]).expect("ordinary");
    w.awaken(to);
    assert_eq!(w.takes(to, ANYPROC), error(number::E_TRY_AGAIN));
}

#[test]
fn messages_of_the_kernel_come_before_those_of_processes_and_may_be_lost() {
    let mut w = world();
    let to = w.sleeper(ProcessAttributes { mq_size: 3, ..ordered(40) });
    let slot = w.sleeper(ProcessAttributes { watchdog: pid(to) as i64, ..plain(7) });
    w.awaken(slot);
    w.posts_urgently(slot, to, 1).expect("sent");
    w.posts(slot, to, 2).expect("sent");
    // Its watchdog is told twice, and has room for one.
    for _ in 0..2 {
        assert_eq!(w.calls(slot, call::WAKEUP, [pid(slot), 0]), error(number::E_MRT_UNSLEEP));
    }
    w.sleep(slot);
    assert_eq!(counts(&mut w, to), [0, 3, 3]);
    w.awaken(to);
    let kinds: Vec<_> = (0..3).map(|_| w.takes(to, ANYPROC).expect("waits").kind).collect();
    assert_eq!(kinds, [message::KRNDLINE, message::UPRQST, message::AREQUEST]);
    assert_eq!(w.takes(to, ANYPROC), error(number::E_TRY_AGAIN));
}

#[test]
fn who_waits_for_one_process_does_not_hear_the_kernel() {
    let mut w = world();
    let other = w.sleeper(plain(8));
    let to = w.process(plain(9));
    w.real_time_call(to, call::RCV, [pid(other), FOREVER as u64]);
    let slot = w.process(ProcessAttributes { watchdog: pid(to) as i64, ..plain(7) });
    let _ = w.calls(slot, call::WAKEUP, [pid(slot), 0]);
    assert_ne!(w.sleep(slot), Next::Run(to));
    w.awaken(other);
    w.posts(other, to, 3).expect("sent");
    w.sleep(other);
    assert_eq!(w.received(to).words[0], 3);
    assert_eq!(w.takes(to, ANYPROC).expect("waits").kind, message::KRNDLINE);
}

#[test]
fn the_time_of_a_message_is_that_of_its_sending() {
    let mut w = world();
    let to = w.sleeper(plain(9));
    let from = w.sleeper(plain(7));
    w.awaken(from);
    for word in 0..3 {
        w.pass(2);
        w.posts(from, to, word).expect("sent");
    }
    w.pass(10);
    w.wake(from, to);
    w.sleep(from);
    let times: Vec<_> = (0..3).map(|_| w.takes(to, ANYPROC).expect("waits").time).collect();
    assert_eq!(times, [2, 4, 6]);
    assert_eq!(w.m.now, 16 * TICK);
}
