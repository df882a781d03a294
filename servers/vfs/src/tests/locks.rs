//! Advisory locks: of records by fcntl, of whole files by flock.

use super::*;
use abi::{Endpoint, Errno, linux::nr, vfs};

const F_GETLK: u64 = 5;
const F_SETLK: u64 = 6;
const F_SETLKW: u64 = 7;

const F_RDLCK: u64 = 0;
const F_WRLCK: u64 = 1;
const F_UNLCK: u64 = 2;

const LOCK_SH: u64 = 1;
const LOCK_EX: u64 = 2;
const LOCK_NB: u64 = 4;
const LOCK_UN: u64 = 8;

/// A program, and its descriptor of the file that locks are set on.
type Side = (Endpoint, u64);

/// The superuser and a child have opened a file of ten bytes, each for itself.
fn two(world: &World) -> [Side; 2] {
    world.make("/file", b"0123456789", 0o644, (0, 0));
    let other = world.fork(world.root, 0);
    [world.root, other].map(|who| (who, world.open(who, "/file", O_RDWR, 0).unwrap()))
}

/// The arguments of fcntl for a lock, whose `struct flock` is in the program's memory.
fn arguments(world: &World, (who, file): Side, command: u64, lock: (u64, u64, i64, i64)) -> [u64; 3] {
    let (kind, whence, start, length) = lock;
    [file, command, world.words(who, &[kind | whence << 16, start as u64, length as u64, 0])]
}

fn set(world: &World, side: Side, kind: u64, start: i64, length: i64) -> Result<u64> {
    world.call(side.0, nr::FCNTL, &arguments(world, side, F_SETLK, (kind, SEEK_SET, start, length)))
}

/// Begins F_SETLKW.
fn wait(world: &World, side: Side, kind: u64, start: i64, length: i64) -> Option<Result<u64>> {
    world.begin_call(side.0, nr::FCNTL, &arguments(world, side, F_SETLKW, (kind, SEEK_SET, start, length)))
}

/// What F_GETLK finds: kind, whence, start, length, process.
fn get(world: &World, side: Side, lock: (u64, u64, i64, i64)) -> Result<[u64; 5]> {
    let arguments = arguments(world, side, F_GETLK, lock);
    assert_eq!(world.call(side.0, nr::FCNTL, &arguments)?, 0);
    let words = world.read_words(side.0, arguments[2], 4);
    Ok([words[0] & 0xffff, words[0] >> 16 & 0xffff, words[1], words[2], words[3] & 0xffff_ffff])
}

fn flock(world: &World, (who, file): Side, operation: u64) -> Result<u64> {
    world.call(who, nr::FLOCK, &[file, operation])
}

#[test]
fn a_record_lock_keeps_others_off_its_bytes_and_no_others() {
    let world = World::new();
    let [mine, theirs] = two(&world);
    assert_eq!(set(&world, mine, F_WRLCK, 10, 10), Ok(0));
    let free = [(0, 10), (9, 1), (20, 1), (20, 0), (10, -10), (30, -10), (20, i64::MAX - 20)];
    let held = [(0, 11), (10, 1), (19, 1), (19, 0), (0, 0), (15, -5), (29, -10), (12, 2)];
    for (start, length) in free {
        assert_eq!(set(&world, theirs, F_RDLCK, start, length), Ok(0), "{length} bytes at {start}");
        assert_eq!(set(&world, theirs, F_UNLCK, start, length), Ok(0));
    }
    for (start, length) in held {
        assert_eq!(set(&world, theirs, F_RDLCK, start, length), Err(Errno::EAGAIN), "{length} bytes at {start}");
        assert_eq!(set(&world, theirs, F_WRLCK, start, length), Err(Errno::EAGAIN), "{length} bytes at {start}");
    }
}

