//! What the operations do in particular cases: limits, holes, times, owners, swapped names, open but unlinked files. The file is long because there
//! are many such cases, each of which is short.

use crate::common::{
    Bytes, NOW, ROOT_USER, Random, Scratch, Slice, USER, check, debugfs, is_marked_clean, list, memory, mount, options,
    read_all, write,
};
use ext2::{Ext2, Options};
use fs::Errno;
use fs::file_system::{
    Allocation, Caller, DataSink, DataSource, FileSystem, NewTimes, NodeId, S_IFBLK, S_IFCHR, S_IFIFO, S_IFMT, S_IFREG,
    Timestamp,
};

type Volume = Ext2<crate::common::FileDevice>;

fn file(volume: &mut Volume, dir: NodeId, name: &str) -> NodeId {
    volume.make_node(dir, name.as_bytes(), S_IFREG | 0o644, 0, ROOT_USER).unwrap()
}

fn finish(scratch: &Scratch, mut volume: Volume) {
    volume.unmount().unwrap();
    check(&scratch.path("image"));
}

#[test]
fn files_that_mke2fs_put_in_are_read_and_debugfs_reads_ours() {
    let scratch = Scratch::new();
    let tree = scratch.path("tree");
    std::fs::create_dir_all(tree.join("a/b")).unwrap();
    let content = Random::new(1).bytes(500_000);
    std::fs::write(tree.join("a/b/file"), &content).unwrap();
    std::os::unix::fs::symlink("a/b/file", tree.join("link")).unwrap();
    for block_size in ["1024", "2048", "4096"] {
        let image = scratch.image(16384, &["-b", block_size, "-d", tree.to_str().unwrap()]);
        let mut volume = mount(&image);
        let root = volume.root();
        let a = volume.lookup(root, b"a").unwrap();
        let b = volume.lookup(a, b"b").unwrap();
        let node = volume.lookup(b, b"file").unwrap();
        assert!(read_all(&mut volume, node) == content);
        assert_eq!(volume.lookup(b, b".."), Ok(a));
        let link = volume.lookup(root, b"link").unwrap();
        let mut target = [0; 20];
        assert_eq!(volume.read_link(link, &mut target), Ok(8));
        assert_eq!(&target[..8], b"a/b/file");
        let copy = file(&mut volume, root, "copy");
        assert_eq!(write(&mut volume, copy, 0, &content), Ok(content.len()));
        finish(&scratch, volume);
        assert!(debugfs(&image, "cat /copy") == content);
    }
}

#[test]
fn the_mount_marks_not_clean_and_the_unmount_clean() {
    let scratch = Scratch::new();
    let image = scratch.image(1024, &[]);
    let mut volume = mount(&image);
    assert!(!is_marked_clean(&image));
    volume.sync().unwrap();
    assert!(!is_marked_clean(&image));
    volume.unmount().unwrap();
    assert!(is_marked_clean(&image));
}

#[test]
fn what_was_not_clean_before_stays_so() {
    let scratch = Scratch::new();
    let image = scratch.image(1024, &[]);
    drop(mount(&image));
    mount(&image).unmount().unwrap();
    assert!(!is_marked_clean(&image));
}

#[test]
fn a_read_only_mount_writes_nothing() {
    let scratch = Scratch::new();
    let image = scratch.image(1024, &[]);
    let before = std::fs::read(&image).unwrap();
    let device = crate::common::FileDevice::open(&image);
    let mut volume = Ext2::mount(device, Options { read_only: true, ..options() }, memory()).unwrap();
    let root = volume.root();
    assert_eq!(volume.make_dir(root, b"d", 0o755, ROOT_USER), Err(Errno::EROFS));
    assert_eq!(volume.set_mode(root, 0o700), Err(Errno::EROFS));
    assert_eq!(list(&mut volume, root).len(), 3);
    volume.unmount().unwrap();
    assert!(std::fs::read(&image).unwrap() == before);
}

#[test]
fn holes_read_as_zeros_and_take_no_space() {
    let scratch = Scratch::new();
    let mut volume = mount(&scratch.image(4096, &["-b", "1024"]));
    let root = volume.root();
    let node = file(&mut volume, root, "sparse");
    // One block of data behind one indirect block of each of the three levels.
    assert_eq!(write(&mut volume, node, 100_000_000, b"end"), Ok(3));
    assert_eq!(volume.attributes(node).unwrap().size, 100_000_003);
    assert_eq!(volume.attributes(node).unwrap().blocks, 2 * 4);
    let mut bytes = Bytes::default();
    assert_eq!(volume.read(node, 99_999_990, 100, &mut bytes), Ok(13));
    assert_eq!(bytes.0, b"\0\0\0\0\0\0\0\0\0\0end");
    assert_eq!(write(&mut volume, node, 5000, b"x"), Ok(1));
    assert_eq!(volume.attributes(node).unwrap().blocks, 2 * 5);
    volume.truncate(node, 6000).unwrap();
    assert_eq!(volume.attributes(node).unwrap().blocks, 2);
    volume.truncate(node, 0).unwrap();
    assert_eq!(volume.attributes(node).unwrap().blocks, 0);
    finish(&scratch, volume);
}

