//! Rooms: parts of the kernel that are not microkernel, each in a folder that a build can leave out.
//!
//! A room and its twin in `absent` have the same items. A feature of the crate decides here, once, which of them is
//! used, so that the core asks no questions. The core uses what stands in the room's `mod.rs`; a room uses the core as
//! any part of it does. Neighbours: `probes` (rooms below the core).

#[cfg_attr(not(feature = "minix4rt"), path = "absent/minix4rt.rs")]
pub mod minix4rt;
#[cfg_attr(not(feature = "port_ways"), path = "absent/port_ways.rs")]
pub mod port_ways;

use crate::node::Node;
use minix4rt::Minix4rt;
use zerocopy::FromZeros;

/// The kernel of one CPU: the microkernel, and the state of the rooms that have some.
#[derive(Debug, FromZeros)]
pub struct Kernel {
    pub(crate) node: Node,
    pub(crate) mrt: Minix4rt,
}
