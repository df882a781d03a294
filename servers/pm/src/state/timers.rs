//! The timers of all programs in one binary heap, so that pm needs one kernel alarm: for the earliest.
//!
//! A key has at most one timer. `positions` tells where in the heap it is, so that setting and cancelling cost the logarithm of the
//! number of timers; both vectors have their full size from the start, so that neither allocates.

use super::index::{PROCESSES, ProcessIndex, THREADS, ThreadIndex};
use super::posix_timers::{TIMERS, TimerIndex};
use super::scheduling::QUEUES;
use alloc::vec::Vec;
use sys::fallible::TryVec;

/// What a timer is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// End of a thread's sleep or timed wait.
    Wake(ThreadIndex),
    /// ITIMER_REAL of a process.
    Real(ProcessIndex),
    /// A POSIX timer.
    Posix(TimerIndex),
    /// Time to look at the processor time that a POSIX timer runs by.
    PosixProcessor(TimerIndex),
    /// Time to look at what containers use of the processor.
    Containers,
    /// Time to look at the processor time of a process with ITIMER_VIRTUAL, ITIMER_PROF or RLIMIT_CPU.
    Processor(ProcessIndex),
}

const FIRST_REAL: usize = THREADS;
const FIRST_PROCESSOR: usize = FIRST_REAL + PROCESSES;
const FIRST_POSIX: usize = FIRST_PROCESSOR + PROCESSES;
const CONTAINERS: usize = FIRST_POSIX + TIMERS;
const KEYS: usize = CONTAINERS + 1;

impl Key {
    fn get(self) -> usize {
        match self {
            Key::Wake(t) => t.get(),
            Key::Containers => CONTAINERS,
            Key::Real(p) => FIRST_REAL + p.get(),
            Key::Processor(p) => FIRST_PROCESSOR + p.get(),
            Key::Posix(timer) | Key::PosixProcessor(timer) => FIRST_POSIX + timer.get(),
        }
    }
}

/// The position of a key without a timer.
const NOWHERE: u16 = u16::MAX;

#[derive(Clone, Copy)]
struct Entry {
    deadline_ns: u64,
    key: Key,
    /// The real-time queue of whoever waits for it; 0: time shared.
    queue: u8,
}

/// Ordered timers, and the kernel's alarm for the earliest. Times are monotonic nanoseconds.
pub struct Timers {
    /// No entry is earlier than its parent, which is at half its position.
    heap: Vec<Entry>,
    /// Where the timer of each key is.
    positions: Vec<u16>,
    /// Timers of each real-time queue; those of queue 0 are not counted.
    of_queue: [u16; QUEUES],
    /// The queues that have timers.
    queues: u64,
    /// Timers that look at processor times.
    processor: u32,
    /// The alarm may have to change.
    changed: bool,
    /// The alarm that is set: its deadline, and the queue that is to run then.
    armed: (Option<u64>, u8),
}

impl Timers {
    /// No timers.
    #[expect(clippy::disallowed_macros, clippy::disallowed_methods, reason = "at the start")]
    pub fn new() -> Timers {
        Timers {
            heap: Vec::with_capacity(KEYS),
            positions: alloc::vec![NOWHERE; KEYS],
            of_queue: [0; QUEUES],
            queues: 0,
            processor: 0,
            changed: false,
            armed: (None, 0),
        }
    }

    /// Sets the timer of a key, in place of the one that it had. `queue`: the real-time queue of whoever waits; 0: time shared.
    pub fn set(&mut self, deadline_ns: u64, key: Key, queue: u8) {
        self.cancel(key);
        self.count(key, queue, true);
        self.heap.push_reserved(Entry { deadline_ns, key, queue });
        self.rise(self.heap.len() - 1);
        self.changed = true;
    }

    /// Removes the timer of a key; nothing happens when it has none.
    pub fn cancel(&mut self, key: Key) {
        let at = self.positions[key.get()];
        if at != NOWHERE {
            self.remove(at as usize);
        }
    }

