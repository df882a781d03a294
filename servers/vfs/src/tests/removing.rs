//! Removing the last name of a file: who has the file in use keeps it, and nobody else does.

use super::known::requests;
use super::*;
use abi::{Endpoint, Errno, linux::nr};

/// So much that the file has an indirect block.
const BYTES: usize = 60_000;
const STATFS_WORDS: usize = 15;

/// A file that is on the disk, of which the file system has nothing in its cache but the name and the inode.
fn world() -> World {
    let mut world = World::new();
    world.make("/file", &[1; BYTES], 0o666, (0, 0));
    world.evict();
    // This vfs knows nothing of them, and asks.
    world.restart_vfs();
    world.evict();
    world.stat(world.root, "/file").expect("it exists");
    world
}

/// Free blocks and inodes.
fn free(world: &World) -> (u64, u64) {
    assert_eq!(world.path_call(world.root, nr::STATFS, "/", &[DATA]), Ok(0));
    let words = world.read_words(world.root, DATA, STATFS_WORDS);
    (words[3], words[6])
}

fn unlink(world: &World, who: Endpoint, path: &str) -> Result<u64> {
    world.path_call(who, nr::UNLINK, path, &[])
}

/// A removal that waits for the disk.
fn begin_unlink(world: &World, who: Endpoint) -> [u64; 1] {
    let call = [world.path(who, 0, "/file")];
    world.hold_disk();
    assert_eq!(world.begin_call(who, nr::UNLINK, &call), None, "it waits for the indirect block");
    call
}

#[test]
fn a_file_without_users_is_freed_with_its_name() {
    let world = world();
    let before = free(&world);
    assert_eq!(unlink(&world, world.root, "/file"), Ok(0));
    let after = free(&world);
    assert!(after.0 > before.0 && after.1 == before.1 + 1);
    // Two names: the file has its user still, when the first is gone.
    world.make("/one", &[1; BYTES], 0o666, (0, 0));
    assert_eq!(world.paths_call(world.root, nr::LINK, "/one", "/two"), Ok(0));
    assert_eq!(unlink(&world, world.root, "/one"), Ok(0));
    assert_eq!(world.content("/two"), [1; BYTES]);
    assert_eq!(unlink(&world, world.root, "/two"), Ok(0));
    assert_eq!(free(&world), after);
}

#[test]
fn an_open_file_outlives_its_name() {
    let world = world();
    let before = free(&world);
    let file = world.open(world.root, "/file", O_RDONLY, 0).unwrap();
    assert_eq!(unlink(&world, world.root, "/file"), Ok(0));
    assert_eq!(world.read(world.root, file, BYTES).unwrap(), [1; BYTES]);
    assert_eq!(free(&world).1, before.1);
    world.close(world.root, file).unwrap();
    assert_eq!(free(&world).1, before.1 + 1);
}

#[test]
fn who_opens_a_file_while_it_is_removed_keeps_it() {
    let world = world();
    let before = free(&world);
    let child = world.fork(world.root, 0);
    begin_unlink(&world, child);
    let file = world.open(world.root, "/file", O_RDONLY, 0).expect("the name is still there");
    world.release_disk();
    assert_eq!(world.result(child), Some(Ok(0)));
    assert_eq!(unlink(&world, child, "/file"), Err(Errno::ENOENT));
    assert_eq!(world.read(world.root, file, BYTES).unwrap(), [1; BYTES]);
    assert_eq!(free(&world).1, before.1);
    world.close(world.root, file).unwrap();
    assert_eq!(free(&world).1, before.1 + 1);
}

#[test]
fn a_file_is_freed_once_though_vfs_dies_while_it_is_removed() {
    let mut world = world();
    let before = free(&world);
    let call = begin_unlink(&world, world.root);
    world.restart_vfs();
    world.machine.forget_request(world.root);
    world.release_disk();
    assert_eq!(world.repeat_call(world.root, nr::UNLINK, &call), Some(Ok(0)));
    assert_eq!(free(&world).1, before.1 + 1);
    world.make("/file", b"another", 0o666, (0, 0));
    assert_eq!(world.content("/file"), b"another");
}

#[test]
fn a_file_is_freed_once_though_its_file_system_dies_while_it_is_removed() {
    let mut world = world();
    let before = free(&world);
    begin_unlink(&world, world.root);
    world.machine.kill(world.ext2());
    world.release_disk();
    world.restart_ext2();
    assert_eq!(world.result(world.root), Some(Ok(0)));
    assert_eq!(free(&world).1, before.1 + 1);
}

