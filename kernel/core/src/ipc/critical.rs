//! vm and rs, which everything else is restarted by: when one of them fails it starts again in its own memory.
//!
//! Nobody else could do it: rs needs vm to build memory, and only rs starts services. So the machine writes text and
//! constants anew from the boot archive, the thread goes back to its entry point with birth `Restarted` and an empty
//! stack, and everybody whose request it had in hand asks again. Its endpoint, data, heap, rights, alarm, pending
//! notifications and waiting senders stay. What it does about changes that were half done is its own business
//! (`lib/server`, docs/book/recovery.md). More than `TRIES` failures within `WINDOW_NS` end the system: what it
//! remembers kills it.
//!
//! rs watches all services, vm among them; rs itself is watched here, by its alarm: it wakes often, so an alarm that it
//! leaves unheard for long means that it hangs, or that vm does, for which it waits. Neighbours: `report` (failures),
//! `life` (`Destroy` by rs), `inject`, `alarm`.

use crate::{
    Frame, Machine, Node, ipc::message, ipc::notify, ipc::report, rooms::injection, thread::Continuation,
    thread::MessageSource, thread::blocked, time::alarm, time::alarm::Kind,
};
use abi::{
    Endpoint, Message, call::inject, endpoint::FIRST_SERVICE, endpoint::SLOTS, endpoint::slot, kernel::Exception,
    kernel::HUNG_VECTOR,
};

/// Failures that are forgiven within the window.
const TRIES: u32 = 8;
/// The window.
const WINDOW_NS: u64 = 10_000_000_000;

/// How long rs may leave its alarm unheard.
const UNHEARD_NS: u64 = 2_000_000_000;

/// The recent failures of vm or rs.
#[derive(Clone, Copy, Debug)]
pub struct Failures {
    /// Start of the window.
    since_ns: u64,
    /// Failures in it.
    count: u32,
}

impl Failures {
    pub const NONE: Failures = Failures { since_ns: 0, count: 0 };

    /// One more at this time. False: too many.
    fn add(&mut self, now_ns: u64) -> bool {
        if now_ns - self.since_ns > WINDOW_NS {
            *self = Failures { since_ns: now_ns, count: 0 };
        }
        self.count += 1;
        self.count <= TRIES
    }
}

/// True for vm and rs.
pub fn is_critical(slot: usize) -> bool {
    slot == slot::VM || slot == slot::RS
}

/// vm or rs has failed, for the reason in `report`, or is to die: starts it again.
#[cold]
pub fn begin_again<M: Machine>(node: &mut Node, m: &mut M, slot: usize, report: &Message) {
    let now_ns = alarm::now_ns(node, m);
    if !node.failures[(slot == slot::RS) as usize].add(now_ns) {
        m.fatal(slot, &node.threads[slot].frame, report);
    }
    let was_ready = node.threads[slot].flags == 0;
    message::stop_waiting(node, slot);
    injection::die_after(node, slot, 0);
    m.set_extended(slot, None);
    let Some(frame) = m.renew(slot, &node.threads[slot].frame, report) else {
        m.fatal(slot, &node.threads[slot].frame, report);
    };
    let thread = &mut node.threads[slot];
    thread.frame = Frame { r9: thread.endpoint.0 as u64, ..frame };
    thread.flags = 0;
    thread.form = MessageSource::Native;
    thread.then = Continuation::Return;
    thread.attention = 0;
    thread.progress = 0;
    thread.linux_call = 0;
    if !was_ready {
        node.threads.wake(slot);
    }
    for waiter in FIRST_SERVICE..SLOTS {
        if waits_for_answer_of(node, waiter, slot) {
            ask_again(node, waiter);
        }
    }
}

/// The alarm of rs has come at `now` (ticks), for the first time or because it was left unheard.
pub fn remind_rs<M: Machine>(node: &mut Node, m: &mut M, now: u64) {
    let was_unheard = has_unheard_alarm(node);
    notify::post(node, m, slot::RS, slot::CLOCK, Endpoint::CLOCK);
    if !has_unheard_alarm(node) {
        return;
    }
    let limit = m.ns_to_ticks(UNHEARD_NS);
    if !was_unheard {
        node.unheard_since = now;
    } else if now - node.unheard_since >= limit {
        node.unheard_since = now;
        end_hang(node, m);
    }
    let deadline = node.unheard_since + limit;
    node.alarms.set(alarm::number(slot::RS, Kind::Alarm), deadline);
    node.timer.arm(m, deadline);
}

/// Starts the one of vm and rs again for which rs has not heard its alarm.
fn end_hang<M: Machine>(node: &mut Node, m: &mut M) {
    let rs = &node.threads[slot::RS];
    let waits_for_vm = rs.flags & (blocked::SENDING | blocked::RECEIVING) != 0 && rs.peer.slot() == slot::VM;
    let hung = if waits_for_vm { slot::VM } else { slot::RS };
    let thread = &node.threads[hung];
    let report = Exception { vector: HUNG_VECTOR, error: 0, ip: thread.frame.rip, address: 0 };
    let report = Message { source: thread.endpoint, ..report.message() };
    begin_again(node, m, hung, &report);
}

fn has_unheard_alarm(node: &Node) -> bool {
    node.threads[slot::RS].pending[slot::CLOCK / 64] & 1 << (slot::CLOCK % 64) != 0
}

/// Whether the holder of `slot` has a request of `waiter` in hand.
fn waits_for_answer_of(node: &Node, waiter: usize, slot: usize) -> bool {
    let thread = &node.threads[waiter];
    let waits = thread.flags & blocked::RECEIVING != 0 && thread.then == Continuation::Answer;
    waits && thread.peer.slot() == slot
}

/// The request of `waiter`, which its receiver had in hand when that died, waits for the successor. It is still
/// where it came from, since an answer alone changes it; a Linux call says that it is repeated, and keeps its number.
pub fn ask_again(node: &mut Node, waiter: usize) {
    let thread = &mut node.threads[waiter];
    thread.flags &= !blocked::RECEIVING;
    if matches!(thread.form, MessageSource::Linux | MessageSource::Repeated) {
        thread.form = MessageSource::Repeated;
        thread.messages = thread.messages.wrapping_sub(1);
    }
    let successor = abi::Endpoint::current(thread.peer.slot());
    message::wait_to_send(node, waiter, successor, Continuation::Answer);
}

/// The injected death: an exception in the middle of whatever the thread does.
pub fn die<M: Machine>(node: &mut Node, m: &mut M, slot: usize) {
    injection::die_after(node, slot, 0);
    if is_critical(slot) {
        let thread = &node.threads[slot];
        return begin_again(node, m, slot, &ordered_death(thread.endpoint, thread.frame.rip));
    }
    message::stop_waiting(node, slot);
    let thread = &mut node.threads[slot];
    thread.attention = 0;
    thread.progress = 0;
    report::report_exception(node, m, slot, inject::VECTOR, 0, 0);
}

/// The reason of an ordered death, as a report.
pub fn ordered_death(endpoint: Endpoint, ip: u64) -> abi::Message {
    let report = abi::kernel::Exception { vector: inject::VECTOR, error: 0, ip, address: 0 };
    abi::Message { source: endpoint, ..report.message() }
}
