//! Names, attributes and content, where the random operations do not come.

use std::format;
use std::string::String;
use std::vec;
use std::vec::Vec;

use abi::fs::DIRECTORY_END;
use fs::Errno;
use fs::file_system::{
    Allocation, DataSink, EntrySink, FileSystem, NewTimes, NodeId, S_IFCHR, S_IFSOCK, Timestamp, XattrMode,
};

use super::check::check;
use super::{NOW, ROOT_USER, Slice, USER, free_pages, make, mount, read_all, volume, words, write};
use crate::entry;
use crate::inode::Inode;
use crate::plan::{PAGE, Plan};
use crate::volume::{Options, Tmpfs};

fn dir(volume: &mut Tmpfs, parent: NodeId, name: &str) -> NodeId {
    volume.make_dir(parent, name.as_bytes(), 0o755, ROOT_USER).unwrap()
}

/// Names with the positions behind them, a few at a time.
struct Few(usize, Vec<(String, u64)>);

impl EntrySink for Few {
    fn entry(&mut self, _: NodeId, next: u64, _: u32, name: &[u8]) -> bool {
        if self.1.len() == self.0 {
            return false;
        }
        self.1.push((String::from_utf8(name.to_vec()).unwrap(), next));
        true
    }
}

fn names_from(volume: &mut Tmpfs, node: NodeId, position: u64, room: usize) -> (Vec<String>, u64) {
    let mut few = Few(room, Vec::new());
    let next = volume.read_dir(node, position, &mut few).unwrap();
    if few.1.len() == room {
        assert_eq!(few.1.last().map(|(_, next)| *next), Some(next), "it goes on behind the last one");
    }
    (few.1.into_iter().map(|(name, _)| name).collect(), next)
}

#[test]
fn a_new_file_system_is_empty_and_everybodys() {
    for bytes in [0, 1, 100_000, 1 << 20] {
        let plan = Plan::new(bytes);
        let mut volume = mount(words(plan), plan);
        let root = volume.root();
        let attributes = volume.attributes(root).unwrap();
        assert_eq!((attributes.mode, attributes.links, attributes.modified), (0o41777, 2, NOW));
        assert_eq!((attributes.size, attributes.blocks, attributes.block_size), (40, 0, 4096), "as on Linux");
        let statistics = volume.statistics();
        assert_eq!((statistics.kind, statistics.blocks, statistics.id), (0x0102_1994, bytes.div_ceil(4096).max(1), 7));
        assert_eq!((statistics.blocks_free, statistics.nodes_free), (statistics.blocks, statistics.nodes - 1));
        assert!(volume.is_in_memory() && !volume.is_busy());
        assert_eq!(volume.lookup(root, b".."), Ok(root));
        check(&volume);
    }
}

#[test]
fn a_listing_goes_on_where_it_was_whatever_comes_and_goes() {
    let mut volume = volume(200);
    let root = volume.root();
    (0..60).for_each(|number| {
        make(&mut volume, &format!("{number}"));
    });
    let (first, after_first) = names_from(&mut volume, root, 0, 12);
    assert_eq!(first[..4], [".", "..", "59", "58"], "the newest first");
    // The last one listed goes, the next one too, others come: the rest is listed once.
    for gone in ["50", "49", "30", "59"] {
        volume.unlink(root, gone.as_bytes()).unwrap();
    }
    volume.rename(root, b"40", root, b"renamed", ROOT_USER).unwrap();
    make(&mut volume, "new");
    let (rest, end) = names_from(&mut volume, root, after_first, 1000);
    let expected: Vec<_> = (0..49).rev().filter(|n| ![30, 40].contains(n)).map(|n| format!("{n}")).collect();
    assert_eq!((rest, end), (expected, DIRECTORY_END));
    assert_eq!(names_from(&mut volume, root, DIRECTORY_END, 10), (vec![], DIRECTORY_END));
    assert_eq!(names_from(&mut volume, root, 1, 1).0, [".."]);
    assert_eq!(names_from(&mut volume, root, 2, 2).0, ["new", "renamed"]);
    // A position that never was.
    assert_eq!(names_from(&mut volume, root, 60_000 << 16 | 7, 1).0, ["new"]);
    // A program that renames whatever it finds comes to an end.
    let (mut position, mut renamed) = (0, 0);
    while position != DIRECTORY_END {
        let (names, next) = names_from(&mut volume, root, position, 5);
        position = next;
        for name in names.iter().filter(|name| !name.starts_with('.')) {
            volume.rename(root, name.as_bytes(), root, format!("{name}+").as_bytes(), ROOT_USER).unwrap();
            renamed += 1;
        }
    }
    assert_eq!(renamed, 57);
    check(&volume);
}

