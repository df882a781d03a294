//! Processes that exchange messages: their waits end when a signal comes, and m3ipc is told of their ends.

use super::fake::{MEMORY, Told};
use super::world::World;
use abi::linux::nr;
use abi::pm::{Enroll, ServiceUp, Signal};
use abi::{Endpoint, Errno, Message, Name, Word};

const M3IPC: Endpoint = Endpoint::new(30, 2);
const STATUS: u64 = MEMORY.start + 0x80;
/// WNOHANG and WUNTRACED.
const NO_HANG: u64 = 1;
const UNTRACED: u64 = 2;
/// PR_SET_NAME.
const SET_NAME: u64 = 15;

fn world() -> World {
    let mut world = World::new();
    let (name_low, name_high) = Name::new("m3ipc").unwrap().to_words();
    let up = ServiceUp { process: M3IPC, name_low, name_high }.message();
    let rs = Endpoint::new(abi::endpoint::slot::RS, 1);
    assert_eq!(world.pm.handle(&Message { source: rs, ..up }).done().unwrap().result(), Ok(0));
    world
}

fn ask(world: &mut World, source: Endpoint, request: Message) -> Message {
    world.pm.handle(&Message { source, ..request }).done().unwrap()
}

fn notified(world: &World) -> usize {
    let told = world.pm.programs.system.told.iter();
    told.filter(|told| **told == Told::Notified(Endpoint::current(M3IPC.slot()))).count()
}

#[test]
fn m3ipc_learns_who_a_process_is_and_of_its_end() {
    let mut world = world();
    let (pid, child) = world.fork(world.init);
    world.write_bytes(child, STATUS, b"renamed\0");
    assert_eq!(world.call(child, nr::PRCTL, &[SET_NAME, STATUS]), Some(Ok(0)));
    let by_thread = Enroll { process: child, pid: 0 }.message();
    for request in [by_thread, Enroll { process: Endpoint::NONE, pid }.message()] {
        let reply = ask(&mut world, M3IPC, request);
        let (thread, found, _, capabilities, low, high) = Enroll::results(&reply).unwrap();
        assert_eq!((thread, found), (child.0.into(), pid));
        assert_eq!(capabilities, abi::CapabilitySet::ALL.bits(), "it is root's");
        assert_eq!(abi::Name::from_words(low, high).as_str(), "renamed");
        assert_eq!(ask(&mut world, Endpoint::new(31, 1), request).result(), Err(Errno::EPERM));
    }
    let nobody = Enroll { process: Endpoint::NONE, pid: 4711 }.message();
    assert_eq!(ask(&mut world, M3IPC, nobody).result(), Err(Errno::ESRCH));
    let (_, other) = world.fork(world.init);
    world.call(other, nr::EXIT_GROUP, &[0]);
    assert_eq!(notified(&world), 0, "it was not asked for");
    world.call(child, nr::EXIT_GROUP, &[0]);
    assert!(world.told().contains(&Told::Ends(child)));
    world.report_interrupted(child, None);
    assert_eq!(notified(&world), 1);
}

/// A process that takes part, and that waits for `peer`, or in pm.
fn enrolled(peer: Option<Endpoint>) -> (World, u64, Endpoint) {
    let mut world = world();
    let (pid, child) = world.fork(world.init);
    ask(&mut world, M3IPC, Enroll { process: child, pid: 0 }.message());
    match peer {
        Some(peer) => world.thread(child).blocked_on = peer,
        None => assert_eq!(world.call(child, nr::PAUSE, &[]), None),
    }
    (world, pid, child)
}

/// Its primitives would not be reported.
#[test]
fn who_takes_part_cannot_become_strict() {
    const SET_SECCOMP: u64 = 22;
    let (mut world, _, child) = enrolled(Some(Endpoint::NONE));
    assert_eq!(world.call(child, nr::PRCTL, &[SET_SECCOMP, 1]), Some(Err(Errno::EINVAL)));
    assert_eq!(world.call(child, nr::SECCOMP, &[0, 0, 0]), Some(Err(Errno::EINVAL)));
}

/// It runs, waits in a primitive for a program or anybody, in a call of m3ipc, or of pm.
#[test]
fn who_waits_for_a_killed_process_is_told_before_that_is_taken_apart() {
    for peer in [Some(Endpoint::NONE), Some(Endpoint::ANY), Some(Endpoint::new(500, 3)), Some(M3IPC), None] {
        let (mut world, pid, child) = enrolled(peer);
        let ended = [Told::FilesEnded(child), Told::MemoryEnded(child), Told::Destroyed(child)];
        world.told();
        assert_eq!(world.call(world.init, nr::KILL, &[pid, 9]), Some(Ok(0)));
        let told = world.told();
        assert!(told.contains(&Told::Ends(child)) && !ended.iter().any(|end| told.contains(end)), "{peer:?}: {told:?}");
        assert_eq!(world.thread(child).blocked_on, Endpoint::NONE, "it can run");
        assert_eq!(
            world.call(world.init, nr::WAIT4, &[pid, 0, NO_HANG, 0]),
            Some(Ok(0)),
            "not before it is taken apart"
        );
        assert_eq!(world.call(world.init, nr::WAIT4, &[pid, 0, 0, 0]), None);
        world.report_interrupted(child, None);
        let told = world.told();
        assert!(ended.iter().all(|end| told.contains(end)), "{peer:?}: {told:?}");
        assert_eq!(world.answer(world.init), Some(Ok(pid)));
    }
}

