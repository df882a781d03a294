//! What a successor of pm makes of the tables that it finds: nobody has to notice. `deaths` kills pm at every step of a few scenarios; here
//! it dies between two messages, in many states.

use super::{Answer, DONE, MEMORY, SECOND, Told, World, failed};
use crate::system::System;
use abi::endpoint::slot;
use abi::linux::nr;
use abi::message::REPEATED;
use abi::{Endpoint, Errno, Message, kernel, vfs};
use std::vec::Vec;

const BUFFER: u64 = MEMORY.start + 0x100;
const OPERATION: u64 = MEMORY.start + 0x800;
const USR1: u64 = 10;
const CONT: u64 = 18;
const STOP: u64 = 19;
const CLONE_THREAD: u64 = 0x100 | 0x800 | 0x1_0000;

/// pm dies and starts again. The alarm is lost, and answers reach nobody: who waits asks again.
fn restart(world: &mut World) {
    let system = &mut world.pm.programs.system;
    system.alarm = None;
    system.deaths += 1;
    system.told.clear();
    system.threads.values_mut().for_each(|thread| thread.asks_again = thread.waits);
    world.pm.recover();
    world.pm.programs.system.threads.values_mut().for_each(|thread| thread.asks_again = false);
}

/// A thread that waited makes its call again.
fn repeat(world: &mut World, thread: Endpoint, number: u32, arguments: &[u64]) -> Answer {
    let mut message = Message { source: thread, ..Message::new(number) };
    message.words[..arguments.len()].copy_from_slice(arguments);
    message.words[6] = REPEATED;
    world.thread(thread).waits = true;
    let reply = world.pm.handle(&message).done()?;
    world.thread(thread).waits = false;
    Some(reply.result())
}

/// Sets a timer for five seconds: the end of a sleep or timed wait, or a signal. Returns whether the thread waits.
type SetTimer = fn(&mut World, Endpoint) -> Answer;

fn sleep(world: &mut World, thread: Endpoint) -> Answer {
    world.write(thread, BUFFER, &[5, 0]);
    world.call(thread, nr::NANOSLEEP, &[BUFFER, 0])
}

fn wait_for_signal(world: &mut World, thread: Endpoint) -> Answer {
    world.write(thread, BUFFER, &[1 << 40, 5, 0]);
    world.call(thread, nr::RT_SIGTIMEDWAIT, &[BUFFER, 0, BUFFER + 8, 8])
}

fn wait_for_semaphore(world: &mut World, thread: Endpoint) -> Answer {
    let id = world.call(thread, nr::SEMGET, &[0, 1, 0o600]).unwrap().unwrap();
    world.write_bytes(thread, OPERATION, &[0, 0, 0xff, 0xff, 0, 0]);
    world.write(thread, BUFFER, &[5, 0]);
    world.call(thread, nr::SEMTIMEDOP, &[id, OPERATION, 1, BUFFER])
}

fn interval(world: &mut World, thread: Endpoint) -> Answer {
    world.write(thread, BUFFER, &[0, 0, 5, 0]);
    world.call(thread, nr::SETITIMER, &[0, BUFFER, 0])
}

fn processor_time(world: &mut World, thread: Endpoint) -> Answer {
    world.write(thread, BUFFER, &[0, 0, 5, 0]);
    world.call(thread, nr::SETITIMER, &[2, BUFFER, 0])
}

fn posix(world: &mut World, thread: Endpoint) -> Answer {
    world.call(thread, nr::TIMER_CREATE, &[1, 0, BUFFER]);
    world.write(thread, BUFFER, &[0, 0, 5, 0]);
    world.call(thread, nr::TIMER_SETTIME, &[0, 0, BUFFER, 0])
}

const TIMERS: [SetTimer; 6] = [sleep, wait_for_signal, wait_for_semaphore, interval, processor_time, posix];

#[test]
fn timers_of_all_kinds_go_on() {
    for (n, set) in TIMERS.into_iter().enumerate() {
        let mut world = World::new();
        let (pid, child) = world.fork(world.init);
        let waits = set(&mut world, child).is_none();
        restart(&mut world);
        assert_eq!(world.pm.programs.system.alarm, Some(5 * SECOND), "timer {n}");
        world.set_time(4 * SECOND);
        assert_eq!(world.answer(child), None, "timer {n}");
        world.thread(child).run_ns = 5 * SECOND;
        world.set_time(5 * SECOND);
        match waits {
            true => assert!(world.answer(child).is_some(), "timer {n}"),
            false => assert!(world.thread(child).interrupted, "timer {n}"),
        }
        assert_eq!(world.pm.programs.system.alarm, None, "once");
        assert!(pid > 1);
    }
}

