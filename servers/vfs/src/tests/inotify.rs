//! Watches of files and directories, and the events that programs read (inotify).

use super::*;
use abi::{Endpoint, Errno, linux::nr};
use std::format;
use std::string::{String, ToString};
use std::vec::Vec;

const ACCESS: u32 = 0x1;
const MODIFY: u32 = 0x2;
const ATTRIB: u32 = 0x4;
const CLOSE_WRITE: u32 = 0x8;
const CLOSE_NOWRITE: u32 = 0x10;
const OPEN: u32 = 0x20;
const FROM: u32 = 0x40;
const TO: u32 = 0x80;
const CREATE: u32 = 0x100;
const DELETE: u32 = 0x200;
const DELETE_SELF: u32 = 0x400;
const MOVE_SELF: u32 = 0x800;
const ALL: u32 = 0xfff;
const UNMOUNT: u32 = 0x2000;
const OVERFLOW: u32 = 0x4000;
const IGNORED: u32 = 0x8000;
const ONLYDIR: u32 = 0x0100_0000;
const DONT_FOLLOW: u32 = 0x0200_0000;
const EXCL_UNLINK: u32 = 0x0400_0000;
const MASK_CREATE: u32 = 0x1000_0000;
const MASK_ADD: u32 = 0x2000_0000;
const ISDIR: u32 = 0x4000_0000;
const ONESHOT: u32 = 0x8000_0000;

pub(super) fn create(world: &World) -> u64 {
    world.call(world.root, nr::INOTIFY_INIT1, &[O_NONBLOCK]).unwrap()
}

fn watch_as(world: &World, who: Endpoint, inotify: u64, path: &str, mask: u32) -> Result<u64> {
    let path = world.path(who, 0, path);
    world.call(who, nr::INOTIFY_ADD_WATCH, &[inotify, path, mask.into()])
}

pub(super) fn watch(world: &World, inotify: u64, path: &str, mask: u32) -> Result<u64> {
    watch_as(world, world.root, inotify, path, mask)
}

/// What a read gives: watch, mask, cookie and name of each event.
fn events_with_cookies(world: &World, inotify: u64) -> Vec<(u32, u32, u32, String)> {
    let bytes = match world.read(world.root, inotify, 4096) {
        Ok(bytes) => bytes,
        Err(error) => {
            assert_eq!(error, Errno::EAGAIN);
            return Vec::new();
        }
    };
    let (mut events, mut at) = (Vec::new(), 0);
    while at < bytes.len() {
        let word = |n: usize| u32::from_le_bytes(bytes[at + 4 * n..at + 4 * n + 4].try_into().unwrap());
        let length = word(3) as usize;
        assert_eq!(length % 16, 0);
        let name = &bytes[at + 16..at + 16 + length];
        let end = name.iter().position(|byte| *byte == 0).unwrap_or(length);
        assert!(name[end..].iter().all(|byte| *byte == 0) && (length == 0 || end < length));
        events.push((word(0), word(1), word(2), String::from_utf8_lossy(&name[..end]).into_owned()));
        at += 16 + length;
    }
    events
}

pub(super) fn events(world: &World, inotify: u64) -> Vec<(u32, String)> {
    events_with_cookies(world, inotify).into_iter().map(|(_, mask, _, name)| (mask, name)).collect()
}

fn named(list: &[(u32, &str)]) -> Vec<(u32, String)> {
    list.iter().map(|(mask, name)| (*mask, name.to_string())).collect()
}

