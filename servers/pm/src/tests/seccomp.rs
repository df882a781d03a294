//! seccomp: calls are reported from its beginning to the end of the thread, whatever pm dies of meanwhile, and filters are added once.

use super::deaths::{BUFFER, Mortal, at_every_step};
use super::world::World;
use abi::call::resume;
use abi::linux::nr;
use abi::{Endpoint, Errno, Message, Word, kernel};

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

const FILTER: u64 = 2;
const GET_SECCOMP: u64 = 21;
const SIGSYS: u64 = 31;
const RLIMIT_CORE: u64 = 4;
/// Where the instructions of a filter are, behind its `struct sock_fprog`.
const INSTRUCTIONS: u64 = BUFFER + 16;
const ALLOW: u32 = 0x7fff_0000;
const ERRNO: u32 = 0x0005_0000;
const TRAP: u32 = 0x0003_0000;

/// Puts a filter into a thread's memory that returns this for one call, and allows all others.
fn put_filter(m: &mut Mortal, thread: Endpoint, number: u32, returned: u32) {
    let instruction = |code: u64, skipped: u64, k: u32| code | skipped << 24 | u64::from(k) << 32;
    let program =
        [instruction(0x20, 0, 0), instruction(0x15, 1, number), instruction(6, 0, returned), instruction(6, 0, ALLOW)];
    m.world.write(thread, BUFFER, &[program.len() as u64, INSTRUCTIONS]);
    m.world.write(thread, INSTRUCTIONS, &program);
}

/// The result of a call of a filtered thread: by a reply, or with registers after a death of pm.
fn result(m: &mut Mortal, thread: Endpoint, number: u32, arguments: &[u64]) -> Result<u64, Errno> {
    m.call(thread, number, arguments).unwrap_or_else(|| Word::from_word(m.thread(thread).registers.rax))
}

/// A child of init, and one that it has made with a filter: both have it.
fn filtered(m: &mut Mortal, number: u32, returned: u32) -> [(u64, Endpoint); 2] {
    let (pid, child) = m.fork(m.world.init);
    put_filter(m, child, number, returned);
    assert_eq!(m.call(child, nr::PRCTL, &[SET_SECCOMP, FILTER, BUFFER]), None, "no reply, but registers");
    assert_eq!((m.thread(child).resumed, m.thread(child).registers.rax), (REPORTED, 0));
    report_call(m, child, nr::FORK);
    let pid_of_other = result(m, child, nr::FORK, &[]).expect("forked");
    let other = m.thread_of(pid_of_other);
    m.report_interrupted(other);
    assert_eq!(m.thread(other).resumed, REPORTED, "before its first instruction");
    [(pid, child), (pid_of_other, other)]
}

/// The mode of a thread, and how many filters it has.
fn filters_of(m: &mut Mortal, thread: Endpoint) -> usize {
    let programs = &m.world.pm.programs;
    let t = programs.table.find(thread).expect("it is there");
    programs.filters.count(programs.table[t].seccomp)
}

#[test]
fn a_filtered_call_is_made_or_fails_or_is_a_signal_also_of_children() {
    at_every_step(|m| {
        for (_, thread) in filtered(m, nr::UMASK, ERRNO | 18) {
            assert_eq!(filters_of(m, thread), 1, "added once");
            report_call(m, thread, nr::GETPID);
            assert_eq!(m.thread(thread).resumed, REPORTED | resume::CALL);
            report_call(m, thread, nr::UMASK);
            assert_eq!(m.thread(thread).resumed, REPORTED, "it is not made");
            assert_eq!(m.thread(thread).registers.rax, -18_i64 as u64);
            assert_eq!(result(m, thread, nr::PRCTL, &[GET_SECCOMP]), Ok(FILTER));
        }
    });
}

#[test]
fn a_trapped_call_ends_who_does_not_handle_it() {
    at_every_step(|m| {
        let [(pid, child), _] = filtered(m, nr::UMASK, TRAP | 7);
        report_call(m, child, nr::UMASK);
        assert_eq!(status(m, pid) & 0x7f, SIGSYS as u32);
    });
}

