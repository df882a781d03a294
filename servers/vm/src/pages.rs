//! The pages of a space or an object that are there: a sparse map from page number to frame.
//!
//! In a space a page is *owned* (its frame counts the space as user) or *borrowed* (the kernel maps the frame of an object
//! there, which lives as long as the region). In an object all pages are owned. Pages come in leaves of 64 with one bit
//! each, so that fork copies and exit walks them quickly.
//!
//! The kernel's page tables are a cache of this: an owned page may be unmapped there at any time, the next fault maps it.

use crate::frames::Frame;
use alloc::{boxed::Box, collections::BTreeMap};

/// Pages of a leaf.
pub const LEAF_PAGES: u64 = 64;

/// Pages of a window: what a fault looks at around the page that was touched.
pub const WINDOW: usize = u32::BITS as usize;

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
    /// Owned and borrowed pages.
    present: u64,
    owned: u64,
    frames: [Frame; LEAF_PAGES as usize],
}

/// The pages that are there.
#[derive(Clone, Debug, Default)]
pub struct Pages {
    leaves: BTreeMap<u64, Box<Leaf>>,
    present: u64,
}

/// Estimate of the heap that one leaf takes.
pub const LEAF_HEAP_BYTES: usize = size_of::<Leaf>() + 96;

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

impl Pages {
    /// What is at `page`.
    pub fn get(&self, page: u64) -> Page {
        let (key, bit) = split(page);
        match self.leaves.get(&key) {
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

    /// Pages that are there.
    pub fn count(&self) -> u64 {
        self.present
    }

    /// Leaves in use.
    pub fn leaves(&self) -> usize {
        self.leaves.len()
    }

    /// Puts an owned frame at `page`, in place of whatever is there; the caller sees to that.
    pub fn own(&mut self, page: u64, frame: Frame) {
        let (key, bit) = split(page);
        let leaf = self.leaves.entry(key).or_insert_with(Leaf::empty);
        self.present += u64::from(leaf.present >> bit & 1 == 0);
        leaf.present |= 1 << bit;
        leaf.owned |= 1 << bit;
        leaf.frames[bit as usize] = frame;
    }

    /// Marks `count` pages from `page` on, which are not owned, as borrowed. All are in one leaf.
    pub fn borrow(&mut self, page: u64, count: u64) {
        let (key, _) = split(page);
        let leaf = self.leaves.entry(key).or_insert_with(Leaf::empty);
        let before = leaf.present.count_ones();
        leaf.present |= mask(key, page, page + count);
        self.present += u64::from(leaf.present.count_ones() - before);
    }

    /// Empties the pages of `first..end` and hands each frame that was owned, with its page, to `each`.
    pub fn remove(&mut self, first: u64, end: u64, mut each: impl FnMut(u64, Frame)) {
        let mut next = first / LEAF_PAGES;
        while let Some((&key, leaf)) = self.leaves.range_mut(next..).next() {
            let mask = mask(key, first, end);
            if mask == 0 {
                break;
            }
            bits(leaf.owned & mask).for_each(|bit| each(key * LEAF_PAGES + u64::from(bit), leaf.frames[bit as usize]));
            self.present -= u64::from((leaf.present & mask).count_ones());
            leaf.present &= !mask;
            leaf.owned &= !mask;
            if leaf.present == 0 {
                self.leaves.remove(&key);
            }
            next = key + 1;
        }
    }

    /// All owned frames with their pages, ascending.
    pub fn owned(&self) -> impl Iterator<Item = (u64, Frame)> + '_ {
        self.leaves.iter().flat_map(|(&key, leaf)| {
            bits(leaf.owned).map(move |bit| (key * LEAF_PAGES + u64::from(bit), leaf.frames[bit as usize]))
        })
    }

    /// Pages present within `first..end`.
    pub fn count_in(&self, first: u64, end: u64) -> u64 {
        if first >= end {
            return 0;
        }
        let leaves = self.leaves.range(first / LEAF_PAGES..=(end - 1) / LEAF_PAGES);
        leaves.map(|(&key, leaf)| u64::from((leaf.present & mask(key, first, end)).count_ones())).sum()
    }

    /// The first stretch within `first..end` that holds all present pages up to a gap of at least a leaf: kernel calls over
    /// stretches walk few absent pages.
    pub fn stretch(&self, first: u64, end: u64) -> Option<(u64, u64)> {
        let mut found: Option<(u64, u64, u64)> = None;
        for (&key, leaf) in self.leaves.range(first / LEAF_PAGES..) {
            let mask = mask(key, first, end);
            if found.is_some_and(|(_, _, last)| key > last + 1) || key * LEAF_PAGES >= end {
                break;
            }
            if leaf.present & mask == 0 {
                continue;
            }
            let start = key * LEAF_PAGES + u64::from((leaf.present & mask).trailing_zeros());
            let stop = (key + 1) * LEAF_PAGES - u64::from((leaf.present & mask).leading_zeros());
            found = Some((found.map_or(start, |(start, _, _)| start), stop, key));
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
            let found = word(self.leaves.get(&key).map(Box::as_ref)) & mask(key, first, end);
            (found != 0).then(|| key * LEAF_PAGES + u64::from(found.trailing_zeros()))
        })
    }

