//! Job control: stopping, continuing, groups, sessions.

use super::{MEMORY, Told, World};
use abi::endpoint::slot;
use abi::linux::nr;
use abi::{Endpoint, Errno};

const BUFFER: u64 = MEMORY.start + 0x100;
const STOP: u64 = 19;
const TSTP: u64 = 20;
const CONT: u64 = 18;
const WNOHANG_WUNTRACED_WCONTINUED: u64 = 1 | 2 | 8;

/// A shell in a session of its own, with a job in a group of its own.
fn shell_and_job(world: &mut World) -> (Endpoint, u64, Endpoint) {
    let (_, shell) = world.fork(world.init);
    world.call(shell, nr::SETSID, &[]).unwrap().unwrap();
    let (pid, job) = world.fork(shell);
    assert_eq!(world.call(shell, nr::SETPGID, &[pid, pid]), Some(Ok(0)));
    (shell, pid, job)
}

fn status(world: &mut World, shell: Endpoint) -> u32 {
    let pid = world.call(shell, nr::WAIT4, &[u64::MAX, BUFFER, WNOHANG_WUNTRACED_WCONTINUED, 0]).unwrap().unwrap();
    if pid == 0 { 0 } else { world.read(shell, BUFFER) as u32 }
}

#[test]
fn control_z_stops_the_job_and_fg_continues_its_read() {
    let mut world = World::new();
    let (shell, pid, job) = shell_and_job(&mut world);
    let entry = world.pm.programs.system.thread(job);
    entry.blocked_on = Endpoint::current(slot::VFS);
    entry.registers.rip = 0x5002;
    world.terminal_event(TSTP, pid);
    assert_eq!(world.pm.programs.system.cancelled, [(job, Errno::ERESTARTSYS)]);
    assert_eq!(world.report_interrupted(job, Some((nr::READ, Err(Errno::ERESTARTSYS)))), None);
    assert!(world.pm.programs.system.thread(job).waits, "a stopped thread is not answered");
    assert_eq!(status(&mut world, shell), 0x147f);
    assert_eq!(status(&mut world, shell), 0);

    world.call(shell, nr::KILL, &[-(pid as i64) as u64, CONT]);
    let entry = world.pm.programs.system.thread(job);
    assert!(!entry.waits);
    assert_eq!((entry.registers.rip, entry.registers.rax), (0x5000, nr::READ as u64));
    assert_eq!(status(&mut world, shell), 0xffff);
}

#[test]
fn a_sleep_that_ends_while_stopped_is_answered_after_sigcont() {
    let mut world = World::new();
    let (shell, pid, job) = shell_and_job(&mut world);
    world.write(job, BUFFER, &[1, 0]);
    assert_eq!(world.call(job, nr::NANOSLEEP, &[BUFFER, 0]), None);
    world.call(shell, nr::KILL, &[pid, STOP]);
    world.set_time(2_000_000_000);
    assert_eq!(world.answer(job), None);
    world.call(shell, nr::KILL, &[pid, CONT]);
    assert_eq!(world.answer(job), Some(Ok(0)));
}

#[test]
fn a_process_can_stop_itself_and_signals_wait_until_it_continues() {
    let mut world = World::new();
    let (shell, pid, job) = shell_and_job(&mut world);
    assert_eq!(world.call(job, nr::KILL, &[pid, STOP]), None);
    assert_eq!(status(&mut world, shell), 0x137f);
    world.call(shell, nr::KILL, &[pid, 15]);
    assert!(world.is_there(job));
    world.call(shell, nr::KILL, &[pid, CONT]);
    assert!(!world.is_there(job), "the pending SIGTERM takes effect");
}

#[test]
fn kill_reaches_a_stopped_process() {
    let mut world = World::new();
    let (shell, pid, job) = shell_and_job(&mut world);
    world.call(shell, nr::KILL, &[pid, STOP]);
    world.call(shell, nr::KILL, &[pid, 9]);
    assert!(!world.is_there(job));
    assert_eq!(status(&mut world, shell), 9);
}

