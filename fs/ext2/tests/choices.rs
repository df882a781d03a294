//! What no error shows: which blocks and inodes are chosen, when times change, what is read ahead, and what is left when a request fails.
//! The file is long because there are many such choices.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use crate::common::disk::Disk;
use crate::common::{
    Bytes, LAYOUT, Names, ROOT_USER, Scratch, USER, check, list, memory_of, memory_words, read_all, write,
};
use ext2::{Ext2, Options};
use fs::Errno;
use fs::device::{BlockDevice, SECTOR_SIZE};
use fs::file_system::{
    Allocation, Attributes, FileSystem, NewTimes, NodeId, S_IFCHR, S_IFDIR, S_IFMT, S_IFREG, Timestamp, XattrMode,
};
use fs::preserve::Preserved;
use sys::StartKind;

const ROOT: NodeId = 2;
const DAY: i64 = 24 * 60 * 60;
/// Blocks of 1 KiB in groups of 256.
const GROUPS: &[&str] = &["-b", "1024", "-g", "256", "-N", "512", "-O", "^resize_inode"];
/// One group.
const ONE: &[&str] = &["-b", "1024", "-O", "^resize_inode"];

thread_local! {
    static SECONDS: Cell<i64> = const { Cell::new(1_000_000) };
}

/// Lets time pass.
fn pass(seconds: i64) -> Timestamp {
    SECONDS.set(SECONDS.get() + seconds);
    time()
}

fn time() -> Timestamp {
    Timestamp { seconds: SECONDS.get(), nanos: 0 }
}

fn options() -> Options {
    Options { read_only: false, clock: time }
}

type Volume = Ext2<Disk>;

fn mount(disk: &Disk) -> Volume {
    let mut volume = Ext2::mount(disk.clone(), options(), memory_of(256 << 10)).unwrap();
    volume.sync().unwrap();
    volume
}

fn new(kib: u32, arguments: &[&str]) -> (Disk, Volume) {
    let disk = Disk::with_kib(kib, arguments);
    let volume = mount(&disk);
    (disk, volume)
}

fn file_in(volume: &mut Volume, dir: NodeId, name: &str, content: &[u8]) -> NodeId {
    let node = volume.make_node(dir, name.as_bytes(), S_IFREG | 0o644, 0, ROOT_USER).unwrap();
    assert_eq!(write(volume, node, 0, content), Ok(content.len()));
    node
}

fn file(volume: &mut Volume, name: &str, content: &[u8]) -> NodeId {
    file_in(volume, ROOT, name, content)
}

fn directory(volume: &mut Volume, dir: NodeId, name: &str) -> NodeId {
    volume.make_dir(dir, name.as_bytes(), 0o755, ROOT_USER).unwrap()
}

/// Unmounts; e2fsck must find nothing.
fn finish(disk: &Disk, mut volume: Volume) {
    volume.unmount().unwrap();
    let scratch = Scratch::new();
    std::fs::write(scratch.path("image"), disk.bytes()).unwrap();
    check(&scratch.path("image"));
}

/// What the disk says, after a sync. Blocks have 1 KiB.
struct Layout(Vec<u8>);

impl Layout {
    fn of(disk: &Disk, volume: &mut Volume) -> Layout {
        volume.sync().unwrap();
        Layout(disk.bytes())
    }

    fn word(&self, at: usize) -> u32 {
        u32::from_le_bytes(self.0[at..at + 4].try_into().unwrap())
    }

    fn half(&self, at: usize) -> u32 {
        u16::from_le_bytes(self.0[at..at + 2].try_into().unwrap()).into()
    }

    fn inodes_per_group(&self) -> u32 {
        self.word(1024 + 40)
    }

    fn groups(&self) -> u32 {
        self.word(1024) / self.inodes_per_group()
    }

    fn group_of(&self, node: NodeId) -> u32 {
        (node as u32 - 1) / self.inodes_per_group()
    }

    fn table(&self, group: u32) -> u32 {
        self.word(2048 + group as usize * 32 + 8)
    }

    /// The first block of a group that may hold data.
    fn first_data(&self, group: u32) -> u32 {
        self.table(group) + self.inodes_per_group() * self.half(1024 + 88) / 1024
    }

    /// Free blocks and inodes of a group.
    fn free(&self, group: u32) -> (u32, u32) {
        let at = 2048 + group as usize * 32;
        (self.half(at + 12), self.half(at + 14))
    }

    fn pointers(&self, node: NodeId) -> [u32; 15] {
        let index = (node as u32 - 1) % self.inodes_per_group();
        let at = self.table(self.group_of(node)) as usize * 1024 + (index * self.half(1024 + 88)) as usize;
        std::array::from_fn(|pointer| self.word(at + 40 + 4 * pointer))
    }

    /// The blocks of a file of up to 12 blocks.
    fn blocks(&self, node: NodeId) -> Vec<u32> {
        self.pointers(node)[..12].iter().copied().filter(|&block| block != 0).collect()
    }
}

/// A change of a file, and whether it changes the time of modification, and that of change.
type Change<'a> = (&'a str, &'a dyn Fn(&mut Volume) -> Result<(), Errno>, [bool; 2]);

