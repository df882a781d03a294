//! What happens while the disk is busy: other calls go on, and a death of vfs in the middle of a call loses nothing.

use super::*;
use abi::{Endpoint, Errno, linux::nr};

const BYTES: u64 = 20_000;

/// The byte that a file has there.
pub fn byte(at: u64) -> u8 {
    (at % 251) as u8
}

/// What a file has there.
pub fn expected(range: std::ops::Range<u64>) -> Vec<u8> {
    range.map(byte).collect()
}

/// A file whose content is on the disk, and no longer in the cache of its file system.
fn world() -> World {
    let world = World::new();
    world.make("/file", &expected(0..BYTES), 0o666, (0, 0));
    world.evict();
    world
}

fn begin(world: &World, who: Endpoint, call: u32, arguments: &[u64]) {
    assert_eq!(world.begin_call(who, call, arguments), None);
}

#[test]
fn reads_of_one_open_file_share_it_out_while_they_wait() {
    let world = world();
    let file = world.open(world.root, "/file", O_RDONLY, 0).unwrap();
    let children = [0; 3].map(|_| world.fork(world.root, 0));
    world.hold_disk();
    for (child, bytes) in children.into_iter().zip([4000, 3000, 50_000]) {
        begin(&world, child, nr::READ, &[file, DATA, bytes]);
    }
    assert_eq!(world.position(world.root, file), BYTES);
    world.release_disk();
    for (child, range) in children.into_iter().zip([0..4000, 4000..7000, 7000..BYTES]) {
        assert_eq!(world.result(child), Some(Ok(range.end - range.start)));
        assert!(world.machine.read(child, DATA, (range.end - range.start) as usize) == expected(range));
    }
    assert_eq!(world.position(world.root, file), BYTES);
}

#[test]
fn a_read_that_fails_after_others_began_leaves_their_position() {
    let world = world();
    let file = world.open(world.root, "/file", O_RDONLY, 0).unwrap();
    let [first, second] = [0; 2].map(|_| world.fork(world.root, 0));
    world.hold_disk();
    begin(&world, first, nr::READ, &[file, 8, 5000]);
    assert_eq!(world.position(world.root, file), 5000);
    begin(&world, second, nr::READ, &[file, DATA, 5000]);
    world.release_disk();
    assert_eq!(world.result(first), Some(Err(Errno::EFAULT)));
    assert_eq!(world.result(second), Some(Ok(5000)));
    assert!(world.machine.read(second, DATA, 5000) == expected(5000..10_000));
    assert_eq!(world.position(world.root, file), 10_000);
}

#[test]
fn appends_that_wait_do_not_overwrite_each_other() {
    let world = world();
    let children = [0; 3].map(|_| world.fork(world.root, 0));
    let files = children.map(|child| world.open(child, "/file", O_WRONLY | O_APPEND, 0).unwrap());
    let thread = world.fork(children[0], abi::vfs::FORK_FILES);
    world.evict();
    world.hold_disk();
    for ((child, file), letter) in children.into_iter().zip(files).zip([b'a', b'b', b'c']) {
        world.data(child, &[letter; 100]);
        begin(&world, child, nr::WRITE, &[file, DATA, 100]);
    }
    assert_eq!(world.seek(thread, files[0], 0, SEEK_END), Ok(BYTES + 300), "the end is where it will be");
    world.release_disk();
    assert_eq!(children.map(|child| world.result(child)), [Some(Ok(100)); 3]);
    let content = world.content("/file");
    let expected = [&expected(0..BYTES)[..], &[b'a'; 100], &[b'b'; 100], &[b'c'; 100]].concat();
    assert!(content == expected);
}

#[test]
fn a_read_that_was_in_progress_is_made_again_from_its_start() {
    let mut world = world();
    let file = world.open(world.root, "/file", O_RDONLY, 0).unwrap();
    world.seek(world.root, file, 1000, SEEK_SET).unwrap();
    let call = [file, DATA, 4000];
    world.hold_disk();
    begin(&world, world.root, nr::READ, &call);
    world.restart_vfs();
    world.machine.forget_request(world.root);
    world.release_disk();
    let again = world.repeat_call(world.root, nr::READ, &call);
    assert_eq!(again, Some(Ok(4000)));
    assert!(world.machine.read(world.root, DATA, 4000) == expected(1000..5000));
    assert_eq!(world.position(world.root, file), 5000);
}

#[test]
fn a_transfer_that_ends_while_another_goes_on_does_not_move_what_is_preserved() {
    let mut world = world();
    let file = world.open(world.root, "/file", O_RDONLY, 0).unwrap();
    let child = world.fork(world.root, 0);
    world.call(world.root, nr::PREAD64, &[file, DATA, 100, 4096]).unwrap();
    world.hold_disk();
    begin(&world, world.root, nr::READ, &[file, DATA, 4096]);
    let ended = world.begin_call(child, nr::READ, &[file, 8, 100]);
    world.restart_vfs();
    world.machine.forget_request(world.root);
    world.machine.forget_request(child);
    world.release_disk();
    assert!(ended.is_none_or(|result| result == Err(Errno::EFAULT)));
    let bytes = world.read(world.root, file, 100).unwrap();
    assert!(bytes == expected(0..100) || bytes == expected(4096..4196), "where one of them began");
}

