//! What makes, removes and moves names refuses, and what it changes beside the name itself.

use super::*;
use abi::{Endpoint, Errno, GrantId, linux::nr, vfs};

const AT_REMOVEDIR: u64 = 0x200;
const AT_SYMLINK_FOLLOW: u64 = 0x400;
const RENAME_EXCHANGE: u64 = 2;

fn links(world: &World, path: &str) -> u64 {
    world.stat(world.root, path).unwrap().links
}

fn open_directory(world: &World, path: &str) -> u64 {
    world.open(world.root, path, O_RDONLY | O_DIRECTORY, 0).unwrap()
}

/// A call with a descriptor, a path, and further arguments.
fn call_at(world: &World, call: u32, directory: u64, path: &str, arguments: &[u64]) -> Result<u64> {
    let path = world.path(world.root, 0, path);
    world.call(world.root, call, &[&[directory, path], arguments].concat())
}

/// A call with two descriptors with paths, and flags.
fn call_at_two(world: &World, call: u32, from: (u64, &str), to: (u64, &str), flags: u64) -> Result<u64> {
    let (old, new) = (world.path(world.root, 0, from.1), world.path(world.root, 1, to.1));
    world.call(world.root, call, &[from.0, old, to.0, new, flags])
}

#[test]
fn a_directory_is_made_with_a_link_to_its_parent() {
    let world = World::new();
    let before = links(&world, "/");
    let mkdir = |path, mode| world.path_call(world.root, nr::MKDIR, path, &[mode]);
    assert_eq!(mkdir("/dir/", 0o7777), Ok(0));
    assert_eq!(world.stat(world.root, "/dir").unwrap().mode, S_IFDIR | 0o1755, "no set-id bits, less the umask");
    assert_eq!((links(&world, "/"), links(&world, "/dir")), (before + 1, 2));
    let root = world.open(world.root, "/", O_PATH, 0).unwrap();
    assert_eq!(world.fstat(world.root, root).unwrap().links, before + 1);
    for path in ["/dir", "/dir/", "/dir/.", "/dir/..", "/", "/dir/../dir"] {
        assert_eq!(mkdir(path, 0o755), Err(Errno::EEXIST), "{path}");
    }
    assert_eq!(mkdir("/none/dir", 0o755), Err(Errno::ENOENT));
    assert_eq!(mkdir("", 0o755), Err(Errno::ENOENT));
    let directory = open_directory(&world, "/dir");
    assert_eq!(call_at(&world, nr::MKDIRAT, directory, "sub", &[0o700]), Ok(0));
    assert_eq!(world.stat(world.root, "/dir/sub").unwrap().mode, S_IFDIR | 0o700);
    assert_eq!(call_at(&world, nr::MKDIRAT, 99, "sub", &[0o700]), Err(Errno::EBADF));
    assert_eq!(links(&world, "/dir"), 3);
    assert_eq!(call_at(&world, nr::UNLINKAT, directory, "sub", &[AT_REMOVEDIR]), Ok(0));
    assert_eq!((links(&world, "/dir"), world.fstat(world.root, directory).unwrap().links), (2, 2));
}

#[test]
fn mknod_makes_every_kind_but_directories_and_links() {
    let world = World::new();
    let mknod = |path, kind: u32| world.path_call(world.root, nr::MKNOD, path, &[u64::from(kind | 0o4755), 0x105]);
    let made = [
        ("/plain", 0, S_IFREG),
        ("/regular", S_IFREG, S_IFREG),
        ("/fifo", S_IFIFO, S_IFIFO),
        ("/socket", S_IFSOCK, S_IFSOCK),
        ("/character", S_IFCHR, S_IFCHR),
        ("/block", S_IFBLK, S_IFBLK),
    ];
    for (path, kind, expected) in made {
        assert_eq!(mknod(path, kind), Ok(0), "{path}");
        assert_eq!(world.stat(world.root, path).unwrap().mode, expected | 0o4755, "{path}");
        assert_eq!(world.path_call(world.root, nr::STAT, path, &[DATA]), Ok(0));
        let special = if [S_IFCHR, S_IFBLK].contains(&kind) { 0x105 } else { 0 };
        assert_eq!(world.read_words(world.root, DATA, 6)[5], special, "{path}");
        assert_eq!(mknod(path, kind), Err(Errno::EEXIST), "{path}");
    }
    assert_eq!(mknod("/new", S_IFDIR), Err(Errno::EPERM));
    assert_eq!(mknod("/new", S_IFLNK), Err(Errno::EINVAL));
    assert_eq!(mknod("/new/", S_IFREG), Err(Errno::ENOENT));
    assert_eq!(mknod("/", S_IFREG), Err(Errno::EEXIST));
    world.make_directory("/dir", 0o755, (0, 0));
    let directory = open_directory(&world, "/dir");
    assert_eq!(call_at(&world, nr::MKNODAT, directory, "node", &[u64::from(S_IFCHR) | 0o600, 0x203]), Ok(0));
    assert_eq!(world.path_call(world.root, nr::STAT, "/dir/node", &[DATA]), Ok(0));
    assert_eq!(world.read_words(world.root, DATA, 6)[5], 0x203);
}

