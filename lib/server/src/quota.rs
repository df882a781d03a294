//! Shares of a table that users have in common: each user gets a part, and the superuser finds a reserve.

use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::RefCell;
use sys::Errno;
use sys::fallible::TryVec;

/// The superuser, who has no share of his own.
const ROOT: u32 = 0;

/// Why somebody gets no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The user has his share.
    User,
    /// The table is full, but for what is reserved for the superuser.
    Table,
    /// There is no memory to count with.
    Memory,
}

impl Refusal {
    /// Returns the error of the call that is refused: `user` for a user who has his share, `table` for a full table.
    pub fn errno(self, user: Errno, table: Errno) -> Errno {
        match self {
            Refusal::User => user,
            Refusal::Table => table,
            Refusal::Memory => Errno::ENOMEM,
        }
    }
}

/// The entries of a table, by the real user id that holds them.
#[derive(Debug)]
pub struct Quota {
    capacity: usize,
    per_user: usize,
    reserve: usize,
    total: usize,
    /// Entries of each user that has any, in the order of the user ids; and users who have none any more, until another one comes.
    users: Vec<(u32, usize)>,
    /// Users who get another share than `per_user`: the accounts of containers (`abi::container::account`).
    limits: Vec<(u32, usize)>,
}

impl Quota {
    /// Makes the quota of an empty table of `capacity` entries: a user gets at most `per_user`, and all users but the superuser together
    /// leave `reserve` entries free.
    pub const fn new(capacity: usize, per_user: usize, reserve: usize) -> Quota {
        assert!(reserve <= capacity);
        Quota { capacity, per_user, reserve, total: 0, users: Vec::new(), limits: Vec::new() }
    }

    /// Takes `count` entries for a user.
    ///
    /// # Errors
    /// Why he gets none of them.
    #[inline]
    pub fn take(&mut self, user: u32, count: usize) -> Result<(), Refusal> {
        let reserve = if user == ROOT { 0 } else { self.reserve };
        let has_room = count <= (self.capacity - reserve).saturating_sub(self.total);
        let limit = if user == ROOT { usize::MAX } else { self.limit_of(user) };
        let entry = self.entry_of(user);
        let held = entry.as_ref().map_or(0, |held| **held);
        if count > limit.saturating_sub(held) {
            return Err(Refusal::User);
        }
        if !has_room {
            return Err(Refusal::Table);
        }
        match entry {
            Some(held) => *held += count,
            None => self.enter(user, count)?,
        }
        self.total += count;
        Ok(())
    }

    /// Sets what a user gets, other than the superuser; `None`: as much as every user.
    ///
    /// # Errors
    /// Memory.
    pub fn set_limit(&mut self, user: u32, limit: Option<usize>) -> Result<(), Refusal> {
        match (self.limits.iter().position(|(known, _)| *known == user), limit) {
            (Some(at), Some(limit)) => self.limits[at].1 = limit,
            (Some(at), None) => drop(self.limits.swap_remove(at)),
            (None, Some(limit)) => self.limits.try_push((user, limit)).map_err(|_| Refusal::Memory)?,
            (None, None) => {}
        }
        Ok(())
    }

    #[inline]
    fn limit_of(&self, user: u32) -> usize {
        let own = self.limits.iter().find(|(known, _)| *known == user);
        own.map_or(self.per_user, |(_, limit)| *limit)
    }

    /// Counts `count` entries that a user had of a predecessor, whatever the limits: users are restored in any order.
    ///
    /// # Errors
    /// Memory.
    pub fn restore(&mut self, user: u32, count: usize) -> Result<(), Refusal> {
        match self.entry_of(user) {
            Some(held) => *held += count,
            None => self.enter(user, count)?,
        }
        self.total += count;
        Ok(())
    }

    /// Enters a user who has no entry yet.
    #[cold]
    fn enter(&mut self, user: u32, count: usize) -> Result<(), Refusal> {
        if count == 0 {
            return Ok(());
        }
        self.users.retain(|(_, held)| *held > 0);
        let at = self.users.partition_point(|(other, _)| *other < user);
        self.users.try_insert(at, (user, count)).map_err(|_| Refusal::Memory)
    }

    /// Gives back `count` entries that a user has taken.
    ///
    /// # Panics
    /// If he holds fewer.
    #[inline]
    pub fn give(&mut self, user: u32, count: usize) {
        if count == 0 {
            return;
        }
        let held = self.entry_of(user).expect("a user gives back what he holds");
        *held = held.checked_sub(count).expect("a user gives back what he holds");
        self.total -= count;
    }

