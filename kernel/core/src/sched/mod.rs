//! Scheduling: 64 ready queues (0 to 46 real time, 47 the SYSTEM task, 48 to 63 time shared) and quanta.
//!
//! The current thread is in no queue; neither is the thread woken last in an entry (`next_hint`), so that a call to a
//! waiting server and its reply go from one to the other without touching the queues. A wake-up goes to the tail of
//! the thread's queue, a preempted thread to the head. A time-shared thread that has used its quantum while others are
//! ready sinks one queue; it is back in its base queue when it has waited, and all are raised at intervals, so that
//! no thread starves. Real-time threads do not sink: with a quantum they take turns in their queue. Neighbours:
//! `dispatch` (the loop that runs threads), `time::timer`.

pub mod table;

use crate::{
    Thread, priority::FIRST_SHARED, priority::QUEUES, priority::SYSTEM_QUEUE, thread::list::List, thread::state::Hold,
};

use abi::{endpoint::SLOTS, endpoint::slot};
use core::ops::{Deref, DerefMut};
use zerocopy::FromZeros;

/// The ready queues of real-time threads, as bits.
const REAL_TIME_QUEUES: u64 = (1 << SYSTEM_QUEUE) - 1;

/// Slots in which sunk threads are raised at once.
const BALANCED_AT_ONCE: usize = 16;
const _: () = assert!(SLOTS.is_multiple_of(BALANCED_AT_ONCE));

/// All threads, by slot, and which of them runs.
#[derive(Debug, FromZeros)]
#[repr(C)]
pub struct Threads {
    queues: Queues,
    /// None of the fast paths may be taken: messages are observed, or the current thread runs in a real-time queue.
    fast_path_off: bool,
    /// Every message is observed, and none takes a fast path: for tracing, or for deaths after a number of messages.
    observed: bool,
    /// When the current thread was last charged for its time, in ticks.
    switched_at: u64,
    /// When the raising of sunk threads last began, in ticks.
    balanced_at: u64,
    /// The slot at which it goes on; 0: it is done.
    balanced: u16,
    /// Context switches.
    switches: u64,
    table: [Thread; SLOTS],
}

/// The ready queues, and the threads that are ready without being in one.
#[derive(Clone, Debug, FromZeros)]
pub struct Queues {
    /// Slot of the thread that runs; the idle task's when no thread does. In no queue.
    current: usize,
    /// The thread woken last, in no queue yet; 0: none.
    next_hint: u16,
    /// Bit = ready queue that holds threads.
    ready: u64,
    /// Bit = priority with deferred work; those bits are set in `ready` too.
    deferred: u64,
    lists: [List; QUEUES],
}

impl Deref for Threads {
    type Target = [Thread];

    fn deref(&self) -> &[Thread] {
        &self.table
    }
}

impl DerefMut for Threads {
    fn deref_mut(&mut self) -> &mut [Thread] {
        &mut self.table
    }
}

impl Threads {
    /// Begins with the idle task at `now` (ticks).
    pub fn start(&mut self, now: u64) {
        (self.switched_at, self.balanced_at) = (now, now);
        self.queues.current = slot::IDLE;
        self.table[slot::IDLE].state.hold(Hold::Stopped);
    }

    /// Slot of the thread that runs; the idle task's when no thread does.
    pub fn current(&self) -> usize {
        self.queues.current
    }

    /// The thread that runs.
    pub fn running(&self) -> &Thread {
        &self.table[self.queues.current]
    }

    /// The thread that runs, to be changed.
    pub fn running_mut(&mut self) -> &mut Thread {
        &mut self.table[self.queues.current]
    }

    /// Makes a thread ready whose wait has ended, unless something else still blocks it.
    #[inline(always)]
    pub fn wake_if_free(&mut self, slot: usize) {
        if self.table[slot].state.is_ready() {
            self.wake(slot);
        }
    }

    /// Lets a thread run whose wait or hold has ended. To be called once for each time its state becomes ready.
    #[inline(always)]
    pub fn wake(&mut self, slot: usize) {
        if slot == self.queues.current {
            return;
        }
        let thread = &mut self.table[slot];
        thread.queue = thread.base_queue;
        let before = core::mem::replace(&mut self.queues.next_hint, slot as u16);
        if before != 0 {
            self.enqueue(before);
        }
    }

    /// Takes a ready thread, which is to block, out of the queues. The caller changes its state.
    pub fn unready(&mut self, slot: usize) {
        let slot16 = slot as u16;
        if self.queues.next_hint == slot16 {
            self.queues.next_hint = 0;
        } else if slot != self.queues.current {
            self.remove(self.table[slot].queue as usize % QUEUES, slot16);
        }
    }

    #[inline(always)]
    fn remove(&mut self, queue: usize, slot: u16) {
        let Queues { ready, deferred, lists, .. } = &mut self.queues;
        lists[queue].remove(&mut self.table, slot);
        if lists[queue].is_empty() {
            *ready = *ready & !(1 << queue) | *deferred;
        }
    }

