//! Tracing: stops at calls and signals, what tracers may do, and the end of either side.

use super::fake::Told;
use super::{MEMORY, World};
use crate::state::trace::option;
use abi::call::resume;
use abi::linux::nr;
use abi::{Endpoint, Errno, Message, Word, kernel};

const BUFFER: u64 = MEMORY.start + 0x800;
const CONT: u64 = 7;
const ATTACH: u64 = 16;
const DETACH: u64 = 17;
const SYSCALL: u64 = 24;
const GETREGS: u64 = 12;
const POKEUSER: u64 = 6;
const SETOPTIONS: u64 = 0x4200;
const SEIZE: u64 = 0x4206;
const INTERRUPT: u64 = 0x4207;
const WALL: u64 = 0x4000_0000;
const NOHANG: u64 = 1;
const SIGTRAP: u64 = 5;
const SIGUSR1: u64 = 10;
const SIGSTOP: u64 = 19;

type Outcome = Option<Result<u64, Errno>>;

fn ptrace(world: &mut World, tracer: Endpoint, request: u64, pid: u64, data: u64) -> Outcome {
    world.call(tracer, nr::PTRACE, &[request, pid, 0, data])
}

/// The status that a wait finds; `None`: nothing has happened.
fn status(world: &mut World, tracer: Endpoint, pid: u64) -> Option<u64> {
    let found = world.call(tracer, nr::WAIT4, &[pid, BUFFER, WALL | NOHANG, 0]).unwrap().unwrap();
    (found == pid).then(|| world.read(tracer, BUFFER) & 0xffff_ffff)
}

fn stopped_by(signal: u64) -> Option<u64> {
    Some(signal << 8 | 0x7f)
}

/// The kernel tells pm of a call that a traced thread makes.
fn report_call(world: &mut World, thread: Endpoint, number: u32) {
    world.thread(thread).waits = true;
    world.thread(thread).registers.rax = number.into();
    let message = Message { source: thread, ..kernel::LinuxCall { number: number.into() }.message() };
    assert!(world.pm.handle(&message).done().is_none());
}

fn report_exception(world: &mut World, thread: Endpoint, vector: u64) {
    world.thread(thread).waits = true;
    let message = Message { source: thread, ..kernel::Exception { vector, error: 0, ip: 1, address: 0 }.message() };
    assert!(world.pm.handle(&message).done().is_none());
}

/// A child of the first process that has stopped for it after PTRACE_TRACEME.
fn traced_child(world: &mut World) -> (u64, Endpoint) {
    let init = world.init;
    let (pid, child) = world.fork(init);
    assert_eq!(world.call(child, nr::PTRACE, &[0, 0, 0, 0]), Some(Ok(0)));
    assert_eq!(world.call(child, nr::KILL, &[pid, SIGSTOP]), Some(Ok(0)));
    world.report_interrupted(child, Some((nr::KILL, Ok(0))));
    assert_eq!(status(world, init, pid), stopped_by(SIGSTOP));
    (pid, child)
}

#[test]
fn a_traced_call_stops_before_it_is_made_and_when_it_returns() {
    let mut world = World::new();
    let init = world.init;
    let (pid, child) = traced_child(&mut world);
    assert_eq!(ptrace(&mut world, init, SETOPTIONS, pid, option::TRACESYSGOOD.into()), Some(Ok(0)));
    assert_eq!(ptrace(&mut world, init, SYSCALL, pid, 0), Some(Ok(0)));
    assert_eq!(world.thread(child).resumed, resume::READY | resume::REPORT_CALLS);

    report_call(&mut world, child, nr::WRITE);
    assert_eq!(status(&mut world, init, pid), stopped_by(SIGTRAP | 0x80));
    assert_eq!(status(&mut world, init, pid), None, "a stop is reported once");
    assert_eq!(ptrace(&mut world, init, GETREGS, pid, BUFFER), Some(Ok(0)));
    assert_eq!(world.read(init, BUFFER + 8 * 10), Err(Errno::ENOSYS).to_word());
    assert_eq!(world.read(init, BUFFER + 8 * 15), nr::WRITE.into());

    assert_eq!(ptrace(&mut world, init, SYSCALL, pid, 0), Some(Ok(0)));
    assert_eq!(world.thread(child).resumed, resume::READY | resume::REPORT_CALLS | resume::CALL);
    assert_eq!(world.thread(child).registers.rax, nr::WRITE.into());
    world.report_interrupted(child, Some((nr::WRITE, Ok(3))));
    assert_eq!(status(&mut world, init, pid), stopped_by(SIGTRAP | 0x80));
    assert_eq!(ptrace(&mut world, init, CONT, pid, 0), Some(Ok(0)));
    assert_eq!(world.thread(child).resumed, resume::READY, "its calls are its own again");
    assert_eq!(world.thread(child).registers.rax, 3);
}

