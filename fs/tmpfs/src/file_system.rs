//! `FileSystem` for tmpfs: checks what holds for every request, then calls the module that does it.

use alloc::vec::Vec;

use fs::Errno;
use fs::file_system::{
    Allocation, Attributes, Caller, DataSink, DataSource, EntrySink, FileSystem, NewTimes, NodeId, S_IFBLK, S_IFCHR,
    S_IFIFO, S_IFMT, S_IFREG, S_IFSOCK, Statistics, Timestamp, XattrMode,
};
use fs::linux::timestamp;

use crate::data::without_privileges;
use crate::entry;
use crate::inode::ROOT;
use crate::pages;
use crate::volume::Tmpfs;

/// Permission bits and set-id, set-group-id and sticky.
const MODE_BITS: u32 = 0o7777;

impl FileSystem for Tmpfs {
    fn root(&self) -> NodeId {
        ROOT.into()
    }

    fn is_in_memory(&self) -> bool {
        true
    }

    fn trim(&mut self) {
        self.reclaim_some();
        pages::trim(&mut self.memory);
    }

    fn is_busy(&self) -> bool {
        self.has_users()
    }

    fn attributes(&mut self, node: NodeId) -> Result<Attributes, Errno> {
        Ok(self.inode(node)?.attributes(&self.memory))
    }

    fn size(&mut self, node: NodeId) -> Result<u64, Errno> {
        Ok(self.inode(node)?.size(&self.memory))
    }

    fn lookup(&mut self, dir: NodeId, name: &[u8]) -> Result<NodeId, Errno> {
        Ok(self.resolve(self.name(dir, name)?)?.number().into())
    }

    fn generation(&mut self, node: NodeId) -> Result<u32, Errno> {
        Ok(self.inode(node)?.generation(&self.memory))
    }

    fn by_handle(&mut self, number: u64, generation: u32) -> Result<NodeId, Errno> {
        let inode = self.inode(number)?;
        if inode.generation(&self.memory) == generation { Ok(number) } else { Err(Errno::ESTALE) }
    }

    fn get(&mut self, node: NodeId) -> Result<(), Errno> {
        let inode = self.inode(node)?;
        self.add_user(inode)
    }

    fn put(&mut self, node: NodeId, count: u32) -> Result<(), Errno> {
        self.begin_or_go_on();
        let inode = self.inode(node)?;
        self.drop_users(inode, count)
    }

    fn read(&mut self, node: NodeId, offset: u64, len: usize, sink: &mut dyn DataSink) -> Result<usize, Errno> {
        self.begin();
        let inode = self.inode(node)?;
        self.read_file(inode, offset, len, sink)
    }

    fn write(
        &mut self,
        node: NodeId,
        offset: u64,
        len: usize,
        source: &mut dyn DataSource,
        caller: Caller,
    ) -> Result<usize, Errno> {
        self.begin_change()?;
        let inode = self.inode(node)?;
        self.write_file(inode, offset, len, source, caller)
    }

    fn set_written(&mut self, node: NodeId, written_ns: u64) -> Result<(), Errno> {
        if written_ns != 0 {
            let inode = self.inode(node)?;
            inode.save(&self.memory);
            inode.touch(&mut self.memory, written_ns);
        }
        Ok(())
    }

    fn take_accessed(&mut self) -> Option<Timestamp> {
        self.take_accessed_ns().map(timestamp)
    }

    fn read_dir(&mut self, dir: NodeId, position: u64, sink: &mut dyn EntrySink) -> Result<u64, Errno> {
        self.begin();
        let inode = self.inode(dir)?;
        if !inode.is_directory(&self.memory) {
            return Err(Errno::ENOTDIR);
        }
        if inode.links(&self.memory) == 0 {
            return Ok(position);
        }
        let next = entry::list(&self.memory, inode, position, sink);
        self.note_access(inode);
        Ok(next)
    }

