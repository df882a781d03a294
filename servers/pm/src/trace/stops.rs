//! What a traced thread stops at, and how it goes on.
//!
//! A thread that may have to stop is marked by the kernel's `Interrupt`, or its calls are reported: so it waits for a reply to
//! `Interrupted`, `LinuxCall` or `Exception` (`Doing::Held`) before its next instruction. Here it is decided what it stops at first; when its
//! tracer continues it, what it stops at next, until nothing is left and it runs.

use crate::pm::Pm;
use crate::state::index::{ProcessIndex, ThreadIndex};
use crate::state::seccomp::Refusal;
use crate::state::signal::info::code;
use crate::state::signal::{Disposition, Set, SigInfo, Signal, action};
use crate::state::thread::Doing;
use crate::state::timers::Key;
use crate::state::trace::{Event, How, Leaving, Stop, Trace};
use crate::system::System;
use abi::call::{NATIVE, resume};
use abi::registers::Registers;
use abi::{Errno, Word};

/// When a thread that makes a call with a signal pending is looked at again.
const LOOK_AGAIN_NS: u64 = 2_000_000;

impl<S: System> Pm<S> {
    /// The trace of a thread, which has one.
    pub fn trace_of(&mut self, t: ThreadIndex) -> Option<&mut Trace> {
        self.programs.table[t].trace.as_mut()
    }

    /// Stops a traced thread and tells its tracer.
    pub fn stop_traced(&mut self, t: ThreadIndex, stop: Stop) {
        self.programs.table.set_stop(t, stop);
        let Some(trace) = self.programs.table[t].trace else { return };
        let p = self.programs.table.process_of(t);
        let (tid, user) = (self.programs.table[t].tid(), self.programs.table[p].credentials.user.real);
        let status = trace.code().unwrap_or(0) as i32 & 0x7f;
        self.tell_tracer(trace.tracer, SigInfo::child(code::CHILD_TRAPPED, tid, user, status, 0));
    }

    /// SIGCHLD for a tracer, and the end of its waits.
    pub fn tell_tracer(&mut self, tracer: ProcessIndex, info: SigInfo) {
        let action = &self.programs.table[tracer].actions[Signal::CHLD.index()];
        let wants = !action.has(action::NO_CHILD_STOP) && !action.is_ignored();
        // SIGCHLD is a standard signal: there is always room.
        let queued = wants && self.enqueue(tracer, None, info).unwrap_or(false);
        self.serve_waits(tracer);
        if queued {
            self.act_on(tracer, None, Signal::CHLD);
        }
    }

    /// `kernel::LinuxCall`: a thread whose calls are reported makes one.
    pub fn call_reported(&mut self, t: ThreadIndex, number: u64) {
        let Some(trace) = self.programs.table[t].trace else { return self.make_call(t, number, false) };
        if trace.stop.is_some() {
            return;
        }
        self.programs.table[t].trace = Some(Trace { call: number, in_call: true, ..trace });
        self.programs.forget_watched_values(t);
        if trace.how != How::ToCall {
            return self.make_call(t, number, false);
        }
        self.programs.table[t].doing = Doing::Held;
        if let Ok(mut registers) = self.programs.stopped_registers(t) {
            self.stop_before_call(t, &mut registers, Stop::Entry);
        }
    }

    /// Stops a traced thread, which is held, before the call that it is about to make.
    fn stop_before_call(&mut self, t: ThreadIndex, registers: &mut Registers, stop: Stop) {
        self.hide_step_in_call(t, registers);
        // What Linux shows: a call that the tracer cancels has this result.
        registers.rax = Err(Errno::ENOSYS).to_word();
        // It can only fail because the thread is gone.
        let _ = self.programs.system.set_registers(self.programs.table[t].endpoint(), registers, 0);
        self.stop_traced(t, stop);
    }

    /// Lets a thread make a Linux call, if it may. `is_left`: what its filters leave to the tracer, that has left to the thread.
    fn make_call(&mut self, t: ThreadIndex, number: u64, is_left: bool) {
        let Ok(mut registers) = self.programs.stopped_registers(t) else { return };
        let refusal = self.programs.refusal(t, number, &registers);
        match refusal.filter(|refusal| !is_left || !matches!(refusal, Refusal::Trace(_))) {
            None => self.pass_call(t, number, &mut registers),
            Some(refusal) => self.refuse_call(t, number, &mut registers, refusal),
        }
    }

