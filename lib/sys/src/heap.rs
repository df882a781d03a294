//! The heap: `talc` over the memory that the birth registers name.
//!
//! A service may die in the middle of a change of the heap's own lists. Whoever starts again in the same memory has to know:
//! `CHANGING` is set around each change.

use abi::layout::{SERVICE_HEAP, SERVICE_KEEP};
use abi::{Errno, layout};
use core::alloc::{GlobalAlloc, Layout};
use core::ptr::NonNull;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering, compiler_fence};
use talc::{TalcCell, source::Manual};

struct Heap(TalcCell<Manual>);

// SAFETY: a native program has one thread and nothing interrupts it within itself.
unsafe impl Sync for Heap {}

#[global_allocator]
static HEAP: Heap = Heap(TalcCell::new(Manual));

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
        let Some(end) = (unsafe { HEAP.0.claim(start, bytes) }) else { panic!("a heap of {bytes} bytes is too small") };
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
    let arena_end = changing(|| unsafe { HEAP.0.extend(arena_end, new_end) });
    ARENA_END.store(arena_end.as_ptr(), Ordering::Relaxed);
    END.store(start + bytes, Ordering::Relaxed);
    Ok(())
}

// SAFETY: the allocator's own contract, passed on.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: passed on.
        changing(|| unsafe { self.0.alloc(layout) })
    }

    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        // SAFETY: passed on.
        changing(|| unsafe { self.0.dealloc(start, layout) })
    }

    unsafe fn realloc(&self, start: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        // SAFETY: passed on.
        changing(|| unsafe { self.0.realloc(start, layout, bytes) })
    }
}
