//! The size of files: truncate, ftruncate, fallocate.

use super::*;
use abi::{Errno, linux::nr};

const LARGEST: u64 = i64::MAX as u64;

fn fallocate(world: &World, file: u64, flags: u64, offset: u64, bytes: u64) -> Result<u64> {
    world.call(world.root, nr::FALLOCATE, &[file, flags, offset, bytes])
}

/// Size, and blocks of 512 bytes that the file has.
fn size(world: &World, file: u64) -> (u64, u64) {
    assert_eq!(world.call(world.root, nr::FSTAT, &[file, DATA]), Ok(0));
    let words = world.read_words(world.root, DATA, 18);
    (words[6], words[8])
}

#[test]
fn only_regular_files_are_truncated() {
    let world = World::new();
    world.make("/file", b"12345", 0o644, (0, 0));
    assert_eq!(world.path_call(world.root, nr::MKNOD, "/fifo", &[u64::from(S_IFIFO) | 0o600, 0]), Ok(0));
    let truncate = |path, size| world.path_call(world.root, nr::TRUNCATE, path, &[size]);
    assert_eq!(truncate("/fifo", 0), Err(Errno::EINVAL));
    assert_eq!(truncate("/none", 0), Err(Errno::ENOENT));
    assert_eq!(truncate("/file", LARGEST + 1), Err(Errno::EINVAL));
    assert_eq!(truncate("/file", LARGEST), Err(Errno::EFBIG), "more than the file system has");
    let (pipe, _) = world.pipe(world.root, 0);
    let [reads, place] = [O_RDONLY, O_PATH].map(|flags| world.open(world.root, "/file", flags, 0).unwrap());
    let writes = world.open(world.root, "/file", O_WRONLY, 0).unwrap();
    let directory = world.open(world.root, "/", O_RDONLY, 0).unwrap();
    let ftruncate = |file, size| world.call(world.root, nr::FTRUNCATE, &[file, size]);
    for file in [pipe, reads, directory] {
        assert_eq!(ftruncate(file, 1), Err(Errno::EINVAL));
    }
    assert_eq!((ftruncate(place, 1), ftruncate(99, 1)), (Err(Errno::EBADF), Err(Errno::EBADF)));
    assert_eq!(ftruncate(writes, LARGEST + 1), Err(Errno::EINVAL));
    assert_eq!(ftruncate(writes, LARGEST), Err(Errno::EFBIG));
    assert_eq!(world.content("/file"), b"12345");
    assert_eq!(ftruncate(writes, 2), Ok(0));
    assert_eq!(world.content("/file"), b"12");
}

#[test]
fn a_change_of_size_takes_the_set_id_bits_away() {
    let world = World::new();
    let user = world.user(1001, 101);
    world.make("/program", b"12345", 0o6777, (1000, 100));
    let mode = || {
        let mode = world.stat(world.root, "/program").unwrap().mode;
        world.path_call(world.root, nr::CHMOD, "/program", &[0o6777]).unwrap();
        mode & 0o7777
    };
    assert_eq!(world.path_call(user, nr::TRUNCATE, "/program", &[3]), Ok(0));
    assert_eq!(mode(), 0o777);
    let file = world.open(user, "/program", O_WRONLY, 0).unwrap();
    assert_eq!(world.call(user, nr::FTRUNCATE, &[file, 1]), Ok(0));
    assert_eq!(mode(), 0o777);
    assert_eq!(world.path_call(world.root, nr::TRUNCATE, "/program", &[0]), Ok(0));
    assert_eq!(mode(), 0o6777, "not if the superuser does it");
}

#[test]
fn a_change_of_size_that_comes_again_leaves_what_others_have_written_since() {
    let mut world = World::new();
    world.make("/file", b"text", 0o666, (0, 0));
    let other = world.user(1000, 100);
    let writes = world.open(other, "/file", O_WRONLY, 0).unwrap();
    let path = world.path(world.root, 0, "/file");
    assert_eq!(world.call(world.root, nr::TRUNCATE, &[path, 1]), Ok(0));
    world.restart_vfs();
    assert_eq!(world.pwrite(other, writes, b"later", 0), Ok(5));
    assert_eq!(world.repeat_earlier(2, world.root, nr::TRUNCATE, &[path, 1]), Some(Ok(0)));
    assert_eq!(world.content("/file"), b"later");
}

