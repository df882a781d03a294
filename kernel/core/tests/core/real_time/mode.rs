//! Real-time mode: what may be asked in it and out of it, its clock, and the statistics of the system.

use abi::{
    Endpoint, Errno,
    call::{KernelCall, REAL_TIME},
    info,
    rt::{self, FOREVER, control, error as number, irq, mode},
};
use kernel_core::Next;

use super::{HARMONIC, REFRESH, TICK, error, pid, plain, world, world_with};
use crate::world::{A, B, BUFFER, RS, World, all_rights};

#[test]
fn in_standard_mode_only_the_mode_can_be_set_and_the_values_read() {
    let mut w = World::with_services();
    for operation in 0..control::END {
        let free = matches!(operation, control::RTSTART | control::SETSVAL | control::GETSVAL);
        if !free {
            assert_eq!(w.control(operation, A, 0, [0; 8]), error(number::E_MRT_NORTMODE), "{operation}");
        }
    }
    w.control(control::SETSVAL, A, mode::BPIP | mode::LATENCY, [0; 8]).expect("set");
    assert_eq!(w.look(control::GETSVAL, 0), Ok([mode::BPIP | mode::LATENCY, 0, 0, 0, 50, 1, 0, 0]));
    for operation in [control::END, 99, u64::MAX] {
        assert_eq!(w.control(operation, A, 0, [0; 8]), Err(Errno::EBADCALL), "{operation}");
    }
}

#[test]
fn a_system_call_needs_its_words_and_a_caller_that_lives() {
    let mut w = world();
    let a = w.endpoint(A).0 as u64;
    let mut ask = |caller: u64, address: u64| {
        w.kernel_call(B, KernelCall::RtControl, &[control::SETSVAL, caller, mode::BPIP, address])
    };
    assert_eq!(ask(a, 1 << 60), Err(Errno::EFAULT));
    assert_eq!(ask(a + (1 << 12), BUFFER), Err(Errno::EDEADSRCDST));
    assert_eq!(ask(a, BUFFER), error(number::E_MRT_RTMODE), "options are set in standard mode");
}

#[test]
fn real_time_mode_begins_once_and_ends_when_no_process_is_left() {
    let mut w = world_with(mode::BPIP);
    let values = [mode::BPIP | mode::RTMODE, 0, 0, TICK, 1000, HARMONIC, REFRESH, 0];
    assert_eq!(w.look(control::GETSVAL, 0), Ok(values));
    assert_eq!(w.control(control::RTSTART, A, 1 | 1 << 32, [0; 8]), error(number::E_MRT_RTACTIVE));
    assert_eq!(w.control(control::RESTART, A, 2 | 3 << 32, [0; 8]), Ok(0));
    let values = [mode::BPIP | mode::RTMODE, 0, 0, 10 * TICK, 100, 2, 3, 0];
    assert_eq!(w.look(control::GETSVAL, 0), Ok(values));
    let slot = w.sleeper(plain(5));
    for operation in [control::RESTART, control::RTSTOP, control::RTSTART] {
        assert_eq!(w.control(operation, A, 1, [0; 8]), error(number::E_MRT_RTACTIVE), "{operation}");
    }
    w.destroys(slot);
    assert_eq!(w.control(control::RTSTOP, A, 0, [0; 8]), Ok(0));
    assert_eq!(w.look(control::GETSVAL, 0), Ok([mode::BPIP, 0, 0, 0, 50, 1, 0, 0]), "options stay");
    assert_eq!(w.control(control::RTSTOP, A, 0, [0; 8]), error(number::E_MRT_NORTMODE));
}

#[test]
fn harmonic_and_refresh_are_one_to_ten_thousand() {
    let mut w = world();
    for (given, taken) in [(0, 1), (1, 1), (9_999, 9_999), (10_000, 10_000), (10_001, 10_000), (0xffff_ffff, 10_000)] {
        w.control(control::RESTART, A, given | given << 32, [0; 8]).expect("restarted");
        let values = w.look(control::GETSVAL, 0).expect("given");
        assert_eq!(values[3..7], [1_000_000_000 / (50 * taken), 50 * taken, taken, taken], "{given}");
    }
}

