//! pci: finds the devices on the PCI buses and gives each driver its own, and nothing else.
//!
//! `config` reaches configuration space, `scan` finds functions, `bars` measures and places their ranges, `ide` knows those that
//! controllers of disks have without saying so, `owners` decides who may
//! touch what; this file speaks with rs and the drivers. A device decodes addresses only while a driver owns it.
//!
//! pci keeps nothing: after its death the successor scans again, and rs says again whose device is whose. It waits for nobody.
#![cfg_attr(not(test), no_std, no_main)]
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_macros))]

extern crate alloc;

mod bars;
#[cfg(test)]
mod bars_tests;
mod config;
mod ide;
mod owners;
mod scan;
#[cfg(test)]
mod simulated;

use abi::endpoint::slot;
use abi::pci::{Assign, Bar, OwnBar, ReadConfig, Request, WriteConfig};
use abi::{Errno, Message};
use config::{ConfigPorts, ConfigSpace};
use owners::Owners;
use server::{Service, SyncStep};
use sys::Result;

sys::program!(main);

fn main(_: sys::Start) {
    server::run(&mut Pci { owners: Owners::new(ConfigPorts) })
}

struct Pci<C> {
    owners: Owners<C>,
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
            Request::Assign(Assign { slot, vendor, device, index }) => {
                let owner = usize::try_from(slot).map_err(|_| Errno::EINVAL)?;
                let (address, lines) = self.owners.assign(owner, vendor as u16, device as u16, index)?;
                Ok(Assign::reply(message, 0, address.0.into(), u16::from_le_bytes(lines).into()))
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
        }
    }
}
