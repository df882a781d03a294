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
    assert_eq!(world.pwrite(world.root, file, b"xx", i64::MAX), Err(Errno::EINVAL));
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

/// Inode, offset of the next, type and name of each record; the old ones have the type at the end.
fn records(bytes: &[u8], old: bool) -> Vec<(u64, u64, u8, Vec<u8>)> {
    let mut found = Vec::new();
    let mut rest = bytes;
    while !rest.is_empty() {
        let word = |at: usize| u64::from_le_bytes(rest[at..at + 8].try_into().expect("eight bytes"));
        let length = u16::from_le_bytes([rest[16], rest[17]]) as usize;
        let (kind, name) = if old { (rest[length - 1], &rest[18..]) } else { (rest[18], &rest[19..]) };
        let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
        found.push((word(0), word(8), kind, name.to_vec()));
        rest = &rest[length..];
    }
    found
}

#[test]
fn both_ways_to_list_a_directory_tell_the_same() {
    let world = World::new();
    world.make_directory("/dir", 0o755, (0, 0));
    world.make_directory("/dir/sub", 0o755, (0, 0));
    world.make("/dir/file", b"", 0o644, (0, 0));
    assert_eq!(world.paths_call(world.root, nr::SYMLINK, "x", "/dir/link"), Ok(0));
    let directory = world.open(world.root, "/dir", O_RDONLY, 0).unwrap();
    let list = |call, room| {
        let bytes = world.call(world.root, call, &[directory, DATA, room])?;
        Ok(world.machine.read(world.root, DATA, bytes as usize))
    };
    let new = records(&list(nr::GETDENTS64, 1000).unwrap(), false);
    let mut kinds: Vec<(u8, &[u8])> = new.iter().map(|(_, _, kind, name)| (*kind, &name[..])).collect();
    // The others come in the order of their hashes.
    kinds[2..].sort();
    assert_eq!(kinds, [(4, &b"."[..]), (4, b".."), (4, b"sub"), (8, b"file"), (10, b"link")]);
    let file = new.iter().find(|(_, _, _, name)| name == b"file").unwrap();
    assert_eq!(file.0, world.stat(world.root, "/dir/file").unwrap().inode);
    assert_eq!(list(nr::GETDENTS64, 1000).unwrap(), b"", "the end");
    assert_eq!(list(nr::GETDENTS, 1000).unwrap(), b"");
    world.seek(world.root, directory, new[4].1 as i64, SEEK_SET).unwrap();
    assert_eq!(list(nr::GETDENTS64, 1000).unwrap(), b"", "behind the last");
    world.seek(world.root, directory, 0, SEEK_SET).unwrap();
    assert_eq!(records(&list(nr::GETDENTS, 1000).unwrap(), true), new);
    for (call, old) in [(nr::GETDENTS64, false), (nr::GETDENTS, true)] {
        world.seek(world.root, directory, new[1].1 as i64, SEEK_SET).unwrap();
        assert_eq!(records(&list(call, 32).unwrap(), old), new[2..3], "one at a time");
        assert_eq!(records(&list(call, 1000).unwrap(), old), new[3..]);
        world.seek(world.root, directory, 0, SEEK_SET).unwrap();
        assert_eq!(list(call, 20), Err(Errno::EINVAL));
        assert_eq!(world.call(world.root, call, &[directory, 8, 1000]), Err(Errno::EFAULT));
        assert_eq!(world.position(world.root, directory), 0);
    }
}

#[test]
fn only_directories_that_have_a_name_are_listed() {
    let world = World::new();
    world.make_directory("/dir", 0o755, (0, 0));
    world.make("/file", b"", 0o644, (0, 0));
    let [directory, file] = ["/dir", "/file"].map(|path| world.open(world.root, path, O_RDONLY, 0).unwrap());
    assert_eq!(world.path_call(world.root, nr::RMDIR, "/dir", &[]), Ok(0));
    for call in [nr::GETDENTS64, nr::GETDENTS] {
        let results = [directory, file, 99].map(|file| world.call(world.root, call, &[file, DATA, 1000]));
        assert_eq!(results, [Err(Errno::ENOENT), Err(Errno::ENOTDIR), Err(Errno::EBADF)]);
    }
}

