//! What vfs knows of a file's attributes: it does not ask twice, and never says what is not true any more. A successor of vfs knows nothing, so
//! what it says is what the file system says.

use super::mappings::{MAP_SHARED, PROT_READ, PROT_WRITE, map, store};
use super::services::PAGE;
use super::*;
use abi::{Endpoint, linux::nr};

const PATHS: [&str; 7] = ["/", "/file", "/hard", "/other", "/dir", "/dir/sub", "/link"];
const NS_PER_S: u64 = 1_000_000_000;
const FILE: u64 = 0;
const OTHER: u64 = 1;
const DIRECTORY: u64 = 2;

/// The whole `struct stat` of each path; of the open file too, which may have no name any more.
fn all(world: &World) -> Vec<Result<Vec<u64>>> {
    let words = |result: Result<u64>| result.map(|_| world.read_words(world.root, DATA, 18));
    let by_path = PATHS.map(|path| words(world.path_call(world.root, nr::LSTAT, path, &[DATA])));
    let open = words(world.call(world.root, nr::FSTAT, &[FILE, DATA]));
    by_path.into_iter().chain([open]).collect()
}

/// Files and directories, three of them open, none of them accessed since they were changed.
fn world() -> World {
    let world = World::new();
    world.machine.advance_ns(5 * NS_PER_S);
    world.make("/file", &[b'x'; 5000], 0o6777, (0, 0));
    world.make("/other", &[b'y'; 5000], 0o644, (0, 0));
    for directory in ["/dir", "/dir/sub"] {
        world.make_directory(directory, 0o755, (0, 0));
    }
    assert_eq!(world.paths_call(world.root, nr::LINK, "/file", "/hard"), Ok(0));
    assert_eq!(world.paths_call(world.root, nr::SYMLINK, "/file", "/link"), Ok(0));
    for (path, flags, expected) in [("/file", O_RDWR, FILE), ("/other", O_RDWR, OTHER), ("/dir", O_RDONLY, DIRECTORY)] {
        assert_eq!(world.open(world.root, path, flags, 0), Ok(expected));
    }
    world
}

/// Everything is known, then `act` changes something, and vfs says what its successor says.
fn follows(what: &str, act: impl FnOnce(&World) -> Result<u64>) {
    let mut world = world();
    let before = all(&world);
    assert_eq!(all(&world), before, "{what}: nothing has happened");
    world.machine.advance_ns(2 * NS_PER_S);
    act(&world).unwrap_or_else(|error| panic!("{what}: {error}"));
    let after = all(&world);
    assert_ne!(after, before, "{what}: it has changed something");
    assert_eq!(all(&world), after, "{what}: said twice");
    world.restart_vfs();
    assert_eq!(all(&world), after, "{what}: what a successor says");
}

/// How many of so many files that were made in a directory are known without their file system, which is killed.
fn known_of(world: &mut World, directory: &str, files: usize, file_system: Endpoint) -> usize {
    let path = |number: usize| format!("{directory}/{number}");
    for number in 0..files {
        world.make(&path(number), b"", 0o644, (0, 0));
        world.path_call(world.root, nr::LSTAT, &path(number), &[DATA]).expect("it was made");
    }
    world.machine.kill(file_system);
    let is_known = |number: &usize| {
        let path = world.path(world.root, 0, &path(*number));
        world.begin_call(world.root, nr::LSTAT, &[path, DATA]).is_some()
    };
    (0..files).rev().take_while(is_known).count()
}

#[test]
fn names_of_a_file_system_in_memory_are_kept_however_many_files_that_has_in_use() {
    const FILES: usize = 400;
    let mut world = World::new();
    world.mount_tmpfs("/tmp");
    let (tmpfs, ext2) = (world.tmpfs(), world.ext2());
    assert_eq!(known_of(&mut world, "/tmp", FILES, tmpfs), FILES);
    let known = known_of(&mut world, "", FILES, ext2);
    assert!((1..200).contains(&known), "{known} of ext2, which has a table of them");
}

#[test]
fn what_is_known_is_said_without_the_file_system() {
    let mut world = world();
    let before = all(&world);
    let ext2 = world.ext2();
    world.machine.kill(ext2);
    assert_eq!(all(&world), before);
}

