//! What System V objects have in common (sysvipc(7)): key, identifier, owner, rights, and the threads that wait for one.

use super::credentials::Credentials;
use super::index::ThreadIndex;
use abi::{Capability, Endpoint, Errno, Part, pm::IpcRecord};
use alloc::vec::Vec;
use server::quota::Quota;
use sys::fallible::TryVec;

/// Right to read.
pub const READ: u32 = 4;
/// Right to alter a semaphore, and to send a message.
pub const ALTER: u32 = 2;

const IPC_CREAT: u64 = 0o1000;
const IPC_EXCL: u64 = 0o2000;

/// The head of an object.
#[derive(Clone, Copy, Debug)]
pub struct Head {
    /// The container that it is in.
    container: u8,
    /// 0: private.
    key: u32,
    id: u32,
    /// The real user it is counted for.
    user: u32,
    /// User and group of the owner, and of the creator.
    owner: (u32, u32),
    creator: (u32, u32),
    /// Rights, nine bits.
    mode: u32,
    /// When it was made or changed last, in seconds since 1970.
    pub changed_s: u64,
}

impl Head {
    /// Returns the identifier.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// Returns whether a process with these ids has these rights (`READ`, `ALTER`).
    pub fn allows(&self, who: &Credentials, rights: u32) -> bool {
        if !self.is_seen_by(who) {
            return false;
        }
        let (user, group) = (who.user.effective, who.group.effective);
        let shift = match () {
            () if user == self.owner.0 || user == self.creator.0 => 6,
            () if self.has_group(group) || who.groups().iter().any(|group| self.has_group(*group)) => 3,
            () => 0,
        };
        who.has(Capability::IpcOwner) || self.mode >> shift & rights == rights
    }

    /// Whether it is in the same container as a process.
    pub fn is_seen_by(&self, who: &Credentials) -> bool {
        self.container == who.parts.of(Part::Ipc)
    }

    /// The container that it is in.
    pub fn container(&self) -> u8 {
        self.container
    }

    fn has_group(&self, group: u32) -> bool {
        group == self.owner.1 || group == self.creator.1
    }

    /// Returns the real user it is counted for.
    pub fn user(&self) -> u32 {
        self.user
    }

    /// Nobody finds the object by its key any more.
    pub fn make_private(&mut self) {
        self.key = 0;
    }

    /// Returns whether a process with these ids may change or remove it.
    pub fn is_owned_by(&self, who: &Credentials) -> bool {
        if !self.is_seen_by(who) {
            return false;
        }
        let user = who.user.effective;
        who.has(Capability::SysAdmin) || user == self.owner.0 || user == self.creator.0
    }

    /// Changes user and group of the owner, and the rights. `EPERM`: the process may not.
    pub fn change(&mut self, who: &Credentials, owner: (u32, u32), mode: u32, now_s: u64) -> Result<(), Errno> {
        if !self.is_owned_by(who) {
            return Err(Errno::EPERM);
        }
        (self.owner, self.mode, self.changed_s) = (owner, mode & 0o777, now_s);
        Ok(())
    }

    /// Returns what /proc/sysvipc shows of it.
    pub fn record(&self) -> IpcRecord {
        let Head { key, id, owner, creator, mode, .. } = *self;
        let (index, values) = (0, [0; abi::pm::IPC_VALUES]);
        IpcRecord {
            index,
            key,
            id,
            mode,
            user: owner.0,
            group: owner.1,
            creator: creator.0,
            creator_group: creator.1,
            values,
        }
    }

    /// Returns the first three words of a `struct ipc64_perm`; the others are 0.
    pub fn words(&self) -> [u64; 3] {
        let pair = |low: u32, high: u32| low as u64 | (high as u64) << 32;
        [pair(self.key, self.owner.0), pair(self.owner.1, self.creator.0), pair(self.creator.1, self.mode)]
    }
}

/// An object with a head.
pub trait Object {
    /// Returns its head.
    fn head(&self) -> &Head;
}

/// All objects of a kind. An identifier is the index of an object plus `capacity` times the number of objects made before.
#[derive(Debug)]
pub struct Objects<T> {
    places: Vec<Option<T>>,
    capacity: usize,
    made: u32,
    /// Objects by the real user who made them.
    quota: Quota,
}

impl<T: Object> Objects<T> {
    /// Makes a table for at most `capacity` objects, of which one user gets at most `of_user`, and root alone `reserve`.
    pub const fn new(capacity: usize, of_user: usize, reserve: usize) -> Objects<T> {
        Objects { places: Vec::new(), capacity, made: 0, quota: Quota::new(capacity, of_user, reserve) }
    }

    /// Looks for the object that `semget` or `msgget` with this key and these flags means. `None`: one is to be made. `fits` may refuse
    /// the object. `EEXIST`, `ENOENT`, `EACCES`.
    pub fn find(
        &self,
        key: u32,
        flags: u64,
        who: &Credentials,
        fits: impl FnOnce(&T) -> Result<(), Errno>,
    ) -> Result<Option<u32>, Errno> {
        let Some(object) =
            self.iter().find(|object| key != 0 && object.head().key == key && object.head().is_seen_by(who))
        else {
            return if key == 0 || flags & IPC_CREAT != 0 { Ok(None) } else { Err(Errno::ENOENT) };
        };
        if flags & (IPC_CREAT | IPC_EXCL) == IPC_CREAT | IPC_EXCL {
            return Err(Errno::EEXIST);
        }
        fits(object)?;
        let rights = flags as u32 & 7 | flags as u32 >> 3 & 7 | flags as u32 >> 6 & 7;
        if !object.head().allows(who, rights & (READ | ALTER)) {
            return Err(Errno::EACCES);
        }
        Ok(Some(object.head().id))
    }

