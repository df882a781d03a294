//! The content of regular files: reading, writing, truncating, holes.
//!
//! Invariants: no page is mapped beyond the end of a file; the bytes beyond the end in its last page are anything, and become zeros when the file
//! grows over them. Content is not in the undo log: a new page is free again after a roll-back, and an old one is written again when
//! the request is repeated.
//!
//! Pages that follow one another in the file and in memory are copied at once.

use core::ops::Range;

use fs::Errno;
use fs::file_system::{Allocation, Caller, DataSink, DataSource, S_ISGID, S_ISUID, S_IXGRP};

use crate::inode::Inode;
use crate::map::{self, MAX_PAGES};
use crate::pages;
use crate::plan::PAGE;
use crate::volume::Tmpfs;

const PAGE_BYTES: u64 = PAGE as u64;
/// Limit of the size of a file, in bytes.
pub(crate) const MAX_SIZE: u64 = MAX_PAGES * PAGE_BYTES;
/// Runs of pages or holes that one look for either passes.
const LOOK_STEPS: usize = 4096;

impl Tmpfs {
    /// Copies up to `len` bytes from `offset` on to `sink`. Returns the number of bytes.
    pub(crate) fn read_file(
        &mut self,
        inode: Inode,
        offset: u64,
        len: usize,
        sink: &mut dyn DataSink,
    ) -> Result<usize, Errno> {
        inode.require_regular(&self.memory)?;
        let len = inode.size(&self.memory).saturating_sub(offset).min(len as u64) as usize;
        let (mut done, mut at_once) = (0, u64::MAX);
        while done < len {
            let position = offset + done as u64;
            let start = (position % PAGE_BYTES) as usize;
            let wanted = ((start + len - done).div_ceil(PAGE) as u64).min(at_once);
            let (page, count) = map::run(&self.memory, inode, position / PAGE_BYTES, wanted);
            let bytes = (len - done).min(count as usize * PAGE - start);
            let put = match page {
                0 => sink.put_zeros(bytes),
                page => {
                    let place = self.memory.places().page(page) + start;
                    sink.put(self.memory.bytes(place..place + bytes))
                }
            };
            match put {
                Ok(()) => done += bytes,
                // A part of it may have a place.
                Err(_) if count > 1 => at_once = 1,
                Err(error) if done == 0 => return Err(error),
                Err(_) => break,
            }
        }
        self.note_access(inode);
        Ok(done)
    }

    /// Copies `len` bytes from `source` to `offset`. Returns the number of bytes, fewer at a limit.
    pub(crate) fn write_file(
        &mut self,
        inode: Inode,
        offset: u64,
        len: usize,
        source: &mut dyn DataSource,
        caller: Caller,
    ) -> Result<usize, Errno> {
        inode.require_regular(&self.memory)?;
        if len == 0 {
            return Ok(0);
        }
        if offset >= MAX_SIZE {
            return Err(Errno::EFBIG);
        }
        let len = (MAX_SIZE - offset).min(len as u64) as usize;
        self.clear_gap(inode, offset);
        let (mut done, mut at_once) = (0, u64::MAX);
        while done < len {
            match self.write_run(inode, offset + done as u64, len - done, at_once, source) {
                Ok(bytes) => done += bytes,
                Err(_) if at_once > 1 => at_once = 1,
                Err(error) if done == 0 => return Err(error),
                Err(_) => break,
            }
        }
        self.account_for(inode, offset + done as u64, caller)?;
        Ok(done)
    }

    /// Updates the inode after a write up to `end`.
    fn account_for(&mut self, inode: Inode, end: u64, caller: Caller) -> Result<(), Errno> {
        let now = self.now();
        let memory = &mut self.memory;
        inode.save(memory);
        inode.set_size(memory, inode.size(memory).max(end));
        inode.touch(memory, now);
        let mode = inode.mode(memory);
        if caller.uid != 0 && mode & (S_ISUID | S_ISGID) != 0 {
            inode.set_mode(memory, without_privileges(mode));
        }
        self.drop_capabilities(inode)
    }

