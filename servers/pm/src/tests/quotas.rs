//! What a user may have of each kind, over all of its processes.

use super::*;
use crate::state::index::THREADS;
use crate::state::trace::Trace;
use crate::state::wait::Ending;
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

#[test]
fn a_user_with_the_usual_limit_leaves_others_half_of_all_threads() {
    let mut world = World::new();
    let [one, other] = [1000, 1001].map(|user| world.user(user, user).1);
    let fork = |world: &mut World, thread| matches!(world.call(thread, nr::FORK, &[]), Some(Ok(_)));
    let forks = (0..THREADS).take_while(|_| fork(&mut world, one)).count();
    assert_eq!(forks + 1, THREADS / 2);
    assert!((0..THREADS / 4).all(|_| fork(&mut world, other)), "another user");
}

#[test]
fn a_user_makes_some_semaphore_sets_and_gives_them_back() {
    let mut world = World::new();
    let users: Vec<_> = [1000, 1001].into_iter().map(|user| world.user(user, user).1).collect();
    let make = |world: &mut World, thread| world.call(thread, nr::SEMGET, &[0, 1, 0o1600]).unwrap();
    let sets: Vec<u64> = (0..64).map(|_| make(&mut world, users[0]).unwrap()).collect();
    assert_eq!(make(&mut world, users[0]), Err(Errno::ENOSPC));
    while make(&mut world, users[1]).is_ok() {}
    assert_eq!(world.call(users[0], nr::SEMCTL, &[sets[5], 0, 0, 0]), DONE);
    assert!(make(&mut world, users[0]).is_ok());
    let init = world.init;
    assert!(make(&mut world, init).is_ok(), "some are left for root");
}

#[test]
fn after_two_deaths_for_want_of_memory_the_largest_user_goes() {
    let mut world = World::new();
    let (_, large) = world.user(1000, 1000);
    let (_, child) = world.fork(large);
    let (_, small) = world.user(1001, 1001);
    world.pm.shed_load(1);
    assert!(world.is_there(large));
    world.pm.shed_load(2);
    assert_eq!([large, child, small, world.init].map(|thread| world.is_there(thread)), [false, false, true, true]);
    assert!(world.pm.programs.system.printed.contains("memory was exhausted twice"));
    world.pm.shed_load(3);
    assert!(world.is_there(small));
}

#[test]
fn one_user_does_not_have_all_records_of_ended_tracees() {
    const CLONE_THREAD: u64 = 0x100 | 0x800 | 0x1_0000;
    let mut world = World::new();
    let tracers = [world.user(1000, 100).1, world.user(1001, 100).1, world.fork(world.init).1];
    let (_, traced) = world.fork(world.init);
    world.call(traced, nr::CLONE, &[CLONE_THREAD, 0, 0, 0, 0]).unwrap().unwrap();
    let thread = world.newest();
    let table = &mut world.pm.programs.table;
    let t = table.find(thread).unwrap();
    let records = tracers.map(|tracer| {
        let tracer = table.process_of(table.find(tracer).unwrap());
        let end = |_: &usize| {
            table.trace(t, Trace::new(tracer, false, 0));
            table.end_tracee(t, Ending::Exited(0)).is_some()
        };
        (0..1000).take_while(end).count()
    });
    assert_eq!(records, [256, 224, 32], "of two users, and of root");
}
