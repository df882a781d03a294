//! Surviving a death: what a service knew, for the successor that rs (or the kernel) starts in its place.
//!
//! A service may be killed between any two instructions: by an exception, by rs because it is silent, by `service kill`. Whatever
//! its successor needs must be complete in a memory that outlives the process *at every instruction*. Five techniques, by what
//! survives; take the first that fits:
//!
//! | module | what survives | limit | cost of a change | who restores | used by |
//! |---|---|---|---|---|---|
//! | [`values`] | a few values under keys, held by ds | 32 of 1 KiB | a message and a copy | the successor asks for each | mayfly |
//! | [`snapshot`] | the whole state as bytes, in few parts | preserved memory | writing the changed part again | `load` of each part | ds, tty |
//! | [`records`] | tables of small records that change together | preserved memory | 3 stores a word | [`records::Recover::open`] undoes an unfinished change | vfs, devfs |
//! | [`transaction`] | bytes used where they lie, such as cached blocks, and the records of tmpfs | preserved memory | a copy of the old bytes, once | [`transaction::Undo::roll_back`] | ext2, tmpfs |
//! | [`retained`] | data and heap themselves | all memory | none | the service makes its tables whole, by hand | pm, vm, rs |
//!
//! * State that can be asked for again (who is mounted, which services are up) needs none of them.
//! * *Preserved memory* is `keep_bytes` of the service in the system file; `sys::keep` gives access to it, in program order. Where
//!   each change is a single word that follows the bytes it speaks of, as for the ring of a serial line
//!   (`drivers/uart/src/store.rs`), that order alone suffices.
//! * *Retained memory* is `retained = true` in the system file. It is for services that are needed to restart the others. A death
//!   in the middle of a computation may leave any collection half changed, so it needs the most thought; see
//!   `docs/book/recovery.md`.
//! * Live update: all but `retained` also carry over to a new program, which must know the layout; hence its number.
//!
//! With each goes the question what becomes of the request over which the service died. It comes again, since its sender repeats
//! it: [`in_progress`] gives the answer that was ready, or refuses a request that has killed the service twice.
//!
//! Neighbours: `sys` below, which holds all `unsafe` of this; `server`, `fs` and the services above.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_macros))]

extern crate alloc;

pub mod check;
pub mod in_progress;
pub mod records;
pub mod retained;
pub mod snapshot;
pub mod transaction;
pub mod values;
