//! Calls that come again after a death of vfs: what the predecessor has done of them is not done twice.

use super::*;
use abi::{Endpoint, Errno, linux::nr};

/// A call of the superuser that is made, and comes again at a successor that does not know how it ended.
fn twice(world: &mut World, call: u32, arguments: &[u64]) -> [Result<u64>; 2] {
    let first = world.call(world.root, call, arguments);
    world.restart_vfs();
    let second = world.repeat_call(world.root, call, arguments).expect("nothing waits");
    [first, second]
}

fn paths(world: &World, first: &str, second: &str) -> [u64; 2] {
    [world.path(world.root, 0, first), world.path(world.root, 1, second)]
}

fn tree() -> World {
    let world = World::new();
    world.make_directory("/dir", 0o755, (0, 0));
    world.make_directory("/empty", 0o755, (0, 0));
    world.make("/file", b"text", 0o644, (0, 0));
    world
}

#[test]
fn names_are_made_removed_and_moved_once() {
    let mut world = tree();
    let done = [Ok(0); 2];
    let [a, b] = paths(&world, "/new", "/file");
    assert_eq!(twice(&mut world, nr::MKDIR, &[a, 0o755]), done);
    assert_eq!(world.path_call(world.root, nr::MKDIR, "/new", &[0o755]), Err(Errno::EEXIST));
    assert_eq!(twice(&mut world, nr::UNLINK, &[b]), done);
    let [a, b] = paths(&world, "/empty", "/file");
    assert_eq!(twice(&mut world, nr::RMDIR, &[a]), done);
    assert_eq!(twice(&mut world, nr::MKNOD, &[b, u64::from(S_IFREG) | 0o644, 0]), done);
    let [a, b] = paths(&world, "/file", "/dir/moved");
    assert_eq!(twice(&mut world, nr::RENAME, &[a, b]), done);
    let [a, b] = paths(&world, "/dir/moved", "/new");
    for _ in 0..2 {
        assert_eq!(twice(&mut world, nr::RENAMEAT2, &[AT_FDCWD, a, AT_FDCWD, b, 2]), done, "exchanged");
    }
    let [a, b] = paths(&world, "/dir/moved", "/other");
    assert_eq!(twice(&mut world, nr::LINK, &[a, b]), done);
    let [a, b] = paths(&world, "target", "/link");
    assert_eq!(twice(&mut world, nr::SYMLINK, &[a, b]), done);
    let names = world.names(world.root, "/").unwrap();
    assert_eq!(names.iter().filter(|name| *name != "lost+found").collect::<Vec<_>>(), ["dir", "link", "new", "other"]);
    assert_eq!(world.stat(world.root, "/other").unwrap().links, 2);
}

#[test]
fn a_node_made_for_a_call_that_came_again_is_freed_with_its_name() {
    let mut world = tree();
    let free = |world: &World| {
        assert_eq!(world.path_call(world.root, nr::STATFS, "/", &[DATA]), Ok(0));
        world.read_words(world.root, DATA, 7)[6]
    };
    let before = free(&world);
    for call in [nr::MKDIR, nr::MKNOD] {
        let path = world.path(world.root, 0, "/new");
        assert_eq!(twice(&mut world, call, &[path, 0o755, 0]), [Ok(0); 2]);
        assert_eq!(free(&world), before - 1);
        let remove = if call == nr::MKDIR { nr::RMDIR } else { nr::UNLINK };
        assert_eq!(world.path_call(world.root, remove, "/new", &[]), Ok(0));
        world.call(world.root, nr::SYNC, &[]).unwrap();
        world.machine.advance_ns(10_000_000_000);
        assert_eq!(free(&world), before);
    }
}

#[test]
fn what_failed_fails_again() {
    let mut world = tree();
    let [a, b] = paths(&world, "/dir", "/none");
    assert_eq!(twice(&mut world, nr::MKDIR, &[a, 0o755]), [Err(Errno::EEXIST); 2]);
    assert_eq!(twice(&mut world, nr::UNLINK, &[b]), [Err(Errno::ENOENT); 2]);
    assert_eq!(twice(&mut world, nr::RMDIR, &[b]), [Err(Errno::ENOENT); 2]);
}

