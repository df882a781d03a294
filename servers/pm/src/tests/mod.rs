//! pm as a whole, against a fake world: programs are driven call by call, and what pm asks of kernel, vm and vfs is seen.

mod allocations;
mod answers;
mod attributes;
mod clone;
mod contained;
mod containers;
mod control;
mod conventions;
mod core_dumps;
mod deaths;
mod deaths_over_memory;
mod exec;
mod exec_details;
mod fake;
mod forks;
mod frame_headers;
mod frames;
mod futexes;
mod group_kills;
mod ids;
mod jobs;
mod kcmp;
mod kills;
mod life;
mod limited;
mod messages;
mod pidfds;
mod ptrace;
mod quotas;
mod recovery;
mod scheduling;
mod seccomp;
mod segments;
mod semaphores;
mod services;
mod signal_calls;
mod signal_waits;
mod signalfds;
mod signals;
mod time;
mod timers;
mod waits;
mod watches;
mod world;

pub use fake::{ATTACHED, MEMORY, Told};
pub use world::World;

use abi::Errno;

/// What a call gives: its result if that came at once; `None`: the caller waits, is gone, or runs on with other registers.
pub type Answer = Option<Result<u64, Errno>>;

pub const DONE: Answer = Some(Ok(0));

pub const fn failed(error: Errno) -> Answer {
    Some(Err(error))
}

pub const SECOND: u64 = 1_000_000_000;
