//! Sleep, wake-ups, time limits, periods and deadlines.

use abi::rt::{self, FOREVER, NOWAIT, ProcessAttributes, control, error as number, flag, message};
use kernel_core::Next;

use super::{TICK, error, pid, plain, world};
use crate::world::{A, World};

/// With a deadline so many ticks after each wake-up.
fn with_deadline(priority: u64, deadline: u64) -> ProcessAttributes {
    ProcessAttributes { deadline, ..plain(priority) }
}

fn periodic(priority: u64, period: u64, deadline: u64) -> ProcessAttributes {
    ProcessAttributes { flags: flag::P_PERIODIC, period, deadline, ..plain(priority) }
}

/// What is counted of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Counts {
    scheds: u64,
    missed: u64,
    timestamp: u64,
    worst_latency: u64,
    least_laxity: i64,
}

fn counts(w: &mut World, slot: usize) -> Counts {
    let [scheds, missed, timestamp, worst_latency, laxity, ..] = statistics(w, slot);
    Counts { scheds, missed, timestamp, worst_latency, least_laxity: laxity as i64 }
}

fn statistics(w: &mut World, slot: usize) -> [u64; 8] {
    w.look(control::GETPSTAT, pid(slot)).expect("known")
}

fn clear(w: &mut World, slot: usize) {
    w.control(control::CLRPSTAT, A, pid(slot), [0; 8]).expect("cleared");
}

/// A world with a watchdog, which waits for messages; `attributes` with that as watchdog.
fn watched(attributes: ProcessAttributes) -> (World, usize, ProcessAttributes) {
    let mut w = world();
    let watchdog = w.receiver(plain(40));
    (w, watchdog, ProcessAttributes { watchdog: pid(watchdog) as i64, ..attributes })
}

/// What the watchdog, which waits for messages, has been told; it waits again.
fn told(w: &mut World, watchdog: usize) -> Vec<[u64; 4]> {
    let mut all = Vec::new();
    while w.is_ready(watchdog) {
        let message = w.received(watchdog);
        assert_eq!(message.kind, message::KRNDLINE);
        all.push(message.words);
        w.listen(watchdog);
    }
    all
}

#[test]
fn a_sleep_lasts_as_long_as_its_limit_or_not_at_all() {
    let mut w = world();
    let slot = w.process(plain(5));
    assert_eq!(w.calls(slot, rt::call::SLEEP, [NOWAIT as u64, 0]), Ok(0));
    assert_eq!(w.next(), Next::Run(slot));
    for ticks in [1, 3, 100] {
        assert_ne!(w.real_time_call(slot, rt::call::SLEEP, [ticks, 0]), Next::Run(slot));
        assert_ne!(w.pass(ticks - 1), Next::Run(slot), "{ticks}");
        w.scrub(slot);
        assert_eq!(w.pass(1), Next::Run(slot), "{ticks}");
        assert_eq!(w.result(slot), Ok(0));
    }
    w.sleep(slot);
    w.pass(1000);
    assert!(!w.is_ready(slot), "without a limit");
    assert_eq!(counts(&mut w, slot).scheds, 3);
}

#[test]
fn a_wake_up_ends_a_sleep_and_its_limit() {
    let mut w = world();
    let (worse, better) = (w.sleeper(plain(9)), w.process(plain(5)));
    w.real_time_call(better, rt::call::SLEEP, [5, 0]);
    w.awaken(worse);
    assert_eq!(w.wake(worse, better), Next::Run(better));
    assert_eq!((w.result(better), w.result(worse)), (Ok(0), Ok(0)));
    w.sleep(better);
    w.sleep(worse);
    w.pass(10);
    assert!(!w.is_ready(better), "the limit of the sleep before is forgotten");
    assert_eq!((counts(&mut w, better).scheds, counts(&mut w, worse).scheds), (1, 1));
}

#[test]
fn a_wake_up_needs_a_process_that_is_real_time_and_sleeps() {
    let (mut w, watchdog, attributes) = watched(plain(5));
    let ordinary = w.candidate(plain(6));
    let awake = w.sleeper(attributes);
    let listener = w.receiver(ProcessAttributes { watchdog: pid(watchdog) as i64, ..plain(7) });
    w.awaken(awake);
    assert_eq!(w.calls(awake, rt::call::WAKEUP, [7, 0]), error(number::E_BAD_PROC));
    assert_eq!(w.calls(awake, rt::call::WAKEUP, [pid(ordinary), 0]), error(number::E_MRT_BADPTYPE));
    for not_asleep in [awake, listener] {
        assert_eq!(w.calls(awake, rt::call::WAKEUP, [pid(not_asleep), 0]), error(number::E_MRT_UNSLEEP));
    }
    w.sleep(awake);
    assert_eq!(told(&mut w, watchdog), [[pid(awake), 2, 0, 0], [pid(listener), 2, 0, 0]]);
}

