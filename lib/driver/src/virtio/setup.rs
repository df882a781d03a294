//! From an unknown device to a running one (VIRTIO 1.2, 3.1): reset, features, queues.
//!
//! The predecessor of a restarted driver may have left anything in flight; the reset ends it.

use super::memory::{Dma, Memory};
use super::queue::Queue;
use abi::Errno;
use sys::Result;

/// Reads of the status until a reset must have happened.
const RESET_POLLS: usize = 1_000_000;
/// Tries to read a field of the configuration that does not change meanwhile.
const CONFIG_TRIES: usize = 100;

/// Feature bits that do not belong to one kind of device.
pub mod feature {
    /// The device speaks VIRTIO 1; without it there is nothing to talk about.
    pub const VERSION_1: u64 = 1 << 32;
}

mod status {
    pub const ACKNOWLEDGE: u8 = 1;
    pub const DRIVER: u8 = 2;
    pub const DRIVER_OK: u8 = 4;
    pub const FEATURES_OK: u8 = 8;
    pub const FAILED: u8 = 128;
}

/// Where a queue lies, for the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rings {
    /// Descriptor table.
    pub descriptors: u64,
    /// Available ring.
    pub available: u64,
    /// Used ring.
    pub used: u64,
}

/// How a device is reached: PCI, and whatever else VIRTIO knows.
pub trait Transport {
    /// The device status.
    fn status(&self) -> u8;
    /// Sets it; 0 resets the device.
    fn set_status(&mut self, status: u8);
    /// Routes the interrupt for changes of the configuration; a reset has undone it. Queues have theirs from `enable_queue`.
    ///
    /// # Errors
    /// `EIO`: the device refuses.
    fn route_interrupts(&mut self) -> Result<()>;
    /// Features that the device offers.
    fn offered_features(&mut self) -> u64;
    /// Tells the device which features the driver takes.
    fn accept_features(&mut self, features: u64);
    /// Most descriptors of a queue; 0: there is no such queue.
    fn queue_limit(&mut self, queue: u16) -> u16;
    /// Makes a queue known and enables it.
    ///
    /// # Errors
    /// `EIO`: the device's registers make no sense.
    fn enable_queue(&mut self, queue: u16, size: u16, rings: Rings) -> Result<()>;
    /// Tells the device of new chains in a queue.
    fn notify(&mut self, queue: u16);
    /// Counts changes of the device's own configuration.
    fn config_generation(&self) -> u8;
    /// Reads a part of the device's own configuration.
    ///
    /// # Errors
    /// `EIO`: it is not so long.
    fn config(&self, offset: usize, into: &mut [u8]) -> Result<()>;

    /// A field of the device's own configuration, which the device does not change while it is read.
    ///
    /// # Errors
    /// As [`Transport::config`]; `EIO` also for a device that never stops changing it.
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

/// A device whose features are agreed on and which does not run yet.
pub struct Setup<T> {
    transport: T,
    features: u64,
}

impl<T: Transport> Setup<T> {
    /// Resets the device and takes those of the `known` features that it offers.
    ///
    /// # Errors
    /// `EIO`: it does not reset, does not speak VIRTIO 1, or refuses the features.
    pub fn begin(mut transport: T, known: u64) -> Result<Self> {
        reset(&mut transport)?;
        add_status(&mut transport, status::ACKNOWLEDGE);
        add_status(&mut transport, status::DRIVER);
        transport.route_interrupts()?;
        let features = transport.offered_features() & (known | feature::VERSION_1);
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

    /// The features in force.
    pub fn features(&self) -> u64 {
        self.features
    }

    /// The transport, to read the configuration.
    pub fn transport(&self) -> &T {
        &self.transport
    }

    /// Makes queue `number` with `size` descriptors (a power of two), or as many as the device allows.
    ///
    /// # Errors
    /// `ENXIO`: there is no such queue; `ENOMEM`; `EIO`.
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
