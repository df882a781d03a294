//! From a path to a file: components, links, `..`, limits.

use super::*;
use abi::{Errno, linux::nr};

fn tree() -> World {
    let world = World::new();
    world.make_directory("/a", 0o755, (0, 0));
    world.make_directory("/a/b", 0o755, (0, 0));
    world.make("/a/b/file", b"here", 0o644, (0, 0));
    world
}

fn link(world: &World, target: &str, path: &str) {
    assert_eq!(world.paths_call(world.root, nr::SYMLINK, target, path), Ok(0));
}

#[test]
fn many_ways_lead_to_a_file() {
    let world = tree();
    assert_eq!(world.change_directory(world.root, "/a"), Ok(0));
    for path in ["/a/b/file", "b/file", "./b/./file", "../a/b/file", "/../../a//b///file", "b/../b/file"] {
        assert_eq!(world.content(path), b"here", "{path}");
    }
    assert_eq!(world.open(world.root, "", O_RDONLY, 0), Err(Errno::ENOENT));
    assert_eq!(world.open(world.root, "b/none", O_RDONLY, 0), Err(Errno::ENOENT));
    assert_eq!(world.open(world.root, "none/file", O_RDONLY, 0), Err(Errno::ENOENT));
    assert_eq!(world.open(world.root, "b/file/x", O_RDONLY, 0), Err(Errno::ENOTDIR));
    assert_eq!(world.open(world.root, "b/file/", O_RDONLY, 0), Err(Errno::ENOTDIR));
    assert_eq!(world.open(world.root, "b/file/.", O_RDONLY, 0), Err(Errno::ENOTDIR));
    assert_eq!(world.open(world.root, "b/file", O_RDONLY | O_DIRECTORY, 0), Err(Errno::ENOTDIR));
}

#[test]
fn links_are_followed_from_where_they_stand() {
    let world = tree();
    link(&world, "b/file", "/a/relative");
    link(&world, "/a/b", "/absolute");
    link(&world, "../a/relative", "/a/twice");
    for path in ["/a/relative", "/absolute/file", "/a/twice", "/absolute/../relative"] {
        assert_eq!(world.content(path), b"here", "{path}");
    }
    assert_eq!(world.open(world.root, "/a/relative", O_RDONLY | O_NOFOLLOW, 0), Err(Errno::ELOOP));
    assert_eq!(world.stat(world.root, "/a/relative").unwrap().mode & S_IFMT, S_IFLNK);
    assert_eq!(world.stat(world.root, "/absolute/").unwrap().mode & S_IFMT, S_IFDIR, "a slash follows");
}

#[test]
fn circles_of_links_end() {
    let world = World::new();
    link(&world, "two", "/one");
    link(&world, "one", "/two");
    assert_eq!(world.open(world.root, "/one", O_RDONLY, 0), Err(Errno::ELOOP));
    link(&world, "file", "/link0");
    world.make("/file", b"end", 0o644, (0, 0));
    for number in 1..=40 {
        link(&world, &std::format!("link{}", number - 1), &std::format!("/link{number}"));
    }
    assert_eq!(world.content("/link39"), b"end", "forty links");
    assert_eq!(world.open(world.root, "/link40", O_RDONLY, 0), Err(Errno::ELOOP), "one more");
}

#[test]
fn readlink_gives_as_much_as_there_is_room_for() {
    let world = World::new();
    link(&world, "somewhere/else", "/link");
    world.make("/file", b"", 0o644, (0, 0));
    assert_eq!(world.path_call(world.root, nr::READLINK, "/link", &[DATA, 100]), Ok(14));
    assert_eq!(world.machine.read(world.root, DATA, 14), b"somewhere/else");
    assert_eq!(world.path_call(world.root, nr::READLINK, "/link", &[DATA, 4]), Ok(4));
    assert_eq!(world.path_call(world.root, nr::READLINK, "/link", &[DATA, 0]), Err(Errno::EINVAL));
    assert_eq!(world.path_call(world.root, nr::READLINK, "/file", &[DATA, 100]), Err(Errno::EINVAL));
    assert_eq!(world.path_call(world.root, nr::READLINK, "", &[DATA, 100]), Err(Errno::ENOENT));
}

