//! What is appended to a file stays in vfs while it lies in the last pages: everybody reads it, it is never lost, and there is room for it.

use super::mappings::{MAP_PRIVATE, PROT_READ, map};
use super::services::PAGE;
use super::*;
use abi::{Errno, linux::nr};
use std::format;

const O_DSYNC: u64 = 0o10_000;
/// What programs write bit by bit.
const BIT: u64 = 512;

/// A system whose vfs knows that its file system has room, and a file of so many bytes, which the disk has.
fn world(bytes: u64) -> World {
    let world = World::new();
    world.make("/first", b"asks", 0o644, (0, 0));
    world.make("/log", &content(bytes), 0o644, (0, 0));
    world.call(world.root, nr::SYNC, &[]).unwrap();
    world
}

/// So many bytes that differ.
fn content(bytes: u64) -> Vec<u8> {
    (0..bytes).map(|at| (at % 251) as u8).collect()
}

fn open_at_end(world: &World, flags: u64) -> u64 {
    let file = world.open(world.root, "/log", O_RDWR | flags, 0).unwrap();
    world.seek(world.root, file, 0, SEEK_END).unwrap();
    file
}

/// Appends, bit by bit, what makes the file [`content`].
fn append(world: &World, file: u64, bits: &[u64]) {
    for &bit in bits {
        let size = world.fstat(world.root, file).unwrap().size;
        assert_eq!(world.write(world.root, file, &content(size + bit)[size as usize..]), Ok(bit));
    }
}

/// As [`append`], to a file of so many bytes, asking for nothing else. Returns how many requests its file system gets meanwhile.
fn append_alone(world: &World, file: u64, mut size: u64, bits: &[u64]) -> u64 {
    let whole = content(size + bits.iter().sum::<u64>());
    let before = world.machine.messages(world.ext2());
    for &bit in bits {
        assert_eq!(world.write(world.root, file, &whole[size as usize..(size + bit) as usize]), Ok(bit));
        size += bit;
    }
    world.machine.messages(world.ext2()) - before
}

/// `st_blocks`.
fn sectors(world: &World, file: u64) -> u64 {
    let address = world.words(world.root, &[0; 18]);
    assert_eq!(world.call(world.root, nr::FSTAT, &[file, address]), Ok(0));
    world.read_words(world.root, address, 18)[8]
}

fn is_whole(world: &World, bytes: u64) {
    assert_eq!(world.stat(world.root, "/log").unwrap().size, bytes);
    assert!(world.content("/log") == content(bytes));
}

/// Whether so many bytes can be appended to a file although the file system is dead.
fn stays_here(size: u64, flags: u64, bytes: u64) -> bool {
    let mut world = world(size);
    let file = open_at_end(&world, flags);
    let address = world.data(world.root, &content(bytes));
    let ext2 = world.ext2();
    world.machine.kill(ext2);
    world.begin_call(world.root, nr::WRITE, &[file, address, bytes]) == Some(Ok(bytes))
}

#[test]
fn what_lies_in_the_last_page_is_appended_without_the_file_system() {
    for (size, bytes) in [(100, 1), (100, PAGE - 100), (PAGE, 1), (PAGE, PAGE - 1), (3 * PAGE + 5, 1000)] {
        assert!(stays_here(size, 0, bytes), "{bytes} behind {size}");
    }
}

#[test]
fn other_appends_go_to_the_file_system() {
    assert!(!stays_here(100, 0, PAGE - 99), "into a second page");
    assert!(!stays_here(PAGE, 0, PAGE), "a whole page");
    assert!(!stays_here(100, O_APPEND, 1) && !stays_here(100, O_DSYNC, 1));
}

#[test]
fn a_page_that_is_filled_bit_by_bit_is_written_back_and_the_next_one_begins() {
    let mut world = world(0);
    let file = open_at_end(&world, 0);
    append(&world, file, &[BIT; 8]);
    let address = world.data(world.root, &content(9 * BIT)[8 * BIT as usize..]);
    let ext2 = world.ext2();
    world.machine.kill(ext2);
    assert_eq!(world.begin_call(world.root, nr::WRITE, &[file, address, BIT]), Some(Ok(BIT)));
    world.restart_ext2();
    is_whole(&world, 9 * BIT);
}

