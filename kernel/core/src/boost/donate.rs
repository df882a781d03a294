//! Priority inheritance over IPC: a service runs at the best priority of the real-time clients whose requests it holds or
//! that queue for it, transitively. The donation ends when it waits for the next message of any thread. Work triggered by
//! notifications runs at its base priority, except CLOCK's.
//!
//! A real-time thread, and a service while it has a donation, takes no fast path (`Threads::best_for_fast_path`), so the
//! fast path knows nothing of this. Neighbours: `ipc`, `inheritance` (decides), `effects`.

use crate::{Node, boost::effects, inheritance::NOTHING, priority::SYSTEM_QUEUE, thread::state::BlockedOn};

use abi::{endpoint::FIRST_SERVICE, endpoint::SERVICE_SLOTS};

/// Records that `to` received a message from `from` and inherits its priority.
#[inline(always)]
pub fn donate(node: &mut Node, from: usize, to: usize) {
    let queue = node.threads[from].queue;
    if queue < SYSTEM_QUEUE {
        set_donation(node, queue, to);
    } else if node.threads[to].base_queue < SYSTEM_QUEUE {
        set_donation(node, NOTHING, to);
    }
}

/// Sets the queue donated to the thread in this slot, if it is a service that lives: its successor inherits from the clients whose requests it takes.
#[cold]
pub fn set_donation(node: &mut Node, queue: u8, slot: usize) {
    if (FIRST_SERVICE..SERVICE_SLOTS).contains(&slot) && node.threads[slot].is_live() {
        effects::take_part(node, slot);
        effects::decide(node, |rt, effects| rt.donate(slot as u16, queue, effects));
        node.threads.bar_fast_path(slot);
    }
}

/// Donates the queue of a thread that waits for `to` to that, and along the chain of threads that it waits for. No wait
/// closes a circle.
pub fn donate_along(node: &mut Node, queue: u8, to: usize) {
    let mut link = Some(to);
    while let Some(slot) = link.filter(|&slot| queue < SYSTEM_QUEUE && queue < node.threads[slot].base_queue) {
        set_donation(node, queue, slot);
        link = server_of(node, slot).filter(|_| slot < SERVICE_SLOTS);
    }
}

/// The service that a thread waits for, in a call.
pub fn server_of(node: &Node, slot: usize) -> Option<usize> {
    match node.threads[slot].state.blocked_on() {
        Some(BlockedOn::Send(server, _) | BlockedOn::Answer(server)) => Some(server.slot()),
        _ => None,
    }
}
