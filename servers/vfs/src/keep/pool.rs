//! Which places of a table are free, and what each user has of the others.
//!
//! The state of the last commit may refer to a place that is freed, so it is reused only in another turn. Invariant: the list of free
//! places has capacity for all places that have owners, so that a release allocates nothing.

use alloc::vec::Vec;
use core::{cell::RefCell, ops::Range};
use server::quota::{Quota, Refusal};
use sys::fallible::{self, TryVec};

/// Sizes of tables: tests have smaller ones, because they make and search them thousands of times.
pub const fn scaled(real: usize, in_tests: usize) -> usize {
    if cfg!(test) { in_tests } else { real }
}

/// The superuser, who owns what belongs to nobody.
pub const ROOT: u32 = 0;
/// Owner of a free place.
const NOBODY: u32 = u32::MAX;
/// A user's share of a table, and what users leave to the superuser, as divisors.
pub(super) const SHARE: usize = 2;
pub(super) const RESERVE: usize = 16;

/// Places among which one is looked for that lies behind another.
const NEXT_PLACES: usize = 16;

/// Heap of unused capacity, in places, that [`Pool::compact`] leaves.
const SPARE_PLACES: usize = 1024;

/// See the head of the file. Turns are told apart by any number.
#[derive(Debug)]
pub struct Pool {
    count: usize,
    state: RefCell<State>,
}

#[derive(Debug)]
struct State {
    /// Owners of the places below the highest one in use.
    owners: Vec<u32>,
    /// The free ones of these. The last `recent` were freed in turn `turn`.
    free: Vec<u32>,
    recent: usize,
    turn: u64,
    /// The first of the free places, as many as this, have not been used since [`Pool::compact`] discarded them.
    discarded: usize,
    /// Places from here on have never been used, or not since they were discarded.
    end: usize,
    /// Shares of the users, if they share the table.
    quota: Option<Quota>,
}

impl Pool {
    /// Makes a pool of `count` places, all free, that users do not share.
    pub fn new(count: usize) -> Pool {
        Pool::with_quota(count, None)
    }

    /// Makes a pool of which at most `limit` of `count` places are taken: half of them by one user, some by the superuser alone.
    pub fn shared(count: usize, limit: usize) -> Pool {
        Pool::with_quota(count, Some(Quota::new(limit, limit / SHARE, limit / RESERVE)))
    }

    fn with_quota(count: usize, quota: Option<Quota>) -> Pool {
        let state = State { owners: Vec::new(), free: Vec::new(), recent: 0, turn: 0, discarded: 0, end: 0, quota };
        Pool { count, state: RefCell::new(state) }
    }

    /// Takes a place for a user in this turn. `None`: the table is full, the user has his share, or memory is exhausted.
    #[inline]
    pub fn take(&self, user: u32, turn: u64) -> Option<usize> {
        let mut state = self.state.borrow_mut();
        state.charge(user).ok()?;
        let place = match state.take_free(turn) {
            None => state.take_fresh(self.count),
            free => free,
        };
        match place {
            Some(place) => state.owners[place] = user,
            None => state.give(user),
        }
        place
    }

    /// Takes the place behind one that is taken, for the same user, in this turn. False: it is not free, or not seen at once to be; else as [`Pool::take`].
    pub fn take_next(&self, place: usize, turn: u64) -> bool {
        let mut state = self.state.borrow_mut();
        let (user, next) = (state.owners[place], place + 1);
        if state.charge(user).is_err() {
            return false;
        }
        let is_taken = match next == state.owners.len() {
            true => state.take_fresh(self.count).is_some(),
            false => state.take_free_one(next, turn),
        };
        match is_taken {
            true => state.owners[next] = user,
            false => state.give(user),
        }
        is_taken
    }

    /// Frees a place in this turn.
    #[inline]
    #[expect(clippy::disallowed_methods, reason = "within the capacity, by the invariant")]
    pub fn release(&self, place: usize, turn: u64) {
        let mut state = self.state.borrow_mut();
        let owner = core::mem::replace(&mut state.owners[place], NOBODY);
        state.give(owner);
        state.recent = state.recent_in(turn) + 1;
        state.turn = turn;
        state.free.push(place as u32);
    }