#[test]
fn unlinkat_removes_files_or_directories() {
    let world = World::new();
    world.make_directory("/dir", 0o755, (0, 0));
    world.make_directory("/dir/sub", 0o755, (0, 0));
    world.make("/dir/file", b"", 0o644, (0, 0));
    let directory = open_directory(&world, "/dir");
    let unlink = |path, flags| call_at(&world, nr::UNLINKAT, directory, path, &[flags]);
    assert_eq!(unlink("file", AT_REMOVEDIR), Err(Errno::ENOTDIR));
    assert_eq!(unlink("sub", 0), Err(Errno::EISDIR));
    assert_eq!(unlink("none", 0), Err(Errno::ENOENT));
    assert_eq!(unlink("file/", 0), Err(Errno::ENOTDIR));
    assert_eq!(unlink("", 0), Err(Errno::ENOENT));
    assert_eq!(unlink("/", 0), Err(Errno::EISDIR));
    assert_eq!(unlink(".", 0), Err(Errno::EISDIR));
    assert_eq!(unlink(".", AT_REMOVEDIR), Err(Errno::EINVAL));
    assert_eq!(unlink("..", AT_REMOVEDIR), Err(Errno::ENOTEMPTY));
    assert_eq!(unlink("sub", AT_REMOVEDIR), Ok(0));
    assert_eq!(unlink("file", 0), Ok(0));
    assert!(world.names(world.root, "/dir").unwrap().is_empty());
}

#[test]
fn a_link_is_to_the_name_itself_unless_told_to_follow() {
    let world = World::new();
    world.make("/file", b"", 0o644, (0, 0));
    world.make_directory("/dir", 0o755, (0, 0));
    assert_eq!(world.paths_call(world.root, nr::SYMLINK, "/file", "/link"), Ok(0));
    let directory = open_directory(&world, "/dir");
    let link = |from, to, flags| call_at_two(&world, nr::LINKAT, (AT_FDCWD, from), (directory, to), flags);
    assert_eq!(link("/link", "kept", 0), Ok(0));
    assert_eq!(world.stat(world.root, "/dir/kept").unwrap().mode & S_IFMT, S_IFLNK);
    assert_eq!(link("/link", "followed", AT_SYMLINK_FOLLOW), Ok(0));
    assert_eq!((links(&world, "/file"), links(&world, "/link")), (2, 2));
    assert_eq!(world.stat(world.root, "/dir/followed"), world.stat(world.root, "/file"));
    assert_eq!(link("/link", "other", 0x100), Err(Errno::EINVAL));
    assert_eq!(link("/file", "other/", 0), Err(Errno::ENOENT));
    assert_eq!(link("/file", "none/other", 0), Err(Errno::ENOENT));
    assert_eq!(link("/file", ".", 0), Err(Errno::EEXIST));
    assert_eq!(link("/dir", "other", 0), Err(Errno::EPERM));
    assert_eq!(world.paths_call(world.root, nr::LINK, "/link", "/dir/kept"), Err(Errno::EEXIST));
    let file = world.open(world.root, "/file", O_RDONLY, 0).unwrap();
    for path in ["/file", "/dir/followed"] {
        assert_eq!(world.path_call(world.root, nr::UNLINK, path, &[]), Ok(0));
    }
    assert_eq!(world.fstat(world.root, file).unwrap().links, 0);
}

