//! A virtio device simulated by a test: registers as on the PCI bus, DMA memory, and queues as VIRTIO 1.2 defines them.
//!
//! The test removes chains from a queue, reads and fills them, and completes them in any order, or violates the rules on purpose.

use super::memory::Memory;
use super::pci::{PciTransport, Registers, common};
use alloc::collections::BTreeMap;
use alloc::rc::Rc;
use alloc::vec;
use alloc::vec::Vec;
use core::cell::RefCell;
use sys::Result;

/// Address at which the device sees the memory.
const PHYSICAL: u64 = 0x10_0000;
/// Distance of the queues in the notification window.
const NOTIFY_MULTIPLIER: usize = 4;

/// A simulated device. Clones share it.
#[derive(Clone, Debug)]
pub struct Device(Rc<RefCell<State>>);

#[derive(Debug)]
struct State {
    memory: Vec<u8>,
    common: Vec<u8>,
    config: Vec<u8>,
    features: u64,
    accepted: u64,
    queues: Vec<Ring>,
    notified: Vec<u16>,
    vectors: BTreeMap<usize, u16>,
    refuses_features: bool,
    answers: Option<Answers>,
}

/// What a device's configuration shows when its first two bytes are these: for devices that are asked so.
pub type Answers = fn(u8, u8) -> Vec<u8>;

/// A queue as the device sees it.
#[derive(Clone, Copy, Debug, Default)]
struct Ring {
    limit: u16,
    size: u16,
    enabled: bool,
    descriptors: u64,
    available: u64,
    used: u64,
    taken: u16,
    finished: u16,
}

/// A chain that the device has taken.
#[derive(Clone, Debug)]
pub struct Taken {
    /// Its first descriptor.
    pub head: u16,
    /// Content of its readable buffers, one element for each descriptor.
    pub readable: Vec<Vec<u8>>,
    /// Offset and length of its writable buffers.
    writable: Vec<(usize, usize)>,
}

impl Taken {
    /// Returns the lengths of its writable buffers.
    pub fn writable(&self) -> Vec<usize> {
        self.writable.iter().map(|&(_, bytes)| bytes).collect()
    }
}

/// A window of the device's registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Common,
    Notify,
    Config,
}

/// Registers of a simulated device.
#[derive(Debug)]
pub struct PlayedWindow {
    device: Device,
    kind: Kind,
}

/// DMA memory of a simulated device.
#[derive(Debug)]
pub struct PlayedMemory(Device);

impl Device {
    /// Makes a device with these features, this configuration, and queues of at most `limits` descriptors, beside `memory` bytes.
    pub fn new(memory: usize, features: u64, limits: &[u16], config: &[u8]) -> Device {
        let queues = limits.iter().map(|&limit| Ring { limit, ..Ring::default() }).collect();
        Device(Rc::new(RefCell::new(State {
            memory: vec![0; memory],
            common: vec![0; common::BYTES],
            config: config.to_vec(),
            features,
            accepted: 0,
            queues,
            notified: Vec::new(),
            vectors: BTreeMap::new(),
            refuses_features: false,
            answers: None,
        })))
    }

    /// Returns its registers, for the driver.
    ///
    /// # Errors
    /// None.
    pub fn transport(&self) -> Result<PciTransport<PlayedWindow>> {
        let window = |kind| PlayedWindow { device: self.clone(), kind };
        PciTransport::new(window(Kind::Common), window(Kind::Notify), window(Kind::Config), NOTIFY_MULTIPLIER, 1)
    }

    /// Returns its memory, for the driver.
    pub fn memory(&self) -> PlayedMemory {
        PlayedMemory(self.clone())
    }

    /// Returns the status register.
    pub fn status(&self) -> u8 {
        self.0.borrow().common[common::STATUS]
    }

    /// Returns the features that the driver accepted.
    pub fn accepted(&self) -> u64 {
        self.0.borrow().accepted
    }

    /// Makes the device show answers in its configuration: their length in byte 2, and themselves from byte 8 on.
    pub fn answer(&self, answers: Answers) {
        self.0.borrow_mut().answers = Some(answers);
    }

    /// Makes the device refuse all features.
    pub fn refuse_features(&self) {
        self.0.borrow_mut().refuses_features = true;
    }

    /// Returns the queues that were notified since the last call, in order.
    pub fn notified(&self) -> Vec<u16> {
        core::mem::take(&mut self.0.borrow_mut().notified)
    }

    /// Removes the next chain that the driver has offered.
    pub fn take(&self, queue: usize) -> Option<Taken> {
        self.0.borrow_mut().take(queue)
    }

