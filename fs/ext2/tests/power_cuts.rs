//! A disk whose power fails: what is on it after each write, and after some of the writes since a flush, keeps what was promised.
//! `./skink test power` does the same with a whole system and e2fsck.

use crate::common::disk::{Disk, Request};
use crate::common::{ROOT_USER, Scratch, check, is_marked_clean, list, read_all, write};
use ext2::Ext2;
use fs::file_system::{Allocation, FileSystem, NodeId, XattrMode};

const ROOT: NodeId = 2;

fn make(volume: &mut Ext2<Disk>, dir: NodeId, name: &str, content: &[u8]) -> NodeId {
    let node = volume.make_node(dir, name.as_bytes(), 0o100_644, 0, ROOT_USER).unwrap();
    assert_eq!(write(volume, node, 0, content), Ok(content.len()));
    node
}

fn content(volume: &mut Ext2<Disk>, dir: NodeId, name: &str) -> Option<Vec<u8>> {
    let node = volume.lookup(dir, name.as_bytes()).ok()?;
    Some(read_all(volume, node))
}

/// Syncs; then `change` is what the disk may or may not have. Returns the disk before it.
fn changed(disk: &Disk, volume: &mut Ext2<Disk>, change: impl FnOnce(&mut Ext2<Disk>)) -> Vec<u8> {
    volume.sync().unwrap();
    let before = disk.bytes();
    disk.forget_log();
    change(volume);
    volume.sync().unwrap();
    before
}

#[test]
fn a_file_renamed_over_another_is_the_old_or_the_new_at_each_cut() {
    for block_size in ["1024", "4096"] {
        let disk = Disk::new(&["-b", block_size, "-I", "256"]);
        let mut volume = disk.mount();
        // Both have indirect blocks.
        let (old, new) = (vec![1; 300_000], vec![2; 60_000]);
        make(&mut volume, ROOT, "file", &old);
        make(&mut volume, ROOT, "file.new", &new);
        let before = changed(&disk, &mut volume, |volume| {
            volume.rename(ROOT, b"file.new", ROOT, b"file", ROOT_USER).unwrap();
            // What was freed must not be another file's before the disk knows.
            for number in 0..20 {
                make(volume, ROOT, &format!("other{number}"), &[3; 20_000]);
            }
        });
        disk.at_each_cut(before, |mut volume| {
            let file = content(&mut volume, ROOT, "file").expect("the name is there");
            assert!(file == old || file == new, "{} bytes", file.len());
        });
    }
}

#[test]
fn attributes_are_the_old_or_the_new_ones_at_each_cut() {
    for arguments in [["-b", "1024", "-I", "128"], ["-b", "4096", "-I", "256"]] {
        let disk = Disk::new(&arguments);
        let mut volume = disk.mount();
        let file = make(&mut volume, ROOT, "file", b"text");
        let set = |volume: &mut Ext2<Disk>, node, value: &[u8]| {
            for name in [&b"user.one"[..], b"user.two"] {
                volume.set_xattr(node, name, value, XattrMode::Any, ROOT_USER).unwrap();
            }
        };
        set(&mut volume, file, &[1; 400]);
        let before = changed(&disk, &mut volume, |volume| {
            set(volume, file, &[2; 300]);
            // What was freed must not be another's before the disk knows.
            for number in 0..20 {
                let other = make(volume, ROOT, &format!("other{number}"), &[3; 3000]);
                set(volume, other, &[4; 100]);
            }
        });
        disk.at_each_cut(before, |mut volume| {
            let node = volume.lookup(ROOT, b"file").unwrap();
            let values = [&b"user.one"[..], b"user.two"].map(|name| volume.xattr(node, name).unwrap());
            assert!(values == [[1; 400]; 2].map(Vec::from) || values == [[2; 300]; 2].map(Vec::from), "{values:?}");
        });
    }
}

