//! Sends signals: chooses the thread, and does what happens at once.
//!
//! A signal that is neither blocked nor handled takes effect here: it stops or continues the process, or is discarded; SIGKILL ends it.
//! Handled, blocked and fatal signals become pending; a thread that can take one is interrupted.

use super::deliver;
use crate::pm::Pm;
use crate::programs::Programs;
use crate::state::index::{ProcessIndex, ThreadIndex};
use crate::state::signal::number::Default as ByDefault;
use crate::state::signal::pending::EntryIndex;
use crate::state::signal::{Disposition, Set, SigInfo, Signal};
use crate::state::thread::Doing;
use crate::state::wait::{Ending, Event};
use crate::system::System;
use abi::call::resume;
use abi::endpoint::slot;
use abi::info::state;
use abi::registers::Registers;
use abi::{Endpoint, Errno, Word};

/// How a program waits for a message of M3-IPC.
enum MessageWait {
    /// In a primitive of the kernel.
    Primitive,
    /// In a call of m3ipc.
    Call,
}

impl<S: System> Programs<S> {
    fn is_discarded(&self, p: ProcessIndex, t: Option<ThreadIndex>, signal: Signal) -> bool {
        let process = &self.table[p];
        let target = t.or(process.main());
        let awaited = target.is_some_and(|t| {
            let thread = &self.table[t];
            let waited = matches!(&thread.doing, Doing::SignalWaiting(wait) if wait.set.contains(signal));
            waited || thread.blocked.contains(signal)
        });
        let is_seen = target.is_some_and(|t| self.table.is_traced(t));
        self.table.disposition(p, signal) == Disposition::Ignore && !awaited && !is_seen
    }

    /// A thread that can take the signal: it is pending there and not blocked.
    fn taker(&self, p: ProcessIndex, t: Option<ThreadIndex>, signal: Signal) -> Option<ThreadIndex> {
        let open = |t: &ThreadIndex| !self.table[*t].blocked.contains(signal);
        match t {
            Some(t) => Some(t).filter(open).filter(|t| self.table[*t].pending.set().contains(signal)),
            None if !self.table[p].pending.set().contains(signal) => None,
            None => self.table.threads_of(p).find(open),
        }
    }

    /// Makes a thread outside pm report before it runs again, and ends the call of vfs it may be in.
    pub fn interrupt(&mut self, t: ThreadIndex) {
        self.interrupt_with(t, Errno::ERESTARTSYS);
    }

    /// [`Programs::interrupt`] with another result for the call.
    pub fn interrupt_with(&mut self, t: ThreadIndex, error: Errno) {
        match self.interrupt_call(t, error) {
            Some(MessageWait::Primitive) => self.end_wait(t),
            Some(MessageWait::Call) => {
                self.end_wait(t);
                self.tell_m3ipc();
            }
            None => {}
        }
    }

    /// Makes a thread that is to stop report before it runs again. A wait for a message goes on meanwhile.
    fn interrupt_to_stop(&mut self, t: ThreadIndex) {
        self.interrupt_call(t, Errno::ERESTARTSYS);
    }

    /// As [`Programs::interrupt_with`], but for a wait for a message of M3-IPC, which is returned.
    fn interrupt_call(&mut self, t: ThreadIndex, error: Errno) -> Option<MessageWait> {
        let endpoint = self.table[t].endpoint();
        let peer = self.system.interrupt(endpoint).ok()?;
        if peer.slot() == slot::VFS {
            if self.system.vfs_cancel(endpoint, error) == Err(Errno::ENOENT) && !self.withdraw_call(t) {
                // vfs has received the call since, as a successor does that hears of the signal first; or it has replied.
                let _ = self.system.vfs_cancel(endpoint, error);
            }
            return None;
        }
        if peer == Endpoint::ANY || peer.is_application() {
            return Some(MessageWait::Primitive);
        }
        self.m3ipc.filter(|m3ipc| peer.slot() == m3ipc.slot()).map(|_| MessageWait::Call)
    }

    /// Ends the wait of a thread for a message of M3-IPC, in a primitive of the kernel or in a call of m3ipc, with `EINTR`: it is never begun again, since
    /// its message may have been received. (Of a thread that runs no more: any wait.)
    pub fn end_wait(&mut self, t: ThreadIndex) {
        let endpoint = self.table[t].endpoint();
        let mut registers = Registers::ZERO;
        if self.system.registers(endpoint, &mut registers).is_ok() {
            registers.rax = Err(Errno::EINTR).to_word();
            // It can only fail because the thread is gone.
            let _ = self.system.set_registers(endpoint, &registers, resume::READY);
        }
    }

    /// A call that vfs has not received yet is made again after the signal. Returns false if vfs has received it.
    fn withdraw_call(&mut self, t: ThreadIndex) -> bool {
        let endpoint = self.table[t].endpoint();
        let is_followed = self.table[t].trace.is_some_and(|trace| trace.in_call);
        let mut registers = Registers::ZERO;
        let is_sending = self.system.thread_use(endpoint).state == state::SENDING;
        if is_sending && self.system.registers(endpoint, &mut registers).is_ok() {
            if is_followed {
                // Its tracer sees that it returns.
                registers.rax = Err(Errno::ERESTARTSYS).to_word();
            } else {
                deliver::repeat_call(&mut registers);
            }
            // It can only fail because the thread is gone.
            let _ = self.system.set_registers(endpoint, &registers, resume::READY);
        }
        is_sending
    }
}