/// A vfs that knows two directories in which all may make names, and no name in them. In one of them owners alone may remove names.
fn unknown() -> World {
    let mut world = World::new();
    world.make_directory("/dir", 0o777, (0, 0));
    world.make_directory("/dir/sub", 0o755, (0, 0));
    world.make_directory("/sticky", 0o1777, (0, 0));
    for path in ["/dir/file", "/dir/open", "/dir/other", "/dir/sub/file", "/sticky/file"] {
        world.make(path, &[1; BYTES], 0o666, (0, 0));
    }
    assert_eq!(world.paths_call(world.root, nr::LINK, "/dir/open", "/name"), Ok(0));
    world.restart_vfs();
    for directory in ["/dir", "/sticky"] {
        world.stat(world.root, directory).expect("it exists");
    }
    world
}

#[test]
fn a_name_that_is_not_known_is_removed_with_one_request() {
    let world = unknown();
    let before = free(&world);
    let asked = requests(&world, |world| unlink(world, world.root, "/dir/file"));
    assert_eq!(asked, 1);
    let asked = requests(&world, |world| {
        assert_eq!(unlink(world, world.root, "/dir/file"), Err(Errno::ENOENT));
        assert_eq!(world.path_call(world.root, nr::ACCESS, "/dir/file", &[0]), Err(Errno::ENOENT));
        Ok(0)
    });
    assert_eq!(asked, 0, "it is known not to exist");
    assert_eq!(free(&world).1, before.1 + 1);
}

#[test]
fn an_open_file_keeps_its_content_when_a_name_goes_that_is_not_known() {
    let world = unknown();
    let before = free(&world);
    let file = world.open(world.root, "/name", O_RDONLY, 0).unwrap();
    assert_eq!(unlink(&world, world.root, "/dir/open"), Ok(0));
    assert_eq!(world.fstat(world.root, file).unwrap().links, 1);
    assert_eq!(unlink(&world, world.root, "/name"), Ok(0));
    assert_eq!(world.read(world.root, file, BYTES).unwrap(), [1; BYTES]);
    assert_eq!(free(&world).1, before.1);
    world.close(world.root, file).unwrap();
    assert_eq!(free(&world).1, before.1 + 1);
}

#[test]
fn what_may_not_be_removed_stays_though_it_is_not_known() {
    let world = unknown();
    let user = world.user(1000, 100);
    assert_eq!(unlink(&world, user, "/sticky/file"), Err(Errno::EPERM));
    assert_eq!(unlink(&world, user, "/dir/sub"), Err(Errno::EISDIR));
    assert_eq!(unlink(&world, user, "/dir/file/"), Err(Errno::ENOTDIR));
    assert_eq!(unlink(&world, user, "/dir/sub/file"), Err(Errno::EACCES));
    assert_eq!(unlink(&world, user, "/sticky/none"), Err(Errno::ENOENT));
    assert_eq!(world.names(world.root, "/sticky").unwrap(), ["file"]);
    assert_eq!(unlink(&world, user, "/dir/other"), Ok(0));
    assert_eq!(unlink(&world, world.root, "/sticky/file"), Ok(0));
    assert_eq!(world.names(world.root, "/dir").unwrap(), ["file", "open", "sub"]);
}

#[test]
fn a_name_that_is_not_known_is_removed_once_whoever_dies() {
    for dies in ["vfs", "ext2"] {
        let mut world = unknown();
        world.evict();
        world.restart_vfs();
        world.stat(world.root, "/dir").expect("it exists");
        let before = free(&world);
        let call = [world.path(world.root, 0, "/dir/file")];
        world.hold_disk();
        assert_eq!(world.begin_call(world.root, nr::UNLINK, &call), None, "it waits for the disk");
        if dies == "vfs" {
            world.restart_vfs();
            world.machine.forget_request(world.root);
            world.release_disk();
            assert_eq!(world.repeat_call(world.root, nr::UNLINK, &call), Some(Ok(0)));
        } else {
            world.machine.kill(world.ext2());
            world.release_disk();
            world.restart_ext2();
            assert_eq!(world.result(world.root), Some(Ok(0)));
        }
        assert_eq!(free(&world).1, before.1 + 1, "{dies}");
        assert_eq!(world.names(world.root, "/dir").unwrap(), ["open", "other", "sub"]);
    }
}
