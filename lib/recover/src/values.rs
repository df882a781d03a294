//! Small values that a service leaves with ds under keys of its own: up to 32, of at most 1 KiB each.
//!
//! A value is safe when [`store`] returns, whatever dies afterwards, ds included.

use abi::ds::{Delete, Retrieve, Store};
use abi::{Endpoint, Errno, Name};
use sys::{Result, grant, ipc};

/// Stores a value under a key.
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

/// Copies the value of a key into the buffer and returns its length; `None` for an unknown key.
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

/// Deletes the value of a key.
///
/// # Errors
/// `ENOENT`: the key is unknown.
pub fn delete(key: Name) -> Result<()> {
    let (key_low, key_high) = key.to_words();
    ipc::call_repeating(Endpoint::DS, &Delete { key_low, key_high }.message()).map(drop)
}
