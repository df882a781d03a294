//! Messages between threads, and those that the kernel sends in a thread's name.

pub mod critical;
mod deadlock;
pub mod fast_path;
pub mod in_memory;
pub mod message;
pub mod notify;
pub mod release;
pub mod report;
