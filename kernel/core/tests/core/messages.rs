//! Rendezvous between services: delivery, order, refusal.

use abi::{
    Endpoint, Errno,
    call::{self, KernelCall},
    kernel::Notify,
    message,
};

use crate::world::{A, B, C, RS, VM, World, all_rights};

#[test]
fn a_message_reaches_a_waiting_receiver_with_all_its_words() {
    let mut w = World::with_services();
    w.receive(B, Endpoint::ANY);
    let b = w.endpoint(B);
    w.primitive(A, call::SEND, b, 0x20_0001, 100);
    assert_eq!(w.result(A), Ok(0));
    let received = w.message(B);
    assert_eq!(received.source, w.endpoint(A));
    assert_eq!(received.label, 0x20_0001);
    assert_eq!(received.words, [100, 101, 102, 103, 104, 105, 106]);
    assert!(w.is_ready(B) && w.is_ready(A));
}

#[test]
fn a_sender_waits_until_its_message_is_received() {
    let mut w = World::with_services();
    let b = w.endpoint(B);
    w.send(A, b, 7);
    assert!(!w.is_ready(A));
    w.receive(B, Endpoint::ANY);
    assert_eq!(w.message(B).label, 7);
    assert!(w.is_ready(A));
    assert_eq!(w.result(A), Ok(0));
}

#[test]
fn sendrec_waits_for_the_answer_of_the_same_endpoint() {
    let mut w = World::with_services();
    let (a, b) = (w.endpoint(A), w.endpoint(B));
    w.receive(B, Endpoint::ANY);
    w.sendrec(A, b, 7);
    assert!(!w.is_ready(A));
    w.send(C, a, 9);
    assert!(!w.is_ready(C), "C is not whom A waits for");
    w.primitive(B, call::REPLYREC, a, 7 | message::REPLY, 55);
    assert_eq!((w.message(A).label, w.message(A).words[0]), (7 | message::REPLY, 55));
    assert!(!w.is_ready(B), "B receives again");
}

#[test]
fn replyrec_hands_over_and_takes_the_next_request() {
    let mut w = World::with_services();
    let (a, b) = (w.endpoint(A), w.endpoint(B));
    w.receive(B, Endpoint::ANY);
    w.sendrec(A, b, 7);
    w.sendrec(C, b, 8);
    w.primitive(B, call::REPLYREC, a, 7 | message::REPLY, 0);
    assert_eq!(w.message(B).label, 8);
    assert!(w.is_ready(A) && w.is_ready(B));
}

#[test]
fn a_reply_to_a_caller_that_does_not_wait_is_lost() {
    let mut w = World::with_services();
    let a = w.endpoint(A);
    w.scrub(A);
    w.primitive(B, call::REPLYREC, a, 7 | message::REPLY, 0);
    assert!(!w.is_ready(B));
    assert_eq!(w.node.frame_mut(A).rax, 0xdead);
    w.receive(A, Endpoint::ANY);
    assert!(!w.is_ready(A), "nothing is left of the lost message");
}

#[test]
fn senders_of_one_queue_are_served_in_order_of_arrival() {
    let mut w = World::with_services();
    let c = w.endpoint(C);
    w.send(B, c, 1);
    w.send(A, c, 2);
    w.receive(C, Endpoint::ANY);
    assert_eq!(w.message(C).label, 1);
    w.receive(C, Endpoint::ANY);
    assert_eq!(w.message(C).label, 2);
}

#[test]
fn senders_of_a_better_queue_are_served_first() {
    let mut w = World::with_services();
    let (b, c) = (w.endpoint(B), w.endpoint(C));
    w.send(A, c, 1);
    w.kernel_call(crate::world::RS, abi::call::KernelCall::Schedule, &[b.0 as u64, 3, 0]).expect("scheduled");
    w.send(B, c, 2);
    w.receive(C, Endpoint::ANY);
    assert_eq!(w.message(C).label, 2);
}

