//! Mounts of what is mounted already, and namespaces of mounts: what is seen where, what may be taken away, and what a death of vfs leaves.

use super::*;
use abi::{Endpoint, Errno, GrantId, Part, Parts, Word, linux::nr, vfs};
use std::string::String;

const MS_RDONLY: u64 = 1;
const MS_NOSUID: u64 = 2;
const MS_REMOUNT: u64 = 32;
const MS_BIND: u64 = 0x1000;
const MS_MOVE: u64 = 0x2000;
const MS_REC: u64 = 0x4000;
const MS_PRIVATE: u64 = 1 << 18;
const MS_SLAVE: u64 = 1 << 19;
const MS_SHARED: u64 = 1 << 20;
const MNT_DETACH: u64 = 2;

fn mount(world: &World, who: Endpoint, source: &str, target: &str, kind: &str, flags: u64) -> Result<u64> {
    let (source, target) = (world.path(who, 0, source), world.path(who, 1, target));
    let kind = world.data(who, &[kind.as_bytes(), &[0]].concat());
    world.call(who, nr::MOUNT, &[source, target, kind, flags, 0])
}

fn bind(world: &World, who: Endpoint, source: &str, target: &str, flags: u64) -> Result<u64> {
    mount(world, who, source, target, "", MS_BIND | flags)
}

fn unmount(world: &World, who: Endpoint, target: &str, flags: u64) -> Result<u64> {
    world.path_call(who, nr::UMOUNT2, target, &[flags])
}

/// Source, target and options of the mounts that a process sees.
fn mounts(world: &World, who: Endpoint) -> String {
    let request = vfs::Text { what: vfs::TEXT_MOUNTS, grant: GrantId(0), bytes: 4000, offset: 0, process: who };
    let bytes = world.call_as_procfs(request.message()).unwrap();
    String::from_utf8(world.machine.read(PROCFS, 0, bytes as usize)).expect("is text")
}

fn targets(world: &World, who: Endpoint) -> Vec<String> {
    let text = mounts(world, who);
    text.lines().filter_map(|line| line.split(' ').nth(1)).map(String::from).collect()
}

/// A world with two directories and a file in the first.
fn world() -> World {
    let mut world = World::new();
    world.start_tmpfs();
    world.make_directory("/a", 0o755, (0, 0));
    world.make_directory("/a/in", 0o755, (0, 0));
    world.make_directory("/b", 0o755, (0, 0));
    world.make("/a/file", b"text", 0o644, (0, 0));
    world
}

/// A child in a container with mounts of its own.
fn contained(world: &World, of: Endpoint, container: u8, part_of_users: bool) -> Endpoint {
    let flags = Part::Mounts.flag() | if part_of_users { Part::Users.flag() } else { 0 };
    let child = world.fork(of, 0);
    let parts = Parts::SYSTEM.inside(container, flags);
    assert_eq!(world.call_as_pm(vfs::SetParts { process: child, parts, unshared: 0 }.message()), Ok(0));
    child
}

#[test]
fn a_directory_that_is_bound_shows_the_same_files_in_two_places() {
    let world = world();
    assert_eq!(bind(&world, world.root, "/a", "/b", 0), Ok(0));
    assert_eq!(world.content("/b/file"), b"text");
    assert_eq!(world.stat(world.root, "/b/none"), Err(Errno::ENOENT));
    world.make("/a/none", b"now it is", 0o644, (0, 0));
    assert_eq!(world.content("/b/none"), b"now it is", "what was cached there is forgotten");
    assert_eq!(world.path_call(world.root, nr::UNLINK, "/b/none", &[]), Ok(0));
    assert_eq!(world.stat(world.root, "/a/none"), Err(Errno::ENOENT));
    assert_eq!(world.paths_call(world.root, nr::RENAME, "/a/in", "/a/out"), Ok(0));
    assert_eq!(world.names(world.root, "/b"), Ok(vec!["file".into(), "out".into()]));
    assert_eq!(world.stat(world.root, "/b/in"), Err(Errno::ENOENT));
    let inode = |path: &str| world.stat(world.root, path).expect("exists").inode;
    assert_eq!(inode("/a/file"), inode("/b/file"));
    let errors = [nr::RENAME, nr::LINK].map(|call| world.paths_call(world.root, call, "/a/file", "/b/other"));
    assert_eq!(errors, [Err(Errno::EXDEV); 2], "as on Linux, although it is one file system");
    assert_eq!(world.change_directory(world.root, "/b/out"), Ok(0));
    assert_eq!(world.working(world.root), "/b/out");
    assert_eq!(world.change_directory(world.root, "../.."), Ok(0));
    assert_eq!(world.working(world.root), "/", "the way up is that of the mount");
    assert_eq!(unmount(&world, world.root, "/b", 0), Ok(0));
    assert_eq!(world.names(world.root, "/b"), Ok(vec![]));
    assert_eq!(world.content("/a/file"), b"text");
}

