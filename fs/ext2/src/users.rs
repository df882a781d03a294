//! Use counts of inodes: an inode in use exists even without a name.

use sys::fallible;

use fs::Errno;
use fs::device::BlockDevice;
use fs::file_system::NodeId;

use crate::superblock::ROOT_INODE;
use crate::volume::Ext2;

impl<D: BlockDevice> Ext2<D> {
    /// Increments the use count of the inode.
    pub(crate) fn add_user(&mut self, number: u32) -> Result<(), Errno> {
        self.inode(number)?;
        self.uses.add(number)
    }

    /// Whether an inode other than the root is in use.
    pub(crate) fn has_users(&self) -> bool {
        self.uses.nodes().any(|(number, count)| count > 0 && number != ROOT_INODE)
    }

    /// Subtracts `count` from the use count and frees the inode if it has neither user nor name left.
    pub(crate) fn drop_users(&mut self, number: u32, count: u32) -> Result<(), Errno> {
        if self.uses.count(number) == Some(count) && count > 0 && self.inode(number)?.links == 0 {
            return self.delete(number);
        }
        self.uses.remove(number, count).map(drop)
    }

    /// Frees the inode if it has neither user nor name.
    pub(crate) fn delete_if_unused(&mut self, number: u32) -> Result<(), Errno> {
        if self.inode(number)?.links > 0 {
            return Ok(());
        }
        match self.uses.count(number) {
            None => self.delete(number),
            Some(_) => self.add_orphan(number),
        }
    }

    /// Replaces all use counts by those in `uses`, sorted by node.
    pub(crate) fn replace_uses(&mut self, uses: &[(NodeId, u32)]) -> Result<(), Errno> {
        for &(node, count) in uses {
            let Ok(number) = self.number(node) else { continue };
            if count > 0 && self.uses.count(number) != Some(count) && self.inode(number).is_ok() {
                self.uses.set(number, count)?;
            }
            if self.should_pause() {
                self.pause()?;
            }
        }
        let is_used = |number: u32| uses.binary_search_by_key(&u64::from(number), |&(node, _)| node).is_ok();
        let unused = self.uses.nodes().filter(|&(number, count)| count > 0 && !is_used(number));
        let unused = fallible::collect(unused)?;
        for (number, count) in unused {
            self.drop_users(number, count)?;
            if self.should_pause() {
                self.pause()?;
            }
        }
        Ok(())
    }
}
