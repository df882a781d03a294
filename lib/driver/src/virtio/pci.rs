//! The modern PCI transport (VIRTIO 1.2, 4.1): registers in windows that capabilities point to, interrupts by MSI-X (PCI 3.0, 6.8.2).

use super::setup::{Rings, Transport};
use crate::{Interrupt, Region, pci};
use abi::Errno;
use alloc::vec::Vec;
use sys::Result;

/// Capability ids.
const VENDOR_CAPABILITY: u8 = 0x09;
const MSIX_CAPABILITY: u8 = 0x11;
/// Kinds of virtio capability.
const COMMON: u32 = 1;
const NOTIFY: u32 = 2;
const DEVICE: u32 = 4;
/// Offsets in a virtio capability.
const KIND: u16 = 3;
const BAR: u16 = 4;
const OFFSET: u16 = 8;
const LENGTH: u16 = 12;
const NOTIFY_MULTIPLIER: u16 = 16;
/// Offsets in the MSI-X capability, the bit that switches it on, and the field with the number of vectors less one.
const MSIX_CONTROL: u16 = 2;
const MSIX_TABLE: u16 = 4;
const MSIX_ENABLE: u32 = 1 << 15;
const MSIX_LAST_VECTOR: u32 = 0x7ff;
/// Bytes of an MSI-X vector: address, data, control.
const VECTOR_BYTES: usize = 16;
/// Vector number for "no vector".
const NO_VECTOR: u16 = 0xffff;

/// Offsets in the common configuration (4.1.4.3), and its length.
pub(super) mod common {
    pub const DEVICE_FEATURE_SELECT: usize = 0;
    pub const DEVICE_FEATURE: usize = 4;
    pub const DRIVER_FEATURE_SELECT: usize = 8;
    pub const DRIVER_FEATURE: usize = 12;
    pub const CONFIG_VECTOR: usize = 16;
    pub const STATUS: usize = 20;
    pub const CONFIG_GENERATION: usize = 21;
    pub const QUEUE_SELECT: usize = 22;
    pub const QUEUE_SIZE: usize = 24;
    pub const QUEUE_VECTOR: usize = 26;
    pub const QUEUE_ENABLE: usize = 28;
    pub const QUEUE_NOTIFY_OFFSET: usize = 30;
    pub const QUEUE_DESCRIPTORS: usize = 32;
    pub const QUEUE_DRIVER: usize = 40;
    pub const QUEUE_DEVICE: usize = 48;
    pub const BYTES: usize = 56;
}

/// Registers by their offset; each access is of the width that the device demands.
pub trait Registers {
    /// Bytes of the window.
    fn bytes(&self) -> usize;
    /// Reads one byte.
    fn read8(&self, offset: usize) -> u8;
    /// Reads two bytes.
    fn read16(&self, offset: usize) -> u16;
    /// Reads four bytes.
    fn read32(&self, offset: usize) -> u32;
    /// Writes one byte.
    fn write8(&mut self, offset: usize, value: u8);
    /// Writes two bytes.
    fn write16(&mut self, offset: usize, value: u16);
    /// Writes four bytes.
    fn write32(&mut self, offset: usize, value: u32);
}

/// A window within a memory or port range of the device.
pub struct Window {
    region: Region,
    start: usize,
    bytes: usize,
}

impl Registers for Window {
    fn bytes(&self) -> usize {
        self.bytes
    }
    fn read8(&self, offset: usize) -> u8 {
        self.region.read(self.start + offset)
    }
    fn read16(&self, offset: usize) -> u16 {
        self.region.read(self.start + offset)
    }
    fn read32(&self, offset: usize) -> u32 {
        self.region.read(self.start + offset)
    }
    fn write8(&mut self, offset: usize, value: u8) {
        self.region.write(self.start + offset, value);
    }
    fn write16(&mut self, offset: usize, value: u16) {
        self.region.write(self.start + offset, value);
    }
    fn write32(&mut self, offset: usize, value: u32) {
        self.region.write(self.start + offset, value);
    }
}

