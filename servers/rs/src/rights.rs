//! From what the system file says of a service to the privileges that the kernel keeps.

use abi::endpoint::{APPLICATIONS_BIT, SERVICE_SLOTS};
use abi::privilege::{self, MemoryRange, PortRange, Privileges};
use abi::system::Service;
use abi::{Errno, Name};
use sys::Result;

/// What a service gets beyond the system file: the ranges of its device or module.
#[derive(Clone, Copy, Debug, Default)]
pub struct Granted<'a> {
    /// Port ranges, inclusive.
    pub ports: &'a [(u16, u16)],
    /// Physical memory: start, bytes.
    pub memory: &'a [(u64, u64)],
    /// Interrupt lines.
    pub irqs: &'a [u8],
}

/// The privileges of a service.
///
/// # Errors
/// `E2BIG`: more ranges or lines than the kernel keeps; `EINVAL`: no such slot among the destinations, or no name.
pub fn privileges(service: &Service, granted: Granted) -> Result<Privileges> {
    let mut rights = Privileges {
        name: Name::new(&service.name).ok_or(Errno::EINVAL)?,
        kernel_calls: service.kernel_calls,
        flags: service.flags | if service.restarts > 0 { privilege::RESTARTABLE } else { 0 },
        io_way: service.io_way,
        ..Privileges::NONE
    };
    set_destinations(&mut rights, service)?;
    for &(first, last) in service.ports.iter().chain(granted.ports) {
        add(&mut rights.ports, &mut rights.port_count, PortRange { first, last })?;
    }
    for &(device, first, last) in &service.virtual_ports {
        *rights.devices.get_mut(rights.port_count as usize).ok_or(Errno::E2BIG)? = device;
        add(&mut rights.ports, &mut rights.port_count, PortRange { first, last })?;
    }
    for &line in service.irqs.iter().chain(granted.irqs) {
        add(&mut rights.irqs, &mut rights.irq_count, line)?;
    }
    let mut count = 0;
    for &(start, bytes) in service.memory.iter().chain(granted.memory) {
        add(&mut rights.memory, &mut count, MemoryRange { start, bytes })?;
    }
    Ok(rights)
}

fn set_destinations(rights: &mut Privileges, service: &Service) -> Result<()> {
    for &slot in &service.destinations {
        let word = rights.destinations.get_mut(slot as usize / 64).ok_or(Errno::EINVAL)?;
        *word |= 1 << (slot % 64);
    }
    if service.applications {
        rights.destinations[APPLICATIONS_BIT / 64] |= 1 << (APPLICATIONS_BIT % 64);
    }
    const { assert!(APPLICATIONS_BIT < SERVICE_SLOTS) };
    Ok(())
}

fn add<T>(list: &mut [T], count: &mut u32, value: T) -> Result<()> {
    *list.get_mut(*count as usize).ok_or(Errno::E2BIG)? = value;
    *count += 1;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::supervisor_tests::service;

    #[test]
    fn destinations_become_bits() {
        let mut config = service("uart", 70);
        config.destinations = [4, 70].into();
        config.applications = true;
        let rights = privileges(&config, Granted::default()).expect("fits");
        assert_eq!(rights.destinations, [1 << 4 | 1 << 3, 1 << 6]);
        config.destinations = [128].into();
        assert_eq!(privileges(&config, Granted::default()).err(), Some(Errno::EINVAL));
    }

    #[test]
    fn the_ranges_of_a_device_come_behind_those_of_the_file() {
        let mut config = service("disk", 20);
        config.ports = [(0x1f0, 0x1f7)].into();
        let granted = Granted { ports: &[(0xc000, 0xc03f)], memory: &[(0xfe00_0000, 0x1000)], irqs: &[11] };
        let rights = privileges(&config, granted).expect("fits");
        assert_eq!(rights.port_count, 2);
        assert_eq!(rights.ports[1], PortRange { first: 0xc000, last: 0xc03f });
        assert_eq!(rights.memory[0], MemoryRange { start: 0xfe00_0000, bytes: 0x1000 });
        assert_eq!((rights.irqs[0], rights.irq_count), (11, 1));
    }

    #[test]
    fn more_than_the_kernel_keeps_is_refused() {
        let mut config = service("disk", 20);
        config.ports = (0..17).map(|port| (port, port)).collect();
        assert_eq!(privileges(&config, Granted::default()).err(), Some(Errno::E2BIG));
    }

    #[test]
    fn a_service_that_is_restarted_is_expected_by_its_callers() {
        let mut config = service("uart", 20);
        config.restarts = 0;
        assert_eq!(privileges(&config, Granted::default()).map(|rights| rights.flags), Ok(0));
        config.restarts = 3;
        assert_eq!(privileges(&config, Granted::default()).map(|rights| rights.flags), Ok(privilege::RESTARTABLE));
    }
}
