//! Dirty pages: what programs write over in a file is what everybody reads from then on, whoever is asked, and whoever dies.
//! The file is long because so much ends them.

use super::mappings::{MAP_SHARED, PROT_READ, PROT_WRITE, map, store};
use super::meanwhile::expected;
use super::services::PAGE;
use super::*;
use abi::{Errno, linux::nr};
use std::{format, string::String};

const BYTES: u64 = 20 * PAGE + 100;
const NS_PER_S: u64 = 1_000_000_000;
const FILE: u64 = 0;

/// A file that is open, was written over twice, and holds what [`expected`] says.
fn world() -> World {
    world_with(|_| {}, "/file")
}

/// The same, after `begin`.
fn world_with(begin: impl FnOnce(&mut World), path: &str) -> World {
    let mut world = World::new();
    begin(&mut world);
    world.machine.advance_ns(5 * NS_PER_S);
    world.make(path, &expected(0..BYTES), 0o666, (0, 0));
    assert_eq!(world.open(world.root, path, O_RDWR, 0), Ok(FILE));
    admit(&world);
    world
}

/// Writes over a page until the file system is not asked any more.
fn admit(world: &World) {
    (0..2).for_each(|_| assert_eq!(write_at(world, 0, &expected(0..PAGE)), Ok(PAGE)));
}

fn write_at(world: &World, position: u64, bytes: &[u8]) -> Result<u64> {
    world.pwrite(world.root, FILE, bytes, position as i64)
}

fn new_page(mark: u8) -> Vec<u8> {
    std::vec![mark; PAGE as usize]
}

/// The file's content.
fn whole(world: &World) -> Vec<u8> {
    let mut content = Vec::new();
    while let piece @ [_, ..] = &world.pread(world.root, FILE, 5 * PAGE as usize, content.len() as i64).unwrap()[..] {
        content.extend(piece);
    }
    content
}

/// `content` with `bytes` at `position`.
fn changed(mut content: Vec<u8>, position: u64, bytes: &[u8]) -> Vec<u8> {
    content[position as usize..position as usize + bytes.len()].copy_from_slice(bytes);
    content
}

/// Whether a write succeeds although the file system is dead.
fn stays_here(world: &mut World, position: u64, bytes: &[u8]) -> bool {
    let ext2 = world.ext2();
    world.machine.kill(ext2);
    let address = world.data(world.root, bytes);
    let length = bytes.len() as u64;
    world.begin_call(world.root, nr::PWRITE64, &[FILE, address, length, position]) == Some(Ok(length))
}

#[test]
fn a_file_that_is_written_over_again_is_written_without_its_file_system() {
    let mut world = world();
    assert!(stays_here(&mut world, PAGE, &new_page(1)));
    for (position, bytes) in [(PAGE, 8), (PAGE + 100, 1), (2 * PAGE - 8, 8)] {
        let new = std::vec![position as u8; bytes];
        assert_eq!(write_at(&world, position, &new), Ok(bytes as u64), "a part of a dirty page");
        assert_eq!(world.pread(world.root, FILE, bytes, position as i64).unwrap(), new);
    }
    assert_eq!(write_at(&world, 2 * PAGE, &std::vec![7; 4 * PAGE as usize]), Ok(4 * PAGE));
    assert_eq!(write_at(&world, 20 * PAGE, &[9; 100]), Ok(100), "the last page, as far as the file has it");
    assert_eq!(world.pread(world.root, FILE, 50, 20 * PAGE as i64 + 60).unwrap(), [9; 40]);
    assert_eq!(world.pread(world.root, FILE, 200, 5 * PAGE as i64 - 100).unwrap(), [7; 200], "across two");
    world.seek(world.root, FILE, PAGE as i64, SEEK_SET).unwrap();
    assert_eq!(world.write(world.root, FILE, &new_page(3)), Ok(PAGE));
    assert_eq!(world.position(world.root, FILE), 2 * PAGE);
}

