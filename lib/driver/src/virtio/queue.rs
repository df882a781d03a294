//! A split virtqueue (VIRTIO 1.2, 2.7).
//!
//! The descriptor table and the available ring are written and never read back; of the used ring every value is checked against what the
//! driver itself remembers. So a device can at worst break its queue.
//!
//! Invariants: a descriptor is free or part of one chain in flight; `in_flight` has that chain under its first descriptor.

use super::memory::{Buffer, Dma, Memory};
use super::setup::Rings;
use abi::Errno;
use alloc::vec::Vec;
use core::sync::atomic::{Ordering, fence};

/// Limit of buffers in a chain.
const PARTS: usize = 4;
/// Bytes of a descriptor: address, length, flags, next.
const DESCRIPTOR: usize = 16;
/// Bytes before the entries of either ring: flags and index.
const RING_HEAD: usize = 4;
/// Offset of a ring's index.
const INDEX: usize = 2;
/// Bytes of an entry of the available ring (a descriptor) and of the used ring (descriptor and length, 32 bits each).
const AVAILABLE: usize = 2;
const USED: usize = 8;
/// Descriptor flags.
const NEXT: u16 = 1;
const DEVICE_WRITES: u16 = 2;
/// Flag of the used ring: the device need not be notified.
const NO_NOTIFY: u16 = 1;

/// Buffers for the device: first those that it reads, then those that it writes.
#[derive(Debug)]
pub struct Chain<M> {
    parts: [Option<Buffer<M>>; PARTS],
    count: usize,
    readable: usize,
}

impl<M: Memory> Chain<M> {
    /// Returns an empty chain.
    pub fn new() -> Self {
        Chain { parts: [const { None }; PARTS], count: 0, readable: 0 }
    }

    /// Adds a buffer that the device reads.
    ///
    /// # Panics
    /// If a buffer that the device writes was added before, or the chain is full.
    pub fn readable(mut self, buffer: Buffer<M>) -> Self {
        assert!(self.readable == self.count, "readable buffers precede writable ones in a chain");
        self.readable += 1;
        self.with(buffer)
    }

    /// Adds a buffer that the device writes.
    ///
    /// # Panics
    /// If the chain is full.
    pub fn writable(self, buffer: Buffer<M>) -> Self {
        self.with(buffer)
    }

    /// Returns the buffers in order.
    pub fn into_buffers<const N: usize>(self) -> Option<[Buffer<M>; N]> {
        let buffers: Vec<_> = self.parts.into_iter().flatten().collect();
        buffers.try_into().ok()
    }

    fn with(mut self, buffer: Buffer<M>) -> Self {
        assert!(self.count < PARTS, "a chain has at most {PARTS} buffers");
        self.parts[self.count] = Some(buffer);
        self.count += 1;
        self
    }

    /// Returns the buffers that need a descriptor, and whether the device writes them.
    fn described(&self) -> impl Iterator<Item = (&Buffer<M>, bool)> {
        let parts = self.parts.iter().flatten().enumerate();
        parts.filter(|(_, buffer)| !buffer.is_empty()).map(|(at, buffer)| (buffer, at >= self.readable))
    }

    /// Returns the capacity for what the device writes, in bytes.
    fn room(&self) -> usize {
        self.described().filter(|&(_, writes)| writes).map(|(buffer, _)| buffer.len()).sum()
    }
}

impl<M: Memory> Default for Chain<M> {
    fn default() -> Self {
        Chain::new()
    }
}

/// The queue has too few free descriptors: the chain, returned with its tag.
#[derive(Debug)]
pub struct Full<M, T>(pub Chain<M>, pub T);

/// A chain that the device has completed.
#[derive(Debug)]
pub struct Completed<M, T> {
    /// Its buffers.
    pub chain: Chain<M>,
    /// The tag of its offer.
    pub tag: T,
    /// Bytes that the device claims to have written, at most the chain's capacity.
    pub written: usize,
}

/// Violation of the virtio rules by a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broken {
    /// It claims to have completed more chains than are in flight.
    Index {
        /// Its used index.
        used: u16,
        /// Upper bound of the valid used index.
        offered: u16,
    },
    /// It claims to have completed a chain that is not in flight.
    Chain(u32),
    /// It claims to have written more than the chain's capacity.
    Length(u32),
}

impl From<Broken> for Errno {
    fn from(_: Broken) -> Errno {
        Errno::EIO
    }
}

struct InFlight<M, T> {
    chain: Chain<M>,
    tag: T,
}

/// A queue whose chains carry a tag `T`, by which the driver identifies them.
pub struct Queue<M, T> {
    number: u16,
    size: u16,
    descriptors: Buffer<M>,
    available: Buffer<M>,
    used: Buffer<M>,
    free: Vec<u16>,
    /// Descriptor after each one of a chain in flight; its last one names itself.
    next: Vec<u16>,
    in_flight: Vec<Option<InFlight<M, T>>>,
    /// Chains offered so far, modulo 2^16.
    offered: u16,
    /// Chains taken back so far, modulo 2^16.
    taken: u16,
    broken: Option<Broken>,
}