/// A virtio device on the PCI bus.
pub struct PciTransport<R> {
    common: R,
    notify: R,
    device: R,
    notify_multiplier: usize,
    /// MSI-X vectors; queue n has vector n, or the last one.
    vectors: u16,
    /// Notification offset of each enabled queue, by queue number.
    notify_offsets: Vec<usize>,
}

impl<R: Registers> PciTransport<R> {
    /// Makes the transport of a device with these windows.
    ///
    /// # Errors
    /// `EIO`: the common configuration is too short.
    pub fn new(common: R, notify: R, device: R, notify_multiplier: usize, vectors: u16) -> Result<Self> {
        if common.bytes() < common::BYTES {
            return Err(Errno::EIO);
        }
        Ok(PciTransport { common, notify, device, notify_multiplier, vectors, notify_offsets: Vec::new() })
    }

    fn write64(&mut self, offset: usize, value: u64) {
        self.common.write32(offset, value as u32);
        self.common.write32(offset + 4, (value >> 32) as u32);
    }

    /// Writes the vector register at `offset`, if the device uses MSI-X.
    fn set_vector(&mut self, offset: usize, wanted: u16) -> Result<()> {
        let vector = wanted.min(self.vectors.wrapping_sub(1));
        self.common.write16(offset, vector);
        // A device without a free vector reads back `NO_VECTOR`.
        if self.common.read16(offset) == NO_VECTOR && self.vectors > 0 { Err(Errno::EIO) } else { Ok(()) }
    }
}

impl<R: Registers> Transport for PciTransport<R> {
    fn status(&self) -> u8 {
        self.common.read8(common::STATUS)
    }

    fn set_status(&mut self, status: u8) {
        self.common.write8(common::STATUS, status);
    }

    fn route_interrupts(&mut self) -> Result<()> {
        self.set_vector(common::CONFIG_VECTOR, 0)
    }

    fn offered_features(&mut self) -> u64 {
        (0..2).fold(0, |features, half| {
            self.common.write32(common::DEVICE_FEATURE_SELECT, half);
            features | u64::from(self.common.read32(common::DEVICE_FEATURE)) << (32 * half)
        })
    }

    fn accept_features(&mut self, features: u64) {
        for half in 0..2 {
            self.common.write32(common::DRIVER_FEATURE_SELECT, half);
            self.common.write32(common::DRIVER_FEATURE, (features >> (32 * half)) as u32);
        }
    }

    fn queue_limit(&mut self, queue: u16) -> u16 {
        self.common.write16(common::QUEUE_SELECT, queue);
        self.common.read16(common::QUEUE_SIZE)
    }

    fn enable_queue(&mut self, queue: u16, size: u16, rings: Rings) -> Result<()> {
        self.common.write16(common::QUEUE_SELECT, queue);
        self.common.write16(common::QUEUE_SIZE, size);
        self.set_vector(common::QUEUE_VECTOR, queue)?;
        self.write64(common::QUEUE_DESCRIPTORS, rings.descriptors);
        self.write64(common::QUEUE_DRIVER, rings.available);
        self.write64(common::QUEUE_DEVICE, rings.used);
        let index = usize::from(self.common.read16(common::QUEUE_NOTIFY_OFFSET));
        let offset = index.checked_mul(self.notify_multiplier).filter(|offset| offset + 2 <= self.notify.bytes());
        let place = usize::from(queue);
        self.notify_offsets.resize(self.notify_offsets.len().max(place + 1), 0);
        self.notify_offsets[place] = offset.ok_or(Errno::EIO)?;
        self.common.write16(common::QUEUE_ENABLE, 1);
        Ok(())
    }

    fn notify(&mut self, queue: u16) {
        let offset = self.notify_offsets[usize::from(queue)];
        self.notify.write16(offset, queue);
    }

    fn config_generation(&self) -> u8 {
        self.common.read8(common::CONFIG_GENERATION)
    }

