//! Small state that a service leaves with ds, and that its successor gets back: up to 32 values of 1 KiB under keys of its own.
//!
//! What is stored lasts when [`store`] returns, whatever then dies, ds included. For more, or for what changes with each request, there is
//! preserved memory (`recover`).

use abi::ds::{Delete, Retrieve, Store};
use abi::{Endpoint, Errno, Name};
use sys::{Result, grant, ipc};

/// Keeps a value under a key.
///
/// # Errors
/// `EINVAL`: longer than 1 KiB; `ENOSPC`: too many keys.
pub fn store(key: Name, value: &[u8]) -> Result<()> {
    let (key_low, key_high) = key.to_words();
    let bytes = value.len() as u64;
    grant::lend(value, Endpoint::DS, |grant| {
        ipc::call_repeating(Endpoint::DS, &Store { key_low, key_high, grant, bytes }.message()).map(drop)
    })?
}

/// Copies what is kept under a key into the buffer. → its length; `None`: there is nothing.
///
/// # Errors
/// Those of ds.
pub fn retrieve(key: Name, into: &mut [u8]) -> Result<Option<usize>> {
    let (key_low, key_high) = key.to_words();
    let bytes = into.len() as u64;
    let reply = grant::lend_mut(into, Endpoint::DS, |grant| {
        ipc::call_repeating(Endpoint::DS, &Retrieve { key_low, key_high, grant, bytes }.message())
    })?;
    match reply {
        Ok(reply) => Ok(Some(reply.words[0] as usize)),
        Err(Errno::ENOENT) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Forgets what is kept under a key.
///
/// # Errors
/// `ENOENT`: there is nothing.
pub fn delete(key: Name) -> Result<()> {
    let (key_low, key_high) = key.to_words();
    ipc::call_repeating(Endpoint::DS, &Delete { key_low, key_high }.message()).map(drop)
}
