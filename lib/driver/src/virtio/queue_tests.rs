//! Set-up and queues against a simulated device, correct and hostile.

use super::played::{Device, PlayedMemory};
use super::*;
use abi::Errno;
use std::vec;
use std::vec::Vec;

const MEMORY: usize = 64 * 1024;
const KNOWN: u64 = 0b110;

fn device(features: u64) -> Device {
    Device::new(MEMORY, features, &[8, 4], &[1, 2, 3, 4, 5, 6, 7, 8])
}

struct Driver {
    device: Device,
    dma: Dma<PlayedMemory>,
    queue: Queue<PlayedMemory, u32>,
}

impl Driver {
    fn new() -> Driver {
        let device = device(feature::VERSION_1);
        let mut dma = Dma::new(device.memory());
        let mut setup = Setup::begin(device.transport().unwrap(), 0).ok().unwrap();
        let queue = setup.queue(0, 8, &mut dma).unwrap();
        setup.start();
        Driver { device, dma, queue }
    }

    fn buffer(&mut self, bytes: &[u8]) -> Buffer<PlayedMemory> {
        let mut buffer = self.dma.take(bytes.len(), 8).unwrap();
        buffer.write(0, bytes);
        buffer
    }

    /// Offers a chain of three bytes to read and `room` bytes to write.
    fn offer(&mut self, tag: u32, room: usize) {
        let (asked, answer) = (self.buffer(&[tag as u8; 3]), self.buffer(&vec![0; room]));
        self.queue.offer(Chain::new().readable(asked).writable(answer), tag).unwrap();
    }
}

#[test]
fn a_device_that_does_not_speak_virtio_1_or_refuses_the_features_is_not_set_up() {
    let old = device(KNOWN);
    assert_eq!(Setup::begin(old.transport().unwrap(), KNOWN).err(), Some(Errno::EIO));
    assert_ne!(old.status() & 128, 0, "the device is told that it was given up");
    let stubborn = device(feature::VERSION_1);
    stubborn.refuse_features();
    assert_eq!(Setup::begin(stubborn.transport().unwrap(), KNOWN).err(), Some(Errno::EIO));
}

#[test]
fn only_features_that_both_know_are_in_force() {
    let device = device(feature::VERSION_1 | 0b1010);
    let setup = Setup::begin(device.transport().unwrap(), KNOWN).ok().unwrap();
    assert_eq!(setup.features(), feature::VERSION_1 | 0b10);
    assert_eq!(device.accepted(), setup.features());
    assert_eq!(device.status(), 1 | 2 | 8);
    setup.start();
    assert_eq!(device.status(), 1 | 2 | 4 | 8);
}

#[test]
fn queues_are_no_longer_than_the_device_allows_and_apart_from_each_other() {
    let device = device(feature::VERSION_1);
    let mut dma = Dma::new(device.memory());
    let mut setup = Setup::begin(device.transport().unwrap(), 0).ok().unwrap();
    let first: Queue<_, ()> = setup.queue(0, 64, &mut dma).unwrap();
    let second: Queue<_, ()> = setup.queue(1, 2, &mut dma).unwrap();
    assert_eq!((device.queue_size(0), device.queue_size(1)), (8, 2));
    assert_eq!(setup.queue::<_, ()>(2, 2, &mut dma).err(), Some(Errno::ENXIO));
    let mut transport = setup.start();
    transport.notify(second.number());
    transport.notify(first.number());
    assert_eq!(device.notified(), [1, 0]);
}

#[test]
fn what_a_predecessor_left_in_the_rings_is_gone() {
    let device = device(feature::VERSION_1);
    device.memory().copy_in(0, &[0xff; 1024]);
    let mut dma = Dma::new(device.memory());
    let mut setup = Setup::begin(device.transport().unwrap(), 0).ok().unwrap();
    let mut queue: Queue<_, ()> = setup.queue(0, 8, &mut dma).unwrap();
    assert_eq!(queue.completed().map(|done| done.is_some()), Ok(false));
}

