//! Filters of seccomp(2) as data: which thread has which, and what they say of a call.
//!
//! A thread has a filter, and with it those that were there before that one. Threads share them: children have those of their parents. So
//! nobody counts who has one: those that no thread has any more are found when another is added, which is also how a successor of a pm that
//! died at any moment finds them.

use super::bpf::{Data, Program};
use abi::Errno;
use alloc::vec::Vec;
use server::quota::Quota;
use sys::fallible::TryVec;

/// Most filters of all, of those that one user has added, and of those that only root gets; and their instructions.
const FILTERS: usize = 256;
const FILTERS_OF_USER: usize = FILTERS / 2;
const RESERVED_FILTERS: usize = FILTERS / 16;
const INSTRUCTIONS: usize = 1 << 15;
const INSTRUCTIONS_OF_USER: usize = INSTRUCTIONS / 2;
const RESERVED_INSTRUCTIONS: usize = INSTRUCTIONS / 16;
/// Most instructions that a call of a thread has to pass, four more counted for each filter: so long pm is busy with it.
const INSTRUCTIONS_OF_THREAD: usize = 8192;
const EACH_FILTER: usize = 4;

/// Place of a filter in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilterIndex(u16);

/// Which calls a thread may make.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Seccomp {
    /// All.
    #[default]
    Off,
    /// Four of them.
    Strict,
    /// What this filter says, and those before it.
    Filtered(FilterIndex),
}

impl Seccomp {
    /// Whether pm has to be told of each call.
    pub fn is_on(self) -> bool {
        self != Seccomp::Off
    }

    /// `SECCOMP_MODE_*`.
    pub fn mode(self) -> u16 {
        match self {
            Seccomp::Off => 0,
            Seccomp::Strict => 1,
            Seccomp::Filtered(_) => 2,
        }
    }

    fn filter(self) -> Option<FilterIndex> {
        match self {
            Seccomp::Filtered(filter) => Some(filter),
            Seccomp::Off | Seccomp::Strict => None,
        }
    }
}

/// Why a call is not made, or not at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The process ends as by SIGSYS.
    KillProcess,
    /// The thread does; one in strict mode as by SIGKILL.
    KillThread,
    /// SIGSYS for the thread, with this `si_errno`.
    Trap(u16),
    /// The call has this result instead, which is an error unless it is 0.
    Fail(u16),
    /// The tracer decides, and gets this message.
    Trace(u16),
}

/// The greatest error that a filter can give.
const MAX_ERRNO: u16 = 4095;
const NO_LISTENER: u16 = Errno::ENOSYS.0 as u16;

/// `SECCOMP_RET_*`.
mod action {
    pub const KILL_PROCESS: u32 = 0x8000_0000;
    pub const KILL_THREAD: u32 = 0;
    pub const TRAP: u32 = 0x0003_0000;
    pub const ERRNO: u32 = 0x0005_0000;
    pub const USER_NOTIF: u32 = 0x7fc0_0000;
    pub const TRACE: u32 = 0x7ff0_0000;
    pub const LOG: u32 = 0x7ffc_0000;
    pub const ALLOW: u32 = 0x7fff_0000;
    /// The bits of an action; below are its data.
    pub const ALL: u32 = 0xffff_0000;
}

impl Refusal {
    /// What a filter has returned; `None`: the call is made. What is unknown kills the process, as on Linux; nobody listens to
    /// `SECCOMP_RET_USER_NOTIF`, and nobody logs.
    fn of(returned: u32) -> Option<Refusal> {
        let data = returned as u16;
        Some(match returned & action::ALL {
            action::LOG | action::ALLOW => return None,
            action::KILL_THREAD => Refusal::KillThread,
            action::TRAP => Refusal::Trap(data),
            action::ERRNO => Refusal::Fail(data.min(MAX_ERRNO)),
            action::USER_NOTIF => Refusal::Fail(NO_LISTENER),
            action::TRACE => Refusal::Trace(data),
            _ => Refusal::KillProcess,
        })
    }
}

/// Whether a filter may return this action (`SECCOMP_GET_ACTION_AVAIL`).
pub fn is_action(returned: u32) -> bool {
    use action::*;
    [KILL_PROCESS, KILL_THREAD, TRAP, ERRNO, TRACE, LOG, ALLOW].contains(&returned)
}

/// One filter.
#[derive(Debug)]
struct Filter {
    program: Program,
    /// The one that was there before.
    before: Option<FilterIndex>,
    /// What calls have to pass with it.
    length: usize,
    /// The account that it is charged to.
    user: u32,
    /// Which call of which thread has added it: it is not made twice.
    added_by: (u32, u64),
}

/// What accounts have of the table.
#[derive(Debug)]
struct Shares {
    filters: Quota,
    instructions: Quota,
}

impl Default for Shares {
    fn default() -> Shares {
        Shares {
            filters: Quota::new(FILTERS, FILTERS_OF_USER, RESERVED_FILTERS),
            instructions: Quota::new(INSTRUCTIONS, INSTRUCTIONS_OF_USER, RESERVED_INSTRUCTIONS),
        }
    }
}

