//! Containers with limits: made, entered, killed and listed; what is charged to them, and that nobody leaves them.

use super::fake::{MEMORY, Told};
use super::world::World;
use crate::state::limited::LOOK_NS;
use abi::container::{ContainerRecord, NO_LIMIT, Settings, account, container_call, first_pid};
use abi::info::state;
use abi::linux::nr;
use abi::{Endpoint, Errno, Name, Part};
use zerocopy::{FromBytes, IntoBytes};

const BUFFER: u64 = MEMORY.start + 0x100;
const SIGKILL: u64 = 9;

type Result<T> = core::result::Result<T, Errno>;

fn call(world: &mut World, who: Endpoint, operation: u64, name: &str, bytes: u64) -> Result<u64> {
    let (low, high) = Name::new(name).unwrap_or_default().to_words();
    world.call(who, nr::SKINK_CONTAINER, &[operation, low, high, BUFFER, bytes]).expect("it does not wait")
}

fn create(world: &mut World, who: Endpoint, name: &str, settings: Settings) -> Result<(u64, Endpoint)> {
    world.write_bytes(who, BUFFER, settings.as_bytes());
    let pid = call(world, who, container_call::CREATE, name, size_of::<Settings>() as u64)?;
    Ok((pid, world.newest()))
}

fn enter(world: &mut World, who: Endpoint, name: &str) -> Result<(u64, Endpoint)> {
    let pid = call(world, who, container_call::ENTER, name, 0)?;
    Ok((pid, world.newest()))
}

fn list(world: &mut World) -> Vec<ContainerRecord> {
    let init = world.init;
    let bytes = call(world, init, container_call::LIST, "", 4096).unwrap();
    let text = world.read_bytes(init, BUFFER, bytes as usize);
    let size = size_of::<ContainerRecord>();
    text.chunks_exact(size).map(|one| ContainerRecord::read_from_bytes(one).unwrap()).collect()
}

fn of_processes(processes: u64) -> Settings {
    Settings { processes, ..Settings::NONE }
}

fn charged(world: &World, container: u8) -> usize {
    world.pm.programs.table.threads_of_user(account(container))
}

#[test]
fn a_container_has_a_name_limits_and_a_world_of_its_own() {
    let mut world = World::new();
    let init = world.init;
    let settings = Settings { memory_bytes: 64 << 20, processes: 2, files: 9, pipes: 3, percent: 100 };
    let (pid, first) = create(&mut world, init, "web", settings).unwrap();
    assert_eq!(pid, u64::from(first_pid(1) + 1));
    let told = world.told();
    assert!(told.contains(&Told::LimitedFiles { container: 1, files: 9, pipes: 3 }));
    assert!(told.contains(&Told::Container { thread: first, container: 1, pages: 16384 }));
    assert!(told.contains(&Told::IdMap { thread: first, users: 0, groups: 0 }));
    assert_eq!([nr::GETPID, nr::GETUID].map(|number| world.call(first, number, &[])), [Some(Ok(1)), Some(Ok(0))]);
    let record = list(&mut world)[0];
    assert_eq!((record.name.as_str(), record.number, u64::from(record.first_pid)), ("web", 1, pid));
    assert_eq!(record.settings, settings);
    assert_eq!((record.used.memory_bytes, record.used.processes, record.used.files), (10 * 4096, 1, 1));
    assert_eq!(create(&mut world, init, "web", Settings::NONE), Err(Errno::EEXIST));
    assert_eq!(create(&mut world, init, "", Settings::NONE), Err(Errno::EINVAL));
    assert_eq!(create(&mut world, init, "nil", of_processes(0)), Err(Errno::EINVAL));
}

