//! vm and rs fail and start again in their own memory.

use abi::{
    Endpoint, Errno, call,
    call::{KernelCall, inject},
    kernel::{Exception, Exited, Fault, HUNG_VECTOR},
    layout::start_kind,
    message,
};

use crate::world::{A, B, RS, VM, World};

const LABEL: u32 = 0x1_0002;
const BRK: u64 = 12;

fn fail(w: &mut World, slot: usize) {
    w.make_current(slot);
    w.node.exception(&mut w.m, 6, 0, 0);
    w.next();
}

#[test]
fn vm_starts_again_at_its_entry_with_the_same_endpoint() {
    let mut w = World::with_services();
    let before = w.endpoint(VM);
    fail(&mut w, VM);
    let frame = *w.node.frame_mut(VM);
    assert_eq!((frame.rip, frame.rdi, frame.r9), (0x40_0000, start_kind::RESTARTED, before.0 as u64));
    assert_eq!(w.endpoint(VM), before);
    assert!(w.is_ready(VM));
    let (slot, reason) = w.m.renewed[0];
    assert_eq!((slot, reason.label, Exception::from_message(&reason).vector), (VM, Exception::LABEL, 6));
}

#[test]
fn nothing_of_what_vm_was_doing_is_left() {
    let mut w = World::with_services();
    w.m.extended.insert(VM, [1; abi::registers::EXTENDED_BYTES]);
    w.m.extended.insert(RS, [2; abi::registers::EXTENDED_BYTES]);
    w.make_current(VM);
    w.node.frame_mut(VM).rbx = 5;
    let vm = w.endpoint(VM);
    w.begin_kernel_call(VM, KernelCall::Umap, &[0x7000_0000]);
    assert_eq!(w.result(VM), Err(Errno::EFAULT), "it can ask nobody for memory");
    fail(&mut w, VM);
    assert!(!w.m.extended.contains_key(&VM) && w.m.extended.contains_key(&RS));
    assert_eq!(w.node.frame_mut(VM).rbx, 0);
    w.kernel_call(RS, KernelCall::Stop, &[vm.0 as u64]).expect("stopped");
    let place = crate::world::BUFFER;
    w.kernel_call(RS, KernelCall::GetRegisters, &[vm.0 as u64, place]).expect("read");
    assert_eq!(w.m.peek(RS as u16, place + 20 * 8, 8), [0xff; 8]);
}

#[test]
fn page_faults_and_exits_of_vm_and_rs_are_failures_too() {
    let mut w = World::with_services();
    w.make_current(VM);
    w.node.page_fault(&mut w.m, 8, 0);
    w.begin_kernel_call(RS, KernelCall::Exit, &[101]);
    let reasons: Vec<_> = w.m.renewed.iter().map(|(slot, reason)| (*slot, reason.label)).collect();
    assert_eq!(reasons, [(VM, Exception::LABEL), (RS, Exited::LABEL)]);
    assert!(w.is_ready(RS) && w.is_ready(VM));
}

#[test]
fn whoever_waits_for_an_answer_asks_again() {
    let mut w = World::with_services();
    let program = w.application();
    w.kernel_call(RS, KernelCall::Route, &[BRK, VM as u64]).expect("routed");
    w.sendrec(A, Endpoint::VM, LABEL);
    w.linux_call(program.slot(), BRK, [1, 2, 3, 4, 5, 6]);
    w.make_current(B);
    w.node.page_fault(&mut w.m, 0x5000, 0);
    for _ in 0..3 {
        w.receive(VM, Endpoint::ANY);
    }
    fail(&mut w, VM);
    let mut seen = Vec::new();
    for _ in 0..3 {
        w.receive(VM, Endpoint::ANY);
        let message = w.message(VM);
        seen.push((message.source, message.label, message.words[6] & !0xff));
    }
    let (a, b) = (w.endpoint(A), w.endpoint(B));
    assert!(seen.contains(&(a, LABEL, 0)), "as it was asked: {seen:?}");
    assert!(seen.contains(&(program, BRK as u32, message::REPEATED)));
    assert!(seen.contains(&(b, Fault::LABEL, 0)));
    w.primitive(VM, call::REPLYREC, a, LABEL | message::REPLY, 9);
    assert_eq!(w.message(A).words[0], 9);
}

#[test]
fn requests_that_were_not_received_and_notifications_wait_on() {
    let mut w = World::with_services();
    let vm = w.endpoint(VM);
    w.primitive(B, call::NOTIFY, vm, 0, 0);
    w.sendrec(A, Endpoint::VM, LABEL);
    fail(&mut w, VM);
    w.receive(VM, Endpoint::ANY);
    assert_eq!(w.message(VM).source, w.endpoint(B));
    w.receive(VM, Endpoint::ANY);
    assert_eq!(w.message(VM).source, w.endpoint(A));
}

