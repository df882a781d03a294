//! Priority inheritance for Linux threads: futexes of the `PI` kind, and services that work for real-time threads.

use abi::{
    Endpoint, Errno,
    call::{self, KernelCall, NO_QUANTUM, REAL_TIME},
};
use kernel_core::Next;

use crate::world::{A, B, BUFFER, RS, World};

const FUTEX: u64 = 202;
const GETPID: u64 = 39;
const WAIT: u64 = 128;
const WAKE: u64 = 129;
const LOCK: u64 = 128 + 6;
const UNLOCK: u64 = 128 + 7;
const TRYLOCK: u64 = 128 + 8;
const WAIT_REQUEUE: u64 = 128 + 11;
const REQUEUE_PI: u64 = 128 + 12;
const GATE: u64 = BUFFER + 256;
const MUTEX: u64 = BUFFER + 512;
const OWNER_DIED: u32 = 1 << 30;
const WAITERS: u32 = 1 << 31;

/// Three threads of one program with the queues 30, 20 and 10 and the ids 1, 2 and 3; only the first is ready, the others wait at gates of their own.
fn three() -> (World, [usize; 3]) {
    let mut w = World::with_services();
    w.kernel_call(RS, KernelCall::Route, &[FUTEX, 0]).expect("routed");
    w.kernel_call(RS, KernelCall::Route, &[GETPID, A as u64]).expect("routed");
    w.receive(A, Endpoint::ANY);
    w.receive(B, Endpoint::ANY);
    let threads = [w.application(), w.application(), w.application()];
    let space = w.space(threads[0].slot()) as u64;
    for (index, thread) in threads.into_iter().enumerate() {
        w.kernel_call(RS, KernelCall::SpaceSet, &[thread.0 as u64, space]).expect("shared");
        w.kernel_call(RS, KernelCall::Start, &[thread.0 as u64, index as u64 + 1]).expect("named");
        if index != 0 {
            futex(&mut w, thread.slot(), GATE + 4 * index as u64, WAIT, 0);
        }
    }
    for (index, thread) in threads.into_iter().enumerate().rev() {
        let queue = REAL_TIME + 30 - 10 * index as u64;
        w.kernel_call(RS, KernelCall::Schedule, &[thread.0 as u64, queue, NO_QUANTUM]).expect("scheduled");
    }
    (w, threads.map(Endpoint::slot))
}

fn futex(w: &mut World, slot: usize, address: u64, operation: u64, value: u64) -> Next {
    w.linux_call(slot, FUTEX, [address, operation, value, 0, 0, 0])
}

fn open_gate(w: &mut World, by: usize, index: u64) -> Next {
    futex(w, by, GATE + 4 * index, WAKE, 1)
}

fn set_word(w: &mut World, slot: usize, value: u32) {
    let space = w.space(slot);
    w.m.poke(space, MUTEX, &value.to_le_bytes());
}

fn word(w: &mut World, slot: usize) -> u32 {
    u32::from_le_bytes(w.m.peek(w.space(slot), MUTEX, 4).try_into().expect("4 bytes"))
}

/// The first thread holds the mutex, the third waits for it, and the second is ready.
fn contended() -> (World, [usize; 3]) {
    let (mut w, [low, middle, high]) = three();
    set_word(&mut w, low, 1);
    assert_eq!(open_gate(&mut w, low, 2), Next::Run(high));
    open_gate(&mut w, high, 1);
    assert_eq!(futex(&mut w, high, MUTEX, LOCK, 0), Next::Run(low));
    (w, [low, middle, high])
}

#[test]
fn a_holder_runs_before_those_between_and_the_waiter_before_the_holder() {
    let (mut w, [low, middle, high]) = contended();
    assert_eq!(word(&mut w, low), 1 | WAITERS);
    assert_eq!(futex(&mut w, low, MUTEX, UNLOCK, 0), Next::Run(high));
    assert_eq!((w.result(high), word(&mut w, low)), (Ok(0), WAITERS | 3));
    assert_eq!(futex(&mut w, high, GATE + 8, WAIT, 0), Next::Run(middle));
}

