//! Kernel calls about privileges, which rs alone sets (`abi::privilege`).
//!
//! Neighbours: `call` (call mask), `ipc` (destinations), `ports`, `line`, `copy`.

use crate::{
    Machine, Node, memory::copy, probes::tracing, rights::allows_line, rights::allows_memory, rights::find_ports,
    rooms::port_ways, stop::Stop,
};

use abi::{Endpoint, Errno, privilege::Privileges, privilege::check, privilege::device};

/// `PrivCtl (endpoint, address)`. `EINVAL`: not a service, counts beyond their arrays, an
/// unknown device, or an access path to ports that this kernel does not have.
pub fn set_privileges<M: Machine>(node: &mut Node, m: &mut M, endpoint: Endpoint, address: u64) -> Result<u64, Stop> {
    let slot = node.find_or_self(endpoint)?;
    if !node.threads[slot].endpoint.is_service() {
        return Err(Errno::EINVAL.into());
    }
    let privileges: Privileges = copy::read_value(node, m, address)?;
    let counts_fit = privileges.port_count as usize <= privileges.ports.len()
        && privileges.irq_count as usize <= privileges.irqs.len();
    let known = port_ways::has_way(&privileges) && privileges.devices.iter().all(|&device| device <= device::LOG);
    if !counts_fit || !known {
        return Err(Errno::EINVAL.into());
    }
    node.privileges[slot] = privileges;
    m.rights_changed(slot);
    tracing::trace!(node, NAMED, trace_name(m, node.threads[slot].endpoint, privileges.name));
    Ok(0)
}

/// `PrivCheck (endpoint, kind, value, length)`. `EPERM`: not within the privileges. `EINVAL`: no such kind.
pub fn check_privilege(node: &Node, slot: usize, kind: u64, value: u64, length: u64) -> Result<u64, Errno> {
    let privileges = node.privileges(slot);
    let allowed = match kind {
        check::MEMORY => allows_memory(privileges, value, length),
        check::PORTS => find_ports(privileges, value, length).is_some(),
        check::IRQ => allows_line(privileges, value),
        _ => return Err(Errno::EINVAL),
    };
    if allowed { Ok(0) } else { Err(Errno::EPERM) }
}