#[test]
fn holes_that_are_given_space_stay_zeros_and_a_full_disk_says_so() {
    let scratch = Scratch::new();
    let mut volume = mount(&scratch.image(1024, &["-b", "1024"]));
    let root = volume.root();
    let node = file(&mut volume, root, "sparse");
    assert_eq!(write(&mut volume, node, 5000, b"data"), Ok(4));
    volume.truncate(node, 20_000).unwrap();
    volume.allocate(node, 3000, u64::MAX, Allocation::Fill).unwrap();
    let attributes = volume.attributes(node).unwrap();
    // Blocks 2 to 19, and one that points to those from 12 on.
    assert_eq!((attributes.size, attributes.blocks), (20_000, 2 * 19));
    let content = read_all(&mut volume, node);
    assert_eq!(&content[5000..5004], b"data");
    assert!(content[..5000].iter().chain(&content[5004..]).all(|&byte| byte == 0));
    volume.truncate(node, 10 << 20).unwrap();
    assert_eq!(volume.allocate(node, 0, u64::MAX, Allocation::Fill), Err(Errno::ENOSPC));
    assert_eq!(volume.attributes(node).unwrap().size, 10 << 20);
    let folder = volume.make_dir(root, b"folder", 0o755, ROOT_USER);
    assert_eq!(folder, Err(Errno::ENOSPC));
    assert_eq!(volume.allocate(root, 0, 1, Allocation::Fill), Err(Errno::EISDIR));
    finish(&scratch, volume);
}

#[test]
fn a_punched_hole_reads_as_zeros_and_its_blocks_are_free() {
    let scratch = Scratch::new();
    let mut volume = mount(&scratch.image(4096, &["-b", "1024"]));
    let root = volume.root();
    let node = file(&mut volume, root, "f");
    // All three kinds of pointers: direct, through one block, through two.
    let mut expected = Random::new(1).bytes(700_500);
    assert_eq!(write(&mut volume, node, 0, &expected), Ok(expected.len()));
    let blocks = |volume: &mut Volume| volume.attributes(node).unwrap().blocks / 2;
    let mut left = blocks(&mut volume);
    let mut free = volume.statistics().blocks_free;
    for (offset, bytes, freed) in [
        (100, 200, 0),
        (100, 924, 0),
        (1000, 1100, 1),
        (4096, 1024, 1),
        (11_000, 3000, 2),
        (12_000, 270_000, 262 + 1),
        (0, 100, 0),
        (300_000, 100_000, 97),
        (700_000, 400, 0),
        (699_900, u64::from(u32::MAX), 1),
        (800_000, 100_000, 0),
    ] {
        volume.allocate(node, offset, bytes, Allocation::Punch).unwrap();
        let end = expected.len().min((offset + bytes) as usize);
        expected[end.min(offset as usize)..end].fill(0);
        assert!(read_all(&mut volume, node) == expected, "{bytes} at {offset}");
        assert_eq!(
            (left - blocks(&mut volume), volume.statistics().blocks_free - free),
            (freed, freed),
            "{bytes} at {offset}"
        );
        (left, free) = (blocks(&mut volume), volume.statistics().blocks_free);
    }
    volume.allocate(node, 0, expected.len() as u64, Allocation::Punch).unwrap();
    assert_eq!((blocks(&mut volume), volume.attributes(node).unwrap().size), (0, 700_500));
    assert_eq!(write(&mut volume, node, 700_500, b"more"), Ok(4));
    assert_eq!(read_all(&mut volume, node)[700_490..], *b"\0\0\0\0\0\0\0\0\0\0more");
    assert_eq!(volume.allocate(node, 0, u64::MAX, Allocation::Punch), Err(Errno::EFBIG));
    assert_eq!(volume.allocate(root, 0, 1, Allocation::Punch), Err(Errno::EISDIR));
    finish(&scratch, volume);
}

#[test]
fn zeros_keep_the_blocks_and_the_holes() {
    let scratch = Scratch::new();
    let mut volume = mount(&scratch.image(4096, &["-b", "1024"]));
    let root = volume.root();
    let node = file(&mut volume, root, "f");
    let mut expected = Random::new(2).bytes(50_000);
    assert_eq!(write(&mut volume, node, 0, &expected), Ok(expected.len()));
    volume.truncate(node, 400_000).unwrap();
    expected.resize(400_000, 0);
    let blocks = volume.attributes(node).unwrap().blocks;
    for (offset, bytes) in [(100, 200), (1024, 1024), (2000, 30_000), (49_000, 300_000), (399_999, 5)] {
        volume.allocate(node, offset, bytes, Allocation::Zero).unwrap();
        let end = expected.len().min((offset + bytes) as usize);
        expected[offset as usize..end].fill(0);
        assert!(read_all(&mut volume, node) == expected, "{bytes} at {offset}");
        assert_eq!(volume.attributes(node).unwrap().blocks, blocks);
    }
    finish(&scratch, volume);
}

