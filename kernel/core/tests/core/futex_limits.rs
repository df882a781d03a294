//! Futexes: how many are woken and moved, in which order, and what is left of those with inheritance.

use abi::{
    Endpoint, Errno,
    call::{self, KernelCall, NO_QUANTUM, REAL_TIME},
    linux::nr,
    message::REPLY,
};

use crate::world::{BUFFER, PM, RS, World};

const WAIT: u64 = 128;
const WAKE: u64 = 129;
const REQUEUE: u64 = 128 + 3;
const CMP_REQUEUE: u64 = 128 + 4;
const LOCK: u64 = 128 + 6;
const UNLOCK: u64 = 128 + 7;
const TRYLOCK: u64 = 128 + 8;
const WAIT_REQUEUE: u64 = 128 + 11;
const LOCK2: u64 = 128 + 13;
const REALTIME: u64 = 256;
const SHARED_WAIT: u64 = 0;
const SECOND: u64 = BUFFER + 16;
const MUTEX: u64 = BUFFER + 512;
const TIMESPEC: u64 = BUFFER + 64;
const WAITERS: u32 = 1 << 31;
const OWNER_DIED: u32 = 1 << 30;

/// Threads of one program, with the Linux ids 1, 2, 3 and so on.
fn program<const N: usize>() -> (World, [usize; N]) {
    let mut w = World::with_services();
    w.service(PM);
    w.kernel_call(RS, KernelCall::Route, &[nr::FUTEX as u64, 0]).expect("routed");
    let threads = [(); N].map(|()| w.application());
    let space = w.space(threads[0].slot()) as u64;
    for (index, thread) in threads.into_iter().enumerate() {
        w.kernel_call(RS, KernelCall::SpaceSet, &[thread.0 as u64, space]).expect("shared");
        w.kernel_call(RS, KernelCall::Start, &[thread.0 as u64, index as u64 + 1]).expect("named");
    }
    (w, threads.map(Endpoint::slot))
}

/// `futex (address, operation, value, timespec or second value, second address, third value)`.
fn futex(w: &mut World, slot: usize, words: [u64; 6]) -> Result<u64, Errno> {
    w.linux_call(slot, nr::FUTEX as u64, words);
    w.result(slot)
}

fn wait(w: &mut World, slot: usize, address: u64) {
    w.linux_call(slot, nr::FUTEX as u64, [address, WAIT, 0, 0, 0, 0]);
    assert!(!w.is_ready(slot));
}

fn wake(w: &mut World, slot: usize, address: u64, count: i32) -> Result<u64, Errno> {
    futex(w, slot, [address, WAKE, count as u32 as u64, 0, 0, 0])
}

fn set_word(w: &mut World, slot: usize, value: u32) {
    let space = w.space(slot);
    w.m.poke(space, MUTEX, &value.to_le_bytes());
}

fn word(w: &mut World, slot: usize) -> u32 {
    let space = w.space(slot);
    u32::from_le_bytes(w.m.peek(space, MUTEX, 4).try_into().expect("four"))
}

#[test]
fn so_many_waiters_are_woken_as_are_asked_for_the_first_ones_first() {
    for (count, woken) in [(0, 1), (-1, 1), (1, 1), (2, 2), (3, 3), (i32::MAX, 3)] {
        let (mut w, [one, two, three, waker]) = program();
        for slot in [two, one, three] {
            wait(&mut w, slot, BUFFER);
        }
        assert_eq!(wake(&mut w, waker, BUFFER, count), Ok(woken), "{count}");
        let ready = [two, one, three].map(|slot| w.is_ready(slot));
        assert_eq!(ready, [woken >= 1, woken >= 2, woken >= 3], "{count}");
    }
}

#[test]
fn real_time_waiters_are_woken_by_priority_before_the_others() {
    let (mut w, [one, two, three, four, waker]) = program();
    for (slot, queue) in [(two, REAL_TIME + 20), (three, REAL_TIME + 10), (four, REAL_TIME + 20)] {
        let endpoint = w.endpoint(slot).0 as u64;
        w.kernel_call(RS, KernelCall::Stop, &[endpoint]).expect("stopped");
        w.kernel_call(RS, KernelCall::Schedule, &[endpoint, queue, NO_QUANTUM]).expect("scheduled");
    }
    wait(&mut w, one, BUFFER);
    for (slot, id) in [(two, 2), (three, 3), (four, 4)] {
        let endpoint = w.endpoint(slot).0 as u64;
        w.kernel_call(RS, KernelCall::Start, &[endpoint, id]).expect("started");
        wait(&mut w, slot, BUFFER);
    }
    for expected in [three, two, four, one] {
        assert_eq!(wake(&mut w, waker, BUFFER, 1), Ok(1));
        assert!(w.is_ready(expected));
        if expected != one {
            wait(&mut w, expected, BUFFER + 4);
        }
    }
}

