//! The state of a file-system process that outlives it, in preserved memory.
//!
//! | part | file | |
//! |---|---|---|
//! | undo log | `recover::transaction` | makes each request one transaction |
//! | request in progress | `recover::in_progress` | finds a request that crashes the server |
//! | replies | `replies` | no request is executed twice |
//! | record of a mount | `mounts` | one per volume |
//! | use counts of nodes | `uses` | one table per volume |
//! | blocks and their directory | `crate::frames` | one cache per volume |
//!
//! A successor finds the state after the last commit: `Preserved::open` rolls the open transaction back. Everything else (indexes,
//! inodes, names) is rebuilt.

pub mod mounts;
pub mod replies;
pub mod uses;

use core::ops::Range;

use recover::in_progress::Tries;
use recover::transaction::{self, Undo};
use sys::StartKind;
use sys::keep::{Keep, Part, Parts};

use mounts::MountPlace;
use replies::Replies;

/// Version of the layout: changes when the meaning of anything here does.
const VERSION: u64 = 0x736b_696e_0003;
const LAYOUT: usize = 0;

/// Bytes of the undo log.
const LOG_BYTES: usize = 256 * 1024;
/// Parts are page-aligned, so that a copy by the kernel touches as few pages as possible.
const PAGE: usize = 4096;
/// Smallest block size of a cache, in bytes.
pub const MIN_BLOCK: usize = 1024;

/// Volumes and their caches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Limit of volumes mounted at a time.
    pub volumes: usize,
    /// Size of each volume's block cache in bytes, a multiple of the page size; 0 if its content is behind the layout.
    pub cache_bytes: usize,
}

impl Layout {
    /// Returns the preserved memory that the layout needs, in bytes.
    pub const fn bytes(&self) -> usize {
        self.volumes_start() + self.volumes * self.volume_bytes()
    }

    const fn id(&self) -> u64 {
        VERSION ^ (self.volumes as u64) << 48 ^ self.cache_bytes as u64
    }

    const fn log(&self) -> Range<usize> {
        let start = 2 * PAGE + replies::BYTES.next_multiple_of(PAGE);
        start..start + LOG_BYTES
    }

    const fn volumes_start(&self) -> usize {
        self.log().end
    }

    const fn directory_bytes(&self) -> usize {
        (self.cache_bytes / MIN_BLOCK * 8).next_multiple_of(PAGE)
    }

    const fn volume_bytes(&self) -> usize {
        PAGE + uses::BYTES + self.directory_bytes() + self.cache_bytes
    }

    const fn volume(&self, number: usize) -> usize {
        self.volumes_start() + number * self.volume_bytes()
    }
}

/// The preserved memory of a volume.
pub struct VolumeMemory {
    /// Uses of nodes.
    pub uses: Part,
    /// Cached blocks.
    pub cache: CacheMemory,
}

/// The preserved memory of a cache.
pub struct CacheMemory {
    /// What the frames hold.
    pub directory: Part,
    /// Blocks.
    pub frames: Part,
    /// The undo log of the process.
    pub undo: Undo,
}

/// The preserved state of a process.
pub struct Preserved {
    parts: Parts,
    layout: Layout,
    /// The undo log.
    pub undo: Undo,
    /// The attempts at the request in progress.
    pub request: Tries,
    /// The attempts at freeing orphans.
    pub work: Tries,
    /// Replies.
    pub replies: Replies,
}

impl Preserved {
    /// The state in `keep`: after a `Fresh` start none; else what the predecessor has left, without what it had only begun. Damaged
    /// memory is reported, and nothing in it used.
    ///
    /// # Panics
    /// When the memory is smaller than the layout; when the predecessor's is another one and this is a live update, which rs then
    /// takes back.
    pub fn open(keep: Keep, layout: Layout, kind: StartKind) -> Preserved {
        Self::open_parts(Parts::new(keep), layout, kind)
    }