#[test]
fn a_name_that_was_looked_up_needs_no_further_question() {
    let mut world = world();
    world.restart_vfs();
    // Names are asked for, attributes are not.
    for path in PATHS {
        world.path_call(world.root, nr::ACCESS, path, &[0]).unwrap();
    }
    let ext2 = world.ext2();
    world.machine.kill(ext2);
    for path in ["/file", "/hard", "/other", "/dir", "/dir/sub"] {
        assert!(world.path_call(world.root, nr::STAT, path, &[DATA]).is_ok(), "{path}");
    }
}

/// How many messages ext2 receives while something is done, that is requests of vfs: nothing here waits for the disk.
pub fn requests(world: &World, act: impl FnOnce(&World) -> Result<u64>) -> u64 {
    let before = world.machine.messages(world.ext2());
    assert_eq!(act(world), Ok(0));
    world.machine.messages(world.ext2()) - before
}

#[test]
fn attributes_that_were_changed_take_one_request_and_are_known() {
    let world = world();
    all(&world);
    world.machine.advance_ns(2 * NS_PER_S);
    let one = |number, path: &'static str, words: &'static [u64]| {
        move |world: &World| world.path_call(world.root, number, path, words)
    };
    let times = world.words(world.root, &[11, 0, 22, 0]);
    let name = |world: &World| world.path(world.root, 0, "/dir/sub");
    let took = [
        requests(&world, one(nr::CHMOD, "/file", &[0o640])),
        requests(&world, |world| world.call(world.root, nr::FCHMOD, &[OTHER, 0o640])),
        requests(&world, |world| world.call(world.root, nr::FCHMODAT, &[AT_FDCWD, name(world), 0o700])),
        requests(&world, one(nr::CHOWN, "/dir/sub", &[3, 4])),
        requests(&world, one(nr::LCHOWN, "/link", &[3, 4])),
        requests(&world, |world| world.call(world.root, nr::FCHOWN, &[OTHER, 5, 6])),
        requests(&world, one(nr::UTIME, "/dir", &[0])),
        requests(&world, |world| world.call(world.root, nr::UTIMENSAT, &[AT_FDCWD, name(world), times, 0])),
        requests(&world, |world| world.call(world.root, nr::UTIMENSAT, &[FILE, 0, times, 0])),
    ];
    assert_eq!(took, [1; 9]);
    let asked = requests(&world, |world| {
        all(world);
        Ok(0)
    });
    assert_eq!(asked, 0, "what is told of them is known");
}

#[test]
fn a_name_is_asked_for_once_to_be_removed_though_it_does_not_exist() {
    let mut world = world();
    world.restart_vfs();
    for path in ["/dir/sub", "/file"] {
        world.path_call(world.root, nr::ACCESS, path, &[0]).expect("it exists");
    }
    let unlink = |path: &'static str, expected| {
        requests(&world, move |world| {
            assert_eq!(world.path_call(world.root, nr::UNLINK, path, &[]), Err(expected));
            Ok(0)
        })
    };
    assert_eq!([(); 2].map(|()| unlink("/dir/sub/none", abi::Errno::ENOENT)), [1, 0]);
    assert_eq!([(); 2].map(|()| unlink("/dir/none/none", abi::Errno::ENOENT)), [1, 0]);
    let by_link = [(); 2].map(|()| unlink("/link/none", abi::Errno::ENOTDIR));
    assert_eq!(by_link, [2, 1], "the link is looked up once, and read each time");
}

/// Whether ext2 is asked when a name is looked for that does not exist.
fn is_asked_for(world: &World, path: &str) -> bool {
    let asked = requests(world, |world| {
        assert_eq!(world.path_call(world.root, nr::STAT, path, &[DATA]), Err(abi::Errno::ENOENT), "{path}");
        Ok(0)
    });
    asked > 0
}

#[test]
fn of_a_directory_that_was_made_here_it_is_known_what_it_does_not_have() {
    let mut world = World::new();
    world.make_directory("/new", 0o755, (0, 0));
    world.make("/new/file", b"", 0o644, (0, 0));
    world.make_directory("/new/sub", 0o755, (0, 0));
    assert!(["/new/none", "/new/sub/none"].iter().all(|path| !is_asked_for(&world, path)));
    let long = format!("/new/{}", "x".repeat(60));
    assert!(is_asked_for(&world, &long), "long names are not kept");
    world.make(&long, b"", 0o644, (0, 0));
    assert_eq!(world.paths_call(world.root, nr::RENAME, "/new/sub", "/moved"), Ok(0));
    assert!(world.path_call(world.root, nr::STAT, "/moved/../new/file", &[DATA]).is_ok());
    assert!(["/new/sub", "/new/other", "/moved/none"].iter().all(|path| !is_asked_for(&world, path)));
    assert_eq!(world.paths_call(world.root, nr::SYMLINK, "file", "/new/link"), Ok(0));
    assert!(world.path_call(world.root, nr::STAT, "/new/link", &[DATA]).is_ok());
    assert!(is_asked_for(&world, "/new/another"), "the link's name was not kept");
    world.restart_vfs();
    assert!(is_asked_for(&world, "/moved/none"), "a successor has not made it");
}

