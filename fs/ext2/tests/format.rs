//! The numbers of the format at their limits: which are accepted, which are refused, and what is written. Images are changed byte by byte in
//! memory. The file is long because the format has many numbers, each of which has its limits.

use crate::common::disk::Disk;
use crate::common::{Bytes, NOW, ROOT_USER, Scratch, check, list, memory_of, options, read_all, write};
use ext2::{Ext2, Memo};
use fs::Errno;
use fs::device::BlockDevice;
use fs::file_system::{
    FileSystem, NewTimes, NodeId, S_IFBLK, S_IFCHR, S_IFDIR, S_IFIFO, S_IFLNK, S_IFREG, S_IFSOCK, Timestamp, XattrMode,
};

const ROOT: NodeId = 2;
const SUPERBLOCK: usize = 1024;

// Offsets in the superblock.
const BLOCKS: usize = 4;
const RESERVED: usize = 8;
const FIRST_DATA_BLOCK: usize = 20;
const LOG_BLOCK_SIZE: usize = 24;
const BLOCKS_PER_GROUP: usize = 32;
const INODES_PER_GROUP: usize = 40;
const MOUNT_TIME: usize = 44;
const WRITE_TIME: usize = 48;
const MOUNT_COUNT: usize = 52;
const STATE: usize = 58;
const REVISION: usize = 76;
const FIRST_INODE: usize = 84;
const INODE_SIZE: usize = 88;
const WANTED_EXTRA_SIZE: usize = 350;

/// An image in memory.
#[derive(Clone)]
struct Image(Vec<u8>);

impl Image {
    fn new(kib: u32, arguments: &[&str]) -> Image {
        Image(Disk::with_kib(kib, arguments).bytes())
    }

    fn half(&self, at: usize) -> u16 {
        u16::from_le_bytes(self.0[at..at + 2].try_into().unwrap())
    }

    fn word(&self, at: usize) -> u32 {
        u32::from_le_bytes(self.0[at..at + 4].try_into().unwrap())
    }

    fn put_half(&mut self, at: usize, value: u16) {
        self.0[at..at + 2].copy_from_slice(&value.to_le_bytes());
    }

    fn put_word(&mut self, at: usize, value: u32) {
        self.0[at..at + 4].copy_from_slice(&value.to_le_bytes());
    }

    fn mount(&self) -> Result<Ext2<Disk>, Errno> {
        Ext2::mount(Disk::of(self.0.clone()), options(), memory_of(128 << 10))
    }

    /// Returns the error of a mount with a changed word, if any.
    fn error_of_word(&self, at: usize, value: u32) -> Option<Errno> {
        let mut changed = self.clone();
        changed.put_word(at, value);
        changed.mount().err()
    }

    /// As `error_of_word`, with 16 bits.
    fn error_of_half(&self, at: usize, value: u16) -> Option<Errno> {
        let mut changed = self.clone();
        changed.put_half(at, value);
        changed.mount().err()
    }

    fn block_size(&self) -> usize {
        1024 << self.word(SUPERBLOCK + LOG_BLOCK_SIZE)
    }

    /// Returns the offset of the descriptor of a group.
    fn descriptor(&self, group: u32) -> usize {
        (self.word(SUPERBLOCK + FIRST_DATA_BLOCK) as usize + 1) * self.block_size() + group as usize * 32
    }

    /// Returns the offset of an inode.
    fn inode(&self, node: NodeId) -> usize {
        let per_group = self.word(SUPERBLOCK + INODES_PER_GROUP);
        let (group, index) = ((node as u32 - 1) / per_group, (node as u32 - 1) % per_group);
        let table = self.word(self.descriptor(group) + 8) as usize;
        let is_old = self.word(SUPERBLOCK + REVISION) == 0;
        let size = if is_old { 128 } else { usize::from(self.half(SUPERBLOCK + INODE_SIZE)) };
        table * self.block_size() + index as usize * size
    }
}

/// Unmounts, and gives the bytes after e2fsck has found nothing.
fn unmounted(mut volume: Ext2<Disk>) -> Image {
    volume.unmount().unwrap();
    let bytes = volume.into_device().bytes();
    let scratch = Scratch::new();
    std::fs::write(scratch.path("image"), &bytes).unwrap();
    check(&scratch.path("image"));
    Image(bytes)
}

fn file(volume: &mut Ext2<impl BlockDevice>, name: &str, content: &[u8]) -> NodeId {
    let node = volume.make_node(ROOT, name.as_bytes(), S_IFREG | 0o644, 0, ROOT_USER).unwrap();
    assert_eq!(write(volume, node, 0, content), Ok(content.len()));
    node
}

