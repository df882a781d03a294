//! The present pages of a space or an object: a sparse map from page number to frame.
//!
//! In a space a page is *owned* (its frame counts the space as user) or *borrowed* (the kernel maps the frame of an object
//! there, which lives as long as the region). In an object all pages are owned. Pages come in leaves of 64 with one bit
//! each, so that fork copies and exit walks them quickly; the leaves are a sorted list, because mostly the leaf found last
//! is wanted again, and new ones come at its end.
//!
//! The kernel's page tables are a cache of this: an owned page may be unmapped there at any time, the next fault maps it.

use crate::memory::frames::{Frame, Run};
use alloc::{boxed::Box, vec::Vec};
use core::cell::Cell;

/// Pages of a leaf.
pub const LEAF_PAGES: u64 = 64;

/// What is at a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Page {
    /// Nothing.
    Absent,
    /// A frame of the object that backs the region.
    Borrowed,
    /// A frame of this space's own.
    Owned(Frame),
}

#[derive(Clone, Debug)]
struct Leaf {
    /// Number of its first page divided by `LEAF_PAGES`.
    key: u64,
    /// Owned and borrowed pages.
    present: u64,
    owned: u64,
    frames: [Frame; LEAF_PAGES as usize],
}

/// The present pages.
#[derive(Clone, Debug, Default)]
pub struct Pages {
    /// Ascending by key, none empty.
    #[expect(clippy::vec_box, reason = "a leaf inserted in the middle moves pointers, not whole leaves")]
    leaves: Vec<Box<Leaf>>,
    /// Where the last leaf was found.
    last: Cell<usize>,
    present: u64,
}

/// Estimate of the heap that one leaf takes.
pub const LEAF_HEAP_BYTES: usize = size_of::<Leaf>() + 64;

fn split(page: u64) -> (u64, u32) {
    (page / LEAF_PAGES, (page % LEAF_PAGES) as u32)
}

/// The bits of leaf `key` for pages within `first..end`.
fn mask(key: u64, first: u64, end: u64) -> u64 {
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
    fn empty(key: u64) -> Box<Leaf> {
        Box::new(Leaf { key, present: 0, owned: 0, frames: [Frame(0); LEAF_PAGES as usize] })
    }

    fn page(&self, bit: u32) -> u64 {
        self.key * LEAF_PAGES + u64::from(bit)
    }

    /// The owned frames under `mask` with their pages.
    fn owned(&self, mask: u64) -> impl Iterator<Item = (u64, Frame)> {
        bits(self.owned & mask).map(|bit| (self.page(bit), self.frames[bit as usize]))
    }
}

impl Pages {
    /// Index of the leaf, or where it would be.
    #[inline]
    fn find(&self, key: u64) -> Result<usize, usize> {
        let last = self.last.get();
        if self.leaves.get(last).is_some_and(|leaf| leaf.key == key) {
            return Ok(last);
        }
        let found = self.leaves.binary_search_by_key(&key, |leaf| leaf.key);
        if let Ok(index) = found {
            self.last.set(index);
        }
        found
    }

    #[inline]
    fn leaf(&self, key: u64) -> Option<&Leaf> {
        self.find(key).ok().map(|index| &*self.leaves[index])
    }

    #[expect(clippy::disallowed_methods, reason = "`ensure_heap` has made room")]
    fn make_leaf(&mut self, key: u64) -> &mut Leaf {
        let index = self.find(key).unwrap_or_else(|index| {
            self.leaves.insert(index, Leaf::empty(key));
            self.last.set(index);
            index
        });
        &mut self.leaves[index]
    }

    /// The leaves that hold pages of `first..end`, with the bits of those.
    fn within(&self, first: u64, end: u64) -> impl Iterator<Item = (&Leaf, u64)> {
        let start = self.find(first / LEAF_PAGES).unwrap_or_else(|index| index);
        let leaves = self.leaves[start..].iter().map(move |leaf| (&**leaf, mask(leaf.key, first, end)));
        leaves.take_while(move |(leaf, _)| leaf.key * LEAF_PAGES < end)
    }

