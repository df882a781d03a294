//! The content of regular files: reading, writing and truncating.
//!
//! Invariants: the bytes of the last block beyond the end of the file are zero, and no block beyond the end is
//! allocated. A write that fails half-way restores both, and so does the successor of a process that dies in a write. File data
//! is not in the undo log: a new block is free again after the roll-back, and an old one is written again when the request is repeated.

use core::ops::Range;

use fs::Errno;
use fs::device::BlockDevice;
use fs::file_system::{Allocation, Caller, DataSink, DataSource, S_ISGID, S_ISUID, S_IXGRP};
use fs::order::Order;

use crate::block_free::Pauses;
use crate::block_map::Mapped;
use crate::hole::Clear;
use crate::inode::Inode;
use crate::volume::Ext2;

/// Largest size without the `large_file` feature, in bytes.
const SMALL_FILE: u64 = i32::MAX as u64;

/// Age in seconds after which the time of access is updated, unless the file has changed since: reading a
/// cached file seldom makes its inode dirty (Linux's `relatime`).
const ACCESS_INTERVAL: i64 = 24 * 60 * 60;

impl<D: BlockDevice> Ext2<D> {
    pub(crate) fn read_file(
        &mut self,
        number: u32,
        offset: u64,
        len: usize,
        sink: &mut dyn DataSink,
    ) -> Result<usize, Errno> {
        let inode = self.inode(number)?;
        require_regular(inode)?;
        let len = inode.size.saturating_sub(offset).min(len as u64) as usize;
        let mut done = 0;
        while done < len {
            match self.read_part(number, offset + done as u64, len - done, sink) {
                Ok(bytes) => done += bytes,
                Err(error) if done == 0 => return Err(error),
                Err(_) => break,
            }
        }
        if self.cache.has_missed() {
            return Ok(done);
        }
        let next_block = (offset + len as u64) / self.block_size();
        self.note_access(number, (len > 0).then_some(next_block as u32))?;
        Ok(done)
    }

    /// Forgets the blocks of a part of a file that was just read, and is kept by who has read it.
    pub(crate) fn forget_blocks(&mut self, number: u32, offset: u64, bytes: usize) {
        let mut index = offset.div_ceil(self.block_size());
        let end = (offset + bytes as u64).div_ceil(self.block_size());
        while index < end {
            let Ok(run) = self.find_run(number, index, (end - index) as usize) else { return };
            let Some(run) = run else {
                index += 1;
                continue;
            };
            index += run.len() as u64;
            self.cache.forget(run.start.into()..run.end.into());
        }
    }

    /// Copies the first of `len` bytes at `position` to `sink`: from blocks that are neighbours on the disk and in the cache, with one copy.
    /// Returns how many they are.
    fn read_part(&mut self, number: u32, position: u64, len: usize, sink: &mut dyn DataSink) -> Result<usize, Errno> {
        let block_size = self.superblock.block_size;
        let (index, start) = (position / self.block_size(), (position % self.block_size()) as usize);
        let needed = (start + len).div_ceil(block_size);
        let Some(run) = self.find_run(number, index, needed)? else {
            let bytes = len.min(block_size - start);
            return sink.put_zeros(bytes).map(|()| bytes);
        };
        let first = u64::from(run.start);
        if !self.cache.contains(first) {
            self.read_ahead(number, index, run.start, needed)?;
        }
        let count = self.cache.neighbours(first, run.len()).max(1);
        let part = &self.cache.read_run(first, count)?[start..];
        let part = &part[..part.len().min(len)];
        if count > 1 && sink.put(part).is_ok() {
            return Ok(part.len());
        }
        // The caller's memory may end within the run: all blocks before its end are copied.
        let part = &part[..part.len().min(block_size - start)];
        sink.put(part).map(|()| part.len())
    }

    /// Reads ahead from `block`: the blocks that the request needs, or a whole device request for a file that
    /// is read sequentially.
    pub(crate) fn read_ahead(&mut self, number: u32, index: u64, block: u32, needed: usize) -> Result<(), Errno> {
        let end = self.inode(number)?.size.div_ceil(self.block_size());
        let sequential = u64::from(self.inode(number)?.next_block) == index;
        let wanted = if sequential { self.cache.longest_run() } else { needed.min(self.cache.longest_run()) };
        let mut count = 1;
        while count < wanted
            && index + (count as u64) < end
            && self.find_block(number, index + count as u64) == Ok(block.checked_add(count as u32))
        {
            count += 1;
        }
        self.cache.read_ahead(block.into(), count);
        Ok(())
    }

    /// Records where a sequential reader continues, and the time of access if it is due.
    pub(crate) fn note_access(&mut self, number: u32, next_block: Option<u32>) -> Result<(), Errno> {
        let recently = self.recently();
        let inode = self.hint(number)?;
        inode.next_block = next_block.unwrap_or(inode.next_block);
        let newest = inode.modified.max(inode.changed);
        let is_old =
            inode.accessed <= newest || recently.seconds.saturating_sub(inode.accessed.seconds) >= ACCESS_INTERVAL;
        if is_old && !self.read_only {
            let now = self.now();
            self.change(number)?.accessed = now;
            self.accessed = Some(now);
        }
        Ok(())
    }