#[test]
fn an_entry_used_again_is_not_taken_for_the_one_before() {
    let mut volume = volume(100);
    let root = volume.root();
    let sub = dir(&mut volume, root, "sub");
    (0..6).for_each(|number| {
        make(&mut volume, &format!("{number}"));
    });
    let (_, position) = names_from(&mut volume, root, 0, 4);
    volume.unlink(root, b"4").unwrap();
    volume.begin();
    volume.make_node(sub, b"elsewhere", 0o100_644, 0, ROOT_USER).unwrap();
    assert_eq!(names_from(&mut volume, root, position, 1).0, ["3"]);
    volume.unlink(sub, b"elsewhere").unwrap();
    volume.begin();
    make(&mut volume, "again");
    assert_eq!(names_from(&mut volume, root, position, 1).0, ["3"]);
}

#[test]
fn names_of_every_length_are_told_apart() {
    let mut volume = volume(600);
    let root = volume.root();
    let names: Vec<_> = (1..=255).map(|length| "n".repeat(length)).collect();
    let nodes: Vec<_> = names.iter().map(|name| make(&mut volume, name)).collect();
    let ends: Vec<_> = (1..=255).map(|length| format!("{}m", "n".repeat(length - 1))).collect();
    let others: Vec<_> = ends.iter().map(|name| make(&mut volume, name)).collect();
    for (name, node) in names.iter().chain(&ends).zip(nodes.iter().chain(&others)) {
        assert_eq!(volume.lookup(root, name.as_bytes()), Ok(*node));
        assert_eq!(volume.make_node(root, name.as_bytes(), 0o100_644, 0, ROOT_USER), Err(Errno::EEXIST));
    }
    assert_eq!(volume.lookup(root, "n".repeat(256).as_bytes()), Err(Errno::ENAMETOOLONG));
    assert_eq!(volume.lookup(nodes[0], b"n"), Err(Errno::ENOTDIR));
    assert_eq!(volume.lookup(root, b"\0"), Err(Errno::ENOENT));
    check(&volume);
}

#[test]
fn what_was_removed_and_is_in_use_stays_itself() {
    let mut volume = volume(100);
    let root = volume.root();
    let (outer, file) = (dir(&mut volume, root, "outer"), make(&mut volume, "file"));
    let inner = dir(&mut volume, outer, "inner");
    for node in [inner, file] {
        volume.get(node).unwrap();
    }
    write(&mut volume, file, 0, &[5; 9000]).unwrap();
    volume.unlink(root, b"file").unwrap();
    volume.remove_dir(outer, b"inner").unwrap();
    assert_eq!(volume.lookup(inner, b".."), Ok(outer));
    assert_eq!(volume.make_dir(inner, b"x", 0o755, ROOT_USER), Err(Errno::ENOENT));
    assert_eq!(volume.rename(root, b"outer", inner, b"x", ROOT_USER), Err(Errno::EINVAL));
    let other = make(&mut volume, "other");
    assert_eq!(volume.rename(root, b"other", inner, b"x", ROOT_USER), Err(Errno::ENOENT));
    assert_eq!(volume.link(inner, b"x", other, ROOT_USER), Err(Errno::ENOENT));
    assert_eq!(names_from(&mut volume, inner, 0, 9).0, [""; 0]);
    volume.remove_dir(root, b"outer").unwrap();
    volume.begin();
    // Another directory of the same number is not its parent.
    assert_eq!(dir(&mut volume, root, "new"), outer);
    assert_eq!(volume.lookup(inner, b".."), Err(Errno::ENOENT));
    assert!(volume.is_busy());
    assert!(read_all(&mut volume, file) == [5; 9000]);
    assert_eq!(volume.put(file, 2), Err(Errno::EINVAL));
    volume.put(file, 1).unwrap();
    volume.put(inner, 1).unwrap();
    volume.begin();
    assert_eq!(volume.attributes(file), Err(Errno::ESTALE));
    assert_eq!((free_pages(&volume), volume.is_busy()), (100, false));
    check(&volume);
}