    /// As `open`, of memory that is taken in parts.
    pub fn open_parts(parts: Parts, layout: Layout, kind: StartKind) -> Preserved {
        assert!(parts.len() >= layout.bytes(), "{} preserved bytes, {} needed", parts.len(), layout.bytes());
        let found = lend(&parts, 0, transaction::HEAD_BYTES).word(LAYOUT);
        let is_known = kind != StartKind::Fresh && found == layout.id();
        assert!(is_known || kind != StartKind::Updated, "the preserved state is of another layout ({found:#x})");
        if !is_known {
            clear(&parts, layout);
        }
        match Self::of(&parts, layout) {
            Ok(preserved) => preserved,
            Err(transaction::Damaged) => {
                sys::log!("undo log in preserved memory is corrupt; every volume is lost and has to be mounted again");
                clear(&parts, layout);
                Self::of(&parts, layout).unwrap_or_else(|_| unreachable!("an empty undo log is sound"))
            }
        }
    }

    fn of(parts: &Parts, layout: Layout) -> Result<Preserved, transaction::Damaged> {
        let log = layout.log();
        let undo = Undo::open(lend(parts, 0, transaction::HEAD_BYTES), lend(parts, log.start, log.len()));
        let limits = layout.volumes_start()..parts.len();
        undo.roll_back(limits, |place, bytes| lend_any(parts, place, bytes.len(), |old| old.copy_from_slice(bytes)))?;
        let committed = undo.number() - 1;
        let request = Tries::open(lend(parts, PAGE, Tries::BYTES), committed);
        let work = Tries::open(lend(parts, PAGE + Tries::BYTES, Tries::BYTES), committed);
        let replies = Replies::open(lend(parts, 2 * PAGE, replies::BYTES), committed);
        Ok(Preserved { parts: parts.clone(), layout, undo, request, work, replies })
    }

    /// Most volumes.
    pub fn volumes(&self) -> usize {
        self.layout.volumes
    }

    /// Returns the regions of the preserved memory that hold the state of volumes, also behind the layout, for `Undo::roll_back`.
    pub fn limits(&self) -> Range<usize> {
        self.layout.volumes_start()..self.parts.len()
    }

    /// The record of volume `number`; `None` while it is in use.
    pub fn mount_place(&self, number: usize) -> Option<MountPlace> {
        let start = self.layout.volume(number);
        Some(MountPlace::open(self.parts.lend(start..start + mounts::BYTES)?, self.undo.clone()))
    }

    /// The memory of volume `number`; `None` while it is in use.
    pub fn volume(&self, number: usize) -> Option<VolumeMemory> {
        let start = self.layout.volume(number) + PAGE;
        let directory = start + uses::BYTES;
        let frames = directory + self.layout.directory_bytes();
        Some(VolumeMemory {
            uses: self.parts.lend(start..directory)?,
            cache: CacheMemory {
                directory: self.parts.lend(directory..frames)?,
                frames: self.parts.lend(frames..frames + self.layout.cache_bytes)?,
                undo: self.undo.clone(),
            },
        })
    }
}

/// Clears the state. Writes the layout's number last, so that a death in between leaves no valid state.
fn clear(parts: &Parts, layout: Layout) {
    let mut head = lend(parts, 0, transaction::HEAD_BYTES);
    head.put_word(LAYOUT, 0);
    Undo::clear(&mut head);
    Tries::clear(&mut lend(parts, PAGE, 2 * Tries::BYTES));
    Replies::clear(&mut lend(parts, 2 * PAGE, replies::BYTES));
    for number in 0..layout.volumes {
        MountPlace::clear(&mut lend(parts, layout.volume(number), mounts::BYTES));
    }
    head.put_word(LAYOUT, layout.id());
}

fn lend(parts: &Parts, start: usize, bytes: usize) -> Part {
    parts.lend(start..start + bytes).unwrap_or_else(|| unreachable!("preserved memory at {start} has two users"))
}

/// As `lend`, for bytes that do not begin with a word.
fn lend_any(parts: &Parts, start: usize, bytes: usize, act: impl FnOnce(&mut [u8])) {
    let first = start & !7;
    let mut part = lend(parts, first, start + bytes - first);
    part.order();
    act(&mut part[start - first..]);
}