#[test]
fn sendfile_copies_large_files_and_has_limits() {
    let world = World::new();
    let content: Vec<u8> = (0..200_000).map(|at| (at * 7 % 251) as u8).collect();
    world.make("/from", &content, 0o644, (0, 0));
    world.make("/to", b"", 0o6755, (1000, 100));
    let from = world.open(world.root, "/from", O_RDONLY, 0).unwrap();
    let to = world.open(world.root, "/to", O_RDWR, 0).unwrap();
    let send = |to, from, offset, bytes| world.call(world.root, nr::SENDFILE, &[to, from, offset, bytes]);
    assert_eq!(send(to, from, 0, 150_000), Ok(150_000));
    assert_eq!(send(to, from, 0, u64::MAX), Ok(50_000));
    assert_eq!(send(to, from, 0, 10), Ok(0));
    assert!(world.content("/to") == content);
    assert_eq!((world.position(world.root, from), world.position(world.root, to)), (200_000, 200_000));
    for (offset, error) in [(u64::MAX, Errno::EINVAL), (1 << 63, Errno::EINVAL)] {
        let offset = world.words(world.root, &[offset]);
        assert_eq!(send(to, from, offset, 10), Err(error));
    }
    let offset = world.words(world.root, &[i64::MAX as u64]);
    assert_eq!(send(to, from, offset, 10), Ok(0), "beyond the end");
    assert_eq!(send(to, from, 8, 10), Err(Errno::EFAULT));
    let append = world.open(world.root, "/to", O_WRONLY | O_APPEND, 0).unwrap();
    assert_eq!(send(append, from, 0, 10), Err(Errno::EINVAL));
    assert_eq!((send(99, from, 0, 10), send(to, 99, 0, 10)), (Err(Errno::EBADF), Err(Errno::EBADF)));
    assert_eq!(send(to, append, 0, 10), Err(Errno::EBADF));
    let (reads, _) = world.pipe(world.root, 0);
    assert_eq!(send(to, reads, 0, 10), Err(Errno::EINVAL));
    let user = world.user(1001, 100);
    world.call(world.root, nr::FCHMOD, &[to, 0o6755]).unwrap();
    let offset = world.words(user, &[0]);
    assert_eq!(world.call(user, nr::SENDFILE, &[to, from, offset, 10]), Ok(10));
    assert_eq!(world.stat(user, "/to").unwrap().mode & 0o7777, 0o755, "as after a write");
}

#[test]
fn advice_changes_nothing_but_is_for_files() {
    let world = World::new();
    world.make("/file", b"text", 0o644, (0, 0));
    let file = world.open(world.root, "/file", O_RDONLY, 0).unwrap();
    let (pipe, _) = world.pipe(world.root, 0);
    for (call, of_pipe) in
        [(nr::FADVISE64, Errno::ESPIPE), (nr::READAHEAD, Errno::EINVAL), (nr::SYNC_FILE_RANGE, Errno::ESPIPE)]
    {
        let results = [file, pipe, 99].map(|file| world.call(world.root, call, &[file, 0, 100, 0]));
        assert_eq!(results, [Ok(0), Err(of_pipe), Err(Errno::EBADF)], "call {call}");
    }
}

#[test]
fn a_transfer_without_bytes_is_checked_all_the_same() {
    let world = World::new();
    world.make("/file", b"text", 0o644, (0, 0));
    let [reads, writes] = [O_RDONLY, O_WRONLY].map(|flags| world.open(world.root, "/file", flags, 0).unwrap());
    let pieces = world.words(world.root, &[8, 0]);
    for (call, good, bad) in [(nr::READ, reads, writes), (nr::WRITE, writes, reads)] {
        assert_eq!(world.call(world.root, call, &[good, 8, 0]), Ok(0));
        assert_eq!(world.call(world.root, call, &[bad, 8, 0]), Err(Errno::EBADF));
    }
    for (call, file) in [(nr::READV, reads), (nr::WRITEV, writes)] {
        assert_eq!(world.call(world.root, call, &[file, pieces, 1]), Ok(0));
        assert_eq!(world.call(world.root, call, &[file, 8, 0]), Ok(0), "no pieces");
        assert_eq!(world.call(world.root, call, &[file, 8, 1]), Err(Errno::EFAULT));
    }
    assert_eq!(world.position(world.root, reads), 0);
}