#[test]
fn a_file_is_bound_over_a_file_and_a_directory_over_a_directory_only() {
    let world = world();
    world.make("/other", b"below", 0o644, (0, 0));
    assert_eq!(bind(&world, world.root, "/a/file", "/b", 0), Err(Errno::ENOTDIR));
    assert_eq!(bind(&world, world.root, "/a", "/other", 0), Err(Errno::ENOTDIR));
    assert_eq!(bind(&world, world.root, "/none", "/b", 0), Err(Errno::ENOENT));
    assert_eq!(bind(&world, world.root, "", "/b", 0), Err(Errno::EINVAL));
    assert_eq!(bind(&world, world.root, "/a/file", "/other", 0), Ok(0));
    assert_eq!(world.content("/other"), b"text");
    assert_eq!(world.path_call(world.root, nr::UNLINK, "/other", &[]), Err(Errno::EBUSY));
    assert_eq!(world.path_call(world.root, nr::UNLINK, "/a/file", &[]), Ok(0), "its own name may go");
    assert_eq!(world.content("/other"), b"text", "and the file stays");
    assert_eq!(unmount(&world, world.root, "/other", 0), Ok(0));
    assert_eq!(world.content("/other"), b"below");
    let user = world.user(1000, 100);
    assert_eq!(bind(&world, user, "/a", "/b", 0), Err(Errno::EPERM));
}

#[test]
fn flags_of_a_bound_directory_are_its_own() {
    let world = world();
    assert_eq!(bind(&world, world.root, "/a", "/b", 0), Ok(0));
    assert_eq!(mount(&world, world.root, "", "/b", "", MS_BIND | MS_REMOUNT | MS_RDONLY | MS_NOSUID), Ok(0));
    assert_eq!(world.open(world.root, "/b/file", O_WRONLY, 0), Err(Errno::EROFS));
    assert_eq!(world.path_call(world.root, nr::UNLINK, "/b/file", &[]), Err(Errno::EROFS));
    assert!(world.open(world.root, "/a/file", O_WRONLY, 0).is_ok());
    assert!(mounts(&world, world.root).ends_with("/dev/vda /b ext2 ro,nosuid 0 0\n"));
    assert_eq!(mount(&world, world.root, "", "/", "", MS_REMOUNT | MS_RDONLY), Ok(0));
    assert_eq!(mount(&world, world.root, "", "/b", "", MS_BIND | MS_REMOUNT), Ok(0));
    assert_eq!(world.open(world.root, "/b/file", O_WRONLY, 0), Err(Errno::EROFS), "the file system refuses writes");
    for flag in [MS_PRIVATE, MS_SLAVE, MS_PRIVATE | MS_REC] {
        assert_eq!(mount(&world, world.root, "", "/b", "", flag), Ok(0));
    }
    assert_eq!(mount(&world, world.root, "", "/b", "", MS_SHARED), Err(Errno::EINVAL));
    assert_eq!(mount(&world, world.root, "", "/a", "", MS_PRIVATE), Err(Errno::EINVAL), "nothing is mounted there");
}

