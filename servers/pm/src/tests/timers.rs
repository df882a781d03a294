//! Interval timers, POSIX timers, and limits of processor time.

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
    assert_eq!(get(&mut world, child, REAL), [1, 250_000, 1, 250_000]);
    assert_eq!(alarm(&world), Some(13 * SECOND + 3 * SECOND / 4));
    assert_eq!(take(&mut world, child, ALRM), [ALRM, 0x80, 0, 0]);
    world.set_time(17 * SECOND + SECOND / 2);
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
    set_posix(&mut world, parent, 0, 0, [0, 0, 1, 0]);
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

const SIGNAL: u64 = 0;
const NONE: u64 = 1;
const THREAD: u64 = 2;
const THREAD_ID: u64 = 4;

/// Creates a POSIX timer that tells of itself in this way. Returns its id.
fn create(world: &mut World, thread: Endpoint, clock: u64, notify: u64, signal: u64, tid: u64) -> Answer {
    world.write(thread, BUFFER, &[0x5555, signal | notify << 32, tid]);
    let answer = world.call(thread, nr::TIMER_CREATE, &[clock, BUFFER, OLD]);
    if answer == DONE { Some(Ok(world.read(thread, OLD) as u32 as u64)) } else { answer }
}

/// Sets a POSIX timer: period, then value, each as seconds and nanoseconds.
fn set_posix(world: &mut World, thread: Endpoint, id: u64, flags: u64, value: [u64; 4]) -> Answer {
    world.write(thread, BUFFER, &value);
    world.write(thread, OLD, &[9; 5]);
    world.call(thread, nr::TIMER_SETTIME, &[id, flags, BUFFER, OLD])
}

fn get_posix(world: &mut World, thread: Endpoint, id: u64) -> [u64; 4] {
    assert_eq!(world.call(thread, nr::TIMER_GETTIME, &[id, BUFFER]), DONE);
    world.words(thread, BUFFER)
}

fn overruns(world: &mut World, thread: Endpoint, id: u64) -> Answer {
    world.call(thread, nr::TIMER_GETOVERRUN, &[id])
}

#[test]
fn timers_run_by_some_clocks_and_tell_in_some_ways() {
    let (mut world, child) = child();
    for (clock, exists) in
        [(0, true), (1, true), (7, true), (2, false), (3, false), (4, false), (8, false), (1 << 32, true)]
    {
        let made = create(&mut world, child, clock, SIGNAL, USR1, 0);
        assert_eq!(made.map(|made| made.is_ok()), Some(exists), "clock {clock}: {made:?}");
        assert!(exists || made == failed(Errno::EINVAL));
    }
    let own = world.call(child, nr::GETTID, &[]).unwrap().unwrap();
    for (notify, signal, tid, works) in [
        (SIGNAL, 64, 0, true),
        (SIGNAL, 0, 0, false),
        (SIGNAL, 65, 0, false),
        (NONE, 0, 0, true),
        (THREAD, USR1, 0, true),
        (THREAD, 65, 0, false),
        (3, USR1, 0, false),
        (5, USR1, 0, false),
        (THREAD_ID, USR1, own, true),
        (THREAD_ID, 0, own, false),
        (THREAD_ID, USR1, 1, false),
        (THREAD_ID, USR1, 4000, false),
    ] {
        let made = create(&mut world, child, 1, notify, signal, tid);
        assert_eq!(made.map(|made| made.is_ok()), Some(works), "{notify} {signal} {tid}: {made:?}");
        assert!(works || made == failed(Errno::EINVAL));
    }
    assert_eq!(world.call(child, nr::TIMER_CREATE, &[1, 8, OLD]), failed(Errno::EFAULT));
    assert_eq!(world.call(child, nr::TIMER_CREATE, &[1, 0, 8]), failed(Errno::EFAULT));
}

#[test]
fn a_process_has_256_timers_and_an_id_is_used_again() {
    let (mut world, child) = child();
    world.write(child, OLD, &[u64::MAX]);
    for id in 0..256 {
        assert_eq!(create(&mut world, child, 1, SIGNAL, USR1, 0), Some(Ok(id)));
    }
    assert_eq!(world.read(child, OLD) >> 32, 0xffff_ffff, "an id is an int");
    assert_eq!(create(&mut world, child, 1, SIGNAL, USR1, 0), failed(Errno::EAGAIN));
    assert_eq!(world.call(child, nr::TIMER_DELETE, &[77]), DONE);
    for number in [nr::TIMER_DELETE, nr::TIMER_GETOVERRUN, nr::TIMER_GETTIME] {
        assert_eq!(world.call(child, number, &[77, BUFFER]), failed(Errno::EINVAL));
        assert_eq!(world.call(child, number, &[256, BUFFER]), failed(Errno::EINVAL));
    }
    assert_eq!(set_posix(&mut world, child, 77, 0, [0; 4]), failed(Errno::EINVAL));
    assert_eq!(create(&mut world, child, 1, SIGNAL, USR1, 0), Some(Ok(77)));
}

