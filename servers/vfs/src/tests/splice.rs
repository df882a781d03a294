//! splice, tee, vmsplice, sendfile, copy_file_range: what moves, what waits, and that nothing moves twice.

use super::devices::node;
use super::*;
use abi::{Errno, linux::nr, vfs};
use std::vec::Vec;

const NONBLOCK: u64 = 2;

fn text(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at * 7 % 251) as u8).collect()
}

/// A file of so many bytes, open for both.
fn file(world: &World, path: &str, bytes: usize) -> u64 {
    world.make(path, &text(bytes), 0o644, (0, 0));
    world.open(world.root, path, O_RDWR, 0).unwrap()
}

fn splice(world: &World, from: u64, to: u64, bytes: u64, flags: u64) -> Result<u64> {
    world.call(world.root, nr::SPLICE, &[from, 0, to, 0, bytes, flags])
}

#[test]
fn a_file_goes_through_a_pipe_into_another() {
    let world = World::new();
    let (from, to) = (file(&world, "/from", 100_000), file(&world, "/to", 0));
    let (reads, writes) = world.pipe(world.root, 0);
    let mut moved = 0;
    while moved < 100_000 {
        let into = splice(&world, from, writes, 1 << 20, 0).unwrap();
        assert_eq!(splice(&world, from, writes, 1, NONBLOCK), if into == 65536 { Err(Errno::EAGAIN) } else { Ok(0) });
        assert_eq!(splice(&world, reads, to, 1 << 20, 0), Ok(into));
        moved += into;
    }
    assert_eq!((world.position(world.root, from), world.position(world.root, to)), (100_000, 100_000));
    assert!(world.content("/to") == text(100_000));
    assert_eq!(splice(&world, reads, to, 10, NONBLOCK), Err(Errno::EAGAIN));
    world.close(world.root, writes).unwrap();
    assert_eq!(splice(&world, reads, to, 10, 0), Ok(0));
}

#[test]
fn offsets_in_memory_move_instead_of_positions() {
    let world = World::new();
    let (from, to) = (file(&world, "/from", 100), file(&world, "/to", 50));
    let (reads, writes) = world.pipe(world.root, 0);
    let offset = world.words(world.root, &[90]);
    assert_eq!(world.call(world.root, nr::SPLICE, &[from, offset, writes, 0, 100, 0]), Ok(10));
    assert_eq!(world.read_words(world.root, offset, 1), [100]);
    let offset = world.words(world.root, &[20]);
    assert_eq!(world.call(world.root, nr::SPLICE, &[reads, 0, to, offset, 4, 0]), Ok(4));
    assert_eq!(world.read_words(world.root, offset, 1), [24]);
    assert_eq!((world.position(world.root, from), world.position(world.root, to)), (0, 0));
    assert_eq!(world.content("/to")[20..24], text(100)[90..94]);
    assert_eq!(world.call(world.root, nr::SPLICE, &[reads, offset, to, 0, 4, 0]), Err(Errno::ESPIPE));
    assert_eq!(world.call(world.root, nr::SPLICE, &[from, 0, writes, offset, 4, 0]), Err(Errno::ESPIPE));
    assert_eq!(world.call(world.root, nr::SPLICE, &[from, 8, writes, 0, 4, 0]), Err(Errno::EFAULT));
}

