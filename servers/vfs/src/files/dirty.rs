//! Dirty pages: what programs have written over in files, or appended to them, and file systems have not heard of yet.
//!
//! A write within a file goes into a page here, one message instead of two, and the file system gets the page when the file is synced, five
//! seconds later, or before anything else is asked of it about that file. Only pages that the file has space for are written so, which is
//! found out once for a file that is written over a second time ([`Files::admit`]), or the last pages of a file that grows, if its file system has room
//! for certain ([`Files::append`]): so writing back cannot fail for want of space.
//! The pages are in preserved memory: a successor writes back what its predecessor has accepted.
//!
//! Invariants. While a request that may change a file is in progress ([`super::known::Change`]), the file has no dirty pages but those that this request
//! writes, and gets none: whoever makes such a request settles the file first ([`Files::settle`]), in the same turn. Likewise for a request
//! that reads. What the page cache knows of a file are pages that are not dirty. A file with dirty pages is in use.
//! Neighbours: `write_back` (how they go), `keep::dirty` (the memory), `objects::regular` (reads and writes), `mappings` (syncs, and settles for those who read).

mod last_page;
#[cfg(test)]
mod tests;
mod write_back;

pub(super) use last_page::Leaving;

use super::{Files, inode::Inode, mount::Mount, vnode::NodeRef};
use crate::{
    keep::{Store, records::DirtyRecord},
    memory::buffer::Piece,
};
use abi::{Endpoint, Errno, layout::PAGE_BYTES};
use alloc::{rc::Rc, vec::Vec};
use core::cell::{Cell, RefCell};
use server::Lock;
use sys::{fallible::TryVec, time};

/// Pages of one file that may be dirty: they are found by bisection, and a new one moves those behind it.
const FILE_PAGES: usize = 1024;
/// Where pages end that have numbers of 32 bits.
const LAST_PAGE: u64 = u32::MAX as u64 * PAGE_BYTES;
/// Pages that one write may make dirty.
const WRITE_PAGES: u64 = 16;
/// Pages that are written back by one request: what a [`Run`] can count in bytes.
const REQUEST_PAGES: u16 = 15;

/// A dirty page, or several that follow one another in the file and in preserved memory: those are kept as one only at the end of a file that grows.
#[derive(Clone, Copy, Debug)]
struct Run {
    /// Number of the first one in the file.
    number: u32,
    /// How many pages there are places for: all that hold something, and one more at most.
    pages: u16,
    /// Where in the first one begins what they hold: more than 0 only if the file system has a part of it.
    start: u16,
    /// Where, from the beginning of the first one on, ends what they hold, and what the file has of them: less than all only at the end of the file.
    end: u16,
    /// The first one's place in preserved memory.
    place: u32,
}

impl Run {
    /// Where in the file the first one begins.
    fn file_start(&self) -> u64 {
        u64::from(self.number) * PAGE_BYTES
    }

    /// Where in the file ends what they hold.
    fn file_end(&self) -> u64 {
        self.file_start() + u64::from(self.end)
    }

    /// With the pages of another run, if they follow these without a gap, and one request may write them all.
    fn followed_by(self, next: &Run) -> Option<Run> {
        let is_whole = u64::from(self.end) == u64::from(self.pages) * PAGE_BYTES;
        let pages = self.pages + next.pages;
        let follows = next.start == 0
            && next.number == self.number + u32::from(self.pages)
            && next.place == self.place + u32::from(self.pages);
        (is_whole && follows && pages <= REQUEST_PAGES).then(|| Run { pages, end: self.end + next.end, ..self })
    }

    /// The place of a page behind the first one, of which this part is dirty.
    #[cold]
    fn later_place_of(&self, part: &Part) -> Option<u32> {
        let page = part.number - u64::from(self.number);
        let end = page.saturating_mul(PAGE_BYTES).saturating_add(part.offset + part.bytes);
        (end <= self.end.into()).then_some(self.place + page as u32)
    }
}

