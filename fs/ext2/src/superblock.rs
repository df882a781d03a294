//! The superblock: reading it with all the checks that later code relies on, and writing its changing fields.
//!
//! After `Superblock::read` succeeded: sizes are powers of two in their ranges, the groups cover exactly
//! the blocks and inodes, and all of it fits on the device. `Group::read` checks that the metadata of a group fits into the group.

use fs::Errno;

use crate::hash::Hasher;
use fs::bytes::{put_u16, put_u32, u16_at, u32_at};

/// Offset of the superblock on the device, in bytes.
pub const SUPERBLOCK_OFFSET: usize = 1024;
/// Size of the superblock, in bytes.
pub const SUPERBLOCK_SIZE: usize = 1024;
/// Length of the part with the mutable fields, in bytes.
pub const SUPERBLOCK_CHANGING: usize = 236;
/// The root directory's inode number.
pub const ROOT_INODE: u32 = 2;
/// Bytes of a group descriptor.
pub const DESCRIPTOR_SIZE: usize = 32;

/// Magic number in the superblock, and the kind in `statfs`.
pub const MAGIC: u16 = 0xef53;

const STATE_CLEAN: u16 = 1;
const STATE_ERRORS: u16 = 2;

const REVISION_DYNAMIC: u32 = 1;
const FIRST_INODE_OLD: u32 = 11;
const INODE_SIZE_OLD: u16 = 128;

const COMPAT_HAS_JOURNAL: u32 = 0x4;
const COMPAT_EXT_ATTR: u32 = 0x8;
const COMPAT_DIR_INDEX: u32 = 0x20;
const INCOMPAT_FILETYPE: u32 = 0x2;
const INCOMPAT_RECOVER: u32 = 0x4;
const RO_SPARSE_SUPER: u32 = 0x1;
const RO_LARGE_FILE: u32 = 0x2;
const RO_BTREE_DIR: u32 = 0x4;
const RO_EXTRA_ISIZE: u32 = 0x40;
const INCOMPAT_KNOWN: u32 = INCOMPAT_FILETYPE | INCOMPAT_RECOVER;

/// Offset of the incompatible features.
pub const INCOMPAT: usize = 96;
const JOURNAL_INODE: usize = 224;
const LAST_ORPHAN: usize = 232;
const RO_KNOWN: u32 = RO_SPARSE_SUPER | RO_LARGE_FILE | RO_BTREE_DIR | RO_EXTRA_ISIZE;

/// Fewest blocks of a group that mke2fs makes.
const MIN_BLOCKS_PER_GROUP: u32 = 256;

/// The superblock, checked.
#[derive(Clone, Debug)]
pub struct Superblock {
    /// Inodes of the file system.
    pub inodes_count: u32,
    /// Blocks of the file system.
    pub blocks_count: u32,
    /// Blocks that only the reserved user may take.
    pub reserved_blocks: u32,
    /// Free blocks, in all groups.
    pub free_blocks: u32,
    /// Free inodes, in all groups.
    pub free_inodes: u32,
    /// Block that holds the superblock; the first one of group 0.
    pub first_data_block: u32,
    /// Bytes of a block.
    pub block_size: usize,
    /// Blocks of a group; the last one may have fewer.
    pub blocks_per_group: u32,
    /// Inodes of a group.
    pub inodes_per_group: u32,
    /// Number of groups.
    pub groups: u32,
    /// Last mount, in seconds.
    pub mount_time: u32,
    /// Last write of the superblock, in seconds.
    pub write_time: u32,
    /// Mounts since the last check.
    pub mount_count: u16,
    /// User that may take reserved blocks.
    pub reserved_uid: u16,
    /// Group that may take reserved blocks.
    pub reserved_gid: u16,
    /// First inode that is not reserved.
    pub first_inode: u32,
    /// Bytes of an inode.
    pub inode_size: usize,
    /// Bytes beyond the old 128 that a new inode uses.
    pub extra_inode_size: u16,
    /// Identity of the file system: the halves of its UUID combined.
    pub id: u64,
    /// Whether it can only be read, because it uses something unknown.
    pub read_only: bool,
    /// Blocks kept behind the descriptors for growth.
    pub reserved_descriptor_blocks: u32,
    /// Inode of the journal; 0 without one in this file system.
    pub journal_inode: u32,
    /// First of the list of orphans that a journal has; 0: it is empty.
    pub last_orphan: u32,
    /// How names are hashed, if directories are indexed.
    pub hasher: Option<Hasher>,
    state: u16,
    dynamic: bool,
    compat: u32,
    ro_compat: u32,
    incompat: u32,
}

