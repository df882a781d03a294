//! `FileSystem` for ext2: checks what holds for every request, then calls the module that does it.

use alloc::vec::Vec;

use fs::Errno;
use fs::device::BlockDevice;
use fs::file_system::{
    Allocation, Attributes, Caller, DataSink, DataSource, EntrySink, FileSystem, NewTimes, NodeId, S_IFBLK, S_IFCHR,
    S_IFIFO, S_IFMT, S_IFREG, S_IFSOCK, S_ISGID, S_ISUID, S_IXGRP, Statistics, Timestamp, XattrMode,
};
use fs::flights::Arrival;
use fs::linux::timestamp;

use crate::entry::is_dot;
use crate::rename::Place;
use crate::superblock::{MAGIC, ROOT_INODE};
use crate::volume::Ext2;

/// Permission bits and set-id, set-group-id and sticky.
const MODE_BITS: u32 = 0o7777;

impl<D: BlockDevice> FileSystem for Ext2<D> {
    fn root(&self) -> NodeId {
        ROOT_INODE.into()
    }

    fn has_journal(&self) -> bool {
        self.superblock.has_journal()
    }

    fn is_busy(&self) -> bool {
        self.has_users()
    }

    fn attributes(&mut self, node: NodeId) -> Result<Attributes, Errno> {
        let number = self.number(node)?;
        let block_size = self.superblock.block_size as u32;
        let inode = self.inode(number)?;
        Ok(Attributes {
            node,
            mode: inode.mode,
            links: inode.links.into(),
            uid: inode.uid,
            gid: inode.gid,
            device: inode.device(),
            size: inode.size,
            block_size,
            blocks: inode.sectors.into(),
            accessed: inode.accessed,
            modified: inode.modified,
            changed: inode.changed,
        })
    }

    fn lookup(&mut self, dir: NodeId, name: &[u8]) -> Result<NodeId, Errno> {
        let dir = self.number(dir)?;
        Ok(self.require_entry(dir, name)?.node.into())
    }

    fn generation(&mut self, node: NodeId) -> Result<u32, Errno> {
        let number = self.number(node)?;
        Ok(self.inode(number)?.generation)
    }

    fn by_handle(&mut self, number: u64, generation: u32) -> Result<NodeId, Errno> {
        let number = self.number(number)?;
        // A free inode, or one that never was used, is no file, and neither is an orphan that waits to be freed.
        let has_users = self.uses.count(number).is_some_and(|count| count > 0);
        let is_it = match self.inode(number) {
            Ok(inode) => inode.generation == generation && (inode.links > 0 || has_users),
            Err(Errno::EUCLEAN) => false,
            Err(error) => return Err(error),
        };
        if is_it { Ok(number.into()) } else { Err(Errno::ESTALE) }
    }

    fn get(&mut self, node: NodeId) -> Result<(), Errno> {
        let number = self.number(node)?;
        self.add_user(number)
    }

    fn put(&mut self, node: NodeId, count: u32) -> Result<(), Errno> {
        self.begin_or_go_on()?;
        let number = self.number(node)?;
        self.drop_users(number, count)
    }

    fn read(&mut self, node: NodeId, offset: u64, len: usize, sink: &mut dyn DataSink) -> Result<usize, Errno> {
        self.begin()?;
        let number = self.number(node)?;
        self.read_file(number, offset, len, sink)
    }

    fn forget_content(&mut self, node: NodeId, offset: u64, bytes: usize) {
        if let Ok(number) = self.number(node) {
            self.forget_blocks(number, offset, bytes);
        }
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
        let number = self.number(node)?;
        self.write_file(number, offset, len, source, caller)
    }

    fn set_written(&mut self, node: NodeId, written_ns: u64) -> Result<(), Errno> {
        if written_ns != 0 {
            let number = self.number(node)?;
            self.change(number)?.touch(timestamp(written_ns));
        }
        Ok(())
    }

    fn take_accessed(&mut self) -> Option<Timestamp> {
        self.accessed.take()
    }

    fn read_dir(&mut self, dir: NodeId, position: u64, sink: &mut dyn EntrySink) -> Result<u64, Errno> {
        self.begin()?;
        let dir = self.number(dir)?;
        self.list(dir, position, sink)
    }

    fn make_node(&mut self, dir: NodeId, name: &[u8], mode: u32, device: u64, caller: Caller) -> Result<NodeId, Errno> {
        self.begin_change()?;
        let dir = self.number(dir)?;
        let device = match mode & S_IFMT {
            S_IFCHR | S_IFBLK => device,
            S_IFREG | S_IFIFO | S_IFSOCK => 0,
            _ => return Err(Errno::EINVAL),
        };
        self.make_plain(dir, name, mode, device, caller).map(NodeId::from)
    }

