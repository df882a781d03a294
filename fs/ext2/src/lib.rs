//! The ext2 format (revisions 0 and 1) as a `FileSystem` over any block device.
//!
//! | module | what it is about |
//! |---|---|
//! | `superblock`, `group`, `inode`, `entry`, `bitmap` | structures on disk |
//! | `volume`, `inodes`, `inode_cache`, `users` | the mounted file system, its transactions; inodes in memory, and in use |
//! | `syncing`, `window` | the order of writes, commits; what the disk does not know yet |
//! | `journal`, `log_file`, `orphans` | the journal; inodes without name, which a mount after a power cut frees |
//! | `block_alloc`, `inode_alloc` | allocating and freeing blocks and inodes |
//! | `block_map`, `block_free`, `file`, `hole` | from positions in a file to blocks; reading, writing, truncating, punching holes |
//! | `xattr` | extended attributes, in the format of `fs::xattr_list` |
//! | `index`, `index_block`, `leaf`, `hash` | indexed directories: the tree, its blocks, the names of a leaf, the hash of a name |
//! | `directory`, `naming`, `rename`, `exchange` | directories and the operations on names |
//! | `file_system` | the trait |
//! | `process` | the service |
//!
//! Nothing on the disk is trusted: every number is checked before it is used, and a corrupt structure causes
//! `EUCLEAN`. No work is bounded by a number on the disk alone.
//!
//! The process may die at any instruction. What it has committed is in preserved memory (`fs::preserve`): a request is one transaction;
//! long writes and truncations are several, each of which leaves a consistent file system.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_macros))]

extern crate alloc;

mod bitmap;
mod block_alloc;
mod block_free;
mod block_map;
mod directory;
mod entry;
mod exchange;
mod file;
mod file_system;
mod group;
mod hash;
mod hole;
mod index;
mod index_block;
mod inode;
mod inode_alloc;
mod inode_cache;
mod inodes;
mod journal;
mod leaf;
mod log_file;
mod naming;
mod orphans;
pub mod process;
mod rename;
mod superblock;
mod syncing;
mod users;
mod volume;
mod window;
mod xattr;

pub use volume::{Ext2, Memo, Options};
