//! Where the parts of a program lie: at fixed addresses, or at random ones, so that whoever finds a bug in a program does not know the
//! addresses that he needs to make use of it. As many bits are random as in Linux.

use crate::space::region::{MAX_STACK_BYTES, MMAP_TOP};
use abi::layout::{PAGE_BYTES, USER_END, VDSO_BYTES};
use sys::random::mix;

/// Random bits of each part, in pages.
const STACK_BITS: u32 = 22;
const MMAP_BITS: u32 = 28;
const BASE_BITS: u32 = 28;
const HEAP_BITS: u32 = 13;

/// The addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placement {
    /// End of the stack. The vDSO is behind it.
    pub stack_end: u64,
    /// mmap takes addresses downwards from here.
    pub mmap_top: u64,
    /// Where position-independent programs are put.
    pub base: u64,
    /// Bytes between the end of a program and its heap.
    pub heap_gap: u64,
}

impl Placement {
    /// The fixed addresses.
    pub const FIXED: Placement =
        Placement { stack_end: USER_END - VDSO_BYTES, mmap_top: MMAP_TOP, base: 0x5555_5555_4000, heap_gap: 0 };

    /// Chooses addresses by a random number; 0: the fixed ones.
    pub fn of(seed: u64) -> Placement {
        if seed == 0 {
            return Placement::FIXED;
        }
        let mut state = seed;
        let mut distance = |bits| {
            state = mix(state, u64::from(bits));
            state >> (u64::BITS - bits) << PAGE_BYTES.trailing_zeros()
        };
        let stack_end = Placement::FIXED.stack_end - distance(STACK_BITS);
        Placement {
            stack_end,
            mmap_top: stack_end - MAX_STACK_BYTES - distance(MMAP_BITS),
            base: Placement::FIXED.base + distance(BASE_BITS),
            heap_gap: distance(HEAP_BITS),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn without_a_seed_the_addresses_are_fixed() {
        assert_eq!(Placement::of(0), Placement::FIXED);
    }

    #[test]
    fn random_places_differ_in_every_part_and_keep_clear_of_each_other() {
        let places: Vec<Placement> = (1..=1000).map(Placement::of).collect();
        let different = |part: fn(&Placement) -> u64| places.iter().map(part).collect::<BTreeSet<_>>().len();
        assert!(different(|p| p.stack_end) > 990 && different(|p| p.mmap_top) > 990 && different(|p| p.base) > 990);
        assert!(different(|p| p.heap_gap) > 900);
        for place in &places {
            assert!(place.stack_end + VDSO_BYTES <= USER_END && place.mmap_top + MAX_STACK_BYTES <= place.stack_end);
            assert!(place.mmap_top - place.base > 1 << 40, "{place:x?}");
            let all = place.stack_end | place.mmap_top | place.base | place.heap_gap;
            assert_eq!(all % PAGE_BYTES, 0);
        }
    }

    #[test]
    fn no_part_lies_further_off_than_in_linux() {
        let fixed = Placement::FIXED;
        for place in (1..=50_000).map(Placement::of) {
            assert!(place.stack_end <= fixed.stack_end && fixed.stack_end - place.stack_end < 1 << 34);
            let below_stack = place.stack_end.checked_sub(place.mmap_top + MAX_STACK_BYTES);
            assert!(below_stack.is_some_and(|bytes| bytes < 1 << 40), "{place:x?}");
            assert!(place.base >= fixed.base && place.base - fixed.base < 1 << 40);
            assert!(place.heap_gap < 1 << 25);
        }
    }
}
