//! vm, the memory server: frames, address spaces, page faults, images of programs and files (`abi::vm`).
//!
//! vm is what all memory stands on, so it stands on nothing: it waits for nobody, its own memory is mapped before it is
//! used, and no request makes it panic. All decisions are host-testable: they see the kernel through the trait in `kernel`.
//!
//! Reading order: `frames`, `pages`, `region`, `object`, `memory`; then `space` and what is done with one (`fault`, `fork`,
//! `exec`, `spawn`, `mmap`, `protect`, `remap`, `advise`, `devices`); then `processes`, `server`, `requests`, `program`.
#![cfg_attr(not(test), no_std, no_main)]
#![forbid(unsafe_code)]

extern crate alloc;

mod advise;
mod devices;
mod exec;
mod fault;
mod file_maps;
mod fork;
mod frames;
mod images;
mod kernel;
mod marks;
mod memory;
mod mmap;
mod object;
mod pages;
mod processes;
#[cfg(target_os = "none")]
mod program;
mod protect;
mod recovery;
mod region;
mod remap;
mod reports;
mod requests;
mod resident;
mod server;
mod shared_file;
mod space;
mod spawn;
mod syncs;

#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tests;

#[cfg(target_os = "none")]
sys::program!(program::main);
