//! Real-time threads of Linux's policies leave a twentieth of the time to all others, as on Linux by default, so that a user
//! at the console can kill one that never waits. (Processes of MINIX4RT have watchdogs for that.)
//!
//! Whenever a thread in a real-time queue has used up its quantum while another waits, the account is checked here. When all
//! of them together have used their share of about a second, their ready queue is the worst one for a while; `inheritance`
//! knows which they return to. A donation made meanwhile counts at once: only a running thread makes one. Neighbours:
//! `node::throttle` (the account), `dispatch` (quanta, the timer).

use crate::{
    Machine, Node, boost::donate, boost::effects, inheritance::NOTHING, priority::LAST, priority::SYSTEM_QUEUE,
};

use abi::{endpoint::FIRST_SERVICE, endpoint::SLOTS};

/// Length of the accounting period: long enough that one quantum does not trip the throttle.
const PERIOD_NS: u64 = 950_000_000;
/// Length of the pause.
const PAUSE_NS: u64 = 50_000_000;

/// A thread in a real-time queue has used up a turn. True: all have used up their share.
pub fn throttle<M: Machine>(node: &mut Node, m: &mut M) -> bool {
    let now = m.ticks();
    if !node.throttle.has_lasted(now, m.ns_to_ticks(PERIOD_NS)) {
        return false;
    }
    let real_time = |slot: &usize| effects::own_queue(node, *slot) < SYSTEM_QUEUE && !node.threads[*slot].real_time;
    let used = (FIRST_SERVICE..SLOTS).filter(real_time).map(|slot| node.threads[slot].run_ticks).sum::<u64>();
    let is_over = node.throttle.begin_period(now, used);
    if is_over {
        let end = now + m.ns_to_ticks(PAUSE_NS);
        node.throttle.pause(end);
        node.timer.arm(m, end);
        change_queues(node, true);
    }
    is_over
}

/// The timer has come: ends the pause, or waits for its end.
pub fn end_pause<M: Machine>(node: &mut Node, m: &mut M, now: u64) {
    match node.throttle.pause_end(now) {
        Some(end) if now < end => node.timer.arm(m, end),
        Some(_) => change_queues(node, false),
        None => {}
    }
}

/// Gives all threads the queues that they have in a pause, or those of their priorities again. Donations end when a pause begins.
fn change_queues(node: &mut Node, is_pause: bool) {
    for slot in FIRST_SERVICE..SLOTS {
        if !node.threads[slot].is_live() || node.threads[slot].real_time {
            continue;
        }
        if is_pause && node.threads[slot].base_queue < SYSTEM_QUEUE {
            donate::set_donation(node, NOTHING, slot);
        }
        let queue = match (is_pause, effects::own_queue(node, slot), node.inheritance.effective(slot as u16)) {
            (true, ..SYSTEM_QUEUE, _) => LAST,
            (true, own, _) => own,
            (false, own, NOTHING) => own,
            (false, _, effective) => effective,
        };
        if queue != node.threads[slot].base_queue {
            effects::take_part(node, slot);
            node.threads.set_queue(slot, queue);
        }
    }
}
