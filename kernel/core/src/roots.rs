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

use abi::{
    Endpoint, Message,
    endpoint::{FIRST_SERVICE, SLOTS, slot},
    kernel::{Exception, HUNG_VECTOR},
};

use crate::{
    Frame, Machine, Node,
    alarm::{self, Kind},
    thread::{Form, Then, blocked},
};

/// Failures that are forgiven within the window.
const TRIES: u32 = 8;
/// The window.
const WINDOW_NS: u64 = 10_000_000_000;

/// How long rs may leave its alarm unheard.
const UNHEARD_NS: u64 = 2_000_000_000;

/// The recent failures of vm or rs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Failures {
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
pub(crate) fn is_root(slot: usize) -> bool {
    slot == slot::VM || slot == slot::RS
}

impl Node {
    /// vm or rs has failed, for the reason in `report`, or is to die: starts it again.
    #[cold]
    pub(crate) fn begin_again<M: Machine>(&mut self, m: &mut M, slot: usize, report: &Message) {
        let now_ns = self.now_ns(m);
        if !self.failures[(slot == slot::RS) as usize].add(now_ns) {
            m.fatal(slot, &self.threads[slot].frame, report);
        }
        let was_ready = self.threads[slot].flags == 0;
        self.stop_waiting(slot);
        self.doom(slot, 0);
        m.set_extended(slot, None);
        let Some(frame) = m.renew(slot, &self.threads[slot].frame, report) else {
            m.fatal(slot, &self.threads[slot].frame, report);
        };
        let thread = &mut self.threads[slot];
        thread.frame = Frame { r9: thread.endpoint.0 as u64, ..frame };
        thread.flags = 0;
        thread.form = Form::Native;
        thread.then = Then::Return;
        thread.attention = 0;
        thread.progress = 0;
        thread.linux_call = 0;
        if !was_ready {
            self.wake(slot);
        }
        for waiter in FIRST_SERVICE..SLOTS {
            if self.waits_for_answer_of(waiter, slot) {
                self.ask_again(waiter);
            }
        }
    }

    /// The alarm of rs has come at `now` (ticks), for the first time or because it was left unheard.
    pub(crate) fn remind_rs<M: Machine>(&mut self, m: &mut M, now: u64) {
        let was_unheard = self.has_unheard_alarm();
        self.post(m, slot::RS, slot::CLOCK, Endpoint::CLOCK);
        if !self.has_unheard_alarm() {
            return;
        }
        let limit = m.ns_to_ticks(UNHEARD_NS);
        if !was_unheard {
            self.unheard_since = now;
        } else if now - self.unheard_since >= limit {
            self.unheard_since = now;
            self.end_hang(m);
        }
        let deadline = self.unheard_since + limit;
        self.alarms.set(alarm::number(slot::RS, Kind::Alarm), deadline);
        self.arm(m, deadline);
    }

    /// Starts the one of vm and rs again for which rs has not heard its alarm.
    fn end_hang<M: Machine>(&mut self, m: &mut M) {
        let rs = &self.threads[slot::RS];
        let waits_for_vm = rs.flags & (blocked::SENDING | blocked::RECEIVING) != 0 && rs.peer.slot() == slot::VM;
        let hung = if waits_for_vm { slot::VM } else { slot::RS };
        let thread = &self.threads[hung];
        let report = Exception { vector: HUNG_VECTOR, error: 0, ip: thread.frame.rip, address: 0 };
        let report = Message { source: thread.endpoint, ..report.message() };
        self.begin_again(m, hung, &report);
    }

    fn has_unheard_alarm(&self) -> bool {
        self.threads[slot::RS].pending[slot::CLOCK / 64] & 1 << (slot::CLOCK % 64) != 0
    }

    /// Whether the holder of `slot` has a request of `waiter` in hand.
    fn waits_for_answer_of(&self, waiter: usize, slot: usize) -> bool {
        let thread = &self.threads[waiter];
        let waits = thread.flags & blocked::RECEIVING != 0 && thread.then == Then::Answer;
        waits && thread.peer.slot() == slot
    }

    /// The request of `waiter`, which its receiver had in hand when that died, waits for the successor. It is still
    /// where it came from, since an answer alone changes it; a Linux call says that it is repeated, and keeps its number.
    pub(crate) fn ask_again(&mut self, waiter: usize) {
        let thread = &mut self.threads[waiter];
        thread.flags &= !blocked::RECEIVING;
        if matches!(thread.form, Form::Linux | Form::Repeated) {
            thread.form = Form::Repeated;
            thread.messages = thread.messages.wrapping_sub(1);
        }
        let successor = abi::Endpoint::current(thread.peer.slot());
        self.wait_to_send(waiter, successor, Then::Answer);
    }
}
