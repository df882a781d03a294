//! Process ids: the holder of each number, and the next free number.
//!
//! Ids run from 1 to 32767, or to a lower bound that root has set, and start again at 300 (below live the services and what booted
//! first). An id is free when no
//! process or thread holds it and no process names it as its group or session: `uses` counts all of these.

use super::index::{ProcessIndex, ThreadIndex};
use abi::container::{CONTAINER_PIDS, CONTAINERS, PIDS_END, first_pid};
use abi::{Errno, limits};
use alloc::vec::Vec;
use sys::fallible::TryVec;

/// Ids are below this.
pub const PID_LIMIT: u32 = limits::PIDS;
/// Where the search continues after the highest id.
const FIRST_AFTER_WRAP: u32 = limits::PIDS_MIN - 1;

/// Generations are below this.
const GENERATIONS: u32 = 1 << 31;

/// Who is meant by an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holder {
    /// Nobody (the id may still name a group or a session).
    Nobody,
    /// A process; the id is also that of its first thread.
    Process(ProcessIndex),
    /// A thread that is not the first of its process.
    Thread(ThreadIndex),
    /// A service; the position in the list of services.
    Service(u16),
}

#[derive(Clone, Copy)]
struct Entry {
    holder: Holder,
    uses: u16,
    /// A process of the group with this id.
    member: Option<ProcessIndex>,
    /// How often it was allocated, modulo [`GENERATIONS`].
    generation: u32,
}

const FREE: Entry = Entry { holder: Holder::Nobody, uses: 0, member: None, generation: 0 };

/// The entries of a range of ids.
struct Ids {
    first: u32,
    /// Up to the highest id that was used, in room for all, whose memory is taken when it is used.
    entries: Vec<Entry>,
}

impl Ids {
    #[expect(clippy::disallowed_methods, reason = "at the start")]
    fn new(first: u32, end: u32) -> Ids {
        Ids { first, entries: Vec::with_capacity((end - first) as usize) }
    }

    fn get(&self, pid: u32) -> Entry {
        self.entries.get((pid - self.first) as usize).copied().unwrap_or(FREE)
    }

    fn get_mut(&mut self, pid: u32) -> &mut Entry {
        let at = (pid - self.first) as usize;
        while self.entries.len() <= at {
            self.entries.push_reserved(FREE);
        }
        &mut self.entries[at]
    }
}

/// All ids.
pub struct Pids {
    own: Ids,
    /// Those that containers have given.
    contained: Ids,
    last: u32,
    /// The last id of each container, as it shows it.
    last_contained: [u16; CONTAINERS],
    /// New ids are below this.
    bound: u32,
}

impl Pids {
    /// No id is held. Id 1 is left to `claim`.
    pub fn new() -> Self {
        Pids {
            own: Ids::new(0, PID_LIMIT),
            contained: Ids::new(PID_LIMIT, PIDS_END),
            last: 1,
            last_contained: [0; CONTAINERS],
            bound: PID_LIMIT,
        }
    }

    fn get(&self, pid: u32) -> Entry {
        if pid < PID_LIMIT { self.own.get(pid) } else { self.contained.get(pid) }
    }

    fn get_mut(&mut self, pid: u32) -> &mut Entry {
        if pid < PID_LIMIT { self.own.get_mut(pid) } else { self.contained.get_mut(pid) }
    }

    /// The next free id, given to `holder`; `None` when all are in use.
    pub fn allocate(&mut self, holder: Holder) -> Option<u32> {
        let after = self.last + 1;
        let found =
            (after..self.bound).chain(FIRST_AFTER_WRAP..after.min(self.bound)).find(|&pid| self.get(pid).uses == 0)?;
        self.last = found;
        self.claim(found, holder);
        let entry = self.get_mut(found);
        entry.generation = (entry.generation + 1) % GENERATIONS;
        Some(found)
    }

    /// As [`Pids::allocate`], for a container. It begins with 1, which is used once.
    pub fn allocate_in(&mut self, container: u8, holder: Holder) -> Option<u32> {
        if container == 0 {
            return self.allocate(holder);
        }
        let first = first_pid(container);
        let after = u32::from(self.last_contained[usize::from(container)]) + 1;
        let found = (after..CONTAINER_PIDS)
            .chain(2..after.min(CONTAINER_PIDS))
            .find(|number| self.get(first + number).uses == 0)?;
        self.last_contained[usize::from(container)] = found as u16;
        let pid = first + found;
        self.claim(pid, holder);
        let entry = self.get_mut(pid);
        entry.generation = (entry.generation + 1) % GENERATIONS;
        Some(pid)
    }

    /// The holder of an id has not come to be: the next one gets it, if it was the last one of its container.
    pub fn take_back(&mut self, container: u8, pid: u32) {
        self.release(pid);
        let number = pid - if container == 0 { 0 } else { first_pid(container) };
        if container == 0 && self.last == number {
            self.last -= 1;
        } else if container != 0 && u32::from(self.last_contained[usize::from(container)]) == number {
            self.last_contained[usize::from(container)] -= 1;
        }
    }

    /// A container begins, with id 1.
    pub fn begin_container(&mut self, container: u8) {
        self.last_contained[usize::from(container)] = 0;
    }

    /// Whether a container has begun to give ids.
    pub fn has_begun(&self, container: u8) -> bool {
        self.last_contained[usize::from(container)] != 0
    }