#[test]
fn orphaned_groups_are_not_stopped_by_the_terminal_and_get_hup_when_stopped() {
    let mut world = World::new();
    let (shell, pid, job) = shell_and_job(&mut world);
    world.call(shell, nr::KILL, &[pid, STOP]);
    world.call(shell, nr::EXIT_GROUP, &[0]);
    world.report_interrupted(job, None);
    assert!(!world.is_there(job), "SIGHUP ends the stopped orphan");
    assert!(!world.pm.programs.table.has_stopped());

    let (shell, pid, job) = shell_and_job(&mut world);
    world.call(shell, nr::EXIT_GROUP, &[0]);
    world.terminal_event(TSTP, pid);
    assert!(!world.pm.programs.system.thread(job).interrupted);
}

#[test]
fn the_end_of_a_session_leader_is_told_to_tty() {
    let mut world = World::new();
    let (_, shell) = world.fork(world.init);
    let session = world.call(shell, nr::SETSID, &[]).unwrap().unwrap();
    assert_eq!(world.call(shell, nr::SETSID, &[]), Some(Err(Errno::EPERM)));
    world.call(shell, nr::EXIT_GROUP, &[0]);
    assert_eq!(world.pm.programs.system.sessions_ended, [session as u32]);
}

#[test]
fn setpgid_keeps_to_the_rules() {
    let mut world = World::new();
    let (shell, pid, job) = shell_and_job(&mut world);
    assert_eq!(world.call(job, nr::GETPGRP, &[]), Some(Ok(pid)));
    assert_eq!(world.call(shell, nr::SETPGID, &[0, 0]), Some(Err(Errno::EPERM)), "a session leader stays");
    assert_eq!(world.call(shell, nr::SETPGID, &[pid, 4000]), Some(Err(Errno::EPERM)), "no such group");
    assert_eq!(world.call(shell, nr::SETPGID, &[1, 0]), Some(Err(Errno::ESRCH)), "not a child");
    assert_eq!(world.call(job, nr::SETPGID, &[0, u64::MAX]), Some(Err(Errno::EINVAL)));
}

#[test]
fn groups_and_sessions_of_others_are_told() {
    let mut world = World::new();
    let (shell, pid, job) = shell_and_job(&mut world);
    let session = world.call(shell, nr::GETSID, &[0]).unwrap();
    for (caller, target) in [(job, 0), (job, pid), (shell, pid), (world.init, pid)] {
        assert_eq!(world.call(caller, nr::GETPGID, &[target]), Some(Ok(pid)));
        assert_eq!(world.call(caller, nr::GETSID, &[target]), Some(session));
    }
    assert_eq!(world.call(job, nr::GETPGID, &[1]), Some(Ok(1)));
    for call in [nr::GETPGID, nr::GETSID] {
        for unknown in [4000, u64::MAX] {
            assert_eq!(world.call(shell, call, &[unknown]), Some(Err(Errno::ESRCH)));
        }
    }
}

#[test]
fn a_child_is_moved_by_its_parent_until_it_execs_or_leaves_the_session() {
    let mut world = World::new();
    let (shell, pid, job) = shell_and_job(&mut world);
    let (other_pid, other) = world.fork(shell);
    world.told();
    assert_eq!(world.call(shell, nr::SETPGID, &[other_pid, pid]), Some(Ok(0)));
    let session = world.call(shell, nr::GETSID, &[0]).unwrap().unwrap() as u32;
    assert_eq!(world.told(), [Told::Session { thread: other, session, group: pid as u32, leader: false }]);
    assert_eq!(world.call(other, nr::SETPGID, &[0, 0]), Some(Ok(0)));
    assert_eq!(world.call(other, nr::GETPGRP, &[]), Some(Ok(other_pid)));
    world.write_bytes(job, BUFFER, b"/x\0");
    world.call(job, nr::EXECVE, &[BUFFER, 0, 0]);
    world.exec_event(job, b"/x", 0);
    assert_eq!(world.call(shell, nr::SETPGID, &[pid, 0]), Some(Err(Errno::EACCES)));
    assert_eq!(world.call(job, nr::SETPGID, &[0, 0]), Some(Ok(0)), "itself it may");
    world.told();
    assert_eq!(world.call(other, nr::SETPGID, &[0, pid]), Some(Ok(0)));
    assert_eq!(world.call(other, nr::SETSID, &[]), Some(Ok(other_pid)));
    assert_eq!(world.call(shell, nr::SETPGID, &[other_pid, 0]), Some(Err(Errno::EPERM)));
    world.call(other, nr::EXIT_GROUP, &[0]);
    assert_eq!(world.call(shell, nr::SETPGID, &[other_pid, 0]), Some(Err(Errno::ESRCH)), "a zombie");
}