    /// Writes `bytes` into the writable part `part` of a chain.
    pub fn write(&self, chain: &Taken, part: usize, bytes: &[u8]) {
        let (start, length) = chain.writable[part];
        assert!(bytes.len() <= length, "the simulated device must not overrun a buffer: only an IOMMU could stop it");
        self.0.borrow_mut().memory[start..start + bytes.len()].copy_from_slice(bytes);
    }

    /// Completes a chain.
    pub fn finish(&self, queue: usize, chain: &Taken, written: usize) {
        self.finish_raw(queue, chain.head.into(), written as u32);
    }

    /// Appends an arbitrary entry to the used ring.
    pub fn finish_raw(&self, queue: usize, id: u32, written: u32) {
        let state = &mut *self.0.borrow_mut();
        let ring = state.queues[queue];
        let entry = ring.used + 4 + 8 * u64::from(ring.finished % ring.size);
        state.put(entry, &id.to_le_bytes());
        state.put(entry + 4, &written.to_le_bytes());
        state.queues[queue].finished = ring.finished.wrapping_add(1);
        state.put(ring.used + 2, &state.queues[queue].finished.to_le_bytes());
    }

    /// Sets the used index, whatever was completed.
    pub fn set_used_index(&self, queue: usize, index: u16) {
        let state = &mut *self.0.borrow_mut();
        state.put(state.queues[queue].used + 2, &index.to_le_bytes());
    }

    /// Sets the flags of the used ring.
    pub fn set_used_flags(&self, queue: usize, flags: u16) {
        let state = &mut *self.0.borrow_mut();
        state.put(state.queues[queue].used, &flags.to_le_bytes());
    }

    /// Returns the number of descriptors that the driver chose for a queue; 0: not enabled.
    pub fn queue_size(&self, queue: usize) -> u16 {
        let ring = self.0.borrow().queues[queue];
        if ring.enabled { ring.size } else { 0 }
    }
}

impl State {
    fn at(address: u64) -> usize {
        usize::try_from(address - PHYSICAL).expect("addresses of the played memory are small")
    }

