//! Makes the times and owners in a fresh ext2 image independent of when it was made, and by whom.
//!
//! `mke2fs -d` copies a file's access and change times from the staging folder, where they tell when
//! the file was staged. Here they become the modification time, which staging has kept or set. What belongs to the user who staged it
//! becomes root's. Only
//! what `rootfs` makes is expected: a plain ext2 image.

use anyhow::{Context, Result, bail};
use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

const SUPERBLOCK_AT: u64 = 1024;
const SUPERBLOCK_SIZE: usize = 1024;
const MAGIC: u16 = 0xef53;
const DESCRIPTOR_SIZE: u64 = 32;

// Where the times are in an inode, in bytes.
const ATIME: usize = 8;
const CTIME: usize = 12;
const MTIME: usize = 16;
const MODE: usize = 0;
// Where the halves of the owner and the group are.
const UID: usize = 2;
const GID: usize = 24;
const UID_HIGH: usize = 120;
const GID_HIGH: usize = 122;
// The larger inode's fields: parts of a second, and the time of creation.
const CTIME_EXTRA: usize = 132;
const MTIME_EXTRA: usize = 136;
const ATIME_EXTRA: usize = 140;
const CRTIME: usize = 144;
const CRTIME_EXTRA: usize = 148;

/// A user and a group of this machine.
#[derive(Clone, Copy)]
pub struct Owner {
    uid: u32,
    gid: u32,
}

impl Owner {
    /// Root.
    pub const ROOT: Self = Self { uid: 0, gid: 0 };

    /// The owner of `path`.
    ///
    /// # Errors
    /// When there is no such file.
    pub fn of(path: &Path) -> Result<Self> {
        let file = path.metadata().with_context(|| format!("cannot look at {}", path.display()))?;
        Ok(Self { uid: file.uid(), gid: file.gid() })
    }
}

/// Gives every inode in `image` its modification time for all its times, and what belongs to `owner` to root.
///
/// # Errors
/// When the image cannot be read or written, or is no ext2 image.
pub fn settle(image: &Path, owner: Owner) -> Result<()> {
    let file = OpenOptions::new().read(true).write(true).open(image);
    let file = file.with_context(|| format!("cannot open {}", image.display()))?;
    let geometry = Geometry::read(&file)?;
    for group in 0..geometry.groups {
        let mut table = vec![0; geometry.inodes_per_group * geometry.inode_size];
        let at = geometry.inode_table(&file, group)?;
        file.read_exact_at(&mut table, at)?;
        for inode in table.chunks_exact_mut(geometry.inode_size) {
            settle_inode(inode, owner);
        }
        file.write_all_at(&table, at)?;
    }
    Ok(())
}

fn settle_inode(inode: &mut [u8], owner: Owner) {
    if u16_at(inode, MODE) == 0 {
        return;
    }
    for (id, low, high) in [(owner.uid, UID, UID_HIGH), (owner.gid, GID, GID_HIGH)] {
        if u32::from(u16_at(inode, low)) | u32::from(u16_at(inode, high)) << 16 == id {
            inode[low..low + 2].fill(0);
            inode[high..high + 2].fill(0);
        }
    }
    let modified = u32_at(inode, MTIME);
    for field in [ATIME, CTIME] {
        put_u32(inode, field, modified);
    }
    if inode.len() <= CRTIME_EXTRA {
        return;
    }
    let part = u32_at(inode, MTIME_EXTRA);
    put_u32(inode, CRTIME, modified);
    for field in [ATIME_EXTRA, CTIME_EXTRA, CRTIME_EXTRA] {
        put_u32(inode, field, part);
    }
}

/// Layout of the inode tables, from the superblock.
struct Geometry {
    block_size: u64,
    descriptors_at: u64,
    groups: u64,
    inodes_per_group: usize,
    inode_size: usize,
}

impl Geometry {
    fn read(file: &File) -> Result<Self> {
        let mut superblock = [0; SUPERBLOCK_SIZE];
        file.read_exact_at(&mut superblock, SUPERBLOCK_AT)?;
        if u16_at(&superblock, 56) != MAGIC {
            bail!("the image is not ext2");
        }
        let inodes = u64::from(u32_at(&superblock, 0));
        let inodes_per_group = u32_at(&superblock, 40);
        let block_size = 1024 << u32_at(&superblock, 24);
        let first_block = u64::from(u32_at(&superblock, 20));
        Ok(Self {
            block_size,
            descriptors_at: (first_block + 1) * block_size,
            groups: inodes / u64::from(inodes_per_group),
            inodes_per_group: inodes_per_group as usize,
            inode_size: usize::from(u16_at(&superblock, 88)),
        })
    }

    /// Where the inode table of `group` begins, in bytes.
    fn inode_table(&self, file: &File, group: u64) -> Result<u64> {
        let mut field = [0; 4];
        file.read_exact_at(&mut field, self.descriptors_at + group * DESCRIPTOR_SIZE + 8)?;
        Ok(u64::from(u32::from_le_bytes(field)) * self.block_size)
    }
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn put_u32(bytes: &mut [u8], at: usize, value: u32) {
    bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inode(mode: u16, modified: u32) -> Vec<u8> {
        let mut inode = vec![0x55; 256];
        inode[..2].copy_from_slice(&mode.to_le_bytes());
        put_u32(&mut inode, MTIME, modified);
        inode
    }

    #[test]
    fn all_times_become_the_modification_time() {
        let mut inode = inode(0o100_644, 1000);
        put_u32(&mut inode, MTIME_EXTRA, 7);
        settle_inode(&mut inode, Owner::ROOT);
        assert_eq!([MTIME, CTIME, ATIME, CRTIME].map(|field| u32_at(&inode, field)), [1000; 4]);
        assert_eq!([CTIME_EXTRA, ATIME_EXTRA, CRTIME_EXTRA].map(|field| u32_at(&inode, field)), [7; 3]);
    }

    #[test]
    fn free_inodes_are_left_alone() {
        let mut inode = inode(0, 3000);
        let before = inode.clone();
        settle_inode(&mut inode, Owner::ROOT);
        assert_eq!(inode, before);
    }

    #[test]
    fn what_the_stager_owns_becomes_roots_and_other_owners_stay() {
        let owner = Owner { uid: 0x1_03e8, gid: 100 };
        let mut inode = inode(0o100_644, 1000);
        for (field, half) in [(UID, 0x3e8u16), (UID_HIGH, 1), (GID, 42), (GID_HIGH, 0)] {
            inode[field..field + 2].copy_from_slice(&half.to_le_bytes());
        }
        settle_inode(&mut inode, owner);
        assert_eq!([UID, UID_HIGH, GID, GID_HIGH].map(|field| u16_at(&inode, field)), [0, 0, 42, 0]);
    }
}
