//! What becomes of the threads that wait for one that has died: their calls fail, or are made again to the successor.
//!
//! All threads have to be looked at, and many may wait. So this is the kernel's own work, in pieces that interrupts preempt: before any
//! time-shared thread runs, and behind the real-time ones. Whatever depends on its end (a next holder of the slot, the next death) goes on
//! with it first. Neighbours: `life` (`Destroy`), `critical` (vm and rs), `dispatch` (deferred work), `calls`.

use crate::{
    Machine, Node, ipc::message, ipc::notify, node::release::Fate, priority::SYSTEM_QUEUE, stop::Stop,
    stop::preemption_point, thread::MessageSource, thread::state::BlockedOn, thread::state::Continuation,
};

use abi::endpoint::{FIRST_CONTAINER, FIRST_SERVICE, SERVICE_SLOTS, SLOTS};
use abi::{Endpoint, Errno};

/// Threads passed between two preemption points.
const PASSED_AT_ONCE: usize = 32;
/// To end or repeat the call of one takes as long as to pass so many, and as to see that a program is waited for by none of `PASSED_AT_ONCE`.
const PEER_STEPS: usize = 16;

/// Begins to release the peers of the thread that has died in `slot`; no other release is in progress. Only services wait for
/// applications outside of containers: those are released at once.
pub fn begin<M: Machine>(node: &mut Node, m: &mut M, slot: usize, fate: Fate) {
    if slot < SERVICE_SLOTS || node.threads[slot].privileges as usize >= FIRST_CONTAINER {
        node.release.begin(slot, fate);
        return node.threads.defer(SYSTEM_QUEUE);
    }
    for waiter in FIRST_SERVICE..SERVICE_SLOTS {
        // Nearly none does, and all are asked at each end of a program.
        if node.threads[waiter].state.peer_in(slot).is_some() {
            core::hint::cold_path();
            release_peer(node, m, waiter, slot, fate);
        }
    }
    notify::notify_refused_senders(node, m, slot);
}

/// Releases all that are left, for a call that depends on it.
pub fn finish<M: Machine>(node: &mut Node, m: &mut M) -> Result<(), Stop> {
    while release_some(node, m) {
        preemption_point(m)?;
    }
    Ok(())
}

/// Releases the next peers. Returns false when there are no more.
pub fn release_some<M: Machine>(node: &mut Node, m: &mut M) -> bool {
    let mut steps = 0;
    while steps < PASSED_AT_ONCE {
        let Some((waiter, slot, fate)) = node.release.next(&node.threads, PASSED_AT_ONCE) else { return false };
        if waiter == SLOTS {
            notify::notify_refused_senders(node, m, slot);
            return false;
        }
        steps += if release_peer(node, m, waiter, slot, fate) || slot >= SERVICE_SLOTS { PEER_STEPS } else { 1 };
    }
    true
}

/// Cancels the notification and the request of the thread that died in `slot`, and fails the call of `waiter` that waits for it, unless that
/// may wait for a successor: reports and Linux calls that it held are repeated. Returns true when `waiter` waited for it.
fn release_peer<M: Machine>(node: &mut Node, m: &mut M, waiter: usize, slot: usize, fate: Fate) -> bool {
    let thread = &mut node.threads[waiter];
    if slot < SERVICE_SLOTS && fate != Fate::Restarts {
        thread.pending[slot / 64] &= !(1 << (slot % 64));
        thread.wanted[slot / 64] &= !(1 << (slot % 64));
    }
    let Some(peer) = thread.state.peer_in(slot) else { return false };
    let is_held = matches!(thread.state.blocked_on(), Some(BlockedOn::Answer(_)));
    match (thread.form, fate) {
        (_, Fate::Restarts) | (MessageSource::Kernel, _) if is_held => ask_again(node, m, waiter, slot),
        (MessageSource::Linux | MessageSource::Repeated, Fate::Expected) if is_held => ask_again(node, m, waiter, slot),
        (_, Fate::Restarts) | (MessageSource::Kernel, _) => {}
        _ if fate == Fate::Gone || peer.generation() != 0 => message::fail_wait(node, m, waiter, Errno::EDEADSRCDST),
        _ => {}
    }
    true
}

/// Makes the request of `waiter`, which the holder of `slot` held when it died, again: to the successor, or as soon as there is one. It is
/// still where it came from, since only a reply changes it; a Linux call says that it is repeated, and keeps its number.
fn ask_again<M: Machine>(node: &mut Node, m: &mut M, waiter: usize, slot: usize) {
    let thread = &mut node.threads[waiter];
    thread.state.unblock();
    if matches!(thread.form, MessageSource::Linux | MessageSource::Repeated) {
        thread.form = MessageSource::Repeated;
        thread.messages = thread.messages.wrapping_sub(1);
    }
    let to = Endpoint::current(slot);
    if message::transmit(node, m, waiter, to, Continuation::Answer).is_err() {
        message::wait_to_send(node, waiter, to, Continuation::Answer);
    }
}
