//! Names of other services, as ds knows them.

use abi::ds::{Lookup, NextEvent, Subscribe};
use abi::{Endpoint, Errno, Name};
use sys::{Result, ipc};

/// What has become of a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// The service.
    pub name: Name,
    /// Its endpoint when it is up; when it is down `Endpoint::current` of its slot if a successor is expected, else `NONE`.
    pub endpoint: Endpoint,
    /// It is up.
    pub up: bool,
}

/// The endpoint of a service.
///
/// # Errors
/// `ENOENT`: the system has no such service; `EAGAIN`: it is down now.
pub fn lookup(name: Name) -> Result<Endpoint> {
    let (name_low, name_high) = name.to_words();
    let reply = ipc::call_repeating(Endpoint::DS, &Lookup { name_low, name_high }.message())?;
    Lookup::results(&reply)
}

/// From now on a notification from ds tells that the service has come up or gone down; see [`next_event`].
///
/// # Errors
/// Those of ds.
pub fn subscribe(name: Name) -> Result<()> {
    let (name_low, name_high) = name.to_words();
    ipc::call_repeating(Endpoint::DS, &Subscribe { name_low, name_high }.message()).map(drop)
}

/// The next event, after a notification from ds; `None` when there is none left.
pub fn next_event() -> Option<Event> {
    match ipc::call_repeating(Endpoint::DS, &NextEvent {}.message()).and_then(|reply| NextEvent::results(&reply)) {
        Ok((low, high, endpoint, up)) => Some(Event { name: Name::from_words(low, high), endpoint, up }),
        Err(Errno::ENOENT) => None,
        Err(error) => {
            sys::log!("ds does not tell its events: {error}");
            None
        }
    }
}