    fn make_nameless(&mut self, dir: NodeId, mode: u32, caller: Caller) -> Result<NodeId, Errno> {
        self.begin_change()?;
        let dir = self.number(dir)?;
        if mode & S_IFMT != S_IFREG {
            return Err(Errno::EINVAL);
        }
        self.make_unnamed(dir, mode, caller).map(NodeId::from)
    }

    fn make_dir(&mut self, dir: NodeId, name: &[u8], mode: u32, caller: Caller) -> Result<NodeId, Errno> {
        self.begin_change()?;
        let dir = self.number(dir)?;
        self.make_directory(dir, name, mode, caller).map(NodeId::from)
    }

    fn make_symlink(&mut self, dir: NodeId, name: &[u8], target: &[u8], caller: Caller) -> Result<NodeId, Errno> {
        self.begin_change()?;
        let dir = self.number(dir)?;
        self.make_link_to(dir, name, target, caller).map(NodeId::from)
    }

    fn read_link(&mut self, node: NodeId, target: &mut [u8]) -> Result<usize, Errno> {
        let number = self.number(node)?;
        self.copy_target(number, target)
    }

    fn link(&mut self, dir: NodeId, name: &[u8], node: NodeId, caller: Caller) -> Result<(), Errno> {
        self.begin_change()?;
        let (dir, number) = (self.number(dir)?, self.number(node)?);
        self.add_link(dir, name, number, caller)
    }

    fn unlink(&mut self, dir: NodeId, name: &[u8]) -> Result<(), Errno> {
        self.begin_change()?;
        let dir = self.number(dir)?;
        if is_dot(name) { Err(Errno::EISDIR) } else { self.remove_link(dir, name) }
    }

    fn unlink_unused(&mut self, dir: NodeId, name: &[u8]) -> Result<Option<NodeId>, Errno> {
        self.begin_change()?;
        let dir = self.number(dir)?;
        if is_dot(name) {
            Err(Errno::EISDIR)
        } else {
            self.remove_unused_link(dir, name).map(|node| node.map(NodeId::from))
        }
    }

    fn remove_dir(&mut self, dir: NodeId, name: &[u8]) -> Result<(), Errno> {
        self.begin_change()?;
        let dir = self.number(dir)?;
        self.remove_directory(dir, name)
    }

    fn rename(
        &mut self,
        old_dir: NodeId,
        old_name: &[u8],
        new_dir: NodeId,
        new_name: &[u8],
        caller: Caller,
    ) -> Result<(), Errno> {
        self.begin_change()?;
        let old = Place { dir: self.number(old_dir)?, name: old_name };
        let new = Place { dir: self.number(new_dir)?, name: new_name };
        self.move_name(old, new, caller)
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
        let old = Place { dir: self.number(old_dir)?, name: old_name };
        let new = Place { dir: self.number(new_dir)?, name: new_name };
        self.move_leaving_whiteout(old, new, caller)
    }

    fn exchange(
        &mut self,
        first_dir: NodeId,
        first_name: &[u8],
        second_dir: NodeId,
        second_name: &[u8],
    ) -> Result<(), Errno> {
        self.begin_change()?;
        let first = Place { dir: self.number(first_dir)?, name: first_name };
        let second = Place { dir: self.number(second_dir)?, name: second_name };
        self.exchange_names(first, second)
    }

    fn truncate(&mut self, node: NodeId, size: u64) -> Result<(), Errno> {
        self.begin_change()?;
        let number = self.number(node)?;
        self.resize_file(number, size)
    }

    fn allocate(&mut self, node: NodeId, offset: u64, bytes: u64, how: Allocation) -> Result<(), Errno> {
        self.begin_change()?;
        let number = self.number(node)?;
        self.change_space(number, offset..offset.saturating_add(bytes), how)
    }

    fn seek_data(&mut self, node: NodeId, offset: u64, hole: bool) -> Result<(bool, u64), Errno> {
        let number = self.number(node)?;
        self.look_for(number, offset, hole)
    }

    fn set_mode(&mut self, node: NodeId, mode: u32) -> Result<(), Errno> {
        self.begin_change()?;
        let number = self.number(node)?;
        let now = self.now();
        let inode = self.change(number)?;
        inode.mode = inode.kind() | mode & MODE_BITS;
        inode.changed = now;
        Ok(())
    }

