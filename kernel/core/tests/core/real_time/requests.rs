//! Requests: who waits for whom, for how long, with whose priority, and what the end of one means to the other.

use abi::{
    Errno,
    rt::{ANYPROC, FOREVER, NOWAIT, ProcessAttributes, call, control, error as number, flag, message, mode},
};
use kernel_core::Next;

use super::{error, pid, plain, world, world_with};

/// A process whose queue donates it the priorities of messages.
fn inheriting(priority: u64) -> ProcessAttributes {
    ProcessAttributes { mq_flags: flag::MQ_PRTYINHERIT | flag::MQ_PRTYORDER, ..plain(priority) }
}

#[test]
fn the_sender_of_a_request_waits_until_it_is_received() {
    let mut w = world();
    let (server, client) = (w.sleeper(plain(9)), w.sleeper(plain(7)));
    w.awaken(client);
    assert_eq!(w.sends(client, call::RQST, server, NOWAIT, [1; 4]), Next::Run(client));
    assert_eq!(w.result(client), error(number::E_TRY_AGAIN), "it does not wait for it");
    assert_ne!(w.sends(client, call::RQST, server, FOREVER, [2; 4]), Next::Run(client));
    w.awaken(server);
    w.scrub(client);
    assert_eq!(w.real_time_call(server, call::RCV, [ANYPROC as u64, FOREVER as u64]), Next::Run(client));
    assert_eq!((w.result(client), w.received(server).words), (Ok(0), [2; 4]));
    w.sleep(client);
    let words = w.received(server);
    assert_eq!((words.kind, words.pid), (message::REQUEST, pid(client)));
    w.sleep(server);
    assert_eq!(w.look(control::GETPSTAT, pid(client)).expect("known")[0], 2, "woken, and received");
}

#[test]
fn the_sender_of_a_request_with_a_reply_waits_for_both() {
    let mut w = world();
    let (server, client) = (w.sleeper(plain(9)), w.sleeper(plain(7)));
    w.awaken(client);
    assert_eq!(w.sends(client, call::RQRCV, server, NOWAIT, [1; 4]), Next::Run(client));
    assert_eq!(w.result(client), Err(Errno::EINVAL));
    assert_ne!(w.sends(client, call::RQRCV, server, FOREVER, [2; 4]), Next::Run(client));
    w.awaken(server);
    let request = w.takes(server, ANYPROC).expect("waits");
    assert_eq!((request.kind, request.pid, request.words), (message::RQRCV, pid(client), [2; 4]));
    assert_eq!(w.next(), Next::Run(server), "the client waits on");
    assert_eq!(w.sends(server, call::REPLY, client, 0, [3; 4]), Next::Run(client));
    let reply = w.received(client);
    assert_eq!((reply.kind, reply.pid, reply.words), (message::REPLY, pid(server), [3; 4]));
}

#[test]
fn a_request_to_a_server_that_waits_is_received_at_once() {
    let mut w = world();
    let (server, client) = (w.receiver(plain(9)), w.sleeper(plain(7)));
    w.awaken(client);
    assert_eq!(w.sends(client, call::RQRCV, server, FOREVER, [2; 4]), Next::Run(server));
    assert_eq!((w.received(server).kind, w.received(server).words), (message::RQRCV, [2; 4]));
    let other = [5; 4];
    assert_eq!(
        w.sends(server, call::ARQST, client, 0, other),
        Next::Run(client),
        "any message of the server is a reply"
    );
    assert_eq!(w.received(client).words, other);
    w.sleep(client);
    w.listen(server);
    w.awaken(client);
    assert_eq!(w.sends(client, call::RQST, server, FOREVER, [4; 4]), Next::Run(client), "received, so it goes on");
    assert_eq!(w.result(client), Ok(0));
}

