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
        let block_size = self.superblock.block_size;
        let mut done = 0;
        while done < len {
            let position = offset + done as u64;
            let start = (position % block_size as u64) as usize;
            let range = start..block_size.min(start + len - done);
            let chunk = range.len();
            let needed = (len - done).div_ceil(block_size);
            match self.read_part(number, position / block_size as u64, range, needed, sink) {
                Ok(()) => done += chunk,
                Err(error) if done == 0 => return Err(error),
                Err(_) => break,
            }
        }
        if self.cache.has_missed() {
            return Ok(done);
        }
        self.note_access(number, (len > 0).then(|| ((offset + len as u64) / block_size as u64) as u32))?;
        Ok(done)
    }

    /// Copies a part of one block to `sink`; the request needs about `needed` blocks from there on.
    fn read_part(
        &mut self,
        number: u32,
        index: u64,
        part: Range<usize>,
        needed: usize,
        sink: &mut dyn DataSink,
    ) -> Result<(), Errno> {
        let Some(block) = self.find_block(number, index)? else {
            return sink.put_zeros(part.len());
        };
        if !self.cache.contains(block.into()) {
            self.read_ahead(number, index, block, needed)?;
        }
        sink.put(&self.cache.read(block.into())?[part])
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

    /// Writes block by block. A long write is committed in parts: a part that is repeated writes the same again.
    fn write_parts(
        &mut self,
        number: u32,
        offset: u64,
        len: usize,
        source: &mut dyn DataSource,
        caller: Caller,
    ) -> (usize, Option<Errno>) {
        let block_size = self.superblock.block_size;
        let mut done = 0;
        while done < len {
            let position = offset + done as u64;
            let start = (position % block_size as u64) as usize;
            let part = start..block_size.min(start + len - done);
            let chunk = part.len();
            if let Err(error) = self.write_part(number, position / block_size as u64, part, source, caller) {
                return (done, Some(error));
            }
            done += chunk;
            if (self.should_pause() || self.is_short())
                && let Err(error) = self.account_for(number, offset, done, caller).and_then(|()| self.pause())
            {
                return (done, Some(error));
            }
        }
        (done, None)
    }

    fn write_part(
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