#[test]
fn programs_are_served_in_order_of_arrival_and_services_before_them() {
    let mut w = World::with_services();
    let (b, c) = (w.endpoint(B), w.endpoint(C));
    let rs = crate::world::RS;
    w.kernel_call(rs, abi::call::KernelCall::Route, &[39, C as u64]).expect("routed");
    let first = w.application();
    w.linux_call(first.slot(), 39, [0; 6]);
    let second = w.application();
    w.kernel_call(rs, abi::call::KernelCall::Schedule, &[second.0 as u64, 3, 0]).expect("scheduled");
    w.linux_call(second.slot(), 39, [0; 6]);
    w.kernel_call(rs, abi::call::KernelCall::Schedule, &[b.0 as u64, 3, 0]).expect("scheduled");
    w.sendrec(B, c, 2);
    for sender in [b, first, second] {
        w.receive(C, Endpoint::ANY);
        assert_eq!(w.message(C).source, sender);
    }
}

#[test]
fn receiving_from_one_endpoint_leaves_the_others_waiting() {
    let mut w = World::with_services();
    let (b, c) = (w.endpoint(B), w.endpoint(C));
    w.send(A, c, 1);
    w.send(B, c, 2);
    w.receive(C, b);
    assert_eq!(w.message(C).source, b);
    assert!(!w.is_ready(A));
}

#[test]
fn sendnb_is_refused_unless_the_destination_waits() {
    let mut w = World::with_services();
    let b = w.endpoint(B);
    w.primitive(A, call::SENDNB, b, 1, 0);
    assert_eq!(w.result(A), Err(Errno::ENOTREADY));
    w.receive(B, Endpoint::ANY);
    w.primitive(A, call::SENDNB, b, 2, 0);
    assert_eq!(w.result(A), Ok(0));
    assert_eq!(w.message(B).label, 2);
}

#[test]
fn sendwait_receives_only_after_its_message_was_taken() {
    let mut w = World::with_services();
    let (a, b) = (w.endpoint(A), w.endpoint(B));
    w.primitive(A, call::SENDWAIT, b, 1, 0);
    w.send(C, a, 2);
    assert!(!w.is_ready(A) && !w.is_ready(C));
    w.receive(B, Endpoint::ANY);
    assert_eq!(w.message(B).label, 1);
    assert_eq!(w.message(A).label, 2);
    assert!(w.is_ready(A) && w.is_ready(C));
}

#[test]
fn sendwait_to_a_waiting_destination_goes_on_to_receive() {
    let mut w = World::with_services();
    let b = w.endpoint(B);
    w.receive(B, Endpoint::ANY);
    w.primitive(A, call::SENDWAIT, b, 1, 0);
    assert_eq!(w.message(B).label, 1);
    let a = w.endpoint(A);
    w.send(C, a, 3);
    assert_eq!(w.message(A).label, 3);
}

#[test]
fn a_circle_of_senders_is_refused() {
    let mut w = World::with_services();
    let (a, b, c) = (w.endpoint(A), w.endpoint(B), w.endpoint(C));
    w.send(A, b, 1);
    w.sendrec(B, c, 1);
    w.send(C, a, 1);
    assert_eq!(w.result(C), Err(Errno::ELOCKED));
    assert!(w.is_ready(C));
}

#[test]
fn a_circle_closed_by_receiving_is_refused() {
    let mut w = World::with_services();
    let (a, b) = (w.endpoint(A), w.endpoint(B));
    w.receive(B, Endpoint::ANY);
    w.sendrec(A, b, 1);
    w.receive(B, a);
    assert_eq!(w.result(B), Err(Errno::ELOCKED));
}

#[test]
fn answering_a_caller_that_waits_is_no_circle() {
    let mut w = World::with_services();
    let (a, b) = (w.endpoint(A), w.endpoint(B));
    w.receive(B, Endpoint::ANY);
    w.sendrec(A, b, 1);
    w.send(B, a, 2);
    assert_eq!(w.result(B), Ok(0));
    assert_eq!(w.message(A).label, 2);
}

#[test]
fn sending_to_oneself_is_a_circle() {
    let mut w = World::with_services();
    let a = w.endpoint(A);
    w.send(A, a, 1);
    assert_eq!(w.result(A), Err(Errno::ELOCKED));
}