    /// Whether a key has a timer.
    pub fn is_set(&self, key: Key) -> bool {
        self.positions[key.get()] != NOWHERE
    }

    /// The real-time queue of whoever waits for the timer of a key, if it has one, is another.
    pub fn requeue(&mut self, key: Key, queue: u8) {
        let at = self.positions[key.get()] as usize;
        if let Some(entry) = self.heap.get_mut(at) {
            let (key, old) = (entry.key, core::mem::replace(&mut entry.queue, queue));
            self.count(key, old, false);
            self.count(key, queue, true);
            self.changed = true;
        }
    }

    /// Number of timers that look at processor times.
    pub fn processor_timers(&self) -> u32 {
        self.processor
    }

    fn count(&mut self, key: Key, queue: u8, is_added: bool) {
        if matches!(key, Key::Processor(_) | Key::PosixProcessor(_)) {
            self.processor = self.processor.wrapping_add_signed(if is_added { 1 } else { -1 });
        }
        let queue = queue as usize;
        if queue != 0 {
            self.of_queue[queue] = self.of_queue[queue].wrapping_add_signed(if is_added { 1 } else { -1 });
            let bit = u64::from(self.of_queue[queue] != 0) << queue;
            self.queues = self.queues & !(1 << queue) | bit;
        }
    }

    fn remove(&mut self, at: usize) -> Key {
        let Entry { key, queue, .. } = self.heap.swap_remove(at);
        self.positions[key.get()] = NOWHERE;
        self.count(key, queue, false);
        if at < self.heap.len() {
            let at = self.rise(at);
            self.sink(at);
        }
        self.changed = true;
        key
    }

    fn place(&mut self, at: usize, entry: Entry) {
        self.heap[at] = entry;
        self.positions[entry.key.get()] = at as u16;
    }

    /// Moves an entry up to where its parent is not later. Returns where that is.
    fn rise(&mut self, mut at: usize) -> usize {
        let entry = self.heap[at];
        while at > 0 && self.heap[(at - 1) / 2].deadline_ns > entry.deadline_ns {
            let parent = (at - 1) / 2;
            self.place(at, self.heap[parent]);
            at = parent;
        }
        self.place(at, entry);
        at
    }

    /// Moves an entry down to where no child is earlier.
    fn sink(&mut self, mut at: usize) {
        let entry = self.heap[at];
        let earlier_child = |heap: &[Entry], at: usize| {
            let child = 2 * at + 1;
            let is_second = heap.get(child + 1).is_some_and(|second| second.deadline_ns < heap[child].deadline_ns);
            child + usize::from(is_second)
        };
        while 2 * at + 1 < self.heap.len() {
            let child = earlier_child(&self.heap, at);
            if self.heap[child].deadline_ns >= entry.deadline_ns {
                break;
            }
            self.place(at, self.heap[child]);
            at = child;
        }
        self.place(at, entry);
    }

    /// The earliest deadline; `None` without timers.
    fn next_deadline(&self) -> Option<u64> {
        self.heap.first().map(|entry| entry.deadline_ns)
    }

    /// The best real-time queue of all who wait for timers; 0: all are time shared.
    fn best_queue(&self) -> u8 {
        if self.queues == 0 { 0 } else { self.queues.trailing_zeros() as u8 }
    }

    /// Whether timers have changed since this was asked last.
    #[inline]
    pub fn have_changed(&mut self) -> bool {
        core::mem::take(&mut self.changed)
    }

    /// The deadline (or none) that the kernel's alarm has to be set to, and the real-time queue it is for; `None` when it is set so already.
    pub fn alarm_to_set(&mut self) -> Option<(Option<u64>, u8)> {
        let next = (self.next_deadline(), self.best_queue());
        let is_new = next != self.armed;
        self.armed = next;
        is_new.then_some(next)
    }

