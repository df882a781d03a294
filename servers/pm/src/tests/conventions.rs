//! Calls that keep a choice or tell a fact: ioprio_set(2), membarrier(2), adjtimex(2), load averages.

use super::*;
use abi::Errno;
use abi::info::state;
use abi::linux::nr;

const BUFFER: u64 = MEMORY.start + 0x100;
const SECOND: u64 = 1_000_000_000;
const USER: u64 = 1000;

fn failed(error: Errno) -> Answer {
    Some(Err(error))
}

#[test]
fn io_priorities_are_kept_inherited_and_checked() {
    let mut world = World::new();
    let (pid, child) = world.fork(world.init);
    let get = |world: &mut World, which: u64, who: u64| world.call(world.init, nr::IOPRIO_GET, &[which, who]);
    assert_eq!(get(&mut world, 1, pid), Some(Ok(0)));
    assert_eq!(world.call(child, nr::IOPRIO_SET, &[1, 0, 2 << 13 | 5]), DONE);
    let (grandchild, _) = world.fork(child);
    assert_eq!([pid, grandchild].map(|pid| get(&mut world, 1, pid)), [Some(Ok(2 << 13 | 5)); 2]);
    assert_eq!(get(&mut world, 3, 0), Some(Ok(2 << 13 | 4)), "the best of the user: one that follows its niceness");
    for (priority, error) in [(2 << 13 | 8, Errno::EINVAL), (4 << 13, Errno::EINVAL), (1, Errno::EINVAL)] {
        assert_eq!(world.call(child, nr::IOPRIO_SET, &[1, 0, priority]), failed(error), "{priority:x}");
    }
    assert_eq!([0, 4].map(|which| get(&mut world, which, 0)), [failed(Errno::EINVAL), failed(Errno::EINVAL)]);
    assert_eq!(get(&mut world, 1, 31_999), failed(Errno::ESRCH));
    world.call(child, nr::SETUID, &[USER]);
    assert_eq!(world.call(child, nr::IOPRIO_SET, &[1, 0, 1 << 13]), failed(Errno::EPERM), "the real-time class");
    assert_eq!(world.call(child, nr::IOPRIO_SET, &[1, 1, 3 << 13]), failed(Errno::EPERM), "of another");
    assert_eq!(world.call(child, nr::IOPRIO_SET, &[1, 0, 3 << 13]), DONE);
}

#[test]
fn a_private_barrier_needs_a_registration_which_a_child_has_too() {
    let mut world = World::new();
    let (_, child) = world.fork(world.init);
    assert_eq!(world.call(child, nr::MEMBARRIER, &[0, 0]), Some(Ok(127)));
    assert_eq!([1, 2].map(|command| world.call(child, nr::MEMBARRIER, &[command, 0])), [DONE; 2]);
    assert_eq!(world.call(child, nr::MEMBARRIER, &[8, 0]), failed(Errno::EPERM));
    assert_eq!([16, 8].map(|command| world.call(child, nr::MEMBARRIER, &[command, 0])), [DONE; 2]);
    assert_eq!(world.call(child, nr::MEMBARRIER, &[32, 0]), failed(Errno::EPERM));
    let (_, grandchild) = world.fork(child);
    assert_eq!(world.call(grandchild, nr::MEMBARRIER, &[8, 0]), DONE);
    for (command, flags) in [(0, 1), (3, 0), (128, 0), (256, 0)] {
        assert_eq!(world.call(child, nr::MEMBARRIER, &[command, flags]), failed(Errno::EINVAL), "{command}");
    }
}

#[test]
fn the_wall_clock_is_shown_as_one_that_nobody_adjusts() {
    let mut world = World::new();
    let (_, child) = world.fork(world.init);
    assert_eq!(world.call(child, nr::ADJTIMEX, &[BUFFER]), Some(Ok(5)));
    assert_eq!((world.read(child, BUFFER + 88), world.read(child, BUFFER + 40)), (10_000, 0x40));
    world.write(child, BUFFER, &[0xa001]);
    assert_eq!(world.call(child, nr::CLOCK_ADJTIME, &[0, BUFFER]), Some(Ok(5)));
    for (modes, error) in [(0x8000, Errno::EINVAL), (1, Errno::EINVAL)] {
        world.write(child, BUFFER, &[modes]);
        assert_eq!(world.call(child, nr::ADJTIMEX, &[BUFFER]), failed(error), "{modes:x}");
    }
    world.call(child, nr::SETUID, &[USER]);
    assert_eq!(world.call(child, nr::ADJTIMEX, &[BUFFER]), failed(Errno::EPERM));
    assert_eq!(world.call(child, nr::ADJTIMEX, &[8]), failed(Errno::EFAULT));
    let others = [1, 99].map(|clock| world.call(child, nr::CLOCK_ADJTIME, &[clock, BUFFER]));
    assert_eq!(others, [failed(Errno::EOPNOTSUPP), failed(Errno::EINVAL)]);
}

#[test]
fn load_averages_count_the_threads_that_could_run() {
    let mut world = World::new();
    let (_, child) = world.fork(world.init);
    world.thread(child).state = state::READY;
    world.thread(world.init).state = state::RECEIVING;
    world.set_time(60 * SECOND);
    world.pm.handle_notification(abi::Endpoint::RS);
    assert_eq!(world.call(child, nr::SYSINFO, &[BUFFER]), DONE);
    let loads = [8, 16, 24].map(|at| (world.read(child, BUFFER + at) * 100) >> 16);
    assert!(loads[0] > loads[1] && loads[1] > loads[2] && loads[2] > 0 && loads[0] < 100, "{loads:?}");
    world.pm.handle_notification(abi::Endpoint::RS);
    assert_eq!((world.read(child, BUFFER + 8) * 100) >> 16, loads[0], "not before its time");
}
