//! Processes that exchange messages: their waits end when a signal comes, and m3ipc is told of their ends.

use super::fake::Told;
use super::world::World;
use abi::linux::nr;
use abi::pm::{Enroll, ServiceUp, Signal};
use abi::{Endpoint, Errno, Message, Name, Word};

const M3IPC: Endpoint = Endpoint::new(30, 2);

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
    let by_thread = Enroll { process: child, pid: 0 }.message();
    for request in [by_thread, Enroll { process: Endpoint::NONE, pid }.message()] {
        let reply = ask(&mut world, M3IPC, request);
        let (thread, found, _, capabilities) = Enroll::results(&reply).unwrap();
        assert_eq!((thread, found), (child.0.into(), pid));
        assert_eq!(capabilities, abi::CapabilitySet::ALL.bits(), "it is root's");
        assert_eq!(ask(&mut world, Endpoint::new(31, 1), request).result(), Err(Errno::EPERM));
    }
    let nobody = Enroll { process: Endpoint::NONE, pid: 4711 }.message();
    assert_eq!(ask(&mut world, M3IPC, nobody).result(), Err(Errno::ESRCH));
    let (_, other) = world.fork(world.init);
    world.call(other, nr::EXIT_GROUP, &[0]);
    assert_eq!(notified(&world), 0, "it was not asked for");
    world.call(child, nr::EXIT_GROUP, &[0]);
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
