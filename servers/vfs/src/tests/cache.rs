//! The page cache: what was read is read again without the file system, and never is what the file system would not say any more.

use super::devices::node;
use super::mappings::{MAP_PRIVATE, MAP_SHARED, PROT_READ, PROT_WRITE, map, store};
use super::meanwhile::{byte, expected};
use super::services::PAGE;
use super::*;
use abi::{Errno, linux::nr};

const BYTES: u64 = 5 * PAGE + 100;
const NS_PER_S: u64 = 1_000_000_000;
const HOUR_NS: u64 = 3_600 * NS_PER_S;
const FILE: u64 = 0;

/// A file that is open, and was read twice.
fn world() -> World {
    let world = World::new();
    world.machine.advance_ns(5 * NS_PER_S);
    world.make("/file", &expected(0..BYTES), 0o666, (0, 0));
    assert_eq!(world.open(world.root, "/file", O_RDWR, 0), Ok(FILE));
    (0..2).for_each(|_| assert!(whole(&world) == expected(0..BYTES)));
    world
}

/// The file's content.
fn whole(world: &World) -> Vec<u8> {
    world.seek(world.root, FILE, 0, SEEK_SET).unwrap();
    world.read(world.root, FILE, 10 * PAGE as usize).unwrap()
}

/// Reads at a position.
fn read_at(world: &World, position: u64, bytes: u64) -> Vec<u8> {
    let moved = world.call(world.root, nr::PREAD64, &[FILE, DATA, bytes, position]).unwrap();
    world.machine.read(world.root, DATA, moved as usize)
}

/// Whether the file can be read although its file system is dead.
fn is_known(world: &mut World) -> bool {
    let ext2 = world.ext2();
    world.machine.kill(ext2);
    world.begin_call(world.root, nr::PREAD64, &[FILE, DATA, BYTES, 0]) == Some(Ok(BYTES))
}

#[test]
fn what_was_read_is_read_again_without_the_file_system() {
    let mut world = world();
    let ext2 = world.ext2();
    world.machine.kill(ext2);
    assert!(whole(&world) == expected(0..BYTES));
    assert_eq!(world.position(world.root, FILE), BYTES);
    for (position, bytes) in [(0, 1), (PAGE - 1, 2), (PAGE, PAGE), (10, BYTES), (BYTES - 1, 10), (BYTES, 10)] {
        let end = (position + bytes).min(BYTES);
        assert!(read_at(&world, position, bytes) == expected(position..end), "{bytes} bytes at {position}");
    }
}

#[test]
fn what_was_read_is_sent_to_nowhere_without_the_file_system() {
    let mut world = World::new();
    world.make("/file", &expected(0..BYTES), 0o666, (0, 0));
    assert_eq!(world.open(world.root, "/file", O_RDWR, 0), Ok(FILE));
    node(&world, "/null", S_IFCHR, 0x103);
    let null = world.open(world.root, "/null", O_WRONLY, 0).unwrap();
    let send = |world: &World| {
        world.seek(world.root, FILE, 0, SEEK_SET).unwrap();
        world.begin_call(world.root, nr::SENDFILE, &[null, FILE, 0, 2 * BYTES])
    };
    for times in ["past the cache", "to the cache"] {
        assert_eq!(send(&world), Some(Ok(BYTES)), "{times}");
        assert_eq!(world.position(world.root, FILE), BYTES);
    }
    let ext2 = world.ext2();
    world.machine.kill(ext2);
    assert_eq!(send(&world), Some(Ok(BYTES)));
    assert!(is_known(&mut world), "and is there to be read");
}

#[test]
fn a_successor_of_vfs_knows_nothing_and_says_the_same() {
    let mut world = world();
    world.restart_vfs();
    assert!(whole(&world) == expected(0..BYTES));
}

#[test]
fn a_program_without_such_memory_gets_an_error_and_others_their_bytes() {
    let world = world();
    assert_eq!(world.call(world.root, nr::PREAD64, &[FILE, 8, PAGE, 0]), Err(Errno::EFAULT));
    assert!(whole(&world) == expected(0..BYTES));
}

#[test]
fn without_memory_for_it_files_are_read_all_the_same() {
    let mut world = World::new();
    world.vm().is_short = true;
    world.make("/file", &expected(0..BYTES), 0o666, (0, 0));
    assert_eq!(world.open(world.root, "/file", O_RDWR, 0), Ok(FILE));
    (0..3).for_each(|_| assert!(whole(&world) == expected(0..BYTES)));
    world.vm().is_short = false;
    (0..300).for_each(|_| assert!(whole(&world) == expected(0..BYTES)));
    assert!(is_known(&mut world), "it asks for memory again");
}

