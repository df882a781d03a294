//! The runtime of every native program: start code, IPC primitives, kernel calls, grants, heap, panic handler.
//!
//! Its functions are safe: this crate contains the `unsafe` code that its users must not write. Three rules make that sound:
//! a native program has one thread; another process writes into its memory only through a [`grant`], which borrows or
//! owns its buffer until it is revoked; and kernel calls that could write into the caller's own memory refuse the
//! caller as destination. (Physical memory and memory of other processes, as vm, rs and drivers use them, are outside of
//! Rust's memory model.)
//!
//! A service begins with
//! ```text
//! #![cfg_attr(not(test), no_std, no_main)]
//! #![forbid(unsafe_code)]
//! sys::program!(main);
//! fn main(start: sys::Start) { … }
//! ```
//! Everything compiles for the host too, where calls go to the [`host::Kernel`] that a test has installed.
//!
//! Neighbours: `abi` below; `server` and `driver` above.
#![cfg_attr(not(test), no_std)]

#[cfg(not(target_os = "none"))]
extern crate std;

extern crate alloc;

pub mod console;
pub mod copy;
pub mod fallible;
pub mod grant;
pub mod info;
pub mod ipc;
pub mod irq;
pub mod keep;
pub mod linux;
pub mod linux_heap;
pub mod linux_output;
pub mod linux_processes;
pub mod page_cache;
pub mod port;
pub mod random;
pub mod retained;
pub mod rights;
pub mod rt;
pub mod space;
pub mod start;
pub mod system;
pub mod text;
pub mod thread;
pub mod time;
pub mod trim;

#[cfg(any(target_os = "none", test))]
mod arenas;
#[cfg(target_os = "none")]
mod discard;
#[cfg(target_os = "none")]
pub mod heap;
#[cfg(any(target_os = "none", test))]
mod holes;
#[cfg(target_os = "none")]
mod panic;
#[cfg(target_os = "none")]
mod raw;
#[cfg(any(target_os = "none", test))]
mod reserve;
mod result;
#[cfg(any(target_os = "none", test))]
mod small;

#[cfg(not(target_os = "none"))]
pub mod host;
#[cfg(not(target_os = "none"))]
use host as raw;

pub use abi::{Endpoint, Errno, GrantId, Message, Name};
pub use result::Result;
pub use start::{Start, StartKind, endpoint, name};