#[test]
fn a_directory_tells_of_the_files_in_it() {
    let world = World::new();
    world.make_directory("/d", 0o755, (0, 0));
    let inotify = create(&world);
    assert_eq!(watch(&world, inotify, "/d", ALL), Ok(1));
    let file = world.open(world.root, "/d/new", O_CREAT | O_RDWR, 0o644).unwrap();
    world.write(world.root, file, b"some").unwrap();
    world.pread(world.root, file, 4, 0).unwrap();
    world.close(world.root, file).unwrap();
    let wanted = [(CREATE, "new"), (OPEN, "new"), (MODIFY, "new"), (ACCESS, "new"), (CLOSE_WRITE, "new")];
    assert_eq!(events(&world, inotify), named(&wanted));
    assert_eq!(world.path_call(world.root, nr::CHMOD, "/d/new", &[0o600]), Ok(0));
    assert_eq!(world.path_call(world.root, nr::CHOWN, "/d/new", &[1, 1]), Ok(0));
    assert_eq!(world.path_call(world.root, nr::TRUNCATE, "/d/new", &[1]), Ok(0));
    assert_eq!(world.paths_call(world.root, nr::LINK, "/d/new", "/d/other"), Ok(0));
    assert_eq!(world.path_call(world.root, nr::MKDIR, "/d/sub", &[0o755]), Ok(0));
    assert_eq!(world.names(world.root, "/d/sub"), Ok(Vec::new()));
    assert_eq!(world.path_call(world.root, nr::RMDIR, "/d/sub", &[]), Ok(0));
    assert_eq!(world.path_call(world.root, nr::UNLINK, "/d/other", &[]), Ok(0));
    let wanted = [
        (ATTRIB, "new"),
        (MODIFY, "new"),
        (CREATE, "other"),
        (CREATE | ISDIR, "sub"),
        (OPEN | ISDIR, "sub"),
        (ACCESS | ISDIR, "sub"),
        (CLOSE_NOWRITE | ISDIR, "sub"),
        (DELETE | ISDIR, "sub"),
        (DELETE, "other"),
    ];
    assert_eq!(events(&world, inotify), named(&wanted), "equal events in a row are one");
}

#[test]
fn a_file_tells_of_itself_until_it_is_gone() {
    let world = World::new();
    world.make("/file", b"x", 0o644, (0, 0));
    let inotify = create(&world);
    watch(&world, inotify, "/file", ALL).unwrap();
    let file = world.open(world.root, "/file", O_RDONLY, 0).unwrap();
    assert_eq!(world.paths_call(world.root, nr::RENAME, "/file", "/moved"), Ok(0));
    assert_eq!(world.path_call(world.root, nr::UNLINK, "/moved", &[]), Ok(0));
    assert_eq!(events(&world, inotify), named(&[(OPEN, ""), (MOVE_SELF, ""), (ATTRIB, "")]));
    world.close(world.root, file).unwrap();
    assert_eq!(events(&world, inotify), named(&[(CLOSE_NOWRITE, ""), (DELETE_SELF, ""), (IGNORED, "")]));
    assert_eq!(world.call(world.root, nr::INOTIFY_RM_WATCH, &[inotify, 1]), Err(Errno::EINVAL));
}

#[test]
fn the_two_sides_of_a_move_have_one_cookie() {
    let world = World::new();
    world.make_directory("/a", 0o755, (0, 0));
    world.make_directory("/b", 0o755, (0, 0));
    world.make("/a/one", b"1", 0o644, (0, 0));
    world.make("/b/two", b"2", 0o644, (0, 0));
    let inotify = create(&world);
    let (a, b) = (watch(&world, inotify, "/a", ALL).unwrap() as u32, watch(&world, inotify, "/b", ALL).unwrap() as u32);
    watch(&world, inotify, "/b/two", DELETE_SELF).unwrap();
    assert_eq!(world.paths_call(world.root, nr::RENAME, "/a/one", "/b/two"), Ok(0));
    let seen = events_with_cookies(&world, inotify);
    let cookie = seen[0].2;
    assert_ne!(cookie, 0);
    let wanted = [(a, FROM, cookie, "one"), (b, TO, cookie, "two"), (3, DELETE_SELF, 0, ""), (3, IGNORED, 0, "")];
    assert_eq!(seen, wanted.map(|(watch, mask, cookie, name)| (watch, mask, cookie, name.to_string())));
    // Below a directory that has moved, names are told as before.
    watch(&world, inotify, "/b", CLOSE_WRITE).unwrap();
    assert_eq!(world.paths_call(world.root, nr::RENAME, "/b", "/a/c"), Ok(0));
    let file = world.open(world.root, "/a/c/two", O_WRONLY, 0).unwrap();
    world.close(world.root, file).unwrap();
    assert_eq!(events(&world, inotify), named(&[(TO | ISDIR, "c"), (CLOSE_WRITE, "two")]));
}