impl Superblock {
    /// Decodes the superblock from `SUPERBLOCK_SIZE` bytes. `EINVAL` without ext2 or with unknown features,
    /// `EUCLEAN` if it is inconsistent on a device of `device_bytes`.
    pub fn read(bytes: &[u8], device_bytes: u64) -> Result<Self, Errno> {
        if u16_at(bytes, 56) != MAGIC {
            return Err(Errno::EINVAL);
        }
        let superblock = Self::parse(bytes)?;
        if superblock.incompat & !INCOMPAT_KNOWN != 0 {
            return Err(Errno::EINVAL);
        }
        if superblock.makes_sense(device_bytes) { Ok(superblock) } else { Err(Errno::EUCLEAN) }
    }

    fn parse(bytes: &[u8]) -> Result<Self, Errno> {
        let log_block_size = u32_at(bytes, 24);
        if log_block_size > 2 {
            return Err(Errno::EINVAL);
        }
        let dynamic = u32_at(bytes, 76) >= REVISION_DYNAMIC;
        let if_dynamic = |value: u32| if dynamic { value } else { 0 };
        let ro_compat = if_dynamic(u32_at(bytes, 100));
        let inode_size = if dynamic { u16_at(bytes, 88) } else { INODE_SIZE_OLD };
        let blocks_per_group = u32_at(bytes, 32);
        let first_data_block = u32_at(bytes, 20);
        let blocks_count = u32_at(bytes, 4);
        let covered = blocks_count.checked_sub(first_data_block).ok_or(Errno::EUCLEAN)?;
        let id_half = |offset| u64::from(u32_at(bytes, offset)) | u64::from(u32_at(bytes, offset + 4)) << 32;
        Ok(Superblock {
            inodes_count: u32_at(bytes, 0),
            blocks_count,
            reserved_blocks: u32_at(bytes, 8),
            free_blocks: u32_at(bytes, 12),
            free_inodes: u32_at(bytes, 16),
            first_data_block,
            block_size: 1024 << log_block_size,
            blocks_per_group,
            inodes_per_group: u32_at(bytes, 40),
            groups: covered.div_ceil(blocks_per_group.max(1)),
            mount_time: u32_at(bytes, 44),
            write_time: u32_at(bytes, 48),
            mount_count: u16_at(bytes, 52),
            reserved_uid: u16_at(bytes, 80),
            reserved_gid: u16_at(bytes, 82),
            first_inode: if dynamic { u32_at(bytes, 84) } else { FIRST_INODE_OLD },
            inode_size: inode_size.into(),
            extra_inode_size: extra_inode_size(bytes, inode_size),
            id: id_half(104) ^ id_half(112),
            read_only: ro_compat & !RO_KNOWN != 0,
            reserved_descriptor_blocks: if_dynamic(u16_at(bytes, 206).into()),
            journal_inode: if_dynamic(u32_at(bytes, JOURNAL_INODE)),
            last_orphan: if_dynamic(u32_at(bytes, LAST_ORPHAN)),
            hasher: Hasher::read(bytes).filter(|_| if_dynamic(u32_at(bytes, 92)) & COMPAT_DIR_INDEX != 0),
            state: u16_at(bytes, 58),
            dynamic,
            compat: if_dynamic(u32_at(bytes, 92)),
            ro_compat,
            incompat: if_dynamic(u32_at(bytes, INCOMPAT)),
        })
    }

    fn makes_sense(&self, device_bytes: u64) -> bool {
        let bits = 8 * self.block_size as u32;
        let sizes = self.inode_size.is_power_of_two()
            && (128..=self.block_size).contains(&self.inode_size)
            && self.first_data_block == u32::from(self.block_size == 1024)
            && u64::from(self.blocks_count) * self.block_size as u64 <= device_bytes;
        let groups = (MIN_BLOCKS_PER_GROUP..=bits).contains(&self.blocks_per_group)
            && self.blocks_per_group.is_multiple_of(8)
            && self.groups > 0
            && (1..=bits).contains(&self.inodes_per_group)
            && self.inodes_per_group.checked_mul(self.groups) == Some(self.inodes_count);
        sizes
            && groups
            && (FIRST_INODE_OLD..=self.inodes_count).contains(&self.first_inode)
            && self.reserved_blocks <= self.blocks_count
    }

    /// Blocks of a group's inode table.
    pub fn inode_table_blocks(&self) -> u32 {
        let per_block = (self.block_size / self.inode_size) as u32;
        self.inodes_per_group.div_ceil(per_block)
    }

    /// Blocks of the group descriptors.
    pub fn descriptor_blocks(&self) -> u32 {
        self.groups.div_ceil((self.block_size / DESCRIPTOR_SIZE) as u32)
    }