#[test]
fn shared_record_locks_go_together_and_exclude_exclusive_ones() {
    let world = World::new();
    let [mine, theirs] = two(&world);
    assert_eq!(set(&world, mine, F_RDLCK, 0, 5), Ok(0));
    assert_eq!(set(&world, theirs, F_RDLCK, 0, 5), Ok(0));
    assert_eq!(set(&world, theirs, F_WRLCK, 4, 1), Err(Errno::EAGAIN));
    assert_eq!(set(&world, mine, F_UNLCK, 4, 1), Ok(0));
    assert_eq!(set(&world, theirs, F_WRLCK, 4, 1), Ok(0), "the last byte was released");
    assert_eq!(set(&world, theirs, F_WRLCK, 3, 1), Err(Errno::EAGAIN), "the others were not");
    assert_eq!(set(&world, mine, F_WRLCK, 5, 1), Ok(0));
}

#[test]
fn getlk_tells_who_holds_which_bytes() {
    let world = World::new();
    let [mine, theirs] = two(&world);
    assert_eq!(set(&world, mine, F_WRLCK, 10, 10), Ok(0));
    assert_eq!(set(&world, mine, F_RDLCK, 100, 0), Ok(0));
    assert_eq!(get(&world, theirs, (F_RDLCK, SEEK_SET, 0, 0)), Ok([F_WRLCK, SEEK_SET, 10, 10, 1]));
    assert_eq!(get(&world, theirs, (F_RDLCK, SEEK_END, 5, 1)), Ok([F_WRLCK, SEEK_SET, 10, 10, 1]));
    assert_eq!(get(&world, theirs, (F_WRLCK, SEEK_SET, 50, 60)), Ok([F_RDLCK, SEEK_SET, 100, 0, 1]), "to the end");
    assert_eq!(
        get(&world, theirs, (F_RDLCK, SEEK_SET, 50, 60)),
        Ok([F_UNLCK, SEEK_SET, 50, 60, 0]),
        "none is in the way"
    );
    assert_eq!(get(&world, mine, (F_WRLCK, SEEK_SET, 0, 0)), Ok([F_UNLCK, SEEK_SET, 0, 0, 0]), "its own are not");
    let pid = theirs.0.slot() as u64;
    assert_eq!(set(&world, theirs, F_WRLCK, 30, 1), Ok(0));
    assert_eq!(get(&world, mine, (F_RDLCK, SEEK_SET, 25, 10)), Ok([F_WRLCK, SEEK_SET, 30, 1, pid]));
}

#[test]
fn record_locks_begin_at_the_start_the_position_or_the_end() {
    let world = World::new();
    let [mine, theirs] = two(&world);
    assert_eq!(world.seek(mine.0, mine.1, 4, SEEK_SET), Ok(4));
    for (whence, start, first) in
        [(SEEK_SET, 2, 2), (SEEK_CUR, 2, 6), (SEEK_CUR, -4, 0), (SEEK_END, -1, 9), (SEEK_END, 3, 13)]
    {
        let lock = arguments(&world, mine, F_SETLK, (F_WRLCK, whence, start, 1));
        assert_eq!(world.call(mine.0, nr::FCNTL, &lock), Ok(0));
        assert_eq!(get(&world, theirs, (F_RDLCK, SEEK_SET, 0, 0)), Ok([F_WRLCK, SEEK_SET, first, 1, 1]));
        assert_eq!(set(&world, mine, F_UNLCK, 0, 0), Ok(0));
    }
}

#[test]
fn record_locks_that_make_no_sense_are_refused() {
    let world = World::new();
    let [mine, _] = two(&world);
    let bad = [
        ((3, SEEK_SET, 0, 0), Errno::EINVAL),
        ((F_RDLCK, 3, 0, 0), Errno::EINVAL),
        ((F_RDLCK, SEEK_SET, -1, 0), Errno::EINVAL),
        ((F_RDLCK, SEEK_SET, 5, -6), Errno::EINVAL),
        ((F_RDLCK, SEEK_END, i64::MAX, 1), Errno::EOVERFLOW),
        ((F_RDLCK, SEEK_SET, i64::MAX, 2), Errno::EOVERFLOW),
    ];
    for (lock, error) in bad {
        for command in [F_SETLK, F_SETLKW, F_GETLK] {
            let arguments = arguments(&world, mine, command, lock);
            assert_eq!(world.call(mine.0, nr::FCNTL, &arguments), Err(error), "{lock:?}");
        }
    }
    assert_eq!(get(&world, mine, (F_UNLCK, SEEK_SET, 0, 0)), Err(Errno::EINVAL));
    assert_eq!(world.call(mine.0, nr::FCNTL, &[mine.1, F_SETLK, 8]), Err(Errno::EFAULT));
    assert_eq!(world.call(mine.0, nr::FCNTL, &[mine.1, F_GETLK, 8]), Err(Errno::EFAULT));
    assert_eq!(set(&world, (mine.0, 99), F_RDLCK, 0, 0), Err(Errno::EBADF));
    let (pipe, _) = world.pipe(mine.0, 0);
    assert_eq!(set(&world, (mine.0, pipe), F_RDLCK, 0, 0), Err(Errno::EBADF));
    let place = world.open(mine.0, "/file", O_PATH, 0).unwrap();
    assert_eq!(set(&world, (mine.0, place), F_RDLCK, 0, 0), Err(Errno::EBADF));
}

