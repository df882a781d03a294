//! Descriptors that mean a process, as pm asks for them.

use super::*;
use abi::{Endpoint, Errno, linux::nr, vfs};

/// The identity of a program that `World::fork` has made.
fn identity(program: Endpoint) -> u64 {
    program.slot() as u64
}

fn open(world: &World, call: u64, of: Endpoint, flags: u64, address: u64) -> Result<u64> {
    let request = vfs::OpenPidFd { process: world.root, call, identity: identity(of), flags, address };
    world.call_as_pm(request.message())
}

fn ready(world: &World, descriptor: u64) -> bool {
    let address = world.words(world.root, &[descriptor | u64::from(POLLIN) << 32]);
    world.call(world.root, nr::POLL, &[address, 1, 0]) == Ok(1)
}

fn copy(world: &World, call: u64, from: Endpoint, descriptor: u64) -> Result<u64> {
    let request = vfs::CopyDescriptor { process: world.root, call, from, descriptor: descriptor as i64 };
    world.call_as_pm(request.message())
}

#[test]
fn it_is_ready_when_the_last_thread_has_ended() {
    let world = World::new();
    let child = world.fork(world.root, 0);
    let pidfd = open(&world, 1 << 40, child, 0, 0).unwrap();
    assert!(!ready(&world, pidfd));
    let address = world.words(world.root, &[pidfd | u64::from(POLLIN) << 32]);
    assert_eq!(world.begin_call(world.root, nr::POLL, &[address, 1, u64::MAX]), None);
    world.exit(child);
    assert_eq!(world.result(world.root), Some(Ok(1)));
    assert!(ready(&world, pidfd));
    let late = open(&world, 2 << 40, child, vfs::PIDFD_NONBLOCK, 0).unwrap();
    assert!(ready(&world, late), "a zombie has ended");
    assert_eq!(world.read(world.root, pidfd, 8), Err(Errno::EINVAL));
    assert_eq!(world.write(world.root, pidfd, b"x"), Err(Errno::EINVAL));
    const F_GETFD: u64 = 1;
    assert_eq!(world.call(world.root, nr::FCNTL, &[pidfd, F_GETFD]), Ok(1));
}

#[test]
fn a_successor_knows_which_processes_have_ended_and_never_takes_a_later_one_for_them() {
    let mut world = World::new();
    let (gone, child) = (world.fork(world.root, 0), world.fork(world.root, 0));
    let opened = [gone, child].map(|of| open(&world, identity(of) << 40, of, 0, 0).unwrap());
    world.exit(gone);
    // The pid is given again.
    let later = Endpoint::new(300, 1);
    world.machine.add_program(later, world::MEMORY);
    let fork = vfs::Fork {
        parent: world.root,
        child: later,
        identity: identity(gone) | 1 << 32,
        flags: 0,
        parts: abi::Parts::SYSTEM,
    };
    assert_eq!(world.call_as_pm(fork.message()), Ok(0));
    world.restart_vfs();
    assert_eq!(opened.map(|pidfd| ready(&world, pidfd)), [true, false]);
    world.exit(child);
    world.exit(later);
    assert_eq!(opened.map(|pidfd| ready(&world, pidfd)), [true, true]);
}

#[test]
fn a_request_that_comes_again_makes_no_second_descriptor() {
    let mut world = World::new();
    let (first, second) = (world.fork(world.root, 0), world.fork(world.root, 0));
    let pidfd = open(&world, 1 << 40, first, 0, DATA).unwrap();
    assert_eq!(world.read_words(world.root, DATA, 1)[0] as u32, pidfd as u32);
    world.restart_vfs();
    assert_eq!(open(&world, 1 << 40, first, 0, DATA), Ok(pidfd));
    // pm has died and made another child for the same call.
    world.exit(first);
    assert_eq!(open(&world, 1 << 40, second, 0, DATA), Ok(pidfd));
    assert!(!ready(&world, pidfd));
    assert_eq!(open(&world, 2 << 40, second, 0, 8), Err(Errno::EFAULT));
    let next = open(&world, 3 << 40, second, 0, 0).unwrap();
    assert_eq!(next, pidfd + 1, "what cannot be told is closed");
    assert_eq!(copy(&world, 4 << 40, world.root, pidfd), Ok(pidfd + 2));
    world.restart_vfs();
    assert_eq!(copy(&world, 4 << 40, world.root, pidfd), Ok(pidfd + 2));
    assert_eq!(copy(&world, 5 << 40, world.root, 90), Err(Errno::EBADF));
}

