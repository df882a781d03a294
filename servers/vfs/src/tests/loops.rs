//! Loop devices: what is behind them, what they refuse, a file system that is mounted from one, and deaths of vfs meanwhile.

use super::{world::formatted, *};
use abi::{Errno, linux::nr};

const SET_FD: u64 = 0x4c00;
const CLR_FD: u64 = 0x4c01;
const SET_STATUS: u64 = 0x4c04;
const GET_STATUS: u64 = 0x4c05;
const SET_CAPACITY: u64 = 0x4c07;
const CONFIGURE: u64 = 0x4c0a;
const CTL_ADD: u64 = 0x4c80;
const CTL_REMOVE: u64 = 0x4c81;
const CTL_GET_FREE: u64 = 0x4c82;
const GETSIZE64: u64 = 0x8008_1272;
const READ_ONLY: u64 = 1;
const AUTOCLEAR: u64 = 4;

/// A world with the nodes of two loop devices, /image of a file system, and the directory /mnt.
fn world() -> World {
    let mut world = World::new();
    world.start_loop_ext2();
    let nodes = [("/loop-control", S_IFCHR, 0xaed), ("/loop0", S_IFBLK, 0x700), ("/loop1", S_IFBLK, 0x701)];
    for (path, kind, number) in nodes {
        assert_eq!(world.path_call(world.root, nr::MKNOD, path, &[u64::from(kind) | 0o666, number]), Ok(0));
    }
    world.make("/image", &formatted(256 * 1024), 0o644, (0, 0));
    world.make_directory("/mnt", 0o755, (0, 0));
    world
}

fn ioctl(world: &World, file: u64, request: u64, argument: u64) -> Result<u64> {
    world.call(world.root, nr::IOCTL, &[file, request, argument])
}

/// A loop device with a file behind it: the descriptors of both.
fn bound(world: &World, device: &str, file: &str, flags: u64) -> (u64, u64) {
    let device = world.open(world.root, device, flags, 0).unwrap();
    let file = world.open(world.root, file, flags, 0).unwrap();
    assert_eq!(ioctl(world, device, SET_FD, file), Ok(0));
    (device, file)
}

/// Offset, limit and flags as a program sets them.
fn set_status(world: &World, device: u64, offset: u64, limit: u64, flags: u64) -> Result<u64> {
    let mut info = [0; 29];
    (info[3], info[4], info[6]) = (offset, limit, flags << 32);
    ioctl(world, device, SET_STATUS, world.words(world.root, &info))
}

/// Offset, limit and flags as a program sees them.
fn status(world: &World, device: u64) -> Result<(u64, u64, u64)> {
    let address = world.words(world.root, &[0; 29]);
    ioctl(world, device, GET_STATUS, address)?;
    let info = world.read_words(world.root, address, 29);
    Ok((info[3], info[4], info[6] >> 32))
}

fn size(world: &World, device: u64) -> u64 {
    let address = world.words(world.root, &[0]);
    assert_eq!(ioctl(world, device, GETSIZE64, address), Ok(0));
    world.read_words(world.root, address, 1)[0]
}

fn mount(world: &World, source: &str, flags: u64) -> Result<u64> {
    let (source, target) = (world.path(world.root, 0, source), world.path(world.root, 1, "/mnt"));
    let kind = world.data(world.root, b"ext2\0");
    world.call(world.root, nr::MOUNT, &[source, target, kind, flags, 0])
}

fn unmount(world: &World) -> Result<u64> {
    world.path_call(world.root, nr::UMOUNT2, "/mnt", &[0])
}

#[test]
fn a_device_shows_the_bytes_of_its_file_between_offset_and_limit() {
    let world = world();
    world.make("/file", &(0..5000).map(|at| (at % 251) as u8).collect::<std::vec::Vec<_>>(), 0o644, (0, 0));
    let (device, file) = bound(&world, "/loop0", "/file", O_RDWR);
    assert_eq!(size(&world, device), 4608);
    assert_eq!(world.pread(world.root, device, 3, 1000), Ok(vec![247, 248, 249]));
    assert_eq!(set_status(&world, device, 1000, 1024, 0), Ok(0));
    assert_eq!((size(&world, device), status(&world, device)), (1024, Ok((1000, 1024, 0))));
    assert_eq!(world.pread(world.root, device, 3, 0), Ok(vec![247, 248, 249]));
    assert_eq!(world.pread(world.root, device, 100, 1000).map(|data| data.len()), Ok(24));
    assert_eq!(world.pwrite(world.root, device, b"new", 10), Ok(3));
    assert_eq!(world.pread(world.root, file, 5, 1009), Ok(b"\x05new\x09".to_vec()));
    assert_eq!(world.pwrite(world.root, device, b"x", 1024), Err(Errno::ENOSPC));
}

