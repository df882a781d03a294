//! Deadlines of threads: alarms (`SetAlarm`) and the time limits of futex waits; at most one of each kind for each thread.
//!
//! Neighbours: `deadlines`, `timer` (armed for the earliest), `calls`, `futex`, `dispatch` (what happens then).

use crate::{Machine, time::deadlines::Deadlines, time::timer::Timer};

use abi::endpoint::SLOTS;
use zerocopy::FromZeros;

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
#[derive(Debug, FromZeros)]
pub struct Alarms(Deadlines<{ KINDS * SLOTS }>);

impl Alarms {
    /// Sets the deadline of a thread, in ticks, and makes sure that the timer comes for it.
    pub fn set<M: Machine>(&mut self, timer: &mut Timer, m: &mut M, (slot, kind): (usize, Kind), deadline: u64) {
        self.0.set(kind as usize * SLOTS + slot, deadline);
        timer.arm(m, deadline);
    }

    /// As `set`, in monotonic time.
    pub fn set_ns<M: Machine>(&mut self, timer: &mut Timer, m: &mut M, which: (usize, Kind), deadline_ns: u64) {
        let now = m.ticks();
        let wait_ns = deadline_ns.saturating_sub(m.ticks_to_ns(now));
        let deadline = now.saturating_add(m.ns_to_ticks(wait_ns));
        self.set(timer, m, which, deadline);
    }

    /// Cancels the deadline of this kind, if there is one.
    pub fn cancel(&mut self, slot: usize, kind: Kind) {
        self.0.cancel(kind as usize * SLOTS + slot);
    }

    /// Takes out one that is not after `now`: of which thread, and of which kind.
    pub fn expire(&mut self, now: u64) -> Option<(usize, Kind)> {
        let (number, _) = self.0.expire(now)?;
        Some((number % SLOTS, if number < SLOTS { Kind::Alarm } else { Kind::Futex }))
    }

    /// Arms the timer for the earliest.
    pub fn arm_first<M: Machine>(&self, timer: &mut Timer, m: &mut M) {
        if let Some(deadline) = self.0.first_deadline() {
            timer.arm(m, deadline);
        }
    }
}

/// Monotonic time.
pub fn now_ns<M: Machine>(m: &mut M) -> u64 {
    let ticks = m.ticks();
    m.ticks_to_ns(ticks)
}
