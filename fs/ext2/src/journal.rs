//! The journal of a volume: its recovery at mount, and commits to it.
//!
//! The journal is past the cache. A commit writes descriptors and contents of the running transaction in runs, flushes, writes the commit
//! block and flushes: after that the transaction counts, before it does not. The content that it refers to has been written before.
//!
//! A successor of a process that died (`Journaling::Left`) replays the log as after a power cut, and goes on with an empty one. That
//! loses nothing: the running transaction is in preserved memory, and what the log has is what the disk would get from there.
//!
//! Neighbours: `jbd` (the format), `log_file` (where its blocks are), `fs::cache::logging` (which blocks belong to the running transaction), `syncing` (when it ends).

use alloc::vec::Vec;

use fs::Errno;
use fs::cache::{BlockCache, RUN_BYTES};
use fs::device::{BlockDevice, SECTOR_SIZE};
use jbd::format::{
    Tag, escape, must_escape, revocations_in, tags_in, write_commit, write_descriptor, write_revocation,
};
use jbd::log::Log;
use jbd::recovery::{self, recover};
use jbd::superblock::Superblock as LogSuperblock;
use sys::fallible::{self, TryVec};

use crate::log_file::LogFile;
use crate::superblock::{INCOMPAT, SUPERBLOCK_OFFSET, SUPERBLOCK_SIZE, Superblock, set_recovery};
use fs::bytes::{put_u32, u32_at};

/// Blocks that the part of a request may change that is committed as a whole.
const MAX_PART: usize = 192;

/// Whether a volume has a journal, and in which state.
pub(crate) enum Journaling {
    /// There is none, or it is not used: the volume is read-only.
    None,
    /// As a previous incarnation has left it.
    Left,
    /// In use.
    Open(Journal),
    /// A commit has failed; the volume is read-only.
    Aborted,
}

impl Journaling {
    /// Whether changes go to the journal.
    pub fn is_used(&self) -> bool {
        !matches!(self, Journaling::None)
    }

    /// Returns how many blocks a request may change before it is committed in parts.
    pub fn part_limit(&self) -> Option<usize> {
        if let Journaling::Open(journal) = self { Some(journal.part_limit()) } else { None }
    }

    /// Whether the running transaction, of so many blocks, should be committed before the next change.
    pub fn must_commit(&self, running: usize) -> bool {
        matches!(self, Journaling::Open(journal) if running > journal.log.wanted_limit())
    }
}

/// Why a commit has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The transaction does not count, and can be tried again.
    Before(Errno),
    /// Nobody knows whether it counts, or it is larger than the log: the journal cannot be used any more.
    Final(Errno),
}

/// A journal in use.
pub(crate) struct Journal {
    file: LogFile,
    log: Log,
    run: Run,
}

impl Journal {
    /// Opens the journal of the file system on `device`, after a recovery if it is needed. With `is_writable` it is in use from then on;
    /// otherwise it is left as after an unmount, and `None` returned.
    ///
    /// `EINVAL` for a journal on another device, or of a version that is not known here; `EUCLEAN` if it is corrupt; `EROFS` if it
    /// needs a recovery and the device cannot be written.
    pub fn open<D: BlockDevice>(
        device: &mut D,
        superblock: &Superblock,
        is_writable: bool,
    ) -> Result<Option<Journal>, Errno> {
        let file = LogFile::find(device, superblock)?;
        let mut block = fallible::filled(0, superblock.block_size)?;
        file.read(device, 0, &mut block)?;
        let mut log = LogSuperblock::read(&block, superblock.block_size, file.blocks())?;
        if is_writable && !log.is_version_2 {
            return Err(Errno::EINVAL);
        }
        if superblock.needs_recovery() {
            let target = &mut Target { device, file: &file, superblock };
            let recovered = recover(&log, superblock.block_size, target)?;
            sys::log!("journal: {} transactions replayed, {} blocks", recovered.transactions, recovered.blocks);
            log.sequence = recovered.sequence;
            device.flush()?;
        }
        if is_writable {
            mark_recovery(device, true)?;
        }
        log.start = if is_writable { log.first } else { 0 };
        log.write(&mut block);
        file.write(device, 0, &block)?;
        device.flush()?;
        if !is_writable {
            mark_recovery(device, false)?;
            return Ok(None);
        }
        let log = Log::new(log, superblock.block_size);
        let run = Run { bytes: fallible::filled(0, RUN_BYTES)?, first: 0, used: 0, block_size: superblock.block_size };
        Ok(Some(Journal { file, log, run }))
    }

    fn part_limit(&self) -> usize {
        self.log.wanted_limit() / 2
    }

    /// Appends the running transaction of `cache`, which has these blocks, and makes it count.
    pub fn commit<D: BlockDevice>(&mut self, cache: &mut BlockCache<D>, blocks: &[u64]) -> Result<(), Failure> {
        if self.log.blocks_for(blocks.len(), cache.revoked().len()) > self.log.free() {
            return Err(Failure::Final(Errno::ENOSPC));
        }
        let before = self.log;
        if let Err(error) = self.append_transaction(cache, blocks) {
            self.log = before;
            self.run.used = 0;
            return Err(Failure::Before(error));
        }
        self.end_transaction(cache).map_err(Failure::Final)
    }