#[test]
fn errors_are_those_of_linux() {
    let (mut w, [low, middle, high]) = three();
    futex(&mut w, low, MUTEX, UNLOCK, 0);
    assert_eq!(w.result(low), Err(Errno::EPERM));
    set_word(&mut w, low, 1);
    futex(&mut w, low, MUTEX, LOCK, 0);
    assert_eq!(w.result(low), Err(Errno::EDEADLK));
    open_gate(&mut w, low, 2);
    futex(&mut w, high, MUTEX, TRYLOCK, 0);
    assert_eq!(w.result(high), Err(Errno::EAGAIN));
    set_word(&mut w, high, 77);
    futex(&mut w, high, MUTEX, LOCK, 0);
    assert_eq!(w.result(high), Err(Errno::ESRCH));
    set_word(&mut w, high, OWNER_DIED);
    futex(&mut w, high, MUTEX, TRYLOCK, 0);
    assert_eq!((w.result(high), word(&mut w, high)), (Ok(0), OWNER_DIED | 3));
    assert!(w.is_ready(high) && !w.is_ready(middle));
}

#[test]
fn waits_in_a_circle_are_refused() {
    let (mut w, [low, _, high]) = three();
    let space = w.space(low);
    set_word(&mut w, low, 1);
    w.m.poke(space, MUTEX + 4, &3u32.to_le_bytes());
    open_gate(&mut w, low, 2);
    assert_eq!(futex(&mut w, high, MUTEX, LOCK, 0), Next::Run(low));
    futex(&mut w, low, MUTEX + 4, LOCK, 0);
    assert_eq!(w.result(low), Err(Errno::EDEADLK));
}

#[test]
fn a_time_limit_ends_the_inheritance() {
    let (mut w, [low, middle, high]) = three();
    let space = w.space(low);
    set_word(&mut w, low, 1);
    w.m.poke(space, BUFFER + 64, &[0, 0, 0, 0, 0, 0, 0, 0, 100, 0, 0, 0, 0, 0, 0, 0]);
    open_gate(&mut w, low, 2);
    open_gate(&mut w, high, 1);
    assert_eq!(w.linux_call(high, FUTEX, [MUTEX, LOCK, 0, BUFFER + 64, 0, 0]), Next::Run(low));
    w.m.now = 100;
    w.node.timer(&mut w.m);
    assert_eq!(w.next(), Next::Run(high));
    assert_eq!(w.result(high), Err(Errno::ETIMEDOUT));
    assert_eq!(futex(&mut w, high, GATE + 8, WAIT, 0), Next::Run(middle));
}

#[test]
fn the_next_owner_is_told_that_the_owner_has_died() {
    let (mut w, [low, middle, high]) = contended();
    // low leaves the processor to RS, which ends it.
    futex(&mut w, low, GATE, WAIT, 0);
    futex(&mut w, middle, GATE + 4, WAIT, 0);
    let dead = w.endpoint(low).0 as u64;
    w.syscall(RS, |frame| (frame.rax, frame.rdi, frame.rsi) = (KernelCall::Destroy.number(), dead, 0));
    assert!(w.is_ready(high));
    assert_eq!((w.result(high), word(&mut w, high)), (Ok(0), WAITERS | OWNER_DIED | 3));
    futex(&mut w, high, MUTEX, UNLOCK, 0);
    assert_eq!((w.result(high), word(&mut w, high)), (Ok(0), 0));
}

#[test]
fn services_work_with_the_priority_of_their_callers_until_they_wait() {
    let (mut w, [low, middle, high]) = three();
    let (a, b, caller) = (w.endpoint(A), w.endpoint(B), w.endpoint(high));
    open_gate(&mut w, low, 2);
    open_gate(&mut w, high, 1);
    assert_eq!(w.linux_call(high, GETPID, [0; 6]), Next::Run(A));
    assert_eq!(w.sendrec(A, b, 1), Next::Run(B));
    assert_eq!(w.primitive(B, call::REPLYREC, a, 2, 0), Next::Run(A));
    assert_eq!(w.primitive(A, call::SENDNB, caller, 2, 7), Next::Run(A));
    assert_eq!(w.receive(A, Endpoint::ANY), Next::Run(high));
    assert_eq!(w.result(high), Ok(7));
    assert_eq!(futex(&mut w, high, GATE + 8, WAIT, 0), Next::Run(middle));
}