#[test]
fn a_file_larger_than_the_cache_is_read_as_it_is() {
    let world = World::new();
    let content: Vec<u8> = (0..1_500_000).map(byte).collect();
    world.make("/large", &content, 0o644, (0, 0));
    (0..3).for_each(|_| assert!(world.content("/large") == content));
    let vm = world.vm();
    let (pages, taken) = ((vm.cache.end - vm.cache.start) / PAGE, vm.cache_pages);
    assert!(pages * PAGE < 1_500_000 && taken > 0);
    assert!(taken <= pages, "{taken} pages were asked for, of a cache of {pages}: each is there from then on");
}

/// Everything is known, then `act` changes the file, which is read as its file system and a successor of vfs say.
fn follows(what: &str, act: impl FnOnce(&World) -> Result<u64>) {
    let mut world = world();
    act(&world).unwrap_or_else(|error| panic!("{what}: {error}"));
    let pieces = |world: &World| (0..10).map(|page| read_at(world, page * PAGE, PAGE)).collect::<Vec<_>>().concat();
    let after = whole(&world);
    assert!(after != expected(0..BYTES), "{what}: it has changed something");
    assert!(pieces(&world) == after && whole(&world) == after, "{what}: read twice");
    world.restart_vfs();
    assert!(whole(&world) == after, "{what}: what a successor reads");
}

fn write_at(world: &World, position: u64, bytes: &[u8]) -> Result<u64> {
    world.data(world.root, bytes);
    world.call(world.root, nr::PWRITE64, &[FILE, DATA, bytes.len() as u64, position])
}

#[test]
fn what_changes_a_file_is_seen() {
    const PUNCH: u64 = 3;
    const ZERO: u64 = 0x10;
    follows("write", |world| write_at(world, 0, b"new"));
    follows("write across pages", |world| write_at(world, PAGE - 1, b"new"));
    follows("write of pages", |world| write_at(world, PAGE, &vec![b'n'; 2 * PAGE as usize]));
    follows("append", |world| write_at(world, BYTES, b"new"));
    follows("write behind the end", |world| write_at(world, 2 * BYTES, b"new"));
    follows("truncate", |world| world.call(world.root, nr::FTRUNCATE, &[FILE, PAGE + 10]));
    follows("extend", |world| world.call(world.root, nr::FTRUNCATE, &[FILE, BYTES + 10]));
    follows("truncate and extend", |world| {
        world.call(world.root, nr::FTRUNCATE, &[FILE, PAGE + 10])?;
        world.call(world.root, nr::FTRUNCATE, &[FILE, BYTES])
    });
    follows("punch", |world| world.call(world.root, nr::FALLOCATE, &[FILE, PUNCH, PAGE, PAGE]));
    follows("zero", |world| world.call(world.root, nr::FALLOCATE, &[FILE, ZERO, 10, 20]));
    follows("open with O_TRUNC", |world| world.open(world.root, "/file", O_WRONLY | O_TRUNC, 0));
    follows("copy_file_range", |world| {
        world.make("/other", &[b'o'; 5000], 0o644, (0, 0));
        let other = world.open(world.root, "/other", O_RDONLY, 0)?;
        world.call(world.root, nr::COPY_FILE_RANGE, &[other, 0, FILE, 0, 5000, 0])
    });
    follows("sendfile", |world| {
        world.make("/other", &[b'o'; 5000], 0o644, (0, 0));
        let other = world.open(world.root, "/other", O_RDONLY, 0)?;
        world.seek(world.root, FILE, 0, SEEK_SET)?;
        world.call(world.root, nr::SENDFILE, &[FILE, other, 0, 5000])
    });
    follows("a store to a mapping", |world| {
        let (object, error, _) = map(world, FILE, 0, PAGE, MAP_SHARED | PROT_READ | PROT_WRITE);
        assert_eq!(error, 0);
        store(world, object, 10, b'm');
        Ok(0)
    });
}

/// Whole pages, and the rest of the file behind them.
fn written(mark: u8) -> Vec<u8> {
    std::vec![mark; BYTES as usize]
}

#[test]
fn whole_pages_that_are_written_are_known() {
    let mut world = world();
    assert_eq!(write_at(&world, 0, &written(1)), Ok(BYTES));
    assert_eq!(read_at(&world, PAGE, 1), [1], "the file system hears of the first read");
    assert!(is_known(&mut world));
    assert!(whole(&world) == written(1));
}

