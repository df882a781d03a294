//! A virtio block device (VIRTIO 1.2, 5.2) with several requests in flight, over the kit's queue.
//!
//! Each *slot* has the DMA memory of one request to the device: header, data, status. A transfer longer than a slot's data is split
//! into pieces, which use one slot in turn; a transfer that finds no free slot is queued. Transfers are not ordered: a caller that
//! needs an order waits for the first one to complete.

use abi::Errno;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use driver::block::{Extent, Operation};
use driver::virtio::{Broken, Buffer, Chain, Dma, Memory, Queue, Setup, Transport};

/// Size of a sector, the device's unit, in bytes.
pub const SECTOR_BYTES: u64 = 512;
/// Limit of the data of one request to the device, in bytes.
pub const DATA_BYTES: usize = 64 * 1024;
/// Limit of requests in flight.
pub const SLOTS: usize = 8;
/// DMA memory of a disk: rings, headers and status bytes on the first page.
pub const MEMORY_BYTES: usize = PAGE_BYTES + SLOTS * DATA_BYTES;

const PAGE_BYTES: usize = 4096;
/// Descriptors of a request.
const PARTS: usize = 3;
/// Descriptors of the queue: enough for all slots, and a power of two.
const QUEUE_SIZE: u16 = (SLOTS * PARTS).next_power_of_two() as u16;
const HEADER_BYTES: usize = 16;
/// Status before the device has written one.
const NO_STATUS: u8 = 0xff;
/// Offset of the number of sectors in the configuration.
const CAPACITY: usize = 0;

mod feature {
    pub const READ_ONLY: u64 = 1 << 5;
    pub const FLUSH: u64 = 1 << 9;
}

/// A transfer, as the caller provides it.
pub trait Work<M>: Extent {
    /// Copies `bytes` bytes from `offset` of the caller's buffer.
    ///
    /// # Errors
    /// Those of the caller's buffer.
    fn fetch(&self, offset: u64, bytes: usize, into: &mut Buffer<M>) -> Result<(), Errno>;
    /// Copies `bytes` bytes to `offset` of the caller's buffer.
    ///
    /// # Errors
    /// As `fetch`.
    fn put(&self, offset: u64, bytes: usize, from: &Buffer<M>) -> Result<(), Errno>;
}

/// Memory of one request.
struct Slot<M> {
    header: Buffer<M>,
    data: Buffer<M>,
    status: Buffer<M>,
}

/// A transfer and its progress.
struct Job<W> {
    work: W,
    done: u64,
    /// Bytes of the piece in flight.
    piece: usize,
}

/// A completed transfer and its result.
pub type Ended<W> = (W, Result<(), Errno>);

/// An initialised disk.
pub struct Disk<T, M, W> {
    transport: T,
    queue: Queue<M, Job<W>>,
    idle: Vec<Slot<M>>,
    waiting: VecDeque<W>,
    ended: Vec<Ended<W>>,
    sectors: u64,
    read_only: bool,
    flushes: bool,
}

impl<T: Transport, M: Memory, W: Work<M>> Disk<T, M, W> {
    /// Resets the device and starts it with `MEMORY_BYTES` of memory.
    ///
    /// # Errors
    /// `EIO`: not a device that this driver supports; `ENOMEM`.
    pub fn set_up(transport: T, memory: M) -> Result<Self, Errno> {
        let mut dma = Dma::new(memory);
        let mut setup = Setup::begin(transport, feature::READ_ONLY | feature::FLUSH)?;
        let queue: Queue<M, Job<W>> = setup.queue(0, QUEUE_SIZE, &mut dma)?;
        let features = setup.features();
        let sectors = u64::from_le_bytes(setup.transport().config_field(CAPACITY)?);
        let idle = slots(&mut dma, SLOTS.min(queue.size() / PARTS))?;
        Ok(Disk {
            transport: setup.start(),
            queue,
            idle,
            waiting: VecDeque::new(),
            ended: Vec::new(),
            sectors,
            read_only: features & feature::READ_ONLY != 0,
            flushes: features & feature::FLUSH != 0,
        })
    }

    /// Returns the size in bytes.
    pub fn bytes(&self) -> u64 {
        self.sectors.saturating_mul(SECTOR_BYTES)
    }

    /// Returns whether the medium is read-only.
    pub fn is_read_only(&self) -> bool {
        self.read_only
    }

    /// Returns the number of requests in flight.
    pub fn in_flight(&self) -> usize {
        self.queue.in_flight()
    }