#[test]
fn space_beyond_the_end_is_checked_and_the_size_stays() {
    let scratch = Scratch::new();
    let mut volume = mount(&scratch.image(1024, &["-b", "1024"]));
    let root = volume.root();
    let node = file(&mut volume, root, "f");
    volume.truncate(node, 3000).unwrap();
    assert_eq!(volume.allocate(node, 0, 10 << 20, Allocation::FillAndCheck), Err(Errno::ENOSPC));
    assert_eq!(volume.allocate(node, 5000, 1 << 62, Allocation::FillAndCheck), Err(Errno::EFBIG));
    assert_eq!(volume.allocate(node, 1024, 100_000, Allocation::FillAndCheck), Ok(()));
    let attributes = volume.attributes(node).unwrap();
    assert_eq!((attributes.size, attributes.blocks), (3000, 2 * 3));
    assert_eq!(write(&mut volume, node, 3000, &[7; 50_000]), Ok(50_000));
    assert!(read_all(&mut volume, node) == [vec![0; 3000], vec![7; 50_000]].concat());
    finish(&scratch, volume);
}

#[test]
fn bytes_cut_off_do_not_come_back() {
    let scratch = Scratch::new();
    let mut volume = mount(&scratch.image(1024, &[]));
    let root = volume.root();
    let node = file(&mut volume, root, "f");
    write(&mut volume, node, 0, &[7; 3000]).unwrap();
    volume.truncate(node, 10).unwrap();
    volume.truncate(node, 2000).unwrap();
    let mut expected = vec![7; 10];
    expected.resize(2000, 0);
    assert_eq!(read_all(&mut volume, node), expected);
    finish(&scratch, volume);
}

#[test]
fn files_over_2_gib_set_the_feature() {
    let scratch = Scratch::new();
    let image = scratch.image(4096, &["-b", "4096", "-O", "^resize_inode,^large_file"]);
    assert!(!String::from_utf8_lossy(&debugfs(&image, "stats")).contains("large_file"));
    let mut volume = mount(&image);
    let root = volume.root();
    let node = file(&mut volume, root, "big");
    write(&mut volume, node, 5 << 30, b"far").unwrap();
    assert_eq!(volume.attributes(node).unwrap().size, (5 << 30) + 3);
    finish(&scratch, volume);
    assert!(String::from_utf8_lossy(&debugfs(&image, "stats")).contains("large_file"));
    let mut volume = mount(&image);
    let node = volume.lookup(root, b"big").unwrap();
    assert_eq!(volume.attributes(node).unwrap().size, (5 << 30) + 3);
}

#[test]
fn files_cannot_grow_beyond_what_the_format_maps() {
    let scratch = Scratch::new();
    let mut volume = mount(&scratch.image(1024, &["-b", "1024"]));
    let root = volume.root();
    let node = file(&mut volume, root, "f");
    let limit = (12 + 256 + 256 * 256 + 256 * 256 * 256) * 1024;
    assert_eq!(volume.truncate(node, limit + 1), Err(Errno::EFBIG));
    assert_eq!(write(&mut volume, node, limit, b"x"), Err(Errno::EFBIG));
    assert_eq!(write(&mut volume, node, limit - 2, b"xyz"), Ok(2));
    assert_eq!(write(&mut volume, node, u64::MAX - 1, b"xyz"), Err(Errno::EFBIG));
    finish(&scratch, volume);
}

fn fill(volume: &mut Volume, caller: Caller) -> u64 {
    let root = volume.root();
    let node = volume.make_node(root, format!("fill-{}", caller.uid).as_bytes(), S_IFREG, 0, caller).unwrap();
    let data = vec![1; 10_000];
    let mut size = 0;
    loop {
        match volume.write(node, size, data.len(), &mut Slice(&data), caller) {
            Ok(done) => size += done as u64,
            Err(error) => {
                assert_eq!(error, Errno::ENOSPC);
                return size;
            }
        }
    }
}

#[test]
fn a_full_disk_keeps_the_reserve_for_the_superuser() {
    let scratch = Scratch::new();
    let image = scratch.image(4096, &["-b", "1024", "-m", "10"]);
    let mut volume = mount(&image);
    let root = volume.root();
    assert!(fill(&mut volume, USER) > 2_000_000);
    assert_eq!(volume.statistics().blocks_available, 0);
    assert!(volume.statistics().blocks_free >= 400);
    assert_eq!(volume.make_dir(root, b"d", 0o755, USER), Err(Errno::ENOSPC));
    assert!(fill(&mut volume, ROOT_USER) > 300_000);
    assert_eq!(volume.statistics().blocks_free, 0);
    assert_eq!(volume.make_dir(root, b"d", 0o755, ROOT_USER), Err(Errno::ENOSPC));
    assert_eq!(volume.make_symlink(root, b"s", &[b't'; 100], ROOT_USER), Err(Errno::ENOSPC));
    volume.sync().unwrap();
    check(&image);
    volume.unlink(root, b"fill-0").unwrap();
    volume.unlink(root, b"fill-1000").unwrap();
    volume.clean_up().unwrap();
    volume.make_dir(root, b"d", 0o755, USER).unwrap();
    finish(&scratch, volume);
}

