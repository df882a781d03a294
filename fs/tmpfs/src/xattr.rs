//! Extended attributes (xattr(7)): a page of them for each inode that has some, in the format of ext2 (`fs::xattr_list`), whose limits they have.

use alloc::vec::Vec;

use fs::Errno;
use fs::file_system::XattrMode;
use fs::xattr_list::{Name, Xattr, XattrList};
use sys::fallible::{copied, filled};

use crate::inode::Inode;
use crate::pages;
use crate::plan::PAGE;
use crate::volume::Tmpfs;

/// Name of the attribute with the capabilities of a program.
const CAPABILITY: &[u8] = b"security.capability";

impl Tmpfs {
    /// Returns the value of an attribute. `ENODATA`, `EOPNOTSUPP`.
    pub(crate) fn xattr_of(&self, inode: Inode, name: &[u8]) -> Result<Vec<u8>, Errno> {
        let name = Name::new(name)?;
        copied(self.read_xattrs(inode)?.get(name).ok_or(Errno::ENODATA)?)
    }

    /// Returns the names of all attributes, each with a NUL behind it.
    pub(crate) fn xattr_names_of(&self, inode: Inode) -> Result<Vec<u8>, Errno> {
        let mut names = Vec::new();
        self.read_xattrs(inode)?.put_names(&mut names)?;
        Ok(names)
    }

    /// Sets an attribute. `EEXIST`, `ENODATA`: `mode` forbids it; `ENOSPC`: the attributes do not fit into a page, or none is free.
    pub(crate) fn set_xattr_of(
        &mut self,
        inode: Inode,
        name: &[u8],
        value: &[u8],
        mode: XattrMode,
    ) -> Result<(), Errno> {
        let name = Name::new(name)?;
        let mut list = self.read_xattrs(inode)?;
        match (mode, list.remove(name)) {
            (XattrMode::Create, true) => return Err(Errno::EEXIST),
            (XattrMode::Replace, false) => return Err(Errno::ENODATA),
            _ => list.insert(Xattr::new(name, value)?)?,
        }
        self.store_xattrs(inode, &list)
    }

    /// Removes an attribute. `ENODATA`.
    pub(crate) fn remove_xattr_of(&mut self, inode: Inode, name: &[u8]) -> Result<(), Errno> {
        let name = Name::new(name)?;
        let mut list = self.read_xattrs(inode)?;
        if list.remove(name) { self.store_xattrs(inode, &list) } else { Err(Errno::ENODATA) }
    }

    /// A file gets another content or owner: what executing it would give is gone (capabilities(7)).
    pub(crate) fn drop_capabilities(&mut self, inode: Inode) -> Result<(), Errno> {
        if inode.attribute_page(&self.memory) == 0 {
            return Ok(());
        }
        match self.remove_xattr_of(inode, CAPABILITY) {
            Err(Errno::ENODATA) => Ok(()),
            removed => removed,
        }
    }

    fn read_xattrs(&self, inode: Inode) -> Result<XattrList, Errno> {
        match inode.attribute_page(&self.memory) {
            0 => Ok(XattrList::default()),
            page => {
                let start = self.memory.places().page(page);
                XattrList::read_block(self.memory.bytes(start..start + PAGE))
            }
        }
    }

    fn store_xattrs(&mut self, inode: Inode, list: &XattrList) -> Result<(), Errno> {
        let mut bytes = filled(0, PAGE)?;
        list.write_block(&mut bytes)?;
        let page = match inode.attribute_page(&self.memory) {
            0 => pages::take(&mut self.memory)?,
            page => {
                self.memory.save_page(page);
                page
            }
        };
        let now = self.now();
        let memory = &mut self.memory;
        inode.save(memory);
        inode.set_changed(memory, now);
        inode.save_pointers(memory);
        if list.is_empty() {
            inode.set_attribute_page(memory, 0);
            pages::release(memory, page, 0);
            return Ok(());
        }
        inode.set_attribute_page(memory, page);
        let start = memory.places().page(page);
        memory.bytes_mut(start..start + PAGE).copy_from_slice(&bytes);
        Ok(())
    }
}
