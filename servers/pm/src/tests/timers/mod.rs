//! Interval timers, POSIX timers (`posix`), and limits of processor time.

mod posix;

use super::{Answer, DONE, MEMORY, SECOND, World, failed};
use abi::linux::nr;
use abi::{Endpoint, Errno};

const BUFFER: u64 = MEMORY.start + 0x100;
const OLD: u64 = BUFFER + 0x80;
const REAL: u64 = 0;
const VIRTUAL: u64 = 1;
const PROF: u64 = 2;
const KILL: u64 = 9;
const USR1: u64 = 10;
const ALRM: u64 = 14;
const XCPU: u64 = 24;
const VTALRM: u64 = 26;
const SIGPROF: u64 = 27;
const REAL_TIME: u64 = 40;
const CLONE_THREAD: u64 = 0x100 | 0x800 | 0x1_0000;
const HANDLER: u64 = 0xaaaa;
const SI_TIMER: u64 = -2i32 as u32 as u64;

fn child() -> (World, Endpoint) {
    let mut world = World::new();
    world.pm.programs.system.real_offset_ns = 1000 * SECOND;
    world.set_time(10 * SECOND);
    let (_, child) = world.fork(world.init);
    (world, child)
}

fn alarm(world: &World) -> Option<u64> {
    world.pm.programs.system.alarm
}

/// Blocks all signals, so that they stay pending.
fn block_all(world: &mut World, thread: Endpoint) {
    world.write(thread, BUFFER, &[u64::MAX]);
    assert_eq!(world.call(thread, nr::RT_SIGPROCMASK, &[2, BUFFER, 0, 8]), DONE);
}

fn pending(world: &mut World, thread: Endpoint) -> u64 {
    assert_eq!(world.call(thread, nr::RT_SIGPENDING, &[BUFFER, 8]), DONE);
    world.read(thread, BUFFER)
}

/// Takes a pending signal. Returns signal, errno and code, and the words of the union.
fn take(world: &mut World, thread: Endpoint, signal: u64) -> [u64; 4] {
    world.write(thread, BUFFER, &[1 << (signal - 1)]);
    assert_eq!(world.call(thread, nr::RT_SIGTIMEDWAIT, &[BUFFER, OLD, 0, 8]), Some(Ok(signal)));
    world.words(thread, OLD)
}

/// Sets an interval timer: period, then rest, each as seconds and microseconds.
fn set(world: &mut World, thread: Endpoint, which: u64, value: [u64; 4]) -> Answer {
    world.write(thread, BUFFER, &value);
    world.write(thread, OLD, &[9; 5]);
    world.call(thread, nr::SETITIMER, &[which, BUFFER, OLD])
}

fn get(world: &mut World, thread: Endpoint, which: u64) -> [u64; 4] {
    assert_eq!(world.call(thread, nr::GETITIMER, &[which, BUFFER]), DONE);
    world.words(thread, BUFFER)
}

#[test]
fn an_interval_timer_shows_what_is_left_and_its_period() {
    let (mut world, child) = child();
    block_all(&mut world, child);
    assert_eq!(set(&mut world, child, REAL, [1, 250_000, 2, 500_000]), DONE);
    assert_eq!(world.words(child, OLD), [0, 0, 0, 0, 9]);
    assert_eq!(alarm(&world), Some(12 * SECOND + SECOND / 2));
    world.set_time(11 * SECOND);
    assert_eq!(get(&mut world, child, REAL), [1, 250_000, 1, 500_000]);
    world.set_time(12 * SECOND + SECOND / 2);
    assert_eq!((get(&mut world, child, REAL), alarm(&world)), ([1, 250_000, 0, 0], None), "until it is taken");
    assert_eq!(take(&mut world, child, ALRM), [ALRM, 0x80, 0, 0]);
    assert_eq!(alarm(&world), Some(13 * SECOND + 3 * SECOND / 4));
    world.set_time(13 * SECOND + 3 * SECOND / 4);
    world.set_time(17 * SECOND + SECOND / 2);
    assert_eq!(take(&mut world, child, ALRM), [ALRM, 0x80, 0, 0]);
    assert_eq!(alarm(&world), Some(18 * SECOND + 3 * SECOND / 4), "missed expiries are one");
    assert_eq!(set(&mut world, child, REAL, [0, 0, 3, 0]), DONE);
    assert_eq!(world.words(child, OLD), [1, 250_000, 1, 250_000, 9], "the old value");
    assert_eq!(alarm(&world), Some(20 * SECOND + SECOND / 2));
    world.set_time(21 * SECOND);
    assert_eq!(get(&mut world, child, REAL), [0; 4], "once");
    assert_eq!(alarm(&world), None);
}

#[test]
fn a_timer_that_runs_never_shows_zero() {
    let (mut world, child) = child();
    set(&mut world, child, REAL, [0, 0, 1, 0]);
    world.pm.programs.system.now_ns = 11 * SECOND - 1;
    assert_eq!(get(&mut world, child, REAL), [0, 0, 0, 1]);
    world.pm.programs.system.now_ns = 12 * SECOND;
    assert_eq!(get(&mut world, child, REAL), [0, 0, 0, 1]);
    world.pm.programs.system.now_ns = 11 * SECOND - 2000;
    assert_eq!(get(&mut world, child, REAL), [0, 0, 0, 2]);
    assert_eq!(world.call(child, nr::ALARM, &[0]), Some(Ok(1)));
}