    /// Blocks at the head of a group with a copy of the superblock: it, the descriptors and what is kept
    /// for their growth.
    pub fn group_head_blocks(&self) -> u32 {
        1 + self.descriptor_blocks() + self.reserved_descriptor_blocks
    }

    /// Whether `group` begins with a copy of the superblock: all do, unless `sparse_super` leaves them
    /// to groups 0, 1 and the powers of 3, 5 and 7.
    pub fn has_superblock(&self, group: u32) -> bool {
        let power_of = |base: u32| {
            let mut power = base;
            while power < group {
                power = power.saturating_mul(base);
            }
            power == group
        };
        self.ro_compat & RO_SPARSE_SUPER == 0 || group <= 1 || [3, 5, 7].into_iter().any(power_of)
    }

    /// First block of `group`.
    pub fn group_start(&self, group: u32) -> u32 {
        self.first_data_block + group * self.blocks_per_group
    }

    /// Blocks in `group`.
    pub fn group_blocks(&self, group: u32) -> u32 {
        (self.blocks_count - self.group_start(group)).min(self.blocks_per_group)
    }

    /// Whether directory entries tell the kind of the node.
    pub fn has_file_types(&self) -> bool {
        self.incompat & INCOMPAT_FILETYPE != 0
    }

    /// Allows files of 2 GiB and more, if the format can have them.
    pub fn allow_large_files(&mut self) -> Result<(), Errno> {
        if !self.dynamic {
            return Err(Errno::EFBIG);
        }
        self.ro_compat |= RO_LARGE_FILE;
        Ok(())
    }

    /// Whether it has a journal.
    pub fn has_journal(&self) -> bool {
        self.compat & COMPAT_HAS_JOURNAL != 0
    }

    /// Whether the journal is in use, or was when the power failed.
    pub fn needs_recovery(&self) -> bool {
        self.incompat & INCOMPAT_RECOVER != 0
    }

    /// Marks the journal as in use or not.
    pub fn set_needs_recovery(&mut self, needs_recovery: bool) {
        set_recovery(&mut self.incompat, needs_recovery);
    }

    /// Whether inodes may have extended attributes.
    pub fn has_xattrs(&self) -> bool {
        self.compat & COMPAT_EXT_ATTR != 0
    }

    /// Allows extended attributes. `EOPNOTSUPP`: the format cannot have them.
    pub fn allow_xattrs(&mut self) -> Result<(), Errno> {
        if !self.dynamic {
            return Err(Errno::EOPNOTSUPP);
        }
        self.compat |= COMPAT_EXT_ATTR;
        Ok(())
    }

    /// Whether it was unmounted properly and holds no known error.
    pub fn is_clean(&self) -> bool {
        self.state & (STATE_CLEAN | STATE_ERRORS) == STATE_CLEAN
    }

    /// Marks it in use (not clean) or properly unmounted.
    pub fn set_clean(&mut self, clean: bool) {
        self.state = if clean { self.state | STATE_CLEAN } else { self.state & !STATE_CLEAN };
    }

    /// Marks it as having an error, for the next check.
    pub fn set_errors(&mut self) {
        self.state |= STATE_ERRORS;
    }

    /// Encodes the mutable fields into the superblock's bytes.
    pub fn write(&self, bytes: &mut [u8]) {
        put_u32(bytes, 12, self.free_blocks);
        put_u32(bytes, 16, self.free_inodes);
        put_u32(bytes, 44, self.mount_time);
        put_u32(bytes, 48, self.write_time);
        put_u16(bytes, 52, self.mount_count);
        put_u16(bytes, 58, self.state);
        if self.dynamic {
            put_u32(bytes, 92, self.compat);
            put_u32(bytes, INCOMPAT, self.incompat);
            put_u32(bytes, 100, self.ro_compat);
        }
        if self.has_journal() {
            put_u32(bytes, LAST_ORPHAN, self.last_orphan);
        }
    }
}

/// Marks the journal as in use or not, in the incompatible features.
pub fn set_recovery(incompat: &mut u32, needs_recovery: bool) {
    *incompat = if needs_recovery { *incompat | INCOMPAT_RECOVER } else { *incompat & !INCOMPAT_RECOVER };
}

/// How much of a new inode beyond 128 bytes holds fields: what the file system wants, at least the
/// nanoseconds if there is room.
fn extra_inode_size(bytes: &[u8], inode_size: u16) -> u16 {
    const NANOSECONDS: u16 = 28;
    let room = inode_size.saturating_sub(INODE_SIZE_OLD);
    let wanted = u16_at(bytes, 350);
    if wanted.is_multiple_of(4) && (NANOSECONDS..=room).contains(&wanted) { wanted } else { room.min(32) }
}
