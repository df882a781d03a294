//! Mounts: what can be mounted where, options and flags, and what may not change below.

use super::{exec::program, *};
use abi::{Errno, GrantId, linux::nr, vfs};
use std::string::String;

const MS_RDONLY: u64 = 1;
const MS_NOSUID: u64 = 2;
const MS_NODEV: u64 = 4;
const MS_NOEXEC: u64 = 8;
const MS_REMOUNT: u64 = 32;
const TMPFS_MAGIC: u64 = 0x0102_1994;

/// A world with a file system in memory on /tmp.
fn world(flags: u64) -> World {
    let mut world = World::new();
    world.start_tmpfs();
    world.make_directory("/tmp", 0o755, (0, 0));
    assert_eq!(mount(&world, "tmpfs", "/tmp", flags, ""), Ok(0));
    world
}

/// mount(2) without a source.
fn mount(world: &World, kind: &str, target: &str, flags: u64, options: &str) -> Result<u64> {
    let (kind, target) = (world.path(world.root, 0, kind), world.path(world.root, 1, target));
    let options = world.data(world.root, &[options.as_bytes(), &[0]].concat());
    world.call(world.root, nr::MOUNT, &[0, target, kind, flags, options])
}

fn remount(world: &World, target: &str, flags: u64) -> Result<u64> {
    mount(world, "", target, MS_REMOUNT | flags, "")
}

fn unmount(world: &World, target: &str) -> Result<u64> {
    world.path_call(world.root, nr::UMOUNT2, target, &[0])
}

fn mounts(world: &World) -> String {
    let bytes = world
        .call_as_procfs(
            vfs::Text {
                what: vfs::TEXT_MOUNTS,
                grant: GrantId(0),
                bytes: 4000,
                offset: 0,
                process: abi::Endpoint::NONE,
            }
            .message(),
        )
        .unwrap();
    String::from_utf8(world.machine.read(PROCFS, 0, bytes as usize)).expect("is text")
}

#[test]
fn a_read_only_file_system_is_not_changed() {
    let world = World::new();
    world.make("/file", b"text", 0o666, (0, 0));
    world.make("/program", b"x", 0o755, (0, 0));
    world.make_directory("/dir", 0o777, (0, 0));
    let writes = world.open(world.root, "/file", O_WRONLY, 0).unwrap();
    world.close(world.root, writes).unwrap();
    assert_eq!(world.path_call(world.root, nr::MKNOD, "/fifo", &[u64::from(S_IFIFO) | 0o666, 0]), Ok(0));
    assert_eq!(remount(&world, "/", MS_RDONLY), Ok(0));
    let user = world.user(1000, 100);
    for who in [world.root, user] {
        let refused = [
            world.open(who, "/file", O_WRONLY, 0),
            world.open(who, "/file", O_RDONLY | O_TRUNC, 0),
            world.open(who, "/dir/new", O_CREAT | O_WRONLY, 0o644),
            world.path_call(who, nr::TRUNCATE, "/file", &[0]),
            world.path_call(who, nr::CHMOD, "/file", &[0]),
            world.path_call(who, nr::CHOWN, "/file", &[5, 5]),
            world.path_call(who, nr::UTIME, "/file", &[0]),
            world.path_call(who, nr::MKDIR, "/dir/new", &[0o755]),
            world.path_call(who, nr::MKNOD, "/dir/new", &[u64::from(S_IFIFO) | 0o644, 0]),
            world.path_call(who, nr::UNLINK, "/file", &[]),
            world.path_call(who, nr::RMDIR, "/dir", &[]),
            world.paths_call(who, nr::RENAME, "/file", "/dir/new"),
            world.paths_call(who, nr::LINK, "/file", "/dir/new"),
            world.paths_call(who, nr::SYMLINK, "x", "/dir/new"),
            world.path_call(who, nr::ACCESS, "/file", &[2]),
            world.path_call(who, nr::ACCESS, "/dir", &[2]),
        ];
        assert!(refused.iter().all(|result| *result == Err(Errno::EROFS)), "{refused:?}");
        assert_eq!(world.path_call(who, nr::ACCESS, "/file", &[4]), Ok(0));
        assert_eq!(
            world.path_call(who, nr::ACCESS, "/fifo", &[2]),
            if who == user { Err(Errno::EACCES) } else { Ok(0) }
        );
    }
    assert_eq!(world.content("/file"), b"text");
    assert!(world.open(world.root, "/fifo", O_RDWR, 0).is_ok(), "what is written to a fifo is not in the file system");
    assert_eq!(world.open(user, "/program", O_WRONLY, 0), Err(Errno::EACCES), "the right comes first");
    assert_eq!(mounts(&world), "/dev/vda / ext2 ro 0 0\n");
    assert_eq!(remount(&world, "/", 0), Ok(0));
    assert_eq!(world.path_call(world.root, nr::UNLINK, "/file", &[]), Ok(0));
}

