//! Signals that wait for delivery to one thread or one process, and the table of entries that all their queues share.
//!
//! As in Linux an entry is charged to the real user of the target, so that RLIMIT_SIGPENDING holds for a user and not for each
//! process, and a POSIX timer owns the entry it will need. The table has a fixed size: sending a signal allocates nothing.
//!
//! Invariants: every queued signal has its bit in `set`. A bit without an entry is a standard signal for whose reason there was no
//! entry. A standard signal is there at most once, but for those of timers; real-time signals queue in order.

use super::{Set, SigInfo, Signal};
use crate::state::posix_timers::TimerIndex;
use abi::Errno;
use alloc::vec::Vec;
use server::quota::Quota;
use sys::fallible::TryVec;

/// Entries of all queues.
pub const ENTRIES: usize = 8192;
/// Entries that only root gets, so that it can act when others have used up theirs.
const RESERVED: usize = 512;
/// What a user may have for standard signals, which a lower RLIMIT_SIGPENDING does not keep away.
pub const STANDARD_LIMIT: u64 = 1000;

/// Position of an entry; `None` ends a list.
type Link = Option<EntryIndex>;

/// Position in the table of entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryIndex(u16);

impl EntryIndex {
    fn get(self) -> usize {
        self.0 as usize
    }
}

/// What an entry is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    Free,
    /// A signal in a queue.
    Signal,
    /// The signal of a timer, which keeps the entry; whether it is in a queue.
    Timer(TimerIndex, bool),
}

#[derive(Clone, Debug)]
struct Entry {
    info: SigInfo,
    /// The user it is charged to.
    user: u32,
    next: Link,
    used: Use,
}

/// The entries of all queues, and how many each user has.
#[derive(Debug)]
pub struct Entries {
    /// As many as were in use at a time, in room for all, whose memory is taken when it is used.
    entries: Vec<Entry>,
    free: Link,
    quota: Quota,
}

impl Entries {
    /// All free.
    #[expect(clippy::disallowed_methods, reason = "at the start")]
    pub fn new() -> Entries {
        let quota = Quota::new(ENTRIES, ENTRIES, RESERVED);
        Entries { entries: Vec::with_capacity(ENTRIES), free: None, quota }
    }

    /// Entries that are charged to a user.
    pub fn held_by(&self, user: u32) -> usize {
        self.quota.held_by(user)
    }

    /// Number of entries in use.
    #[cfg(test)]
    pub fn used(&self) -> usize {
        self.quota.total()
    }

    fn at(&self, entry: EntryIndex) -> &Entry {
        &self.entries[entry.get()]
    }

    fn at_mut(&mut self, entry: EntryIndex) -> &mut Entry {
        &mut self.entries[entry.get()]
    }

    /// An entry charged to `user`, who may have `limit`. `EAGAIN`.
    fn allocate(&mut self, user: u32, limit: u64, used: Use) -> Result<EntryIndex, Errno> {
        let is_full = self.free.is_none() && self.entries.len() == ENTRIES;
        if is_full || self.quota.held_by(user) as u64 >= limit {
            return Err(Errno::EAGAIN);
        }
        self.quota.take(user, 1).map_err(|_| Errno::EAGAIN)?;
        let entry = self.free.unwrap_or_else(|| self.lengthen());
        self.free = self.at(entry).next;
        let place = self.at_mut(entry);
        *place = Entry { user, next: None, used, ..place.clone() };
        Ok(entry)
    }

    /// Adds a free entry to a table that is not full.
    fn lengthen(&mut self) -> EntryIndex {
        let added = EntryIndex(self.entries.len() as u16);
        self.entries.push_reserved(Entry { info: SigInfo::kernel(Signal::KILL), user: 0, next: None, used: Use::Free });
        added
    }

    fn release(&mut self, entry: EntryIndex) {
        self.quota.give(self.at(entry).user, 1);
        let next = self.free.replace(entry);
        let place = self.at_mut(entry);
        place.next = next;
        place.used = Use::Free;
    }

    /// An entry for the signals of a timer, charged to `user`, who may have `limit`. `EAGAIN`.
    pub fn allocate_for_timer(&mut self, timer: TimerIndex, user: u32, limit: u64) -> Result<EntryIndex, Errno> {
        self.allocate(user, limit, Use::Timer(timer, false))
    }

