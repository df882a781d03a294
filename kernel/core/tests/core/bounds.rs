//! Bounds: what the kernel does between two preemption points does not grow with the number of threads that wait.

use abi::{Endpoint, Errno, call::KernelCall, endpoint::SERVICE_SLOTS, endpoint::SLOTS, info, linux::nr};
use kernel_core::Next;

use crate::world::{A, BUFFER, RS, VM, World};

const THREADS: usize = 1000;
/// A Linux call that a service has.
const CALL: u32 = nr::GETPPID;
const WAIT: u64 = 128;
const WAKE: u64 = 129;
const REQUEUE: u64 = 128 + 3;
const CMP_REQUEUE: u64 = 128 + 4;
const LOCK_PI: u64 = 128 + 6;
const SHARED_WAIT: u64 = 0;
const SHARED_WAKE: u64 = 1;
const ALL: u64 = i32::MAX as u64;
const SECOND: u64 = BUFFER + 16;
const TIMESPEC: u64 = BUFFER + 64;
/// Threads whose wait may end between two preemption points.
const AT_ONCE: usize = 8;

/// Threads of one program; the last one is to disturb the others.
fn program() -> (World, Vec<usize>) {
    let mut w = World::new();
    for number in [nr::FUTEX, nr::CLOCK_NANOSLEEP] {
        w.kernel_call(RS, KernelCall::Route, &[number as u64, 0]).expect("routed");
    }
    let first = w.application();
    let threads = (0..THREADS).map(|_| new_thread(&mut w, first)).collect();
    (w, threads)
}

/// A thread of the program of `first`, which waits stopped.
fn new_thread(w: &mut World, first: Endpoint) -> usize {
    let space = w.space(first.slot()) as u64;
    let thread = w.kernel_call(RS, KernelCall::Fork, &[first.0 as u64]).expect("forked");
    w.kernel_call(RS, KernelCall::SpaceSet, &[thread, space]).expect("space set");
    Endpoint(thread as u32).slot()
}

/// Starts a thread, and lets it make a call that waits.
fn wait(w: &mut World, slot: usize, number: u32, words: [u64; 6]) {
    start(w, slot);
    w.linux_call(slot, number as u64, words);
    assert!(!w.node.thread(slot).is_ready());
}

fn start(w: &mut World, slot: usize) {
    let endpoint = w.endpoint(slot).0 as u64;
    w.kernel_call(RS, KernelCall::Start, &[endpoint]).expect("started");
}

fn ready(w: &World) -> usize {
    (SERVICE_SLOTS..SLOTS).filter(|&slot| w.node.thread(slot).is_ready()).count()
}

/// Makes a futex call with an interrupt pending all the time. Returns its result, and how often it was preempted.
fn preempted_call(w: &mut World, slot: usize, words: [u64; 6]) -> (Result<u64, Errno>, usize) {
    let mut preemptions = 0;
    w.m.polls_until_interrupt = Some(1);
    let mut before = ready(w);
    let mut next = w.linux_call(slot, nr::FUTEX as u64, words);
    while next == Next::Interrupts {
        preemptions += 1;
        assert!(ready(w) - before <= AT_ONCE, "{} at once", ready(w) - before);
        before = ready(w);
        next = w.next();
    }
    w.m.polls_until_interrupt = None;
    (w.result(slot), preemptions)
}

#[test]
fn sleepers_until_one_time_wake_a_few_at_a_time_and_the_timer_comes_again_at_once() {
    let (mut w, threads) = program();
    let space = w.space(threads[0]);
    w.m.poke(space, TIMESPEC, &u128::to_le_bytes(1000 << 64));
    for &slot in &threads {
        wait(&mut w, slot, nr::CLOCK_NANOSLEEP, [1, 1, TIMESPEC, 0, 0, 0]);
    }
    let awake = ready(&w);
    w.m.now = 1000;
    let mut turns = 0;
    while ready(&w) < awake + THREADS {
        let before = ready(&w);
        assert!(w.timer_once() || before + AT_ONCE >= awake + THREADS, "after {before}");
        assert!((1..=AT_ONCE).contains(&(ready(&w) - before)), "{}", ready(&w) - before);
        turns += 1;
    }
    assert!(turns >= THREADS / AT_ONCE);
}

