//! Creating nodes, linking, unlinking, removing directories.
//!
//! Each operation makes all checks before it changes anything. Only the device, or space for the entry, can
//! fail then; a node created for it is freed.

use fs::Errno;
use fs::device::{BlockDevice, SECTOR_SIZE};
use fs::file_system::{Caller, S_IFDIR, S_IFLNK};
use fs::names::Known;

use crate::directory::{Found, Search, Space};
use crate::entry::{self, record_size};
use crate::inode::FAST_LINK;
use crate::volume::Ext2;

/// Limit of links of an inode, by the format.
pub(crate) const MAX_LINKS: u16 = 32000;

impl<D: BlockDevice> Ext2<D> {
    /// Returns the entry for `name`. `ENOENT` if there is none.
    pub(crate) fn require_entry(&mut self, dir: u32, name: &[u8]) -> Result<Found, Errno> {
        self.find_entry(dir, name)?.ok_or(Errno::ENOENT)
    }

    /// Returns space for the new name, if the search for it has passed some. `EEXIST`; `ENOENT` in a directory that was removed.
    fn require_no_entry(&mut self, dir: u32, name: &[u8]) -> Result<Option<Space>, Errno> {
        match self.search::<true>(dir, name)? {
            Search::Found(_) => Err(Errno::EEXIST),
            Search::Absent(_) if self.inode(dir)?.links == 0 => Err(Errno::ENOENT),
            Search::Absent(passed) => Ok(passed),
        }
    }

    /// Creates a node without content.
    pub(crate) fn make_plain(
        &mut self,
        dir: u32,
        name: &[u8],
        mode: u32,
        device: u64,
        caller: Caller,
    ) -> Result<u32, Errno> {
        let passed = self.require_no_entry(dir, name)?;
        let space = self.make_space(passed, dir, name, caller)?;
        let number = self.new_inode(dir, mode, caller)?;
        if device != 0 {
            self.change(number)?.set_device(device);
        }
        self.name_new(space, dir, name, number, caller)?;
        Ok(number)
    }

    /// Creates a file without a name, which one user keeps.
    pub(crate) fn make_unnamed(&mut self, dir: u32, mode: u32, caller: Caller) -> Result<u32, Errno> {
        let number = self.new_inode(dir, mode, caller)?;
        match self.uses.add(number) {
            Ok(()) => self.add_orphan(number).map(|()| number),
            Err(error) => {
                self.delete(number)?;
                Err(error)
            }
        }
    }

    /// Creates a symbolic link; a short target is stored in the inode.
    pub(crate) fn make_link_to(&mut self, dir: u32, name: &[u8], target: &[u8], caller: Caller) -> Result<u32, Errno> {
        if target.is_empty() {
            return Err(Errno::ENOENT);
        }
        if target.len() >= self.superblock.block_size {
            return Err(Errno::ENAMETOOLONG);
        }
        let passed = self.require_no_entry(dir, name)?;
        let space = self.make_space(passed, dir, name, caller)?;
        let number = self.new_inode(dir, S_IFLNK | 0o777, caller)?;
        match self.set_target(number, target, caller) {
            Ok(()) => self.name_new(space, dir, name, number, caller)?,
            Err(error) => {
                self.delete(number)?;
                return Err(error);
            }
        }
        Ok(number)
    }

    fn set_target(&mut self, number: u32, target: &[u8], caller: Caller) -> Result<(), Errno> {
        if target.len() < FAST_LINK {
            let inode = self.change(number)?;
            for (pointer, bytes) in inode.pointers.iter_mut().zip(target.chunks(4)) {
                let mut word = [0; 4];
                word[..bytes.len()].copy_from_slice(bytes);
                *pointer = u32::from_le_bytes(word);
            }
        } else {
            let block = self.provide_block(number, 0, caller)?.block;
            self.cache.overwrite(block.into(), |bytes| {
                let (begin, rest) = bytes.split_at_mut(target.len());
                begin.copy_from_slice(target);
                rest.fill(0);
                Ok(())
            })?;
        }
        self.change(number)?.size = target.len() as u64;
        Ok(())
    }

    /// Copies the target of a symbolic link, truncated to the buffer. `EUCLEAN` if its size is impossible.
    pub(crate) fn copy_target(&mut self, number: u32, out: &mut [u8]) -> Result<usize, Errno> {
        let block_size = self.superblock.block_size;
        let inode = self.inode(number)?;
        if inode.kind() != S_IFLNK {
            return Err(Errno::EINVAL);
        }
        let fast = inode.is_fast_link(block_size);
        let limit = if fast { FAST_LINK } else { block_size };
        let size = inode.size as usize;
        if inode.size == 0 || inode.size >= limit as u64 {
            return Err(Errno::EUCLEAN);
        }
        let len = size.min(out.len());
        if fast {
            let bytes = inode.pointers.iter().flat_map(|word| word.to_le_bytes());
            out[..len].iter_mut().zip(bytes).for_each(|(out, byte)| *out = byte);
        } else {
            let block = self.find_block(number, 0)?.ok_or(Errno::EUCLEAN)?;
            out[..len].copy_from_slice(&self.cache.read(block.into())?[..len]);
        }
        Ok(len)
    }

    /// Creates a directory with `.` and `..`.
    pub(crate) fn make_directory(&mut self, dir: u32, name: &[u8], mode: u32, caller: Caller) -> Result<u32, Errno> {
        let passed = self.require_no_entry(dir, name)?;
        if self.inode(dir)?.links >= MAX_LINKS {
            return Err(Errno::EMLINK);
        }
        let space = self.make_space(passed, dir, name, caller)?;
        let number = self.new_inode(dir, S_IFDIR | mode & 0o7777, caller)?;
        if let Err(error) = self.fill_directory(number, dir, caller) {
            self.delete(number)?;
            return Err(error);
        }
        self.name_new(space, dir, name, number, caller)?;
        self.change(number)?.links = 2;
        self.change(dir)?.links += 1;
        Ok(number)
    }