#[test]
fn what_is_mounted_below_comes_along_if_asked_for() {
    let world = world();
    assert_eq!(mount(&world, world.root, "", "/a/in", "tmpfs", 0), Ok(0));
    world.make("/a/in/deep", b"below", 0o644, (0, 0));
    assert_eq!(bind(&world, world.root, "/a", "/b", 0), Ok(0));
    assert_eq!(world.names(world.root, "/b/in"), Ok(vec![]));
    assert_eq!(unmount(&world, world.root, "/b", 0), Ok(0));
    assert_eq!(bind(&world, world.root, "/a", "/b", MS_REC), Ok(0));
    assert_eq!(targets(&world, world.root), ["/", "/a/in", "/b", "/b/in"]);
    assert_eq!(world.content("/b/in/deep"), b"below");
    assert_eq!(unmount(&world, world.root, "/a/in", 0), Ok(0), "each is unmounted alone");
    assert_eq!(world.content("/b/in/deep"), b"below");
    assert_eq!(unmount(&world, world.root, "/b", 0), Err(Errno::EBUSY));
    assert_eq!(mount(&world, world.root, "/b", "/b/in", "", MS_MOVE), Err(Errno::ELOOP));
    assert_eq!(mount(&world, world.root, "/b/in", "/a/in", "", MS_MOVE), Ok(0));
    assert_eq!(targets(&world, world.root), ["/", "/b", "/a/in"]);
    assert_eq!(world.content("/a/in/deep"), b"below");
}

#[test]
fn a_detached_mount_lives_as_long_as_something_of_it_is_in_use() {
    let mut world = world();
    for round in 0..20 {
        assert_eq!(mount(&world, world.root, "", "/b", "tmpfs", 0), Ok(0), "round {round}");
        world.make("/b/file", b"in memory", 0o644, (0, 0));
        let file = world.open(world.root, "/b/file", O_RDONLY, 0).unwrap();
        assert_eq!(world.change_directory(world.root, "/b"), Ok(0));
        assert_eq!(unmount(&world, world.root, "/b", 0), Err(Errno::EBUSY));
        assert_eq!(unmount(&world, world.root, "/b", MNT_DETACH), Ok(0));
        assert_eq!(targets(&world, world.root), ["/"]);
        assert_eq!(world.names(world.root, "/b"), Ok(vec![]));
        if round % 3 == 0 {
            world.restart_vfs();
        }
        assert_eq!(world.read(world.root, file, 100), Ok(b"in memory".to_vec()));
        assert!(world.open_here(world.root, "file", O_RDONLY).is_ok());
        assert_eq!(world.change_directory(world.root, ".."), Ok(0));
        assert!(world.open_here(world.root, "file", O_RDONLY).is_ok(), "there is nothing above it");
        assert_eq!(world.change_directory(world.root, "/"), Ok(0));
        (file..file + 3).for_each(|file| assert_eq!(world.close(world.root, file), Ok(0)));
        world.machine.run();
    }
}

#[test]
fn a_container_has_copies_of_the_mounts_and_changes_only_these() {
    let world = world();
    assert_eq!(mount(&world, world.root, "", "/a/in", "tmpfs", 0), Ok(0));
    world.make("/a/in/deep", b"below", 0o644, (0, 0));
    assert_eq!(world.change_directory(world.root, "/a/in"), Ok(0));
    let inside = contained(&world, world.root, 3, false);
    assert_eq!(targets(&world, inside), ["/", "/a/in"]);
    assert!(world.open_here(inside, "deep", O_RDONLY).is_ok(), "it is in the same directory");
    assert_eq!(mount(&world, inside, "", "/b", "tmpfs", 0), Ok(0));
    assert_eq!(world.open(inside, "/b/new", O_CREAT | O_WRONLY, 0o644), Ok(1));
    assert_eq!(world.names(world.root, "/b"), Ok(vec![]));
    assert_eq!(targets(&world, world.root), ["/", "/a/in"]);
    assert_eq!(unmount(&world, inside, "/a/in", MNT_DETACH), Ok(0));
    assert_eq!(world.content("/a/in/deep"), b"below");
    assert_eq!(mount(&world, world.root, "", "/a", "tmpfs", 0), Ok(0));
    assert_eq!(targets(&world, inside), ["/", "/b"]);
    let child = contained(&world, inside, 3, false);
    world.exit(inside);
    assert_eq!(targets(&world, child), ["/", "/b"], "a child is in the same container");
    world.exit(child);
    world.machine.run();
    let again = contained(&world, world.root, 3, false);
    assert_eq!(targets(&world, again), ["/", "/a/in", "/a"], "its number is used again for another");
}

