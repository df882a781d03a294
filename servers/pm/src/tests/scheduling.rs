//! Policies, priorities and niceness: what the calls accept and tell, who may change whom, and the kernel's queues behind them.

use super::{Answer, DONE, MEMORY, SECOND, Told, World, failed};
use abi::linux::nr;
use abi::{Endpoint, Errno};

const BUFFER: u64 = MEMORY.start + 0x100;
const OTHER: u64 = 0;
const FIFO: u64 = 1;
const RR: u64 = 2;
const BATCH: u64 = 3;
const IDLE: u64 = 5;
const RESET_ON_FORK: u64 = 0x4000_0000;
const FOR_EVER: u64 = u64::MAX;
const CLONE_THREAD: u64 = 0x100 | 0x800 | 0x1_0000;
const RLIMIT_RTPRIO: u64 = 14;
/// The kernel's first real-time queue.
const REAL_TIME: u64 = 64;

fn set(world: &mut World, thread: Endpoint, tid: u64, policy: u64, priority: u64) -> Answer {
    world.write(thread, BUFFER, &[priority]);
    world.call(thread, nr::SCHED_SETSCHEDULER, &[tid, policy, BUFFER])
}

/// Policy and priority of a thread.
fn get(world: &mut World, thread: Endpoint, tid: u64) -> (u64, u64) {
    world.write(thread, BUFFER, &[u64::MAX]);
    assert_eq!(world.call(thread, nr::SCHED_GETPARAM, &[tid, BUFFER]), DONE);
    let priority = world.read(thread, BUFFER);
    assert_eq!(priority >> 32, 0xffff_ffff, "four bytes are written");
    (world.call(thread, nr::SCHED_GETSCHEDULER, &[tid]).unwrap().unwrap(), priority & 0xffff_ffff)
}

fn scheduled(thread: Endpoint, queue: u64, quantum_us: u64) -> Told {
    Told::Scheduled { thread, queue, quantum_us }
}

/// A second thread of the process.
fn add_thread(world: &mut World, thread: Endpoint) -> (u64, Endpoint) {
    let tid = world.call(thread, nr::CLONE, &[CLONE_THREAD, 0, 0, 0, 0]).unwrap().unwrap();
    (tid, world.newest())
}

#[test]
fn a_policy_and_its_priority_mean_a_queue_and_a_quantum() {
    let mut world = World::new();
    let (_, child) = world.fork(world.init);
    for (policy, priority, queue, quantum) in [
        (FIFO, 1, REAL_TIME + 46, FOR_EVER),
        (FIFO, 16, REAL_TIME + 31, FOR_EVER),
        (FIFO, 17, REAL_TIME + 30, FOR_EVER),
        (FIFO, 22, REAL_TIME + 30, FOR_EVER),
        (FIFO, 23, REAL_TIME + 29, FOR_EVER),
        (RR, 50, REAL_TIME + 25, 100_000),
        (RR, 82, REAL_TIME + 20, 100_000),
        (RR, 83, REAL_TIME + 19, 100_000),
        (RR, 99, REAL_TIME + 3, 100_000),
        (OTHER, 0, 8, 10_000),
        (BATCH, 0, 8, 10_000),
        (IDLE, 0, 8, 10_000),
    ] {
        world.told();
        assert_eq!(set(&mut world, child, 0, policy, priority), DONE);
        assert_eq!(world.told(), [scheduled(child, queue, quantum)], "policy {policy}, priority {priority}");
        assert_eq!(get(&mut world, child, 0), (policy, priority));
        let turn = match policy {
            FIFO => 0,
            RR => SECOND / 10,
            _ => SECOND / 100,
        };
        assert_eq!(world.call(child, nr::SCHED_RR_GET_INTERVAL, &[0, BUFFER]), DONE);
        assert_eq!(world.words(child, BUFFER), [0, turn]);
    }
}

