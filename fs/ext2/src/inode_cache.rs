//! Inodes in memory: a copy of some of those in cached blocks.
//!
//! Inodes are named by their number everywhere and looked up again whenever needed, because any other look-up may push one out.
//! Invariant: the slot of a dirty inode is in `dirty`; one there may be clean again, or another's.

use alloc::vec::Vec;

use fs::Errno;
use fs::device::BlockDevice;
use fs::lru::LruIndex;

use crate::inode::Inode;
use crate::volume::Ext2;

/// Inodes kept in memory.
const KEPT: usize = 1024;

/// The inodes.
pub(crate) struct Inodes {
    index: LruIndex,
    list: Vec<Inode>,
    /// Slots that `write_inodes` looks at.
    dirty: Vec<usize>,
    /// Number and slot of the inode looked up last; number 0 for none.
    latest: (u32, usize),
}

impl Inodes {
    /// None.
    pub(crate) fn new() -> Self {
        Inodes { index: LruIndex::new(KEPT), list: Vec::new(), dirty: Vec::new(), latest: (0, 0) }
    }
}

impl<D: BlockDevice> Ext2<D> {
    /// The inode `number`. `EUCLEAN` when it is none in use.
    pub(crate) fn inode(&mut self, number: u32) -> Result<&Inode, Errno> {
        let slot = self.inode_slot(number)?;
        Ok(&self.inodes.list[slot])
    }

    /// The inode `number` for a change that is to be written.
    pub(crate) fn change(&mut self, number: u32) -> Result<&mut Inode, Errno> {
        let slot = self.inode_slot(number)?;
        self.mark_dirty(slot);
        Ok(&mut self.inodes.list[slot])
    }

    fn mark_dirty(&mut self, slot: usize) {
        if !self.inodes.list[slot].dirty {
            self.inodes.list[slot].dirty = true;
            self.inodes.dirty.push(slot);
        }
    }

    /// The inode `number` for a change of what is only in memory.
    pub(crate) fn hint(&mut self, number: u32) -> Result<&mut Inode, Errno> {
        let slot = self.inode_slot(number)?;
        Ok(&mut self.inodes.list[slot])
    }

    /// Puts a new inode into memory; its number was free.
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

    /// Forgets the inode, writing it down first if it was changed.
    pub(crate) fn forget(&mut self, number: u32) -> Result<(), Errno> {
        match self.inodes.index.find(number.into()) {
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
        let slot = self.inodes.index.insert(number.into());
        if slot == self.inodes.list.len() {
            self.inodes.list.push(Inode::default());
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

    /// Whether some inode was changed.
    pub(crate) fn has_dirty_inodes(&self) -> bool {
        self.inodes.dirty.iter().any(|&slot| self.inodes.list[slot].dirty)
    }

    /// Writes what was changed into cached blocks.
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
        self.inodes.list[slot].write(self.cache.modify(block, offset..offset + size)?);
        self.inodes.list[slot].dirty = false;
        Ok(())
    }
}
