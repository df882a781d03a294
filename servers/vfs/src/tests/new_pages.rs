//! The first page of a new file stays in vfs: everybody reads it, it is never lost, there is room for it, and it ends with its file.

use super::mappings::{MAP_SHARED, PROT_READ, PROT_WRITE, map};
use super::services::PAGE;
use super::*;
use abi::{Endpoint, Errno, linux::nr};
use std::{collections::BTreeMap, format, string::String};

const NS_PER_S: u64 = 1_000_000_000;
const SECTOR_BYTES: u64 = 512;

/// A system whose vfs knows that its file system has room.
fn world() -> World {
    let world = World::new();
    learn(&world);
    world
}

/// The first write to a new file asks.
fn learn(world: &World) {
    world.make("/first", b"asks", 0o644, (0, 0));
    assert_eq!(unlink(world, world.root, "/first"), Ok(0));
}

fn unlink(world: &World, who: Endpoint, path: &str) -> Result<u64> {
    world.path_call(who, nr::UNLINK, path, &[])
}

/// Creates a file with this content, which stays open.
fn create(world: &World, path: &str, content: &[u8]) -> u64 {
    let file = world.open(world.root, path, O_CREAT | O_RDWR, 0o644).unwrap();
    assert_eq!(world.write(world.root, file, content), Ok(content.len() as u64));
    file
}

/// Whether such a write to a new file succeeds although the file system is dead.
fn stays_here(path: &str, flags: u64, position: Option<u64>, bytes: u64) -> bool {
    let mut world = world();
    let file = world.open(world.root, path, O_CREAT | O_RDWR | flags, 0o644).unwrap();
    let address = world.data(world.root, &std::vec![1; bytes as usize]);
    let ext2 = world.ext2();
    world.machine.kill(ext2);
    let result = match position {
        None => world.begin_call(world.root, nr::WRITE, &[file, address, bytes]),
        Some(at) => world.begin_call(world.root, nr::PWRITE64, &[file, address, bytes, at]),
    };
    result == Some(Ok(bytes))
}

#[test]
fn the_first_page_of_a_new_file_is_written_without_its_file_system() {
    assert!(stays_here("/new", 0, None, PAGE));
    assert!(stays_here("/new", 0, None, 1));
    assert!(stays_here("/new", 0, Some(0), 100));
}

#[test]
fn other_writes_to_new_files_go_to_the_file_system() {
    assert!(!stays_here("/new", 0, None, PAGE + 1), "more than a page");
    assert!(!stays_here("/new", 0, Some(1), 10), "a hole before it");
    assert!(!stays_here("/new", O_APPEND, None, 10), "an append");
    assert!(!stays_here("/new", 0o10_000, None, 10), "O_DSYNC");
}

#[test]
fn a_file_that_was_emptied_is_not_new() {
    let mut world = world();
    world.make("/old", b"the old content", 0o644, (0, 0));
    world.call(world.root, nr::SYNC, &[]).unwrap();
    let file = world.open(world.root, "/old", O_TRUNC | O_RDWR, 0o644).unwrap();
    let address = world.data(world.root, b"new");
    let ext2 = world.ext2();
    world.machine.kill(ext2);
    let result = world.begin_call(world.root, nr::WRITE, &[file, address, 3]);
    assert_eq!(result, None, "a power cut would leave neither content");
}

#[test]
fn it_is_told_of_like_any_other() {
    for content in [&b"little"[..], &[7; PAGE as usize]] {
        let mut world = world();
        let file = create(&world, "/new", content);
        let told = |world: &World| {
            let stat = world.stat(world.root, "/new").unwrap();
            assert_eq!(world.fstat(world.root, file).unwrap(), stat);
            assert_eq!(stat.size, content.len() as u64);
            assert!(world.content("/new") == content);
            let address = world.words(world.root, &[0; 18]);
            assert_eq!(world.call(world.root, nr::FSTAT, &[file, address]), Ok(0));
            let words = world.read_words(world.root, address, 18);
            (stat, words[7], words[8])
        };
        let kept = told(&world);
        assert!(kept.2 * SECTOR_BYTES >= content.len() as u64, "it has space");
        assert_eq!(world.call(world.root, nr::FSYNC, &[file]), Ok(0));
        assert_eq!(told(&world), kept, "the same when it is written back");
        world.restart_vfs();
        assert_eq!(told(&world), kept, "the same to a successor");
    }
}

