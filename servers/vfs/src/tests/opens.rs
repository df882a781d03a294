//! open and its relatives: what they make, what their flags mean, what they refuse.

use super::*;
use abi::{Errno, linux::nr};

const O_NOATIME: u64 = 0o1000000;
const O_LARGEFILE: u64 = 0o100000;
const AT_EMPTY_PATH: u64 = 0x1000;

/// openat2 with `struct open_how`.
fn openat2(world: &World, path: &str, how: [u64; 3], bytes: u64) -> Result<u64> {
    let (path, how) = (world.path(world.root, 0, path), world.words(world.root, &how));
    world.call(world.root, nr::OPENAT2, &[AT_FDCWD, path, how, bytes])
}

fn fifo(world: &World, path: &str) {
    assert_eq!(world.path_call(world.root, nr::MKNOD, path, &[u64::from(S_IFIFO) | 0o666, 0]), Ok(0));
}

#[test]
fn openat2_takes_flags_and_mode_of_a_structure() {
    let world = World::new();
    let create = O_CREAT | O_EXCL | O_RDWR;
    let file = openat2(&world, "/file", [create, 0o640, 0], 24).unwrap();
    assert_eq!(world.fstat(world.root, file).unwrap().mode, S_IFREG | 0o640);
    assert_eq!(world.call(world.root, nr::FCNTL, &[file, F_GETFL]), Ok(O_RDWR | O_LARGEFILE));
    world.words(world.root, &[0; 16]);
    assert_eq!(openat2(&world, "/special", [create, 0o7777, 0], 100), Ok(file + 1));
    assert_eq!(world.stat(world.root, "/special").unwrap().mode & 0o7000, 0o7000);
    for (how, bytes) in [
        ([O_RDONLY, 0, 0], 23),
        ([O_RDONLY, 0, 0], 0),
        ([O_RDONLY, 0, 0x18], 24),
        ([O_RDONLY, 0, 0x40], 24),
        ([O_RDONLY, 0o600, 0], 24),
        ([1 << 32, 0, 0], 24),
        ([create, 0o10000, 0], 24),
    ] {
        assert_eq!(openat2(&world, "/other", how, bytes), Err(Errno::EINVAL), "{how:?}, {bytes} bytes");
    }
    assert_eq!(openat2(&world, "/file", [O_RDONLY, 0, 0x20], 24), Err(Errno::EAGAIN), "RESOLVE_CACHED");
    let path = world.path(world.root, 0, "/file");
    assert_eq!(world.call(world.root, nr::OPENAT2, &[AT_FDCWD, path, 8, 24]), Err(Errno::EFAULT));
    let longer = world.words(world.root, &[O_RDONLY, 0, 0, 0, 1]);
    let open = |bytes| world.call(world.root, nr::OPENAT2, &[AT_FDCWD, path, longer, bytes]);
    assert_eq!([33, 4097].map(open), [Err(Errno::E2BIG); 2]);
    assert!(open(32).is_ok());
}

