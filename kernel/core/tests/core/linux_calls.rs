//! Linux system calls: routes, and what comes back.

use abi::{
    Endpoint, Errno, Word, call,
    call::KernelCall,
    info,
    info::state,
    linux::{WITH_WORD, nr},
    message,
};

use kernel_core::Next;

use crate::{
    fake::PAGE,
    world::{A, B, BUFFER, PM, RS, World},
};

const GETPPID: u64 = 110;

fn state_of(w: &mut World, thread: Endpoint) -> u32 {
    w.kernel_call(RS, KernelCall::GetInfo, &[info::WAIT, thread.0 as u64]).expect("rs may ask") as u32
}

fn world_with_route() -> (World, Endpoint) {
    let mut w = World::with_services();
    w.service(PM);
    w.kernel_call(RS, KernelCall::Route, &[GETPPID, PM as u64]).expect("routed");
    let program = w.application();
    (w, program)
}

#[test]
fn a_routed_call_is_a_message_and_its_answer_the_result() {
    let (mut w, program) = world_with_route();
    w.receive(PM, Endpoint::ANY);
    w.make_current(program.slot());
    w.node.frame_mut(program.slot()).r12 = 99;
    w.node.frame_mut(program.slot()).r13 = 98;
    w.linux_call(program.slot(), GETPPID, [1, 2, 3, 4, 5, 6]);
    let message = w.message(PM);
    assert_eq!((message.source, message.label), (program, GETPPID as u32));
    assert_eq!(message.words[..6], [1, 2, 3, 4, 5, 6]);
    w.primitive(PM, call::REPLYREC, program, GETPPID as u32 | message::REPLY, 42);
    assert!(w.is_ready(program.slot()));
    let frame = w.node.frame_mut(program.slot());
    assert_eq!(frame.rax, 42);
    assert_eq!((frame.rdi, frame.rsi, frame.r12, frame.r13), (1, 2, 99, 98));
}

#[test]
fn a_call_and_its_answer_go_straight_there_and_back_when_nobody_else_is_ready() {
    let (mut w, program) = world_with_route();
    let slot = program.slot();
    for sleeper in [RS, crate::world::VM, A, B, crate::world::C, PM] {
        w.receive(sleeper, Endpoint::ANY);
    }
    let mut last_number = 0;
    for round in 0..3 {
        w.node.frame_mut(slot).r12 = 99;
        assert_eq!(w.linux_call(slot, GETPPID, [1, 2, 3, 4, 5, 6]), Next::Run(PM));
        let message = w.message(PM);
        assert_eq!((message.source, message.label), (program, GETPPID as u32));
        assert_eq!(message.words[..6], [1, 2, 3, 4, 5, 6]);
        assert!(message.words[6] > last_number && message.words[6] < message::REPEATED);
        last_number = message.words[6];
        assert_eq!(w.primitive(PM, call::REPLYREC, program, GETPPID as u32 | message::REPLY, round), Next::Run(slot));
        let frame = w.node.frame_mut(slot);
        assert_eq!((frame.rax, frame.rdi, frame.r9, frame.r12), (round, 1, 6, 99));
    }
}

/// A word in a program's memory, and where it is.
const WORD: u64 = 0x1122_3344_5566_7788;
const SIGPROCMASK: u64 = nr::RT_SIGPROCMASK as u64;
const VFS: usize = abi::endpoint::slot::VFS;

/// A program whose calls of rt_sigprocmask go to the service in this slot, and those of write to vfs, while all others sleep.
fn world_with_words(masks_to: usize) -> (World, usize) {
    let (mut w, program) = world_with_route();
    w.service(VFS);
    for (number, service) in [(SIGPROCMASK, masks_to), (nr::WRITE as u64, VFS)] {
        w.kernel_call(RS, KernelCall::Route, &[number, service as u64]).expect("routed");
    }
    let space = w.space(program.slot());
    for at in [BUFFER + 3, BUFFER + PAGE - 8] {
        w.m.poke(space, at, &WORD.to_le_bytes());
    }
    for sleeper in [RS, crate::world::VM, A, B, crate::world::C, VFS, PM] {
        w.receive(sleeper, Endpoint::ANY);
    }
    (w, program.slot())
}