#[test]
fn a_timer_shows_what_is_left_its_period_and_its_old_value() {
    let (mut world, child) = child();
    block_all(&mut world, child);
    create(&mut world, child, 1, SIGNAL, USR1, 0);
    assert_eq!(set_posix(&mut world, child, 0, 0, [1, 5, 2, 7]), DONE);
    assert_eq!(world.words(child, OLD), [0, 0, 0, 0, 9]);
    assert_eq!(alarm(&world), Some(12 * SECOND + 7));
    assert_eq!(get_posix(&mut world, child, 0), [1, 5, 2, 7]);
    world.pm.programs.system.now_ns = 13 * SECOND;
    assert_eq!(get_posix(&mut world, child, 0), [1, 5, 0, 1], "a timer that runs never shows zero");
    world.pm.programs.system.now_ns = 11 * SECOND;
    assert_eq!(set_posix(&mut world, child, 0, 0, [0, 0, 3, 0]), DONE);
    assert_eq!(world.words(child, OLD), [1, 5, 1, 7, 9]);
    assert_eq!(alarm(&world), Some(14 * SECOND));
    assert_eq!(set_posix(&mut world, child, 0, 0, [5, 0, 0, 0]), DONE);
    assert_eq!(alarm(&world), None);
    assert_eq!(get_posix(&mut world, child, 0), [5, 0, 0, 0]);
    for value in [[0, SECOND, 0, 0], [u64::MAX, 0, 0, 0], [0, 0, 0, SECOND], [0, 0, u64::MAX, 0]] {
        assert_eq!(set_posix(&mut world, child, 0, 0, value), failed(Errno::EINVAL), "{value:?}");
    }
    assert_eq!(world.call(child, nr::TIMER_SETTIME, &[0, 0, 8, 0]), failed(Errno::EFAULT));
    assert_eq!(world.call(child, nr::TIMER_SETTIME, &[0, 0, BUFFER, 8]), failed(Errno::EINVAL));
    world.write(child, BUFFER, &[0, 0, 1, 0]);
    assert_eq!(world.call(child, nr::TIMER_SETTIME, &[0, 0, BUFFER, 8]), failed(Errno::EFAULT));
    assert_eq!(world.call(child, nr::TIMER_GETTIME, &[0, 8]), failed(Errno::EFAULT));
}

#[test]
fn a_point_in_time_is_one_of_the_timers_clock() {
    for (clock, point, deadline) in [(1, 12, 12), (0, 1012, 12), (7, 12, 12), (1, 3, 10), (0, 3, 10)] {
        let (mut world, child) = child();
        create(&mut world, child, clock, SIGNAL, USR1, 0);
        assert_eq!(set_posix(&mut world, child, 0, 1, [0, 0, point, 0]), DONE);
        assert_eq!(alarm(&world), Some(deadline * SECOND), "clock {clock}");
        set_posix(&mut world, child, 0, 2, [0, 0, point, 0]);
        assert_eq!(alarm(&world), Some((10 + point) * SECOND), "other flags mean nothing");
    }
}

#[test]
fn an_expiry_brings_id_and_value() {
    let (mut world, child) = child();
    block_all(&mut world, child);
    create(&mut world, child, 1, SIGNAL, USR1, 0);
    create(&mut world, child, 1, SIGNAL, REAL_TIME, 0);
    assert_eq!(world.call(child, nr::TIMER_CREATE, &[1, 0, OLD]), DONE, "SIGALRM and its id by default");
    create(&mut world, child, 1, NONE, USR1, 0);
    for id in 0..4 {
        assert_eq!(set_posix(&mut world, child, id, 0, [0, 0, 1 + id, 0]), DONE);
    }
    world.set_time(14 * SECOND);
    assert_eq!(alarm(&world), None);
    assert_eq!(take(&mut world, child, USR1), [USR1, SI_TIMER, 0, 0x5555]);
    assert_eq!(take(&mut world, child, REAL_TIME), [REAL_TIME, SI_TIMER, 1, 0x5555]);
    assert_eq!(take(&mut world, child, ALRM), [ALRM, SI_TIMER, 2, 2]);
    assert_eq!(pending(&mut world, child), 0);
    assert_eq!([0, 1, 2, 3].map(|id| get_posix(&mut world, child, id)), [[0; 4]; 4]);
}

