//! Signals from sending to the return of the handler.

use super::{MEMORY, World};
use crate::state::signal::action::{NO_DEFER, RESET_HAND, RESTART};
use abi::endpoint::slot;
use abi::info::state;
use abi::linux::nr;
use abi::{Endpoint, Errno, Message, kernel, vfs};

const BUFFER: u64 = MEMORY.start + 0x100;
const USR1: u64 = 10;
const HANDLER: u64 = 0xaaaa;

fn block(world: &mut World, thread: Endpoint, how: u64, signal: u64) {
    world.write(thread, BUFFER, &[1 << (signal - 1)]);
    world.call(thread, nr::RT_SIGPROCMASK, &[how, BUFFER, 0, 8]);
}

fn runs_handler(world: &mut World, thread: Endpoint) -> bool {
    world.pm.programs.system.thread(thread).registers.rip == HANDLER
}

/// The handler returns: its `ret` has popped the return address.
fn sigreturn(world: &mut World, thread: Endpoint) {
    world.pm.programs.system.thread(thread).registers.rsp += 8;
    assert_eq!(world.call(thread, nr::RT_SIGRETURN, &[]), None);
}

#[test]
fn a_fatal_signal_ends_the_process_when_it_is_next_to_run() {
    let mut world = World::new();
    let (pid, child) = world.fork(world.init);
    assert_eq!(world.call(world.init, nr::KILL, &[pid, 15]), Some(Ok(0)));
    assert!(world.is_there(child));
    world.report_interrupted(child, None);
    assert!(!world.is_there(child));
    assert_eq!(world.call(world.init, nr::WAIT4, &[pid, BUFFER, 0, 0]), Some(Ok(pid)));
    assert_eq!(world.read(world.init, BUFFER) as u32, 15);
}

#[test]
fn a_pending_signal_comes_before_a_child() {
    for call in [nr::FORK, nr::VFORK, nr::CLONE] {
        let mut world = World::new();
        let (pid, child) = world.fork(world.init);
        world.handle_signal(child, USR1, 0);
        assert_eq!(world.call(world.init, nr::KILL, &[pid, USR1]), Some(Ok(0)));
        let newest = world.newest();
        world.pm.programs.system.thread(child).registers.rip = 0x5002;
        assert_eq!(world.call(child, call, &[]), None);
        assert!(runs_handler(&mut world, child) && world.newest() == newest, "{call}");
        sigreturn(&mut world, child);
        let registers = world.pm.programs.system.thread(child).registers;
        assert_eq!((registers.rip, registers.rax), (0x5000, call.into()), "{call} is made again");
        assert!(world.call(child, call, &[]).is_none_or(|made| made.is_ok()) && world.newest() != newest, "{call}");
    }
}

#[test]
fn a_process_that_a_signal_is_to_end_forks_no_more() {
    let mut world = World::new();
    let (pid, child) = world.fork(world.init);
    assert_eq!(world.call(world.init, nr::KILL, &[pid, 15]), Some(Ok(0)));
    let newest = world.newest();
    assert_eq!(world.call(child, nr::FORK, &[]), None);
    assert!(!world.is_there(child) && world.newest() == newest);
}

#[test]
fn a_handler_runs_on_the_way_out_of_kill_and_sigreturn_restores_everything() {
    let mut world = World::new();
    let (pid, child) = world.fork(world.init);
    world.handle_signal(child, USR1, 0);
    let registers = &mut world.pm.programs.system.thread(child).registers;
    (registers.rip, registers.rbx, registers.r15) = (0x5000, 77, 88);
    let stack = registers.rsp;
    assert_eq!(world.call(child, nr::KILL, &[pid, USR1]), None);
    assert!(runs_handler(&mut world, child));
    let registers = world.pm.programs.system.thread(child).registers;
    assert_eq!(registers.rdi, USR1);
    assert_eq!(registers.rsp % 16, 8);
    assert!(registers.rsp < stack - 128);
    assert_eq!(world.read(child, registers.rsp), 0xbbbb);
    assert_eq!(world.read(child, registers.rsi) as u32, USR1 as u32);
    assert_eq!(world.read(child, registers.rsi + 16) as u32, pid as u32);

    world.pm.programs.system.thread(child).registers.rbx = 0;
    sigreturn(&mut world, child);
    let registers = world.pm.programs.system.thread(child).registers;
    assert_eq!((registers.rip, registers.rbx, registers.r15, registers.rax, registers.rsp), (0x5000, 77, 88, 0, stack));
}

