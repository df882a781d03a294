//! The memory of cached blocks: whole pages on page boundaries, so that the kernel's copies between a block and a grant
//! touch as few pages as can be. Frames are numbered from 0 and never move.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

/// A page, in bytes; the largest block.
pub const PAGE_BYTES: usize = 4096;
/// Pages taken from the heap at a time: an aligned piece wastes up to a page.
const CHUNK_PAGES: usize = 16;

#[derive(Clone)]
#[repr(C, align(4096))]
struct Page([u8; PAGE_BYTES]);

/// Frames of one size. There are as many as were asked for with `provide`.
pub struct Frames {
    /// Binary logarithm of the size of a frame.
    size_bits: u32,
    chunks: Vec<Box<[Page]>>,
}

impl Frames {
    /// No frames yet, of `size` bytes, a power of two up to a page.
    pub fn new(size: usize) -> Self {
        assert!(size.is_power_of_two() && size <= PAGE_BYTES, "{size} bytes are no size of a block");
        Frames { size_bits: size.trailing_zeros(), chunks: Vec::new() }
    }

    /// Makes sure that `frame` is there.
    pub fn provide(&mut self, frame: usize) {
        let (chunk, ..) = self.place(frame);
        while self.chunks.len() <= chunk {
            self.chunks.push(vec![Page([0; PAGE_BYTES]); CHUNK_PAGES].into_boxed_slice());
        }
    }

    /// The content of a frame.
    #[inline]
    pub fn get(&self, frame: usize) -> &[u8] {
        let (chunk, page, offset) = self.place(frame);
        &self.chunks[chunk][page].0[offset..offset + (1 << self.size_bits)]
    }

    /// The content of a frame, for change.
    #[inline]
    pub fn get_mut(&mut self, frame: usize) -> &mut [u8] {
        let (chunk, page, offset) = self.place(frame);
        &mut self.chunks[chunk][page].0[offset..offset + (1 << self.size_bits)]
    }

    /// Chunk, page in it and offset in that.
    #[inline]
    fn place(&self, frame: usize) -> (usize, usize, usize) {
        let position = frame << self.size_bits;
        let page = position / PAGE_BYTES;
        (page / CHUNK_PAGES, page % CHUNK_PAGES, position % PAGE_BYTES)
    }
}
