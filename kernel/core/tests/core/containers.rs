//! Containers: application threads with the same row of privileges send to each other, and to nobody else.

use abi::{
    Endpoint, Errno,
    call::{self, KernelCall},
    endpoint::{APPLICATIONS_BIT, FIRST_CONTAINER, SERVICE_SLOTS},
    kernel::Notify,
};

use crate::world::{A, RS, World};

const ROW: u64 = FIRST_CONTAINER as u64;

fn join(w: &mut World, program: Endpoint, row: u64) -> Result<u64, Errno> {
    join_and_fail(w, program, row, Endpoint::NONE, Errno::EDEADSRCDST)
}

fn join_and_fail(w: &mut World, program: Endpoint, row: u64, peer: Endpoint, error: Errno) -> Result<u64, Errno> {
    let words = [program.0 as u64, row, peer.0 as u64, error.0 as u64];
    w.kernel_call(RS, KernelCall::Join, &words)
}

/// Two members of a container.
fn members() -> (World, [Endpoint; 2]) {
    let mut w = World::with_services();
    let programs = [w.application(), w.application()];
    for program in programs {
        assert_eq!(join(&mut w, program, ROW), Ok(0));
    }
    (w, programs)
}

#[test]
fn members_exchange_messages() {
    let (mut w, [one, two]) = members();
    w.receive(two.slot(), Endpoint::ANY);
    w.primitive(one.slot(), call::SENDREC, two, 5, 6);
    let message = w.message(two.slot());
    assert_eq!((message.source, message.label, message.words[0]), (one, 5, 6));
    w.primitive(two.slot(), call::SEND, one, 7, 8);
    assert_eq!((w.message(one.slot()).source, w.message(one.slot()).label), (two, 7));
}

#[test]
fn nobody_else_is_reached() {
    let (mut w, [one, two]) = members();
    let (outside, other) = (w.application(), w.application());
    join(&mut w, other, ROW + 1).expect("a row of its own");
    let service = w.endpoint(A);
    w.receive(A, Endpoint::ANY);
    for (from, to) in [(one, outside), (one, other), (outside, one), (other, two), (outside, other), (one, service)] {
        for number in [call::SEND, call::SENDREC, call::SENDNB] {
            w.primitive(from.slot(), number, to, 1, 0);
            assert_eq!(w.result(from.slot()), Err(Errno::ECALLDENIED), "{from:?} {to:?}");
        }
    }
    w.primitive(one.slot(), call::NOTIFY, two, 0, 0);
    assert_eq!(w.result(one.slot()), Err(Errno::ECALLDENIED), "programs have no bits");
    w.primitive(one.slot(), call::SEND, Endpoint(u32::MAX - 9), 1, 0);
    assert_eq!(w.result(one.slot()), Err(Errno::EDEADSRCDST), "no slot");
}

#[test]
fn services_reach_members_of_every_container() {
    let mut w = World::with_services();
    for row in [ROW, SERVICE_SLOTS as u64 - 1] {
        let program = w.application();
        join(&mut w, program, row).expect("a row");
        w.receive(program.slot(), Endpoint::ANY);
        w.primitive(A, call::SENDNB, program, 1, 0);
        assert_eq!(w.result(A), Ok(0));
    }
}

#[test]
fn what_is_no_container_and_who_is_no_program() {
    let mut w = World::with_services();
    let (program, service) = (w.application(), w.endpoint(A));
    for row in [0, 2, 4, A as u64, ROW - 1, SERVICE_SLOTS as u64, 1 << 32 | ROW, u64::MAX] {
        assert_eq!(join(&mut w, program, row), Err(Errno::EINVAL), "{row}");
    }
    assert_eq!(join(&mut w, service, ROW), Err(Errno::EINVAL));
    assert_eq!(join(&mut w, Endpoint::new(program.slot(), 77), ROW), Err(Errno::EDEADSRCDST));
    assert_eq!(w.kernel_call(RS, KernelCall::Create, &[ROW]), Err(Errno::EINVAL), "no slot of a service");
}

#[test]
fn a_child_is_no_member() {
    let (mut w, [one, two]) = members();
    let child = Endpoint(w.kernel_call(RS, KernelCall::Fork, &[one.0 as u64]).expect("forked") as u32);
    w.receive(two.slot(), Endpoint::ANY);
    let space = w.kernel_call(RS, KernelCall::SpaceCreate, &[]).expect("space");
    w.kernel_call(RS, KernelCall::SpaceSet, &[child.0 as u64, space]).expect("space set");
    w.kernel_call(RS, KernelCall::Start, &[child.0 as u64]).expect("started");
    w.primitive(child.slot(), call::SENDNB, two, 1, 0);
    assert_eq!(w.result(child.slot()), Err(Errno::ECALLDENIED));
}

