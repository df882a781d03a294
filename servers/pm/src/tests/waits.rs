//! What `wait4` and `waitid` tell of children that end, stop and continue, and the SIGCHLD that goes with it.

use super::{Answer, DONE, MEMORY, SECOND, World, failed};
use crate::system::Footprint;
use abi::linux::nr;
use abi::{Endpoint, Errno};

const BUFFER: u64 = MEMORY.start + 0x100;
const USAGE: u64 = BUFFER + 0x200;
const ANY: u64 = u64::MAX;

const NO_HANG: u64 = 1;
const STOPPED: u64 = 2;
const EXITED: u64 = 4;
const CONTINUED: u64 = 8;
const NO_WAIT: u64 = 0x0100_0000;
const ALL: u64 = 0x4000_0000;
const CLONE: u64 = 0x8000_0000;

const USR1: u64 = 10;
const CHLD: u64 = 17;
const CONT: u64 = 18;
const STOP: u64 = 19;
const TSTP: u64 = 20;
const NO_CHILD_STOP: u64 = 1;
const NO_CHILD_WAIT: u64 = 2;
const CLONE_THREAD: u64 = 0x100 | 0x800 | 0x1_0000;

/// A parent in a session of its own, and its child.
struct Family {
    world: World,
    parent: Endpoint,
    pid: u64,
    child: Endpoint,
}

fn family() -> Family {
    let mut world = World::new();
    let (_, parent) = world.fork(world.init);
    world.call(parent, nr::SETSID, &[]).unwrap().unwrap();
    let (pid, child) = world.fork(parent);
    Family { world, parent, pid, child }
}

impl Family {
    fn wait4(&mut self, pid: u64, options: u64) -> Answer {
        self.world.write(self.parent, BUFFER, &[u64::MAX]);
        self.world.call(self.parent, nr::WAIT4, &[pid, BUFFER, options, 0])
    }

    /// What `wait4` writes.
    fn status(&mut self) -> u32 {
        let word = self.world.read(self.parent, BUFFER);
        assert_eq!(word >> 32, 0xffff_ffff, "four bytes are written");
        word as u32
    }

    fn waitid(&mut self, kind: u64, id: u64, options: u64) -> Answer {
        self.world.write(self.parent, BUFFER, &[u64::MAX; 17]);
        self.world.call(self.parent, nr::WAITID, &[kind, id, BUFFER, options, 0])
    }

    /// Signal, code, pid, user and status that `waitid` writes.
    fn info(&mut self) -> [u64; 5] {
        let words: [u64; 17] = self.world.words(self.parent, BUFFER);
        assert_eq!(words[16], u64::MAX, "128 bytes are written");
        assert_eq!(words[4..16], [0; 12]);
        assert_eq!((words[0] >> 32, words[1] >> 32), (0, 0));
        [words[0], words[1], words[2] & 0xffff_ffff, words[2] >> 32, words[3]]
    }

    fn kill(&mut self, signal: u64) {
        assert_eq!(self.world.call(self.parent, nr::KILL, &[self.pid, signal]), DONE);
    }

    fn exit(&mut self, status: u64) {
        self.world.call(self.child, nr::EXIT_GROUP, &[status]);
    }

    fn fork(&mut self) -> (u64, Endpoint) {
        self.world.fork(self.parent)
    }
}

#[test]
fn a_stop_and_a_continuation_are_told_once_to_those_who_ask() {
    let mut f = family();
    f.kill(STOP);
    assert_eq!(f.wait4(ANY, NO_HANG), DONE);
    assert_eq!(f.wait4(ANY, NO_HANG | CONTINUED), DONE);
    assert_eq!(f.wait4(ANY, STOPPED), Some(Ok(f.pid)));
    assert_eq!(f.status(), 0x137f);
    assert_eq!(f.wait4(ANY, NO_HANG | STOPPED), DONE);
    f.kill(CONT);
    assert_eq!(f.wait4(ANY, NO_HANG | STOPPED), DONE);
    assert_eq!(f.wait4(ANY, CONTINUED), Some(Ok(f.pid)));
    assert_eq!(f.status(), 0xffff);
    assert_eq!(f.wait4(ANY, NO_HANG | CONTINUED), DONE);
}

