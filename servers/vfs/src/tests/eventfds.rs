//! Counters behind descriptors (eventfd).

use super::*;
use abi::{Endpoint, Errno, linux::nr};

const SEMAPHORE: u64 = 1;
const MOST: u64 = u64::MAX - 1;

fn create(world: &World, count: u64, flags: u64) -> u64 {
    world.call(world.root, nr::EVENTFD2, &[count, flags]).unwrap()
}

fn add(world: &World, counter: u64, value: u64) -> Result<u64> {
    world.write(world.root, counter, &value.to_le_bytes())
}

fn value(world: &World, counter: u64) -> Result<u64> {
    let bytes = world.read(world.root, counter, 100)?;
    Ok(u64::from_le_bytes(bytes[..].try_into().expect("eight bytes")))
}

fn begin_read(world: &World, who: Endpoint, counter: u64) -> Option<Result<u64>> {
    world.begin_call(who, nr::READ, &[counter, DATA, 8])
}

fn begin_write(world: &World, who: Endpoint, counter: u64, value: u64) -> Option<Result<u64>> {
    let address = world.data(who, &value.to_le_bytes());
    world.begin_call(who, nr::WRITE, &[counter, address, 8])
}

/// What poll tells of a counter.
fn ready(world: &World, counter: u64) -> u16 {
    let address = world.words(world.root, &[counter | u64::from(POLLIN | POLLOUT) << 32]);
    world.call(world.root, nr::POLL, &[address, 1, 0]).unwrap();
    (world.read_words(world.root, address, 1)[0] >> 48) as u16
}

#[test]
fn a_read_takes_the_sum_of_what_was_written() {
    let world = World::new();
    let counter = create(&world, 3, O_NONBLOCK);
    assert_eq!((add(&world, counter, 4), add(&world, counter, 1 << 40)), (Ok(8), Ok(8)));
    assert_eq!((value(&world, counter), value(&world, counter)), (Ok(7 + (1 << 40)), Err(Errno::EAGAIN)));
    let old = world.call(world.root, nr::EVENTFD, &[u64::from(u32::MAX), 0xffff]).unwrap();
    assert_eq!(value(&world, old), Ok(u64::from(u32::MAX)), "eventfd has no flags");
}

#[test]
fn a_semaphore_gives_one_at_a_time() {
    let world = World::new();
    let counter = create(&world, 2, SEMAPHORE | O_NONBLOCK);
    assert_eq!(add(&world, counter, 1), Ok(8));
    let read: Vec<_> = (0..4).map(|_| value(&world, counter)).collect();
    assert_eq!(read, [Ok(1), Ok(1), Ok(1), Err(Errno::EAGAIN)]);
}

#[test]
fn a_read_waits_for_a_write() {
    let world = World::new();
    let counter = create(&world, 0, 0);
    let readers = [(); 2].map(|()| world.fork(world.root, 0));
    assert_eq!(readers.map(|reader| begin_read(&world, reader, counter)), [None; 2]);
    assert_eq!(add(&world, counter, 0), Ok(8));
    assert_eq!(readers.map(|reader| world.result(reader)), [None; 2], "nothing was added");
    for sum in [5, 6] {
        assert_eq!(add(&world, counter, sum), Ok(8));
        let done: Vec<_> = readers.into_iter().filter(|reader| world.result(*reader) == Some(Ok(8))).collect();
        assert_eq!(done.len(), 1, "one gets it all");
        assert_eq!(world.read_words(done[0], DATA, 1), [sum]);
    }
}

#[test]
fn each_post_of_a_semaphore_lets_one_reader_go_on() {
    let world = World::new();
    let counter = create(&world, 0, SEMAPHORE);
    let readers = [(); 3].map(|()| world.fork(world.root, 0));
    assert_eq!(readers.map(|reader| begin_read(&world, reader, counter)), [None; 3]);
    assert_eq!(add(&world, counter, 2), Ok(8));
    let done = readers.into_iter().filter(|reader| world.result(*reader) == Some(Ok(8)));
    assert_eq!(done.count(), 2);
}