#[test]
fn policies_and_priorities_that_do_not_exist_are_refused() {
    let mut world = World::new();
    let init = world.init;
    for (policy, priority) in [
        (OTHER, 1),
        (FIFO, 0),
        (FIFO, 100),
        (RR, 0),
        (RR, 100),
        (BATCH, 1),
        (IDLE, 1),
        (4, 0),
        (6, 0),
        (7, 0),
        (u32::MAX as u64, 0),
    ] {
        assert_eq!(set(&mut world, init, 0, policy, priority), failed(Errno::EINVAL), "{policy} {priority}");
    }
    assert_eq!(get(&mut world, init, 0), (OTHER, 0));
    assert_eq!(set(&mut world, init, 0, 1 << 32 | FIFO, 5), DONE, "a policy is an int");
    for (param, error) in [(0, Errno::EINVAL), (8, Errno::EFAULT)] {
        assert_eq!(world.call(init, nr::SCHED_SETSCHEDULER, &[0, FIFO, param]), failed(error));
        assert_eq!(world.call(init, nr::SCHED_SETPARAM, &[0, param]), failed(error));
        assert_eq!(world.call(init, nr::SCHED_GETPARAM, &[0, param]), failed(error));
    }
    assert_eq!(world.call(init, nr::SCHED_RR_GET_INTERVAL, &[0, 8]), failed(Errno::EFAULT));
}

#[test]
fn the_range_of_priorities_depends_on_the_policy() {
    let mut world = World::new();
    for (policy, range) in [
        (OTHER, Ok((0, 0))),
        (FIFO, Ok((1, 99))),
        (RR, Ok((1, 99))),
        (BATCH, Ok((0, 0))),
        (IDLE, Ok((0, 0))),
        (1 << 32 | FIFO, Ok((1, 99))),
        (4, Err(Errno::EINVAL)),
        (6, Err(Errno::EINVAL)),
        (RESET_ON_FORK | FIFO, Err(Errno::EINVAL)),
    ] {
        assert_eq!(world.call(world.init, nr::SCHED_GET_PRIORITY_MIN, &[policy]), Some(range.map(|(low, _)| low)));
        assert_eq!(world.call(world.init, nr::SCHED_GET_PRIORITY_MAX, &[policy]), Some(range.map(|(_, high)| high)));
    }
}

#[test]
fn a_new_priority_leaves_the_policy() {
    let mut world = World::new();
    let init = world.init;
    assert_eq!(set(&mut world, init, 0, RR | RESET_ON_FORK, 10), DONE);
    world.write(init, BUFFER, &[20]);
    assert_eq!(world.call(init, nr::SCHED_SETPARAM, &[0, BUFFER]), DONE);
    assert_eq!(get(&mut world, init, 0), (RR | RESET_ON_FORK, 20));
    world.write(init, BUFFER, &[0]);
    assert_eq!(world.call(init, nr::SCHED_SETPARAM, &[0, BUFFER]), failed(Errno::EINVAL));
}

#[test]
fn scheduling_calls_mean_threads() {
    let mut world = World::new();
    let init = world.init;
    let (pid, child) = world.fork(init);
    let (tid, second) = add_thread(&mut world, child);
    assert_eq!(set(&mut world, init, tid, FIFO, 7), DONE);
    assert_eq!(get(&mut world, init, tid), (FIFO, 7));
    assert_eq!(get(&mut world, second, 0), (FIFO, 7));
    assert_eq!(get(&mut world, init, pid), (OTHER, 0));
    world.call(child, nr::EXIT, &[0]);
    assert_eq!(get(&mut world, init, pid), (FIFO, 7), "the first thread left is meant by the id of the process");
    world.call(second, nr::EXIT, &[0]);
    for (tid, error) in [(pid, Errno::ESRCH), (4000, Errno::ESRCH), (u64::MAX, Errno::EINVAL), (1 << 31, Errno::EINVAL)]
    {
        world.write(init, BUFFER, &[48 | FIFO << 32, 0, 5 << 32]);
        for (number, arguments) in [
            (nr::SCHED_GETSCHEDULER, [tid, 0, 0, 0]),
            (nr::SCHED_SETSCHEDULER, [tid, FIFO, BUFFER + 20, 0]),
            (nr::SCHED_GETPARAM, [tid, BUFFER, 0, 0]),
            (nr::SCHED_SETPARAM, [tid, BUFFER, 0, 0]),
            (nr::SCHED_GETATTR, [tid, BUFFER, 48, 0]),
            (nr::SCHED_SETATTR, [tid, BUFFER, 0, 0]),
            (nr::SCHED_RR_GET_INTERVAL, [tid, BUFFER, 0, 0]),
        ] {
            assert_eq!(world.call(init, number, &arguments), failed(error), "call {number} of {tid}");
        }
        for number in [nr::SCHED_GETAFFINITY, nr::SCHED_SETAFFINITY] {
            assert_eq!(world.call(init, number, &[tid, 8, BUFFER]), failed(Errno::ESRCH), "call {number} of {tid}");
        }
    }
}

