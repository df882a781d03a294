//! Turns: quanta, the timer, deferred work, and the pause of real-time threads.

use abi::{
    Endpoint, Errno,
    call::{self, KernelCall, NO_QUANTUM, REAL_TIME},
    endpoint::{SLOTS, slot},
};
use kernel_core::Next;

use crate::world::{A, B, C, RS, VM, World};

const MS: u64 = 1_000_000;

fn schedule(w: &mut World, slot: usize, queue: u64, quantum_us: u64) {
    let endpoint = w.endpoint(slot).0 as u64;
    w.kernel_call(RS, KernelCall::Schedule, &[endpoint, queue, quantum_us]).expect("scheduled");
}

/// A and B in a queue with a quantum of 2 ms, C in another; rs and vm wait, A runs.
fn pair(queue: u64, other: u64) -> World {
    let mut w = World::with_services();
    for (slot, queue) in [(A, queue), (B, queue), (C, other)] {
        schedule_later(&mut w, slot, queue);
    }
    w.receive(VM, Endpoint::ANY);
    w.receive(RS, Endpoint::ANY);
    w
}

/// RS sets it at its next turn; the thread stays ready.
fn schedule_later(w: &mut World, slot: usize, queue: u64) {
    let endpoint = w.endpoint(slot).0 as u64;
    w.make_current(RS);
    w.begin_kernel_call(RS, KernelCall::Schedule, &[endpoint, queue, 2000]);
}

/// Lets time pass, and the timer come.
fn timer(w: &mut World, time_ns: u64) -> Next {
    w.m.now += time_ns;
    w.timer();
    w.next()
}

#[test]
fn a_turn_ends_when_the_quantum_is_used_up_and_not_before() {
    let mut w = pair(8, 12);
    let Next::Run(first) = w.next() else { panic!("A or B runs") };
    assert_eq!(timer(&mut w, 2 * MS - 1), Next::Run(first));
    assert_eq!(w.m.armed.expect("armed") - w.m.now, 1, "the rest of the turn");
    let second = A + B - first;
    assert_eq!(timer(&mut w, 1), Next::Run(second));
    assert_eq!(timer(&mut w, 2 * MS), Next::Run(first), "both have sunk by one");
    assert_eq!(timer(&mut w, 2 * MS), Next::Run(second));
}

#[test]
fn a_thread_sinks_to_the_last_queue_and_no_further() {
    let mut w = pair(8, 15);
    w.receive(B, Endpoint::ANY);
    assert_eq!(w.next(), Next::Run(A));
    for _ in 8..14 {
        assert_eq!(timer(&mut w, 2 * MS), Next::Run(A), "better than C still");
    }
    assert_eq!(timer(&mut w, 2 * MS), Next::Run(C), "in its queue, behind it");
    assert_eq!(timer(&mut w, 2 * MS), Next::Run(A), "C cannot sink");
    assert_eq!(timer(&mut w, 2 * MS), Next::Run(C));
}

#[test]
fn nobody_sinks_without_competition() {
    let mut w = pair(8, 8);
    w.receive(B, Endpoint::ANY);
    w.receive(C, Endpoint::ANY);
    for _ in 0..10 {
        assert_eq!(timer(&mut w, 2 * MS), Next::Run(A));
    }
    let b = w.endpoint(B);
    w.primitive(A, call::NOTIFY, b, 0, 0);
    assert_eq!(w.next(), Next::Run(A));
    assert_eq!(timer(&mut w, 2 * MS), Next::Run(B), "from its own queue");
}

#[test]
fn who_has_sunk_is_raised_after_200_ms_or_when_it_has_waited() {
    let mut w = pair(8, 10);
    w.receive(B, Endpoint::ANY);
    while timer(&mut w, 2 * MS) != Next::Run(C) {
        assert!(w.m.now < 10 * MS, "A sinks below C");
    }
    let b = w.endpoint(B);
    w.primitive(C, call::NOTIFY, b, 0, 0);
    assert_eq!(w.next(), Next::Run(B), "one that has waited is in its own queue");
    w.receive(B, Endpoint::ANY);
    w.m.now = 200 * MS - 1;
    w.node.timer(&mut w.m);
    let below = w.next();
    assert_eq!(timer(&mut w, 1), Next::Run(A), "after {below:?}");
}

#[test]
fn real_time_threads_of_one_queue_take_turns_only_if_they_have_a_quantum() {
    for (quantum, expected) in [(2000, Next::Run(B)), (NO_QUANTUM, Next::Run(A))] {
        let mut w = World::with_services();
        for slot in [A, B] {
            w.receive(slot, Endpoint::ANY);
            schedule(&mut w, slot, REAL_TIME + 9, quantum);
        }
        let (a, b) = (w.endpoint(A), w.endpoint(B));
        assert_eq!(w.primitive(C, call::NOTIFY, a, 0, 0), Next::Run(A));
        w.primitive(A, call::NOTIFY, b, 0, 0);
        assert_eq!(w.next(), Next::Run(A));
        assert_eq!(timer(&mut w, MS), Next::Run(A));
        assert_eq!(timer(&mut w, 60 * MS), expected);
        assert_eq!(timer(&mut w, 60 * MS), Next::Run(A));
    }
}

#[test]
fn a_thread_that_yields_goes_behind_the_others_of_its_queue() {
    let mut w = pair(8, 8);
    let Next::Run(first) = w.next() else { panic!("somebody runs") };
    let mut order = Vec::new();
    for _ in 0..6 {
        let Next::Run(slot) = w.next() else { panic!("somebody runs") };
        order.push(slot);
        w.scrub(slot);
        w.begin_kernel_call(slot, KernelCall::Yield, &[]);
        assert_eq!(w.result(slot), Ok(0));
    }
    assert_eq!(order[0], first);
    assert_eq!(order[..3], order[3..]);
    assert!([A, B, C].iter().all(|slot| order[..3].contains(slot)));
}