    /// Writes what the transaction holds, and makes it durable.
    fn append_transaction<D: BlockDevice>(&mut self, cache: &mut BlockCache<D>, blocks: &[u64]) -> Result<(), Errno> {
        let sequence = self.log.sequence();
        let block_size = cache.block_size();
        let revoked = fallible::copied(cache.revoked())?;
        for homes in revoked.chunks(revocations_in(block_size)) {
            self.append(cache.device_mut(), |block| write_revocation(block, sequence, homes))?;
        }
        for part in blocks.chunks(tags_in(block_size)) {
            let content = |home: u64| cache.running_content(home).ok_or(Errno::EIO);
            let tag = |&home: &u64| Ok(Tag { home: home as u32, is_escaped: must_escape(content(home)?) });
            let mut tags = fallible::with_capacity(part.len())?;
            for home in part {
                tags.push_reserved(tag(home)?);
            }
            self.append(cache.device_mut(), |block| write_descriptor(block, sequence, tags.iter().copied()))?;
            for tag in tags {
                let place = self.run.next(&self.file, self.log.append(), cache.device_mut())?;
                place.copy_from_slice(cache.running_content(tag.home.into()).ok_or(Errno::EIO)?);
                if tag.is_escaped {
                    escape(place);
                }
            }
        }
        self.run.write(cache.device_mut())?;
        cache.note_written();
        cache.flush()
    }

    /// Writes the commit block.
    fn end_transaction<D: BlockDevice>(&mut self, cache: &mut BlockCache<D>) -> Result<(), Errno> {
        let sequence = self.log.sequence();
        self.append(cache.device_mut(), |block| write_commit(block, sequence))?;
        self.run.write(cache.device_mut())?;
        cache.note_written();
        cache.flush()?;
        self.log.committed();
        Ok(())
    }

    fn append(&mut self, device: &mut impl BlockDevice, fill: impl FnOnce(&mut [u8])) -> Result<(), Errno> {
        fill(self.run.next(&self.file, self.log.append(), device)?);
        Ok(())
    }

    /// Whether the log must be emptied before a transaction begins.
    pub fn needs_checkpoint(&self) -> bool {
        self.log.free() < self.log.reserve(self.part_limit() + MAX_PART)
    }

    /// Empties the log: all that it has is at home.
    pub fn checkpointed(&mut self, device: &mut impl BlockDevice) -> Result<(), Errno> {
        if self.log.is_empty() {
            return Ok(());
        }
        let superblock = self.log.checkpointed();
        self.write_superblock(device, superblock)
    }

    /// Ends the use of the journal, whose log is empty.
    pub fn close(&mut self, device: &mut impl BlockDevice) -> Result<(), Errno> {
        let superblock = self.log.closed();
        self.write_superblock(device, superblock)
    }

    fn write_superblock(&mut self, device: &mut impl BlockDevice, superblock: LogSuperblock) -> Result<(), Errno> {
        let mut block = fallible::filled(0, self.run.block_size)?;
        self.file.read(device, 0, &mut block)?;
        superblock.write(&mut block);
        self.file.write(device, 0, &block)?;
        device.flush()
    }
}

/// Consecutive blocks of the device that are written together.
struct Run {
    bytes: Vec<u8>,
    first: u64,
    used: usize,
    block_size: usize,
}

impl Run {
    /// Returns the place for a block of the log; writes the run if the block is not next to it.
    fn next(&mut self, file: &LogFile, log_block: u32, device: &mut impl BlockDevice) -> Result<&mut [u8], Errno> {
        let block = file.place(log_block)?;
        let is_next = block == self.first + (self.used / self.block_size) as u64;
        if !is_next || self.used + self.block_size > self.bytes.len() {
            self.write(device)?;
        }
        if self.used == 0 {
            self.first = block;
        }
        let start = self.used;
        self.used += self.block_size;
        Ok(&mut self.bytes[start..self.used])
    }

    fn write(&mut self, device: &mut impl BlockDevice) -> Result<(), Errno> {
        let used = core::mem::take(&mut self.used);
        if used == 0 {
            return Ok(());
        }
        device.write(self.first * (self.block_size / SECTOR_SIZE) as u64, &self.bytes[..used])
    }
}

/// What a recovery reads and writes.
struct Target<'a, D> {
    device: &'a mut D,
    file: &'a LogFile,
    superblock: &'a Superblock,
}

impl<D: BlockDevice> recovery::Device for Target<'_, D> {
    fn read_log(&mut self, block: u32, bytes: &mut [u8]) -> Result<(), Errno> {
        self.file.read(self.device, block, bytes)
    }

    fn is_home(&self, block: u32) -> bool {
        (self.superblock.first_data_block..self.superblock.blocks_count).contains(&block) && !self.file.has(block)
    }

    fn write_home(&mut self, block: u32, bytes: &[u8]) -> Result<(), Errno> {
        self.device.write(u64::from(block) * self.file.sectors_per_block(), bytes)
    }
}

