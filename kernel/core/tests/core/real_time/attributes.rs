//! Attributes of processes: who may have which, who becomes real-time with them, and what is left when it is no longer.

use abi::{
    Endpoint, Errno,
    call::{self, KernelCall},
    endpoint::slot as slots,
    kernel::Interrupted,
    linux::nr,
    rt::{self, FOREVER, NOWAIT, ProcessAttributes, control, error as number, flag, irq, message},
};
use kernel_core::Next;

use super::{NOBODY, Received, error, pid, plain, words_of, world};
use crate::world::{A, PM, RS, World};

const NONE: u64 = Endpoint::NONE.0 as u64;

fn attributes_of(w: &mut World, slot: usize) -> [u64; 8] {
    w.look(control::GETPATTR, pid(slot)).expect("known")
}

#[test]
fn attributes_are_read_back_as_they_were_set() {
    let mut w = world();
    let watchdog = w.sleeper(plain(3));
    let attributes = ProcessAttributes {
        baseprty: 7,
        period: 30,
        limit: 4,
        deadline: 20,
        watchdog: pid(watchdog) as i64,
        mq_size: 5,
        mq_flags: flag::MQ_PRTYORDER,
        ..ProcessAttributes::ZERO
    };
    let slot = w.candidate(attributes);
    assert_eq!(attributes_of(&mut w, slot), [0, 7, 30, 4, 20, pid(watchdog), 5, 1]);
    w.sets_attributes(slot, ProcessAttributes { flags: flag::P_PERIODIC, ..attributes }).expect("changed");
    assert_eq!(attributes_of(&mut w, slot), [flag::P_PERIODIC, 7, 30, 0, 20, pid(watchdog), 5, 1], "no limit");
    assert_eq!(w.becomes_real_time(slot), Ok(0));
    w.sleep(slot);
    assert_eq!(attributes_of(&mut w, slot)[0], flag::P_PERIODIC | flag::P_REALTIME);
}

#[test]
fn attributes_stay_within_their_limits() {
    let mut w = world();
    let slot = w.candidate(plain(1));
    let most = rt::MAX_TICKS;
    for (given, taken) in [(0, 1), (1, 1), (46, 46), (47, 46), (u64::MAX, 46)] {
        w.sets_attributes(slot, plain(given)).expect("set");
        assert_eq!(attributes_of(&mut w, slot)[1], taken, "priority {given}");
    }
    for (flags, given, taken) in [(0, 0, 0), (0, most + 1, most), (flag::P_PERIODIC, 0, 1), (flag::P_PERIODIC, 2, 2)] {
        w.sets_attributes(slot, ProcessAttributes { flags, period: given, ..plain(1) }).expect("set");
        assert_eq!(attributes_of(&mut w, slot)[2], taken, "period {given}");
    }
    for (given, taken) in [(0, 0), (most, most), (most + 1, most)] {
        w.sets_attributes(slot, ProcessAttributes { deadline: given, ..plain(1) }).expect("set");
        assert_eq!(attributes_of(&mut w, slot)[4], taken, "deadline {given}");
    }
    for (given, taken) in [(0, 0), (256, 256), (257, 256)] {
        w.sets_attributes(slot, ProcessAttributes { mq_size: given, ..plain(1) }).expect("set");
        assert_eq!(attributes_of(&mut w, slot)[6], taken, "queue {given}");
    }
}

#[test]
fn a_watchdog_is_another_real_time_process() {
    let mut w = world();
    let (ordinary, sleeper) = (w.candidate(plain(1)), w.sleeper(plain(1)));
    let with = |watchdog: u64| ProcessAttributes { watchdog: watchdog as i64, ..plain(1) };
    for watchdog in [pid(ordinary), 5, 0] {
        assert_eq!(w.sets_attributes(sleeper, with(watchdog)), error(number::E_MRT_BADWDOG), "{watchdog}");
    }
    assert_eq!(w.sets_attributes(sleeper, with(pid(sleeper))), error(number::E_MRT_BADWDOG), "itself");
    assert_eq!(w.sets_attributes(ordinary, with(pid(sleeper))), Ok(0));
    assert_eq!(w.sets_attributes(ordinary, with(NOBODY)), Ok(0));
}