    fn config(&self, offset: usize, into: &mut [u8]) -> Result<()> {
        if offset.checked_add(into.len()).is_none_or(|end| end > self.device.bytes()) {
            return Err(Errno::EIO);
        }
        // Fields of the configuration have 32 bits or fewer, or two halves of 32.
        for (at, bytes) in (offset..).step_by(4).zip(into.chunks_mut(4)) {
            match bytes.len() {
                4 if at.is_multiple_of(4) => bytes.copy_from_slice(&self.device.read32(at).to_le_bytes()),
                _ => bytes.iter_mut().zip(at..).for_each(|(byte, at)| *byte = self.device.read8(at)),
            }
        }
        Ok(())
    }

    fn write_config(&mut self, offset: usize, from: &[u8]) -> Result<()> {
        if offset.checked_add(from.len()).is_none_or(|end| end > self.device.bytes()) {
            return Err(Errno::EIO);
        }
        from.iter().zip(offset..).for_each(|(byte, at)| self.device.write8(at, *byte));
        Ok(())
    }
}

/// Opens the driver's own device, with an MSI-X interrupt for each hook from 0 to `hooks` - 1. Queue n interrupts on hook n, or on
/// the last one; changes of the configuration interrupt on hook 0.
///
/// # Errors
/// `ENODEV`: no device; `EIO`: not a modern virtio device, or too few vectors.
pub fn find(hooks: u16) -> Result<(PciTransport<Window>, Vec<Interrupt>)> {
    let common = window(virtio_capability(COMMON)?)?;
    let device = window(virtio_capability(DEVICE)?)?;
    let notify_capability = virtio_capability(NOTIFY)?;
    let notify = window(notify_capability)?;
    let multiplier = pci::read(notify_capability + NOTIFY_MULTIPLIER, 4)? as usize;
    let interrupts = route_interrupts(hooks)?;
    Ok((PciTransport::new(common, notify, device, multiplier, hooks)?, interrupts))
}

/// Returns the configuration offset of the virtio capability of this kind.
fn virtio_capability(kind: u32) -> Result<u16> {
    for capability in pci::capabilities(VENDOR_CAPABILITY)? {
        if pci::read(capability + KIND, 1)? == kind {
            return Ok(capability);
        }
    }
    Err(Errno::EIO)
}

/// Maps the registers that a virtio capability points to.
fn window(capability: u16) -> Result<Window> {
    let bar = pci::read(capability + BAR, 1)? as u8;
    let start = pci::read(capability + OFFSET, 4)? as usize;
    let bytes = pci::read(capability + LENGTH, 4)? as usize;
    let region = map_bar(bar)?;
    if start + bytes > region.len() {
        return Err(Errno::EIO);
    }
    Ok(Window { region, start, bytes })
}

/// Routes the device's first vectors to hooks of this driver.
fn route_interrupts(hooks: u16) -> Result<Vec<Interrupt>> {
    let capability = *pci::capabilities(MSIX_CAPABILITY)?.first().ok_or(Errno::EIO)?;
    let control = pci::read(capability + MSIX_CONTROL, 2)?;
    let table = pci::read(capability + MSIX_TABLE, 4)?;
    let region = map_bar((table & 7) as u8)?;
    let start = (table & !7) as usize;
    let is_long_enough = start + usize::from(hooks) * VECTOR_BYTES <= region.len();
    if control & MSIX_LAST_VECTOR < u32::from(hooks) - 1 || !is_long_enough {
        return Err(Errno::EIO);
    }
    let mut interrupts = Vec::new();
    for hook in 0..hooks {
        let (interrupt, address, data) = Interrupt::message(hook.into())?;
        let entry = start + usize::from(hook) * VECTOR_BYTES;
        region.write(entry, address as u32);
        region.write(entry + 4, (address >> 32) as u32);
        region.write(entry + 8, data);
        region.write(entry + 12, 0u32);
        interrupts.push(interrupt);
    }
    pci::write(capability + MSIX_CONTROL, 2, control | MSIX_ENABLE)?;
    Ok(interrupts)
}

fn map_bar(number: u8) -> Result<Region> {
    let bar = pci::bar(number)?;
    if bar.ports || bar.bytes == 0 {
        return Err(Errno::EIO);
    }
    Region::registers(bar.start, bar.bytes as usize)
}