    fn make_node(&mut self, dir: NodeId, name: &[u8], mode: u32, device: u64, caller: Caller) -> Result<NodeId, Errno> {
        self.begin_change()?;
        let device = match mode & S_IFMT {
            S_IFCHR | S_IFBLK => device,
            S_IFREG | S_IFIFO | S_IFSOCK => 0,
            _ => return Err(Errno::EINVAL),
        };
        let name = self.name(dir, name)?;
        Ok(self.make_plain(name, mode, device, caller)?.number().into())
    }

    fn make_nameless(&mut self, dir: NodeId, mode: u32, caller: Caller) -> Result<NodeId, Errno> {
        self.begin_change()?;
        let dir = self.inode(dir)?;
        if mode & S_IFMT != S_IFREG {
            return Err(Errno::EINVAL);
        }
        Ok(self.make_unnamed(dir, mode, caller)?.number().into())
    }

    fn make_dir(&mut self, dir: NodeId, name: &[u8], mode: u32, caller: Caller) -> Result<NodeId, Errno> {
        self.begin_change()?;
        let name = self.name(dir, name)?;
        Ok(self.make_directory(name, mode, caller)?.number().into())
    }

    fn make_symlink(&mut self, dir: NodeId, name: &[u8], target: &[u8], caller: Caller) -> Result<NodeId, Errno> {
        self.begin_change()?;
        let name = self.name(dir, name)?;
        Ok(self.make_link_to(name, target, caller)?.number().into())
    }

    fn read_link(&mut self, node: NodeId, target: &mut [u8]) -> Result<usize, Errno> {
        self.copy_target(self.inode(node)?, target)
    }

    fn link(&mut self, dir: NodeId, name: &[u8], node: NodeId, _caller: Caller) -> Result<(), Errno> {
        self.begin_change()?;
        let (name, inode) = (self.name(dir, name)?, self.inode(node)?);
        self.add_link(name, inode)
    }

    fn unlink(&mut self, dir: NodeId, name: &[u8]) -> Result<(), Errno> {
        self.begin_change()?;
        let name = self.name(dir, name)?;
        if name.is_dot() { Err(Errno::EISDIR) } else { self.remove_link(name) }
    }

    fn unlink_unused(&mut self, dir: NodeId, name: &[u8]) -> Result<Option<NodeId>, Errno> {
        self.begin_change()?;
        let name = self.name(dir, name)?;
        if name.is_dot() {
            return Err(Errno::EISDIR);
        }
        Ok(self.remove_unused_link(name)?.map(|node| node.number().into()))
    }

    fn remove_dir(&mut self, dir: NodeId, name: &[u8]) -> Result<(), Errno> {
        self.begin_change()?;
        let name = self.name(dir, name)?;
        self.remove_directory(name)
    }

    fn rename(
        &mut self,
        old_dir: NodeId,
        old_name: &[u8],
        new_dir: NodeId,
        new_name: &[u8],
        _caller: Caller,
    ) -> Result<(), Errno> {
        self.begin_change()?;
        let (old, new) = (self.name(old_dir, old_name)?, self.name(new_dir, new_name)?);
        self.move_name(old, new, None)
    }

    fn rename_leaving_whiteout(
        &mut self,
        old_dir: NodeId,
        old_name: &[u8],
        new_dir: NodeId,
        new_name: &[u8],
        caller: Caller,
    ) -> Result<(), Errno> {
        self.begin_change()?;
        let (old, new) = (self.name(old_dir, old_name)?, self.name(new_dir, new_name)?);
        self.move_name(old, new, Some(caller))
    }

    fn exchange(
        &mut self,
        first_dir: NodeId,
        first_name: &[u8],
        second_dir: NodeId,
        second_name: &[u8],
    ) -> Result<(), Errno> {
        self.begin_change()?;
        let (first, second) = (self.name(first_dir, first_name)?, self.name(second_dir, second_name)?);
        self.exchange_names(first, second)
    }

