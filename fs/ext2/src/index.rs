//! Indexed directories (ext3's `dir_index`): a tree over the hashes of names, so that finding, adding and removing a name costs the same in a
//! directory of any size.
//!
//! Block 0 is the root, a few blocks are nodes (`index_block`), and the others, the *leaves*, are ordinary blocks of entries, each with the
//! names of a range of hashes. A directory begins as one ordinary block. It gets an index when that is full, and a leaf that is full is split.
//! What is in the way of an index ends it: the directory is then searched from its beginning, as those of file systems without the feature,
//! and as all while a check is due, since a power cut may leave an index half-written (never a leaf).
//!
//! **Order of writes.** A split moves names to a new block, which the disk gets first, as content; then the directory's inode, which makes the
//! block part of it; then the old block without them. Sectors of the old block may reach the disk one by one: what stays is packed within its
//! sector. In between the disk has names twice, and index entries that do not fit, which `e2fsck` mends by making the index again.
//!
//! **Positions** of a listing are hashes, in directories that have or may get an index: names that a split moves keep them. Neighbours:
//! `directory`, `entry`,
//! `hash`, `leaf`.

use abi::fs::DIRECTORY_END;
use alloc::vec::Vec;
use sys::fallible::{self, TryVec};

use fs::Errno;
use fs::device::{BlockDevice, SECTOR_SIZE};
use fs::file_system::{Caller, EntrySink};
use fs::order::Order;

use crate::directory::{Search, Space};
use crate::entry::{self, Entries, Entry, record_size};
use crate::hash::{Function, Hasher};
use crate::index_block::{self, DOT, Index, MAX_LEVELS, NODE_HEAD, ROOT_HEAD, Root};
use crate::inode::FLAG_INDEX;
use crate::leaf::{FIRST, Hashed, MINOR_BITS, ORDINAL_BITS, division, hashed, packed};
use crate::volume::Ext2;
use crate::window::Sector;

/// Limit of blocks by which a directory grows at once: two, and three that point to each.
const GROWTH: u32 = 2 * 4;
/// Limit of splits for one name: a leaf made elsewhere may have its space where a record would cross sectors.
const MAX_SPLITS: u32 = 8;

/// Limit of leaves with names of one hash. An index that has more is corrupt, or somebody has computed the names.
const MAX_CONTINUED: u32 = 64;

/// The way from the root of an index to a leaf.
#[derive(Clone, Copy, Debug)]
struct Path {
    /// The blocks of the index, and the entry in each.
    steps: [(u32, usize); MAX_LEVELS + 1],
    levels: usize,
    leaf: u32,
}

impl Path {
    /// The index block above the leaf, and the entry in it.
    fn last(&self) -> (u32, usize) {
        self.steps[self.levels]
    }
}

fn head_of(index: u32) -> usize {
    if index == 0 { ROOT_HEAD } else { NODE_HEAD }
}

impl<D: BlockDevice> Ext2<D> {
    /// Whether directories of this file system are indexed as they grow.
    fn makes_indexes(&self) -> bool {
        self.was_clean && self.superblock.hasher.is_some()
    }

    /// How names are hashed. `EUCLEAN`: they are not.
    fn hasher(&self) -> Result<Hasher, Errno> {
        self.superblock.hasher.ok_or(Errno::EUCLEAN)
    }

    /// Returns the root of the directory's index; `None`: it has none that can be used.
    pub(crate) fn index_of(&mut self, dir: u32) -> Result<Option<Root>, Errno> {
        if !self.makes_indexes() || self.inode(dir)?.flags & FLAG_INDEX == 0 {
            return Ok(None);
        }
        let block = self.directory_block(dir, 0)?;
        Ok(Root::read(self.cache.read(block)?).ok())
    }

    /// Ends the index of a directory, if it has one: it is an ordinary one from now on.
    pub(crate) fn drop_index(&mut self, dir: u32) -> Result<(), Errno> {
        if self.inode(dir)?.flags & FLAG_INDEX != 0 {
            let inode = self.change(dir)?;
            inode.flags &= !FLAG_INDEX;
            inode.next_block = 0;
        }
        Ok(())
    }

