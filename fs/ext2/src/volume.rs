//! A mounted ext2 file system: its state, mounting, unmounting, transactions. The other modules add the methods of their topic to `Ext2`.
//!
//! All state here is a copy of what the cached blocks and the table of use counts hold, which outlive the process. Requests change the
//! copy; `settle` stores the changes as part of the request's transaction, so that a successor rebuilds the same copy.
//!
//! Invariants: a dirty inode or group is listed as such, and none is after `settle`; an inode without a name has users, or is
//! an orphan, whose blocks are still being freed.

use alloc::vec::Vec;
use sys::fallible;

use fs::Errno;
use fs::cache::BlockCache;
use fs::device::{BlockDevice, SECTOR_SIZE};
use fs::file_system::{NodeId, Timestamp};
use fs::frames::PAGE_BYTES;
use fs::names::NameCache;
use fs::order::Order;
use fs::preserve::uses::Uses;
use fs::preserve::{MIN_BLOCK, VolumeMemory};
use recover::transaction::Undo;

use crate::group::Groups;
use crate::inodes::Inodes;
use crate::journal::{Journal, Journaling};
use crate::superblock::{
    DESCRIPTOR_SIZE, ROOT_INODE, SUPERBLOCK_CHANGING, SUPERBLOCK_OFFSET, SUPERBLOCK_SIZE, Superblock,
};
use crate::window::Window;

/// Capacity of the name cache.
const NAMES: usize = 2048;

/// Limit of descriptor blocks that are pinned in the cache: enough for 16 GiB in blocks of 1 KiB, for a terabyte in those of 4 KiB.
const MAX_PINNED: usize = 64;

/// How to mount.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Refuse every change.
    pub read_only: bool,
    /// The time of day.
    pub clock: fn() -> Timestamp,
}

/// State for a successor that is on no block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memo {
    /// Bytes of a block.
    pub block_size: usize,
    /// Whether the file system was clean when it was mounted.
    pub was_clean: bool,
    /// `BlockDevice::memo` of the device.
    pub device: [u64; 2],
}

impl Memo {
    /// Decodes the words of `FileSystem::memo`. `EUCLEAN` if they are none.
    pub fn from_words(words: [u64; 4]) -> Result<Self, Errno> {
        let [block_size, was_clean, first, second] = words;
        let block_size = block_size as usize;
        let sound = block_size.is_power_of_two() && (MIN_BLOCK..=PAGE_BYTES).contains(&block_size);
        let memo = Memo { block_size, was_clean: was_clean != 0, device: [first, second] };
        if sound { Ok(memo) } else { Err(Errno::EUCLEAN) }
    }

    /// Encodes the words of `FileSystem::memo`.
    pub fn words(&self) -> [u64; 4] {
        [self.block_size as u64, self.was_clean.into(), self.device[0], self.device[1]]
    }
}

/// A mounted ext2 file system.
pub struct Ext2<D> {
    pub(crate) cache: BlockCache<D>,
    pub(crate) superblock: Superblock,
    pub(crate) groups: Groups,
    pub(crate) names: NameCache,
    clock: fn() -> Timestamp,
    /// The time of the current request, once it has been read.
    time: Option<Timestamp>,
    /// The time of a recent request.
    recent: Timestamp,
    /// The time of last access that the current request has set, of which vfs has not been told.
    pub(crate) accessed: Option<Timestamp>,
    pub(crate) read_only: bool,
    pub(crate) was_clean: bool,
    superblock_changed: bool,
    pub(crate) window: Window,
    pub(crate) uses: Uses,
    pub(crate) undo: Undo,
    pub(crate) inodes: Inodes,
    pub(crate) journal: Journaling,
    /// The list of orphans on the disk, from its end to its beginning; `None` as long as it has not been read.
    pub(crate) orphans: Option<Vec<u32>>,
}