#[test]
fn processes_and_threads_end_at_the_limit_and_come_back_with_each_end() {
    let mut world = World::new();
    let init = world.init;
    let (_, first) = create(&mut world, init, "c", of_processes(3)).unwrap();
    let (_, second) = world.fork(first);
    assert_eq!(world.call(second, nr::CLONE, &[0x1_0f00, BUFFER, 0, 0, 0]).map(|made| made.is_ok()), Some(true));
    for who in [first, second] {
        assert_eq!(world.call(who, nr::FORK, &[]), Some(Err(Errno::EAGAIN)));
        assert_eq!(world.call(who, nr::CLONE, &[0x1_0f00, BUFFER, 0, 0, 0]), Some(Err(Errno::EAGAIN)));
    }
    assert_eq!(enter(&mut world, init, "c"), Err(Errno::EAGAIN));
    assert_eq!(charged(&world, 1), 3);
    assert!(world.call(init, nr::FORK, &[]).unwrap().is_ok(), "who is outside is not concerned");
    // The zombie counts until it is waited for.
    world.call(second, nr::EXIT_GROUP, &[0]);
    assert_eq!(charged(&world, 1), 2);
    assert_eq!(world.call(first, nr::WAIT4, &[u64::MAX, 0, 0, 0]), Some(Ok(2)));
    assert_eq!(charged(&world, 1), 1);
    assert!(enter(&mut world, init, "c").is_ok() && world.call(first, nr::FORK, &[]).unwrap().is_ok());
    assert_eq!(world.call(first, nr::FORK, &[]), Some(Err(Errno::EAGAIN)));
}

#[test]
fn what_is_made_inside_stays_inside() {
    let mut world = World::new();
    let init = world.init;
    let (_, first) = create(&mut world, init, "c", of_processes(2)).unwrap();
    // Neither a container in the container nor another user leaves the limits.
    let flags = Part::Users.flag() | Part::Host.flag() | 17;
    let pid = world.call(first, nr::CLONE, &[flags, 0, 0, 0, 0]).unwrap();
    assert!(pid.is_ok());
    assert_eq!(charged(&world, 1), 2);
    assert_eq!(world.call(first, nr::UNSHARE, &[Part::Users.flag()]), Some(Ok(0)));
    assert_eq!(world.call(first, nr::FORK, &[]), Some(Err(Errno::EAGAIN)));
    for operation in [container_call::CREATE, container_call::ENTER, container_call::KILL, container_call::LIST] {
        assert_eq!(call(&mut world, first, operation, "c", 0), Err(Errno::EPERM));
    }
}

#[test]
fn only_who_has_the_right_over_the_system_makes_one() {
    let mut world = World::new();
    let (_, user) = world.user(1000, 100);
    assert_eq!(create(&mut world, user, "c", Settings::NONE), Err(Errno::EPERM));
}

#[test]
fn kill_ends_all_of_them_and_frees_the_name() {
    let mut world = World::new();
    let init = world.init;
    let (pid, first) = create(&mut world, init, "c", of_processes(10)).unwrap();
    let (_, second) = world.fork(first);
    let (other, third) = enter(&mut world, init, "c").unwrap();
    assert_eq!(call(&mut world, init, container_call::KILL, "d", 0), Err(Errno::ENOENT));
    assert!(call(&mut world, init, container_call::KILL, "c", 0).unwrap() >= 1);
    assert!([first, second, third].iter().all(|thread| !world.is_there(*thread)));
    for gone in [pid, other] {
        assert_eq!(world.call(init, nr::WAIT4, &[gone, 0, 0, 0]), Some(Ok(gone)));
    }
    // The third was the first one's child, for whom nobody has to wait.
    assert_eq!(world.call(init, nr::WAIT4, &[u64::MAX, 0, 0, 0]), Some(Err(Errno::ECHILD)));
    assert_eq!((charged(&world, 1), list(&mut world).len()), (0, 0));
    assert!(create(&mut world, init, "c", Settings::NONE).is_ok());
}

