//! DMA memory and its parts.
//!
//! A [`Buffer`] is the only way to its bytes, and cannot be copied: whoever owns it is who may touch them. Two buffers never overlap,
//! because [`Dma`] gives each byte out once. Memory is never taken back; a driver takes what it needs when it starts.

use crate::{Client, Region};
use abi::Errno;
use alloc::rc::Rc;
use alloc::vec;
use sys::Result;

/// Memory that driver and device share. Offsets are within it: the implementation panics otherwise.
pub trait Memory {
    /// Its length.
    fn bytes(&self) -> usize;
    /// Address for the device of an offset.
    fn physical(&self, offset: usize) -> u64;
    /// Reads two bytes at once, at an even offset.
    fn read16(&self, offset: usize) -> u16;
    /// Writes two bytes at once, at an even offset. Everything written before is there first.
    fn write16(&self, offset: usize, value: u16);
    /// Copies out of it.
    fn copy_out(&self, offset: usize, into: &mut [u8]);
    /// Copies into it.
    fn copy_in(&self, offset: usize, from: &[u8]);
}

impl Memory for Region {
    fn bytes(&self) -> usize {
        self.len()
    }
    fn physical(&self, offset: usize) -> u64 {
        Region::physical(self, offset)
    }
    fn read16(&self, offset: usize) -> u16 {
        self.read(offset)
    }
    fn write16(&self, offset: usize, value: u16) {
        self.write(offset, value);
    }
    fn copy_out(&self, offset: usize, into: &mut [u8]) {
        Region::copy_out(self, offset, into);
    }
    fn copy_in(&self, offset: usize, from: &[u8]) {
        Region::copy_in(self, offset, from);
    }
}

/// DMA memory that is given out in buffers.
#[derive(Debug)]
pub struct Dma<M> {
    memory: Rc<M>,
    next: usize,
}

impl<M: Memory> Dma<M> {
    /// All of `memory`, which begins at a page.
    pub fn new(memory: M) -> Self {
        Dma { memory: Rc::new(memory), next: 0 }
    }

    /// The next `bytes` bytes at a multiple of `align`, a power of two up to a page.
    ///
    /// # Errors
    /// `ENOMEM`: there are not so many left.
    pub fn take(&mut self, bytes: usize, align: usize) -> Result<Buffer<M>> {
        let start = self.next.next_multiple_of(align);
        let end = start.checked_add(bytes).filter(|&end| end <= self.memory.bytes()).ok_or(Errno::ENOMEM)?;
        self.next = end;
        Ok(Buffer { memory: self.memory.clone(), start, capacity: bytes, len: bytes })
    }
}

/// A part of DMA memory that nobody else has. Of its capacity the first `len` bytes take part in a transfer.
#[derive(Debug)]
pub struct Buffer<M> {
    memory: Rc<M>,
    start: usize,
    capacity: usize,
    len: usize,
}

impl<M: Memory> Buffer<M> {
    /// Bytes that take part in a transfer.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether no byte takes part: the buffer then has no descriptor in a chain.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Makes `len` bytes take part; no more than there are.
    pub fn set_len(&mut self, len: usize) {
        self.len = len.min(self.capacity);
    }

    /// Copies out of it.
    ///
    /// # Panics
    /// When that is beyond its capacity; so do the others.
    pub fn read(&self, offset: usize, into: &mut [u8]) {
        self.memory.copy_out(self.place(offset, into.len()), into);
    }

    /// Copies into it.
    pub fn write(&mut self, offset: usize, from: &[u8]) {
        self.memory.copy_in(self.place(offset, from.len()), from);
    }

    /// The buffer with zeros in it.
    pub(super) fn cleared(mut self) -> Self {
        self.write(0, &vec![0; self.capacity]);
        self
    }

    pub(super) fn physical(&self) -> u64 {
        self.memory.physical(self.start)
    }

    pub(super) fn read16(&self, offset: usize) -> u16 {
        self.memory.read16(self.place(offset, 2))
    }

    pub(super) fn write16(&mut self, offset: usize, value: u16) {
        self.memory.write16(self.place(offset, 2), value);
    }

    fn place(&self, offset: usize, bytes: usize) -> usize {
        let within = offset.checked_add(bytes).is_some_and(|end| end <= self.capacity);
        assert!(within, "{bytes} bytes at {offset} are not within a buffer of {}", self.capacity);
        self.start + offset
    }
}

impl Buffer<Region> {
    /// Copies the first `bytes` bytes to `offset` of a client's buffer, without a stop in the driver's memory.
    ///
    /// # Errors
    /// As [`Client::put`].
    pub fn put(&self, client: &Client, offset: u64, bytes: usize) -> Result<()> {
        client.put_region(offset, &self.memory, self.place(0, bytes), bytes)
    }

    /// Copies `bytes` bytes from `offset` of a client's buffer to the start of this one.
    ///
    /// # Errors
    /// As [`Client::put`].
    pub fn fetch(&mut self, client: &Client, offset: u64, bytes: usize) -> Result<()> {
        client.fetch_region(offset, &self.memory, self.place(0, bytes), bytes)
    }
}
