//! As `deaths`, of calls and signals that write to a program's memory: pm may die over each copy, which may ask vm for a page.

use super::MEMORY;
use super::deaths::{BUFFER, at_every_step};
use crate::state::signal::action::RESTORER;
use abi::Endpoint;
use abi::linux::nr;

#[test]
fn a_signal_is_waited_for_once() {
    const USR1: u64 = 10;
    at_every_step(|m| {
        let init = m.world.init;
        let (pid, child) = m.fork(init);
        m.world.write(child, BUFFER, &[1 << (USR1 - 1)]);
        assert_eq!(m.call(child, nr::RT_SIGPROCMASK, &[0, BUFFER, 0, 8]), Some(Ok(0)));
        for _ in 0..2 {
            m.world.write(child, BUFFER + 8, &[0]);
            assert_eq!(m.call(child, nr::RT_SIGTIMEDWAIT, &[BUFFER, BUFFER + 8, 0, 8]), None);
            assert_eq!(m.call(init, nr::KILL, &[pid, USR1]), Some(Ok(0)));
            assert_eq!(m.world.answer(child), Some(Ok(USR1)));
            assert_eq!(m.world.read(child, BUFFER + 8) as u32, USR1 as u32);
        }
    });
}

#[test]
fn a_call_that_sets_something_returns_what_was_there_before() {
    const USR1: u64 = 10;
    const HANDLER: u64 = 0xaaaa;
    const SETMASK: u64 = 2;
    const VIRTUAL: u64 = 1;
    const CORE: u64 = 4;
    const NOFILE: u64 = 7;
    const OLD: u64 = BUFFER + 0x100;
    at_every_step(|m| {
        let init = m.world.init;
        let mut swap = |number: u32, arguments: &[u64], first: &[u64], second: &[u64]| {
            for (new, old) in [(first, None), (second, Some(first))] {
                m.world.write(init, BUFFER, new);
                assert_eq!(m.call(init, number, arguments), Some(Ok(0)), "{number}");
                for (at, word) in old.into_iter().flatten().enumerate() {
                    assert_eq!(m.world.read(init, OLD + 8 * at as u64), *word, "{number}: word {at}");
                }
            }
        };
        swap(nr::RT_SIGACTION, &[USR1, BUFFER, OLD, 8], &[HANDLER, RESTORER, 1, 0], &[0x5555, RESTORER, 2, 0]);
        swap(nr::RT_SIGPROCMASK, &[SETMASK, BUFFER, OLD, 8], &[1 << 11], &[1 << 12]);
        swap(nr::SIGALTSTACK, &[BUFFER, OLD], &[0x10_0000, 0, 0x4000], &[0x20_0000, 0, 0x5000]);
        swap(nr::SETITIMER, &[VIRTUAL, BUFFER, OLD], &[100, 0, 200, 0], &[300, 0, 400, 0]);
        swap(nr::PRLIMIT64, &[0, CORE, BUFFER, OLD], &[5000, 9000], &[4000, 8000]);
        swap(nr::PRLIMIT64, &[0, NOFILE, BUFFER, OLD], &[500, 900], &[400, 800]);
    });
}

#[test]
fn a_handler_runs_once_for_a_child_that_was_waited_for() {
    const CHLD: u64 = 17;
    const HANDLER: u64 = 0xaaaa;
    at_every_step(|m| {
        let init = m.world.init;
        m.world.write(init, BUFFER, &[HANDLER, RESTORER, 0xbbbb, 0]);
        assert_eq!(m.call(init, nr::RT_SIGACTION, &[CHLD, BUFFER, 0, 8]), Some(Ok(0)));
        m.thread(init).registers.rsp = MEMORY.end - 64;
        let (pid, child) = m.fork(init);
        assert_eq!(m.call(init, nr::WAIT4, &[pid, BUFFER, 0, 0]), None);
        m.call(child, nr::EXIT_GROUP, &[0]);
        m.report_interrupted(init);
        let entered = m.thread(init).registers;
        assert_eq!((entered.rip, entered.rdi), (HANDLER, CHLD));
        m.report_interrupted(init);
        assert_eq!(m.thread(init).registers.rsp, entered.rsp, "it is entered once");
    });
}

#[test]
fn a_session_begins_once_and_its_terminal_ends_it() {
    const HUP: u64 = 1;
    at_every_step(|m| {
        let init = m.world.init;
        let (pid, child) = m.fork(init);
        assert_eq!(m.call(child, nr::SETSID, &[]), Some(Ok(pid)));
        assert_eq!(m.call(child, nr::GETSID, &[0]), Some(Ok(pid)));
        assert_eq!(m.call(child, nr::PAUSE, &[]), None);
        m.world.pm.programs.system.terminal_events.push_back((HUP, pid));
        m.live(&|world| world.pm.handle_notification(Endpoint::TTY));
        m.report_interrupted(child);
        assert!(!m.world.is_there(child), "it has not got its signal");
        assert_eq!(m.call(init, nr::WAIT4, &[pid, BUFFER, 0, 0]), Some(Ok(pid)));
    });
}
