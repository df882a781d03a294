//! The POSIX timers of all processes (timer_create(2)), in one table: a timer's id is its position.
//!
//! A timer owns the queue entry of its signal, which is charged to the user of its process: RLIMIT_SIGPENDING bounds the timers of a user.

use super::index::ProcessIndex;
use super::intervals::Interval;
use super::signal::Signal;
use super::signal::pending::EntryIndex;
use abi::Errno;
use alloc::vec::Vec;
use sys::fallible::TryVec;

/// Timers of all processes.
pub const TIMERS: usize = 4096;
/// Timers that only root gets.
const RESERVED: usize = 256;

/// Position of a timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimerIndex(u16);

impl TimerIndex {
    /// As position in a table.
    pub fn get(self) -> usize {
        self.0 as usize
    }

    /// The index with this position.
    ///
    /// # Panics
    /// When it does not fit; positions come from the table itself.
    pub fn at(position: usize) -> TimerIndex {
        TimerIndex(u16::try_from(position).expect("timer tables are small"))
    }
}

/// The clock that a timer runs by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimerClock {
    /// Monotonic time.
    Monotonic,
    /// The wall clock. Deadlines are kept in monotonic time.
    Real,
    /// The processor time of its process.
    Process,
    /// The processor time of the thread with this id.
    Thread(u32),
}

/// A POSIX timer.
#[derive(Clone, Copy, Debug)]
pub struct PosixTimer {
    /// Whose it is.
    pub process: ProcessIndex,
    /// What it runs by.
    pub clock: TimerClock,
    /// The signal; `None`: nobody is told.
    pub signal: Option<Signal>,
    /// The thread that gets it; `None`: any of the process.
    pub tid: Option<u32>,
    /// `sigev_value`; `None`: its id.
    pub value: Option<u64>,
    /// Deadline and period by its clock. A deadline that has passed stays until the signal is taken.
    pub interval: Interval,
    /// Expiries that the last signal stood for, beyond the first.
    pub overruns: u32,
    /// The queue entry of its signal.
    pub entry: EntryIndex,
}

/// All POSIX timers.
#[derive(Default)]
pub struct PosixTimers {
    places: Vec<Option<PosixTimer>>,
    /// No place below is free.
    lowest_free: usize,
}

impl PosixTimers {
    /// A free place for a timer. `EAGAIN`.
    pub fn free_place(&mut self, for_root: bool) -> Result<TimerIndex, Errno> {
        let end = if for_root { TIMERS } else { TIMERS - RESERVED };
        let later = self.places.iter().skip(self.lowest_free).position(Option::is_none);
        self.lowest_free = later.map_or(self.places.len(), |at| self.lowest_free + at);
        if self.lowest_free >= end {
            return Err(Errno::EAGAIN);
        }
        if self.lowest_free == self.places.len() {
            self.places.try_push(None).map_err(|_| Errno::EAGAIN)?;
        }
        Ok(TimerIndex::at(self.lowest_free))
    }

    /// Puts a timer in a free place.
    pub fn insert(&mut self, at: TimerIndex, timer: PosixTimer) {
        self.places[at.get()] = Some(timer);
    }

    /// Takes a timer out.
    pub fn remove(&mut self, at: TimerIndex) {
        self.lowest_free = self.lowest_free.min(at.get());
        self.places[at.get()] = None;
    }

    /// The timer at a position.
    pub fn get(&self, at: TimerIndex) -> Option<&PosixTimer> {
        self.places.get(at.get()).and_then(Option::as_ref)
    }

    /// The timer at a position, to be changed.
    pub fn get_mut(&mut self, at: TimerIndex) -> Option<&mut PosixTimer> {
        self.places.get_mut(at.get()).and_then(Option::as_mut)
    }

    /// The timer that a process knows by this id. `EINVAL`.
    pub fn find(&self, process: ProcessIndex, id: u64) -> Result<TimerIndex, Errno> {
        let at = u16::try_from(id & 0xffff_ffff).map_err(|_| Errno::EINVAL)?;
        let owner = self.get(TimerIndex(at)).map(|timer| timer.process);
        if owner == Some(process) { Ok(TimerIndex(at)) } else { Err(Errno::EINVAL) }
    }

    /// Number of timers of a process.
    pub fn count_of(&self, process: ProcessIndex) -> u32 {
        self.places.iter().flatten().filter(|timer| timer.process == process).count() as u32
    }

    /// The first timer of a process at `from` or behind it.
    pub fn next_of(&self, process: ProcessIndex, from: usize) -> Option<TimerIndex> {
        let places = self.places.iter().enumerate().skip(from);
        let mut own = places.filter(|(_, place)| place.as_ref().is_some_and(|timer| timer.process == process));
        own.next().map(|(at, _)| TimerIndex::at(at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::signal::pending::Entries;

    #[test]
    fn ids_are_found_by_their_process_alone_and_used_again() {
        let (mut timers, mut entries) = (PosixTimers::default(), Entries::new());
        let [one, other] = [0, 1].map(ProcessIndex::at);
        let mut add = |timers: &mut PosixTimers, process| {
            let at = timers.free_place(false).unwrap();
            let entry = entries.allocate_for_timer(at, 0, 9).unwrap();
            let (clock, interval) = (TimerClock::Monotonic, Interval::default());
            let timer =
                PosixTimer { process, clock, signal: None, tid: None, value: None, interval, overruns: 0, entry };
            timers.insert(at, timer);
            at
        };
        let ids = [one, other, one].map(|process| add(&mut timers, process));
        assert_eq!(timers.find(one, 0), Ok(ids[0]));
        assert_eq!((timers.find(one, 1), timers.find(one, 70_000)), (Err(Errno::EINVAL), Err(Errno::EINVAL)));
        assert_eq!((timers.next_of(one, 1), timers.next_of(other, 2)), (Some(ids[2]), None));
        timers.remove(ids[0]);
        assert_eq!(timers.find(one, 0), Err(Errno::EINVAL));
        assert_eq!((add(&mut timers, other), add(&mut timers, other).get()), (ids[0], 3));
    }

    #[test]
    fn the_last_places_are_for_root() {
        let mut timers = PosixTimers { places: Vec::new(), lowest_free: TIMERS - RESERVED };
        timers.places.resize_with(TIMERS - RESERVED, || None);
        assert_eq!(timers.free_place(false), Err(Errno::EAGAIN));
        assert!(timers.free_place(true).is_ok());
    }
}
