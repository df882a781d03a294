//! A leaf of a list of `pages`: 64 neighbours, with one bit each, and their frames.
//!
//! Lists share leaves after a fork, and a leaf counts once as the user of its frames. Who changes a shared leaf gets a copy of it first, which is
//! one more user of each of the frames.

use crate::memory::frames::{Frame, Frames};
use alloc::rc::Rc;
use core::cell::Cell;

/// Pages of a leaf.
pub const LEAF_PAGES: u64 = 64;

/// A leaf.
#[derive(Clone, Debug)]
pub struct Leaf {
    /// How many lists it is in. A death of vm may leave more references than these, never fewer (`Pages::recount`).
    lists: Cell<u32>,
    /// The kernel maps none of its owned pages for writing: a fork has seen to that, and no page was written since.
    pub is_sealed: Cell<bool>,
    /// Number of its first page divided by `LEAF_PAGES`.
    pub key: u64,
    /// Owned and borrowed pages.
    pub present: u64,
    /// Owned pages.
    pub owned: u64,
    /// The frames of owned pages.
    pub frames: [Frame; LEAF_PAGES as usize],
}

/// Estimate of the heap that one leaf takes.
pub const LEAF_HEAP_BYTES: usize = size_of::<Leaf>() + 64;

/// The leaf of a page, and its bit there.
pub fn split(page: u64) -> (u64, u32) {
    (page / LEAF_PAGES, (page % LEAF_PAGES) as u32)
}

/// The bits of leaf `key` for pages within `first..end`.
pub fn mask(key: u64, first: u64, end: u64) -> u64 {
    let start = key * LEAF_PAGES;
    let below = first.saturating_sub(start).min(LEAF_PAGES);
    let above = (start + LEAF_PAGES).saturating_sub(end).min(LEAF_PAGES);
    if below + above >= LEAF_PAGES { 0 } else { u64::MAX << below & u64::MAX >> above }
}

/// The numbers of the bits that are set.
fn bits(mut word: u64) -> impl Iterator<Item = u32> {
    core::iter::from_fn(move || {
        let bit = (word != 0).then(|| word.trailing_zeros())?;
        word &= word - 1;
        Some(bit)
    })
}

impl Leaf {
    /// No pages, for one list.
    pub fn empty(key: u64) -> Leaf {
        Leaf {
            lists: Cell::new(1),
            is_sealed: Cell::new(false),
            key,
            present: 0,
            owned: 0,
            frames: [Frame(0); LEAF_PAGES as usize],
        }
    }

    /// It is in more than one list.
    pub fn is_shared(&self) -> bool {
        self.lists.get() > 1
    }

    /// In how many lists it is.
    #[cfg(test)]
    pub fn lists(&self) -> u32 {
        self.lists.get()
    }

    /// It is in one list more. Returns whether that is the first.
    pub fn enter(&self) -> bool {
        self.lists.replace(self.lists.get() + 1) == 0
    }

    /// It is in one list less.
    pub fn leave(&self) {
        self.lists.set(self.lists.get() - 1);
    }

    /// It is in no list, until each has entered it again.
    pub fn begin_recount(&self) {
        self.lists.set(0);
    }

    /// The leaf for one list alone: a copy if others share it.
    pub fn unshared<'a>(leaf: &'a mut Rc<Leaf>, frames: &mut Frames) -> &'a mut Leaf {
        if leaf.is_shared() {
            let copy = Rc::new(Leaf { lists: Cell::new(1), ..Leaf::clone(leaf) });
            copy.owned(u64::MAX).for_each(|(_, frame)| frames.share(frame));
            leaf.leave();
            *leaf = copy;
        }
        // It copies once more only if a death has left a reference that is in no list.
        Rc::make_mut(leaf)
    }

    /// Takes pages out of a leaf. Returns whether none is left.
    pub fn clear(&mut self, mask: u64) -> bool {
        self.present &= !mask;
        self.owned &= !mask;
        self.present == 0
    }

    /// The page of a bit.
    pub fn page(&self, bit: u32) -> u64 {
        self.key * LEAF_PAGES + u64::from(bit)
    }

    /// The owned frames under `mask` with their pages.
    pub fn owned(&self, mask: u64) -> impl Iterator<Item = (u64, Frame)> {
        bits(self.owned & mask).map(|bit| (self.page(bit), self.frames[bit as usize]))
    }
}