#[test]
fn a_file_that_moves_has_a_name_at_each_cut() {
    let disk = Disk::new(&["-b", "1024"]);
    let mut volume = disk.mount();
    let dirs: Vec<NodeId> = (0..4)
        .map(|number| volume.make_dir(ROOT, format!("d{number}").as_bytes(), 0o755, ROOT_USER).unwrap())
        .collect();
    for (number, &dir) in dirs.iter().enumerate() {
        make(&mut volume, dir, "file", &[number as u8 + 1; 3000]);
    }
    let before = changed(&disk, &mut volume, |volume| {
        // Round, so that each directory gains a name and loses one.
        for number in 0..4 {
            let name = format!("from{number}");
            volume.rename(dirs[number], b"file", dirs[(number + 1) % 4], name.as_bytes(), ROOT_USER).unwrap();
        }
        // By link and unlink, into a new directory.
        let new = volume.make_dir(ROOT, b"new", 0o755, ROOT_USER).unwrap();
        let moved = volume.lookup(dirs[1], b"from0").unwrap();
        volume.link(new, b"linked", moved, ROOT_USER).unwrap();
        volume.unlink(dirs[1], b"from0").unwrap();
        volume.rename(dirs[2], b"from1", ROOT, b"out", ROOT_USER).unwrap();
        volume.remove_dir(ROOT, b"d2").unwrap();
    });
    disk.at_each_cut(before, |mut volume| {
        let mut found = Vec::new();
        for (name, ..) in list(&mut volume, ROOT) {
            let name = String::from_utf8(name).unwrap();
            let Ok(dir) = volume.lookup(ROOT, name.as_bytes()) else { continue };
            found.extend(content_of(&mut volume, dir));
            if !volume.attributes(dir).is_ok_and(|attributes| attributes.is_directory()) || name.starts_with('.') {
                continue;
            }
            for (_, node, _) in list(&mut volume, dir) {
                found.extend(content_of(&mut volume, node));
            }
        }
        for number in 1..=4 {
            assert!(found.contains(&vec![number; 3000]), "file {number} is lost");
        }
    });
}

#[test]
fn names_that_are_swapped_lose_no_file_at_any_cut() {
    let disk = Disk::new(&["-b", "1024"]);
    let mut volume = disk.mount();
    let dirs: Vec<NodeId> = (0..2)
        .map(|number| volume.make_dir(ROOT, format!("d{number}").as_bytes(), 0o755, ROOT_USER).unwrap())
        .collect();
    // So long that few fit in a sector: the names are in several, and the directories grow.
    let name = |number: u8| format!("{number}{}", "-".repeat(200));
    for number in 0..12 {
        make(&mut volume, dirs[usize::from(number) % 2], &name(number), &[number + 1; 2000]);
    }
    let before = changed(&disk, &mut volume, |volume| {
        let mut swap = |first: u8, second: u8| {
            let dir = |number| dirs[usize::from(number) % 2];
            volume.exchange(dir(first), name(first).as_bytes(), dir(second), name(second).as_bytes()).unwrap();
        };
        // In one directory, between two, back again, and round.
        for (first, second) in [(0, 2), (4, 10), (1, 6), (1, 6), (3, 8), (8, 5), (7, 11), (9, 0)] {
            swap(first, second);
        }
    });
    disk.at_each_cut(before, |mut volume| {
        let mut found = Vec::new();
        for number in 0..2 {
            let dir = volume.lookup(ROOT, format!("d{number}").as_bytes()).unwrap();
            for (_, node, _) in list(&mut volume, dir) {
                found.extend(content_of(&mut volume, node));
            }
            for number in (number..12).step_by(2) {
                assert!(content(&mut volume, dir, &name(number)).is_some(), "name {number} is lost");
            }
        }
        for number in 1..=12 {
            assert!(found.contains(&vec![number; 2000]), "file {number} is lost");
        }
    });
}

#[test]
fn files_whose_names_get_whiteouts_are_not_lost_at_any_cut() {
    let disk = Disk::new(&["-b", "1024"]);
    let mut volume = disk.mount();
    let dirs = [b"one", b"two"].map(|name| volume.make_dir(ROOT, name, 0o755, ROOT_USER).unwrap());
    let name = |number: u8| format!("{number}{}", "-".repeat(200));
    for number in 0..8 {
        make(&mut volume, dirs[0], &name(number), &[number + 1; 2000]);
    }
    let before = changed(&disk, &mut volume, |volume| {
        let mut leave = |from: u8, dir: usize, to: u8| {
            let (from, to) = (name(from), name(to));
            volume.rename_leaving_whiteout(dirs[0], from.as_bytes(), dirs[dir], to.as_bytes(), ROOT_USER).unwrap();
        };
        // In one directory, into another, and over the first of these.
        for (from, dir, to) in [(0, 0, 10), (1, 1, 11), (2, 1, 12), (3, 0, 10)] {
            leave(from, dir, to);
        }
    });
    disk.at_each_cut(before, |mut volume| {
        let mut found = Vec::new();
        for name in [&b"one"[..], b"two"] {
            let dir = volume.lookup(ROOT, name).unwrap();
            for (_, node, _) in list(&mut volume, dir) {
                found.extend(content_of(&mut volume, node));
            }
        }
        // The first is replaced by the fourth.
        for number in 2..=8 {
            assert!(found.contains(&vec![number; 2000]), "file {number} is lost");
        }
    });
}

