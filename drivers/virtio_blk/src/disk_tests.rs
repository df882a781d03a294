//! The disk against a device simulated by the test.

use super::*;
use driver::virtio::played::{Device, PlayedMemory, Taken};
use driver::virtio::{PciTransport, feature as common, played::PlayedWindow};
use std::cell::RefCell;
use std::rc::Rc;
use std::vec;

const DISK_BYTES: usize = 1 << 20;

/// A transfer and the buffer of its caller, who may have exited.
#[derive(Clone, Debug)]
struct Test {
    operation: Operation,
    position: u64,
    data: Rc<RefCell<Vec<u8>>>,
    gone: bool,
}

impl Extent for Test {
    fn operation(&self) -> Operation {
        self.operation
    }
    fn position(&self) -> u64 {
        self.position
    }
    fn bytes(&self) -> u64 {
        self.data.borrow().len() as u64
    }
}

impl Work<PlayedMemory> for Test {
    fn fetch(&self, offset: u64, bytes: usize, into: &mut Buffer<PlayedMemory>) -> Result<(), Errno> {
        let offset = offset as usize;
        into.write(0, &self.data.borrow()[offset..offset + bytes]);
        if self.gone { Err(Errno::EDEADSRCDST) } else { Ok(()) }
    }
    fn put(&self, offset: u64, bytes: usize, from: &Buffer<PlayedMemory>) -> Result<(), Errno> {
        let offset = offset as usize;
        from.read(0, &mut self.data.borrow_mut()[offset..offset + bytes]);
        if self.gone { Err(Errno::EDEADSRCDST) } else { Ok(()) }
    }
}

fn test(operation: Operation, position: u64, data: Vec<u8>) -> Test {
    Test { operation, position, data: Rc::new(RefCell::new(data)), gone: false }
}

fn read(position: u64, bytes: usize) -> Test {
    test(Operation::Read, position, vec![0; bytes])
}

/// The driver, the device, and what is on the disk.
struct World {
    disk: Disk<PciTransport<PlayedWindow>, PlayedMemory, Test>,
    device: Device,
    content: Vec<u8>,
}

impl World {
    fn new(features: u64, queue: u16) -> World {
        let device = device(features, queue);
        let disk = Disk::set_up(device.transport().unwrap(), device.memory()).ok().unwrap();
        let content = (0..DISK_BYTES).map(|at| (at / 512) as u8).collect();
        World { disk, device, content }
    }

    /// Executes the request of a chain, and completes it with this status.
    fn serve(&mut self, chain: &Taken, status: u8) {
        let header = &chain.readable[0];
        let position = u64::from_le_bytes(header[8..].try_into().unwrap()) as usize * 512;
        let last = chain.writable().len() - 1;
        match header[0] {
            0 => {
                let bytes = chain.writable()[0];
                self.device.write(chain, 0, &self.content[position..position + bytes]);
            }
            1 => self.content[position..position + chain.readable[1].len()].copy_from_slice(&chain.readable[1]),
            other => assert_eq!((other, chain.readable.len(), last), (4, 1, 0)),
        }
        self.device.write(chain, last, &[status]);
        self.device.finish(0, chain, chain.writable().iter().sum());
    }

    /// Serves requests until none is left.
    fn serve_all(&mut self) -> Vec<Ended<Test>> {
        while let Some(chain) = self.device.take(0) {
            self.serve(&chain, 0);
            self.disk.interrupt().unwrap();
        }
        self.disk.take_ended().collect()
    }
}

fn device(features: u64, queue: u16) -> Device {
    let capacity = (DISK_BYTES as u64 / 512).to_le_bytes();
    Device::new(MEMORY_BYTES, common::VERSION_1 | features, &[queue], &capacity)
}

#[test]
fn a_disk_is_as_large_as_its_configuration_says() {
    let world = World::new(feature::READ_ONLY, 128);
    assert_eq!((world.disk.bytes(), world.disk.is_read_only()), (DISK_BYTES as u64, true));
    assert!(!World::new(0, 128).disk.is_read_only());
}

#[test]
fn a_queue_too_short_for_one_request_is_no_disk() {
    let device = device(0, 2);
    let disk = Disk::<_, _, Test>::set_up(device.transport().unwrap(), device.memory());
    assert_eq!(disk.err(), Some(Errno::EIO));
}

#[test]
fn what_was_written_is_read_again() {
    let mut world = World::new(0, 128);
    world.disk.begin(test(Operation::Write, 2048, vec![0x77; 1024]));
    assert_eq!(world.serve_all().len(), 1);
    let again = read(1536, 1024);
    world.disk.begin(again.clone());
    assert_eq!(world.serve_all()[0].1, Ok(()));
    assert_eq!(*again.data.borrow(), [[3; 512], [0x77; 512]].concat());
}

