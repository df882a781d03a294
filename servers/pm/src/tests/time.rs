//! Clocks, sleeping, interval timers.

use super::{MEMORY, World};
use abi::Errno;
use abi::linux::nr;

const BUFFER: u64 = MEMORY.start + 0x100;
const SECOND: u64 = 1_000_000_000;

#[test]
fn sleeps_end_in_order_of_their_deadlines() {
    let mut world = World::new();
    let sleepers: std::vec::Vec<_> = [3, 1, 2]
        .map(|seconds| {
            let (_, child) = world.fork(world.init);
            world.write(child, BUFFER, &[seconds, 0]);
            assert_eq!(world.call(child, nr::NANOSLEEP, &[BUFFER, 0]), None);
            child
        })
        .into();
    assert_eq!(world.pm.programs.system.alarm, Some(SECOND));
    world.set_time(SECOND);
    assert_eq!(world.answer(sleepers[1]), Some(Ok(0)));
    assert_eq!(world.pm.programs.system.alarm, Some(2 * SECOND));
    world.set_time(3 * SECOND);
    assert_eq!((world.answer(sleepers[0]), world.answer(sleepers[2])), (Some(Ok(0)), Some(Ok(0))));
    assert_eq!(world.pm.programs.system.alarm, None);
}

#[test]
fn the_alarm_carries_the_best_priority_of_all_who_have_timers() {
    let mut world = World::new();
    let (_, ordinary) = world.fork(world.init);
    let (_, real_time) = world.fork(world.init);
    world.write(real_time, BUFFER, &[50]);
    assert_eq!(world.call(real_time, nr::SCHED_SETSCHEDULER, &[0, 1, BUFFER]), Some(Ok(0)));
    for (sleeper, seconds, queue) in [(ordinary, 1, 0), (real_time, 2, abi::call::REAL_TIME + 25)] {
        world.write(sleeper, BUFFER, &[seconds, 0]);
        assert_eq!(world.call(sleeper, nr::NANOSLEEP, &[BUFFER, 0]), None);
        assert_eq!((world.pm.programs.system.alarm, world.pm.programs.system.alarm_queue), (Some(SECOND), queue));
    }
}

#[test]
fn a_handler_ends_a_sleep_and_the_rest_is_told() {
    let mut world = World::new();
    let (pid, child) = world.fork(world.init);
    world.handle_signal(child, 10, 0);
    world.write(child, BUFFER, &[5, 0]);
    assert_eq!(world.call(child, nr::NANOSLEEP, &[BUFFER, BUFFER + 16]), None);
    world.set_time(2 * SECOND);
    world.call(world.init, nr::KILL, &[pid, 10]);
    assert_eq!((world.read(child, BUFFER + 16), world.read(child, BUFFER + 24)), (3, 0));
    assert_eq!(world.pm.programs.system.alarm, None);
}

#[test]
fn a_sleeper_that_is_killed_leaves_no_timer() {
    let mut world = World::new();
    let (pid, child) = world.fork(world.init);
    world.write(child, BUFFER, &[5, 0]);
    world.call(child, nr::NANOSLEEP, &[BUFFER, 0]);
    world.call(world.init, nr::KILL, &[pid, 9]);
    assert_eq!(world.pm.programs.system.alarm, None);
}

#[test]
fn absolute_sleeps_follow_their_clock() {
    let mut world = World::new();
    world.pm.programs.system.real_offset_ns = 1000 * SECOND;
    let (_, child) = world.fork(world.init);
    world.write(child, BUFFER, &[1002, 0]);
    assert_eq!(world.call(child, nr::CLOCK_NANOSLEEP, &[0, 1, BUFFER, 0]), None);
    assert_eq!(world.pm.programs.system.alarm, Some(2 * SECOND));
    assert_eq!(world.call(world.init, nr::CLOCK_NANOSLEEP, &[77, 0, BUFFER, 0]), Some(Err(Errno::EINVAL)));
}