impl Shares {
    /// Charges an account for a filter. `ENOMEM`.
    fn take(&mut self, user: u32, instructions: usize) -> Result<(), Errno> {
        self.filters.take(user, 1).map_err(|_| Errno::ENOMEM)?;
        let taken = self.instructions.take(user, instructions);
        taken.inspect_err(|_| self.filters.give(user, 1)).map_err(|_| Errno::ENOMEM)
    }

    fn give(&mut self, user: u32, instructions: usize) {
        self.filters.give(user, 1);
        self.instructions.give(user, instructions);
    }
}

/// All filters.
#[derive(Debug, Default)]
pub struct Filters {
    places: Vec<Option<Filter>>,
    shares: Shares,
}

impl Filters {
    fn get(&self, index: FilterIndex) -> Option<&Filter> {
        self.places.get(usize::from(index.0))?.as_ref()
    }

    /// A filter and those before it, the newest first.
    fn chain(&self, first: Option<FilterIndex>) -> impl Iterator<Item = (FilterIndex, &Filter)> {
        let found = move |index: FilterIndex| self.get(index).map(|filter| (index, filter));
        core::iter::successors(first.and_then(found), move |(_, filter)| filter.before.and_then(found))
    }

    /// Adds a filter before those that a thread has. `ENOMEM`: more than calls of a thread may have to pass, more than the account has, or
    /// no memory.
    pub fn add(
        &mut self,
        program: Program,
        has: Seccomp,
        user: u32,
        added_by: (u32, u64),
    ) -> Result<FilterIndex, Errno> {
        let (before, instructions) = (has.filter(), program.len());
        let others = before.and_then(|before| self.get(before)).map_or(0, |filter| filter.length);
        let length = others + instructions + EACH_FILTER;
        let place = self.places.iter().position(Option::is_none).unwrap_or(self.places.len());
        if length > INSTRUCTIONS_OF_THREAD || place >= FILTERS {
            return Err(Errno::ENOMEM);
        }
        self.places.try_make_room(1)?;
        self.shares.take(user, instructions)?;
        let filter = Some(Filter { program, before, length, user, added_by });
        match self.places.get_mut(place) {
            Some(free) => *free = filter,
            None => self.places.try_push(filter)?,
        }
        Ok(FilterIndex(place as u16))
    }

    /// Whether the newest filter of a thread is the one that this call has added.
    pub fn was_added_by(&self, has: Seccomp, call: (u32, u64)) -> bool {
        has.filter().and_then(|filter| self.get(filter)).is_some_and(|filter| filter.added_by == call)
    }

    /// Why a call of a thread that has this filter is not made; `None`: it is. The newest of the filters that say the same gives the data.
    pub fn refusal(&self, filter: FilterIndex, data: &Data) -> Option<Refusal> {
        let returned = self.chain(Some(filter)).map(|(_, filter)| filter.program.run(data));
        let strictest = returned.min_by_key(|returned| (returned & action::ALL) as i32);
        Refusal::of(strictest.unwrap_or(action::KILL_PROCESS))
    }

    /// Whether a thread has all filters of another one, and perhaps more.
    pub fn descends(&self, has: Seccomp, other: Seccomp) -> bool {
        match (has, other) {
            (_, Seccomp::Off) => true,
            (Seccomp::Filtered(_), Seccomp::Filtered(other)) => {
                self.chain(has.filter()).any(|(index, _)| index == other)
            }
            _ => false,
        }
    }

    /// How many filters a thread has.
    pub fn count(&self, has: Seccomp) -> usize {
        self.chain(has.filter()).count()
    }

    /// Drops the filters that none of these threads has.
    pub fn retain(&mut self, threads: impl Iterator<Item = Seccomp>) {
        let mut used = [false; FILTERS];
        for thread in threads {
            let mut next = thread.filter();
            while let Some(index) = next.filter(|index| !used[usize::from(index.0)]) {
                used[usize::from(index.0)] = true;
                next = self.get(index).and_then(|filter| filter.before);
            }
        }
        let unused = self.places.iter_mut().zip(used).filter(|(_, used)| !used);
        for filter in unused.filter_map(|(place, _)| place.take()) {
            self.shares.give(filter.user, filter.program.len());
        }
    }