#[test]
fn the_end_of_a_worse_process_s_sleep_waits_until_better_ones_wait() {
    let mut w = world();
    let better = w.sleeper(plain(5));
    let equal = w.candidate(plain(5));
    let worse = w.process(plain(9));
    w.real_time_call(worse, rt::call::SLEEP, [3, 0]);
    w.becomes_real_time(equal).expect("real-time");
    w.real_time_call(equal, rt::call::SLEEP, [3, 0]);
    w.awaken(better);
    w.scrub(worse);
    w.scrub(equal);
    assert_eq!(w.pass(4), Next::Run(better));
    assert_eq!(w.result(equal), Ok(0), "it is woken, and waits for its turn");
    assert_eq!(w.node.frame_mut(worse).rax, 0xdead, "its sleep has not ended yet");
    assert_eq!(w.sleep(better), Next::Run(equal));
    assert_eq!(w.sleep(equal), Next::Run(worse));
    assert_eq!(w.result(worse), Ok(0));
}

#[test]
fn time_limits_of_one_priority_end_in_the_order_of_their_times() {
    let mut w = world();
    let better = w.sleeper(plain(2));
    let slots: Vec<_> = (0..3).map(|_| w.candidate(plain(5))).collect();
    for (slot, ticks) in slots.iter().zip([4, 2, 3]) {
        w.becomes_real_time(*slot).expect("real-time");
        w.real_time_call(*slot, rt::call::SLEEP, [ticks, 0]);
    }
    w.awaken(better);
    w.pass(10);
    let mut order = vec![w.sleep(better)];
    while let Some(Next::Run(slot)) = order.last().copied().filter(|next| slots.iter().any(|s| *next == Next::Run(*s)))
    {
        order.push(w.sleep(slot));
    }
    order.pop();
    assert_eq!(order, [slots[1], slots[2], slots[0]].map(Next::Run));
}

#[test]
fn a_deadline_runs_from_the_wake_up_to_the_next_sleep() {
    let (mut w, watchdog, attributes) = watched(with_deadline(5, 10));
    let slot = w.sleeper(attributes);
    clear(&mut w, slot);
    let none = Counts { scheds: 0, missed: 0, timestamp: 0, worst_latency: 0, least_laxity: i64::MAX };
    assert_eq!(counts(&mut w, slot), none);
    for (worked, least) in [(4, 6), (1, 6), (7, 3), (9, 1)] {
        w.awaken(slot);
        assert_eq!(w.pass(worked), Next::Run(slot));
        w.sleep(slot);
        w.pass(30);
        assert_eq!(counts(&mut w, slot).least_laxity, least * TICK as i64, "{worked} ticks of work");
    }
    assert_eq!(counts(&mut w, slot), Counts { scheds: 4, least_laxity: TICK as i64, ..none });
    assert_eq!(told(&mut w, watchdog), [[0; 4]; 0]);
}

#[test]
fn a_missed_deadline_is_counted_and_told_when_it_comes() {
    let (mut w, watchdog, attributes) = watched(with_deadline(5, 10));
    let slot = w.sleeper(attributes);
    clear(&mut w, slot);
    w.awaken(slot);
    assert_eq!(w.pass(12), Next::Run(slot));
    w.sleep(slot);
    assert_eq!(told(&mut w, watchdog), [[pid(slot), 0, 0, 0]]);
    let expected = Counts { scheds: 1, missed: 1, timestamp: 0, worst_latency: 0, least_laxity: -2 * TICK as i64 };
    assert_eq!(counts(&mut w, slot), expected);
    w.pass(50);
    assert_eq!(counts(&mut w, slot), expected, "it is asleep");
    clear(&mut w, slot);
    w.awaken(slot);
    w.pass(9);
    w.sleep(slot);
    assert_eq!(counts(&mut w, slot).missed, 0);
}

#[test]
fn a_deadline_runs_from_the_end_of_a_timed_sleep_too() {
    let (mut w, watchdog, attributes) = watched(with_deadline(5, 10));
    let slot = w.process(attributes);
    w.real_time_call(slot, rt::call::SLEEP, [20, 0]);
    assert_eq!(w.pass(20), Next::Run(slot));
    w.pass(12);
    w.sleep(slot);
    assert_eq!(told(&mut w, watchdog), [[pid(slot), 0, 0, 0]]);
    assert_eq!((counts(&mut w, slot).missed, counts(&mut w, slot).least_laxity), (1, -2 * TICK as i64));
}

