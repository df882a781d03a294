//! `kill` of groups, of all and of services, and how stops and continuations take each other back.

use super::{Answer, DONE, MEMORY, World, failed};
use abi::endpoint::slot;
use abi::linux::nr;
use abi::{Endpoint, Errno, Message, Name, pm};

const BUFFER: u64 = MEMORY.start + 0x100;
const USR1: u64 = 10;
const TERM: u64 = 15;
const CONT: u64 = 18;
const STOP: u64 = 19;
const TSTP: u64 = 20;
const TTIN: u64 = 21;
const TTOU: u64 = 22;
const ALL: u64 = u64::MAX;
const CLONE_THREAD: u64 = 0x100 | 0x800 | 0x1_0000;

const fn bit(signal: u64) -> u64 {
    1 << (signal - 1)
}

fn negative(id: u64) -> u64 {
    (id as i64).wrapping_neg() as u64
}

fn kill(world: &mut World, thread: Endpoint, pid: u64, signal: u64) -> Answer {
    world.call(thread, nr::KILL, &[pid, signal])
}

fn block(world: &mut World, thread: Endpoint, signals: u64) {
    world.write(thread, BUFFER, &[signals]);
    assert_eq!(world.call(thread, nr::RT_SIGPROCMASK, &[2, BUFFER, 0, 8]), DONE);
}

fn pending(world: &mut World, thread: Endpoint) -> u64 {
    assert_eq!(world.call(thread, nr::RT_SIGPENDING, &[BUFFER, 8]), DONE);
    world.read(thread, BUFFER)
}

/// Three processes of users 1000, 1000 and 1001 in one group, and one of user 1000 in another; all block SIGUSR1.
fn crowd() -> (World, [u64; 4], [Endpoint; 4]) {
    let mut world = World::new();
    let users = [1000, 1000, 1001, 1000].map(|user| (user, world.fork(world.init)));
    for (n, (user, (pid, process))) in users.into_iter().enumerate() {
        let group = if n < 3 { users[0].1.0 } else { pid };
        assert_eq!(world.call(world.init, nr::SETPGID, &[pid, group]), DONE);
        world.call(process, nr::SETUID, &[user]);
        block(&mut world, process, bit(USR1));
    }
    (world, users.map(|user| user.1.0), users.map(|user| user.1.1))
}

/// Who of the crowd has SIGUSR1 pending.
fn reached(world: &mut World, processes: [Endpoint; 4]) -> [bool; 4] {
    processes.map(|process| pending(world, process) == bit(USR1))
}

#[test]
fn a_signal_reaches_those_of_a_group_that_the_sender_may_signal() {
    for (sender, pid, answer, wanted) in [
        (0, 0, DONE, [true, true, false, false]),
        (2, 0, DONE, [false, false, true, false]),
        (3, -1, DONE, [true, true, false, false]),
        (0, -2, failed(Errno::ESRCH), [false; 4]),
        (2, -4, failed(Errno::EPERM), [false; 4]),
    ] {
        let (mut world, pids, processes) = crowd();
        let target = match pid {
            0 => 0,
            n => negative(pids[-n as usize - 1]),
        };
        assert_eq!(kill(&mut world, processes[sender], target, USR1), answer, "{sender} to {pid}");
        assert_eq!(reached(&mut world, processes), wanted, "{sender} to {pid}");
        assert_eq!(kill(&mut world, processes[sender], target, 65), failed(Errno::EINVAL));
    }
    let (mut world, pids, processes) = crowd();
    for (sender, target, answer) in
        [(0, 0, DONE), (2, negative(pids[3]), failed(Errno::EPERM)), (0, 1 << 31, failed(Errno::ESRCH))]
    {
        assert_eq!(kill(&mut world, processes[sender], target, 0), answer, "nothing is sent");
    }
    assert_eq!(reached(&mut world, processes), [false; 4]);
}