#[test]
fn the_numbers_of_a_superblock_are_accepted_up_to_their_limits() {
    let small = Image::new(1024, &["-b", "1024", "-I", "128"]);
    let large = Image::new(1024, &["-b", "4096", "-I", "256"]);
    let wide = Image::new(1024, &["-b", "1024", "-I", "1024", "-N", "16"]);
    assert!([&small, &large, &wide].iter().all(|image| image.mount().is_ok()));
    let inodes = small.word(SUPERBLOCK);
    let blocks = small.word(SUPERBLOCK + BLOCKS);
    let (corrupt, no_ext2) = (Some(Errno::EUCLEAN), Some(Errno::EINVAL));
    for (at, value, error) in [
        (LOG_BLOCK_SIZE, 3, no_ext2),
        (BLOCKS, blocks + 1, corrupt),
        (BLOCKS, blocks - 8, None),
        (BLOCKS, 1, corrupt),
        (BLOCKS, 0, corrupt),
        (RESERVED, blocks, None),
        (RESERVED, blocks + 1, corrupt),
        (FIRST_DATA_BLOCK, 0, corrupt),
        (FIRST_DATA_BLOCK, 2, corrupt),
        (BLOCKS_PER_GROUP, 0, corrupt),
        (BLOCKS_PER_GROUP, 8192, None),
        (BLOCKS_PER_GROUP, 8192 + 8, corrupt),
        (BLOCKS_PER_GROUP, 8184, None),
        (BLOCKS_PER_GROUP, 8188, corrupt),
        (INODES_PER_GROUP, 0, corrupt),
        (INODES_PER_GROUP, inodes + 1, corrupt),
        (INODES_PER_GROUP, inodes / 2, corrupt),
        (0, inodes + 1, corrupt),
        (FIRST_INODE, 11, None),
        (FIRST_INODE, 10, corrupt),
        (FIRST_INODE, inodes, None),
        (FIRST_INODE, inodes + 1, corrupt),
    ] {
        assert_eq!(small.error_of_word(SUPERBLOCK + at, value), error, "{at} {value}");
    }
    assert_eq!(large.error_of_word(SUPERBLOCK + FIRST_DATA_BLOCK, 1), corrupt);
    for (image, size) in [(&small, 64), (&small, 192), (&small, 0), (&small, 2048), (&wide, 2048), (&large, 8192)] {
        assert_eq!(image.error_of_half(SUPERBLOCK + INODE_SIZE, size), corrupt, "{size}");
    }
    assert_eq!(small.error_of_half(SUPERBLOCK + 56, 0xef52), no_ext2, "the magic number");
}

#[test]
fn groups_and_inodes_are_as_few_and_as_many_as_a_bitmap_has_bits() {
    let mut smallest = Image::new(1024, &["-b", "1024", "-g", "256"]);
    assert!(smallest.mount().is_ok());
    // Fewer than mke2fs makes: all in the first group.
    smallest.put_word(SUPERBLOCK + BLOCKS, 249);
    smallest.put_word(SUPERBLOCK + BLOCKS_PER_GROUP, 248);
    let first_group = smallest.word(SUPERBLOCK + INODES_PER_GROUP);
    smallest.put_word(SUPERBLOCK, first_group);
    assert_eq!(smallest.mount().err(), Some(Errno::EUCLEAN));
    let full = Image::new(4096, &["-b", "1024", "-I", "128", "-N", "8192"]);
    assert_eq!(full.word(SUPERBLOCK + INODES_PER_GROUP), 8192);
    assert!(full.mount().is_ok());
    let mut over = full;
    [SUPERBLOCK, SUPERBLOCK + INODES_PER_GROUP].into_iter().for_each(|at| over.put_word(at, 8193));
    assert_eq!(over.mount().err(), Some(Errno::EUCLEAN));
}

/// `df` subtracts what the format takes: all that is left is free or in files.
#[test]
fn what_the_format_takes_is_no_space_for_files() {
    for arguments in [
        &["-b", "1024", "-g", "256", "-O", "^resize_inode"][..],
        &["-b", "1024", "-g", "256", "-O", "^resize_inode,^sparse_super"],
        &["-b", "4096", "-O", "^resize_inode"],
    ] {
        // More than 49 groups: copies of the superblock are in those of powers of 3, 5 and 7.
        let mut volume = Image::new(13_000, arguments).mount().unwrap();
        let block_size = volume.statistics().block_size;
        let lost = volume.lookup(ROOT, b"lost+found").unwrap();
        let in_files: u64 =
            [ROOT, lost].map(|node| volume.attributes(node).unwrap().blocks * 512 / block_size).iter().sum();
        let statistics = volume.statistics();
        assert_eq!(statistics.blocks, statistics.blocks_free + in_files, "{arguments:?}");
    }
}

