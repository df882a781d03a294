//! Real-time threads of Linux's policies leave a twentieth of the time to everybody else, as Linux does by default: so that who is at the console can
//! end one that never waits. (Processes of MINIX4RT have watchdogs for that.)
//!
//! A thread in a real-time queue is looked at here whenever it has used up a turn while somebody waits. When all of them together have used
//! their share of about a second, their ready queue is the worst one for a while; `rt` knows which they come back to. What is lent
//! meanwhile counts at once: only who runs may lend. Neighbours: `scheduler` (turns, the timer), `rt`.

use abi::endpoint::{FIRST_SERVICE, SLOTS};

use crate::{
    Machine, Node,
    rt::NOTHING,
    scheduler::{LAST, SYSTEM_QUEUE},
};

/// How long at least is looked at.
const PERIOD_NS: u64 = 950_000_000;
/// What they may use of that, in percent, without a pause.
const SHARE: u64 = 95;
const PAUSE_NS: u64 = 50_000_000;

/// All times in ticks.
#[derive(Debug)]
pub(crate) struct Throttle {
    /// Begin of the period.
    pub since: u64,
    /// What they had used then, since ever.
    pub used: u64,
    /// End of the pause; 0: there is none.
    pub until: u64,
}

impl Node {
    /// A thread in a real-time queue has used up a turn. True: all have used up their share.
    pub(crate) fn throttle<M: Machine>(&mut self, m: &mut M) -> bool {
        let now = m.ticks();
        let elapsed = now.saturating_sub(self.throttle.since);
        if elapsed < m.ns_to_ticks(PERIOD_NS) {
            return false;
        }
        let real_time = |slot: &usize| self.own_queue(*slot) < SYSTEM_QUEUE && !self.threads[*slot].real_time;
        let used = (FIRST_SERVICE..SLOTS).filter(real_time).map(|slot| self.threads[slot].run_ticks).sum::<u64>();
        let is_over = used.saturating_sub(self.throttle.used) >= elapsed / 100 * SHARE;
        self.throttle = Throttle { since: now, used, until: 0 };
        if is_over {
            self.throttle.until = now + m.ns_to_ticks(PAUSE_NS);
            self.throttle.since = self.throttle.until;
            self.arm(m, self.throttle.until);
            self.change_queues(true);
        }
        is_over
    }

    /// The timer has come: the pause is over, or not yet.
    pub(crate) fn end_pause<M: Machine>(&mut self, m: &mut M, now: u64) {
        if now < self.throttle.until {
            self.arm(m, self.throttle.until);
        } else if self.throttle.until != 0 {
            self.throttle.until = 0;
            self.change_queues(false);
        }
    }

    /// Gives all threads the queues that they have in a pause, or those of their priorities again. Loans end with the begin of a pause.
    fn change_queues(&mut self, is_pause: bool) {
        for slot in FIRST_SERVICE..SLOTS {
            if !self.threads[slot].is_live() || self.threads[slot].real_time {
                continue;
            }
            if is_pause && self.threads[slot].base_queue < SYSTEM_QUEUE {
                self.set_loan(NOTHING, slot);
            }
            let queue = match (is_pause, self.own_queue(slot), self.mrt.rt.effective(slot as u16)) {
                (true, ..SYSTEM_QUEUE, _) => LAST,
                (true, own, _) => own,
                (false, own, NOTHING) => own,
                (false, _, effective) => effective,
            };
            if queue != self.threads[slot].base_queue {
                self.take_part(slot);
                self.set_queue(slot, queue);
            }
        }
    }
}