#[test]
fn flags_of_a_mount_keep_programs_devices_and_owners_away() {
    let world = world(MS_NODEV | MS_NOSUID | MS_NOEXEC);
    assert_eq!(world.path_call(world.root, nr::MKNOD, "/tmp/null", &[u64::from(S_IFCHR) | 0o666, 0x103]), Ok(0));
    assert_eq!(world.path_call(world.root, nr::MKNOD, "/tmp/disk", &[u64::from(S_IFBLK) | 0o666, 0xfe00]), Ok(0));
    world.make("/tmp/script", b"#!/shell\n", 0o6755, (7, 8));
    for path in ["/tmp/null", "/tmp/disk"] {
        assert_eq!(world.open(world.root, path, O_RDONLY, 0), Err(Errno::EACCES));
    }
    assert_eq!(world.exec(world.root, "/tmp/script").0, Err(Errno::EACCES));
    assert_eq!(mounts(&world).lines().last(), Some("tmpfs /tmp tmpfs rw,nosuid,nodev,noexec 0 0"));
    assert_eq!(remount(&world, "/tmp", MS_NOSUID | 1024), Ok(0));
    assert_eq!(mounts(&world).lines().last(), Some("tmpfs /tmp tmpfs rw,nosuid 0 0"));
    assert!(world.open(world.root, "/tmp/null", O_RDONLY, 0).is_ok());
    assert_eq!(world.exec(world.root, "/tmp/script").0, Err(Errno::ENOENT), "there is no shell");
}

#[test]
fn a_mount_without_set_ids_reports_none_to_exec() {
    let world = world(MS_NOSUID);
    world.make("/tmp/program", &program(), 0o6755, (7, 8));
    let (image, [_, flags, ids]) = world.exec(world.root, "/tmp/program");
    assert!(image.is_ok());
    assert_eq!((flags, ids), (0, 0));
    assert_eq!(remount(&world, "/tmp", 0), Ok(0));
    let (_, [_, flags, ids]) = world.exec(world.root, "/tmp/program");
    assert_eq!((flags, ids), (vfs::EXEC_SETUID | vfs::EXEC_SETGID, 7 | 8 << 32));
}

