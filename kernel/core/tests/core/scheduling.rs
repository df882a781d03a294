//! Who runs when.

use abi::{Endpoint, call, call::KernelCall};
use kernel_core::Next;

use crate::world::{A, B, C, RS, World};

const MS: u64 = 1_000_000;

fn set_queue(w: &mut World, slot: usize, queue: u64, quantum_us: u64) {
    let endpoint = w.endpoint(slot);
    w.kernel_call(RS, KernelCall::Schedule, &[endpoint.0 as u64, queue, quantum_us]).expect("scheduled");
}

/// rs and vm wait, so that only A, B and C run.
fn quiet() -> World {
    let mut w = World::with_services();
    for slot in [A, B, C] {
        set_queue(&mut w, slot, 8, 0);
    }
    w.receive(crate::world::VM, Endpoint::ANY);
    w.receive(RS, Endpoint::ANY);
    w
}

fn run_for(w: &mut World, time_ns: u64) -> Next {
    w.m.now += time_ns;
    if w.m.armed.is_some_and(|deadline| deadline <= w.m.now) {
        w.timer();
    }
    w.next()
}

#[test]
fn a_woken_thread_of_a_better_queue_preempts_and_the_other_goes_on_after() {
    let mut w = World::with_services();
    set_queue(&mut w, B, 2, 0);
    let b = w.endpoint(B);
    w.receive(B, Endpoint::ANY);
    assert_eq!(w.send(A, b, 1), Next::Run(B));
    assert_eq!(w.receive(B, Endpoint::ANY), Next::Run(A), "A was preempted and is first of its queue");
}

#[test]
fn a_woken_thread_of_the_same_queue_waits_for_its_turn() {
    let mut w = World::with_services();
    let b = w.endpoint(B);
    w.receive(B, Endpoint::ANY);
    assert_eq!(w.send(A, b, 1), Next::Run(A));
}

#[test]
fn the_server_of_a_call_runs_at_once_when_nobody_else_is_ready() {
    let mut w = quiet();
    let (a, b) = (w.endpoint(A), w.endpoint(B));
    w.receive(C, Endpoint::ANY);
    w.receive(B, Endpoint::ANY);
    for _ in 0..3 {
        assert_eq!(w.sendrec(A, b, 1), Next::Run(B));
        assert_eq!(w.primitive(B, call::REPLYREC, a, 1, 0), Next::Run(A));
    }
}

#[test]
fn equals_take_turns_by_quantum() {
    let mut w = quiet();
    w.make_current(A);
    let mut order = Vec::new();
    for _ in 0..6 {
        if let Next::Run(slot) = run_for(&mut w, 10 * MS) {
            order.push(slot);
        }
    }
    for slot in [A, B, C] {
        assert_eq!(order.iter().filter(|&&ran| ran == slot).count(), 2, "{order:?}");
    }
}

#[test]
fn a_thread_that_uses_its_quantum_sinks_below_those_that_do_not() {
    let mut w = quiet();
    w.receive(C, Endpoint::ANY);
    w.receive(B, Endpoint::ANY);
    let (a, b) = (w.endpoint(A), w.endpoint(B));
    w.primitive(A, call::SENDNB, b, 1, 0);
    assert_eq!(run_for(&mut w, 11 * MS), Next::Run(B), "A has sunk");
    w.primitive(B, call::SENDNB, a, 1, 0);
    assert_eq!(run_for(&mut w, MS), Next::Run(B));
    assert_eq!(w.receive(B, Endpoint::ANY), Next::Run(A));
}

/// Three threads of one queue: A, which has used its quantum, comes back only when both others wait. By mere turns it would run third.
#[test]
fn a_thread_that_uses_its_quantum_runs_after_all_of_its_queue_that_do_not() {
    let mut w = quiet();
    w.make_current(A);
    assert_ne!(run_for(&mut w, 11 * MS), Next::Run(A), "A's quantum is over");
    for _ in 0..4 {
        for slot in [B, C] {
            w.make_current(slot);
            assert!(matches!(w.begin_kernel_call(slot, KernelCall::Yield, &[]), Next::Run(B | C)), "A has sunk");
        }
    }
    w.receive(B, Endpoint::ANY);
    assert_eq!(w.receive(C, Endpoint::ANY), Next::Run(A));
}

#[test]
fn nobody_starves() {
    let mut w = quiet();
    w.receive(C, Endpoint::ANY);
    set_queue_of_sunk(&mut w);
    let mut ran = false;
    for _ in 0..60 {
        ran |= run_for(&mut w, 10 * MS) == Next::Run(A);
        if let Next::Run(slot) = w.next() {
            w.node.frame_mut(slot).rax = KernelCall::Time.number();
        }
    }
    assert!(ran);
}

/// A hogs until it is far below B.
fn set_queue_of_sunk(w: &mut World) {
    w.make_current(A);
    for _ in 0..8 {
        run_for(w, 10 * MS);
    }
}

#[test]
fn the_timer_is_left_alone_while_nobody_competes() {
    let mut w = quiet();
    w.receive(C, Endpoint::ANY);
    w.receive(B, Endpoint::ANY);
    w.m.armed = None;
    let (a, b) = (w.endpoint(A), w.endpoint(B));
    for _ in 0..100 {
        w.m.now += MS;
        w.sendrec(A, b, 1);
        w.primitive(B, call::REPLYREC, a, 1, 0);
    }
    assert_eq!(w.m.armed, None);
}

#[test]
fn with_nobody_ready_the_node_idles_until_an_interrupt() {
    let mut w = quiet();
    for slot in [A, B] {
        w.receive(slot, Endpoint::ANY);
    }
    w.kernel_call(C, KernelCall::SetAlarm, &[7 * MS]).expect("set");
    assert_eq!(w.receive(C, Endpoint::ANY), Next::Idle);
    w.m.now = 7 * MS;
    w.timer();
    assert_eq!(w.next(), Next::Run(C));
}

#[test]
fn yield_lets_the_others_of_the_queue_run() {
    let mut w = quiet();
    w.make_current(A);
    assert!(matches!(w.begin_kernel_call(A, KernelCall::Yield, &[]), Next::Run(slot) if slot != A));
}

#[test]
fn queues_and_quanta_out_of_range_are_refused() {
    let mut w = World::with_services();
    let a = w.endpoint(A).0 as u64;
    assert!(w.kernel_call(RS, KernelCall::Schedule, &[a, 16, 0]).is_err());
    assert!(w.kernel_call(RS, KernelCall::Schedule, &[a, u64::MAX, u64::MAX]).is_ok());
}
