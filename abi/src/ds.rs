//! The protocol of ds, the data store: names of services, and small state that restarted services get back.

use crate::{Endpoint, GrantId};

protocol! {
    /// Names and small state. Any service may call ds, which keeps everything in its preserved memory.
    pub "ds" = 5;
    /// Returns the endpoint of the service with this name. `ENOENT`: not in the system file; `EAGAIN`: down at the moment.
    Lookup = 1 { name_low: u64, name_high: u64 } -> { endpoint: Endpoint }
    /// Subscribes the caller: it is notified whenever the service with this name comes up or goes down (name 0: any service).
    Subscribe = 2 { name_low: u64, name_high: u64 }
    /// Returns the caller's next event; `ENOENT`: none left. `up` is false while the service is being restarted; when it is up, `endpoint` is the successor's.
    NextEvent = 3 { } -> { name_low: u64, name_high: u64, endpoint: Endpoint, up: bool }
    /// Stores up to 1024 bytes under a key of the caller, for its successor. `ENOSPC`: more than 32 keys of one service.
    Store = 4 { key_low: u64, key_high: u64, grant: GrantId, bytes: u64 }
    /// Copies the value of a key into the grant. Word 0 of the reply: length. `ENOENT`: no such key.
    Retrieve = 5 { key_low: u64, key_high: u64, grant: GrantId, bytes: u64 }
    /// Deletes a key.
    Delete = 6 { key_low: u64, key_high: u64 }
    /// As `Lookup`, but while the service is starting or restarting `Endpoint::current` of its slot: a call to that waits for it. `ENOENT`: not in the
    /// system file, or down for good.
    Expect = 7 { name_low: u64, name_high: u64 } -> { endpoint: Endpoint }
}
