//! The bytes of a pipe: a queue of pages in preserved memory, allocated as it fills and freed as it empties. An empty pipe keeps a page of which
//! less than half has been used, so that short messages there and back do not take and free one each.
//!
//! Bytes are written only behind the last one and never over others, and a freed page is used again only after
//! the next commit. So what the preserved record says holds, wherever a death leaves it. What every read and write changes is preserved in a word
//! of its own: the [`Extent`].

use crate::keep::{
    PIPE_PAGE,
    records::{Extent, MARK_RESET, MARK_WRITE_OPEN, NOWHERE, PipeRecord},
};
use abi::{Endpoint, Errno};
use alloc::collections::VecDeque;
use sys::fallible::TryQueue;

/// Where pages come from.
pub trait Pages {
    /// An unused page.
    fn take(&self) -> Option<u16>;
    /// Gives a page back.
    fn give(&self, page: u16);
    /// Preserves that `page` follows `before`.
    fn link(&self, before: u16, page: u16);
    /// Fills a part of a page from a program's memory.
    fn fill(&self, page: u16, at: usize, bytes: usize, from: Endpoint, address: u64) -> Result<(), Errno>;
    /// Copies a part of a page into a program's memory.
    fn drain(&self, page: u16, at: usize, bytes: usize, to: Endpoint, address: u64) -> Result<(), Errno>;
    /// Fills a part of a page.
    fn write(&self, page: u16, at: usize, bytes: &[u8]);
    /// Reads a part of a page.
    fn read(&self, page: u16, at: usize, into: &mut [u8]);
    /// Preserves the state of a pipe.
    fn save(&self, pipe: u16, record: &PipeRecord);
    /// Preserves the extent of a pipe, if nothing else of its state has changed.
    fn save_extent(&self, pipe: u16, extent: Extent);
    /// The pipe is no more.
    fn end(&self, pipe: u16);
}

/// See the head of the file. Invariant: the pages are as many as `start + len` bytes need, or one more.
#[derive(Debug)]
pub struct Ring {
    pages: VecDeque<u16>,
    /// Where the bytes begin in the first page.
    start: usize,
    len: usize,
    capacity: usize,
    /// As in the record: the writer has closed its socket with unread data, and the reader has not been told; and openings of a FIFO.
    marks: u32,
    /// The place of the first of what goes with its bytes.
    ancillary: u16,
    /// What has changed since it was preserved.
    change: Change,
}

/// What of a ring has to be preserved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Change {
    Nothing,
    Extent,
    /// More than the extent.
    Record,
}

impl Ring {
    /// An empty ring that may hold `capacity` bytes. No page yet.
    pub fn new(capacity: usize) -> Self {
        Ring {
            pages: VecDeque::new(),
            start: 0,
            len: 0,
            capacity,
            marks: 0,
            ancillary: NOWHERE,
            change: Change::Nothing,
        }
    }

    /// As a predecessor has left it. `None`: the record makes no sense.
    #[expect(clippy::disallowed_methods, reason = "a successor needs no more than its predecessor had")]
    pub fn restore(record: &PipeRecord, next: impl Fn(u16) -> Option<u16>) -> Option<Self> {
        let Extent { start, bytes, ancillary } = record.extent;
        let (start, len, marks) = (start as usize, bytes as usize, record.marks);
        let mut ring = Ring { start, len, marks, ancillary, ..Ring::new(record.capacity as usize) };
        if record.first == NOWHERE {
            return (start == 0 && len == 0).then_some(ring);
        }
        ring.pages.push_back(record.first);
        while ring.pages.back() != Some(&record.last) {
            ring.pages.push_back(next(*ring.pages.back()?)?);
            if ring.pages.len() * PIPE_PAGE > start + len + PIPE_PAGE {
                return None;
            }
        }
        (start < PIPE_PAGE && start + len <= ring.pages.len() * PIPE_PAGE && len <= ring.capacity).then_some(ring)
    }

