//! Process ids: the holder of each number, and the next free number.
//!
//! Ids run from 1 to 32767, or to a lower bound that root has set, and start again at 300 (below live the services and what booted
//! first). An id is free when no
//! process or thread holds it and no process names it as its group or session: `uses` counts all of these.

use super::index::{ProcessIndex, ThreadIndex};
use abi::container::{CONTAINER_PIDS, CONTAINERS, PIDS_END, first_pid};
use abi::{Errno, limits};
use alloc::vec::Vec;

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

/// All ids.
pub struct Pids {
    entries: Vec<Entry>,
    last: u32,
    /// The last id of each container, as it shows it.
    last_contained: [u16; CONTAINERS],
    /// New ids are below this.
    bound: u32,
}

impl Pids {
    /// No id is held. Id 1 is left to `claim`.
    #[expect(clippy::disallowed_macros, clippy::disallowed_methods, reason = "at the start")]
    pub fn new() -> Self {
        Pids {
            entries: alloc::vec![FREE; PIDS_END as usize],
            last: 1,
            last_contained: [0; CONTAINERS],
            bound: PID_LIMIT,
        }
    }

    /// The next free id, given to `holder`; `None` when all are in use.
    pub fn allocate(&mut self, holder: Holder) -> Option<u32> {
        let after = self.last + 1;
        let found = (after..self.bound)
            .chain(FIRST_AFTER_WRAP..after.min(self.bound))
            .find(|&pid| self.entries[pid as usize].uses == 0)?;
        self.last = found;
        self.claim(found, holder);
        let entry = &mut self.entries[found as usize];
        entry.generation = (entry.generation + 1) % GENERATIONS;
        Some(found)
    }

    /// As [`Pids::allocate`], for a container. It begins with 1, which is used once.
    pub fn allocate_in(&mut self, container: u8, holder: Holder) -> Option<u32> {
        if container == 0 {
            return self.allocate(holder);
        }
        let first = first_pid(container);
        let last = &mut self.last_contained[usize::from(container)];
        let after = u32::from(*last) + 1;
        let found = (after..CONTAINER_PIDS)
            .chain(2..after.min(CONTAINER_PIDS))
            .find(|number| self.entries[(first + number) as usize].uses == 0)?;
        *last = found as u16;
        let pid = first + found;
        self.claim(pid, holder);
        let entry = &mut self.entries[pid as usize];
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
        self.entries[pid as usize].generation
    }

    /// Gives `pid` to `holder`, whatever held it before.
    pub fn claim(&mut self, pid: u32, holder: Holder) {
        self.entries[pid as usize].holder = holder;
        self.retain(pid);
    }

    /// The holder gives the id back; it stays in use while a group or session has it.
    pub fn release(&mut self, pid: u32) {
        self.entries[pid as usize].holder = Holder::Nobody;
        self.drop_use(pid);
    }

    /// Forgets all ids but those of services: processes and threads claim and retain theirs again.
    pub fn begin_recount(&mut self) {
        for entry in &mut self.entries {
            if !matches!(entry.holder, Holder::Service(_)) {
                *entry = Entry { generation: entry.generation, ..FREE };
            }
        }
    }

    /// One more process has `pid` as its group or session.
    pub fn retain(&mut self, pid: u32) {
        self.entries[pid as usize].uses += 1;
    }

    /// One process less has `pid` as its group or session.
    pub fn drop_use(&mut self, pid: u32) {
        let entry = &mut self.entries[pid as usize];
        debug_assert!(entry.uses > 0, "pid {pid} is given back once too often");
        entry.uses = entry.uses.saturating_sub(1);
    }

    /// The process at which the ring of a group begins.
    pub fn member(&self, group: u32) -> Option<ProcessIndex> {
        self.entries.get(group as usize).and_then(|entry| entry.member)
    }

    /// Sets the process at which the ring of a group begins.
    pub fn set_member(&mut self, group: u32, member: Option<ProcessIndex>) {
        self.entries[group as usize].member = member;
    }

    /// Who holds `pid`. Numbers that cannot be ids are held by nobody.
    pub fn holder(&self, pid: u32) -> Holder {
        self.entries.get(pid as usize).map_or(Holder::Nobody, |entry| entry.holder)
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