#[test]
fn a_client_that_waits_for_a_reply_hears_nobody_else() {
    let mut w = world();
    let (server, client, other) = (w.receiver(plain(9)), w.sleeper(plain(7)), w.sleeper(plain(8)));
    w.awaken(client);
    w.sends(client, call::RQRCV, server, FOREVER, [2; 4]);
    w.sleep(server);
    w.awaken(other);
    assert_eq!(w.posts(other, client, 1), Ok(0));
    assert_eq!(w.next(), Next::Run(other));
    w.sleep(other);
    w.awaken(server);
    assert_eq!(w.sends(server, call::REPLY, client, 0, [3; 4]), Next::Run(client));
    assert_eq!(w.received(client).words, [3; 4]);
    assert_eq!(w.takes(client, ANYPROC).expect("waits").words[0], 1);
}

#[test]
fn a_time_limit_withdraws_the_request() {
    for call in [call::RQST, call::RQRCV] {
        let mut w = world();
        let (server, client) = (w.sleeper(plain(9)), w.sleeper(plain(7)));
        w.awaken(client);
        w.posts(client, server, 1).expect("sent");
        assert_ne!(w.sends(client, call, server, 5, [2; 4]), Next::Run(client));
        assert_ne!(w.pass(4), Next::Run(client));
        assert_eq!(w.pass(1), Next::Run(client));
        assert_eq!(w.result(client), error(number::E_MRT_TIMEOUT), "{call:#x}");
        w.sleep(client);
        w.awaken(server);
        assert_eq!(w.takes(server, ANYPROC).expect("waits").words[0], 1, "what was sent before stays");
        assert_eq!(w.takes(server, ANYPROC), error(number::E_TRY_AGAIN));
    }
}

#[test]
fn a_time_limit_ends_the_wait_for_a_reply() {
    let mut w = world();
    let (server, client) = (w.receiver(plain(9)), w.sleeper(plain(7)));
    w.awaken(client);
    assert_eq!(w.sends(client, call::RQRCV, server, 5, [2; 4]), Next::Run(server));
    assert_eq!(w.pass(4), Next::Run(server));
    assert_eq!(w.pass(1), Next::Run(client));
    assert_eq!(w.result(client), error(number::E_MRT_TIMEOUT));
    w.sleep(client);
    assert_eq!(w.sends(server, call::REPLY, client, 0, [3; 4]), Next::Run(server), "the reply waits");
    assert_eq!(w.result(server), Ok(0));
}

#[test]
fn the_end_of_a_server_ends_the_waits_of_its_clients() {
    let mut w = world();
    let (server, one, two) = (w.sleeper(plain(9)), w.sleeper(plain(7)), w.sleeper(plain(8)));
    let three = w.sleeper(plain(10));
    for (client, call) in [(one, call::RQST), (two, call::RQRCV)] {
        w.awaken(client);
        w.sends(client, call, server, FOREVER, [2; 4]);
    }
    w.awaken(three);
    w.real_time_call(three, call::RCV, [pid(server), FOREVER as u64]);
    w.destroys(server);
    for client in [one, two, three] {
        assert_eq!(w.next(), Next::Run(client));
        assert_eq!(w.result(client), error(number::E_MRT_EXITING));
        w.sleep(client);
    }
}

#[test]
fn the_end_of_a_client_withdraws_its_request() {
    let mut w = world();
    let (server, client) = (w.sleeper(plain(9)), w.sleeper(plain(7)));
    w.awaken(client);
    w.sends(client, call::RQRCV, server, FOREVER, [2; 4]);
    w.destroys(client);
    w.awaken(server);
    assert_eq!(w.takes(server, ANYPROC), error(number::E_TRY_AGAIN));
}

#[test]
fn requests_in_a_circle_are_refused_and_leave_nothing_behind() {
    let mut w = world();
    let (one, two) = (w.sleeper(plain(7)), w.sleeper(plain(8)));
    w.awaken(one);
    w.sends(one, call::RQRCV, two, FOREVER, [1; 4]);
    w.awaken(two);
    for call in [call::RQST, call::RQRCV] {
        w.sends(two, call, one, FOREVER, [2; 4]);
        assert_eq!(w.result(two), Err(Errno::ELOCKED), "{call:#x}");
    }
    assert_eq!(w.calls(two, call::RCV, [ANYPROC as u64, FOREVER as u64]), Ok(0));
    assert_eq!(w.received(two).words, [1; 4]);
    assert_eq!(w.sends(two, call::REPLY, one, 0, [3; 4]), Next::Run(one));
    assert_eq!(w.takes(one, ANYPROC), error(number::E_TRY_AGAIN));
    w.sleep(one);
    w.sleep(two);
    assert_eq!(w.look(control::GETPSTAT, pid(two)).expect("known")[5], 1, "the refused ones were not sent");
}