#[test]
fn the_configuration_is_read_within_its_bounds() {
    let transport = device(0).transport().unwrap();
    assert_eq!(transport.config_field(2), Ok([3, 4, 5]));
    assert_eq!(transport.config_field(0), Ok([1, 2, 3, 4, 5, 6, 7, 8]));
    assert_eq!(transport.config_field::<4>(5), Err(Errno::EIO));
}

#[test]
fn chains_in_flight_are_completed_in_any_order_with_what_the_device_wrote() {
    let mut driver = Driver::new();
    driver.offer(1, 4);
    driver.offer(2, 4);
    assert_eq!(driver.queue.in_flight(), 2);
    let (first, second) = (driver.device.take(0).unwrap(), driver.device.take(0).unwrap());
    assert_eq!((first.readable.clone(), second.readable.clone()), (vec![vec![1; 3]], vec![vec![2; 3]]));
    assert!(driver.queue.completed().unwrap().is_none());
    driver.device.write(&second, 0, &[7, 8]);
    driver.device.finish(0, &second, 2);
    let done = driver.queue.completed().unwrap().unwrap();
    let [_, answer] = done.chain.into_buffers().unwrap();
    let mut bytes = [0; 2];
    answer.read(0, &mut bytes);
    assert_eq!((done.tag, done.written, bytes), (2, 2, [7, 8]));
    driver.device.finish(0, &first, 0);
    assert_eq!(driver.queue.completed().unwrap().map(|done| done.tag), Some(1));
    assert_eq!(driver.queue.in_flight(), 0);
}

#[test]
fn a_full_queue_gives_the_chain_back_and_takes_it_after_a_completion() {
    let mut driver = Driver::new();
    (0..4).for_each(|tag| driver.offer(tag, 4));
    let (asked, answer) = (driver.buffer(&[9; 3]), driver.buffer(&[0; 4]));
    let Err(Full(chain, tag)) = driver.queue.offer(Chain::new().readable(asked).writable(answer), 4) else { panic!() };
    let taken = driver.device.take(0).unwrap();
    driver.device.finish(0, &taken, 0);
    driver.queue.completed().unwrap().unwrap();
    driver.queue.offer(chain, tag).unwrap();
    let last = std::iter::from_fn(|| driver.device.take(0)).last().unwrap();
    assert_eq!(last.readable, [[9; 3]]);
}

#[test]
fn the_rings_go_round_many_times() {
    let mut driver = Driver::new();
    driver.offer(0, 4);
    driver.offer(1, 4);
    for _ in 0..70_000u32 {
        let taken = driver.device.take(0).unwrap();
        driver.device.finish(0, &taken, 4);
        let done = driver.queue.completed().unwrap().unwrap();
        assert_eq!(taken.readable[0][0], done.tag as u8);
        driver.queue.offer(done.chain, done.tag).unwrap();
    }
    assert_eq!(driver.queue.in_flight(), 2);
}

#[test]
fn empty_buffers_have_no_descriptor() {
    let mut driver = Driver::new();
    let (asked, mut nothing, answer) = (driver.buffer(&[5]), driver.buffer(&[6]), driver.buffer(&[0]));
    nothing.set_len(0);
    driver.queue.offer(Chain::new().readable(asked).readable(nothing).writable(answer), 0).unwrap();
    let taken = driver.device.take(0).unwrap();
    assert_eq!((taken.readable.clone(), taken.writable()), (vec![vec![5]], vec![1]));
    driver.device.finish(0, &taken, 1);
    assert!(driver.queue.completed().unwrap().unwrap().chain.into_buffers::<3>().is_some());
}

#[test]
fn the_device_is_notified_unless_it_does_not_want_to_be() {
    let mut driver = Driver::new();
    let buffer = driver.buffer(&[0]);
    assert!(driver.queue.offer(Chain::new().writable(buffer), 0).unwrap());
    driver.device.set_used_flags(0, 1);
    let buffer = driver.buffer(&[0]);
    assert!(!driver.queue.offer(Chain::new().writable(buffer), 0).unwrap());
}

