//! The virtio kit (VIRTIO 1.2): what every driver of a virtio device has in common.
//!
//! | module | what it is about |
//! |---|---|
//! | `memory` | DMA memory, and buffers that belong either to the driver or to the device |
//! | `queue` | split virtqueues with many chains in flight |
//! | `setup` | reset, feature negotiation, queues; the trait [`Transport`] |
//! | `pci` | the modern PCI transport with MSI-X |
//! | `played` | a device simulated by a test |
//!
//! A driver negotiates the features it knows ([`Setup::begin`]), allocates its queues in one piece of [`Dma`] memory, and starts the
//! device. Then it [`offers`](Queue::offer) chains of buffers and receives [`completed`](Queue::completed) ones. A chain in flight is owned by the
//! queue, so no driver can touch memory that the device is using. Receive queues (net, input) post chains that the device
//! fills when data arrives.
//!
//! The device is not trusted: whatever it writes is checked, and a device that breaks the rules gets [`Broken`], after which its queue
//! completes no chain. The driver then exits; its successor resets the device.

mod memory;
mod pci;
#[cfg(not(target_os = "none"))]
pub mod played;
mod queue;
#[cfg(test)]
mod queue_tests;
mod setup;

pub use memory::{Buffer, Dma, Memory};
pub use pci::{PciTransport, Registers, Window, find};
pub use queue::{Broken, Chain, Completed, Full, Queue};
pub use setup::{Rings, Setup, Transport, feature};
