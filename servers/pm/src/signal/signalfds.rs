//! Signals that threads read from descriptors (signalfd(2)): vfs has the descriptors and their masks, pm the signals.
//!
//! vfs asks for a thread's pending signals. If there are none, pm notes for which the thread waits, and tells vfs once when one of them
//! arrives: until then the wait costs nothing. A request names the call that it serves, so that no signal is lost or read twice when pm or vfs
//! dies: what the call has taken is noted with the thread, a signal before it leaves its queue for good.

use crate::pm::Pm;
use crate::programs::Programs;
use crate::state::index::{ProcessIndex, ThreadIndex};
use crate::state::signal::info::INFO_BYTES;
use crate::state::signal::{Set, Signal};
use crate::state::thread::TakenSignals;
use crate::system::System;
use abi::{Endpoint, Errno, pm};

impl<S: System> Programs<S> {
    fn pending_for(&self, t: ThreadIndex) -> Set {
        self.table[t].pending.set().or(self.table[self.table[t].process()].pending.set())
    }

    /// vfs is to be told when a signal of the set arrives for the thread.
    fn watch(&mut self, t: ThreadIndex, set: Set) {
        let p = self.table.process_of(t);
        self.table[t].watched = self.table[t].watched.or(set);
        self.table[p].watched = true;
    }

    /// Tells vfs of a signal that has become pending for a process, or one thread of it, and that somebody waits for by a signalfd.
    #[inline]
    pub fn tell_watchers(&mut self, p: ProcessIndex, t: Option<ThreadIndex>, signal: Signal) {
        if self.table[p].watched {
            self.tell_watchers_of(p, t, signal);
        }
    }

    #[cold]
    fn tell_watchers_of(&mut self, p: ProcessIndex, only: Option<ThreadIndex>, signal: Signal) {
        let mut next = self.table[p].main();
        let mut others = false;
        while let Some(t) = next {
            next = self.table[t].next();
            let watched = self.table[t].watched;
            let concerns = watched.contains(signal) && only.is_none_or(|only| only == t);
            if concerns || self.table[t].watches_all {
                self.table[t].watches_all = false;
                self.system.vfs_signals_pending(self.table[t].endpoint());
                self.table[t].watched = Set::EMPTY;
            } else {
                others |= !watched.is_empty();
            }
        }
        self.table[p].watched = others;
    }

    /// Tells vfs again what a predecessor may not have told.
    pub fn tell_watchers_again(&mut self, t: ThreadIndex) {
        if !self.pending_for(t).and(self.table[t].watched).is_empty() || self.table[t].watches_all {
            self.table[t].watches_all = false;
            self.system.vfs_signals_pending(self.table[t].endpoint());
            self.table[t].watched = Set::EMPTY;
        }
    }

    /// Writes the signal that the call of a thread has taken to its buffer.
    fn write_taken(&mut self, t: ThreadIndex, buffer: u64) -> Result<(), Errno> {
        let Some(info) = self.table[t].taken.unwritten else { return Ok(()) };
        let address = buffer.wrapping_add(self.table[t].taken.count * INFO_BYTES as u64);
        let written = self.write_bytes(t, address, &info.to_signalfd_bytes());
        let taken = &mut self.table[t].taken;
        taken.unwritten = None;
        match written {
            Ok(()) => taken.count += 1,
            // As Linux: the signal is gone.
            Err(_) => taken.ended = true,
        }
        written
    }
}

impl<S: System> Pm<S> {
    /// `TakeSignals`. `ESRCH`: the thread has ended; `EFAULT`.
    pub fn take_signals(&mut self, ask: &pm::TakeSignals) -> Result<u64, Errno> {
        let t = self.programs.table.find(ask.process).ok_or(Errno::ESRCH)?;
        let p = self.programs.table.process_of(t);
        if self.programs.table[t].taken.call != ask.call {
            self.programs.table[t].taken = TakenSignals { call: ask.call, ..TakenSignals::default() };
        }
        let mut written = self.programs.write_taken(t, ask.address);
        while written.is_ok() && !self.programs.table[t].taken.ended && self.programs.table[t].taken.count < ask.count {
            let Some(next) = self.programs.table.take_signal(t, Set(ask.mask)) else { break };
            self.programs.table[t].taken.unwritten = Some(next.info);
            let info = self.signal_taken(p, next);
            self.programs.table[t].taken.unwritten = Some(info);
            written = self.programs.write_taken(t, ask.address);
        }
        let taken = &mut self.programs.table[t].taken;
        if taken.count > 0 {
            taken.ended = true;
            return Ok(taken.count);
        }
        if taken.ended {
            return Err(Errno::EFAULT);
        }
        if ask.watch {
            self.programs.watch(t, Set(ask.mask));
        }
        Err(Errno::EAGAIN)
    }

    /// `AwaitSignals`: the pending signals, and the number of arrivals. `ESRCH`: the thread has ended.
    pub fn await_signals(&mut self, thread: Endpoint, mask: Set, any: bool) -> Result<(Set, u32), Errno> {
        let t = self.programs.table.find(thread).ok_or(Errno::ESRCH)?;
        let p = self.programs.table.process_of(t);
        let pending = self.programs.pending_for(t).and(mask);
        if pending.is_empty() {
            self.programs.watch(t, mask);
        }
        if any {
            self.programs.table[t].watches_all = true;
            self.programs.table[p].watched = true;
        }
        Ok((pending, self.programs.table[p].arrivals))
    }
}
