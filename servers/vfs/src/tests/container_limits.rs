//! Limits of containers: open files and pipes at the limit, over forks and messages, deaths of vfs, and the root directory of who enters one.

use super::*;
use abi::{Endpoint, Errno, Part, Parts, linux::nr, vfs};

const NUMBER: u8 = 9;
const O_DIRECTORY: u64 = 0o200000;

fn parts() -> Parts {
    Parts::SYSTEM.inside(NUMBER, Part::Users.flag() | Part::Mounts.flag()).with_limits()
}

fn limit(world: &World, files: u64, pipes: u64) {
    let request = vfs::LimitContainer { container: NUMBER.into(), files, pipes };
    assert_eq!(world.call_as_pm(request.message()), Ok(0));
}

/// A child of root's that pm makes in the container.
fn enter(world: &World) -> Endpoint {
    world.fork_into(world.root, 0, parts())
}

fn used(world: &World) -> (u64, u64) {
    vfs::ContainerFiles::results(&world.ask_as_pm(vfs::ContainerFiles { container: NUMBER.into() }.message())).unwrap()
}

#[test]
fn open_files_end_at_the_limit_and_come_back_with_the_last_close() {
    let mut world = World::new();
    world.make("/file", b"text", 0o644, (0, 0));
    limit(&world, 3, 9);
    let inside = enter(&world);
    let open = |world: &World| world.open(inside, "/file", O_RDONLY, 0);
    let first = open(&world).unwrap();
    let second = open(&world).unwrap();
    assert!(open(&world).is_ok());
    for _ in 0..2 {
        assert_eq!(open(&world), Err(Errno::ENFILE));
        assert_eq!(used(&world), (3, 0));
        assert!(world.open(world.root, "/file", O_RDONLY, 0).is_ok(), "who is outside is not concerned");
        world.restart_vfs();
    }
    // A child's descriptor is of the same open file, and keeps it.
    let child = world.fork_into(inside, 0, parts());
    assert_eq!(world.close(inside, first), Ok(0));
    assert_eq!(open(&world), Err(Errno::ENFILE));
    assert_eq!(world.close(child, first), Ok(0));
    assert!(open(&world).is_ok());
    assert_eq!(world.open(child, "/file", O_RDONLY, 0), Err(Errno::ENFILE));
    assert_eq!(world.close(inside, second), Ok(0));
    world.exit(inside);
    world.exit(child);
    assert_eq!(used(&world), (0, 0));
}

#[test]
fn pipes_end_at_the_limit() {
    let mut world = World::new();
    limit(&world, 100, 2);
    let inside = enter(&world);
    let pipe = |world: &World, who| world.call(who, nr::PIPE2, &[DATA, 0]);
    assert!(pipe(&world, inside).is_ok() && pipe(&world, inside).is_ok());
    for _ in 0..2 {
        assert_eq!(pipe(&world, inside).err(), Some(Errno::ENFILE));
        assert_eq!(used(&world), (4, 2));
        world.restart_vfs();
    }
    assert!(pipe(&world, world.root).is_ok());
    // Another limit holds from then on.
    limit(&world, 100, 3);
    assert!(pipe(&world, inside).is_ok() && pipe(&world, inside).is_err());
    world.exit(inside);
    assert_eq!(used(&world), (0, 0));
}

#[test]
fn who_is_made_in_a_container_has_its_root_and_nothing_of_the_outside() {
    let world = World::new();
    world.make_directory("/inner", 0o755, (0, 0));
    limit(&world, 100, 100);
    let first = enter(&world);
    assert_eq!(world.path_call(world.root, nr::CHDIR, "/inner", &[]), Ok(0));
    let second = enter(&world);
    for inside in [first, second] {
        let bytes = world.call(inside, nr::GETCWD, &[DATA, 100]).unwrap() as usize;
        assert_eq!(world.machine.read(inside, DATA, bytes), b"/\0", "not where its parent is");
        assert!(world.open(inside, "inner", O_RDONLY | O_DIRECTORY, 0).is_ok());
    }
}

#[test]
fn only_pm_sets_limits_and_for_containers_that_can_be() {
    let world = World::new();
    for container in [0, 63, 300] {
        let request = vfs::LimitContainer { container, files: 1, pipes: 1 };
        assert_eq!(world.call_as_pm(request.message()), Err(Errno::EINVAL));
    }
}

