//! `ELOCKED`: refuses a wait that would close a circle of threads waiting for each other.
//!
//! Every thread waits for at most one other, so the waits form chains, and since every wait is checked before it
//! begins, no circle exists when a check starts: following the chain from the new peer either ends or comes back to the
//! caller, in at most as many steps as there are threads. Neighbours: `ipc`, `report`.

use crate::{Node, sched::table::Holder};

use abi::{Endpoint, endpoint::SLOTS};

/// True when `caller` would wait for itself by waiting for `peer`.
#[inline(never)]
pub fn closes_circle(node: &Node, caller: usize, peer: Endpoint) -> bool {
    let mut peer = peer;
    for _ in 0..SLOTS {
        let Ok(Holder::Live(slot)) = node.threads.holder(peer) else { return false };
        if slot == caller {
            return true;
        }
        let Some(next) = node.threads[slot].state.peer() else { return false };
        peer = next;
    }
    false
}
