//! Interrupts in the real-time world (R13 to R16, R21) and the interrupts of ordinary drivers, which must not disturb it (R7 to R10).
//!
//! A descriptor says what real-time wants with a line. Its first stage, here, counts the arrival; event-driven it queues the second stage, a message
//! to the task or a wake-up, at the descriptor's priority; timer-driven the period timer does that when something has arrived. The tick of the
//! time-shared world is a timer-driven software interrupt. A driver may use the same line.
//! A driver's interrupt that comes while something real-time is ready is recorded, and its line masked as its driver wants it; when nothing real-time
//! is ready all are delivered in the order of their arrival. Neighbours: `line` (drivers), `timer`.

use abi::{
    Errno,
    rt::{self, HARDWARE_IRQS, IRQS, IrqStatistics, TICK_IRQ, TIMERS, control, irq, message},
};

use crate::{Machine, Node, line::LINES, scheduler::SYSTEM_QUEUE};

use super::{
    NOBODY,
    control::Words,
    error,
    timer::{Action, level},
};

#[derive(Clone, Copy, Debug)]
struct Descriptor {
    kind: u64,
    period: u64,
    priority: u8,
    timer: u8,
    task: u16,
    watchdog: u16,
    name: [u64; 2],
    /// Arrivals of this period.
    shower: u64,
    /// Bits of `irq`: `ENQUEUED`, `TRIGGERED`.
    state: u64,
    /// When its second stage was queued, in ticks of the machine.
    since: u64,
    statistics: IrqStatistics,
}

const UNUSED: Descriptor = Descriptor {
    kind: irq::NRTIRQ,
    period: 0,
    priority: 0,
    timer: 0,
    task: NOBODY,
    watchdog: NOBODY,
    name: [0; 2],
    shower: 0,
    state: 0,
    since: 0,
    statistics: IrqStatistics::ZERO,
};

/// All descriptors, and what the time-shared world has to wait for.
#[derive(Debug)]
pub(super) struct Interrupts {
    descriptors: [Descriptor; IRQS],
    /// Drivers' lines that have fired, in order; each at most once.
    recorded: [u8; LINES],
    first: usize,
    count: usize,
    pub is_recorded: [u64; LINES / 64],
    /// Alarms and balance are due.
    pub clock_waits: bool,
}

impl Interrupts {
    pub const fn new() -> Interrupts {
        Interrupts {
            descriptors: [UNUSED; IRQS],
            recorded: [0; LINES],
            first: 0,
            count: 0,
            is_recorded: [0; LINES / 64],
            clock_waits: false,
        }
    }

    /// Where a descriptor's second stage is queued.
    pub fn level(&self, number: usize) -> u8 {
        level(self.descriptors[number].priority)
    }

    fn record(&mut self, line: usize) {
        let bit = 1 << (line % 64);
        if self.is_recorded[line / 64] & bit == 0 {
            self.is_recorded[line / 64] |= bit;
            self.recorded[(self.first + self.count) % LINES] = line as u8;
            self.count += 1;
        }
    }

    fn take_recorded(&mut self) -> Option<usize> {
        self.count = self.count.checked_sub(1)?;
        let line = self.recorded[self.first] as usize;
        self.first = (self.first + 1) % LINES;
        self.is_recorded[line / 64] &= !(1 << (line % 64));
        Some(line)
    }
}

impl Node {
    /// An interrupt has come on this line: what real-time wants of it is done, what drivers want when their time comes.
    pub(crate) fn take_interrupt<M: Machine>(&mut self, m: &mut M, line: usize) {
        if line < HARDWARE_IRQS && self.mrt.interrupts.descriptors[line].kind != irq::NRTIRQ {
            self.first_stage(m, line);
        }
        if self.is_real_time_ready() {
            self.mask_as_driver_wants(m, line);
            self.mrt.interrupts.record(line);
            self.defer(SYSTEM_QUEUE);
        } else {
            self.deliver_interrupt(m, line);
        }
    }

    /// The time-shared world has the CPU again: its clock, and its interrupts in order.
    pub(super) fn do_ordinary_work<M: Machine>(&mut self, m: &mut M) {
        if core::mem::take(&mut self.mrt.interrupts.clock_waits) {
            self.do_clock_work(m);
        }
        while let Some(line) = self.mrt.interrupts.take_recorded() {
            self.deliver_interrupt(m, line);
        }
    }

    /// The clock of the time-shared world has work: it waits while a process of MINIX4RT is ready.
    pub(crate) fn put_off_clock_work(&mut self) -> bool {
        let waits = self.mrt.system.active != 0 && self.is_real_time_ready();
        if waits {
            self.mrt.interrupts.clock_waits = true;
            self.defer(SYSTEM_QUEUE);
        }
        waits
    }

