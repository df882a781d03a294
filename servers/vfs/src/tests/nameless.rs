//! Files without a name: O_TMPFILE, linkat of what a descriptor or its link in /proc means.

use super::*;
use abi::{Endpoint, Errno, linux::nr};

const AT_SYMLINK_FOLLOW: u64 = 0x400;
const AT_EMPTY_PATH: u64 = 0x1000;

fn nameless(world: &World, program: Endpoint, flags: u64) -> Result<u64> {
    world.open(program, "/dir", O_TMPFILE | flags, 0o666)
}

/// linkat of a descriptor to this path.
fn link(world: &World, program: Endpoint, descriptor: u64, path: &str) -> Result<u64> {
    let (old, new) = (world.path(program, 0, ""), world.path(program, 1, path));
    world.call(program, nr::LINKAT, &[descriptor, old, AT_FDCWD, new, AT_EMPTY_PATH])
}

fn with_directory() -> World {
    let world = World::new();
    world.make_directory("/dir", 0o2777, (0, 42));
    world
}

fn free_inodes(world: &World) -> u64 {
    assert_eq!(world.path_call(world.root, nr::STATFS, "/", &[DATA]), Ok(0));
    world.read_words(world.root, DATA, 7)[6]
}

#[test]
fn a_file_without_a_name_is_like_others_and_ends_with_its_descriptor() {
    let world = with_directory();
    let before = free_inodes(&world);
    let user = world.user(1000, 100);
    let file = nameless(&world, user, O_RDWR).unwrap();
    assert_eq!(world.write(user, file, b"text"), Ok(4));
    assert_eq!(world.pread(user, file, 10, 0).unwrap(), b"text");
    let stat = world.fstat(user, file).unwrap();
    assert_eq!((stat.mode, stat.links, stat.uid, stat.gid, stat.size), (S_IFREG | 0o644, 0, 1000, 42, 4));
    assert_eq!(world.names(world.root, "/dir").unwrap(), [""; 0]);
    assert_eq!(free_inodes(&world), before - 1);
    world.close(user, file).unwrap();
    assert_eq!(free_inodes(&world), before);
}

#[test]
fn it_needs_a_directory_that_may_be_written_and_a_file_system_that_has_such_files() {
    let mut world = with_directory();
    world.start_proc();
    world.make("/file", b"", 0o666, (0, 0));
    world.make_directory("/closed", 0o755, (0, 0));
    let user = world.user(1000, 100);
    let open = |path, flags| world.open(user, path, O_TMPFILE | flags, 0o600);
    assert_eq!(open("/dir", O_RDONLY), Err(Errno::EINVAL));
    assert_eq!(open("/dir", O_RDWR | O_CREAT), Err(Errno::EINVAL));
    assert_eq!(world.open(user, "/dir", O_RDWR | O_TMPFILE & !O_DIRECTORY, 0o600), Err(Errno::EINVAL));
    assert_eq!(open("/file", O_RDWR), Err(Errno::ENOTDIR));
    assert_eq!(open("/none", O_RDWR), Err(Errno::ENOENT));
    assert_eq!(open("/closed", O_RDWR), Err(Errno::EACCES));
    assert!(world.open(world.root, "/proc", O_TMPFILE | O_RDWR, 0o600).is_err());
}

#[test]
fn it_gets_a_name_once() {
    let world = with_directory();
    let file = nameless(&world, world.root, O_RDWR).unwrap();
    assert_eq!(world.write(world.root, file, b"text"), Ok(4));
    assert_eq!(link(&world, world.root, file, "/dir/name"), Ok(0));
    assert_eq!(world.content("/dir/name"), b"text");
    assert_eq!(world.stat(world.root, "/dir/name").unwrap().links, 1);
    assert_eq!(link(&world, world.root, file, "/dir/name"), Err(Errno::EEXIST));
    assert_eq!(world.path_call(world.root, nr::UNLINK, "/dir/name", &[]), Ok(0));
    assert_eq!(link(&world, world.root, file, "/dir/name"), Err(Errno::ENOENT), "it has lost its name");
}