#[test]
fn a_timer_without_a_rest_is_off() {
    let (mut world, child) = child();
    for value in [Some([5, 0, 0, 0]), None] {
        set(&mut world, child, REAL, [0, 0, 1, 0]);
        match value {
            Some(value) => assert_eq!(set(&mut world, child, REAL, value), DONE),
            None => assert_eq!(world.call(child, nr::SETITIMER, &[REAL, 0, 0]), DONE, "without a value"),
        }
        assert_eq!(alarm(&world), None);
        assert_eq!(get(&mut world, child, REAL), value.unwrap_or([0; 4]));
    }
}

#[test]
fn interval_timers_have_three_numbers_and_times_in_range() {
    let (mut world, child) = child();
    assert_eq!(set(&mut world, child, 3, [0; 4]), failed(Errno::EINVAL));
    assert_eq!(world.call(child, nr::GETITIMER, &[3, BUFFER]), failed(Errno::EINVAL));
    for value in [[0, 1_000_000, 0, 0], [u64::MAX, 0, 0, 0], [0, 0, 0, 1_000_000], [0, 0, u64::MAX, 0]] {
        assert_eq!(set(&mut world, child, REAL, value), failed(Errno::EINVAL), "{value:?}");
    }
    for places in [[8, 0], [0, 8]] {
        assert_eq!(world.call(child, nr::SETITIMER, &[REAL, places[0], places[1]]), failed(Errno::EFAULT));
    }
    assert_eq!(world.call(child, nr::GETITIMER, &[REAL, 8]), failed(Errno::EFAULT));
    assert_eq!(set(&mut world, child, REAL, [0, 0, 1 << 62, 0]), DONE);
    assert_eq!(alarm(&world), Some(u64::MAX), "the end of time");
}

#[test]
fn alarm_rounds_what_was_left_and_keeps_no_period() {
    let (mut world, child) = child();
    for (rest, told) in [([2, 499_999], 2), ([2, 500_000], 3), ([0, 1], 1), ([0, 499_999], 1), ([1, 499_999], 1)] {
        set(&mut world, child, REAL, [7, 0, rest[0], rest[1]]);
        assert_eq!(world.call(child, nr::ALARM, &[1 << 32 | 5]), Some(Ok(told)), "{rest:?}");
        assert_eq!(get(&mut world, child, REAL), [0, 0, 5, 0]);
        assert_eq!(alarm(&world), Some(15 * SECOND));
    }
    block_all(&mut world, child);
    world.set_time(15 * SECOND);
    assert_eq!(alarm(&world), None);
    assert_eq!(world.call(child, nr::ALARM, &[5]), DONE);
    assert_eq!(world.call(child, nr::ALARM, &[0]), Some(Ok(5)));
    assert_eq!(alarm(&world), None);
    assert_eq!(world.call(child, nr::ALARM, &[0]), DONE);
}

#[test]
fn a_child_has_no_timers_and_a_process_that_ends_leaves_none() {
    let (mut world, parent) = child();
    set(&mut world, parent, REAL, [0, 0, 5, 0]);
    set(&mut world, parent, VIRTUAL, [0, 0, 3, 0]);
    world.call(parent, nr::TIMER_CREATE, &[1, 0, BUFFER]);
    posix::set_posix(&mut world, parent, 0, 0, [0, 0, 1, 0]);
    let (_, child) = world.fork(parent);
    assert_eq!(get(&mut world, child, REAL), [0; 4]);
    assert_eq!(get(&mut world, child, VIRTUAL), [0; 4]);
    assert_eq!(world.call(child, nr::TIMER_GETTIME, &[0, BUFFER]), failed(Errno::EINVAL));
    assert_eq!(alarm(&world), Some(11 * SECOND));
    world.call(parent, nr::EXIT_GROUP, &[0]);
    assert_eq!(alarm(&world), None);
}

#[test]
fn timers_of_processor_time_run_with_the_process() {
    for (which, signal) in [(VIRTUAL, VTALRM), (PROF, SIGPROF)] {
        let (mut world, child) = child();
        world.thread(child).run_ns = 100 * SECOND;
        block_all(&mut world, child);
        assert_eq!(set(&mut world, child, which, [2, 0, 4, 0]), DONE);
        assert_eq!(alarm(&world), Some(14 * SECOND), "not sooner than if it ran all the time");
        world.thread(child).run_ns = 101 * SECOND;
        assert_eq!(get(&mut world, child, which), [2, 0, 3, 0]);
        world.set_time(14 * SECOND);
        assert_eq!(pending(&mut world, child), 0);
        assert_eq!(alarm(&world), Some(17 * SECOND));
        world.thread(child).run_ns = 104 * SECOND;
        world.set_time(17 * SECOND);
        assert_eq!(take(&mut world, child, signal), [signal, 0x80, 0, 0]);
        assert_eq!(get(&mut world, child, which), [2, 0, 2, 0], "the period begins");
        assert_eq!(alarm(&world), Some(19 * SECOND));
        world.thread(child).run_ns = 106 * SECOND - 1;
        world.set_time(19 * SECOND);
        assert_eq!(pending(&mut world, child), 0);
        assert_eq!(alarm(&world), Some(19 * SECOND + 1_000_000), "at most every millisecond");
        assert_eq!(set(&mut world, child, which, [0; 4]), DONE);
        assert_eq!(alarm(&world), None);
    }
}

