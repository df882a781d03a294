//! System V semaphores as data: sets, and operations on them that happen all at once or not at all (semop(2)).

use super::credentials::Credentials;
use super::ipc::{Head, Object, Objects, Waiters};
use abi::{Errno, limits};
use alloc::vec::Vec;
use server::quota::Quota;
use sys::fallible::{self, TryVec};

/// Most sets, semaphores of a set, operations of a call, and the greatest value (Linux: SEMMNI, SEMMSL, SEMOPM, SEMVMX).
pub const SETS: usize = limits::SEMAPHORE_SETS;
/// See [`SETS`].
pub const SEMAPHORES: usize = limits::SEMAPHORES;
/// See [`SETS`].
pub const OPERATIONS: usize = limits::SEMAPHORE_OPERATIONS;
/// See [`SETS`].
pub const MOST: i32 = 32767;

/// Sets of one user, and sets that only root gets.
const SETS_OF_USER: usize = 64;
const RESERVED_SETS: usize = 16;
/// Adjustments of all sets, of one user, and those that only root gets.
const ADJUSTMENTS: usize = 16384;
const ADJUSTMENTS_OF_USER: usize = 8192;
const RESERVED_ADJUSTMENTS: usize = 1024;

/// `sem_flg`: do not wait.
pub const NO_WAIT: u16 = 0o4000;
/// `sem_flg`: taken back when the process ends.
pub const UNDO: u16 = 0x1000;

/// One operation: `struct sembuf`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation {
    /// Number of the semaphore.
    pub number: u16,
    /// What is added; 0: waits for zero.
    pub change: i16,
    /// `NO_WAIT`, `UNDO`.
    pub flags: u16,
}

/// One semaphore.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Semaphore {
    /// Its value, 0 to `MOST`.
    pub value: i32,
    /// The process that has changed it last.
    pub pid: u32,
}

/// What the end of a process takes back. It exists from the first operation with `UNDO` on, though that may wait, so that no operation has
/// to make one when it is its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Adjustment {
    pid: u32,
    /// The user it is counted for.
    user: u32,
    number: u16,
    change: i32,
}

/// A set.
#[derive(Clone, Debug)]
pub struct Set {
    /// Key, identifier, owner and rights.
    pub head: Head,
    /// When operations were done last, in seconds since 1970.
    pub used_s: u64,
    /// Its semaphores.
    pub semaphores: Vec<Semaphore>,
    /// The threads that wait for operations.
    pub waiting: Waiters,
    adjustments: Vec<Adjustment>,
}

/// Why operations are not done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// They never will be.
    Error(Errno),
    /// The operation with this index has to wait.
    Wait(usize),
}

impl Set {
    /// Does all operations for a process, or none. `Sets::prepare` came before.
    pub fn perform(&mut self, operations: &[Operation], pid: u32) -> Result<(), Stop> {
        for (index, operation) in operations.iter().enumerate() {
            if let Err(stop) = self.change(operation, index) {
                for done in &operations[..index] {
                    self.semaphores[done.number as usize].value -= done.change as i32;
                }
                return Err(stop);
            }
        }
        for operation in operations {
            self.semaphores[operation.number as usize].pid = pid;
            if operation.flags & UNDO != 0
                && let Some(at) = self.find_adjustment(pid, operation.number)
            {
                self.adjustments[at].change -= operation.change as i32;
            }
        }
        Ok(())
    }

    fn change(&mut self, operation: &Operation, index: usize) -> Result<(), Stop> {
        let semaphore = self.semaphores.get_mut(operation.number as usize).ok_or(Stop::Error(Errno::EFBIG))?;
        let value = semaphore.value + operation.change as i32;
        let waits = if operation.change == 0 { value != 0 } else { value < 0 };
        match waits {
            true if operation.flags & NO_WAIT != 0 => return Err(Stop::Error(Errno::EAGAIN)),
            true => return Err(Stop::Wait(index)),
            false if value > MOST => return Err(Stop::Error(Errno::ERANGE)),
            false => semaphore.value = value,
        }
        Ok(())
    }

    fn find_adjustment(&self, pid: u32, number: u16) -> Option<usize> {
        self.adjustments.iter().position(|known| known.pid == pid && known.number == number)
    }

    /// A value is set: nothing of it is to be taken back any more.
    pub fn set_value(&mut self, number: usize, value: i32, pid: u32) {
        self.semaphores[number] = Semaphore { value, pid };
        for known in self.adjustments.iter_mut().filter(|known| known.number as usize == number) {
            known.change = 0;
        }
    }

    /// Applies the adjustments of a process that ends. Returns whether a value has changed.
    fn take_back(&mut self, pid: u32, quota: &mut Quota) -> bool {
        let mut has_changed = false;
        for known in self.adjustments.iter().filter(|known| known.pid == pid) {
            quota.give(known.user, 1);
            has_changed |= known.change != 0;
            if known.change != 0 {
                let semaphore = &mut self.semaphores[known.number as usize];
                *semaphore = Semaphore { value: (semaphore.value + known.change).clamp(0, MOST), pid };
            }
        }
        self.adjustments.retain(|known| known.pid != pid);
        has_changed
    }
}

impl Object for Set {
    fn head(&self) -> &Head {
        &self.head
    }
}

/// All sets.
#[derive(Debug)]
pub struct Sets {
    /// The sets.
    pub all: Objects<Set>,
    /// Adjustments of all sets by user.
    adjustments: Quota,
}

