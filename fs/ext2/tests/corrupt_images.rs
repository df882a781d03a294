//! Broken images: the mount is refused or requests fail, but nothing panics, and the work stays bounded.

use std::time::{Duration, Instant};

use crate::common::{Bytes, Names, ROOT_USER, Random, Scratch, amount, memory, mount, options, write};
use ext2::Ext2;
use fs::Errno;
use fs::device::{BlockDevice, SECTOR_SIZE};
use fs::file_system::{FileSystem, NodeId, S_IFDIR, S_IFMT};

const KIB: u32 = 1024;

/// A device in memory that counts requests, so that endless work is found.
struct Memory {
    bytes: Vec<u8>,
    requests: u64,
}

impl Memory {
    fn range(&mut self, sector: u64, len: usize) -> Result<&mut [u8], Errno> {
        self.requests += 1;
        assert!(self.requests < 100_000, "too many device requests");
        let start = usize::try_from(sector).unwrap().checked_mul(SECTOR_SIZE).unwrap();
        self.bytes.get_mut(start..start + len).ok_or(Errno::EIO)
    }
}

impl BlockDevice for Memory {
    fn sector_count(&self) -> u64 {
        (self.bytes.len() / SECTOR_SIZE) as u64
    }

    fn read(&mut self, first_sector: u64, buffer: &mut [u8]) -> Result<(), Errno> {
        let range = self.range(first_sector, buffer.len())?;
        buffer.copy_from_slice(range);
        Ok(())
    }