#[test]
fn in_a_container_of_other_users_nothing_is_uncovered() {
    let world = world();
    assert_eq!(mount(&world, world.root, "", "/a", "tmpfs", MS_RDONLY), Ok(0));
    assert_eq!(mount(&world, world.root, "", "/b", "ext2", 0), Err(Errno::ENOENT));
    let inside = contained(&world, world.root, 4, true);
    assert_eq!(unmount(&world, inside, "/a", MNT_DETACH), Err(Errno::EINVAL));
    assert_eq!(mount(&world, inside, "", "/a", "", MS_BIND | MS_REMOUNT), Err(Errno::EPERM));
    assert_eq!(mount(&world, inside, "", "/a", "", MS_BIND | MS_REMOUNT | MS_RDONLY | MS_NOSUID), Ok(0));
    assert_eq!(mount(&world, inside, "", "/a", "", MS_REMOUNT | MS_RDONLY | MS_NOSUID), Err(Errno::EPERM));
    assert_eq!(bind(&world, inside, "/", "/b", 0), Err(Errno::EINVAL), "it would show what is below /a");
    assert_eq!(bind(&world, inside, "/", "/b", MS_REC), Ok(0));
    assert_eq!(unmount(&world, inside, "/b/a", MNT_DETACH), Err(Errno::EINVAL));
    assert_eq!(unmount(&world, inside, "/b", MNT_DETACH), Ok(0));
    for kind in ["ext2", "devtmpfs"] {
        assert_eq!(mount(&world, inside, "/dev/vda", "/b", kind, 0), Err(Errno::EPERM), "{kind}");
    }
    assert_eq!(mount(&world, inside, "", "/b", "tmpfs", 0), Ok(0));
    assert!(mounts(&world, inside).ends_with("tmpfs /b tmpfs rw,nodev 0 0\n"));
}

/// What bwrap does, up to a new root; vfs dies after the step with this number.
fn change_root(world: &mut World, inside: Endpoint, death: usize) {
    let steps: [&dyn Fn(&World); 12] = [
        &|world| assert_eq!(mount(world, inside, "", "/", "", MS_REC | MS_SLAVE), Ok(0)),
        &|world| assert_eq!(mount(world, inside, "tmpfs", "/b", "tmpfs", MS_NOSUID), Ok(0)),
        &|world| assert_eq!(world.change_directory(inside, "/b"), Ok(0)),
        &|world| assert_eq!(world.path_call(inside, nr::MKDIR, "newroot", &[0o755]), Ok(0)),
        &|world| assert_eq!(bind(world, inside, "newroot", "newroot", MS_REC), Ok(0)),
        &|world| assert_eq!(world.path_call(inside, nr::MKDIR, "oldroot", &[0o755]), Ok(0)),
        &|world| assert_eq!(world.paths_call(inside, nr::PIVOT_ROOT, "/b", "oldroot"), Ok(0)),
        &|world| assert_eq!(world.change_directory(inside, "/"), Ok(0)),
        &|world| assert_eq!(bind(world, inside, "/oldroot/a", "/newroot", MS_REC), Ok(0)),
        &|world| assert_eq!(unmount(world, inside, "oldroot", MNT_DETACH), Ok(0)),
        &|world| assert_eq!(world.change_directory(inside, "/newroot"), Ok(0)),
        &|world| {
            let before = world.open(inside, "/", O_RDONLY | O_DIRECTORY, 0).expect("is a directory");
            assert_eq!(world.paths_call(inside, nr::PIVOT_ROOT, ".", "."), Ok(0));
            assert_eq!(world.call(inside, nr::FCHDIR, &[before]), Ok(0));
            assert_eq!(unmount(world, inside, ".", MNT_DETACH), Ok(0));
            assert_eq!(world.change_directory(inside, "/"), Ok(0));
            assert_eq!(world.close(inside, before), Ok(0));
        },
    ];
    for (number, step) in steps.iter().enumerate() {
        step(world);
        if number == death {
            world.restart_vfs();
        }
    }
}