#[test]
fn what_cannot_be_spliced_says_so() {
    let world = World::new();
    let (one, two) = (file(&world, "/one", 10), file(&world, "/two", 10));
    let (reads, writes) = world.pipe(world.root, 0);
    let append = world.open(world.root, "/one", O_WRONLY | O_APPEND, 0).unwrap();
    assert_eq!(splice(&world, one, two, 10, 0), Err(Errno::EINVAL));
    assert_eq!(splice(&world, reads, writes, 10, 0), Err(Errno::EINVAL), "one pipe");
    assert_eq!(splice(&world, reads, append, 10, 0), Err(Errno::EINVAL));
    assert_eq!(splice(&world, reads, one, 10, 16), Err(Errno::EINVAL));
    assert_eq!(splice(&world, writes, one, 10, 0), Err(Errno::EBADF));
    assert_eq!(splice(&world, one, reads, 10, 0), Err(Errno::EBADF));
    assert_eq!(splice(&world, 99, writes, 10, 0), Err(Errno::EBADF));
    assert_eq!(splice(&world, 99, 99, 0, 0), Ok(0));
    assert_eq!(world.call(world.root, nr::TEE, &[one, writes, 10, 0]), Err(Errno::EINVAL));
    assert_eq!(world.call(world.root, nr::TEE, &[reads, writes, 10, 0]), Err(Errno::EINVAL));
    let piece = world.words(world.root, &[DATA, 4]);
    assert_eq!(world.call(world.root, nr::VMSPLICE, &[one, piece, 1, 0]), Err(Errno::EBADF));
}

#[test]
fn tee_leaves_what_it_copies() {
    let world = World::new();
    let ((from, into), (reads, writes)) = (world.pipe(world.root, 0), world.pipe(world.root, 0));
    assert_eq!(world.call(world.root, nr::TEE, &[from, writes, 100, NONBLOCK]), Err(Errno::EAGAIN));
    world.write(world.root, into, b"twice").unwrap();
    assert_eq!(world.call(world.root, nr::TEE, &[from, writes, 100, 0]), Ok(5));
    assert_eq!(world.read(world.root, reads, 100).unwrap(), b"twice");
    assert_eq!(splice(&world, from, writes, 3, 0), Ok(3));
    assert_eq!(world.read(world.root, reads, 100).unwrap(), b"twi");
    assert_eq!(world.read(world.root, from, 100).unwrap(), b"ce");
}

#[test]
fn memory_goes_into_a_pipe_and_out_of_it() {
    let world = World::new();
    let (reads, writes) = world.pipe(world.root, 0);
    world.data(world.root, b"some text");
    let pieces = world.words(world.root, &[DATA, 4, DATA + 5, 4]);
    assert_eq!(world.call(world.root, nr::VMSPLICE, &[writes, pieces, 2, 8]), Ok(8));
    let piece = world.words(world.root, &[DATA + 100, 100]);
    assert_eq!(world.call(world.root, nr::VMSPLICE, &[reads, piece, 1, 0]), Ok(8));
    assert_eq!(world.machine.read(world.root, DATA + 100, 8), b"sometext");
    assert_eq!(world.call(world.root, nr::VMSPLICE, &[reads, piece, 1, NONBLOCK]), Err(Errno::EAGAIN));
    let large = world.words(world.root, &[DATA, 100_000]);
    assert_eq!(world.call(world.root, nr::VMSPLICE, &[writes, large, 1, 0]), Ok(65536), "what there is room for");
    assert_eq!(world.call(world.root, nr::VMSPLICE, &[writes, large, 1, NONBLOCK]), Err(Errno::EAGAIN));
}

#[test]
fn a_splice_waits_for_data_and_for_room() {
    let world = World::new();
    let ((from, into), (reads, writes)) = (world.pipe(world.root, 0), world.pipe(world.root, 0));
    let child = world.fork(world.root, 0);
    assert_eq!(world.begin_call(child, nr::SPLICE, &[from, 0, writes, 0, 100, 0]), None);
    world.write(world.root, into, b"data").unwrap();
    assert_eq!(world.result(child), Some(Ok(4)));
    world.call(world.root, nr::WRITE, &[writes, DATA, 65532]).unwrap();
    world.write(world.root, into, b"more").unwrap();
    assert_eq!(world.begin_call(child, nr::SPLICE, &[from, 0, writes, 0, 100, 0]), None);
    assert_eq!(world.call(world.root, nr::READ, &[reads, DATA, 65536]), Ok(65536));
    assert_eq!(world.result(child), Some(Ok(4)));
    assert_eq!(world.begin_call(child, nr::SPLICE, &[from, 0, writes, 0, 100, 0]), None);
    assert_eq!(world.cancel(child, Errno::EINTR), Ok(0));
    assert_eq!(world.result(child), Some(Err(Errno::EINTR)));
}