/// A predecessor has died between the two requests to the file system.
#[test]
fn a_change_of_size_that_comes_again_takes_the_set_id_bits_away() {
    let mut world = World::new();
    world.make("/program", b"text", 0o777, (0, 0));
    let user = world.user(1000, 100);
    let file = world.open(user, "/program", O_WRONLY, 0).unwrap();
    assert_eq!(world.call(user, nr::FTRUNCATE, &[file, 3]), Ok(0));
    world.path_call(world.root, nr::CHMOD, "/program", &[0o6777]).unwrap();
    world.restart_vfs();
    assert_eq!(world.repeat_earlier(2, user, nr::FTRUNCATE, &[file, 3]), Some(Ok(0)));
    assert_eq!(world.stat(world.root, "/program").unwrap().mode & 0o7777, 0o777);
}

#[test]
fn a_write_that_takes_the_set_id_bits_away_is_not_synced_for_that() {
    let world = World::new();
    world.make("/file", b"content", 0o6777, (0, 0));
    let user = world.user(1000, 100);
    let file = world.open(user, "/file", O_RDWR, 0).unwrap();
    let flushes = || world.disk.lock().unwrap().flushes;
    let before = flushes();
    assert_eq!(world.pwrite(user, file, b"new", 0), Ok(3));
    assert_eq!(world.stat(world.root, "/file").unwrap().mode & 0o7777, 0o777);
    assert_eq!(flushes(), before);
}

#[test]
fn fallocate_gives_space_and_lengthens() {
    let world = World::new();
    world.make("/file", b"12345", 0o644, (0, 0));
    let file = world.open(world.root, "/file", O_RDWR, 0).unwrap();
    assert_eq!(world.call(world.root, nr::FTRUNCATE, &[file, 100_000]), Ok(0));
    let (bytes, blocks) = size(&world, file);
    assert_eq!(fallocate(&world, file, 0, 50_000, 40_000), Ok(0));
    let (same, more) = size(&world, file);
    assert_eq!(same, bytes, "it is within the file");
    assert!((blocks + 78..blocks + 100).contains(&more), "{blocks} {more}");
    assert_eq!(fallocate(&world, file, 0, 99_999, 2), Ok(0));
    assert_eq!(size(&world, file).0, 100_001);
    assert_eq!(fallocate(&world, file, 0, 0, 1), Ok(0));
    assert_eq!(world.pread(world.root, file, 7, 0).unwrap(), b"12345\0\0", "the content stays");
}

#[test]
fn fallocate_leaves_the_size_when_there_is_no_space() {
    let world = World::new();
    world.make("/file", b"12345", 0o644, (0, 0));
    let file = world.open(world.root, "/file", O_RDWR, 0).unwrap();
    assert_eq!(fallocate(&world, file, 0, 0, 100 << 20), Err(Errno::ENOSPC));
    assert_eq!(size(&world, file).0, 5);
    assert_eq!(world.seek(world.root, file, 0, SEEK_END), Ok(5));
    assert_eq!(world.seek(world.root, file, 0, SEEK_SET), Ok(0));
    assert_eq!(world.content("/file"), b"12345");
    assert_eq!(world.write(world.root, file, b"abc"), Ok(3), "there is space again");
    assert_eq!(world.content("/file"), b"abc45");
    assert_eq!(world.call(world.root, nr::FTRUNCATE, &[file, 100 << 20]), Ok(0));
    assert_eq!(fallocate(&world, file, 0, 0, 100 << 20), Err(Errno::ENOSPC));
    assert_eq!(size(&world, file).0, 100 << 20, "it was as long before");
}

const KEEP_SIZE: u64 = 1;
const PUNCH_HOLE: u64 = 2 | KEEP_SIZE;
const ZERO_RANGE: u64 = 0x10;