/// Marks the superblock on the device: the journal is in use, or not. Everything before reaches the disk before it.
fn mark_recovery(device: &mut impl BlockDevice, needs_recovery: bool) -> Result<(), Errno> {
    let mut bytes = [0; SUPERBLOCK_SIZE];
    let sector = (SUPERBLOCK_OFFSET / SECTOR_SIZE) as u64;
    device.read(sector, &mut bytes)?;
    let old = u32_at(&bytes, INCOMPAT);
    let mut new = old;
    set_recovery(&mut new, needs_recovery);
    if new == old {
        return Ok(());
    }
    put_u32(&mut bytes, INCOMPAT, new);
    device.write(sector, &bytes)?;
    device.flush()
}

#[cfg(test)]
mod tests {
    use super::*;
    use fs::order::Order;
    use fs::preserve::{Layout, Preserved};
    use std::vec;
    use sys::StartKind;
    use sys::keep::Keep;

    const BLOCK: usize = 1024;
    const LOG: u32 = 100;

    /// A device in memory.
    struct Disk(Vec<u8>);

    impl BlockDevice for Disk {
        fn sector_count(&self) -> u64 {
            (self.0.len() / SECTOR_SIZE) as u64
        }

        fn read(&mut self, first_sector: u64, buffer: &mut [u8]) -> Result<(), Errno> {
            let at = first_sector as usize * SECTOR_SIZE;
            buffer.copy_from_slice(&self.0[at..at + buffer.len()]);
            Ok(())
        }

        fn write(&mut self, first_sector: u64, data: &[u8]) -> Result<(), Errno> {
            let at = first_sector as usize * SECTOR_SIZE;
            self.0[at..at + data.len()].copy_from_slice(data);
            Ok(())
        }

        fn flush(&mut self) -> Result<(), Errno> {
            Ok(())
        }
    }

    /// What a recovery finds.
    struct Found<'a> {
        disk: &'a mut Disk,
        homes: Vec<(u32, Vec<u8>)>,
    }

    impl recovery::Device for Found<'_> {
        fn read_log(&mut self, block: u32, bytes: &mut [u8]) -> Result<(), Errno> {
            self.disk.read(u64::from(LOG + block) * 2, bytes)
        }

        fn is_home(&self, block: u32) -> bool {
            block < LOG
        }

        fn write_home(&mut self, block: u32, bytes: &[u8]) -> Result<(), Errno> {
            self.homes.push((block, bytes.to_vec()));
            Ok(())
        }
    }

    #[test]
    fn what_is_committed_is_recovered_even_if_it_looks_like_the_journal() {
        let layout = Layout { volumes: 1, cache_bytes: 64 * 1024 };
        let memory = sys::host::zeroed(layout.bytes());
        let preserved = Preserved::open(Keep::simulated(memory, u64::MAX), layout, StartKind::Fresh);
        let memory = preserved.volume(0).unwrap().cache;
        let mut cache = BlockCache::create(Disk(vec![0; 2 << 20]), BLOCK, memory);
        cache.use_journal().unwrap();
        let first = 7;
        let superblock =
            LogSuperblock { length: 1024, first: 1, sequence: first, start: 1, error: 0, is_version_2: true };
        let file = LogFile::consecutive(LOG, 1024, BLOCK);
        let run = Run { bytes: vec![0; RUN_BYTES], first: 0, used: 0, block_size: BLOCK };
        let mut journal = Journal { file, log: Log::new(superblock, BLOCK), run };
        let magic = jbd::format::MAGIC.to_be_bytes();
        for (value, blocks) in [(magic, 1..40), ([1, 2, 3, 4], 1..3)] {
            for block in blocks.clone() {
                cache.modify(block, 0..4, Order::Link).unwrap().copy_from_slice(&value);
            }
            preserved.undo.commit();
            cache.committed();
            let running = cache.running().unwrap();
            assert!(running.iter().copied().eq(blocks));
            journal.commit(&mut cache, &running).unwrap();
            cache.logged();
            assert_eq!(cache.running_count(), 0);
        }
        assert_eq!((journal.log.sequence(), journal.log.free()), (first + 2, 1023 - 41 - 4));
        let second = (LOG as usize + 2) * BLOCK;
        assert_eq!(cache.device_mut().0[second..second + 4], [0; 4], "a content that would end the log");
        let mut found = Found { disk: cache.device_mut(), homes: Vec::new() };
        let recovered = recover(&superblock, BLOCK, &mut found).unwrap();
        assert_eq!((recovered.transactions, recovered.blocks), (2, 41));
        assert!(found.homes[..39].iter().all(|(_, content)| content[..4] == magic));
        assert!(found.homes[39..].iter().all(|(block, content)| *block < 3 && content[..4] == [1, 2, 3, 4]));
    }
}
