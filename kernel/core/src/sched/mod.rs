//! Who runs: 64 ready queues (0 to 46 real time, 47 the SYSTEM task, 48 to 63 time shared), quanta, and the one timer.
//!
//! The current thread is in no queue; neither is the thread woken last in an entry (`woken`), so that a call to a
//! waiting server and its answer go from one to the other without touching the queues. A wake-up goes to the tail of
//! the thread's queue, a preempted thread to the head. A time-shared thread that has used its quantum while others are
//! ready sinks one queue; it is back in its base queue when it has waited, and all are raised every `BALANCE_NS`, so
//! that nobody starves. The timer is armed only for the earliest of alarms and the end of the quantum when somebody
//! else is ready; an early interrupt just arms it again. Real-time threads do not sink: with a quantum they take turns in their queue. Neighbours: `node` (entry points), `alarm`.

use crate::{
    Machine, Node, priority::FIRST_SHARED, priority::QUEUES, priority::SYSTEM_QUEUE, rooms::tracing, thread::blocked,
};

use abi::endpoint::slot;

/// The ready queues of real-time threads, as bits.
pub(crate) const REAL_TIME_QUEUES: u64 = (1 << SYSTEM_QUEUE) - 1;
/// The bit of the time-shared world's work in `Node::deferred`.
pub(crate) const ORDINARY_WORK: u64 = 1 << SYSTEM_QUEUE;

/// A wait of a thread has ended: if nothing else keeps it, it is ready.
#[inline(always)]
pub(crate) fn wake_if_free(node: &mut Node, slot: usize) {
    if node.threads[slot].flags == 0 {
        wake(node, slot);
    }
}

/// A thread whose `flags` have become 0 is ready. To be called once for each time they do.
#[inline(always)]
pub(crate) fn wake(node: &mut Node, slot: usize) {
    if slot == node.current {
        return;
    }
    let thread = &mut node.threads[slot];
    thread.queue = thread.base_queue;
    let before = core::mem::replace(&mut node.next_hint, slot as u16);
    if before != 0 {
        enqueue(node, before);
    }
}

/// A thread that was ready is to wait: takes it from where it waits for the CPU. The caller sets its `flags`.
pub(crate) fn unready(node: &mut Node, slot: usize) {
    let slot16 = slot as u16;
    if node.next_hint == slot16 {
        node.next_hint = 0;
    } else if slot != node.current {
        let queue = node.threads[slot].queue as usize % QUEUES;
        node.queues[queue].remove(&mut node.threads, slot16);
        if node.queues[queue].is_empty() {
            node.ready = node.ready & !(1 << queue) | node.deferred;
        }
    }
}

#[inline(always)]
pub(crate) fn enqueue(node: &mut Node, slot: u16) {
    let queue = node.threads[slot as usize].queue as usize % QUEUES;
    node.queues[queue].push_back(&mut node.threads, slot);
    node.ready |= 1 << queue;
}

fn enqueue_first(node: &mut Node, slot: u16) {
    let queue = node.threads[slot as usize].queue as usize % QUEUES;
    node.queues[queue].push_front(&mut node.threads, slot);
    node.ready |= 1 << queue;
}

/// Puts the current thread at the tail of its queue.
pub(crate) fn yield_current<M: Machine>(node: &mut Node, m: &mut M) {
    let slot = node.current as u16;
    if node.threads[node.current].flags == 0 {
        let woken = core::mem::take(&mut node.next_hint);
        if woken != 0 {
            enqueue(node, woken);
        }
        switch_to(node, m, slot::IDLE);
        enqueue(node, slot);
    }
}

/// Takes the best thread from the queues; the idle task when they are empty.
#[inline(always)]
fn dequeue(node: &mut Node) -> usize {
    if node.ready == 0 {
        return slot::IDLE;
    }
    let queue = node.ready.trailing_zeros() as usize % QUEUES;
    let first = node.queues[queue].first;
    node.queues[queue].remove(&mut node.threads, first);
    if node.queues[queue].is_empty() {
        node.ready = node.ready & !(1 << queue) | node.deferred;
    }
    first as usize
}

