//! A ring of bytes that grows, up to its capacity, with what is put into it.

use alloc::{vec, vec::Vec};

/// Memory is taken in at least this many bytes.
const FIRST_BYTES: usize = 4096;

/// See the head of the file. Invariant: `start < storage.len()` or both are 0, and `len <= storage.len() <= capacity`.
#[derive(Debug)]
pub struct Ring {
    storage: Vec<u8>,
    start: usize,
    len: usize,
    capacity: usize,
}

impl Ring {
    /// An empty ring that may hold `capacity` bytes. No memory yet.
    pub fn new(capacity: usize) -> Self {
        Ring { storage: Vec::new(), start: 0, len: 0, capacity }
    }

    /// Bytes in it.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Bytes that may be put in.
    pub fn room(&self) -> usize {
        self.capacity - self.len
    }

    /// The most it may hold.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Sets what it may hold; not less than what is in it.
    pub fn set_capacity(&mut self, capacity: usize) {
        self.capacity = capacity.max(self.len);
        if self.storage.len() > self.capacity {
            self.resize(self.capacity);
        }
    }

    /// Free space of at least one and at most `wanted` bytes in one stretch, when there is room. What was written to it counts by [`Ring::produced`].
    pub fn space(&mut self, wanted: usize) -> &mut [u8] {
        let wanted = wanted.min(self.room());
        if self.len + wanted > self.storage.len() {
            let size = (self.len + wanted).next_power_of_two().max(FIRST_BYTES).min(self.capacity);
            self.resize(size);
        }
        if self.len == 0 {
            self.start = 0;
        }
        let size = self.storage.len();
        let mut begin = self.start + self.len;
        if begin >= size {
            begin -= size;
        }
        let end = (begin + wanted).min(size);
        &mut self.storage[begin..end]
    }

    /// `bytes` of the last [`Ring::space`] hold data now.
    pub fn produced(&mut self, bytes: usize) {
        self.len += bytes;
    }

    /// The first bytes, at most `wanted`, in one stretch.
    pub fn data(&self, wanted: usize) -> &[u8] {
        let end = (self.start + wanted.min(self.len)).min(self.storage.len());
        &self.storage[self.start..end]
    }

    /// The first `bytes` are no longer needed.
    pub fn consumed(&mut self, bytes: usize) {
        self.len -= bytes;
        self.start += bytes;
        if self.start >= self.storage.len() {
            self.start -= self.storage.len();
        }
    }

    fn resize(&mut self, size: usize) {
        let mut storage = vec![0; size];
        let first = self.data(self.len).len();
        storage[..first].copy_from_slice(self.data(first));
        storage[first..self.len].copy_from_slice(&self.storage[..self.len - first]);
        self.storage = storage;
        self.start = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(ring: &mut Ring, mut bytes: &[u8]) -> usize {
        let mut put = 0;
        while !bytes.is_empty() && ring.room() > 0 {
            let space = ring.space(bytes.len());
            let n = space.len();
            space.copy_from_slice(&bytes[..n]);
            ring.produced(n);
            bytes = &bytes[n..];
            put += n;
        }
        put
    }

    fn take(ring: &mut Ring, mut wanted: usize) -> Vec<u8> {
        let mut taken = Vec::new();
        while wanted > 0 && ring.len() > 0 {
            let data = ring.data(wanted).to_vec();
            ring.consumed(data.len());
            wanted -= data.len();
            taken.extend(data);
        }
        taken
    }

    #[test]
    fn bytes_come_out_in_the_order_they_went_in() {
        let mut ring = Ring::new(10_000);
        let (mut next_in, mut next_out) = (0u32, 0u32);
        for step in 0..2000usize {
            let bytes: Vec<u8> = (0..step * 7 % 3001).map(|i| (next_in.wrapping_add(i as u32) % 251) as u8).collect();
            next_in += put(&mut ring, &bytes) as u32;
            for byte in take(&mut ring, step * 13 % 2503) {
                assert_eq!(byte, (next_out % 251) as u8);
                next_out += 1;
            }
            assert_eq!(ring.len() as u32, next_in - next_out);
            assert_eq!(ring.len() + ring.room(), 10_000);
        }
    }

    #[test]
    fn a_wrapped_ring_keeps_its_bytes_when_it_shrinks_and_grows() {
        let mut ring = Ring::new(8192);
        put(&mut ring, &[1; 8000]);
        take(&mut ring, 7990);
        put(&mut ring, &[2; 300]);
        ring.set_capacity(4096);
        put(&mut ring, &[3; 5]);
        ring.set_capacity(8192);
        let mut expected = vec![1; 10];
        expected.extend([2; 300]);
        expected.extend([3; 5]);
        assert_eq!(take(&mut ring, 1000), expected);
    }

    #[test]
    fn memory_is_taken_only_as_needed() {
        let mut ring = Ring::new(65536);
        put(&mut ring, &[0; 100]);
        assert_eq!(ring.storage.len(), FIRST_BYTES);
    }
}