#[test]
fn deadlines_of_processes_without_any_are_not_measured() {
    let (mut w, watchdog, attributes) = watched(plain(5));
    let slot = w.sleeper(attributes);
    w.awaken(slot);
    w.pass(500);
    w.sleep(slot);
    let expected = Counts { scheds: 1, missed: 0, timestamp: 0, worst_latency: 0, least_laxity: i64::MAX };
    assert_eq!(counts(&mut w, slot), expected);
    assert_eq!(told(&mut w, watchdog), [[0; 4]; 0]);
}

#[test]
fn a_periodic_process_runs_at_the_begin_of_each_period() {
    let mut w = world();
    w.pass(7);
    let slot = w.sleeper(periodic(5, 10, 0));
    for period in 1..=4 {
        assert_ne!(w.pass(9), Next::Run(slot), "period {period}");
        w.scrub(slot);
        assert_eq!(w.pass(1), Next::Run(slot), "period {period}");
        assert_eq!(w.result(slot), Ok(0));
        w.sleep(slot);
        let counts = counts(&mut w, slot);
        assert_eq!((counts.scheds, counts.missed, counts.timestamp), (period, 0, 7 + 10 * period));
        assert_eq!((counts.worst_latency, counts.least_laxity), (0, 10 * TICK as i64));
    }
}

#[test]
fn the_worst_latency_of_a_periodic_process_is_remembered() {
    let mut w = world();
    let slot = w.sleeper(periodic(5, 10, 0));
    let begin = w.m.now;
    for (period, late, worst) in [(1, 300, 300), (2, 100, 300), (3, 400, 400)] {
        w.m.now = begin + period * 10 * TICK + late;
        w.node.timer(&mut w.m);
        assert_eq!(w.next(), Next::Run(slot), "the next period does not begin later because of that");
        w.m.now += 2 * TICK;
        w.sleep(slot);
        let counts = counts(&mut w, slot);
        assert_eq!((counts.worst_latency, counts.timestamp), (worst, 10 * period));
        assert_eq!(counts.least_laxity, 8 * TICK as i64 - worst as i64, "until the end of the period");
    }
}

#[test]
fn work_that_lasts_longer_than_its_period_is_late_and_goes_on_with_the_next() {
    let (mut w, watchdog, attributes) = watched(periodic(5, 10, 0));
    let slot = w.sleeper(attributes);
    assert_eq!(w.pass(10), Next::Run(slot));
    assert_eq!(w.pass(13), Next::Run(slot));
    assert_eq!(w.sleep(slot), Next::Run(slot), "the second period has begun");
    assert_eq!(w.result(slot), Ok(0));
    assert_eq!(w.pass(3), Next::Run(slot));
    assert_ne!(w.sleep(slot), Next::Run(slot));
    assert_eq!(told(&mut w, watchdog), [[pid(slot), 0, 0, 0]]);
    let counts = counts(&mut w, slot);
    assert_eq!((counts.scheds, counts.missed, counts.timestamp), (1, 1, 20));
    assert_eq!(counts.least_laxity, -3 * TICK as i64, "that of the work of the first period");
    assert_ne!(w.pass(3), Next::Run(slot));
    assert_eq!(w.pass(1), Next::Run(slot), "the third period begins in time");
}

#[test]
fn the_laxity_of_work_that_misses_whole_periods_is_that_of_the_period_it_began_in() {
    for (deadline, least) in [(0, -25), (4, -31)] {
        let mut w = world();
        let slot = w.sleeper(periodic(5, 10, deadline));
        assert_eq!(w.pass(10), Next::Run(slot));
        w.pass(35);
        assert_eq!(w.sleep(slot), Next::Run(slot), "late");
        w.pass(3);
        w.sleep(slot);
        assert_eq!(counts(&mut w, slot).least_laxity, least * TICK as i64);
        clear(&mut w, slot);
        assert_eq!(w.pass(2), Next::Run(slot), "the fifth period");
        w.pass(1);
        w.sleep(slot);
        let expected = if deadline == 0 { 9 } else { 3 };
        assert_eq!(counts(&mut w, slot).least_laxity, expected * TICK as i64);
    }
}