#[test]
fn a_wake_up_of_all_waiters_stops_for_interrupts_and_tells_how_many_there_were() {
    let (mut w, mut threads) = program();
    let waker = threads.pop().expect("some");
    for &slot in &threads {
        wait(&mut w, slot, nr::FUTEX, [BUFFER, WAIT, 0, 0, 0, 0]);
    }
    start(&mut w, waker);
    let (result, preemptions) = preempted_call(&mut w, waker, [BUFFER, WAKE, ALL, 0, 0, 0]);
    assert_eq!(result, Ok(threads.len() as u64));
    assert!(preemptions >= threads.len() / AT_ONCE, "{preemptions}");
}

#[test]
fn a_requeue_stops_for_interrupts_and_compares_the_value_once() {
    for (operation, counted) in [(REQUEUE, 1), (CMP_REQUEUE, THREADS as u64 - 1)] {
        let (mut w, mut threads) = program();
        let waker = threads.pop().expect("some");
        for &slot in &threads {
            wait(&mut w, slot, nr::FUTEX, [BUFFER, WAIT, 0, 0, 0, 0]);
        }
        start(&mut w, waker);
        let space = w.space(waker);
        w.m.polls_until_interrupt = Some(1);
        assert_eq!(w.linux_call(waker, nr::FUTEX as u64, [BUFFER, operation, 1, ALL, SECOND, 0]), Next::Interrupts);
        w.m.poke(space, BUFFER, &[7]);
        let mut preemptions = 1;
        while w.next() == Next::Interrupts {
            preemptions += 1;
        }
        w.m.polls_until_interrupt = None;
        assert_eq!(w.result(waker), Ok(counted));
        assert!(preemptions >= threads.len() / AT_ONCE, "{preemptions}");
        let (result, _) = preempted_call(&mut w, waker, [SECOND, WAKE, ALL, 0, 0, 0]);
        assert_eq!(result, Ok(threads.len() as u64 - 1));
    }
}

#[test]
fn a_requeue_to_the_same_futex_moves_nobody_and_ends() {
    let (mut w, threads) = program();
    for &slot in &threads[..2] {
        wait(&mut w, slot, nr::FUTEX, [BUFFER, WAIT, 0, 0, 0, 0]);
    }
    start(&mut w, threads[2]);
    w.linux_call(threads[2], nr::FUTEX as u64, [BUFFER, CMP_REQUEUE, 0, ALL, BUFFER, 0]);
    assert_eq!(w.result(threads[2]), Ok(2));
    w.linux_call(threads[2], nr::FUTEX as u64, [BUFFER, WAKE, ALL, 0, 0, 0]);
    assert_eq!(w.result(threads[2]), Ok(2));
}

#[test]
fn strangers_in_the_bucket_are_walked_past_in_pieces() {
    let (mut w, mut threads) = program();
    let waker = threads.pop().expect("some");
    let (last, strangers) = threads.split_last().expect("some");
    for &slot in strangers {
        wait(&mut w, slot, nr::FUTEX, [BUFFER + 4096, SHARED_WAIT, 0, 0, 0, 0]);
    }
    wait(&mut w, *last, nr::FUTEX, [BUFFER, SHARED_WAIT, 0, 0, 0, 0]);
    start(&mut w, waker);
    let (result, preemptions) = preempted_call(&mut w, waker, [BUFFER, SHARED_WAKE, ALL, 0, 0, 0]);
    assert_eq!((result, w.node.thread(*last).is_ready()), (Ok(1), true));
    assert!(preemptions >= strangers.len() / 64, "{preemptions}");
}

