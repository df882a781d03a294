//! Which places of a table are free.
//!
//! A place that is given back may be what the state of the last commit refers to, so it is used again only after the next commit.

use alloc::vec::Vec;
use core::cell::{Cell, RefCell};

/// See the head of the file.
#[derive(Debug)]
pub struct Pool {
    count: u32,
    /// Places from here on have not been used by this incarnation, or any.
    fresh: Cell<u32>,
    free: RefCell<Vec<u32>>,
    /// Free after the next commit.
    released: RefCell<Vec<u32>>,
}

impl Pool {
    /// All of `count` places free.
    pub fn new(count: usize) -> Pool {
        Pool { count: count as u32, fresh: Cell::new(0), free: RefCell::default(), released: RefCell::default() }
    }

    /// Takes a place.
    #[inline]
    pub fn take(&self) -> Option<usize> {
        if let Some(place) = self.free.borrow_mut().pop() {
            return Some(place as usize);
        }
        let place = self.fresh.get();
        (place < self.count).then(|| {
            self.fresh.set(place + 1);
            place as usize
        })
    }

    /// Gives a place back.
    #[inline]
    pub fn release(&self, place: usize) {
        self.released.borrow_mut().push(place as u32);
    }

    /// What has been given back is free now.
    #[inline]
    pub fn commit(&self) {
        let mut released = self.released.borrow_mut();
        if !released.is_empty() {
            self.free.borrow_mut().append(&mut released);
        }
    }

    /// Free places.
    pub fn room(&self) -> usize {
        (self.count - self.fresh.get()) as usize + self.free.borrow().len()
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
    fn a_place_is_used_again_only_after_a_commit() {
        let pool = Pool::new(2);
        assert_eq!((pool.take(), pool.take(), pool.take()), (Some(0), Some(1), None));
        pool.release(0);
        assert_eq!(pool.take(), None);
        pool.commit();
        assert_eq!((pool.room(), pool.take(), pool.take()), (1, Some(0), None));
    }

    #[test]
    fn a_restart_frees_what_nobody_refers_to() {
        let pool = Pool::new(8);
        pool.rebuild(|place| matches!(place, 1 | 4));
        assert_eq!(pool.room(), 6);
        let mut taken: Vec<usize> = core::iter::from_fn(|| pool.take()).collect();
        taken.sort();
        assert_eq!(taken, [0, 2, 3, 5, 6, 7]);
    }
}
