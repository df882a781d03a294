//! prctl(2), and what others may see and change of a process.

use super::*;
use abi::Endpoint;
use abi::linux::nr;

const BUFFER: u64 = MEMORY.start + 0x2000;

fn prctl(world: &mut World, thread: Endpoint, option: u64, value: u64) -> Answer {
    world.call(thread, nr::PRCTL, &[option, value, 0, 0, 0])
}

#[test]
fn choices_are_kept_and_inherited_as_linux_does() {
    let mut world = World::new();
    let (_, parent) = world.fork(world.init);
    for (set, get, first, value) in [(4, 3, 1, 0), (8, 7, 0, 1), (29, 30, 50_000, 77), (38, 39, 0, 1)] {
        assert_eq!(prctl(&mut world, parent, get, 0), Some(Ok(first)), "{get}");
        assert_eq!(prctl(&mut world, parent, set, value), DONE, "{set}");
        let (_, child) = world.fork(parent);
        for thread in [parent, child] {
            assert_eq!(prctl(&mut world, thread, get, 0), Some(Ok(value)), "{get}");
        }
    }
    for (set, get, value, of_child) in [(1, 2, 15, 0), (36, 37, 1, 0)] {
        assert_eq!(prctl(&mut world, parent, set, value), DONE);
        let (_, child) = world.fork(parent);
        for (thread, value) in [(parent, value), (child, of_child)] {
            world.write(thread, BUFFER, &[u64::MAX]);
            assert_eq!(prctl(&mut world, thread, get, BUFFER), DONE);
            assert_eq!(world.read(thread, BUFFER), value | 0xffff_ffff << 32, "{get}");
        }
    }
    for (option, value) in [(1, 65), (4, 2), (8, 2), (38, 0), (38, 2), (39, 1), (0, 0), (22, 3), (99, 0)] {
        assert_eq!(prctl(&mut world, parent, option, value), failed(Errno::EINVAL), "{option} {value}");
    }
    assert_eq!(prctl(&mut world, parent, 29, 0), DONE);
    assert_eq!(prctl(&mut world, parent, 30, 0), Some(Ok(50_000)));
}

#[test]
fn a_child_is_told_of_the_death_of_its_parent() {
    let mut world = World::new();
    let (_, parent) = world.fork(world.init);
    let (_, child) = world.fork(parent);
    world.handle_signal(child, 10, 0);
    assert_eq!(prctl(&mut world, child, 1, 10), DONE);
    world.call(parent, nr::EXIT_GROUP, &[0]);
    assert_eq!(world.report_interrupted(child, None), None);
    assert_eq!(world.thread(child).registers.rip, 0xaaaa);
}

#[test]
fn the_nearest_subreaper_adopts_orphans() {
    let mut world = World::new();
    let (reaper_pid, reaper) = world.fork(world.init);
    let (_, parent) = world.fork(reaper);
    let (pid, child) = world.fork(parent);
    assert_eq!(prctl(&mut world, reaper, 36, 1), DONE);
    world.call(parent, nr::EXIT_GROUP, &[0]);
    assert_eq!(world.call(child, nr::GETPPID, &[]), Some(Ok(reaper_pid)));
    world.call(child, nr::EXIT_GROUP, &[0]);
    assert_eq!(world.call(reaper, nr::WAIT4, &[pid, 0, 0, 0]), Some(Ok(pid)));
    let (_, orphan) = world.fork(reaper);
    world.call(reaper, nr::EXIT_GROUP, &[0]);
    assert_eq!(world.call(orphan, nr::GETPPID, &[]), Some(Ok(1)));
}

#[test]
fn only_a_process_with_no_other_ids_is_open_to_its_user() {
    let mut world = World::new();
    let (_, user) = world.user(1000, 100);
    let (own_pid, own) = world.fork(user);
    let (privileged_pid, privileged) = world.fork(world.init);
    world.call(privileged, nr::SETRESGID, &[100, 100, 100]);
    world.call(privileged, nr::SETRESUID, &[1000, 1000, 0]);
    for (pid, answer) in [(own_pid, DONE), (privileged_pid, failed(Errno::EPERM)), (1, failed(Errno::EPERM))] {
        assert_eq!(world.call(user, nr::GET_ROBUST_LIST, &[pid, BUFFER, BUFFER]), answer);
        assert_eq!(world.call(user, nr::PRLIMIT64, &[pid, 7, 0, BUFFER]), answer);
        assert_eq!(world.call(world.init, nr::GET_ROBUST_LIST, &[pid, BUFFER, BUFFER]), DONE);
    }
    assert_eq!(world.call(own, nr::GET_ROBUST_LIST, &[0, BUFFER, BUFFER]), DONE);
}

#[test]
fn a_longer_clone_args_must_be_zero_behind_what_is_known() {
    let mut world = World::new();
    let (_, child) = world.fork(world.init);
    let make = |world: &mut World, at: u64, bytes: u64| {
        world.write(child, BUFFER, &[0; 20]);
        world.write(child, BUFFER + 8 * 4, &[17]);
        if at != 0 {
            world.write_bytes(child, BUFFER + at, &[1]);
        }
        world.call(child, nr::CLONE3, &[BUFFER, bytes]).unwrap().map(|_| ())
    };
    for (at, bytes, answer) in [
        (0, 64, Ok(())),
        (0, 88, Ok(())),
        (0, 144, Ok(())),
        (88, 144, Err(Errno::E2BIG)),
        (143, 144, Err(Errno::E2BIG)),
        (143, 143, Ok(())),
        (64, 88, Err(Errno::EINVAL)),
        (64, 64, Ok(())),
    ] {
        assert_eq!(make(&mut world, at, bytes), answer, "{at} {bytes}");
    }
}

#[test]
fn what_cannot_be_chosen_is_told_as_of_a_process_that_has_chosen_nothing() {
    let mut world = World::new();
    let (_, child) = world.fork(world.init);
    for (option, value, answer) in [(13, 0, 0), (14, 0, 0), (21, 0, 0), (23, 40, 1), (27, 0, 0), (34, 0, 2), (42, 0, 0)]
    {
        assert_eq!(prctl(&mut world, child, option, value), Some(Ok(answer)), "{option}");
    }
    for (option, value) in [(14, 1), (22, 3), (23, 41), (34, 1), (42, 1)] {
        assert_eq!(prctl(&mut world, child, option, value), Some(Err(Errno::EINVAL)), "{option}");
    }
    world.call(child, nr::SET_TID_ADDRESS, &[BUFFER + 64]);
    assert_eq!(prctl(&mut world, child, 40, BUFFER), DONE);
    assert_eq!(world.read(child, BUFFER), BUFFER + 64);
    let mut ambient = |a: u64, b: u64, c: u64| world.call(child, nr::PRCTL, &[47, a, b, c, 0]);
    assert_eq!([ambient(1, 40, 0), ambient(3, 0, 0), ambient(4, 0, 0)], [DONE; 3]);
    assert_eq!(ambient(2, 0, 0), Some(Err(Errno::EPERM)));
    let wrong = [ambient(1, 41, 0), ambient(9, 1, 0), ambient(4, 1, 0), ambient(1, 1, 1)];
    assert_eq!(wrong, [Some(Err(Errno::EINVAL)); 4]);
}