#[test]
fn a_destination_outside_the_bitmap_is_refused_by_every_primitive() {
    let mut w = World::with_services();
    let (a, b) = (w.endpoint(A), w.endpoint(B));
    let mut rights = all_rights();
    rights.destinations[B / 64] &= !(1 << (B % 64));
    w.set_privileges(a, &rights);
    for number in [call::SEND, call::SENDREC, call::SENDNB, call::SENDWAIT, call::REPLYREC, call::NOTIFY] {
        w.primitive(A, number, b, 1, 0);
        assert_eq!(w.result(A), Err(Errno::ECALLDENIED), "call {number:#x}");
    }
}

#[test]
fn endpoints_that_name_nobody_are_refused() {
    let mut w = World::with_services();
    let stale = Endpoint::new(B, 7);
    for to in [
        stale,
        Endpoint::current(30),
        Endpoint::ANY,
        Endpoint::NONE,
        Endpoint::SYSTEM,
        Endpoint::new(300, 1),
        Endpoint::current(300),
    ] {
        w.send(A, to, 1);
        assert_eq!(w.result(A), Err(Errno::EDEADSRCDST), "{to:?}");
    }
    w.receive(A, stale);
    assert_eq!(w.result(A), Err(Errno::EDEADSRCDST));
}

#[test]
fn programs_cannot_send_the_kernels_labels() {
    let mut w = World::with_services();
    let b = w.endpoint(B);
    w.receive(B, Endpoint::ANY);
    for label in [message::KERNEL_LABELS, abi::kernel::Fault::LABEL, message::REPLY - 1] {
        w.send(A, b, label);
        assert_eq!(w.result(A), Err(Errno::EINVAL));
    }
    assert!(!w.is_ready(B));
}

#[test]
fn unknown_numbers_do_nothing() {
    let mut w = World::with_services();
    // A Linux program that asks for a call which Linux does not have gets Linux's answer.
    let foreign = [0x1007, 0x10ff, 0x1100 + 64, 100_000, u64::MAX].map(|number| (number, Errno::ENOSYS));
    let kernel_calls = [0x1100 + 60, 0x1100 + 63].map(|number| (number, Errno::EBADCALL));
    for (number, error) in foreign.into_iter().chain(kernel_calls) {
        w.syscall(A, |frame| frame.rax = number);
        assert_eq!(w.result(A), Err(error), "{number:#x}");
    }
}

#[test]
fn vector_33_moves_messages_through_memory() {
    let mut w = World::with_services();
    let (a, b) = (w.endpoint(A), w.endpoint(B));
    w.receive(B, Endpoint::ANY);
    let space = w.space(A);
    let mut bytes = vec![0; 64];
    bytes[4..8].copy_from_slice(&0x20_0002u32.to_le_bytes());
    bytes[8] = 77;
    w.m.poke(space, crate::world::BUFFER + 0x100, &bytes);
    w.make_current(A);
    let frame = w.node.frame_mut(A);
    (frame.rax, frame.rdi, frame.rsi) = (call::SENDREC, b.0 as u64, crate::world::BUFFER + 0x100);
    w.enter33();
    assert_eq!((w.message(B).label, w.message(B).words[0]), (0x20_0002, 77));
    w.primitive(B, call::SENDNB, a, 0x8020_0002, 5);
    w.make_current(A);
    assert_eq!(w.result(A), Ok(0));
    let reply = w.m.peek(space, crate::world::BUFFER + 0x100, 64);
    assert_eq!(&reply[..4], b.0.to_le_bytes());
    assert_eq!(&reply[4..8], 0x8020_0002u32.to_le_bytes());
    assert_eq!(reply[8..16], 5u64.to_le_bytes());
}

/// Lets `slot` execute `int 0x21` with a message at `address`.
fn vector33(w: &mut World, slot: usize, number: u64, peer: Endpoint, address: u64) {
    w.make_current(slot);
    let frame = w.node.frame_mut(slot);
    (frame.rax, frame.rdi, frame.rsi) = (number, peer.0 as u64, address);
    w.enter33();
}

