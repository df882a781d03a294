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

    /// The task has the CPU, and a request in its registers.
    #[inline(never)]
    pub(crate) fn run_system_task<M: Machine>(&mut self, m: &mut M) {
        let frame = &self.threads[slot::SYSTEM].frame;
        let (source, label) = (frame.endpoint(), frame.label());
        let asker = self.find(source).ok().filter(|&asker| self.waits_for_system(asker));
        let result = asker.and_then(|asker| self.serve(m, asker, label));
        let frame = &mut self.threads[slot::SYSTEM].frame;
        let mut to = Endpoint::NONE;
        if let Some(result) = result {
            (frame.rdx, frame.rsi, frame.rdi) = (frame.rsi, frame.rdi, result.to_word());
            to = source;
        }
        frame.rax = call::REPLYREC;
        frame.r13 = to.to_word() | ((label | REPLY) as u64) << 32;
        frame.r14 = Endpoint::ANY.to_word();
        self.primitive(m, call::REPLYREC);
    }

    /// False when the sender of a request has died or given up meanwhile.
    fn waits_for_system(&self, asker: usize) -> bool {
        let thread = &self.threads[asker];
        thread.flags & blocked::RECEIVING != 0 && thread.peer == Endpoint::SYSTEM && thread.then == Then::Answer
    }

    /// Makes the call that a message asks for. `None`: there is no answer, now or ever.
    fn serve<M: Machine>(&mut self, m: &mut M, asker: usize, label: u32) -> Option<Result<u64, Errno>> {
        self.serving = asker as u16;
        let result = self.permitted_call(m, requested_call(label));
        if self.tracing {
            self.trace_call(m, KERNEL_CALLS + (label & 0xffff) as u64, result);
        }
        self.serving = 0;
        match result {
            Ok(value) => Some(self.served(asker, Ok(value))),
            Err(Stop::Error(error)) => Some(self.served(asker, Err(error))),
            Err(Stop::NoResult) => None,
            Err(stop) => {
                let again = match self.threads[asker].form {
                    Form::Memory => attention::AGAIN33,
                    _ => attention::ASK_AGAIN,
                };
                self.threads[asker].flags &= !blocked::RECEIVING;
                self.finish(m, asker, again, Err(stop));
                self.wake_if_free(asker);
                None
            }
        }
    }

    fn served(&mut self, asker: usize, result: Result<u64, Errno>) -> Result<u64, Errno> {
        self.threads[asker].progress = 0;
        result
    }
}

/// The call with this label, if it may be made by message.
fn requested_call(label: u32) -> Option<KernelCall> {
    let number = label.checked_sub(SYSTEM_LABELS).filter(|&number| number < 1 << 16)?;
    KernelCall::from_number(KERNEL_CALLS + number as u64).filter(|call| call.bit() & BY_MESSAGE != 0)
}
