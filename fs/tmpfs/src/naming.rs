//! Creating nodes, linking, unlinking, removing directories.
//!
//! All checks come first: what follows cannot fail. What allocates comes before what frees (`memory`).

use fs::Errno;
use fs::file_system::{Caller, S_IFDIR, S_IFLNK, S_IFMT, S_ISGID};

use crate::entry::{Entry, Name};
use crate::inode::{self, Inode, SHORT_TARGET};
use crate::pages;
use crate::plan::PAGE;
use crate::volume::Tmpfs;

impl Tmpfs {
    /// Returns the inode with this name, `.` and `..` included. `ENOENT`.
    pub(crate) fn resolve(&self, name: Name) -> Result<Inode, Errno> {
        if name.is_dot() {
            return if name.is_parent() { name.directory().parent(&self.memory) } else { Ok(name.directory()) };
        }
        Ok(self.entry(name)?.node(&self.memory))
    }

    /// Returns the entry of a name. `ENOENT`.
    #[inline]
    pub(crate) fn entry(&self, name: Name) -> Result<Entry, Errno> {
        name.find(&self.memory).ok_or(Errno::ENOENT)
    }

    /// Checks that a name can be made. `EEXIST`, `ENOENT` in a directory that was removed, `ENOSPC`.
    pub(crate) fn require_new(&self, name: Name) -> Result<(), Errno> {
        if name.is_dot() || name.find(&self.memory).is_some() {
            return Err(Errno::EEXIST);
        }
        if name.directory().links(&self.memory) == 0 {
            return Err(Errno::ENOENT);
        }
        inode::require_room(&self.memory)
    }

    /// Takes an inode for a node in `directory`, without links. There is room.
    pub(crate) fn new_inode(&mut self, directory: Inode, mode: u32, caller: Caller) -> Inode {
        let now = self.now();
        let memory = &mut self.memory;
        let (mut mode, mut owners) = (mode & 0xffff, (caller.uid, caller.gid));
        if directory.mode(memory) & S_ISGID != 0 {
            owners.1 = directory.owners(memory).1;
            mode |= if mode & S_IFMT == S_IFDIR { S_ISGID } else { 0 };
        }
        Inode::take(memory, mode, owners, now)
    }

    /// Gives an inode a name that can be made.
    pub(crate) fn add_name(&mut self, name: Name, node: Inode) {
        let now = self.now();
        name.insert(&mut self.memory, node);
        name.directory().touch(&mut self.memory, now);
    }

    /// Removes a name.
    pub(crate) fn remove_name(&mut self, name: Name, entry: Entry) {
        let now = self.now();
        name.remove(&mut self.memory, entry);
        name.directory().touch(&mut self.memory, now);
    }

    /// Creates a node without content.
    pub(crate) fn make_plain(&mut self, name: Name, mode: u32, device: u64, caller: Caller) -> Result<Inode, Errno> {
        self.require_new(name)?;
        let node = self.new_inode(name.directory(), mode, caller);
        node.set_links(&mut self.memory, 1);
        node.set_device(&mut self.memory, device);
        self.add_name(name, node);
        Ok(node)
    }

    /// Creates a file without a name, which one user keeps.
    pub(crate) fn make_unnamed(&mut self, directory: Inode, mode: u32, caller: Caller) -> Result<Inode, Errno> {
        inode::require_room(&self.memory)?;
        let node = self.new_inode(directory, mode, caller);
        node.set_uses(&mut self.memory, 1);
        Ok(node)
    }

    /// Creates a directory.
    pub(crate) fn make_directory(&mut self, name: Name, mode: u32, caller: Caller) -> Result<Inode, Errno> {
        self.require_new(name)?;
        let node = self.new_inode(name.directory(), S_IFDIR | mode & 0o7777, caller);
        node.set_links(&mut self.memory, 2);
        node.set_parent(&mut self.memory, name.directory());
        self.add_name(name, node);
        self.count_child(name.directory(), 1);
        Ok(node)
    }

    /// Creates a symbolic link; a short target is stored in the inode.
    pub(crate) fn make_link_to(&mut self, name: Name, target: &[u8], caller: Caller) -> Result<Inode, Errno> {
        match target.len() {
            0 => return Err(Errno::ENOENT),
            PAGE.. => return Err(Errno::ENAMETOOLONG),
            _ => self.require_new(name)?,
        }
        let page = if target.len() > SHORT_TARGET { Some(pages::take(&mut self.memory)?) } else { None };
        let node = self.new_inode(name.directory(), S_IFLNK | 0o777, caller);
        let memory = &mut self.memory;
        node.set_links(memory, 1);
        node.set_size(memory, target.len() as u64);
        if let Some(page) = page {
            memory.put_half(node.pointer(0), page);
        }
        let start = page.map_or(node.pointer(0), |page| memory.places().page(page));
        memory.bytes_mut(start..start + target.len()).copy_from_slice(target);
        self.add_name(name, node);
        Ok(node)
    }

