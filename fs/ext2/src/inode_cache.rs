//! The inode cache: decoded copies of inodes in cached blocks.
//!
//! Callers keep inode numbers and look inodes up whenever needed, because any other look-up may evict one.
//! Invariant: the slot of a dirty inode is in `dirty`; a listed slot may be clean again, or hold another inode.

use alloc::vec::Vec;
use sys::fallible::TryVec;

use fs::Errno;
use fs::device::BlockDevice;
use fs::lru::LruIndex;
use fs::order::Order;

use crate::inode::Inode;
use crate::volume::Ext2;

/// Capacity of the cache.
const KEPT: usize = 1024;

/// The inode cache.
pub(crate) struct Inodes {
    index: LruIndex,
    list: Vec<Inode>,
    /// Slots of dirty inodes.
    dirty: Vec<usize>,
    /// Number and slot of the inode looked up last; number 0 for none.
    latest: (u32, usize),
}

impl Inodes {
    /// Returns an empty cache.
    pub(crate) fn new() -> Self {
        Inodes { index: LruIndex::new(KEPT), list: Vec::new(), dirty: Vec::new(), latest: (0, 0) }
    }

    /// Makes room for one more inode, dirty or not. `ENOMEM`.
    fn reserve(&mut self) -> Result<(), Errno> {
        self.index.reserve()?;
        self.list.try_make_room(1)?;
        self.dirty.try_make_room(self.list.len() + 1 - self.dirty.len())
    }
}

impl<D: BlockDevice> Ext2<D> {
    /// Returns inode `number`. `EUCLEAN` if it is not in use.
    pub(crate) fn inode(&mut self, number: u32) -> Result<&Inode, Errno> {
        let slot = self.inode_slot(number)?;
        Ok(&self.inodes.list[slot])
    }

    /// Returns inode `number` for a change, and marks it dirty.
    pub(crate) fn change(&mut self, number: u32) -> Result<&mut Inode, Errno> {
        let slot = self.inode_slot(number)?;
        self.mark_dirty(slot);
        Ok(&mut self.inodes.list[slot])
    }

    fn mark_dirty(&mut self, slot: usize) {
        if !self.inodes.list[slot].dirty {
            self.inodes.list[slot].dirty = true;
            self.inodes.dirty.push_reserved(slot);
        }
    }

    /// Returns inode `number` for a change of fields that are not on disk.
    pub(crate) fn hint(&mut self, number: u32) -> Result<&mut Inode, Errno> {
        let slot = self.inode_slot(number)?;
        Ok(&mut self.inodes.list[slot])
    }

    /// Adds a newly allocated inode.
    pub(crate) fn adopt(&mut self, number: u32, inode: Inode) -> Result<(), Errno> {
        let slot = match self.inodes.index.find(number.into()) {
            Some(slot) => slot,
            None => self.take_slot(number)?,
        };
        let listed = self.inodes.list[slot].dirty;
        self.inodes.list[slot] = Inode { dirty: listed, ..inode };
        self.mark_dirty(slot);
        Ok(())
    }

    /// Evicts the inode, after writing it if it is dirty.
    pub(crate) fn forget(&mut self, number: u32) -> Result<(), Errno> {
        match self.inodes.index.find(number.into()) {
            Some(slot) => self.drop_slot(slot),
            None => Ok(()),
        }
    }

    /// Returns block and offset of inode `number` in the inode table.
    pub(crate) fn inode_place(&self, number: u32) -> (u64, usize) {
        let index = number - 1;
        let group = &self.groups.list[(index / self.superblock.inodes_per_group) as usize];
        let offset = (index % self.superblock.inodes_per_group) as usize * self.superblock.inode_size;
        let block = u64::from(group.inode_table) + (offset / self.superblock.block_size) as u64;
        (block, offset % self.superblock.block_size)
    }

    /// Returns the slot of inode `number`. Most requests need the same inode several times.
    #[inline]
    fn inode_slot(&mut self, number: u32) -> Result<usize, Errno> {
        if self.inodes.latest.0 == number {
            return Ok(self.inodes.latest.1);
        }
        let slot = match self.inodes.index.find(number.into()) {
            Some(slot) => {
                self.inodes.index.touch(slot);
                slot
            }
            None => self.load_inode(number)?,
        };
        self.inodes.latest = (number, slot);
        Ok(slot)
    }

    #[cold]
    fn load_inode(&mut self, number: u32) -> Result<usize, Errno> {
        if !self.is_usable(number) {
            return Err(Errno::EUCLEAN);
        }
        let (block, offset) = self.inode_place(number);
        let size = self.superblock.inode_size;
        let may_be_unnamed = self.uses.count(number).is_some();
        let inode = Inode::read(&self.cache.read(block)?[offset..offset + size], may_be_unnamed)?;
        let slot = self.take_slot(number)?;
        self.inodes.list[slot] = inode;
        Ok(slot)
    }

    fn take_slot(&mut self, number: u32) -> Result<usize, Errno> {
        if self.inodes.index.len() >= KEPT
            && let Some(oldest) = self.inodes.index.oldest()
        {
            self.drop_slot(oldest)?;
        }
        self.inodes.reserve()?;
        let slot = self.inodes.index.insert(number.into());
        if slot == self.inodes.list.len() {
            self.inodes.list.push_reserved(Inode::default());
        }
        Ok(slot)
    }

    fn drop_slot(&mut self, slot: usize) -> Result<(), Errno> {
        self.write_inode(slot)?;
        self.inodes.latest = (0, 0);
        self.inodes.list[slot] = Inode::default();
        self.inodes.index.remove(slot);
        Ok(())
    }

    /// Whether an inode is dirty.
    pub(crate) fn has_dirty_inodes(&self) -> bool {
        self.inodes.dirty.iter().any(|&slot| self.inodes.list[slot].dirty)
    }

    /// Writes the dirty inodes into cached blocks.
    pub(crate) fn write_inodes(&mut self) -> Result<(), Errno> {
        while let Some(&slot) = self.inodes.dirty.last() {
            self.write_inode(slot)?;
            self.inodes.dirty.pop();
        }
        Ok(())
    }

    fn write_inode(&mut self, slot: usize) -> Result<(), Errno> {
        if !self.inodes.list[slot].dirty {
            return Ok(());
        }
        let (block, offset) = self.inode_place(self.inodes.index.key(slot) as u32);
        let size = self.superblock.inode_size;
        let inode = &self.inodes.list[slot];
        let bytes = match inode.links {
            // The disk keeps the inode while a name on it may refer to it.
            0 => self.cache.modify_late(block, offset..offset + size, Order::Link)?,
            _ => self.cache.modify(block, offset..offset + size, Order::Link)?,
        };
        inode.write(bytes);
        self.inodes.list[slot].dirty = false;
        Ok(())
    }
}
