//! Pipes in preserved memory: their records, and the pages that hold their bytes.

use super::{
    PIPE_PAGE, Store,
    pool::ROOT,
    records::{Extent, NextRecord, PipeRecord},
};
use abi::{Endpoint, Errno};

impl Store {
    /// Makes the record of an empty pipe. `ENFILE`: no place is free.
    pub fn new_pipe(&self, capacity: usize, user: u32) -> Result<u16, Errno> {
        let place = self.pipes.pool.take(ROOT, self.turn()).ok_or(Errno::ENFILE)?;
        let record = PipeRecord { capacity: capacity as u32, ..PipeRecord::empty(user) };
        self.pipes.table.put_unreferenced(&self.recover, place, &record);
        self.pipe_extents.put_unreferenced(&self.recover, place, record.extent.to_value());
        Ok(place as u16)
    }

    /// Sets the record of a pipe.
    pub fn set_pipe(&self, place: u16, record: &PipeRecord) {
        self.pipes.table.set(&self.recover, place as usize, record);
        self.set_pipe_extent(place, record.extent);
    }

    /// Sets the extent of a pipe.
    #[inline]
    pub fn set_pipe_extent(&self, place: u16, extent: Extent) {
        self.pipe_extents.set(&self.recover, place as usize, extent.to_value());
    }

    /// Frees the record of a pipe, but not its pages.
    pub fn release_pipe(&self, place: u16) {
        self.release(&self.pipes, place as usize);
    }

    /// Takes a page for a pipe; `None`: none is free.
    pub fn new_page(&self) -> Option<u16> {
        self.pages.pool.take(ROOT, self.turn()).map(|page| page as u16)
    }

    /// Sets the page that follows `before`.
    pub fn link_page(&self, before: u16, page: u16) {
        self.pages.table.set(&self.recover, before as usize, &NextRecord(page));
    }

    /// Frees an empty page.
    pub fn release_page(&self, page: u16) {
        self.release(&self.pages, page as usize);
    }

    /// Fills a part of a page from a program's memory.
    pub fn fetch(&self, page: u16, offset: usize, bytes: usize, from: Endpoint, address: u64) -> Result<(), Errno> {
        self.content.fetch(&self.recover, page as usize * PIPE_PAGE + offset, bytes, from, address)
    }

    /// Fills a part of a page.
    pub fn write(&self, page: u16, offset: usize, bytes: &[u8]) {
        self.content.write(&self.recover, page as usize * PIPE_PAGE + offset, bytes);
    }

    /// Reads a part of a page.
    pub fn read(&self, page: u16, offset: usize, into: &mut [u8]) {
        self.content.read(&self.recover, page as usize * PIPE_PAGE + offset, into);
    }

    /// Copies a part of a page to a program's memory.
    pub fn store(&self, page: u16, offset: usize, bytes: usize, to: Endpoint, address: u64) -> Result<(), Errno> {
        self.content.store(&self.recover, page as usize * PIPE_PAGE + offset, bytes, to, address)
    }
}