    fn set_owner(&mut self, node: NodeId, uid: Option<u32>, gid: Option<u32>) -> Result<(), Errno> {
        self.begin_change()?;
        let number = self.number(node)?;
        let now = self.now();
        let inode = self.change(number)?;
        inode.uid = uid.unwrap_or(inode.uid);
        inode.gid = gid.unwrap_or(inode.gid);
        inode.changed = now;
        if !inode.is_directory() {
            inode.mode &= !S_ISUID;
            if inode.mode & S_IXGRP != 0 {
                inode.mode &= !S_ISGID;
            }
        }
        self.drop_capabilities(number)
    }

    fn set_times(&mut self, node: NodeId, times: NewTimes) -> Result<(), Errno> {
        self.begin_change()?;
        let number = self.number(node)?;
        let now = self.now();
        let inode = self.change(number)?;
        inode.accessed = times.accessed.unwrap_or(inode.accessed);
        inode.modified = times.modified.unwrap_or(inode.modified);
        inode.changed = now;
        Ok(())
    }

    fn xattr(&mut self, node: NodeId, name: &[u8]) -> Result<Vec<u8>, Errno> {
        let number = self.number(node)?;
        self.xattr_of(number, name)
    }

    fn xattr_names(&mut self, node: NodeId) -> Result<Vec<u8>, Errno> {
        let number = self.number(node)?;
        self.xattr_names_of(number)
    }

    fn set_xattr(
        &mut self,
        node: NodeId,
        name: &[u8],
        value: &[u8],
        mode: XattrMode,
        caller: Caller,
    ) -> Result<(), Errno> {
        self.begin_change()?;
        let number = self.number(node)?;
        self.set_xattr_of(number, name, value, mode, caller)
    }

    fn remove_xattr(&mut self, node: NodeId, name: &[u8]) -> Result<(), Errno> {
        self.begin_change()?;
        let number = self.number(node)?;
        self.remove_xattr_of(number, name)
    }

    fn statistics(&self) -> Statistics {
        let superblock = &self.superblock;
        let overhead = self.overhead();
        Statistics {
            kind: MAGIC.into(),
            block_size: self.block_size(),
            blocks: u64::from(superblock.blocks_count).saturating_sub(overhead),
            blocks_free: superblock.free_blocks.into(),
            blocks_available: superblock.free_blocks.saturating_sub(superblock.reserved_blocks).into(),
            nodes: superblock.inodes_count.into(),
            nodes_free: superblock.free_inodes.into(),
            id: superblock.id,
            read_only: self.read_only,
        }
    }

    fn set_uses(&mut self, uses: &[(NodeId, u32)]) -> Result<(), Errno> {
        self.begin()?;
        self.replace_uses(uses)
    }

    fn take_missed(&mut self) -> Option<Arrival> {
        self.cache.take_missed()
    }

    fn is_changed(&self) -> bool {
        self.has_changes()
    }

    fn collect(&mut self) {
        self.cache.collect();
    }

    fn settle(&mut self) -> Result<(), Errno> {
        self.carry_over()
    }

    fn committed(&mut self) {
        self.cache.committed();
    }

    fn catch_up(&mut self) -> Result<(), Errno> {
        if self.window.must_end() { self.write_everything() } else { Ok(()) }
    }

    fn clean_up(&mut self) -> Result<(), Errno> {
        self.free_orphans()
    }

    fn put_back(&mut self, place: usize, bytes: &[u8]) {
        self.cache.put_back(place, bytes);
        self.uses.restore(place, bytes);
    }

    fn reload(&mut self) -> Result<(), Errno> {
        self.make_again()
    }

    fn memo(&self) -> [u64; 4] {
        self.own_memo().words()
    }

    fn sync(&mut self) -> Result<(), Errno> {
        self.begin()?;
        self.write_everything()
    }

    fn unmount(&mut self) -> Result<(), Errno> {
        self.begin()?;
        self.close()
    }
}

impl<D: BlockDevice> Ext2<D> {
    /// Blocks that the format itself takes.
    fn overhead(&self) -> u64 {
        let superblock = &self.superblock;
        let head = 1 + u64::from(superblock.descriptor_blocks());
        let heads = (0..superblock.groups).filter(|&group| superblock.has_superblock(group)).count() as u64;
        let each = 2 + u64::from(superblock.inode_table_blocks());
        u64::from(superblock.first_data_block) + heads * head + u64::from(superblock.groups) * each
    }
}
