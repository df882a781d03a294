//! Lists of waiting threads, linked through the threads themselves.
//!
//! A bitmap says which levels (priorities) have waiters. Those of a level are in the order of their arrival and behind those of better levels,
//! so that the first one is woken next, and a new one is put behind the last of its level or, if it is empty, of the next better one that
//! has some: no step depends on the number of waiters. In a list without priorities all are of level 0.

use crate::{inheritance::NONE, inheritance::NOTHING, inheritance::Task};
use zerocopy::FromZeros;

/// Levels; threads with worse priorities share the last one. Tests have smaller tables: they copy them thousands of times.
const LEVELS: usize = if cfg!(test) { 16 } else { 64 };

/// One list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, FromZeros)]
pub(super) struct Waiters {
    /// Levels with waiters.
    levels: u64,
    first: u16,
    /// The last one of each level; 0 for levels without any.
    last: [u16; LEVELS],
}

impl Waiters {
    pub const NONE: Waiters = Waiters { levels: 0, first: NONE, last: [0; LEVELS] };

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
        let level = if by_priority { LEVELS.min(tasks[thread as usize].effective as usize + 1) - 1 } else { 0 };
        let better = (self.levels & u64::MAX >> (63 - level)).checked_ilog2();
        let before = better.map_or(NONE, |better| self.last[better as usize]);
        let next = match before {
            NONE => core::mem::replace(&mut self.first, thread),
            _ => core::mem::replace(&mut tasks[before as usize].next, thread),
        };
        if next != NONE {
            tasks[next as usize].previous = thread;
        }
        let task = &mut tasks[thread as usize];
        (task.previous, task.next, task.level) = (before, next, level as u8);
        self.levels |= 1 << level;
        self.last[level] = thread;
    }

    pub fn remove(&mut self, tasks: &mut [Task], thread: u16) {
        let Task { previous, next, level, .. } = tasks[thread as usize];
        if self.last[level as usize] == thread {
            let is_alone = previous == NONE || tasks[previous as usize].level != level;
            self.levels &= !(u64::from(is_alone) << level);
            self.last[level as usize] = if is_alone { 0 } else { previous };
        }
        match previous {
            NONE => self.first = next,
            _ => tasks[previous as usize].next = next,
        }
        if next != NONE {
            tasks[next as usize].previous = previous;
        }
        let task = &mut tasks[thread as usize];
        (task.previous, task.next, task.level) = (NONE, NONE, 0);
    }
}