#[test]
fn a_wake_up_within_a_period_moves_neither_it_nor_its_deadline() {
    let mut w = world();
    let slot = w.sleeper(periodic(5, 10, 8));
    let other = w.sleeper(plain(6));
    assert_eq!(w.pass(10), Next::Run(slot));
    w.sleep(slot);
    w.pass(5);
    w.awaken(other);
    w.wake(other, slot);
    w.pass(1);
    w.sleep(slot);
    w.sleep(other);
    assert_eq!(counts(&mut w, slot).least_laxity, 2 * TICK as i64);
    assert_ne!(w.pass(3), Next::Run(slot));
    assert_eq!(w.pass(1), Next::Run(slot), "the next period begins in time");
    w.sleep(slot);
    assert_eq!(counts(&mut w, slot).missed, 0);
}

#[test]
fn a_deadline_within_the_period_is_missed_before_its_end() {
    let (mut w, watchdog, attributes) = watched(periodic(5, 10, 4));
    let slot = w.sleeper(attributes);
    assert_eq!(w.pass(10), Next::Run(slot));
    w.pass(3);
    w.sleep(slot);
    assert_eq!(told(&mut w, watchdog), [[0; 4]; 0]);
    assert_eq!((counts(&mut w, slot).missed, counts(&mut w, slot).least_laxity), (0, TICK as i64));
    assert_eq!(w.pass(7), Next::Run(slot));
    w.pass(5);
    w.sleep(slot);
    assert_eq!(told(&mut w, watchdog), [[pid(slot), 0, 0, 0]]);
    assert_eq!((counts(&mut w, slot).missed, counts(&mut w, slot).least_laxity), (1, -(TICK as i64)));
    assert_ne!(w.pass(4), Next::Run(slot));
    assert_eq!(w.pass(1), Next::Run(slot), "the period is as long as before");
    w.pass(12);
    assert_eq!(w.sleep(slot), Next::Run(slot), "late, but the deadline was missed once only");
    w.sleep(slot);
    assert_eq!(told(&mut w, watchdog), [[pid(slot), 0, 0, 0]]);
    assert_eq!(counts(&mut w, slot).missed, 2);
}

#[test]
fn the_first_period_begins_when_the_process_becomes_real_time() {
    let mut w = world();
    let slot = w.process(periodic(5, 10, 4));
    w.pass(6);
    w.sleep(slot);
    let counts = counts(&mut w, slot);
    assert_eq!((counts.missed, counts.least_laxity), (1, -2 * TICK as i64));
    assert_eq!(w.pass(4), Next::Run(slot));
}

#[test]
fn a_periodic_process_may_sleep_for_a_time_and_be_woken() {
    let mut w = world();
    let slot = w.sleeper(periodic(5, 10, 0));
    let other = w.sleeper(plain(6));
    w.pass(10);
    assert_ne!(w.real_time_call(slot, rt::call::SLEEP, [4, 0]), Next::Run(slot));
    assert_ne!(w.pass(3), Next::Run(slot));
    assert_eq!(w.pass(1), Next::Run(slot));
    w.sleep(slot);
    w.awaken(other);
    assert_eq!(w.wake(other, slot), Next::Run(slot), "out of the wait for the next period");
    w.sleep(slot);
    w.sleep(other);
    assert_ne!(w.pass(5), Next::Run(slot));
    assert_eq!(w.pass(1), Next::Run(slot), "which begins nevertheless");
}

#[test]
fn a_period_that_begins_during_another_wait_is_not_late() {
    let mut w = world();
    let slot = w.sleeper(periodic(5, 10, 0));
    w.pass(10);
    assert_ne!(w.real_time_call(slot, rt::call::SLEEP, [15, 0]), Next::Run(slot));
    assert_eq!(w.pass(15), Next::Run(slot));
    assert_ne!(w.sleep(slot), Next::Run(slot), "it had done its work");
    assert_eq!(counts(&mut w, slot).missed, 0);
    assert_eq!(w.pass(5), Next::Run(slot));
}

#[test]
fn what_is_counted_begins_anew_with_real_time() {
    let mut w = world();
    let slot = w.sleeper(with_deadline(5, 10));
    w.awaken(slot);
    w.pass(15);
    w.calls(slot, rt::call::SET2NRT, [0, 0]).expect("ordinary");
    assert_eq!(counts(&mut w, slot).missed, 1);
    w.becomes_real_time(slot).expect("real-time");
    w.real_time_call(slot, rt::call::RCV, [FOREVER as u64, FOREVER as u64]);
    let none = Counts { scheds: 0, missed: 0, timestamp: 0, worst_latency: 0, least_laxity: i64::MAX };
    assert_eq!(counts(&mut w, slot), none);
}