impl<D: BlockDevice> Ext2<D> {
    /// Mounts the file system on `device`, with its state in `memory`. Replays the journal, if there is one that is needed. Marks the file
    /// system as in use unless it is read-only; the next `sync` writes the mark.
    ///
    /// `EINVAL` without an ext2 of a supported revision, `EUCLEAN` if it is too corrupt to use, `EROFS` for a
    /// writable mount of a file system with read-only features, `EIO` if the device fails.
    pub fn mount(mut device: D, options: Options, memory: VolumeMemory) -> Result<Self, Errno> {
        let mut bytes = [0; SUPERBLOCK_SIZE];
        device.read((SUPERBLOCK_OFFSET / SECTOR_SIZE) as u64, &mut bytes)?;
        let mut superblock = Superblock::read(&bytes, bytes_of(&device))?;
        let is_writable = !(options.read_only || superblock.read_only);
        let mut journaling = Journaling::None;
        if superblock.has_journal() && (is_writable || superblock.needs_recovery()) {
            let journal = Journal::open(&mut device, &superblock, is_writable)?;
            journaling = journal.map_or(Journaling::None, Journaling::Open);
            device.read((SUPERBLOCK_OFFSET / SECTOR_SIZE) as u64, &mut bytes)?;
            superblock = Superblock::read(&bytes, bytes_of(&device))?;
        } else if superblock.needs_recovery() {
            return Err(Errno::EUCLEAN);
        }
        let undo = memory.cache.undo.clone();
        let uses = Uses::create(memory.uses, undo.clone());
        let mut cache = BlockCache::create(device, superblock.block_size, memory.cache);
        if journaling.is_used() {
            cache.use_journal()?;
        }
        let was_clean = superblock.is_clean();
        let mut volume = Self::of(cache, superblock, uses, undo, options, was_clean, journaling)?;
        if !volume.inode(ROOT_INODE)?.is_directory() {
            return Err(Errno::EUCLEAN);
        }
        if !volume.read_only {
            volume.mark_in_use();
            volume.superblock.mount_count = volume.superblock.mount_count.wrapping_add(1);
            volume.adopt_orphans()?;
        }
        Ok(volume)
    }

    /// Resumes the file system that the previous incarnation mounted, from its state in `memory` and its `memo`. Errors as `mount`.
    pub fn resume(device: D, options: Options, memory: VolumeMemory, memo: Memo) -> Result<Self, Errno> {
        let undo = memory.cache.undo.clone();
        let uses = Uses::open(memory.uses, undo.clone());
        let mut cache = BlockCache::open(device, memo.block_size, memory.cache);
        let superblock = read_superblock(&mut cache)?;
        let is_writable = !(options.read_only || superblock.read_only);
        let journaling = if superblock.has_journal() && is_writable { Journaling::Left } else { Journaling::None };
        if journaling.is_used() {
            cache.use_journal()?;
        }
        let mut volume = Self::of(cache, superblock, uses, undo, options, memo.was_clean, journaling)?;
        if !volume.read_only {
            // A predecessor that died while it unmounted has left the mark "clean".
            volume.mark_in_use();
            volume.window.end_soon();
        }
        Ok(volume)
    }

    fn of(
        mut cache: BlockCache<D>,
        superblock: Superblock,
        uses: Uses,
        undo: Undo,
        options: Options,
        was_clean: bool,
        journal: Journaling,
    ) -> Result<Self, Errno> {
        let groups = read_groups(&mut cache, &superblock)?;
        let mut volume = Ext2 {
            cache,
            groups,
            names: NameCache::new(NAMES),
            clock: options.clock,
            time: None,
            recent: Timestamp::default(),
            accessed: None,
            read_only: options.read_only || superblock.read_only,
            was_clean,
            superblock_changed: false,
            window: Window::default(),
            uses,
            undo,
            inodes: Inodes::new(),
            journal,
            orphans: None,
            superblock,
        };
        volume.sum_up();
        volume.pin_what_a_successor_reads()?;
        Ok(volume)
    }

    /// Pins superblock and descriptors in the cache, so that a successor resumes without the device. Those of very large disks are not pinned.
    fn pin_what_a_successor_reads(&mut self) -> Result<(), Errno> {
        let superblock = (SUPERBLOCK_OFFSET / self.superblock.block_size) as u64;
        let first = u64::from(self.superblock.first_data_block) + 1;
        let end = first + u64::from(self.superblock.descriptor_blocks());
        self.cache.pin(superblock)?;
        let most = MAX_PINNED.min(self.cache.capacity() / 4);
        (first..end).take(most).try_for_each(|block| self.cache.pin(block))
    }