#[test]
fn a_shared_lock_needs_a_file_open_for_reading_and_an_exclusive_one_for_writing() {
    let world = World::new();
    world.make("/file", b"x", 0o644, (0, 0));
    let [reads, writes] =
        [O_RDONLY, O_WRONLY].map(|flags| (world.root, world.open(world.root, "/file", flags, 0).unwrap()));
    assert_eq!(set(&world, reads, F_RDLCK, 0, 0), Ok(0));
    assert_eq!(set(&world, reads, F_WRLCK, 0, 0), Err(Errno::EBADF));
    assert_eq!(set(&world, writes, F_WRLCK, 0, 0), Ok(0));
    assert_eq!(set(&world, writes, F_RDLCK, 0, 0), Err(Errno::EBADF));
    assert_eq!(set(&world, writes, F_UNLCK, 0, 0), Ok(0));
}

#[test]
fn setlkw_waits_until_no_lock_is_in_the_way() {
    let world = World::new();
    let [mine, theirs] = two(&world);
    assert_eq!(set(&world, mine, F_WRLCK, 0, 10), Ok(0));
    assert_eq!(wait(&world, theirs, F_RDLCK, 5, 3), None);
    assert_eq!(set(&world, mine, F_UNLCK, 0, 6), Ok(0));
    assert_eq!(world.result(theirs.0), None, "two of its bytes are still held");
    assert_eq!(set(&world, mine, F_RDLCK, 6, 4), Ok(0), "a shared lock lets it in");
    assert_eq!(world.result(theirs.0), Some(Ok(0)));
    assert_eq!(set(&world, mine, F_WRLCK, 5, 1), Err(Errno::EAGAIN), "now it holds them");
    assert_eq!(wait(&world, theirs, F_WRLCK, 20, 1), Some(Ok(0)), "nobody is in the way");
}

#[test]
fn the_end_of_a_program_or_a_close_lets_waiting_locks_in() {
    let world = World::new();
    let [mine, theirs] = two(&world);
    let again = world.open(mine.0, "/file", O_RDONLY, 0).unwrap();
    assert_eq!(set(&world, mine, F_WRLCK, 0, 0), Ok(0));
    assert_eq!(wait(&world, theirs, F_WRLCK, 0, 0), None);
    world.close(mine.0, again).unwrap();
    assert_eq!(world.result(theirs.0), Some(Ok(0)), "any descriptor of the file that is closed releases its locks");
    assert_eq!(wait(&world, mine, F_WRLCK, 0, 0), None);
    world.exit(theirs.0);
    assert_eq!(world.result(mine.0), Some(Ok(0)));
}

#[test]
fn a_signal_ends_the_wait_for_a_lock() {
    let world = World::new();
    let [mine, theirs] = two(&world);
    let cancel = vfs::Cancel { process: theirs.0, error: Errno::EINTR.0 };
    assert_eq!(set(&world, mine, F_WRLCK, 0, 0), Ok(0));
    assert_eq!(wait(&world, theirs, F_WRLCK, 0, 0), None);
    assert_eq!(world.call_as_pm(cancel.message()), Ok(0));
    assert_eq!(world.result(theirs.0), Some(Err(Errno::EINTR)));
    assert_eq!(flock(&world, mine, LOCK_EX), Ok(0));
    assert_eq!(world.begin_call(theirs.0, nr::FLOCK, &[theirs.1, LOCK_SH]), None);
    assert_eq!(world.call_as_pm(cancel.message()), Ok(0));
    assert_eq!(world.result(theirs.0), Some(Err(Errno::EINTR)));
    assert_eq!(set(&world, mine, F_UNLCK, 0, 0), Ok(0));
    assert_eq!(set(&world, mine, F_WRLCK, 0, 0), Ok(0), "the call that was ended holds nothing");
}