/// Buckets are shared by addresses 1 KiB apart.
#[test]
fn futexes_of_one_bucket_are_kept_apart() {
    let (mut w, [one, two, three, waker]) = program();
    for (slot, address) in [(one, BUFFER), (two, BUFFER + 1024), (three, BUFFER + 4)] {
        wait(&mut w, slot, address);
    }
    assert_eq!(wake(&mut w, waker, BUFFER + 2048, 9), Ok(0));
    assert_eq!(wake(&mut w, waker, BUFFER + 1024, 9), Ok(1));
    assert_eq!([one, two, three].map(|slot| w.is_ready(slot)), [false, true, false]);
    assert_eq!((wake(&mut w, waker, BUFFER + 4, 9), wake(&mut w, waker, BUFFER, 9)), (Ok(1), Ok(1)));
}

#[test]
fn requeue_wakes_and_moves_within_its_limits() {
    // Woken, limit, result of each call, who waits at the second futex then.
    let cases = [(0, 0, 0, 0, 0), (1, 0, 1, 1, 0), (0, 1, 0, 1, 1), (1, 1, 1, 2, 1), (2, 5, 2, 3, 1), (5, 5, 3, 3, 0)];
    for (count, limit, plain, compared, moved) in cases {
        for (operation, expected) in [(REQUEUE, plain), (CMP_REQUEUE, compared)] {
            let (mut w, [one, two, three, waker]) = program();
            for slot in [one, two, three] {
                wait(&mut w, slot, BUFFER);
            }
            let words = [BUFFER, operation, count, limit, SECOND, 0];
            assert_eq!(futex(&mut w, waker, words), Ok(expected), "{operation} {count} {limit}");
            assert_eq!(wake(&mut w, waker, SECOND, 9), Ok(moved), "{operation} {count} {limit}");
            assert_eq!(wake(&mut w, waker, BUFFER, 9), Ok(3 - moved - count.min(3)));
        }
    }
}

#[test]
fn a_waiter_is_woken_in_the_name_of_the_thread_whose_memory_it_is() {
    let (mut w, [one, two, other]) = program();
    let (program, stranger) = (w.endpoint(two).0 as u64, w.application());
    for slot in [one, other] {
        w.linux_call(slot, nr::FUTEX as u64, [BUFFER, SHARED_WAIT, 0, 0, 0, 0]);
    }
    let wake_in = |w: &mut World, endpoint: u64, address: u64, count: u64| {
        w.kernel_call(RS, KernelCall::FutexWake, &[endpoint, address, count])
    };
    assert_eq!(wake_in(&mut w, stranger.0 as u64, BUFFER, 9), Ok(0), "another program's memory");
    assert_eq!(wake_in(&mut w, program, BUFFER + 4, 9), Ok(0));
    assert_eq!(wake_in(&mut w, program, BUFFER + 2, 9), Err(Errno::EINVAL));
    assert_eq!(wake_in(&mut w, program + (1 << 12), BUFFER, 9), Err(Errno::EDEADSRCDST));
    assert_eq!(wake_in(&mut w, program, BUFFER, 1), Ok(1));
    assert_eq!([one, other].map(|slot| w.is_ready(slot)), [true, false]);
    assert_eq!(w.result(one), Ok(0));
}

#[test]
fn a_free_lock_is_taken_without_the_kernel_s_memory_of_it() {
    let (mut w, [one, two]) = program();
    for operation in [LOCK, TRYLOCK, LOCK2] {
        set_word(&mut w, one, 0);
        assert_eq!(futex(&mut w, two, [MUTEX, operation, 0, 0, 0, 0]), Ok(0));
        assert_eq!(word(&mut w, one), 2, "its id");
        assert_eq!(futex(&mut w, two, [MUTEX, operation, 0, 0, 0, 0]), Err(Errno::EDEADLK));
        assert_eq!(futex(&mut w, one, [MUTEX, UNLOCK, 0, 0, 0, 0]), Err(Errno::EPERM), "not its own");
        assert_eq!(futex(&mut w, two, [MUTEX, UNLOCK, 0, 0, 0, 0]), Ok(0));
        assert_eq!(word(&mut w, one), 0);
        set_word(&mut w, one, OWNER_DIED);
        assert_eq!(futex(&mut w, two, [MUTEX, operation, 0, 0, 0, 0]), Ok(0));
        assert_eq!(word(&mut w, one), OWNER_DIED | 2);
    }
    assert_eq!(futex(&mut w, one, [BUFFER, WAIT_REQUEUE, 0, 0, BUFFER, 0]), Err(Errno::EINVAL), "one futex twice");
}

