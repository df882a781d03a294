//! poll and select.

use super::*;
use abi::{Endpoint, Errno, linux::nr, vfs};

fn pollfds(world: &World, who: Endpoint, asked: &[(u64, u16)]) -> u64 {
    let words: Vec<u64> = asked.iter().map(|(file, events)| file & 0xffff_ffff | u64::from(*events) << 32).collect();
    world.words(who, &words)
}

fn found(world: &World, who: Endpoint, address: u64, count: usize) -> Vec<u16> {
    world.read_words(who, address, count).iter().map(|word| (word >> 48) as u16).collect()
}

fn poll(world: &World, asked: &[(u64, u16)]) -> (Result<u64>, Vec<u16>) {
    let address = pollfds(world, world.root, asked);
    let result = world.call(world.root, nr::POLL, &[address, asked.len() as u64, 0]);
    (result, found(world, world.root, address, asked.len()))
}

#[test]
fn poll_tells_what_is_ready() {
    let world = World::new();
    world.make("/file", b"x", 0o644, (0, 0));
    let file = world.open(world.root, "/file", O_RDWR, 0).unwrap();
    let (reads, writes) = world.pipe(world.root, 0);
    assert_eq!(poll(&world, &[(reads, POLLIN)]), (Ok(0), [0].to_vec()));
    let asked = [(file, POLLIN | POLLOUT), (reads, POLLIN), (writes, POLLOUT), (99, POLLIN), (-1i64 as u64, POLLIN)];
    assert_eq!(poll(&world, &asked), (Ok(3), [POLLIN | POLLOUT, 0, POLLOUT, POLLNVAL, 0].to_vec()));
    world.write(world.root, writes, b"x").unwrap();
    assert_eq!(poll(&world, &[(reads, POLLIN)]), (Ok(1), [POLLIN].to_vec()));
    world.close(world.root, writes).unwrap();
    assert_eq!(poll(&world, &[(reads, POLLIN)]), (Ok(1), [POLLIN | POLLHUP].to_vec()));
    assert_eq!(world.call(world.root, nr::POLL, &[DATA, 4097, 0]), Err(Errno::EINVAL));
}

#[test]
fn a_pipe_without_reader_is_an_error_to_its_writer() {
    let world = World::new();
    let (reads, writes) = world.pipe(world.root, 0);
    world.close(world.root, reads).unwrap();
    assert_eq!(poll(&world, &[(writes, 0)]), (Ok(1), [POLLERR].to_vec()));
}

#[test]
fn poll_waits_until_something_happens() {
    let world = World::new();
    let (reads, writes) = world.pipe(world.root, 0);
    let child = world.fork(world.root, 0);
    let address = pollfds(&world, child, &[(reads, POLLIN)]);
    assert_eq!(world.begin_call(child, nr::POLL, &[address, 1, -1i64 as u64]), None);
    world.machine.advance_ns(1_000_000_000);
    assert_eq!(world.result(child), None);
    world.write(world.root, writes, b"x").unwrap();
    assert_eq!(world.result(child), Some(Ok(1)));
    assert_eq!(found(&world, child, address, 1), [POLLIN]);
}

#[test]
fn poll_waits_no_longer_than_it_is_told() {
    let world = World::new();
    let (reads, _) = world.pipe(world.root, 0);
    let child = world.fork(world.root, 0);
    let address = pollfds(&world, child, &[(reads, POLLIN)]);
    assert_eq!(world.begin_call(child, nr::POLL, &[address, 1, 100]), None);
    world.machine.advance_ns(99_000_000);
    assert_eq!(world.result(child), None);
    world.machine.advance_ns(1_000_000);
    assert_eq!(world.result(child), Some(Ok(0)));
}

#[test]
fn a_signal_ends_the_wait() {
    let world = World::new();
    let (reads, _) = world.pipe(world.root, 0);
    let address = pollfds(&world, world.root, &[(reads, POLLIN)]);
    assert_eq!(world.begin_call(world.root, nr::POLL, &[address, 1, -1i64 as u64]), None);
    assert_eq!(world.call_as_pm(vfs::Cancel { process: world.root, error: Errno::EINTR.0 }.message()), Ok(0));
    assert_eq!(world.result(world.root), Some(Err(Errno::EINTR)));
    let nothing = vfs::Cancel { process: world.root, error: Errno::EINTR.0 };
    assert_eq!(world.call_as_pm(nothing.message()), Err(Errno::ENOENT));
}

