//! Identity of a disk (ATA/ATAPI-7, 6.16, IDENTIFY DEVICE): the words that this driver uses.

/// Bytes of the identification.
pub const IDENTIFY_BYTES: usize = 512;
/// First sector beyond those that 28 bits number.
pub const LBA28_SECTORS: u64 = 1 << 28;

/// A disk's capabilities.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Size in sectors of 512 bytes.
    pub sectors: u64,
    /// Supports sector numbers of 48 bits.
    pub lba48: bool,
    /// Limit of sectors per interrupt of READ MULTIPLE and WRITE MULTIPLE; 0: not supported.
    pub multiple: u8,
    /// Supports DMA.
    pub dma: bool,
    /// Supports FLUSH CACHE.
    pub flush: bool,
}

impl Identity {
    /// Decodes the identification. `None`: not a disk of 512-byte sectors with linear numbers.
    pub fn parse(bytes: &[u8; IDENTIFY_BYTES]) -> Option<Identity> {
        let word = |index: usize| u16::from_le_bytes([bytes[2 * index], bytes[2 * index + 1]]);
        let number = |index: usize, words: usize| (0..words).rev().fold(0, |n, i| n << 16 | u64::from(word(index + i)));
        let is_disk = word(0) & 0x8000 == 0;
        let has_linear_numbers = word(49) & 0x200 != 0;
        // Words 83 and 106 are valid only with these bits 15 and 14.
        let valid = |word: u16| word & 0xc000 == 0x4000;
        let has_long_sectors = valid(word(106)) && word(106) & 0x1000 != 0;
        if !is_disk || !has_linear_numbers || has_long_sectors {
            return None;
        }
        let commands = if valid(word(83)) { word(83) } else { 0 };
        let lba48 = commands & 0x400 != 0;
        Some(Identity {
            sectors: if lba48 { number(100, 4) } else { number(60, 2) },
            lba48,
            multiple: word(47) as u8,
            dma: word(49) & 0x100 != 0,
            flush: commands & 0x1000 != 0,
        })
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// The identification of a disk.
    pub fn identification(sectors: u64, lba48: bool) -> [u8; IDENTIFY_BYTES] {
        let mut bytes = [0; IDENTIFY_BYTES];
        let mut set = |index: usize, value: u16| bytes[2 * index..][..2].copy_from_slice(&value.to_le_bytes());
        set(47, 0x8010);
        set(49, 0x300);
        let short = sectors.min(LBA28_SECTORS - 1);
        set(60, short as u16);
        set(61, (short >> 16) as u16);
        set(83, if lba48 { 0x7400 } else { 0x5000 });
        for (index, shift) in [(100, 0), (101, 16), (102, 32), (103, 48)] {
            set(index, (sectors >> shift) as u16);
        }
        bytes
    }

    #[test]
    fn the_size_comes_from_the_wider_number_when_there_is_one() {
        let wide = Identity::parse(&identification(1 << 33, true)).expect("is a disk");
        assert_eq!((wide.sectors, wide.lba48), (1 << 33, true));
        let narrow = Identity::parse(&identification(123_456, false)).expect("is a disk");
        assert_eq!((narrow.sectors, narrow.lba48), (123_456, false));
        assert_eq!((narrow.multiple, narrow.dma, narrow.flush), (16, true, true));
    }

    #[test]
    fn what_is_no_disk_of_short_sectors_is_not_driven() {
        let mut packet_device = identification(100, false);
        packet_device[1] = 0x85;
        let mut cylinders_only = identification(100, false);
        cylinders_only[99] = 0x01;
        let mut long_sectors = identification(100, true);
        long_sectors[213] = 0x50;
        for bytes in [packet_device, cylinders_only, long_sectors] {
            assert_eq!(Identity::parse(&bytes), None);
        }
    }
}
