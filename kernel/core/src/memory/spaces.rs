//! Address spaces: which exist, how many threads use one, and the calls by which vm fills them.
//!
//! Core keeps count; the page tables are the machine's. Long work goes in chunks of `PAGES_AT_ONCE` with preemption
//! points. Neighbours: `life` (threads leave their space when they die), `call`.

use crate::{Machine, Node, Space, machine::Mapped, memory::copy::CHUNK_BYTES, stop::Stop, stop::preemption_point};

use abi::{Errno, layout::PAGE_BYTES, layout::SPACES, layout::USER_END, layout::map};

/// Most pages worked on between two preemption points.
pub const PAGES_AT_ONCE: u64 = CHUNK_BYTES / ENTRY_COST;
/// To change a page's entry takes as long as to copy so many bytes.
const ENTRY_COST: u64 = 128;

/// A page range of user addresses. `EINVAL` when it is not aligned, `EFAULT` when it leaves them.
fn check_pages(address: u64, pages: u64) -> Result<(), Errno> {
    if !address.is_multiple_of(PAGE_BYTES) {
        return Err(Errno::EINVAL);
    }
    let end = pages.checked_mul(PAGE_BYTES).and_then(|bytes| bytes.checked_add(address));
    if end.is_some_and(|end| end <= USER_END) { Ok(()) } else { Err(Errno::EFAULT) }
}

/// A range of frames. `EINVAL` when it is not aligned, or has no end.
fn check_frames(frame: u64, pages: u64) -> Result<(), Errno> {
    let end = pages.checked_mul(PAGE_BYTES).and_then(|bytes| bytes.checked_add(frame));
    if frame.is_multiple_of(PAGE_BYTES) && end.is_some() { Ok(()) } else { Err(Errno::EINVAL) }
}

/// Checks mapping flags: none but `allowed`, and never writable and executable together.
fn check_flags(flags: u64, allowed: u64) -> Result<(), Errno> {
    let both = map::WRITE | map::EXECUTE;
    if flags & !allowed != 0 || flags & both == both { Err(Errno::EINVAL) } else { Ok(()) }
}

/// `SpaceCreate` → number.
pub fn create_space<M: Machine>(node: &mut Node, m: &mut M) -> Result<u64, Stop> {
    let is_free = |node: &Node, index: usize| node.spaces[index] == 0;
    let index = node.search(m, 1..SPACES, node.next_space, is_free)?.ok_or(Errno::ENOMEM)?;
    m.space_create(Space(index as u16))?;
    node.spaces[index] = 1;
    node.next_space = index + 1;
    Ok(index as u64)
}

/// `SpaceDestroy (space)`.
pub fn destroy_space<M: Machine>(node: &mut Node, m: &mut M, space: u64) -> Result<u64, Stop> {
    let space = existing_space(node, space)?;
    if node.spaces[space.0 as usize] > 1 {
        return Err(Errno::EAGAIN.into());
    }
    while let Some(next) = m.space_destroy(space, node.threads.running().progress) {
        node.threads.running_mut().progress = next;
        preemption_point(m)?;
    }
    node.spaces[space.0 as usize] = 0;
    Ok(0)
}

/// The space with this number. `EINVAL`: there is none.
pub fn existing_space(node: &Node, space: u64) -> Result<Space, Errno> {
    match usize::try_from(space).ok().and_then(|index| node.spaces.get(index)) {
        Some(1..) => Ok(Space(space as u16)),
        _ => Err(Errno::EINVAL),
    }
}

/// `SpaceMap (space, address, frame, pages, flags)` → pages.
pub fn map_space<M: Machine>(node: &mut Node, m: &mut M, words: [u64; 5]) -> Result<u64, Stop> {
    let [space, address, frame, pages, flags] = words;
    let space = existing_space(node, space)?;
    check_pages(address, pages)?;
    check_flags(flags, map::WRITE | map::EXECUTE | map::ZERO | map::UNCACHED | map::COMBINED)?;
    check_frames(frame, pages)?;
    let page_cost = if flags & map::ZERO != 0 { PAGE_BYTES } else { ENTRY_COST };
    in_page_chunks(node, m, pages, page_cost, |m, done, chunk| {
        let offset = done * PAGE_BYTES;
        m.space_map(space, address + offset, frame + offset, chunk, flags)
    })
}

/// `SpaceCopy (from, to, address, pages)` → pages.
pub fn copy_space<M: Machine>(node: &mut Node, m: &mut M, [from, to, address, pages]: [u64; 4]) -> Result<u64, Stop> {
    let (from, to) = (existing_space(node, from)?, existing_space(node, to)?);
    check_pages(address, pages)?;
    if from == to {
        return Err(Errno::EINVAL.into());
    }
    in_page_chunks(node, m, pages, ENTRY_COST, |m, done, chunk| {
        m.space_copy(from, to, address + done * PAGE_BYTES, chunk)
    })
}

/// `SpaceProtect (space, address, pages, flags)`; without flags `SpaceUnmap (space, address, pages)`.
pub fn change_space<M: Machine>(node: &mut Node, m: &mut M, words: [u64; 3], flags: Option<u64>) -> Result<u64, Stop> {
    let [space, address, pages] = words;
    let space = existing_space(node, space)?;
    check_pages(address, pages)?;
    check_flags(flags.unwrap_or(0), map::WRITE | map::EXECUTE | map::UNCACHED | map::COMBINED | map::NONE)?;
    in_page_chunks(node, m, pages, ENTRY_COST, |m, done, chunk| {
        m.space_change(space, address + done * PAGE_BYTES, chunk, flags);
        Mapped { pages: chunk, result: Ok(()) }
    })?;
    Ok(0)
}

/// Does long work on pages in chunks, keeping the caller's progress. A page costs as much as it does to copy `page_cost` bytes.
/// → pages done; word 0 says why not all: 0 or the error.
fn in_page_chunks<M: Machine>(
    node: &mut Node,
    m: &mut M,
    pages: u64,
    page_cost: u64,
    mut work: impl FnMut(&mut M, u64, u64) -> Mapped,
) -> Result<u64, Stop> {
    let caller = node.current();
    let mut done = node.threads[caller].progress;
    let mut result = Ok(0);
    while done < pages && result.is_ok() {
        let mapped = work(m, done, (node.chunk_bytes / page_cost).min(pages - done));
        done += mapped.pages;
        result = mapped.result.map(|()| 0);
        if done < pages && result.is_ok() && m.interrupt_pending() {
            node.threads[caller].progress = done;
            return Err(Stop::Preempted);
        }
    }
    match result {
        Err(error) if error != Errno::ENOMEM => Err(error.into()),
        _ => {
            node.threads[caller].frame.rdi = abi::Word::to_word(result);
            Ok(done)
        }
    }
}

/// `Donate (frame, pages)`.
pub fn donate_frames<M: Machine>(m: &mut M, frame: u64, pages: u64) -> Result<u64, Errno> {
    check_frames(frame, pages)?;
    if pages == 0 {
        return Err(Errno::EINVAL);
    }
    m.donate(frame, pages).map(|()| 0)
}
