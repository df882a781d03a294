//! The inode cache: decoded copies of inodes in cached blocks.
//!
//! Callers keep inode numbers and look inodes up whenever needed, because any other look-up may evict one. Neighbours: `inodes` (the table).

use fs::Errno;
use fs::device::BlockDevice;
use fs::order::Order;

use crate::inode::Inode;
use crate::volume::Ext2;

impl<D: BlockDevice> Ext2<D> {
    /// Returns inode `number`. `EUCLEAN` if it is not in use.
    pub(crate) fn inode(&mut self, number: u32) -> Result<&Inode, Errno> {
        let slot = self.inode_slot(number)?;
        Ok(self.inodes.get(slot))
    }

    /// Returns inode `number` for a change, and marks it dirty.
    pub(crate) fn change(&mut self, number: u32) -> Result<&mut Inode, Errno> {
        let slot = self.inode_slot(number)?;
        self.inodes.mark_dirty(slot);
        Ok(self.inodes.get_mut(slot))
    }

    /// Returns inode `number` for a change of fields that are not on disk.
    pub(crate) fn hint(&mut self, number: u32) -> Result<&mut Inode, Errno> {
        let slot = self.inode_slot(number)?;
        Ok(self.inodes.get_mut(slot))
    }

    /// Adds a newly allocated inode.
    pub(crate) fn adopt(&mut self, number: u32, inode: Inode) -> Result<(), Errno> {
        let slot = match self.inodes.find(number) {
            Some(slot) => slot,
            None => self.take_slot(number)?,
        };
        let listed = self.inodes.get(slot).dirty;
        *self.inodes.get_mut(slot) = Inode { dirty: listed, ..inode };
        self.inodes.mark_dirty(slot);
        Ok(())
    }

    /// Evicts the inode, after writing it if it is dirty.
    pub(crate) fn forget(&mut self, number: u32) -> Result<(), Errno> {
        match self.inodes.find(number) {
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
        if let Some(slot) = self.inodes.latest(number) {
            return Ok(slot);
        }
        let slot = match self.inodes.look_up(number) {
            Some(slot) => slot,
            None => self.load_inode(number)?,
        };
        self.inodes.note(number, slot);
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
        *self.inodes.get_mut(slot) = inode;
        Ok(slot)
    }

    fn take_slot(&mut self, number: u32) -> Result<usize, Errno> {
        if let Some(oldest) = self.inodes.excess() {
            self.drop_slot(oldest)?;
        }
        self.inodes.insert(number)
    }

    fn drop_slot(&mut self, slot: usize) -> Result<(), Errno> {
        self.write_inode(slot)?;
        self.inodes.remove(slot);
        Ok(())
    }

    /// Whether an inode is dirty.
    pub(crate) fn has_dirty_inodes(&self) -> bool {
        self.inodes.has_dirty()
    }

    /// Writes the dirty inodes into cached blocks.
    pub(crate) fn write_inodes(&mut self) -> Result<(), Errno> {
        while let Some(slot) = self.inodes.last_listed() {
            self.write_inode(slot)?;
            self.inodes.unlist_last();
        }
        Ok(())
    }

    fn write_inode(&mut self, slot: usize) -> Result<(), Errno> {
        if !self.inodes.get(slot).dirty {
            return Ok(());
        }
        let (block, offset) = self.inode_place(self.inodes.number(slot));
        let size = self.superblock.inode_size;
        let inode = self.inodes.get(slot);
        let bytes = match inode.links {
            // The disk keeps the inode while a name on it may refer to it.
            0 => self.cache.modify_late(block, offset..offset + size, Order::Link)?,
            _ => self.cache.modify(block, offset..offset + size, Order::Link)?,
        };
        inode.write(bytes);
        self.inodes.get_mut(slot).dirty = false;
        Ok(())
    }
}
