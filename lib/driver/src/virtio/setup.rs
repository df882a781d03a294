//! Initialisation of a device (VIRTIO 1.2, 3.1): reset, features, queues.
//!
//! The predecessor of a restarted driver may have left chains in flight; the reset cancels them.

use super::memory::{Dma, Memory};
use super::queue::Queue;
use abi::Errno;
use sys::Result;

/// Reads of the status until the reset counts as failed.
const RESET_POLLS: usize = 1_000_000;
/// Attempts to read a configuration field consistently.
const CONFIG_TRIES: usize = 100;

/// Feature bits that do not belong to one kind of device.
pub mod feature {
    /// The device implements VIRTIO 1; this kit supports no other.
    pub const VERSION_1: u64 = 1 << 32;
    /// The device is behind what stands between devices and memory, an IOMMU. The addresses it is given are the same.
    pub const ACCESS_PLATFORM: u64 = 1 << 33;
}

mod status {
    pub const ACKNOWLEDGE: u8 = 1;
    pub const DRIVER: u8 = 2;
    pub const DRIVER_OK: u8 = 4;
    pub const FEATURES_OK: u8 = 8;
    pub const FAILED: u8 = 128;
}

/// Physical addresses of a queue's parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rings {
    /// Descriptor table.
    pub descriptors: u64,
    /// Available ring.
    pub available: u64,
    /// Used ring.
    pub used: u64,
}

/// Access to a device's registers: PCI, or another transport of VIRTIO.
pub trait Transport {
    /// Reads the device status.
    fn status(&self) -> u8;
    /// Writes the device status; 0 resets the device.
    fn set_status(&mut self, status: u8);
    /// Routes the interrupt for changes of the configuration, which a reset cancels. `enable_queue` routes those of queues.
    ///
    /// # Errors
    /// `EIO`: the device refuses.
    fn route_interrupts(&mut self) -> Result<()>;
    /// Reads the features that the device offers.
    fn offered_features(&mut self) -> u64;
    /// Writes the features that the driver accepts.
    fn accept_features(&mut self, features: u64);
    /// Reads the limit of descriptors in a queue; 0: no such queue.
    fn queue_limit(&mut self, queue: u16) -> u16;
    /// Writes the addresses of a queue and enables it.
    ///
    /// # Errors
    /// `EIO`: the device's registers are invalid.
    fn enable_queue(&mut self, queue: u16, size: u16, rings: Rings) -> Result<()>;
    /// Notifies the device of new chains in a queue.
    fn notify(&mut self, queue: u16);
    /// Reads the generation of the device-specific configuration.
    fn config_generation(&self) -> u8;
    /// Reads from the device-specific configuration.
    ///
    /// # Errors
    /// `EIO`: beyond its end.
    fn config(&self, offset: usize, into: &mut [u8]) -> Result<()>;

    /// Writes bytes of the device-specific configuration.
    ///
    /// # Errors
    /// `EIO`: beyond its end.
    fn write_config(&mut self, offset: usize, from: &[u8]) -> Result<()>;

    /// Reads a field of the device-specific configuration consistently: the device did not change it meanwhile.
    ///
    /// # Errors
    /// As [`Transport::config`]; `EIO` also for a device that keeps changing it.
    fn config_field<const N: usize>(&self, offset: usize) -> Result<[u8; N]> {
        let mut field = [0; N];
        for _ in 0..CONFIG_TRIES {
            let generation = self.config_generation();
            self.config(offset, &mut field)?;
            if self.config_generation() == generation {
                return Ok(field);
            }
        }
        Err(Errno::EIO)
    }
}

/// A device with negotiated features that is not started yet.
pub struct Setup<T> {
    transport: T,
    features: u64,
}

impl<T: Transport> Setup<T> {
    /// Resets the device and negotiates those of the `known` features that it offers.
    ///
    /// # Errors
    /// `EIO`: the reset fails, the device does not implement VIRTIO 1, or it refuses the features.
    pub fn begin(mut transport: T, known: u64) -> Result<Self> {
        reset(&mut transport)?;
        add_status(&mut transport, status::ACKNOWLEDGE);
        add_status(&mut transport, status::DRIVER);
        transport.route_interrupts()?;
        let features = transport.offered_features() & (known | feature::VERSION_1 | feature::ACCESS_PLATFORM);
        if features & feature::VERSION_1 == 0 {
            add_status(&mut transport, status::FAILED);
            return Err(Errno::EIO);
        }
        transport.accept_features(features);
        add_status(&mut transport, status::FEATURES_OK);
        if transport.status() & status::FEATURES_OK == 0 {
            add_status(&mut transport, status::FAILED);
            return Err(Errno::EIO);
        }
        Ok(Setup { transport, features })
    }

    /// Returns the negotiated features.
    pub fn features(&self) -> u64 {
        self.features
    }

    /// Returns the transport, to read the configuration.
    pub fn transport(&self) -> &T {
        &self.transport
    }

    /// Makes queue `number` with `size` descriptors (a power of two), or as many as the device allows.
    ///
    /// # Errors
    /// `ENXIO`: no such queue; `ENOMEM`; `EIO`.
    pub fn queue<M: Memory, U>(&mut self, number: u16, size: u16, dma: &mut Dma<M>) -> Result<Queue<M, U>> {
        let limit = self.transport.queue_limit(number);
        let size = match limit {
            0 => return Err(Errno::ENXIO),
            limit if limit.is_power_of_two() => size.min(limit),
            _ => return Err(Errno::EIO),
        };
        let queue = Queue::new(number, size, dma)?;
        self.transport.enable_queue(number, size, queue.rings())?;
        Ok(queue)
    }

    /// Starts the device.
    pub fn start(mut self) -> T {
        add_status(&mut self.transport, status::DRIVER_OK);
        self.transport
    }
}

fn reset(transport: &mut impl Transport) -> Result<()> {
    transport.set_status(0);
    let is_reset = (0..RESET_POLLS).any(|_| transport.status() == 0);
    if is_reset { Ok(()) } else { Err(Errno::EIO) }
}

fn add_status(transport: &mut impl Transport, bit: u8) {
    let old = transport.status();
    transport.set_status(old | bit);
}
