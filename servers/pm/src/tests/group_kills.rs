//! As `deaths`, of signals for several processes: each gets them exactly once, and the call returns what it would have returned.

use super::MEMORY;
use super::deaths::{BUFFER, Mortal, at_every_step};
use abi::linux::nr;
use abi::{Endpoint, Errno};
use std::vec::Vec;

const SIGUSR1: u64 = 10;
const SIGKILL: u64 = 9;
const SIGCONT: u64 = 18;
const SIGSTOP: u64 = 19;
/// A real-time signal: pending as often as it is sent.
const REAL_TIME: u64 = 40;
const SET: u64 = BUFFER;
const NO_TIME: u64 = BUFFER + 16;

fn everybody() -> u64 {
    -1_i64 as u64
}

/// Children of this process, in a group of their own.
fn group(m: &mut Mortal, parent: Endpoint, members: usize) -> (u64, Vec<(u64, Endpoint)>) {
    let children: Vec<(u64, Endpoint)> = (0..members).map(|_| m.fork(parent)).collect();
    let (leader, _) = children[0];
    for (pid, _) in &children {
        assert_eq!(m.call(parent, nr::SETPGID, &[*pid, leader]), Some(Ok(0)));
    }
    (leader, children)
}

/// Blocks the signals of this set.
fn block(m: &mut Mortal, child: Endpoint, set: u64) {
    m.world.write(child, SET, &[set, 0, 0, 0]);
    assert_eq!(m.call(child, nr::RT_SIGPROCMASK, &[0, SET, 0, 8]), Some(Ok(0)));
}

/// Takes a pending signal of the set that was blocked.
fn take(m: &mut Mortal, child: Endpoint) -> Result<u64, Errno> {
    if let Some(taken) = m.call(child, nr::RT_SIGTIMEDWAIT, &[SET, 0, NO_TIME, 8]) {
        return taken;
    }
    m.live(&|world| world.pm.handle_notification(Endpoint::CLOCK));
    m.world.answer(child).expect("no time is left")
}

#[test]
fn each_member_of_a_group_gets_a_signal_once() {
    for to_all in [false, true] {
        at_every_step(|m| {
            let (_, shell) = m.fork(m.world.init);
            let (leader, children) = group(m, shell, 3);
            for (_, child) in &children {
                block(m, *child, 1 << (REAL_TIME - 1));
                assert_eq!(m.call(*child, nr::RT_SIGTIMEDWAIT, &[SET, 0, 0, 8]), None);
            }
            let target = if to_all { everybody() } else { leader.wrapping_neg() };
            assert_eq!(m.call(shell, nr::KILL, &[target, REAL_TIME]), Some(Ok(0)));
            for (pid, child) in &children {
                assert_eq!(m.world.answer(*child), Some(Ok(REAL_TIME)), "{pid}");
                assert_eq!(take(m, *child), Err(Errno::EAGAIN), "{pid}");
            }
        });
    }
}

#[test]
fn the_sender_gets_the_signal_of_its_group_once() {
    at_every_step(|m| {
        let (_, children) = group(m, m.world.init, 2);
        let [(_, sender), (_, other)] = children[..] else { unreachable!("two were made") };
        for child in [sender, other] {
            block(m, child, 1 << (REAL_TIME - 1));
        }
        assert_eq!(m.call(other, nr::RT_SIGTIMEDWAIT, &[SET, 0, 0, 8]), None);
        assert_eq!(m.call(sender, nr::KILL, &[0, REAL_TIME]), Some(Ok(0)));
        assert_eq!(m.world.answer(other), Some(Ok(REAL_TIME)));
        assert_eq!(take(m, sender), Ok(REAL_TIME));
        for child in [sender, other] {
            assert_eq!(take(m, child), Err(Errno::EAGAIN));
        }
    });
}

#[test]
fn a_group_that_vanishes_with_the_signal_was_signalled() {
    const IGNORE: u64 = 1;
    const SIGCHLD: u64 = 17;
    for to_all in [false, true] {
        at_every_step(|m| {
            let (_, shell) = m.fork(m.world.init);
            m.world.write(shell, MEMORY.start, &[IGNORE, 0, 0, 0]);
            assert_eq!(m.call(shell, nr::RT_SIGACTION, &[SIGCHLD, MEMORY.start, 0, 8]), Some(Ok(0)));
            let (leader, _) = group(m, shell, 3);
            let target = if to_all { everybody() } else { leader.wrapping_neg() };
            assert_eq!(m.call(shell, nr::KILL, &[target, SIGKILL]), Some(Ok(0)));
            assert_eq!(m.world.pm.programs.system.threads.len(), 2);
            assert_eq!(m.call(shell, nr::KILL, &[target, SIGKILL]), Some(Err(Errno::ESRCH)));
        });
    }
}

#[test]
fn stopped_members_are_killed_and_continued_with_the_others() {
    for (signal, waits) in [(SIGKILL, false), (SIGKILL, true), (SIGCONT, false)] {
        at_every_step(|m| {
            let (_, shell) = m.fork(m.world.init);
            let (leader, children) = group(m, shell, 3);
            let (stopped, thread) = children[1];
            if waits {
                assert_eq!(m.call(thread, nr::PAUSE, &[]), None);
            }
            assert_eq!(m.call(shell, nr::KILL, &[stopped, SIGSTOP]), Some(Ok(0)));
            m.report_interrupted(thread);
            assert_eq!(m.call(shell, nr::KILL, &[leader.wrapping_neg(), signal]), Some(Ok(0)));
            for (_, child) in &children {
                assert_eq!(m.world.is_there(*child), signal == SIGCONT);
            }
            if signal == SIGCONT {
                let table = &m.world.pm.programs.table;
                let process = table.process_by_pid(stopped as u32).expect("it lives");
                assert_eq!(table[process].stopped(), None);
                assert!(!m.thread(thread).waits, "it goes on");
            }
        });
    }
}

#[test]
fn a_signal_that_is_read_by_descriptor_comes_once() {
    const MASK: u64 = 1 << (SIGUSR1 - 1) | 1 << (REAL_TIME - 1);
    at_every_step(|m| {
        let init = m.world.init;
        let (pid, child) = m.fork(init);
        block(m, child, MASK);
        let ask =
            |call, watch| abi::pm::TakeSignals { process: child, call, mask: MASK, address: BUFFER, count: 4, watch };
        assert_eq!(m.request(ask(100, true).message()), Err(Errno::EAGAIN));
        assert_eq!(m.call(init, nr::KILL, &[pid, REAL_TIME]), Some(Ok(0)));
        assert_eq!(m.request(ask(100, true).message()), Ok(1));
        assert_eq!(m.request(ask(101, false).message()), Err(Errno::EAGAIN));
    });
}