#[test]
fn inodes_run_out_with_enospc() {
    let scratch = Scratch::new();
    let mut volume = mount(&scratch.image(1024, &["-N", "32"]));
    let root = volume.root();
    let make = |volume: &mut Volume, n: u32| volume.make_node(root, format!("{n}").as_bytes(), S_IFREG, 0, USER);
    let made = (0..100).take_while(|&n| make(&mut volume, n).is_ok()).count();
    assert!((10..32).contains(&made));
    assert_eq!(volume.statistics().nodes_free, 0);
    assert_eq!(make(&mut volume, 1000), Err(Errno::ENOSPC));
    volume.unlink(root, b"3").unwrap();
    assert!(make(&mut volume, 1001).is_ok());
    finish(&scratch, volume);
}

#[test]
fn a_failing_source_leaves_no_trace_behind_the_end() {
    let scratch = Scratch::new();
    let mut volume = mount(&scratch.image(1024, &["-b", "1024"]));
    let root = volume.root();
    let node = file(&mut volume, root, "f");
    let mut source = Slice(&[5; 2500]);
    assert_eq!(volume.write(node, 0, 10_000, &mut source, ROOT_USER), Ok(2048));
    assert_eq!(volume.write(node, 2048, 10, &mut Slice(b""), ROOT_USER), Err(Errno::EFAULT));
    assert_eq!(volume.write(node, 300, 10, &mut Slice(b""), ROOT_USER), Err(Errno::EFAULT));
    assert_eq!(volume.attributes(node).unwrap().size, 2048);
    assert_eq!(volume.attributes(node).unwrap().blocks, 4);
    volume.truncate(node, 4000).unwrap();
    assert!(read_all(&mut volume, node)[2048..].iter().all(|&byte| byte == 0));
    finish(&scratch, volume);
}

/// Memory of a caller that counts the copies. As the kernel does, it moves what there is of a copy that fails.
struct Counted {
    memory: Vec<u8>,
    room: usize,
    copies: Vec<usize>,
}

impl Counted {
    fn new(room: usize) -> Counted {
        Counted { memory: vec![7; 9000], room, copies: Vec::new() }
    }

    fn copy(&mut self, bytes: usize, act: impl FnOnce(&mut [u8])) -> Result<(), Errno> {
        let done: usize = self.copies.iter().sum();
        let fits = bytes.min(self.room - done);
        act(&mut self.memory[done..done + fits]);
        if fits < bytes {
            return Err(Errno::EFAULT);
        }
        self.copies.push(bytes);
        Ok(())
    }
}

impl DataSource for Counted {
    fn take(&mut self, buffer: &mut [u8]) -> Result<(), Errno> {
        self.copy(buffer.len(), |memory| buffer[..memory.len()].copy_from_slice(memory))
    }
}

impl DataSink for Counted {
    fn put(&mut self, data: &[u8]) -> Result<(), Errno> {
        self.copy(data.len(), |memory| memory.copy_from_slice(&data[..memory.len()]))
    }
}

#[test]
fn neighbouring_blocks_are_written_over_and_read_with_one_copy() {
    let scratch = Scratch::new();
    let mut volume = mount(&scratch.image(1024, &["-b", "1024"]));
    let root = volume.root();
    let node = file(&mut volume, root, "f");
    write(&mut volume, node, 0, &[1; 20 * 1024]).unwrap();

    let mut source = Counted::new(9000);
    assert_eq!(volume.write(node, 1024, 6 * 1024 + 10, &mut source, ROOT_USER), Ok(6 * 1024 + 10));
    assert_eq!(source.copies, [6 * 1024, 10], "direct pointers");
    let mut source = Counted::new(9000);
    assert_eq!(volume.write(node, 13 * 1024, 5 * 1024, &mut source, ROOT_USER), Ok(5 * 1024));
    assert_eq!(source.copies, [5 * 1024], "pointers of an indirect block");
    let content = read_all(&mut volume, node);
    let is_new = |at: usize| (1024..7 * 1024 + 10).contains(&at) || (13 * 1024..18 * 1024).contains(&at);
    assert!(content.iter().enumerate().all(|(at, &byte)| byte == if is_new(at) { 7 } else { 1 }));

    let mut sink = Counted::new(9000);
    assert_eq!(volume.read(node, 1000, 8000, &mut sink), Ok(8000));
    assert_eq!((&sink.memory[..8000], &*sink.copies), (&content[1000..9000], &[8000][..]));
    finish(&scratch, volume);
}