/// A new file, then `act`; its content is what `model` makes of it, now and after deaths.
fn follows(what: &str, act: impl FnOnce(&World, u64), model: impl FnOnce(&[u8]) -> Vec<u8>) {
    let mut world = world();
    let file = create(&world, "/new", b"the content");
    act(&world, file);
    let content = model(b"the content");
    let whole = |world: &World| {
        assert_eq!(world.fstat(world.root, file).unwrap().size, content.len() as u64, "{what}");
        assert!(world.pread(world.root, file, 100, 0).unwrap() == content, "{what}");
    };
    whole(&world);
    world.restart_vfs();
    whole(&world);
    world.call(world.root, nr::SYNC, &[]).unwrap();
    whole(&world);
}

#[test]
fn whatever_follows_finds_it() {
    const SEEK_DATA: u64 = 3;
    let same = <[u8]>::to_vec;
    follows("nothing", |_, _| {}, same);
    follows("more", |world, file| assert_eq!(world.write(world.root, file, b"!!"), Ok(2)), |c| [c, b"!!"].concat());
    follows(
        "a write over it",
        |world, file| assert_eq!(world.pwrite(world.root, file, b"THE", 0), Ok(3)),
        |c| [b"THE", &c[3..]].concat(),
    );
    follows(
        "truncate",
        |world, file| assert_eq!(world.call(world.root, nr::FTRUNCATE, &[file, 3]), Ok(0)),
        |c| c[..3].to_vec(),
    );
    follows(
        "opened anew with O_TRUNC, and written",
        |world, _| {
            let file = world.open(world.root, "/new", O_TRUNC | O_WRONLY, 0).unwrap();
            assert_eq!(world.write(world.root, file, b"new"), Ok(3));
        },
        |_| b"new".to_vec(),
    );
    follows("SEEK_DATA", |world, file| assert_eq!(world.seek(world.root, file, 0, SEEK_DATA), Ok(0)), same);
    follows(
        "link, and the end of the first name",
        |world, _| {
            assert_eq!(world.paths_call(world.root, nr::LINK, "/new", "/link"), Ok(0));
            assert_eq!(unlink(world, world.root, "/new"), Ok(0));
            assert!(world.content("/link") == b"the content");
        },
        same,
    );
    follows(
        "rename",
        |world, _| {
            world.paths_call(world.root, nr::RENAME, "/new", "/renamed").unwrap();
            assert!(world.content("/renamed") == b"the content");
        },
        same,
    );
    follows("the end of its name", |world, _| assert_eq!(unlink(world, world.root, "/new"), Ok(0)), same);
    follows("chmod", |world, file| assert_eq!(world.call(world.root, nr::FCHMOD, &[file, 0o600]), Ok(0)), same);
    follows(
        "a mapping",
        |world, file| assert_eq!(map(world, file, 0, PAGE, MAP_SHARED | PROT_READ | PROT_WRITE).1, 0),
        same,
    );
    follows(
        "copy_file_range",
        |world, file| {
            let to = world.open(world.root, "/copy", O_CREAT | O_RDWR, 0o644).unwrap();
            assert_eq!(world.call(world.root, nr::COPY_FILE_RANGE, &[file, 0, to, 0, 100, 0]), Ok(0), "at its end");
            world.seek(world.root, file, 0, SEEK_SET).unwrap();
            assert_eq!(world.call(world.root, nr::COPY_FILE_RANGE, &[file, 0, to, 0, 100, 0]), Ok(11));
            assert!(world.content("/copy") == b"the content");
        },
        same,
    );
}