impl<S: System> Pm<S> {
    /// Sends a signal to a process, or to one thread of it. `EAGAIN`: too many real-time signals wait already.
    pub fn send(&mut self, p: ProcessIndex, t: Option<ThreadIndex>, info: SigInfo) -> Result<(), Errno> {
        if self.enqueue(p, t, info)? {
            self.act_on(p, t, info.signal);
        }
        Ok(())
    }

    /// Makes the signal pending; `act_on` must follow, which a successor of a pm that dies before it does. Returns false if the signal is
    /// discarded instead.
    pub fn enqueue(&mut self, p: ProcessIndex, t: Option<ThreadIndex>, info: SigInfo) -> Result<bool, Errno> {
        if !self.programs.table[p].is_alive() {
            return Ok(false);
        }
        self.cancel_opposites(p, info.signal);
        if self.programs.is_discarded(p, t, info.signal) {
            return Ok(false);
        }
        self.programs.table.add_signal(p, t, info)?;
        Ok(true)
    }

    /// Sends the signal of a timer, which has a queue entry of its own, unless it is pending or ignored.
    pub fn send_of_timer(&mut self, p: ProcessIndex, t: Option<ThreadIndex>, entry: EntryIndex, info: SigInfo) {
        self.cancel_opposites(p, info.signal);
        if !self.programs.table.is_timer_pending(entry) && !self.programs.is_discarded(p, t, info.signal) {
            self.programs.table.add_timer_signal(p, t, entry, info);
            self.act_on(p, t, info.signal);
        }
    }

    /// SIGCONT continues whatever its action is, and drops pending stops; a stop drops pending SIGCONTs.
    #[inline]
    fn cancel_opposites(&mut self, p: ProcessIndex, signal: Signal) {
        if signal == Signal::CONT {
            self.programs.table.discard_signals(p, Set::STOPS);
            self.continue_process(p);
        } else if signal.default_action() == ByDefault::Stop {
            self.programs.table.discard_signals(p, Signal::CONT.set());
        }
    }

    /// Lets a signal that is pending take effect if some thread of its target can take it now.
    pub fn act_on(&mut self, p: ProcessIndex, t: Option<ThreadIndex>, signal: Signal) {
        if signal == Signal::KILL {
            return self.end_process(p, Ending::Killed(Signal::KILL));
        }
        self.programs.tell_watchers(p, t, signal);
        let is_dumped = self.programs.table[p].core_dump.is_dumped();
        if is_dumped || self.give_to_waiter(p, t, signal) {
            return;
        }
        let taker = self.programs.taker(p, t, signal);
        if let Some(traced) = taker.filter(|taker| self.programs.table.is_traced(*taker)) {
            return self.prod(traced);
        }
        let Some(taker) = taker.filter(|_| self.programs.table[p].stopped().is_none()) else { return };
        match self.programs.table.disposition(p, signal) {
            Disposition::Ignore => self.programs.table.discard_signals(p, signal.set()),
            Disposition::Terminate => self.end_when_it_runs(taker, signal),
            Disposition::Stop => {
                self.programs.table.discard_signals(p, signal.set());
                self.stop_by(p, signal);
            }
            Disposition::Handle => self.poke(taker),
        }
    }

    /// Gives the signal to a thread in `rt_sigtimedwait` for it.
    fn give_to_waiter(&mut self, p: ProcessIndex, t: Option<ThreadIndex>, signal: Signal) -> bool {
        let waits = |doing: &Doing| matches!(doing, Doing::SignalWaiting(wait) if wait.set.contains(signal));
        let waiter = match t {
            Some(t) => Some(t).filter(|t| waits(&self.programs.table[*t].doing)),
            None => self.programs.table.first_thread_where(p, |thread| waits(&thread.doing)),
        };
        waiter.is_some_and(|t| self.serve_signal_wait(t))
    }

    /// A handled signal waits for this thread: ends the call it is in, or interrupts it.
    pub fn poke(&mut self, t: ThreadIndex) {
        if self.programs.table.is_traced(t) {
            return self.prod(t);
        }
        match &self.programs.table[t].doing {
            Doing::Running => self.programs.interrupt(t),
            Doing::Waiting(_) => self.finish(t, Err(Errno::ERESTARTSYS)),
            Doing::Pausing => self.finish(t, Err(Errno::EINTR)),
            Doing::Sleeping(_) => self.end_sleep_early(t),
            Doing::SignalWaiting(_) => self.end_signal_wait(t, Errno::EINTR),
            Doing::SemaphoreWaiting(_) => self.end_semaphore_wait(t, Err(Errno::EINTR)),
            Doing::MessageSending(_) | Doing::MessageReceiving(_) => self.end_message_wait(t, Err(Errno::EINTR)),
            Doing::Held | Doing::Ended(_) | Doing::Vforking { .. } | Doing::Executing(_) => {}
        }
    }

