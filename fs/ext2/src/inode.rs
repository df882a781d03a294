//! An inode, on disk and in memory.

use fs::Errno;
use fs::file_system::{S_IFBLK, S_IFCHR, S_IFDIR, S_IFIFO, S_IFLNK, S_IFMT, S_IFREG, S_IFSOCK, Timestamp};

use fs::bytes::{put_u16, put_u32, u16_at, u32_at};
use fs::xattr_list::MAGIC;

/// Bytes of an inode of revision 0, and of the part that every inode has.
pub const BASE_SIZE: usize = 128;
/// Block pointers of an inode: 12 direct, then one each of the three indirect levels.
pub const POINTERS: usize = 15;
/// Direct block pointers.
pub const DIRECT: usize = 12;
/// Longest symbolic link kept in the inode itself, in bytes.
pub const FAST_LINK: usize = POINTERS * 4;

/// The directory has an index of the hashes of its names, which a change that ignores the index makes wrong.
pub const FLAG_INDEX: u32 = 0x1000;

const EXTRA_CHANGED: usize = 132;
const EXTRA_MODIFIED: usize = 136;
const EXTRA_ACCESSED: usize = 140;
const EXTRA_CREATED: usize = 148;
const BLOCK_POINTERS: usize = 40;
/// Offset of the time of deletion.
pub const DELETED: usize = 20;
/// Offset of the link count.
pub const LINKS: usize = 26;

/// Bytes of the magic number before the extended attributes behind an inode.
pub const ATTRIBUTES_HEAD: usize = 4;

/// An inode in memory.
#[derive(Clone, Debug, Default)]
pub struct Inode {
    /// Kind and permissions.
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Size in bytes.
    pub size: u64,
    /// Last access.
    pub accessed: Timestamp,
    /// Last change of the inode.
    pub changed: Timestamp,
    /// Last change of the content.
    pub modified: Timestamp,
    /// Time of deletion, in seconds; 0 while it is in use. In the list of orphans, the next one.
    pub deleted: u32,
    /// Directory entries that name it.
    pub links: u16,
    /// Space taken, in units of 512 bytes.
    pub sectors: u32,
    /// Flags of the format.
    pub flags: u32,
    /// Block pointers; or the target of a short symbolic link, or a device number.
    pub pointers: [u32; POINTERS],
    /// Block of extended attributes, or 0.
    pub attribute_block: u32,
    /// Differs from that of the last file with this number.
    pub generation: u32,
    /// There were extended attributes behind the inode when it was read.
    pub attributes_inside: bool,
    /// Whether the inode in the cached block is stale.
    pub dirty: bool,
    /// The goal for the next block; 0 for none. Not on disk.
    pub goal: u32,
    /// For a directory, the block where the search for free space begins; for a file, the block that a
    /// sequential reader needs next. Not on disk.
    pub next_block: u32,
}

/// The generation in the bytes of an inode.
pub fn generation_of(bytes: &[u8]) -> u32 {
    u32_at(bytes, 100)
}

impl Inode {
    /// Decodes an inode. `EUCLEAN` if it is not in use, of unknown kind, or without a name that it needs.
    pub fn read(bytes: &[u8], may_be_unnamed: bool) -> Result<Self, Errno> {
        let half = |low: usize, high: usize| u32::from(u16_at(bytes, low)) | u32::from(u16_at(bytes, high)) << 16;
        let mut inode = Inode {
            mode: u16_at(bytes, 0).into(),
            uid: half(2, 120),
            gid: half(24, 122),
            size: u32_at(bytes, 4).into(),
            accessed: read_time(bytes, 8, EXTRA_ACCESSED),
            changed: read_time(bytes, 12, EXTRA_CHANGED),
            modified: read_time(bytes, 16, EXTRA_MODIFIED),
            deleted: u32_at(bytes, DELETED),
            links: u16_at(bytes, LINKS),
            sectors: u32_at(bytes, 28),
            flags: u32_at(bytes, 32),
            attribute_block: u32_at(bytes, 104),
            generation: generation_of(bytes),
            attributes_inside: attribute_area(bytes).is_some(),
            ..Inode::default()
        };
        for (pointer, field) in inode.pointers.iter_mut().zip(bytes[BLOCK_POINTERS..].chunks_exact(4)) {
            *pointer = u32_at(field, 0);
        }
        if inode.is_regular() {
            inode.size |= u64::from(u32_at(bytes, 108)) << 32;
        }
        let known = [S_IFREG, S_IFDIR, S_IFLNK, S_IFCHR, S_IFBLK, S_IFIFO, S_IFSOCK].contains(&inode.kind());
        let sound = known && (inode.links > 0 || may_be_unnamed) && inode.size <= i64::MAX as u64;
        if sound { Ok(inode) } else { Err(Errno::EUCLEAN) }
    }