/// Pages that stay here, and bits that fill them.
const RUN_PAGES: u64 = 8;
const RUN_BITS: usize = (RUN_PAGES * PAGE / BIT) as usize;

#[test]
fn so_many_pages_are_written_back_with_one_request_and_the_next_ones_begin() {
    let world = world(0);
    let file = open_at_end(&world, 0);
    let mut size = 0;
    let took = [RUN_BITS - 1, 1, RUN_BITS - 1, 1].map(|bits| {
        let requests = append_alone(&world, file, size, &std::vec![BIT; bits]);
        size += bits as u64 * BIT;
        requests
    });
    assert_eq!(took, [0, 1, 0, 1]);
    is_whole(&world, size);
}

#[test]
fn a_whole_page_is_written_at_once_with_what_lies_before_it() {
    for bytes in [PAGE - 1, PAGE, 2 * PAGE] {
        let world = world(0);
        let file = open_at_end(&world, 0);
        assert_eq!(append_alone(&world, file, 0, &[10]), 0);
        let requests = if bytes < PAGE { 0 } else { 2 };
        assert_eq!(append_alone(&world, file, 10, &[bytes]), requests, "{bytes} bytes");
        is_whole(&world, 10 + bytes);
    }
}

#[test]
fn what_is_appended_stays_here_up_to_the_last_page_that_has_a_number() {
    const END: u64 = u32::MAX as u64 * PAGE;
    for (size, requests) in [(END - 5, [0, 2]), (END - 4, [0, 2]), (END, [1, 1])] {
        let mut world = World::new();
        world.mount_tmpfs("/tmp");
        world.make("/tmp/first", b"asks", 0o644, (0, 0));
        let file = world.open(world.root, "/tmp/log", O_CREAT | O_RDWR, 0o644).unwrap();
        assert_eq!(world.call(world.root, nr::FTRUNCATE, &[file, size]), Ok(0));
        world.seek(world.root, file, 0, SEEK_END).unwrap();
        let took = [b"last", b"more"].map(|bit| {
            let before = world.machine.messages(world.tmpfs());
            assert_eq!(world.write(world.root, file, bit), Ok(4));
            world.machine.messages(world.tmpfs()) - before
        });
        assert_eq!(took, requests, "from {size}");
        assert_eq!(world.pread(world.root, file, 10, size as i64).unwrap(), b"lastmore");
    }
}

#[test]
fn what_lies_across_pages_stays_here_while_there_is_a_place_for_it() {
    const SEVENTH: u64 = 700;
    let mut world = world(0);
    let file = open_at_end(&world, 0);
    let most = RUN_PAGES * PAGE / SEVENTH;
    assert_eq!(append_alone(&world, file, 0, &std::vec![SEVENTH; most as usize]), 0);
    assert_eq!(append_alone(&world, file, most * SEVENTH, &[SEVENTH; 3]), 2, "the run, and what had no place in it");
    world.restart_vfs();
    is_whole(&world, (most + 3) * SEVENTH);
}

#[test]
fn pages_between_those_of_other_files_are_written_back_when_they_are_full() {
    let mut world = world(0);
    let path = |number: u64| format!("/{number}");
    let files: [u64; 3] =
        std::array::from_fn(|number| world.open(world.root, &path(number as u64), O_CREAT | O_RDWR, 0o644).unwrap());
    let before = world.machine.messages(world.ext2());
    for bits in 0..2 * PAGE / BIT {
        let bit = &content((bits + 1) * BIT)[(bits * BIT) as usize..];
        files.iter().for_each(|file| assert_eq!(world.write(world.root, *file, bit), Ok(BIT)));
    }
    assert!(world.machine.messages(world.ext2()) - before >= 2, "places of others are not taken");
    world.restart_vfs();
    (0..3).for_each(|number| assert!(world.content(&path(number)) == content(2 * PAGE), "{number}"));
}

#[test]
fn a_successor_has_all_pages_and_their_places() {
    for bits in [RUN_BITS - 1, RUN_BITS / 2, RUN_BITS / 2 + 1] {
        let mut world = world(100);
        let file = open_at_end(&world, 0);
        append(&world, file, &std::vec![BIT; bits]);
        let ext2 = world.ext2();
        world.machine.kill(ext2);
        world.restart_vfs();
        world.restart_ext2();
        // A page of another file, while the pages of the first one may be on their way.
        world.make("/other", &[7; PAGE as usize], 0o644, (0, 0));
        is_whole(&world, 100 + bits as u64 * BIT);
        assert!(world.content("/other") == [7; PAGE as usize]);
    }
}

