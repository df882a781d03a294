//! Records of the kernel's trace ring, which `--trace` decodes on the host and /dev/trace gives to programs of root.
//!
//! The ring as `GetInfo` shows it: u64 number of records written since boot; another u64; [`RING_RECORDS`] records, the one with number
//! `n` at index `n % RING_RECORDS`. Who reads it looks at the number before and after: what has been overwritten meanwhile is lost, and
//! the two numbers say how much.

use crate::Endpoint;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Kinds of events.
pub mod event {
    #![allow(missing_docs)]
    /// A message was delivered from `from` to `to`.
    pub const MESSAGE: u32 = 1;
    /// A notification was delivered.
    pub const NOTIFY: u32 = 2;
    /// The CPU went from thread `from` to thread `to`.
    pub const SWITCH: u32 = 3;
    /// Thread `from` made the kernel call `label`; word 6 is its result. `to` is SYSTEM if the SYSTEM task made it for a message.
    pub const KERNEL_CALL: u32 = 4;
    /// Thread `from` raised the exception or fault `label` (CPU vector); word 0 is the address.
    pub const EXCEPTION: u32 = 5;
    /// Interrupt line `label` fired for thread `to`.
    pub const INTERRUPT: u32 = 6;
    /// Thread `to` was given the service name in words 0 and 1.
    pub const NAMED: u32 = 7;
    /// Thread `from` accessed port `label` on the access path in word 0 (`privilege::way`); word 1 is the operation, word 2 the value written,
    /// word 6 the result.
    pub const PORT: u32 = 8;
    /// The timer found thread `from` at the address in word 0, with stack pointer and RBP in words 1 and 2 and its queue in word 3. `label`
    /// is 1 if it was in the kernel: the address is behind its system call.
    pub const SAMPLE: u32 = 9;

    /// Kinds that can only be recorded while nothing takes a fast path.
    pub const OBSERVED: u64 = 1 << MESSAGE | 1 << NOTIFY | 1 << SWITCH | 1 << KERNEL_CALL | 1 << PORT;
    /// All kinds but samples.
    pub const ALL: u64 = OBSERVED | 1 << EXCEPTION | 1 << INTERRUPT | 1 << NAMED;
}

/// Records that the ring holds.
pub const RING_RECORDS: usize = 8192;
/// Bytes before the first record.
pub const RING_HEADER_BYTES: usize = 16;
/// Shortest distance of samples: beyond it the machine would do little else.
pub const MIN_PERIOD_NS: u64 = 20_000;

/// What a program writes to /dev/trace.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct TraceSettings {
    /// A bit for each kind of `event`.
    pub events: u64,
    /// Distance of samples in nanoseconds, at least [`MIN_PERIOD_NS`]; 0 without samples.
    pub period_ns: u64,
}

/// One record, 80 bytes, little endian.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct Record {
    /// TSC at the time of the event.
    pub tsc: u64,
    /// One of `event`.
    pub event: u32,
    /// Label, vector, or number of the call.
    pub label: u32,
    /// Thread that acted, or sender.
    pub from: Endpoint,
    /// Thread affected, or receiver.
    pub to: Endpoint,
    /// Words of the message.
    pub words: [u64; 7],
}

const _: () = assert!(core::mem::size_of::<Record>() == 80);
