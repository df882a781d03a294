//! Little-endian fields out of bytes, without panics.

/// Bytes of a file, read field by field.
#[derive(Clone, Copy)]
pub struct Fields<'a>(pub &'a [u8]);

impl<'a> Fields<'a> {
    /// `bytes` bytes from `offset` on; `None` past the end.
    pub fn part(self, offset: usize, bytes: usize) -> Option<Fields<'a>> {
        let end = offset.checked_add(bytes)?;
        self.0.get(offset..end).map(Fields)
    }

    fn array<const N: usize>(self, offset: usize) -> Option<[u8; N]> {
        self.part(offset, N)?.0.try_into().ok()
    }

    /// The 16-bit field at `offset`.
    pub fn u16(self, offset: usize) -> Option<u16> {
        self.array(offset).map(u16::from_le_bytes)
    }

    /// The 32-bit field at `offset`.
    pub fn u32(self, offset: usize) -> Option<u32> {
        self.array(offset).map(u32::from_le_bytes)
    }

    /// The 64-bit field at `offset`.
    pub fn u64(self, offset: usize) -> Option<u64> {
        self.array(offset).map(u64::from_le_bytes)
    }
}