#[test]
fn to_services_a_container_is_a_user() {
    let mut world = World::new();
    let init = world.init;
    let (_, first) = create(&mut world, init, "c", Settings::NONE).unwrap();
    let (_, second) = world.fork(first);
    for (who, user) in [(first, account(1)), (second, account(1)), (init, 0)] {
        let p = world.pm.programs.table.find(who).map(|t| world.pm.programs.table.process_of(t)).unwrap();
        let credentials = &world.pm.programs.table[p].credentials;
        assert_eq!((credentials.word_of_system() as u32, credentials.of_system().bits() == 0), (user, who != init));
        assert_eq!(world.pm.programs.table[p].capabilities_for_services(), credentials.of_system());
    }
}

#[test]
fn real_time_is_for_containers_that_were_given_it() {
    const SCHED_FIFO: u64 = 1;
    const RLIMIT_RTPRIO: u64 = 14;
    let mut world = World::new();
    let init = world.init;
    let take = |world: &mut World, who| {
        world.write(who, BUFFER, &[50]);
        world.call(who, nr::SCHED_SETSCHEDULER, &[0, SCHED_FIFO, BUFFER]).unwrap()
    };
    let (_, first) = create(&mut world, init, "none", Settings::NONE).unwrap();
    assert_eq!(take(&mut world, first), Err(Errno::EPERM));
    world.write(init, BUFFER, &[99, 99]);
    assert_eq!(world.call(init, nr::PRLIMIT64, &[0, RLIMIT_RTPRIO, BUFFER, 0]), Some(Ok(0)));
    let (_, second) = create(&mut world, init, "some", Settings::NONE).unwrap();
    assert_eq!(take(&mut world, second), Ok(0));
    let p = world.pm.programs.table.find(second).map(|t| world.pm.programs.table.process_of(t)).unwrap();
    assert_ne!(world.pm.programs.table[p].capabilities_for_services(), abi::CapabilitySet::EMPTY);
}

#[test]
fn who_enters_an_ended_container_is_refused() {
    let mut world = World::new();
    let init = world.init;
    let (pid, first) = create(&mut world, init, "c", Settings::NONE).unwrap();
    assert_eq!(world.call(init, nr::KILL, &[pid, SIGKILL]), Some(Ok(0)));
    assert!(!world.is_there(first));
    assert_eq!(enter(&mut world, init, "c"), Err(Errno::ENOMEM), "its zombie is there still");
    assert_eq!(world.call(init, nr::WAIT4, &[pid, 0, 0, 0]), Some(Ok(pid)));
    assert_eq!(enter(&mut world, init, "c"), Err(Errno::ENOENT));
}

#[test]
fn who_has_used_its_share_of_the_processor_waits_and_runs_again() {
    let mut world = World::new();
    let init = world.init;
    let (_, hog) = create(&mut world, init, "c", Settings { percent: 25, ..Settings::NONE }).unwrap();
    let mut now_ns = world.pm.programs.system.now_ns;
    let mut ran = 0;
    for _ in 0..100 {
        now_ns += LOOK_NS;
        if world.thread(hog).runs {
            world.thread(hog).run_ns += LOOK_NS;
            ran += 1;
        }
        world.set_time(now_ns);
    }
    assert!((24..=27).contains(&ran), "{ran}");
    // It can be killed while it waits, and then nobody looks any more.
    while world.thread(hog).runs {
        now_ns += LOOK_NS;
        world.thread(hog).run_ns += LOOK_NS;
        world.set_time(now_ns);
    }
    assert!(call(&mut world, init, container_call::KILL, "c", 0).is_ok());
    world.call(init, nr::WAIT4, &[u64::MAX, 0, 0, 0]);
    world.set_time(now_ns + LOOK_NS);
    assert_eq!(world.pm.programs.system.alarm, None);
}

#[test]
fn what_services_do_is_charged_to_those_who_ask_them() {
    let mut world = World::new();
    let init = world.init;
    let limits = Settings { percent: 25, ..Settings::NONE };
    let (_, hog) = create(&mut world, init, "hog", limits).unwrap();
    let (_, quiet) = create(&mut world, init, "quiet", limits).unwrap();
    let mut now_ns = world.pm.programs.system.now_ns;
    let mut looks = [0, 0];
    for _ in 0..100 {
        now_ns += LOOK_NS;
        world.thread(quiet).messages += 2;
        if world.thread(hog).runs {
            world.thread(hog).messages += 1000;
            world.pm.programs.system.services_ns += LOOK_NS;
        }
        for (ran, thread) in looks.iter_mut().zip([hog, quiet]) {
            *ran += u32::from(world.thread(thread).runs);
        }
        world.set_time(now_ns);
    }
    assert!((24..=27).contains(&looks[0]) && looks[1] == 100, "{looks:?}");
}

