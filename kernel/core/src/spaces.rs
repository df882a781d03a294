//! Address spaces.

/// Most pages mapped between two preemption points.
pub const PAGES_AT_ONCE: u64 = 256;
