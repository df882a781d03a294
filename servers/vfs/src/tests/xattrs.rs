//! Extended attributes: the forms of the calls, namespaces and rights, and that each change is made once.

use super::*;
use abi::{Endpoint, Errno, linux::nr};
use std::vec::Vec;

const CREATE: u64 = 1;
const REPLACE: u64 = 2;

fn set(world: &World, who: Endpoint, path: &str, name: &str, value: &[u8], flags: u64) -> Result<u64> {
    let (name, value_at) = (world.path(who, 1, name), world.data(who, value));
    world.path_call(who, nr::SETXATTR, path, &[name, value_at, value.len() as u64, flags])
}

fn get(world: &World, who: Endpoint, path: &str, name: &str) -> Result<Vec<u8>> {
    let name = world.path(who, 1, name);
    let bytes = world.path_call(who, nr::GETXATTR, path, &[name, DATA, 4096])?;
    Ok(world.machine.read(who, DATA, bytes as usize))
}

fn list(world: &World, who: Endpoint, path: &str) -> Result<Vec<u8>> {
    let bytes = world.path_call(who, nr::LISTXATTR, path, &[DATA, 4096])?;
    Ok(world.machine.read(who, DATA, bytes as usize))
}

fn remove(world: &World, who: Endpoint, path: &str, name: &str) -> Result<u64> {
    world.paths_call(who, nr::REMOVEXATTR, path, name)
}

#[test]
fn attributes_are_set_read_listed_and_removed() {
    let world = World::new();
    let root = world.root;
    world.make("/file", b"", 0o644, (0, 0));
    assert_eq!(set(&world, root, "/file", "user.one", b"first", REPLACE), Err(Errno::ENODATA));
    assert_eq!(set(&world, root, "/file", "user.one", b"first", CREATE), Ok(0));
    assert_eq!(set(&world, root, "/file", "user.one", b"first", CREATE), Err(Errno::EEXIST));
    assert_eq!(set(&world, root, "/file", "user.one", b"second", REPLACE), Ok(0));
    assert_eq!(set(&world, root, "/file", "user.one", b"x", CREATE | REPLACE), Err(Errno::EEXIST));
    assert_eq!(set(&world, root, "/file", "user.two", b"x", CREATE | REPLACE), Err(Errno::ENODATA));
    assert_eq!(set(&world, root, "/file", "user.one", b"x", 4), Err(Errno::EINVAL));
    assert_eq!(get(&world, root, "/file", "user.one").unwrap(), b"second");
    let name = world.path(root, 1, "user.one");
    assert_eq!(world.path_call(root, nr::GETXATTR, "/file", &[name, DATA, 0]), Ok(6));
    assert_eq!(world.path_call(root, nr::GETXATTR, "/file", &[name, DATA, 5]), Err(Errno::ERANGE));
    assert_eq!(world.path_call(root, nr::GETXATTR, "/file", &[name, 8, 6]), Err(Errno::EFAULT));
    assert_eq!(list(&world, root, "/file").unwrap(), b"user.one\0");
    assert_eq!(world.path_call(root, nr::LISTXATTR, "/file", &[DATA, 3]), Err(Errno::ERANGE));
    assert_eq!(remove(&world, root, "/file", "user.one"), Ok(0));
    assert_eq!(remove(&world, root, "/file", "user.one"), Err(Errno::ENODATA));
    assert_eq!(get(&world, root, "/file", "user.one"), Err(Errno::ENODATA));
}

#[test]
fn names_and_values_have_limits() {
    let world = World::new();
    let root = world.root;
    world.make("/file", b"", 0o644, (0, 0));
    for (name, error) in [
        ("", Errno::ERANGE),
        ("user.", Errno::EINVAL),
        ("name", Errno::EOPNOTSUPP),
        ("system.posix_acl_access", Errno::EOPNOTSUPP),
        (&std::format!("user.{}", "n".repeat(251)), Errno::ERANGE),
        (&std::format!("user.{}", "n".repeat(5000)), Errno::ERANGE),
    ] {
        assert_eq!(set(&world, root, "/file", name, b"x", 0), Err(error), "{name}");
    }
    assert_eq!(set(&world, root, "/file", &std::format!("user.{}", "n".repeat(250)), b"x", 0), Ok(0));
    assert_eq!(set(&world, root, "/file", "user.large", &[1; 65536], 0), Err(Errno::ENOSPC));
    assert_eq!(set(&world, root, "/file", "user.large", &[1; 65537], 0), Err(Errno::E2BIG));
    let name = world.path(root, 1, "user.large");
    assert_eq!(world.path_call(root, nr::SETXATTR, "/file", &[name, 8, 10, 0]), Err(Errno::EFAULT));
}