/// Whatever a hostile device puts into the used ring breaks the queue for good, and no chain is completed.
fn breaks(act: impl FnOnce(&Driver), expected: Broken) {
    let mut driver = Driver::new();
    driver.offer(1, 4);
    driver.offer(2, 4);
    act(&driver);
    assert_eq!(driver.queue.completed().err(), Some(expected));
    let good = driver.device.take(0).unwrap();
    driver.device.finish(0, &good, 0);
    assert_eq!(driver.queue.completed().err(), Some(expected));
    let buffer = driver.buffer(&[0]);
    assert!(driver.queue.offer(Chain::new().writable(buffer), 0).is_err());
}

#[test]
fn a_used_index_that_jumps_breaks_the_queue() {
    for used in [3, 8, 9, 0x8000, 0xffff] {
        breaks(|driver| driver.device.set_used_index(0, used), Broken::Index { used, offered: 2 });
    }
}

#[test]
fn a_chain_that_the_device_does_not_have_breaks_the_queue() {
    // The second descriptor of a chain, a free one, one beyond the table.
    for id in [0, 7, 8, 0x1_0001, u32::MAX] {
        breaks(|driver| driver.device.finish_raw(0, id, 0), Broken::Chain(id));
    }
}

#[test]
fn a_chain_that_is_finished_twice_breaks_the_queue() {
    let mut driver = Driver::new();
    driver.offer(1, 4);
    driver.offer(2, 4);
    let taken = driver.device.take(0).unwrap();
    driver.device.finish(0, &taken, 0);
    driver.device.finish(0, &taken, 0);
    assert!(driver.queue.completed().is_ok());
    assert_eq!(driver.queue.completed().err(), Some(Broken::Chain(taken.head.into())));
}

#[test]
fn more_bytes_than_there_was_room_for_break_the_queue() {
    for written in [5, 7, u32::MAX] {
        let act = |driver: &Driver| {
            let taken = driver.device.take(0).unwrap();
            driver.device.finish_raw(0, taken.head.into(), written);
        };
        let mut driver = Driver::new();
        driver.offer(1, 4);
        act(&driver);
        assert_eq!(driver.queue.completed().err(), Some(Broken::Length(written)));
    }
}

#[test]
fn posted_buffers_are_filled_when_the_device_has_something() {
    let mut driver = Driver::new();
    for tag in 0..8 {
        let buffer = driver.buffer(&[0; 16]);
        driver.queue.offer(Chain::new().writable(buffer), tag).unwrap();
    }
    for tag in [0u8, 1, 2] {
        let taken = driver.device.take(0).unwrap();
        driver.device.write(&taken, 0, &[tag; 5]);
        driver.device.finish(0, &taken, 5);
    }
    let mut received = Vec::new();
    while let Some(done) = driver.queue.completed().unwrap() {
        let [mut buffer] = done.chain.into_buffers().unwrap();
        let mut bytes = vec![0; done.written];
        buffer.read(0, &mut bytes);
        received.push(bytes);
        buffer.set_len(16);
        driver.queue.offer(Chain::new().writable(buffer), done.tag).unwrap();
    }
    assert_eq!(received, [[0; 5], [1; 5], [2; 5]]);
    assert_eq!(driver.queue.in_flight(), 8);
}

#[test]
fn dma_memory_is_given_out_once() {
    let mut dma = Dma::new(device(0).memory());
    let mut first = dma.take(10, 16).unwrap();
    let second = dma.take(10, 16).unwrap();
    first.write(0, &[1; 10]);
    let mut bytes = [9; 10];
    second.read(0, &mut bytes);
    assert_eq!(bytes, [0; 10]);
    assert_eq!(dma.take(MEMORY, 1).err(), Some(Errno::ENOMEM));
}

#[test]
#[should_panic(expected = "outside a buffer")]
fn a_buffer_does_not_reach_beyond_its_end() {
    let mut dma = Dma::new(device(0).memory());
    dma.take(10, 1).unwrap().read(8, &mut [0; 3]);
}