#[test]
fn they_end_with_their_file_and_their_places_are_free_again() {
    let world = world(0);
    for round in 0..20_u8 {
        let before = world.machine.messages(world.ext2());
        let file = world.open(world.root, "/new", O_CREAT | O_RDWR, 0o644).unwrap();
        for _ in 0..RUN_BITS - 1 {
            assert_eq!(world.write(world.root, file, &[round; BIT as usize]), Ok(BIT));
        }
        world.close(world.root, file).unwrap();
        assert_eq!(world.path_call(world.root, nr::UNLINK, "/new", &[]), Ok(0));
        assert!(world.machine.messages(world.ext2()) <= before + 3, "nothing is written");
    }
}

#[test]
fn vm_hears_of_the_end_of_a_file_of_which_it_has_pages_too() {
    let world = world(100);
    let file = open_at_end(&world, 0);
    assert_eq!(map(&world, file, 0, PAGE, MAP_PRIVATE | PROT_READ).1, 0);
    assert_eq!(append_alone(&world, file, 100, &[10]), 0);
    world.close(world.root, file).unwrap();
    assert_eq!(world.path_call(world.root, nr::UNLINK, "/log", &[]), Ok(0));
    assert!(world.vm().gone);
}

#[test]
fn pages_that_the_file_cannot_have_are_told_to_the_next_sync_and_the_others_are_written() {
    let world = world(0);
    let file = open_at_end(&world, 0);
    let may_have = |bytes: &u64| world.call(world.root, nr::FTRUNCATE, &[file, *bytes]) == Ok(0);
    let largest = (0..50).rev().fold(0, |size, bit| Some(size + (1 << bit)).filter(may_have).unwrap_or(size));
    assert_eq!((largest % PAGE, world.call(world.root, nr::FTRUNCATE, &[file, largest - PAGE])), (0, Ok(0)));
    world.seek(world.root, file, 0, SEEK_END).unwrap();
    for bit in 0..12 {
        assert_eq!(world.write(world.root, file, &[bit; BIT as usize]), Ok(BIT));
    }
    assert_eq!(world.call(world.root, nr::FSYNC, &[file]), Err(Errno::EFBIG));
    assert_eq!(world.fstat(world.root, file).unwrap().size, largest);
    let last = world.pread(world.root, file, 10, (largest - 10) as i64).unwrap();
    assert_eq!((last, world.call(world.root, nr::FSYNC, &[file])), (std::vec![7; 10], Ok(0)));
}

#[test]
fn what_is_appended_to_a_full_page_does_not_go_into_the_next_one_in_memory() {
    let world = world(0);
    let path = |number: u64| format!("/{number}");
    let create = |number| world.open(world.root, &path(number), O_CREAT | O_RDWR, 0o644).unwrap();
    let files: Vec<u64> = (0..4).map(create).collect();
    files.iter().for_each(|file| assert_eq!(world.write(world.root, *file, &content(PAGE)), Ok(PAGE)));
    files
        .iter()
        .for_each(|file| assert_eq!(world.write(world.root, *file, &content(PAGE + 9)[PAGE as usize..]), Ok(9)));
    (0..4).for_each(|number| assert!(world.content(&path(number)) == content(PAGE + 9), "{number}"));
}

#[test]
fn what_is_appended_while_the_page_is_written_back_is_not_lost() {
    let mut world = world(100);
    let file = open_at_end(&world, 0);
    append(&world, file, &[10]);
    let child = world.fork(world.root, 0);
    let address = world.data(world.root, &content(120)[110..]);
    let ext2 = world.ext2();
    world.machine.kill(ext2);
    assert_eq!(world.begin_call(child, nr::FSYNC, &[file]), None);
    assert_eq!(world.begin_call(world.root, nr::WRITE, &[file, address, 10]), None);
    world.restart_ext2();
    assert_eq!(world.result(world.root), Some(Ok(10)));
    is_whole(&world, 120);
}

