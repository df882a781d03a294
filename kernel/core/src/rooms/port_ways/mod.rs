//! Access to ports: the checks that every access passes, the kernel calls `DevIo`, `SDevIo` and `VDevIo`, the HAL trap, port
//! instructions carried out after their fault, and kernel calls by message to the SYSTEM task.
//!
//! Left out, the kernel knows no ports: what remains is `DIRECT`, the CPU's own check by its bitmap (`kernel/x86_64`). The items below are
//! all that the core uses; `absent/port_ways.rs` is their twin.

mod decode;
mod denial;
mod devices;
mod emulate;
mod hal;
mod ports;
mod system_task;

use crate::{Machine, Node, stop::Stop};
use abi::{Errno, call::KernelCall, privilege::Privileges, privilege::way};

pub use {
    denial::deny_message,
    emulate::{emulate_fault, emulates_ports},
    hal::hal_trap,
    ports::reaches_port,
    system_task::{run_system_task, start_system_task},
};

/// Returns true when a service with these privileges can reach its ports.
pub fn has_way(privileges: &Privileges) -> bool {
    privileges.io_way <= way::DIRECT
}

/// `DevIo`, `SDevIo` or `VDevIo` with these arguments.
pub fn call<M: Machine>(node: &mut Node, m: &mut M, call: KernelCall, words: [u64; 4]) -> Result<u64, Stop> {
    let [w0, w1, w2, _] = words;
    match call {
        KernelCall::DevIo => ports::port_io(node, m, w0, w1, w2),
        KernelCall::SDevIo => ports::port_string(node, m, denial::call_path(node), words),
        _ => ports::port_vector(node, m, w0, w1),
    }
}

/// Refuses a call that the caller may not make at all.
#[cold]
pub fn refuse_call<M: Machine>(node: &mut Node, m: &mut M, call: KernelCall) -> Stop {
    if matches!(call, KernelCall::DevIo | KernelCall::SDevIo) {
        let port = node.threads.running().frame.rdi;
        return denial::deny(node, m, denial::call_path(node), port);
    }
    denial::log_denial(node, m, format_args!("kernel call {call:?} denied"));
    Errno::ECALLDENIED.into()
}
