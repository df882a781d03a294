//! tmpfs: file systems in memory, such as /dev/shm.
//!
//! | module | what it is about |
//! |---|---|
//! | `plan`, `memory` | where everything lies; words that change together or not at all |
//! | `pages`, `inode`, `entry` | the records, and which of them are free |
//! | `map` | from positions in a file to pages |
//! | `volume` | the mounted file system |
//! | `data`, `naming`, `rename`, `xattr` | the operations |
//! | `file_system`, `process` | the trait, and the service |
//!
//! A file system is an area of preserved memory, and nothing else: there is no device, no cache, and nothing on the heap. Its
//! process may die at any instruction: a request is one transaction of the process's undo log (`fs::preserve`), and the successor
//! goes on with the area as the last commit has left it (ADR 123). Memory of pages that have become free goes back to vm at the next heartbeat.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_macros))]

extern crate alloc;

mod data;
mod entry;
mod file_system;
mod inode;
mod map;
mod memory;
mod naming;
mod pages;
pub mod plan;
pub mod process;
mod rename;
#[cfg(test)]
mod tests;
mod volume;
mod xattr;

pub use volume::{Format, Options, Tmpfs};