#[test]
fn a_server_has_the_priority_of_its_best_request_until_it_replies() {
    let mut w = world_with(mode::BPIP);
    let server = w.sleeper(inheriting(30));
    let (worse, better) = (w.sleeper(plain(20)), w.sleeper(plain(10)));
    for (client, priority) in [(worse, 20), (better, 10)] {
        w.awaken(client);
        assert_eq!(w.posts(client, server, priority), Ok(0));
        w.sleep(client);
        assert_eq!(w.priority_of(server), priority, "what waits");
    }
    w.awaken(server);
    assert_eq!(w.takes(server, ANYPROC).expect("waits").priority, 10);
    w.sleep(server);
    assert_eq!(w.priority_of(server), 10, "what it works on");
    w.awaken(server);
    assert_eq!(w.sends(server, call::REPLY, better, 0, [0; 4]), Next::Run(server));
    w.sleep(server);
    assert_eq!(w.priority_of(server), 20, "what still waits");
    w.awaken(server);
    assert_eq!(w.takes(server, ANYPROC).expect("waits").priority, 20);
    w.sends(server, call::REPLY, worse, 0, [0; 4]);
    w.sleep(server);
    assert_eq!(w.priority_of(server), 30);
}

#[test]
fn what_a_request_in_work_donates_ends_with_the_wait_of_its_client() {
    let mut w = world_with(mode::BPIP);
    let (server, behind, client) = (w.sleeper(inheriting(30)), w.sleeper(inheriting(31)), w.sleeper(plain(10)));
    w.awaken(client);
    w.sends(client, call::RQRCV, server, 5, [0; 4]);
    w.awaken(server);
    w.takes(server, ANYPROC).expect("waits");
    w.sends(server, call::RQRCV, behind, FOREVER, [0; 4]);
    assert_eq!((w.priority_of(server), w.priority_of(behind)), (10, 10));
    assert_eq!(w.pass(5), Next::Run(client));
    assert_eq!(w.result(client), error(number::E_MRT_TIMEOUT));
    w.sleep(client);
    assert_eq!((w.priority_of(server), w.priority_of(behind)), (30, 30), "its own, and that of the server");
}

#[test]
fn what_a_request_in_work_donates_ends_with_its_client() {
    for call in [call::RQRCV, call::RQST, call::ARQST] {
        let mut w = world_with(mode::BPIP);
        let (server, client) = (w.sleeper(inheriting(30)), w.sleeper(plain(10)));
        w.awaken(client);
        if w.sends(client, call, server, FOREVER, [0; 4]) == Next::Run(client) {
            w.sleep(client);
        }
        w.awaken(server);
        w.takes(server, ANYPROC).expect("waits");
        w.sleep(server);
        if w.is_ready(client) {
            w.sleep(client);
        }
        assert_eq!(w.priority_of(server), 10, "{call:#x}");
        w.destroys(client);
        assert_eq!(w.priority_of(server), 30, "{call:#x}");
    }
}

#[test]
fn what_a_message_that_waits_donates_ends_with_its_sender() {
    let mut w = world_with(mode::BPIP);
    let (server, client) = (w.sleeper(inheriting(30)), w.sleeper(plain(10)));
    w.awaken(client);
    w.posts(client, server, 1).expect("sent");
    w.sleep(client);
    w.destroys(client);
    assert_eq!(w.priority_of(server), 30);
}

#[test]
fn priority_is_inherited_only_where_queue_and_system_want_it() {
    let cases = [(0, inheriting(30), 30), (mode::BPIP, plain(30), 30), (mode::BPIP, inheriting(30), 10)];
    for (options, attributes, expected) in cases {
        let mut w = world_with(options);
        let (server, client) = (w.sleeper(attributes), w.sleeper(plain(10)));
        w.awaken(client);
        w.posts(client, server, 1).expect("sent");
        w.sleep(client);
        assert_eq!(w.priority_of(server), expected);
        w.awaken(client);
        w.sends(client, call::RQRCV, server, FOREVER, [0; 4]);
        assert_eq!(w.priority_of(server), expected, "nor from who waits for an answer");
    }
}