#[test]
fn a_copy_of_several_blocks_that_fails_is_made_as_far_as_the_memory_goes() {
    let scratch = Scratch::new();
    let mut volume = mount(&scratch.image(1024, &["-b", "1024"]));
    let root = volume.root();
    let node = file(&mut volume, root, "f");
    write(&mut volume, node, 0, &[1; 8 * 1024]).unwrap();
    assert_eq!(volume.write(node, 0, 6 * 1024, &mut Counted::new(2500), ROOT_USER), Ok(2048));
    assert!(read_all(&mut volume, node)[2500..].iter().all(|&byte| byte == 1));
    let mut sink = Counted::new(2500);
    assert_eq!(volume.read(node, 0, 6 * 1024, &mut sink), Ok(2048));
    assert_eq!(volume.write(node, 0, 6 * 1024, &mut Counted::new(0), ROOT_USER), Err(Errno::EFAULT));
    assert_eq!(volume.attributes(node).unwrap().size, 8 * 1024);
    finish(&scratch, volume);
}

#[test]
fn an_unlinked_file_lives_until_its_last_user_goes() {
    let scratch = Scratch::new();
    let mut volume = mount(&scratch.image(1024, &[]));
    let root = volume.root();
    let free = volume.statistics();
    let node = file(&mut volume, root, "f");
    volume.get(node).unwrap();
    volume.get(node).unwrap();
    write(&mut volume, node, 0, &[9; 5000]).unwrap();
    volume.unlink(root, b"f").unwrap();
    assert_eq!(volume.lookup(root, b"f"), Err(Errno::ENOENT));
    assert_eq!(read_all(&mut volume, node), [9; 5000]);
    write(&mut volume, node, 5000, &[9; 5000]).unwrap();
    assert_eq!(volume.attributes(node).unwrap().links, 0);
    volume.put(node, 1).unwrap();
    assert_eq!(read_all(&mut volume, node).len(), 10_000);
    assert_eq!(volume.put(node, 2), Err(Errno::EINVAL));
    volume.put(node, 1).unwrap();
    assert_eq!(volume.statistics(), free);
    assert!(volume.attributes(node).is_err());
    finish(&scratch, volume);
}

#[test]
fn a_file_without_a_name_lives_until_its_last_user_goes_unless_it_gets_one() {
    let scratch = Scratch::new();
    let mut volume = mount(&scratch.image(1024, &[]));
    let root = volume.root();
    let free = volume.statistics();
    let make = |volume: &mut Volume| volume.make_nameless(root, S_IFREG | 0o600, USER).unwrap();
    let node = make(&mut volume);
    write(&mut volume, node, 0, &[9; 5000]).unwrap();
    let attributes = volume.attributes(node).unwrap();
    assert_eq!((attributes.mode, attributes.links, attributes.uid), (S_IFREG | 0o600, 0, USER.uid));
    volume.sync().unwrap();
    assert_eq!(read_all(&mut volume, node), [9; 5000]);
    volume.put(node, 1).unwrap();
    assert_eq!(volume.statistics(), free);
    assert!(volume.attributes(node).is_err());
    let node = make(&mut volume);
    write(&mut volume, node, 0, &[7; 5000]).unwrap();
    volume.link(root, b"name", node, ROOT_USER).unwrap();
    volume.put(node, 1).unwrap();
    assert_eq!(volume.lookup(root, b"name"), Ok(node));
    assert_eq!((volume.attributes(node).unwrap().links, read_all(&mut volume, node)), (1, vec![7; 5000]));
    assert_eq!(volume.make_nameless(root, S_IFIFO | 0o600, USER), Err(Errno::EINVAL));
    finish(&scratch, volume);
}

#[test]
fn an_inode_that_the_bitmap_wrongly_calls_free_is_not_given_away() {
    let scratch = Scratch::new();
    let image = scratch.image(1024, &[]);
    let mut volume = mount(&image);
    let root = volume.root();
    let victim = file(&mut volume, root, "victim");
    write(&mut volume, victim, 0, b"precious").unwrap();
    finish(&scratch, volume);
    let damage = format!("freei <{victim}>");
    let done = std::process::Command::new("debugfs").args(["-w", "-R", &damage]).arg(&image).output().unwrap();
    assert!(done.status.success());

    let mut volume = mount(&image);
    volume.get(victim).unwrap();
    assert_eq!(volume.make_node(root, b"new", S_IFREG | 0o644, 0, ROOT_USER), Err(Errno::EUCLEAN));
    assert_eq!(read_all(&mut volume, victim), b"precious");
    volume.put(victim, 1).unwrap();
    let other = file(&mut volume, root, "other");
    assert_ne!(other, victim);
}

#[test]
fn unmounting_frees_what_only_users_kept() {
    let scratch = Scratch::new();
    let mut volume = mount(&scratch.image(1024, &[]));
    let root = volume.root();
    let node = file(&mut volume, root, "f");
    let dir = volume.make_dir(root, b"d", 0o755, ROOT_USER).unwrap();
    write(&mut volume, node, 0, &[9; 50_000]).unwrap();
    volume.get(node).unwrap();
    volume.get(dir).unwrap();
    assert!(volume.is_busy());
    volume.unlink(root, b"f").unwrap();
    volume.remove_dir(root, b"d").unwrap();
    finish(&scratch, volume);
}

