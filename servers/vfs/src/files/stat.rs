//! The structures in which programs are told about files: `stat`, `statx`, `statfs`, directory records (their Linux x86-64 layouts),
//! and device numbers.

const NS_PER_S: u64 = 1_000_000_000;
/// Bytes of `struct stat`.
pub const STAT_BYTES: usize = 144;
/// Bytes of `struct statx`.
pub const STATX_BYTES: usize = 256;
/// Bytes of `struct statfs`.
pub const STATFS_BYTES: usize = 120;

/// A device number as programs see it.
pub const fn make_device(major: u32, minor: u32) -> u64 {
    let (major, minor) = (major as u64, minor as u64);
    (major & 0xfff) << 8 | (major & !0xfff) << 32 | minor & 0xff | (minor & !0xff) << 12
}

/// The major half of a device number.
pub const fn major(device: u64) -> u32 {
    (device >> 8 & 0xfff) as u32 | (device >> 32) as u32 & !0xfff
}

/// The minor half of a device number.
pub const fn minor(device: u64) -> u32 {
    (device & 0xff) as u32 | (device >> 12) as u32 & !0xff
}

/// A `struct stat`.
#[derive(Clone, Copy, Debug)]
pub struct Stat(pub [u8; STAT_BYTES]);

/// What an object of vfs itself (a pipe) tells in a `stat`.
#[derive(Clone, Copy, Debug, Default)]
#[allow(missing_docs)]
pub struct Summary {
    pub inode: u64,
    pub mode: u32,
    pub uid: u32,
    pub gid: u32,
    pub time_ns: u64,
}

/// What a change of attributes leaves as it is in the `stat` of a regular file.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub struct Basis {
    pub device: u64,
    pub inode: u64,
    pub size: u64,
    pub block_bytes: u64,
}

impl Stat {
    /// The `stat` of an object that no file system knows, on the device 0.
    pub fn of_object(object: &Summary) -> Stat {
        let mut stat = Stat([0; STAT_BYTES]);
        stat.put(8, object.inode);
        stat.put(16, 1);
        stat.put_u32(24, object.mode);
        stat.put_u32(28, object.uid);
        stat.put_u32(32, object.gid);
        stat.put(56, 4096);
        stat.set_times([object.time_ns; 3]);
        stat
    }

    /// Type and permission bits.
    pub fn mode(&self) -> u32 {
        self.half(24)
    }

    /// Names the file has.
    pub fn links(&self) -> u64 {
        self.word(16)
    }

    /// Owner and group.
    pub fn owner(&self) -> (u32, u32) {
        (self.half(28), self.half(32))
    }

    /// Bytes.
    pub fn size(&self) -> u64 {
        self.word(48)
    }

    /// Bytes of a block.
    pub fn block_bytes(&self) -> u64 {
        self.word(56)
    }

    /// Device number of a special file.
    pub fn special_device(&self) -> u64 {
        self.word(40)
    }

    /// The `stat` of a regular file, before its links, mode, owner, space and times are set.
    pub fn of_file(file: &Basis) -> Stat {
        let mut stat = Stat([0; STAT_BYTES]);
        for (at, value) in [(0, file.device), (8, file.inode), (48, file.size), (56, file.block_bytes)] {
            stat.put(at, value);
        }
        stat
    }

    fn put(&mut self, at: usize, value: u64) {
        self.0[at..at + 8].copy_from_slice(&value.to_le_bytes());
    }

    fn put_u32(&mut self, at: usize, value: u32) {
        self.0[at..at + 4].copy_from_slice(&value.to_le_bytes());
    }

    fn word(&self, at: usize) -> u64 {
        u64::from_le_bytes(self.0[at..at + 8].try_into().expect("eight bytes"))
    }

    fn half(&self, at: usize) -> u32 {
        self.word(at) as u32
    }

    /// Sets owner and group.
    pub fn set_owner(&mut self, (uid, gid): (u32, u32)) {
        self.put_u32(28, uid);
        self.put_u32(32, gid);
    }

    /// Sets the device that the file is on.
    pub fn set_device(&mut self, device: u64) {
        self.put(0, device);
    }

    /// Sets type and permission bits.
    pub fn set_mode(&mut self, mode: u32) {
        self.put_u32(24, mode);
    }

    /// Sets how many names the file has.
    pub fn set_links(&mut self, links: u64) {
        self.put(16, links);
    }

    /// Sets the space that the file has, in blocks of 512 bytes.
    pub fn set_blocks(&mut self, blocks: u64) {
        self.put(64, blocks);
    }

    /// Sets the times of the last access, and of the last change of content and node, in ns since 1970.
    pub fn set_times(&mut self, times_ns: [u64; 3]) {
        for (at, ns) in [72, 88, 104].into_iter().zip(times_ns) {
            self.put_time(at, ns);
        }
    }

    /// Sets the times of the last change of content and node, in ns since 1970.
    pub fn set_written(&mut self, ns: u64) {
        for at in [88, 104] {
            self.put_time(at, ns);
        }
    }

