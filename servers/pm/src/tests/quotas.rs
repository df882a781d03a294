//! What a user may have of each kind, over all of its processes.

use super::*;
use abi::Endpoint;
use abi::linux::nr;

const BUFFER: u64 = MEMORY.start + 0x2000;
const REAL_TIME: u64 = 40;
/// RLIMIT_SIGPENDING by default.
const LIMIT: u64 = 1000;

/// A process of a user that has all signals blocked.
fn blocking(world: &mut World, user: u64) -> (u64, Endpoint) {
    let (pid, thread) = world.user(user, user);
    world.write(thread, BUFFER, &[u64::MAX]);
    assert_eq!(world.call(thread, nr::RT_SIGPROCMASK, &[2, BUFFER, 0, 8]), DONE);
    (pid, thread)
}

fn queue(world: &mut World, (pid, thread): (u64, Endpoint)) -> Answer {
    world.write(thread, BUFFER, &[0, -1i32 as u32 as u64, 0, 0, 0, 0]);
    world.call(thread, nr::RT_SIGQUEUEINFO, &[pid, REAL_TIME, BUFFER])
}

#[test]
fn queued_signals_are_counted_over_all_processes_of_a_user() {
    let mut world = World::new();
    let [one, two] = [(); 2].map(|()| blocking(&mut world, 1000));
    let other = blocking(&mut world, 1001);
    (0..LIMIT).for_each(|n| assert_eq!(queue(&mut world, if n % 2 == 0 { one } else { two }), DONE));
    assert_eq!(queue(&mut world, one), failed(Errno::EAGAIN));
    assert_eq!(queue(&mut world, two), failed(Errno::EAGAIN));
    assert_eq!(queue(&mut world, other), DONE);
    assert_eq!(world.call(two.1, nr::EXIT_GROUP, &[0]), None);
    assert_eq!(queue(&mut world, one), DONE, "what a process had is given back when it ends");
}

#[test]
fn timers_count_as_queued_signals() {
    let mut world = World::new();
    let user = blocking(&mut world, 1000);
    let create = |world: &mut World| world.call(user.1, nr::TIMER_CREATE, &[1, 0, BUFFER]);
    (0..LIMIT - 1).for_each(|_| assert_eq!(create(&mut world), DONE));
    assert_eq!(queue(&mut world, user), DONE);
    assert_eq!((create(&mut world), queue(&mut world, user)), (failed(Errno::EAGAIN), failed(Errno::EAGAIN)));
    assert_eq!(world.call(user.1, nr::TIMER_DELETE, &[5]), DONE);
    assert_eq!(create(&mut world), DONE);
}

#[test]
fn all_users_together_leave_root_a_reserve() {
    let mut world = World::new();
    let mut users: Vec<_> = (0..10).map(|n| blocking(&mut world, 1000 + n)).collect();
    users.iter().for_each(|user| while queue(&mut world, *user) == DONE {});
    let root = blocking(&mut world, 0);
    assert_eq!(queue(&mut world, root), DONE);
    let before = world.pm.programs.table.queued_signals();
    for (_, thread) in users.drain(..) {
        assert_eq!(world.call(thread, nr::EXIT_GROUP, &[0]), None);
    }
    assert!(before > 7000);
    assert_eq!(world.pm.programs.table.queued_signals(), 1);
}

#[test]
fn processes_are_counted_by_user_with_zombies_and_follow_setuid() {
    let mut world = World::new();
    let (_, thread) = world.user(1000, 1000);
    world.write(thread, BUFFER, &[3, 3]);
    assert_eq!(world.call(thread, nr::SETRLIMIT, &[6, BUFFER]), DONE);
    let children: Vec<_> = (0..2).map(|_| world.fork(thread)).collect();
    assert_eq!(world.call(thread, nr::FORK, &[]), failed(Errno::EAGAIN));
    assert_eq!(world.call(children[0].1, nr::EXIT_GROUP, &[0]), None);
    assert_eq!(world.call(thread, nr::FORK, &[]), failed(Errno::EAGAIN), "a zombie counts");
    assert!(matches!(world.call(thread, nr::WAIT4, &[children[0].0, 0, 0, 0]), Some(Ok(_)) | None));
    let (_, root) = world.fork(world.init);
    assert_eq!(world.pm.programs.table.threads_of_user(1000), 2);
    assert_eq!(world.call(root, nr::SETUID, &[1000]), DONE);
    assert_eq!(world.pm.programs.table.threads_of_user(1000), 3);
    assert_eq!(world.call(thread, nr::FORK, &[]), failed(Errno::EAGAIN));
}
