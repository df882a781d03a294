//! Trace records of what core does (`abi::trace`). Callers have asked `Tracing::is_on` before: one predictable branch
//! when it is off.

use crate::{Machine, sched::Threads, stop::Stop};

use abi::{Endpoint, Message, Name, Word, endpoint::slot, trace::Record, trace::event};
use zerocopy::FromZeros;

/// Whether tracing is on.
#[derive(Debug, FromZeros)]
pub struct Tracing {
    on: bool,
}

impl Tracing {
    /// Returns true when it is on.
    pub fn is_on(&self) -> bool {
        cfg!(feature = "tracing") && self.on
    }

    /// Switches it on or off.
    pub fn set(&mut self, on: bool) {
        self.on = on;
    }
}

#[cold]
fn write<M: Machine>(m: &mut M, record: Record) {
    let tsc = m.ticks();
    m.trace(&Record { tsc, ..record });
}

/// Records that the CPU goes from one thread to another.
#[cold]
#[inline(never)]
pub fn trace_switch<M: Machine>(m: &mut M, threads: &Threads, to: usize) {
    let [from, to] = [threads.current(), to].map(|slot| match slot {
        slot::IDLE => Endpoint::current(slot::IDLE),
        slot => threads[slot].endpoint,
    });
    write(m, Record { event: event::SWITCH, from, to, ..Record::default() });
}

/// Records a kernel call of the thread in slot `caller`, with the arguments in the registers of the one that runs: the
/// same, or the SYSTEM task.
#[cold]
pub fn trace_call<M: Machine>(m: &mut M, threads: &Threads, caller: usize, number: u64, result: Result<u64, Stop>) {
    let Some(result) = result_word(result) else { return };
    let (from, mut words) = (threads[caller].endpoint, threads.running().frame.words());
    let to = if caller == threads.current() { Endpoint::NONE } else { Endpoint::SYSTEM };
    words[6] = result;
    write(m, Record { event: event::KERNEL_CALL, label: number as u32, from, to, words, ..Record::default() });
}

/// Records that the current thread has reached a port (`access`: port, operation, value) without a kernel call.
#[cold]
pub fn trace_port<M: Machine>(m: &mut M, threads: &Threads, path: u32, access: [u64; 3], result: Result<u64, Stop>) {
    let Some(result) = result_word(result) else { return };
    let ([port, operation, value], from) = (access, threads.running().endpoint);
    let words = [path as u64, operation, value, 0, 0, 0, result];
    write(m, Record { event: event::PORT, label: port as u32, from, words, ..Record::default() });
}

/// Records an exception of `from` at the instruction `ip`.
#[cold]
pub fn trace_exception<M: Machine>(m: &mut M, from: Endpoint, vector: u64, address: u64, ip: u64) {
    let words = [address, ip, 0, 0, 0, 0, 0];
    write(m, Record { event: event::EXCEPTION, label: vector as u32, from, words, ..Record::default() });
}

/// Records an interrupt on a line, for the driver `to`.
#[cold]
pub fn trace_interrupt<M: Machine>(m: &mut M, to: Endpoint, line: usize) {
    let (event, from) = (event::INTERRUPT, Endpoint::HARDWARE);
    write(m, Record { event, label: line as u32, from, to, ..Record::default() });
}

/// Records the name of a service.
#[cold]
pub fn trace_name<M: Machine>(m: &mut M, to: Endpoint, name: Name) {
    let (low, high) = name.to_words();
    write(m, Record { event: event::NAMED, to, words: [low, high, 0, 0, 0, 0, 0], ..Record::default() });
}

/// Returns what the record of a call shows as its result; `None`: it has none yet.
fn result_word(result: Result<u64, Stop>) -> Option<u64> {
    match result {
        Ok(value) => Some(value),
        Err(Stop::Error(error)) => Some(Err(error).to_word()),
        Err(_) => None,
    }
}

/// Records a message or (`event`) a notification that is delivered to `to`.
#[cold]
pub fn trace_message<M: Machine>(m: &mut M, event: u32, message: &Message, to: Endpoint) {
    let Message { source, label, words } = *message;
    write(m, Record { event, label, from: source, to, words, tsc: 0 });
}