#[test]
fn less_than_a_page_that_is_written_is_not_kept_unless_it_is_all_of_a_file() {
    for (size, position, bytes, is_kept) in
        [(BYTES, 5 * PAGE, 100, false), (BYTES, 0, 100, false), (100, 0, 100, true), (BYTES, 0, PAGE, true)]
    {
        let mut world = World::new();
        world.make("/file", &expected(0..size), 0o666, (0, 0));
        assert_eq!(world.open(world.root, "/file", O_RDWR, 0), Ok(FILE));
        (0..2).for_each(|_| assert!(whole(&world) == expected(0..size)));
        assert_eq!(write_at(&world, position, &vec![9; bytes as usize]), Ok(bytes));
        let read = |world: &World, position: u64| {
            world.begin_call(world.root, nr::PREAD64, &[FILE, DATA, bytes, position]).is_some()
        };
        // The file system hears of a read, of another page if there is one.
        read(&world, if size > PAGE { 2 * PAGE } else { 0 });
        let ext2 = world.ext2();
        world.machine.kill(ext2);
        assert_eq!(read(&world, position), is_kept, "{bytes} bytes at {position}");
    }
}

#[test]
fn what_a_program_does_with_its_memory_while_it_writes_does_not_matter_afterwards() {
    let mut world = world();
    let ext2 = world.ext2();
    world.machine.kill(ext2);
    world.data(world.root, &written(1));
    assert_eq!(world.begin_call(world.root, nr::PWRITE64, &[FILE, DATA, BYTES, 0]), None);
    world.data(world.root, &written(2));
    world.restart_ext2();
    assert_eq!(world.result(world.root), Some(Ok(BYTES)));
    let now = whole(&world);
    world.restart_vfs();
    assert!(whole(&world) == now, "the cache has what the file system has");
}

#[test]
fn a_copy_of_what_is_known_or_was_just_written_is_known() {
    let parts = [(0, BYTES), (512, BYTES - 512), (512, PAGE), (PAGE, 3 * PAGE + 5)];
    for ((from, bytes), was_written) in parts.into_iter().flat_map(|part| [(part, false), (part, true)]) {
        let mut world = world();
        if was_written {
            // The file system has not heard of a read since.
            assert_eq!(write_at(&world, 0, &expected(0..BYTES)), Ok(BYTES));
        }
        let copy = world.open(world.root, "/copy", O_RDWR | O_CREAT, 0o644).unwrap();
        world.seek(world.root, FILE, from as i64, SEEK_SET).unwrap();
        let sent = world.call(world.root, nr::SENDFILE, &[copy, FILE, 0, bytes]);
        assert_eq!(sent, Ok(bytes), "{bytes} from {from}");
        let read = |world: &World, position| world.begin_call(world.root, nr::PREAD64, &[copy, DATA, BYTES, position]);
        assert_eq!(read(&world, bytes - 1), Some(Ok(1)), "the file system hears of the first read");
        let ext2 = world.ext2();
        world.machine.kill(ext2);
        assert_eq!(read(&world, 0), Some(Ok(bytes)), "{bytes} from {from}");
        assert!(world.machine.read(world.root, DATA, bytes as usize) == expected(from..from + bytes));
    }
}

#[test]
fn a_copy_into_a_file_leaves_the_rest_of_it() {
    let world = world();
    world.make("/copy", &written(7), 0o666, (0, 0));
    let copy = world.open(world.root, "/copy", O_RDWR, 0).unwrap();
    (0..2).for_each(|_| assert!(world.content("/copy") == written(7)));
    for (from, to, bytes) in [(10, PAGE, 100), (PAGE, 2 * PAGE, PAGE + 1), (512, 0, 2 * PAGE), (0, BYTES - 3, BYTES)] {
        let mut after = world.content("/copy");
        world.data(world.root, &[from.to_le_bytes(), to.to_le_bytes()].concat());
        let call = world.call(world.root, nr::COPY_FILE_RANGE, &[FILE, DATA, copy, DATA + 8, bytes, 0]);
        assert_eq!(call, Ok(bytes), "{bytes} from {from} to {to}");
        let end = (to + bytes) as usize;
        after.resize(after.len().max(end), 0);
        after[to as usize..end].copy_from_slice(&expected(from..from + bytes));
        assert!(world.content("/copy") == after && world.content("/copy") == after, "{bytes} from {from} to {to}");
    }
}

/// The content of a private mapping of the file, made now.
fn mapped(world: &World) -> Vec<u8> {
    let (image, error, _) = map(world, FILE, 0, BYTES, MAP_PRIVATE | PROT_READ);
    assert_eq!(error, 0);
    world.vm().images[(image as usize - 1) / 2].filled.values().flatten().copied().collect()
}

