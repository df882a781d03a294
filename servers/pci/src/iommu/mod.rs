//! The IOMMU: a device reaches the DMA memory of its driver, and no other memory (Intel, "Virtualization Technology for Directed I/O",
//! revision 3).
//!
//! `tables` says what each device reaches, `unit` is the hardware that obeys. Both outlive a death of pci: the tables lie in memory that
//! the successor gets as it was, and the unit goes on translating. A device without driver reaches nothing.

mod tables;
mod unit;

use crate::config::Address;
use abi::vm::DmaBlock;
use abi::{Endpoint, Errno};
use driver::Region;
use sys::{Result, ipc};
use tables::Tables;
use unit::Unit;

/// Bytes of the unit's registers.
const REGISTER_BYTES: usize = 4096;
/// Bytes of the tables: `dma_bytes` of the system file is this. A device takes three or four pages, and one for each 2 MiB in which its
/// driver has memory.
const TABLE_BYTES: usize = 0x8_0000;

/// A unit and its tables.
pub struct Iommu {
    unit: Unit<Region>,
    tables: Tables<Region>,
}

impl Iommu {
    /// Starts the unit whose registers are at this physical address, or takes over one that runs with the predecessor's tables.
    ///
    /// # Errors
    /// `ENODEV`: there is none; `EOPNOTSUPP`: it cannot do what is needed; `EIO`: it does not obey; `EPERM`, `ENOMEM`: no memory for tables.
    pub fn start(registers: u64) -> Result<Self> {
        let mut unit = Unit::find(Region::registers(registers, REGISTER_BYTES)?)?;
        let tables = Tables::open(Region::tables(TABLE_BYTES)?, unit.levels())?;
        unit.enable(tables.root())?;
        Ok(Iommu { unit, tables })
    }

    /// From now on this device, and no other, reaches the memory of the driver in `slot`.
    ///
    /// # Errors
    /// `ENOMEM`: the tables are full; `EIO`.
    pub fn attach(&mut self, device: Address, slot: usize) -> Result<()> {
        if self.tables.attach(device, slot)? { self.unit.invalidate() } else { Ok(()) }
    }

    /// Lets the device of the driver in `slot` reach all memory that vm has given to the slot for DMA.
    ///
    /// # Errors
    /// As [`Iommu::attach`].
    pub fn share(&mut self, slot: usize) -> Result<()> {
        for index in 0.. {
            let request = DmaBlock { slot: slot as u64, index };
            match ipc::call_repeating(Endpoint::VM, &request.message()).and_then(|reply| DmaBlock::results(&reply)) {
                Ok((physical, bytes)) => self.tables.map(slot, physical, bytes)?,
                Err(Errno::ENOENT) => break,
                Err(error) => return Err(error),
            }
        }
        self.unit.invalidate()
    }
}