#[test]
fn a_check_mends_what_a_swap_that_was_cut_short_leaves() {
    let disk = Disk::new(&["-b", "1024"]);
    let mut volume = disk.mount();
    let dirs = [b"one", b"two"].map(|name| volume.make_dir(ROOT, name, 0o755, ROOT_USER).unwrap());
    for (number, &dir) in dirs.iter().enumerate() {
        make(&mut volume, dir, "file", &[number as u8 + 1; 3000]);
        let sub = volume.make_dir(dir, b"sub", 0o755, ROOT_USER).unwrap();
        make(&mut volume, sub, "inner", &[number as u8 + 3; 3000]);
    }
    let before = changed(&disk, &mut volume, |volume| {
        volume.exchange(dirs[0], b"file", dirs[1], b"file").unwrap();
        volume.exchange(dirs[0], b"sub", dirs[1], b"sub").unwrap();
    });
    let scratch = Scratch::new();
    let path = scratch.path("image");
    disk.at_each_cut(before, |volume| {
        std::fs::write(&path, volume.into_device().bytes()).unwrap();
        let mended = std::process::Command::new("e2fsck").arg("-fy").arg(&path).output().unwrap();
        assert!(mended.status.code().is_some_and(|code| code <= 1), "{mended:?}");
        let mut volume = Disk::of(std::fs::read(&path).unwrap()).mount();
        let mut found = Vec::new();
        for dir in ["one", "two"] {
            let dir = volume.lookup(ROOT, dir.as_bytes()).unwrap();
            assert!(volume.lookup(dir, b"file").is_ok());
            for (_, node, _) in list(&mut volume, dir).into_iter().filter(|(name, ..)| !name.starts_with(b".")) {
                found.extend(content_of(&mut volume, node));
                found.extend(content(&mut volume, node, "inner"));
            }
        }
        // A file may have both names.
        let mut found: Vec<_> = found.iter().map(|content| content[0]).collect();
        found.sort();
        found.dedup();
        assert_eq!(found, [1, 2, 3, 4]);
    });
}

/// The content of a regular file.
fn content_of(volume: &mut Ext2<Disk>, node: NodeId) -> Option<Vec<u8>> {
    let attributes = volume.attributes(node).ok()?;
    (attributes.mode & 0o170_000 == 0o100_000).then(|| read_all(volume, node))
}

#[test]
fn a_punched_hole_has_the_old_bytes_or_zeros_at_each_cut() {
    let disk = Disk::new(&["-b", "1024"]);
    let mut volume = disk.mount();
    let node = make(&mut volume, ROOT, "file", &[1; 400_000]);
    let before = changed(&disk, &mut volume, |volume| {
        volume.allocate(node, 5000, 300_000, Allocation::Punch).unwrap();
        volume.allocate(node, 390_000, 3000, Allocation::Zero).unwrap();
        // What was freed must not be another file's before the disk knows.
        for number in 0..20 {
            make(volume, ROOT, &format!("other{number}"), &[3; 20_000]);
        }
    });
    disk.at_each_cut(before, |mut volume| {
        let file = content(&mut volume, ROOT, "file").expect("the name is there");
        assert_eq!(file.len(), 400_000);
        let is_cleared = |at: usize| (5000..305_000).contains(&at) || (390_000..393_000).contains(&at);
        let is_right = |(at, &byte): (usize, &u8)| byte == 1 || (byte == 0 && is_cleared(at));
        assert!(file.iter().enumerate().all(is_right));
    });
}