    /// Preserves it as this pipe's, whose user this is, if it has changed.
    #[inline]
    pub fn save(&mut self, world: &impl Pages, pipe: u16, user: u32) {
        match core::mem::replace(&mut self.change, Change::Nothing) {
            Change::Nothing => {}
            Change::Extent => world.save_extent(pipe, self.extent()),
            Change::Record => self.save_record(world, pipe, user),
        }
    }

    /// Not a part of [`Ring::save`], which most reads and writes come by.
    #[inline(never)]
    fn save_record(&self, world: &impl Pages, pipe: u16, user: u32) {
        world.save(pipe, &self.record(user));
    }

    fn extent(&self) -> Extent {
        Extent { start: self.start as u32, bytes: self.len as u32, ancillary: self.ancillary }
    }

    /// As it is preserved.
    pub fn record(&self, user: u32) -> PipeRecord {
        let page = |page: Option<&u16>| page.copied().unwrap_or(NOWHERE);
        PipeRecord {
            capacity: self.capacity as u32,
            first: page(self.pages.front()),
            last: page(self.pages.back()),
            user,
            marks: self.marks,
            extent: self.extent(),
        }
    }

    /// Bytes, or what goes with them, have come or gone.
    #[inline]
    fn has_moved(&mut self) {
        self.change = self.change.max(Change::Extent);
    }

    /// Sets the place of the first of what goes with its bytes; `NOWHERE`: nothing.
    pub fn set_ancillary(&mut self, place: u16) {
        if self.ancillary != place {
            self.ancillary = place;
            self.has_moved();
        }
    }

    /// Whether the writer has closed its socket with unread data, and the reader has not been told.
    pub fn is_reset(&self) -> bool {
        self.marks & MARK_RESET != 0
    }

    /// Sets what [`Ring::is_reset`] returns.
    pub fn set_reset(&mut self, reset: bool) {
        if self.is_reset() != reset {
            self.change = Change::Record;
            self.marks ^= MARK_RESET;
        }
    }

    /// How often, of a FIFO, it was opened for writing, modulo 2^31.
    pub fn write_opens(&self) -> u32 {
        self.marks / MARK_WRITE_OPEN
    }

    /// Counts one more opening for writing.
    pub fn count_write_open(&mut self) {
        self.marks = self.marks.wrapping_add(MARK_WRITE_OPEN);
        self.change = Change::Record;
    }