#[test]
fn symbolic_links_have_limits_and_an_owner() {
    let world = World::new();
    world.make_directory("/team", 0o2777, (0, 500));
    let user = world.user(1000, 100);
    let longest = "t".repeat(1023);
    assert_eq!(world.paths_call(user, nr::SYMLINK, &longest, "/team/link"), Ok(0));
    let stat = world.stat(user, "/team/link").unwrap();
    assert_eq!((stat.uid, stat.gid, stat.size, stat.mode), (1000, 500, 1023, S_IFLNK | 0o777));
    let symlink = |target, path| world.paths_call(world.root, nr::SYMLINK, target, path);
    assert_eq!(symlink("", "/new"), Err(Errno::ENOENT));
    assert_eq!(symlink("x", "/team/link"), Err(Errno::EEXIST));
    assert_eq!(symlink("x", "/team"), Err(Errno::EEXIST));
    assert_eq!(symlink("x", "/new/"), Err(Errno::ENOENT));
    assert_eq!(symlink("x", "/none/new"), Err(Errno::ENOENT));
    let team = open_directory(&world, "/team");
    let (target, path) = (world.path(world.root, 0, "x"), world.path(world.root, 1, "short"));
    assert_eq!(world.call(world.root, nr::SYMLINKAT, &[target, team, path]), Ok(0));
    assert_eq!(call_at(&world, nr::READLINKAT, team, "short", &[DATA, 100]), Ok(1));
    assert_eq!(call_at(&world, nr::READLINKAT, team, "link", &[DATA, 4096]), Ok(1023));
    assert_eq!(world.machine.read(world.root, DATA, 1023), longest.as_bytes());
    assert_eq!(call_at(&world, nr::READLINKAT, team, "link", &[8, 100]), Err(Errno::EFAULT));
    for room in [0, -1i64 as u64, 1 << 31] {
        assert_eq!(call_at(&world, nr::READLINKAT, team, "link", &[DATA, room]), Err(Errno::EINVAL));
    }
    assert_eq!(call_at(&world, nr::READLINKAT, team, "", &[DATA, 100]), Err(Errno::ENOENT), "no link");
    assert_eq!(call_at(&world, nr::READLINKAT, team, "none", &[DATA, 100]), Err(Errno::ENOENT));
    assert_eq!(world.change_directory(world.root, "/team"), Ok(0));
    let gone = world.fork(world.root, 0);
    world.make_directory("/gone", 0o755, (0, 0));
    assert_eq!(world.change_directory(gone, "/gone"), Ok(0));
    assert_eq!(world.path_call(world.root, nr::RMDIR, "/gone", &[]), Ok(0));
    assert_eq!(world.paths_call(gone, nr::SYMLINK, "x", "link"), Err(Errno::ENOENT));
}

#[test]
fn a_renamed_directory_takes_the_link_of_its_dots_along() {
    let world = World::new();
    for path in ["/from", "/to", "/from/dir", "/from/dir/sub", "/to/empty", "/to/full", "/to/full/x"] {
        world.make_directory(path, 0o755, (0, 0));
    }
    let rename = |from, to| world.paths_call(world.root, nr::RENAME, from, to);
    let [from, to] = ["/from", "/to"].map(|path| open_directory(&world, path));
    let counts = || [from, to].map(|file| world.fstat(world.root, file).unwrap().links);
    let named = || ["/from", "/to"].map(|path| links(&world, path));
    assert_eq!((counts(), named()), ([3, 4], [3, 4]));
    assert_eq!(rename("/from/dir", "/to/full"), Err(Errno::ENOTEMPTY));
    assert_eq!(rename("/from/dir", "/to/moved/"), Ok(0));
    assert_eq!((counts(), named()), ([2, 5], [2, 5]));
    let empty = open_directory(&world, "/to/empty");
    assert_eq!(rename("/to/moved", "/to/empty"), Ok(0));
    assert_eq!((counts(), named()), ([2, 4], [2, 4]));
    assert_eq!(world.fstat(world.root, empty).unwrap().links, 0, "it was replaced");
    let moved = open_directory(&world, "/to/empty/sub");
    assert!(world.open_at(world.root, moved, "../../full/x", O_RDONLY).is_ok(), "`..` leads where it is now");
    assert_eq!(rename("/to/empty", "/from/back"), Ok(0));
    assert!(world.open_at(world.root, moved, "../../back/sub", O_RDONLY).is_ok());
    assert_eq!(world.open_at(world.root, moved, "../../full", O_RDONLY), Err(Errno::ENOENT));
    assert_eq!((counts(), named()), ([3, 3], [3, 3]));
}