    /// A signal is to end the process of this thread. As in Linux that happens when the thread is next to run, not before the sender's
    /// call returns: shells rely on finding a child that they have just killed alive. Meanwhile it yields to the sender.
    fn end_when_it_runs(&mut self, t: ThreadIndex, signal: Signal) {
        self.programs.yield_thread(t);
        match self.programs.table[t].doing {
            Doing::Running => self.programs.interrupt(t),
            Doing::Waiting(_)
            | Doing::Pausing
            | Doing::Sleeping(_)
            | Doing::SignalWaiting(_)
            | Doing::SemaphoreWaiting(_)
            | Doing::MessageSending(_)
            | Doing::MessageReceiving(_) => {
                let endpoint = self.programs.table[t].endpoint();
                self.forget_timer(t);
                self.programs.note_result(t, Err(Errno::EINTR));
                self.programs.table[t].doing = Doing::Running;
                // It can only fail because the thread is gone.
                let _ = self.programs.system.interrupt(endpoint);
                self.programs.system.reply(endpoint, Err(Errno::EINTR));
            }
            Doing::Held | Doing::Ended(_) | Doing::Vforking { .. } | Doing::Executing(_) => {
                self.end_by_signal(t, SigInfo::kernel(signal));
            }
        }
    }

    /// The default action of a stop signal. All but SIGSTOP spare orphaned groups, whom nobody could continue.
    pub fn stop_by(&mut self, p: ProcessIndex, signal: Signal) {
        if signal != Signal::STOP && self.programs.table.is_orphaned(self.programs.table[p].group(), None) {
            return;
        }
        // Its end may be put off.
        if self.programs.table[p].ending().is_some() {
            return;
        }
        self.programs.table.stop(p, signal);
        let mut next = self.programs.table[p].main();
        while let Some(t) = next {
            next = self.programs.table[t].next();
            if self.programs.table.is_traced(t) {
                self.stop_with_group(t);
            } else if matches!(self.programs.table[t].doing, Doing::Running) {
                self.programs.interrupt_to_stop(t);
            }
        }
        self.tell_parent_of_change(p, Event::Stopped(signal));
    }

    /// Continues a process if it is stopped.
    pub fn continue_process(&mut self, p: ProcessIndex) {
        if !self.programs.table.continue_stopped(p) {
            return;
        }
        self.tell_parent_of_change(p, Event::Continued);
        let mut next = self.programs.table[p].main();
        while let Some(t) = next {
            next = self.programs.table[t].next();
            self.continued_with_group(t);
        }
        let is_kept = |doing: &Doing| matches!(doing, Doing::Held | Doing::Ended(_));
        // What comes out of its call may stop the process again, or end it.
        while self.programs.table[p].is_alive() && self.programs.table[p].stopped().is_none() {
            let Some(t) =
                self.programs.table.first_thread_where(p, |thread| thread.trace.is_none() && is_kept(&thread.doing))
            else {
                break;
            };
            match self.programs.table[t].doing {
                Doing::Ended(result) => self.finish(t, result),
                _ => self.resume_interrupted(t),
            }
        }
        self.reconsider(p);
    }

    /// Lets the signals that came while the process was stopped (or pm away) take effect.
    pub fn reconsider(&mut self, p: ProcessIndex) {
        let mut waiting = self.programs.table[p].pending.set();
        while let Some(signal) = waiting.next() {
            waiting = waiting.without(signal.set());
            self.act_on(p, None, signal);
            if !self.programs.table[p].is_alive() {
                return;
            }
        }
        let mut next = self.programs.table[p].main();
        while let Some(t) = next.filter(|_| self.programs.table[p].is_alive()) {
            let thread = &self.programs.table[t];
            next = thread.next();
            let has_work = !thread.pending.set().without(thread.blocked).is_empty();
            if !self.serve_signal_wait(t) && has_work {
                self.poke(t);
            }
        }
    }

    /// A signal that an instruction of the thread caused: it cannot be blocked or ignored.
    pub fn force(&mut self, t: ThreadIndex, info: SigInfo) {
        let p = self.programs.table.process_of(t);
        if self.programs.table.is_traced(t) {
            return self.traced_exception(t, info);
        }
        let handled = self.programs.table[p].actions[info.signal.index()].is_handled();
        if !handled || self.programs.table[t].blocked.contains(info.signal) {
            self.end_by_signal(t, info);
            return;
        }
        self.programs.table.discard_signals_of_thread(t, info.signal.set());
        // Standard signals are always accepted.
        let _ = self.programs.table.add_signal(p, Some(t), info);
        self.resume_interrupted(t);
    }

    /// Sends a signal of the kernel's own to every process of a group.
    pub fn send_to_group(&mut self, group: u32, signal: Signal) {
        self.for_each_in_group(group, |pm, p| {
            // Standard signals never meet the limit of the queue.
            let _ = pm.send(p, None, SigInfo::kernel(signal));
        });
    }
}