#[test]
fn a_tracer_cancels_a_call_and_chooses_its_result() {
    let mut world = World::new();
    let init = world.init;
    let (pid, child) = traced_child(&mut world);
    ptrace(&mut world, init, SYSCALL, pid, 0);
    report_call(&mut world, child, nr::KILL);
    assert_eq!(world.call(init, nr::PTRACE, &[POKEUSER, pid, 8 * 15, u64::MAX]), Some(Ok(0)));
    assert_eq!(status(&mut world, init, pid), stopped_by(SIGTRAP));
    ptrace(&mut world, init, SYSCALL, pid, 0);
    assert_eq!(status(&mut world, init, pid), stopped_by(SIGTRAP), "the exit comes at once");
    assert_eq!(world.call(init, nr::PTRACE, &[POKEUSER, pid, 8 * 10, 77]), Some(Ok(0)));
    ptrace(&mut world, init, CONT, pid, 0);
    assert_eq!((world.thread(child).registers.rax, world.thread(child).resumed), (77, resume::READY));
}

#[test]
fn a_signal_is_seen_first_by_the_tracer_which_may_keep_it() {
    let mut world = World::new();
    let init = world.init;
    let (pid, child) = traced_child(&mut world);
    ptrace(&mut world, init, CONT, pid, 0);
    assert_eq!(world.call(init, nr::KILL, &[pid, SIGUSR1]), Some(Ok(0)));
    world.report_interrupted(child, None);
    assert_eq!(status(&mut world, init, pid), stopped_by(SIGUSR1));
    ptrace(&mut world, init, CONT, pid, 0);
    assert!(world.is_there(child), "the signal was kept");
    assert_eq!(world.call(init, nr::KILL, &[pid, SIGUSR1]), Some(Ok(0)));
    world.report_interrupted(child, None);
    ptrace(&mut world, init, CONT, pid, SIGUSR1);
    assert_eq!(status(&mut world, init, pid), Some(SIGUSR1), "it was let through");
}

#[test]
fn a_breakpoint_stops_and_is_not_logged() {
    let mut world = World::new();
    let init = world.init;
    let (pid, child) = traced_child(&mut world);
    ptrace(&mut world, init, CONT, pid, 0);
    world.pm.programs.system.printed.clear();
    report_exception(&mut world, child, 3);
    assert_eq!(status(&mut world, init, pid), stopped_by(SIGTRAP));
    assert_eq!(world.pm.programs.system.printed, "");
}

#[test]
fn one_who_sleeps_goes_on_sleeping_after_a_tracer_has_looked_at_it() {
    let mut world = World::new();
    let init = world.init;
    let (pid, child) = world.fork(init);
    world.write(child, BUFFER, &[5, 0]);
    assert_eq!(world.call(child, nr::NANOSLEEP, &[BUFFER, 0]), None);
    assert_eq!(ptrace(&mut world, init, ATTACH, pid, 0), Some(Ok(0)));
    assert_eq!(world.answer(child), Some(Err(Errno::ERESTARTSYS)));
    world.report_interrupted(child, Some((nr::NANOSLEEP, Err(Errno::ERESTARTSYS))));
    assert_eq!(status(&mut world, init, pid), stopped_by(SIGSTOP));
    assert_eq!(ptrace(&mut world, init, DETACH, pid, 0), Some(Ok(0)));
    assert_eq!(world.thread(child).registers.rax, nr::RESTART_SYSCALL.into());
    assert_eq!(world.call(child, nr::RESTART_SYSCALL, &[]), None);
    world.set_time(5_000_000_000);
    assert_eq!(world.answer(child), Some(Ok(0)));
}

