//! User and group ids: who may change them, what programs read back, and what vfs is told.

use super::{DONE, MEMORY, Told, World, failed};
use abi::linux::{self, nr};
use abi::{Capability, CapabilitySet, Endpoint, Errno};
use std::vec::Vec;

const BUFFER: u64 = MEMORY.start + 0x100;
const KEEP: u64 = u32::MAX as u64;
const CLONE_THREAD: u64 = 0x100 | 0x800 | 0x1_0000;

/// The calls for users, or those for groups.
struct Kind {
    set: u32,
    set_two: u32,
    set_all: u32,
    get_all: u32,
    real: u32,
    effective: u32,
}

const USER: Kind = Kind {
    set: nr::SETUID,
    set_two: nr::SETREUID,
    set_all: nr::SETRESUID,
    get_all: nr::GETRESUID,
    real: nr::GETUID,
    effective: nr::GETEUID,
};
const GROUP: Kind = Kind {
    set: nr::SETGID,
    set_two: nr::SETREGID,
    set_all: nr::SETRESGID,
    get_all: nr::GETRESGID,
    real: nr::GETGID,
    effective: nr::GETEGID,
};

fn ids(world: &mut World, thread: Endpoint, kind: &Kind) -> [u64; 3] {
    world.write(thread, BUFFER, &[0, 0]);
    let places = [BUFFER, BUFFER + 4, BUFFER + 8];
    assert_eq!(world.call(thread, kind.get_all, &places), DONE);
    let [low, high] = world.words(thread, BUFFER);
    let found = [low & KEEP, low >> 32, high];
    assert_eq!(world.call(thread, kind.real, &[]), Some(Ok(found[0])));
    assert_eq!(world.call(thread, kind.effective, &[]), Some(Ok(found[1])));
    found
}

/// A child whose real, effective and saved ids are these.
fn child_with(kind: &Kind, from: [u64; 3], privileged: bool) -> (World, Endpoint) {
    let mut world = World::new();
    let (_, child) = world.fork(world.init);
    assert_eq!(world.call(child, kind.set_all, &from), DONE);
    if !privileged && kind.set_all == nr::SETRESGID {
        assert_eq!(world.call(child, nr::SETRESUID, &[9, 9, 9]), DONE);
    }
    (world, child)
}

#[test]
fn without_privilege_only_present_ids_are_taken() {
    let from = [1, 2, 3];
    for kind in [USER, GROUP] {
        let cases: [(u32, &[u64], Result<[u64; 3], Errno>); 23] = [
            (kind.set, &[1], Ok([1, 1, 3])),
            (kind.set, &[3], Ok([1, 3, 3])),
            (kind.set, &[2], Err(Errno::EPERM)),
            (kind.set, &[4], Err(Errno::EPERM)),
            (kind.set, &[0], Err(Errno::EPERM)),
            (kind.set, &[KEEP], Err(Errno::EINVAL)),
            (kind.set_two, &[KEEP, KEEP], Ok(from)),
            (kind.set_two, &[1, KEEP], Ok([1, 2, 2])),
            (kind.set_two, &[2, KEEP], Ok([2, 2, 2])),
            (kind.set_two, &[3, KEEP], Err(Errno::EPERM)),
            (kind.set_two, &[4, 1], Err(Errno::EPERM)),
            (kind.set_two, &[KEEP, 1], Ok([1, 1, 3])),
            (kind.set_two, &[KEEP, 2], Ok([1, 2, 2])),
            (kind.set_two, &[KEEP, 3], Ok([1, 3, 3])),
            (kind.set_two, &[KEEP, 4], Err(Errno::EPERM)),
            (kind.set_two, &[2, 1], Ok([2, 1, 1])),
            (kind.set_all, &[KEEP, KEEP, KEEP], Ok(from)),
            (kind.set_all, &[3, 1, 2], Ok([3, 1, 2])),
            (kind.set_all, &[2, KEEP, KEEP], Ok([2, 2, 3])),
            (kind.set_all, &[KEEP, KEEP, 2], Ok([1, 2, 2])),
            (kind.set_all, &[4, KEEP, KEEP], Err(Errno::EPERM)),
            (kind.set_all, &[KEEP, 4, KEEP], Err(Errno::EPERM)),
            (kind.set_all, &[KEEP, KEEP, 4], Err(Errno::EPERM)),
        ];
        for (number, arguments, wanted) in cases {
            let (mut world, child) = child_with(&kind, from, false);
            assert_eq!(world.call(child, number, arguments), Some(wanted.map(|_| 0)), "{number} {arguments:?}");
            assert_eq!(ids(&mut world, child, &kind), wanted.unwrap_or(from), "{number} {arguments:?}");
        }
    }
}

