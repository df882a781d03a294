//! How long poll and select wait, and what their arguments may be.

use super::*;
use abi::{Errno, linux::nr};

const S: u64 = 1_000_000_000;
const NEGATIVE: u64 = -1i64 as u64;

/// A pipe that nothing comes through, its end to read.
fn world() -> (World, u64) {
    let world = World::new();
    world.machine.advance_ns(7 * S);
    let (reads, _) = world.pipe(world.root, 0);
    (world, reads)
}

/// Begins a call on this pipe that waits for input, with a time-out structure of two words; 0 words: a null pointer.
fn begin(world: &World, call: u32, file: u64, timeout: &[u64]) -> Option<Result<u64>> {
    let pollfd = file | u64::from(POLLIN) << 32;
    let structures = world.words(world.root, &[&[pollfd, 1 << file], timeout].concat());
    let (set, time) = (structures + 8, if timeout.is_empty() { 0 } else { structures + 16 });
    match call {
        nr::PPOLL => world.begin_call(world.root, call, &[structures, 1, time, 0, 8]),
        _ => world.begin_call(world.root, call, &[file + 1, set, 0, 0, time, 0]),
    }
}

#[test]
fn a_time_out_is_counted_in_the_parts_of_its_structure() {
    let (world, file) = world();
    for (call, timeout, wait_ns) in [
        (nr::PPOLL, [2, 500], 2 * S + 500),
        (nr::PPOLL, [0, S - 1], S - 1),
        (nr::PSELECT6, [2, 500], 2 * S + 500),
        (nr::PSELECT6, [0, 1], 1),
        (nr::SELECT, [2, 500], 2 * S + 500_000),
        (nr::SELECT, [0, 999_999], 999_999_000),
    ] {
        assert_eq!(begin(&world, call, file, &timeout), None);
        world.machine.advance_ns(wait_ns - 1);
        assert_eq!(world.result(world.root), None, "{timeout:?} of call {call}");
        world.machine.advance_ns(1);
        assert_eq!(world.result(world.root), Some(Ok(0)), "{timeout:?} of call {call}");
    }
}

#[test]
fn a_time_out_of_nothing_does_not_wait_and_none_waits_for_ever() {
    let (world, file) = world();
    for call in [nr::PPOLL, nr::PSELECT6, nr::SELECT] {
        assert_eq!(begin(&world, call, file, &[0, 0]), Some(Ok(0)));
        for forever in [&[][..], &[u64::MAX >> 1, 0], &[u64::MAX >> 1, 999_999]] {
            assert_eq!(begin(&world, call, file, forever), None);
            world.machine.advance_ns(1000 * S);
            assert_eq!(world.result(world.root), None);
            assert_eq!(world.cancel(world.root, Errno::ERESTARTSYS), Ok(0));
            assert_eq!(world.result(world.root), Some(Err(Errno::EINTR)), "never made again by itself");
        }
    }
    let pollfd = world.words(world.root, &[file | u64::from(POLLIN) << 32]);
    for timeout_ms in [NEGATIVE, -1000i64 as u64, 0xffff_ffff] {
        assert_eq!(world.begin_call(world.root, nr::POLL, &[pollfd, 1, timeout_ms]), None);
        world.machine.advance_ns(1000 * S);
        assert_eq!(world.cancel(world.root, Errno::EINTR), Ok(0));
        assert_eq!(world.result(world.root), Some(Err(Errno::EINTR)));
    }
}