#[test]
fn a_file_is_made_and_opened_once() {
    let mut world = tree();
    let path = world.path(world.root, 0, "/new");
    let [first, second] = twice(&mut world, nr::OPEN, &[path, O_CREAT | O_EXCL | O_RDWR, 0o600]);
    assert_eq!((first, second), (Ok(0), Ok(0)));
    assert_eq!(world.write(world.root, 0, b"text"), Ok(4));
    assert_eq!(world.content("/new"), b"text");
    assert_eq!(world.open(world.root, "/new", O_CREAT | O_EXCL | O_RDWR, 0o600), Err(Errno::EEXIST));
}

#[test]
fn sizes_are_set_once() {
    let mut world = tree();
    let path = world.path(world.root, 0, "/file");
    assert_eq!(twice(&mut world, nr::TRUNCATE, &[path, 2]), [Ok(0); 2]);
    assert_eq!(world.content("/file"), b"te");
    let file = world.open(world.root, "/file", O_RDWR, 0).unwrap();
    assert_eq!(twice(&mut world, nr::FTRUNCATE, &[file, 1]), [Ok(0); 2]);
    assert_eq!(world.content("/file"), b"t");
}

#[test]
fn data_that_has_moved_is_not_moved_again() {
    let mut world = tree();
    let (reads, writes) = world.pipe(world.root, 0);
    world.data(world.root, b"abcdef");
    assert_eq!(twice(&mut world, nr::WRITE, &[writes, DATA, 6]), [Ok(6); 2]);
    assert_eq!(twice(&mut world, nr::READ, &[reads, DATA, 4]), [Ok(4); 2]);
    assert_eq!(world.read(world.root, reads, 100).unwrap(), b"ef");
    let file = world.open(world.root, "/file", O_RDWR, 0).unwrap();
    assert_eq!(twice(&mut world, nr::READ, &[file, DATA, 3]), [Ok(3); 2]);
    assert_eq!(world.position(world.root, file), 3);
    assert_eq!(twice(&mut world, nr::LSEEK, &[file, 1, SEEK_CUR]), [Ok(4); 2]);
    assert_eq!(world.position(world.root, file), 4);
}

#[test]
fn a_file_is_moved_to_a_place_again_unless_others_may_have_moved_it_on() {
    let mut world = tree();
    let file = world.open(world.root, "/file", O_RDWR, 0).unwrap();
    assert_eq!(twice(&mut world, nr::LSEEK, &[file, 2, SEEK_SET]), [Ok(2); 2]);
    assert_eq!(world.position(world.root, file), 2);
    assert_eq!(twice(&mut world, nr::LSEEK, &[file, 0, SEEK_END]), [Ok(4); 2]);
    assert_eq!(world.position(world.root, file), 4);

    let other = world.fork(world.root, 0);
    assert_eq!(world.begin_call(world.root, nr::LSEEK, &[file, 0, SEEK_SET]), Some(Ok(0)));
    world.restart_vfs();
    assert_eq!(world.read(other, file, 3), Ok(b"tex".to_vec()));
    assert_eq!(world.repeat_earlier(2, world.root, nr::LSEEK, &[file, 0, SEEK_SET]), Some(Ok(0)));
    assert_eq!(world.position(world.root, file), 3, "the call was made before the read");
}

#[test]
fn a_wait_that_a_signal_has_ended_does_not_begin_again() {
    let mut world = tree();
    let (reads, _) = world.pipe(world.root, 0);
    let counter = world.call(world.root, nr::EVENTFD2, &[0, 0]).unwrap();
    let epoll = world.call(world.root, nr::EPOLL_CREATE1, &[0]).unwrap();
    let waits: [(u32, &[u64]); 4] = [
        (nr::POLL, &[0, 0, u64::MAX]),
        (nr::READ, &[reads, DATA, 4]),
        (nr::READ, &[counter, DATA, 8]),
        (nr::EPOLL_WAIT, &[epoll, DATA, 1, u64::MAX]),
    ];
    for (call, arguments) in waits {
        assert_eq!(world.begin_call(world.root, call, arguments), None);
        assert_eq!(world.cancel(world.root, Errno::ERESTARTSYS), Ok(0));
        let ended = world.result(world.root);
        assert!(ended.is_some_and(|result| result.is_err()), "{call}");
        world.restart_vfs();
        assert_eq!(world.repeat_call(world.root, call, arguments), ended, "{call}");
    }
}

