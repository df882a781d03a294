//! Messages the kernel makes: faults, exceptions, interruptions, exits; and calls that go on after them.

use abi::{
    Endpoint, Errno, Message, call,
    call::KernelCall,
    kernel::{ACCESS_WRITE, CopyFault, Exception, Exited, Fault, Interrupted},
    layout::map,
};

use crate::{
    fake::PAGE,
    world::{A, B, BUFFER, PM, RS, VM, World},
};

const HOLE: u64 = 0x20_0000;

fn answer(w: &mut World, slot: usize, to: Endpoint, word: i64) {
    w.primitive(slot, call::REPLYREC, to, 0x8000_0000, word as u64);
}

fn page_fault(w: &mut World, slot: usize) {
    w.make_current(slot);
    w.node.page_fault(&mut w.m, HOLE, ACCESS_WRITE);
    w.next();
}

/// A copy of A's words at HOLE to B's buffer, while HOLE is not mapped; vm has the report.
fn copy_from_hole(w: &mut World) -> Message {
    w.receive(VM, Endpoint::ANY);
    let a = w.endpoint(A);
    w.begin_kernel_call(B, KernelCall::VirCopy, &[a.0 as u64, HOLE, Endpoint::SELF.0 as u64, BUFFER, 8]);
    w.message(VM)
}

#[test]
fn a_page_fault_goes_to_vm_and_leaves_the_registers_alone() {
    let mut w = World::with_services();
    w.receive(VM, Endpoint::ANY);
    w.make_current(A);
    let before = *w.node.frame_mut(A);
    w.node.page_fault(&mut w.m, HOLE, ACCESS_WRITE);
    w.next();
    let message = w.message(VM);
    assert_eq!(message.source, w.endpoint(A));
    assert_eq!(message.label, Fault::LABEL);
    assert_eq!(Fault::from_message(&message), Fault { address: HOLE, access: ACCESS_WRITE, ip: before.rip });
    assert!(!w.is_ready(A));
    answer(&mut w, VM, message.source, 0);
    assert!(w.is_ready(A));
    assert_eq!(format!("{before:?}"), format!("{:?}", w.node.frame_mut(A)));
}

#[test]
fn a_fault_waits_until_vm_receives() {
    let mut w = World::with_services();
    page_fault(&mut w, A);
    assert!(!w.is_ready(A));
    w.receive(VM, Endpoint::ANY);
    assert_eq!(w.message(VM).label, Fault::LABEL);
}

#[test]
fn what_vm_refuses_becomes_an_exception_for_the_manager() {
    let mut w = World::with_services();
    w.service(PM);
    let program = w.application();
    w.receive(VM, Endpoint::ANY);
    w.receive(PM, Endpoint::ANY);
    page_fault(&mut w, program.slot());
    answer(&mut w, VM, program, -14);
    let message = w.message(PM);
    assert_eq!((message.source, message.label), (program, Exception::LABEL));
    let exception = Exception::from_message(&message);
    assert_eq!((exception.vector, exception.error as i64, exception.address), (14, -14, HOLE));
    assert!(!w.is_ready(program.slot()));
}

#[test]
fn exceptions_of_services_go_to_rs() {
    let mut w = World::with_services();
    w.receive(RS, Endpoint::ANY);
    w.make_current(A);
    w.node.exception(&mut w.m, 6, 0, 0);
    w.next();
    assert_eq!((w.message(RS).source, Exception::from_message(&w.message(RS)).vector), (w.endpoint(A), 6));
}

#[test]
fn exit_is_reported_and_the_thread_never_runs_again() {
    let mut w = World::with_services();
    w.service(PM);
    w.receive(PM, Endpoint::ANY);
    let program = w.application();
    w.begin_kernel_call(program.slot(), KernelCall::Exit, &[3]);
    let message = w.message(PM);
    assert_eq!((message.label, Exited::from_message(&message).status), (Exited::LABEL, 3));
    answer(&mut w, PM, program, 0);
    assert!(!w.is_ready(program.slot()));
}

#[test]
fn a_copy_waits_for_vm_to_map_and_then_finishes() {
    let mut w = World::with_services();
    let report = copy_from_hole(&mut w);
    assert_eq!(report.label, CopyFault::LABEL);
    assert_eq!(report.source, w.endpoint(B));
    assert_eq!(CopyFault::from_message(&report), CopyFault { address: HOLE, access: 0, owner: w.endpoint(A) });
    let space = w.space(A);
    w.m.map(space, HOLE, 0x900 * PAGE, map::WRITE);
    w.m.poke(space, HOLE, &[1, 2, 3, 4, 5, 6, 7, 8]);
    answer(&mut w, VM, report.source, 0);
    w.make_current(B);
    assert_eq!(w.result(B), Ok(8));
    let space = w.space(B);
    assert_eq!(w.m.peek(space, BUFFER, 8), [1, 2, 3, 4, 5, 6, 7, 8]);
}

