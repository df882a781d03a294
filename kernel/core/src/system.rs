//! The SYSTEM task: kernel calls as messages, MINIX's way and the baseline that the other ways to a port are measured against (H21, H34).
//!
//! It is a task of the kernel with a context of its own, the frame of slot 0, and a ready queue of its own, between the real-time and the
//! time-shared ones. A request goes to it by rendezvous like any message; the scheduler dispatches it; it makes the call in the name and with
//! the rights of the sender, answers by `REPLYREC`, and waits for the next one. Having no memory, it needs no stack and no space.
//!
//! It never waits for anybody but the next request. A call that needs memory which vm must map first, or that makes way for interrupts, is
//! handed back to its sender, which asks again when it runs next; `Thread::progress` says how much is done. So a long copy of one driver
//! delays nobody else's request. Neighbours: `ipc` (delivers), `scheduler` (dispatches), `call` (makes the calls).

use abi::{
    Endpoint, Errno, Word,
    call::{self, BY_MESSAGE, KERNEL_CALLS, KernelCall, SYSTEM_LABELS},
    endpoint::{SERVICE_SLOTS, slot},
    message::REPLY,
    privilege::Privileges,
};

use crate::{
    Machine, Node,
    call::Stop,
    scheduler::SYSTEM_QUEUE,
    thread::{Form, Then, attention, blocked},
};

impl Node {
    /// Makes the task wait for its first request.
    pub(crate) fn start_system_task(&mut self) {
        let task = &mut self.threads[slot::SYSTEM];
        task.flags = blocked::RECEIVING;
        task.peer = Endpoint::ANY;
        task.queue = SYSTEM_QUEUE;
        task.base_queue = SYSTEM_QUEUE;
        self.privileges[slot::SYSTEM] = Privileges { destinations: [u64::MAX; SERVICE_SLOTS / 64], ..Privileges::NONE };
    }

    /// A message for the task from `caller`, which runs and may send it: delivered if the task waits, else `caller` waits. Only requests
    /// (`SENDREC`) make sense; for everything else nobody is there (`EDEADSRCDST`).
    #[cold]
    #[inline(never)]
    pub(crate) fn ask_system<M: Machine>(&mut self, m: &mut M, caller: usize, then: Then) -> Result<(), Errno> {
        if then != Then::Answer {
            return Err(Errno::EDEADSRCDST);
        }
        let task = &mut self.threads[slot::SYSTEM];
        if task.flags & blocked::RECEIVING == 0 {
            self.wait_to_send(caller, Endpoint::SYSTEM, then);
            return Ok(());
        }
        task.flags &= !blocked::RECEIVING;
        self.threads[caller].then = then;
        self.transfer(m, caller, slot::SYSTEM);
        self.taken(caller, slot::SYSTEM);
        self.ready |= 1 << SYSTEM_QUEUE;
        Ok(())
    }

    /// The task has the CPU, and a request in its registers: makes the call, and receives the next one.
    #[inline(never)]
    pub(crate) fn run_system_task<M: Machine>(&mut self, m: &mut M) {
        let frame = &mut self.threads[slot::SYSTEM].frame;
        let (source, label) = (frame.endpoint(), frame.label());
        frame.rax = call::REPLYREC;
        frame.r13 = Endpoint::NONE.to_word() | ((label | REPLY) as u64) << 32;
        frame.r14 = Endpoint::ANY.to_word();
        if let Some(asker) = self.find(source).ok().filter(|&asker| self.waits_for_system(asker)) {
            self.serving = asker as u16;
            self.kernel_call(m, requested_call(label).map_or(NO_CALL, KernelCall::number));
            self.serving = 0;
        }
        self.primitive(m, call::REPLYREC);
    }

    /// False when the sender of a request has died or given up meanwhile.
    fn waits_for_system(&self, asker: usize) -> bool {
        let thread = &self.threads[asker];
        thread.flags & blocked::RECEIVING != 0 && thread.peer == Endpoint::SYSTEM && thread.then == Then::Answer
    }

    /// The call of a request is over, or has to go on: addresses the answer to `asker`, or hands the request back.
    #[inline(never)]
    pub(crate) fn answer_request<M: Machine>(&mut self, m: &mut M, asker: usize, result: Result<u64, Stop>) {
        let result = match result {
            Ok(value) => Ok(value),
            Err(Stop::Error(error)) => Err(error),
            Err(stop) => return self.hand_back(m, asker, stop),
        };
        let thread = &mut self.threads[asker];
        thread.progress = 0;
        let to = thread.endpoint;
        let frame = &mut self.threads[slot::SYSTEM].frame;
        (frame.rdx, frame.rsi, frame.rdi) = (frame.rsi, frame.rdi, result.to_word());
        frame.r13 = frame.r13 & !0xffff_ffff | to.to_word();
    }

    /// Ends the wait of `asker` for an answer: it waits for what the call needs, and asks again.
    fn hand_back<M: Machine>(&mut self, m: &mut M, asker: usize, stop: Stop) {
        let again = match self.threads[asker].form {
            Form::Memory => attention::AGAIN33,
            _ => attention::ASK_AGAIN,
        };
        self.threads[asker].flags &= !blocked::RECEIVING;
        self.finish(m, asker, again, Err(stop));
        self.wake_if_free(asker);
    }
}

/// A number that is no kernel call.
const NO_CALL: u64 = u64::MAX;

/// The call with this label, if it may be made by message.
fn requested_call(label: u32) -> Option<KernelCall> {
    let number = label.checked_sub(SYSTEM_LABELS).filter(|&number| number < 1 << 16)?;
    KernelCall::from_number(KERNEL_CALLS + number as u64).filter(|call| call.bit() & BY_MESSAGE != 0)
}