#[test]
fn syncs_bring_it_to_the_disk_and_so_does_time() {
    let mark = |mark: &str| format!("{mark:*<100}").into_bytes();
    let acts: [(&str, fn(&World, u64)); 4] = [
        ("fsync", |world, file| assert_eq!(world.call(world.root, nr::FSYNC, &[file]), Ok(0))),
        ("sync", |world, _| assert_eq!(world.call(world.root, nr::SYNC, &[]), Ok(0))),
        ("syncfs", |world, file| assert_eq!(world.call(world.root, nr::SYNCFS, &[file]), Ok(0))),
        ("time", |world, _| (0..8).for_each(|_| world.machine.advance_ns(NS_PER_S))),
    ];
    for (what, act) in acts {
        let world = world();
        let file = create(&world, "/new", &mark(what));
        assert!(!world.is_on_disk(&mark(what)), "{what}");
        act(&world, file);
        assert!(world.is_on_disk(&mark(what)), "{what}");
    }
}

/// Free blocks and inodes.
fn free(world: &World) -> (u64, u64) {
    let address = world.words(world.root, &[0; 15]);
    assert_eq!(world.path_call(world.root, nr::STATFS, "/", &[address]), Ok(0));
    let words = world.read_words(world.root, address, 15);
    (words[3], words[6])
}

#[test]
fn it_ends_with_its_name() {
    let world = world();
    let before = free(&world);
    for round in 0..50_u8 {
        let file = create(&world, "/new", &[round; 100]);
        world.close(world.root, file).unwrap();
        assert_eq!(unlink(&world, world.root, "/new"), Ok(0));
        assert_eq!(world.stat(world.root, "/new"), Err(Errno::ENOENT));
        // Of the same number.
        let other = world.open(world.root, "/other", O_CREAT | O_RDWR, 0o644).unwrap();
        assert_eq!(world.fstat(world.root, other).unwrap().size, 0);
        world.call(world.root, nr::SYNC, &[]).unwrap();
        assert_eq!(world.read(world.root, other, 100).unwrap(), b"");
        world.close(world.root, other).unwrap();
        assert_eq!(unlink(&world, world.root, "/other"), Ok(0));
    }
    assert_eq!(free(&world), before);
    assert_eq!(world.call(world.root, nr::FSYNC, &[world.open(world.root, "/", O_RDONLY, 0).unwrap()]), Ok(0));
}

/// A new file that is closed, and a child that begins to remove it while the disk is busy.
fn begin_unlink(world: &World) -> (Endpoint, [u64; 1]) {
    let large = std::vec![0; 1_500_000];
    world.make("/large", &large, 0o644, (0, 0));
    world.make_directory("/dir", 0o755, (0, 0));
    let file = create(world, "/dir/new", b"the content");
    world.close(world.root, file).unwrap();
    let child = world.fork(world.root, 0);
    let call = [world.path(child, 0, "/dir/new")];
    world.hold_disk();
    let _ = world.begin_call(child, nr::UNLINK, &call);
    (child, call)
}

#[test]
fn a_death_of_vfs_while_it_is_removed_leaves_nothing_of_it_in_another_file() {
    let mut world = world();
    let (child, call) = begin_unlink(&world);
    world.restart_vfs();
    world.machine.forget_request(child);
    world.release_disk();
    let repeated = world.repeat_call(child, nr::UNLINK, &call);
    assert!(matches!(repeated, Some(Ok(0) | Err(Errno::ENOENT))), "{repeated:?}");
    let file = world.open(world.root, "/dir/other", O_CREAT | O_RDWR, 0o644).unwrap();
    world.call(world.root, nr::SYNC, &[]).unwrap();
    assert_eq!(world.fstat(world.root, file).unwrap().size, 0);
    assert_eq!(world.read(world.root, file, 100).unwrap(), b"");
}

#[test]
fn a_file_system_that_dies_before_it_has_the_page_gets_it_from_vfs() {
    let mut world = world();
    let file = create(&world, "/new", b"the content");
    world.machine.kill(world.ext2());
    assert_eq!(world.begin_call(world.root, nr::FSYNC, &[file]), None);
    world.restart_ext2();
    assert_eq!(world.result(world.root), Some(Ok(0)));
    assert!(world.content("/new") == b"the content" && world.is_on_disk(b"the content"));
}