#[test]
fn behind_the_end_of_a_file_there_is_nothing_of_another_page() {
    let world = world();
    for page in 0..6 {
        assert_eq!(write_at(&world, page * PAGE, &new_page(b'x')), Ok(PAGE));
    }
    assert_eq!(world.call(world.root, nr::FSYNC, &[FILE]), Ok(0));
    admit(&world);
    assert_eq!(write_at(&world, 20 * PAGE, &[b'e'; 100]), Ok(100));
    assert_eq!(write_at(&world, BYTES + 1000, b"further"), Ok(7));
    assert_eq!(world.pread(world.root, FILE, 1000, BYTES as i64).unwrap(), [0; 1000]);
    assert_eq!(world.pread(world.root, FILE, 10, BYTES as i64 - 5).unwrap(), b"eeeee\0\0\0\0\0");
}

#[test]
fn other_writes_go_to_the_file_system() {
    for (what, position, bytes) in [
        ("a part of a page", PAGE + 1, 100),
        ("two parts of pages", PAGE + 1, PAGE),
        ("behind the end", BYTES, 100),
        ("beyond the end", 20 * PAGE, PAGE),
        ("more than is taken at once", 0, 17 * PAGE),
    ] {
        let mut world = world();
        assert!(!stays_here(&mut world, position, &std::vec![1; bytes as usize]), "{what}");
    }
}

#[test]
fn a_file_that_was_just_made_or_written_over_once_is_written_by_its_file_system() {
    let mut world = World::new();
    world.make("/file", &expected(0..BYTES), 0o666, (0, 0));
    world.open(world.root, "/file", O_RDWR, 0).unwrap();
    assert_eq!(write_at(&world, 0, &new_page(1)), Ok(PAGE));
    assert!(!stays_here(&mut world, 0, &new_page(2)));
}

#[test]
fn what_has_no_space_is_written_by_its_file_system() {
    let mut world = World::new();
    world.make("/file", b"", 0o666, (0, 0));
    world.open(world.root, "/file", O_RDWR, 0).unwrap();
    world.call(world.root, nr::FTRUNCATE, &[FILE, BYTES]).unwrap();
    (0..4).for_each(|_| assert_eq!(write_at(&world, 2 * PAGE, &new_page(1)), Ok(PAGE)));
    assert!(!stays_here(&mut world, 2 * PAGE, &new_page(1)), "there are holes before it");
}

/// Nothing is written over any more without the file system once `act` has changed the file.
fn ends(what: &str, act: impl FnOnce(&World)) {
    let mut world = world();
    assert_eq!(write_at(&world, PAGE, &new_page(1)), Ok(PAGE));
    act(&world);
    assert!(!stays_here(&mut world, PAGE, &new_page(2)), "{what}");
}

#[test]
fn whatever_else_changes_the_file_ends_it() {
    const PUNCH: u64 = 3;
    let on_file = |world: &World, number, arguments: &[u64]| {
        world.call(world.root, number, &[&[FILE], arguments].concat()).unwrap();
    };
    ends("chmod", |world| on_file(world, nr::FCHMOD, &[0o644]));
    ends("chown", |world| on_file(world, nr::FCHOWN, &[7, 7]));
    ends("truncate", |world| on_file(world, nr::FTRUNCATE, &[10 * PAGE]));
    ends("extend", |world| on_file(world, nr::FTRUNCATE, &[30 * PAGE]));
    ends("punch", |world| on_file(world, nr::FALLOCATE, &[PUNCH, PAGE, PAGE]));
    ends("unlink", |world| assert_eq!(world.path_call(world.root, nr::UNLINK, "/file", &[]), Ok(0)));
    ends("sync", |world| on_file(world, nr::FSYNC, &[]));
    ends("a shared mapping", |world| {
        assert_eq!(map(world, FILE, 0, PAGE, MAP_SHARED | PROT_READ | PROT_WRITE).1, 0);
    });
}

/// A page is dirty, then `act` is done; everybody reads what `model` makes of the content, now and after deaths.
fn follows(what: &str, act: impl FnOnce(&World), model: impl FnOnce(Vec<u8>) -> Vec<u8>) {
    let mut world = world();
    assert_eq!(write_at(&world, 3 * PAGE, &new_page(b'd')), Ok(PAGE));
    act(&world);
    let content = model(changed(expected(0..BYTES), 3 * PAGE, &new_page(b'd')));
    assert!(whole(&world) == content, "{what}");
    world.restart_vfs();
    assert!(whole(&world) == content, "{what}, to a successor");
    world.call(world.root, nr::SYNC, &[]).unwrap();
    assert!(whole(&world) == content, "{what}, when it is synced");
}

