//! The reserve of a heap: one block that is set aside while there is other memory (see `heap`).

use crate::arenas::Arenas;
use core::alloc::Layout;
use core::cell::Cell;
use core::ptr::null_mut;

/// Limit of a reserve: more than the small allocations of one call, together.
const BYTES_MAX: usize = 64 << 10;
/// The reserve is at most this part of a heap.
const PART: usize = 8;
const ALIGN: usize = 16;

/// The block and its state.
pub struct Reserve {
    /// Null: it is in use.
    block: Cell<*mut u8>,
    /// 0: the heap has none.
    bytes: Cell<usize>,
    /// Whether an allocation that may fail is in progress.
    is_off: Cell<bool>,
}

impl Reserve {
    /// Returns the reserve of a heap without memory.
    pub const fn new() -> Reserve {
        Reserve { block: Cell::new(null_mut()), bytes: Cell::new(0), is_off: Cell::new(false) }
    }

    /// Sets a part of a heap of `heap_bytes` aside.
    pub fn begin(&self, arenas: &Arenas, heap_bytes: usize) {
        self.bytes.set((heap_bytes / PART).min(BYTES_MAX));
        self.refill(arenas);
    }

    /// Forgets what a predecessor was doing. If it has `lost` its arena, the block is lost too.
    pub fn take_over(&self, lost: bool) {
        self.is_off.set(false);
        if lost {
            self.block.set(null_mut());
        }
    }

    /// Returns whether nothing has to be set aside.
    #[inline]
    pub fn is_full(&self) -> bool {
        !self.block.get().is_null() || self.bytes.get() == 0
    }

    /// Sets the block aside again; returns false if memory is exhausted.
    pub fn refill(&self, arenas: &Arenas) -> bool {
        if !self.is_full() {
            // SAFETY: the reserve is not empty.
            self.block.set(unsafe { arenas.alloc(self.layout()) });
        }
        self.is_full()
    }

    /// Puts the block into the arena for the allocation in progress. Returns false if there is none, or the allocation may fail.
    pub fn release(&self, arenas: &Arenas) -> bool {
        if self.is_off.get() {
            return false;
        }
        let block = self.block.replace(null_mut());
        if block.is_null() {
            return false;
        }
        // SAFETY: `refill` has allocated it with this layout, and it is given up once.
        unsafe { arenas.dealloc(block, self.layout()) };
        true
    }

    /// Runs `attempt`, whose allocations may fail.
    pub fn spared<R>(&self, attempt: impl FnOnce() -> R) -> R {
        let was_off = self.is_off.replace(true);
        let result = attempt();
        self.is_off.set(was_off);
        result
    }

    /// Returns whether the allocation in progress may fail.
    pub fn is_spared(&self) -> bool {
        self.is_off.get()
    }

    fn layout(&self) -> Layout {
        // SAFETY: a power of two, and a size far below the largest.
        unsafe { Layout::from_size_align_unchecked(self.bytes.get(), ALIGN) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec;

    #[test]
    fn the_reserve_serves_only_what_cannot_fail_and_is_refilled() {
        let mut memory = vec![0u8; 1 << 20];
        let (arenas, reserve) = (Arenas::new(), Reserve::new());
        let page = Layout::from_size_align(4096, 16).unwrap();
        // SAFETY: the memory is used by nobody else; each block is freed once.
        unsafe {
            assert!(arenas.claim(memory.as_mut_ptr(), memory.len()));
            reserve.begin(&arenas, memory.len());
            let mut blocks = vec![];
            let fill = |blocks: &mut vec::Vec<*mut u8>| {
                while let Some(block) = core::ptr::NonNull::new(arenas.alloc(page)) {
                    blocks.push(block.as_ptr());
                }
            };
            fill(&mut blocks);
            let ordinary = blocks.len();
            assert!(
                !reserve.spared(|| reserve.release(&arenas)),
                "an allocation that may fail leaves the reserve alone"
            );
            assert!(reserve.release(&arenas) && !reserve.is_full());
            assert!(!reserve.release(&arenas), "there is one reserve");
            fill(&mut blocks);
            assert!(blocks.len() >= ordinary + BYTES_MAX / page.size() - 1);
            assert!(!reserve.refill(&arenas), "memory is exhausted");
            blocks.iter().for_each(|&block| arenas.dealloc(block, page));
            assert!(reserve.refill(&arenas) && reserve.is_full());
        }
    }

    #[test]
    fn a_successor_is_not_in_the_middle_of_an_allocation() {
        let mut memory = vec![0u8; 1 << 20];
        let (arenas, reserve) = (Arenas::new(), Reserve::new());
        // SAFETY: the memory is used by nobody else.
        assert!(unsafe { arenas.claim(memory.as_mut_ptr(), memory.len()) });
        reserve.begin(&arenas, memory.len());
        reserve.spared(|| {
            assert!(reserve.is_spared());
            reserve.take_over(false);
            assert!(!reserve.is_spared() && reserve.is_full());
        });
        reserve.take_over(true);
        assert!(!reserve.is_full(), "the block is lost with the arena");
        assert!(reserve.refill(&arenas));
    }

    #[test]
    fn a_heap_without_memory_needs_no_reserve() {
        let reserve = Reserve::new();
        reserve.begin(&Arenas::new(), 0);
        assert!(reserve.is_full());
    }
}