#[test]
fn a_splice_into_a_pipe_serves_a_reader_that_waits() {
    let world = World::new();
    let from = file(&world, "/from", 5000);
    let (reads, writes) = world.pipe(world.root, 0);
    let child = world.fork(world.root, 0);
    assert_eq!(world.begin_call(child, nr::READ, &[reads, DATA, 3000]), None);
    assert_eq!(splice(&world, from, writes, 5000, 0), Ok(5000));
    assert_eq!(world.result(child), Some(Ok(3000)));
    assert!(world.machine.read(child, DATA, 3000) == text(5000)[..3000]);
    assert!(world.read(world.root, reads, 5000).unwrap() == text(5000)[3000..]);
}

#[test]
fn nobody_takes_what_is_being_written_to_a_file() {
    let world = World::new();
    let file = world.open(world.root, "/to", O_CREAT | O_RDWR | O_DSYNC, 0o644).unwrap();
    let (reads, writes) = world.pipe(world.root, 0);
    world.write(world.root, writes, b"first").unwrap();
    let (one, two) = (world.fork(world.root, 0), world.fork(world.root, 0));
    world.hold_disk();
    assert_eq!(world.begin_call(one, nr::SPLICE, &[reads, 0, file, 0, 100, 0]), None);
    assert_eq!(world.begin_call(two, nr::READ, &[reads, DATA, 100]), None);
    world.write(world.root, writes, b"second").unwrap();
    assert_eq!(world.result(two), None);
    world.release_disk();
    world.machine.run();
    assert_eq!((world.result(one), world.result(two)), (Some(Ok(5)), Some(Ok(6))));
    assert_eq!(world.machine.read(two, DATA, 6), b"second");
    assert_eq!(world.content("/to"), b"first");
}

#[test]
fn the_end_comes_to_those_who_wait_behind_a_splice() {
    let world = World::new();
    let file = world.open(world.root, "/to", O_CREAT | O_RDWR | O_DSYNC, 0o644).unwrap();
    let (reads, writes) = world.pipe(world.root, 0);
    world.write(world.root, writes, b"first").unwrap();
    let (one, two) = (world.fork(world.root, 0), world.fork(world.root, 0));
    for child in [one, two] {
        world.close(child, writes).unwrap();
    }
    world.hold_disk();
    assert_eq!(world.begin_call(one, nr::SPLICE, &[reads, 0, file, 0, 100, 0]), None);
    assert_eq!(world.begin_call(two, nr::READ, &[reads, DATA, 100]), None);
    world.close(world.root, writes).unwrap();
    assert_eq!(world.result(two), None);
    world.release_disk();
    world.machine.run();
    assert_eq!((world.result(one), world.result(two)), (Some(Ok(5)), Some(Ok(0))));
}

#[test]
fn a_splice_without_reader_is_signalled() {
    let world = World::new();
    let from = file(&world, "/from", 10);
    let (reads, writes) = world.pipe(world.root, 0);
    world.close(world.root, reads).unwrap();
    assert_eq!(world.begin_call(world.root, nr::SPLICE, &[from, 0, writes, 0, 10, 0]), None);
    assert_eq!(world.next_event(), Some((vfs::EVENT_SIGNAL, world.root, [13, 0, 0, 0])));
    assert_eq!(world.cancel(world.root, Errno::EPIPE), Ok(0));
    assert_eq!(world.result(world.root), Some(Err(Errno::EPIPE)));
    assert_eq!(world.position(world.root, from), 0);
}

