//! The heap's memory: an arena of `talc`, and the remains of abandoned ones.
//!
//! A crash in the middle of a change of talc's lists leaves them inconsistent, but allocated blocks stay valid. So an incarnation that
//! starts in this memory abandons the arena, and makes a new one above every block that was ever allocated. Blocks freed in an
//! abandoned arena are leaked.

use core::alloc::{GlobalAlloc, Layout};
use core::cell::Cell;
use core::ptr::{NonNull, null_mut};
use core::sync::atomic::{Ordering, compiler_fence};
use talc::{TalcCell, source::Manual};

/// Limit of arenas over the lifetime of a heap.
const MOST: usize = 4;
/// Alignment of a new arena, and its distance from the last block: more than talc's tags need.
const GAP: usize = 4096;

/// All arenas of a heap.
pub struct Arenas {
    talcs: [TalcCell<Manual>; MOST],
    /// Index of the arena in use.
    now: Cell<usize>,
    /// Its start.
    first: Cell<*mut u8>,
    /// Upper bound of all blocks of all arenas.
    high: Cell<*mut u8>,
    /// End of the arena in use, as talc reports it; null: no arena yet.
    end: Cell<*mut u8>,
    /// Bytes of all blocks, and the most that they have been since `forget_peak`.
    used: Cell<usize>,
    peak: Cell<usize>,
    /// Whether a change of the lists is in progress.
    is_changing: Cell<bool>,
}

impl Arenas {
    /// Returns a heap without memory.
    pub const fn new() -> Arenas {
        Arenas {
            talcs: [const { TalcCell::new(Manual) }; MOST],
            now: Cell::new(0),
            first: Cell::new(null_mut()),
            high: Cell::new(null_mut()),
            end: Cell::new(null_mut()),
            used: Cell::new(0),
            peak: Cell::new(0),
            is_changing: Cell::new(false),
        }
    }

    /// Makes these bytes the memory of the arena in use. Returns false if they are too few.
    ///
    /// # Safety
    /// Nothing else uses these bytes from now on.
    pub unsafe fn claim(&self, start: *mut u8, bytes: usize) -> bool {
        // SAFETY: passed on.
        let Some(end) = (unsafe { self.talc().claim(start, bytes) }) else { return false };
        self.first.set(start);
        self.high.set(start);
        self.end.set(end.as_ptr());
        true
    }

    /// Extends the arena in use up to `end`. Returns false if there is no arena.
    ///
    /// # Safety
    /// Nothing else uses the bytes between.
    pub unsafe fn extend(&self, end: *mut u8) -> bool {
        let Some(old_end) = NonNull::new(self.end.get()) else { return false };
        // SAFETY: passed on.
        let new_end = self.changing(|| unsafe { self.talc().extend(old_end, end) });
        self.end.set(new_end.as_ptr());
        true
    }

    /// Takes what lies above the last block out of the arena in use, until [`Arenas::extend`]. Returns where that begins.
    pub fn truncate(&self) -> *mut u8 {
        let Some(old_end) = NonNull::new(self.end.get()) else { return null_mut() };
        // SAFETY: the end of the arena in use.
        let new_end = self.changing(|| unsafe { self.talc().truncate(old_end, null_mut()) });
        self.end.set(new_end.map_or(null_mut(), NonNull::as_ptr));
        self.end.get()
    }

    /// Returns whether the predecessor crashed in the middle of a change.
    pub fn is_broken(&self) -> bool {
        self.is_changing.get()
    }

    /// Abandons the arena in use for a new one, which ends at `end`. Returns false if memory or arenas are exhausted.
    pub fn give_up(&self, end: *mut u8) -> bool {
        let start = (self.high.get() as usize + 1).next_multiple_of(GAP) + GAP;
        let Some(bytes) = (end as usize).checked_sub(start) else { return false };
        if self.now.get() + 1 == MOST {
            return false;
        }
        self.now.set(self.now.get() + 1);
        // SAFETY: no block lies there, and the abandoned arena, which owned the bytes, is not used any more.
        let is_claimed = unsafe { self.claim(start as *mut u8, bytes) };
        // Last: after a crash before this, the new arena is abandoned too.
        self.is_changing.set(!is_claimed);
        is_claimed
    }

    /// Returns how many bytes of blocks have been freed since the most were in use.
    pub fn below_peak(&self) -> usize {
        self.peak.get().saturating_sub(self.used.get())
    }

    /// Lets the peak begin at what is in use.
    pub fn forget_peak(&self) {
        self.peak.set(self.used.get());
    }