#[test]
fn a_removed_directory_in_use_is_empty_and_takes_nothing() {
    let scratch = Scratch::new();
    let mut volume = mount(&scratch.image(1024, &[]));
    let root = volume.root();
    let dir = volume.make_dir(root, b"d", 0o755, ROOT_USER).unwrap();
    volume.get(dir).unwrap();
    volume.remove_dir(root, b"d").unwrap();
    assert_eq!(list(&mut volume, dir), []);
    assert_eq!(volume.make_node(dir, b"f", S_IFREG, 0, ROOT_USER), Err(Errno::ENOENT));
    assert_eq!(volume.make_dir(dir, b"f", 0o755, ROOT_USER), Err(Errno::ENOENT));
    let other = file(&mut volume, root, "other");
    assert_eq!(volume.link(dir, b"f", other, ROOT_USER), Err(Errno::ENOENT));
    assert_eq!(volume.rename(root, b"other", dir, b"f", ROOT_USER), Err(Errno::ENOENT));
    assert_eq!(volume.rename_leaving_whiteout(root, b"other", dir, b"f", ROOT_USER), Err(Errno::ENOENT));
    assert_eq!((volume.lookup(root, b"other"), volume.attributes(other).unwrap().links), (Ok(other), 1));
    volume.put(dir, 1).unwrap();
    finish(&scratch, volume);
}

#[test]
fn names_have_a_limit_and_must_not_exist() {
    let scratch = Scratch::new();
    let mut volume = mount(&scratch.image(1024, &[]));
    let root = volume.root();
    let longest = [b'n'; 255];
    let too_long = [b'n'; 256];
    volume.make_dir(root, &longest, 0o755, ROOT_USER).unwrap();
    assert_eq!(volume.make_dir(root, &longest, 0o755, ROOT_USER), Err(Errno::EEXIST));
    assert_eq!(volume.make_dir(root, &too_long, 0o755, ROOT_USER), Err(Errno::ENAMETOOLONG));
    assert_eq!(volume.lookup(root, &too_long), Err(Errno::ENAMETOOLONG));
    assert_eq!(volume.rename(root, &longest, root, &too_long, ROOT_USER), Err(Errno::ENAMETOOLONG));
    assert_eq!(volume.make_dir(root, b".", 0o755, ROOT_USER), Err(Errno::EEXIST));
    assert_eq!(volume.remove_dir(root, b"."), Err(Errno::EINVAL));
    assert_eq!(volume.remove_dir(root, b".."), Err(Errno::ENOTEMPTY));
    assert_eq!(volume.unlink(root, b".."), Err(Errno::EISDIR));
    assert_eq!(volume.rename(root, b".", root, b"x", ROOT_USER), Err(Errno::EBUSY));
    let plain = file(&mut volume, root, "plain");
    assert_eq!(volume.lookup(plain, b"x"), Err(Errno::ENOTDIR));
    assert_eq!(volume.make_symlink(root, b"s", b"", ROOT_USER), Err(Errno::ENOENT));
    assert_eq!(volume.make_symlink(root, b"s", &[b't'; 1024], ROOT_USER), Err(Errno::ENAMETOOLONG));
    finish(&scratch, volume);
}

#[test]
fn a_directory_cannot_move_below_itself() {
    let scratch = Scratch::new();
    let mut volume = mount(&scratch.image(1024, &[]));
    let root = volume.root();
    let a = volume.make_dir(root, b"a", 0o755, ROOT_USER).unwrap();
    let b = volume.make_dir(a, b"b", 0o755, ROOT_USER).unwrap();
    let c = volume.make_dir(b, b"c", 0o755, ROOT_USER).unwrap();
    assert_eq!(volume.rename(root, b"a", c, b"x", ROOT_USER), Err(Errno::EINVAL));
    assert_eq!(volume.rename(root, b"a", a, b"x", ROOT_USER), Err(Errno::EINVAL));
    assert_eq!(volume.rename(b, b"c", root, b"a", ROOT_USER), Err(Errno::ENOTEMPTY));
    assert_eq!(volume.rename(b, b"c", root, b"c", ROOT_USER), Ok(()));
    assert_eq!(volume.lookup(c, b".."), Ok(root));
    assert_eq!(volume.attributes(b).unwrap().links, 2);
    finish(&scratch, volume);
}

