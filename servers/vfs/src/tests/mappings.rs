//! mmap of files: what vfs brings into vm and takes back.

use super::services::PAGE;
use super::*;
use abi::Errno;

const PROT_READ: u64 = 1 << 32;
const PROT_WRITE: u64 = 2 << 32;
const MAP_SHARED: u64 = 1;
const MAP_PRIVATE: u64 = 2;

/// A program calls mmap; returns the image or shared file, the error and whether it may be written.
fn map(world: &World, descriptor: u64, offset: u64, bytes: u64, flags: u64) -> (u64, i32, bool) {
    world.vm().wanted.push((world.root, descriptor as i32, offset, bytes, flags));
    world.notify_from_vm();
    world.vm().answered.pop().expect("vfs has answered")
}

fn file_of_pages(world: &World, pages: u64, flags: u64) -> u64 {
    let content: Vec<u8> = (0..pages * PAGE).map(|at| (at / PAGE) as u8 + 1).collect();
    world.make("/file", &content, 0o644, (0, 0));
    world.open(world.root, "/file", flags, 0).unwrap()
}

/// A program writes to its mapping.
fn store(world: &World, object: u64, offset: u64, byte: u8) {
    let mut vm = world.vm();
    let pages = &mut vm.shared[(object as usize - 1) / 2];
    pages.filled.get_mut(&(offset / PAGE * PAGE)).expect("is mapped")[(offset % PAGE) as usize] = byte;
    pages.changed.push(offset / PAGE * PAGE);
}

#[test]
fn a_private_mapping_gets_the_pages_it_covers() {
    let world = World::new();
    let file = file_of_pages(&world, 4, O_RDONLY);
    let (image, error, may_write) = map(&world, file, PAGE, 2 * PAGE, MAP_PRIVATE | PROT_READ | PROT_WRITE);
    assert_eq!((error, may_write), (0, false));
    let vm = world.vm();
    let pages = &vm.images[(image as usize - 1) / 2];
    assert_eq!(pages.filled.keys().copied().collect::<Vec<_>>(), [PAGE, 2 * PAGE]);
    assert_eq!(pages.filled[&PAGE], [2; 4096]);
    assert_eq!(pages.open, 0);
}

#[test]
fn a_mapping_needs_a_file_that_may_be_read_and_written_so() {
    let world = World::new();
    let reads = file_of_pages(&world, 1, O_RDONLY);
    let writes = world.open(world.root, "/file", O_WRONLY, 0).unwrap();
    let directory = world.open(world.root, "/", O_RDONLY, 0).unwrap();
    let (pipe, _) = world.pipe(world.root, 0);
    let error = |file, flags| Errno(map(&world, file, 0, PAGE, flags).1);
    assert_eq!(error(writes, MAP_PRIVATE | PROT_READ), Errno::EACCES);
    assert_eq!(error(reads, MAP_SHARED | PROT_READ | PROT_WRITE), Errno::EACCES);
    assert_eq!(error(directory, MAP_PRIVATE | PROT_READ), Errno::ENODEV);
    assert_eq!(error(pipe, MAP_PRIVATE | PROT_READ), Errno::ENODEV);
    assert_eq!(error(99, MAP_PRIVATE | PROT_READ), Errno::EBADF);
    assert_eq!(error(reads, MAP_SHARED | PROT_READ), Errno(0));
}

#[test]
fn a_read_sees_what_was_stored_through_a_shared_mapping() {
    let world = World::new();
    let file = file_of_pages(&world, 2, O_RDWR);
    let (object, error, may_write) = map(&world, file, 0, 2 * PAGE, MAP_SHARED | PROT_READ | PROT_WRITE);
    assert_eq!((error, may_write), (0, true));
    store(&world, object, PAGE + 5, b'!');
    assert_eq!(world.pread(world.root, file, 3, PAGE as i64 + 4).unwrap(), [2, b'!', 2]);
    assert!(world.vm().shared[0].changed.is_empty(), "it is written back");
}

#[test]
fn a_shared_mapping_sees_what_is_written() {
    let world = World::new();
    let file = file_of_pages(&world, 1, O_RDWR);
    map(&world, file, 0, PAGE, MAP_SHARED | PROT_READ | PROT_WRITE);
    assert_eq!(world.pwrite(world.root, file, b"new", 10), Ok(3));
    assert_eq!(world.vm().shared[0].filled[&0][9..14], *b"\x01new\x01");
    let end = 2 * PAGE as i64;
    assert_eq!(world.pwrite(world.root, file, b"x", end), Ok(1));
    assert_eq!(world.vm().shared[0].size, 2 * PAGE + 1);
    assert_eq!(world.call(world.root, abi::linux::nr::FTRUNCATE, &[file, 5]), Ok(0));
    assert_eq!(world.vm().shared[0].size, 5);
}

#[test]
fn what_nobody_maps_any_more_is_written_back_and_given_up() {
    let world = World::new();
    let file = file_of_pages(&world, 1, O_RDWR);
    let (object, ..) = map(&world, file, 0, PAGE, MAP_SHARED | PROT_READ | PROT_WRITE);
    world.close(world.root, file).unwrap();
    store(&world, object, 0, b'S');
    {
        let mut vm = world.vm();
        vm.shared[0].mapped = false;
        vm.unmapped.push(object);
    }
    world.notify_from_vm();
    assert!(world.vm().shared[0].forgotten);
    assert_eq!(world.content("/file")[0], b'S');
}

#[test]
fn msync_brings_the_pages_to_the_disk() {
    let world = World::new();
    let file = file_of_pages(&world, 1, O_RDWR);
    let (object, ..) = map(&world, file, 0, PAGE, MAP_SHARED | PROT_READ | PROT_WRITE);
    b"stored by a program".iter().enumerate().for_each(|(at, byte)| store(&world, object, at as u64, *byte));
    world.vm().syncs.push((world.root, object));
    world.notify_from_vm();
    assert_eq!(world.vm().synced, [0]);
    assert!(world.is_on_disk(b"stored by a program"));
}