#[test]
fn expiries_that_wait_are_counted_in_one_siginfo() {
    let (mut world, child) = child();
    block_all(&mut world, child);
    for _ in 0..2 {
        create(&mut world, child, 1, SIGNAL, REAL_TIME, 0);
    }
    set_posix(&mut world, child, 0, 0, [1, 0, 2, 0]);
    set_posix(&mut world, child, 1, 0, [0, 0, 2, 0]);
    world.set_time(12 * SECOND);
    assert_eq!(overruns(&mut world, child, 0), DONE);
    world.set_time(13 * SECOND);
    world.set_time(17 * SECOND + SECOND / 2);
    assert_eq!(alarm(&world), Some(18 * SECOND), "the rhythm stays");
    assert_eq!(overruns(&mut world, child, 0), DONE, "not taken yet");
    assert_eq!(take(&mut world, child, REAL_TIME), [REAL_TIME, SI_TIMER, 5 << 32, 0x5555]);
    assert_eq!(overruns(&mut world, child, 0), Some(Ok(5)));
    assert_eq!(take(&mut world, child, REAL_TIME), [REAL_TIME, SI_TIMER, 1, 0x5555]);
    assert_eq!(overruns(&mut world, child, 1), DONE);
    world.set_time(20 * SECOND);
    assert_eq!(take(&mut world, child, REAL_TIME), [REAL_TIME, SI_TIMER, 2 << 32, 0x5555]);
    assert_eq!(overruns(&mut world, child, 0), Some(Ok(2)));
    set_posix(&mut world, child, 0, 0, [1, 0, 2, 0]);
    assert_eq!(overruns(&mut world, child, 0), DONE, "set anew");
}

#[test]
fn a_handler_sees_the_overruns_too() {
    let (mut world, child) = child();
    world.handle_signal(child, USR1, 0);
    create(&mut world, child, 1, SIGNAL, USR1, 0);
    set_posix(&mut world, child, 0, 0, [1, 0, 1, 0]);
    world.set_time(14 * SECOND);
    world.report_interrupted(child, None);
    let registers = world.thread(child).registers;
    assert_eq!(registers.rip, HANDLER);
    assert_eq!(world.words(child, registers.rsi), [USR1, SI_TIMER, 3 << 32, 0x5555]);
    assert_eq!(overruns(&mut world, child, 0), Some(Ok(3)));
}

#[test]
fn a_great_many_overruns_are_as_many_as_fit() {
    let (mut world, child) = child();
    block_all(&mut world, child);
    create(&mut world, child, 1, SIGNAL, USR1, 0);
    set_posix(&mut world, child, 0, 0, [0, 1, 0, 1]);
    world.set_time(1000 * SECOND);
    world.set_time(2000 * SECOND);
    take(&mut world, child, USR1);
    assert_eq!(overruns(&mut world, child, 0), Some(Ok(i32::MAX as u64)));
}

#[test]
fn a_timer_for_one_thread_tells_that_one() {
    let (mut world, child) = child();
    let tid = world.call(child, nr::CLONE, &[CLONE_THREAD, 0, 0, 0, 0]).unwrap().unwrap();
    let second = world.newest();
    block_all(&mut world, child);
    block_all(&mut world, second);
    create(&mut world, child, 1, THREAD_ID, USR1, tid);
    set_posix(&mut world, child, 0, 0, [1, 0, 1, 0]);
    world.set_time(11 * SECOND);
    assert_eq!(pending(&mut world, child), 0);
    assert_eq!(pending(&mut world, second), 1 << (USR1 - 1));
    world.set_time(12 * SECOND);
    assert_eq!(take(&mut world, second, USR1), [USR1, SI_TIMER, 1 << 32, 0x5555]);
    world.call(second, nr::EXIT, &[0]);
    world.set_time(13 * SECOND);
    assert_eq!(pending(&mut world, child), 0, "nobody is told for a thread that has ended");
}

#[test]
fn a_deleted_timer_and_those_of_another_program_do_not_fire() {
    let (mut world, child) = child();
    create(&mut world, child, 1, SIGNAL, USR1, 0);
    set_posix(&mut world, child, 0, 0, [0, 0, 1, 0]);
    assert_eq!(world.call(child, nr::TIMER_DELETE, &[0]), DONE);
    assert_eq!(alarm(&world), None);
    create(&mut world, child, 1, SIGNAL, USR1, 0);
    set_posix(&mut world, child, 0, 0, [0, 0, 1, 0]);
    set(&mut world, child, REAL, [0, 0, 5, 0]);
    world.write_bytes(child, BUFFER, b"/x\0");
    assert_eq!(world.call(child, nr::EXECVE, &[BUFFER, 0, 0]), None);
    world.exec_event(child, b"/x", 0);
    assert_eq!(world.call(child, nr::TIMER_GETTIME, &[0, BUFFER]), failed(Errno::EINVAL));
    assert_eq!(alarm(&world), Some(15 * SECOND), "interval timers stay");
}