    /// Starts a transfer of whole sectors within the disk.
    pub fn begin(&mut self, work: W) {
        let asks_for_nothing = match work.operation() {
            Operation::Flush => !self.flushes,
            Operation::Read | Operation::Write => work.bytes() == 0,
        };
        if asks_for_nothing {
            return self.ended.push((work, Ok(())));
        }
        match self.idle.pop() {
            Some(slot) => self.send(slot, Job { work, done: 0, piece: 0 }),
            None => self.waiting.push_back(work),
        }
    }

    /// Handles the completed requests, after an interrupt of the device.
    ///
    /// # Errors
    /// [`Broken`]: the device violates the rules of virtio and must be reset.
    pub fn interrupt(&mut self) -> Result<(), Broken> {
        while let Some(done) = self.queue.completed()? {
            let Some([header, data, status]) = done.chain.into_buffers() else { continue };
            self.go_on(Slot { header, data, status }, done.tag);
            self.begin_waiting();
        }
        Ok(())
    }

    /// Returns the transfers that have completed since the last call.
    pub fn take_ended(&mut self) -> impl Iterator<Item = Ended<W>> + '_ {
        self.ended.drain(..)
    }

    /// Continues a transfer after one of its pieces.
    fn go_on(&mut self, slot: Slot<M>, mut job: Job<W>) {
        let result = self.finish_piece(&slot, &job);
        job.done += job.piece as u64;
        if result.is_ok() && job.done < job.work.bytes() {
            return self.send(slot, job);
        }
        self.idle.push(slot);
        self.ended.push((job.work, result));
    }

    fn finish_piece(&self, slot: &Slot<M>, job: &Job<W>) -> Result<(), Errno> {
        let mut status = [NO_STATUS];
        slot.status.read(0, &mut status);
        match status {
            [0] if job.work.operation() == Operation::Read => job.work.put(job.done, job.piece, &slot.data),
            [0] => Ok(()),
            [2] => Err(Errno::EOPNOTSUPP),
            _ => Err(Errno::EIO),
        }
    }

    fn begin_waiting(&mut self) {
        while let Some(slot) = self.idle.pop() {
            match self.waiting.pop_front() {
                Some(work) => self.send(slot, Job { work, done: 0, piece: 0 }),
                None => return self.idle.push(slot),
            }
        }
    }

    /// Sends the next piece of a transfer to the device.
    fn send(&mut self, mut slot: Slot<M>, mut job: Job<W>) {
        job.piece = (job.work.bytes() - job.done).min(DATA_BYTES as u64) as usize;
        if let Err(error) = prepare(&mut slot, &job) {
            self.idle.push(slot);
            return self.ended.push((job.work, Err(error)));
        }
        let Slot { header, data, status } = slot;
        let chain = Chain::new().readable(header);
        let is_read = job.work.operation() == Operation::Read;
        let chain = if is_read { chain.writable(data) } else { chain.readable(data) }.writable(status);
        match self.queue.offer(chain, job) {
            Ok(false) => {}
            Ok(true) => self.transport.notify(self.queue.number()),
            // The queue has descriptors for all slots, so it is broken, which `interrupt` reports.
            Err(full) => self.ended.push((full.1.work, Err(Errno::EIO))),
        }
    }
}

/// Fills a slot with the request for the next piece of a transfer.
fn prepare<M: Memory, W: Work<M>>(slot: &mut Slot<M>, job: &Job<W>) -> Result<(), Errno> {
    let number: u32 = match job.work.operation() {
        Operation::Read => 0,
        Operation::Write => 1,
        Operation::Flush => 4,
    };
    slot.data.set_len(job.piece);
    if job.work.operation() == Operation::Write {
        job.work.fetch(job.done, job.piece, &mut slot.data)?;
    }
    let sector = (job.work.position() + job.done) / SECTOR_BYTES;
    let mut header = [0; HEADER_BYTES];
    header[..4].copy_from_slice(&number.to_le_bytes());
    header[8..].copy_from_slice(&sector.to_le_bytes());
    slot.header.write(0, &header);
    slot.status.write(0, &[NO_STATUS]);
    Ok(())
}

fn slots<M: Memory>(dma: &mut Dma<M>, count: usize) -> Result<Vec<Slot<M>>, Errno> {
    if count == 0 {
        return Err(Errno::EIO);
    }
    let small: Vec<_> = (0..count)
        .map(|_| Ok((dma.take(HEADER_BYTES, HEADER_BYTES)?, dma.take(1, 1)?)))
        .collect::<Result<_, Errno>>()?;
    small
        .into_iter()
        .map(|(header, status)| Ok(Slot { header, data: dma.take(DATA_BYTES, PAGE_BYTES)?, status }))
        .collect()
}

#[cfg(test)]
#[path = "disk_tests.rs"]
mod tests;
