//! What the tests of any file system share: users, sinks and sources, whole files and directories, random numbers.
#![allow(dead_code)]

use fs::Errno;
use fs::file_system::{Caller, DataSink, DataSource, EntrySink, FileSystem, NodeId, Timestamp};

pub const ROOT_USER: Caller = Caller { uid: 0, gid: 0, write: 0 };
pub const USER: Caller = Caller { uid: 1000, gid: 100, write: 0 };

/// The time at which all tests happen.
pub const NOW: Timestamp = Timestamp { seconds: 1_790_000_000, nanos: 123_456_789 };

/// How much of something a test does: `short` as one of all tests, `deep` when it has the time (`./skink test deep`).
pub fn amount(short: u64, deep: u64) -> u64 {
    if std::env::var_os("SKINK_DEEP").is_some() { deep } else { short }
}

/// A sink that keeps what it gets.
#[derive(Default)]
pub struct Bytes(pub Vec<u8>);

impl DataSink for Bytes {
    fn put(&mut self, data: &[u8]) -> Result<(), Errno> {
        self.0.extend_from_slice(data);
        Ok(())
    }
}

/// A source over a slice; it fails at its end.
pub struct Slice<'a>(pub &'a [u8]);

impl DataSource for Slice<'_> {
    fn take(&mut self, buffer: &mut [u8]) -> Result<(), Errno> {
        if self.0.len() < buffer.len() {
            buffer.fill(0xee);
            return Err(Errno::EFAULT);
        }
        let (now, rest) = self.0.split_at(buffer.len());
        buffer.copy_from_slice(now);
        self.0 = rest;
        Ok(())
    }
}

/// A sink for directory entries with room for `room` of them.
pub struct Names {
    pub room: usize,
    pub list: Vec<(Vec<u8>, NodeId, u32)>,
}

/// Takes the places behind names, up to so many.
pub struct Places(pub usize, pub Vec<u64>);

impl EntrySink for Places {
    fn entry(&mut self, _: NodeId, next: u64, _: u32, _: &[u8]) -> bool {
        let has_room = self.1.len() < self.0;
        self.1.extend(has_room.then_some(next));
        has_room
    }
}

impl EntrySink for Names {
    fn entry(&mut self, node: NodeId, _next: u64, mode: u32, name: &[u8]) -> bool {
        if self.list.len() == self.room {
            return false;
        }
        self.list.push((name.to_vec(), node, mode));
        true
    }
}

pub fn read_all(volume: &mut impl FileSystem, node: NodeId) -> Vec<u8> {
    let size = volume.attributes(node).unwrap().size;
    let mut bytes = Bytes::default();
    let mut offset = 0;
    while offset < size {
        let done = volume.read(node, offset, 100_000, &mut bytes).unwrap();
        assert!(done > 0);
        offset += done as u64;
    }
    bytes.0
}

pub fn write(volume: &mut impl FileSystem, node: NodeId, offset: u64, data: &[u8]) -> Result<usize, Errno> {
    volume.write(node, offset, data.len(), &mut Slice(data), ROOT_USER)
}

/// All entries of a directory, fetched a few at a time.
pub fn list(volume: &mut impl FileSystem, dir: NodeId) -> Vec<(Vec<u8>, NodeId, u32)> {
    let mut all = Vec::new();
    let mut position = 0;
    loop {
        let mut names = Names { room: 7, list: Vec::new() };
        position = volume.read_dir(dir, position, &mut names).unwrap();
        if names.list.is_empty() {
            return all;
        }
        all.append(&mut names.list);
    }
}

/// xorshift64*: the same numbers in every run.
#[derive(Clone)]
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    pub fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.next() as u8).collect()
    }
}
