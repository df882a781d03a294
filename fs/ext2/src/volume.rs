//! A mounted ext2 file system: its state, mounting, unmounting, and the inodes in memory.
//!
//! The other modules add to `Ext2` what they are about. Inodes are named by their number everywhere and
//! looked up again whenever needed, because any other look-up may push one out of the cache.
//!
//! Invariants: an inode with users is held in the cache; a dirty inode, group or superblock is written
//! into the block cache at the latest by `write_down`.

use alloc::vec;
use alloc::vec::Vec;

use fs::Errno;
use fs::cache::BlockCache;
use fs::device::{BlockDevice, SECTOR_SIZE};
use fs::file_system::{NodeId, Timestamp};
use fs::lru::LruIndex;
use fs::names::NameCache;

use crate::group::Groups;
use crate::inode::Inode;
use crate::superblock::{DESCRIPTOR_SIZE, ROOT_INODE, SUPERBLOCK_OFFSET, SUPERBLOCK_SIZE, Superblock};

/// Inodes kept in memory, unless more of them have users.
const KEPT_INODES: usize = 512;
/// Inodes in memory that the index is laid out for; vfs may have more in use.
const EXPECTED_INODES: usize = 4096;
/// Names kept in memory.
const NAMES: usize = 2048;

/// How to mount.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Refuse every change.
    pub read_only: bool,
    /// Memory for cached blocks, in units of 4 KiB.
    pub cache_budget: usize,
    /// The time of day.
    pub clock: fn() -> Timestamp,
}

/// A mounted ext2 file system.
pub struct Ext2<D> {
    pub(crate) cache: BlockCache<D>,
    pub(crate) superblock: Superblock,
    pub(crate) groups: Groups,
    pub(crate) names: NameCache,
    clock: fn() -> Timestamp,
    /// The time of the request in hand, once it was asked for.
    time: Option<Timestamp>,
    /// The time of some request not long ago.
    recent: Timestamp,
    pub(crate) read_only: bool,
    was_clean: bool,
    inode_index: LruIndex,
    inodes: Vec<Inode>,
    /// Number and slot of the inode looked up last; number 0 for none.
    latest: (u32, usize),
}

impl<D: BlockDevice> Ext2<D> {
    /// Mounts the file system on `device` and, unless it is read-only, marks it as in use.
    ///
    /// `EINVAL` when there is no ext2 that this code knows, `EUCLEAN` when it is too broken to use,
    /// `EROFS` for a file system that can only be read when more is asked, `EIO` when the device fails.
    pub fn mount(mut device: D, options: Options) -> Result<Self, Errno> {
        let mut bytes = vec![0; SUPERBLOCK_SIZE];
        device.read((SUPERBLOCK_OFFSET / SECTOR_SIZE) as u64, &mut bytes)?;
        let device_bytes = device.sector_count().saturating_mul(SECTOR_SIZE as u64);
        let superblock = Superblock::read(&bytes, device_bytes)?;
        let mut cache = BlockCache::new(device, superblock.block_size, options.cache_budget);
        let groups = read_groups(&mut cache, &superblock)?;
        let mut volume = Ext2 {
            cache,
            groups,
            names: NameCache::new(NAMES),
            clock: options.clock,
            time: None,
            recent: Timestamp::default(),
            read_only: options.read_only || superblock.read_only,
            was_clean: superblock.is_clean(),
            inode_index: LruIndex::new(EXPECTED_INODES),
            inodes: Vec::new(),
            latest: (0, 0),
            superblock,
        };
        volume.sum_up();
        if !volume.inode(ROOT_INODE)?.is_directory() {
            return Err(Errno::EUCLEAN);
        }
        if !volume.read_only {
            volume.mark_in_use()?;
        }
        Ok(volume)
    }

    /// Gives the device back without writing anything.
    pub fn into_device(self) -> D {
        self.cache.into_device()
    }

    /// The sums in the superblock, from the groups; those on disk may be older.
    fn sum_up(&mut self) {
        let groups = &self.groups.list;
        self.superblock.free_blocks = groups.iter().map(|group| u32::from(group.free_blocks)).sum();
        self.superblock.free_inodes = groups.iter().map(|group| u32::from(group.free_inodes)).sum();
    }

    fn mark_in_use(&mut self) -> Result<(), Errno> {
        self.superblock.set_clean(false);
        self.superblock.mount_time = self.now_seconds();
        self.superblock.mount_count = self.superblock.mount_count.wrapping_add(1);
        self.write_everything()
    }