#[test]
fn who_may_not_trace_is_refused() {
    let mut world = World::new();
    let init = world.init;
    let (one, _) = world.user(1000, 1000);
    let (own, other) = world.user(1001, 1001);
    assert_eq!(ptrace(&mut world, other, ATTACH, one, 0), Some(Err(Errno::EPERM)));
    assert_eq!(ptrace(&mut world, other, ATTACH, own, 0), Some(Err(Errno::EPERM)));
    assert_eq!(ptrace(&mut world, other, ATTACH, 31_000, 0), Some(Err(Errno::ESRCH)));
    assert_eq!(ptrace(&mut world, other, GETREGS, one, BUFFER), Some(Err(Errno::ESRCH)));
    assert_eq!(ptrace(&mut world, init, SEIZE, one, 1 << 40), Some(Err(Errno::EIO)));
    assert_eq!(ptrace(&mut world, init, SEIZE, one, 0), Some(Ok(0)));
    assert_eq!(ptrace(&mut world, init, ATTACH, one, 0), Some(Err(Errno::EPERM)), "it is traced already");
    assert_eq!(ptrace(&mut world, other, CONT, one, 0), Some(Err(Errno::ESRCH)));
    assert_eq!(ptrace(&mut world, init, CONT, one, 0), Some(Err(Errno::ESRCH)), "it runs");
}

#[test]
fn whoever_a_dead_tracer_wished_to_die_dies_and_the_others_run() {
    for (options, dies) in [(0, false), (option::EXITKILL, true)] {
        let mut world = World::new();
        let init = world.init;
        let (pid, child) = world.fork(init);
        let (_, tracer) = world.fork(init);
        assert_eq!(ptrace(&mut world, tracer, SEIZE, pid, options.into()), Some(Ok(0)));
        assert_eq!(ptrace(&mut world, tracer, INTERRUPT, pid, 0), Some(Ok(0)));
        world.report_interrupted(child, None);
        world.thread(child).resumed = 0;
        world.call(tracer, nr::EXIT_GROUP, &[0]);
        assert_eq!(!world.is_there(child), dies);
        assert!(dies || world.thread(child).resumed == resume::READY);
    }
}

#[test]
fn a_tracer_that_is_no_parent_waits_for_a_zombie_first() {
    let mut world = World::new();
    let init = world.init;
    let (pid, child) = world.fork(init);
    let (_, tracer) = world.fork(init);
    assert_eq!(ptrace(&mut world, tracer, SEIZE, pid, 0), Some(Ok(0)));
    world.call(child, nr::EXIT_GROUP, &[3]);
    assert_eq!(status(&mut world, init, pid), None);
    assert_eq!(status(&mut world, tracer, pid), Some(3 << 8));
    assert_eq!(status(&mut world, init, pid), Some(3 << 8));
    assert_eq!(world.call(tracer, nr::WAIT4, &[pid, 0, WALL, 0]), Some(Err(Errno::ECHILD)));
}

#[test]
fn code_that_may_not_be_written_is_poked_by_vm_page_by_page() {
    let mut world = World::new();
    let init = world.init;
    let (pid, child) = traced_child(&mut world);
    let address = 0x40_0ffc;
    assert_eq!(world.call(init, nr::PTRACE, &[4, pid, address, 0x0807_0605_0403_0201]), Some(Ok(0)));
    let told = world.told();
    let poked = |address, bytes: &[u8]| Told::Poked { thread: child, address, bytes: bytes.to_vec() };
    assert!(told.contains(&poked(address, &[1, 2, 3, 4])) && told.contains(&poked(address + 4, &[5, 6, 7, 8])));
}
