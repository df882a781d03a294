//! stat and relatives, access, chmod, chown.

use super::*;
use abi::{Errno, linux::nr};

#[test]
fn stat_tells_kind_size_owner_and_links() {
    let world = World::new();
    world.make("/file", b"12345", 0o640, (7, 8));
    world.make_directory("/dir", 0o1777, (1, 2));
    assert_eq!(world.path_call(world.root, nr::MKNOD, "/fifo", &[u64::from(S_IFIFO) | 0o600, 0]), Ok(0));
    let file = world.stat(world.root, "/file").unwrap();
    assert_eq!((file.mode, file.uid, file.gid, file.size, file.links), (S_IFREG | 0o640, 7, 8, 5, 1));
    let directory = world.stat(world.root, "/dir").unwrap();
    assert_eq!((directory.mode, directory.uid, directory.gid, directory.links), (S_IFDIR | 0o1777, 1, 2, 2));
    assert_eq!(world.stat(world.root, "/fifo").unwrap().mode, S_IFIFO | 0o600);
    let open = world.open(world.root, "/file", O_RDONLY, 0).unwrap();
    assert_eq!(world.fstat(world.root, open).unwrap(), file);
    assert_eq!(world.fstat(world.root, 99), Err(Errno::EBADF));
    assert_eq!(world.stat(world.root, "/none"), Err(Errno::ENOENT));
}

#[test]
fn a_pipe_is_shown_as_one() {
    let world = World::new();
    let (reads, writes) = world.pipe(world.root, 0);
    let (one, two) = (world.fstat(world.root, reads).unwrap(), world.fstat(world.root, writes).unwrap());
    assert_eq!(one.mode, S_IFIFO | 0o600);
    assert_eq!(one.inode, two.inode);
    let (other, _) = world.pipe(world.root, 0);
    assert_ne!(world.fstat(world.root, other).unwrap().inode, one.inode);
}

#[test]
fn flags_that_are_not_known_are_refused() {
    let world = World::new();
    world.make("/file", b"", 0o644, (0, 0));
    let path = world.path(world.root, 0, "/file");
    let call = |number, flags| world.call(world.root, number, &[AT_FDCWD, path, DATA, flags]);
    assert_eq!(call(nr::NEWFSTATAT, 0), Ok(0));
    assert_eq!(call(nr::NEWFSTATAT, 1), Err(Errno::EINVAL));
    assert_eq!(world.call(world.root, nr::STATX, &[AT_FDCWD, path, 1, 0x7ff, DATA]), Err(Errno::EINVAL));
    assert_eq!(world.call(world.root, nr::UNLINKAT, &[AT_FDCWD, path, 1]), Err(Errno::EINVAL));
    assert_eq!(world.call(world.root, nr::FACCESSAT2, &[AT_FDCWD, path, 0, 1]), Err(Errno::EINVAL));
    assert_eq!(world.call(world.root, nr::STAT, &[path, 8]), Err(Errno::EFAULT));
}

#[test]
fn an_empty_path_means_the_descriptor_when_asked() {
    let world = World::new();
    world.make("/file", b"123", 0o644, (0, 0));
    let file = world.open(world.root, "/file", O_RDONLY, 0).unwrap();
    let path = world.path(world.root, 0, "");
    assert_eq!(world.call(world.root, nr::NEWFSTATAT, &[file, path, DATA, 0]), Err(Errno::ENOENT));
    assert_eq!(world.call(world.root, nr::NEWFSTATAT, &[file, path, DATA, AT_EMPTY_PATH]), Ok(0));
    assert_eq!(world.read_words(world.root, DATA, 7)[6], 3);
    let owner = [file, path, 5, 6, AT_EMPTY_PATH];
    assert_eq!(world.call(world.root, nr::FCHOWNAT, &owner), Ok(0));
    assert_eq!(world.stat(world.root, "/file").unwrap().uid, 5);
}

