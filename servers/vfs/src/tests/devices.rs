//! Device nodes: the table in the arguments says who drives them, wherever the node lies. Disks as files.

use super::*;
use abi::Errno;
use abi::linux::nr;
use std::vec::Vec;

/// A node of this kind and number for everybody. It is on the disk: /dev is not mounted.
pub(super) fn node(world: &World, path: &str, kind: u32, number: u64) {
    assert_eq!(world.path_call(world.root, nr::MKNOD, path, &[u64::from(kind) | 0o666, number]), Ok(0));
}

#[test]
fn a_disk_is_read_through_its_node_from_the_driver_in_the_table() {
    let world = World::new();
    node(&world, "/disk", S_IFBLK, 0xfe00);
    let disk = world.open(world.root, "/disk", O_RDONLY, 0).expect("is driven");
    let expected: Vec<u8> = world.disk.lock().expect("the disk has not panicked").bytes[1000..3000].to_vec();
    assert_eq!(world.pread(world.root, disk, 2000, 1000), Ok(expected));
}

#[test]
fn a_number_that_no_service_declares_has_no_driver() {
    let world = World::new();
    for (path, kind, number) in [("/lp", S_IFCHR, 0x600), ("/other", S_IFCHR, 0xfe00), ("/part", S_IFBLK, 0xfe02)] {
        node(&world, path, kind, number);
        assert_eq!(world.open(world.root, path, O_RDONLY, 0), Err(Errno::ENXIO), "{path}");
    }
    world.make_directory("/mnt", 0o755, (0, 0));
    let (source, target) = (world.path(world.root, 0, "/part"), world.path(world.root, 1, "/mnt"));
    let kind = world.data(world.root, b"ext2\0");
    assert_eq!(world.call(world.root, nr::MOUNT, &[source, target, kind, 0, 0]), Err(Errno::ENXIO));
}

/// The disk, open for reading and writing.
fn disk(world: &World) -> u64 {
    node(world, "/disk", S_IFBLK, 0xfe00);
    world.open(world.root, "/disk", O_RDWR, 0).expect("is driven")
}

/// Size of the disk.
fn end_of_disk(world: &World) -> u64 {
    world.disk.lock().expect("the disk has not panicked").bytes.len() as u64
}

fn on_disk(world: &World, range: std::ops::Range<u64>) -> Vec<u8> {
    let medium = world.disk.lock().expect("the disk has not panicked");
    medium.bytes[range.start as usize..range.end as usize].to_vec()
}

fn fill_disk(world: &World, range: std::ops::Range<u64>) {
    let mut medium = world.disk.lock().expect("the disk has not panicked");
    range.for_each(|at| medium.bytes[at as usize] = (at % 251) as u8);
}

#[test]
fn reads_and_writes_of_a_disk_begin_and_end_anywhere() {
    let world = World::new();
    let (disk, end) = (disk(&world), end_of_disk(&world));
    let start = end - 800_000;
    fill_disk(&world, start..end);
    let lengths = [1, 100, 511, 512, 513, 1024, 65_535, 65_536, 65_537, 200_001];
    for (length, shift) in lengths.into_iter().flat_map(|length| [0, 1, 511].map(|shift| (length, shift))) {
        let (from, to) = (start.next_multiple_of(512) + shift, start.next_multiple_of(512) + shift + length);
        let expected: Vec<u8> = (from..to).map(|at| (at % 251) as u8).collect();
        assert!(
            world.pread(world.root, disk, length as usize, from as i64).unwrap() == expected,
            "{length} at {shift}"
        );
        let new: Vec<u8> = (0..length).map(|at| (at % 241) as u8).collect();
        assert_eq!(world.pwrite(world.root, disk, &new, from as i64), Ok(length));
        assert!(on_disk(&world, from..to) == new, "{length} at {shift}");
        let beside = [from - 1, to].map(|at| on_disk(&world, at..at + 1)[0]);
        assert_eq!(beside, [from - 1, to].map(|at| (at % 251) as u8), "what is beside stays");
        fill_disk(&world, start..end);
    }
    assert_eq!(world.position(world.root, disk), 0);
}