#[test]
fn the_signal_is_blocked_while_its_handler_runs_unless_nodefer() {
    for (flags, blocked) in [(0, true), (NO_DEFER, false)] {
        let mut world = World::new();
        let (pid, child) = world.fork(world.init);
        world.handle_signal(child, USR1, flags);
        world.call(child, nr::KILL, &[pid, USR1]);
        world.pm.programs.system.thread(child).registers.rip = 1;
        let second = world.call(child, nr::KILL, &[pid, USR1]);
        assert_eq!(second == Some(Ok(0)), blocked);
        if blocked {
            sigreturn(&mut world, child);
            assert!(
                world.pm.programs.system.thread(child).registers.rip == HANDLER,
                "the second signal comes after the first handler"
            );
        }
    }
}

#[test]
fn a_handler_runs_on_the_way_out_of_a_call_that_only_looks_something_up() {
    let mut world = World::new();
    let (pid, child) = world.fork(world.init);
    world.handle_signal(child, USR1, 0);
    world.call(world.init, nr::KILL, &[pid, USR1]);
    assert_eq!(world.call(child, nr::GETPID, &[]), None);
    assert!(runs_handler(&mut world, child));
    sigreturn(&mut world, child);
    assert_eq!(world.pm.programs.system.thread(child).registers.rax, pid);
}

#[test]
fn a_handler_for_one_time_falls_back_to_the_default() {
    let mut world = World::new();
    let (pid, child) = world.fork(world.init);
    world.handle_signal(child, USR1, RESET_HAND | NO_DEFER);
    world.call(world.init, nr::KILL, &[pid, USR1]);
    world.report_interrupted(child, None);
    assert!(runs_handler(&mut world, child));
    world.call(world.init, nr::KILL, &[pid, USR1]);
    world.report_interrupted(child, None);
    assert!(!world.is_there(child));
}

#[test]
fn a_call_of_vfs_is_cancelled_and_repeated_with_sa_restart_only() {
    for (flags, call, expected) in
        [(RESTART, nr::READ, nr::READ as u64), (0, nr::READ, -4i64 as u64), (RESTART, nr::POLL, -4i64 as u64)]
    {
        let mut world = World::new();
        let (pid, child) = world.fork(world.init);
        world.handle_signal(child, USR1, flags);
        let entry = world.pm.programs.system.thread(child);
        entry.blocked_on = Endpoint::current(slot::VFS);
        entry.registers.rip = 0x5002;
        world.call(world.init, nr::KILL, &[pid, USR1]);
        assert_eq!(world.pm.programs.system.cancelled, [(child, Errno::ERESTARTSYS)]);
        world.report_interrupted(child, Some((call, Err(Errno::ERESTARTSYS))));
        assert!(runs_handler(&mut world, child));
        sigreturn(&mut world, child);
        let registers = world.pm.programs.system.thread(child).registers;
        assert_eq!(registers.rax, expected);
        assert_eq!(registers.rip, if flags == RESTART && call == nr::READ { 0x5000 } else { 0x5002 });
    }
}

#[test]
fn a_call_that_vfs_has_not_received_is_withdrawn() {
    let mut world = World::new();
    let (pid, child) = world.fork(world.init);
    world.handle_signal(child, USR1, 0);
    let entry = world.pm.programs.system.thread(child);
    entry.blocked_on = Endpoint::current(slot::VFS);
    entry.state = state::SENDING;
    (entry.registers.rip, entry.registers.linux_call) = (0x5002, 0);
    world.call(world.init, nr::KILL, &[pid, USR1]);
    let registers = world.pm.programs.system.thread(child).registers;
    assert_eq!((registers.rip, registers.rax), (0x5000, nr::READ as u64));
    world.report_interrupted(child, None);
    assert!(runs_handler(&mut world, child));
}

#[test]
fn a_call_that_vfs_receives_after_it_has_heard_of_the_signal_is_cancelled() {
    let mut world = World::new();
    let (pid, child) = world.fork(world.init);
    world.handle_signal(child, USR1, 0);
    let entry = world.pm.programs.system.thread(child);
    (entry.blocked_on, entry.state) = (Endpoint::current(slot::VFS), state::SENDING);
    world.pm.programs.system.vfs_is_late = true;
    world.call(world.init, nr::KILL, &[pid, USR1]);
    assert_eq!(world.pm.programs.system.cancelled, [(child, Errno::ERESTARTSYS); 2]);
}

