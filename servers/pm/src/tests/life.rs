//! StartKind, death and waiting.

use super::{MEMORY, World};
use abi::Errno;
use abi::linux::nr;

const BUFFER: u64 = MEMORY.start + 0x100;
const WNOHANG: u64 = 1;

fn wait4(world: &mut World, pid: i64, options: u64) -> Option<Result<u64, Errno>> {
    world.call(world.init, nr::WAIT4, &[pid as u64, BUFFER, options, 0])
}

#[test]
fn a_child_has_a_pid_a_parent_and_runs() {
    let mut world = World::new();
    let (pid, child) = world.fork(world.init);
    assert_eq!(world.call(world.init, nr::GETPID, &[]), Some(Ok(1)));
    assert_eq!(world.call(child, nr::GETPID, &[]), Some(Ok(pid)));
    assert_eq!(world.call(child, nr::GETPPID, &[]), Some(Ok(1)));
    assert!(world.pm.programs.system.thread(child).runs);
}

#[test]
fn wait_before_and_after_the_exit_gives_the_status() {
    let mut world = World::new();
    let (pid, child) = world.fork(world.init);
    assert_eq!(wait4(&mut world, -1, 0), None);
    assert_eq!(world.call(child, nr::EXIT_GROUP, &[7]), None);
    assert_eq!(world.answer(world.init), Some(Ok(pid)));
    assert_eq!(world.read(world.init, BUFFER) as u32, 0x700);
    assert!(!world.is_there(child));

    let (pid, child) = world.fork(world.init);
    world.call(child, nr::EXIT_GROUP, &[0x1ff]);
    assert_eq!(wait4(&mut world, pid as i64, 0), Some(Ok(pid)));
    assert_eq!(world.read(world.init, BUFFER) as u32, 0xff00);
    assert_eq!(wait4(&mut world, -1, 0), Some(Err(Errno::ECHILD)));
}

#[test]
fn wait_does_not_hang_when_told_so() {
    let mut world = World::new();
    let (pid, _) = world.fork(world.init);
    assert_eq!(wait4(&mut world, -1, WNOHANG), Some(Ok(0)));
    assert_eq!(wait4(&mut world, pid as i64 + 1, 0), Some(Err(Errno::ECHILD)));
    assert_eq!(wait4(&mut world, -1, 1 << 20), Some(Err(Errno::EINVAL)));
}

#[test]
fn waitid_can_leave_the_child_waitable() {
    let mut world = World::new();
    let (pid, child) = world.fork(world.init);
    world.call(child, nr::EXIT_GROUP, &[3]);
    const WEXITED: u64 = 4;
    const WNOWAIT: u64 = 0x0100_0000;
    assert_eq!(world.call(world.init, nr::WAITID, &[1, pid, BUFFER, WEXITED | WNOWAIT, 0]), Some(Ok(0)));
    assert_eq!(world.read(world.init, BUFFER) as u32, 17);
    assert_eq!(world.read(world.init, BUFFER + 16) as u32, pid as u32);
    assert_eq!(world.call(world.init, nr::WAITID, &[0, 0, BUFFER, WEXITED, 0]), Some(Ok(0)));
    assert_eq!(world.call(world.init, nr::WAITID, &[0, 0, BUFFER, WEXITED, 0]), Some(Err(Errno::ECHILD)));
}

#[test]
fn orphans_go_to_the_first_process() {
    let mut world = World::new();
    let (_, child) = world.fork(world.init);
    let (grandchild_pid, grandchild) = world.fork(child);
    world.call(child, nr::EXIT_GROUP, &[0]);
    assert_eq!(world.call(grandchild, nr::GETPPID, &[]), Some(Ok(1)));
    world.call(grandchild, nr::EXIT_GROUP, &[5]);
    assert_eq!(wait4(&mut world, grandchild_pid as i64, 0), Some(Ok(grandchild_pid)));
}

