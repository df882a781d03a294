//! The pages that parent or child write to first after a fork. The next fork in the family copies them at once, which is less work than the
//! faults of both sides.
//!
//! A hint: one that is wrong costs time, and nothing else. So a death of vm may leave it as it likes.

use alloc::rc::Rc;
use core::cell::Cell;

/// Pages that a family remembers, and writes of each side that are looked at after a fork.
const PAGES: usize = 6;

/// A page that was written to soon after a fork.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HotPage {
    pub page: u64,
    /// The parent wrote to it before the child.
    pub by_parent: bool,
}

/// What a program and its forks have in common.
#[derive(Debug, Default)]
struct Family {
    pages: [Cell<Option<HotPage>>; PAGES],
    /// The one that the next page displaces.
    oldest: Cell<usize>,
}

/// A space's part in it.
#[derive(Debug, Default)]
pub struct HotPages {
    /// Since the first fork.
    family: Option<Rc<Family>>,
    is_parent: bool,
    /// Writes that are still looked at.
    left: usize,
}

impl HotPages {
    /// The space is forked. Returns the child's part.
    pub fn fork(&mut self) -> HotPages {
        (self.is_parent, self.left) = (true, PAGES);
        let family = self.family.get_or_insert_with(Rc::default).clone();
        HotPages { family: Some(family), is_parent: false, left: PAGES }
    }

    /// A page was copied because it was written to.
    pub fn note(&mut self, page: u64) {
        let (Some(left), Some(family)) = (self.left.checked_sub(1), &self.family) else { return };
        self.left = left;
        if !family.pages.iter().filter_map(Cell::get).any(|hot| hot.page == page) {
            let oldest = family.oldest.replace((family.oldest.get() + 1) % PAGES);
            family.pages[oldest].set(Some(HotPage { page, by_parent: self.is_parent }));
        }
    }

    /// The pages that the family remembers.
    pub fn pages(&self) -> impl Iterator<Item = HotPage> + use<> {
        let pages = self.family.as_ref().map(|family| family.pages.each_ref().map(Cell::get));
        pages.into_iter().flatten().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::{vec, vec::Vec};

    fn pages(hot: &HotPages) -> Vec<u64> {
        hot.pages().map(|hot| hot.page).collect()
    }

    #[test]
    fn a_family_remembers_the_first_writes_after_a_fork_and_who_made_them() {
        let mut parent = HotPages::default();
        parent.note(1);
        assert_eq!(pages(&parent), vec![0; 0], "it was never forked");
        let mut child = parent.fork();
        parent.note(7);
        child.note(7);
        child.note(8);
        let expected = [HotPage { page: 7, by_parent: true }, HotPage { page: 8, by_parent: false }];
        assert_eq!(parent.pages().collect::<Vec<_>>(), expected);
        (10..20).for_each(|page| parent.note(page));
        assert_eq!(
            pages(&child),
            [14, 8, 10, 11, 12, 13],
            "the oldest goes first, and the seventh write is not looked at"
        );
        (20..30).for_each(|page| parent.note(page));
        assert_eq!(pages(&child), [14, 8, 10, 11, 12, 13]);
    }
}
