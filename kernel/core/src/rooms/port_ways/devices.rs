//! Devices that the kernel emulates: behind ports, and behind the same checks as the machine's.
//!
//! A driver reaches them by every access path, `direct` included: the CPU's bitmap never opens their ports, so the instruction faults and is carried
//! out here. This is the one place where a port range leads somewhere else than to the machine; a device of another node would be one
//! more arm that sends the access away and makes the caller wait, as a call does that needs memory. Neighbours: `ports`.

use crate::{Machine, Node, rooms::port_ways::ports::Target, time::alarm};

use abi::privilege::device;

/// What a port without anything behind it reads as.
const NOTHING: u32 = u32::MAX;
/// What the log's port reads as.
const LOG_IS_HERE: u32 = 0xe9;

/// Reads a port of a device that is not the machine's.
pub fn read_device<M: Machine>(m: &mut M, target: Target) -> u32 {
    match (target.device, target.offset, target.width) {
        (device::CLOCK, 0, 4) => alarm::now_ns(m) as u32,
        (device::CLOCK, 4, 4) => (alarm::now_ns(m) >> 32) as u32,
        (device::LOG, 0, 1) => LOG_IS_HERE,
        _ => NOTHING,
    }
}

/// Writes one.
pub fn write_device<M: Machine>(_node: &mut Node, m: &mut M, target: Target, value: u32) {
    if (target.device, target.offset, target.width) == (device::LOG, 0, 1) {
        m.console(&[value as u8]);
    }
}
