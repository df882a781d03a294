//! Notifications: one pending bit per source, delivered before messages and never inside `SENDREC`.
//!
//! A wait for a program lets every notification through: the program tells them apart (ADR 73).
//! HARDWARE's carries the mask of interrupt hooks that have fired, CLOCK's stands for the alarm, a service's for
//! itself. They are also how a service learns that a `SENDNB` may be tried again. Neighbours: `message` (asks for pending
//! ones when a thread receives), `alarm`, `interrupts`.

use crate::{
    Machine, Node, ipc::message, probes::injection, probes::tracing, sched::table::Holder, thread::state::BlockedOn,
    thread::state::admits, time::alarm,
};

use abi::{Endpoint, Errno, Message, endpoint::SERVICE_SLOTS, endpoint::slot, kernel::Notify, trace::event};

/// `NOTIFY`: only services have a bit, so only they may.
pub fn notify<M: Machine>(node: &mut Node, m: &mut M, caller: usize, to: Endpoint) -> Result<(), Errno> {
    let thread = &mut node.threads[caller];
    thread.frame.rax = 0;
    let source = thread.endpoint;
    if !source.is_service() {
        return Err(Errno::ECALLDENIED);
    }
    if to.slot() >= node.threads.len() {
        return Err(Errno::EDEADSRCDST);
    }
    node.may_send(caller, to.slot())?;
    let Holder::Live(destination) = node.threads.holder(to)? else { return Err(Errno::EDEADSRCDST) };
    post(node, m, destination, caller, source);
    Ok(())
}

/// A notification from `source` (in this slot) for a thread: given now if that waits for it, else kept as a bit.
#[inline(always)]
pub fn post<M: Machine>(node: &mut Node, m: &mut M, destination: usize, source_slot: usize, source: Endpoint) {
    let thread = &mut node.threads[destination];
    if let Some(BlockedOn::Receive(from)) = thread.state.blocked_on()
        && (admits(from, source) || from.is_application())
    {
        thread.state.unblock();
        give_notification(node, m, destination, source_slot);
        node.threads.wake_if_free(destination);
    } else {
        thread.pending[source_slot / 64 % 2] |= 1 << (source_slot % 64);
    }
}

/// The slot of the first notification pending for `receiver` that a wait for `from` lets through.
pub fn pending_source(node: &Node, receiver: usize, from: Endpoint) -> Option<usize> {
    let thread = &node.threads[receiver];
    if from != Endpoint::ANY && !from.is_application() {
        let source = from.slot();
        let pending = source < SERVICE_SLOTS && thread.pending[source / 64] & 1 << (source % 64) != 0;
        return (pending && admits(from, source_of(node, source))).then_some(source);
    }
    match thread.pending {
        [0, 0] => None,
        [0, high] => Some(64 + high.trailing_zeros() as usize),
        [low, _] => Some(low.trailing_zeros() as usize),
    }
}

/// Gives a thread, which waits no more, the notification from this slot, of which nothing is pending now.
pub fn give_notification<M: Machine>(node: &mut Node, m: &mut M, receiver: usize, source_slot: usize) {
    let source = source_of(node, source_slot);
    let thread = &mut node.threads[receiver];
    let bits = if source_slot == slot::HARDWARE { core::mem::take(&mut thread.hooks) } else { 0 };
    let notification = Notify { time_ns: alarm::now_ns(m), bits };
    let message = Message { source, ..notification.message() };
    node.threads[receiver].messages += 1;
    node.delivered += 1;
    if node.threads.is_observed() {
        observe(node, m, receiver, message);
    }
    message::accept(node, m, receiver, &message);
}

/// The endpoint that a notification comes from. Kernel tasks have no endpoint in their thread, and a service may have died since.
fn source_of(node: &Node, source_slot: usize) -> Endpoint {
    match node.threads[source_slot].endpoint {
        Endpoint(0) => Endpoint::current(source_slot),
        endpoint => endpoint,
    }
}

/// Tells the services whose `SENDNB` was refused that `receiver` waits from `ANY`, or has died without a successor.
#[inline(never)]
pub fn notify_refused_senders<M: Machine>(node: &mut Node, m: &mut M, receiver: usize) {
    let wanted = core::mem::take(&mut node.threads[receiver].wanted);
    let source = source_of(node, receiver);
    for (index, mut bits) in wanted.into_iter().enumerate() {
        while bits != 0 {
            let requester = index * 64 + bits.trailing_zeros() as usize;
            bits &= bits - 1;
            post(node, m, requester, receiver, source);
        }
    }
}

/// A notification is delivered, and the receiver has counted it.
#[cold]
fn observe<M: Machine>(node: &mut Node, m: &mut M, receiver: usize, message: Message) {
    tracing::trace!(node, NOTIFY, trace_message(m, event::NOTIFY, &message, node.threads[receiver].endpoint));
    injection::count_down(&mut node.threads[receiver], &mut node.timer, m);
}