    /// Rebuilds everything that is not in preserved memory from there: the current request was rolled back.
    pub(crate) fn make_again(&mut self) -> Result<(), Errno> {
        self.cache.undone();
        self.uses.rebuild();
        self.superblock = read_superblock(&mut self.cache)?;
        self.superblock_changed = false;
        self.groups = read_groups(&mut self.cache, &self.superblock)?;
        self.names = NameCache::new(NAMES);
        self.inodes = Inodes::new();
        self.orphans = None;
        self.sum_up();
        Ok(())
    }

    /// Returns what a successor needs before it can read a block.
    pub(crate) fn own_memo(&self) -> Memo {
        let (was_clean, device) = (self.was_clean, self.cache.device().memo());
        Memo { block_size: self.superblock.block_size, was_clean, device }
    }

    /// Returns the device without writing anything.
    pub fn into_device(self) -> D {
        self.cache.into_device()
    }

    /// Computes the totals of the superblock from the groups; those on disk may be stale.
    fn sum_up(&mut self) {
        let groups = &self.groups.list;
        self.superblock.free_blocks = groups.iter().map(|group| u32::from(group.free_blocks)).sum();
        self.superblock.free_inodes = groups.iter().map(|group| u32::from(group.free_inodes)).sum();
    }

    fn mark_in_use(&mut self) {
        if self.journal.is_used() {
            // The journal keeps it clean.
            self.superblock.set_needs_recovery(true);
        } else {
            self.superblock.set_clean(false);
        }
        self.superblock.mount_time = self.now_seconds();
        self.superblock_changed = true;
    }

    /// Allows files of 2 GiB and more.
    pub(crate) fn allow_large_files(&mut self) -> Result<(), Errno> {
        self.superblock_changed = true;
        self.superblock.allow_large_files()
    }

    /// Stores the superblock with the next commit.
    pub(crate) fn note_superblock(&mut self) {
        self.superblock_changed = true;
    }

    /// Records the time of a sync.
    pub(crate) fn note_write_time(&mut self) {
        self.superblock.write_time = self.now_seconds();
        self.superblock_changed = true;
    }

    /// Commits the changes so far, and writes them if they have become many. The rest of the current request must make sense alone.
    /// `EAGAIN` if the request has missed a block: its changes may be wrong.
    pub(crate) fn pause(&mut self) -> Result<(), Errno> {
        self.commit()?;
        self.make_room()
    }

    /// As `pause`, but writes nothing.
    pub(crate) fn commit(&mut self) -> Result<(), Errno> {
        if self.cache.has_missed() {
            return Err(Errno::EAGAIN);
        }
        self.carry_over()?;
        if self.undo.is_open() {
            self.undo.commit();
            self.cache.committed();
        }
        Ok(())
    }

    /// Whether the open transaction is so large that it should end soon.
    pub(crate) fn should_pause(&self) -> bool {
        let is_large = |limit| self.cache.holds_more_than(limit);
        self.undo.is_large() || self.cache.is_crowded() || self.journal.part_limit().is_some_and(is_large)
    }

    /// Whether writes are ordered so that a check can mend what a power cut leaves; a journal needs no such order.
    pub(crate) fn is_ordered(&self) -> bool {
        !self.journal.is_used()
    }

    /// Whether anything has been changed since the last commit.
    pub(crate) fn has_changes(&self) -> bool {
        self.undo.is_open() || self.superblock_changed || self.has_dirty_inodes() || self.groups.has_dirty()
    }

    /// Stores the changes in cached blocks.
    pub(crate) fn carry_over(&mut self) -> Result<(), Errno> {
        self.write_inodes()?;
        self.write_descriptors()?;
        if self.superblock_changed { self.write_superblock() } else { Ok(()) }
    }

    /// Unmounts: frees the inodes without name and marks the file system clean if it was clean before, when all else is on the disk.
    pub(crate) fn close(&mut self) -> Result<(), Errno> {
        if matches!(self.journal, Journaling::Aborted) {
            sys::log!("unmounted without what was not committed; the next mount replays the journal");
            return Ok(());
        }
        let mut result = Ok(());
        let used = fallible::collect(self.uses.nodes().filter(|&(_, count)| count > 0))?;
        for (number, count) in used {
            let dropped = self.drop_users(number, count);
            result = result.and(dropped);
            if self.should_pause() {
                self.pause()?;
            }
        }
        result = result.and(self.free_orphans()).and(self.write_everything());
        if self.journal.is_used() && !self.read_only {
            return result.and_then(|()| self.close_journal());
        }
        match result {
            Ok(()) if self.was_clean => self.superblock.set_clean(true),
            Ok(()) => {}
            Err(_) => self.superblock.set_errors(),
        }
        result.and(self.write_everything())
    }

