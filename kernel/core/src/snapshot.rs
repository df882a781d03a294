//! A way back, for exhaustive search: what messages and scheduling change in a few threads.
//!
//! Not for running kernels. Deadlines, lines, privileges and routes are not part of it: between taking and restoring,
//! they must not change.

use crate::{Node, Thread, thread::list::List};

/// The state of `N` threads and of the scheduler.
#[derive(Clone, Debug)]
pub struct Snapshot<const N: usize> {
    slots: [usize; N],
    threads: [Thread; N],
    spaces: [u16; N],
    queues: [List; N],
    current: usize,
    next_hint: u16,
    ready: u64,
    live: u64,
}

impl Node {
    /// Takes a snapshot of these threads, which must be all that exist.
    ///
    /// # Panics
    /// When a slot is not below `SLOTS`.
    pub fn snapshot<const N: usize>(&self, slots: [usize; N]) -> Snapshot<N> {
        let threads = slots.map(|slot| self.threads[slot].clone());
        Snapshot {
            spaces: threads.each_ref().map(|thread| self.spaces[thread.space.0 as usize]),
            queues: threads.each_ref().map(|thread| self.queues[thread.queue as usize]),
            slots,
            threads,
            current: self.current,
            next_hint: self.next_hint,
            ready: self.ready,
            live: self.live,
        }
    }

    /// Goes back to a snapshot of this node.
    pub fn restore<const N: usize>(&mut self, snapshot: &Snapshot<N>) {
        for (index, thread) in snapshot.threads.iter().enumerate() {
            self.spaces[thread.space.0 as usize] = snapshot.spaces[index];
            self.queues[thread.queue as usize] = snapshot.queues[index];
            self.threads[snapshot.slots[index]].clone_from(thread);
        }
        self.current = snapshot.current;
        self.next_hint = snapshot.next_hint;
        self.ready = snapshot.ready;
        self.live = snapshot.live;
    }
}