    /// Writes to pages that lie one behind the other, `at_once` of them at most. Returns the number of bytes.
    fn write_run(
        &mut self,
        inode: Inode,
        position: u64,
        len: usize,
        at_once: u64,
        source: &mut dyn DataSource,
    ) -> Result<usize, Errno> {
        let (index, start) = (position / PAGE_BYTES, (position % PAGE_BYTES) as usize);
        let wanted = ((start + len).div_ceil(PAGE) as u64).min(at_once);
        let (page, count) = map::run(&self.memory, inode, index, wanted);
        let is_hole = page == 0;
        let (page, count) = if is_hole {
            // Whatever is taken from the source has a place.
            self.take_run(count.min(map::room(&self.memory, inode, index)?))?
        } else {
            (page, count as usize)
        };
        let bytes = len.min(count * PAGE - start);
        let place = self.memory.places().page(page);
        let taken = source.take(self.memory.bytes_mut(place + start..place + start + bytes));
        if !is_hole {
            return taken.map(|()| bytes);
        }
        let pages = page..page + count as u32;
        if let Err(error) = taken {
            pages.rev().for_each(|page| pages::give_back(&mut self.memory, page));
            return Err(error);
        }
        self.memory.bytes_mut(place..place + start).fill(0);
        if inode.size(&self.memory) > position + bytes as u64 {
            self.memory.bytes_mut(place + start + bytes..place + count * PAGE).fill(0);
        }
        for (index, page) in (index..).zip(pages) {
            map::insert(&mut self.memory, inode, index, page)?;
        }
        Ok(bytes)
    }

    /// Takes up to `most` pages that lie one behind the other. Returns the first one, and how many.
    fn take_run(&mut self, most: u64) -> Result<(u32, usize), Errno> {
        let first = pages::take(&mut self.memory)?;
        let mut count = 1;
        while (count as u64) < most && pages::next(&self.memory) == Some(first + count) {
            pages::take(&mut self.memory)?;
            count += 1;
        }
        Ok((first, count as usize))
    }

    /// Makes zeros of what lies between the end of a file and `end`, beyond it, in the last page.
    fn clear_gap(&mut self, inode: Inode, end: u64) {
        let size = inode.size(&self.memory);
        let start = size % PAGE_BYTES;
        if end > size && start > 0 {
            let part = size..end.min(size - start + PAGE_BYTES);
            self.clear_part(inode, part);
        }
    }

    /// Makes zeros of a range within one page of a file.
    fn clear_part(&mut self, inode: Inode, range: Range<u64>) {
        let (page, _) = map::find(&self.memory, inode, range.start / PAGE_BYTES);
        if page != 0 {
            let place = self.memory.places().page(page) + (range.start % PAGE_BYTES) as usize;
            self.memory.bytes_mut(place..place + (range.end - range.start) as usize).fill(0);
        }
    }

    /// Truncates or extends a file.
    pub(crate) fn resize_file(&mut self, inode: Inode, size: u64) -> Result<(), Errno> {
        inode.require_regular(&self.memory)?;
        if size > MAX_SIZE {
            return Err(Errno::EFBIG);
        }
        self.clear_gap(inode, size);
        if size < inode.size(&self.memory) {
            map::clear(&mut self.memory, inode, size.div_ceil(PAGE_BYTES)..MAX_PAGES);
        }
        let now = self.now();
        inode.save(&self.memory);
        inode.set_size(&mut self.memory, size);
        inode.touch(&mut self.memory, now);
        self.drop_capabilities(inode)
    }

