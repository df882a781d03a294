//! Snapshots for exhaustive search: what messages and scheduling change in a few threads.
//!
//! For tests only: a feature that no kernel is built with. Deadlines, lines, privileges and routes are not part of it:
//! between taking and restoring, they must not change.

use crate::{Thread, rooms::Kernel, sched::Queues};

/// The state of `N` threads and of the scheduler.
#[derive(Clone, Debug)]
pub struct Snapshot<const N: usize> {
    slots: [usize; N],
    threads: [Thread; N],
    spaces: [u16; N],
    queues: Queues,
    live: u64,
}

impl Kernel {
    /// Takes a snapshot of these threads, which must be all that exist.
    ///
    /// # Panics
    /// When a slot is not below `SLOTS`.
    pub fn snapshot<const N: usize>(&self, slots: [usize; N]) -> Snapshot<N> {
        let threads = slots.map(|slot| self.node.threads[slot].clone());
        Snapshot {
            spaces: threads.each_ref().map(|thread| self.node.spaces[thread.space.0 as usize]),
            slots,
            threads,
            queues: self.node.threads.queues().clone(),
            live: self.node.live,
        }
    }

    /// Goes back to a snapshot of this node.
    pub fn restore<const N: usize>(&mut self, snapshot: &Snapshot<N>) {
        for (index, thread) in snapshot.threads.iter().enumerate() {
            self.node.spaces[thread.space.0 as usize] = snapshot.spaces[index];
            self.node.threads[snapshot.slots[index]].clone_from(thread);
        }
        self.node.threads.restore_queues(&snapshot.queues);
        self.node.live = snapshot.live;
    }
}
