//! Rendezvous: how a message goes from one thread to another (docs/book/ideas.md).
//!
//! A message is moved exactly once, from the sender's frame to the receiver's, when both are there. A sender that comes
//! first waits in the sender list of the destination, real-time threads and services by queue and then programs in order of arrival, so that
//! no walk passes programs; a receiver that comes first waits with a filter. Invariants: a thread that is blocked on `Send` is in the list of the slot of its peer; none that is blocked on `Receive` has an
//! acceptable sender in its list or an acceptable notification pending. Neighbours: `notify` (notifications),
//! `deadlock` (`ELOCKED`), `life` (death of peers), `report` (messages of the kernel itself), `route` (Linux calls).

use crate::{
    Machine, Node, boost::donate, futex, inheritance::NOTHING, ipc::deadlock, ipc::in_memory::store, ipc::notify,
    ipc::report, priority::FIRST_SHARED, priority::SYSTEM_QUEUE, probes::injection, probes::tracing,
    sched::table::Holder, thread::MessageSource, thread::attention, thread::state::BlockedOn,
    thread::state::Continuation, thread::state::admits,
};

use abi::{Endpoint, Errno, Message, Word, call, endpoint, endpoint::slot, message, trace::event};

/// A primitive made by the current thread, with the message in its registers.
#[inline(always)]
pub fn primitive<M: Machine>(node: &mut Node, m: &mut M, number: u64) {
    let caller = node.current();
    let thread = &mut node.threads[caller];
    thread.form = MessageSource::Native;
    let peer = thread.frame.endpoint();
    let label = thread.frame.label();
    if let Err(error) = carry_out(node, m, number, peer, label) {
        let thread = &mut node.threads[caller];
        thread.frame.set_result(Err(error));
        thread.attention |= if error == Errno::ECALLDENIED { attention::DENIED } else { 0 };
    }
}

/// A primitive made by the current thread, whose message is in its registers or has been read from its memory.
#[inline(always)]
pub fn carry_out<M: Machine>(node: &mut Node, m: &mut M, number: u64, peer: Endpoint, label: u32) -> Result<(), Errno> {
    let caller = node.current();
    let then = match number {
        call::SENDREC => Continuation::Answer,
        call::SEND => Continuation::Return,
        call::SENDWAIT => Continuation::Receive,
        call::REPLYREC => return reply_receive(node, m, caller, peer, label),
        call::RECEIVE => {
            receive(node, m, caller, peer);
            return Ok(());
        }
        call::NOTIFY => return notify::notify(node, m, caller, peer),
        call::SENDNB => return send_now(node, m, caller, peer, label).map(|()| node.threads[caller].frame.rax = 0),
        _ => return Err(Errno::ENOSYS),
    };
    check_send(node, caller, peer, label)?;
    transmit(node, m, caller, peer, then)
}

/// The checks every message of a program passes before it goes anywhere.
#[inline(always)]
fn check_send(node: &Node, caller: usize, to: Endpoint, label: u32) -> Result<(), Errno> {
    if (message::KERNEL_LABELS..message::REPLY).contains(&label) {
        return Err(Errno::EINVAL);
    }
    if to.slot() >= endpoint::SLOTS {
        return Err(Errno::EDEADSRCDST);
    }
    node.may_send(caller, to.slot())
}

/// Hands the message of `caller`, which runs, to `to`: now if that waits for it, else `caller` waits.
#[inline(always)]
pub fn transmit<M: Machine>(
    node: &mut Node,
    m: &mut M,
    caller: usize,
    to: Endpoint,
    then: Continuation,
) -> Result<(), Errno> {
    let holder = match node.threads.holder(to) {
        Ok(holder) => holder,
        Err(_) if to == Endpoint::SYSTEM => return ask_system(node, m, caller, then),
        Err(error) => return Err(error),
    };
    if let Holder::Live(destination) = holder {
        let source = node.threads[caller].endpoint;
        if node.threads[destination].state.accepts(source) {
            deliver(node, m, caller, destination);
            if taken(node, caller, destination, then) {
                receive(node, m, caller, Endpoint(node.threads[caller].frame.r14 as u32));
            }
            return Ok(());
        }
        if deadlock::closes_circle(node, caller, to) {
            return Err(Errno::ELOCKED);
        }
    }
    wait_to_send(node, caller, to, then);
    Ok(())
}

