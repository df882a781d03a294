//! What happens to names: make, remove, rename, link, list.

use super::*;
use abi::{Errno, linux::nr};

#[test]
fn directories_list_what_is_in_them() {
    let world = World::new();
    world.make_directory("/dir", 0o755, (0, 0));
    let mut names: Vec<std::string::String> = (0..60).map(|number| std::format!("file-{number:03}")).collect();
    names.iter().for_each(|name| world.make(&std::format!("/dir/{name}"), b"", 0o644, (0, 0)));
    assert_eq!(world.names(world.root, "/dir").unwrap(), names);
    assert_eq!(world.path_call(world.root, nr::UNLINK, "/dir/file-030", &[]), Ok(0));
    names.remove(30);
    assert_eq!(world.names(world.root, "/dir").unwrap(), names);
    let directory = world.open(world.root, "/dir", O_RDONLY, 0).unwrap();
    assert_eq!(world.call(world.root, nr::GETDENTS64, &[directory, DATA, 8]), Err(Errno::EINVAL), "no room for one");
    assert_eq!(world.open(world.root, "/dir/file-000", O_RDONLY | O_DIRECTORY, 0), Err(Errno::ENOTDIR));
}

#[test]
fn a_listing_goes_on_where_it_was_when_vfs_has_died() {
    let mut world = World::new();
    world.mount_tmpfs("/tmp");
    for directory in ["/", "/tmp"] {
        let path = std::format!("{directory}/dir");
        world.make_directory(&path, 0o755, (0, 0));
        let names: Vec<std::string::String> = (0..60).map(|number| std::format!("file-{number:03}")).collect();
        names.iter().for_each(|name| world.make(&std::format!("{path}/{name}"), b"", 0o644, (0, 0)));
        let open = world.open(world.root, &path, O_RDONLY | O_DIRECTORY, 0).unwrap();
        let mut listed = Vec::new();
        // Half of them, the rest, and nothing, twice.
        for call in 0..4 {
            let more = world.more_names(world.root, open).unwrap();
            assert!(more.is_empty() == (call >= 2), "{directory}, call {call}: {more:?}");
            listed.extend(more.into_iter().filter(|name| !name.starts_with('.')));
            world.restart_vfs();
        }
        listed.sort();
        assert_eq!(listed, names, "{directory}");
        world.close(world.root, open).unwrap();
    }
}

#[test]
fn only_empty_directories_are_removed() {
    let world = World::new();
    world.make_directory("/dir", 0o755, (0, 0));
    world.make("/dir/file", b"", 0o644, (0, 0));
    let remove = |path| world.path_call(world.root, nr::RMDIR, path, &[]);
    assert_eq!(remove("/dir"), Err(Errno::ENOTEMPTY));
    assert_eq!(remove("/dir/file"), Err(Errno::ENOTDIR));
    assert_eq!(remove("/dir/."), Err(Errno::EINVAL));
    assert_eq!(remove("/dir/.."), Err(Errno::ENOTEMPTY));
    assert_eq!(remove("/"), Err(Errno::EBUSY));
    assert_eq!(world.path_call(world.root, nr::UNLINK, "/dir", &[]), Err(Errno::EISDIR));
    assert_eq!(world.path_call(world.root, nr::UNLINK, "/dir/file", &[]), Ok(0));
    assert_eq!(remove("/dir"), Ok(0));
    assert_eq!(remove("/dir"), Err(Errno::ENOENT));
}

#[test]
fn a_removed_file_lives_until_it_is_closed() {
    let world = World::new();
    world.make("/file", b"still", 0o644, (0, 0));
    let file = world.open(world.root, "/file", O_RDWR, 0).unwrap();
    assert_eq!(world.path_call(world.root, nr::UNLINK, "/file", &[]), Ok(0));
    assert_eq!(world.open(world.root, "/file", O_RDONLY, 0), Err(Errno::ENOENT));
    assert_eq!(world.read(world.root, file, 9).unwrap(), b"still");
    assert_eq!(world.fstat(world.root, file).unwrap().links, 0);
    assert_eq!(world.write(world.root, file, b"!"), Ok(1));
}

#[test]
fn hard_links_are_one_file() {
    let world = World::new();
    world.make("/one", b"x", 0o644, (0, 0));
    world.make_directory("/dir", 0o755, (0, 0));
    assert_eq!(world.paths_call(world.root, nr::LINK, "/one", "/dir/two"), Ok(0));
    let (one, two) = (world.stat(world.root, "/one").unwrap(), world.stat(world.root, "/dir/two").unwrap());
    assert_eq!((one.inode, one.links), (two.inode, 2));
    assert_eq!(world.paths_call(world.root, nr::LINK, "/one", "/dir/two"), Err(Errno::EEXIST));
    assert_eq!(world.paths_call(world.root, nr::LINK, "/dir", "/dir2"), Err(Errno::EPERM));
    assert_eq!(world.paths_call(world.root, nr::LINK, "/none", "/three"), Err(Errno::ENOENT));
    assert_eq!(world.path_call(world.root, nr::UNLINK, "/one", &[]), Ok(0));
    assert_eq!(world.content("/dir/two"), b"x");
}