#[test]
fn it_is_the_only_dirty_page_of_its_file() {
    let mut world = world(2 * PAGE);
    let file = open_at_end(&world, 0);
    let page = content(PAGE);
    (0..3).for_each(|_| assert_eq!(world.pwrite(world.root, file, &page, 0), Ok(PAGE)));
    assert_eq!(world.call(world.root, nr::FSYNC, &[file]), Ok(0));
    assert_eq!(world.pwrite(world.root, file, &page, 0), Ok(PAGE), "the next one could be dirty");
    append(&world, file, &[10]);
    let address = world.data(world.root, &page);
    let ext2 = world.ext2();
    world.machine.kill(ext2);
    assert_eq!(world.begin_call(world.root, nr::PWRITE64, &[file, address, PAGE, 0]), None);
}

#[test]
fn it_is_told_of_and_read_like_any_other() {
    for (size, bits) in [(0, &[100, 100, 100][..]), (100, &[1, 2, 3]), (PAGE, &[BIT; 3]), (2 * PAGE - 1, &[1, 1])] {
        let mut world = world(size);
        let file = open_at_end(&world, 0);
        append(&world, file, bits);
        let whole = size + bits.iter().sum::<u64>();
        is_whole(&world, whole);
        append(&world, file, &[7]);
        let kept = (world.fstat(world.root, file).unwrap(), sectors(&world, file));
        assert_eq!(
            world.pread(world.root, file, 20, whole as i64 - 3).unwrap(),
            content(whole + 7)[whole as usize - 3..]
        );
        assert_eq!(world.call(world.root, nr::FSYNC, &[file]), Ok(0));
        let written = (world.fstat(world.root, file).unwrap(), sectors(&world, file));
        assert_eq!(written, kept, "the same when it is written back");
        append(&world, file, &[7]);
        world.restart_vfs();
        is_whole(&world, whole + 14);
    }
}

#[test]
fn what_was_accepted_on_a_disk_that_gets_full_is_there() {
    let mut world = world(0);
    world.make("/large", &std::vec![0; 2_000_000], 0o644, (0, 0));
    let paths = ["/0", "/1", "/2"];
    let files = paths.map(|path| world.open(world.root, path, O_CREAT | O_RDWR, 0o644).unwrap());
    let mut sizes = [0; 3];
    for round in 0.. {
        let of = round % 3;
        let written = world.write(world.root, files[of], &content(sizes[of] + 700)[sizes[of] as usize..]);
        sizes[of] += written.unwrap_or(0);
        if written != Ok(700) {
            assert!(matches!(written, Ok(_) | Err(Errno::ENOSPC)), "{written:?}");
            break;
        }
    }
    for restarts in 0..2 {
        for (path, size) in paths.iter().zip(sizes) {
            assert!(world.content(path) == content(size), "{path}, {restarts}");
        }
        world.restart_vfs();
    }
}

#[test]
fn what_one_file_was_given_of_a_disk_that_gets_full_is_there() {
    for bytes in [BIT, 700] {
        let mut world = world(0);
        world.make("/large", &std::vec![0; 2_000_000], 0o644, (0, 0));
        let file = open_at_end(&world, 0);
        let (mut size, whole) = (0, content(8_000_000));
        loop {
            let written = world.write(world.root, file, &whole[size as usize..(size + bytes) as usize]);
            size += written.unwrap_or(0);
            if written != Ok(bytes) {
                assert!(matches!(written, Ok(_) | Err(Errno::ENOSPC)), "{written:?}");
                break;
            }
        }
        is_whole(&world, size);
        world.restart_vfs();
        is_whole(&world, size);
    }
}

#[test]
fn requests_that_are_answered_take_no_room_when_the_file_system_is_asked_again() {
    const REQUESTS: u64 = 300;
    let world = world(100);
    let file = open_at_end(&world, 0);
    // Each is counted for 32 KiB until it is answered: for more than the disk has, together.
    for _ in 0..REQUESTS {
        assert_eq!(world.call(world.root, nr::FCHMOD, &[file, 0o600]), Ok(0));
    }
    append(&world, file, &[10]);
    assert_eq!(world.call(world.root, nr::FSYNC, &[file]), Ok(0));
    assert_eq!(append_alone(&world, file, 110, &[10]), 0, "the first has asked");
    is_whole(&world, 120);
}

