//! The pending signals of threads and processes, whose queues share one table of entries.

use super::index::{ProcessIndex, ThreadIndex};
use super::limits;
use super::posix_timers::TimerIndex;
use super::signal::pending::{Entries, EntryIndex, Taken};
use super::signal::{Pending, Set, SigInfo};
use super::table::Table;
use abi::{Endpoint, Errno};

impl Table {
    fn queue(&mut self, p: ProcessIndex, t: Option<ThreadIndex>) -> &mut Pending {
        match t {
            Some(t) => &mut self[t].pending,
            None => &mut self[p].pending,
        }
    }

    /// Changes a queue; the changed one is put back.
    fn with_queue<R>(
        &mut self,
        p: ProcessIndex,
        t: Option<ThreadIndex>,
        change: impl FnOnce(&mut Pending, &mut Entries) -> R,
    ) -> R {
        let mut pending = *self.queue(p, t);
        let result = change(&mut pending, &mut self.entries);
        *self.queue(p, t) = pending;
        result
    }

    /// Makes a signal pending for a process or one thread of it, at the cost of its user. `EAGAIN`: a real-time signal beyond RLIMIT_SIGPENDING.
    pub fn add_signal(&mut self, p: ProcessIndex, t: Option<ThreadIndex>, info: SigInfo) -> Result<(), Errno> {
        let (user, limit) = (self[p].credentials.account(), self[p].limits.soft(limits::SIGPENDING));
        let is_new = info.signal.is_real_time() || !self.queue(p, t).set().contains(info.signal);
        if is_new {
            self.count_arrival(p);
        }
        self.with_queue(p, t, |pending, entries| pending.add(entries, info, user, limit))
    }

    /// Makes the signal of a timer pending, which has its own entry and is not pending yet.
    pub fn add_timer_signal(&mut self, p: ProcessIndex, t: Option<ThreadIndex>, entry: EntryIndex, info: SigInfo) {
        self.count_arrival(p);
        self.with_queue(p, t, |pending, entries| pending.add_of_timer(entries, entry, info));
    }

    /// An entry for the signals of a timer, charged to `user`, who may have `limit`. `EAGAIN`.
    pub fn entry_for_timer(&mut self, timer: TimerIndex, user: u32, limit: u64) -> Result<EntryIndex, Errno> {
        self.entries.allocate_for_timer(timer, user, limit)
    }

    /// Frees the entry of a timer, whose signal is not pending.
    pub fn release_timer_entry(&mut self, entry: EntryIndex) {
        self.entries.release_of_timer(entry);
    }

    /// Whether the signal of the timer with this entry is pending.
    pub fn is_timer_pending(&self, entry: EntryIndex) -> bool {
        self.entries.is_queued(entry)
    }

    /// Takes the signal of a timer out of the queues of its process.
    pub fn remove_timer_signal(&mut self, p: ProcessIndex, tid: Option<u32>, timer: TimerIndex) {
        let t = tid.and_then(|tid| self.thread_by_tid(tid));
        self.with_queue(p, t, |pending, entries| pending.remove_of_timer(entries, timer));
    }

    /// Takes the next signal of `wanted` that waits for a thread, or else for its process.
    pub fn take_signal(&mut self, t: ThreadIndex, wanted: Set) -> Option<Taken> {
        let p = self.process_of(t);
        let from = (!self[t].pending.set().and(wanted).is_empty()).then_some(t);
        self.with_queue(p, from, |pending, entries| pending.take(entries, wanted))
    }

    /// Number of queued signals and timers of a user.
    pub fn queued_by(&self, user: u32) -> usize {
        self.entries.held_by(user)
    }

    /// Number of entries in use.
    #[cfg(test)]
    pub fn queued_signals(&self) -> usize {
        self.entries.used()
    }

    /// Drops pending signals of a process and its threads.
    pub fn discard_signals(&mut self, p: ProcessIndex, signals: Set) {
        self.discard_signals_of(p, None, signals);
        let mut next = self[p].main();
        while let Some(t) = next {
            next = self[t].next();
            self.discard_signals_of(p, Some(t), signals);
        }
    }

    /// Drops pending signals of one thread.
    pub fn discard_signals_of_thread(&mut self, t: ThreadIndex, signals: Set) {
        self.discard_signals_of(self.process_of(t), Some(t), signals);
    }

    #[inline]
    fn discard_signals_of(&mut self, p: ProcessIndex, t: Option<ThreadIndex>, signals: Set) {
        // Mostly none of them is pending.
        if !self.queue(p, t).set().and(signals).is_empty() {
            self.with_queue(p, t, |pending, entries| pending.discard(entries, signals));
        }
    }

    /// Finds out again which entries are in use, after the death of a predecessor.
    pub(super) fn recount_signals(&mut self) {
        let mut recount = self.entries.begin_recount();
        for p in self.positions() {
            if self.is_used(p) {
                self.with_queue(p, None, |pending, entries| pending.recount(entries, &mut recount));
            }
        }
        for t in ThreadIndex::all() {
            if self[t].endpoint() != Endpoint::NONE {
                let p = self.process_of(t);
                self.with_queue(p, Some(t), |pending, entries| pending.recount(entries, &mut recount));
            }
        }
        self.entries.end_recount(&recount);
    }
}