#[test]
fn what_was_accepted_on_a_disk_that_gets_full_is_there() {
    for bytes in [100, PAGE as usize] {
        let mut world = world();
        world.make("/large", &std::vec![0; 2_000_000], 0o644, (0, 0));
        let mut accepted = Vec::new();
        let error = loop {
            let path = format!("/{}", accepted.len());
            let content = std::vec![accepted.len() as u8; bytes];
            let file = match world.open(world.root, &path, O_CREAT | O_RDWR, 0o644) {
                Ok(file) => file,
                Err(error) => break error,
            };
            let written = world.write(world.root, file, &content);
            world.close(world.root, file).unwrap();
            match written {
                Ok(written) if written == bytes as u64 => accepted.push(content),
                Ok(_) => break Errno::ENOSPC,
                Err(error) => break error,
            }
            if accepted.len() % 50 == 49 {
                // Others take room too, and give it back.
                world.call(world.root, nr::TRUNCATE, &[world.path(world.root, 0, "/large"), 1_000_000]).unwrap();
            }
        };
        assert_eq!(error, Errno::ENOSPC);
        let check = |world: &World| {
            for (number, content) in accepted.iter().enumerate() {
                let found = world.content(&format!("/{number}"));
                assert!(found == *content, "{number} of {}: {} bytes {:?}", accepted.len(), found.len(), found.first());
            }
        };
        check(&world);
        world.restart_vfs();
        check(&world);
        world.call(world.root, nr::SYNC, &[]).unwrap();
        world.restart_vfs();
        check(&world);
    }
}

#[test]
fn a_closed_file_is_written_by_a_successor() {
    let mut world = world();
    let closed = |path: &str| world.close(world.root, create(&world, path, b"the content"));
    assert_eq!((closed("/new"), closed("/newer")), (Ok(0), Ok(0)));
    world.restart_vfs();
    assert!(world.content("/new") == b"the content" && world.content("/newer") == b"the content");
}

#[test]
fn more_files_than_there_are_pages_for_are_written_all_the_same() {
    let world = world();
    let user = world.user(1000, 100);
    world.make_directory("/dir", 0o777, (0, 0));
    let path = |number: u8| format!("/dir/{number}");
    for number in 0..100 {
        let file = world.open(user, &path(number), O_CREAT | O_RDWR, 0o644).unwrap();
        assert_eq!(world.write(user, file, &[number; 10]), Ok(10));
        world.close(user, file).unwrap();
    }
    (0..100).for_each(|number| assert_eq!(world.content(&path(number)), [number; 10]));
}

/// Random operations on a few names against a model, with deaths of vfs.
#[test]
fn it_is_what_a_model_says() {
    let mut below = random(11);
    let mut world = world();
    let mut model: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    for step in 0..1_500_u64 {
        let (path, other) = (format!("/{}", below(8)), format!("/{}", below(8)));
        let content = std::vec![step as u8; 1 + below(5000) as usize];
        match below(16) {
            0..6 => {
                let file = world.open(world.root, &path, O_CREAT | O_TRUNC | O_RDWR, 0o644).unwrap();
                assert_eq!(world.write(world.root, file, &content), Ok(content.len() as u64));
                world.close(world.root, file).unwrap();
                model.insert(path, content);
            }
            6..8 => {
                let expected = if model.remove(&path).is_some() { Ok(0) } else { Err(Errno::ENOENT) };
                assert_eq!(unlink(&world, world.root, &path), expected, "step {step}");
            }
            8 if path != other && model.contains_key(&path) => {
                assert_eq!(world.paths_call(world.root, nr::RENAME, &path, &other), Ok(0));
                let moved = model.remove(&path).unwrap();
                model.insert(other, moved);
            }
            9 => assert_eq!(world.call(world.root, nr::SYNC, &[]), Ok(0)),
            10 if below(4) == 0 => {
                world.restart_vfs();
                learn(&world);
            }
            _ => match model.get(&path) {
                Some(content) => {
                    assert!(world.content(&path) == *content, "step {step}");
                    assert_eq!(world.stat(world.root, &path).unwrap().size, content.len() as u64, "step {step}");
                }
                None => assert_eq!(world.stat(world.root, &path), Err(Errno::ENOENT)),
            },
        }
    }
    model.iter().for_each(|(path, content)| assert!(world.content(path) == *content));
}
