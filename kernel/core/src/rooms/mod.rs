//! Rooms: parts of the kernel that are not microkernel, each in a folder that a build can leave out.
//!
//! A room and its twin in `absent` have the same items; which of them the kernel uses is decided here, once, by a feature of the crate, so
//! that the core asks no questions. What the core uses of a room stands in the room's `mod.rs`; rooms use the core as any part of it does.

#[cfg_attr(not(feature = "injection"), path = "absent/injection.rs")]
pub mod injection;
#[cfg_attr(not(feature = "minix4rt"), path = "absent/minix4rt.rs")]
pub mod minix4rt;
#[cfg_attr(not(feature = "port_ways"), path = "absent/port_ways.rs")]
pub mod port_ways;
#[cfg_attr(not(feature = "tracing"), path = "absent/tracing.rs")]
pub mod tracing;
