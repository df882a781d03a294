//! Trace records of what core does (`abi::trace`). Callers have looked at `Node::tracing` before: one predictable
//! branch when it is off.

use crate::{Machine, Node, stop::Stop};

use abi::{Endpoint, Message, Word, endpoint::slot, trace::Record, trace::event};

/// Whether tracing is on.
#[derive(Debug)]
pub struct Tracing {
    on: bool,
}

impl Tracing {
    /// Off.
    pub const NEW: Tracing = Tracing { on: false };

    /// Returns true when it is on.
    pub fn is_on(&self) -> bool {
        self.on
    }

    /// Switches it on or off.
    pub fn set(&mut self, on: bool) {
        self.on = on;
    }
}

#[cold]
fn write<M: Machine>(_node: &mut Node, m: &mut M, record: Record) {
    let tsc = m.ticks();
    m.trace(&Record { tsc, ..record });
}

#[cold]
#[inline(never)]
pub fn trace_switch<M: Machine>(node: &mut Node, m: &mut M, slot: usize) {
    let [from, to] = [node.current(), slot].map(|slot| match slot {
        slot::IDLE => Endpoint::current(slot::IDLE),
        slot => node.threads[slot].endpoint,
    });
    write(node, m, Record { event: event::SWITCH, from, to, ..Record::default() });
}

#[cold]
pub fn trace_call<M: Machine>(node: &mut Node, m: &mut M, number: u64, result: Result<u64, Stop>) {
    let Some(result) = result_word(result) else { return };
    let thread = &node.threads[node.caller()];
    let mut words = node.threads.running().frame.words();
    words[6] = result;
    let record = Record {
        event: event::KERNEL_CALL,
        label: number as u32,
        from: thread.endpoint,
        to: if node.serving == 0 { Endpoint::NONE } else { Endpoint::SYSTEM },
        words,
        ..Record::default()
    };
    write(node, m, record);
}

/// The current thread has reached a port (`access`: port, operation, value) without a kernel call.
#[cold]
pub fn trace_port<M: Machine>(
    node: &mut Node,
    m: &mut M,
    way: u32,
    [port, operation, value]: [u64; 3],
    result: Result<u64, Stop>,
) {
    let Some(result) = result_word(result) else { return };
    let from = node.threads.running().endpoint;
    let words = [way as u64, operation, value, 0, 0, 0, result];
    write(node, m, Record { event: event::PORT, label: port as u32, from, words, ..Record::default() });
}

#[cold]
pub fn trace_exception<M: Machine>(node: &mut Node, m: &mut M, slot: usize, vector: u64, address: u64) {
    let from = node.threads[slot].endpoint;
    let words = [address, node.threads[slot].frame.rip, 0, 0, 0, 0, 0];
    write(node, m, Record { event: event::EXCEPTION, label: vector as u32, from, words, ..Record::default() });
}

#[cold]
pub fn trace_interrupt<M: Machine>(node: &mut Node, m: &mut M, slot: usize, line: usize) {
    let to = node.threads[slot].endpoint;
    let record =
        Record { event: event::INTERRUPT, label: line as u32, from: Endpoint::HARDWARE, to, ..Record::default() };
    write(node, m, record);
}

#[cold]
pub fn trace_name<M: Machine>(node: &mut Node, m: &mut M, slot: usize) {
    let (low, high) = node.privileges(slot).name.to_words();
    let to = node.threads[slot].endpoint;
    let words = [low, high, 0, 0, 0, 0, 0];
    write(node, m, Record { event: event::NAMED, to, words, ..Record::default() });
}

/// What the record of a call shows as its result; `None`: it has none yet.
fn result_word(result: Result<u64, Stop>) -> Option<u64> {
    match result {
        Ok(value) => Some(value),
        Err(Stop::Error(error)) => Some(Err(error).to_word()),
        Err(_) => None,
    }
}

/// Records a message or (`event`) a notification that is delivered to the thread in slot `receiver`.
#[cold]
pub fn trace_message<M: Machine>(node: &mut Node, m: &mut M, event: u32, message: &Message, receiver: usize) {
    let to = node.threads[receiver].endpoint;
    let Message { source, label, words } = *message;
    write(node, m, Record { event, label, from: source, to, words, tsc: 0 });
}