    /// Lets a thread make a Linux call. One that is followed reports when it comes back.
    fn pass_call(&mut self, t: ThreadIndex, number: u64, registers: &mut Registers) {
        self.programs.table[t].doing = Doing::Running;
        registers.rax = number;
        self.hide_step_in_call(t, registers);
        let bits = self.programs.resume_bits(t);
        let is_followed = self.programs.table[t].trace.is_some_and(|trace| trace.resume_bits() != 0);
        let has_work = self.programs.table.has_work(t);
        let endpoint = self.programs.table[t].endpoint();
        if has_work || is_followed {
            let _ = self.programs.system.interrupt(endpoint);
        }
        if has_work {
            // It may be about to wait in another server, which is to be told of the signal then.
            let now_ns = self.programs.system.time_ns().0;
            self.set_timer(now_ns + LOOK_AGAIN_NS, Key::Wake(t));
        }
        // It can only fail because the thread is gone.
        let _ = self.programs.system.set_registers(endpoint, registers, bits | resume::READY | resume::CALL);
    }

    /// The thread goes on behind a call that is not made, with this in place of its result. It does not count as one that a signal ended.
    pub fn skip_call(&mut self, t: ThreadIndex, registers: &mut Registers, result: u64) {
        (registers.rax, registers.linux_call) = (result, u64::MAX);
        if !self.programs.table.is_traced(t) {
            self.programs.table[t].doing = Doing::Running;
            return self.deliver(t, registers, None);
        }
        self.programs.table[t].doing = Doing::Held;
        // It can only fail because the thread is gone.
        let _ = self.programs.system.set_registers(self.programs.table[t].endpoint(), registers, 0);
        self.go_on(t);
    }

    /// The time is up after which a thread that made a call with a signal pending is looked at again.
    pub fn look_again(&mut self, t: ThreadIndex) {
        if self.programs.table.is_traced(t) && self.programs.table.has_work(t) {
            self.programs.interrupt(t);
            let now_ns = self.programs.system.time_ns().0;
            self.set_timer(now_ns + LOOK_AGAIN_NS, Key::Wake(t));
        }
    }

    /// `kernel::Interrupted` of a traced thread.
    pub fn traced_interrupted(&mut self, t: ThreadIndex) {
        self.programs.table[t].doing = Doing::Held;
        let Some(trace) = self.programs.table[t].trace else { return };
        if trace.stop.is_some() {
            return;
        }
        let mut registers = Registers::ZERO;
        if self.programs.system.registers(self.programs.table[t].endpoint(), &mut registers).is_err() {
            return;
        }
        let keeps_call = trace.in_call && registers.linux_call == u64::MAX;
        if !keeps_call && let Some(trace) = self.trace_of(t) {
            trace.call = registers.linux_call;
        }
        if trace.steps() {
            self.programs.clear_trap_flag(t, &mut registers);
        }
        self.go_on(t);
    }

    /// A held thread stops at the next thing that it has to stop at, or runs.
    pub fn go_on(&mut self, t: ThreadIndex) {
        let p = self.programs.table.process_of(t);
        let Some(trace) = &mut self.programs.table[t].trace else { return self.resume_interrupted(t) };
        if trace.stop.is_some() {
            return;
        }
        if let Some((event, message)) = trace.event.take() {
            trace.message = message;
            return self.stop_traced(t, Stop::Event(event));
        }
        if core::mem::take(&mut trace.in_call) {
            match trace.how {
                How::ToCall => return self.stop_traced(t, Stop::Exit),
                How::Step => return self.stop_traced(t, Stop::Signal(SigInfo::user(Signal::TRAP, code::USER, 0, 0))),
                How::Continue => {}
            }
        }
        let interrupted = core::mem::take(&mut trace.interrupt);
        let stops_with_group = core::mem::take(&mut trace.stops_with_group);
        let is_seized = trace.seized;
        let stopped = self.programs.table[p].stopped();
        if interrupted && is_seized || stops_with_group && stopped.is_some() {
            return self.stop_traced(t, Stop::Group(stopped));
        }
        let open = Set(!self.programs.table[t].blocked.0);
        if let Some(taken) = self.programs.table.take_signal(t, open) {
            let info = self.signal_taken(p, taken);
            return self.stop_traced(t, Stop::Signal(info));
        }
        if let Ok(mut registers) = self.programs.stopped_registers(t) {
            self.programs.table[t].doing = Doing::Running;
            self.run_on(t, &mut registers);
        }
    }

    /// `kernel::Exception` of a traced thread: a signal that it cannot block or ignore.
    pub fn traced_exception(&mut self, t: ThreadIndex, info: SigInfo) {
        let Some(trace) = self.trace_of(t).filter(|trace| trace.stop.is_none()) else { return };
        trace.call = u64::MAX;
        trace.in_call = false;
        let steps = trace.steps();
        self.programs.table[t].doing = Doing::Held;
        if steps && let Ok(mut registers) = self.programs.stopped_registers(t) {
            if info.is_of_step() {
                return self.step_ended(t, &mut registers, info);
            }
            self.programs.clear_trap_flag(t, &mut registers);
        }
        self.force_traced(t, info);
    }