#[test]
fn vfs_counts_links_as_the_file_system_does() {
    let world = World::new();
    world.make_directory("/dir", 0o755, (0, 0));
    world.make_directory("/dir/one", 0o755, (0, 0));
    world.make_directory("/dir/two", 0o755, (0, 0));
    let cwd = world.fork(world.root, 0);
    assert_eq!(world.change_directory(cwd, "/dir/one"), Ok(0));
    assert_eq!(world.paths_call(world.root, nr::RENAME, "/dir/two", "/dir/one"), Ok(0));
    assert_eq!(world.open(cwd, "new", O_CREAT | O_WRONLY, 0o644), Err(Errno::ENOENT), "it was replaced");
    assert_eq!(world.path_call(cwd, nr::MKDIR, "new", &[0o755]), Err(Errno::ENOENT));
    world.make("/a", b"a", 0o644, (0, 0));
    world.make("/b", b"b", 0o644, (0, 0));
    assert_eq!(world.paths_call(world.root, nr::LINK, "/b", "/c"), Ok(0));
    let replaced = world.open(world.root, "/b", O_RDONLY, 0).unwrap();
    assert_eq!(world.paths_call(world.root, nr::RENAME, "/a", "/b"), Ok(0));
    assert_eq!(world.fstat(world.root, replaced).unwrap().links, 1, "it has another name");
    assert_eq!(world.content("/c"), b"b");
}

#[test]
fn a_directory_stays_however_often_others_come_and_go_below_it() {
    let world = World::new();
    world.make_directory("/to", 0o755, (0, 0));
    for number in 0..6 {
        let sub = std::format!("/to/{number}");
        match number % 2 {
            0 => assert_eq!(world.path_call(world.root, nr::MKDIR, &sub, &[0o755]), Ok(0)),
            _ => {
                world.make_directory("/from", 0o755, (0, 0));
                assert_eq!(world.paths_call(world.root, nr::RENAME, "/from", &sub), Ok(0));
            }
        }
        assert_eq!(world.path_call(world.root, nr::RMDIR, &sub, &[]), Ok(0));
        world.make(&std::format!("/to/file{number}"), b"", 0o644, (0, 0));
    }
    assert_eq!(world.names(world.root, "/to").unwrap().len(), 6);
}

#[test]
fn rename_refuses_what_has_no_name_of_its_own() {
    let world = World::new();
    world.make("/file", b"1", 0o644, (0, 0));
    world.make_directory("/dir", 0o755, (0, 0));
    let rename = |from, to| world.paths_call(world.root, nr::RENAME, from, to);
    for path in ["/", "/dir/.", "/dir/..", "."] {
        assert_eq!(rename(path, "/new"), Err(Errno::EBUSY), "{path}");
        assert_eq!(rename("/file", path), Err(Errno::EBUSY), "{path}");
    }
    assert_eq!(rename("/file", "/new/"), Err(Errno::ENOTDIR));
    assert_eq!(rename("/file/", "/new"), Err(Errno::ENOTDIR));
    assert_eq!(rename("/file", "/none/new"), Err(Errno::ENOENT));
    assert_eq!(rename("/none", "/new"), Err(Errno::ENOENT));
    assert_eq!(rename("/dir", "/dir"), Ok(0));
    assert_eq!(rename("/dir", "/dir/new"), Err(Errno::EINVAL));
    assert_eq!(world.paths_call(world.root, nr::LINK, "/file", "/same"), Ok(0));
    assert_eq!(rename("/file", "/same"), Ok(0));
    assert_eq!(links(&world, "/file"), 2, "two names of one file stay");
    let dir = open_directory(&world, "/dir");
    let renameat2 = |to, flags| call_at_two(&world, nr::RENAMEAT2, (AT_FDCWD, "/same"), (dir, to), flags);
    assert_eq!(renameat2("x", RENAME_EXCHANGE), Err(Errno::ENOENT));
    assert_eq!(renameat2("x", 0), Ok(0));
    assert_eq!(call_at_two(&world, nr::RENAMEAT, (dir, "x"), (dir, "y"), 99), Ok(0), "it has no flags");
    assert_eq!(world.names(world.root, "/dir").unwrap(), ["y"]);
}

