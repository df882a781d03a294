//! Device nodes: the table in the arguments says who drives them, wherever the node lies.

use super::*;
use abi::Errno;
use abi::linux::nr;
use std::vec::Vec;

/// A node of this kind and number for everybody. It is on the disk: /dev is not mounted.
fn node(world: &World, path: &str, kind: u32, number: u64) {
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
    for (path, kind, number) in [("/zero", S_IFCHR, 0x105), ("/other", S_IFCHR, 0xfe00), ("/part", S_IFBLK, 0xfe01)] {
        node(&world, path, kind, number);
        assert_eq!(world.open(world.root, path, O_RDONLY, 0), Err(Errno::ENXIO), "{path}");
    }
    world.make_directory("/mnt", 0o755, (0, 0));
    let (source, target) = (world.path(world.root, 0, "/part"), world.path(world.root, 1, "/mnt"));
    let kind = world.data(world.root, b"ext2\0");
    assert_eq!(world.call(world.root, nr::MOUNT, &[source, target, kind, 0, 0]), Err(Errno::ENXIO));
}
