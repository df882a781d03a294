//! O_APPEND and O_DSYNC.

use super::*;
use abi::linux::nr;

#[test]
fn appended_data_goes_to_the_end_wherever_the_position_is() {
    let world = World::new();
    world.make("/log", b"first ", 0o644, (0, 0));
    let log = world.open(world.root, "/log", O_WRONLY | O_APPEND, 0).unwrap();
    assert_eq!(world.write(world.root, log, b"second "), Ok(7));
    assert_eq!(world.seek(world.root, log, 0, SEEK_SET), Ok(0));
    assert_eq!(world.write(world.root, log, b"third"), Ok(5));
    assert_eq!(world.position(world.root, log), 18);
    assert_eq!(world.content("/log"), b"first second third");
}

#[test]
fn two_who_append_do_not_overwrite_each_other() {
    let world = World::new();
    let other = world.fork(world.root, 0);
    let flags = O_CREAT | O_WRONLY | O_APPEND;
    let [mine, theirs] = [world.root, other].map(|who| world.open(who, "/log", flags, 0o644).unwrap());
    for _ in 0..3 {
        assert_eq!(world.write(world.root, mine, b"ab"), Ok(2));
        assert_eq!(world.write(other, theirs, b"cd"), Ok(2));
    }
    assert_eq!(world.content("/log"), b"abcdabcdabcd");
}

#[test]
fn pwrite_to_a_file_open_for_appending_appends_and_leaves_the_position() {
    let world = World::new();
    world.make("/log", b"12345", 0o644, (0, 0));
    let log = world.open(world.root, "/log", O_WRONLY | O_APPEND, 0).unwrap();
    assert_eq!(world.pwrite(world.root, log, b"67", 0), Ok(2));
    assert_eq!(world.position(world.root, log), 0);
    assert_eq!(world.content("/log"), b"1234567");
}

#[test]
fn fcntl_switches_appending_on_and_off() {
    let world = World::new();
    world.make("/log", b"12345", 0o644, (0, 0));
    let log = world.open(world.root, "/log", O_RDWR, 0).unwrap();
    assert_eq!(world.call(world.root, nr::FCNTL, &[log, F_SETFL, O_APPEND]), Ok(0));
    assert_eq!(world.write(world.root, log, b"6"), Ok(1));
    assert_eq!(world.call(world.root, nr::FCNTL, &[log, F_SETFL, 0]), Ok(0));
    assert_eq!(world.seek(world.root, log, 0, SEEK_SET), Ok(0));
    assert_eq!(world.write(world.root, log, b"X"), Ok(1));
    assert_eq!(world.content("/log"), b"X23456");
}

#[test]
fn what_is_written_with_dsync_is_on_the_disk_when_the_call_returns() {
    let world = World::new();
    let lazy = world.open(world.root, "/lazy", O_CREAT | O_WRONLY, 0o644).unwrap();
    assert_eq!(world.write(world.root, lazy, b"comes to the disk later"), Ok(23));
    assert!(!world.is_on_disk(b"comes to the disk later"));
    let now = world.open(world.root, "/now", O_CREAT | O_WRONLY | O_DSYNC, 0o644).unwrap();
    assert_eq!(world.write(world.root, now, b"is on the disk at once"), Ok(22));
    assert!(world.is_on_disk(b"is on the disk at once"));
}

#[test]
fn fsync_brings_a_file_to_the_disk() {
    let world = World::new();
    let file = world.open(world.root, "/file", O_CREAT | O_WRONLY, 0o644).unwrap();
    for call in [nr::FSYNC, nr::FDATASYNC, nr::SYNCFS] {
        let text = std::format!("synced by call {call}");
        world.write(world.root, file, text.as_bytes()).unwrap();
        assert!(!world.is_on_disk(text.as_bytes()));
        assert_eq!(world.call(world.root, call, &[file]), Ok(0));
        assert!(world.is_on_disk(text.as_bytes()));
    }
}

#[test]
fn what_was_written_comes_to_the_disk_by_itself() {
    let world = World::new();
    world.make("/file", b"written back in time", 0o644, (0, 0));
    assert!(!world.is_on_disk(b"written back in time"));
    world.machine.advance_ns(60_000_000_000);
    assert!(world.is_on_disk(b"written back in time"));
}