    /// Writes everything down, durably.
    pub(crate) fn write_everything(&mut self) -> Result<(), Errno> {
        if self.read_only {
            return Ok(());
        }
        self.write_inodes()?;
        self.write_descriptors()?;
        self.write_superblock()?;
        self.cache.sync()
    }

    /// Ends the use: frees what only users kept alive and marks the file system clean if it was.
    pub(crate) fn close(&mut self) -> Result<(), Errno> {
        let mut result = Ok(());
        for slot in 0..self.inodes.len() {
            if self.inodes[slot].users > 0 {
                let users = self.inodes[slot].users;
                let dropped = self.drop_users(self.inode_index.key(slot) as u32, users);
                result = result.and(dropped);
            }
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
        for (number, group) in self.groups.list.iter_mut().enumerate().filter(|(_, group)| group.dirty) {
            let block = self.cache.modify(first + (number / per_block) as u64)?;
            group.write(&mut block[number % per_block * DESCRIPTOR_SIZE..]);
            group.dirty = false;
        }
        Ok(())
    }

    fn write_superblock(&mut self) -> Result<(), Errno> {
        self.superblock.write_time = self.now_seconds();
        let block = self.cache.modify((SUPERBLOCK_OFFSET / self.superblock.block_size) as u64)?;
        let offset = SUPERBLOCK_OFFSET % block.len();
        self.superblock.write(&mut block[offset..offset + SUPERBLOCK_SIZE]);
        Ok(())
    }

    /// A new request begins: its time is not known yet.
    pub(crate) fn begin(&mut self) {
        self.time = None;
    }

    /// A new request begins that changes something. `EROFS` on a read-only file system.
    pub(crate) fn begin_change(&mut self) -> Result<(), Errno> {
        self.begin();
        if self.read_only { Err(Errno::EROFS) } else { Ok(()) }
    }

    /// The time of the request in hand; the clock is read once a request.
    pub(crate) fn now(&mut self) -> Timestamp {
        let now = *self.time.get_or_insert_with(self.clock);
        self.recent = now;
        now
    }

    /// A time not long ago, without reading the clock.
    pub(crate) fn recently(&self) -> Timestamp {
        self.recent
    }

    pub(crate) fn now_seconds(&mut self) -> u32 {
        self.now().seconds as u32
    }

    /// Bytes of a block, for positions in files.
    pub(crate) fn block_size(&self) -> u64 {
        self.superblock.block_size as u64
    }

    /// The inode number that a caller means. `ESTALE` when there can be no such node.
    pub(crate) fn number(&self, node: NodeId) -> Result<u32, Errno> {
        u32::try_from(node).ok().filter(|&number| self.is_usable(number)).ok_or(Errno::ESTALE)
    }

    /// Whether a directory may name this inode.
    pub(crate) fn is_usable(&self, number: u32) -> bool {
        number == ROOT_INODE || (self.superblock.first_inode..=self.superblock.inodes_count).contains(&number)
    }

    /// The inode `number`. `EUCLEAN` when it is none in use.
    pub(crate) fn inode(&mut self, number: u32) -> Result<&Inode, Errno> {
        let slot = self.inode_slot(number)?;
        Ok(&self.inodes[slot])
    }

    /// The inode `number` for a change that is to be written.
    pub(crate) fn change(&mut self, number: u32) -> Result<&mut Inode, Errno> {
        let slot = self.inode_slot(number)?;
        self.inodes[slot].dirty = true;
        Ok(&mut self.inodes[slot])
    }

    /// The inode `number` for a change of what is only in memory.
    pub(crate) fn hint(&mut self, number: u32) -> Result<&mut Inode, Errno> {
        let slot = self.inode_slot(number)?;
        Ok(&mut self.inodes[slot])
    }

    /// Puts a new inode into memory; its number was free.
    pub(crate) fn adopt(&mut self, number: u32, inode: Inode) -> Result<(), Errno> {
        let slot = match self.inode_index.find(number.into()) {
            Some(slot) => slot,
            None => self.take_slot(number)?,
        };
        self.inodes[slot] = inode;
        Ok(())
    }

    /// Counts one more user of the inode.
    pub(crate) fn add_user(&mut self, number: u32) -> Result<(), Errno> {
        let slot = self.inode_slot(number)?;
        let inode = &mut self.inodes[slot];
        inode.users = inode.users.checked_add(1).ok_or(Errno::ENFILE)?;
        self.inode_index.hold(slot);
        Ok(())
    }

    /// Whether an inode other than the root has users.
    pub(crate) fn has_users(&self) -> bool {
        let used = |slot: usize| self.inodes[slot].users > 0 && self.inode_index.key(slot) != ROOT_INODE.into();
        (0..self.inodes.len()).any(used)
    }

    /// Counts `count` users less and frees the inode if neither user nor name is left.
    pub(crate) fn drop_users(&mut self, number: u32, count: u32) -> Result<(), Errno> {
        let slot = self.inode_index.find(number.into()).ok_or(Errno::EINVAL)?;
        let inode = &mut self.inodes[slot];
        inode.users = inode.users.checked_sub(count).ok_or(Errno::EINVAL)?;
        if inode.users == 0 {
            let unnamed = inode.links == 0;
            self.inode_index.release(slot);
            if unnamed {
                return self.delete(number);
            }
        }
        Ok(())
    }

    /// Frees the inode if neither user nor name is left.
    pub(crate) fn delete_if_unused(&mut self, number: u32) -> Result<(), Errno> {
        let inode = self.inode(number)?;
        if inode.users == 0 && inode.links == 0 { self.delete(number) } else { Ok(()) }
    }

    /// Forgets the inode, writing it down first if it was changed.
    pub(crate) fn forget(&mut self, number: u32) -> Result<(), Errno> {
        match self.inode_index.find(number.into()) {
            Some(slot) => self.drop_slot(slot),
            None => Ok(()),
        }
    }

    /// The block of the inode table and the offset in it where inode `number` is.
    pub(crate) fn inode_place(&self, number: u32) -> (u64, usize) {
        let index = number - 1;
        let group = &self.groups.list[(index / self.superblock.inodes_per_group) as usize];
        let offset = (index % self.superblock.inodes_per_group) as usize * self.superblock.inode_size;
        let block = u64::from(group.inode_table) + (offset / self.superblock.block_size) as u64;
        (block, offset % self.superblock.block_size)
    }

    /// The slot of inode `number`. Most requests ask for the same one several times.
    #[inline]
    fn inode_slot(&mut self, number: u32) -> Result<usize, Errno> {
        if self.latest.0 == number {
            return Ok(self.latest.1);
        }
        let slot = match self.inode_index.find(number.into()) {
            Some(slot) => {
                self.inode_index.touch(slot);
                slot
            }
            None => self.load_inode(number)?,
        };
        self.latest = (number, slot);
        Ok(slot)
    }

    #[cold]
    fn load_inode(&mut self, number: u32) -> Result<usize, Errno> {
        if !self.is_usable(number) {
            return Err(Errno::EUCLEAN);
        }
        let (block, offset) = self.inode_place(number);
        let size = self.superblock.inode_size;
        let inode = Inode::read(&self.cache.read(block)?[offset..offset + size])?;
        let slot = self.take_slot(number)?;
        self.inodes[slot] = inode;
        Ok(slot)
    }

    fn take_slot(&mut self, number: u32) -> Result<usize, Errno> {
        if self.inode_index.len() >= KEPT_INODES
            && let Some(oldest) = self.inode_index.oldest()
        {
            self.drop_slot(oldest)?;
        }
        let slot = self.inode_index.insert(number.into());
        if slot == self.inodes.len() {
            self.inodes.push(Inode::default());
        }
        Ok(slot)
    }

    fn drop_slot(&mut self, slot: usize) -> Result<(), Errno> {
        self.write_inode(slot)?;
        self.latest = (0, 0);
        self.inodes[slot] = Inode::default();
        self.inode_index.remove(slot);
        Ok(())
    }

    fn write_inodes(&mut self) -> Result<(), Errno> {
        (0..self.inodes.len()).try_for_each(|slot| self.write_inode(slot))
    }

    fn write_inode(&mut self, slot: usize) -> Result<(), Errno> {
        if !self.inodes[slot].dirty {
            return Ok(());
        }
        let (block, offset) = self.inode_place(self.inode_index.key(slot) as u32);
        let size = self.superblock.inode_size;
        let block = self.cache.modify(block)?;
        self.inodes[slot].write(&mut block[offset..offset + size]);
        self.inodes[slot].dirty = false;
        Ok(())
    }
}

fn read_groups<D: BlockDevice>(cache: &mut BlockCache<D>, superblock: &Superblock) -> Result<Groups, Errno> {
    let mut groups = Groups::new(superblock);
    let first = u64::from(superblock.first_data_block) + 1;
    for block in first..first + u64::from(superblock.descriptor_blocks()) {
        groups.read(cache.read(block)?, superblock)?;
    }
    Ok(groups)
}
