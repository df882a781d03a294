//! Privileges: set by rs alone, asked by everybody who decides (`abi::privilege`).
//!
//! Neighbours: `call` (call mask), `ipc` (destinations), `ports`, `line`, `copy`.

use abi::{
    Endpoint, Errno,
    privilege::{Privileges, check, io},
};

use crate::{
    Machine, Node,
    call::Stop,
    wire::{self, PRIVILEGE_BYTES},
};

impl Node {
    /// `PrivCtl (endpoint, address)`. `EINVAL`: not a service, or counts beyond their arrays.
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
        let mut bytes = [0; PRIVILEGE_BYTES];
        self.read_own(m, address, &mut bytes)?;
        let privileges = wire::get_privileges(&bytes);
        let counts_fit = privileges.port_count as usize <= privileges.ports.len()
            && privileges.irq_count as usize <= privileges.irqs.len();
        if !counts_fit {
            return Err(Errno::EINVAL.into());
        }
        self.privileges[slot] = privileges;
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
            check::PORTS => allows_ports(privileges, value, length),
            check::IRQ => allows_line(privileges, value),
            _ => return Err(Errno::EINVAL),
        };
        if allowed { Ok(0) } else { Err(Errno::EPERM) }
    }
}

/// True when one range holds all of it.
fn allows_memory(privileges: &Privileges, start: u64, bytes: u64) -> bool {
    let Some(end) = start.checked_add(bytes) else { return false };
    privileges
        .memory
        .iter()
        .any(|range| range.bytes > 0 && start >= range.start && end <= range.start.saturating_add(range.bytes))
}

/// True when one range holds all `count` ports.
pub(crate) fn allows_ports(privileges: &Privileges, first: u64, count: u64) -> bool {
    let Some(last) = first.checked_add(count).and_then(|end| end.checked_sub(1)) else { return false };
    let ranges = &privileges.ports[..privileges.port_count as usize];
    count > 0 && ranges.iter().any(|range| first >= range.first as u64 && last <= range.last as u64)
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
