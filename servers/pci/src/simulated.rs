//! Configuration space played for tests: functions with BARs that measure as real ones do.

use crate::config::{Address, ConfigSpace, register};
use std::collections::BTreeMap;

#[derive(Clone)]
struct Simulated {
    bytes: [u8; 256],
    /// Writable bits of each BAR register.
    masks: [u32; 6],
}

/// A machine with the functions that were added.
#[derive(Default)]
pub struct Machine {
    functions: BTreeMap<Address, Simulated>,
    /// A BAR was written while its function decoded.
    pub moved_while_decoding: bool,
    /// A function that decoded was told not to.
    pub has_stopped_one: bool,
    /// pci dies before the write after these.
    pub writes_left: Option<usize>,
}

impl Machine {
    /// Adds a function.
    pub fn add(&mut self, address: Address, vendor: u16, device: u16) {
        let mut bytes = [0; 256];
        bytes[..2].copy_from_slice(&vendor.to_le_bytes());
        bytes[2..4].copy_from_slice(&device.to_le_bytes());
        self.functions.insert(address, Simulated { bytes, masks: [0; 6] });
    }

    /// Adds a bridge (vendor and device 1) to a bus.
    pub fn add_bridge(&mut self, address: Address, bus: u8) {
        self.add(address, 1, 1);
        self.set(address, register::HEADER_TYPE, 1);
        self.set(address, register::SECONDARY_BUS, bus);
    }

    /// Sets a byte, whatever it is.
    pub fn set(&mut self, address: Address, offset: u8, value: u8) {
        self.function(address).bytes[offset as usize] = value;
    }

    /// Gives a function a BAR register with this value and these writable bits.
    pub fn set_bar(&mut self, address: Address, bar: usize, value: u32, mask: u32) {
        let function = self.function(address);
        function.masks[bar] = mask;
        let at = 16 + 4 * bar;
        function.bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
    }

    fn function(&mut self, address: Address) -> &mut Simulated {
        self.functions.get_mut(&address).expect("was added")
    }
}

impl ConfigSpace for Machine {
    fn read32(&mut self, address: Address, offset: u8) -> u32 {
        let Some(function) = self.functions.get(&address) else { return !0 };
        let at = offset as usize;
        u32::from_le_bytes(function.bytes[at..at + 4].try_into().expect("are four"))
    }

    fn write(&mut self, address: Address, offset: u8, width: u8, value: u32) {
        match &mut self.writes_left {
            Some(0) => return,
            Some(left) => *left -= 1,
            None => {}
        }
        let Some(function) = self.functions.get_mut(&address) else { return };
        let at = offset as usize;
        self.has_stopped_one |= offset == register::COMMAND && function.bytes[4] & 3 != 0 && value & 3 == 0;
        let bar = (at.wrapping_sub(16)) / 4;
        let mut value = value;
        if at >= 16 && bar < 6 {
            self.moved_while_decoding |= function.bytes[4] & 3 != 0;
            let old = u32::from_le_bytes(function.bytes[at..at + 4].try_into().expect("are four"));
            value = value & function.masks[bar] | old & !function.masks[bar];
        }
        function.bytes[at..at + width as usize].copy_from_slice(&value.to_le_bytes()[..width as usize]);
    }
}
