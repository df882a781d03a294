//! The node: all state of one CPU's microkernel, in parts with private fields.
//!
//! Each part allows what its methods say. What needs more than one part stands here if most modules need it, else in
//! the topic folders above: functions that take the node. Neighbours: `entry` (how the hardware half comes in).

pub mod deferred;
pub mod futexes;
pub mod lines;
pub mod release;
pub mod throttle;
pub mod watch;

use crate::{
    Machine, inheritance::RealTime, node::deferred::Deferred, node::futexes::Futexes, node::futexes::MUTEXES,
    node::lines::Lines, node::release::Release, node::throttle::Throttle, node::watch::Watch,
    probes::injection::Injection, probes::tracing, probes::tracing::Tracing, sched::Threads, stop::Stop,
    stop::preemption_point, time::alarm::Alarms, time::timer::Timer,
};

use abi::{
    Endpoint, Errno, endpoint::SERVICE_SLOTS, endpoint::SLOTS, endpoint::slot, layout::SPACES, linux::NUMBERS,
    privilege::Privileges, trace::event,
};
use core::ops::Range;
use zerocopy::FromZeros;

/// Priorities of all threads, the semaphores of MINIX4RT, and the futexes with inheritance.
pub type Inheritance = RealTime<SLOTS, MUTEXES>;

/// Entries of a table that a search looks at between two preemption points.
const SEARCHED_AT_ONCE: usize = 128;

/// All state of one CPU's microkernel. In this order what each message needs lies in few pages: after a switch of address spaces the translation
/// of each page is looked up anew.
#[derive(Debug, FromZeros)]
#[repr(C)]
pub struct Node {
    /// By Linux call: the slot plus 1 that serves it; 0: none. Slot 0 is the kernel; what would be slots from `SERVICE_SLOTS` on are calls
    /// of `linux::KEPT`, which pm serves.
    pub routes: [u8; NUMBERS],
    pub timer: Timer,
    pub throttle: Throttle,
    pub deferred_work: Deferred,
    pub tracing: Tracing,
    pub injection: Injection,
    /// Of vm and rs.
    pub watch: Watch,
    /// Threads that wait for one that has died.
    pub release: Release,
    /// In whose name the SYSTEM task makes a call; 0: none.
    pub serving: u16,
    /// Whenever the timer has come, probes look first.
    pub is_timer_watched: bool,
    /// Interrupted long work waits for interrupts to be taken first.
    pub interrupts_first: bool,
    /// Messages and notifications delivered.
    pub delivered: u64,
    /// Device interrupts.
    pub interrupts: u64,
    /// Threads that exist.
    pub live: u64,
    /// Real time minus monotonic time, wrapping.
    pub real_offset_ns: u64,
    /// Where the search for a free application slot starts.
    pub next_application: usize,
    /// Bytes of memory copied, or work worth as much, between two preemption points.
    pub chunk_bytes: u64,
    /// Where the search for a free space starts.
    pub next_space: usize,
    pub threads: Threads,
    /// By row: each service has that of its slot. Application threads have that of the idle task, which stays empty, or that of a container.
    pub privileges: [Privileges; SERVICE_SLOTS],
    pub inheritance: Inheritance,
    /// Address spaces: number of threads that use one, plus 1; 0: free.
    pub spaces: [u16; SPACES],
    pub lines: Lines,
    pub futexes: Futexes,
    pub alarms: Alarms,
}

impl Node {
    /// Slot of the thread that runs; the idle task's when no thread does.
    pub fn current(&self) -> usize {
        self.threads.current()
    }

    /// In whose name, with whose rights and whose memory the kernel call in progress is made.
    pub fn caller(&self) -> usize {
        if self.serving == 0 { self.current() } else { self.serving as usize }
    }