    /// Puts a ready thread, which does not run, at the tail of its queue.
    #[inline(always)]
    pub fn enqueue(&mut self, slot: u16) {
        self.insert(slot, false);
    }

    /// Puts a ready thread, which does not run, at the head or the tail of its queue.
    #[inline(always)]
    fn insert(&mut self, slot: u16, at_head: bool) {
        let queue = self.table[slot as usize].queue as usize % QUEUES;
        self.queues.lists[queue].insert(&mut self.table, slot, at_head);
        self.queues.ready |= 1 << queue;
    }

    /// Takes the best thread from the queues; the idle task when they are empty.
    #[inline(always)]
    fn dequeue(&mut self) -> usize {
        if self.queues.ready == 0 {
            return slot::IDLE;
        }
        let queue = self.queues.ready.trailing_zeros() as usize % QUEUES;
        let first = self.queues.lists[queue].first;
        self.remove(queue, first);
        first as usize
    }

    /// Takes the thread that is to run out of the queues; the current one may be put into them.
    #[inline(always)]
    pub fn pick(&mut self) -> usize {
        let best = self.best_ready();
        let current = self.running();
        let limit = if current.state.is_ready() { current.queue } else { u8::MAX };
        let runnable = limit != u8::MAX;
        let woken = self.queues.next_hint;
        if woken != 0 {
            self.queues.next_hint = 0;
            let queue = self.table[woken as usize].queue;
            if queue < best && queue < limit {
                if runnable {
                    self.insert(self.queues.current as u16, true);
                }
                return woken as usize;
            }
            self.enqueue(woken);
            if limit <= queue && limit <= best {
                return self.queues.current;
            }
        } else if runnable && limit <= best {
            return self.queues.current;
        }
        if runnable {
            self.insert(self.queues.current as u16, true);
        }
        self.dequeue()
    }

    /// The best ready queue; more than any when all are empty.
    fn best_ready(&self) -> u8 {
        self.queues.ready.trailing_zeros() as u8
    }

    /// As `best_ready`, but 0 while no fast path may be taken.
    pub fn best_for_fast_path(&self) -> u8 {
        if self.fast_path_off { 0 } else { self.best_ready() }
    }

    /// Makes a thread, which is in no queue, the current one. The one before has been charged.
    #[inline(always)]
    pub fn set_current(&mut self, slot: usize) {
        self.queues.current = slot;
        self.switches += 1;
        self.fast_path_off = self.observed | (self.table[slot].queue < SYSTEM_QUEUE);
    }

    /// Stops `from`, the current thread, which has begun to wait, and lets `to`, which it sent a message, run in its place at `now`
    /// (ticks).
    #[inline(always)]
    pub fn hand_over(&mut self, from: usize, to: usize, now: u64) {
        self.table[from].charge(now - core::mem::replace(&mut self.switched_at, now));
        self.switches += 1;
        self.queues.current = to;
        self.end_wait(from, to);
    }

    /// Counts a message for both, and ends the wait of the receiver, which the caller lets run or puts into its queue.
    #[inline(always)]
    pub fn end_wait(&mut self, sender: usize, receiver: usize) {
        self.table[sender].messages += 1;
        let receiver = &mut self.table[receiver];
        receiver.state.make_ready();
        receiver.messages += 1;
        receiver.queue = receiver.base_queue;
    }

    /// Puts the thread woken last into its queue: it is to run no sooner than others there.
    pub fn enqueue_woken(&mut self) {
        let woken = core::mem::take(&mut self.queues.next_hint);
        if woken != 0 {
            self.enqueue(woken);
        }
    }

    /// Charges the current thread for its time until now.
    #[inline(always)]
    pub fn charge(&mut self, now: u64) {
        let used = now - self.switched_at;
        self.switched_at = now;
        self.running_mut().charge(used);
    }

    /// When the quantum of the current thread, the one in `slot`, ends, in ticks, if another thread waits for that.
    pub fn quantum_end(&self, slot: usize) -> Option<u64> {
        (self.queues.ready != 0).then(|| self.switched_at.saturating_add(self.table[slot].quantum_left()))
    }

    /// When the current thread was last charged for its time, in ticks.
    pub fn switched_at(&self) -> u64 {
        self.switched_at
    }

    /// Context switches.
    pub fn switches(&self) -> u64 {
        self.switches
    }

    /// Returns true when another thread than the current one is ready, or deferred work is.
    pub fn has_competition(&self) -> bool {
        self.queues.ready != 0 || self.queues.next_hint != 0
    }

    /// Returns true when the current thread may go on at once: it is not blocked, and no better one is ready. The thread woken last is in
    /// its queue then, as after `pick`.
    #[inline(always)]
    pub fn keeps_running(&mut self) -> bool {
        let Thread { state, attention, queue, .. } = *self.running();
        let woken = self.queues.next_hint as usize;
        if !state.is_ready() || attention != 0 || woken != 0 && self.table[woken].queue < queue {
            return false;
        }
        self.enqueue_woken();
        self.best_ready() >= queue
    }

