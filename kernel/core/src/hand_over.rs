//! The short way: a call to a server that waits, and its answer, without going through queues and lists.
//!
//! `SENDREC` and `REPLYREC` between two threads of native form are most of what the system does. When nothing stands in the way, the message goes
//! from frame to frame and the CPU from thread to thread in one piece; in every other case nothing has been touched and `ipc` does it.
//! What is done here is exactly what `ipc` and `scheduler` would do: their tests run through here too.
//! Neighbours: `node` (tries this first), `ipc`, `scheduler`.

use abi::{
    Endpoint,
    call::{REPLYREC, SENDREC},
    endpoint::{APPLICATIONS_BIT, SERVICE_SLOTS},
    message::KERNEL_LABELS,
};

use crate::{
    Machine, Node,
    thread::{Form, Then, blocked},
};

/// Lowest content of `r13`, as a signed number, whose label (upper half) programs must not send; replies are negative.
const REFUSED_LABELS: i64 = (KERNEL_LABELS as i64) << 32;

impl Node {
    /// Makes the call of the current thread by the short way. False: it is none, or not possible; nothing has changed. True: another thread is the
    /// current one and runs.
    #[inline(always)]
    pub(crate) fn hand_over<M: Machine>(&mut self, m: &mut M) -> bool {
        let caller = self.current;
        let sender = &self.threads[caller];
        let (peer, then) = match sender.frame.rax {
            SENDREC => (Endpoint::NONE, Then::Answer),
            REPLYREC if self.has_nothing_to_receive(caller) => (Endpoint::ANY, Then::Return),
            _ => return false,
        };
        let (to, sender_endpoint) = (sender.frame.endpoint(), sender.endpoint);
        let destination = to.slot();
        let Some(receiver) = self.threads.get(destination) else { return false };
        let waits = receiver.flags == blocked::RECEIVING && receiver.form == Form::Native && receiver.attention == 0;
        let is_meant = receiver.endpoint == to || to.0 < SERVICE_SLOTS as u32;
        let accepts = receiver.peer == Endpoint::ANY || receiver.peer == sender_endpoint;
        let next_in_line = (receiver.base_queue as u32) < self.ready.trailing_zeros();
        let allowed = (sender.frame.r13 as i64) < REFUSED_LABELS && self.may_reach(caller, destination);
        if !(waits && is_meant && accepts && next_in_line && allowed) || self.tracing {
            return false;
        }
        let receiver_endpoint = receiver.endpoint;
        self.move_registers(caller, destination);
        let sender = &mut self.threads[caller];
        sender.form = Form::Native;
        sender.then = then;
        sender.flags = blocked::RECEIVING;
        sender.peer = if then == Then::Answer { receiver_endpoint } else { peer };
        self.switch_to_receiver(m, destination);
        true
    }

    /// True when a `REPLYREC` of this thread will wait for anybody, and nobody is there.
    #[inline(always)]
    fn has_nothing_to_receive(&self, slot: usize) -> bool {
        let thread = &self.threads[slot];
        let waiting = thread.pending[0] | thread.pending[1] | thread.wanted[0] | thread.wanted[1];
        waiting == 0 && thread.senders.is_empty() && thread.frame.r14 as u32 == Endpoint::ANY.0
    }

    #[inline(always)]
    fn may_reach(&self, caller: usize, destination: usize) -> bool {
        let bit = if destination < SERVICE_SLOTS { destination } else { APPLICATIONS_BIT };
        let privileges = &self.privileges[self.threads[caller].privileges as usize % SERVICE_SLOTS];
        privileges.destinations[bit / 64] >> (bit % 64) & 1 != 0
    }

    #[inline(always)]
    fn move_registers(&mut self, sender: usize, receiver: usize) {
        let Ok([from, to]) = self.threads.get_disjoint_mut([sender, receiver]) else { return };
        from.messages += 1;
        to.messages += 1;
        to.frame.rdi = from.frame.rdi;
        to.frame.rsi = from.frame.rsi;
        to.frame.rdx = from.frame.rdx;
        to.frame.r10 = from.frame.r10;
        to.frame.r8 = from.frame.r8;
        to.frame.r9 = from.frame.r9;
        to.frame.r12 = from.frame.r12;
        to.frame.r13 = from.endpoint.0 as u64 | from.frame.r13 & !0xffff_ffff;
        to.frame.rax = 0;
        self.delivered += 1;
    }

    /// Makes the receiver, better than all that are ready, the current thread.
    #[inline(always)]
    fn switch_to_receiver<M: Machine>(&mut self, m: &mut M, slot: usize) {
        let thread = &mut self.threads[slot];
        thread.flags = 0;
        thread.queue = thread.base_queue;
        let quantum_left = thread.quantum_left;
        self.charge(m.ticks());
        self.current = slot;
        self.switches += 1;
        if self.ready != 0 {
            self.arm(m, self.switched_at.saturating_add(quantum_left));
        }
    }
}
