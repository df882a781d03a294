//! Descriptors that mean a process.

use super::fake::Request;
use super::*;
use crate::system::Identity;
use abi::linux::nr;
use abi::{Endpoint, Errno, vfs};

const BUFFER: u64 = MEMORY.start + 0x100;
const NONBLOCK: u64 = 0x800;
const CLONE_PIDFD: u64 = 0x1000;
const P_PIDFD: u64 = 3;
const WEXITED: u64 = 4;
const SIGTERM: u64 = 15;
const SIGCHLD: u64 = 17;

fn open(world: &mut World, pid: u64, flags: u64) -> Result<u64, Errno> {
    world.call(world.init, nr::PIDFD_OPEN, &[pid, flags]).expect("at once")
}

fn identity(world: &World, pid: u64) -> Identity {
    let table = &world.pm.programs.table;
    table[table.process_by_pid(pid as u32).expect("a process")].identity()
}

/// Makes children until one has this id.
fn fork_until(world: &mut World, pid: u64) -> Endpoint {
    for _ in 0..40_000 {
        let (next, child) = world.fork(world.init);
        if next == pid {
            return child;
        }
        assert_eq!(world.call(child, nr::EXIT_GROUP, &[0]), None);
        assert_eq!(world.call(world.init, nr::WAIT4, &[next, 0, 0, 0]), Some(Ok(next)));
        world.told();
    }
    panic!("the id does not come");
}

#[test]
fn only_processes_have_descriptors() {
    let mut world = World::new();
    let (pid, _) = world.fork(world.init);
    assert_eq!(open(&mut world, pid, 0), Ok(0));
    let wanted = identity(&world, pid);
    assert!(
        matches!(&world.told()[..], [.., Told::PidFd { identity, flags: 0, address: 0, .. }] if *identity == wanted)
    );
    assert_eq!(open(&mut world, pid, NONBLOCK), Ok(1));
    assert!(matches!(world.told()[..], [.., Told::PidFd { flags: vfs::PIDFD_NONBLOCK, .. }]));
    for (pid, flags, error) in
        [(pid, 1, Errno::EINVAL), (0, 0, Errno::EINVAL), (u64::MAX, 0, Errno::EINVAL), (31_999, 0, Errno::ESRCH)]
    {
        assert_eq!(open(&mut world, pid, flags), Err(error));
    }
}

#[test]
fn a_zombie_can_still_be_opened_signalled_and_waited_for() {
    let mut world = World::new();
    let init = world.init;
    let (pid, child) = world.fork(init);
    assert_eq!(world.call(child, nr::EXIT_GROUP, &[3]), None);
    assert_eq!(open(&mut world, pid, 0), Ok(0));
    assert_eq!(world.call(init, nr::PIDFD_SEND_SIGNAL, &[0, 0, 0, 0]), Some(Ok(0)));
    assert_eq!(world.call(init, nr::PIDFD_GETFD, &[0, 0, 0]), Some(Err(Errno::ESRCH)));
    assert_eq!(world.call(init, nr::WAITID, &[P_PIDFD, 0, BUFFER, WEXITED, 0]), Some(Ok(0)));
    assert_eq!(world.read(init, BUFFER) as u32, SIGCHLD as u32);
    assert_eq!(world.call(init, nr::PIDFD_SEND_SIGNAL, &[0, 0, 0, 0]), Some(Err(Errno::ESRCH)));
    assert_eq!(world.call(init, nr::WAITID, &[P_PIDFD, 0, BUFFER, WEXITED, 0]), Some(Err(Errno::ECHILD)));
}

#[test]
fn a_descriptor_never_means_a_later_process_with_the_same_id() {
    let mut world = World::new();
    let init = world.init;
    // Lower ids are not given again.
    let pid = 300;
    let child = fork_until(&mut world, pid);
    assert_eq!(open(&mut world, pid, 0), Ok(0));
    assert_eq!(world.call(child, nr::EXIT_GROUP, &[0]), None);
    assert_eq!(world.call(init, nr::WAIT4, &[pid, 0, 0, 0]), Some(Ok(pid)));
    let later = fork_until(&mut world, pid);
    for call in [nr::PIDFD_SEND_SIGNAL, nr::PIDFD_GETFD] {
        assert_eq!(world.call(init, call, &[0, 0, 0, 0]), Some(Err(Errno::ESRCH)));
    }
    assert_eq!(world.call(init, nr::WAITID, &[P_PIDFD, 0, BUFFER, WEXITED, 0]), Some(Err(Errno::ECHILD)));
    assert!(world.is_there(later));
    assert_eq!(open(&mut world, pid, 0), Ok(1));
    assert_eq!(world.call(init, nr::PIDFD_SEND_SIGNAL, &[1, 9, 0, 0]), Some(Ok(0)));
    assert!(!world.is_there(later));
}