    /// Returns whether a place is taken.
    pub fn is_taken(&self, place: usize) -> bool {
        self.state.borrow().owners.get(place).is_some_and(|owner| *owner != NOBODY)
    }

    /// Returns how many places are taken.
    pub fn taken(&self) -> usize {
        let state = self.state.borrow();
        state.owners.len() - state.free.len()
    }

    /// Returns how many places can be taken in this turn, whoever takes them.
    pub fn room(&self, turn: u64) -> usize {
        let state = self.state.borrow();
        self.count - state.owners.len() + state.free.len() - state.recent_in(turn)
    }

    /// Returns whether a user's share allows `count` further places; always, if users do not share the table.
    pub fn has_share(&self, user: u32, count: usize) -> bool {
        let mut state = self.state.borrow_mut();
        let Some(quota) = &mut state.quota else { return true };
        let result = quota.take(user, count);
        if result.is_ok() {
            quota.give(user, count);
        }
        result.is_ok()
    }

    /// Sets what an account gets, if users share the table. `None`: as much as every user.
    pub fn set_limit(&self, account: u32, limit: Option<usize>) -> Result<(), Refusal> {
        self.state.borrow_mut().quota.as_mut().map_or(Ok(()), |quota| quota.set_limit(account, limit))
    }

    /// Returns how many places an account has, if users share the table.
    pub fn held_by(&self, account: u32) -> usize {
        self.state.borrow().quota.as_ref().map_or(0, |quota| quota.held_by(account))
    }

    /// After a restart: this place is in use by a user, if there is such a place.
    #[expect(clippy::disallowed_methods, reason = "a predecessor had the memory")]
    pub fn claim(&self, place: usize, user: u32) {
        if place >= self.count {
            return;
        }
        let mut state = self.state.borrow_mut();
        if place >= state.owners.len() {
            state.free.reserve(place + 1);
            state.owners.resize(place + 1, NOBODY);
        }
        if state.owners[place] == NOBODY {
            if let Some(quota) = &mut state.quota {
                quota.restore(user, 1).expect("a predecessor had the memory");
            }
            state.owners[place] = user;
        }
    }

    /// After a restart: all places but the claimed ones are free. A predecessor may have used any of them.
    pub fn settle(&self) {
        let state = &mut *self.state.borrow_mut();
        state.sort_free();
        (state.discarded, state.end) = (0, self.count);
    }

    /// If at least `least` free places have been used since the last time, hands all runs of free places to `discard`, which may clear
    /// them, and has the lowest places taken first from now on. Does nothing in a turn in which a place was freed.
    pub fn compact(&self, least: usize, turn: u64, mut discard: impl FnMut(Range<usize>)) {
        let state = &mut *self.state.borrow_mut();
        if state.recent_in(turn) > 0 || state.used_since_compaction() < least {
            return;
        }
        state.sort_free();
        state.shrink();
        let end = core::mem::replace(&mut state.end, state.owners.len());
        discard(state.end..end);
        for run in state.free.chunk_by(|place, below| *place == below + 1) {
            discard(run[run.len() - 1] as usize..run[0] as usize + 1);
        }
        state.discarded = state.free.len();
    }
}

impl State {
    #[inline]
    fn charge(&mut self, user: u32) -> Result<(), Refusal> {
        self.quota.as_mut().map_or(Ok(()), |quota| quota.take(user, 1))
    }

    #[inline]
    fn give(&mut self, user: u32) {
        if let Some(quota) = &mut self.quota {
            quota.give(user, 1);
        }
    }

    #[inline]
    fn take_free(&mut self, turn: u64) -> Option<usize> {
        let index = self.free.len().checked_sub(1 + self.recent_in(turn))?;
        self.discarded = self.discarded.min(index);
        Some(self.free.swap_remove(index) as usize)
    }

