//! Containers of programs: parts, users, names, process numbers, and what is left when they end.

use super::deaths::{Mortal, at_every_step};
use super::fake::{MEMORY, Told};
use super::world::World;
use abi::container::{CONTAINER_PIDS, first_pid};
use abi::linux::nr;
use abi::pm::{ProcessText, SetIdMap, TEXT_GROUP_MAP, TEXT_SETGROUPS, TEXT_USER_MAP};
use abi::{Endpoint, Errno, GrantId, Message, Part, Parts};
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

const BUFFER: u64 = MEMORY.start + 0x100;
const SIGCHLD: u64 = 17;
const SIGKILL: u64 = 9;
const SIGTERM: u64 = 15;
const USERS: u64 = Part::Users.flag();
const HOST: u64 = Part::Host.flag();
const IPC: u64 = Part::Ipc.flag();
const MOUNTS: u64 = Part::Mounts.flag();
const PROCESSES: u64 = Part::Processes.flag();
const PROCFS: Endpoint = Endpoint::new(23, 1);

type Result<T> = core::result::Result<T, Errno>;

fn clone(world: &mut World, parent: Endpoint, flags: u64) -> Result<(u64, Endpoint)> {
    let pid = world.call(parent, nr::CLONE, &[flags | SIGCHLD, 0, 0, 0, 0]).expect("clone does not wait")?;
    Ok((pid, world.newest()))
}

fn ask(world: &mut World, request: Message) -> Result<u64> {
    // rs may ask all that procfs may.
    let source = Endpoint::new(abi::endpoint::slot::RS, PROCFS.generation());
    world.pm.handle(&Message { source, ..request }).done().expect("answered at once").result()
}

fn set_map(world: &mut World, pid: u64, what: u64, text: &str, ids: (u64, u64)) -> Result<u64> {
    static WRITES: AtomicU64 = AtomicU64::new(1);
    write_map(world, pid, what, text, ids, WRITES.fetch_add(1, Ordering::Relaxed))
}

/// [`set_map`] by a write with this number.
fn write_map(world: &mut World, pid: u64, what: u64, text: &str, (uid, gid): (u64, u64), write: u64) -> Result<u64> {
    world.pm.programs.system.granted = text.as_bytes().to_vec();
    let bytes = text.len() as u64;
    ask(world, SetIdMap { pid, what, grant: GrantId(0), bytes, ids: uid | gid << 32, write }.message())
}

fn ids(world: &mut World, who: Endpoint) -> [u64; 4] {
    [nr::GETUID, nr::GETEUID, nr::GETGID, nr::GETEGID].map(|call| world.call(who, call, &[]).unwrap().unwrap())
}

fn host(world: &mut World, who: Endpoint) -> String {
    assert_eq!(world.call(who, nr::UNAME, &[BUFFER]), Some(Ok(0)));
    let bytes = world.read_bytes(who, BUFFER + 65, 65);
    String::from_utf8(bytes.split(|byte| *byte == 0).next().unwrap().to_vec()).unwrap()
}

fn name_host(world: &mut World, who: Endpoint, name: &str) -> Result<u64> {
    world.write_bytes(who, BUFFER, name.as_bytes());
    world.call(who, nr::SETHOSTNAME, &[BUFFER, name.len() as u64]).unwrap()
}

/// As `write_map` for ids of users, through as many lives of pm as it takes.
fn map_users(m: &mut Mortal, pid: u64, text: &str, write: u64) -> Result<u64> {
    let result = Cell::new(None);
    while result.get().is_none() {
        m.live(&|world| result.set(Some(write_map(world, pid, TEXT_USER_MAP, text, (1000, 100), write))));
    }
    result.get().expect("it was made")
}

#[test]
fn ids_are_mapped_by_a_write_that_pm_does_not_survive() {
    at_every_step(|m| {
        let (pid, child) = m.fork(m.world.init);
        assert_eq!(m.call(child, nr::SETGID, &[100]), Some(Ok(0)));
        assert_eq!(m.call(child, nr::SETUID, &[1000]), Some(Ok(0)));
        assert_eq!(m.call(child, nr::UNSHARE, &[USERS]), Some(Ok(0)));
        assert_eq!(map_users(m, pid, "0 1000 1", 1), Ok(8));
        assert_eq!(map_users(m, pid, "1 1000 1", 2), Err(Errno::EPERM));
        assert_eq!(map_users(m, pid, "0 1000 1", 3), Err(Errno::EPERM), "the same by another write");
    });
}

/// A process asks who its user is, often enough that the kernel knows, unless it has work for pm since a death.
fn show_user(m: &mut Mortal, who: Endpoint, user: u64) {
    for _ in 0..4 {
        assert_eq!(m.call(who, nr::GETUID, &[]), Some(Ok(user)));
    }
}

