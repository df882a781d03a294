//! ioctl, fcntl and dup beyond what `descriptors` tries: flags, pipe sizes, limits of tables.

use super::*;
use abi::{Endpoint, Errno, linux::nr, vfs};

const FIONREAD: u64 = 0x541b;
const FIONBIO: u64 = 0x5421;
const FIONCLEX: u64 = 0x5450;
const FIOCLEX: u64 = 0x5451;
const FIOASYNC: u64 = 0x5452;
const O_ASYNC: u64 = 0o20000;
const O_DIRECT: u64 = 0o40000;
const O_NOATIME: u64 = 0o1000000;
const F_SETPIPE_SZ: u64 = 1031;
const F_GETPIPE_SZ: u64 = 1032;

fn fcntl(world: &World, file: u64, command: u64, argument: u64) -> Result<u64> {
    world.call(world.root, nr::FCNTL, &[file, command, argument])
}

fn ioctl(world: &World, file: u64, request: u64, argument: u64) -> Result<u64> {
    world.call(world.root, nr::IOCTL, &[file, request, argument])
}

#[test]
fn ioctl_switches_waiting_and_signals_on_and_off() {
    let world = World::new();
    let (reads, _) = world.pipe(world.root, O_DIRECT);
    let on = world.data(world.root, &[0, 0, 0, 1]);
    let off = world.words(world.root, &[0xffff_ffff_0000_0000]);
    for (request, flag) in [(FIONBIO, O_NONBLOCK), (FIOASYNC, O_ASYNC)] {
        assert_eq!(ioctl(&world, reads, request, on), Ok(0));
        assert_eq!(fcntl(&world, reads, F_GETFL, 0), Ok(O_DIRECT | flag));
        assert_eq!(ioctl(&world, reads, request, on), Ok(0));
        assert_eq!(fcntl(&world, reads, F_GETFL, 0), Ok(O_DIRECT | flag));
        assert_eq!(ioctl(&world, reads, request, off), Ok(0), "an int has four bytes");
        assert_eq!(fcntl(&world, reads, F_GETFL, 0), Ok(O_DIRECT));
        assert_eq!(ioctl(&world, reads, request, 8), Err(Errno::EFAULT));
    }
    ioctl(&world, reads, FIOASYNC, on).unwrap();
    ioctl(&world, reads, FIONBIO, on).unwrap();
    assert_eq!(fcntl(&world, reads, F_GETFL, 0), Ok(O_DIRECT | O_NONBLOCK | O_ASYNC));
    assert_eq!(world.read(world.root, reads, 1), Err(Errno::EAGAIN));
}

#[test]
fn ioctl_marks_a_descriptor_for_exec() {
    let world = World::new();
    let (reads, writes) = world.pipe(world.root, 0);
    assert_eq!(ioctl(&world, reads, FIOCLEX, 0), Ok(0));
    assert_eq!((fcntl(&world, reads, F_GETFD, 0), fcntl(&world, writes, F_GETFD, 0)), (Ok(1), Ok(0)));
    assert_eq!(ioctl(&world, reads, FIONCLEX, 0), Ok(0));
    assert_eq!(fcntl(&world, reads, F_GETFD, 0), Ok(0));
    for (argument, mark) in [(1, 1), (2, 0), (3, 1), (0, 0)] {
        assert_eq!(fcntl(&world, reads, F_SETFD, argument), Ok(0));
        assert_eq!(fcntl(&world, reads, F_GETFD, 0), Ok(mark), "only one bit counts");
    }
    for command in [F_GETFD, F_SETFD, F_GETFL, F_SETFL, F_DUPFD] {
        assert_eq!(fcntl(&world, 99, command, 0), Err(Errno::EBADF));
    }
    assert_eq!(ioctl(&world, 99, FIOCLEX, 0), Err(Errno::EBADF));
}