    /// Frees the entry of a timer, which is in no queue.
    pub fn release_of_timer(&mut self, entry: EntryIndex) {
        debug_assert!(!self.is_queued(entry), "the signal of a timer was taken out first");
        self.release(entry);
    }

    /// Whether the signal of the timer with this entry is pending.
    pub fn is_queued(&self, entry: EntryIndex) -> bool {
        matches!(self.at(entry).used, Use::Timer(_, true))
    }

    /// After the death of a predecessor: all entries are free but those of timers, until `Pending::recount` finds them in a queue.
    pub fn begin_recount(&self) -> Recount {
        Recount([0; ENTRIES / 64])
    }

    /// Frees what no queue has and no timer keeps.
    pub fn end_recount(&mut self, recount: &Recount) {
        for (at, entry) in self.entries.iter_mut().enumerate() {
            let found = recount.has(EntryIndex(at as u16));
            match &mut entry.used {
                Use::Timer(_, queued) => *queued = found,
                used if !found => *used = Use::Free,
                _ => {}
            }
        }
        self.collect_free();
    }

    /// Rebuilds the list of free entries and the counts.
    fn collect_free(&mut self) {
        self.free = None;
        for at in (0..self.entries.len()).rev() {
            let entry = &mut self.entries[at];
            if entry.used == Use::Free {
                entry.next = self.free.replace(EntryIndex(at as u16));
            }
        }
        self.quota.recount(self.entries.iter().filter(|entry| entry.used != Use::Free).map(|entry| entry.user));
    }
}

/// Which entries were found in a queue, one bit each.
pub struct Recount([u64; ENTRIES / 64]);

impl Recount {
    fn has(&self, entry: EntryIndex) -> bool {
        self.0[entry.get() / 64] >> (entry.get() % 64) & 1 != 0
    }

    /// Notes an entry. Returns false if it was found before.
    fn note(&mut self, entry: EntryIndex) -> bool {
        let is_first = !self.has(entry);
        self.0[entry.get() / 64] |= 1 << (entry.get() % 64);
        is_first
    }
}

/// A signal that was taken out of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    /// The signal and its reason.
    pub info: SigInfo,
    /// The timer that sent it.
    pub timer: Option<TimerIndex>,
}

/// Pending signals.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pending {
    set: Set,
    first: Link,
    last: Link,
}

impl Pending {
    /// Which signals wait.
    pub fn set(&self) -> Set {
        self.set
    }

    /// Adds a signal, charged to `user`, who may have `limit` entries. `EAGAIN`: a real-time signal, and there is no entry for it. A
    /// standard signal then waits without its reason.
    pub fn add(&mut self, entries: &mut Entries, info: SigInfo, user: u32, limit: u64) -> Result<(), Errno> {
        let is_real_time = info.signal.is_real_time();
        if !is_real_time && self.set.contains(info.signal) {
            return Ok(());
        }
        let limit = if is_real_time { limit } else { limit.max(STANDARD_LIMIT) };
        match entries.allocate(user, limit, Use::Signal) {
            Ok(entry) => self.append(entries, entry, info),
            Err(error) if is_real_time => return Err(error),
            Err(_) => self.set = self.set.or(info.signal.set()),
        }
        Ok(())
    }

    /// Adds the signal of a timer, which has its own entry and is not pending yet.
    pub fn add_of_timer(&mut self, entries: &mut Entries, entry: EntryIndex, info: SigInfo) {
        if let Use::Timer(timer, false) = entries.at(entry).used {
            entries.at_mut(entry).used = Use::Timer(timer, true);
            self.append(entries, entry, info);
        }
    }

    fn append(&mut self, entries: &mut Entries, entry: EntryIndex, info: SigInfo) {
        let place = entries.at_mut(entry);
        place.info = info;
        place.next = None;
        match self.last.replace(entry) {
            Some(last) => entries.at_mut(last).next = Some(entry),
            None => self.first = Some(entry),
        }
        self.set = self.set.or(info.signal.set());
    }

    /// Takes the next signal of `wanted` out.
    pub fn take(&mut self, entries: &mut Entries, wanted: Set) -> Option<Taken> {
        let signal = self.set.and(wanted).next()?;
        let taken = self.remove_first(entries, |entry| entry.info.signal == signal);
        if taken.is_none() || !self.has_entry_of(entries, signal) {
            self.set = self.set.without(signal.set());
        }
        Some(taken.unwrap_or(Taken { info: SigInfo::without_reason(signal), timer: None }))
    }

