//! Which block holds which part of a file: the 12 direct pointers and the trees of one to three levels.
//!
//! A pointer of 0 is a hole. Every other pointer is checked before it is followed, so that a corrupt file
//! reaches neither blocks of the format nor blocks outside; the depth of the trees bounds every walk.

use core::ops::Range;
use fs::Errno;
use fs::device::BlockDevice;
use fs::file_system::Caller;
use fs::order::Order;

use crate::group::Groups;
use crate::inode::DIRECT;
use crate::volume::Ext2;
use fs::bytes::{put_u32, u32_at};

/// Levels of the deepest tree.
const LEVELS: usize = 3;

/// The path to a block of a file: a pointer of the inode, then one in each indirect block.
struct Path {
    pointer: usize,
    levels: usize,
    indices: [usize; LEVELS],
}

/// A block of a file, found or allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mapped {
    /// Its number.
    pub block: u32,
    /// Whether it was just allocated: its content is unspecified.
    pub fresh: bool,
}

impl<D: BlockDevice> Ext2<D> {
    /// Returns the number of pointers in an indirect block.
    pub(crate) fn pointers_per_block(&self) -> u64 {
        self.block_size() / 4
    }

    /// Returns the number of blocks that the pointers of a file can map.
    pub(crate) fn mapped_blocks(&self) -> u64 {
        let p = self.pointers_per_block();
        DIRECT as u64 + p + p * p + p * p * p
    }

    /// Returns the largest size of a file: limited by the trees, and by the count of sectors in the inode.
    pub(crate) fn max_file_size(&self) -> u64 {
        let p = self.pointers_per_block();
        let countable = u64::from(u32::MAX) / (self.block_size() / 512);
        let indirect = 2 * (countable / p) + LEVELS as u64;
        self.mapped_blocks().min(countable - indirect) * self.block_size()
    }

    fn path(&self, index: u64) -> Result<Path, Errno> {
        if index < DIRECT as u64 {
            return Ok(Path { pointer: index as usize, levels: 0, indices: [0; LEVELS] });
        }
        let p = self.pointers_per_block();
        let mut rest = index - DIRECT as u64;
        let mut span = p;
        for levels in 1..=LEVELS {
            if rest < span {
                let mut indices = [0; LEVELS];
                for slot in indices[..levels].iter_mut().rev() {
                    *slot = (rest % p) as usize;
                    rest /= p;
                }
                return Ok(Path { pointer: DIRECT + levels - 1, levels, indices });
            }
            rest -= span;
            span *= p;
        }
        Err(Errno::EFBIG)
    }

    pub(crate) fn checked(&self, pointer: u32) -> Result<u32, Errno> {
        if pointer != 0 {
            self.groups.locate(pointer)?;
        }
        Ok(pointer)
    }

    fn indirect(&mut self, block: u32, index: usize) -> Result<u32, Errno> {
        let pointer = u32_at(self.cache.read(block.into())?, index * 4);
        self.checked(pointer)
    }

    /// Returns the block that holds block `index` of the file; `None` for a hole.
    pub(crate) fn find_block(&mut self, number: u32, index: u64) -> Result<Option<u32>, Errno> {
        Ok(self.find_run(number, index, 1)?.map(|run| run.start))
    }

    /// Returns the blocks that hold the file from block `index` on, at most `most`, as far as they are neighbours on the disk and the same
    /// table names them; `None` for a hole.
    pub(crate) fn find_run(&mut self, number: u32, index: u64, most: usize) -> Result<Option<Range<u32>>, Errno> {
        let path = self.path(index)?;
        let pointers = self.inode(number)?.pointers;
        let Some((&slot, above)) = path.indices[..path.levels].split_last() else {
            return run_of(&self.groups, pointers[path.pointer..DIRECT].iter().copied(), most);
        };
        let mut table = self.checked(pointers[path.pointer])?;
        for &slot in above {
            if table == 0 {
                break;
            }
            table = self.indirect(table, slot)?;
        }
        if table == 0 {
            return Ok(None);
        }
        let named = &self.cache.read(table.into())?[slot * 4..];
        run_of(&self.groups, named.chunks_exact(4).map(|pointer| u32_at(pointer, 0)), most)
    }

