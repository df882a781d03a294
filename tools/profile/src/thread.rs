//! A thread of the guest.

use crate::stack::Stack;

/// What a thread has entered the kernel for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Doing {
    /// Nothing that matters here: it computes, or was interrupted.
    Computing,
    /// A Linux call.
    LinuxCall {
        /// Its number.
        number: u32,
        /// What it takes.
        span: Option<u32>,
        /// The program that takes its place, if the call does that.
        program: Option<String>,
    },
    /// A request whose answer it waits for.
    Asking(u32),
    /// A request that it does not wait for, without or with the wait for the next message.
    Sending {
        /// Whether it waits for a message too.
        receives: bool,
    },
    /// The wait for a message.
    Receiving,
    /// `Fork`, in the place of this thread's slot.
    Forking(u32),
    /// `Create`.
    Creating,
}

/// A thread.
pub struct Thread {
    /// Its number among the actors.
    pub actor: u32,
    /// The functions it is in.
    pub stack: Stack,
    /// What it does in the kernel.
    pub doing: Doing,
    /// What it works on.
    pub work: Option<u32>,
}

impl Thread {
    /// One that has done nothing.
    pub fn new(actor: u32, context: u32) -> Self {
        Thread { actor, stack: Stack::new(context), doing: Doing::Computing, work: None }
    }
}
