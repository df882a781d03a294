//! Extended attributes (xattr(7)) of inodes: read from the inode and its block, written to the block.
//!
//! A change writes a new block, and gives the old one up: an inode refers to the old attributes or to the new ones, also after a power cut, because
//! the block is content and the inode that refers to it reaches the disk later (`fs::order`). So a block that inodes share, as Linux leaves them,
//! is never changed but for its count. Only when no block is free, one of a single inode is changed in place. Attributes inside an inode,
//! which Linux's ext4 and debugfs make, move to the block when they change. Neighbours: `fs::xattr_list` (the format), `inode_alloc` (freeing).

use alloc::vec::Vec;

use fs::Errno;
use fs::device::BlockDevice;
use fs::file_system::{Caller, XattrMode};
use fs::order::Order;
use sys::fallible::{copied, filled};

use crate::inode::{ATTRIBUTES_HEAD, attribute_area};
use crate::volume::Ext2;
use fs::bytes::{put_u32, u32_at};
use fs::xattr_list::{MAGIC, Name, REFERENCES, Xattr, XattrList};

/// Name of the attribute with the capabilities of a program.
const CAPABILITY: &[u8] = b"security.capability";

/// The attributes of an inode, by where they are.
struct Xattrs {
    inside: XattrList,
    block: XattrList,
}

impl<D: BlockDevice> Ext2<D> {
    /// Returns the value of an attribute. `ENODATA`, `EOPNOTSUPP`.
    pub(crate) fn xattr_of(&mut self, number: u32, name: &[u8]) -> Result<Vec<u8>, Errno> {
        let name = Name::new(name)?;
        let xattrs = self.read_xattrs(number)?;
        copied(xattrs.inside.get(name).or_else(|| xattrs.block.get(name)).ok_or(Errno::ENODATA)?)
    }

    /// Returns the names of the attributes, each with a NUL behind it.
    pub(crate) fn xattr_names_of(&mut self, number: u32) -> Result<Vec<u8>, Errno> {
        let xattrs = self.read_xattrs(number)?;
        let mut names = Vec::new();
        xattrs.inside.put_names(&mut names)?;
        xattrs.block.put_names(&mut names)?;
        Ok(names)
    }

    /// Sets an attribute. `EEXIST`, `ENODATA`: `mode` forbids it; `ENOSPC`: the attributes do not fit into a block, or none is free.
    pub(crate) fn set_xattr_of(
        &mut self,
        number: u32,
        name: &[u8],
        value: &[u8],
        mode: XattrMode,
        caller: Caller,
    ) -> Result<(), Errno> {
        let name = Name::new(name)?;
        let mut xattrs = self.read_xattrs(number)?;
        let (is_inside, is_in_block) = (xattrs.inside.remove(name), xattrs.block.remove(name));
        match (mode, is_inside || is_in_block) {
            (XattrMode::Create, true) => return Err(Errno::EEXIST),
            (XattrMode::Replace, false) => return Err(Errno::ENODATA),
            _ => xattrs.block.insert(Xattr::new(name, value)?)?,
        }
        self.allow_xattrs()?;
        self.store_block(number, &xattrs.block, caller)?;
        self.finish_change(number, is_inside.then_some(&xattrs.inside))
    }

    /// Removes an attribute. `ENODATA`.
    pub(crate) fn remove_xattr_of(&mut self, number: u32, name: &[u8]) -> Result<(), Errno> {
        let name = Name::new(name)?;
        let mut xattrs = self.read_xattrs(number)?;
        let (is_inside, is_in_block) = (xattrs.inside.remove(name), xattrs.block.remove(name));
        if is_in_block {
            self.store_block(number, &xattrs.block, Caller::default())?;
        } else if !is_inside {
            return Err(Errno::ENODATA);
        }
        self.finish_change(number, is_inside.then_some(&xattrs.inside))
    }

    /// A file gets another content or owner: what executing it would give is gone (capabilities(7)).
    pub(crate) fn drop_capabilities(&mut self, number: u32) -> Result<(), Errno> {
        let inode = self.inode(number)?;
        if inode.attribute_block == 0 && !inode.attributes_inside {
            return Ok(());
        }
        match self.remove_xattr_of(number, CAPABILITY) {
            Err(Errno::ENODATA) => Ok(()),
            removed => removed,
        }
    }

    fn read_xattrs(&mut self, number: u32) -> Result<Xattrs, Errno> {
        let attribute_block = self.inode(number)?.attribute_block;
        let (block, offset) = self.inode_place(number);
        let size = self.superblock.inode_size;
        let bytes = &self.cache.read(block)?[offset..offset + size];
        let inside = match attribute_area(bytes) {
            Some(area) => XattrList::read(&bytes[area..], ATTRIBUTES_HEAD, ATTRIBUTES_HEAD)?,
            None => XattrList::default(),
        };
        let block = match attribute_block {
            0 => XattrList::default(),
            block => {
                self.groups.locate(block)?;
                XattrList::read_block(self.cache.read(block.into())?)?
            }
        };
        Ok(Xattrs { inside, block })
    }

    /// Makes these the attributes in the block of an inode.
    fn store_block(&mut self, number: u32, list: &XattrList, caller: Caller) -> Result<(), Errno> {
        let old = self.inode(number)?.attribute_block;
        if list.is_empty() {
            self.change(number)?.attribute_block = 0;
            self.release_attributes(old)?;
            return self.count_sectors(number, -1);
        }
        let mut bytes = filled(0, self.superblock.block_size)?;
        list.write_block(&mut bytes)?;
        if let Err(error) = self.require_blocks(1, caller) {
            return self.rewrite_block(old, &bytes, error);
        }
        let goal = self.goal(number, 0)?;
        let block = self.take_block(goal)?;
        self.cache.overwrite(block.into(), |to| {
            to.copy_from_slice(&bytes);
            Ok(())
        })?;
        self.change(number)?.attribute_block = block;
        if old == 0 { self.count_sectors(number, 1) } else { self.release_attributes(old) }
    }

    /// Changes a block in place, because none is free for another. Fails with `error` if it cannot.
    fn rewrite_block(&mut self, block: u32, bytes: &[u8], error: Errno) -> Result<(), Errno> {
        if block == 0 || u32_at(self.cache.read(block.into())?, REFERENCES) != 1 {
            return Err(error);
        }
        self.cache.modify(block.into(), 0..bytes.len(), Order::Metadata)?.copy_from_slice(bytes);
        Ok(())
    }

    /// Notes the time of a change; `inside`: the attributes that are left inside the inode, if one of those was removed.
    fn finish_change(&mut self, number: u32, inside: Option<&XattrList>) -> Result<(), Errno> {
        let now = self.now();
        self.change(number)?.changed = now;
        let Some(list) = inside else { return Ok(()) };
        let (block, offset) = self.inode_place(number);
        let size = self.superblock.inode_size;
        let area = attribute_area(&self.cache.read(block)?[offset..offset + size]).ok_or(Errno::EUCLEAN)?;
        let bytes = self.cache.modify(block, offset + area..offset + size, Order::Link)?;
        bytes.fill(0);
        if list.is_empty() {
            return Ok(());
        }
        put_u32(bytes, 0, MAGIC);
        list.write(bytes, ATTRIBUTES_HEAD, ATTRIBUTES_HEAD)
    }

    /// Allows extended attributes in the format. Its mark is on the disk before anything refers to a block of them.
    fn allow_xattrs(&mut self) -> Result<(), Errno> {
        if self.superblock.has_xattrs() {
            return Ok(());
        }
        self.superblock.allow_xattrs()?;
        self.note_write_time();
        self.write_everything()
    }
}