#[test]
fn a_directory_that_may_have_been_used_before_its_maker_heard_of_it_is_asked_for_names() {
    let mut world = World::new();
    let call = [world.path(world.root, 0, "/new"), 0o755];
    assert_eq!(world.call(world.root, nr::MKDIR, &call), Ok(0));
    world.restart_vfs();
    let other = world.user(0, 0);
    assert_eq!(world.paths_call(other, nr::SYMLINK, "target", "/new/link"), Ok(0));
    assert_eq!(world.repeat_earlier(2, world.root, nr::MKDIR, &call), Some(Ok(0)));
    assert!(world.path_call(other, nr::LSTAT, "/new/link", &[DATA]).is_ok());
}

/// Whether it is known of a new directory what it does not have, when `meanwhile` happens while its file system waits for the disk to make it.
fn is_known_as_a_whole(meanwhile: impl FnOnce(&World) -> Result<u64>) -> bool {
    let mut world = World::new();
    world.mount_tmpfs("/tmp");
    world.make("/tmp/file", b"", 0o644, (0, 0));
    world.evict();
    world.restart_vfs();
    assert!(world.stat(world.root, "/new").is_err(), "this is known, and not asked again");
    world.stat(world.root, "/tmp/file").expect("it exists");
    world.evict();
    let maker = world.fork(world.root, 0);
    let call = [world.path(maker, 0, "/new"), 0o755];
    world.hold_disk();
    assert_eq!(world.begin_call(maker, nr::MKDIR, &call), None, "it waits for the disk");
    meanwhile(&world).expect("it does not wait");
    world.release_disk();
    assert_eq!(world.result(maker), Some(Ok(0)));
    !is_asked_for(&world, "/new/none")
}

#[test]
fn a_directory_is_not_taken_for_empty_if_anything_has_changed_while_it_was_made() {
    assert!(is_known_as_a_whole(|world| world.path_call(world.root, nr::ACCESS, "/tmp/file", &[0])));
    assert!(!is_known_as_a_whole(|world| world.path_call(world.root, nr::CHMOD, "/tmp/file", &[0o600])));
}

#[test]
fn what_another_mount_shows_of_a_directory_is_not_missed() {
    const MS_BIND: u64 = 0x1000;
    let world = World::new();
    world.make_directory("/place", 0o755, (0, 0));
    let mount = [world.path(world.root, 0, "/"), world.path(world.root, 1, "/place"), 0, MS_BIND, 0];
    assert_eq!(world.call(world.root, nr::MOUNT, &mount), Ok(0));
    world.make_directory("/new", 0o755, (0, 0));
    world.make("/place/new/file", b"", 0o644, (0, 0));
    assert!(world.path_call(world.root, nr::STAT, "/new/file", &[DATA]).is_ok());
}

#[test]
fn names_of_a_mount_that_is_detached_are_made_and_found() {
    const MNT_DETACH: u64 = 2;
    let mut world = World::new();
    world.mount_tmpfs("/tmp");
    world.make_directory("/tmp/new", 0o755, (0, 0));
    let directory = world.open(world.root, "/tmp/new", O_RDONLY, 0).expect("it exists");
    assert_eq!(world.path_call(world.root, nr::UMOUNT2, "/tmp", &[MNT_DETACH]), Ok(0));
    let open = |path, flags| {
        let name = world.path(world.root, 0, path);
        world.call(world.root, nr::OPENAT, &[directory, name, flags, 0o644])
    };
    let sub = world.path(world.root, 0, "sub");
    assert_eq!(world.call(world.root, nr::MKDIRAT, &[directory, sub, 0o755]), Ok(0));
    for path in ["file", "sub/file"] {
        open(path, O_CREAT | O_EXCL | O_WRONLY).expect("it is made");
        open(path, O_RDONLY).expect("it is found");
    }
}