#[test]
fn an_append_that_was_in_progress_is_made_once() {
    let mut world = world();
    let file = world.open(world.root, "/file", O_WRONLY | O_APPEND, 0).unwrap();
    world.evict();
    world.data(world.root, &[b'a'; 100]);
    let call = [file, DATA, 100];
    world.hold_disk();
    begin(&world, world.root, nr::WRITE, &call);
    world.restart_vfs();
    world.machine.forget_request(world.root);
    world.release_disk();
    assert_eq!(world.repeat_call(world.root, nr::WRITE, &call), Some(Ok(100)));
    assert!(world.content("/file") == [&expected(0..BYTES)[..], &[b'a'; 100]].concat());
}

#[test]
fn names_that_were_being_changed_are_changed_once() {
    for (call, first, second) in [
        (nr::MKDIR, "/new", 0o755),
        (nr::UNLINK, "/file", 0),
        (nr::MKNOD, "/new", u64::from(S_IFREG) | 0o644),
        (nr::TRUNCATE, "/file", 100),
    ] {
        let mut world = world();
        let call_words = [world.path(world.root, 0, first), second, 0];
        world.hold_disk();
        let before = world.begin_call(world.root, call, &call_words);
        world.restart_vfs();
        world.machine.forget_request(world.root);
        world.release_disk();
        assert!(before.is_none_or(|result| result == Ok(0)), "{before:?} of call {call}");
        assert_eq!(world.repeat_call(world.root, call, &call_words), Some(Ok(0)), "call {call}");
        let found = world.stat(world.root, first).map(|stat| (stat.links, stat.size));
        let expected = match call {
            nr::MKDIR => found.map(|(_, size)| (2, size)),
            nr::UNLINK => Err(Errno::ENOENT),
            nr::MKNOD => Ok((1, 0)),
            _ => Ok((1, 100)),
        };
        assert_eq!(found, expected);
    }
}

#[test]
fn what_needs_no_disk_goes_on_meanwhile() {
    let world = world();
    let file = world.open(world.root, "/file", O_RDONLY, 0).unwrap();
    let child = world.fork(world.root, 0);
    world.hold_disk();
    begin(&world, child, nr::READ, &[file, DATA, 100]);
    let (reads, writes) = world.pipe(world.root, 0);
    assert_eq!(world.write(world.root, writes, b"through"), Ok(7));
    assert_eq!(world.read(world.root, reads, 10).unwrap(), b"through");
    assert_eq!(world.change_directory(world.root, "/"), Ok(0));
    world.close(world.root, file).unwrap();
    world.exit(child);
    world.release_disk();
    assert_eq!(world.content("/file")[..10], expected(0..10));
}

#[test]
fn a_process_that_ends_in_a_call_holds_no_directory() {
    let mut world = world();
    world.start_tmpfs();
    world.make_directory("/tmp", 0o755, (0, 0));
    let mount = |world: &World| {
        let (kind, target) = (world.path(world.root, 0, "tmpfs"), world.path(world.root, 1, "/tmp"));
        world.call(world.root, nr::MOUNT, &[kind, target, kind, 0, 0])
    };
    assert_eq!(mount(&world), Ok(0));
    let child = world.fork(world.root, 0);
    assert_eq!(world.change_directory(child, "/tmp"), Ok(0));
    let path = world.path(child, 0, "/file");
    let file = world.open(child, "/file", O_RDWR, 0).unwrap();
    world.evict();
    world.hold_disk();
    begin(&world, child, nr::TRUNCATE, &[path, 10_000]);
    world.exit(child);
    let target = world.path(world.root, 0, "/tmp");
    assert_eq!(world.call(world.root, nr::UMOUNT2, &[target, 0]), Ok(0));
    world.release_disk();
    assert_eq!(world.stat(world.root, "/file").unwrap().size, 10_000);
    assert_eq!(world.close(world.root, file), Err(Errno::EBADF));
}

#[test]
fn a_file_system_that_answers_no_request_is_reported() {
    const MINUTE_NS: u64 = 60_000_000_000;
    let world = world();
    let file = world.open(world.root, "/file", O_RDONLY, 0).unwrap();
    let stalled = |minutes: u64| {
        world.machine.advance_ns(minutes * MINUTE_NS);
        world.stalled.lock().unwrap().len()
    };
    assert_eq!(stalled(10), 0, "nobody has asked anything");
    world.hold_disk();
    begin(&world, world.root, nr::READ, &[file, DATA, 4000]);
    assert_eq!((stalled(1), stalled(2)), (0, 1));
    world.release_disk();
    assert_eq!(world.result(world.root), Some(Ok(4000)));
    assert_eq!(stalled(10), 1, "it has answered");
}