#[test]
fn root_takes_any_id() {
    let from = [1, 0, 3];
    for kind in [USER, GROUP] {
        let cases: [(u32, &[u64], [u64; 3]); 7] = [
            (kind.set, &[5], [5, 5, 5]),
            (kind.set_two, &[5, 6], [5, 6, 6]),
            (kind.set_two, &[KEEP, 6], [1, 6, 6]),
            (kind.set_two, &[KEEP, 1], [1, 1, 3]),
            (kind.set_two, &[5, KEEP], [5, 0, 0]),
            (kind.set_all, &[5, 6, 7], [5, 6, 7]),
            (kind.set_all, &[KEEP, 6, KEEP], [1, 6, 3]),
        ];
        for (number, arguments, wanted) in cases {
            let (mut world, child) = child_with(&kind, from, true);
            assert_eq!(world.call(child, number, arguments), DONE);
            assert_eq!(ids(&mut world, child, &kind), wanted, "{number} {arguments:?}");
        }
        let (mut world, child) = child_with(&kind, from, true);
        assert_eq!(world.call(child, kind.set, &[KEEP]), failed(Errno::EINVAL));
    }
}

#[test]
fn ids_are_read_into_three_places() {
    let mut world = World::new();
    for number in [nr::GETRESUID, nr::GETRESGID] {
        for bad in 0..3 {
            let mut places = [BUFFER, BUFFER + 4, BUFFER + 8];
            places[bad] = 8;
            assert_eq!(world.call(world.init, number, &places), failed(Errno::EFAULT));
        }
    }
}

#[test]
fn ids_for_files_are_the_effective_ones() {
    let mut world = World::new();
    let (_, child) = world.fork(world.init);
    world.call(child, nr::SETRESGID, &[4, 5, 6]);
    world.call(child, nr::SETRESUID, &[1, 2, 3]);
    assert_eq!(world.call(child, nr::SETFSUID, &[1]), Some(Ok(2)));
    assert_eq!(world.call(child, nr::SETFSGID, &[4]), Some(Ok(5)));
    for (id, old) in [(77, 1), (u32::MAX as u64, 1), (3, 1), (0, 3)] {
        assert_eq!(world.call(child, nr::SETFSUID, &[id]), Some(Ok(old)), "only ids of its own");
    }
    world.told();
    assert_eq!(world.call(child, nr::SETFSUID, &[1]), Some(Ok(3)));
    let (effective, real) = (1 | 4 << 32, 1 | 4 << 32);
    assert_eq!(world.told(), [super::Told::Ids { thread: child, effective, real, groups: vec![] }], "vfs checks by it");
    assert_eq!(world.call(child, nr::GETEUID, &[]), Some(Ok(2)));
    world.call(child, nr::SETRESUID, &[u32::MAX as u64, 3, u32::MAX as u64]);
    assert_eq!(world.call(child, nr::SETFSUID, &[2]), Some(Ok(3)), "it follows the effective one");
}

#[test]
fn vfs_is_told_the_ids_of_every_thread() {
    let mut world = World::new();
    let (_, child) = world.fork(world.init);
    world.call(child, nr::CLONE, &[CLONE_THREAD, 0, 0, 0, 0]).unwrap().unwrap();
    let second = world.newest();
    world.write(child, BUFFER, &[7 | 8 << 32]);
    world.told();
    let told = |effective: u64, real: u64, groups: &[u32]| {
        [child, second].map(|thread| Told::Ids { thread, effective, real, groups: groups.to_vec() })
    };
    assert_eq!(world.call(second, nr::SETGROUPS, &[2, BUFFER]), DONE);
    assert_eq!(world.told(), told(0, 0, &[7, 8]));
    assert_eq!(world.call(second, nr::SETRESGID, &[4, 5, 6]), DONE);
    assert_eq!(world.told(), told(5 << 32, 4 << 32, &[7, 8]));
    assert_eq!(world.call(child, nr::SETRESUID, &[1, 2, 3]), DONE);
    let ids = world.told().into_iter().filter(|told| matches!(told, Told::Ids { .. }));
    assert_eq!(ids.collect::<Vec<_>>(), told(2 | 5 << 32, 1 | 4 << 32, &[7, 8]));
    assert_eq!(world.call(child, nr::SETUID, &[9]), failed(Errno::EPERM));
    assert_eq!(world.told(), []);
}