#[test]
fn the_kernel_knows_no_former_user_whenever_pm_dies() {
    at_every_step(|m| {
        let (pid, child) = m.fork(m.world.init);
        assert_eq!(m.call(child, nr::SETGID, &[100]), Some(Ok(0)));
        show_user(m, child, 0);
        assert_eq!(m.call(child, nr::SETUID, &[1000]), Some(Ok(0)));
        assert_eq!(m.world.kept(child), 0);
        show_user(m, child, 1000);
        assert_eq!(m.call(child, nr::UNSHARE, &[USERS]), Some(Ok(0)));
        assert_eq!(m.world.kept(child), 0);
        show_user(m, child, 65534);
        assert_eq!(map_users(m, pid, "7 1000 1", 1), Ok(8));
        assert_eq!(m.world.kept(child), 0);
        show_user(m, child, 7);
    });
}

#[test]
fn a_process_is_in_new_containers_once_and_its_first_child_is_the_first() {
    at_every_step(|m| {
        let (_, child) = m.fork(m.world.init);
        assert_eq!(m.call(child, nr::SETUID, &[1000]), Some(Ok(0)));
        assert_eq!(m.call(child, nr::UNSHARE, &[USERS | PROCESSES]), Some(Ok(0)));
        let maps = m.world.told().iter().filter(|told| matches!(told, Told::IdMap { .. })).count();
        assert!(maps > 0, "vfs knows its ids");
        for expected in [1, 2] {
            let pid = m.call(child, nr::FORK, &[]).expect("answered").expect("made");
            assert_eq!(pid % u64::from(CONTAINER_PIDS), expected);
        }
    });
}

#[test]
fn ids_are_mapped_once_but_a_write_may_be_made_again() {
    let mut world = World::new();
    let (_, user) = world.user(1000, 100);
    let (pid, _) = clone(&mut world, user, USERS).unwrap();
    let mut map = |write, text| write_map(&mut world, pid, TEXT_USER_MAP, text, (1000, 100), write);
    assert_eq!(map(1, "0 1000 1"), Ok(8));
    assert_eq!(map(2, "0 1000 1"), Err(Errno::EPERM));
    assert_eq!(map(1, "0 1000 1"), Ok(8), "vfs, procfs or pm has died before the reply");
    assert_eq!(map(1, "1 1000 1"), Err(Errno::EPERM));
}

#[test]
fn a_user_makes_a_container_in_which_it_has_rights_over_nothing_outside() {
    let mut world = World::new();
    let (_, user) = world.user(1000, 100);
    for parts in [HOST, IPC, MOUNTS, PROCESSES] {
        assert_eq!(clone(&mut world, user, parts), Err(Errno::EPERM));
        assert_eq!(world.call(user, nr::UNSHARE, &[parts]), Some(Err(Errno::EPERM)));
    }
    let (pid, inside) = clone(&mut world, user, USERS | HOST | MOUNTS).unwrap();
    let parts = Parts::SYSTEM.inside(1, USERS | HOST | MOUNTS);
    assert!(world.told().contains(&Told::Parts { thread: inside, parts, unshared: 0 }));
    assert_eq!(ids(&mut world, inside), [65534; 4]);
    assert_eq!(set_map(&mut world, pid, TEXT_USER_MAP, "0 1001 1", (1000, 100)), Err(Errno::EPERM));
    assert_eq!(set_map(&mut world, pid, TEXT_USER_MAP, "0 1000 1", (1000, 100)), Ok(8));
    assert_eq!(set_map(&mut world, pid, TEXT_GROUP_MAP, "0 100 1", (1000, 100)), Err(Errno::EPERM));
    assert_eq!(set_map(&mut world, pid, TEXT_SETGROUPS, "deny", (1000, 100)), Ok(4));
    assert_eq!(set_map(&mut world, pid, TEXT_GROUP_MAP, "0 100 1", (1000, 100)), Ok(7));
    assert_eq!(ids(&mut world, inside), [0; 4]);
    assert!(world.told().contains(&Told::IdMap { thread: inside, users: 1000 << 32, groups: 100 << 32 }));
    assert_eq!(ids(&mut world, user), [1000, 1000, 100, 100]);
    assert_eq!(name_host(&mut world, inside, "inner"), Ok(0));
    assert_eq!([inside, user].map(|who| host(&mut world, who)), ["inner", "skink"]);
    let refused: [(u32, &[u64]); 6] = [
        (nr::KILL, &[1, SIGTERM]),
        (nr::SETUID, &[1]),
        (nr::SETGROUPS, &[0, 0]),
        (nr::SETPRIORITY, &[0, 0, -5i64 as u64]),
        (nr::REBOOT, &[0xfee1_dead, 672_274_793, 0x4321_fedc]),
        (nr::SETTIMEOFDAY, &[BUFFER, 0]),
    ];
    let errors = refused.map(|(call, arguments)| world.call(inside, call, arguments).unwrap());
    use Errno as E;
    let wanted = [E::EPERM, E::EINVAL, E::EPERM, E::EACCES, E::EPERM, E::EPERM];
    assert_eq!(errors, wanted.map(Err));
    // A nested one of the same user, which has no name of its own for the host.
    assert_eq!(world.call(inside, nr::UNSHARE, &[USERS]), Some(Ok(0)));
    assert_eq!(name_host(&mut world, inside, "other"), Err(Errno::EPERM));
    assert_eq!(set_map(&mut world, pid, TEXT_USER_MAP, "77 0 1", (1000, 100)), Ok(6));
    assert_eq!(ids(&mut world, inside)[..2], [77, 77]);
    let text = ProcessText { pid, what: TEXT_USER_MAP, grant: GrantId(0), bytes: 100 };
    assert_eq!(ask(&mut world, text.message()), Ok(12));
}

