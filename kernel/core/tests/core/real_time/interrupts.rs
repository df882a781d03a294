//! Descriptors of interrupts: their attributes, both stages, what is counted, and the lines they use.

use abi::{
    Endpoint,
    call::{KernelCall, REAL_TIME},
    kernel,
    rt::{self, control, error as number, irq, message},
};
use kernel_core::Next;

use super::{NOBODY, TICK, error, pid, plain, world};
use crate::world::{A, B, RS, World, all_rights};

const LINE: u64 = 3;
const SOFTWARE: u64 = 70;

/// Words of a descriptor without a watchdog.
fn descriptor(kind: u64, task: u64, priority: u64, period: u64) -> [u64; 8] {
    [period, task, NOBODY, priority, kind, 0, 0, 0]
}

fn set(w: &mut World, irq: u64, words: [u64; 8]) {
    w.control(control::SETIATTR, A, irq, words).expect("set");
}

fn attributes(w: &mut World, irq: u64) -> [u64; 8] {
    w.look(control::GETIATTR, irq).expect("exists")
}

/// Count, highest shower, missed deadlines, time of the last, worst latency, arrivals while queued.
fn counts(w: &mut World, irq: u64) -> [u64; 6] {
    let words = w.look(control::GETISTAT, irq).expect("exists");
    assert_eq!(words[6..], [0, 0]);
    core::array::from_fn(|at| words[at])
}

fn fire(w: &mut World, line: u64) -> Next {
    w.node.interrupt(&mut w.m, line as usize);
    w.next()
}

#[test]
fn descriptors_are_read_back_as_they_were_set() {
    let mut w = world();
    let (task, watchdog) = (w.sleeper(plain(5)), w.sleeper(plain(6)));
    let words = [12, pid(task), pid(watchdog), 7, irq::TDIRQ, 0x6162, 0x6364, 0];
    for irq in [0, LINE, 64, 95] {
        set(&mut w, irq, words);
        assert_eq!(attributes(&mut w, irq), words, "{irq}");
        assert_eq!(w.look(control::GETIINT, irq), Ok([irq, 20, 1, 0, 0, 0, 0, 0]));
        set(&mut w, irq, descriptor(irq::RTIRQ, NOBODY, 1, 1));
        assert_eq!(attributes(&mut w, irq), [1, NOBODY, NOBODY, 1, irq::RTIRQ, 0, 0, 0]);
        assert_eq!(w.look(control::GETIINT, irq).expect("exists")[2], 0, "it has no timer any more");
    }
}

#[test]
fn descriptors_stay_within_their_limits() {
    let mut w = world();
    for (given, taken) in [(0, 1), (1, 1), (10_000, 10_000), (10_001, 10_000)] {
        set(&mut w, SOFTWARE, descriptor(irq::SOFTIRQ, NOBODY, 1, given));
        assert_eq!(attributes(&mut w, SOFTWARE)[0], taken, "period");
    }
    for (given, taken) in [(0, 1), (1, 1), (46, 46), (47, 46)] {
        set(&mut w, SOFTWARE, descriptor(irq::SOFTIRQ, NOBODY, given, 1));
        assert_eq!(attributes(&mut w, SOFTWARE)[3], taken, "priority");
    }
}

#[test]
fn what_a_descriptor_cannot_be_is_refused() {
    let mut w = world();
    let ordinary = w.candidate(plain(5));
    let mut set = |irq, words| w.control(control::SETIATTR, A, irq, words);
    for irq in [96, 97, 1 << 32, u64::MAX] {
        assert_eq!(set(irq, descriptor(irq::RTIRQ, NOBODY, 1, 1)), error(number::E_MRT_BADIRQ), "{irq}");
    }
    assert_eq!(set(24, descriptor(irq::RTIRQ, NOBODY, 1, 1)), error(number::E_MRT_BADIRQ), "there is no such line");
    assert_eq!(set(24, descriptor(irq::NRTIRQ, NOBODY, 1, 1)), Ok(0), "it is not used");
    for process in [5, pid(ordinary)] {
        assert_eq!(set(LINE, descriptor(irq::RTIRQ, process, 1, 1)), error(number::E_MRT_BADTASK));
        assert_eq!(set(LINE, [1, NOBODY, process, 1, 1, 0, 0, 0]), error(number::E_MRT_BADWDOG));
    }
    for operation in [control::GETIATTR, control::GETISTAT, control::CLRISTAT, control::GETIINT] {
        for irq in [96, 1 << 32, u64::MAX] {
            assert_eq!(w.look(operation, irq), error(number::E_MRT_BADIRQ), "{operation} {irq}");
        }
        assert!(w.look(operation, 95).is_ok());
    }
}

