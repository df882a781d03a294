//! Deadlines: alarms (`SetAlarm`) and the time limits of futex waits, as a binary heap with the earliest on top.
//!
//! A thread has at most one deadline of each kind and knows their places in the heap, so that both can be cancelled at
//! once. Neighbours: `scheduler` (arms the timer for the earliest), `notify`, `futex`.

use abi::{
    Endpoint, Errno,
    endpoint::{SLOTS, slot},
};

use crate::{Machine, Node, Thread};

/// What happens at a deadline; index into `Thread::alarms`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A notification from CLOCK.
    Alarm = 0,
    /// A futex wait ends with `ETIMEDOUT`.
    Futex = 1,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    deadline: u64,
    slot: u16,
    kind: Kind,
}

const ENTRIES: usize = 2 * SLOTS;

/// All deadlines.
#[derive(Debug)]
pub(crate) struct Alarms {
    heap: [Entry; ENTRIES],
    count: usize,
}

impl Alarms {
    pub const fn new() -> Alarms {
        Alarms { heap: [Entry { deadline: 0, slot: 0, kind: Kind::Alarm }; ENTRIES], count: 0 }
    }

    /// The earliest deadline, in ticks.
    pub fn first_deadline(&self) -> Option<u64> {
        (self.count > 0).then(|| self.heap[0].deadline)
    }

    /// Sets the deadline of this kind, in place of the one before.
    pub fn set(&mut self, threads: &mut [Thread], slot: usize, kind: Kind, deadline: u64) {
        self.cancel(threads, slot, kind);
        let at = self.count;
        self.count += 1;
        self.place(threads, at, Entry { deadline, slot: slot as u16, kind });
        self.sift_up(threads, at);
    }

    /// Forgets the deadline of this kind, if there is one.
    pub fn cancel(&mut self, threads: &mut [Thread], slot: usize, kind: Kind) {
        let place = core::mem::take(&mut threads[slot].alarms[kind as usize]) as usize;
        if place == 0 {
            return;
        }
        let at = place - 1;
        self.count -= 1;
        if at == self.count {
            return;
        }
        let last = self.heap[self.count];
        self.place(threads, at, last);
        self.sift_up(threads, at);
        self.sift_down(threads, at);
    }

    /// Takes out one deadline that is not after `now`.
    fn expire(&mut self, threads: &mut [Thread], now: u64) -> Option<(usize, Kind)> {
        let first = self.heap[0];
        if self.count == 0 || first.deadline > now {
            return None;
        }
        self.cancel(threads, first.slot as usize, first.kind);
        Some((first.slot as usize, first.kind))
    }

    fn place(&mut self, threads: &mut [Thread], at: usize, entry: Entry) {
        self.heap[at] = entry;
        threads[entry.slot as usize].alarms[entry.kind as usize] = at as u16 + 1;
    }

    fn swap(&mut self, threads: &mut [Thread], a: usize, b: usize) {
        let (first, second) = (self.heap[a], self.heap[b]);
        self.place(threads, a, second);
        self.place(threads, b, first);
    }

    fn sift_up(&mut self, threads: &mut [Thread], mut at: usize) {
        while at > 0 && self.heap[at].deadline < self.heap[(at - 1) / 2].deadline {
            self.swap(threads, at, (at - 1) / 2);
            at = (at - 1) / 2;
        }
    }

    fn sift_down(&mut self, threads: &mut [Thread], mut at: usize) {
        loop {
            let children = 2 * at + 1..(2 * at + 3).min(self.count);
            let Some(child) = children.min_by_key(|&child| self.heap[child].deadline) else { return };
            if self.heap[at].deadline <= self.heap[child].deadline {
                return;
            }
            self.swap(threads, at, child);
            at = child;
        }
    }
}

impl Node {
    /// Monotonic time.
    pub(crate) fn now_ns<M: Machine>(&self, m: &mut M) -> u64 {
        let ticks = m.ticks();
        m.ticks_to_ns(ticks)
    }

    /// `SetAlarm`: one notification from CLOCK at this monotonic time, in place of the alarm before; 0: none.
    pub(crate) fn set_alarm<M: Machine>(&mut self, m: &mut M, slot: usize, deadline_ns: u64) -> Result<u64, Errno> {
        match deadline_ns {
            0 => self.alarms.cancel(&mut self.threads, slot, Kind::Alarm),
            _ => self.set_deadline(m, slot, Kind::Alarm, deadline_ns),
        }
        Ok(0)
    }

    /// Sets a deadline in monotonic time and makes sure that the timer comes for it.
    pub(crate) fn set_deadline<M: Machine>(&mut self, m: &mut M, slot: usize, kind: Kind, deadline_ns: u64) {
        let now = m.ticks();
        let wait_ns = deadline_ns.saturating_sub(m.ticks_to_ns(now));
        let deadline = now.saturating_add(m.ns_to_ticks(wait_ns));
        self.alarms.set(&mut self.threads, slot, kind, deadline);
        self.arm(m, deadline);
    }

    /// Does what is due at `now` (ticks).
    pub(crate) fn expire_alarms<M: Machine>(&mut self, m: &mut M, now: u64) {
        while let Some((slot, kind)) = self.alarms.expire(&mut self.threads, now) {
            match kind {
                Kind::Alarm if slot == slot::RS => self.remind_rs(m, now),
                Kind::Alarm => self.post(m, slot, slot::CLOCK, Endpoint::CLOCK),
                Kind::Futex => self.futex_time_is_up(slot),
            }
        }
    }
}
