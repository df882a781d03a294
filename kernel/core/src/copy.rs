//! Copies between address spaces.

/// Most bytes copied between two preemption points.
pub const CHUNK_BYTES: u64 = 64 * 1024;
