//! stat and relatives.

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
    const AT_EMPTY_PATH: u64 = 0x1000;
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
fn lchown_changes_the_link_and_chown_its_target() {
    let world = World::new();
    world.make("/file", b"", 0o644, (0, 0));
    assert_eq!(world.paths_call(world.root, nr::SYMLINK, "/file", "/link"), Ok(0));
    assert_eq!(world.path_call(world.root, nr::LCHOWN, "/link", &[1, 1]), Ok(0));
    assert_eq!(world.path_call(world.root, nr::CHOWN, "/link", &[2, 2]), Ok(0));
    let uids = ["/link", "/file"].map(|path| world.stat(world.root, path).unwrap().uid);
    assert_eq!(uids, [1, 2]);
}
