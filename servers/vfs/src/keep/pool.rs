//! Which places of a table are free, and what each user has of the others.
//!
//! The state of the last commit may refer to a place that is freed, so it is reused only in another turn. Invariant: the list of free
//! places has capacity for all places that have been used, so that a release allocates nothing.

use alloc::vec::Vec;
use core::cell::RefCell;
use server::quota::{Quota, Refusal};
use sys::fallible::{self, TryVec};

/// Sizes of tables: tests have smaller ones, because they make and search them thousands of times.
pub(super) const fn scaled(real: usize, in_tests: usize) -> usize {
    if cfg!(test) { in_tests } else { real }
}

/// The superuser, who owns what belongs to nobody.
pub const ROOT: u32 = 0;
/// Owner of a free place.
const NOBODY: u32 = u32::MAX;
/// A user's share of a table, and what users leave to the superuser, as divisors.
pub(super) const SHARE: usize = 2;
pub(super) const RESERVE: usize = 16;

/// See the head of the file. Turns are told apart by any number.
#[derive(Debug)]
pub struct Pool {
    count: usize,
    state: RefCell<State>,
}

#[derive(Debug)]
struct State {
    /// Owners of the places that have been used.
    owners: Vec<u32>,
    /// The last `recent` of these were freed in turn `turn`.
    free: Vec<u32>,
    recent: usize,
    turn: u64,
    /// What the first of these refer to has been given up (`take_idle`).
    idle: usize,
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
        let state = State { owners: Vec::new(), free: Vec::new(), recent: 0, turn: 0, idle: 0, quota };
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

    /// After a restart: all places but the claimed ones are free.
    #[expect(clippy::disallowed_methods, reason = "within the capacity, by the invariant")]
    pub fn settle(&self) {
        let State { owners, free, recent, idle, .. } = &mut *self.state.borrow_mut();
        let unclaimed = (0..owners.len() as u32).rev().filter(|&place| owners[place as usize] == NOBODY);
        free.clear();
        free.extend(unclaimed);
        (*recent, *idle) = (0, 0);
    }

    /// Returns free places, ascending, but those freed last: `kept` of them, and what was freed in this turn. Each is returned once
    /// until it has been used again. Empty if memory is exhausted.
    pub fn take_idle(&self, kept: usize, turn: u64) -> Vec<u32> {
        let mut state = self.state.borrow_mut();
        let end = state.free.len().saturating_sub(kept.max(state.recent_in(turn)));
        let Some(places) = state.free.get(state.idle..end) else { return Vec::new() };
        let Ok(mut places) = fallible::collect(places.iter().copied()) else { return Vec::new() };
        places.sort_unstable();
        state.idle = end;
        places
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
        self.idle = self.idle.min(index);
        Some(self.free.swap_remove(index) as usize)
    }

    /// Takes a place beyond those that have been used.
    fn take_fresh(&mut self, count: usize) -> Option<usize> {
        let place = self.owners.len();
        if place >= count {
            return None;
        }
        self.free.try_make_room(place + 1 - self.free.len()).ok()?;
        self.owners.try_push(NOBODY).ok()?;
        Some(place)
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

    #[test]
    fn a_place_is_idle_once_until_it_is_used_again() {
        let pool = Pool::new(8);
        (0..6).for_each(|place| assert_eq!(pool.take(ROOT, 1), Some(place)));
        [4, 3, 5, 0, 1].into_iter().for_each(|place| pool.release(place, 2));
        assert_eq!(pool.take_idle(2, 2), [], "freed in this turn");
        assert_eq!((pool.take_idle(2, 3), pool.take_idle(2, 3)), (vec![3, 4, 5], vec![]));
        pool.release(2, 3);
        assert_eq!(pool.take_idle(2, 4), [0]);
        assert_eq!([(); 4].map(|()| pool.take(ROOT, 4)), [Some(2), Some(1), Some(0), Some(5)]);
        [5, 0, 1, 2].into_iter().for_each(|place| pool.release(place, 5));
        assert_eq!(pool.take_idle(2, 6), [0, 5], "4 and 3 have not been used");
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
