//! The block cache over a device in memory that records every request and can be told to fail.
#![forbid(unsafe_code)]

use std::cell::RefCell;
use std::rc::Rc;

use fs::Errno;
use fs::cache::BlockCache;
use fs::device::{BlockDevice, SECTOR_SIZE};

const BLOCK: usize = 1024;
const BLOCKS: usize = 400;
/// Frames of the smallest cache.
const FRAMES: u64 = 32;

#[derive(Default)]
struct State {
    bytes: Vec<u8>,
    /// Block and number of blocks of each request.
    reads: Vec<(u64, usize)>,
    writes: Vec<(u64, usize)>,
    flushes: u32,
    failing: bool,
}

#[derive(Clone, Default)]
struct Recorder(Rc<RefCell<State>>);

fn place(sector: u64, len: usize) -> (u64, usize) {
    assert_eq!((sector as usize * SECTOR_SIZE) % BLOCK, 0);
    ((sector as usize * SECTOR_SIZE / BLOCK) as u64, len / BLOCK)
}

impl BlockDevice for Recorder {
    fn sector_count(&self) -> u64 {
        (BLOCKS * BLOCK / SECTOR_SIZE) as u64
    }

    fn read(&mut self, first_sector: u64, buffer: &mut [u8]) -> Result<(), Errno> {
        let mut state = self.0.borrow_mut();
        state.reads.push(place(first_sector, buffer.len()));
        if state.failing {
            return Err(Errno::EIO);
        }
        let start = first_sector as usize * SECTOR_SIZE;
        buffer.copy_from_slice(&state.bytes[start..start + buffer.len()]);
        Ok(())
    }

