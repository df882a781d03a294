//! What is done with an address space: page `fault`s; the calls of programs (`mmap`, `protect`, `remap`, `advise`, `segments`); whole spaces made
//! and replaced (`fork`, `exec` with its `placement`, `spawn`); `devices` and the `windows` that programs have of them, the `cache` of vfs, what services `discard`, pages made `resident` for real time, `reports`.

pub mod advise;
mod cache;
pub mod devices;
mod discard;
pub mod exec;
pub mod fault;
mod fork;
pub mod limits;
pub mod mmap;
mod placement;
mod protect;
mod remap;
mod reports;
mod resident;
pub mod segments;
pub mod spawn;
pub mod windows;