/// One call that keeps services at work for long, such as fsync, is charged as long as it lasts; one that waits is not.
#[test]
fn long_work_is_charged_to_whose_call_it_is() {
    let mut world = World::new();
    let init = world.init;
    let limits = Settings { percent: 25, ..Settings::NONE };
    let [syncs, faults, reads, queued] =
        ["syncs", "faults", "reads", "queued"].map(|name| create(&mut world, init, name, limits).unwrap().1);
    for (thread, service, state) in [
        (syncs, Endpoint::VFS, state::ANSWERING),
        (faults, Endpoint::VM, state::FAULTING),
        (reads, Endpoint::VFS, state::ANSWERING),
        (queued, Endpoint::VFS, state::SENDING),
    ] {
        world.thread(thread).blocked_on = service;
        world.thread(thread).state = state;
    }
    world.pm.programs.system.worked_for = vec![syncs, queued];
    let mut now_ns = world.pm.programs.system.now_ns;
    let mut looks = [0; 4];
    for _ in 0..100 {
        now_ns += LOOK_NS;
        world.pm.programs.system.services_ns += LOOK_NS;
        world.set_time(now_ns);
        for (ran, thread) in looks.iter_mut().zip([syncs, faults, reads, queued]) {
            *ran += u32::from(world.thread(thread).runs);
        }
    }
    assert_eq!(looks, [0, 0, 100, 100]);
    world.pm.programs.system.worked_for.clear();
    for _ in 0..1000 {
        now_ns += LOOK_NS;
        world.set_time(now_ns);
    }
    assert!(world.thread(syncs).runs, "what was worked is paid off");
}

/// Services work for long at few messages: at copies of a MiB.
#[test]
fn copies_of_a_process_of_m3ipc_are_charged() {
    const COPY_NS: u64 = 141_000;
    let mut world = World::new();
    let init = world.init;
    let (_, hog) = create(&mut world, init, "hog", Settings { percent: 25, ..Settings::NONE }).unwrap();
    let t = world.pm.programs.table.find(hog).unwrap();
    let p = world.pm.programs.table.process_of(t);
    world.pm.programs.table[p].enrolled = true;
    let mut now_ns = world.pm.programs.system.now_ns;
    let mut ran = 0;
    for _ in 0..100 {
        now_ns += LOOK_NS;
        if world.thread(hog).runs {
            ran += 1;
            world.thread(hog).messages += 2 * LOOK_NS / COPY_NS;
            world.pm.programs.system.services_ns += LOOK_NS;
        }
        world.set_time(now_ns);
    }
    assert!((24..=27).contains(&ran), "{ran}");
}

#[test]
fn a_container_without_a_share_is_not_looked_at() {
    let mut world = World::new();
    let init = world.init;
    create(&mut world, init, "c", of_processes(NO_LIMIT)).unwrap();
    assert_eq!(world.pm.programs.system.alarm, None);
}

#[test]
fn a_successor_of_pm_counts_the_same_and_keeps_the_limits() {
    let mut world = World::new();
    let init = world.init;
    let (_, first) = create(&mut world, init, "c", Settings { percent: 10, ..of_processes(2) }).unwrap();
    world.fork(first);
    world.pm.recover();
    assert_eq!(charged(&world, 1), 2);
    assert_eq!(world.call(first, nr::FORK, &[]), Some(Err(Errno::EAGAIN)));
    assert_eq!(list(&mut world)[0].settings.percent, 10);
    world.pm.keep_alarm();
    assert!(world.pm.programs.system.alarm.is_some(), "somebody looks again");
}
