//! System V semaphores as data: sets, and operations on them that happen all at once or not at all (semop(2)).

use super::credentials::Credentials;
use super::index::ThreadIndex;
use abi::{Endpoint, Errno};
use alloc::vec::Vec;

/// Most sets, semaphores of a set, operations of a call, and the greatest value (Linux: SEMMNI, SEMMSL, SEMOPM, SEMVMX).
pub const SETS: usize = 128;
/// See [`SETS`].
pub const SEMAPHORES: usize = 256;
/// See [`SETS`].
pub const OPERATIONS: usize = 500;
/// See [`SETS`].
pub const MOST: i32 = 32767;

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

/// What the end of a process takes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Adjustment {
    pid: u32,
    number: u16,
    change: i32,
}

/// A set.
#[derive(Clone, Debug)]
pub struct Set {
    /// Its key; 0: private.
    pub key: u32,
    /// Its identifier.
    pub id: u32,
    /// Owner (user, group) and creator.
    pub owner: (u32, u32),
    /// See `owner`.
    pub creator: (u32, u32),
    /// Rights, nine bits.
    pub mode: u32,
    /// When it was used and changed last, in seconds since 1970.
    pub used_s: u64,
    /// See `used_s`.
    pub changed_s: u64,
    /// Its semaphores.
    pub semaphores: Vec<Semaphore>,
    /// The waiting threads, oldest first. Some may have ended.
    pub waiting: Vec<(ThreadIndex, Endpoint)>,
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
    /// Does all operations for a process, or none.
    pub fn perform(&mut self, operations: &[Operation], pid: u32) -> Result<(), Stop> {
        let mut after = self.semaphores.clone();
        for (index, operation) in operations.iter().enumerate() {
            let semaphore = after.get_mut(operation.number as usize).ok_or(Stop::Error(Errno::EFBIG))?;
            let value = semaphore.value + operation.change as i32;
            let waits = if operation.change == 0 { value != 0 } else { value < 0 };
            match waits {
                true if operation.flags & NO_WAIT != 0 => return Err(Stop::Error(Errno::EAGAIN)),
                true => return Err(Stop::Wait(index)),
                false if value > MOST => return Err(Stop::Error(Errno::ERANGE)),
                false => *semaphore = Semaphore { value, pid },
            }
        }
        self.semaphores = after;
        for operation in operations.iter().filter(|operation| operation.flags & UNDO != 0) {
            self.note_adjustment(pid, operation.number, -(operation.change as i32));
        }
        Ok(())
    }

    fn note_adjustment(&mut self, pid: u32, number: u16, change: i32) {
        let known = self.adjustments.iter_mut().find(|known| known.pid == pid && known.number == number);
        match known {
            Some(known) => known.change += change,
            None => self.adjustments.push(Adjustment { pid, number, change }),
        }
    }

    /// A value is set: nothing of it is to be taken back any more.
    pub fn set_value(&mut self, number: usize, value: i32, pid: u32) {
        self.semaphores[number] = Semaphore { value, pid };
        self.adjustments.retain(|known| known.number as usize != number);
    }

    /// Applies the adjustments of a process that ends. Returns whether a value has changed.
    pub fn take_back(&mut self, pid: u32) -> bool {
        let before = self.adjustments.len();
        for known in self.adjustments.iter().filter(|known| known.pid == pid) {
            let semaphore = &mut self.semaphores[known.number as usize];
            *semaphore = Semaphore { value: (semaphore.value + known.change).clamp(0, MOST), pid };
        }
        self.adjustments.retain(|known| known.pid != pid);
        self.adjustments.len() != before
    }

    /// Whether a process with these ids has these rights (4 read, 2 alter).
    pub fn allows(&self, who: &Credentials, rights: u32) -> bool {
        let (user, group) = (who.user.effective, who.group.effective);
        let shift = match () {
            () if user == self.owner.0 || user == self.creator.0 => 6,
            () if group == self.owner.1 || group == self.creator.1 => 3,
            () => 0,
        };
        who.is_root() || self.mode >> shift & rights == rights
    }