#[test]
fn a_wait_for_stopped_children_ends_when_one_stops() {
    let mut f = family();
    let (_, other) = f.fork();
    let (parent, pid) = (f.parent, f.pid);
    for (options, signal, status) in [(STOPPED, STOP, 0x137f), (CONTINUED, CONT, 0xffff)] {
        assert_eq!(f.wait4(ANY, options), None);
        f.world.call(other, nr::KILL, &[pid, signal]);
        assert_eq!(f.world.answer(parent), Some(Ok(pid)));
        assert_eq!(f.status(), status);
    }
}

#[test]
fn a_stop_that_is_taken_back_is_not_told() {
    let mut f = family();
    f.kill(STOP);
    f.kill(CONT);
    assert_eq!(f.wait4(ANY, NO_HANG | STOPPED), DONE);
    f.kill(STOP);
    assert_eq!(f.wait4(ANY, NO_HANG | CONTINUED), DONE, "nor is a continuation");
    assert_eq!(f.wait4(ANY, NO_HANG | STOPPED), Some(Ok(f.pid)));
}

#[test]
fn a_continuation_without_a_stop_is_nothing() {
    let mut f = family();
    f.kill(CONT);
    assert_eq!(f.wait4(ANY, NO_HANG | CONTINUED), DONE);
}

#[test]
fn a_further_stop_is_told_again() {
    let mut f = family();
    assert_eq!(f.world.call(f.parent, nr::SETPGID, &[f.pid, f.pid]), DONE);
    f.kill(TSTP);
    f.world.report_interrupted(f.child, None);
    assert_eq!(f.wait4(ANY, STOPPED), Some(Ok(f.pid)));
    assert_eq!(f.status(), 0x147f);
    f.kill(CONT);
    f.kill(STOP);
    assert_eq!(f.wait4(ANY, STOPPED), Some(Ok(f.pid)));
    assert_eq!(f.status(), 0x137f);
}

#[test]
fn waitid_describes_what_has_happened() {
    let mut f = family();
    let (pid, child) = (f.pid, f.child);
    f.world.call(child, nr::SETUID, &[1000]);
    f.kill(STOP);
    assert_eq!(f.waitid(0, 0, STOPPED | NO_WAIT), DONE);
    assert_eq!(f.info(), [CHLD, 5, pid, 1000, STOP]);
    assert_eq!(f.waitid(1, pid, STOPPED | EXITED), DONE);
    assert_eq!(f.info(), [CHLD, 5, pid, 1000, STOP]);
    assert_eq!(f.waitid(0, 0, STOPPED | NO_HANG), DONE);
    assert_eq!(f.info(), [0; 5], "nothing");
    f.kill(CONT);
    assert_eq!(f.waitid(0, 0, CONTINUED | NO_WAIT), DONE);
    assert_eq!(f.info(), [CHLD, 6, pid, 1000, CONT]);
    assert_eq!(f.waitid(0, 0, CONTINUED), DONE);
    assert_eq!(f.waitid(0, 0, CONTINUED | NO_HANG), DONE);
    assert_eq!(f.info(), [0; 5]);
    f.kill(9);
    assert_eq!(f.waitid(0, 0, STOPPED | NO_HANG), DONE);
    assert_eq!(f.waitid(0, 0, EXITED), DONE);
    assert_eq!(f.info(), [CHLD, 2, pid, 1000, 9]);
    let (pid, child) = f.fork();
    f.world.call(child, nr::EXIT_GROUP, &[300]);
    assert_eq!(f.waitid(0, 0, EXITED), DONE);
    assert_eq!(f.info(), [CHLD, 1, pid, 0, 300 & 0xff]);
}