impl<M: Memory, T> Queue<M, T> {
    /// Makes an empty queue with `size` (a power of two) descriptors. Its rings are cleared here, after the reset of the device: until
    /// then the device may write to its predecessor's buffers.
    ///
    /// # Errors
    /// `ENOMEM`.
    pub(super) fn new(number: u16, size: u16, dma: &mut Dma<M>) -> sys::Result<Self> {
        let entries = usize::from(size);
        Ok(Queue {
            number,
            size,
            descriptors: dma.take(entries * DESCRIPTOR, DESCRIPTOR)?.cleared(),
            available: dma.take(RING_HEAD + entries * AVAILABLE, 2)?.cleared(),
            used: dma.take(RING_HEAD + entries * USED, 4)?.cleared(),
            free: (0..size).rev().collect(),
            next: (0..size).collect(),
            in_flight: (0..size).map(|_| None).collect(),
            offered: 0,
            taken: 0,
            broken: None,
        })
    }

    /// Returns the queue's number at the device.
    pub fn number(&self) -> u16 {
        self.number
    }

    /// Returns the number of descriptors.
    pub fn size(&self) -> usize {
        self.size.into()
    }

    /// Returns the number of chains in flight.
    pub fn in_flight(&self) -> usize {
        usize::from(self.offered.wrapping_sub(self.taken))
    }

    pub(super) fn rings(&self) -> Rings {
        Rings {
            descriptors: self.descriptors.physical(),
            available: self.available.physical(),
            used: self.used.physical(),
        }
    }

    /// Passes a chain to the device, which owns its buffers until the chain is completed. Returns whether the device wants a
    /// notification of it.
    ///
    /// # Errors
    /// [`Full`]: too few free descriptors.
    ///
    /// # Panics
    /// If no buffer of the chain has any bytes.
    #[expect(clippy::result_large_err, reason = "the chain goes back to the caller, which offers it again later")]
    pub fn offer(&mut self, chain: Chain<M>, tag: T) -> Result<bool, Full<M, T>> {
        let count = chain.described().count();
        assert!(count > 0, "a chain must have a descriptor");
        if count > self.free.len() || self.broken.is_some() {
            return Err(Full(chain, tag));
        }
        let head = self.describe(&chain);
        self.in_flight[usize::from(head)] = Some(InFlight { chain, tag });
        let entry = RING_HEAD + usize::from(self.offered % self.size) * AVAILABLE;
        self.available.write16(entry, head);
        self.offered = self.offered.wrapping_add(1);
        fence(Ordering::SeqCst);
        self.available.write16(INDEX, self.offered);
        fence(Ordering::SeqCst);
        Ok(self.used.read16(0) & NO_NOTIFY == 0)
    }

    /// Writes the descriptors of a chain, the last one first. Returns the first.
    fn describe(&mut self, chain: &Chain<M>) -> u16 {
        let mut after = None;
        let mut parts = [None; PARTS];
        chain
            .described()
            .zip(&mut parts)
            .for_each(|(part, place)| *place = Some((part.0.physical(), part.0.len(), part.1)));
        for (address, len, device_writes) in parts.into_iter().rev().flatten() {
            let at = self.free.pop().expect("offer has counted the free descriptors");
            let flags = if after.is_some() { NEXT } else { 0 } | if device_writes { DEVICE_WRITES } else { 0 };
            self.next[usize::from(at)] = after.unwrap_or(at);
            let mut descriptor = [0; DESCRIPTOR];
            descriptor[..8].copy_from_slice(&address.to_le_bytes());
            descriptor[8..12].copy_from_slice(&(len as u32).to_le_bytes());
            descriptor[12..14].copy_from_slice(&flags.to_le_bytes());
            descriptor[14..].copy_from_slice(&after.unwrap_or(0).to_le_bytes());
            self.descriptors.write(usize::from(at) * DESCRIPTOR, &descriptor);
            after = Some(at);
        }
        after.expect("offer has counted the buffers")
    }

    /// Returns the next chain that the device has completed, if there is one.
    ///
    /// # Errors
    /// [`Broken`], at this and every later call: chains in flight are lost.
    pub fn completed(&mut self) -> Result<Option<Completed<M, T>>, Broken> {
        if let Some(broken) = self.broken {
            return Err(broken);
        }
        let result = self.take_completed();
        self.broken = result.as_ref().err().copied();
        result
    }

    fn take_completed(&mut self) -> Result<Option<Completed<M, T>>, Broken> {
        let used = self.used.read16(INDEX);
        let waiting = used.wrapping_sub(self.taken);
        if waiting == 0 {
            return Ok(None);
        }
        if usize::from(waiting) > self.in_flight() {
            return Err(Broken::Index { used, offered: self.offered });
        }
        fence(Ordering::SeqCst);
        let mut entry = [0; USED];
        self.used.read(RING_HEAD + usize::from(self.taken % self.size) * USED, &mut entry);
        let [a, b, c, d, e, f, g, h] = entry;
        let (head, written) = (u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, g, h]));
        let place = self.in_flight.get_mut(head as usize).ok_or(Broken::Chain(head))?;
        let room = place.as_ref().ok_or(Broken::Chain(head))?.chain.room();
        if written as usize > room {
            return Err(Broken::Length(written));
        }
        let InFlight { chain, tag } = place.take().ok_or(Broken::Chain(head))?;
        self.taken = self.taken.wrapping_add(1);
        self.release(head as u16);
        Ok(Some(Completed { chain, tag, written: written as usize }))
    }

    /// Frees the descriptors of a chain.
    fn release(&mut self, head: u16) {
        let mut at = head;
        loop {
            self.free.push(at);
            let next = self.next[usize::from(at)];
            if next == at {
                return;
            }
            at = next;
        }
    }
}
