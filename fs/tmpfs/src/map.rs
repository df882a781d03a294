//! From positions in a file to pages: ten pointers in the inode, then a tree of one, two, three and four levels of maps, as ext2 has them.
//!
//! The count of a map (behind its link, `pages`) tells the pages of content below it. A map is of use as long as its count is not 0.

use core::ops::Range;

use fs::Errno;

use crate::inode::{Inode, POINTERS};
use crate::memory::Memory;
use crate::pages::{self, LEVELS, SPAN};

/// Pages to which the inode itself points.
const DIRECT: usize = POINTERS - LEVELS;
/// Limit of pages of a file.
pub const MAX_PAGES: u64 = DIRECT as u64 + span(1) + span(2) + span(3) + span(4);

/// The first page behind each pointer of an inode.
const FIRST_PAGES: [u64; POINTERS] = first_pages();

const fn first_pages() -> [u64; POINTERS] {
    let (mut first, mut pointer) = ([0; POINTERS], 1);
    while pointer < POINTERS {
        first[pointer] = first[pointer - 1] + span(pointer.saturating_sub(DIRECT));
        pointer += 1;
    }
    first
}

const _: () = assert!(FIRST_PAGES[POINTERS - 1] + span(LEVELS) == MAX_PAGES);

/// A pointer of an inode, the levels of maps behind it, and the position in their tree.
struct Tree {
    pointer: usize,
    levels: usize,
    index: u64,
}

/// Bits of the number of pages that a map refers to.
const SPAN_BITS: usize = SPAN.trailing_zeros() as usize;

/// Pages below a map of this level.
#[inline]
const fn span(level: usize) -> u64 {
    1 << (SPAN_BITS * level)
}

/// Returns the tree of page `index` of a file, which is below `MAX_PAGES`.
#[inline]
fn tree(index: u64) -> Tree {
    if index < DIRECT as u64 {
        return Tree { pointer: index as usize, levels: 0, index: 0 };
    }
    let mut index = index - DIRECT as u64;
    let mut levels = 1;
    while levels < LEVELS && index >= span(levels) {
        index -= span(levels);
        levels += 1;
    }
    Tree { pointer: DIRECT + levels - 1, levels, index }
}

/// Returns the place of the pointer to `index` in a map of this level.
#[inline]
fn slot(memory: &Memory, map: u32, level: usize, index: u64) -> usize {
    memory.places().page(map) + 4 * (index / span(level - 1) % SPAN as u64) as usize
}

/// Returns page `index` of a file, or 0 for a hole, and the number of pages from there on that surely are in the same hole, at least 1.
#[inline]
pub fn find(memory: &Memory, inode: Inode, index: u64) -> (u32, u64) {
    if index >= MAX_PAGES {
        return (0, u64::MAX);
    }
    let Tree { pointer, levels, index } = tree(index);
    let mut page = memory.half(inode.pointer(pointer));
    for level in (1..=levels).rev() {
        if page == 0 {
            return (0, span(level) - index % span(level));
        }
        page = memory.half(slot(memory, page, level, index));
    }
    (page, 1)
}

/// Returns page `index` of a file, and how many follow it in the file and in memory, itself included; or 0 for a hole, and its length.
/// Looks at `most` pages or holes.
pub fn run(memory: &Memory, inode: Inode, index: u64, most: u64) -> (u32, u64) {
    let (first, mut count) = find(memory, inode, index);
    while count < most {
        let (page, more) = find(memory, inode, index.saturating_add(count));
        let follows = if first == 0 { page == 0 } else { u64::from(page) == u64::from(first) + count };
        if !follows {
            break;
        }
        count = count.saturating_add(more);
    }
    (first, count.min(most))
}

/// Returns how many maps are missing on the way to page `index` of a file.
fn missing_maps(memory: &Memory, inode: Inode, index: u64) -> u32 {
    let Tree { pointer, levels, index } = tree(index);
    let mut page = memory.half(inode.pointer(pointer));
    for level in (1..=levels).rev() {
        if page == 0 {
            return level as u32;
        }
        page = memory.half(slot(memory, page, level, index));
    }
    0
}

