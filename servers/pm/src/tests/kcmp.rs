//! What two processes share: kcmp.

use super::*;
use abi::linux::nr;
use abi::{Errno, vfs};

const VM: u64 = 1;
const SIGHAND: u64 = 4;
const EPOLL_TFD: u64 = 7;

const CLONE_VM: u64 = 0x100;

fn compare(world: &mut World, (first, second): (u64, u64), kind: u64) -> Result<u64, Errno> {
    let init = world.init;
    world.call(init, nr::KCMP, &[first, second, kind, 0, 0]).expect("it does not wait")
}

#[test]
fn memory_is_the_same_until_one_of_two_executes_something() {
    let mut world = World::new();
    let init = world.init;
    let (forked, _) = world.fork(init);
    let shares = world.call(init, nr::CLONE, &[CLONE_VM, 0, 0, 0, 0]).expect("at once").expect("there is room");
    assert_eq!(compare(&mut world, (1, 1), VM), Ok(0));
    assert_eq!(compare(&mut world, (1, forked), VM), Ok(1));
    assert_eq!(compare(&mut world, (forked, 1), VM), Ok(2));
    assert_eq!(compare(&mut world, (1, shares), VM), Ok(0));
    assert_ne!(compare(&mut world, (1, shares), SIGHAND), Ok(0), "actions are copied");
    let p = world.pm.programs.table.process_by_pid(1).expect("it lives");
    world.pm.programs.table.renew_memory(p);
    assert_ne!(compare(&mut world, (1, shares), VM), Ok(0), "as by exec");
}

#[test]
fn processes_of_others_are_not_compared() {
    let mut world = World::new();
    let init = world.init;
    let (pid, _) = world.fork(init);
    let (_, user) = world.user(1000, 1000);
    assert_eq!(world.call(user, nr::KCMP, &[pid, pid, VM, 0, 0]), Some(Err(Errno::EPERM)));
    assert_eq!(world.call(user, nr::KCMP, &[pid, 31_999, VM, 0, 0]), Some(Err(Errno::ESRCH)));
    assert_eq!(compare(&mut world, (pid, 1), 8), Err(Errno::EINVAL));
}

#[test]
fn what_files_are_open_vfs_compares() {
    let mut world = World::new();
    let init = world.init;
    let (pid, child) = world.fork(init);
    world.write(init, MEMORY.start + 0x100, &[3 | 4 << 32, 5]);
    assert_eq!(world.call(init, nr::KCMP, &[1, pid, EPOLL_TFD, 9, MEMORY.start + 0x100]), Some(Ok(2)));
    let told =
        Told::Compared { what: vfs::COMPARE_EPOLL, first: init, second: child, descriptors: [9, 3 | 4 << 32, 5] };
    assert!(world.told().contains(&told));
}