#[test]
fn mappings_show_pages_of_the_cache() {
    let world = world();
    assert!(mapped(&world) == expected(0..BYTES));
    assert_eq!(world.vm().shown_pages, BYTES.div_ceil(PAGE));
    assert_eq!(write_at(&world, 0, &written(1)), Ok(BYTES));
    assert!(mapped(&world) == written(1), "what was written is shown, too");
    assert_eq!(world.vm().shown_pages, 2 * BYTES.div_ceil(PAGE));
}

#[test]
fn a_mapping_of_a_file_of_any_size_shows_pages_of_the_cache() {
    for bytes in [1, PAGE - 1, PAGE, PAGE + 1, 3 * PAGE] {
        let world = World::new();
        world.make("/file", &expected(0..bytes), 0o666, (0, 0));
        assert_eq!(world.open(world.root, "/file", O_RDWR, 0), Ok(FILE));
        (0..3).for_each(|_| assert!(whole(&world) == expected(0..bytes)));
        assert!(mapped(&world) == expected(0..bytes));
        assert_eq!(world.vm().shown_pages, bytes.div_ceil(PAGE), "{bytes} bytes");
    }
}

#[test]
fn pages_that_are_shown_are_taken_anew_before_they_are_filled_again() {
    let world = world();
    let before = world.vm().cache_pages;
    mapped(&world);
    let content: Vec<u8> = (0..1_500_000).map(byte).collect();
    world.make("/large", &content, 0o644, (0, 0));
    (0..3).for_each(|_| assert!(world.content("/large") == content, "all slots are used again"));
    let cache = world.vm().cache.clone();
    let never_taken = (cache.end - cache.start) / PAGE - before;
    assert!(world.vm().cache_pages - before > never_taken, "some are taken a second time");
}

#[test]
fn pages_that_were_taken_back_are_known_again_in_another_place() {
    let mut world = world();
    let first = world.vm().cache.start;
    world.machine.unmap(first..first + 6 * PAGE);
    (0..3).for_each(|_| assert!(whole(&world) == expected(0..BYTES)));
    assert!(is_known(&mut world));
}

#[test]
fn a_mapping_is_filled_when_the_cache_cannot_be_shown() {
    let world = World::new();
    world.vm().is_short = true;
    world.make("/file", &expected(0..BYTES), 0o666, (0, 0));
    assert_eq!(world.open(world.root, "/file", O_RDWR, 0), Ok(FILE));
    assert!(mapped(&world) == expected(0..BYTES));
    assert_eq!(world.vm().shown_pages, 0);
}

#[test]
fn a_part_of_a_page_that_is_written_makes_the_page_unknown() {
    let world = world();
    for (position, bytes) in [(PAGE, PAGE - 1), (PAGE + 1, PAGE), (3 * PAGE, PAGE + 1), (10, 20)] {
        let before = whole(&world);
        assert_eq!(write_at(&world, position, &written(9)[..bytes as usize]), Ok(bytes));
        let mut after = before;
        after[position as usize..(position + bytes) as usize].fill(9);
        assert!(whole(&world) == after && whole(&world) == after, "{bytes} bytes at {position}");
    }
}

#[test]
fn a_write_whose_pages_are_taken_back_is_made_without_them() {
    let mut world = world();
    let ext2 = world.ext2();
    world.machine.kill(ext2);
    world.data(world.root, &written(1));
    assert_eq!(world.begin_call(world.root, nr::PWRITE64, &[FILE, DATA, BYTES, 0]), None);
    let cache = world.vm().cache.clone();
    world.machine.unmap(cache);
    world.restart_ext2();
    assert_eq!(world.result(world.root), Some(Ok(BYTES)));
    assert!(whole(&world) == written(1));
    world.machine.unmap(0..0);
    assert_eq!(write_at(&world, 0, &written(2)), Ok(BYTES));
    assert!(whole(&world) == written(2));
}

#[test]
fn a_write_of_which_some_pages_are_taken_back_is_written_whole() {
    for gone in 0..16 {
        let mut world = world();
        let ext2 = world.ext2();
        world.machine.kill(ext2);
        world.data(world.root, &written(1));
        assert_eq!(world.begin_call(world.root, nr::PWRITE64, &[FILE, DATA, BYTES, 0]), None);
        let first = world.vm().cache.start + gone * PAGE;
        world.machine.unmap(first..first + PAGE);
        world.restart_ext2();
        assert_eq!(world.result(world.root), Some(Ok(BYTES)), "without page {gone}");
        assert!(whole(&world) == written(1));
    }
}

