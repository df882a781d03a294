//! What users other than the superuser may do with files of others and their own.

use super::*;
use abi::{Errno, linux::nr};

const OWNER: (u64, u64) = (1000, 100);
pub const R_OK: u64 = 4;
pub const W_OK: u64 = 2;
const X_OK: u64 = 1;

#[test]
fn a_directory_without_the_right_to_search_hides_what_is_in_it() {
    let world = World::new();
    world.make_directory("/closed", 0o644, (0, 0));
    world.make("/closed/file", b"x", 0o666, (0, 0));
    let user = world.user(1000, 100);
    assert_eq!(world.open(user, "/closed/file", O_RDONLY, 0), Err(Errno::EACCES));
    assert_eq!(world.stat(user, "/closed/file"), Err(Errno::EACCES));
    assert_eq!(world.stat(user, "/closed/missing"), Err(Errno::EACCES));
    assert_eq!(world.change_directory(user, "/closed"), Err(Errno::EACCES));
    assert_eq!(world.path_call(user, nr::ACCESS, "/closed/file", &[0]), Err(Errno::EACCES));
    assert_eq!(world.names(user, "/closed").unwrap(), ["file"], "it may be read");
    assert_eq!(world.path_call(world.root, nr::CHMOD, "/closed", &[0o711]), Ok(0));
    assert!(world.open(user, "/closed/file", O_RDONLY, 0).is_ok());
    assert_eq!(world.names(user, "/closed"), Err(Errno::EACCES), "it may be searched, not read");
}

#[test]
fn every_directory_on_the_way_is_searched_by_the_caller() {
    let world = World::new();
    for (path, mode) in [("/a", 0o755), ("/a/b", 0o700), ("/a/b/c", 0o755)] {
        world.make_directory(path, mode, (0, 0));
    }
    world.make("/a/b/c/file", b"x", 0o666, (0, 0));
    let user = world.user(1000, 100);
    assert_eq!(world.open(user, "/a/b/c/file", O_RDONLY, 0), Err(Errno::EACCES));
    assert_eq!(world.open(user, "/a/b/../b/c/file", O_RDONLY, 0), Err(Errno::EACCES));
    assert!(world.open(world.root, "/a/b/c/file", O_RDONLY, 0).is_ok(), "the superuser may search all");
}

#[test]
fn an_open_directory_needs_no_way_to_it() {
    let world = World::new();
    world.make_directory("/hidden", 0o700, (0, 0));
    world.make_directory("/hidden/open", 0o755, (0, 0));
    world.make("/hidden/open/file", b"x", 0o644, (0, 0));
    let directory = world.open(world.root, "/hidden/open", O_RDONLY | O_DIRECTORY, 0).unwrap();
    let user = world.user(1000, 100);
    assert!(world.open_at(user, directory, "file", O_RDONLY).is_ok());
    assert_eq!(world.open_at(user, directory, "../open/file", O_RDONLY), Err(Errno::EACCES));
}

#[test]
fn the_class_of_the_caller_decides_alone() {
    let world = World::new();
    world.make("/file", b"x", 0o047, OWNER);
    let outcomes = |who| [O_RDONLY, O_WRONLY, O_RDWR].map(|flags| world.open(who, "/file", flags, 0).is_ok());
    assert_eq!(outcomes(world.user(1000, 100)), [false, false, false], "the owner, who is in the group");
    assert_eq!(outcomes(world.user(1001, 100)), [true, false, false], "one of the group");
    assert_eq!(outcomes(world.user(1001, 101)), [true, true, true], "somebody else");
    assert_eq!(outcomes(world.root), [true, true, true], "the superuser");
}

#[test]
fn further_groups_count_as_the_group() {
    let world = World::new();
    world.make("/file", b"x", 0o060, (0, 500));
    let user = world.user(1000, 100);
    assert_eq!(world.open(user, "/file", O_RDWR, 0), Err(Errno::EACCES));
    world.set_ids(user, (1000, 100), (1000, 100), &[7, 500]);
    assert!(world.open(user, "/file", O_RDWR, 0).is_ok());
    let child = world.fork(user, 0);
    assert!(world.open(child, "/file", O_RDWR, 0).is_ok(), "a child is in its parent's groups");
}