#[test]
fn renaming_moves_and_replaces() {
    let world = World::new();
    world.make("/one", b"1", 0o644, (0, 0));
    world.make("/two", b"2", 0o644, (0, 0));
    world.make_directory("/dir", 0o755, (0, 0));
    world.make_directory("/dir/sub", 0o755, (0, 0));
    let rename = |from, to| world.paths_call(world.root, nr::RENAME, from, to);
    assert_eq!(rename("/one", "/two"), Ok(0));
    assert_eq!(world.content("/two"), b"1");
    assert_eq!(rename("/one", "/three"), Err(Errno::ENOENT));
    assert_eq!(rename("/two", "/dir/two"), Ok(0));
    assert_eq!(world.names(world.root, "/dir").unwrap(), ["sub", "two"]);
    assert_eq!(rename("/dir", "/dir/sub/dir"), Err(Errno::EINVAL), "into itself");
    assert_eq!(rename("/dir/two", "/dir/sub"), Err(Errno::EISDIR));
    assert_eq!(rename("/dir/sub", "/dir/two"), Err(Errno::ENOTDIR));
    assert_eq!(rename("/dir/sub", "/"), Err(Errno::EBUSY));
    assert_eq!(rename("/dir/sub", "/sub"), Ok(0));
    assert_eq!(world.stat(world.root, "/dir").unwrap().links, 2, "`..` of sub is elsewhere");
}

#[test]
fn renameat2_does_not_replace_when_asked() {
    let world = World::new();
    const NOREPLACE: u64 = 1;
    world.make("/one", b"1", 0o644, (0, 0));
    world.make("/two", b"2", 0o644, (0, 0));
    let rename = |to| {
        let (from, to) = (world.path(world.root, 0, "/one"), world.path(world.root, 1, to));
        world.call(world.root, nr::RENAMEAT2, &[AT_FDCWD, from, AT_FDCWD, to, NOREPLACE])
    };
    assert_eq!(rename("/two"), Err(Errno::EEXIST));
    assert_eq!(rename("/three"), Ok(0));
    assert!(world.names(world.root, "/").unwrap().contains(&"three".into()));
}

#[test]
fn an_open_file_follows_its_directory_that_is_renamed() {
    let world = World::new();
    world.make_directory("/old", 0o755, (0, 0));
    world.make("/old/file", b"x", 0o644, (0, 0));
    assert_eq!(world.change_directory(world.root, "/old"), Ok(0));
    assert_eq!(world.paths_call(world.root, nr::RENAME, "/old", "/new"), Ok(0));
    assert_eq!(world.content("file"), b"x");
    let bytes = world.call(world.root, nr::GETCWD, &[DATA, 100]).unwrap();
    assert_eq!(world.machine.read(world.root, DATA, bytes as usize), b"/new\0");
}

#[test]
fn nothing_is_made_in_a_directory_that_was_removed() {
    let world = World::new();
    world.make_directory("/dir", 0o755, (0, 0));
    assert_eq!(world.change_directory(world.root, "/dir"), Ok(0));
    assert_eq!(world.path_call(world.root, nr::RMDIR, "/dir", &[]), Ok(0));
    assert_eq!(world.open(world.root, "file", O_CREAT | O_WRONLY, 0o644), Err(Errno::ENOENT));
    assert_eq!(world.call(world.root, nr::GETCWD, &[DATA, 100]), Err(Errno::ENOENT));
}

#[test]
fn a_file_system_in_memory_is_mounted_and_unmounted() {
    let mut world = World::new();
    world.mount_tmpfs("/tmp");
    world.make("/tmp/file", b"in memory", 0o644, (0, 0));
    assert_eq!(world.content("/tmp/../tmp/file"), b"in memory");
    world.make("/elsewhere", b"", 0o644, (0, 0));
    assert_eq!(world.paths_call(world.root, nr::LINK, "/elsewhere", "/tmp/link"), Err(Errno::EXDEV));
    assert_eq!(world.paths_call(world.root, nr::RENAME, "/elsewhere", "/tmp/moved"), Err(Errno::EXDEV));
    let file = world.open(world.root, "/tmp/file", O_RDONLY, 0).unwrap();
    assert_eq!(world.path_call(world.root, nr::UMOUNT2, "/tmp", &[0]), Err(Errno::EBUSY));
    world.close(world.root, file).unwrap();
    assert_eq!(world.path_call(world.root, nr::UMOUNT2, "/tmp", &[0]), Ok(0));
    assert!(world.names(world.root, "/tmp").unwrap().is_empty());
    assert_eq!(world.path_call(world.root, nr::UMOUNT2, "/tmp", &[0]), Err(Errno::EINVAL));
}

#[test]
fn the_space_of_a_removed_file_is_free_when_it_is_closed() {
    let world = World::new();
    let free = || {
        assert_eq!(world.path_call(world.root, nr::STATFS, "/", &[DATA]), Ok(0));
        let words = world.read_words(world.root, DATA, 7);
        (words[3], words[6])
    };
    let before = free();
    world.make("/file", &[7; 50_000], 0o644, (0, 0));
    let file = world.open(world.root, "/file", O_RDONLY, 0).unwrap();
    let child = world.fork(world.root, 0);
    assert_eq!(world.path_call(world.root, nr::UNLINK, "/file", &[]), Ok(0));
    world.close(world.root, file).unwrap();
    let held = free();
    assert!(held.0 < before.0 && held.1 == before.1 - 1, "{held:?} of {before:?}");
    world.exit(child);
    world.machine.run();
    assert_eq!(free(), before);
}
