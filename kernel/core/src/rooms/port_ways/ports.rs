//! Ports: the check of every access, what is behind a port, and the kernel calls `DevIo`, `SDevIo`, `VDevIo`.
//!
//! Every access by every path passes `check_port`: right to the call, and one range of the caller that holds all of the access. What is
//! behind the range, the machine or a device that the kernel plays, is found by the same look.
//! Neighbours: `hal` and `emulate` (the other access paths), `devices`, `denial`, `privilege`, `call`.

use crate::{
    Machine, Node, machine::check_range, memory::copy, rights::allows_machine_port, rights::find_ports,
    rights::port_operation, rooms::port_ways::denial, rooms::port_ways::denial::Path, rooms::port_ways::devices,
    stop::Stop, stop::preemption_point,
};

use abi::{Errno, call::KernelCall, call::MAX_VECTOR, privilege::PortRequest, privilege::device, privilege::io};
use zerocopy::IntoBytes;

/// Bytes moved between user memory and a port at a time.
pub const STRING_CHUNK: u64 = 512;

/// What an access reaches.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// `privilege::device`.
    pub device: u8,
    /// The port.
    pub port: u16,
    /// Its distance from the first of the range.
    pub offset: u16,
    /// Bytes of each access: 1, 2, 4.
    pub width: u64,
}

/// Many accesses of one port, and the memory of the caller they go to or come from.
#[derive(Clone, Copy, Debug)]
pub struct Transfer {
    pub target: Target,
    pub writes: bool,
    /// Lowest address.
    pub address: u64,
    /// At most `STRING_CHUNK`, and a multiple of the width.
    pub bytes: u64,
    /// The accesses go from the highest address to the lowest.
    pub downwards: bool,
}

/// Returns true when the current thread may reach all of this access to the machine, and it is not traced: then it may be
/// done at once.
#[inline(always)]
pub fn reaches_port(node: &Node, port: u64, width: u64) -> bool {
    let privileges = node.privileges(node.current());
    !node.threads.is_observed()
        && privileges.kernel_calls & KernelCall::DevIo.bit() != 0
        && allows_machine_port(privileges, port, width)
}

/// What the caller reaches by these ports, if it may; else the access is refused.
pub fn check_port<M: Machine>(node: &mut Node, m: &mut M, path: Path, port: u64, width: u64) -> Result<Target, Stop> {
    let privileges = node.privileges(node.caller());
    let may_call = privileges.kernel_calls & KernelCall::DevIo.bit() != 0 || matches!(path, Path::Call | Path::Systask);
    match find_ports(privileges, port, width).filter(|_| may_call) {
        Some(range) => {
            let offset = port as u16 - privileges.ports[range].first;
            Ok(Target { device: privileges.devices[range], port: port as u16, offset, width })
        }
        None => Err(denial::deny(node, m, path, port)),
    }
}

/// Reads a port.
pub fn read_port<M: Machine>(m: &mut M, target: Target) -> u32 {
    match target.device {
        device::MACHINE => m.port_in(target.port, target.width),
        _ => devices::read_device(m, target),
    }
}

/// Writes a port.
pub fn write_port<M: Machine>(node: &mut Node, m: &mut M, target: Target, value: u32) {
    match target.device {
        device::MACHINE => m.port_out(target.port, target.width, value),
        _ => devices::write_device(node, m, target, value),
    }
}

/// One access. → value read, or 0.
pub fn access_port<M: Machine>(
    node: &mut Node,
    m: &mut M,
    path: Path,
    port: u64,
    operation: u64,
    value: u64,
) -> Result<u64, Stop> {
    let (width, writes) = port_operation(operation)?;
    let target = check_port(node, m, path, port, width)?;
    if writes {
        write_port(node, m, target, value as u32);
        return Ok(0);
    }
    Ok(read_port(m, target) as u64)
}

/// `DevIo (port, operation, value)` → value read.
pub fn port_io<M: Machine>(node: &mut Node, m: &mut M, port: u64, operation: u64, value: u64) -> Result<u64, Stop> {
    let path = denial::call_path(node);
    access_port(node, m, path, port, operation, value)
}

