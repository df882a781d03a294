//! What the trace ring is told: every event with its sides, its words and its time, and nothing while tracing is off.

use abi::{
    Endpoint, Errno, Name, Word,
    call::{self, KernelCall},
    endpoint::slot,
    kernel::{ACCESS_WRITE, Notify, irq},
    message,
    privilege::{Privileges, io, way},
    trace::{Record, event},
};
use kernel_core::{Frame, Kernel};
use zerocopy::FromZeros;

use crate::{
    fake::Fake,
    ports::driver_rights,
    world::{A, B, BUFFER, C, PM, RS, VM, World, all_rights},
};

const NONE: Endpoint = Endpoint::NONE;

/// With the time 100, A running, and tracing on.
fn traced() -> World {
    let mut w = World::with_services();
    w.m.now = 100;
    w.make_current(A);
    w.node.set_tracing(abi::trace::event::ALL);
    w
}

/// What was recorded of this kind.
fn records(w: &World, event: u32) -> Vec<Record> {
    w.m.records.iter().copied().filter(|record| record.event == event).collect()
}

/// The record as a tuple: time, label, sides, words.
fn parts(record: &Record) -> (u64, u32, Endpoint, Endpoint, [u64; 7]) {
    (record.tsc, record.label, record.from, record.to, record.words)
}

#[test]
fn a_message_is_recorded_when_it_is_delivered() {
    let mut w = traced();
    let (a, b) = (w.endpoint(A), w.endpoint(B));
    w.primitive(A, call::SEND, b, 0x20_0001, 7);
    assert_eq!(records(&w, event::MESSAGE).len(), 0, "it waits");
    w.m.now = 250;
    w.receive(B, Endpoint::ANY);
    let all = records(&w, event::MESSAGE);
    assert_eq!(all.iter().map(parts).collect::<Vec<_>>(), [(250, 0x20_0001, a, b, [7, 8, 9, 10, 11, 12, 13])]);
    w.node.set_tracing(0);
    w.m.records.clear();
    w.receive(B, Endpoint::ANY);
    w.primitive(A, call::SEND, b, 0x20_0001, 7);
    assert_eq!(w.m.records.len(), 0);
}

#[test]
fn a_linux_call_is_recorded_with_its_number_and_words() {
    let mut w = World::with_services();
    w.service(PM);
    w.kernel_call(RS, KernelCall::Route, &[39, PM as u64]).expect("routed");
    let program = w.application();
    w.receive(PM, Endpoint::ANY);
    w.node.set_tracing(abi::trace::event::ALL);
    w.linux_call(program.slot(), 39, [1, 2, 3, 4, 5, 6]);
    let pm = w.endpoint(PM);
    let number = w.node.thread(program.slot()).messages();
    w.primitive(PM, call::REPLYREC, program, 39 | message::REPLY, 40);
    let all = records(&w, event::MESSAGE);
    assert_eq!(parts(&all[0]), (0, 39, program, pm, [1, 2, 3, 4, 5, 6, number]));
    assert_eq!(parts(&all[1]), (0, 39 | message::REPLY, pm, program, [40, 41, 42, 43, 44, 45, 46]));
    assert_eq!(all.len(), 2);
}

#[test]
fn a_notification_is_recorded_with_its_time_and_bits() {
    let mut w = traced();
    let (a, b) = (w.endpoint(A), w.endpoint(B));
    w.receive(B, Endpoint::ANY);
    w.primitive(A, call::NOTIFY, b, 0, 0);
    let all = records(&w, event::NOTIFY);
    assert_eq!(all.iter().map(parts).collect::<Vec<_>>(), [(100, Notify::LABEL, a, b, [100, 0, 0, 0, 0, 0, 0])]);
    assert_eq!(records(&w, event::MESSAGE).len(), 0);
    w.node.set_tracing(0);
    w.receive(B, Endpoint::ANY);
    w.primitive(A, call::NOTIFY, b, 0, 0);
    assert_eq!(records(&w, event::NOTIFY).len(), 1);
}

