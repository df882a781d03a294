//! Requests that a terminal cannot reply to yet, and the events they wait for.

use crate::arrivals::Asked;
use crate::termios::Termios;
use abi::{GrantId, Message};

/// A request that waits.
#[derive(Clone, Copy)]
pub(crate) struct Waiting {
    pub(crate) request: Message,
    pub(crate) need: Need,
}

/// What a waiting request waits for.
#[derive(Clone, Copy)]
pub(crate) enum Need {
    /// Input. `deadline_ns`: when VTIME lets it end.
    Input { grant: GrantId, bytes: usize, deadline_ns: Option<u64> },
    /// Room for the rest of a write.
    Room { grant: GrantId, bytes: usize, done: usize },
    /// Any of the events of a poll.
    Events(Asked),
    /// Until uart has all output; then a command to uart.
    Output(AfterOutput),
    /// Until uart has carried out a command.
    Line(AfterLine),
    /// Until the process is in the foreground: only a signal ends this wait.
    Foreground,
    /// Until pm says whether this process may do it in the background; or a signal ends this wait. `done`: of a write that is repeated.
    Verdict { pid: u32, done: usize },
    /// Until the terminal of this number is shown on the screen.
    Shown(u64),
}

/// What follows when uart has all output.
#[derive(Clone, Copy)]
pub(crate) enum AfterOutput {
    /// To wait until it has been sent, and then for these settings, if any (TCSETSW, tcdrain).
    Drain(Option<Termios>),
    /// A break of this duration in nanoseconds (TCSBRK).
    Break(u64),
}

/// What follows when uart has carried out a command.
#[derive(Clone, Copy)]
pub(crate) enum AfterLine {
    /// New settings, or nothing.
    Settings(Option<Termios>),
    /// The modem lines go to the caller.
    Modem(GrantId),
}
