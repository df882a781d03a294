//! Trace records of what core does (`abi::trace`). Callers ask by [`trace!`] whether the kind of event is recorded: one predictable branch
//! when it is not.
//!
//! Samples are taken whenever the timer has come and one is due (`dispatch`); they leave all fast paths open.

use crate::{Machine, Thread, frame::entry, sched::Threads, stop::Stop, time::timer::Timer};

use abi::{Endpoint, Message, Name, Word, endpoint::slot, trace::Record, trace::event};
use zerocopy::FromZeros;

/// Calls a function of this module if events of this kind are recorded.
macro_rules! trace {
    ($node:expr, $kind:ident, $record:ident($($argument:expr),*)) => {
        if $node.tracing.records(abi::trace::event::$kind) {
            $crate::probes::tracing::$record($($argument),*);
        }
    };
}
pub(crate) use trace;

/// What is recorded.
#[derive(Debug, FromZeros)]
pub struct Tracing {
    /// One bit for each kind of `event`.
    events: u64,
    /// Between two samples, in ticks.
    period: u64,
    /// When the next one is due, in ticks.
    next_sample: u64,
}

impl Tracing {
    /// Returns true when events of this kind are recorded.
    pub fn records(&self, kind: u32) -> bool {
        cfg!(feature = "tracing") && self.events & 1 << kind != 0
    }

    /// Returns true when messages, kernel calls, switches or accesses to ports are, so that none of them may take a fast path.
    pub fn is_observer(&self) -> bool {
        cfg!(feature = "tracing") && self.events & event::OBSERVED != 0
    }

    /// Sets the kinds of events that are recorded, and the ticks between two samples.
    pub fn set(&mut self, events: u64, period: u64) {
        *self = Tracing { events, period, next_sample: 0 };
    }

    /// Records where the current thread is, if that is due at `now` (ticks), and makes the timer come for the next time.
    #[cold]
    pub fn sample<M: Machine>(&mut self, threads: &Threads, timer: &mut Timer, m: &mut M, now: u64) {
        if !self.records(event::SAMPLE) {
            return;
        }
        if now >= self.next_sample {
            self.next_sample = now + self.period;
            let Thread { frame, queue, .. } = threads.running();
            // `sysret` leaves the address that it returns to in RCX: no instruction has been executed since.
            let is_in_kernel = frame.entry == entry::SYSCALL || frame.rcx == frame.rip;
            let (words, from) = ([frame.rip, frame.rsp, frame.rbp, *queue as u64, 0, 0, 0], threads.current());
            write(m, event::SAMPLE, is_in_kernel as u64, (endpoint_of(threads, from), Endpoint::NONE), words);
        }
        timer.arm(m, self.next_sample);
    }
}

fn write<M: Machine>(m: &mut M, event: u32, label: u64, (from, to): (Endpoint, Endpoint), words: [u64; 7]) {
    let tsc = m.ticks();
    m.trace(&Record { tsc, event, label: label as u32, from, to, words });
}

fn endpoint_of(threads: &Threads, slot: usize) -> Endpoint {
    if slot == slot::IDLE { Endpoint::current(slot) } else { threads[slot].endpoint }
}

/// Records that the CPU goes from one thread to another.
#[cold]
#[inline(never)]
pub fn trace_switch<M: Machine>(m: &mut M, threads: &Threads, to: usize) {
    let [from, to] = [threads.current(), to].map(|slot| endpoint_of(threads, slot));
    write(m, event::SWITCH, 0, (from, to), [0; 7]);
}

/// Records a kernel call of the thread in slot `caller`, with the arguments in the registers of the one that runs: the
/// same, or the SYSTEM task.
#[cold]
pub fn trace_call<M: Machine>(m: &mut M, threads: &Threads, caller: usize, number: u64, result: Result<u64, Stop>) {
    let (Some(result), mut words) = (result_word(result), threads.running().frame.words()) else { return };
    let to = if caller == threads.current() { Endpoint::NONE } else { Endpoint::SYSTEM };
    words[6] = result;
    write(m, event::KERNEL_CALL, number, (threads[caller].endpoint, to), words);
}

/// Records that the current thread has reached a port (`access`: port, operation, value) without a kernel call.
#[cold]
pub fn trace_port<M: Machine>(m: &mut M, threads: &Threads, path: u32, access: [u64; 3], result: Result<u64, Stop>) {
    let (Some(result), [port, operation, value]) = (result_word(result), access) else { return };
    let from = threads.running().endpoint;
    write(m, event::PORT, port, (from, Endpoint::NONE), [path as u64, operation, value, 0, 0, 0, result]);
}

/// Returns what the record of a call shows as its result; `None`: it has none yet.
fn result_word(result: Result<u64, Stop>) -> Option<u64> {
    result.or_else(|stop| if let Stop::Error(error) = stop { Ok(Err(error).to_word()) } else { Err(stop) }).ok()
}

/// Records an exception of a thread.
#[cold]
pub fn trace_exception<M: Machine>(m: &mut M, thread: &Thread, vector: u64, address: u64) {
    let words = [address, thread.frame.rip, 0, 0, 0, 0, 0];
    write(m, event::EXCEPTION, vector, (thread.endpoint, Endpoint::NONE), words);
}

/// Records an interrupt on a line, for the driver `to`.
#[cold]
pub fn trace_interrupt<M: Machine>(m: &mut M, to: Endpoint, line: usize) {
    write(m, event::INTERRUPT, line as u64, (Endpoint::HARDWARE, to), [0; 7]);
}

/// Records the name of a service.
#[cold]
pub fn trace_name<M: Machine>(m: &mut M, to: Endpoint, name: Name) {
    let (low, high) = name.to_words();
    write(m, event::NAMED, 0, (Endpoint::NONE, to), [low, high, 0, 0, 0, 0, 0]);
}

/// Records a message or (`event`) a notification that is delivered to `to`.
#[cold]
pub fn trace_message<M: Machine>(m: &mut M, event: u32, message: &Message, to: Endpoint) {
    write(m, event, message.label as u64, (message.source, to), message.words);
}