#[test]
fn an_open_file_keeps_the_rights_it_was_opened_with() {
    let world = World::new();
    world.make("/file", b"x", 0o644, OWNER);
    let user = world.user(1000, 100);
    let reads = world.open(user, "/file", O_RDONLY, 0).unwrap();
    let writes = world.open(user, "/file", O_WRONLY, 0).unwrap();
    assert_eq!(world.path_call(user, nr::CHMOD, "/file", &[0]), Ok(0));
    assert_eq!(world.open(user, "/file", O_RDONLY, 0), Err(Errno::EACCES));
    assert_eq!(world.write(user, writes, b"yz"), Ok(2));
    assert_eq!(world.read(user, reads, 9).unwrap(), b"yz");
    assert_eq!(world.write(user, reads, b"x"), Err(Errno::EBADF));
    assert_eq!(world.read(user, writes, 9), Err(Errno::EBADF));
}

#[test]
fn truncating_needs_the_right_to_write() {
    let world = World::new();
    world.make("/file", b"12345", 0o644, (0, 0));
    let user = world.user(1000, 100);
    assert_eq!(world.open(user, "/file", O_RDONLY | O_TRUNC, 0), Err(Errno::EACCES));
    assert_eq!(world.path_call(user, nr::TRUNCATE, "/file", &[1]), Err(Errno::EACCES));
    let reads = world.open(user, "/file", O_RDONLY, 0).unwrap();
    assert_eq!(world.call(user, nr::FTRUNCATE, &[reads, 1]), Err(Errno::EINVAL));
    assert_eq!(world.content("/file"), b"12345");
}

#[test]
fn a_new_file_belongs_to_its_maker_and_has_the_mode_less_the_umask() {
    let world = World::new();
    world.make_directory("/tmp", 0o1777, (0, 0));
    let user = world.user(1000, 100);
    assert_eq!(world.call(user, nr::UMASK, &[0o027]), Ok(0o022));
    world.open(user, "/tmp/file", O_CREAT | O_WRONLY, 0o666).unwrap();
    let stat = world.stat(user, "/tmp/file").unwrap();
    assert_eq!((stat.uid, stat.gid, stat.mode), (1000, 100, S_IFREG | 0o640));
    assert_eq!(world.path_call(user, nr::MKDIR, "/tmp/dir", &[0o777]), Ok(0));
    assert_eq!(world.stat(user, "/tmp/dir").unwrap().mode, S_IFDIR | 0o750);
    assert_eq!(world.call(user, nr::UMASK, &[0o7777]), Ok(0o027));
    assert_eq!(world.call(user, nr::UMASK, &[0]), Ok(0o777), "only permission bits are kept");
    assert_eq!(world.call(world.root, nr::UMASK, &[0]), Ok(0o022), "the parent has its own");
}

#[test]
fn the_mode_of_a_new_file_does_not_bind_its_first_open() {
    let world = World::new();
    world.make_directory("/tmp", 0o1777, (0, 0));
    let user = world.user(1000, 100);
    let file = world.open(user, "/tmp/file", O_CREAT | O_RDWR, 0o000).unwrap();
    assert_eq!(world.write(user, file, b"x"), Ok(1));
    assert_eq!(world.open(user, "/tmp/file", O_RDONLY, 0), Err(Errno::EACCES));
}

#[test]
fn a_directory_with_the_set_group_bit_gives_its_group() {
    let world = World::new();
    world.make_directory("/team", 0o2777, (0, 500));
    let user = world.user(1000, 100);
    world.open(user, "/team/file", O_CREAT | O_WRONLY, 0o644).unwrap();
    assert_eq!(world.path_call(user, nr::MKDIR, "/team/dir", &[0o755]), Ok(0));
    assert_eq!(world.stat(user, "/team/file").unwrap().gid, 500);
    let directory = world.stat(user, "/team/dir").unwrap();
    assert_eq!((directory.gid, directory.mode), (500, S_IFDIR | 0o2755));
}

