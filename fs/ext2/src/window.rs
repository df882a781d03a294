//! What the disk has not yet heard of: the window between two syncs.
//!
//! The disk must not hold a block or inode for two owners, whichever writes a power cut lets through. So what was freed in the window is
//! not allocated before its end: beside a bitmap that has changed stands the one that the window began with, and only what is free in
//! both is allocated. (What was allocated in the window, too, is unknown to the disk and may be used again at once.)
//!
//! A name that moves must reach the disk in its new place before it goes from the old one. The sector of the new place is a *target*
//! until the next sync, that of the old one is late (`fs::order`). A sector that would have to be both ends the window first.

use alloc::boxed::Box;
use alloc::vec::Vec;
use sys::fallible::{self, TryVec};

use fs::Errno;

use crate::bitmap;

/// Limit of bitmaps in a window.
const MAX_BITMAPS: usize = 64;
/// Limit of sectors with new names in a window.
const MAX_TARGETS: usize = 256;

/// A sector of a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sector {
    /// The block.
    pub block: u64,
    /// Number of the sector in it.
    pub number: usize,
}

/// A bitmap as it was at the beginning of the window.
struct Before {
    block: u32,
    bits: Box<[u8]>,
    /// Bits that have been cleared since.
    freed: u32,
}

/// The state of a window.
#[derive(Default)]
pub(crate) struct Window {
    bitmaps: Vec<Before>,
    targets: Vec<Sector>,
    /// Whether a name has moved.
    has_moves: bool,
    /// Whether the window began in a previous incarnation, or something did not fit: it must end before the next change.
    must_end: bool,
}

impl Window {
    /// Whether the window must end before the next change.
    pub fn must_end(&self) -> bool {
        self.must_end || self.bitmaps.len() > MAX_BITMAPS || self.targets.len() > MAX_TARGETS
    }

    /// Lets the window end before the next change.
    pub fn end_soon(&mut self) {
        self.must_end = true;
    }

    /// Forgets everything: the disk knows it. Calls `changed` with each bitmap in which something can be allocated again.
    pub fn end(&mut self, mut changed: impl FnMut(u32)) {
        self.bitmaps.drain(..).filter(|before| before.freed > 0).for_each(|before| changed(before.block));
        self.targets.clear();
        self.has_moves = false;
        self.must_end = false;
    }

    /// Returns the bitmap in `block` as it was when the window began, if it has changed since.
    pub fn before(&self, block: u32) -> Option<&[u8]> {
        self.bitmaps.iter().find(|before| before.block == block).map(|before| &*before.bits)
    }

    /// Remembers the bitmap `bits` in `block` before its first change in the window. `ENOMEM`.
    pub fn remember(&mut self, block: u32, bits: &[u8]) -> Result<(), Errno> {
        if self.before(block).is_some() {
            return Ok(());
        }
        let bits = fallible::copied(bits)?.into_boxed_slice();
        self.bitmaps.try_push(Before { block, bits, freed: 0 })
    }

    /// Counts a cleared bit of the bitmap in `block`.
    pub fn note_freed(&mut self, block: u32, bit: usize) {
        let before = self.bitmaps.iter_mut().find(|before| before.block == block);
        if let Some(before) = before.filter(|before| bitmap::is_set(&before.bits, bit)) {
            before.freed = before.freed.saturating_add(1);
        }
    }

    /// Returns how many bits were cleared in those of the bitmaps that `is_wanted` chooses: at least as many as cannot be allocated.
    pub fn freed(&self, is_wanted: impl Fn(u32) -> bool) -> u32 {
        let wanted = self.bitmaps.iter().filter(|before| is_wanted(before.block));
        wanted.fold(0, |sum, before| sum.saturating_add(before.freed))
    }

    /// Whether a name that moved, or was added to others, stands in the sector.
    pub fn is_target(&self, sector: Sector) -> bool {
        self.targets.contains(&sector)
    }

    /// Whether any name has moved, or was added to others.
    pub fn has_moves(&self) -> bool {
        self.has_moves
    }

    /// Records that a name has moved into the sector, or into a new block, or was added to others there.
    pub fn note_move(&mut self, to: Option<Sector>) {
        self.has_moves = true;
        let Some(sector) = to.filter(|&sector| !self.is_target(sector)) else { return };
        if self.targets.try_push(sector).is_err() {
            self.end_soon();
        }
    }
}