    fn first_stage<M: Machine>(&mut self, m: &mut M, number: usize) {
        let now = m.ticks();
        let tick = self.mrt.system.tick_at(now);
        let descriptor = &mut self.mrt.interrupts.descriptors[number];
        descriptor.statistics.count += 1;
        descriptor.statistics.timestamp = tick;
        descriptor.shower += 1;
        if descriptor.kind & irq::TDIRQ != 0 {
            descriptor.state |= irq::TRIGGERED;
        } else {
            self.queue_second_stage(number, now);
        }
        let task = self.mrt.interrupts.descriptors[number].task;
        if task != NOBODY && !self.has_driver(number) {
            m.line_mask(number);
            self.mrt.processes[task as usize].line = number as u16 + 1;
        }
    }

    /// The period timer of a descriptor is over.
    pub(super) fn trigger_by_timer<M: Machine>(&mut self, m: &mut M, number: usize, due: u64) {
        let now = m.ticks();
        let tick = self.mrt.system.tick_at(due);
        let descriptor = &mut self.mrt.interrupts.descriptors[number];
        let from = if descriptor.kind & irq::RELATPER != 0 { now } else { due };
        let next = from + descriptor.period * self.mrt.system.tick_tsc;
        if descriptor.kind & irq::SOFTIRQ != 0 {
            descriptor.statistics.count += 1;
            descriptor.statistics.timestamp = tick;
            descriptor.state |= irq::TRIGGERED;
        }
        descriptor.statistics.maxshower = descriptor.statistics.maxshower.max(descriptor.shower);
        descriptor.shower = 0;
        let (timer, is_triggered) = (descriptor.timer as usize, descriptor.state & irq::TRIGGERED != 0);
        descriptor.state &= !irq::TRIGGERED;
        self.set_timer(m, timer, next);
        if is_triggered {
            self.queue_second_stage(number, due);
        }
    }

    /// Queues the second stage; if it is queued still, its deadline is missed.
    fn queue_second_stage(&mut self, number: usize, since: u64) {
        let descriptor = &mut self.mrt.interrupts.descriptors[number];
        if descriptor.state & irq::ENQUEUED != 0 {
            descriptor.statistics.reenter += 1;
            return self.miss_deadline(number);
        }
        descriptor.state |= irq::ENQUEUED;
        descriptor.since = since;
        let level = self.mrt.interrupts.level(number);
        self.mrt.timers.put_interrupt(number, level);
        self.defer(level);
    }

    fn miss_deadline(&mut self, number: usize) {
        let descriptor = &mut self.mrt.interrupts.descriptors[number];
        descriptor.statistics.mdl += 1;
        let watchdog = descriptor.watchdog;
        self.post_from_kernel(watchdog, message::KRNDLINE, [number as u64, 1, 0]);
    }

    /// The second stage of the first interrupt of this priority: a message, or a wake-up. False: there is none.
    pub(super) fn run_second_stage<M: Machine>(&mut self, m: &mut M, priority: usize) -> bool {
        let Some(number) = self.mrt.timers.take_interrupt(priority) else { return false };
        let descriptor = &mut self.mrt.interrupts.descriptors[number];
        descriptor.state &= !irq::ENQUEUED;
        let latency = self.mrt.system.signed_ns(m.ticks(), descriptor.since) as u64;
        descriptor.statistics.maxlat = descriptor.statistics.maxlat.max(latency);
        let (task, kind, count) = (descriptor.task, descriptor.kind, descriptor.statistics.count);
        if kind & irq::ISTMSG != 0 {
            self.post_from_kernel(task, message::KRNIRQ, [number as u64, count, 0]);
        } else if task != NOBODY && self.is_real_time(task) && !self.end_sleep(m, task) {
            self.miss_deadline(number);
        }
        true
    }

    /// A process waits again: the line without a driver that it has served may fire again.
    pub(super) fn open_line_of<M: Machine>(&mut self, m: &mut M, process: u16) {
        if let Some(line) = (core::mem::take(&mut self.mrt.processes[process as usize].line) as usize).checked_sub(1) {
            m.line_unmask(line);
        }
    }