/// The dirty pages of an inode, and whether there may be more of them.
#[derive(Debug, Default)]
pub struct Dirty {
    /// In ascending order.
    runs: RefCell<Vec<Run>>,
    /// The last change was a write that found this inode fit for dirty pages.
    is_admitted: Cell<bool>,
    /// It was written over since it is in use.
    was_written_over: Cell<bool>,
    /// The first so many bytes have no holes.
    solid_bytes: Cell<u64>,
    /// Its size when the file system was asked for that.
    size_then: Cell<u64>,
    /// What became of dirty pages that could not be written back, until a sync tells.
    failure: Cell<Option<Errno>>,
    /// The file has had no content since it was created.
    is_blank: Cell<bool>,
    /// What its file system's room is less by for them, in bytes.
    kept_bytes: Cell<u64>,
    /// Its name is being removed, and its only dirty page with it: see [`Files::begin_leaving`].
    is_leaving: Cell<bool>,
    /// Its place in the list of files with dirty pages, while it has some.
    listed_at: Cell<usize>,
    /// Held by who writes them back.
    writing_back: Lock<()>,
}

impl Dirty {
    /// Notes that the file has just been created, or has content.
    pub(super) fn set_blank(&self, is_blank: bool) {
        self.is_blank.set(is_blank);
    }

    /// Whether there are dirty pages.
    #[inline]
    pub fn is_any(&self) -> bool {
        !self.runs.borrow().is_empty()
    }

    /// A request that may change the file begins: of its space too, unless it `writes` only.
    #[inline]
    pub(super) fn change_begins(&self, writes: bool) {
        self.is_admitted.set(false);
        if !writes {
            self.solid_bytes.set(0);
            self.size_then.set(0);
        }
    }

    /// The place of a page of which this part is dirty.
    #[inline(always)] // A write over a page looks twice: a call would cost some 20 ticks each time.
    fn place_of(&self, part: &Part) -> Option<u32> {
        let runs = self.runs.borrow();
        match runs.binary_search_by_key(&part.number, |run| run.number.into()) {
            Ok(index) => {
                let run = &runs[index];
                let is_there = part.offset >= run.start.into() && part.offset + part.bytes <= run.end.into();
                is_there.then_some(run.place)
            }
            Err(index) => runs.get(index.checked_sub(1)?)?.later_place_of(part),
        }
    }

    /// The next pages to be written back, by one request: those in the place `last` are the last.
    fn next(&self, last: Option<u32>) -> Option<Run> {
        let runs = self.runs.borrow();
        let is_early = |run: &Run| Some(run.place) != last;
        let index = runs.iter().position(is_early).unwrap_or(0);
        let (first, others) = runs.get(index..)?.split_first()?;
        let mut others = others.iter().take_while(|run| is_early(run));
        let (Ok(all) | Err(all)) = others.try_fold(*first, |all, run| all.followed_by(run).ok_or(all));
        Some(all)
    }

    /// Takes the last run out that begins in these pages, and not behind this byte of the file.
    fn take_last_of(&self, pages: &Run, last_byte: u64) -> Option<Run> {
        let mut runs = self.runs.borrow_mut();
        let index = runs.partition_point(|run| run.file_start() <= last_byte).checked_sub(1)?;
        (runs[index].number >= pages.number).then(|| runs.remove(index))
    }

    /// The place of the page that was written last.
    fn newest(&self, store: &Store) -> Option<u32> {
        self.runs.borrow().iter().map(|run| run.place).max_by_key(|place| store.dirty_time(*place))
    }

    /// The last pages of the file, which are dirty.
    fn last(&self) -> Option<Run> {
        self.runs.borrow().last().copied()
    }

    /// They have changed.
    fn set_last(&self, run: Run) {
        if let Some(last) = self.runs.borrow_mut().last_mut() {
            *last = run;
        }
    }

    fn remove(&self, number: u32) {
        self.runs.borrow_mut().retain(|run| run.number != number);
    }

    /// Room for so many further pages. Otherwise they cannot be dirty.
    fn has_room(&self, pages: usize) -> bool {
        let mut runs = self.runs.borrow_mut();
        runs.len() + pages <= FILE_PAGES && runs.try_make_room(pages).is_ok()
    }