#[test]
fn space_that_is_freed_but_not_synced_is_there_when_it_is_needed() {
    let disk = Disk::new(&["-b", "1024"]);
    let mut volume = disk.mount();
    for round in 0..10u8 {
        let node = make(&mut volume, ROOT, "large", &vec![round + 1; 1_200_000]);
        assert_eq!(read_all(&mut volume, node), vec![round + 1; 1_200_000]);
        volume.unlink(ROOT, b"large").unwrap();
        volume.clean_up().unwrap();
    }
    for round in 0..1000 {
        make(&mut volume, ROOT, &format!("small{round}"), b"");
        volume.unlink(ROOT, format!("small{round}").as_bytes()).unwrap();
    }
}

#[test]
fn an_unmount_that_is_cut_short_is_not_clean() {
    let disk = Disk::new(&["-b", "1024"]);
    let mut volume = disk.mount();
    let before = disk.bytes();
    disk.forget_log();
    make(&mut volume, ROOT, "file", &[1; 30_000]);
    volume.unmount().unwrap();
    let writes = disk.log().iter().filter(|request| matches!(request, Request::Write(..))).count();
    let scratch = Scratch::new();
    let path = scratch.path("image");
    let mut now = before;
    let mut done = 0;
    for request in &disk.log() {
        let Request::Write(at, data) = request else { continue };
        now[*at..*at + data.len()].copy_from_slice(data);
        done += 1;
        std::fs::write(&path, &now).unwrap();
        assert_eq!(is_marked_clean(&path), done == writes, "after write {done} of {writes}");
    }
    check(&path);
}

/// Fails unless a check mends the disk so that a second one finds nothing. Returns the disk then.
fn mended(bytes: &[u8]) -> Vec<u8> {
    let scratch = Scratch::new();
    let path = scratch.path("image");
    std::fs::write(&path, bytes).unwrap();
    let output = std::process::Command::new("e2fsck").arg("-fy").arg(&path).output().unwrap();
    assert!(output.status.code().is_some_and(|code| code <= 1), "{}", String::from_utf8_lossy(&output.stdout));
    check(&path);
    std::fs::read(&path).unwrap()
}

#[test]
fn a_directory_keeps_its_names_at_each_cut_while_its_index_grows() {
    for (block_size, names) in [("1024", [0..18, 18..60]), ("1024", [0..2400, 2400..2440]), ("4096", [0..70, 70..260])]
    {
        let scratch = Scratch::new();
        let disk = Disk::of(std::fs::read(scratch.image(4096, &["-b", block_size, "-N", "4096"])).unwrap());
        let mut volume = disk.mount();
        let dir = volume.make_dir(ROOT, b"dir", 0o755, ROOT_USER).unwrap();
        let name = |number: usize| format!("a name with the number {number}");
        let [old, new] = names;
        for number in old.clone() {
            make(&mut volume, dir, &name(number), b"old");
        }
        let before = changed(&disk, &mut volume, |volume| {
            for number in new.clone() {
                make(volume, dir, &name(number), b"new");
                // Names that the splits move go to other directories, and come back.
                if number % 5 == 0 {
                    let (one, other) = (name(number - new.start), name(number + 100_000));
                    volume.rename(dir, one.as_bytes(), ROOT, other.as_bytes(), ROOT_USER).unwrap();
                    volume.rename(ROOT, other.as_bytes(), dir, one.as_bytes(), ROOT_USER).unwrap();
                }
            }
        });
        drop(volume);
        let has = |volume: &mut Ext2<Disk>, number: usize| {
            let (dir, root) = (volume.lookup(ROOT, b"dir").unwrap(), volume.root());
            [(dir, name(number)), (root, name(number + new.start + 100_000))]
                .iter()
                .any(|(dir, name)| content(volume, *dir, name).as_deref() == Some(b"old"))
        };
        let mut cuts = 0;
        disk.at_each_cut(before, |mut volume| {
            for number in old.clone().step_by(1 + old.len() / 40) {
                assert!(has(&mut volume, number), "{number} at cut {cuts}");
            }
            if cuts % 16 == 0 {
                let bytes = volume.into_device().bytes();
                let mended = Disk::of(mended(&bytes));
                let mut volume = mended.mount();
                for number in old.clone().step_by(1 + old.len() / 40) {
                    assert!(has(&mut volume, number), "{number} at cut {cuts}, mended");
                }
            }
            cuts += 1;
        });
        assert!(cuts > 20, "{cuts} cuts");
    }
}