#[test]
fn names_are_changed_only_in_directories_that_may_be_written() {
    let world = World::new();
    world.make_directory("/theirs", 0o755, (0, 0));
    world.make("/theirs/file", b"x", 0o666, OWNER);
    world.make_directory("/theirs/dir", 0o777, OWNER);
    world.make_directory("/mine", 0o755, OWNER);
    let user = world.user(1000, 100);
    assert_eq!(world.open(user, "/theirs/new", O_CREAT | O_WRONLY, 0o644), Err(Errno::EACCES));
    assert_eq!(world.path_call(user, nr::MKDIR, "/theirs/new", &[0o755]), Err(Errno::EACCES));
    assert_eq!(world.path_call(user, nr::MKNOD, "/theirs/new", &[u64::from(S_IFIFO) | 0o644, 0]), Err(Errno::EACCES));
    assert_eq!(world.path_call(user, nr::UNLINK, "/theirs/file", &[]), Err(Errno::EACCES));
    assert_eq!(world.path_call(user, nr::RMDIR, "/theirs/dir", &[]), Err(Errno::EACCES));
    assert_eq!(world.paths_call(user, nr::RENAME, "/theirs/file", "/mine/file"), Err(Errno::EACCES));
    assert_eq!(world.paths_call(user, nr::LINK, "/theirs/file", "/theirs/other"), Err(Errno::EACCES));
    assert_eq!(world.paths_call(user, nr::SYMLINK, "x", "/theirs/link"), Err(Errno::EACCES));
    assert_eq!(world.names(world.root, "/theirs").unwrap(), ["dir", "file"]);
    assert_eq!(world.paths_call(user, nr::LINK, "/theirs/file", "/mine/file"), Ok(0));
}

#[test]
fn in_a_sticky_directory_only_owners_remove_and_rename() {
    let world = World::new();
    world.make_directory("/tmp", 0o1777, (0, 0));
    world.make("/tmp/file", b"x", 0o666, OWNER);
    world.make("/tmp/root", b"x", 0o666, (0, 0));
    let (owner, other) = (world.user(1000, 100), world.user(1001, 100));
    assert_eq!(world.path_call(other, nr::UNLINK, "/tmp/file", &[]), Err(Errno::EPERM));
    assert_eq!(world.paths_call(other, nr::RENAME, "/tmp/file", "/tmp/stolen"), Err(Errno::EPERM));
    world.open(other, "/tmp/mine", O_CREAT | O_WRONLY, 0o644).unwrap();
    assert_eq!(world.paths_call(other, nr::RENAME, "/tmp/mine", "/tmp/file"), Err(Errno::EPERM), "over another's");
    assert_eq!(world.path_call(owner, nr::UNLINK, "/tmp/root", &[]), Err(Errno::EPERM));
    assert_eq!(world.paths_call(owner, nr::RENAME, "/tmp/file", "/tmp/moved"), Ok(0));
    assert_eq!(world.path_call(owner, nr::UNLINK, "/tmp/moved", &[]), Ok(0));
    assert_eq!(world.path_call(world.root, nr::UNLINK, "/tmp/mine", &[]), Ok(0));
}

#[test]
fn the_owner_of_a_sticky_directory_may_remove_what_others_have_there() {
    let world = World::new();
    world.make_directory("/mine", 0o1777, OWNER);
    world.make("/mine/file", b"x", 0o600, (1001, 100));
    assert_eq!(world.path_call(world.user(1002, 100), nr::UNLINK, "/mine/file", &[]), Err(Errno::EPERM));
    assert_eq!(world.path_call(world.user(1000, 100), nr::UNLINK, "/mine/file", &[]), Ok(0));
}

#[test]
fn only_owner_and_superuser_change_the_mode() {
    let world = World::new();
    world.make("/file", b"x", 0o666, OWNER);
    let (owner, other) = (world.user(1000, 100), world.user(1001, 100));
    assert_eq!(world.path_call(other, nr::CHMOD, "/file", &[0o777]), Err(Errno::EPERM));
    let file = world.open(other, "/file", O_RDWR, 0).unwrap();
    assert_eq!(world.call(other, nr::FCHMOD, &[file, 0o777]), Err(Errno::EPERM));
    assert_eq!(world.path_call(owner, nr::CHMOD, "/file", &[0o600]), Ok(0));
    assert_eq!(world.path_call(world.root, nr::CHMOD, "/file", &[0o4711]), Ok(0));
    assert_eq!(world.stat(owner, "/file").unwrap().mode, S_IFREG | 0o4711);
}

#[test]
fn the_set_group_bit_is_only_for_members_of_the_group() {
    let world = World::new();
    world.make("/file", b"x", 0o644, (1000, 500));
    let owner = world.user(1000, 100);
    assert_eq!(world.path_call(owner, nr::CHMOD, "/file", &[0o2755]), Ok(0));
    assert_eq!(world.stat(owner, "/file").unwrap().mode, S_IFREG | 0o755);
    world.set_ids(owner, (1000, 100), (1000, 100), &[500]);
    assert_eq!(world.path_call(owner, nr::CHMOD, "/file", &[0o2755]), Ok(0));
    assert_eq!(world.stat(owner, "/file").unwrap().mode, S_IFREG | 0o2755);
}