#[test]
fn a_path_that_is_not_empty_counts_although_it_might_be() {
    let world = World::new();
    world.make("/file", b"123", 0o644, (0, 0));
    let directory = world.open(world.root, "/", O_RDONLY, 0).unwrap();
    assert_eq!(directory, 0);
    let path = world.path(world.root, 0, "file");
    assert_eq!(world.call(world.root, nr::NEWFSTATAT, &[directory, path, DATA, AT_EMPTY_PATH]), Ok(0));
    assert_eq!(world.read_words(world.root, DATA, 7)[6], 3);
    assert_eq!(world.call(world.root, nr::FACCESSAT2, &[directory, path, 1, AT_EMPTY_PATH]), Err(Errno::EACCES));
}

#[test]
fn lchown_changes_the_link_and_chown_its_target() {
    let world = World::new();
    world.make("/file", b"", 0o644, (0, 0));
    assert_eq!(world.paths_call(world.root, nr::SYMLINK, "/file", "/link"), Ok(0));
    assert_eq!(world.path_call(world.root, nr::LCHOWN, "/link", &[1, 1]), Ok(0));
    assert_eq!(world.path_call(world.root, nr::CHOWN, "/link", &[2, 2]), Ok(0));
    let uids = ["/link", "/file"].map(|path| world.stat(world.root, path).unwrap().uid);
    assert_eq!(uids, [1, 2]);
}

const AT_SYMLINK_NOFOLLOW: u64 = 0x100;
const AT_EMPTY_PATH: u64 = 0x1000;
/// uid or gid: leave it.
const KEEP: u64 = u32::MAX as u64;

/// The words of `struct stat` that this call leaves for the path or descriptor in its first arguments.
fn stat_words(world: &World, call: u32, arguments: &[u64]) -> Result<Vec<u64>> {
    world.machine.write(world.root, DATA, &[0xff; 144]);
    world.call(world.root, call, arguments)?;
    Ok(world.read_words(world.root, DATA, 18))
}

#[test]
fn all_of_the_stat_family_tell_the_same() {
    let world = World::new();
    world.machine.advance_ns(3_000_000_000);
    world.make("/file", &[1; 5000], 0o4751, (70_000, 80_000));
    assert_eq!(world.paths_call(world.root, nr::SYMLINK, "/file", "/link"), Ok(0));
    assert_eq!(world.paths_call(world.root, nr::LINK, "/file", "/other"), Ok(0));
    let times = world.words(world.root, &[11, 0, 22, 0]);
    let path = world.path(world.root, 0, "/file");
    assert_eq!(world.call(world.root, nr::UTIMENSAT, &[AT_FDCWD, path, times, 0]), Ok(0));
    let file = world.open(world.root, "/file", O_PATH, 0).unwrap();
    let (link, empty) = (world.path(world.root, 0, "/link"), world.path(world.root, 1, ""));
    let expected = stat_words(&world, nr::STAT, &[link, DATA]).unwrap();
    let now_s = (sys::host::machine::START_REAL_NS + world.machine.now_ns()) / 1_000_000_000;
    let [device, _, links, mode, gid, special, size, block, blocks] = expected[..9] else { panic!("18 words") };
    assert_eq!((device, links, special, size), (0xfe00, 2, 0, 5000));
    assert_eq!((mode, gid), (u64::from(S_IFREG | 0o4751) | 70_000 << 32, 80_000));
    assert!(block >= 1024 && blocks >= 10, "{block} {blocks}");
    assert_eq!((expected[9], expected[11]), (11, 22));
    assert!((now_s - 3..=now_s).contains(&expected[13]), "changed now");
    assert_eq!(expected[15..], [0; 3]);
    let same = [
        stat_words(&world, nr::FSTAT, &[file, DATA]),
        stat_words(&world, nr::NEWFSTATAT, &[AT_FDCWD, link, DATA, 0]),
        stat_words(&world, nr::NEWFSTATAT, &[AT_FDCWD, link, DATA, 0x800 | 0x6000]),
        stat_words(&world, nr::NEWFSTATAT, &[file, empty, DATA, AT_EMPTY_PATH]),
        stat_words(&world, nr::NEWFSTATAT, &[file, 0, DATA, AT_EMPTY_PATH]),
    ];
    assert!(same.iter().all(|found| found.as_ref() == Ok(&expected)), "{same:?}");
    let other = stat_words(&world, nr::LSTAT, &[link, DATA]).unwrap();
    assert_eq!((other[3] as u32 & S_IFMT, other[6]), (S_IFLNK, 5));
    assert_eq!(stat_words(&world, nr::NEWFSTATAT, &[AT_FDCWD, link, DATA, AT_SYMLINK_NOFOLLOW]), Ok(other));
    let here = stat_words(&world, nr::NEWFSTATAT, &[AT_FDCWD, empty, DATA, AT_EMPTY_PATH]).unwrap();
    assert_eq!((here[1], here[3] as u32), (2, S_IFDIR | 0o1777), "the working directory");
}