#[test]
fn names_of_any_kinds_are_swapped() {
    let scratch = Scratch::new();
    let mut volume = mount(&scratch.image(1024, &[]));
    let root = volume.root();
    let a = volume.make_dir(root, b"a", 0o755, ROOT_USER).unwrap();
    let b = volume.make_dir(a, b"b", 0o755, ROOT_USER).unwrap();
    let c = volume.make_dir(root, b"c", 0o755, ROOT_USER).unwrap();
    let plain = file(&mut volume, root, "plain");
    let links = |volume: &mut Volume| [root, a, b, c, plain].map(|node| volume.attributes(node).unwrap().links);
    assert_eq!(links(&mut volume), [5, 3, 2, 2, 1]);
    assert_eq!(volume.exchange(root, b"none", root, b"plain"), Err(Errno::ENOENT));
    assert_eq!(volume.exchange(root, b"plain", root, b"none"), Err(Errno::ENOENT));
    assert_eq!(volume.exchange(root, b"a", a, b"b"), Err(Errno::EINVAL), "above the other");
    assert_eq!(volume.exchange(a, b"b", root, b"a"), Err(Errno::EINVAL), "below the other");
    assert_eq!(volume.exchange(root, b"c", c, b".."), Err(Errno::EBUSY));
    assert_eq!(volume.exchange(root, b"c", root, b"c"), Ok(()));
    assert_eq!(volume.exchange(root, b"a", root, b"plain"), Ok(()), "one directory");
    assert_eq!((volume.lookup(root, b"a"), volume.lookup(root, b"plain")), (Ok(plain), Ok(a)));
    assert_eq!(links(&mut volume), [5, 3, 2, 2, 1]);
    assert_eq!(volume.exchange(a, b"b", root, b"a"), Ok(()), "a directory for a file");
    assert_eq!(
        (volume.lookup(a, b"b"), volume.lookup(root, b"a"), volume.lookup(b, b"..")),
        (Ok(plain), Ok(b), Ok(root))
    );
    assert_eq!(links(&mut volume), [6, 2, 2, 2, 1]);
    assert_eq!(volume.rename(root, b"c", a, b"c", ROOT_USER), Ok(()));
    assert_eq!(volume.exchange(root, b"a", a, b"c"), Ok(()), "two directories");
    assert_eq!((volume.lookup(b, b".."), volume.lookup(c, b"..")), (Ok(a), Ok(root)));
    assert_eq!(links(&mut volume), [5, 3, 2, 2, 1]);
    finish(&scratch, volume);
}

#[test]
fn names_are_swapped_in_full_directories_and_on_a_full_disk() {
    let scratch = Scratch::new();
    let mut volume = mount(&scratch.image(1024, &["-b", "1024"]));
    let root = volume.root();
    let dirs = [b"one", b"two"].map(|name| volume.make_dir(root, name, 0o755, ROOT_USER).unwrap());
    let name = |number: u32| format!("{number:0>240}").into_bytes();
    let nodes: Vec<_> = (0..40)
        .map(|number| volume.make_node(dirs[number as usize % 2], &name(number), 0o100_644, 0, ROOT_USER).unwrap())
        .collect();
    for number in 0..20 {
        assert_eq!(volume.exchange(dirs[0], &name(2 * number), dirs[1], &name(39 - 2 * number)), Ok(()));
    }
    volume.sync().unwrap();
    // Everything that is left; the names stay as they are.
    let large = file(&mut volume, root, "large");
    volume.truncate(large, 2 << 20).unwrap();
    assert_eq!(volume.allocate(large, 0, u64::MAX, Allocation::Fill), Err(Errno::ENOSPC));
    let results: Vec<_> =
        (0..20).map(|number| volume.exchange(dirs[0], &name(2 * number), dirs[1], &name(39 - 2 * number))).collect();
    assert!(results.iter().all(|result| [Ok(()), Err(Errno::ENOSPC)].contains(result)), "{results:?}");
    for (number, result) in (0..20usize).zip(results) {
        let swapped = [nodes[39 - 2 * number], nodes[2 * number]];
        let expected = if result.is_ok() { [swapped[1], swapped[0]] } else { swapped };
        assert_eq!(volume.lookup(dirs[0], &name(2 * number as u32)), Ok(expected[0]));
        assert_eq!(volume.lookup(dirs[1], &name(39 - 2 * number as u32)), Ok(expected[1]));
    }
    finish(&scratch, volume);
}

#[test]
fn times_before_1970_and_after_2038_survive() {
    let scratch = Scratch::new();
    let image = scratch.image(1024, &["-I", "256"]);
    let mut volume = mount(&image);
    let root = volume.root();
    let node = file(&mut volume, root, "f");
    assert_eq!(volume.attributes(node).unwrap().modified, NOW);
    let early = Timestamp { seconds: -86_400, nanos: 5 };
    let late = Timestamp { seconds: 5_000_000_000, nanos: 999_999_999 };
    volume.set_times(node, NewTimes { accessed: Some(early), modified: Some(late) }).unwrap();
    finish(&scratch, volume);
    let mut volume = mount(&image);
    let attributes = volume.attributes(node).unwrap();
    assert_eq!((attributes.accessed, attributes.modified, attributes.changed), (early, late, NOW));
}