    fn index_entries(&mut self, dir: u32, index: u32) -> Result<Index<'_>, Errno> {
        let block = self.directory_block(dir, index)?;
        Index::read(self.cache.read(block)?, head_of(index))
    }

    /// Returns an entry of an index block, which `choose` chooses, and the block of the directory that it leads to.
    fn follow(&mut self, dir: u32, index: u32, choose: impl FnOnce(Index) -> usize) -> Result<(usize, u32), Errno> {
        let blocks = self.directory_blocks(dir)?;
        let entries = self.index_entries(dir, index)?;
        let at = choose(entries);
        let next = entries.block(at);
        if (1..blocks).contains(&next) { Ok((at, next)) } else { Err(Errno::EUCLEAN) }
    }

    /// Returns the way to the first leaf that may have names with this hash.
    fn probe(&mut self, dir: u32, root: Root, major: u32) -> Result<Path, Errno> {
        let mut path = Path { steps: [(0, 0); MAX_LEVELS + 1], levels: root.levels, leaf: 0 };
        for depth in 0..=root.levels {
            let (at, next) = self.follow(dir, path.leaf, |entries| entries.search(major))?;
            path.steps[depth] = (path.leaf, at);
            path.leaf = next;
        }
        Ok(path)
    }

    /// Returns the hash at which the next leaf begins, with the bit that says that it is continued, and the step that leads there; `None`: there is none.
    fn next_hash(&mut self, dir: u32, path: &Path) -> Result<Option<(u32, usize)>, Errno> {
        for depth in (0..=path.levels).rev() {
            let (index, at) = path.steps[depth];
            let entries = self.index_entries(dir, index)?;
            if at + 1 < entries.count() {
                return Ok(Some((entries.hash(at + 1), depth)));
            }
        }
        Ok(None)
    }

    /// Goes on to the next leaf. Returns the hash of `next_hash`.
    fn next_leaf(&mut self, dir: u32, path: &mut Path) -> Result<Option<u32>, Errno> {
        let Some((hash, depth)) = self.next_hash(dir, path)? else { return Ok(None) };
        let (index, at) = &mut path.steps[depth];
        *at += 1;
        path.leaf = self.follow(dir, *index, |_| *at)?.1;
        for below in depth + 1..=path.levels {
            path.steps[below] = (path.leaf, 0);
            path.leaf = self.follow(dir, path.leaf, |_| 0)?.1;
        }
        Ok(Some(hash))
    }

    /// Searches the entry for `name` by the index; with `SPACE` looks for space on the way.
    pub(crate) fn search_indexed<const SPACE: bool>(
        &mut self,
        dir: u32,
        root: Root,
        name: &[u8],
    ) -> Result<Search, Errno> {
        let major = self.hasher()?.hash(root.function, name).major;
        let mut path = self.probe(dir, root, major)?;
        let mut space = None;
        for _ in 0..MAX_CONTINUED {
            match self.search_block::<SPACE>(dir, path.leaf, name)? {
                Search::Absent(passed) => space = space.or(passed),
                found => return Ok(found),
            }
            if self.next_hash(dir, &path)?.is_none_or(|(hash, _)| hash != major | 1) {
                return Ok(Search::Absent(space));
            }
            self.next_leaf(dir, &mut path)?;
        }
        Err(Errno::EUCLEAN)
    }

    /// Finds space for an entry of this name in its leaf, in none of the sectors `avoided`.
    pub(crate) fn find_indexed_space(
        &mut self,
        dir: u32,
        root: Root,
        name: &[u8],
        avoided: &[Sector],
    ) -> Result<Option<Space>, Errno> {
        let major = self.hasher()?.hash(root.function, name).major;
        let path = self.probe(dir, root, major)?;
        self.space_in(dir, path.leaf, record_size(name.len()), avoided)
    }

    /// Finds or makes space for an entry of this name, unless the search for the name has `passed` some, before anything else is changed: names may move to
    /// another block. `None`: the directory, which has no index, needs another block. `ENOENT` in a directory that was removed, `ENOSPC`.
    pub(crate) fn make_space(
        &mut self,
        passed: Option<Space>,
        dir: u32,
        name: &[u8],
        caller: Caller,
    ) -> Result<Option<Space>, Errno> {
        if passed.is_some() {
            return Ok(passed);
        }
        if self.inode(dir)?.flags & FLAG_INDEX == 0 {
            let space = self.find_space(dir, name)?;
            let may_begin = space.is_none() && self.makes_indexes() && self.directory_blocks(dir)? == 1;
            if !may_begin || !self.begin_index(dir, caller)? {
                return Ok(space);
            }
        }
        match self.make_indexed_space(dir, name, caller) {
            Err(Errno::EUCLEAN) => {
                self.drop_index(dir)?;
                self.find_space(dir, name)
            }
            made => made,
        }
    }

    /// `EUCLEAN`: the index cannot be used.
    fn make_indexed_space(&mut self, dir: u32, name: &[u8], caller: Caller) -> Result<Option<Space>, Errno> {
        if self.inode(dir)?.links == 0 {
            return Err(Errno::ENOENT);
        }
        for _ in 0..MAX_SPLITS {
            let root = self.index_of(dir)?.ok_or(Errno::EUCLEAN)?;
            let path = self.probe(dir, root, self.hasher()?.hash(root.function, name).major)?;
            if let Some(space) = self.space_in(dir, path.leaf, record_size(name.len()), &[])? {
                return Ok(Some(space));
            }
            self.require_blocks(GROWTH / 2, caller)?;
            let (index, _) = path.last();
            if self.index_entries(dir, index)?.is_full() {
                self.grow_index(dir, root, &path, caller)?;
            } else {
                self.split_leaf(dir, root, &path, caller)?;
            }
        }
        Err(Errno::EUCLEAN)
    }

    /// Makes an index for a directory of one block. Returns false if its entries do not allow that.
    fn begin_index(&mut self, dir: u32, caller: Caller) -> Result<bool, Errno> {
        let hasher = self.hasher()?;
        let function = hasher.function;
        let block = self.directory_block(dir, 0)?;
        let format = self.entry_format();
        let old = fallible::copied(self.cache.read(block)?)?;
        let mut dots = Entries::new(&old, format);
        let mut has_dots = true;
        for (offset, name) in [(0, &b"."[..]), (DOT, b"..")] {
            has_dots &= matches!(dots.next(), Some(Ok(entry)) if entry.offset == offset && entry.name == name);
        }
        let entries = hashed(hasher, function, format, block, &old)?;
        let Some((at, hash)) = division(&entries).filter(|_| has_dots) else { return Ok(false) };
        let (lower, upper) = entries.split_at(at);
        let images = [packed(&old, lower, format)?, packed(&old, upper, format)?];
        let [Some(lower_image), Some(upper_image)] = images else { return Ok(false) };
        if self.require_blocks(GROWTH, caller).is_err() {
            return Ok(false);
        }
        let first = self.append_image(dir, &lower_image, caller)?;
        let second = self.append_image(dir, &upper_image, caller)?;
        self.note_moved(dir, &old, lower, first)?;
        self.note_moved(dir, &old, upper, second)?;
        let bytes = self.cache.modify(block, 0..SECTOR_SIZE, Order::Name)?;
        entry::set_size(bytes, DOT, old.len() - DOT);
        Root { function, levels: 0 }.write(bytes);
        index_block::write(bytes, ROOT_HEAD, old.len(), [(0, first), (hash, second)].into_iter());
        self.change(dir)?.flags |= FLAG_INDEX;
        Ok(true)
    }

    /// Moves about half of the names of a leaf to a new one, for which there is space in the index block above.
    fn split_leaf(&mut self, dir: u32, root: Root, path: &Path, caller: Caller) -> Result<(), Errno> {
        let format = self.entry_format();
        let block = self.directory_block(dir, path.leaf)?;
        let old = fallible::copied(self.cache.read(block)?)?;
        let entries = hashed(self.hasher()?, root.function, format, block, &old)?;
        let (at, hash) = division(&entries).ok_or(Errno::EUCLEAN)?;
        let moved = &entries[at..];
        let image = packed(&old, moved, format)?.ok_or(Errno::EUCLEAN)?;
        let leaf = self.append_image(dir, &image, caller)?;
        let mut offsets = fallible::collect(moved.iter().map(|entry| entry.offset()))?;
        offsets.sort_unstable();
        let mut kept = fallible::copied(&old)?;
        entry::retain(&old, &mut kept, format, |entry| offsets.binary_search(&entry.offset).is_err())?;
        for start in (0..old.len()).step_by(SECTOR_SIZE) {
            let sector = start..start + SECTOR_SIZE;
            if old[sector.clone()] != kept[sector.clone()] {
                self.cache.modify(block, sector.clone(), Order::Name)?.copy_from_slice(&kept[sector]);
            }
        }
        self.note_moved(dir, &old, moved, leaf)?;
        let (index, at) = path.last();
        self.insert_in_index(dir, index, at + 1, hash, leaf)
    }

    fn insert_in_index(&mut self, dir: u32, index: u32, at: usize, hash: u32, target: u32) -> Result<(), Errno> {
        let (block, head, size) = (self.directory_block(dir, index)?, head_of(index), self.superblock.block_size);
        let bytes = self.cache.modify(block, 0..size, Order::Name)?;
        index_block::insert(bytes, head, at, hash, target);
        Ok(())
    }

    /// Makes space in the index block above a leaf: the root hands its entries to a node, or a node half of its own to another.
    fn grow_index(&mut self, dir: u32, root: Root, path: &Path, caller: Caller) -> Result<(), Errno> {
        let (index, _) = path.last();
        let entries = self.index_entries(dir, index)?;
        let all = (0..entries.count()).map(|at| (entries.hash(at), entries.block(at)));
        let all = fallible::collect(all)?;
        if root.levels == 0 {
            let node = self.append_node(dir, &all, caller)?;
            let block = self.directory_block(dir, 0)?;
            let size = self.superblock.block_size;
            let bytes = self.cache.modify(block, 0..SECTOR_SIZE, Order::Name)?;
            Root { levels: 1, ..root }.write(bytes);
            index_block::write(bytes, ROOT_HEAD, size, [(0, node)].into_iter());
            return Ok(());
        }
        let (_, at) = path.steps[0];
        if self.index_entries(dir, 0)?.is_full() {
            return Err(Errno::EUCLEAN);
        }
        let (lower, upper) = all.split_at(all.len() / 2);
        let node = self.append_node(dir, upper, caller)?;
        let block = self.directory_block(dir, index)?;
        index_block::truncate(self.cache.modify(block, 0..SECTOR_SIZE, Order::Name)?, NODE_HEAD, lower.len());
        self.insert_in_index(dir, 0, at + 1, upper[0].0, node)
    }

    fn append_node(&mut self, dir: u32, entries: &[(u32, u32)], caller: Caller) -> Result<u32, Errno> {
        let size = self.superblock.block_size;
        let mut image = fallible::filled(0, size)?;
        index_block::make_node(&mut image);
        index_block::write(&mut image, NODE_HEAD, size, entries.iter().copied());
        self.append_image(dir, &image, caller)
    }

    /// Adds a block with this content to a directory. Returns its index.
    fn append_image(&mut self, dir: u32, image: &[u8], caller: Caller) -> Result<u32, Errno> {
        let index = self.directory_blocks(dir)?;
        let block = self.provide_block(dir, index.into(), caller)?.block;
        self.cache.overwrite(block.into(), |bytes| {
            bytes.copy_from_slice(image);
            Ok(())
        })?;
        self.change(dir)?.size += image.len() as u64;
        Ok(index)
    }

    /// Notes that names have moved to a new block of their directory.
    fn note_moved(&mut self, dir: u32, old: &[u8], moved: &[Hashed], index: u32) -> Result<(), Errno> {
        let format = self.entry_format();
        for hashed in moved {
            self.names.moved(dir, Entry::at(old, hashed.offset(), format)?.name, index);
        }
        Ok(())
    }

    /// Whether positions of listings of this directory are hashes: it has an index, or may get one.
    pub(crate) fn is_listed_by_hash(&mut self, dir: u32) -> Result<Option<Option<Root>>, Errno> {
        let root = self.index_of(dir)?;
        let is_small = self.makes_indexes() && self.directory_blocks(dir)? == 1;
        Ok(if root.is_some() || is_small { Some(root) } else { None })
    }

    /// Lists the entries from `position` on, in the order of their hashes. `root`: of the index; a directory without is one block.
    pub(crate) fn list_by_hash(
        &mut self,
        dir: u32,
        root: Option<Root>,
        position: u64,
        sink: &mut dyn EntrySink,
    ) -> Result<u64, Errno> {
        for (at, name) in [(0, &b"."[..]), (1, b"..")] {
            if position > at {
                continue;
            }
            let Some(found) = self.find_entry(dir, name)? else { continue };
            if !sink.entry(found.node.into(), at + 1, fs::file_system::S_IFDIR, name) {
                return Ok(at);
            }
        }
        let mut path = match root {
            Some(root) => Some(self.probe(dir, root, (position >> MINOR_BITS << 1) as u32)?),
            None => None,
        };
        let function = root.map_or(self.hasher()?.function, |root| root.function);
        let position = position.max(FIRST);
        // A corrupt index may have more leaves than the directory has blocks.
        let most = if position < DIRECTORY_END { self.directory_blocks(dir)? } else { 0 };
        for _ in 0..most {
            let (entries, has_more) = self.gather(dir, function, &mut path)?;
            if let Some(reached) = self.emit(&entries, position, sink)? {
                return Ok(reached);
            }
            if !has_more {
                break;
            }
        }
        Ok(DIRECTORY_END)
    }

    /// The names of the leaf that `path` has come to, and of those that are continued from it, in order. Goes on to the next one; false: there
    /// is none.
    fn gather(&mut self, dir: u32, function: Function, path: &mut Option<Path>) -> Result<(Vec<Hashed>, bool), Errno> {
        let mut all: Vec<Hashed> = Vec::new();
        for _ in 0..MAX_CONTINUED {
            let leaf = path.as_ref().map_or(0, |path| path.leaf);
            let block = self.directory_block(dir, leaf)?;
            let (hasher, format) = (self.hasher()?, self.entry_format());
            let more = hashed(hasher, function, format, block, self.cache.read(block)?)?;
            if all.is_empty() {
                all = more;
            } else {
                all.try_extend_from_slice(&more)?;
                all.sort_unstable();
            }
            let next = match path {
                Some(path) => self.next_leaf(dir, path)?,
                None => None,
            };
            if next.is_none_or(|hash| hash & 1 == 0) {
                return Ok((all, next.is_some()));
            }
        }
        Err(Errno::EUCLEAN)
    }

    /// Hands out names from `position` on. Returns the position of the first one that did not fit.
    fn emit(&mut self, entries: &[Hashed], position: u64, sink: &mut dyn EntrySink) -> Result<Option<u64>, Errno> {
        let format = self.entry_format();
        let mut before = None;
        for run in entries.chunk_by(|one, next| one.block() == next.block()) {
            let bytes = self.cache.read(run[0].block())?;
            for hashed in run {
                let place = hashed.position();
                // Names with the same hash have consecutive positions, as far as these go.
                let own = match before {
                    Some(last) if last >> ORDINAL_BITS == place >> ORDINAL_BITS => last + 1,
                    _ => place,
                };
                before = Some(own);
                if own < position {
                    continue;
                }
                let entry = Entry::at(bytes, hashed.offset(), format)?;
                if !sink.entry(entry.node.into(), own + 1, entry.kind, entry.name) {
                    return Ok(Some(own));
                }
            }
        }
        Ok(None)
    }
}