impl Default for Sets {
    fn default() -> Sets {
        let adjustments = Quota::new(ADJUSTMENTS, ADJUSTMENTS_OF_USER, RESERVED_ADJUSTMENTS);
        Sets { all: Objects::new(SETS, SETS_OF_USER, RESERVED_SETS), adjustments }
    }
}

impl Sets {
    /// Returns the number of sets, and of their semaphores.
    pub fn used(&self) -> (i32, i32) {
        let counts = self.all.iter().map(|set| set.semaphores.len() as i32);
        counts.fold((0, 0), |(sets, all), count| (sets + 1, all + count))
    }

    /// Makes sure that the operations of a process have their adjustments. `ENOSPC`: too many; `ENOMEM`, `EINVAL`.
    pub fn prepare(&mut self, id: u32, operations: &[Operation], pid: u32, user: u32) -> Result<(), Errno> {
        let set = self.all.get(id)?;
        for number in
            operations.iter().filter(|operation| operation.flags & UNDO != 0).map(|operation| operation.number)
        {
            if (number as usize) < set.semaphores.len() && set.find_adjustment(pid, number).is_none() {
                set.adjustments.try_make_room(1)?;
                self.adjustments.take(user, 1).map_err(|refusal| refusal.errno(Errno::ENOSPC, Errno::ENOSPC))?;
                set.adjustments.try_push(Adjustment { pid, user, number, change: 0 })?;
            }
        }
        Ok(())
    }

    /// Applies the adjustments of a process that ends to the set with this index. Returns the identifier if a value has changed.
    pub fn take_back(&mut self, index: usize, pid: u32) -> Option<u32> {
        let set = self.all.at_mut(index)?;
        set.take_back(pid, &mut self.adjustments).then_some(set.head.id())
    }

    /// Counts again what users have, after the death of a predecessor.
    pub fn recount(&mut self) {
        self.all.recount();
        self.adjustments.recount(self.all.iter().flat_map(|set| set.adjustments.iter().map(|known| known.user)));
    }

    /// Makes a set and returns its identifier. `ENOSPC`: there are too many, of the user or at all; `ENOMEM`.
    pub fn make(&mut self, key: u32, count: usize, mode: u32, who: &Credentials, now_s: u64) -> Result<u32, Errno> {
        let semaphores = fallible::filled(Semaphore::default(), count)?;
        self.all.make(key, mode, who, now_s, |head| Set {
            head,
            used_s: 0,
            semaphores,
            waiting: Waiters::default(),
            adjustments: Vec::new(),
        })
    }

    /// Removes a set. `EINVAL`, `EPERM`.
    pub fn remove(&mut self, id: u32, who: &Credentials) -> Result<Set, Errno> {
        let set = self.all.remove(id, who)?;
        set.adjustments.iter().for_each(|known| self.adjustments.give(known.user, 1));
        Ok(set)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set() -> (Sets, u32) {
        let mut sets = Sets::default();
        let id = sets.make(7, 3, 0o600, &Credentials::default(), 0).unwrap();
        (sets, id)
    }

    fn operation(number: u16, change: i16, flags: u16) -> Operation {
        Operation { number, change, flags }
    }

    fn values(set: &Set) -> Vec<i32> {
        set.semaphores.iter().map(|semaphore| semaphore.value).collect()
    }

    #[test]
    fn operations_are_all_done_or_none() {
        let (mut sets, id) = set();
        let set = sets.all.get(id).unwrap();
        set.perform(&[operation(0, 2, 0), operation(1, 1, 0)], 9).unwrap();
        assert_eq!(set.perform(&[operation(0, -1, 0), operation(2, -1, 0)], 9), Err(Stop::Wait(1)));
        assert_eq!(values(set), [2, 1, 0]);
        let refused = set.perform(&[operation(0, -1, 0), operation(2, -1, NO_WAIT)], 9);
        assert_eq!(refused, Err(Stop::Error(Errno::EAGAIN)));
        assert_eq!(set.perform(&[operation(2, 0, 0), operation(3, 1, 0)], 9), Err(Stop::Error(Errno::EFBIG)));
        set.perform(&[operation(0, i16::MAX, 0)], 9).unwrap_err();
        assert_eq!(values(set), [2, 1, 0]);
    }

    #[test]
    fn what_a_process_wants_undone_is_undone_once() {
        let (mut sets, id) = set();
        let first = [operation(0, 5, UNDO), operation(1, 1, 0)];
        sets.prepare(id, &first, 9, 1000).unwrap();
        sets.all.get(id).unwrap().perform(&first, 9).unwrap();
        sets.all.get(id).unwrap().perform(&[operation(0, -2, UNDO)], 9).unwrap();
        assert_eq!([8, 9, 9].map(|pid| sets.take_back(0, pid)), [None, Some(id), None]);
        assert_eq!(values(sets.all.get(id).unwrap()), [0, 1, 0]);
        assert_eq!(sets.adjustments.total(), 0);
    }

    #[test]
    fn a_removed_set_is_not_found_under_its_old_identifier() {
        let (mut sets, id) = set();
        let find = |sets: &Sets| sets.all.find(7, 0, &Credentials::default(), |_| Ok(()));
        assert_eq!(find(&sets), Ok(Some(id)));
        sets.remove(id, &Credentials::default()).unwrap();
        assert_eq!(find(&sets), Err(Errno::ENOENT));
        let next = sets.make(7, 1, 0, &Credentials::default(), 0).unwrap();
        assert!(next != id && sets.all.get(id).is_err() && sets.all.get(next).is_ok());
    }
}