#[test]
fn a_signal_to_all_spares_the_first_process_and_the_sender() {
    let (mut world, _, processes) = crowd();
    let init = world.init;
    block(&mut world, init, bit(USR1));
    assert_eq!(kill(&mut world, processes[0], ALL, USR1), DONE);
    assert_eq!(reached(&mut world, processes), [false, true, false, true]);
    assert_eq!(kill(&mut world, processes[2], ALL, USR1), failed(Errno::EPERM));
    assert_eq!(kill(&mut world, init, ALL, USR1), DONE);
    assert_eq!(reached(&mut world, processes), [true; 4]);
    assert_eq!(pending(&mut world, init), 0);
    let mut alone = World::new();
    let init = alone.init;
    assert_eq!(kill(&mut alone, init, ALL, USR1), failed(Errno::ESRCH));
}

#[test]
fn the_sender_of_a_signal_to_its_group_gets_it_last() {
    let (mut world, _, processes) = crowd();
    for process in processes {
        block(&mut world, process, 0);
    }
    world.call(processes[0], nr::KILL, &[0, USR1]);
    world.report_interrupted(processes[1], None);
    assert!(!world.is_there(processes[0]) && !world.is_there(processes[1]) && world.is_there(processes[2]));
}

#[test]
fn a_thread_is_no_process_of_its_own() {
    let mut world = World::new();
    let (_, child) = world.fork(world.init);
    block(&mut world, child, bit(USR1));
    let tid = world.call(child, nr::CLONE, &[CLONE_THREAD, 0, 0, 0, 0]).unwrap().unwrap();
    let init = world.init;
    assert_eq!(kill(&mut world, init, tid, USR1), DONE);
    assert_eq!(pending(&mut world, child), bit(USR1), "it means the process");
}

#[test]
fn a_zombie_takes_signals_without_effect() {
    let mut world = World::new();
    let (pid, child) = world.fork(world.init);
    world.call(child, nr::EXIT_GROUP, &[3]);
    let init = world.init;
    for signal in [0, TERM, 9, STOP, CONT] {
        assert_eq!(kill(&mut world, init, pid, signal), DONE);
    }
    assert_eq!(world.call(init, nr::WAIT4, &[pid, BUFFER, 0, 0]), Some(Ok(pid)));
    assert_eq!(world.read(init, BUFFER) as u32, 0x300);
    assert_eq!(kill(&mut world, init, pid, 0), failed(Errno::ESRCH));
}

#[test]
fn services_take_no_signals() {
    let mut world = World::new();
    let (low, high) = Name::new("uart").unwrap().to_words();
    let up = pm::ServiceUp { process: Endpoint::new(11, 1), name_low: low, name_high: high };
    world.pm.handle(&Message { source: Endpoint::RS, ..up.message() }).done().unwrap().result().unwrap();
    let (pid, child) = world.fork(world.init);
    world.call(child, nr::SETUID, &[1000]);
    let init = world.init;
    assert_eq!(kill(&mut world, init, pid - 1, TERM), DONE);
    assert_eq!(kill(&mut world, child, pid - 1, TERM), failed(Errno::EPERM));
    assert_eq!(kill(&mut world, init, pid + 1, TERM), failed(Errno::ESRCH));
    assert_eq!(world.call(init, nr::TKILL, &[pid - 1, TERM]), failed(Errno::ESRCH));
}

/// A shell in a session of its own, and a job in a group of its own, which has two threads and blocks what can be blocked of stops and
/// SIGCONT.
fn shell_and_job() -> (World, Endpoint, u64, [Endpoint; 2]) {
    let mut world = World::new();
    let (_, shell) = world.fork(world.init);
    world.call(shell, nr::SETSID, &[]).unwrap().unwrap();
    let (pid, job) = world.fork(shell);
    assert_eq!(world.call(shell, nr::SETPGID, &[pid, pid]), DONE);
    block(&mut world, job, bit(TSTP) | bit(TTIN) | bit(TTOU) | bit(CONT) | bit(USR1));
    world.call(job, nr::CLONE, &[CLONE_THREAD, 0, 0, 0, 0]).unwrap().unwrap();
    let second = world.newest();
    (world, shell, pid, [job, second])
}