#[test]
fn a_wait_that_would_never_end_is_refused() {
    let world = World::new();
    let [mine, theirs] = two(&world);
    let third = world.fork(world.root, 0);
    let third = (third, world.open(third, "/file", O_RDWR, 0).unwrap());
    for (side, byte) in [(mine, 0), (theirs, 1), (third, 2)] {
        assert_eq!(set(&world, side, F_WRLCK, byte, 1), Ok(0));
    }
    assert_eq!(wait(&world, mine, F_WRLCK, 1, 1), None);
    assert_eq!(wait(&world, theirs, F_WRLCK, 2, 1), None);
    assert_eq!(wait(&world, third, F_RDLCK, 0, 1), Some(Err(Errno::EDEADLK)));
    assert_eq!(set(&world, third, F_UNLCK, 2, 1), Ok(0));
    assert_eq!(world.result(theirs.0), Some(Ok(0)));
    assert_eq!(wait(&world, third, F_WRLCK, 0, 1), None, "no longer a circle");
}

#[test]
fn record_locks_belong_to_the_descriptor_table() {
    let world = World::new();
    let [mine, _] = two(&world);
    assert_eq!(set(&world, mine, F_WRLCK, 0, 0), Ok(0));
    let (child, thread) = (world.fork(world.root, 0), world.fork(world.root, vfs::FORK_FILES));
    assert_eq!(set(&world, (child, mine.1), F_RDLCK, 0, 0), Err(Errno::EAGAIN), "a child inherits none");
    assert_eq!(set(&world, (thread, mine.1), F_RDLCK, 0, 1), Ok(0), "a thread has the same ones");
    world.close(child, mine.1).unwrap();
    assert_eq!(set(&world, (thread, mine.1), F_WRLCK, 0, 1), Ok(0));
    let child = world.fork(world.root, 0);
    assert_eq!(set(&world, (child, mine.1), F_RDLCK, 0, 1), Err(Errno::EAGAIN), "a child's close releases none");
}

#[test]
fn there_are_not_more_record_locks_than_vfs_can_preserve() {
    let world = World::new();
    let [mine, theirs] = two(&world);
    let results: Vec<Result<u64>> = (0..100).map(|number| set(&world, mine, F_WRLCK, 2 * number, 1)).collect();
    let set_up = results.iter().take_while(|result| result.is_ok()).count();
    assert!((5..100).contains(&set_up), "{set_up} locks");
    assert!(results[set_up..].iter().all(|result| *result == Err(Errno::ENOLCK)));
    assert_eq!(flock(&world, theirs, LOCK_SH), Err(Errno::ENOLCK));
    world.close(mine.0, mine.1).unwrap();
    assert_eq!(set(&world, theirs, F_WRLCK, 0, 0), Ok(0));
    assert_eq!(flock(&world, theirs, LOCK_SH), Ok(0));
}

#[test]
fn a_lock_on_another_file_leaves_room_for_one_less() {
    let count = |elsewhere: bool| {
        let world = World::new();
        let [mine, _] = two(&world);
        world.make("/other", b"", 0o644, (0, 0));
        let other = world.open(world.root, "/other", O_RDWR, 0).unwrap();
        if elsewhere {
            assert_eq!(flock(&world, (world.root, other), LOCK_EX), Ok(0));
        }
        (0..).take_while(|number| set(&world, mine, F_WRLCK, 2 * number, 1).is_ok()).count()
    };
    assert_eq!(count(true), count(false) - 1);
}

