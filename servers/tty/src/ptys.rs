//! All pseudo-terminals: numbers, shares of users, and the memory of those that have ended.

use crate::pty::{Node, Pty};
use abi::Errno;
use abi::tty::MAX_PTYS;
use alloc::{boxed::Box, vec::Vec};
use server::quota::Quota;
use sys::fallible::{self, TryVec};

/// Pseudo-terminals that one user gets.
const PER_USER: usize = 1024;
/// Those that only the superuser gets.
const RESERVE: usize = 256;
/// Preserved memory is returned when so many pseudo-terminals have ended.
const MIN_TRIM: usize = 32;
/// Permissions and group of a new slave: those of `mount -t devpts -o gid=5,mode=620`.
const MODE: u32 = 0o620;
const GROUP: u32 = 5;

/// See the head of the file.
pub struct Ptys {
    table: Vec<Option<Box<Pty>>>,
    quota: Quota,
    next_serial: u64,
    /// Numbers whose preserved memory is in use for nothing.
    ended: Vec<bool>,
    ended_count: usize,
}

impl Ptys {
    /// Those of a predecessor, by number, and the serial of the next one.
    ///
    /// # Panics
    /// When there is no memory, at the start.
    pub fn restore(load: impl Fn(usize) -> Option<Pty>, next_serial: u64) -> Ptys {
        let no_memory = "tty starts with memory for its pseudo-terminals";
        let mut ptys = Ptys {
            table: Vec::new(),
            quota: Quota::new(MAX_PTYS, PER_USER, RESERVE),
            next_serial,
            ended: fallible::filled(false, MAX_PTYS).expect(no_memory),
            ended_count: 0,
        };
        for pty in (0..MAX_PTYS).filter_map(load) {
            ptys.next_serial = ptys.next_serial.max(pty.serial() + 1);
            ptys.quota.restore(pty.user(), 1).expect(no_memory);
            ptys.put(pty).expect(no_memory);
        }
        ptys
    }

    /// The serial of the next one, which is preserved.
    pub fn next_serial(&self) -> u64 {
        self.next_serial
    }

    /// Makes one for a user (`uid` owns its node). Returns its number.
    ///
    /// # Errors
    /// `ENOSPC`: there are too many, or the user has too many; `ENOMEM`.
    pub fn make(&mut self, user: u32, uid: u32, now_ns: u64) -> Result<usize, Errno> {
        let number = self.table.iter().position(Option::is_none).unwrap_or(self.table.len());
        self.quota.take(user, 1).map_err(|refusal| refusal.errno(Errno::ENOSPC, Errno::ENOSPC))?;
        let node = Node { mode: MODE, uid, gid: GROUP, times_ns: [now_ns; 3] };
        self.put(Pty::new(number, self.next_serial, user, node)).inspect_err(|_| self.quota.give(user, 1))?;
        self.next_serial += 1;
        Ok(number)
    }

    /// The one with this number.
    pub fn get(&self, number: usize) -> Option<&Pty> {
        self.table.get(number)?.as_deref()
    }

    /// The one with this number, for a change.
    pub fn get_mut(&mut self, number: usize) -> Option<&mut Pty> {
        self.table.get_mut(number)?.as_deref_mut()
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Pty> {
        self.table.iter().flatten().map(|pty| &**pty)
    }

    /// One more than the highest number.
    pub fn end(&self) -> usize {
        self.table.len()
    }

    /// Removes one of which nothing is open.
    pub fn remove(&mut self, number: usize) {
        let Some(pty) = self.table.get_mut(number).and_then(Option::take) else { return };
        self.quota.give(pty.user(), 1);
        while self.table.last().is_some_and(Option::is_none) {
            self.table.pop();
        }
        self.ended_count += usize::from(!core::mem::replace(&mut self.ended[number], true));
    }

    /// Hands the numbers whose preserved memory is not needed to `discard`, when there are many.
    pub fn trim(&mut self, mut discard: impl FnMut(usize)) {
        if self.ended_count < MIN_TRIM {
            return;
        }
        for (number, ended) in self.ended.iter_mut().enumerate() {
            if core::mem::take(ended) && self.table.get(number).is_none_or(Option::is_none) {
                discard(number);
            }
        }
        self.ended_count = 0;
    }

    fn put(&mut self, pty: Pty) -> Result<(), Errno> {
        let number = pty.number();
        fallible::admit()?;
        while self.table.len() <= number {
            self.table.try_push(None)?;
        }
        self.table[number] = Some(Box::new(pty));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn empty() -> Ptys {
        Ptys::restore(|_| None, 1)
    }

    #[test]
    fn numbers_are_used_again_and_serials_are_not() {
        let mut ptys = empty();
        assert_eq!([0; 3].map(|_| ptys.make(7, 7, 0)), [Ok(0), Ok(1), Ok(2)]);
        ptys.remove(1);
        assert_eq!(ptys.make(7, 7, 0), Ok(1));
        assert_eq!(ptys.iter().map(Pty::serial).collect::<Vec<_>>(), [1, 4, 3]);
    }

    #[test]
    fn a_user_gets_a_share_and_leaves_a_reserve_for_the_superuser() {
        let mut ptys = empty();
        assert_eq!((0..MAX_PTYS).take_while(|_| ptys.make(7, 7, 0).is_ok()).count(), PER_USER);
        for user in [8, 9, 10] {
            while ptys.make(user, user, 0).is_ok() {}
        }
        assert_eq!(ptys.iter().count(), MAX_PTYS - RESERVE);
        assert_eq!((0..MAX_PTYS).take_while(|_| ptys.make(0, 0, 0).is_ok()).count(), RESERVE);
        assert_eq!(ptys.make(0, 0, 0), Err(Errno::ENOSPC));
        ptys.remove(5);
        assert_eq!(ptys.make(7, 7, 0), Err(Errno::ENOSPC), "that would be of the reserve");
        assert_eq!(ptys.make(0, 0, 0), Ok(5));
    }

    #[test]
    fn memory_of_those_that_have_ended_is_returned_unless_it_is_used_again() {
        let mut ptys = empty();
        assert!((0..40).all(|_| ptys.make(0, 0, 0).is_ok()));
        (0..MIN_TRIM).for_each(|number| ptys.remove(number));
        ptys.make(0, 0, 0).expect("there is room");
        let mut discarded = Vec::new();
        ptys.trim(|number| discarded.push(number));
        assert_eq!(discarded, (1..MIN_TRIM).collect::<Vec<_>>());
        ptys.trim(|_| panic!("only once"));
    }
}