#[test]
fn long_work_of_others_is_divided_more_finely_in_real_time_mode() {
    const PAGES: u64 = 32;
    let copy = |w: &mut World| {
        let space = w.space(A);
        for page in 0..PAGES {
            w.m.map(space, 0x100_0000 + page * 4096, 0x1000_0000 + page * 4096, abi::layout::map::WRITE);
        }
        w.m.chunks.clear();
        let own = Endpoint::SELF.0 as u64;
        let words = [own, 0x100_0000, own, 0x100_0000, PAGES * 4096];
        w.kernel_call(A, KernelCall::VirCopy, &words).expect("copied");
        (w.m.chunks.len(), w.m.chunks[0])
    };
    let mut w = world();
    assert_eq!(copy(&mut w), (32, 4096));
    w.control(control::RTSTOP, A, 0, [0; 8]).expect("stopped");
    assert_eq!(copy(&mut w), (2, 65536));
}

#[test]
fn the_clock_counts_ticks_from_the_start_on() {
    let mut w = world();
    w.m.now += 12_345;
    w.control(control::RESTART, A, 10_000, [0; 8]).expect("restarted");
    assert_eq!(w.look(control::GETSSTAT, 0).expect("given")[3..5], [0, 0]);
    w.m.now += 1999;
    assert_eq!(w.look(control::GETSSTAT, 0).expect("given")[3..5], [0, 0], "a tick is 2 us");
    w.m.now += 1 + 2000 * (3 << 32 | 6);
    assert_eq!(w.look(control::GETSSTAT, 0).expect("given")[3..5], [3 << 32 | 7, 3], "all bits, and the upper ones");
}

/// Context switches and interrupts, as the kernel's information has them.
fn counted(w: &mut World) -> (u64, u64) {
    w.kernel_call(B, KernelCall::GetInfo, &[info::KERNEL, 0, BUFFER, 88]).expect("given");
    let space = w.space(B);
    let bytes = w.m.peek(space, BUFFER, 88);
    let word = |at: usize| u64::from_le_bytes(bytes[at * 8..][..8].try_into().expect("eight"));
    (word(5), word(6))
}

#[test]
fn the_statistics_of_the_system_are_counted_since_they_were_cleared() {
    let mut w = world();
    let to = w.receiver(plain(5));
    let from = w.sleeper(plain(9));
    for clears in [true, false] {
        if clears {
            w.control(control::CLRSSTAT, A, 0, [0; 8]).expect("cleared");
            assert_eq!(w.look(control::GETSSTAT, 0).expect("given")[..3], [0, 0, 0]);
        } else {
            w.control(control::RESTART, A, HARMONIC, [0; 8]).expect_err("a restart would clear, too");
        }
        let before = (counted(&mut w), w.look(control::GETSSTAT, 0).expect("given"));
        w.awaken(from);
        w.posts(from, to, 1).expect("sent");
        w.listen(to);
        w.posts(from, to, 2).expect("sent");
        w.listen(to);
        w.sleep(from);
        let after = (counted(&mut w), w.look(control::GETSSTAT, 0).expect("given"));
        let (switches, interrupts) = (after.0.0 - before.0.0, after.0.1 - before.0.1);
        assert!(switches > 4 && interrupts == 1, "{switches} {interrupts}");
        let counts: Vec<_> = (0..3).map(|at| after.1[at] - before.1[at]).collect();
        assert_eq!(counts, [switches, 2, interrupts]);
        assert_eq!(after.1[5..], [0, 0, 0]);
    }
}

#[test]
fn the_statistics_of_the_system_begin_anew_with_its_mode() {
    let mut w = world();
    let slot = w.sleeper(plain(5));
    w.awaken(slot);
    w.sleep(slot);
    w.destroys(slot);
    assert!(w.look(control::GETSSTAT, 0).expect("given")[0] > 0);
    w.control(control::RESTART, A, HARMONIC, [0; 8]).expect("restarted");
    assert_eq!(w.look(control::GETSSTAT, 0).expect("given")[..4], [0, 0, 0, 0]);
}

#[test]
fn interrupts_of_all_lines_are_recorded_once_and_delivered() {
    let mut w = world();
    let slot = w.sleeper(plain(5));
    w.awaken(slot);
    w.sleep(slot);
    let before = counted(&mut w).1;
    w.awaken(slot);
    let lines = [63, 64, 65, 127, 128, 191, 192, 255];
    for _ in 0..2 {
        lines.iter().for_each(|&line| w.node.interrupt(&mut w.m, line));
    }
    w.sleep(slot);
    assert_eq!(counted(&mut w).1 - before, lines.len() as u64 + 1, "and the one that woke it");
    w.awaken(slot);
    (0..256).for_each(|line| w.node.interrupt(&mut w.m, line));
    w.sleep(slot);
    assert_eq!(counted(&mut w).1 - before, lines.len() as u64 + 1 + 256);
}

