//! Who runs: 64 ready queues (0 to 46 real time, 47 the SYSTEM task, 48 to 63 time shared), quanta, and the one timer.
//!
//! The current thread is in no queue; neither is the thread woken last in an entry (`woken`), so that a call to a
//! waiting server and its answer go from one to the other without touching the queues. A wake-up goes to the tail of
//! the thread's queue, a preempted thread to the head. A time-shared thread that has used its quantum while others are
//! ready sinks one queue; it is back in its base queue when it has waited, and all are raised every `BALANCE_NS`, so
//! that nobody starves. The timer is armed only for the earliest of alarms and the end of the quantum when somebody
//! else is ready; an early interrupt just arms it again. Real-time threads do not sink: with a quantum they take turns in their queue. Neighbours: `node` (entry points), `alarm`.

use abi::endpoint::{FIRST_SERVICE, slot};

use crate::{Machine, Next, Node, node::QUEUES};

/// The time-shared queues: 16 from here on.
pub(crate) const FIRST_SHARED: u8 = 48;
/// The queue of the SYSTEM task alone: better than all time-shared ones. Its list stays empty, since slot 0 links nothing: the bit in
/// `ready` says all.
pub(crate) const SYSTEM_QUEUE: u8 = FIRST_SHARED - 1;
/// The worst queue.
pub(crate) const LAST: u8 = QUEUES as u8 - 1;
/// Default base queue of services (of the 16).
pub(crate) const SERVICE_QUEUE: u8 = FIRST_SHARED + 4;
/// Default base queue of applications.
pub(crate) const APPLICATION_QUEUE: u8 = FIRST_SHARED + 8;
/// Default quantum.
pub(crate) const QUANTUM_NS: u64 = 10_000_000;
/// Bit of a quantum: when it is over, the thread does not go behind the others of its queue.
pub(crate) const KEEPS_TURN: u64 = 1 << 63;
/// Quantum of `SCHED_FIFO`: how often it is looked at.
pub(crate) const FIFO_NS: u64 = 50_000_000;
/// How often sunk threads are raised.
const BALANCE_NS: u64 = 200_000_000;

impl Node {
    /// A wait of a thread has ended: if nothing else keeps it, it is ready.
    #[inline(always)]
    pub(crate) fn wake_if_free(&mut self, slot: usize) {
        if self.threads[slot].flags == 0 {
            self.wake(slot);
        }
    }

    /// A thread whose `flags` have become 0 is ready. To be called once for each time they do.
    #[inline(always)]
    pub(crate) fn wake(&mut self, slot: usize) {
        if slot == self.current {
            return;
        }
        let thread = &mut self.threads[slot];
        thread.queue = thread.base_queue;
        let before = core::mem::replace(&mut self.woken, slot as u16);
        if before != 0 {
            self.enqueue(before);
        }
    }

    /// A thread that was ready is to wait: takes it from where it waits for the CPU. The caller sets its `flags`.
    pub(crate) fn unready(&mut self, slot: usize) {
        let slot16 = slot as u16;
        if self.woken == slot16 {
            self.woken = 0;
        } else if slot != self.current {
            let queue = self.threads[slot].queue as usize % QUEUES;
            self.queues[queue].remove(&mut self.threads, slot16);
            if self.queues[queue].is_empty() {
                self.ready = self.ready & !(1 << queue) | self.deferred;
            }
        }
    }

    #[inline(always)]
    pub(crate) fn enqueue(&mut self, slot: u16) {
        let queue = self.threads[slot as usize].queue as usize % QUEUES;
        self.queues[queue].push_back(&mut self.threads, slot);
        self.ready |= 1 << queue;
    }

    fn enqueue_first(&mut self, slot: u16) {
        let queue = self.threads[slot as usize].queue as usize % QUEUES;
        self.queues[queue].push_front(&mut self.threads, slot);
        self.ready |= 1 << queue;
    }

    /// Puts the current thread at the tail of its queue.
    pub(crate) fn yield_current<M: Machine>(&mut self, m: &mut M) {
        let slot = self.current as u16;
        if self.threads[self.current].flags == 0 {
            let woken = core::mem::take(&mut self.woken);
            if woken != 0 {
                self.enqueue(woken);
            }
            self.switch_to(m, slot::IDLE);
            self.enqueue(slot);
        }
    }

    /// Takes the best thread from the queues; the idle task when they are empty.
    #[inline(always)]
    fn dequeue(&mut self) -> usize {
        if self.ready == 0 {
            return slot::IDLE;
        }
        let queue = self.ready.trailing_zeros() as usize % QUEUES;
        let first = self.queues[queue].first;
        self.queues[queue].remove(&mut self.threads, first);
        if self.queues[queue].is_empty() {
            self.ready = self.ready & !(1 << queue) | self.deferred;
        }
        first as usize
    }

    /// The thread to run; it is in no queue then.
    #[inline(always)]
    fn pick(&mut self) -> usize {
        let best = self.ready.trailing_zeros() as u8;
        let current = &self.threads[self.current];
        let limit = if current.flags == 0 { current.queue } else { u8::MAX };
        let runnable = limit != u8::MAX;
        let woken = core::mem::take(&mut self.woken);
        if woken != 0 {
            let queue = self.threads[woken as usize].queue;
            if queue < best && queue < limit {
                if runnable {
                    self.enqueue_first(self.current as u16);
                }
                return woken as usize;
            }
            self.enqueue(woken);
            if limit <= queue && limit <= best {
                return self.current;
            }
        } else if runnable && limit <= best {
            return self.current;
        }
        if runnable {
            self.enqueue_first(self.current as u16);
        }
        self.dequeue()
    }

