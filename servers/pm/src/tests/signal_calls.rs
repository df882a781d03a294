//! The calls that set up signals, ask for them and send them: arguments, errors, and what is told with a signal.

use super::{Answer, DONE, MEMORY, World, failed};
use abi::linux::nr;
use abi::{Endpoint, Errno};

const BUFFER: u64 = MEMORY.start + 0x100;
const OLD: u64 = BUFFER + 0x80;
const INFO: u64 = BUFFER + 0x100;
const KILL: u64 = 9;
const USR1: u64 = 10;
const SEGV: u64 = 11;
const USR2: u64 = 12;
const TERM: u64 = 15;
const CHLD: u64 = 17;
const CONT: u64 = 18;
const STOP: u64 = 19;
const REAL_TIME: u64 = 40;
const UNSTOPPABLE: u64 = bit(KILL) | bit(STOP);
const RESTORER: u64 = 0x0400_0000;
const HANDLER: u64 = 0xaaaa;
const CLONE_THREAD: u64 = 0x100 | 0x800 | 0x1_0000;

const BLOCK: u64 = 0;
const UNBLOCK: u64 = 1;
const SET: u64 = 2;

const fn bit(signal: u64) -> u64 {
    1 << (signal - 1)
}

fn child() -> (World, u64, Endpoint) {
    let mut world = World::new();
    let (pid, child) = world.fork(world.init);
    (world, pid, child)
}

fn add_thread(world: &mut World, thread: Endpoint) -> (u64, Endpoint) {
    let tid = world.call(thread, nr::CLONE, &[CLONE_THREAD, 0, 0, 0, 0]).unwrap().unwrap();
    (tid, world.newest())
}

fn set_action(world: &mut World, thread: Endpoint, signal: u64, action: [u64; 4]) -> Answer {
    world.write(thread, BUFFER, &action);
    world.call(thread, nr::RT_SIGACTION, &[signal, BUFFER, OLD, 8])
}

fn mask(world: &mut World, thread: Endpoint, how: u64, set: u64) -> Answer {
    world.write(thread, BUFFER, &[set]);
    world.call(thread, nr::RT_SIGPROCMASK, &[how, BUFFER, OLD, 8])
}

fn blocked(world: &mut World, thread: Endpoint) -> u64 {
    assert_eq!(world.call(thread, nr::RT_SIGPROCMASK, &[99, 0, OLD, 8]), DONE, "how means nothing without a set");
    world.read(thread, OLD)
}

fn pending(world: &mut World, thread: Endpoint) -> u64 {
    assert_eq!(world.call(thread, nr::RT_SIGPENDING, &[OLD, 8]), DONE);
    world.read(thread, OLD)
}

/// Signal, errno and code, and the words of the union that a handler was given.
fn handled(world: &mut World, thread: Endpoint) -> [u64; 5] {
    let registers = world.thread(thread).registers;
    assert_eq!(registers.rip, HANDLER, "the handler runs");
    let words: [u64; 6] = world.words(thread, registers.rsi);
    [words[0], words[1], words[2], words[3], words[4]]
}

fn int(value: i32) -> u64 {
    value as u32 as u64
}

#[test]
fn an_action_is_read_back_as_it_was_set() {
    let (mut world, _, child) = child();
    let first = [HANDLER, RESTORER | 0x1000_0000, 0xbbbb, u64::MAX];
    let kept = [HANDLER, RESTORER | 0x1000_0000, 0xbbbb, !UNSTOPPABLE];
    world.write(child, OLD, &[9; 5]);
    assert_eq!(set_action(&mut world, child, USR1, first), DONE);
    assert_eq!(world.words(child, OLD), [0, 0, 0, 0, 9]);
    assert_eq!(set_action(&mut world, child, USR1, [1, 2, 3, 4]), DONE);
    assert_eq!(world.words(child, OLD), kept);
    assert_eq!(set_action(&mut world, child, USR2, first), DONE);
    assert_eq!(world.words(child, OLD), [0; 4], "each signal has its own");
    assert_eq!(world.call(child, nr::RT_SIGACTION, &[USR1, 0, OLD, 8]), DONE);
    assert_eq!(world.words(child, OLD), [1, 2, 3, 4]);
}