#[test]
fn a_handle_is_of_one_file() {
    let mut volume = volume(100);
    let root = volume.root();
    let file = make(&mut volume, "file");
    let generation = volume.generation(file).unwrap();
    assert_eq!(volume.by_handle(file, generation), Ok(file));
    assert_eq!(volume.by_handle(file, generation + 1), Err(Errno::ESTALE));
    volume.unlink(root, b"file").unwrap();
    volume.begin();
    assert_eq!(volume.by_handle(file, generation), Err(Errno::ESTALE));
    assert_eq!(make(&mut volume, "another"), file, "the latest that was freed");
    assert_eq!(volume.by_handle(file, generation), Err(Errno::ESTALE));
    for number in [0, 77, u64::MAX, 1 << 32 | file] {
        assert_eq!(volume.by_handle(number, 1), Err(Errno::ESTALE));
    }
}

#[test]
fn modes_owners_and_times_are_kept() {
    let mut volume = volume(100);
    let root = volume.root();
    let shared = volume.make_dir(root, b"shared", 0o2775, USER).unwrap();
    volume.set_owner(shared, None, Some(50)).unwrap();
    let file = volume.make_node(shared, b"program", 0o106_775, 0, ROOT_USER).unwrap();
    let below = volume.make_dir(shared, b"below", 0o755, ROOT_USER).unwrap();
    assert_eq!(volume.attributes(below).map(|below| (below.mode, below.gid)), Ok((0o42755, 50)));
    assert_eq!(volume.attributes(shared).unwrap().links, 3);
    assert_eq!(volume.attributes(file).map(|file| (file.mode, file.uid, file.gid)), Ok((0o106_775, 0, 50)));
    assert_eq!(volume.attributes(shared).unwrap().mode, 0o42775, "a directory keeps its bit");
    write(&mut volume, file, 0, b"x").unwrap();
    assert_eq!(volume.attributes(file).unwrap().mode, 0o106_775, "root's writes change no mode");
    volume.write(file, 0, 1, &mut Slice(b"x"), USER).unwrap();
    assert_eq!(volume.attributes(file).unwrap().mode, 0o100_775);
    volume.set_mode(file, 0o107_711).unwrap();
    volume.set_owner(file, Some(9), None).unwrap();
    assert_eq!(volume.attributes(file).map(|file| (file.mode, file.uid, file.gid)), Ok((0o101_711, 9, 50)));
    let time = |seconds, nanos| Timestamp { seconds, nanos };
    let times = NewTimes { accessed: Some(time(5, 7)), modified: Some(time(-5, 0)) };
    volume.set_times(file, times).unwrap();
    let found = volume.attributes(file).unwrap();
    assert_eq!((found.accessed, found.modified, found.changed), (time(5, 7), time(0, 0), NOW));
    volume.set_times(file, NewTimes { accessed: None, modified: Some(time(1 << 40, 0)) }).unwrap();
    assert_eq!(volume.attributes(file).unwrap().modified.seconds, (u64::MAX / 1_000_000_000) as i64, "the year 2554");
    volume.set_written(file, 3_000_000_001).unwrap();
    assert_eq!(volume.attributes(file).map(|file| (file.modified, file.changed)), Ok((time(3, 1), time(3, 1))));
    let device = volume.make_node(root, b"device", S_IFCHR | 0o600, 0x1234_5678_9abc, ROOT_USER).unwrap();
    let socket = volume.make_node(root, b"socket", S_IFSOCK | 0o600, 77, ROOT_USER).unwrap();
    assert_eq!([device, socket].map(|node| volume.attributes(node).unwrap().device), [0x1234_5678_9abc, 0]);
    assert_eq!(volume.make_node(root, b"dir", 0o40_755, 0, ROOT_USER), Err(Errno::EINVAL));
    assert_eq!(volume.read(device, 0, 1, &mut super::Bytes::default()), Err(Errno::EINVAL));
    assert_eq!(volume.read(root, 0, 1, &mut super::Bytes::default()), Err(Errno::EISDIR));
    check(&volume);
}

