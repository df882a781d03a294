//! Ports that services reach without the kernel: through the CPU's permission bitmap (`way::DIRECT`). Call right and ranges count as
//! for `DevIo`.
//!
//! The bitmap opens only while a thread runs that has used it: the first port instruction faults and loads the ranges, the switch to
//! another thread closes it again, and that is all that others notice. It is filled anew only when another thread than before uses it.

use abi::{
    call::KernelCall, endpoint::SERVICE_SLOTS, privilege::PortRange, privilege::Privileges, privilege::device,
    privilege::way,
};

/// The CPU's permission bitmap.
pub trait Bitmap {
    /// Opens or closes a range of ports in it, both ends included.
    fn set_ports(&mut self, first: u16, last: u16, open: bool);
    /// Lets user mode use the ports that are open in it, or none.
    fn use_bitmap(&mut self, on: bool);
}

/// Whose ports the bitmap opens.
pub struct Ports {
    /// By service: it has used ports directly.
    users: [bool; SERVICE_SLOTS],
    /// Whose ranges are in the bitmap.
    loaded: Option<usize>,
    /// These ranges; the others are empty.
    ranges: [Option<PortRange>; 16],
    /// The CPU looks at the bitmap.
    open: bool,
}

impl Ports {
    /// Nobody's.
    pub const NEW: Self = Ports { users: [false; SERVICE_SLOTS], loaded: None, ranges: [None; 16], open: false };

    /// Has this thread used ports of its own?
    pub fn is_user(&self, slot: usize) -> bool {
        self.users.get(slot) == Some(&true)
    }

    /// Are ports open that the next thread must not have?
    pub fn are_open(&self) -> bool {
        self.open
    }

    /// This thread is about to run in user mode.
    #[inline(never)]
    pub fn enter(&mut self, bitmap: &mut impl Bitmap, slot: usize, privileges: &Privileges) {
        let open = self.is_user(slot);
        if open && self.loaded != Some(slot) {
            self.load(bitmap, slot, privileges);
        }
        self.set_open(bitmap, open);
    }

    /// Opens the ports of the thread that runs, for its first use of them. False: it has none, or they are open.
    pub fn open(&mut self, bitmap: &mut impl Bitmap, slot: usize, privileges: &Privileges) -> bool {
        let direct = privileges.io_way == way::DIRECT && privileges.kernel_calls & KernelCall::DevIo.bit() != 0;
        if !direct || slot >= SERVICE_SLOTS || self.open {
            return false;
        }
        self.users[slot] = true;
        self.enter(bitmap, slot, privileges);
        true
    }

    /// The rights of this thread have changed: it starts without open ports.
    pub fn forget(&mut self, bitmap: &mut impl Bitmap, slot: usize) {
        if !self.is_user(slot) {
            return;
        }
        self.users[slot] = false;
        if self.loaded == Some(slot) {
            self.unload(bitmap);
            self.set_open(bitmap, false);
        }
    }

    fn load(&mut self, bitmap: &mut impl Bitmap, slot: usize, privileges: &Privileges) {
        self.unload(bitmap);
        let count = (privileges.port_count as usize).min(privileges.ports.len());
        let granted = privileges.ports[..count].iter().zip(privileges.devices);
        for (place, (range, device)) in self.ranges.iter_mut().zip(granted) {
            if device == device::MACHINE {
                *place = Some(*range);
                bitmap.set_ports(range.first, range.last, true);
            }
        }
        self.loaded = Some(slot);
    }

    fn unload(&mut self, bitmap: &mut impl Bitmap) {
        for range in self.ranges.iter_mut().filter_map(Option::take) {
            bitmap.set_ports(range.first, range.last, false);
        }
        self.loaded = None;
    }