#[test]
fn everybody_sees_what_was_written() {
    let other = |world: &World| {
        world.make("/other", b"", 0o644, (0, 0));
        world.open(world.root, "/other", O_RDWR, 0).unwrap()
    };
    let is_copied = |world: &World| {
        let copy = world.content("/other");
        assert!(copy == changed(expected(0..BYTES), 3 * PAGE, &new_page(b'd')));
    };
    let same = |content: Vec<u8>| content;
    follows("nothing", |_| {}, same);
    follows(
        "copy_file_range",
        |world| {
            let to = other(world);
            assert_eq!(world.call(world.root, nr::COPY_FILE_RANGE, &[FILE, 0, to, 0, BYTES, 0]), Ok(BYTES));
            is_copied(world);
        },
        same,
    );
    follows(
        "sendfile",
        |world| {
            let to = other(world);
            assert_eq!(world.call(world.root, nr::SENDFILE, &[to, FILE, 0, BYTES]), Ok(BYTES));
            is_copied(world);
        },
        same,
    );
    follows(
        "write of a part of another page",
        |world| assert_eq!(write_at(world, 10, b"new"), Ok(3)),
        |content| changed(content, 10, b"new"),
    );
    follows(
        "write across its end",
        |world| assert_eq!(write_at(world, 4 * PAGE - 1, b"new"), Ok(3)),
        |content| changed(content, 4 * PAGE - 1, b"new"),
    );
    follows(
        "append",
        |world| assert_eq!(write_at(world, BYTES, b"new"), Ok(3)),
        |content| [&content[..], b"new"].concat(),
    );
    follows(
        "truncate within it",
        |world| assert_eq!(world.call(world.root, nr::FTRUNCATE, &[FILE, 3 * PAGE + 10]), Ok(0)),
        |content| content[..3 * PAGE as usize + 10].to_vec(),
    );
    follows(
        "truncate before it, and extend",
        |world| {
            assert_eq!(world.call(world.root, nr::FTRUNCATE, &[FILE, PAGE]), Ok(0));
            assert_eq!(world.call(world.root, nr::FTRUNCATE, &[FILE, BYTES]), Ok(0));
        },
        |content| [&content[..PAGE as usize], &std::vec![0; (BYTES - PAGE) as usize]].concat(),
    );
    follows(
        "punch",
        |world| assert_eq!(world.call(world.root, nr::FALLOCATE, &[FILE, 3, 3 * PAGE, 10]), Ok(0)),
        |content| changed(content, 3 * PAGE, &[0; 10]),
    );
    follows(
        "a store to a mapping",
        |world| {
            let (object, error, _) = map(world, FILE, 3 * PAGE, PAGE, MAP_SHARED | PROT_READ | PROT_WRITE);
            assert_eq!(error, 0);
            store(world, object, 3 * PAGE + 10, b'm');
        },
        |content| changed(content, 3 * PAGE + 10, b"m"),
    );
    follows(
        "another name",
        |world| {
            world.paths_call(world.root, nr::RENAME, "/file", "/renamed").unwrap();
            let content = world.content("/renamed");
            assert!(content == changed(expected(0..BYTES), 3 * PAGE, &new_page(b'd')));
        },
        same,
    );
}

#[test]
fn syncs_bring_it_to_the_disk_and_so_does_time() {
    let mark = |mark: &str| format!("{mark:*<100}").into_bytes();
    let sync: [(&str, fn(&World)); 5] = [
        ("fsync", |world| assert_eq!(world.call(world.root, nr::FSYNC, &[FILE]), Ok(0))),
        ("fdatasync", |world| assert_eq!(world.call(world.root, nr::FDATASYNC, &[FILE]), Ok(0))),
        ("sync", |world| assert_eq!(world.call(world.root, nr::SYNC, &[]), Ok(0))),
        ("syncfs", |world| {
            let other = world.open(world.root, "/", O_RDONLY, 0).unwrap();
            assert_eq!(world.call(world.root, nr::SYNCFS, &[other]), Ok(0));
        }),
        ("time", |world| (0..8).for_each(|_| world.machine.advance_ns(NS_PER_S))),
    ];
    for (what, act) in sync {
        let world = world();
        let page = [&mark(what)[..], &new_page(0)[100..]].concat();
        assert_eq!(write_at(&world, PAGE, &page), Ok(PAGE));
        assert!(!world.is_on_disk(&mark(what)), "{what}");
        act(&world);
        assert!(world.is_on_disk(&mark(what)), "{what}");
    }
}