#[test]
fn a_walk_goes_on_behind_a_waiter_that_has_left_meanwhile() {
    let (mut w, mut threads) = program();
    let waker = threads.pop().expect("some");
    for &slot in &threads {
        wait(&mut w, slot, nr::FUTEX, [BUFFER, WAIT, 0, 0, 0, 0]);
    }
    start(&mut w, waker);
    w.m.polls_until_interrupt = Some(1);
    assert_eq!(w.linux_call(waker, nr::FUTEX as u64, [BUFFER, WAKE, ALL, 0, 0, 0]), Next::Interrupts);
    // The end of its time slice lets rs run, which ends the waiter that would be next, and one behind it.
    w.m.now += 1 << 32;
    w.timer();
    let waiting: Vec<usize> = threads.iter().copied().filter(|&slot| !w.node.thread(slot).is_ready()).collect();
    for slot in [waiting[0], waiting[5]] {
        let endpoint = w.endpoint(slot).0 as u64;
        w.kernel_call(RS, KernelCall::Destroy, &[endpoint, 0]).expect("destroyed");
    }
    w.m.polls_until_interrupt = None;
    w.make_current(waker);
    assert_eq!(w.result(waker), Ok(threads.len() as u64 - 2));
    assert!(waiting.iter().all(|&slot| w.node.thread(slot).is_ready() || w.endpoint(slot).0 == 0));
}

#[test]
fn callers_of_a_service_that_dies_go_on_a_few_at_a_time() {
    for (keep, is_ready) in [(0, true), (1, false)] {
        let (mut w, threads) = program();
        let service = w.service(A);
        w.kernel_call(RS, KernelCall::Route, &[CALL as u64, A as u64]).expect("routed");
        for &slot in &threads {
            w.receive(A, Endpoint::ANY);
            wait(&mut w, slot, CALL, [0; 6]);
        }
        let mut before = ready(&w);
        let first = before;
        w.m.polls_until_interrupt = Some(1);
        let mut preemptions = 0;
        let mut next = w.begin_kernel_call(RS, KernelCall::Destroy, &[service.0 as u64, keep]);
        while next == Next::Interrupts {
            assert!(ready(&w) - before <= AT_ONCE, "{} at once", ready(&w) - before);
            before = ready(&w);
            preemptions += 1;
            next = w.next();
        }
        w.m.polls_until_interrupt = None;
        assert_eq!((next, w.result(RS)), (Next::Run(RS), Ok(0)), "nothing runs before all are released");
        assert!(preemptions >= THREADS / AT_ONCE, "{preemptions}");
        assert_eq!(ready(&w) - first, if is_ready { THREADS } else { 0 });
    }
}

#[test]
fn vm_is_written_anew_page_by_page_and_its_clients_ask_again_a_few_at_a_time() {
    let (mut w, threads) = program();
    w.receive(VM, Endpoint::ANY);
    for &slot in &threads {
        start(&mut w, slot);
        w.make_current(slot);
        w.node.page_fault(&mut w.m, 0x7000, 0);
        w.next();
        w.receive(VM, Endpoint::ANY);
    }
    w.m.polls_until_interrupt = Some(1);
    let vm = w.endpoint(VM).0 as u64;
    let mut preemptions = 0;
    let mut next = w.begin_kernel_call(RS, KernelCall::Destroy, &[vm, 1]);
    while next == Next::Interrupts {
        preemptions += 1;
        next = w.next();
    }
    w.m.polls_until_interrupt = None;
    assert!(preemptions >= THREADS / AT_ONCE, "{preemptions}");
    w.receive(VM, Endpoint::ANY);
    assert_eq!(w.message(VM).source.slot(), threads[0], "the requests that it held come again");
}

