//! The fast path: a call to a server that waits, and its reply, without queues and lists.
//!
//! `SENDREC` and `REPLYREC` between threads with messages in registers, Linux calls and their replies are most of what the
//! system does. If every condition holds, message and CPU go from thread to thread in one piece; otherwise nothing has been
//! touched and `message` does it. The outcome is exactly that of `message` and the scheduler (tests/core/paths.rs); the
//! conditions are one by one because instructions are counted. Neighbours: `entry` (tries this first), `message`, `route`.

use crate::{
    Machine, Node, Thread, frame::entry, ipc::in_memory, priority::FIRST_SHARED, thread::MessageSource,
    thread::state::BlockedOn,
};

use abi::{Endpoint, call, endpoint::FIRST_SERVICE, endpoint::SERVICE_SLOTS, linux, message::KERNEL_LABELS};

/// Lowest content of `r13`, as a signed number, whose label (upper half) programs must not send; replies are negative.
const REFUSED_LABELS: i64 = (KERNEL_LABELS as i64) << 32;

/// What is left to the hardware half: to load the registers of the receiver, which is the current thread now and came
/// in by `syscall`. Words 0 to 6 come from the frame of `from` (word 6 of a Linux call is [`Thread::messages`], word 5 of one that has a
/// word fetched is that), `rax` is 0 when a message was received, and everything else comes from the frame of `to`. What that says about
/// words and `rax` is stale until the thread enters the kernel again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FastSwitch {
    /// Slot of the sender; the same as `to` when a Linux call has its result: then everything comes from there.
    pub from: usize,
    /// Slot of the receiver.
    pub to: usize,
    /// What was fetched (`linux::FETCHED`).
    pub word: Option<u64>,
}

/// `SENDREC` by the current thread.
#[inline(always)]
pub fn request<M: Machine>(node: &mut Node, m: &mut M) -> Option<FastSwitch> {
    let (from, to, best) = parties(node)?;
    let Ok([sender, receiver]) = node.threads.get_disjoint_mut([from, to]) else { return None };
    if receiver.form != MessageSource::Native || !waits_for_anybody(receiver, best) || !is_meant(receiver, sender) {
        return None;
    }
    sender.state.block(BlockedOn::Answer(receiver.endpoint));
    give_message(sender, receiver);
    switch_over(node, m, from, to);
    Some(FastSwitch { from, to, word: None })
}

/// `REPLYREC` by the current thread, if nothing waits for it: the answer to a native request or to a Linux call.
#[inline(always)]
pub fn answer<M: Machine>(node: &mut Node, m: &mut M) -> Option<FastSwitch> {
    let (from, to, best) = parties(node)?;
    let Ok([sender, receiver]) = node.threads.get_disjoint_mut([from, to]) else { return None };
    if !has_nothing_to_receive(sender)
        || !receiver.state.is_open_to(sender.endpoint)
        || !is_ready_to_receive(receiver, best)
        || !is_meant(receiver, sender)
    {
        return None;
    }
    let words = match receiver.form {
        MessageSource::Native => from,
        MessageSource::Linux => to,
        _ => return None,
    };
    if words == from {
        give_message(sender, receiver);
    } else {
        sender.form = MessageSource::Native;
        receiver.frame.rax = sender.frame.rdi;
    }
    sender.state.block(BlockedOn::Receive(Endpoint::ANY));
    switch_over(node, m, from, to);
    Some(FastSwitch { from: words, to, word: None })
}

/// A Linux call by a program (for a service more is to be checked); with `fetches` one of `linux::FETCHED`.
#[inline(always)]
pub fn linux_call<M: Machine>(node: &mut Node, m: &mut M, number: u64, fetches: bool) -> Option<FastSwitch> {
    let (to, word) = match fetches {
        true => fetched(node, m, number)?,
        false => ((*node.routes.get(number as usize)? as usize).wrapping_sub(1), None),
    };
    let (from, best) = (node.current(), node.threads.best_for_fast_path());
    if !(FIRST_SERVICE..SERVICE_SLOTS).contains(&to) || from < SERVICE_SLOTS {
        return None;
    }
    let Ok([sender, receiver]) = node.threads.get_disjoint_mut([from, to]) else { return None };
    if receiver.form != MessageSource::Native || !waits_for_anybody(receiver, best) {
        return None;
    }
    sender.linux_call = number as u32 + 1;
    sender.form = MessageSource::Linux;
    sender.state.block(BlockedOn::Answer(receiver.endpoint));
    let label = number | word.map_or(0, |_| linux::WITH_WORD as u64);
    receiver.frame.r13 = sender.endpoint.0 as u64 | label << 32;
    switch_over(node, m, from, to);
    Some(FastSwitch { from, to, word })
}