#[test]
fn a_child_that_is_made_once_more_has_no_descriptor_of_the_one_before() {
    for (flags, expected) in [(0, Err(Errno::EBADF)), (vfs::FORK_FILES, Ok(1))] {
        let world = World::new();
        let first = world.fork(world.root, flags);
        let pidfd = open(&world, 1 << 40, first, 0, 0).unwrap();
        // pm has died and makes another child for the same call, with what its parent has by then.
        world.exit(first);
        let second = world.fork(world.root, flags);
        assert_eq!(open(&world, 1 << 40, second, 0, 0), Ok(pidfd));
        assert_eq!(world.call(second, nr::FCNTL, &[pidfd, F_GETFD]), expected, "flags {flags:#x}");
        assert_eq!(world.call(world.root, nr::FCNTL, &[pidfd, F_GETFD]), Ok(1));
    }
}

#[test]
fn what_has_taken_the_place_of_a_descriptor_stays() {
    let world = World::new();
    let (first, second) = (world.fork(world.root, 0), world.fork(world.root, 0));
    let thread = world.fork(world.root, vfs::FORK_FILES);
    let pidfd = open(&world, 1 << 40, first, 0, 0).unwrap();
    // Another thread closes it and opens something else, before pm dies and asks again.
    world.call(thread, nr::CLOSE, &[pidfd]).unwrap();
    assert_eq!(world.open(thread, "/", O_RDONLY, 0), Ok(pidfd));
    assert_eq!(open(&world, 1 << 40, second, 0, 0), Ok(pidfd + 1));
    assert_eq!(world.call(thread, nr::FCNTL, &[pidfd, F_GETFD]), Ok(0));
}

#[test]
fn pm_learns_which_process_a_descriptor_means() {
    let world = World::new();
    let child = world.fork(world.root, 0);
    let pidfd = open(&world, 1 << 40, child, vfs::PIDFD_NONBLOCK, 0).unwrap();
    let (end, _) = world.pipe(world.root, 0);
    let ask = |descriptor: u64| vfs::PidFd { process: world.root, descriptor: descriptor as i64 };
    assert_eq!(world.call_as_pm(ask(pidfd).message()), Ok(0));
    for other in [end, 99] {
        assert_eq!(world.call_as_pm(ask(other).message()), Err(Errno::EBADF));
    }
    assert_eq!(world.call_as_procfs(ask(pidfd).message()), Err(Errno::EPERM));
}

#[test]
fn pm_learns_of_which_process_an_open_directory_of_proc_is() {
    let mut world = World::new();
    world.start_proc();
    let opened = ["/proc/1", "/proc", "/proc/text", "/"].map(|path| world.open(world.root, path, O_RDONLY, 0).unwrap());
    let by_path = world.open(world.root, "/proc/1", O_PATH, 0).unwrap();
    let ask = |descriptor: u64| vfs::ProcessFolder { process: world.root, descriptor: descriptor as i64 };
    assert_eq!(world.call_as_pm(ask(opened[0]).message()), Ok(1));
    for other in [opened[1], opened[2], opened[3], by_path, 99] {
        assert_eq!(world.call_as_pm(ask(other).message()), Err(Errno::EBADF));
    }
    assert_eq!(world.call_as_procfs(ask(opened[0]).message()), Err(Errno::EPERM));
    let pidfd = vfs::PidFd { process: world.root, descriptor: opened[0] as i64 };
    assert_eq!(world.call_as_pm(pidfd.message()), Err(Errno::EBADF), "it is no pidfd for other calls");
    world.restart_vfs();
    let ask = vfs::ProcessFolder { process: world.root, descriptor: opened[0] as i64 };
    assert_eq!(world.call_as_pm(ask.message()), Ok(1));
}

#[test]
fn an_epoll_reports_the_end() {
    let mut world = World::new();
    let child = world.fork(world.root, 0);
    let pidfd = open(&world, 1 << 40, child, 0, 0).unwrap();
    let epoll = world.call(world.root, nr::EPOLL_CREATE1, &[0]).unwrap();
    let event = world.words(world.root, &[u64::from(POLLIN) | 7 << 32, 0]);
    assert_eq!(world.call(world.root, nr::EPOLL_CTL, &[epoll, 1, pidfd, event]), Ok(0));
    assert_eq!(world.begin_call(world.root, nr::EPOLL_WAIT, &[epoll, DATA, 4, u64::MAX]), None);
    world.exit(child);
    assert_eq!(world.result(world.root), Some(Ok(1)));
    world.restart_vfs();
    assert_eq!(world.call(world.root, nr::EPOLL_WAIT, &[epoll, DATA, 4, 0]), Ok(1));
}