#[test]
fn an_interrupt_wakes_its_task_and_is_counted() {
    let mut w = world();
    let task = w.sleeper(plain(5));
    set(&mut w, LINE, descriptor(irq::RTIRQ, pid(task), 4, 1));
    for count in 1..=3 {
        w.m.now += 2 * TICK;
        w.scrub(task);
        assert_eq!(fire(&mut w, LINE), Next::Run(task));
        assert_eq!(w.result(task), Ok(0));
        w.sleep(task);
        assert_eq!(counts(&mut w, LINE), [count, 0, 0, 2 * count, 0, 0]);
    }
    w.control(control::CLRISTAT, A, LINE, [0; 8]).expect("cleared");
    assert_eq!(counts(&mut w, LINE), [0; 6]);
    assert_eq!(fire(&mut w, LINE + 1), w.next(), "another line has no descriptor");
    assert!(!w.is_ready(task));
    assert_eq!(counts(&mut w, LINE + 1), [0; 6]);
}

#[test]
fn an_interrupt_is_a_message_where_the_descriptor_says_so() {
    let mut w = world();
    let task = w.receiver(plain(5));
    set(&mut w, LINE, descriptor(irq::RTIRQ | irq::ISTMSG, pid(task), 4, 1));
    for count in 1..=3 {
        assert_eq!(fire(&mut w, LINE), Next::Run(task));
        let received = w.received(task);
        assert_eq!((received.kind, received.pid, received.number), (message::KRNIRQ, 0, 0));
        assert_eq!(received.words, [LINE, count, 0, 0]);
        w.listen(task);
    }
    assert_eq!(counts(&mut w, LINE)[2], 0);
}

#[test]
fn a_task_that_does_not_sleep_misses_its_interrupt() {
    let mut w = world();
    let (task, watchdog) = (w.receiver(plain(5)), w.receiver(plain(6)));
    set(&mut w, LINE, [1, pid(task), pid(watchdog), 4, irq::RTIRQ, 0, 0, 0]);
    assert_eq!(fire(&mut w, LINE), Next::Run(watchdog));
    let told = w.received(watchdog);
    assert_eq!((told.kind, told.words), (message::KRNDLINE, [LINE, 1, 0, 0]));
    w.listen(watchdog);
    assert_eq!(counts(&mut w, LINE), [1, 0, 1, 0, 0, 0]);
}

#[test]
fn the_second_stage_waits_for_better_processes_and_says_how_long() {
    let mut w = world();
    let (better, task, watchdog) = (w.sleeper(plain(3)), w.sleeper(plain(5)), w.receiver(plain(9)));
    set(&mut w, LINE, [1, pid(task), pid(watchdog), 5, irq::RTIRQ, 0, 0, 0]);
    w.awaken(better);
    assert_eq!(fire(&mut w, LINE), Next::Run(better));
    assert_eq!(w.pass(3), Next::Run(better));
    assert_eq!(fire(&mut w, LINE), Next::Run(better), "it is queued still");
    assert_eq!(w.sleep(better), Next::Run(task));
    assert_eq!(w.sleep(task), Next::Run(watchdog));
    assert_eq!(w.received(watchdog).words, [LINE, 1, 0, 0]);
    w.listen(watchdog);
    assert_eq!(counts(&mut w, LINE), [2, 0, 1, 3, 3 * TICK, 1]);
    assert_eq!(fire(&mut w, LINE), Next::Run(task));
    w.sleep(task);
    assert_eq!(counts(&mut w, LINE), [3, 0, 1, 3, 3 * TICK, 1], "the worst latency");
}