    /// Takes the signal of a timer out, if it waits here.
    pub fn remove_of_timer(&mut self, entries: &mut Entries, timer: TimerIndex) {
        let taken = self.remove_first(entries, |entry| entry.used == Use::Timer(timer, true));
        if let Some(Taken { info, .. }) = taken
            && !self.has_entry_of(entries, info.signal)
        {
            self.set = self.set.without(info.signal.set());
        }
    }

    /// Drops all signals of `unwanted`.
    pub fn discard(&mut self, entries: &mut Entries, unwanted: Set) {
        if self.set.and(unwanted).is_empty() {
            return;
        }
        let (mut before, mut next) = (None, self.first);
        while let Some(entry) = next {
            next = entries.at(entry).next;
            if unwanted.contains(entries.at(entry).info.signal) {
                self.remove(entries, before, entry);
            } else {
                before = Some(entry);
            }
        }
        self.set = self.set.without(unwanted);
    }

    fn has_entry_of(&self, entries: &Entries, signal: Signal) -> bool {
        self.walk(entries).any(|entry| entries.at(entry).info.signal == signal)
    }

    fn walk<'a>(&self, entries: &'a Entries) -> impl Iterator<Item = EntryIndex> + use<'a> {
        core::iter::successors(self.first, |entry| entries.at(*entry).next)
    }

    fn remove_first(&mut self, entries: &mut Entries, test: impl Fn(&Entry) -> bool) -> Option<Taken> {
        let (mut before, mut found) = (None, self.first?);
        while !test(entries.at(found)) {
            before = Some(found);
            found = entries.at(found).next?;
        }
        Some(self.remove(entries, before, found))
    }

    /// Takes the entry after `before` out of the queue, and frees it unless a timer owns it.
    fn remove(&mut self, entries: &mut Entries, before: Link, entry: EntryIndex) -> Taken {
        let Entry { info, next, used, .. } = *entries.at(entry);
        match before {
            Some(before) => entries.at_mut(before).next = next,
            None => self.first = next,
        }
        if next.is_none() {
            self.last = before;
        }
        match used {
            Use::Timer(timer, _) => {
                entries.at_mut(entry).used = Use::Timer(timer, false);
                Taken { info, timer: Some(timer) }
            }
            _ => {
                entries.release(entry);
                Taken { info, timer: None }
            }
        }
    }

    /// After the death of a predecessor: keeps what is whole of the queue, up to the first entry that is free or in another queue.
    pub fn recount(&mut self, entries: &mut Entries, recount: &mut Recount) {
        let (mut last, mut next) = (None, self.first);
        while let Some(entry) = next
            && recount.note(entry)
            && entries.at(entry).used != Use::Free
        {
            self.set = self.set.or(entries.at(entry).info.signal.set());
            next = entries.at(entry).next;
            last = Some(entry);
        }
        match last {
            Some(last) => entries.at_mut(last).next = None,
            None => self.first = None,
        }
        self.last = last;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: Set = Set(u64::MAX);
    const USER: u32 = 1000;

    fn info(number: u64, value: u32) -> SigInfo {
        SigInfo::user(Signal::new(number).unwrap(), 0, value, 0)
    }

    /// A queue and its entries.
    struct Queue(Entries, Pending);

    impl Queue {
        fn new() -> Queue {
            Queue(Entries::new(), Pending::default())
        }

        fn add(&mut self, number: u64, value: u32, limit: u64) -> Result<(), Errno> {
            self.1.add(&mut self.0, info(number, value), USER, limit)
        }

        fn take(&mut self) -> Option<SigInfo> {
            self.1.take(&mut self.0, ALL).map(|taken| taken.info)
        }
    }

    #[test]
    fn a_standard_signal_waits_once_with_its_first_reason() {
        let mut queue = Queue::new();
        queue.add(10, 1, 100).unwrap();
        queue.add(10, 2, 100).unwrap();
        assert_eq!(queue.take(), Some(info(10, 1)));
        assert_eq!(queue.take(), None);
    }

    #[test]
    fn real_time_signals_keep_number_and_order() {
        let mut queue = Queue::new();
        for (number, value) in [(40, 1), (35, 2), (40, 3)] {
            queue.add(number, value, 100).unwrap();
        }
        let taken: Vec<_> = core::iter::from_fn(|| queue.take()).collect();
        assert_eq!(taken, [info(35, 2), info(40, 1), info(40, 3)]);
        assert_eq!((queue.1.set(), queue.0.used()), (Set::EMPTY, 0));
    }

    #[test]
    fn the_limit_holds_for_all_queues_of_a_user_and_for_no_other_user() {
        let (mut queue, mut other) = (Queue::new(), Pending::default());
        queue.add(40, 1, 2).unwrap();
        other.add(&mut queue.0, info(40, 2), USER, 2).unwrap();
        assert_eq!(queue.add(40, 3, 2), Err(Errno::EAGAIN));
        assert_eq!(other.add(&mut queue.0, info(40, 3), USER + 1, 2), Ok(()));
        assert_eq!(queue.add(10, 2, 2), Ok(()));
    }

    #[test]
    fn the_last_entries_are_for_root_and_standard_signals_come_without_their_reason() {
        let mut queue = Queue::new();
        while queue.add(40, 1, u64::MAX).is_ok() {}
        assert_eq!(queue.0.used(), ENTRIES - RESERVED);
        assert_eq!(queue.add(10, 7, 1000), Ok(()));
        assert_eq!(queue.take(), Some(SigInfo::without_reason(Signal::new(10).unwrap())));
        let mut of_root = Pending::default();
        while of_root.add(&mut queue.0, info(40, 1), 0, u64::MAX).is_ok() {}
        assert_eq!(queue.0.used(), ENTRIES);
        of_root.discard(&mut queue.0, Set(u64::MAX));
        queue.1.discard(&mut queue.0, Set(u64::MAX));
        assert_eq!((queue.0.used(), queue.1.set()), (0, Set::EMPTY));
    }

    #[test]
    fn discarded_signals_do_not_come_back() {
        let mut queue = Queue::new();
        for number in [40, 10, 40, 41] {
            queue.add(number, 1, 9).unwrap();
        }
        queue.1.discard(&mut queue.0, Signal::new(40).unwrap().set());
        queue.add(40, 2, 9).unwrap();
        let taken: Vec<_> = core::iter::from_fn(|| queue.take()).collect();
        assert_eq!(taken, [info(10, 1), info(40, 2), info(41, 1)]);
    }

    #[test]
    fn a_timer_keeps_its_entry_and_queues_it_beside_the_same_signal() {
        let Queue(mut entries, mut pending) = Queue::new();
        let timer = TimerIndex::at(3);
        let entry = entries.allocate_for_timer(timer, USER, 2).unwrap();
        pending.add(&mut entries, info(10, 1), USER, 2).unwrap();
        pending.add_of_timer(&mut entries, entry, info(10, 2));
        pending.add_of_timer(&mut entries, entry, info(10, 3));
        assert!(entries.is_queued(entry));
        let mut take = || pending.take(&mut entries, ALL).map(|taken| (taken.info, taken.timer));
        assert_eq!((take(), take(), take()), (Some((info(10, 1), None)), Some((info(10, 2), Some(timer))), None));
        assert_eq!((entries.is_queued(entry), entries.used()), (false, 1));
        entries.release_of_timer(entry);
        assert_eq!(entries.used(), 0);
    }

    #[test]
    fn a_successor_finds_whole_queues_and_frees_what_none_has() {
        let Queue(mut entries, mut pending) = Queue::new();
        let timer = entries.allocate_for_timer(TimerIndex::at(0), USER, 9).unwrap();
        pending.add_of_timer(&mut entries, timer, info(34, 1));
        pending.add(&mut entries, info(40, 2), USER, 9).unwrap();
        let lost = entries.allocate(USER, 9, Use::Signal).unwrap();
        pending.last = Some(lost);
        let mut recount = entries.begin_recount();
        pending.recount(&mut entries, &mut recount);
        entries.end_recount(&recount);
        assert_eq!((entries.used(), entries.is_queued(timer), entries.quota.held_by(USER)), (2, true, 2));
        pending.add(&mut entries, info(40, 3), USER, 9).unwrap();
        let taken: Vec<_> = core::iter::from_fn(|| pending.take(&mut entries, ALL).map(|taken| taken.info)).collect();
        assert_eq!(taken, [info(34, 1), info(40, 2), info(40, 3)]);
    }
}
