//! Messages between threads, and those that the kernel sends in a thread's name.

pub(crate) mod critical;
mod deadlock;
pub(crate) mod fast_path;
pub(crate) mod in_memory;
pub(crate) mod message;
pub(crate) mod notify;
pub(crate) mod report;
