//! Which places of a table are free.
//!
//! The state of the last commit may refer to a place that is freed, so it is reused only in another turn.

use alloc::vec::Vec;
use core::cell::{Cell, RefCell};

/// Tests have smaller tables: they make and search them thousands of times.
pub(super) const SCALE: usize = if cfg!(test) { 8 } else { 1 };

/// See the head of the file. Turns are told apart by any number.
#[derive(Debug)]
pub struct Pool {
    count: u32,
    /// Places from here on are unused.
    fresh: Cell<u32>,
    /// The last `recent` of these were freed in turn `turn`.
    free: RefCell<Vec<u32>>,
    recent: Cell<usize>,
    turn: Cell<u64>,
}

impl Pool {
    /// Makes a pool of `count` places, all free.
    pub fn new(count: usize) -> Pool {
        let (fresh, recent, turn) = (Cell::new(0), Cell::new(0), Cell::new(0));
        Pool { count: count as u32, fresh, free: RefCell::default(), recent, turn }
    }

    /// Takes a place in this turn.
    #[inline]
    pub fn take(&self, turn: u64) -> Option<usize> {
        let mut free = self.free.borrow_mut();
        if let Some(index) = free.len().checked_sub(1 + self.recent_in(turn)) {
            return Some(free.swap_remove(index) as usize);
        }
        let place = self.fresh.get();
        (place < self.count).then(|| {
            self.fresh.set(place + 1);
            place as usize
        })
    }

    /// Frees a place in this turn.
    #[inline]
    pub fn release(&self, place: usize, turn: u64) {
        self.recent.set(self.recent_in(turn) + 1);
        self.turn.set(turn);
        self.free.borrow_mut().push(place as u32);
    }

    #[inline]
    fn recent_in(&self, turn: u64) -> usize {
        if self.turn.get() == turn { self.recent.get() } else { 0 }
    }

    /// Returns how many places can be taken in this turn.
    pub fn room(&self, turn: u64) -> usize {
        (self.count - self.fresh.get()) as usize + self.free.borrow().len() - self.recent_in(turn)
    }

    /// After a restart: only the places for which `is_used` holds are used.
    pub fn rebuild(&self, is_used: impl Fn(usize) -> bool) {
        let end = (0..self.count as usize).rev().find(|&place| is_used(place)).map_or(0, |last| last + 1);
        self.fresh.set(end as u32);
        *self.free.borrow_mut() = (0..end as u32).rev().filter(|&place| !is_used(place as usize)).collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_used_again_only_in_another_turn() {
        let pool = Pool::new(3);
        assert_eq!([(); 4].map(|()| pool.take(1)), [Some(0), Some(1), Some(2), None]);
        pool.release(1, 1);
        pool.release(0, 2);
        assert_eq!((pool.room(2), pool.take(2), pool.take(2)), (1, Some(1), None));
        assert_eq!((pool.room(3), pool.take(3), pool.take(3)), (1, Some(0), None));
    }

    #[test]
    fn a_restart_frees_what_nobody_refers_to() {
        let pool = Pool::new(8);
        pool.rebuild(|place| matches!(place, 1 | 4));
        assert_eq!(pool.room(1), 6);
        let mut taken: Vec<usize> = core::iter::from_fn(|| pool.take(1)).collect();
        taken.sort();
        assert_eq!(taken, [0, 2, 3, 5, 6, 7]);
    }
}
