//! Notifications: one pending bit per source, delivered before messages and never inside `SENDREC`.
//!
//! HARDWARE's carries the mask of interrupt hooks that have fired, CLOCK's stands for the alarm, a service's for
//! itself. They are also how a service learns that a `SENDNB` may be tried again. Neighbours: `ipc` (asks for pending
//! ones when a thread receives), `alarm`, `line`.

use abi::{Endpoint, Errno, Message, endpoint::slot, kernel::Notify};

use crate::{
    Machine, Node,
    ipc::Holder,
    thread::{Then, blocked},
};

impl Node {
    /// `NOTIFY`: only services have a bit, so only they may.
    pub(crate) fn notify<M: Machine>(&mut self, m: &mut M, caller: usize, to: Endpoint) -> Result<(), Errno> {
        let source = self.threads[caller].endpoint;
        if !source.is_service() {
            return Err(Errno::ECALLDENIED);
        }
        if to.slot() >= self.threads.len() {
            return Err(Errno::EDEADSRCDST);
        }
        self.may_send(caller, to)?;
        let Holder::Live(destination) = self.holder(to)? else { return Err(Errno::EDEADSRCDST) };
        self.threads[caller].frame.rax = 0;
        self.post(m, destination, caller, source);
        Ok(())
    }

    /// A notification from `source` (in this slot) for a thread: given now if that waits for it, else kept as a bit.
    #[inline(always)]
    pub(crate) fn post<M: Machine>(&mut self, m: &mut M, destination: usize, source_slot: usize, source: Endpoint) {
        let thread = &mut self.threads[destination];
        if thread.then != Then::Answer && thread.waits_for(source) {
            thread.flags &= !blocked::RECEIVING;
            self.give_notification(m, destination, source_slot);
            self.wake_if_free(destination);
        } else {
            thread.pending[source_slot / 64 % 2] |= 1 << (source_slot % 64);
        }
    }

    /// The slot of the first pending notification that the filter of `receiver` lets through.
    pub(crate) fn pending_source(&self, receiver: usize) -> Option<usize> {
        let thread = &self.threads[receiver];
        if thread.peer != Endpoint::ANY {
            let source = thread.peer.slot();
            let pending = source < 128 && thread.pending[source / 64] & 1 << (source % 64) != 0;
            return (pending && thread.accepts(self.source_of(source))).then_some(source);
        }
        match thread.pending {
            [0, 0] => None,
            [0, high] => Some(64 + high.trailing_zeros() as usize),
            [low, _] => Some(low.trailing_zeros() as usize),
        }
    }

    /// Gives a thread, which waits no more, the notification from this slot.
    pub(crate) fn give_notification<M: Machine>(&mut self, m: &mut M, receiver: usize, source_slot: usize) {
        let source = self.source_of(source_slot);
        let thread = &mut self.threads[receiver];
        thread.pending[source_slot / 64 % 2] &= !(1 << (source_slot % 64));
        let bits = if source_slot == slot::HARDWARE { core::mem::take(&mut thread.hooks) } else { 0 };
        let notification = Notify { time_ns: self.now_ns(m), bits };
        let message = Message { source, ..notification.message() };
        self.threads[receiver].messages += 1;
        self.delivered += 1;
        if self.observed {
            self.observe_notification(m, receiver, &message);
        }
        self.accept(m, receiver, &message);
    }

    fn source_of(&self, source_slot: usize) -> Endpoint {
        match self.threads[source_slot].endpoint {
            Endpoint(0) => Endpoint::current(source_slot),
            endpoint => endpoint,
        }
    }

    /// `receiver` waits from anybody now: tells the services whose `SENDNB` it has refused.
    #[inline(never)]
    pub(crate) fn notify_refused_senders<M: Machine>(&mut self, m: &mut M, receiver: usize) {
        let wanted = core::mem::take(&mut self.threads[receiver].wanted);
        let source = self.source_of(receiver);
        for (index, mut bits) in wanted.into_iter().enumerate() {
            while bits != 0 {
                let requester = index * 64 + bits.trailing_zeros() as usize;
                bits &= bits - 1;
                self.post(m, requester, receiver, source);
            }
        }
    }
}