#[test]
fn a_write_that_is_to_be_synced_is() {
    let world = world();
    let synced = world.open(world.root, "/file", O_RDWR | 0o10_000, 0).unwrap();
    let page = [&b"to be on the disk at once"[..], &new_page(0)[25..]].concat();
    assert_eq!(world.pwrite(world.root, synced, &page, PAGE as i64), Ok(PAGE));
    assert!(world.is_on_disk(b"to be on the disk at once"));
}

#[test]
fn what_is_renamed_into_place_has_its_content_first() {
    let world = world();
    let page = [&b"the content of what is renamed"[..], &new_page(0)[30..]].concat();
    assert_eq!(write_at(&world, PAGE, &page), Ok(PAGE));
    world.paths_call(world.root, nr::RENAME, "/file", "/renamed").unwrap();
    let root = world.open(world.root, "/", O_RDONLY, 0).unwrap();
    assert_eq!(world.call(world.root, nr::FSYNC, &[root]), Ok(0));
    assert!(world.is_on_disk(b"the content of what is renamed"));
}

#[test]
fn the_times_are_those_of_the_write() {
    let mut world = world();
    let times = |world: &World| {
        let stat = world.fstat(world.root, FILE).unwrap();
        assert_eq!(world.stat(world.root, "/file").unwrap(), stat);
        stat.modified_s
    };
    let first = times(&world);
    world.machine.advance_ns(2 * NS_PER_S);
    assert_eq!(write_at(&world, PAGE, &new_page(1)), Ok(PAGE));
    let written = times(&world);
    assert_eq!(written, first + 2);
    world.machine.advance_ns(2 * NS_PER_S);
    assert_eq!(times(&world), written);
    world.call(world.root, nr::FSYNC, &[FILE]).unwrap();
    assert_eq!(times(&world), written, "written back later");
    world.restart_vfs();
    assert_eq!(times(&world), written);
    admit(&world);
    world.machine.advance_ns(2 * NS_PER_S);
    assert_eq!(write_at(&world, PAGE, &new_page(2)), Ok(PAGE));
    let written = times(&world);
    world.machine.advance_ns(2 * NS_PER_S);
    world.restart_vfs();
    assert_eq!(times(&world), written, "a predecessor has accepted it");
    let set = world.words(world.root, &[11, 0, 22, 0]);
    admit(&world);
    assert_eq!(write_at(&world, PAGE, &new_page(1)), Ok(PAGE));
    assert_eq!(world.path_call(world.root, nr::UTIMES, "/file", &[set]), Ok(0));
    world.call(world.root, nr::FSYNC, &[FILE]).unwrap();
    assert_eq!(times(&world), 22, "what was written before does not change it");
}

#[test]
fn a_program_without_such_memory_gets_its_error() {
    let world = world();
    for position in [0, PAGE] {
        assert_eq!(world.call(world.root, nr::PWRITE64, &[FILE, 8, PAGE, position]), Err(Errno::EFAULT));
    }
    assert!(whole(&world) == expected(0..BYTES));
}

#[test]
fn users_have_shares() {
    let world = world();
    let user = world.user(1000, 100);
    for page in 0..20 {
        assert_eq!(world.pwrite(user, FILE, &new_page(page as u8), page * PAGE as i64), Ok(PAGE));
    }
    for page in 0..20 {
        assert_eq!(world.pread(user, FILE, PAGE as usize, page * PAGE as i64).unwrap(), new_page(page as u8));
    }
}

#[test]
fn a_file_in_memory_has_dirty_pages_too() {
    let begin = |world: &mut World| {
        world.mount_tmpfs("/tmp");
    };
    let mut world = world_with(begin, "/tmp/file");
    assert_eq!(write_at(&world, PAGE, &new_page(1)), Ok(PAGE));
    let content = changed(expected(0..BYTES), PAGE, &new_page(1));
    world.restart_vfs();
    assert!(whole(&world) == content);
    admit(&world);
    assert_eq!(write_at(&world, PAGE, &new_page(2)), Ok(PAGE));
    assert_eq!(world.close(world.root, FILE), Ok(0));
    assert_eq!(world.path_call(world.root, nr::UMOUNT2, "/tmp", &[0]), Ok(0), "nothing of it is in use");
}

