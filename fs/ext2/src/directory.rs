//! Directories: finding, listing, adding, removing and changing entries.
//!
//! A directory is a file without holes whose blocks are chains of records (`entry`). The space of removed
//! records joins the record before; blocks are never freed. Which block a name is in does not matter, unless the directory has an
//! index (`index`).

use abi::fs::DIRECTORY_END;
use fs::Errno;
use fs::device::{BlockDevice, SECTOR_SIZE};
use fs::file_system::{Caller, EntrySink, NAME_MAX};
use fs::names::Known;
use fs::order::Order;

use crate::entry::{self, Entries, Entry, EntryFormat, is_dot, record_size};
use crate::inode::FLAG_INDEX;
use crate::volume::Ext2;
use crate::window::Sector;

/// The entry of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    /// The inode it names.
    pub node: u32,
    /// The block of the directory that holds the entry.
    pub block: u32,
    /// Where a search for the entry in that block may begin until the directory changes: at the record before it, or at 0.
    near: usize,
}

/// What a search for a name has come to.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Search {
    /// The name exists.
    Found(Found),
    /// It does not. With the first space for it that the search has passed, if it was to look for some.
    Absent(Option<Space>),
}

/// Space for an entry behind another, in a sector.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Space {
    /// Index of the block in the directory.
    index: u32,
    block: u64,
    /// Offset, used bytes and size of the record with the space.
    offset: usize,
    used: usize,
    size: usize,
}

impl Space {
    /// The space at the end of a record of block `index` of a directory.
    fn behind(entry: &Entry, index: u32, block: u64) -> Space {
        Space { index, block, offset: entry.offset, used: entry.used(), size: entry.size }
    }

    /// Returns where the entry will be.
    pub fn sector(&self) -> Sector {
        Sector { block: self.block, number: entry::sector(self.offset) }
    }
}

impl<D: BlockDevice> Ext2<D> {
    pub(crate) fn entry_format(&self) -> EntryFormat {
        EntryFormat { file_types: self.superblock.has_file_types(), inodes_count: self.superblock.inodes_count }
    }

    /// Returns the number of blocks of the directory. `ENOTDIR`; `EUCLEAN` if its size is impossible.
    pub(crate) fn directory_blocks(&mut self, dir: u32) -> Result<u32, Errno> {
        let block_size = self.block_size();
        let blocks_count = self.superblock.blocks_count;
        let inode = self.inode(dir)?;
        if !inode.is_directory() {
            return Err(Errno::ENOTDIR);
        }
        let blocks = inode.size / block_size;
        let sound = inode.size.is_multiple_of(block_size) && blocks <= blocks_count.into();
        if sound { Ok(blocks as u32) } else { Err(Errno::EUCLEAN) }
    }

    /// Returns the block of the file system that holds block `index` of the directory.
    pub(crate) fn directory_block(&mut self, dir: u32, index: u32) -> Result<u64, Errno> {
        let block = self.find_block(dir, index.into())?.ok_or(Errno::EUCLEAN)?;
        if !self.cache.contains(block.into()) {
            let all = self.cache.longest_run();
            self.read_ahead(dir, index.into(), block, all)?;
        }
        Ok(block.into())
    }

    /// Searches the entry for `name`. `ENOTDIR`, `ENAMETOOLONG`.
    pub(crate) fn find_entry(&mut self, dir: u32, name: &[u8]) -> Result<Option<Found>, Errno> {
        match self.search::<false>(dir, name)? {
            Search::Found(found) => Ok(Some(found)),
            Search::Absent(_) => Ok(None),
        }
    }

