//! Pages of files that the file system has not heard of, in preserved memory. A record may name several, whose places follow one another.

use super::{FILE_PAGE, Store, records::DirtyRecord};
use abi::{Endpoint, Errno, layout::PAGE_BYTES};
use sys::grant::{Access, RangeGrant};

/// Copies a part of a page by two calls of `copy` if the end of a page of the program's is in it: the kernel is faster so (ADR 57).
fn by_pages(address: u64, bytes: usize, copy: impl Fn(usize, usize) -> Result<(), Errno>) -> Result<(), Errno> {
    let first = bytes.min((PAGE_BYTES - address % PAGE_BYTES) as usize);
    copy(0, first)?;
    if first < bytes { copy(first, bytes - first) } else { Ok(()) }
}

impl Store {
    /// Takes a place for the page of a file; `None`: none is free, or its user has his share.
    pub fn new_dirty(&self, record: &DirtyRecord) -> Option<u32> {
        let place = self.dirty.pool.take(record.user, self.turn())?;
        self.dirty.table.set(&self.recover, place, record);
        Some(place as u32)
    }

    /// Whether a user may have so many further ones in this turn.
    pub fn has_room_for_dirty(&self, user: u32, pages: usize) -> bool {
        self.dirty.pool.room(self.turn()) >= pages && self.dirty.pool.has_share(user, pages)
    }

    /// Takes the place behind this one for the next page of the same file, at the cost of the same user. False: it is not free.
    pub fn take_next_dirty(&self, place: u32) -> bool {
        self.dirty.pool.take_next(place as usize, self.turn())
    }

    /// Pages hold more: up to `end` now.
    pub fn lengthen_dirty(&self, place: u32, end: u16) {
        if let Some(record) = self.dirty.table.get(&self.recover, place as usize).record() {
            self.dirty.table.set(&self.recover, place as usize, &DirtyRecord { end, ..record });
        }
    }

    /// Has a successor know nothing of a page, whose place is kept. Returns what [`Store::remember_dirty`] needs.
    pub fn forget_dirty(&self, place: u32) -> Option<DirtyRecord> {
        let record = self.dirty.table.get(&self.recover, place as usize).record();
        self.dirty.table.clear(&self.recover, place as usize);
        record
    }

    /// Undoes [`Store::forget_dirty`].
    pub fn remember_dirty(&self, place: u32, record: &DirtyRecord) {
        self.dirty.table.set(&self.recover, place as usize, record);
    }

    /// Frees so many places from this one on: the file system has what is there, or nobody needs it. They are taken again in their order.
    pub fn release_dirty(&self, place: u32, places: u32) {
        self.dirty.table.clear(&self.recover, place as usize);
        (place..place + places).rev().for_each(|place| self.release(&self.dirty, place as usize));
    }

    /// Fills a part of pages from a program's memory, at once: a write that is undone is made again.
    pub fn fetch_dirty(
        &self,
        place: u32,
        offset: usize,
        bytes: usize,
        from: Endpoint,
        address: u64,
    ) -> Result<(), Errno> {
        let start = place as usize * FILE_PAGE + offset;
        let copy = |done: usize, bytes| {
            self.dirty_content.fetch(&self.recover, start + done, bytes, from, address.wrapping_add(done as u64))
        };
        by_pages(address, bytes, copy)
    }

    /// Sets when a page was written, in ns since 1970, at once too.
    pub fn set_dirty_time(&self, place: u32, written_ns: u64) {
        self.dirty_times.write_word(&self.recover, place as usize, written_ns);
    }

    /// When a page was written.
    pub fn dirty_time(&self, place: u32) -> u64 {
        self.dirty_times.read_word(&self.recover, place as usize)
    }

    /// Copies a part of a page to a program's memory.
    pub fn store_dirty(
        &self,
        place: u32,
        offset: usize,
        bytes: usize,
        to: Endpoint,
        address: u64,
    ) -> Result<(), Errno> {
        let start = place as usize * FILE_PAGE + offset;
        let copy = |done: usize, bytes| {
            self.dirty_content.store(&self.recover, start + done, bytes, to, address.wrapping_add(done as u64))
        };
        by_pages(address, bytes, copy)
    }

    /// Lets a file system read a part of pages. Errors as of `sys::grant::lend`.
    pub fn grant_dirty(&self, place: u32, offset: usize, bytes: usize, to: Endpoint) -> Result<RangeGrant, Errno> {
        self.dirty_content.grant(&self.recover, place as usize * FILE_PAGE + offset, bytes, to, Access::Read)
    }

    /// All pages that a predecessor has left.
    pub fn dirty_pages(&self) -> impl Iterator<Item = (u32, DirtyRecord)> + '_ {
        self.dirty.table.entries(&self.recover).filter_map(|(place, entry)| Some((place as u32, entry.record()?)))
    }

    /// Takes pages over from a predecessor.
    pub fn claim_dirty(&self, place: u32, record: &DirtyRecord) {
        let places = place as usize..place as usize + record.pages();
        places.for_each(|place| self.dirty.pool.claim(place, record.user));
    }
}