#[test]
fn openat2_restricts_the_resolution() {
    const NO_XDEV: u64 = 1;
    const NO_MAGICLINKS: u64 = 2;
    const NO_SYMLINKS: u64 = 4;
    const BENEATH: u64 = 8;
    const IN_ROOT: u64 = 16;
    let mut world = World::new();
    world.start_proc().lock().unwrap().push(("exe".into(), "/file".into()));
    world.make_directory("/dir", 0o755, (0, 0));
    world.make_directory("/dir/sub", 0o755, (0, 0));
    for path in ["/file", "/dir/file"] {
        world.make(path, b"x", 0o644, (0, 0));
    }
    for (target, link) in [("file", "/dir/near"), ("../file", "/dir/far"), ("/file", "/dir/absolute")] {
        assert_eq!(world.paths_call(world.root, nr::SYMLINK, target, link), Ok(0));
    }
    let directory = world.open(world.root, "/dir", O_RDONLY | O_DIRECTORY, 0).unwrap();
    let (all, size) = ([NO_XDEV, NO_MAGICLINKS, NO_SYMLINKS, BENEATH, IN_ROOT], 24);
    let cases = [
        ("file", [None; 5]),
        ("sub/../file", [None; 5]),
        ("near", [None, None, Some(Errno::ELOOP), None, None]),
        ("far", [None, None, Some(Errno::ELOOP), Some(Errno::EXDEV), None]),
        ("absolute", [None, None, Some(Errno::ELOOP), Some(Errno::EXDEV), None]),
        ("../dir/file", [None, None, None, Some(Errno::EXDEV), Some(Errno::ENOENT)]),
        ("/file", [None, None, None, Some(Errno::EXDEV), None]),
        ("../proc/text", [Some(Errno::EXDEV), None, None, Some(Errno::EXDEV), Some(Errno::ENOENT)]),
        (
            "../proc/1/exe",
            [Some(Errno::EXDEV), Some(Errno::ELOOP), Some(Errno::ELOOP), Some(Errno::EXDEV), Some(Errno::ENOENT)],
        ),
    ];
    for (text, expected) in cases {
        for (restriction, expected) in all.into_iter().zip(expected) {
            let path = world.path(world.root, 0, text);
            let how = world.words(world.root, &[O_RDONLY, 0, restriction]);
            let result = world.call(world.root, nr::OPENAT2, &[directory, path, how, size]);
            assert_eq!(result.err(), expected, "{text} with {restriction}");
        }
    }
}

#[test]
fn creat_makes_or_empties_a_file_to_be_written() {
    let world = World::new();
    let file = world.path_call(world.root, nr::CREAT, "/file", &[0o644]).unwrap();
    assert_eq!(world.write(world.root, file, b"text"), Ok(4));
    assert_eq!(world.read(world.root, file, 4), Err(Errno::EBADF));
    assert_eq!(world.stat(world.root, "/file").unwrap().mode, S_IFREG | 0o644);
    let again = world.path_call(world.root, nr::CREAT, "/file", &[0o600]).unwrap();
    assert_eq!(world.content("/file"), b"");
    assert_eq!(world.stat(world.root, "/file").unwrap().mode, S_IFREG | 0o644, "it was there");
    assert_eq!(world.call(world.root, nr::FCNTL, &[again, F_GETFD]), Ok(0));
    assert_eq!(world.path_call(world.root, nr::CREAT, "/", &[0o600]), Err(Errno::EISDIR));
}

#[test]
fn a_new_file_has_permission_bits_and_a_plain_name() {
    let world = World::new();
    let create = |path, flags, mode| world.open(world.root, path, O_CREAT | O_WRONLY | flags, mode);
    create("/file", 0, 0o127_755).unwrap();
    assert_eq!(world.stat(world.root, "/file").unwrap().mode, S_IFREG | 0o7755);
    assert_eq!(create("/new/", 0, 0o644), Err(Errno::EISDIR));
    assert_eq!(create("/new", O_DIRECTORY, 0o644), Err(Errno::EINVAL));
    assert_eq!(create("/none/new", 0, 0o644), Err(Errno::ENOENT));
    assert_eq!(create("/file/new", 0, 0o644), Err(Errno::ENOTDIR));
    assert_eq!(create("/.", 0, 0o644), Err(Errno::EISDIR));
    assert_eq!(create("/..", O_EXCL, 0o644), Err(Errno::EEXIST));
    assert_eq!(world.stat(world.root, "/new"), Err(Errno::ENOENT));
}