#[test]
fn a_dangling_link_is_created_through_but_not_exclusively() {
    let world = World::new();
    link(&world, "/target", "/link");
    assert_eq!(world.open(world.root, "/link", O_CREAT | O_EXCL | O_WRONLY, 0o644), Err(Errno::EEXIST));
    let file = world.open(world.root, "/link", O_CREAT | O_WRONLY, 0o644).unwrap();
    world.write(world.root, file, b"through").unwrap();
    assert_eq!(world.content("/target"), b"through");
    assert_eq!(world.open(world.root, "/target", O_CREAT | O_EXCL | O_WRONLY, 0o644), Err(Errno::EEXIST));
}

#[test]
fn names_and_paths_have_limits() {
    let world = World::new();
    let longest = "n".repeat(255);
    world.make(&std::format!("/{longest}"), b"x", 0o644, (0, 0));
    assert_eq!(world.open(world.root, &std::format!("/{longest}n"), O_RDONLY, 0), Err(Errno::ENAMETOOLONG));
    assert!(world.open(world.root, &std::format!("{}{longest}", "/".repeat(3800)), O_RDONLY, 0).is_ok());
    assert_eq!(world.open(world.root, &"/".repeat(4096), O_RDONLY, 0), Err(Errno::ENAMETOOLONG));
    assert_eq!(world.call(world.root, nr::OPEN, &[8, 0, 0]), Err(Errno::EFAULT));
}

#[test]
fn a_path_is_relative_to_the_given_directory() {
    let world = tree();
    let a = world.open(world.root, "/a", O_RDONLY | O_DIRECTORY, 0).unwrap();
    let file = world.open_at(world.root, a, "b/file", O_RDONLY).unwrap();
    assert_eq!(world.read(world.root, file, 10).unwrap(), b"here");
    assert!(world.open_at(world.root, 99, "/a/b/file", O_RDONLY).is_ok(), "an absolute one needs none");
    assert_eq!(world.open_at(world.root, 99, "file", O_RDONLY), Err(Errno::EBADF));
    assert_eq!(world.open_at(world.root, file, "x", O_RDONLY), Err(Errno::ENOTDIR));
    assert!(world.open_here(world.root, "a/b/file", O_RDONLY).is_ok());
    let place = world.open(world.root, "/a/b", O_PATH, 0).unwrap();
    assert!(world.open_at(world.root, place, "file", O_RDONLY).is_ok());
    assert_eq!(world.read(world.root, place, 1), Err(Errno::EBADF), "it is only a place");
}

#[test]
fn the_working_directory_is_of_each_process_and_goes_to_children() {
    let world = tree();
    assert_eq!(world.change_directory(world.root, "/a/b"), Ok(0));
    let child = world.fork(world.root, 0);
    let sharing = world.fork(world.root, abi::vfs::FORK_FS);
    assert_eq!(world.change_directory(world.root, ".."), Ok(0));
    let cwd = |who| {
        let bytes = world.call(who, nr::GETCWD, &[DATA, 100]).unwrap();
        std::string::String::from_utf8(world.machine.read(who, DATA, bytes as usize - 1)).unwrap()
    };
    assert_eq!((cwd(world.root), cwd(child), cwd(sharing)), ("/a".into(), "/a/b".into(), "/a".into()));
    assert_eq!(world.call(world.root, nr::GETCWD, &[DATA, 2]), Err(Errno::ERANGE));
    assert_eq!(world.change_directory(world.root, "/a/b/file"), Err(Errno::ENOTDIR));
    let directory = world.open(world.root, "/a/b", O_RDONLY, 0).unwrap();
    assert_eq!(world.call(world.root, nr::FCHDIR, &[directory]), Ok(0));
    assert_eq!(cwd(world.root), "/a/b");
}

#[test]
fn a_new_root_is_the_top_for_its_processes() {
    let world = tree();
    link(&world, "/b/file", "/a/link");
    let inside = world.fork(world.root, 0);
    assert_eq!(world.path_call(inside, nr::CHROOT, "/a", &[]), Ok(0));
    assert_eq!(world.change_directory(inside, "/"), Ok(0));
    assert!(world.open(inside, "/../../b/file", O_RDONLY, 0).is_ok());
    assert!(world.open(inside, "/link", O_RDONLY, 0).is_ok(), "links begin at the new root");
    assert_eq!(world.open(inside, "/a", O_RDONLY, 0), Err(Errno::ENOENT));
    assert_eq!(world.open(world.root, "/b/file", O_RDONLY, 0), Err(Errno::ENOENT));
}