    /// Counts again, after the death of a predecessor: one item of `holders` for each entry that is taken. Users who were counted before
    /// cost no memory.
    #[expect(clippy::disallowed_methods, reason = "the room is there: it counted as many users before")]
    pub fn recount(&mut self, holders: impl Iterator<Item = u32>) {
        self.users.clear();
        self.total = 0;
        for user in holders {
            match self.place_of(user) {
                Ok(at) => self.users[at].1 += 1,
                Err(at) => self.users.insert(at, (user, 1)),
            }
            self.total += 1;
        }
    }

    /// Returns the number of entries that a user holds.
    pub fn held_by(&self, user: u32) -> usize {
        self.place_of(user).map_or(0, |at| self.users[at].1)
    }

    /// Returns the number of entries that are taken.
    pub fn total(&self) -> usize {
        self.total
    }

    /// Returns the user who holds most, other than the superuser.
    pub fn largest(&self) -> Option<u32> {
        let users = self.users.iter().filter(|(user, held)| *user != ROOT && *held > 0);
        users.max_by_key(|(_, held)| *held).map(|(user, _)| *user)
    }

    /// What a user holds, if he has been entered.
    #[inline]
    fn entry_of(&mut self, user: u32) -> Option<&mut usize> {
        let at = self.place_of(user).ok()?;
        self.users.get_mut(at).map(|(_, held)| held)
    }

    /// Where a user is; most tables have one, or the superuser is asked about, who is the first.
    #[inline]
    fn place_of(&self, user: u32) -> Result<usize, usize> {
        if let Some((first, _)) = self.users.first()
            && *first == user
        {
            return Ok(0);
        }
        self.users.binary_search_by_key(&user, |(user, _)| *user)
    }
}

/// A quota that several owners share. Clones share it.
#[derive(Clone, Debug)]
pub struct Shares(Rc<RefCell<Quota>>);

impl Shares {
    /// Shares a quota.
    pub fn new(quota: Quota) -> Shares {
        Shares(Rc::new(RefCell::new(quota)))
    }

    /// Takes `count` entries for a user; they are given back when the share is dropped.
    ///
    /// # Errors
    /// Why he gets none of them.
    pub fn take(&self, user: u32, count: usize) -> Result<Share, Refusal> {
        self.0.borrow_mut().take(user, count)?;
        Ok(Share { quota: self.clone(), user, count })
    }

    /// Takes entries as [`Quota::restore`] does.
    ///
    /// # Errors
    /// Memory.
    pub fn restore(&self, user: u32, count: usize) -> Result<Share, Refusal> {
        self.0.borrow_mut().restore(user, count)?;
        Ok(Share { quota: self.clone(), user, count })
    }

    /// Sets a limit as [`Quota::set_limit`] does.
    ///
    /// # Errors
    /// Memory.
    pub fn set_limit(&self, user: u32, limit: Option<usize>) -> Result<(), Refusal> {
        self.0.borrow_mut().set_limit(user, limit)
    }

    /// Returns the number of entries that a user holds.
    pub fn held_by(&self, user: u32) -> usize {
        self.0.borrow().held_by(user)
    }

    /// Returns the number of entries that are taken.
    pub fn total(&self) -> usize {
        self.0.borrow().total()
    }
}

/// Entries that a user holds until this is dropped.
#[derive(Debug)]
pub struct Share {
    quota: Shares,
    user: u32,
    count: usize,
}

impl Share {
    /// Returns the user.
    pub fn user(&self) -> u32 {
        self.user
    }

