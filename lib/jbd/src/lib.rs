//! The journal of ext3: its format on the disk (JBD), what a recovery does with it, and where a commit goes.
//!
//! ```text
//! block   0            first …                                                        length - 1
//!         superblock   [revoke] descriptor, content … [descriptor, content …] commit  …   (then again from `first`)
//! ```
//!
//! A transaction is a run of blocks with one sequence number. It counts only with its commit block. *Descriptors* say to which block
//! of the file system (its *home*) each of the following contents belongs; *revocations* say that earlier contents of a block must not
//! be replayed, because it is free or has become file data. All numbers are big-endian. A content that begins with the journal's magic
//! number is *escaped*: those four bytes are zeros in the journal.
//!
//! | module | what it is about |
//! |---|---|
//! | `format` | blocks of a transaction: reading and making them |
//! | `superblock` | the journal's first block |
//! | `log` | the circle of blocks: where the next commit goes, and whether it fits |
//! | `recovery` | the three passes of a replay |
//!
//! Nothing here reads or writes a device: callers do (`recovery::Device`). Nothing read from a disk is trusted, and no work is bounded
//! by a number on the disk alone. Neighbour: `fs/ext2/src/journal.rs`.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_macros))]

extern crate alloc;

pub mod format;
pub mod log;
pub mod recovery;
pub mod superblock;