#[test]
fn alarm_sends_sigalrm_and_tells_what_was_left() {
    let mut world = World::new();
    let (_, child) = world.fork(world.init);
    assert_eq!(world.call(child, nr::ALARM, &[10]), Some(Ok(0)));
    world.set_time(4 * SECOND);
    assert_eq!(world.call(child, nr::ALARM, &[3]), Some(Ok(6)));
    world.set_time(7 * SECOND);
    world.report_interrupted(child, None);
    assert!(!world.is_there(child));
}

#[test]
fn interval_timers_repeat_in_their_rhythm() {
    let mut world = World::new();
    let (_, child) = world.fork(world.init);
    // SA_NODEFER: the test does not return from the handler.
    world.handle_signal(child, 14, 0x4000_0000);
    world.write(child, BUFFER, &[2, 0, 1, 0]);
    assert_eq!(world.call(child, nr::SETITIMER, &[0, BUFFER, 0]), Some(Ok(0)));
    world.set_time(SECOND);
    assert!(world.pm.programs.system.thread(child).interrupted);
    assert_eq!(world.pm.programs.system.alarm, None, "it starts again when the signal is taken");
    world.set_time(3 * SECOND / 2);
    world.report_interrupted(child, None);
    assert_eq!(world.pm.programs.system.alarm, Some(3 * SECOND));
    world.set_time(3 * SECOND);
    world.set_time(8 * SECOND);
    world.report_interrupted(child, None);
    assert_eq!(world.pm.programs.system.alarm, Some(9 * SECOND));
    assert_eq!(world.call(world.init, nr::SETITIMER, &[5, BUFFER, 0]), Some(Err(Errno::EINVAL)));
}

#[test]
fn processor_time_is_watched_without_the_kernels_help() {
    let mut world = World::new();
    let (_, child) = world.fork(world.init);
    world.write(child, BUFFER, &[0, 0, 1, 0]);
    assert_eq!(world.call(child, nr::SETITIMER, &[2, BUFFER, 0]), Some(Ok(0)));
    world.pm.programs.system.thread(child).run_ns = SECOND / 2;
    world.set_time(SECOND);
    assert!(world.is_there(child), "only half of the time was used");
    world.pm.programs.system.thread(child).run_ns = SECOND;
    world.set_time(2 * SECOND);
    world.report_interrupted(child, None);
    assert!(!world.is_there(child), "SIGPROF kills");
}

/// Gives a process a limit of processor time.
fn limit(world: &mut World, thread: abi::Endpoint, resource: u64, soft: u64, hard: u64) {
    world.write(thread, BUFFER, &[soft, hard]);
    assert_eq!(world.call(thread, nr::SETRLIMIT, &[resource, BUFFER]), Some(Ok(0)));
}

#[test]
fn a_child_has_the_limit_of_processor_time_that_it_inherits() {
    let mut world = World::new();
    let (_, parent) = world.fork(world.init);
    limit(&mut world, parent, 0, 1, 5);
    let (_, child) = world.fork(parent);
    world.pm.programs.system.thread(child).run_ns = SECOND;
    world.set_time(2 * SECOND);
    world.report_interrupted(child, None);
    assert!(!world.is_there(child), "SIGXCPU kills");
}

