//! Descriptors: which number, who shares what, what exec closes.

use super::*;
use abi::{Errno, linux::nr, vfs};

fn is_open(world: &World, who: abi::Endpoint, descriptor: u64) -> bool {
    world.call(who, nr::FCNTL, &[descriptor, F_GETFD]).is_ok()
}

#[test]
fn the_lowest_free_number_is_given() {
    let world = World::new();
    world.make("/file", b"x", 0o644, (0, 0));
    let open = || world.open(world.root, "/file", O_RDONLY, 0).unwrap();
    let numbers: Vec<u64> = (0..4).map(|_| open()).collect();
    assert_eq!(numbers, [0, 1, 2, 3]);
    world.close(world.root, 1).unwrap();
    assert_eq!(open(), 1);
    assert_eq!(world.call(world.root, nr::FCNTL, &[0, F_DUPFD, 2]), Ok(4));
    assert_eq!(world.call(world.root, nr::DUP, &[0]), Ok(5));
    assert_eq!(world.close(world.root, 77), Err(Errno::EBADF));
    assert_eq!(world.call(world.root, nr::DUP, &[77]), Err(Errno::EBADF));
}

#[test]
fn dup2_takes_the_place_of_what_was_open() {
    let world = World::new();
    world.make("/one", b"1", 0o644, (0, 0));
    world.make("/two", b"2", 0o644, (0, 0));
    let one = world.open(world.root, "/one", O_RDONLY, 0).unwrap();
    let two = world.open(world.root, "/two", O_RDONLY, 0).unwrap();
    assert_eq!(world.call(world.root, nr::DUP2, &[one, two]), Ok(two));
    assert_eq!(world.pread(world.root, two, 1, 0).unwrap(), b"1");
    assert_eq!(world.call(world.root, nr::DUP2, &[one, one]), Ok(one));
    assert_eq!(world.call(world.root, nr::DUP3, &[one, one, 0]), Err(Errno::EINVAL));
    assert_eq!(world.call(world.root, nr::DUP2, &[99, two]), Err(Errno::EBADF));
    assert_eq!(world.pread(world.root, two, 1, 0).unwrap(), b"1", "a bad source closes nothing");
    assert_eq!(world.call(world.root, nr::DUP2, &[one, 1 << 20]), Err(Errno::EBADF));
}

#[test]
fn a_fork_copies_the_table_and_a_thread_shares_it() {
    let world = World::new();
    world.make("/file", b"x", 0o644, (0, 0));
    let file = world.open(world.root, "/file", O_RDONLY, 0).unwrap();
    let child = world.fork(world.root, 0);
    let thread = world.fork(world.root, vfs::FORK_FILES);
    world.close(world.root, file).unwrap();
    assert!(is_open(&world, child, file));
    assert!(!is_open(&world, thread, file));
}

#[test]
fn exec_closes_what_is_marked() {
    let world = World::new();
    world.make("/file", b"x", 0o644, (0, 0));
    let kept = world.open(world.root, "/file", O_RDONLY, 0).unwrap();
    let closed = world.open(world.root, "/file", O_RDONLY | O_CLOEXEC, 0).unwrap();
    let marked = world.open(world.root, "/file", O_RDONLY, 0).unwrap();
    assert_eq!(world.call(world.root, nr::FCNTL, &[marked, F_SETFD, 1]), Ok(0));
    let copy = world.call(world.root, nr::DUP, &[closed]).unwrap();
    let marked_copy = world.call(world.root, nr::FCNTL, &[kept, F_DUPFD_CLOEXEC, 0]).unwrap();
    let flags =
        [kept, closed, marked, copy, marked_copy].map(|file| world.call(world.root, nr::FCNTL, &[file, F_GETFD]));
    assert_eq!(flags, [Ok(0), Ok(1), Ok(1), Ok(0), Ok(1)]);
    assert_eq!(world.call_as_pm(vfs::ExecCommit { process: world.root }.message()), Ok(0));
    let open = [kept, closed, marked, copy, marked_copy].map(|file| is_open(&world, world.root, file));
    assert_eq!(open, [true, false, false, true, false]);
}

#[test]
fn exec_in_a_thread_leaves_the_others_their_table() {
    let world = World::new();
    world.make("/file", b"x", 0o644, (0, 0));
    let file = world.open(world.root, "/file", O_RDONLY | O_CLOEXEC, 0).unwrap();
    let thread = world.fork(world.root, vfs::FORK_FILES);
    assert_eq!(world.call_as_pm(vfs::ExecCommit { process: thread }.message()), Ok(0));
    assert!(is_open(&world, world.root, file) && !is_open(&world, thread, file));
}

#[test]
fn status_flags_are_those_of_open_and_setfl_changes_some() {
    let world = World::new();
    const O_LARGEFILE: u64 = 0o100000;
    let file = world.open(world.root, "/file", O_CREAT | O_EXCL | O_RDWR | O_APPEND, 0o644).unwrap();
    assert_eq!(world.call(world.root, nr::FCNTL, &[file, F_GETFL]), Ok(O_RDWR | O_APPEND | O_LARGEFILE));
    assert_eq!(world.call(world.root, nr::FCNTL, &[file, F_SETFL, O_NONBLOCK | O_WRONLY | O_CREAT]), Ok(0));
    assert_eq!(world.call(world.root, nr::FCNTL, &[file, F_GETFL]), Ok(O_RDWR | O_NONBLOCK | O_LARGEFILE));
    assert_eq!(world.call(world.root, nr::FCNTL, &[file, 9999]), Err(Errno::EINVAL));
}

#[test]
fn close_range_closes_or_marks() {
    let world = World::new();
    const CLOEXEC: u64 = 4;
    world.make("/file", b"x", 0o644, (0, 0));
    let files: Vec<u64> = (0..5).map(|_| world.open(world.root, "/file", O_RDONLY, 0).unwrap()).collect();
    assert_eq!(world.call(world.root, nr::CLOSE_RANGE, &[1, 2, 0]), Ok(0));
    let open: Vec<bool> = files.iter().map(|file| is_open(&world, world.root, *file)).collect();
    assert_eq!(open, [true, false, false, true, true]);
    assert_eq!(world.call(world.root, nr::CLOSE_RANGE, &[4, u64::from(u32::MAX), CLOEXEC]), Ok(0));
    assert_eq!(world.call(world.root, nr::FCNTL, &[4, F_GETFD]), Ok(1));
    assert_eq!(world.call(world.root, nr::FCNTL, &[3, F_GETFD]), Ok(0));
    assert_eq!(world.call(world.root, nr::CLOSE_RANGE, &[3, 2, 0]), Err(Errno::EINVAL));
}

#[test]
fn a_large_table_is_inherited_and_outlives_vfs() {
    let mut world = World::new();
    let (reads, writes) = world.pipe(world.root, 0);
    world.set_limits(world.root, 1 << 20, u64::MAX);
    for first in [15, 16, 255, 256, 257, 2239, 2240, 4000] {
        assert_eq!(world.call(world.root, nr::FCNTL, &[reads, 0, first]), Ok(first));
    }
    let child = world.fork(world.root, 0);
    world.exit(world.root);
    world.restart_vfs();
    for number in [15, 16, 255, 256, 257, 2239, 2240, 4000] {
        assert_eq!(world.write(child, writes, b"x"), Ok(1));
        assert_eq!(world.read(child, number, 1).unwrap(), b"x", "{number}");
        world.close(child, number).unwrap();
    }
    assert_eq!(world.read(child, 4000, 1), Err(Errno::EBADF));
}