#[test]
fn names_that_are_known_keep_no_mount_that_is_detached() {
    const MNT_DETACH: u64 = 2;
    let mut world = World::new();
    world.mount_tmpfs("/tmp");
    world.make("/tmp/file", b"", 0o644, (0, 0));
    assert!(world.path_call(world.root, nr::STAT, "/tmp/file", &[DATA]).is_ok());
    let before = world.machine.messages(world.tmpfs());
    assert_eq!(world.path_call(world.root, nr::UMOUNT2, "/tmp", &[MNT_DETACH]), Ok(0));
    assert!(world.machine.messages(world.tmpfs()) > before, "its file system is unmounted");
}

/// Random changes of names in directories that vfs has made: what it finds then is what its successor finds.
#[test]
fn names_in_directories_made_here_are_those_that_a_successor_finds() {
    const PLACES: [&str; 4] = ["", "/a", "/a/b", "/b"];
    let mut random = 1u64;
    let mut below = |bound: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % bound
    };
    for round in 0..60 {
        let mut world = World::new();
        world.make_directory("/new", 0o755, (0, 0));
        let mut name = || format!("/new{}/{}", PLACES[below(4) as usize], ["a", "b", "c"][below(3) as usize]);
        let paths: Vec<_> = (0..60).map(|_| [name(), name()]).collect();
        for [first, second] in &paths {
            let _ = match below(8) {
                0 | 1 => world.path_call(world.root, nr::MKDIR, first, &[0o755]),
                2 => world.path_call(world.root, nr::MKNOD, first, &[u64::from(S_IFREG) | 0o644, 0]),
                3 => world.path_call(world.root, nr::UNLINK, first, &[]),
                4 => world.path_call(world.root, nr::RMDIR, first, &[]),
                5 => world.paths_call(world.root, nr::RENAME, first, second),
                6 => world.paths_call(world.root, nr::LINK, first, second),
                _ => world.paths_call(world.root, nr::SYMLINK, "a", first),
            };
        }
        let found = |world: &World| -> Vec<_> {
            let find = |path: &String| world.path_call(world.root, nr::LSTAT, path, &[DATA]);
            paths.iter().flatten().map(find).collect()
        };
        let before = found(&world);
        world.restart_vfs();
        assert_eq!(found(&world), before, "round {round}");
    }
}

#[test]
fn a_new_file_is_known_once_its_attributes_were_set() {
    let stat = |world: &World| {
        assert_eq!(world.path_call(world.root, nr::STAT, "/new", &[DATA]), Ok(0));
        Ok(0)
    };
    let make: [fn(&World); 3] = [
        |world| world.make("/new", &[b'x'; 5000], 0o644, (0, 0)),
        |world| {
            world.make("/new", &[b'x'; 5000], 0o644, (0, 0));
            assert_eq!(world.paths_call(world.root, nr::LINK, "/new", "/newer"), Ok(0));
            assert_eq!(world.path_call(world.root, nr::TRUNCATE, "/new", &[300_000]), Ok(0));
        },
        |world| {
            let file = world.open(world.root, "/new", O_CREAT | O_WRONLY, 0o4755).expect("it is made");
            world.pwrite(world.root, file, b"far away", 100_000).expect("it is written");
        },
    ];
    let set: [(&str, fn(&World) -> Result<u64>); 3] = [
        ("chmod", |world| world.path_call(world.root, nr::CHMOD, "/new", &[0o600])),
        ("chown", |world| world.path_call(world.root, nr::CHOWN, "/new", &[3, 4])),
        ("utime", |world| world.path_call(world.root, nr::UTIME, "/new", &[0])),
    ];
    for make in make {
        for (what, set) in set {
            let mut world = world();
            all(&world);
            world.machine.advance_ns(2 * NS_PER_S);
            make(&world);
            set(&world).unwrap_or_else(|error| panic!("{what}: {error}"));
            assert_eq!(requests(&world, stat), 0, "{what}: it is known");
            let known = world.read_words(world.root, DATA, 18);
            world.restart_vfs();
            assert_eq!(stat(&world), Ok(0));
            assert_eq!(world.read_words(world.root, DATA, 18), known, "{what}: what a successor says");
        }
    }
}