#[test]
fn a_signal_goes_to_the_process_of_an_open_directory_of_proc() {
    let mut world = World::new();
    let init = world.init;
    let (pid, child) = world.fork(init);
    let (_, stranger) = world.user(1000, 1000);
    world.pm.programs.system.process_folders.extend([(40, pid as u32), (41, 31_999)]);
    assert_eq!(world.call(stranger, nr::PIDFD_SEND_SIGNAL, &[40, 9, 0, 0]), Some(Err(Errno::EPERM)));
    assert_eq!(world.call(init, nr::PIDFD_SEND_SIGNAL, &[41, 9, 0, 0]), Some(Err(Errno::ESRCH)));
    assert_eq!(world.call(init, nr::PIDFD_SEND_SIGNAL, &[42, 9, 0, 0]), Some(Err(Errno::EBADF)));
    assert_eq!(world.call(init, nr::PIDFD_GETFD, &[40, 0, 0]), Some(Err(Errno::EBADF)));
    assert_eq!(world.call(init, nr::PIDFD_SEND_SIGNAL, &[40, 9, 0, 0]), Some(Ok(0)));
    assert!(!world.is_there(child));
}

#[test]
fn a_signal_by_descriptor_needs_what_kill_needs() {
    let mut world = World::new();
    let init = world.init;
    let (pid, child) = world.fork(init);
    let (_, stranger) = world.user(1000, 1000);
    assert_eq!(open(&mut world, pid, 0), Ok(0));
    assert_eq!(world.call(stranger, nr::PIDFD_SEND_SIGNAL, &[0, SIGTERM, 0, 0]), Some(Err(Errno::EPERM)));
    assert_eq!(world.call(init, nr::PIDFD_SEND_SIGNAL, &[0, SIGTERM, 0, 1]), Some(Err(Errno::EINVAL)));
    assert_eq!(world.call(init, nr::PIDFD_SEND_SIGNAL, &[0, 65, 0, 0]), Some(Err(Errno::EINVAL)));
    assert_eq!(world.call(init, nr::PIDFD_SEND_SIGNAL, &[9, SIGTERM, 0, 0]), Some(Err(Errno::EBADF)));
    // A siginfo names the same signal, and does not claim to be of the kernel.
    world.write(init, BUFFER, &[SIGCHLD, 0, 0, 0, 0, 0]);
    assert_eq!(world.call(init, nr::PIDFD_SEND_SIGNAL, &[0, SIGTERM, BUFFER, 0]), Some(Err(Errno::EINVAL)));
    world.write(init, BUFFER, &[SIGTERM, 0, 0, 0, 0, 0]);
    assert_eq!(world.call(init, nr::PIDFD_SEND_SIGNAL, &[0, SIGTERM, BUFFER, 0]), Some(Err(Errno::EPERM)));
    world.write(init, BUFFER, &[SIGTERM, u64::from(-1i32 as u32), 0, 0, 0, 0]);
    assert_eq!(world.call(init, nr::PIDFD_SEND_SIGNAL, &[0, SIGTERM, BUFFER, 0]), Some(Ok(0)));
    assert!(world.thread(child).interrupted);
}