    /// Returns how many blocks of the file from `index` on are a hole for certain; 0: this one is none. Holes end with the tree that lacks them.
    pub(crate) fn hole_at(&mut self, number: u32, index: u64) -> Result<u64, Errno> {
        let path = self.path(index)?;
        let pointer = self.inode(number)?.pointers[path.pointer];
        let mut block = self.checked(pointer)?;
        for depth in 0..=path.levels {
            if block == 0 {
                let p = self.pointers_per_block();
                let before = path.indices[depth..path.levels].iter().fold(0, |before, &slot| before * p + slot as u64);
                return Ok(p.pow((path.levels - depth) as u32) - before);
            }
            if depth < path.levels {
                block = self.indirect(block, path.indices[depth])?;
            }
        }
        Ok(0)
    }

    /// Returns the block that holds block `index` of the file, allocated if it is a hole. On `ENOSPC` nothing
    /// is allocated.
    pub(crate) fn provide_block(&mut self, number: u32, index: u64, caller: Caller) -> Result<Mapped, Errno> {
        let path = self.path(index)?;
        let pointer = self.inode(number)?.pointers[path.pointer];
        let mut block = self.checked(pointer)?;
        let mut parent = None;
        for (depth, &slot) in path.indices[..path.levels].iter().enumerate() {
            if block == 0 {
                return self.fill_hole(number, &path, depth, parent, index, caller);
            }
            parent = Some((block, slot));
            block = self.indirect(block, slot)?;
        }
        match block {
            0 => self.fill_hole(number, &path, path.levels, parent, index, caller),
            block => Ok(Mapped { block, fresh: false }),
        }
    }

    /// Allocates the blocks of `path` from `depth` on, the last being the data block. The pointer that is 0
    /// is in the indirect block `parent`, or in the inode.
    fn fill_hole(
        &mut self,
        number: u32,
        path: &Path,
        depth: usize,
        mut parent: Option<(u32, usize)>,
        index: u64,
        caller: Caller,
    ) -> Result<Mapped, Errno> {
        self.require_blocks((path.levels - depth) as u32 + 1, caller)?;
        let mut goal = self.goal(number, index)?;
        for level in depth..=path.levels {
            let block = self.take_block(goal)?;
            if level < path.levels {
                self.cache.zeroed(block.into())?;
            }
            self.count_sectors(number, 1)?;
            match parent {
                None => self.change(number)?.pointers[path.pointer] = block,
                Some((indirect, slot)) => {
                    let pointer = self.cache.modify(indirect.into(), slot * 4..slot * 4 + 4, Order::Link)?;
                    put_u32(pointer, 0, block);
                }
            }
            goal = block + 1;
            parent = (level < path.levels).then(|| (block, path.indices[level]));
        }
        self.hint(number)?.goal = goal;
        Ok(Mapped { block: goal - 1, fresh: true })
    }

    /// Returns the goal for block `index`: after the block allocated last, after the block before it if that is a
    /// direct one, or in the group of the inode.
    pub(crate) fn goal(&mut self, number: u32, index: u64) -> Result<u32, Errno> {
        let inode = self.inode(number)?;
        if inode.goal != 0 {
            return Ok(inode.goal);
        }
        let before = (index as usize).min(DIRECT);
        if let Some(&block) = inode.pointers[..before].iter().rev().find(|&&block| block != 0) {
            return Ok(block.saturating_add(1));
        }
        let group = (number - 1) / self.superblock.inodes_per_group;
        let group = &self.groups.list[group as usize];
        Ok(group.inode_table + self.superblock.inode_table_blocks())
    }

    pub(crate) fn count_sectors(&mut self, number: u32, blocks: i64) -> Result<(), Errno> {
        let change = blocks * (self.superblock.block_size / 512) as i64;
        let inode = self.change(number)?;
        inode.sectors = (i64::from(inode.sectors) + change).clamp(0, u32::MAX.into()) as u32;
        Ok(())
    }
}

/// The block of the first of these pointers, and those of the next ones, as far as they are neighbours in one group, `most` in all; `None`: the first is 0.
/// Errors as [`Groups::locate`], of the first.
fn run_of(groups: &Groups, mut pointers: impl Iterator<Item = u32>, most: usize) -> Result<Option<Range<u32>>, Errno> {
    let Some(first) = pointers.next().filter(|&first| first != 0) else { return Ok(None) };
    if most <= 1 {
        return groups.locate(first).map(|_| Some(first..first + 1));
    }
    let most = most.min((groups.data_end(first)? - first) as usize);
    let neighbours = pointers.zip(first + 1..).take(most - 1).take_while(|(pointer, next)| pointer == next).count();
    Ok(Some(first..first + 1 + neighbours as u32))
}