#[test]
fn a_request_that_is_withdrawn_donates_nothing() {
    let mut w = world_with(mode::BPIP);
    let (server, client) = (w.sleeper(inheriting(30)), w.sleeper(plain(10)));
    w.awaken(client);
    w.sends(client, call::RQST, server, 5, [0; 4]);
    assert_eq!(w.priority_of(server), 10);
    w.pass(5);
    w.sleep(client);
    assert_eq!(w.priority_of(server), 30);
}

#[test]
fn urgent_requests_donate_and_messages_of_the_kernel_do_not() {
    let mut w = world_with(mode::BPIP);
    let server = w.sleeper(inheriting(30));
    let client = w.sleeper(ProcessAttributes { watchdog: pid(server) as i64, ..plain(20) });
    w.awaken(client);
    assert_eq!(w.calls(client, call::WAKEUP, [pid(client), 0]), error(number::E_MRT_UNSLEEP));
    w.sleep(client);
    assert_eq!(w.priority_of(server), 30, "the kernel's message has the best priority, and donates none");
    w.awaken(client);
    w.posts_urgently(client, server, 3).expect("sent");
    w.sleep(client);
    assert_eq!(w.priority_of(server), 3);
    w.awaken(server);
    assert_eq!(w.takes(server, ANYPROC).expect("waits").kind, message::KRNDLINE);
    assert_eq!(w.takes(server, ANYPROC).expect("waits").kind, message::UPRQST);
    w.sleep(server);
    assert_eq!(w.priority_of(server), 3);
}

#[test]
fn signals_and_replies_are_no_work_to_be_done_with_their_priority() {
    let mut w = world_with(mode::BPIP);
    let server = w.sleeper(inheriting(30));
    let client = w.sleeper(plain(10));
    for call in [call::SIGN, call::REPLY, call::ARQST] {
        w.awaken(client);
        w.sends(client, call, server, 0, [0; 4]);
        w.sleep(client);
        w.awaken(server);
        w.takes(server, ANYPROC).expect("waits");
        w.sleep(server);
        assert_eq!(w.priority_of(server), if call == call::ARQST { 10 } else { 30 });
    }
}

#[test]
fn a_server_that_inherits_runs_before_those_between() {
    let mut w = world_with(mode::BPIP);
    let (server, client) = (w.sleeper(inheriting(30)), w.sleeper(plain(10)));
    let between = w.sleeper(plain(20));
    w.awaken(between);
    w.wake(between, server);
    assert_eq!(w.wake(between, client), Next::Run(client));
    assert_eq!(w.sends(client, call::RQRCV, server, FOREVER, [7; 4]), Next::Run(server));
    assert_eq!(w.takes(server, ANYPROC).expect("waits").words[0], 7);
    assert_eq!(w.sends(server, call::REPLY, client, 0, [8; 4]), Next::Run(client));
    assert_eq!(w.sleep(client), Next::Run(between));
    assert_eq!(w.sleep(between), Next::Run(server));
}

#[test]
fn a_process_that_is_real_time_again_has_nothing_left_over() {
    let mut w = world_with(mode::BPIP);
    let server = w.sleeper(inheriting(30));
    let client = w.sleeper(plain(10));
    w.awaken(client);
    for _ in 0..2 {
        w.posts(client, server, 1).expect("sent");
    }
    w.sleep(client);
    w.awaken(server);
    w.takes(server, ANYPROC).expect("waits");
    w.calls(server, call::SET2NRT, [0, 0]).expect("ordinary");
    w.becomes_real_time(server).expect("real-time");
    assert_eq!(w.takes(server, ANYPROC), error(number::E_TRY_AGAIN), "its queue was emptied");
    w.sleep(server);
    assert_eq!(w.priority_of(server), 30);
}
