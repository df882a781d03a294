//! What ds has yet to be told: at most one change for each service, the newest.

use abi::{Endpoint, Name};
use alloc::collections::VecDeque;

/// A service has come up or gone down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// The service.
    pub name: Name,
    /// When up, its endpoint; when down, `Endpoint::current` of its slot if a successor is expected, else `NONE`.
    pub endpoint: Endpoint,
    /// It is up.
    pub up: bool,
}

/// Changes in the order in which ds gets them.
#[derive(Debug, Default)]
pub struct Changes {
    queue: VecDeque<Change>,
    /// ds has been notified and not yet been told that there is nothing left: it need not be notified again.
    fetching: bool,
}

impl Changes {
    /// Adds a change, in place of an older one of the same service.
    #[expect(clippy::disallowed_methods, reason = "bounded by the number of services: from the heap's reserve")]
    pub fn add(&mut self, change: Change) {
        self.queue.retain(|other| other.name != change.name);
        self.queue.push_back(change);
    }

    /// ds begins again: it gets all of these.
    #[expect(clippy::disallowed_methods, reason = "bounded by the number of services: from the heap's reserve")]
    pub fn restart(&mut self, all: impl Iterator<Item = Change>) {
        self.queue = all.collect();
    }

    /// The next change for ds.
    pub fn next(&mut self) -> Option<Change> {
        let next = self.queue.pop_front();
        self.fetching = next.is_some();
        next
    }

    /// True when ds has to be notified; it is taken as done.
    pub fn begin_fetching(&mut self) -> bool {
        let begin = !self.queue.is_empty() && !self.fetching;
        self.fetching |= begin;
        begin
    }

    /// ds has died: it does not call any more.
    pub fn stop_fetching(&mut self) {
        self.fetching = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(name: &str, generation: u32) -> Change {
        Change { name: Name::new(name).expect("is a name"), endpoint: Endpoint::new(20, generation), up: true }
    }

    #[test]
    fn the_newest_change_of_a_service_is_told_once() {
        let mut changes = Changes::default();
        for made in [change("uart", 1), change("rtc", 1), change("uart", 2)] {
            changes.add(made);
        }
        assert_eq!(changes.next(), Some(change("rtc", 1)));
        assert_eq!(changes.next(), Some(change("uart", 2)));
        assert_eq!(changes.next(), None);
    }

    #[test]
    fn ds_is_notified_once_until_it_has_fetched_everything() {
        let mut changes = Changes::default();
        assert!(!changes.begin_fetching());
        changes.add(change("uart", 1));
        assert!(changes.begin_fetching());
        changes.add(change("rtc", 1));
        assert!(!changes.begin_fetching());
        while changes.next().is_some() {}
        assert!(!changes.begin_fetching());
        changes.add(change("uart", 2));
        assert!(changes.begin_fetching());
    }

    #[test]
    fn ds_that_begins_again_gets_everything_and_nothing_old() {
        let mut changes = Changes::default();
        changes.add(change("gone", 1));
        changes.restart([change("uart", 3), change("rtc", 2)].into_iter());
        let told: Vec<_> = core::iter::from_fn(|| changes.next()).collect();
        assert_eq!(told, [change("uart", 3), change("rtc", 2)]);
    }

    #[test]
    fn a_successor_of_ds_is_notified_again() {
        let mut changes = Changes::default();
        changes.add(change("uart", 1));
        assert!(changes.begin_fetching());
        changes.stop_fetching();
        assert!(changes.begin_fetching());
    }

    #[test]
    fn ds_that_fetches_by_itself_is_not_notified() {
        let mut changes = Changes::default();
        changes.add(change("uart", 1));
        changes.add(change("rtc", 1));
        assert_eq!(changes.next(), Some(change("uart", 1)));
        assert!(!changes.begin_fetching());
    }
}