    /// As `find_entry`; with `SPACE` looks for space on the way.
    pub(crate) fn search<const SPACE: bool>(&mut self, dir: u32, name: &[u8]) -> Result<Search, Errno> {
        let blocks = self.directory_blocks(dir)?;
        match self.names.find(dir, name) {
            Some(Known::Node(node, block)) => return Ok(Search::Found(Found { node, block, near: 0 })),
            Some(Known::Absent) => return Ok(Search::Absent(None)),
            None if name.len() > NAME_MAX => return Err(Errno::ENAMETOOLONG),
            None => {}
        }
        let indexed = match self.index_of(dir)?.filter(|_| !is_dot(name)) {
            Some(root) => self.search_indexed::<SPACE>(dir, root, name),
            None => Err(Errno::EUCLEAN),
        };
        // A corrupt index hides no name.
        let search = match indexed {
            Err(Errno::EUCLEAN) if self.inode(dir)?.flags & FLAG_INDEX != 0 => {
                self.search_all::<false>(dir, blocks, name)?
            }
            Err(Errno::EUCLEAN) => self.search_all::<SPACE>(dir, blocks, name)?,
            indexed => indexed?,
        };
        let known = match search {
            Search::Found(found) => Known::Node(found.node, found.block),
            Search::Absent(_) => Known::Absent,
        };
        self.names.learn(dir, name, known);
        Ok(search)
    }

    fn search_all<const SPACE: bool>(&mut self, dir: u32, blocks: u32, name: &[u8]) -> Result<Search, Errno> {
        let first_with_space = self.inode(dir)?.next_block;
        let mut space = None;
        for index in 0..blocks {
            match self.search_block::<SPACE>(dir, index, name)? {
                Search::Absent(passed) if index >= first_with_space => space = space.or(passed),
                Search::Absent(_) => {}
                found => return Ok(found),
            }
        }
        Ok(Search::Absent(space))
    }

    /// Searches one block of a directory.
    pub(crate) fn search_block<const SPACE: bool>(
        &mut self,
        dir: u32,
        index: u32,
        name: &[u8],
    ) -> Result<Search, Errno> {
        let (format, needed) = (self.entry_format(), record_size(name.len()));
        let block = self.directory_block(dir, index)?;
        let (mut space, mut near) = (None, 0);
        for entry in Entries::new(self.cache.read(block)?, format) {
            let entry = entry?;
            if entry.is_of(name) {
                let found = Found { node: entry.node, block: index, near };
                return if self.is_usable(found.node) { Ok(Search::Found(found)) } else { Err(Errno::EUCLEAN) };
            }
            match SPACE {
                true if space.is_none() && entry.has_space(needed) => {
                    space = Some(Space::behind(&entry, index, block));
                }
                true => {}
                // Who looks for space does not remove what is found.
                false => near = entry.offset,
            }
        }
        Ok(Search::Absent(space))
    }

    /// Lists the entries from `position` on; positions are hashes, or offsets in a directory that cannot have an index.
    pub(crate) fn list(&mut self, dir: u32, position: u64, sink: &mut dyn EntrySink) -> Result<u64, Errno> {
        let block_size = self.block_size();
        let blocks = self.directory_blocks(dir)?;
        if self.inode(dir)?.links == 0 {
            return Ok(position);
        }
        if let Some(root) = self.is_listed_by_hash(dir)? {
            let next = self.list_by_hash(dir, root, position, sink)?;
            self.note_access(dir, None)?;
            return Ok(next);
        }
        let first = u32::try_from(position / block_size).unwrap_or(u32::MAX);
        let mut next = position;
        let mut full = false;
        for index in first..blocks {
            (next, full) = self.list_block(dir, index, next, sink)?;
            if full {
                break;
            }
        }
        self.note_access(dir, None)?;
        Ok(if full { next } else { DIRECTORY_END })
    }

    fn list_block(
        &mut self,
        dir: u32,
        index: u32,
        position: u64,
        sink: &mut dyn EntrySink,
    ) -> Result<(u64, bool), Errno> {
        let format = self.entry_format();
        let start = u64::from(index) * self.block_size();
        let block = self.directory_block(dir, index)?;
        for entry in Entries::new(self.cache.read(block)?, format) {
            let entry = entry?;
            let at = start + entry.offset as u64;
            let next = at + entry.size as u64;
            if at >= position && entry.node != 0 && !sink.entry(entry.node.into(), next, entry.kind, entry.name) {
                return Ok((at, true));
            }
        }
        Ok((start + self.block_size(), false))
    }