#[test]
fn attributes_are_written_as_they_were_set() {
    let mut world = World::new();
    let init = world.init;
    assert_eq!(world.call(init, nr::SETPRIORITY, &[0, 0, -5i64 as u64]), DONE);
    for (size, policy, flags, priority, answer) in [
        (48, RR, 0, 9, DONE),
        (56, FIFO, 1, 12, DONE),
        (47, RR, 0, 9, failed(Errno::E2BIG)),
        (48, RR, 2, 9, failed(Errno::EINVAL)),
        (48, RR, 3, 9, failed(Errno::EINVAL)),
        (48, RR, 0, 100, failed(Errno::EINVAL)),
        (48, 6, 0, 0, failed(Errno::EINVAL)),
    ] {
        world.write(init, BUFFER, &[size | policy << 32, flags, 3 | priority << 32, 0, 0, 0]);
        assert_eq!(world.call(init, nr::SCHED_SETATTR, &[0, BUFFER, 0]), answer, "{size} {policy} {flags} {priority}");
    }
    world.write(init, BUFFER, &[99; 7]);
    assert_eq!(world.call(init, nr::SCHED_GETATTR, &[0, BUFFER, 48, 0]), DONE);
    assert_eq!(world.words(init, BUFFER), [48 | FIFO << 32, 1, 0xffff_fffb | 12 << 32, 0, 0, 0, 99]);
    assert_eq!(world.call(init, nr::SCHED_SETATTR, &[0, BUFFER, 1 << 32]), DONE);
    for (attr, flags, error) in [(0, 0, Errno::EINVAL), (BUFFER, 1, Errno::EINVAL), (8, 0, Errno::EFAULT)] {
        assert_eq!(world.call(init, nr::SCHED_SETATTR, &[0, attr, flags]), failed(error));
        assert_eq!(world.call(init, nr::SCHED_GETATTR, &[0, attr, 48, flags]), failed(error));
    }
}

#[test]
fn affinity_is_that_of_one_processor_of_an_existing_thread() {
    let mut world = World::new();
    let init = world.init;
    assert_eq!(world.call(init, nr::SCHED_GETAFFINITY, &[0, 8, 8]), failed(Errno::EFAULT));
    assert_eq!(world.call(init, nr::SCHED_SETAFFINITY, &[0, 8, 8]), failed(Errno::EFAULT));
    assert_eq!(world.call(init, nr::SCHED_SETAFFINITY, &[0, 1, BUFFER]), failed(Errno::EINVAL), "no processor");
}

#[test]
fn a_child_is_scheduled_as_its_parent_unless_that_is_not_wanted() {
    for (flag, policy, queue, quantum) in [(0, FIFO, REAL_TIME + 25, FOR_EVER), (RESET_ON_FORK, OTHER, 8, 10_000)] {
        let mut world = World::new();
        let (_, parent) = world.fork(world.init);
        set(&mut world, parent, 0, FIFO | flag, 50);
        world.told();
        let (_, child) = world.fork(parent);
        assert!(world.told().contains(&scheduled(child, queue, quantum)));
        assert_eq!(get(&mut world, child, 0).0, policy);
        assert_eq!(get(&mut world, parent, 0).0, FIFO | flag, "the parent stays as it is");
    }
}

