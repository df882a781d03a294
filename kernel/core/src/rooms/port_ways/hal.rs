//! The HAL trap: one port access, checked and done in place. No message, no queue, no scheduler.
//!
//! The hardware half does plain accesses that `Node::reaches_port` allows by itself; everything else comes here: strings, devices that the
//! kernel plays, refusals, and all of it while tracing. Neighbours: `ports`, `call`.

use crate::{
    Machine, Node, ipc::report, probes::tracing, rights::port_operation, rooms::port_ways::denial,
    rooms::port_ways::denial::Path, rooms::port_ways::ports, thread::attention,
};

use abi::{Errno, privilege::io, privilege::way};

/// The current thread executed `int 0x22`.
pub fn hal_trap<M: Machine>(node: &mut Node, m: &mut M) {
    let caller = node.current();
    let frame = &node.threads[caller].frame;
    let (operation, port, value, count) = (frame.rax, frame.rdx, frame.rdi, frame.r10);
    let result = match operation & io::STRING {
        _ if port_operation(operation & !io::STRING).is_err() => {
            denial::log_denial(node, m, format_args!("no such operation: {operation:#x} (hal)"));
            Err(Errno::EBADCALL.into())
        }
        0 => ports::access_port(node, m, Path::Hal, port, operation, value),
        _ => ports::port_string(node, m, Path::Hal, [port, operation & !io::STRING, value, count]),
    };
    tracing::trace!(node, PORT, trace_port(m, &node.threads, way::HAL, [port, operation, value], result));
    report::finish(node, m, caller, attention::HAL_AGAIN, result);
}