#[test]
fn the_second_stages_of_one_priority_run_in_the_order_of_their_arrival() {
    let mut w = world();
    let (better, task) = (w.sleeper(plain(3)), w.receiver(plain(9)));
    for line in [4, 2, 6] {
        set(&mut w, line, descriptor(irq::RTIRQ | irq::ISTMSG, pid(task), 5, 1));
    }
    set(&mut w, 8, descriptor(irq::RTIRQ | irq::ISTMSG, pid(task), 4, 1));
    for order in [[6, 2, 8, 4], [4, 2, 6, 8], [2, 8, 4, 6], [8, 6, 4, 2]] {
        w.awaken(better);
        for line in order {
            fire(&mut w, line);
        }
        assert_eq!(w.sleep(better), Next::Run(task));
        let mut lines = vec![w.received(task).words[0]];
        lines.extend((0..3).map(|_| w.takes(task, rt::ANYPROC).expect("told").words[0]));
        w.listen(task);
        let of_equals = order.into_iter().filter(|line| *line != 8);
        let expected: Vec<_> = [8].into_iter().chain(of_equals).collect();
        assert_eq!(lines, expected, "the one of the better priority is the first");
    }
}

/// B runs in a real-time queue, so that it sees what waits for worse priorities.
#[test]
fn internals_show_what_is_queued_and_what_has_arrived() {
    let mut w = world();
    let b = w.endpoint(B).0 as u64;
    let state = |w: &mut World, irq| w.look(control::GETIINT, irq).expect("exists")[3];
    set(&mut w, LINE, descriptor(irq::RTIRQ, NOBODY, 30, 1));
    set(&mut w, LINE + 1, descriptor(irq::TDIRQ, NOBODY, 30, 5));
    w.kernel_call(RS, KernelCall::Schedule, &[b, REAL_TIME + 3, 0]).expect("scheduled");
    w.make_current(B);
    assert_eq!((state(&mut w, LINE), state(&mut w, LINE + 1)), (0, 0));
    fire(&mut w, LINE);
    fire(&mut w, LINE + 1);
    assert_eq!((state(&mut w, LINE), state(&mut w, LINE + 1)), (irq::ENQUEUED, irq::TRIGGERED));
    set(&mut w, LINE, descriptor(irq::RTIRQ, NOBODY, 30, 1));
    assert_eq!(state(&mut w, LINE), irq::ENQUEUED, "it stays queued");
    w.kernel_call(B, KernelCall::Schedule, &[b, 4, 0]).expect("scheduled");
    w.make_current(B);
    assert_eq!((state(&mut w, LINE), state(&mut w, LINE + 1)), (0, irq::TRIGGERED));
    w.pass(5);
    assert_eq!(state(&mut w, LINE + 1), 0);
}

#[test]
fn a_timer_driven_interrupt_has_its_second_stage_once_in_a_period() {
    let mut w = world();
    let task = w.receiver(plain(5));
    set(&mut w, LINE, descriptor(irq::TDIRQ | irq::ISTMSG, pid(task), 4, 10));
    for (arrivals, count, shower) in [(3, 3, 3), (1, 4, 3), (0, 4, 3), (4, 8, 4)] {
        w.m.now += TICK;
        for _ in 0..arrivals {
            assert_ne!(fire(&mut w, LINE), Next::Run(task));
        }
        let tick = w.m.now / TICK;
        assert_ne!(w.pass(8), Next::Run(task));
        assert_eq!(w.pass(1) == Next::Run(task), arrivals > 0, "{arrivals}");
        if arrivals > 0 {
            assert_eq!(w.received(task).words, [LINE, count, 0, 0]);
            w.listen(task);
            assert_eq!(counts(&mut w, LINE)[3], tick);
        }
        assert_eq!(counts(&mut w, LINE)[..3], [count, shower, 0]);
    }
}

#[test]
fn a_software_interrupt_comes_every_period() {
    let mut w = world();
    let task = w.sleeper(plain(5));
    w.pass(3);
    set(&mut w, SOFTWARE, descriptor(irq::TDIRQ | irq::SOFTIRQ, pid(task), 4, 10));
    for count in 1..=3 {
        assert_ne!(w.pass(9), Next::Run(task));
        assert_eq!(w.pass(1), Next::Run(task));
        w.sleep(task);
        assert_eq!(counts(&mut w, SOFTWARE), [count, 0, 0, 3 + 10 * count, 0, 0]);
    }
    fire(&mut w, SOFTWARE);
    assert_eq!(counts(&mut w, SOFTWARE)[0], 3, "a line of that number is none of its business");
    set(&mut w, SOFTWARE, descriptor(irq::NRTIRQ, NOBODY, 1, 1));
    assert_ne!(w.pass(20), Next::Run(task));
}