    /// # Safety
    /// That of `GlobalAlloc::alloc`.
    pub unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: passed on.
        self.changing(|| self.given(unsafe { self.talc().alloc(layout) }, layout.size()))
    }

    /// Returns whether a block is of the arena in use.
    pub fn owns(&self, start: *mut u8) -> bool {
        start >= self.first.get()
    }

    /// # Safety
    /// That of `GlobalAlloc::dealloc`.
    pub unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        if self.owns(start) {
            self.used.set(self.used.get().wrapping_sub(layout.size()));
            // SAFETY: passed on; the block is of the arena in use.
            self.changing(|| unsafe { self.talc().dealloc(start, layout) });
        }
    }

    /// # Safety
    /// That of `GlobalAlloc::realloc`.
    pub unsafe fn realloc(&self, start: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        if self.owns(start) {
            // SAFETY: passed on; the block is of the arena in use.
            let block = self.changing(|| self.given(unsafe { self.talc().realloc(start, layout, bytes) }, bytes));
            if !block.is_null() {
                self.used.set(self.used.get().wrapping_sub(layout.size()));
            }
            return block;
        }
        // SAFETY: the caller promises that `bytes` makes a layout; both blocks are as long, and different.
        unsafe {
            let block = self.alloc(Layout::from_size_align_unchecked(bytes, layout.align()));
            if !block.is_null() {
                start.copy_to_nonoverlapping(block, layout.size().min(bytes));
            }
            block
        }
    }

    fn talc(&self) -> &TalcCell<Manual> {
        &self.talcs[self.now.get()]
    }

    /// Updates the upper bound of the blocks.
    #[inline(always)]
    fn given(&self, block: *mut u8, bytes: usize) -> *mut u8 {
        if !block.is_null() {
            self.high.set(self.high.get().max(block.wrapping_add(bytes)));
            self.used.set(self.used.get().wrapping_add(bytes));
            self.peak.set(self.peak.get().max(self.used.get()));
        }
        block
    }

    /// Makes a change of the lists, marked as in progress.
    #[inline(always)]
    fn changing<R>(&self, change: impl FnOnce() -> R) -> R {
        self.is_changing.set(true);
        compiler_fence(Ordering::SeqCst);
        let result = change();
        compiler_fence(Ordering::SeqCst);
        self.is_changing.set(false);
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec;

    const LAYOUT: Layout = match Layout::from_size_align(5000, 16) {
        Ok(layout) => layout,
        Err(_) => panic!(),
    };

    #[test]
    fn blocks_outlive_the_arena_that_was_given_up() {
        let mut memory = vec![0u8; 1 << 20];
        let range = memory.as_mut_ptr_range();
        let arenas = Arenas::new();
        // SAFETY: the memory is used by nobody else; each block is freed once.
        unsafe {
            assert!(arenas.claim(range.start, memory.len()));
            let old = arenas.alloc(LAYOUT);
            old.write_bytes(7, LAYOUT.size());
            arenas.is_changing.set(true);
            assert!(arenas.is_broken() && arenas.give_up(range.end));
            assert!(!arenas.is_broken());
            let new = arenas.alloc(LAYOUT);
            assert!(new > old.add(LAYOUT.size()), "the new arena lies in the old one's blocks");
            new.write_bytes(8, LAYOUT.size());
            let longer = arenas.realloc(old, LAYOUT, 2 * LAYOUT.size());
            assert!(longer > new);
            assert!((0..LAYOUT.size()).all(|at| *old.add(at) == 7 && *longer.add(at) == 7));
            arenas.dealloc(old, LAYOUT);
            arenas.dealloc(new, LAYOUT);
            arenas.dealloc(longer, Layout::from_size_align_unchecked(2 * LAYOUT.size(), LAYOUT.align()));
            assert_eq!(arenas.alloc(LAYOUT), new, "what is freed in the arena in use is used again");
        }
    }

    #[test]
    fn an_extended_arena_has_more_room() {
        let mut memory = vec![0u8; 1 << 16];
        let range = memory.as_mut_ptr_range();
        let arenas = Arenas::new();
        // SAFETY: the memory is used by nobody else.
        unsafe {
            assert!(!arenas.extend(range.end), "there is no arena yet");
            assert!(arenas.claim(range.start, 2 * GAP));
            assert!(!arenas.alloc(LAYOUT).is_null());
            assert!(arenas.alloc(LAYOUT).is_null());
            assert!(arenas.extend(range.end));
            assert!(!arenas.alloc(LAYOUT).is_null());
        }
    }

    #[test]
    fn there_is_an_end_to_giving_up() {
        let mut memory = vec![0u8; 1 << 20];
        let range = memory.as_mut_ptr_range();
        let arenas = Arenas::new();
        // SAFETY: as above.
        assert!(unsafe { arenas.claim(range.start, memory.len()) });
        assert_eq!([(); MOST].map(|()| arenas.give_up(range.end)), [true, true, true, false]);
        let small = Arenas::new();
        // SAFETY: the memory is used by nobody else any more.
        unsafe {
            assert!(small.claim(range.start, 3 * GAP));
            small.alloc(LAYOUT);
        }
        assert!(!small.give_up(range.start.wrapping_add(3 * GAP)));
    }
}