#[test]
fn actions_of_kill_and_stop_are_only_read() {
    let (mut world, _, child) = child();
    for signal in [KILL, STOP] {
        assert_eq!(set_action(&mut world, child, signal, [1, 0, 0, 0]), failed(Errno::EINVAL));
        assert_eq!(world.call(child, nr::RT_SIGACTION, &[signal, 0, OLD, 8]), DONE);
        assert_eq!(world.words(child, OLD), [0; 4]);
    }
    for signal in [0, 65, 1 << 32 | USR1] {
        assert_eq!(set_action(&mut world, child, signal, [1, 0, 0, 0]), failed(Errno::EINVAL));
    }
    assert_eq!(set_action(&mut world, child, 64, [1, 0, 0, 0]), DONE);
    for bytes in [0, 7, 9] {
        assert_eq!(world.call(child, nr::RT_SIGACTION, &[USR1, 0, 0, bytes]), failed(Errno::EINVAL));
    }
    for places in [[8, 0], [0, 8]] {
        assert_eq!(world.call(child, nr::RT_SIGACTION, &[USR1, places[0], places[1], 8]), failed(Errno::EFAULT));
    }
}

#[test]
fn a_pending_signal_is_dropped_when_it_is_ignored() {
    for to_thread in [false, true] {
        for (signal, handler, left) in
            [(USR1, 1, 0), (USR1, 0, bit(USR1)), (USR1, 5, bit(USR1)), (CHLD, 0, 0), (CHLD, 5, bit(CHLD))]
        {
            let (mut world, pid, child) = child();
            mask(&mut world, child, SET, bit(USR1) | bit(CHLD) | bit(USR2));
            let call = if to_thread { nr::TKILL } else { nr::KILL };
            world.call(world.init, call, &[pid, signal]);
            world.call(world.init, call, &[pid, USR2]);
            assert_eq!(pending(&mut world, child), bit(signal) | bit(USR2));
            assert_eq!(set_action(&mut world, child, signal, [handler, 0, 0, 0]), DONE);
            assert_eq!(pending(&mut world, child), left | bit(USR2), "{signal} with {handler}");
        }
    }
}

#[test]
fn masks_are_added_removed_and_set() {
    let (mut world, _, child) = child();
    for (how, set, old, new) in [
        (BLOCK, 0b0011, 0, 0b0011),
        (BLOCK, 0b0110, 0b0011, 0b0111),
        (UNBLOCK, 0b1010, 0b0111, 0b0101),
        (SET, 0b1000, 0b0101, 0b1000),
        (SET, u64::MAX, 0b1000, !UNSTOPPABLE),
        (BLOCK, UNSTOPPABLE, !UNSTOPPABLE, !UNSTOPPABLE),
    ] {
        assert_eq!(mask(&mut world, child, how, set), DONE);
        assert_eq!(world.read(child, OLD), old);
        assert_eq!(blocked(&mut world, child), new, "{how} {set:#b}");
    }
    assert_eq!(mask(&mut world, child, 3, 0), failed(Errno::EINVAL));
    for bytes in [0, 7, 9] {
        assert_eq!(world.call(child, nr::RT_SIGPROCMASK, &[SET, BUFFER, 0, bytes]), failed(Errno::EINVAL));
    }
    for places in [[8, 0], [0, 8]] {
        assert_eq!(world.call(child, nr::RT_SIGPROCMASK, &[SET, places[0], places[1], 8]), failed(Errno::EFAULT));
    }
    assert_eq!(world.call(child, nr::RT_SIGPROCMASK, &[SET, 0, 0, 8]), DONE);
}