#[test]
fn each_change_of_a_file_changes_its_times() {
    let (_, mut volume) = new(1024, ONE);
    let dir = directory(&mut volume, ROOT, "d");
    let node = file(&mut volume, "f", &[7; 5000]);
    let other = file(&mut volume, "other", b"x");
    let old = Timestamp { seconds: 5, nanos: 0 };
    let times = NewTimes { accessed: Some(old), modified: None };
    let changes: [Change; 19] = [
        ("set_mode", &|volume| volume.set_mode(node, 0o600), [false, true]),
        ("set_owner", &|volume| volume.set_owner(node, Some(1), None), [false, true]),
        ("set_times", &|volume| volume.set_times(node, times), [false, true]),
        ("write", &|volume| write(volume, node, 0, b"x").map(drop), [true, true]),
        ("write of nothing", &|volume| write(volume, node, 0, b"").map(drop), [false, false]),
        ("truncate", &|volume| volume.truncate(node, 4000), [true, true]),
        ("truncate to its size", &|volume| volume.truncate(node, 4000), [true, true]),
        ("punch", &|volume| volume.allocate(node, 0, 100, Allocation::Punch), [true, true]),
        ("zero", &|volume| volume.allocate(node, 200, 100, Allocation::Zero), [true, true]),
        ("punch behind the end", &|volume| volume.allocate(node, 9000, 1, Allocation::Punch), [false, false]),
        ("link", &|volume| volume.link(dir, b"f", node, ROOT_USER), [false, true]),
        ("unlink", &|volume| volume.unlink(dir, b"f"), [false, true]),
        ("rename", &|volume| volume.rename(ROOT, b"f", dir, b"f", ROOT_USER), [false, true]),
        ("exchange", &|volume| volume.exchange(ROOT, b"other", dir, b"f"), [false, true]),
        ("exchange back", &|volume| volume.exchange(ROOT, b"f", dir, b"f").or(Ok(())), [false, false]),
        ("set_xattr", &|volume| volume.set_xattr(node, b"user.a", b"1", XattrMode::Any, ROOT_USER), [false, true]),
        ("remove_xattr", &|volume| volume.remove_xattr(node, b"user.a"), [false, true]),
        ("xattr that is not there", &|volume| volume.remove_xattr(node, b"user.a").or(Ok(())), [false, false]),
        ("set_written", &|volume| volume.set_written(node, SECONDS.get() as u64 * 1_000_000_000), [true, true]),
    ];
    for (name, change, changed) in changes {
        let before = volume.attributes(node).unwrap();
        let now = pass(10);
        // Begins a request.
        volume.sync().unwrap();
        assert_eq!(change(&mut volume), Ok(()), "{name}");
        let after = volume.attributes(node).unwrap();
        let expected = [before.modified, before.changed];
        let expected = [0, 1].map(|at| if changed[at] { now } else { expected[at] });
        assert_eq!([after.modified, after.changed], expected, "{name}");
        if name == "exchange" {
            assert_eq!(volume.attributes(other).unwrap().changed, now, "{name}");
        }
    }
    assert_eq!(volume.set_written(node, 0), Ok(()));
    assert_eq!(volume.attributes(node).unwrap().modified, time(), "0 is no time");
    let found = volume.attributes(node).unwrap();
    assert_eq!((found.accessed, found.uid, found.mode & 0o7777), (old, 1, 0o600));
}

#[test]
fn a_read_changes_the_time_of_access_once_after_each_change_and_each_day() {
    let (_, mut volume) = new(1024, ONE);
    let dir = directory(&mut volume, ROOT, "d");
    let node = file_in(&mut volume, dir, "f", b"data");
    let other = file(&mut volume, "other", b"x");
    let mut look = |seconds: i64, is_listed: bool| {
        let now = pass(seconds);
        // Reads the clock, which a look at cached data does not.
        volume.set_mode(other, 0o600).unwrap();
        let looked = if is_listed { dir } else { node };
        if is_listed {
            volume.read_dir(dir, 0, &mut Names { room: 10, list: Vec::new() }).unwrap();
        } else {
            assert_eq!(volume.read(node, 0, 4, &mut Bytes::default()), Ok(4));
        }
        let told = volume.take_accessed();
        assert_eq!(volume.take_accessed(), None);
        let accessed = volume.attributes(looked).unwrap().accessed;
        assert_eq!(told.is_some(), accessed == now);
        assert!(told.is_none_or(|told| told == now));
        told.is_some()
    };
    for is_listed in [false, true] {
        assert!(look(10, is_listed), "it was not accessed since it was made");
        assert!(!look(10, is_listed));
        assert!(!look(DAY - 11, is_listed), "a second is missing");
        assert!(look(1, is_listed));
        assert!(!look(1, is_listed));
    }
    pass(10);
    write(&mut volume, node, 0, b"more").unwrap();
    let now = pass(10);
    volume.set_mode(other, 0o600).unwrap();
    volume.read(node, 0, 4, &mut Bytes::default()).unwrap();
    assert_eq!(volume.take_accessed(), Some(now), "it has changed since");
}

#[test]
fn who_owns_and_what_the_mode_is() {
    let (_, mut volume) = new(1024, ONE);
    let attributes = |volume: &mut Volume, node| -> Attributes { volume.attributes(node).unwrap() };
    let make =
        |volume: &mut Volume, name: &str, mode| volume.make_node(ROOT, name.as_bytes(), mode, 0, ROOT_USER).unwrap();
    // Of programs, a new owner takes the bits; the group's only where it may execute.
    for (number, (mode, after)) in
        [(0o6755, 0o755), (0o6745, 0o2745), (0o6715, 0o715), (0o1777, 0o1777), (0o4700, 0o700)].into_iter().enumerate()
    {
        let program = make(&mut volume, &format!("p{number}"), S_IFREG | mode);
        volume.set_owner(program, None, Some(5)).unwrap();
        let found = attributes(&mut volume, program);
        assert_eq!((found.mode, found.uid, found.gid), (S_IFREG | after, 0, 5), "{mode:o}");
        let written = make(&mut volume, &format!("w{number}"), S_IFREG | mode);
        volume.write(written, 0, 1, &mut crate::common::Slice(b"x"), USER).unwrap();
        assert_eq!(attributes(&mut volume, written).mode, S_IFREG | after, "{mode:o}");
    }
    let dir = volume.make_dir(ROOT, b"d", 0o177_777, USER).unwrap();
    assert_eq!(attributes(&mut volume, dir).mode, S_IFDIR | 0o7777);
    volume.set_owner(dir, Some(6), None).unwrap();
    let found = attributes(&mut volume, dir);
    assert_eq!((found.mode, found.uid, found.gid), (S_IFDIR | 0o7777, 6, USER.gid), "directories keep them");
    volume.set_mode(dir, 0o177_070).unwrap();
    assert_eq!(attributes(&mut volume, dir).mode, S_IFDIR | 0o7070, "the kind stays");
    assert_eq!(volume.make_node(ROOT, b"x", S_IFDIR | 0o755, 0, ROOT_USER), Err(Errno::EINVAL));
    let device = volume.make_node(ROOT, b"c", S_IFCHR | 0o20, 7, ROOT_USER).unwrap();
    let found = attributes(&mut volume, device);
    assert_eq!((found.mode & S_IFMT, found.device, found.size, found.blocks), (S_IFCHR, 7, 0, 0));
    for (node, result) in [(dir, Errno::EISDIR), (device, Errno::EINVAL)] {
        assert_eq!(volume.truncate(node, 0), Err(result));
        assert_eq!(volume.read(node, 0, 1, &mut Bytes::default()), Err(result));
        assert_eq!(write(&mut volume, node, 0, b"x"), Err(result));
        assert_eq!(volume.read_link(node, &mut [0; 10]), Err(Errno::EINVAL));
    }
}

#[test]
fn a_link_is_read_as_far_as_the_buffer_goes() {
    let (_, mut volume) = new(1024, ONE);
    for length in [59, 60] {
        let target: Vec<u8> = (0..length).map(|at| b'a' + at as u8 % 26).collect();
        let link = volume.make_symlink(ROOT, format!("{length}").as_bytes(), &target, ROOT_USER).unwrap();
        for room in [0, 1, 3, 4, 5, length - 1, length, length + 1] {
            let mut buffer = vec![b'-'; room];
            let read = volume.read_link(link, &mut buffer).unwrap();
            assert_eq!((read, &buffer[..read]), (room.min(length), &target[..room.min(length)]), "{length} {room}");
        }
    }
}

