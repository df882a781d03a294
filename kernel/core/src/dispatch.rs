//! What runs next: the loop at the end of every entry, the timer, and what is outstanding in a thread's name.

use crate::{
    Machine, boost::donate, boost::throttle, calls, futex, interrupts, ipc::critical, ipc::in_memory, ipc::message,
    ipc::notify, ipc::release, ipc::report, linux::route, node::Node, priority::FIRST_SHARED, priority::KEEPS_TURN,
    priority::LAST, priority::SYSTEM_QUEUE, probes::injection, rooms::Kernel, rooms::minix4rt, rooms::port_ways,
    thread::attention, time::alarm::Kind,
};
use abi::{Endpoint, call::NATIVE, call::SENDREC, endpoint::FIRST_SERVICE, endpoint::slot, rt};

/// What the CPU does now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Runs the thread in this slot, which is now the current one.
    Run(usize),
    /// Nothing is ready: enables interrupts and halts until one has been taken, then asks again.
    Idle,
    /// Work in the kernel was preempted by an interrupt: enables interrupts for a moment so that they are taken, then asks
    /// again.
    Interrupts,
}

/// Does what is outstanding before the current thread may run in user mode: one thing, the most urgent.
#[cold]
#[inline(never)]
fn attend<M: Machine>(kernel: &mut Kernel, m: &mut M, slot: usize) {
    let node = &mut kernel.node;
    let thread = &mut node.threads[slot];
    let first = thread.attention & thread.attention.wrapping_neg();
    thread.attention &= !first;
    match first {
        attention::DIE => critical::die(node, m, slot),
        attention::RESUME => resume(kernel, m, slot),
        attention::AGAIN33 => in_memory::memory_primitive(node, m),
        attention::ASK_AGAIN => message::primitive(node, m, SENDREC),
        attention::HAL_AGAIN => port_ways::hal_trap(node, m),
        attention::STORE => in_memory::store_arrived(node, m, slot),
        attention::DENIED => port_ways::deny_message(node, m, slot),
        attention::RENEW => critical::renew(node, m, slot),
        _ => report::report_interrupted(node, m, slot),
    }
}

/// Goes on with the kernel call in the registers of a thread.
fn resume<M: Machine>(kernel: &mut Kernel, m: &mut M, slot: usize) {
    match kernel.node.threads[slot].frame.rax {
        number @ ..NATIVE => route::linux_call(&mut kernel.node, m, number),
        number @ rt::call::FIRST..rt::call::END => drop(minix4rt::real_time_call(kernel, m, number)),
        number => calls::kernel_call(kernel, m, number),
    }
}

/// Deadlines that expire in one turn. The timer, armed for the next one, comes again at once: interrupts are taken in between.
const ALARMS_AT_ONCE: usize = 4;

/// Does what is due at `now` (ticks), or the first of it.
fn expire_alarms<M: Machine>(node: &mut Node, m: &mut M, now: u64) {
    for _ in 0..ALARMS_AT_ONCE {
        match node.alarms.expire(now) {
            None => break,
            Some((slot::RS, Kind::Alarm)) => critical::remind_rs(node, m, now),
            Some((slot, Kind::Alarm)) => {
                notify::post(node, m, slot, slot::CLOCK, Endpoint::CLOCK);
                if let queue @ 1.. = node.threads[slot].alarm_queue {
                    donate::donate_along(node, queue, slot);
                }
            }
            Some((slot, Kind::Futex)) => futex::futex_time_is_up(node, slot),
        }
    }
}

/// How often sunk threads are raised.
const BALANCE_NS: u64 = 200_000_000;