#[test]
fn a_hole_is_punched_and_the_size_stays() {
    let world = World::new();
    world.make("/file", &[7; 50_000], 0o644, (0, 0));
    let file = world.open(world.root, "/file", O_RDWR, 0).unwrap();
    let (_, blocks) = size(&world, file);
    assert_eq!(fallocate(&world, file, PUNCH_HOLE, 10_000, 30_000), Ok(0));
    let (bytes, fewer) = size(&world, file);
    assert_eq!(bytes, 50_000);
    assert!((20..=60).contains(&(blocks - fewer)), "{blocks} {fewer}");
    let content = world.content("/file");
    assert!(content.iter().enumerate().all(|(at, &byte)| byte == if (10_000..40_000).contains(&at) { 0 } else { 7 }));
    assert_eq!(fallocate(&world, file, PUNCH_HOLE, 49_000, 100_000), Ok(0), "beyond the end");
    assert_eq!(fallocate(&world, file, PUNCH_HOLE, 90_000, 100), Ok(0), "behind it");
    assert_eq!(world.pread(world.root, file, 9, 48_997).unwrap(), b"\x07\x07\x07\0\0\0\0\0\0");
    assert_eq!(size(&world, file).0, 50_000);
}

#[test]
fn a_range_becomes_zeros() {
    let world = World::new();
    world.make("/file", &[7; 5000], 0o644, (0, 0));
    let file = world.open(world.root, "/file", O_RDWR, 0).unwrap();
    assert_eq!(fallocate(&world, file, ZERO_RANGE | KEEP_SIZE, 4000, 60_000), Ok(0));
    assert_eq!(size(&world, file).0, 5000);
    assert_eq!(fallocate(&world, file, ZERO_RANGE, 100, 1000), Ok(0));
    assert_eq!(size(&world, file).0, 5000, "it is within the file");
    let content = world.content("/file");
    let is_zero = |at: usize| (100..1100).contains(&at) || at >= 4000;
    assert!(content.iter().enumerate().all(|(at, &byte)| byte == if is_zero(at) { 0 } else { 7 }));
    assert_eq!(fallocate(&world, file, ZERO_RANGE, 3000, 60_000), Ok(0));
    let (bytes, blocks) = size(&world, file);
    assert_eq!(bytes, 63_000);
    assert!(blocks >= 63_000 / 512, "it has space: {blocks}");
    assert!(world.pread(world.root, file, 70_000, 3000).unwrap().iter().all(|&byte| byte == 0));
    assert_eq!(fallocate(&world, file, ZERO_RANGE, 0, 100 << 20), Err(Errno::ENOSPC));
    assert_eq!(size(&world, file).0, 63_000);
    assert_eq!(world.pread(world.root, file, 1, 0).unwrap(), [7], "as before");
}

#[test]
fn space_beyond_the_end_leaves_the_size_and_the_place_of_an_append() {
    let world = World::new();
    world.make("/file", b"12345", 0o644, (0, 0));
    let file = world.open(world.root, "/file", O_RDWR | O_APPEND, 0).unwrap();
    assert_eq!(fallocate(&world, file, KEEP_SIZE, 0, 100_000), Ok(0));
    assert_eq!(fallocate(&world, file, KEEP_SIZE, 0, 100 << 20), Err(Errno::ENOSPC));
    assert_eq!(size(&world, file).0, 5);
    assert_eq!(world.write(world.root, file, b"678"), Ok(3));
    assert_eq!(world.content("/file"), b"12345678");
}

#[test]
fn a_cleared_range_takes_the_set_id_bits_away() {
    let world = World::new();
    let user = world.user(1001, 101);
    for mode in [PUNCH_HOLE, ZERO_RANGE] {
        world.make("/program", b"12345", 0o6777, (1000, 100));
        let file = world.open(user, "/program", O_WRONLY, 0).unwrap();
        assert_eq!(world.call(user, nr::FALLOCATE, &[file, mode, 1, 2]), Ok(0));
        assert_eq!(world.stat(world.root, "/program").unwrap().mode & 0o7777, 0o777);
        assert_eq!(world.content("/program"), b"1\0\x0045");
        assert_eq!(world.path_call(world.root, nr::UNLINK, "/program", &[]), Ok(0));
    }
}

