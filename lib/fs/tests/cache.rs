//! The block cache over a device in memory that records every request and can be told to fail.
#![forbid(unsafe_code)]

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::atomic::AtomicU64;

use fs::Errno;
use fs::cache::BlockCache;
use fs::device::{BlockDevice, SECTOR_SIZE};
use fs::order::Order;
use fs::preserve::{Layout, Preserved};
use sys::StartKind;
use sys::keep::Keep;

const BLOCK: usize = 1024;
const BLOCKS: usize = 400;
/// Frames of the cache.
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

/// A cache over a device whose block n is full of the byte n.
fn cache() -> (BlockCache<Recorder>, Recorder) {
    let device = Recorder::default();
    device.0.borrow_mut().bytes = (0..BLOCKS * BLOCK).map(|offset| (offset / BLOCK) as u8).collect();
    let memory = preserved(words(), StartKind::Fresh).volume(0).unwrap().cache;
    (BlockCache::create(device.clone(), BLOCK, memory), device)
}

const LAYOUT: Layout = Layout { volumes: 1, cache_bytes: FRAMES as usize * BLOCK };

fn words() -> &'static [AtomicU64] {
    Vec::leak((0..LAYOUT.bytes() / 8).map(|word| AtomicU64::new((word as u64 + 1) * 77)).collect())
}

fn preserved(words: &'static [AtomicU64], kind: StartKind) -> Preserved {
    Preserved::open(Keep::simulated(words, u64::MAX), LAYOUT, kind)
}

/// Fills a block, in a transaction of its own.
fn change(cache: &mut BlockCache<Recorder>, block: u64, byte: u8) {
    cache.modify(block, 0..BLOCK, Order::Content).unwrap().fill(byte);
    cache.committed();
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
        change(&mut cache, block, 0xff);
    }
    cache.modify(3, 0..1, Order::Content).unwrap()[0] = 0xfe;
    cache.committed();
    assert!(device.0.borrow().writes.is_empty());
    cache.sync(&()).unwrap();
    assert_eq!(device.0.borrow().writes, [(3, 3), (8, 2), (20, 1)]);
    assert_eq!(device.0.borrow().bytes[3 * BLOCK], 0xfe);
    assert_eq!(device.0.borrow().bytes[9 * BLOCK..10 * BLOCK], [0xff; BLOCK]);
    cache.sync(&()).unwrap();
    assert_eq!((device.0.borrow().writes.len(), device.0.borrow().flushes), (3, 2));
}

#[test]
fn a_modified_block_is_written_before_its_frame_is_used_again() {
    let (mut cache, device) = cache();
    change(&mut cache, 0, 0xaa);
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
        change(&mut cache, block, 0xaa);
    }
    device.0.borrow_mut().failing = true;
    assert_eq!(cache.sync(&()), Err(Errno::EIO));
    device.0.borrow_mut().failing = false;
    assert_eq!(cache.read(5).unwrap(), [0xaa; BLOCK]);
    cache.sync(&()).unwrap();
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
    change(&mut cache, 14, 0xaa);
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
        change(&mut cache, block, 0xaa);
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
    change(&mut cache, 5, 0xaa);
    cache.discard(5);
    assert_eq!(cache.read(5).unwrap(), [0xaa; BLOCK], "the transaction may still be undone");
    cache.committed();
    cache.zeroed(6).unwrap();
    cache.sync(&()).unwrap();
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
    let filled = cache.overwrite(3, |bytes| {
        bytes.fill(0xaa);
        Ok(())
    });
    assert_eq!((filled, cache.zeroed(4)), (Ok(()), Ok(())));
    assert_eq!(cache.read(4).unwrap(), [0; BLOCK]);
    cache.sync(&()).unwrap();
    assert!(device.0.borrow().reads.is_empty());
    assert_eq!(device.0.borrow().writes, [(3, 2)]);
}

#[test]
fn a_block_that_is_not_filled_is_not_here() {
    let (mut cache, _) = cache();
    assert_eq!(cache.overwrite(3, |_| Err(Errno::EFAULT)), Err(Errno::EFAULT));
    assert_eq!(cache.read(3).unwrap(), [3; BLOCK]);
}

#[test]
fn what_may_be_undone_is_neither_written_nor_pushed_out() {
    let (mut cache, device) = cache();
    cache.modify(0, 0..1, Order::Content).unwrap()[0] = 0xaa;
    change_others(&mut cache);
    assert!(cache.contains(0) && device.0.borrow().writes.iter().all(|&(block, _)| block != 0));
    cache.committed();
    cache.sync(&()).unwrap();
    assert_eq!(device.0.borrow().bytes[0], 0xaa);
}

/// Rewrites more blocks than there is room for.
fn change_others(cache: &mut BlockCache<Recorder>) {
    for block in 1..=2 * FRAMES {
        cache.rewrite(block, 0..1).unwrap()[0] = 0xbb;
    }
}

#[test]
fn a_successor_finds_the_blocks_and_what_was_undone() {
    let words = words();
    let device = Recorder::default();
    device.0.borrow_mut().bytes = vec![0; BLOCKS * BLOCK];
    let state = preserved(words, StartKind::Fresh);
    let mut cache = BlockCache::create(device.clone(), BLOCK, state.volume(0).unwrap().cache);
    cache.modify(7, 10..20, Order::Content).unwrap().fill(1);
    state.undo.commit();
    cache.committed();
    cache.modify(7, 15..30, Order::Content).unwrap().fill(2);
    cache.modify(8, 0..BLOCK, Order::Content).unwrap().fill(2);
    cache.modify(7, 0..BLOCK, Order::Content).unwrap().fill(3);
    drop((cache, state));
    let state = preserved(words, StartKind::Restarted);
    let mut cache = BlockCache::open(device.clone(), BLOCK, state.volume(0).unwrap().cache);
    assert!(cache.contains(7) && cache.contains(8) && !cache.contains(9));
    let block = cache.read(7).unwrap();
    assert_eq!((&block[..10], &block[10..20], &block[20..]), (&[0; 10][..], &[1; 10][..], &[0; BLOCK - 20][..]));
    assert_eq!(cache.read(8).unwrap(), [0; BLOCK]);
    cache.sync(&()).unwrap();
    assert_eq!(device.0.borrow().bytes[7 * BLOCK + 10..][..10], [1; 10]);
}

#[test]
fn a_damaged_entry_of_the_directory_is_not_used() {
    let words = words();
    let state = preserved(words, StartKind::Fresh);
    let memory = state.volume(0).unwrap().cache;
    let place = memory.directory.place() / 8;
    let device = Recorder::default();
    device.0.borrow_mut().bytes = vec![0; BLOCKS * BLOCK];
    let mut cache = BlockCache::create(device.clone(), BLOCK, memory);
    change(&mut cache, 5, 1);
    change(&mut cache, 6, 1);
    state.undo.commit();
    drop((cache, state));
    words[place].fetch_xor(1, std::sync::atomic::Ordering::Relaxed);
    let state = preserved(words, StartKind::Restarted);
    let cache = BlockCache::open(device, BLOCK, state.volume(0).unwrap().cache);
    assert!(!cache.contains(5) && !cache.contains(4) && cache.contains(6));
}