#[test]
fn a_terminal_signal_reaches_the_whole_group() {
    let mut world = World::new();
    let (_, pid, job) = shell_and_job(&mut world);
    let (_, helper) = world.fork(job);
    world.terminal_event(2, pid);
    world.report_interrupted(job, None);
    world.report_interrupted(helper, None);
    assert!(!world.is_there(job) && !world.is_there(helper));
}

#[test]
fn a_terminal_signal_for_a_process_reaches_it_alone_or_tells_that_it_is_gone() {
    let mut world = World::new();
    let (shell, pid, job) = shell_and_job(&mut world);
    let (_, helper) = world.fork(job);
    world.terminal_event(0, abi::tty::TO_PROCESS | pid);
    assert!(world.is_there(job), "0 is no signal");
    world.terminal_event(10, abi::tty::TO_PROCESS | pid);
    world.report_interrupted(job, None);
    assert!(!world.is_there(job) && world.is_there(helper));
    assert!(world.pm.programs.system.processes_gone.is_empty());
    for (signal, expected) in [(10, 1), (0, 2)] {
        world.terminal_event(signal, abi::tty::TO_PROCESS | pid);
        assert_eq!(world.pm.programs.system.processes_gone, vec![pid as u32; expected], "a zombie");
    }
    world.call(shell, nr::WAIT4, &[pid, 0, 0, 0]);
    world.terminal_event(0, abi::tty::TO_PROCESS | pid);
    assert_eq!(world.pm.programs.system.processes_gone.len(), 3);
}

#[test]
fn a_background_read_stops_the_job_or_fails_when_it_cannot() {
    let mut world = World::new();
    let (shell, pid, job) = shell_and_job(&mut world);
    world.pm.programs.system.thread(job).blocked_on = Endpoint::current(slot::VFS);
    world.terminal_event(21, pid);
    assert_eq!(status(&mut world, shell), 0x157f);

    let (_, pid, job) = shell_and_job(&mut world);
    world.write(job, BUFFER, &[1, 0, 0, 0]);
    world.call(job, nr::RT_SIGACTION, &[21, BUFFER, 0, 8]);
    world.pm.programs.system.thread(job).blocked_on = Endpoint::current(slot::VFS);
    world.terminal_event(21, pid);
    assert_eq!(world.pm.programs.system.cancelled.last(), Some(&(job, Errno::EIO)));
}

#[test]
fn a_background_change_stops_the_job_is_allowed_or_fails() {
    const CHANGES: u64 = abi::tty::TO_PROCESS | abi::tty::CHANGES;
    let mut world = World::new();
    let (shell, pid, job) = shell_and_job(&mut world);
    world.pm.programs.system.thread(job).blocked_on = Endpoint::current(slot::VFS);
    world.terminal_event(0, CHANGES | pid);
    assert_eq!(status(&mut world, shell), 0x167f);
    assert!(world.pm.programs.system.judged.is_empty());

    let (shell, pid, job) = shell_and_job(&mut world);
    world.write(job, BUFFER, &[1, 0, 0, 0]);
    world.call(job, nr::RT_SIGACTION, &[22, BUFFER, 0, 8]);
    world.terminal_event(0, CHANGES | pid);
    assert_eq!(world.pm.programs.system.judged, [(pid as u32, true)]);

    world.write(job, BUFFER, &[0, 0, 0, 0]);
    world.call(job, nr::RT_SIGACTION, &[22, BUFFER, 0, 8]);
    world.call(shell, nr::EXIT_GROUP, &[0]);
    world.terminal_event(0, CHANGES | pid);
    assert_eq!(world.pm.programs.system.judged[1..], [(pid as u32, false)], "nobody is left to continue it");
    world.terminal_event(0, CHANGES | 9999);
    assert_eq!(world.pm.programs.system.judged.len(), 2);
}

#[test]
fn a_group_that_was_orphaned_all_along_gets_no_hangup() {
    let mut world = World::new();
    let (_, script) = world.fork(world.init);
    world.call(script, nr::SETSID, &[]).unwrap().unwrap();
    let (pid, _) = world.fork(script);
    let (_, other) = world.fork(script);
    world.call(script, nr::KILL, &[pid, STOP]);
    world.call(other, nr::EXIT_GROUP, &[0]);
    assert!(world.is_there(script));
    assert!(world.pm.programs.table.has_stopped());
}