#[test]
fn a_new_file_is_one_run_of_blocks_behind_the_inodes_of_its_group() {
    let (disk, mut volume) = new(4096, GROUPS);
    // In a group where nothing is yet.
    let mut dir = directory(&mut volume, ROOT, "0");
    for number in 1..4 {
        dir = directory(&mut volume, dir, &format!("{number}"));
    }
    let layout = Layout::of(&disk, &mut volume);
    let group = layout.group_of(dir);
    assert!(group > 0);
    let node = file_in(&mut volume, dir, "f", &[7; 20 * 1024]);
    let layout = Layout::of(&disk, &mut volume);
    assert_eq!(layout.group_of(node), group, "the group of its directory");
    let blocks = layout.blocks(node);
    let first = blocks[0];
    // The directory itself has the first one, if it was empty.
    assert!((layout.first_data(group)..layout.first_data(group) + 2).contains(&first));
    assert!(blocks.iter().copied().eq(first..first + 12), "{blocks:?}");
    assert_eq!(layout.pointers(node)[12], first + 12, "what points to the rest stands before it");
    let at = (first + 12) as usize * 1024;
    assert!((0..8).all(|slot| layout.word(at + 4 * slot) == first + 13 + slot as u32));
    finish(&disk, volume);
}

#[test]
fn a_file_grows_behind_its_last_block_also_after_a_mount() {
    let (disk, mut volume) = new(1024, ONE);
    let low = file(&mut volume, "low", &[1; 20 * 1024]);
    let node = file(&mut volume, "f", &[2; 3 * 1024]);
    let behind = file(&mut volume, "behind", &[3; 3 * 1024]);
    volume.unlink(ROOT, b"low").unwrap();
    let layout = Layout::of(&disk, &mut volume);
    let last = layout.blocks(behind)[2];
    volume.unmount().unwrap();
    let mut volume = mount(&disk);
    assert_eq!(write(&mut volume, node, 3 * 1024, &[2; 2048]), Ok(2048));
    let layout = Layout::of(&disk, &mut volume);
    assert_eq!(layout.blocks(node)[3..], [last + 1, last + 2], "behind its own blocks, and the next file's");
    // A hole is filled behind the block before it.
    volume.truncate(behind, 10 * 1024).unwrap();
    volume.unmount().unwrap();
    let mut volume = mount(&disk);
    assert_eq!(write(&mut volume, behind, 9 * 1024, b"x"), Ok(1));
    let new = file(&mut volume, "new", &[4; 1024]);
    let layout = Layout::of(&disk, &mut volume);
    assert_eq!(layout.blocks(behind)[3], last + 3);
    assert_eq!(layout.blocks(new)[0], layout.first_data(0).max(layout.blocks(new)[0]));
    assert!(layout.blocks(new)[0] < layout.blocks(node)[0], "where nothing was left");
    let _ = low;
    finish(&disk, volume);
}

#[test]
fn a_file_goes_on_behind_its_last_block_though_there_is_space_before_it() {
    let (disk, mut volume) = new(1024, ONE);
    let node = file(&mut volume, "f", &[1; 14 * 1024]);
    file(&mut volume, "between", &[2; 5 * 1024]);
    assert_eq!(write(&mut volume, node, 14 * 1024, &[1; 3 * 1024]), Ok(3 * 1024));
    volume.unlink(ROOT, b"between").unwrap();
    volume.sync().unwrap();
    assert_eq!(write(&mut volume, node, 17 * 1024, &[1; 2 * 1024]), Ok(2 * 1024));
    let layout = Layout::of(&disk, &mut volume);
    let indirect = layout.pointers(node)[12] as usize * 1024;
    let behind: Vec<u32> = (0..7).map(|slot| layout.word(indirect + 4 * slot)).collect();
    let (first, gap) = (behind[0], behind[2] - behind[1]);
    assert!(gap > 5, "what was between lay here");
    assert_eq!(
        behind,
        [first, first + 1, first + 1 + gap, first + 2 + gap, first + 3 + gap, first + 4 + gap, first + 5 + gap]
    );
    finish(&disk, volume);
}

#[test]
fn behind_the_last_block_of_the_disk_the_search_begins_anew() {
    let (disk, mut volume) = new(1024, &["-b", "1024", "-O", "^resize_inode", "-m", "0"]);
    let end = 1024;
    let small = file(&mut volume, "small", b"x");
    let large = file(&mut volume, "large", b"");
    volume.truncate(large, 1 << 20).unwrap();
    assert_eq!(volume.allocate(large, 0, u64::MAX, Allocation::Fill), Err(Errno::ENOSPC));
    // Its data and what points to it, from the end of the disk backwards, until the last block is the small file's.
    let mut size = (volume.attributes(large).unwrap().blocks / 2 + 2) * 1024;
    let mut blocks = 1;
    while Layout::of(&disk, &mut volume).blocks(small).last() != Some(&(end - 1)) {
        assert!(blocks < 12, "the blocks of the large file ascend");
        while volume.statistics().blocks_free == 0 {
            size -= 1024;
            volume.truncate(large, size).unwrap();
        }
        volume.sync().unwrap();
        assert_eq!(write(&mut volume, small, blocks * 1024, b"x"), Ok(1));
        blocks += 1;
    }
    volume.truncate(large, 1024).unwrap();
    volume.sync().unwrap();
    assert_eq!(write(&mut volume, small, blocks * 1024, b"x"), Ok(1));
    let last = Layout::of(&disk, &mut volume).blocks(small).last().copied().unwrap();
    assert!(last < end / 2, "{last}");
    finish(&disk, volume);
}

#[test]
fn a_file_that_ends_where_free_space_begins_goes_on_there_after_a_mount() {
    let (disk, mut volume) = new(1024, ONE);
    let node = file(&mut volume, "f", &[1; 2048]);
    volume.unmount().unwrap();
    let mut volume = mount(&disk);
    assert_eq!(write(&mut volume, node, 2048, &[1; 1024]), Ok(1024));
    let blocks = Layout::of(&disk, &mut volume).blocks(node);
    assert_eq!(blocks, [blocks[0], blocks[0] + 1, blocks[0] + 2]);
    finish(&disk, volume);
}

