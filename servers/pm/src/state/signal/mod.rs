//! Signals as data. `number` names them, `info` says why one was sent, `action` is what a process wants done, `pending` holds those
//! not yet delivered, `frame` is the memory layout that a handler sees, `exception` maps processor exceptions to signals.

pub mod action;
pub mod exception;
pub mod frame;
pub mod info;
pub mod number;
pub mod pending;

pub use action::{Action, Disposition};
pub use info::SigInfo;
pub use number::{Set, Signal};
pub use pending::Pending;
