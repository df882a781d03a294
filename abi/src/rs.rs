//! The protocol of rs, the reincarnation server: life and death of services.

use crate::{Endpoint, GrantId, Name};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

protocol! {
    /// Life and death of services. Services report to rs; ds collects what changed; people ask by the routed
    /// system call `linux::SERVICE` (see `service_call`).
    pub "rs" = 4;
    /// A service has finished its initialisation: `status` 0, or the negative error that made it fail (it is then not restarted).
    /// Every service asks this once, before its first receive, and waits for the answer: a report that rs died of is made again.
    Ready = 1 { status: i64 }
    /// ds fetches the next change of the list of services: name, endpoint, and 1 when it is up, 0 when down.
    /// rs notifies ds when there is one. `ENOENT`: no more. `restart` = true begins again with all services that are up.
    NextChange = 2 { restart: bool } -> { name_low: u64, name_high: u64, endpoint: Endpoint, up: bool }
    /// A service's own text arguments, copied into the grant. → word 0: length.
    Arguments = 3 { grant: GrantId, bytes: u64 }
    /// rs to a service that is about to be replaced by a new binary (asynchronous, with a tag): it finishes what it has in hand, leaves its
    /// state where its successor finds it, and answers; from then on it receives from rs alone and is destroyed. `lib/server` does it.
    PrepareUpdate = 4 { }
}

/// Operations of the system call `linux::SERVICE`: `(operation, name low, name high, address, bytes, value)`; root only.
/// The caller's buffer is read or written by rs. Results: 0, length, or an error (`ENOENT`: no such service).
pub mod service_call {
    /// Fills the buffer with `ServiceRecord`s of all services, in the order of the system file.
    pub const LIST: u64 = 0;
    /// The `ServiceRecord` of one.
    pub const STATUS: u64 = 1;
    /// Kills it, as if it had crashed; rs restarts it by its policy.
    pub const KILL: u64 = 2;
    /// Ends it and starts it afresh (birth `Fresh`), its restart count forgotten.
    pub const RESTART: u64 = 3;
    /// Replaces its binary by the ELF file in the buffer and its incarnation by one of birth `Updated`. Answered when the trial is over:
    /// 0; `ECANCELED`: the new binary failed, and the old one runs again. `ENOEXEC`, `EBUSY`: an update is under way, `EPERM`: rs, vm.
    pub const UPDATE: u64 = 4;
    /// Copies the newest crash report of the service into the buffer: text. `ENODATA`: it has not crashed.
    pub const LOG: u64 = 5;
    /// Disturbs it as the `Injection` in the buffer says; for tests of recovery. Any service may be disturbed.
    pub const INJECT: u64 = 6;
    /// Waits for the crash report number `value`, of any service, and copies it into the buffer: a `ReportHead`, then text. Reports are
    /// numbered from 1; when the one asked for is not kept any more, the oldest that is kept. `EBUSY`: somebody else waits already.
    pub const REPORT: u64 = 7;
}

/// A disturbance, in the caller's buffer: `(kind of call::inject, value, further value, bytes)` of the kernel call `Inject`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct Injection {
    /// One of `call::inject`.
    pub kind: u64,
    /// Messages until its death, or the address that is written to.
    pub value: u64,
    /// The bytes that are written, the first one lowest.
    pub further: u64,
    /// How many they are, 1 to 8.
    pub bytes: u64,
}

/// What stands before the text of a crash report.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct ReportHead {
    /// Number of the report since boot.
    pub number: u64,
    /// Which service.
    pub name: Name,
    /// Bytes of text that follow.
    pub bytes: u64,
}

/// Longest crash report, head included.
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

/// What `service list` shows of one service.
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
    /// When the present incarnation was started, monotonic.
    pub started_ns: u64,
    /// How the last one ended: 0 never, else exit status or vector (`reason`).
    pub last_status: i64,
    /// Why the last one ended: 0 never, 1 exited, 2 exception, 3 silent, 4 killed.
    pub reason: u32,
    /// Milliseconds until the next try to start it, when it has died so often that rs waits; else 0.
    pub retry_ms: u32,
    /// When the last incarnation's end was noticed, monotonic; 0 never.
    pub ended_ns: u64,
    /// When the present incarnation reported that it is ready, monotonic; 0 when it has not.
    pub ready_ns: u64,
}