#[test]
fn a_real_time_thread_that_does_not_wait_gets_sigxcpu_and_sigkill() {
    const RTTIME: u64 = 15;
    const FIFO: u64 = 1;
    const XCPU: u64 = 1 << 23;
    let mut world = World::new();
    let (_, child) = world.fork(world.init);
    limit(&mut world, child, RTTIME, 500_000, 2_000_000);
    world.write(child, BUFFER, &[XCPU]);
    assert_eq!(world.call(child, nr::RT_SIGPROCMASK, &[0, BUFFER, 0, 8]), Some(Ok(0)));
    let is_told = |world: &mut World| {
        let t = world.pm.programs.table.find(child).expect("it lives");
        let p = world.pm.programs.table.process_of(t);
        world.pm.programs.table[p].pending.set().0 & XCPU != 0
    };
    world.pm.programs.system.thread(child).run_ns = SECOND;
    world.set_time(SECOND);
    assert!(!is_told(&mut world), "it is time shared");
    world.write(child, BUFFER, &[1]);
    assert_eq!(world.call(child, nr::SCHED_SETSCHEDULER, &[0, FIFO, BUFFER]), Some(Ok(0)));
    let queue = crate::state::scheduling::queue_of(1);
    assert_eq!(world.pm.programs.system.alarm_queue, abi::call::REAL_TIME + queue - 1, "pm runs before it");
    world.pm.programs.system.thread(child).run_ns = SECOND + SECOND / 4;
    world.set_time(2 * SECOND);
    assert!(!is_told(&mut world));
    world.pm.programs.system.thread(child).run_ns = SECOND + SECOND / 2;
    world.set_time(3 * SECOND);
    assert!(is_told(&mut world));
    world.pm.programs.system.thread(child).run_ns = 3 * SECOND;
    world.set_time(5 * SECOND);
    assert!(!world.is_there(child), "the hard limit");
}

#[test]
fn clocks_tell_time_and_bad_pointers_are_efault() {
    let mut world = World::new();
    world.set_time(5 * SECOND + 7);
    assert_eq!(world.call(world.init, nr::CLOCK_GETTIME, &[1, BUFFER]), Some(Ok(0)));
    assert_eq!((world.read(world.init, BUFFER), world.read(world.init, BUFFER + 8)), (5, 7));
    assert_eq!(world.call(world.init, nr::CLOCK_GETTIME, &[1, 8]), Some(Err(Errno::EFAULT)));
    assert_eq!(world.call(world.init, nr::CLOCK_GETTIME, &[1, u64::MAX - 3]), Some(Err(Errno::EFAULT)));
    assert_eq!(world.call(world.init, nr::CLOCK_GETTIME, &[12, BUFFER]), Some(Err(Errno::EINVAL)));
}

/// Seconds and nanoseconds of a clock.
fn clock(world: &mut World, id: u64) -> [u64; 2] {
    assert_eq!(world.call(world.init, nr::CLOCK_GETTIME, &[id, BUFFER]), Some(Ok(0)), "clock {id}");
    world.words(world.init, BUFFER)
}

#[test]
fn clocks_are_real_monotonic_or_processor_time() {
    let mut world = World::new();
    world.pm.programs.system.real_offset_ns = 1000 * SECOND;
    world.set_time(5 * SECOND + 7);
    world.thread(world.init).run_ns = 3 * SECOND + 1;
    for (ids, time) in [(&[0, 5, 8, 11][..], [1005, 7]), (&[1, 4, 6, 7, 9], [5, 7]), (&[2, 3], [3, 1])] {
        for id in ids {
            assert_eq!(clock(&mut world, *id), time, "clock {id}");
            world.write(world.init, BUFFER, &[9; 3]);
            assert_eq!(world.call(world.init, nr::CLOCK_GETRES, &[*id, BUFFER]), Some(Ok(0)));
            assert_eq!(world.words(world.init, BUFFER), [0, 1, 9]);
        }
    }
    for id in [10, 12, u64::MAX] {
        for call in [nr::CLOCK_GETTIME, nr::CLOCK_GETRES, nr::CLOCK_SETTIME] {
            assert_eq!(world.call(world.init, call, &[id, BUFFER]), Some(Err(Errno::EINVAL)), "clock {id}");
        }
    }
    assert_eq!(world.call(world.init, nr::CLOCK_GETRES, &[1, 0]), Some(Ok(0)));
    assert_eq!(world.call(world.init, nr::CLOCK_GETRES, &[1, 8]), Some(Err(Errno::EFAULT)));
}