#[test]
fn ioctl_tells_how_much_can_be_read() {
    let world = World::new();
    world.make("/file", b"0123456789", 0o644, (0, 0));
    let file = world.open(world.root, "/file", O_RDONLY, 0).unwrap();
    let directory = world.open(world.root, "/", O_RDONLY, 0).unwrap();
    let (reads, writes) = world.pipe(world.root, 0);
    let left = |file| {
        world.machine.write(world.root, DATA, &[0xff; 8]);
        assert_eq!(ioctl(&world, file, FIONREAD, DATA)?, 0);
        Ok(world.read_words(world.root, DATA, 1)[0])
    };
    let bytes = |count: u64| Ok(count | 0xffff_ffff_0000_0000);
    assert_eq!(left(file), bytes(10));
    world.read(world.root, file, 4).unwrap();
    assert_eq!(left(file), bytes(6));
    world.seek(world.root, file, 20, SEEK_SET).unwrap();
    assert_eq!(left(file), bytes(0));
    assert_eq!(left(reads), bytes(0));
    world.write(world.root, writes, b"text").unwrap();
    assert_eq!(left(reads), bytes(4));
    assert_eq!(left(directory), Err(Errno::ENOTTY));
    for file in [file, reads] {
        assert_eq!(ioctl(&world, file, FIONREAD, 8), Err(Errno::EFAULT));
        assert_eq!(ioctl(&world, file, 0x5401, DATA), Err(Errno::ENOTTY));
    }
    world.make("/large", b"", 0o644, (0, 0));
    let large = world.open(world.root, "/large", O_RDWR, 0).unwrap();
    assert_eq!(world.call(world.root, nr::FTRUNCATE, &[large, 3 << 30]), Ok(0));
    assert_eq!(left(large), bytes(0x7fff_ffff), "as much as an int says");
}

#[test]
fn setfl_changes_some_flags_and_o_path_files_have_none_of_them() {
    let world = World::new();
    const O_LARGEFILE: u64 = 0o100000;
    world.make("/file", b"x", 0o644, (0, 0));
    let file = world.open(world.root, "/file", O_RDONLY | O_DSYNC, 0).unwrap();
    let all = O_APPEND | O_NONBLOCK | O_DIRECT | O_NOATIME;
    assert_eq!(fcntl(&world, file, F_SETFL, u64::MAX), Ok(0));
    assert_eq!(fcntl(&world, file, F_GETFL, 0), Ok(O_DSYNC | O_LARGEFILE | all));
    assert_eq!(fcntl(&world, file, F_SETFL, 0), Ok(0));
    assert_eq!(fcntl(&world, file, F_GETFL, 0), Ok(O_DSYNC | O_LARGEFILE));
    let place = world.open(world.root, "/file", O_PATH | O_RDWR | O_APPEND | O_NOFOLLOW, 0).unwrap();
    assert_eq!(fcntl(&world, place, F_GETFL, 0), Ok(O_PATH | O_NOFOLLOW));
    assert_eq!(fcntl(&world, place, F_SETFL, 0), Err(Errno::EBADF));
    assert_eq!(ioctl(&world, place, FIOCLEX, 0), Err(Errno::EBADF));
    assert_eq!(world.seek(world.root, place, 0, SEEK_SET), Err(Errno::EBADF));
}

#[test]
fn a_pipe_holds_as_much_as_it_is_told() {
    let world = World::new();
    let (reads, writes) = world.pipe(world.root, O_NONBLOCK);
    assert_eq!(fcntl(&world, reads, F_GETPIPE_SZ, 0), Ok(65536));
    for (asked, given) in [(0, 4096), (4096, 4096), (4097, 8192), (1 << 17, 1 << 17), (5000, 8192)] {
        assert_eq!(fcntl(&world, writes, F_SETPIPE_SZ, asked), Ok(given), "{asked} bytes");
        assert_eq!(fcntl(&world, reads, F_GETPIPE_SZ, 0), Ok(given));
    }
    assert_eq!(fcntl(&world, writes, F_SETPIPE_SZ, (1 << 20) + 1), Err(Errno::EPERM));
    assert_eq!(world.call(world.root, nr::WRITE, &[writes, DATA, 8192]), Ok(8192));
    assert_eq!(world.call(world.root, nr::WRITE, &[writes, DATA, 1]), Err(Errno::EAGAIN));
    assert_eq!(fcntl(&world, writes, F_SETPIPE_SZ, 4096), Err(Errno::EBUSY), "more is in it");
    assert_eq!(world.call(world.root, nr::READ, &[reads, DATA, 4096]), Ok(4096));
    assert_eq!(fcntl(&world, writes, F_SETPIPE_SZ, 4096), Ok(4096));
    let file = world.open(world.root, "/", O_RDONLY, 0).unwrap();
    for command in [F_SETPIPE_SZ, F_GETPIPE_SZ] {
        assert_eq!(fcntl(&world, file, command, 4096), Err(Errno::EBADF));
    }
}