#[test]
fn only_pids_of_processes_with_attributes_are_known() {
    let mut w = world();
    let slot = w.candidate(plain(1));
    let sleeper = w.sleeper(plain(1));
    for operation in [control::GETPATTR, control::GETPSTAT, control::CLRPSTAT, control::GETPINT] {
        for unknown in [0, 5, u64::MAX, pid(slot) + 256] {
            assert_eq!(w.control(operation, A, unknown, [0; 8]), error(number::E_BAD_PROC), "{operation} {unknown}");
        }
        assert_eq!(w.control(operation, A, pid(slot), [0; 8]), Ok(0));
    }
    w.destroys(slot);
    assert_eq!(w.look(control::GETPATTR, pid(slot)), error(number::E_BAD_PROC), "it is dead");
    assert_eq!(attributes_of(&mut w, sleeper)[1], 1);
}

/// Pids are looked up by their low bits first.
#[test]
fn processes_with_similar_pids_are_not_confused() {
    let mut w = world();
    let slots = [w.application().slot(), w.application().slot(), w.application().slot()];
    let pids = [300, 300 + 256, 300 + 512];
    for (priority, (slot, pid)) in slots.into_iter().zip(pids).enumerate() {
        let words = words_of(plain(10 + priority as u64));
        w.control(control::SETPATTR, slot, pid, words).expect("set");
    }
    for _ in 0..2 {
        for (priority, pid) in pids.into_iter().enumerate() {
            assert_eq!(w.look(control::GETPATTR, pid).expect("known")[1], 10 + priority as u64);
        }
    }
    w.destroys(slots[2]);
    assert_eq!(w.look(control::GETPATTR, pids[2]), error(number::E_BAD_PROC));
    assert_eq!(w.look(control::GETPATTR, pids[0]).expect("known")[1], 10);
}

#[test]
fn so_many_processes_may_have_attributes() {
    let mut w = world();
    let fork = |w: &mut World| {
        let endpoint = w.kernel_call(RS, KernelCall::Fork, &[Endpoint::NONE.0 as u64]).expect("forked");
        Endpoint(endpoint as u32).slot()
    };
    let all: Vec<_> = (0..rt::PROCESSES).map(|_| fork(&mut w)).collect();
    for &slot in &all {
        w.sets_attributes(slot, plain(2)).expect("set");
    }
    let last = fork(&mut w);
    assert_eq!(w.sets_attributes(last, plain(2)), error(number::E_MRT_NOMSGQ));
    w.destroys(all[100]);
    assert_eq!(w.sets_attributes(last, plain(3)), Ok(0));
    assert_eq!(attributes_of(&mut w, last)[1], 3);
    assert_eq!(attributes_of(&mut w, all[255])[1], 2);
}

#[test]
fn internals_tell_timers_priority_queue_and_slot() {
    let mut w = world();
    let candidate = w.candidate(plain(12));
    assert_eq!(w.look(control::GETPINT, pid(candidate)), Ok([0, 12, u64::MAX, candidate as u64, 0, 0, 0, 0]));
    let with_deadline = ProcessAttributes { deadline: 9, ..plain(13) };
    let periodic = ProcessAttributes { flags: flag::P_PERIODIC, period: 50, ..plain(14) };
    for (attributes, timers) in [(plain(12), 1), (with_deadline, 2), (periodic, 2)] {
        let slot = w.sleeper(attributes);
        let internals = w.look(control::GETPINT, pid(slot)).expect("known");
        assert_eq!(internals[..2], [timers, attributes.baseprty]);
        assert!((1..=256).contains(&internals[2]));
        assert_eq!(internals[3..], [slot as u64, 0, 0, 0, 0]);
    }
}

