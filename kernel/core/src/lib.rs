//! The portable half of the kernel: everything that decides.
//!
//! IPC, scheduling, privileges, grants, timers, interrupts, kernel calls and the life of threads, as one struct
//! ([`Node`]) of fixed tables: no allocation, no globals, no locks, no assembly, no `unsafe`. What only hardware can do
//! is asked of a [`Machine`]: `kernel/x86_64` implements it for the real one, the tests of this crate for a made-up
//! one.
//!
//! The kernel is event-style: every entry (system call, fault, interrupt) runs to its end on one stack and then asks
//! [`Node::next`] who continues. What cannot finish now is remembered in the thread and taken up when that is next
//! dispatched.
//!
//! Reading order: `frame`, `thread`, `machine`, `node`, then `ipc` and its neighbours.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

mod alarm;
mod call;
pub mod copy;
mod deadlines;
mod deadlock;
mod decode;
mod denial;
mod devices;
mod emulate;
pub mod frame;
mod futex;
mod futex_pi;
mod grants;
mod hal;
mod hand_over;
mod inform;
mod inject;
mod ipc;
mod lend;
mod life;
pub mod line;
mod linux_time;
pub mod machine;
mod memory;
mod mrt;
pub mod node;
mod notify;
mod ports;
mod privilege;
mod queue;
mod report;
mod roots;
mod route;
pub mod rt;
mod scheduler;
pub mod snapshot;
pub mod spaces;
mod system;
pub mod thread;
mod throttle;
mod tracing;

pub use frame::Frame;
pub use hand_over::HandOver;
pub use machine::Machine;
pub use node::{Next, Node};
pub use thread::{Space, Thread};
