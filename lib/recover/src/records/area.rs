//! Bytes that no undo log covers: contents of queues and buffers.
//!
//! Write only where no record points yet, then change the record: then bytes that a death leaves half written are never read.

use super::{Recover, WORD_BYTES};
use abi::{Endpoint, layout::PAGE_BYTES};
use sys::{
    Result,
    grant::{Access, RangeGrant},
};

/// A run of bytes.
#[derive(Clone, Copy, Debug)]
pub struct Area {
    start: usize,
    bytes: usize,
}

impl Area {
    /// The next part of the layout, of at least `bytes` bytes.
    ///
    /// # Panics
    /// When the memory is too small.
    pub fn lay_out(recover: &Recover, bytes: usize) -> Area {
        let words = bytes.div_ceil(WORD_BYTES);
        Area { start: recover.take(words) * WORD_BYTES, bytes }
    }

    /// The same, of so many pages, the first of which begins at a page of the preserved memory: the kernel is faster with what lies in one page.
    ///
    /// # Panics
    /// When the memory is too small.
    pub fn lay_out_pages(recover: &Recover, pages: usize) -> Area {
        let page_words = PAGE_BYTES as usize / WORD_BYTES;
        recover.take(recover.next.get().next_multiple_of(page_words) - recover.next.get());
        Area::lay_out(recover, pages * PAGE_BYTES as usize)
    }

    /// Its length.
    pub fn len(&self) -> usize {
        self.bytes
    }

    /// True when it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Copies out from `offset`.
    ///
    /// # Panics
    /// When the range is not within the area.
    pub fn read(&self, recover: &Recover, offset: usize, into: &mut [u8]) {
        recover.keep.read(self.place(offset, into.len()), into);
    }

    /// Copies in at `offset`, at once; it is not undone.
    ///
    /// # Panics
    /// As [`Area::read`].
    pub fn write(&self, recover: &Recover, offset: usize, from: &[u8]) {
        recover.keep.write(self.place(offset, from.len()), from);
    }

    /// Returns word number `index`.
    ///
    /// # Panics
    /// As [`Area::read`].
    pub fn read_word(&self, recover: &Recover, index: usize) -> u64 {
        recover.keep.read_word(self.word(index))
    }

    /// Sets word number `index`, at once; it is not undone.
    ///
    /// # Panics
    /// As [`Area::read`].
    #[inline]
    pub fn write_word(&self, recover: &Recover, index: usize, value: u64) {
        recover.keep.write_word(self.word(index), value);
    }

    /// Fills `bytes` bytes from `offset` on from the memory of another process, at once; it is not undone.
    ///
    /// # Errors
    /// As `sys::copy::from_process`.
    ///
    /// # Panics
    /// As [`Area::read`].
    pub fn fetch(&self, recover: &Recover, offset: usize, bytes: usize, from: Endpoint, address: u64) -> Result<()> {
        recover.keep.fetch(self.place(offset, bytes), bytes, from, address)
    }

    /// Copies `bytes` bytes from `offset` on into the memory of another process.
    ///
    /// # Errors
    /// As `sys::copy::to_process`.
    ///
    /// # Panics
    /// As [`Area::read`].
    pub fn store(&self, recover: &Recover, offset: usize, bytes: usize, to: Endpoint, address: u64) -> Result<()> {
        recover.keep.store(self.place(offset, bytes), bytes, to, address)
    }

    /// Lets `grantee` copy to or from `bytes` bytes from `offset` on. Dropping the grant ends that.
    ///
    /// # Errors
    /// As `sys::grant::lend`.
    ///
    /// # Panics
    /// As [`Area::read`].
    pub fn grant(
        &self,
        recover: &Recover,
        offset: usize,
        bytes: usize,
        grantee: Endpoint,
        access: Access,
    ) -> Result<RangeGrant> {
        recover.keep.grant(self.place(offset, bytes), bytes, grantee, access)
    }

    /// Returns the whole pages within a range to vm, at once; it is not undone, and they read as zeros.
    ///
    /// # Panics
    /// As [`Area::read`].
    pub fn discard(&self, recover: &Recover, offset: usize, bytes: usize) {
        recover.keep.discard(self.place(offset, bytes), bytes);
    }

    #[inline]
    fn word(&self, index: usize) -> usize {
        self.place(index * WORD_BYTES, WORD_BYTES) / WORD_BYTES
    }

    #[inline]
    fn place(&self, offset: usize, bytes: usize) -> usize {
        if offset > self.bytes || self.bytes - offset < bytes {
            outside(offset, bytes, self.bytes);
        }
        self.start + offset
    }
}

/// By value, as in `no_place`.
#[cold]
#[inline(never)]
fn outside(offset: usize, bytes: usize, length: usize) -> ! {
    panic!("{bytes} bytes at {offset} are not within an area of {length}")
}
