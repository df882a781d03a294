//! The file-system kit: what ext2, procfs and devfs have in common.
//!
//! * `file_system`: the trait a file system implements and the values it speaks of;
//! * `device`, `cache`: the block device below and the cache of its blocks;
//! * `lru`, `names`: the indexed caches that nodes and names are kept in.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod cache;
pub mod device;
pub mod file_system;
pub mod lru;
pub mod names;

pub use abi::Errno;