#[test]
fn a_time_out_that_is_no_time_is_refused() {
    let (world, file) = world();
    for timeout in [[NEGATIVE, 0], [1 << 63, 0], [0, NEGATIVE]] {
        for call in [nr::PPOLL, nr::PSELECT6, nr::SELECT] {
            assert_eq!(begin(&world, call, file, &timeout), Some(Err(Errno::EINVAL)), "{timeout:?}");
        }
    }
    assert_eq!(begin(&world, nr::PPOLL, file, &[0, S]), Some(Err(Errno::EINVAL)));
    assert_eq!(begin(&world, nr::PSELECT6, file, &[0, S]), Some(Err(Errno::EINVAL)));
    assert_eq!(begin(&world, nr::SELECT, file, &[0, 1_000_000]), Some(Err(Errno::EINVAL)));
    assert_eq!(world.call(world.root, nr::SELECT, &[0, 0, 0, 0, 8]), Err(Errno::EFAULT));
    assert_eq!(world.call(world.root, nr::PPOLL, &[0, 0, 8, 0]), Err(Errno::EFAULT));
}

#[test]
fn without_descriptors_it_is_a_sleep() {
    let (world, _) = world();
    assert_eq!(world.begin_call(world.root, nr::POLL, &[0, 0, 1500]), None);
    world.machine.advance_ns(1_499_999_999);
    assert_eq!(world.result(world.root), None);
    world.machine.advance_ns(1);
    assert_eq!(world.result(world.root), Some(Ok(0)));
    let time = world.words(world.root, &[1, 0]);
    assert_eq!(world.begin_call(world.root, nr::SELECT, &[0, 0, 0, 0, time]), None);
    world.machine.advance_ns(S);
    assert_eq!(world.result(world.root), Some(Ok(0)));
}

#[test]
fn sets_have_a_bit_for_each_descriptor_up_to_the_count() {
    let world = World::new();
    world.make("/file", b"x", 0o644, (0, 0));
    let file = world.open(world.root, "/file", O_RDWR, 0).unwrap();
    for number in [5, 63, 64, 130] {
        assert_eq!(world.call(world.root, nr::DUP2, &[file, number]), Ok(number));
    }
    let select = |count: u64, read: [u64; 3], write: [u64; 3]| {
        let sets = world.words(world.root, &[&read[..], &write, &[0, 0, 0], &[0, 0]].concat());
        let ready = world.call(world.root, nr::SELECT, &[count, sets, sets + 24, sets + 48, sets + 72])?;
        Ok((ready, world.read_words(world.root, sets, 6)))
    };
    let all = [1 | 1 << 5 | 1 << 63, 1, 1 << 2];
    assert_eq!(select(131, all, [0; 3]), Ok((5, [&all[..], &[0; 3]].concat())));
    assert_eq!(select(131, all, all), Ok((10, [all, all].concat())));
    assert_eq!(select(130, all, [0; 3]), Ok((4, [all[0], 1, 0, 0, 0, 0].to_vec())), "the last one does not count");
    assert_eq!(select(64, all, [1 << 5, 7, 7]), Ok((4, [all[0], 1, 1 << 2, 1 << 5, 7, 7].to_vec())));
    assert_eq!(select(131, [1 << 6, 0, 0], [0; 3]), Err(Errno::EBADF));
    assert_eq!(select(131, [0; 3], [0, 0, 1 << 1]), Err(Errno::EBADF));
    assert_eq!(select(6, [1 << 6, 0, 0], [0; 3]), Ok((0, [0; 6].to_vec())), "it is beyond");
    for set in 1..4 {
        let mut arguments = [1, 0, 0, 0, 0];
        arguments[set] = 8;
        assert_eq!(world.call(world.root, nr::SELECT, &arguments), Err(Errno::EFAULT));
    }
}

#[test]
fn select_looks_at_no_more_descriptors_than_there_are() {
    let world = World::new();
    let file = world.open(world.root, "/", O_RDONLY, 0).unwrap();
    assert_eq!(world.call(world.root, nr::DUP2, &[file, 1023]), Ok(1023));
    let mut set = [0; 66];
    (set[15], set[16]) = (1 << 63, u64::MAX);
    let address = world.words(world.root, &set);
    assert_eq!(world.call(world.root, nr::SELECT, &[1_000_000, address, 0, 0, address + 520]), Ok(1));
    assert_eq!(world.read_words(world.root, address, 65), set[..65], "what is beyond stays");
    assert_eq!(world.call(world.root, nr::SELECT, &[i32::MIN as u32 as u64, 0, 0, 0, 0]), Err(Errno::EINVAL));
}

