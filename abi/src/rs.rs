//! The protocol of rs, the reincarnation server, which starts, watches and restarts services.

use crate::{Endpoint, GrantId, Name};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

protocol! {
    /// Start, supervision and restart of services. Services report to rs, ds fetches the changes; programs use the routed
    /// system call `linux::SERVICE` (see `service_call`).
    pub "rs" = 4;
    /// A service has finished its initialisation: `status` 0, or the negative error that made it fail (it is then not restarted).
    /// Every service sends this once, before its first receive, and waits for the reply; if rs dies before it replies, the service repeats it.
    Ready = 1 { status: i64 }
    /// ds: returns the next change of the list of services: name, endpoint, whether it is up. rs notifies ds of changes.
    /// `ENOENT`: no more. `restart` starts over with all services that are up.
    NextChange = 2 { restart: bool } -> { name_low: u64, name_high: u64, endpoint: Endpoint, up: bool }
    /// A service: copies its text arguments into the grant. Word 0 of the reply: length.
    Arguments = 3 { grant: GrantId, bytes: u64 }
    /// From rs to a service that is about to be replaced by a new binary (asynchronous, with a tag): the service completes its requests
    /// in progress, leaves its state where its successor finds it, and replies; it then receives from rs alone and is destroyed.
    /// `lib/server` implements it.
    PrepareUpdate = 4 { }
    /// From rs to a service, for tests (asynchronous, with a tag): the allocation number `after` from now on, counted from 1, of those that
    /// a call makes fallibly or before it begins, fails; 0: none does. `lib/server` implements it (`sys::fallible`).
    FailAllocation = 5 { after: u64 }
    /// vfs: this service answers heartbeats, but for long none of vfs's requests. rs ends it as one that is silent.
    Stalled = 6 { process: Endpoint }
}

/// Operations of the system call `linux::SERVICE`: `(operation, name low, name high, address, bytes, value)`; root only.
/// The caller's buffer is read or written by rs. Results: 0, length, or an error (`ENOENT`: no such service).
pub mod service_call {
    /// Fills the buffer with `ServiceRecord`s of all services, in the order of the system file.
    pub const LIST: u64 = 0;
    /// Fills the buffer with the `ServiceRecord` of one service.
    pub const STATUS: u64 = 1;
    /// Kills the service, as if it had crashed; rs restarts it by its policy.
    pub const KILL: u64 = 2;
    /// Ends the service and starts it with start kind `Fresh` and a restart count of 0.
    pub const RESTART: u64 = 3;
    /// Replaces the service's binary by the ELF file in the buffer, and its incarnation by one of start kind `Updated`. Returns when
    /// the trial is over: 0; `ECANCELED`: the new binary failed and the old one runs again; `ENOEXEC`; `EBUSY`: another update is in
    /// progress; `EPERM`: rs, vm.
    pub const UPDATE: u64 = 4;
    /// Copies the newest crash report of the service into the buffer: text. `ENODATA`: it has not crashed.
    pub const LOG: u64 = 5;
    /// Injects the fault that the `Injection` in the buffer describes into any service, for tests of recovery.
    pub const INJECT: u64 = 6;
    /// Waits for crash report number `value`, of any service, and copies it into the buffer: a `ReportHead`, then text. Reports are
    /// numbered from 1; for one that has been discarded, the oldest kept is returned. `EBUSY`: another process waits already.
    pub const REPORT: u64 = 7;
    /// Copies the name of the function of the service at the address `value` into the buffer: text. `ENODATA`: there is none, or the
    /// program is an updated one, without symbols.
    pub const FUNCTION: u64 = 8;
}

/// A fault to inject, in the caller's buffer: `(kind of call::inject, value, further value, bytes)` of the kernel call `Inject`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct Injection {
    /// One of `call::inject`.
    pub kind: u64,
    /// Messages until the service ends, the address to write, or the number of the allocation.
    pub value: u64,
    /// Bytes to write, the first one lowest.
    pub further: u64,
    /// Number of bytes to write, 1 to 8.
    pub bytes: u64,
}

/// Header of a crash report; the text follows.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct ReportHead {
    /// Number of the report since boot.
    pub number: u64,
    /// Name of the service.
    pub name: Name,
    /// Bytes of text that follow.
    pub bytes: u64,
}

/// Limit of a crash report, header included, in bytes.
pub const REPORT_BYTES: usize = 4096;

/// Flags in `ServiceRecord::state`.
pub mod state {
    #![allow(missing_docs)]
    pub const DOWN: u32 = 0;
    pub const STARTING: u32 = 1;
    pub const UP: u32 = 2;
    pub const RESTARTING: u32 = 3;
    pub const GIVEN_UP: u32 = 4;
}

/// State of a service, as `service list` shows it.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct ServiceRecord {
    /// Name.
    pub name: Name,
    /// Endpoint of the present incarnation.
    pub endpoint: Endpoint,
    /// One of `state`.
    pub state: u32,
    /// Restarts since boot.
    pub restarts: u32,
    /// Heartbeats missed in a row.
    pub missed: u32,
    /// Monotonic time at which the present incarnation was started.
    pub started_ns: u64,
    /// Exit status or exception vector of the last incarnation, by `reason`; 0: none has ended.
    pub last_status: i64,
    /// Reason for the end of the last incarnation: 0 none has ended, 1 exit, 2 exception, 3 missed heartbeats, 4 killed, 5 restarted
    /// with a service it depends on.
    pub reason: u32,
    /// Milliseconds of back-off until the next start; 0: none.
    pub retry_ms: u32,
    /// Monotonic time at which the last incarnation's end was noticed; 0: none has ended.
    pub ended_ns: u64,
    /// Monotonic time at which the present incarnation reported ready; 0: not yet.
    pub ready_ns: u64,
    /// What the kernel has refused the present incarnation: messages, kernel calls, ports.
    pub denials: u64,
}