#[test]
fn the_word_that_a_call_points_to_comes_with_it_where_it_is_at_hand() {
    let [plain, fetched] = [(nr::RT_SIGPROCMASK, 6), (nr::RT_SIGPROCMASK | WITH_WORD, WORD)];
    for (at, bytes, expected) in [
        (BUFFER + 3, 8, fetched),
        (BUFFER + PAGE - 8, 8, fetched),
        (BUFFER + PAGE - 4, 8, plain),
        (BUFFER, 4, plain),
        (BUFFER, 0, plain),
        (0, 8, plain),
        (1 << 47, 8, plain),
        (u64::MAX - 3, 8, plain),
    ] {
        let (mut w, slot) = world_with_words(PM);
        for round in 0..2 {
            let next = w.linux_call(slot, SIGPROCMASK, [1, at, 3, bytes, 5, 6]);
            assert_eq!(next, Next::Run(PM), "{at:#x} {bytes}");
            let message = w.message(PM);
            assert_eq!((message.label, message.words[5]), expected, "{at:#x} {bytes}");
            assert_eq!(message.words[..5], [1, at, 3, bytes, 5]);
            let reply = nr::RT_SIGPROCMASK | message::REPLY;
            assert_eq!(w.primitive(PM, call::REPLYREC, message.source, reply, round), Next::Run(slot));
            let frame = w.node.frame_mut(slot);
            assert_eq!((frame.rax, frame.rsi, frame.r9), (round, at, 6), "the program keeps its registers");
        }
    }
}

#[test]
fn a_write_says_how_many_bytes_there_are_in_another_argument() {
    let (mut w, slot) = world_with_words(PM);
    for (bytes, expected) in [(8, (nr::WRITE | WITH_WORD, WORD)), (7, (nr::WRITE, 6))] {
        assert_eq!(w.linux_call(slot, nr::WRITE as u64, [1, BUFFER + 3, bytes, 8, 5, 6]), Next::Run(VFS));
        let message = w.message(VFS);
        assert_eq!((message.label, message.words[5]), expected);
        w.primitive(VFS, call::REPLYREC, message.source, nr::WRITE | message::REPLY, bytes);
    }
}

#[test]
fn no_word_comes_with_a_call_that_is_repeated() {
    let (mut w, slot) = world_with_words(PM);
    w.linux_call(slot, SIGPROCMASK, [1, BUFFER + 3, 3, 8, 5, 6]);
    assert_eq!(w.message(PM).label, nr::RT_SIGPROCMASK | WITH_WORD);
    let [pm, rs] = [PM, RS].map(|slot| w.endpoint(slot));
    w.primitive(PM, call::SEND, rs, 1, 0);
    w.kernel_call(RS, KernelCall::Destroy, &[pm.0 as u64, 1]).expect("destroyed");
    w.service(PM);
    w.receive(PM, Endpoint::ANY);
    let message = w.message(PM);
    assert_eq!((message.label, message.words[5]), (nr::RT_SIGPROCMASK, 6));
    assert_ne!(message.words[6] & message::REPEATED, 0);
}

#[test]
fn a_word_comes_only_with_calls_that_have_their_usual_service() {
    let (mut w, slot) = world_with_words(A);
    assert_eq!(w.linux_call(slot, SIGPROCMASK, [1, BUFFER + 3, 3, 8, 5, 6]), Next::Run(A));
    assert_eq!((w.message(A).label, w.message(A).words[5]), (nr::RT_SIGPROCMASK, 6));
}

#[test]
fn unrouted_numbers_are_not_implemented() {
    let (mut w, program) = world_with_route();
    for number in [0, GETPPID + 1, 2047, 2048, 4095] {
        w.linux_call(program.slot(), number, [0; 6]);
        assert_eq!(w.result(program.slot()), Err(Errno::ENOSYS), "{number}");
    }
    w.kernel_call(RS, KernelCall::Route, &[GETPPID, u64::MAX]).expect("removed");
    w.linux_call(program.slot(), GETPPID, [0; 6]);
    assert_eq!(w.result(program.slot()), Err(Errno::ENOSYS));
}