#[test]
fn a_descriptor_points_into_its_group_and_beside_itself() {
    let image = Image::new(1024, &["-b", "1024", "-O", "^resize_inode"]);
    let at = image.descriptor(0);
    let [block_bitmap, inode_bitmap, table] = [0, 4, 8].map(|field| image.word(at + field));
    let (end, inodes) = (image.word(SUPERBLOCK + BLOCKS), image.word(SUPERBLOCK));
    let table_end = table + inodes * 256 / 1024;
    assert_eq!((block_bitmap, image.half(SUPERBLOCK + INODE_SIZE)), (3, 256), "behind superblock and descriptors");
    let corrupt = Some(Errno::EUCLEAN);
    for (field, value, error) in [
        (0, 2, corrupt),
        (0, end - 1, None),
        (0, end, corrupt),
        (0, inode_bitmap, corrupt),
        (0, table, corrupt),
        (0, table_end - 1, corrupt),
        (0, table_end, None),
        (4, 2, corrupt),
        (4, end - 1, None),
        (4, end, corrupt),
        (4, block_bitmap, corrupt),
        (4, table, corrupt),
        (4, table_end - 1, corrupt),
        (4, table_end, None),
        (8, 2, corrupt),
        (8, end, corrupt),
        (8, u32::MAX, corrupt),
    ] {
        assert_eq!(image.error_of_word(at + field, value), error, "{field} {value}");
    }
    // The last place where the table fits, and the one behind.
    for (start, error) in [(end - (table_end - table), None), (end - (table_end - table) + 1, corrupt)] {
        let mut moved = image.clone();
        let inodes = image.0[table as usize * 1024..table_end as usize * 1024].to_vec();
        let place = start as usize * 1024;
        let fitting = inodes.len().min(moved.0.len() - place);
        moved.0[place..place + fitting].copy_from_slice(&inodes[..fitting]);
        moved.put_word(at + 8, start);
        assert_eq!(moved.mount().err(), error, "{start}");
    }
    let group_blocks = (end - 1) as u16;
    for (field, most) in [(12, group_blocks), (14, inodes as u16), (16, inodes as u16)] {
        assert_eq!(image.error_of_half(at + field, most), None, "{field}");
        assert_eq!(image.error_of_half(at + field, most + 1), corrupt, "{field}");
    }
}

#[test]
fn blocks_of_the_format_and_outside_are_no_blocks_of_a_file() {
    let mut volume = Image::new(1024, &["-b", "1024", "-g", "512", "-O", "^resize_inode"]).mount().unwrap();
    let node = file(&mut volume, "f", &[7; 1024]);
    let image = unmounted(volume);
    let end = image.word(SUPERBLOCK + BLOCKS);
    let pointer = image.inode(node) + 40;
    let table_blocks = image.word(SUPERBLOCK + INODES_PER_GROUP) / 4;
    let read = |block| {
        let mut changed = image.clone();
        changed.put_word(pointer, block);
        changed.mount().unwrap().read(node, 0, 1024, &mut Bytes::default())
    };
    let descriptor = |group| image.descriptor(group);
    for group in 0..2 {
        let [block_bitmap, inode_bitmap, table] = [0, 4, 8].map(|field| image.word(descriptor(group) + field));
        let start = 1 + group * 512;
        let format = [start, start + 1, block_bitmap, inode_bitmap, table, table + table_blocks - 1];
        for block in format {
            assert_eq!(read(block), Err(Errno::EUCLEAN), "block {block} of group {group}");
        }
        assert_eq!(read(table + table_blocks), Ok(1024), "behind the table of group {group}");
    }
    assert_eq!([read(0), read(end - 1)], [Ok(1024); 2], "a hole, and the last block");
    assert_eq!([read(end), read(u32::MAX)], [Err(Errno::EUCLEAN); 2]);
}

#[test]
fn an_inode_in_use_has_a_known_kind_a_name_and_a_possible_size() {
    let mut volume = Image::new(1024, &["-b", "1024"]).mount().unwrap();
    let node = file(&mut volume, "f", b"x");
    let image = unmounted(volume);
    let at = image.inode(node);
    let kind = |bits: u32| {
        let mut changed = image.clone();
        changed.put_half(at, bits as u16 | 0o644);
        changed.mount().unwrap().attributes(node).map(|attributes| attributes.mode)
    };
    for known in [S_IFREG, S_IFDIR, S_IFLNK, S_IFCHR, S_IFBLK, S_IFIFO, S_IFSOCK] {
        assert_eq!(kind(known), Ok(known | 0o644));
    }
    for unknown in [0, 0o30_000, 0o50_000, 0o70_000, 0o110_000, 0o130_000, 0o150_000, 0o160_000, 0o170_000] {
        assert_eq!(kind(unknown), Err(Errno::EUCLEAN), "{unknown:o}");
    }
    let with = |field, value| {
        let mut changed = image.clone();
        changed.put_word(at + field, value);
        changed.mount().unwrap().attributes(node).map(|attributes| attributes.size)
    };
    assert_eq!(with(108, i32::MAX as u32), Ok(u64::from(i32::MAX as u32) << 32 | 1));
    assert_eq!(with(108, 1 << 31), Err(Errno::EUCLEAN), "no file offset is so large");
    let mut nameless = image.clone();
    nameless.put_half(at + 26, 0);
    let mut volume = nameless.mount().unwrap();
    assert_eq!((volume.attributes(node).err(), volume.get(node)), (Some(Errno::EUCLEAN), Err(Errno::EUCLEAN)));
}

