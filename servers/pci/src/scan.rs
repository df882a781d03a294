//! Finding every function on every bus that the firmware has set up.

use crate::config::{Address, ConfigSpace, register};
use alloc::vec::Vec;

/// Devices of a bus, functions of a device.
const DEVICES: u8 = 32;
const FUNCTIONS: u8 = 8;
/// `HEADER_TYPE`: the device has more functions than the first.
const MULTI_FUNCTION: u32 = 0x80;
/// `HEADER_TYPE`, lower bits: a bridge to another bus.
const BRIDGE: u32 = 1;
/// Vendor of what is not there.
const NO_VENDOR: u16 = 0xffff;

/// One function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Function {
    /// Where it is.
    pub address: Address,
    /// Who made it.
    pub vendor: u16,
    /// What it is.
    pub device: u16,
    /// It is a bridge, which belongs to nobody.
    pub bridge: bool,
}

/// All functions, bus by bus.
pub fn scan(config: &mut impl ConfigSpace) -> Vec<Function> {
    let mut found = Vec::new();
    let mut buses = Vec::from([0]);
    let mut next = 0;
    while let Some(&bus) = buses.get(next) {
        next += 1;
        for device in 0..DEVICES {
            scan_device(config, bus, device, &mut found, &mut buses);
        }
    }
    found
}

#[expect(clippy::disallowed_methods, reason = "at the start")]
fn scan_device(config: &mut impl ConfigSpace, bus: u8, device: u8, found: &mut Vec<Function>, buses: &mut Vec<u8>) {
    let mut functions = 1;
    let mut at = 0;
    while at < functions {
        let address = Address::new(bus, device, at);
        at += 1;
        let id = config.read32(address, register::ID);
        let vendor = id as u16;
        if vendor == NO_VENDOR {
            continue;
        }
        let header = config.read(address, register::HEADER_TYPE, 1);
        if header & MULTI_FUNCTION != 0 {
            functions = FUNCTIONS;
        }
        let bridge = header & !MULTI_FUNCTION == BRIDGE;
        found.push(Function { address, vendor, device: (id >> 16) as u16, bridge });
        if bridge {
            add_bus(config.read(address, register::SECONDARY_BUS, 1) as u8, buses);
        }
    }
}

/// Bus 0 is where the scan began; a bridge that names it has not been set up.
#[expect(clippy::disallowed_methods, reason = "at the start")]
fn add_bus(bus: u8, buses: &mut Vec<u8>) {
    if bus != 0 && !buses.contains(&bus) {
        buses.push(bus);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulated::Machine;

    #[test]
    fn functions_behind_bridges_are_found() {
        let mut machine = Machine::default();
        machine.add(Address::new(0, 0, 0), 0x8086, 0x29c0);
        machine.add_bridge(Address::new(0, 1, 0), 1);
        machine.add_bridge(Address::new(1, 0, 0), 2);
        machine.add(Address::new(2, 31, 0), 0x1af4, 0x1042);
        let found: Vec<_> = scan(&mut machine).iter().map(|function| function.device).collect();
        assert_eq!(found, [0x29c0, 1, 1, 0x1042]);
    }

    #[test]
    fn functions_above_the_first_are_looked_for_only_where_there_are_some() {
        let mut machine = Machine::default();
        machine.add(Address::new(0, 3, 0), 0x8086, 1);
        machine.add(Address::new(0, 3, 2), 0x8086, 2);
        assert_eq!(scan(&mut machine).len(), 1);
        machine.set(Address::new(0, 3, 0), register::HEADER_TYPE, 0x80);
        assert_eq!(scan(&mut machine).len(), 2);
    }

    #[test]
    fn bridges_in_a_circle_end() {
        let mut machine = Machine::default();
        machine.add_bridge(Address::new(0, 1, 0), 1);
        machine.add_bridge(Address::new(1, 0, 0), 1);
        machine.add_bridge(Address::new(1, 1, 0), 0);
        assert_eq!(scan(&mut machine).len(), 3);
    }
}