/// Each way to wait for a member: it dies, or leaves.
#[test]
fn waits_for_a_member_that_ends_or_leaves_fail() {
    for leaves in [false, true] {
        for number in [call::SEND, call::SENDREC, call::RECEIVE] {
            let (mut w, [one, two]) = members();
            w.primitive(one.slot(), number, two, 1, 0);
            assert!(!w.is_ready(one.slot()), "waits");
            if leaves {
                join(&mut w, two, APPLICATIONS_BIT as u64).expect("leaves");
            } else {
                w.kernel_call(RS, KernelCall::Destroy, &[two.0 as u64, 0]).expect("destroyed");
            }
            assert!(w.is_ready(one.slot()));
            assert_eq!(w.result(one.slot()), Err(Errno::EDEADSRCDST), "{number:x} {leaves}");
        }
    }
}

#[test]
fn the_wait_of_a_member_for_another_one_fails_with_an_error_of_choice() {
    for number in [call::SEND, call::SENDREC, call::RECEIVE] {
        let (mut w, [one, two]) = members();
        let other = w.application();
        join(&mut w, other, ROW).expect("a third member");
        w.primitive(one.slot(), number, two, 1, 0);
        for stranger in [other, Endpoint::ANY, Endpoint::new(two.slot(), two.generation() + 1)] {
            join_and_fail(&mut w, one, ROW, stranger, Errno(109)).expect("the same row");
            assert!(!w.is_ready(one.slot()), "it does not wait for {stranger:?}");
        }
        join_and_fail(&mut w, one, ROW, two, Errno(109)).expect("the same row");
        assert_eq!((w.is_ready(one.slot()), w.result(one.slot())), (true, Err(Errno(109))), "{number:x}");
        w.primitive(one.slot(), call::SENDNB, two, 1, 0);
        assert_eq!(w.result(one.slot()), Err(Errno::ENOTREADY), "nothing of it is left");
    }
}

#[test]
fn the_wait_of_a_member_ends_when_it_joins_again() {
    for number in [call::SEND, call::SENDREC, call::RECEIVE] {
        let (mut w, [one, two]) = members();
        w.primitive(one.slot(), number, two, 1, 0);
        join(&mut w, one, ROW).expect("the same row");
        assert!(w.is_ready(one.slot()));
        assert_eq!(w.result(one.slot()), Err(Errno::EDEADSRCDST), "{number:x}");
        w.receive(two.slot(), Endpoint::ANY);
        assert!(!w.is_ready(two.slot()), "nothing of it is left");
    }
}

#[test]
fn a_linux_call_goes_on_while_its_thread_joins() {
    let mut w = World::with_services();
    let program = w.application();
    w.kernel_call(RS, KernelCall::Route, &[39, A as u64]).expect("routed");
    w.receive(A, Endpoint::ANY);
    w.linux_call(program.slot(), 39, [0; 6]);
    join(&mut w, program, ROW).expect("joins");
    assert!(!w.is_ready(program.slot()));
    w.primitive(A, call::REPLYREC, program, abi::message::REPLY, 4);
    assert_eq!(w.result(program.slot()), Ok(4));
}

#[test]
fn a_circle_of_members_is_refused() {
    let (mut w, [one, two]) = members();
    w.primitive(one.slot(), call::SENDREC, two, 1, 0);
    w.primitive(two.slot(), call::SEND, one, 1, 0);
    assert_eq!(w.result(two.slot()), Err(Errno::ELOCKED));
}

#[test]
fn a_wait_for_a_member_lets_notifications_through_but_one_for_an_answer_does_not() {
    for comes_first in [false, true] {
        let (mut w, [one, two]) = members();
        if comes_first {
            w.primitive(A, call::NOTIFY, one, 0, 0);
        }
        w.receive(one.slot(), two);
        if !comes_first {
            assert!(!w.is_ready(one.slot()));
            w.primitive(A, call::NOTIFY, one, 0, 0);
        }
        assert!(w.is_ready(one.slot()));
        assert_eq!((w.message(one.slot()).source, w.message(one.slot()).label), (w.endpoint(A), Notify::LABEL));
        w.primitive(A, call::NOTIFY, one, 0, 0);
        w.primitive(one.slot(), call::SENDREC, two, 1, 0);
        w.receive(two.slot(), one);
        assert!(!w.is_ready(one.slot()), "it waits for the answer");
    }
}

#[test]
fn who_waits_for_a_member_waits_on_while_its_wait_is_ended() {
    let (mut w, [one, two]) = members();
    w.primitive(one.slot(), call::SENDREC, two, 1, 0);
    w.receive(two.slot(), Endpoint::ANY);
    w.receive(two.slot(), Endpoint::ANY);
    join(&mut w, two, ROW).expect("the same row");
    assert_eq!(w.result(two.slot()), Err(Errno::EDEADSRCDST));
    assert!(!w.is_ready(one.slot()), "it has its row still");
    w.primitive(two.slot(), call::SEND, one, 2, 0);
    assert_eq!(w.message(one.slot()).label, 2);
}