#[test]
fn a_process_ends_at_once_when_m3ipc_is_busy_or_it_waits_for_a_service() {
    for (peer, is_busy) in [(Endpoint::ANY, true), (Endpoint::VFS, false), (Endpoint::VM, false)] {
        let (mut world, pid, child) = enrolled(Some(peer));
        world.pm.programs.system.m3ipc_is_busy = is_busy;
        world.call(world.init, nr::KILL, &[pid, 9]);
        assert_eq!(world.call(world.init, nr::WAIT4, &[pid, 0, NO_HANG, 0]), Some(Ok(pid)));
        assert!(!world.is_there(child));
    }
}

#[test]
fn a_second_kill_does_not_wait() {
    let (mut world, pid, child) = enrolled(Some(Endpoint::ANY));
    for is_there in [true, false] {
        world.call(world.init, nr::KILL, &[pid, 9]);
        assert_eq!(world.is_there(child), is_there);
    }
    assert_eq!(world.call(world.init, nr::WAIT4, &[pid, 0, NO_HANG, 0]), Some(Ok(pid)));
}

#[test]
fn a_process_whose_end_is_put_off_neither_stops_nor_asks_nor_is_enrolled() {
    let (mut world, pid, child) = enrolled(Some(Endpoint::PM));
    world.call(world.init, nr::KILL, &[pid, 9]);
    for signal in [19, 18, 15] {
        assert_eq!(world.call(world.init, nr::KILL, &[pid, signal]), Some(Ok(0)));
    }
    let stopped = world.call(world.init, nr::WAIT4, &[pid, 0, NO_HANG | UNTRACED, 0]);
    assert_eq!(stopped, Some(Ok(0)));
    assert_eq!(ask(&mut world, M3IPC, Enroll { process: child, pid: 0 }.message()).result(), Err(Errno::ESRCH));
    // pm had not received this call yet.
    assert_eq!(world.call(child, nr::FORK, &[]), None);
    assert!(!world.is_there(child));
    world.call(world.init, nr::WAIT4, &[pid, STATUS, NO_HANG, 0]);
    assert_eq!(world.read(world.init, STATUS) as u32, 9);
}

#[test]
fn a_process_that_ends_by_itself_or_by_a_signal_keeps_its_status() {
    for (call, status) in [(Some((nr::EXIT_GROUP, 5)), 5 << 8), (Some((nr::EXIT, 7)), 7 << 8), (None, 15)] {
        let (mut world, pid, child) = enrolled(Some(Endpoint::PM));
        match call {
            Some((call, status)) => assert_eq!(world.call(child, call, &[status]), None),
            None => {
                world.call(world.init, nr::KILL, &[pid, status]);
                world.report_interrupted(child, None);
            }
        }
        assert!(world.is_there(child) && world.told().contains(&Told::Ends(child)));
        world.report_interrupted(child, None);
        world.call(world.init, nr::WAIT4, &[pid, STATUS, NO_HANG, 0]);
        assert_eq!(world.read(world.init, STATUS) as u32, status as u32);
    }
}

/// The kernel cancels the notifications of a service that dies.
#[test]
fn a_successor_of_pm_lets_m3ipc_look_for_ends() {
    let mut world = world();
    world.pm.recover();
    assert_eq!(notified(&world), 1);
}

#[test]
fn m3ipc_learns_that_an_enrolled_process_is_another_users() {
    let mut world = world();
    let (_, child) = world.fork(world.init);
    world.call(child, nr::SETGID, &[5]);
    assert_eq!(notified(&world), 0, "it was not asked for");
    ask(&mut world, M3IPC, Enroll { process: child, pid: 0 }.message());
    world.call(child, nr::SETUID, &[5]);
    assert_eq!(notified(&world), 1);
}

#[test]
fn m3ipc_ends_enrolled_processes_only() {
    let mut world = world();
    let (pid, child) = world.fork(world.init);
    let signal = |pid, signal| Signal { pid, signal }.message();
    assert_eq!(ask(&mut world, M3IPC, signal(pid, 9)).result(), Err(Errno::ESRCH));
    ask(&mut world, M3IPC, Enroll { process: child, pid: 0 }.message());
    assert_eq!(ask(&mut world, M3IPC, signal(pid, 65)).result(), Err(Errno::EINVAL));
    // m3ipc waits for the answer.
    world.pm.programs.system.m3ipc_is_busy = true;
    assert_eq!(ask(&mut world, M3IPC, signal(pid, 9)).result(), Ok(0));
    assert_eq!(notified(&world), 1, "it has ended");
}

/// In a primitive for a program or anybody, and in a call of m3ipc.
#[test]
fn a_signal_ends_a_wait_for_a_message() {
    for (peer, told) in [(Endpoint::ANY, 0), (Endpoint::new(500, 3), 0), (M3IPC, 1)] {
        let mut world = world();
        let (pid, child) = world.fork(world.init);
        world.thread(child).blocked_on = peer;
        world.call(world.init, nr::KILL, &[pid, 15]);
        assert!(world.thread(child).interrupted);
        assert_eq!(world.thread(child).registers.rax, Err(Errno::EINTR).to_word(), "{peer:?}");
        assert_eq!(notified(&world), told);
    }
}

#[test]
fn a_wait_for_a_message_goes_on_while_its_process_is_stopped() {
    for peer in [Endpoint::ANY, M3IPC] {
        let mut world = world();
        let (pid, child) = world.fork(world.init);
        world.thread(child).blocked_on = peer;
        let before = world.thread(child).registers.rax;
        for signal in [19, 18] {
            world.call(world.init, nr::KILL, &[pid, signal]);
            assert_eq!(world.thread(child).registers.rax, before, "{peer:?}");
        }
        assert_eq!(notified(&world), 0);
    }
}
