//! Disturbances of a service on purpose, for tests of recovery (`abi::call::inject`). rs alone may ask for them.
//!
//! Messages are counted only while a service is to die after some: `Node::observed` then bars the short way of
//! `hand_over`, as it does while tracing, so that nobody pays for what nobody uses. Neighbours: `ipc` and `notify`
//! (count), `call` (a thread that was to run dies instead), `scheduler` (one that waits dies at the next timer
//! interrupt, which is armed at once), `roots` (vm and rs).

use abi::{
    Endpoint, Errno,
    call::inject,
    endpoint::{FIRST_SERVICE, SERVICE_SLOTS},
};

use crate::{Machine, Node, copy::check_range, roots::is_root, scheduler::SYSTEM_QUEUE, thread::attention};

/// Most bytes of a `POKE`.
const POKE_BYTES: u64 = 8;

impl Node {
    /// `Inject (endpoint, kind, value, further value, bytes)`. `EINVAL`: no service, or no such kind or length.
    pub(crate) fn inject<M: Machine>(&mut self, m: &mut M, slot: usize, words: [u64; 4]) -> Result<u64, Errno> {
        let [kind, value, further, bytes] = words;
        if !(FIRST_SERVICE..SERVICE_SLOTS).contains(&slot) {
            return Err(Errno::EINVAL);
        }
        match kind {
            inject::KILL_AFTER_MESSAGES => self.doom(slot, value),
            inject::POKE => self.poke(m, slot, value, further, bytes)?,
            inject::SILENCE => self.stop(slot),
            _ => return Err(Errno::EINVAL),
        }
        Ok(0)
    }

    /// The service dies after `messages` more messages; 0: it does not.
    pub(crate) fn doom(&mut self, slot: usize, messages: u64) {
        let thread = &mut self.threads[slot];
        let was_armed = thread.dies_at != 0;
        thread.dies_at = if messages == 0 { 0 } else { thread.messages.saturating_add(messages) };
        self.armed_deaths = self.armed_deaths - was_armed as u16 + (messages != 0) as u16;
        self.observe();
    }

    /// Decides whether messages are looked at, and whether they may go the short way.
    pub(crate) fn observe(&mut self) {
        self.observed = self.tracing || self.armed_deaths != 0;
        self.barred = self.observed || self.threads[self.current].queue < SYSTEM_QUEUE;
    }

    /// Writes into memory that the service may only read. `EFAULT`: nothing is mapped there.
    fn poke<M: Machine>(&mut self, m: &mut M, slot: usize, address: u64, value: u64, bytes: u64) -> Result<(), Errno> {
        if !(1..=POKE_BYTES).contains(&bytes) {
            return Err(Errno::EINVAL);
        }
        check_range(address, bytes)?;
        let space = self.space_of(slot)?;
        for at in address..address + bytes {
            m.translate(space, at).map_err(|_| Errno::EFAULT)?;
        }
        for (at, byte) in (address..address + bytes).zip(value.to_le_bytes()) {
            m.poke(space, at, byte);
        }
        Ok(())
    }

    /// A thread has sent or received a message: marks it when that was its last.
    #[cold]
    pub(crate) fn count_down<M: Machine>(&mut self, m: &mut M, slot: usize) {
        let thread = &mut self.threads[slot];
        if thread.dies_at != 0 && thread.messages >= thread.dies_at {
            thread.attention |= attention::DIE;
            self.armed = 0;
            m.arm_timer(0);
        }
    }

    /// Those that are marked and wait, and so would not come to die by themselves.
    #[cold]
    pub(crate) fn end_doomed<M: Machine>(&mut self, m: &mut M) {
        for slot in FIRST_SERVICE..SERVICE_SLOTS {
            let thread = &self.threads[slot];
            if thread.attention & attention::DIE != 0 && thread.flags != 0 {
                self.die(m, slot);
            }
        }
    }

    /// The injected death: an exception in the middle of whatever the thread does.
    pub(crate) fn die<M: Machine>(&mut self, m: &mut M, slot: usize) {
        self.doom(slot, 0);
        if is_root(slot) {
            let thread = &self.threads[slot];
            return self.begin_again(m, slot, &ordered_death(thread.endpoint, thread.frame.rip));
        }
        self.stop_waiting(slot);
        let thread = &mut self.threads[slot];
        thread.attention = 0;
        thread.progress = 0;
        self.report_exception(m, slot, inject::VECTOR, 0, 0);
    }
}

/// The reason of an ordered death, as a report.
pub(crate) fn ordered_death(endpoint: Endpoint, ip: u64) -> abi::Message {
    let report = abi::kernel::Exception { vector: inject::VECTOR, error: 0, ip, address: 0 };
    abi::Message { source: endpoint, ..report.message() }
}
