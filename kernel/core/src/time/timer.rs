//! The one timer of the CPU: armed for the earliest of alarms, real-time timers and the end of a quantum that another
//! thread waits for. An interrupt that comes early arms it again. Neighbours: `machine` (has it), `dispatch`.

use crate::Machine;
use zerocopy::FromZeros;

/// The timer.
#[derive(Debug, FromZeros)]
pub struct Timer {
    /// When it will come, in ticks; `u64::MAX`: never.
    armed: u64,
}

impl Timer {
    /// Records that it has come, or never will.
    pub fn disarm(&mut self) {
        self.armed = u64::MAX;
    }

    /// Makes sure that it comes at `deadline` or before.
    #[inline(always)]
    pub fn arm<M: Machine>(&mut self, m: &mut M, deadline: u64) {
        if deadline < self.armed {
            self.armed = deadline;
            m.arm_timer(deadline);
        }
    }
}