#[test]
fn a_period_begins_when_it_is_due_or_when_the_one_before_was_served() {
    for (kind, next) in [(0, 6), (irq::RELATPER, 10)] {
        let mut w = world();
        let task = w.sleeper(plain(5));
        set(&mut w, SOFTWARE, descriptor(irq::TDIRQ | irq::SOFTIRQ | kind, pid(task), 4, 10));
        w.m.now += 14 * TICK;
        w.m.armed = None;
        w.node.timer(&mut w.m);
        assert_eq!(w.next(), Next::Run(task));
        w.sleep(task);
        assert_eq!(counts(&mut w, SOFTWARE), [1, 0, 0, 10, 4 * TICK, 0]);
        assert_ne!(w.pass(next - 1), Next::Run(task));
        assert_eq!(w.pass(1), Next::Run(task));
    }
}

#[test]
fn a_line_without_a_driver_stays_masked_until_its_task_waits_again() {
    let mut w = world();
    let task = w.receiver(plain(5));
    set(&mut w, LINE, descriptor(irq::RTIRQ | irq::ISTMSG, pid(task), 4, 1));
    for _ in 0..2 {
        assert!(w.m.opened.contains(&(LINE as usize)) && w.m.unmasked.contains(&(LINE as usize)));
        assert_eq!(fire(&mut w, LINE), Next::Run(task));
        assert!(!w.m.unmasked.contains(&(LINE as usize)));
        w.listen(task);
    }
    set(&mut w, LINE, descriptor(irq::NRTIRQ, NOBODY, 1, 1));
    assert!(!w.m.unmasked.contains(&(LINE as usize)), "it is not used any more");
}

#[test]
fn a_line_with_a_driver_is_the_drivers_to_open() {
    let mut w = world();
    let task = w.receiver(plain(5));
    let a = w.endpoint(A);
    let mut rights = all_rights();
    (rights.irqs[0], rights.irq_count) = (LINE as u8, 1);
    w.set_privileges(a, &rights);
    w.kernel_call(A, KernelCall::IrqSet, &[LINE, 3, kernel::irq::REENABLE]).expect("set");
    w.receive(A, Endpoint::ANY);
    w.m.unmasked.clear();
    set(&mut w, LINE, descriptor(irq::RTIRQ | irq::ISTMSG, pid(task), 4, 1));
    assert!(w.m.unmasked.is_empty());
    w.m.unmasked.insert(LINE as usize);
    assert_eq!(fire(&mut w, LINE), Next::Run(task));
    assert!(w.m.unmasked.contains(&(LINE as usize)));
    w.listen(task);
    assert!(w.is_ready(A));
    assert_eq!(w.message(A).source, Endpoint::HARDWARE);
    set(&mut w, LINE, descriptor(irq::NRTIRQ, NOBODY, 1, 1));
    assert!(w.m.unmasked.contains(&(LINE as usize)));
}

#[test]
fn descriptors_of_a_task_that_ends_are_released() {
    let mut w = world();
    let (task, watchdog) = (w.sleeper(plain(5)), w.sleeper(plain(6)));
    for irq in [LINE, SOFTWARE] {
        set(&mut w, irq, [5, pid(task), pid(watchdog), 4, irq::TDIRQ, 1, 2, 0]);
    }
    set(&mut w, LINE + 1, [5, NOBODY, pid(watchdog), 4, irq::RTIRQ, 1, 2, 0]);
    w.destroys(watchdog);
    for (irq, task) in [(LINE, pid(task)), (SOFTWARE, pid(task)), (LINE + 1, NOBODY)] {
        assert_eq!(attributes(&mut w, irq)[1..3], [task, NOBODY], "it goes on without a watchdog");
    }
    w.destroys(task);
    for irq in [LINE, SOFTWARE] {
        assert_eq!(attributes(&mut w, irq), [0, NOBODY, NOBODY, 0, irq::NRTIRQ, 0, 0, 0]);
    }
    assert!(!w.m.unmasked.contains(&(LINE as usize)));
    assert!(w.m.unmasked.contains(&(LINE as usize + 1)));
    w.control(control::RTSTOP, A, 0, [0; 8]).expect("stopped");
    assert!(!w.m.unmasked.contains(&(LINE as usize + 1)), "with real-time mode all descriptors end");
}