#[test]
fn statx_tells_what_stat_tells_where_it_belongs() {
    let world = World::new();
    // 254, 0x1234: what does not fit into the lower bits is above.
    let number = 0x34 | 0xfe << 8 | 0x1200 << 12;
    assert_eq!(world.path_call(world.root, nr::MKNOD, "/disk", &[u64::from(S_IFBLK) | 0o640, number]), Ok(0));
    world.make("/file", &[1; 3000], 0o751, (70_000, 80_000));
    for path in ["/disk", "/file"] {
        let path = world.path(world.root, 0, path);
        let times = world.words(world.root, &[11, 0, 22, 0]);
        assert_eq!(world.call(world.root, nr::UTIMENSAT, &[AT_FDCWD, path, times, 0]), Ok(0));
        let stat = stat_words(&world, nr::STAT, &[path, DATA]).unwrap();
        world.machine.write(world.root, DATA, &[0xff; 256]);
        assert_eq!(world.call(world.root, nr::STATX, &[AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, 0x7ff, DATA]), Ok(0));
        let statx = world.read_words(world.root, DATA, 32);
        let two = |low: u64, high: u64| low & 0xffff_ffff | high << 32;
        let major = |device: u64| device >> 8 & 0xfff;
        let minor = |device: u64| device & 0xff | device >> 12 & 0xfff00;
        let mut expected = [0; 32];
        expected[0] = two(0x7ff, stat[7]);
        expected[2] = two(stat[2], stat[3] >> 32);
        expected[3] = two(stat[4], stat[3] & 0xffff);
        (expected[4], expected[5], expected[6]) = (stat[1], stat[6], stat[8]);
        (expected[8], expected[12], expected[14]) = (stat[9], stat[13], stat[11]);
        (expected[9], expected[13], expected[15]) = (stat[10], stat[14], stat[12]);
        expected[16] = two(major(stat[5]), minor(stat[5]));
        expected[17] = two(major(stat[0]), minor(stat[0]));
        assert_eq!(statx, expected);
        assert!(stat[5] == 0 || stat[5] == number);
    }
    let path = world.path(world.root, 0, "/none");
    assert_eq!(world.call(world.root, nr::STATX, &[AT_FDCWD, path, 0, 0x7ff, DATA]), Err(Errno::ENOENT));
}

#[test]
fn what_vfs_has_itself_is_described_on_no_device() {
    let world = World::new();
    let (reads, _) = world.pipe(world.root, 0);
    let stat = stat_words(&world, nr::FSTAT, &[reads, DATA]).unwrap();
    let mut expected = [0; 18];
    (expected[1], expected[2], expected[3], expected[7]) = (stat[1], 1, u64::from(S_IFIFO | 0o600), 4096);
    assert_eq!(stat, expected);
    assert!(stat[1] > 0);
    let owner = world.user(1000, 100);
    assert_eq!(world.path_call(owner, nr::MQ_OPEN, "q", &[O_CREAT | O_RDWR, 0o600, 0]), Ok(2));
    assert_eq!(world.call(owner, nr::FSTAT, &[2, DATA]), Ok(0));
    let stat = world.read_words(owner, DATA, 18);
    assert_eq!((stat[3], stat[4]), (u64::from(S_IFREG | 0o600) | 1000 << 32, 100));
}

