//! Doubly linked lists of threads, linked through the table: ready queues, sender lists, futex buckets.
//!
//! Slot 0 (the SYSTEM task) is never in a list, so 0 ends one. All operations but `insert_by_queue` take constant time.

use crate::Thread;
use zerocopy::FromZeros;

/// First and last thread of a list; zeros when it is empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromZeros)]
pub(crate) struct List {
    /// Slot of the first.
    pub first: u16,
    /// Slot of the last.
    pub last: u16,
}

impl List {
    /// No threads.
    pub const EMPTY: List = List { first: 0, last: 0 };

    /// Returns true when no thread is in it.
    pub fn is_empty(self) -> bool {
        self.first == 0
    }

    /// Puts a thread at the end.
    #[inline(always)]
    pub fn push_back(&mut self, threads: &mut [Thread], slot: u16) {
        self.insert(threads, slot, false);
    }

    /// Puts a thread at the start or the end.
    #[inline(always)]
    pub fn insert(&mut self, threads: &mut [Thread], slot: u16, at_start: bool) {
        self.insert_after(threads, if at_start { 0 } else { self.last }, slot);
    }

    /// Puts a thread behind the first ones of its own or a better queue: best first, in order of arrival among equals. Looks at these alone,
    /// however many others wait.
    pub fn insert_by_queue(&mut self, threads: &mut [Thread], slot: u16) {
        let queue = threads[slot as usize].queue;
        let (mut after, mut next) = (0, self.first);
        while next != 0 && threads[next as usize].queue <= queue {
            after = next;
            next = threads[next as usize].next;
        }
        self.insert_after(threads, after, slot);
    }

    /// Takes the first thread out.
    #[inline(always)]
    pub fn pop_front(&mut self, threads: &mut [Thread]) -> Option<usize> {
        let first = self.first;
        (first != 0).then(|| {
            self.remove(threads, first);
            first as usize
        })
    }

    /// Takes a thread out, wherever it is.
    #[inline(always)]
    pub fn remove(&mut self, threads: &mut [Thread], slot: u16) {
        let thread = &mut threads[slot as usize];
        let (previous, next) = (thread.previous, thread.next);
        thread.previous = 0;
        thread.next = 0;
        match previous {
            0 => self.first = next,
            _ => threads[previous as usize].next = next,
        }
        match next {
            0 => self.last = previous,
            _ => threads[next as usize].previous = previous,
        }
    }

    #[inline(always)]
    fn insert_after(&mut self, threads: &mut [Thread], after: u16, slot: u16) {
        let next = match after {
            0 => core::mem::replace(&mut self.first, slot),
            _ => core::mem::replace(&mut threads[after as usize].next, slot),
        };
        match next {
            0 => self.last = slot,
            _ => threads[next as usize].previous = slot,
        }
        let thread = &mut threads[slot as usize];
        thread.previous = after;
        thread.next = next;
    }
}