#[test]
fn the_worst_lateness_of_the_timer_is_told_until_it_is_cleared() {
    let mut w = world();
    let slot = w.sleeper(plain(5));
    for (late, worst) in [(777, 777), (100, 777), (900, 900)] {
        w.awaken(slot);
        w.real_time_call(slot, rt::call::SLEEP, [3, 0]);
        w.m.now += 3 * TICK + late;
        w.node.timer(&mut w.m);
        assert_eq!(w.next(), Next::Run(slot));
        w.sleep(slot);
        assert_eq!(w.look(control::GETSVAL, 0).expect("given")[2], worst);
    }
    w.control(control::CLRSSTAT, A, 0, [0; 8]).expect("cleared");
    assert_eq!(w.look(control::GETSVAL, 0).expect("given")[2], 0);
}

#[test]
fn lines_that_wait_for_the_end_of_real_time_work_are_told() {
    let mut w = world();
    let b = w.endpoint(B).0 as u64;
    w.kernel_call(RS, KernelCall::Schedule, &[b, REAL_TIME + 3, 0]).expect("scheduled");
    w.make_current(B);
    for line in [7, 11, 7, 70] {
        w.node.interrupt(&mut w.m, line);
    }
    assert_eq!(w.look(control::GETSVAL, 0).expect("given")[1], 1 << 7 | 1 << 11);
    w.kernel_call(B, KernelCall::Schedule, &[b, 4, 0]).expect("scheduled");
    w.make_current(B);
    assert_eq!(w.look(control::GETSVAL, 0).expect("given")[1], 0, "they have been delivered");
}

#[test]
fn recorded_interrupts_reach_their_drivers_in_the_order_of_their_arrival() {
    let mut w = world();
    let a = w.endpoint(A);
    let mut rights = all_rights();
    (rights.irqs[0], rights.irqs[1], rights.irq_count) = (20, 12, 2);
    w.set_privileges(a, &rights);
    for (line, hook) in [(20, 1), (12, 0)] {
        w.kernel_call(A, KernelCall::IrqSet, &[line, hook, abi::kernel::irq::REENABLE]).expect("set");
    }
    let slot = w.sleeper(plain(5));
    w.awaken(slot);
    w.node.set_tracing(abi::trace::event::ALL);
    for line in [20, 12, 20] {
        w.node.interrupt(&mut w.m, line);
    }
    assert!(w.m.unmasked.contains(&20), "its driver wants every interrupt");
    w.sleep(slot);
    let told = w.m.records.iter().filter(|record| record.event == abi::trace::event::INTERRUPT);
    assert_eq!(told.map(|record| record.label).collect::<Vec<_>>(), [20, 12], "each once, the first one first");
}

#[test]
fn alarms_of_the_time_shared_world_wait_while_something_real_time_runs() {
    let mut w = world();
    let slot = w.sleeper(plain(5));
    w.awaken(slot);
    w.sleep(slot);
    let soon = w.m.now + 5 * TICK;
    w.kernel_call(A, KernelCall::SetAlarm, &[soon]).expect("set");
    w.receive(A, Endpoint::ANY);
    w.awaken(slot);
    assert_eq!(w.pass(6), Next::Run(slot));
    w.scrub(A);
    assert_eq!(w.node.frame_mut(A).rax, 0xdead);
    w.sleep(slot);
    assert_eq!(w.message(A).source, Endpoint::CLOCK);
}

#[test]
fn the_tick_of_the_time_shared_world_is_a_descriptor() {
    let mut w = world();
    let tick = rt::TICK_IRQ as u64;
    let name = u64::from_le_bytes(*b"the tick");
    let none = rt::NOPROC as u64;
    assert_eq!(w.look(control::GETIATTR, tick), Ok([HARMONIC, none, none, 46, irq::TDIRQ | irq::SOFTIRQ, name, 0, 0]));
    assert_eq!(w.look(control::GETIINT, tick), Ok([tick, HARMONIC, 1, 0, 0, 0, 0, 0]));
    w.pass(HARMONIC - 1);
    assert_eq!(w.look(control::GETISTAT, tick).expect("given")[0], 0);
    w.pass(1);
    assert_eq!(w.look(control::GETISTAT, tick), Ok([1, 0, 0, HARMONIC, 0, 0, 0, 0]));
    w.pass(3 * HARMONIC);
    assert_eq!(w.look(control::GETISTAT, tick), Ok([4, 0, 0, 4 * HARMONIC, 0, 0, 0, 0]));
    w.control(control::RTSTOP, A, 0, [0; 8]).expect("stopped");
    w.control(control::RTSTART, A, 40 | 1 << 32, [0; 8]).expect("started");
    assert_eq!(w.look(control::GETIATTR, tick).expect("given")[0], 40);
    assert_eq!(w.look(control::GETISTAT, tick).expect("given")[..2], [0, 0]);
}

