//! The world around m3ipc, as a trait, so that all else runs on the host.

use abi::{Endpoint, Errno, GrantId};
use m3ipc::error::Error;

/// What a thread does by the kernel's primitives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Native {
    /// It runs, or waits in a call of a service.
    Elsewhere,
    /// It waits to send to this thread.
    Sending(Endpoint),
    /// It waits for a message of this thread, or of anybody.
    Receiving(Endpoint),
    /// It waits for the answer of this thread.
    Answering(Endpoint),
}

/// A process as pm knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Its first thread.
    pub thread: Endpoint,
    /// Its pid.
    pub pid: i32,
    /// Its effective user.
    pub user: u32,
    /// Its effective group.
    pub group: u32,
    /// Its effective capabilities (`abi::CapabilitySet`).
    pub capabilities: u64,
    /// Its name when pm was asked (/proc/PID/comm).
    pub name: [u8; 16],
}

impl Identity {
    /// A process of another node.
    pub const NOBODY: Identity =
        Identity { thread: Endpoint::NONE, pid: -1, user: 0, group: 0, capabilities: 0, name: [0; 16] };

    /// # Errors
    /// `NotPermitted`: it is not root's.
    pub fn check_root(&self) -> Result<(), Error> {
        if self.user == 0 { Ok(()) } else { Err(Error::NotPermitted) }
    }
}

/// The kernel and pm.
pub trait System {
    /// Copies out of a program. `Fault`.
    fn read(&mut self, thread: Endpoint, address: u64, into: &mut [u8]) -> Result<(), Error>;
    /// Copies into a program. `Fault`.
    fn write(&mut self, thread: Endpoint, address: u64, bytes: &[u8]) -> Result<(), Error>;
    /// Copies from one program to another. `Fault`.
    fn copy(&mut self, from: (Endpoint, u64), to: (Endpoint, u64), bytes: u64) -> Result<(), Error>;
    /// Ends the call of a thread with this result. Returns false when it does not wait for that any more.
    fn reply(&mut self, thread: Endpoint, result: i64) -> bool;
    /// Gives a thread the row of a container, or of none. Its wait in a primitive, if there is one, fails, and its library asks how to go on.
    fn join(&mut self, thread: Endpoint, row: usize);
    /// Lets a primitive of a member with this row fail with an error of M3-IPC, if it waits for `peer`, or for whomever (`NONE`).
    fn fail(&mut self, thread: Endpoint, row: usize, peer: Endpoint, error: Error);
    /// Ends the thread's next, or present, receiving by the kernel's primitives.
    fn notify(&mut self, thread: Endpoint);
    /// What a thread does; `None`: it has ended.
    fn state(&mut self, thread: Endpoint) -> Option<Native>;
    /// Whether a thread waits for a call of m3ipc to end, or to begin.
    fn is_calling(&mut self, thread: Endpoint) -> bool;
    /// The process of a thread, or the one with this pid if that is not 0; its end is told from then on. `BadPid`.
    fn enroll(&mut self, thread: Endpoint, pid: i32) -> Result<Identity, Error>;
    /// Sends a signal to a process.
    fn signal(&mut self, pid: i32, signal: u64);
    /// Copies into a grant of a service.
    fn write_grant(&mut self, to: Endpoint, grant: GrantId, offset: u64, bytes: &[u8]) -> Result<(), Errno>;
    /// Monotonic time.
    fn now_ns(&mut self) -> u64;
    /// One alarm at this time; 0: none.
    fn set_alarm(&mut self, deadline_ns: u64);
    /// Writes a line to the kernel's log.
    fn log(&mut self, line: core::fmt::Arguments);
}
