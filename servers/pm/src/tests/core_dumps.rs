//! Core dumps: when there is one, what the process that writes it is told, and what its end means.

use super::{DONE, MEMORY, Told, World, failed};
use abi::core_dump::{CoreHead, HEAD, MEMORY as COPY, PRESENT, THREAD};
use abi::linux::nr;
use abi::registers::Registers;
use abi::{Endpoint, Errno};
use std::vec::Vec;
use zerocopy::FromBytes;

const BUFFER: u64 = MEMORY.start + 0x4000;
const CORE: u64 = 4;
const ABRT: u64 = 6;
const TERM: u64 = 15;
const DUMPED: u32 = 0x80;

/// A child whose RLIMIT_CORE is this.
fn child_with_limit(world: &mut World, limit: u64) -> (u64, Endpoint) {
    let (pid, child) = world.fork(world.init);
    world.write(child, BUFFER, &[limit, u64::MAX]);
    assert_eq!(world.call(child, nr::SETRLIMIT, &[CORE, BUFFER]), DONE);
    (pid, child)
}

/// A signal kills the process when it is next to run.
fn kill(world: &mut World, (pid, child): (u64, Endpoint), signal: u64) {
    assert_eq!(world.call(world.init, nr::KILL, &[pid, signal]), DONE);
    assert_eq!(world.report_interrupted(child, None), None);
}

/// The status of the child as `wait4` reports it; `None`: it has not ended.
fn status(world: &mut World) -> Option<u32> {
    match world.call(world.init, nr::WAIT4, &[u64::MAX, BUFFER, 1, 0]).unwrap() {
        Ok(0) => None,
        waited => waited.map(|_| world.read(world.init, BUFFER) as u32).ok(),
    }
}

/// A child that is dumped, and the process that writes, which runs.
fn dumped(world: &mut World) -> ((u64, Endpoint), Endpoint) {
    let child = child_with_limit(world, u64::MAX);
    kill(world, child, ABRT);
    let writer = world.newest();
    assert_ne!(writer, child.1);
    assert_eq!(world.pm.programs.system.exec_paths.last().unwrap(), "/bin/coredump");
    world.exec_event(writer, b"/bin/coredump", 0);
    assert!(world.thread(writer).runs);
    (child, writer)
}

fn ask(world: &mut World, writer: Endpoint, what: u64, which: u64, bytes: u64) -> super::Answer {
    world.call(writer, nr::SKINK_CORE_DUMP, &[what, which, BUFFER, bytes])
}

#[test]
fn a_signal_with_a_core_ends_the_process_when_the_dump_is_written() {
    let mut world = World::new();
    let ((_, child), writer) = dumped(&mut world);
    assert!(world.is_there(child) && !world.thread(child).runs && status(&mut world).is_none());
    assert_eq!(world.call(writer, nr::EXIT_GROUP, &[0]), None);
    assert!(!world.is_there(child) && !world.is_there(writer));
    assert_eq!(status(&mut world), Some(ABRT as u32 | DUMPED));
    assert_eq!(
        world.call(world.init, nr::WAIT4, &[u64::MAX, BUFFER, 1, 0]),
        failed(Errno::ECHILD),
        "nobody waits for it"
    );
}

#[test]
fn a_dump_that_fails_leaves_the_status_without_the_mark() {
    for ends_by_itself in [true, false] {
        let mut world = World::new();
        let child = child_with_limit(&mut world, u64::MAX);
        kill(&mut world, child, ABRT);
        let writer = world.newest();
        if ends_by_itself {
            world.exec_event(writer, b"/bin/coredump", 0);
            assert_eq!(world.call(writer, nr::EXIT_GROUP, &[1]), None);
        } else {
            world.file_event(abi::vfs::EVENT_EXEC, writer, [-2i64 as u64, 0, 0, 0]);
        }
        assert_eq!(status(&mut world), Some(ABRT as u32));
        assert!(!world.is_there(writer));
    }
}

#[test]
fn without_a_limit_or_the_right_signal_or_dumpable_there_is_none() {
    let mut world = World::new();
    for (limit, signal, dumpable) in [(0, ABRT, 1), (4095, ABRT, 1), (u64::MAX, TERM, 1), (u64::MAX, ABRT, 0)] {
        let child = child_with_limit(&mut world, limit);
        assert_eq!(world.call(child.1, nr::PRCTL, &[4, dumpable]), DONE);
        kill(&mut world, child, signal);
        assert_eq!(status(&mut world), Some(signal as u32));
    }
}