#[test]
fn text_goes_to_the_console_up_to_its_end_or_80_characters() {
    let mut w = world();
    let slot = w.process(plain(5));
    let space = w.space(slot);
    let print = |w: &mut World, text: &[u8], address: u64| {
        w.m.console.clear();
        w.m.poke(space, BUFFER, &[b'x'; 100]);
        w.m.poke(space, BUFFER, text);
        let result = w.calls(slot, rt::call::PRINT, [address, 0]);
        (result, String::from_utf8(w.m.console.clone()).expect("text"))
    };
    assert_eq!(print(&mut w, b"hello\0", BUFFER), (Ok(0), "hello\n".into()));
    assert_eq!(print(&mut w, b"\0", BUFFER), (Ok(0), "\n".into()));
    assert_eq!(print(&mut w, b"", BUFFER), (Ok(0), "x".repeat(80) + "\n"));
    for address in [1 << 60, 0x7000_0000] {
        assert_eq!(print(&mut w, b"", address), (Err(Errno::EINVAL), String::new()), "it cannot wait for vm");
    }
}

#[test]
fn calls_are_for_processes_of_the_right_kind() {
    let mut w = world();
    let ordinary = w.candidate(plain(5));
    for call in rt::call::FIRST..=rt::call::RQRCV {
        if call != rt::call::SET2RT {
            assert_eq!(w.calls(ordinary, call, [0, 0]), error(number::E_MRT_BADPTYPE), "{call:#x}");
        }
    }
    let slot = w.process(plain(5));
    assert_eq!(w.calls(slot, rt::call::SET2RT, [0, 0]), error(number::E_MRT_BADPTYPE));
    for call in [rt::call::RQRCV + 1, rt::call::END - 1] {
        assert_eq!(w.calls(slot, call, [0, 0]), error(number::E_BAD_FCN), "{call:#x}");
    }
    assert_eq!(w.calls(slot, rt::call::SET2NRT, [0, 0]), Ok(0));
    assert_eq!(w.calls(slot, rt::call::SLEEP, [FOREVER as u64, 0]), error(number::E_MRT_BADPTYPE));
    for call in [rt::call::RQRCV + 1, rt::call::END - 1] {
        assert_eq!(w.calls(slot, call, [0, 0]), error(number::E_BAD_FCN), "{call:#x}");
    }
}

#[test]
fn real_time_calls_are_traced_with_their_results() {
    let mut w = world();
    let slot = w.process(plain(5));
    w.node.set_tracing(abi::trace::event::ALL);
    w.m.now += 77;
    let _ = w.calls(slot, rt::call::WAKEUP, [pid(slot), 0]);
    w.node.set_tracing(0);
    let _ = w.calls(slot, rt::call::WAKEUP, [pid(slot), 0]);
    let [record] = w.m.records[..] else { panic!("one record: {:?}", w.m.records) };
    assert_eq!((record.event, record.label), (abi::trace::event::KERNEL_CALL, rt::call::WAKEUP as u32));
    assert_eq!((record.tsc, record.from, record.to), (w.m.now, w.endpoint(slot), Endpoint::NONE));
    assert_eq!((record.words[0], record.words[6] as i64), (pid(slot), -(number::E_MRT_UNSLEEP as i64)));
}

#[test]
fn a_call_goes_on_at_once_unless_somebody_else_is_to_run() {
    let mut w = world();
    let better = w.sleeper(plain(5));
    let worse = w.sleeper(plain(9));
    w.awaken(worse);
    let mut call = |number: u64, argument: u64| {
        let frame = w.node.frame_mut(worse);
        (frame.rax, frame.rdi) = (number, argument);
        w.node.real_time_call(&mut w.m, number)
    };
    assert!(call(rt::call::SEMUP, 99), "an error");
    assert!(!call(rt::call::WAKEUP, pid(better)), "a better process is awake");
    assert_eq!(w.next(), Next::Run(better));
    w.sleep(better);
    assert_eq!(w.next(), Next::Run(worse));
    let frame = w.node.frame_mut(worse);
    (frame.rax, frame.rdi) = (rt::call::SLEEP, FOREVER as u64);
    assert!(!w.node.real_time_call(&mut w.m, rt::call::SLEEP));
}