#[test]
fn namespaces_have_their_rules() {
    let world = World::new();
    let (root, user) = (world.root, world.user(1000, 100));
    world.make("/file", b"", 0o644, (0, 0));
    world.make("/secret", b"", 0o600, (0, 0));
    world.make_directory("/sticky", 0o1777, (0, 0));
    world.paths_call(root, nr::SYMLINK, "file", "/link").unwrap();
    for (name, value) in [("user.a", b"1"), ("trusted.b", b"2"), ("security.c", b"3")] {
        assert_eq!(set(&world, root, "/file", name, value, 0), Ok(0));
    }
    assert_eq!(list(&world, root, "/file").unwrap(), b"user.a\0trusted.b\0security.c\0");
    assert_eq!(list(&world, user, "/file").unwrap(), b"user.a\0security.c\0");
    assert_eq!(get(&world, user, "/file", "user.a").unwrap(), b"1");
    assert_eq!(get(&world, user, "/file", "trusted.b"), Err(Errno::ENODATA));
    assert_eq!(get(&world, user, "/file", "security.c").unwrap(), b"3");
    assert_eq!(get(&world, user, "/secret", "user.a"), Err(Errno::EACCES));
    assert_eq!(set(&world, user, "/file", "user.a", b"x", 0), Err(Errno::EACCES));
    assert_eq!(set(&world, user, "/file", "trusted.b", b"x", 0), Err(Errno::EPERM));
    assert_eq!(remove(&world, user, "/file", "security.c"), Err(Errno::EPERM));
    assert_eq!(set(&world, user, "/sticky", "user.a", b"x", 0), Err(Errno::EPERM));
    assert_eq!(set(&world, root, "/sticky", "user.a", b"x", 0), Ok(0));
    let of_link = |call: u32, name: &str, more: &[u64]| {
        let name = world.path(root, 1, name);
        world.path_call(root, call, "/link", &[&[name], more].concat())
    };
    assert_eq!(of_link(nr::LSETXATTR, "user.a", &[DATA, 1, 0]), Err(Errno::EPERM));
    assert_eq!(of_link(nr::LGETXATTR, "user.a", &[DATA, 1]), Err(Errno::ENODATA));
    assert_eq!(of_link(nr::LSETXATTR, "trusted.x", &[DATA, 1, 0]), Ok(0));
    assert_eq!(of_link(nr::LREMOVEXATTR, "trusted.x", &[]), Ok(0));
    assert_eq!(of_link(nr::REMOVEXATTR, "user.a", &[]), Ok(0), "of the file");
}

#[test]
fn descriptors_name_files_too() {
    let world = World::new();
    let root = world.root;
    world.make("/file", b"", 0o644, (0, 0));
    let (file, path) = (world.open(root, "/file", O_RDONLY, 0).unwrap(), world.open(root, "/file", O_PATH, 0).unwrap());
    let (pipe, _) = world.pipe(root, 0);
    let name = world.path(root, 1, "user.a");
    assert_eq!(world.call(root, nr::FSETXATTR, &[file, name, DATA, 3, 0]), Ok(0));
    assert_eq!(world.call(root, nr::FGETXATTR, &[file, name, DATA, 100]), Ok(3));
    assert_eq!(world.call(root, nr::FLISTXATTR, &[file, DATA, 100]), Ok(7));
    assert_eq!(world.call(root, nr::FREMOVEXATTR, &[file, name]), Ok(0));
    for (descriptor, error) in [(path, Errno::EBADF), (99, Errno::EBADF), (pipe, Errno::ENODATA)] {
        assert_eq!(world.call(root, nr::FGETXATTR, &[descriptor, name, DATA, 100]), Err(error));
    }
    assert_eq!(world.call(root, nr::FSETXATTR, &[pipe, name, DATA, 1, 0]), Err(Errno::EPERM));
}

#[test]
fn changes_that_come_again_are_made_once() {
    let mut world = World::new();
    world.make("/file", b"", 0o644, (0, 0));
    let (path, name) = (world.path(world.root, 0, "/file"), world.path(world.root, 1, "user.a"));
    for (call, arguments) in [
        (nr::SETXATTR, [path, name, DATA, 4, CREATE]),
        (nr::SETXATTR, [path, name, DATA, 7, REPLACE]),
        (nr::REMOVEXATTR, [path, name, 0, 0, 0]),
    ] {
        assert_eq!(world.call(world.root, call, &arguments), Ok(0));
        world.restart_vfs();
        assert_eq!(world.repeat_call(world.root, call, &arguments), Some(Ok(0)));
    }
    assert_eq!(list(&world, world.root, "/file").unwrap(), b"");
}

#[test]
fn attributes_outlive_vfs_and_are_of_files_in_memory_too() {
    let mut world = World::new();
    world.mount_tmpfs("/memory");
    for path in ["/file", "/memory/file"] {
        world.make(path, b"", 0o644, (0, 0));
        assert_eq!(set(&world, world.root, path, "user.a", b"value", 0), Ok(0));
        world.restart_vfs();
        assert_eq!(get(&world, world.root, path, "user.a").unwrap(), b"value");
    }
}

/// A write takes the capabilities of a program away, also one that the file system has not heard of yet.
#[test]
fn capabilities_that_are_given_after_a_write_stay() {
    let world = World::new();
    let root = world.root;
    let page = std::vec![7; super::services::PAGE as usize];
    world.make("/file", &page.repeat(3), 0o755, (0, 0));
    let file = world.open(root, "/file", O_RDWR, 0).unwrap();
    // From the third one on the page stays here.
    (0..4).for_each(|_| assert_eq!(world.pwrite(root, file, &page, 0), Ok(page.len() as u64)));
    let capabilities = [1, 0, 0, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    assert_eq!(set(&world, root, "/file", "security.capability", &capabilities, 0), Ok(0));
    assert_eq!(world.call(root, nr::FSYNC, &[file]), Ok(0));
    assert_eq!(get(&world, root, "/file", "security.capability").unwrap(), capabilities);
    assert_eq!(world.pwrite(root, file, &page, 0), Ok(page.len() as u64));
    assert_eq!(get(&world, root, "/file", "security.capability"), Err(Errno::ENODATA));
}
