//! What drivers stand on: ports, device memory, interrupts, PCI, and the loops of block and character drivers, so that a driver
//! is only its device's logic, generic over registers and testable on the host.
//!
//! What a driver may touch is in the system file; the kernel and vm check each access. A driver that was killed may have left its
//! device in mid-operation: each begins with a reset of it.
//!
//! Neighbours: `sys` and `server` below; the programs in `drivers/` above.
#![cfg_attr(not(test), no_std)]

extern crate alloc;

mod answers;
pub mod block;
pub mod chardev;
mod client;
mod interrupt;
pub mod pci;
mod ports;
mod region;
pub mod virtio;

pub use answers::{Answers, Held};
pub use client::Client;
pub use interrupt::Interrupt;
pub use ports::Ports;
pub use region::{Cell, Region, module};