#[test]
fn pending_are_the_blocked_signals_of_thread_and_process() {
    let (mut world, pid, child) = child();
    let (tid, second) = add_thread(&mut world, child);
    for thread in [child, second] {
        mask(&mut world, thread, SET, bit(USR1) | bit(USR2) | bit(64));
    }
    world.call(world.init, nr::KILL, &[pid, USR1]);
    world.call(world.init, nr::TKILL, &[tid, USR2]);
    world.call(world.init, nr::KILL, &[pid, 64]);
    assert_eq!(pending(&mut world, child), bit(USR1) | bit(64));
    assert_eq!(pending(&mut world, second), bit(USR1) | bit(USR2) | bit(64));
    for (bytes, shown) in [(0, u64::MAX), (4, u64::MAX << 32 | bit(USR1)), (8, bit(USR1) | bit(64))] {
        world.write(child, OLD, &[u64::MAX]);
        assert_eq!(world.call(child, nr::RT_SIGPENDING, &[OLD, bytes]), DONE);
        assert_eq!(world.read(child, OLD), shown, "{bytes}");
    }
    assert_eq!(world.call(child, nr::RT_SIGPENDING, &[OLD, 9]), failed(Errno::EINVAL));
    assert_eq!(world.call(child, nr::RT_SIGPENDING, &[8, 8]), failed(Errno::EFAULT));
}

const STACK: u64 = MEMORY.start + 0x4000;
const ON_STACK: u64 = 1;
const DISABLE: u64 = 2;
const AUTODISARM: u64 = 1 << 31;

fn set_stack(world: &mut World, thread: Endpoint, stack: [u64; 3]) -> Answer {
    world.write(thread, BUFFER, &stack);
    world.call(thread, nr::SIGALTSTACK, &[BUFFER, OLD])
}

fn stack(world: &mut World, thread: Endpoint) -> [u64; 3] {
    assert_eq!(world.call(thread, nr::SIGALTSTACK, &[0, OLD]), DONE);
    world.words(thread, OLD)
}

#[test]
fn an_alternate_stack_has_flags_and_a_least_length() {
    for (flags, length, answer, shown) in [
        (0, 2048, DONE, [STACK, 0, 2048]),
        (0, 2047, failed(Errno::ENOMEM), [0, DISABLE, 0]),
        (ON_STACK, 2048, DONE, [STACK, 0, 2048]),
        (ON_STACK, 2047, failed(Errno::ENOMEM), [0, DISABLE, 0]),
        (DISABLE, 9000, DONE, [0, DISABLE, 0]),
        (DISABLE, 0, DONE, [0, DISABLE, 0]),
        (AUTODISARM, 4096, DONE, [STACK, AUTODISARM, 4096]),
        (AUTODISARM | DISABLE, 4096, DONE, [0, AUTODISARM | DISABLE, 0]),
        (3, 4096, failed(Errno::EINVAL), [0, DISABLE, 0]),
        (4, 4096, failed(Errno::EINVAL), [0, DISABLE, 0]),
    ] {
        let (mut world, _, child) = child();
        world.write(child, OLD, &[9; 4]);
        assert_eq!(set_stack(&mut world, child, [STACK, flags, length]), answer, "{flags:#x} {length}");
        if answer == DONE {
            assert_eq!(world.words(child, OLD), [0, DISABLE, 0, 9], "the one before");
        }
        assert_eq!(stack(&mut world, child), shown, "{flags:#x} {length}");
    }
}

#[test]
fn a_stack_is_replaced_or_disabled_while_the_thread_is_elsewhere() {
    let (mut world, _, child) = child();
    assert_eq!(set_stack(&mut world, child, [STACK, 0, 0x2000]), DONE);
    for (pointer, is_on) in [(STACK, false), (STACK + 1, true), (STACK + 0x2000, true), (STACK + 0x2001, false)] {
        world.thread(child).registers.rsp = pointer;
        assert_eq!(stack(&mut world, child), [STACK, if is_on { ON_STACK } else { 0 }, 0x2000], "{pointer:#x}");
        let answer = if is_on { failed(Errno::EPERM) } else { DONE };
        assert_eq!(set_stack(&mut world, child, [STACK, 0, 0x2000]), answer);
    }
    assert_eq!(set_stack(&mut world, child, [0, DISABLE, 0]), DONE);
    world.thread(child).registers.rsp = STACK + 1;
    assert_eq!(set_stack(&mut world, child, [STACK, AUTODISARM, 0x2000]), DONE);
    assert_eq!(
        set_stack(&mut world, child, [STACK + 0x1000, 0, 0x1000]),
        DONE,
        "one that disarms itself is never busy"
    );
    for places in [[8, 0], [0, 8]] {
        assert_eq!(world.call(child, nr::SIGALTSTACK, &places), failed(Errno::EFAULT));
    }
}