#[test]
fn inodes_of_the_format_are_no_files() {
    let mut volume = Image::new(1024, &["-b", "1024"]).mount().unwrap();
    let node = file(&mut volume, "f", b"x");
    let image = unmounted(volume);
    let mut volume = image.mount().unwrap();
    let inodes = u64::from(image.word(SUPERBLOCK));
    for reserved in [0, 1, 3, 7, 10, inodes + 1, 1 << 32 | ROOT, u64::MAX] {
        assert_eq!(volume.attributes(reserved).err(), Some(Errno::ESTALE), "{reserved}");
        assert_eq!(volume.by_handle(reserved, 0), Err(Errno::ESTALE), "{reserved}");
    }
    assert!(volume.attributes(ROOT).is_ok() && volume.attributes(11).is_ok());
    assert_eq!(volume.attributes(inodes).err(), Some(Errno::EUCLEAN), "it is free");
    // A directory that names one.
    let block = image.word(image.inode(ROOT) + 40) as usize * 1024;
    let entry = block + image.0[block..block + 1024].windows(3).position(|bytes| bytes == b"\x01\x01f").unwrap() - 6;
    assert_eq!(image.word(entry), node as u32);
    for (named, expected) in [(7, Err(Errno::EUCLEAN)), (11, Ok(11)), (inodes as u32 + 1, Err(Errno::EUCLEAN))] {
        let mut changed = image.clone();
        changed.put_word(entry, named);
        assert_eq!(changed.mount().unwrap().lookup(ROOT, b"f"), expected, "{named}");
    }
}

/// An inode has as many of the newer fields as it says.
#[test]
fn times_have_nanoseconds_where_their_field_is() {
    let times = [NOW, Timestamp { seconds: 1_000_000_000, nanos: 5 }, Timestamp { seconds: 4_000_000_000, nanos: 7 }];
    let old = |time: Timestamp| Timestamp { seconds: i64::from(time.seconds.min(i32::MAX.into()) as i32), nanos: 0 };
    for (extra, has) in [
        (0, [false; 3]),
        (4, [false; 3]),
        (8, [true, false, false]),
        (12, [true, true, false]),
        (16, [true; 3]),
        (32, [true; 3]),
    ] {
        let mut volume = Image::new(1024, &["-b", "1024", "-I", "256"]).mount().unwrap();
        let node = file(&mut volume, "f", b"x");
        let mut image = unmounted(volume);
        let at = image.inode(node) + 128;
        image.0[at..at + 128].fill(0);
        image.put_half(at, extra);
        let mut volume = image.mount().unwrap();
        volume.set_times(node, NewTimes { accessed: Some(times[2]), modified: Some(times[1]) }).unwrap();
        volume.unmount().unwrap();
        let image = Image(volume.into_device().bytes());
        assert_eq!(image.half(at), extra);
        let found = image.mount().unwrap().attributes(node).unwrap();
        let expected: Vec<_> = (0..3).map(|at| if has[at] { times[at] } else { old(times[at]) }).collect();
        assert_eq!([found.changed, found.modified, found.accessed][..], expected, "{extra}");
    }
}

#[test]
fn a_time_that_does_not_fit_is_the_nearest_one_and_nanoseconds_are_less_than_a_second() {
    let latest = (3 << 32) + i64::from(i32::MAX);
    for (inode_size, limit) in [("128", i64::from(i32::MAX)), ("256", latest)] {
        let mut volume = Image::new(1024, &["-b", "1024", "-I", inode_size]).mount().unwrap();
        let node = file(&mut volume, "f", b"x");
        let time = |seconds| Some(Timestamp { seconds, nanos: 1 });
        for (seconds, expected) in [(limit, limit), (limit + 1, limit), (-1 << 31, -1 << 31), (-1 << 40, -1 << 31)] {
            volume.set_times(node, NewTimes { accessed: time(seconds), modified: time(seconds) }).unwrap();
            volume.unmount().unwrap();
            let image = Image(volume.into_device().bytes());
            volume = image.mount().unwrap();
            let found = volume.attributes(node).unwrap();
            assert_eq!((found.accessed.seconds, found.modified.seconds), (expected, expected), "{inode_size}");
        }
    }
    let mut volume = Image::new(1024, &["-b", "1024", "-I", "256"]).mount().unwrap();
    let node = file(&mut volume, "f", b"x");
    let mut image = unmounted(volume);
    for (nanos, expected) in [(999_999_999, 999_999_999), (1_000_000_000, 0)] {
        let at = image.inode(node) + 136;
        image.put_word(at, nanos << 2);
        assert_eq!(image.mount().unwrap().attributes(node).unwrap().modified.nanos, expected);
    }
}