    fn fill_directory(&mut self, number: u32, parent: u32, caller: Caller) -> Result<(), Errno> {
        let format = self.entry_format();
        let size = self.superblock.block_size;
        let block = self.provide_block(number, 0, caller)?.block;
        let own = record_size(1);
        self.cache.overwrite(block.into(), |bytes| {
            entry::divide(bytes);
            entry::write(bytes, 0, own, number, S_IFDIR, b".", format);
            entry::write(bytes, own, SECTOR_SIZE - own, parent, S_IFDIR, b"..", format);
            Ok(())
        })?;
        self.change(number)?.size = size as u64;
        self.names.learn(number, b"..", Known::Node(parent, 0));
        Ok(())
    }

    /// Adds the first name of a new inode, or frees the inode.
    fn name_new(
        &mut self,
        space: Option<Space>,
        dir: u32,
        name: &[u8],
        number: u32,
        caller: Caller,
    ) -> Result<(), Errno> {
        let mode = self.inode(number)?.mode;
        match self.add_entry(space, dir, name, number, mode, caller) {
            Ok(()) => {
                self.change(number)?.links = 1;
                Ok(())
            }
            Err(error) => {
                self.delete(number)?;
                Err(error)
            }
        }
    }

    /// Adds a hard link to an inode: the first one too, of a file without a name that is in use.
    pub(crate) fn add_link(&mut self, dir: u32, name: &[u8], number: u32, caller: Caller) -> Result<(), Errno> {
        let inode = self.inode(number)?;
        let mode = inode.mode;
        match inode.links {
            _ if inode.is_directory() => return Err(Errno::EPERM),
            MAX_LINKS.. => return Err(Errno::EMLINK),
            _ => {}
        }
        let passed = self.require_no_entry(dir, name)?;
        self.require_known(dir)?;
        let space = self.make_space(passed, dir, name, caller)?;
        self.order_link(space.map(|space| space.sector()))?;
        self.add_entry(space, dir, name, number, mode, caller)?;
        self.remove_orphan(number)?;
        let now = self.now();
        let inode = self.change(number)?;
        inode.links += 1;
        inode.changed = now;
        Ok(())
    }

    /// Removes a name of an inode that is no directory.
    pub(crate) fn remove_link(&mut self, dir: u32, name: &[u8]) -> Result<(), Errno> {
        let found = self.require_entry(dir, name)?;
        self.remove_found(dir, name, found)
    }

    /// Removes a name of an inode that is no directory and has no users. Returns the inode; `None`: it has more names. `EBUSY`, `EISDIR`.
    pub(crate) fn remove_unused_link(&mut self, dir: u32, name: &[u8]) -> Result<Option<u32>, Errno> {
        let found = self.require_entry(dir, name)?;
        if self.uses.count(found.node).is_some() {
            return Err(Errno::EBUSY);
        }
        let is_last = self.inode(found.node)?.links <= 1;
        self.remove_found(dir, name, found)?;
        Ok(is_last.then_some(found.node))
    }

    fn remove_found(&mut self, dir: u32, name: &[u8], found: Found) -> Result<(), Errno> {
        let inode = self.inode(found.node)?;
        if inode.is_directory() {
            return Err(Errno::EISDIR);
        }
        let has_others = inode.links > 1;
        let is_late = has_others && self.order_removal(dir, name, found)?;
        self.remove_entry(dir, name, found, is_late)?;
        self.lose_name(found.node)
    }

    /// Orders the removal of a name after those that the window has added. Returns whether it is late.
    fn order_removal(&mut self, dir: u32, name: &[u8], found: Found) -> Result<bool, Errno> {
        let removed = self.sector_of(dir, name, found)?;
        self.order_names(None, removed)
    }

    /// Writes everything if the disk does not know directory `dir`: a node that has another name must not lose it for one there.
    pub(crate) fn require_known(&mut self, dir: u32) -> Result<(), Errno> {
        if self.is_ordered() && self.is_new_inode(dir) { self.write_everything() } else { Ok(()) }
    }

    /// Removes an empty directory.
    pub(crate) fn remove_directory(&mut self, dir: u32, name: &[u8]) -> Result<(), Errno> {
        match name {
            b"." => return Err(Errno::EINVAL),
            b".." => return Err(Errno::ENOTEMPTY),
            _ => {}
        }
        let found = self.require_entry(dir, name)?;
        if !self.is_empty(found.node)? {
            return Err(Errno::ENOTEMPTY);
        }
        // What has moved out of it must be on the disk elsewhere.
        let is_late = self.order_removal(dir, name, found)?;
        self.remove_entry(dir, name, found, is_late)?;
        self.lose_child_directory(dir)?;
        self.lose_name(found.node)
    }

    /// Decrements the link count of `dir` for a `..` that is gone.
    pub(crate) fn lose_child_directory(&mut self, dir: u32) -> Result<(), Errno> {
        let inode = self.change(dir)?;
        inode.links = inode.links.saturating_sub(1).max(2);
        Ok(())
    }

    /// Decrements the link count of an inode (a directory has one name only), and frees it after its last name.
    pub(crate) fn lose_name(&mut self, number: u32) -> Result<(), Errno> {
        let now = self.now();
        let inode = self.change(number)?;
        inode.links = if inode.is_directory() { 0 } else { inode.links.saturating_sub(1) };
        inode.changed = now;
        self.delete_if_unused(number)
    }
}