    /// What all ids that are held are below.
    pub fn end(&self) -> u32 {
        if self.last_contained == [0; CONTAINERS] { PID_LIMIT } else { PIDS_END }
    }

    /// What new ids are below.
    pub fn bound(&self) -> u32 {
        self.bound
    }

    /// Bounds new ids. `EINVAL`: there would be too few, or more than the table has.
    pub fn set_bound(&mut self, bound: u64) -> Result<(), Errno> {
        let allowed = limits::PIDS_MIN..=PID_LIMIT;
        self.bound = u32::try_from(bound).ok().filter(|bound| allowed.contains(bound)).ok_or(Errno::EINVAL)?;
        Ok(())
    }

    /// How often an id was allocated: no two holders of it have the same number.
    pub fn generation(&self, pid: u32) -> u32 {
        self.get(pid).generation
    }

    /// Gives `pid` to `holder`, whatever held it before.
    pub fn claim(&mut self, pid: u32, holder: Holder) {
        self.get_mut(pid).holder = holder;
        self.retain(pid);
    }

    /// The holder gives the id back; it stays in use while a group or session has it.
    pub fn release(&mut self, pid: u32) {
        self.get_mut(pid).holder = Holder::Nobody;
        self.drop_use(pid);
    }

    /// Forgets all ids but those of services: processes and threads claim and retain theirs again.
    pub fn begin_recount(&mut self) {
        for entry in self.own.entries.iter_mut().chain(&mut self.contained.entries) {
            if !matches!(entry.holder, Holder::Service(_)) {
                *entry = Entry { generation: entry.generation, ..FREE };
            }
        }
    }

    /// One more process has `pid` as its group or session.
    pub fn retain(&mut self, pid: u32) {
        self.get_mut(pid).uses += 1;
    }

    /// One process less has `pid` as its group or session.
    pub fn drop_use(&mut self, pid: u32) {
        let entry = self.get_mut(pid);
        debug_assert!(entry.uses > 0, "pid {pid} is given back once too often");
        entry.uses = entry.uses.saturating_sub(1);
    }

    /// The process at which the ring of a group begins.
    pub fn member(&self, group: u32) -> Option<ProcessIndex> {
        self.get(group).member
    }

    /// Sets the process at which the ring of a group begins.
    pub fn set_member(&mut self, group: u32, member: Option<ProcessIndex>) {
        self.get_mut(group).member = member;
    }

    /// Who holds `pid`. Numbers that cannot be ids are held by nobody.
    pub fn holder(&self, pid: u32) -> Holder {
        self.get(pid).holder
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Holder = Holder::Service(1);

    #[test]
    fn ids_rise_and_wrap_to_three_hundred() {
        let mut pids = Pids::new();
        assert_eq!(pids.allocate(A), Some(2));
        pids.last = PID_LIMIT - 2;
        assert_eq!(pids.allocate(A), Some(PID_LIMIT - 1));
        assert_eq!(pids.allocate(A), Some(300));
        assert_eq!(pids.allocate(A), Some(301));
    }

    #[test]
    fn new_ids_are_below_a_bound_that_may_be_lowered() {
        let mut pids = Pids::new();
        assert_eq!([300, 32769, 1 << 40].map(|bound| pids.set_bound(bound)), [Err(Errno::EINVAL); 3]);
        pids.last = 20_000;
        pids.set_bound(302).unwrap();
        assert_eq!([(); 3].map(|()| pids.allocate(A)), [Some(300), Some(301), None]);
        pids.set_bound(303).unwrap();
        assert_eq!((pids.allocate(A), pids.bound()), (Some(302), 303));
    }

    #[test]
    fn an_id_stays_in_use_while_a_group_has_it() {
        let mut pids = Pids::new();
        let pid = pids.allocate(A).unwrap();
        pids.retain(pid);
        pids.release(pid);
        assert_eq!(pids.holder(pid), Holder::Nobody);
        pids.last = pid - 1;
        assert_ne!(pids.allocate(A), Some(pid));
        pids.drop_use(pid);
        pids.last = pid - 1;
        assert_eq!(pids.allocate(A), Some(pid));
    }

    #[test]
    fn a_recount_leaves_services_alone_and_frees_the_others() {
        let mut pids = Pids::new();
        let service = pids.allocate(A).unwrap();
        let other = pids.allocate(Holder::Process(ProcessIndex::at(0))).unwrap();
        pids.begin_recount();
        assert_eq!((pids.holder(service), pids.holder(other)), (A, Holder::Nobody));
        pids.last = service - 1;
        assert_eq!(pids.allocate(A), Some(other));
    }

    #[test]
    fn who_gets_an_id_again_has_another_generation() {
        let mut pids = Pids::new();
        let pid = pids.allocate(Holder::Process(ProcessIndex::at(0))).unwrap();
        let first = pids.generation(pid);
        pids.release(pid);
        pids.begin_recount();
        pids.last = pid - 1;
        assert_eq!(pids.allocate(A), Some(pid));
        assert_ne!(pids.generation(pid), first);
    }

    #[test]
    fn no_id_is_given_twice_and_exhaustion_is_reported() {
        let mut pids = Pids::new();
        let mut seen = std::collections::BTreeSet::new();
        while let Some(pid) = pids.allocate(A) {
            assert!(seen.insert(pid), "{pid} was given twice");
        }
        assert_eq!(seen.len() as u32, PID_LIMIT - 2);
        pids.release(777);
        assert_eq!(pids.allocate(A), Some(777));
    }
}
