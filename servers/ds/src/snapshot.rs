//! The last complete state, in memory that outlives ds.
//!
//! There are two places, written in turn. A place is: sequence number, length, checksum (`u64` each), content. The number is taken away
//! before a place is written and put there at last, so that at each instant the place written before is whole.

use alloc::vec;
use alloc::vec::Vec;
use sys::keep::Keep;

/// Bytes before the content.
const HEADER_BYTES: usize = 24;

/// Memory that outlives its user; accesses happen in program order.
pub trait Memory {
    /// Its length.
    fn len(&self) -> usize;
    /// Copies out.
    fn read(&self, offset: usize, into: &mut [u8]);
    /// Copies in.
    fn write(&mut self, offset: usize, from: &[u8]);
    /// Writes an aligned word at once.
    fn write_word(&mut self, offset: usize, value: u64);
}

impl Memory for Keep {
    fn len(&self) -> usize {
        Keep::len(self)
    }
    fn read(&self, offset: usize, into: &mut [u8]) {
        Keep::read(self, offset, into);
    }
    fn write(&mut self, offset: usize, from: &[u8]) {
        Keep::write(self, offset, from);
    }
    fn write_word(&mut self, offset: usize, value: u64) {
        Keep::write_word(self, offset, value);
    }
}

/// The two places.
pub struct Snapshots<M> {
    memory: M,
    /// Number of the last snapshot; even ones are in the first place.
    sequence: u64,
}

impl<M: Memory> Snapshots<M> {
    /// Places in this memory, whatever is there.
    pub fn new(memory: M) -> Self {
        let mut snapshots = Snapshots { memory, sequence: 0 };
        let found = [0, 1].map(|place| snapshots.read(place).map_or(0, |(sequence, _)| sequence));
        snapshots.sequence = found[0].max(found[1]);
        snapshots
    }

    /// Longest content.
    pub fn capacity(&self) -> usize {
        self.place_bytes() - HEADER_BYTES
    }

    /// The content of the last snapshot.
    pub fn load(&self) -> Option<Vec<u8>> {
        let newest = [0, 1].into_iter().filter_map(|place| self.read(place)).max_by_key(|(sequence, _)| *sequence);
        newest.map(|(_, content)| content)
    }

    /// Takes a snapshot.
    ///
    /// # Panics
    /// When the content is longer than the capacity.
    pub fn save(&mut self, content: &[u8]) {
        assert!(content.len() <= self.capacity(), "{} bytes are too many to be preserved", content.len());
        let sequence = self.sequence + 1;
        let start = self.start((sequence % 2) as usize);
        self.memory.write_word(start, 0);
        self.memory.write_word(start + 8, content.len() as u64);
        self.memory.write_word(start + 16, checksum(sequence, content));
        self.memory.write(start + HEADER_BYTES, content);
        self.memory.write_word(start, sequence);
        self.sequence = sequence;
    }

    /// The snapshot in a place, if it is whole.
    fn read(&self, place: usize) -> Option<(u64, Vec<u8>)> {
        let start = self.start(place);
        let [sequence, length, sum] = [0, 8, 16].map(|offset| self.word(start + offset));
        if sequence == 0 || sequence % 2 != place as u64 || length > self.capacity() as u64 {
            return None;
        }
        let mut content = vec![0; length as usize];
        self.memory.read(start + HEADER_BYTES, &mut content);
        (checksum(sequence, &content) == sum).then_some((sequence, content))
    }

    fn word(&self, offset: usize) -> u64 {
        let mut bytes = [0; 8];
        self.memory.read(offset, &mut bytes);
        u64::from_le_bytes(bytes)
    }

    fn place_bytes(&self) -> usize {
        self.memory.len() / 2 & !7
    }

    fn start(&self, place: usize) -> usize {
        place * self.place_bytes()
    }
}

/// FNV-1a over sequence number and content.
fn checksum(sequence: u64, content: &[u8]) -> u64 {
    let bytes = sequence.to_le_bytes();
    let all = bytes.iter().chain(content);
    all.fold(0xcbf2_9ce4_8422_2325, |sum, &byte| (sum ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Memory whose user dies after so many bytes.
    #[derive(Clone)]
    struct Mortal {
        bytes: Vec<u8>,
        left: usize,
    }

    impl Memory for Mortal {
        fn len(&self) -> usize {
            self.bytes.len()
        }
        fn read(&self, offset: usize, into: &mut [u8]) {
            into.copy_from_slice(&self.bytes[offset..offset + into.len()]);
        }
        fn write(&mut self, offset: usize, from: &[u8]) {
            let count = from.len().min(self.left);
            self.left -= count;
            self.bytes[offset..offset + count].copy_from_slice(&from[..count]);
        }
        fn write_word(&mut self, offset: usize, value: u64) {
            if self.left >= 8 {
                self.write(offset, &value.to_le_bytes());
            } else {
                self.left = 0;
            }
        }
    }

    fn memory(bytes: usize) -> Mortal {
        Mortal { bytes: vec![0; bytes], left: usize::MAX }
    }

    #[test]
    fn new_memory_holds_no_snapshot() {
        assert_eq!(Snapshots::new(memory(256)).load(), None);
    }

    #[test]
    fn the_last_snapshot_is_found_again() {
        let mut snapshots = Snapshots::new(memory(256));
        for content in [&b"one"[..], b"second", b""] {
            snapshots.save(content);
            assert_eq!(Snapshots::new(snapshots.memory.clone()).load().as_deref(), Some(content));
        }
    }

    #[test]
    fn a_death_at_any_byte_leaves_the_old_or_the_new_state() {
        let mut snapshots = Snapshots::new(memory(256));
        snapshots.save(b"oldest");
        snapshots.save(b"old state");
        let mut outcomes = [0, 0];
        for left in 0..60 {
            let mut dying = Snapshots::new(Mortal { left, ..snapshots.memory.clone() });
            dying.save(b"new state");
            match Snapshots::new(dying.memory).load().as_deref() {
                Some(b"old state") => outcomes[0] += 1,
                Some(b"new state") => outcomes[1] += 1,
                other => panic!("found {other:?} after {left} bytes"),
            }
        }
        assert!(outcomes[0] > 0 && outcomes[1] > 0);
    }

    #[test]
    fn a_successor_goes_on_counting() {
        let mut snapshots = Snapshots::new(memory(256));
        snapshots.save(b"one");
        let mut successor = Snapshots::new(snapshots.memory);
        successor.save(b"two");
        assert_eq!(successor.load().as_deref(), Some(&b"two"[..]));
    }

    #[test]
    fn damaged_memory_is_not_taken_for_a_snapshot() {
        let mut snapshots = Snapshots::new(memory(256));
        snapshots.save(b"content");
        let at = snapshots.memory.bytes.iter().position(|&byte| byte == b'c').expect("is there");
        snapshots.memory.bytes[at] ^= 1;
        assert_eq!(Snapshots::new(snapshots.memory).load(), None);
    }
}