#[test]
fn the_receiver_learns_who_sent_a_signal_and_how() {
    for (call, code) in [(nr::KILL, 0), (nr::TKILL, int(-6)), (nr::TGKILL, int(-6))] {
        let (mut world, pid, child) = child();
        let (sender_pid, sender) = world.user(1000, 100);
        world.call(child, nr::SETUID, &[1000]);
        world.handle_signal(child, USR1, 0);
        let arguments = if call == nr::TGKILL { [pid, pid, USR1] } else { [pid, USR1, 0] };
        assert_eq!(world.call(sender, call, &arguments), DONE);
        world.report_interrupted(child, None);
        assert_eq!(handled(&mut world, child), [USR1, code, sender_pid | 1000 << 32, 0, 0]);
    }
}

#[test]
fn a_signal_for_one_thread_is_handled_by_it_alone() {
    let (mut world, pid, child) = child();
    let (tid, second) = add_thread(&mut world, child);
    world.handle_signal(child, USR1, 0);
    world.thread(second).registers.rsp = MEMORY.end - 0x1000;
    assert_eq!(world.call(world.init, nr::TGKILL, &[pid, tid, USR1]), DONE);
    assert!(!world.thread(child).interrupted && world.thread(second).interrupted);
    world.report_interrupted(second, None);
    assert_eq!(handled(&mut world, second)[0], USR1);
    for (arguments, error) in [
        ([pid + 50, tid, USR1], Errno::ESRCH),
        ([pid, tid + 50, USR1], Errno::ESRCH),
        ([pid, tid, 65], Errno::EINVAL),
        ([0, tid, USR1], Errno::EINVAL),
        ([pid, 0, USR1], Errno::EINVAL),
        ([u64::MAX, tid, USR1], Errno::EINVAL),
        ([pid, u64::MAX, USR1], Errno::EINVAL),
    ] {
        assert_eq!(world.call(world.init, nr::TGKILL, &arguments), failed(error), "{arguments:?}");
        world.write(world.init, INFO, &[0, int(-1), 0, 0, 0, 0]);
        let queued = [arguments[0], arguments[1], arguments[2], INFO];
        assert_eq!(world.call(world.init, nr::RT_TGSIGQUEUEINFO, &queued), failed(error), "{arguments:?}");
    }
    assert_eq!(world.call(world.init, nr::TGKILL, &[pid, tid, 0]), DONE);
    assert_eq!(world.call(world.init, nr::TKILL, &[1, 0]), DONE, "1 is the first id");
    assert_eq!(world.call(world.init, nr::TGKILL, &[1, 1, 0]), DONE);
    for (tid, error) in [(0, Errno::EINVAL), (u64::MAX, Errno::EINVAL), (4000, Errno::ESRCH)] {
        assert_eq!(world.call(world.init, nr::TKILL, &[tid, USR1]), failed(error));
    }
}

#[test]
fn a_thread_without_the_right_sends_nothing_to_threads() {
    let (mut world, pid, child) = child();
    let (_, stranger) = world.user(1000, 100);
    world.write(stranger, INFO, &[0, int(-1), 0, 0, 0, 0]);
    for (call, arguments) in [
        (nr::TKILL, [pid, TERM, 0, 0]),
        (nr::TGKILL, [pid, pid, TERM, 0]),
        (nr::RT_SIGQUEUEINFO, [pid, TERM, INFO, 0]),
        (nr::RT_TGSIGQUEUEINFO, [pid, pid, TERM, INFO]),
    ] {
        assert_eq!(world.call(stranger, call, &arguments), failed(Errno::EPERM));
        assert!(!world.thread(child).interrupted);
    }
}