#[test]
fn a_file_system_with_dirty_pages_dies_and_they_are_written_to_its_successor() {
    let mut world = world();
    assert!(stays_here(&mut world, PAGE, &new_page(5)));
    assert_eq!(world.begin_call(world.root, nr::FSYNC, &[FILE]), None);
    world.restart_ext2();
    assert_eq!(world.result(world.root), Some(Ok(0)));
    assert!(whole(&world) == changed(expected(0..BYTES), PAGE, &new_page(5)));
}

/// Random operations against a model, with deaths of vfs.
#[test]
fn it_is_what_a_model_says() {
    let mut below = random(7);
    let mut world = world();
    let mut model = expected(0..BYTES);
    let mut log = String::new();
    for step in 0..1_500_u64 {
        let (page, mark) = (below(22), step as u8);
        let kind = below(20);
        log = format!("{log}{kind}/{page} ");
        match kind {
            0..8 => {
                let bytes = (1 + below(3)) * PAGE;
                overwrite(&world, &mut model, page * PAGE, &std::vec![mark; bytes as usize]);
            }
            8..11 => {
                overwrite(&world, &mut model, page * PAGE + below(PAGE), &std::vec![mark; 1 + below(300) as usize])
            }
            11 => {
                let size = below(25 * PAGE);
                assert_eq!(world.call(world.root, nr::FTRUNCATE, &[FILE, size]), Ok(0));
                model.resize(size as usize, 0);
            }
            12 => assert_eq!(world.call(world.root, nr::FSYNC, &[FILE]), Ok(0)),
            13 => {
                world.restart_vfs();
            }
            _ => {
                let bytes = below(4 * PAGE) as usize;
                let start = (page * PAGE + below(PAGE)) as usize;
                let read = world.pread(world.root, FILE, bytes, start as i64).unwrap();
                let end = (start + bytes).min(model.len());
                assert!(read == model[start.min(end)..end], "step {step}: {bytes} at {start} after {log}");
            }
        }
        assert_eq!(world.fstat(world.root, FILE).unwrap().size, model.len() as u64);
    }
    assert!(whole(&world) == model);
}

fn overwrite(world: &World, model: &mut Vec<u8>, position: u64, bytes: &[u8]) {
    assert_eq!(write_at(world, position, bytes), Ok(bytes.len() as u64));
    let (start, end) = (position as usize, position as usize + bytes.len());
    if model.len() < end {
        model.resize(end, 0);
    }
    model[start..end].copy_from_slice(bytes);
}

#[test]
fn after_a_hole_was_punched_only_what_lies_before_it_is_written_over_without_the_file_system() {
    let punch = |world: &World| {
        assert_eq!(world.call(world.root, nr::FALLOCATE, &[FILE, 3, 5 * PAGE, PAGE]), Ok(0));
        admit(world);
    };
    for (page, expected) in [(0, true), (4, true), (5, false), (6, false)] {
        let mut world = world();
        punch(&world);
        assert_eq!(stays_here(&mut world, page * PAGE, &new_page(1)), expected, "page {page}");
    }
}

#[test]
fn the_end_of_a_file_is_written_over_without_the_file_system_again_after_a_sync() {
    let mut world = world();
    assert_eq!(world.call(world.root, nr::FSYNC, &[FILE]), Ok(0));
    assert_eq!(write_at(&world, 20 * PAGE, &[1; 100]), Ok(100));
    assert!(stays_here(&mut world, 20 * PAGE, &[2; 100]));
}

#[test]
fn a_file_is_written_over_without_the_file_system_up_to_the_limit_of_file_sizes() {
    for (limit, expected) in [(2 * PAGE, true), (2 * PAGE - 1, false)] {
        let mut world = world();
        world.set_limits(world.root, 1024, limit);
        assert_eq!(stays_here(&mut world, PAGE, &new_page(1)), expected, "{limit}");
    }
}

