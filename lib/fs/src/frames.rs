//! Memory of the cached blocks, which outlives the process: frames of one size, and a directory of their contents.
//!
//! Frames are page-aligned as far as their size allows, so that a copy between a block and a grant touches as few pages as
//! possible. An entry of the directory is one word: block, whether the frame holds it, whether it was modified, with what order of
//! writing (`crate::order`), check. A frame is filled only while its entry is empty, so that a death leaves no frame with half a block.

use sys::keep::Part;

use crate::lru::LruIndex;
use crate::order::Mark;
use recover::check::check_word;
use recover::transaction::put_back;

/// A page, in bytes; the largest block.
pub const PAGE_BYTES: usize = 4096;

const HELD: u64 = 1 << 32;
const MODIFIED: u64 = 1 << 33;
const MARK_SHIFT: u32 = 34;
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
    /// Divides the memory into frames of `size` bytes, a power of two up to a page. [`Frames::restore`] or [`Frames::clear`] must follow.
    pub fn new(directory: Part, content: Part, size: usize) -> Self {
        assert!(size.is_power_of_two() && size <= PAGE_BYTES, "{size} bytes are no size of a block");
        let count = (content.len() / size).min(directory.len() / 8);
        Frames { directory, content, size_bits: size.trailing_zeros(), count }
    }

    /// Returns the number of frames.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Empties all frames.
    pub fn clear(&mut self) {
        self.directory.fill(0);
    }

    /// Reads the directory: returns an index of the cached blocks, and the dirty frames. Logs and empties corrupt entries.
    #[expect(clippy::disallowed_methods, reason = "at the start or a mount")]
    pub fn restore(&mut self) -> (LruIndex, alloc::vec::Vec<(usize, Mark)>) {
        let mut blocks = alloc::vec::Vec::with_capacity(self.count);
        let mut modified = alloc::vec::Vec::new();
        for frame in 0..self.count {
            let word = self.directory.word(frame * 8);
            if word != 0 && word != entry(frame, word) {
                sys::log!("block cache: entry {word:#x} of the directory is corrupt; the block is dropped");
                self.empty(frame);
            }
            let word = self.directory.word(frame * 8);
            blocks.push((word & HELD != 0).then_some(u64::from(word as u32)));
            if word & MODIFIED != 0 {
                modified.push((frame, Mark::from_bits(word >> MARK_SHIFT)));
            }
        }
        let used = blocks.iter().rposition(Option::is_some).map_or(0, |last| last + 1);
        blocks.truncate(used);
        (LruIndex::restore(self.count, blocks.into_iter()), modified)
    }

    /// Marks the frame as empty: it may be filled.
    #[inline]
    pub fn empty(&mut self, frame: usize) {
        if self.directory.word(frame * 8) != 0 {
            self.directory.put_word(frame * 8, 0);
            self.directory.order();
        }
    }

    /// Records that the frame holds `block` (below 2^32), clean or dirty.
    #[inline]
    pub fn hold(&mut self, frame: usize, block: u64, dirty: Option<Mark>) {
        const { assert!(MARK_SHIFT + Mark::BITS <= CHECK_SHIFT) }
        let flags = HELD | dirty.map_or(0, |mark| MODIFIED | mark.to_bits() << MARK_SHIFT);
        self.directory.put_word(frame * 8, entry(frame, u64::from(block as u32) | flags));
    }

    /// Returns the content of a frame.
    #[inline]
    pub fn get(&self, frame: usize) -> &[u8] {
        self.get_run(frame, 1)
    }

    /// Returns the content of `count` frames that are neighbours.
    #[inline]
    pub fn get_run(&self, first: usize, count: usize) -> &[u8] {
        let start = first << self.size_bits;
        &self.content[start..start + (count << self.size_bits)]
    }

    /// Returns the content of a frame for change.
    #[inline]
    pub fn get_mut(&mut self, frame: usize) -> &mut [u8] {
        self.get_run_mut(frame, 1)
    }

    /// Returns the content of `count` frames that are neighbours for change.
    #[inline]
    pub fn get_run_mut(&mut self, first: usize, count: usize) -> &mut [u8] {
        let start = first << self.size_bits;
        &mut self.content[start..start + (count << self.size_bits)]
    }

    /// Returns the offset of a frame in the preserved memory.
    #[inline]
    pub fn place(&self, frame: usize) -> usize {
        self.content.place() + (frame << self.size_bits)
    }

    /// Orders the stores before this call before those after it.
    #[inline]
    pub fn order(&self) {
        self.content.order();
    }

    /// Restores `bytes` at `place` of the preserved memory, if a frame covers it.
    pub fn put_back(&mut self, place: usize, bytes: &[u8]) {
        put_back(&mut self.content, place, bytes);
    }
}

/// The entry of a frame, with its check.
fn entry(frame: usize, word: u64) -> u64 {
    let content = word & ((1 << CHECK_SHIFT) - 1);
    content | check_word(0, [content, frame as u64]) >> CHECK_SHIFT << CHECK_SHIFT
}