#[test]
fn a_timer_that_goes_on_is_cancelled_as_before() {
    for (n, set) in TIMERS.into_iter().enumerate() {
        let mut world = World::new();
        let (pid, child) = world.fork(world.init);
        set(&mut world, child);
        restart(&mut world);
        world.call(world.init, nr::KILL, &[pid, 9]);
        assert_eq!(world.pm.programs.system.alarm, None, "timer {n}");
    }
}

#[test]
fn a_timer_that_expired_meanwhile_fires_at_the_start() {
    for (n, set) in TIMERS.into_iter().enumerate() {
        let mut world = World::new();
        let (_, child) = world.fork(world.init);
        let waits = set(&mut world, child).is_none();
        world.pm.programs.system.now_ns = 6 * SECOND;
        world.thread(child).run_ns = 6 * SECOND;
        if !waits {
            restart(&mut world);
            if n == 4 {
                world.set_time(7 * SECOND);
            }
            assert!(world.thread(child).interrupted, "timer {n}");
            continue;
        }
        restart(&mut world);
        let number = world.pm.programs.table[world.pm.programs.table.find(child).unwrap()].call;
        let result = if n == 0 { DONE } else { failed(Errno::EAGAIN) };
        assert_eq!(repeat(&mut world, child, number, &[]), result, "timer {n}: the call has ended");
    }
}

#[test]
fn an_alarm_that_comes_too_early_is_set_again() {
    let mut world = World::new();
    let (_, child) = world.fork(world.init);
    sleep(&mut world, child);
    world.pm.programs.system.alarm = None;
    world.pm.handle_notification(Endpoint::CLOCK);
    assert_eq!(world.pm.programs.system.alarm, Some(5 * SECOND));
}

#[test]
fn threads_in_no_table_are_destroyed() {
    let mut world = World::new();
    let (_, child) = world.fork(world.init);
    let stranger = world.pm.programs.system.fork(child).unwrap();
    restart(&mut world);
    let told = world.told();
    for wanted in [Told::FilesEnded(stranger), Told::MemoryEnded(stranger), Told::Destroyed(stranger)] {
        assert!(told.contains(&wanted), "{wanted:?}");
    }
    assert!(world.is_there(child) && world.is_there(world.init) && !world.is_there(stranger));
}

#[test]
fn a_thread_that_is_gone_is_taken_out_and_the_last_one_ends_its_process() {
    let mut world = World::new();
    let init = world.init;
    let (pid, child) = world.fork(init);
    let tid = world.call(child, nr::CLONE, &[CLONE_THREAD, 0, 0, 0, 0]).unwrap().unwrap();
    let second = world.newest();
    world.pm.programs.system.threads.remove(&second.0);
    restart(&mut world);
    assert_eq!(world.call(init, nr::TKILL, &[tid, 0]), failed(Errno::ESRCH));
    assert_eq!(world.call(child, nr::GETPID, &[]), Some(Ok(pid)));
    world.pm.programs.system.threads.remove(&child.0);
    restart(&mut world);
    assert_eq!(world.call(init, nr::WAIT4, &[pid, BUFFER, 0, 0]), Some(Ok(pid)));
    assert_eq!(world.read(init, BUFFER) as u32, 9);
}

#[test]
fn every_thread_is_started_again_under_its_id() {
    let mut world = World::new();
    let (pid, child) = world.fork(world.init);
    let tid = world.call(child, nr::CLONE, &[CLONE_THREAD, 0, 0, 0, 0]).unwrap().unwrap();
    let second = world.newest();
    restart(&mut world);
    let told = world.told();
    for (thread, tid) in [(world.init, 1), (child, pid), (second, tid)] {
        assert!(told.contains(&Told::Started { thread, tid: tid as u32 }));
        assert_eq!(world.call(world.init, nr::TKILL, &[tid, 0]), DONE);
        assert_eq!(world.call(thread, nr::GETTID, &[]), Some(Ok(tid)));
    }
}

