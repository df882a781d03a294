//! What a terminal needs from outside, and who makes its requests.

use abi::{Errno, GrantId, Message};

/// Signal numbers of signal(7) that terminals send.
pub mod signal {
    #![allow(missing_docs)]
    pub const SIGHUP: u32 = 1;
    pub const SIGINT: u32 = 2;
    pub const SIGQUIT: u32 = 3;
    pub const SIGCONT: u32 = 18;
    pub const SIGTSTP: u32 = 20;
    pub const SIGTTIN: u32 = 21;
    pub const SIGWINCH: u32 = 28;
}

/// What a terminal needs from outside: the callers' memory, replies, signals, time.
pub trait World {
    /// Copies into the buffer that the request's grant names.
    fn copy_out(&mut self, request: &Message, grant: GrantId, data: &[u8]) -> Result<(), Errno>;
    /// Copies from it, beginning at `offset`.
    fn copy_in(&mut self, request: &Message, grant: GrantId, offset: u64, buffer: &mut [u8]) -> Result<(), Errno>;
    /// Records that so much of a write has been queued; it waits for room.
    fn progress(&mut self, request: &Message, bytes: u64);
    /// Replies to a request.
    fn answer(&mut self, request: &Message, result: Result<u64, Errno>);
    /// Asks pm for a signal to a process group.
    fn signal(&mut self, signal: u32, group: u32);
    /// Asks pm whether a process exists: `Terminal::process_gone` if it does not.
    fn probe(&mut self, pid: u32);
    /// Asks pm whether a process may change the terminal from the background: `Terminal::judged`, unless it is stopped.
    fn judge(&mut self, pid: u32);
    /// Monotonic time.
    fn now_ns(&self) -> u64;
}

/// Who makes a request: process group and session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caller {
    pub group: u32,
    pub session: u32,
}

impl Caller {
    /// As packed in the word `caller` of `chardev`.
    pub fn from_word(word: u64) -> Caller {
        Caller { group: word as u32, session: (word >> 32) as u32 }
    }
}