#[test]
fn a_file_is_sent_to_pipes_sockets_and_devices() {
    let world = World::new();
    let from = file(&world, "/from", 200_000);
    let (reads, writes) = world.pipe(world.root, 0);
    assert_eq!(world.call(world.root, nr::SENDFILE, &[writes, from, 0, 200_000]), Ok(65536), "what the pipe holds");
    assert!(world.read(world.root, reads, 65536).unwrap() == text(200_000)[..65536]);
    let pair = world.words(world.root, &[0]);
    assert_eq!(world.call(world.root, nr::SOCKETPAIR, &[1, 1, 0, pair]), Ok(0));
    let both = world.read_words(world.root, pair, 1)[0];
    let child = world.fork(world.root, 0);
    assert_eq!(world.begin_call(child, nr::SENDFILE, &[both & 0xffff_ffff, from, 0, 200_000]), None);
    let mut content = Vec::new();
    while content.len() < 134_464 {
        content.extend(world.read(world.root, both >> 32, 10_000).unwrap());
    }
    assert_eq!(world.result(child), Some(Ok(134_464)));
    assert!(content == text(200_000)[65536..]);
    node(&world, "/null", S_IFCHR, 0x103);
    let null = world.open(world.root, "/null", O_WRONLY, 0).unwrap();
    let offset = world.words(world.root, &[0]);
    assert_eq!(world.call(world.root, nr::SENDFILE, &[null, from, offset, 1000]), Ok(1000));
}

#[test]
fn what_goes_from_memory_to_a_device_that_takes_everything_is_not_fetched() {
    let mut world = World::new();
    world.mount_tmpfs("/tmp");
    node(&world, "/null", S_IFCHR, 0x103);
    let null = world.open(world.root, "/null", O_WRONLY, 0).unwrap();
    let from = file(&world, "/tmp/from", 300_000);
    world.call(world.root, nr::SYNC, &[]).unwrap();
    world.machine.advance_ns(5_000_000_000);
    let accessed = |world: &World| {
        assert_eq!(world.call(world.root, nr::FSTAT, &[from, DATA]), Ok(0));
        world.read_words(world.root, DATA, 18)[9]
    };
    let before = accessed(&world);
    let send = |world: &World| {
        let messages = world.machine.messages(world.tmpfs());
        let sent = world.call(world.root, nr::SENDFILE, &[null, from, 0, 1 << 20]);
        (sent, world.machine.messages(world.tmpfs()) - messages)
    };
    assert_eq!(send(&world), (Ok(300_000), 1), "tmpfs hears of the read");
    assert!(accessed(&world) > before);
    assert_eq!(send(&world), (Ok(0), 0), "there it ends");
    assert_eq!(world.seek(world.root, from, -1000, 2), Ok(299_000));
    assert_eq!(send(&world), (Ok(1000), 0));
}

