//! A thread of the guest.

use crate::stack::Stack;

/// Why a thread has entered the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Doing {
    /// None of the reasons below: an exception, an interrupt, another kernel call.
    Computing,
    /// A Linux call.
    LinuxCall {
        /// Its number.
        number: u32,
        /// Its span.
        span: Option<u32>,
        /// `execve`: the name of the program.
        program: Option<String>,
    },
    /// `SENDREC` with this label.
    Asking(u32),
    /// A request whose reply comes as a message.
    Sending {
        /// Whether the same call receives the next message.
        receives: bool,
    },
    /// The receipt of a message.
    Receiving,
    /// `Fork` of the thread in this slot.
    Forking(u32),
    /// `Create`.
    Creating,
}

/// A thread.
pub struct Thread {
    /// Its number among the actors.
    pub actor: u32,
    /// Its call stack.
    pub stack: Stack,
    /// Why it is in the kernel.
    pub doing: Doing,
    /// The span of the request that it handles.
    pub work: Option<u32>,
}

impl Thread {
    /// A thread that has not run.
    pub fn new(actor: u32, context: u32) -> Self {
        Thread { actor, stack: Stack::new(context), doing: Doing::Computing, work: None }
    }
}