/// Puts `caller` into the sender list of the slot of `to`: a real-time thread or a service by its queue, a time-shared program behind all.
#[inline(never)]
pub fn wait_to_send(node: &mut Node, caller: usize, to: Endpoint, then: Continuation) {
    let thread = &mut node.threads[caller];
    thread.state.block(BlockedOn::Send(to, then));
    let mut senders = node.threads[to.slot()].senders;
    if caller < endpoint::SERVICE_SLOTS || node.threads[caller].queue < FIRST_SHARED {
        senders.insert_by_queue(&mut node.threads, caller as u16);
    } else {
        senders.push_back(&mut node.threads, caller as u16);
    }
    node.threads[to.slot()].senders = senders;
    donate::donate_along(node, node.threads[caller].queue, to.slot());
}

/// Takes a waiting sender out of the list of this slot.
fn stop_sending(node: &mut Node, sender: usize, to: usize) {
    let mut senders = node.threads[to].senders;
    senders.remove(&mut node.threads, sender as u16);
    node.threads[to].senders = senders;
    node.threads[sender].state.unblock();
}

/// Moves the message of `sender` into `receiver`, which waits for it, and lets that run.
#[inline(always)]
fn deliver<M: Machine>(node: &mut Node, m: &mut M, sender: usize, receiver: usize) {
    node.threads[receiver].state.unblock();
    transfer(node, m, sender, receiver);
    node.threads.wake_if_free(receiver);
    donate::donate(node, sender, receiver);
}

/// Moves the message of `sender` into `receiver`.
#[inline(always)]
pub fn transfer<M: Machine>(node: &mut Node, m: &mut M, sender: usize, receiver: usize) {
    node.delivered += 1;
    let Ok([from, to]) = node.threads.get_disjoint_mut([sender, receiver]) else { return };
    from.messages += 1;
    to.messages += 1;
    if node.threads.is_observed() {
        observe(node, m, sender, receiver);
    }
    let Ok([from, to]) = node.threads.get_disjoint_mut([sender, receiver]) else { return };
    if from.form == MessageSource::Native && to.form == MessageSource::Native {
        to.frame.set_words(from.frame.words());
        to.frame.r13 = from.endpoint.0 as u64 | from.frame.r13 & !0xffff_ffff;
        to.frame.rax = 0;
    } else {
        transfer_other(node, m, sender, receiver);
    }
}

#[inline(never)]
fn transfer_other<M: Machine>(node: &mut Node, m: &mut M, sender: usize, receiver: usize) {
    let (from, to) = (&node.threads[sender], &node.threads[receiver]);
    if from.form == MessageSource::Memory && to.form == from.form && store(node, m, receiver, &from.outgoing).is_ok() {
        node.threads[receiver].frame.rax = 0;
        return;
    }
    let message = message_of(node, sender);
    accept(node, m, receiver, &message);
}

/// The message that a thread is sending.
pub fn message_of(node: &Node, sender: usize) -> Message {
    let (thread, source) = (&node.threads[sender], node.threads[sender].endpoint);
    match thread.form {
        MessageSource::Native => Message { source, label: thread.frame.label(), words: thread.frame.words() },
        MessageSource::Linux | MessageSource::Repeated => {
            let [w0, w1, w2, w3, w4, w5, _] = thread.frame.words();
            let repeated = if thread.form == MessageSource::Repeated { message::REPEATED } else { 0 };
            let words = [w0, w1, w2, w3, w4, w5, thread.messages | repeated];
            Message { source, label: thread.frame.rax as u32, words }
        }
        MessageSource::Memory | MessageSource::Kernel => Message { source, ..thread.outgoing },
    }
}

/// Gives a thread, which waits no more, the message it waited for.
#[inline(always)]
pub fn accept<M: Machine>(node: &mut Node, m: &mut M, receiver: usize, message: &Message) {
    let thread = &mut node.threads[receiver];
    match thread.form {
        MessageSource::Native => thread.frame.set_message(message),
        MessageSource::Linux | MessageSource::Repeated => thread.frame.rax = message.words[0],
        MessageSource::Memory => {
            thread.arrived = *message;
            thread.frame.rax = 0;
            thread.attention |= attention::STORE;
        }
        MessageSource::Kernel => report::answered(node, m, receiver, message.words[0]),
    }
}