    /// Changes the space that a range of a file has.
    pub(crate) fn change_space(&mut self, inode: Inode, range: Range<u64>, how: Allocation) -> Result<(), Errno> {
        inode.require_regular(&self.memory)?;
        if how != Allocation::Fill && range.end > MAX_SIZE {
            return Err(Errno::EFBIG);
        }
        match how {
            Allocation::Fill => self.fill_holes(inode, range),
            Allocation::FillAndCheck => {
                self.fill_holes(inode, range.clone())?;
                let end = inode.size(&self.memory).max(range.start).div_ceil(PAGE_BYTES);
                let beyond = range.end.div_ceil(PAGE_BYTES).saturating_sub(end);
                if beyond > pages::free(&self.memory).into() { Err(Errno::ENOSPC) } else { Ok(()) }
            }
            Allocation::Punch => self.clear_range(inode, range, true),
            Allocation::Zero => self.clear_range(inode, range, false),
        }
    }

    /// Takes zeroed pages for the holes in a range of a file. On `ENOSPC` the pages taken so far are kept.
    fn fill_holes(&mut self, inode: Inode, range: Range<u64>) -> Result<(), Errno> {
        let end = range.end.min(inode.size(&self.memory)).div_ceil(PAGE_BYTES);
        let mut index = range.start / PAGE_BYTES;
        while index < end {
            let (page, _) = map::find(&self.memory, inode, index);
            if page == 0 {
                map::room(&self.memory, inode, index)?;
                let page = pages::take_zeroed(&mut self.memory)?;
                map::insert(&mut self.memory, inode, index, page)?;
                self.pause();
            }
            index += 1;
        }
        Ok(())
    }

    /// Makes a range of a file, of which the part beyond the end does not count, read as zeros: whole pages are freed, if `frees`.
    fn clear_range(&mut self, inode: Inode, range: Range<u64>, frees: bool) -> Result<(), Errno> {
        let size = inode.size(&self.memory);
        let (start, end) = (range.start, range.end.min(size));
        if start >= end {
            return Ok(());
        }
        let now = self.now();
        inode.save(&self.memory);
        inode.touch(&mut self.memory, now);
        self.drop_capabilities(inode)?;
        // What is beyond the end need not be kept.
        let last = if end == size { end.div_ceil(PAGE_BYTES) } else { end / PAGE_BYTES };
        let whole = start.div_ceil(PAGE_BYTES)..if frees { last } else { 0 };
        let mut at = start;
        while at < end {
            let next = (at / PAGE_BYTES + 1) * PAGE_BYTES;
            if whole.contains(&(at / PAGE_BYTES)) && at.is_multiple_of(PAGE_BYTES) {
                map::clear(&mut self.memory, inode, whole.clone());
                at = whole.end * PAGE_BYTES;
                continue;
            }
            let (page, count) = map::find(&self.memory, inode, at / PAGE_BYTES);
            match page {
                0 => at = (at / PAGE_BYTES).saturating_add(count).saturating_mul(PAGE_BYTES),
                _ => {
                    self.clear_part(inode, at..end.min(next));
                    at = next;
                }
            }
        }
        Ok(())
    }

    /// Looks for data, or for a hole, from `offset` of a file on. Returns whether it was found, and where, or where to go on. `ENXIO`: `offset`
    /// is behind the end, or no data follows.
    pub(crate) fn look_for(&self, inode: Inode, offset: u64, hole: bool) -> Result<(bool, u64), Errno> {
        if inode.require_regular(&self.memory).is_err() {
            return Err(Errno::EINVAL);
        }
        let size = inode.size(&self.memory);
        if offset >= size {
            return Err(Errno::ENXIO);
        }
        let mut index = offset / PAGE_BYTES;
        for _ in 0..LOOK_STEPS {
            if index >= size.div_ceil(PAGE_BYTES) {
                return if hole { Ok((true, size)) } else { Err(Errno::ENXIO) };
            }
            let (page, count) = map::find(&self.memory, inode, index);
            if (page == 0) == hole {
                return Ok((true, offset.max(index * PAGE_BYTES)));
            }
            index += count;
        }
        Ok((false, index * PAGE_BYTES))
    }
}

/// A mode without the set-id bits, of a program that has another content or owner.
pub(crate) fn without_privileges(mode: u32) -> u32 {
    mode & !S_ISUID & if mode & S_IXGRP != 0 { !S_ISGID } else { !0 }
}
