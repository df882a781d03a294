//! Which dirty pages are written back by one request.

use super::{Dirty, PAGE_BYTES, Run};
use std::vec::Vec;

/// A page that is dirty from `start` to `end`.
fn part(number: u32, place: u32, start: u16, end: u16) -> Run {
    Run { number, pages: 1, start, end, place }
}

fn page(number: u32, place: u32) -> Run {
    part(number, place, 0, PAGE_BYTES as u16)
}

fn dirty(runs: impl IntoIterator<Item = Run>) -> Dirty {
    let dirty = Dirty::default();
    for run in runs {
        assert!(dirty.has_room(1));
        dirty.insert(run);
    }
    dirty
}

/// Number and bytes of what goes with each request, if the page in the place `last` is the last.
fn requests(dirty: &Dirty, last: Option<u32>) -> Vec<(u32, u16)> {
    let request = || {
        let pages = dirty.next(last)?;
        while dirty.take_last_of(&pages, pages.file_end() - 1).is_some() {}
        Some((pages.number, pages.end))
    };
    std::iter::from_fn(request).collect()
}

#[test]
fn neighbours_go_together_up_to_fifteen() {
    let pages = |count: u32| dirty((0..count).map(|n| page(100 + n, 7 + n)));
    assert_eq!(requests(&pages(3), None), [(100, 3 * 4096)]);
    assert_eq!(requests(&pages(17), None), [(100, 15 * 4096), (115, 2 * 4096)]);
    assert_eq!(requests(&pages(4), Some(9)), [(100, 2 * 4096), (103, 4096), (102, 4096)], "the newest is the last");
}

#[test]
fn neighbours_without_a_gap_in_file_memory_and_content_go_together() {
    let apart = [
        [page(1, 7), page(3, 8)],
        [page(1, 7), page(2, 9)],
        [page(1, 8), page(2, 7)],
        [part(1, 7, 0, 100), page(2, 8)],
        [page(1, 7), part(2, 8, 100, 4096)],
    ];
    for runs in apart {
        assert_eq!(requests(&dirty(runs), None).len(), 2, "{runs:?}");
    }
    assert_eq!(requests(&dirty([part(1, 7, 100, 4096), part(2, 8, 0, 50)]), None), [(1, 4096 + 50)]);
    let growing = Run { pages: 3, end: 2 * 4096, ..page(1, 7) };
    assert_eq!(requests(&dirty([growing, page(4, 10)]), None).len(), 2, "there is room in the first one");
}

#[test]
fn what_was_written_is_taken_out_from_behind_and_nothing_else() {
    let dirty = dirty((0..6).map(|n| page(n, n)));
    let pages = Run { pages: 3, end: 3 * 4096, ..page(2, 2) };
    let taken =
        |last_byte| std::iter::from_fn(|| Some(dirty.take_last_of(&pages, last_byte)?.number)).collect::<Vec<_>>();
    assert_eq!(taken(3 * 4096), [3, 2], "up to the page that failed");
    assert_eq!(taken(5 * 4096 - 1), [4]);
    assert_eq!(requests(&dirty, None), [(0, 2 * 4096), (5, 4096)]);
}