    fn set_open(&mut self, bitmap: &mut impl Bitmap, open: bool) {
        if open != self.open {
            self.open = open;
            bitmap.use_bitmap(open);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    const UART: usize = 20;
    const ATA: usize = 21;
    const OTHER: usize = 22;

    /// What user mode may use.
    #[derive(Default)]
    struct Cpu {
        open: BTreeSet<u16>,
        used: bool,
        stores: u32,
    }

    impl Bitmap for Cpu {
        fn set_ports(&mut self, first: u16, last: u16, open: bool) {
            for port in first..=last {
                if open {
                    self.open.insert(port)
                } else {
                    self.open.remove(&port)
                };
            }
        }
        fn use_bitmap(&mut self, on: bool) {
            self.used = on;
            self.stores += 1;
        }
    }

    impl Cpu {
        fn allows(&self, port: u16) -> bool {
            self.used && self.open.contains(&port)
        }
    }

    fn direct(first: u16, last: u16) -> Privileges {
        let mut rights = Privileges { io_way: way::DIRECT, kernel_calls: KernelCall::DevIo.bit(), ..Privileges::NONE };
        rights.ports[0] = PortRange { first, last };
        rights.port_count = 1;
        rights
    }

    #[test]
    fn ports_open_at_the_first_use_and_close_at_the_switch() {
        let (mut ports, mut cpu, rights) = (Ports::NEW, Cpu::default(), direct(0x3f8, 0x3ff));
        ports.enter(&mut cpu, UART, &rights);
        assert!(!cpu.allows(0x3f8), "not before it is used");
        assert!(ports.open(&mut cpu, UART, &rights));
        assert!(cpu.allows(0x3f8) && cpu.allows(0x3ff) && !cpu.allows(0x400) && !cpu.allows(0x3f7));
        assert!(!ports.open(&mut cpu, UART, &rights), "a second fault is about another port");
        ports.enter(&mut cpu, OTHER, &Privileges::NONE);
        assert!(!cpu.allows(0x3f8));
        ports.enter(&mut cpu, UART, &rights);
        assert!(cpu.allows(0x3f8), "without a fault");
    }

    #[test]
    fn two_drivers_never_see_each_others_ports() {
        let (mut ports, mut cpu) = (Ports::NEW, Cpu::default());
        let (uart, ata) = (direct(0x3f8, 0x3ff), direct(0x1f0, 0x1f7));
        ports.open(&mut cpu, UART, &uart);
        ports.enter(&mut cpu, ATA, &ata);
        assert!(ports.open(&mut cpu, ATA, &ata));
        assert!(cpu.allows(0x1f0) && !cpu.allows(0x3f8));
        ports.enter(&mut cpu, UART, &uart);
        assert!(cpu.allows(0x3f8) && !cpu.allows(0x1f0));
    }

    #[test]
    fn narrowed_rights_count_at_once() {
        let (mut ports, mut cpu) = (Ports::NEW, Cpu::default());
        ports.open(&mut cpu, UART, &direct(0x3f8, 0x3ff));
        let narrow = direct(0x3f8, 0x3f9);
        ports.forget(&mut cpu, UART);
        assert!(!cpu.allows(0x3f8), "the running driver has lost them");
        assert!(ports.open(&mut cpu, UART, &narrow));
        assert!(cpu.allows(0x3f9) && !cpu.allows(0x3fa));
    }

    #[test]
    fn rights_that_change_while_another_driver_runs_are_not_stale_later() {
        let (mut ports, mut cpu) = (Ports::NEW, Cpu::default());
        ports.open(&mut cpu, UART, &direct(0x3f8, 0x3ff));
        ports.enter(&mut cpu, OTHER, &Privileges::NONE);
        ports.forget(&mut cpu, UART);
        ports.enter(&mut cpu, UART, &Privileges::NONE);
        assert!(!cpu.allows(0x3f8));
        assert!(!ports.open(&mut cpu, UART, &Privileges::NONE));
    }

    #[test]
    fn neither_other_ways_nor_missing_call_rights_nor_virtual_ports_open_anything() {
        let (mut ports, mut cpu) = (Ports::NEW, Cpu::default());
        let hal = Privileges { io_way: way::HAL, ..direct(0x3f8, 0x3ff) };
        let no_call = Privileges { kernel_calls: !KernelCall::DevIo.bit(), ..direct(0x3f8, 0x3ff) };
        for rights in [hal, no_call] {
            assert!(!ports.open(&mut cpu, UART, &rights));
        }
        let mut played = direct(0x3f8, 0x3ff);
        played.devices[0] = device::CLOCK;
        ports.open(&mut cpu, UART, &played);
        assert!(!cpu.allows(0x3f8));
    }

    #[test]
    fn threads_without_ports_cost_nothing() {
        let (mut ports, mut cpu) = (Ports::NEW, Cpu::default());
        for _ in 0..3 {
            ports.enter(&mut cpu, OTHER, &Privileges::NONE);
        }
        assert_eq!((cpu.stores, ports.are_open()), (0, false));
    }
}
