//! Indexed directories: as they grow, as e2fsprogs makes and checks them, and while they are listed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use crate::common::{FileDevice, Names, Places, ROOT_USER, Random, Scratch, check, debugfs, list, mount};
use ext2::Ext2;
use fs::Errno;
use fs::file_system::{FileSystem, NodeId};

const ROOT: NodeId = 2;

type Volume = Ext2<FileDevice>;

/// The name with this number; every eleventh is as long as names may be.
fn name(number: usize) -> Vec<u8> {
    let length = if number.is_multiple_of(11) { 255 } else { 8 + number % 17 };
    format!("{number:x<length$}").into_bytes()
}

fn make(volume: &mut Volume, dir: NodeId, name: &[u8]) -> NodeId {
    volume.make_node(dir, name, 0o100_644, 0, ROOT_USER).unwrap()
}

/// A directory that is called `dir`.
fn directory(volume: &mut Volume) -> NodeId {
    volume.make_dir(ROOT, b"dir", 0o755, ROOT_USER).unwrap()
}

fn is_indexed(path: &Path) -> bool {
    String::from_utf8_lossy(&debugfs(path, "stat dir")).contains("Flags: 0x1000")
}

/// The names in a directory without `.` and `..`, each once.
fn names(volume: &mut Volume, dir: NodeId) -> BTreeSet<Vec<u8>> {
    let all: Vec<Vec<u8>> = list(volume, dir).into_iter().map(|(name, ..)| name).collect();
    assert_eq!(all[..2], [b".".to_vec(), b"..".to_vec()]);
    let set: BTreeSet<_> = all[2..].iter().cloned().collect();
    assert_eq!(set.len(), all.len() - 2, "each name is listed once");
    set
}

fn unmount(mut volume: Volume, path: &Path) {
    volume.unmount().unwrap();
    drop(volume);
    check(path);
}

#[test]
fn a_directory_gets_an_index_with_its_second_block_and_e2fsck_agrees_at_every_size() {
    for (block_size, sizes) in [("1024", [10, 60, 400, 4000]), ("4096", [60, 300, 2000, 6000])] {
        let scratch = Scratch::new();
        let path = scratch.image(32 << 10, &["-b", block_size, "-N", "8192"]);
        let mut volume = mount(&path);
        let dir = directory(&mut volume);
        let mut made = 0;
        for size in sizes {
            (made..size).for_each(|number| {
                make(&mut volume, dir, &name(number));
            });
            made = size;
            assert!((0..made).all(|number| volume.lookup(dir, &name(number)).is_ok()));
            assert_eq!(volume.lookup(dir, &name(made)), Err(Errno::ENOENT));
            assert_eq!(names(&mut volume, dir), (0..made).map(name).collect());
            unmount(volume, &path);
            assert_eq!(is_indexed(&path), size > sizes[0], "{size} names in blocks of {block_size}");
            volume = mount(&path);
        }
        // Nothing is cached now.
        assert!((0..made).all(|number| volume.lookup(dir, &name(number)).is_ok()));
        (0..made).filter(|number| number % 3 != 0).for_each(|number| volume.unlink(dir, &name(number)).unwrap());
        assert_eq!(names(&mut volume, dir), (0..made).step_by(3).map(name).collect());
        unmount(volume, &path);
        let mut volume = mount(&path);
        (0..made).step_by(3).for_each(|number| volume.unlink(dir, &name(number)).unwrap());
        assert_eq!(volume.remove_dir(ROOT, b"dir"), Ok(()));
        unmount(volume, &path);
    }
}

#[test]
fn an_index_that_e2fsck_has_made_is_used_and_kept() {
    for (algorithm, signs) in [("half_md4", "0"), ("tea", "0"), ("legacy", "0"), ("half_md4", "2"), ("legacy", "2")] {
        let scratch = Scratch::new();
        let folder = scratch.path("tree");
        std::fs::create_dir_all(folder.join("dir")).unwrap();
        let other = |number: usize| format!("{number}-h\u{e9}").into_bytes();
        (0..1500).for_each(|number| {
            std::fs::write(folder.join("dir").join(String::from_utf8(other(number)).unwrap()), "").unwrap();
        });
        let path = scratch.image(8 << 10, &["-b", "1024", "-N", "4096", "-d", folder.to_str().unwrap()]);
        assert!(
            Command::new("tune2fs")
                .args(["-E", &format!("hash_alg={algorithm}")])
                .arg(&path)
                .output()
                .unwrap()
                .status
                .success()
        );
        debugfs_write(&path, &format!("set_super_value flags {signs}"));
        let _ = Command::new("e2fsck").args(["-fyD"]).arg(&path).output().unwrap();
        assert!(is_indexed(&path), "{algorithm}");
        let mut volume = mount(&path);
        let dir = volume.lookup(ROOT, b"dir").unwrap();
        assert!((0..1500).all(|number| volume.lookup(dir, &other(number)).is_ok()), "{algorithm}, {signs}");
        (0..1500).for_each(|number| {
            make(&mut volume, dir, &name(number));
        });
        let expected: BTreeSet<_> = (0..1500).map(name).chain((0..1500).map(other)).collect();
        assert_eq!(names(&mut volume, dir), expected);
        unmount(volume, &path);
        assert!(is_indexed(&path));
    }
}