#[test]
fn the_first_read_after_a_change_sets_the_time_of_access() {
    let mut volume = volume(100);
    let file = make(&mut volume, "file");
    let old = Timestamp { seconds: 5, nanos: 0 };
    volume.set_times(file, NewTimes { accessed: Some(old), modified: Some(old) }).unwrap();
    assert_eq!(volume.take_accessed(), None);
    read_all(&mut volume, file);
    volume.read(file, 0, 1, &mut super::Bytes::default()).unwrap();
    assert_eq!((volume.take_accessed(), volume.take_accessed()), (Some(NOW), None));
    assert_eq!(volume.attributes(file).unwrap().accessed, NOW);
    volume.set_times(file, NewTimes { accessed: Some(old), modified: Some(old) }).unwrap();
    read_all(&mut volume, file);
    let other = make(&mut volume, "other");
    assert_eq!((volume.size(other), volume.take_accessed()), (Ok(0), None), "it was read by another request");
}

#[test]
fn pages_used_before_show_nothing_of_what_they_had() {
    let mut volume = volume(40);
    let root = volume.root();
    let page = PAGE as u64;
    for round in 0..4 {
        let file = make(&mut volume, "secret");
        write(&mut volume, file, 0, &vec![0xaa; 30 * PAGE]).unwrap();
        volume.unlink(root, b"secret").unwrap();
        volume.begin();
        volume.clean_up().unwrap();
        let file = make(&mut volume, "file");
        let mut expected = vec![0; 20 * PAGE];
        let mut put = |volume: &mut Tmpfs, at: u64, bytes: usize| {
            write(volume, file, at, &vec![7; bytes]).unwrap();
            expected[at as usize..at as usize + bytes].fill(7);
        };
        match round {
            // Behind the end, in the same page and in others; in a hole, in the middle of its page.
            0 => [(10, 10), (100, 10), (2 * page + 50, 1), (5 * page - 1, 2)].map(|(at, n)| put(&mut volume, at, n)),
            1 => [(15 * page, 10), (3 * page + 9, 3000), (12 * page + 1, PAGE), (50, 60)]
                .map(|(at, n)| put(&mut volume, at, n)),
            2 => {
                put(&mut volume, 0, 3000);
                volume.truncate(file, 1000).unwrap();
                volume.truncate(file, 1500).unwrap();
                put(&mut volume, 0, 1000);
                [0; 4].map(|_| ())
            }
            _ => {
                volume.truncate(file, 10 * page).unwrap();
                volume.allocate(file, 0, 9 * page, Allocation::Fill).unwrap();
                volume.begin();
                assert_eq!(volume.attributes(file).unwrap().blocks, 9 * 8);
                [0; 4].map(|_| ())
            }
        };
        if round == 2 {
            expected[1000..3000].fill(0);
        }
        volume.truncate(file, 20 * page).unwrap();
        assert!(read_all(&mut volume, file) == expected, "round {round}");
        volume.unlink(root, b"file").unwrap();
        volume.begin();
        check(&volume);
    }
}

/// Takes so many bytes, and no more.
struct Narrow(usize, Vec<u8>);

impl DataSink for Narrow {
    fn put(&mut self, data: &[u8]) -> Result<(), Errno> {
        if self.1.len() + data.len() > self.0 {
            return Err(Errno::EFAULT);
        }
        self.1.extend_from_slice(data);
        Ok(())
    }
}

