//! Disturbances on purpose: death after a number of messages, changed text, silence.

use abi::{
    Endpoint, Errno, call,
    call::{KernelCall, inject},
    kernel::Exception,
    layout::map,
    message,
};
use kernel_core::Next;

use crate::{
    fake::PAGE,
    world::{A, B, RS, VM, World},
};

const LABEL: u32 = 0x20_0001;
const TEXT: u64 = 0x40_0000;

fn inject(w: &mut World, slot: usize, words: &[u64]) -> Result<u64, Errno> {
    let mut arguments = vec![w.endpoint(slot).0 as u64];
    arguments.extend(words);
    w.kernel_call(RS, KernelCall::Inject, &arguments)
}

fn kill_after(w: &mut World, slot: usize, messages: u64) {
    inject(w, slot, &[inject::KILL_AFTER_MESSAGES, messages]).expect("armed");
}

/// The service whose ordered death rs, which waits, has been told of.
fn told_of(w: &mut World) -> Endpoint {
    let message = w.message(RS);
    assert_eq!((message.label, Exception::from_message(&message).vector), (Exception::LABEL, inject::VECTOR));
    message.source
}

#[test]
fn a_service_dies_when_it_has_received_its_last_message() {
    let mut w = World::with_services();
    let b = w.endpoint(B);
    w.receive(B, Endpoint::ANY);
    kill_after(&mut w, B, 3);
    w.receive(RS, Endpoint::ANY);
    w.sendrec(A, b, LABEL);
    w.primitive(B, call::REPLYREC, w.endpoint(A), LABEL | message::REPLY, 0);
    assert!(w.is_ready(B) || !w.is_ready(RS), "two messages are not three");
    w.sendrec(A, b, LABEL);
    assert!(!w.is_ready(B), "it does not run after its last message");
    assert_eq!(told_of(&mut w), b);
    assert!(!w.is_ready(A), "its caller waits until it is destroyed");
}

#[test]
fn a_service_dies_when_it_has_sent_its_last_message_although_it_waits() {
    let mut w = World::with_services();
    let a = w.endpoint(A);
    w.receive(B, Endpoint::ANY);
    kill_after(&mut w, A, 1);
    w.receive(RS, Endpoint::ANY);
    w.sendrec(A, w.endpoint(B), LABEL);
    assert_eq!(w.m.armed, Some(0), "the timer comes at once");
    w.node.timer(&mut w.m);
    w.next();
    assert_eq!(told_of(&mut w), a);
    w.primitive(B, call::REPLYREC, a, LABEL | message::REPLY, 0);
    assert!(!w.is_ready(A));
}

#[test]
fn notifications_count() {
    let mut w = World::with_services();
    let b = w.endpoint(B);
    kill_after(&mut w, B, 1);
    w.primitive(A, call::NOTIFY, b, 0, 0);
    w.receive(RS, Endpoint::ANY);
    w.receive(B, Endpoint::ANY);
    assert_eq!(told_of(&mut w), b);
}

#[test]
fn an_order_can_be_taken_back_and_ends_with_its_service() {
    let mut w = World::with_services();
    let (a, b) = (w.endpoint(A), w.endpoint(B));
    kill_after(&mut w, B, 1);
    kill_after(&mut w, B, 0);
    w.receive(B, Endpoint::ANY);
    w.send(A, b, LABEL);
    assert!(w.is_ready(B));
    kill_after(&mut w, B, 1);
    w.kernel_call(RS, KernelCall::Destroy, &[b.0 as u64, 1]).expect("destroyed");
    let b = w.service(B);
    w.receive(B, Endpoint::ANY);
    w.send(A, b, LABEL);
    assert!(w.is_ready(B));
    assert_eq!(w.message(B).source, a);
}

#[test]
fn the_short_way_is_barred_only_while_messages_are_counted() {
    let mut w = World::with_services();
    for sleeper in [RS, VM, crate::world::C, B] {
        w.receive(sleeper, Endpoint::ANY);
    }
    let b = w.endpoint(B);
    w.make_current(A);
    let frame = w.node.frame_mut(A);
    frame.rax = call::SENDREC;
    frame.r13 = b.0 as u64 | (LABEL as u64) << 32;
    frame.entry = kernel_core::frame::entry::SYSCALL;
    w.node.frame_mut(B).entry = kernel_core::frame::entry::SYSCALL;
    assert!(w.node.try_primitive(&mut w.m, abi::call::SENDREC).is_some());
    let mut w = World::with_services();
    kill_after(&mut w, B, 100);
    for sleeper in [RS, VM, crate::world::C, B] {
        w.receive(sleeper, Endpoint::ANY);
    }
    w.make_current(A);
    w.node.frame_mut(A).r13 = w.endpoint(B).0 as u64;
    assert_eq!(w.node.try_primitive(&mut w.m, abi::call::SENDREC), None);
}

#[test]
fn an_ordered_death_of_vm_is_a_restart() {
    let mut w = World::with_services();
    w.receive(VM, Endpoint::ANY);
    kill_after(&mut w, VM, 1);
    w.sendrec(A, Endpoint::VM, LABEL);
    assert!(w.is_ready(VM));
    assert_eq!(w.m.renewed.len(), 1);
    w.receive(VM, Endpoint::ANY);
    assert_eq!(w.message(VM).source, w.endpoint(A), "it asks again");
}

