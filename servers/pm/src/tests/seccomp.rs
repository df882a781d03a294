//! seccomp's strict mode: calls are reported from its beginning to the end of the thread, whatever pm dies of meanwhile.

use super::deaths::{BUFFER, Mortal, at_every_step};
use abi::call::resume;
use abi::linux::nr;
use abi::{Endpoint, kernel};

const SET_SECCOMP: u64 = 22;
const STRICT: u64 = 1;
const REPORTED: u64 = resume::READY | resume::REPORT_CALLS;
const SIGKILL: u64 = 9;
const SIGSTOP: u64 = 19;
const SIGCONT: u64 = 18;

fn report_call(m: &mut Mortal, thread: Endpoint, number: u32) {
    m.thread(thread).resumed = 0;
    m.report(thread, kernel::LinuxCall { number: number.into() }.message());
}

fn status(m: &mut Mortal, pid: u64) -> u32 {
    let init = m.world.init;
    assert_eq!(m.call(init, nr::WAIT4, &[pid, BUFFER, 0, 0]), Some(Ok(pid)));
    m.world.read(init, BUFFER) as u32
}

#[test]
fn a_strict_thread_makes_four_calls_and_dies_of_any_other() {
    at_every_step(|m| {
        let (pid, child) = m.fork(m.world.init);
        assert_eq!(m.call(child, nr::PRCTL, &[SET_SECCOMP, STRICT]), None, "no reply, but registers");
        assert_eq!((m.thread(child).resumed, m.thread(child).registers.rax), (REPORTED, 0));
        for number in [nr::READ, nr::WRITE, nr::RT_SIGRETURN, nr::EXIT] {
            report_call(m, child, number);
            assert_eq!(m.thread(child).resumed, REPORTED | resume::CALL);
            assert_eq!(m.thread(child).registers.rax, number.into());
        }
        report_call(m, child, nr::GETPID);
        assert!(!m.world.is_there(child));
        assert_eq!(status(m, pid), SIGKILL as u32);
    });
}

#[test]
fn one_that_was_stopped_or_interrupted_is_still_strict() {
    at_every_step(|m| {
        let init = m.world.init;
        let (pid, child) = m.fork(init);
        assert_eq!(m.call(child, nr::SECCOMP, &[0, 0, 0]), None);
        for signal in [SIGSTOP, SIGCONT] {
            m.thread(child).resumed = 0;
            assert_eq!(m.call(init, nr::KILL, &[pid, signal]), Some(Ok(0)));
            m.report_interrupted(child);
        }
        assert_eq!(m.thread(child).resumed, REPORTED);
        report_call(m, child, nr::EXIT_GROUP);
        assert_eq!(status(m, pid), SIGKILL as u32);
    });
}