/// Queues a signal for a process (`tid` 0) or a thread of it, with this siginfo.
fn queue(world: &mut World, from: Endpoint, (pid, tid): (u64, u64), signal: u64, code: i32) -> Answer {
    world.write(from, INFO, &[99 | 7 << 32, int(code), 0x11, 0x22, 0x33, 0x44]);
    match tid {
        0 => world.call(from, nr::RT_SIGQUEUEINFO, &[pid, signal, INFO]),
        tid => world.call(from, nr::RT_TGSIGQUEUEINFO, &[pid, tid, signal, INFO]),
    }
}

fn queue_from_init(world: &mut World, target: (u64, u64), signal: u64, code: i32) -> Answer {
    let init = world.init;
    queue(world, init, target, signal, code)
}

#[test]
fn a_queued_signal_brings_the_senders_siginfo() {
    for to_thread in [false, true] {
        let (mut world, pid, child) = child();
        world.handle_signal(child, REAL_TIME, 0);
        let target = (pid, if to_thread { pid } else { 0 });
        assert_eq!(queue_from_init(&mut world, target, REAL_TIME, -1), DONE);
        world.report_interrupted(child, None);
        let info = world.thread(child).registers.rsi;
        assert_eq!(world.words(child, info), [REAL_TIME | 7 << 32, int(-1), 0x11, 0x22, 0x33, 0x44, 0, 0]);
        assert_eq!(queue_from_init(&mut world, target, 0, -1), DONE, "only asks");
        assert_eq!(queue_from_init(&mut world, target, 65, -1), failed(Errno::EINVAL));
    }
}

#[test]
fn nobody_pretends_to_others_that_the_kernel_or_kill_sent_a_signal() {
    for (code, to_others) in
        [(0, false), (1, false), (0x80, false), (-6, false), (-1, true), (-2, true), (-5, true), (-7, true)]
    {
        for to_thread in [false, true] {
            let (mut world, pid, child) = child();
            mask(&mut world, child, SET, bit(REAL_TIME));
            let target = (pid, if to_thread { pid } else { 0 });
            let answer = if to_others { DONE } else { failed(Errno::EPERM) };
            assert_eq!(queue_from_init(&mut world, target, REAL_TIME, code), answer, "{code}");
            assert_eq!(pending(&mut world, child) != 0, to_others);
            assert_eq!(queue(&mut world, child, target, REAL_TIME, code), DONE, "to itself");
            assert_eq!(pending(&mut world, child), bit(REAL_TIME));
        }
    }
}

#[test]
fn queueing_needs_a_process_and_a_siginfo() {
    let (mut world, pid, child) = child();
    for target in [4000, u64::MAX] {
        assert_eq!(queue_from_init(&mut world, (target, 0), REAL_TIME, -1), failed(Errno::ESRCH));
    }
    assert_eq!(world.call(world.init, nr::RT_SIGQUEUEINFO, &[pid, REAL_TIME, 8]), failed(Errno::EFAULT));
    assert_eq!(world.call(world.init, nr::RT_TGSIGQUEUEINFO, &[pid, pid, REAL_TIME, 8]), failed(Errno::EFAULT));
    assert!(world.is_there(child));
}