#[test]
fn a_child_with_the_kernels_defaults_is_left_to_them() {
    let is_scheduled = |world: &mut World| world.told().iter().any(|told| matches!(told, Told::Scheduled { .. }));
    let mut world = World::new();
    let (_, parent) = world.fork(world.init);
    world.told();
    world.fork(parent);
    assert!(!is_scheduled(&mut world));
    world.call(parent, nr::SETPRIORITY, &[0, 0, 5]);
    world.told();
    let (_, child) = world.fork(parent);
    assert!(world.told().contains(&scheduled(child, 9, 10_000)));
}

#[test]
fn without_rights_a_priority_is_raised_up_to_the_limit_of_its_process() {
    let mut world = World::new();
    let init = world.init;
    let (pid, user) = world.user(1000, 100);
    let (tid, _) = add_thread(&mut world, user);
    assert_eq!(set(&mut world, user, 0, FIFO, 1), failed(Errno::EPERM));
    world.write(init, BUFFER, &[10, 10]);
    assert_eq!(world.call(init, nr::PRLIMIT64, &[pid, RLIMIT_RTPRIO, BUFFER, 0]), DONE);
    assert_eq!(set(&mut world, user, 0, FIFO, 10), DONE);
    assert_eq!(set(&mut world, user, 0, FIFO, 11), failed(Errno::EPERM));
    assert_eq!(set(&mut world, init, pid, FIFO, 50), DONE);
    assert_eq!(set(&mut world, user, 0, RR, 50), DONE, "no raise");
    assert_eq!(set(&mut world, user, 0, RR, 51), failed(Errno::EPERM));
    assert_eq!(set(&mut world, user, 0, RR, 40), DONE);
    assert_eq!(set(&mut world, user, 0, RR, 41), failed(Errno::EPERM));
    assert_eq!(set(&mut world, user, 0, OTHER, 0), DONE);
    assert_eq!(set(&mut world, user, tid, FIFO, 10), DONE);
}

#[test]
fn only_threads_of_the_same_user_are_scheduled_without_rights() {
    let mut world = World::new();
    let (pid, target) = world.fork(world.init);
    world.call(target, nr::SETRESUID, &[1000, 1001, 1003]);
    for (user, answer) in
        [(1000, DONE), (1001, DONE), (1002, failed(Errno::EPERM)), (1003, failed(Errno::EPERM)), (0, DONE)]
    {
        let (_, caller) = world.fork(world.init);
        world.call(caller, nr::SETRESUID, &[1003, user, 1003]);
        assert_eq!(set(&mut world, caller, pid, BATCH, 0), answer, "user {user}");
    }
}

#[test]
fn niceness_is_clamped_and_chooses_the_queue_of_time_shared_threads() {
    let mut world = World::new();
    let (_, child) = world.fork(world.init);
    let (_, second) = add_thread(&mut world, child);
    let (_, real_time) = add_thread(&mut world, child);
    set(&mut world, real_time, 0, FIFO, 99);
    for (nice, queue, shown) in
        [(4, 8, 16), (5, 9, 15), (19, 11, 1), (40, 11, 1), (-1, 7, 21), (-20, 4, 40), (-99i64, 4, 40)]
    {
        world.told();
        assert_eq!(world.call(child, nr::SETPRIORITY, &[0, 0, nice as u64]), DONE);
        let fixed = scheduled(real_time, REAL_TIME + 3, FOR_EVER);
        assert_eq!(world.told(), [scheduled(child, queue, 10_000), fixed, scheduled(second, queue, 10_000)]);
        assert_eq!(world.call(child, nr::GETPRIORITY, &[0, 0]), Some(Ok(shown)), "nice {nice}");
    }
}

const PROCESS: u64 = 0;
const GROUP: u64 = 1;
const USER: u64 = 2;

fn niceness(world: &mut World, thread: Endpoint) -> i64 {
    20 - world.call(thread, nr::GETPRIORITY, &[PROCESS, 0]).unwrap().unwrap() as i64
}