#[test]
fn a_call_that_was_not_received_waits_for_the_restarted_server() {
    let (mut w, program) = world_with_route();
    let pm = w.endpoint(PM);
    w.linux_call(program.slot(), GETPPID, [0; 6]);
    w.kernel_call(RS, KernelCall::Destroy, &[pm.0 as u64, 1]).expect("destroyed");
    assert!(!w.is_ready(program.slot()));
    w.service(PM);
    w.receive(PM, Endpoint::ANY);
    assert_eq!(w.message(PM).source, program);
}

/// pm has received the program's call and dies; a successor is expected or not.
fn pm_dies_with_a_call_in_hand(keep: bool) -> (World, Endpoint) {
    let (mut w, program) = world_with_route();
    let pm = w.endpoint(PM);
    w.receive(PM, Endpoint::ANY);
    w.linux_call(program.slot(), GETPPID, [1, 2, 3, 4, 5, 6]);
    assert_eq!(w.message(PM).words[6] & message::REPEATED, 0);
    w.kernel_call(RS, KernelCall::Destroy, &[pm.0 as u64, keep as u64]).expect("destroyed");
    (w, program)
}

#[test]
fn a_call_that_the_dead_server_had_received_is_repeated_and_says_so() {
    let (mut w, program) = pm_dies_with_a_call_in_hand(true);
    assert!(!w.is_ready(program.slot()));
    assert_eq!(state_of(&mut w, program), state::ANSWERING, "nobody may take back what may be half done");
    let number = w.node.thread(program.slot()).messages() + 1;
    for life in 0..2 {
        let pm = w.service(PM);
        w.receive(PM, Endpoint::ANY);
        let message = w.message(PM);
        assert_eq!((message.source, message.label), (program, GETPPID as u32), "life {life}");
        assert_eq!(message.words, [1, 2, 3, 4, 5, 6, number | message::REPEATED]);
        w.kernel_call(RS, KernelCall::Destroy, &[pm.0 as u64, 1]).expect("destroyed");
    }
    w.service(PM);
    w.receive(PM, Endpoint::ANY);
    w.primitive(PM, call::REPLYREC, program, GETPPID as u32 | message::REPLY, 7);
    assert_eq!(w.result(program.slot()), Ok(7));
    w.linux_call(program.slot(), GETPPID, [0; 6]);
    assert_eq!(w.message(PM).words[6], number + 2, "the next call is not repeated");
}

#[test]
fn a_call_that_was_waiting_only_is_not_marked_as_repeated() {
    let (mut w, program) = world_with_route();
    let pm = w.endpoint(PM);
    w.linux_call(program.slot(), GETPPID, [0; 6]);
    w.kernel_call(RS, KernelCall::Destroy, &[pm.0 as u64, 1]).expect("destroyed");
    assert_eq!(state_of(&mut w, program), state::SENDING);
    w.service(PM);
    w.receive(PM, Endpoint::ANY);
    assert_eq!((w.message(PM).source, w.message(PM).words[6] & message::REPEATED), (program, 0));
}

#[test]
fn a_call_in_hand_fails_when_nobody_follows() {
    let (mut w, program) = pm_dies_with_a_call_in_hand(false);
    assert_eq!(w.result(program.slot()), Err(Errno::EIO));
    let (mut w, program) = pm_dies_with_a_call_in_hand(true);
    w.kernel_call(RS, KernelCall::Destroy, &[Endpoint::current(PM).0 as u64, 0]).expect("given up");
    assert!(w.is_ready(program.slot()));
    assert_eq!(w.result(program.slot()), Err(Errno::EIO));
}

#[test]
fn a_repeated_call_is_interrupted_and_ended_as_any_other() {
    let (mut w, program) = pm_dies_with_a_call_in_hand(true);
    let waits_for = w.kernel_call(RS, KernelCall::Interrupt, &[program.0 as u64]).expect("interrupted");
    assert_eq!(Endpoint(waits_for as u32), Endpoint::PM);
    w.kernel_call(RS, KernelCall::GetRegisters, &[program.0 as u64, BUFFER]).expect("waits");
    w.kernel_call(RS, KernelCall::SetRegisters, &[program.0 as u64, BUFFER, 1]).expect("ended");
    w.service(PM);
    w.receive(PM, Endpoint::ANY);
    // What comes is the interruption, for the call is no more.
    w.next();
    assert_eq!((w.message(PM).source, w.message(PM).label), (program, abi::kernel::Interrupted::LABEL));
}

