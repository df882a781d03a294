//! A split virtqueue (VIRTIO 1.2, 2.7) with one request in flight: a chain of three descriptors that never changes its place.
//!
//! All of it lies in one piece of DMA memory; `Layout` says where. The device is not trusted: what it writes is used
//! for nothing but "done" and the status byte.

use abi::Errno;

/// Entries of the queue; a power of two, at least the three of a request.
pub const QUEUE_SIZE: u16 = 4;

/// Offsets in the DMA memory. Descriptors need 16-byte alignment, the available ring 2, the used ring 4.
pub mod layout {
    /// Descriptor table, 16 bytes an entry.
    pub const DESCRIPTORS: usize = 0;
    /// Available ring: flags, index, entries.
    pub const AVAILABLE: usize = 128;
    /// Used ring: flags, index, entries of 8 bytes.
    pub const USED: usize = 256;
    /// Header of the request.
    pub const HEADER: usize = 512;
    /// Status byte that the device writes.
    pub const STATUS: usize = 544;
    /// The data, on a page of its own.
    pub const DATA: usize = 4096;
}

const NEXT: u16 = 1;
const DEVICE_WRITES: u16 = 2;
const HEADER_BYTES: u32 = 16;

/// DMA memory that driver and device share.
pub trait Memory {
    /// Copies out of it.
    fn read(&self, offset: usize, bytes: &mut [u8]);
    /// Copies into it.
    fn write(&mut self, offset: usize, bytes: &[u8]);
    /// Physical address of an offset.
    fn physical(&self, offset: usize) -> u64;
}

/// What a request does (VIRTIO 1.2, 5.2.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Disk to memory.
    Read,
    /// Memory to disk.
    Write,
    /// What was written is on the medium.
    Flush,
}

impl Operation {
    fn number(self) -> u32 {
        match self {
            Operation::Read => 0,
            Operation::Write => 1,
            Operation::Flush => 4,
        }
    }
}

/// The queue.
pub struct Queue<M: Memory> {
    memory: M,
    /// Requests offered so far, modulo 2^16; the device has used as many when none is in flight.
    offered: u16,
}

impl<M: Memory> Queue<M> {
    /// An empty queue in zeroed memory.
    pub fn new(memory: M) -> Self {
        Queue { memory, offered: 0 }
    }

    /// The memory, for the data of a request.
    pub fn memory(&mut self) -> &mut M {
        &mut self.memory
    }

    /// Offers a request for `bytes` of data at `sector` to the device.
    pub fn offer(&mut self, operation: Operation, sector: u64, bytes: u32) {
        self.write_header(operation, sector);
        let data_flags = if operation == Operation::Read { DEVICE_WRITES } else { 0 };
        let status_index = if operation == Operation::Flush { 1 } else { 2 };
        self.describe(0, layout::HEADER, HEADER_BYTES, NEXT, 1);
        if operation != Operation::Flush {
            self.describe(1, layout::DATA, bytes, NEXT | data_flags, 2);
        }
        self.describe(status_index, layout::STATUS, 1, DEVICE_WRITES, 0);
        self.memory.write(layout::STATUS, &[0xff]);
        let entry = usize::from(self.offered % QUEUE_SIZE);
        self.memory.write(layout::AVAILABLE + 4 + 2 * entry, &0u16.to_le_bytes());
        self.offered = self.offered.wrapping_add(1);
        core::sync::atomic::fence(core::sync::atomic::Ordering::SeqCst);
        self.memory.write(layout::AVAILABLE + 2, &self.offered.to_le_bytes());
        core::sync::atomic::fence(core::sync::atomic::Ordering::SeqCst);
    }

    /// The result of the request in flight, or `None` while the device works. `EIO`, `ENOTSUP` as the device says.
    pub fn result(&self) -> Option<Result<(), Errno>> {
        let mut used = [0; 2];
        self.memory.read(layout::USED + 2, &mut used);
        if u16::from_le_bytes(used) != self.offered {
            return None;
        }
        core::sync::atomic::fence(core::sync::atomic::Ordering::SeqCst);
        let mut status = [0];
        self.memory.read(layout::STATUS, &mut status);
        Some(match status[0] {
            0 => Ok(()),
            2 => Err(Errno::EOPNOTSUPP),
            _ => Err(Errno::EIO),
        })
    }

    fn write_header(&mut self, operation: Operation, sector: u64) {
        let mut header = [0; HEADER_BYTES as usize];
        header[..4].copy_from_slice(&operation.number().to_le_bytes());
        header[8..].copy_from_slice(&sector.to_le_bytes());
        self.memory.write(layout::HEADER, &header);
    }

    fn describe(&mut self, index: usize, offset: usize, bytes: u32, flags: u16, next: u16) {
        let mut descriptor = [0; 16];
        descriptor[..8].copy_from_slice(&self.memory.physical(offset).to_le_bytes());
        descriptor[8..12].copy_from_slice(&bytes.to_le_bytes());
        descriptor[12..14].copy_from_slice(&flags.to_le_bytes());
        descriptor[14..].copy_from_slice(&next.to_le_bytes());
        self.memory.write(layout::DESCRIPTORS + 16 * index, &descriptor);
    }
}