fn debugfs_write(path: &Path, request: &str) {
    assert!(Command::new("debugfs").args(["-w", "-R", request]).arg(path).output().unwrap().status.success());
}

#[test]
fn names_that_stay_are_listed_once_while_others_come_and_go() {
    for block_size in ["1024", "4096"] {
        let scratch = Scratch::new();
        let path = scratch.image(16 << 10, &["-b", block_size, "-N", "8192"]);
        let mut volume = mount(&path);
        let dir = directory(&mut volume);
        (0..40).for_each(|number| {
            make(&mut volume, dir, &name(number));
        });
        let (mut position, mut seen, mut next) = (0, Vec::new(), 40);
        loop {
            let mut some = Names { room: 3, list: Vec::new() };
            position = volume.read_dir(dir, position, &mut some).unwrap();
            if some.list.is_empty() {
                break;
            }
            seen.extend(some.list.into_iter().map(|(name, ..)| name));
            // Many come, so that blocks are split, and some of them go.
            if next < 3000 {
                (next..next + 200).for_each(|number| {
                    make(&mut volume, dir, &name(number));
                });
                (next..next + 200).step_by(2).for_each(|number| volume.unlink(dir, &name(number)).unwrap());
                next += 200;
            }
        }
        for number in 0..40 {
            assert_eq!(seen.iter().filter(|seen| **seen == name(number)).count(), 1, "{number}");
        }
        unmount(volume, &path);
    }
}

#[test]
fn names_move_between_and_within_indexed_directories() {
    let scratch = Scratch::new();
    let path = scratch.image(16 << 10, &["-b", "1024", "-N", "4096"]);
    let mut volume = mount(&path);
    let dir = directory(&mut volume);
    let mut expected: Vec<usize> = (0..600).collect();
    expected.iter().for_each(|&number| {
        make(&mut volume, dir, &name(number));
    });
    let mut random = Random::new(3);
    for step in 1000..3000 {
        let at = random.below(expected.len() as u64) as usize;
        let old = name(expected[at]);
        match random.below(4) {
            0 | 1 => {
                volume.rename(dir, &old, dir, &name(step), ROOT_USER).unwrap();
                expected[at] = step;
            }
            2 => {
                let node = volume.lookup(dir, &old).unwrap();
                volume.link(dir, &name(step), node, ROOT_USER).unwrap();
                expected.push(step);
            }
            _ => {
                let other = random.below(expected.len() as u64) as usize;
                volume.exchange(dir, &old, dir, &name(expected[other])).unwrap();
            }
        }
    }
    assert_eq!(names(&mut volume, dir), expected.iter().copied().map(name).collect());
    unmount(volume, &path);
}

#[test]
fn an_index_is_not_used_while_a_check_is_due_and_ends_with_a_change() {
    let scratch = Scratch::new();
    let path = scratch.image(8 << 10, &["-b", "1024", "-N", "2048"]);
    let mut volume = mount(&path);
    let dir = directory(&mut volume);
    (0..300).for_each(|number| {
        make(&mut volume, dir, &name(number));
    });
    volume.sync().unwrap();
    drop(volume);
    assert!(is_indexed(&path));
    let mut volume = mount(&path);
    assert_eq!(names(&mut volume, dir).len(), 300);
    make(&mut volume, dir, &name(300));
    assert!((0..=300).all(|number| volume.lookup(dir, &name(number)).is_ok()));
    volume.sync().unwrap();
    drop(volume);
    assert!(!is_indexed(&path));
    let _ = Command::new("e2fsck").args(["-fy"]).arg(&path).output().unwrap();
    check(&path);
}