#[test]
fn only_what_makes_sense_is_mounted() {
    let world = world(0);
    world.make("/file", b"", 0o644, (0, 0));
    world.make_directory("/mnt", 0o755, (0, 0));
    assert_eq!(mount(&world, "tmpfs", "/none", 0, ""), Err(Errno::ENOENT));
    assert_eq!(mount(&world, "tmpfs", "/file", 0, ""), Err(Errno::ENOTDIR));
    for kind in ["minix", "", "tmp", "ext4"] {
        assert_eq!(mount(&world, kind, "/mnt", 0, ""), Err(Errno::ENODEV), "{kind:?}");
    }
    for kind in ["devtmpfs", "devfs"] {
        assert_eq!(mount(&world, kind, "/mnt", 0, ""), Err(Errno::ENXIO), "{kind} does not run");
    }
    for bit in [12, 13, 17, 18, 19, 20] {
        assert_eq!(mount(&world, "tmpfs", "/mnt", 1 << bit, ""), Err(Errno::EINVAL), "flag {bit}");
    }
    assert_eq!(remount(&world, "/mnt", 0), Err(Errno::EINVAL), "nothing is mounted there");
    assert_eq!(remount(&world, "/file", 0), Err(Errno::EINVAL));
    let ext2 = |source: &str| {
        let (source, target) = (world.path(world.root, 0, source), world.path(world.root, 1, "/mnt"));
        let kind = world.data(world.root, b"ext2\0");
        world.call(world.root, nr::MOUNT, &[source, target, kind, 0, 0])
    };
    assert_eq!(world.path_call(world.root, nr::MKNOD, "/vda", &[u64::from(S_IFBLK) | 0o666, 0xfe00]), Ok(0));
    assert_eq!(world.path_call(world.root, nr::MKNOD, "/null", &[u64::from(S_IFCHR) | 0o666, 0xfe00]), Ok(0));
    assert_eq!(ext2("/vda"), Err(Errno::EBUSY));
    assert_eq!((ext2("/file"), ext2("/null")), (Err(Errno::ENOTBLK), Err(Errno::ENOTBLK)));
    assert_eq!(ext2("/none"), Err(Errno::ENOENT));
    assert_eq!(mounts(&world).lines().count(), 2);
}

#[test]
fn options_of_a_file_system_in_memory_own_its_root() {
    let world = world(0);
    world.make_directory("/mnt", 0o755, (0, 0));
    for options in ["speed=9", "mode=9", "uid=x", "size=1x"] {
        assert_eq!(mount(&world, "tmpfs", "/mnt", 0, options), Err(Errno::EINVAL), "{options}");
    }
    assert_eq!(mount(&world, "tmpfs", "/mnt", 0, "size=64k,mode=1730,uid=5,gid=6"), Ok(0));
    let root = world.stat(world.root, "/mnt").unwrap();
    assert_eq!((root.mode, root.uid, root.gid), (S_IFDIR | 0o1730, 5, 6));
    let file = world.open(world.root, "/mnt/file", O_CREAT | O_WRONLY, 0o644).unwrap();
    let mut written = 0;
    while let Ok(bytes) = world.call(world.root, nr::WRITE, &[file, DATA, 4096]) {
        written += bytes;
    }
    assert!((30_000..=70_000).contains(&written), "{written} bytes");
    assert_eq!(world.path_call(world.root, nr::STATFS, "/mnt", &[DATA]), Ok(0));
    let statfs = world.read_words(world.root, DATA, 3);
    assert_eq!(statfs[0], TMPFS_MAGIC);
    assert!(statfs[1] * statfs[2] <= 80_000);
    let devices = ["/mnt", "/tmp", "/"].map(|path| {
        assert_eq!(world.path_call(world.root, nr::STAT, path, &[DATA]), Ok(0));
        world.read_words(world.root, DATA, 1)[0]
    });
    assert!(devices[0] != devices[1] && devices[1] != devices[2] && devices[0] != devices[2]);
}

