//! Privileges: set by rs alone, asked by everybody who decides (`abi::privilege`).
//!
//! Neighbours: `call` (call mask), `ipc` (destinations), `ports`, `line`, `copy`.

use abi::{
    Endpoint, Errno,
    privilege::{Privileges, check, device, io, way},
};

use crate::{Machine, Node, call::Stop};

impl Node {
    /// `PrivCtl (endpoint, address)`. `EINVAL`: not a service, counts beyond their arrays, or an
    /// unknown way or device.
    pub(crate) fn set_privileges<M: Machine>(
        &mut self,
        m: &mut M,
        endpoint: Endpoint,
        address: u64,
    ) -> Result<u64, Stop> {
        let slot = self.find_or_self(endpoint)?;
        if !self.threads[slot].endpoint.is_service() {
            return Err(Errno::EINVAL.into());
        }
        let privileges: Privileges = self.read_value(m, address)?;
        let counts_fit = privileges.port_count as usize <= privileges.ports.len()
            && privileges.irq_count as usize <= privileges.irqs.len();
        let known = privileges.io_way <= way::DIRECT && privileges.devices.iter().all(|&device| device <= device::LOG);
        if !counts_fit || !known {
            return Err(Errno::EINVAL.into());
        }
        self.privileges[slot] = privileges;
        m.rights_changed(slot);
        if self.tracing {
            self.trace_name(m, slot);
        }
        Ok(0)
    }

    /// `PrivCheck (endpoint, kind, value, length)`. `EPERM`: not within the privileges. `EINVAL`: no such kind.
    pub(crate) fn check_privilege(&self, slot: usize, kind: u64, value: u64, length: u64) -> Result<u64, Errno> {
        let privileges = self.privileges(slot);
        let allowed = match kind {
            check::MEMORY => allows_memory(privileges, value, length),
            check::PORTS => find_ports(privileges, value, length).is_some(),
            check::IRQ => allows_line(privileges, value),
            _ => return Err(Errno::EINVAL),
        };
        if allowed { Ok(0) } else { Err(Errno::EPERM) }
    }
}

/// True when one range holds all of it.
pub(crate) fn allows_memory(privileges: &Privileges, start: u64, bytes: u64) -> bool {
    let Some(end) = start.checked_add(bytes) else { return false };
    privileges
        .memory
        .iter()
        .any(|range| range.bytes > 0 && start >= range.start && end <= range.start.saturating_add(range.bytes))
}

/// The number of the range that holds all `count` ports.
pub(crate) fn find_ports(privileges: &Privileges, first: u64, count: u64) -> Option<usize> {
    let last = first.checked_add(count)?.checked_sub(1).filter(|_| count > 0)?;
    let ranges = &privileges.ports[..privileges.port_count as usize];
    ranges.iter().position(|range| first >= range.first as u64 && last <= range.last as u64)
}

/// True when one range, behind which is the machine, holds all of a single access. Short: it stands on the fast ways.
#[inline(always)]
pub(crate) fn allows_machine_port(privileges: &Privileges, port: u64, width: u64) -> bool {
    let count = (privileges.port_count as usize).min(privileges.ports.len());
    let Ok(first) = u16::try_from(port) else { return false };
    let last = first as u32 + width as u32 - 1;
    let mut ranges = privileges.ports[..count].iter().zip(&privileges.devices);
    let found = ranges.find(|(range, _)| first >= range.first && last <= range.last as u32);
    found.is_some_and(|(_, device)| *device == device::MACHINE)
}

/// True when the interrupt line is listed.
pub(crate) fn allows_line(privileges: &Privileges, line: u64) -> bool {
    privileges.irqs[..privileges.irq_count as usize].iter().any(|&irq| irq as u64 == line)
}

/// The width of a port operation, and whether it writes. `EINVAL`: no such operation.
pub(crate) fn port_operation(operation: u64) -> Result<(u64, bool), Errno> {
    let width = operation & io::WIDTH;
    let known = operation & !(io::WIDTH | io::OUT) == 0 && matches!(width, 1 | 2 | 4);
    if known { Ok((width, operation & io::OUT != 0)) } else { Err(Errno::EINVAL) }
}