#[test]
fn a_switch_names_both_threads_and_the_idle_task_by_its_slot() {
    let mut w = World::with_services();
    for slot in [RS, VM, A, B] {
        w.receive(slot, Endpoint::ANY);
    }
    w.kernel_call(C, KernelCall::SetAlarm, &[7]).expect("set");
    w.node.set_tracing(abi::trace::event::ALL);
    w.receive(C, Endpoint::ANY);
    w.m.now = 7;
    w.node.timer(&mut w.m);
    w.next();
    let (c, idle) = (w.endpoint(C), Endpoint::current(slot::IDLE));
    let all: Vec<_> = records(&w, event::SWITCH).iter().map(parts).collect();
    assert_eq!(all, [(0, 0, c, idle, [0; 7]), (7, 0, idle, c, [0; 7])]);
}

#[test]
fn a_kernel_call_is_recorded_with_its_arguments_and_its_result() {
    let mut w = traced();
    let (a, b) = (w.endpoint(A), w.endpoint(B));
    w.node.frame_mut(A).r12 = 0x1234;
    w.kernel_call(A, KernelCall::WhoIs, &[B as u64, 2, 3, 4, 5, 6]).expect("lives");
    w.kernel_call(A, KernelCall::WhoIs, &[99]).expect_err("is free");
    let all: Vec<_> = records(&w, event::KERNEL_CALL).iter().map(parts).collect();
    let label = KernelCall::WhoIs.number() as u32;
    let error = Err(Errno::EDEADSRCDST).to_word();
    assert_eq!(
        all,
        [
            (100, label, a, NONE, [B as u64, 2, 3, 4, 5, 6, b.0 as u64]),
            (100, label, a, NONE, [99, 0, 0, 0, 0, 0, error])
        ]
    );
    w.begin_kernel_call(A, KernelCall::Yield, &[]);
    assert_eq!(records(&w, event::KERNEL_CALL).len(), 2, "a call without a result");
}

#[test]
fn a_call_that_has_to_wait_for_memory_is_recorded_when_it_is_done() {
    let mut w = traced();
    let a = w.endpoint(A);
    w.receive(VM, Endpoint::ANY);
    w.begin_kernel_call(A, KernelCall::Umap, &[0x7000_0000]);
    assert_eq!(records(&w, event::KERNEL_CALL).len(), 0);
    let space = w.space(A);
    w.m.map(space, 0x7000_0000, 0x900_0000, 0);
    w.primitive(VM, call::REPLYREC, a, message::REPLY, 0);
    w.make_current(A);
    let all = records(&w, event::KERNEL_CALL);
    assert_eq!(all.iter().map(|record| record.words[6]).collect::<Vec<_>>(), [0x900_0000]);
}

#[test]
fn exceptions_and_page_faults_are_recorded_where_they_happened() {
    let mut w = traced();
    let a = w.endpoint(A);
    w.node.frame_mut(A).rip = 0x40_1234;
    w.node.page_fault(&mut w.m, 0x7000_0008, ACCESS_WRITE);
    w.make_current(B);
    w.node.frame_mut(B).rip = 0x40_5678;
    w.node.exception(&mut w.m, 6, 1, 0x99);
    let b = w.endpoint(B);
    let all: Vec<_> = records(&w, event::EXCEPTION).iter().map(parts).collect();
    let expected = [
        (100, 14, a, NONE, [0x7000_0008, 0x40_1234, 0, 0, 0, 0, 0]),
        (100, 6, b, NONE, [0x99, 0x40_5678, 0, 0, 0, 0, 0]),
    ];
    assert_eq!(all, expected);
    w.node.set_tracing(0);
    w.make_current(C);
    w.node.exception(&mut w.m, 6, 1, 0x99);
    assert_eq!(records(&w, event::EXCEPTION).len(), 2);
}

