//! vm, the memory server: frames, address spaces, page faults, images of programs and files (`abi::vm`).
//!
//! vm is what all memory stands on, so it stands on nothing: it waits for nobody, its own memory is mapped before it is
//! used, and no request makes it panic. All decisions run in host tests: they see the kernel through the trait in `memory::kernel`.
//!
//! Reading order, which is also that of imports, from below: `memory` (frames, objects), `space` (regions, pages, who uses which space),
//! `operations` (page faults, calls), `server` (messages, `recovery` after a death), `program` (the real kernel).
#![cfg_attr(not(test), no_std, no_main)]
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_macros))]

extern crate alloc;

mod memory;
mod operations;
#[cfg(target_os = "none")]
mod program;
mod server;
mod space;

#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tests;

#[cfg(target_os = "none")]
sys::program!(program::main);
