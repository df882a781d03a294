//! From what the system file says of a service to the privileges that the kernel keeps.

use abi::endpoint::{APPLICATIONS_BIT, FIRST_CONTAINER, SERVICE_SLOTS};
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
        for row in [APPLICATIONS_BIT].into_iter().chain(FIRST_CONTAINER..SERVICE_SLOTS) {
            rights.destinations[row / 64] |= 1 << (row % 64);
        }
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
        assert_eq!(rights.destinations, [1 << 4 | 1 << 3, 1 << 6 | 0xffff_ffff << 32]);
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

    #[test]
    fn what_the_file_says_is_passed_on() {
        let config = Service { kernel_calls: 0x1234, flags: 1 << 5, io_way: 3, restarts: 1, ..service("uart", 20) };
        let rights = privileges(&config, Granted::default()).expect("fits");
        assert_eq!((rights.name, rights.kernel_calls, rights.io_way), (Name::new("uart").unwrap(), 0x1234, 3));
        assert_eq!(rights.flags, 1 << 5 | privilege::RESTARTABLE);
        assert_eq!((rights.port_count, rights.irq_count, rights.destinations), (0, 0, [0; 2]));
        assert_eq!(rights.memory, Privileges::NONE.memory);
    }

    #[test]
    fn every_service_slot_may_be_a_destination() {
        for (slot, expected) in [(0, [1, 0]), (63, [1 << 63, 0]), (64, [0, 1]), (127, [0, 1 << 63])] {
            let config = Service { destinations: [slot].into(), ..service("uart", 20) };
            assert_eq!(privileges(&config, Granted::default()).map(|rights| rights.destinations), Ok(expected));
        }
    }

    #[test]
    fn virtual_ports_come_behind_real_ones_with_their_device() {
        let config =
            Service { ports: [(1, 2)].into(), virtual_ports: [(1, 5, 6), (0, 7, 7)].into(), ..service("a", 20) };
        let rights = privileges(&config, Granted::default()).expect("fits");
        assert_eq!((rights.port_count, &rights.devices[1..3]), (3, &[1, 0][..]));
        assert_eq!(rights.devices[0], Privileges::NONE.devices[0]);
        let expected = [(1, 2), (5, 6), (7, 7)].map(|(first, last)| PortRange { first, last });
        assert_eq!(rights.ports[..3], expected);
    }

    #[test]
    fn as_much_as_the_kernel_keeps_is_granted() {
        let port = |at: u16| (at, at);
        let full = Service {
            ports: (0..16).map(port).collect(),
            irqs: (0..8).collect(),
            memory: (1..9).map(|at| (at, 0x1000)).collect(),
            ..service("disk", 20)
        };
        let rights = privileges(&full, Granted::default()).expect("fits");
        assert_eq!((rights.port_count, rights.irq_count), (16, 8));
        assert_eq!(rights.ports[15], PortRange { first: 15, last: 15 });
        assert_eq!(
            (rights.irqs, rights.memory[7]),
            ([0, 1, 2, 3, 4, 5, 6, 7], MemoryRange { start: 8, bytes: 0x1000 })
        );
        let mut with_virtual = full.clone();
        with_virtual.virtual_ports = [(1, 5, 6)].into();
        assert_eq!(privileges(&with_virtual, Granted::default()).err(), Some(Errno::E2BIG));
        for granted in [
            Granted { irqs: &[9], ..Granted::default() },
            Granted { memory: &[(9, 9)], ..Granted::default() },
            Granted { ports: &[(9, 9)], ..Granted::default() },
        ] {
            assert_eq!(privileges(&full, granted).err(), Some(Errno::E2BIG));
        }
    }

    #[test]
    fn a_service_without_a_usable_name_gets_no_rights() {
        for name in ["", "seventeen letters"] {
            assert_eq!(privileges(&service(name, 20), Granted::default()).err(), Some(Errno::EINVAL));
        }
    }
}