#[test]
fn poll_takes_no_more_descriptors_than_the_limit() {
    let world = World::new();
    let file = world.open(world.root, "/", O_RDONLY, 0).unwrap();
    world.set_limits(world.root, 4096, u64::MAX);
    let asked: Vec<u64> = (0..4096).map(|_| file | u64::from(POLLIN) << 32).collect();
    let bytes: Vec<u8> = asked.iter().flat_map(|word| word.to_le_bytes()).collect();
    world.data(world.root, &bytes);
    assert_eq!(world.call(world.root, nr::POLL, &[DATA, 4096, 0]), Ok(4096));
    assert_eq!(world.call(world.root, nr::POLL, &[DATA, 4097, 0]), Err(Errno::EINVAL));
    assert_eq!(world.call(world.root, nr::POLL, &[DATA, 0xffff_ffff, 0]), Err(Errno::EINVAL));
    assert_eq!(world.call(world.root, nr::POLL, &[8, 1, 0]), Err(Errno::EFAULT));
    assert_eq!(world.call(world.root, nr::POLL, &[DATA, 1 << 32, 0]), Ok(0), "a count has 32 bits");
}

#[test]
fn what_is_always_ready_is_ready_for_both() {
    let world = World::new();
    world.make("/file", b"x", 0o644, (0, 0));
    const POLLPRI: u64 = 2;
    const POLLRDNORM: u64 = 0x40;
    const POLLWRNORM: u64 = 0x100;
    let both = u64::from(POLLIN | POLLOUT) | POLLRDNORM | POLLWRNORM;
    for path in ["/file", "/"] {
        let file = world.open(world.root, path, O_RDONLY, 0).unwrap();
        let address = world.words(world.root, &[file | 0xffff << 32]);
        assert_eq!(world.call(world.root, nr::POLL, &[address, 1, 0]), Ok(1));
        assert_eq!(world.read_words(world.root, address, 1)[0] >> 48, both);
        let address = world.words(world.root, &[file | POLLPRI << 32]);
        assert_eq!(world.call(world.root, nr::POLL, &[address, 1, 0]), Ok(0), "nothing that was not asked for");
    }
    let place = world.open(world.root, "/file", O_PATH, 0).unwrap();
    let address = world.words(world.root, &[place | u64::from(POLLIN) << 32]);
    assert_eq!(world.call(world.root, nr::POLL, &[address, 1, 0]), Ok(1));
    assert_eq!(world.read_words(world.root, address, 1)[0] >> 48, u64::from(POLLNVAL));
}

#[test]
fn several_waits_for_one_pipe_all_end() {
    let world = World::new();
    let (reads, writes) = world.pipe(world.root, 0);
    let children = [0; 3].map(|_| world.fork(world.root, 0));
    for child in children {
        let address = world.words(child, &[reads | u64::from(POLLIN) << 32]);
        assert_eq!(world.begin_call(child, nr::POLL, &[address, 1, NEGATIVE]), None);
    }
    world.write(world.root, writes, b"x").unwrap();
    assert_eq!(children.map(|child| world.result(child)), [Some(Ok(1)); 3]);
    let address = world.words(world.root, &[writes | u64::from(POLLIN) << 32]);
    assert_eq!(world.begin_call(world.root, nr::POLL, &[address, 1, NEGATIVE]), None);
    children.into_iter().for_each(|child| world.exit(child));
    let thread = world.fork(world.root, abi::vfs::FORK_FILES);
    world.close(thread, reads).unwrap();
    assert_eq!(world.result(world.root), Some(Ok(1)), "nobody is left to read");
    assert_eq!(world.read_words(world.root, address, 1)[0] >> 48, u64::from(POLLERR));
}