#[test]
fn small_inodes_keep_whole_seconds() {
    let scratch = Scratch::new();
    let image = scratch.image(1024, &["-I", "128"]);
    let mut volume = mount(&image);
    let root = volume.root();
    let node = file(&mut volume, root, "f");
    finish(&scratch, volume);
    let attributes = mount(&image).attributes(node).unwrap();
    assert_eq!(attributes.modified, Timestamp { seconds: NOW.seconds, nanos: 0 });
}

#[test]
fn owners_modes_and_devices_survive() {
    let scratch = Scratch::new();
    let image = scratch.image(1024, &[]);
    let mut volume = mount(&image);
    let root = volume.root();
    let dir = volume.make_dir(root, b"d", 0o2775, USER).unwrap();
    volume.set_owner(dir, None, Some(70_000)).unwrap();
    let inner = volume.make_dir(dir, b"inner", 0o755, ROOT_USER).unwrap();
    let old = volume.make_node(root, b"old", S_IFCHR | 0o600, 0x0503, ROOT_USER).unwrap();
    let new = volume.make_node(root, b"new", S_IFBLK | 0o600, 0x1234_5678, ROOT_USER).unwrap();
    let fifo = volume.make_node(root, b"fifo", S_IFIFO | 0o600, 99, ROOT_USER).unwrap();
    let program = volume.make_node(root, b"su", S_IFREG | 0o6755, 0, ROOT_USER).unwrap();
    volume.set_owner(program, Some(100_000), None).unwrap();
    assert_eq!(volume.make_node(root, b"x", 0, 0, ROOT_USER), Err(Errno::EINVAL));
    finish(&scratch, volume);
    let mut volume = mount(&image);
    let of = |volume: &mut Volume, node| volume.attributes(node).unwrap();
    assert_eq!((of(&mut volume, dir).uid, of(&mut volume, dir).gid), (1000, 70_000));
    assert_eq!((of(&mut volume, inner).gid, of(&mut volume, inner).mode & 0o7777), (70_000, 0o2755));
    assert_eq!(of(&mut volume, old).device, 0x0503);
    assert_eq!(of(&mut volume, new).device, 0x1234_5678);
    assert_eq!((of(&mut volume, fifo).device, of(&mut volume, fifo).mode & S_IFMT), (0, S_IFIFO));
    assert_eq!((of(&mut volume, program).uid, of(&mut volume, program).mode & 0o7777), (100_000, 0o755));
}

#[test]
fn writing_takes_set_id_bits_away_from_others_programs() {
    let scratch = Scratch::new();
    let mut volume = mount(&scratch.image(1024, &[]));
    let root = volume.root();
    let node = volume.make_node(root, b"su", S_IFREG | 0o6755, 0, ROOT_USER).unwrap();
    write(&mut volume, node, 0, b"x").unwrap();
    assert_eq!(volume.attributes(node).unwrap().mode & 0o7777, 0o6755);
    volume.write(node, 0, 1, &mut Slice(b"y"), USER).unwrap();
    assert_eq!(volume.attributes(node).unwrap().mode & 0o7777, 0o755);
}

#[test]
fn a_large_directory_is_listed_whole_and_emptied() {
    let scratch = Scratch::new();
    let image = scratch.image(16384, &["-b", "1024", "-N", "4000"]);
    let mut volume = mount(&image);
    let root = volume.root();
    let dir = volume.make_dir(root, b"d", 0o755, ROOT_USER).unwrap();
    for number in 0..3000 {
        file(&mut volume, dir, &format!("file-{number}"));
    }
    volume.sync().unwrap();
    check(&image);
    assert_eq!(list(&mut volume, dir).len(), 3002);
    for number in (0..3000).rev() {
        volume.unlink(dir, format!("file-{number}").as_bytes()).unwrap();
    }
    assert_eq!(list(&mut volume, dir).len(), 2);
    volume.remove_dir(root, b"d").unwrap();
    finish(&scratch, volume);
}

#[test]
fn data_and_holes_are_found_in_every_tree() {
    let scratch = Scratch::new();
    let mut volume = mount(&scratch.image(8192, &["-b", "1024"]));
    let root = volume.root();
    let node = file(&mut volume, root, "file");
    // Direct, and in trees of one, two and three levels.
    let starts = [3u64, 100, 5000, 1 << 20].map(|block| block * 1024);
    for start in starts {
        assert_eq!(write(&mut volume, node, start, &[1; 2048]), Ok(2048));
    }
    let mut find = |mut at, hole| loop {
        match volume.seek_data(node, at, hole) {
            Ok((false, next)) => at = next,
            found => return found.map(|(_, position)| position),
        }
    };
    let mut end = 0;
    for start in starts {
        assert_eq!((find(end, true), find(end, false)), (Ok(end), Ok(start)));
        assert_eq!((find(start + 5, false), find(start + 5, true)), (Ok(start + 5), Ok(start + 2048)));
        end = start + 2048;
    }
    assert_eq!((find(end, false), find(end, true)), (Err(Errno::ENXIO), Err(Errno::ENXIO)));
    assert_eq!(volume.seek_data(root, 0, true), Err(Errno::EINVAL));
    finish(&scratch, volume);
}