#[test]
fn whoever_only_listens_to_the_failed_one_goes_on_listening() {
    let mut w = World::with_services();
    let (a, vm) = (w.endpoint(A), w.endpoint(VM));
    w.receive(A, vm);
    fail(&mut w, VM);
    assert!(!w.is_ready(A));
    w.send(VM, a, LABEL);
    assert_eq!(w.message(A).source, vm);
}

#[test]
fn rs_loses_its_own_wait() {
    let mut w = World::with_services();
    let rs = w.endpoint(RS);
    w.sendrec(RS, Endpoint::VM, LABEL);
    w.receive(VM, Endpoint::ANY);
    // A service's exception finds rs waiting for vm.
    w.make_current(A);
    w.node.exception(&mut w.m, 6, 0, 0);
    w.next();
    w.make_current(VM);
    w.node.frame_mut(VM).r13 = rs.0 as u64;
    w.primitive(VM, call::REPLYREC, rs, LABEL | message::REPLY, 0);
    fail(&mut w, RS);
    w.receive(RS, Endpoint::ANY);
    assert_eq!((w.message(RS).source, w.message(RS).label), (w.endpoint(A), Exception::LABEL));
}

#[test]
fn a_death_of_vm_that_rs_orders_is_a_restart() {
    let mut w = World::with_services();
    let vm = w.endpoint(VM);
    w.receive(VM, Endpoint::ANY);
    w.kernel_call(RS, KernelCall::Stop, &[vm.0 as u64]).expect("silenced");
    assert_eq!(w.kernel_call(RS, KernelCall::Destroy, &[vm.0 as u64, 1]), Ok(0));
    assert_eq!(w.endpoint(VM), vm);
    assert!(w.is_ready(VM));
    assert_eq!(Exception::from_message(&w.m.renewed[0].1).vector, inject::VECTOR);
    let rs = w.endpoint(RS);
    assert_eq!(w.kernel_call(RS, KernelCall::Destroy, &[rs.0 as u64, 1]), Err(Errno::EINVAL));
}

#[test]
#[should_panic(expected = "fatal in slot 5")]
fn too_many_failures_in_a_short_time_end_the_system() {
    let mut w = World::with_services();
    for _ in 0..9 {
        fail(&mut w, VM);
    }
}

const SECOND: u64 = 1_000_000_000;

/// Lets time pass until the timer comes, `count` times.
fn wait(w: &mut World, count: u32) {
    for _ in 0..count {
        w.m.now += SECOND;
        w.timer();
        w.next();
    }
}

fn set_alarm_of_rs(w: &mut World) {
    let soon = w.m.now + 1;
    w.kernel_call(RS, KernelCall::SetAlarm, &[soon]).expect("set");
}

#[test]
fn rs_that_leaves_its_alarm_unheard_starts_again() {
    let mut w = World::with_services();
    set_alarm_of_rs(&mut w);
    wait(&mut w, 4);
    assert!(w.m.renewed.is_empty());
    wait(&mut w, 1);
    let (slot, reason) = w.m.renewed[0];
    assert_eq!((slot, Exception::from_message(&reason).vector), (RS, HUNG_VECTOR));
    w.receive(RS, Endpoint::ANY);
    assert_eq!(w.message(RS).source, Endpoint::CLOCK);
}

#[test]
fn vm_starts_again_when_rs_waits_too_long_for_it() {
    let mut w = World::with_services();
    set_alarm_of_rs(&mut w);
    w.sendrec(RS, Endpoint::VM, LABEL);
    w.receive(VM, Endpoint::ANY);
    wait(&mut w, 5);
    w.receive(VM, Endpoint::ANY);
    assert_eq!(w.m.renewed[0].0, VM);
    assert_eq!((w.message(VM).source, w.message(VM).label), (w.endpoint(RS), LABEL));
}

#[test]
fn an_alarm_that_rs_hears_late_is_no_hang() {
    let mut w = World::with_services();
    for _ in 0..4 {
        set_alarm_of_rs(&mut w);
        wait(&mut w, 4);
        w.receive(RS, Endpoint::ANY);
    }
    assert!(w.m.renewed.is_empty());
}

#[test]
fn a_machine_that_was_stopped_for_a_minute_is_no_hang() {
    let mut w = World::with_services();
    set_alarm_of_rs(&mut w);
    wait(&mut w, 1);
    w.m.now += 60 * SECOND;
    wait(&mut w, 1);
    assert!(w.m.renewed.is_empty());
    w.receive(RS, Endpoint::ANY);
    assert_eq!(w.message(RS).source, Endpoint::CLOCK);
}

#[test]
fn failures_long_ago_are_forgiven() {
    let mut w = World::with_services();
    for _ in 0..4 {
        for _ in 0..8 {
            fail(&mut w, VM);
        }
        w.m.now += 11_000_000_000;
    }
    assert_eq!(w.m.renewed.len(), 32);
}

#[test]
#[should_panic(expected = "fatal in slot 4")]
fn without_a_binary_there_is_no_second_life() {
    let mut w = World::with_services();
    w.m.can_renew = false;
    fail(&mut w, RS);
}
