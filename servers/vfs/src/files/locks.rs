//! Advisory locks of one file: POSIX record locks (fcntl(2)) and whole-file locks (flock(2)).
//!
//! Both are lists of ranges with owners; they do not see each other, as on Linux. Invariant: the ranges of one owner do not overlap.

use crate::{
    events::Watchers,
    keep::{
        Store,
        records::{LockRecord, NodeRecord},
    },
};
use abi::Errno;
use alloc::vec::Vec;
use core::cell::RefCell;
use sys::fallible::TryVec;

/// Shared or exclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Others may hold shared locks on the same bytes.
    Shared,
    /// Nobody else may hold a lock on them.
    Exclusive,
}

/// Bytes `start ..= last` of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// First byte.
    pub start: u64,
    /// Last byte; `u64::MAX`: to the end, however the file grows.
    pub last: u64,
}

impl Range {
    /// The whole file.
    pub const ALL: Range = Range { start: 0, last: u64::MAX };

    /// From `struct flock`'s `l_start` (relative to `base`) and `l_len`. `EINVAL`: before the start of the file; `EOVERFLOW`.
    pub fn from_flock(base: u64, start: i64, length: i64) -> Result<Range, Errno> {
        let start = i64::try_from(base).ok().and_then(|base| base.checked_add(start)).ok_or(Errno::EOVERFLOW)?;
        let (first, last) = match length {
            0 => (start, i64::MAX),
            1.. => (start, start.checked_add(length - 1).ok_or(Errno::EOVERFLOW)?),
            _ => (start.checked_add(length).ok_or(Errno::EINVAL)?, start.checked_sub(1).ok_or(Errno::EINVAL)?),
        };
        if first < 0 || last < first {
            return Err(Errno::EINVAL);
        }
        Ok(Range { start: first as u64, last: if last == i64::MAX { u64::MAX } else { last as u64 } })
    }

    fn overlaps(self, other: Range) -> bool {
        self.start <= other.last && other.start <= self.last
    }
}

/// One lock. Owners of record locks are descriptor tables or, of those of `F_OFD_SETLK`, open files; owners of whole-file locks are open
/// files. No table has the number of an open file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lock {
    /// Its owner.
    pub owner: u64,
    /// The process that set it, for `F_GETLK`.
    pub pid: u32,
    /// The user to whom it is charged.
    pub user: u32,
    /// Shared or exclusive.
    pub kind: Kind,
    /// The bytes.
    pub range: Range,
}

/// The locks of one file and one sort.
#[derive(Debug, Default)]
pub struct Locks(Vec<Lock>);

impl Locks {
    /// Returns the first lock in the file that conflicts with this one.
    pub fn conflict(&self, wanted: &Lock) -> Option<&Lock> {
        let conflicts = self.0.iter().filter(|held| {
            let compatible = held.kind == Kind::Shared && wanted.kind == Kind::Shared;
            held.owner != wanted.owner && !compatible && held.range.overlaps(wanted.range)
        });
        conflicts.min_by_key(|held| held.range.start)
    }

    /// The kind of the owner's lock, if it has one.
    pub fn kind_of(&self, owner: u64) -> Option<Kind> {
        self.0.iter().find(|held| held.owner == owner).map(|held| held.kind)
    }

    /// Sets a lock without conflict; it replaces what its owner held on these bytes, and becomes one with its neighbours of the same kind.
    #[expect(clippy::disallowed_methods, reason = "room was checked, and made, before")]
    pub fn set(&mut self, mut lock: Lock) {
        self.release(lock.owner, lock.range);
        let touches = |held: &Lock, range: Range| {
            held.range.last.checked_add(1) == Some(range.start) || range.last.checked_add(1) == Some(held.range.start)
        };
        while let Some(index) = self
            .0
            .iter()
            .position(|held| held.owner == lock.owner && held.kind == lock.kind && touches(held, lock.range))
        {
            let held = self.0.swap_remove(index).range;
            lock.range = Range { start: lock.range.start.min(held.start), last: lock.range.last.max(held.last) };
        }
        self.0.push(lock);
    }