#[test]
fn programs_reach_nobody_but_by_routes() {
    let (mut w, program) = world_with_route();
    let b = w.endpoint(B);
    w.receive(B, Endpoint::ANY);
    for number in [call::SEND, call::SENDREC, call::SENDNB, call::SENDWAIT, call::REPLYREC, call::NOTIFY] {
        w.primitive(program.slot(), number, b, 1, 0);
        assert_eq!(w.result(program.slot()), Err(Errno::ECALLDENIED));
    }
    let other = w.application();
    w.primitive(program.slot(), call::SEND, other, 1, 0);
    assert_eq!(w.result(program.slot()), Err(Errno::ECALLDENIED));
}

#[test]
fn a_service_needs_the_destination_for_a_routed_call() {
    let (mut w, _) = world_with_route();
    let a = w.endpoint(A);
    w.set_privileges(a, &abi::privilege::Privileges::NONE);
    w.linux_call(A, GETPPID, [0; 6]);
    assert_eq!(w.result(A), Err(Errno::ECALLDENIED));
}

#[test]
fn calls_of_the_kernel_itself_are_answered_at_once() {
    let (mut w, program) = world_with_route();
    w.kernel_call(RS, KernelCall::Route, &[24, 0]).expect("routed");
    let slot = program.slot();
    w.linux_call(slot, 24, [0; 6]);
    w.make_current(slot);
    assert_eq!(w.result(slot), Ok(0));
}

#[test]
fn the_number_of_the_call_is_known_until_the_program_runs_again() {
    let (mut w, program) = world_with_route();
    w.receive(PM, Endpoint::ANY);
    w.linux_call(program.slot(), GETPPID, [0; 6]);
    let linux_call = |w: &mut World| {
        w.kernel_call(RS, KernelCall::GetRegisters, &[program.0 as u64, BUFFER]).expect("waits");
        let bytes = w.m.peek(RS as u16, BUFFER + 20 * 8, 8);
        u64::from_le_bytes(bytes.try_into().expect("eight"))
    };
    assert_eq!(linux_call(&mut w), GETPPID);
    w.primitive(PM, call::REPLYREC, program, 0x8000_0000, Err(Errno::ERESTARTSYS).to_word());
    w.make_current(program.slot());
    w.node.interrupt(&mut w.m, 3);
    w.kernel_call(RS, KernelCall::Stop, &[program.0 as u64]).expect("stopped");
    assert_eq!(linux_call(&mut w), u64::MAX);
}

/// pm leaves an answer to a call of this thread.
fn keep_answer(w: &mut World, thread: Endpoint, number: u64, answer: u64) {
    w.kernel_call(RS, KernelCall::KeepAnswer, &[thread.0 as u64, number, answer]).expect("it is there");
}

#[test]
fn a_kept_answer_is_given_at_once_until_it_is_forgotten() {
    let (mut w, program) = world_with_route();
    let other = w.application();
    w.receive(PM, Endpoint::ANY);
    keep_answer(&mut w, program, GETPPID, u32::MAX as u64 - 1);
    let asked = |w: &mut World, program: Endpoint| {
        w.scrub(PM);
        w.make_current(program.slot());
        w.linux_call(program.slot(), GETPPID, [1; 6]);
        w.node.frame_mut(PM).rax == 0
    };
    assert!(!asked(&mut w, program));
    assert_eq!(w.result(program.slot()), Ok(u32::MAX as u64 - 1));
    assert!(asked(&mut w, other), "it has an answer of its own");
    w.primitive(PM, call::REPLYREC, other, GETPPID as u32 | message::REPLY, 7);
    keep_answer(&mut w, program, u32::MAX as u64, 0);
    assert!(asked(&mut w, program));
}

#[test]
fn an_answer_is_kept_only_for_a_thread_that_is_there() {
    let (mut w, program) = world_with_route();
    let thread = program.0 as u64;
    w.kernel_call(RS, KernelCall::Destroy, &[thread, 0]).expect("destroyed");
    assert_eq!(w.kernel_call(RS, KernelCall::KeepAnswer, &[thread, GETPPID, 5]), Err(Errno::EDEADSRCDST));
}