#[test]
fn ignored_children_leave_no_zombies() {
    let mut world = World::new();
    world.write(world.init, BUFFER, &[1, 0, 0, 0]);
    world.call(world.init, nr::RT_SIGACTION, &[17, BUFFER, 0, 8]);
    let (_, child) = world.fork(world.init);
    assert_eq!(wait4(&mut world, -1, 0), None);
    world.call(child, nr::EXIT_GROUP, &[0]);
    assert_eq!(world.answer(world.init), Some(Err(Errno::ECHILD)));
    assert_eq!(world.pm.programs.table.processes().count(), 1);
}

#[test]
fn the_parent_of_a_vfork_waits_until_the_child_ends() {
    let mut world = World::new();
    assert_eq!(world.call(world.init, nr::VFORK, &[]), None);
    let child = world.newest();
    let pid = world.call(child, nr::GETPID, &[]).unwrap().unwrap();
    assert_eq!(world.answer(world.init), None);
    world.call(child, nr::EXIT_GROUP, &[0]);
    assert_eq!(world.answer(world.init), Some(Ok(pid)));
}

const THREAD: u64 = 0x100 | 0x200 | 0x400 | 0x800 | 0x1_0000;

#[test]
fn threads_share_a_pid_and_the_last_one_ends_the_process() {
    let mut world = World::new();
    let (pid, child) = world.fork(world.init);
    let flags = THREAD | 0x8_0000 | 0x10_0000 | 0x20_0000;
    let tid = world.call(child, nr::CLONE, &[flags, MEMORY.end, BUFFER, BUFFER + 8, 0x1234]).unwrap().unwrap();
    let thread = world.newest();
    assert_eq!(world.read(child, BUFFER) as u32, tid as u32);
    assert_eq!(world.pm.programs.system.thread(thread).registers.rsp, MEMORY.end);
    assert_eq!(world.pm.programs.system.thread(thread).registers.fs_base, 0x1234);
    assert_eq!(world.call(thread, nr::GETPID, &[]), Some(Ok(pid)));
    assert_eq!(world.call(thread, nr::GETTID, &[]), Some(Ok(tid)));
    world.write(child, BUFFER + 8, &[99]);
    world.call(thread, nr::EXIT, &[0]);
    assert_eq!(world.read(child, BUFFER + 8) as u32, 0);
    assert!(!world.is_there(thread) && world.is_there(child));
    world.call(child, nr::EXIT, &[4]);
    assert_eq!(wait4(&mut world, -1, 0), Some(Ok(pid)));
    assert_eq!(world.read(world.init, BUFFER) as u32, 0x400);
}

#[test]
fn a_process_outlives_its_first_thread() {
    let mut world = World::new();
    let (pid, child) = world.fork(world.init);
    world.call(child, nr::CLONE, &[THREAD, MEMORY.end, 0, 0, 0]).unwrap().unwrap();
    let thread = world.newest();
    world.call(child, nr::EXIT, &[1]);
    assert_eq!(world.call(thread, nr::GETPID, &[]), Some(Ok(pid)));
    assert_eq!(world.call(world.init, nr::KILL, &[pid, 9]), Some(Ok(0)));
    assert!(!world.is_there(thread));
}

#[test]
fn nonsense_flags_are_refused() {
    let mut world = World::new();
    for flags in [0x1_0000, 0x800, 0x4000_0000] {
        assert_eq!(world.call(world.init, nr::CLONE, &[flags]), Some(Err(Errno::EINVAL)), "{flags:#x}");
    }
    assert_eq!(world.pm.programs.system.threads.len(), 1);
}

#[test]
fn clone3_takes_its_arguments_from_memory() {
    let mut world = World::new();
    world.write(world.init, BUFFER, &[0x100 | 0x4000, 0, 0, 0, 17, MEMORY.start, 0x1000, 0]);
    assert_eq!(world.call(world.init, nr::CLONE3, &[BUFFER, 64]), None);
    let child = world.newest();
    assert_eq!(world.pm.programs.system.thread(child).registers.rsp, MEMORY.start + 0x1000);
    assert_eq!(world.call(world.init, nr::CLONE3, &[BUFFER, 8]), Some(Err(Errno::EINVAL)));
}