    /// Stops a thread with a signal that it cannot block or ignore.
    pub fn force_traced(&mut self, t: ThreadIndex, info: SigInfo) {
        let p = self.programs.table.process_of(t);
        let thread = &mut self.programs.table[t];
        let is_blocked = thread.blocked.contains(info.signal);
        thread.blocked = thread.blocked.without(info.signal.set());
        let action = &mut self.programs.table[p].actions[info.signal.index()];
        if is_blocked || action.is_ignored() {
            *action = action::Action::default();
        }
        self.stop_traced(t, Stop::Signal(info));
    }

    /// A tracer continues a thread from its stop, with this signal in place of the one that it is stopped at. It may be traced no longer.
    pub fn continue_traced(&mut self, t: ThreadIndex, stop: Stop, signal: Option<SigInfo>) {
        if let Some(leaving) = self.trace_of(t).and_then(|trace| trace.leaving.take()) {
            return self.leave(t, leaving);
        }
        if !matches!(self.programs.table[t].doing, Doing::Held) {
            // It waits in a call of pm, and goes on waiting.
            return;
        }
        match (stop, signal) {
            (Stop::Signal(_), Some(info)) => return self.take_injected(t, info),
            // As Linux: before and behind a call the signal is sent, by the kernel.
            (Stop::Entry | Stop::Exit, Some(info)) => {
                let p = self.programs.table.process_of(t);
                // A standard signal always has room; of others Linux drops what is too much, too.
                let _ = self.programs.table.add_signal(p, Some(t), SigInfo::kernel(info.signal));
            }
            _ => {}
        }
        match stop {
            Stop::Entry => self.leave_entry(t, false),
            Stop::Event(Event::Seccomp) => self.leave_entry(t, true),
            _ => self.go_on(t),
        }
    }

    /// Makes the call before which the thread was stopped, or the one that the tracer has put in its place; -1 and the like: none. `is_left`: see
    /// `make_call`.
    fn leave_entry(&mut self, t: ThreadIndex, is_left: bool) {
        let Ok(registers) = self.programs.stopped_registers(t) else { return };
        let number = match self.programs.table[t].trace {
            Some(trace) => trace.call,
            None => registers.linux_call,
        };
        if number < NATIVE { self.make_call(t, number, is_left) } else { self.go_on(t) }
    }

    /// A filter of seccomp leaves a call to the tracer, if that has wished so: the thread stops. Returns whether it does.
    pub fn stops_at_filter(&mut self, t: ThreadIndex, registers: &mut Registers, message: u16) -> bool {
        let Some(trace) = self.trace_of(t).filter(|trace| trace.has(Event::Seccomp.option())) else { return false };
        trace.message = message.into();
        self.programs.table[t].doing = Doing::Held;
        self.stop_before_call(t, registers, Stop::Event(Event::Seccomp));
        true
    }

    /// Delivers the signal that a tracer lets through.
    fn take_injected(&mut self, t: ThreadIndex, info: SigInfo) {
        let p = self.programs.table.process_of(t);
        let signal = info.signal;
        if self.programs.table[t].blocked.contains(signal) {
            let _ = self.programs.table.add_signal(p, Some(t), info);
            return self.go_on(t);
        }
        let action = self.programs.table[p].actions[signal.index()];
        match self.programs.table.disposition(p, signal) {
            _ if signal == Signal::KILL => self.end_or_stop_at_exit(t, info),
            Disposition::Ignore => self.go_on(t),
            Disposition::Terminate => self.end_or_stop_at_exit(t, info),
            Disposition::Stop => {
                self.stop_by(p, signal);
                self.go_on(t);
            }
            Disposition::Handle => {
                let Ok(mut registers) = self.programs.stopped_registers(t) else { return };
                self.programs.table[t].doing = Doing::Running;
                self.enter_handler(t, &mut registers, info, &action);
            }
        }
    }

    fn end_or_stop_at_exit(&mut self, t: ThreadIndex, info: SigInfo) {
        if !self.stops_at_exit(t, Leaving::Signal(info), info.signal.number().into()) {
            self.end_by_signal(t, info);
        }
    }

