//! The contract between all programs of Skink, written once: messages, protocols, numbers, shared layouts.
//!
//! The kernel, every server, driver and file system, the native programs and `xtask` are built on this crate;
//! the C header, the trace decoder and the protocol reference are generated from its tables.
//! It depends on nothing of Skink, holds no logic beyond packing and unpacking, and allocates nothing
//! (the feature `system`, which describes the system file for xtask and rs, needs `alloc`).
//!
//! Neighbours: everything. Reading order: `message`, `endpoint`, `error`, `call`, `grant`, `kernel`, `privilege`,
//! then one file per protocol.
#![no_std]
#![forbid(unsafe_code)]

#[cfg(feature = "system")]
extern crate alloc;

#[macro_use]
mod protocol;

pub mod archive;
pub mod call;
pub mod capability;
pub mod clock;
pub mod container;
pub mod core_dump;
pub mod device;
pub mod endpoint;
pub mod error;
pub mod grant;
pub mod info;
pub mod kernel;
pub mod layout;
pub mod limits;
pub mod linux;
pub mod m3ipc;
pub mod message;
pub mod name;
pub mod privilege;
pub mod registers;
pub mod symbols;
#[cfg(feature = "system")]
pub mod system;
pub mod trace;

pub mod block;
pub mod chardev;
pub mod console;
pub mod display;
pub mod ds;
pub mod fs;
pub mod input;
pub mod pci;
pub mod pm;
pub mod rs;
pub mod rt;
pub mod tty;
pub mod vfs;
pub mod vm;

pub use capability::{Capability, CapabilitySet};
pub use container::{Part, Parts};
pub use endpoint::Endpoint;
pub use error::Errno;
pub use grant::GrantId;
pub use message::{Message, Word};
pub use name::Name;
pub use protocol::{Field, MessageInfo, ProtocolInfo};

/// All protocols, for the trace decoder and the generators of C header and reference.
pub const PROTOCOLS: &[&ProtocolInfo] = &[
    &kernel::PROTOCOL,
    &vm::PROTOCOL,
    &pm::PROTOCOL,
    &vfs::PROTOCOL,
    &rs::PROTOCOL,
    &ds::PROTOCOL,
    &fs::PROTOCOL,
    &block::PROTOCOL,
    &chardev::PROTOCOL,
    &tty::PROTOCOL,
    &pci::PROTOCOL,
    &display::PROTOCOL,
    &m3ipc::PROTOCOL,
];

/// Returns the protocol and message of a label; a reply's label finds its request.
pub fn describe(label: u32) -> Option<(&'static ProtocolInfo, &'static MessageInfo)> {
    let request = label & !message::REPLY;
    PROTOCOLS.iter().find_map(|protocol| {
        let found = protocol.messages.iter().find(|m| m.label == request)?;
        Some((*protocol, found))
    })
}