/// Three processes in a group of the first one, of users 1000, 1000 and 1001, with niceness 1, 2 and 3; and a fourth, of user 1001, in
/// another group.
fn family() -> (World, [u64; 4], [Endpoint; 4]) {
    let mut world = World::new();
    let members = [1000, 1000, 1001, 1001].map(|user| {
        let (pid, member) = world.fork(world.init);
        (user, pid, member)
    });
    for (n, (user, pid, member)) in members.into_iter().enumerate() {
        let group = if n < 3 { members[0].1 } else { pid };
        assert_eq!(world.call(world.init, nr::SETPGID, &[pid, group]), DONE);
        world.call(member, nr::SETPRIORITY, &[PROCESS, 0, n as u64 + 1]);
        world.call(member, nr::SETUID, &[user]);
    }
    (world, members.map(|member| member.1), members.map(|member| member.2))
}

#[test]
fn the_best_niceness_of_those_meant_is_told() {
    let (mut world, pids, threads) = family();
    for (which, who, best) in [
        (PROCESS, 0, Some(3)),
        (PROCESS, pids[1], Some(2)),
        (PROCESS, 4000, None),
        (GROUP, 0, Some(1)),
        (GROUP, pids[0], Some(1)),
        (GROUP, pids[3], Some(4)),
        (GROUP, pids[1], None),
        (USER, 0, Some(3)),
        (USER, 1000, Some(1)),
        (USER, 1002, None),
    ] {
        let answer = best.map_or(failed(Errno::ESRCH), |nice| Some(Ok(20 - nice)));
        assert_eq!(world.call(threads[2], nr::GETPRIORITY, &[which, who]), answer, "{which} {who}");
    }
    assert_eq!(world.call(threads[2], nr::GETPRIORITY, &[3, 0]), failed(Errno::EINVAL));
    world.call(threads[3], nr::EXIT_GROUP, &[0]);
    assert_eq!(world.call(threads[2], nr::GETPRIORITY, &[PROCESS, pids[3]]), failed(Errno::ESRCH), "a zombie");
}

#[test]
fn niceness_is_set_for_all_who_are_meant() {
    for (which, who, wanted) in
        [(PROCESS, 0, [9, 2, 3, 4]), (PROCESS, 1, [1, 9, 3, 4]), (GROUP, 0, [9, 9, 9, 4]), (USER, 1001, [1, 2, 9, 9])]
    {
        let (mut world, pids, threads) = family();
        let who = if (which, who) == (PROCESS, 1) { pids[1] } else { who };
        world.call(threads[0], nr::SETPRIORITY, &[which, who, 9]);
        let caller = if which == PROCESS { threads[0] } else { world.init };
        let who = if (which, who) == (GROUP, 0) { pids[0] } else { who };
        assert_eq!(world.call(caller, nr::SETPRIORITY, &[which, who, 9]), DONE);
        assert_eq!(threads.map(|thread| niceness(&mut world, thread)), wanted, "{which} {who}");
    }
    let (mut world, _, threads) = family();
    assert_eq!(world.call(threads[0], nr::SETPRIORITY, &[PROCESS, 4000, 9]), failed(Errno::ESRCH));
    assert_eq!(world.call(threads[0], nr::SETPRIORITY, &[3, 0, 9]), failed(Errno::EINVAL));
}

#[test]
fn without_rights_niceness_only_rises_and_only_of_own_processes() {
    let (mut world, pids, threads) = family();
    for (who, nice, answer) in [
        (pids[0], 1, DONE),
        (pids[0], 0, failed(Errno::EACCES)),
        (pids[1], 3, DONE),
        (pids[1], 2, failed(Errno::EACCES)),
        (pids[2], 19, failed(Errno::EPERM)),
        (1, 19, failed(Errno::EPERM)),
    ] {
        assert_eq!(world.call(threads[0], nr::SETPRIORITY, &[PROCESS, who, nice]), answer, "{who} to {nice}");
    }
    world.call(world.init, nr::SETPRIORITY, &[PROCESS, pids[0], 0]);
    assert_eq!(niceness(&mut world, threads[0]), 0, "root may lower it");
    let (_, both) = world.fork(world.init);
    world.call(both, nr::SETRESUID, &[1000, 1001, 1001]);
    for (who, answer) in [(pids[0], DONE), (pids[2], DONE), (1, failed(Errno::EPERM))] {
        assert_eq!(world.call(both, nr::SETPRIORITY, &[PROCESS, who, 19]), answer, "real or effective user");
    }
}