#[test]
fn a_traced_program_has_no_kept_answers() {
    let (mut w, program) = world_with_route();
    keep_answer(&mut w, program, GETPPID, 5);
    report_calls(&mut w, program, call::resume::REPORT_CALLS);
    w.receive(PM, Endpoint::ANY);
    w.make_current(program.slot());
    w.linux_call(program.slot(), GETPPID, [1; 6]);
    assert_eq!(w.message(PM).label, abi::kernel::LinuxCall::LABEL);
}

#[test]
fn a_trace_shows_calls_with_kept_answers() {
    let (mut w, program) = world_with_route();
    keep_answer(&mut w, program, GETPPID, 5);
    w.receive(PM, Endpoint::ANY);
    w.node.set_tracing(abi::trace::event::ALL);
    w.make_current(program.slot());
    w.linux_call(program.slot(), GETPPID, [1; 6]);
    assert_eq!(w.message(PM).label, GETPPID as u32);
}

#[test]
fn only_pm_serves_calls_with_kept_answers() {
    let mut w = World::with_services();
    w.kernel_call(RS, KernelCall::Route, &[GETPPID, A as u64]).expect("routed");
    let program = w.application();
    keep_answer(&mut w, program, GETPPID, 5);
    w.receive(A, Endpoint::ANY);
    w.make_current(program.slot());
    w.linux_call(program.slot(), GETPPID, [1; 6]);
    assert_eq!(w.message(A).label, GETPPID as u32, "what is routed elsewhere is asked there");
}

/// Lets a program run whose Linux calls are reported.
fn report_calls(w: &mut World, program: Endpoint, bits: u64) {
    w.kernel_call(RS, KernelCall::Stop, &[program.0 as u64]).expect("stopped");
    w.kernel_call(RS, KernelCall::GetRegisters, &[program.0 as u64, BUFFER]).expect("stopped");
    w.kernel_call(RS, KernelCall::SetRegisters, &[program.0 as u64, BUFFER, call::resume::READY | bits]).expect("set");
}

#[test]
fn a_call_of_a_traced_program_is_reported_before_it_is_made() {
    let (mut w, program) = world_with_route();
    report_calls(&mut w, program, call::resume::REPORT_CALLS);
    w.receive(PM, Endpoint::ANY);
    w.make_current(program.slot());
    w.linux_call(program.slot(), GETPPID, [1, 2, 3, 4, 5, 6]);
    let message = w.message(PM);
    assert_eq!((message.source, message.label), (program, abi::kernel::LinuxCall::LABEL));
    assert_eq!(message.words[0], GETPPID);
    // pm lets it make the call, and wants to hear when it comes back.
    w.kernel_call(RS, KernelCall::GetRegisters, &[program.0 as u64, BUFFER]).expect("it waits");
    w.kernel_call(RS, KernelCall::Interrupt, &[program.0 as u64]).expect("marked");
    let bits = call::resume::READY | call::resume::REPORT_CALLS | call::resume::CALL;
    w.kernel_call(RS, KernelCall::SetRegisters, &[program.0 as u64, BUFFER, bits]).expect("set");
    w.receive(PM, Endpoint::ANY);
    assert!(!w.is_ready(program.slot()), "it waits for pm");
    let message = w.message(PM);
    assert_eq!((message.source, message.label), (program, GETPPID as u32));
    assert_eq!(message.words[..6], [1, 2, 3, 4, 5, 6]);
    w.primitive(PM, call::REPLYREC, program, GETPPID as u32 | message::REPLY, 42);
    assert!(!w.is_ready(program.slot()), "it waits for pm");
    let message = w.message(PM);
    assert_eq!((message.source, message.label), (program, abi::kernel::Interrupted::LABEL));
    assert_eq!(w.node.frame_mut(program.slot()).rax, 42);
}

#[test]
fn a_program_that_is_traced_no_longer_makes_its_calls_at_once() {
    let (mut w, program) = world_with_route();
    report_calls(&mut w, program, call::resume::REPORT_CALLS);
    report_calls(&mut w, program, 0);
    w.receive(PM, Endpoint::ANY);
    w.make_current(program.slot());
    w.linux_call(program.slot(), GETPPID, [1; 6]);
    assert_eq!(w.message(PM).label, GETPPID as u32);
}