#[test]
fn a_root_is_changed_and_nothing_of_the_old_one_is_left_whenever_vfs_dies() {
    for death in 0..13 {
        let mut world = world();
        let inside = contained(&world, world.root, 7, true);
        change_root(&mut world, inside, death);
        assert_eq!(targets(&world, inside), ["/"], "death after step {death}");
        assert_eq!(world.names(inside, "/"), Ok(vec!["file".into(), "in".into()]));
        assert_eq!(world.change_directory(inside, "../../.."), Ok(0));
        assert_eq!(world.working(inside), "/");
        assert_eq!(world.names(inside, ".."), Ok(vec!["file".into(), "in".into()]), "there is no way up");
        assert_eq!(targets(&world, world.root), ["/"]);
        world.exit(inside);
        world.machine.run();
        for round in 0..20 {
            let next = contained(&world, world.root, 7, true);
            assert_eq!(mount(&world, next, "", "/b", "tmpfs", 0), Ok(0), "round {round}");
            world.exit(next);
            world.machine.run();
        }
    }
}

#[test]
fn a_new_root_must_be_a_mount_and_have_room_for_the_old_one() {
    let world = world();
    let inside = contained(&world, world.root, 2, false);
    let pivot = |new: &str, old: &str| world.paths_call(inside, nr::PIVOT_ROOT, new, old);
    assert_eq!(pivot("/a", "/a/in"), Err(Errno::EBUSY));
    assert_eq!(pivot("/", "/a"), Err(Errno::EBUSY));
    assert_eq!(mount(&world, inside, "", "/b", "tmpfs", 0), Ok(0));
    assert_eq!(pivot("/b", "/a"), Err(Errno::EBUSY));
    assert_eq!(pivot("/b", "/b/none"), Err(Errno::ENOENT));
    assert_eq!(pivot("/a/file", "/b"), Err(Errno::ENOTDIR));
    assert_eq!(world.path_call(inside, nr::MKDIR, "/b/old", &[0o755]), Ok(0));
    assert_eq!(pivot("/b/old", "/b/old"), Err(Errno::EINVAL));
    assert_eq!(pivot("/b", "/b/old"), Ok(0));
    assert_eq!(world.names(inside, "/old/a"), Ok(vec!["file".into(), "in".into()]));
    assert_eq!(world.names(inside, "/old/.."), Ok(vec!["old".into()]));
    assert_eq!(targets(&world, inside), ["/old", "/"]);
    let user = world.user(1000, 100);
    assert_eq!(world.paths_call(user, nr::PIVOT_ROOT, "/a", "/a/in"), Err(Errno::EPERM));
}

#[test]
fn full_tables_refuse_a_container_and_leave_everything_as_it_was() {
    let world = world();
    let mut bound = 0;
    while bind(&world, world.root, "/a", "/b", 0).is_ok() {
        bound += 1;
    }
    assert!(bound > 40, "{bound}");
    let child = world.fork(world.root, 0);
    let parts = Parts::SYSTEM.inside(1, Part::Mounts.flag());
    let refused = vfs::SetParts { process: child, parts, unshared: 0 };
    assert_eq!(world.call_as_pm(refused.message()), Err(Errno::ENOSPC));
    assert_eq!(targets(&world, child).len(), bound + 1);
    while unmount(&world, world.root, "/b", 0).is_ok() {
        bound -= 1;
    }
    assert_eq!((bound, targets(&world, world.root)), (0, vec![String::from("/")]));
    assert_eq!(world.call_as_pm(refused.message()), Ok(0));
    assert_eq!(Parts::SYSTEM.to_word(), 0);
}