fn groups(world: &mut World, thread: Endpoint) -> Vec<u32> {
    let count = world.call(thread, nr::GETGROUPS, &[0, 0]).unwrap().unwrap();
    assert_eq!(world.call(thread, nr::GETGROUPS, &[100, BUFFER]), Some(Ok(count)));
    let bytes = world.read_bytes(thread, BUFFER, 4 * count as usize);
    bytes.chunks(4).map(|group| u32::from_le_bytes(group.try_into().unwrap())).collect()
}

#[test]
fn supplementary_groups_are_set_by_root_and_inherited() {
    let mut world = World::new();
    let (_, parent) = world.fork(world.init);
    assert_eq!(groups(&mut world, parent), []);
    world.write(parent, BUFFER, &[1 | 2 << 32, 3 | 4 << 32]);
    assert_eq!(world.call(parent, nr::SETGROUPS, &[3, BUFFER]), DONE);
    let (_, child) = world.fork(parent);
    assert_eq!(groups(&mut world, child), [1, 2, 3]);
    assert_eq!(world.call(child, nr::SETGROUPS, &[0, BUFFER]), DONE);
    assert_eq!(groups(&mut world, child), []);
    assert_eq!(groups(&mut world, parent), [1, 2, 3]);
    world.call(parent, nr::SETUID, &[1000]);
    assert_eq!(world.call(parent, nr::SETGROUPS, &[0, BUFFER]), failed(Errno::EPERM));
    for (count, answer) in [
        (2, failed(Errno::EINVAL)),
        (3, Some(Ok(3))),
        (4, Some(Ok(3))),
        (i32::MAX as u64, Some(Ok(3))),
        (1 << 31, failed(Errno::EINVAL)),
        (KEEP, failed(Errno::EINVAL)),
    ] {
        assert_eq!(world.call(parent, nr::GETGROUPS, &[count, BUFFER]), answer, "{count}");
    }
    assert_eq!(world.call(parent, nr::GETGROUPS, &[3, 8]), failed(Errno::EFAULT));
}

#[test]
fn there_are_at_most_as_many_supplementary_groups_as_vfs_keeps() {
    let mut world = World::new();
    let init = world.init;
    assert_eq!(world.call(init, nr::SETGROUPS, &[1024, 8]), failed(Errno::EFAULT), "not its memory");
    assert_eq!(world.call(init, nr::SETGROUPS, &[1025, MEMORY.start]), failed(Errno::EINVAL));
    assert_eq!(world.call(init, nr::SETGROUPS, &[1, 8]), failed(Errno::EFAULT));
}

const VERSION: u64 = 0x2008_0522;
const DATA: u64 = BUFFER + 64;

/// Makes a capability call about the process with this id. Returns its answer.
fn about(world: &mut World, thread: Endpoint, number: u32, pid: i32) -> super::Answer {
    world.write(thread, BUFFER, &[VERSION | (pid as u32 as u64) << 32]);
    world.call(thread, number, &[BUFFER, DATA])
}

#[test]
fn root_has_all_capabilities_and_others_have_none() {
    let mut world = World::new();
    let init = world.init;
    let (pid, user) = world.user(1000, 100);
    let all = [u64::MAX, 0x1ff << 32, 0x1ff, 7];
    for (thread, whose, data) in [(init, 0, all), (user, 0, [0, 0, 0, 7]), (init, pid, [0, 0, 0, 7]), (user, 1, all)] {
        world.write(thread, DATA, &[7; 4]);
        assert_eq!(about(&mut world, thread, nr::CAPGET, whose as i32), DONE);
        assert_eq!(world.words(thread, DATA), data, "{thread:?} {whose}");
    }
    assert_eq!(about(&mut world, init, nr::CAPGET, 4000), failed(Errno::ESRCH));
    assert_eq!(about(&mut world, init, nr::CAPGET, -1), failed(Errno::EINVAL));
    assert_eq!(world.call(init, nr::CAPGET, &[8, DATA]), failed(Errno::EFAULT));
    world.write(init, BUFFER, &[VERSION]);
    assert_eq!(world.call(init, nr::CAPGET, &[BUFFER, 0]), DONE);
    assert_eq!(world.call(init, nr::CAPGET, &[BUFFER, 8]), failed(Errno::EFAULT));
}