/// The first thread holds the lock and the second waits for it.
fn contend(w: &mut World, [one, two]: [usize; 2], operation: u64, limit: u64) {
    set_word(w, one, 1);
    w.linux_call(two, nr::FUTEX as u64, [MUTEX, operation, 0, limit, 0, 0]);
    assert!(!w.is_ready(two));
    assert_eq!(word(w, one), 1 | WAITERS);
}

/// There are fewer mutexes than rounds: one that is not given back would be missed.
#[test]
fn however_a_wait_for_a_lock_ends_nothing_is_left_of_it() {
    const ROUNDS: usize = 150;
    type End = fn(&mut World, [usize; 2]);
    let ends: [(&str, End); 3] = [
        ("unlocked", |w, [one, two]| {
            assert_eq!(futex(w, one, [MUTEX, UNLOCK, 0, 0, 0, 0]), Ok(0));
            assert_eq!((w.result(two), word(w, one)), (Ok(0), 2 | WAITERS));
            assert_eq!(futex(w, two, [MUTEX, UNLOCK, 0, 0, 0, 0]), Ok(0));
            assert_eq!(word(w, one), 0);
        }),
        ("too late", |w, [_, two]| {
            w.m.now += 100;
            w.node.timer(&mut w.m);
            assert_eq!(w.result(two), Err(Errno::ETIMEDOUT));
        }),
        ("interrupted", |w, [_, two]| {
            let endpoint = w.endpoint(two);
            w.node.frame_mut(two).rip = 0x1000;
            w.kernel_call(RS, KernelCall::Interrupt, &[endpoint.0 as u64]).expect("interrupted");
            assert!(!w.is_ready(two), "pm has the say");
            assert_eq!(w.node.frame_mut(two).rip, 0x1000 - 2, "it makes its call again");
            w.primitive(PM, call::REPLYREC, endpoint, REPLY, 0);
            assert!(w.is_ready(two));
        }),
    ];
    for (name, end) in ends {
        let (mut w, threads) = program();
        w.receive(PM, Endpoint::ANY);
        let space = w.space(threads[0]);
        for round in 0..ROUNDS {
            let deadline = w.m.now + 100;
            w.m.poke(space, TIMESPEC, &[0u64.to_le_bytes(), deadline.to_le_bytes()].concat());
            contend(&mut w, threads, if round % 2 == 0 { LOCK } else { LOCK2 }, TIMESPEC);
            end(&mut w, threads);
            assert!(threads.iter().all(|&slot| w.is_ready(slot)), "{name} {round}");
        }
    }
}

#[test]
fn a_lock_s_limit_is_real_time_by_the_old_call_and_of_either_clock_by_the_new() {
    const OFFSET: u64 = 1000;
    for (operation, written) in [(LOCK, OFFSET + 50), (LOCK2, 50), (LOCK2 | REALTIME, OFFSET + 50)] {
        let (mut w, threads) = program();
        w.kernel_call(RS, KernelCall::SetTime, &[OFFSET]).expect("set");
        let space = w.space(threads[0]);
        w.m.poke(space, TIMESPEC, &[0u64.to_le_bytes(), written.to_le_bytes()].concat());
        contend(&mut w, threads, operation, TIMESPEC);
        for (now, ready) in [(49, false), (50, true)] {
            w.m.now = now;
            w.node.timer(&mut w.m);
            assert_eq!(w.is_ready(threads[1]), ready, "{operation} {now}");
        }
    }
}

#[test]
fn who_ends_while_it_waits_for_a_lock_is_passed_over() {
    let (mut w, [one, two, three]) = program();
    contend(&mut w, [one, two], LOCK, 0);
    w.linux_call(three, nr::FUTEX as u64, [MUTEX, LOCK, 0, 0, 0, 0]);
    let dead = w.endpoint(two).0 as u64;
    w.kernel_call(RS, KernelCall::Destroy, &[dead, 0]).expect("destroyed");
    assert_eq!(futex(&mut w, one, [MUTEX, UNLOCK, 0, 0, 0, 0]), Ok(0));
    assert!(w.is_ready(three));
    assert_eq!((w.result(three), word(&mut w, one)), (Ok(0), 3 | WAITERS));
}