    /// Puts ready threads that have sunk back to their base queues, when `period` ticks have passed since that was last done: some of them,
    /// by slot. Returns true when there may be more.
    pub fn balance(&mut self, now: u64, period: u64) -> bool {
        if self.balanced == 0 {
            let has_sunk = self.queues.ready >> (FIRST_SHARED + 1) != 0;
            if now.saturating_sub(self.balanced_at) < period || !has_sunk {
                return false;
            }
            self.balanced_at = now;
        }
        let first = self.balanced as usize;
        for slot in first..first + BALANCED_AT_ONCE {
            let thread = &self.table[slot];
            if thread.base_queue < thread.queue && thread.queue > FIRST_SHARED && thread.is_ready() {
                self.set_queue(slot, thread.base_queue);
            }
        }
        self.balanced = ((first + BALANCED_AT_ONCE) % SLOTS) as u16;
        self.balanced != 0
    }

    /// Sets base queue and quantum (in ticks).
    pub fn set_schedule(&mut self, slot: usize, base_queue: u8, quantum: u64) {
        self.table[slot].set_quantum(quantum);
        self.set_queue(slot, base_queue);
    }

    /// Sets the base queue, and moves the thread to its tail when it is ready.
    pub fn set_queue(&mut self, slot: usize, base_queue: u8) {
        self.move_to_queue(slot, base_queue, false);
    }

    /// As `set_queue`, but a thread whose priority has become better goes to the head.
    pub fn change_priority(&mut self, slot: usize, priority: u8) {
        self.move_to_queue(slot, priority, priority < self.table[slot].queue);
    }

    fn move_to_queue(&mut self, slot: usize, base_queue: u8, to_head: bool) {
        let hint = self.queues.next_hint as usize;
        let is_queued = self.table[slot].state.is_ready() && slot != self.queues.current && slot != hint;
        if is_queued {
            self.unready(slot);
        }
        let thread = &mut self.table[slot];
        (thread.base_queue, thread.queue) = (base_queue, base_queue);
        if is_queued {
            self.insert(slot as u16, to_head);
        }
    }

    /// Lets the SYSTEM task run when nothing better does. Slot 0 links nothing: the bit alone says so.
    pub fn ready_system_task(&mut self) {
        self.queues.ready |= 1 << SYSTEM_QUEUE;
    }

    /// Records that there is work for this priority; it is done when nothing better runs.
    pub fn defer(&mut self, priority: u8) {
        self.queues.deferred |= 1 << priority;
        self.queues.ready |= 1 << priority;
    }

    /// The best priority with deferred work.
    pub fn best_deferred(&self) -> Option<u8> {
        (self.queues.deferred != 0).then_some(self.queues.deferred.trailing_zeros() as u8)
    }

    /// Records that the deferred work of this priority, the best one that is ready, is done. The next pick must not find its bit: what is
    /// deferred at worse priorities waits for the threads between. (The SYSTEM task may be ready by the same bit.)
    pub fn end_deferred(&mut self, priority: u8) {
        self.queues.deferred &= !(1 << priority);
        if priority != SYSTEM_QUEUE {
            self.queues.ready &= !(1 << priority);
        }
    }

    /// Returns true when a real-time thread runs or is about to, or work for one waits.
    pub fn is_real_time_ready(&self) -> bool {
        let is_real_time = |slot: usize| self.table[slot].state.is_ready() && self.table[slot].queue < SYSTEM_QUEUE;
        let Queues { ready, current, next_hint, .. } = self.queues;
        ready & REAL_TIME_QUEUES != 0 || is_real_time(current) || next_hint != 0 && is_real_time(next_hint as usize)
    }

    /// Returns true when every message is observed.
    pub fn is_observed(&self) -> bool {
        self.observed
    }

    /// Sets whether every message is observed, and decides whether messages may take a fast path.
    pub fn set_observed(&mut self, observed: bool) {
        self.observed = observed;
        self.fast_path_off = observed || self.running().queue < SYSTEM_QUEUE;
    }

    /// Bars the fast path while the thread in this slot, if it is the current one, runs.
    pub fn bar_fast_path(&mut self, slot: usize) {
        self.fast_path_off |= slot == self.queues.current;
    }

    /// Stops a thread, which blocks it until it is started.
    pub fn stop(&mut self, slot: usize) {
        if self.table[slot].state.is_ready() {
            self.unready(slot);
        }
        self.table[slot].state.hold(Hold::Stopped);
    }

    /// The queues, for a snapshot.
    #[cfg(feature = "snapshot")]
    pub fn queues(&self) -> &Queues {
        &self.queues
    }

    /// Goes back to queues of a snapshot.
    #[cfg(feature = "snapshot")]
    pub fn restore_queues(&mut self, queues: &Queues) {
        self.queues.clone_from(queues);
    }
}