/// The message of `sender` has been taken by `receiver`: goes on as its call says. True: it is to receive now.
#[inline(always)]
pub fn taken(node: &mut Node, sender: usize, receiver: usize, then: Continuation) -> bool {
    let receiver = node.threads[receiver].endpoint;
    let thread = &mut node.threads[sender];
    match then {
        Continuation::Answer => thread.state.block(BlockedOn::Answer(receiver)),
        Continuation::Return => {
            thread.frame.rax = 0;
            node.threads.wake_if_free(sender);
        }
        Continuation::Receive => {}
    }
    then == Continuation::Receive
}

/// `RECEIVE`, or the second half of `REPLYREC` and `SENDWAIT`. Errors are the result of the call.
#[inline(always)]
pub fn receive<M: Machine>(node: &mut Node, m: &mut M, receiver: usize, from: Endpoint) {
    let waits = &node.threads[receiver];
    let nothing_there = waits.pending[0] | waits.pending[1] == 0 && waits.senders.is_empty() && waits.wanted == [0; 2];
    if nothing_there && from == Endpoint::ANY {
        wait_to_receive(node, receiver, from);
    } else {
        receive_what_is_there(node, m, receiver, from);
    }
}

#[inline(never)]
fn receive_what_is_there<M: Machine>(node: &mut Node, m: &mut M, receiver: usize, from: Endpoint) {
    let mut next = Some((receiver, from));
    while let Some((receiver, from)) = next {
        next = match fetch_once(node, m, receiver, from) {
            Ok(Some(sender)) => Some((sender, Endpoint(node.threads[sender].frame.r14 as u32))),
            Ok(None) => None,
            Err(error) => {
                node.threads[receiver].frame.set_result(Err(error));
                node.threads.wake_if_free(receiver);
                None
            }
        };
    }
}

/// Receives what is there or makes `receiver` wait. Returns a sender whose message was taken and which is to
/// receive in its turn.
fn fetch_once<M: Machine>(node: &mut Node, m: &mut M, receiver: usize, from: Endpoint) -> Result<Option<usize>, Errno> {
    let is_task = from == Endpoint::HARDWARE || from == Endpoint::CLOCK;
    let specific = from != Endpoint::ANY && !is_task;
    if specific {
        node.threads.holder(from)?;
    }
    if let Some(source) = notify::pending_source(node, receiver, from) {
        node.threads[receiver].pending[source / 64 % 2] &= !(1 << (source % 64));
        notify::give_notification(node, m, receiver, source);
        node.threads.wake_if_free(receiver);
        return Ok(None);
    }
    if let Some((sender, then)) = first_sender(node, receiver, from) {
        stop_sending(node, sender, receiver);
        transfer(node, m, sender, receiver);
        node.threads.wake_if_free(receiver);
        donate::donate(node, sender, receiver);
        let receives = taken(node, sender, receiver, then);
        return Ok(receives.then_some(sender));
    }
    if specific && deadlock::closes_circle(node, receiver, from) {
        return Err(Errno::ELOCKED);
    }
    wait_to_receive(node, receiver, from);
    if from == Endpoint::ANY {
        notify::notify_refused_senders(node, m, receiver);
    }
    Ok(None)
}

#[inline(always)]
fn wait_to_receive(node: &mut Node, receiver: usize, from: Endpoint) {
    let thread = &mut node.threads[receiver];
    thread.state.block(BlockedOn::Receive(from));
    if thread.base_queue < SYSTEM_QUEUE {
        donate::set_donation(node, NOTHING, receiver);
    }
}

/// The first sender that waits for `receiver` and that a wait for `from` lets through, and what it does next.
fn first_sender(node: &Node, receiver: usize, from: Endpoint) -> Option<(usize, Continuation)> {
    let first = node.threads[receiver].senders.first as usize;
    let sender = if first == 0 || from == Endpoint::ANY { first } else { from.slot() };
    let thread = node.threads.get(sender)?;
    let Some(BlockedOn::Send(to, then)) = thread.state.blocked_on() else { return None };
    (to.slot() == receiver && admits(from, thread.endpoint)).then_some((sender, then))
}