/// Its dirty pages are what the other name shows, of which vfs does not know that it is one of this file.
#[test]
fn a_name_of_two_is_removed_and_the_dirty_pages_stay() {
    for grows in [false, true] {
        let mut world = World::new();
        world.make("/file", &expected(0..BYTES), 0o666, (0, 0));
        assert_eq!(world.paths_call(world.root, nr::LINK, "/file", "/other"), Ok(0));
        world.restart_vfs();
        // The first write to a new file asks how much room there is.
        world.make("/first", b"asks", 0o644, (0, 0));
        assert_eq!(world.open(world.root, "/file", O_RDWR, 0), Ok(FILE));
        admit(&world);
        let (position, new) = if grows { (BYTES, vec![b'a'; 50]) } else { (PAGE, new_page(b'd')) };
        let asked = world.machine.messages(world.ext2());
        assert_eq!(write_at(&world, position, &new), Ok(new.len() as u64));
        assert_eq!(world.machine.messages(world.ext2()), asked, "{grows}: it is dirty");
        world.close(world.root, FILE).unwrap();
        assert_eq!(world.path_call(world.root, nr::UNLINK, "/file", &[]), Ok(0));
        let mut wanted = expected(0..BYTES);
        wanted.resize(wanted.len().max(position as usize + new.len()), 0);
        let wanted = changed(wanted, position, &new);
        assert!(world.content("/other") == wanted, "{grows}");
        world.restart_vfs();
        assert!(world.content("/other") == wanted, "{grows}, a successor");
    }
}

#[test]
fn dirty_pages_of_a_file_that_is_removed_do_not_come_into_the_next_one_of_its_number() {
    let world = world();
    let number = world.fstat(world.root, FILE).unwrap().inode;
    admit(&world);
    (1..4).for_each(|page| assert_eq!(write_at(&world, page * PAGE, &new_page(b'd')), Ok(PAGE)));
    world.close(world.root, FILE).unwrap();
    assert_eq!(world.path_call(world.root, nr::UNLINK, "/file", &[]), Ok(0));
    let next = expected(0..6 * PAGE);
    world.make("/next", &next, 0o644, (0, 0));
    assert_eq!(world.stat(world.root, "/next").unwrap().inode, number, "the number is used again");
    world.call(world.root, nr::SYNC, &[]).unwrap();
    assert!(world.content("/next") == next);
}

/// Maps the file and has vm sync it.
fn msync(world: &World) -> Result<u64> {
    let (object, error, _) = map(world, FILE, 0, PAGE, MAP_SHARED | PROT_READ);
    assert_eq!(error, 0);
    world.vm().syncs.push((world.root, object));
    world.notify_from_vm();
    match world.vm().synced.pop().expect("vfs has synced it") {
        0 => Ok(0),
        error => Err(Errno(error)),
    }
}

#[test]
fn a_lost_last_page_is_told_to_the_next_sync_and_the_file_is_as_long_as_the_disk_has_it() {
    const SEEK_HOLE: u64 = 4;
    let fsync = |world: &World| world.call(world.root, nr::FSYNC, &[FILE]);
    let syncs: [(&str, fn(&World) -> Result<u64>); 2] = [("fsync", fsync), ("msync", msync)];
    for (by, sync) in syncs {
        for is_lost_before in [true, false] {
            let world = World::new();
            world.make("/log", &expected(0..100), 0o666, (0, 0));
            world.make("/large", &std::vec![0; 1_500_000], 0o644, (0, 0));
            assert_eq!(world.open(world.root, "/log", O_RDWR, 0), Ok(FILE));
            world.call(world.root, nr::SYNC, &[]).unwrap();
            // Its file system has forgotten what is on the disk.
            world.content("/large");
            assert_eq!(write_at(&world, 100, b"appended"), Ok(8));
            assert_eq!(world.fstat(world.root, FILE).unwrap().size, 108);
            world.disk.lock().unwrap().broken_from = Some(0);
            if is_lost_before {
                // Its result does not matter: the page is written first.
                let _ = world.seek(world.root, FILE, 0, SEEK_HOLE);
            } else {
                assert_eq!(fsync(&world), Err(Errno::EIO));
            }
            world.disk.lock().unwrap().broken_from = None;
            assert_eq!(world.fstat(world.root, FILE).unwrap().size, 100, "{by}");
            assert!(world.content("/log") == expected(0..100));
            let told = if is_lost_before { Err(Errno::EIO) } else { Ok(0) };
            assert_eq!([sync(&world), sync(&world)], [told, Ok(0)], "{by}: it is told once");
        }
    }
}
