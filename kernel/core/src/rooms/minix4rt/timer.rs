//! Virtual timers: fixed in number, each with a deadline and an action that is run by priority.
//!
//! When a timer is over it is only put into the list of its owner's priority; the action runs when nothing better does, before threads and
//! interrupts of the same priority. A timer that is stopped while it is in a list stays there and does nothing.

use crate::{
    Machine, priority::SYSTEM_QUEUE, rooms::Kernel, rooms::minix4rt::NOBODY, rooms::minix4rt::interrupt,
    rooms::minix4rt::process, time::deadlines::Deadlines,
};

use abi::{rt::IRQS, rt::TIMERS};
use zerocopy::FromZeros;

/// What is done when the time is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromZeros)]
#[repr(u8)]
pub(super) enum Action {
    /// The timer is free.
    Free,
    /// The wait of this process ends.
    Timeout(u16),
    /// A period of this process begins, or its deadline has come.
    Period(u16),
    /// This interrupt is triggered.
    Interrupt(u16),
}

#[derive(Clone, Copy, Debug, FromZeros)]
struct Timer {
    action: Action,
    /// It is in such a list.
    is_over: bool,
    /// The action is not to be run.
    is_stopped: bool,
    /// When it was due, in ticks of the machine.
    due: u64,
}

/// Lists of what waits for its level: timers, numbered as they are, and interrupts from `FIRST_INTERRUPT` on. For each level one list of
/// timers, and behind it one of interrupts. 0: none.
#[derive(Debug, FromZeros)]
struct Lists {
    next: [u16; FIRST_INTERRUPT + IRQS],
    ends: [(u16, u16); LEVELS * 2],
}

const LEVELS: usize = SYSTEM_QUEUE as usize;
const FIRST_INTERRUPT: usize = TIMERS + 1;

impl Lists {
    fn put(&mut self, number: usize, list: usize) {
        self.next[number] = 0;
        let (first, last) = &mut self.ends[list];
        match core::mem::replace(last, number as u16) {
            0 => *first = number as u16,
            last => self.next[last as usize] = number as u16,
        }
    }

    fn take(&mut self, list: usize) -> Option<usize> {
        let (first, last) = &mut self.ends[list];
        let number = *first as usize;
        *first = self.next[number];
        if *first == 0 {
            *last = 0;
        }
        (number != 0).then_some(number)
    }
}

/// All virtual timers. Number 0 stands for none.
#[derive(Debug, FromZeros)]
pub(super) struct Timers {
    deadlines: Deadlines<{ TIMERS + 1 }>,
    timers: [Timer; TIMERS + 1],
    over: Lists,
    /// Timers in use.
    pub used: usize,
}

const _: () = assert!(TIMERS < u8::MAX as usize);

impl Timers {
    /// Takes a free timer.
    pub fn take(&mut self, action: Action) -> Option<u8> {
        let free = (1..=TIMERS).find(|&id| self.timers[id].action == Action::Free && !self.timers[id].is_over)?;
        self.timers[free].action = action;
        self.used += 1;
        Some(free as u8)
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
    pub fn cancel(&mut self, id: usize) {
        self.deadlines.cancel(id);
        self.timers[id].is_stopped = true;
    }

    /// Puts a timer that is over behind the others of its level.
    fn put(&mut self, id: usize, level: u8, due: u64) {
        let timer = &mut self.timers[id];
        (timer.is_stopped, timer.due) = (false, due);
        if !core::mem::replace(&mut timer.is_over, true) {
            self.over.put(id, level as usize * 2);
        }
    }

    /// Takes the first one of a level out: what is to be done, and since when.
    fn take_over(&mut self, level: usize) -> Option<(Action, u64)> {
        let timer = &mut self.timers[self.over.take(level * 2)?];
        timer.is_over = false;
        Some((if timer.is_stopped { Action::Free } else { timer.action }, timer.due))
    }

    /// Puts an interrupt's second stage behind the others of its level.
    pub fn put_interrupt(&mut self, irq: usize, level: u8) {
        self.over.put(FIRST_INTERRUPT + irq, level as usize * 2 + 1);
    }

    /// Takes the first one of a level out.
    pub fn take_interrupt(&mut self, level: usize) -> Option<usize> {
        Some(self.over.take(level * 2 + 1)? - FIRST_INTERRUPT)
    }
}

/// Where work for threads of a priority is: before them, and behind all better ones.
pub(super) fn level(priority: u8) -> u8 {
    priority.saturating_sub(1).min(SYSTEM_QUEUE - 1)
}

/// Sets a virtual timer, and makes sure that the machine's comes for it.
#[inline(always)]
pub fn set_timer<M: Machine>(kernel: &mut Kernel, m: &mut M, id: usize, deadline: u64) {
    kernel.mrt.timers.deadlines.set(id, deadline);
    kernel.node.timer.arm(m, deadline);
}

/// Real-time timers that are due at `now`: hands them over to their priorities.
pub fn expire_timers<M: Machine>(kernel: &mut Kernel, m: &mut M, now: u64) {
    while let Some((id, due)) = kernel.mrt.timers.deadlines.expire(now) {
        kernel.mrt.system.lateness = kernel.mrt.system.lateness.max(now - due);
        let level = timer_level(kernel, kernel.mrt.timers.timers[id].action);
        kernel.mrt.timers.put(id, level, due);
        kernel.node.threads.defer(level);
    }
    if let Some(deadline) = kernel.mrt.timers.deadlines.first_deadline() {
        kernel.node.timer.arm(m, deadline);
    }
}

fn timer_level(kernel: &Kernel, action: Action) -> u8 {
    match action {
        Action::Timeout(process) | Action::Period(process) if process != NOBODY => {
            level(kernel.node.threads[kernel.mrt.processes[process as usize].thread as usize].base_queue)
        }
        Action::Interrupt(irq) => kernel.mrt.interrupts.level(irq as usize),
        _ => SYSTEM_QUEUE - 1,
    }
}

/// Runs one action of this priority, a timer's before an interrupt's.
pub fn do_real_time_work<M: Machine>(kernel: &mut Kernel, m: &mut M, priority: u8) {
    match kernel.mrt.timers.take_over(priority as usize) {
        Some((Action::Timeout(process), _)) => process::end_time_limit(kernel, m, process),
        Some((Action::Period(process), due)) => process::begin_period(kernel, m, process, due),
        Some((Action::Interrupt(irq), due)) => interrupt::trigger_by_timer(kernel, m, irq as usize, due),
        Some((Action::Free, _)) => {}
        None if interrupt::run_second_stage(kernel, m, priority as usize) => {}
        None => kernel.node.threads.end_deferred(priority),
    }
}