#[test]
fn vm_is_ready_again_when_it_dies_waiting() {
    let mut w = World::with_services();
    let a = w.endpoint(A);
    w.receive(VM, Endpoint::ANY);
    w.sendrec(A, Endpoint::VM, LABEL);
    kill_after(&mut w, VM, 1);
    w.primitive(VM, call::REPLYREC, a, LABEL | message::REPLY, 0);
    w.node.timer(&mut w.m);
    assert!(w.is_ready(VM), "at its entry point, waiting for nothing");
    assert_eq!(w.message(A).source, w.endpoint(VM), "the answer had left");
}

#[test]
fn text_is_changed_though_it_is_read_only() {
    let mut w = World::with_services();
    let space = w.space(B);
    w.m.map(space, TEXT, 900 * PAGE, map::EXECUTE);
    assert_eq!(inject(&mut w, B, &[inject::POKE, TEXT + 1, 0x8877_6655_4433_2211, 3]), Ok(0));
    assert_eq!(w.m.peek(space, TEXT, 5), [0, 0x11, 0x22, 0x33, 0]);
    for bytes in [0, 9, u64::MAX] {
        assert_eq!(inject(&mut w, B, &[inject::POKE, TEXT, 0, bytes]), Err(Errno::EINVAL));
    }
    for address in [TEXT + PAGE - 1, 8, u64::MAX] {
        assert_eq!(inject(&mut w, B, &[inject::POKE, address, !0, 2]), Err(Errno::EFAULT));
    }
    assert_eq!(w.m.peek(space, TEXT + PAGE - 1, 1), [0], "all or nothing");
}

#[test]
fn as_many_as_eight_bytes_of_text_are_changed() {
    let mut w = World::with_services();
    let space = w.space(B);
    w.m.map(space, TEXT, 900 * PAGE, map::EXECUTE);
    for bytes in [1, 8] {
        assert_eq!(inject(&mut w, B, &[inject::POKE, TEXT + PAGE - bytes, 0x8877_6655_4433_2211, bytes]), Ok(0));
    }
    assert_eq!(w.m.peek(space, TEXT + PAGE - 8, 8), [0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88]);
    let b = w.endpoint(B).0 as u64;
    w.kernel_call(RS, KernelCall::SpaceSet, &[b, u64::MAX]).expect("taken away");
    assert_eq!(inject(&mut w, B, &[inject::POKE, TEXT, 0, 1]), Err(Errno::EFAULT));
}

#[test]
fn services_of_the_first_and_the_last_slot_may_be_disturbed() {
    let mut w = World::with_services();
    w.service(95);
    for slot in [95, VM] {
        assert_eq!(inject(&mut w, slot, &[inject::KILL_AFTER_MESSAGES, 9]), Ok(0));
    }
}

#[test]
fn deaths_of_two_services_are_ordered_and_taken_back_one_by_one() {
    let mut w = World::with_services();
    for slot in [A, B, B] {
        kill_after(&mut w, slot, 2);
    }
    kill_after(&mut w, A, 0);
    let b = w.endpoint(B);
    w.receive(B, Endpoint::ANY);
    w.send(A, b, LABEL);
    w.receive(B, Endpoint::ANY);
    w.receive(RS, Endpoint::ANY);
    w.send(A, b, LABEL);
    assert!(!w.is_ready(B), "after two messages");
    assert_eq!(told_of(&mut w), b);
    assert!(w.is_ready(A));
}

#[test]
fn a_silenced_service_does_not_run() {
    let mut w = World::with_services();
    inject(&mut w, B, &[inject::SILENCE]).expect("silenced");
    assert!(!w.is_ready(B));
    assert!(matches!(w.next(), Next::Run(_)));
}

#[test]
fn only_rs_may_disturb_and_only_services() {
    let mut w = World::with_services();
    let b = w.endpoint(B).0 as u64;
    assert_eq!(w.kernel_call(A, KernelCall::Inject, &[b, inject::SILENCE]), Err(Errno::ECALLDENIED));
    let program = w.application();
    let refused = w.kernel_call(RS, KernelCall::Inject, &[program.0 as u64, inject::SILENCE]);
    assert_eq!(refused, Err(Errno::EINVAL));
    assert_eq!(inject(&mut w, B, &[7]), Err(Errno::EINVAL));
}

#[test]
fn messages_take_the_fast_path_again_when_no_death_is_ordered_any_more() {
    let mut w = World::with_services();
    let b = w.endpoint(B);
    for (slot, messages) in [(A, 100), (B, 100), (B, 200), (A, 0), (B, 0)] {
        kill_after(&mut w, slot, messages);
    }
    for sleeper in [RS, VM, crate::world::C, B] {
        w.receive(sleeper, Endpoint::ANY);
    }
    let before = w.fast_switches;
    w.sendrec(A, b, LABEL);
    assert_eq!((w.fast_switches - before, w.message(B).source), (1, w.endpoint(A)));
}