    #[expect(clippy::disallowed_methods, reason = "there is room")]
    fn insert(&self, run: Run) {
        let mut runs = self.runs.borrow_mut();
        let index = runs.partition_point(|other| other.number < run.number);
        runs.insert(index, run);
    }
}

/// A part of a page, as a transfer goes through it.
struct Part {
    number: u64,
    offset: u64,
    bytes: u64,
    /// Of the program's memory.
    address: u64,
}

/// The parts of pages from `position` on that a piece of a program's memory goes to or comes from.
fn parts(position: u64, piece: Piece) -> impl Iterator<Item = Part> + Clone {
    let mut done = 0;
    core::iter::from_fn(move || {
        let at = position + done;
        let bytes = (piece.bytes - done).min(PAGE_BYTES - at % PAGE_BYTES);
        let address = piece.address.wrapping_add(done);
        done += bytes;
        (bytes > 0).then_some(Part { number: at / PAGE_BYTES, offset: at % PAGE_BYTES, bytes, address })
    })
}

/// The files with dirty pages.
pub(super) struct DirtyFiles {
    store: Rc<Store>,
    nodes: RefCell<Vec<NodeRef>>,
}

impl DirtyFiles {
    pub(super) fn new(store: Rc<Store>) -> DirtyFiles {
        DirtyFiles { store, nodes: RefCell::default() }
    }

    /// Room for another one. False: no memory.
    fn has_room(&self) -> bool {
        self.nodes.borrow_mut().try_make_room(1).is_ok()
    }

    #[expect(clippy::disallowed_methods, reason = "there is room")]
    fn add(&self, node: &NodeRef) {
        let mut nodes = self.nodes.borrow_mut();
        node.dirty().listed_at.set(nodes.len());
        nodes.push(node.clone());
    }

    fn remove(&self, inode: &Inode) {
        let mut nodes = self.nodes.borrow_mut();
        let index = inode.dirty().listed_at.get();
        let is_listed = nodes.get(index).is_some_and(|node| core::ptr::eq(&**node.inode(), inode));
        let removed = is_listed.then(|| nodes.swap_remove(index));
        if let (true, Some(moved)) = (is_listed, nodes.get(index)) {
            moved.dirty().listed_at.set(index);
        }
        drop(nodes);
        drop(removed);
    }

    fn any(&self, wanted: impl Fn(&NodeRef) -> bool) -> Option<NodeRef> {
        self.nodes.borrow().iter().find(|node| !node.dirty().is_leaving.get() && wanted(node)).cloned()
    }
}

impl Files {
    /// Takes what a program writes over in a file into dirty pages, for a user who is charged for them. False: nothing has been done, and the
    /// file system has to be asked.
    pub fn write_over(&self, node: &NodeRef, position: u64, from: Endpoint, piece: Piece, user: u32) -> bool {
        let dirty = node.dirty();
        let end = position.saturating_add(piece.bytes);
        if !dirty.is_admitted.get() || end > dirty.solid_bytes.get().min(node.size()) {
            return false;
        }
        let is_whole = |part: &Part| {
            part.offset == 0 && (part.bytes == PAGE_BYTES || part.number * PAGE_BYTES + part.bytes == node.size())
        };
        let mut new = 0;
        for part in parts(position, piece) {
            if dirty.place_of(&part).is_none() {
                if !is_whole(&part) || new == WRITE_PAGES {
                    return false;
                }
                new += 1;
            }
        }
        self.has_room(dirty, user, new as usize) && self.fill(node, parts(position, piece), from, user)
    }

    /// A file has no dirty pages any more.
    fn is_clean(&self, node: &NodeRef) {
        node.inode().note_ahead();
        let kept_bytes = node.dirty().kept_bytes.take();
        if kept_bytes > 0 {
            node.file_system().room().end_pages(kept_bytes);
        }
        node.known_stat().is_written_back();
        self.dirty.remove(node.inode());
    }

    fn has_room(&self, dirty: &Dirty, user: u32, new: usize) -> bool {
        let store = &self.dirty.store;
        new == 0 || store.has_room_for_dirty(user, new) && dirty.has_room(new) && self.dirty.has_room()
    }