#[test]
fn what_clone_and_unshare_cannot_give_is_refused() {
    let mut world = World::new();
    let init = world.init;
    for (flags, error) in [
        (Part::Network.flag(), Errno::EINVAL),
        (MOUNTS | 0x200, Errno::EINVAL),
        (USERS | 0x200, Errno::EINVAL),
        (HOST | 0x8000, Errno::EINVAL),
        (0x80, Errno::EINVAL),
    ] {
        assert_eq!(clone(&mut world, init, flags), Err(error), "{flags:#x}");
    }
    assert_eq!(world.call(init, nr::UNSHARE, &[1]), Some(Err(Errno::EINVAL)));
    let thread = world.call(init, nr::CLONE, &[0x1_0f00, BUFFER, 0, 0, 0]);
    assert!(thread.unwrap().is_ok());
    assert_eq!(world.call(init, nr::UNSHARE, &[HOST]), Some(Err(Errno::EINVAL)), "it has another thread");
    assert_eq!(world.call(init, nr::UNSHARE, &[0x600]), Some(Ok(0)), "files and directories are of a thread");
}

#[test]
fn objects_of_system_v_are_seen_in_their_container_alone_and_end_with_it() {
    let mut world = World::new();
    let init = world.init;
    const CREATE: u64 = 0o1666;
    let outer = world.call(init, nr::SEMGET, &[7, 1, CREATE]).unwrap().unwrap();
    let (_, inside) = clone(&mut world, init, IPC).unwrap();
    assert_eq!(world.call(inside, nr::SEMGET, &[7, 1, 0]), Some(Err(Errno::ENOENT)));
    assert_eq!(world.call(inside, nr::SEMCTL, &[outer, 0, 12]), Some(Err(Errno::EACCES)));
    assert_eq!(world.call(inside, nr::SEMCTL, &[outer, 0, 0]), Some(Err(Errno::EPERM)));
    for call in [nr::SEMGET, nr::MSGGET] {
        let arguments: &[u64] = if call == nr::SEMGET { &[7, 1, CREATE] } else { &[7, CREATE] };
        assert!(world.call(inside, call, arguments).unwrap().is_ok());
    }
    assert_eq!(world.call(init, nr::MSGGET, &[7, 0]), Some(Err(Errno::ENOENT)));
    assert_eq!(world.pm.semaphores.all.iter().count(), 2);
    world.call(inside, nr::EXIT_GROUP, &[0]);
    assert!(world.call(init, nr::WAIT4, &[u64::MAX, 0, 0, 0]).unwrap().is_ok());
    let (_, next) = clone(&mut world, init, IPC).unwrap();
    assert_eq!((world.pm.semaphores.all.iter().count(), world.pm.messages.all.iter().count()), (1, 0));
    assert_eq!(world.call(next, nr::SEMGET, &[7, 1, 0]), Some(Err(Errno::ENOENT)), "it has the number of the first");
}