#[test]
fn nothing_is_written_where_no_address_is_given() {
    let mut f = family();
    let parent = f.parent;
    assert_eq!(f.world.call(parent, nr::WAITID, &[0, 0, 0, EXITED | NO_HANG, 0]), DONE);
    assert_eq!(f.world.call(parent, nr::WAITID, &[0, 0, 8, EXITED | NO_HANG, 0]), failed(Errno::EFAULT));
    f.exit(0);
    assert_eq!(f.world.call(parent, nr::WAITID, &[0, 0, 0, EXITED | NO_WAIT, 0]), DONE);
    assert_eq!(f.world.call(parent, nr::WAITID, &[0, 0, 8, EXITED | NO_WAIT, 0]), failed(Errno::EFAULT));
    assert_eq!(f.world.call(parent, nr::WAITID, &[0, 0, 0, EXITED | NO_WAIT, 8]), failed(Errno::EFAULT));
    assert_eq!(f.world.call(parent, nr::WAIT4, &[ANY, 0, 0, 0]), Some(Ok(f.pid)));
    f.child = f.fork().1;
    f.exit(0);
    assert_eq!(f.world.call(parent, nr::WAIT4, &[ANY, 8, 0, 0]), failed(Errno::EFAULT));
}

#[test]
fn wait4_chooses_by_pid_group_or_any() {
    let mut f = family();
    let (parent, own) = (f.parent, f.pid);
    let group = f.world.call(parent, nr::GETPGRP, &[]).unwrap().unwrap();
    let (other, child) = f.fork();
    assert_eq!(f.world.call(parent, nr::SETPGID, &[other, other]), DONE);
    f.exit(1);
    f.world.call(child, nr::EXIT_GROUP, &[2]);
    let negative = |id: u64| (id as i64).wrapping_neg() as u64;
    for (pid, answer) in [
        (own + 100, failed(Errno::ECHILD)),
        (negative(own), failed(Errno::ECHILD)),
        (1 << 31, failed(Errno::ESRCH)),
        (negative(other), Some(Ok(other))),
    ] {
        assert_eq!(f.wait4(pid, 0), answer, "{pid:#x}");
    }
    assert_eq!(f.wait4(other, 0), failed(Errno::ECHILD));
    let (_, third) = f.fork();
    f.world.call(third, nr::EXIT_GROUP, &[3]);
    assert_eq!(f.wait4(0, 0), Some(Ok(own)), "of its own group");
    assert!(f.wait4(negative(group), 0).unwrap().is_ok());
    assert_eq!(f.wait4(ANY, 0), failed(Errno::ECHILD));
}

#[test]
fn waitid_chooses_by_pid_group_or_any() {
    let mut f = family();
    let (parent, own) = (f.parent, f.pid);
    let group = f.world.call(parent, nr::GETPGRP, &[]).unwrap().unwrap();
    f.exit(1);
    let options = EXITED | NO_WAIT | NO_HANG;
    for (kind, id, answer) in [
        (0, 77, DONE),
        (1, own, DONE),
        (1, own + 100, failed(Errno::ECHILD)),
        (1, 0, failed(Errno::EINVAL)),
        (1, 1 << 31, failed(Errno::EINVAL)),
        (2, 0, DONE),
        (2, group, DONE),
        (2, own, failed(Errno::ECHILD)),
        (2, 1 << 31, failed(Errno::EINVAL)),
        (3, 0, failed(Errno::EBADF)),
        (3, 1 << 31, failed(Errno::EINVAL)),
        (4, 0, failed(Errno::EINVAL)),
    ] {
        assert_eq!(f.waitid(kind, id, options), answer, "{kind} {id:#x}");
    }
}

#[test]
fn unknown_options_are_refused() {
    let mut f = family();
    for bit in 0..32 {
        let option = 1 << bit;
        let known = [NO_HANG, STOPPED, CONTINUED, 0x2000_0000, ALL, CLONE].contains(&option);
        let answer = f.wait4(f.pid, option | NO_HANG);
        assert_eq!(answer == failed(Errno::EINVAL), !known, "wait4, {option:#x}: {answer:?}");
        let known = known || [EXITED, NO_WAIT].contains(&option);
        let answer = f.waitid(1, f.pid, option | EXITED | NO_HANG);
        assert_eq!(answer == failed(Errno::EINVAL), !known, "waitid, {option:#x}: {answer:?}");
    }
    assert_eq!(f.wait4(ANY, 1 << 32 | NO_HANG), DONE, "options are an int");
    assert_eq!(f.waitid(0, 0, 1 << 32 | EXITED | NO_HANG), DONE);
    assert_eq!(f.waitid(0, 0, NO_HANG), failed(Errno::EINVAL), "it waits for nothing");
}