fn exchange(world: &World, who: abi::Endpoint, first: &str, second: &str) -> Result<u64> {
    let (first, second) = (world.path(who, 0, first), world.path(who, 1, second));
    world.call(who, nr::RENAMEAT2, &[AT_FDCWD, first, AT_FDCWD, second, RENAME_EXCHANGE])
}

#[test]
fn two_names_are_swapped() {
    let world = World::new();
    for path in ["/a", "/a/sub", "/b"] {
        world.make_directory(path, 0o755, (0, 0));
    }
    world.make("/a/sub/file", b"1", 0o644, (0, 0));
    world.make("/b/file", b"2", 0o644, (0, 0));
    let swap = |first, second| exchange(&world, world.root, first, second);
    let [a, b] = ["/a", "/b"].map(|path| open_directory(&world, path));
    let counts = || [a, b].map(|file| world.fstat(world.root, file).unwrap().links);
    let named = || ["/a", "/b"].map(|path| links(&world, path));
    assert_eq!(swap("/a/sub/file", "/b/file"), Ok(0));
    assert_eq!((world.content("/a/sub/file"), world.content("/b/file")), (b"2".to_vec(), b"1".to_vec()));
    assert_eq!(counts(), [3, 2]);
    assert_eq!(swap("/b/file", "/a/sub"), Ok(0), "a file for a directory");
    assert_eq!((world.content("/a/sub"), world.content("/b/file/file")), (b"1".to_vec(), b"2".to_vec()));
    assert_eq!((counts(), named()), ([2, 3], [2, 3]));
    let moved = open_directory(&world, "/b/file");
    assert_eq!(
        world.open_at(world.root, moved, "../../a/sub", O_RDONLY).and_then(|file| world.read(world.root, file, 9)),
        Ok(b"1".to_vec())
    );
    assert_eq!(world.path_call(world.root, nr::MKDIR, "/a/dir", &[0o755]), Ok(0));
    assert_eq!(swap("/b/file", "/a/dir"), Ok(0), "two directories");
    assert_eq!((counts(), named()), ([3, 3], [3, 3]));
    assert!(world.open_at(world.root, moved, "../sub", O_RDONLY).is_ok(), "`..` leads where it is now");
    assert_eq!(swap("/b/file/", "/a/sub"), Ok(0), "the slash is at a directory");
    assert_eq!(world.content("/b/file"), b"1");
    assert_eq!((counts(), named()), ([4, 2], [4, 2]));
}

#[test]
fn names_that_cannot_be_swapped_stay() {
    let world = World::new();
    world.make_directory("/dir", 0o755, (0, 0));
    world.make_directory("/dir/sub", 0o755, (0, 0));
    world.make("/file", b"1", 0o644, (0, 0));
    let swap = |first, second| exchange(&world, world.root, first, second);
    assert_eq!((swap("/none", "/file"), swap("/file", "/none")), (Err(Errno::ENOENT), Err(Errno::ENOENT)));
    assert_eq!((swap("/dir", "/dir/sub"), swap("/dir/sub", "/dir")), (Err(Errno::EINVAL), Err(Errno::EINVAL)));
    for path in ["/", "/dir/.", "/dir/..", "."] {
        assert_eq!((swap(path, "/file"), swap("/file", path)), (Err(Errno::EBUSY), Err(Errno::EBUSY)), "{path}");
    }
    assert_eq!(swap("/file/", "/dir"), Err(Errno::ENOTDIR));
    assert_eq!(swap("/dir", "/file/"), Err(Errno::ENOTDIR));
    assert_eq!(swap("/file", "/file"), Ok(0));
    let (file, dir) = (world.path(world.root, 0, "/file"), world.path(world.root, 1, "/dir"));
    for flags in [RENAME_EXCHANGE | 1, RENAME_EXCHANGE | 4, RENAME_EXCHANGE | 5, 8] {
        let result = world.call(world.root, nr::RENAMEAT2, &[AT_FDCWD, file, AT_FDCWD, dir, flags]);
        assert_eq!(result, Err(Errno::EINVAL), "{flags}");
    }
    assert_eq!(world.content("/file"), b"1");
    assert_eq!(world.names(world.root, "/dir").unwrap(), ["sub"]);
}