    pub(crate) fn write_file(
        &mut self,
        number: u32,
        offset: u64,
        len: usize,
        source: &mut dyn DataSource,
        caller: Caller,
    ) -> Result<usize, Errno> {
        require_regular(self.inode(number)?)?;
        if len == 0 {
            return Ok(0);
        }
        let room = self.max_file_size().saturating_sub(offset);
        if room == 0 {
            return Err(Errno::EFBIG);
        }
        let len = room.min(len as u64) as usize;
        self.prepare_size(offset + len as u64)?;
        let (done, failure) = self.write_parts(number, offset, len, source, caller);
        if self.cache.has_missed() {
            return Err(Errno::EAGAIN);
        }
        self.account_for(number, offset, done, caller)?;
        match failure {
            None => Ok(done),
            Some(error) => {
                let end = self.inode(number)?.size.div_ceil(self.block_size());
                self.free_blocks_from(number, end, Pauses::No)?;
                if done > 0 { Ok(done) } else { Err(error) }
            }
        }
    }

    /// Updates the inode after a write of `done` bytes at `offset`.
    fn account_for(&mut self, number: u32, offset: u64, done: usize, caller: Caller) -> Result<(), Errno> {
        let now = self.now();
        let inode = self.change(number)?;
        if done > 0 {
            inode.size = inode.size.max(offset + done as u64);
            inode.touch(now);
            drop_privileges(inode, caller);
            self.drop_capabilities(number)?;
        }
        Ok(())
    }

    /// Writes block by block, or several at once. A long write is committed in parts: a part that is repeated writes the same again.
    fn write_parts(
        &mut self,
        number: u32,
        offset: u64,
        len: usize,
        source: &mut dyn DataSource,
        caller: Caller,
    ) -> (usize, Option<Errno>) {
        let mut done = 0;
        while done < len {
            let written = match self.write_over(number, offset + done as u64, len - done, source) {
                Ok(0) => self.write_part(number, offset + done as u64, len - done, source, caller),
                written => written,
            };
            match written {
                Ok(bytes) => done += bytes,
                Err(error) => return (done, Some(error)),
            }
            if (self.should_pause() || self.is_short())
                && let Err(error) = self.account_for(number, offset, done, caller).and_then(|()| self.pause())
            {
                return (done, Some(error));
            }
        }
        (done, None)
    }

    /// Writes over the first of `len` bytes at `position`, if these are whole blocks within the file that are neighbours on the disk and in
    /// the cache: with one copy. Returns how many bytes, or 0.
    fn write_over(
        &mut self,
        number: u32,
        position: u64,
        len: usize,
        source: &mut dyn DataSource,
    ) -> Result<usize, Errno> {
        let (size, block_size) = (self.inode(number)?.size, self.superblock.block_size);
        let most = (len as u64).min(size.saturating_sub(position)) as usize / block_size;
        if most < 2 || !position.is_multiple_of(self.block_size()) {
            return Ok(0);
        }
        let index = position / self.block_size();
        // Where the first two are no neighbours, the rest need not be looked for.
        if !matches!(self.find_run(number, index, 2)?, Some(two) if self.cache.neighbours(two.start.into(), two.len()) == 2)
        {
            return Ok(0);
        }
        let Some(run) = self.find_run(number, index, most)? else { return Ok(0) };
        let count = self.cache.neighbours(run.start.into(), run.len());
        // The caller's memory may end within the run: then block by block, up to its end.
        let written = self.cache.overwrite_run(run.start.into(), count, |data| source.take(data));
        Ok(if written.is_ok() { count * block_size } else { 0 })
    }

    /// Writes the part of `len` bytes at `position` that lies in the first of their blocks. Returns how many bytes it has.
    fn write_part(
        &mut self,
        number: u32,
        position: u64,
        len: usize,
        source: &mut dyn DataSource,
        caller: Caller,
    ) -> Result<usize, Errno> {
        let (index, start) = (position / self.block_size(), (position % self.block_size()) as usize);
        let part = start..self.superblock.block_size.min(start + len);
        let bytes = part.len();
        self.write_block(number, index, part, source, caller).map(|()| bytes)
    }