#[test]
fn statfs_describes_the_file_system() {
    let world = World::new();
    const EXT2_MAGIC: u64 = 0xef53;
    const PIPEFS_MAGIC: u64 = 0x5049_5045;
    let root = world.open(world.root, "/", O_RDONLY, 0).unwrap();
    let (pipe, _) = world.pipe(world.root, 0);
    let told = |call, file| {
        world.machine.write(world.root, DATA, &[0xff; 120]);
        assert_eq!(world.call(world.root, call, &[file, DATA]), Ok(0));
        world.read_words(world.root, DATA, 15)
    };
    let path = world.path(world.root, 0, "/");
    let found = told(nr::STATFS, path);
    assert_eq!((found[0], found[8]), (EXT2_MAGIC, 255));
    assert!(found[2] * found[1] > 3 << 20 && found[3] < found[2] && found[4] <= found[3]);
    assert_eq!(told(nr::FSTATFS, root), found);
    assert_eq!(told(nr::FSTATFS, pipe), [&[PIPEFS_MAGIC, 4096][..], &[0; 13]].concat());
    assert_eq!(world.call(world.root, nr::FSTATFS, &[99, DATA]), Err(Errno::EBADF));
    assert_eq!(world.path_call(world.root, nr::STATFS, "/none", &[DATA]), Err(Errno::ENOENT));
    assert_eq!(world.path_call(world.root, nr::STATFS, "/", &[8]), Err(Errno::EFAULT));
}

#[test]
fn access_is_asked_in_several_ways() {
    let world = World::new();
    world.make("/file", b"x", 0o640, (1000, 100));
    assert_eq!(world.paths_call(world.root, nr::SYMLINK, "/none", "/dangling"), Ok(0));
    let program = world.fork(world.root, 0);
    world.set_ids(program, (1001, 101), (1000, 100), &[]);
    const AT_EACCESS: u64 = 0x200;
    let access = |path: &str, mode, flags| {
        let path = world.path(program, 0, path);
        world.call(program, nr::FACCESSAT2, &[AT_FDCWD, path, mode, flags])
    };
    for (mode, real, effective) in [(4, true, false), (2, true, false), (6, true, false), (1, false, false)] {
        let result = |may: bool| if may { Ok(0) } else { Err(Errno::EACCES) };
        assert_eq!(access("/file", mode, 0), result(real), "mode {mode}");
        assert_eq!(access("/file", mode, AT_EACCESS), result(effective), "mode {mode}");
        assert_eq!(world.path_call(program, nr::ACCESS, "/file", &[mode]), result(real));
        let path = world.path(program, 0, "/file");
        assert_eq!(world.call(program, nr::FACCESSAT, &[AT_FDCWD, path, mode, AT_EACCESS]), result(real), "no flags");
    }
    assert_eq!(access("/dangling", 0, 0), Err(Errno::ENOENT));
    assert_eq!(access("/dangling", 4, AT_SYMLINK_NOFOLLOW), Ok(0));
    assert_eq!(access("/none", 0, 0), Err(Errno::ENOENT));
    assert_eq!(access("", 0, 0), Err(Errno::ENOENT));
    for mode in [8, 7 + 8, u64::from(u32::MAX)] {
        assert_eq!(access("/file", mode, 0), Err(Errno::EINVAL));
    }
}