/// `REPLYREC`: gives the message to a destination that waits for it, and receives from `r14`. A destination that is
/// dead or does not wait loses a reply, and has an error for a request as with `SENDNB`; `NONE` means no message. `EINVAL`,
/// `ECALLDENIED`, `EDEADSRCDST` (no such slot): nothing was sent or received.
#[inline(always)]
fn reply_receive<M: Machine>(node: &mut Node, m: &mut M, caller: usize, to: Endpoint, label: u32) -> Result<(), Errno> {
    if to != Endpoint::NONE && label < message::REPLY {
        send_now(node, m, caller, to, label)?;
    } else if to != Endpoint::NONE {
        check_send(node, caller, to, label)?;
        if let Ok(Holder::Live(destination)) = node.threads.holder(to)
            && node.threads[destination].state.accepts(node.threads[caller].endpoint)
        {
            deliver(node, m, caller, destination);
        }
    }
    receive(node, m, caller, Endpoint(node.threads[caller].frame.r14 as u32));
    Ok(())
}

/// `SENDNB`: gives the message to a destination that waits for it. `ENOTREADY`: it does not; a service is notified when it waits from
/// `ANY`, if it is a service too.
fn send_now<M: Machine>(node: &mut Node, m: &mut M, caller: usize, to: Endpoint, label: u32) -> Result<(), Errno> {
    check_send(node, caller, to, label)?;
    let holder = node.threads.holder(to)?;
    if let Holder::Live(destination) = holder
        && node.threads[destination].state.accepts(node.threads[caller].endpoint)
    {
        deliver(node, m, caller, destination);
        return Ok(());
    }
    if node.threads[caller].endpoint.is_service() && to.is_service() {
        node.threads[to.slot()].wanted[caller / 64] |= 1 << (caller % 64);
    }
    Err(Errno::ENOTREADY)
}

/// Ends the wait of a thread for a message, in vain: its peer has died, or the wait would close a circle. `error`: what a primitive fails with.
pub fn fail_wait<M: Machine>(node: &mut Node, m: &mut M, waiter: usize, error: Errno) {
    stop_waiting(node, waiter);
    let thread = &mut node.threads[waiter];
    match thread.form {
        MessageSource::Linux | MessageSource::Repeated => thread.frame.set_result(Err(Errno::EIO)),
        MessageSource::Native | MessageSource::Memory => thread.frame.set_result(Err(error)),
        MessageSource::Kernel => report::answered(node, m, waiter, Err(Errno::EDEADSRCDST).to_word()),
    }
    node.threads.wake_if_free(waiter);
}

/// Ends the wait of a thread without a result and without waking it. (A wait in a call of MINIX4RT is ended by that.)
pub fn stop_waiting(node: &mut Node, slot: usize) {
    match node.threads[slot].state.blocked_on() {
        Some(BlockedOn::Send(to, _)) => stop_sending(node, slot, to.slot()),
        Some(BlockedOn::Futex) => futex::leave_futex(node, slot),
        Some(BlockedOn::Receive(_) | BlockedOn::Answer(_)) => node.threads[slot].state.unblock(),
        Some(BlockedOn::RealTime) | None => {}
    }
}

/// A message is delivered, and both sides have counted it: records it, and counts down to an injected death.
#[cold]
fn observe<M: Machine>(node: &mut Node, m: &mut M, sender: usize, receiver: usize) {
    let (message, to) = (message_of(node, sender), node.threads[receiver].endpoint);
    tracing::trace!(node, MESSAGE, trace_message(m, event::MESSAGE, &message, to));
    injection::count_down(&mut node.threads[sender], &mut node.timer, m);
    injection::count_down(&mut node.threads[receiver], &mut node.timer, m);
}

/// Hands the request of `caller`, which runs, to the SYSTEM task: now if that waits, else `caller` waits. `EDEADSRCDST`: it is no
/// request (`SENDREC`), or the task has not been started.
#[cold]
#[inline(never)]
fn ask_system<M: Machine>(node: &mut Node, m: &mut M, caller: usize, then: Continuation) -> Result<(), Errno> {
    if then != Continuation::Answer || node.threads[slot::SYSTEM].queue != SYSTEM_QUEUE {
        return Err(Errno::EDEADSRCDST);
    }
    let task = &mut node.threads[slot::SYSTEM];
    if !task.state.is_open() {
        wait_to_send(node, caller, Endpoint::SYSTEM, then);
        return Ok(());
    }
    task.state.unblock();
    transfer(node, m, caller, slot::SYSTEM);
    taken(node, caller, slot::SYSTEM, then);
    node.threads.ready_system_task();
    Ok(())
}
