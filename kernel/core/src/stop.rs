//! Why a kernel call does not return a value now: the error type of everything that calls are made of.
//!
//! A leaf: files that implement calls return it, `ipc::report` (`finish`) acts on it.

use abi::Errno;

use crate::{Machine, machine::Fault};

/// Why a kernel call does not return a value now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// It has failed.
    Error(Errno),
    /// It ends its caller, as a general-protection fault about this address (a port) would.
    Exception(u64),
    /// It needs memory of the thread in this slot.
    Fault(usize, Fault),
    /// Interrupts want to be taken; it goes on afterwards.
    Preempted,
    /// The caller waits or is gone; there is no result.
    NoResult,
}

impl From<Errno> for Stop {
    fn from(error: Errno) -> Stop {
        Stop::Error(error)
    }
}

/// A preemption point of a long call, which is to keep its progress: `Preempted` when interrupts wait to be taken.
pub fn preemption_point<M: Machine>(m: &mut M) -> Result<(), Stop> {
    if m.interrupt_pending() { Err(Stop::Preempted) } else { Ok(()) }
}
