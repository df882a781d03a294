//! Removing the last name of a file: who has the file in use keeps it, and nobody else does.

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
