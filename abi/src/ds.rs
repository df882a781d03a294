//! The protocol of ds, the data store: names of services, and small state which restarted services get back.

use crate::{Endpoint, GrantId};

protocol! {
    /// Names and small state. Any service may speak to ds. ds itself keeps everything in its preserved memory.
    pub "ds" = 5;
    /// → endpoint of the service with this name. `ENOENT`: not in the system file; `EAGAIN`: it is down now.
    Lookup = 1 { name_low: u64, name_high: u64 } -> { endpoint: Endpoint }
    /// From now on the caller is notified when the service with this name comes up or goes down (name 0: any service).
    Subscribe = 2 { name_low: u64, name_high: u64 }
    /// The next event for the caller; `ENOENT`: none left. `up` false: it went down and is being restarted; `endpoint` is the new one when up.
    NextEvent = 3 { } -> { name_low: u64, name_high: u64, endpoint: Endpoint, up: bool }
    /// Keeps up to 1024 bytes under a key of the caller (its successor finds it again). `ENOSPC`: over 32 keys a service.
    Store = 4 { key_low: u64, key_high: u64, grant: GrantId, bytes: u64 }
    /// Copies what is kept under the key into the grant. → word 0: length. `ENOENT`.
    Retrieve = 5 { key_low: u64, key_high: u64, grant: GrantId, bytes: u64 }
    /// Forgets a key.
    Delete = 6 { key_low: u64, key_high: u64 }
}