    /// Copies the target of a symbolic link, truncated to the buffer. Returns its length there.
    pub(crate) fn copy_target(&self, node: Inode, out: &mut [u8]) -> Result<usize, Errno> {
        let memory = &self.memory;
        if node.mode(memory) & S_IFMT != S_IFLNK {
            return Err(Errno::EINVAL);
        }
        let size = node.size(memory) as usize;
        let (inside, length) = (node.pointer(0), size.min(out.len()));
        let start = if size > SHORT_TARGET { memory.places().page(memory.half(inside)) } else { inside };
        out[..length].copy_from_slice(memory.bytes(start..start + length));
        Ok(length)
    }

    /// Adds a hard link to an inode: the first one too, of a file without a name that is in use.
    pub(crate) fn add_link(&mut self, name: Name, node: Inode) -> Result<(), Errno> {
        if node.is_directory(&self.memory) {
            return Err(Errno::EPERM);
        }
        let links = node.links(&self.memory);
        match self.require_new(name) {
            // It has room already.
            Err(Errno::ENOSPC) if links == 0 => {}
            checked => checked?,
        }
        let now = self.now();
        self.add_name(name, node);
        node.save(&self.memory);
        node.set_links(&mut self.memory, links + 1);
        node.set_changed(&mut self.memory, now);
        if links > 0 {
            inode::count_room(&mut self.memory, 1);
        }
        Ok(())
    }

    /// Removes a name of a node that is no directory.
    pub(crate) fn remove_link(&mut self, name: Name) -> Result<(), Errno> {
        let entry = self.entry(name)?;
        self.remove_found(name, entry)
    }

    /// Removes a name of a node that is no directory and has no users. Returns the node; `None`: it has more names. `EBUSY`, `EISDIR`.
    pub(crate) fn remove_unused_link(&mut self, name: Name) -> Result<Option<Inode>, Errno> {
        let entry = self.entry(name)?;
        let node = entry.node(&self.memory);
        if node.uses(&self.memory) > 0 {
            return Err(Errno::EBUSY);
        }
        let is_last = node.links(&self.memory) <= 1;
        self.remove_found(name, entry)?;
        Ok(is_last.then_some(node))
    }

    fn remove_found(&mut self, name: Name, entry: Entry) -> Result<(), Errno> {
        let node = entry.node(&self.memory);
        if node.is_directory(&self.memory) {
            return Err(Errno::EISDIR);
        }
        self.remove_name(name, entry);
        self.lose_name(node);
        Ok(())
    }

    /// Removes an empty directory.
    pub(crate) fn remove_directory(&mut self, name: Name) -> Result<(), Errno> {
        if name.is_dot() {
            return Err(if name.is_parent() { Errno::ENOTEMPTY } else { Errno::EINVAL });
        }
        let entry = self.entry(name)?;
        let node = entry.node(&self.memory);
        if !node.is_directory(&self.memory) {
            return Err(Errno::ENOTDIR);
        }
        if node.size(&self.memory) > 0 {
            return Err(Errno::ENOTEMPTY);
        }
        self.remove_name(name, entry);
        self.count_child(name.directory(), -1);
        self.lose_name(node);
        Ok(())
    }

    /// Counts a directory more or less in another one.
    pub(crate) fn count_child(&mut self, directory: Inode, change: i32) {
        directory.save(&self.memory);
        let links = directory.links(&self.memory).wrapping_add_signed(change);
        directory.set_links(&mut self.memory, links);
    }

    /// Counts a name less of an inode (a directory has one only), and frees it after its last name.
    pub(crate) fn lose_name(&mut self, node: Inode) {
        let now = self.now();
        let is_directory = node.is_directory(&self.memory);
        let left = if is_directory { 0 } else { node.links(&self.memory) - 1 };
        node.save(&self.memory);
        node.set_links(&mut self.memory, left);
        node.set_changed(&mut self.memory, now);
        if left > 0 {
            inode::count_room(&mut self.memory, -1);
        }
        self.delete_if_unused(node);
    }
}