#[test]
fn files_are_not_given_away() {
    let world = World::new();
    world.make("/file", b"x", 0o644, OWNER);
    let owner = world.user(1000, 100);
    const KEEP: u64 = u32::MAX as u64;
    assert_eq!(world.path_call(owner, nr::CHOWN, "/file", &[1001, KEEP]), Err(Errno::EPERM));
    assert_eq!(world.path_call(owner, nr::CHOWN, "/file", &[KEEP, 500]), Err(Errno::EPERM), "not a member");
    assert_eq!(world.path_call(world.user(1001, 500), nr::CHOWN, "/file", &[KEEP, 500]), Err(Errno::EPERM));
    world.set_ids(owner, (1000, 100), (1000, 100), &[500]);
    assert_eq!(world.path_call(owner, nr::CHOWN, "/file", &[KEEP, 500]), Ok(0));
    let stat = world.stat(owner, "/file").unwrap();
    assert_eq!((stat.uid, stat.gid), (1000, 500));
    assert_eq!(world.path_call(world.root, nr::CHOWN, "/file", &[7, 8]), Ok(0));
    let stat = world.stat(owner, "/file").unwrap();
    assert_eq!((stat.uid, stat.gid), (7, 8));
}

#[test]
fn a_write_takes_the_set_id_bits_away() {
    let world = World::new();
    world.make("/program", b"x", 0o6777, OWNER);
    let user = world.user(1001, 101);
    let file = world.open(user, "/program", O_WRONLY, 0).unwrap();
    assert_eq!(world.write(user, file, b"evil"), Ok(4));
    assert_eq!(world.stat(user, "/program").unwrap().mode, S_IFREG | 0o777);
}

#[test]
fn the_superuser_keeps_the_set_id_bits_when_writing() {
    let world = World::new();
    world.make("/program", b"x", 0o6777, OWNER);
    let file = world.open(world.root, "/program", O_WRONLY, 0).unwrap();
    assert_eq!(world.write(world.root, file, b"good"), Ok(4));
    assert_eq!(world.stat(world.root, "/program").unwrap().mode, S_IFREG | 0o6777);
}

#[test]
fn a_new_owner_loses_the_set_id_bits() {
    let world = World::new();
    world.make("/program", b"x", 0o6755, OWNER);
    assert_eq!(world.path_call(world.root, nr::CHOWN, "/program", &[1001, 101]), Ok(0));
    assert_eq!(world.stat(world.root, "/program").unwrap().mode, S_IFREG | 0o755);
    world.make("/text", b"x", 0o6644, OWNER);
    assert_eq!(world.path_call(world.user(1000, 100), nr::CHOWN, "/text", &[1000, 100]), Ok(0));
    assert_eq!(world.stat(world.root, "/text").unwrap().mode, S_IFREG | 0o2644, "also of what nobody may execute");
}

#[test]
fn access_asks_for_the_real_user() {
    let world = World::new();
    world.make("/file", b"x", 0o600, OWNER);
    let program = world.fork(world.root, 0);
    world.set_ids(program, (0, 0), (1001, 101), &[]);
    assert!(world.open(program, "/file", O_RDWR, 0).is_ok(), "the effective user opens");
    assert_eq!(world.path_call(program, nr::ACCESS, "/file", &[R_OK]), Err(Errno::EACCES));
    assert_eq!(world.path_call(program, nr::ACCESS, "/file", &[0]), Ok(0), "it exists");
    assert_eq!(world.path_call(program, nr::ACCESS, "/file", &[8]), Err(Errno::EINVAL));
    let path = world.path(program, 0, "/file");
    const AT_EACCESS: u64 = 0x200;
    assert_eq!(world.call(program, nr::FACCESSAT2, &[AT_FDCWD, path, R_OK | W_OK, AT_EACCESS]), Ok(0));
    assert_eq!(world.path_call(world.root, nr::ACCESS, "/file", &[X_OK]), Err(Errno::EACCES), "nobody may execute it");
}