    /// Takes this place, if it is one of the free ones that are taken next.
    fn take_free_one(&mut self, place: usize, turn: u64) -> bool {
        let end = self.free.len() - self.recent_in(turn);
        let found = (0..end).rev().take(NEXT_PLACES).find(|&index| self.free[index] as usize == place);
        if let Some(index) = found {
            self.discarded -= usize::from(index < self.discarded);
            self.free.remove(index);
        }
        found.is_some()
    }

    /// Takes a place beyond those that have been used.
    fn take_fresh(&mut self, count: usize) -> Option<usize> {
        let place = self.owners.len();
        if place >= count {
            return None;
        }
        self.free.try_make_room(place + 1 - self.free.len()).ok()?;
        self.owners.try_push(NOBODY).ok()?;
        self.end = self.end.max(place + 1);
        Some(place)
    }

    /// Returns how many free places may have content that nobody needs.
    fn used_since_compaction(&self) -> usize {
        self.free.len() - self.discarded + self.end - self.owners.len()
    }

    /// Sorts the free places, lowest last, and forgets those above the highest one in use.
    #[expect(clippy::disallowed_methods, reason = "within the capacity, by the invariant")]
    fn sort_free(&mut self) {
        let State { owners, free, recent, .. } = self;
        let used = owners.iter().rposition(|owner| *owner != NOBODY).map_or(0, |highest| highest + 1);
        owners.truncate(used);
        free.clear();
        free.extend((0..used as u32).rev().filter(|&place| owners[place as usize] == NOBODY));
        *recent = 0;
    }

    /// Frees most of the heap that the lists have beyond their need. Without memory for shorter ones they stay as they are.
    #[expect(clippy::disallowed_methods, reason = "within the capacity")]
    fn shrink(&mut self) {
        let places = self.owners.len();
        for list in [&mut self.owners, &mut self.free] {
            if list.capacity() > 2 * places + SPARE_PLACES
                && let Ok(mut shorter) = fallible::with_capacity(places)
            {
                shorter.extend_from_slice(list);
                *list = shorter;
            }
        }
    }

