//! Timers behind descriptors (timerfd).

use super::*;
use abi::{Endpoint, Errno, linux::nr, vfs};

const REALTIME: u64 = 0;
const MONOTONIC: u64 = 1;
const BOOTTIME: u64 = 7;
const ABSOLUTE: u64 = 1;
const CANCEL_ON_SET: u64 = 2;
const S: u64 = 1_000_000_000;

fn create(world: &World, clock: u64, flags: u64) -> u64 {
    world.call(world.root, nr::TIMERFD_CREATE, &[clock, flags]).unwrap()
}

/// timerfd_settime with `struct itimerspec`: interval and value, seconds and nanoseconds each.
fn set(world: &World, timer: u64, flags: u64, spec: [u64; 4]) -> Result<u64> {
    let new = world.words(world.root, &spec);
    world.call(world.root, nr::TIMERFD_SETTIME, &[timer, flags, new, 0])
}

fn left(world: &World, timer: u64) -> Vec<u64> {
    assert_eq!(world.call(world.root, nr::TIMERFD_GETTIME, &[timer, DATA]), Ok(0));
    world.read_words(world.root, DATA, 4)
}

/// How often it has expired.
fn count(world: &World, timer: u64) -> Result<u64> {
    let bytes = world.read(world.root, timer, 100)?;
    Ok(u64::from_le_bytes(bytes[..].try_into().expect("eight bytes")))
}

fn cancel(world: &World, who: Endpoint) {
    assert_eq!(world.call_as_pm(vfs::Cancel { process: who, error: Errno::EINTR.0 }.message()), Ok(0));
}

#[test]
fn a_timer_expires_once_after_its_time() {
    let world = World::new();
    world.machine.advance_ns(3 * S);
    let timer = create(&world, MONOTONIC, O_NONBLOCK);
    assert_eq!(count(&world, timer), Err(Errno::EAGAIN), "it is not set");
    assert_eq!(left(&world, timer), [0, 0, 0, 0]);
    assert_eq!(set(&world, timer, 0, [0, 0, 2, 500]), Ok(0));
    assert_eq!(left(&world, timer), [0, 0, 2, 500]);
    world.machine.advance_ns(S);
    assert_eq!(left(&world, timer), [0, 0, 1, 500]);
    world.machine.advance_ns(S + 499);
    assert_eq!(count(&world, timer), Err(Errno::EAGAIN));
    world.machine.advance_ns(1);
    assert_eq!(count(&world, timer), Ok(1));
    assert_eq!(count(&world, timer), Err(Errno::EAGAIN), "it was read");
    world.machine.advance_ns(10 * S);
    assert_eq!(count(&world, timer), Err(Errno::EAGAIN));
    assert_eq!(left(&world, timer), [0, 0, 0, 0]);
}

#[test]
fn an_interval_repeats_and_a_read_counts_what_has_expired() {
    let world = World::new();
    let timer = create(&world, BOOTTIME, O_NONBLOCK);
    assert_eq!(set(&world, timer, 0, [1, 500_000_000, 2, 0]), Ok(0));
    world.machine.advance_ns(2 * S);
    assert_eq!(left(&world, timer), [1, 500_000_000, 1, 500_000_000]);
    world.machine.advance_ns(3 * S);
    assert_eq!(count(&world, timer), Ok(3));
    world.machine.advance_ns(S);
    assert_eq!(count(&world, timer), Err(Errno::EAGAIN));
    assert_eq!(left(&world, timer), [1, 500_000_000, 0, 500_000_000]);
    world.machine.advance_ns(S / 2);
    assert_eq!(count(&world, timer), Ok(1));
    assert_eq!(set(&world, timer, 0, [1, 0, 0, 0]), Ok(0), "a value of 0 disarms it");
    world.machine.advance_ns(5 * S);
    assert_eq!(count(&world, timer), Err(Errno::EAGAIN));
}