#[test]
fn root_sets_the_real_time() {
    let mut world = World::new();
    world.set_time(5 * SECOND);
    let init = world.init;
    world.write(init, BUFFER, &[2000, 9]);
    assert_eq!(world.call(init, nr::CLOCK_SETTIME, &[0, BUFFER]), Some(Ok(0)));
    assert_eq!((clock(&mut world, 0), clock(&mut world, 1)), ([2000, 9], [5, 0]));
    for (time, number) in
        [([1, SECOND], nr::CLOCK_SETTIME), ([1, 1_000_000], nr::SETTIMEOFDAY), ([u64::MAX, 0], nr::SETTIMEOFDAY)]
    {
        world.write(init, BUFFER, &time);
        let arguments = if number == nr::CLOCK_SETTIME { [0, BUFFER] } else { [BUFFER, 0] };
        assert_eq!(world.call(init, number, &arguments), Some(Err(Errno::EINVAL)), "{time:?}");
    }
    assert_eq!(world.call(init, nr::CLOCK_SETTIME, &[1, BUFFER]), Some(Err(Errno::EINVAL)));
    assert_eq!(world.call(init, nr::CLOCK_SETTIME, &[0, 8]), Some(Err(Errno::EFAULT)));
    assert_eq!(world.call(init, nr::SETTIMEOFDAY, &[8, 0]), Some(Err(Errno::EFAULT)));
    let (_, user) = world.user(1000, 100);
    world.write(user, BUFFER, &[1, 1]);
    assert_eq!(world.call(user, nr::CLOCK_SETTIME, &[0, BUFFER]), Some(Err(Errno::EPERM)));
    assert_eq!(world.call(user, nr::SETTIMEOFDAY, &[BUFFER, 0]), Some(Err(Errno::EPERM)));
    assert_eq!(world.call(user, nr::SETTIMEOFDAY, &[0, 0]), Some(Ok(0)));
    assert_eq!(clock(&mut world, 0), [2000, 9]);
}

#[test]
fn the_time_is_told_in_seconds_microseconds_and_ticks() {
    let mut world = World::new();
    world.pm.programs.system.real_offset_ns = 1000 * SECOND;
    world.set_time(5 * SECOND + 19_999_999);
    let init = world.init;
    world.thread(init).run_ns = 2 * SECOND + 19_999_999;
    world.write(init, BUFFER, &[9; 5]);
    assert_eq!(world.call(init, nr::TIME, &[0]), Some(Ok(1005)));
    assert_eq!(world.call(init, nr::TIME, &[BUFFER]), Some(Ok(1005)));
    assert_eq!(world.words(init, BUFFER), [1005, 9]);
    assert_eq!(world.call(init, nr::TIMES, &[0]), Some(Ok(501)));
    assert_eq!(world.call(init, nr::TIMES, &[BUFFER]), Some(Ok(501)));
    assert_eq!(world.words(init, BUFFER), [201, 0, 0, 0, 9]);
    assert_eq!(world.call(init, nr::GETTIMEOFDAY, &[BUFFER, BUFFER + 24]), Some(Ok(0)));
    assert_eq!(world.words(init, BUFFER), [1005, 19_999, 0, 0, 9]);
    for (call, arguments) in
        [(nr::TIME, [8, 0]), (nr::TIMES, [8, 0]), (nr::GETTIMEOFDAY, [8, 0]), (nr::GETTIMEOFDAY, [0, 8])]
    {
        assert_eq!(world.call(init, call, &arguments), Some(Err(Errno::EFAULT)), "{call}");
    }
}