#[test]
fn ranges_are_copied_between_files_of_one_file_system() {
    let mut world = World::new();
    let (from, to) = (file(&world, "/from", 300_000), file(&world, "/to", 10));
    let copy =
        |world: &World, from, to, bytes| world.call(world.root, nr::COPY_FILE_RANGE, &[from, 0, to, 0, bytes, 0]);
    assert_eq!(copy(&world, from, to, 1 << 20), Ok(300_000));
    assert_eq!(copy(&world, from, to, 1 << 20), Ok(0));
    assert!(world.content("/to") == text(300_000));
    assert_eq!((world.position(world.root, from), world.position(world.root, to)), (300_000, 300_000));
    let offsets = world.words(world.root, &[100, 50]);
    let within = |bytes| world.call(world.root, nr::COPY_FILE_RANGE, &[from, offsets, from, offsets + 8, bytes, 0]);
    assert_eq!(within(51), Err(Errno::EINVAL), "they overlap");
    assert_eq!(within(50), Ok(50));
    assert_eq!(world.read_words(world.root, offsets, 2), [150, 100]);
    assert_eq!(world.content("/from")[50..100], text(300)[100..150]);
    assert_eq!(copy(&world, from, 99, 1), Err(Errno::EBADF));
    assert_eq!(world.call(world.root, nr::COPY_FILE_RANGE, &[from, 0, to, 0, 1, 1]), Err(Errno::EINVAL));
    let directory = world.open(world.root, "/", O_RDONLY, 0).unwrap();
    assert_eq!(copy(&world, directory, to, 1), Err(Errno::EISDIR));
    let (reads, writes) = world.pipe(world.root, 0);
    assert_eq!(copy(&world, reads, to, 1), Err(Errno::EINVAL));
    let append = world.open(world.root, "/to", O_WRONLY | O_APPEND, 0).unwrap();
    assert_eq!(copy(&world, from, append, 1), Err(Errno::EBADF));
    assert_eq!(copy(&world, from, writes, 1), Err(Errno::EINVAL));
    world.mount_tmpfs("/memory");
    let other = world.open(world.root, "/memory/file", O_CREAT | O_RDWR, 0o644).unwrap();
    assert_eq!(copy(&world, from, other, 1), Err(Errno::EXDEV));
    world.seek(world.root, from, 0, 0).unwrap();
    assert_eq!(world.call(world.root, nr::SENDFILE, &[other, from, 0, 300_000]), Ok(300_000), "through vfs");
    assert_eq!(world.content("/memory/file").len(), 300_000);
}

#[test]
fn what_has_moved_does_not_move_again_when_vfs_dies() {
    let mut world = World::new();
    let (from, to) = (file(&world, "/from", 100), file(&world, "/to", 0));
    let ((first, into), (reads, writes)) = (world.pipe(world.root, 0), world.pipe(world.root, 0));
    world.write(world.root, into, b"0123456789").unwrap();
    for (call, arguments) in [
        (nr::SPLICE, [first, 0, writes, 0, 4, 0]),
        (nr::TEE, [first, writes, 4, 0, 0, 0]),
        (nr::SPLICE, [reads, 0, to, 0, 6, 0]),
        (nr::SPLICE, [from, 0, writes, 0, 20, 0]),
        (nr::COPY_FILE_RANGE, [from, 0, to, 0, 8, 0]),
        (nr::SENDFILE, [writes, from, 0, 8, 0, 0]),
    ] {
        let result = world.call(world.root, call, &arguments);
        world.restart_vfs();
        assert_eq!(world.repeat_call(world.root, call, &arguments), Some(result), "call {call}");
    }
    assert_eq!(world.read(world.root, first, 100).unwrap(), b"456789");
    let text = text(100);
    assert_eq!(world.content("/to"), [b"012345", &text[20..28]].concat());
    let left = world.read(world.root, reads, 100).unwrap();
    assert_eq!(left, [b"67", &text[..20], &text[28..36]].concat());
    assert_eq!(world.position(world.root, from), 36);
}

#[test]
fn a_splice_in_progress_is_done_by_the_successor() {
    let mut world = World::new();
    let file = world.open(world.root, "/to", O_CREAT | O_RDWR | O_DSYNC, 0o644).unwrap();
    let (reads, writes) = world.pipe(world.root, 0);
    world.write(world.root, writes, b"text").unwrap();
    let arguments = [reads, 0, file, 0, 100, 0];
    world.hold_disk();
    assert_eq!(world.begin_call(world.root, nr::SPLICE, &arguments), None);
    world.restart_vfs();
    world.machine.forget_request(world.root);
    assert_eq!(world.repeat_call(world.root, nr::SPLICE, &arguments), None);
    world.release_disk();
    world.machine.run();
    assert_eq!(world.result(world.root), Some(Ok(4)));
    assert_eq!(world.content("/to"), b"text");
    assert_eq!(splice(&world, reads, file, 1, NONBLOCK), Err(Errno::EAGAIN));
    assert_eq!(world.position(world.root, file), 4);
}
