//! Probes: rooms that watch the microkernel or disturb it, and so stand below it.
//!
//! They have no twins. Where a probe is left out, the question whether it is on has a constant answer, and the compiler
//! drops what depends on it.

pub mod injection;
pub mod tracing;
