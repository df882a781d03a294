//! Names of other services, as ds knows them.

use abi::ds::{Expect, Lookup, NextEvent, Subscribe};
use abi::{Endpoint, Errno, Name};
use sys::{Result, ipc};

/// Event of a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// Name of the service.
    pub name: Name,
    /// Its endpoint when it is up; when it is down `Endpoint::current` of its slot if a successor is expected, else `NONE`.
    pub endpoint: Endpoint,
    /// Whether it is up.
    pub up: bool,
}

/// Returns the endpoint of a service.
///
/// # Errors
/// `ENOENT`: no such service in the system; `EAGAIN`: it is down at the moment.
pub fn lookup(name: Name) -> Result<Endpoint> {
    let (name_low, name_high) = name.to_words();
    let reply = ipc::call_repeating(Endpoint::DS, &Lookup { name_low, name_high }.message())?;
    Lookup::results(&reply)
}

/// Returns the endpoint of a service, or while it starts `Endpoint::current` of its slot: a call to that waits for it.
///
/// # Errors
/// `ENOENT`: no such service in the system, or it is down for good.
pub fn expected(name: Name) -> Result<Endpoint> {
    let (name_low, name_high) = name.to_words();
    let reply = ipc::call_repeating(Endpoint::DS, &Expect { name_low, name_high }.message())?;
    Expect::results(&reply)
}

/// Subscribes to a service: ds notifies the caller whenever it comes up or goes down; see [`next_event`].
///
/// # Errors
/// Those of ds.
pub fn subscribe(name: Name) -> Result<()> {
    let (name_low, name_high) = name.to_words();
    ipc::call_repeating(Endpoint::DS, &Subscribe { name_low, name_high }.message()).map(drop)
}

/// Returns the next event, after a notification from ds; `None` if none is left.
pub fn next_event() -> Option<Event> {
    match ipc::call_repeating(Endpoint::DS, &NextEvent {}.message()).and_then(|reply| NextEvent::results(&reply)) {
        Ok((low, high, endpoint, up)) => Some(Event { name: Name::from_words(low, high), endpoint, up }),
        Err(Errno::ENOENT) => None,
        Err(error) => {
            sys::log!("fetching events from ds failed: {error}");
            None
        }
    }
}