#[test]
fn a_request_to_the_system_task_and_deferred_interrupts_are_both_done() {
    let mut w = World::with_services();
    for (slot, queue) in [(A, 3), (C, 10)] {
        w.receive(slot, Endpoint::ANY);
        schedule(&mut w, slot, REAL_TIME + queue, 0);
    }
    let (a, c) = (w.endpoint(A), w.endpoint(C));
    assert_eq!(w.primitive(B, call::NOTIFY, c, 0, 0), Next::Run(C));
    assert_eq!(w.primitive(C, call::NOTIFY, a, 0, 0), Next::Run(A));
    assert_eq!(w.begin_ask_system(A, KernelCall::GetTsc, &[]), Next::Run(C), "the task is worse");
    w.m.unmasked.insert(5);
    w.node.interrupt(&mut w.m, 5);
    assert_eq!(w.next(), Next::Run(C));
    assert_eq!(w.receive(C, Endpoint::ANY), Next::Run(A));
    assert_eq!(w.message(A).source, Endpoint::SYSTEM);
}

/// Lets A, which never waits, run until it pauses. Returns for how long that was, in ms.
fn run_to_pause(w: &mut World) -> u64 {
    let mut used = 0;
    while timer(w, 50 * MS) == Next::Run(A) {
        used += 50;
        assert!(used <= 2000, "it never pauses");
    }
    used
}

/// A hog that has used more than its share of a second pauses for 50 ms, and runs on afterwards.
#[test]
fn the_pause_of_real_time_threads_has_a_begin_and_an_end() {
    let mut w = World::with_services();
    w.receive(A, Endpoint::ANY);
    schedule(&mut w, A, REAL_TIME + 10, NO_QUANTUM);
    let a = w.endpoint(A);
    assert_eq!(w.primitive(B, call::NOTIFY, a, 0, 0), Next::Run(A));
    let used = run_to_pause(&mut w);
    assert!((900..=1000).contains(&used), "{used} ms");
    let end = w.m.now + 50 * MS;
    w.m.now = end - 1;
    w.node.timer(&mut w.m);
    assert_ne!(w.next(), Next::Run(A));
    assert!(w.m.armed.is_some_and(|armed| armed <= end), "the timer comes for the end");
    assert_eq!(timer(&mut w, 1), Next::Run(A));
    assert_eq!(timer(&mut w, 50 * MS), Next::Run(A), "a new second");
}

/// The account of all threads is taken in pieces, between which interrupts come, and so is the change of their queues.
#[test]
fn a_pause_takes_all_threads_a_few_at_a_time() {
    const AT_ONCE: usize = 64;
    let (mut w, mut longest) = (World::with_services(), 0);
    w.receive(A, Endpoint::ANY);
    schedule(&mut w, A, REAL_TIME + 10, NO_QUANTUM);
    let a = w.endpoint(A);
    assert_eq!(w.primitive(B, call::NOTIFY, a, 0, 0), Next::Run(A));
    while w.next() == Next::Run(A) {
        w.m.now += 50 * MS;
        let mut turns = 0;
        while w.timer_once() {
            turns += 1;
        }
        longest = longest.max(turns);
    }
    assert!(longest >= 2 * (SLOTS / AT_ONCE), "{longest} turns");
}

/// A thread of the worst queue gets the time of the pause, too.
#[test]
fn the_hog_is_behind_all_others_in_its_pause() {
    let mut w = World::with_services();
    w.receive(A, Endpoint::ANY);
    schedule(&mut w, A, REAL_TIME + 10, NO_QUANTUM);
    schedule(&mut w, B, 15, 0);
    for slot in [VM, C, RS] {
        w.receive(slot, Endpoint::ANY);
    }
    let a = w.endpoint(A);
    assert_eq!(w.primitive(B, call::NOTIFY, a, 0, 0), Next::Run(A));
    run_to_pause(&mut w);
    assert_eq!(w.next(), Next::Run(B));
}

#[test]
fn real_time_threads_that_use_less_than_their_share_do_not_pause() {
    let mut w = World::with_services();
    w.receive(A, Endpoint::ANY);
    for slot in [B, C, VM, RS] {
        schedule(&mut w, slot, 4, 1_000_000_000);
    }
    schedule(&mut w, A, REAL_TIME + 10, NO_QUANTUM);
    let a = w.endpoint(A);
    for _ in 0..40 {
        // 90 of 100 ms.
        assert_eq!(w.primitive(B, call::NOTIFY, a, 0, 0), Next::Run(A));
        for _ in 0..2 {
            assert_eq!(timer(&mut w, 45 * MS), Next::Run(A));
        }
        assert_ne!(w.receive(A, Endpoint::ANY), Next::Run(A));
        timer(&mut w, 10 * MS);
    }
}

#[test]
fn a_wake_up_of_the_idle_machine_runs_at_once() {
    let mut w = World::with_services();
    for slot in [RS, VM, A, B] {
        w.receive(slot, Endpoint::ANY);
    }
    w.kernel_call(C, KernelCall::SetAlarm, &[100]).expect("set");
    assert_eq!(w.receive(C, Endpoint::ANY), Next::Idle);
    assert_eq!(w.node.current(), slot::IDLE);
    assert_eq!(timer(&mut w, 99), Next::Idle);
    assert_eq!(timer(&mut w, 1), Next::Run(C));
    assert_eq!(w.result(C), Ok::<u64, Errno>(0));
}