    /// Adds an entry for a name that does not exist, in the space that `make_space` has returned. `ENOSPC`.
    pub(crate) fn add_entry(
        &mut self,
        space: Option<Space>,
        dir: u32,
        name: &[u8],
        node: u32,
        mode: u32,
        caller: Caller,
    ) -> Result<(), Errno> {
        let index = self.fill_space(space, dir, name, node, mode, caller)?;
        self.hint(dir)?.next_block = index;
        Ok(())
    }

    /// Adds an entry in space that `find_space` has found, and returns the index of its block. `ENOSPC`.
    pub(crate) fn fill_space(
        &mut self,
        space: Option<Space>,
        dir: u32,
        name: &[u8],
        node: u32,
        mode: u32,
        caller: Caller,
    ) -> Result<u32, Errno> {
        let index = match space {
            Some(space) => self.insert(&space, name, node, mode)?,
            None => {
                // The index would not know the block.
                self.drop_index(dir)?;
                self.append_block(dir, name, node, mode, caller)?
            }
        };
        self.names.learn(dir, name, Known::Node(node, index));
        self.directory_changed(dir)?;
        Ok(index)
    }

    /// Finds space for an entry of this name; `None` if the directory needs another block. `ENOENT` in a directory that was removed.
    pub(crate) fn find_space(&mut self, dir: u32, name: &[u8]) -> Result<Option<Space>, Errno> {
        self.find_space_outside(dir, name, &[])
    }

    /// As `find_space`, in none of the sectors `avoided`.
    pub(crate) fn find_space_outside(
        &mut self,
        dir: u32,
        name: &[u8],
        avoided: &[Sector],
    ) -> Result<Option<Space>, Errno> {
        let blocks = self.directory_blocks(dir)?;
        let inode = self.inode(dir)?;
        if inode.links == 0 {
            return Err(Errno::ENOENT);
        }
        let first = inode.next_block.min(blocks);
        if let Some(root) = self.index_of(dir)? {
            return self.find_indexed_space(dir, root, name, avoided);
        }
        for index in first..blocks {
            if let Some(space) = self.space_in(dir, index, record_size(name.len()), avoided)? {
                return Ok(Some(space));
            }
        }
        Ok(None)
    }

    /// Finds space for a record in one block of a directory, in none of the sectors `avoided`.
    pub(crate) fn space_in(
        &mut self,
        dir: u32,
        index: u32,
        needed: usize,
        avoided: &[Sector],
    ) -> Result<Option<Space>, Errno> {
        let format = self.entry_format();
        let block = self.directory_block(dir, index)?;
        for entry in Entries::new(self.cache.read(block)?, format) {
            let entry = entry?;
            let space = Space::behind(&entry, index, block);
            if entry.has_space(needed) && !avoided.contains(&space.sector()) {
                return Ok(Some(space));
            }
        }
        Ok(None)
    }

    /// Inserts an entry and returns the index of its block.
    fn insert(&mut self, space: &Space, name: &[u8], node: u32, mode: u32) -> Result<u32, Errno> {
        let format = self.entry_format();
        let &Space { index, block, offset, used, size } = space;
        let end = offset + used + record_size(name.len());
        let bytes = self.cache.modify(block, offset..end, Order::Name)?;
        if used > 0 {
            entry::set_size(bytes, 0, used);
        }
        entry::write(bytes, used, size - used, node, mode, name, format);
        Ok(index)
    }