    #[inline]
    fn recent_in(&self, turn: u64) -> usize {
        if self.turn == turn { self.recent } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const USER: u32 = 7;

    #[test]
    fn a_place_is_used_again_only_in_another_turn() {
        let pool = Pool::new(3);
        assert_eq!([(); 4].map(|()| pool.take(ROOT, 1)), [Some(0), Some(1), Some(2), None]);
        pool.release(1, 1);
        pool.release(0, 2);
        assert_eq!((pool.room(2), pool.take(ROOT, 2), pool.take(ROOT, 2)), (1, Some(1), None));
        assert_eq!((pool.room(3), pool.take(ROOT, 3), pool.take(ROOT, 3)), (1, Some(0), None));
    }

    #[test]
    fn the_place_behind_another_is_taken_for_the_same_user_if_it_is_seen_to_be_free() {
        let pool = Pool::shared(64, 64);
        assert_eq!([pool.take(USER, 1), pool.take(ROOT, 1)], [Some(0), Some(1)]);
        assert!(!pool.take_next(0, 1), "it is another's");
        assert!(pool.take_next(1, 1) && pool.is_taken(2), "it was never used");
        (3..32).for_each(|place| assert_eq!(pool.take(USER, 1), Some(place)));
        pool.release(1, 1);
        assert!(!pool.take_next(0, 1), "it was freed in this turn");
        assert!(pool.take_next(0, 2), "it is free");
        pool.release(1, 2);
        (4..4 + NEXT_PLACES).for_each(|place| pool.release(place, 3));
        assert!(!pool.take_next(0, 4), "others are taken before it");
        assert!((3..3 + NEXT_PLACES).all(|place| pool.take_next(place, 4)), "wherever among these it is");
        assert!(pool.take_next(0, 4) && pool.has_share(USER, 1) && pool.take(USER, 4) == Some(32));
        assert!(!pool.take_next(32, 4) && pool.is_taken(32) && !pool.is_taken(33), "the user has the share");
    }

    #[test]
    fn a_user_gets_half_and_the_superuser_the_rest() {
        let pool = Pool::shared(64, 32);
        let taken = |user| core::iter::from_fn(|| pool.take(user, 1)).count();
        assert_eq!((taken(USER), taken(USER + 1), taken(ROOT)), (16, 14, 2));
        pool.release(3, 1);
        assert!(pool.has_share(USER, 0) && !pool.has_share(USER, 1), "of the reserve nobody gets anything");
        assert_eq!((taken(USER), taken(ROOT)), (0, 1));
    }

    #[test]
    fn a_restart_frees_what_nobody_refers_to() {
        let pool = Pool::shared(8, 8);
        pool.claim(1, ROOT);
        pool.claim(4, USER);
        pool.claim(8, USER);
        pool.settle();
        assert_eq!((pool.room(1), pool.has_share(USER, 3), pool.has_share(USER, 4)), (6, true, false));
        let mut taken: Vec<usize> = core::iter::from_fn(|| pool.take(ROOT, 1)).collect();
        taken.sort();
        assert_eq!(taken, [0, 2, 3, 5, 6, 7]);
    }

    fn compact(pool: &Pool, turn: u64) -> Vec<Range<usize>> {
        let mut runs = vec![];
        pool.compact(2, turn, |run| runs.push(run));
        runs.retain(|run| !run.is_empty());
        runs
    }

    #[test]
    fn runs_of_free_places_are_discarded_once_until_they_are_used_again() {
        let pool = Pool::new(9);
        (0..8).for_each(|place| assert_eq!(pool.take(ROOT, 1), Some(place)));
        [4, 7, 3, 0, 6].into_iter().for_each(|place| pool.release(place, 2));
        assert_eq!(compact(&pool, 2), [], "freed in this turn");
        assert_eq!((compact(&pool, 3), compact(&pool, 3)), (vec![6..8, 3..5, 0..1], vec![]));
        pool.release(1, 3);
        assert_eq!(compact(&pool, 4), [], "one place is too little");
        assert_eq!([(); 4].map(|()| pool.take(ROOT, 4)), [Some(1), Some(0), Some(3), Some(4)]);
        assert_eq!([(); 4].map(|()| pool.take(ROOT, 4)), [Some(6), Some(7), Some(8), None]);
        [2, 1, 7].into_iter().for_each(|place| pool.release(place, 5));
        assert_eq!(compact(&pool, 6), [7..8, 1..3]);
    }

    #[test]
    fn what_a_predecessor_used_is_discarded() {
        let pool = Pool::new(9);
        pool.claim(1, USER);
        pool.claim(4, USER);
        pool.settle();
        assert_eq!((compact(&pool, 1), compact(&pool, 1)), (vec![5..9, 2..4, 0..1], vec![]));
    }

    #[test]
    fn lists_give_heap_back_and_a_release_still_allocates_nothing() {
        let pool = Pool::new(4 * SPARE_PLACES);
        let taken: Vec<usize> = core::iter::from_fn(|| pool.take(ROOT, 1)).collect();
        taken[3..].iter().for_each(|place| pool.release(*place, 1));
        assert_eq!(compact(&pool, 2).first(), Some(&(3..4 * SPARE_PLACES)));
        let (owners, free) = {
            let state = pool.state.borrow();
            (state.owners.capacity(), state.free.capacity())
        };
        assert_eq!((owners, free), (3, 3));
        fallible::fail_after(1);
        (0..3).for_each(|place| pool.release(place, 2));
        assert!(fallible::is_failure_pending());
        fallible::fail_after(0);
        assert_eq!(core::iter::from_fn(|| pool.take(ROOT, 3)).count(), 4 * SPARE_PLACES);
    }

    #[test]
    fn without_memory_there_is_no_place_and_nothing_is_charged() {
        let pool = Pool::shared(8, 8);
        for failing in 1.. {
            fallible::fail_after(failing);
            match pool.take(USER, 1) {
                Some(place) => {
                    assert_eq!(place, 0);
                    fallible::fail_after(0);
                    break;
                }
                None => assert!(pool.has_share(USER, 4)),
            }
        }
        fallible::fail_after(1);
        pool.release(0, 1);
        assert!(fallible::is_failure_pending(), "a release allocates nothing");
    }
}