#[test]
fn an_unknown_version_of_capabilities_is_answered_with_the_known_one() {
    let mut world = World::new();
    let init = world.init;
    for number in [nr::CAPGET, nr::CAPSET] {
        world.write(init, BUFFER, &[(VERSION + 1) | (5 << 32)]);
        assert_eq!(world.call(init, number, &[BUFFER, DATA]), failed(Errno::EINVAL));
        assert_eq!(world.read(init, BUFFER), VERSION | 5 << 32);
    }
    world.write(init, BUFFER, &[1]);
    assert_eq!(world.call(init, nr::CAPGET, &[BUFFER, 0]), DONE, "the question for the version");
}

#[test]
fn older_versions_of_capabilities_have_their_own_sizes() {
    let mut world = World::new();
    let init = world.init;
    for (version, data) in [(0x2007_1026, [u64::MAX, 0x1ff << 32, 0x1ff]), (0x1998_0330, [u64::MAX, 7 << 32, 7])] {
        world.write(init, BUFFER, &[version]);
        world.write(init, DATA, &[7 | 7 << 32, 7 << 32, 7]);
        assert_eq!(world.call(init, nr::CAPGET, &[BUFFER, DATA]), DONE);
        assert_eq!(world.words(init, DATA), data, "{version:#x}");
        assert_eq!(world.call(init, nr::CAPSET, &[BUFFER, DATA]), DONE);
    }
    world.write(init, BUFFER, &[0x1998_0330]);
    world.write(init, DATA, &[1, 0]);
    assert_eq!(world.call(init, nr::CAPSET, &[BUFFER, DATA]), failed(Errno::EPERM), "effective without permitted");
}

#[test]
fn capset_is_of_the_caller_alone_and_gives_nothing() {
    let mut world = World::new();
    let init = world.init;
    let (pid, user) = world.user(1000, 100);
    for (thread, permitted, answer) in [(user, 0, DONE), (user, 1 << 32, failed(Errno::EPERM)), (init, 1 << 32, DONE)] {
        world.write(thread, DATA, &[permitted, 0, 0, u64::MAX << 32]);
        assert_eq!(about(&mut world, thread, nr::CAPSET, 0), answer, "what is no capability is left out");
    }
    world.write(init, DATA, &[0, 0, 0]);
    assert_eq!(about(&mut world, init, nr::CAPSET, pid as i32), failed(Errno::EPERM), "another process");
    assert_eq!(about(&mut world, init, nr::CAPSET, 1), DONE);
    world.write(init, BUFFER, &[VERSION]);
    assert_eq!(world.call(init, nr::CAPSET, &[BUFFER, 8]), failed(Errno::EFAULT));
}

/// Takes these capabilities out of the effective set.
fn drop_effective(world: &mut World, thread: Endpoint, dropped: &[Capability]) {
    assert_eq!(about(world, thread, nr::CAPGET, 0), DONE);
    let [first, second] = world.words(thread, DATA);
    let bits = CapabilitySet::of(dropped).bits();
    world.write(thread, DATA, &[first & !(bits & 0xffff_ffff), second & !(bits >> 32 << 32)]);
    assert_eq!(about(world, thread, nr::CAPSET, 0), DONE);
}

#[test]
fn root_without_a_capability_is_refused() {
    const TIME: u64 = BUFFER + 128;
    for (capability, number, arguments) in [
        (Capability::SetUid, nr::SETUID, &[5][..]),
        (Capability::SetUid, nr::SETRESUID, &[5, 6, 7]),
        (Capability::SetGid, nr::SETGID, &[5]),
        (Capability::SetGid, nr::SETGROUPS, &[0, 0]),
        (Capability::Kill, nr::KILL, &[2, 15]),
        (Capability::SysAdmin, nr::SETHOSTNAME, &[BUFFER, 4]),
        (Capability::SysBoot, nr::REBOOT, &[0xfee1_dead, 672_274_793, 0]),
        (Capability::SysTime, nr::CLOCK_SETTIME, &[0, TIME]),
        (Capability::SysResource, nr::SETRLIMIT, &[7, TIME]),
        (Capability::SysPtrace, nr::PTRACE, &[16, 2, 0, 0]),
        (Capability::SetCapabilities, nr::PRCTL, &[24, 5]),
        (Capability::SetCapabilities, nr::PRCTL, &[28, 0]),
        (Capability::SysLog, nr::SYSLOG, &[1, 0, 0]),
    ] {
        let mut world = World::new();
        let (pid, _) = world.user(1000, 100);
        assert_eq!(pid, 2);
        let (_, child) = world.fork(world.init);
        world.write(child, TIME, &[5000, 5000]);
        drop_effective(&mut world, child, &[capability]);
        assert_eq!(world.call(child, number, arguments), failed(Errno::EPERM), "{capability:?} {number}");
    }
}

