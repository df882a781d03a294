//! Pipes and FIFOs: waiting, ends, signals.

use super::*;
use abi::{Errno, linux::nr, vfs};
use std::vec::Vec;

const SIGPIPE: u64 = 13;
const F_SETPIPE_SZ: u64 = 1031;
const F_GETPIPE_SZ: u64 = 1032;

#[test]
fn a_reader_waits_for_data() {
    let world = World::new();
    let (reads, writes) = world.pipe(world.root, 0);
    let child = world.fork(world.root, 0);
    assert_eq!(world.begin_call(child, nr::READ, &[reads, DATA, 100]), None);
    assert_eq!(world.write(world.root, writes, b"data"), Ok(4));
    assert_eq!(world.result(child), Some(Ok(4)));
    assert_eq!(world.machine.read(child, DATA, 4), b"data");
}

#[test]
fn a_reader_sees_the_end_when_every_writer_has_gone() {
    let world = World::new();
    let (reads, writes) = world.pipe(world.root, 0);
    let child = world.fork(world.root, 0);
    world.close(world.root, reads).unwrap();
    assert_eq!(world.begin_call(child, nr::READ, &[reads, DATA, 100]), None);
    world.close(world.root, writes).unwrap();
    assert_eq!(world.result(child), None, "the child can write itself");
    assert_eq!(world.call_as_pm(vfs::Cancel { process: child, error: Errno::EINTR.0 }.message()), Ok(0));
    assert_eq!(world.result(child), Some(Err(Errno::EINTR)));
    world.close(child, writes).unwrap();
    assert_eq!(world.read(child, reads, 100).unwrap(), b"");
}

#[test]
fn a_write_without_reader_is_signalled_and_fails() {
    let world = World::new();
    let (reads, writes) = world.pipe(world.root, 0);
    world.close(world.root, reads).unwrap();
    let address = world.data(world.root, b"x");
    assert_eq!(world.begin_call(world.root, nr::WRITE, &[writes, address, 1]), None);
    assert_eq!(world.next_event(), Some((vfs::EVENT_SIGNAL, world.root, [SIGPIPE, 0, 0, 0])));
    assert_eq!(world.call_as_pm(vfs::Cancel { process: world.root, error: Errno::EPIPE.0 }.message()), Ok(0));
    assert_eq!(world.result(world.root), Some(Err(Errno::EPIPE)));
}

#[test]
fn without_waiting_an_empty_or_full_pipe_says_so() {
    let world = World::new();
    let (reads, writes) = world.pipe(world.root, O_NONBLOCK);
    assert_eq!(world.read(world.root, reads, 1), Err(Errno::EAGAIN));
    let mut written = 0;
    let error = loop {
        match world.call(world.root, nr::WRITE, &[writes, DATA, 4096]) {
            Ok(bytes) => written += bytes,
            Err(error) => break error,
        }
    };
    assert_eq!(error, Errno::EAGAIN);
    // A pipe takes 64 KiB; all pipes together have less than that when vfs is built for tests.
    assert!((40_000..=65536).contains(&written), "{written} bytes");
    assert_eq!(world.read(world.root, reads, 4096).unwrap().len(), 4096);
    assert_eq!(world.call(world.root, nr::WRITE, &[writes, DATA, 4096]), Ok(4096));
}

#[test]
fn a_writer_waits_for_room() {
    let world = World::new();
    let (reads, writes) = world.pipe(world.root, 0);
    let child = world.fork(world.root, 0);
    assert_eq!(world.begin_call(child, nr::WRITE, &[writes, DATA, 100_000]), None);
    let mut taken = 0;
    while world.result(child).is_none() {
        taken += world.read(world.root, reads, 10_000).unwrap().len();
    }
    assert!(taken >= 100_000 - 65536, "{taken} bytes");
}

#[test]
fn the_ends_of_a_pipe_are_one_way() {
    let world = World::new();
    let (reads, writes) = world.pipe(world.root, O_CLOEXEC);
    assert_eq!(world.write(world.root, reads, b"x"), Err(Errno::EBADF));
    assert_eq!(world.read(world.root, writes, 1), Err(Errno::EBADF));
    assert_eq!(world.call(world.root, nr::FCNTL, &[reads, 1]), Ok(1));
    assert_eq!(world.call(world.root, nr::PIPE2, &[DATA, 1]), Err(Errno::EINVAL));
    assert_eq!(world.call(world.root, nr::PIPE2, &[8, 0]), Err(Errno::EFAULT));
    let (next, _) = world.pipe(world.root, 0);
    assert_eq!(next, 2, "a failure leaves no descriptor");
}

