//! The heap: `talc` over the memory that the birth registers name, and small blocks that are free again in lists by size (`small`).
//!
//! A service may die in the middle of a change of the heap's own lists. Whoever starts again in the same memory has to know:
//! `CHANGING` is set around each change of talc's. Those of the lists are single stores.

use crate::small::{self, Small};
use abi::layout::{SERVICE_HEAP, SERVICE_KEEP};
use abi::{Errno, layout};
use core::alloc::{GlobalAlloc, Layout};
use core::ptr::NonNull;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering, compiler_fence};
use talc::{TalcCell, source::Manual};

struct Heap {
    talc: TalcCell<Manual>,
    small: Small,
}

// SAFETY: a native program has one thread and nothing interrupts it within itself.
unsafe impl Sync for Heap {}

#[global_allocator]
static HEAP: Heap = Heap { talc: TalcCell::new(Manual), small: Small::new() };

/// Address after the heap.
static END: AtomicU64 = AtomicU64::new(SERVICE_HEAP);

/// Where the allocator says its heap ends; null before the heap has memory.
static ARENA_END: AtomicPtr<u8> = AtomicPtr::new(core::ptr::null_mut());

/// The heap's lists are being changed.
static CHANGING: AtomicBool = AtomicBool::new(false);

/// Marks a change of the heap's lists.
#[inline(always)]
fn changing<R>(change: impl FnOnce() -> R) -> R {
    CHANGING.store(true, Ordering::Relaxed);
    compiler_fence(Ordering::SeqCst);
    let result = change();
    compiler_fence(Ordering::SeqCst);
    CHANGING.store(false, Ordering::Relaxed);
    result
}

/// A heap that a predecessor has left is to be used.
///
/// # Panics
/// When it died in the middle of a change.
pub(crate) fn check() {
    assert!(!CHANGING.load(Ordering::Relaxed), "the predecessor died while it changed its heap");
}

/// Gives the heap its memory.
///
/// # Safety
/// Nothing else uses these bytes from now on.
pub unsafe fn claim(start: *mut u8, bytes: usize) {
    END.store(start as u64 + bytes as u64, Ordering::Relaxed);
    if bytes > 0 {
        // SAFETY: passed on.
        let Some(end) = (unsafe { HEAP.talc.claim(start, bytes) }) else {
            panic!("a heap of {bytes} bytes is too small")
        };
        ARENA_END.store(end.as_ptr(), Ordering::Relaxed);
    }
}

/// Address after the heap: where [`grow`] goes on.
pub fn end() -> u64 {
    END.load(Ordering::Relaxed)
}

/// Makes the heap longer by whole pages, which the caller has just mapped behind it. Only vm maps memory there; a program
/// that lies about it dies of a page fault.
///
/// # Errors
/// `EINVAL`: no whole pages, or there is no heap yet; `ENOMEM`: the addresses of heaps are used up.
pub fn grow(bytes: u64) -> crate::Result<()> {
    let start = end();
    if bytes == 0 || !bytes.is_multiple_of(layout::PAGE_BYTES) {
        return Err(Errno::EINVAL);
    }
    if bytes > SERVICE_KEEP.saturating_sub(start) {
        return Err(Errno::ENOMEM);
    }
    let arena_end = NonNull::new(ARENA_END.load(Ordering::Relaxed)).ok_or(Errno::EINVAL)?;
    let new_end = (start + bytes) as *mut u8;
    // SAFETY: addresses between the heap and the preserved memory are nobody's, and each is added once, since `END` only rises.
    let arena_end = changing(|| unsafe { HEAP.talc.extend(arena_end, new_end) });
    ARENA_END.store(arena_end.as_ptr(), Ordering::Relaxed);
    END.store(start + bytes, Ordering::Relaxed);
    Ok(())
}

// SAFETY: a block is talc's, or has been one of the same size class: whatever belongs to a class never goes back to talc.
unsafe impl GlobalAlloc for Heap {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let Some(class) = small::class_of(layout) else {
            // SAFETY: passed on.
            return changing(|| unsafe { self.talc.alloc(layout) });
        };
        match self.small.take(class) {
            Some(block) => block.as_ptr(),
            // SAFETY: as the caller promises; a layout of the class is not empty either.
            None => changing(|| unsafe { self.talc.alloc(small::layout_of(class)) }),
        }
    }

    #[inline]
    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        match small::class_of(layout) {
            // SAFETY: `alloc` has given a block of this class, which nobody uses any more.
            Some(class) => unsafe { self.small.give(class, start) },
            // SAFETY: passed on.
            None => changing(|| unsafe { self.talc.dealloc(start, layout) }),
        }
    }

    unsafe fn realloc(&self, start: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        // SAFETY: the caller promises that `bytes` makes a layout.
        let new_layout = unsafe { Layout::from_size_align_unchecked(bytes, layout.align()) };
        match (small::class_of(layout), small::class_of(new_layout)) {
            // SAFETY: passed on.
            (None, None) => changing(|| unsafe { self.talc.realloc(start, layout, bytes) }),
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