#[test]
fn the_end_of_a_directory_is_told_once() {
    let mut world = world();
    let read = |world: &World| world.call(world.root, nr::GETDENTS64, &[DIRECTORY, DATA, 1000]);
    assert!(read(&world).is_ok_and(|bytes| bytes > 0));
    let ext2 = world.ext2();
    world.machine.kill(ext2);
    assert_eq!(read(&world), Ok(0));
}

#[test]
fn a_change_of_content_is_seen() {
    let data = |world: &World| world.data(world.root, &[b'z'; 3000]);
    follows("write", |world| world.call(world.root, nr::WRITE, &[FILE, data(world), 10]));
    follows("append", |world| world.call(world.root, nr::PWRITE64, &[FILE, data(world), 3000, 5000]));
    follows("ftruncate", |world| world.call(world.root, nr::FTRUNCATE, &[FILE, 10]));
    follows("truncate to more", |world| world.path_call(world.root, nr::TRUNCATE, "/hard", &[9000]));
    follows("open with O_TRUNC", |world| world.open(world.root, "/file", O_WRONLY | O_TRUNC, 0));
    follows("fallocate", |world| world.call(world.root, nr::FALLOCATE, &[FILE, 0, 0, 30_000]));
    follows("a hole", |world| world.call(world.root, nr::FALLOCATE, &[FILE, 3, 0, 4096]));
    follows("copy_file_range", |world| world.call(world.root, nr::COPY_FILE_RANGE, &[OTHER, 0, FILE, 0, 5000, 0]));
    follows("sendfile", |world| world.call(world.root, nr::SENDFILE, &[FILE, OTHER, 0, 100]));
}

#[test]
fn a_store_to_a_mapping_is_seen_once_it_is_written_back() {
    follows("a shared mapping", |world| {
        let (object, error, _) = map(world, FILE, 0, PAGE, MAP_SHARED | PROT_READ | PROT_WRITE);
        assert_eq!(error, 0);
        store(world, object, 5, b'!');
        all(world);
        world.call(world.root, nr::FSYNC, &[FILE])
    });
    follows("a write to a mapped file", |world| {
        let (_, error, _) = map(world, FILE, 0, PAGE, MAP_SHARED | PROT_READ | PROT_WRITE);
        assert_eq!(error, 0);
        all(world);
        world.call(world.root, nr::WRITE, &[FILE, world.data(world.root, b"!!"), 2])
    });
}

#[test]
fn a_read_is_seen_when_it_changes_the_time_of_access() {
    follows("read", |world| world.call(world.root, nr::READ, &[FILE, DATA, 10]));
    follows("getdents64", |world| world.call(world.root, nr::GETDENTS64, &[DIRECTORY, DATA, 1000]));
    follows("getdents", |world| world.call(world.root, nr::GETDENTS, &[DIRECTORY, DATA, 1000]));
    follows("splice", |world| {
        let (_, writes) = world.pipe(world.root, 0);
        world.call(world.root, nr::SPLICE, &[FILE, 0, writes, 0, 100, 0])
    });
    follows("a day later", |world| {
        world.call(world.root, nr::READ, &[FILE, DATA, 10]).unwrap();
        all(world);
        world.machine.advance_ns(25 * 60 * 60 * NS_PER_S);
        world.call(world.root, nr::PREAD64, &[FILE, DATA, 10, 0])
    });
}

#[test]
fn what_a_read_has_changed_needs_no_further_question() {
    let reads: [(&str, &str, fn(&World) -> Result<u64>); 4] = [
        ("read", "/file", |world| world.call(world.root, nr::READ, &[FILE, DATA, 10])),
        ("getdents64", "/dir", |world| world.call(world.root, nr::GETDENTS64, &[DIRECTORY, DATA, 1000])),
        ("splice", "/file", |world| {
            let (_, writes) = world.pipe(world.root, 0);
            world.call(world.root, nr::SPLICE, &[FILE, 0, writes, 0, 100, 0])
        }),
        ("copy_file_range", "/other", |world| {
            world.call(world.root, nr::COPY_FILE_RANGE, &[OTHER, 0, FILE, 0, 5000, 0])
        }),
    ];
    for (what, path, read) in reads {
        let mut world = world();
        let accessed = |world: &World| world.stat(world.root, path).unwrap().accessed_s;
        let before = accessed(&world);
        world.machine.advance_ns(2 * NS_PER_S);
        read(&world).unwrap_or_else(|error| panic!("{what}: {error}"));
        let ext2 = world.ext2();
        world.machine.kill(ext2);
        let name = world.path(world.root, 0, path);
        assert!(world.begin_call(world.root, nr::LSTAT, &[name, DATA]).is_some(), "{what} is asked for");
        assert_eq!(accessed(&world), before + 2, "{what}");
    }
}

