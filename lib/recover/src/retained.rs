//! Retained memory: the successor starts in the data and heap of its predecessor, with new text and an empty stack.
//!
//! Everything that is to survive hangs from one root, [`state`], which the first life makes and each later one finds. What the
//! predecessor was changing when it died is half changed. So before its first message a successor makes its tables whole: what
//! can be computed from the rest (lists, counts, timers) is computed anew, and what was begun is finished or taken back
//! (`recovery.rs` of pm, vm and rs). The request in progress is remembered by [`InProgress`](crate::in_progress::InProgress).

use abi::Endpoint;

pub use sys::retained::state;

/// Whether `process` is blocked until the service in `slot` answers it.
pub fn waits_for(process: Endpoint, slot: usize) -> bool {
    sys::info::thread(process.slot()).is_ok_and(|thread| thread.endpoint == process && thread.blocked_on.slot() == slot)
}