#[test]
fn masks_say_what_is_told_and_how() {
    let world = World::new();
    world.make_directory("/d", 0o755, (0, 0));
    world.make("/d/file", b"x", 0o644, (0, 0));
    assert_eq!(world.paths_call(world.root, nr::SYMLINK, "/d", "/link"), Ok(0));
    let inotify = create(&world);
    assert_eq!(watch(&world, inotify, "/d/file", ONLYDIR | OPEN), Err(Errno::ENOTDIR));
    assert_eq!(watch(&world, inotify, "/link", ONLYDIR | DONT_FOLLOW | OPEN), Err(Errno::ENOTDIR));
    for (mask, error) in [(0, Errno::EINVAL), (1 << 20, Errno::EINVAL), (MASK_ADD | MASK_CREATE | OPEN, Errno::EINVAL)]
    {
        assert_eq!(watch(&world, inotify, "/d", mask), Err(error));
    }
    assert_eq!(watch(&world, 99, "/d", OPEN), Err(Errno::EBADF));
    assert_eq!(watch(&world, inotify, "/none", OPEN), Err(Errno::ENOENT));
    let (end, _) = world.pipe(world.root, 0);
    assert_eq!(watch(&world, end, "/d", OPEN), Err(Errno::EINVAL));
    let first = watch(&world, inotify, "/link", CREATE).unwrap();
    assert_eq!(watch(&world, inotify, "/d", MASK_CREATE | OPEN), Err(Errno::EEXIST));
    assert_eq!(watch(&world, inotify, "/d", MASK_ADD | DELETE), Ok(first), "the same directory");
    world.make("/d/new", b"", 0o644, (0, 0));
    assert_eq!(world.path_call(world.root, nr::UNLINK, "/d/new", &[]), Ok(0));
    assert_eq!(events(&world, inotify), named(&[(CREATE, "new"), (DELETE, "new")]));
    assert_eq!(watch(&world, inotify, "/d", OPEN | ONESHOT), Ok(first));
    world.content("/d/file");
    world.content("/d/file");
    assert_eq!(events(&world, inotify), named(&[(OPEN, "file"), (IGNORED, "")]));
    assert_eq!(watch(&world, inotify, "/d", ALL | EXCL_UNLINK), Ok(first + 1));
    let file = world.open(world.root, "/d/file", O_WRONLY, 0).unwrap();
    assert_eq!(world.path_call(world.root, nr::UNLINK, "/d/file", &[]), Ok(0));
    world.write(world.root, file, b"unseen").unwrap();
    assert_eq!(events(&world, inotify), named(&[(OPEN, "file"), (DELETE, "file")]));
    assert_eq!(world.call(world.root, nr::INOTIFY_RM_WATCH, &[inotify, first + 1]), Ok(0));
    assert_eq!(events(&world, inotify), named(&[(IGNORED, "")]));
    let stranger = world.user(1000, 1000);
    world.make_directory("/secret", 0o700, (0, 0));
    assert_eq!(watch_as(&world, stranger, inotify, "/secret", OPEN), Err(Errno::EACCES));
}

#[test]
fn a_name_that_was_not_known_is_told_when_it_is_removed() {
    let mut world = World::new();
    world.make("/file", b"", 0o644, (0, 0));
    world.restart_vfs();
    let inotify = create(&world);
    watch(&world, inotify, "/", DELETE).unwrap();
    assert_eq!(world.path_call(world.root, nr::UNLINK, "/file", &[]), Ok(0));
    assert_eq!(events(&world, inotify), named(&[(DELETE, "file")]));
}