#[test]
fn a_file_that_grows_is_seen_when_the_capacity_is_set() {
    let world = world();
    world.make("/file", &[1; 1024], 0o644, (0, 0));
    let (device, file) = bound(&world, "/loop0", "/file", O_RDWR);
    assert_eq!(world.pwrite(world.root, file, &[2; 512], 1024), Ok(512));
    assert_eq!(size(&world, device), 1024);
    assert_eq!(ioctl(&world, device, SET_CAPACITY, 0), Ok(0));
    assert_eq!(size(&world, device), 1536);
    assert_eq!(world.path_call(world.root, nr::TRUNCATE, "/file", &[512]), Ok(0));
    assert_eq!(world.pread(world.root, device, 2, 0), Ok(vec![1, 1]));
    assert_eq!(world.pread(world.root, device, 2, 1000), Err(Errno::EIO), "the file is shorter");
}

#[test]
fn requests_are_refused_as_linux_refuses_them() {
    let world = world();
    let device = world.open(world.root, "/loop0", O_RDWR, 0).unwrap();
    let directory = world.open(world.root, "/mnt", O_RDONLY, 0).unwrap();
    for request in [CLR_FD, SET_CAPACITY] {
        assert_eq!(ioctl(&world, device, request, 0), Err(Errno::ENXIO));
    }
    assert_eq!(set_status(&world, device, 0, 0, 0), Err(Errno::ENXIO));
    assert_eq!(status(&world, device), Err(Errno::ENXIO));
    assert_eq!(ioctl(&world, device, SET_FD, 99), Err(Errno::EBADF));
    assert_eq!(ioctl(&world, device, SET_FD, directory), Err(Errno::EINVAL));
    assert_eq!(ioctl(&world, device, SET_FD, device), Err(Errno::EINVAL));
    let file = world.open(world.root, "/image", O_RDWR, 0).unwrap();
    assert_eq!(ioctl(&world, device, SET_FD, file), Ok(0));
    assert_eq!(ioctl(&world, device, SET_FD, file), Err(Errno::EBUSY));
    assert_eq!(ioctl(&world, device, GET_STATUS, 0), Err(Errno::EINVAL));
    assert_eq!(ioctl(&world, device, GET_STATUS, 8), Err(Errno::EFAULT));
    assert_eq!(set_status(&world, device, u64::MAX, 0, 0), Err(Errno::EOVERFLOW));
    assert_eq!(ioctl(&world, device, 0x4c0f, 0), Err(Errno::EINVAL));
    let control = world.open(world.root, "/loop-control", O_RDWR, 0).unwrap();
    assert_eq!(ioctl(&world, control, CTL_GET_FREE, 0), Ok(1));
    assert_eq!(ioctl(&world, control, CTL_ADD, 0), Err(Errno::EEXIST));
    assert_eq!(ioctl(&world, control, CTL_REMOVE, 0), Err(Errno::EBUSY));
    assert_eq!(ioctl(&world, control, 0x4c83, 0), Err(Errno::ENOSYS));
}

#[test]
fn a_device_over_a_file_that_is_only_read_refuses_writes() {
    let world = world();
    let device = world.open(world.root, "/loop0", O_RDWR, 0).unwrap();
    let file = world.open(world.root, "/image", O_RDONLY, 0).unwrap();
    assert_eq!(ioctl(&world, device, SET_FD, file), Ok(0));
    assert_eq!(status(&world, device), Ok((0, 0, READ_ONLY)));
    assert_eq!(world.pwrite(world.root, device, b"x", 0), Err(Errno::EPERM));
    assert_eq!(mount(&world, "/loop0", 0), Err(Errno::EACCES));
    assert_eq!(mount(&world, "/loop0", 1), Ok(0));
    assert_eq!(world.open(world.root, "/mnt/new", O_CREAT | O_WRONLY, 0o644), Err(Errno::EROFS));
    assert_eq!(unmount(&world), Ok(0));
}

