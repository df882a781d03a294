//! Deadlines of threads: alarms (`SetAlarm`) and the time limits of futex waits; at most one of each kind for each thread.
//!
//! Neighbours: `deadlines`, `scheduler` (arms the timer for the earliest), `notify`, `futex`.

use crate::{Machine, Node, priority::SYSTEM_QUEUE, time::deadlines::Deadlines};

use abi::{call::REAL_TIME, endpoint::SLOTS};

/// What happens at a deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A notification from CLOCK.
    Alarm = 0,
    /// A futex wait ends with `ETIMEDOUT`.
    Futex = 1,
}

const KINDS: usize = 2;

/// All deadlines of threads.
pub type Alarms = Deadlines<{ KINDS * SLOTS }>;

/// The number of a thread's deadline of this kind.
pub fn number(slot: usize, kind: Kind) -> usize {
    kind as usize * SLOTS + slot
}

/// Monotonic time.
pub fn now_ns<M: Machine>(_node: &Node, m: &mut M) -> u64 {
    let ticks = m.ticks();
    m.ticks_to_ns(ticks)
}

/// `SetAlarm`: one notification from CLOCK at this monotonic time, in place of the alarm before; 0: none. A queue that is not real-time counts as 0.
pub fn set_alarm<M: Machine>(node: &mut Node, m: &mut M, slot: usize, deadline_ns: u64, queue: u64) -> u64 {
    let queue = queue.checked_sub(REAL_TIME).filter(|&queue| queue < SYSTEM_QUEUE as u64);
    node.threads[slot].alarm_queue = queue.unwrap_or(0) as u8;
    match deadline_ns {
        0 => cancel_deadline(node, slot, Kind::Alarm),
        _ => set_deadline(node, m, slot, Kind::Alarm, deadline_ns),
    }
    0
}

/// Sets a deadline in monotonic time and makes sure that the timer comes for it.
pub fn set_deadline<M: Machine>(node: &mut Node, m: &mut M, slot: usize, kind: Kind, deadline_ns: u64) {
    let now = m.ticks();
    let wait_ns = deadline_ns.saturating_sub(m.ticks_to_ns(now));
    let deadline = now.saturating_add(m.ns_to_ticks(wait_ns));
    node.alarms.set(number(slot, kind), deadline);
    node.timer.arm(m, deadline);
}

/// Forgets the deadline of this kind, if there is one.
pub fn cancel_deadline(node: &mut Node, slot: usize, kind: Kind) {
    node.alarms.cancel(number(slot, kind));
}