#[test]
fn a_fifo_is_opened_when_both_ends_are() {
    let world = World::new();
    assert_eq!(world.path_call(world.root, nr::MKNOD, "/fifo", &[u64::from(S_IFIFO) | 0o600, 0]), Ok(0));
    let child = world.fork(world.root, 0);
    let path = world.path(child, 0, "/fifo");
    assert_eq!(world.open(world.root, "/fifo", O_WRONLY | O_NONBLOCK, 0), Err(Errno::ENXIO));
    assert_eq!(world.begin_call(child, nr::OPEN, &[path, O_RDONLY, 0]), None);
    let writes = world.open(world.root, "/fifo", O_WRONLY, 0).unwrap();
    let reads = world.result(child).unwrap().unwrap();
    assert_eq!(world.write(world.root, writes, b"through"), Ok(7));
    assert_eq!(world.read(child, reads, 100).unwrap(), b"through");
}

#[test]
fn the_end_of_a_program_closes_what_it_had() {
    let world = World::new();
    let (reads, writes) = world.pipe(world.root, 0);
    let child = world.fork(world.root, 0);
    world.close(world.root, writes).unwrap();
    assert_eq!(world.begin_call(world.root, nr::READ, &[reads, DATA, 100]), None);
    world.exit(child);
    assert_eq!(world.result(world.root), Some(Ok(0)));
}

#[test]
fn a_user_with_many_pipes_gets_small_ones_and_others_full_ones() {
    let world = World::new();
    let user = world.user(1000, 1000);
    let capacity = |program, pipe: (u64, u64)| world.call(program, nr::FCNTL, &[pipe.0, F_GETPIPE_SZ]);
    let mut pipes = Vec::new();
    while world.call(user, nr::PIPE2, &[DATA, O_NONBLOCK]) == Ok(0) {
        let both = world.read_words(user, DATA, 1)[0];
        pipes.push((both & 0xffff_ffff, both >> 32));
    }
    assert_eq!(world.call(user, nr::PIPE2, &[DATA, 0]), Err(Errno::ENFILE));
    let last = *pipes.last().unwrap();
    assert_eq!((capacity(user, pipes[0]), capacity(user, last)), (Ok(65536), Ok(4096)));
    assert_eq!(world.call(user, nr::FCNTL, &[last.0, F_SETPIPE_SZ, 1 << 17]), Err(Errno::EPERM));
    for (_, writes) in &pipes {
        while world.call(user, nr::WRITE, &[*writes, DATA, 4096]).is_ok() {}
    }
    let other = world.user(1001, 1001);
    let pipe = world.pipe(other, O_NONBLOCK);
    assert_eq!((capacity(other, pipe), world.call(other, nr::WRITE, &[pipe.1, DATA, 65536])), (Ok(65536), Ok(65536)));
    world.exit(user);
    let user = world.user(1000, 1000);
    let again = world.pipe(user, 0);
    assert_eq!(capacity(user, again), Ok(65536));
}

#[test]
fn what_a_user_has_of_pipes_is_known_to_a_successor() {
    let mut world = World::new();
    let user = world.user(1000, 1000);
    let count = core::iter::from_fn(|| world.call(user, nr::PIPE2, &[DATA, 0]).ok()).count();
    world.restart_vfs();
    assert_eq!(world.call(user, nr::PIPE2, &[DATA, 0]), Err(Errno::ENFILE));
    world.exit(user);
    let user = world.user(1000, 1000);
    assert_eq!(core::iter::from_fn(|| world.call(user, nr::PIPE2, &[DATA, 0]).ok()).count(), count);
}

#[test]
fn an_open_that_finds_no_reader_leaves_no_pipe() {
    let world = World::new();
    assert_eq!(world.path_call(world.root, nr::MKNOD, "/fifo", &[u64::from(S_IFIFO) | 0o600, 0]), Ok(0));
    for _ in 0..3000 {
        assert_eq!(world.open(world.root, "/fifo", O_WRONLY | O_NONBLOCK, 0), Err(Errno::ENXIO));
    }
    world.pipe(world.root, 0);
}
