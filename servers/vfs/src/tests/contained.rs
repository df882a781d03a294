//! What a container with users of its own sees of files, and what stays closed to its superuser.

use super::*;
use abi::{CapabilitySet, Endpoint, Errno, GrantId, Part, Parts, linux::nr, vfs};

/// A child of root's in a container of users, with every right there; `map`: system's ids of its user and group 0.
fn contained(world: &World, (uid, gid): (u32, u32), map: bool) -> Endpoint {
    let child = world.fork(world.root, 0);
    let parts = Parts::SYSTEM.inside(5, Part::Users.flag() | Part::Ipc.flag() | Part::Mounts.flag());
    assert_eq!(world.call_as_pm(vfs::SetParts { process: child, parts, unshared: vfs::FORK_FS }.message()), Ok(0));
    if map {
        let (users, groups) = (u64::from(uid) << 32, u64::from(gid) << 32);
        assert_eq!(world.call_as_pm(vfs::SetIdMap { process: child, users, groups }.message()), Ok(0));
    }
    let ids = u64::from(uid) | u64::from(gid) << 32;
    let (capabilities, grant) = (CapabilitySet::ALL, GrantId(0));
    let request = vfs::SetIds {
        process: child,
        effective: ids,
        real: ids,
        grant,
        groups: 0,
        capabilities,
        real_capabilities: capabilities,
    };
    assert_eq!(world.call_as_pm(request.message()), Ok(0));
    child
}

fn owner(world: &World, who: Endpoint, path: &str) -> (u32, u32) {
    let stat = world.stat(who, path).expect("exists");
    (stat.uid, stat.gid)
}

#[test]
fn files_belong_to_the_users_that_the_container_knows() {
    let mut world = World::new();
    world.make_directory("/open", 0o777, (0, 0));
    world.make("/open/roots", b"text", 0o600, (0, 0));
    world.make("/open/theirs", b"text", 0, (1000, 100));
    let inside = contained(&world, (1000, 100), true);
    for _ in 0..2 {
        assert_eq!(owner(&world, inside, "/open/roots"), (65534, 65534));
        assert_eq!(owner(&world, inside, "/open/theirs"), (0, 0));
        assert_eq!(
            world.open(inside, "/open/roots", O_RDONLY, 0),
            Err(Errno::EACCES),
            "a right over its own files alone"
        );
        let own = world.open(inside, "/open/theirs", O_RDWR, 0).expect("it is its own, whatever the mode");
        assert_eq!(world.close(inside, own), Ok(0));
        assert_eq!(world.path_call(inside, nr::CHOWN, "/open/theirs", &[1, 0]), Err(Errno::EINVAL));
        assert_eq!(world.path_call(inside, nr::CHOWN, "/open/theirs", &[0, 0]), Ok(0));
        assert_eq!(owner(&world, world.root, "/open/theirs"), (1000, 100));
        assert_eq!(world.path_call(inside, nr::CHMOD, "/open/roots", &[0o777]), Err(Errno::EPERM));
        world.restart_vfs();
    }
    let nobody = contained(&world, (1000, 100), false);
    assert_eq!(owner(&world, nobody, "/open/theirs"), (65534, 65534));
    assert_eq!(world.path_call(nobody, nr::CHOWN, "/open/theirs", &[0, 0]), Err(Errno::EINVAL));
}

#[test]
fn root_in_a_container_has_the_systems_files_but_no_power() {
    let world = World::new();
    assert_eq!(world.path_call(world.root, nr::MKNOD, "/disk", &[u64::from(S_IFBLK) | 0o666, 0xfe00]), Ok(0));
    let inside = contained(&world, (0, 0), true);
    assert_eq!(world.open(inside, "/disk", O_RDONLY, 0), Err(Errno::EACCES), "a disk holds everybody's files");
    assert_eq!(world.path_call(inside, nr::MKNOD, "/null", &[u64::from(S_IFCHR) | 0o666, 0x103]), Err(Errno::EPERM));
    assert_eq!(world.path_call(inside, nr::MKNOD, "/fifo", &[u64::from(S_IFIFO) | 0o666, 0]), Ok(0));
    world.make_directory("/dir", 0o755, (0, 0));
    assert_eq!(world.path_call(inside, nr::CHROOT, "/dir", &[]), Ok(0));
    let parts = Parts::SYSTEM.inside(6, Part::Users.flag());
    let nested = vfs::SetParts { process: inside, parts, unshared: 0 };
    assert_eq!(world.call_as_pm(nested.message()), Err(Errno::EPERM), "it would leave the directory");
}

#[test]
fn message_queues_are_found_in_their_container_and_end_with_it() {
    let mut world = World::new();
    let create =
        |world: &World, who| world.path_call(who, nr::MQ_OPEN, "queue", &[O_CREAT | O_EXCL | O_RDWR, 0o600, 0]);
    assert!(create(&world, world.root).is_ok());
    let inside = contained(&world, (0, 0), true);
    assert_eq!(world.path_call(inside, nr::MQ_OPEN, "queue", &[O_RDWR, 0, 0]), Err(Errno::ENOENT));
    assert!(create(&world, inside).is_ok());
    world.restart_vfs();
    assert_eq!(create(&world, inside), Err(Errno::EEXIST));
    world.exit(inside);
    let next = contained(&world, (0, 0), true);
    assert_eq!(world.path_call(next, nr::MQ_OPEN, "queue", &[O_RDWR, 0, 0]), Err(Errno::ENOENT));
    assert!(world.path_call(world.root, nr::MQ_OPEN, "queue", &[O_RDWR, 0, 0]).is_ok());
}
