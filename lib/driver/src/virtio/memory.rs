//! DMA memory and the buffers in it.
//!
//! Bytes are accessed through a [`Buffer`] only, which cannot be cloned: its owner has exclusive access. Two buffers never overlap,
//! because [`Dma`] allocates each byte once. Memory is never freed; a driver allocates all of it when it starts.

use crate::{Client, Region};
use abi::Errno;
use alloc::rc::Rc;
use alloc::vec;
use sys::Result;

/// Memory that driver and device share. Implementations panic on offsets outside of it.
pub trait Memory {
    /// Returns the length in bytes.
    fn bytes(&self) -> usize;
    /// Returns the address of an offset, as the device sees it.
    fn physical(&self, offset: usize) -> u64;
    /// Reads a 16-bit value atomically, at an even offset.
    fn read16(&self, offset: usize) -> u16;
    /// Writes a 16-bit value atomically, at an even offset, after all earlier writes.
    fn write16(&self, offset: usize, value: u16);
    /// Copies from the memory.
    fn copy_out(&self, offset: usize, into: &mut [u8]);
    /// Copies into the memory.
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

/// Allocator of buffers in DMA memory.
#[derive(Debug)]
pub struct Dma<M> {
    memory: Rc<M>,
    next: usize,
}

impl<M: Memory> Dma<M> {
    /// Makes an allocator of all of `memory`, which begins at a page boundary.
    pub fn new(memory: M) -> Self {
        Dma { memory: Rc::new(memory), next: 0 }
    }

    /// Allocates the next `bytes` bytes at a multiple of `align`, a power of two up to a page.
    ///
    /// # Errors
    /// `ENOMEM`: too few bytes are left.
    pub fn take(&mut self, bytes: usize, align: usize) -> Result<Buffer<M>> {
        let start = self.next.next_multiple_of(align);
        let end = start.checked_add(bytes).filter(|&end| end <= self.memory.bytes()).ok_or(Errno::ENOMEM)?;
        self.next = end;
        Ok(Buffer { memory: self.memory.clone(), start, capacity: bytes, len: bytes })
    }
}

/// A range of DMA memory with one owner. The first `len` bytes of its capacity take part in a transfer.
#[derive(Debug)]
pub struct Buffer<M> {
    memory: Rc<M>,
    start: usize,
    capacity: usize,
    len: usize,
}

impl<M: Memory> Buffer<M> {
    /// Returns the number of bytes that take part in a transfer.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether no byte takes part: the buffer then has no descriptor in a chain.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Sets the number of bytes that take part, at most the capacity.
    pub fn set_len(&mut self, len: usize) {
        self.len = len.min(self.capacity);
    }

    /// Copies from the memory.
    ///
    /// # Panics
    /// If the range is beyond the capacity, as for all copies.
    pub fn read(&self, offset: usize, into: &mut [u8]) {
        self.memory.copy_out(self.place(offset, into.len()), into);
    }

    /// Copies into the memory.
    pub fn write(&mut self, offset: usize, from: &[u8]) {
        self.memory.copy_in(self.place(offset, from.len()), from);
    }

    /// Returns the buffer filled with zeros.
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
        assert!(within, "{bytes} bytes at {offset} are outside a buffer of {}", self.capacity);
        self.start + offset
    }
}

impl Buffer<Region> {
    /// Copies the first `bytes` bytes directly to `offset` of a client's buffer.
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
