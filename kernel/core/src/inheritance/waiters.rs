//! Lists of waiting threads, linked through the threads themselves.

use crate::{inheritance::NONE, inheritance::NOTHING, inheritance::Task};
use zerocopy::FromZeros;

/// First and last of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, FromZeros)]
pub(super) struct Waiters {
    first: u16,
    last: u16,
}

impl Waiters {
    pub const NONE: Waiters = Waiters { first: NONE, last: NONE };

    /// The one to be woken next.
    pub fn first(&self) -> Option<u16> {
        (self.first != NONE).then_some(self.first)
    }

    /// The best effective priority in a list that is ordered by it.
    pub fn best(&self, tasks: &[Task]) -> u8 {
        if self.first == NONE { NOTHING } else { tasks[self.first as usize].effective }
    }

    #[cfg(test)]
    pub fn iter<'a>(&self, tasks: &'a [Task]) -> impl Iterator<Item = u16> + 'a {
        let after = |thread: u16| Some(tasks[thread as usize].next).filter(|&next| next != NONE);
        core::iter::successors(self.first(), move |&thread| after(thread))
    }

    /// Puts a thread at the end, or (`by_priority`) behind all threads whose priority is as good or better.
    pub fn insert(&mut self, tasks: &mut [Task], thread: u16, by_priority: bool) {
        let priority = tasks[thread as usize].effective;
        let mut after = self.last;
        while by_priority && after != NONE && tasks[after as usize].effective > priority {
            after = tasks[after as usize].previous;
        }
        let next = if after == NONE { self.first } else { tasks[after as usize].next };
        tasks[thread as usize].previous = after;
        tasks[thread as usize].next = next;
        self.link(tasks, after, thread, thread, next);
    }

    pub fn remove(&mut self, tasks: &mut [Task], thread: u16) {
        let Task { previous, next, .. } = tasks[thread as usize];
        self.link(tasks, previous, next, previous, next);
        tasks[thread as usize].previous = NONE;
        tasks[thread as usize].next = NONE;
    }

    /// Lets `forward` follow `before`, and `back` precede `behind`.
    fn link(&mut self, tasks: &mut [Task], before: u16, forward: u16, back: u16, behind: u16) {
        match before {
            NONE => self.first = forward,
            _ => tasks[before as usize].next = forward,
        }
        match behind {
            NONE => self.last = back,
            _ => tasks[behind as usize].previous = back,
        }
    }
}