/// A file that has another name must not get one in a directory that a power cut may take away: that directory is written first.
#[test]
fn a_directory_is_on_the_disk_before_a_file_moves_into_it() {
    let (disk, mut volume) = new(1024, ONE);
    let node = file(&mut volume, "f", b"x");
    let known = directory(&mut volume, ROOT, "known");
    volume.sync().unwrap();
    // The inode behind that of the directory is new.
    let new = directory(&mut volume, ROOT, "new");
    assert_eq!(new, known + 1);
    disk.forget_log();
    volume.link(known, b"link", node, ROOT_USER).unwrap();
    assert!(disk.log().is_empty(), "the disk knows it");
    volume.link(new, b"link", node, ROOT_USER).unwrap();
    assert!(!disk.log().is_empty());
    disk.forget_log();
    volume.link(new, b"other", node, ROOT_USER).unwrap();
    assert!(disk.log().is_empty(), "now the disk knows it, too");
    finish(&disk, volume);
}

/// Where the superblock says when it was written, and whether the volume was unmounted.
const WRITTEN_AT: usize = 1024 + 48;
const STATE_AT: usize = 1024 + 58;

#[test]
fn the_superblock_says_when_it_was_written_and_whether_the_volume_is_in_use() {
    let disk = Disk::with_kib(1024, ONE);
    let mounted = pass(10);
    let mut volume = Ext2::mount(disk.clone(), options(), memory_of(256 << 10)).unwrap();
    let layout = Layout::of(&disk, &mut volume);
    assert_eq!((layout.word(WRITTEN_AT), layout.half(STATE_AT) & 1), (mounted.seconds as u32, 0));
    file(&mut volume, "f", b"x");
    let synced = pass(10);
    let layout = Layout::of(&disk, &mut volume);
    assert_eq!((layout.word(WRITTEN_AT), layout.half(STATE_AT) & 1), (synced.seconds as u32, 0));
    file(&mut volume, "g", b"x");
    let unmounted = pass(10);
    volume.unmount().unwrap();
    let layout = Layout(disk.bytes());
    assert_eq!((layout.word(WRITTEN_AT), layout.half(STATE_AT) & 1), (unmounted.seconds as u32, 1));
}

/// Which of the moves are on the disk after a power cut is open, but the first of them are not missing.
#[test]
fn a_file_with_another_name_loses_one_to_a_move_only_when_the_moves_before_are_on_the_disk() {
    let (disk, mut volume) = new(1024, ONE);
    let dir = directory(&mut volume, ROOT, "d");
    let [moved, single, linked] = ["moved", "single", "linked"].map(|name| file(&mut volume, name, b"x"));
    volume.link(ROOT, b"other", linked, ROOT_USER).unwrap();
    for name in ["1", "2"] {
        file(&mut volume, name, b"x");
    }
    volume.sync().unwrap();
    disk.forget_log();
    volume.rename(ROOT, b"moved", dir, b"moved", ROOT_USER).unwrap();
    volume.rename(ROOT, b"1", ROOT, b"single", ROOT_USER).unwrap();
    assert!(disk.log().is_empty(), "it had no other name");
    volume.rename(ROOT, b"2", ROOT, b"linked", ROOT_USER).unwrap();
    assert!(!disk.log().is_empty());
    assert_eq!((volume.attributes(linked).unwrap().links, volume.lookup(dir, b"moved")), (1, Ok(moved)));
    let _ = single;
    finish(&disk, volume);
}

#[test]
fn the_first_block_of_a_file_is_in_the_group_of_its_inode_also_of_the_last_one() {
    let (disk, mut volume) = new(2048, GROUPS);
    let layout = Layout::of(&disk, &mut volume);
    let free = |layout: &Layout| (0..layout.groups()).map(|group| layout.free(group)).collect::<Vec<_>>();
    let inodes: u32 = free(&layout).iter().map(|free| free.1).sum();
    let nodes: Vec<NodeId> = (0..inodes)
        .map(|number| {
            let dir_name = format!("d{}", number / 50);
            let dir = volume.lookup(ROOT, dir_name.as_bytes()).ok();
            let name = format!("{number}");
            let made = dir.map(|dir| volume.make_node(dir, name.as_bytes(), S_IFREG | 0o644, 0, ROOT_USER));
            made.unwrap_or_else(|| volume.make_dir(ROOT, dir_name.as_bytes(), 0o755, ROOT_USER)).unwrap()
        })
        .collect();
    assert_eq!(volume.statistics().nodes_free, 0);
    let layout = Layout::of(&disk, &mut volume);
    let mut left: Vec<u32> = free(&layout).iter().map(|free| free.0).collect();
    let files: Vec<NodeId> = nodes.into_iter().filter(|&node| volume.attributes(node).unwrap().size == 0).collect();
    for &node in files.iter().rev() {
        let group = layout.group_of(node) as usize;
        if left[group] > 0 {
            left[group] -= 1;
            assert_eq!(write(&mut volume, node, 0, b"x"), Ok(1));
        }
    }
    let layout = Layout::of(&disk, &mut volume);
    for &node in &files {
        let expected = layout.group_of(node);
        assert!(layout.blocks(node).iter().all(|block| (block - 1) / 256 == expected), "inode {node}");
    }
    assert!(files.iter().any(|&node| (node as u32).is_multiple_of(layout.inodes_per_group())));
    finish(&disk, volume);
}

#[test]
fn behind_the_last_block_of_the_disk_comes_the_first_group() {
    let (disk, mut volume) = new(1024, &["-b", "1024", "-g", "256", "-N", "512", "-O", "^resize_inode", "-m", "0"]);
    let large = file(&mut volume, "large", b"");
    volume.truncate(large, 1 << 20).unwrap();
    assert_eq!(volume.allocate(large, 0, u64::MAX, Allocation::Fill), Err(Errno::ENOSPC));
    let small = file(&mut volume, "small", b"");
    let groups = Layout::of(&disk, &mut volume).groups();
    // The last block of the disk is the small file's.
    let count = volume.attributes(large).unwrap().blocks / 2;
    let last = (0..count + 20).rev().find(|&index| {
        volume.allocate(large, index * 1024, 1024, Allocation::Punch).unwrap();
        volume.sync().unwrap();
        if volume.statistics().blocks_free == 0 || write(&mut volume, small, 0, b"x") != Ok(1) {
            return false;
        }
        let is_last = Layout::of(&disk, &mut volume).blocks(small) == [1023];
        if !is_last {
            volume.truncate(small, 0).unwrap();
            volume.sync().unwrap();
        }
        is_last
    });
    assert!(last.is_some());
    volume.truncate(large, 13 * 1024).unwrap();
    volume.allocate(large, 0, 5 * 1024, Allocation::Punch).unwrap();
    volume.sync().unwrap();
    let layout = Layout::of(&disk, &mut volume);
    assert!((0..groups).all(|group| layout.free(group).0 > 0));
    assert_eq!(write(&mut volume, small, 1024, b"x"), Ok(1));
    let block = Layout::of(&disk, &mut volume).blocks(small)[1];
    assert_eq!((block - 1) / 256, 0, "{block}");
    finish(&disk, volume);
}