    fn write_block(
        &mut self,
        number: u32,
        index: u64,
        part: Range<usize>,
        source: &mut dyn DataSource,
        caller: Caller,
    ) -> Result<(), Errno> {
        let mapped = self.provide_block(number, index, caller)?;
        let block = u64::from(mapped.block);
        let size = self.inode(number)?.size.saturating_sub(index * self.block_size());
        let used = if mapped.fresh { 0 } else { size.min(part.end as u64) as usize };
        if !mapped.fresh && used < part.end {
            // The bytes were zeros beyond the end of the file, and must be zeros again after a roll-back.
            self.cache.modify(block, used.max(part.start)..part.end, Order::Content)?;
        } else if part.len() == self.superblock.block_size {
            let written = self.cache.overwrite(block, |data| source.take(data));
            return written.or_else(|error| self.clear_fresh(mapped, error));
        } else if mapped.fresh {
            self.cache.zeroed(block)?;
        }
        let taken = source.take(self.cache.rewrite(block, part.clone())?);
        if taken.is_err() {
            self.cache.rewrite(block, used.max(part.start)..part.end)?.fill(0);
        }
        taken
    }

    /// Zeros a newly allocated block after a failed copy.
    fn clear_fresh(&mut self, mapped: Mapped, error: Errno) -> Result<(), Errno> {
        if mapped.fresh {
            self.cache.zeroed(mapped.block.into())?;
        }
        Err(error)
    }

    /// Changes the space that a range of a file has.
    pub(crate) fn change_space(&mut self, number: u32, range: Range<u64>, how: Allocation) -> Result<(), Errno> {
        require_regular(self.inode(number)?)?;
        if how != Allocation::Fill && range.end > self.max_file_size() {
            return Err(Errno::EFBIG);
        }
        match how {
            Allocation::Fill => self.fill_holes(number, range),
            Allocation::FillAndCheck => {
                self.fill_holes(number, range.clone())?;
                self.check_space_beyond(number, range)
            }
            Allocation::Punch => self.clear_range(number, range, Clear::Free),
            Allocation::Zero => self.clear_range(number, range, Clear::Zero),
        }
    }

    /// Checks that there is space for the part of a range beyond the end of the file. It is not reserved: the format knows no blocks
    /// there. `ENOSPC`.
    fn check_space_beyond(&mut self, number: u32, range: Range<u64>) -> Result<(), Errno> {
        let end = self.inode(number)?.size.max(range.start).div_ceil(self.block_size());
        let blocks = range.end.div_ceil(self.block_size()).saturating_sub(end);
        let count = u32::try_from(blocks).map_err(|_| Errno::ENOSPC)?;
        self.require_blocks(count, Caller::default())
    }

    /// Allocates zeroed blocks for the holes in a range of a file. On `ENOSPC` the blocks allocated so far are kept.
    fn fill_holes(&mut self, number: u32, range: Range<u64>) -> Result<(), Errno> {
        let offset = range.start;
        let end = range.end.min(self.inode(number)?.size).div_ceil(self.block_size());
        for index in offset / self.block_size()..end {
            if self.find_block(number, index)?.is_some() {
                continue;
            }
            let mapped = self.provide_block(number, index, Caller::default())?;
            self.cache.zeroed(mapped.block.into())?;
            if self.should_pause() || self.is_short() {
                self.pause()?;
            }
        }
        Ok(())
    }

    /// Checks that the format supports a file of `size` bytes.
    fn prepare_size(&mut self, size: u64) -> Result<(), Errno> {
        if size > self.max_file_size() {
            return Err(Errno::EFBIG);
        }
        if size > SMALL_FILE { self.allow_large_files() } else { Ok(()) }
    }

    pub(crate) fn resize_file(&mut self, number: u32, size: u64) -> Result<(), Errno> {
        let now = self.now();
        let inode = self.inode(number)?;
        require_regular(inode)?;
        let old_size = inode.size;
        self.prepare_size(size)?;
        if size < old_size {
            // The size changes last: until then the file has its old size, and holes where its blocks were.
            self.free_blocks_from(number, size.div_ceil(self.block_size()), Pauses::Yes)?;
            self.clear_tail(number, size)?;
        }
        let inode = self.change(number)?;
        inode.size = size;
        inode.touch(now);
        self.drop_capabilities(number)
    }

    /// Zeros the rest of the block in which the file now ends.
    pub(crate) fn clear_tail(&mut self, number: u32, size: u64) -> Result<(), Errno> {
        let used = (size % self.block_size()) as usize;
        if used > 0
            && let Some(block) = self.find_block(number, size / self.block_size())?
        {
            let end = self.superblock.block_size;
            self.cache.modify(block.into(), used..end, Order::Content)?.fill(0);
        }
        Ok(())
    }
}

fn require_regular(inode: &Inode) -> Result<(), Errno> {
    if inode.is_regular() {
        Ok(())
    } else if inode.is_directory() {
        Err(Errno::EISDIR)
    } else {
        Err(Errno::EINVAL)
    }
}

/// Clears the set-id bits of a program that a user other than root has changed.
fn drop_privileges(inode: &mut Inode, caller: Caller) {
    if caller.uid != 0 {
        inode.mode &= !S_ISUID;
        if inode.mode & S_IXGRP != 0 {
            inode.mode &= !S_ISGID;
        }
    }
}