    /// Sets the time of last access, in ns since 1970.
    pub fn set_accessed(&mut self, ns: u64) {
        self.put_time(72, ns);
    }

    fn put_time(&mut self, at: usize, ns: u64) {
        self.put(at, ns / NS_PER_S);
        self.put(at + 8, ns % NS_PER_S);
    }

    /// Makes it that of a file of so many bytes, unless it is one already: what is added has space. Blocks of maps are not counted.
    pub fn lengthen(&mut self, bytes: u64) {
        const SECTOR_BYTES: u64 = 512;
        if self.size() >= bytes {
            return;
        }
        let block = self.word(56).max(SECTOR_BYTES);
        let space = bytes.next_multiple_of(block) - self.size().next_multiple_of(block);
        self.put(48, bytes);
        self.put(64, self.word(64) + space / SECTOR_BYTES);
    }

    /// The same as `struct statx`, all basic fields valid.
    pub fn to_statx(self) -> [u8; STATX_BYTES] {
        const STATX_BASIC_STATS: u32 = 0x7ff;
        let mut statx = [0; STATX_BYTES];
        let mut put = |at: usize, bytes: &[u8]| statx[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, &STATX_BASIC_STATS.to_le_bytes());
        put(4, &self.half(56).to_le_bytes());
        put(16, &self.half(16).to_le_bytes());
        put(20, &self.half(28).to_le_bytes());
        put(24, &self.half(32).to_le_bytes());
        put(28, &(self.half(24) as u16).to_le_bytes());
        put(32, &self.word(8).to_le_bytes());
        put(40, &self.word(48).to_le_bytes());
        put(48, &self.word(64).to_le_bytes());
        for (from, to) in [(72, 64), (104, 96), (88, 112)] {
            put(to, &self.word(from).to_le_bytes());
            put(to + 8, &self.half(from + 8).to_le_bytes());
        }
        for (from, to) in [(40, 128), (0, 136)] {
            put(to, &major(self.word(from)).to_le_bytes());
            put(to + 4, &minor(self.word(from)).to_le_bytes());
        }
        statx
    }
}

/// Turns `linux_dirent64` records into those of the old getdents, in place: the type moves behind the name.
pub fn make_old_dirents(bytes: &mut [u8]) {
    const LENGTH: usize = 16;
    const TYPE: usize = 18;
    let mut at = 0;
    while let Some(record) = bytes.get(at..).filter(|rest| rest.len() > TYPE) {
        let length = u16::from_le_bytes([record[LENGTH], record[LENGTH + 1]]) as usize;
        if length <= TYPE + 1 || at + length > bytes.len() {
            return;
        }
        let record = &mut bytes[at..at + length];
        let kind = record[TYPE];
        record.copy_within(TYPE + 1.., TYPE);
        record[length - 1] = kind;
        at += length;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn device_numbers_round_trip() {
        for (a, b) in [(254, 0), (4, 64), (10, 135), (0xfff, 0xff), (5000, 70_000)] {
            assert_eq!((major(make_device(a, b)), minor(make_device(a, b))), (a, b));
        }
        assert_eq!(make_device(5, 1), 0x501);
    }

    #[test]
    fn statx_tells_what_stat_tells() {
        let object = Summary { inode: 7, mode: 0o010600, uid: 1, gid: 2, time_ns: 5_000_000_123 };
        let mut stat = Stat::of_object(&object);
        stat.set_device(make_device(254, 3));
        let statx = stat.to_statx();
        let half = |at: usize| u32::from_le_bytes(statx[at..at + 4].try_into().unwrap());
        assert_eq!((half(16), half(20), half(24), half(28) & 0xffff, half(32)), (1, 1, 2, 0o010600, 7));
        assert_eq!((half(64), half(72), half(136), half(140)), (5, 123, 254, 3));
    }

    #[test]
    fn an_object_of_vfs_is_described_field_by_field() {
        let object = Summary { inode: 7, mode: 0o010600, uid: 1, gid: 2, time_ns: 5_000_000_123 };
        let stat = Stat::of_object(&object);
        let words: Vec<u64> = stat.0.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)).collect();
        let expected = [0, 7, 1, 0o010600 | 1 << 32, 2, 0, 0, 4096, 0, 5, 123, 5, 123, 5, 123, 0, 0, 0];
        assert_eq!(words, expected);
        assert_eq!((stat.mode(), stat.links(), stat.owner(), stat.size()), (0o010600, 1, (1, 2), 0));
    }

    #[test]
    fn old_records_have_their_type_at_the_end() {
        let mut record = [0u8; 24];
        record[16] = 24;
        record[18] = 8;
        record[19..22].copy_from_slice(b"abc");
        let mut two = [record, record].concat();
        make_old_dirents(&mut two);
        for record in two.chunks(24) {
            assert_eq!((&record[18..22], record[23]), (&b"abc\0"[..], 8));
        }
        make_old_dirents(&mut [0xff; 30]);
    }
}
