//! How tracing begins: `PTRACE_TRACEME`, `PTRACE_ATTACH`, `PTRACE_SEIZE`, and the children of those who are traced.

use crate::pm::Pm;
use crate::programs::Programs;
use crate::state::index::{ProcessIndex, ThreadIndex};
use crate::state::pid::Holder;
use crate::state::signal::info::code;
use crate::state::signal::{SigInfo, Signal};
use crate::state::thread::Doing;
use crate::state::trace::{Event, Trace, option};
use crate::state::watch::Watches;
use crate::system::System;
use abi::{Capability, Errno};

type Result<T> = core::result::Result<T, Errno>;

impl<S: System> Programs<S> {
    /// Whether a process may look into another one as a debugger does (ptrace(2)).
    pub fn may_attach(&self, own: ProcessIndex, other: ProcessIndex) -> bool {
        let credentials = &self.table[own].credentials;
        let target = &self.table[other];
        own == other
            || credentials.has(Capability::SysPtrace)
            || target.control.dumpable && credentials.may_inspect(&target.credentials)
    }

    /// The thread that a process asks to trace. `ESRCH`; `EPERM`: it may not, or somebody does already.
    fn thread_to_trace(&self, own: ProcessIndex, pid: i32) -> Result<ThreadIndex> {
        let tid = u32::try_from(pid).map_err(|_| Errno::ESRCH)?;
        if let Holder::Service(_) = self.table.holder(tid) {
            return Err(Errno::EPERM);
        }
        let t = self.table.thread_by_tid(tid).ok_or(match self.table.holder(tid) {
            // A zombie.
            Holder::Process(_) => Errno::EPERM,
            _ => Errno::ESRCH,
        })?;
        let p = self.table.process_of(t);
        let is_of_dump = self.table[p].core_dump.is_dumped() || self.table[p].core_dump.is_writing();
        if p == own || is_of_dump || !self.may_attach(own, p) || self.table.is_traced(t) || self.table[t].leaving {
            return Err(Errno::EPERM);
        }
        Ok(t)
    }

    /// `PTRACE_TRACEME`. `EPERM`: somebody does already, or there is no parent.
    pub fn trace_me(&mut self, t: ThreadIndex) -> Result<u64> {
        let parent = self.table[self.table.process_of(t)].parent();
        match parent.filter(|_| !self.table.is_traced(t)) {
            Some(parent) => {
                self.table.trace(t, Trace::new(parent, false, 0));
                self.note_done(t);
                Ok(0)
            }
            None => Err(Errno::EPERM),
        }
    }

    /// A thread that is traced makes another one: what its tracer sees of that. `CLONE_PTRACE`: `is_wanted`; `CLONE_UNTRACED`: never.
    pub fn trace_child(&mut self, t: ThreadIndex, child: ThreadIndex, event: Event, is_wanted: Option<bool>) {
        let Some(trace) = self.table[t].trace else { return };
        let is_event = trace.has(event.option()) && is_wanted != Some(false);
        if is_wanted == Some(false) || !is_event && is_wanted != Some(true) {
            return;
        }
        let mut new = Trace::new(trace.tracer, trace.seized, trace.options);
        new.interrupt = trace.seized;
        self.table.trace(child, new);
        if !trace.seized {
            let p = self.table.process_of(child);
            // A standard signal always has room.
            let _ = self.table.add_signal(p, Some(child), SigInfo::user(Signal::STOP, code::USER, 0, 0));
        }
        // It reports before its first instruction.
        let _ = self.system.interrupt(self.table[child].endpoint());
    }

    /// A traced thread stops at an event when the call that it is in returns.
    pub fn note_event(&mut self, t: ThreadIndex, event: Event, message: u64) {
        let Some(trace) = self.table[t].trace.as_mut().filter(|trace| trace.has(event.option())) else { return };
        trace.event = Some((event, message));
        // It can only fail because the thread is gone.
        let _ = self.system.interrupt(self.table[t].endpoint());
    }

    /// A traced thread, which was `tid`, has executed a program: an event, or SIGTRAP for a tracer that has not asked for it.
    fn tell_tracer_of_exec(&mut self, t: ThreadIndex, tid: u32) {
        let Some(trace) = &mut self.table[t].trace else { return };
        trace.watches = Watches::NONE;
        if trace.has(Event::Exec.option()) {
            self.note_event(t, Event::Exec, tid.into());
        } else if !trace.seized {
            let p = self.table.process_of(t);
            let info = SigInfo::user(Signal::TRAP, code::USER, self.table[p].pid(), 0);
            // A standard signal always has room.
            let _ = self.table.add_signal(p, Some(t), info);
        }
    }

    /// Whether an exec of a process gives it no other ids: those who trace it could use them.
    pub fn is_traced_by_others(&self, p: ProcessIndex) -> bool {
        self.table
            .threads_of(p)
            .filter_map(|t| self.table[t].trace)
            .any(|trace| !self.table[trace.tracer].credentials.has(Capability::SysPtrace))
    }
}

impl<S: System> Pm<S> {
    /// A thread, which was `tid`, has executed a program.
    pub fn note_exec(&mut self, t: ThreadIndex, tid: u32) {
        self.programs.tell_tracer_of_exec(t, tid);
    }

    /// `PTRACE_ATTACH(pid)`, `PTRACE_SEIZE(pid, 0, options)`.
    pub fn attach(&mut self, t: ThreadIndex, pid: i32, seized: Option<u64>) -> Result<u64> {
        let options = seized.unwrap_or(0);
        if options & !u64::from(option::ALL) != 0 {
            return Err(Errno::EIO);
        }
        let own = self.programs.table.process_of(t);
        let target = self.programs.thread_to_trace(own, pid)?;
        let p = self.programs.table.process_of(target);
        let mut trace = Trace::new(own, seized.is_some(), options as u32);
        let is_stopped = self.programs.table[p].stopped().is_some();
        trace.stops_with_group = is_stopped;
        self.programs.table.trace(target, trace);
        self.programs.note_done(t);
        if !trace.seized && !is_stopped {
            let info = SigInfo::user(Signal::STOP, code::USER, self.programs.table[own].pid(), 0);
            self.send(p, Some(target), info)?;
        } else if is_stopped && !matches!(self.programs.table[target].doing, Doing::Running) {
            self.prod(target);
        }
        Ok(0)
    }
}
