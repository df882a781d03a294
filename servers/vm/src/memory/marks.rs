//! Which pages of a shared file differ from the file on its file system.
//!
//! A page is *changed* once a program may write to it, and *taken* when vfs has fetched it to write it back; both until vfs says that it is
//! written. A page that is changed while it is being written back is both. So after a death in between, the page is written back again.

use crate::memory::pages::{LEAF_PAGES, Pages};
use alloc::vec::Vec;

/// The marks of 64 pages.
#[derive(Clone, Copy, Debug)]
struct Leaf {
    key: u64,
    changed: u64,
    taken: u64,
}

/// All marks; leaves without any are left out.
#[derive(Clone, Debug, Default)]
pub struct Marks {
    /// Ascending by key.
    leaves: Vec<Leaf>,
}

fn split(page: u64) -> (u64, u64) {
    (page / LEAF_PAGES, 1 << (page % LEAF_PAGES))
}

impl Marks {
    fn find(&self, key: u64) -> Result<usize, usize> {
        self.leaves.binary_search_by_key(&key, |leaf| leaf.key)
    }

    /// Heap that one more mark may take.
    pub fn growth_bytes(&self) -> usize {
        self.leaves.capacity() * 2 * size_of::<Leaf>()
    }

    /// The page differs from the file from now on.
    #[expect(clippy::disallowed_methods, reason = "`ensure_heap` has made room")]
    pub fn change(&mut self, page: u64) {
        let (key, bit) = split(page);
        let index = self.find(key).unwrap_or_else(|index| {
            self.leaves.insert(index, Leaf { key, changed: 0, taken: 0 });
            index
        });
        self.leaves[index].changed |= bit;
    }

    /// The page is being written back just now.
    pub fn is_taken(&self, page: u64) -> bool {
        let (key, bit) = split(page);
        self.find(key).is_ok_and(|index| self.leaves[index].taken & bit != 0)
    }

    /// The first pages within `first..end` that differ, at most `most`, one behind the other.
    pub fn first_run(&self, first: u64, end: u64, most: u64) -> Option<(u64, u64)> {
        let from = self.find(first / LEAF_PAGES).unwrap_or_else(|index| index);
        let pages = self.leaves[from..].iter().flat_map(|leaf| {
            let start = leaf.key * LEAF_PAGES;
            let is_set = |bit: &u64| (leaf.changed | leaf.taken) >> bit & 1 != 0;
            (0..LEAF_PAGES).filter(is_set).map(move |bit| start + bit)
        });
        let mut pages = pages.skip_while(|page| *page < first).take_while(|page| *page < end);
        let start = pages.next()?;
        let more = pages.zip(start + 1..).take_while(|(page, expected)| page == expected).count() as u64;
        Some((start, (1 + more).min(most)))
    }

    /// Marks these pages, which are changed, as taken.
    pub fn take(&mut self, first: u64, pages: u64) {
        self.each(first, pages, |leaf, bit| {
            leaf.taken |= bit;
            leaf.changed &= !bit;
        });
    }

    /// Marks these pages as written: what was taken of them is in the file.
    pub fn written(&mut self, first: u64, pages: u64) {
        self.each(first, pages, |leaf, bit| leaf.taken &= !bit);
        self.leaves.retain(|leaf| leaf.changed | leaf.taken != 0);
    }

    /// The pages from `first` on are gone.
    pub fn cut(&mut self, first: u64) {
        let (key, bit) = split(first);
        self.leaves.retain(|leaf| leaf.key <= key);
        if let Ok(index) = self.find(key) {
            self.leaves[index].changed &= bit - 1;
            self.leaves[index].taken &= bit - 1;
        }
        self.leaves.retain(|leaf| leaf.changed | leaf.taken != 0);
    }

    /// Nothing differs.
    pub fn is_empty(&self) -> bool {
        self.leaves.is_empty()
    }

    /// False: a death has left them half changed.
    pub fn is_whole(&self) -> bool {
        self.leaves.is_sorted_by(|one, next| one.key < next.key)
    }

    /// Marks all present pages as changed, since it is unknown which are.
    pub fn change_all(&mut self, pages: &Pages) {
        core::mem::forget(core::mem::take(&mut self.leaves));
        pages.owned().for_each(|(page, _)| self.change(page));
    }

    fn each(&mut self, first: u64, pages: u64, act: impl Fn(&mut Leaf, u64)) {
        for page in first..first + pages {
            let (key, bit) = split(page);
            if let Ok(index) = self.find(key) {
                act(&mut self.leaves[index], bit);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::frames::{Frame, Frames};

    impl Marks {
        fn has(&self, page: u64) -> bool {
            self.first_run(page, page + 1, 1).is_some()
        }
    }

    fn marks(pages: &[u64]) -> Marks {
        let mut marks = Marks::default();
        pages.iter().for_each(|&page| marks.change(page));
        marks
    }

    #[test]
    fn runs_cross_leaves_and_end_at_gaps_and_bounds() {
        let marks = marks(&[5, 62, 63, 64, 65, 67, 300]);
        assert_eq!(marks.first_run(0, 1000, 99), Some((5, 1)));
        assert_eq!(marks.first_run(6, 1000, 99), Some((62, 4)));
        assert_eq!(marks.first_run(63, 65, 99), Some((63, 2)));
        assert_eq!(marks.first_run(62, 1000, 3), Some((62, 3)));
        assert_eq!(marks.first_run(68, 300, 99), None);
    }

    #[test]
    fn a_page_that_is_changed_while_it_is_written_back_is_written_once_more() {
        let mut marks = marks(&[7, 8]);
        marks.take(7, 2);
        assert!(marks.is_taken(7) && marks.has(8));
        marks.change(8);
        marks.written(7, 2);
        assert_eq!(marks.first_run(0, 100, 99), Some((8, 1)));
        marks.take(8, 1);
        assert_eq!(marks.first_run(0, 100, 99), Some((8, 1)), "taken, but nobody has said that it is written");
        marks.written(8, 1);
        assert!(marks.is_empty());
    }

    #[test]
    fn what_is_cut_off_differs_no_more() {
        let mut marks = marks(&[1, 63, 64, 200]);
        marks.cut(64);
        assert_eq!(marks.first_run(2, 1000, 99), Some((63, 1)));
        marks.cut(1);
        assert!(marks.is_empty());
    }

    #[test]
    fn when_nobody_knows_everything_has_changed() {
        let (mut pages, mut frames) = (Pages::default(), Frames::new(0));
        [3, 100].into_iter().for_each(|page| pages.own(page, Frame(9), &mut frames));
        let mut broken = marks(&[1, 70]);
        broken.leaves.swap(0, 1);
        assert!(!broken.is_whole());
        broken.change_all(&pages);
        assert!(broken.is_whole() && broken.has(3) && broken.has(100) && !broken.has(1));
    }
}