    /// `SETIATTR`; mrt has refused what makes no sense.
    pub(super) fn set_descriptor<M: Machine>(&mut self, m: &mut M, number: u64, words: &Words) -> Result<u64, Errno> {
        let [period, task, watchdog, priority, kind, low, high, _] = *words;
        let (is_hardware, is_used) = (number < HARDWARE_IRQS as u64, kind != irq::NRTIRQ);
        if number >= IRQS as u64 {
            return Err(error(rt::error::E_MRT_BADIRQ));
        }
        let task = self.find_helper(task as i64, NOBODY, rt::error::E_MRT_BADTASK)?;
        let watchdog = self.find_helper(watchdog as i64, NOBODY, rt::error::E_MRT_BADWDOG)?;
        let period = period.clamp(1, rt::MOST_TICKS);
        let number = number as usize;
        if kind & irq::TDIRQ != 0
            && self.mrt.interrupts.descriptors[number].timer == 0
            && self.mrt.timers.used == TIMERS
        {
            return Err(error(rt::error::E_MRT_NOVTIMER));
        }
        if is_hardware && is_used && !self.has_driver(number) {
            m.line_open(number).map_err(|_| error(rt::error::E_MRT_BADIRQ))?;
            m.line_unmask(number);
        }
        self.release_descriptor(m, number);
        let timer = if kind & irq::TDIRQ == 0 { None } else { self.mrt.timers.take(Action::Interrupt(number as u16)) };
        let descriptor = &mut self.mrt.interrupts.descriptors[number];
        *descriptor = Descriptor {
            kind,
            period,
            priority: priority.clamp(1, rt::PRIORITIES) as u8,
            timer: timer.unwrap_or(0),
            task,
            watchdog,
            name: [low, high],
            state: descriptor.state,
            ..UNUSED
        };
        if let Some(timer) = timer {
            let next = m.ticks() + period * self.mrt.system.tick_tsc;
            self.set_timer(m, timer as usize, next);
        }
        Ok(0)
    }

    /// A descriptor is not used any more. What of it is queued stays queued, and does nothing unless the descriptor is used again.
    fn release_descriptor<M: Machine>(&mut self, m: &mut M, number: usize) {
        let descriptor = &mut self.mrt.interrupts.descriptors[number];
        let (timer, was_used) = (descriptor.timer, descriptor.kind != irq::NRTIRQ);
        let state = descriptor.state & irq::ENQUEUED;
        *descriptor = Descriptor { state, ..UNUSED };
        self.mrt.timers.give_back(timer);
        if was_used && number < HARDWARE_IRQS && !self.has_driver(number) {
            m.line_mask(number);
        }
    }

    /// A process is real-time no longer: descriptors with it as task are given up, as watchdog go on without.
    pub(super) fn forget_interrupts<M: Machine>(&mut self, m: &mut M, process: u16) {
        self.mrt.processes[process as usize].line = 0;
        for number in 0..IRQS {
            let descriptor = &mut self.mrt.interrupts.descriptors[number];
            if descriptor.watchdog == process {
                descriptor.watchdog = NOBODY;
            }
            if descriptor.task == process {
                self.release_descriptor(m, number);
            }
        }
    }

    /// All descriptors are given up; with a timer, the tick of the time-shared world begins (R23).
    pub(super) fn restart_interrupts<M: Machine>(&mut self, m: &mut M, with_tick: bool) {
        (0..IRQS).for_each(|number| self.release_descriptor(m, number));
        if !with_tick {
            return;
        }
        let timer = self.mrt.timers.take(Action::Interrupt(TICK_IRQ as u16)).unwrap_or(0);
        let period = self.mrt.system.harmonic;
        self.mrt.interrupts.descriptors[TICK_IRQ] = Descriptor {
            kind: irq::TDIRQ | irq::SOFTIRQ,
            period,
            priority: SYSTEM_QUEUE - 1,
            timer,
            name: [u64::from_le_bytes(*b"the tick"), 0],
            ..UNUSED
        };
        let next = m.ticks() + period * self.mrt.system.tick_tsc;
        self.set_timer(m, timer as usize, next);
    }

    /// `GETIATTR`, `GETISTAT`, `CLRISTAT`, `GETIINT`.
    pub(super) fn look_at_descriptor(&mut self, operation: u64, number: u64, words: &mut Words) -> Result<u64, Errno> {
        let harmonic = self.mrt.system.harmonic;
        let place = usize::try_from(number).ok().and_then(|number| self.mrt.interrupts.descriptors.get_mut(number));
        let d = place.ok_or(error(rt::error::E_MRT_BADIRQ))?;
        let s = &mut d.statistics;
        match operation {
            control::GETISTAT => *words = [s.count, s.maxshower, s.mdl, s.timestamp, s.maxlat, s.reenter, 0, 0],
            control::CLRISTAT => *s = IrqStatistics::ZERO,
            control::GETIINT => *words = [number, harmonic, (d.timer != 0) as u64, d.state, 0, 0, 0, 0],
            _ => {
                let [low, high] = d.name;
                let (period, priority, kind, task, watchdog) = (d.period, d.priority, d.kind, d.task, d.watchdog);
                let (task, watchdog) = (self.pid_of(task) as u64, self.pid_of(watchdog) as u64);
                *words = [period, task, watchdog, priority as u64, kind, low, high, 0];
            }
        }
        Ok(0)
    }
}