#[test]
fn a_vector_ends_where_memory_does() {
    let world = World::new();
    let file = world.open(world.root, "/file", O_CREAT | O_RDWR, 0o644).unwrap();
    world.data(world.root, b"first");
    let pieces = world.words(world.root, &[DATA, 5, 8, 5, DATA, 5]);
    assert_eq!(world.call(world.root, nr::WRITEV, &[file, pieces, 3]), Ok(5));
    assert_eq!((world.position(world.root, file), world.fstat(world.root, file).unwrap().size), (5, 5));
    let pieces = world.words(world.root, &[DATA, 5, 8, 5, DATA, 5]);
    assert_eq!(world.call(world.root, nr::PREADV, &[file, pieces, 1, 0]), Ok(5));
    assert_eq!(world.call(world.root, nr::PWRITEV, &[file, pieces, 3, 2]), Ok(5));
    assert_eq!(world.content("/file"), b"fifirst");
    let pieces = world.words(world.root, &[8, 5, DATA, 5]);
    assert_eq!(world.call(world.root, nr::WRITEV, &[file, pieces, 2]), Err(Errno::EFAULT));
    assert_eq!(world.call(world.root, nr::PWRITEV, &[file, pieces, 2, 100]), Err(Errno::EFAULT));
    assert_eq!(world.fstat(world.root, file).unwrap().size, 7);
    assert_eq!(world.seek(world.root, file, 0, SEEK_END), Ok(7));
}

#[test]
fn lseek_finds_data_and_holes() {
    let world = World::new();
    const SEEK_DATA: u64 = 3;
    const SEEK_HOLE: u64 = 4;
    world.make("/file", b"0123456789", 0o644, (0, 0));
    let file = world.open(world.root, "/file", O_RDONLY, 0).unwrap();
    assert_eq!(world.seek(world.root, file, 4, SEEK_DATA), Ok(4));
    assert_eq!(world.seek(world.root, file, 4, SEEK_HOLE), Ok(10));
    assert_eq!(world.position(world.root, file), 10);
    for whence in [SEEK_DATA, SEEK_HOLE] {
        assert!(world.seek(world.root, file, 9, whence).is_ok());
        assert_eq!(world.seek(world.root, file, 10, whence), Err(Errno::ENXIO));
        assert_eq!(world.seek(world.root, file, -1, whence), Err(Errno::ENXIO));
    }
    assert_eq!(world.seek(world.root, file, i64::MAX, SEEK_END), Err(Errno::EINVAL));
    assert_eq!(world.seek(world.root, file, i64::MAX, SEEK_SET), Ok(i64::MAX as u64));
    assert_eq!(world.read(world.root, file, 10).unwrap(), b"");
    let directory = world.open(world.root, "/", O_RDONLY, 0).unwrap();
    assert_eq!(world.seek(world.root, directory, 0, SEEK_END), Ok(world.fstat(world.root, directory).unwrap().size));
    assert_eq!(world.seek(world.root, 99, 0, SEEK_SET), Err(Errno::EBADF));
}

/// A vector in the memory of a program, of pieces of one byte each, from `DATA` on and two bytes apart.
fn scattered(world: &World, program: abi::Endpoint, count: u64) -> u64 {
    let vector = DATA + 0x8000;
    let pieces: Vec<u8> =
        (0..count).flat_map(|piece| [DATA + 2 * piece, 1]).flat_map(|word: u64| word.to_le_bytes()).collect();
    world.machine.write(program, vector, &pieces);
    vector
}

#[test]
fn a_vector_of_any_length_is_filled_although_the_call_waits() {
    let world = World::new();
    let (reads, writes) = world.pipe(world.root, 0);
    let child = world.fork(world.root, 0);
    let vector = scattered(&world, child, 1024);
    assert_eq!(world.begin_call(child, nr::READV, &[reads, vector, 1024]), None);
    let data: Vec<u8> = (0..1024).map(|byte| (byte % 251 + 1) as u8).collect();
    assert_eq!(world.write(world.root, writes, &data), Ok(1024));
    assert_eq!(world.result(child), Some(Ok(1024)));
    let filled = world.machine.read(child, DATA, 2048);
    assert!(filled.iter().step_by(2).eq(&data) && filled.iter().skip(1).step_by(2).all(|byte| *byte == 0));
}

