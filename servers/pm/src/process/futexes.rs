//! What a thread that ends releases for the others: its robust futexes (robust_list(2)) and `CLONE_CHILD_CLEARTID`.
//!
//! Others of the process may run between pm's reading of a futex word and its writing. A waiter that marks the word in between loses its mark;
//! so pm wakes one waiter of each futex whatever the word says, and the next owner of such a lock assumes further waiters, as the ABI of
//! robust futexes requires.

use crate::programs::Programs;
use crate::state::index::ThreadIndex;
use crate::system::System;
use abi::Errno;

type Result<T> = core::result::Result<T, Errno>;

/// Fields of the futex word.
const WAITERS: u32 = 0x8000_0000;
const OWNER_DIED: u32 = 0x4000_0000;
const TID: u32 = 0x3fff_ffff;
/// Bit of a pointer to an entry: its futex passes on priorities, and the kernel takes care of it.
const INHERITS: u64 = 1;
/// Entries that are looked at, as in Linux: the list may be a circle.
const MAX_ENTRIES: usize = 2048;

impl<S: System> Programs<S> {
    /// Marks the robust futexes that the thread holds. As Linux: a corrupt list ends the walk without an error.
    pub fn release_robust_futexes(&mut self, t: ThreadIndex) {
        let (head, _) = core::mem::take(&mut self.table[t].robust);
        if head != 0 {
            let _ = self.walk_robust_list(t, head);
        }
    }

    fn walk_robust_list(&mut self, t: ThreadIndex, head: u64) -> Result<()> {
        let [first, offset, pending] = self.read_words(t, head)?;
        let mut entry = first;
        for _ in 0..MAX_ENTRIES {
            if entry & !INHERITS == head {
                break;
            }
            let [next] = self.read_words(t, entry & !INHERITS)?;
            if entry != pending {
                self.mark_owner_died(t, entry, offset)?;
            }
            entry = next;
        }
        if pending & !INHERITS != 0 { self.mark_owner_died(t, pending, offset) } else { Ok(()) }
    }

    /// Marks the futex of a list entry as ownerless, if this thread owns it.
    fn mark_owner_died(&mut self, t: ThreadIndex, entry: u64, offset: u64) -> Result<()> {
        let address = (entry & !INHERITS).wrapping_add(offset);
        let word = u32::from_le_bytes(self.read_bytes(t, address)?);
        let own = self.table.pid_shown(self.table.process_of(t), self.table[t].tid());
        if word & TID == own && address.is_multiple_of(4) {
            self.write_u32(t, address, word & WAITERS | OWNER_DIED)?;
            self.system.wake_futex(self.table[t].endpoint(), address);
        }
        Ok(())
    }

    /// CLONE_CHILD_CLEARTID: wakes a thread that joins this one.
    pub fn clear_tid(&mut self, t: ThreadIndex) {
        let address = core::mem::take(&mut self.table[t].clear_tid);
        // As Linux: a bad address is ignored.
        if address != 0 && self.write_u32(t, address, 0).is_ok() {
            self.system.wake_futex(self.table[t].endpoint(), address);
        }
    }
}