    /// See [`Node::next`].
    #[inline(always)]
    pub(crate) fn schedule<M: Machine>(&mut self, m: &mut M) -> Next {
        loop {
            let slot = self.pick();
            if slot != self.current {
                self.switch_to(m, slot);
            }
            if slot < FIRST_SERVICE {
                if slot == slot::IDLE {
                    return Next::Idle;
                }
                if core::mem::take(&mut self.interrupts_first) {
                    return Next::Interrupts;
                }
                if self.deferred != 0 {
                    self.do_deferred(m);
                } else {
                    self.run_system_task(m);
                }
                continue;
            }
            if self.ready != 0 {
                let quantum_end = self.switched_at.saturating_add(self.threads[slot].quantum_left());
                self.arm(m, quantum_end);
            }
            if self.threads[slot].attention == 0 {
                return Next::Run(slot);
            }
            if core::mem::take(&mut self.interrupts_first) {
                return Next::Interrupts;
            }
            self.attend(m, slot);
        }
    }

    /// Charges the current thread for its time and makes another the current one.
    #[inline(always)]
    fn switch_to<M: Machine>(&mut self, m: &mut M, slot: usize) {
        self.charge(m.ticks());
        if self.tracing {
            self.trace_switch(m, slot);
        }
        self.current = slot;
        self.switches += 1;
        self.barred = self.observed | (self.threads[slot].queue < SYSTEM_QUEUE);
    }

    /// Charges the current thread for its time until now.
    #[inline(always)]
    pub(crate) fn charge(&mut self, now: u64) {
        let used = now - self.switched_at;
        self.switched_at = now;
        self.threads[self.current].charge(used);
    }

    /// Makes sure that the timer comes at `deadline` or before.
    #[inline(always)]
    pub(crate) fn arm<M: Machine>(&mut self, m: &mut M, deadline: u64) {
        if deadline < self.armed {
            self.armed = deadline;
            m.arm_timer(deadline);
        }
    }

    /// The timer has come: real-time timers, the end of a quantum, and the clock of the time-shared world.
    pub(crate) fn on_timer<M: Machine>(&mut self, m: &mut M) {
        let now = m.ticks();
        self.armed = u64::MAX;
        self.charge(now);
        if self.observed {
            self.end_doomed(m);
        }
        self.expire_timers(m, now);
        self.end_quantum(m);
        self.end_pause(m, now);
        if !self.put_off_clock_work() {
            self.do_clock_work(m);
        }
    }

    /// Alarms and balance.
    pub(crate) fn do_clock_work<M: Machine>(&mut self, m: &mut M) {
        let now = m.ticks();
        self.expire_alarms(m, now);
        if now.saturating_sub(self.balanced_at) >= m.ns_to_ticks(BALANCE_NS) {
            self.balanced_at = now;
            self.raise_sunk_threads();
        }
        if let Some(deadline) = self.alarms.first_deadline() {
            self.arm(m, deadline);
        }
    }

    /// Lets a thread that has used up its quantum go behind those that wait in its queue; a time-shared one sinks to the next worse.
    fn end_quantum<M: Machine>(&mut self, m: &mut M) {
        let competition = self.ready != 0 || self.woken != 0;
        if self.threads[self.current].real_time && self.threads[self.current].quantum_left <= 0 {
            return self.end_runaway(m, self.current);
        }
        let thread = &mut self.threads[self.current];
        if thread.flags != 0 || thread.quantum_left > 0 || thread.queue == SYSTEM_QUEUE {
            return;
        }
        thread.renew_quantum();
        let keeps_turn = thread.quantum & KEEPS_TURN != 0;
        if competition {
            if thread.queue >= FIRST_SHARED {
                thread.queue = LAST.min(thread.queue + 1);
            } else if self.throttle(m) || keeps_turn {
                return;
            }
            self.yield_current(m);
        }
    }

    /// Puts every ready thread that has sunk back to its base queue.
    fn raise_sunk_threads(&mut self) {
        for queue in FIRST_SHARED as usize + 1..QUEUES {
            let mut slot = self.queues[queue].first;
            while slot != 0 {
                let thread = &self.threads[slot as usize];
                let next = thread.next;
                if thread.base_queue < thread.queue {
                    self.unready(slot as usize);
                    self.threads[slot as usize].queue = self.threads[slot as usize].base_queue;
                    self.enqueue(slot);
                }
                slot = next;
            }
        }
    }

    /// Sets base queue and quantum (in ticks).
    pub(crate) fn set_schedule(&mut self, slot: usize, base_queue: u8, quantum: u64) {
        self.threads[slot].set_quantum(quantum);
        self.set_queue(slot, base_queue);
    }

    /// Sets the base queue, and moves the thread when it is ready.
    pub(crate) fn set_queue(&mut self, slot: usize, base_queue: u8) {
        let ready = self.threads[slot].flags == 0 && slot != self.current && self.woken != slot as u16;
        if ready {
            self.unready(slot);
        }
        let thread = &mut self.threads[slot];
        thread.base_queue = base_queue;
        thread.queue = base_queue;
        if ready {
            self.enqueue(slot as u16);
        }
    }
}