#[test]
fn becoming_real_time_needs_attributes_the_mode_and_memory() {
    let mut w = world();
    let without = w.application().slot();
    assert_eq!(w.calls(without, rt::call::SET2RT, [0, 0]), error(number::E_MRT_BADPRTY));
    let slot = w.candidate(plain(5));
    w.make_current(slot);
    w.node.frame_mut(slot).rsp = 0x7fff_0000;
    assert_eq!(w.asks_for_real_time(slot).stack, 0x7fff_0000);
    assert_eq!(w.has_memory(slot, -(Errno::ENOMEM.0 as i64) as u64), Err(Errno::ENOMEM));
    assert_eq!(w.calls(slot, rt::call::SET2NRT, [0, 0]), error(number::E_MRT_BADPTYPE));
    w.control(control::RTSTOP, A, 0, [0; 8]).expect("stopped");
    assert_eq!(w.calls(slot, rt::call::SET2RT, [0, 0]), error(number::E_MRT_NORTMODE));
    assert!(w.is_ready(slot), "vm was not asked");
}

#[test]
fn a_mode_that_ends_while_vm_works_leaves_an_ordinary_process() {
    let mut w = world();
    let slot = w.candidate(plain(5));
    w.asks_for_real_time(slot);
    w.control(control::RTSTOP, A, 0, [0; 8]).expect("stopped");
    assert_eq!(w.has_memory(slot, 0), error(number::E_MRT_NORTMODE));
}

#[test]
fn so_many_processes_may_be_real_time() {
    let mut w = world();
    let all: Vec<_> = (0..rt::QUEUES).map(|_| w.sleeper(plain(5))).collect();
    let last = w.candidate(plain(6));
    assert_eq!(w.calls(last, rt::call::SET2RT, [0, 0]), error(number::E_MRT_NOMSGQ));
    w.destroys(all[3]);
    assert_eq!(w.becomes_real_time(last), Ok(0));
    w.sleep(last);
    assert_eq!(w.priority_of(last), 6);
}

#[test]
fn virtual_timers_run_out_and_come_back() {
    let mut w = world();
    let periodic = ProcessAttributes { flags: flag::P_PERIODIC, period: 100, ..plain(5) };
    // One timer is the tick's, each of these has two.
    let all: Vec<_> = (0..rt::TIMERS / 2 - 1).map(|_| w.sleeper(periodic)).collect();
    let (two, one) = (w.candidate(periodic), w.candidate(plain(6)));
    assert_eq!(w.calls(two, rt::call::SET2RT, [0, 0]), error(number::E_MRT_NOVTIMER), "one is left");
    assert_eq!(w.becomes_real_time(one), Ok(0));
    w.sleep(one);
    let other = w.candidate(plain(6));
    assert_eq!(w.calls(other, rt::call::SET2RT, [0, 0]), error(number::E_MRT_NOVTIMER));
    let timed = [1, NOBODY, NOBODY, 1, irq::TDIRQ | irq::SOFTIRQ, 0, 0, 0];
    assert_eq!(w.control(control::SETIATTR, A, 70, timed), error(number::E_MRT_NOVTIMER));
    w.destroys(all[0]);
    assert_eq!(w.control(control::SETIATTR, A, 70, timed), Ok(0));
    assert_eq!(w.control(control::SETIATTR, A, 71, timed), Ok(0));
    assert_eq!(w.control(control::SETIATTR, A, 72, timed), error(number::E_MRT_NOVTIMER));
    assert_eq!(w.control(control::SETIATTR, A, 71, timed), Ok(0), "it has a timer already");
    assert_eq!(w.control(control::SETIATTR, A, 72, [1, NOBODY, NOBODY, 1, irq::SOFTIRQ, 0, 0, 0]), Ok(0));
}