#[test]
fn an_interrupt_is_recorded_for_each_of_its_drivers() {
    let mut w = World::with_services();
    let mut rights = all_rights();
    (rights.irqs[0], rights.irq_count) = (4, 1);
    for slot in [A, B] {
        let endpoint = w.endpoint(slot);
        w.set_privileges(endpoint, &rights);
        w.kernel_call(slot, KernelCall::IrqSet, &[4, 0, irq::REENABLE]).expect("set");
    }
    w.node.interrupt(&mut w.m, 4);
    assert_eq!(w.m.records.len(), 0);
    w.node.set_tracing(abi::trace::event::ALL);
    w.m.now = 40;
    w.node.interrupt(&mut w.m, 4);
    w.node.interrupt(&mut w.m, 5);
    let (a, b) = (w.endpoint(A), w.endpoint(B));
    let all: Vec<_> = records(&w, event::INTERRUPT).iter().map(parts).collect();
    assert_eq!(all, [(40, 4, Endpoint::HARDWARE, a, [0; 7]), (40, 4, Endpoint::HARDWARE, b, [0; 7])]);
}

#[test]
fn services_are_named_when_they_start_and_when_they_get_their_rights() {
    let mut node = Box::new(Kernel::new_zeroed());
    let mut m = Fake { pool: 10, ..Fake::default() };
    node.boot(&mut m);
    let name = Name::new("first").expect("short");
    node.boot_service(&mut m, VM, name, Frame::start(0x40_0000, 0));
    assert_eq!(m.records.len(), 0);
    node.set_tracing(abi::trace::event::ALL);
    let rs = node.boot_service(&mut m, RS, name, Frame::start(0x40_0000, 0));
    let (low, high) = name.to_words();
    let all: Vec<_> = m.records.iter().map(parts).collect();
    assert_eq!(all, [(0, 0, NONE, rs, [low, high, 0, 0, 0, 0, 0])]);
    assert_eq!(m.records[0].event, event::NAMED);

    let mut w = traced();
    let b = w.endpoint(B);
    let name = Name::new("second").expect("short");
    w.set_privileges(b, &Privileges { name, ..all_rights() });
    let (low, high) = name.to_words();
    let all: Vec<_> = records(&w, event::NAMED).iter().map(parts).collect();
    assert_eq!(all, [(100, 0, NONE, b, [low, high, 0, 0, 0, 0, 0])]);
    w.node.set_tracing(0);
    w.set_privileges(b, &all_rights());
    assert_eq!(records(&w, event::NAMED).len(), 1);
}

#[test]
fn accesses_to_ports_are_recorded_with_path_operation_value_and_result() {
    let mut w = World::with_services();
    let a = w.endpoint(A);
    w.set_privileges(a, &Privileges { io_way: way::EMULATE, ..driver_rights() });
    w.m.ports.insert(0x3f8, 0x41);
    let space = w.space(A);
    w.m.poke(space, BUFFER, b"abcd");
    w.make_current(A);
    w.node.set_tracing(abi::trace::event::ALL);
    assert_eq!(w.hal(A, io::IN | 1, 0x3f8, 5), Ok(0x41));
    assert_eq!(w.hal(A, io::OUT | 2, 0x60, 6), Err(Errno::ECALLDENIED));
    w.begin_hal(A, io::OUT | io::STRING | 1, 0x3f8, BUFFER, 3);
    w.protection_fault(A, &[0xec], |frame| (frame.rdx, frame.rax) = (0x3f8, 0x500));
    w.protection_fault(A, &[0x66, 0xef], |frame| (frame.rdx, frame.rax) = (0x3fa, 0x123));
    w.protection_fault(A, &[0xf3, 0x6e], |frame| (frame.rdx, frame.rsi, frame.rcx) = (0x3f8, BUFFER, 4));
    let all: Vec<_> = records(&w, event::PORT).iter().map(parts).collect();
    let hal =
        |port, words: [u64; 3], result| (0, port, a, NONE, [way::HAL as u64, words[0], words[1], 0, 0, 0, result]);
    let emulated =
        |port, words: [u64; 3], result| (0, port, a, NONE, [way::EMULATE as u64, words[0], words[1], 0, 0, 0, result]);
    let denied = Err(Errno::ECALLDENIED).to_word();
    assert_eq!(all[0], hal(0x3f8, [io::IN | 1, 5, 0], 0x41));
    assert_eq!(all[1], hal(0x60, [io::OUT | 2, 6, 0], denied));
    assert_eq!(all[2], hal(0x3f8, [io::OUT | io::STRING | 1, BUFFER, 0], 3));
    assert_eq!(all[3], emulated(0x3f8, [io::IN | 1, 0x500, 0], 0x541 & !0xff | 0x41));
    assert_eq!(all[4], emulated(0x3fa, [io::OUT | 2, 0x123, 0], 0x123));
    assert_eq!(all[5], emulated(0x3f8, [io::OUT | io::STRING | 1, BUFFER, 0], 4));
    assert_eq!(all.len(), 6);
    w.node.set_tracing(0);
    w.protection_fault(A, &[0xec], |frame| frame.rdx = 0x3f8);
    w.protection_fault(A, &[0xf3, 0x6e], |frame| (frame.rdx, frame.rsi, frame.rcx) = (0x3f8, BUFFER, 4));
    let _ = w.hal(A, io::IN | 1, 0x3f8, 5);
    assert_eq!(records(&w, event::PORT).len(), 6);
}