#[test]
fn a_new_inode_has_the_wanted_extra_size_a_time_of_creation_and_the_next_generation() {
    for (inode_size, wanted, expected) in
        [("256", 28, 28), ("256", 27, 32), ("256", 24, 32), ("256", 30, 32), ("256", 128, 128), ("256", 132, 32)]
    {
        let mut image = Image::new(1024, &["-b", "1024", "-I", inode_size]);
        image.put_half(SUPERBLOCK + WANTED_EXTRA_SIZE, wanted);
        let mut volume = image.mount().unwrap();
        let node = file(&mut volume, "f", b"x");
        let image = unmounted(volume);
        let at = image.inode(node);
        let created = (image.word(at + 144), image.word(at + 148) >> 2);
        assert_eq!((image.half(at + 128), created), (expected, (NOW.seconds as u32, NOW.nanos)), "{wanted}");
    }
    let mut volume = Image::new(1024, &["-b", "1024"]).mount().unwrap();
    let node = file(&mut volume, "f", b"x");
    let first = volume.generation(node).unwrap();
    assert_eq!(volume.by_handle(node, first), Ok(node));
    assert_eq!(volume.by_handle(node, first + 1), Err(Errno::ESTALE));
    volume.unlink(ROOT, b"f").unwrap();
    assert_eq!(volume.by_handle(node, first), Err(Errno::ESTALE));
    volume.sync().unwrap();
    assert_eq!(file(&mut volume, "g", b"x"), node, "the lowest free number");
    assert_eq!(volume.generation(node), Ok(first + 1));
    assert_eq!((volume.by_handle(node, first), volume.by_handle(node, first + 1)), (Err(Errno::ESTALE), Ok(node)));
    // Without a name it is a file as long as somebody uses it.
    volume.get(node).unwrap();
    volume.unlink(ROOT, b"g").unwrap();
    assert_eq!(volume.by_handle(node, first + 1), Ok(node));
    volume.put(node, 1).unwrap();
    assert_eq!(volume.by_handle(node, first + 1), Err(Errno::ESTALE));
}

#[test]
fn revision_0_has_none_of_the_later_fields() {
    let mut image = Image::new(1024, &["-b", "1024", "-r", "0"]);
    assert_eq!(image.word(SUPERBLOCK + REVISION), 0);
    // From the first inode to the features, how many descriptors are reserved, and the journal.
    for range in [84..104, 206..208, 224..240] {
        image.0[SUPERBLOCK + range.start..SUPERBLOCK + range.end].fill(0xff);
    }
    let mut volume = image.mount().unwrap();
    assert!(!volume.statistics().read_only && !volume.has_journal());
    let node = file(&mut volume, "f", &[7; 20_000]);
    assert_eq!(node, 12, "the first one behind those of the format and lost+found");
    assert_eq!(volume.truncate(node, 1 << 31), Err(Errno::EFBIG));
    assert_eq!(write(&mut volume, node, (1 << 31) - 1, b"x"), Err(Errno::EFBIG));
    assert_eq!(volume.truncate(node, (1 << 31) - 1), Ok(()));
    assert_eq!(volume.set_xattr(node, b"user.a", b"1", XattrMode::Any, ROOT_USER), Err(Errno::EOPNOTSUPP));
    volume.unmount().unwrap();
    let after = Image(volume.into_device().bytes());
    assert!(after.0[SUPERBLOCK + 84..SUPERBLOCK + 104].iter().all(|&byte| byte == 0xff));
    assert_eq!(after.mount().unwrap().attributes(node).unwrap().size, (1 << 31) - 1);
}

#[test]
fn a_file_of_2_gib_is_large_and_one_of_a_byte_less_is_not() {
    const FEATURE: usize = SUPERBLOCK + 100;
    for (size, is_large) in [((1u64 << 31) - 1, 0), (1 << 31, 2)] {
        let mut volume = Image::new(1024, &["-b", "4096", "-O", "^resize_inode,^large_file"]).mount().unwrap();
        let node = file(&mut volume, "f", b"x");
        volume.truncate(node, size).unwrap();
        let image = unmounted(volume);
        assert_eq!(image.word(FEATURE) & 2, is_large, "{size}");
    }
}

#[test]
fn a_mount_is_counted_and_dated_and_so_is_the_last_write() {
    let image = Image::new(1024, &["-b", "1024"]);
    let (count, now) = (image.half(SUPERBLOCK + MOUNT_COUNT), NOW.seconds as u32);
    let mut volume = image.mount().unwrap();
    file(&mut volume, "f", &[7; 5000]);
    volume.sync().unwrap();
    let statistics = volume.statistics();
    let image = Image(volume.into_device().bytes());
    let found = [MOUNT_TIME, WRITE_TIME].map(|field| image.word(SUPERBLOCK + field));
    assert_eq!((image.half(SUPERBLOCK + MOUNT_COUNT), found), (count + 1, [now; 2]));
    let free = [12, 16].map(|field| u64::from(image.word(SUPERBLOCK + field)));
    assert_eq!(free, [statistics.blocks_free, statistics.nodes_free]);
}

#[test]
fn a_file_system_with_errors_stays_marked() {
    for (state, after) in [(1, 1), (0, 0), (2, 2), (3, 2)] {
        let mut image = Image::new(1024, &["-b", "1024"]);
        image.put_half(SUPERBLOCK + STATE, state);
        let mut volume = image.mount().unwrap();
        volume.sync().unwrap();
        file(&mut volume, "f", b"x");
        volume.unmount().unwrap();
        assert_eq!(Image(volume.into_device().bytes()).half(SUPERBLOCK + STATE), after, "{state}");
    }
}