/// `SDevIo (port, operation, own address, count)`: `count` accesses of one port. → count.
pub fn port_string<M: Machine>(
    node: &mut Node,
    m: &mut M,
    path: Path,
    [port, operation, address, count]: [u64; 4],
) -> Result<u64, Stop> {
    let (width, writes) = port_operation(operation)?;
    let target = check_port(node, m, path, port, width)?;
    let bytes = count.checked_mul(width).filter(|&bytes| bytes <= abi::layout::MAX_COPY).ok_or(Errno::EINVAL)?;
    check_range(address, bytes)?;
    let caller = node.caller();
    let mut done = node.threads[caller].progress;
    while done < bytes {
        let chunk = STRING_CHUNK.min(bytes - done);
        transfer_string(node, m, Transfer { target, writes, address: address + done, bytes: chunk, downwards: false })?;
        done += chunk;
        node.threads[caller].progress = done;
        if done < bytes {
            preemption_point(m)?;
        }
    }
    Ok(count)
}

/// Moves one chunk. Memory that is missing stops it before the first access.
pub fn transfer_string<M: Machine>(node: &mut Node, m: &mut M, transfer: Transfer) -> Result<(), Stop> {
    let Transfer { target, writes, address, bytes, downwards } = transfer;
    let mut buffer = [0; STRING_CHUNK as usize];
    let buffer = &mut buffer[..bytes as usize];
    copy::read_own(node, m, address, buffer)?;
    if !writes {
        // Shows that the memory may be written, before the device gives away what it will not give again.
        copy::write_own(node, m, address, buffer)?;
    }
    match (target.device, downwards, writes) {
        (device::MACHINE, false, false) => m.port_in_string(target.port, target.width, buffer),
        (device::MACHINE, false, true) => m.port_out_string(target.port, target.width, buffer),
        _ => transfer_items(node, m, transfer, buffer),
    }
    if writes { Ok(()) } else { copy::write_own(node, m, address, buffer) }
}

/// Moves one item after the other.
fn transfer_items<M: Machine>(node: &mut Node, m: &mut M, transfer: Transfer, buffer: &mut [u8]) {
    let width = transfer.target.width as usize;
    let items = buffer.len() / width;
    for number in 0..items {
        let at = if transfer.downwards { items - 1 - number } else { number };
        let item = &mut buffer[at * width..][..width];
        let mut value = [0; 4];
        if transfer.writes {
            value[..width].copy_from_slice(item);
            write_port(node, m, transfer.target, u32::from_le_bytes(value));
        } else {
            value = read_port(m, transfer.target).to_le_bytes();
            item.copy_from_slice(&value[..width]);
        }
    }
}

/// `VDevIo (address of records, count)` → records done.
pub fn port_vector<M: Machine>(node: &mut Node, m: &mut M, address: u64, count: u64) -> Result<u64, Stop> {
    if count > MAX_VECTOR {
        return Err(Errno::EINVAL.into());
    }
    let mut buffer = [PortRequest::default(); MAX_VECTOR as usize];
    let records = &mut buffer[..count as usize];
    copy::read_own(node, m, address, records.as_mut_bytes())?;
    copy::write_own(node, m, address, records.as_bytes())?;
    let mut done = 0;
    let stop = records.iter_mut().find_map(|record| port_record(node, m, record).map(|()| done += 1).err());
    copy::write_own(node, m, address, records.as_bytes())?;
    match stop {
        Some(stop) if done == 0 || !matches!(stop, Stop::Error(_)) => Err(stop),
        _ => Ok(done),
    }
}

fn port_record<M: Machine>(node: &mut Node, m: &mut M, request: &mut PortRequest) -> Result<(), Stop> {
    let operation = request.operation as u64;
    let value = port_io(node, m, request.port as u64, operation, request.value as u64)?;
    if operation & io::OUT == 0 {
        request.value = value as u32;
    }
    Ok(())
}
