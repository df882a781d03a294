//! The file-system kit: what ext2, tmpfs, procfs and devfs have in common.
//!
//! * `file_system`: the trait a file system implements and the values it speaks of;
//! * `device`, `cache`, `flights`, `frames`: the block device below, the cache of its blocks, reads in flight, the memory of blocks;
//! * `preserve`: the state that outlives the process, and the undo log that makes a request a transaction;
//! * `order`: when a dirty block may reach the disk;
//! * `lru`, `names`: the indexed caches that nodes and names are kept in;
//! * `bytes`, `xattr_list`: little-endian fields, and the format of extended attributes, which ext2 and tmpfs share;
//! * `server`, `volumes`, `transfer`, `linux`: from messages of vfs to the trait and back;
//! * `block_client`: the block device behind a driver process.
#![no_std]
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_macros))]

extern crate alloc;

pub mod block_client;
pub mod bytes;
pub mod cache;
pub mod device;
pub mod file_system;
pub mod flights;
pub mod frames;
pub mod linux;
pub mod lru;
pub mod names;
pub mod order;
pub mod preserve;
pub mod server;
pub mod transfer;
pub mod volumes;
pub mod xattr_list;

pub use abi::Errno;
