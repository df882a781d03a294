//! The virtio kit (VIRTIO 1.2): what every driver of a virtio device has in common.
//!
//! | module | what it is about |
//! |---|---|
//! | `memory` | DMA memory, and buffers that belong either to the driver or to the device |
//! | `queue` | split virtqueues with many chains in flight |
//! | `setup` | reset, feature negotiation, queues; the trait [`Transport`] |
//! | `pci` | the modern PCI transport with MSI-X |
//! | `played` | a device played by a test |
//!
//! A driver [`Setup::begin`]s with the features it knows, makes its queues in one piece of [`Dma`] memory, and starts the device. Then it
//! [`offers`](Queue::offer) chains of buffers and takes [`completed`](Queue::completed) ones back. A chain in flight is owned by the
//! queue, so no driver can touch memory that the device is working on. Receive queues (net, input) post chains that the device
//! fills whenever it has something.
//!
//! The device is not trusted: whatever it writes is checked, and a device that breaks the rules gets [`Broken`], after which its queue
//! gives nothing out any more. A driver ends itself then; its successor resets the device.

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
