//! Links of nodes in use: a file that has lost all its names gets none by its descriptor, and a directory is gone when it is removed and not
//! before, whatever has come into it and gone.

use super::*;
use abi::{Endpoint, Errno, linux::nr};
use std::format;

const AT_FDCWD: u64 = -100i64 as u64;
const AT_EMPTY_PATH: u64 = 0x1000;
const RENAME_EXCHANGE: u64 = 2;

/// Gives an open file another name.
fn link_open(world: &World, who: Endpoint, file: u64, to: &str) -> Result<u64> {
    let (empty, to) = (world.path(who, 0, ""), world.path(who, 1, to));
    world.call(who, nr::LINKAT, &[file, empty, AT_FDCWD, to, AT_EMPTY_PATH])
}

fn exchange(world: &World, one: &str, other: &str) -> Result<u64> {
    let (one, other) = (world.path(world.root, 0, one), world.path(world.root, 1, other));
    world.call(world.root, nr::RENAMEAT2, &[AT_FDCWD, one, AT_FDCWD, other, RENAME_EXCHANGE])
}

fn unlink(world: &World, path: &str) -> Result<u64> {
    world.path_call(world.root, nr::UNLINK, path, &[])
}

#[test]
fn a_file_gets_another_name_by_its_descriptor_until_it_has_lost_the_last_one() {
    for names in 1..4 {
        let world = World::new();
        world.make("/name0", b"x", 0o644, (0, 0));
        let file = world.open(world.root, "/name0", O_RDONLY, 0).unwrap();
        for number in 1..names {
            assert_eq!(world.paths_call(world.root, nr::LINK, "/name0", &format!("/name{number}")), Ok(0));
        }
        for number in 1..names {
            assert_eq!(unlink(&world, &format!("/name{number}")), Ok(0));
        }
        assert_eq!(link_open(&world, world.root, file, "/again"), Ok(0), "{names} names");
        assert_eq!([unlink(&world, "/name0"), unlink(&world, "/again")], [Ok(0); 2]);
        assert_eq!(link_open(&world, world.root, file, "/again"), Err(Errno::ENOENT), "{names} names");
        assert_eq!(unlink(&world, "/again"), Err(Errno::ENOENT));
    }
}

#[test]
fn a_file_that_is_replaced_loses_its_name() {
    let world = World::new();
    for path in ["/old", "/new", "/kept", "/other"] {
        world.make(path, b"x", 0o644, (0, 0));
    }
    let [old, kept] = ["/old", "/kept"].map(|path| world.open(world.root, path, O_RDONLY, 0).unwrap());
    assert_eq!(world.paths_call(world.root, nr::RENAME, "/new", "/old"), Ok(0));
    assert_eq!(link_open(&world, world.root, old, "/again"), Err(Errno::ENOENT));
    assert_eq!(exchange(&world, "/kept", "/other"), Ok(0), "swapped names are no fewer");
    assert_eq!(world.paths_call(world.root, nr::RENAME, "/other", "/moved"), Ok(0));
    assert_eq!(link_open(&world, world.root, kept, "/again"), Ok(0));
}

#[test]
fn a_directory_in_use_outlives_all_that_comes_and_goes_in_it() {
    let world = World::new();
    let root = world.root;
    for dir in ["/one", "/two"] {
        world.make_directory(dir, 0o755, (0, 0));
        world.open(root, dir, O_RDONLY, 0).unwrap();
    }
    let mkdir = |path: &str| world.path_call(root, nr::MKDIR, path, &[0o755]);
    let rmdir = |path: &str| world.path_call(root, nr::RMDIR, path, &[]);
    let rename = |from: &str, to: &str| world.paths_call(root, nr::RENAME, from, to);
    for _ in 0..4 {
        assert_eq!([mkdir("/one/a"), rmdir("/one/a")], [Ok(0); 2]);
        assert_eq!([mkdir("/one/a"), rename("/one/a", "/two/a"), rmdir("/two/a")], [Ok(0); 3], "to the other");
        assert_eq!([mkdir("/two/a"), mkdir("/one/a"), rename("/one/a", "/two/a"), rmdir("/two/a")], [Ok(0); 4]);
        assert_eq!([mkdir("/one/a"), mkdir("/one/b"), rename("/one/a", "/one/b"), rmdir("/one/b")], [Ok(0); 4]);
        world.make("/two/f", b"x", 0o644, (0, 0));
        assert_eq!(
            [mkdir("/one/a"), exchange(&world, "/one/a", "/two/f"), rmdir("/two/a")],
            [Ok(0), Ok(0), Err(Errno::ENOENT)]
        );
        assert_eq!([rmdir("/two/f"), unlink(&world, "/one/a")], [Ok(0); 2]);
    }
    for dir in ["/one", "/two"] {
        world.make(&format!("{dir}/file"), b"x", 0o644, (0, 0));
        assert_eq!(unlink(&world, &format!("{dir}/file")), Ok(0));
        assert_eq!(mkdir(&format!("{dir}/inner")), Ok(0));
        assert_eq!([rmdir(dir), rmdir(&format!("{dir}/inner")), rmdir(dir)], [Err(Errno::ENOTEMPTY), Ok(0), Ok(0)]);
    }
}
