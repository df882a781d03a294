//! Free lists of small blocks, one for each size class: most allocations of a service are small, soon freed, and repeated with the
//! same size at the next request.
//!
//! A block stays in its class until the heap is exhausted: then [`Small::shorten`] gives back what is free. The first word of a
//! free block is the address of the next. A list changes by one store: a crash leaves it consistent, and leaks at most one block.

use core::alloc::Layout;
use core::cell::Cell;
use core::ptr::{NonNull, null_mut};
use core::sync::atomic::{Ordering, compiler_fence};

/// Sizes are multiples of this.
const STEP: usize = 32;
/// Blocks begin at multiples of this.
const ALIGN: usize = 16;
const CLASSES: usize = 48;

/// Returns the class of a block; `None`: not small.
#[inline(always)]
pub fn class_of(layout: Layout) -> Option<usize> {
    let class = layout.size().wrapping_sub(1) / STEP;
    (class < CLASSES && layout.align() <= ALIGN).then_some(class)
}

/// Returns the layout with which blocks of a class are allocated.
#[inline(always)]
pub fn layout_of(class: usize) -> Layout {
    // SAFETY: a power of two, and a size far below the largest.
    unsafe { Layout::from_size_align_unchecked((class + 1) * STEP, ALIGN) }
}

/// The free lists.
pub struct Small {
    first: [Cell<*mut u8>; CLASSES],
}

impl Small {
    /// Returns empty lists.
    pub const fn new() -> Small {
        Small { first: [const { Cell::new(null_mut()) }; CLASSES] }
    }

    /// Removes a free block of this class from its list.
    #[inline(always)]
    pub fn take(&self, class: usize) -> Option<NonNull<u8>> {
        let list = &self.first[class];
        let block = NonNull::new(list.get())?;
        // SAFETY: a block in a list is free, aligned and at least `STEP` bytes long, and `give` has written its first word.
        list.set(unsafe { block.cast::<*mut u8>().read() });
        Some(block)
    }

    /// Puts a block into the list of its class.
    ///
    /// # Safety
    /// It has been allocated as `layout_of(class)`, and nobody uses it any more.
    #[inline(always)]
    pub unsafe fn give(&self, class: usize, block: *mut u8) {
        let list = &self.first[class];
        // SAFETY: the block is ours now, aligned and at least `STEP` bytes long.
        unsafe { block.cast::<*mut u8>().write(list.get()) };
        compiler_fence(Ordering::SeqCst);
        list.set(block);
    }

    /// Offers all blocks of each list but the first `kept` to `free`, with their layout. Those that it takes, by returning true, leave
    /// the list.
    pub fn shorten(&self, kept: usize, mut free: impl FnMut(NonNull<u8>, Layout) -> bool) {
        for class in 0..CLASSES {
            let mut link: *const Cell<*mut u8> = &self.first[class];
            let mut passed = 0;
            // SAFETY: `link` is the head of the list, or the first word of a free block that is in the list, which is the address of the
            // next one; nobody else uses it.
            while let Some(block) = NonNull::new(unsafe { (*link).get() }) {
                let next: *const Cell<*mut u8> = block.as_ptr().cast();
                if passed >= kept {
                    // SAFETY: as above; `next` is a link too.
                    unsafe { (*link).set((*next).get()) };
                    compiler_fence(Ordering::SeqCst);
                    if free(block, layout_of(class)) {
                        continue;
                    }
                    // SAFETY: as above; the block is still ours.
                    unsafe { (*link).set(block.as_ptr()) };
                }
                passed += 1;
                link = next;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_share_a_class_up_to_its_end() {
        let class = |bytes, align| class_of(Layout::from_size_align(bytes, align).unwrap());
        assert_eq!([class(1, 1), class(32, 8), class(33, 8), class(1536, 16)], [Some(0), Some(0), Some(1), Some(47)]);
        assert_eq!([class(1537, 8), class(64, 32), class(0, 1)], [None; 3]);
        assert_eq!(layout_of(47), Layout::from_size_align(1536, 16).unwrap());
    }

    #[test]
    fn a_list_is_shortened_to_the_blocks_given_last() {
        let mut blocks = [[0u64; 4]; 5];
        let small = Small::new();
        let addresses = blocks.each_mut().map(|block| block.as_mut_ptr().cast::<u8>());
        small.shorten(2, |_, _| panic!("the lists are empty"));
        // SAFETY: blocks of the class, used by nobody else.
        addresses.iter().for_each(|&block| unsafe { small.give(0, block) });
        let mut freed = std::vec::Vec::new();
        let shorten = |freed: &mut std::vec::Vec<*mut u8>| {
            small.shorten(2, |block, layout| {
                assert_eq!(layout, layout_of(0));
                freed.push(block.as_ptr());
                block.as_ptr() != addresses[1]
            });
        };
        shorten(&mut freed);
        assert_eq!(freed, [addresses[2], addresses[1], addresses[0]]);
        let taken = [(); 4].map(|()| small.take(0).map(NonNull::as_ptr));
        assert_eq!(taken, [Some(addresses[4]), Some(addresses[3]), Some(addresses[1]), None]);
    }

    #[test]
    fn draining_leaves_what_nobody_takes() {
        let mut blocks = [[0u64; 8]; 3];
        let small = Small::new();
        let addresses = blocks.each_mut().map(|block| block.as_mut_ptr().cast::<u8>());
        // SAFETY: blocks as large as their classes, used by nobody else.
        addresses.iter().zip([0, 1, 1]).for_each(|(&block, class)| unsafe { small.give(class, block) });
        let mut drained = std::vec::Vec::new();
        small.shorten(0, |block, layout| {
            drained.push((block.as_ptr(), layout.size()));
            block.as_ptr() != addresses[1]
        });
        assert_eq!(drained, [(addresses[0], 32), (addresses[2], 64), (addresses[1], 64)]);
        assert_eq!((small.take(0), small.take(1)), (None, NonNull::new(addresses[1])));
        assert_eq!(small.take(1), None);
    }

    #[test]
    fn the_block_given_last_is_taken_first_and_no_other_twice() {
        let mut blocks = [[0u64; 4]; 3];
        let small = Small::new();
        assert_eq!(small.take(0), None);
        let addresses = blocks.each_mut().map(|block| block.as_mut_ptr().cast::<u8>());
        // SAFETY: blocks of the class, used by nobody else.
        addresses.iter().for_each(|&block| unsafe { small.give(0, block) });
        assert_eq!(small.take(1), None);
        let taken = [(); 4].map(|()| small.take(0).map(NonNull::as_ptr));
        assert_eq!(taken, [Some(addresses[2]), Some(addresses[1]), Some(addresses[0]), None]);
    }
}