#[test]
fn sleeps_need_a_time_in_range() {
    let mut world = World::new();
    let (_, child) = world.fork(world.init);
    for time in [[0, SECOND], [u64::MAX, 0]] {
        world.write(child, BUFFER, &time);
        assert_eq!(world.call(child, nr::NANOSLEEP, &[BUFFER, 0]), Some(Err(Errno::EINVAL)));
        assert_eq!(world.call(child, nr::CLOCK_NANOSLEEP, &[1, 0, BUFFER, 0]), Some(Err(Errno::EINVAL)));
    }
    assert_eq!(world.call(child, nr::NANOSLEEP, &[8, 0]), Some(Err(Errno::EFAULT)));
    assert_eq!(world.call(child, nr::CLOCK_NANOSLEEP, &[1, 0, 8, 0]), Some(Err(Errno::EFAULT)));
    for (clock, error) in [(2, Errno::EINVAL), (3, Errno::EOPNOTSUPP), (10, Errno::EINVAL)] {
        assert_eq!(world.call(child, nr::CLOCK_NANOSLEEP, &[clock, 0, BUFFER, 0]), Some(Err(error)));
    }
    world.write(child, BUFFER, &[i64::MAX as u64, 0]);
    assert_eq!(world.call(child, nr::NANOSLEEP, &[BUFFER, 0]), None);
    assert_eq!(world.pm.programs.system.alarm, Some(u64::MAX));
}

#[test]
fn clock_nanosleep_sleeps_for_a_time_or_until_one() {
    for (clock, flags, time, deadline) in
        [(1, 0, 3, 8), (0, 0, 3, 8), (1, 1, 7, 7), (0, 1, 1007, 7), (1, 1, 3, 5), (0, 1, 3, 5), (7, 2, 3, 8)]
    {
        let mut world = World::new();
        world.pm.programs.system.real_offset_ns = 1000 * SECOND;
        world.set_time(5 * SECOND);
        let (_, child) = world.fork(world.init);
        world.write(child, BUFFER, &[time, 0]);
        assert_eq!(world.call(child, nr::CLOCK_NANOSLEEP, &[clock, flags, BUFFER, 0]), None);
        assert_eq!(world.pm.programs.system.alarm, Some(deadline * SECOND), "clock {clock}, flags {flags}");
        world.set_time(deadline * SECOND);
        assert_eq!(world.answer(child), Some(Ok(0)));
    }
}

#[test]
fn only_a_sleep_for_a_time_tells_the_rest() {
    for (flags, rest, told) in [(0, BUFFER + 16, 3), (1, BUFFER + 16, 77), (0, 0, 77)] {
        let mut world = World::new();
        world.set_time(5 * SECOND);
        let (pid, child) = world.fork(world.init);
        world.handle_signal(child, 10, 0);
        world.write(child, BUFFER, &[4 + 5 * flags, 0, 77]);
        assert_eq!(world.call(child, nr::CLOCK_NANOSLEEP, &[1, flags, BUFFER, rest]), None);
        world.set_time(6 * SECOND);
        world.call(world.init, nr::KILL, &[pid, 10]);
        assert_eq!(world.read(child, BUFFER + 16), told, "flags {flags}");
        world.thread(child).registers.rsp += 8;
        world.call(child, nr::RT_SIGRETURN, &[]);
        assert_eq!(world.thread(child).registers.rax, -4i64 as u64);
    }
}

#[test]
fn a_rest_that_cannot_be_written_is_efault() {
    let mut world = World::new();
    let (pid, child) = world.fork(world.init);
    world.handle_signal(child, 10, 0);
    world.write(child, BUFFER, &[4, 0]);
    assert_eq!(world.call(child, nr::NANOSLEEP, &[BUFFER, 8]), None);
    world.call(world.init, nr::KILL, &[pid, 10]);
    world.thread(child).registers.rsp += 8;
    world.call(child, nr::RT_SIGRETURN, &[]);
    assert_eq!(world.thread(child).registers.rax, -14i64 as u64);
}

#[test]
fn a_sleep_does_not_begin_while_a_handler_is_to_run() {
    let mut world = World::new();
    let (pid, child) = world.fork(world.init);
    world.handle_signal(child, 10, 0);
    world.call(world.init, nr::KILL, &[pid, 10]);
    world.write(child, BUFFER, &[4, 0]);
    assert_eq!(world.call(child, nr::NANOSLEEP, &[BUFFER, BUFFER + 16]), None);
    assert_eq!(world.thread(child).registers.rip, 0xaaaa);
    assert_eq!(world.read(child, BUFFER + 16), 4);
    assert_eq!(world.pm.programs.system.alarm, None);
}