#[test]
fn an_absolute_time_is_that_of_the_timers_clock() {
    let world = World::new();
    world.machine.advance_ns(5 * S);
    let start_s = sys::host::machine::START_REAL_NS / S;
    for (clock, now_s) in [(MONOTONIC, 0), (BOOTTIME, 0), (REALTIME, start_s)] {
        let timer = create(&world, clock, O_NONBLOCK);
        let at_s = now_s + world.machine.now_ns() / S + 2;
        assert_eq!(set(&world, timer, ABSOLUTE | CANCEL_ON_SET, [0, 0, at_s, 0]), Ok(0));
        let (now_ns, found) = (world.machine.now_ns(), left(&world, timer));
        assert_eq!(found[2] * S + found[3], 2 * S - now_ns % S, "clock {clock}");
        world.machine.advance_ns(2 * S);
        assert_eq!(count(&world, timer), Ok(1));
        assert_eq!(set(&world, timer, ABSOLUTE, [0, 0, 1, 0]), Ok(0));
        assert_eq!(count(&world, timer), Ok(1), "a time that is over");
        assert_eq!(set(&world, timer, 0, [0, 0, 1, 0]), Ok(0));
        assert_eq!(count(&world, timer), Err(Errno::EAGAIN), "from now on");
        world.machine.advance_ns(S);
        assert_eq!(count(&world, timer), Ok(1));
    }
}

#[test]
fn a_read_waits_for_the_expiration() {
    let world = World::new();
    let timer = create(&world, MONOTONIC, 0);
    let child = world.fork(world.root, 0);
    assert_eq!(set(&world, timer, 0, [0, 0, 2, 0]), Ok(0));
    assert_eq!(world.begin_call(child, nr::READ, &[timer, DATA, 8]), None);
    world.machine.advance_ns(2 * S - 1);
    assert_eq!(world.result(child), None);
    world.machine.advance_ns(1);
    assert_eq!(world.result(child), Some(Ok(8)));
    assert_eq!(world.read_words(child, DATA, 1), [1]);
    assert_eq!(world.begin_call(child, nr::READ, &[timer, DATA, 8]), None, "it is not set any more");
    assert_eq!(set(&world, timer, 0, [1, 0, 0, 1]), Ok(0));
    world.machine.advance_ns(1);
    assert_eq!(world.result(child), Some(Ok(8)));
}

#[test]
fn a_signal_ends_the_wait_for_a_timer() {
    let world = World::new();
    let timer = create(&world, MONOTONIC, 0);
    assert_eq!(world.begin_call(world.root, nr::READ, &[timer, DATA, 8]), None);
    cancel(&world, world.root);
    assert_eq!(world.result(world.root), Some(Err(Errno::EINTR)));
}

#[test]
fn the_count_needs_eight_bytes_in_however_many_pieces() {
    let world = World::new();
    let timer = create(&world, MONOTONIC, O_NONBLOCK);
    assert_eq!(set(&world, timer, 0, [0, 1, 0, 1]), Ok(0));
    world.machine.advance_ns(0x0102);
    assert_eq!(world.read(world.root, timer, 7), Err(Errno::EINVAL));
    assert_eq!(world.call(world.root, nr::READ, &[timer, 8, 8]), Err(Errno::EFAULT));
    let pieces = world.words(world.root, &[DATA, 1, DATA + 100, 2, DATA + 200, 9]);
    assert_eq!(world.call(world.root, nr::READV, &[timer, pieces, 3]), Ok(8));
    assert_eq!(world.machine.read(world.root, DATA, 1), [2]);
    assert_eq!(world.machine.read(world.root, DATA + 100, 2), [1, 0]);
    assert_eq!(world.machine.read(world.root, DATA + 200, 5), [0; 5]);
}

#[test]
fn poll_tells_and_waits_for_an_expiration() {
    let world = World::new();
    let timer = create(&world, MONOTONIC, 0);
    let asked = timer | u64::from(POLLIN | POLLOUT) << 32;
    let address = world.words(world.root, &[asked]);
    assert_eq!(world.call(world.root, nr::POLL, &[address, 1, 0]), Ok(0));
    assert_eq!(set(&world, timer, 0, [0, 0, 3, 0]), Ok(0));
    let address = world.words(world.root, &[asked]);
    assert_eq!(world.begin_call(world.root, nr::POLL, &[address, 1, -1i64 as u64]), None);
    world.machine.advance_ns(3 * S - 1);
    assert_eq!(world.result(world.root), None);
    world.machine.advance_ns(1);
    assert_eq!(world.result(world.root), Some(Ok(1)));
    assert_eq!(world.read_words(world.root, address, 1), [asked | u64::from(POLLIN) << 48]);
    assert_eq!(count(&world, timer), Ok(1));
}

