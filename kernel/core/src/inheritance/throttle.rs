//! Real-time threads of Linux's policies leave a twentieth of the time to everybody else, as Linux does by default: so that who is at the console can
//! end one that never waits. (Processes of MINIX4RT have watchdogs for that.)
//!
//! A thread in a real-time queue is looked at here whenever it has used up a turn while somebody waits. When all of them together have used
//! their share of about a second, their ready queue is the worst one for a while; `rt` knows which they come back to. What is lent
//! meanwhile counts at once: only who runs may lend. Neighbours: `scheduler` (turns, the timer), `rt`.

use crate::{
    Machine, Node, inheritance::NOTHING, inheritance::donate, inheritance::effects, priority::LAST,
    priority::SYSTEM_QUEUE,
};

use abi::{endpoint::FIRST_SERVICE, endpoint::SLOTS};

/// How long at least is looked at.
const PERIOD_NS: u64 = 950_000_000;
/// What they may use of that, in percent, without a pause.
const SHARE: u64 = 95;
const PAUSE_NS: u64 = 50_000_000;

/// All times in ticks.
#[derive(Debug)]
pub struct Throttle {
    /// Begin of the period.
    pub since: u64,
    /// What they had used then, since ever.
    pub used: u64,
    /// End of the pause; 0: there is none.
    pub until: u64,
}

/// A thread in a real-time queue has used up a turn. True: all have used up their share.
pub fn throttle<M: Machine>(node: &mut Node, m: &mut M) -> bool {
    let now = m.ticks();
    let elapsed = now.saturating_sub(node.throttle.since);
    if elapsed < m.ns_to_ticks(PERIOD_NS) {
        return false;
    }
    let real_time = |slot: &usize| effects::own_queue(node, *slot) < SYSTEM_QUEUE && !node.threads[*slot].real_time;
    let used = (FIRST_SERVICE..SLOTS).filter(real_time).map(|slot| node.threads[slot].run_ticks).sum::<u64>();
    let is_over = used.saturating_sub(node.throttle.used) >= elapsed / 100 * SHARE;
    node.throttle = Throttle { since: now, used, until: 0 };
    if is_over {
        node.throttle.until = now + m.ns_to_ticks(PAUSE_NS);
        node.throttle.since = node.throttle.until;
        node.timer.arm(m, node.throttle.until);
        change_queues(node, true);
    }
    is_over
}

/// The timer has come: the pause is over, or not yet.
pub fn end_pause<M: Machine>(node: &mut Node, m: &mut M, now: u64) {
    if now < node.throttle.until {
        node.timer.arm(m, node.throttle.until);
    } else if node.throttle.until != 0 {
        node.throttle.until = 0;
        change_queues(node, false);
    }
}

/// Gives all threads the queues that they have in a pause, or those of their priorities again. Loans end with the begin of a pause.
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
