//! The heap: arenas in the memory that the start registers describe (`arenas`), and free lists of small blocks by size (`small`).
//!
//! A service may crash in the middle of a change of the heap's own lists. A successor in the same memory then abandons the arena;
//! the lists of small blocks change by single stores and stay consistent.

use crate::arenas::Arenas;
use crate::small::{self, Small};
use abi::layout::{SERVICE_HEAP, SERVICE_KEEP};
use abi::{Errno, layout};
use core::alloc::{GlobalAlloc, Layout};
use core::sync::atomic::{AtomicU64, Ordering};

struct Heap {
    arenas: Arenas,
    small: Small,
}

// SAFETY: a native program has one thread and nothing interrupts it within itself.
unsafe impl Sync for Heap {}

#[global_allocator]
static HEAP: Heap = Heap { arenas: Arenas::new(), small: Small::new() };

/// Address after the heap.
static END: AtomicU64 = AtomicU64::new(SERVICE_HEAP);

/// Takes over the heap of a predecessor.
///
/// # Panics
/// If it crashed in the middle of a change, and no memory is left for another arena.
pub(crate) fn take_over() {
    if HEAP.arenas.is_broken() {
        let is_whole = HEAP.arenas.give_up(end() as *mut u8);
        assert!(is_whole, "the predecessor crashed in its allocator, and its heap has no memory left for a new arena");
    }
}

/// Makes these bytes the heap's memory.
///
/// # Safety
/// Nothing else uses these bytes from now on.
pub unsafe fn claim(start: *mut u8, bytes: usize) {
    END.store(start as u64 + bytes as u64, Ordering::Relaxed);
    // SAFETY: passed on.
    let is_enough = bytes == 0 || unsafe { HEAP.arenas.claim(start, bytes) };
    assert!(is_enough, "a heap of {bytes} bytes is too small");
}

/// Returns the address after the heap, where [`grow`] continues.
pub fn end() -> u64 {
    END.load(Ordering::Relaxed)
}

/// Extends the heap by whole pages, which the caller has just mapped behind it. Only vm can map memory there; any other caller
/// crashes by a page fault.
///
/// # Errors
/// `EINVAL`: not whole pages, or no heap yet; `ENOMEM`: the address range of heaps is exhausted.
pub fn grow(bytes: u64) -> crate::Result<()> {
    let start = end();
    if bytes == 0 || !bytes.is_multiple_of(layout::PAGE_BYTES) {
        return Err(Errno::EINVAL);
    }
    if bytes > SERVICE_KEEP.saturating_sub(start) {
        return Err(Errno::ENOMEM);
    }
    // SAFETY: addresses between the heap and the preserved memory are nobody's, and each is added once, since `END` only rises.
    if !unsafe { HEAP.arenas.extend((start + bytes) as *mut u8) } {
        return Err(Errno::EINVAL);
    }
    END.store(start + bytes, Ordering::Relaxed);
    Ok(())
}

// SAFETY: a block is an arena's, or has been one of the same size class: whatever belongs to a class never goes back to an arena.
unsafe impl GlobalAlloc for Heap {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let Some(class) = small::class_of(layout) else {
            // SAFETY: passed on.
            return unsafe { self.arenas.alloc(layout) };
        };
        match self.small.take(class) {
            Some(block) => block.as_ptr(),
            // SAFETY: as the caller promises; a layout of the class is not empty either.
            None => unsafe { self.arenas.alloc(small::layout_of(class)) },
        }
    }

    #[inline]
    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        match small::class_of(layout) {
            // SAFETY: `alloc` has given a block of this class, which nobody uses any more.
            Some(class) => unsafe { self.small.give(class, start) },
            // SAFETY: passed on.
            None => unsafe { self.arenas.dealloc(start, layout) },
        }
    }

    unsafe fn realloc(&self, start: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        // SAFETY: the caller promises that `bytes` makes a layout.
        let new_layout = unsafe { Layout::from_size_align_unchecked(bytes, layout.align()) };
        match (small::class_of(layout), small::class_of(new_layout)) {
            // SAFETY: passed on.
            (None, None) => unsafe { self.arenas.realloc(start, layout, bytes) },
            (old, new) if old == new => start,
            _ => {
                // SAFETY: `bytes` is not 0, as the caller promises.
                let block = unsafe { self.alloc(new_layout) };
                if !block.is_null() {
                    // SAFETY: both blocks are as long, and different; the old one is the caller's to give up.
                    unsafe {
                        start.copy_to_nonoverlapping(block, layout.size().min(bytes));
                        self.dealloc(start, layout);
                    }
                }
                block
            }
        }
    }
}
