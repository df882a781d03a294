//! The end of tracing: `PTRACE_DETACH`, and the end of tracers and of those whom they trace.

use crate::pm::Pm;
use crate::programs::Programs;
use crate::state::index::{ProcessIndex, ThreadIndex};
use crate::state::signal::{SigInfo, Signal};
use crate::state::trace::{Stop, option};
use crate::state::wait::{Ending, Event};
use crate::system::System;

impl<S: System> Programs<S> {
    /// What a tracer is told with SIGCHLD of a thread that has ended.
    fn ended_info(&self, t: ThreadIndex, ending: Ending) -> SigInfo {
        let (code, status) = Event::Ended(ending).code_and_status();
        let p = self.table.process_of(t);
        SigInfo::child(code, self.table[t].tid(), self.table[p].credentials.user.real, status, 0)
    }
}

impl<S: System> Pm<S> {
    /// Ends the tracing of a thread, which goes on with this signal if it was stopped.
    pub fn detach(&mut self, t: ThreadIndex, signal: Option<SigInfo>) {
        let leaving = self.trace_of(t).and_then(|trace| trace.leaving);
        let Some(trace) = self.programs.table.untrace(t) else { return };
        let Some(stop) = trace.stop else { return };
        if let Some(leaving) = leaving {
            return self.leave(t, leaving);
        }
        let p = self.programs.table.process_of(t);
        if signal.is_none() && self.programs.table[p].stopped().is_some() && stop != Stop::Entry {
            // It stays stopped with its process.
            return;
        }
        self.continue_traced(t, stop, signal);
    }

    /// A tracer has ended: those whom it traced go on, or die if it has wished so (`PTRACE_O_EXITKILL`); the zombies are their parents'.
    pub fn end_tracer(&mut self, tracer: ProcessIndex) {
        if !self.programs.table[tracer].traces() {
            return;
        }
        for t in ThreadIndex::all() {
            let trace = self.programs.table[t].trace.filter(|trace| trace.tracer == tracer);
            let Some(trace) = trace.filter(|_| self.programs.table[t].endpoint() != abi::Endpoint::NONE) else {
                continue;
            };
            if trace.has(option::EXITKILL) {
                self.exit_process(self.programs.table.process_of(t), Ending::Killed(Signal::KILL));
            } else {
                self.detach(t, None);
            }
        }
        while let Some(ended) = self.programs.table.first_ended(tracer) {
            self.programs.table.drop_ended(ended.tid);
        }
        loop {
            let zombie = self.programs.table.zombies_of_tracer(tracer).next();
            let Some(p) = zombie else { break };
            self.release_zombie(p);
        }
    }

    /// A traced thread ends.
    pub fn end_traced(&mut self, t: ThreadIndex, ending: Ending) {
        let info = self.programs.ended_info(t, ending);
        if let Some(tracer) = self.programs.table.end_tracee(t, ending) {
            self.tell_tracer(tracer, info);
        }
    }

    /// The tracer of a zombie has waited for it, or has ended.
    pub fn release_zombie(&mut self, p: ProcessIndex) {
        self.programs.table.give_zombie_to_parent(p);
        if let Some(ending) = self.programs.table[p].zombie() {
            self.tell_parent_of_end(p, ending);
        }
    }

    /// A wait of a tracer has found the end of a process that is not its child: the parent is told.
    pub fn tell_released(&mut self) {
        while let Some(p) = self.programs.table.released.take() {
            self.release_zombie(p);
        }
    }
}
