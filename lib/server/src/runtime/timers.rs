//! Sleeping tasks, ordered by deadline, on the process's one alarm.

use super::Runtime;
use alloc::collections::BTreeMap;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};

/// A deadline, and a number that distinguishes equal ones.
type Key = (u64, u64);

/// All sleepers.
#[derive(Default)]
pub struct Timers {
    sleepers: BTreeMap<Key, Waker>,
    next_number: u64,
    /// Time of the kernel's alarm; 0: not set.
    alarm_ns: u64,
    /// Whether the first deadline may have changed since the alarm was set.
    is_stale: bool,
}

impl Timers {
    fn add(&mut self, deadline_ns: u64, waker: Waker) -> Key {
        self.next_number += 1;
        let key = (deadline_ns, self.next_number);
        self.sleepers.insert(key, waker);
        self.is_stale = true;
        key
    }

    fn remove(&mut self, key: &Key) {
        self.sleepers.remove(key);
        self.is_stale = true;
    }

    /// Wakes all tasks whose deadline has passed.
    pub fn fire(&mut self, now_ns: u64) {
        self.alarm_ns = 0;
        self.is_stale = true;
        while let Some(entry) = self.sleepers.first_entry().filter(|entry| entry.key().0 <= now_ns) {
            entry.remove().wake();
        }
    }

    /// Returns whether the alarm may have to be set.
    #[inline]
    pub fn is_stale(&self) -> bool {
        self.is_stale
    }

    /// Returns the deadline to set the alarm to, if it is set to another. 0: no task sleeps.
    #[inline]
    pub fn alarm_to_set(&mut self) -> Option<u64> {
        if core::mem::take(&mut self.is_stale) { self.first_if_other() } else { None }
    }

    fn first_if_other(&mut self) -> Option<u64> {
        let wanted = self.sleepers.first_key_value().map_or(0, |(key, _)| key.0);
        let change = wanted != self.alarm_ns;
        self.alarm_ns = wanted;
        change.then_some(wanted)
    }
}

/// Future that waits until a deadline; see [`Runtime::sleep_until`].
pub struct Sleep {
    pub(super) runtime: Runtime,
    pub(super) deadline_ns: u64,
    pub(super) key: Option<Key>,
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if let Some(key) = self.key {
            let mut timers = self.runtime.inner.timers.borrow_mut();
            let Some(waker) = timers.sleepers.get_mut(&key) else { return Poll::Ready(()) };
            waker.clone_from(context.waker());
            return Poll::Pending;
        }
        self.runtime.inner.agenda.add_alarm();
        let key = self.runtime.inner.timers.borrow_mut().add(self.deadline_ns, context.waker().clone());
        self.key = Some(key);
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(key) = self.key {
            self.runtime.inner.agenda.add_alarm();
            self.runtime.inner.timers.borrow_mut().remove(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_alarm_is_set_only_when_the_first_deadline_changes() {
        let mut timers = Timers::default();
        assert_eq!(timers.alarm_to_set(), None);
        timers.add(50, Waker::noop().clone());
        timers.add(70, Waker::noop().clone());
        assert_eq!(timers.alarm_to_set(), Some(50));
        assert_eq!(timers.alarm_to_set(), None);
        timers.fire(60);
        assert_eq!(timers.alarm_to_set(), Some(70));
        timers.fire(70);
        assert_eq!(timers.alarm_to_set(), None);
        assert!(timers.sleepers.is_empty());
    }
}