#[test]
fn children_with_another_signal_are_waited_for_when_asked_for() {
    for (signal, options, found) in
        [(0, 0, false), (USR1, 0, false), (0, ALL, true), (0, CLONE, true), (CHLD, CLONE, false), (CHLD, ALL, true)]
    {
        let mut world = World::new();
        let init = world.init;
        let pid = world.call(init, nr::CLONE, &[signal, 0, 0, 0, 0]).unwrap().unwrap();
        world.call(world.newest(), nr::EXIT_GROUP, &[0]);
        let answer = if found { Some(Ok(pid)) } else { failed(Errno::ECHILD) };
        assert_eq!(world.call(init, nr::WAIT4, &[ANY, 0, options, 0]), answer, "signal {signal}, options {options:#x}");
    }
}

#[test]
fn the_usage_of_a_child_counts_its_threads_and_the_children_it_waited_for() {
    let mut f = family();
    let (parent, pid, child) = (f.parent, f.pid, f.child);
    let (_, grandchild) = f.world.fork(child);
    f.world.thread(grandchild).run_ns = 3 * SECOND;
    f.world.call(grandchild, nr::EXIT_GROUP, &[0]);
    f.world.call(child, nr::WAIT4, &[ANY, 0, 0, 0]).unwrap().unwrap();
    f.world.call(child, nr::CLONE, &[CLONE_THREAD, 0, 0, 0, 0]).unwrap().unwrap();
    let thread = f.world.newest();
    f.world.thread(thread).run_ns = 20 * SECOND + 5_000;
    f.world.call(thread, nr::EXIT, &[0]);
    f.world.thread(child).run_ns = 100 * SECOND + 2_000;
    f.world.write(parent, USAGE, &[9; 19]);
    f.exit(0);
    assert_eq!(f.world.call(parent, nr::WAIT4, &[pid, 0, 0, USAGE]), Some(Ok(pid)));
    let mut usage = [0; 19];
    (usage[0], usage[1], usage[18]) = (123, 7, 9);
    assert_eq!(f.world.words(parent, USAGE), usage);
    assert_eq!(f.world.call(parent, nr::TIMES, &[USAGE]).map(|answer| answer.is_ok()), Some(true));
    assert_eq!(f.world.words(parent, USAGE), [0, 0, 12300, 0]);
    assert_eq!(f.world.call(parent, nr::GETRUSAGE, &[-1i64 as u64, USAGE]), DONE);
    assert_eq!(f.world.words(parent, USAGE), [123, 7]);
}

#[test]
fn the_usage_of_a_child_has_the_largest_memory_and_all_faults_and_waits() {
    let mut f = family();
    let (parent, pid, child) = (f.parent, f.pid, f.child);
    let footprint = |faults, kib: u64| Footprint { faults, peak_bytes: kib << 10 };
    let (_, grandchild) = f.world.fork(child);
    f.world.thread(grandchild).footprint = footprint(30, 900);
    f.world.thread(grandchild).waited = 5;
    f.world.call(grandchild, nr::EXIT_GROUP, &[0]);
    f.world.call(child, nr::WAIT4, &[ANY, 0, 0, 0]).unwrap().unwrap();
    f.world.thread(child).footprint = footprint(7, 400);
    f.world.thread(child).waited = 2;
    assert_eq!(f.world.call(child, nr::GETRUSAGE, &[0, USAGE]), DONE);
    let figures = |world: &mut World, who| {
        let words: [u64; 18] = world.words(who, USAGE);
        [words[4], words[8], words[16]]
    };
    assert_eq!(figures(&mut f.world, child), [400, 7, 2]);
    f.exit(0);
    assert_eq!(f.world.call(parent, nr::WAIT4, &[pid, 0, 0, USAGE]), Some(Ok(pid)));
    assert_eq!(figures(&mut f.world, parent), [900, 37, 7]);
    f.world.thread(parent).footprint = footprint(1, 100);
    for (who, figure) in [(0i64, [100, 1, 0]), (1, [100, 1, 0]), (-1, [900, 37, 7])] {
        assert_eq!(f.world.call(parent, nr::GETRUSAGE, &[who as u64, USAGE]), DONE);
        assert_eq!(figures(&mut f.world, parent), figure, "{who}");
    }
}