#[test]
fn after_a_truncation_a_file_grows_where_it_ends() {
    let (disk, mut volume) = new(1024, ONE);
    let low = file(&mut volume, "low", &[1; 10 * 1024]);
    let node = file(&mut volume, "f", &[2; 12 * 1024]);
    volume.unlink(ROOT, b"low").unwrap();
    let first = Layout::of(&disk, &mut volume).blocks(node)[0];
    volume.truncate(node, 4 * 1024).unwrap();
    volume.sync().unwrap();
    assert_eq!(write(&mut volume, node, 4 * 1024, &[2; 1024]), Ok(1024));
    assert_eq!(Layout::of(&disk, &mut volume).blocks(node)[4], first + 4);
    volume.allocate(node, 1024, 3 * 1024, Allocation::Punch).unwrap();
    volume.sync().unwrap();
    assert_eq!(write(&mut volume, node, 1024, &[2; 1024]), Ok(1024));
    assert_eq!(Layout::of(&disk, &mut volume).blocks(node)[1], first + 1);
    let _ = low;
    finish(&disk, volume);
}

/// A file with all blocks that are free, of which single ones are given back.
#[test]
fn the_last_free_block_is_found_wherever_it_is() {
    let (disk, mut volume) = new(1024, GROUPS);
    let large = file(&mut volume, "large", b"");
    let small = file(&mut volume, "small", b"x");
    volume.truncate(large, 1 << 20).unwrap();
    assert_eq!(volume.allocate(large, 0, u64::MAX, Allocation::Fill), Err(Errno::ENOSPC));
    let groups = Layout::of(&disk, &mut volume).groups();
    assert_eq!(volume.statistics().blocks_free, 0);
    let (mut found, mut seen) = (1, vec![0; groups as usize]);
    for index in (0..900).step_by(37).filter(|&index| index > 12) {
        let before = volume.statistics().blocks_free;
        volume.allocate(large, index * 1024, 1024, Allocation::Punch).unwrap();
        volume.sync().unwrap();
        if volume.statistics().blocks_free == before {
            continue;
        }
        assert_eq!(write(&mut volume, small, found * 1024, b"x"), Ok(1), "block {index}");
        found += 1;
        let block = Layout::of(&disk, &mut volume).blocks(small).last().copied().unwrap();
        seen[((block - 1) / 256) as usize] += 1;
        if found == 12 {
            volume.truncate(small, 1).unwrap();
            volume.allocate(large, 0, 1 << 20, Allocation::Fill).unwrap_or_default();
            found = 1;
        }
    }
    assert!(seen.iter().all(|&blocks| blocks > 0), "{seen:?}");
    finish(&disk, volume);
}

/// The rule: the first group, from the parent's on, with at least the average of free inodes and blocks.
#[test]
fn a_directory_goes_to_a_group_that_has_space_and_a_file_to_its_directory() {
    let (disk, mut volume) = new(2048, GROUPS);
    let mut dirs = vec![ROOT];
    for number in 0..60usize {
        let parent = dirs[number * 7 % dirs.len()];
        let layout = Layout::of(&disk, &mut volume);
        let groups = layout.groups();
        let free: Vec<_> = (0..groups).map(|group| layout.free(group)).collect();
        let averages = (
            free.iter().map(|free| free.0).sum::<u32>() / groups,
            free.iter().map(|free| free.1).sum::<u32>() / groups,
        );
        let home = layout.group_of(parent);
        let is_spacious = |&group: &u32| free[group as usize].0 >= averages.0 && free[group as usize].1 >= averages.1;
        let expected = (0..groups).map(|step| (home + step) % groups).find(is_spacious).unwrap_or(home);
        let made = directory(&mut volume, parent, &format!("{number}"));
        assert_eq!(layout.group_of(made), expected, "directory {number}: {free:?}");
        let content = vec![1; number % 5 * 4000];
        let node = file_in(&mut volume, parent, &format!("f{number}"), &content);
        assert_eq!(layout.group_of(node), home);
        dirs.push(made);
    }
    // A full group: the next one that has an inode.
    let layout = Layout::of(&disk, &mut volume);
    let (home, per_group) = (layout.group_of(dirs[5]), layout.inodes_per_group());
    let mut groups = Vec::new();
    while let Ok(node) = volume.make_node(dirs[5], format!("x{}", groups.len()).as_bytes(), S_IFREG, 0, ROOT_USER) {
        groups.push(layout.group_of(node));
    }
    let expected = (0..layout.groups()).map(|step| (home + step) % layout.groups());
    let expected = expected.flat_map(|group| vec![group; layout.free(group).1 as usize]);
    assert!(groups.iter().copied().eq(expected), "{per_group} inodes each: {groups:?}");
    finish(&disk, volume);
}

#[test]
fn what_is_freed_is_not_used_again_before_the_disk_knows_but_what_it_never_knew_is() {
    let (disk, mut volume) = new(1024, ONE);
    let old = file(&mut volume, "old", &[1; 8 * 1024]);
    let free = volume.statistics().blocks_free;
    let layout = Layout::of(&disk, &mut volume);
    let old_blocks = layout.blocks(old);
    // Before anything is freed that the disk knows.
    let made = [b"first", b"other"].map(|name| {
        let node = volume.make_node(ROOT, name, S_IFREG | 0o644, 0, ROOT_USER).unwrap();
        assert_eq!(write(&mut volume, node, 0, &[2; 8 * 1024]), Ok(8 * 1024));
        volume.unlink(ROOT, name).unwrap();
        node
    });
    assert_eq!((made[0], volume.statistics().blocks_free), (made[1], free));
    volume.unlink(ROOT, b"old").unwrap();
    let new = file(&mut volume, "new", &[2; 8 * 1024]);
    assert_ne!(new, old);
    volume.unlink(ROOT, b"new").unwrap();
    let again = file(&mut volume, "again", &[3; 8 * 1024]);
    assert_eq!(again, new, "the disk has never heard of it");
    let blocks = Layout::of(&disk, &mut volume).blocks(again);
    assert!(blocks.iter().all(|block| !old_blocks.contains(block)));
    assert_eq!(blocks[0], old_blocks[7] + 1, "the blocks of the one before, which were never written");
    let last = file(&mut volume, "last", &[4; 8 * 1024]);
    assert_eq!((last, Layout::of(&disk, &mut volume).blocks(last)), (old, old_blocks));
    finish(&disk, volume);
}