    /// Makes the table consistent after the death of a predecessor: counts again.
    pub fn recount(&mut self) {
        self.shares = Shares::default();
        for filter in self.places.iter().flatten() {
            // What was there before is within the quota; memory to count with may be short, then the user may add more than others.
            let _ = self.shares.take(filter.user, filter.program.len());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::bpf::tests::instruction;
    use super::*;

    /// A program that returns this for each call, with so many instructions.
    fn program(returned: u32, instructions: usize) -> Program {
        let mut all = vec![instruction(0x00, 0); instructions];
        all[instructions - 1] = instruction(0x06, returned);
        Program::new(&all).expect("it is one")
    }

    const USER: u32 = 1000;

    fn add(filters: &mut Filters, has: Seccomp, returned: u32) -> Seccomp {
        Seccomp::Filtered(filters.add(program(returned, 1), has, USER, (1, 1)).expect("there is room"))
    }

    fn refusal(filters: &Filters, has: Seccomp) -> Option<Refusal> {
        filters.refusal(has.filter().expect("one"), &Data::new(39, 0, [0; 6]))
    }

    #[test]
    fn the_strictest_filter_decides_and_of_equals_the_newest() {
        let mut filters = Filters::default();
        let cases = [
            (action::ALLOW | 9, None),
            (action::LOG, None),
            (action::TRACE | 3, Some(Refusal::Trace(3))),
            (action::TRACE | 4, Some(Refusal::Trace(4))),
            (action::LOG, Some(Refusal::Trace(4))),
            (action::USER_NOTIF, Some(Refusal::Fail(38))),
            (action::ERRNO | 5000, Some(Refusal::Fail(4095))),
            (action::ERRNO, Some(Refusal::Fail(0))),
            (action::TRACE, Some(Refusal::Fail(0))),
            (action::TRAP | 7, Some(Refusal::Trap(7))),
            (action::KILL_THREAD, Some(Refusal::KillThread)),
            (action::KILL_PROCESS, Some(Refusal::KillProcess)),
            (action::ALLOW, Some(Refusal::KillProcess)),
        ];
        let mut has = Seccomp::Off;
        for (count, (returned, expected)) in cases.into_iter().enumerate() {
            has = add(&mut filters, has, returned);
            assert_eq!((refusal(&filters, has), filters.count(has)), (expected, count + 1), "{returned:#x}");
        }
        let unknown = add(&mut filters, Seccomp::Off, 0x1234_0000);
        assert_eq!(refusal(&filters, unknown), Some(Refusal::KillProcess));
        assert!(!is_action(0x1234_0000) && !is_action(action::USER_NOTIF));
        assert!(is_action(action::ALLOW) && !is_action(action::ALLOW | 1));
    }

    #[test]
    fn filters_stay_while_a_thread_has_them_or_newer_ones() {
        let mut filters = Filters::default();
        let first = add(&mut filters, Seccomp::Off, action::ALLOW);
        let (left, right) = (add(&mut filters, first, action::ERRNO | 1), add(&mut filters, first, action::ERRNO | 2));
        assert!(filters.descends(left, first) && filters.descends(left, left) && filters.descends(left, Seccomp::Off));
        assert!(!filters.descends(left, right) && !filters.descends(first, left));
        assert!(!filters.descends(left, Seccomp::Strict));
        filters.retain([left, Seccomp::Off, left, Seccomp::Strict].into_iter());
        assert_eq!((filters.count(left), filters.count(right)), (2, 0));
        assert_eq!(add(&mut filters, left, action::ALLOW), right, "its place is free");
        filters.retain([].into_iter());
        assert_eq!(filters.count(left), 0);
    }

    #[test]
    fn a_user_has_a_share_and_a_thread_a_limit() {
        let mut filters = Filters::default();
        let long = |filters: &mut Filters, has, user| filters.add(program(action::ALLOW, 4000), has, user, (1, 1));
        let first = long(&mut filters, Seccomp::Off, USER).map(Seccomp::Filtered).expect("the first");
        let second = long(&mut filters, first, USER).map(Seccomp::Filtered).expect("the second");
        assert_eq!(long(&mut filters, second, USER), Err(Errno::ENOMEM), "calls have to pass too much");
        let more = (0..).take_while(|_| long(&mut filters, Seccomp::Off, USER).is_ok()).count();
        assert_eq!(more + 2, INSTRUCTIONS_OF_USER / 4000);
        assert!(long(&mut filters, Seccomp::Off, USER + 1).is_ok());
        filters.recount();
        assert_eq!(long(&mut filters, Seccomp::Off, USER), Err(Errno::ENOMEM));
        filters.retain([second].into_iter());
        assert!(long(&mut filters, Seccomp::Off, USER).is_ok());
        let mut filters = Filters::default();
        let all = (0..).take_while(|_| filters.add(program(action::ALLOW, 1), Seccomp::Off, 0, (1, 1)).is_ok()).count();
        assert_eq!(all, FILTERS);
    }

    #[test]
    fn the_filters_of_a_user_leave_room_for_others() {
        let mut filters = Filters::default();
        let fill = |filters: &mut Filters, user| {
            let add = |_: &u32| filters.add(program(action::ALLOW, 1), Seccomp::Off, user, (1, 1)).is_ok();
            (0..).take_while(add).count()
        };
        assert_eq!(fill(&mut filters, USER), FILTERS_OF_USER);
        filters.recount();
        assert_eq!(fill(&mut filters, USER), 0);
        assert_eq!(fill(&mut filters, USER + 1), FILTERS_OF_USER - RESERVED_FILTERS);
        assert_eq!(fill(&mut filters, 0), RESERVED_FILTERS);
    }
}