    /// A thread stops at its `vfork` before it waits for the child, which may be stopped itself.
    pub fn stop_in_vfork(&mut self, t: ThreadIndex) {
        let Some(trace) = self.trace_of(t) else { return };
        if let Some((event, message)) = trace.event.take() {
            trace.message = message;
            self.stop_traced(t, Stop::Event(event));
        }
    }

    /// Whether a thread that is about to end stops for its tracer first. Then it ends when that continues it.
    pub fn stops_at_exit(&mut self, t: ThreadIndex, leaving: Leaving, status: u64) -> bool {
        let Some(trace) = self.trace_of(t).filter(|trace| trace.has(Event::Exit.option())) else { return false };
        if trace.stop.is_none() {
            trace.leaving = Some(leaving);
            trace.message = status;
            self.stop_traced(t, Stop::Event(Event::Exit));
        }
        true
    }

    /// Does what a thread was about to do when it stopped at its end.
    pub fn leave(&mut self, t: ThreadIndex, leaving: Leaving) {
        match leaving {
            Leaving::Thread(status) => drop(self.exit_thread(t, status)),
            Leaving::Process(status) => self.exit_group(self.programs.table.process_of(t), status),
            Leaving::Signal(info) => self.end_by_signal(t, info),
        }
    }

    /// Something waits for a traced thread: it is to come to a stop.
    pub fn prod(&mut self, t: ThreadIndex) {
        let is_stopped = self.programs.table[t].trace.is_some_and(|trace| trace.stop.is_some());
        match self.programs.table[t].doing {
            _ if is_stopped => {}
            Doing::Held => self.go_on(t),
            Doing::Ended(result) => self.let_return(t, result),
            Doing::Running => self.programs.interrupt(t),
            Doing::Sleeping(sleep) => {
                self.forget_timer(t);
                self.programs.table[t].restart = Some(sleep);
                self.finish(t, Err(Errno::ERESTARTSYS));
            }
            Doing::Waiting(_) | Doing::Pausing => self.finish(t, Err(Errno::ERESTARTSYS)),
            Doing::SignalWaiting(_) => self.end_signal_wait(t, Errno::EINTR),
            Doing::SemaphoreWaiting(_) => self.end_semaphore_wait(t, Err(Errno::EINTR)),
            Doing::MessageSending(_) | Doing::MessageReceiving(_) => {
                self.end_message_wait(t, Err(Errno::ERESTARTSYS));
            }
            Doing::Vforking { .. } | Doing::Executing(_) => {}
        }
    }

    /// Gives the call of a traced thread its result, with which it reports.
    pub fn let_return(&mut self, t: ThreadIndex, result: Result<u64, Errno>) {
        let endpoint = self.programs.table[t].endpoint();
        self.programs.table[t].doing = Doing::Running;
        // It can only fail because the thread is gone.
        let _ = self.programs.system.interrupt(endpoint);
        self.programs.system.reply(endpoint, result);
    }

    /// The process of a traced thread was stopped by a signal.
    pub fn stop_with_group(&mut self, t: ThreadIndex) {
        if let Some(trace) = self.trace_of(t) {
            trace.stops_with_group = true;
        }
        self.prod(t);
    }

    /// The process of a traced thread was continued by SIGCONT.
    pub fn continued_with_group(&mut self, t: ThreadIndex) {
        let Some(trace) = self.trace_of(t) else { return };
        trace.stops_with_group = false;
        if !trace.seized {
            return;
        }
        if core::mem::take(&mut trace.listening) {
            self.stop_traced(t, Stop::Group(None));
        } else {
            trace.interrupt = true;
            self.prod(t);
        }
    }

    /// Lets a traced thread run with these registers, which are not those of its report: it reports before its first instruction.
    pub fn resume_to_report(&mut self, t: ThreadIndex, registers: &Registers) {
        let endpoint = self.programs.table[t].endpoint();
        self.programs.table[t].doing = Doing::Running;
        // Both can only fail because the thread is gone.
        let _ = self.programs.system.interrupt(endpoint);
        let _ = self.programs.system.set_registers(endpoint, registers, resume::READY);
    }

    /// A traced thread that makes single steps has entered a handler: that is one.
    pub fn stops_in_handler(&mut self, t: ThreadIndex, registers: &Registers) -> bool {
        let is_step = self.programs.table[t].trace.is_some_and(|trace| trace.how == How::Step);
        if is_step {
            self.programs.table[t].doing = Doing::Held;
            if let Some(trace) = self.trace_of(t) {
                trace.call = u64::MAX;
            }
            let _ = self.programs.system.set_registers(self.programs.table[t].endpoint(), registers, 0);
            self.stop_traced(t, Stop::Signal(SigInfo::user(Signal::TRAP, code::USER, 0, 0)));
        }
        is_step
    }
}