#[test]
fn a_vector_that_changes_while_the_call_waits_ends_early() {
    let world = World::new();
    let (reads, writes) = world.pipe(world.root, 0);
    let child = world.fork(world.root, 0);
    let vector = scattered(&world, child, 20);
    assert_eq!(world.begin_call(child, nr::READV, &[reads, vector, 20]), None);
    world.machine.write(child, vector + 16 * 16, &[0; 64]);
    assert_eq!(world.write(world.root, writes, &[7; 20]), Ok(20));
    assert_eq!(world.result(child), Some(Ok(16)));
    assert_eq!(world.call(world.root, nr::READ, &[reads, DATA, 100]), Ok(4));
}

#[test]
fn what_cannot_be_synced_or_advised_says_so() {
    let world = World::new();
    let root = world.root;
    world.make("/file", b"x", 0o644, (0, 0));
    let file = world.open(root, "/file", O_RDWR, 0).unwrap();
    let (reads, writes) = world.pipe(root, 0);
    let refused = |call: u32, arguments: &[u64]| world.call(root, call, arguments);
    for call in [nr::FSYNC, nr::FDATASYNC] {
        assert_eq!(refused(call, &[writes]), Err(Errno::EINVAL));
    }
    assert_eq!(refused(nr::FADVISE64, &[reads, 0, 0, 0]), Err(Errno::ESPIPE));
    assert_eq!(refused(nr::FADVISE64, &[file, 0, 0, 6]), Err(Errno::EINVAL));
    assert_eq!(refused(nr::FADVISE64, &[file, 0, 0, 5]), Ok(0));
    assert_eq!(refused(nr::READAHEAD, &[reads, 0, 10]), Err(Errno::EINVAL));
    assert_eq!(refused(nr::READAHEAD, &[writes, 0, 10]), Err(Errno::EBADF));
    assert_eq!(refused(nr::READAHEAD, &[file, 0, 10]), Ok(0));
    assert_eq!(refused(nr::SYNC_FILE_RANGE, &[writes, 0, 1, 0]), Err(Errno::ESPIPE));
    assert_eq!(refused(nr::SYNC_FILE_RANGE, &[file, 0, 1, 8]), Err(Errno::EINVAL));
    assert_eq!(refused(nr::SYNC_FILE_RANGE, &[file, u64::MAX, 1, 0]), Err(Errno::EINVAL));
    assert_eq!(refused(nr::SYNC_FILE_RANGE, &[file, 0, 1, 7]), Ok(0));
}

const RWF_NOWAIT: u64 = 8;
const RWF_APPEND: u64 = 16;

#[test]
fn vectors_take_a_position_or_the_files_own_and_flags() {
    let world = World::new();
    world.make("/file", b"0123456789", 0o644, (0, 0));
    let file = world.open(world.root, "/file", O_RDWR, 0).unwrap();
    let pieces = world.words(world.root, &[DATA, 4]);
    let read =
        |position: i64, flags| world.call(world.root, nr::PREADV2, &[file, pieces, 1, position as u64, 0, flags]);
    assert_eq!((read(-1, 0), world.position(world.root, file)), (Ok(4), 4));
    assert_eq!((read(8, 1), world.position(world.root, file)), (Ok(2), 4));
    assert_eq!((read(0, 32), read(-2, 0)), (Err(Errno::EOPNOTSUPP), Err(Errno::EINVAL)));
    assert_eq!(read(0, RWF_NOWAIT), Err(Errno::EOPNOTSUPP), "a file system is always waited for");
    let write =
        |position: i64, flags| world.call(world.root, nr::PWRITEV2, &[file, pieces, 1, position as u64, 0, flags]);
    assert_eq!(write(9, 0), Ok(4));
    assert_eq!((write(0, RWF_APPEND), world.position(world.root, file)), (Ok(4), 4));
    assert_eq!((write(-1, RWF_APPEND), world.position(world.root, file)), (Ok(4), 21));
    assert_eq!(world.pread(world.root, file, 100, 0).map(|bytes| bytes.len()), Ok(21));
}
