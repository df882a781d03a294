//! Linux calls about time that the kernel answers itself, those that it hands to pm, and time limits of futexes.

use abi::{
    Endpoint, Errno, call,
    call::KernelCall,
    layout::USER_END,
    linux::nr,
    message::{REPEATED, REPLY},
};

use crate::world::{BUFFER, PM, RS, World};

const REAL_OFFSET_NS: u64 = 1_000_000_000_000;
const SECOND_NS: u64 = 1_000_000_000;
const TIMESPEC: u64 = BUFFER + 128;
const ABSOLUTE: u64 = 1;
const WAIT: u64 = 128;
const WAIT_BITSET: u64 = 128 + 9;
const REALTIME: u64 = 256;
const ANY_BITS: u64 = u32::MAX as u64;

/// A program, pm, which waits, and a real time that runs ahead of the monotonic one.
fn world() -> (World, usize) {
    let mut w = World::with_services();
    w.service(PM);
    for number in [nr::CLOCK_GETTIME, nr::CLOCK_NANOSLEEP, nr::FUTEX] {
        w.kernel_call(RS, KernelCall::Route, &[number as u64, 0]).expect("routed");
    }
    w.kernel_call(RS, KernelCall::SetTime, &[REAL_OFFSET_NS]).expect("set");
    let slot = w.application().slot();
    w.receive(PM, Endpoint::ANY);
    (w, slot)
}

fn set_timespec(w: &mut World, slot: usize, seconds: u64, nanoseconds: u64) {
    let space = w.space(slot);
    w.m.poke(space, TIMESPEC, &[seconds.to_le_bytes(), nanoseconds.to_le_bytes()].concat());
}

fn timespec(w: &mut World, slot: usize) -> (u64, u64) {
    let space = w.space(slot);
    let bytes = w.m.peek(space, TIMESPEC, 16);
    let half = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight"));
    (half(0), half(8))
}

fn call(w: &mut World, slot: usize, number: u32, words: [u64; 3]) -> Result<u64, Errno> {
    w.linux_call(slot, number as u64, [words[0], words[1], words[2], 0, 0, 0]);
    w.result(slot)
}

/// Lets the clock say this, and the timer come.
fn at(w: &mut World, now_ns: u64) {
    w.m.now = now_ns;
    w.timer();
}

#[test]
fn clocks_are_real_or_monotonic() {
    let (mut w, slot) = world();
    w.m.now = 3 * SECOND_NS + 7;
    let monotonic = (3, 7);
    let real = (1003, 7);
    for (clock, expected) in [(0, real), (5, real), (1, monotonic), (4, monotonic), (6, monotonic), (7, monotonic)] {
        set_timespec(&mut w, slot, 99, 99);
        assert_eq!(call(&mut w, slot, nr::CLOCK_GETTIME, [clock | 1 << 32, TIMESPEC, 0]), Ok(0));
        assert_eq!(timespec(&mut w, slot), expected, "clock {clock}: the upper half of its number does not count");
    }
    assert_eq!(call(&mut w, slot, nr::CLOCK_GETTIME, [1, USER_END - 8, 0]), Err(Errno::EFAULT));
}

#[test]
fn other_clocks_are_pms() {
    for clock in [2, 3, 8, 11, u32::MAX as u64] {
        for (number, words) in [
            (nr::CLOCK_GETTIME, [clock, TIMESPEC, 5]),
            (nr::CLOCK_NANOSLEEP, [clock, ABSOLUTE, TIMESPEC]),
            (nr::CLOCK_NANOSLEEP, [1, 0, TIMESPEC]),
            (nr::CLOCK_NANOSLEEP, [0, 2, TIMESPEC]),
        ] {
            let (mut w, slot) = world();
            set_timespec(&mut w, slot, 5, 0);
            w.linux_call(slot, number as u64, [words[0], words[1], words[2], 0, 0, 0]);
            assert!(!w.is_ready(slot));
            let message = w.message(PM);
            assert_eq!((message.source, message.label), (w.endpoint(slot), number));
            assert_eq!((&message.words[..3], message.words[6] & REPEATED), (&words[..], 0));
            let program = w.endpoint(slot);
            w.primitive(PM, call::REPLYREC, program, number | REPLY, 77);
            assert_eq!(w.result(slot), Ok(77));
        }
    }
}

