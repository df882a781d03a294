//! `execve`: `copy` fetches path and arguments from the caller, `flow` joins vfs, vm and the kernel, `stack` lays out the memory that
//! the new program starts with; `first` makes the first process and its program.

mod copy;
mod first;
mod flow;
mod stack;