#[test]
fn configure_sets_everything_at_once() {
    let world = world();
    let device = world.open(world.root, "/loop0", O_RDWR, 0).unwrap();
    let file = world.open(world.root, "/image", O_RDWR, 0).unwrap();
    let mut config = [0; 38];
    (config[0], config[4], config[7]) = (file | 1024 << 32, 4096, (AUTOCLEAR | 16) << 32);
    let configure = |config: &[u64]| ioctl(&world, device, CONFIGURE, world.words(world.root, config));
    let mut bad = config;
    bad[0] = file | 1000 << 32;
    assert_eq!(configure(&bad), Err(Errno::EINVAL));
    bad = config;
    bad[7] = 2 << 32;
    assert_eq!(configure(&bad), Err(Errno::EINVAL));
    assert_eq!(configure(&config), Ok(0));
    assert_eq!(status(&world, device), Ok((4096, 0, AUTOCLEAR)));
    let image = world.stat(world.root, "/image").unwrap();
    assert_eq!(size(&world, device), image.size - 4096);
}

#[test]
fn a_device_is_cleared_when_the_last_user_goes() {
    let world = world();
    let (device, file) = bound(&world, "/loop0", "/image", O_RDWR);
    let other = world.open(world.root, "/loop0", O_RDONLY, 0).unwrap();
    world.close(world.root, file).unwrap();
    assert_eq!(ioctl(&world, device, CLR_FD, 0), Ok(0));
    assert_eq!(status(&world, other), Ok((0, 0, AUTOCLEAR)), "another one has it open");
    world.close(world.root, device).unwrap();
    assert_eq!(status(&world, other), Ok((0, 0, AUTOCLEAR)));
    world.close(world.root, other).unwrap();
    let again = world.open(world.root, "/loop0", O_RDWR, 0).unwrap();
    assert_eq!(status(&world, again), Err(Errno::ENXIO));
    let (device, _) = bound(&world, "/loop1", "/image", O_RDWR);
    assert_eq!(ioctl(&world, device, CLR_FD, 0), Ok(0));
    assert_eq!((status(&world, device), size(&world, device)), (Err(Errno::ENXIO), 0), "at once");
}

#[test]
fn the_file_is_in_use_as_long_as_it_is_behind_a_device() {
    let mut world = World::new();
    world.start_tmpfs();
    world.make_directory("/tmp", 0o755, (0, 0));
    let (kind, target) = (world.data(world.root, b"tmpfs\0"), world.path(world.root, 1, "/tmp"));
    assert_eq!(world.call(world.root, nr::MOUNT, &[kind, target, kind, 0, 0]), Ok(0));
    assert_eq!(world.path_call(world.root, nr::MKNOD, "/loop0", &[u64::from(S_IFBLK) | 0o666, 0x700]), Ok(0));
    world.make("/tmp/file", &[7; 1024], 0o755, (0, 0));
    let (device, file) = bound(&world, "/loop0", "/tmp/file", O_RDWR);
    world.close(world.root, file).unwrap();
    assert_eq!(world.path_call(world.root, nr::UMOUNT2, "/tmp", &[0]), Err(Errno::EBUSY));
    assert_eq!(world.exec(world.root, "/tmp/file").0, Err(Errno::ETXTBSY));
    assert_eq!(world.path_call(world.root, nr::UNLINK, "/tmp/file", &[]), Ok(0));
    assert_eq!(world.pread(world.root, device, 1, 1023), Ok(vec![7]));
    assert_eq!(ioctl(&world, device, CLR_FD, 0), Ok(0));
    world.close(world.root, device).unwrap();
    assert_eq!(world.path_call(world.root, nr::UMOUNT2, "/tmp", &[0]), Ok(0));
}