/// The names that move in a window are kept in mind by their sectors, of which there may be 256.
#[test]
fn so_many_sectors_get_names_before_all_is_written() {
    let disk = Disk::with_kib(4096, &["-b", "1024", "-O", "^resize_inode,^dir_index"]);
    let mut volume = Ext2::mount(disk.clone(), options(), memory_of(8 << 20)).unwrap();
    let node = file(&mut volume, "f", b"x");
    let dir = directory(&mut volume, ROOT, "d");
    volume.sync().unwrap();
    disk.forget_log();
    // Two of these names fill a sector, but for the first one, which begins with "." and "..". In a new block the first name is no move to a
    // sector that the disk knows.
    let mut link = |number: u32| volume.link(dir, format!("{number:0>240}").as_bytes(), node, ROOT_USER).unwrap();
    let links = 3 + 127 * 4 + 2;
    (0..links).for_each(&mut link);
    assert_eq!(disk.log().len(), 0, "257 sectors");
    link(links);
    assert!(!disk.log().is_empty());
    disk.forget_log();
    (links + 1..2 * links - 10).for_each(&mut link);
    assert_eq!(disk.log().len(), 0, "it began anew");
    finish(&disk, volume);
}

#[test]
fn a_file_of_512_blocks_is_freed_at_once_and_a_larger_one_afterwards() {
    for (blocks, at_once) in [(512, true), (513, false)] {
        let (disk, mut volume) = new(2048, ONE);
        let empty = volume.statistics();
        // One more points to a part of them from 13 on, another from 269 on, with one for each 256.
        let content = vec![1; (blocks - 3) as usize * 1024];
        let node = file(&mut volume, "f", &content);
        assert_eq!(volume.attributes(node).unwrap().blocks, 2 * blocks);
        volume.unlink(ROOT, b"f").unwrap();
        let after = volume.statistics();
        assert_eq!((after.blocks_free == empty.blocks_free, after.nodes_free == empty.nodes_free), (at_once, at_once));
        volume.clean_up().unwrap();
        assert_eq!(volume.statistics(), empty);
        finish(&disk, volume);
    }
}

#[test]
fn what_cannot_be_made_leaves_nothing() {
    let (disk, mut volume) = new(1024, &["-b", "1024", "-m", "0"]);
    let dir = directory(&mut volume, ROOT, "d");
    let large = file(&mut volume, "large", b"x");
    // Names until the block is full: the next one needs another.
    let full = |number: u32| format!("{number:0>240}").into_bytes();
    (0..3).for_each(|number| assert!(volume.make_node(dir, &full(number), S_IFREG, 0, ROOT_USER).is_ok()));
    volume.truncate(large, 1 << 20).unwrap();
    assert_eq!(volume.allocate(large, 0, u64::MAX, Allocation::Fill), Err(Errno::ENOSPC));
    let before = volume.statistics();
    let no_space = Err(Errno::ENOSPC);
    for _ in 0..2 {
        assert_eq!(volume.make_node(dir, &full(9), S_IFREG, 0, ROOT_USER), no_space);
        assert_eq!(volume.make_dir(ROOT, b"new", 0o755, ROOT_USER), no_space);
        assert_eq!(volume.make_dir(dir, &full(9), 0o755, ROOT_USER), no_space);
        assert_eq!(volume.make_symlink(ROOT, b"new", &[b't'; 60], ROOT_USER), no_space);
        assert_eq!(volume.make_symlink(dir, &full(9), b"short", ROOT_USER), no_space);
        assert_eq!(volume.link(dir, &full(9), large, ROOT_USER), no_space.map(drop));
        assert_eq!(volume.rename(ROOT, b"large", dir, &full(9), ROOT_USER), no_space.map(drop));
        assert_eq!(volume.rename_leaving_whiteout(ROOT, b"large", dir, &full(9), ROOT_USER), no_space.map(drop));
        assert_eq!(volume.statistics(), before);
    }
    assert_eq!((volume.attributes(large).unwrap().links, volume.lookup(ROOT, b"large")), (1, Ok(large)));
    assert_eq!(list(&mut volume, dir).len(), 2 + 3);
    assert_eq!(volume.attributes(dir).unwrap().links, 2);
    finish(&disk, volume);
}

#[test]
fn a_whiteout_is_left_in_every_case_and_only_then() {
    let (disk, mut volume) = new(1024, ONE);
    let dir = directory(&mut volume, ROOT, "d");
    let node = file(&mut volume, "f", b"data");
    let full = directory(&mut volume, ROOT, "full");
    file_in(&mut volume, full, "inner", b"x");
    let free = volume.statistics();
    let mut leave = |old: &[u8], dir, new: &[u8]| volume.rename_leaving_whiteout(ROOT, old, dir, new, ROOT_USER);
    assert_eq!(leave(b"none", dir, b"x"), Err(Errno::ENOENT));
    assert_eq!(leave(b".", dir, b"x"), Err(Errno::EBUSY));
    assert_eq!(leave(b"f", dir, b".."), Err(Errno::EBUSY));
    assert_eq!(leave(b"f", ROOT, b"d"), Err(Errno::EISDIR));
    assert_eq!(leave(b"d", ROOT, b"f"), Err(Errno::ENOTDIR));
    assert_eq!(leave(b"d", ROOT, b"full"), Err(Errno::ENOTEMPTY));
    assert_eq!(leave(b"d", dir, b"x"), Err(Errno::EINVAL), "below itself");
    assert_eq!(leave(b"f", ROOT, b"f"), Ok(()), "the same file");
    assert_eq!(volume.lookup(ROOT, b"f"), Ok(node));
    assert_eq!(volume.statistics(), free);
    volume.link(ROOT, b"g", node, ROOT_USER).unwrap();
    assert_eq!(volume.rename_leaving_whiteout(ROOT, b"f", ROOT, b"g", ROOT_USER), Ok(()), "two names of it");
    assert_eq!((volume.lookup(ROOT, b"f"), volume.lookup(ROOT, b"g")), (Ok(node), Ok(node)));
    assert_eq!(volume.rename_leaving_whiteout(ROOT, b"f", dir, b"f", ROOT_USER), Ok(()));
    let whiteout = volume.lookup(ROOT, b"f").unwrap();
    let found = volume.attributes(whiteout).unwrap();
    assert_eq!((found.mode, found.device, found.links), (S_IFCHR, 0, 1));
    assert_eq!((volume.lookup(dir, b"f"), volume.attributes(node).unwrap().links), (Ok(node), 2));
    finish(&disk, volume);
}