#[test]
fn what_a_buffer_does_not_have_ends_a_transfer() {
    let mut volume = volume(40);
    let file = make(&mut volume, "file");
    let root = volume.root();
    let write_some = |volume: &mut Tmpfs, at: u64, len: usize, present: usize| {
        volume.write(file, at, len, &mut Slice(&vec![3; present]), ROOT_USER)
    };
    assert_eq!(write_some(&mut volume, 0, 5 * PAGE, 100), Err(Errno::EFAULT));
    assert_eq!((volume.attributes(file).unwrap().size, free_pages(&volume)), (0, 40));
    check(&volume);
    assert_eq!(write_some(&mut volume, 0, 5 * PAGE, 3 * PAGE + 5), Ok(3 * PAGE), "page by page");
    assert_eq!(write_some(&mut volume, 2 * PAGE as u64, 5 * PAGE, 2 * PAGE + 5), Ok(2 * PAGE));
    volume.begin();
    assert_eq!((volume.attributes(file).unwrap().size, free_pages(&volume)), (4 * PAGE as u64, 36));
    check(&volume);
    let mut sink = Narrow(2 * PAGE + 10, Vec::new());
    assert_eq!(volume.read(file, 0, 4 * PAGE, &mut sink), Ok(2 * PAGE));
    assert_eq!(volume.read(file, 0, 4 * PAGE, &mut Narrow(10, Vec::new())), Err(Errno::EFAULT));
    volume.unlink(root, b"file").unwrap();
}

#[test]
fn space_is_counted_as_on_linux() {
    let mut volume = volume(100);
    let root = volume.root();
    let file = make(&mut volume, "file");
    write(&mut volume, file, 30 * PAGE as u64, &vec![1; 20 * PAGE]).unwrap();
    assert_eq!(volume.attributes(file).map(|file| (file.size, file.blocks)), Ok((50 * PAGE as u64, 160)));
    volume.allocate(file, 32 * PAGE as u64 + 1, 10 * PAGE as u64, Allocation::Punch).unwrap();
    assert_eq!(volume.attributes(file).unwrap().blocks, 88);
    let link = volume.make_symlink(root, b"link", &[b'x'; 57], ROOT_USER).unwrap();
    let short = volume.make_symlink(root, b"short", &[b'x'; 56], ROOT_USER).unwrap();
    assert_eq!([link, short].map(|node| volume.attributes(node).unwrap().blocks), [8, 0]);
    assert_eq!(volume.make_symlink(root, b"too long", &[b'x'; 4096], ROOT_USER), Err(Errno::ENAMETOOLONG));
    assert_eq!(volume.make_symlink(root, b"empty", b"", ROOT_USER), Err(Errno::ENOENT));
    let mut target = [0; 60];
    assert_eq!([link, short].map(|node| volume.read_link(node, &mut target)), [Ok(57), Ok(56)]);
    assert_eq!(volume.read_link(file, &mut target), Err(Errno::EINVAL));
    check(&volume);
}

#[test]
fn attributes_have_the_space_of_one_page() {
    let mut volume = volume(10);
    let root = volume.root();
    let file = make(&mut volume, "file");
    let any = XattrMode::Any;
    volume.set_xattr(file, b"user.large", &[1; 4000], any, ROOT_USER).unwrap();
    assert_eq!(volume.set_xattr(file, b"user.more", &[1; 100], any, ROOT_USER), Err(Errno::ENOSPC));
    assert_eq!(volume.set_xattr(file, b"user.large", b"", XattrMode::Create, ROOT_USER), Err(Errno::EEXIST));
    assert_eq!(volume.set_xattr(file, b"user.other", b"", XattrMode::Replace, ROOT_USER), Err(Errno::ENODATA));
    assert_eq!(volume.set_xattr(file, b"system.posix", b"", any, ROOT_USER), Err(Errno::EOPNOTSUPP));
    assert_eq!(volume.xattr(file, b"user.large"), Ok(vec![1; 4000]));
    volume.set_xattr(file, b"user.large", b"small", any, ROOT_USER).unwrap();
    volume.set_xattr(file, b"security.capability", b"all", any, ROOT_USER).unwrap();
    assert_eq!(volume.xattr_names(file), Ok(b"user.large\0security.capability\0".to_vec()));
    volume.write(file, 0, 1, &mut Slice(b"x"), ROOT_USER).unwrap();
    assert_eq!(volume.xattr_names(file), Ok(b"user.large\0".to_vec()));
    volume.begin();
    assert_eq!((free_pages(&volume), volume.attributes(file).unwrap().blocks), (8, 16));
    volume.remove_xattr(file, b"user.large").unwrap();
    assert_eq!(volume.remove_xattr(file, b"user.large"), Err(Errno::ENODATA));
    assert_eq!(free_pages(&volume), 9);
    volume.set_xattr(file, b"user.again", b"x", any, ROOT_USER).unwrap();
    volume.unlink(root, b"file").unwrap();
    volume.begin();
    assert_eq!(free_pages(&volume), 10);
    check(&volume);
}