#[test]
fn dup3_and_pipe2_mark_for_exec() {
    let world = World::new();
    let (reads, writes) = world.pipe(world.root, O_CLOEXEC | O_DIRECT);
    assert_eq!((reads, writes), (0, 1));
    assert_eq!((fcntl(&world, reads, F_GETFD, 0), fcntl(&world, writes, F_GETFD, 0)), (Ok(1), Ok(1)));
    let dup3 = |old, new, flags| world.call(world.root, nr::DUP3, &[old, new, flags]);
    assert_eq!(dup3(reads, 5, O_CLOEXEC), Ok(5));
    assert_eq!(dup3(reads, 6, 0), Ok(6));
    assert_eq!((fcntl(&world, 5, F_GETFD, 0), fcntl(&world, 6, F_GETFD, 0)), (Ok(1), Ok(0)));
    assert_eq!(world.call(world.root, nr::DUP2, &[5, 7]), Ok(7));
    assert_eq!(fcntl(&world, 7, F_GETFD, 0), Ok(0));
    assert_eq!(dup3(reads, 8, 1), Err(Errno::EINVAL));
    assert_eq!(dup3(reads, 8, O_CLOEXEC | O_NONBLOCK), Err(Errno::EINVAL));
    assert_eq!(world.call(world.root, nr::DUP2, &[99, 99]), Err(Errno::EBADF));
    assert_eq!(world.call(world.root, nr::PIPE, &[DATA]), Ok(0));
    let both = world.read_words(world.root, DATA, 1)[0];
    assert_eq!(both, 2 | 3 << 32);
    assert_eq!((fcntl(&world, 2, F_GETFL, 0), fcntl(&world, 3, F_GETFL, 0)), (Ok(O_RDONLY), Ok(O_WRONLY)));
    assert_eq!(fcntl(&world, 2, F_GETFD, 0), Ok(0));
}

#[test]
fn a_table_has_as_many_numbers_as_the_limit_says() {
    let world = World::new();
    let file = world.open(world.root, "/", O_RDONLY, 0).unwrap();
    for first in [1024, 5000, u64::MAX, 1 << 63] {
        assert_eq!(fcntl(&world, file, F_DUPFD, first), Err(Errno::EINVAL), "{first}");
    }
    assert_eq!(fcntl(&world, file, F_DUPFD, 1023), Ok(1023));
    assert_eq!(fcntl(&world, file, F_DUPFD, 1023), Err(Errno::EMFILE));
    assert_eq!(world.call(world.root, nr::DUP2, &[file, 1023]), Ok(1023));
    for new in [1024, u64::MAX] {
        assert_eq!(world.call(world.root, nr::DUP2, &[file, new]), Err(Errno::EBADF));
        assert_eq!(world.call(world.root, nr::DUP3, &[file, new, 0]), Err(Errno::EBADF));
    }
}

#[test]
fn a_call_that_needs_two_numbers_takes_none_when_there_is_one() {
    let world = World::new();
    world.make("/file", b"", 0o644, (0, 0));
    let file = world.open(world.root, "/", O_RDONLY, 0).unwrap();
    while world.call(world.root, nr::DUP, &[file]).is_ok() {}
    assert_eq!(world.call(world.root, nr::DUP, &[file]), Err(Errno::EMFILE));
    assert_eq!(world.open(world.root, "/new", O_CREAT | O_WRONLY, 0o644), Err(Errno::EMFILE));
    world.close(world.root, 700).unwrap();
    assert_eq!(world.call(world.root, nr::PIPE2, &[DATA, 0]), Err(Errno::EMFILE));
    assert_eq!(world.call(world.root, nr::SOCKETPAIR, &[1, 1, 0, DATA]), Err(Errno::EMFILE));
    assert_eq!(world.open(world.root, "/file", O_RDONLY, 0), Ok(700), "the one is still free");
    world.close(world.root, 700).unwrap();
    world.close(world.root, 600).unwrap();
    assert_eq!(world.call(world.root, nr::PIPE2, &[DATA, 0]), Ok(0));
    assert_eq!(world.read_words(world.root, DATA, 1), [600 | 700 << 32]);
    assert_eq!(world.stat(world.root, "/new"), Err(Errno::ENOENT), "nothing was made");
}