#[test]
fn sigcont_takes_back_stops_that_wait() {
    for signal in [TSTP, TTIN, TTOU] {
        for to_thread in [false, true] {
            let (mut world, shell, pid, [job, _]) = shell_and_job();
            let call = if to_thread { nr::TKILL } else { nr::KILL };
            world.call(shell, call, &[pid, signal]);
            world.call(shell, call, &[pid, USR1]);
            assert_eq!(pending(&mut world, job), bit(signal) | bit(USR1));
            kill(&mut world, shell, pid, CONT);
            assert_eq!(pending(&mut world, job), bit(USR1) | bit(CONT), "{signal}");
        }
    }
}

#[test]
fn a_stop_takes_back_a_sigcont_that_waits() {
    for signal in [TSTP, TTIN, TTOU, STOP] {
        for to_thread in [false, true] {
            let (mut world, shell, pid, [_, second]) = shell_and_job();
            let tid = world.call(second, nr::GETTID, &[]).unwrap().unwrap();
            let target = if to_thread { tid } else { pid };
            let call = if to_thread { nr::TKILL } else { nr::KILL };
            world.call(shell, call, &[target, CONT]);
            assert_eq!(pending(&mut world, second), bit(CONT));
            kill(&mut world, shell, pid, signal);
            let left = if signal == STOP { 0 } else { bit(signal) };
            assert_eq!(read_pending(&mut world, second), left, "{signal}");
        }
    }
}

/// What is pending, for a thread that may be stopped: its record tells.
fn read_pending(world: &mut World, thread: Endpoint) -> u64 {
    let t = world.pm.programs.table.find(thread).unwrap();
    let p = world.pm.programs.table.process_of(t);
    world.pm.programs.table[t].pending.set().or(world.pm.programs.table[p].pending.set()).0
}

#[test]
fn all_threads_of_a_process_stop_and_continue() {
    let (mut world, shell, pid, threads) = shell_and_job();
    kill(&mut world, shell, pid, STOP);
    for thread in threads {
        world.report_interrupted(thread, None);
        assert!(world.thread(thread).waits, "it is held");
    }
    kill(&mut world, shell, pid, STOP);
    assert!(threads.iter().all(|thread| !world.thread(*thread).interrupted), "once is enough");
    kill(&mut world, shell, pid, CONT);
    assert!(threads.iter().all(|thread| !world.thread(*thread).waits));
}

#[test]
fn a_thread_that_has_not_reported_when_the_stop_ends_runs_on() {
    let (mut world, shell, pid, [job, second]) = shell_and_job();
    kill(&mut world, shell, pid, STOP);
    world.report_interrupted(job, None);
    kill(&mut world, shell, pid, CONT);
    world.report_interrupted(second, None);
    assert!(!world.thread(job).waits && !world.thread(second).waits);
}

#[test]
fn sigcont_continues_even_where_it_is_ignored() {
    let (mut world, shell, pid, [job, _]) = shell_and_job();
    world.write(job, BUFFER, &[1, 0, 0, 0]);
    assert_eq!(world.call(job, nr::RT_SIGACTION, &[CONT, BUFFER, 0, 8]), DONE);
    kill(&mut world, shell, pid, STOP);
    world.report_interrupted(job, None);
    kill(&mut world, shell, pid, CONT);
    assert!(!world.thread(job).waits);
}

#[test]
fn signals_wait_while_a_process_is_stopped_and_are_handled_then() {
    let (mut world, shell, pid, [job, second]) = shell_and_job();
    for thread in [job, second] {
        block(&mut world, thread, 0);
    }
    world.handle_signal(job, USR1, 0);
    world.thread(second).registers.rsp = MEMORY.end - 0x1000;
    let tid = world.call(second, nr::GETTID, &[]).unwrap().unwrap();
    kill(&mut world, shell, pid, STOP);
    world.report_interrupted(job, None);
    world.report_interrupted(second, None);
    kill(&mut world, shell, pid, USR1);
    world.call(shell, nr::TKILL, &[tid, USR1]);
    assert!([job, second].iter().all(|thread| world.thread(*thread).registers.rip != 0xaaaa));
    kill(&mut world, shell, pid, CONT);
    assert!([job, second].iter().all(|thread| world.thread(*thread).registers.rip == 0xaaaa));
}

