//! The heap: `talc` over the memory that the birth registers name.

use core::alloc::{GlobalAlloc, Layout};
use talc::{TalcCell, source::Manual};

struct Heap(TalcCell<Manual>);

// SAFETY: a native program has one thread and nothing interrupts it within itself.
unsafe impl Sync for Heap {}

#[global_allocator]
static HEAP: Heap = Heap(TalcCell::new(Manual));

/// Gives the heap its memory.
///
/// # Safety
/// Nothing else uses these bytes from now on.
pub unsafe fn claim(start: *mut u8, bytes: usize) {
    // SAFETY: passed on.
    if bytes > 0 && unsafe { HEAP.0.claim(start, bytes) }.is_none() {
        panic!("a heap of {bytes} bytes is too small");
    }
}

// SAFETY: the allocator's own contract, passed on.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: passed on.
        unsafe { self.0.alloc(layout) }
    }

    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        // SAFETY: passed on.
        unsafe { self.0.dealloc(start, layout) }
    }

    unsafe fn realloc(&self, start: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        // SAFETY: passed on.
        unsafe { self.0.realloc(start, layout, bytes) }
    }
}