#[test]
fn filters_add_up_and_go_with_the_last_thread_that_has_them() {
    at_every_step(|m| {
        let [(_, child), (_, other)] = filtered(m, nr::UMASK, ERRNO | 18);
        put_filter(m, other, nr::GETPID, ERRNO | 4);
        m.thread(other).resumed = 0;
        assert_eq!(m.call(other, nr::SECCOMP, &[1, 0, BUFFER]), None);
        assert_eq!((filters_of(m, child), filters_of(m, other)), (1, 2));
        report_call(m, other, nr::GETPID);
        assert_eq!(m.thread(other).registers.rax, -4_i64 as u64);
        report_call(m, other, nr::UMASK);
        assert_eq!(m.thread(other).registers.rax, -18_i64 as u64);
        for mode in [[SET_SECCOMP, STRICT, 0], [SET_SECCOMP, 3, 0]] {
            assert_eq!(result(m, other, nr::PRCTL, &mode), Err(Errno::EINVAL));
        }
    });
}

#[test]
fn who_may_get_more_rights_adds_no_filter() {
    at_every_step(|m| {
        let (_, child) = m.fork(m.world.init);
        put_filter(m, child, nr::UMASK, ALLOW);
        assert_eq!(m.call(child, nr::SETUID, &[1000]), Some(Ok(0)));
        assert_eq!(m.call(child, nr::SECCOMP, &[1, 0, BUFFER]), Some(Err(Errno::EACCES)));
        assert_eq!(m.call(child, nr::PRCTL, &[38, 1, 0, 0, 0]), Some(Ok(0)));
        assert_eq!(m.call(child, nr::SECCOMP, &[1, 0, BUFFER]), None);
    });
}

#[test]
fn filters_of_threads_that_have_ended_make_room() {
    let mut world = World::new();
    let init = world.init;
    for round in 0..300 {
        let (pid, child) = world.fork(init);
        let allow = 6 | u64::from(ALLOW) << 32;
        world.write(child, BUFFER, &[1, INSTRUCTIONS, allow]);
        assert_eq!(world.call(child, nr::SECCOMP, &[1, 0, BUFFER]), None, "round {round}");
        world.call(child, nr::EXIT_GROUP, &[0]);
        assert_eq!(world.call(init, nr::WAIT4, &[pid, 0, 0, 0]), Some(Ok(pid)));
    }
}

#[test]
fn who_writes_the_dump_of_a_filtered_process_has_no_filter() {
    let mut world = World::new();
    let (_, child) = world.fork(world.init);
    world.write(child, BUFFER, &[u64::MAX, u64::MAX]);
    assert_eq!(world.call(child, nr::SETRLIMIT, &[RLIMIT_CORE, BUFFER]), Some(Ok(0)));
    world.write(child, BUFFER, &[1, INSTRUCTIONS, 6 | u64::from(ALLOW) << 32]);
    assert_eq!(world.call(child, nr::SECCOMP, &[1, 0, BUFFER]), None);
    let exception = kernel::Exception { vector: 6, error: 0, ip: 0, address: 0 };
    assert!(world.pm.handle(&Message { source: child, ..exception.message() }).done().is_none());
    let writer = world.newest();
    assert_ne!(writer, child);
    let programs = &world.pm.programs;
    let t = programs.table.find(writer).expect("it is there");
    assert!(!programs.table[t].seccomp.is_on());
}

#[test]
fn all_threads_get_a_filter_once() {
    const THREAD: u64 = 0x1_0900;
    const TSYNC: u64 = 1;
    at_every_step(|m| {
        let (_, child) = m.fork(m.world.init);
        assert!(m.call(child, nr::CLONE, &[THREAD, 0, 0, 0, 0]).is_some_and(|made| made.is_ok()));
        let other = m.world.newest();
        m.thread(other).interrupted = false;
        put_filter(m, child, nr::UMASK, ERRNO | 18);
        assert_eq!(m.call(child, nr::SECCOMP, &[1, TSYNC, BUFFER]), None);
        assert_eq!((filters_of(m, child), filters_of(m, other)), (1, 1));
        assert!(m.thread(other).interrupted, "it comes to pm before its next instruction");
        m.report_interrupted(other);
        assert_eq!(m.thread(other).resumed, REPORTED);
    });
}
