//! Disturbances of a service on purpose, for tests of recovery (`abi::call::inject`). rs alone may ask for them.
//!
//! Messages are counted only while a service is to die after some: `Node::observed` then bars the short way of
//! `hand_over`, as it does while tracing, so that nobody pays for what nobody uses. Neighbours: `ipc` and `notify`
//! (count), `call` (a thread that was to run dies instead), `scheduler` (one that waits dies at the next timer
//! interrupt, which is armed at once), `roots` (vm and rs).

use crate::{Machine, Node, memory::copy, memory::place::check_range, thread::attention};

use abi::{Errno, call::inject, endpoint::FIRST_SERVICE, endpoint::SERVICE_SLOTS};

/// Most bytes of a `POKE`.
const POKE_BYTES: u64 = 8;

/// The services that are to die after a number of messages.
#[derive(Debug)]
pub struct Injection {
    armed: u16,
}

impl Injection {
    /// None is.
    pub const NEW: Injection = Injection { armed: 0 };

    /// Returns true when some are.
    pub fn is_armed(&self) -> bool {
        self.armed != 0
    }
}

/// `Inject (endpoint, kind, value, further value, bytes)`. `EINVAL`: no service, or no such kind or length.
pub fn inject<M: Machine>(node: &mut Node, m: &mut M, slot: usize, words: [u64; 4]) -> Result<u64, Errno> {
    let [kind, value, further, bytes] = words;
    if !(FIRST_SERVICE..SERVICE_SLOTS).contains(&slot) {
        return Err(Errno::EINVAL);
    }
    match kind {
        inject::KILL_AFTER_MESSAGES => die_after(node, slot, value),
        inject::POKE => poke(node, m, slot, [value, further, bytes])?,
        inject::SILENCE => node.threads.stop(slot),
        _ => return Err(Errno::EINVAL),
    }
    Ok(0)
}

/// The service dies after `messages` more messages; 0: it does not.
pub fn die_after(node: &mut Node, slot: usize, messages: u64) {
    let thread = &mut node.threads[slot];
    let was_armed = thread.dies_at != 0;
    thread.dies_at = if messages == 0 { 0 } else { thread.messages.saturating_add(messages) };
    let armed = &mut node.injection.armed;
    *armed = *armed - was_armed as u16 + (messages != 0) as u16;
    node.update_fast_path();
}

/// Writes into memory that the service may only read. `EFAULT`: nothing is mapped there.
fn poke<M: Machine>(node: &mut Node, m: &mut M, slot: usize, words: [u64; 3]) -> Result<(), Errno> {
    let [address, value, bytes] = words;
    if !(1..=POKE_BYTES).contains(&bytes) {
        return Err(Errno::EINVAL);
    }
    check_range(address, bytes)?;
    let space = copy::space_of(node, slot)?;
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
pub fn count_down<M: Machine>(node: &mut Node, m: &mut M, slot: usize) {
    let thread = &mut node.threads[slot];
    if thread.dies_at != 0 && thread.messages >= thread.dies_at {
        thread.attention |= attention::DIE;
        node.timer.arm(m, 0);
    }
}

/// Returns a thread that is marked and waits, and so would not come to die by itself.
#[cold]
pub fn marked_waiter(node: &Node) -> Option<usize> {
    (FIRST_SERVICE..SERVICE_SLOTS).find(|&slot| {
        let thread = &node.threads[slot];
        thread.attention & attention::DIE != 0 && thread.flags != 0
    })
}
