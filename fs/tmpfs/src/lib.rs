//! tmpfs: file systems in memory, such as /dev/shm.
//!
//! Each is ext2's code over a block device that is a part of preserved memory (`memory`), formatted when it is mounted (`format`). So
//! everything that ext2 does outlives this process as ext2's state does, and there is one implementation of names, links, sparse files and
//! limits (ADR 24). What a file system has taken of the memory stays with this process, for its next files.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod format;
pub mod memory;
pub mod process;
