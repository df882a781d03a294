//! Which threads are still to be looked at after a death, because they may wait for the dead. Neighbours: `ipc::release`.

use crate::sched::Threads;
use abi::{endpoint::FIRST_SERVICE, endpoint::SERVICE_SLOTS, endpoint::SLOTS};
use zerocopy::FromZeros;

/// What comes after a death.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromZeros)]
#[repr(u8)]
pub enum Fate {
    /// Nobody: every wait fails, but for reports, which the kernel makes.
    Gone,
    /// A successor: calls that may be repeated wait for it.
    Expected,
    /// The same thread starts again in its memory: the requests that it held are made again.
    Restarts,
}

/// A death, and the first thread that has not been looked at since.
#[derive(Debug, FromZeros)]
pub struct Release {
    slot: usize,
    fate: Fate,
    next: usize,
}

impl Release {
    /// Begins with all threads, after a death in this slot.
    pub fn begin(&mut self, slot: usize, fate: Fate) {
        *self = Release { slot, fate, next: FIRST_SERVICE };
    }

    /// Takes the next thread; after a program's death the next that waits for it, if that is one of the next `most`. Returns its slot, behind the last one `SLOTS` if
    /// no successor comes, and the slot and the fate of the dead; then `None`.
    pub fn next(&mut self, threads: &Threads, most: usize) -> Option<(usize, usize, Fate)> {
        let is_left = (FIRST_SERVICE..SLOTS + (self.fate == Fate::Gone) as usize).contains(&self.next);
        let most = most * (self.slot >= SERVICE_SLOTS) as usize;
        let waits = |at: &usize| threads[*at].state.peer_in(self.slot).is_some();
        let waiter = (self.next..SLOTS).take(most).find(waits).unwrap_or(SLOTS.min(self.next + most));
        self.next = if is_left { waiter + 1 } else { self.next };
        is_left.then_some((waiter, self.slot, self.fate))
    }
}
