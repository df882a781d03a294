//! The memory of cached blocks, which outlives the process: frames of one size, and a directory that tells what they hold.
//!
//! Frames lie on page boundaries as far as their size allows, so that the kernel's copies between a block and a grant touch as few
//! pages as can be. An entry of the directory is one word: block, whether the frame holds it, whether it was modified, check. A
//! frame is filled only while its entry is empty, so that a death leaves no frame with half a block.

use sys::keep::Part;

use crate::lru::LruIndex;
use recover::check::check_word;
use recover::transaction::put_back;

/// A page, in bytes; the largest block.
pub const PAGE_BYTES: usize = 4096;

const HELD: u64 = 1 << 32;
const MODIFIED: u64 = 1 << 33;
const CHECK_SHIFT: u32 = 48;

/// Frames of one size.
pub struct Frames {
    directory: Part,
    content: Part,
    /// Binary logarithm of the size of a frame.
    size_bits: u32,
    count: usize,
}

impl Frames {
    /// Frames of `size` bytes, a power of two up to a page, in as much memory as there is. They hold what the directory tells, if
    /// anybody trusts it; else `clear` comes first.
    pub fn new(directory: Part, content: Part, size: usize) -> Self {
        assert!(size.is_power_of_two() && size <= PAGE_BYTES, "{size} bytes are no size of a block");
        let count = (content.len() / size).min(directory.len() / 8);
        Frames { directory, content, size_bits: size.trailing_zeros(), count }
    }

    /// Number of frames.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Empties all frames.
    pub fn clear(&mut self) {
        self.directory.fill(0);
    }

    /// What the frames hold: an index of their blocks, and the modified ones. Damaged entries are reported and emptied.
    pub fn restore(&mut self) -> (LruIndex, alloc::vec::Vec<usize>) {
        let mut blocks = alloc::vec::Vec::with_capacity(self.count);
        let mut modified = alloc::vec::Vec::new();
        for frame in 0..self.count {
            let word = self.directory.word(frame * 8);
            if word != 0 && word != entry(frame, word) {
                sys::log!("the directory entry of a cached block is damaged ({word:#x}): what it held is lost");
                self.empty(frame);
            }
            let word = self.directory.word(frame * 8);
            blocks.push((word & HELD != 0).then_some(u64::from(word as u32)));
            if word & MODIFIED != 0 {
                modified.push(frame);
            }
        }
        let used = blocks.iter().rposition(Option::is_some).map_or(0, |last| last + 1);
        blocks.truncate(used);
        (LruIndex::restore(self.count, blocks.into_iter()), modified)
    }

    /// The frame holds nothing (any more): it may be filled.
    #[inline]
    pub fn empty(&mut self, frame: usize) {
        if self.directory.word(frame * 8) != 0 {
            self.directory.put_word(frame * 8, 0);
            self.directory.order();
        }
    }

    /// The frame holds `block` (below 2^32), which was modified or not.
    #[inline]
    pub fn hold(&mut self, frame: usize, block: u64, modified: bool) {
        let flags = HELD | if modified { MODIFIED } else { 0 };
        self.directory.put_word(frame * 8, entry(frame, u64::from(block as u32) | flags));
    }

    /// The content of a frame.
    #[inline]
    pub fn get(&self, frame: usize) -> &[u8] {
        let start = frame << self.size_bits;
        &self.content[start..start + (1 << self.size_bits)]
    }

    /// The content of a frame, for change.
    #[inline]
    pub fn get_mut(&mut self, frame: usize) -> &mut [u8] {
        let start = frame << self.size_bits;
        &mut self.content[start..start + (1 << self.size_bits)]
    }

    /// Where a frame is in the preserved memory.
    #[inline]
    pub fn place(&self, frame: usize) -> usize {
        self.content.place() + (frame << self.size_bits)
    }

    /// Stores before this stay before those after it.
    #[inline]
    pub fn order(&self) {
        self.content.order();
    }

    /// Puts `bytes` back to `place` of the preserved memory, if that is in a frame.
    pub fn put_back(&mut self, place: usize, bytes: &[u8]) {
        put_back(&mut self.content, place, bytes);
    }
}

/// The entry of a frame, with its check.
fn entry(frame: usize, word: u64) -> u64 {
    let content = word & ((1 << CHECK_SHIFT) - 1);
    content | check_word(0, [content, frame as u64]) >> CHECK_SHIFT << CHECK_SHIFT
}
