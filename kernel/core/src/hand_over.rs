//! The short way: a call to a server that waits, and its answer, without going through queues and lists.
//!
//! `SENDREC` and `REPLYREC` between two threads of native form are most of what the system does. When nothing stands in the way, the message and the
//! CPU go from thread to thread in one piece; in every other case nothing has been touched and `ipc` does it. What is done here is exactly what
//! `ipc` and `scheduler` would do, instruction by instruction counted: hence the conditions one by one, cheapest first.
//! Neighbours: `node` (tries this first), `ipc`, `scheduler`.

use abi::{
    Endpoint,
    call::{REPLYREC, SENDREC},
    endpoint::{APPLICATIONS_BIT, SERVICE_SLOTS},
    message::KERNEL_LABELS,
};

use crate::{
    Machine, Node, Thread,
    frame::entry,
    thread::{Form, Then, blocked},
};

/// Lowest content of `r13`, as a signed number, whose label (upper half) programs must not send; replies are negative.
const REFUSED_LABELS: i64 = (KERNEL_LABELS as i64) << 32;

/// A message on its way: the hardware half loads words 0 to 6 from the frame of `from`, success into `rax`, and everything else from the frame of `to`,
/// which is the current thread now and came in by `syscall`. (What its frame says about those registers is stale until it enters the kernel again.)
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HandOver {
    /// Slot of the sender.
    pub from: usize,
    /// Slot of the receiver.
    pub to: usize,
}

impl Node {
    /// See [`Node::try_hand_over`].
    #[inline(always)]
    pub(crate) fn hand_over<M: Machine>(&mut self, m: &mut M) -> Option<HandOver> {
        let sender = &self.threads[self.current];
        match sender.frame.rax {
            SENDREC => self.hand_over_then::<M, true>(m),
            REPLYREC if has_nothing_to_receive(sender) => self.hand_over_then::<M, false>(m),
            _ => None,
        }
    }

    /// The sender waits for the receiver's answer, or (`ANSWER` false) for anybody.
    #[inline(always)]
    fn hand_over_then<M: Machine, const ANSWER: bool>(&mut self, m: &mut M) -> Option<HandOver> {
        let (from, to) = (self.current, self.threads[self.current].frame.endpoint().slot());
        if from == to || self.tracing {
            return None;
        }
        let best = self.ready.trailing_zeros() as u8;
        let Ok([sender, receiver]) = self.threads.get_disjoint_mut([from, to]) else { return None };
        if !is_ready_to_receive(receiver, sender) || receiver.base_queue >= best {
            return None;
        }
        let destinations = &self.privileges[sender.privileges as usize % SERVICE_SLOTS].destinations;
        let bit = if to < SERVICE_SLOTS { to } else { APPLICATIONS_BIT };
        if destinations[bit / 64] >> (bit % 64) & 1 == 0 {
            return None;
        }

        sender.form = Form::Native;
        sender.then = if ANSWER { Then::Answer } else { Then::Return };
        sender.flags = blocked::RECEIVING;
        sender.peer = if ANSWER { receiver.endpoint } else { Endpoint::ANY };
        sender.messages += 1;
        receiver.messages += 1;
        receiver.frame.r13 = sender.endpoint.0 as u64 | sender.frame.r13 & !0xffff_ffff;
        receiver.flags = 0;
        receiver.queue = receiver.base_queue;

        let now = m.ticks();
        sender.charge(now.wrapping_sub(self.switched_at));
        self.switched_at = now;
        self.delivered += 1;
        self.switches += 1;
        self.current = to;
        if self.ready != 0 {
            let quantum_end = now.saturating_add(receiver.quantum_left());
            self.arm(m, quantum_end);
        }
        Some(HandOver { from, to })
    }
}

/// True when a `REPLYREC` of this thread will wait for anybody, and nobody is there.
#[inline(always)]
fn has_nothing_to_receive(thread: &Thread) -> bool {
    let waiting = thread.pending[0] | thread.pending[1] | thread.wanted[0] | thread.wanted[1];
    waiting == 0 && thread.senders.is_empty() && thread.frame.r14 as u32 == Endpoint::ANY.0
}

/// True when the receiver waits for this message in its registers, it is the one that the sender means, and the label is permitted.
#[inline(always)]
fn is_ready_to_receive(receiver: &Thread, sender: &Thread) -> bool {
    if receiver.flags != blocked::RECEIVING || receiver.form != Form::Native || receiver.attention != 0 {
        return false;
    }
    if receiver.frame.entry != entry::SYSCALL {
        return false;
    }
    if receiver.peer != Endpoint::ANY && receiver.peer != sender.endpoint {
        return false;
    }
    let to = sender.frame.endpoint();
    if receiver.endpoint != to && to.0 >= SERVICE_SLOTS as u32 {
        return false;
    }
    (sender.frame.r13 as i64) < REFUSED_LABELS
}