#[test]
fn the_watchdog_hears_of_calls_that_a_real_time_process_must_not_make() {
    let mut w = world();
    let watchdog = w.receiver(plain(9));
    let slot = w.process(ProcessAttributes { watchdog: pid(watchdog) as i64, ..plain(5) });
    w.m.now += 50_000_000;
    let number = KernelCall::Time.number();
    w.syscall(slot, |frame| frame.rax = number);
    assert_eq!(w.result(slot), error(number::E_MRT_RTMODE));
    w.node.frame_mut(slot).rax = call::SENDREC;
    w.node.vector33(&mut w.m);
    assert_eq!(w.result(slot), error(number::E_MRT_RTMODE));
    w.sleep(slot);
    let told = w.received(watchdog);
    let expected = Received { kind: message::KRNDLINE, sequence: 1, words: [pid(slot), 3, number, 0], ..told };
    assert_eq!((told, told.pid, told.priority), (expected, 0, 0));
    assert_eq!(w.takes(watchdog, rt::ANYPROC).expect("told").words, [pid(slot), 3, call::SENDREC, 0]);
}

/// A watchdog, and a process that it watches, which runs.
fn watched(w: &mut World) -> (usize, usize) {
    let watchdog = w.receiver(plain(9));
    let slot = w.process(ProcessAttributes { watchdog: pid(watchdog) as i64, ..plain(5) });
    (watchdog, slot)
}

#[test]
fn the_watchdog_hears_of_the_end_of_its_process() {
    let mut w = world();
    let (watchdog, slot) = watched(&mut w);
    assert_eq!(w.calls(slot, rt::call::SET2NRT, [0, 0]), Ok(0));
    w.make_current(watchdog);
    let told = w.received(watchdog);
    assert_eq!((told.kind, told.pid, told.words), (message::KRNPROC, 0, [pid(slot), 0, 0, 0]));
    w.listen(watchdog);
    assert_eq!(attributes_of(&mut w, slot)[0] & flag::P_REALTIME, 0);
    assert_eq!(attributes_of(&mut w, slot)[5], pid(watchdog));
}

#[test]
fn a_process_hears_of_the_end_of_its_watchdog_and_has_none_then() {
    let mut w = world();
    let bystander = w.receiver(plain(4));
    let (watchdog, slot) = watched(&mut w);
    w.listen(slot);
    w.destroys(watchdog);
    w.make_current(slot);
    let told = w.received(slot);
    assert_eq!((told.kind, told.words), (message::KRNWDOG, [pid(watchdog), 0, 0, 0]));
    assert!(w.takes(slot, rt::ANYPROC).is_err());
    w.listen(slot);
    assert_eq!(attributes_of(&mut w, slot)[5], NOBODY);
    assert!(!w.is_ready(bystander));
}

#[test]
fn a_runaway_becomes_ordinary_and_its_watchdog_hears_of_it() {
    let mut w = world();
    let (watchdog, slot) = watched(&mut w);
    w.m.now += rt::RUNAWAY_NS - 1;
    w.node.timer(&mut w.m);
    assert_eq!(w.next(), Next::Run(slot), "not yet");
    w.m.now += 1;
    w.node.timer(&mut w.m);
    assert_eq!(w.next(), Next::Run(watchdog));
    let told = w.received(watchdog);
    assert_eq!((told.kind, told.words), (message::KRNDLINE, [pid(slot), 4, 0, 0]));
    let end = w.takes(watchdog, rt::ANYPROC).expect("told");
    assert_eq!((end.kind, end.sequence, end.id), (message::KRNPROC, told.sequence + 1, told.id + 1));
}

#[test]
fn waiting_gives_a_process_a_whole_quantum() {
    let mut w = world();
    let slot = w.sleeper(plain(5));
    for _ in 0..3 {
        w.awaken(slot);
        w.m.now += rt::RUNAWAY_NS - 1000;
        w.node.timer(&mut w.m);
        assert_eq!(w.next(), Next::Run(slot));
        w.sleep(slot);
    }
    assert_eq!(w.priority_of(slot), 5, "it is real-time");
}

