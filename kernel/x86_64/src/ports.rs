//! Ports that services reach without the kernel: through the CPU's permission bitmap (`way::DIRECT`). Call right and ranges count as
//! for `DevIo`.
//!
//! The bitmap opens only while a thread runs that has used it: the first port instruction faults and loads the ranges, the switch to
//! another thread closes it again, and that is all that others notice. It is filled anew only when another thread than before uses it.

use crate::descriptors::Descriptors;
use abi::{
    call::KernelCall,
    endpoint::SERVICE_SLOTS,
    privilege::{PortRange, Privileges, device, way},
};

/// Whose ports the bitmap opens.
pub struct Ports {
    /// One bit a service: it has used ports directly.
    users: u128,
    /// Whose ranges are in the bitmap.
    loaded: Option<usize>,
    /// These ranges; the others are empty.
    ranges: [Option<PortRange>; 16],
    /// The CPU looks at the bitmap.
    open: bool,
}

impl Ports {
    /// Nobody's.
    pub const fn new() -> Self {
        Ports { users: 0, loaded: None, ranges: [None; 16], open: false }
    }

    /// Is this thread's use of ports to be prepared each time it runs?
    pub fn is_user(&self, slot: usize) -> bool {
        slot < SERVICE_SLOTS && self.users >> slot & 1 != 0
    }

    /// Are ports open that the next thread must not have?
    pub fn are_open(&self) -> bool {
        self.open
    }

    /// This thread is about to run in user mode.
    pub fn enter(&mut self, descriptors: &mut Descriptors, slot: usize, privileges: &Privileges) {
        let open = self.is_user(slot);
        if open && self.loaded != Some(slot) {
            self.load(descriptors, slot, privileges);
        }
        self.set_open(descriptors, open);
    }

    /// Opens the ports of the thread that runs, for its first use of them. False: it has none, or they are open.
    pub fn open(&mut self, descriptors: &mut Descriptors, slot: usize, privileges: &Privileges) -> bool {
        let direct = privileges.io_way == way::DIRECT && privileges.kernel_calls & KernelCall::DevIo.bit() != 0;
        if !direct || slot >= SERVICE_SLOTS || self.open {
            return false;
        }
        self.users |= 1 << slot;
        self.enter(descriptors, slot, privileges);
        true
    }

    /// The rights of this thread have changed: it starts without open ports.
    pub fn forget(&mut self, descriptors: &mut Descriptors, slot: usize) {
        if !self.is_user(slot) {
            return;
        }
        self.users &= !(1 << slot);
        if self.loaded == Some(slot) {
            self.unload(descriptors);
            self.set_open(descriptors, false);
        }
    }

    fn load(&mut self, descriptors: &mut Descriptors, slot: usize, privileges: &Privileges) {
        self.unload(descriptors);
        let count = (privileges.port_count as usize).min(privileges.ports.len());
        let granted = privileges.ports[..count].iter().zip(privileges.devices);
        for (place, (range, device)) in self.ranges.iter_mut().zip(granted) {
            if device == device::MACHINE {
                *place = Some(*range);
                descriptors.set_ports(range.first, range.last, true);
            }
        }
        self.loaded = Some(slot);
    }

    fn unload(&mut self, descriptors: &mut Descriptors) {
        for range in self.ranges.iter_mut().filter_map(Option::take) {
            descriptors.set_ports(range.first, range.last, false);
        }
        self.loaded = None;
    }

    fn set_open(&mut self, descriptors: &mut Descriptors, open: bool) {
        if open != self.open {
            self.open = open;
            descriptors.open_ports(open);
        }
    }
}
