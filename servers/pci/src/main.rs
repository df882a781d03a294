//! pci: finds the devices on the PCI buses and gives each driver its own, and nothing else.
//!
//! `config` reaches configuration space, `scan` finds functions, `bars` measures and places their ranges, `ide` knows those that
//! controllers of disks have without saying so, `owners` decides who may
//! touch what, and `iommu` what memory the devices reach; this file speaks with rs and the drivers. A device decodes addresses only
//! while a driver owns it.
//!
//! pci keeps nothing but the IOMMU's tables: after its death the successor scans again, and rs says again whose device is whose. It
//! waits for nobody but vm.
#![cfg_attr(not(test), no_std, no_main)]
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_macros))]

extern crate alloc;

mod bars;
#[cfg(test)]
mod bars_tests;
mod config;
mod ide;
mod iommu;
mod owners;
mod scan;
#[cfg(test)]
mod simulated;

use abi::endpoint::slot;
use abi::pci::{Assign, Bar, OwnBar, ReadConfig, Request, ShareDma, WriteConfig};
use abi::{Errno, Message};
use bars::Sizes;
use config::{Address, ConfigPorts, ConfigSpace};
use iommu::Iommu;
use owners::{Assigned, Owners};
use server::{Service, SyncStep};
use sys::Result;

sys::program!(main);

/// Argument with the physical address of an IOMMU's registers.
const IOMMU: &str = "iommu";

fn main(start: sys::Start) {
    match start.argument(IOMMU).map(start_iommu).transpose() {
        Ok(iommu) => server::run(&mut Pci { owners: Owners::new(ConfigPorts), iommu }),
        Err(error) => server::not_ready(error),
    }
}

/// A system that asks for an IOMMU does not run without.
fn start_iommu(registers: &str) -> Result<Iommu> {
    let registers = registers.strip_prefix("0x").and_then(|digits| u64::from_str_radix(digits, 16).ok());
    let iommu = Iommu::start(registers.ok_or(Errno::EINVAL)?);
    match &iommu {
        Ok(_) => sys::log!("pci: devices reach the DMA memory of their drivers and nothing else"),
        Err(error) => sys::log!("pci: the IOMMU does not start: {error}"),
    }
    iommu
}

struct Pci<C> {
    owners: Owners<C>,
    /// Without one, devices reach all memory.
    iommu: Option<Iommu>,
}

impl<C: ConfigSpace> Service for Pci<C> {
    fn request(&mut self, message: &Message) -> SyncStep<Message> {
        SyncStep::Done(self.answer(message).unwrap_or_else(|error| message.reply(Err(error))))
    }
}

impl<C: ConfigSpace> Pci<C> {
    fn answer(&mut self, message: &Message) -> Result<Message> {
        let requester = message.source.slot();
        match Request::decode(message).ok_or(Errno::ENOSYS)? {
            Request::Assign(_) | Request::Bar(_) if requester != slot::RS => Err(Errno::EPERM),
            Request::Assign(Assign { slot, vendor, device, index, sizes }) => {
                let owner = usize::try_from(slot).map_err(|_| Errno::EINVAL)?;
                let kind = (vendor as u16, device as u16);
                let Assigned { address, lines, sizes } =
                    self.owners.assign(owner, kind, index, Sizes::from_word(sizes))?;
                self.attach(address, owner)?;
                Ok(Assign::reply(message, 0, address.0.into(), u16::from_le_bytes(lines).into(), sizes.word()))
            }
            Request::Bar(Bar { slot, bar }) => {
                let range = self.owners.range(usize::try_from(slot).map_err(|_| Errno::EINVAL)?, bar)?;
                Ok(Bar::reply(message, 0, range.start, range.bytes, range.ports))
            }
            Request::OwnBar(OwnBar { bar }) => {
                let range = self.owners.range(requester, bar)?;
                Ok(OwnBar::reply(message, 0, range.start, range.bytes, range.ports))
            }
            Request::ReadConfig(ReadConfig { offset, width }) => {
                let value = self.owners.read(requester, offset, width)?;
                Ok(ReadConfig::reply(message, 0, value.into()))
            }
            Request::WriteConfig(WriteConfig { offset, width, value }) => {
                self.owners.write(requester, offset, width, value as u32)?;
                Ok(message.reply(Ok(0)))
            }
            Request::ShareDma(ShareDma {}) => {
                self.owners.device_of(requester)?;
                self.share(requester)?;
                Ok(message.reply(Ok(0)))
            }
        }
    }

    fn attach(&mut self, device: Address, slot: usize) -> Result<()> {
        self.iommu.as_mut().map_or(Ok(()), |iommu| iommu.attach(device, slot))
    }

    fn share(&mut self, slot: usize) -> Result<()> {
        self.iommu.as_mut().map_or(Ok(()), |iommu| iommu.share(slot))
    }
}