#[test]
fn reads_take_whole_events_and_wait_for_them() {
    let world = World::new();
    world.make_directory("/d", 0o755, (0, 0));
    let inotify = world.call(world.root, nr::INOTIFY_INIT, &[]).unwrap();
    watch(&world, inotify, "/d", CREATE).unwrap();
    let child = world.fork(world.root, 0);
    assert_eq!(world.begin_call(child, nr::READ, &[inotify, DATA, 100]), None);
    world.make("/d/a", b"", 0o644, (0, 0));
    assert_eq!(world.result(child), Some(Ok(32)));
    world.make("/d/b", b"", 0o644, (0, 0));
    world.make("/d/a name of some length", b"", 0o644, (0, 0));
    const FIONREAD: u64 = 0x541b;
    assert_eq!(world.call(world.root, nr::IOCTL, &[inotify, FIONREAD, DATA]), Ok(0));
    assert_eq!(world.read_words(world.root, DATA, 1)[0] as u32, 32 + 48);
    assert_eq!(world.read(world.root, inotify, 31), Err(Errno::EINVAL));
    assert_eq!(world.read(world.root, inotify, 79).unwrap().len(), 32);
    assert_eq!(world.call(world.root, nr::READ, &[inotify, 8, 79]), Err(Errno::EFAULT));
    assert_eq!(world.read(world.root, inotify, 79).unwrap().len(), 48);
    assert_eq!(world.write(world.root, inotify, b"x"), Err(Errno::EBADF));
}

#[test]
fn a_successor_has_watches_and_events() {
    let mut world = World::new();
    world.make_directory("/d", 0o755, (0, 0));
    let inotify = create(&world);
    watch(&world, inotify, "/d", CREATE | CLOSE_WRITE).unwrap();
    world.make("/d/before", b"x", 0o644, (0, 0));
    world.restart_vfs();
    world.make("/d/after", b"x", 0o644, (0, 0));
    let wanted = [(CREATE, "before"), (CLOSE_WRITE, "before"), (CREATE, "after"), (CLOSE_WRITE, "after")];
    assert_eq!(events(&world, inotify), named(&wanted));
    world.restart_vfs();
    assert_eq!(events(&world, inotify), named(&[]), "what was read does not come again");
    assert_eq!(watch(&world, inotify, "/", CREATE), Ok(2), "descriptors are not given twice");
    world.close(world.root, inotify).unwrap();
    world.restart_vfs();
    let again = create(&world);
    world.make("/d/later", b"x", 0o644, (0, 0));
    assert_eq!(events(&world, again), named(&[]), "the watches ended with their instance");
}

#[test]
fn a_change_that_comes_again_is_told_once() {
    let mut world = World::new();
    let inotify = create(&world);
    watch(&world, inotify, "/", CREATE).unwrap();
    let path = world.path(world.root, 0, "/made");
    assert_eq!(world.call(world.root, nr::MKDIR, &[path, 0o755]), Ok(0));
    world.restart_vfs();
    assert_eq!(world.repeat_call(world.root, nr::MKDIR, &[path, 0o755]), Some(Ok(0)));
    assert_eq!(events(&world, inotify), named(&[(CREATE | ISDIR, "made")]));
}

#[test]
fn what_a_user_has_is_bounded_and_lost_events_are_told() {
    let world = World::new();
    let stranger = world.user(1000, 1000);
    let mut instances = 0;
    while world.call(stranger, nr::INOTIFY_INIT1, &[0]).is_ok() {
        instances += 1;
        assert!(instances < 1000);
    }
    assert!(instances <= 128, "{instances}");
    assert!(world.call(world.root, nr::INOTIFY_INIT1, &[0]).is_ok());
    world.make_directory("/d", 0o755, (0, 0));
    let inotify = create(&world);
    watch(&world, inotify, "/d", CREATE | DELETE).unwrap();
    make_more_events_than_fit(&world);
    assert_eq!(last_event(&world, inotify), Some((u32::MAX, OVERFLOW)));
    world.make_directory("/d/again", 0o755, (0, 0));
    assert_eq!(events(&world, inotify), named(&[(CREATE | ISDIR, "again")]));
}