    /// The alarm has fired, or was lost with pm's predecessor.
    pub fn alarm_fired(&mut self) {
        self.armed.0 = None;
        self.changed = true;
    }

    /// Removes all timers.
    pub fn clear(&mut self) {
        self.heap.clear();
        self.positions.fill(NOWHERE);
        self.of_queue.fill(0);
        self.queues = 0;
        self.processor = 0;
    }

    /// Removes and returns the earliest timer if it has expired.
    pub fn pop_expired(&mut self, now_ns: u64) -> Option<Key> {
        self.next_deadline().filter(|deadline| *deadline <= now_ns)?;
        Some(self.remove(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn wake(n: usize) -> Key {
        Key::Wake(ThreadIndex::at(n))
    }

    #[test]
    fn timers_fire_in_order_of_their_deadlines() {
        let mut timers = Timers::new();
        for (deadline, n) in [(30, 1), (10, 2), (20, 3), (11, 4)] {
            timers.set(deadline, wake(n), 0);
        }
        assert_eq!(timers.next_deadline(), Some(10));
        assert_eq!(timers.pop_expired(9), None);
        let fired: Vec<_> = core::iter::from_fn(|| timers.pop_expired(25)).collect();
        assert_eq!(fired, [wake(2), wake(4), wake(3)]);
        assert_eq!(timers.next_deadline(), Some(30));
    }

    #[test]
    fn a_cancelled_timer_does_not_fire_and_others_stay() {
        let mut timers = Timers::new();
        timers.set(10, wake(1), 0);
        timers.set(10, wake(2), 0);
        timers.cancel(wake(1));
        timers.cancel(wake(3));
        assert!(timers.is_set(wake(2)) && !timers.is_set(wake(1)));
        assert_eq!(timers.pop_expired(100), Some(wake(2)));
        assert_eq!(timers.pop_expired(100), None);
    }

    #[test]
    fn a_key_has_one_timer() {
        let mut timers = Timers::new();
        timers.set(10, wake(1), 0);
        timers.set(20, wake(1), 0);
        assert_eq!((timers.pop_expired(19), timers.pop_expired(20)), (None, Some(wake(1))));
        assert_eq!(timers.next_deadline(), None);
    }

    #[test]
    fn the_alarm_is_for_the_best_queue_that_has_a_timer() {
        let mut timers = Timers::new();
        timers.set(30, wake(1), 7);
        timers.set(10, wake(2), 0);
        assert_eq!(timers.alarm_to_set(), Some((Some(10), 7)));
        timers.set(20, wake(3), 5);
        assert_eq!(timers.alarm_to_set(), Some((Some(10), 5)));
        assert_eq!(timers.alarm_to_set(), None);
        timers.requeue(wake(3), 9);
        timers.requeue(wake(4), 3);
        assert_eq!(timers.alarm_to_set(), Some((Some(10), 7)));
        timers.cancel(wake(1));
        timers.cancel(wake(3));
        assert_eq!(timers.alarm_to_set(), Some((Some(10), 0)));
    }

    #[test]
    fn random_changes_leave_an_ordered_heap() {
        let (mut timers, mut model) = (Timers::new(), BTreeMap::new());
        let mut state = 12345u64;
        for _ in 0..20_000 {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let (key, deadline) = ((state >> 33) as usize % 300, state >> 50);
            if state >> 20 & 3 == 0 {
                timers.cancel(wake(key));
                model.remove(&key);
            } else {
                timers.set(deadline, wake(key), 0);
                model.insert(key, deadline);
            }
            assert_eq!(timers.next_deadline(), model.values().min().copied());
        }
        let mut fired: Vec<_> = core::iter::from_fn(|| timers.pop_expired(u64::MAX)).collect();
        fired.sort_by_key(|key| key.get());
        assert_eq!(fired, model.into_keys().map(wake).collect::<Vec<_>>());
    }
}