    /// What is at `page`.
    pub fn get(&self, page: u64) -> Page {
        let (key, bit) = split(page);
        match self.leaf(key) {
            Some(leaf) if leaf.owned >> bit & 1 != 0 => Page::Owned(leaf.frames[bit as usize]),
            Some(leaf) if leaf.present >> bit & 1 != 0 => Page::Borrowed,
            _ => Page::Absent,
        }
    }

    /// The frame owned at `page`.
    pub fn frame(&self, page: u64) -> Option<Frame> {
        match self.get(page) {
            Page::Owned(frame) => Some(frame),
            _ => None,
        }
    }

    /// After a death: recounts. Returns false if the list of leaves was being changed.
    pub fn is_whole(&mut self) -> bool {
        self.last.set(0);
        self.present = self.leaves.iter().map(|leaf| u64::from(leaf.present.count_ones())).sum();
        self.leaves.is_sorted_by(|one, next| one.key < next.key)
    }

    /// What a death in the middle of a change may leave behind.
    #[cfg(test)]
    pub fn break_order(&mut self) {
        self.leaves.swap(0, 1);
    }

    /// Number of present pages.
    pub fn count(&self) -> u64 {
        self.present
    }

    /// Leaves in use.
    pub fn leaves(&self) -> usize {
        self.leaves.len()
    }

    /// Heap that the list of leaves takes when it must grow next.
    pub fn growth_bytes(&self) -> usize {
        self.leaves.capacity() * 2 * size_of::<Box<Leaf>>()
    }

    /// True when the next leaf makes the list grow.
    pub fn must_grow(&self) -> bool {
        self.leaves.len() == self.leaves.capacity()
    }

    /// Puts an owned frame at `page`, in place of the old one, which the caller has to release.
    pub fn own(&mut self, page: u64, frame: Frame) {
        self.own_run(page, Run { first: frame, frames: 1 });
    }

    /// Puts owned frames at the pages from `page` on, in place of the old one, which the caller has to release.
    pub fn own_run(&mut self, page: u64, run: Run) {
        let end = page + run.frames;
        for key in page / LEAF_PAGES..=(end - 1) / LEAF_PAGES {
            let leaf = self.make_leaf(key);
            let mask = mask(key, page, end);
            for bit in mask.trailing_zeros()..LEAF_PAGES as u32 - mask.leading_zeros() {
                leaf.frames[bit as usize] = run.first.plus(key * LEAF_PAGES + u64::from(bit) - page);
            }
            let new = (mask & !leaf.present).count_ones();
            leaf.present |= mask;
            leaf.owned |= mask;
            self.present += u64::from(new);
        }
    }

    /// Marks `count` pages from `page` on, which are not owned, as borrowed. All are in one leaf.
    pub fn borrow(&mut self, page: u64, count: u64) {
        let (key, _) = split(page);
        let leaf = self.make_leaf(key);
        let mask = mask(key, page, page + count);
        let new = (mask & !leaf.present).count_ones();
        leaf.present |= mask;
        self.present += u64::from(new);
    }

    /// Empties the pages of `first..end` and hands each frame that was owned, with its page, to `each`.
    pub fn remove(&mut self, first: u64, end: u64, mut each: impl FnMut(u64, Frame)) {
        let start = self.find(first / LEAF_PAGES).unwrap_or_else(|index| index);
        let mut emptied = start..start;
        for (index, leaf) in self.leaves.iter_mut().enumerate().skip(start) {
            let mask = mask(leaf.key, first, end);
            if mask == 0 {
                break;
            }
            leaf.owned(mask).for_each(|(page, frame)| each(page, frame));
            self.present -= u64::from((leaf.present & mask).count_ones());
            leaf.present &= !mask;
            leaf.owned &= !mask;
            if leaf.present == 0 {
                emptied = if emptied.is_empty() { index } else { emptied.start }..index + 1;
            }
        }
        // Between the first and the last of the range no leaf keeps a page, so the emptied ones are neighbours.
        self.leaves.drain(emptied);
    }