#[test]
fn families_groups_and_sessions_are_as_they_were() {
    let mut world = World::new();
    let init = world.init;
    let (shell_pid, shell) = world.fork(init);
    world.call(shell, nr::SETSID, &[]).unwrap().unwrap();
    let (pid, child) = world.fork(shell);
    world.call(shell, nr::SETPGID, &[pid, pid]);
    let (member_pid, member) = world.fork(child);
    restart(&mut world);
    for (thread, ids) in [
        (shell, [shell_pid, 1, shell_pid, shell_pid]),
        (child, [pid, shell_pid, pid, shell_pid]),
        (member, [member_pid, pid, pid, shell_pid]),
    ] {
        let found =
            [nr::GETPID, nr::GETPPID, nr::GETPGID, nr::GETSID].map(|call| world.call(thread, call, &[0]).unwrap());
        assert_eq!(found, ids.map(Ok));
    }
    world.call(child, nr::EXIT_GROUP, &[0]);
    assert_eq!(world.call(shell, nr::WAIT4, &[pid, 0, 0, 0]), Some(Ok(pid)));
    assert_eq!(world.call(shell, nr::SETPGID, &[0, pid]), failed(Errno::EPERM), "a session leader stays");
    assert_eq!(world.call(member, nr::GETPPID, &[]), Some(Ok(1)));
    assert_eq!(
        world.call(init, nr::KILL, &[(pid as i64).wrapping_neg() as u64, 0]),
        DONE,
        "the group outlives its leader"
    );
}

#[test]
fn free_entries_and_ids_are_used_again_once() {
    let mut world = World::new();
    let init = world.init;
    let pids: Vec<u64> = (0..4)
        .map(|_| {
            let (pid, child) = world.fork(init);
            world.call(child, nr::EXIT_GROUP, &[0]);
            pid
        })
        .collect();
    for pid in &pids[..3] {
        assert_eq!(world.call(init, nr::WAIT4, &[*pid, 0, 0, 0]), Some(Ok(*pid)));
    }
    restart(&mut world);
    restart(&mut world);
    let children: Vec<(u64, Endpoint)> = (0..6).map(|_| world.fork(init)).collect();
    for (pid, child) in &children {
        assert!(!pids.contains(pid));
        assert_eq!(world.call(*child, nr::GETPID, &[]), Some(Ok(*pid)));
        assert_eq!(world.call(*child, nr::GETPPID, &[]), Some(Ok(1)));
    }
    assert_eq!(world.call(init, nr::WAIT4, &[pids[3], 0, 0, 0]), Some(Ok(pids[3])), "the zombie is kept");
    assert_eq!(world.pm.programs.table.processes().count(), 7);
}

#[test]
fn children_are_reported_in_the_order_in_which_they_ended_before_and_after() {
    for restarts in [0, 1] {
        let mut world = World::new();
        let init = world.init;
        let (first_pid, first) = world.fork(init);
        let (second_pid, second) = world.fork(init);
        world.call(first, nr::EXIT_GROUP, &[0]);
        assert_eq!(world.call(init, nr::WAIT4, &[first_pid, 0, 0, 0]), Some(Ok(first_pid)));
        world.set_time(SECOND);
        let (third_pid, third) = world.fork(init);
        (0..restarts).for_each(|_| restart(&mut world));
        for child in [third, second] {
            world.call(child, nr::EXIT_GROUP, &[0]);
        }
        for pid in [third_pid, second_pid] {
            assert_eq!(world.call(init, nr::WAIT4, &[u64::MAX, 0, 0, 0]), Some(Ok(pid)));
        }
    }
}

#[test]
fn threads_are_in_order_of_their_ids_the_first_one_first() {
    let mut world = World::new();
    // The slots of the kernel begin anew meanwhile.
    world.pm.programs.system.slots = super::fake::MAX_THREADS - 3;
    let (pid, child) = world.fork(world.init);
    let threads: Vec<Endpoint> = (0..3)
        .map(|_| {
            world.call(child, nr::CLONE, &[CLONE_THREAD, 0, 0, 0, 0]).unwrap().unwrap();
            world.newest()
        })
        .collect();
    assert!(threads[2].slot() < child.slot());
    world.handle_signal(child, USR1, 0);
    restart(&mut world);
    for first in [child, threads[0], threads[1], threads[2]] {
        world.call(world.init, nr::KILL, &[pid, USR1]);
        assert!(world.thread(first).interrupted);
        world.call(first, nr::RT_SIGPENDING, &[BUFFER, 8]);
        world.thread(first).registers.rsp = MEMORY.end - 64;
        world.call(first, nr::EXIT, &[0]);
    }
}

