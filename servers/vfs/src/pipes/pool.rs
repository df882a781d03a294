//! All pipes: their numbers, and what each user has of them.
//!
//! A pipe's capacity is charged to the user who made it, so that a writer always finds the pages that the capacity promises. Every pipe has
//! pages for [`LEAST_BYTES`]; a user whose share of the rest is used up gets pipes of that capacity (compare Linux's
//! `pipe-user-pages-soft`).

use super::{DEFAULT_BYTES, PIPE_BUF, Pipe, ring::Ring};
use crate::keep::{PIPE_PAGE, Store, quota};
use abi::Errno;
use alloc::rc::Rc;
use core::cell::Cell;
#[cfg(test)]
use server::quota::Quota;
use server::quota::{Share, Shares};

/// Capacity of a pipe whose user has his share.
const LEAST_BYTES: usize = PIPE_BUF as usize;

/// See the head of the file.
#[derive(Debug)]
pub struct Pipes {
    store: Rc<Store>,
    next_inode: Cell<u64>,
    places: Shares,
    pages: Shares,
}

/// What a pipe has of its user's share.
#[derive(Debug)]
pub struct Charge {
    place: Share,
    pages: Share,
}

impl Charge {
    /// The user.
    pub fn user(&self) -> u32 {
        self.place.user()
    }

    /// Charges another capacity. `EPERM`: beyond the user's share.
    pub fn resize(&mut self, capacity: usize) -> Result<(), Errno> {
        self.pages.resize(shared_pages(capacity)).map_err(|refusal| refusal.errno(Errno::EPERM, Errno::EPERM))
    }
}

impl Pipes {
    /// There are none.
    pub fn new(store: Rc<Store>) -> Pipes {
        let sizes = store.sizes();
        Pipes { next_inode: Cell::new(1), places: quota(sizes.pipes()), pages: quota(sizes.pipe_pages()), store }
    }

    /// A pipe that nobody has opened: the caller opens an end at once. `ENFILE`: the user or all together have too many.
    pub fn make(&self, user: u32) -> Result<Rc<Pipe>, Errno> {
        let place = self.places.take(user, 1).map_err(|refusal| refusal.errno(Errno::ENFILE, Errno::ENFILE))?;
        let (capacity, pages) = match self.pages.take(user, shared_pages(DEFAULT_BYTES)) {
            Ok(pages) => (DEFAULT_BYTES, Ok(pages)),
            Err(_) => (LEAST_BYTES, self.pages.take(user, 0)),
        };
        let pages = pages.map_err(|refusal| refusal.errno(Errno::ENFILE, Errno::ENFILE))?;
        let record = self.store.new_pipe(capacity, user)?;
        Ok(Rc::new(Pipe::new(record, Ring::new(capacity), Charge { place, pages })))
    }

    /// Sets how many pipes an account may have; `None`: as many as a user. `ENOMEM`.
    pub fn set_limit(&self, account: u32, limit: Option<usize>) -> Result<(), Errno> {
        self.places.set_limit(account, limit).map_err(|_| Errno::ENOMEM)
    }

    /// Returns how many pipes an account has.
    pub fn held_by(&self, account: u32) -> usize {
        self.places.held_by(account)
    }

    /// Two pipes, or none. `ENFILE`.
    pub fn make_two(&self, user: u32) -> Result<[Rc<Pipe>; 2], Errno> {
        let first = self.make(user)?;
        let second = self.make(user).inspect_err(|_| self.store.release_pipe(first.record()))?;
        Ok([first, second])
    }

    /// Frees pipes that nobody has opened and nobody will.
    pub fn discard(&self, pipes: &[&Rc<Pipe>]) {
        pipes.iter().for_each(|pipe| self.store.release_pipe(pipe.record()));
    }

    /// Charges a pipe that a predecessor has left. `ENOMEM`.
    pub fn restore_charge(&self, user: u32, capacity: usize) -> Result<Charge, Errno> {
        let refused = |_| Errno::ENOMEM;
        let place = self.places.restore(user, 1).map_err(refused)?;
        Ok(Charge { place, pages: self.pages.restore(user, shared_pages(capacity)).map_err(refused)? })
    }

    /// The first of `count` inode numbers, for fstat, that nothing has had.
    pub fn new_inodes(&self, count: u64) -> u64 {
        self.next_inode.replace(self.next_inode.get() + count)
    }

    /// An inode number that a predecessor has given.
    pub fn has_inode(&self, inode: u64) {
        self.next_inode.set(self.next_inode.get().max(inode + 1));
    }
}

/// Pages of a capacity beyond those that every pipe has.
fn shared_pages(capacity: usize) -> usize {
    capacity.saturating_sub(LEAST_BYTES).div_ceil(PIPE_PAGE)
}

#[cfg(test)]
impl Charge {
    /// A pipe of a user who may have so many pages.
    pub fn of_pages(count: usize) -> Charge {
        let shares = |count| Shares::new(Quota::new(count, count, 0));
        let [place, pages] = [shares(1).take(1, 1), shares(count).take(1, 0)].map(|share| share.expect("it is free"));
        Charge { place, pages }
    }
}