    fn write_descriptors(&mut self) -> Result<(), Errno> {
        let first = u64::from(self.superblock.first_data_block) + 1;
        let per_block = self.superblock.block_size / DESCRIPTOR_SIZE;
        while let Some(number) = self.groups.next_dirty() {
            let offset = number % per_block * DESCRIPTOR_SIZE;
            let block = first + (number / per_block) as u64;
            self.groups.list[number].write(self.cache.modify(block, offset..offset + DESCRIPTOR_SIZE, Order::Count)?);
            self.groups.wash(number);
        }
        Ok(())
    }

    pub(crate) fn write_superblock(&mut self) -> Result<(), Errno> {
        let block_size = self.superblock.block_size;
        let offset = SUPERBLOCK_OFFSET % block_size;
        let range = offset..offset + SUPERBLOCK_CHANGING;
        self.superblock.write(self.cache.modify((SUPERBLOCK_OFFSET / block_size) as u64, range, Order::Count)?);
        self.superblock_changed = false;
        Ok(())
    }

    /// Begins a request, whose time is not read yet. Commits the request before if its caller, a test without server, has not.
    pub(crate) fn begin(&mut self) -> Result<(), Errno> {
        (self.time, self.accessed) = (None, None);
        if self.undo.is_open() {
            self.commit()?;
        }
        if self.cache.needs_sync() && !self.read_only { self.write_everything() } else { Ok(()) }
    }

    /// Begins a request, unless it is the end of one that has changed something.
    pub(crate) fn begin_or_go_on(&mut self) -> Result<(), Errno> {
        if self.undo.is_open() { Ok(()) } else { self.begin() }
    }

    /// Begins a request that changes something. `EROFS` on a read-only file system.
    pub(crate) fn begin_change(&mut self) -> Result<(), Errno> {
        self.begin()?;
        if self.read_only { Err(Errno::EROFS) } else { self.make_room() }
    }

    /// Returns the time of the current request; reads the clock once per request.
    pub(crate) fn now(&mut self) -> Timestamp {
        let now = *self.time.get_or_insert_with(self.clock);
        self.recent = now;
        now
    }

    /// Returns the time of a recent request, without reading the clock.
    pub(crate) fn recently(&self) -> Timestamp {
        self.recent
    }

    pub(crate) fn now_seconds(&mut self) -> u32 {
        self.now().seconds as u32
    }

    /// Returns the size of a block in bytes.
    pub(crate) fn block_size(&self) -> u64 {
        self.superblock.block_size as u64
    }

    /// Converts a node to an inode number. `ESTALE` if it is out of range.
    pub(crate) fn number(&self, node: NodeId) -> Result<u32, Errno> {
        u32::try_from(node).ok().filter(|&number| self.is_usable(number)).ok_or(Errno::ESTALE)
    }

    /// Whether a directory may name this inode.
    pub(crate) fn is_usable(&self, number: u32) -> bool {
        number == ROOT_INODE || (self.superblock.first_inode..=self.superblock.inodes_count).contains(&number)
    }
}

pub(crate) fn bytes_of(device: &impl BlockDevice) -> u64 {
    device.sector_count().saturating_mul(SECTOR_SIZE as u64)
}

fn read_superblock<D: BlockDevice>(cache: &mut BlockCache<D>) -> Result<Superblock, Errno> {
    let device_bytes = bytes_of(cache.device());
    let block_size = cache.block_size();
    let offset = SUPERBLOCK_OFFSET % block_size;
    let block = cache.read((SUPERBLOCK_OFFSET / block_size) as u64)?;
    let superblock = Superblock::read(&block[offset..offset + SUPERBLOCK_SIZE], device_bytes)?;
    if superblock.block_size == block_size { Ok(superblock) } else { Err(Errno::EUCLEAN) }
}

fn read_groups<D: BlockDevice>(cache: &mut BlockCache<D>, superblock: &Superblock) -> Result<Groups, Errno> {
    let mut groups = Groups::new(superblock);
    let first = u64::from(superblock.first_data_block) + 1;
    for block in first..first + u64::from(superblock.descriptor_blocks()) {
        groups.read(cache.read(block)?, superblock)?;
    }
    Ok(groups)
}
