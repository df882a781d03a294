//! The timers of all programs in one ordered list, so that pm needs one kernel alarm: for the earliest.
//!
//! The list is sorted by deadline, latest first: the next to fire is the last element, and taking it moves nothing.
//! A timer is identified by deadline and key together: to cancel one, its owner remembers the deadline.

use super::index::{ProcessIndex, ThreadIndex};
use alloc::vec::Vec;

/// What a timer is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    /// End of a thread's sleep or timed wait.
    Wake(ThreadIndex),
    /// ITIMER_REAL of a process.
    Real(ProcessIndex),
    /// A POSIX timer of a process.
    Posix(ProcessIndex, u16),
    /// Time to look at the processor time of a process with ITIMER_VIRTUAL, ITIMER_PROF or RLIMIT_CPU.
    Processor(ProcessIndex),
}

/// Ordered timers, and the kernel's alarm for the earliest. Times are monotonic nanoseconds.
#[derive(Default)]
pub struct Timers {
    entries: Vec<(u64, Key)>,
    /// The alarm may have to change.
    changed: bool,
    /// The alarm that is set: its deadline, and the queue that is to run then.
    armed: (Option<u64>, u64),
}

impl Timers {
    /// Adds a timer.
    pub fn set(&mut self, deadline_ns: u64, key: Key) {
        let at = self.entries.partition_point(|entry| *entry > (deadline_ns, key));
        self.entries.insert(at, (deadline_ns, key));
        self.changed = true;
    }

    /// Removes the timer; nothing happens when it has fired already.
    pub fn cancel(&mut self, deadline_ns: u64, key: Key) {
        let at = self.entries.partition_point(|entry| *entry > (deadline_ns, key));
        if self.entries.get(at) == Some(&(deadline_ns, key)) {
            self.entries.remove(at);
            self.changed = true;
        }
    }

    /// The earliest deadline; `None` without timers.
    fn next_deadline(&self) -> Option<u64> {
        self.entries.last().map(|entry| entry.0)
    }

    /// Whether timers have changed since this was asked last.
    #[inline]
    pub fn have_changed(&mut self) -> bool {
        core::mem::take(&mut self.changed)
    }

    /// The deadline (or none) that the kernel's alarm has to be set to, for `queue`; `None` when it is set so already.
    pub fn alarm_to_set(&mut self, queue: u64) -> Option<Option<u64>> {
        let next = (self.next_deadline(), queue);
        let is_new = next != self.armed;
        self.armed = next;
        is_new.then_some(next.0)
    }

    /// The alarm has fired, or was lost with pm's predecessor.
    pub fn alarm_fired(&mut self) {
        self.armed.0 = None;
        self.changed = true;
    }

    /// Removes all timers.
    pub fn clear(&mut self) {
        self.entries.clear();
    }

    /// What the timers are for.
    pub fn keys(&self) -> impl Iterator<Item = Key> {
        self.entries.iter().map(|entry| entry.1)
    }

    /// Removes and returns the earliest timer if it has expired.
    pub fn pop_expired(&mut self, now_ns: u64) -> Option<Key> {
        let (deadline, key) = *self.entries.last()?;
        if deadline > now_ns {
            return None;
        }
        self.entries.pop();
        self.changed = true;
        Some(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wake(n: usize) -> Key {
        Key::Wake(ThreadIndex::at(n))
    }

    #[test]
    fn timers_fire_in_order_of_their_deadlines() {
        let mut timers = Timers::default();
        for (deadline, n) in [(30, 1), (10, 2), (20, 3), (10, 4)] {
            timers.set(deadline, wake(n));
        }
        assert_eq!(timers.next_deadline(), Some(10));
        assert_eq!(timers.pop_expired(9), None);
        let fired: Vec<_> = core::iter::from_fn(|| timers.pop_expired(25)).collect();
        assert_eq!(fired, [wake(2), wake(4), wake(3)]);
        assert_eq!(timers.next_deadline(), Some(30));
    }

    #[test]
    fn a_cancelled_timer_does_not_fire_and_others_stay() {
        let mut timers = Timers::default();
        timers.set(10, wake(1));
        timers.set(10, wake(2));
        timers.cancel(10, wake(1));
        timers.cancel(11, wake(2));
        assert_eq!(timers.pop_expired(100), Some(wake(2)));
        assert_eq!(timers.pop_expired(100), None);
    }
}