#[test]
fn a_disk_has_a_position_and_an_end() {
    let world = World::new();
    let (disk, end) = (disk(&world), end_of_disk(&world));
    fill_disk(&world, end - 2000..end);
    assert_eq!(world.seek(world.root, disk, -1000, SEEK_END), Ok(end - 1000));
    assert_eq!(world.read(world.root, disk, 600).unwrap(), on_disk(&world, end - 1000..end - 400));
    assert_eq!(world.read(world.root, disk, 600).unwrap(), on_disk(&world, end - 400..end));
    assert_eq!(world.position(world.root, disk), end);
    assert_eq!(world.read(world.root, disk, 600).unwrap(), b"");
    assert_eq!(world.write(world.root, disk, b"x"), Err(Errno::ENOSPC));
    assert_eq!(world.pwrite(world.root, disk, b"x", end as i64 + 1), Err(Errno::ENOSPC));
    assert_eq!(world.seek(world.root, disk, -2, SEEK_CUR), Ok(end - 2));
    assert_eq!(world.write(world.root, disk, b"abc"), Ok(2), "as much as there is room for");
    assert_eq!(world.position(world.root, disk), end);
    assert_eq!(on_disk(&world, end - 2..end), b"ab");
    let pieces = world.words(world.root, &[DATA, 3, DATA + 100, 700]);
    assert_eq!(world.call(world.root, nr::PREADV, &[disk, pieces, 2, end - 700]), Ok(700));
    assert_eq!(world.machine.read(world.root, DATA, 3), on_disk(&world, end - 700..end - 697));
    assert_eq!(world.machine.read(world.root, DATA + 100, 697), on_disk(&world, end - 697..end));
}

#[test]
fn a_disk_tells_its_size() {
    let world = World::new();
    let (disk, end) = (disk(&world), end_of_disk(&world));
    let told = |request| {
        let address = world.words(world.root, &[u64::MAX]);
        assert_eq!(world.call(world.root, nr::IOCTL, &[disk, request, address])?, 0);
        Ok(world.read_words(world.root, address, 1)[0])
    };
    assert_eq!(told(0x8008_1272), Ok(end), "in bytes");
    assert_eq!(told(0x1260), Ok(end / 512), "in sectors");
    assert_eq!(told(0x1268), Ok(0xffff_ffff_0000_0200), "a sector");
    assert_eq!(told(0x1261), Ok(u64::MAX), "flushing tells nothing");
    assert_eq!(told(0x1262), Err(Errno::ENOTTY));
    assert_eq!(world.call(world.root, nr::IOCTL, &[disk, 0x1260, 8]), Err(Errno::EFAULT));
    let address = world.words(world.root, &[0; 18]);
    assert_eq!(world.call(world.root, nr::FSTAT, &[disk, address]), Ok(0));
    let stat = world.read_words(world.root, address, 18);
    assert_eq!((stat[3] as u32, stat[5]), (S_IFBLK | 0o644, 0xfe00));
    let address = world.words(world.root, &[disk | u64::from(POLLIN | POLLOUT) << 32]);
    assert_eq!(world.call(world.root, nr::POLL, &[address, 1, 0]), Ok(1));
    assert_eq!(world.read_words(world.root, address, 1)[0] >> 48, u64::from(POLLIN | POLLOUT));
}

#[test]
fn errors_of_a_disk_end_a_transfer_where_it_has_come_to() {
    let world = World::new();
    let (disk, end) = (disk(&world), end_of_disk(&world));
    let start = end - 400_000;
    world.disk.lock().unwrap().broken_from = Some(start.next_multiple_of(512) + 65_536);
    let from = start.next_multiple_of(512);
    assert_eq!(world.seek(world.root, disk, from as i64, SEEK_SET), Ok(from));
    assert_eq!(world.call(world.root, nr::READ, &[disk, DATA, 100_000]), Ok(65_536));
    assert_eq!(world.position(world.root, disk), from + 65_536);
    assert_eq!(world.call(world.root, nr::READ, &[disk, DATA, 100_000]), Err(Errno::EIO));
    assert_eq!(world.seek(world.root, disk, from as i64, SEEK_SET), Ok(from));
    assert_eq!(world.call(world.root, nr::WRITE, &[disk, DATA, 100_000]), Ok(65_536));
    assert_eq!(world.position(world.root, disk), from + 65_536);
    assert_eq!(world.call(world.root, nr::WRITE, &[disk, DATA, 100_000]), Err(Errno::EIO));
    assert_eq!(world.call(world.root, nr::PREAD64, &[disk, 8, 10, from]), Err(Errno::EFAULT));
    assert_eq!(world.call(world.root, nr::PWRITE64, &[disk, 8, 10, from]), Err(Errno::EFAULT));
}

#[test]
fn sectors_that_are_written_as_a_whole_are_not_read_before() {
    let world = World::new();
    let (disk, end) = (disk(&world), end_of_disk(&world));
    let reads = |at: u64, bytes: usize| {
        let before = world.disk.lock().unwrap().reads;
        assert_eq!(world.pwrite(world.root, disk, &std::vec![0; bytes], at as i64), Ok(bytes as u64));
        world.disk.lock().unwrap().reads - before
    };
    let start = end - 200 * 512;
    assert_eq!([reads(start, 512), reads(start, 65_536), reads(start, 70_144)], [0; 3]);
    assert_eq!([reads(start + 1, 512), reads(start, 511), reads(start + 1, 1023)], [1; 3]);
}

#[test]
fn an_open_disk_outlives_vfs() {
    let mut world = World::new();
    let (disk, end) = (disk(&world), end_of_disk(&world));
    fill_disk(&world, end - 100..end);
    assert_eq!(world.seek(world.root, disk, -100, SEEK_END), Ok(end - 100));
    world.restart_vfs();
    assert_eq!(world.read(world.root, disk, 100).unwrap(), on_disk(&world, end - 100..end));
    assert_eq!(world.seek(world.root, disk, 0, SEEK_END), Ok(end));
}