#[test]
fn descriptors_are_given_once() {
    let mut world = tree();
    let file = world.open(world.root, "/file", O_RDWR, 0).unwrap();
    assert_eq!(twice(&mut world, nr::DUP, &[file]), [Ok(1); 2]);
    assert_eq!(twice(&mut world, nr::CLOSE, &[1]), [Ok(0); 2]);
    assert_eq!(twice(&mut world, nr::PIPE, &[DATA]), [Ok(0); 2]);
    assert_eq!(world.call(world.root, nr::DUP, &[file]), Ok(3), "one pipe was made");
    assert_eq!(twice(&mut world, nr::UMASK, &[0o77]), [Ok(0o22); 2]);
}

#[test]
fn a_file_system_is_mounted_and_unmounted_once() {
    let mut world = tree();
    world.start_tmpfs();
    let [kind, target] = paths(&world, "tmpfs", "/dir");
    assert_eq!(twice(&mut world, nr::MOUNT, &[kind, target, kind, 0, 0]), [Ok(0); 2]);
    world.make("/dir/file", b"in memory", 0o644, (0, 0));
    assert_eq!(world.content("/dir/file"), b"in memory");
    let target = world.path(world.root, 0, "/dir");
    assert_eq!(twice(&mut world, nr::UMOUNT2, &[target, 0]), [Ok(0); 2]);
    assert!(world.names(world.root, "/dir").unwrap().is_empty());
}

#[test]
fn a_memory_file_is_made_once() {
    let mut world = tree();
    world.start_tmpfs();
    let [kind, target] = paths(&world, "tmpfs", "/dir");
    assert_eq!(world.call(world.root, nr::MOUNT, &[kind, target, kind, 0, 0]), Ok(0));
    let name = world.path(world.root, 0, "text");
    let before = world.names(world.root, "/dir").unwrap();
    assert_eq!(twice(&mut world, nr::MEMFD_CREATE, &[name, 0]), [Ok(0); 2]);
    assert_eq!(world.write(world.root, 0, b"text"), Ok(4));
    assert_eq!(world.pread(world.root, 0, 10, 0).unwrap(), b"text");
    assert_eq!(world.names(world.root, "/dir").unwrap(), before);
}

#[test]
fn a_wait_that_comes_again_ends_when_the_first_would_have() {
    const S: u64 = 1_000_000_000;
    let mut world = tree();
    let (reads, _) = world.pipe(world.root, 0);
    let begin = |world: &World, who: Endpoint, call, arguments: &[u64]| {
        assert_eq!(world.begin_call(who, call, arguments), None);
    };
    let asked = world.words(world.root, &[reads | u64::from(POLLIN) << 32]);
    let poll = [asked, 1, 5000];
    begin(&world, world.root, nr::POLL, &poll);
    world.machine.advance_ns(3 * S);
    world.restart_vfs();
    world.machine.forget_request(world.root);
    assert_eq!(world.repeat_call(world.root, nr::POLL, &poll), None);
    world.machine.advance_ns(2 * S);
    assert_eq!(world.result(world.root), Some(Ok(0)));
    let sets = world.words(world.root, &[1 << reads, 5, 0]);
    let select = [reads + 1, sets, 0, 0, sets + 8, 0];
    begin(&world, world.root, nr::PSELECT6, &select);
    world.machine.advance_ns(3 * S);
    world.restart_vfs();
    world.machine.forget_request(world.root);
    assert_eq!(world.repeat_call(world.root, nr::PSELECT6, &select), None);
    world.machine.advance_ns(2 * S);
    assert_eq!(world.result(world.root), Some(Ok(0)));
    begin(&world, world.root, nr::POLL, &[asked, 1, 1000]);
    world.machine.advance_ns(S);
    assert_eq!(world.result(world.root), Some(Ok(0)), "a new call has its own time");
}
