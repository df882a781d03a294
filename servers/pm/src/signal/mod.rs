//! Signals. `number` names them, `info` says why one was sent, `action` what a process wants done, `pending` holds what has
//! not been delivered, `frame` is the memory layout a handler sees: all pure. `send` and `deliver` join them to processes,
//! `calls` are the system calls.

pub mod action;
pub mod calls;
pub mod deliver;
pub mod exception;
pub mod frame;
pub mod info;
pub mod number;
pub mod pending;
pub mod send;
pub mod wait_calls;

pub use action::{Action, Disposition};
pub use info::SigInfo;
pub use number::{Set, Signal};
pub use pending::Pending;