#[test]
fn real_time_signals_queue_in_order_up_to_the_limit() {
    let (mut world, pid, child) = child();
    mask(&mut world, child, SET, u64::MAX);
    world.write(world.init, BUFFER, &[3, 3]);
    assert_eq!(world.call(world.init, nr::PRLIMIT64, &[pid, 11, BUFFER, 0]), DONE);
    for (signal, answer) in
        [(41, DONE), (40, DONE), (41, DONE), (41, failed(Errno::EAGAIN)), (USR1, DONE), (USR1, DONE)]
    {
        assert_eq!(queue_from_init(&mut world, (pid, 0), signal, -1), answer, "{signal}");
    }
    for wanted in [40, 41, 41] {
        world.write(child, BUFFER, &[bit(40) | bit(41), 0, 0]);
        assert_eq!(world.call(child, nr::RT_SIGTIMEDWAIT, &[BUFFER, 0, 0, 8]), Some(Ok(wanted)));
    }
    assert_eq!(pending(&mut world, child), bit(USR1));
    for (signal, answer) in [(41, DONE), (41, DONE), (41, failed(Errno::EAGAIN))] {
        assert_eq!(queue_from_init(&mut world, (pid, 0), signal, -1), answer, "a standard signal counts, too");
    }
}

/// Whether a signal of these users' ids (real, effective, saved) reaches those.
fn reaches(from: [u64; 3], to: [u64; 3], signal: u64, same_session: bool) -> bool {
    let (mut world, pid, target) = child();
    let (_, sender) = world.fork(world.init);
    world.call(target, nr::SETRESUID, &to);
    if !same_session {
        world.call(sender, nr::SETSID, &[]).unwrap().unwrap();
    }
    world.call(sender, nr::SETRESUID, &from);
    match world.call(sender, nr::KILL, &[pid, signal]) {
        DONE => true,
        Some(Err(Errno::EPERM)) => false,
        other => panic!("{other:?}"),
    }
}

#[test]
fn signals_need_a_common_user() {
    for (from, to, may) in [
        ([1, 1, 1], [1, 5, 5], true),
        ([1, 1, 1], [5, 5, 1], true),
        ([1, 1, 1], [5, 1, 5], false),
        ([1, 2, 2], [1, 5, 5], true),
        ([2, 1, 2], [1, 5, 5], true),
        ([2, 1, 2], [5, 5, 1], true),
        ([2, 2, 1], [1, 1, 1], false),
        ([2, 0, 2], [1, 1, 1], true),
        ([0, 2, 2], [1, 1, 1], false),
    ] {
        for signal in [0, TERM] {
            assert_eq!(reaches(from, to, signal, true), may, "{from:?} to {to:?}, signal {signal}");
        }
    }
    assert!(reaches([1; 3], [2; 3], CONT, true), "anybody of the session may continue a process");
    assert!(!reaches([1; 3], [2; 3], CONT, false));
    assert!(!reaches([1; 3], [2; 3], TERM, true));
    assert!(!reaches([1; 3], [2; 3], STOP, true));
}

#[test]
fn a_signal_goes_to_a_thread_that_does_not_block_it() {
    let (mut world, pid, child) = child();
    let (_, second) = add_thread(&mut world, child);
    world.handle_signal(child, USR1, 0);
    world.thread(second).registers.rsp = MEMORY.end - 0x1000;
    mask(&mut world, child, SET, bit(USR1));
    world.call(world.init, nr::KILL, &[pid, USR1]);
    assert!(!world.thread(child).interrupted && world.thread(second).interrupted);
    world.report_interrupted(second, None);
    assert_eq!(handled(&mut world, second)[0], USR1);
    assert_eq!(pending(&mut world, child), 0);
}

#[test]
fn a_signal_that_all_threads_block_goes_to_the_first_that_lets_it_in() {
    let (mut world, pid, child) = child();
    let (_, second) = add_thread(&mut world, child);
    world.handle_signal(child, USR1, 0);
    world.thread(second).registers.rsp = MEMORY.end - 0x1000;
    for thread in [child, second] {
        mask(&mut world, thread, SET, bit(USR1) | bit(SEGV));
    }
    world.call(world.init, nr::KILL, &[pid, USR1]);
    assert!(!world.thread(child).interrupted && !world.thread(second).interrupted);
    world.write(second, BUFFER, &[bit(USR1)]);
    assert_eq!(world.call(second, nr::RT_SIGPROCMASK, &[UNBLOCK, BUFFER, 0, 8]), None);
    assert_eq!(handled(&mut world, second)[0], USR1);
    assert_eq!(pending(&mut world, child), 0);
}