    /// Changes the number of entries.
    ///
    /// # Errors
    /// Why he gets no more; then nothing has changed.
    pub fn resize(&mut self, count: usize) -> Result<(), Refusal> {
        let mut quota = self.quota.0.borrow_mut();
        match count.checked_sub(self.count) {
            Some(more) => quota.take(self.user, more)?,
            None => quota.give(self.user, self.count - count),
        }
        self.count = count;
        Ok(())
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.quota.0.borrow_mut().give(self.user, self.count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recount_finds_the_same_whatever_the_order_and_the_limits() {
        let mut quota = Quota::new(4, 2, 2);
        quota.take(7, 2).unwrap();
        quota.take(0, 2).unwrap();
        quota.recount([0, 7, 0, 7].into_iter());
        assert_eq!((quota.held_by(7), quota.held_by(0), quota.total()), (2, 2, 4));
    }
    use sys::fallible::fail_after;

    #[test]
    fn what_a_predecessor_gave_is_restored_in_any_order() {
        let shares = Shares::new(Quota::new(4, 4, 2));
        let [of_root, of_user] = [0, 7].map(|user| shares.restore(user, 2).unwrap());
        assert_eq!((shares.held_by(7), shares.total()), (2, 4));
        drop((of_root, of_user));
        assert_eq!(shares.total(), 0);
    }

    #[test]
    fn a_user_gets_his_share_and_no_more() {
        let mut quota = Quota::new(10, 3, 2);
        assert_eq!(quota.take(5, 3), Ok(()));
        assert_eq!(quota.take(5, 1), Err(Refusal::User));
        assert_eq!(quota.take(5, 0), Ok(()));
        quota.give(5, 1);
        assert_eq!((quota.take(5, 1), quota.held_by(5), quota.total()), (Ok(()), 3, 3));
    }

    #[test]
    fn a_limit_of_its_own_takes_the_place_of_the_share_and_can_be_taken_back() {
        let mut quota = Quota::new(10, 3, 2);
        quota.set_limit(5, Some(1)).unwrap();
        assert_eq!(
            [quota.take(5, 2), quota.take(5, 1), quota.take(5, 1)],
            [Err(Refusal::User), Ok(()), Err(Refusal::User)]
        );
        assert_eq!(quota.take(6, 3), Ok(()));
        quota.set_limit(5, Some(9)).unwrap();
        assert_eq!([quota.take(5, 5), quota.take(5, 4)], [Err(Refusal::Table), Ok(())]);
        quota.set_limit(5, None).unwrap();
        quota.give(5, 5);
        assert_eq!([quota.take(5, 3), quota.take(5, 4)], [Ok(()), Err(Refusal::User)]);
        quota.give(6, 3);
        assert_eq!(quota.take(6, 3), Ok(()));
    }

    #[test]
    fn users_leave_the_reserve_to_the_superuser() {
        let mut quota = Quota::new(10, 4, 2);
        assert_eq!([quota.take(1, 4), quota.take(2, 4), quota.take(3, 1)], [Ok(()), Ok(()), Err(Refusal::Table)]);
        assert_eq!([quota.take(0, 2), quota.take(0, 1)], [Ok(()), Err(Refusal::Table)]);
        quota.give(1, 4);
        assert_eq!([quota.take(0, 4), quota.take(3, 1)], [Ok(()), Err(Refusal::Table)]);
        assert_eq!(quota.total(), 10);
    }

    #[test]
    fn users_who_hold_nothing_are_forgotten_when_another_one_comes() {
        let mut quota = Quota::new(10, 4, 0);
        [3, 1, 2].iter().for_each(|user| quota.take(*user, 1).unwrap());
        [1, 3].iter().for_each(|user| quota.give(*user, 1));
        assert_eq!((quota.users.len(), quota.held_by(1), quota.largest()), (3, 0, Some(2)));
        quota.take(0, 1).unwrap();
        assert_eq!(quota.users, [(0, 1), (2, 1)]);
    }

    #[test]
    fn the_largest_user_is_not_the_superuser() {
        let mut quota = Quota::new(10, 4, 0);
        assert_eq!(quota.largest(), None);
        for (user, count) in [(0, 5), (7, 1), (3, 2)] {
            quota.take(user, count).unwrap();
        }
        assert_eq!(quota.largest(), Some(3));
    }

    #[test]
    fn without_memory_to_count_with_nothing_is_taken() {
        let mut quota = Quota::new(10, 4, 0);
        fail_after(1);
        assert_eq!((quota.take(1, 2), quota.total()), (Err(Refusal::Memory), 0));
        assert_eq!(quota.take(1, 2), Ok(()));
    }

    #[test]
    #[should_panic = "gives back what he holds"]
    fn more_than_was_taken_is_not_given_back() {
        let mut quota = Quota::new(10, 4, 0);
        quota.take(1, 1).unwrap();
        quota.give(1, 2);
    }

    #[test]
    fn a_share_ends_with_its_owner() {
        let shares = Shares::new(Quota::new(4, 2, 0));
        let share = shares.take(9, 2).unwrap();
        assert_eq!((share.user(), shares.held_by(9)), (9, 2));
        assert_eq!(shares.take(9, 1).err().map(|why| why.errno(Errno::EMFILE, Errno::ENFILE)), Some(Errno::EMFILE));
        drop(share);
        assert_eq!((shares.held_by(9), shares.total()), (0, 0));
    }

    #[test]
    fn a_share_grows_and_shrinks() {
        let shares = Shares::new(Quota::new(4, 3, 0));
        let mut share = shares.take(9, 1).unwrap();
        assert_eq!([share.resize(3), share.resize(4), share.resize(2)], [Ok(()), Err(Refusal::User), Ok(())]);
        assert_eq!(shares.held_by(9), 2);
        drop(share);
        assert_eq!(shares.held_by(9), 0);
    }
}