#[test]
fn sigsuspend_runs_the_handler_and_restores_the_mask() {
    let mut world = World::new();
    let (pid, child) = world.fork(world.init);
    world.handle_signal(child, USR1, 0);
    block(&mut world, child, 0, USR1);
    world.call(world.init, nr::KILL, &[pid, USR1]);
    world.write(child, BUFFER, &[0]);
    assert_eq!(world.call(child, nr::RT_SIGSUSPEND, &[BUFFER, 8]), None);
    assert!(runs_handler(&mut world, child));
    sigreturn(&mut world, child);
    assert_eq!(world.pm.programs.system.thread(child).registers.rax, -4i64 as u64);
    world.call(child, nr::RT_SIGPROCMASK, &[0, 0, BUFFER, 8]);
    assert_eq!(world.read(child, BUFFER), 1 << (USR1 - 1));
}

#[test]
fn sigtimedwait_takes_a_blocked_signal_or_times_out() {
    let mut world = World::new();
    let (pid, child) = world.fork(world.init);
    block(&mut world, child, 0, USR1);
    world.write(child, BUFFER, &[1 << (USR1 - 1), 1, 0]);
    assert_eq!(world.call(child, nr::RT_SIGTIMEDWAIT, &[BUFFER, 0, BUFFER + 8, 8]), None);
    world.call(world.init, nr::KILL, &[pid, USR1]);
    assert_eq!(world.answer(child), Some(Ok(USR1)));
    assert_eq!(world.call(child, nr::RT_SIGTIMEDWAIT, &[BUFFER, 0, BUFFER + 8, 8]), None);
    world.set_time(2_000_000_000);
    assert_eq!(world.answer(child), Some(Err(Errno::EAGAIN)));
}

#[test]
fn waiting_for_children_ends_for_a_handler_but_the_childs_end_comes_first() {
    let mut world = World::new();
    let (_, parent) = world.fork(world.init);
    world.handle_signal(parent, 17, 0);
    let (pid, child) = world.fork(parent);
    assert_eq!(world.call(parent, nr::WAIT4, &[u64::MAX, BUFFER, 0, 0]), None);
    world.call(child, nr::EXIT_GROUP, &[0]);
    assert!(runs_handler(&mut world, parent));
    sigreturn(&mut world, parent);
    assert_eq!(world.pm.programs.system.thread(parent).registers.rax, pid);
}

#[test]
fn an_exception_without_a_handler_kills_and_is_logged() {
    let mut world = World::new();
    let (pid, child) = world.fork(world.init);
    let exception = kernel::Exception { vector: 14, error: -14i64 as u64, ip: 0x5000, address: 0x66 };
    block(&mut world, child, 0, 11);
    assert!(world.pm.handle(&Message { source: child, ..exception.message() }).done().is_none());
    assert!(!world.is_there(child));
    assert!(world.pm.programs.system.printed.contains("SIGSEGV"));
    world.call(world.init, nr::WAIT4, &[pid, BUFFER, 0, 0]);
    assert_eq!(world.read(world.init, BUFFER) as u32, 11);
}

#[test]
fn an_exception_with_a_handler_tells_the_address() {
    let mut world = World::new();
    let (_, child) = world.fork(world.init);
    world.handle_signal(child, 11, 0);
    let exception = kernel::Exception { vector: 14, error: -14i64 as u64, ip: 0x5000, address: 0x66 };
    world.pm.handle(&Message { source: child, ..exception.message() });
    assert!(runs_handler(&mut world, child));
    let registers = world.pm.programs.system.thread(child).registers;
    assert_eq!(world.read(child, registers.rsi + 16), 0x66);
}

#[test]
fn a_handler_without_stack_is_the_end() {
    let mut world = World::new();
    let (pid, child) = world.fork(world.init);
    world.handle_signal(child, USR1, 0);
    world.pm.programs.system.thread(child).registers.rsp = 64;
    world.call(child, nr::KILL, &[pid, USR1]);
    assert!(!world.is_there(child));
}

#[test]
fn the_alternate_stack_is_used_and_shown_as_busy() {
    let mut world = World::new();
    let (pid, child) = world.fork(world.init);
    world.handle_signal(child, USR1, crate::state::signal::action::ON_STACK);
    world.write(child, BUFFER, &[MEMORY.start + 0x4000, 0, 0x2000]);
    assert_eq!(world.call(child, nr::SIGALTSTACK, &[BUFFER, 0]), Some(Ok(0)));
    world.call(child, nr::KILL, &[pid, USR1]);
    let stack_pointer = world.pm.programs.system.thread(child).registers.rsp;
    assert!((MEMORY.start + 0x4000..MEMORY.start + 0x6000).contains(&stack_pointer));
    assert_eq!(world.call(child, nr::SIGALTSTACK, &[BUFFER, 0]), Some(Err(Errno::EPERM)));
}