#[test]
fn memory_that_the_container_would_not_pay_for_is_refused() {
    let world = World::new();
    limit(&world, 100, 100);
    let inside = enter(&world);
    assert_eq!(world.path_call(inside, nr::MEMFD_CREATE, "name", &[0]), Err(Errno::ENOSYS));
}

#[test]
fn abstract_names_are_of_the_container() {
    let mut world = World::new();
    limit(&world, 100, 100);
    let inside = enter(&world);
    let socket = |world: &World, who| world.call(who, nr::SOCKET, &[1, 1, 0]).unwrap();
    let address = |world: &World, who| world.machine.write(who, DATA, b"\x01\x00\0name");
    let [outer, other] = [(); 2].map(|()| socket(&world, world.root));
    address(&world, world.root);
    assert_eq!(world.call(world.root, nr::BIND, &[outer, DATA, 7]), Ok(0));
    assert_eq!(world.call(world.root, nr::LISTEN, &[outer, 5]), Ok(0));
    for _ in 0..2 {
        let inner = socket(&world, inside);
        address(&world, inside);
        assert_eq!(world.call(inside, nr::CONNECT, &[inner, DATA, 7]), Err(Errno::ECONNREFUSED));
        assert_eq!(world.close(inside, inner), Ok(0));
        world.restart_vfs();
    }
    let own = socket(&world, inside);
    assert_eq!(world.call(inside, nr::BIND, &[own, DATA, 7]), Ok(0), "it is free inside");
    assert_eq!(world.call(inside, nr::LISTEN, &[own, 5]), Ok(0));
    world.restart_vfs();
    let client = socket(&world, inside);
    address(&world, inside);
    assert_eq!(world.call(inside, nr::CONNECT, &[client, DATA, 7]), Ok(0));
    assert_eq!(world.call(world.root, nr::CONNECT, &[other, DATA, 7]), Ok(0), "to the system's");
}

#[test]
fn the_owner_of_a_file_is_named_by_the_numbers_of_the_container() {
    const F_SETOWN: u64 = 8;
    const F_GETOWN: u64 = 9;
    let world = World::new();
    world.make("/file", b"text", 0o644, (0, 0));
    limit(&world, 100, 100);
    let numbered = parts().with(Part::Processes, NUMBER);
    let inside = world.fork_into(world.root, 0, numbered);
    let file = world.open(inside, "/file", O_RDONLY, 0).unwrap();
    // The programs of these tests have their slots as numbers, which none in the container shows.
    let outside = world.root.slot() as u64;
    assert_eq!(world.call(inside, nr::FCNTL, &[file, F_SETOWN, outside]), Err(Errno::ESRCH));
    assert_eq!(world.call(inside, nr::FCNTL, &[file, F_SETOWN, 0]), Ok(0));
    assert_eq!(world.call(inside, nr::FCNTL, &[file, F_GETOWN, 0]), Ok(0));
}

/// pm asks it of calls that last, to charge what services do for them.
#[test]
fn a_call_is_worked_on_until_it_waits_for_what_may_never_come() {
    let world = World::new();
    limit(&world, 100, 100);
    let [reads, syncs] = [(); 2].map(|()| enter(&world));
    let is_worked_on = |process| world.call_as_pm(vfs::WorksFor { process }.message()).map(|word| word == 1);
    assert!(world.call(reads, nr::PIPE2, &[DATA, 0]).is_ok());
    let pipe = u32::from_le_bytes(world.machine.read(reads, DATA, 4).try_into().unwrap());
    assert_eq!(world.begin_call(reads, nr::READ, &[pipe.into(), DATA, 1]), None);
    assert_eq!(is_worked_on(reads), Ok(false));
    let file = world.open(syncs, "/file", O_RDWR | O_CREAT, 0o600).unwrap();
    assert_eq!(world.call(syncs, nr::WRITE, &[file, DATA, 100]), Ok(100));
    world.hold_disk();
    assert_eq!(world.begin_call(syncs, nr::FSYNC, &[file]), None);
    assert_eq!(is_worked_on(syncs), Ok(true));
    assert_eq!(is_worked_on(Endpoint::VM), Err(Errno::ESRCH));
}