/// The thread to run; it is in no queue then.
#[inline(always)]
pub(crate) fn pick(node: &mut Node) -> usize {
    let best = node.ready.trailing_zeros() as u8;
    let current = &node.threads[node.current];
    let limit = if current.flags == 0 { current.queue } else { u8::MAX };
    let runnable = limit != u8::MAX;
    let woken = core::mem::take(&mut node.next_hint);
    if woken != 0 {
        let queue = node.threads[woken as usize].queue;
        if queue < best && queue < limit {
            if runnable {
                enqueue_first(node, node.current as u16);
            }
            return woken as usize;
        }
        enqueue(node, woken);
        if limit <= queue && limit <= best {
            return node.current;
        }
    } else if runnable && limit <= best {
        return node.current;
    }
    if runnable {
        enqueue_first(node, node.current as u16);
    }
    dequeue(node)
}

/// Charges the current thread for its time and makes another the current one.
#[inline(always)]
pub(crate) fn switch_to<M: Machine>(node: &mut Node, m: &mut M, slot: usize) {
    charge(node, m.ticks());
    if node.tracing.is_on() {
        tracing::trace_switch(node, m, slot);
    }
    node.current = slot;
    node.switches += 1;
    node.fast_path_off = node.observed | (node.threads[slot].queue < SYSTEM_QUEUE);
}

/// Charges the current thread for its time until now.
#[inline(always)]
pub(crate) fn charge(node: &mut Node, now: u64) {
    let used = now - node.switched_at;
    node.switched_at = now;
    node.threads[node.current].charge(used);
}

/// Makes sure that the timer comes at `deadline` or before.
#[inline(always)]
pub(crate) fn arm<M: Machine>(node: &mut Node, m: &mut M, deadline: u64) {
    if deadline < node.armed {
        node.armed = deadline;
        m.arm_timer(deadline);
    }
}

/// Puts every ready thread that has sunk back to its base queue.
pub(crate) fn raise_sunk_threads(node: &mut Node) {
    for queue in FIRST_SHARED as usize + 1..QUEUES {
        let mut slot = node.queues[queue].first;
        while slot != 0 {
            let thread = &node.threads[slot as usize];
            let next = thread.next;
            if thread.base_queue < thread.queue {
                unready(node, slot as usize);
                node.threads[slot as usize].queue = node.threads[slot as usize].base_queue;
                enqueue(node, slot);
            }
            slot = next;
        }
    }
}

/// Sets base queue and quantum (in ticks).
pub(crate) fn set_schedule(node: &mut Node, slot: usize, base_queue: u8, quantum: u64) {
    node.threads[slot].set_quantum(quantum);
    set_queue(node, slot, base_queue);
}

/// Sets the base queue, and moves the thread when it is ready.
pub(crate) fn set_queue(node: &mut Node, slot: usize, base_queue: u8) {
    let ready = node.threads[slot].flags == 0 && slot != node.current && node.next_hint != slot as u16;
    if ready {
        unready(node, slot);
    }
    let thread = &mut node.threads[slot];
    thread.base_queue = base_queue;
    thread.queue = base_queue;
    if ready {
        enqueue(node, slot as u16);
    }
}

/// There is work for this priority; it is done when nothing better runs.
pub(crate) fn defer(node: &mut Node, priority: u8) {
    node.deferred |= 1 << priority;
    node.ready |= 1 << priority;
}

/// True when a real-time thread runs or is about to, or work for one waits.
pub(crate) fn is_real_time_ready(node: &Node) -> bool {
    let is_real_time = |slot: usize| node.threads[slot].flags == 0 && node.threads[slot].queue < SYSTEM_QUEUE;
    node.ready & REAL_TIME_QUEUES != 0
        || is_real_time(node.current)
        || node.next_hint != 0 && is_real_time(node.next_hint as usize)
}

/// Decides whether every message is observed, and whether messages may take the fast path.
pub(crate) fn update_fast_path(node: &mut Node) {
    node.observed = node.tracing.is_on() || node.injection.is_armed();
    node.fast_path_off = node.observed || node.threads[node.current].queue < SYSTEM_QUEUE;
}

/// `Stop`.
pub(crate) fn stop(node: &mut Node, slot: usize) {
    if node.threads[slot].flags == 0 {
        unready(node, slot);
    }
    node.threads[slot].flags |= blocked::STOPPED;
}