#[test]
fn real_time_threads_that_never_wait_leave_a_twentieth_of_the_time_to_others() {
    const STEP_NS: u64 = 10_000_000;
    let mut w = World::with_services();
    let hog = w.application();
    w.kernel_call(RS, KernelCall::Schedule, &[hog.0 as u64, REAL_TIME + 10, NO_QUANTUM]).expect("scheduled");
    let mut others = 0;
    for _ in 0..1000 {
        w.m.now += STEP_NS;
        w.timer();
        others += usize::from(w.next() != Next::Run(hog.slot()));
    }
    assert!((40..=60).contains(&others), "{others} of 1000");
}

#[test]
fn a_condition_hands_its_waiters_to_the_mutex() {
    let (mut w, [low, middle, high]) = three();
    let wait = |w: &mut World, slot| w.linux_call(slot, FUTEX, [BUFFER, WAIT_REQUEUE, 0, 0, MUTEX, 0]);
    let move_on = |w: &mut World, count| w.linux_call(low, FUTEX, [BUFFER, REQUEUE_PI, count, 9, MUTEX, 0]);
    set_word(&mut w, low, 1);
    open_gate(&mut w, low, 2);
    assert_eq!(wait(&mut w, high), Next::Run(low));
    open_gate(&mut w, low, 1);
    assert_eq!(wait(&mut w, middle), Next::Run(low));
    futex(&mut w, low, BUFFER, WAKE, 1);
    assert_eq!(w.result(low), Err(Errno::EINVAL));
    move_on(&mut w, 2);
    assert_eq!(w.result(low), Err(Errno::EINVAL));
    move_on(&mut w, 1);
    assert_eq!((w.result(low), word(&mut w, low)), (Ok(2), WAITERS | 1));
    assert_eq!(futex(&mut w, low, MUTEX, UNLOCK, 0), Next::Run(high));
    assert_eq!((w.result(high), word(&mut w, high)), (Ok(0), WAITERS | 3));
    futex(&mut w, high, MUTEX, UNLOCK, 0);
    assert_eq!(futex(&mut w, high, GATE + 8, WAIT, 0), Next::Run(middle));
    assert_eq!((w.result(middle), word(&mut w, middle)), (Ok(0), WAITERS | 2));
}

#[test]
fn alarms_carry_the_priorities_of_real_time_queues_only() {
    for (queue, inherits) in [(0, false), (4, false), (REAL_TIME, false), (REAL_TIME + 1, true), (REAL_TIME + 46, true)]
    {
        let mut w = World::with_services();
        w.receive(A, Endpoint::ANY);
        let a = w.endpoint(A);
        w.primitive(B, call::NOTIFY, a, 0, 0);
        w.kernel_call(A, KernelCall::SetAlarm, &[100, queue]).expect("set");
        w.receive(A, Endpoint::ANY);
        w.make_current(B);
        w.m.now = 100;
        w.node.timer(&mut w.m);
        assert_eq!(w.next() == Next::Run(A), inherits, "{queue}");
        assert!(w.is_ready(A));
    }
}

#[test]
fn what_an_alarm_is_for_is_done_with_the_priority_it_carries() {
    let mut w = World::with_services();
    w.kernel_call(A, KernelCall::SetAlarm, &[100, REAL_TIME + 5]).expect("set");
    w.kernel_call(B, KernelCall::SetAlarm, &[100, 0]).expect("set");
    w.receive(A, Endpoint::ANY);
    w.receive(B, Endpoint::ANY);
    let hog = w.application();
    w.kernel_call(RS, KernelCall::Schedule, &[hog.0 as u64, REAL_TIME + 10, NO_QUANTUM]).expect("scheduled");
    w.m.now = 100;
    w.node.timer(&mut w.m);
    assert_eq!(w.next(), Next::Run(A));
    assert_eq!(w.receive(A, Endpoint::ANY), Next::Run(hog.slot()));
    assert!(!w.is_ready(B));
}
