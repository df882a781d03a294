//! Trace records of what core does (`abi::trace`). Callers have looked at `Node::tracing` before: one predictable
//! branch when it is off.

use abi::{
    Endpoint, Message, Word,
    endpoint::slot,
    trace::{Record, event},
};

use crate::{Machine, Node, call::Stop};

impl Node {
    #[cold]
    #[inline(never)]
    fn record<M: Machine>(&mut self, m: &mut M, record: Record) {
        let tsc = m.ticks();
        m.trace(&Record { tsc, ..record });
    }

    /// A message is delivered: both sides have counted it.
    #[cold]
    #[inline(never)]
    pub(crate) fn observe_message<M: Machine>(&mut self, m: &mut M, sender: usize, receiver: usize) {
        if self.tracing {
            self.trace_message(m, sender, receiver);
        }
        self.count_down(m, sender);
        self.count_down(m, receiver);
    }

    /// A notification is delivered: the receiver has counted it.
    #[cold]
    #[inline(never)]
    pub(crate) fn observe_notification<M: Machine>(&mut self, m: &mut M, receiver: usize, message: &Message) {
        if self.tracing {
            self.trace_notification(m, receiver, message);
        }
        self.count_down(m, receiver);
    }

    fn trace_message<M: Machine>(&mut self, m: &mut M, sender: usize, receiver: usize) {
        let Message { source, label, words } = self.message_of(sender);
        let to = self.threads[receiver].endpoint;
        self.record(m, Record { event: event::MESSAGE, label, from: source, to, words, tsc: 0 });
    }

    fn trace_notification<M: Machine>(&mut self, m: &mut M, receiver: usize, message: &Message) {
        let to = self.threads[receiver].endpoint;
        let Message { source, label, words } = *message;
        self.record(m, Record { event: event::NOTIFY, label, from: source, to, words, tsc: 0 });
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn trace_switch<M: Machine>(&mut self, m: &mut M, slot: usize) {
        let [from, to] = [self.current, slot].map(|slot| match slot {
            slot::IDLE => Endpoint::current(slot::IDLE),
            slot => self.threads[slot].endpoint,
        });
        self.record(m, Record { event: event::SWITCH, from, to, ..Record::default() });
    }

    #[cold]
    pub(crate) fn trace_call<M: Machine>(&mut self, m: &mut M, number: u64, result: Result<u64, Stop>) {
        let Some(result) = result_word(result) else { return };
        let thread = &self.threads[self.caller()];
        let mut words = self.threads[self.current].frame.words();
        words[6] = result;
        let record = Record {
            event: event::KERNEL_CALL,
            label: number as u32,
            from: thread.endpoint,
            to: if self.serving == 0 { Endpoint::NONE } else { Endpoint::SYSTEM },
            words,
            ..Record::default()
        };
        self.record(m, record);
    }

    /// The current thread has reached a port (`access`: port, operation, value) without a kernel call.
    #[cold]
    pub(crate) fn trace_port<M: Machine>(
        &mut self,
        m: &mut M,
        way: u32,
        [port, operation, value]: [u64; 3],
        result: Result<u64, Stop>,
    ) {
        let Some(result) = result_word(result) else { return };
        let from = self.threads[self.current].endpoint;
        let words = [way as u64, operation, value, 0, 0, 0, result];
        self.record(m, Record { event: event::PORT, label: port as u32, from, words, ..Record::default() });
    }

    #[cold]
    pub(crate) fn trace_exception<M: Machine>(&mut self, m: &mut M, slot: usize, vector: u64, address: u64) {
        let from = self.threads[slot].endpoint;
        let words = [address, self.threads[slot].frame.rip, 0, 0, 0, 0, 0];
        self.record(m, Record { event: event::EXCEPTION, label: vector as u32, from, words, ..Record::default() });
    }

    #[cold]
    pub(crate) fn trace_interrupt<M: Machine>(&mut self, m: &mut M, slot: usize, line: usize) {
        let to = self.threads[slot].endpoint;
        let record =
            Record { event: event::INTERRUPT, label: line as u32, from: Endpoint::HARDWARE, to, ..Record::default() };
        self.record(m, record);
    }

    #[cold]
    pub(crate) fn trace_name<M: Machine>(&mut self, m: &mut M, slot: usize) {
        let (low, high) = self.privileges(slot).name.to_words();
        let to = self.threads[slot].endpoint;
        let words = [low, high, 0, 0, 0, 0, 0];
        self.record(m, Record { event: event::NAMED, to, words, ..Record::default() });
    }
}

/// What the record of a call shows as its result; `None`: it has none yet.
fn result_word(result: Result<u64, Stop>) -> Option<u64> {
    match result {
        Ok(value) => Some(value),
        Err(Stop::Error(error)) => Some(Err(error).to_word()),
        Err(_) => None,
    }
}