#[test]
fn a_stopped_process_stays_stopped_and_continues_later() {
    let mut world = World::new();
    let (pid, child) = world.fork(world.init);
    world.call(child, nr::CLONE, &[CLONE_THREAD, 0, 0, 0, 0]).unwrap().unwrap();
    let second = world.newest();
    world.call(world.init, nr::KILL, &[pid, STOP]);
    world.report_interrupted(child, None);
    world.thread(second).interrupted = false;
    restart(&mut world);
    assert!(world.pm.programs.table.has_stopped());
    assert!(world.thread(second).interrupted, "the kernel may have lost the mark");
    assert!(world.pm.handle(&Message { source: child, ..kernel::Interrupted {}.message() }).done().is_none());
    world.report_interrupted(second, None);
    assert_eq!(world.call(world.init, nr::WAIT4, &[pid, BUFFER, 2, 0]), Some(Ok(pid)));
    assert_eq!(world.read(world.init, BUFFER) as u32, 0x137f);
    world.call(world.init, nr::KILL, &[pid, CONT]);
    assert!(!world.thread(child).waits && !world.thread(second).waits);
    assert!(!world.pm.programs.table.has_stopped());
}

#[test]
fn a_thread_with_a_signal_to_handle_is_interrupted_again() {
    for call in [nr::KILL, nr::TKILL] {
        let mut world = World::new();
        let (pid, child) = world.fork(world.init);
        world.handle_signal(child, USR1, 0);
        world.call(world.init, call, &[pid, USR1]);
        world.thread(child).interrupted = false;
        restart(&mut world);
        world.report_interrupted(child, None);
        assert_eq!(world.thread(child).registers.rip, 0xaaaa);
    }
}

#[test]
fn the_end_of_a_child_is_told_once() {
    let mut world = World::new();
    let (_, parent) = world.fork(world.init);
    world.handle_signal(parent, 17, 0);
    let (_, child) = world.fork(parent);
    world.call(child, nr::EXIT_GROUP, &[0]);
    world.report_interrupted(parent, None);
    world.thread(parent).registers.rsp += 8;
    world.call(parent, nr::RT_SIGRETURN, &[]);
    restart(&mut world);
    assert!(!world.thread(parent).interrupted);
}

#[test]
fn a_repeated_call_is_made_once() {
    let mut world = World::new();
    let (_, parent) = world.fork(world.init);
    let (pid, _) = world.fork(parent);
    let threads = world.pm.programs.system.threads.len();
    restart(&mut world);
    assert_eq!(repeat(&mut world, parent, nr::FORK, &[]), Some(Ok(pid)), "the reply had been lost");
    assert_eq!(world.pm.programs.system.threads.len(), threads);
    let mut next = Message { source: parent, ..Message::new(nr::FORK) };
    next.words[6] = REPEATED | 5;
    let next_pid = world.pm.handle(&next).done().unwrap().result().unwrap();
    assert!(next_pid > pid, "another call");
}

#[test]
fn a_repeated_call_waits_on() {
    let mut world = World::new();
    let (_, parent) = world.fork(world.init);
    let (pid, child) = world.fork(parent);
    let arguments = [u64::MAX, BUFFER, 0, 0];
    assert_eq!(world.call(parent, nr::WAIT4, &arguments), None);
    restart(&mut world);
    assert_eq!(repeat(&mut world, parent, nr::WAIT4, &arguments), None);
    world.call(child, nr::EXIT_GROUP, &[0]);
    assert_eq!(world.answer(parent), Some(Ok(pid)));
}

#[test]
fn a_child_that_ended_meanwhile_ends_the_wait() {
    let mut world = World::new();
    let (_, parent) = world.fork(world.init);
    let (pid, child) = world.fork(parent);
    assert_eq!(world.call(parent, nr::WAIT4, &[u64::MAX, 0, 0, 0]), None);
    world.pm.programs.system.threads.remove(&child.0);
    restart(&mut world);
    assert_eq!(repeat(&mut world, parent, nr::WAIT4, &[u64::MAX, 0, 0, 0]), Some(Ok(pid)));
}

#[test]
fn an_exec_is_asked_for_again() {
    let mut world = World::new();
    let (_, child) = world.fork(world.init);
    world.write_bytes(child, BUFFER, b"/x\0");
    assert_eq!(world.call(child, nr::EXECVE, &[BUFFER, 0, 0]), None);
    let asked = world.pm.programs.system.exec_paths.len();
    restart(&mut world);
    assert_eq!(repeat(&mut world, child, nr::EXECVE, &[BUFFER, 0, 0]), None);
    assert_eq!(world.pm.programs.system.exec_paths[asked..], ["/x"]);
    world.exec_event(child, b"/x", 0);
    assert_eq!(world.thread(child).registers.rip, super::fake::START);
}

