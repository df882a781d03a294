//! vfs as a whole, by system call: programs call it as the kernel would let them, and its answers, their memory and the disk are looked at.
//!
//! Everything behind vfs is real but the disk, vm and ds: ext2 and tmpfs run as the services that they are (`sys::host::machine`).
//! Nothing here knows what vfs is made of. `world` has what a test needs; the other files are named after what they try.

mod again;
mod aio;
mod append;
mod appended;
mod asynchronous;
mod attributes;
mod binds;
mod cache;
mod capabilities;
mod coherent;
mod contained;
mod container_limits;
mod control;
mod creating;
mod data;
mod deaths;
mod descriptors;
mod device_memory;
mod devices;
mod directories;
mod dirty;
mod epoll;
mod epoll_deaths;
mod epoll_nested;
mod eventfds;
mod exec;
mod format;
mod inotify;
mod known;
mod leases;
mod limits;
mod links;
mod locks;
mod loops;
mod mappings;
mod meanwhile;
mod mounting;
mod nameless;
mod names;
mod new_pages;
mod numbers;
mod opens;
mod paths;
mod permissions;
mod pidfds;
mod pipes;
mod places;
mod poll;
mod positions;
mod proc;
mod ptys;
mod queues;
mod removing;
mod requests;
mod restart;
mod seals;
mod services;
mod signalfds;
mod sizes;
mod sockets;
mod splice;
mod terminals;
mod timers;
mod times;
mod waits;
mod whiteouts;
mod world;
mod written_back;
mod xattrs;

pub use numbers::*;
pub use world::{DATA, MEMORY, PROCFS, Result, World};

/// Returns what draws a number below another one: the same ones for the same seed, which is not 0.
pub fn random(seed: u64) -> impl FnMut(u64) -> u64 {
    let mut state = seed;
    move |end| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % end
    }
}