#[test]
fn sigpipe_of_vfs_kills_or_ends_the_write_with_epipe() {
    let mut world = World::new();
    let (_, child) = world.fork(world.init);
    world.file_event(vfs::EVENT_SIGNAL, child, [13, 0, 0, 0]);
    assert_eq!(world.pm.programs.system.cancelled, [(child, Errno::EPIPE)]);
    world.report_interrupted(child, Some((nr::WRITE, Err(Errno::EPIPE))));
    assert!(!world.is_there(child));
}

#[test]
fn a_message_in_a_queue_runs_the_handler_of_whoever_asked_to_be_told() {
    let mut world = World::new();
    let (pid, child) = world.fork(world.init);
    world.handle_signal(child, USR1, 0);
    let values = |pid: u64| [pid | USR1 << 32, 42, 1, 0];
    world.file_event(vfs::EVENT_MESSAGE, Endpoint::NONE, values(pid + 1));
    assert!(!runs_handler(&mut world, child));
    world.file_event(vfs::EVENT_MESSAGE, Endpoint::NONE, values(pid));
    world.report_interrupted(child, None);
    assert!(runs_handler(&mut world, child));
}

/// vfs reports a lease of descriptor 9 that is to be broken; `users`: real and effective id of who named its owner.
fn break_lease(world: &mut World, kind: u64, id: u64, signal: u64, users: [u64; 2]) {
    let values = [id | kind << 32 | signal << 40, 9 | vfs::OWNER_MESSAGE << 32, users[0] | users[1] << 32, 0];
    world.file_event(vfs::EVENT_OWNER, Endpoint::NONE, values);
}

/// Signal, code, band and descriptor that the handler was told, once it has run.
fn told(world: &mut World, thread: Endpoint) -> Option<[u64; 4]> {
    if !world.thread(thread).interrupted {
        return None;
    }
    world.report_interrupted(thread, None);
    assert!(runs_handler(world, thread));
    let registers = world.pm.programs.system.thread(thread).registers;
    let info: [u64; 4] = core::array::from_fn(|word| world.read(thread, registers.rsi + 8 * word as u64));
    sigreturn(world, thread);
    world.pm.programs.system.thread(thread).registers.rip = 1;
    Some([info[0], info[1] as u32 as u64, info[2], info[3]])
}

#[test]
fn the_owner_of_a_lease_is_told_which_is_to_be_broken() {
    const IO: u64 = 29;
    const CHLD: u64 = 17;
    const REAL_TIME: u64 = 40;
    const BAND: u64 = 0x441;
    let mut world = World::new();
    let (pid, child) = world.fork(world.init);
    [USR1, IO, CHLD, REAL_TIME].into_iter().for_each(|signal| world.handle_signal(child, signal, 0));
    for kind in [vfs::OWNER_THREAD, vfs::OWNER_PROCESS] {
        break_lease(&mut world, kind, pid, USR1, [0, 0]);
        assert_eq!(told(&mut world, child), Some([USR1, 3, BAND, 9]));
    }
    break_lease(&mut world, vfs::OWNER_PROCESS, pid, REAL_TIME, [0, 0]);
    assert_eq!(told(&mut world, child), Some([REAL_TIME, 3, BAND, 9]));
    break_lease(&mut world, vfs::OWNER_PROCESS, pid, CHLD, [0, 0]);
    assert_eq!(told(&mut world, child), Some([CHLD, -5i32 as u32 as u64, BAND, 9]), "POLL_MSG would be CLD_DUMPED");
    break_lease(&mut world, vfs::OWNER_PROCESS, pid, 0, [0, 0]);
    assert_eq!(told(&mut world, child), Some([IO, 0x80, 0, 0]));
    for kind in [vfs::OWNER_THREAD, vfs::OWNER_PROCESS, vfs::OWNER_GROUP] {
        break_lease(&mut world, kind, pid + 1, USR1, [0, 0]);
        assert_eq!(told(&mut world, child), None, "nobody has this id");
    }
}