#[test]
fn settime_tells_what_was_set_before() {
    let world = World::new();
    let timer = create(&world, MONOTONIC, 0);
    assert_eq!(set(&world, timer, 0, [7, 8, 9, 10]), Ok(0));
    let new = world.words(world.root, &[0, 0, 5, 0]);
    assert_eq!(world.call(world.root, nr::TIMERFD_SETTIME, &[timer, 0, new, DATA]), Ok(0));
    assert_eq!(world.read_words(world.root, DATA, 4), [7, 8, 9, 10]);
    assert_eq!(world.call(world.root, nr::TIMERFD_SETTIME, &[timer, 0, new, 8]), Err(Errno::EFAULT));
    assert_eq!(left(&world, timer), [0, 0, 5, 0]);
}

#[test]
fn times_clocks_and_flags_have_limits() {
    let world = World::new();
    for (clock, flags) in [(2, 0), (8, 0), (MONOTONIC, 1), (MONOTONIC, O_NONBLOCK | O_APPEND)] {
        assert_eq!(world.call(world.root, nr::TIMERFD_CREATE, &[clock, flags]), Err(Errno::EINVAL));
    }
    let timer = create(&world, MONOTONIC, 0);
    let negative = -1i64 as u64;
    for spec in [[negative, 0, 0, 0], [0, S, 0, 0], [0, 0, negative, 0], [0, 0, 0, S]] {
        assert_eq!(set(&world, timer, 0, spec), Err(Errno::EINVAL), "{spec:?}");
    }
    assert_eq!(set(&world, timer, 4, [0; 4]), Err(Errno::EINVAL));
    assert_eq!(set(&world, timer, 0, [0, S - 1, 0, S - 1]), Ok(0));
    assert_eq!(left(&world, timer), [0, S - 1, 0, S - 1]);
    assert_eq!(world.call(world.root, nr::TIMERFD_SETTIME, &[timer, 0, 8, 0]), Err(Errno::EFAULT));
    assert_eq!(world.call(world.root, nr::TIMERFD_GETTIME, &[timer, 8]), Err(Errno::EFAULT));
    assert_eq!(world.call(world.root, nr::TIMERFD_GETTIME, &[99, DATA]), Err(Errno::EBADF));
    let (pipe, _) = world.pipe(world.root, 0);
    assert_eq!(world.call(world.root, nr::TIMERFD_GETTIME, &[pipe, DATA]), Err(Errno::EINVAL));
    assert_eq!(set(&world, pipe, 0, [0; 4]), Err(Errno::EINVAL));
}

#[test]
fn a_timer_is_an_open_file() {
    let world = World::new();
    let (plain, marked) = (create(&world, MONOTONIC, 0), create(&world, MONOTONIC, O_CLOEXEC | O_NONBLOCK));
    let flags = |timer, command| world.call(world.root, nr::FCNTL, &[timer, command]);
    assert_eq!((flags(plain, F_GETFD), flags(plain, F_GETFL)), (Ok(0), Ok(O_RDWR)));
    assert_eq!((flags(marked, F_GETFD), flags(marked, F_GETFL)), (Ok(1), Ok(O_RDWR | O_NONBLOCK)));
    assert_eq!(world.fstat(world.root, plain).unwrap().mode, 0o600);
    assert_eq!(world.pread(world.root, plain, 8, 0), Err(Errno::ESPIPE));
    assert_eq!(world.write(world.root, plain, &[0; 8]), Err(Errno::EINVAL));
    assert_eq!(world.seek(world.root, plain, 0, SEEK_SET), Err(Errno::ESPIPE));
}

#[test]
fn timers_outlive_vfs() {
    let mut world = World::new();
    let (relative, absolute) = (create(&world, MONOTONIC, O_NONBLOCK), create(&world, REALTIME, O_NONBLOCK));
    let at_s = sys::host::machine::START_REAL_NS / S + 100;
    assert_eq!(set(&world, relative, 0, [2, 0, 10, 0]), Ok(0));
    assert_eq!(set(&world, absolute, ABSOLUTE, [0, 0, at_s, 0]), Ok(0));
    world.machine.advance_ns(4 * S);
    world.restart_vfs();
    let elapsed_ns = world.machine.now_ns();
    assert_eq!(left(&world, relative)[..2], [2, 0]);
    assert_eq!(left(&world, absolute)[2], (100 * S - elapsed_ns) / S);
    world.machine.advance_ns(14 * S - elapsed_ns);
    assert_eq!(count(&world, relative), Ok(3));
    world.machine.advance_ns(86 * S);
    assert_eq!(count(&world, absolute), Ok(1));
}
