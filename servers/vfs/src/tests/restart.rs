//! vfs dies between calls and within them: programs do not notice.

use super::*;
use abi::linux::nr;

#[test]
fn open_files_directories_and_pipes_outlive_vfs() {
    let mut world = World::new();
    world.make_directory("/dir", 0o755, (0, 0));
    world.make("/dir/file", b"0123456789", 0o644, (0, 0));
    let user = world.user(1000, 100);
    assert_eq!(world.change_directory(user, "/dir"), Ok(0));
    let file = world.open(user, "file", O_RDONLY, 0).unwrap();
    assert_eq!(world.read(user, file, 4).unwrap(), b"0123");
    let (reads, writes) = world.pipe(user, 0);
    world.write(user, writes, b"in the pipe").unwrap();
    world.restart_vfs();
    assert_eq!(world.read(user, file, 3).unwrap(), b"456");
    assert_eq!(world.read(user, reads, 100).unwrap(), b"in the pipe");
    assert!(world.open(user, "file", O_RDONLY, 0).is_ok(), "it is where it was");
    assert_eq!(world.open(user, "file", O_RDWR, 0), Err(abi::Errno::EACCES), "and who it was");
}

#[test]
fn a_call_that_waits_goes_on_when_it_is_repeated() {
    let mut world = World::new();
    let (reads, writes) = world.pipe(world.root, 0);
    let child = world.fork(world.root, 0);
    let call = [reads, DATA, 100];
    assert_eq!(world.begin_call(child, nr::READ, &call), None);
    world.restart_vfs();
    world.machine.forget_request(child);
    assert_eq!(world.repeat_call(child, nr::READ, &call), None);
    world.write(world.root, writes, b"late").unwrap();
    assert_eq!(world.result(child), Some(Ok(4)));
}

#[test]
fn an_append_whose_answer_was_lost_is_not_made_twice() {
    let mut world = World::new();
    let file = world.open(world.root, "/log", O_CREAT | O_WRONLY | O_APPEND, 0o644).unwrap();
    assert_eq!(world.write(world.root, file, b"once"), Ok(4));
    world.restart_vfs();
    let answer = world.repeat_call(world.root, nr::WRITE, &[file, DATA, 4]);
    assert_eq!(answer, Some(Ok(4)));
    assert_eq!(world.content("/log"), b"once");
}

/// A reader that waits for a writer counts for one that does not wait for readers, although the writer's call comes again first.
#[test]
fn who_waited_in_the_open_of_a_fifo_still_does_when_vfs_has_died() {
    let mut world = World::new();
    assert_eq!(world.path_call(world.root, nr::MKNOD, "/fifo", &[u64::from(S_IFIFO) | 0o600, 0]), Ok(0));
    let child = world.fork(world.root, 0);
    let reads = [world.path(child, 0, "/fifo"), O_RDONLY];
    assert_eq!(world.begin_call(child, nr::OPEN, &reads), None);
    let writes = [world.path(world.root, 0, "/fifo"), O_WRONLY | O_NONBLOCK];
    world.restart_vfs_for(&[(world.root, nr::OPEN, &writes), (child, nr::OPEN, &reads)]);
    assert!(matches!(world.result(child), Some(Ok(_))));
    assert!(matches!(world.result(world.root), Some(Ok(_))));
}
