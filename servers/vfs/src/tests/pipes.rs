//! Pipes and FIFOs: waiting, ends, signals.

use super::*;
use abi::{Errno, linux::nr, vfs};

const SIGPIPE: u64 = 13;

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