#[test]
fn what_is_in_use_is_not_unmounted() {
    let world = world(0);
    world.make_directory("/tmp/dir", 0o755, (0, 0));
    let child = world.fork(world.root, 0);
    assert_eq!(unmount(&world, "/"), Err(Errno::EBUSY));
    assert_eq!(unmount(&world, "/tmp/dir"), Err(Errno::EINVAL));
    for path in ["/tmp", "/tmp/dir"] {
        assert_eq!(world.change_directory(child, path), Ok(0));
        assert_eq!(unmount(&world, "/tmp"), Err(Errno::EBUSY), "{path} is somebody's directory");
    }
    world.exit(child);
    assert_eq!(mount(&world, "tmpfs", "/tmp/dir", 0, ""), Ok(0));
    assert_eq!(unmount(&world, "/tmp"), Err(Errno::EBUSY), "another one is mounted on it");
    assert_eq!(unmount(&world, "/tmp/dir"), Ok(0));
    assert_eq!(unmount(&world, "/tmp"), Ok(0));
    assert_eq!(mounts(&world), "/dev/vda / ext2 rw 0 0\n");
    assert_eq!(unmount(&world, "/none"), Err(Errno::ENOENT));
    assert_eq!(mount(&world, "tmpfs", "/tmp", 0, ""), Ok(0), "once more");
    assert!(world.names(world.root, "/tmp").unwrap().iter().all(|name| name != "dir"), "what was there is lost");
}

#[test]
fn paths_lead_into_a_mount_and_out_of_it() {
    let world = world(0);
    world.make("/outside", b"outside", 0o644, (0, 0));
    world.make_directory("/tmp/dir", 0o755, (0, 0));
    world.make("/tmp/dir/file", b"inside", 0o644, (0, 0));
    assert_eq!(world.change_directory(world.root, "/tmp/dir"), Ok(0));
    assert_eq!(world.content("../../outside"), b"outside");
    assert_eq!(world.content("../../tmp/./dir/file"), b"inside");
    let bytes = world.call(world.root, nr::GETCWD, &[DATA, 100]).unwrap() as usize;
    assert_eq!(world.machine.read(world.root, DATA, bytes), b"/tmp/dir\0");
    assert_eq!(world.change_directory(world.root, ".."), Ok(0));
    assert_eq!(world.change_directory(world.root, ".."), Ok(0));
    let bytes = world.call(world.root, nr::GETCWD, &[DATA, 100]).unwrap() as usize;
    assert_eq!(world.machine.read(world.root, DATA, bytes), b"/\0");
    assert_eq!(mount(&world, "tmpfs", "/tmp", 0, ""), Ok(0), "one over the other");
    assert!(world.stat(world.root, "/tmp/dir").is_err());
    assert_eq!(world.content("/tmp/../outside"), b"outside");
    assert_eq!(unmount(&world, "/tmp"), Ok(0));
    assert_eq!(world.content("/tmp/dir/file"), b"inside");
}

#[test]
fn a_mount_point_keeps_its_name() {
    let world = world(0);
    world.make_directory("/dir", 0o755, (0, 0));
    let rename = |from, to| world.paths_call(world.root, nr::RENAME, from, to);
    assert_eq!(world.path_call(world.root, nr::RMDIR, "/tmp", &[]), Err(Errno::EBUSY));
    assert!(matches!(rename("/tmp", "/other"), Err(Errno::EBUSY | Errno::EXDEV)));
    assert!(matches!(rename("/dir", "/tmp"), Err(Errno::EBUSY | Errno::EXDEV)));
    let exchange = |from, to| {
        let (from, to) = (world.path(world.root, 0, from), world.path(world.root, 1, to));
        world.call(world.root, nr::RENAMEAT2, &[AT_FDCWD, from, AT_FDCWD, to, 2])
    };
    for (from, to) in [("/tmp", "/dir"), ("/dir", "/tmp")] {
        assert!(matches!(exchange(from, to), Err(Errno::EBUSY | Errno::EXDEV)));
    }
    world.make("/tmp/inside", b"", 0o644, (0, 0));
    assert_eq!(
        (exchange("/tmp/inside", "/dir"), exchange("/dir", "/tmp/inside")),
        (Err(Errno::EXDEV), Err(Errno::EXDEV))
    );
    assert_eq!(world.names(world.root, "/").unwrap().iter().filter(|name| *name == "tmp").count(), 1);
}