#[test]
fn a_corrupt_index_hides_no_name() {
    let scratch = Scratch::new();
    let path = scratch.image(8 << 10, &["-b", "1024", "-N", "2048"]);
    let mut volume = mount(&path);
    let dir = directory(&mut volume);
    (0..300).for_each(|number| {
        make(&mut volume, dir, &name(number));
    });
    unmount(volume, &path);
    let good = std::fs::read(&path).unwrap();
    let text = String::from_utf8_lossy(&debugfs(&path, "blocks dir")).into_owned();
    let root: usize = text.split_whitespace().next().unwrap().parse().unwrap();
    // The length of `..`, the zeros before what it says, the hash, the levels, the limit.
    for at in [16, 24, 28, 30, 32] {
        let mut bad = good.clone();
        bad[root * 1024 + at] ^= 0x35;
        std::fs::write(&path, bad).unwrap();
        let mut volume = mount(&path);
        for number in 0..300 {
            let found = volume.lookup(dir, &name(number));
            assert!(found.is_ok() || at == 16 && found == Err(Errno::EUCLEAN), "byte {at}: {found:?}");
        }
        let made = volume.make_node(dir, b"new", 0o100_644, 0, ROOT_USER);
        assert!(made.is_ok() || at == 16, "byte {at}: {made:?}");
        assert!(at == 16 || volume.lookup(dir, b"new").is_ok());
    }
}

/// The oldest of the three functions, of names of ASCII.
fn legacy_hash(name: &[u8]) -> u32 {
    let step = |(last, before): (u32, u32), &byte: &u8| {
        let hash = before.wrapping_add(last ^ u32::from(byte).wrapping_mul(7_152_373));
        (if hash >> 31 != 0 { hash.wrapping_sub(0x7fff_ffff) } else { hash }, last)
    };
    name.iter().fold((0x12a3_fe2d, 0x37ab_e8f9), step).0
}

/// Names of which at least two have the same hash each.
fn colliding_names(groups: usize) -> Vec<Vec<u8>> {
    let mut by_hash: BTreeMap<u32, Vec<Vec<u8>>> = BTreeMap::new();
    for number in 0..300_000u32 {
        let name = format!("{:x}", number.wrapping_mul(0x9e37_79b1)).into_bytes();
        by_hash.entry(legacy_hash(&name)).or_default().push(name);
    }
    by_hash.into_values().filter(|names| names.len() > 1).take(groups).flatten().collect()
}

#[test]
fn names_of_the_same_hash_are_found_and_listed_one_by_one() {
    let colliding = colliding_names(30);
    assert!(colliding.len() >= 20, "only {}", colliding.len());
    // In one block, and in a directory with an index.
    for others in [0, 300] {
        let scratch = Scratch::new();
        let path = scratch.image(4 << 10, &["-b", "1024", "-N", "1024"]);
        let output = Command::new("tune2fs").args(["-E", "hash_alg=legacy"]).arg(&path).output().unwrap();
        assert!(output.status.success());
        let mut volume = mount(&path);
        let dir = directory(&mut volume);
        let colliding = &colliding[..if others == 0 { 20 } else { colliding.len() }];
        let expected: BTreeSet<_> = colliding.iter().cloned().chain((0..others).map(name)).collect();
        for name in &expected {
            make(&mut volume, dir, name);
        }
        assert!(expected.iter().all(|name| volume.lookup(dir, name).is_ok()));
        // The place that is told with a name is where the next one is found.
        let mut places = Places(expected.len() + 2, Vec::new());
        volume.read_dir(dir, 0, &mut places).unwrap();
        assert_eq!(places.1.len(), expected.len() + 2);
        let after = |place: u64, volume: &mut _| {
            let mut names = Names { room: 1, list: Vec::new() };
            FileSystem::read_dir(volume, dir, place, &mut names).unwrap();
            names.list.pop().map(|(name, ..)| name)
        };
        let found: BTreeSet<_> = places.1.iter().filter_map(|&place| after(place, &mut volume)).collect();
        assert_eq!(found.len(), expected.len() + 1, "all but the first");
        for room in [1, 2, 3] {
            let (mut position, mut found) = (0, Vec::new());
            loop {
                let mut names = Names { room, list: Vec::new() };
                position = volume.read_dir(dir, position, &mut names).unwrap();
                if names.list.is_empty() {
                    break;
                }
                found.extend(names.list.into_iter().map(|(name, ..)| name));
            }
            assert_eq!(found.len(), expected.len() + 2, "{room} at a time, each once");
            assert_eq!(found.into_iter().filter(|name| !name.starts_with(b".")).collect::<BTreeSet<_>>(), expected);
        }
        unmount(volume, &path);
    }
}
