//! What calls about one process answer, and where they write it.

use super::{MEMORY, World};
use abi::Errno;
use abi::linux::nr;

type Answer = Option<Result<u64, Errno>>;

const BUFFER: u64 = MEMORY.start + 0x100;
const INVALID: Answer = Some(Err(Errno::EINVAL));
const DONE: Answer = Some(Ok(0));

fn world() -> World {
    let mut world = World::new();
    world.set_time(3_000_500_000);
    world.write(world.init, BUFFER, &[7; 40]);
    world
}

fn call(world: &mut World, number: u32, arguments: &[u64]) -> Answer {
    world.call(world.init, number, arguments)
}

fn words<const N: usize>(world: &mut World, address: u64) -> [u64; N] {
    core::array::from_fn(|at| world.read(world.init, address + 8 * at as u64))
}

#[test]
fn clocks_are_written_as_timespec_and_timeval() {
    let mut world = world();
    assert_eq!(call(&mut world, nr::CLOCK_GETTIME, &[1, BUFFER]), DONE);
    assert_eq!(words(&mut world, BUFFER), [3, 500_000, 7]);
    assert_eq!(call(&mut world, nr::GETTIMEOFDAY, &[BUFFER, 0]), DONE);
    assert_eq!(words(&mut world, BUFFER), [3, 500, 7]);
    assert_eq!(call(&mut world, nr::GETTIMEOFDAY, &[0, 0]), DONE);
    assert_eq!(call(&mut world, nr::SETTIMEOFDAY, &[0, 0]), DONE);
    world.write(world.init, BUFFER, &[100, 5]);
    assert_eq!(call(&mut world, nr::SETTIMEOFDAY, &[BUFFER, 0]), DONE);
    assert_eq!(call(&mut world, nr::CLOCK_GETTIME, &[0, BUFFER]), DONE);
    assert_eq!(words(&mut world, BUFFER), [100, 5_000]);
}

#[test]
fn uname_tells_the_system_and_the_processor() {
    let mut world = world();
    assert_eq!(call(&mut world, nr::UNAME, &[BUFFER]), DONE);
    assert_eq!(world.read(world.init, BUFFER), u64::from_le_bytes(*b"Linux\0\0\0"));
    assert_eq!(world.read(world.init, BUFFER + 4 * 65), u64::from_le_bytes(*b"x86_64\0\0"));
}

#[test]
fn a_personality_is_kept_and_inherited() {
    let mut world = world();
    for (persona, old) in [(0xffff_ffff, 0), (0x0004_0000, 0), (0xffff_ffff, 0x0004_0000), (8, 0x0004_0000)] {
        assert_eq!(call(&mut world, nr::PERSONALITY, &[persona]), Some(Ok(old)));
    }
    let (_, child) = world.fork(world.init);
    assert_eq!(world.call(child, nr::PERSONALITY, &[0xffff_ffff]), Some(Ok(8)));
}

#[test]
fn there_is_one_processor() {
    let mut world = world();
    for (bytes, answer) in [(0, INVALID), (7, INVALID), (8, Some(Ok(8))), (12, INVALID), (16, Some(Ok(8)))] {
        assert_eq!(call(&mut world, nr::SCHED_GETAFFINITY, &[0, bytes, BUFFER]), answer, "{bytes}");
    }
    assert_eq!(words(&mut world, BUFFER), [1, 7]);
    for (mask, answer) in [(0, INVALID), (1, DONE), (2, INVALID), (3, DONE)] {
        world.write(world.init, BUFFER, &[mask]);
        assert_eq!(call(&mut world, nr::SCHED_SETAFFINITY, &[0, 8, BUFFER]), answer, "{mask}");
    }
    assert_eq!(call(&mut world, nr::SCHED_SETAFFINITY, &[0, 0, BUFFER]), INVALID);
}

#[test]
fn scheduling_attributes_need_their_whole_size() {
    let mut world = world();
    for (bytes, answer) in [(47, INVALID), (48, DONE), (1 << 32 | 48, DONE), (1 << 32, INVALID)] {
        assert_eq!(call(&mut world, nr::SCHED_GETATTR, &[0, BUFFER, bytes, 0]), answer, "{bytes:#x}");
    }
    assert_eq!(world.read(world.init, BUFFER) as u32, 48);
    assert_eq!(call(&mut world, nr::SCHED_GETATTR, &[0, BUFFER, 48, 1]), INVALID);
}

#[test]
fn a_new_process_has_niceness_0_and_a_child_that_of_its_parent() {
    let mut world = world();
    assert_eq!(call(&mut world, nr::GETPRIORITY, &[0, 0]), Some(Ok(20)));
    assert_eq!(call(&mut world, nr::SETPRIORITY, &[0, 0, 5]), DONE);
    let (_, child) = world.fork(world.init);
    assert_eq!(world.call(child, nr::GETPRIORITY, &[0, 0]), Some(Ok(15)));
}

#[test]
fn a_child_has_the_handlers_of_its_parent() {
    let mut world = world();
    world.handle_signal(world.init, 10, 0);
    let (_, child) = world.fork(world.init);
    for thread in [world.init, child] {
        assert_eq!(world.call(thread, nr::RT_SIGACTION, &[10, 0, BUFFER, 8]), DONE);
        assert_eq!(world.read(thread, BUFFER), 0xaaaa);
        assert_eq!(world.read(thread, BUFFER + 16), 0xbbbb);
    }
}

#[test]
fn timers_are_numbered_from_0_and_show_what_is_left() {
    let mut world = world();
    for id in 0..2 {
        assert_eq!(call(&mut world, nr::TIMER_CREATE, &[1, 0, BUFFER]), DONE);
        assert_eq!(words(&mut world, BUFFER), [id, 7]);
    }
    world.write(world.init, BUFFER, &[2, 0, 5, 0]);
    assert_eq!(call(&mut world, nr::TIMER_SETTIME, &[1, 0, BUFFER, 0]), DONE);
    assert_eq!(call(&mut world, nr::TIMER_GETTIME, &[1, BUFFER + 64]), DONE);
    assert_eq!(words(&mut world, BUFFER + 64), [2, 0, 5, 0]);
    assert_eq!(call(&mut world, nr::TIMER_GETTIME, &[0, BUFFER + 64]), DONE);
    assert_eq!(words(&mut world, BUFFER + 64), [0; 4]);
    assert_eq!(call(&mut world, nr::TIMER_GETTIME, &[2, BUFFER + 64]), INVALID);
}

#[test]
fn wait4_writes_what_the_child_used() {
    let mut world = world();
    let (pid, child) = world.fork(world.init);
    world.pm.programs.system.thread(child).run_ns = 2_000_003_000;
    world.call(child, nr::EXIT_GROUP, &[0]);
    assert_eq!(call(&mut world, nr::WAIT4, &[pid, 0, 0, BUFFER]), Some(Ok(pid)));
    assert_eq!(words(&mut world, BUFFER), [2, 3]);
}

#[test]
fn keys_of_reboot_are_asked_for_and_ctrl_alt_del_ends_nothing() {
    let mut world = world();
    const MAGIC: [u64; 2] = [0xfee1_dead, 0x2812_1969];
    for command in [0, 0x89ab_cdef] {
        assert_eq!(call(&mut world, nr::REBOOT, &[MAGIC[0], MAGIC[1], command]), DONE);
    }
    assert_eq!(call(&mut world, nr::REBOOT, &[MAGIC[0], 1, 0]), INVALID);
    assert_eq!(call(&mut world, nr::REBOOT, &[1, MAGIC[1], 0]), INVALID);
    assert_eq!(world.pm.programs.system.ended, None);
}