#[test]
fn mounts_outlive_vfs() {
    let mut world = world(MS_NODEV);
    world.make("/tmp/file", b"in memory", 0o644, (0, 0));
    assert_eq!(remount(&world, "/tmp", MS_RDONLY | MS_NOEXEC), Ok(0));
    let before = mounts(&world);
    assert!(before.ends_with("tmpfs /tmp tmpfs ro,noexec 0 0\n"), "{before}");
    world.restart_vfs();
    assert_eq!(mounts(&world), before);
    assert_eq!(world.content("/tmp/file"), b"in memory");
    assert_eq!(world.path_call(world.root, nr::UNLINK, "/tmp/file", &[]), Err(Errno::EROFS));
    assert_eq!(unmount(&world, "/tmp"), Ok(0));
    world.restart_vfs();
    assert_eq!(mounts(&world), "/dev/vda / ext2 rw 0 0\n");
}

#[test]
fn sync_is_for_the_disk_alone() {
    let world = world(0);
    let file = world.open(world.root, "/tmp/file", O_CREAT | O_RDWR, 0o644).unwrap();
    world.write(world.root, file, b"in memory").unwrap();
    let flushes = || world.disk.lock().expect("the disk has not panicked").flushes;
    let before = flushes();
    assert_eq!(world.call(world.root, nr::FSYNC, &[file]), Ok(0));
    assert_eq!(flushes(), before);
    world.make("/file", b"for the disk by sync", 0o644, (0, 0));
    assert!(!world.is_on_disk(b"for the disk by sync"));
    assert_eq!(world.call(world.root, nr::SYNC, &[]), Ok(0));
    assert!(world.is_on_disk(b"for the disk by sync"));
    assert!(flushes() > before);
    let (pipe, _) = world.pipe(world.root, 0);
    for call in [nr::FSYNC, nr::FDATASYNC, nr::SYNCFS] {
        assert_eq!(world.call(world.root, call, &[pipe]), Err(Errno::EINVAL));
        assert_eq!(world.call(world.root, call, &[99]), Err(Errno::EBADF));
    }
}

#[test]
fn every_kind_of_change_comes_to_the_disk_by_itself() {
    let world = World::new();
    world.make("/file", b"x", 0o644, (0, 0));
    world.make_directory("/dir", 0o755, (0, 0));
    let settle = || world.machine.advance_ns(60_000_000_000);
    let flushes = || world.disk.lock().expect("the disk has not panicked").flushes;
    let changes: [&dyn Fn() -> Result<u64>; 11] = [
        &|| world.path_call(world.root, nr::MKDIR, "/new", &[0o755]),
        &|| world.paths_call(world.root, nr::SYMLINK, "x", "/link"),
        &|| world.paths_call(world.root, nr::LINK, "/file", "/other"),
        &|| world.paths_call(world.root, nr::RENAME, "/other", "/dir/other"),
        &|| world.path_call(world.root, nr::UNLINK, "/link", &[]),
        &|| world.path_call(world.root, nr::CHMOD, "/file", &[0o600]),
        &|| world.path_call(world.root, nr::CHOWN, "/file", &[1, 1]),
        &|| world.path_call(world.root, nr::TRUNCATE, "/file", &[9000]),
        &|| world.path_call(world.root, nr::UTIME, "/file", &[0]),
        &|| world.open(world.root, "/file", O_RDWR, 0),
        &|| world.call(world.root, nr::FALLOCATE, &[0, 0, 0, 9000]),
    ];
    for (number, change) in changes.iter().enumerate() {
        settle();
        let before = flushes();
        settle();
        assert_eq!(flushes(), before, "nothing is left to be written");
        change().unwrap();
        settle();
        assert_eq!(flushes() > before, number != 9, "change {number}");
    }
}

#[test]
fn a_shutdown_concerns_the_disk_alone() {
    let world = world(0);
    assert_eq!(world.call_as_pm(vfs::SyncAll { unmount: true }.message()), Ok(0));
    assert_eq!(mounts(&world), "/dev/vda / ext2 ro 0 0\ntmpfs /tmp tmpfs rw 0 0\n");
}