#[test]
fn a_file_system_is_mounted_from_a_file_on_another() {
    let world = world();
    let (device, file) = bound(&world, "/loop0", "/image", O_RDWR);
    world.close(world.root, file).unwrap();
    assert_eq!(mount(&world, "/loop1", 0), Err(Errno::EINVAL), "nothing is behind it");
    assert_eq!(mount(&world, "/loop0", 0), Ok(0));
    assert_eq!(set_status(&world, device, 0, 0, AUTOCLEAR), Ok(0));
    world.close(world.root, device).unwrap();
    world.make_directory("/mnt/dir", 0o755, (0, 0));
    world.make("/mnt/dir/file", &[9; 30_000], 0o644, (0, 0));
    assert_eq!(world.content("/mnt/dir/file"), [9; 30_000]);
    let inner = world.open(world.root, "/mnt/dir/file", O_RDWR, 0).unwrap();
    let other = world.open(world.root, "/loop1", O_RDWR, 0).unwrap();
    assert_eq!(ioctl(&world, other, SET_FD, inner), Err(Errno::EINVAL), "no loop device over a loop device");
    assert_eq!(unmount(&world), Err(Errno::EBUSY));
    assert_eq!(world.call(world.root, nr::FSYNC, &[inner]), Ok(0));
    assert!(world.is_on_disk(&[9; 4096]), "a sync inside reaches the disk below");
    world.close(world.root, inner).unwrap();
    assert_eq!(unmount(&world), Ok(0));
    let (device, _) = bound(&world, "/loop0", "/image", O_RDONLY);
    assert_eq!(mount(&world, "/loop0", 1), Ok(0), "the mount was the last user");
    assert_eq!(world.content("/mnt/dir/file"), [9; 30_000]);
    assert_eq!(ioctl(&world, device, CLR_FD, 0), Ok(0));
    assert_eq!(status(&world, device), Ok((0, 0, READ_ONLY | AUTOCLEAR)), "the mount goes on");
    assert_eq!(world.content("/mnt/dir/file"), [9; 30_000]);
}

#[test]
fn devices_and_what_is_mounted_from_them_outlive_vfs() {
    let mut world = world();
    let (device, file) = bound(&world, "/loop0", "/image", O_RDWR);
    world.close(world.root, file).unwrap();
    assert_eq!(set_status(&world, device, 0, 1 << 30, AUTOCLEAR), Ok(0));
    world.restart_vfs();
    assert_eq!(status(&world, device), Ok((0, 1 << 30, AUTOCLEAR)));
    assert_eq!(mount(&world, "/loop0", 0), Ok(0));
    world.close(world.root, device).unwrap();
    world.make("/mnt/file", b"inside", 0o644, (0, 0));
    world.restart_vfs();
    assert_eq!(world.content("/mnt/file"), b"inside");
    world.make("/mnt/other", &[3; 20_000], 0o644, (0, 0));
    world.restart_loop_ext2();
    assert_eq!(world.content("/mnt/other"), [3; 20_000]);
    world.restart_vfs();
    assert_eq!(unmount(&world), Ok(0));
    let device = world.open(world.root, "/loop0", O_RDWR, 0).unwrap();
    assert_eq!(
        status(&world, device),
        Err(Errno::ENXIO),
        "the mount was the last user, although it is not the one that it was"
    );
}

#[test]
fn vfs_dies_while_a_file_system_waits_for_the_disk_below_its_file() {
    let mut world = world();
    let (_, file) = bound(&world, "/loop0", "/image", O_RDWR);
    world.close(world.root, file).unwrap();
    assert_eq!(mount(&world, "/loop0", 0), Ok(0));
    let content: std::vec::Vec<u8> = (0..60_000_u32).map(|at| (at / 7) as u8).collect();
    world.make("/mnt/file", &content, 0o644, (0, 0));
    let inner = world.open(world.root, "/mnt/file", O_RDWR, 0).unwrap();
    world.hold_disk();
    assert_eq!(world.begin_call(world.root, nr::FSYNC, &[inner]), None, "it waits for the disk");
    world.restart_vfs();
    world.machine.forget_request(world.root);
    let result = world.repeat_call(world.root, nr::FSYNC, &[inner]);
    world.release_disk();
    world.machine.run();
    assert_eq!(result.or_else(|| world.result(world.root)), Some(Ok(0)));
    assert!(world.is_on_disk(&content[..4096]));
    assert_eq!(world.content("/mnt/file"), content);
}
