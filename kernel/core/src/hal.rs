//! The HAL trap: one port access, checked and done in place (H37 to H53). No message, no queue, no scheduler.
//!
//! The hardware half does plain accesses that `Node::reaches_port` allows by itself; everything else comes here: strings, devices that the
//! kernel plays, refusals, and all of it while tracing. Neighbours: `ports`, `call`.

use abi::{
    Errno,
    privilege::{io, way},
};

use crate::{Machine, Node, call::Stop, denial::Door, privilege::port_operation, thread::attention};

impl Node {
    /// The current thread executed `int 0x22`.
    pub(crate) fn hal_trap<M: Machine>(&mut self, m: &mut M) {
        let caller = self.current;
        let frame = &self.threads[caller].frame;
        let (operation, port, value, count) = (frame.rax, frame.rdx, frame.rdi, frame.r10);
        let result = match operation & io::STRING {
            _ if port_operation(operation & !io::STRING).is_err() => {
                self.log_denial(m, format_args!("no such operation: {operation:#x} (hal)"));
                Err(Errno::EBADCALL.into())
            }
            0 => self.access_port(m, Door::Hal, port, operation, value),
            _ => self.port_string(m, Door::Hal, [port, operation & !io::STRING, value, count]),
        };
        if self.tracing && !matches!(result, Err(Stop::Fault(..) | Stop::Preempted)) {
            self.trace_port(m, way::HAL, [port, operation, value], result);
        }
        self.finish(m, caller, attention::HAL_AGAIN, result);
    }
}