#[test]
fn a_change_of_names_is_seen() {
    let two = |number, first, second| move |world: &World| world.paths_call(world.root, number, first, second);
    let one =
        |number, path, words: &'static [u64]| move |world: &World| world.path_call(world.root, number, path, words);
    follows("creat", |world| world.open(world.root, "/dir/new", O_CREAT | O_WRONLY, 0o600));
    follows("mkdir", one(nr::MKDIR, "/dir/new", &[0o700]));
    follows("mknod", one(nr::MKNOD, "/dir/new", &[S_IFIFO as u64 | 0o600, 0]));
    follows("symlink", two(nr::SYMLINK, "/file", "/dir/new"));
    follows("link", two(nr::LINK, "/file", "/dir/new"));
    follows("unlink of one name", one(nr::UNLINK, "/hard", &[]));
    follows("unlink of the last name", one(nr::UNLINK, "/other", &[]));
    follows("rmdir", one(nr::RMDIR, "/dir/sub", &[]));
    follows("rename", two(nr::RENAME, "/file", "/dir/new"));
    follows("rename over another", two(nr::RENAME, "/other", "/hard"));
    follows("rename of a directory", two(nr::RENAME, "/dir/sub", "/new"));
    let exchange = |flags| {
        move |world: &World| {
            let (first, second) = (world.path(world.root, 0, "/file"), world.path(world.root, 1, "/dir/sub"));
            world.call(world.root, nr::RENAMEAT2, &[AT_FDCWD, first, AT_FDCWD, second, flags])
        }
    };
    follows("exchange", exchange(2));
    follows("whiteout", |world| {
        let (first, second) = (world.path(world.root, 0, "/other"), world.path(world.root, 1, "/dir/new"));
        world.call(world.root, nr::RENAMEAT2, &[AT_FDCWD, first, AT_FDCWD, second, 4])
    });
}

#[test]
fn a_change_of_attributes_is_seen() {
    follows("fchmod", |world| world.call(world.root, nr::FCHMOD, &[FILE, 0o600]));
    follows("chmod of a directory", |world| world.path_call(world.root, nr::CHMOD, "/dir/sub", &[0o3711]));
    follows("lchown of a link", |world| world.path_call(world.root, nr::LCHOWN, "/link", &[7, u64::MAX]));
    follows("chmod after a write", |world| {
        world.write(world.root, FILE, b"dirty")?;
        world.path_call(world.root, nr::CHMOD, "/hard", &[0o640])
    });
    follows("a time that is left, and one that is now", |world| {
        const NOW: u64 = (1 << 30) - 1;
        let (path, times) = (world.path(world.root, 0, "/file"), world.words(world.root, &[0, NOW - 1, 0, NOW]));
        world.call(world.root, nr::UTIMENSAT, &[AT_FDCWD, path, times, 0])
    });
    follows("chown", |world| world.path_call(world.root, nr::CHOWN, "/hard", &[7, 8]));
    follows("utime", |world| {
        let times = world.words(world.root, &[11, 22]);
        world.path_call(world.root, nr::UTIME, "/file", &[times])
    });
    let set = |world: &World| {
        let name = world.path(world.root, 1, "user.a");
        world.path_call(world.root, nr::SETXATTR, "/file", &[name, DATA, 5, 0])
    };
    follows("setxattr", set);
    follows("chown of a program with capabilities", |world| {
        let name = world.path(world.root, 1, "security.capability");
        let value = world.words(world.root, &[1 << 25 | 1 << 32, 0, 0]);
        world.path_call(world.root, nr::SETXATTR, "/file", &[name, value, 20, 0]).unwrap();
        all(world);
        world.machine.advance_ns(2 * NS_PER_S);
        world.path_call(world.root, nr::CHOWN, "/file", &[7, 8])
    });
    follows("removexattr", |world| {
        set(world).unwrap();
        all(world);
        world.machine.advance_ns(2 * NS_PER_S);
        world.paths_call(world.root, nr::REMOVEXATTR, "/file", "user.a")
    });
}
