//! Interrupts in the real-time world, and the interrupts of ordinary drivers, which must not disturb it.
//!
//! A descriptor says what real-time wants with a line. Its first stage, here, counts the arrival; event-driven it queues the second stage, a message
//! to the task or a wake-up, at the descriptor's priority; timer-driven the period timer does that when something has arrived. The tick of the
//! time-shared world is a timer-driven software interrupt. A driver may use the same line.
//! A driver's interrupt that comes while something real-time is ready is recorded, and its line masked as its driver wants it; when nothing real-time
//! is ready all are delivered in the order of their arrival. Neighbours: `line` (drivers), `timer`.

use crate::{
    Machine, rooms::Kernel, rooms::minix4rt::Minix4rt, rooms::minix4rt::NOBODY, rooms::minix4rt::control::Words,
    rooms::minix4rt::error, rooms::minix4rt::process, rooms::minix4rt::queue, rooms::minix4rt::timer,
    rooms::minix4rt::timer::Action, rooms::minix4rt::timer::level,
};

use abi::{
    Errno, rt, rt::HARDWARE_IRQS, rt::IRQS, rt::IrqStatistics, rt::TICK_IRQ, rt::TIMERS, rt::control, rt::irq,
    rt::message,
};
use zerocopy::FromZeros;

#[derive(Clone, Copy, Debug, FromZeros)]
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

/// All descriptors, and what the time-shared world has to wait for.
#[derive(Debug, FromZeros)]
pub(super) struct Interrupts {
    descriptors: [Descriptor; IRQS],
}

impl Interrupts {
    /// Where a descriptor's second stage is queued.
    pub fn level(&self, number: usize) -> u8 {
        level(self.descriptors[number].priority)
    }
}

/// An interrupt has come on this line: counts it, and triggers its second stage, if real-time has a descriptor for it.
pub fn first_stage<M: Machine>(kernel: &mut Kernel, m: &mut M, number: usize) {
    if number >= HARDWARE_IRQS || kernel.mrt.interrupts.descriptors[number].kind == irq::NRTIRQ {
        return;
    }
    let now = m.ticks();
    let tick = kernel.mrt.system.tick_at(now);
    let descriptor = &mut kernel.mrt.interrupts.descriptors[number];
    descriptor.statistics.count += 1;
    descriptor.statistics.timestamp = tick;
    descriptor.shower += 1;
    if descriptor.kind & irq::TDIRQ != 0 {
        descriptor.state |= irq::TRIGGERED;
    } else {
        queue_second_stage(kernel, number, now);
    }
    let task = kernel.mrt.interrupts.descriptors[number].task;
    if task != NOBODY && !kernel.node.lines.has_driver(number) {
        m.line_mask(number, true);
        kernel.mrt.processes[task as usize].line = number as u16 + 1;
    }
}

/// The period timer of a descriptor is over.
pub fn trigger_by_timer<M: Machine>(kernel: &mut Kernel, m: &mut M, number: usize, due: u64) {
    let now = m.ticks();
    let tick = kernel.mrt.system.tick_at(due);
    let descriptor = &mut kernel.mrt.interrupts.descriptors[number];
    let from = if descriptor.kind & irq::RELATPER != 0 { now } else { due };
    let next = from + descriptor.period * kernel.mrt.system.tick_tsc;
    if descriptor.kind & irq::SOFTIRQ != 0 {
        descriptor.statistics.count += 1;
        descriptor.statistics.timestamp = tick;
        descriptor.state |= irq::TRIGGERED;
    }
    descriptor.statistics.maxshower = descriptor.statistics.maxshower.max(descriptor.shower);
    descriptor.shower = 0;
    let (timer, is_triggered) = (descriptor.timer as usize, descriptor.state & irq::TRIGGERED != 0);
    descriptor.state &= !irq::TRIGGERED;
    timer::set_timer(kernel, m, timer, next);
    if is_triggered {
        queue_second_stage(kernel, number, due);
    }
}

