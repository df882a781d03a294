//! The times of files: utime, utimes, futimesat, utimensat.

use super::*;
use abi::{Errno, linux::nr};

const AT_SYMLINK_NOFOLLOW: u64 = 0x100;
const AT_EMPTY_PATH: u64 = 0x1000;
const UTIME_NOW: u64 = (1 << 30) - 1;
const UTIME_OMIT: u64 = (1 << 30) - 2;
const NS_PER_S: u64 = 1_000_000_000;

/// A file whose last access was at 11 and whose last change at 22.
fn world() -> World {
    let world = World::new();
    world.machine.advance_ns(5 * NS_PER_S);
    world.make("/file", b"x", 0o646, (1000, 100));
    reset(&world);
    world
}

fn reset(world: &World) {
    let times = world.words(world.root, &[11, 0, 22, 0]);
    assert_eq!(world.path_call(world.root, nr::UTIMES, "/file", &[times]), Ok(0));
}

/// Seconds of the last access and the last change.
fn times(world: &World, path: &str) -> (u64, u64) {
    assert_eq!(world.path_call(world.root, nr::LSTAT, path, &[DATA]), Ok(0));
    let words = world.read_words(world.root, DATA, 18);
    (words[9], words[11])
}

fn now_s(world: &World) -> u64 {
    (sys::host::machine::START_REAL_NS + world.machine.now_ns()) / NS_PER_S
}

#[test]
fn utime_has_seconds_and_the_others_parts_of_them() {
    let world = world();
    let set = |call, words: &[u64]| {
        let times = world.words(world.root, words);
        world.path_call(world.root, call, "/file", &[times])
    };
    assert_eq!(set(nr::UTIME, &[100, 200]), Ok(0));
    assert_eq!(times(&world, "/file"), (100, 200));
    assert_eq!(set(nr::UTIMES, &[300, 999_999, 400, 0]), Ok(0));
    assert_eq!(times(&world, "/file"), (300, 400));
    assert_eq!(set(nr::UTIMES, &[1, 1_000_000, 2, 0]), Err(Errno::EINVAL));
    assert_eq!(set(nr::UTIMES, &[1, 0, 2, 1_000_000]), Err(Errno::EINVAL));
    assert_eq!(times(&world, "/file"), (300, 400));
    assert_eq!(set(nr::UTIME, &[-5i64 as u64, 7]), Ok(0));
    assert_eq!(times(&world, "/file"), (0, 7), "what is before 1970 counts as its start");
    for call in [nr::UTIME, nr::UTIMES] {
        reset(&world);
        assert_eq!(world.path_call(world.root, call, "/file", &[0]), Ok(0));
        assert_eq!(times(&world, "/file"), (now_s(&world), now_s(&world)), "without times it is now");
        assert_eq!(world.path_call(world.root, call, "/file", &[8]), Err(Errno::EFAULT));
        assert_eq!(world.path_call(world.root, call, "/none", &[0]), Err(Errno::ENOENT));
    }
}

#[test]
fn utimensat_sets_each_time_to_a_value_to_now_or_not_at_all() {
    let world = world();
    let set = |words: [u64; 4]| {
        let (path, times) = (world.path(world.root, 0, "/file"), world.words(world.root, &words));
        world.call(world.root, nr::UTIMENSAT, &[AT_FDCWD, path, times, 0])
    };
    let now = now_s(&world);
    for (words, expected) in [
        ([100, 999_999_999, 200, 0], (100, 200)),
        ([0, UTIME_OMIT, 300, 0], (11, 300)),
        ([400, 0, 0, UTIME_OMIT], (400, 22)),
        ([0, UTIME_NOW, 0, UTIME_OMIT], (now, 22)),
        ([0, UTIME_OMIT, 0, UTIME_NOW], (11, now)),
        ([0, UTIME_NOW, 0, UTIME_NOW], (now, now)),
        ([0, UTIME_OMIT, 0, UTIME_OMIT], (11, 22)),
    ] {
        reset(&world);
        assert_eq!(set(words), Ok(0));
        assert_eq!(times(&world, "/file"), expected, "{words:?}");
    }
    for words in [[0, 1_000_000_000, 0, 0], [0, 0, 0, 1_000_000_000], [0, UTIME_NOW + 1, 0, 0]] {
        assert_eq!(set(words), Err(Errno::EINVAL), "{words:?}");
    }
}