    /// Encodes the inode into its bytes; fields unknown to this file system keep their values.
    pub fn write(&self, bytes: &mut [u8]) {
        put_u16(bytes, 0, self.mode as u16);
        put_u16(bytes, 2, self.uid as u16);
        put_u32(bytes, 4, self.size as u32);
        put_u32(bytes, DELETED, self.deleted);
        put_u16(bytes, 24, self.gid as u16);
        put_u16(bytes, LINKS, self.links);
        put_u32(bytes, 28, self.sectors);
        put_u32(bytes, 32, self.flags);
        put_u32(bytes, 104, self.attribute_block);
        put_u16(bytes, 120, (self.uid >> 16) as u16);
        put_u16(bytes, 122, (self.gid >> 16) as u16);
        for (pointer, field) in self.pointers.iter().zip(bytes[BLOCK_POINTERS..].chunks_exact_mut(4)) {
            put_u32(field, 0, *pointer);
        }
        if self.is_regular() {
            put_u32(bytes, 108, (self.size >> 32) as u32);
        }
        write_time(bytes, 8, EXTRA_ACCESSED, self.accessed);
        write_time(bytes, 12, EXTRA_CHANGED, self.changed);
        write_time(bytes, 16, EXTRA_MODIFIED, self.modified);
    }

    /// Initializes the bytes of a new inode: zeros except the generation, which is incremented, the size
    /// of the part beyond 128 bytes, and the time of creation.
    pub fn prepare(bytes: &mut [u8], extra_size: u16, now: Timestamp) {
        let generation = generation_of(bytes).wrapping_add(1);
        bytes.fill(0);
        put_u32(bytes, 100, generation);
        if bytes.len() > BASE_SIZE {
            put_u16(bytes, BASE_SIZE, extra_size);
            let created = EXTRA_CREATED - 4;
            if has_field(bytes, EXTRA_CREATED) {
                write_time(bytes, created, EXTRA_CREATED, now);
            }
        }
    }

    /// Returns the kind bits of the mode.
    pub fn kind(&self) -> u32 {
        self.mode & S_IFMT
    }

    /// Whether it is a directory.
    pub fn is_directory(&self) -> bool {
        self.kind() == S_IFDIR
    }

    /// Whether it is a regular file.
    pub fn is_regular(&self) -> bool {
        self.kind() == S_IFREG
    }

    /// Whether it is a symbolic link kept in the inode itself; a block of extended attributes is the only
    /// space that such a link takes.
    pub fn is_fast_link(&self, block_size: usize) -> bool {
        let attribute_sectors = if self.attribute_block == 0 { 0 } else { block_size as u32 / 512 };
        self.kind() == S_IFLNK && self.sectors == attribute_sectors
    }

    /// Whether the pointers name blocks.
    pub fn has_blocks(&self, block_size: usize) -> bool {
        self.is_regular() || self.is_directory() || (self.kind() == S_IFLNK && !self.is_fast_link(block_size))
    }

    /// The device number of a device node, in Linux's encoding of user space.
    pub fn device(&self) -> u64 {
        match (self.kind(), self.pointers[0]) {
            (S_IFCHR | S_IFBLK, 0) => self.pointers[1].into(),
            (S_IFCHR | S_IFBLK, old) => (old & 0xffff).into(),
            _ => 0,
        }
    }

    /// Sets the device number, in the old 16-bit form if it fits.
    pub fn set_device(&mut self, number: u64) {
        let slot = usize::from(number > 0xffff);
        self.pointers[slot] = number as u32;
    }

    /// Sets the times of modification and change.
    pub fn touch(&mut self, now: Timestamp) {
        self.modified = now;
        self.changed = now;
    }
}

/// Whether the inode's extra part reaches to the end of the 32-bit field at `offset`.
fn has_field(bytes: &[u8], offset: usize) -> bool {
    bytes.len() > BASE_SIZE
        && BASE_SIZE + usize::from(u16_at(bytes, BASE_SIZE)) >= offset + 4
        && bytes.len() >= offset + 4
}

/// A time: signed seconds, and in the extra field two more bits of them and the nanoseconds.
fn read_time(bytes: &[u8], offset: usize, extra: usize) -> Timestamp {
    let seconds = i64::from(u32_at(bytes, offset) as i32);
    if !has_field(bytes, extra) {
        return Timestamp { seconds, nanos: 0 };
    }
    let bits = u32_at(bytes, extra);
    let nanos = bits >> 2;
    Timestamp { seconds: seconds + (i64::from(bits & 3) << 32), nanos: if nanos < 1_000_000_000 { nanos } else { 0 } }
}

fn write_time(bytes: &mut [u8], offset: usize, extra: usize, time: Timestamp) {
    const LATEST: i64 = (3 << 32) + i32::MAX as i64;
    let wide = has_field(bytes, extra);
    let seconds = time.seconds.clamp(i32::MIN.into(), if wide { LATEST } else { i32::MAX.into() });
    put_u32(bytes, offset, seconds as u32);
    if wide {
        let epoch = ((seconds - i64::from(seconds as i32)) >> 32) as u32 & 3;
        put_u32(bytes, extra, time.nanos << 2 | epoch);
    }
}
/// Where the area of extended attributes begins in the bytes of an inode, if it has one.
pub fn attribute_area(bytes: &[u8]) -> Option<usize> {
    let extra = usize::from(u16_at(bytes.get(BASE_SIZE..BASE_SIZE + 2)?, 0));
    let area = BASE_SIZE + extra;
    let magic = bytes.get(area..area + ATTRIBUTES_HEAD)?;
    (extra > 0 && extra.is_multiple_of(4) && u32_at(magic, 0) == MAGIC).then_some(area)
}
