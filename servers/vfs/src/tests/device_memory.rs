//! Devices with memory: mmap, positions, and ioctls with pointers inside.

use super::mappings::{MAP_SHARED, PROT_READ, PROT_WRITE};
use super::services::PAGE;
use super::*;
use abi::chardev::{self, Request};
use abi::{Errno, endpoint::slot, layout, linux::nr, vm};

const MINOR: u64 = abi::console::MINOR_SHOWN + 5;
const PHYSICAL: u64 = 0xfd00_0000;

fn open(world: &World, flags: u64) -> u64 {
    if world.stat(world.root, "/fb").is_err() {
        assert_eq!(world.path_call(world.root, nr::MKNOD, "/fb", &[u64::from(S_IFCHR) | 0o666, 0x405]), Ok(0));
    }
    world.open(world.root, "/fb", flags, 0).unwrap()
}

/// A program maps the device; the memory that vm is told to show.
fn map(world: &World, file: u64, offset: u64, flags: u64) -> Option<vm::DeviceMapDone> {
    world.vm().wanted.push((world.root, file as i32, offset, 2 * PAGE, flags));
    world.notify_from_vm();
    world.vm().devices.pop()
}

fn error(world: &World) -> Errno {
    Errno(world.vm().answered.pop().expect("vfs has answered").1)
}

#[test]
fn a_mapping_shows_what_the_driver_says_in_its_name() {
    let world = World::new();
    let file = open(&world, O_RDWR);
    assert_eq!(map(&world, file, 0, MAP_SHARED | PROT_READ), None);
    assert_eq!(error(&world), Errno::ENODEV);
    world.terminal().memory = Some((PHYSICAL, layout::map::COMBINED));
    let shown = map(&world, file, 3 * PAGE, MAP_SHARED | PROT_READ | PROT_WRITE).expect("is mapped");
    assert_eq!((shown.process, shown.physical), (world.root, PHYSICAL + 3 * PAGE));
    assert_eq!((shown.driver.slot(), shown.caching, shown.may_write), (slot::TTY, layout::map::COMBINED, true));
    assert!(matches!(world.terminal().asked.last(), Some(Request::Map(chardev::Map { minor: MINOR, .. }))));
    world.terminal().error = Some(Errno::EINVAL);
    world.terminal().memory = None;
    assert_eq!(map(&world, file, 3 * PAGE, MAP_SHARED | PROT_READ), None);
}

#[test]
fn what_may_not_be_read_or_written_is_not_mapped_so() {
    let world = World::new();
    world.terminal().memory = Some((PHYSICAL, 0));
    let (reads, writes) = (open(&world, O_RDONLY), open(&world, O_WRONLY));
    assert_eq!(map(&world, writes, 0, MAP_SHARED | PROT_READ), None);
    assert_eq!(error(&world), Errno::EACCES);
    assert_eq!(map(&world, reads, 0, MAP_SHARED | PROT_READ | PROT_WRITE), None);
    assert_eq!(error(&world), Errno::EACCES);
    assert!(map(&world, reads, 0, MAP_SHARED | PROT_READ).is_some_and(|shown| !shown.may_write));
}

#[test]
fn a_device_with_positions_is_read_and_written_like_a_file() {
    let mut world = World::new();
    world.terminal().opened = chardev::OPENED_POSITIONS;
    world.terminal().written = (0..100).collect();
    let file = open(&world, O_RDWR);
    assert_eq!(world.read(world.root, file, 10).unwrap(), (0..10).collect::<Vec<u8>>());
    assert_eq!(world.seek(world.root, file, 5, SEEK_CUR), Ok(15));
    assert_eq!(world.write(world.root, file, b"abc"), Ok(3));
    assert_eq!(world.terminal().written[14..19], [14, b'a', b'b', b'c', 18]);
    assert_eq!(world.position(world.root, file), 18);
    assert_eq!(world.pread(world.root, file, 50, 90).unwrap(), (90..100).collect::<Vec<u8>>());
    assert_eq!(world.pwrite(world.root, file, b"xyz", 98), Ok(2), "as much as there is room for");
    assert_eq!(world.pwrite(world.root, file, b"xyz", 100), Err(Errno::ENOSPC));
    assert_eq!(world.position(world.root, file), 18);
    assert_eq!(world.seek(world.root, file, 0, SEEK_END), Ok(0), "a special file has no size");
    assert_eq!(world.seek(world.root, file, 30, SEEK_SET), Ok(30));
    world.restart_vfs();
    assert_eq!(world.read(world.root, file, 2).unwrap(), [30, 31], "after a restart too");
}

#[test]
fn an_ioctl_reaches_the_memory_that_the_driver_asks_for_and_no_more() {
    let world = World::new();
    let file = open(&world, O_RDWR);
    let argument = world.data(world.root, &[9; 300]);
    let control = |request| world.call(world.root, nr::IOCTL, &[file, request, argument]);
    world.terminal().further = std::vec![(argument + 100, 10), (argument + 200, 5)];
    assert_eq!(control(0x4604), Ok(0x4604));
    let bytes = world.machine.read(world.root, argument, 256);
    assert_eq!((bytes[0], bytes[100], bytes[200], bytes[101]), (2, 10, 10, 9));
    world.terminal().further = std::vec![(8, 10)];
    assert_eq!(control(0x4604), Err(Errno::EFAULT), "the program has nothing there");
    world.terminal().further = std::vec![(argument, chardev::MAX_FURTHER_BYTES + 1)];
    assert_eq!(control(0x4604), Err(Errno::EIO));
    world.terminal().further = std::vec![(argument, 1); 100];
    assert_eq!(control(0x4604), Err(Errno::EIO), "a driver does not ask for ever");
}