#[test]
fn locks_end_with_a_process_that_waits_for_another() {
    let world = World::new();
    let [mine, theirs] = two(&world);
    world.make("/other", b"x", 0o644, (0, 0));
    let [own, others] = [world.root, theirs.0].map(|who| (who, world.open(who, "/other", O_RDWR, 0).unwrap()));
    assert_eq!(set(&world, others, F_WRLCK, 0, 0), Ok(0));
    assert_eq!(set(&world, mine, F_WRLCK, 0, 0), Ok(0));
    assert_eq!(wait(&world, theirs, F_WRLCK, 0, 0), None);
    world.exit(theirs.0);
    assert_eq!(set(&world, own, F_WRLCK, 0, 0), Ok(0));
}

#[test]
fn flock_keeps_others_out_until_it_is_released() {
    let world = World::new();
    let [mine, theirs] = two(&world);
    assert_eq!(flock(&world, mine, LOCK_SH), Ok(0));
    assert_eq!(flock(&world, theirs, LOCK_SH | LOCK_NB), Ok(0));
    assert_eq!(flock(&world, mine, LOCK_EX | LOCK_NB), Err(Errno::EAGAIN));
    assert_eq!(flock(&world, theirs, LOCK_UN), Ok(0));
    assert_eq!(flock(&world, mine, LOCK_EX), Ok(0));
    assert_eq!(world.begin_call(theirs.0, nr::FLOCK, &[theirs.1, LOCK_EX]), None);
    world.close(mine.0, mine.1).unwrap();
    assert_eq!(world.result(theirs.0), Some(Ok(0)));
}

#[test]
fn an_exclusive_flock_that_becomes_shared_lets_readers_in() {
    let world = World::new();
    let [mine, theirs] = two(&world);
    assert_eq!(flock(&world, mine, LOCK_EX | LOCK_NB), Ok(0));
    assert_eq!(world.begin_call(theirs.0, nr::FLOCK, &[theirs.1, LOCK_SH]), None);
    assert_eq!(flock(&world, mine, LOCK_SH), Ok(0));
    assert_eq!(world.result(theirs.0), Some(Ok(0)));
    assert_eq!(world.begin_call(mine.0, nr::FLOCK, &[mine.1, LOCK_EX]), None);
    assert_eq!(flock(&world, theirs, LOCK_UN | LOCK_NB), Ok(0));
    assert_eq!(world.result(mine.0), Some(Ok(0)));
}

#[test]
fn flock_is_of_the_open_file() {
    let world = World::new();
    let [mine, _] = two(&world);
    let second = (mine.0, world.open(mine.0, "/file", O_RDONLY, 0).unwrap());
    let copy = (mine.0, world.call(mine.0, nr::DUP, &[mine.1]).unwrap());
    assert_eq!(flock(&world, mine, LOCK_EX), Ok(0));
    assert_eq!(flock(&world, copy, LOCK_EX | LOCK_NB), Ok(0));
    assert_eq!(flock(&world, second, LOCK_SH | LOCK_NB), Err(Errno::EAGAIN), "another open of the same program");
    world.close(mine.0, mine.1).unwrap();
    assert_eq!(flock(&world, second, LOCK_SH | LOCK_NB), Err(Errno::EAGAIN), "the copy holds it");
    world.close(copy.0, copy.1).unwrap();
    assert_eq!(flock(&world, second, LOCK_EX | LOCK_NB), Ok(0));
}

#[test]
fn flock_and_record_locks_do_not_see_each_other() {
    let world = World::new();
    let [mine, theirs] = two(&world);
    assert_eq!(flock(&world, mine, LOCK_EX), Ok(0));
    assert_eq!(set(&world, theirs, F_WRLCK, 0, 0), Ok(0));
    assert_eq!(get(&world, mine, (F_WRLCK, SEEK_SET, 0, 0)).unwrap()[0], F_WRLCK);
    assert_eq!(set(&world, theirs, F_UNLCK, 0, 0), Ok(0));
    assert_eq!(flock(&world, theirs, LOCK_EX | LOCK_NB), Err(Errno::EAGAIN));
}