#[test]
fn a_process_that_leaves_real_time_has_its_queue_and_quantum_back() {
    let mut w = world();
    let slot = w.candidate(plain(5));
    let endpoint = w.endpoint(slot).0 as u64;
    w.asks_for_real_time(slot);
    w.kernel_call(RS, KernelCall::Schedule, &[endpoint, 2, 3000]).expect("scheduled");
    assert_eq!(w.has_memory(slot, 0), Ok(0));
    assert_eq!(w.next(), Next::Run(slot));
    assert_eq!(w.calls(slot, rt::call::SET2NRT, [0, 0]), Ok(0));
    assert_eq!(w.next(), Next::Run(slot), "it is better than the services");
    w.m.armed = None;
    w.m.now += 3_000_000;
    w.node.timer(&mut w.m);
    assert_eq!(w.next(), Next::Run(slot), "it sinks by one, to queue 3");
    w.m.now += 3_000_000;
    w.node.timer(&mut w.m);
    assert_ne!(w.next(), Next::Run(slot), "and to the services' queue");
}

#[test]
fn a_signal_ends_the_wait_and_real_time() {
    let mut w = world();
    w.service(PM);
    w.receive(PM, Endpoint::ANY);
    let slot = w.candidate(plain(5));
    let endpoint = w.endpoint(slot);
    w.asks_for_real_time(slot);
    w.kernel_call(RS, KernelCall::Schedule, &[endpoint.0 as u64, 2, 3000]).expect("scheduled");
    assert_eq!(w.has_memory(slot, 0), Ok(0));
    w.real_time_call(slot, rt::call::SLEEP, [50, 0]);
    assert_eq!(w.kernel_call(RS, KernelCall::Interrupt, &[endpoint.0 as u64]), Ok(NONE));
    assert!(!w.is_ready(slot));
    assert_eq!((w.message(PM).source, w.message(PM).label), (endpoint, Interrupted::LABEL));
    w.primitive(PM, call::REPLYREC, endpoint, 0, 0);
    assert_eq!(w.next(), Next::Run(slot), "it has its queue again");
    assert_eq!(w.result(slot), error(number::E_MRT_EXITING));
    assert_eq!(w.calls(slot, rt::call::SLEEP, [NOWAIT as u64, 0]), error(number::E_MRT_BADPTYPE));
    w.scrub(slot);
    w.pass(60);
    assert_eq!(w.node.frame_mut(slot).rax, 0xdead, "its time limit is gone");
}

#[test]
fn exit_and_exit_group_go_to_their_service() {
    for exit in [nr::EXIT, nr::EXIT_GROUP] {
        let mut w = world();
        w.service(PM);
        w.kernel_call(RS, KernelCall::Route, &[exit as u64, slots::PM as u64]).expect("routed");
        w.receive(PM, Endpoint::ANY);
        let slot = w.process(plain(5));
        w.linux_call(slot, exit as u64, [7, 0, 0, 0, 0, 0]);
        w.make_current(PM);
        let message = w.message(PM);
        assert_eq!((message.source, message.label, message.words[0]), (w.endpoint(slot), exit, 7));
        assert_eq!(attributes_of(&mut w, slot)[0], 0, "real-time no more");
    }
}

#[test]
fn a_process_is_real_time_as_long_as_its_limit_allows() {
    let mut w = world();
    let slot = w.sleeper(ProcessAttributes { limit: 2, ..plain(5) });
    w.awaken(slot);
    w.sleep(slot);
    assert_eq!(attributes_of(&mut w, slot)[0], flag::P_REALTIME, "it was scheduled once");
    w.awaken(slot);
    assert_eq!(w.calls(slot, rt::call::SLEEP, [FOREVER as u64, 0]), Ok(0));
    assert_eq!(attributes_of(&mut w, slot)[0], 0);
}