#[test]
fn select_marks_what_is_ready() {
    let world = World::new();
    let (reads, writes) = world.pipe(world.root, 0);
    let sets = world.words(world.root, &[1 << reads, 1 << writes, 0, 0]);
    let timeout = sets + 16;
    assert_eq!(world.call(world.root, nr::SELECT, &[writes + 1, sets, sets + 8, 0, timeout]), Ok(1));
    assert_eq!(world.read_words(world.root, sets, 2), [0, 1 << writes]);
    world.write(world.root, writes, b"x").unwrap();
    let sets = world.words(world.root, &[1 << reads, 1 << writes, 0, 0]);
    assert_eq!(world.call(world.root, nr::SELECT, &[writes + 1, sets, sets + 8, 0, timeout]), Ok(2));
    let sets = world.words(world.root, &[1 << 60, 0, 0, 0]);
    assert_eq!(world.call(world.root, nr::SELECT, &[61, sets, 0, 0, timeout]), Err(Errno::EBADF));
    assert_eq!(world.call(world.root, nr::SELECT, &[-1i64 as u64, sets, 0, 0, timeout]), Err(Errno::EINVAL));
}

/// A pselect6 of no descriptors with a signal mask.
fn masked_select(world: &World, who: Endpoint, mask: u64, limit: Option<u64>) -> Option<Result<u64>> {
    world.machine.write(who, DATA, &mask.to_le_bytes());
    let both = [DATA.to_le_bytes(), 8u64.to_le_bytes()].concat();
    world.machine.write(who, DATA + 8, &both);
    let limit = limit.map_or(0, |seconds| world.words(who, &[seconds, 0]));
    world.begin_call(who, nr::PSELECT6, &[0, 0, 0, 0, limit, DATA + 8])
}

#[test]
fn a_wait_with_a_mask_is_told_to_pm_and_returns_when_the_mask_is_back() {
    let world = World::new();
    assert_eq!(masked_select(&world, world.root, 5, Some(1)), None);
    assert_eq!(world.next_event(), Some((vfs::EVENT_MASK, world.root, [5, 0, 0, 0])));
    assert_eq!((world.next_event(), world.result(world.root)), (None, None));
    world.machine.advance_ns(1_000_000_000);
    assert_eq!(world.next_event(), Some((vfs::EVENT_MASK_END, world.root, [0; 4])));
    assert_eq!(world.result(world.root), None);
    assert_eq!(world.call_as_pm(vfs::Unmasked { process: world.root }.message()), Ok(0));
    assert_eq!(world.result(world.root), Some(Ok(0)));
}

#[test]
fn a_signal_ends_a_wait_with_a_mask_even_when_it_would_not_wait() {
    let world = World::new();
    for limit in [None, Some(0)] {
        assert_eq!(masked_select(&world, world.root, 0, limit), None);
        assert_eq!(world.next_event(), Some((vfs::EVENT_MASK, world.root, [0; 4])));
        let _ = world.cancel(world.root, Errno::ERESTARTSYS);
        assert_eq!(world.next_event(), Some((vfs::EVENT_MASK_END, world.root, [0; 4])));
        assert_eq!(world.call_as_pm(vfs::Unmasked { process: world.root }.message()), Ok(0));
        assert_eq!(world.result(world.root), Some(Err(Errno::EINTR)), "{limit:?}");
    }
}

#[test]
fn a_mask_of_another_size_is_refused() {
    let world = World::new();
    let address = world.words(world.root, &[0]);
    assert_eq!(world.call(world.root, nr::PPOLL, &[0, 0, 0, address, 4]), Err(Errno::EINVAL));
    assert_eq!(world.call(world.root, nr::PPOLL, &[0, 0, 0, 8, 8]), Err(Errno::EFAULT));
    assert_eq!(world.next_event(), None);
}

#[test]
fn a_thread_that_ends_while_pm_restores_its_mask_leaves_nothing() {
    let world = World::new();
    let child = world.fork(world.root, 0);
    assert_eq!(masked_select(&world, child, 0, Some(0)), None);
    world.exit(child);
    assert_eq!(world.next_event(), None);
}