#[test]
fn what_was_opened_exclusively_and_what_users_do_not_find_gets_none() {
    let world = with_directory();
    let file = nameless(&world, world.root, O_RDWR | O_EXCL).unwrap();
    assert_eq!(link(&world, world.root, file, "/dir/name"), Err(Errno::ENOENT));
    let user = world.user(1000, 100);
    let file = nameless(&world, user, O_RDWR).unwrap();
    assert_eq!(link(&world, user, file, "/dir/name"), Err(Errno::ENOENT));
    let directory = world.open(world.root, "/dir", O_RDONLY, 0).unwrap();
    assert_eq!(link(&world, world.root, directory, "/dir/name"), Err(Errno::EPERM));
    assert_eq!(link(&world, world.root, 99, "/dir/name"), Err(Errno::EBADF));
}

#[test]
fn a_link_in_proc_leads_to_the_open_file_itself() {
    let mut world = with_directory();
    let links = world.start_proc();
    let file = nameless(&world, world.root, O_RDWR).unwrap();
    assert_eq!(world.write(world.root, file, b"text"), Ok(4));
    links.lock().unwrap().push((std::format!("{file}"), "/dir/#1 (deleted)".into()));
    let path = std::format!("/proc/{file}");
    assert_eq!(world.content(&path), b"text");
    let again = world.open(world.root, &path, O_WRONLY | O_TRUNC, 0).unwrap();
    assert_eq!(world.fstat(world.root, again).unwrap().size, 0);
    let (old, new) = (world.path(world.root, 0, &path), world.path(world.root, 1, "/dir/name"));
    assert_eq!(world.call(world.root, nr::LINKAT, &[AT_FDCWD, old, AT_FDCWD, new, 0]), Err(Errno::EXDEV));
    assert_eq!(world.call(world.root, nr::LINKAT, &[AT_FDCWD, old, AT_FDCWD, new, AT_SYMLINK_FOLLOW]), Ok(0));
    assert_eq!(world.stat(world.root, "/dir/name").unwrap().links, 1);
}

#[test]
fn a_link_in_proc_to_a_directory_is_a_step_on_the_way() {
    let mut world = with_directory();
    let links = world.start_proc();
    world.make("/dir/file", b"text", 0o644, (0, 0));
    let directory = world.open(world.root, "/dir", O_RDONLY, 0).unwrap();
    links.lock().unwrap().push((std::format!("{directory}"), "/no longer true".into()));
    assert_eq!(world.content(&std::format!("/proc/{directory}/file")), b"text");
    assert_eq!(world.content(&std::format!("/proc/{directory}/../dir/file")), b"text");
    let [_, file] = [(); 2].map(|()| world.open(world.root, "/dir/file", O_RDONLY, 0).unwrap());
    links.lock().unwrap().push((std::format!("{file}"), "/x".into()));
    assert_eq!(world.open(world.root, &std::format!("/proc/{file}/"), O_RDONLY, 0), Err(Errno::ENOTDIR));
    links.lock().unwrap().push(("99".into(), "/x".into()));
    assert_eq!(world.open(world.root, "/proc/99", O_RDONLY, 0), Err(Errno::ENOENT));
}

#[test]
fn it_outlives_vfs_and_ext2_and_can_still_be_linked() {
    let mut world = with_directory();
    let file = nameless(&world, world.root, O_RDWR).unwrap();
    let closed = nameless(&world, world.root, O_RDWR | O_EXCL).unwrap();
    assert_eq!(world.write(world.root, file, b"text"), Ok(4));
    world.restart_vfs();
    assert_eq!(world.pread(world.root, file, 10, 0).unwrap(), b"text");
    assert_eq!(link(&world, world.root, closed, "/dir/name"), Err(Errno::ENOENT));
    assert_eq!(link(&world, world.root, file, "/dir/name"), Ok(0));
    assert_eq!(world.content("/dir/name"), b"text");
}

#[test]
fn a_call_that_comes_again_leaves_one_file() {
    let mut world = with_directory();
    let before = free_inodes(&world);
    let path = world.path(world.root, 0, "/dir");
    let arguments = [path, O_TMPFILE | O_RDWR, 0o600];
    let first = world.call(world.root, nr::OPEN, &arguments).unwrap();
    world.restart_vfs();
    assert_eq!(world.repeat_call(world.root, nr::OPEN, &arguments), Some(Ok(first)));
    assert_eq!(free_inodes(&world), before - 1);
}
