//! The heap: arenas in the memory that the start registers describe (`arenas`), and free lists of small blocks by size (`small`).
//!
//! A part is set aside, the *reserve*. When everything else is used up, it serves the allocations that cannot fail, of the call in
//! progress. [`refill_reserve`] sets it aside again before the next call. Allocations that may fail leave it alone ([`without_reserve`]).
//!
//! A service may crash in the middle of a change of the heap's own lists. A successor in the same memory then abandons the arena;
//! the lists of small blocks change by single stores and stay consistent.

use crate::arenas::Arenas;
use crate::holes::Holes;
use crate::reserve::Reserve;
use crate::small::{self, Small};
use abi::layout::{SERVICE_HEAP, SERVICE_KEEP};
use abi::{Errno, layout};
use core::alloc::{GlobalAlloc, Layout};
use core::ptr::NonNull;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

struct Heap {
    arenas: Arenas,
    small: Small,
    reserve: Reserve,
    holes: Holes,
}

// SAFETY: a native program has one thread and nothing interrupts it within itself.
unsafe impl Sync for Heap {}

#[global_allocator]
static HEAP: Heap = Heap { arenas: Arenas::new(), small: Small::new(), reserve: Reserve::new(), holes: Holes::new() };

/// Address after the heap.
static END: AtomicU64 = AtomicU64::new(SERVICE_HEAP);

/// Free small blocks of a class that [`trim`] leaves in their list.
const SMALL_KEPT: usize = 16;
/// So much has to be free, of what has been in use, that it pays to return it.
const TRIM_BYTES: usize = 256 << 10;

/// How often memory was exhausted, the reserve included.
static EXHAUSTIONS: AtomicU32 = AtomicU32::new(0);

/// The reserve was full when `fallible::admit` last looked, no allocation was to fail, and neither has changed.
static CALM: AtomicBool = AtomicBool::new(false);

/// Whether a call may begin without a look at the reserve.
#[inline]
pub(crate) fn is_calm() -> bool {
    CALM.load(Ordering::Relaxed)
}

/// The reserve is full, and no allocation is to fail.
pub(crate) fn begin_calm() {
    CALM.store(true, Ordering::Relaxed);
}

/// The reserve is in use, or an allocation is to fail.
pub(crate) fn end_calm() {
    CALM.store(false, Ordering::Relaxed);
}

impl Heap {
    /// Allocates what the arena has no memory for: takes back the free small blocks, and then the reserve.
    #[cold]
    fn alloc_exhausted(&self, layout: Layout) -> *mut u8 {
        self.drain_small();
        // SAFETY: the caller's layout is not empty.
        let mut block = unsafe { self.arenas.alloc(layout) };
        if block.is_null() && self.reserve.release(&self.arenas) {
            end_calm();
            // SAFETY: as above.
            block = unsafe { self.arenas.alloc(layout) };
        }
        if block.is_null() && !self.reserve.is_spared() {
            EXHAUSTIONS.fetch_add(1, Ordering::Relaxed);
        }
        block
    }

    fn drain_small(&self) {
        self.small.shorten(0, |block, layout| self.free_small(block, layout));
    }

    /// Frees a small block that no list has; returns false if it is of an abandoned arena.
    fn free_small(&self, block: NonNull<u8>, layout: Layout) -> bool {
        let is_owned = self.arenas.owns(block.as_ptr());
        if is_owned {
            // SAFETY: the block was allocated with the layout of its class, and nobody has it.
            unsafe { self.arenas.dealloc(block.as_ptr(), layout) };
        }
        is_owned
    }

    /// # Safety
    /// The layout is not empty.
    #[inline]
    unsafe fn alloc_from_arenas(&self, layout: Layout) -> *mut u8 {
        // SAFETY: passed on.
        let block = unsafe { self.arenas.alloc(layout) };
        if block.is_null() { self.alloc_exhausted(layout) } else { block }
    }
}

/// Sets the reserve aside again, if it has been used. Returns false if memory is exhausted.
#[inline]
pub(crate) fn refill_reserve() -> bool {
    HEAP.reserve.is_full() || refill_used_reserve()
}

#[cold]
fn refill_used_reserve() -> bool {
    HEAP.drain_small();
    HEAP.reserve.refill(&HEAP.arenas)
}

/// Runs `attempt`, whose allocations may fail, without the reserve.
pub(crate) fn without_reserve<R>(attempt: impl FnOnce() -> R) -> R {
    HEAP.reserve.spared(attempt)
}

/// Returns how often this program and its predecessors in the same memory had no memory left for an allocation that cannot fail.
/// Each time but those that somebody survived was a death.
pub fn exhaustions() -> u32 {
    EXHAUSTIONS.load(Ordering::Relaxed)
}

/// Hands what is free to `discard`, if that is much less than has been in use since the last time.
pub(crate) fn trim(discard: impl FnMut(*mut u8, usize)) {
    HEAP.small.shorten(SMALL_KEPT, |block, layout| HEAP.free_small(block, layout));
    if HEAP.arenas.below_peak() >= TRIM_BYTES {
        HEAP.drain_small();
        HEAP.holes.discard(&HEAP.arenas, end() as *mut u8, discard);
        HEAP.arenas.forget_peak();
    }
}

/// Takes over the heap of a predecessor.
///
/// # Panics
/// If it crashed in the middle of a change, and no memory is left for another arena.
pub(crate) fn take_over() {
    HEAP.reserve.take_over(HEAP.arenas.is_broken());
    end_calm();
    if HEAP.arenas.is_broken() {
        let is_whole = HEAP.arenas.give_up(end() as *mut u8);
        assert!(is_whole, "the predecessor crashed in its allocator, and its heap has no memory left for a new arena");
    }
    HEAP.holes.free(&HEAP.arenas, |_, _| {});
    // SAFETY: the heap's memory up to its end, part of which the predecessor may have been returning to vm.
    unsafe { HEAP.arenas.extend(end() as *mut u8) };
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
    HEAP.reserve.begin(&HEAP.arenas, bytes);
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
            return unsafe { self.alloc_from_arenas(layout) };
        };
        match self.small.take(class) {
            Some(block) => block.as_ptr(),
            // SAFETY: as the caller promises; a layout of the class is not empty either.
            None => unsafe { self.alloc_from_arenas(small::layout_of(class)) },
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
            (None, None) => {
                // SAFETY: passed on.
                let block = unsafe { self.arenas.realloc(start, layout, bytes) };
                if !block.is_null() {
                    return block;
                }
            }
            (old, new) if old == new => return start,
            _ => {}
        }
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