/// See [`crate::Kernel::next`].
#[inline(always)]
pub fn schedule<M: Machine>(kernel: &mut Kernel, m: &mut M) -> Next {
    loop {
        let node = &mut kernel.node;
        let slot = node.threads.pick();
        if slot != node.current() {
            node.switch_to(m, slot);
        }
        if slot < FIRST_SERVICE {
            if slot == slot::IDLE {
                return Next::Idle;
            }
            if core::mem::take(&mut node.interrupts_first) {
                return Next::Interrupts;
            }
            match node.threads.best_deferred() {
                Some(priority) => do_deferred(kernel, m, priority),
                None if node.threads[slot::SYSTEM].state.is_ready() => {
                    port_ways::run_system_task(kernel, m, calls::permitted_call);
                }
                // Deferred work had made the queue ready.
                None => {}
            }
            continue;
        }
        node.arm_quantum_end(m, slot);
        if node.threads[slot].attention == 0 {
            return Next::Run(slot);
        }
        if core::mem::take(&mut node.interrupts_first) {
            return Next::Interrupts;
        }
        if node.threads[slot].attention == attention::TRACED {
            node.threads.bar_fast_path(slot);
            return Next::Run(slot);
        }
        attend(kernel, m, slot);
    }
}

/// The timer has come: real-time timers, the end of a quantum, and the clock of the time-shared world.
pub fn on_timer<M: Machine>(kernel: &mut Kernel, m: &mut M) {
    let node = &mut kernel.node;
    let now = m.ticks();
    node.timer.disarm();
    node.threads.charge(now);
    if node.is_timer_watched {
        while let Some(slot) = injection::marked_waiter(&node.threads) {
            critical::die(node, m, slot);
        }
        node.tracing.sample(&node.threads, &mut node.timer, m, now);
    }
    minix4rt::expire_timers(kernel, m, now);
    end_quantum(kernel, m);
    let node = &mut kernel.node;
    throttle::on_timer(node, m, now);
    if kernel.mrt.is_active() && node.threads.is_real_time_ready() {
        node.deferred_work.record_clock();
        node.threads.defer(SYSTEM_QUEUE);
    } else {
        do_clock_work(node, m);
    }
}

/// Alarms and balance. The timer comes again at once for what is left of either.
pub fn do_clock_work<M: Machine>(node: &mut Node, m: &mut M) {
    let now = m.ticks();
    expire_alarms(node, m, now);
    if node.threads.balance(now, m.ns_to_ticks(BALANCE_NS)) {
        node.timer.arm(m, now);
    }
    node.alarms.arm_first(&mut node.timer, m);
}

/// Puts a thread that has used up its quantum at the tail of its queue; a time-shared one sinks to the next worse.
fn end_quantum<M: Machine>(kernel: &mut Kernel, m: &mut M) {
    let node = &mut kernel.node;
    let competition = node.threads.has_competition();
    if node.threads.running().is_real_time() && node.threads.running().quantum_left <= 0 {
        let runaway = node.current();
        return minix4rt::end_runaway(kernel, m, runaway);
    }
    let thread = node.threads.running_mut();
    if !thread.state.is_ready() || thread.quantum_left > 0 || thread.queue == SYSTEM_QUEUE {
        return;
    }
    thread.renew_quantum();
    let keeps_turn = thread.quantum & KEEPS_TURN != 0;
    if competition {
        if thread.queue >= FIRST_SHARED {
            thread.queue = LAST.min(thread.queue + 1);
        } else {
            node.throttle.check(m.ticks(), m.ns_to_ticks(throttle::PERIOD_NS));
            if keeps_turn {
                return;
            }
        }
        node.yield_current(m);
    }
}

/// Does one piece of deferred work of the best priority.
#[cold]
#[inline(never)]
fn do_deferred<M: Machine>(kernel: &mut Kernel, m: &mut M, priority: u8) {
    let node = &mut kernel.node;
    if priority == SYSTEM_QUEUE {
        node.threads.end_deferred(priority);
        do_ordinary_work(node, m);
    } else {
        minix4rt::do_real_time_work(kernel, m, priority);
    }
}

/// The time-shared world has the CPU again: does its clock work, delivers its interrupts in order, and releases the peers of the dead.
fn do_ordinary_work<M: Machine>(node: &mut Node, m: &mut M) {
    if node.deferred_work.take_clock() {
        do_clock_work(node, m);
    }
    loop {
        if let Some(line) = node.deferred_work.take_line() {
            interrupts::deliver_interrupt(node, m, line);
        } else if !release::release_some(node, m) {
            return;
        }
        if m.interrupt_pending() {
            node.interrupts_first = true;
            return node.threads.defer(SYSTEM_QUEUE);
        }
    }
}