#[test]
fn one_who_may_not_be_changed_makes_the_call_fail_but_spares_nobody_else() {
    let (mut world, pids, threads) = family();
    assert_eq!(world.call(threads[0], nr::SETPRIORITY, &[GROUP, 0, 9]), failed(Errno::EPERM), "the last one");
    assert_eq!([0, 1, 2].map(|n| niceness(&mut world, threads[n])), [9, 9, 3]);
    assert_eq!(world.call(world.init, nr::SETPGID, &[pids[3], pids[0]]), DONE);
    world.call(threads[2], nr::SETPRIORITY, &[GROUP, 0, 12]);
    assert_eq!(world.call(threads[2], nr::SETPRIORITY, &[GROUP, 0, 12]), failed(Errno::EPERM), "the first ones");
    assert_eq!(threads.map(|thread| niceness(&mut world, thread)), [9, 9, 12, 12]);
}

#[test]
fn who_is_about_to_die_lets_the_killer_run_first() {
    let mut world = World::new();
    let (pid, child) = world.fork(world.init);
    world.told();
    world.call(world.init, nr::KILL, &[pid, 15]);
    assert_eq!(world.told(), [scheduled(child, 9, 0)]);
    let (pid, real_time) = world.fork(world.init);
    set(&mut world, real_time, 0, FIFO, 9);
    world.told();
    world.call(world.init, nr::KILL, &[pid, 15]);
    assert_eq!(world.told(), [], "a real-time thread keeps its place");
}

#[test]
fn timers_of_a_real_time_process_carry_its_best_priority() {
    let mut world = World::new();
    let (_, child) = world.fork(world.init);
    let (_, real_time) = add_thread(&mut world, child);
    set(&mut world, real_time, 0, FIFO, 99);
    world.write(child, BUFFER, &[0, 0, 1, 0]);
    assert_eq!(world.call(child, nr::SETITIMER, &[2, BUFFER, 0]), DONE);
    assert_eq!(world.pm.programs.system.alarm_queue, 0, "a look at processor time is nothing urgent");
    assert_eq!(world.call(child, nr::SETITIMER, &[0, BUFFER, 0]), DONE);
    assert_eq!(world.pm.programs.system.alarm_queue, REAL_TIME + 3);
    world.write(child, BUFFER, &[0, 0, 0, 0]);
    world.call(child, nr::SETITIMER, &[0, BUFFER, 0]);
    assert_eq!(world.pm.programs.system.alarm_queue, 0);
    world.call(child, nr::TIMER_CREATE, &[1, 0, BUFFER]);
    world.write(child, BUFFER, &[0, 0, 1, 0]);
    world.call(child, nr::TIMER_SETTIME, &[0, 0, BUFFER, 0]);
    assert_eq!(world.pm.programs.system.alarm_queue, REAL_TIME + 3);
}

#[test]
fn a_user_raises_a_priority_as_far_as_rlimit_nice_of_the_process_allows() {
    const NICE: u64 = 13;
    let mut world = World::new();
    let (_, child) = world.fork(world.init);
    world.write(child, MEMORY.start, &[25, 25]);
    assert_eq!(world.call(child, nr::SETRLIMIT, &[NICE, MEMORY.start]), DONE);
    assert_eq!(world.call(child, nr::SETUID, &[1000]), DONE);
    let set = |world: &mut World, nice: i64| world.call(child, nr::SETPRIORITY, &[0, 0, nice as u64]);
    assert_eq!([10, 3, -5].map(|nice| set(&mut world, nice)), [DONE; 3]);
    assert_eq!(set(&mut world, -6), failed(Errno::EACCES));
}