#[test]
fn a_node_that_is_in_use_while_vfs_dies_is_still_a_device() {
    let mut world = World::new();
    node(&world, "/disk", S_IFBLK, 0xfe00);
    node(&world, "/null", S_IFCHR, 0x103);
    let paths = ["/disk", "/null"];
    let places = paths.map(|path| world.open(world.root, path, O_PATH, 0).unwrap());
    world.restart_vfs();
    assert!(paths.iter().all(|path| world.open(world.root, path, O_RDWR, 0).is_ok()));
    let modes = places.map(|place| world.fstat(world.root, place).unwrap().mode & S_IFMT);
    assert_eq!(modes, [S_IFBLK, S_IFCHR]);
}

#[test]
fn a_disk_that_its_driver_does_not_have_is_not_opened() {
    let world = World::new();
    node(&world, "/second", S_IFBLK, 0xfe01);
    assert_eq!(world.open(world.root, "/second", O_RDONLY, 0), Err(Errno::ENXIO));
}

#[test]
fn null_takes_everything_and_gives_nothing() {
    let mut world = World::new();
    node(&world, "/null", S_IFCHR, 0x103);
    let null = world.open(world.root, "/null", O_RDWR, 0).unwrap();
    for _ in 0..2 {
        assert_eq!(world.write(world.root, null, b"gone"), Ok(4));
        assert_eq!(world.pwrite(world.root, null, b"gone", 100), Ok(4));
        assert_eq!(world.read(world.root, null, 10).unwrap(), b"");
        assert_eq!(world.pread(world.root, null, 10, 5).unwrap(), b"");
        assert_eq!(world.seek(world.root, null, 100, SEEK_SET), Ok(0));
        let address = world.words(world.root, &[null | u64::from(POLLIN | POLLOUT) << 32]);
        assert_eq!(world.call(world.root, nr::POLL, &[address, 1, 0]), Ok(1));
        assert_eq!(world.read_words(world.root, address, 1)[0] >> 48, u64::from(POLLIN | POLLOUT));
        assert_eq!(world.call(world.root, nr::FSYNC, &[null]), Err(Errno::EINVAL));
        assert_eq!(world.call(world.root, nr::IOCTL, &[null, 0x5401, DATA]), Err(Errno::ENOTTY));
        world.restart_vfs();
    }
}

#[test]
fn zero_and_full_give_zeros_and_full_takes_nothing() {
    let mut world = World::new();
    node(&world, "/zero", S_IFCHR, 0x105);
    node(&world, "/full", S_IFCHR, 0x107);
    let [zero, full] = ["/zero", "/full"].map(|path| world.open(world.root, path, O_RDWR, 0).unwrap());
    for _ in 0..2 {
        assert_eq!(world.write(world.root, zero, b"gone"), Ok(4));
        assert_eq!(world.write(world.root, full, b"gone"), Err(Errno::ENOSPC));
        assert_eq!(world.write(world.root, full, b""), Err(Errno::ENOSPC));
        for device in [zero, full] {
            world.machine.write(world.root, DATA, &[7; 40]);
            assert_eq!(world.call(world.root, nr::PREAD64, &[device, DATA + 2, 30, 50]), Ok(30));
            let bytes = world.machine.read(world.root, DATA, 40);
            assert!(bytes.iter().enumerate().all(|(at, byte)| *byte == if (2..32).contains(&at) { 0 } else { 7 }));
            assert_eq!(world.seek(world.root, device, 100, SEEK_SET), Ok(0));
        }
        world.restart_vfs();
    }
}

#[test]
fn zeros_fill_pages_and_pieces_up_to_memory_that_is_not_there() {
    let world = World::new();
    node(&world, "/zero", S_IFCHR, 0x105);
    let zero = world.open(world.root, "/zero", O_RDONLY, 0).unwrap();
    world.machine.write(world.root, DATA, &[7; 0x3000]);
    assert_eq!(world.call(world.root, nr::READ, &[zero, DATA + 0xff0, 0x1020]), Ok(0x1020));
    let bytes = world.machine.read(world.root, DATA, 0x3000);
    assert!(bytes.iter().enumerate().all(|(at, byte)| *byte == if (0xff0..0x2010).contains(&at) { 0 } else { 7 }));
    let pieces = world.words(world.root, &[DATA, 3, DATA + 8, 0, DATA + 16, 5, 8, 100]);
    assert_eq!(world.call(world.root, nr::READV, &[zero, pieces, 4]), Ok(8));
    assert_eq!(world.call(world.root, nr::READV, &[zero, pieces + 48, 1]), Err(Errno::EFAULT));
    assert_eq!(world.read(world.root, zero, 0).unwrap(), b"");
}