    /// Its pages.
    pub fn pages(&self) -> impl Iterator<Item = u16> + '_ {
        self.pages.iter().copied()
    }

    /// Bytes in it.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Bytes that may be put in.
    pub fn room(&self) -> usize {
        self.capacity - self.len
    }

    /// The most it may hold.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Sets what it may hold; not less than what is in it.
    pub fn set_capacity(&mut self, capacity: usize) {
        self.capacity = capacity.max(self.len);
        self.change = Change::Record;
    }

    /// Makes sure that the page of the next byte exists. False: no page is free.
    #[inline]
    fn grow(&mut self, world: &impl Pages) -> Result<bool, Errno> {
        if self.start + self.len < self.pages.len() * PIPE_PAGE { Ok(true) } else { self.add_page(world) }
    }

    #[inline(never)]
    fn add_page(&mut self, world: &impl Pages) -> Result<bool, Errno> {
        let Some(page) = world.take() else { return Ok(false) };
        if let Err(error) = self.pages.try_push_back(page) {
            world.give(page);
            return Err(error);
        }
        self.change = Change::Record;
        if let Some(&last) = self.pages.iter().nth_back(1) {
            world.link(last, page);
        }
        Ok(true)
    }

    /// Takes up to `bytes` bytes from a program's memory, within one page. Returns how many; 0: no page is free.
    #[inline]
    pub fn fill(&mut self, world: &impl Pages, from: Endpoint, address: u64, bytes: usize) -> Result<usize, Errno> {
        if !self.grow(world)? {
            return Ok(0);
        }
        let end = self.start + self.len;
        let (page, at) = (self.pages[end / PIPE_PAGE], end % PIPE_PAGE);
        let bytes = bytes.min(self.room()).min(PIPE_PAGE - at);
        world.fill(page, at, bytes, from, address)?;
        self.len += bytes;
        self.has_moved();
        Ok(bytes)
    }

    /// Copies up to `bytes` of the first bytes, within one page, into a program's memory, and removes them. Returns how many.
    pub fn drain(&mut self, world: &impl Pages, to: Endpoint, address: u64, bytes: usize) -> Result<usize, Errno> {
        let bytes = bytes.min(self.len).min(PIPE_PAGE - self.start);
        if bytes > 0
            && let Some(&page) = self.pages.front()
        {
            world.drain(page, self.start, bytes, to, address)?;
            self.start += bytes;
            self.len -= bytes;
            self.has_moved();
            self.give_back(world);
        }
        Ok(bytes)
    }

    /// Copies up to `bytes` bytes, `skipped` behind the first, within one page, into a program's memory; they stay. Returns how many.
    pub fn peek(
        &self,
        world: &impl Pages,
        skipped: usize,
        to: Endpoint,
        address: u64,
        bytes: usize,
    ) -> Result<usize, Errno> {
        let at = self.start + skipped;
        let bytes = bytes.min(self.len - skipped).min(PIPE_PAGE - at % PIPE_PAGE);
        world.drain(self.pages[at / PIPE_PAGE], at % PIPE_PAGE, bytes, to, address)?;
        Ok(bytes)
    }

    /// Appends bytes, for which there is room. False: no page is free; then a part of them is appended.
    pub fn put(&mut self, world: &impl Pages, mut bytes: &[u8]) -> Result<bool, Errno> {
        while !bytes.is_empty() {
            if !self.grow(world)? {
                return Ok(false);
            }
            let end = self.start + self.len;
            let (now, later) = bytes.split_at(bytes.len().min(PIPE_PAGE - end % PIPE_PAGE));
            world.write(self.pages[end / PIPE_PAGE], end % PIPE_PAGE, now);
            self.len += now.len();
            self.has_moved();
            bytes = later;
        }
        Ok(true)
    }

    /// Reads bytes, `skipped` behind the first; those behind the last are 0.
    pub fn look(&self, world: &impl Pages, skipped: usize, into: &mut [u8]) {
        let mut done = 0;
        let length = into.len().min(self.len.saturating_sub(skipped));
        while done < length {
            let at = self.start + skipped + done;
            let bytes = (length - done).min(PIPE_PAGE - at % PIPE_PAGE);
            world.read(self.pages[at / PIPE_PAGE], at % PIPE_PAGE, &mut into[done..done + bytes]);
            done += bytes;
        }
    }

    /// Removes so many of the first bytes.
    pub fn skip(&mut self, world: &impl Pages, bytes: usize) {
        let bytes = bytes.min(self.len);
        self.start += bytes;
        self.len -= bytes;
        self.has_moved();
        self.give_back(world);
    }

    /// Removes the last bytes, but for the first `len`.
    pub fn truncate(&mut self, world: &impl Pages, len: usize) {
        self.len = self.len.min(len);
        let pages = (self.start + self.len).div_ceil(PIPE_PAGE);
        while self.pages.len() > pages {
            self.pages.pop_back().into_iter().for_each(|page| world.give(page));
        }
        self.change = Change::Record;
        self.give_back(world);
    }

    /// Frees the pages whose bytes have been read, and when it is empty, one that is used half.
    #[inline]
    fn give_back(&mut self, world: &impl Pages) {
        let is_used_up = self.len == 0 && self.start > PIPE_PAGE / 2;
        if is_used_up || self.start >= PIPE_PAGE {
            self.give_pages(world);
        }
    }

    #[inline(never)]
    fn give_pages(&mut self, world: &impl Pages) {
        self.change = Change::Record;
        while self.start >= PIPE_PAGE || self.len == 0 && !self.pages.is_empty() {
            self.pages.pop_front().into_iter().for_each(|page| world.give(page));
            self.start = self.start.saturating_sub(PIPE_PAGE);
        }
    }

    /// Removes everything.
    pub fn clear(&mut self, world: &impl Pages) {
        (self.start, self.len) = (0, 0);
        self.give_pages(world);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipes::tests::Programs;

    fn who() -> Endpoint {
        Endpoint::new(1, 1)
    }

    #[test]
    fn bytes_come_out_in_the_order_they_went_in_across_pages() {
        let world = Programs::new();
        let mut ring = Ring::new(65536);
        let pattern: alloc::vec::Vec<u8> = (0..9000).map(|number| (number % 251) as u8).collect();
        world.set(1, &pattern);
        let mut done = 0;
        while done < pattern.len() {
            done += ring.fill(&world, who(), done as u64, pattern.len() - done).expect("the memory is there");
        }
        assert_eq!((ring.len(), ring.pages().count()), (9000, 3));
        let mut out = 0;
        while ring.len() > 0 {
            out += ring.drain(&world, Endpoint::new(2, 1), out as u64, 1000).expect("the memory is there");
        }
        assert_eq!((out, ring.pages().count()), (9000, 1), "a page that is used by less than half");
        assert_eq!(world.get(2, 9000), pattern);
    }

    #[test]
    fn a_restored_ring_holds_the_same() {
        let world = Programs::new();
        let mut ring = Ring::new(65536);
        for _ in 0..3 {
            ring.fill(&world, who(), 0, 4096).expect("the memory is there");
        }
        ring.drain(&world, who(), 0, 100).expect("the memory is there");
        let restored = Ring::restore(&ring.record(5), |page| world.next(page)).expect("it makes sense");
        assert_eq!(restored.record(5), ring.record(5));
        assert!(restored.pages().eq(ring.pages()));
    }

    #[test]
    fn short_messages_go_behind_one_another_in_one_page_until_half_of_it_is_used() {
        let world = Programs::new();
        let mut ring = Ring::new(65536);
        for round in 0..PIPE_PAGE / 2 / 64 {
            ring.fill(&world, who(), 0, 64).expect("the memory is there");
            let restored = Ring::restore(&ring.record(5), |page| world.next(page)).expect("it makes sense");
            assert_eq!((restored.record(5), restored.start), (ring.record(5), round * 64));
            ring.drain(&world, who(), 0, 64).expect("the memory is there");
            let empty = Ring::restore(&ring.record(5), |page| world.next(page)).expect("it makes sense");
            assert_eq!((empty.record(5), empty.len(), empty.pages().count()), (ring.record(5), 0, 1));
        }
        ring.fill(&world, who(), 0, 64).expect("the memory is there");
        ring.drain(&world, who(), 0, 64).expect("the memory is there");
        assert_eq!((ring.pages().count(), ring.start), (0, 0));
        ring.fill(&world, who(), 0, 64).expect("the memory is there");
        ring.drain(&world, who(), 0, 64).expect("the memory is there");
        ring.clear(&world);
        assert_eq!((ring.pages().count(), ring.start), (0, 0), "nothing is kept in the end");
    }

    #[test]
    fn a_record_that_makes_no_sense_is_refused() {
        let extent = Extent { bytes: 10, ..Extent::EMPTY };
        let good = PipeRecord { capacity: 65536, extent, first: 1, last: 1, ..PipeRecord::empty(0) };
        let next = |_| Some(1);
        assert!(Ring::restore(&good, next).is_some());
        let with = |extent| PipeRecord { extent, ..good };
        assert!(Ring::restore(&with(Extent { bytes: 5000, ..extent }), next).is_none());
        assert!(Ring::restore(&PipeRecord { last: 2, ..good }, next).is_none());
        assert!(Ring::restore(&with(Extent { start: 4096, ..extent }), next).is_none());
        assert!(Ring::restore(&PipeRecord { first: NOWHERE, ..good }, next).is_none());
    }
}
