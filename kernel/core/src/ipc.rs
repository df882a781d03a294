//! Rendezvous: how a message goes from one thread to another (DESIGN.md, "The one idea", 4).
//!
//! A message is moved exactly once, from the sender's frame to the receiver's, when both are there. A sender that comes
//! first waits in the sender list of the destination, best queue first; a receiver that comes first waits with a
//! filter. Invariants: a thread with `SENDING` is in the list of the slot of its `peer`; nobody with `RECEIVING` has an
//! acceptable sender in its list or an acceptable notification pending. Neighbours: `notify` (notifications, `SENDNB`),
//! `deadlock` (`ELOCKED`), `life` (death of peers), `report` (messages of the kernel itself), `route` (Linux calls).

use abi::{Endpoint, Errno, Message, Word, call, endpoint, message};

use crate::{
    Machine, Node,
    rt::NOTHING,
    scheduler::SYSTEM_QUEUE,
    thread::{Form, Then, attention, blocked},
};

/// Who holds the slot that an endpoint names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Holder {
    /// This thread.
    Live(usize),
    /// Nobody, but rs has said that a successor will come.
    Expected(usize),
}

impl Node {
    /// A primitive made by the current thread, with the message in its registers.
    #[inline(always)]
    pub(crate) fn primitive<M: Machine>(&mut self, m: &mut M, number: u64) {
        let caller = self.current;
        let thread = &mut self.threads[caller];
        thread.form = Form::Native;
        let peer = thread.frame.endpoint();
        let label = thread.frame.label();
        let result = match number {
            call::SENDREC => self.send(m, caller, peer, label, Then::Answer),
            call::REPLYREC => self.reply_and_receive(m, caller, peer, label),
            _ => self.other_primitive(m, number, peer, label),
        };
        if let Err(error) = result {
            self.threads[caller].frame.set_result(Err(error));
        }
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn other_primitive<M: Machine>(
        &mut self,
        m: &mut M,
        number: u64,
        peer: Endpoint,
        label: u32,
    ) -> Result<(), Errno> {
        let caller = self.current;
        match number {
            call::SEND => self.send(m, caller, peer, label, Then::Return),
            call::SENDREC => self.send(m, caller, peer, label, Then::Answer),
            call::SENDWAIT => self.send(m, caller, peer, label, Then::Receive),
            call::RECEIVE => {
                self.receive(m, caller, peer);
                Ok(())
            }
            call::NOTIFY => self.notify(m, caller, peer),
            call::SENDNB => self.send_now(m, caller, peer, label),
            _ => Err(Errno::EBADCALL),
        }
    }

    /// The holder of the slot that `to` names, if `to` names it rightly.
    #[inline(always)]
    pub(crate) fn holder(&self, to: Endpoint) -> Result<Holder, Errno> {
        match self.threads.get(to.slot()) {
            Some(thread) if thread.endpoint == to && to.0 != 0 => Ok(Holder::Live(to.slot())),
            _ => self.holder_of_slot(to),
        }
    }

    fn holder_of_slot(&self, to: Endpoint) -> Result<Holder, Errno> {
        if to.generation() != 0 || !to.is_service() {
            return Err(Errno::EDEADSRCDST);
        }
        let thread = &self.threads[to.slot()];
        match (thread.is_live(), thread.expected) {
            (true, _) => Ok(Holder::Live(to.slot())),
            (false, true) => Ok(Holder::Expected(to.slot())),
            (false, false) => Err(Errno::EDEADSRCDST),
        }
    }

    /// The thread with this endpoint.
    pub(crate) fn find(&self, endpoint: Endpoint) -> Result<usize, Errno> {
        match self.holder(endpoint)? {
            Holder::Live(slot) => Ok(slot),
            Holder::Expected(_) => Err(Errno::EDEADSRCDST),
        }
    }

    /// The thread with this endpoint, `SELF` being the current one.
    pub(crate) fn find_or_self(&self, endpoint: Endpoint) -> Result<usize, Errno> {
        if endpoint == Endpoint::SELF { Ok(self.caller()) } else { self.find(endpoint) }
    }

    /// Whether the privileges of `caller` let it send to the slot of `to`.
    #[inline(always)]
    pub(crate) fn may_send(&self, caller: usize, to: Endpoint) -> Result<(), Errno> {
        let slot = to.slot();
        let bit = if slot < endpoint::SERVICE_SLOTS { slot } else { endpoint::APPLICATIONS_BIT };
        let privileges = &self.privileges[self.threads[caller].privileges as usize % endpoint::SERVICE_SLOTS];
        match privileges.destinations[bit / 64] & 1 << (bit % 64) {
            0 => Err(Errno::ECALLDENIED),
            _ => Ok(()),
        }
    }

    /// The checks every message of a program passes before it goes anywhere.
    #[inline(always)]
    fn check_send(&self, caller: usize, to: Endpoint, label: u32) -> Result<(), Errno> {
        if (message::KERNEL_LABELS..message::REPLY).contains(&label) {
            return Err(Errno::EINVAL);
        }
        if to.slot() >= endpoint::SLOTS {
            return Err(Errno::EDEADSRCDST);
        }
        self.may_send(caller, to)
    }

    /// `SEND`, `SENDREC` or `SENDWAIT` by a program.
    #[inline(always)]
    fn send<M: Machine>(
        &mut self,
        m: &mut M,
        caller: usize,
        to: Endpoint,
        label: u32,
        then: Then,
    ) -> Result<(), Errno> {
        self.check_send(caller, to, label)?;
        self.transmit(m, caller, to, then)
    }

    /// Hands the message of `caller`, which runs, to `to`: now if that waits for it, else `caller` waits.
    #[inline(always)]
    pub(crate) fn transmit<M: Machine>(
        &mut self,
        m: &mut M,
        caller: usize,
        to: Endpoint,
        then: Then,
    ) -> Result<(), Errno> {
        let holder = match self.holder(to) {
            Ok(holder) => holder,
            Err(_) if to == Endpoint::SYSTEM => return self.ask_system(m, caller, then),
            Err(error) => return Err(error),
        };
        if let Holder::Live(destination) = holder {
            let source = self.threads[caller].endpoint;
            if self.threads[destination].waits_for(source) {
                self.threads[caller].then = then;
                self.deliver(m, caller, destination);
                if self.taken(caller, destination) {
                    self.receive(m, caller, Endpoint(self.threads[caller].frame.r14 as u32));
                }
                return Ok(());
            }
            if self.closes_circle(caller, to) {
                return Err(Errno::ELOCKED);
            }
        }
        self.wait_to_send(caller, to, then);
        Ok(())
    }

    /// Puts `caller` into the sender list of the slot of `to`.
    #[inline(never)]
    pub(crate) fn wait_to_send(&mut self, caller: usize, to: Endpoint, then: Then) {
        let thread = &mut self.threads[caller];
        thread.flags |= blocked::SENDING;
        thread.peer = to;
        thread.then = then;
        let mut senders = self.threads[to.slot()].senders;
        senders.insert_by_queue(&mut self.threads, caller as u16);
        self.threads[to.slot()].senders = senders;
        self.lend_along(self.threads[caller].queue, to.slot());
    }

    /// Takes a waiting sender out of the list it is in.
    pub(crate) fn stop_sending(&mut self, sender: usize) {
        let at = self.threads[sender].peer.slot();
        let mut senders = self.threads[at].senders;
        senders.remove(&mut self.threads, sender as u16);
        self.threads[at].senders = senders;
        self.threads[sender].flags &= !blocked::SENDING;
    }

    /// Moves the message of `sender` into `receiver`, which waits for it, and lets that run.
    #[inline(always)]
    pub(crate) fn deliver<M: Machine>(&mut self, m: &mut M, sender: usize, receiver: usize) {
        self.threads[receiver].flags &= !blocked::RECEIVING;
        self.transfer(m, sender, receiver);
        self.wake_if_free(receiver);
        self.lend(sender, receiver);
    }

    /// Moves the message of `sender` into `receiver`.
    #[inline(always)]
    pub(crate) fn transfer<M: Machine>(&mut self, m: &mut M, sender: usize, receiver: usize) {
        self.delivered += 1;
        let Ok([from, to]) = self.threads.get_disjoint_mut([sender, receiver]) else { return };
        from.messages += 1;
        to.messages += 1;
        if self.observed {
            self.observe_message(m, sender, receiver);
        }
        let Ok([from, to]) = self.threads.get_disjoint_mut([sender, receiver]) else { return };
        if from.form == Form::Native && to.form == Form::Native {
            to.frame.rdi = from.frame.rdi;
            to.frame.rsi = from.frame.rsi;
            to.frame.rdx = from.frame.rdx;
            to.frame.r10 = from.frame.r10;
            to.frame.r8 = from.frame.r8;
            to.frame.r9 = from.frame.r9;
            to.frame.r12 = from.frame.r12;
            to.frame.r13 = from.endpoint.0 as u64 | from.frame.r13 & !0xffff_ffff;
            to.frame.rax = 0;
        } else {
            self.transfer_other(m, sender, receiver);
        }
    }

    #[inline(never)]
    fn transfer_other<M: Machine>(&mut self, m: &mut M, sender: usize, receiver: usize) {
        let message = self.message_of(sender);
        self.accept(m, receiver, &message);
    }

    /// The message that a thread is sending.
    pub(crate) fn message_of(&self, sender: usize) -> Message {
        let thread = &self.threads[sender];
        let words = thread.frame.words();
        let message = match thread.form {
            Form::Native => Message { label: thread.frame.label(), words, ..Message::new(0) },
            Form::Linux | Form::Repeated => {
                let [w0, w1, w2, w3, w4, w5, _] = words;
                let repeated = if thread.form == Form::Repeated { message::REPEATED } else { 0 };
                let words = [w0, w1, w2, w3, w4, w5, thread.messages | repeated];
                Message { label: thread.frame.rax as u32, words, ..Message::new(0) }
            }
            Form::Memory | Form::Kernel => thread.outgoing,
        };
        Message { source: thread.endpoint, ..message }
    }

    /// Gives a thread, which waits no more, the message it waited for.
    #[inline(always)]
    pub(crate) fn accept<M: Machine>(&mut self, m: &mut M, receiver: usize, message: &Message) {
        let thread = &mut self.threads[receiver];
        match thread.form {
            Form::Native => thread.frame.set_message(message),
            Form::Linux | Form::Repeated => thread.frame.rax = message.words[0],
            Form::Memory => {
                thread.arrived = *message;
                thread.frame.rax = 0;
                thread.attention |= attention::STORE;
            }
            Form::Kernel => self.answered(m, receiver, message.words[0]),
        }
    }

    /// The message of `sender` has been taken by `receiver`: goes on as its call says. True: it is to receive now.
    #[inline(always)]
    pub(crate) fn taken(&mut self, sender: usize, receiver: usize) -> bool {
        let receiver = self.threads[receiver].endpoint;
        let thread = &mut self.threads[sender];
        match thread.then {
            Then::Answer => {
                thread.flags = thread.flags & !blocked::SENDING | blocked::RECEIVING;
                thread.peer = receiver;
                false
            }
            Then::Return => {
                thread.flags &= !blocked::SENDING;
                thread.frame.rax = 0;
                self.wake_if_free(sender);
                false
            }
            Then::Receive => {
                thread.flags &= !blocked::SENDING;
                true
            }
        }
    }

    /// `RECEIVE`, or the second half of `REPLYREC` and `SENDWAIT`. Errors are the result of the call.
    #[inline(always)]
    pub(crate) fn receive<M: Machine>(&mut self, m: &mut M, receiver: usize, from: Endpoint) {
        let waits = &self.threads[receiver];
        let nothing_there =
            waits.pending[0] | waits.pending[1] == 0 && waits.senders.is_empty() && waits.wanted == [0; 2];
        if nothing_there && from == Endpoint::ANY {
            self.wait_to_receive(receiver, from);
        } else {
            self.receive_what_is_there(m, receiver, from);
        }
    }

    #[inline(never)]
    fn receive_what_is_there<M: Machine>(&mut self, m: &mut M, receiver: usize, from: Endpoint) {
        let mut next = Some((receiver, from));
        while let Some((receiver, from)) = next {
            next = match self.receive_once(m, receiver, from) {
                Ok(Some(sender)) => Some((sender, Endpoint(self.threads[sender].frame.r14 as u32))),
                Ok(None) => None,
                Err(error) => {
                    self.threads[receiver].frame.set_result(Err(error));
                    self.wake_if_free(receiver);
                    None
                }
            };
        }
    }

    /// Receives what is there or makes `receiver` wait. Returns a sender whose message was taken and which is to
    /// receive in its turn.
    fn receive_once<M: Machine>(&mut self, m: &mut M, receiver: usize, from: Endpoint) -> Result<Option<usize>, Errno> {
        let waits = &mut self.threads[receiver];
        waits.then = Then::Return;
        waits.peer = from;
        let is_task = from == Endpoint::HARDWARE || from == Endpoint::CLOCK;
        let specific = from != Endpoint::ANY && !is_task;
        if specific {
            self.holder(from)?;
        }
        if let Some(source) = self.pending_source(receiver) {
            self.give_notification(m, receiver, source);
            self.wake_if_free(receiver);
            return Ok(None);
        }
        if let Some(sender) = self.first_sender(receiver) {
            self.stop_sending(sender);
            self.transfer(m, sender, receiver);
            self.wake_if_free(receiver);
            self.lend(sender, receiver);
            let receives = self.taken(sender, receiver);
            return Ok(receives.then_some(sender));
        }
        if specific && self.closes_circle(receiver, from) {
            return Err(Errno::ELOCKED);
        }
        self.wait_to_receive(receiver, from);
        if from == Endpoint::ANY {
            self.notify_refused_senders(m, receiver);
        }
        Ok(None)
    }

    #[inline(always)]
    fn wait_to_receive(&mut self, receiver: usize, from: Endpoint) {
        let thread = &mut self.threads[receiver];
        thread.flags |= blocked::RECEIVING;
        thread.peer = from;
        thread.then = Then::Return;
        if thread.base_queue < SYSTEM_QUEUE {
            self.set_loan(NOTHING, receiver);
        }
    }

    /// The first waiting sender that the filter of `receiver` lets through.
    fn first_sender(&self, receiver: usize) -> Option<usize> {
        let receiver = &self.threads[receiver];
        let mut sender = receiver.senders.first as usize;
        while sender != 0 && !receiver.accepts(self.threads[sender].endpoint) {
            sender = self.threads[sender].next as usize;
        }
        (sender != 0).then_some(sender)
    }

    /// `REPLYREC`: gives the message to a destination that waits for it, and receives from `r14`. A destination that is
    /// dead or does not wait loses the message; `NONE` means no message. `EINVAL`, `ECALLDENIED`: nothing was sent or
    /// received.
    #[inline(always)]
    fn reply_and_receive<M: Machine>(
        &mut self,
        m: &mut M,
        caller: usize,
        to: Endpoint,
        label: u32,
    ) -> Result<(), Errno> {
        if to != Endpoint::NONE {
            self.check_send(caller, to, label)?;
            if let Ok(Holder::Live(destination)) = self.holder(to)
                && self.threads[destination].waits_for(self.threads[caller].endpoint)
            {
                self.deliver(m, caller, destination);
            }
        }
        self.receive(m, caller, Endpoint(self.threads[caller].frame.r14 as u32));
        Ok(())
    }

    /// `SENDNB`: gives the message to a destination that waits for it; otherwise asks to be notified when that waits
    /// from `ANY`.
    fn send_now<M: Machine>(&mut self, m: &mut M, caller: usize, to: Endpoint, label: u32) -> Result<(), Errno> {
        self.check_send(caller, to, label)?;
        let holder = self.holder(to)?;
        if let Holder::Live(destination) = holder
            && self.threads[destination].waits_for(self.threads[caller].endpoint)
        {
            self.deliver(m, caller, destination);
            self.threads[caller].frame.rax = 0;
            return Ok(());
        }
        if self.threads[caller].endpoint.is_service() && to.is_service() {
            self.threads[to.slot()].wanted[caller / 64] |= 1 << (caller % 64);
        }
        Err(Errno::ENOTREADY)
    }

    /// Ends the wait of a thread whose peer has died.
    pub(crate) fn fail_wait<M: Machine>(&mut self, m: &mut M, waiter: usize) {
        if self.threads[waiter].flags & blocked::SENDING != 0 {
            self.stop_sending(waiter);
        }
        let thread = &mut self.threads[waiter];
        thread.flags &= !blocked::RECEIVING;
        match thread.form {
            Form::Linux | Form::Repeated => thread.frame.set_result(Err(Errno::EIO)),
            Form::Native | Form::Memory => thread.frame.set_result(Err(Errno::EDEADSRCDST)),
            Form::Kernel => self.answered(m, waiter, Err(Errno::EDEADSRCDST).to_word()),
        }
        self.wake_if_free(waiter);
    }
}
