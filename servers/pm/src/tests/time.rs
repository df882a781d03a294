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
    world.handle_signal(child, 14, 0);
    world.write(child, BUFFER, &[2, 0, 1, 0]);
    assert_eq!(world.call(child, nr::SETITIMER, &[0, BUFFER, 0]), Some(Ok(0)));
    world.set_time(SECOND);
    assert!(world.pm.programs.system.thread(child).interrupted);
    assert_eq!(world.pm.programs.system.alarm, Some(3 * SECOND));
    world.set_time(8 * SECOND);
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
