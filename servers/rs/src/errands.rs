//! What rs wants from pm: one thing after the other, and only while it cannot close a circle.
//!
//! pm may be waiting for vfs, vfs for ds, and ds for rs. So rs calls pm only while ds does not call rs: ds is up and has fetched all
//! changes. (And rs notifies ds only between calls of pm.)

use abi::pm::{Boot, ServiceUp, WhoIs};
use abi::{Endpoint, Errno, Message, Name};
use alloc::collections::VecDeque;
use sys::{Result, ipc};

/// One thing to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Errand {
    /// Tell pm that a service is up.
    Announce(Endpoint, Name),
    /// Have pm start the first program.
    Boot,
    /// Ask pm who makes this system call, then do what it asks.
    Control(Message),
}

/// What there is to do, in order.
#[derive(Debug, Default)]
pub struct Errands {
    queue: VecDeque<Errand>,
}

impl Errands {
    /// Adds one at the end.
    pub fn add(&mut self, errand: Errand) {
        self.queue.push_back(errand);
    }

    /// Takes the first.
    pub fn take(&mut self) -> Option<Errand> {
        self.queue.pop_front()
    }

    /// Puts back what could not be done now.
    pub fn put_back(&mut self, errand: Errand) {
        self.queue.push_front(errand);
    }
}

/// Tells pm that a service is up.
///
/// # Errors
/// Those of pm.
pub fn announce(process: Endpoint, name: Name) -> Result<()> {
    let (name_low, name_high) = name.to_words();
    ipc::call(Endpoint::PM, &ServiceUp { process, name_low, name_high }.message()).map(drop)
}

/// Has pm start the first program.
///
/// # Errors
/// Those of pm.
pub fn boot() -> Result<()> {
    ipc::call(Endpoint::PM, &Boot {}.message()).map(drop)
}

/// Only root may control services.
///
/// # Errors
/// `EPERM`: somebody else; those of pm.
pub fn check_root(process: Endpoint) -> Result<()> {
    let reply = ipc::call(Endpoint::PM, &WhoIs { process }.message())?;
    let (_, ids, _, _) = WhoIs::results(&reply)?;
    if ids as u32 == 0 { Ok(()) } else { Err(Errno::EPERM) }
}