#[test]
fn users_are_counted_and_the_root_does_not_make_a_volume_busy() {
    let (disk, mut volume) = new(1024, ONE);
    let node = file(&mut volume, "f", b"x");
    volume.get(ROOT).unwrap();
    assert!(!volume.is_busy());
    volume.get(node).unwrap();
    assert!(volume.is_busy());
    assert_eq!(volume.put(node, 0), Ok(()));
    assert!(volume.is_busy());
    assert_eq!(volume.put(node, 1), Ok(()));
    assert!(!volume.is_busy());
    assert_eq!(volume.put(node, 1), Err(Errno::EINVAL));
    assert_eq!(volume.lookup(ROOT, b"f"), Ok(node), "a file with a name stays");
    // A new vfs tells what it uses; the rest is not in use any more.
    volume.get(node).unwrap();
    let gone = volume.make_nameless(ROOT, S_IFREG | 0o600, USER).unwrap();
    let kept = volume.make_nameless(ROOT, S_IFREG | 0o600, USER).unwrap();
    let mut uses = vec![(ROOT, 2), (kept, 3)];
    uses.sort_unstable();
    volume.set_uses(&uses).unwrap();
    assert_eq!(volume.attributes(gone).err(), Some(Errno::EUCLEAN));
    assert_eq!(volume.put(node, 1), Err(Errno::EINVAL));
    assert_eq!(volume.put(kept, 2), Ok(()));
    assert_eq!(volume.attributes(kept).unwrap().links, 0);
    assert_eq!(volume.put(kept, 1), Ok(()));
    assert_eq!(volume.attributes(kept).err(), Some(Errno::EUCLEAN));
    finish(&disk, volume);
}

#[test]
fn a_file_is_as_large_as_its_trees_and_its_count_of_sectors_allow() {
    for (block_size, limit) in [("1024", 17_247_252_480), ("2048", 275_415_851_008), ("4096", 2_194_728_280_064u64)] {
        let (disk, mut volume) = new(1024, &["-b", block_size]);
        let node = file(&mut volume, "f", b"x");
        assert_eq!(volume.truncate(node, limit + 1), Err(Errno::EFBIG), "{block_size}");
        assert_eq!(volume.truncate(node, limit), Ok(()));
        assert_eq!(volume.allocate(node, limit, 1, Allocation::Punch), Err(Errno::EFBIG));
        assert_eq!(volume.allocate(node, limit - 1, 1, Allocation::Punch), Ok(()));
        assert_eq!(write(&mut volume, node, limit - 1, b"xy"), Ok(1));
        assert_eq!(write(&mut volume, node, limit, b"x"), Err(Errno::EFBIG));
        finish(&disk, volume);
    }
}

/// Pointers in indirect blocks are checked as those in the inode.
#[test]
fn a_corrupt_pointer_anywhere_is_an_error_of_what_follows_it_alone() {
    let (disk, mut volume) = new(2048, ONE);
    let node = file(&mut volume, "f", &[7; 300 * 1024]);
    let layout = Layout::of(&disk, &mut volume);
    volume.unmount().unwrap();
    let pointers = layout.pointers(node);
    let second = layout.word(pointers[13] as usize * 1024);
    let clean = disk.bytes();
    for (indirect, slot, corrupt) in [(pointers[12], 5, 17), (pointers[13], 0, 268), (second, 3, 271)] {
        let mut bytes = clean.clone();
        bytes[indirect as usize * 1024 + 4 * slot..][..4].copy_from_slice(&1u32.to_le_bytes());
        let disk = Disk::of(bytes);
        let mut volume = mount(&disk);
        let mut read = |index: u64| volume.read(node, index * 1024, 1, &mut Bytes::default());
        assert_eq!(read(corrupt), Err(Errno::EUCLEAN), "block {corrupt}");
        assert_eq!(read(corrupt - 1), Ok(1));
        assert_eq!(write(&mut volume, node, corrupt * 1024, b"x"), Err(Errno::EUCLEAN));
        assert_eq!(volume.truncate(node, 0), Err(Errno::EUCLEAN));
        assert!(!volume.statistics().read_only);
    }
}

#[test]
fn nothing_of_what_a_block_held_before_is_seen() {
    let (disk, mut volume) = new(1024, &["-b", "1024", "-m", "0"]);
    let node = file(&mut volume, "old", b"");
    let garbage = [0xee; 16 * 1024];
    let mut size = 0;
    while let Ok(done) = write(&mut volume, node, size, &garbage) {
        size += done as u64;
    }
    assert_eq!(volume.statistics().blocks_free, 0);
    volume.unlink(ROOT, b"old").unwrap();
    volume.clean_up().unwrap();
    volume.unmount().unwrap();
    let mut volume = mount(&disk);
    let mut expected = vec![0; 700_000];
    let node = file(&mut volume, "new", b"");
    volume.truncate(node, expected.len() as u64).unwrap();
    // Parts of blocks behind pointers of each kind, at their beginning, in their midst and at their end.
    for (at, bytes) in [(0, 10), (1500, 10), (4000, 96), (20_000, 1), (40_959, 2), (300_500, 3000), (699_999, 1)] {
        expected[at..at + bytes].fill(7);
        assert_eq!(write(&mut volume, node, at as u64, &vec![7; bytes]), Ok(bytes));
    }
    volume.allocate(node, 100_000, 50_000, Allocation::Fill).unwrap();
    let mut source = crate::common::Slice(&[7; 100]);
    assert_eq!(volume.write(node, 60_000, 200, &mut source, ROOT_USER), Err(Errno::EFAULT));
    assert!(read_all(&mut volume, node) == expected);
    let dir = directory(&mut volume, ROOT, "d");
    for number in 0..40 {
        file_in(&mut volume, dir, &format!("{number:0>200}"), b"");
    }
    let link = volume.make_symlink(ROOT, b"link", &[b't'; 100], ROOT_USER).unwrap();
    let mut target = [0; 2000];
    assert_eq!(volume.read_link(link, &mut target), Ok(100));
    volume.unmount().unwrap();
    let mut volume = mount(&disk);
    assert!(read_all(&mut volume, node) == expected);
    assert_eq!(list(&mut volume, dir).len(), 42);
    // Behind its end, too.
    volume.truncate(node, 500).unwrap();
    volume.truncate(node, 3000).unwrap();
    assert_eq!(read_all(&mut volume, node), [&expected[..500], &[0; 2500]].concat());
    finish(&disk, volume);
}

/// A device that counts what is read, and may refuse it.
struct Watched {
    disk: Disk,
    reads: Rc<RefCell<Vec<(u64, usize)>>>,
    refuses: Rc<Cell<bool>>,
}

impl BlockDevice for Watched {
    fn sector_count(&self) -> u64 {
        self.disk.sector_count()
    }

    fn read(&mut self, first_sector: u64, buffer: &mut [u8]) -> Result<(), Errno> {
        if self.refuses.get() {
            return Err(Errno::EIO);
        }
        self.reads.borrow_mut().push((first_sector / 2, buffer.len() / 1024));
        self.disk.read(first_sector, buffer)
    }