/// The siginfo that the handler of a thread was given: signal, code, pid, user, status, ticks.
fn handled(world: &mut World, thread: Endpoint) -> [u64; 6] {
    let registers = world.thread(thread).registers;
    assert_eq!(registers.rip, 0xaaaa, "the handler runs");
    let words: [u64; 5] = world.words(thread, registers.rsi);
    [words[0], words[1], words[2] & 0xffff_ffff, words[2] >> 32, words[3], words[4]]
}

#[test]
fn sigchld_tells_what_has_happened_to_the_child() {
    for (act, code, status) in [(9, 2, 9), (STOP, 5, STOP), (CONT, 6, CONT), (0, 1, 77)] {
        let mut f = family();
        let (parent, pid, child) = (f.parent, f.pid, f.child);
        f.world.call(child, nr::SETUID, &[1000]);
        f.world.thread(child).run_ns = 5 * SECOND;
        if act == CONT {
            f.kill(STOP);
        }
        f.world.handle_signal(parent, CHLD, 0);
        match act {
            0 => f.exit(77),
            signal => assert_eq!(f.world.call(f.world.init, nr::KILL, &[pid, signal]), DONE),
        }
        f.world.report_interrupted(parent, None);
        let ticks = if matches!(act, 9 | 0) { 500 } else { 0 };
        assert_eq!(handled(&mut f.world, parent), [CHLD, code, pid, 1000, status, ticks]);
    }
}

#[test]
fn who_does_not_want_to_hear_of_stops_still_waits_for_them() {
    let mut f = family();
    let (parent, pid) = (f.parent, f.pid);
    f.world.handle_signal(parent, CHLD, NO_CHILD_STOP);
    assert_eq!(f.wait4(ANY, STOPPED), None);
    f.world.call(f.world.init, nr::KILL, &[pid, STOP]);
    assert_eq!(f.world.answer(parent), Some(Ok(pid)));
    f.world.call(f.world.init, nr::KILL, &[pid, CONT]);
    assert!(!f.world.thread(parent).interrupted);
    f.exit(0);
    assert!(f.world.thread(parent).interrupted, "its end is told");
}

#[test]
fn children_that_nobody_keeps_are_gone_but_their_end_is_told() {
    let mut f = family();
    let parent = f.parent;
    f.world.handle_signal(parent, CHLD, NO_CHILD_WAIT);
    f.exit(5);
    f.world.report_interrupted(parent, None);
    let pid = f.pid;
    assert_eq!(handled(&mut f.world, parent), [CHLD, 1, pid, 0, 5, 0]);
    assert_eq!(f.wait4(ANY, NO_HANG), failed(Errno::ECHILD));
}

#[test]
fn a_signal_of_its_own_tells_the_end_of_a_clone() {
    let mut f = family();
    let parent = f.parent;
    f.world.write(parent, BUFFER, &[1, 0, 0, 0]);
    assert_eq!(f.world.call(parent, nr::RT_SIGACTION, &[CHLD, BUFFER, 0, 8]), DONE);
    f.world.handle_signal(parent, USR1, 0);
    let pid = f.world.call(parent, nr::CLONE, &[USR1, 0, 0, 0, 0]).unwrap().unwrap();
    f.world.call(f.world.newest(), nr::EXIT_GROUP, &[5]);
    f.world.report_interrupted(parent, None);
    assert_eq!(handled(&mut f.world, parent), [USR1, 1, pid, 0, 5, 0]);
    assert_eq!(f.wait4(ANY, ALL | NO_HANG), Some(Ok(pid)), "ignored SIGCHLD is no matter");
    f.exit(0);
    assert!(!f.world.thread(parent).interrupted);
    assert_eq!(f.wait4(ANY, ALL), failed(Errno::ECHILD));
}