#[test]
fn an_unmount_that_fails_marks_the_file_system_as_one_with_errors() {
    let mut volume = Image::new(1024, &["-b", "1024"]).mount().unwrap();
    let node = file(&mut volume, "f", &[7; 1024]);
    let mut image = unmounted(volume);
    // A block of the format, which cannot be freed.
    let at = image.inode(node) + 40;
    image.put_word(at, 1);
    let mut volume = image.mount().unwrap();
    volume.get(node).unwrap();
    volume.unlink(ROOT, b"f").unwrap();
    assert_eq!(volume.unmount(), Err(Errno::EUCLEAN));
    assert_eq!(Image(volume.into_device().bytes()).half(SUPERBLOCK + STATE), 2);
}

#[test]
fn a_device_number_is_old_or_new() {
    let mut volume = Image::new(1024, &["-b", "1024"]).mount().unwrap();
    let numbers = [0, 1, 0xffff, 0x1_0000, 0xffff_ffff];
    let nodes = numbers.map(|number| {
        volume.make_node(ROOT, format!("{number}").as_bytes(), S_IFBLK | 0o600, number, ROOT_USER).unwrap()
    });
    let image = unmounted(volume);
    let mut volume = image.mount().unwrap();
    for (node, number) in nodes.into_iter().zip(numbers) {
        let found = [40, 44].map(|field| image.word(image.inode(node) + field));
        let expected = if number > 0xffff { [0, number as u32] } else { [number as u32, 0] };
        assert_eq!((volume.attributes(node).unwrap().device, found), (number, expected));
    }
}

#[test]
fn what_a_successor_needs_is_told_in_words() {
    let memo = |block_size| Memo::from_words([block_size, 1, 3, 4]);
    for size in [1024, 2048, 4096] {
        let found = memo(size).unwrap();
        assert_eq!((found.block_size as u64, found.was_clean, found.device), (size, true, [3, 4]));
        assert_eq!(found.words(), [size, 1, 3, 4]);
    }
    assert!(!Memo::from_words([1024, 0, 0, 0]).unwrap().was_clean);
    for size in [0, 512, 1536, 3072, 8192] {
        assert_eq!(memo(size), Err(Errno::EUCLEAN), "{size}");
    }
}

/// A directory of one block, whose entries are changed.
#[test]
fn an_entry_is_whole_and_names_an_inode_that_can_exist() {
    let mut volume = Image::new(1024, &["-b", "1024"]).mount().unwrap();
    let dir = volume.make_dir(ROOT, b"d", 0o755, ROOT_USER).unwrap();
    let node = volume.make_node(dir, b"name", S_IFREG | 0o644, 0, ROOT_USER).unwrap();
    let image = unmounted(volume);
    let block = image.word(image.inode(dir) + 40) as usize * 1024;
    // Behind "." and "..".
    let at = block + 24;
    assert_eq!(
        (image.word(at), image.half(at + 4), &image.0[at + 6..at + 12]),
        (node as u32, 488, &b"\x04\x01name"[..])
    );
    let inodes = image.word(SUPERBLOCK);
    let look = |change: &dyn Fn(&mut Image)| {
        let mut changed = image.clone();
        change(&mut changed);
        changed.mount().unwrap().lookup(dir, b"name")
    };
    let corrupt = Err(Errno::EUCLEAN);
    assert_eq!(look(&|image| image.put_half(at + 4, 8)), corrupt, "shorter than its name");
    assert_eq!(look(&|image| image.put_half(at + 4, 490)), corrupt, "no multiple of four");
    assert_eq!(look(&|image| image.put_half(at + 4, 1000)), Ok(node), "up to the end of the block");
    assert_eq!(look(&|image| image.put_half(at + 4, 1004)), corrupt, "beyond the block");
    assert_eq!(look(&|image| image.put_word(at, inodes + 1)), corrupt);
    assert_eq!(look(&|image| image.put_word(at, 0)), Err(Errno::ENOENT), "free");
    assert_eq!(look(&|image| image.0[at + 6] = 0), corrupt, "no name");
    assert_eq!(look(&|image| image.0[at + 7] = 99), Ok(node), "an unknown kind is none");
    let size = image.inode(dir) + 4;
    assert_eq!(look(&|image| image.put_word(size, 1025)), corrupt, "no whole block");
    assert_eq!(look(&|image| image.put_word(size, 2048)), Ok(node), "found before the hole");
    let mut holed = image.clone();
    holed.put_word(size, 2048);
    assert_eq!(holed.mount().unwrap().lookup(dir, b"other"), corrupt, "a hole");
    assert_eq!(holed.mount().unwrap().remove_dir(ROOT, b"d"), Err(Errno::ENOTEMPTY));
}