/// Slot of the service that such a call goes to, and the word that its argument 1 points to, if there are eight bytes within a page.
#[inline(always)]
fn fetched<M: Machine>(node: &Node, m: &mut M, number: u64) -> Option<(usize, Option<u64>)> {
    let ([write, mask], thread) = (linux::FETCHED, node.threads.running());
    let is_write = number == write.0 as u64;
    let (to, bytes) = if is_write { (write.1, thread.frame.rdx) } else { (mask.1, thread.frame.r10) };
    Some((to, if bytes == 8 { m.word(thread.space()?, thread.frame.rsi) } else { None }))
}

/// `SENDREC` by the current thread, which executed `int 0x21`, to a server that waits in the same way and whose memory is mapped; or `SEND` to
/// a thread that waits so and is no better: the sender goes on. Returns the slot of the thread that runs.
#[inline(always)]
pub fn primitive_in_memory<M: Machine>(node: &mut Node, m: &mut M) -> Option<usize> {
    let (from, best) = (node.current(), node.threads.best_for_fast_path());
    let sender = &node.threads[from];
    let (number, peer) = (sender.frame.rax, Endpoint(sender.frame.rdi as u32));
    let to = peer.slot();
    if !matches!(number, call::SENDREC | call::SEND) || node.may_send(from, to).is_err() {
        return None;
    }
    let receiver = &node.threads[to];
    let takes_it = match number {
        call::SENDREC => receiver.state.is_open() && (FIRST_SHARED..best).contains(&receiver.base_queue),
        _ => {
            let goes_on = (FIRST_SHARED..=best.min(receiver.base_queue)).contains(&sender.queue);
            receiver.state.is_open_to(sender.endpoint) && goes_on
        }
    };
    if !takes_it || receiver.form != MessageSource::Memory || receiver.attention != 0 || receiver.endpoint != peer {
        return None;
    }
    in_memory::load(node, m, from).ok()?;
    let message = &node.threads[from].outgoing;
    if message.label as i32 >= KERNEL_LABELS as i32 {
        return None;
    }
    in_memory::store(node, m, to, message).ok()?;
    node.threads[to].frame.rax = 0;
    if number == call::SENDREC {
        node.threads[from].state.block(BlockedOn::Answer(peer));
        switch_over(node, m, from, to);
        return Some(to);
    }
    node.threads[from].frame.rax = 0;
    node.delivered += 1;
    node.threads.end_wait(from, to);
    node.threads.enqueue(to as u16);
    node.arm_quantum_end(m, from);
    Some(from)
}

/// Slots of the current thread and of the one that it names, if it may send to that, and the priority that this has to be
/// better than.
#[inline(always)]
fn parties(node: &Node) -> Option<(usize, usize, u8)> {
    let (from, to) = (node.current(), node.threads.running().frame.endpoint().slot());
    node.may_send(from, to).ok()?;
    Some((from, to, node.threads.best_for_fast_path()))
}

/// The sender, which has begun to wait, stops running, and the receiver becomes the current thread.
#[inline(always)]
fn switch_over<M: Machine>(node: &mut Node, m: &mut M, from: usize, to: usize) {
    let now = m.ticks();
    node.delivered += 1;
    node.threads.hand_over(from, to, now);
    node.arm_quantum_end(m, to);
}

/// Names the sender and the label to the receiver, in the native form.
#[inline(always)]
fn give_message(sender: &mut Thread, receiver: &mut Thread) {
    sender.form = MessageSource::Native;
    receiver.frame.r13 = sender.endpoint.0 as u64 | sender.frame.r13 & !0xffff_ffff;
}

/// True when the sender names the receiver rightly, and its label is one that programs may send.
#[inline(always)]
fn is_meant(receiver: &Thread, sender: &Thread) -> bool {
    let to = sender.frame.endpoint();
    let is_named = receiver.endpoint == to || to.0 < SERVICE_SLOTS as u32;
    is_named && (sender.frame.r13 as i64) < REFUSED_LABELS
}

/// Returns true when a `REPLYREC` of this thread will wait from `ANY`, and nothing is pending.
#[inline(always)]
fn has_nothing_to_receive(thread: &Thread) -> bool {
    let waiting = thread.pending[0] | thread.pending[1] | thread.wanted[0] | thread.wanted[1];
    waiting == 0 && thread.senders.is_empty() && thread.frame.r14 as u32 == Endpoint::ANY.0
}

/// True when a receiver, which waits, has nothing else to do, came in by `syscall` (the SYSTEM task never does), is better than all that are
/// ready, and no real-time thread: a switch to one closes the fast paths.
fn is_ready_to_receive(receiver: &Thread, best: u8) -> bool {
    let has_nothing_to_do = receiver.attention == 0 && receiver.frame.entry == entry::SYSCALL;
    has_nothing_to_do && (FIRST_SHARED..best).contains(&receiver.base_queue)
}

/// Returns true when it waits from `ANY`: then it has no donation.
fn waits_for_anybody(receiver: &Thread, best: u8) -> bool {
    receiver.state.is_open() && is_ready_to_receive(receiver, best)
}