    /// All owned frames with their pages, ascending.
    pub fn owned(&self) -> impl Iterator<Item = (u64, Frame)> + '_ {
        self.leaves.iter().flat_map(|leaf| leaf.owned(u64::MAX))
    }

    /// Pages present within `first..end`.
    pub fn count_in(&self, first: u64, end: u64) -> u64 {
        self.within(first, end).map(|(leaf, mask)| u64::from((leaf.present & mask).count_ones())).sum()
    }

    /// The first stretch within `first..end` that holds all present pages up to a gap of at least a leaf: kernel calls over
    /// stretches walk few absent pages.
    pub fn stretch(&self, first: u64, end: u64) -> Option<(u64, u64)> {
        let mut found: Option<(u64, u64, u64)> = None;
        for (leaf, mask) in self.within(first, end) {
            let present = leaf.present & mask;
            if found.is_some_and(|(_, _, last)| leaf.key > last + 1) {
                break;
            }
            if present != 0 {
                let start = found.map_or(leaf.page(present.trailing_zeros()), |(start, _, _)| start);
                found = Some((start, leaf.page(LEAF_PAGES as u32 - present.leading_zeros()), leaf.key));
            }
        }
        found.map(|(start, stop, _)| (start, stop))
    }

    /// The first page of `first..end` that is not there, and the number of absent pages from it on.
    pub fn absent(&self, first: u64, end: u64) -> Option<(u64, u64)> {
        let start = self.scan(first, end, |leaf| !leaf.map_or(0, |leaf| leaf.present))?;
        let stop = self.scan(start, end, |leaf| leaf.map_or(0, |leaf| leaf.present)).unwrap_or(end);
        Some((start, stop - start))
    }

    /// The first page of `first..end` whose bit is set in what `word` makes of its leaf.
    fn scan(&self, first: u64, end: u64, word: impl Fn(Option<&Leaf>) -> u64) -> Option<u64> {
        (first / LEAF_PAGES..end.div_ceil(LEAF_PAGES)).find_map(|key| {
            let found = word(self.leaf(key)) & mask(key, first, end);
            (found != 0).then(|| key * LEAF_PAGES + u64::from(found.trailing_zeros()))
        })
    }

    /// Absent pages from `page` on, at most `most`, which is not 0, and not beyond the leaf.
    pub fn absent_from(&self, page: u64, most: u64) -> u64 {
        let (key, bit) = split(page);
        let present = self.leaf(key).map_or(0, |leaf| leaf.present >> bit);
        most.min(LEAF_PAGES - u64::from(bit)).min(u64::from(present.trailing_zeros()))
    }

    /// The present pages of the leaf that begins at `first`, as bits.
    pub fn window(&self, first: u64) -> u64 {
        self.leaf(first / LEAF_PAGES).map_or(0, |leaf| leaf.present)
    }

    /// The frames of as many pages as a leaf has, from any page on, and bits that say which are present. All pages are owned.
    pub fn frames(&self, first: u64) -> ([Frame; LEAF_PAGES as usize], u64) {
        let (key, bit) = split(first);
        let here = LEAF_PAGES as usize - bit as usize;
        let mut frames = [Frame(0); LEAF_PAGES as usize];
        let mut present = 0;
        if let Some(leaf) = self.leaf(key) {
            frames[..here].copy_from_slice(&leaf.frames[bit as usize..]);
            present = leaf.present >> bit;
        }
        if bit > 0
            && let Some(leaf) = self.leaf(key + 1)
        {
            frames[here..].copy_from_slice(&leaf.frames[..bit as usize]);
            present |= leaf.present << here;
        }
        (frames, present)
    }

    /// The largest stretch of owned pages around `page`, within its leaf and `first..end`, for which `fits` holds.
    pub fn owned_around(&self, page: u64, first: u64, end: u64, fits: impl Fn(Frame) -> bool) -> (u64, u64) {
        let (key, _) = split(page);
        let Some(leaf) = self.leaf(key) else { return (page, page + 1) };
        let allowed = leaf.owned & mask(key, first, end);
        let good = |page: &u64| {
            let bit = (page % LEAF_PAGES) as usize;
            page / LEAF_PAGES == key && allowed >> bit & 1 != 0 && fits(leaf.frames[bit])
        };
        let start = (0..page).rev().take_while(good).last().unwrap_or(page);
        let stop = (page + 1..).take_while(good).last().unwrap_or(page) + 1;
        (start, stop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::{vec, vec::Vec};

    fn pages(owned: &[u64]) -> Pages {
        let mut pages = Pages::default();
        owned.iter().for_each(|&page| pages.own(page, Frame(page as u32)));
        pages
    }

    #[test]
    fn pages_are_where_they_were_put() {
        let mut pages = pages(&[5, 64, 1000]);
        pages.borrow(6, 3);
        assert_eq!(pages.get(5), Page::Owned(Frame(5)));
        assert_eq!((pages.get(8), pages.get(9)), (Page::Borrowed, Page::Absent));
        assert_eq!((pages.count(), pages.count_in(6, 65), pages.count_in(0, 5)), (6, 4, 0));
        pages.own(7, Frame(70));
        assert_eq!((pages.count(), pages.frame(7), pages.frame(8)), (6, Some(Frame(70)), None));
    }

    #[test]
    fn removing_hands_out_the_owned_frames_within() {
        let mut pages = pages(&[5, 63, 64, 1000]);
        pages.borrow(70, 2);
        let mut removed = Vec::new();
        pages.remove(6, 1000, |page, frame| removed.push((page, frame)));
        assert_eq!(removed, vec![(63, Frame(63)), (64, Frame(64))]);
        assert_eq!((pages.count(), pages.leaves()), (2, 2));
    }

    #[test]
    fn stretches_end_at_wide_gaps() {
        let pages = pages(&[5, 70, 300, 301]);
        assert_eq!(pages.stretch(0, 1000), Some((5, 71)));
        assert_eq!(pages.stretch(71, 1000), Some((300, 302)));
        assert_eq!(pages.stretch(71, 301), Some((300, 301)));
        assert_eq!(pages.stretch(302, 1000), None);
        assert_eq!(pages.absent(5, 72), Some((6, 64)));
        assert_eq!(pages.absent(300, 302), None);
    }

    #[test]
    fn frames_are_shown_across_leaves() {
        let pages = pages(&[50, 63, 64, 80, 113, 114]);
        assert_eq!(pages.window(64), 1 | 1 << 16 | 1 << 49 | 1 << 50);
        let (frames, present) = pages.frames(50);
        assert_eq!(present, 1 | 1 << 13 | 1 << 14 | 1 << 30 | 1 << 63);
        assert_eq!([0, 13, 14, 30, 63].map(|at| frames[at].0), [50, 63, 64, 80, 113]);
        assert_eq!((pages.frames(64).1, pages.frames(1000).1), (pages.window(64), 0));
    }

    #[test]
    fn stretches_of_fitting_pages_stay_in_leaf_and_bounds() {
        let pages = pages(&[62, 63, 64, 65, 66, 67, 69]);
        assert_eq!(pages.owned_around(65, 0, 1000, |_| true), (64, 68));
        assert_eq!(pages.owned_around(65, 65, 67, |_| true), (65, 67));
        assert_eq!(pages.owned_around(65, 0, 1000, |frame| frame != Frame(66)), (64, 66));
    }
}