/// Returns how many pages can be taken and mapped from `index` on: as many as one map has, and as are free beside the maps on the way. `ENOSPC`
/// if none can.
pub fn room(memory: &Memory, inode: Inode, index: u64) -> Result<u64, Errno> {
    let left = pages::free(memory).saturating_sub(missing_maps(memory, inode, index));
    let Tree { levels, index: in_tree, .. } = tree(index);
    let in_map = if levels == 0 { DIRECT as u64 - index } else { SPAN as u64 - in_tree % SPAN as u64 };
    if left > 0 { Ok(in_map.min(left.into())) } else { Err(Errno::ENOSPC) }
}

/// Maps a page in a hole; `room` has told that there is space.
pub fn insert(memory: &mut Memory, inode: Inode, index: u64, page: u32) -> Result<(), Errno> {
    let Tree { pointer, levels, index } = tree(index);
    inode.save_pointers(memory);
    inode.set_pages(memory, inode.pages(memory) + 1);
    let mut place = inode.pointer(pointer);
    for level in (1..=levels).rev() {
        let mut map = memory.half(place);
        if map == 0 {
            map = pages::take_zeroed(memory)?;
            memory.save_line(place);
            memory.put_half(place, map);
        }
        let count = pages::count_place(memory, map);
        memory.change_half(count, memory.half(count) + 1);
        place = slot(memory, map, level, index);
    }
    memory.save_line(place);
    memory.put_half(place, page);
    Ok(())
}

/// Frees the pages in a range of a file, which becomes a hole.
pub fn clear(memory: &mut Memory, inode: Inode, range: Range<u64>) {
    let mut freed = 0;
    // The last one first, as in `pages::reclaim`. Two pointers at a time: most files have few.
    for pair in (0..POINTERS / 2).rev() {
        if memory.word(inode.pointer(2 * pair)) != 0 {
            freed += clear_behind(memory, inode, 2 * pair + 1, &range);
            freed += clear_behind(memory, inode, 2 * pair, &range);
        }
    }
    if freed > 0 {
        inode.save_pointers(memory);
        inode.set_pages(memory, inode.pages(memory) - freed);
    }
}

/// Frees the pages behind a pointer that are in a range of the file. Returns their number.
fn clear_behind(memory: &mut Memory, inode: Inode, pointer: usize, range: &Range<u64>) -> u32 {
    let (start, levels) = (FIRST_PAGES[pointer], (pointer + 1).saturating_sub(DIRECT));
    let part = range.start.saturating_sub(start)..range.end.saturating_sub(start).min(span(levels));
    if part.start < part.end { clear_tree(memory, inode.pointer(pointer), levels, part) } else { 0 }
}

/// Frees a range of the tree under the pointer at `place`. Returns the number of pages with content.
fn clear_tree(memory: &mut Memory, place: usize, levels: usize, range: Range<u64>) -> u32 {
    let page = memory.half(place);
    if page == 0 {
        return 0;
    }
    let count = pages::count_place(memory, page);
    let (freed, is_empty) = if range == (0..span(levels)) {
        (if levels == 0 { 1 } else { memory.half(count) }, true)
    } else {
        let freed = clear_children(memory, page, levels, range);
        if freed > 0 {
            memory.change_half(count, memory.half(count) - freed);
        }
        (freed, memory.half(count) == 0)
    };
    if is_empty {
        memory.save_line(place);
        memory.put_half(place, 0);
        pages::release(memory, page, levels);
    }
    freed
}

fn clear_children(memory: &mut Memory, map: u32, levels: usize, range: Range<u64>) -> u32 {
    let below = span(levels - 1);
    let children = (range.start / below..range.end.div_ceil(below)).rev();
    let clear_one = |child: u64| {
        let start = child * below;
        let part = range.start.saturating_sub(start)..(range.end - start).min(below);
        clear_tree(memory, slot(memory, map, levels, start), levels - 1, part)
    };
    children.map(clear_one).sum()
}