#[test]
fn memory_is_asked_for_many_pages_at_a_time_and_for_few_when_there_is_little() {
    let world = world();
    let before = world.vm().cache_pages;
    assert!(before >= 64, "the first pages were asked for with many others");
    for number in 0..8 {
        world.make(&format!("/small{number}"), b"content", 0o644, (0, 0));
        (0..3).for_each(|_| assert_eq!(world.content(&format!("/small{number}")), b"content"));
    }
    assert_eq!(world.vm().cache_pages, before, "there are some left");
}

#[test]
fn a_change_that_fails_leaves_what_the_file_system_has() {
    let world = world();
    assert_eq!(world.call(world.root, nr::PWRITE64, &[FILE, 8, PAGE, 0]), Err(Errno::EFAULT));
    assert!(whole(&world) == expected(0..BYTES));
}

#[test]
fn another_file_with_the_same_number_is_another_file() {
    let world = world();
    let number = world.stat(world.root, "/file").unwrap().inode;
    world.call(world.root, nr::CLOSE, &[FILE]).unwrap();
    world.path_call(world.root, nr::UNLINK, "/file", &[]).unwrap();
    world.make("/next", &[b'n'; 5000], 0o666, (0, 0));
    assert_eq!(world.stat(world.root, "/next").unwrap().inode, number, "the number is used again");
    assert!(world.content("/next") == [b'n'; 5000]);
}

#[test]
fn a_read_changes_the_time_of_last_access_as_without_a_cache() {
    let world = world();
    let accessed = |world: &World| world.stat(world.root, "/file").unwrap().accessed_s;
    let first = accessed(&world);
    world.machine.advance_ns(10 * NS_PER_S);
    whole(&world);
    assert_eq!(accessed(&world), first, "nothing has changed since it was read");
    write_at(&world, 0, &[byte(0)]).unwrap();
    world.machine.advance_ns(10 * NS_PER_S);
    whole(&world);
    let second = accessed(&world);
    assert!(second > first, "it was read after it was written");
    world.machine.advance_ns(10 * NS_PER_S);
    write_at(&world, 0, &[byte(0)]).unwrap();
    world.machine.advance_ns(10 * NS_PER_S);
    read_at(&world, 3 * PAGE, 10);
    let third = accessed(&world);
    assert!(third > second, "a part that has not changed was read after it was written");
    world.machine.advance_ns(25 * HOUR_NS);
    // ext2 looks at the clock when it changes something.
    world.make("/other", b"", 0o644, (0, 0));
    whole(&world);
    assert!(accessed(&world) > third, "it was not read for a day");
}

#[test]
fn a_file_that_is_read_from_page_to_page_is_read_ahead_and_another_page_alone() {
    let mut world = World::new();
    world.machine.advance_ns(5 * NS_PER_S);
    world.make("/file", &expected(0..60 * PAGE), 0o666, (0, 0));
    // A successor knows nothing of what was written.
    world.restart_vfs();
    assert_eq!(world.open(world.root, "/file", O_RDWR, 0), Ok(FILE));
    for page in [0, 0, 1, 40] {
        assert!(read_at(&world, page * PAGE, 10) == expected(page * PAGE..page * PAGE + 10));
    }
    let ext2 = world.ext2();
    world.machine.kill(ext2);
    for page in (0..33).chain([40]) {
        assert!(read_at(&world, page * PAGE, 10) == expected(page * PAGE..page * PAGE + 10), "page {page}");
    }
    for page in [33, 39, 41] {
        let reader = world.fork(world.root, 0);
        assert_eq!(world.begin_call(reader, nr::PREAD64, &[FILE, DATA, 10, page * PAGE]), None, "page {page}");
    }
}

#[test]
fn what_is_in_the_cache_is_not_in_that_of_the_file_system_as_well() {
    let mut world = World::new();
    world.make("/file", &[1; 20_000], 0o644, (0, 0));
    world.evict();
    world.restart_vfs();
    assert_eq!(world.content("/file"), [1; 20_000]);
    assert_eq!(world.content("/file"), [1; 20_000]);
    // The cache is empty again.
    world.restart_vfs();
    let file = world.open(world.root, "/file", O_RDONLY, 0).unwrap();
    world.hold_disk();
    assert_eq!(world.begin_call(world.root, nr::READ, &[file, DATA, 20_000]), None, "it waits for the disk");
    world.release_disk();
    assert_eq!(world.result(world.root), Some(Ok(20_000)));
}