/// A system with so many files of a byte that are open at their end, on a disk with so many free blocks. What vfs knows to be free is less by what the request may take in which it asked.
fn full_world<const N: usize>(blocks: u64) -> (World, [u64; N]) {
    let world = world(1);
    let path = |number: usize| format!("/{number}");
    (0..N).for_each(|number| world.make(&path(number), &content(1), 0o644, (0, 0)));
    let mut world = world;
    world.fill_disk(blocks);
    world.restart_vfs();
    let asks = open_at_end(&world, 0);
    assert_eq!(world.write(world.root, asks, b"?"), Ok(1));
    assert_eq!(world.free_blocks(), blocks);
    let files = std::array::from_fn(|number| {
        let file = world.open(world.root, &path(number), O_RDWR, 0).unwrap();
        world.seek(world.root, file, 0, SEEK_END).unwrap();
        file
    });
    (world, files)
}

#[test]
fn pages_are_kept_only_while_there_is_room_for_them() {
    let (mut world, [file]) = full_world(21);
    let bits = std::vec![BIT; RUN_BITS - 1];
    assert!(append_alone(&world, file, 1, &bits) > 1, "some are written before");
    world.restart_vfs();
    assert!(world.content("/0") == content(1 + (RUN_BITS as u64 - 1) * BIT));
}

#[test]
fn a_request_that_may_take_their_room_has_them_written_first() {
    let (world, [first, second]) = full_world(33);
    assert_eq!(append_alone(&world, first, 1, &std::vec![BIT; RUN_BITS - 1]), 0);
    let before = world.machine.messages(world.ext2());
    assert_eq!(world.write(world.root, second, &[7; PAGE as usize]), Ok(PAGE));
    // Each of them asks for a block of the disk, and is made again when that is there.
    assert_eq!(world.machine.messages(world.ext2()) - before, 2 * 2);
}

/// Random operations on a few files that grow, against a model, with deaths of vfs.
#[test]
fn it_is_what_a_model_says() {
    let mut below = random(5);
    let mut world = world(0);
    let open =
        |world: &World, number: usize| world.open(world.root, &format!("/{number}"), O_CREAT | O_RDWR, 0o644).unwrap();
    let mut files: [u64; 3] = std::array::from_fn(|number| open(&world, number));
    let mut model: [Vec<u8>; 3] = Default::default();
    for step in 0..3_000_u64 {
        let of = below(3) as usize;
        let (file, content) = (files[of], &mut model[of]);
        let size = content.len() as u64;
        let bytes = 1 + match below(8) {
            0 => below(6000),
            1..4 => below(PAGE),
            _ => below(600),
        };
        let more = std::vec![step as u8; bytes as usize];
        match below(24) {
            0..14 => {
                assert_eq!(world.pwrite(world.root, file, &more, size as i64), Ok(bytes), "step {step}");
                content.extend(more);
            }
            14 => {
                let position = below(size + 100);
                assert_eq!(world.pwrite(world.root, file, &more, position as i64), Ok(bytes), "step {step}");
                let (start, end) = (position as usize, (position + bytes) as usize);
                content.resize(content.len().max(end), 0);
                content[start..end].copy_from_slice(&more);
            }
            15 => {
                let left = below(size + 1);
                assert_eq!(world.call(world.root, nr::FTRUNCATE, &[file, left]), Ok(0));
                content.truncate(left as usize);
            }
            16 => assert_eq!(world.call(world.root, nr::FSYNC, &[file]), Ok(0)),
            17 if below(4) == 0 => world.restart_vfs(),
            19 if size > 20_000 => {
                world.close(world.root, file).unwrap();
                assert_eq!(world.path_call(world.root, nr::UNLINK, &format!("/{of}"), &[]), Ok(0));
                files[of] = open(&world, of);
                content.clear();
            }
            20 => assert!(world.content(&format!("/{of}")) == *content, "step {step}"),
            _ => {
                assert_eq!(world.fstat(world.root, file).unwrap().size, size, "step {step}");
                let position = size.saturating_sub(below(700));
                let found = world.pread(world.root, file, 800, position as i64).unwrap();
                assert!(found == content[position as usize..], "step {step}");
            }
        }
    }
    (0..3).for_each(|of| assert!(world.content(&format!("/{of}")) == model[of]));
}