#[test]
fn access_asks_for_the_real_group() {
    let world = World::new();
    world.make("/file", b"x", 0o040, (0, 70_000));
    let program = world.fork(world.root, 0);
    for (effective, real, may) in [(70_000, 70_001, [true, false]), (70_001, 70_000, [false, true])] {
        world.set_ids(program, (1000, effective), (1000, real), &[]);
        let opened = world.open(program, "/file", O_RDONLY, 0).is_ok();
        assert_eq!([opened, world.path_call(program, nr::ACCESS, "/file", &[R_OK]).is_ok()], may);
    }
}

#[test]
fn only_the_superuser_makes_devices_mounts_and_new_roots() {
    let world = World::new();
    world.make_directory("/tmp", 0o1777, (0, 0));
    let user = world.user(1000, 100);
    assert_eq!(world.path_call(user, nr::MKNOD, "/tmp/null", &[u64::from(S_IFCHR) | 0o666, 0x103]), Err(Errno::EPERM));
    assert_eq!(world.path_call(user, nr::MKNOD, "/tmp/fifo", &[u64::from(S_IFIFO) | 0o666, 0]), Ok(0));
    assert_eq!(world.path_call(user, nr::CHROOT, "/tmp", &[]), Err(Errno::EPERM));
    let (target, kind) = (world.path(user, 0, "/tmp"), world.path(user, 1, "tmpfs"));
    assert_eq!(world.call(user, nr::MOUNT, &[kind, target, kind, 0, 0]), Err(Errno::EPERM));
    assert_eq!(world.call(user, nr::UMOUNT2, &[target, 0]), Err(Errno::EPERM));
    let null = world.path_call(world.root, nr::MKNOD, "/tmp/null", &[u64::from(S_IFCHR) | 0o666, 0x103]);
    assert_eq!(null, Ok(0));
    assert_eq!(world.path_call(world.root, nr::CHMOD, "/tmp/null", &[0o666]), Ok(0));
    let null = world.open(user, "/tmp/null", O_RDWR, 0).unwrap();
    assert_eq!((world.write(user, null, b"gone"), world.read(user, null, 4).unwrap()), (Ok(4), Vec::new()));
}

#[test]
fn times_are_set_by_the_owner_or_to_now_by_who_may_write() {
    let world = World::new();
    world.make("/file", b"x", 0o666, OWNER);
    let (owner, writer) = (world.user(1000, 100), world.user(1001, 101));
    let path = |who| world.path(who, 0, "/file");
    let times = |who| world.words(who, &[11, 0, 22, 0]);
    assert_eq!(world.call(writer, nr::UTIMENSAT, &[AT_FDCWD, path(writer), times(writer), 0]), Err(Errno::EPERM));
    assert_eq!(world.call(writer, nr::UTIMENSAT, &[AT_FDCWD, path(writer), 0, 0]), Ok(0));
    assert_eq!(world.call(owner, nr::UTIMENSAT, &[AT_FDCWD, path(owner), times(owner), 0]), Ok(0));
    assert_eq!(world.stat(owner, "/file").unwrap().modified_s, 22);
    assert_eq!(world.path_call(owner, nr::CHMOD, "/file", &[0o444]), Ok(0));
    assert_eq!(world.call(writer, nr::UTIMENSAT, &[AT_FDCWD, path(writer), 0, 0]), Err(Errno::EACCES));
}

#[test]
fn noatime_is_for_the_owner() {
    let world = World::new();
    const O_NOATIME: u64 = 0o1000000;
    world.make("/file", b"x", 0o666, OWNER);
    assert_eq!(world.open(world.user(1001, 100), "/file", O_RDONLY | O_NOATIME, 0), Err(Errno::EPERM));
    assert!(world.open(world.user(1000, 100), "/file", O_RDONLY | O_NOATIME, 0).is_ok());
}

#[test]
fn a_directory_that_moves_must_be_writable_itself() {
    let world = World::new();
    world.make_directory("/from", 0o777, (0, 0));
    world.make_directory("/to", 0o777, (0, 0));
    world.make_directory("/from/dir", 0o755, (0, 0));
    let user = world.user(1000, 100);
    assert_eq!(world.paths_call(user, nr::RENAME, "/from/dir", "/to/dir"), Err(Errno::EACCES));
    assert_eq!(world.paths_call(user, nr::RENAME, "/from/dir", "/from/other"), Ok(0), "its parent stays");
}
