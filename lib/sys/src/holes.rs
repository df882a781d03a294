//! The free memory of a heap, page by page, while it is returned to vm.
//!
//! talc does not tell what is free. So what lies above the last block is taken out of the arena, and the holes below are allocated,
//! largest first; then each is discarded and freed again. Until then the first words of a hole name the next one: a successor in the same
//! memory finds all but the one that was being freed.

use crate::arenas::Arenas;
use abi::layout::PAGE_BYTES;
use core::alloc::Layout;
use core::cell::Cell;
use core::ptr::{NonNull, null_mut};
use core::sync::atomic::{Ordering, compiler_fence};

const PAGE: usize = PAGE_BYTES as usize;

/// The first words of a hole that is allocated.
#[derive(Clone, Copy)]
struct Hole {
    next: *mut Hole,
    bytes: usize,
}

/// The holes that are allocated.
pub struct Holes {
    first: Cell<*mut Hole>,
}

impl Holes {
    /// Returns no holes.
    pub const fn new() -> Holes {
        Holes { first: Cell::new(null_mut()) }
    }

    /// Hands the whole pages of an arena that ends at `end` to `discard`, which may overwrite them: those of its holes, and those
    /// above its last block.
    pub fn discard(&self, arenas: &Arenas, end: *mut u8, mut discard: impl FnMut(*mut u8, usize)) {
        let used_end = arenas.truncate();
        if used_end.is_null() {
            return;
        }
        self.allocate(arenas, end as usize);
        self.free(arenas, &mut discard);
        let top = used_end.wrapping_add(used_end.align_offset(PAGE));
        if let Some(bytes) = (end as usize / PAGE * PAGE).checked_sub(top as usize).filter(|&bytes| bytes > 0) {
            discard(top, bytes);
        }
        // SAFETY: the bytes were the arena's before.
        unsafe { arenas.extend(end) };
    }

    /// Allocates all holes, as blocks of whole pages.
    fn allocate(&self, arenas: &Arenas, bound: usize) {
        let mut bytes = 1 << bound.ilog2();
        while bytes >= PAGE {
            // SAFETY: the layout is not empty.
            let hole = unsafe { arenas.alloc(layout_of(bytes)) }.cast::<Hole>();
            if hole.is_null() {
                bytes /= 2;
                continue;
            }
            // SAFETY: at least a page, aligned to one, which nobody else uses.
            unsafe { hole.write(Hole { next: self.first.get(), bytes }) };
            compiler_fence(Ordering::SeqCst);
            self.first.set(hole);
        }
    }

    /// Hands the holes that are allocated to `discard`, and frees them.
    pub fn free(&self, arenas: &Arenas, mut discard: impl FnMut(*mut u8, usize)) {
        while let Some(hole) = NonNull::new(self.first.get()) {
            // SAFETY: `allocate` has written it, and nobody else uses it.
            let Hole { next, bytes } = unsafe { hole.read() };
            self.first.set(next);
            compiler_fence(Ordering::SeqCst);
            discard(hole.as_ptr().cast(), bytes);
            // SAFETY: `allocate` has allocated it with this layout, and it is in the list no more.
            unsafe { arenas.dealloc(hole.as_ptr().cast(), layout_of(bytes)) };
        }
    }
}

fn layout_of(bytes: usize) -> Layout {
    // SAFETY: a power of two, and a size far below the largest.
    unsafe { Layout::from_size_align_unchecked(bytes, PAGE) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec;
    use std::vec::Vec;

    const BLOCK: Layout = match Layout::from_size_align(3 * PAGE, 16) {
        Ok(layout) => layout,
        Err(_) => panic!(),
    };

    /// An arena of 1 MiB, with a block of it in every fourth place of those that were filled.
    fn fragmented(memory: &mut [u8]) -> (Arenas, Vec<*mut u8>) {
        let arenas = Arenas::new();
        // SAFETY: the memory is used by nobody else; each block is freed once.
        unsafe {
            assert!(arenas.claim(memory.as_mut_ptr(), memory.len()));
            let blocks: Vec<_> = (0..40).map(|_| arenas.alloc(BLOCK)).collect();
            blocks.iter().for_each(|block| block.write_bytes(7, BLOCK.size()));
            let (kept, freed): (Vec<_>, Vec<_>) = blocks.into_iter().enumerate().partition(|(at, _)| at % 4 == 0);
            freed.iter().for_each(|&(_, block)| arenas.dealloc(block, BLOCK));
            (arenas, kept.into_iter().map(|(_, block)| block).collect())
        }
    }

    #[test]
    fn what_is_free_is_discarded_and_nothing_else() {
        let mut memory = vec![0u8; 1 << 20];
        let end = memory.as_mut_ptr_range().end;
        let (arenas, kept) = fragmented(&mut memory);
        assert_eq!(arenas.below_peak(), 30 * BLOCK.size());
        let mut discarded = 0;
        let holes = Holes::new();
        holes.discard(&arenas, end, |start, bytes| {
            assert!((start as usize).is_multiple_of(PAGE) && bytes.is_multiple_of(PAGE));
            discarded += bytes / PAGE;
            // SAFETY: free, within the memory.
            unsafe { start.write_bytes(0, bytes) };
        });
        arenas.forget_peak();
        assert_eq!(arenas.below_peak(), 0);
        let used = kept.len() * BLOCK.size() / PAGE;
        assert!(discarded > (memory.len() / PAGE - used) * 3 / 4, "only {discarded} pages");
        // SAFETY: blocks that are allocated, and others that are the memory's.
        unsafe {
            assert!(kept.iter().all(|block| (0..BLOCK.size()).all(|at| *block.add(at) == 7)));
            let all = core::iter::from_fn(|| core::ptr::NonNull::new(arenas.alloc(BLOCK))).count();
            assert!(all > 60, "{all} blocks of 70 that are free");
        }
    }

    #[test]
    fn a_successor_frees_what_was_allocated_for_it() {
        let mut memory = vec![0u8; 1 << 20];
        let range = memory.as_mut_ptr_range();
        let (arenas, _) = fragmented(&mut memory);
        let room = |arenas: &Arenas| {
            // SAFETY: each block is freed once.
            unsafe {
                let blocks: Vec<_> = core::iter::from_fn(|| core::ptr::NonNull::new(arenas.alloc(BLOCK))).collect();
                blocks.iter().for_each(|block| arenas.dealloc(block.as_ptr(), BLOCK));
                blocks.len()
            }
        };
        let before = room(&arenas);
        let holes = Holes::new();
        arenas.truncate();
        holes.allocate(&arenas, 1 << 20);
        assert_eq!(room(&arenas), 0);
        holes.free(&arenas, |_, _| {});
        // SAFETY: the bytes were the arena's before.
        assert!(unsafe { arenas.extend(range.end) });
        assert_eq!(room(&arenas), before);
    }

    #[test]
    fn a_heap_without_memory_has_no_holes() {
        Holes::new().discard(&Arenas::new(), null_mut(), |_, _| panic!("there is nothing"));
    }
}
