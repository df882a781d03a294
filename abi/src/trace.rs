//! Trace records: what the kernel's trace ring holds and `--trace` decodes.

use crate::Endpoint;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// What happened.
pub mod event {
    #![allow(missing_docs)]
    /// A message was delivered from `from` to `to`.
    pub const MESSAGE: u32 = 1;
    /// A notification was delivered.
    pub const NOTIFY: u32 = 2;
    /// The CPU went from thread `from` to thread `to`.
    pub const SWITCH: u32 = 3;
    /// Thread `from` made the kernel call `label`; word 6 is its result. `to` is SYSTEM when that has made it in the thread's name.
    pub const KERNEL_CALL: u32 = 4;
    /// Thread `from` took the exception or fault `label` (CPU vector); word 0 is the address.
    pub const EXCEPTION: u32 = 5;
    /// Interrupt line `label` fired for thread `to`.
    pub const INTERRUPT: u32 = 6;
    /// Thread `to` was given the service name in words 0 and 1.
    pub const NAMED: u32 = 7;
    /// Thread `from` reached the port `label` by the way in word 0 (`privilege::way`); word 1 is the operation, word 2 the value written,
    /// word 6 the result.
    pub const PORT: u32 = 8;
}

/// One record, 80 bytes, little endian.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct Record {
    /// TSC when it happened.
    pub tsc: u64,
    /// One of `event`.
    pub event: u32,
    /// Label, vector, or number of the call.
    pub label: u32,
    /// Who did it.
    pub from: Endpoint,
    /// To whom.
    pub to: Endpoint,
    /// Words of the message.
    pub words: [u64; 7],
}

const _: () = assert!(core::mem::size_of::<Record>() == 80);
