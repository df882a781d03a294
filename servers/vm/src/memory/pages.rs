//! The present pages of a space or an object: a sparse map from page number to frame. The file is long because whatever is done with pages is done
//! with ranges of them, by leaves.
//!
//! In a space a page is *owned* (its frame counts the leaf as user) or *borrowed* (the kernel maps the frame of an object
//! there, which lives as long as the region). In an object all pages are owned. Pages come in leaves (`leaf`), which are a
//! sorted list, because mostly the leaf found last is wanted again, and new ones come at its end. After a fork both spaces
//! share the leaves.
//!
//! The kernel's page tables are a cache of this: an owned page may be unmapped there at any time, the next fault maps it.

pub use crate::memory::leaf::{LEAF_HEAP_BYTES, LEAF_PAGES};

use crate::memory::frames::{Frame, Frames, Run};
use crate::memory::leaf::{Leaf, mask, split};
use alloc::{rc::Rc, vec::Vec};
use core::cell::Cell;

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

/// The present pages.
#[derive(Debug, Default)]
pub struct Pages {
    /// Ascending by key, none empty.
    leaves: Vec<Rc<Leaf>>,
    /// Where the last leaf was found.
    last: Cell<usize>,
    present: u64,
}

/// By leaf, in how many lists it was seen, and how many it says there are.
#[cfg(test)]
pub type Seen = alloc::collections::BTreeMap<usize, (u32, u32)>;

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
    fn make_leaf(&mut self, key: u64, frames: &mut Frames) -> &mut Leaf {
        let index = self.find(key).unwrap_or_else(|index| {
            self.leaves.insert(index, Rc::new(Leaf::empty(key)));
            self.last.set(index);
            index
        });
        Leaf::unshared(&mut self.leaves[index], frames)
    }

    /// The same pages for another space, which from here on shares the leaves and with them the frames. The kernel lets nobody write to them.
    pub fn share(&self) -> Pages {
        for leaf in &self.leaves {
            leaf.enter();
            leaf.is_sealed.set(true);
        }
        Pages { leaves: self.leaves.clone(), last: Cell::new(0), present: self.present }
    }

    /// The kernel is about to map pages of the leaf of `page` for writing.
    pub fn unseal(&self, page: u64) {
        if let Some(leaf) = self.leaf(split(page).0) {
            leaf.is_sealed.set(false);
        }
    }

    /// The first stretch within `first..end` of leaves of which the kernel may map a page for writing, from the first present page to the last.
    pub fn unsealed_stretch(&self, first: u64, end: u64) -> Option<(u64, u64)> {
        self.stretch_of(first, end, |leaf| !leaf.is_sealed.get())
    }

    /// True when nobody else uses the frame that is owned at `page`.
    pub fn is_sole(&self, page: u64, frames: &Frames) -> bool {
        let (key, bit) = split(page);
        self.leaf(key).is_some_and(|leaf| !leaf.is_shared() && frames.users(leaf.frames[bit as usize]) == 1)
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

    /// The owned frames of leaves that are not among `seen`, where they are entered. Checks that shared leaves are counted right when all
    /// lists have been shown.
    #[cfg(test)]
    pub fn owned_once(&self, seen: &mut Seen) -> impl Iterator<Item = Frame> {
        let mut frames = Vec::new();
        for leaf in &self.leaves {
            let lists = seen.entry(Rc::as_ptr(leaf).addr()).or_insert((0, leaf.lists()));
            lists.0 += 1;
            if lists.0 == 1 {
                frames.extend(leaf.owned(u64::MAX).map(|(_, frame)| frame));
            }
        }
        frames.into_iter()
    }

    /// What a death in the middle of a change may leave behind.
    #[cfg(test)]
    pub fn break_order(&mut self) {
        self.leaves.swap(0, 1);
    }

    /// The same for the number of pages.
    #[cfg(test)]
    pub fn break_count(&mut self) {
        self.present += 1;
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
        self.leaves.capacity() * 2 * size_of::<Rc<Leaf>>()
    }

    /// True when the next leaf makes the list grow.
    pub fn must_grow(&self) -> bool {
        self.leaves.len() == self.leaves.capacity()
    }

    /// Puts an owned frame at `page`, in place of the old one, which the caller has to release.
    pub fn own(&mut self, page: u64, frame: Frame, frames: &mut Frames) {
        self.own_run(page, Run { first: frame, frames: 1 }, frames);
    }

    /// Puts owned frames at the pages from `page` on, in place of the old one, which the caller has to release.
    pub fn own_run(&mut self, page: u64, run: Run, frames: &mut Frames) {
        let end = page + run.frames;
        for key in page / LEAF_PAGES..=(end - 1) / LEAF_PAGES {
            let leaf = self.make_leaf(key, frames);
            let mask = mask(key, page, end);
            for bit in mask.trailing_zeros()..LEAF_PAGES as u32 - mask.leading_zeros() {
                leaf.frames[bit as usize] = run.first.plus(key * LEAF_PAGES + u64::from(bit) - page);
            }
            let new = (mask & !leaf.present).count_ones();
            leaf.present |= mask;
            leaf.owned |= mask;
            leaf.is_sealed.set(false);
            self.present += u64::from(new);
        }
    }

    /// Marks `count` pages from `page` on, which are not owned, as borrowed. All are in one leaf.
    pub fn borrow(&mut self, page: u64, count: u64, frames: &mut Frames) {
        let (key, _) = split(page);
        let leaf = self.make_leaf(key, frames);
        let mask = mask(key, page, page + count);
        let new = (mask & !leaf.present).count_ones();
        leaf.present |= mask;
        self.present += u64::from(new);
    }

    /// Empties the pages of `first..end` and releases the frames that were owned.
    pub fn release(&mut self, first: u64, end: u64, frames: &mut Frames) {
        self.empty(first, end, |leaf, mask| {
            if leaf.is_shared() && leaf.present & !mask == 0 {
                leaf.leave();
                return true;
            }
            let leaf = Leaf::unshared(leaf, frames);
            leaf.owned(mask).for_each(|(_, frame)| frames.release(frame));
            leaf.clear(mask)
        });
    }

    /// Empties the pages of `first..end` and hands each frame that was owned, with its page, to `each`, which has to release it.
    pub fn take(&mut self, first: u64, end: u64, frames: &mut Frames, mut each: impl FnMut(&mut Frames, u64, Frame)) {
        self.empty(first, end, |leaf, mask| {
            let leaf = Leaf::unshared(leaf, frames);
            leaf.owned(mask).for_each(|(page, frame)| each(frames, page, frame));
            leaf.clear(mask)
        });
    }

    /// Releases all frames that were owned.
    pub fn release_all(self, frames: &mut Frames) {
        for leaf in self.leaves {
            if leaf.is_shared() {
                leaf.leave();
            } else {
                leaf.owned(u64::MAX).for_each(|(_, frame)| frames.release(frame));
            }
        }
    }

    /// Has `act` take the pages under a mask out of each leaf of `first..end` and return whether none is left in this list.
    fn empty(&mut self, first: u64, end: u64, mut act: impl FnMut(&mut Rc<Leaf>, u64) -> bool) {
        let start = self.find(first / LEAF_PAGES).unwrap_or_else(|index| index);
        let mut emptied = start..start;
        for (index, leaf) in self.leaves.iter_mut().enumerate().skip(start) {
            let mask = mask(leaf.key, first, end);
            if mask == 0 {
                break;
            }
            let there = leaf.present & mask;
            self.present -= u64::from(there.count_ones());
            if there != 0 && act(leaf, mask) {
                emptied = if emptied.is_empty() { index } else { emptied.start }..index + 1;
            }
        }
        // Between the first and the last of the range no leaf keeps a page, so the emptied ones are neighbours.
        self.leaves.drain(emptied);
    }

    /// After a death: counts anew which lists share its leaves, when this has been called for all of them.
    pub fn begin_recount(&self) {
        self.leaves.iter().for_each(|leaf| leaf.begin_recount());
    }

    /// Counts this list, and returns the owned frames of the leaves that no other list has shown before.
    pub fn recount(&self) -> impl Iterator<Item = Frame> + '_ {
        self.leaves.iter().flat_map(|leaf| {
            let is_first = leaf.enter();
            leaf.owned(if is_first { u64::MAX } else { 0 }).map(|(_, frame)| frame)
        })
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
        self.stretch_of(first, end, |_| true)
    }

    #[inline]
    fn stretch_of(&self, first: u64, end: u64, is_wanted: impl Fn(&Leaf) -> bool) -> Option<(u64, u64)> {
        let mut found: Option<(u64, u64, u64)> = None;
        for (leaf, mask) in self.within(first, end).filter(|(leaf, _)| is_wanted(leaf)) {
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

    /// Absent pages from `page` on, at most `most`, and not beyond the leaf.
    pub fn absent_from(&self, page: u64, most: u64) -> u64 {
        let (key, bit) = split(page);
        let present = self.leaf(key).map_or(0, |leaf| leaf.present >> bit);
        most.min(LEAF_PAGES - u64::from(bit)).min(u64::from(present.trailing_zeros()))
    }

    /// Present pages right before `page`, as far as they are in one leaf.
    pub fn present_before(&self, page: u64) -> u64 {
        let Some((key, bit)) = page.checked_sub(1).map(split) else { return 0 };
        self.leaf(key).map_or(0, |leaf| (leaf.present << (LEAF_PAGES as u32 - 1 - bit)).leading_ones().into())
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
    pub fn owned_around(&self, page: u64, first: u64, end: u64, fits: impl Fn(u64, Frame) -> bool) -> (u64, u64) {
        let (key, _) = split(page);
        let Some(leaf) = self.leaf(key) else { return (page, page + 1) };
        let allowed = leaf.owned & mask(key, first, end);
        let good = |page: &u64| {
            let bit = (page % LEAF_PAGES) as usize;
            page / LEAF_PAGES == key && allowed >> bit & 1 != 0 && fits(*page, leaf.frames[bit])
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

    /// Frames of which all are in use, and pages that own those of the same numbers.
    fn pages(owned: &[u64]) -> (Pages, Frames) {
        let mut frames = Frames::new(2048);
        (0..2048).for_each(|number| frames.add(Frame(number)));
        while frames.take().is_some() {}
        let mut pages = Pages::default();
        owned.iter().for_each(|&page| pages.own(page, Frame(page as u32), &mut frames));
        (pages, frames)
    }

    fn users(frames: &Frames, numbers: &[u32]) -> Vec<u16> {
        numbers.iter().map(|&number| frames.users(Frame(number))).collect()
    }

    #[test]
    fn pages_are_where_they_were_put() {
        let (mut pages, mut frames) = pages(&[5, 64, 1000]);
        pages.borrow(6, 3, &mut frames);
        assert_eq!(pages.get(5), Page::Owned(Frame(5)));
        assert_eq!((pages.get(8), pages.get(9)), (Page::Borrowed, Page::Absent));
        assert_eq!((pages.count(), pages.count_in(6, 65), pages.count_in(0, 5)), (6, 4, 0));
        pages.own(7, Frame(70), &mut frames);
        assert_eq!((pages.count(), pages.frame(7), pages.frame(8)), (6, Some(Frame(70)), None));
    }

    #[test]
    fn what_is_taken_out_is_handed_over_and_what_is_released_is_free() {
        let (mut pages, mut frames) = pages(&[5, 63, 64, 1000]);
        pages.borrow(70, 2, &mut frames);
        let mut taken = Vec::new();
        pages.take(6, 65, &mut frames, |_, page, frame| taken.push((page, frame)));
        assert_eq!(taken, vec![(63, Frame(63)), (64, Frame(64))]);
        assert_eq!((pages.count(), pages.leaves()), (4, 3));
        pages.release(70, 2000, &mut frames);
        assert_eq!((pages.count(), pages.leaves()), (1, 1));
        assert_eq!(users(&frames, &[5, 63, 64, 1000]), [1, 1, 1, 0]);
        pages.release_all(&mut frames);
        assert_eq!(users(&frames, &[5]), [0]);
    }

    #[test]
    fn a_shared_leaf_is_one_user_until_one_side_changes_it() {
        let (parent, mut frames) = pages(&[5, 6, 64, 65]);
        let mut child = parent.share();
        assert_eq!(users(&frames, &[5, 6, 64, 65]), [1; 4]);
        assert!(!parent.is_sole(5, &frames) && !child.is_sole(64, &frames));
        child.own(5, Frame(100), &mut frames);
        frames.release(Frame(5));
        assert_eq!(users(&frames, &[5, 6, 64, 65, 100]), [1, 2, 1, 1, 1]);
        assert!(parent.is_sole(5, &frames) && !parent.is_sole(6, &frames) && child.is_sole(5, &frames));
        child.release(64, 128, &mut frames);
        assert_eq!((users(&frames, &[64, 65]), child.count(), parent.is_sole(64, &frames)), (vec![1, 1], 2, true));
        child.release_all(&mut frames);
        assert_eq!(users(&frames, &[5, 6, 64, 65, 100]), [1, 1, 1, 1, 0]);
        parent.release_all(&mut frames);
        assert_eq!(users(&frames, &[5, 6, 64, 65]), [0; 4]);
    }

    #[test]
    fn part_of_a_shared_leaf_is_released_or_taken_on_one_side_only() {
        let (mut parent, mut frames) = pages(&[5, 6, 7, 70]);
        let mut child = parent.share();
        child.release(0, 6, &mut frames);
        assert_eq!((users(&frames, &[5, 6, 7]), parent.count(), child.count()), (vec![1, 2, 2], 4, 3));
        // Nothing is there, so nothing is copied.
        child.release(80, 90, &mut frames);
        assert_eq!(users(&frames, &[70]), [1]);
        parent.take(64, 128, &mut frames, |frames, _, frame| frames.release(frame));
        assert_eq!((users(&frames, &[70]), parent.frame(70), child.frame(70)), (vec![1], None, Some(Frame(70))));
        child.borrow(71, 1, &mut frames);
        assert_eq!((child.count(), child.is_sole(70, &frames)), (4, true));
    }

    #[test]
    fn after_a_death_each_leaf_is_counted_by_the_lists_it_is_in() {
        let (parent, frames) = pages(&[5, 64]);
        let [child, lost] = [(); 2].map(|()| parent.share());
        core::mem::forget(lost);
        [&parent, &child].into_iter().for_each(Pages::begin_recount);
        assert_eq!(parent.recount().collect::<Vec<_>>(), [Frame(5), Frame(64)]);
        assert_eq!(child.recount().count(), 0);
        let mut seen = Seen::new();
        assert_eq!([&parent, &child].map(|pages| pages.owned_once(&mut seen).count()), [2, 0]);
        assert!(seen.values().all(|counts| *counts == (2, 2)));
        // The lost references make no difference.
        let (mut parent, mut child, mut frames) = (parent, child, frames);
        child.release(0, 64, &mut frames);
        parent.own(6, Frame(6), &mut frames);
        assert_eq!((users(&frames, &[5, 6]), parent.count()), (vec![1, 1], 3));
    }

    #[test]
    fn stretches_end_at_wide_gaps() {
        let (pages, _) = pages(&[5, 70, 300, 301]);
        assert_eq!(pages.stretch(0, 1000), Some((5, 71)));
        assert_eq!(pages.stretch(71, 1000), Some((300, 302)));
        assert_eq!(pages.stretch(71, 301), Some((300, 301)));
        assert_eq!(pages.stretch(302, 1000), None);
        assert_eq!(pages.absent(5, 72), Some((6, 64)));
        assert_eq!(pages.absent(300, 302), None);
    }

    #[test]
    fn present_pages_before_one_are_counted_within_a_leaf() {
        let (pages, _) = pages(&[60, 62, 63, 64, 65]);
        let before = [0, 60, 61, 62, 63, 64, 65, 66, 67].map(|page| pages.present_before(page));
        assert_eq!(before, [0, 0, 1, 0, 1, 2, 1, 2, 0]);
    }

    #[test]
    fn frames_are_shown_across_leaves() {
        let (pages, _) = pages(&[50, 63, 64, 80, 113, 114]);
        assert_eq!(pages.window(64), 1 | 1 << 16 | 1 << 49 | 1 << 50);
        let (frames, present) = pages.frames(50);
        assert_eq!(present, 1 | 1 << 13 | 1 << 14 | 1 << 30 | 1 << 63);
        assert_eq!([0, 13, 14, 30, 63].map(|at| frames[at].0), [50, 63, 64, 80, 113]);
        assert_eq!((pages.frames(64).1, pages.frames(1000).1), (pages.window(64), 0));
    }

    #[test]
    fn stretches_of_fitting_pages_stay_in_leaf_and_bounds() {
        let (pages, _) = pages(&[62, 63, 64, 65, 66, 67, 69]);
        assert_eq!(pages.owned_around(65, 0, 1000, |_, _| true), (64, 68));
        assert_eq!(pages.owned_around(65, 65, 67, |_, _| true), (65, 67));
        assert_eq!(pages.owned_around(65, 0, 1000, |_, frame| frame != Frame(66)), (64, 66));
    }
}
