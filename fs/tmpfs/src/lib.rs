//! tmpfs: file systems in memory, such as /dev/shm.
//!
//! Each is ext2's code over a block device in preserved memory (`memory`), formatted when it is mounted (`format`). So its state
//! survives a crash as ext2's does, and names, links, sparse files and limits are implemented once (ADR 24). The memory of
//! blocks that have become free goes back to vm at the next heartbeat.
#![no_std]
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_macros))]

extern crate alloc;

pub mod format;
pub mod memory;
pub mod process;
