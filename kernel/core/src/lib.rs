//! The portable half of the kernel: everything that decides.
//!
//! IPC, scheduling, privileges, grants, timers, interrupts, kernel calls and the life of threads, as one struct
//! ([`Kernel`]) of fixed tables: no allocation, no globals, no locks, no assembly, no `unsafe`. What only hardware can do
//! is asked of a [`Machine`]: `kernel/x86_64` implements it for the real one, the tests of this crate for a made-up
//! one.
//!
//! The kernel is event-style: every entry (system call, fault, interrupt) runs to its end on one stack and then asks
//! [`Kernel::next`] which thread continues. What cannot finish now is remembered in the thread and taken up when that is next
//! dispatched.
//!
//! Reading order: `frame`, `thread`, `machine`, `sched`, `node`, `entry`, then `ipc` and its neighbours. `layers.toml` says
//! which module may import which.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]
// What only a room uses is unused where the room is left out.
#![cfg_attr(
    not(all(feature = "injection", feature = "minix4rt", feature = "port_ways", feature = "tracing")),
    allow(dead_code)
)]

mod boost;
mod calls;
pub mod direct_ports;
mod dispatch;
mod entry;
pub mod frame;
mod futex;
mod inheritance;
mod interrupts;
mod ipc;
mod life;
mod linux;
pub mod machine;
mod memory;
mod node;
mod priority;
mod probes;
mod rights;
mod rooms;
mod sched;
#[cfg(feature = "snapshot")]
pub mod snapshot;
mod stop;
pub mod thread;
mod time;
pub mod vector;

pub use dispatch::Next;
pub use frame::Frame;
pub use ipc::fast_path::FastSwitch;
pub use machine::{Machine, Space};
pub use memory::{copy::CHUNK_BYTES, spaces::PAGES_AT_ONCE};
pub use rooms::Kernel;
pub use thread::Thread;

use node::Node;
