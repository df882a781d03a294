//! The driver against a device played by the test: it reads the queue out of the shared memory as VIRTIO 1.2 says.

use super::*;
use std::{cell::RefCell, rc::Rc, vec, vec::Vec};

const PHYSICAL: u64 = 0x10_0000;

struct Player {
    memory: Vec<u8>,
    registers: [u8; 56],
    features: u64,
    disk: Vec<u8>,
    used: u16,
    fails: bool,
    silent: bool,
}

#[derive(Clone)]
struct Shared(Rc<RefCell<Player>>);

impl Player {
    fn number(&self, offset: usize, bytes: usize) -> u64 {
        self.memory[offset..offset + bytes].iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte))
    }

    fn descriptor(&self, index: u16) -> (usize, usize, u16, u16) {
        let at = layout::DESCRIPTORS + 16 * usize::from(index);
        let offset = (self.number(at, 8) - PHYSICAL) as usize;
        (offset, self.number(at + 8, 4) as usize, self.number(at + 12, 2) as u16, self.number(at + 14, 2) as u16)
    }

    fn serve(&mut self) {
        let available = self.number(layout::AVAILABLE + 2, 2) as u16;
        assert_eq!(available, self.used.wrapping_add(1), "one request at a time");
        let entry = usize::from(self.used % QUEUE_SIZE);
        let head = self.number(layout::AVAILABLE + 4 + 2 * entry, 2) as u16;
        let (header, length, flags, next) = self.descriptor(head);
        assert_eq!((length, flags), (16, 1));
        let operation = self.number(header, 4);
        let position = self.number(header + 8, 8) as usize * 512;
        let (mut offset, bytes, flags, next) = self.descriptor(next);
        match operation {
            0 => {
                assert_eq!(flags, 3);
                let data = self.disk[position..position + bytes].to_vec();
                self.memory[offset..offset + bytes].copy_from_slice(&data);
            }
            1 => {
                assert_eq!(flags, 1);
                let data = self.memory[offset..offset + bytes].to_vec();
                self.disk[position..position + bytes].copy_from_slice(&data);
            }
            _ => assert_eq!((operation, bytes, flags), (4, 1, 2)),
        }
        if operation != 4 {
            offset = self.descriptor(next).0;
        }
        self.memory[offset] = u8::from(self.fails);
        self.used = self.used.wrapping_add(1);
        self.memory[layout::USED + 2..layout::USED + 4].copy_from_slice(&self.used.to_le_bytes());
    }
}

impl Memory for Shared {
    fn read(&self, offset: usize, bytes: &mut [u8]) {
        bytes.copy_from_slice(&self.0.borrow().memory[offset..offset + bytes.len()]);
    }
    fn write(&mut self, offset: usize, bytes: &[u8]) {
        self.0.borrow_mut().memory[offset..offset + bytes.len()].copy_from_slice(bytes);
    }
    fn physical(&self, offset: usize) -> u64 {
        PHYSICAL + offset as u64
    }
}

impl Registers for Shared {
    fn read<const N: usize>(&self, offset: usize) -> [u8; N] {
        let player = self.0.borrow();
        if offset == common::DEVICE_FEATURE {
            let half = u32::from(player.registers[common::DEVICE_FEATURE_SELECT]);
            let word = ((player.features >> (32 * half)) as u32).to_le_bytes();
            return core::array::from_fn(|i| word[i]);
        }
        core::array::from_fn(|i| player.registers[offset + i])
    }
    fn write<const N: usize>(&mut self, offset: usize, value: [u8; N]) {
        self.0.borrow_mut().registers[offset..offset + N].copy_from_slice(&value);
    }
    fn capacity(&self) -> u64 {
        self.0.borrow().disk.len() as u64 / 512
    }
    fn notify(&mut self) {}
    fn wait(&mut self) -> Result<(), Errno> {
        if self.0.borrow().silent {
            return Err(Errno::EIO);
        }
        self.0.borrow_mut().serve();
        Ok(())
    }
}

fn player(features: u64) -> Shared {
    let mut registers = [0; 56];
    registers[common::QUEUE_SIZE] = 128;
    let disk = (0..1 << 20).map(|i: usize| (i / 512) as u8).collect();
    let memory = vec![0; MEMORY_BYTES];
    let player = Player { memory, registers, features, disk, used: 0, fails: false, silent: false };
    Shared(Rc::new(RefCell::new(player)))
}

fn device(features: u64) -> (Device<Shared, Shared>, Shared) {
    let shared = player(feature::VERSION_1 | features);
    (Device::set_up(shared.clone(), shared.clone()).ok().unwrap(), shared)
}

fn data(shared: &Shared, bytes: usize) -> Vec<u8> {
    shared.0.borrow().memory[layout::DATA..layout::DATA + bytes].to_vec()
}

#[test]
fn an_old_device_is_refused() {
    let shared = player(feature::FLUSH);
    assert_eq!(Device::set_up(shared.clone(), shared).err(), Some(Errno::EIO));
}

#[test]
fn set_up_leaves_the_device_running_with_its_queue() {
    let (device, shared) = device(0);
    let player = shared.0.borrow();
    assert_eq!(player.registers[common::STATUS], 15);
    assert_eq!(player.registers[common::QUEUE_ENABLE], 1);
    assert_eq!(device.bytes(), 1 << 20);
}

#[test]
fn what_was_written_is_read_again() {
    let (mut device, shared) = device(0);
    Memory::write(device.memory(), layout::DATA, &[0x77; 1024]);
    device.transfer(Operation::Write, 2048, 1024).unwrap();
    assert_eq!(shared.0.borrow().disk[2048..3072], [0x77; 1024]);
    device.transfer(Operation::Read, 1536, 1024).unwrap();
    assert_eq!(data(&shared, 1024), [[3; 512], [0x77; 512]].concat());
}

#[test]
fn the_queue_goes_round_many_times() {
    let (mut device, shared) = device(0);
    for i in 0..70_000u64 {
        device.transfer(Operation::Read, i % 2048 * 512, 512).unwrap();
        assert_eq!(shared.0.borrow().memory[layout::DATA], (i % 2048) as u8);
    }
}

#[test]
fn impossible_requests_are_refused() {
    let (mut device, _) = device(0);
    for (position, bytes) in [(1, 512), (0, 100), (0, 0), (1 << 20, 512), (u64::MAX - 511, 512), (0, DATA_BYTES + 512)]
    {
        assert_eq!(device.transfer(Operation::Read, position, bytes), Err(Errno::EINVAL));
    }
}

#[test]
fn a_read_only_medium_is_not_written() {
    let (mut device, _) = device(feature::READ_ONLY);
    assert!(device.is_read_only());
    assert_eq!(device.transfer(Operation::Write, 0, 512), Err(Errno::EROFS));
}

#[test]
fn errors_of_the_medium_and_silence_are_reported() {
    let (mut device, shared) = device(feature::FLUSH);
    shared.0.borrow_mut().fails = true;
    assert_eq!(device.transfer(Operation::Read, 0, 512), Err(Errno::EIO));
    assert_eq!(device.flush(), Err(Errno::EIO));
    shared.0.borrow_mut().fails = false;
    assert_eq!(device.flush(), Ok(()));
    shared.0.borrow_mut().silent = true;
    assert_eq!(device.transfer(Operation::Read, 0, 512), Err(Errno::EIO));
}

#[test]
fn a_device_without_flush_needs_none() {
    let (mut device, shared) = device(0);
    assert_eq!(device.flush(), Ok(()));
    assert_eq!(shared.0.borrow().used, 0);
}
