//! M3-IPC: messages between ordinary programs of one container. What programs call is in `lib/m3ipc`; here is how its library reaches the
//! server m3ipc.
//!
//! Programs make one routed call, `linux::nr::SKINK_M3IPC`: the number of an M3-IPC call (`m3ipc::call::Call`) and its arguments, addresses of
//! descriptors and names last, with a time limit also where the prototype has none; the result is that of the C function. Members that the kernel lets exchange messages
//! directly (`KernelCall::Join`) make the calls of `own` besides. All errors are M3-IPC's, negated. A primitive that m3ipc has ended fails with one of
//! them too (`EMOLDSTDIED`: the peer has ended, whatever the primitive), or with `EDEADSRCDST`, which asks for `own::RESUME`.

use crate::{Endpoint, GrantId};

protocol! {
    /// What procfs asks m3ipc, and pm tells it.
    pub "m3ipc" = 12;
    /// Writes a file of /proc/drvs (`m3ipc::TEXT_*`) into the grant; those of containers for this one. Word 0 of the reply: bytes written.
    /// `ESRCH`: there is no such container; `EINVAL`, `ENOSPC`.
    Text = 1 { what: u64, container: u64, grant: GrantId, bytes: u64 }
    /// Returns the containers, a bit each.
    Containers = 2 {} -> { containers: u64 }
    /// From pm, without a reply: the thread runs no more, and its process ends as soon as those who wait for it have had a chance to run.
    Ends = 3 { thread: Endpoint }
}

/// `Text`: /proc/drvs/info.
pub const TEXT_NODE: u64 = 0;
/// `Text`: /proc/drvs/nodes.
pub const TEXT_NODES: u64 = 1;
/// `Text`: `info` of a container.
pub const TEXT_CONTAINER: u64 = 2;
/// `Text`: `procs` of a container.
pub const TEXT_PROCESSES: u64 = 3;
/// `Text`: `stats` of a container.
pub const TEXT_COUNTS: u64 = 4;

/// Number of the routed call.
pub const SYSTEM_CALL: u32 = crate::linux::nr::SKINK_M3IPC;

/// Calls for the library alone.
pub mod own {
    /// `(address of a 64-bit count of what the thread sends by primitives, or 0)` → 0: the calling thread sends and receives by the calls of
    /// `m3ipc::call`; else by the kernel's primitives, and the result is the index of its slot in the low 8 bits, and above them another
    /// number for each binding. `EMOLNOTBIND`.
    pub const MODE: u64 = 256;
    /// `(endpoint)` → the kernel's endpoint of a process, and `FOUND`; 0: it is reached by the calls of `m3ipc::call` only. Stays valid as long
    /// as that thread lives. Errors as of `send`.
    pub const RESOLVE: u64 = 257;
    /// `(kernel's endpoint)` → the endpoint (32 bits) of the thread that a message came from, and `FOUND`. `EMOLNOTBIND`.
    pub const NAME: u64 = 258;
    /// `(endpoint or ANY, address of message, 1: messages only)`: receives what waits in the server, without waiting. → `LAST`: nothing else
    /// waits there; 0: something may. `EMOLAGAIN`.
    pub const FETCH: u64 = 259;
    /// `(call, endpoint, address of message)`: a primitive in this call failed with `EDEADSRCDST` or `ECALLDENIED`, or ended with a
    /// notification. → `REDO`: it is to be made again, after `MODE` and `RESOLVE`; 0: the answer is there; else its error.
    pub const RESUME: u64 = 260;
    /// `(milliseconds)`: the primitives of this thread fail from then on with `EMOLTIMEDOUT`; a negative number: not any more.
    pub const LIMIT: u64 = 261;
    /// `FETCH`: it was the last.
    pub const LAST: u64 = 1;
    /// Set in a word that has a result beside errors.
    pub const FOUND: u64 = 1 << 32;
    /// `RESUME`: the call is to be made again.
    pub const REDO: u64 = FOUND;
}