    fn number(&self, address: u64, bytes: usize) -> u64 {
        let start = Self::at(address);
        self.memory[start..start + bytes].iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte))
    }

    fn put(&mut self, address: u64, bytes: &[u8]) {
        let start = Self::at(address);
        self.memory[start..start + bytes.len()].copy_from_slice(bytes);
    }

    fn take(&mut self, queue: usize) -> Option<Taken> {
        let ring = self.queues[queue];
        if !ring.enabled || self.number(ring.available + 2, 2) as u16 == ring.taken {
            return None;
        }
        let head = self.number(ring.available + 4 + 2 * u64::from(ring.taken % ring.size), 2) as u16;
        self.queues[queue].taken = ring.taken.wrapping_add(1);
        let mut chain = Taken { head, readable: Vec::new(), writable: Vec::new() };
        let mut at = head;
        loop {
            let descriptor = ring.descriptors + 16 * u64::from(at);
            let (address, bytes) = (self.number(descriptor, 8), self.number(descriptor + 8, 4) as usize);
            let flags = self.number(descriptor + 12, 2);
            let start = Self::at(address);
            if flags & 2 == 0 {
                assert!(chain.writable.is_empty(), "what the device reads comes first");
                chain.readable.push(self.memory[start..start + bytes].to_vec());
            } else {
                chain.writable.push((start, bytes));
            }
            if flags & 1 == 0 {
                return Some(chain);
            }
            at = self.number(descriptor + 14, 2) as u16;
        }
    }

    fn selected(&self) -> usize {
        usize::from(u16::from_le_bytes([self.common[common::QUEUE_SELECT], self.common[common::QUEUE_SELECT + 1]]))
    }

    fn common_word(&self, offset: usize) -> u64 {
        self.common[offset..offset + 8].iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte))
    }

    fn read(&self, kind: Kind, offset: usize, bytes: usize) -> u64 {
        let value = match (kind, offset) {
            (Kind::Common, common::DEVICE_FEATURE) => {
                self.features >> (32 * (self.common[common::DEVICE_FEATURE_SELECT] & 1))
            }
            (Kind::Common, common::QUEUE_SIZE) => self.queues.get(self.selected()).map_or(0, |ring| ring.limit.into()),
            (Kind::Common, common::QUEUE_NOTIFY_OFFSET) => self.selected() as u64,
            (Kind::Common, common::QUEUE_VECTOR) => self.vectors.get(&self.selected()).map_or(0, |&v| v.into()),
            (Kind::Common, _) => {
                self.common.iter().skip(offset).take(bytes).rev().fold(0, |v, &b| v << 8 | u64::from(b))
            }
            (Kind::Config, _) => {
                self.config.iter().skip(offset).take(bytes).rev().fold(0, |v, &b| v << 8 | u64::from(b))
            }
            (Kind::Notify, _) => 0,
        };
        value & (u64::MAX >> (64 - 8 * bytes))
    }

    fn write(&mut self, kind: Kind, offset: usize, bytes: usize, value: u64) {
        if kind == Kind::Notify {
            assert_eq!(offset / NOTIFY_MULTIPLIER, value as usize, "each queue is notified at its own place");
            return self.notified.push(value as u16);
        }
        if kind == Kind::Config {
            let answers = self.answers.expect("the driver does not write this device's configuration");
            self.config[offset] = value as u8;
            let answer = answers(self.config[0], self.config[1]);
            self.config[2] = answer.len() as u8;
            return self.config[8..8 + answer.len()].copy_from_slice(&answer);
        }
        self.common[offset..offset + bytes].copy_from_slice(&value.to_le_bytes()[..bytes]);
        match offset {
            common::STATUS if value == 0 => self.reset(),
            common::STATUS if self.refuses_features => self.common[common::STATUS] &= !8,
            common::DRIVER_FEATURE => {
                let shift = 32 * u32::from(self.common[common::DRIVER_FEATURE_SELECT] & 1);
                self.accepted = self.accepted & !(0xffff_ffff << shift) | value << shift;
            }
            common::QUEUE_ENABLE => self.enable(),
            common::QUEUE_VECTOR => {
                let queue = self.selected();
                self.vectors.insert(queue, value as u16);
            }
            _ => {}
        }
    }

    fn reset(&mut self) {
        self.common.fill(0);
        self.queues.iter_mut().for_each(|ring| *ring = Ring { limit: ring.limit, ..Ring::default() });
    }

    fn enable(&mut self) {
        let queue = self.selected();
        let size = self.common_word(common::QUEUE_SIZE) as u16;
        let addresses = [common::QUEUE_DESCRIPTORS, common::QUEUE_DRIVER, common::QUEUE_DEVICE];
        let [descriptors, available, used] = addresses.map(|offset| self.common_word(offset));
        assert!(descriptors.is_multiple_of(16) && available.is_multiple_of(2) && used.is_multiple_of(4));
        let ring = &mut self.queues[queue];
        *ring = Ring { size, enabled: true, descriptors, available, used, ..*ring };
    }
}

impl Registers for PlayedWindow {
    fn bytes(&self) -> usize {
        let state = self.device.0.borrow();
        match self.kind {
            Kind::Common => common::BYTES,
            Kind::Notify => state.queues.len() * NOTIFY_MULTIPLIER,
            Kind::Config => state.config.len(),
        }
    }
    fn read8(&self, offset: usize) -> u8 {
        self.device.0.borrow().read(self.kind, offset, 1) as u8
    }
    fn read16(&self, offset: usize) -> u16 {
        self.device.0.borrow().read(self.kind, offset, 2) as u16
    }
    fn read32(&self, offset: usize) -> u32 {
        self.device.0.borrow().read(self.kind, offset, 4) as u32
    }
    fn write8(&mut self, offset: usize, value: u8) {
        self.device.0.borrow_mut().write(self.kind, offset, 1, value.into());
    }
    fn write16(&mut self, offset: usize, value: u16) {
        self.device.0.borrow_mut().write(self.kind, offset, 2, value.into());
    }
    fn write32(&mut self, offset: usize, value: u32) {
        self.device.0.borrow_mut().write(self.kind, offset, 4, value.into());
    }
}

impl Memory for PlayedMemory {
    fn bytes(&self) -> usize {
        self.0.0.borrow().memory.len()
    }
    fn physical(&self, offset: usize) -> u64 {
        PHYSICAL + offset as u64
    }
    fn read16(&self, offset: usize) -> u16 {
        let mut bytes = [0; 2];
        self.copy_out(offset, &mut bytes);
        u16::from_le_bytes(bytes)
    }
    fn write16(&self, offset: usize, value: u16) {
        self.copy_in(offset, &value.to_le_bytes());
    }
    fn copy_out(&self, offset: usize, into: &mut [u8]) {
        into.copy_from_slice(&self.0.0.borrow().memory[offset..offset + into.len()]);
    }
    fn copy_in(&self, offset: usize, from: &[u8]) {
        self.0.0.borrow_mut().memory[offset..offset + from.len()].copy_from_slice(from);
    }
}
