//! The driver kit: ports, device memory, interrupts, PCI, virtio, and the receive loops of block and character drivers. A driver
//! contains only its device's logic, generic over registers and testable on the host.
//!
//! The system file lists what a driver may access; the kernel and vm check each access. A killed predecessor may have left the
//! device in mid-operation, so every driver begins with a reset.
//!
//! Neighbours: `sys` and `server` below; the programs in `drivers/` above.
#![cfg_attr(not(test), no_std)]

extern crate alloc;

mod answers;
pub mod block;
pub mod chardev;
mod client;
pub mod display;
pub mod i2c;
pub mod input;
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
