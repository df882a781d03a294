//! The IDE controller: its ports, interrupts and bus master (PCI IDE Controller Specification, 1.0).
//!
//! A PCI controller uses either the legacy ports and interrupts of the PC or ranges of its own; pci returns the right ones.
//! Without a PCI controller the driver tries the legacy ports, which the system file must then assign to it.

use crate::channel::COMMAND_BYTES;
use crate::disks::CHANNELS;
use crate::dma;
use crate::registers::{BusMaster, Registers, register};
use abi::Errno;
use driver::pci::{self, Bar};
use driver::{Interrupt, Ports, Region};
use server::Inbox;

/// Offset of the data in the DMA memory of a channel, behind the table.
pub const DATA: usize = 4096;

/// Ports of a channel's command block.
const COMMAND_PORTS: u16 = 8;
/// The range with the control register of a channel in native mode has four ports; the register is the third.
const NATIVE_CONTROL_OFFSET: u64 = 2;
/// Range number of the bus masters, and ports of each.
const BUS_MASTERS: u8 = 4;
const BUS_MASTER_PORTS: u16 = 8;
/// Legacy resources: command block, control register, interrupt.
const LEGACY: [(u16, u16, u8); CHANNELS] = [(0x1f0, 0x3f6, 14), (0x170, 0x376, 15)];
/// Configuration space: programming interface, whose bit 0 or 2 says that the first or second channel is in native mode.
const INTERFACE: u16 = 9;
/// Marks the last region of a table.
const LAST_REGION: u32 = 1 << 31;

/// A channel's command block, control register and interrupt.
pub struct ChannelPorts {
    command: Ports,
    control: Ports,
    interrupt: Interrupt,
    inbox: Inbox,
}

impl Drop for ChannelPorts {
    /// A channel without disks is not served: its hook would mask the line that both channels of a controller in native mode share.
    fn drop(&mut self) {
        if let Err(error) = self.interrupt.release() {
            sys::log!("interrupt not released: {error}; the other channel may get none");
        }
    }
}

/// A channel's bus master.
pub struct Master {
    ports: Ports,
    memory: Region,
}

/// Opens both channels, with their bus masters if present and `by_dma` is set.
///
/// # Errors
/// `ECALLDENIED`: an interrupt that is not assigned to the driver; `ENOMEM`; others of pci.
pub fn channels(inbox: &Inbox, by_dma: bool) -> Result<[(ChannelPorts, Option<Master>); CHANNELS], Errno> {
    let is_pci = match pci::read(INTERFACE, 1) {
        Ok(_) => true,
        Err(Errno::ENODEV) => false,
        Err(error) => return Err(error),
    };
    let first = channel(inbox, 0, is_pci, by_dma)?;
    let second = channel(inbox, 1, is_pci, by_dma)?;
    Ok([first, second])
}

fn channel(inbox: &Inbox, index: usize, is_pci: bool, by_dma: bool) -> Result<(ChannelPorts, Option<Master>), Errno> {
    let ports = if is_pci && is_native(index)? { native_ports(inbox, index)? } else { legacy_ports(inbox, index)? };
    let master = if is_pci && by_dma { master(index)? } else { None };
    Ok((ports, master))
}

fn is_native(index: usize) -> Result<bool, Errno> {
    Ok(pci::read(INTERFACE, 1)? & 1 << (2 * index) != 0)
}

fn legacy_ports(inbox: &Inbox, index: usize) -> Result<ChannelPorts, Errno> {
    let (command, control, line) = LEGACY[index];
    Ok(ChannelPorts {
        command: Ports::new(command, COMMAND_PORTS),
        control: Ports::new(control, 1),
        interrupt: Interrupt::edge(line, index as u32)?,
        inbox: inbox.clone(),
    })
}

fn native_ports(inbox: &Inbox, index: usize) -> Result<ChannelPorts, Errno> {
    let command = pci::bar(2 * index as u8)?;
    let control = pci::bar(2 * index as u8 + 1)?;
    Ok(ChannelPorts {
        command: Ports::new(command.start as u16, COMMAND_PORTS),
        control: Ports::new((control.start + NATIVE_CONTROL_OFFSET) as u16, 1),
        interrupt: Interrupt::level(pci::interrupt_line()?, index as u32)?,
        inbox: inbox.clone(),
    })
}

fn master(index: usize) -> Result<Option<Master>, Errno> {
    let Bar { start, bytes, ports } = pci::bar(BUS_MASTERS)?;
    if !ports || bytes < u64::from(BUS_MASTER_PORTS) * CHANNELS as u64 {
        return Ok(None);
    }
    let memory = pci::dma(DATA + COMMAND_BYTES)?;
    let ports = Ports::new(start as u16 + BUS_MASTER_PORTS * index as u16, BUS_MASTER_PORTS);
    Ok(Some(Master { ports, memory }))
}

impl Registers for ChannelPorts {
    fn read(&mut self, register: u16) -> Result<u8, Errno> {
        self.command.read8(register)
    }

    fn write(&mut self, register: u16, value: u8) -> Result<(), Errno> {
        self.command.write8(register, value)
    }

    fn alternate_status(&mut self) -> Result<u8, Errno> {
        self.control.read8(0)
    }

    fn write_control(&mut self, value: u8) -> Result<(), Errno> {
        self.control.write8(0, value)
    }

    fn read_data(&mut self, into: &mut [u8]) -> Result<(), Errno> {
        self.command.read_string16(register::DATA, into)
    }

    fn write_data(&mut self, from: &[u8]) -> Result<(), Errno> {
        self.command.write_string16(register::DATA, from)
    }

    fn unmask_interrupt(&mut self) {
        self.interrupt.done().expect("the hook is registered as long as the channel exists");
    }

    fn sleep_ns(&mut self, duration_ns: u64) {
        self.inbox.sleep_ns(duration_ns);
    }

    fn now_ns(&self) -> u64 {
        sys::time::now_ns()
    }
}

impl Master {
    /// Table and data.
    pub fn memory(&self) -> &Region {
        &self.memory
    }
}

impl BusMaster for Master {
    fn read(&mut self, register: u16) -> Result<u8, Errno> {
        self.ports.read8(register)
    }

    fn write(&mut self, register: u16, value: u8) -> Result<(), Errno> {
        self.ports.write8(register, value)
    }

    fn set_table(&mut self, regions: &[(u32, u16)]) -> Result<(), Errno> {
        for (index, (address, bytes)) in regions.iter().enumerate() {
            let last = if index + 1 == regions.len() { LAST_REGION } else { 0 };
            self.memory.write(8 * index, *address);
            self.memory.write(8 * index + 4, u32::from(*bytes) | last);
        }
        let table = u32::try_from(self.memory.physical(0)).map_err(|_| Errno::EIO)?;
        self.ports.write32(dma::register::TABLE, table)
    }

    fn data_address(&self) -> u64 {
        self.memory.physical(DATA)
    }
}
