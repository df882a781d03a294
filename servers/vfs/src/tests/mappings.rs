//! mmap of files: what vfs brings into vm and takes back. The file is long because both also hear of each change of a file.

use super::services::PAGE;
use super::*;
use abi::{Errno, linux::nr, vm};
use std::format;

pub const PROT_READ: u64 = 1 << 32;
pub const PROT_WRITE: u64 = 2 << 32;
pub const MAP_SHARED: u64 = 1;
pub const MAP_PRIVATE: u64 = 2;

/// A program calls mmap; returns the image or shared file, the error and whether it may be written.
pub fn map(world: &World, descriptor: u64, offset: u64, bytes: u64, flags: u64) -> (u64, i32, bool) {
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
pub fn store(world: &World, object: u64, offset: u64, byte: u8) {
    world.vm().store(object, offset, byte);
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
    assert_eq!(world.vm().shared[0].changed, [PAGE], "it is not written back for that");
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
fn a_file_is_synced_while_what_its_last_mapping_has_stored_is_written_back() {
    let world = World::new();
    let file = file_of_pages(&world, 1, O_RDWR);
    let [child, other] = [0; 2].map(|_| world.fork(world.root, 0));
    let new = world.open(other, "/new", O_CREAT | O_WRONLY, 0o600).unwrap();
    assert_eq!(world.write(other, new, b"new"), Ok(3));
    let (object, ..) = map(&world, file, 0, PAGE, MAP_SHARED | PROT_READ | PROT_WRITE);
    b"stored by a program".iter().enumerate().for_each(|(at, byte)| store(&world, object, at as u64, *byte));
    {
        let mut vm = world.vm();
        vm.shared[0].mapped = false;
        vm.unmapped.push(object);
    }
    world.hold_disk();
    assert_eq!(world.begin_call(other, nr::FSYNC, &[new]), None);
    world.notify_from_vm();
    assert!(!world.vm().shared[0].forgotten, "the file system waits for the disk");
    assert_eq!(world.begin_call(child, nr::FSYNC, &[file]), None);
    world.release_disk();
    assert!(world.vm().shared[0].forgotten);
    assert_eq!(world.result(child), Some(Ok(0)));
    assert!(world.is_on_disk(b"stored by a program"));
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

#[test]
fn syncs_bring_the_pages_of_files_on_a_disk_there() {
    let stored = |mark: &str| format!("{mark:-<60}").into_bytes();
    let syncs: [(&str, fn(&World, u64) -> Result<u64>); 3] = [
        ("fsync", |world, file| world.call(world.root, nr::FSYNC, &[file])),
        ("sync", |world, _| world.call(world.root, nr::SYNC, &[])),
        ("syncfs", |world, file| world.call(world.root, nr::SYNCFS, &[file])),
    ];
    for (what, sync) in syncs {
        let mut world = World::new();
        world.mount_tmpfs("/tmp");
        let flags = MAP_SHARED | PROT_READ | PROT_WRITE;
        let [file, _] = ["/file", "/tmp/file"].map(|path| {
            world.make(path, &[1; PAGE as usize], 0o644, (0, 0));
            let file = world.open(world.root, path, O_RDWR, 0).unwrap();
            let (object, error, _) = map(&world, file, 0, PAGE, flags);
            assert_eq!(error, 0);
            stored(what).iter().zip(0..).for_each(|(byte, at)| store(&world, object, at, *byte));
            file
        });
        assert_eq!(sync(&world, file), Ok(0));
        assert!(world.is_on_disk(&stored(what)), "{what}");
        let vm = world.vm();
        let left = [0, 1].map(|number: usize| vm.shared[number].changed.is_empty());
        assert_eq!(left, [true, false], "{what}: what is in memory stays there");
    }
}

/// Errors of mmap are told as numbers.
fn failure(world: &World, file: u64, offset: u64, bytes: u64, flags: u64) -> Errno {
    Errno(map(world, file, offset, bytes, flags).1)
}

#[test]
fn a_mapping_ends_with_the_file() {
    let world = World::new();
    world.make("/file", &std::vec![7; PAGE as usize + 100], 0o644, (0, 0));
    let file = world.open(world.root, "/file", O_RDWR, 0).unwrap();
    let (image, error, may_write) = map(&world, file, 0, 10 * PAGE, MAP_PRIVATE | PROT_READ);
    assert_eq!((error, may_write), (0, true));
    let pages = world.vm().images[(image as usize - 1) / 2].clone();
    let lengths: Vec<(u64, usize)> = pages.filled.iter().map(|(at, page)| (*at, page.len())).collect();
    assert_eq!((lengths, pages.size), ([(0, 4096), (PAGE, 100)].to_vec(), PAGE + 100));
    assert_eq!(map(&world, file, 5 * PAGE, PAGE, MAP_PRIVATE | PROT_READ).1, 0, "there is nothing to bring");
}

#[test]
fn a_new_mapping_shows_what_was_written_since_the_last() {
    let world = World::new();
    let file = file_of_pages(&world, 1, O_RDWR);
    let mut seen = Vec::new();
    for byte in [b'a', b'b'] {
        assert_eq!(world.pwrite(world.root, file, &[byte], 0), Ok(1));
        let (image, ..) = map(&world, file, 0, PAGE, MAP_PRIVATE | PROT_READ);
        seen.push(world.vm().images[(image as usize - 1) / 2].filled[&0][0]);
    }
    assert_eq!(seen, b"ab");
    assert_eq!(world.call(world.root, abi::linux::nr::FTRUNCATE, &[file, 0]), Ok(0));
    assert!(world.vm().images.iter().all(|image| image.forgotten));
}

#[test]
fn a_private_mapping_sees_what_was_stored_through_a_shared_one() {
    let world = World::new();
    let file = file_of_pages(&world, 1, O_RDWR);
    let (before, ..) = map(&world, file, 0, PAGE, MAP_PRIVATE | PROT_READ);
    let (object, ..) = map(&world, file, 0, PAGE, MAP_SHARED | PROT_READ | PROT_WRITE);
    store(&world, object, 9, b'!');
    assert_eq!(world.vm().images[(before as usize - 1) / 2].filled[&0][9], 1);
    let (image, ..) = map(&world, file, 0, PAGE, MAP_PRIVATE | PROT_READ);
    assert_eq!(world.vm().images[(image as usize - 1) / 2].filled[&0][8..11], *b"\x01!\x01");
}

#[test]
fn writes_of_any_size_reach_the_file_and_its_mapping() {
    let world = World::new();
    let file = file_of_pages(&world, 40, O_RDWR);
    map(&world, file, 0, 40 * PAGE, MAP_SHARED | PROT_READ | PROT_WRITE);
    let content: Vec<u8> = (0..150_000).map(|at| (at % 241) as u8).collect();
    assert_eq!(world.pwrite(world.root, file, &content, 5000), Ok(150_000));
    let mapped: Vec<u8> = world.vm().shared[0].filled.values().flatten().copied().collect();
    assert!(mapped[5000..155_000] == content);
    assert!(world.content("/file")[5000..155_000] == content);
    assert_eq!(mapped[..5000], world.content("/file")[..5000]);
    let other = world.open(world.root, "/other", O_CREAT | O_RDWR, 0o644).unwrap();
    world.write(world.root, other, b"sent").unwrap();
    world.seek(world.root, other, 0, SEEK_SET).unwrap();
    assert_eq!(world.call(world.root, abi::linux::nr::SENDFILE, &[file, other, 0, 4]), Ok(4));
    assert_eq!(world.vm().shared[0].filled[&0][..4], *b"sent");
}

#[test]
fn the_size_of_a_mapped_file_is_told_before_and_after_it_changes() {
    let world = World::new();
    let file = file_of_pages(&world, 2, O_RDWR);
    let (object, ..) = map(&world, file, 0, PAGE, MAP_SHARED | PROT_READ | PROT_WRITE);
    store(&world, object, PAGE - 1, b'!');
    for size in [3 * PAGE, PAGE, 10 * PAGE] {
        assert_eq!(world.call(world.root, abi::linux::nr::FTRUNCATE, &[file, size]), Ok(0));
        assert_eq!(world.vm().shared[0].size, size);
    }
    assert_eq!(world.call(world.root, abi::linux::nr::FALLOCATE, &[file, 0, 0, 100 << 20]), Err(Errno::ENOSPC));
    assert_eq!(world.vm().shared[0].size, 10 * PAGE, "as before");
    let small = world.open(world.root, "/small", O_CREAT | O_RDWR, 0o644).unwrap();
    assert_eq!(world.call(world.root, abi::linux::nr::FTRUNCATE, &[small, 100 << 20]), Ok(0));
    assert_eq!(failure(&world, small, 0, 100 << 20, MAP_SHARED | PROT_READ | PROT_WRITE), Errno::ENOSPC);
}

#[test]
fn a_mapping_that_fails_leaves_nothing_open() {
    let world = World::new();
    let file = file_of_pages(&world, 3, O_RDWR);
    assert_eq!(world.call(world.root, abi::linux::nr::FSYNC, &[file]), Ok(0));
    let place = world.open(world.root, "/file", O_PATH, 0).unwrap();
    assert_eq!(failure(&world, place, 0, PAGE, MAP_PRIVATE | PROT_READ), Errno::EBADF);
    let stranger = abi::Endpoint::new(300, 1);
    world.vm().wanted.push((stranger, 0, 0, PAGE, MAP_PRIVATE | PROT_READ));
    world.notify_from_vm();
    assert_eq!(world.vm().answered.pop(), Some((0, Errno::ESRCH.0, false)));
    let vm = world.vm();
    assert!(vm.images.iter().chain(&vm.shared).all(|pages| pages.open == 0));
}

#[test]
fn several_requests_of_vm_are_served_at_one_notification() {
    let world = World::new();
    let file = file_of_pages(&world, 2, O_RDWR);
    for _ in 0..3 {
        world.vm().wanted.push((world.root, file as i32, 0, PAGE, MAP_SHARED | PROT_READ));
    }
    world.vm().syncs.extend([(world.root, 77), (world.root, 78)]);
    world.vm().unmapped.extend([77, 78]);
    world.notify_from_vm();
    let vm = world.vm();
    assert_eq!(vm.answered, [(2, 0, true); 3]);
    assert_eq!(vm.synced, [0, 0], "what is not mapped is on the disk");
    assert!(vm.unmapped.is_empty());
}

#[test]
fn pages_that_a_predecessor_brought_are_dropped_when_the_file_changes() {
    let mut world = World::new();
    let file = file_of_pages(&world, 1, O_RDWR);
    map(&world, file, 0, PAGE, MAP_PRIVATE | PROT_READ);
    world.restart_vfs();
    assert!(!world.vm().images[0].forgotten);
    assert_eq!(world.pwrite(world.root, file, b"new", 0), Ok(3));
    assert!(world.vm().images[0].forgotten);
    let (image, ..) = map(&world, file, 0, PAGE, MAP_PRIVATE | PROT_READ);
    assert_eq!(world.vm().images[(image as usize - 1) / 2].filled[&0][..4], *b"new\x01");
}

#[test]
fn pages_of_a_removed_file_are_dropped() {
    let world = World::new();
    let file = file_of_pages(&world, 1, O_RDONLY);
    map(&world, file, 0, PAGE, MAP_PRIVATE | PROT_READ);
    assert_eq!(world.path_call(world.root, abi::linux::nr::UNLINK, "/file", &[]), Ok(0));
    assert!(!world.vm().images[0].forgotten, "it is open");
    world.close(world.root, file).unwrap();
    assert!(world.vm().images[0].forgotten);
}

#[test]
fn vm_is_told_once_and_only_of_files_that_it_has() {
    let world = World::new();
    let file = file_of_pages(&world, 1, O_RDWR);
    let change = || {
        for _ in 0..2 {
            assert_eq!(world.pwrite(world.root, file, b"new", 0), Ok(3));
            assert_eq!(world.call(world.root, abi::linux::nr::FTRUNCATE, &[file, 100]), Ok(0));
        }
        world.vm().forgets
    };
    assert_eq!(change(), 0);
    map(&world, file, 0, PAGE, MAP_PRIVATE | PROT_READ);
    assert_eq!((change(), change()), (1, 1));
}

fn truncate(world: &World, file: u64, bytes: u64) {
    assert_eq!(world.call(world.root, nr::FTRUNCATE, &[file, bytes]), Ok(0));
}

#[test]
fn vm_hears_of_the_new_size_of_a_file_while_programs_map_it_privately() {
    let world = World::new();
    let file = file_of_pages(&world, 2, O_RDWR);
    truncate(&world, file, PAGE + 1);
    assert!(world.vm().resizes.is_empty(), "nobody maps it");
    map(&world, file, 0, PAGE, MAP_PRIVATE | PROT_READ);
    assert_eq!(world.pwrite(world.root, file, b"new", 0), Ok(3));
    truncate(&world, file, 7);
    world.vm().images[0].mapped = false;
    truncate(&world, file, 2 * PAGE);
    truncate(&world, file, 5);
    assert_eq!(world.vm().resizes, [(PAGE + 1, 7), (7, 2 * PAGE)]);
}

#[test]
fn vm_hears_of_the_new_size_of_a_mapped_file_that_was_in_use_by_nobody_meanwhile() {
    let mut world = World::new();
    let file = file_of_pages(&world, 2, O_RDWR);
    map(&world, file, 0, PAGE, MAP_PRIVATE | PROT_READ);
    world.restart_vfs();
    truncate(&world, file, 100);
    assert_eq!(world.vm().resizes.len(), 1, "a predecessor has mapped it");
    world.close(world.root, file).unwrap();
    let other = world.open(world.root, "/file", O_RDWR, 0).unwrap();
    truncate(&world, other, 10);
    assert_eq!(world.vm().resizes.len(), 2);
}

/// A predecessor has died between the reply of the file system and its request to vm.
#[test]
fn vm_hears_of_a_size_that_a_predecessor_had_the_file_system_set() {
    for (number, size) in [(nr::FTRUNCATE, 3 * PAGE), (nr::TRUNCATE, 3 * PAGE), (nr::OPEN, 0)] {
        let mut world = World::new();
        let file = file_of_pages(&world, 1, O_RDWR);
        map(&world, file, 0, PAGE, MAP_SHARED | PROT_READ | PROT_WRITE);
        map(&world, file, 0, PAGE, MAP_PRIVATE | PROT_READ);
        // An open has its result noted, so that the file system is not asked what it has done of it: this call stands for each.
        assert_eq!(world.call(world.root, nr::FTRUNCATE, &[file, size]), Ok(0));
        world.vm().shared[0].size = PAGE;
        world.vm().resizes.clear();
        world.restart_vfs();
        let path = world.path(world.root, 0, "/file");
        let arguments = match number {
            nr::FTRUNCATE => [file, size],
            nr::TRUNCATE => [path, size],
            _ => [path, O_TRUNC | O_WRONLY],
        };
        assert!(matches!(world.repeat_call(world.root, number, &arguments), Some(Ok(_))));
        assert_eq!(world.vm().shared[0].size, size);
        assert_eq!(world.vm().resizes, [(vm::UNKNOWN_BYTES, size)]);
    }
}

#[test]
fn what_programs_map_of_a_freed_file_is_no_file_s_any_more() {
    let world = World::new();
    let file = file_of_pages(&world, 1, O_RDWR);
    map(&world, file, 0, PAGE, MAP_PRIVATE | PROT_READ);
    assert_eq!(world.pwrite(world.root, file, b"new", 0), Ok(3));
    assert_eq!(world.path_call(world.root, nr::UNLINK, "/file", &[]), Ok(0));
    assert!(!world.vm().gone);
    world.close(world.root, file).unwrap();
    assert!(world.vm().gone);
}

#[test]
fn a_mapping_of_dev_zero_is_memory_without_a_file() {
    let world = World::new();
    let number = [u64::from(S_IFCHR) | 0o666, 0x105];
    assert_eq!(world.path_call(world.root, nr::MKNOD, "/zero", &number), Ok(0));
    let zero = world.open(world.root, "/zero", O_RDWR, 0).unwrap();
    let read_only = world.open(world.root, "/zero", O_RDONLY, 0).unwrap();
    for kind in [MAP_PRIVATE, MAP_SHARED] {
        assert_eq!(map(&world, zero, 0, PAGE, kind | PROT_READ | PROT_WRITE), (0, 0, true));
    }
    assert_eq!(map(&world, read_only, 0, PAGE, MAP_PRIVATE | PROT_READ | PROT_WRITE), (0, 0, false));
    let (_, error, _) = map(&world, read_only, 0, PAGE, MAP_SHARED | PROT_READ | PROT_WRITE);
    assert_eq!(Errno(error), Errno::EACCES);
}

#[test]
fn a_mapping_shows_the_zeros_of_a_punched_hole_and_keeps_its_space() {
    for mode in [3, 0x10, 0x11] {
        let world = World::new();
        let file = file_of_pages(&world, 4, O_RDWR);
        let blocks = |world: &World| {
            assert_eq!(world.call(world.root, nr::FSTAT, &[file, DATA]), Ok(0));
            world.read_words(world.root, DATA, 18)[8]
        };
        let before = blocks(&world);
        let (object, ..) = map(&world, file, PAGE, 2 * PAGE, MAP_SHARED | PROT_READ | PROT_WRITE);
        store(&world, object, PAGE + 5, b'!');
        assert_eq!(world.call(world.root, nr::FALLOCATE, &[file, mode, 100, 2 * PAGE]), Ok(0));
        assert_eq!(blocks(&world), before, "a store would need the space");
        {
            let vm = world.vm();
            let pages = &vm.shared[(object as usize - 1) / 2];
            assert_eq!(pages.filled.keys().copied().collect::<Vec<_>>(), [PAGE, 2 * PAGE], "only what is mapped");
            assert!(pages.filled[&PAGE].iter().all(|&byte| byte == 0));
            assert_eq!((&pages.filled[&(2 * PAGE)][..100], pages.filled[&(2 * PAGE)][100]), (&[0; 100][..], 3));
        }
        let content = world.content("/file");
        let zeros = 100..100 + 2 * PAGE as usize;
        let expected = |at: usize| if zeros.contains(&at) { 0 } else { (at as u64 / PAGE) as u8 + 1 };
        assert!(content.iter().enumerate().all(|(at, &byte)| byte == expected(at)));
    }
}

#[test]
fn a_private_mapping_made_after_a_hole_was_punched_gets_zeros() {
    let world = World::new();
    let file = file_of_pages(&world, 2, O_RDWR);
    map(&world, file, 0, PAGE, MAP_PRIVATE | PROT_READ);
    assert_eq!(world.call(world.root, nr::FALLOCATE, &[file, 3, 0, PAGE]), Ok(0));
    let (image, error, _) = map(&world, file, 0, PAGE, MAP_PRIVATE | PROT_READ);
    assert_eq!((error, &world.vm().images[(image as usize - 1) / 2].filled[&0][..]), (0, &[0; 4096][..]));
}

#[test]
fn a_file_that_is_no_longer_mapped_leaves_the_others_mapped() {
    let world = World::new();
    world.make("/first", &[1; PAGE as usize], 0o644, (0, 0));
    world.make("/second", &[2; PAGE as usize], 0o644, (0, 0));
    let flags = MAP_SHARED | PROT_READ | PROT_WRITE;
    let objects = ["/first", "/second"].map(|path| {
        let file = world.open(world.root, path, O_RDWR, 0).unwrap();
        let (object, error, _) = map(&world, file, 0, PAGE, flags);
        world.close(world.root, file).unwrap();
        assert_eq!(error, 0);
        object
    });
    for (index, object) in objects.into_iter().enumerate() {
        store(&world, object, 5, b'a' + index as u8);
        world.vm().shared[index].mapped = false;
        world.vm().unmapped.push(object);
        world.notify_from_vm();
        assert!(world.vm().shared[index].forgotten, "file {index}");
    }
    assert_eq!((world.content("/first")[5], world.content("/second")[5]), (b'a', b'b'));
}

#[test]
fn vm_is_told_the_path_of_what_is_mapped() {
    let world = World::new();
    let file = file_of_pages(&world, 1, O_RDWR);
    let (image, ..) = map(&world, file, 0, PAGE, MAP_PRIVATE | PROT_READ);
    let (object, ..) = map(&world, file, 0, PAGE, MAP_SHARED | PROT_READ);
    assert_eq!(world.vm().names, [(image, b"/file".to_vec()), (object, b"/file".to_vec())]);
}

/// What programs have stored in a file that cannot be written back is gone, from the page cache too.
#[test]
fn what_could_not_be_written_back_is_not_read() {
    let mut world = World::new();
    world.make("/file", &[1; 500], 0o644, (0, 0));
    let file = world.open(world.root, "/file", O_RDWR, 0).unwrap();
    let (object, ..) = map(&world, file, 0, PAGE, MAP_SHARED | PROT_READ | PROT_WRITE);
    let read = |world: &World| world.pread(world.root, file, 10, 0).unwrap();
    (0..3).for_each(|_| assert_eq!(read(&world), [1; 10]));
    // Its file system has forgotten what is on the disk.
    world.evict();
    store(&world, object, 5, b'!');
    world.disk.lock().unwrap().broken_from = Some(0);
    {
        let mut vm = world.vm();
        vm.shared[0].mapped = false;
        vm.unmapped.push(object);
    }
    world.notify_from_vm();
    world.disk.lock().unwrap().broken_from = None;
    assert!(world.vm().shared[0].forgotten);
    let seen = read(&world);
    assert_eq!(read(&world), seen);
    world.restart_vfs();
    assert_eq!(read(&world), seen, "a successor reads the same");
    assert_eq!(seen, [1; 10]);
}

#[test]
fn a_long_part_of_a_mapped_file_becomes_zeros_where_vm_has_pages() {
    const ZERO: u64 = 0x10;
    let world = World::new();
    let file = file_of_pages(&world, 60, O_RDWR);
    let flags = MAP_SHARED | PROT_READ | PROT_WRITE;
    let (object, ..) = map(&world, file, 0, 30 * PAGE, flags);
    assert_eq!(map(&world, file, 40 * PAGE, 20 * PAGE, flags), (object, 0, true));
    let (start, bytes) = (2 * PAGE + 100, 50 * PAGE);
    assert_eq!(world.call(world.root, nr::FALLOCATE, &[file, ZERO, start, bytes]), Ok(0));
    let expected = |at: u64| if (start..start + bytes).contains(&at) { 0 } else { (at / PAGE) as u8 + 1 };
    {
        let vm = world.vm();
        let pages = &vm.shared[0].filled;
        assert!(pages.keys().copied().eq((0..30).chain(40..60).map(|page| page * PAGE)), "the others are not made");
        assert!(pages.iter().all(|(at, page)| page.iter().zip(*at..).all(|(byte, at)| *byte == expected(at))));
    }
    let content = world.content("/file");
    assert_eq!(content.len() as u64, 60 * PAGE);
    assert!(content.iter().zip(0..).all(|(byte, at)| *byte == expected(at)));
}

#[test]
fn a_long_mapping_is_filled_without_memory_for_the_cache() {
    for kind in [MAP_PRIVATE, MAP_SHARED] {
        let world = World::new();
        world.vm().is_short = true;
        let file = file_of_pages(&world, 60, O_RDWR);
        let (object, error, _) = map(&world, file, PAGE, 50 * PAGE, kind | PROT_READ);
        assert_eq!(error, 0);
        let vm = world.vm();
        let list = if kind == MAP_PRIVATE { &vm.images } else { &vm.shared };
        let pages = &list[(object as usize - 1) / 2].filled;
        assert!(pages.keys().copied().eq((1..51).map(|page| page * PAGE)));
        assert!(pages.iter().all(|(at, page)| **page == [(at / PAGE) as u8 + 1; PAGE as usize]));
    }
}