#[test]
fn names_are_swapped_only_where_both_may_be_changed() {
    let world = World::new();
    for (path, mode, owner) in [("/tmp", 0o1777, 0), ("/theirs", 0o755, 0), ("/mine", 0o755, 1000), ("/open", 0o777, 0)]
    {
        world.make_directory(path, mode, (owner, owner));
    }
    world.make_directory("/open/dir", 0o755, (0, 0));
    for (path, owner) in
        [("/tmp/theirs", 0), ("/tmp/mine", 1000), ("/tmp/also", 1000), ("/theirs/file", 1000), ("/mine/file", 0)]
    {
        world.make(path, path.as_bytes(), 0o644, (owner, owner));
    }
    let user = world.user(1000, 1000);
    for (first, second, result) in [
        ("/mine/file", "/theirs/file", Err(Errno::EACCES)),
        ("/tmp/mine", "/tmp/theirs", Err(Errno::EPERM)),
        ("/mine/file", "/open/dir", Err(Errno::EACCES)),
        ("/tmp/mine", "/tmp/also", Ok(0)),
        ("/mine/file", "/tmp/mine", Ok(0)),
    ] {
        assert_eq!(exchange(&world, user, first, second), result, "{first} {second}");
        if result.is_err() {
            assert_eq!(exchange(&world, user, second, first), result, "{second} {first}");
        }
    }
    assert_eq!(world.content("/mine/file"), b"/tmp/also");
}

#[test]
fn paths_follow_directories_that_are_swapped() {
    let world = World::new();
    for path in ["/one", "/two", "/two/sub", "/one/sub"] {
        world.make_directory(path, 0o755, (0, 0));
    }
    let children = ["/one/sub", "/two"].map(|path| {
        let child = world.fork(world.root, 0);
        assert_eq!(world.change_directory(child, path), Ok(0));
        child
    });
    let working = |who| {
        let bytes = world.call(who, nr::GETCWD, &[DATA, 100]).unwrap();
        std::string::String::from_utf8(world.machine.read(who, DATA, bytes as usize - 1)).unwrap()
    };
    assert_eq!(exchange(&world, world.root, "/one", "/two"), Ok(0));
    assert_eq!(children.map(working), ["/two/sub", "/one"]);
    assert!(world.stat(children[0], "../../one/sub").is_ok());
    world.make("/file", b"", 0o644, (0, 0));
    assert_eq!(exchange(&world, world.root, "/file", "/one"), Ok(0));
    assert_eq!(children.map(working), ["/two/sub", "/file"]);
    assert_eq!(exchange(&world, world.root, "/two/sub", "/file"), Ok(0));
    assert_eq!(children.map(working), ["/file", "/two/sub"]);
}

#[test]
fn lookups_see_every_change_of_a_name() {
    let world = World::new();
    let child = world.fork(world.root, 0);
    let exists = |path: &str| [world.root, child].map(|who| world.stat(who, path).is_ok());
    let steps: [(&dyn Fn() -> Result<u64>, [bool; 2]); 9] = [
        (&|| world.path_call(world.root, nr::MKDIR, "/a", &[0o755]), [true, false]),
        (&|| world.paths_call(world.root, nr::RENAME, "/a", "/b"), [false, true]),
        (&|| world.path_call(world.root, nr::RMDIR, "/b", &[]), [false, false]),
        (&|| world.paths_call(world.root, nr::SYMLINK, "/", "/a"), [true, false]),
        (&|| world.paths_call(world.root, nr::LINK, "/a", "/b"), [true, true]),
        (&|| world.path_call(world.root, nr::UNLINK, "/a", &[]), [false, true]),
        (&|| world.open(world.root, "/a", O_CREAT | O_WRONLY, 0o644), [true, true]),
        (&|| world.paths_call(world.root, nr::RENAME, "/a", "/b"), [false, true]),
        (&|| world.path_call(world.root, nr::MKNOD, "/a", &[0o644, 0]), [true, true]),
    ];
    assert_eq!((exists("/a"), exists("/b")), ([false; 2], [false; 2]));
    for (number, (step, [a, b])) in steps.into_iter().enumerate() {
        step().unwrap();
        assert_eq!((exists("/a"), exists("/b")), ([a; 2], [b; 2]), "after step {number}");
    }
}