#[test]
fn a_write_waits_for_room() {
    let world = World::new();
    let counter = create(&world, 0, 0);
    assert_eq!(add(&world, counter, u64::MAX), Err(Errno::EINVAL));
    assert_eq!(add(&world, counter, MOST), Ok(8));
    let child = world.fork(world.root, 0);
    assert_eq!(begin_write(&world, child, counter, 2), None);
    assert_eq!(begin_write(&world, world.root, counter, 0), Some(Ok(8)), "0 always has room");
    assert_eq!(value(&world, counter), Ok(MOST));
    assert_eq!((world.result(child), value(&world, counter)), (Some(Ok(8)), Ok(2)));
    let impatient = create(&world, 0, O_NONBLOCK);
    assert_eq!((add(&world, impatient, MOST), add(&world, impatient, 1)), (Ok(8), Err(Errno::EAGAIN)));
}

#[test]
fn a_signal_ends_the_wait() {
    let world = World::new();
    let counter = create(&world, 0, 0);
    assert_eq!(begin_read(&world, world.root, counter), None);
    assert_eq!(world.cancel(world.root, Errno::ERESTARTSYS), Ok(0));
    assert_eq!(world.result(world.root), Some(Err(Errno::ERESTARTSYS)));
    assert_eq!(add(&world, counter, MOST), Ok(8));
    assert_eq!(begin_write(&world, world.root, counter, 1), None);
    assert_eq!(world.cancel(world.root, Errno::EINTR), Ok(0));
    assert_eq!(world.result(world.root), Some(Err(Errno::EINTR)));
    assert_eq!(value(&world, counter), Ok(MOST));
}

#[test]
fn poll_tells_what_would_not_wait() {
    let world = World::new();
    let counter = create(&world, 0, 0);
    assert_eq!(ready(&world, counter), POLLOUT);
    add(&world, counter, 1).unwrap();
    assert_eq!(ready(&world, counter), POLLIN | POLLOUT);
    add(&world, counter, MOST - 1).unwrap();
    assert_eq!(ready(&world, counter), POLLIN);
    value(&world, counter).unwrap();
    let child = world.fork(world.root, 0);
    let address = world.words(child, &[counter | u64::from(POLLIN) << 32]);
    assert_eq!(world.begin_call(child, nr::POLL, &[address, 1, -1i64 as u64]), None);
    add(&world, counter, 1).unwrap();
    assert_eq!(world.result(child), Some(Ok(1)));
}

#[test]
fn sizes_and_flags_have_limits_and_bad_memory_changes_nothing() {
    let world = World::new();
    for flags in [2, O_APPEND, O_NONBLOCK | 4] {
        assert_eq!(world.call(world.root, nr::EVENTFD2, &[0, flags]), Err(Errno::EINVAL));
    }
    let counter = create(&world, 9, O_NONBLOCK);
    assert_eq!(world.read(world.root, counter, 7), Err(Errno::EINVAL));
    assert_eq!(world.write(world.root, counter, &[0; 7]), Err(Errno::EINVAL));
    assert_eq!(world.call(world.root, nr::READ, &[counter, 8, 8]), Err(Errno::EFAULT));
    assert_eq!(world.call(world.root, nr::WRITE, &[counter, 8, 8]), Err(Errno::EFAULT));
    assert_eq!(world.write(world.root, counter, &[1, 0, 0, 0, 0, 0, 0, 0, 7, 7]), Ok(8), "the rest is not looked at");
    let pieces = world.words(world.root, &[DATA, 3, DATA + 100, 9]);
    assert_eq!(world.call(world.root, nr::READV, &[counter, pieces, 2]), Ok(8));
    assert_eq!(world.machine.read(world.root, DATA, 3), [10, 0, 0]);
    assert_eq!(world.call(world.root, nr::WRITEV, &[counter, pieces, 2]), Err(Errno::EINVAL), "a piece of 3 bytes");
    assert_eq!(value(&world, counter), Err(Errno::EAGAIN));
}