#[test]
fn the_time_of_all_threads_counts_those_that_have_ended_too() {
    let (mut world, child) = child();
    let thread = |world: &mut World, run_ns: u64| {
        world.call(child, nr::CLONE, &[CLONE_THREAD, 0, 0, 0, 0]).unwrap().unwrap();
        let thread = world.newest();
        world.thread(thread).run_ns = run_ns;
        thread
    };
    let ended = thread(&mut world, 10 * SECOND);
    world.call(ended, nr::EXIT, &[0]);
    thread(&mut world, 200 * SECOND);
    world.thread(child).run_ns = 3000 * SECOND + 5_000;
    for (clock, time) in [(2, [3210, 5_000]), (3, [3000, 5_000])] {
        assert_eq!(world.call(child, nr::CLOCK_GETTIME, &[clock, BUFFER]), DONE);
        assert_eq!(world.words(child, BUFFER), time);
    }
    for (who, time) in [(0, [3210, 5]), (1, [3000, 5]), (u64::MAX, [0, 0])] {
        assert_eq!(world.call(child, nr::GETRUSAGE, &[who, BUFFER]), DONE);
        assert_eq!(world.words(child, BUFFER), time);
    }
    assert_eq!(world.call(child, nr::GETRUSAGE, &[2, BUFFER]), failed(Errno::EINVAL));
    assert_eq!(world.call(child, nr::GETRUSAGE, &[0, 8]), failed(Errno::EFAULT));
}

fn limit_processor_time(world: &mut World, thread: Endpoint, limit: [u64; 2]) {
    world.write(thread, BUFFER, &limit);
    assert_eq!(world.call(thread, nr::SETRLIMIT, &[0, BUFFER]), DONE);
}

#[test]
fn from_the_soft_limit_on_each_second_is_told_and_the_hard_one_kills() {
    let (mut world, child) = child();
    block_all(&mut world, child);
    limit_processor_time(&mut world, child, [2, 4]);
    assert_eq!(alarm(&world), Some(12 * SECOND));
    world.thread(child).run_ns = 2 * SECOND - 1;
    world.set_time(12 * SECOND);
    assert_eq!(pending(&mut world, child), 0);
    for run_s in [2, 3] {
        world.thread(child).run_ns = run_s * SECOND;
        world.set_time(20 * SECOND + run_s * 5 * SECOND);
        assert_eq!(take(&mut world, child, XCPU), [XCPU, 0x80, 0, 0], "{run_s}");
        assert_eq!(alarm(&world), Some(21 * SECOND + run_s * 5 * SECOND));
        world.call(child, nr::GETRLIMIT, &[0, BUFFER]);
        assert_eq!(world.words(child, BUFFER), [run_s + 1, 4]);
    }
    world.thread(child).run_ns = 4 * SECOND;
    world.set_time(90 * SECOND);
    assert!(!world.is_there(child));
    assert_eq!(alarm(&world), None);
    world.call(world.init, nr::WAIT4, &[u64::MAX, BUFFER, 0, 0]).unwrap().unwrap();
    assert_eq!(world.read(world.init, BUFFER) as u32, KILL as u32);
}

#[test]
fn root_limits_the_processor_time_of_another_process() {
    let (mut world, child) = child();
    let pid = world.call(child, nr::GETPID, &[]).unwrap().unwrap();
    world.write(world.init, BUFFER, &[3, 3]);
    assert_eq!(world.call(world.init, nr::PRLIMIT64, &[pid, 0, BUFFER, 0]), DONE);
    assert_eq!(alarm(&world), Some(13 * SECOND));
}

#[test]
fn the_earliest_of_limit_and_timers_is_waited_for() {
    let (mut world, child) = child();
    limit_processor_time(&mut world, child, [7, 9]);
    set(&mut world, child, PROF, [0, 0, 5, 0]);
    assert_eq!(alarm(&world), Some(15 * SECOND));
    set(&mut world, child, VIRTUAL, [0, 0, 3, 0]);
    assert_eq!(alarm(&world), Some(13 * SECOND));
    set(&mut world, child, VIRTUAL, [0; 4]);
    set(&mut world, child, PROF, [0; 4]);
    assert_eq!(alarm(&world), Some(17 * SECOND));
    limit_processor_time(&mut world, child, [9, 9]);
    assert_eq!(alarm(&world), Some(19 * SECOND));
    world.write(child, BUFFER, &[1, 1]);
    assert_eq!(world.call(child, nr::SETRLIMIT, &[7, BUFFER]), DONE);
    assert_eq!(alarm(&world), Some(19 * SECOND), "another limit changes nothing");
}