#[test]
fn vector_33_has_the_five_primitives_of_minix_and_their_errors() {
    let mut w = World::with_services();
    let (a, b) = (w.endpoint(A), w.endpoint(B));
    let space = w.space(A);
    let at = crate::world::BUFFER + 0x100;
    w.m.poke(space, at, &[0; 64]);
    w.m.poke(space, at + 4, &0x20_0002u32.to_le_bytes());
    vector33(&mut w, A, call::SENDNB, b, at);
    assert_eq!(w.result(A), Err(Errno::ENOTREADY));
    vector33(&mut w, A, call::NOTIFY, b, 0);
    assert_eq!(w.result(A), Ok(0));
    vector33(&mut w, A, call::SEND, b, at);
    assert!(!w.is_ready(A));
    w.receive(B, Endpoint::ANY);
    assert_eq!((w.message(B).label, w.message(B).source), (abi::kernel::Notify::LABEL, a));
    w.receive(B, Endpoint::ANY);
    assert_eq!((w.message(B).label, w.message(B).source), (0x20_0002, a));
    assert!(w.is_ready(A));
    assert_eq!(w.result(A), Ok(0));
    for number in [call::SENDWAIT, call::REPLYREC, 0x1007, 0, 39] {
        vector33(&mut w, A, number, b, at);
        assert_eq!(w.result(A), Err(Errno::EBADCALL), "{number:#x}");
    }
    for number in [call::SEND, call::RECEIVE, call::SENDREC] {
        vector33(&mut w, A, number, b, abi::layout::USER_END - 63);
        assert_eq!(w.result(A), Err(Errno::EFAULT), "{number:#x}");
    }
    vector33(&mut w, A, call::SEND, Endpoint::new(B, 77), at);
    assert_eq!(w.result(A), Err(Errno::EDEADSRCDST));
    w.m.poke(space, at + 4, &message::KERNEL_LABELS.to_le_bytes());
    vector33(&mut w, A, call::SEND, b, at);
    assert_eq!(w.result(A), Err(Errno::EINVAL));
}

#[test]
fn a_server_may_receive_by_vector_33_and_answer_in_registers() {
    let mut w = World::with_services();
    let (space, at) = (w.space(A), crate::world::BUFFER + 0x100);
    w.kernel_call(RS, KernelCall::Route, &[39, A as u64]).expect("routed");
    let program = w.application();
    for other in [B, C, RS, VM] {
        w.receive(other, Endpoint::ANY);
    }
    vector33(&mut w, A, call::RECEIVE, Endpoint::ANY, at);
    w.linux_call(program.slot(), 39, [0; 6]);
    w.make_current(A);
    assert_eq!(w.m.peek(space, at + 4, 4), 39u32.to_le_bytes());
    let before = w.fast_switches;
    w.primitive(A, call::REPLYREC, program, message::REPLY, 7);
    assert_eq!((w.result(program.slot()), w.fast_switches), (Ok(7), before + 1));
    w.linux_call(program.slot(), 39, [5; 6]);
    assert_eq!((w.message(A).label, w.message(A).words[0]), (39, 5));
    assert_eq!(w.m.peek(space, at + 8, 8), [0; 8]);
}

#[test]
fn a_message_from_memory_is_in_the_memory_of_its_receiver_before_that_runs() {
    let mut w = World::with_services();
    let (a, b, at) = (w.endpoint(A), w.endpoint(B), crate::world::BUFFER + 0x100);
    let [from, to] = [A, B].map(|slot| w.space(slot));
    vector33(&mut w, B, call::RECEIVE, Endpoint::ANY, at);
    w.m.poke(from, at, &[7; 64]);
    w.make_current(A);
    let frame = w.node.frame_mut(A);
    (frame.rax, frame.rdi, frame.rsi) = (call::SENDREC, b.0 as u64, at);
    w.node.vector33(&mut w.m);
    let stored = w.m.peek(to, at, 64);
    assert_eq!((&stored[..4], &stored[4..]), (&a.0.to_le_bytes()[..], &[7; 60][..]));
    assert_eq!(w.m.peek(from, at, 4), [7; 4], "the sender's has no source");
    w.next();
    assert_eq!(w.result(B), Ok(0));
}