    fn write(&mut self, first_sector: u64, data: &[u8]) -> Result<(), Errno> {
        self.range(first_sector, data.len())?.copy_from_slice(data);
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Errno> {
        Ok(())
    }
}

/// An image with directories, files of all levels of indirection, links and a hole.
fn good_image(scratch: &Scratch, arguments: &[&str]) -> Vec<u8> {
    let path = scratch.image(KIB * 4, arguments);
    let mut volume = mount(&path);
    let root = volume.root();
    let mut random = Random::new(42);
    for dir in 0..3 {
        let node = volume.make_dir(root, format!("directory{dir}").as_bytes(), 0o755, ROOT_USER).unwrap();
        for file in 0..30 {
            let name = format!("file-with-a-longer-name-{file}");
            let file_node = volume.make_node(node, name.as_bytes(), 0o100_644, 0, ROOT_USER).unwrap();
            let len = 1 + random.below(3000) as usize;
            write(&mut volume, file_node, 0, &random.bytes(len)).unwrap();
        }
        volume.make_symlink(node, b"short", b"../file", ROOT_USER).unwrap();
        volume.make_symlink(node, b"long", &[b'l'; 200], ROOT_USER).unwrap();
        volume.make_dir(node, b"empty", 0o755, ROOT_USER).unwrap();
    }
    let large = volume.make_node(root, b"large", 0o100_644, 0, ROOT_USER).unwrap();
    write(&mut volume, large, 0, &random.bytes(700_000)).unwrap();
    write(&mut volume, large, 80_000_000, b"after a hole").unwrap();
    volume.unmount().unwrap();
    std::fs::read(&path).unwrap()
}

/// Looks at everything a few levels deep, then changes and removes things; errors are welcome.
fn use_it(device: Memory) {
    let Ok(mut volume) = Ext2::mount(device, options(), memory()) else { return };
    let root = volume.root();
    let mut found = Vec::new();
    visit(&mut volume, root, 0, &mut found);
    for (dir, name, node) in found.into_iter().take(150) {
        let _ = write(&mut volume, node, 5000, b"some data");
        let _ = volume.truncate(node, 1500);
        let _ = volume.rename(dir, &name, root, &[b"moved-", &name[..]].concat(), ROOT_USER);
        let _ = volume.make_node(dir, b"new", 0o100_644, 0, ROOT_USER);
        let _ = volume.unlink(dir, &name);
        let _ = volume.remove_dir(dir, &name);
    }
    let _ = volume.sync();
    let _ = volume.unmount();
}

fn visit(volume: &mut Ext2<Memory>, dir: NodeId, depth: u32, found: &mut Vec<(NodeId, Vec<u8>, NodeId)>) {
    let mut names = Names { room: 60, list: Vec::new() };
    let _ = volume.read_dir(dir, 0, &mut names);
    for (name, node, _) in names.list {
        let Ok(attributes) = volume.attributes(node) else { continue };
        let _ = volume.lookup(dir, &name);
        let _ = volume.read(node, 0, 200_000, &mut Bytes::default());
        let _ = volume.read(node, attributes.size.saturating_sub(5000), 5000, &mut Bytes::default());
        let _ = volume.read_link(node, &mut [0; 5000]);
        let is_directory = attributes.mode & S_IFMT == S_IFDIR;
        if is_directory && depth < 3 && name != b"." && name != b".." {
            visit(volume, node, depth + 1, found);
        }
        found.push((dir, name, node));
    }
}

fn flip_bits(arguments: &[&str], seed: u64, region: impl Fn(&mut Random, usize) -> usize) {
    let scratch = Scratch::new();
    let good = good_image(&scratch, arguments);
    let mut random = Random::new(seed);
    let mut slowest = Duration::ZERO;
    for _ in 0..amount(100, 1000) {
        let mut bytes = good.clone();
        for _ in 0..1 + random.below(12) {
            let offset = region(&mut random, bytes.len());
            bytes[offset] ^= 1 << random.below(8);
        }
        let start = Instant::now();
        use_it(Memory { bytes, requests: 0 });
        slowest = slowest.max(start.elapsed());
    }
    assert!(slowest < Duration::from_secs(20), "one image took {slowest:?}");
}

#[test]
fn flips_anywhere_do_no_harm() {
    flip_bits(&["-b", "1024"], 1, |random, len| random.below(len as u64) as usize);
}

#[test]
fn flips_in_superblock_and_descriptors_do_no_harm() {
    flip_bits(&["-b", "1024"], 2, |random, _| 1024 + random.below(2048) as usize);
}

#[test]
fn flips_in_bitmaps_and_inodes_do_no_harm() {
    flip_bits(&["-b", "1024"], 3, |random, _| 1024 + random.below(200 * 1024) as usize);
}

#[test]
fn flips_with_large_blocks_do_no_harm() {
    flip_bits(&["-b", "4096"], 4, |random, len| random.below(len as u64 / 3) as usize);
}

#[test]
fn garbage_and_short_devices_are_refused() {
    let scratch = Scratch::new();
    let good = good_image(&scratch, &["-b", "1024"]);
    let mut random = Random::new(5);
    for len in [0, 512, 1024, 1536, 2048, 4096, good.len() / 2] {
        let cut = Memory { bytes: good[..len].to_vec(), requests: 0 };
        assert!(Ext2::mount(cut, options(), memory()).is_err(), "cut to {len}");
        let garbage = Memory { bytes: random.bytes(len), requests: 0 };
        assert!(Ext2::mount(garbage, options(), memory()).is_err(), "garbage of {len}");
    }
}

/// Gives `change` the superblock of a good image and mounts the result.
fn mount_changed(change: impl Fn(&mut [u8])) -> Result<Ext2<Memory>, Errno> {
    let scratch = Scratch::new();
    let mut bytes = good_image(&scratch, &["-b", "1024"]);
    change(&mut bytes[1024..2048]);
    Ext2::mount(Memory { bytes, requests: 0 }, options(), memory())
}

#[test]
fn an_unknown_incompatible_feature_is_refused() {
    assert_eq!(mount_changed(|superblock| superblock[96] |= 0x40).err(), Some(Errno::EINVAL));
    assert_eq!(mount_changed(|superblock| superblock[97] |= 0x80).err(), Some(Errno::EINVAL));
}

#[test]
fn an_unknown_read_only_feature_makes_the_mount_read_only() {
    let mut volume = mount_changed(|superblock| superblock[101] |= 0x04).unwrap();
    let root = volume.root();
    assert!(volume.statistics().read_only);
    assert_eq!(volume.make_dir(root, b"x", 0o755, ROOT_USER), Err(Errno::EROFS));
    assert_eq!(volume.unlink(root, b"large"), Err(Errno::EROFS));
    assert!(volume.lookup(root, b"large").is_ok());
    assert_eq!(volume.unmount(), Ok(()));
}
