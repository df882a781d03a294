//! The client's buffer: source or destination of the data of a request.

use crate::Region;
use abi::{Endpoint, Errno, GrantId};
use sys::{Result, copy};

/// A grant, its granter, and the length that the request covers.
#[derive(Clone, Copy, Debug)]
pub struct Client {
    granter: Endpoint,
    grant: GrantId,
    bytes: u64,
}

impl Client {
    /// Makes a buffer of the first `bytes` bytes of a grant.
    pub const fn new(granter: Endpoint, grant: GrantId, bytes: u64) -> Client {
        Client { granter, grant, bytes }
    }

    /// Returns the length of the request in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Copies data to `offset` of the client's buffer.
    ///
    /// # Errors
    /// `EINVAL`: beyond the request's length; else as `sys::copy::to_grant`.
    pub fn put(&self, offset: u64, data: &[u8]) -> Result<()> {
        self.check(offset, data.len())?;
        copy::to_grant(self.granter, self.grant, offset, data)
    }

    /// Copies data from `offset` of the client's buffer.
    ///
    /// # Errors
    /// As [`Client::put`].
    pub fn fetch(&self, offset: u64, into: &mut [u8]) -> Result<()> {
        self.check(offset, into.len())?;
        copy::from_grant(self.granter, self.grant, offset, into)
    }

    /// Copies `bytes` bytes of device memory from `from` on to `offset` of the client's buffer.
    ///
    /// # Errors
    /// As [`Client::put`].
    pub fn put_region(&self, offset: u64, region: &Region, from: usize, bytes: usize) -> Result<()> {
        self.check(offset, bytes)?;
        region.to_grant(from, bytes, self.granter, self.grant, offset)
    }

    /// Copies `bytes` bytes from `offset` of the client's buffer to device memory at `to`.
    ///
    /// # Errors
    /// As [`Client::put`].
    pub fn fetch_region(&self, offset: u64, region: &Region, to: usize, bytes: usize) -> Result<()> {
        self.check(offset, bytes)?;
        region.from_grant(to, bytes, self.granter, self.grant, offset)
    }

    fn check(&self, offset: u64, bytes: usize) -> Result<()> {
        let within = offset.checked_add(bytes as u64).is_some_and(|end| end <= self.bytes);
        if within { Ok(()) } else { Err(Errno::EINVAL) }
    }
}