#[test]
fn two_reads_are_in_flight_and_the_later_one_may_end_first() {
    let mut world = World::new(0, 128);
    let (slow, fast) = (read(0, 512), read(512, 512));
    world.disk.begin(slow.clone());
    world.disk.begin(fast.clone());
    assert_eq!(world.disk.in_flight(), 2);
    let (first, second) = (world.device.take(0).unwrap(), world.device.take(0).unwrap());
    world.serve(&second, 0);
    world.disk.interrupt().unwrap();
    let ended: Vec<_> = world.disk.take_ended().map(|(test, result)| (test.position, result)).collect();
    assert_eq!(ended, [(512, Ok(()))]);
    assert_eq!(fast.data.borrow()[0], 1);
    world.serve(&first, 0);
    world.disk.interrupt().unwrap();
    assert_eq!(world.disk.take_ended().count(), 1);
}

#[test]
fn a_transfer_longer_than_a_slot_goes_in_pieces() {
    let mut world = World::new(0, 128);
    let long = read(512, 2 * DATA_BYTES + 512);
    world.disk.begin(long.clone());
    assert_eq!(world.disk.in_flight(), 1);
    assert_eq!(world.serve_all().len(), 1);
    assert_eq!(*long.data.borrow(), world.content[512..512 + 2 * DATA_BYTES + 512]);
    let data: Vec<u8> = (0..DATA_BYTES + 512).map(|at| (at % 251) as u8).collect();
    world.disk.begin(test(Operation::Write, 4096, data.clone()));
    world.serve_all();
    assert_eq!(world.content[4096..4096 + data.len()], data);
}

#[test]
fn what_finds_no_slot_waits_in_line() {
    for (queue, slots) in [(128, SLOTS), (8, 2)] {
        let mut world = World::new(0, queue);
        (0..20).for_each(|sector| world.disk.begin(read(sector * 512, 512)));
        assert_eq!(world.disk.in_flight(), slots);
        let ended: Vec<u64> = world.serve_all().into_iter().map(|(test, _)| test.position / 512).collect();
        assert_eq!(ended, (0..20).collect::<Vec<_>>());
    }
}

#[test]
fn slots_go_round_many_times() {
    let mut world = World::new(0, 128);
    for sector in 0..70_000u64 {
        let test = read(sector % 2048 * 512, 512);
        world.disk.begin(test.clone());
        world.serve_all();
        assert_eq!(test.data.borrow()[0], (sector % 2048) as u8);
    }
}

#[test]
fn errors_of_the_medium_end_one_transfer_alone() {
    let mut world = World::new(feature::FLUSH, 128);
    for (status, error) in [(1, Errno::EIO), (2, Errno::EOPNOTSUPP), (0xff, Errno::EIO)] {
        world.disk.begin(read(0, 512));
        world.disk.begin(test(Operation::Flush, 0, Vec::new()));
        let (first, second) = (world.device.take(0).unwrap(), world.device.take(0).unwrap());
        world.serve(&first, status);
        world.serve(&second, 0);
        world.disk.interrupt().unwrap();
        let results: Vec<_> = world.disk.take_ended().map(|(_, result)| result).collect();
        assert_eq!(results, [Err(error), Ok(())]);
    }
}

#[test]
fn a_caller_that_has_gone_frees_its_slot() {
    let mut world = World::new(0, 4);
    for operation in [Operation::Read, Operation::Write] {
        world.disk.begin(Test { gone: true, ..test(operation, 0, vec![0; 512]) });
        let ended = world.serve_all();
        assert_eq!(ended[0].1, Err(Errno::EDEADSRCDST));
        world.disk.begin(read(0, 512));
        assert_eq!(world.serve_all()[0].1, Ok(()));
    }
}

#[test]
fn a_device_without_flush_needs_none_and_nothing_asks_for_nothing() {
    let mut world = World::new(0, 128);
    world.disk.begin(test(Operation::Flush, 0, Vec::new()));
    world.disk.begin(read(0, 0));
    assert_eq!(world.disk.in_flight(), 0);
    assert_eq!(world.disk.take_ended().filter(|(_, result)| result.is_ok()).count(), 2);
}

#[test]
fn a_hostile_device_gives_no_data_to_anybody() {
    let mut world = World::new(0, 128);
    let victim = read(0, 512);
    world.disk.begin(victim.clone());
    world.device.finish_raw(0, 77, 512);
    assert_eq!(world.disk.interrupt(), Err(Broken::Chain(77)));
    assert_eq!(world.disk.take_ended().count(), 0);
    world.disk.begin(read(0, 512));
    assert_eq!(world.disk.take_ended().map(|(_, result)| result).collect::<Vec<_>>(), [Err(Errno::EIO)]);
}
