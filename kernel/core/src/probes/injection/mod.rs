//! Disturbances of a service on purpose, for tests of recovery (`abi::call::inject`). rs alone may ask for them.
//!
//! Messages are counted only while a service is to die after some: every message is observed then and none takes the
//! fast path, as while tracing, so that counting costs nothing otherwise. Neighbours: `ipc` and `notify` (count),
//! `dispatch` (a thread that was to run dies instead; one that waits dies at the next timer interrupt, which is armed
//! at once), `ipc::critical` (vm and rs).

use crate::{Machine, Thread, machine::check_range, sched::Threads, thread::attention, time::timer::Timer};

use abi::{Errno, call::inject, endpoint::FIRST_SERVICE, endpoint::SERVICE_SLOTS};
use zerocopy::FromZeros;

/// Limit of a `POKE`.
const POKE_BYTES: u64 = 8;

/// The number of services that are to die after a number of messages.
#[derive(Debug, FromZeros)]
pub struct Injection {
    armed: u16,
}

impl Injection {
    /// Returns true when there are some.
    pub fn is_armed(&self) -> bool {
        cfg!(feature = "injection") && self.armed != 0
    }

    /// Makes a service die after `messages` more messages; 0: it does not.
    pub fn set(&mut self, thread: &mut Thread, messages: u64) {
        let was_armed = thread.dies_at != 0;
        thread.dies_at = if messages == 0 { 0 } else { thread.messages.saturating_add(messages) };
        self.armed = self.armed - was_armed as u16 + (messages != 0) as u16;
    }

    /// `Inject (endpoint, kind, value, further value, bytes)`. `EINVAL`: no service, or no such kind or length.
    pub fn call<M: Machine>(
        &mut self,
        threads: &mut Threads,
        m: &mut M,
        slot: usize,
        words: [u64; 4],
    ) -> Result<u64, Errno> {
        let [kind, value, further, bytes] = words;
        match kind {
            _ if !cfg!(feature = "injection") => return Err(Errno::EBADCALL),
            _ if !(FIRST_SERVICE..SERVICE_SLOTS).contains(&slot) => return Err(Errno::EINVAL),
            inject::KILL_AFTER_MESSAGES => self.set(&mut threads[slot], value),
            inject::POKE => poke(&threads[slot], m, [value, further, bytes])?,
            inject::SILENCE => threads.stop(slot),
            _ => return Err(Errno::EINVAL),
        }
        Ok(0)
    }
}

/// Writes into memory that the service may only read. `EFAULT`: nothing is mapped there.
fn poke<M: Machine>(thread: &Thread, m: &mut M, [address, value, bytes]: [u64; 3]) -> Result<(), Errno> {
    if !(1..=POKE_BYTES).contains(&bytes) {
        return Err(Errno::EINVAL);
    }
    check_range(address, bytes)?;
    let space = thread.space().ok_or(Errno::EFAULT)?;
    for at in address..address + bytes {
        m.translate(space, at).map_err(|_| Errno::EFAULT)?;
    }
    for (at, byte) in (address..address + bytes).zip(value.to_le_bytes()) {
        m.poke(space, at, byte);
    }
    Ok(())
}

/// Counts a message that a thread has sent or received, and marks the thread when that was its last.
#[cold]
pub fn count_down<M: Machine>(thread: &mut Thread, timer: &mut Timer, m: &mut M) {
    if thread.dies_at != 0 && thread.messages >= thread.dies_at {
        thread.attention |= attention::DIE;
        timer.arm(m, 0);
    }
}

/// Returns a thread that is marked and waits, and so would not come to die by itself.
#[cold]
pub fn marked_waiter(threads: &Threads) -> Option<usize> {
    let is_marked = |thread: &Thread| thread.attention & attention::DIE != 0 && !thread.state.is_ready();
    (FIRST_SERVICE..SERVICE_SLOTS).find(|&slot| is_marked(&threads[slot]))
}
