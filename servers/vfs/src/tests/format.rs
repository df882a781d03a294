//! Makes an empty ext2 file system: one group of 4 KiB blocks, a root directory that every user can write (mode 1777).
//!
//! ```text
//! block   0            1             2              3              4 …                 then
//!         superblock   descriptors   block bitmap   inode bitmap   inodes, 16 a block   root directory, free blocks
//! ```

use fs::file_system::{S_IFDIR, Timestamp};

/// Bytes of a block.
pub const BLOCK: usize = 4096;
/// Limit of blocks: the bits of one bitmap.
const MAX_BLOCKS: usize = BLOCK * 8;

const BLOCK_BITMAP: usize = 2;
const INODE_BITMAP: usize = 3;
const INODE_TABLE: usize = 4;
const INODE_BYTES: usize = 256;
const INODES_PER_BLOCK: usize = BLOCK / INODE_BYTES;
const FIRST_INODE: usize = 11;
const ROOT_INODE: usize = 2;
const ROOT_MODE: u32 = S_IFDIR | 0o1777;
const DIRECTORY: u8 = 2;

/// Layout of the file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    blocks: usize,
    inodes: usize,
}

impl Plan {
    /// Computes the layout for at least `content` bytes of content, limited to one group.
    pub fn new(content: u64) -> Plan {
        let wanted = content.div_ceil(BLOCK as u64).clamp(1, MAX_BLOCKS as u64) as usize;
        // One inode for each block, so that files of any size fill it; an inode takes memory only when it is used.
        let inodes = wanted.clamp(64, MAX_BLOCKS).next_multiple_of(INODES_PER_BLOCK);
        let plan = Plan { blocks: 0, inodes };
        // One more for the root directory.
        Plan { blocks: (wanted + plan.first_free()).min(MAX_BLOCKS), ..plan }
    }

    /// Returns the size of the device in bytes.
    pub const fn bytes(&self) -> usize {
        self.blocks * BLOCK
    }

    const fn root_block(&self) -> usize {
        INODE_TABLE + self.inodes / INODES_PER_BLOCK
    }

    const fn first_free(&self) -> usize {
        self.root_block() + 1
    }

    /// Writes the file system into `device`, `self.bytes()` bytes.
    pub fn format(&self, device: &mut [u8], identity: u64, now: Timestamp) {
        device[..BLOCK].fill(0);
        device[BLOCK..2 * BLOCK].fill(0);
        self.write_superblock(&mut device[1024..2048], identity, now);
        self.write_descriptor(&mut device[BLOCK..BLOCK + 32]);
        write_bitmap(block(device, BLOCK_BITMAP), self.first_free(), self.blocks);
        write_bitmap(block(device, INODE_BITMAP), FIRST_INODE - 1, self.inodes);
        self.write_root(device, now);
    }

    fn write_superblock(&self, bytes: &mut [u8], identity: u64, now: Timestamp) {
        let free_blocks = self.blocks - self.first_free();
        let fields = [
            (0, self.inodes),
            (4, self.blocks),
            (12, free_blocks),
            (16, self.inodes - (FIRST_INODE - 1)),
            // 1,024 shifted by this is the size of a block, and of a fragment.
            (24, 2),
            (28, 2),
            (32, MAX_BLOCKS),
            (36, MAX_BLOCKS),
            (40, self.inodes),
            (48, now.seconds as usize),
            (64, now.seconds as usize),
            // The revision with features: extended attributes, indexed directories; entries tell the file's type; files may be large.
            (76, 1),
            (84, FIRST_INODE),
            (92, 8 | 0x20),
            (96, 2),
            (100, 2),
        ];
        fields.into_iter().for_each(|(at, value)| put(bytes, at, value as u32));
        // Magic number; clean; continue after errors. Mounts are not counted.
        bytes[56..58].copy_from_slice(&0xef53u16.to_le_bytes());
        bytes[58] = 1;
        bytes[60] = 1;
        bytes[54..56].fill(0xff);
        bytes[88..90].copy_from_slice(&(INODE_BYTES as u16).to_le_bytes());
        bytes[104..112].copy_from_slice(&identity.to_le_bytes());
        bytes[112..120].copy_from_slice(b"tmpfs\0\0\0");
        // Names are hashed by half MD4 with this seed.
        bytes.copy_within(104..120, 236);
        bytes[252] = 1;
    }

    fn write_descriptor(&self, bytes: &mut [u8]) {
        let fields = [(0, BLOCK_BITMAP), (4, INODE_BITMAP), (8, INODE_TABLE)];
        fields.into_iter().for_each(|(at, value)| put(bytes, at, value as u32));
        let counts = [(12, self.blocks - self.first_free()), (14, self.inodes - (FIRST_INODE - 1)), (16, 1)];
        for (at, count) in counts {
            bytes[at..at + 2].copy_from_slice(&(count as u16).to_le_bytes());
        }
    }

    fn write_root(&self, device: &mut [u8], now: Timestamp) {
        let table = block(device, INODE_TABLE);
        table.fill(0);
        let inode = &mut table[(ROOT_INODE - 1) * INODE_BYTES..ROOT_INODE * INODE_BYTES];
        let seconds = now.seconds as u32;
        // Size, times, and 8 sectors in one block.
        for (at, value) in [(4, BLOCK as u32), (8, seconds), (12, seconds), (16, seconds), (28, 8)] {
            put(inode, at, value);
        }
        inode[..2].copy_from_slice(&(ROOT_MODE as u16).to_le_bytes());
        inode[26] = 2;
        put(inode, 40, self.root_block() as u32);
        // Used bytes beyond the first 128.
        inode[128] = 32;
        let entries = block(device, self.root_block());
        entries.fill(0);
        for (at, length, name) in [(0, 12, &b"."[..]), (12, BLOCK as u16 - 12, b"..")] {
            put(entries, at, ROOT_INODE as u32);
            entries[at + 4..at + 6].copy_from_slice(&length.to_le_bytes());
            entries[at + 6] = name.len() as u8;
            entries[at + 7] = DIRECTORY;
            entries[at + 8..at + 8 + name.len()].copy_from_slice(name);
        }
    }
}

fn block(device: &mut [u8], number: usize) -> &mut [u8] {
    &mut device[number * BLOCK..(number + 1) * BLOCK]
}

fn put(bytes: &mut [u8], at: usize, value: u32) {
    bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
}

/// Makes a bitmap: the first `used` of `count` bits are set, and those beyond `count`.
fn write_bitmap(bytes: &mut [u8], used: usize, count: usize) {
    bytes.fill(0);
    for bit in (0..used).chain(count..BLOCK * 8) {
        bytes[bit / 8] |= 1 << (bit % 8);
    }
}
