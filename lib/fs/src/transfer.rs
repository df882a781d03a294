//! Copies between the file system's memory and a caller's grant, each piece one copy by the kernel.

use alloc::vec;
use alloc::vec::Vec;

use abi::{Endpoint, Errno, GrantId};
use sys::copy;

use crate::file_system::{DataSink, DataSource};

/// Zeros for holes, as long as the longest block.
static ZEROS: [u8; 4096] = [0; 4096];

/// A buffer that another process has granted.
#[derive(Clone, Copy, Debug)]
pub struct Granted {
    /// The process that granted it.
    pub granter: Endpoint,
    /// The grant.
    pub grant: GrantId,
}

/// Writes into a grant, one piece after the other.
pub struct GrantSink {
    to: Granted,
    offset: u64,
}

impl GrantSink {
    /// Returns a sink that begins at `offset` of the grant.
    pub fn new(to: Granted, offset: u64) -> Self {
        GrantSink { to, offset }
    }
}

impl DataSink for GrantSink {
    fn put(&mut self, data: &[u8]) -> Result<(), Errno> {
        copy::to_grant(self.to.granter, self.to.grant, self.offset, data)?;
        self.offset += data.len() as u64;
        Ok(())
    }

    fn put_zeros(&mut self, len: usize) -> Result<(), Errno> {
        let mut rest = len;
        while rest > 0 {
            let piece = rest.min(ZEROS.len());
            self.put(&ZEROS[..piece])?;
            rest -= piece;
        }
        Ok(())
    }
}

/// Reads from a grant, one piece after the other.
pub struct GrantSource {
    from: Granted,
    offset: u64,
}

impl GrantSource {
    /// Returns a source that begins at `offset` of the grant.
    pub fn new(from: Granted, offset: u64) -> Self {
        GrantSource { from, offset }
    }
}

impl DataSource for GrantSource {
    fn take(&mut self, buffer: &mut [u8]) -> Result<(), Errno> {
        copy::from_grant(self.from.granter, self.from.grant, self.offset, buffer)?;
        self.offset += buffer.len() as u64;
        Ok(())
    }
}

/// A buffer for names and targets copied from grants, reused for every request.
pub struct NameBuffer(Vec<u8>);

impl NameBuffer {
    /// Allocates a buffer of `bytes` bytes.
    #[expect(clippy::disallowed_macros, clippy::disallowed_methods, reason = "at the start")]
    pub fn new(bytes: usize) -> Self {
        NameBuffer(vec![0; bytes])
    }

    /// Copies the first `bytes` bytes of a grant. `ENAMETOOLONG` if they exceed the buffer, `EFAULT` if the
    /// grant does not cover them.
    pub fn fetch(&mut self, from: Granted, bytes: u64) -> Result<&[u8], Errno> {
        let len = usize::try_from(bytes).map_err(|_| Errno::ENAMETOOLONG)?;
        let text = self.0.get_mut(..len).ok_or(Errno::ENAMETOOLONG)?;
        copy::from_grant(from.granter, from.grant, 0, text)?;
        Ok(text)
    }

    /// Copies two consecutive texts of these lengths from a grant. Errors as `fetch`.
    pub fn fetch_two(&mut self, from: Granted, first: u64, second: u64) -> Result<(&[u8], &[u8]), Errno> {
        let bytes = first.checked_add(second).ok_or(Errno::ENAMETOOLONG)?;
        Ok(self.fetch(from, bytes)?.split_at(first as usize))
    }

    /// Returns the whole buffer, for another use.
    pub fn whole(&mut self) -> &mut [u8] {
        &mut self.0
    }
}
