//! Translations that copies have found: the last few of each space, so that most copies need not walk through its page tables.
//!
//! Invariant: what is kept here is what a walk would find. So `spaces` forgets what is kept of a space wherever the CPU would have
//! to forget translations, and when the space goes.

use crate::spaces::ROOTS;
use abi::layout::PAGE_BYTES;

/// Neighbouring pages of a space that do not displace each other.
const PAGES: usize = 4;

/// A page that could be read, or written, and where it is.
#[derive(Clone, Copy)]
struct Page {
    /// Address of its last byte; 0: none is kept.
    last: u64,
    /// What makes an address in it a physical one, added with wrapping.
    distance: u64,
}

/// The translations kept of each space: for reading and for writing.
pub struct Recent([[[Page; PAGES]; 2]; ROOTS]);

impl Recent {
    /// Nothing is kept.
    pub const NEW: Self = Recent([[[Page { last: 0, distance: 0 }; PAGES]; 2]; ROOTS]);

    /// Physical address of so many bytes (at least one) in the space with this number, if they lie in one page that is kept for this access.
    #[inline(always)]
    pub fn find<const WRITE: bool>(&self, space: usize, address: u64, bytes: u64) -> Option<u64> {
        let page = &self.0[space][WRITE as usize][(address / PAGE_BYTES) as usize % PAGES];
        let is_kept = page.last == address | (PAGE_BYTES - 1) && bytes.wrapping_sub(1) <= page.last - address;
        is_kept.then_some(address.wrapping_add(page.distance))
    }

    /// Keeps the page that has `address` at this physical address.
    pub fn keep<const WRITE: bool>(&mut self, space: usize, address: u64, physical: u64) {
        let page = Page { last: address | (PAGE_BYTES - 1), distance: physical.wrapping_sub(address) };
        self.0[space][WRITE as usize][(address / PAGE_BYTES) as usize % PAGES] = page;
    }

    /// Forgets what is kept of the space with this number.
    pub fn forget(&mut self, space: usize) {
        self.0[space].as_flattened_mut().iter_mut().for_each(|page| page.last = 0);
    }
}