/// Queues the second stage; if it is queued still, its deadline is missed.
fn queue_second_stage(kernel: &mut Kernel, number: usize, since: u64) {
    let descriptor = &mut kernel.mrt.interrupts.descriptors[number];
    if descriptor.state & irq::ENQUEUED != 0 {
        descriptor.statistics.reenter += 1;
        return miss_deadline(kernel, number);
    }
    descriptor.state |= irq::ENQUEUED;
    descriptor.since = since;
    let level = kernel.mrt.interrupts.level(number);
    kernel.mrt.timers.put_interrupt(number, level);
    kernel.node.threads.defer(level);
}

fn miss_deadline(kernel: &mut Kernel, number: usize) {
    let descriptor = &mut kernel.mrt.interrupts.descriptors[number];
    descriptor.statistics.mdl += 1;
    let watchdog = descriptor.watchdog;
    queue::post_from_kernel(kernel, watchdog, message::KRNDLINE, [number as u64, 1, 0]);
}

/// The second stage of the first interrupt of this priority: a message, or a wake-up. False: there is none.
pub fn run_second_stage<M: Machine>(kernel: &mut Kernel, m: &mut M, priority: usize) -> bool {
    let Some(number) = kernel.mrt.timers.take_interrupt(priority) else { return false };
    let descriptor = &mut kernel.mrt.interrupts.descriptors[number];
    descriptor.state &= !irq::ENQUEUED;
    let latency = kernel.mrt.system.signed_ns(m.ticks(), descriptor.since) as u64;
    descriptor.statistics.maxlat = descriptor.statistics.maxlat.max(latency);
    let (task, kind, count) = (descriptor.task, descriptor.kind, descriptor.statistics.count);
    if kind & irq::ISTMSG != 0 {
        queue::post_from_kernel(kernel, task, message::KRNIRQ, [number as u64, count, 0]);
    } else if task != NOBODY && process::is_real_time(kernel, task) && !process::end_sleep(kernel, m, task) {
        miss_deadline(kernel, number);
    }
    true
}

/// A process waits again: the line without a driver that it has served may fire again.
pub fn open_line_of<M: Machine>(mrt: &mut Minix4rt, m: &mut M, process: u16) {
    if let Some(line) = (core::mem::take(&mut mrt.processes[process as usize].line) as usize).checked_sub(1) {
        m.line_mask(line, false);
    }
}

/// `SETIATTR`; mrt has refused what makes no sense.
pub fn set_descriptor<M: Machine>(kernel: &mut Kernel, m: &mut M, number: u64, words: &Words) -> Result<u64, Errno> {
    let [period, task, watchdog, priority, kind, low, high, _] = *words;
    let (is_hardware, is_used) = (number < HARDWARE_IRQS as u64, kind != irq::NRTIRQ);
    if number >= IRQS as u64 {
        return Err(error(rt::error::E_MRT_BADIRQ));
    }
    let task = process::find_helper(kernel, task as i64, NOBODY, rt::error::E_MRT_BADTASK)?;
    let watchdog = process::find_helper(kernel, watchdog as i64, NOBODY, rt::error::E_MRT_BADWDOG)?;
    let period = period.clamp(1, rt::MAX_TICKS);
    let number = number as usize;
    if kind & irq::TDIRQ != 0
        && kernel.mrt.interrupts.descriptors[number].timer == 0
        && kernel.mrt.timers.used == TIMERS
    {
        return Err(error(rt::error::E_MRT_NOVTIMER));
    }
    if is_hardware && is_used && !kernel.node.lines.has_driver(number) {
        m.line_open(number).map_err(|_| error(rt::error::E_MRT_BADIRQ))?;
        m.line_mask(number, false);
    }
    release_descriptor(kernel, m, number);
    let timer = if kind & irq::TDIRQ == 0 { None } else { kernel.mrt.timers.take(Action::Interrupt(number as u16)) };
    let descriptor = &mut kernel.mrt.interrupts.descriptors[number];
    *descriptor = Descriptor {
        kind,
        period,
        priority: priority.clamp(1, rt::PRIORITIES) as u8,
        timer: timer.unwrap_or(0),
        task,
        watchdog,
        name: [low, high],
        state: descriptor.state,
        ..Descriptor::new_zeroed()
    };
    if let Some(timer) = timer {
        let next = m.ticks() + period * kernel.mrt.system.tick_tsc;
        timer::set_timer(kernel, m, timer as usize, next);
    }
    Ok(0)
}