#[test]
fn a_copy_that_vm_refuses_fails_with_efault() {
    let mut w = World::with_services();
    let report = copy_from_hole(&mut w);
    answer(&mut w, VM, report.source, -12);
    assert!(w.is_ready(B));
    assert_eq!(w.result(B), Err(Errno::EFAULT));
}

#[test]
fn a_copy_whose_peer_dies_meanwhile_fails() {
    let mut w = World::with_services();
    let report = copy_from_hole(&mut w);
    let a = w.endpoint(A);
    w.kernel_call(RS, KernelCall::Destroy, &[a.0 as u64, 0]).expect("destroyed");
    answer(&mut w, VM, report.source, 0);
    w.make_current(B);
    assert_eq!(w.result(B), Err(Errno::EDEADSRCDST));
}

/// Lets B send label 9 and word 70 to A, whose memory for it is missing, and vm map that. `send`: to this endpoint.
fn receive_into_hole(send: impl FnOnce(&mut World, Endpoint)) {
    let mut w = World::with_services();
    w.receive(VM, Endpoint::ANY);
    w.make_current(A);
    let frame = w.node.frame_mut(A);
    (frame.rax, frame.rdi, frame.rsi) = (call::RECEIVE, Endpoint::ANY.0 as u64, HOLE);
    w.node.vector33(&mut w.m);
    w.next();
    let (a, b) = (w.endpoint(A), w.endpoint(B));
    send(&mut w, a);
    assert!(!w.is_ready(A));
    let report = w.message(VM);
    assert_eq!(report.label, CopyFault::LABEL);
    let space = w.space(A);
    w.m.map(space, HOLE, 0x901 * PAGE, map::WRITE);
    answer(&mut w, VM, report.source, 0);
    w.make_current(A);
    assert_eq!(w.result(A), Ok(0));
    let stored = w.m.peek(space, HOLE, 16);
    assert_eq!(stored[..4], b.0.to_le_bytes());
    assert_eq!((stored[4], stored[8]), (9, 70));
}

#[test]
fn a_vector_33_message_for_missing_memory_arrives_after_vm_has_mapped_it() {
    receive_into_hole(|w, a| {
        w.primitive(B, call::SENDNB, a, 9, 70);
    });
    receive_into_hole(|w, a| {
        let space = w.space(B);
        w.m.poke(space, BUFFER, &[[0, 0, 0, 0, 9, 0, 0, 0], [70, 0, 0, 0, 0, 0, 0, 0]].concat());
        w.make_current(B);
        let frame = w.node.frame_mut(B);
        (frame.rax, frame.rdi, frame.rsi) = (call::SEND, a.0 as u64, BUFFER);
        w.node.vector33(&mut w.m);
        w.next();
    });
}

#[test]
fn an_interrupted_thread_asks_pm_before_it_runs_again() {
    let mut w = World::with_services();
    w.service(PM);
    let program = w.application();
    w.receive(PM, Endpoint::ANY);
    let blocked_on = w.kernel_call(RS, KernelCall::Interrupt, &[program.0 as u64]);
    assert_eq!(blocked_on, Ok(Endpoint::NONE.0 as u64));
    assert!(!w.is_ready(program.slot()));
    assert_eq!((w.message(PM).source, w.message(PM).label), (program, Interrupted::LABEL));
    answer(&mut w, PM, program, 0);
    assert!(w.is_ready(program.slot()));
}

#[test]
fn interrupting_a_waiting_thread_names_whom_it_waits_for() {
    let mut w = World::with_services();
    w.service(PM);
    let b = w.endpoint(B);
    w.sendrec(A, b, 1);
    let a = w.endpoint(A);
    assert_eq!(w.kernel_call(RS, KernelCall::Interrupt, &[a.0 as u64]), Ok(b.0 as u64));
    w.receive(PM, Endpoint::ANY);
    assert!(!w.is_ready(PM), "A is still with B");
    w.receive(B, Endpoint::ANY);
    w.primitive(B, call::SENDNB, a, 2, 0);
    assert!(!w.is_ready(A));
    assert_eq!(w.message(PM).label, Interrupted::LABEL);
}

#[test]
fn reports_are_repeated_to_a_restarted_manager() {
    let mut w = World::with_services();
    let pm = w.service(PM);
    let program = w.application();
    w.receive(PM, Endpoint::ANY);
    w.make_current(program.slot());
    w.node.exception(&mut w.m, 6, 0, 0);
    w.next();
    assert_eq!(w.message(PM).label, Exception::LABEL);
    w.kernel_call(RS, KernelCall::Destroy, &[pm.0 as u64, 1]).expect("destroyed");
    assert!(!w.is_ready(program.slot()));
    w.service(PM);
    w.receive(PM, Endpoint::ANY);
    assert_eq!((w.message(PM).source, w.message(PM).label), (program, Exception::LABEL));
}
