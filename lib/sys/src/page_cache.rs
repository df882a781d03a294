//! Pages of a cache that vm may take back at any time (`abi::vm::CacheOpen`).
//!
//! The service that has them never touches them: the kernel copies from them, and others fill them by grants. So they are no memory of
//! Rust's, and one that is gone is an error of a copy and no fault.

use crate::copy::refuse_self;
use crate::grant::{Access, RangeGrant};
use crate::{Result, ipc, raw};
use abi::call::KernelCall;
use abi::layout::{MAX_COPY, PAGE_BYTES};
use abi::{Endpoint, Errno, Word, vm};

/// See the head of the file.
#[derive(Debug)]
pub struct PageCache {
    address: u64,
    bytes: u64,
}

impl PageCache {
    /// Reserves addresses for so many pages, all of them absent.
    ///
    /// # Errors
    /// As `vm::CacheOpen`.
    pub fn open(pages: u64) -> Result<PageCache> {
        let reply = ipc::call(Endpoint::VM, &vm::CacheOpen { pages }.message())?;
        Ok(PageCache { address: vm::CacheOpen::results(&reply)?, bytes: pages * PAGE_BYTES })
    }

    /// Makes pages present, at most `vm::CACHE_BATCH` of them.
    ///
    /// # Errors
    /// As `vm::CacheTake`.
    pub fn take(&self, first: u64, pages: u64) -> Result<()> {
        ipc::call(Endpoint::VM, &vm::CacheTake { first, pages }.message()).map(drop)
    }

    /// Has an image show pages, from `first` on, at `offset` of its file. Its frames are the image's, too, until the pages are taken anew.
    ///
    /// # Errors
    /// As `vm::ImageShow`.
    pub fn show(&self, first: u64, image: u64, offset: u64, bytes: u64) -> Result<()> {
        ipc::call(Endpoint::VM, &vm::ImageShow { image, offset, first, bytes }.message()).map(drop)
    }

    /// Puts pages of a shared file, from `offset` of it on, in the place of `pages` pages from `first` on. Returns which are shown, and which are zeros that nobody has made.
    ///
    /// # Errors
    /// As `vm::SharedShow`.
    pub fn show_shared(&self, object: u64, offset: u64, first: u64, pages: u64) -> Result<(u64, u64)> {
        vm::SharedShow::results(&ipc::call(Endpoint::VM, &vm::SharedShow { object, offset, first, pages }.message())?)
    }

    /// Copies `bytes` bytes from `offset` on to `address` of another process.
    ///
    /// # Errors
    /// `EFAULT`: the pages are gone, or not mapped, or not writable there; `EINVAL`: beyond the cache, or the caller itself; `E2BIG`: more than
    /// `layout::MAX_COPY`.
    #[inline]
    pub fn copy_to(&self, offset: u64, process: Endpoint, address: u64, bytes: u64) -> Result<()> {
        refuse_self(process)?;
        copy((Endpoint::SELF, self.place(offset, bytes)?), (process, address), bytes)
    }

    /// Copies `bytes` bytes from `address` of another process to `offset`.
    ///
    /// # Errors
    /// As [`PageCache::copy_to`].
    pub fn copy_from(&self, offset: u64, process: Endpoint, address: u64, bytes: u64) -> Result<()> {
        refuse_self(process)?;
        copy((process, address), (Endpoint::SELF, self.place(offset, bytes)?), bytes)
    }

    /// Copies `bytes` bytes within the cache; the two ranges do not overlap.
    ///
    /// # Errors
    /// `EFAULT`: the pages are gone; `EINVAL`: beyond the cache; `E2BIG`: more than `layout::MAX_COPY`.
    pub fn copy_within(&self, from: u64, to: u64, bytes: u64) -> Result<()> {
        copy((Endpoint::SELF, self.place(from, bytes)?), (Endpoint::SELF, self.place(to, bytes)?), bytes)
    }

    /// Lets `grantee` copy to or from `bytes` bytes from `offset` on. Its copy fails if the pages are gone.
    ///
    /// # Errors
    /// As [`crate::grant::lend`]; `EINVAL`: beyond the cache.
    pub fn grant(&self, offset: u64, bytes: u64, grantee: Endpoint, access: Access) -> Result<RangeGrant> {
        RangeGrant::new(self.place(offset, bytes)?, bytes, grantee, access)
    }

    /// The address of `bytes` bytes from `offset` on. `EINVAL`: beyond the cache.
    fn place(&self, offset: u64, bytes: u64) -> Result<u64> {
        let is_within = offset.checked_add(bytes).is_some_and(|end| end <= self.bytes);
        if is_within { Ok(self.address + offset) } else { Err(Errno::EINVAL) }
    }
}

/// `E2BIG`: more than `layout::MAX_COPY`; and as the kernel says.
#[inline(always)]
fn copy((from, from_address): (Endpoint, u64), (to, to_address): (Endpoint, u64), bytes: u64) -> Result<()> {
    if bytes > MAX_COPY {
        return Err(Errno::E2BIG);
    }
    let arguments = [from.to_word(), from_address, to.to_word(), to_address, bytes, 0];
    raw::kernel(KernelCall::VirCopy, arguments).map(drop)
}