#[test]
fn access_to_a_descriptor_is_asked_with_an_empty_path() {
    let world = World::new();
    world.make("/file", b"x", 0o604, (1000, 100));
    let file = world.open(world.root, "/file", O_RDONLY, 0).unwrap();
    let (pipe, _) = world.pipe(world.root, 0);
    let user = world.user(1001, 101);
    let path = world.path(user, 0, "");
    let access = |file, mode| world.call(user, nr::FACCESSAT2, &[file, path, mode, AT_EMPTY_PATH]);
    assert_eq!((access(file, 4), access(file, 2), access(file, 6)), (Ok(0), Err(Errno::EACCES), Err(Errno::EACCES)));
    assert_eq!(access(pipe, 7), Ok(0), "what has no file is open to who has it");
    assert_eq!(access(99, 0), Err(Errno::EBADF));
}

#[test]
fn chmod_sets_all_permission_bits_of_the_file_that_is_meant() {
    let world = World::new();
    world.make("/file", b"x", 0o600, (0, 0));
    world.make_directory("/dir", 0o700, (0, 0));
    assert_eq!(world.paths_call(world.root, nr::SYMLINK, "/file", "/dir/link"), Ok(0));
    let mode = |path| world.stat(world.root, path).unwrap().mode;
    assert_eq!(world.path_call(world.root, nr::CHMOD, "/dir/link", &[0o177_1751]), Ok(0));
    assert_eq!(mode("/file"), S_IFREG | 0o1751, "the kind stays");
    let directory = world.open(world.root, "/dir", O_RDONLY, 0).unwrap();
    let path = world.path(world.root, 0, "link");
    assert_eq!(world.call(world.root, nr::FCHMODAT, &[directory, path, 0o4711]), Ok(0));
    assert_eq!(mode("/file"), S_IFREG | 0o4711);
    assert_eq!(world.call(world.root, nr::FCHMOD, &[directory, 0o7007]), Ok(0));
    assert_eq!(mode("/dir"), S_IFDIR | 0o7007);
    let place = world.open(world.root, "/file", O_PATH, 0).unwrap();
    let (pipe, _) = world.pipe(world.root, 0);
    for (file, error) in [(place, Errno::EBADF), (99, Errno::EBADF), (pipe, Errno::EINVAL)] {
        assert_eq!(world.call(world.root, nr::FCHMOD, &[file, 0o600]), Err(error));
        assert_eq!(world.call(world.root, nr::FCHOWN, &[file, 1, 1]), Err(error));
    }
}

#[test]
fn chown_sets_user_group_or_both() {
    let world = World::new();
    world.make("/file", b"x", 0o600, (1, 2));
    assert_eq!(world.paths_call(world.root, nr::SYMLINK, "/file", "/link"), Ok(0));
    let owner = |path| {
        let stat = world.stat(world.root, path).unwrap();
        (stat.uid, stat.gid)
    };
    assert_eq!(world.path_call(world.root, nr::CHOWN, "/file", &[70_000, KEEP]), Ok(0));
    assert_eq!(owner("/file"), (70_000, 2));
    assert_eq!(world.path_call(world.root, nr::CHOWN, "/file", &[KEEP, 80_000]), Ok(0));
    assert_eq!(owner("/file"), (70_000, 80_000));
    assert_eq!(world.path_call(world.root, nr::CHOWN, "/file", &[KEEP, KEEP]), Ok(0));
    assert_eq!(owner("/file"), (70_000, 80_000));
    let path = world.path(world.root, 0, "/link");
    let chown = |flags| world.call(world.root, nr::FCHOWNAT, &[AT_FDCWD, path, 5, 6, flags]);
    assert_eq!(chown(AT_SYMLINK_NOFOLLOW), Ok(0));
    assert_eq!((owner("/link"), owner("/file")), ((5, 6), (70_000, 80_000)));
    assert_eq!(chown(0), Ok(0));
    assert_eq!(owner("/file"), (5, 6));
    assert_eq!(chown(1), Err(Errno::EINVAL));
    let file = world.open(world.root, "/file", O_RDONLY, 0).unwrap();
    assert_eq!(world.call(world.root, nr::FCHOWN, &[file, 7, 8]), Ok(0));
    assert_eq!(owner("/file"), (7, 8));
}
