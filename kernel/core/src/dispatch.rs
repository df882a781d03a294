//! What runs next: the loop at the end of every entry, the timer, and what is outstanding in a thread's name.

use crate::{
    Machine, Node, calls, futex, inheritance::donate, inheritance::throttle, interrupts, interrupts::deferred,
    ipc::critical, ipc::in_memory, ipc::message, ipc::notify, ipc::report, linux::route, node::Next,
    priority::FIRST_SHARED, priority::KEEPS_TURN, priority::LAST, priority::SYSTEM_QUEUE, rooms::injection,
    rooms::minix4rt, rooms::port_ways, thread::attention,
};
use abi::{Endpoint, call::NATIVE, call::SENDREC, endpoint::FIRST_SERVICE, endpoint::SLOTS, endpoint::slot, rt};

/// Does what is outstanding before the current thread may run in user mode: one thing, by urgency.
#[cold]
#[inline(never)]
fn attend<M: Machine>(node: &mut Node, m: &mut M, slot: usize) {
    let thread = &mut node.threads[slot];
    if thread.attention & attention::DIE != 0 {
        critical::die(node, m, slot);
    } else if thread.attention & attention::RESUME != 0 {
        thread.attention &= !attention::RESUME;
        match node.threads[slot].frame.rax {
            number @ ..NATIVE => route::kernel_linux_call(node, m, number as u32),
            number @ rt::call::FIRST..rt::call::END => {
                minix4rt::real_time_call(node, m, number);
            }
            number => calls::kernel_call(node, m, number),
        }
    } else if thread.attention & attention::AGAIN33 != 0 {
        thread.attention &= !attention::AGAIN33;
        in_memory::memory_primitive(node, m);
    } else if thread.attention & attention::ASK_AGAIN != 0 {
        thread.attention &= !attention::ASK_AGAIN;
        message::primitive(node, m, SENDREC);
    } else if thread.attention & attention::HAL_AGAIN != 0 {
        thread.attention &= !attention::HAL_AGAIN;
        port_ways::hal_trap(node, m);
    } else if thread.attention & attention::STORE != 0 {
        in_memory::store_arrived(node, m, slot);
    } else {
        thread.attention &= !attention::INTERRUPT;
        report::report_interrupted(node, m, slot);
    }
}

/// Does what is due at `now` (ticks).
fn expire_alarms<M: Machine>(node: &mut Node, m: &mut M, now: u64) {
    while let Some((number, _)) = node.alarms.expire(now) {
        match number {
            slot::RS => critical::remind_rs(node, m, now),
            slot @ ..SLOTS => {
                notify::post(node, m, slot, slot::CLOCK, Endpoint::CLOCK);
                if let queue @ 1.. = node.threads[slot].alarm_queue {
                    donate::donate_along(node, queue, slot);
                }
            }
            number => futex::futex_time_is_up(node, number - SLOTS),
        }
    }
}

/// How often sunk threads are raised.
const BALANCE_NS: u64 = 200_000_000;

/// See [`Node::next`].
#[inline(always)]
pub fn schedule<M: Machine>(node: &mut Node, m: &mut M) -> Next {
    loop {
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
                Some(priority) => do_deferred(node, m, priority),
                None => port_ways::run_system_task(node, m, calls::permitted_call),
            }
            continue;
        }
        if let Some(quantum_end) = node.threads.quantum_end(slot) {
            node.timer.arm(m, quantum_end);
        }
        if node.threads[slot].attention == 0 {
            return Next::Run(slot);
        }
        if core::mem::take(&mut node.interrupts_first) {
            return Next::Interrupts;
        }
        attend(node, m, slot);
    }
}

/// The timer has come: real-time timers, the end of a quantum, and the clock of the time-shared world.
pub fn on_timer<M: Machine>(node: &mut Node, m: &mut M) {
    let now = m.ticks();
    node.timer.disarm();
    node.threads.charge(now);
    if node.threads.is_observed() {
        while let Some(slot) = injection::marked_waiter(node) {
            critical::die(node, m, slot);
        }
    }
    minix4rt::expire_timers(node, m, now);
    end_quantum(node, m);
    throttle::end_pause(node, m, now);
    if node.minix4rt.is_active() && node.threads.is_real_time_ready() {
        deferred::defer_clock(node);
    } else {
        do_clock_work(node, m);
    }
}

/// Alarms and balance.
pub fn do_clock_work<M: Machine>(node: &mut Node, m: &mut M) {
    let now = m.ticks();
    expire_alarms(node, m, now);
    node.threads.balance(now, m.ns_to_ticks(BALANCE_NS));
    if let Some(deadline) = node.alarms.first_deadline() {
        node.timer.arm(m, deadline);
    }
}

/// Lets a thread that has used up its quantum go behind those that wait in its queue; a time-shared one sinks to the next worse.
fn end_quantum<M: Machine>(node: &mut Node, m: &mut M) {
    let competition = node.threads.has_competition();
    if node.threads.running().real_time && node.threads.running().quantum_left <= 0 {
        return minix4rt::end_runaway(node, m, node.current());
    }
    let thread = node.threads.running_mut();
    if thread.flags != 0 || thread.quantum_left > 0 || thread.queue == SYSTEM_QUEUE {
        return;
    }
    thread.renew_quantum();
    let keeps_turn = thread.quantum & KEEPS_TURN != 0;
    if competition {
        if thread.queue >= FIRST_SHARED {
            thread.queue = LAST.min(thread.queue + 1);
        } else if throttle::throttle(node, m) || keeps_turn {
            return;
        }
        node.yield_current(m);
    }
}

/// Work that was put off has the CPU: one piece of the best.
#[cold]
#[inline(never)]
fn do_deferred<M: Machine>(node: &mut Node, m: &mut M, priority: u8) {
    if priority == SYSTEM_QUEUE {
        node.threads.end_deferred(priority);
        do_ordinary_work(node, m);
    } else {
        minix4rt::do_real_time_work(node, m, priority);
    }
}

/// The time-shared world has the CPU again: does its clock work, and delivers its interrupts in order.
fn do_ordinary_work<M: Machine>(node: &mut Node, m: &mut M) {
    if node.deferred_work.take_clock() {
        do_clock_work(node, m);
    }
    while let Some(line) = node.deferred_work.take_line() {
        interrupts::deliver_interrupt(node, m, line);
    }
}