#[test]
fn the_file_is_named_by_a_path_a_directory_or_a_descriptor() {
    let world = world();
    world.make_directory("/dir", 0o755, (0, 0));
    assert_eq!(world.paths_call(world.root, nr::LINK, "/file", "/dir/name"), Ok(0));
    assert_eq!(world.paths_call(world.root, nr::SYMLINK, "/file", "/link"), Ok(0));
    let directory = world.open(world.root, "/dir", O_RDONLY, 0).unwrap();
    let file = world.open(world.root, "/file", O_RDONLY, 0).unwrap();
    let [name, link] = [(0, "name"), (1, "/link")].map(|(which, path)| world.path(world.root, which, path));
    let empty = world.data(world.root, b"\0");
    let mut second = 100;
    let mut sets = |call, file, path, flags| {
        second += 1;
        let times = world.words(world.root, &[second, 0, second, 0]);
        assert_eq!(world.call(world.root, call, &[file, path, times, flags]), Ok(0));
        times_are(&world, "/file", second)
    };
    assert!(sets(nr::UTIMENSAT, directory, name, 0));
    assert!(sets(nr::UTIMENSAT, AT_FDCWD, link, 0));
    assert!(!sets(nr::UTIMENSAT, AT_FDCWD, link, AT_SYMLINK_NOFOLLOW));
    assert!(sets(nr::UTIMENSAT, file, 0, 0));
    world.data(world.root, b"\0");
    assert!(sets(nr::UTIMENSAT, file, empty, AT_EMPTY_PATH));
    assert!(sets(nr::FUTIMESAT, directory, name, 0));
    assert!(sets(nr::FUTIMESAT, file, 0, 0));
    let call = |call, file, path, flags| world.call(world.root, call, &[file, path, 0, flags]);
    assert_eq!(call(nr::UTIMENSAT, 99, 0, 0), Err(Errno::EBADF));
    assert_eq!(call(nr::FUTIMESAT, 99, 0, 0), Err(Errno::EBADF));
    assert_eq!(call(nr::UTIMENSAT, AT_FDCWD, link, 1), Err(Errno::EINVAL));
    let (pipe, _) = world.pipe(world.root, 0);
    assert_eq!(call(nr::UTIMENSAT, pipe, 0, 0), Err(Errno::EINVAL), "pipes have no times");
}

fn times_are(world: &World, path: &str, second: u64) -> bool {
    times(world, path) == (second, second)
}

#[test]
fn who_may_write_sets_both_times_to_now_and_nothing_else() {
    let world = world();
    let (owner, writer) = (world.user(1000, 100), world.user(1001, 101));
    let set = |who, words: [u64; 4]| {
        let (path, times) = (world.path(who, 0, "/file"), world.words(who, &words));
        world.call(who, nr::UTIMENSAT, &[AT_FDCWD, path, times, 0])
    };
    let (now, omit) = ([0, UTIME_NOW], [0, UTIME_OMIT]);
    let both = |first: [u64; 2], second: [u64; 2]| [first[0], first[1], second[0], second[1]];
    assert_eq!(set(writer, both(now, now)), Ok(0));
    assert_eq!(set(writer, both(now, omit)), Err(Errno::EPERM));
    assert_eq!(set(writer, both(omit, now)), Err(Errno::EPERM));
    assert_eq!(set(writer, both([5, 0], now)), Err(Errno::EPERM));
    assert_eq!(set(writer, both(omit, omit)), Ok(0), "nothing is asked for");
    for words in [both(now, omit), both(omit, now), both([5, 0], now), both([5, 0], [6, 0])] {
        assert_eq!(set(owner, words), Ok(0));
    }
    assert_eq!(times(&world, "/file"), (5, 6));
    let stranger = world.user(1001, 100);
    assert_eq!(set(stranger, both(now, now)), Err(Errno::EACCES), "one of the group may not write");
}
