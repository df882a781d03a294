//! File systems as tmpfs makes them: valid for e2fsck, empty, of exactly the requested size.
#![forbid(unsafe_code)]

use std::process::Command;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use ext2::{Ext2, Memo, Options};
use fs::Errno;
use fs::device::{BlockDevice, SECTOR_SIZE};
use fs::file_system::{Caller, DataSink, DataSource, FileSystem, NodeId, S_IFREG, Timestamp};
use fs::preserve::{Layout, Preserved, VolumeMemory};
use sys::StartKind;
use sys::keep::{Keep, Part, Parts};
use tmpfs::format::Plan;
use tmpfs::memory::MemoryDevice;

const LAYOUT: Layout = Layout { volumes: 1, cache_bytes: 128 * 1024 };
const AREA_BYTES: usize = 2 << 20;
const NOW: Timestamp = Timestamp { seconds: 1_700_000_000, nanos: 5 };
const OPTIONS: Options = Options { read_only: false, clock: || NOW, in_memory: true };

/// Preserved memory as vm gives it.
fn words() -> &'static [AtomicU64] {
    Vec::leak((0..(LAYOUT.bytes() + AREA_BYTES) / 8).map(|_| AtomicU64::new(0)).collect())
}

fn open(words: &'static [AtomicU64], kind: StartKind) -> (VolumeMemory, Part) {
    let parts = Parts::new(Keep::simulated(words, u64::MAX));
    let preserved = Preserved::open_parts(parts.clone(), LAYOUT, kind);
    let area = parts.lend(LAYOUT.bytes()..LAYOUT.bytes() + AREA_BYTES).unwrap();
    (preserved.volume(0).unwrap(), area)
}

fn new_volume(words: &'static [AtomicU64], bytes: u64) -> Ext2<MemoryDevice> {
    let (memory, area) = open(words, StartKind::Fresh);
    let plan = Plan::new(bytes);
    let mut device = MemoryDevice::new(area, 0, plan.bytes());
    device.format(&plan, 7, NOW);
    Ext2::mount(device, OPTIONS, memory).expect("a sound file system")
}

struct Bytes(Vec<u8>);

impl DataSink for Bytes {
    fn put(&mut self, data: &[u8]) -> Result<(), Errno> {
        self.0.extend_from_slice(data);
        Ok(())
    }
}

struct Pattern;

impl DataSource for Pattern {
    fn take(&mut self, buffer: &mut [u8]) -> Result<(), Errno> {
        buffer.fill(0x5a);
        Ok(())
    }
}

fn create(volume: &mut impl FileSystem, name: &[u8]) -> NodeId {
    let root = volume.root();
    let node = volume.make_node(root, name, S_IFREG | 0o600, 0, Caller::default()).unwrap();
    volume.get(node).unwrap();
    volume.settle().unwrap();
    node
}

fn write(volume: &mut impl FileSystem, node: NodeId, at: u64, bytes: usize) -> Result<usize, Errno> {
    let written = volume.write(node, at, bytes, &mut Pattern, Caller::default());
    volume.settle().unwrap();
    written
}

fn check(mut device: MemoryDevice) {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let path = std::env::temp_dir().join(format!("skink-tmpfs-{}-{number}", std::process::id()));
    std::fs::write(&path, device.content()).unwrap();
    let output = Command::new("e2fsck").arg("-fn").arg(&path).output().expect("e2fsck must be installed");
    std::fs::remove_file(&path).unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.code() == Some(0), "e2fsck found:\n{text}");
}

#[test]
fn a_new_file_system_is_sound_empty_and_everybodys() {
    for bytes in [1, 100_000, 1 << 20] {
        let mut volume = new_volume(words(), bytes);
        let root = volume.root();
        let attributes = volume.attributes(root).unwrap();
        assert_eq!((attributes.mode, attributes.links, attributes.modified.seconds), (0o41777, 2, NOW.seconds));
        let statistics = volume.statistics();
        assert_eq!((statistics.kind, statistics.blocks), (0x0102_1994, bytes.div_ceil(4096)));
        assert_eq!(statistics.blocks_free, statistics.blocks);
        assert!(volume.is_in_memory());
        volume.unmount().unwrap();
        check(volume.into_device());
    }
}

#[test]
fn memory_of_another_file_system_is_as_good_as_new() {
    let words = words();
    for round in 0..3 {
        let mut volume = new_volume(words, 1 << 20);
        // More than the inodes of the first block.
        for number in 0..40 {
            let node = create(&mut volume, format!("file {number} of round {round}").as_bytes());
            assert_eq!(write(&mut volume, node, 0, 5000), Ok(5000), "file {number} of round {round}");
        }
        volume.unmount().unwrap();
        check(volume.into_device());
    }
}