#[test]
fn a_descriptor_is_copied_for_those_who_may_debug() {
    let mut world = World::new();
    let init = world.init;
    let (pid, own) = world.user(1000, 1000);
    let (_, same) = world.user(1000, 1000);
    let (_, other) = world.user(1001, 1001);
    const PR_SET_DUMPABLE: u64 = 4;
    assert_eq!(open(&mut world, pid, 0), Ok(0));
    world.told();
    assert_eq!(world.call(same, nr::PIDFD_GETFD, &[0, 5, 0]), Some(Err(Errno::EPERM)), "it was another user's");
    assert_eq!(world.call(own, nr::PRCTL, &[PR_SET_DUMPABLE, 1]), Some(Ok(0)));
    assert_eq!(world.call(init, nr::PIDFD_GETFD, &[0, 5, 1]), Some(Err(Errno::EINVAL)));
    assert_eq!(world.call(other, nr::PIDFD_GETFD, &[0, 5, 0]), Some(Err(Errno::EPERM)));
    for caller in [init, own, same] {
        assert_eq!(world.call(caller, nr::PIDFD_GETFD, &[0, 5, 0]), Some(Ok(70)));
        assert!(matches!(world.told()[..], [Told::Copied { from, descriptor: 5, .. }] if from == own));
    }
    assert_eq!(world.call(own, nr::PRCTL, &[PR_SET_DUMPABLE, 0]), Some(Ok(0)));
    assert_eq!(world.call(same, nr::PIDFD_GETFD, &[0, 5, 0]), Some(Err(Errno::EPERM)));
    assert_eq!(world.call(own, nr::PIDFD_GETFD, &[0, 5, 0]), Some(Ok(70)));
}

#[test]
fn a_wait_by_descriptor_blocks_unless_the_descriptor_does_not() {
    let mut world = World::new();
    let init = world.init;
    let (pid, child) = world.fork(init);
    assert_eq!((open(&mut world, pid, 0), open(&mut world, pid, NONBLOCK)), (Ok(0), Ok(1)));
    assert_eq!(world.call(init, nr::WAITID, &[P_PIDFD, 1, BUFFER, WEXITED, 0]), Some(Err(Errno::EAGAIN)));
    assert_eq!(world.call(init, nr::WAITID, &[P_PIDFD, 1, BUFFER, WEXITED | 1, 0]), Some(Ok(0)));
    assert_eq!(world.call(init, nr::WAITID, &[P_PIDFD, 0, BUFFER, WEXITED, 0]), None);
    assert_eq!(world.call(child, nr::EXIT_GROUP, &[0]), None);
    assert_eq!(world.answer(init), Some(Ok(0)));
    assert_eq!(world.call(init, nr::WAITID, &[P_PIDFD, 7, BUFFER, WEXITED, 0]), Some(Err(Errno::EBADF)));
}

#[test]
fn a_child_is_made_with_its_descriptor_or_not_at_all() {
    let mut world = World::new();
    let init = world.init;
    let clone = |flags: u64, address: u64| [flags | SIGCHLD, 0, address, 0, 0];
    let pid = world.call(init, nr::CLONE, &clone(CLONE_PIDFD, BUFFER)).unwrap().unwrap();
    assert_eq!(world.read(init, BUFFER) as u32, 0);
    assert_eq!(world.pm.programs.system.pidfds[0].1, identity(&world, pid));
    for flags in [0x10_0000, 0x40_0000] {
        let refused = world.call(init, nr::CLONE, &clone(CLONE_PIDFD | flags, BUFFER));
        assert_eq!(refused, Some(Err(Errno::EINVAL)), "{flags:#x}");
    }
    let before = world.pm.programs.table.threads();
    assert_eq!(world.call(init, nr::CLONE, &clone(CLONE_PIDFD, 8)), Some(Err(Errno::EFAULT)));
    world.pm.programs.system.failing = Some((Request::PidFd, Errno::EMFILE));
    assert_eq!(world.call(init, nr::CLONE, &clone(CLONE_PIDFD, BUFFER)), Some(Err(Errno::EMFILE)));
    assert_eq!(world.pm.programs.table.threads(), before);
    world.pm.programs.system.failing = None;
    const ARGUMENTS: u64 = MEMORY.start + 0x200;
    world.write(init, ARGUMENTS, &[CLONE_PIDFD, BUFFER + 8, 0, 0, SIGCHLD, 0, 0, 0]);
    assert!(world.call(init, nr::CLONE3, &[ARGUMENTS, 64]).unwrap().is_ok());
    let made = world.pm.programs.system.pidfds.len() as u64 - 1;
    assert_eq!(world.read(init, BUFFER + 8), made);
}
