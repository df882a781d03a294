//! Reading and writing: vectors, sizes, what is refused.

use super::*;
use abi::{Errno, linux::nr};

#[test]
fn what_is_written_is_read_whatever_its_size() {
    let world = World::new();
    for bytes in [1, 511, 4096, 4097, 200_000, 700_001] {
        let content: Vec<u8> = (0..bytes).map(|at| (at * 7 % 251) as u8).collect();
        let path = std::format!("/{bytes}");
        world.make(&path, &content, 0o644, (0, 0));
        assert!(world.content(&path) == content, "{bytes} bytes");
        assert_eq!(world.stat(world.root, &path).unwrap().size, bytes);
    }
}

#[test]
fn vectors_gather_and_scatter_in_order() {
    let world = World::new();
    let file = world.open(world.root, "/file", O_CREAT | O_RDWR, 0o644).unwrap();
    world.data(world.root, b"onetwothree");
    let pieces = world.words(world.root, &[DATA + 6, 5, DATA, 3, 0, 0, DATA + 3, 3]);
    assert_eq!(world.call(world.root, nr::WRITEV, &[file, pieces, 4]), Ok(11));
    assert_eq!(world.content("/file"), b"threeonetwo");
    let pieces = world.words(world.root, &[DATA + 100, 5, DATA + 200, 100]);
    assert_eq!(world.call(world.root, nr::PREADV, &[file, pieces, 2, 0]), Ok(11));
    assert_eq!(world.machine.read(world.root, DATA + 100, 5), b"three");
    assert_eq!(world.machine.read(world.root, DATA + 200, 6), b"onetwo");
    assert_eq!(world.call(world.root, nr::READV, &[file, pieces, 1025]), Err(Errno::EINVAL));
}

#[test]
fn negative_lengths_are_refused() {
    let world = World::new();
    world.make("/file", b"x", 0o644, (0, 0));
    let file = world.open(world.root, "/file", O_RDWR, 0).unwrap();
    for call in [nr::READ, nr::WRITE, nr::PREAD64, nr::PWRITE64] {
        assert_eq!(world.call(world.root, call, &[file, DATA, -1i64 as u64, 0]), Err(Errno::EINVAL));
    }
    let pieces = world.words(world.root, &[DATA, -1i64 as u64]);
    assert_eq!(world.call(world.root, nr::WRITEV, &[file, pieces, 1]), Err(Errno::EINVAL));
}

#[test]
fn nothing_is_read_from_or_written_to_a_directory() {
    let world = World::new();
    let root = world.open(world.root, "/", O_RDONLY, 0).unwrap();
    assert_eq!(world.read(world.root, root, 10), Err(Errno::EISDIR));
    assert_eq!(world.write(world.root, root, b"x"), Err(Errno::EBADF));
    assert_eq!(world.open(world.root, "/", O_WRONLY, 0), Err(Errno::EISDIR));
    assert_eq!(world.open(world.root, "/", O_RDONLY | O_CREAT, 0), Err(Errno::EISDIR));
}

#[test]
fn a_write_beyond_what_a_file_may_be_is_refused() {
    let world = World::new();
    let file = world.open(world.root, "/file", O_CREAT | O_RDWR, 0o644).unwrap();
    assert_eq!(world.pwrite(world.root, file, b"xx", i64::MAX), Err(Errno::EFBIG));
    assert_eq!(world.fstat(world.root, file).unwrap().size, 0);
}

#[test]
fn truncation_shortens_and_lengthens() {
    let world = World::new();
    world.make("/file", b"0123456789", 0o644, (0, 0));
    let file = world.open(world.root, "/file", O_RDWR, 0).unwrap();
    assert_eq!(world.call(world.root, nr::FTRUNCATE, &[file, 4]), Ok(0));
    assert_eq!(world.content("/file"), b"0123");
    assert_eq!(world.path_call(world.root, nr::TRUNCATE, "/file", &[6]), Ok(0));
    assert_eq!(world.content("/file"), b"0123\0\0");
    assert_eq!(world.path_call(world.root, nr::TRUNCATE, "/file", &[-1i64 as u64]), Err(Errno::EINVAL));
    assert_eq!(world.path_call(world.root, nr::TRUNCATE, "/", &[0]), Err(Errno::EISDIR));
    world.open(world.root, "/file", O_WRONLY | O_TRUNC, 0).unwrap();
    assert_eq!(world.content("/file"), b"");
}

#[test]
fn sendfile_copies_and_moves_both_positions() {
    let world = World::new();
    world.make("/from", b"0123456789", 0o644, (0, 0));
    let from = world.open(world.root, "/from", O_RDONLY, 0).unwrap();
    let to = world.open(world.root, "/to", O_CREAT | O_RDWR, 0o644).unwrap();
    assert_eq!(world.call(world.root, nr::SENDFILE, &[to, from, 0, 4]), Ok(4));
    assert_eq!((world.position(world.root, from), world.position(world.root, to)), (4, 4));
    let offset = world.words(world.root, &[8]);
    assert_eq!(world.call(world.root, nr::SENDFILE, &[to, from, offset, 100]), Ok(2));
    assert_eq!(world.read_words(world.root, offset, 1), [10]);
    assert_eq!((world.position(world.root, from), world.position(world.root, to)), (4, 6));
    assert_eq!(world.content("/to"), b"012389");
    let (_, writes) = world.pipe(world.root, 0);
    assert_eq!(world.call(world.root, nr::SENDFILE, &[writes, from, 0, 4]), Err(Errno::EINVAL));
    assert_eq!(world.call(world.root, nr::SENDFILE, &[from, to, 0, 4]), Err(Errno::EBADF));
}

#[test]
fn a_full_disk_takes_what_fits() {
    let world = World::new();
    let file = world.open(world.root, "/file", O_CREAT | O_RDWR, 0o644).unwrap();
    let piece = (MEMORY.end - DATA) as usize;
    let mut written = 0;
    let error = loop {
        match world.call(world.root, nr::WRITE, &[file, DATA, piece as u64]) {
            Ok(bytes) => written += bytes,
            Err(error) => break error,
        }
    };
    assert_eq!(error, Errno::ENOSPC);
    assert!(written > 3 << 20, "{written} bytes");
    let stat = world.fstat(world.root, file).unwrap();
    assert_eq!((stat.size, world.position(world.root, file)), (written, written));
}
