//! execve: `arguments` holds what the new program is told, `stack` lays it out in memory (both pure),
//! `copy` fetches it from the caller, `flow` joins vfs, vm and the kernel.

pub mod arguments;
pub mod copy;
pub mod flow;
pub mod stack;
