//! Real-time threads of Linux's policies leave a twentieth of the time to all others, as on Linux by default, so that a user
//! at the console can kill one that never waits. (Processes of MINIX4RT have watchdogs for that.)
//!
//! Whenever a thread in a real-time queue has used up its quantum while another waits, the account is checked here: a walk adds up
//! what all have used, a few threads each time that the timer comes. When it is their share of about a second, another walk puts them
//! into the worst ready queue for a while; `inheritance` knows which they return to. A donation made meanwhile counts at once: only a
//! running thread makes one. Neighbours: `node::throttle` (the account), `dispatch` (quanta, the timer).

use crate::{
    Machine, Node, boost::donate, boost::effects, inheritance::NOTHING, priority::LAST, priority::SYSTEM_QUEUE,
};

/// Length of the accounting period: long enough that one quantum does not trip the throttle.
pub const PERIOD_NS: u64 = 950_000_000;
/// Length of the pause.
const PAUSE_NS: u64 = 50_000_000;

/// The timer has come: goes on with what concerns all threads, for which it comes again at once, and waits for the end of a pause.
pub fn on_timer<M: Machine>(node: &mut Node, m: &mut M, now: u64) {
    if let Some(end) = node.throttle.pause_end(now) {
        node.timer.arm(m, end);
    }
    if node.throttle.is_done() {
        return;
    }
    let (is_count, slots) = node.throttle.next_slots();
    slots.for_each(|slot| if is_count { count(node, slot) } else { change_queue(node, m, slot) });
    if is_count && node.throttle.is_done() && node.throttle.begin_period(now) {
        node.throttle.pause(now + m.ns_to_ticks(PAUSE_NS));
    }
    node.timer.arm(m, now);
}

fn count(node: &mut Node, slot: usize) {
    if effects::own_queue(node, slot) < SYSTEM_QUEUE && !node.threads[slot].is_real_time() {
        node.throttle.count(node.threads[slot].run_ticks);
    }
}

/// Gives a thread the queue that it has in a pause, or that of its priority again. Donations end when a pause begins.
fn change_queue<M: Machine>(node: &mut Node, m: &mut M, slot: usize) {
    let is_pause = node.throttle.is_pause();
    if !node.threads[slot].is_live() || node.threads[slot].is_real_time() {
        return;
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
        if slot == node.current() {
            node.yield_current(m);
        }
    }
}