#[test]
fn a_circle_of_directories_is_corrupt() {
    let mut volume = Image::new(1024, &["-b", "1024"]).mount().unwrap();
    let make = |volume: &mut Ext2<Disk>, dir, name: &[u8]| volume.make_dir(dir, name, 0o755, ROOT_USER).unwrap();
    let a = make(&mut volume, ROOT, b"a");
    let b = make(&mut volume, a, b"b");
    let c = make(&mut volume, b, b"c");
    let other = make(&mut volume, ROOT, b"other");
    let mut image = unmounted(volume);
    // The parent of `a` is `c`.
    let parent = image.word(image.inode(a) + 40) as usize * 1024 + 12;
    assert_eq!(image.word(parent), ROOT as u32);
    image.put_word(parent, c as u32);
    let mut volume = image.mount().unwrap();
    assert_eq!(volume.rename(ROOT, b"other", c, b"x", ROOT_USER), Err(Errno::EUCLEAN));
    assert_eq!(volume.lookup(ROOT, b"other"), Ok(other));
    assert_eq!(volume.rename(ROOT, b"a", other, b"a", ROOT_USER), Ok(()), "away from it");
}

/// Without kinds in the entries, as the first systems made them.
#[test]
fn kinds_stand_in_entries_if_the_feature_says_so() {
    for (feature, known) in [("filetype", true), ("^filetype", false)] {
        let mut volume = Image::new(1024, &["-b", "1024", "-O", feature]).mount().unwrap();
        let kinds = [S_IFREG, S_IFCHR, S_IFBLK, S_IFIFO, S_IFSOCK];
        for (number, kind) in kinds.into_iter().enumerate() {
            volume.make_node(ROOT, format!("{number}").as_bytes(), kind | 0o600, 5, ROOT_USER).unwrap();
        }
        volume.make_symlink(ROOT, b"5", b"to", ROOT_USER).unwrap();
        volume.make_dir(ROOT, b"6", 0o755, ROOT_USER).unwrap();
        let mut volume = unmounted(volume).mount().unwrap();
        let mut found = list(&mut volume, ROOT);
        found.retain(|(name, ..)| name.len() == 1 && name != b".");
        found.sort();
        let expected = kinds.into_iter().chain([S_IFLNK, S_IFDIR]).map(|kind| if known { kind } else { 0 });
        assert!(found.iter().map(|(.., kind)| *kind).eq(expected), "{feature}");
    }
}

#[test]
fn a_directory_may_have_32000_links_and_no_more() {
    const MOST: u16 = 32_000;
    let mut volume = Image::new(1024, &["-b", "1024"]).mount().unwrap();
    let [full, other] = [b"full", b"rest"].map(|name| volume.make_dir(ROOT, name, 0o755, ROOT_USER).unwrap());
    let plain = file(&mut volume, "plain", b"x");
    for (dir, name) in [(other, b"a"), (other, b"b"), (full, b"c")] {
        volume.make_dir(dir, name, 0o755, ROOT_USER).unwrap();
    }
    let inner = volume.make_node(full, b"f", S_IFREG, 0, ROOT_USER).unwrap();
    let image = unmounted(volume);
    let with_links = |count: u16| {
        let mut changed = image.clone();
        [full, plain].into_iter().for_each(|node| changed.put_half(image.inode(node) + 26, count));
        changed.mount().unwrap()
    };
    let links = |volume: &mut Ext2<Disk>, node| volume.attributes(node).unwrap().links;
    let refused = Err(Errno::EMLINK);
    for (count, expected) in [(MOST - 1, Ok(())), (MOST, refused)] {
        let after = u32::from(count) + u32::from(expected.is_ok());
        let volume = &mut with_links(count);
        assert_eq!(volume.link(ROOT, b"new", plain, ROOT_USER), expected);
        assert_eq!(links(volume, plain), after);
        assert_eq!(volume.make_dir(full, b"new", 0o755, ROOT_USER).map(drop), expected);
        assert_eq!(links(volume, full), after);
        let volume = &mut with_links(count);
        assert_eq!(volume.rename(other, b"a", full, b"a", ROOT_USER), expected);
        assert_eq!(links(volume, full), after);
        let volume = &mut with_links(count);
        assert_eq!(volume.exchange(other, b"a", full, b"f"), expected);
        assert_eq!((links(volume, full), volume.lookup(full, b"f") == Ok(inner)), (after, expected.is_err()));
        let volume = &mut with_links(count);
        assert_eq!(volume.exchange(full, b"f", other, b"a"), expected, "the other way round");
    }
    // What adds no directory is allowed.
    let volume = &mut with_links(MOST);
    assert_eq!(volume.exchange(other, b"a", full, b"c"), Ok(()));
    assert_eq!(volume.rename(other, b"b", full, b"c", ROOT_USER), Ok(()), "in the place of an empty one");
    assert_eq!(volume.rename(full, b"c", full, b"d", ROOT_USER), Ok(()));
    assert_eq!(volume.make_node(full, b"file", S_IFREG, 0, ROOT_USER).map(drop), Ok(()));
    assert_eq!(links(volume, full), u32::from(MOST));
    assert_eq!(read_all(volume, plain), b"x");
}

