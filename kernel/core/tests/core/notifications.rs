//! Notifications: pending bits, order, `SENDNB` retries, alarms.

use abi::{Endpoint, Errno, Word, call, call::KernelCall, endpoint::slot, kernel::Notify, message};

use crate::world::{A, B, C, World};

fn notify(w: &mut World, from: usize, to: usize) {
    let to = w.endpoint(to);
    w.primitive(from, call::NOTIFY, to, 0, 0);
    assert_eq!(w.result(from), Ok(0));
}

#[test]
fn a_notification_wakes_a_waiting_receiver() {
    let mut w = World::with_services();
    w.receive(B, Endpoint::ANY);
    w.m.now = 1234;
    notify(&mut w, A, B);
    let message = w.message(B);
    assert_eq!((message.source, message.label), (w.endpoint(A), Notify::LABEL));
    assert_eq!(Notify::from_message(&message), Notify { time_ns: 1234, bits: 0 });
    assert!(w.is_ready(A));
}

#[test]
fn pending_notifications_come_before_messages_and_once() {
    let mut w = World::with_services();
    let b = w.endpoint(B);
    w.send(C, b, 7);
    notify(&mut w, A, B);
    notify(&mut w, A, B);
    w.receive(B, Endpoint::ANY);
    assert_eq!(w.message(B).label, Notify::LABEL);
    w.receive(B, Endpoint::ANY);
    assert_eq!(w.message(B).label, 7);
    w.receive(B, Endpoint::ANY);
    assert!(!w.is_ready(B));
}

#[test]
fn no_notification_comes_inside_sendrec() {
    let mut w = World::with_services();
    let (a, b) = (w.endpoint(A), w.endpoint(B));
    w.receive(B, Endpoint::ANY);
    w.sendrec(A, b, 7);
    notify(&mut w, B, A);
    notify(&mut w, C, A);
    assert!(!w.is_ready(A));
    w.primitive(B, call::SENDNB, a, 7 | message::REPLY, 3);
    assert_eq!(w.message(A).words[0], 3);
    w.receive(A, Endpoint::ANY);
    assert_eq!(w.message(A).label, Notify::LABEL);
}

#[test]
fn receiving_from_one_endpoint_takes_only_its_notification() {
    let mut w = World::with_services();
    let c = w.endpoint(C);
    notify(&mut w, A, B);
    w.receive(B, c);
    assert!(!w.is_ready(B));
    notify(&mut w, C, B);
    assert_eq!(w.message(B).source, c);
    w.receive(B, Endpoint::ANY);
    assert_eq!(w.message(B).source, w.endpoint(A));
}

#[test]
fn a_refused_sendnb_is_told_only_when_the_destination_waits_from_anybody() {
    let mut w = World::with_services();
    let (b, c) = (w.endpoint(B), w.endpoint(C));
    w.primitive(A, call::SENDNB, b, 1, 0);
    assert_eq!(w.result(A), Err(Errno::ENOTREADY));
    w.receive(A, Endpoint::ANY);
    w.send(C, b, 2);
    w.receive(B, Endpoint::ANY);
    assert_eq!(w.message(B).source, c);
    assert!(!w.is_ready(A), "B took a message and did not wait");
    w.receive(B, c);
    assert!(!w.is_ready(A), "B waits, but not for anybody");
    notify(&mut w, C, B);
    assert!(!w.is_ready(A));
    w.receive(B, Endpoint::ANY);
    assert_eq!((w.message(A).source, w.message(A).label), (b, Notify::LABEL));
}

#[test]
fn the_next_wait_from_any_notifies_all_refused_senders() {
    let mut w = World::with_services();
    let b = w.endpoint(B);
    w.primitive(A, call::SENDNB, b, 1, 0);
    w.primitive(C, call::SENDNB, b, 1, 0);
    w.receive(A, Endpoint::ANY);
    w.receive(B, Endpoint::ANY);
    assert_eq!((w.message(A).source, w.message(A).label), (b, Notify::LABEL));
    w.receive(C, Endpoint::ANY);
    assert_eq!(w.message(C).source, b);
    w.primitive(A, call::SENDNB, b, 1, 0);
    assert_eq!(w.result(A), Ok(0));
}

#[test]
fn an_alarm_comes_once_at_its_time() {
    let mut w = World::with_services();
    w.kernel_call(A, KernelCall::SetAlarm, &[5000]).expect("set");
    w.receive(A, Endpoint::ANY);
    assert_eq!(w.m.armed, Some(5000));
    w.m.now = 4999;
    w.node.timer(&mut w.m);
    assert!(!w.is_ready(A));
    w.m.now = 5000;
    w.node.timer(&mut w.m);
    assert_eq!(w.message(A).source, Endpoint::CLOCK);
    w.receive(A, Endpoint::ANY);
    w.m.now = 9000;
    w.node.timer(&mut w.m);
    assert!(!w.is_ready(A));
}

#[test]
fn alarms_of_many_threads_come_in_order_and_can_be_cancelled() {
    let mut w = World::with_services();
    for (slot, deadline) in [(A, 300), (B, 100), (C, 200)] {
        w.kernel_call(slot, KernelCall::SetAlarm, &[deadline]).expect("set");
    }
    w.kernel_call(C, KernelCall::SetAlarm, &[0]).expect("cancelled");
    w.kernel_call(B, KernelCall::SetAlarm, &[400]).expect("set anew");
    for slot in [A, B, C] {
        w.receive(slot, Endpoint::CLOCK);
    }
    w.m.now = 350;
    w.node.timer(&mut w.m);
    assert!(w.is_ready(A) && !w.is_ready(B) && !w.is_ready(C));
    w.m.now = 450;
    w.node.timer(&mut w.m);
    assert!(w.is_ready(B) && !w.is_ready(C));
}

#[test]
fn programs_without_rights_cannot_notify() {
    let mut w = World::with_services();
    let program = w.application().slot();
    let b = w.endpoint(B);
    w.primitive(program, call::NOTIFY, b, 0, 0);
    assert_eq!(w.result(program), Err(Errno::ECALLDENIED));
    let result: Result<u64, Errno> = Word::from_word(w.node.frame_mut(program).rax);
    assert!(result.is_err());
    w.receive(B, Endpoint::current(slot::HARDWARE));
    assert!(!w.is_ready(B));
}