    /// Looks for a free entry of a table, for the call of the caller, going round from `start` on. `None`: all are in use.
    pub fn search<M: Machine>(
        &mut self,
        m: &mut M,
        entries: Range<usize>,
        start: usize,
        is_free: fn(&Node, usize) -> bool,
    ) -> Result<Option<usize>, Stop> {
        let caller = self.caller();
        for done in self.threads[caller].progress as usize..entries.len() {
            let index = entries.start + (start.saturating_sub(entries.start) + done) % entries.len();
            if is_free(self, index) {
                return Ok(Some(index));
            }
            self.threads[caller].progress += 1;
            if done % SEARCHED_AT_ONCE == SEARCHED_AT_ONCE - 1 {
                preemption_point(m)?;
            }
        }
        Ok(None)
    }

    /// Returns the slot of the thread with this endpoint, `SELF` being the caller.
    pub fn find_or_self(&self, endpoint: Endpoint) -> Result<usize, Errno> {
        if endpoint == Endpoint::SELF { Ok(self.caller()) } else { self.threads.find(endpoint) }
    }

    /// Privileges of the thread in a slot.
    pub fn privileges(&self, slot: usize) -> &Privileges {
        &self.privileges[self.threads[slot].privileges as usize % SERVICE_SLOTS]
    }

    /// Returns `ECALLDENIED` unless the privileges of `caller` let it send to this slot.
    #[inline(always)]
    pub fn may_send(&self, caller: usize, slot: usize) -> Result<(), Errno> {
        let row = self.threads.get(slot).ok_or(Errno::ECALLDENIED)?.privileges as usize % SERVICE_SLOTS;
        match self.privileges(caller).destinations[row / 64] & 1 << (row % 64) {
            0 => Err(Errno::ECALLDENIED),
            _ => Ok(()),
        }
    }

    /// Charges the current thread for its time and makes another the current one.
    #[inline(always)]
    pub fn switch_to<M: Machine>(&mut self, m: &mut M, slot: usize) {
        self.threads.charge(m.ticks());
        tracing::trace!(self, SWITCH, trace_switch(m, &self.threads, slot));
        self.threads.set_current(slot);
    }

    /// Returns true when the current thread may go on at once, and makes sure that the timer comes for the end of its quantum.
    #[inline(always)]
    pub fn goes_on<M: Machine>(&mut self, m: &mut M) -> bool {
        let goes_on = self.threads.keeps_running();
        if goes_on {
            self.arm_quantum_end(m, self.current());
        }
        goes_on
    }

    /// Makes sure that the timer comes for the end of the quantum of the current thread, the one in `slot`, if another thread waits for that.
    #[inline(always)]
    pub fn arm_quantum_end<M: Machine>(&mut self, m: &mut M, slot: usize) {
        if let Some(quantum_end) = self.threads.quantum_end(slot) {
            self.timer.arm(m, quantum_end);
        }
    }

    /// Puts the current thread at the tail of its queue.
    pub fn yield_current<M: Machine>(&mut self, m: &mut M) {
        let slot = self.current();
        if self.threads[slot].state.is_ready() {
            self.threads.enqueue_woken();
            self.switch_to(m, slot::IDLE);
            self.threads.enqueue(slot as u16);
        }
    }

    /// Sets the events that are recorded, and the distance of samples in ticks; 0: none.
    pub fn set_tracing(&mut self, events: u64, period: u64) {
        self.tracing.set(events, period);
        self.update_fast_path();
    }

    /// Decides whether every message is observed, and whether messages may take a fast path.
    pub fn update_fast_path(&mut self) {
        self.is_timer_watched = self.tracing.records(event::SAMPLE) || self.injection.is_armed();
        self.threads.set_observed(self.tracing.is_observer() || self.injection.is_armed());
    }

    /// Cancels the injected death of the thread in this slot.
    pub fn cancel_death(&mut self, slot: usize) {
        if self.threads[slot].dies_at != 0 {
            self.injection.set(&mut self.threads[slot], 0);
            self.update_fast_path();
        }
    }
}