    /// The `WINDOW` pages from `first` on, a multiple of `WINDOW`, as bits: which are there.
    pub fn window(&self, first: u64) -> u32 {
        let (key, bit) = split(first);
        self.leaves.get(&key).map_or(0, |leaf| (leaf.present >> bit) as u32)
    }

    /// The frames of the `WINDOW` pages from `first` on, and bits that say which are there. All pages are owned.
    pub fn frames(&self, first: u64) -> ([Frame; WINDOW], u32) {
        let mut frames = [Frame(0); WINDOW];
        let mut present = 0;
        let (key, bit) = split(first);
        if let Some(leaf) = self.leaves.get(&key) {
            let some = WINDOW.min(LEAF_PAGES as usize - bit as usize);
            frames[..some].copy_from_slice(&leaf.frames[bit as usize..bit as usize + some]);
            present = (leaf.present >> bit) as u32;
        }
        let rest = (bit as usize + WINDOW).saturating_sub(LEAF_PAGES as usize);
        if rest > 0
            && let Some(leaf) = self.leaves.get(&(key + 1))
        {
            frames[WINDOW - rest..].copy_from_slice(&leaf.frames[..rest]);
            present |= (leaf.present << (WINDOW - rest)) as u32;
        }
        (frames, present)
    }

    /// The largest stretch of owned pages around `page`, within its leaf and `first..end`, for which `fits` holds.
    pub fn owned_around(&self, page: u64, first: u64, end: u64, fits: impl Fn(Frame) -> bool) -> (u64, u64) {
        let (key, _) = split(page);
        let Some(leaf) = self.leaves.get(&key) else { return (page, page + 1) };
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

impl Leaf {
    fn empty() -> Box<Leaf> {
        Box::new(Leaf { present: 0, owned: 0, frames: [Frame(0); LEAF_PAGES as usize] })
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
    fn windows_show_two_leaves() {
        let pages = pages(&[50, 63, 64, 80, 82]);
        assert_eq!(pages.window(32), 1 << 18 | 1 << 31);
        assert_eq!(pages.window(64), 1 | 1 << 16 | 1 << 18);
        let (frames, present) = pages.frames(50);
        assert_eq!(present, 1 | 1 << 13 | 1 << 14 | 1 << 30);
        assert_eq!([0, 13, 14, 30].map(|at| frames[at]), [Frame(50), Frame(63), Frame(64), Frame(80)]);
        assert_eq!(pages.frames(1000).1, 0);
    }

    #[test]
    fn stretches_of_fitting_pages_stay_in_leaf_and_bounds() {
        let pages = pages(&[62, 63, 64, 65, 66, 67, 69]);
        assert_eq!(pages.owned_around(65, 0, 1000, |_| true), (64, 68));
        assert_eq!(pages.owned_around(65, 65, 67, |_| true), (65, 67));
        assert_eq!(pages.owned_around(65, 0, 1000, |frame| frame != Frame(66)), (64, 66));
    }
}