#[test]
fn when_it_is_full_writes_fail_and_what_is_there_stays() {
    let mut volume = new_volume(words(), 64 * 1024);
    let node = create(&mut volume, b"full");
    let mut written = 0;
    let error = loop {
        match write(&mut volume, node, written, 4096) {
            Ok(bytes) => written += bytes as u64,
            Err(error) => break error,
        }
    };
    assert_eq!(error, Errno::ENOSPC);
    assert!(written >= 60 * 1024, "{written}");
    let mut found = Bytes(Vec::new());
    while (found.0.len() as u64) < written {
        let at = found.0.len() as u64;
        assert!(volume.read(node, at, 65536, &mut found).unwrap() > 0);
    }
    assert!(found.0.iter().all(|&byte| byte == 0x5a));
    volume.unmount().unwrap();
    check(volume.into_device());
}

#[test]
fn small_files_fill_it_as_one_large_file_does() {
    let mut volume = new_volume(words(), 1 << 20);
    let root = volume.root();
    let mut files = 0;
    let error = loop {
        let name = format!("small{files}");
        let made = volume.make_node(root, name.as_bytes(), S_IFREG | 0o600, 0, Caller::default());
        match made.and_then(|node| volume.write(node, 0, 4096, &mut Pattern, Caller::default())) {
            Ok(_) => files += 1,
            Err(error) => break error,
        }
        volume.settle().unwrap();
    };
    assert_eq!(error, Errno::ENOSPC);
    // Less what their names take.
    assert!(files > 240, "{files} files of 4 KiB in 1 MiB");
}

#[test]
fn a_successor_finds_everything() {
    let words = words();
    let mut first = new_volume(words, 1 << 20);
    let node = create(&mut first, b"kept");
    // More than the cache holds.
    for at in (0..500_000).step_by(50_000) {
        assert_eq!(write(&mut first, node, at, 50_000), Ok(50_000));
    }
    first.sync().unwrap();
    let memo = Memo::from_words(first.memo()).unwrap();
    drop(first);
    let (memory, area) = open(words, StartKind::Restarted);
    let device = MemoryDevice::new(area, memo.device[0], memo.device[1] as usize);
    assert_eq!(device.sector_count() as usize * SECTOR_SIZE, memo.device[1] as usize);
    let mut second = Ext2::resume(device, OPTIONS, memory, memo).expect("what the predecessor has left");
    let root = second.root();
    assert_eq!(second.lookup(root, b"kept"), Ok(node));
    let mut found = Bytes(Vec::new());
    while found.0.len() < 500_000 {
        let at = found.0.len() as u64;
        assert!(second.read(node, at, 65536, &mut found).unwrap() > 0);
    }
    assert!(found.0.iter().all(|&byte| byte == 0x5a));
}

/// Bytes of the area that are not zero.
fn used_bytes(words: &[AtomicU64]) -> usize {
    let area = &words[LAYOUT.bytes() / 8..];
    area.iter().filter(|word| word.load(Ordering::Relaxed) != 0).count() * 8
}

#[test]
fn what_files_no_longer_use_has_no_memory() {
    let words = words();
    let mut volume = new_volume(words, 1 << 20);
    volume.trim();
    let before = used_bytes(words);
    let node = create(&mut volume, b"large");
    assert_eq!(write(&mut volume, node, 0, 600 << 10), Ok(600 << 10));
    let kept = create(&mut volume, b"kept");
    assert_eq!(write(&mut volume, kept, 0, 40 << 10), Ok(40 << 10));
    volume.sync().unwrap();
    volume.trim();
    assert!(used_bytes(words) > before + (600 << 10));
    let root = volume.root();
    volume.unlink(root, b"large").unwrap();
    volume.put(node, 1).unwrap();
    volume.settle().unwrap();
    volume.trim();
    let after = used_bytes(words);
    assert!(after < before + (52 << 10), "{before} bytes before, {after} after");
    let mut content = Bytes(Vec::new());
    while content.0.len() < 40 << 10 {
        volume.read(kept, content.0.len() as u64, 40 << 10, &mut content).unwrap();
    }
    assert!(content.0.len() == 40 << 10 && content.0.iter().all(|&byte| byte == 0x5a));
    volume.put(kept, 1).unwrap();
    volume.settle().unwrap();
    volume.sync().unwrap();
    check(volume.into_device());
}