#[test]
fn the_futexes_of_a_thread_that_ends_are_handed_on_one_at_a_time() {
    const FUTEXES: usize = 100;
    const OWNER: u64 = 77;
    let (mut w, threads) = program();
    let owner = w.endpoint(threads[0]).0 as u64;
    w.kernel_call(RS, KernelCall::Start, &[owner, OWNER]).expect("started");
    let space = w.space(threads[0]);
    for (index, &slot) in threads[1..=FUTEXES].iter().enumerate() {
        let address = BUFFER + 4 * index as u64;
        w.m.poke(space, address, &(OWNER as u32).to_le_bytes());
        wait(&mut w, slot, nr::FUTEX, [address, LOCK_PI, 0, 0, 0, 0]);
    }
    let (before, mut preemptions) = (ready(&w), 0);
    w.m.polls_until_interrupt = Some(1);
    let mut next = w.begin_kernel_call(RS, KernelCall::Destroy, &[owner, 0]);
    while next == Next::Interrupts {
        preemptions += 1;
        next = w.next();
    }
    w.m.polls_until_interrupt = None;
    assert_eq!((w.result(RS), ready(&w)), (Ok(0), before - 1 + FUTEXES));
    assert!(preemptions >= FUTEXES, "{preemptions}");
}

#[test]
fn long_information_and_long_text_stop_for_interrupts() {
    let mut w = World::with_services();
    w.m.command_line = (0..5000).map(|byte| byte as u8 | 1).collect();
    let space = w.space(A);
    w.m.poke(space, BUFFER, &[b'x'; 1000]);
    for (call, words, told) in [
        (KernelCall::Diag, [BUFFER, 1000, 0, 0], 1000),
        (KernelCall::GetInfo, [info::COMMAND_LINE, 0, BUFFER, 4000], 4000),
    ] {
        let mut preemptions = 0;
        w.m.polls_until_interrupt = Some(1);
        let mut next = w.begin_kernel_call(A, call, &words);
        while next == Next::Interrupts {
            preemptions += 1;
            next = w.next();
        }
        w.m.polls_until_interrupt = None;
        assert_eq!(w.result(A), Ok(told));
        assert!(preemptions >= 7, "{call:?}: {preemptions}");
    }
    assert_eq!(w.m.console, [b'x'; 1000]);
    assert_eq!(w.m.peek(space, BUFFER, 4000), w.m.command_line[..4000]);
}

#[test]
fn a_search_for_a_free_slot_stops_for_interrupts() {
    let (mut w, threads) = program();
    let parent = w.endpoint(threads[0]).0 as u64;
    while w.kernel_call(RS, KernelCall::Fork, &[parent]).is_ok() {}
    let mut preemptions = 0;
    w.m.polls_until_interrupt = Some(1);
    let mut next = w.begin_kernel_call(RS, KernelCall::Fork, &[parent]);
    while next == Next::Interrupts {
        preemptions += 1;
        next = w.next();
    }
    w.m.polls_until_interrupt = None;
    assert_eq!(w.result(RS), Err(Errno::EAGAIN));
    assert!(preemptions >= 7, "{preemptions}");
}

#[test]
fn sunk_threads_are_raised_a_few_at_a_time_and_all_in_the_end() {
    let (mut w, threads) = program();
    let rs = w.endpoint(RS).0 as u64;
    w.kernel_call(RS, KernelCall::Schedule, &[rs, 0, 0]).expect("better than all threads");
    for &slot in &threads {
        start(&mut w, slot);
    }
    w.receive(RS, Endpoint::ANY);
    let mut runs = vec![0; SLOTS];
    for _ in 0..3 * THREADS {
        w.m.now += 10_000_000;
        w.timer();
        if let Next::Run(slot) = w.next() {
            runs[slot] += 1;
        }
    }
    assert!(threads.iter().all(|&slot| runs[slot] > 0), "everybody has run");
    w.m.now += 1 << 32;
    let mut turns = 1;
    while w.timer_once() {
        turns += 1;
    }
    assert!((SLOTS / 64..=SLOTS).contains(&turns), "{turns} turns");
}