#[test]
fn vfs_is_told_the_capabilities_of_each_thread() {
    let mut world = World::new();
    let (_, child) = world.fork(world.init);
    drop_effective(&mut world, child, &[Capability::DacOverride]);
    let told = world.pm.programs.system.file_ids[&child.0];
    let rest = CapabilitySet::ALL.without(CapabilitySet::of(&[Capability::DacOverride]));
    assert_eq!((told.capabilities, told.real_capabilities), (rest, CapabilitySet::ALL));
    assert_eq!(world.call(child, nr::SETFSUID, &[1000]), Some(Ok(0)));
    let told = world.pm.programs.system.file_ids[&child.0];
    assert_eq!(told.capabilities, CapabilitySet::ALL.without(CapabilitySet::OF_FILES));
    assert_eq!(world.call(child, nr::SETUID, &[1000]), DONE);
    let told = world.pm.programs.system.file_ids[&child.0];
    assert_eq!((told.capabilities, told.real_capabilities), (CapabilitySet::EMPTY, CapabilitySet::EMPTY));
}

#[test]
fn ambient_options_are_checked_as_linux_does() {
    const AMBIENT: u64 = 47;
    let mut world = World::new();
    let init = world.init;
    let mut ask = |what, number, rest| world.call(init, nr::PRCTL, &[AMBIENT, what, number, rest, 0]);
    assert_eq!(ask(1, 5, 0), Some(Ok(0)));
    assert_eq!(ask(2, 5, 0), failed(Errno::EPERM), "it is not inheritable");
    assert_eq!(ask(3, 5, 0), DONE);
    assert_eq!(ask(4, 0, 0), DONE);
    for (what, number, rest) in [(1, 41, 0), (4, 5, 0), (5, 5, 0), (1, 5, 1), (4, 0, 1), (0, 0, 0)] {
        assert_eq!(ask(what, number, rest), failed(Errno::EINVAL), "{what} {number} {rest}");
    }
}

/// Asks often enough that the kernel knows all answers.
fn ask_all(world: &mut World, thread: Endpoint) -> [Option<Result<u64, Errno>>; 8] {
    for number in linux::KEPT.into_iter().chain(linux::KEPT) {
        world.call(thread, number, &[]);
    }
    assert_eq!(world.kept(thread), 8);
    linux::KEPT.map(|number| world.call(thread, number, &[]))
}

#[test]
fn an_id_is_left_with_the_kernel_when_it_is_asked_for_again() {
    let mut world = World::new();
    let init = world.init;
    world.call(init, nr::GETPID, &[]);
    assert_eq!(world.kept(init), 0);
    world.call(init, nr::GETPID, &[]);
    assert_eq!(world.kept(init), 1);
    let (_, child) = world.fork(init);
    assert_eq!(world.kept(child), 0, "its own ids are others");
}

#[test]
fn the_kernel_forgets_ids_that_change() {
    let changes: [(u32, &[u64]); 6] = [
        (nr::SETSID, &[]),
        (nr::SETPGID, &[0, 0]),
        (nr::SETRESUID, &[5, 6, 7]),
        (nr::SETRESGID, &[5, 6, 7]),
        (nr::SETUID, &[9]),
        (nr::SETREGID, &[9, 9]),
    ];
    for (number, arguments) in changes {
        let mut world = World::new();
        let (_, child) = world.fork(world.init);
        let (_, second) = world.fork(child);
        let threads = [child, second];
        for thread in threads {
            ask_all(&mut world, thread);
        }
        assert!(world.call(child, number, arguments).is_some_and(|result| result.is_ok()), "{number}");
        assert_eq!(threads.map(|thread| world.kept(thread)), [0, 8], "{number}");
        for thread in threads {
            ask_all(&mut world, thread);
        }
    }
}

#[test]
fn the_kernel_forgets_the_parent_of_an_orphan() {
    let mut world = World::new();
    let (_, parent) = world.fork(world.init);
    let (_, child) = world.fork(parent);
    ask_all(&mut world, child);
    world.call(parent, nr::EXIT_GROUP, &[0]);
    assert_eq!(world.kept(child), 0);
    assert_eq!(world.call(child, nr::GETPPID, &[]), Some(Ok(1)));
}