    /// Releases the owner's locks on these bytes. True when there were any.
    #[expect(clippy::disallowed_methods, reason = "at most one lock more than before: from the heap's reserve")]
    pub fn release(&mut self, owner: u64, range: Range) -> bool {
        let mut changed = false;
        let mut index = 0;
        while index < self.0.len() {
            let held = self.0[index];
            if held.owner != owner || !held.range.overlaps(range) {
                index += 1;
                continue;
            }
            changed = true;
            self.0.swap_remove(index);
            if held.range.start < range.start {
                self.0.push(Lock { range: Range { start: held.range.start, last: range.start - 1 }, ..held });
            }
            if held.range.last > range.last {
                self.0.push(Lock { range: Range { start: range.last + 1, last: held.range.last }, ..held });
            }
        }
        changed
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Lock> {
        self.0.iter()
    }

    /// No locks.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// All advisory locks of a file, and the handlers that wait for one. Invariant: after [`FileLocks::save`], they are preserved as they are.
#[derive(Debug, Default)]
pub struct FileLocks {
    /// Set by fcntl.
    pub records: RefCell<Locks>,
    /// Set by flock.
    pub whole: RefCell<Locks>,
    /// Fires when a lock is released.
    pub released: Watchers,
    /// Places of their records.
    saved: RefCell<Vec<u16>>,
}

impl FileLocks {
    /// Checks that a change of these locks by a user can be preserved: it rewrites all of them, and adds at most two. `ENOLCK`, `ENOMEM`.
    pub fn check_room(&self, store: &Store, user: u32) -> Result<(), Errno> {
        const FURTHER: usize = 2;
        [&self.records, &self.whole].into_iter().try_for_each(|sort| sort.borrow_mut().0.try_make_room(FURTHER))?;
        self.saved.borrow_mut().try_make_room(FURTHER)?;
        store.check_lock_room(user, self.saved.borrow().len() + FURTHER, FURTHER)
    }

    /// Preserves the locks of this file as they are now.
    #[expect(clippy::disallowed_methods, reason = "as many as there were, or few more: from the heap's reserve")]
    pub fn save(&self, store: &Store, node: NodeRecord) {
        let mut saved = self.saved.borrow_mut();
        saved.drain(..).for_each(|place| store.release_lock(place));
        for (sort, whole) in [(&self.records, false), (&self.whole, true)] {
            for lock in sort.borrow().iter() {
                let record = LockRecord {
                    node,
                    whole,
                    exclusive: lock.kind == Kind::Exclusive,
                    owner: lock.owner,
                    pid: lock.pid,
                    user: lock.user,
                    start: lock.range.start,
                    last: lock.range.last,
                };
                // Without room, which only a lock released in part can lack, a restart forgets this one.
                saved.extend(store.new_lock(&record));
            }
        }
    }

    /// Restores a lock of a predecessor.
    #[expect(clippy::disallowed_methods, reason = "a successor needs no more than its predecessor had")]
    pub fn restore(&self, place: u16, record: &LockRecord) {
        let kind = if record.exclusive { Kind::Exclusive } else { Kind::Shared };
        let range = Range { start: record.start, last: record.last };
        let sort = if record.whole { &self.whole } else { &self.records };
        sort.borrow_mut().set(Lock { owner: record.owner, pid: record.pid, user: record.user, kind, range });
        self.saved.borrow_mut().push(place);
    }

    /// Releases all locks of an open file.
    pub fn release_file(&self, store: &Store, node: NodeRecord, owner: u64) {
        self.release_whole(store, node, owner);
        self.release_records(store, node, owner, Range::ALL);
    }

    /// Releases the flock lock of an open file; preserves that and wakes the waiting handlers.
    pub fn release_whole(&self, store: &Store, node: NodeRecord, owner: u64) {
        if self.whole.borrow_mut().release(owner, Range::ALL) {
            self.save(store, node);
            self.released.fire();
        }
    }

    /// Releases the record locks of a descriptor table within a range; preserves that and wakes the waiting handlers.
    pub fn release_records(&self, store: &Store, node: NodeRecord, owner: u64, range: Range) {
        if !self.records.borrow().is_empty() && self.records.borrow_mut().release(owner, range) {
            self.save(store, node);
            self.released.fire();
        }
    }
}

/// The wait-for graph of record locks: waiting owner, owner of the lock it waits for.
#[derive(Debug, Default)]
pub struct Waits(RefCell<Vec<(u64, u64)>>);

impl Waits {
    /// `owner` begins to wait for `holder`. `EDEADLK`: the holder waits, directly or not, for the owner.
    pub fn begin(&self, owner: u64, holder: u64) -> Result<(), Errno> {
        let mut waits = self.0.borrow_mut();
        let mut at = holder;
        // A chain longer than the list would be a circle that does not hold the owner.
        for _ in 0..=waits.len() {
            if at == owner {
                return Err(Errno::EDEADLK);
            }
            match waits.iter().find(|(waiter, _)| *waiter == at) {
                Some((_, next)) => at = *next,
                None => break,
            }
        }
        waits.try_push((owner, holder))?;
        Ok(())
    }

    /// The owner does not wait any more.
    pub fn end(&self, owner: u64, holder: u64) {
        let mut waits = self.0.borrow_mut();
        if let Some(index) = waits.iter().position(|wait| *wait == (owner, holder)) {
            waits.swap_remove(index);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lock(owner: u64, kind: Kind, start: u64, last: u64) -> Lock {
        Lock { owner, pid: owner as u32, user: 0, kind, range: Range { start, last } }
    }

    #[test]
    fn exclusive_locks_keep_others_out_of_their_bytes() {
        let mut locks = Locks::default();
        locks.set(lock(1, Kind::Exclusive, 10, 19));
        assert!(locks.conflict(&lock(2, Kind::Shared, 19, 30)).is_some());
        assert!(locks.conflict(&lock(2, Kind::Shared, 20, 30)).is_none());
        assert!(locks.conflict(&lock(1, Kind::Exclusive, 0, 100)).is_none());
    }

    #[test]
    fn of_several_conflicts_the_first_in_the_file_is_found() {
        let mut locks = Locks::default();
        locks.set(lock(1, Kind::Exclusive, 10, 19));
        locks.set(lock(1, Kind::Shared, 1, 4));
        assert_eq!(locks.conflict(&lock(2, Kind::Exclusive, 0, 99)).map(|lock| lock.range.start), Some(1));
    }

    #[test]
    fn shared_locks_go_together() {
        let mut locks = Locks::default();
        locks.set(lock(1, Kind::Shared, 0, 9));
        assert!(locks.conflict(&lock(2, Kind::Shared, 0, 9)).is_none());
        assert!(locks.conflict(&lock(2, Kind::Exclusive, 9, 9)).is_some());
    }

    #[test]
    fn neighbours_of_one_owner_and_kind_become_one() {
        let mut locks = Locks::default();
        locks.set(lock(1, Kind::Exclusive, 0, 3));
        locks.set(lock(1, Kind::Exclusive, 6, u64::MAX));
        locks.set(lock(2, Kind::Shared, 4, 4));
        locks.set(lock(1, Kind::Exclusive, 5, 5));
        assert_eq!(locks.iter().count(), 3);
        locks.release(2, Range::ALL);
        locks.set(lock(1, Kind::Exclusive, 4, 4));
        assert_eq!(locks.iter().copied().collect::<Vec<_>>(), [lock(1, Kind::Exclusive, 0, u64::MAX)]);
    }

    #[test]
    fn a_hole_splits_a_lock() {
        let mut locks = Locks::default();
        locks.set(lock(1, Kind::Exclusive, 0, u64::MAX));
        assert!(locks.release(1, Range { start: 10, last: 19 }));
        assert!(locks.conflict(&lock(2, Kind::Exclusive, 10, 19)).is_none());
        assert!(locks.conflict(&lock(2, Kind::Exclusive, 9, 9)).is_some());
        assert!(locks.conflict(&lock(2, Kind::Exclusive, 20, 20)).is_some());
        assert!(locks.release(1, Range::ALL) && locks.is_empty());
        assert!(!locks.release(1, Range::ALL));
    }

    #[test]
    fn an_owner_changes_the_kind_of_its_bytes() {
        let mut locks = Locks::default();
        locks.set(lock(1, Kind::Exclusive, 0, 99));
        locks.set(lock(1, Kind::Shared, 40, 59));
        assert!(locks.conflict(&lock(2, Kind::Shared, 40, 59)).is_none());
        assert!(locks.conflict(&lock(2, Kind::Shared, 39, 59)).is_some());
    }

    #[test]
    fn ranges_come_from_start_and_length() {
        assert_eq!(Range::from_flock(0, 0, 0), Ok(Range::ALL));
        assert_eq!(Range::from_flock(100, 5, 10), Ok(Range { start: 105, last: 114 }));
        assert_eq!(Range::from_flock(100, 0, -10), Ok(Range { start: 90, last: 99 }));
        assert_eq!(Range::from_flock(0, -1, 0), Err(Errno::EINVAL));
        assert_eq!(Range::from_flock(0, 5, -10), Err(Errno::EINVAL));
        assert_eq!(Range::from_flock(0, i64::MAX, 2), Err(Errno::EOVERFLOW));
        assert_eq!(Range::from_flock(0, 0, i64::MIN), Err(Errno::EINVAL));
        assert_eq!(Range::from_flock(u64::MAX, 0, 1), Err(Errno::EOVERFLOW));
    }

    #[test]
    fn circles_of_waiting_owners_are_refused() {
        let waits = Waits::default();
        waits.begin(1, 2).unwrap();
        waits.begin(2, 3).unwrap();
        assert_eq!(waits.begin(3, 1), Err(Errno::EDEADLK));
        waits.end(2, 3);
        assert_eq!(waits.begin(3, 1), Ok(()));
    }
}