#[test]
fn many_names_of_any_length_are_kept_apart() {
    let world = World::new();
    let name = |number: usize| std::format!("/{}{number}", "n".repeat(number % 60));
    for number in 0..62 {
        world.make(&name(number), &[number as u8], 0o644, (0, 0));
    }
    for directory in ["/x", "/x/x", "/x/x/x"] {
        world.make_directory(directory, 0o755, (0, 0));
        world.make(&std::format!("{directory}/same"), directory.as_bytes(), 0o644, (0, 0));
    }
    for number in (0..62).rev() {
        assert_eq!(world.content(&name(number)), [number as u8]);
    }
    for directory in ["/x", "/x/x", "/x/x/x"] {
        assert_eq!(world.content(&std::format!("{directory}/same")), directory.as_bytes());
    }
}

#[test]
fn the_working_directory_is_entered_by_who_may_search_it() {
    let world = World::new();
    world.make_directory("/closed", 0o700, (0, 0));
    world.make("/file", b"", 0o644, (0, 0));
    let closed = open_directory(&world, "/closed");
    let file = world.open(world.root, "/file", O_RDONLY, 0).unwrap();
    let user = world.user(1000, 100);
    assert_eq!(world.call(user, nr::FCHDIR, &[closed]), Err(Errno::EACCES));
    assert_eq!(world.call(user, nr::FCHDIR, &[file]), Err(Errno::ENOTDIR));
    assert_eq!(world.call(user, nr::FCHDIR, &[99]), Err(Errno::EBADF));
    assert_eq!(world.call(user, nr::FCHDIR, &[AT_FDCWD]), Err(Errno::EBADF));
    assert_eq!(world.call(world.root, nr::FCHDIR, &[closed]), Ok(0));
    assert_eq!(world.path_call(world.root, nr::CHROOT, "/file", &[]), Err(Errno::ENOTDIR));
    assert_eq!(world.path_call(world.root, nr::CHROOT, "/none", &[]), Err(Errno::ENOENT));
    assert_eq!(world.path_call(user, nr::CHROOT, "/closed", &[]), Err(Errno::EACCES));
    let length = "/closed".len() as u64 + 1;
    assert_eq!(world.call(world.root, nr::GETCWD, &[DATA, length - 1]), Err(Errno::ERANGE));
    assert_eq!(world.call(world.root, nr::GETCWD, &[DATA, length]), Ok(length));
    assert_eq!(world.call(world.root, nr::GETCWD, &[8, length]), Err(Errno::EFAULT));
}

#[test]
fn directories_of_processes_outlive_vfs() {
    let mut world = World::new();
    world.make_directory("/jail", 0o755, (0, 0));
    world.make_directory("/jail/dir", 0o755, (0, 0));
    let child = world.fork(world.root, 0);
    assert_eq!(world.change_directory(child, "/jail/dir"), Ok(0));
    assert_eq!(world.path_call(child, nr::CHROOT, "/jail", &[]), Ok(0));
    assert_eq!(world.call(child, nr::UMASK, &[0o70]), Ok(0o22));
    world.restart_vfs();
    let shown = |process: Endpoint, what| {
        let request = vfs::DescriptorPath { process, what, grant: GrantId(0), bytes: 100 };
        let bytes = world.call_as_procfs(request.message()).unwrap();
        world.machine.read(PROCFS, 0, bytes as usize)
    };
    assert_eq!((shown(child, -1), shown(child, -2)), (b"/dir".to_vec(), b"/jail".to_vec()));
    assert_eq!(world.call(child, nr::UMASK, &[0]), Ok(0o70));
    assert_eq!(world.stat(child, "/dir").unwrap().inode, world.stat(child, ".").unwrap().inode);
    assert_eq!(world.stat(child, "/jail"), Err(Errno::ENOENT));
}