    fn truncate(&mut self, node: NodeId, size: u64) -> Result<(), Errno> {
        self.begin_change()?;
        let inode = self.inode(node)?;
        self.resize_file(inode, size)
    }

    fn allocate(&mut self, node: NodeId, offset: u64, bytes: u64, how: Allocation) -> Result<(), Errno> {
        self.begin_change()?;
        let inode = self.inode(node)?;
        self.change_space(inode, offset..offset.saturating_add(bytes), how)
    }

    fn seek_data(&mut self, node: NodeId, offset: u64, hole: bool) -> Result<(bool, u64), Errno> {
        self.look_for(self.inode(node)?, offset, hole)
    }

    fn set_mode(&mut self, node: NodeId, mode: u32) -> Result<(), Errno> {
        self.begin_change()?;
        let (inode, now) = (self.inode(node)?, self.now());
        let memory = &mut self.memory;
        inode.save(memory);
        inode.set_mode(memory, inode.mode(memory) & S_IFMT | mode & MODE_BITS);
        inode.set_changed(memory, now);
        Ok(())
    }

    fn set_owner(&mut self, node: NodeId, uid: Option<u32>, gid: Option<u32>) -> Result<(), Errno> {
        self.begin_change()?;
        let (inode, now) = (self.inode(node)?, self.now());
        let memory = &mut self.memory;
        let (old_uid, old_gid) = inode.owners(memory);
        inode.save(memory);
        inode.set_owners(memory, (uid.unwrap_or(old_uid), gid.unwrap_or(old_gid)));
        inode.set_changed(memory, now);
        if !inode.is_directory(memory) {
            inode.set_mode(memory, without_privileges(inode.mode(memory)));
        }
        self.drop_capabilities(inode)
    }

    fn set_times(&mut self, node: NodeId, times: NewTimes) -> Result<(), Errno> {
        self.begin_change()?;
        let (inode, now) = (self.inode(node)?, self.now());
        let memory = &mut self.memory;
        inode.save(memory);
        if let Some(accessed) = times.accessed {
            inode.set_accessed(memory, ns(accessed));
        }
        if let Some(modified) = times.modified {
            inode.set_modified(memory, ns(modified));
        }
        inode.set_changed(memory, now);
        Ok(())
    }

    fn xattr(&mut self, node: NodeId, name: &[u8]) -> Result<Vec<u8>, Errno> {
        self.xattr_of(self.inode(node)?, name)
    }

    fn xattr_names(&mut self, node: NodeId) -> Result<Vec<u8>, Errno> {
        self.xattr_names_of(self.inode(node)?)
    }

    fn set_xattr(
        &mut self,
        node: NodeId,
        name: &[u8],
        value: &[u8],
        mode: XattrMode,
        _caller: Caller,
    ) -> Result<(), Errno> {
        self.begin_change()?;
        let inode = self.inode(node)?;
        self.set_xattr_of(inode, name, value, mode)
    }

    fn remove_xattr(&mut self, node: NodeId, name: &[u8]) -> Result<(), Errno> {
        self.begin_change()?;
        let inode = self.inode(node)?;
        self.remove_xattr_of(inode, name)
    }

    fn set_uses(&mut self, uses: &[(NodeId, u32)]) -> Result<(), Errno> {
        self.begin();
        self.replace_uses(uses);
        Ok(())
    }

    fn is_changed(&self) -> bool {
        self.memory.is_changed()
    }

    fn clean_up(&mut self) -> Result<(), Errno> {
        self.reclaim_some();
        Ok(())
    }

    fn put_back(&mut self, place: usize, bytes: &[u8]) {
        self.memory.put_back(place, bytes);
    }

    fn memo(&self) -> [u64; 4] {
        self.own_memo()
    }

    fn statistics(&self) -> Statistics {
        self.figures()
    }
}

/// A time in nanoseconds since 1970: what is earlier counts as 1970, what is after 2554 as then.
fn ns(time: Timestamp) -> u64 {
    let seconds = u64::try_from(time.seconds).unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(time.nanos.into())
}
