//! What privileges allow: memory, ports, interrupt lines (`abi::privilege`).
//!
//! Pure functions of privileges. Neighbours: `calls::privileges` (sets them).

use abi::{Errno, privilege::Privileges, privilege::device, privilege::io};

/// True when one range holds all of it.
pub fn allows_memory(privileges: &Privileges, start: u64, bytes: u64) -> bool {
    let Some(end) = start.checked_add(bytes) else { return false };
    privileges
        .memory
        .iter()
        .any(|range| range.bytes > 0 && start >= range.start && end <= range.start.saturating_add(range.bytes))
}

/// The number of the range that holds all `count` ports.
pub fn find_ports(privileges: &Privileges, first: u64, count: u64) -> Option<usize> {
    let last = first.checked_add(count)?.checked_sub(1).filter(|_| count > 0)?;
    let ranges = &privileges.ports[..privileges.port_count as usize];
    ranges.iter().position(|range| first >= range.first as u64 && last <= range.last as u64)
}

/// Returns true when one range, behind which is the machine, holds all of a single access. Short: the fast access paths ask it.
#[inline(always)]
pub fn allows_machine_port(privileges: &Privileges, port: u64, width: u64) -> bool {
    let count = (privileges.port_count as usize).min(privileges.ports.len());
    let Ok(first) = u16::try_from(port) else { return false };
    let last = first as u32 + width as u32 - 1;
    let mut ranges = privileges.ports[..count].iter().zip(&privileges.devices);
    let found = ranges.find(|(range, _)| first >= range.first && last <= range.last as u32);
    found.is_some_and(|(_, device)| *device == device::MACHINE)
}

/// True when the interrupt line is listed.
pub fn allows_line(privileges: &Privileges, line: u64) -> bool {
    privileges.irqs[..privileges.irq_count as usize].iter().any(|&irq| irq as u64 == line)
}

/// The width of a port operation, and whether it writes. `EINVAL`: no such operation.
pub fn port_operation(operation: u64) -> Result<(u64, bool), Errno> {
    let width = operation & io::WIDTH;
    let known = operation & !(io::WIDTH | io::OUT) == 0 && matches!(width, 1 | 2 | 4);
    if known { Ok((width, operation & io::OUT != 0)) } else { Err(Errno::EINVAL) }
}