#[test]
fn a_sleep_lasts_until_its_clock_says_so() {
    for (clock, now, deadline) in [(1, 2, (4, 5)), (7, 2, (4, 5)), (0, 2, (1004, 5))] {
        let (mut w, slot) = world();
        at(&mut w, now);
        set_timespec(&mut w, slot, deadline.0, deadline.1);
        w.linux_call(slot, nr::CLOCK_NANOSLEEP as u64, [clock, ABSOLUTE, TIMESPEC, 0, 0, 0]);
        assert!(!w.is_ready(slot));
        at(&mut w, 4 * SECOND_NS + 4);
        assert!(!w.is_ready(slot));
        at(&mut w, 4 * SECOND_NS + 5);
        assert!(w.is_ready(slot));
        assert_eq!(w.result(slot), Ok(0), "clock {clock}");
    }
}

#[test]
fn a_sleep_until_a_time_that_has_passed_ends_at_once() {
    let (mut w, slot) = world();
    at(&mut w, 2 * SECOND_NS);
    for (clock, seconds, nanoseconds) in [(1, 2, 0), (1, 1, 999_999_999), (0, 1002, 0), (0, 5, 0), (1, 0, 0)] {
        set_timespec(&mut w, slot, seconds, nanoseconds);
        assert_eq!(call(&mut w, slot, nr::CLOCK_NANOSLEEP, [clock, ABSOLUTE, TIMESPEC]), Ok(0));
        assert!(w.is_ready(slot));
    }
    for (seconds, nanoseconds) in [(0, SECOND_NS), (0, u64::MAX), (1 << 63, 0), (u64::MAX, 0)] {
        set_timespec(&mut w, slot, seconds, nanoseconds);
        let result = call(&mut w, slot, nr::CLOCK_NANOSLEEP, [1, ABSOLUTE, TIMESPEC]);
        assert_eq!(result, Err(Errno::EINVAL), "{seconds} {nanoseconds}");
    }
    assert_eq!(call(&mut w, slot, nr::CLOCK_NANOSLEEP, [1, ABSOLUTE, 0]), Err(Errno::EFAULT));
    set_timespec(&mut w, slot, i64::MAX as u64, SECOND_NS - 1);
    w.linux_call(slot, nr::CLOCK_NANOSLEEP as u64, [1, ABSOLUTE, TIMESPEC, 0, 0, 0]);
    assert!(!w.is_ready(slot), "the longest sleep");
}

#[test]
fn a_signal_ends_a_sleep() {
    let (mut w, slot) = world();
    set_timespec(&mut w, slot, 4, 0);
    w.linux_call(slot, nr::CLOCK_NANOSLEEP as u64, [1, ABSOLUTE, TIMESPEC, 0, 0, 0]);
    let program = w.endpoint(slot);
    w.kernel_call(RS, KernelCall::Interrupt, &[program.0 as u64]).expect("interrupted");
    w.next();
    assert_eq!(w.result(slot), Err(Errno::ERESTARTSYS));
    w.primitive(PM, call::REPLYREC, program, REPLY, 0);
    assert!(w.is_ready(slot));
    w.scrub(slot);
    at(&mut w, 5 * SECOND_NS);
    assert_eq!(w.node.frame_mut(slot).rax, 0xdead, "the deadline is gone");
}

#[test]
fn limits_of_futexes_are_spans_or_times_of_a_clock() {
    let end = 2 * SECOND_NS + 9;
    for (operation, seconds, deadline) in
        [(WAIT, 2, 50 + end), (WAIT_BITSET, 2, end), (WAIT_BITSET | REALTIME, 1002, end)]
    {
        let (mut w, slot) = world();
        at(&mut w, 50);
        set_timespec(&mut w, slot, seconds, 9);
        w.linux_call(slot, nr::FUTEX as u64, [BUFFER, operation, 0, TIMESPEC, 0, ANY_BITS]);
        assert!(!w.is_ready(slot));
        at(&mut w, deadline - 1);
        assert!(!w.is_ready(slot), "{operation}");
        at(&mut w, deadline);
        assert_eq!(w.result(slot), Err(Errno::ETIMEDOUT), "{operation}");
    }
}

#[test]
fn a_futex_without_a_limit_is_waited_for_without_one() {
    let (mut w, slot) = world();
    w.m.armed = None;
    w.linux_call(slot, nr::FUTEX as u64, [BUFFER, WAIT, 0, 0, 0, 0]);
    assert!(!w.is_ready(slot));
    assert_eq!(w.m.armed, None);
}