    fn write(&mut self, first_sector: u64, data: &[u8]) -> Result<(), Errno> {
        let mut state = self.0.borrow_mut();
        state.writes.push(place(first_sector, data.len()));
        if state.failing {
            return Err(Errno::EIO);
        }
        let start = first_sector as usize * SECTOR_SIZE;
        state.bytes[start..start + data.len()].copy_from_slice(data);
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Errno> {
        self.0.borrow_mut().flushes += 1;
        Ok(())
    }
}

/// A cache of the smallest size over a device whose block n is full of the byte n.
fn cache() -> (BlockCache<Recorder>, Recorder) {
    let device = Recorder::default();
    device.0.borrow_mut().bytes = (0..BLOCKS * BLOCK).map(|offset| (offset / BLOCK) as u8).collect();
    (BlockCache::new(device.clone(), BLOCK, 1), device)
}

#[test]
fn a_block_is_read_once() {
    let (mut cache, device) = cache();
    assert_eq!(cache.read(7).unwrap(), [7; BLOCK]);
    assert_eq!(cache.read(7).unwrap(), [7; BLOCK]);
    assert_eq!(device.0.borrow().reads, [(7, 1)]);
}

#[test]
fn the_block_used_longest_ago_makes_room() {
    let (mut cache, _) = cache();
    for block in 0..FRAMES {
        cache.read(block).unwrap();
    }
    cache.read(0).unwrap();
    cache.read(100).unwrap();
    assert!(cache.contains(0) && cache.contains(100) && !cache.contains(1) && cache.contains(2));
}

#[test]
fn sync_writes_runs_in_ascending_order_once() {
    let (mut cache, device) = cache();
    for block in [9, 3, 20, 4, 5, 8] {
        cache.modify(block).unwrap().fill(0xff);
    }
    cache.modify(3).unwrap()[0] = 0xfe;
    assert!(device.0.borrow().writes.is_empty());
    cache.sync().unwrap();
    assert_eq!(device.0.borrow().writes, [(3, 3), (8, 2), (20, 1)]);
    assert_eq!(device.0.borrow().bytes[3 * BLOCK], 0xfe);
    assert_eq!(device.0.borrow().bytes[9 * BLOCK..10 * BLOCK], [0xff; BLOCK]);
    cache.sync().unwrap();
    assert_eq!((device.0.borrow().writes.len(), device.0.borrow().flushes), (3, 2));
}

#[test]
fn a_modified_block_is_written_before_its_frame_is_used_again() {
    let (mut cache, device) = cache();
    cache.modify(0).unwrap().fill(0xaa);
    for block in 1..=FRAMES {
        cache.read(block).unwrap();
    }
    assert_eq!(device.0.borrow().bytes[..BLOCK], [0xaa; BLOCK]);
    assert_eq!(cache.read(0).unwrap(), [0xaa; BLOCK]);
}

#[test]
fn a_failed_write_is_told_and_tried_again() {
    let (mut cache, device) = cache();
    for block in [2, 5, 6] {
        cache.modify(block).unwrap().fill(0xaa);
    }
    device.0.borrow_mut().failing = true;
    assert_eq!(cache.sync(), Err(Errno::EIO));
    device.0.borrow_mut().failing = false;
    assert_eq!(cache.read(5).unwrap(), [0xaa; BLOCK]);
    cache.sync().unwrap();
    for block in [2, 5, 6] {
        assert_eq!(device.0.borrow().bytes[block * BLOCK..(block + 1) * BLOCK], [0xaa; BLOCK]);
    }
}

#[test]
fn a_failed_read_leaves_no_block_behind() {
    let (mut cache, device) = cache();
    device.0.borrow_mut().failing = true;
    assert_eq!(cache.read(5).err(), Some(Errno::EIO));
    cache.read_ahead(10, 8);
    device.0.borrow_mut().failing = false;
    assert!(!cache.contains(5) && !cache.contains(10));
    assert_eq!(cache.read(5).unwrap(), [5; BLOCK]);
    assert_eq!(cache.read(10).unwrap(), [10; BLOCK]);
}

#[test]
fn read_ahead_is_one_request_up_to_the_first_block_that_is_here() {
    let (mut cache, device) = cache();
    cache.modify(14).unwrap().fill(0xaa);
    device.0.borrow_mut().reads.clear();
    cache.read_ahead(10, 8);
    assert_eq!(device.0.borrow().reads, [(10, 4)]);
    for block in 10..14 {
        assert_eq!(cache.read(block).unwrap(), [block as u8; BLOCK]);
    }
    assert_eq!(cache.read(14).unwrap(), [0xaa; BLOCK]);
    assert_eq!(device.0.borrow().reads.len(), 1);
}

#[test]
fn read_ahead_may_push_out_modified_blocks() {
    let (mut cache, device) = cache();
    for block in 0..FRAMES {
        cache.modify(block).unwrap().fill(0xaa);
    }
    cache.read_ahead(100, 8);
    for block in 100..108 {
        assert_eq!(cache.read(block).unwrap(), [block as u8; BLOCK]);
    }
    assert_eq!(device.0.borrow().bytes[..FRAMES as usize * BLOCK], [0xaa; FRAMES as usize * BLOCK]);
}

#[test]
fn a_discarded_block_is_never_written() {
    let (mut cache, device) = cache();
    cache.modify(5).unwrap().fill(0xaa);
    cache.discard(5);
    cache.zeroed(6).unwrap()[0] = 1;
    cache.sync().unwrap();
    assert_eq!(device.0.borrow().writes, [(6, 1)]);
    assert_eq!(cache.read(5).unwrap(), [5; BLOCK]);
}

#[test]
fn blocks_outside_the_device_are_refused() {
    let (mut cache, device) = cache();
    assert_eq!(cache.read(BLOCKS as u64).err(), Some(Errno::EIO));
    assert_eq!(cache.zeroed(u64::MAX).err(), Some(Errno::EIO));
    cache.read_ahead(BLOCKS as u64 - 3, 8);
    assert_eq!(device.0.borrow().reads, [(BLOCKS as u64 - 3, 3)]);
}

#[test]
fn a_whole_block_is_replaced_without_reading_it() {
    let (mut cache, device) = cache();
    cache.overwrite(3).unwrap().fill(0xaa);
    assert_eq!(cache.zeroed(4).unwrap(), [0; BLOCK]);
    cache.sync().unwrap();
    assert!(device.0.borrow().reads.is_empty());
    assert_eq!(device.0.borrow().writes, [(3, 2)]);
}