    fn write(&mut self, first_sector: u64, data: &[u8]) -> Result<(), Errno> {
        assert_eq!(data.len() % SECTOR_SIZE, 0);
        self.disk.write(first_sector, data)
    }

    fn flush(&mut self) -> Result<(), Errno> {
        self.disk.flush()
    }
}

#[test]
fn a_file_that_is_read_on_is_read_ahead_and_any_other_block_alone() {
    let (disk, mut volume) = new(2048, ONE);
    let content: Vec<u8> = (0..600 * 1024).map(|at| (at / 1024 * 7) as u8).collect();
    let node = file(&mut volume, "f", &content);
    volume.unmount().unwrap();
    let reads = Rc::new(RefCell::new(Vec::new()));
    let device = Watched { disk, reads: reads.clone(), refuses: Rc::default() };
    let mut volume = Ext2::mount(device, options(), memory_of(1 << 20)).unwrap();
    let mut read = |index: u64, blocks: usize| {
        volume.attributes(node).unwrap();
        reads.borrow_mut().clear();
        let mut bytes = Bytes::default();
        assert_eq!(volume.read(node, index * 1024, blocks * 1024, &mut bytes), Ok(blocks * 1024));
        assert!(bytes.0 == content[index as usize * 1024..][..blocks * 1024]);
        let found: Vec<usize> = reads.borrow().iter().map(|&(_, blocks)| blocks).collect();
        found
    };
    assert_eq!(read(5, 1), [1], "here and there");
    assert_eq!(read(8, 1), [1]);
    assert_eq!(read(9, 1).into_iter().max(), Some(3), "it goes on, up to where the indirect block stands");
    assert_eq!(read(100, 1).into_iter().max(), Some(1));
    let ahead = read(101, 1).into_iter().max().unwrap();
    assert!((64..=155).contains(&ahead), "{ahead} blocks of the rest before the next indirect block");
    assert_eq!(read(102, ahead - 1), []);
    assert_eq!(read(300, 20).last(), Some(&20), "as many as are wanted");
    // To the end of the file and not beyond.
    assert_eq!(read(590, 1).last(), Some(&1));
    assert_eq!(read(591, 1), [9]);
    assert_eq!(read(592, 8), []);
}

#[test]
fn content_that_its_reader_keeps_is_read_from_the_device_again_unless_it_is_newer() {
    let (disk, mut volume) = new(2048, ONE);
    let content: Vec<u8> = (0..40 * 1024 + 100).map(|at| (at / 1024 * 7) as u8).collect();
    let node = file(&mut volume, "f", &content);
    volume.unmount().unwrap();
    let reads = Rc::new(RefCell::new(Vec::new()));
    let device = Watched { disk: disk.clone(), reads: reads.clone(), refuses: Rc::default() };
    let mut volume = Ext2::mount(device, options(), memory_of(1 << 20)).unwrap();
    let read = |volume: &mut Ext2<Watched>| {
        reads.borrow_mut().clear();
        assert!(read_all(volume, node) == content);
        let blocks: usize = reads.borrow().iter().map(|&(_, blocks)| blocks).sum();
        blocks
    };
    read(&mut volume);
    assert_eq!(read(&mut volume), 0, "everything is cached");
    volume.forget_content(node, 100, 8 * 1024);
    assert_eq!(read(&mut volume), 8, "the first block was not kept as a whole");
    volume.forget_content(node, 0, content.len());
    assert_eq!(read(&mut volume), 41, "with the last one, which is not full");
    // What the disk does not have yet stays, whoever keeps it.
    assert_eq!(write(&mut volume, node, 3000, &content[3000..9000]), Ok(6000));
    volume.forget_content(node, 0, content.len());
    let newer = (3000 + 6000usize).div_ceil(1024) - 3000 / 1024;
    assert_eq!(read(&mut volume), 41 - newer);
    volume.unmount().unwrap();
}

#[test]
fn a_successor_resumes_without_the_device() {
    let layout = fs::preserve::Layout { volumes: 1, ..LAYOUT };
    let keep = memory_words(layout);
    let (disk, mut volume) = new(2048, GROUPS);
    file(&mut volume, "f", &[7; 1_200_000]);
    volume.unmount().unwrap();
    let refuses = Rc::new(Cell::new(false));
    let device = || Watched { disk: disk.clone(), reads: Rc::default(), refuses: refuses.clone() };
    let preserved = Preserved::open(keep, layout, StartKind::Fresh);
    preserved.undo.commit();
    let mut volume = Ext2::mount(device(), options(), preserved.volume(0).unwrap()).unwrap();
    volume.sync().unwrap();
    // Everything that is not pinned leaves the cache.
    let node = volume.lookup(ROOT, b"f").unwrap();
    assert_eq!(read_all(&mut volume, node).len(), 1_200_000);
    volume.settle().unwrap();
    preserved.undo.commit();
    volume.committed();
    let memo = ext2::Memo::from_words(volume.memo()).unwrap();
    let expected = volume.statistics();
    drop(volume);
    refuses.set(true);
    let mut volume = Ext2::resume(device(), options(), preserved.volume(0).unwrap(), memo).unwrap();
    assert_eq!(volume.statistics(), expected);
    refuses.set(false);
    assert_eq!(volume.lookup(ROOT, b"f"), Ok(node));
    // What its predecessor has freed is not used again before the disk knows: nobody remembers what that was.
    disk.forget_log();
    volume.make_node(ROOT, b"new", S_IFREG | 0o644, 0, ROOT_USER).unwrap();
    assert!(!disk.log().is_empty());
}

#[test]
fn only_what_changes_something_is_a_change() {
    let disk = Disk::with_kib(1024, ONE);
    let mut volume = Ext2::mount(disk.clone(), options(), memory_of(256 << 10)).unwrap();
    assert!(volume.is_changed(), "it is in use");
    volume.sync().unwrap();
    let node = file(&mut volume, "f", &[7; 1024]);
    let settle = |volume: &mut Volume| {
        volume.sync().unwrap();
        assert!(!volume.is_changed());
    };
    settle(&mut volume);
    volume.attributes(node).unwrap();
    volume.lookup(ROOT, b"f").unwrap();
    assert!(!volume.is_changed(), "looks change nothing");
    volume.set_mode(node, 0o600).unwrap();
    assert!(volume.is_changed());
    settle(&mut volume);
    write(&mut volume, node, 0, b"x").unwrap();
    assert!(volume.is_changed());
    settle(&mut volume);
    volume.get(node).unwrap();
    volume.put(node, 1).unwrap();
    finish(&disk, volume);
}
