//! vm and rs, which everything else is restarted by: when one of them fails it starts again in its own memory.
//!
//! No service could do it: rs needs vm to build memory, and only rs starts services. So the machine writes text and
//! constants anew from the boot archive, a page at a time, the thread goes back to its entry point with start kind `Restarted` and an empty
//! stack, and every request that it held is sent again. Its endpoint, data, heap, rights, alarm, pending
//! notifications and waiting senders stay. What it does about changes that were half done is its own business
//! (`lib/server`, docs/book/recovery.md). More than `TRIES` failures within `WINDOW_NS` end the system: what it
//! remembers kills it.
//!
//! rs watches all services, vm among them; rs itself is watched here, by its alarm: it wakes often, so an alarm that it
//! leaves unheard several times means that it hangs, or that vm does, for which it waits. Neighbours: `report` (failures),
//! `life` (`Destroy` by rs), `inject`, `alarm`.

use crate::{
    Frame, Machine, Node, Thread, ipc::message, ipc::notify, ipc::release, ipc::report, machine::Renewal,
    node::release::Fate, thread::MessageSource, thread::attention, time::alarm, time::alarm::Kind,
};
use abi::{Endpoint, Message, call::inject, endpoint::slot, kernel::Exception, kernel::HUNG_VECTOR};

/// So often rs may leave its alarm unheard, at this interval. Counted, because time may pass in which nobody runs: a virtual machine
/// that was stopped for a minute does not hang.
const REMINDERS: u32 = 4;
const REMINDER_NS: u64 = 500_000_000;

/// True for vm and rs.
pub fn is_critical(slot: usize) -> bool {
    slot == slot::VM || slot == slot::RS
}

/// vm or rs has failed, for the reason in `report`, or is to die: it starts again when it is next dispatched.
#[cold]
pub fn begin_again<M: Machine>(node: &mut Node, m: &mut M, slot: usize, report: &Message) {
    let now_ns = alarm::now_ns(m);
    if !node.watch.forgives(slot == slot::RS, now_ns) {
        m.fatal(slot, &node.threads[slot].frame, report);
    }
    let was_ready = node.threads[slot].state.is_ready();
    message::stop_waiting(node, slot);
    node.cancel_death(slot);
    m.set_extended(slot, None);
    // There is one only if a real-time client has let rs or vm run before its end.
    while release::release_some(node, m) {}
    release::begin(node, m, slot, Fate::Restarts);
    let thread = &mut node.threads[slot];
    thread.state.make_ready();
    thread.form = MessageSource::Native;
    thread.outgoing = *report;
    thread.attention = attention::RENEW;
    (thread.progress, thread.linux_call) = (0, 0);
    if !was_ready {
        node.threads.wake(slot);
    }
}

/// Goes on with starting vm or rs again, before it runs: its clients make their requests again, and its text and constants are written anew.
pub fn renew<M: Machine>(node: &mut Node, m: &mut M, slot: usize) {
    let is_released = release::finish(node, m).is_ok();
    let thread = &mut node.threads[slot];
    thread.attention |= attention::RENEW;
    if is_released {
        match m.renew(slot, thread.progress, &thread.frame, &thread.outgoing) {
            Renewal::Impossible => m.fatal(slot, &thread.frame, &thread.outgoing),
            Renewal::Step => thread.progress += 1,
            Renewal::Done(frame) => {
                thread.frame = Frame { r9: thread.endpoint.0 as u64, ..frame };
                thread.attention = 0;
                thread.progress = 0;
            }
        }
    }
    node.interrupts_first = m.interrupt_pending();
}

/// The alarm of rs has come at `now` (ticks), for the first time or because it was left unheard.
pub fn remind_rs<M: Machine>(node: &mut Node, m: &mut M, now: u64) {
    let was_unheard = has_unheard_alarm(node);
    notify::post(node, m, slot::RS, slot::CLOCK, Endpoint::CLOCK);
    if !has_unheard_alarm(node) {
        return;
    }
    node.watch.unheard = if was_unheard { node.watch.unheard + 1 } else { 0 };
    if node.watch.unheard == REMINDERS {
        node.watch.unheard = 0;
        end_hang(node, m);
    }
    let deadline = now + m.ns_to_ticks(REMINDER_NS);
    node.alarms.set(&mut node.timer, m, (slot::RS, Kind::Alarm), deadline);
}

/// Starts the one of vm and rs again for which rs has not heard its alarm.
fn end_hang<M: Machine>(node: &mut Node, m: &mut M) {
    let rs = &node.threads[slot::RS];
    let waits_for_vm = rs.state.peer_in(slot::VM).is_some();
    let hung = if waits_for_vm { slot::VM } else { slot::RS };
    begin_again(node, m, hung, &death(&node.threads[hung], HUNG_VECTOR));
}

fn has_unheard_alarm(node: &Node) -> bool {
    node.threads[slot::RS].pending[slot::CLOCK / 64] & 1 << (slot::CLOCK % 64) != 0
}

/// The injected death: an exception in the middle of whatever the thread does.
pub fn die<M: Machine>(node: &mut Node, m: &mut M, slot: usize) {
    node.cancel_death(slot);
    if is_critical(slot) {
        return begin_again(node, m, slot, &death(&node.threads[slot], inject::VECTOR));
    }
    message::stop_waiting(node, slot);
    let thread = &mut node.threads[slot];
    thread.attention = 0;
    thread.progress = 0;
    report::report_exception(node, m, slot, inject::VECTOR, 0, 0);
}

/// A death for a reason that is no exception of the CPU, as a report.
pub fn death(thread: &Thread, vector: u64) -> Message {
    let report = Exception { vector, error: 0, ip: thread.frame.rip, address: 0 };
    Message { source: thread.endpoint, ..report.message() }
}
