//! The calls that wait for a signal: `pause`, `rt_sigsuspend`, `rt_sigtimedwait`.

use super::calls::read_set;
use crate::pm::{Pm, Step};
use crate::programs::Programs;
use crate::state::index::ThreadIndex;
use crate::state::signal::{Disposition, Set, Signal};
use crate::state::thread::{Doing, SignalWait};
use crate::state::timers::Key;
use crate::system::System;
use abi::{Endpoint, Errno};

impl<S: System> Programs<S> {
    /// The pending signals of a thread and its process that the thread does not block.
    fn open_signals(&self, t: ThreadIndex) -> Set {
        let thread = &self.table[t];
        let pending = thread.pending.set().or(self.table[thread.process()].pending.set());
        pending.without(thread.blocked)
    }

    fn signal_wait(&mut self, t: ThreadIndex, a: &[u64; 7]) -> Result<SignalWait, Errno> {
        let set = read_set(self, t, a[0], a[3])?;
        let deadline_ns = match a[2] {
            0 => None,
            address => {
                let duration = self.read_timespec(t, address)?;
                Some(self.system.time_ns().0.saturating_add(duration))
            }
        };
        Ok(SignalWait { set, info: a[1], deadline_ns })
    }
}

impl<S: System> Pm<S> {
    /// `pause()`.
    pub fn pause(&mut self, t: ThreadIndex) -> Step {
        self.wait_for_handler(t)
    }

    /// `rt_sigsuspend(mask, size)`.
    pub fn rt_sigsuspend(&mut self, t: ThreadIndex, mask: u64, bytes: u64) -> Step {
        match read_set(&mut self.programs, t, mask, bytes) {
            Ok(mask) => {
                let thread = &mut self.programs.table[t];
                thread.restore_mask = Some(thread.blocked);
                thread.blocked = mask;
                self.wait_for_handler(t)
            }
            Err(error) => error.into(),
        }
    }

    /// Waits until a handler runs. Signals that are pending already are looked at now; those without a handler may vanish or stop the
    /// process, and the wait goes on.
    fn wait_for_handler(&mut self, t: ThreadIndex) -> Step {
        self.programs.table[t].doing = Doing::Pausing;
        let p = self.programs.table.process_of(t);
        // A handler, or the end of the process, ends the pause: such signals stay pending until the thread runs.
        while matches!(self.programs.table[t].doing, Doing::Pausing)
            && self.programs.table[p].stopped().is_none()
            && let Some(signal) = self.programs.open_signals(t).next()
        {
            if self.programs.table.disposition(p, signal) == Disposition::Handle {
                self.poke(t);
            } else {
                let for_thread = self.programs.table[t].pending.set().contains(signal);
                self.act_on(p, for_thread.then_some(t), signal);
            }
        }
        Step::Later
    }

    /// A thread waits in vfs with another mask (`pselect6`, `ppoll`). A pending signal that this lets through acts at once.
    pub fn mask_call(&mut self, endpoint: Endpoint, mask: Set) {
        let Some(t) = self.programs.table.find(endpoint) else { return };
        let thread = &mut self.programs.table[t];
        // A vfs that has restarted reports the same wait once more.
        thread.restore_mask.get_or_insert(thread.blocked);
        thread.blocked = mask.without(Signal::KILL.set()).without(Signal::STOP.set());
        let p = self.programs.table.process_of(t);
        let mut open = self.programs.open_signals(t);
        while let Some(signal) = open.next()
            && self.programs.table.find(endpoint).is_some()
        {
            open = open.without(signal.set());
            let for_thread = self.programs.table[t].pending.set().contains(signal);
            self.act_on(p, for_thread.then_some(t), signal);
        }
    }

    /// That wait is over. A signal that is to be delivered takes the thread's own mask back after its handler; else it is restored here.
    pub fn unmask_call(&mut self, endpoint: Endpoint) {
        let Some(t) = self.programs.table.find(endpoint) else { return };
        if !self.programs.table.has_work(t)
            && let Some(mask) = self.programs.table[t].restore_mask.take()
        {
            self.programs.table[t].blocked = mask;
        }
        self.programs.system.vfs_unmasked(endpoint);
    }

    /// `rt_sigtimedwait(set, info, timeout, size)`.
    pub fn rt_sigtimedwait(&mut self, t: ThreadIndex, a: &[u64; 7]) -> Step {
        let wait = match self.programs.signal_wait(t, a) {
            Ok(wait) => wait,
            Err(error) => return error.into(),
        };
        self.programs.table[t].doing = Doing::SignalWaiting(wait);
        if let Some(deadline) = wait.deadline_ns {
            self.set_timer(deadline, Key::Wake(t));
        }
        if !self.serve_signal_wait(t) && self.programs.table.has_work(t) {
            self.end_signal_wait(t, Errno::EINTR);
        }
        Step::Later
    }

    /// Ends the wait with a pending signal of its set. Returns false if there is none.
    pub fn serve_signal_wait(&mut self, t: ThreadIndex) -> bool {
        let Doing::SignalWaiting(wait) = self.programs.table[t].doing else { return false };
        let p = self.programs.table.process_of(t);
        let Some(taken) = self.programs.table.take_signal(t, wait.set) else { return false };
        let info = self.signal_taken(p, taken);
        self.programs.begin_delivery(t, info);
        self.forget_timer(t);
        let written = match wait.info {
            0 => Ok(()),
            address => self.programs.write_bytes(t, address, &info.to_bytes()),
        };
        self.programs.delivery = None;
        self.finish(t, written.map(|()| info.signal.number() as u64));
        true
    }

    /// Ends the wait without one: `EINTR`, or `EAGAIN` when the time is up.
    pub fn end_signal_wait(&mut self, t: ThreadIndex, error: Errno) {
        self.forget_timer(t);
        self.finish(t, Err(error));
    }
}