#[test]
fn the_adopted_child_of_another_signal_tells_its_end_by_sigchld() {
    let mut f = family();
    let (child, init) = (f.child, f.world.init);
    let pid = f.world.call(child, nr::CLONE, &[USR1, 0, 0, 0, 0]).unwrap().unwrap();
    let grandchild = f.world.newest();
    f.exit(0);
    f.world.handle_signal(init, CHLD, 0);
    f.world.call(grandchild, nr::EXIT_GROUP, &[6]);
    f.world.report_interrupted(init, None);
    assert_eq!(handled(&mut f.world, init), [CHLD, 1, pid, 0, 6, 0]);
    assert_eq!(f.world.call(init, nr::WAIT4, &[pid, 0, 0, 0]), Some(Ok(pid)));
}

#[test]
fn zombies_change_their_parent_too() {
    let mut f = family();
    let (child, init) = (f.child, f.world.init);
    let (pid, grandchild) = f.world.fork(child);
    f.world.call(grandchild, nr::EXIT_GROUP, &[6]);
    assert_eq!(f.world.call(init, nr::WAIT4, &[pid, BUFFER, 0, 0]), failed(Errno::ECHILD));
    f.exit(0);
    assert_eq!(f.world.call(init, nr::WAIT4, &[pid, BUFFER, 0, 0]), Some(Ok(pid)));
    assert_eq!(f.world.read(init, BUFFER) as u32, 0x600);
}

#[test]
fn an_adopted_zombie_vanishes_where_nobody_wants_it() {
    let mut f = family();
    let (child, init) = (f.child, f.world.init);
    f.world.write(init, BUFFER, &[1, 0, 0, 0]);
    assert_eq!(f.world.call(init, nr::RT_SIGACTION, &[CHLD, BUFFER, 0, 8]), DONE);
    let (pid, grandchild) = f.world.fork(child);
    f.world.call(grandchild, nr::EXIT_GROUP, &[6]);
    assert_eq!(f.world.call(init, nr::KILL, &[pid, 0]), DONE);
    f.exit(0);
    assert_eq!(f.world.call(init, nr::KILL, &[pid, 0]), failed(Errno::ESRCH));
}

#[test]
fn each_thread_waits_for_the_children_of_all() {
    let mut f = family();
    let parent = f.parent;
    f.world.call(parent, nr::CLONE, &[CLONE_THREAD, 0, 0, 0, 0]).unwrap().unwrap();
    let second = f.world.newest();
    assert_eq!(f.world.call(second, nr::WAIT4, &[ANY, 0, 0, 0]), None);
    assert_eq!(f.wait4(ANY, 0), None);
    f.exit(0);
    assert_eq!(f.world.answer(parent), Some(Ok(f.pid)));
    assert_eq!(f.world.answer(second), failed(Errno::ECHILD));
}

#[test]
fn a_wait_is_repeated_after_a_handler_if_that_is_wanted() {
    for (flags, rip, rax) in [(0x1000_0000, 0x5000, nr::WAIT4 as u64), (0, 0x5002, -4i64 as u64)] {
        let mut f = family();
        let (parent, child) = (f.parent, f.child);
        f.world.handle_signal(parent, USR1, flags);
        f.world.thread(parent).registers.rip = 0x5002;
        let pid = f.world.call(parent, nr::GETPID, &[]).unwrap().unwrap();
        assert_eq!(f.wait4(ANY, 0), None);
        f.world.call(child, nr::KILL, &[pid, USR1]);
        f.world.thread(parent).registers.rsp += 8;
        f.world.call(parent, nr::RT_SIGRETURN, &[]);
        let registers = f.world.thread(parent).registers;
        assert_eq!((registers.rip, registers.rax), (rip, rax));
    }
}

#[test]
fn a_wait_does_not_begin_while_a_handler_is_to_run() {
    let mut f = family();
    let (parent, child) = (f.parent, f.child);
    f.world.handle_signal(parent, USR1, 0);
    let pid = f.world.call(parent, nr::GETPID, &[]).unwrap().unwrap();
    f.world.call(child, nr::KILL, &[pid, USR1]);
    assert_eq!(f.wait4(ANY, 0), None);
    assert_eq!(f.world.thread(parent).registers.rip, 0xaaaa);
    f.exit(0);
    assert_eq!(f.world.answer(parent), None, "it is not in the call");
}