#[test]
fn o_path_leaves_the_file_as_it_is() {
    let world = World::new();
    world.make("/file", b"text", 0o000, (0, 0));
    assert_eq!(world.paths_call(world.root, nr::SYMLINK, "/file", "/link"), Ok(0));
    let user = world.user(1000, 100);
    let place = world.open(user, "/file", O_PATH | O_TRUNC | O_WRONLY | O_CREAT | O_EXCL, 0).unwrap();
    assert_eq!(world.content("/file"), b"text");
    assert_eq!(world.call(user, nr::FCNTL, &[place, F_GETFL]), Ok(O_PATH));
    assert_eq!(world.open(user, "/none", O_PATH | O_CREAT, 0o644), Err(Errno::ENOENT));
    assert_eq!(world.open(user, "/file", O_PATH | O_DIRECTORY, 0), Err(Errno::ENOTDIR));
    assert!(world.open(user, "/", O_PATH | O_DIRECTORY, 0).is_ok());
    let marked = world.open(user, "/file", O_PATH | O_CLOEXEC, 0).unwrap();
    assert_eq!(world.call(user, nr::FCNTL, &[marked, F_GETFD]), Ok(1));
    for call in [nr::READ, nr::WRITE, nr::FSYNC, nr::GETDENTS64, nr::FTRUNCATE, nr::FCHMOD] {
        assert_eq!(world.call(user, call, &[place, DATA, 4]), Err(Errno::EBADF), "call {call}");
    }
    let kept = world.open(user, "/link", O_PATH | O_NOFOLLOW, 0).unwrap();
    assert_eq!(world.fstat(user, kept).unwrap().mode & S_IFMT, S_IFLNK);
    let empty = world.path(user, 0, "");
    assert_eq!(world.call(user, nr::READLINKAT, &[kept, empty, DATA, 100]), Ok(5));
    assert_eq!(world.machine.read(user, DATA, 5), b"/file");
    assert_eq!(world.call(user, nr::READLINKAT, &[place, empty, DATA, 100]), Err(Errno::ENOENT));
    assert_eq!(world.call(user, nr::FCHOWNAT, &[kept, empty, 1, 1, AT_EMPTY_PATH]), Err(Errno::EPERM));
    let followed = world.open(user, "/link", O_PATH, 0).unwrap();
    assert_eq!(world.fstat(user, followed).unwrap().mode & S_IFMT, S_IFREG);
}

#[test]
fn places_and_directories_outlive_vfs() {
    let mut world = World::new();
    world.make_directory("/dir", 0o755, (0, 0));
    world.make("/dir/file", b"text", 0o644, (0, 0));
    let place = world.open(world.root, "/dir/file", O_PATH, 0).unwrap();
    let directory = world.open(world.root, "/dir", O_RDONLY, 0).unwrap();
    let (before, inode) = (world.fstat(world.root, place).unwrap(), world.fstat(world.root, directory).unwrap().inode);
    world.restart_vfs();
    assert_eq!(world.fstat(world.root, place).unwrap(), before);
    assert_eq!(world.read(world.root, place, 4), Err(Errno::EBADF));
    assert_eq!(world.fstat(world.root, directory).unwrap().inode, inode);
    let file = world.open_at(world.root, directory, "file", O_RDONLY).unwrap();
    assert_eq!(world.read(world.root, file, 4).unwrap(), b"text");
}

#[test]
fn a_fifo_is_opened_without_waiting_for_both_or_when_told() {
    let world = World::new();
    fifo(&world, "/fifo");
    let reads = world.open(world.root, "/fifo", O_RDONLY | O_NONBLOCK, 0).unwrap();
    assert_eq!(world.read(world.root, reads, 1).unwrap(), b"", "nobody writes");
    let writes = world.open(world.root, "/fifo", O_WRONLY | O_NONBLOCK, 0).unwrap();
    assert_eq!(world.read(world.root, reads, 1), Err(Errno::EAGAIN), "somebody may write");
    assert_eq!(world.write(world.root, writes, b"text"), Ok(4));
    assert_eq!(world.write(world.root, reads, b"x"), Err(Errno::EBADF));
    let both = world.open(world.root, "/fifo", O_RDWR | O_TRUNC, 0).unwrap();
    assert_eq!(world.read(world.root, both, 2).unwrap(), b"te");
    assert_eq!(world.write(world.root, both, b"!"), Ok(1));
    assert_eq!(world.read(world.root, reads, 10).unwrap(), b"xt!");
    let (named, open) = (world.stat(world.root, "/fifo").unwrap(), world.fstat(world.root, both).unwrap());
    assert_eq!((named.inode, open.mode), (open.inode, S_IFIFO | 0o644));
    for file in [reads, writes, both] {
        world.close(world.root, file).unwrap();
    }
    assert_eq!(world.open(world.root, "/fifo", O_WRONLY | O_NONBLOCK, 0), Err(Errno::ENXIO), "all have gone");
    let both = world.open(world.root, "/fifo", O_RDWR | O_NONBLOCK, 0).unwrap();
    assert_eq!(world.read(world.root, both, 10), Err(Errno::EAGAIN), "and nothing is left in it");
}

