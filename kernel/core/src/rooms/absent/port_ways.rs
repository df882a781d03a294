//! The access paths to ports left out: the kernel accesses no port, and there is no SYSTEM task.

use crate::{Machine, Node, rooms::Kernel, stop::Stop};
use abi::{Errno, call::KernelCall, privilege::Privileges, privilege::way};

/// Without ports, the access path to them does not matter.
pub fn has_way(privileges: &Privileges) -> bool {
    privileges.io_way == way::DIRECT || privileges.port_count == 0
}

pub fn call<M: Machine>(_: &mut Node, _: &mut M, _: KernelCall, _: [u64; 4]) -> Result<u64, Stop> {
    Err(Errno::EBADCALL.into())
}

pub fn refuse_call<M: Machine>(_: &mut Node, _: &mut M, _: KernelCall) -> Stop {
    Errno::ECALLDENIED.into()
}

pub fn deny_message<M: Machine>(_: &mut Node, _: &mut M, _: usize) {}

pub fn emulate_fault<M: Machine>(_: &mut Node, _: &mut M) -> bool {
    false
}

pub fn emulates_ports(_: &Node) -> bool {
    false
}

pub fn reaches_port(_: &Node, _: u64, _: u64) -> bool {
    false
}

pub fn hal_trap<M: Machine>(node: &mut Node, _: &mut M) {
    node.threads.running_mut().frame.set_result(Err(Errno::EBADCALL));
}

pub fn start_system_task(_: &mut Node) {}

/// Makes a kernel call, if the caller may.
type MakeCall<M> = fn(&mut Kernel, &mut M, Option<KernelCall>) -> Result<u64, Stop>;

pub fn run_system_task<M: Machine>(_: &mut Kernel, _: &mut M, _: MakeCall<M>) {}
