//! The list of orphans on the disk: inodes without name that are in use, or whose blocks are still being freed.
//!
//! With a journal the disk is a moment of the running file system, and in such a moment these inodes belong to nobody. So they are on a
//! list, which begins in the superblock and goes on in their time of deletion. A mount after a power cut frees them, as Linux's and
//! `e2fsck` do. Linux has files on it, too, that it was truncating: these keep their name and get the size that they have.
//!
//! Neighbours: `fs::preserve::uses`, the same for the successor of a process that died.

use alloc::vec::Vec;

use fs::Errno;
use fs::device::BlockDevice;
use sys::fallible::{self, TryVec};

use crate::block_free::Pauses;
use crate::inode::{DELETED, LINKS};
use crate::volume::Ext2;
use fs::bytes::{u16_at, u32_at};

/// Limit of the list: that of the files in use.
const MOST: usize = abi::limits::FILES_IN_USE;

impl<D: BlockDevice> Ext2<D> {
    /// Puts the inode on the list, if it is not there.
    #[inline]
    pub(crate) fn add_orphan(&mut self, number: u32) -> Result<(), Errno> {
        if self.journal.is_used() { self.list_orphan(number) } else { Ok(()) }
    }

    fn list_orphan(&mut self, number: u32) -> Result<(), Errno> {
        let list = self.orphan_list()?;
        if list.contains(&number) {
            return Ok(());
        }
        list.try_push(number)?;
        let next = self.superblock.last_orphan;
        self.change(number)?.deleted = next;
        self.set_last_orphan(number);
        Ok(())
    }

    /// Takes the inode off the list.
    #[inline]
    pub(crate) fn remove_orphan(&mut self, number: u32) -> Result<(), Errno> {
        if self.journal.is_used() { self.unlist_orphan(number) } else { Ok(()) }
    }

    fn unlist_orphan(&mut self, number: u32) -> Result<(), Errno> {
        let list = self.orphan_list()?;
        let Some(at) = list.iter().rposition(|&listed| listed == number) else { return Ok(()) };
        let next = at.checked_sub(1).map_or(0, |at| list[at]);
        let before = list.get(at + 1).copied();
        list.remove(at);
        match before {
            Some(before) => self.change(before)?.deleted = next,
            None => self.set_last_orphan(next),
        }
        self.change(number)?.deleted = 0;
        Ok(())
    }

    /// Frees what a power cut has left on the list, in transactions of their own, and finishes truncations.
    pub(crate) fn adopt_orphans(&mut self) -> Result<(), Errno> {
        if !self.journal.is_used() || self.superblock.last_orphan == 0 {
            return Ok(());
        }
        for number in fallible::copied(self.orphan_list()?)? {
            let (block, offset) = self.inode_place(number);
            let adopted = match u16_at(self.cache.read(block)?, offset + LINKS) {
                0 => self.uses.set(number, 0),
                _ => self.finish_truncation(number),
            };
            if let Err(error) = adopted {
                sys::log!("orphaned inode {number} not freed: {error}");
            }
        }
        Ok(())
    }

    fn finish_truncation(&mut self, number: u32) -> Result<(), Errno> {
        let inode = self.inode(number)?;
        let (size, has_blocks) = (inode.size, inode.is_regular());
        if has_blocks {
            self.free_blocks_from(number, size.div_ceil(self.block_size()), Pauses::Yes)?;
            self.clear_tail(number, size)?;
        }
        self.remove_orphan(number)
    }

    fn set_last_orphan(&mut self, number: u32) {
        self.superblock.last_orphan = number;
        self.note_superblock();
    }

    /// Returns the list, after reading it if need be. A corrupt one counts as empty; the next check frees what was on it.
    fn orphan_list(&mut self) -> Result<&mut Vec<u32>, Errno> {
        if self.orphans.is_none() {
            let list = match self.read_orphans() {
                Err(Errno::EUCLEAN) => {
                    sys::log!("list of orphaned inodes is corrupt and was dropped; run e2fsck");
                    self.superblock.set_errors();
                    self.set_last_orphan(0);
                    Vec::new()
                }
                read => read?,
            };
            self.orphans = Some(list);
        }
        self.orphans.as_mut().ok_or(Errno::EIO)
    }

    fn read_orphans(&mut self) -> Result<Vec<u32>, Errno> {
        let mut list = Vec::new();
        let mut number = self.superblock.last_orphan;
        while number != 0 {
            if !self.is_usable(number) || list.len() == MOST {
                return Err(Errno::EUCLEAN);
            }
            list.try_push(number)?;
            let (block, offset) = self.inode_place(number);
            let table = self.cache.read(block)?;
            number = u32_at(table, offset + DELETED);
        }
        list.reverse();
        Ok(list)
    }
}