#[test]
fn an_access_that_waits_for_memory_is_recorded_once() {
    let mut w = World::with_services();
    let a = w.endpoint(A);
    w.set_privileges(a, &driver_rights());
    w.receive(VM, Endpoint::ANY);
    w.make_current(A);
    w.node.set_tracing(abi::trace::event::ALL);
    w.begin_hal(A, io::OUT | io::STRING | 1, 0x3f8, 0x7000_0000, 3);
    assert_eq!(records(&w, event::PORT).len(), 0);
    let space = w.space(A);
    w.m.map(space, 0x7000_0000, 0x900_0000, 0);
    w.primitive(VM, call::REPLYREC, a, message::REPLY, 0);
    w.make_current(A);
    assert_eq!(records(&w, event::PORT).len(), 1);
}

/// The bits of these kinds of events.
fn bits(kinds: &[u32]) -> u64 {
    kinds.iter().fold(0, |bits, kind| bits | 1 << kind)
}

/// B, which may, sets what is recorded.
fn set_events(w: &mut World, events: u64, period_ns: u64) {
    let b = w.endpoint(B);
    w.set_privileges(b, &all_rights());
    assert_eq!(w.kernel_call(B, KernelCall::Trace, &[events, period_ns]), Ok(0));
}

#[test]
fn only_the_chosen_kinds_of_events_are_recorded() {
    let mut w = World::with_services();
    let (a, b) = (w.endpoint(A), w.endpoint(B));
    set_events(&mut w, bits(&[event::NOTIFY]), 0);
    w.receive(A, Endpoint::ANY);
    w.primitive(B, call::SEND, a, 0x20_0001, 7);
    w.receive(A, Endpoint::ANY);
    w.primitive(B, call::NOTIFY, a, 0, 0);
    let kinds: Vec<u32> = w.m.records.iter().map(|record| record.event).collect();
    assert_eq!(kinds, [event::NOTIFY]);
    assert_eq!((w.m.records[0].from, w.m.records[0].to), (b, a));
}

#[test]
fn samples_tell_where_the_current_thread_is_at_each_period() {
    let mut w = World::with_services();
    let a = w.endpoint(A);
    set_events(&mut w, bits(&[event::SAMPLE]), 1_000_000);
    w.make_current(A);
    let mut sample = |at: u64, set: &dyn Fn(&mut Frame)| {
        w.m.now = at;
        set(w.node.frame_mut(A));
        w.make_current(A);
        w.timer_once();
        w.m.records.drain(..).map(|record| (record.tsc, record.label, record.from, record.words)).collect::<Vec<_>>()
    };
    let in_user = |frame: &mut Frame| {
        (frame.rip, frame.rsp, frame.rbp, frame.rcx, frame.entry) = (0x40_1000, 0x7000, 0x8000, 3, 0);
    };
    let first = sample(5_000_000, &in_user);
    assert_eq!(first.iter().map(|sample| (sample.0, sample.1, sample.2)).collect::<Vec<_>>(), [(5_000_000, 0, a)]);
    assert_eq!(first[0].3[..3], [0x40_1000, 0x7000, 0x8000]);
    assert_eq!(sample(5_999_999, &in_user), [], "it is not due");
    let after_sysret = |frame: &mut Frame| (frame.rip, frame.rcx, frame.entry) = (0x40_1000, 0x40_1000, 0);
    assert_eq!(sample(6_000_000, &after_sysret)[0].1, 1, "the system call took the time");
    let within_a_call = |frame: &mut Frame| (frame.rip, frame.rcx, frame.entry) = (0x40_1000, 0, 1);
    assert_eq!(sample(7_000_000, &within_a_call)[0].1, 1);
}

