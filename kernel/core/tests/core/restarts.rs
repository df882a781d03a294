//! Death and succession: generations, waiting for a successor, what the dead leave behind.

use abi::{Endpoint, Errno, call, call::KernelCall, kernel::Notify};

use crate::world::{A, B, C, RS, World};

fn destroy(w: &mut World, endpoint: Endpoint, keep: u64) {
    w.kernel_call(RS, KernelCall::Destroy, &[endpoint.0 as u64, keep]).expect("destroyed");
}

#[test]
fn senders_and_receivers_of_the_dead_are_told() {
    let mut w = World::with_services();
    let b = w.endpoint(B);
    w.send(A, b, 1);
    w.receive(C, b);
    destroy(&mut w, b, 0);
    assert!(w.is_ready(A) && w.is_ready(C));
    assert_eq!(w.result(A), Err(Errno::EDEADSRCDST));
    assert_eq!(w.result(C), Err(Errno::EDEADSRCDST));
}

#[test]
fn a_successor_has_another_endpoint_and_gets_nothing_meant_for_the_dead() {
    let mut w = World::with_services();
    let old = w.endpoint(B);
    w.send(A, old, 1);
    destroy(&mut w, old, 1);
    assert_eq!(w.result(A), Err(Errno::EDEADSRCDST));
    let new = w.service(B);
    assert_eq!((new.slot(), new.generation()), (old.slot(), old.generation() + 1));
    w.receive(B, Endpoint::ANY);
    w.send(A, old, 2);
    assert_eq!(w.result(A), Err(Errno::EDEADSRCDST));
    assert!(!w.is_ready(B));
}

#[test]
fn a_call_to_the_current_holder_waits_for_the_successor() {
    let mut w = World::with_services();
    let old = w.endpoint(B);
    w.sendrec(A, Endpoint::current(B), 1);
    destroy(&mut w, old, 1);
    w.sendrec(C, Endpoint::current(B), 2);
    assert!(!w.is_ready(A) && !w.is_ready(C));
    w.service(B);
    w.receive(B, Endpoint::ANY);
    assert_eq!(w.message(B).label, 1);
    w.receive(B, Endpoint::ANY);
    assert_eq!(w.message(B).label, 2);
}

#[test]
fn a_real_time_call_that_waits_for_a_successor_moves_nobody_in_the_ready_queues() {
    let mut w = World::with_services();
    let old = w.endpoint(B);
    let a = w.endpoint(A).0 as u64;
    destroy(&mut w, old, 1);
    w.kernel_call(RS, KernelCall::Schedule, &[a, call::REAL_TIME + 10, 0]).expect("scheduled");
    w.sendrec(A, Endpoint::current(B), 1);
    assert!(w.is_ready(C) && w.is_ready(RS) && !w.is_ready(A));
    w.service(B);
    w.receive(B, Endpoint::ANY);
    assert_eq!(w.message(B).label, 1);
}

#[test]
fn a_call_that_the_dead_had_in_hand_fails() {
    let mut w = World::with_services();
    let b = w.endpoint(B);
    w.receive(B, Endpoint::ANY);
    w.sendrec(A, Endpoint::current(B), 1);
    destroy(&mut w, b, 1);
    assert!(w.is_ready(A));
    assert_eq!(w.result(A), Err(Errno::EDEADSRCDST));
}

#[test]
fn without_an_expected_successor_nobody_waits() {
    let mut w = World::with_services();
    let b = w.endpoint(B);
    w.sendrec(A, Endpoint::current(B), 1);
    destroy(&mut w, b, 0);
    assert_eq!(w.result(A), Err(Errno::EDEADSRCDST));
    w.send(A, Endpoint::current(B), 1);
    assert_eq!(w.result(A), Err(Errno::EDEADSRCDST));
}

#[test]
fn giving_up_the_successor_releases_those_who_wait_for_it() {
    let mut w = World::with_services();
    let b = w.endpoint(B);
    destroy(&mut w, b, 1);
    w.send(A, Endpoint::current(B), 1);
    assert!(!w.is_ready(A));
    destroy(&mut w, Endpoint::current(B), 0);
    assert!(w.is_ready(A));
    assert_eq!(w.result(A), Err(Errno::EDEADSRCDST));
}

#[test]
fn notifications_of_the_dead_vanish() {
    let mut w = World::with_services();
    let (a, b) = (w.endpoint(A), w.endpoint(B));
    w.primitive(B, call::NOTIFY, a, 0, 0);
    destroy(&mut w, b, 1);
    w.service(B);
    w.receive(A, Endpoint::ANY);
    assert!(!w.is_ready(A));
}

#[test]
fn a_refused_sendnb_learns_of_the_death() {
    let mut w = World::with_services();
    let b = w.endpoint(B);
    w.primitive(A, call::SENDNB, b, 1, 0);
    w.receive(A, Endpoint::ANY);
    destroy(&mut w, b, 0);
    assert_eq!(w.message(A).label, Notify::LABEL);
    w.primitive(A, call::SENDNB, b, 1, 0);
    assert_eq!(w.result(A), Err(Errno::EDEADSRCDST));
}

#[test]
fn a_waiting_sender_that_dies_leaves_no_message() {
    let mut w = World::with_services();
    let (a, b) = (w.endpoint(A), w.endpoint(B));
    w.send(A, b, 1);
    w.send(C, b, 2);
    destroy(&mut w, a, 0);
    w.receive(B, Endpoint::ANY);
    assert_eq!(w.message(B).label, 2);
    w.receive(B, Endpoint::ANY);
    assert!(!w.is_ready(B));
}

#[test]
fn alarms_of_the_dead_do_not_ring_for_the_successor() {
    let mut w = World::with_services();
    w.kernel_call(B, KernelCall::SetAlarm, &[100]).expect("set");
    let b = w.endpoint(B);
    destroy(&mut w, b, 1);
    w.service(B);
    w.receive(B, Endpoint::ANY);
    w.m.now = 200;
    w.node.timer(&mut w.m);
    assert!(!w.is_ready(B));
}

#[test]
fn generations_go_round_without_ever_being_zero() {
    let mut w = World::with_services();
    let mut last = w.endpoint(B);
    for _ in 0..20 {
        destroy(&mut w, last, 1);
        let next = w.kernel_call(RS, KernelCall::Create, &[B as u64]).expect("created");
        let next = Endpoint(next as u32);
        assert_eq!(next.generation(), last.generation() + 1);
        last = next;
    }
}

#[test]
fn nobody_can_destroy_itself_or_the_dead_twice() {
    let mut w = World::with_services();
    let (rs, b) = (w.endpoint(RS), w.endpoint(B));
    for this in [rs, Endpoint::SELF] {
        assert_eq!(w.kernel_call(RS, KernelCall::Destroy, &[this.0 as u64, 0]), Err(Errno::EINVAL));
    }
    destroy(&mut w, b, 0);
    assert_eq!(w.kernel_call(RS, KernelCall::Destroy, &[b.0 as u64, 0]), Err(Errno::EDEADSRCDST));
}
