//! Free pages, and pages to be freed.
//!
//! List 0 has the free pages that were used before, the latest on top: it is the next one to be used, as its memory is there already. Behind it,
//! pages that were never used are free. A map that a file does not need any more goes, with everything below, to the list of its level;
//! `reclaim` takes such maps apart, one at a time. So to delete a file takes the same time whatever its size, and the rest happens between requests.
//!
//! A page's link tells the next one of its list, and means nothing while the page is in use. It is not changed when the page is taken, so that a
//! roll-back finds the list as it was.

use fs::Errno;
use fs::file_system::Statistics;

use crate::memory::Memory;
use crate::plan::PAGE;

/// Levels of maps (`map`).
pub const LEVELS: usize = 4;
/// Pages that a map refers to, 4 bytes each.
pub const SPAN: usize = PAGE / size_of::<u32>();

/// The line of the head that changes.
const HEAD: usize = 64;
const FREE: usize = HEAD;
/// The first page that was never used.
const FRESH: usize = HEAD + 4;
/// First page of each list.
const LISTS: usize = HEAD + 8;
/// Pages on top of list 0 that may have memory: the rest has been given back.
const WARM: usize = HEAD + 28;

/// Bits of a set of pages that `trim` works on.
const SET_BITS: usize = 1 << 15;

/// Makes all pages free, of a memory of zeros.
pub fn format(memory: &mut Memory) {
    let pages = memory.places().plan().pages();
    memory.put_half(FREE, pages as u32);
    memory.put_half(FRESH, 1);
}

/// Saves the counts and lists of the head: before the first change of any of them.
#[inline]
pub fn save_head(memory: &Memory) {
    memory.save_line(HEAD);
}

/// Returns the number of free pages.
#[inline]
pub fn free(memory: &Memory) -> u32 {
    memory.half(FREE)
}

/// Fills in the figures of `statfs` about pages.
pub fn count(memory: &Memory, statistics: &mut Statistics) {
    statistics.block_size = PAGE as u64;
    statistics.blocks = memory.places().plan().pages() as u64;
    statistics.blocks_free = free(memory).into();
    statistics.blocks_available = statistics.blocks_free;
}

/// Returns the page that `take` will return, if there is one.
#[inline]
pub fn next(memory: &Memory) -> Option<u32> {
    match (free(memory), memory.half(LISTS)) {
        (0, _) => None,
        (_, 0) => Some(memory.half(FRESH)),
        (_, top) => Some(top),
    }
}

/// Takes a page, whose content is anything. `ENOSPC`.
pub fn take(memory: &mut Memory) -> Result<u32, Errno> {
    let page = next(memory).ok_or(Errno::ENOSPC)?;
    save_head(memory);
    memory.put_half(FREE, free(memory) - 1);
    if memory.half(LISTS) == page {
        memory.put_half(LISTS, memory.half(memory.places().link(page)));
        memory.put_half(WARM, memory.half(WARM).saturating_sub(1));
    } else {
        memory.put_half(FRESH, page + 1);
    }
    Ok(page)
}

/// Takes a page and fills it with zeros, as an empty map too. `ENOSPC`.
pub fn take_zeroed(memory: &mut Memory) -> Result<u32, Errno> {
    let page = take(memory)?;
    let start = memory.places().page(page);
    memory.bytes_mut(start..start + PAGE).fill(0);
    memory.put_half(count_place(memory, page), 0);
    Ok(page)
}

/// Returns a page that the present transaction has taken.
pub fn give_back(memory: &mut Memory, page: u32) {
    let link = memory.places().link(page);
    if memory.half(link) != memory.half(LISTS) {
        // Its link is part of a list, if the transaction is rolled back.
        memory.change_half(link, memory.half(LISTS));
    }
    become_free(memory, page);
}

/// Frees a page (`level` 0) or a map of this level with everything below. It was in use before the present transaction.
#[inline]
pub fn release(memory: &mut Memory, page: u32, level: usize) {
    let list = LISTS + 4 * level;
    memory.put_half(memory.places().link(page), memory.half(list));
    if level == 0 {
        become_free(memory, page);
    } else {
        save_head(memory);
        memory.put_half(list, page);
        memory.note_maps(true);
    }
}

/// The page, whose link is set, is the first one of list 0.
fn become_free(memory: &mut Memory, page: u32) {
    save_head(memory);
    memory.put_half(LISTS, page);
    memory.put_half(FREE, free(memory) + 1);
    memory.put_half(WARM, memory.half(WARM) + 1);
}

/// Returns the place of the number of pages with content below a map.
#[inline]
pub fn count_place(memory: &Memory, map: u32) -> usize {
    memory.places().link(map) + 4
}

/// Whether there are maps to be taken apart.
#[inline]
pub fn is_reclaimable(memory: &Memory) -> bool {
    (1..=LEVELS).any(|level| memory.half(LISTS + 4 * level) != 0)
}

/// Takes one map apart.
pub fn reclaim(memory: &mut Memory) {
    let Some(level) = (1..=LEVELS).find(|&level| memory.half(LISTS + 4 * level) != 0) else { return };
    let list = LISTS + 4 * level;
    let map = memory.half(list);
    save_head(memory);
    memory.put_half(list, memory.half(memory.places().link(map)));
    let start = memory.places().page(map);
    // The last one first, so that they will be used in the order in which the file had them.
    for slot in (0..SPAN).rev() {
        let page = memory.half(start + 4 * slot);
        if page != 0 {
            release(memory, page, level - 1);
        }
    }
    give_back(memory, map);
}

/// Gives the memory of free pages back to vm.
pub fn trim(memory: &mut Memory) {
    let warm = memory.half(WARM);
    if warm == 0 {
        return;
    }
    let mut set = [0u64; SET_BITS / 64];
    let mut page = memory.half(LISTS);
    for _ in 0..warm {
        set[page as usize / 64] |= 1 << (page % 64);
        page = memory.half(memory.places().link(page));
    }
    let is_in = |page: usize| page < SET_BITS && set[page / 64] & 1 << (page % 64) != 0;
    let pages = memory.places().plan().pages();
    let mut first = 1;
    while let Some(start) = (first..=pages).find(|&page| is_in(page)) {
        first = (start..=pages).find(|&page| !is_in(page)).unwrap_or(pages + 1);
        let range = memory.places().page(start as u32)..memory.places().page(first as u32);
        memory.discard(range);
    }
    memory.put_half(WARM, 0);
}

#[cfg(test)]
pub use looks::{fresh, list};

/// What only the tests look at.
#[cfg(test)]
mod looks {
    use super::*;

    /// Returns the first page that was never used.
    pub fn fresh(memory: &Memory) -> u32 {
        memory.half(FRESH)
    }

    /// Returns the pages of a list.
    pub fn list(memory: &Memory, level: usize) -> alloc::vec::Vec<u32> {
        let is_page = |page: &u32| *page != 0;
        let first = Some(memory.half(LISTS + 4 * level)).filter(is_page);
        core::iter::successors(first, |&page| Some(memory.half(memory.places().link(page))).filter(is_page)).collect()
    }
}