#[test]
fn samples_are_taken_at_least_twenty_microseconds_apart() {
    let mut w = World::with_services();
    set_events(&mut w, bits(&[event::SAMPLE]), 1);
    w.make_current(A);
    for now in (5_000_000..5_100_000).step_by(1_000) {
        w.m.now = now;
        w.make_current(A);
        w.timer_once();
    }
    assert_eq!(records(&w, event::SAMPLE).len(), 5);
}

#[test]
fn the_idle_task_is_sampled_by_its_own_name() {
    let mut w = World::with_services();
    set_events(&mut w, bits(&[event::SAMPLE]), 1_000_000);
    for slot in [A, B, C, RS, VM] {
        w.receive(slot, Endpoint::ANY);
    }
    assert_eq!(w.node.current(), slot::IDLE);
    w.m.now = 9_000_000;
    w.timer_once();
    let from: Vec<Endpoint> = records(&w, event::SAMPLE).iter().map(|record| record.from).collect();
    assert_eq!(from, [Endpoint::current(slot::IDLE)]);
}

#[test]
fn samples_leave_the_fast_path_open_and_messages_close_it() {
    for (events, takes_it) in [(bits(&[event::SAMPLE, event::NAMED]), true), (bits(&[event::MESSAGE]), false)] {
        let mut w = World::with_services();
        set_events(&mut w, events, 1_000_000);
        for sleeper in [RS, VM, C, B] {
            w.receive(sleeper, Endpoint::ANY);
        }
        let b = w.endpoint(B);
        w.make_current(A);
        let frame = w.node.frame_mut(A);
        (frame.rax, frame.r13) = (call::SENDREC, b.0 as u64 | 0x20_0001 << 32);
        frame.entry = kernel_core::frame::entry::SYSCALL;
        w.node.frame_mut(B).entry = kernel_core::frame::entry::SYSCALL;
        assert_eq!(w.node.try_primitive(&mut w.m, abi::call::SENDREC).is_some(), takes_it);
    }
}

#[test]
fn a_death_that_is_armed_brings_no_samples() {
    let mut w = World::with_services();
    let b = w.endpoint(B);
    assert_eq!(
        w.kernel_call(abi::endpoint::slot::RS, KernelCall::Inject, &[b.0 as u64, call::inject::KILL_AFTER_MESSAGES, 9]),
        Ok(0)
    );
    w.make_current(A);
    w.m.now = 9_000_000;
    w.timer_once();
    assert_eq!(w.m.records.len(), 0);
}

#[test]
fn the_ring_is_shown_only_to_who_may_trace() {
    let mut w = World::with_services();
    let a = w.endpoint(A);
    let rights = Privileges { kernel_calls: all_rights().kernel_calls & !KernelCall::Trace.bit(), ..all_rights() };
    w.set_privileges(a, &rights);
    for offset in [0, 16, 1 << 40] {
        assert_eq!(
            w.kernel_call(A, KernelCall::GetInfo, &[abi::info::TRACE + offset, 0, BUFFER, 80]),
            Err(Errno::EPERM)
        );
    }
    let program = w.application();
    let slot = program.slot();
    assert_eq!(w.kernel_call(slot, KernelCall::GetInfo, &[abi::info::TRACE, 0, BUFFER, 80]), Err(Errno::EPERM));
    w.set_privileges(a, &all_rights());
    // The machine of these tests has no ring.
    assert_eq!(w.kernel_call(A, KernelCall::GetInfo, &[abi::info::TRACE, 0, BUFFER, 80]), Err(Errno::ENOENT));
}
