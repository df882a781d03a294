//! Records of the kernel's trace ring, which `--trace` decodes.

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
