//! The table of threads as endpoints name it: which thread holds a slot.

use crate::sched::Threads;
use abi::{Endpoint, Errno};

/// The holder of the slot that an endpoint names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holder {
    /// This thread.
    Live(usize),
    /// No thread, but rs has announced a successor.
    Expected(usize),
}

impl Threads {
    /// Returns the holder of the slot of `to`. `EDEADSRCDST`: `to` names neither that thread nor an expected one.
    #[inline(always)]
    pub fn holder(&self, to: Endpoint) -> Result<Holder, Errno> {
        match self.get(to.slot()) {
            Some(thread) if thread.endpoint == to && to.0 != 0 => Ok(Holder::Live(to.slot())),
            _ => self.holder_of_slot(to),
        }
    }

    fn holder_of_slot(&self, to: Endpoint) -> Result<Holder, Errno> {
        if to.generation() != 0 || !to.is_service() {
            return Err(Errno::EDEADSRCDST);
        }
        let thread = &self[to.slot()];
        match (thread.is_live(), thread.expected) {
            (true, _) => Ok(Holder::Live(to.slot())),
            (false, true) => Ok(Holder::Expected(to.slot())),
            (false, false) => Err(Errno::EDEADSRCDST),
        }
    }

    /// Returns the slot of the thread with this endpoint. `EDEADSRCDST`: there is none.
    pub fn find(&self, endpoint: Endpoint) -> Result<usize, Errno> {
        match self.holder(endpoint)? {
            Holder::Live(slot) => Ok(slot),
            Holder::Expected(_) => Err(Errno::EDEADSRCDST),
        }
    }
}
