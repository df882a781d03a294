//! Virtual timers (R24, R25): fixed in number, each with a deadline and an action that is run by priority.
//!
//! When a timer is over it is only put into the list of its owner's priority; the action runs when nothing better does, before threads and
//! interrupts of the same priority. A timer that is stopped while it is in a list stays there and does nothing.

use abi::rt::TIMERS;

use crate::{Machine, Node, deadlines::Deadlines, scheduler::SYSTEM_QUEUE};

use super::NOBODY;

/// What is done when the time is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// The timer is free.
    Free,
    /// Idle time is sampled.
    Sample,
    /// The wait of this process ends.
    Timeout(u16),
    /// A period of this process begins, or its deadline is there.
    Period(u16),
    /// This interrupt is triggered.
    Interrupt(u16),
}

#[derive(Clone, Copy, Debug)]
struct Timer {
    action: Action,
    /// Next in the list of those that are over.
    next: u8,
    /// It is in such a list.
    is_over: bool,
    /// The action is not to be run.
    is_stopped: bool,
    /// When it was due, in ticks of the machine.
    due: u64,
}

/// First and last of a list of timers; 0: none.
#[derive(Clone, Copy, Debug)]
struct Fifo {
    first: u8,
    last: u8,
}

/// All virtual timers. Number 0 stands for none, number 1 is that of the sampling.
#[derive(Debug)]
pub(super) struct Timers {
    deadlines: Deadlines<{ TIMERS + 1 }>,
    timers: [Timer; TIMERS + 1],
    over: [Fifo; SYSTEM_QUEUE as usize],
    used: u16,
}

/// The timer of the sampling.
pub(super) const SAMPLING: usize = 1;
const _: () = assert!(TIMERS < u8::MAX as usize);

impl Timers {
    pub const fn new() -> Timers {
        let free = Timer { action: Action::Free, next: 0, is_over: false, is_stopped: false, due: 0 };
        Timers {
            deadlines: Deadlines::new(),
            timers: [free; TIMERS + 1],
            over: [Fifo { first: 0, last: 0 }; SYSTEM_QUEUE as usize],
            used: 0,
        }
    }

    /// How many are free.
    pub fn free(&self) -> usize {
        TIMERS - self.used as usize
    }

    /// Takes a free timer.
    pub fn take(&mut self, action: Action) -> Option<u8> {
        let free =
            (SAMPLING + 1..=TIMERS).find(|&id| self.timers[id].action == Action::Free && !self.timers[id].is_over)?;
        self.timers[free].action = action;
        self.used += 1;
        Some(free as u8)
    }

    /// The timer of the sampling is in use from now on.
    pub fn begin_sampling(&mut self) {
        let timer = &mut self.timers[SAMPLING];
        self.used += (timer.action == Action::Free) as u16;
        timer.action = Action::Sample;
    }

    /// Gives a timer back; 0: none.
    pub fn give_back(&mut self, id: u8) {
        if id != 0 {
            self.cancel(id as usize);
            self.timers[id as usize].action = Action::Free;
            self.used -= 1;
        }
    }

    #[inline(always)]
    pub fn set(&mut self, id: usize, deadline: u64) {
        self.deadlines.set(id, deadline);
    }

    #[inline(always)]
    pub fn cancel(&mut self, id: usize) {
        self.deadlines.cancel(id);
        self.timers[id].is_stopped = true;
    }

    /// The earliest deadline.
    pub fn first_deadline(&self) -> Option<u64> {
        self.deadlines.first_deadline()
    }

    /// Puts a timer that is over behind the others of its priority.
    fn put(&mut self, id: u8, priority: u8, due: u64) {
        let timer = &mut self.timers[id as usize];
        timer.is_stopped = false;
        timer.due = due;
        if core::mem::replace(&mut timer.is_over, true) {
            return;
        }
        timer.next = 0;
        let list = &mut self.over[priority as usize];
        match core::mem::replace(&mut list.last, id) {
            0 => list.first = id,
            last => self.timers[last as usize].next = id,
        }
    }

    /// Takes the first one of a priority out: what is to be done, and since when.
    pub fn take_over(&mut self, priority: usize) -> Option<(Action, u64)> {
        let first = self.over[priority].first;
        if first == 0 {
            return None;
        }
        let timer = &mut self.timers[first as usize];
        timer.is_over = false;
        self.over[priority].first = timer.next;
        if timer.next == 0 {
            self.over[priority].last = 0;
        }
        Some((if timer.is_stopped { Action::Free } else { timer.action }, timer.due))
    }
}

/// Where work for threads of a priority is: before them, and behind all better ones.
pub(super) fn level(priority: u8) -> u8 {
    priority.saturating_sub(1).min(SYSTEM_QUEUE - 1)
}

impl Node {
    /// Real-time timers that are due at `now`: hands them over to their priorities.
    pub(crate) fn expire_timers<M: Machine>(&mut self, m: &mut M, now: u64) {
        while let Some((id, due)) = self.mrt.timers.deadlines.expire(now) {
            self.mrt.system.note_lateness(now - due);
            let level = self.timer_level(self.mrt.timers.timers[id].action);
            self.mrt.timers.put(id as u8, level, due);
            self.defer(level);
        }
        if let Some(deadline) = self.mrt.timers.first_deadline() {
            self.arm(m, deadline);
        }
    }

    fn timer_level(&self, action: Action) -> u8 {
        match action {
            Action::Timeout(process) | Action::Period(process) if process != NOBODY => {
                level(self.threads[self.mrt.processes[process as usize].thread as usize].base_queue)
            }
            Action::Interrupt(irq) => self.mrt.interrupts.level(irq as usize),
            _ => SYSTEM_QUEUE - 1,
        }
    }

    /// Runs one action of this priority, a timer's before an interrupt's.
    pub(super) fn do_real_time_work<M: Machine>(&mut self, m: &mut M, priority: usize) {
        match self.mrt.timers.take_over(priority) {
            Some((Action::Timeout(process), _)) => self.end_time_limit(process),
            Some((Action::Period(process), due)) => self.begin_period(m, process, due),
            Some((Action::Interrupt(irq), due)) => self.trigger_by_timer(m, irq as usize, due),
            Some((Action::Sample, due)) => self.sample_idle_time(m, due),
            Some((Action::Free, _)) => {}
            None if self.run_second_stage(m, priority) => {}
            None => self.deferred &= !(1 << priority),
        }
    }
}