/// A descriptor is not used any more. What of it is queued stays queued, and does nothing unless the descriptor is used again.
fn release_descriptor<M: Machine>(kernel: &mut Kernel, m: &mut M, number: usize) {
    let descriptor = &mut kernel.mrt.interrupts.descriptors[number];
    let (timer, was_used) = (descriptor.timer, descriptor.kind != irq::NRTIRQ);
    let state = descriptor.state & irq::ENQUEUED;
    *descriptor = Descriptor { state, ..Descriptor::new_zeroed() };
    kernel.mrt.timers.give_back(timer);
    if was_used && number < HARDWARE_IRQS && !kernel.node.lines.has_driver(number) {
        m.line_mask(number, true);
    }
}

/// A process is real-time no longer: descriptors with it as task are given up, as watchdog go on without.
pub fn forget_interrupts<M: Machine>(kernel: &mut Kernel, m: &mut M, process: u16) {
    kernel.mrt.processes[process as usize].line = 0;
    for number in 0..IRQS {
        let descriptor = &mut kernel.mrt.interrupts.descriptors[number];
        if descriptor.watchdog == process {
            descriptor.watchdog = NOBODY;
        }
        if descriptor.task == process {
            release_descriptor(kernel, m, number);
        }
    }
}

/// Releases all descriptors; with a timer, the tick of the time-shared world begins.
pub fn restart_interrupts<M: Machine>(kernel: &mut Kernel, m: &mut M, with_tick: bool) {
    (0..IRQS).for_each(|number| release_descriptor(kernel, m, number));
    if with_tick {
        let (none, name) = (rt::NOPROC as u64, u64::from_le_bytes(*b"the tick"));
        let kind = irq::TDIRQ | irq::SOFTIRQ;
        let tick = [kernel.mrt.system.harmonic, none, none, rt::PRIORITIES, kind, name, 0, 0];
        // There is a timer: no process has one, and no other descriptor.
        let _ = set_descriptor(kernel, m, TICK_IRQ as u64, &tick);
    }
}

/// `GETIATTR`, `GETISTAT`, `CLRISTAT`, `GETIINT`.
pub fn look_at_descriptor(mrt: &mut Minix4rt, operation: u64, number: u64, words: &mut Words) -> Result<u64, Errno> {
    let harmonic = mrt.system.harmonic;
    let place = usize::try_from(number).ok().and_then(|number| mrt.interrupts.descriptors.get_mut(number));
    let d = place.ok_or(error(rt::error::E_MRT_BADIRQ))?;
    let s = &mut d.statistics;
    match operation {
        control::GETISTAT => *words = [s.count, s.maxshower, s.mdl, s.timestamp, s.maxlat, s.reenter, 0, 0],
        control::CLRISTAT => *s = IrqStatistics::ZERO,
        control::GETIINT => *words = [number, harmonic, (d.timer != 0) as u64, d.state, 0, 0, 0, 0],
        _ => {
            let [low, high] = d.name;
            let (period, priority, kind, task, watchdog) = (d.period, d.priority, d.kind, d.task, d.watchdog);
            let (task, watchdog) = (process::pid_of(mrt, task) as u64, process::pid_of(mrt, watchdog) as u64);
            *words = [period, task, watchdog, priority as u64, kind, low, high, 0];
        }
    }
    Ok(0)
}