#[test]
fn polls_of_one_user_have_a_share_of_memory_and_others_theirs() {
    let world = World::new();
    let user = world.user(1000, 1000);
    world.set_limits(user, 4096, u64::MAX);
    let (reads, _) = world.pipe(user, 0);
    let interests: Vec<u8> = (0..4096u64).flat_map(|_| (reads | u64::from(POLLIN) << 32).to_le_bytes()).collect();
    let poll = |who| {
        world.machine.write(who, DATA, &interests);
        world.begin_call(who, nr::POLL, &[DATA, 4096, -1i64 as u64])
    };
    let mut waiting = Vec::new();
    let refused = loop {
        let child = world.fork(user, 0);
        match poll(child) {
            None => waiting.push(child),
            Some(result) => break result,
        }
    };
    assert_eq!(refused, Err(Errno::ENOMEM));
    let other = world.user(1001, 1001);
    assert_eq!(world.call(other, nr::POLL, &[DATA, 1, 0]), Ok(1), "POLLNVAL");
    world.exit(waiting[0]);
    assert_eq!(poll(user), None, "what the ended one had is free");
}

#[test]
fn select_tells_what_is_left_of_its_time_out() {
    let world = World::new();
    let (reads, writes) = world.pipe(world.root, 0);
    let child = world.fork(world.root, 0);
    let (set, limit) = (DATA, DATA + 128);
    let arguments = [reads + 1, set, 0, 0, limit];
    let put = |program, seconds: u64| {
        world.machine.write(program, set, &(1u64 << reads).to_le_bytes());
        world.machine.write(program, limit, &[seconds.to_le_bytes(), 0u64.to_le_bytes()].concat());
    };
    put(child, 10);
    assert_eq!(world.begin_call(child, nr::SELECT, &arguments), None);
    world.machine.advance_ns(4_000_000_000);
    world.write(world.root, writes, b"x").unwrap();
    assert_eq!(world.result(child), Some(Ok(1)));
    let [seconds, microseconds] = world.read_words(child, limit, 2).try_into().unwrap();
    assert!((5..=6).contains(&seconds) && microseconds < 1_000_000, "{seconds} {microseconds}");
    put(child, 10);
    assert_eq!(world.call(child, nr::SELECT, &arguments), Ok(1));
    assert!((9..=10).contains(&world.read_words(child, limit, 1)[0]));
}

#[test]
fn what_is_ready_at_once_is_answered_before_a_mask_is_in_force() {
    let world = World::new();
    let (reads, writes) = world.pipe(world.root, 0);
    assert_eq!(world.write(world.root, writes, b"x"), Ok(1));
    world.machine.write(world.root, DATA, &5u64.to_le_bytes());
    for count in [1, 20] {
        let asked = std::vec![(reads, POLLIN); count];
        let address = pollfds(&world, world.root, &asked);
        assert_eq!(world.call(world.root, nr::PPOLL, &[address, count as u64, 0, DATA, 8]), Ok(count as u64));
    }
    assert_eq!(world.next_event(), None, "pm was told nothing");
    assert_eq!(world.read(world.root, reads, 1), Ok(b"x".to_vec()));
    let address = pollfds(&world, world.root, &[(reads, POLLIN)]);
    world.machine.write(world.root, DATA, &5u64.to_le_bytes());
    assert_eq!(world.begin_call(world.root, nr::PPOLL, &[address, 1, 0, DATA, 8]), None);
    assert_eq!(world.next_event(), Some((vfs::EVENT_MASK, world.root, [5, 0, 0, 0])));
}

#[test]
fn a_reader_of_a_fifo_that_had_no_writer_yet_has_lost_none_also_for_a_successor() {
    let mut world = World::new();
    assert_eq!(world.path_call(world.root, nr::MKNOD, "/fifo", &[u64::from(S_IFIFO) | 0o666, 0]), Ok(0));
    let open = |world: &World| world.open(world.root, "/fifo", O_RDONLY | O_NONBLOCK, 0).unwrap();
    let first = open(&world);
    for _ in 0..2 {
        assert_eq!(poll(&world, &[(first, POLLIN)]), (Ok(0), [0].to_vec()));
        world.restart_vfs();
    }
    let writes = world.open(world.root, "/fifo", O_WRONLY, 0).unwrap();
    world.close(world.root, writes).unwrap();
    let second = open(&world);
    for _ in 0..2 {
        let asked = [(first, POLLIN), (second, POLLIN)];
        assert_eq!(poll(&world, &asked), (Ok(1), [POLLHUP, 0].to_vec()));
        world.restart_vfs();
    }
}