#[test]
fn a_user_has_at_most_its_limit_of_processes() {
    let mut world = World::new();
    let (_, child) = world.fork(world.init);
    world.write(child, BUFFER, &[5, 5]);
    assert_eq!(world.call(child, nr::SETRLIMIT, &[6, BUFFER]), Some(Ok(0)));
    assert_eq!(world.call(child, nr::SETUID, &[1000]), Some(Ok(0)));
    let made = (0..10).take_while(|_| world.call(child, nr::FORK, &[]).unwrap().is_ok()).count();
    assert_eq!(made, 4);
    assert_eq!(world.call(child, nr::FORK, &[]), Some(Err(Errno::EAGAIN)));
    assert!(world.call(world.init, nr::FORK, &[]).unwrap().is_ok());
}

#[test]
fn a_full_table_is_eagain_and_everything_is_usable_afterwards() {
    let mut world = World::new();
    let mut children = std::vec::Vec::new();
    while let Some(Ok(_)) = world.call(world.init, nr::FORK, &[]) {
        children.push(world.newest());
    }
    assert!(children.len() > 900);
    assert_eq!(world.call(world.init, nr::FORK, &[]), Some(Err(Errno::EAGAIN)));
    for child in children {
        world.call(child, nr::EXIT_GROUP, &[0]);
        assert!(wait4(&mut world, -1, 0).unwrap().is_ok());
    }
    assert_eq!(world.pm.programs.table.processes().count(), 1);
    world.fork(world.init);
}

#[test]
fn strangers_and_unknown_calls_get_errors() {
    let mut world = World::new();
    assert_eq!(world.call(world.init, nr::RSEQ, &[]), Some(Err(Errno::ENOSYS)));
    let stranger = abi::Message { source: abi::Endpoint::new(700, 9), ..abi::Message::new(nr::GETPID) };
    assert_eq!(world.pm.handle(&stranger).done().unwrap().result(), Err(Errno::ESRCH));
}

#[test]
fn random_calls_never_break_pm() {
    let mut world = World::new();
    let (_, mut victim) = world.fork(world.init);
    let mut seed = 42u64;
    let mut random = || {
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        seed >> 33
    };
    for _ in 0..200_000 {
        let number = (random() % 450) as u32;
        let pick = |r: u64, s: u64| match r % 6 {
            0 => 0,
            1 => r % 70,
            2 => MEMORY.start + s % (MEMORY.end - MEMORY.start),
            3 => u64::MAX - s % 100,
            4 => 1 << (s % 64),
            _ => s,
        };
        let arguments: std::vec::Vec<u64> = (0..6)
            .map(|_| {
                let r = random();
                pick(r, random())
            })
            .collect();
        if matches!(number, nr::REBOOT | nr::SETSID) {
            continue;
        }
        world.pm.programs.system.thread(victim).waits = false;
        world.call(victim, number, &arguments);
        if !world.is_there(victim)
            || world.pm.programs.system.thread(victim).waits
            || world.pm.programs.system.threads.len() > 500
        {
            let others: std::vec::Vec<u32> = world.pm.programs.system.threads.keys().copied().collect();
            for other in others.into_iter().map(abi::Endpoint).filter(|other| *other != world.init) {
                if let Some(t) = world.pm.programs.table.find(other) {
                    let p = world.pm.programs.table.process_of(t);
                    world.pm.exit_group(p, 0);
                }
            }
            while let Some(Ok(1..)) = wait4(&mut world, -1, WNOHANG) {}
            victim = world.fork(world.init).1;
        }
    }
    assert!(world.pm.programs.system.ended.is_none());
}