#[test]
fn an_owner_may_be_a_group() {
    let mut world = World::new();
    let (pid, child) = world.fork(world.init);
    let (other_pid, other) = world.fork(world.init);
    world.call(world.init, nr::SETPGID, &[pid, pid]);
    world.call(world.init, nr::SETPGID, &[other_pid, pid]);
    [child, other].into_iter().for_each(|thread| world.handle_signal(thread, USR1, 0));
    break_lease(&mut world, vfs::OWNER_GROUP, pid, USR1, [0, 0]);
    assert!([child, other].into_iter().all(|thread| told(&mut world, thread).is_some()));
}

#[test]
fn who_named_the_owner_must_be_allowed_to_signal_it() {
    let mut world = World::new();
    let (pid, child) = world.fork(world.init);
    world.call(child, nr::SETUID, &[1000]);
    world.handle_signal(child, USR1, 0);
    for (users, arrives) in [([1001, 1002], false), ([1000, 1002], true), ([1001, 1000], true), ([1001, 0], true)] {
        break_lease(&mut world, vfs::OWNER_PROCESS, pid, USR1, users);
        assert_eq!(told(&mut world, child).is_some(), arrives, "{users:?}");
    }
}

#[test]
fn a_lease_without_room_for_its_signal_is_told_by_sigio() {
    const REAL_TIME: u64 = 40;
    const IO: u64 = 29;
    let mut world = World::new();
    let (pid, child) = world.fork(world.init);
    world.handle_signal(child, IO, 0);
    block(&mut world, child, 0, REAL_TIME);
    while world.call(world.init, nr::KILL, &[pid, REAL_TIME]) == Some(Ok(0)) {}
    break_lease(&mut world, vfs::OWNER_PROCESS, pid, REAL_TIME, [0, 0]);
    assert_eq!(told(&mut world, child), Some([IO, 0, 0, 0]), "for a reason there is no room either");
}

#[test]
fn the_first_process_is_only_touched_by_what_it_handles() {
    let mut world = World::new();
    world.call(world.init, nr::KILL, &[1, 9]);
    world.call(world.init, nr::KILL, &[1, USR1]);
    assert!(world.is_there(world.init));
    world.handle_signal(world.init, USR1, 0);
    world.call(world.init, nr::KILL, &[1, USR1]);
    let init = world.init;
    assert!(runs_handler(&mut world, init));
}

#[test]
fn the_first_process_waits_for_signals_it_blocks() {
    let mut world = World::new();
    let init = world.init;
    let (_, child) = world.fork(init);
    block(&mut world, init, 0, USR1);
    world.write(init, BUFFER, &[1 << (USR1 - 1)]);
    assert_eq!(world.call(init, nr::RT_SIGTIMEDWAIT, &[BUFFER, 0, 0, 8]), None);
    world.call(child, nr::KILL, &[1, USR1]);
    assert_eq!(world.answer(init), Some(Ok(USR1)));
    world.call(child, nr::KILL, &[1, USR1]);
    assert_eq!(world.call(init, nr::RT_SIGTIMEDWAIT, &[BUFFER, 0, 0, 8]), Some(Ok(USR1)));
    world.call(child, nr::KILL, &[1, USR1]);
    block(&mut world, init, 1, USR1);
    assert!(world.is_there(init), "unblocked, it has no effect");
}

#[test]
fn rights_are_checked() {
    let mut world = World::new();
    let (_, child) = world.fork(world.init);
    world.call(child, nr::SETUID, &[1000]);
    assert_eq!(world.call(child, nr::KILL, &[1, 0]), Some(Err(Errno::EPERM)));
    assert_eq!(world.call(child, nr::KILL, &[31000, 0]), Some(Err(Errno::ESRCH)));
    assert_eq!(world.call(child, nr::KILL, &[1, 65]), Some(Err(Errno::EINVAL)));
    assert_eq!(world.call(child, nr::TGKILL, &[5, 0, 0]), Some(Err(Errno::EINVAL)));
}

#[test]
fn a_sleeper_that_is_ended_wakes_to_die() {
    let mut world = World::new();
    let (pid, child) = world.fork(world.init);
    world.write(child, BUFFER, &[5, 0]);
    assert_eq!(world.call(child, nr::NANOSLEEP, &[BUFFER, 0]), None);
    world.call(world.init, nr::KILL, &[pid, 15]);
    assert_eq!(world.pm.programs.system.alarm, None);
    assert!(world.is_there(child));
    world.report_interrupted(child, None);
    assert!(!world.is_there(child));
}