#[test]
fn fallocate_refuses_what_it_cannot_do() {
    let world = World::new();
    world.make("/file", b"12345", 0o644, (0, 0));
    let file = world.open(world.root, "/file", O_RDWR, 0).unwrap();
    for (offset, bytes, error) in [
        (0, 0, Errno::EINVAL),
        (LARGEST, 1, Errno::EFBIG),
        (1, LARGEST, Errno::EFBIG),
        (0, LARGEST, Errno::EFBIG),
        (LARGEST + 1, 1, Errno::EINVAL),
        (u64::MAX, 1, Errno::EINVAL),
        (0, LARGEST + 1, Errno::EINVAL),
        (0, u64::MAX, Errno::EINVAL),
    ] {
        assert_eq!(fallocate(&world, file, 0, offset, bytes), Err(error), "{bytes} at {offset}");
    }
    for flags in [2, 4, 8, 9, 0x12, 0x13, 0x20, 0x40, 0x80] {
        assert_eq!(fallocate(&world, file, flags, 0, 10), Err(Errno::EOPNOTSUPP), "{flags}");
    }
    for flags in [KEEP_SIZE, PUNCH_HOLE, ZERO_RANGE] {
        assert_eq!(fallocate(&world, file, flags, 0, 0), Err(Errno::EINVAL));
        assert_eq!(fallocate(&world, file, flags, 0, LARGEST), Err(Errno::EFBIG), "{flags}");
    }
    let reads = world.open(world.root, "/file", O_RDONLY, 0).unwrap();
    assert_eq!(fallocate(&world, reads, 0, 0, 10), Err(Errno::EBADF));
    assert_eq!(fallocate(&world, 99, 0, 0, 10), Err(Errno::EBADF));
    let (_, writes) = world.pipe(world.root, 0);
    assert_eq!(fallocate(&world, writes, 0, 0, 10), Err(Errno::ESPIPE));
    assert_eq!(world.path_call(world.root, nr::MKNOD, "/null", &[u64::from(S_IFCHR) | 0o666, 0x103]), Ok(0));
    let null = world.open(world.root, "/null", O_RDWR, 0).unwrap();
    assert_eq!(fallocate(&world, null, 0, 0, 10), Err(Errno::ENODEV));
    assert_eq!(size(&world, file).0, 5);
}

#[test]
fn data_and_holes_are_found() {
    const SEEK_DATA: u64 = 3;
    const SEEK_HOLE: u64 = 4;
    let mut world = World::new();
    world.mount_tmpfs("/memory");
    for path in ["/file", "/memory/file"] {
        let file = world.open(world.root, path, O_CREAT | O_RDWR, 0o644).unwrap();
        assert_eq!(world.call(world.root, nr::FTRUNCATE, &[file, 1 << 30]), Ok(0));
        assert_eq!(world.seek(world.root, file, 0, SEEK_DATA), Err(Errno::ENXIO));
        assert_eq!(world.seek(world.root, file, 77, SEEK_HOLE), Ok(77));
        for at in [8192, 12_288, 300 << 20] {
            assert_eq!(world.pwrite(world.root, file, &[1; 4096], at), Ok(4096));
        }
        assert_eq!(world.seek(world.root, file, 0, SEEK_DATA), Ok(8192));
        assert_eq!(world.position(world.root, file), 8192);
        assert_eq!(world.seek(world.root, file, 9000, SEEK_DATA), Ok(9000));
        assert_eq!(world.seek(world.root, file, 9000, SEEK_HOLE), Ok(16_384));
        assert_eq!(world.seek(world.root, file, 16_384, SEEK_DATA), Ok(300 << 20));
        assert_eq!(world.seek(world.root, file, 301 << 20, SEEK_DATA), Err(Errno::ENXIO));
        assert_eq!(world.seek(world.root, file, 1 << 30, SEEK_HOLE), Err(Errno::ENXIO));
        assert_eq!(world.call(world.root, nr::FTRUNCATE, &[file, (300 << 20) + 5]), Ok(0));
        assert_eq!(world.seek(world.root, file, 300 << 20, SEEK_HOLE), Ok((300 << 20) + 5));
    }
}