    fn fill(&self, node: &NodeRef, parts: impl Iterator<Item = Part>, from: Endpoint, user: u32) -> bool {
        let (store, now_ns) = (&self.dirty.store, time::real_ns());
        for part in parts {
            let known = node.dirty().place_of(&part);
            let (page, start, end) = (part.number as u32, part.offset as u16, (part.offset + part.bytes) as u16);
            let record = DirtyRecord { node: node.record(), page, start, end, user };
            let place = known.or_else(|| store.new_dirty(&record));
            let Some(place) = place else { return false };
            let filled = store.fetch_dirty(place, part.offset as usize, part.bytes as usize, from, part.address);
            match (filled, known) {
                (Ok(()), Some(_)) => {}
                (Ok(()), None) => self.add(node, Run { number: page, pages: 1, start, end, place }),
                (Err(_), known) => {
                    if known.is_none() {
                        store.release_dirty(place, 1);
                    }
                    return false;
                }
            }
            store.set_dirty_time(place, now_ns);
        }
        self.was_filled(node, now_ns);
        true
    }

    fn was_filled(&self, node: &NodeRef, now_ns: u64) {
        self.dirty.store.has_moved();
        node.known_stat().was_written(now_ns);
        node.mount().mark_dirty();
    }

    fn add(&self, node: &NodeRef, run: Run) {
        if !node.dirty().is_any() {
            self.dirty.add(node);
        }
        node.dirty().insert(run);
        node.inode().note_ahead();
    }

    /// Copies from dirty pages to a program's memory, if they have all of it, from `position` on, before the end of the file. Returns how many
    /// bytes; `None`: nothing has been done.
    pub fn read_dirty(&self, node: &NodeRef, position: u64, to: Endpoint, room: Piece) -> Option<u64> {
        let bytes = room.bytes.min(node.size().saturating_sub(position));
        let parts = parts(position, Piece { bytes, ..room });
        if !parts.clone().all(|part| node.dirty().place_of(&part).is_some()) {
            return None;
        }
        for part in parts {
            let place = node.dirty().place_of(&part)?;
            self.dirty.store.store_dirty(place, part.offset as usize, part.bytes as usize, to, part.address).ok()?;
        }
        Some(bytes)
    }

    /// A write that the file system has carried out lay within the file: from the second one on, others may go into dirty pages.
    pub async fn admit(&self, node: &NodeRef, end: u64) {
        let dirty = node.dirty();
        if !is_fit(node) || !dirty.was_written_over.replace(true) {
            return;
        }
        if end > dirty.solid_bytes.get() {
            if dirty.size_then.replace(node.size()) == node.size() {
                return;
            }
            let version = node.known_stat().version();
            let Ok(hole) = self.seek_data(node, 0, true).await else { return };
            if node.known_stat().version() != version {
                return;
            }
            dirty.solid_bytes.set(hole.min(LAST_PAGE));
        }
        dirty.is_admitted.set(is_fit(node));
    }

    /// Takes dirty pages over from a predecessor. False: their file is not there, or there is no memory; they are lost.
    pub fn restore_dirty(&self, node: Option<&NodeRef>, place: u32, record: &DirtyRecord) -> bool {
        self.dirty.store.claim_dirty(place, record);
        let DirtyRecord { page: number, start, end, .. } = *record;
        let pages = record.pages() as u16;
        match node {
            Some(node) if node.dirty().has_room(1) && self.dirty.has_room() => {
                self.add(node, Run { number, pages, start, end, place });
                let known = node.known_stat();
                known.was_written(self.dirty.store.dirty_time(place).max(known.written_ns()));
                true
            }
            _ => {
                self.dirty.store.release_dirty(place, pages.into());
                false
            }
        }
    }
}

/// Whether a file may have dirty pages: it can be found by its name, nobody shares it in memory, nothing changes it, and no
/// write takes rights from it.
fn is_fit(node: &NodeRef) -> bool {
    const SET_IDS: u32 = 0o6000;
    !node.is_unlinked()
        && node.shared_object().is_none()
        && !node.mount().is_volatile()
        && node.mode() & SET_IDS == 0
        && node.known_stat().unchanging().is_some()
        && !node.dirty().is_any()
}
