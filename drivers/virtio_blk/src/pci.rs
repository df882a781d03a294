//! Where a virtio device's registers are on the PCI bus (VIRTIO 1.2, 4.1.4), and its interrupt by MSI-X (PCI 3.0, 6.8.2).

use crate::device::Registers;
use abi::Errno;
use driver::{Interrupt, Region, pci};

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
const NOTIFY_MULTIPLIER: u16 = 16;
/// In the common configuration: where queue 0 is notified.
const QUEUE_NOTIFY_OFFSET: usize = 30;
/// Offsets in the MSI-X capability, and the bit that switches it on.
const MSIX_CONTROL: u16 = 2;
const MSIX_TABLE: u16 = 4;
const MSIX_ENABLE: u32 = 1 << 15;
/// The hook of the one interrupt.
const HOOK: u32 = 0;

/// The registers of the driver's own device.
pub struct PciRegisters {
    common: Window,
    device: Window,
    notify: Window,
    interrupt: Interrupt,
}

/// A part of a BAR.
struct Window {
    region: Region,
    start: usize,
}

impl PciRegisters {
    /// Finds the registers and routes the interrupt. `ENODEV`: there is no device; `EIO`: it is no modern virtio device.
    pub fn find() -> Result<Self, Errno> {
        let common = window(virtio_capability(COMMON)?)?;
        let device = window(virtio_capability(DEVICE)?)?;
        let notify = notify_window(&common)?;
        let interrupt = route_interrupt()?;
        pci::enable_bus_master()?;
        Ok(PciRegisters { common, device, notify, interrupt })
    }
}

impl Registers for PciRegisters {
    fn read<const N: usize>(&self, offset: usize) -> [u8; N] {
        let at = self.common.start + offset;
        let value = match N {
            1 => self.common.region.read::<u8>(at).into(),
            2 => self.common.region.read::<u16>(at).into(),
            _ => self.common.region.read::<u32>(at),
        };
        let bytes = value.to_le_bytes();
        core::array::from_fn(|index| bytes[index])
    }

    fn write<const N: usize>(&mut self, offset: usize, value: [u8; N]) {
        let at = self.common.start + offset;
        let word = value.iter().rev().fold(0, |word, &byte| word << 8 | u32::from(byte));
        match N {
            1 => self.common.region.write(at, word as u8),
            2 => self.common.region.write(at, word as u16),
            _ => self.common.region.write(at, word),
        }
    }

    fn capacity(&self) -> u64 {
        let half = |at| u64::from(self.device.region.read::<u32>(self.device.start + at));
        half(0) | half(4) << 32
    }

    fn notify(&mut self) {
        self.notify.region.write(self.notify.start, 0u16);
    }

    fn wait(&mut self) -> Result<(), Errno> {
        self.interrupt.wait()?;
        self.interrupt.done()
    }
}

/// The configuration offset of the virtio capability of this kind.
fn virtio_capability(kind: u32) -> Result<u16, Errno> {
    for capability in pci::capabilities(VENDOR_CAPABILITY)? {
        if pci::read(capability + KIND, 1)? == kind {
            return Ok(capability);
        }
    }
    Err(Errno::EIO)
}

/// The registers that a virtio capability points to.
fn window(capability: u16) -> Result<Window, Errno> {
    let bar = pci::read(capability + BAR, 1)? as u8;
    let start = pci::read(capability + OFFSET, 4)? as usize;
    Ok(Window { region: map_bar(bar)?, start })
}

fn notify_window(common: &Window) -> Result<Window, Errno> {
    let capability = virtio_capability(NOTIFY)?;
    let mut notify = window(capability)?;
    let multiplier = pci::read(capability + NOTIFY_MULTIPLIER, 4)? as usize;
    // Queue 0 is selected after a reset, and no other is ever selected.
    let index = usize::from(common.region.read::<u16>(common.start + QUEUE_NOTIFY_OFFSET));
    notify.start += index * multiplier;
    Ok(notify)
}

/// Makes the device's vector 0 an interrupt of this driver.
fn route_interrupt() -> Result<Interrupt, Errno> {
    let capability = *pci::capabilities(MSIX_CAPABILITY)?.first().ok_or(Errno::EIO)?;
    let table = pci::read(capability + MSIX_TABLE, 4)?;
    let region = map_bar((table & 7) as u8)?;
    let entry = (table & !7) as usize;
    let (interrupt, address, data) = Interrupt::message(HOOK)?;
    region.write(entry, address as u32);
    region.write(entry + 4, (address >> 32) as u32);
    region.write(entry + 8, data);
    region.write(entry + 12, 0u32);
    let control = pci::read(capability + MSIX_CONTROL, 2)?;
    pci::write(capability + MSIX_CONTROL, 2, control | MSIX_ENABLE)?;
    Ok(interrupt)
}

fn map_bar(number: u8) -> Result<Region, Errno> {
    let bar = pci::bar(number)?;
    if bar.ports || bar.bytes == 0 {
        return Err(Errno::EIO);
    }
    Region::registers(bar.start, bar.bytes as usize)
}