#[test]
fn the_first_program_is_asked_for_again_without_a_call() {
    let fake = super::fake::Fake::default();
    let mut pm = crate::pm::Pm::new(fake, crate::state::random::Random::new([1; 32]));
    pm.handle(&Message { source: Endpoint::RS, ..abi::pm::Boot {}.message() });
    let init = Endpoint(*pm.programs.system.threads.keys().next().unwrap());
    let mut world = World { pm, init };
    restart(&mut world);
    assert_eq!(world.pm.programs.system.exec_paths, ["/sbin/init"; 2]);
    world.exec_event(init, b"/sbin/init", 0);
    let (_, child) = world.fork(init);
    world.write_bytes(child, BUFFER, b"/x\0");
    assert_eq!(world.call(child, nr::EXECVE, &[BUFFER, 0, 0]), None);
    restart(&mut world);
    assert_eq!(world.pm.programs.system.exec_paths, ["/sbin/init", "/sbin/init", "/x"], "others repeat their call");
}

#[test]
fn events_that_came_meanwhile_are_fetched() {
    let mut world = World::new();
    let (pid, child) = world.fork(world.init);
    let (other_pid, other) = world.fork(world.init);
    world.handle_signal(child, USR1, 0);
    let event = (vfs::EVENT_MESSAGE, Endpoint::NONE, [pid | USR1 << 32, 0, 0, 0]);
    world.pm.programs.system.file_events.push_back(event);
    world.call(world.init, nr::SETPGID, &[other_pid, other_pid]);
    world.pm.programs.system.terminal_events.push_back((15, other_pid));
    restart(&mut world);
    assert!(world.thread(child).interrupted && world.thread(other).interrupted);
}

/// pm dies while it handles this message.
fn die_over(world: &mut World, message: &Message) {
    world.pm.programs.system.dies_in = Some(1);
    let handled = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| world.pm.handle(message)));
    assert!(handled.is_err());
    restart(world);
}

#[test]
fn vfs_is_told_ids_and_session_again_of_whom_pm_died_over() {
    let mut world = World::new();
    let (_, shell) = world.fork(world.init);
    let session = world.call(shell, nr::SETSID, &[]).unwrap().unwrap() as u32;
    let (pid, child) = world.fork(shell);
    for (caller, group, leader) in [(shell, session, true), (child, pid as u32, false)] {
        world.call(shell, nr::SETPGID, &[pid, pid]);
        world.call(caller, nr::SETRESUID, &[1, 0, 3]);
        world.thread(caller).waits = true;
        die_over(&mut world, &Message { source: caller, ..Message::new(nr::FORK) });
        let told = world.told();
        assert!(told.contains(&Told::Ids { thread: caller, effective: 0, real: 1, groups: Vec::new() }));
        assert!(told.contains(&Told::Session { thread: caller, session, group, leader }), "{told:?}");
        assert!(told.contains(&Told::Limits {
            thread: caller,
            descriptors: 1024,
            file_bytes: u64::MAX,
            message_bytes: 819_200
        }));
        world.thread(caller).waits = false;
    }
}

#[test]
fn a_report_over_which_pm_dies_twice_kills_its_program() {
    let mut world = World::new();
    let (pid, child) = world.fork(world.init);
    let report = Message { source: child, ..kernel::Interrupted {}.message() };
    for _ in 0..2 {
        world.thread(child).waits = true;
        die_over(&mut world, &report);
    }
    assert!(world.pm.handle(&report).done().is_none());
    assert!(!world.is_there(child));
    assert!(world.pm.programs.system.printed.contains("refused a message over which it has died twice"));
    assert_eq!(world.call(world.init, nr::WAIT4, &[pid, BUFFER, 0, 0]), Some(Ok(pid)));
    assert_eq!(world.read(world.init, BUFFER) as u32, 9);
}

#[test]
fn a_request_over_which_pm_dies_twice_fails() {
    let mut world = World::new();
    let mut pm = crate::pm::Pm::new(super::fake::Fake::default(), crate::state::random::Random::new([1; 32]));
    std::mem::swap(&mut world.pm, &mut pm);
    let request = Message { source: Endpoint::current(slot::RS), ..abi::pm::Boot {}.message() };
    for _ in 0..2 {
        die_over(&mut world, &request);
    }
    assert_eq!(world.pm.handle(&request).done().unwrap().result(), Err(Errno::EIO));
    assert_eq!(world.pm.handle(&request).done().unwrap().result(), Ok(0), "the next one is another");
}