#[test]
fn flock_refuses_what_is_no_operation() {
    let world = World::new();
    let [mine, _] = two(&world);
    for operation in [0, LOCK_NB, LOCK_SH | LOCK_EX, LOCK_SH | LOCK_UN, 16] {
        assert_eq!(flock(&world, mine, operation), Err(Errno::EINVAL), "{operation}");
    }
    assert_eq!(flock(&world, (mine.0, 99), LOCK_SH), Err(Errno::EBADF));
    let place = world.open(mine.0, "/file", O_PATH, 0).unwrap();
    assert_eq!(flock(&world, (mine.0, place), LOCK_SH), Err(Errno::EBADF));
}

#[test]
fn locks_outlive_vfs() {
    let mut world = World::new();
    let [mine, theirs] = two(&world);
    assert_eq!(set(&world, mine, F_WRLCK, 10, 10), Ok(0));
    assert_eq!(set(&world, mine, F_RDLCK, 40, 0), Ok(0));
    assert_eq!(flock(&world, mine, LOCK_EX), Ok(0));
    world.restart_vfs();
    assert_eq!(get(&world, theirs, (F_RDLCK, SEEK_SET, 0, 0)), Ok([F_WRLCK, SEEK_SET, 10, 10, 1]));
    assert_eq!(get(&world, theirs, (F_WRLCK, SEEK_SET, 20, 0)), Ok([F_RDLCK, SEEK_SET, 40, 0, 1]));
    assert_eq!(set(&world, theirs, F_RDLCK, 40, 0), Ok(0));
    assert_eq!(flock(&world, theirs, LOCK_SH | LOCK_NB), Err(Errno::EAGAIN));
    world.close(mine.0, mine.1).unwrap();
    assert_eq!(set(&world, theirs, F_WRLCK, 0, 0), Ok(0));
    assert_eq!(flock(&world, theirs, LOCK_EX | LOCK_NB), Ok(0));
}

#[test]
fn a_lock_that_was_released_stays_released() {
    let mut world = World::new();
    let [mine, theirs] = two(&world);
    assert_eq!(set(&world, mine, F_WRLCK, 0, 0), Ok(0));
    assert_eq!(flock(&world, mine, LOCK_EX), Ok(0));
    world.restart_vfs();
    assert_eq!(set(&world, mine, F_UNLCK, 0, 0), Ok(0));
    assert_eq!(flock(&world, mine, LOCK_UN), Ok(0));
    world.restart_vfs();
    assert_eq!(set(&world, theirs, F_WRLCK, 0, 0), Ok(0));
    assert_eq!(flock(&world, theirs, LOCK_EX | LOCK_NB), Ok(0));
}

#[test]
fn locks_of_an_open_file_are_shared_with_its_duplicates_and_end_with_the_last() {
    const F_OFD_GETLK: u64 = 36;
    const F_OFD_SETLK: u64 = 37;
    let mut world = World::new();
    let [mine, theirs] = two(&world);
    let set = |world: &World, side: Side, pid: u64| {
        let [file, command, address] = arguments(world, side, F_OFD_SETLK, (F_WRLCK, SEEK_SET, 0, 5));
        world.machine.write(side.0, address + 24, &pid.to_le_bytes());
        world.call(side.0, nr::FCNTL, &[file, command, address])
    };
    assert_eq!(set(&world, mine, 7), Err(Errno::EINVAL), "the pid is 0");
    assert_eq!(set(&world, mine, 0), Ok(0));
    assert_eq!(set(&world, theirs, 0), Err(Errno::EAGAIN));
    let [_, _, address] = arguments(&world, theirs, F_OFD_GETLK, (F_RDLCK, SEEK_SET, 0, 0));
    assert_eq!(world.call(theirs.0, nr::FCNTL, &[theirs.1, F_OFD_GETLK, address]), Ok(0));
    assert_eq!(world.read_words(theirs.0, address, 4)[3] as u32, u32::MAX, "no process owns it");
    let child = world.fork(mine.0, 0);
    world.close(mine.0, mine.1).unwrap();
    world.restart_vfs();
    assert_eq!(set(&world, theirs, 0), Err(Errno::EAGAIN), "the child's descriptor is left");
    world.exit(child);
    assert_eq!(set(&world, theirs, 0), Ok(0));
}