#[test]
fn a_container_has_process_numbers_of_its_own() {
    let mut world = World::new();
    let init = world.init;
    let (pid, first) = clone(&mut world, init, PROCESSES).unwrap();
    assert_eq!(pid, u64::from(first_pid(1)) + 1, "the system has another number for it");
    let own = |world: &mut World, who, call| world.call(who, call, &[]).unwrap().unwrap();
    assert_eq!(
        [nr::GETPID, nr::GETTID, nr::GETPPID, nr::GETPGRP].map(|call| own(&mut world, first, call)),
        [1, 1, 0, 0]
    );
    let (second, child) = clone(&mut world, first, 0).unwrap();
    assert_eq!((second, own(&mut world, child, nr::GETPID), own(&mut world, child, nr::GETPPID)), (2, 2, 1));
    assert_eq!(world.call(child, nr::SETSID, &[]), Some(Ok(2)));
    assert_eq!(own(&mut world, child, nr::GETPGRP), 2);
    assert_eq!(world.call(first, nr::GETPGID, &[2]), Some(Ok(2)));
    assert_eq!(world.call(init, nr::GETPGID, &[pid + 1]), Some(Ok(pid + 1)));
    // Nobody outside has a number inside, not even by his own.
    let (_, outsider) = world.fork(init);
    for number in [pid, 300, 511, 512, u64::from(first_pid(2)) + 1] {
        assert_eq!(world.call(child, nr::KILL, &[number, 0]), Some(Err(Errno::ESRCH)), "{number}");
        assert_eq!(world.call(child, nr::GETPGID, &[number]), Some(Err(Errno::ESRCH)), "{number}");
    }
    assert_eq!(world.call(child, nr::KILL, &[-300i64 as u64, 0]), Some(Err(Errno::ESRCH)));
    assert_eq!(
        world.call(child, nr::KILL, &[-1i64 as u64, SIGKILL]),
        Some(Err(Errno::ESRCH)),
        "only the first is left"
    );
    assert!(world.is_there(outsider) && world.is_there(first));
    for signal in [SIGKILL, SIGTERM] {
        assert_eq!(world.call(child, nr::KILL, &[1, signal]), Some(Ok(0)));
        assert!(world.is_there(first), "nobody inside ends the first process");
    }
    let (third, grandchild) = clone(&mut world, child, 0).unwrap();
    assert_eq!(third, 3);
    world.call(child, nr::EXIT_GROUP, &[5]);
    assert_eq!(world.call(first, nr::WAIT4, &[2, BUFFER, 0, 0]), Some(Ok(2)));
    assert_eq!(world.read(first, BUFFER) as u32, 5 << 8);
    assert_eq!(own(&mut world, grandchild, nr::GETPPID), 1, "the first adopts");
    assert_eq!(world.call(init, nr::KILL, &[pid, SIGTERM]), Some(Ok(0)));
    assert!(world.is_there(first), "as on Linux only two signals from outside end it");
    world.call(first, nr::EXIT_GROUP, &[7]);
    assert!(!world.is_there(grandchild), "all end with the first");
    assert_eq!(world.call(init, nr::WAIT4, &[pid, BUFFER, 0, 0]), Some(Ok(pid)));
    assert_eq!(world.read(init, BUFFER) as u32, 7 << 8);
}

#[test]
fn numbers_of_a_container_end_and_come_again() {
    let mut world = World::new();
    let init = world.init;
    assert_eq!(world.call(init, nr::UNSHARE, &[PROCESSES]), Some(Ok(0)));
    assert_eq!(world.call(init, nr::GETPID, &[]), Some(Ok(1)), "its children are in the container");
    let (_, first) = world.fork(init);
    assert_eq!(world.call(first, nr::GETPID, &[]), Some(Ok(1)));
    for round in 0..600u64 {
        let (number, child) = world.fork(first);
        assert_eq!(number, 2 + round % 510, "round {round}");
        world.call(child, nr::EXIT_GROUP, &[0]);
        assert_eq!(world.call(first, nr::WAIT4, &[u64::MAX, 0, 0, 0]), Some(Ok(number)));
    }
    world.call(first, nr::EXIT_GROUP, &[0]);
    assert_eq!(world.call(init, nr::FORK, &[]), Some(Err(Errno::ENOMEM)), "its first process has ended");
    assert_eq!(world.call(init, nr::UNSHARE, &[PROCESSES]), Some(Ok(0)), "it chooses another one");
    let (_, next) = world.fork(init);
    assert_eq!(world.call(next, nr::GETPID, &[]), Some(Ok(1)));
    assert_eq!(clone(&mut world, next, PROCESSES), Err(Errno::ENOSPC), "one within another");
}

#[test]
fn containers_outlive_pm() {
    let mut world = World::new();
    let init = world.init;
    let (pid, first) = clone(&mut world, init, PROCESSES | HOST | IPC).unwrap();
    assert_eq!(name_host(&mut world, first, "inner"), Ok(0));
    let (_, child) = clone(&mut world, first, 0).unwrap();
    world.pm.recover();
    assert_eq!(host(&mut world, child), "inner");
    assert_eq!([first, child].map(|who| world.call(who, nr::GETPID, &[]).unwrap()), [Ok(1), Ok(2)]);
    world.call(first, nr::EXIT_GROUP, &[0]);
    assert!(!world.is_there(child));
    assert_eq!(world.call(init, nr::WAIT4, &[pid, 0, 0, 0]), Some(Ok(pid)));
    world.pm.recover();
    let (again, _) = clone(&mut world, init, HOST).unwrap();
    assert!(again < u64::from(first_pid(1)), "it is the system's number");
}
