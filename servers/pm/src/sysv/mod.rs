//! System V IPC: semaphores, message queues, shared memory.

mod list;
mod messages;
mod segments;
mod semaphores;

use crate::pm::Pm;
use crate::programs::Programs;
use crate::state::index::ThreadIndex;
use crate::state::ipc::Object;
use crate::state::time::SECOND_NS;
use crate::system::System;
use abi::Errno;

/// Old libraries add this to commands.
const IPC_64: u64 = 0x100;
const PAGE_BYTES: u64 = abi::layout::PAGE_BYTES;

/// Commands that all kinds of objects have.
mod command {
    pub const RMID: u64 = 0;
    pub const SET: u64 = 1;
    pub const STAT: u64 = 2;
    pub const IPC_INFO: u64 = 3;
}

impl<S: System> Programs<S> {
    fn pid_of(&self, t: ThreadIndex) -> u32 {
        self.table[self.table.process_of(t)].pid()
    }

    fn now_s(&mut self) -> u64 {
        self.system.time_ns().1 / SECOND_NS
    }

    /// Reads the new owner (user and group) and rights from the `struct ipc64_perm` at `address`, as IPC_SET has them. `EFAULT`.
    fn read_owner(&mut self, t: ThreadIndex, address: u64) -> Result<((u32, u32), u32), Errno> {
        let [key_and_user, group_and_creator, group_and_mode] = self.read_words(t, address)?;
        Ok((((key_and_user >> 32) as u32, group_and_creator as u32), (group_and_mode >> 32) as u32))
    }
}

impl<S: System> Pm<S> {
    /// Removes the objects of containers that have ended.
    pub fn forget_ipc(&mut self, is_used: impl Fn(u8) -> bool) {
        let is_lost = |container: u8| container != 0 && !is_used(container);
        self.semaphores.all.take_where(|set| is_lost(set.head().container()));
        self.messages.forget(is_lost);
        for index in 0..self.segments.all.places() {
            if let Some(segment) = self.segments.all.at_mut(index)
                && is_lost(segment.head.container())
                && !segment.is_removed
            {
                segment.is_removed = true;
                segment.head.make_private();
            }
        }
        self.release_segments_again();
    }
}