    /// Whether somebody may change or remove it.
    pub fn is_owned_by(&self, who: &Credentials) -> bool {
        who.is_root() || who.user.effective == self.owner.0 || who.user.effective == self.creator.0
    }
}

/// All sets. An identifier is the index of a set plus `SETS` times the number of sets made before.
#[derive(Debug, Default)]
pub struct Sets {
    sets: Vec<Option<Set>>,
    made: u32,
}

impl Sets {
    /// The set with this key.
    pub fn with_key(&self, key: u32) -> Option<&Set> {
        self.sets.iter().flatten().find(|set| key != 0 && set.key == key)
    }

    /// The set with this identifier. `EINVAL`.
    pub fn get(&mut self, id: u32) -> Result<&mut Set, Errno> {
        let place = self.sets.get_mut(id as usize % SETS).and_then(Option::as_mut);
        place.filter(|set| set.id == id).ok_or(Errno::EINVAL)
    }

    /// The set with this index. `EINVAL`.
    pub fn at(&self, index: usize) -> Result<&Set, Errno> {
        self.sets.get(index).and_then(Option::as_ref).ok_or(Errno::EINVAL)
    }

    /// Number of sets, and of their semaphores.
    pub fn used(&self) -> (i32, i32) {
        let counts = self.sets.iter().flatten().map(|set| set.semaphores.len() as i32);
        counts.fold((0, 0), |(sets, all), count| (sets + 1, all + count))
    }

    /// The highest index of a set; 0 without any.
    pub fn highest_index(&self) -> usize {
        self.sets.iter().rposition(Option::is_some).unwrap_or(0)
    }

    /// All of them.
    pub fn all(&mut self) -> impl Iterator<Item = &mut Set> {
        self.sets.iter_mut().flatten()
    }

    /// Makes a set and returns its identifier. `ENOSPC`.
    pub fn make(&mut self, key: u32, count: usize, mode: u32, who: &Credentials, now_s: u64) -> Result<u32, Errno> {
        let free = self.sets.iter().position(Option::is_none).unwrap_or(self.sets.len());
        if free >= SETS {
            return Err(Errno::ENOSPC);
        }
        let id = (self.made % (i32::MAX as u32 / SETS as u32)) * SETS as u32 + free as u32;
        self.made += 1;
        let owner = (who.user.effective, who.group.effective);
        let semaphores = alloc::vec![Semaphore::default(); count];
        let set = Set {
            key,
            id,
            owner,
            creator: owner,
            mode,
            used_s: 0,
            changed_s: now_s,
            semaphores,
            waiting: Vec::new(),
            adjustments: Vec::new(),
        };
        match self.sets.get_mut(free) {
            Some(place) => *place = Some(set),
            None => self.sets.push(Some(set)),
        }
        Ok(id)
    }

    /// Takes a set out. `EINVAL`.
    pub fn remove(&mut self, id: u32) -> Result<Set, Errno> {
        let mut places = self.sets.iter_mut();
        let place = places.find(|place| place.as_ref().is_some_and(|set| set.id == id));
        place.and_then(Option::take).ok_or(Errno::EINVAL)
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
        let set = sets.get(id).unwrap();
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
        let set = sets.get(id).unwrap();
        set.perform(&[operation(0, 5, UNDO), operation(1, 1, 0)], 9).unwrap();
        set.perform(&[operation(0, -2, UNDO)], 9).unwrap();
        assert!(!set.take_back(8) && set.take_back(9) && !set.take_back(9));
        assert_eq!(values(set), [0, 1, 0]);
    }

    #[test]
    fn a_removed_set_is_not_found_under_its_old_identifier() {
        let (mut sets, id) = set();
        assert_eq!(sets.with_key(7).map(|set| set.id), Some(id));
        sets.remove(id).unwrap();
        let next = sets.make(7, 1, 0, &Credentials::default(), 0).unwrap();
        assert!(next != id && sets.get(id).is_err() && sets.get(next).is_ok());
    }
}
