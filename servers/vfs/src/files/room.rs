//! How much room a file system has for certain, so that vfs may keep the last pages of a file that grows for a while.
//!
//! vfs is the only client of its file systems. So a file system has free what it has said, less what the requests since then may have taken:
//! those that were not answered when it was asked, and those made later. Each request that may take room is made within a
//! [`Change`](super::known::Change), which counts the most that it may take.
//!
//! Invariant: while pages are kept, all that is counted leaves room for them. Whoever makes a request that may take what is left has the pages written
//! before ([`Files::settle`](super::Files::settle)).

use abi::layout::PAGE_BYTES;
use core::cell::Cell;

/// The most that a request takes besides content: blocks of directories, of maps, and of attributes.
const REQUEST_BYTES: u64 = 32 << 10;
/// What counts for one request at most: no file system here has more.
const LARGE_BYTES: u64 = 1 << 40;
/// A file system is asked again when requests for so much have been made, at the earliest.
const PATIENCE_BYTES: u64 = 1 << 20;

/// See the head of the file. All in bytes.
#[derive(Debug, Default)]
pub struct Room {
    /// At least so much is free, whatever was asked for.
    left: Cell<u64>,
    /// What requests that are not answered, and pages that are not written yet, may take.
    outstanding: Cell<u64>,
    /// The part of that for pages.
    kept: Cell<u64>,
    /// What was counted since the file system was asked.
    since_asked: Cell<u64>,
    was_asked: Cell<bool>,
}

/// What so many pages are counted for, from page number `first` of a file on. The first page of a file needs no maps.
pub fn pages_bytes(first: u32, pages: u32) -> u64 {
    let maps = if first == 0 && pages <= 1 { 0 } else { REQUEST_BYTES };
    u64::from(pages) * PAGE_BYTES + maps
}

/// The moment in which a file system is asked.
#[must_use]
pub struct Question {
    outstanding: u64,
}

impl Room {
    /// Counts what a request may take, until [`Room::end`]. Returns how much that is.
    pub fn begin(&self, content_bytes: u64) -> u64 {
        let bytes = content_bytes.min(LARGE_BYTES) + REQUEST_BYTES;
        self.count(bytes);
        bytes
    }

    fn count(&self, bytes: u64) {
        self.left.set(self.left.get().saturating_sub(bytes));
        self.since_asked.set(self.since_asked.get().saturating_add(bytes));
        self.outstanding.set(self.outstanding.get() + bytes);
    }

    /// The request is answered.
    pub fn end(&self, bytes: u64) {
        self.outstanding.set(self.outstanding.get() - bytes);
    }

    /// Whether there is room for so much content, whatever else was asked for.
    #[inline]
    pub fn has(&self, content_bytes: u64) -> bool {
        self.left.get() >= content_bytes.saturating_add(REQUEST_BYTES)
    }

    /// Whether a request with so much content leaves room for the pages that are kept.
    #[inline]
    pub fn spares_pages(&self, content_bytes: u64) -> bool {
        self.kept.get() == 0 || self.has(content_bytes)
    }

    /// Has no more pages kept until the file system is asked again, so that those there are can be written.
    pub fn stop_keeping(&self) {
        self.left.set(0);
    }

    /// Counts pages of so many bytes, which are kept until [`Room::end_pages`].
    pub fn keep_pages(&self, bytes: u64) {
        self.kept.set(self.kept.get() + bytes);
        self.count(bytes);
    }

    /// The pages are written, or nobody needs them any more.
    pub fn end_pages(&self, bytes: u64) {
        self.kept.set(self.kept.get() - bytes);
        self.end(bytes);
    }

    /// The file system is about to be asked; `None`: it was not long ago, or there is more left than was counted since.
    #[inline]
    pub fn ask(&self) -> Option<Question> {
        let enough = self.left.get().max(PATIENCE_BYTES);
        if self.was_asked.get() && self.since_asked.get() < enough {
            return None;
        }
        self.was_asked.set(true);
        self.since_asked.set(0);
        Some(Question { outstanding: self.outstanding.get() })
    }

    /// The file system has said how much is free.
    pub fn learn(&self, question: Question, free_bytes: u64) {
        let taken = question.outstanding.saturating_add(self.since_asked.get());
        self.left.set(free_bytes.saturating_sub(taken));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FREE: u64 = 10 << 20;

    fn known() -> Room {
        let room = Room::default();
        let question = room.ask().expect("it was never asked");
        room.learn(question, FREE);
        room
    }

    #[test]
    fn nothing_is_certain_before_the_file_system_has_said_it() {
        assert!(!Room::default().has(0));
        assert!(known().has(FREE - REQUEST_BYTES) && !known().has(FREE - REQUEST_BYTES + 1));
    }

    #[test]
    fn what_requests_may_take_is_not_there() {
        let room = known();
        let bytes = room.begin(1 << 20);
        assert!(!room.has(FREE - (1 << 20) - REQUEST_BYTES));
        room.end(bytes);
        assert!(!room.has(FREE - (1 << 20) - REQUEST_BYTES), "it may have been taken");
        room.begin(u64::MAX);
        assert!(!room.has(0));
    }

    #[test]
    fn what_is_outstanding_when_the_file_system_is_asked_may_be_taken_after_it_has_answered() {
        let room = known();
        let (before, answered) = (room.begin(5 << 20), room.begin(2 << 20));
        room.end(answered);
        let question = room.ask().expect("much was counted");
        let meanwhile = room.begin(1 << 20);
        room.end(before);
        room.learn(question, FREE);
        let taken = before + meanwhile;
        assert!(room.has(FREE - taken - REQUEST_BYTES) && !room.has(FREE - taken));
    }

    #[test]
    fn requests_leave_room_for_pages_that_are_kept() {
        let room = known();
        assert!(room.spares_pages(FREE) && Room::default().spares_pages(FREE), "there are none");
        room.keep_pages(4096);
        assert!(room.spares_pages(FREE / 2) && !room.spares_pages(FREE - 4096));
        room.end_pages(4096);
        assert!(room.spares_pages(FREE));
    }

    #[test]
    fn pages_take_maps_besides_unless_there_is_only_the_first_of_a_file() {
        let counted = [(0, 1), (0, 2), (1, 1), (7, 8)].map(|(first, pages)| pages_bytes(first, pages));
        let maps = REQUEST_BYTES;
        assert_eq!(counted, [PAGE_BYTES, 2 * PAGE_BYTES + maps, PAGE_BYTES + maps, 8 * PAGE_BYTES + maps]);
    }

    #[test]
    fn a_file_system_is_asked_again_when_little_is_left_but_not_each_time() {
        let count = |room: &Room, bytes: u64| (0..bytes / REQUEST_BYTES).for_each(|_| room.end(room.begin(0)));
        let room = known();
        count(&room, FREE / 2 - REQUEST_BYTES);
        assert!(room.ask().is_none(), "more is left");
        count(&room, REQUEST_BYTES);
        let question = room.ask().expect("half of it may be taken");
        room.learn(question, 0);
        assert!(!room.has(0) && room.ask().is_none());
        count(&room, PATIENCE_BYTES);
        assert!(room.ask().is_some(), "it may have changed");
    }
}
