//! Pseudo-terminals, by the driver of terminals: which device an open file is, and what a restarted vfs says is open.

use super::*;
use abi::chardev::{self, Request};
use abi::tty::{MINOR_MASTER, MINOR_SLAVE};
use abi::{Errno, linux::nr};

const TIOCGPTPEER: u64 = 0x5441;

/// Opens a device of this number as the driver says.
fn open(world: &World, path: &str, number: u64, opened: u64) -> u64 {
    if world.stat(world.root, path).is_err() {
        assert_eq!(world.path_call(world.root, nr::MKNOD, path, &[u64::from(S_IFCHR) | 0o666, number]), Ok(0));
    }
    world.terminal().opened = opened;
    world.open(world.root, path, O_RDWR, 0).unwrap()
}

fn master(world: &World, number: u64) -> u64 {
    open(world, "/ptmx", 0x502, (MINOR_MASTER + number) << 32)
}

fn asked(world: &World) -> Vec<Request> {
    std::mem::take(&mut world.terminal().asked)
}

#[test]
fn an_open_file_is_the_device_that_the_driver_says() {
    let world = World::new();
    let file = master(&world, 3);
    assert!(matches!(asked(&world)[..], [Request::Open(chardev::Open { minor: 2, node: 0, .. })]));
    world.enter(b"text");
    assert_eq!(world.read(world.root, file, 10).unwrap(), b"text");
    assert!(matches!(asked(&world)[..], [Request::Read(chardev::Read { minor: 0x1_0003, .. })]));
    world.close(world.root, file).unwrap();
    assert_eq!(asked(&world), [Request::Close(chardev::Close { minor: 0x1_0003 })]);
}

#[test]
fn slaves_are_devices_of_the_driver_of_terminals() {
    let world = World::new();
    open(&world, "/slave", 0x8807, 0);
    assert!(matches!(asked(&world)[..], [Request::Open(chardev::Open { minor: 0x2_0007, .. })]));
}

#[test]
fn a_large_write_to_a_pseudo_terminal_goes_in_pieces() {
    let world = World::new();
    let file = master(&world, 0);
    asked(&world);
    assert_eq!(world.call(world.root, nr::WRITE, &[file, DATA, 40_000]), Ok(40_000));
    let sizes = asked(&world).into_iter().map(|request| match request {
        Request::Write(write) => write.bytes,
        other => panic!("{other:?}"),
    });
    assert_eq!(sizes.collect::<Vec<_>>(), [16_384, 16_384, 7_232]);
}

#[test]
fn a_restarted_vfs_says_which_terminals_are_open() {
    let mut world = World::new();
    let first = master(&world, 0);
    master(&world, 5);
    open(&world, "/slave", 0x8805, 0);
    open(&world, "/slave", 0x8805, 0);
    let closed = open(&world, "/other", 0x8806, 0);
    world.close(world.root, closed).unwrap();
    world.restart_vfs();
    assert_eq!(world.call(world.root, nr::GETCWD, &[DATA, 100]), Ok(2));
    let uses = world.terminal().uses.clone();
    assert_eq!(uses, [(MINOR_MASTER, 1), (MINOR_MASTER + 5, 1), (MINOR_SLAVE + 5, 2)]);
    asked(&world);
    world.close(world.root, first).unwrap();
    assert_eq!(asked(&world), [Request::Close(chardev::Close { minor: MINOR_MASTER })]);
}

#[test]
fn only_a_master_has_a_peer() {
    let world = World::new();
    let slave = open(&world, "/slave", 0x8805, 0);
    assert_eq!(world.call(world.root, nr::IOCTL, &[slave, TIOCGPTPEER, 2]), Err(Errno::EIO));
    let console = open(&world, "/console", 0x405, 0);
    assert_eq!(world.call(world.root, nr::IOCTL, &[console, TIOCGPTPEER, 2]), Err(Errno::ENOTTY));
}