#[test]
fn the_writer_of_a_fifo_waits_for_its_reader() {
    let world = World::new();
    fifo(&world, "/fifo");
    let child = world.fork(world.root, 0);
    let path = world.path(child, 0, "/fifo");
    assert_eq!(world.begin_call(child, nr::OPEN, &[path, O_WRONLY, 0]), None);
    let reads = world.open(world.root, "/fifo", O_RDONLY, 0).unwrap();
    let writes = world.result(child).unwrap().unwrap();
    assert_eq!(world.write(child, writes, b"x"), Ok(1));
    assert_eq!(world.read(world.root, reads, 10).unwrap(), b"x");
    world.close(child, writes).unwrap();
    assert_eq!(world.read(world.root, reads, 10).unwrap(), b"");
    world.close(world.root, reads).unwrap();
    for flags in [O_RDONLY, O_WRONLY] {
        assert_eq!(world.begin_call(child, nr::OPEN, &[path, flags, 0]), None);
        assert_eq!(world.cancel(child, Errno::ERESTARTSYS), Ok(0));
        assert_eq!(world.result(child), Some(Err(Errno::ERESTARTSYS)));
    }
    assert_eq!(world.begin_call(child, nr::OPEN, &[path, O_RDONLY, 0]), None);
    let both = world.open(world.root, "/fifo", O_RDWR, 0).unwrap();
    assert!(world.result(child).unwrap().is_ok());
    world.close(world.root, both).unwrap();
}

#[test]
fn an_open_fifo_outlives_vfs() {
    let mut world = World::new();
    fifo(&world, "/fifo");
    let reads = world.open(world.root, "/fifo", O_RDONLY | O_NONBLOCK, 0).unwrap();
    let writes = world.open(world.root, "/fifo", O_WRONLY, 0).unwrap();
    world.write(world.root, writes, b"before ").unwrap();
    world.restart_vfs();
    let another = world.open(world.root, "/fifo", O_WRONLY | O_NONBLOCK, 0).unwrap();
    world.write(world.root, another, b"after").unwrap();
    assert_eq!(world.read(world.root, reads, 100).unwrap(), b"before after");
    world.close(world.root, writes).unwrap();
    world.close(world.root, another).unwrap();
    assert_eq!(world.read(world.root, reads, 100).unwrap(), b"");
}

#[test]
fn a_socket_in_the_file_system_cannot_be_opened() {
    let world = World::new();
    assert_eq!(world.path_call(world.root, nr::MKNOD, "/socket", &[u64::from(S_IFSOCK) | 0o666, 0]), Ok(0));
    assert_eq!(world.open(world.root, "/socket", O_RDWR, 0), Err(Errno::ENXIO));
    assert!(world.open(world.root, "/socket", O_PATH, 0).is_ok());
}

#[test]
fn truncation_at_the_open_concerns_everybody_who_has_the_file() {
    let world = World::new();
    world.make("/file", b"12345", 0o644, (0, 0));
    let reads = world.open(world.root, "/file", O_RDONLY, 0).unwrap();
    assert_eq!(world.read(world.root, reads, 2).unwrap(), b"12");
    let writes = world.open(world.root, "/file", O_WRONLY | O_TRUNC | O_CREAT, 0o600).unwrap();
    assert_eq!(world.read(world.root, reads, 9).unwrap(), b"");
    assert_eq!(world.write(world.root, writes, b"abcd"), Ok(4));
    assert_eq!(world.read(world.root, reads, 9).unwrap(), b"cd");
    assert_eq!(world.seek(world.root, reads, 0, SEEK_END), Ok(4));
    assert!(world.open(world.root, "/file", O_RDONLY | O_NOATIME, 0).is_ok());
}