#[test]
fn the_writer_is_told_of_threads_and_memory_and_nobody_else_is() {
    let mut world = World::new();
    let child = child_with_limit(&mut world, 123_456);
    assert_eq!(world.call(child.1, nr::SKINK_CORE_DUMP, &[HEAD, 0, BUFFER, 0]), failed(Errno::ENOSYS));
    let flags = 0x1_0000 | 0x800 | 0x400 | 0x200 | 0x100;
    let tid = world.call(child.1, nr::CLONE, &[flags, 0, 0, 0, 0]).unwrap().unwrap();
    let thread = world.newest();
    world.thread(thread).registers.rip = 0x1234;
    world.write(child.1, MEMORY.start, &[77, 88]);
    kill(&mut world, child, ABRT);
    assert!(!world.thread(thread).runs, "all threads stop");
    let writer = world.newest();
    world.exec_event(writer, b"/bin/coredump", 0);

    assert_eq!(ask(&mut world, writer, HEAD, 0, 0), DONE);
    let head = world.read_bytes(writer, BUFFER, size_of::<CoreHead>());
    let head = CoreHead::read_from_bytes(&head).unwrap();
    assert_eq!((head.pid, head.thread, head.signal), (child.0 as u32, child.0 as u32, ABRT as u32));
    assert_eq!((head.parent, head.limit, &head.info[..4]), (1, 123_456, &[6, 0, 0, 0][..]));

    assert_eq!(ask(&mut world, writer, THREAD, 1, 0), Some(Ok(child.0)));
    assert_eq!(ask(&mut world, writer, THREAD, child.0 + 1, 0), Some(Ok(tid)));
    let registers = world.read_bytes(writer, BUFFER, size_of::<Registers>());
    assert_eq!(Registers::read_from_bytes(&registers).unwrap().rip, 0x1234);
    assert_eq!(ask(&mut world, writer, THREAD, tid + 1, 0), DONE);

    assert_eq!(ask(&mut world, writer, COPY, MEMORY.start, 16), Some(Ok(16)));
    assert_eq!(world.words::<2>(writer, BUFFER), [77, 88]);
    assert_eq!(ask(&mut world, writer, COPY, 8, 16), failed(Errno::EFAULT));
    assert_eq!(ask(&mut world, writer, PRESENT, 0, u64::MAX), DONE);
    assert_eq!(world.words::<2>(writer, BUFFER), [MEMORY.start, MEMORY.end]);
    assert_eq!(ask(&mut world, writer, 4, 0, 0), failed(Errno::EINVAL));
}

#[test]
fn sigkill_ends_both_and_other_signals_nothing() {
    let mut world = World::new();
    let (child, writer) = dumped(&mut world);
    for signal in [TERM, ABRT, 19] {
        assert_eq!(world.call(world.init, nr::KILL, &[child.0, signal]), DONE);
    }
    assert!(world.is_there(child.1) && status(&mut world).is_none());
    assert_eq!(world.call(world.init, nr::KILL, &[child.0, 9]), DONE);
    assert_eq!(status(&mut world), Some(9));
    assert!(!world.is_there(writer), "it has nothing to write");
}

#[test]
fn the_writer_leaves_no_dump_of_its_own() {
    let mut world = World::new();
    let (_, writer) = dumped(&mut world);
    let of_writer = world.pm.programs.table.find(writer).unwrap();
    let pid = world.pm.programs.table[of_writer].tid();
    kill(&mut world, (pid.into(), writer), ABRT);
    assert_eq!(status(&mut world), Some(ABRT as u32), "and the process ends as if it had failed");
}

#[test]
fn what_other_threads_wait_for_is_given_up() {
    let mut world = World::new();
    let child = child_with_limit(&mut world, u64::MAX);
    let id = world.call(world.init, nr::SEMGET, &[7, 1, 0o1666]).unwrap().unwrap();
    let flags = 0x1_0000 | 0x800 | 0x400 | 0x200 | 0x100;
    world.call(child.1, nr::CLONE, &[flags, 0, 0, 0, 0]).unwrap().unwrap();
    let waiting = world.newest();
    world.write_bytes(waiting, BUFFER, &[0, 0, 0xff, 0xff, 0, 0]);
    assert_eq!(world.call(waiting, nr::SEMOP, &[id, BUFFER, 1]), None);
    kill(&mut world, child, ABRT);
    world.write_bytes(world.init, BUFFER, &[0, 0, 1, 0, 0, 0]);
    assert_eq!(world.call(world.init, nr::SEMOP, &[id, BUFFER, 1]), DONE);
    assert_eq!(world.call(world.init, nr::SEMCTL, &[id, 0, 12]), Some(Ok(1)), "it took nothing");
    assert!(world.told().contains(&Told::Stopped(waiting)));
    let threads: Vec<bool> = [child.1, waiting].map(|thread| world.thread(thread).runs).to_vec();
    assert_eq!(threads, [false, false]);
}