/// The journal is a regular file of at least 1024 blocks, none of which is missing.
#[test]
fn a_log_is_a_whole_file_of_a_certain_length() {
    const LOG_INODE: usize = SUPERBLOCK + 224;
    let image = Image::new(4096, &["-b", "1024", "-j", "-J", "size=1", "-O", "^resize_inode"]);
    assert!(image.mount().is_ok_and(|volume| volume.has_journal()));
    assert_eq!(image.word(LOG_INODE), 8);
    let (inodes, blocks) = (image.word(SUPERBLOCK), image.word(SUPERBLOCK + BLOCKS));
    let (missing, corrupt) = (Some(Errno::EINVAL), Some(Errno::EUCLEAN));
    for (number, error) in [(0, missing), (inodes + 1, missing), (11, corrupt), (ROOT as u32, corrupt)] {
        assert_eq!(image.error_of_word(LOG_INODE, number), error, "inode {number}");
    }
    let at = image.inode(8);
    let length = image.word(at + 4);
    assert_eq!(length, 1024 * 1024);
    assert_eq!(image.error_of_word(at + 4, length - 1024), missing, "too short");
    assert_eq!(image.error_of_word(at + 4, length + 1024), corrupt, "longer than its blocks");
    for pointer in [0, 5, 11, 12, 13] {
        for (block, error) in [(0, corrupt), (1, corrupt), (blocks, corrupt), (u32::MAX, corrupt)] {
            assert_eq!(image.error_of_word(at + 40 + 4 * pointer, block), error, "pointer {pointer} to {block}");
        }
    }
    // Another place is as good.
    let mut moved = image.clone();
    let (old, new) = (image.word(at + 40 + 4 * 5), blocks - 1);
    moved.0.copy_within(old as usize * 1024..(old as usize + 1) * 1024, new as usize * 1024);
    moved.put_word(at + 40 + 4 * 5, new);
    let mut volume = moved.mount().unwrap();
    for round in 0..400u32 {
        volume.set_mode(ROOT, 0o700 + round % 8).unwrap();
        volume.sync().unwrap();
    }
    // As after a power cut: all is replayed, across the block that lies apart.
    let mut volume = Image(volume.into_device().bytes()).mount().unwrap();
    assert_eq!(volume.attributes(ROOT).unwrap().mode & 0o7777, 0o700 + 399 % 8);
    // What needs a recovery needs a log.
    let mut lost = image;
    let features = lost.word(SUPERBLOCK + 92) & !4;
    lost.put_word(SUPERBLOCK + 92, features);
    assert!(lost.mount().is_ok_and(|volume| !volume.has_journal()));
    let incompatible = lost.word(SUPERBLOCK + 96) | 4;
    lost.put_word(SUPERBLOCK + 96, incompatible);
    assert_eq!(lost.mount().err(), Some(Errno::EUCLEAN));
}

#[test]
fn the_inode_of_a_log_is_found_in_every_group() {
    let image =
        Image::new(8192, &["-b", "1024", "-g", "1024", "-N", "128", "-j", "-J", "size=1", "-O", "^resize_inode"]);
    let per_group = u64::from(image.word(SUPERBLOCK + INODES_PER_GROUP));
    let size = usize::from(image.half(SUPERBLOCK + INODE_SIZE));
    let inode = image.0[image.inode(8)..][..size].to_vec();
    for number in [per_group, per_group + 1, per_group + 2, 3 * per_group, 3 * per_group + 1] {
        let mut moved = image.clone();
        let at = image.inode(number);
        moved.0[at..at + size].copy_from_slice(&inode);
        moved.put_word(SUPERBLOCK + 224, number as u32);
        let mut volume = moved.mount().unwrap();
        volume.set_mode(ROOT, 0o711).unwrap();
        volume.sync().unwrap();
        let mut volume = Image(volume.into_device().bytes()).mount().unwrap();
        assert_eq!(volume.attributes(ROOT).unwrap().mode & 0o7777, 0o711, "inode {number}");
    }
}

/// A pointer that cannot be is left out; after 16 of them nothing is trusted any more.
#[test]
fn a_file_with_corrupt_pointers_is_freed_as_far_as_it_makes_sense() {
    let mut volume = Image::new(1024, &["-b", "1024"]).mount().unwrap();
    let node = file(&mut volume, "f", &[7; 60 * 1024]);
    let image = unmounted(volume);
    let indirect = image.word(image.inode(node) + 40 + 4 * 12) as usize * 1024;
    for (corrupt, freed) in [(1, 60), (16, 45), (17, 0)] {
        let mut changed = image.clone();
        (48 - corrupt..48).for_each(|slot| changed.put_word(indirect + 4 * slot, u32::MAX));
        let mut volume = changed.mount().unwrap();
        let before = volume.statistics().blocks_free;
        assert_eq!(volume.unlink(ROOT, b"f"), Err(Errno::EUCLEAN));
        assert_eq!(volume.statistics().blocks_free - before, freed, "{corrupt} corrupt pointers");
        assert_eq!(volume.lookup(ROOT, b"f"), Err(Errno::ENOENT));
    }
}