#[test]
fn a_counter_is_an_open_file() {
    let world = World::new();
    let (plain, marked) = (create(&world, 1, 0), create(&world, 1, O_CLOEXEC | O_NONBLOCK));
    let flags = |counter, command| world.call(world.root, nr::FCNTL, &[counter, command]);
    assert_eq!((flags(plain, F_GETFD), flags(plain, F_GETFL)), (Ok(0), Ok(O_RDWR)));
    assert_eq!((flags(marked, F_GETFD), flags(marked, F_GETFL)), (Ok(1), Ok(O_RDWR | O_NONBLOCK)));
    assert_eq!(world.fstat(world.root, plain).unwrap().mode, 0o600);
    assert_eq!(world.pread(world.root, plain, 8, 0), Err(Errno::ESPIPE));
    assert_eq!(world.pwrite(world.root, plain, &[0; 8], 0), Err(Errno::ESPIPE));
    assert_eq!(world.seek(world.root, plain, 100, SEEK_SET), Ok(0));
    let (copy, child) = (world.call(world.root, nr::DUP, &[plain]).unwrap(), world.fork(world.root, 0));
    world.close(world.root, plain).unwrap();
    assert_eq!(world.write(child, copy, &2u64.to_le_bytes()), Ok(8));
    assert_eq!(value(&world, copy), Ok(3), "the child has the same counter");
}

#[test]
fn a_counter_outlives_vfs() {
    let mut world = World::new();
    let (counter, posts) = (create(&world, 0, O_NONBLOCK), create(&world, 2, SEMAPHORE | O_NONBLOCK));
    let sums = [1, (1 << 48) - 2, 1, 1 << 50, MOST - (1 << 50) - (1 << 48)];
    let mut sum = 0;
    for further in sums {
        sum += further;
        add(&world, counter, further).unwrap();
        assert_eq!(world.seek(world.root, counter, 100, SEEK_SET), Ok(0));
        world.restart_vfs();
        assert_eq!((value(&world, counter), add(&world, counter, sum)), (Ok(sum), Ok(8)));
        world.restart_vfs();
    }
    assert_eq!((value(&world, counter), value(&world, counter)), (Ok(MOST), Err(Errno::EAGAIN)));
    world.restart_vfs();
    assert_eq!(value(&world, counter), Err(Errno::EAGAIN));
    assert_eq!([(); 3].map(|()| value(&world, posts)), [Ok(1), Ok(1), Err(Errno::EAGAIN)]);
}

#[test]
fn a_write_and_a_read_that_come_again_count_once() {
    let mut world = World::new();
    let counter = create(&world, 0, O_NONBLOCK);
    add(&world, counter, 5).unwrap();
    world.restart_vfs();
    assert_eq!(world.repeat_call(world.root, nr::WRITE, &[counter, DATA, 8]), Some(Ok(8)));
    assert_eq!(world.call(world.root, nr::READ, &[counter, DATA, 8]), Ok(8));
    assert_eq!(world.read_words(world.root, DATA, 1), [5]);
    add(&world, counter, 6).unwrap();
    assert_eq!(value(&world, counter), Ok(6));
    add(&world, counter, 7).unwrap();
    let calls = [nr::READ, nr::WRITE].map(|call| {
        world.machine.write(world.root, DATA, &1u64.to_le_bytes());
        let first = world.call(world.root, call, &[counter, DATA, 8]);
        world.restart_vfs();
        (first, world.repeat_call(world.root, call, &[counter, DATA, 8]))
    });
    assert_eq!(calls, [(Ok(8), Some(Ok(8))); 2]);
    assert_eq!(value(&world, counter), Ok(1), "of the write alone");
}

#[test]
fn waits_go_on_when_they_come_again() {
    let mut world = World::new();
    let counter = create(&world, 0, 0);
    let child = world.fork(world.root, 0);
    assert_eq!(begin_read(&world, child, counter), None);
    world.restart_vfs();
    world.machine.forget_request(child);
    assert_eq!(world.repeat_call(child, nr::READ, &[counter, DATA, 8]), None);
    add(&world, counter, 4).unwrap();
    assert_eq!((world.result(child), world.read_words(child, DATA, 1)), (Some(Ok(8)), vec![4]));
}
