//! Which threads are still to be looked at after a death, because they may wait for the dead. Neighbours: `ipc::release`.

use abi::{endpoint::FIRST_SERVICE, endpoint::SLOTS};
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
    slot: u16,
    fate: Fate,
    next: u16,
}

impl Release {
    /// Begins with all threads, after a death in this slot.
    pub fn begin(&mut self, slot: usize, fate: Fate) {
        *self = Release { slot: slot as u16, fate, next: FIRST_SERVICE as u16 };
    }

    /// Takes the next thread. Returns its slot, behind the last one `SLOTS` if no successor comes, and the slot and the fate of the dead;
    /// then `None`.
    pub fn next(&mut self) -> Option<(usize, usize, Fate)> {
        let waiter = self.next as usize;
        let is_left = (FIRST_SERVICE..SLOTS + (self.fate == Fate::Gone) as usize).contains(&waiter);
        self.next += is_left as u16;
        is_left.then_some((waiter, self.slot as usize, self.fate))
    }
}
