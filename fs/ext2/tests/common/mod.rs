//! What the tests of ext2 share: images by mke2fs, a device over a file, checks by e2fsck and debugfs.
#![allow(dead_code)]

pub mod disk;
pub mod files;
pub mod grants;
pub mod model;
pub mod run;
pub mod work;

pub use files::*;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use ext2::{Ext2, Options};
use fs::Errno;
use fs::device::{BlockDevice, SECTOR_SIZE};
use fs::file_system::FileSystem;
use fs::preserve::{Layout, Preserved, VolumeMemory};
use sys::StartKind;
use sys::keep::Keep;

/// A folder of its own for one test, removed at the end.
pub struct Scratch(PathBuf);

impl Scratch {
    pub fn new() -> Self {
        Scratch::below(&std::env::temp_dir())
    }

    /// In a file system that is memory, if there is one.
    pub fn in_memory() -> Self {
        let shared = Path::new("/dev/shm");
        if shared.is_dir() { Scratch::below(shared) } else { Scratch::new() }
    }

    fn below(folder: &Path) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = folder.join(format!("ext2-test-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Scratch(path)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// An image made by mke2fs with these arguments and this many KiB.
    pub fn image(&self, kib: u32, arguments: &[&str]) -> PathBuf {
        let path = self.path("image");
        let _ = std::fs::remove_file(&path);
        let output = Command::new("mke2fs")
            .args(["-q", "-F", "-t", "ext2"])
            .args(arguments)
            .arg(&path)
            .arg(format!("{kib}k"))
            .output()
            .expect("mke2fs must be installed");
        assert!(output.status.success(), "mke2fs: {}", String::from_utf8_lossy(&output.stderr));
        path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A block device over a file.
pub struct FileDevice(File);

impl FileDevice {
    pub fn open(path: &Path) -> Self {
        FileDevice(OpenOptions::new().read(true).write(true).open(path).unwrap())
    }

    pub fn file(&self) -> &File {
        &self.0
    }
}

impl BlockDevice for FileDevice {
    fn sector_count(&self) -> u64 {
        self.0.metadata().unwrap().len() / SECTOR_SIZE as u64
    }

    fn read(&mut self, first_sector: u64, buffer: &mut [u8]) -> Result<(), Errno> {
        assert_eq!(buffer.len() % SECTOR_SIZE, 0);
        self.0.read_exact_at(buffer, first_sector * SECTOR_SIZE as u64).map_err(|_| Errno::EIO)
    }

    fn write(&mut self, first_sector: u64, data: &[u8]) -> Result<(), Errno> {
        assert_eq!(data.len() % SECTOR_SIZE, 0);
        assert!(first_sector + (data.len() / SECTOR_SIZE) as u64 <= self.sector_count());
        self.0.write_all_at(data, first_sector * SECTOR_SIZE as u64).map_err(|_| Errno::EIO)
    }

    fn flush(&mut self) -> Result<(), Errno> {
        Ok(())
    }
}

pub fn options() -> Options {
    Options { read_only: false, clock: || NOW }
}

/// The preserved memory of the tests: caches of 1 MiB.
pub const LAYOUT: Layout = Layout { volumes: 3, cache_bytes: 1 << 20 };

/// New preserved memory.
pub fn words(layout: Layout) -> &'static [AtomicU64] {
    Vec::leak((0..layout.bytes() / 8).map(|word| AtomicU64::new((word as u64 + 1) * 77)).collect())
}

/// New preserved memory of a process that does not die.
pub fn memory_words(layout: Layout) -> Keep {
    Keep::simulated(words(layout), u64::MAX)
}

/// Memory for a volume whose process does not die.
pub fn memory() -> VolumeMemory {
    thread_local! {
        static PRESERVED: Preserved = Preserved::open(Keep::simulated(words(LAYOUT), u64::MAX), LAYOUT, StartKind::Fresh);
    }
    PRESERVED.with(|preserved| {
        preserved.undo.commit();
        let mut volumes = (0..LAYOUT.volumes).filter_map(|number| preserved.volume(number));
        volumes.next().expect("too many volumes at a time")
    })
}

/// As `memory`, for a cache of so many bytes, and for this mount alone.
pub fn memory_of(cache_bytes: usize) -> VolumeMemory {
    let layout = Layout { volumes: 1, cache_bytes };
    let preserved = Preserved::open(memory_words(layout), layout, StartKind::Fresh);
    preserved.undo.commit();
    preserved.volume(0).expect("it is new")
}

pub fn mount(path: &Path) -> Ext2<FileDevice> {
    let mut volume = Ext2::mount(FileDevice::open(path), options(), memory()).expect("mount");
    volume.sync().expect("sync");
    volume
}

/// Fails unless e2fsck finds nothing at all.
pub fn check(path: &Path) {
    let output = Command::new("e2fsck").arg("-fn").arg(path).output().expect("e2fsck must be installed");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.code() == Some(0), "e2fsck found:\n{text}");
}

/// Whether the superblock says that the file system was unmounted properly.
pub fn is_marked_clean(path: &Path) -> bool {
    let mut state = [0; 2];
    FileDevice::open(path).0.read_exact_at(&mut state, 1024 + 58).unwrap();
    u16::from_le_bytes(state) & 1 != 0
}

/// What debugfs prints for a request.
pub fn debugfs(path: &Path, request: &str) -> Vec<u8> {
    let output = Command::new("debugfs").args(["-R", request]).arg(path).output().expect("debugfs must be installed");
    output.stdout
}