#[test]
fn close_range_may_first_take_a_table_of_its_own() {
    let world = World::new();
    const UNSHARE: u64 = 2;
    const CLOEXEC: u64 = 4;
    let file = world.open(world.root, "/", O_RDONLY, 0).unwrap();
    for _ in 0..4 {
        world.call(world.root, nr::DUP, &[file]).unwrap();
    }
    let thread = world.fork(world.root, vfs::FORK_FILES);
    let close = |who: Endpoint, first: u64, last: u64, flags| world.call(who, nr::CLOSE_RANGE, &[first, last, flags]);
    let mark = |who, file| world.call(who, nr::FCNTL, &[file, F_GETFD]);
    assert_eq!(close(thread, 1, 2, UNSHARE), Ok(0));
    assert_eq!(close(thread, 3, 3, UNSHARE | CLOEXEC), Ok(0));
    assert_eq!([0, 1, 2, 3, 4].map(|file| mark(thread, file).ok()), [Some(0), None, None, Some(1), Some(0)]);
    assert_eq!([0, 1, 2, 3, 4].map(|file| mark(world.root, file).ok()), [Some(0); 5]);
    let thread = world.fork(world.root, vfs::FORK_FILES);
    assert_eq!(close(thread, 4, 4, 0), Ok(0));
    assert_eq!(mark(world.root, 4), Err(Errno::EBADF), "otherwise it is everybody's");
    assert_eq!(close(thread, 3, 3, CLOEXEC), Ok(0));
    assert_eq!(mark(world.root, 3), Ok(1));
    assert_eq!(world.call(world.root, nr::FCNTL, &[3, F_SETFD, 0]), Ok(0));
    assert_eq!(world.call(world.root, nr::DUP2, &[0, 4]), Ok(4));
    world.exit(thread);
    assert_eq!(close(world.root, 4, 4, 8), Err(Errno::EINVAL));
    assert_eq!(close(world.root, 4, 4, 1), Err(Errno::EINVAL));
    assert_eq!(close(world.root, 4, 4, 0), Ok(0));
    assert_eq!((mark(world.root, 3), mark(world.root, 4)), (Ok(0), Err(Errno::EBADF)));
    assert_eq!(close(world.root, 0, u64::from(u32::MAX), 0), Ok(0));
    assert_eq!([0, 1, 2, 3, 4].map(|file| mark(world.root, file).ok()), [None; 5]);
}

#[test]
fn marks_outlive_vfs() {
    let mut world = World::new();
    let file = world.open(world.root, "/", O_RDONLY | O_CLOEXEC, 0).unwrap();
    let plain = world.call(world.root, nr::DUP, &[file]).unwrap();
    let ranged = world.call(world.root, nr::DUP, &[file]).unwrap();
    let cleared = fcntl(&world, file, F_DUPFD_CLOEXEC, 500).unwrap();
    assert_eq!(world.call(world.root, nr::CLOSE_RANGE, &[ranged, ranged, 4]), Ok(0));
    assert_eq!(fcntl(&world, cleared, F_SETFD, 0), Ok(0));
    let (reads, _) = world.pipe(world.root, O_NONBLOCK);
    assert_eq!(fcntl(&world, reads, F_SETPIPE_SZ, 8192), Ok(8192));
    assert_eq!(fcntl(&world, plain, F_SETFL, O_NOATIME), Ok(0));
    let gone = world.call(world.root, nr::DUP, &[file]).unwrap();
    world.close(world.root, gone).unwrap();
    world.restart_vfs();
    let marks = [file, plain, ranged, cleared, gone].map(|file| fcntl(&world, file, F_GETFD, 0).ok());
    assert_eq!(marks, [Some(1), Some(0), Some(1), Some(0), None]);
    assert_eq!(fcntl(&world, reads, F_GETPIPE_SZ, 0), Ok(8192));
    assert_eq!(fcntl(&world, reads, F_GETFL, 0), Ok(O_NONBLOCK));
    assert_eq!(fcntl(&world, file, F_GETFL, 0).unwrap() & O_NOATIME, O_NOATIME);
}