    /// Returns the object with this identifier. `EINVAL`.
    pub fn get(&mut self, id: u32) -> Result<&mut T, Errno> {
        let place = self.places.get_mut(id as usize % self.capacity).and_then(Option::as_mut);
        place.filter(|object| object.head().id == id).ok_or(Errno::EINVAL)
    }

    /// Returns the object with this index. `EINVAL`.
    pub fn at(&self, index: usize) -> Result<&T, Errno> {
        self.places.get(index).and_then(Option::as_ref).ok_or(Errno::EINVAL)
    }

    /// As [`Objects::at`], to be changed.
    pub fn at_mut(&mut self, index: usize) -> Option<&mut T> {
        self.places.get_mut(index)?.as_mut()
    }

    /// Returns all objects.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.places.iter().flatten()
    }

    /// Returns the highest index of an object; 0 without any.
    pub fn highest_index(&self) -> usize {
        self.places.iter().rposition(Option::is_some).unwrap_or(0)
    }

    /// Returns the number of places, used or not.
    pub fn places(&self) -> usize {
        self.places.len()
    }

    /// Counts again what users have, after the death of a predecessor.
    pub fn recount(&mut self) {
        let Objects { places, quota, .. } = self;
        quota.recount(places.iter().flatten().map(|object| object.head().user));
    }

    /// Makes an object with these rights by `build`. Returns the identifier. `ENOSPC`: there are too many, of the user or at all; `ENOMEM`.
    pub fn make(
        &mut self,
        key: u32,
        mode: u32,
        who: &Credentials,
        now_s: u64,
        build: impl FnOnce(Head) -> T,
    ) -> Result<u32, Errno> {
        let free = self.places.iter().position(Option::is_none).unwrap_or(self.places.len());
        if free == self.places.len() {
            self.places.try_make_room(1)?;
        }
        self.quota.take(who.account(), 1).map_err(|refusal| refusal.errno(Errno::ENOSPC, Errno::ENOSPC))?;
        let capacity = self.capacity as u32;
        let id = (self.made % (i32::MAX as u32 / capacity)) * capacity + free as u32;
        self.made += 1;
        let owner = (who.user.effective, who.group.effective);
        let container = who.parts.of(Part::Ipc);
        let (user, mode) = (who.account(), mode & 0o777);
        let head = Head { container, key, id, user, owner, creator: owner, mode, changed_s: now_s };
        match self.places.get_mut(free) {
            Some(place) => *place = Some(build(head)),
            None => self.places.try_push(Some(build(head)))?,
        }
        Ok(id)
    }

    /// Takes an object out of the table. `EINVAL`; `EPERM`: the process may not.
    pub fn remove(&mut self, id: u32, who: &Credentials) -> Result<T, Errno> {
        if !self.get(id)?.head().is_owned_by(who) {
            return Err(Errno::EPERM);
        }
        self.take(id)
    }

    /// Takes all objects out of the table that `is_meant` says.
    pub fn take_where(&mut self, is_meant: impl Fn(&T) -> bool) {
        for place in &mut self.places {
            if let Some(object) = place.take_if(|object| is_meant(object)) {
                self.quota.give(object.head().user, 1);
            }
        }
    }

    /// Takes an object out of the table, whoever owns it. `EINVAL`.
    pub fn take(&mut self, id: u32) -> Result<T, Errno> {
        self.get(id)?;
        let object = self.places[id as usize % self.capacity].take().ok_or(Errno::EINVAL)?;
        self.quota.give(object.head().user, 1);
        Ok(object)
    }
}

/// Threads that wait for an object, oldest first. Some may have ended, or wait for something else by now.
#[derive(Clone, Debug, Default)]
pub struct Waiters(Vec<(ThreadIndex, Endpoint)>);

impl Waiters {
    /// Adds a thread. There is one entry for each place of a thread, whoever has it: the list does not grow with threads that were killed
    /// while they waited. `ENOMEM`.
    pub fn add(&mut self, t: ThreadIndex, endpoint: Endpoint) -> Result<(), Errno> {
        self.remove(t);
        self.0.try_push((t, endpoint))
    }

    /// Removes a thread.
    pub fn remove(&mut self, t: ThreadIndex) {
        self.0.retain(|(waiter, _)| *waiter != t);
    }

    /// Returns the thread at this position, as it was when it began to wait.
    pub fn get(&self, position: usize) -> Option<(ThreadIndex, Endpoint)> {
        self.0.get(position).copied()
    }

    /// Returns all threads.
    pub fn iter(&self) -> impl Iterator<Item = (ThreadIndex, Endpoint)> + '_ {
        self.0.iter().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_of_a_thread_waits_once_whoever_has_it() {
        let mut waiters = Waiters::default();
        for generation in 1..100 {
            for index in 0..3 {
                waiters.add(ThreadIndex::at(index), Endpoint::new(200 + index, generation)).unwrap();
            }
        }
        let all: Vec<_> = waiters.iter().collect();
        assert_eq!(all, [0, 1, 2].map(|index| (ThreadIndex::at(index), Endpoint::new(200 + index, 99))));
    }
}