    fn append_block(&mut self, dir: u32, name: &[u8], node: u32, mode: u32, caller: Caller) -> Result<u32, Errno> {
        let (format, index) = (self.entry_format(), self.directory_blocks(dir)?);
        let size = self.superblock.block_size;
        let block = self.provide_block(dir, index.into(), caller)?.block;
        self.cache.overwrite(block.into(), |bytes| {
            entry::divide(bytes);
            entry::write(bytes, 0, SECTOR_SIZE, node, mode, name, format);
            Ok(())
        })?;
        self.change(dir)?.size += size as u64;
        Ok(index)
    }

    /// Returns where the entry for `name` is, as `find_entry` returned it.
    pub(crate) fn sector_of(&mut self, dir: u32, name: &[u8], found: Found) -> Result<Sector, Errno> {
        let format = self.entry_format();
        let block = self.directory_block(dir, found.block)?;
        for entry in Entries::new(self.cache.read(block)?, format) {
            let entry = entry?;
            if entry.node == found.node && entry.is_of(name) {
                return Ok(Sector { block, number: entry::sector(entry.offset) });
            }
        }
        Err(Errno::EUCLEAN)
    }

    /// Removes the entry for `name`, as `find_entry` returned it; late on the disk if `is_late`.
    pub(crate) fn remove_entry(&mut self, dir: u32, name: &[u8], found: Found, is_late: bool) -> Result<(), Errno> {
        let format = self.entry_format();
        let block = self.directory_block(dir, found.block)?;
        let mut before: Option<(usize, usize)> = None;
        let mut place = None;
        for entry in Entries::starting(self.cache.read(block)?, found.near, format) {
            let entry = entry?;
            if entry.node == found.node && entry.is_of(name) {
                place = Some((entry.offset, entry.size));
                break;
            }
            before = Some((entry.offset, entry.size));
        }
        let (offset, size) = place.ok_or(Errno::EUCLEAN)?;
        let before = before.filter(|&(previous, _)| entry::sector(previous) == entry::sector(offset));
        let header = entry::header(before.map_or(offset, |(previous, _)| previous));
        let bytes = match is_late {
            true => self.cache.modify_late(block, header, Order::Name)?,
            false => self.cache.modify(block, header, Order::Name)?,
        };
        match before {
            Some((_, length)) => entry::set_size(bytes, 0, length + size),
            None => entry::set_node(bytes, 0, 0, 0, format),
        }
        self.names.learn(dir, name, Known::Absent);
        let inode = self.hint(dir)?;
        inode.next_block = inode.next_block.min(found.block);
        self.directory_changed(dir)
    }

    /// Changes the inode of the entry for `name`, as `find_entry` returned it.
    pub(crate) fn change_entry(
        &mut self,
        dir: u32,
        name: &[u8],
        found: Found,
        node: u32,
        mode: u32,
    ) -> Result<(), Errno> {
        let format = self.entry_format();
        let block = self.directory_block(dir, found.block)?;
        let mut place = None;
        for entry in Entries::new(self.cache.read(block)?, format) {
            let entry = entry?;
            if entry.node == found.node && entry.is_of(name) {
                place = Some(entry.offset);
                break;
            }
        }
        let offset = place.ok_or(Errno::EUCLEAN)?;
        entry::set_node(self.cache.modify(block, entry::header(offset), Order::Name)?, 0, node, mode, format);
        self.names.learn(dir, name, Known::Node(node, found.block));
        self.directory_changed(dir)
    }

    /// Whether the directory holds only `.` and `..`.
    pub(crate) fn is_empty(&mut self, dir: u32) -> Result<bool, Errno> {
        let format = self.entry_format();
        for index in 0..self.directory_blocks(dir)? {
            let block = self.directory_block(dir, index)?;
            for entry in Entries::new(self.cache.read(block)?, format) {
                let entry = entry?;
                if entry.node != 0 && entry.name != b"." && entry.name != b".." {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    fn directory_changed(&mut self, dir: u32) -> Result<(), Errno> {
        let now = self.now();
        let inode = self.change(dir)?;
        inode.touch(now);
        Ok(())
    }
}
