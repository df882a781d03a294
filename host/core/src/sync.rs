//! The atomics that boxes consist of. The model test (`host/core/tests/loom.rs`) compiles [`crate::pair`] with others in their place.

pub use std::hint::spin_loop as pause;
use std::sync::atomic::Ordering::{Release, SeqCst};
use std::sync::atomic::fence;
pub use std::sync::atomic::{AtomicU32, AtomicU64};

/// Looks at a message that is being taken back, before the receiver decides.
pub const LEAVING_LOOKS: u32 = 200;

/// Stores a value, and makes sure that all processors see it before this one loads anything else.
pub fn store_and_fence(place: &AtomicU32, value: u32) {
    // On x86 one instruction does both, but the value would leave later: when all stores before it have.
    place.store(value, Release);
    fence(SeqCst);
}
