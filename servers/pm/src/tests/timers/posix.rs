//! POSIX timers: their clocks, what they show and tell, overruns.

use super::*;

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
pub fn set_posix(world: &mut World, thread: Endpoint, id: u64, flags: u64, value: [u64; 4]) -> Answer {
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
    let (none, by_number) = (Err(Errno::EINVAL), |number: u64, bits| !number << 3 | bits);
    let own = world.call(child, nr::GETPID, &[]).unwrap().unwrap();
    for (clock, expected) in [0, 1, 7, 2, 3, 11, 1 << 32, by_number(0, 2), by_number(own, 2), by_number(own, 6)]
        .map(|clock| (clock, Ok(())))
        .into_iter()
        .chain(
            [8, 12, by_number(0, 3), by_number(1, 2), by_number(1, 6), by_number(4000, 2)].map(|clock| (clock, none)),
        )
        .chain([4, 5, 6].map(|clock| (clock, Err(Errno::EOPNOTSUPP))))
    {
        let made = create(&mut world, child, clock, SIGNAL, USR1, 0);
        assert_eq!(made.map(|made| made.map(|_| ())), Some(expected), "clock {clock:#x}");
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
fn a_user_has_as_many_timers_as_signals_and_an_id_is_used_again() {
    let (mut world, child) = child();
    world.write(child, OLD, &[u64::MAX]);
    world.write(child, BUFFER, &[256, 256]);
    assert_eq!(world.call(child, nr::SETRLIMIT, &[11, BUFFER]), DONE);
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
    for (clock, point, deadline) in [(1, 12, 12), (0, 1012, 12), (7, 12, 12)] {
        let (mut world, child) = child();
        create(&mut world, child, clock, SIGNAL, USR1, 0);
        assert_eq!(set_posix(&mut world, child, 0, 1, [0, 0, point, 0]), DONE);
        assert_eq!(alarm(&world), Some(deadline * SECOND), "clock {clock}");
        set_posix(&mut world, child, 0, 2, [0, 0, point, 0]);
        assert_eq!(alarm(&world), Some((10 + point) * SECOND), "other flags mean nothing");
    }
}

#[test]
fn a_point_in_time_that_has_passed_brings_the_signal_before_the_call_returns() {
    for clock in [0, 1] {
        let (mut world, child) = child();
        block_all(&mut world, child);
        create(&mut world, child, clock, SIGNAL, USR1, 0);
        assert_eq!(set_posix(&mut world, child, 0, 1, [0, 0, 3, 0]), DONE);
        assert_eq!(alarm(&world), None);
        assert_eq!(take(&mut world, child, USR1), [USR1, SI_TIMER, 0, 0x5555]);
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
    world.set_time(17 * SECOND + SECOND / 2);
    assert_eq!(alarm(&world), None, "it starts again when its signal is taken");
    assert_eq!(get_posix(&mut world, child, 0), [1, 0, 0, SECOND / 2], "and shows its rhythm meanwhile");
    assert_eq!(overruns(&mut world, child, 0), DONE, "not taken yet");
    assert_eq!(take(&mut world, child, REAL_TIME), [REAL_TIME, SI_TIMER, 5 << 32, 0x5555]);
    assert_eq!(alarm(&world), Some(18 * SECOND));
    assert_eq!(overruns(&mut world, child, 0), Some(Ok(5)));
    assert_eq!(take(&mut world, child, REAL_TIME), [REAL_TIME, SI_TIMER, 1, 0x5555]);
    assert_eq!(overruns(&mut world, child, 1), DONE);
    world.set_time(18 * SECOND);
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
fn expiries_are_not_counted_in_the_siginfo_of_others() {
    let (mut world, child) = child();
    block_all(&mut world, child);
    let pid = world.call(child, nr::GETPID, &[]).unwrap().unwrap();
    create(&mut world, child, 1, SIGNAL, REAL_TIME, 0);
    let queued = -1i32 as u32 as u64;
    world.write(child, BUFFER, &[0, queued, 0, 0, 0, 0]);
    assert_eq!(world.call(child, nr::RT_SIGQUEUEINFO, &[pid, REAL_TIME, BUFFER]), DONE);
    set_posix(&mut world, child, 0, 0, [0, 0, 1, 0]);
    world.set_time(11 * SECOND);
    assert_eq!(world.call(child, nr::TIMER_DELETE, &[0]), DONE);
    create(&mut world, child, 1, SIGNAL, REAL_TIME + 1, 0);
    set_posix(&mut world, child, 0, 0, [0, 0, 1, 0]);
    world.set_time(12 * SECOND);
    assert_eq!(take(&mut world, child, REAL_TIME), [REAL_TIME, queued, 0, 0]);
    assert_eq!(pending(&mut world, child), 1 << REAL_TIME, "the signal of a deleted timer is dropped");
    assert_eq!(take(&mut world, child, REAL_TIME + 1), [REAL_TIME + 1, SI_TIMER, 0, 0x5555]);
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

#[test]
fn an_ignored_timer_rests_until_somebody_listens() {
    let (mut world, child) = child();
    world.write(child, MEMORY.start, &[1, 0, 0, 0]);
    assert_eq!(world.call(child, nr::RT_SIGACTION, &[USR1, MEMORY.start, 0, 8]), DONE);
    create(&mut world, child, 1, SIGNAL, USR1, 0);
    set_posix(&mut world, child, 0, 0, [1, 0, 1, 0]);
    world.set_time(11 * SECOND);
    assert_eq!((alarm(&world), pending(&mut world, child)), (None, 0));
    world.handle_signal(child, USR1, 0);
    world.set_time(15 * SECOND + SECOND / 2);
    world.report_interrupted(child, None);
    assert_eq!(overruns(&mut world, child, 0), Some(Ok(4)));
    assert_eq!(alarm(&world), Some(16 * SECOND));
}

#[test]
fn a_storm_of_short_timers_costs_pm_nothing_while_the_signal_waits() {
    let (mut world, child) = child();
    block_all(&mut world, child);
    create(&mut world, child, 1, SIGNAL, USR1, 0);
    set_posix(&mut world, child, 0, 0, [0, 1000, 0, 1000]);
    assert_eq!(alarm(&world), Some(10 * SECOND + 100_000), "periods below 100 us are counted, not waited for");
    world.set_time(10 * SECOND + 100_000);
    assert_eq!(alarm(&world), None);
    world.set_time(11 * SECOND);
    take(&mut world, child, USR1);
    assert_eq!(overruns(&mut world, child, 0), Some(Ok(999_999)), "each expiry is counted");
}

#[test]
fn timers_run_by_the_time_of_their_process_or_thread() {
    for clock in [2, 3] {
        let (mut world, child) = child();
        block_all(&mut world, child);
        create(&mut world, child, clock, SIGNAL, USR1, 0);
        world.thread(child).run_ns = SECOND;
        set_posix(&mut world, child, 0, 0, [0, 0, 2, 0]);
        assert_eq!(get_posix(&mut world, child, 0), [0, 0, 2, 0]);
        world.set_time(12 * SECOND);
        assert_eq!((pending(&mut world, child), alarm(&world)), (0, Some(14 * SECOND)), "it has not run");
        world.thread(child).run_ns = 3 * SECOND;
        world.set_time(14 * SECOND);
        assert_eq!(take(&mut world, child, USR1), [USR1, SI_TIMER, 0, 0x5555]);
    }
}