#[test]
fn a_memory_file_has_no_name() {
    let world = world(0);
    let create = |name: &str, flags| world.path_call(world.root, nr::MEMFD_CREATE, name, &[flags]);
    let names = world.names(world.root, "/tmp").unwrap();
    let file = create("text", 0).unwrap();
    let marked = create(&"n".repeat(249), 1 | 2).unwrap();
    assert_eq!(world.names(world.root, "/tmp").unwrap(), names);
    let flags = |file, command| world.call(world.root, nr::FCNTL, &[file, command]);
    assert_eq!((flags(file, F_GETFD), flags(marked, F_GETFD)), (Ok(0), Ok(1)));
    assert_eq!(flags(file, F_GETFL), Ok(O_RDWR | 0o100000));
    let stat = world.fstat(world.root, file).unwrap();
    assert_eq!((stat.mode, stat.links, stat.size, stat.uid), (S_IFREG | 0o777, 0, 0, 0));
    assert_ne!(stat.inode, world.fstat(world.root, marked).unwrap().inode);
    assert_eq!(world.write(world.root, file, b"content"), Ok(7));
    assert_eq!(world.pread(world.root, file, 10, 3).unwrap(), b"tent");
    let request = vfs::DescriptorPath { process: world.root, what: file as i64, grant: GrantId(0), bytes: 100 };
    let bytes = world.call_as_procfs(request.message()).unwrap();
    assert_eq!(world.machine.read(PROCFS, 0, bytes as usize), b"/memfd:text (deleted)");
    assert_eq!(create("text", 4), Err(Errno::EINVAL));
    assert_eq!(create(&"n".repeat(250), 0), Err(Errno::EINVAL));
    assert_eq!(world.call(world.root, nr::MEMFD_CREATE, &[8, 0]), Err(Errno::EFAULT));
    let user = world.user(1000, 100);
    let theirs = world.path_call(user, nr::MEMFD_CREATE, "text", &[0]).unwrap();
    let stat = world.fstat(user, theirs).unwrap();
    assert_eq!((stat.uid, stat.gid), (1000, 100));
}

#[test]
fn a_memory_file_needs_a_file_system_in_memory_that_may_be_written() {
    let world = world(0);
    assert_eq!(remount(&world, "/tmp", MS_RDONLY), Ok(0));
    assert_eq!(world.path_call(world.root, nr::MEMFD_CREATE, "x", &[0]), Err(Errno::ENOMEM));
    assert_eq!(remount(&world, "/tmp", 0), Ok(0));
    assert!(world.path_call(world.root, nr::MEMFD_CREATE, "x", &[0]).is_ok());
    assert_eq!(unmount(&world, "/tmp"), Err(Errno::EBUSY));
    let none = World::new();
    assert_eq!(none.path_call(none.root, nr::MEMFD_CREATE, "x", &[0]), Err(Errno::ENOMEM));
}

#[test]
fn a_fixed_file_system_is_asked_once_what_a_name_means() {
    const O_PATH_NOFOLLOW: u64 = 0o10400000;
    for (fixed, expected) in [(0, Err(Errno::ENOENT)), (abi::fs::MOUNTED_FIXED, Ok(()))] {
        let mut world = World::new();
        let links = world.start_proc_with(abi::fs::MOUNTED_VOLATILE | fixed);
        links.lock().unwrap().push(("name".into(), "/x".into()));
        let find = |world: &World| world.open(world.root, "/proc/name", O_PATH_NOFOLLOW, 0).map(drop);
        assert_eq!(find(&world), Ok(()));
        links.lock().unwrap().clear();
        assert_eq!(find(&world), expected);
        world.restart_vfs();
        assert_eq!(find(&world), Err(Errno::ENOENT), "nothing is known any more");
    }
}