#[test]
fn a_loss_after_a_restart_is_told_too() {
    let mut world = World::new();
    world.make_directory("/d", 0o755, (0, 0));
    let inotify = create(&world);
    watch(&world, inotify, "/d", CREATE | DELETE).unwrap();
    world.restart_vfs();
    make_more_events_than_fit(&world);
    assert_eq!(last_event(&world, inotify), Some((u32::MAX, OVERFLOW)));
}

/// Directories come and go in /d.
fn make_more_events_than_fit(world: &World) {
    for round in 0..200 {
        let path = format!("/d/{round}");
        assert_eq!(world.path_call(world.root, nr::MKDIR, &path, &[0o755]), Ok(0));
        assert_eq!(world.path_call(world.root, nr::RMDIR, &path, &[]), Ok(0));
    }
}

/// Reads all events, fewer than have happened. Watch and mask of the last one.
fn last_event(world: &World, inotify: u64) -> Option<(u32, u32)> {
    let reads = core::iter::from_fn(|| Some(events_with_cookies(world, inotify)).filter(|some| !some.is_empty()));
    let seen: Vec<_> = reads.flatten().collect();
    assert!(seen.len() < 400);
    seen.last().map(|(watch, mask, ..)| (*watch, *mask))
}

#[test]
fn watches_do_not_keep_a_file_system_mounted() {
    let mut world = World::new();
    world.mount_tmpfs("/m");
    world.make("/m/file", b"x", 0o644, (0, 0));
    let inotify = create(&world);
    watch(&world, inotify, "/m", ALL).unwrap();
    watch(&world, inotify, "/m/file", ALL).unwrap();
    let file = world.open(world.root, "/m/file", O_RDONLY, 0).unwrap();
    assert_eq!(world.path_call(world.root, nr::UMOUNT2, "/m", &[0]), Err(Errno::EBUSY));
    world.close(world.root, file).unwrap();
    events(&world, inotify);
    assert_eq!(world.path_call(world.root, nr::UMOUNT2, "/m", &[0]), Ok(0));
    let wanted = [(UNMOUNT, ""), (IGNORED, ""), (UNMOUNT, ""), (IGNORED, "")];
    assert_eq!(events(&world, inotify), named(&wanted));
}

#[test]
fn changes_of_extended_attributes_are_changes_of_attributes() {
    let world = World::new();
    world.make_directory("/dir", 0o755, (0, 0));
    world.make("/dir/file", b"", 0o644, (0, 0));
    let inotify = create(&world);
    watch(&world, inotify, "/dir", ALL).unwrap();
    let (name, value) = (world.path(world.root, 1, "user.x"), world.data(world.root, b"y"));
    for _ in 0..2 {
        assert_eq!(world.path_call(world.root, nr::SETXATTR, "/dir/file", &[name, value, 1, 0]), Ok(0));
        assert_eq!(events(&world, inotify), named(&[(ATTRIB, "file")]));
        assert_eq!(world.paths_call(world.root, nr::REMOVEXATTR, "/dir/file", "user.x"), Ok(0));
        assert_eq!(events(&world, inotify), named(&[(ATTRIB, "file")]));
    }
    assert!(world.paths_call(world.root, nr::REMOVEXATTR, "/dir/file", "user.x").is_err());
    assert_eq!(events(&world, inotify), [], "a failure changes nothing");
}

#[test]
fn a_transfer_that_fails_is_no_event() {
    let world = World::new();
    world.make("/file", &std::vec![1; 100_000], 0o644, (0, 0));
    let inotify = create(&world);
    watch(&world, inotify, "/file", ACCESS | MODIFY).unwrap();
    let file = world.open(world.root, "/file", O_RDWR, 0).unwrap();
    for number in [nr::PREAD64, nr::PWRITE64] {
        for bytes in [1, 5000, 90_000] {
            assert_eq!(world.call(world.root, number, &[file, 8, bytes, 0]), Err(Errno::EFAULT), "{bytes} bytes");
        }
    }
    assert_eq!(events_with_cookies(&world, inotify), []);
    world.pread(world.root, file, 1, 0).unwrap();
    assert_eq!(events_with_cookies(&world, inotify).len(), 1);
}
