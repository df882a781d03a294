//! Indices of pm's tables. A thread's index follows from its endpoint's slot; a process's index is pm's own choice and
//! outlives the threads of the process, because a zombie has none.

use abi::endpoint::{Endpoint, SERVICE_SLOTS, SLOTS};

/// Number of application threads the kernel can hold.
pub const THREADS: usize = SLOTS - SERVICE_SLOTS;

/// Most processes, zombies included.
pub const PROCESSES: usize = 2 * THREADS;

/// Position of a thread in the thread table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ThreadIndex(u16);

impl ThreadIndex {
    /// The index that belongs to the slot of an application's endpoint; `None` for services and kernel tasks.
    pub fn of(endpoint: Endpoint) -> Option<ThreadIndex> {
        let index = endpoint.slot().wrapping_sub(SERVICE_SLOTS);
        (index < THREADS).then_some(ThreadIndex(index as u16))
    }

    /// All of them.
    pub fn all() -> impl Iterator<Item = ThreadIndex> {
        (0..THREADS as u16).map(ThreadIndex)
    }

    /// As position in a table.
    pub fn get(self) -> usize {
        self.0 as usize
    }

    /// The index with this position.
    ///
    /// # Panics
    /// When it does not fit; positions come from the table itself.
    #[cfg(test)]
    pub fn at(position: usize) -> ThreadIndex {
        ThreadIndex(u16::try_from(position).expect("thread tables are small"))
    }
}

/// Position of a process in the process table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ProcessIndex(u16);

impl ProcessIndex {
    /// As position in a table.
    pub fn get(self) -> usize {
        self.0 as usize
    }

    /// The index with this position.
    ///
    /// # Panics
    /// When it does not fit; positions come from the table itself.
    pub fn at(position: usize) -> ProcessIndex {
        ProcessIndex(u16::try_from(position).expect("process tables are small"))
    }
}