#[test]
fn a_file_system_mounted_for_reading_refuses_every_change() {
    let plan = Plan::of_pages(20);
    let words = words(plan);
    let memo = {
        let mut volume = mount(words, plan);
        make(&mut volume, "file");
        volume.begin();
        volume.memo()
    };
    let (parts, preserved) = super::open(words, sys::StartKind::Restarted);
    let area = parts.lend(super::LAYOUT.bytes()..parts.len()).unwrap();
    let options = Options { read_only: true, ..super::OPTIONS };
    let mut volume = Tmpfs::resume(area, preserved.undo.clone(), options, memo).unwrap();
    let root = volume.root();
    let file = volume.lookup(root, b"file").unwrap();
    assert_eq!(volume.make_node(root, b"new", 0o100_644, 0, ROOT_USER), Err(Errno::EROFS));
    assert_eq!(volume.unlink(root, b"file"), Err(Errno::EROFS));
    assert_eq!(write(&mut volume, file, 0, b"x"), Err(Errno::EROFS));
    assert_eq!(volume.set_mode(file, 0), Err(Errno::EROFS));
    assert_eq!(read_all(&mut volume, file), b"");
    volume.get(file).unwrap();
    volume.put(file, 1).unwrap();
    assert!(volume.statistics().read_only);
}

#[test]
fn a_directory_is_not_moved_below_itself() {
    let mut volume = volume(100);
    let root = volume.root();
    let a = dir(&mut volume, root, "a");
    let b = dir(&mut volume, a, "b");
    let c = dir(&mut volume, b, "c");
    for inside in [a, b, c] {
        assert_eq!(volume.rename(root, b"a", inside, b"x", ROOT_USER), Err(Errno::EINVAL));
    }
    assert_eq!(volume.exchange(root, b"a", b, b"c"), Err(Errno::EINVAL));
    assert_eq!(volume.exchange(b, b"c", root, b"a"), Err(Errno::EINVAL));
    volume.rename(b, b"c", root, b"c", ROOT_USER).unwrap();
    volume.rename(root, b"a", c, b"a", ROOT_USER).unwrap();
    assert_eq!(volume.lookup(a, b".."), Ok(c));
    for names in [[&b"."[..], b"x"], [b"a", b".."]] {
        assert_eq!(volume.rename(c, names[0], c, names[1], ROOT_USER), Err(Errno::EBUSY));
    }
    assert_eq!(volume.remove_dir(c, b"."), Err(Errno::EINVAL));
    assert_eq!(volume.remove_dir(c, b".."), Err(Errno::ENOTEMPTY));
    assert_eq!(volume.unlink(c, b".."), Err(Errno::EISDIR));
    assert_eq!(volume.unlink(c, b"a"), Err(Errno::EISDIR));
    assert_eq!(volume.make_dir(c, b".", 0o755, ROOT_USER), Err(Errno::EEXIST));
    check(&volume);
    assert_eq!(Inode::all(&volume.memory).count(), 4);
}

#[test]
fn names_of_every_fashion_are_spread_over_the_buckets() {
    let fashions: [fn(usize) -> String; 5] = [
        |number| format!("name{number}"),
        |number| format!("{number:05}"),
        |number| format!("{number:x}.c"),
        |number| format!("IMG_20261128_{number:06}.jpeg"),
        |number| format!("{number:0>40}-a-name-that-does-not-lie-in-its-entry"),
    ];
    for fashion in fashions {
        let mut volume = volume(16384);
        for name in (0..10_000).map(fashion) {
            make(&mut volume, &name);
        }
        let longest = entry::longest_chain(&volume.memory);
        // Ten thousand names in 16,384 buckets by chance: six or seven.
        assert!(longest <= 9, "{longest} names as {} have one bucket", fashion(1));
    }
}
