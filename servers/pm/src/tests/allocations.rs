//! Each allocation of a workload fails in turn: the call in progress answers an error of its own, nobody else notices, and what is left in the
//! tables is what was there before.

use super::*;
use abi::Endpoint;
use abi::linux::nr;
use sys::fallible;

const BUFFER: u64 = MEMORY.start + 0x2000;
const UNDO: u64 = 0x1000 << 32;
const CREATE: u64 = 0o1600;

/// What the tables hold.
#[derive(Debug, PartialEq, Eq)]
struct Figures {
    threads: usize,
    signals: usize,
    sets: (i32, i32),
    messages: (usize, usize, usize),
    timers: Option<u64>,
}

fn figures(world: &World) -> Figures {
    let pm = &world.pm;
    Figures {
        threads: pm.programs.table.threads(),
        signals: pm.programs.table.queued_signals(),
        sets: pm.semaphores.used(),
        messages: pm.messages.used(),
        timers: pm.programs.system.alarm,
    }
}

/// A call that may find memory exhausted. Returns its result, if it was not.
fn attempt(world: &mut World, thread: Endpoint, number: u32, arguments: &[u64]) -> Option<u64> {
    match world.call(thread, number, arguments) {
        Some(Ok(value)) => Some(value),
        None => Some(0),
        Some(Err(error)) => {
            assert!([Errno::ENOMEM, Errno::EAGAIN, Errno::ENOSPC].contains(&error), "call {number}: {error:?}");
            assert!(!fallible::is_failure_pending(), "call {number} failed for another reason");
            None
        }
    }
}

/// Forks, signals, timers, semaphores, groups, exec, lists. Returns whether all calls have succeeded.
fn work(world: &mut World) -> bool {
    let init = world.init;
    let Some(pid) = attempt(world, init, nr::FORK, &[]) else { return false };
    let child = world.newest();
    let mut all = true;
    let mut call = |world: &mut World, number, arguments: &[u64]| {
        let result = attempt(world, child, number, arguments);
        all &= result.is_some();
        result
    };
    world.write(child, BUFFER, &[u64::MAX]);
    call(world, nr::RT_SIGPROCMASK, &[2, BUFFER, 0, 8]);
    world.write(child, BUFFER, &[1 | 2 << 32]);
    call(world, nr::SETGROUPS, &[2, BUFFER]);
    call(world, nr::GETGROUPS, &[2, BUFFER]);
    world.write(child, BUFFER, &[0, -1i32 as u32 as u64, 0, 0, 0, 0]);
    call(world, nr::RT_SIGQUEUEINFO, &[pid, 40, BUFFER]);
    if call(world, nr::TIMER_CREATE, &[1, 0, BUFFER]).is_some() {
        let timer = world.read(child, BUFFER) as u32 as u64;
        world.write(child, BUFFER, &[0, 0, 5, 0]);
        call(world, nr::TIMER_SETTIME, &[timer, 0, BUFFER, 0]);
    }
    if let Some(set) = call(world, nr::SEMGET, &[0, 3, CREATE]) {
        world.write(child, BUFFER, &[1 << 16 | UNDO]);
        call(world, nr::SEMOP, &[set, BUFFER, 1]);
        call(world, nr::SEMCTL, &[set, 0, 13, BUFFER]);
        call(world, nr::SEMCTL, &[set, 0, 17, BUFFER]);
        assert_eq!(world.call(child, nr::SEMCTL, &[set, 0, 0, 0]), DONE);
    }
    if let Some(queue) = call(world, nr::MSGGET, &[0, CREATE]) {
        world.write(child, BUFFER, &[1, 0]);
        if call(world, nr::MSGSND, &[queue, BUFFER, 8, 0]).is_some() {
            call(world, nr::MSGRCV, &[queue, BUFFER, 8, 0, 0]);
        }
        call(world, nr::MSGRCV, &[queue, BUFFER, 8, 0, 0]);
        assert_eq!(world.call(init, nr::MSGCTL, &[queue, 0, 0]), DONE);
    }
    call(world, nr::SYSLOG, &[3, BUFFER, 10]);
    world.write_bytes(child, BUFFER, b"/x\0");
    world.write(child, BUFFER + 16, &[BUFFER, 0]);
    if call(world, nr::EXECVE, &[BUFFER, BUFFER + 16, 0]).is_some() {
        world.exec_event(child, b"/bin/sh\0/x\0/bin/sh\0-e\0/x\0", 0);
    }
    if world.is_there(child) {
        world.call(child, nr::EXIT_GROUP, &[0]);
    }
    assert_eq!(world.call(init, nr::WAIT4, &[pid, 0, 0, 0]), Some(Ok(pid)));
    all
}

#[test]
fn whichever_allocation_fails_its_call_alone_suffers() {
    let mut world = World::new();
    assert!(work(&mut world));
    let before = figures(&world);
    let mut failures = 0;
    for n in 1.. {
        fallible::fail_after(n);
        let succeeded = work(&mut world);
        let was_reached = !fallible::is_failure_pending();
        fallible::fail_after(0);
        assert_eq!(figures(&world), before, "allocation {n}");
        if !was_reached {
            assert!(succeeded);
            break;
        }
        failures += 1;
    }
    assert!(failures > 10, "{failures}");
    assert!(work(&mut world));
}