#[test]
fn an_orphaned_group_is_stopped_by_sigstop_alone() {
    let mut world = World::new();
    let (pid, job, leader) = [(); 2].map(|()| {
        let (_, leader) = world.fork(world.init);
        world.call(leader, nr::SETSID, &[]).unwrap().unwrap();
        let (pid, job) = world.fork(leader);
        world.call(leader, nr::SETPGID, &[pid, pid]);
        (pid, job, leader)
    })[0];
    let init = world.init;
    let stopped = |world: &mut World| {
        let stopped = world.thread(job).interrupted;
        world.thread(job).interrupted = false;
        stopped
    };
    kill(&mut world, init, pid, TSTP);
    assert!(stopped(&mut world), "its parent is of the session and of another group");
    kill(&mut world, init, pid, CONT);
    world.call(leader, nr::EXIT_GROUP, &[0]);
    for (signal, stops) in [(TSTP, false), (TTIN, false), (TTOU, false), (STOP, true)] {
        kill(&mut world, init, pid, signal);
        assert_eq!(stopped(&mut world), stops, "{signal}");
    }
}

#[test]
fn a_read_in_the_background_fails_where_its_process_cannot_be_stopped() {
    for way in ["blocked", "ignored", "orphaned"] {
        let (mut world, shell, pid, [job, _]) = shell_and_job();
        block(&mut world, job, if way == "blocked" { bit(TTIN) } else { 0 });
        world.write(job, BUFFER, &[if way == "ignored" { 1 } else { 0 }, 0, 0, 0]);
        world.call(job, nr::RT_SIGACTION, &[TTIN, BUFFER, 0, 8]);
        if way == "orphaned" {
            world.call(shell, nr::EXIT_GROUP, &[0]);
        }
        world.thread(job).blocked_on = Endpoint::current(slot::VFS);
        world.terminal_event(TTIN, pid);
        assert_eq!(world.pm.programs.system.cancelled, [(job, Errno::EIO)], "{way}");
        assert!(!world.pm.programs.table.has_stopped());
    }
}

#[test]
fn a_terminal_signal_that_does_not_exist_is_passed_over() {
    let (mut world, _, pid, [job, _]) = shell_and_job();
    world.pm.programs.system.terminal_events.extend([(0, pid), (65, pid), (TERM, pid)]);
    world.pm.handle_notification(Endpoint::current(slot::TTY));
    assert!(world.thread(job).interrupted);
    assert!(world.pm.programs.system.terminal_events.is_empty());
}

#[test]
fn a_hangup_comes_when_the_last_tie_to_the_session_is_cut() {
    for (stopped, ended) in [(false, false), (true, true)] {
        let (mut world, shell, pid, [job, second]) = shell_and_job();
        let (_, member) = world.fork(job);
        block(&mut world, member, 0);
        block(&mut world, second, 0);
        if stopped {
            kill(&mut world, shell, pid, STOP);
            world.report_interrupted(job, None);
            world.report_interrupted(second, None);
        }
        world.thread(member).interrupted = false;
        world.call(shell, nr::EXIT_GROUP, &[0]);
        assert_eq!(world.thread(member).interrupted, ended, "SIGHUP reaches every member");
        assert_eq!(world.is_there(job), !ended, "continued, it dies of it");
    }
}

#[test]
fn a_member_that_ties_a_group_to_its_session_may_end_unless_it_is_the_last() {
    let (mut world, shell, pid, [job, second]) = shell_and_job();
    let (other_pid, other) = world.fork(shell);
    assert_eq!(world.call(shell, nr::SETPGID, &[other_pid, pid]), DONE);
    world.fork(other);
    let grandchild = world.newest();
    kill(&mut world, shell, pid, STOP);
    for thread in [job, second] {
        world.report_interrupted(thread, None);
    }
    world.call(other, nr::EXIT_GROUP, &[0]);
    assert!(!world.thread(grandchild).interrupted, "the job's parent still is of the session");
    kill(&mut world, shell, pid, 9);
    assert!(!world.thread(grandchild).interrupted, "nobody of the group is stopped now");
}