#[test]
fn labels_below_and_above_the_kernels_may_be_sent() {
    let mut w = World::with_services();
    let b = w.endpoint(B);
    for label in [0, message::KERNEL_LABELS - 1, message::REPLY, u32::MAX] {
        w.receive(B, Endpoint::ANY);
        w.send(A, b, label);
        assert_eq!((w.result(A), w.message(B).label), (Ok(0), label), "{label:#x}");
    }
}

#[test]
fn replyrec_without_a_message_only_receives_and_checks_what_it_sends() {
    let mut w = World::with_services();
    let (a, c) = (w.endpoint(A), w.endpoint(C));
    w.receive(A, Endpoint::ANY);
    w.primitive(B, call::REPLYREC, Endpoint::NONE, 7, 0);
    assert!(!w.is_ready(B) && !w.is_ready(A));
    let b = w.endpoint(B);
    w.send(C, b, 8);
    assert_eq!((w.message(B).source, w.message(B).label), (c, 8));
    w.primitive(B, call::REPLYREC, a, message::KERNEL_LABELS, 0);
    assert_eq!(w.result(B), Err(Errno::EINVAL));
    w.primitive(B, call::REPLYREC, Endpoint::new(1152, 1), message::REPLY, 0);
    assert_eq!(w.result(B), Err(Errno::EDEADSRCDST));
    w.primitive(B, call::REPLYREC, Endpoint::new(A, 9), message::REPLY, 0);
    assert!(!w.is_ready(B), "what is for nobody is lost, and it receives");
}

#[test]
fn a_request_by_replyrec_is_refused_like_one_by_sendnb_and_nothing_is_received() {
    let mut w = World::with_services();
    let (a, b) = (w.endpoint(A), w.endpoint(B));
    w.send(C, b, 8);
    w.primitive(B, call::REPLYREC, a, 7, 0);
    assert_eq!(w.result(B), Err(Errno::ENOTREADY));
    w.primitive(B, call::REPLYREC, Endpoint::new(A, 9), 7, 0);
    assert_eq!(w.result(B), Err(Errno::EDEADSRCDST));
    assert!(!w.is_ready(C), "nothing was received");
    w.receive(A, Endpoint::ANY);
    w.primitive(B, call::REPLYREC, a, 7, 0);
    assert_eq!((w.message(A).label, w.message(B).label), (7, Notify::LABEL), "A waits again, then C");
}

/// A server that was asked while it was busy tells when it is not.
#[test]
fn a_request_by_replyrec_that_was_refused_is_told_of() {
    let mut w = World::with_services();
    let a = w.endpoint(A);
    w.primitive(B, call::REPLYREC, a, 7, 0);
    assert_eq!(w.result(B), Err(Errno::ENOTREADY));
    w.receive(B, Endpoint::ANY);
    w.receive(A, Endpoint::ANY);
    assert_eq!((w.message(B).label, w.message(B).source.slot()), (Notify::LABEL, A));
}

#[test]
fn sendrec_to_a_server_that_waits_for_another_waits_too() {
    let mut w = World::with_services();
    let (b, c) = (w.endpoint(B), w.endpoint(C));
    w.receive(B, c);
    w.sendrec(A, b, 1);
    assert!(!w.is_ready(A) && !w.is_ready(B));
    w.send(C, b, 2);
    assert_eq!((w.message(B).source, w.message(B).label), (c, 2));
    w.receive(B, Endpoint::ANY);
    assert_eq!(w.message(B).label, 1);
}

#[test]
fn receiving_from_the_holder_of_a_slot_takes_any_incarnation() {
    let mut w = World::with_services();
    w.receive(B, Endpoint::current(A));
    let b = w.endpoint(B);
    w.send(C, b, 1);
    assert!(!w.is_ready(B));
    w.send(A, b, 2);
    assert_eq!((w.message(B).source, w.message(B).label), (w.endpoint(A), 2));
    w.receive(B, Endpoint::current(30));
    assert_eq!(w.result(B), Err(Errno::EDEADSRCDST));
}
